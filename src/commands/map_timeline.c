/* tessera map timeline: the correlation of every part of a model with the map,
 * model by model, or draw by draw (Stone et al. 2014, Faraday Discuss.
 * 169:265).
 *
 * A row is a residue, an element of secondary structure, a chain or a named
 * selection, a column a model. A cell is the correlation of the density of that
 * part alone with the map, near its atoms. */
#include "commands/map_job.h"
#include "core/text.h"
#include "files/file.h"
#include "maps/component.h"
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    tsr_map_job *job;
    tsr_map_models models;
    tsr_components rows;
    double *cc; /* [models.n][rows.n]; NaN: not defined */
} timeline;

/* draw: of a trajectory its frame, from 1 */
static const char csv_head[] = "component,model,chain,draw,cc,change\n";

/* ---- the correlations ---- */

/* Systems of one model: its components, one after the other. */
typedef struct {
    int *first;       /* [rows.n + 1] */
    int *atom;        /* [first[rows.n]] */
    double (*xyz)[3]; /* of all models of a call */
    unsigned char *z;
    int *all_first;
} systems;

static void systems_clear(systems *s)
{
    free(s->first);
    free(s->atom);
    free(s->xyz);
    free(s->z);
    free(s->all_first);
}

enum { ATOMS_A_CALL = 1 << 22 };

