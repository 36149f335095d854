/* Partial profiles of a structure file, whatever stands for the molecule: the
 * place where a kind of bodies becomes numbers that a fit can use; a new kind
 * is a case here and nowhere else. */
#ifndef TSR_CLI_PROFILE_PARTIALS_H
#define TSR_CLI_PROFILE_PARTIALS_H

#include "core/log.h"
#include "core/status.h"
#include "scattering/contrast.h"

typedef enum {
    TSR_PROFILE_ATOMS,
    TSR_PROFILE_TWO,
    TSR_PROFILE_ONE
} tsr_profile_bodies;

/* What stays from one structure to the next: device, program, tables. */
typedef struct tsr_profile_maker tsr_profile_maker;

typedef struct {
    char *path;
    int n_body; /* atoms or bodies */
    tsr_partials partials;
    double rg_ang, d_max_ang; /* of the atoms or bodies, by mass */
    double seconds;           /* in the Debye sum */
} tsr_profile_structure;

/* device: as --device takes it, or "reference"; q_max: of the curves that will
 * be asked for. form_factors: a table instead of the shipped one, for bodies
 * one and two; NULL: the shipped one, of three components. A table of one
 * component, own or published, gives partials of one: no c1, no c2.
 * Errors: TSR_E_DEVICE, TSR_E_NOINPUT, TSR_E_USAGE. */
tsr_status tsr_profile_maker_new(tsr_profile_bodies bodies, const char *device,
                                 double q_max_inv_ang, const char *form_factors,
                                 tsr_log *log, tsr_profile_maker **out,
                                 tsr_err *err);
void tsr_profile_maker_free(tsr_profile_maker *maker);

/* Reads and computes. What the file holds and what was assumed goes to the log,
 * progress too. Bodies one and two refuse (TSR_E_DATA) nucleotides, sugars,
 * ligands and unknown residues with a list of them. Errors: those of reading,
 * TSR_E_DEVICE. The caller clears it, also after an error. */
tsr_status tsr_profile_compute(tsr_profile_maker *maker, const char *path,
                               tsr_profile_structure *out, tsr_err *err);
void tsr_profile_structure_clear(tsr_profile_structure *structure);

/* What computes: "reference", or the device and kernel; for the log. */
const char *tsr_profile_maker_describe(const tsr_profile_maker *maker);

#endif
