/* What training and evaluation of three-component tables need of one structure:
 * its partial profiles over all atoms, and the pair sums of which any table
 * with the same exposures makes partial profiles (model/component_table.h).
 *
 * All atoms: solute and displaced solvent as tsr_atom_contrast_amplitude has
 * them, hydration the contrast of one water (f_O + 2 f_H less what it
 * displaces) times the exposed share of the atom's sphere, of its displaced
 * volume, to a probe of 1.8 Angstrom. Schneidman-Duhovny et al. 2013. */
#ifndef TSR_MODEL_COMPONENT_TARGET_H
#define TSR_MODEL_COMPONENT_TARGET_H

#include "io/structure.h"
#include "model/component_table.h"

#include <stddef.h>

typedef struct {
    tsr_body_model model;
    int n_type, n_q;
    double dq_inv_ang;
    const tsr_exposure_model *exposure; /* borrowed */
} tsr_component_grid;

/* Where things are in a target, one array of doubles. */
typedef struct {
    size_t atoms;    /* [TSR_N_COMP_PAIR][n_q] electrons squared */
    size_t radius;   /* [1] mean radius of the atoms, Angstrom */
    size_t count;    /* [n_type] bodies */
    size_t exposed;  /* [n_type] sum of e */
    size_t exposed2; /* [n_type] sum of e^2 */
    size_t pairs;    /* [n_type (n_type + 1) / 2][n_q] sum of sinc(q r) */
    size_t wet;      /* [n_type][n_type][n_q] of t, s: sum of e_s sinc(q r),
                        every pair of other bodies from both sides */
    size_t wet2;     /* as pairs: sum of e_t e_s sinc(q r) */
    size_t length;
} tsr_component_layout;

tsr_component_layout tsr_component_layout_of(const tsr_component_grid *grid);

/* Offset of the pair of types in pairs and wet2, and of t, s in wet. */
size_t tsr_component_pair_at(const tsr_component_grid *grid, int t, int s);
size_t tsr_component_wet_at(const tsr_component_grid *grid, int t, int s);

/* Amplitude of one exposed atom's hydration, electrons. */
double tsr_component_water(double q_inv_ang);

/* Exposed shares of the atoms of a structure's complete residues, in the order
 * of tsr_amino_table within each: share [n_atom of the structure] out. Errors:
 * TSR_E_NOMEM, TSR_E_NUMERIC. */
tsr_status tsr_component_shares(const tsr_structure *structure, double *share,
                                tsr_err *err);

/* Fills a target from the complete residues; distances as in
 * tsr_target_fill. Errors: TSR_E_NOMEM, TSR_E_DATA (no complete residue). */
tsr_status tsr_component_target_fill(const tsr_component_grid *grid,
                                     const tsr_structure *structure,
                                     double *target, tsr_err *err);

/* The partial profiles, with S_ab, that a table makes of a target.
 * amplitude [TSR_N_COMP][n_type][n_q], excess [TSR_N_COMP_PAIR][n_type][n_q],
 * partial   [TSR_N_COMP_PAIR][n_q] out */
void tsr_component_target_partials(const tsr_component_grid *grid,
                                   const double *target,
                                   const double *amplitude,
                                   const double *excess, double *partial);

#endif
