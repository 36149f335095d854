/* tessera map: density maps, and models in density maps. The first argument is
 * the verb, as in `tessera map cc`. */
#include "commands/command.h"
#include "commands/map_job.h"
#include "core/text.h"
#include "files/file.h"
#include "maps/map_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernel_words[] = {"gaussian", "radius", "electron",
                                           NULL};
static const char *const sigma_words[] = {"usual", "best", NULL};
static const char *const origin_words[] = {"auto", "origin", "nstart", NULL};
static const char *const by_words[] = {"residue", "structure", "chain", NULL};

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "map", tsr_map_words, map, .letter = 'm',
              .argument = "MAP",
              .doc = "density map: MRC2014, CCP4 or OpenDX, gzipped or not"),
    TSR_FIELD(STRING, "like", tsr_map_words, like, .argument = "MAP",
              .doc = "simulate: map whose grid the new map has"),
    TSR_FIELD(DOUBLE, "resolution", tsr_map_words, resolution_ang,
              .letter = 'r', .argument = "R", .unit = "Angstrom", .min = 0.5,
              .max = 100.0, .doc = "resolution of the map"),
    TSR_FIELD(CHOICE, "kernel", tsr_map_words, kernel, .argument = "KIND",
              .initial = "gaussian", .words = kernel_words,
              .doc = "density of an atom: gaussian (integral = atomic number, "
                     "one width), radius (height 1, width by element, as VMD), "
                     "electron (electron form factors)"),
    TSR_FIELD(NUMBER_OR_WORD, "sigma-over-r", tsr_map_words, sigma_over_r,
              .argument = "X", .min = 0.05, .max = 1.0, .words = sigma_words,
              .doc = "ratio of the blur's width to the resolution; best: that "
                     "of highest "
                     "correlation; default: 0.225, for kernel radius 0.30"),
    TSR_FIELD(DOUBLE, "mask-radius", tsr_map_words, mask_radius_ang,
              .argument = "D", .initial = "3", .unit = "Angstrom", .min = 0.1,
              .max = 100.0,
              .doc = "cc_mask uses voxels within this distance of an atom"),
    TSR_FIELD(
        STRING, "mask", tsr_map_words, mask, .argument = "MASK",
        .doc = "mask: a map on the same grid, 1 inside and 0 outside; model: "
               "around the model; threshold:X: around voxels of at least X. "
               "Voxels below 0.5 or NaN are left out"),
    TSR_FIELD(DOUBLE, "mask-distance", tsr_map_words, mask_distance_ang,
              .argument = "D", .initial = "5", .unit = "Angstrom",
              .max = 1000.0,
              .doc = "distance to which masks by model or threshold extend"),
    TSR_FIELD(DOUBLE, "mask-edge", tsr_map_words, mask_edge_ang,
              .argument = "D", .initial = "5", .unit = "Angstrom",
              .max = 1000.0,
              .doc = "width of the soft edge of these masks, from 1 to 0"),
    TSR_FIELD(STRING, "threshold", tsr_map_words, threshold, .argument = "T",
              .doc =
                  "also correlate over voxels where the model's density is at "
                  "least T; as 1.5sd: T in standard deviations above its mean"),
    TSR_FIELD(CHOICE, "origin", tsr_map_words, origin, .argument = "WHICH",
              .initial = "auto", .words = origin_words,
              .doc = "position of the first voxel: header field ORIGIN "
                     "(origin), NXSTART to NZSTART (nstart), or auto"),
    TSR_FIELD(STRING, "trajectory", tsr_map_words, trajectory, .letter = 't',
              .argument = "FILE",
              .doc = "cc, timeline: frames of this trajectory (DCD, H5MD), "
                     "with the atoms of the model in the same order"),
    TSR_FIELD(INT, "frames", tsr_map_words, frames, .argument = "N",
              .initial = "200", .min = 1, .max = 1e6,
              .doc = "largest number of conformations of a run, or frames of a "
                     "trajectory, evenly selected"),
    TSR_FIELD(CHOICE, "by", tsr_map_words, by, .argument = "PART",
              .initial = "residue", .words = by_words,
              .doc = "timeline: one row per residue, per element of secondary "
                     "structure (structure) or per chain"),
    TSR_FIELD(STRINGS, "select", tsr_map_words, select,
              .argument = "NAME=RANGES",
              .doc = "timeline: one row per named group of residues instead, "
                     "as core=A:1-29,A:60-121"),
    TSR_FIELD(
        STRING, "difference", tsr_map_words, difference, .argument = "FILE",
        .doc =
            "cc: write the map minus the scaled density of the model, as MRC"),
    TSR_FIELD(STRING, "output", tsr_map_words, output, .letter = 'o',
              .argument = "FILE",
              .doc = "simulate: new map; timeline: FILE.csv and FILE.svg; "
                     "dock: docked model, as PDB or FILE.cif; mask: mask"),
    TSR_FIELD(INT, "poses", tsr_map_words, poses, .argument = "N",
              .initial = "5", .min = 1, .max = TSR_MAP_MOST_POSES,
              .doc = "dock: number of best poses to list"),
    TSR_FIELD(BOOL, "laplacian", tsr_map_words, laplacian,
              .doc = "dock: search with edges, for low resolutions or parts of "
                     "the molecule in the map"),
    TSR_OPTION_THREADS(tsr_map_words),
    TSR_OPTION_FORCE(tsr_map_words),
    TSR_OPTION_JSON(tsr_map_words),
    TSR_OPTION_DEVICE(tsr_map_words),
    {0}};

