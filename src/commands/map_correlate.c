/* tessera map cc: how well models agree with a map. */
#include "commands/map_job.h"
#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char label[256];
    int n_atom;
    double sigma_over_r;
    tsr_density_sums sums;
    double threshold;
    tsr_fsc fsc;
} result;

typedef struct {
    tsr_map_job *job;
    int n, room;
    result *result; /* [n] */
    float *density; /* [n_voxel] of the last model */
} comparison;

/* One model as a batch. */
typedef struct {
    int first[2];
    unsigned char *z;
    const double (*xyz)[3];
    int n_atom;
} model;

static tsr_status sums_of(const tsr_map_job *job, const model *m,
                          const tsr_density_options *o, tsr_density_sums *out,
                          tsr_err *err)
{
    const int first[2] = {0, m->n_atom};
    const tsr_density_batch batch = {
        .n_system = 1, .first = first, .xyz = m->xyz, .z = m->z};
    return tsr_density_run(job->engine, &batch, o, out, err);
}

/* ---- the width of the blur ---- */

static tsr_status cc_at(const tsr_map_job *job, const tsr_map_models *models,
                        const model *m, double sigma_over_r, double *cc,
                        tsr_err *err)
{
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    TSR_TRY(tsr_map_job_blur(job, models, sigma_over_r, err));
    TSR_TRY(sums_of(job, m, &o, &sums, err));
    *cc = tsr_map_cc(&sums.box);
    if (isnan(*cc))
        *cc = -1.0;
    return TSR_OK;
}

/* The correlation has one maximum over the width: golden sections, to 0.001. */
static tsr_status best_sigma(const tsr_map_job *job,
                             const tsr_map_models *models, const model *m,
                             double *out, tsr_err *err)
{
    const double golden = 0.6180339887498949;
    double low = 0.08, high = 0.9;
    double x[2] = {high - golden * (high - low), low + golden * (high - low)};
    double cc[2];
    for (int k = 0; k < 2; k++)
        TSR_TRY(cc_at(job, models, m, x[k], &cc[k], err));
    while (high - low > 0.001) {
        const int k = cc[0] < cc[1]; /* which side goes on */
        if (k)
            low = x[0];
        else
            high = x[1];
        x[!k] = x[k];
        cc[!k] = cc[k];
        x[k] = k ? low + golden * (high - low) : high - golden * (high - low);
        TSR_TRY(cc_at(job, models, m, x[k], &cc[k], err));
    }
    *out = 0.5 * (low + high);
    if (*out < 0.09 || *out > 0.89)
        tsr_warn(job->log,
                 "the best sigma/R is at the end of its range, %.3f: "
                 "is the resolution right?",
                 *out);
    return TSR_OK;
}

/* ---- what may be wrong with a map ---- */

/* The model mirrored in the middle of the box: a map of the wrong hand agrees
 * with one of them better than with the model, in a box that was not moved. */
