/* PDB text before gemmi reads it: checked, and cut down to the first model. */
#ifndef TSR_MOLECULE_PDB_TEXT_H
#define TSR_MOLECULE_PDB_TEXT_H

#include "core/status.h"

#include <stddef.h>

/* The ATOM, HETATM and TER records of the first model, in *kept (caller frees;
 * NUL-terminated), without the columns where old files have an id code and line
 * numbers. So nothing else in a file can make the reading fail, and what would
 * be read as a wrong number is refused: gemmi takes a coordinate that is no
 * number for 0. *n_model counts the models. path is for messages.
 * Errors: TSR_E_DATA (no atom record; a short one; a coordinate or residue
 * number that is no number), with the line. */
tsr_status tsr_pdb_first_model(const char *path, const char *text, size_t size,
                               char **kept, size_t *kept_size, int *n_model,
                               tsr_err *err);

#endif
