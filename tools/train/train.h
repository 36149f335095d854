/* tessera train: makes the tables of data/ from folders of structures. */
#ifndef TSR_TRAIN_TRAIN_H
#define TSR_TRAIN_TRAIN_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"
#include "molecule/prior_table.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"

/* ---- residues ----
 *
 * The atoms of a residue, matched with the table of amino acids
 * (tsr_amino_table), and the centres of its bodies. */

typedef struct {
    tsr_amino amino;
    int n_missing; /* atoms of the table that the structure lacks */
    const double *xyz[TSR_MAX_RESIDUE_ATOM]; /* Angstrom, in the order of the
                                                table; NULL: missing */
} tsr_residue_atoms;

/* Matches the atoms of a residue; out->xyz point into the structure. OXT and
 * other atoms that the table lacks are ignored. Returns 0, or -1 where the
 * residue is not one of the 20 amino acids. */
int tsr_residue_atoms_find(const tsr_structure *structure,
                           const tsr_residue_record *residue,
                           tsr_residue_atoms *out);

/* The atoms of one body, as indices into the table of amino acids: index
 * [TSR_MAX_RESIDUE_ATOM] out. Returns their number. */
int tsr_body_atoms(tsr_body_model model, tsr_amino amino, int body,
                   int index[TSR_MAX_RESIDUE_ATOM]);

/* The mass-weighted centre of a body: centre [3] out, Angstrom. Returns 0, or
 * -1 (centre unchanged) where an atom of the body is missing. */
int tsr_body_centre(tsr_body_model model, const tsr_residue_atoms *atoms,
                    int body, double centre[3]);

/* The mass-weighted centre of the atoms beyond CB, whichever the body model.
 * Returns -1 also for ALA and GLY. */
int tsr_side_chain_centre(const tsr_residue_atoms *atoms, double centre[3]);

/* Index of the unordered pair of types (t, s), below n (n + 1) / 2 for n types.
 */
