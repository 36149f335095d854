/* tessera map cc and map timeline: correlation of models with a map, for the
 * whole model and for its parts. */
#include "commands/map_job.h"
#include "core/json.h"
#include "core/parallel.h"
#include "core/text.h"
#include "files/file.h"
#include "maps/map_view.h"
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A thread's copy of the job, with an engine of its own. */
typedef struct {
    tsr_map_job job;
    float *density; /* [n_voxel] density of the last model, or NULL */
} worker;

/* worker [n_thread] out, from the pool of the job; the engines are made when
 * threads begin. */
static tsr_status make_workers(tsr_map_job *job, worker **out, tsr_err *err)
{
    tsr_pool_array(&job->pool, *out, job->n_thread);
    TSR_TRY(tsr_pool_check(&job->pool, err));
    for (int t = 0; t < job->n_thread; t++) {
        (*out)[t].job = *job;
        (*out)[t].job.engine = NULL;
    }
    return TSR_OK;
}

static tsr_status start_worker(const tsr_map_job *job, worker *w, tsr_err *err)
{
    return w->job.engine != NULL
               ? TSR_OK
               : job->engine->clone(job->engine, &w->job.engine, err);
}

static void free_workers(const tsr_map_job *job, worker *w)
{
    for (int t = 0; w != NULL && t < job->n_thread; t++) {
        tsr_density_free(w[t].job.engine);
        free(w[t].density);
    }
}

/* The comparison of a model with the map. */
typedef struct {
    char label[256];
    int n_atom;
    double sigma_over_r;
    tsr_density_sums sums;
    double threshold;
    tsr_fsc fsc;    /* its correlations are in `shell` */
    double shell[]; /* [shells.n] */
} result;

typedef struct comparison comparison;

/* Models of a file, and their results. */
typedef struct {
    const comparison *all;
    int thread; /* index of the thread that compares the file */
    tsr_map_models models;
    int n;
    char *result; /* [n] results */
} compared_file;

struct comparison {
    tsr_map_job *job;
    worker *worker;      /* [n_thread] */
    compared_file *file; /* [job->n_model] */
    tsr_shells shells;
    double *s_inv_ang; /* [shells.n] */
    size_t n_byte;     /* size of a result */
};

static result *result_of(const compared_file *f, int k)
{
    return (result *)(void *)(f->result + (size_t)k * f->all->n_byte);
}

typedef struct {
    const unsigned char *z;
    const double (*xyz)[3];
    int n_atom;
} model;

static tsr_status compute_sums(const tsr_map_job *job, const model *m,
                               const tsr_density_options *o,
                               tsr_density_sums *out, tsr_err *err)
{
    return tsr_density_one(job->engine, m->n_atom, m->xyz, m->z, o, out, err);
}

/* ---- the width of the blur ---- */

static tsr_status compute_cc(const tsr_map_job *job,
                             const tsr_map_models *models, const model *m,
                             double sigma_over_r, double *cc, tsr_err *err)
{
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    TSR_TRY(tsr_map_job_blur(job, models, sigma_over_r, err));
    TSR_TRY(compute_sums(job, m, &o, &sums, err));
    *cc = tsr_map_cc(&sums.box);
    if (isnan(*cc))
        *cc = -1.0;
    return TSR_OK;
}

/* The correlation has one maximum over the width, found by golden-section
 * search to 0.001. */
static tsr_status best_sigma(const tsr_map_job *job,
                             const tsr_map_models *models, const model *m,
                             double *out, tsr_err *err)
{
    const double golden = 0.6180339887498949;
    double low = 0.08, high = 0.9;
    double x[2] = {high - golden * (high - low), low + golden * (high - low)};
    double cc[2];
    for (int k = 0; k < 2; k++)
        TSR_TRY(compute_cc(job, models, m, x[k], &cc[k], err));
    while (high - low > 0.001) {
        const int k = cc[0] < cc[1]; /* side that is searched next */
        if (k)
            low = x[0];
        else
            high = x[1];
        x[!k] = x[k];
        cc[!k] = cc[k];
        x[k] = k ? low + golden * (high - low) : high - golden * (high - low);
        TSR_TRY(compute_cc(job, models, m, x[k], &cc[k], err));
    }
    *out = 0.5 * (low + high);
    if (*out < 0.09 || *out > 0.89)
        tsr_warn(job->log,
                 "the best sigma/R is at the end of its range, %.3f: is the "
                 "resolution right?",
                 *out);
    return TSR_OK;
}

