/* tessera train: remaking the tables of data/ from folders of structures. */
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
 * A residue of a structure laid beside the table of amino acids: which atoms it
 * has, and where its bodies are. */

typedef struct {
    tsr_amino amino;
    int n_missing;                           /* atoms of the table */
    const double *xyz[TSR_MAX_RESIDUE_ATOM]; /* Angstrom, in the table's
                                                order; NULL: missing */
} tsr_residue_atoms;

/* Finds the atoms; xyz point into the structure. OXT and atoms that the table
 * lacks are passed over. Returns 0; -1 where the name is not one of the 20. */
int tsr_residue_atoms_find(const tsr_structure *structure,
                           const tsr_residue_record *residue,
                           tsr_residue_atoms *out);

/* The atoms of one body: index [TSR_MAX_RESIDUE_ATOM] out, into the table.
 * Returns how many. */
int tsr_body_atoms(tsr_body_model model, tsr_amino amino, int body,
                   int index[TSR_MAX_RESIDUE_ATOM]);

/* Mass-weighted centre of a body. Returns 0, or -1 where an atom of the body is
 * missing (centre untouched). */
int tsr_body_centre(tsr_body_model model, const tsr_residue_atoms *atoms,
                    int body, double centre[3]);

/* The same for the atoms beyond CB, in any body model; -1 for ALA and GLY. */
int tsr_side_chain_centre(const tsr_residue_atoms *atoms, double centre[3]);

/* Number of the pair of types, in either order: of n types n (n + 1) / 2. */
static inline size_t tsr_pair_index(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

/* ---- structure files ---- */

/* One pass over many structure files: every file gives a part, the parts are
 * added in the order of the files. Files are read by several threads; the sum
 * does not depend on how many. */

/* Fills the part of one structure; called by several threads at once. */
typedef tsr_status tsr_structure_visit(const tsr_structure *structure,
                                       const void *context, void *part,
                                       tsr_err *err);

typedef struct {
    size_t part_size; /* bytes; a part begins as zeroes */
    tsr_structure_visit *visit;
    /* Adds a part to the total; called in the order of the files. */
    void (*add)(const void *context, void *total, const void *part);
    /* Frees what a part has beside itself, also after an error; NULL: nothing.
     * A part that was not visited is zeroes. */
    void (*clear)(void *part);
    const void *context;
} tsr_structure_fold_type;

/* n_thread 0: as many as there are processors. Stops at the first file, in
 * their order, that cannot be read or visited, with its error. */
tsr_status tsr_structure_fold(const tsr_structure_fold_type *type, int n_path,
                              const char *const *path, int n_thread,
                              void *total, tsr_log *log, tsr_err *err);

/* What a table's heading says of its training: the program, how many residues
 * were used and left out, the base names of the files. Caller frees; NULL when
 * out of memory. */
char *tsr_structure_source(int n_path, const char *const *path, long n_used,
                           long n_skipped);

/* "<title>: <n_path>" and the base names in lines of at most 76 characters.
 * Caller frees; NULL when out of memory. */
char *tsr_structure_names(const char *title, int n_path,
                          const char *const *path);

/* 1 where a heading lists the base name of `path` under "<title>: ". `source`
 * may be NULL. */
int tsr_structure_is_listed(const char *source, const char *title,
                            const char *path);

/* Its pool owns the paths. */
typedef struct {
    tsr_pool pool;
    int n;
    char **path; /* [n] */
} tsr_path_list;

/* The structure files (*.pdb, *.ent, *.cif, each also .gz) of the folders, not
 * of folders within them, sorted by file name, then by path; what is named and
 * is not a folder is taken as a file. Errors: TSR_E_NOINPUT (missing, or none
 * found in a folder), TSR_E_NOMEM. */
tsr_status tsr_path_list_collect(tsr_path_list *list, int n_place,
                                 const char *const *place, tsr_err *err);

/* Of a sorted list, every `every`-th is set aside (the sixth, the twelfth, ...
 * for 6), so that what is trained on the others can be tested on it; 0: none.
 * train, test [list->n] out, borrowed from the list. */
void tsr_path_list_split(const tsr_path_list *list, int every, int *n_train,
                         const char **train, int *n_test, const char **test);

/* The tables that the program ships: q_k = k 0.01/Angstrom, to 1; every sixth
 * structure held out. */
enum { TSR_TRAIN_N_Q = 101, TSR_TRAIN_HOLD_OUT = 6 };
#define TSR_TRAIN_DQ 0.01

/* Trains a new table on structure files: averages over the occurrences of each
 * type and, for three components, the exposures' curves. Residues that lack
 * atoms are left out; a chain's OXT and the extra hydrogens of its first N are
 * not counted. `log` gets what was used and left out. n_thread 0: as many as
 * there are processors; their number does not change the result. After an error
 * the table is not to be used.
 * Errors: those of reading; TSR_E_DATA where a type never occurs;
 * TSR_E_NUMERIC; TSR_E_NOMEM. */
tsr_status tsr_form_factor_train(tsr_form_factor_table *table, int n_path,
                                 const char *const *path, int n_thread,
                                 tsr_log *log, tsr_err *err);

/* Refines a trained table on structure files (those it was trained on): F and E
 * change, smoothly in q and little, to what makes the relative errors of I(q)
 * against all atoms least; first those of the contrast and then, over a few c1
 * and c2, those of displaced solvent and hydration. Keeps some 0.2 MB a
 * structure in memory, 0.5 MB for three components. After an error the table is
 * not to be used.
 * Errors: those of reading; TSR_E_NOMEM, TSR_E_NUMERIC (no convergence). */
tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err);