static inline size_t tsr_pair_index(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

/* ---- structure files ---- */

/* A fold over structure files: `visit` turns each structure into a part, `add`
 * adds the parts in the order of the files. Several threads read and visit
 * files, and the total does not depend on their number. */

/* Computes the part of one structure; called by several threads at once. */
typedef tsr_status tsr_structure_visit(const tsr_structure *structure,
                                       const void *context, void *part,
                                       tsr_err *err);

typedef struct {
    size_t part_size; /* bytes of a part, which `visit` gets zeroed */
    tsr_structure_visit *visit;
    /* Adds a part to the total; called in the order of the files. */
    void (*add)(const void *context, void *total, const void *part);
    /* Frees what a part owns; NULL: nothing. Also called after an error, with a
     * part of zeroes if it was not visited. */
    void (*clear)(void *part);
    const void *context;
} tsr_structure_fold_type;

/* Runs a fold. n_thread 0: one thread for each processor. An error is that of
 * the first file, in their order, that cannot be read or visited. */
tsr_status tsr_structure_fold(const tsr_structure_fold_type *type, int n_path,
                              const char *const *path, int n_thread,
                              void *total, tsr_log *log, tsr_err *err);

/* The lines of a table's heading that describe its training: program, numbers
 * of residues used and skipped, names of the files. Caller frees; NULL when out
 * of memory. */
char *tsr_structure_source(int n_path, const char *const *path, long n_used,
                           long n_skipped);

/* "<title>: <n_path>" and the base names without endings, in lines of at most
 * 76 characters. Caller frees; NULL when out of memory. */
char *tsr_structure_names(const char *title, int n_path,
                          const char *const *path);

/* Returns 1 where the heading `source` (may be NULL) lists the base name of
 * `path` under "<title>: ". */
int tsr_structure_is_listed(const char *source, const char *title,
                            const char *path);

/* Paths of files, owned by the pool. */
typedef struct {
    tsr_pool pool;
    int n;
    char **path; /* [n] */
} tsr_path_list;

/* Lists the structure files (*.pdb, *.ent, *.cif, each also .gz) of the folders
 * among input [n_input], without subfolders; an input that is not a folder is
 * taken as a file. The list is sorted by file name, then by path. Errors:
 * TSR_E_NOINPUT (an input is missing, or a folder has no structure),
 * TSR_E_NOMEM. */
tsr_status tsr_path_list_collect(tsr_path_list *list, int n_input,
                                 const char *const *input, tsr_err *err);

/* Splits a sorted list: every `every`-th file (the sixth, the twelfth, ... for
 * 6) goes to `test`, the others to `train`; 0: none to test. train, test
 * [list->n] out, borrowed from the list. */
void tsr_path_list_split(const tsr_path_list *list, int every, int *n_train,
                         const char **train, int *n_test, const char **test);

/* Grid and split of the shipped tables: q_k = k 0.01/Angstrom up to 1, every
 * sixth structure held out. */
enum { TSR_TRAIN_N_Q = 101, TSR_TRAIN_HOLD_OUT = 6 };
#define TSR_TRAIN_DQ 0.01

/* Trains a new table on structure files: F and E are averages over the
 * occurrences of each type; with three components the curves of exposure are
 * fitted as well. Residues that lack atoms are skipped; OXT of a chain and the
 * extra hydrogens of its first N are not counted. n_thread 0: one thread for
 * each processor; the result does not depend on their number. After an error
 * the table must not be used. Errors: those of reading; TSR_E_DATA where a type
 * never occurs; TSR_E_NUMERIC; TSR_E_NOMEM. */
tsr_status tsr_form_factor_train(tsr_form_factor_table *table, int n_path,
                                 const char *const *path, int n_thread,
                                 tsr_log *log, tsr_err *err);

/* Refines a trained table on structure files (those of the training): changes F
 * and E by small amounts, smooth in q, so that the relative errors of I(q)
 * against all atoms become least. The contrast is refined first, then displaced
 * solvent and hydration, over a few values of c1 and c2. Needs about 0.2 MB of
 * memory for each structure, 0.5 MB for three components. After an error the
 * table must not be used. Errors: those of reading; TSR_E_NOMEM, TSR_E_NUMERIC
 * (no convergence). */
tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err);

/* The inverse of tsr_form_factor_fold: changes the solute of a table of three
 * components such that the table folds to `folded`. */
void tsr_form_factor_unfold(const tsr_form_factor_table *folded,
                            tsr_form_factor_table *table);

/* Fits the prior's densities and contact distances to structure files, for the
 * classes and types of molecule/prior_table.h. Errors: those of reading and of
 * the fits. */
tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err);

typedef struct {
    tsr_body_model model;
    int n_comp; /* 1; or 3, with displaced solvent and hydration apart, a table
                   that folds to that of one component */
    int hold_out;        /* as `every` of tsr_path_list_split */
    int n_thread;        /* 0: one for each processor */
    const char *command; /* written into the heading of the table */
    const char *output;  /* path of the table */
} tsr_form_factor_training;

/* Trains and refines a table on the files of input [n_input] except those held
 * out, and writes it with a heading that lists both. Errors: those of
 * collecting, training and writing. */
tsr_status tsr_train_form_factors(int n_input, const char *const *input,
                                  const tsr_form_factor_training *training,
                                  tsr_log *log, tsr_err *err);

/* Trains the prior on all files of input [n_input] and writes its table. Every
 * sixth file is held out only to choose the sizes of the mixtures. */
tsr_status tsr_train_priors(int n_input, const char *const *input, int n_thread,
                            const char *command, const char *output,
                            tsr_log *log, tsr_err *err);

/* ---- writing tables ----
 *
 * Writes the files of data/, which molecule/prior_table.h and
 * scattering/form_factor.h read. A temporary file is renamed when it is
 * complete. */

/* Replaces the heading *source by formatted text; the arguments may include the
 * old heading. Errors: TSR_E_NOMEM. */
tsr_status tsr_table_set_heading(char **source, tsr_err *err,
                                 const char *format, ...) TSR_PRINTF(3, 4);

/* Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err);
tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err);

/* ---- form factors: atoms ---- */

/* Amplitude of the solvent that an atom with its hydrogens displaces, rho0 V
 * exp(-q^2 V^(2/3) / 4 pi) with V as below, and the radius (Angstrom) of a
 * sphere of volume V. */
double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang);
double tsr_atom_radius(int z, int n_hydrogen);

/* Contrast amplitude of an atom with its hydrogens in water: f_X + n_H f_H -
 * rho0 V exp(-q^2 V^(2/3) / 4 pi), rho0 = 0.334 e/A^3, V = V_X + n_H V_H: H
 * 5.15, C 16.44, N 2.49, O 9.13, S 19.86 A^3 (Fraser et al. 1978). NaN for an
 * element without a volume. */
double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang);

/* Hydration amplitude of a wholly exposed atom: the contrast amplitude of one
 * water molecule. */
double tsr_component_water(double q_inv_ang);

/* ---- exposures ---- */

/* Histogram of one type over the number of neighbours, in bins of 0.1: bins
 * [TSR_EXPOSURE_N_BIN][2], number of bodies and sum of their exposures.
 * tsr_exposure_bin returns the bin of `count` neighbours. */
enum { TSR_EXPOSURE_N_BIN = 600 };
double *tsr_exposure_bin(double *bins, double count);

/* Fits the curve of exposure against neighbours (scattering/form_factor.h) of
 * one type to its histogram, by least squares. All bodies of a bin count at its
 * centre. Errors: TSR_E_NUMERIC (no minimum). */
tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err);

/* ---- targets ----
 *
 * A target holds what training and evaluation need of one structure: partial
 * profiles over all atoms, and pair sums from which any table with the same
 * exposure model gives profiles of bodies (scattering/form_factor.h). The
 * exposure of a body is the sum over its atoms, shifted outwards by
 * tsr_exposure_displace.
 *
 * The model of all atoms: solute and displaced solvent as in
 * tsr_atom_contrast_amplitude; hydration is the contrast amplitude of one water
 * molecule (f_O + 2 f_H less its displaced solvent) times the share of the
 * atom's sphere, of volume V, that a probe of 1.8 Angstrom can touch
 * (Schneidman-Duhovny et al. 2013). With one component: the contrast alone,
 * without exposures. */

typedef struct {
    tsr_body_model model;
    int n_comp, n_type, n_q;
    double dq_inv_ang;
    const tsr_exposure_model *exposure; /* borrowed */
} tsr_target_grid;

/* The grid of a table, with another grid of q. */
tsr_target_grid tsr_target_grid_of(const tsr_form_factor_table *table, int n_q,
                                   double dq_inv_ang);

/* Offsets of the parts of a target, an array of `length` doubles. Components
 * pair up with 0, 1 or 2 hydration indices; moment and sum have an array for
 * each of the three cases. e: exposure of a body. With one component moment[1]
 * and moment[2] are zeroes, sum[1] and sum[2] are empty. */
typedef struct {
    size_t atoms;  /* [pairs of components][n_q] partial profiles of all atoms,
                      electrons squared */
    size_t radius; /* [1] mean radius of the atoms, Angstrom */
    size_t moment[3]; /* [n_type] sums over bodies of 1, e, e^2 */
    size_t
        sum[3]; /* 0: [n_type (n_type + 1) / 2][n_q] sum over pairs of bodies i,
                   j of types t, s of sinc(q r_ij); 1: [n_type][n_type][n_q] sum
                   over i of type t and j != i of type s of e_j sinc(q r_ij); 2:
                   as 0, of e_i e_j sinc(q r_ij) */
    size_t length;
} tsr_target_layout;

tsr_target_layout tsr_target_layout_of(const tsr_target_grid *grid);

/* Offset of the pair of types (t, s) in sum[0] and sum[2]. */
size_t tsr_target_pair_at(const tsr_target_grid *grid, int t, int s);