/* ---- what may be wrong with a map ---- */

tsr_status tsr_map_try_images(const tsr_map_job *job, int n_atom,
                              const double (*xyz)[3], const unsigned char *z,
                              int n, const tsr_map_image *image,
                              double mask_ang, tsr_density_sums *sums,
                              tsr_err *err)
{
    const tsr_density_options o = {.mask_ang = mask_ang};
    tsr_systems copies;
    tsr_pool pool = {0};
    tsr_status status =
        tsr_systems_make(&pool, n, (size_t)n * (size_t)n_atom, &copies, err);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        const double *from = image[k].from, *factor = image[k].factor;
        double(*x)[3] = tsr_systems_add(&copies, n_atom, NULL, xyz, z);
        for (int i = 0; i < n_atom; i++)
            for (int c = 0; c < 3; c++)
                x[i][c] = from[c] + factor[c] * (x[i][c] - from[c]);
    }
    TSR_THEN(status, tsr_systems_run(&copies, job->engine, &o, sums, err));
    tsr_pool_clear(&pool);
    return status;
}

static double middle_of(const tsr_map_grid *g, int axis)
{
    return g->origin[axis] + 0.5 * (g->n[axis] - 1) * g->step[axis];
}

/* Tests the hand of the map: a model mirrored about the centre of the box
 * agrees better than the model where the map has the wrong hand and its box was
 * not moved. */
static tsr_status check_hand(const tsr_map_job *job, const model *m, double cc,
                             const char *label, tsr_err *err)
{
    tsr_map_image mirrors[3];
    tsr_density_sums sums[3];
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < 3; c++) {
            mirrors[k].from[c] = middle_of(&job->map->grid, c);
            mirrors[k].factor[c] = c == k ? -1.0 : 1.0;
        }
    TSR_TRY(tsr_map_try_images(job, m->n_atom, m->xyz, m->z, 3, mirrors, 0.0,
                               sums, err));
    for (int c = 0; c < 3; c++) {
        const double mirrored = tsr_map_cc(&sums[c].box);
        if (mirrored > cc + 0.1)
            tsr_warn(job->log,
                     "%s: mirrored along %c about the centre of the box it has "
                     "a correlation of %.3f, not %.3f: the map has the wrong "
                     "hand, or its sections were read in reverse order",
                     label, "xyz"[c], mirrored, cc);
    }
    return TSR_OK;
}

/* Tests the voxel size. A wrong size stretches the map about an unknown point:
 * the first voxel, the origin, the centre of the box, or, for a docked model,
 * the centre of the model. */
enum { N_FIXED = 4, MOST_PER_CENT = 10, PER_CENT = 2 };

static void fixed_points(const tsr_map_grid *g, const model *m,
                         double out[N_FIXED][3])
{
    memset(out, 0, N_FIXED * sizeof *out);
    for (int c = 0; c < 3; c++) {
        out[0][c] = g->origin[c];
        out[2][c] = middle_of(g, c);
        for (int i = 0; i < m->n_atom; i++)
            out[3][c] += m->xyz[i][c] / m->n_atom;
    }
}