static tsr_status systems_make(const timeline *t, int models_a_call,
                               systems *out, tsr_err *err)
{
    const size_t n_row = (size_t)t->rows.n, n_call = (size_t)models_a_call;
    size_t n = 0;
    for (int r = 0; r < t->rows.n; r++)
        n += (size_t)t->rows.component[r].n;
    *out = (systems){.first = calloc(n_row + 1, sizeof *out->first),
                     .atom = calloc(n + 1, sizeof *out->atom),
                     .xyz = calloc(n * n_call + 1, sizeof *out->xyz),
                     .z = calloc(n * n_call + 1, 1),
                     .all_first =
                         calloc(n_row * n_call + 1, sizeof *out->all_first)};
    if (out->first == NULL || out->atom == NULL || out->xyz == NULL ||
        out->z == NULL || out->all_first == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a timeline");
    for (int r = 0; r < t->rows.n; r++) {
        const tsr_component *c = &t->rows.component[r];
        memcpy(out->atom + out->first[r], c->atom,
               (size_t)c->n * sizeof *c->atom);
        out->first[r + 1] = out->first[r] + c->n;
    }
    return TSR_OK;
}

/* Models from .. from + n - 1 in one call. */
static tsr_status run_some(timeline *t, systems *s, int from, int n,
                           tsr_density_sums *sums, tsr_err *err)
{
    const tsr_map_job *job = t->job;
    const int n_row = t->rows.n, n_atom = s->first[n_row];
    double *threshold = NULL;
    for (int k = 0; k < n; k++) {
        const double(*xyz)[3] = tsr_map_models_xyz(&t->models, from + k);
        for (int i = 0; i < n_atom; i++) {
            memcpy(s->xyz[k * n_atom + i], xyz[s->atom[i]], sizeof *s->xyz);
            s->z[k * n_atom + i] =
                (unsigned char)t->models.atoms->atom[s->atom[i]].z;
        }
        for (int r = 0; r <= n_row; r++)
            s->all_first[k * n_row + r] = k * n_atom + s->first[r];
    }
    const size_t n_system = (size_t)n * (size_t)n_row;
    const tsr_density_batch batch = {.n_system = (int)n_system,
                                     .first = s->all_first,
                                     .xyz = (const double(*)[3])s->xyz,
                                     .z = s->z};
    if (job->has_threshold) {
        threshold = calloc(n_system + 1, sizeof *threshold);
        if (threshold == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory for a timeline");
        for (size_t k = 0; k < n_system; k++)
            threshold[k] = job->threshold;
    }
    const tsr_density_options o = {.mask_ang =
                                       threshold == NULL ? job->mask_ang : 0.0,
                                   .threshold = threshold};
    tsr_status status = tsr_density_run(job->engine, &batch, &o, sums, err);
    for (size_t k = 0; k < n_system && status == TSR_OK; k++)
        t->cc[(size_t)from * (size_t)n_row + k] =
            tsr_map_cc(threshold == NULL ? &sums[k].mask : &sums[k].above);
    free(threshold);
    return status;
}

static tsr_status correlate(timeline *t, tsr_err *err)
{
    systems s = {0};
    const size_t n_row = (size_t)t->rows.n;
    const int per_call = ATOMS_A_CALL / (t->models.atoms->n_atom + 1) + 1;
    const int most = per_call < t->models.n ? per_call : t->models.n;
    tsr_density_sums *sums = calloc(n_row * (size_t)most + 1, sizeof *sums);
    t->cc = calloc(n_row * (size_t)t->models.n + 1, sizeof *t->cc);
    tsr_status status = systems_make(t, most, &s, err);
    if (status == TSR_OK && (sums == NULL || t->cc == NULL))
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a timeline");
    for (int from = 0; from < t->models.n && status == TSR_OK; from += most) {
        const int left = t->models.n - from;
        status = run_some(t, &s, from, left < most ? left : most, sums, err);
    }
    free(sums);
    systems_clear(&s);
    return status;
}

/* ---- the table ---- */

static double change(const timeline *t, int k, int r)
{
    return t->cc[(size_t)k * (size_t)t->rows.n + (size_t)r] - t->cc[r];
}

static tsr_status write_csv(const timeline *t, const char *path, tsr_err *err)
{
    tsr_file_writer to;
    TSR_TRY(tsr_file_begin(&to, path, err));
    fputs(csv_head, to.out);
    for (int r = 0; r < t->rows.n; r++)
        for (int k = 0; k < t->models.n; k++) {
            const double cc = t->cc[(size_t)k * (size_t)t->rows.n + (size_t)r];
            fprintf(to.out, "\"%s\",%d,", t->rows.component[r].name, k + 1);
            if (t->models.chain != NULL)
                fprintf(to.out, "%d", t->models.chain[k]);
            fputc(',', to.out);
            if (t->models.draw != NULL)
                fprintf(to.out, "%ld", t->models.draw[k]);
            fputc(',', to.out);
            if (isnan(cc))
                fputs(",\n", to.out);
            else if (isnan(t->cc[r]))
                fprintf(to.out, "%.6f,\n", cc);
            else
                fprintf(to.out, "%.6f,%.6f\n", cc, change(t, k, r));
        }
    return tsr_file_end(&to, TSR_OK, err);
}

/* Share of the rows, in per cent, whose correlation in the last model is above
 * that in the first. */
static double share_risen(const timeline *t)
{
    int n = 0, risen = 0;
    for (int r = 0; r < t->rows.n; r++) {
        const double d = change(t, t->models.n - 1, r);
        n += isnan(d) ? 0 : 1;
        risen += d > 0.0;
    }
    return n > 0 ? 100.0 * risen / n : 0.0;
}

/* ---- the picture ---- */

enum { LEFT = 130, TOP = 64, WIDTH = 640, BOTTOM = 56, SCALE = 90, MOST = 60 };

/* Rows are as high as text where there are few, thin where there are many. */
static double row_height(const timeline *t)
{
    return fmax(2.0, fmin(18.0, 700.0 / t->rows.n));
}

static void draw_cells(tsr_svg *svg, const timeline *t, double low, double high)
{
    const double height = row_height(t), width = (double)WIDTH / t->models.n;
    for (int r = 0; r < t->rows.n; r++)
        for (int k = 0; k < t->models.n; k++) {
            char colour[8];
            const double cc = t->cc[(size_t)k * (size_t)t->rows.n + (size_t)r];
            if (isnan(cc))
                continue;
            tsr_figure_colour((cc - low) / (high - low), colour);
            tsr_svg_rect(svg, LEFT + k * width, TOP + r * height, width + 0.3,
                         height + 0.3, colour, 1.0);
        }
}

/* Every row has its name, or every so many. */
static void draw_names(tsr_svg *svg, const timeline *t)
{
    const double height = row_height(t);
    const int every = t->rows.n > MOST ? (t->rows.n + 39) / 40 : 1;
    for (int r = 0; r < t->rows.n; r += every)
        tsr_svg_text(svg, LEFT - 6.0, TOP + (r + 0.5) * height + 4.0,
                     fmin(12.0, fmax(9.0, height)), TSR_SVG_END, 0,
                     t->rows.component[r].name);
}

static void draw_axis(tsr_svg *svg, const timeline *t, double bottom)
{
    double first, step;
    const int n = tsr_figure_ticks(1.0, t->models.n, 7, &first, &step);
    const double width = (double)WIDTH / t->models.n;
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step, x = LEFT + (v - 0.5) * width;
        if (v < 1.0 || v > t->models.n || v != floor(v))
            continue;
        tsr_figure_tick_text(v, step, text);
        tsr_svg_line(svg, x, bottom, x, bottom + 4.0, "#444", 1.0);
        tsr_svg_text(svg, x, bottom + 18.0, 12.0, TSR_SVG_MIDDLE, 0, text);
    }
    tsr_svg_text(svg, LEFT + 0.5 * WIDTH, bottom + 40.0, 14.0, TSR_SVG_MIDDLE,
                 0,
                 t->models.chain != NULL  ? "conformation, chain after chain"
                 : t->models.draw != NULL ? "frame"
                                          : "model");
}

static void draw_scale(tsr_svg *svg, double low, double high, double bottom)
{
    enum { STEPS = 64 };
    const double left = LEFT + WIDTH + 18.0, top = TOP;
    const double height = fmin(bottom - top, 260.0);
    double first, step;
    for (int i = 0; i < STEPS; i++) {
        char colour[8];
        tsr_figure_colour((i + 0.5) / STEPS, colour);
        tsr_svg_rect(svg, left, top + height * (1.0 - (i + 1.0) / STEPS), 12.0,
                     height / STEPS + 0.3, colour, 1.0);
    }
    const int n = tsr_figure_ticks(low, high, 4, &first, &step);
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step;
        tsr_figure_tick_text(v, step, text);
        tsr_svg_text(svg, left + 16.0,
                     top + height * (high - v) / (high - low) + 4.0, 12.0,
                     TSR_SVG_START, 0, text);
    }
    tsr_svg_text(svg, left + 62.0, top + 0.5 * height, 13.0, TSR_SVG_MIDDLE, 1,
                 "correlation");
}

