/* tessera map simulate and mask: create maps. */
#include "commands/map_job.h"

#include <math.h>
#include <stdio.h>

static tsr_status simulate(tsr_map_job *job, tsr_map_models *models,
                           const char *path, tsr_err *err)
{
    char title[70];
    tsr_map *map;
    tsr_density_sums sums;
    TSR_TRY(tsr_map_models_open(job->model[0], NULL, 1, job->log, models, err));
    TSR_TRY(tsr_map_job_check(job, models, 0.0, err));
    TSR_TRY(tsr_map_job_blur(job, models, job->sigma_over_r, err));
    TSR_TRY(tsr_map_new(&job->map->grid, &job->pool, &map, err));
    const tsr_density_options o = {.density = map->value};
    TSR_TRY(tsr_density_one(job->engine, models->atoms->n_atom,
                            tsr_map_models_first(models), models->z, &o, &sums,
                            err));
    snprintf(title, sizeof title, "%s, R %g A, sigma/R %.4g",
             tsr_blur_name(job->kind), job->resolution_ang, job->sigma_over_r);
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