/* Finds the best correlation of the model scaled about a point. */
static tsr_status try_scales(const tsr_map_job *job, const model *m,
                             const double fixed[3], double *best_cc,
                             double *best_scale, tsr_err *err)
{
    tsr_map_image scaled[TSR_MOST_IMAGES];
    tsr_density_sums sums[TSR_MOST_IMAGES];
    int n = 0;
    for (int p = -MOST_PER_CENT; p <= MOST_PER_CENT; p += PER_CENT) {
        for (int c = 0; c < 3 && p != 0; c++) {
            scaled[n].from[c] = fixed[c];
            scaled[n].factor[c] = 1.0 + 0.01 * p;
        }
        n += p != 0;
    }
    TSR_TRY(tsr_map_try_images(job, m->n_atom, m->xyz, m->z, n, scaled, 0.0,
                               sums, err));
    for (int k = 0; k < n; k++)
        if (tsr_map_cc(&sums[k].box) > *best_cc) {
            *best_cc = tsr_map_cc(&sums[k].box);
            *best_scale = scaled[k].factor[0];
        }
    return TSR_OK;
}

/* Only for a model that does not fit well. The right voxel size makes up for
 * most of the difference of the correlation to 1; a wrong one for a few per
 * cent. */
static tsr_status check_voxels(const tsr_map_job *job, const model *m,
                               double cc, const char *label, tsr_err *err)
{
    double fixed[N_FIXED][3], best = cc, scale = 1.0;
    if (!(cc < 0.9))
        return TSR_OK;
    fixed_points(&job->map->grid, m, fixed);
    for (int f = 0; f < N_FIXED; f++)
        TSR_TRY(try_scales(job, m, fixed[f], &best, &scale, err));
    if (1.0 - best < 0.7 * (1.0 - cc))
        tsr_warn(job->log,
                 "%s: the map fits best with voxels of %.4g Angstrom instead "
                 "of %.4g, with a correlation of %.3f instead of %.3f: is the "
                 "voxel size (CELLA over MX) right?",
                 label, job->map->grid.step[0] / scale, job->map->grid.step[0],
                 best, cc);
    return TSR_OK;
}

/* ---- one model ---- */

static tsr_status threshold_of(const tsr_map_job *job, const model *m,
                               double *out, tsr_err *err)
{
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    *out = job->threshold;
    if (!job->is_in_sd)
        return TSR_OK;
    TSR_TRY(compute_sums(job, m, &o, &sums, err));
    *out = sums.box.s / sums.box.n + job->threshold * tsr_map_sd_s(&sums.box);
    return TSR_OK;
}

static tsr_status compare(const compared_file *f, worker *w, int k,
                          const model *m, tsr_pool *pool, tsr_err *err)
{
    const comparison *c = f->all;
    const tsr_map_job *job = &w->job;
    result *r = result_of(f, k);
    *r = (result){.n_atom = m->n_atom, .sigma_over_r = job->sigma_over_r};
    tsr_map_models_label(&f->models, k, r->label, sizeof r->label);
    if (!(job->sigma_over_r > 0.0))
        TSR_TRY(best_sigma(job, &f->models, m, &r->sigma_over_r, err));
    TSR_TRY(tsr_map_job_blur(job, &f->models, r->sigma_over_r, err));
    if (job->has_threshold)
        TSR_TRY(threshold_of(job, m, &r->threshold, err));
    const tsr_density_options o = {
        .mask_ang = job->mask_ang,
        .threshold = job->has_threshold ? &r->threshold : NULL,
        .density = w->density};
    TSR_TRY(compute_sums(job, m, &o, &r->sums, err));
    if (k == 0) {
        const double cc = tsr_map_cc(&r->sums.box);
        TSR_TRY(check_hand(job, m, cc, r->label, err));
        TSR_TRY(check_voxels(job, m, cc, r->label, err));
    }
    TSR_TRY(tsr_fsc_make(job->map, w->density, pool, &r->fsc, err));
    memcpy(r->shell, r->fsc.fsc, (size_t)c->shells.n * sizeof *r->shell);
    return TSR_OK;
}

