/* tessera map simulate, mask and fsc: create maps, and compare maps with each
 * other. */
#include "commands/map_job.h"
#include "core/json.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>

static tsr_status simulate(tsr_map_job *job, tsr_map_models *models,
                           const char *path, tsr_err *err)
{
    char title[70];
    tsr_map *map;
    tsr_density_sums sums;
    TSR_TRY(tsr_map_models_read(job->model[0], NULL, 1, job->log, models, err));
    TSR_TRY(tsr_map_job_check(job, models, 0.0, err));
    TSR_TRY(tsr_map_new(&job->map->grid, &job->pool, &map, err));
    const tsr_density_options o = {.density = map->value};
    TSR_TRY(tsr_density_one(job->engine, models->atoms->n_atom,
                            tsr_map_models_xyz(models, 0), models->z, &o, &sums,
                            err));
    snprintf(title, sizeof title, "R %g A, sigma/R %.4g", job->resolution_ang,
             job->sigma_over_r);
    TSR_TRY(tsr_map_write(map, path, title, err));
    tsr_info(job->log, "wrote %s: %d x %d x %d voxels, %s", path,
             map->grid.n[0], map->grid.n[1], map->grid.n[2], title);
    return TSR_OK;
}

tsr_status tsr_map_simulate(tsr_map_job *job, tsr_err *err)
{
    const char *path = job->words->output;
    tsr_map_models models = {0};
    if (job->n_model != 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map simulate' needs exactly one model");
    if (path == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map simulate' needs an output file: --output");
    if (!(job->sigma_over_r > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--sigma-over-r best is for 'map cc', which has a map "
                        "to compare with");
    TSR_TRY(tsr_map_job_target(job, path, "", TSR_MAP_MARK, err));
    const tsr_status status = simulate(job, &models, path, err);
    tsr_map_models_clear(&models);
    return status;
}

/* ---- map mask ---- */

tsr_status tsr_map_mask(tsr_map_job *job, tsr_err *err)
{
    const char *path = job->words->output;
    const size_t n = tsr_map_n_voxel(&job->map->grid);
    double inside = 0.0;
    if (job->n_model > 1 || job->words->mask == NULL || path == NULL)
        return tsr_fail(
            err, TSR_E_USAGE,
            "'map mask' needs --mask model and one model, or --mask "
            "threshold:X, and an output file: --output");
    TSR_TRY(tsr_map_job_target(job, path, "", TSR_MAP_MARK, err));
    tsr_map mask = {.grid = job->map->grid};
    TSR_TRY(tsr_map_job_mask(job, job->map,
                             job->n_model > 0 ? job->model[0] : NULL,
                             &mask.value, err));
    for (size_t k = 0; k < n; k++)
        inside += mask.value[k] >= 0.5f;
    TSR_TRY(tsr_map_write(&mask, path, "mask", err));
    tsr_info(job->log, "wrote %s: %.0f of %zu voxels are inside", path, inside,
             n);
    return TSR_OK;
}

/* ---- map fsc ---- */

typedef struct {
    const char *name, *words, *colour;
    const tsr_fsc *fsc;
} curve;

enum { N_CURVE = 4 };

/* Curve of a comparison; fsc->n 0: not computed. */
static void list_curves(const tsr_fsc_halves *h, curve list[N_CURVE])
{
    list[0] = (curve){"fsc", "without a mask", TSR_COLOUR_DATA, &h->plain};
    list[1] = (curve){"masked", "masked", "#e69f00", &h->masked};
    list[2] =
        (curve){"random", "masked, phases at random", "#8a8a8a", &h->random};
    list[3] = (curve){"corrected", "corrected for the mask", TSR_COLOUR_MODEL,
                      &h->corrected};
}

static tsr_status draw_curves(const tsr_fsc_halves *h, const char *path,
                              tsr_err *err)
{
    curve list[N_CURVE];
    tsr_figure f = tsr_figure_new("fsc", "Fourier shell correlation",
                                  "s (1/\xc3\x85)", 560);
    list_curves(h, list);
    tsr_fsc_panel(&f, h->plain.s_inv_ang[h->plain.n - 1], -0.1, 320);
    for (int k = 0; k < N_CURVE; k++)
        tsr_fsc_curve(&f, TSR_LAYER_LINE, list[k].words, list[k].colour,
                      list[k].fsc);
    tsr_status status = tsr_figure_finish(&f, err);
    TSR_THEN(status, tsr_figure_write_svg(&f, path, err));
    tsr_figure_clear(&f);
    return status;
}

static void print_curves(const tsr_map_job *job, const tsr_fsc_halves *h)
{
    curve list[N_CURVE];
    list_curves(h, list);
    fprintf(job->out,
            "%s and %s: Fourier shell correlation, 1/s in Angstrom where it "
            "falls below\n%-26s %9s %9s\n",
            job->model[0], job->model[1], "", "0.5", "0.143");
    for (int k = 0; k < N_CURVE; k++) {
        const tsr_fsc *c = list[k].fsc;
        char half[16], low[16];
        if (c->n > 0 && c != &h->random)
            fprintf(
                job->out, "%-26s %9s %9s\n", list[k].words,
                tsr_map_fall_text(c->half_inv_ang, c->half_is_at_limit, half),
                tsr_map_fall_text(c->low_inv_ang, c->low_is_at_limit, low));
    }
    if (h->random.n > 0)
        fprintf(job->out, "phases were randomised beyond %.2f Angstrom\n",
                1.0 / h->random_from_inv_ang);
}

static void write_curves(const tsr_map_job *job, const tsr_fsc_halves *h)
{
    tsr_json j = {.out = job->out, .digits = 8};
    curve list[N_CURVE];
    list_curves(h, list);
    tsr_json_object(&j, NULL);
    tsr_json_array(&j, "maps");
    for (int k = 0; k < 2; k++)
        tsr_json_text(&j, NULL, job->model[k]);
    tsr_json_close(&j);
    tsr_json_text(&j, "mask", job->words->mask);
    tsr_json_numbers(&j, "s_inv_ang", h->plain.n, h->plain.s_inv_ang);
    if (h->random.n > 0)
        tsr_json_number(&j, "random_from_inv_ang", h->random_from_inv_ang);
    for (int k = 0; k < N_CURVE; k++) {
        const tsr_fsc *c = list[k].fsc;
        if (c->n == 0)
            continue;
        tsr_json_object(&j, list[k].name);
        tsr_json_members(&j,
                         "half_inv_ang %g half_is_at_limit %i 143_inv_ang %g "
                         "143_is_at_limit %i",
                         c->half_inv_ang, c->half_is_at_limit, c->low_inv_ang,
                         c->low_is_at_limit);
        tsr_json_numbers(&j, "fsc", c->n, c->fsc);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
}

/* A threshold applies to the mean of the two maps. */
static tsr_status mask_of_two(tsr_map_job *job, tsr_map *const map[2],
                              float **mask, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map[0]->grid);
    tsr_map *mean;
    *mask = NULL;
    if (!tsr_map_same_grid(&map[0]->grid, &map[1]->grid))
        return TSR_OK; /* the comparison reports the error */
    TSR_TRY(tsr_map_new(&map[0]->grid, &job->pool, &mean, err));
    for (size_t k = 0; k < n; k++)
        mean->value[k] = 0.5f * (map[0]->value[k] + map[1]->value[k]);
    mean->path = map[0]->path;
    return tsr_map_job_mask(job, mean, NULL, mask, err);
}

tsr_status tsr_map_fsc(tsr_map_job *job, tsr_err *err)
{
    const char *svg = job->words->svg;
    tsr_map *map[2];
    float *mask;
    tsr_fsc_halves h;
    if (job->n_model != 2)
        return tsr_fail(err, TSR_E_USAGE, "'map fsc' needs two maps");
    if (svg != NULL)
        TSR_TRY(tsr_map_job_target(job, svg, "", TSR_SVG_MARK, err));
    for (int k = 0; k < 2; k++) {
        TSR_TRY(tsr_map_read(job->model[k], job->origin, job->log, &job->pool,
                             &map[k], err));
        TSR_TRY(tsr_map_check(map[k], 0.0, job->log, err));
    }
    TSR_TRY(mask_of_two(job, map, &mask, err));
    TSR_TRY(tsr_fsc_halves_make(map[0], map[1], mask, &job->pool, &h, err));
    if (svg != NULL)
        TSR_TRY(draw_curves(&h, svg, err));
    if (job->words->json)
        write_curves(job, &h);
    else
        print_curves(job, &h);
    return TSR_OK;
}