/* Computes the target of a structure, from its complete residues: target
 * [length] out. Distances are binned at 0.05 Angstrom. Errors: TSR_E_NOMEM,
 * TSR_E_NUMERIC, TSR_E_DATA (no complete residue, or, with one component, no
 * positive intensity at some q). */
tsr_status tsr_target_compute(const tsr_target_grid *grid,
                              const tsr_structure *structure, double *target,
                              tsr_err *err);

/* Partial profiles of the bodies of a target, for the amplitudes of a table.
 *
 *     amplitude [n_comp][n_type][n_q] F, electrons
 *     excess    [pairs of components][n_type][n_q] E; NULL: without S(q)
 *     partial   [pairs of components][n_q] out, electrons squared */
void tsr_target_partials(const tsr_target_grid *grid, const double *target,
                         const double *amplitude, const double *excess,
                         double *partial);

/* Exposed shares of the atoms of the complete residues of a structure, each
 * residue in the order of tsr_amino_table: share [n_atom of the structure] out.
 * Errors: TSR_E_NOMEM, TSR_E_NUMERIC. */
tsr_status tsr_target_exposure(const tsr_structure *structure, double *share,
                               tsr_err *err);

/* ---- evaluation ----
 *
 * Errors of coarse-grained profiles (docs/forward-model.md): the relative error
 * of I(q) against all atoms, by structure and q, with the scale that minimises
 * it below q = 0.1/Angstrom. */

/* q_k = k 0.01/Angstrom, up to 0.5, and four bands of q. */
enum { TSR_ERROR_N_Q = 51, TSR_ERROR_N_BAND = 4 };
#define TSR_ERROR_DQ 0.01

/* Bounds of the bands: 0, 0.1, 0.2, 0.35, 0.5 1/Angstrom. A q on a bound
 * belongs to the upper band, 0.5 to the last band. */
extern const double tsr_error_band[TSR_ERROR_N_BAND + 1];

/* Errors summarised over structures. */
typedef struct {
    double
        band[TSR_ERROR_N_BAND]; /* median of the rms relative error in a band */
    double high[TSR_ERROR_N_BAND]; /* 95 % quantile of the same */
    double
        curve[TSR_ERROR_N_Q]; /* median of the absolute relative error at q_k */
} tsr_error_summary;

/* Relative error of a profile, c model / atoms - 1 with the best scale c: error
 * [TSR_ERROR_N_Q] out. */
void tsr_error_relative(const double *model, const double *atoms,
                        double *error);

/* Summarises errors over n_structure >= 1 structures; those of structure m,
 * [TSR_ERROR_N_Q], begin at error + m * stride. Errors: TSR_E_NOMEM. */
tsr_status tsr_error_summarise(int n_structure, const double *error,
                               size_t stride, tsr_error_summary *summary,
                               tsr_err *err);

/* A table and the conditions of its evaluation: with or without S(q) for one
 * component, c1 and c2 for three. */
typedef struct {
    const tsr_form_factor_table *table; /* borrowed */
    int with_self;                      /* 0: without S(q) */
    double c1, c2;
} tsr_evaluation;

/* Evaluates tables on structure files: summary [n] out. Pair sums are shared by
 * consecutive evaluations of the same table, so evaluations should be sorted by
 * table. n_thread as in training. Errors: those of reading; TSR_E_RANGE where a
 * table ends before 0.5/Angstrom; TSR_E_NOMEM. */
tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err);

/* ---- samples for the prior ----
 *
 * Observations of residues: torsions by Ramachandran class, side-chain centres
 * and bond angles by amino acid.
 *
 * Torsions are those of residues with N, CA, C and O and a peptide bond (C-N
 * below 2 A) on both sides, except D residues (CB on the wrong side of the
 * plane N-CA-C) and strained ones (a peptide bond more than 30 degrees from
 * planar, or N-CA-C outside 95 to 127 degrees). Bond angles are those of the
 * same residues. Side-chain centres are those of all residues with N, CA, C and
 * all atoms beyond CB. */