/* Compares model k of a file. */
static tsr_status compare_model(void *context, int k, int thread, tsr_err *err)
{
    const compared_file *f = context;
    const tsr_map_job *job = f->all->job;
    const size_t n_voxel = tsr_map_n_voxel(&job->map->grid);
    worker *w = &f->all->worker[f->thread + thread];
    tsr_pool pool = {0};
    char label[256];
    model m = {.z = f->models.z, .n_atom = f->models.atoms->n_atom};
    double(*xyz)[3];
    tsr_pool_array(&pool, xyz, m.n_atom);
    if (w->density == NULL)
        w->density = malloc(n_voxel * sizeof *w->density);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_allocated(w->density, err));
    TSR_THEN(status, start_worker(job, w, err));
    TSR_THEN(status, tsr_map_models_frame(&f->models, k, xyz, err));
    m.xyz = (const double(*)[3])xyz;
    TSR_THEN(status, compare(f, w, k, &m, &pool, err));
    tsr_map_models_label(&f->models, k, label, sizeof label);
    status = tsr_wrap(err, status, "%s", label);
    tsr_pool_clear(&pool);
    return status;
}

/* Compares the models of file number i. */
static tsr_status compare_file(void *context, int i, int thread, tsr_err *err)
{
    comparison *c = context;
    tsr_map_job *job = c->job;
    compared_file *f = &c->file[i];
    *f = (compared_file){.all = c, .thread = thread};
    tsr_status status =
        tsr_map_models_open(job->model[i], job->trajectory, job->most_frames,
                            job->log, &f->models, err);
    TSR_THEN(status, tsr_map_job_check(job, &f->models, 0.5, err));
    if (status == TSR_OK) {
        f->n = f->models.n;
        f->result = calloc((size_t)f->n, c->n_byte);
        status = tsr_allocated(f->result, err);
    }
    if (job->n_model > 1) /* a parallel loop over files has begun */
        TSR_THEN(status, tsr_parallel_try(f->n, 1, compare_model, f, err));
    else
        TSR_THEN(status, tsr_parallel_share(f->n, job->n_thread, compare_model,
                                            f, c->n_byte, f->result, err));
    tsr_map_models_clear(&f->models);
    return status;
}

/* Threads share the files, or threads and ranks the models of a single file. */
static tsr_status compare_all(comparison *c, tsr_err *err)
{
    tsr_map_job *job = c->job;
    c->shells = tsr_fourier_shells(&job->map->grid);
    c->n_byte = sizeof(result) + (size_t)c->shells.n * sizeof(double);
    tsr_pool_array(&job->pool, c->file, job->n_model);
    tsr_pool_array(&job->pool, c->s_inv_ang, c->shells.n);
    TSR_TRY(tsr_pool_check(&job->pool, err));
    for (int k = 0; k < c->shells.n; k++)
        c->s_inv_ang[k] = (k + 1) * c->shells.width_inv_ang;
    TSR_TRY(make_workers(job, &c->worker, err));
    return tsr_parallel_try(job->n_model, job->n_thread, compare_file, c, err);
}

/* ---- table and messages ---- */

/* Formats a resolution: "4.13", or "< 2.00" where a shell correlation never
 * falls below the limit. */
static const char *fall_text(double s_inv_ang, int is_at_limit, char text[16])
{
    snprintf(text, 16, "%s%.2f", is_at_limit ? "< " : "", 1.0 / s_inv_ang);
    return text;
}

static void print_row(const tsr_map_job *job, const result *r, int width)
{
    char half[16], low[16];
    fprintf(job->out, "%-*s %7.4f %7.4f ", width, r->label,
            tsr_map_cc(&r->sums.box), tsr_map_cc(&r->sums.mask));
    if (job->has_threshold)
        fprintf(job->out, "%8.4f ", tsr_map_cc(&r->sums.above));
    fprintf(job->out, "%8.4f %8.3f %9s %9s\n",
            tsr_map_cc_uncentred(&r->sums.box), r->sigma_over_r,
            fall_text(r->fsc.half_inv_ang, r->fsc.half_is_at_limit, half),
            fall_text(r->fsc.low_inv_ang, r->fsc.low_is_at_limit, low));
}

