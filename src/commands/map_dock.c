/* tessera map dock: finds the position of a rigid model in a map, and tests the
 * map for a wrong hand and a wrong voxel size. */
#include "commands/map_job.h"
#include "core/json.h"
#include "maps/dock.h"
#include "molecule/structure.h"

#include <math.h>
#include <string.h>

enum { MIDDLE = TSR_MOST_IMAGES / 2 };

static const char remark[] = "tessera: map dock, best place in a density map";

typedef struct {
    tsr_map_job *job;
    tsr_map_models models;
    int n; /* atoms */
    const double (*xyz)[3];
    tsr_pool pool;
    double *weight;  /* [n] electrons */
    double (*at)[3]; /* [n] workspace: atoms at a position */
    tsr_dock_options options;
    int n_pose;
    tsr_map_pose pose[TSR_MAP_MOST_POSES];
    tsr_density_sums sums[TSR_MAP_MOST_POSES];
    double mirrored; /* correlation of the best position of the mirror image */
    double scale;    /* best scale of the model, and its correlation */
    double scaled_cc;
} docking;

static tsr_status open_model(docking *d, tsr_err *err)
{
    TSR_TRY(tsr_map_models_open(d->job->model[0], NULL, 1, d->job->log,
                                &d->models, err));
    const size_t n = (size_t)d->models.atoms->n_atom;
    d->n = (int)n;
    d->xyz = tsr_map_models_first(&d->models);
    tsr_pool_array(&d->pool, d->weight, n);
    tsr_pool_array(&d->pool, d->at, n);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    for (size_t i = 0; i < n; i++)
        d->weight[i] = d->models.z[i];
    return TSR_OK;
}

/* Copies of a posed model, scaled about its centre by 1 + 0.02 k, k from -most
 * to most. */
static tsr_status compare(docking *d, const tsr_map_pose *pose, int most,
                          tsr_density_sums *sums, tsr_err *err)
{
    tsr_map_image copy[TSR_MOST_IMAGES];
    for (int i = 0; i < d->n; i++)
        tsr_map_pose_apply(pose, d->xyz[i], d->at[i]);
    for (int k = -most; k <= most; k++)
        for (int c = 0; c < 3; c++) {
            copy[most + k].from[c] = pose->to[c];
            copy[most + k].factor[c] = 1.0 + 0.02 * k;
        }
    return tsr_map_try_images(d->job, d->n, (const double(*)[3])d->at,
                              d->models.z, 2 * most + 1, copy, d->job->mask_ang,
                              sums, err);
}

/* ---- what may be wrong with the map ---- */

/* The scores of a model and of its mirror image have the ratio of their
 * correlations. */
static tsr_status try_mirror(docking *d, tsr_err *err)
{
    tsr_map_pose pose;
    int n;
    for (int i = 0; i < d->n; i++) {
        memcpy(d->at[i], d->xyz[i], sizeof d->at[i]);
        d->at[i][0] = -d->at[i][0];
    }
    TSR_TRY(tsr_dock(d->job->map, d->n, (const double(*)[3])d->at, d->weight,
                     &d->options, 1, &pose, &n, err));
    const double best = tsr_map_cc(&d->sums[0].box);
    d->mirrored = n > 0 ? best * pose.score / d->pose[0].score : (double)NAN;
    if (d->mirrored > best + 0.02)
        tsr_warn(d->job->log,
                 "the mirror image of the model fits better, with a "
                 "correlation of %.3f instead of %.3f: the map has the wrong "
                 "hand; mirror it",
                 d->mirrored, best);
    return TSR_OK;
}

static tsr_status try_scales(docking *d, tsr_err *err)
{
    tsr_density_sums sums[TSR_MOST_IMAGES];
    int best = MIDDLE;
    TSR_TRY(compare(d, &d->pose[0], MIDDLE, sums, err));
    const double cc = tsr_map_cc(&sums[best].box);
    for (int k = 0; k < TSR_MOST_IMAGES; k++)
        if (tsr_map_cc(&sums[k].box) > tsr_map_cc(&sums[best].box))
            best = k;
    d->scale = 1.0 + 0.02 * (best - MIDDLE);
    d->scaled_cc = tsr_map_cc(&sums[best].box);
    if (best != MIDDLE && d->scaled_cc > cc + 0.01)
        tsr_warn(d->job->log,
                 "the model %s by %.0f %% fits better, with a correlation of "
                 "%.3f instead of %.3f: the map would fit with voxels of %.4g "
                 "Angstrom; is the voxel size (CELLA over MX) right?",
                 d->scale > 1.0 ? "grown" : "shrunk",
                 100.0 * fabs(d->scale - 1.0), d->scaled_cc, cc,
                 d->job->map->grid.step[0] / d->scale);
    return TSR_OK;
}

/* ---- table and messages ---- */

static double angle_of(const tsr_map_pose *pose)
{
    const double trace = pose->turn[0][0] + pose->turn[1][1] + pose->turn[2][2];
    return acos(fmax(-1.0, fmin(1.0, 0.5 * (trace - 1.0)))) * 57.29577951308232;
}