typedef struct {
    const char *name;
    tsr_status (*run)(tsr_map_job *job, tsr_err *err);
    const char *map;  /* option that names the map of the verb */
    int is_of_models; /* the verb compares models with the map, and needs a
                         resolution and an engine */
} verb;

static const verb verbs[] = {{"cc", tsr_map_correlate, "map", 1},
                             {"simulate", tsr_map_simulate, "like", 1},
                             {"timeline", tsr_map_timeline, "map", 1},
                             {"dock", tsr_map_dock, "map", 1},
                             {"mask", tsr_map_mask, "map", 0},
                             {0}};

/* Options that apply only to some verbs, with these verbs. */
static const struct {
    const char *option, *verbs, *note;
} own[] = {{"difference", "cc", ""},
           {"trajectory", "cc timeline", ""},
           {"threads", "cc timeline", ""},
           {"json", "cc dock", ""},
           {"like", "simulate", ""},
           {"by", "timeline", ""},
           {"select", "timeline", ""},
           {"poses", "dock", ""},
           {"laplacian", "dock", ""},
           {"map", "cc timeline dock mask", ": simulate uses --like"},
           {"output", "simulate timeline dock mask",
            ": cc writes its file with --difference"}};

/* ---- options ---- */

static tsr_status find_verb(const char *name, const verb **out, tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE];
    for (*out = verbs; (*out)->name != NULL; ++*out)
        if (strcmp((*out)->name, name) == 0)
            return TSR_OK;
    return tsr_fail(err, TSR_E_USAGE,
                    "'%s': expected cc, simulate, timeline, dock or mask",
                    tsr_text_excerpt(name, shown));
}

/* Refuses options that the verb would ignore, since the user expects an effect.
 */
static tsr_status check_unused(const tsr_args *args, const verb *v,
                               tsr_err *err)
{
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (tsr_args_given(args, own[k].option) > 0 &&
            strstr(own[k].verbs, v->name) == NULL)
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s belongs to 'map %s', not to 'map %s'%s",
                            own[k].option, own[k].verbs, v->name, own[k].note);
    return tsr_args_given(args, v->map) > 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_USAGE,
                          "'map %s' needs a density map: --%s", v->name,
                          v->map);
}