static void print_table(const comparison *c)
{
    const tsr_map_job *job = c->job;
    int width = 5;
    for (int i = 0; i < job->n_model; i++)
        for (int k = 0; k < c->file[i].n; k++) {
            const int own = tsr_text_width(result_of(&c->file[i], k)->label);
            width = own > width ? own : width;
        }
    fprintf(job->out,
            "map %s, R %g A; atoms: %s; %.0f voxels; correlations are "
            "Pearson's\n%-*s %7s %7s ",
            job->map->path, job->resolution_ang, tsr_blur_name(job->kind),
            job->engine->whole.n, width, "model", "cc_box", "cc_mask");
    if (job->has_threshold)
        fprintf(job->out, "%8s ", "cc_above");
    fprintf(job->out, "%8s %8s %9s %9s\n", "uncentr.", "sigma/R", "FSC .5, A",
            "FSC .143");
    for (int i = 0; i < job->n_model; i++)
        for (int k = 0; k < c->file[i].n; k++)
            print_row(job, result_of(&c->file[i], k), width);
    fprintf(job->out,
            "cc_box: all voxels; cc_mask: voxels within %g A of an atom%s\n",
            job->mask_ang,
            job->has_threshold ? "; cc_above: voxels where the model's density "
                                 "is above the threshold"
                               : "");
}

static void write_result(tsr_json *j, const comparison *c, const result *r)
{
    const tsr_map_job *job = c->job;
    double slope, offset;
    tsr_map_line(&r->sums.box, &slope, &offset);
    tsr_json_object(j, NULL);
    tsr_json_members(
        j,
        "model %s n_atoms %d cc_box %g cc_mask %g cc_box_uncentred %g "
        "cc_mask_uncentred %g n_voxels %ld n_voxels_mask %ld",
        r->label, r->n_atom, tsr_map_cc(&r->sums.box),
        tsr_map_cc(&r->sums.mask), tsr_map_cc_uncentred(&r->sums.box),
        tsr_map_cc_uncentred(&r->sums.mask), (long)r->sums.box.n,
        (long)r->sums.mask.n);
    if (job->has_threshold)
        tsr_json_members(
            j,
            "cc_above %g cc_above_uncentred %g n_voxels_above %ld threshold %g",
            tsr_map_cc(&r->sums.above), tsr_map_cc_uncentred(&r->sums.above),
            (long)r->sums.above.n, r->threshold);
    tsr_json_members(j,
                     "sigma_over_r %g slope %g offset %g fsc_half_inv_ang %g "
                     "fsc_half_is_at_limit %i fsc_143_inv_ang %g "
                     "fsc_143_is_at_limit %i",
                     r->sigma_over_r, slope, offset, r->fsc.half_inv_ang,
                     r->fsc.half_is_at_limit, r->fsc.low_inv_ang,
                     r->fsc.low_is_at_limit);
    tsr_json_numbers(j, "s_inv_ang", c->shells.n, c->s_inv_ang);
    tsr_json_numbers(j, "fsc", c->shells.n, r->shell);
    tsr_json_close(j);
}

static void print_json(const comparison *c)
{
    const tsr_map_job *job = c->job;
    tsr_json j = {.out = job->out, .digits = 8};
    tsr_json_object(&j, NULL);
    tsr_json_members(
        &j, "map %s resolution_ang %g kernel %s mask_radius_ang %g engine %s",
        job->map->path, job->resolution_ang, tsr_blur_name(job->kind),
        job->mask_ang, job->engine->describe);
    tsr_json_array(&j, "models");
    for (int i = 0; i < job->n_model; i++)
        for (int k = 0; k < c->file[i].n; k++)
            write_result(&j, c, result_of(&c->file[i], k));
    tsr_json_close(&j);
    tsr_json_close(&j);
}

/* ---- maps of one model ---- */

