/* Declarations shared by the verbs of `tessera map`: models, a map, an engine
 * that holds the map, and the blur of models. commands/command_map.c has the
 * options. */
#ifndef TSR_COMMANDS_MAP_JOB_H
#define TSR_COMMANDS_MAP_JOB_H

#include "commands/command.h"
#include "core/log.h"
#include "gpu/device.h"
#include "maps/density.h"
#include "maps/fourier.h"
#include "maps/map_source.h"
#include "maps/map_view.h"

/* ---- models: the models of a structure file, or the draws of a run
 * (map_models.c) ---- */

/* Opens a structure file with all its models, or the folder of a run with at
 * most `most` of its stored conformations, evenly selected, with all heavy
 * atoms. With a trajectory (else NULL), at most `most` of its frames instead;
 * `path` then defines the atoms. The first model of a run or trajectory is read
 * at once, the others by tsr_map_models_frame. The caller clears *out, also
 * after an error. Errors: those of the readers; TSR_E_USAGE (a trajectory with
 * a run); TSR_E_DATA (a run whose input structure is missing, a trajectory of
 * other atoms). */
tsr_status tsr_map_models_open(const char *path, const char *trajectory,
                               int most, tsr_log *log, tsr_map_models *out,
                               tsr_err *err);
void tsr_map_models_clear(tsr_map_models *models);

/* Coordinates of the first model, [n_atom][3], Angstrom. */
const double (*tsr_map_models_first(const tsr_map_models *models))[3];

/* Reads model k: xyz [n_atom][3] out, Angstrom. Threads may read at the same
 * time, fastest in the order of the models. Errors, with the label of the
 * model: those of the readers. */
tsr_status tsr_map_models_frame(const tsr_map_models *models, int k,
                                double (*xyz)[3], tsr_err *err);

/* Reads all models into memory. Errors: as above, and TSR_E_NOMEM. */
tsr_status tsr_map_models_load(tsr_map_models *models, tsr_err *err);

/* The atoms as a writer needs them, in memory of the models. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_map_models_list(const tsr_map_models *models,
                               tsr_model_atoms *out, tsr_err *err);

/* Label of model k: "adk.pdb", "adk.pdb, model 3", "runs/adk, chain 2, draw
 * 400" or "adk.pdb, frame 12". */
void tsr_map_models_label(const tsr_map_models *models, int k, char *text,
                          unsigned long size);

/* ---- the job ---- */

enum { TSR_MAP_MOST_POSES = 20 };

/* The options; NULL or 0 if not given. */
typedef struct {
    char *map, *like, *mask, *threshold, *trajectory, *difference;
    char *output, *device;
    double resolution_ang, mask_radius_ang, mask_distance_ang, mask_edge_ang;
    tsr_number_or_word sigma_over_r;
    int kernel, origin, by, laplacian, force, json;
    long frames, poses, threads;
    tsr_strings select;
} tsr_map_words;

typedef struct {
    const tsr_map_words *words;
    FILE *out;
    tsr_log *log;
    tsr_pool pool; /* owns the maps, masks, curves and models */
    int n_model;
    const char *const *model; /* [n_model] arguments after the verb */
    tsr_map *map;
    tsr_device *device; /* NULL: reference engine */
    tsr_density_engine *engine;
    tsr_blur kind;
    double resolution_ang;
    double sigma_over_r; /* 0: search for the best value */
    double mask_ang;
    tsr_map_origin origin;
    /* Voxels where the model's density is at least `threshold`, in its unit or
     * in standard deviations above its mean. */
    int has_threshold, is_in_sd;
    double threshold;
    int most_frames;
    int n_thread;           /* threads that compare models at the same time */
    const char *trajectory; /* frames of the model; NULL: no trajectory */
} tsr_map_job;

/* Sets the blur of the engine for the elements of the models. */
tsr_status tsr_map_job_blur(const tsr_map_job *job,
                            const tsr_map_models *models, double sigma_over_r,
                            tsr_err *err);

/* Checks that the first model lies in the map, and warns if the model is partly
 * outside. Errors: TSR_E_DATA, with both boxes, where less than the fraction
 * `least` of the atoms, or no atom, is in the map. */
tsr_status tsr_map_job_check(const tsr_map_job *job,
                             const tsr_map_models *models, double least,
                             tsr_err *err);

/* A mirrored or scaled model: along each axis the distance from the plane at
 * `from` is multiplied by `factor`. */
typedef struct {
    double from[3], factor[3];
} tsr_map_image;

enum { TSR_MOST_IMAGES = 11 };

/* Computes the sums of n images of a model's atoms with the map. mask_ang: as
 * in tsr_density_options. */
tsr_status tsr_map_try_images(const tsr_map_job *job, int n_atom,
                              const double (*xyz)[3], const unsigned char *z,
                              int n, const tsr_map_image *image,
                              double mask_ang, tsr_density_sums *sums,
                              tsr_err *err);

/* Checks that the output file `path` is no input and may be written; begins and
 * holds: as for tsr_file_check_target. Errors: TSR_E_USAGE. */
tsr_status tsr_map_job_target(const tsr_map_job *job, const char *path,
                              const char *begins, const char *holds,
                              tsr_err *err);

/* Reads or makes the mask of --mask on the grid of a map: *value [n_voxel], 1
 * inside, 0 outside, intermediate at a soft edge; NULL without --mask. model:
 * structure file whose first model `--mask model` uses; NULL: there is no
 * model. Errors: those of tsr_mask_make and tsr_map_models_open; TSR_E_USAGE
 * (--mask model without a model). */
tsr_status tsr_map_job_mask(tsr_map_job *job, const tsr_map *map,
                            const char *model, float **value, tsr_err *err);

/* The verbs of tessera map: cc, dock, mask, simulate, timeline. */
tsr_status tsr_map_correlate(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_dock(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_mask(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_simulate(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_timeline(tsr_map_job *job, tsr_err *err);

#endif