static tsr_status read_threshold(tsr_map_job *job, tsr_err *err)
{
    const char *given = job->words->threshold;
    char *end;
    if (given == NULL)
        return TSR_OK;
    job->has_threshold = 1;
    job->threshold = strtod(given, &end);
    job->is_in_sd = strcmp(end, "sd") == 0;
    if (end == given || (!job->is_in_sd && *end != '\0') ||
        !isfinite(job->threshold))
        return tsr_fail(err, TSR_E_USAGE,
                        "--threshold '%.40s': expected a density, or standard "
                        "deviations above the mean as in 1.5sd",
                        given);
    return TSR_OK;
}

static tsr_status read_settings(tsr_map_job *job, tsr_err *err)
{
    const tsr_map_words *o = job->words;
    if (!(o->resolution_ang > 0.0))
        return tsr_fail(
            err, TSR_E_USAGE,
            "the resolution of the map is missing: give --resolution R, in "
            "Angstrom, from the paper or the database entry");
    job->resolution_ang = o->resolution_ang;
    job->kind = (tsr_blur)o->kernel;
    job->sigma_over_r = o->sigma_over_r.word == 0
                            ? tsr_blur_default_width(job->kind)
                            : o->sigma_over_r.number;
    job->mask_ang = o->mask_radius_ang;
    job->most_frames = (int)o->frames;
    job->trajectory = o->trajectory;
    job->n_thread = tsr_threads(o->threads);
    if (job->trajectory != NULL && job->n_model != 1)
        return tsr_fail(
            err, TSR_E_USAGE,
            "--trajectory needs exactly one model, which defines the atoms");
    return read_threshold(job, err);
}

/* ---- the map and the engine ---- */

tsr_status tsr_map_job_mask(tsr_map_job *job, const tsr_map *map,
                            const char *model, float **value, tsr_err *err)
{
    tsr_mask_source source = {
        .mask = job->words->mask,
        .distance_ang = job->words->mask_distance_ang,
        .edge_ang = job->words->mask_edge_ang,
        .origin = job->origin,
        .no_start_status = TSR_E_USAGE,
        .no_start = "--mask model: there is no model here; make a mask file "
                    "around a model with tessera map mask"};
    tsr_map_models models;
    *value = NULL;
    if (model == NULL || source.mask == NULL ||
        strcmp(source.mask, "model") != 0)
        return tsr_mask_make(&source, map, job->log, &job->pool, value, err);
    tsr_status status =
        tsr_map_models_open(model, NULL, 1, job->log, &models, err);
    if (status == TSR_OK)
        source.start = (tsr_map_start){models.atoms->n_atom,
                                       tsr_map_models_first(&models)};
    TSR_THEN(status,
             tsr_mask_make(&source, map, job->log, &job->pool, value, err));
    tsr_map_models_clear(&models);
    return status;
}

static tsr_status apply_mask(tsr_map_job *job, tsr_err *err)
{
    float *mask;
    size_t left = 0;
    tsr_map *map = job->map;
    const size_t n = tsr_map_n_voxel(&map->grid);
    TSR_TRY(tsr_map_job_mask(job, map, job->model[0], &mask, err));
    if (mask == NULL)
        return TSR_OK;
    for (size_t k = 0; k < n; k++) {
        if (!(mask[k] >= 0.5f))
            map->value[k] = NAN;
        left += isnan(map->value[k]) ? 0 : 1;
    }
    tsr_pool_free(&job->pool, mask);
    if (left < 2)
        return tsr_fail(
            err, TSR_E_DATA,
            "--mask '%s' leaves %zu voxels; is it 1 inside and 0 outside?",
            job->words->mask, left);
    tsr_info(job->log, "%zu of %zu voxels are inside the mask", left, n);
    return tsr_map_check(map, 0.0, NULL, err);
}