static tsr_status write_difference(const comparison *c, const char *path,
                                   tsr_err *err)
{
    const tsr_map *from = c->job->map;
    const size_t n = tsr_map_n_voxel(&from->grid);
    tsr_map *map;
    double slope = 0.0, offset = 0.0;
    TSR_TRY(tsr_map_new(&from->grid, &c->job->pool, &map, err));
    tsr_map_line(&result_of(&c->file[0], 0)->sums.box, &slope, &offset);
    for (size_t k = 0; k < n; k++)
        map->value[k] =
            (float)((double)from->value[k] -
                    slope * (double)c->worker[0].density[k] - offset);
    return tsr_map_write(map, path, "map minus model", err);
}

static tsr_status check_maps(const tsr_map_job *job, const char *difference,
                             tsr_err *err)
{
    if (job->n_model > 1 && difference != NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "--difference needs exactly one model");
    if (difference != NULL)
        TSR_TRY(tsr_map_job_target(job, difference, "", TSR_MAP_MARK, err));
    return TSR_OK;
}

static tsr_status correlate_all(comparison *c, tsr_err *err)
{
    const tsr_map_job *job = c->job;
    const char *difference = job->words->difference;
    TSR_TRY(check_maps(job, difference, err));
    TSR_TRY(compare_all(c, err));
    if (difference != NULL && c->file[0].n > 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "--difference needs exactly one model; '%s' has %d",
                        job->model[0], c->file[0].n);
    if (difference != NULL)
        TSR_TRY(write_difference(c, difference, err));
    if (job->words->json)
        print_json(c);
    else
        print_table(c);
    return TSR_OK;
}

tsr_status tsr_map_correlate(tsr_map_job *job, tsr_err *err)
{
    comparison c = {.job = job};
    const tsr_status status = correlate_all(&c, err);
    for (int i = 0; c.file != NULL && i < job->n_model; i++)
        free(c.file[i].result);
    free_workers(job, c.worker);
    return status;
}

/* ---- map timeline ----
 *
 * tessera map timeline: correlation of every part of a model with the map, for
 * each model or draw (Stone et al. 2014, Faraday Discuss. 169:265).
 *
 * A row is a residue, an element of secondary structure, a chain or a named
 * selection; a column is a model. A value is the correlation of the density of
 * that part alone with the map, near the atoms of the part. */

typedef struct {
    tsr_map_job *job;
    tsr_map_models models;
    tsr_components rows;
    size_t n_atom;  /* atoms of all rows */
    int n_each;     /* models of a chunk */
    worker *worker; /* [n_thread] */
    double *cc; /* [models.n][rows.n] and the end of the last chunk; NaN: not
                   defined */
} timeline;

/* draw; for a trajectory its frame, from 1 */
static const char csv_head[] = "component,model,chain,draw,cc,change\n";

/* ---- the correlations ---- */

/* Atoms of all parts that an engine receives at once: enough to occupy it. */
enum { ATOMS_A_CALL = 1 << 20, MOST_EACH = 16 };

/* Correlates the parts of models `from` to end - 1, one model after the other.
 */
static tsr_status correlate_models(const timeline *t, worker *w, int from,
                                   int end, tsr_pool *pool, tsr_err *err)
{
    const tsr_map_job *job = &w->job;
    const tsr_map_models *m = &t->models;
    const size_t n_row = (size_t)t->rows.n;
    const size_t n_system = n_row * (size_t)(end - from);
    double *threshold, (*xyz)[3];
    tsr_density_sums *sums;
    tsr_systems parts;
    tsr_pool_array(pool, threshold, n_system);
    tsr_pool_array(pool, sums, n_system);
    tsr_pool_array(pool, xyz, m->atoms->n_atom);
    TSR_TRY(tsr_systems_make(pool, (int)n_system,
                             t->n_atom * (size_t)(end - from), &parts, err));
    for (size_t k = 0; k < n_system; k++)
        threshold[k] = job->threshold;
    const tsr_density_options o = {
        .mask_ang = job->has_threshold ? 0.0 : job->mask_ang,
        .threshold = job->has_threshold ? threshold : NULL};
    for (int k = from; k < end; k++) {
        TSR_TRY(tsr_map_models_frame(m, k, xyz, err));
        for (int r = 0; r < t->rows.n; r++)
            tsr_systems_add(&parts, t->rows.component[r].n,
                            t->rows.component[r].atom, (const double(*)[3])xyz,
                            m->z);
    }
    TSR_TRY(tsr_systems_run(&parts, job->engine, &o, sums, err));
    for (size_t k = 0; k < n_system; k++)
        t->cc[(size_t)from * n_row + k] =
            tsr_map_cc(job->has_threshold ? &sums[k].above : &sums[k].mask);
    return TSR_OK;
}