static void range_of(const timeline *t, double *low, double *high)
{
    const size_t n = (size_t)t->rows.n * (size_t)t->models.n;
    *low = 1.0, *high = -1.0;
    for (size_t k = 0; k < n; k++)
        if (!isnan(t->cc[k])) {
            *low = fmin(*low, t->cc[k]);
            *high = fmax(*high, t->cc[k]);
        }
    *low = fmax(-1.0, floor(*low * 10.0) / 10.0);
    *high = fmin(1.0, ceil(*high * 10.0) / 10.0);
    if (!(*high > *low))
        *low = 0.0, *high = 1.0;
}

static tsr_status write_svg(const timeline *t, const char *path, tsr_err *err)
{
    const double bottom = TOP + t->rows.n * row_height(t);
    char title[256];
    double low, high;
    tsr_svg *svg =
        tsr_svg_new(LEFT + WIDTH + SCALE, (int)ceil(bottom) + BOTTOM);
    if (svg == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a picture");
    range_of(t, &low, &high);
    snprintf(title, sizeof title, "Correlation of %s with %s, part by part",
             tsr_text_file_name(t->models.path),
             tsr_text_file_name(t->job->map->path));
    tsr_svg_text(svg, LEFT, 24.0, 16.0, TSR_SVG_START, 0, title);
    snprintf(title, sizeof title,
             "R %g \xc3\x85, atoms: %s, \xcf\x83/R %.3g; from the first to the "
             "last model %.0f %% of the rows rose",
             t->job->resolution_ang, tsr_blur_name(t->job->kind),
             t->job->sigma_over_r, share_risen(t));
    tsr_svg_text(svg, LEFT, 46.0, 13.0, TSR_SVG_START, 0, title);
    draw_cells(svg, t, low, high);
    draw_names(svg, t);
    draw_axis(svg, t, bottom);
    draw_scale(svg, low, high, bottom);
    tsr_status status = tsr_svg_write(svg, path, err);
    tsr_svg_free(svg);
    return status;
}

/* ---- the verb ---- */

static tsr_status find_rows(timeline *t, tsr_err *err)
{
    static const char *const word[] = {"residue", "structure", "chain"};
    const char *by = tsr_args_value(t->job->args, "by");
    const char *const *selection;
    const int n = tsr_args_values(t->job->args, "select", &selection);
    if (n > 0)
        return tsr_components_select(n, selection, t->models.atoms, &t->rows,
                                     err);
    for (int k = 0; k < 3; k++)
        if (strcmp(by, word[k]) == 0)
            return tsr_components_make((tsr_component_kind)k, t->models.atoms,
                                       tsr_map_models_xyz(&t->models, 0),
                                       &t->rows, err);
    return tsr_fail(err, TSR_E_USAGE,
                    "--by '%.40s': expected residue, structure or chain", by);
}

/* NAME and ".csv" or ".svg" in place of what it ends with. */
static void path_with(const char *name, const char *ending, char *out,
                      size_t size)
{
    size_t n = strlen(name);
    if (n > 4 && (strcmp(name + n - 4, ".csv") == 0 ||
                  strcmp(name + n - 4, ".svg") == 0))
        n -= 4;
    snprintf(out, size, "%.*s%s", (int)n, name, ending);
}

static tsr_status make(timeline *t, const char *csv, const char *svg,
                       tsr_err *err)
{
    tsr_map_job *job = t->job;
    TSR_TRY(tsr_map_models_read(job->model[0], job->trajectory,
                                job->most_frames, job->log, &t->models, err));
    TSR_TRY(tsr_map_job_check(job, &t->models, 0.5, err));
    TSR_TRY(find_rows(t, err));
    TSR_TRY(tsr_map_job_blur(job, &t->models, job->sigma_over_r, err));
    TSR_TRY(correlate(t, err));
    TSR_TRY(write_csv(t, csv, err));
    TSR_TRY(write_svg(t, svg, err));
    fprintf(job->out, "%d rows, %d model%s: %s, %s", t->rows.n, t->models.n,
            t->models.n == 1 ? "" : "s", csv, svg);
    if (t->models.n > 1)
        fprintf(job->out,
                "; from the first to the last model %.0f %% of the rows rose",
                share_risen(t));
    fputs("\n", job->out);
    return TSR_OK;
}

tsr_status tsr_map_timeline(tsr_map_job *job, tsr_err *err)
{
    const char *output = tsr_args_value(job->args, "output");
    char csv[1024], svg[1024];
    timeline t = {.job = job};
    if (job->n_model != 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' takes one file of models, or one run");
    if (output == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' needs a name for its table and "
                        "picture: --output");
    if (!(job->sigma_over_r > 0.0) || job->is_in_sd)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' takes a number for --sigma-over-r and "
                        "--threshold: one for all rows");
    path_with(output, ".csv", csv, sizeof csv);
    path_with(output, ".svg", svg, sizeof svg);
    TSR_TRY(tsr_map_job_target(job, csv, csv_head, "", err));
    TSR_TRY(tsr_map_job_target(job, svg, "", TSR_SVG_MARK, err));
    tsr_status status = make(&t, csv, svg, err);
    free(t.cc);
    tsr_components_clear(&t.rows);
    tsr_map_models_clear(&t.models);
    return status;
}