/* Puts the contrast of `folded` into a table of three components: the solute
 * becomes what folds to it. */
void tsr_form_factor_unfold(const tsr_form_factor_table *folded,
                            tsr_form_factor_table *table);

/* Fits the prior to structure files: those of the classes and types that
 * priors.h lists. Errors: those of reading and of the fits. */
tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err);

typedef struct {
    tsr_body_model model;
    int n_comp;          /* 1, or 3 with displaced solvent and hydration apart,
                            which then fold to the table of one */
    int hold_out;        /* as `every` above */
    int n_thread;        /* 0: one a processor */
    const char *command; /* goes into the table's heading */
    const char *output;  /* file */
} tsr_form_factor_training;

/* Trains on the files of `place` but those held out, and writes the output,
 * whose heading names both. Errors: those of collecting, training and
 * writing. */
tsr_status tsr_train_form_factors(int n_place, const char *const *place,
                                  const tsr_form_factor_training *order,
                                  tsr_log *log, tsr_err *err);

/* The same for priors, on all files; those that would be held out choose the
 * sizes of the mixtures. */
tsr_status tsr_train_priors(int n_place, const char *const *place, int n_thread,
                            const char *command, const char *output,
                            tsr_log *log, tsr_err *err);

/* ---- table_write ----
 *
 * The files of data/, as molecule/prior_table.h and scattering/form_factor.h
 * read them. Written beside and renamed. */

/* Replaces a heading by what the format makes, which may use the one before.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_table_set_heading(char **source, tsr_err *err,
                                 const char *format, ...) TSR_PRINTF(3, 4);

/* Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err);
tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err);

/* ---- form factors: atoms ---- */

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

typedef struct {
    tsr_body_model model;
    int n_comp, n_type, n_q;
    double dq_inv_ang;
    const tsr_exposure_model *exposure; /* borrowed */
} tsr_target_grid;

/* That of a table, but for its points of q. */
tsr_target_grid tsr_target_grid_of(const tsr_form_factor_table *table, int n_q,
                                   double dq_inv_ang);

/* Where things are in a target, one array of doubles; many and sum by how many
 * of a pair of components are hydration. With one component those of exposures
 * are zeroes, and sum[1] and sum[2] are empty. */
typedef struct {
    size_t atoms;   /* [pairs of components][n_q] electrons squared */
    size_t radius;  /* [1] mean radius of the atoms, Angstrom */
    size_t many[3]; /* [n_type] bodies; sum of e, as it is carried, of e^2 */
    size_t sum[3];  /* 0, of the pair of types [n_type (n_type + 1) / 2][n_q]:
                       sum of sinc(q r); 1, of t, s [n_type][n_type][n_q]: of
                       e_s sinc(q r), every pair of other bodies from both
                       sides; 2, as 0: of e_t e_s sinc(q r) */
    size_t length;
} tsr_target_layout;

tsr_target_layout tsr_target_layout_of(const tsr_target_grid *grid);

/* Offset of the pair of types in sum[0] and sum[2]. */
size_t tsr_target_pair_at(const tsr_target_grid *grid, int t, int s);

/* Fills a target from the complete residues; distances go through bins
 * of 0.05 Angstrom. Errors: TSR_E_NOMEM, TSR_E_NUMERIC, TSR_E_DATA (no
 * complete residue, or, of one component, no intensity at some q). */
tsr_status tsr_target_compute(const tsr_target_grid *grid,
                              const tsr_structure *structure, double *target,
                              tsr_err *err);

/* The partial profiles that a table makes of a target.
 * amplitude [n_comp][n_type][n_q]
 * excess    [pairs of components][n_type][n_q]; NULL: without S(q)
 * partial   [pairs of components][n_q] out, electrons squared */
void tsr_target_partials(const tsr_target_grid *grid, const double *target,
                         const double *amplitude, const double *excess,
                         double *partial);

