/* tessera map simulate: a model's density as a map. */
#include "cli/map_job.h"

#include <stdio.h>
#include <stdlib.h>

tsr_status tsr_map_simulate(tsr_map_job *job, tsr_err *err)
{
    const char *path = tsr_args_value(job->args, "output");
    char title[70];
    tsr_map_models models = {0};
    tsr_map *map = NULL;
    int *element = NULL;
    unsigned char *z = NULL;
    tsr_density_sums sums;
    if (job->n_model != 1)
        return tsr_fail(err, TSR_E_USAGE, "'map simulate' takes one model");
    if (path == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'map simulate' needs a file to write: --output");
    if (!(job->sigma_over_r > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--sigma-over-r best is for 'map cc', which has a map "
                        "to compare with");
    TSR_TRY(tsr_map_job_target(job, path, "", TSR_MAP_MARK, err));
    tsr_status status =
        tsr_map_models_read(job->model[0], 1, job->log, &models, err);
    if (status == TSR_OK)
        status = tsr_map_job_check(job, &models, err);
    if (status == TSR_OK)
        status = tsr_map_job_blur(job, &models, job->sigma_over_r, err);
    if (status == TSR_OK)
        status = tsr_map_models_elements(&models, &element, &z, err);
    if (status == TSR_OK)
        status = tsr_map_new(&job->map->grid, &map, err);
    if (status == TSR_OK) {
        const int first[2] = {0, models.atoms->n_atom};
        const tsr_density_batch batch = {.n_system = 1,
                                         .first = first,
                                         .xyz = tsr_map_models_xyz(&models, 0),
                                         .z = z};
        const tsr_density_options o = {.density = map->value};
        status = tsr_density_run(job->engine, &batch, &o, &sums, err);
    }
    snprintf(title, sizeof title, "%s, R %g A, sigma/R %.4g",
             tsr_blur_name(job->kind), job->resolution_ang, job->sigma_over_r);
    if (status == TSR_OK)
        status = tsr_map_write(map, path, title, err);
    if (status == TSR_OK)
        tsr_info(job->log, "wrote %s: %d x %d x %d voxels, %s", path,
                 map->grid.n[0], map->grid.n[1], map->grid.n[2], title);
    free(element);
    free(z);
    tsr_map_free(map);
    tsr_map_models_clear(&models);
    return status;
}
