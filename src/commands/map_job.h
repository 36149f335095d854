/* What the verbs of `tessera map` share: a map, an engine that holds it, and
 * how models are blurred. commands/command_map.c has the
 * options.
 */
#ifndef TSR_COMMANDS_MAP_JOB_H
#define TSR_COMMANDS_MAP_JOB_H

#include "commands/command.h"
#include "commands/map_models.h"
#include "core/log.h"
#include "gpu/device.h"
#include "maps/density.h"
#include "maps/fourier.h"
#include "maps/map_source.h"

enum { TSR_MAP_MOST_POSES = 20 };

/* The options; NULL or 0 where they are not given. */
typedef struct {
    char *map, *like, *mask, *threshold, *trajectory, *difference, *spatial;
    char *output, *svg, *device;
    double resolution_ang, mask_radius_ang, mask_distance_ang, mask_edge_ang;
    tsr_number_or_word sigma_over_r;
    int kernel, origin, by, laplacian, force, json;
    long frames, poses;
    tsr_strings select;
} tsr_map_words;

typedef struct {
    const tsr_map_words *words;
    FILE *out;
    tsr_log *log;
    tsr_pool pool; /* of the maps, masks, curves and models */
    int n_model;
    const char *const *model; /* [n_model] the arguments after the verb */
    tsr_map *map;
    tsr_device *device; /* NULL: the reference */
    tsr_density_engine *engine;
    tsr_blur kind;
    double resolution_ang;
    double sigma_over_r; /* 0: the best one is looked for */
    double mask_ang;
    tsr_map_origin origin;
    /* Voxels where S is at least `threshold`, or so many standard deviations
     * above its mean. */
    int has_threshold, is_in_sd;
    double threshold;
    int most_frames;
    const char *trajectory; /* frames of the model; NULL: its own */
} tsr_map_job;

/* Brings the engine to the blur of the models' elements. */
tsr_status tsr_map_job_blur(const tsr_map_job *job,
                            const tsr_map_models *models, double sigma_over_r,
                            tsr_err *err);

/* Refuses a model of which less than the share `least` of its atoms, or
 * nothing, is in the map, says where both are, and warns of one that is in part
 * outside.
 */
tsr_status tsr_map_job_check(const tsr_map_job *job,
                             const tsr_map_models *models, double least,
                             tsr_err *err);

/* A model seen in a mirror, grown or shrunk: along each axis its distances from
 * a plane times a factor. */
typedef struct {
    double from[3], factor[3];
} tsr_map_image;

enum { TSR_MOST_IMAGES = 11 };

/* Sums of n images of a model's atoms beside the map. mask_ang: as in
 * tsr_density_options. */
tsr_status tsr_map_try_images(const tsr_map_job *job, int n_atom,
                              const double (*xyz)[3], const unsigned char *z,
                              int n, const tsr_map_image *image,
                              double mask_ang, tsr_density_sums *sums,
                              tsr_err *err);

/* May the option's file be written? Errors: TSR_E_USAGE. */
tsr_status tsr_map_job_target(const tsr_map_job *job, const char *path,
                              const char *begins, const char *holds,
                              tsr_err *err);

/* The mask that --mask names, on the grid of a map: *value [n_voxel], 1 inside,
 * 0 outside, between at a soft edge; NULL without --mask. model:
 * the first model of that file; NULL: there is none. Errors: TSR_E_USAGE,
 * TSR_E_DATA (another grid, nothing inside). */
tsr_status tsr_map_job_mask(tsr_map_job *job, const tsr_map *map,
                            const char *model, float **value, tsr_err *err);

/* "4.13", or "< 2.00" where a shell correlation never falls so low. */
const char *tsr_map_fall_text(double s_inv_ang, int is_at_limit, char text[16]);

/* The verbs: map cc, map dock, map fsc, map mask, map simulate, map timeline.
 */
tsr_status tsr_map_correlate(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_dock(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_fsc(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_mask(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_simulate(tsr_map_job *job, tsr_err *err);
tsr_status tsr_map_timeline(tsr_map_job *job, tsr_err *err);

#endif
