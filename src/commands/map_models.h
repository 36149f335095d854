/* The models that `tessera map` looks at: those of a structure file, one or
 * many, or the draws of a run. */
#ifndef TSR_COMMANDS_MAP_MODELS_H
#define TSR_COMMANDS_MAP_MODELS_H

#include "maps/map_view.h"

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

#endif