static tsr_status correlate_chunk(void *context, int chunk, int thread,
                                  tsr_err *err)
{
    const timeline *t = context;
    const int from = chunk * t->n_each, end = from + t->n_each;
    tsr_pool pool = {0};
    tsr_status status = start_worker(t->job, &t->worker[thread], err);
    TSR_THEN(status, correlate_models(t, &t->worker[thread], from,
                                      end < t->models.n ? end : t->models.n,
                                      &pool, err));
    tsr_pool_clear(&pool);
    return status;
}

/* Threads and ranks share chunks of models: small chunks, so that all threads
 * finish at about the same time, and so that an engine has room for the parts.
 */
static tsr_status correlate(timeline *t, tsr_err *err)
{
    tsr_map_job *job = t->job;
    const int n = t->models.n;
    const int wanted = n < MOST_EACH * 256 ? n / 256 + 1 : MOST_EACH;
    for (int r = 0; r < t->rows.n; r++)
        t->n_atom += (size_t)t->rows.component[r].n;
    const int room = (int)(ATOMS_A_CALL / (t->n_atom + 1)) + 1;
    t->n_each = room < wanted ? room : wanted;
    const int n_chunk = (n + t->n_each - 1) / t->n_each;
    const size_t n_cell = (size_t)t->n_each * (size_t)t->rows.n;
    tsr_pool_array(&job->pool, t->cc, n_cell * (size_t)n_chunk);
    TSR_TRY(tsr_pool_check(&job->pool, err));
    TSR_TRY(make_workers(job, &t->worker, err));
    return tsr_parallel_share(n_chunk, job->n_thread, correlate_chunk, t,
                              n_cell * sizeof *t->cc, t->cc, err);
}

/* ---- the table ---- */

static double cc_change(const timeline *t, int k, int r)
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
                fprintf(to.out, "%.6f,%.6f\n", cc, cc_change(t, k, r));
        }
    return tsr_file_end(&to, TSR_OK, err);
}

/* Share of the rows, in per cent, whose correlation in the last model is above
 * that in the first. */
static double improved_share(const timeline *t)
{
    int n = 0, risen = 0;
    for (int r = 0; r < t->rows.n; r++) {
        const double d = cc_change(t, t->models.n - 1, r);
        n += isnan(d) ? 0 : 1;
        risen += d > 0.0;
    }
    return n > 0 ? 100.0 * risen / n : 0.0;
}

/* ---- the picture ---- */

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

/* The first row is at the top. Rows have the height of text if there are few,
 * and are thin if there are many. */
static void draw_cells(const timeline *t, tsr_figure *f)
{
    const size_t n_row = (size_t)t->rows.n, n = n_row * (size_t)t->models.n;
    const double height = fmax(2.0, fmin(18.0, 700.0 / t->rows.n));
    const char **name;
    double *cc;
    tsr_pool_array(&f->pool, name, n_row);
    tsr_pool_array(&f->pool, cc, n);
    for (size_t r = 0; !f->pool.failed && r < n_row; r++)
        name[n_row - 1 - r] = t->rows.component[r].name;
    for (size_t k = 0; !f->pool.failed && k < n; k++)
        cc[k / n_row * n_row + n_row - 1 - k % n_row] = t->cc[k];
    if (f->pool.failed)
        return;
    tsr_panel *panel = tsr_figure_panel(f, "", 0, (int)(height * t->rows.n));
    panel->z_title = "correlation";
    range_of(t, &panel->z0, &panel->z1);
    tsr_figure_y_names(f, t->rows.n, name);
    tsr_figure_cells(f, t->models.n, t->rows.n, 0.5, 1.0, 0.0, 1.0, cc);
}