/* Exposed shares of the atoms of a structure's complete residues, in the order
 * of tsr_amino_table within each: share [n_atom of the structure] out. Errors:
 * TSR_E_NOMEM, TSR_E_NUMERIC. */
tsr_status tsr_target_exposure(const tsr_structure *structure, double *share,
                               tsr_err *err);

/* ---- evaluation ----
 *
 * How far coarse-grained profiles are from those of all atoms
 * (docs/forward-model.md): the relative error of I(q), with the scale that
 * makes it least below q = 0.1/Angstrom, by structure and q. */

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

/* ---- what the prior learns from ----
 *
 * Observations, residue by residue: torsions by class, side-chain
 * centres and bond angles by type.
 *
 * Torsions are those of residues with N, CA, C and O and true peptide bonds
 * (C-N below 2 A) on both sides. Left out are D residues (CB on the other side
 * of the plane N-CA-C), and strained ones: a peptide bond more than 30 degrees
 * from planar, N-CA-C outside 95 to 127 degrees. Bond angles are of the same
 * residues; side-chain centres of all that have N, CA, C and every atom beyond
 * CB. */

/* Observations of one kind, in the order of the structures. */
typedef struct {
    int dim; /* 0: there are none */
    long n, room;
    double *x; /* [n][dim] */
    int *file; /* [n] number of the structure */
} tsr_sample;

/* Begins as zeroes; its pool owns everything. */
typedef struct {
    tsr_pool pool;
    int n_file;
    tsr_sample torsion[TSR_N_RAMA]; /* phi, psi, rad */
    tsr_sample side[TSR_N_AMINO];   /* Angstrom */
    tsr_sample angle[TSR_N_AMINO];  /* N-CA-C, rad */
    long n_mirrored, n_strained;    /* left out of the torsions */
} tsr_prior_sample;

/* Adds one structure's residues, as the next file. Errors: TSR_E_NOMEM. */
tsr_status tsr_prior_sample_visit(tsr_prior_sample *sample,
                                  const tsr_structure *structure, tsr_err *err);

/* Adds all of another sample, its files after those that are there; where
 * memory is out the pool of `to` says so. */
void tsr_prior_sample_add(tsr_prior_sample *to, const tsr_prior_sample *from);

/* Mean and standard deviation of those that are left when what is more than
 * four times 1.4826 median absolute deviations from the median is taken out.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_angle_gaussian_of(const tsr_sample *sample,
                                 tsr_angle_gaussian *out, tsr_err *err);

/* ---- mixtures ----
 *
 * Mixtures trained on observations from structures, with the number of parts
 * chosen on structures held out.
 *
 * Every sixth structure, in the order of the list, is held out; mixtures of all
 * numbers of parts are fitted to the others. The number is the least whose mean
 * log density of what was held out is below the best by no more than 0.002 nat
 * or one standard error of that difference (between structures). A mixture of
 * that many parts is then fitted to all observations. */
typedef struct {
    int dim;         /* numbers an observation */
    int least, most; /* parts */
    size_t size;     /* bytes of a mixture */
    /* Fits n_part parts to x [n][dim]; effort: starts that are followed to
     * their maxima. */
    tsr_status (*fit)(long n, const double *x, int n_part, int effort,
                      void *mixture, tsr_err *err);
    /* value [n] out: log density, nat. */
    tsr_status (*evaluate)(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err);
} tsr_mixture_type;

/* Torsions: mixtures of bivariate von Mises distributions (below), of
 * observations phi, psi (rad); a mixture is a tsr_torsion_mixture. */
extern const tsr_mixture_type tsr_mixture_torsion;
#define TSR_UNIFORM_WEIGHT 1e-3 /* least of the part that is uniform */
#define TSR_MAX_KAPPA 500.0

/* Side-chain centres: mixtures of Gaussians (below), of observations in
 * the frame of N-CA-C (Angstrom); a mixture is a tsr_side_mixture. */
extern const tsr_mixture_type tsr_mixture_side;
#define TSR_LEAST_SIDE_SD 0.05 /* Angstrom, in any direction */
#define TSR_BROAD_WEIGHT 1e-3  /* least of the part that is broad */

enum { TSR_MIXTURE_MOST = 24, TSR_MIXTURE_HOLD_OUT = 6 };

typedef struct {
    const char *name; /* for the log */
    const tsr_mixture_type *type;
    const tsr_sample *sample;
    void *mixture; /* out, type->size bytes */
    /* out */
    int n_part;
    long n_held_out;
    /* mean log density, nat, of those held out, by number of parts; NaN where
     * there are too few to choose: then n_part is the least */
    double held_out[TSR_MIXTURE_MOST + 1];
} tsr_mixture_task;

/* All tasks, over n_thread threads (0: one a processor), whose number changes
 * nothing. Errors: TSR_E_NOMEM. */
tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err);

#endif