static double shift_of(const tsr_map_pose *pose)
{
    double sum = 0.0;
    for (int c = 0; c < 3; c++)
        sum += pow(pose->to[c] - pose->from[c], 2.0);
    return sqrt(sum);
}

static void print_table(const docking *d)
{
    FILE *out = d->job->out;
    fprintf(out,
            "map %s, R %g A, sigma/R %.3g; all orientations and places of "
            "%s\nplace  cc_box cc_mask    turned    shifted  centre, A\n",
            d->job->map->path, d->job->resolution_ang, d->job->sigma_over_r,
            d->job->model[0]);
    for (int k = 0; k < d->n_pose; k++) {
        const tsr_map_pose *p = &d->pose[k];
        fprintf(out, "%5d %7.4f %7.4f %5.0f deg. %8.1f A  %.1f %.1f %.1f\n",
                k + 1, tsr_map_cc(&d->sums[k].box),
                tsr_map_cc(&d->sums[k].mask), angle_of(p), shift_of(p),
                p->to[0], p->to[1], p->to[2]);
    }
    if (!isnan(d->mirrored))
        fprintf(out, "the mirror image: cc_box %.4f at best\n", d->mirrored);
}

static void print_json(const docking *d)
{
    tsr_json j = {.out = d->job->out, .digits = 8};
    tsr_json_object(&j, NULL);
    tsr_json_members(&j, "map %s resolution_ang %g sigma_over_r %g",
                     d->job->map->path, d->job->resolution_ang,
                     d->job->sigma_over_r);
    tsr_json_array(&j, "poses");
    for (int k = 0; k < d->n_pose; k++) {
        const tsr_map_pose *p = &d->pose[k];
        tsr_json_object(&j, NULL);
        tsr_json_members(&j, "cc_box %g cc_mask %g",
                         tsr_map_cc(&d->sums[k].box),
                         tsr_map_cc(&d->sums[k].mask));
        tsr_json_numbers(&j, "turn", 9, &p->turn[0][0]);
        tsr_json_numbers(&j, "from", 3, p->from);
        tsr_json_numbers(&j, "to", 3, p->to);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_members(&j,
                     "cc_box_mirrored %g best_scale %g cc_box_best_scale %g",
                     d->mirrored, d->scale, d->scaled_cc);
    tsr_json_close(&j);
}

/* ---- the model in its place ---- */

static int is_cif(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".cif") == 0;
}

static tsr_status write_model(const docking *d, const char *path, tsr_err *err)
{
    tsr_model_atoms list = {.n_atom = 0};
    const tsr_model_spec spec = {.format = is_cif(path) ? TSR_MODEL_CIF
                                                        : TSR_MODEL_PDB,
                                 .name = "docked",
                                 .atoms = &list};
    TSR_TRY(tsr_map_models_list(&d->models, &list, err));
    for (int i = 0; i < d->n; i++)
        tsr_map_pose_apply(&d->pose[0], d->xyz[i], d->at[i]);
    return tsr_model_file(&spec, path, remark, (const double(*)[3])d->at, err);
}

/* ---- the verb ---- */

static tsr_status dock(docking *d, tsr_err *err)
{
    const char *path = d->job->words->output;
    if (path != NULL)
        TSR_TRY(tsr_map_job_target(
            d->job, path, is_cif(path) ? "data_" : "REMARK 999 tessera: ",
            is_cif(path) ? "\n# tessera: " : "", err));
    TSR_TRY(open_model(d, err));
    TSR_TRY(tsr_map_job_blur(d->job, &d->models, d->job->sigma_over_r, err));
    TSR_TRY(tsr_dock(d->job->map, d->n, d->xyz, d->weight, &d->options,
                     (int)d->job->words->poses, d->pose, &d->n_pose, err));
    for (int k = 0; k < d->n_pose; k++)
        TSR_TRY(compare(d, &d->pose[k], 0, &d->sums[k], err));
    if (d->n_pose == 0 || isnan(tsr_map_cc(&d->sums[0].box)))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': no place in the map was found: too few of its "
                        "voxels are known",
                        d->job->model[0]);
    TSR_TRY(try_mirror(d, err));
    return try_scales(d, err);
}

tsr_status tsr_map_dock(tsr_map_job *job, tsr_err *err)
{
    if (job->n_model != 1)
        return tsr_fail(err, TSR_E_USAGE, "'map dock' needs exactly one model");
    if (!(job->sigma_over_r > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "'map dock' needs a width of the blur: "
                        "--sigma-over-r best is for 'map cc'");
    docking d = {
        .job = job,
        .options = {.resolution_ang = job->resolution_ang,
                    .sigma_ang = job->sigma_over_r * job->resolution_ang,
                    .is_laplacian = job->words->laplacian}};
    tsr_status status = dock(&d, err);
    if (status == TSR_OK && job->words->json)
        print_json(&d);
    else if (status == TSR_OK)
        print_table(&d);
    if (status == TSR_OK && job->words->output != NULL)
        status = write_model(&d, job->words->output, err);
    tsr_pool_clear(&d.pool);
    tsr_map_models_clear(&d.models);
    return status;
}