static tsr_status write_svg(const timeline *t, const char *path, tsr_err *err)
{
    char title[256];
    snprintf(title, sizeof title, "Correlation of %s with %s, part by part",
             tsr_text_file_name(t->models.path),
             tsr_text_file_name(t->job->map->path));
    tsr_figure f = tsr_figure_new("timeline", title,
                                  t->models.chain != NULL
                                      ? "conformation, chain after chain"
                                  : t->models.draw != NULL ? "frame"
                                                           : "model",
                                  640);
    f.subtitle = tsr_pool_format(
        &f.pool,
        "R %g \xc3\x85, atoms: %s, \xcf\x83/R %.3g; from the first to the "
        "last model %.0f %% of the rows rose",
        t->job->resolution_ang, tsr_blur_name(t->job->kind),
        t->job->sigma_over_r, improved_share(t));
    f.left = 130;
    f.is_count = 1;
    draw_cells(t, &f);
    tsr_status status = tsr_figure_finish(&f, err);
    TSR_THEN(status, tsr_figure_write_svg(&f, path, err));
    tsr_figure_clear(&f);
    return status;
}

/* ---- the verb ---- */

static tsr_status make_rows(timeline *t, tsr_err *err)
{
    const tsr_map_words *o = t->job->words;
    if (o->select.n > 0)
        return tsr_components_select(o->select.n,
                                     (const char *const *)o->select.item,
                                     t->models.atoms, &t->rows, err);
    return tsr_components_make((tsr_component_kind)o->by, t->models.atoms,
                               tsr_map_models_first(&t->models), &t->rows, err);
}

/* NAME with ".csv" or ".svg" in place of its ending. */
static void replace_ending(const char *name, const char *ending, char *out,
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
    TSR_TRY(tsr_map_models_open(job->model[0], job->trajectory,
                                job->most_frames, job->log, &t->models, err));
    TSR_TRY(tsr_map_job_check(job, &t->models, 0.5, err));
    TSR_TRY(make_rows(t, err));
    TSR_TRY(tsr_map_job_blur(job, &t->models, job->sigma_over_r, err));
    TSR_TRY(correlate(t, err));
    TSR_TRY(write_csv(t, csv, err));
    TSR_TRY(write_svg(t, svg, err));
    fprintf(job->out, "%d rows, %d model%s: %s, %s", t->rows.n, t->models.n,
            t->models.n == 1 ? "" : "s", csv, svg);
    if (t->models.n > 1)
        fprintf(job->out,
                "; from the first to the last model %.0f %% of the rows rose",
                improved_share(t));
    fputs("\n", job->out);
    return TSR_OK;
}

tsr_status tsr_map_timeline(tsr_map_job *job, tsr_err *err)
{
    const char *output = job->words->output;
    char csv[1024], svg[1024];
    timeline t = {.job = job};
    if (job->n_model != 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' needs one file of models, or one run");
    if (output == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' needs a file name for its table and "
                        "picture: --output");
    if (!(job->sigma_over_r > 0.0) || job->is_in_sd)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map timeline' needs a number for --sigma-over-r and "
                        "--threshold: one for all rows");
    replace_ending(output, ".csv", csv, sizeof csv);
    replace_ending(output, ".svg", svg, sizeof svg);
    TSR_TRY(tsr_map_job_target(job, csv, csv_head, "", err));
    TSR_TRY(tsr_map_job_target(job, svg, "", TSR_SVG_MARK, err));
    tsr_status status = make(&t, csv, svg, err);
    free_workers(job, t.worker);
    tsr_pool_clear(&t.rows.pool);
    tsr_map_models_clear(&t.models);
    return status;
}