static tsr_status open_engine(tsr_map_job *job, tsr_err *err)
{
    const char *device = job->words->device;
    TSR_TRY(apply_mask(job, err));
    if (strcmp(device, "reference") == 0)
        return tsr_density_reference_new(job->map, &job->engine, err);
    TSR_TRY(tsr_device_open(device, &job->device, err));
    TSR_TRY(tsr_map_sum_test(job->device, NULL, err));
    return tsr_map_sum_new(job->device, job->map, &job->engine, err);
}

tsr_status tsr_map_job_blur(const tsr_map_job *job,
                            const tsr_map_models *models, double sigma_over_r,
                            tsr_err *err)
{
    tsr_blur_table table;
    TSR_TRY(tsr_blur_make(job->kind, job->resolution_ang, sigma_over_r,
                          models->atoms->n_atom, models->z, &table, err));
    return job->engine->set_blur(job->engine, &table, err);
}

/* ---- checks of a model before the comparison ---- */

tsr_status tsr_map_job_check(const tsr_map_job *job,
                             const tsr_map_models *models, double least,
                             tsr_err *err)
{
    return tsr_map_check_overlap(
        &job->map->grid, models->path, models->atoms->n_atom,
        tsr_map_models_first(models), least,
        "dock the model first, or try --origin", job->log, err);
}

tsr_status tsr_map_job_target(const tsr_map_job *job, const char *path,
                              const char *begins, const char *holds,
                              tsr_err *err)
{
    const char *input[4] = {
        job->map != NULL ? job->map->path : NULL, job->words->mask,
        job->n_model > 0 ? job->model[0] : NULL, job->trajectory};
    const tsr_file_target target = {.maker = "map",
                                    .n_input = 4,
                                    .input = input,
                                    .is_forced = job->words->force};
    for (int k = 1; k < job->n_model; k++)
        if (strcmp(job->model[k], path) == 0)
            return tsr_fail(err, TSR_E_USAGE, "'%s' is an input", path);
    return tsr_file_check_target(&target, path, begins, holds, err);
}

static tsr_status run_map(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const tsr_map_words *o = args->options;
    tsr_map_job job = {.words = o,
                       .out = out,
                       .log = log,
                       .n_model = args->n - 1,
                       .model = args->argument + 1,
                       .origin = (tsr_map_origin)o->origin};
    const verb *v;
    TSR_TRY(find_verb(args->argument[0], &v, err));
    if (job.n_model == 0 && v->is_of_models)
        return tsr_fail(err, TSR_E_USAGE, "'map %s' needs a model", v->name);
    TSR_TRY(check_unused(args, v, err));
    if (v->is_of_models)
        TSR_TRY(read_settings(&job, err));
    tsr_status status = tsr_map_read(o->map != NULL ? o->map : o->like,
                                     job.origin, log, &job.pool, &job.map, err);
    if (o->map != NULL)
        TSR_THEN(status, tsr_map_check(job.map, job.resolution_ang, log, err));
    if (status == TSR_OK && v->is_of_models)
        status = open_engine(&job, err);
    TSR_THEN(status, v->run(&job, err));
    tsr_density_free(job.engine);
    tsr_device_free(job.device);
    tsr_pool_clear(&job.pool);
    return status;
}

const tsr_command tsr_command_map = {
    .name = "map",
    .doc = "models in density maps: correlation, docking, simulated maps, "
           "timelines, masks",
    .arguments = "cc|dock|simulate|timeline|mask [FILE]...",
    .options = fields,
    .size = sizeof(tsr_map_words),
    .about =
        "tessera map cc MODEL... --map MAP --resolution R\ntessera map dock "
        "MODEL --map MAP --resolution R [-o OUT.pdb]\ntessera map simulate "
        "MODEL --like MAP --resolution R -o OUT.mrc\ntessera map timeline "
        "MODEL --map MAP --resolution R -o OUT\ntessera map mask [MODEL] --map "
        "MAP --mask "
        "model -o OUT.mrc\n\nMODEL is a PDB or mmCIF file, gzipped or not, "
        "with one model or many, or the folder of a run. All atoms except "
        "waters are used. docs/density.md describes the methods.",
    .run = run_map};
