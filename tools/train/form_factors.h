/* What a table of form factors is trained on: atoms and exposures. */
#ifndef TSR_TRAIN_FORM_FACTORS_H
#define TSR_TRAIN_FORM_FACTORS_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "train/residue_atoms.h"

#include <stddef.h>

/* ---- atoms ---- */

/* rho0 V exp(-q^2 V^(2/3) / 4 pi) below, and the radius (Angstrom) of a sphere
 * of the volume V. */
double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang);
double tsr_atom_radius(int z, int n_hydrogen);

/* Amplitude of one atom with its hydrogens less the water it displaces:
 * f_X + n_H f_H - rho0 V exp(-q^2 V^(2/3) / 4 pi), rho0 = 0.334 e/A^3,
 * V = V_X + n_H V_H: H 5.15, C 16.44, N 2.49, O 9.13, S 19.86 A^3 (Fraser et
 * al. 1978). NaN for an element without a volume. */
double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang);

/* Amplitude of the hydration of one atom that is wholly exposed: the contrast
 * of one water. */
double tsr_component_water(double q_inv_ang);

/* ---- exposures ---- */

/* Counts and exposures of one type by count, in bins of 0.1: what its curve is
 * fitted to. */
enum { TSR_EXPOSURE_N_BIN = 600 };
double *tsr_exposure_bin(double *bins, double count); /* bins [N_BIN][2] */

/* The curve of least squares through sums (number, exposure) [N_BIN][2] of one
 * type; the middle of the number in a bin stands for all. Errors:
 * TSR_E_NUMERIC (no minimum). */
tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err);

/* ---- what a table is trained on ----
 *
 * What training and evaluation of form factors need of one structure: its
 * profiles over all atoms, and the pair sums of which any table with the same
 * neighbours makes profiles of bodies (scattering/form_factor.h), whose
 * exposures are those of their atoms, carried outside.
 *
 * All atoms: solute and displaced solvent as tsr_atom_contrast_amplitude has
 * them, hydration the contrast of one water (f_O + 2 f_H less what it
 * displaces) times the exposed share of the atom's sphere, of its displaced
 * volume, to a probe of 1.8 Angstrom. Schneidman-Duhovny et al. 2013. With one
 * component the contrast alone, and nothing of exposures. */
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

/* ---- evaluation ----
 *
 * How far coarse-grained profiles are from those of all atoms (DESIGN 3): the
 * relative error of I(q), with the scale that makes it least below
 * q = 0.1/Angstrom, by structure and q. */

/* q_k = k 0.01/Angstrom, to 0.5. */
enum { TSR_ERROR_N_Q = 51, TSR_ERROR_N_BAND = 4 };
#define TSR_ERROR_DQ 0.01

/* 0, 0.1, 0.2, 0.35, 0.5 1/Angstrom; q on a bound belongs to the upper band,
 * 0.5 to the last. */
extern const double tsr_error_band[TSR_ERROR_N_BAND + 1];

/* Over structures: medians, and what 95 % of them are below. */
typedef struct {
    double band[TSR_ERROR_N_BAND]; /* of the rms relative error in a band */
    double high[TSR_ERROR_N_BAND]; /* 95 % of the same */
    double curve[TSR_ERROR_N_Q];   /* of the absolute relative error at q_k */
} tsr_error_summary;

/* error [TSR_ERROR_N_Q] out: c model / atoms - 1. */
void tsr_error_relative(const double *model, const double *atoms,
                        double *error);

/* error [n_structure][TSR_ERROR_N_Q] of structure m at m * stride; n_structure
 * is at least 1. Errors: TSR_E_NOMEM. */
tsr_status tsr_error_summarise(int n_structure, const double *error,
                               size_t stride, tsr_error_summary *summary,
                               tsr_err *err);

/* A table, and how its bodies and all atoms scatter: with one component with
 * S(q) or without, with three at c1 and c2. */
typedef struct {
    const tsr_form_factor_table *table; /* borrowed */
    int with_self;                      /* 0: without S(q) */
    double c1, c2;
} tsr_evaluation;

/* Evaluates tables on structure files: summary [n] out. Rows of one table are
 * best next to each other. n_thread as in training. Errors: those of reading;
 * TSR_E_RANGE where a table ends before 0.5/Angstrom; TSR_E_NOMEM. */
tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err);

#endif
