/* Conformations as text, model after model, into a stream: PDB, mmCIF, XYZ. */
#ifndef TSR_IO_MODEL_WRITE_H
#define TSR_IO_MODEL_WRITE_H

#include "io/model_atoms.h"

#include <stdio.h>

typedef enum { TSR_MODEL_PDB, TSR_MODEL_CIF, TSR_MODEL_XYZ } tsr_model_format;

typedef struct {
    tsr_model_format format;
    const char *name; /* of the entry: letters, digits, - and _ */
    const tsr_model_atoms *atoms;
    const double *b; /* [n_atom] last column of PDB; NULL: 0 */
} tsr_model_spec;

/* What comes before the first model; `remark`: lines, may be NULL. Errors:
 * TSR_E_DATA (more than 99,999 atoms in PDB). */
tsr_status tsr_model_begin(const tsr_model_spec *spec, const char *remark,
                           FILE *out, tsr_err *err);

/* One model: number from 1, label one line, xyz [n_atom][3] Angstrom. Errors:
 * TSR_E_DATA (a coordinate that has no room in PDB, or is not finite). */
tsr_status tsr_model_write(const tsr_model_spec *spec, int number,
                           const char *label, const double (*xyz)[3], FILE *out,
                           tsr_err *err);

void tsr_model_end(const tsr_model_spec *spec, FILE *out);

#endif
