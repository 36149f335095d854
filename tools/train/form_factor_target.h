/* What training and evaluation of form factors need of one structure: its
 * profiles over all atoms, and the pair sums of which any table with the same
 * neighbours makes profiles of bodies (scattering/form_factor.h), whose
 * exposures are those of their atoms, carried outside.
 *
 * All atoms: solute and displaced solvent as tsr_atom_contrast_amplitude has
 * them, hydration the contrast of one water (f_O + 2 f_H less what it
 * displaces) times the exposed share of the atom's sphere, of its displaced
 * volume, to a probe of 1.8 Angstrom. Schneidman-Duhovny et al. 2013. With one
 * component the contrast alone, and nothing of exposures. */
#ifndef TSR_TRAIN_FORM_FACTOR_TARGET_H
#define TSR_TRAIN_FORM_FACTOR_TARGET_H

#include "molecule/residue_atoms.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"

#include <stddef.h>

typedef struct {
    tsr_body_model model;
    int n_comp, n_type, n_q;
    double dq_inv_ang;
    const tsr_exposure_model *exposure; /* borrowed */
} tsr_target_grid;

/* That of a table, but for its points of q. */
tsr_target_grid tsr_target_grid_of(const tsr_form_factor_table *table, int n_q,
                                   double dq_inv_ang);

/* Where things are in a target, one array of doubles. With one component those
 * of exposures are zeroes, wet and wet2 empty. */
typedef struct {
    size_t atoms;    /* [pairs of components][n_q] electrons squared */
    size_t radius;   /* [1] mean radius of the atoms, Angstrom */
    size_t count;    /* [n_type] bodies */
    size_t exposed;  /* [n_type] sum of e, as it is carried */
    size_t exposed2; /* [n_type] sum of e^2 */
    size_t pairs;    /* [n_type (n_type + 1) / 2][n_q] sum of sinc(q r) */
    size_t wet;      /* [n_type][n_type][n_q] of t, s: sum of e_s sinc(q r),
                        every pair of other bodies from both sides */
    size_t wet2;     /* as pairs: sum of e_t e_s sinc(q r) */
    size_t length;
} tsr_target_layout;

tsr_target_layout tsr_target_layout_of(const tsr_target_grid *grid);

/* Offset of the pair of types in pairs and wet2, and of t, s in wet. */
size_t tsr_target_pair_at(const tsr_target_grid *grid, int t, int s);
size_t tsr_target_wet_at(const tsr_target_grid *grid, int t, int s);

/* Fills a target from the complete residues; distances go through bins
 * of 0.05 Angstrom. Errors: TSR_E_NOMEM, TSR_E_NUMERIC, TSR_E_DATA (no
 * complete residue, or, of one component, no intensity at some q). */
tsr_status tsr_target_fill(const tsr_target_grid *grid,
                           const tsr_structure *structure, double *target,
                           tsr_err *err);

/* The partial profiles that a table makes of a target.
 * amplitude [n_comp][n_type][n_q]
 * excess    [pairs of components][n_type][n_q]; NULL: without S(q)
 * partial   [pairs of components][n_q] out, electrons squared */
void tsr_target_partials(const tsr_target_grid *grid, const double *target,
                         const double *amplitude, const double *excess,
                         double *partial);

/* Intensity from partial profiles at one q, at steps of `stride`: with one
 * component what is there, with three that of G and c2. */
double tsr_target_intensity(const tsr_target_grid *grid, const double *partial,
                            size_t stride, double g, double c2);

/* Reads the atoms of a residue: 1 where it has all of them. */
int tsr_target_complete(const tsr_structure *structure, int residue,
                        tsr_residue_atoms *atoms);

/* Exposed shares of the atoms of a structure's complete residues, in the order
 * of tsr_amino_table within each: share [n_atom of the structure] out. Errors:
 * TSR_E_NOMEM, TSR_E_NUMERIC. */
tsr_status tsr_target_shares(const tsr_structure *structure, double *share,
                             tsr_err *err);

/* Keeps parts in the order of the files: what tsr_structure_fold adds to where
 * every structure's part is wanted, not their sum. */
typedef struct {
    int n;         /* parts so far */
    size_t length; /* of a part */
    double *part;  /* [n_path][length] */
} tsr_target_parts;

void tsr_target_keep(const void *context, void *parts, const void *part);

#endif