static tsr_status check_hand(const tsr_map_job *job, const model *m, double cc,
                             const char *label, tsr_err *err)
{
    const tsr_map_grid *g = &job->map->grid;
    const size_t n = (size_t)m->n_atom;
    int first[4];
    tsr_density_sums sums[3];
    double(*xyz)[3] = calloc(3 * n + 1, sizeof *xyz);
    unsigned char *z = calloc(3 * n + 1, 1);
    tsr_status status = TSR_OK;
    if (xyz == NULL || z == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a mirror image");
    for (size_t c = 0; c < 3 && status == TSR_OK; c++) {
        first[c] = (int)(c * n);
        memcpy(xyz + c * n, m->xyz, n * sizeof *xyz);
        memcpy(z + c * n, m->z, n);
        for (size_t i = 0; i < n; i++)
            xyz[c * n + i][c] =
                2.0 * g->origin[c] + (g->n[c] - 1) * g->step[c] - m->xyz[i][c];
    }
    first[3] = (int)(3 * n);
    const tsr_density_batch batch = {
        .n_system = 3, .first = first, .xyz = (const double(*)[3])xyz, .z = z};
    const tsr_density_options o = {0};
    if (status == TSR_OK)
        status = tsr_density_run(job->engine, &batch, &o, sums, err);
    for (int c = 0; c < 3 && status == TSR_OK; c++) {
        const double mirrored = tsr_map_cc(&sums[c].box);
        if (mirrored > cc + 0.1)
            tsr_warn(job->log,
                     "%s: mirrored along %c in the middle of the box it has a "
                     "correlation of %.3f, not %.3f: the map has the wrong "
                     "hand, or its sections were read in the wrong order",
                     label, "xyz"[c], mirrored, cc);
    }
    free(xyz);
    free(z);
    return status;
}

/* Voxels of another size than the header's stretch the map about a point that
 * is not known: the first voxel, zero, the middle of the box, or, where the
 * model was brought to its place, the model's own. */
enum { N_FIXED = 4, MOST_PER_CENT = 10, PER_CENT = 2, N_SCALE = 10 };

static void fixed_points(const tsr_map_grid *g, const model *m,
                         double out[N_FIXED][3])
{
    memset(out, 0, N_FIXED * sizeof *out);
    for (int c = 0; c < 3; c++) {
        out[0][c] = g->origin[c];
        out[2][c] = g->origin[c] + 0.5 * (g->n[c] - 1) * g->step[c];
        for (int i = 0; i < m->n_atom; i++)
            out[3][c] += m->xyz[i][c] / m->n_atom;
    }
}

/* The best correlation of the model grown or shrunk about a point. */
static tsr_status try_scales(const tsr_map_job *job, const model *m,
                             const double fixed[3], double (*xyz)[3],
                             const unsigned char *z, double *best_cc,
                             double *best_scale, tsr_err *err)
{
    const size_t n = (size_t)m->n_atom;
    double scale[N_SCALE];
    int first[N_SCALE + 1] = {0}, k = 0;
    tsr_density_sums sums[N_SCALE];
    for (int p = -MOST_PER_CENT; p <= MOST_PER_CENT; p += PER_CENT) {
        if (p == 0)
            continue;
        scale[k] = 1.0 + 0.01 * p;
        for (size_t i = 0; i < n; i++)
            for (int c = 0; c < 3; c++)
                xyz[(size_t)k * n + i][c] =
                    fixed[c] + scale[k] * (m->xyz[i][c] - fixed[c]);
        k++;
        first[k] = first[k - 1] + m->n_atom;
    }
    const tsr_density_batch batch = {.n_system = N_SCALE,
                                     .first = first,
                                     .xyz = (const double(*)[3])xyz,
                                     .z = z};
    const tsr_density_options o = {0};
    TSR_TRY(tsr_density_run(job->engine, &batch, &o, sums, err));
    for (k = 0; k < N_SCALE; k++)
        if (tsr_map_cc(&sums[k].box) > *best_cc) {
            *best_cc = tsr_map_cc(&sums[k].box);
            *best_scale = scale[k];
        }
    return TSR_OK;
}

/* Asked only of a model that does not fit well. A size that is right makes up
 * for most of what is missing to 1; one that is wrong, for a few per cent. */
static tsr_status check_voxels(const tsr_map_job *job, const model *m,
                               double cc, const char *label, tsr_err *err)
{
    const size_t n = (size_t)m->n_atom;
    double fixed[N_FIXED][3], best = cc, scale = 1.0;
    if (!(cc < 0.9))
        return TSR_OK;
    double(*xyz)[3] = calloc(n * N_SCALE, sizeof *xyz);
    unsigned char *z = calloc(n * N_SCALE, 1);
    tsr_status status = TSR_OK;
    if (xyz == NULL || z == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for scaled models");
    for (size_t k = 0; k < N_SCALE && status == TSR_OK; k++)
        memcpy(z + k * n, m->z, n);
    fixed_points(&job->map->grid, m, fixed);
    for (int f = 0; f < N_FIXED && status == TSR_OK; f++)
        status = try_scales(job, m, fixed[f], xyz, z, &best, &scale, err);
    if (status == TSR_OK && 1.0 - best < 0.7 * (1.0 - cc))
        tsr_warn(job->log,
                 "%s: the map fits best with voxels of %.4g Angstrom instead "
                 "of %.4g, with a correlation of %.3f instead of %.3f: is "
                 "their size (CELLA over MX) right?",
                 label, job->map->grid.step[0] / scale, job->map->grid.step[0],
                 best, cc);
    free(xyz);
    free(z);
    return status;
}

/* ---- one model ---- */

static tsr_status threshold_of(const tsr_map_job *job, const model *m,
                               double *out, tsr_err *err)
{
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    double mean, sd;
    *out = job->threshold;
    if (!job->is_in_sd)
        return TSR_OK;
    TSR_TRY(sums_of(job, m, &o, &sums, err));
    tsr_map_spread_s(&sums.box, &mean, &sd);
    *out = mean + job->threshold * sd;
    return TSR_OK;
}

static tsr_status compare(comparison *c, const tsr_map_models *models, int k,
                          const model *m, tsr_map_sums *tile, tsr_err *err)
{
    const tsr_map_job *job = c->job;
    result *r = &c->result[c->n];
    *r = (result){.n_atom = m->n_atom, .sigma_over_r = job->sigma_over_r};
    tsr_map_models_label(models, k, r->label, sizeof r->label);
    if (!(job->sigma_over_r > 0.0))
        TSR_TRY(best_sigma(job, models, m, &r->sigma_over_r, err));
    TSR_TRY(tsr_map_job_blur(job, models, r->sigma_over_r, err));
    if (job->has_threshold)
        TSR_TRY(threshold_of(job, m, &r->threshold, err));
    const tsr_density_options o = {
        .mask_ang = job->mask_ang,
        .threshold = job->has_threshold ? &r->threshold : NULL,
        .density = c->density,
        .tile = tile};
    TSR_TRY(sums_of(job, m, &o, &r->sums, err));
    if (k == 0) {
        const double cc = tsr_map_cc(&r->sums.box);
        TSR_TRY(check_hand(job, m, cc, r->label, err));
        TSR_TRY(check_voxels(job, m, cc, r->label, err));
    }
    TSR_TRY(tsr_fsc_make(job->map, c->density, &r->fsc, err));
    c->n++;
    return TSR_OK;
}

static tsr_status compare_all(comparison *c, const char *path,
                              tsr_map_sums *tile, tsr_err *err)
{
    tsr_map_models models;
    model m = {0};
    int *element = NULL;
    tsr_status status =
        tsr_map_models_read(path, c->job->trajectory, c->job->most_frames,
                            c->job->log, &models, err);
    if (status == TSR_OK)
        status = tsr_map_job_check(c->job, &models, 0.5, err);
    if (status == TSR_OK)
        status = tsr_map_models_elements(&models, &element, &m.z, err);
    if (status == TSR_OK) {
        const size_t n = (size_t)c->n + (size_t)models.n;
        result *more = realloc(c->result, (n + 1) * sizeof *more);
        if (more == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory for results");
        else
            c->result = more;
    }
    for (int k = 0; status == TSR_OK && k < models.n; k++) {
        m.xyz = tsr_map_models_xyz(&models, k);
        m.n_atom = models.atoms->n_atom;
        status = compare(c, &models, k, &m, tile, err);
    }
    free(element);
    free(m.z);
    tsr_map_models_clear(&models);
    return status;
}

/* ---- what is told ---- */

const char *tsr_map_fall_text(double s_inv_ang, int is_at_limit, char text[16])
{
    snprintf(text, 16, "%s%.2f", is_at_limit ? "< " : "", 1.0 / s_inv_ang);
    return text;
}

static void print_table(const comparison *c)
{
    const tsr_map_job *job = c->job;
    int width = 5;
    for (int i = 0; i < c->n; i++) {
        const int own = tsr_text_width(c->result[i].label);
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
    for (int i = 0; i < c->n; i++) {
        const result *r = &c->result[i];
        char half[16], low[16];
        fprintf(job->out, "%-*s %7.4f %7.4f ", width, r->label,
                tsr_map_cc(&r->sums.box), tsr_map_cc(&r->sums.mask));
        if (job->has_threshold)
            fprintf(job->out, "%8.4f ", tsr_map_cc(&r->sums.above));
        fprintf(
            job->out, "%8.4f %8.3f %9s %9s\n",
            tsr_map_cc_uncentred(&r->sums.box), r->sigma_over_r,
            tsr_map_fall_text(r->fsc.half_inv_ang, r->fsc.half_is_at_limit,
                              half),
            tsr_map_fall_text(r->fsc.low_inv_ang, r->fsc.low_is_at_limit, low));
    }
    fprintf(job->out,
            "cc_box: all voxels; cc_mask: those within %g A of an atom%s\n",
            job->mask_ang,
            job->has_threshold
                ? "; cc_above: those where the model's density is above the "
                  "threshold"
                : "");
}

static void put_result(tsr_json *j, const tsr_map_job *job, const result *r)
{
    double slope, offset;
    tsr_map_line(&r->sums.box, &slope, &offset);
    tsr_json_object(j, NULL);
    tsr_json_text(j, "model", r->label);
    tsr_json_integer(j, "n_atoms", r->n_atom);
    tsr_json_number(j, "cc_box", tsr_map_cc(&r->sums.box));
    tsr_json_number(j, "cc_mask", tsr_map_cc(&r->sums.mask));
    tsr_json_number(j, "cc_box_uncentred", tsr_map_cc_uncentred(&r->sums.box));
    tsr_json_number(j, "cc_mask_uncentred",
                    tsr_map_cc_uncentred(&r->sums.mask));
    tsr_json_integer(j, "n_voxels", (long long)r->sums.box.n);
    tsr_json_integer(j, "n_voxels_mask", (long long)r->sums.mask.n);
    if (job->has_threshold) {
        tsr_json_number(j, "cc_above", tsr_map_cc(&r->sums.above));
        tsr_json_number(j, "cc_above_uncentred",
                        tsr_map_cc_uncentred(&r->sums.above));
        tsr_json_integer(j, "n_voxels_above", (long long)r->sums.above.n);
        tsr_json_number(j, "threshold", r->threshold);
    }
    tsr_json_number(j, "sigma_over_r", r->sigma_over_r);
    tsr_json_number(j, "slope", slope);
    tsr_json_number(j, "offset", offset);
    tsr_json_number(j, "fsc_half_inv_ang", r->fsc.half_inv_ang);
    tsr_json_truth(j, "fsc_half_is_at_limit", r->fsc.half_is_at_limit);
    tsr_json_number(j, "fsc_143_inv_ang", r->fsc.low_inv_ang);
    tsr_json_truth(j, "fsc_143_is_at_limit", r->fsc.low_is_at_limit);
    tsr_json_numbers(j, "s_inv_ang", r->fsc.n, r->fsc.s_inv_ang);
    tsr_json_numbers(j, "fsc", r->fsc.n, r->fsc.fsc);
    tsr_json_close(j);
}

static void print_json(const comparison *c)
{
    const tsr_map_job *job = c->job;
    tsr_json j = {.out = job->out, .digits = 8};
    tsr_json_object(&j, NULL);
    tsr_json_text(&j, "map", job->map->path);
    tsr_json_number(&j, "resolution_ang", job->resolution_ang);
    tsr_json_text(&j, "kernel", tsr_blur_name(job->kind));
    tsr_json_number(&j, "mask_radius_ang", job->mask_ang);
    tsr_json_text(&j, "engine", job->engine->describe);
    tsr_json_array(&j, "models");
    for (int i = 0; i < c->n; i++)
        put_result(&j, job, &c->result[i]);
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
    TSR_TRY(tsr_map_new(&from->grid, &map, err));
    tsr_map_line(&c->result[0].sums.box, &slope, &offset);
    for (size_t k = 0; k < n; k++)
        map->value[k] = (float)((double)from->value[k] -
                                slope * (double)c->density[k] - offset);
    tsr_status status = tsr_map_write(map, path, "map less model", err);
    tsr_map_free(map);
    return status;
}

static tsr_status write_spatial(const comparison *c, const tsr_map_sums *tile,
                                const char *path, tsr_err *err)
{
    tsr_map *map;
    TSR_TRY(tsr_map_tile_cc(c->job->map, tile, &map, err));
    tsr_status status =
        tsr_map_write(map, path, "correlation in tiles of 8^3 voxels", err);
    tsr_map_free(map);
    return status;
}

static tsr_status check_maps(const tsr_map_job *job, const char *difference,
                             const char *spatial, tsr_err *err)
{
    if (job->n_model > 1 && (difference != NULL || spatial != NULL))
        return tsr_fail(err, TSR_E_USAGE,
                        "--difference and --spatial are maps of one model");
    if (difference != NULL)
        TSR_TRY(tsr_map_job_target(job, difference, "", TSR_MAP_MARK, err));
    if (spatial != NULL)
        TSR_TRY(tsr_map_job_target(job, spatial, "", TSR_MAP_MARK, err));
    return TSR_OK;
}

static void clear(comparison *c)
{
    for (int i = 0; i < c->n; i++)
        tsr_fsc_clear(&c->result[i].fsc);
    free(c->result);
    free(c->density);
}

tsr_status tsr_map_correlate(tsr_map_job *job, tsr_err *err)
{
    const char *difference = tsr_args_value(job->args, "difference");
    const char *spatial = tsr_args_value(job->args, "spatial");
    const tsr_map_grid *g = &job->map->grid;
    comparison c = {.job = job};
    tsr_map_sums *tile = NULL;
    TSR_TRY(check_maps(job, difference, spatial, err));
    c.density = calloc(tsr_map_n_voxel(g), sizeof *c.density);
    if (spatial != NULL)
        tile = calloc(tsr_map_n_tile(g), sizeof *tile);
    tsr_status status = TSR_OK;
    if (c.density == NULL || (spatial != NULL && tile == NULL))
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a density");
    for (int i = 0; i < job->n_model && status == TSR_OK; i++)
        status = compare_all(&c, job->model[i], tile, err);
    if (status == TSR_OK && c.n > 1 && (difference != NULL || spatial != NULL))
        status = tsr_fail(err, TSR_E_USAGE,
                          "--difference and --spatial are maps of one model; "
                          "'%s' has %d",
                          job->model[0], c.n);
    if (status == TSR_OK && difference != NULL)
        status = write_difference(&c, difference, err);
    if (status == TSR_OK && spatial != NULL)
        status = write_spatial(&c, tile, spatial, err);
    if (status == TSR_OK && tsr_args_count(job->args, "json") > 0)
        print_json(&c);
    else if (status == TSR_OK)
        print_table(&c);
    free(tile);
    clear(&c);
    return status;
}
