/* The models that `tessera map` looks at: those of a structure file, one or
 * many, or the draws of a run. */
#ifndef TSR_COMMANDS_MAP_MODELS_H
#define TSR_COMMANDS_MAP_MODELS_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"

typedef struct {
    const char *path; /* as given, borrowed */
    tsr_atoms *atoms; /* names and elements; coordinates of the first model */
    int n;            /* models */
    double (*xyz)[3]; /* [n][n_atom] Angstrom */
    long *draw;       /* [n] of a run: number of the draw; of a trajectory: of
                         the frame; NULL: of a file */
    int *chain;       /* [n] of a run: its chain; else NULL */
    /* Of a run alone; else NULL: */
    int *of_draw;       /* [n] states of one draw have one number, from 0 */
    double *weight;     /* [n] of the state in its draw */
    double (*start)[3]; /* [n_atom] where the run began */
} tsr_map_models;

/* A file, all of whose models are read, or the folder of a run: at most `most`
 * of its stored conformations, evenly chosen, with all heavy atoms. With a
 * trajectory, NULL for none, at most as many of its frames instead, of which
 * `path` says the atoms. Errors: those of the readers; TSR_E_USAGE (a
 * trajectory of a run); TSR_E_DATA (a run whose input structure is gone, a
 * trajectory of other atoms). The caller clears it, also after an error. */
tsr_status tsr_map_models_read(const char *path, const char *trajectory,
                               int most, tsr_log *log, tsr_map_models *out,
                               tsr_err *err);
void tsr_map_models_clear(tsr_map_models *models);

/* Coordinates of model k, [n_atom][3]. */
const double (*tsr_map_models_xyz(const tsr_map_models *models, int k))[3];

/* "adk.pdb", "adk.pdb, model 3", "runs/adk, chain 2, draw 400", "adk.pdb, frame
 * 12". */
void tsr_map_models_label(const tsr_map_models *models, int k, char *text,
                          unsigned long size);

/* Elements [n_atom], for a table of blurred atoms and for a batch; the caller
 * frees both. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_models_elements(const tsr_map_models *models, int **element,
                                   unsigned char **z, tsr_err *err);

#endif