/* Observations of one kind, in the order of the structures. */
typedef struct {
    int dim; /* numbers in an observation; 0: no observations */
    long n, n_reserved;
    double *x; /* [n][dim] */
    int *file; /* [n] index of the structure */
} tsr_sample;

/* The observations of all kinds. To be zeroed before use; the pool owns the
 * arrays. */
typedef struct {
    tsr_pool pool;
    int n_file;
    tsr_sample torsion[TSR_N_RAMA]; /* phi, psi, rad */
    tsr_sample side[TSR_N_AMINO];   /* Angstrom */
    tsr_sample angle[TSR_N_AMINO];  /* N-CA-C, rad */
    long n_mirrored, n_strained;    /* residues excluded from torsions */
} tsr_prior_sample;

/* Adds the residues of one structure. Errors: TSR_E_NOMEM, in the pool as well.
 */
tsr_status tsr_prior_sample_visit(tsr_prior_sample *sample,
                                  const tsr_structure *structure, tsr_err *err);

/* Appends another sample; its structures are numbered after those of `to`. Out
 * of memory: recorded in the pool of `to`. */
void tsr_prior_sample_add(tsr_prior_sample *to, const tsr_prior_sample *from);

/* Robust mean and standard deviation: values farther from the median than four
 * times 1.4826 median absolute deviations are excluded. Errors: TSR_E_NOMEM. */
tsr_status tsr_angle_gaussian_of(const tsr_sample *sample,
                                 tsr_angle_gaussian *out, tsr_err *err);

/* ---- mixtures ----
 *
 * Mixture densities fitted to observations, with the number of parts chosen by
 * cross-validation. Every sixth structure is held out, and mixtures of every
 * number of parts are fitted to the others. Chosen is the smallest number whose
 * mean log density of the held-out observations is below the best by at most
 * 0.002 nat or one standard error of the difference (between structures). A
 * mixture of that many parts is then fitted to all observations. */
typedef struct {
    int dim;         /* numbers in an observation */
    int least, most; /* bounds of the number of parts */
    size_t size;     /* bytes of a mixture */
    /* Fits n_part parts to x [n][dim]. effort: number of random starts that are
     * iterated to convergence. */
    tsr_status (*fit)(long n, const double *x, int n_part, int effort,
                      void *mixture, tsr_err *err);
    /* Log densities of x [n][dim]: value [n] out, nat. */
    tsr_status (*evaluate)(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err);
} tsr_mixture_type;

/* Torsions: mixtures of bivariate von Mises distributions of phi, psi (rad). A
 * mixture is a tsr_torsion_mixture. */
extern const tsr_mixture_type tsr_mixture_torsion;
#define TSR_UNIFORM_WEIGHT 1e-3 /* smallest weight of the uniform part */
#define TSR_MAX_KAPPA 500.0

/* Side-chain centres: mixtures of Gaussians, in the frame of N-CA-C (Angstrom).
 * A mixture is a tsr_side_mixture. */
extern const tsr_mixture_type tsr_mixture_side;
#define TSR_LEAST_SIDE_SD \
    0.05 /* smallest standard deviation, Angstrom, in any direction */
#define TSR_BROAD_WEIGHT 1e-3 /* smallest weight of the broad part */

enum { TSR_MIXTURE_MOST = 24, TSR_MIXTURE_HOLD_OUT = 6 };

typedef struct {
    const char *name; /* for the log */
    const tsr_mixture_type *type;
    const tsr_sample *sample;
    void *mixture; /* out [type->size bytes] */
    /* out */
    int n_part;
    long n_held_out;
    /* Mean log density of the held-out observations, nat, by number of parts;
     * NaN where there are too few observations to choose, and then n_part is
     * the smallest. */
    double held_out[TSR_MIXTURE_MOST + 1];
} tsr_mixture_task;

/* Trains all mixtures with n_thread threads (0: one for each processor). The
 * result does not depend on the number of threads. Errors: TSR_E_NOMEM. */
tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err);

#endif
