/* libtessera: scattering profiles of structures, their fit to data, profiles
 * after moves, and runs of the sampler with their draws.
 *
 * Conventions
 * - A function that can fail returns a status, 0 on success. The message of the
 *   last failure in the calling thread is tessera_message(). A failed function
 *   sets its output handle to NULL; other outputs are then undefined.
 * - Arrays are plain, row by row, double unless stated, and belong to the
 *   caller. Sizes stand before the array. Texts are UTF-8 and end with 0.
 * - A handle is opaque. The function tessera_X_free accepts NULL. An object
 *   made from other objects keeps no reference to them unless stated.
 * - Lengths are in Angstrom, q = 4 pi sin(theta) / lambda in 1/Angstrom.
 * - Threads: every function may be called from any thread. Two threads may use
 *   different handles at the same time, and data, structures, profiles and
 *   profilers also together. A batch, draws or frames belong to one thread at a
 *   time. Runs, draws and frames of several threads need a thread-safe HDF5
 *   (Debian's is).
 * - The library prints nothing, reads no standard input, handles no signal and
 *   never ends the process. On its first use it switches the error handler of
 *   GSL off for the whole process, as the default handler aborts.
 * - New functions, and new numbers at the end of an enumeration, may be added;
 *   everything else stays while the soname stays. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TESSERA_API __attribute__((visibility("default")))
#else
#define TESSERA_API
#endif

enum {
    TESSERA_OK = 0,
    TESSERA_E_NO = 1,       /* the answer is no: not converged */
    TESSERA_E_USAGE = 2,    /* an argument that the function does not accept */
    TESSERA_E_DATA = 3,     /* bad content of a file or array */
    TESSERA_E_NOINPUT = 4,  /* missing or unreadable file */
    TESSERA_E_INTERNAL = 5, /* a fault of the library */
    TESSERA_E_NOMEM = 6,
    TESSERA_E_NUMERIC = 7, /* a number is not finite */
    TESSERA_E_RANGE = 8,   /* outside the range of the object */
    TESSERA_E_IO = 9,
    TESSERA_E_DEVICE = 10,      /* no usable device, or the device failed */
    TESSERA_E_INTERRUPTED = 11, /* stopped; the run can be resumed */
    TESSERA_E_CONFIG = 12       /* invalid configuration */
};

/* "0.3.0": the version of the library, not of this header. A fixed phrase for a
 * status. The message of the last failure in this thread, valid until the next;
 * "" before. Never NULL. */
TESSERA_API const char *tessera_version(void);
TESSERA_API const char *tessera_status_text(int status);
TESSERA_API const char *tessera_message(void);

/* ---- measured curves ---- */

typedef struct tessera_data tessera_data;

/* Reads a curve: q, I, sigma, dq in a text, sasCIF, canSAS XML, NXcanSAS, or
 * a file of ATSAS or FoXS. The unit of q is found. Points outside q_min..q_max
 * are left out; q_max 0: no limit. Points without a positive sigma are dropped.
 * smear 1: fitted curves are smeared with dq, the standard deviation of q
 * (usual for neutrons), and the slit of the file, if it has them; 0: they are
 * ignored. Errors: NOINPUT, DATA (with file and line), USAGE (q_min not below
 * q_max). */
TESSERA_API int tessera_data_read(const char *path, double q_min, double q_max,
                                  int smear, tessera_data **out);

/* A curve from arrays [n], n at least 5: q ascends from at least 0, sigma is
 * positive. Errors: USAGE, NUMERIC, DATA (the first bad point is named). */
TESSERA_API int tessera_data_new(int n, const double *q,
                                 const double *intensity, const double *sigma,
                                 tessera_data **out);
TESSERA_API void tessera_data_free(tessera_data *data);

/* Number of points, 0 for NULL, and a copy of the points; an array may be
 * NULL. */
TESSERA_API int tessera_data_size(const tessera_data *data);
TESSERA_API int tessera_data_get(const tessera_data *data, double *q,
                                 double *intensity, double *sigma);

/* The q_max that a profile needs for a fit to these data: that of the last
 * point, or more where the curve is smeared. 0 for NULL. */
TESSERA_API double tessera_data_q_max(const tessera_data *data);

/* ---- structures ---- */

typedef struct tessera_structure tessera_structure;

/* All atoms of the first model of a PDB or mmCIF file, gzipped or not, without
 * waters and further alternate locations. Errors: NOINPUT, DATA. */
TESSERA_API int tessera_structure_read(const char *path,
                                       tessera_structure **out);

/* A structure from the atoms of another program, treated as a file with these
 * records: waters are left out. Each atom has one location.
 * xyz      [n][3]  Angstrom
 * element  [n]     symbols in any case: "C", "Zn", "D"
 * name, residue, number  [n] or NULL, all three or none: "CA", "LYS", 12.
 *                  Consecutive atoms with the same residue name, number and
 *                  chain are a residue; the number has no other use
 * chain    [n] or NULL: "A"
 * With names, amino acids and nucleotides get the hydrogens of a table, whether
 * or not the arrays have hydrogens. Without names all atoms are one unknown
 * molecule, waters too: its hydrogens are those of the arrays if a carbon has
 * one, else they follow from lengths and angles of the bonds, which needs
 * accurate coordinates (docs/forward-model.md, Hydrogens).
 * Errors: USAGE, NUMERIC, DATA (an unknown element, coordinates that no
 * molecule has). */
TESSERA_API int
tessera_structure_new(int n, const double *xyz, const char *const *element,
                      const char *const *name, const char *const *residue,
                      const int *number, const char *const *chain,
                      tessera_structure **out);
TESSERA_API void tessera_structure_free(tessera_structure *structure);

/* Number of atoms, 0 for NULL, and their xyz [n_atom][3], Angstrom. in_file
 * [n_atom]: index of each atom among all atoms of the file's model or of the
 * arrays, from 0, to pick coordinates of a trajectory. An array may be NULL. */
TESSERA_API int tessera_structure_size(const tessera_structure *structure);
TESSERA_API int tessera_structure_get(const tessera_structure *structure,
                                      double *xyz, int *in_file);

/* ---- profiles of structures ----
 *
 * A profile holds the partial profiles I_ab of the components solute, displaced
 * solvent and hydration layer. They give the curve at any c1 (scale of the
 * atomic radii in the displaced volume) and c2 (density of the layer):
 *
 *     I(q) = sum_ab C_a C_b I_ab(q),  C = (1, -G(q; c1), c2)
 *
 * Debye 1915; Schneidman-Duhovny et al. 2013, Biophys. J. 105, 962 (c1, c2);
 * tessera's layer: docs/forward-model.md. */

typedef struct tessera_profiler tessera_profiler;
typedef struct tessera_profile tessera_profile;

/* Scatterers: all atoms with added hydrogens and a layer around the surface, or
 * two or one bodies for each residue. */
enum { TESSERA_ATOMS = 0, TESSERA_TWO_BODIES = 1, TESSERA_ONE_BODY = 2 };

/* Opens a device and the tables, for X-ray curves up to q_max.
 * device: "auto", "gpu", "cpu", a number, a part of a name, or "reference" (no
 * OpenCL; double precision). NULL: "auto".
 * Errors: USAGE, DEVICE, NOINPUT (the tables are not installed). */
TESSERA_API int tessera_profiler_new(int scatterers, double q_max,
                                     const char *device,
                                     tessera_profiler **out);

/* The same for neutrons and all atoms.
 * d2o: volume fraction of D2O in the solvent, 0 to 1.
 * exchange: fraction of the amide hydrogens that exchange, 0 to 1 (usual: 0.9).
 * chain, fraction [n_chain]: chains whose hydrogens at carbon are deuterated,
 * and the fraction of these that is deuterium; n_chain at most 16. */
TESSERA_API int tessera_profiler_new_neutron(double d2o, double exchange,
                                             int n_chain,
                                             const char *const *chain,
                                             const double *fraction,
                                             double q_max, const char *device,
                                             tessera_profiler **out);

/* Electron density of the solvent, electrons/A^3, 0.1 to 1, for the profiles
 * that follow; at first 0.334, water. Salt, sugar and glycerol raise it
 * (docs/forward-model.md). Errors: USAGE (range; neutrons, whose solvent is
 * d2o). */
TESSERA_API int tessera_profiler_set_density(tessera_profiler *profiler,
                                             double density);
TESSERA_API void tessera_profiler_free(tessera_profiler *profiler);

/* The profile of a file. Calls of several threads with one profiler take
 * turns. Errors: NOINPUT, DATA, RANGE, DEVICE. */
TESSERA_API int tessera_profile_file(tessera_profiler *profiler,
                                     const char *path, tessera_profile **out);

/* The profile of a structure's atoms at xyz [n_atom][3], as of one frame of a
 * trajectory; NULL: as in the file.
 * The layer is built anew. Errors: USAGE (not a profiler of atoms, no atom),
 * NUMERIC (a coordinate is not finite), DATA (atoms too far apart, in one place
 * or in nm), DEVICE. */
TESSERA_API int tessera_profile_coordinates(tessera_profiler *profiler,
                                            const tessera_structure *structure,
                                            const double *xyz,
                                            tessera_profile **out);
TESSERA_API void tessera_profile_free(tessera_profile *profile);

/* The curve of a profile at q [n]: intensity [n] out, electrons squared (e^2);
 * neutrons: fm^2. c1 1 and c2 0 are a molecule without a layer. Errors: RANGE
 * (q below 0 or beyond the profiler's q_max), NUMERIC. */
TESSERA_API int tessera_profile_intensity(const tessera_profile *profile,
                                          double c1, double c2, int n,
                                          const double *q, double *intensity);

/* Numbers of a profile, NaN where unknown. */
enum {
    TESSERA_PROFILE_MASS = 0,     /* Da, hydrogens included */
    TESSERA_PROFILE_VOLUME = 1,   /* displaced at c1 = 1, A^3 */
    TESSERA_PROFILE_RG = 2,       /* of the scatterers, Angstrom */
    TESSERA_PROFILE_D_MAX = 3,    /* largest distance of two, Angstrom */
    TESSERA_PROFILE_ABSOLUTE = 4, /* 1/cm at 1 mg/ml for I = 1 */
    TESSERA_PROFILE_N_NUMBER = 5
};

/* The first n of these numbers: value [n] out. */
TESSERA_API int tessera_profile_numbers(const tessera_profile *profile, int n,
                                        double *value);

/* ---- fit ---- */

enum {
    TESSERA_FIT_CHI2 = 0,    /* sum of squares / number of points */
    TESSERA_FIT_REDUCED = 1, /* sum of squares / degrees of freedom, or NaN */
    TESSERA_FIT_SCALE = 2,
    TESSERA_FIT_BACKGROUND = 3, /* unit of the data */
    TESSERA_FIT_C1 = 4,
    TESSERA_FIT_C2 = 5,
    TESSERA_FIT_C1_AT = 6, /* -1, 1: at the lower, upper bound; else 0 */
    TESSERA_FIT_C2_AT = 7,
    /* Franke et al. 2015, Nat. Methods 12, 419; NaN: points share their noise
     */
    TESSERA_FIT_CORMAP_P = 8,
    TESSERA_FIT_N_NUMBER = 9
};

/* Least-squares fit of scale, c1, c2 and background, as `tessera profile`.
 * c1, c2      [2]  in   bounds; equal: fixed. NULL: 0.95..1.05 and 0..4; for
 *                       neutrons c1 = 1
 * background       in   NaN: fitted; else fixed to this number (0: none)
 * value       [n]  out  the first n of the numbers above
 * curve       [tessera_data_size] out, scale I + background; may be NULL
 * Errors: USAGE (bounds), RANGE (tessera_data_q_max exceeds the profile's
 * q_max), NUMERIC. */
TESSERA_API int tessera_fit(const tessera_profile *profile,
                            const tessera_data *data, const double *c1,
                            const double *c2, double background, int n,
                            double *value, double *curve);

/* ---- profiles after moves ----
 *
 * An engine keeps the pair sums of n_system conformations of the same bodies
 * in tiles. A proposal moves some bodies and costs only the tiles in which a
 * distance changed. Then it is accepted or rejected, which costs nothing.
 *
 *     I_ab(q_k) = sum_ij F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij),  q_k = k dq
 *
 * with i = j included. Antonov et al. 2013; docs/design.md, section 3.
 *
 * Derivatives by coordinates are not offered: the sums of the tiles do not
 * contain them, and a sum of sinc' over all pairs and q would cost as much as a
 * fresh profile. The slope along a move of few bodies is the difference of two
 * proposals, which costs their tiles. */

typedef struct tessera_engine tessera_engine;
typedef struct tessera_batch tessera_batch;

/* An engine of any point scatterers.
 * type         [n_body]                 in  0..n_type-1
 * form_factor  [n_comp][n_type][n_q]    in  electrons or fm; n_comp 1 to 3
 * d_bound: proposals with a larger distance are refused (RANGE), as dq would
 * not resolve them (dq at most pi / d_bound); 0: no check.
 * device: as for tessera_profiler_new; "auto" is "reference" where no
 * driver of OpenCL is installed. Errors: USAGE, NUMERIC, DEVICE. */
TESSERA_API int tessera_engine_new(int n_body, const int *type, int n_type,
                                   int n_comp, int n_q, double dq,
                                   const double *form_factor, double d_bound,
                                   int n_system, const char *device,
                                   tessera_engine **out);

/* An engine of the bodies of a structure, as a profiler of TESSERA_TWO_BODIES
 * or TESSERA_ONE_BODY makes them, with its q_max, density and device, and three
 * components. The profiler may be freed before. Each body keeps the hydration
 * of the file. d_bound: largest distance of two bodies that will be proposed;
 * it decides dq. Errors: as tessera_profile_file, USAGE. */
TESSERA_API int tessera_engine_of_file(tessera_profiler *profiler,
                                       const char *path, double d_bound,
                                       int n_system, tessera_engine **out);

/* The same for amino acids of another program, as the beads of a coarse-grained
 * simulation.
 * residue  [n_residue]  in  "LYS", upper case
 * xyz      [n_body][3]  in  of each residue its body, the centre of mass of its
 *                       heavy atoms; with TESSERA_TWO_BODIES those of the
 *                       backbone (N, CA, C, O, CB), then of the side chain.
 *                       ALA and GLY have one body. The hydration of a body
 *                       follows from the number of its neighbours here
 *                       (docs/forward-model.md)
 * Errors: as tessera_engine_of_file, DATA (not an amino acid), USAGE (n_body is
 * not the number of bodies of the residues), NUMERIC. */
TESSERA_API int tessera_engine_of_residues(tessera_profiler *profiler,
                                           int n_residue,
                                           const char *const *residue,
                                           int n_body, const double *xyz,
                                           double d_bound, int n_system,
                                           tessera_engine **out);

/* Number of bodies, and for an engine of residues their first positions xyz
 * [n_body][3] and the index of the residue of each, residue [n_body], from 0 in
 * the order of the file or array; an array may be NULL. */
TESSERA_API int tessera_engine_n_body(const tessera_engine *engine);
TESSERA_API int tessera_engine_bodies(const tessera_engine *engine, double *xyz,
                                      int *residue);

/* From profile [profile_size] of an engine of residues to a profile with self
 * terms, for curves at any q, c1, c2 and for fits. */
TESSERA_API int tessera_profile_of_engine(const tessera_engine *engine,
                                          const double *profile,
                                          tessera_profile **out);

/* Free its batches first. */
TESSERA_API void tessera_engine_free(tessera_engine *engine);

/* Length of one profile, n_pair n_q with n_pair = n_comp (n_comp + 1) / 2: the
 * pairs 00 01 02 11 12 22. Device, driver and kernel as text, valid until the
 * engine is freed. */
TESSERA_API int tessera_engine_profile_size(const tessera_engine *engine);
TESSERA_API const char *tessera_engine_text(const tessera_engine *engine);

/* For proposals of up to max_proposal systems at a time. Several batches may
 * use one engine at the same time, from several threads, for different
 * systems. The batch refers to the engine. */
TESSERA_API int tessera_batch_new(tessera_engine *engine, int max_proposal,
                                  tessera_batch **out);
TESSERA_API void tessera_batch_free(tessera_batch *batch);

/* Positions of a system: xyz [n_body][3] in. profile [profile_size] out, or
 * NULL. A pending proposal is rejected. After an error the system keeps its
 * positions. Errors: NUMERIC, RANGE, DEVICE, USAGE (no such system). */
TESSERA_API int tessera_batch_set(tessera_batch *batch, int system,
                                  const double *xyz, double *profile);

/* Evaluates n proposals, each of another system that was set and has no
 * pending proposal. The positions of the systems do not change yet.
 * system   [n]        in
 * n_range  [n]        in   ranges of each proposal
 * range    [sum of n_range][3]  in  first body, count, group. Ranges of a
 *                     proposal ascend. group > 0: the range moved rigidly,
 *                     together with the ranges of the same group; the caller
 *                     guarantees that. 0: distances within may have changed
 * xyz      [sum of counts][3]   in  new positions, range after range
 * profile  [n][profile_size]    out
 * After an error all n proposals are rejected. Errors: as tessera_batch_set. */
TESSERA_API int tessera_batch_propose(tessera_batch *batch, int n,
                                      const int *system, const int *n_range,
                                      const int *range, const double *xyz,
                                      double *profile);

/* Decides the pending proposal of a system, if there is one. */
TESSERA_API int tessera_batch_accept(tessera_batch *batch, int system);
TESSERA_API int tessera_batch_reject(tessera_batch *batch, int system);

/* The profile [profile_size] of the accepted positions, from stored sums. */
TESSERA_API int tessera_batch_profile(tessera_batch *batch, int system,
                                      double *profile);

/* ---- runs ---- */

typedef struct tessera_run tessera_run;

/* Called in the thread of tessera_run_start about four times a second and after
 * each block of draws. phase: "set-up" (done counts the conformations from
 * which the model error is learnt), then "starts", "warm-up", "sampling" (steps
 * done); planned 0: unknown. A result other than 0 stops the run. */
typedef int (*tessera_progress)(void *context, const char *phase, int64_t done,
                                int64_t planned);

/* Reads a configuration and its input, as `tessera run CONFIG --set KEY=VALUE`:
 * set [n_set] "KEY=VALUE". output: folder of the run; NULL: as configured.
 * Nothing is written. Errors: CONFIG, DATA, NOINPUT, IO. */
TESSERA_API int tessera_run_new(const char *config, const char *output,
                                int n_set, const char *const *set,
                                tessera_run **out);

/* Reopens the folder of a stopped or finished run, whose draws will be those of
 * an uninterrupted run. set [n_set]: of the keys sampler.draws, sampler.until,
 * sampler.time_limit, device.* and output.checkpoint_every alone; a finished
 * run needs one of the first two. Until the run is freed, no other process can
 * resume it. Errors: NOINPUT, USAGE (another key; finished), DATA (damaged, or
 * changed since the checkpoint), CONFIG (it is still running), IO. */
TESSERA_API int tessera_run_resume(const char *folder, int n_set,
                                   const char *const *set, tessera_run **out);

/* Runs to the end; may be called once. The folder has the files of `tessera
 * run`, with the same draws. progress may be NULL. Errors: INTERRUPTED (stopped
 * with a checkpoint, and tessera_run_resume continues; during the set-up
 * nothing is written), IO, DEVICE, USAGE (called twice). */
TESSERA_API int tessera_run_start(tessera_run *run, tessera_progress progress,
                                  void *context);

/* Numbers of a run for its progress, NaN where unknown. RHAT, ESS and CONVERGED
 * are those of the last check of sampler.until. */
enum {
    TESSERA_RUN_CHI2 = 0, /* per point, mean over chains */
    TESSERA_RUN_LEFT = 1, /* estimated s until the end */
    TESSERA_RUN_RHAT = 2, /* of the variable farthest from its criterion */
    TESSERA_RUN_ESS = 3,
    TESSERA_RUN_CONVERGED = 4, /* draws as a share of those needed */
    TESSERA_RUN_N_NUMBER = 5
};

/* The first n of these numbers: value [n] out. To be called in the callback or
 * after the run. */
TESSERA_API int tessera_run_numbers(const tessera_run *run, int n,
                                    double *value);

/* Requests a stop from any thread, or a signal handler. The run ends within
 * about a second, except while a device's driver compiles the kernels. */
TESSERA_API void tessera_run_stop(tessera_run *run);
TESSERA_API const char *tessera_run_folder(const tessera_run *run);
TESSERA_API void tessera_run_free(tessera_run *run);

/* ---- draws ---- */

typedef struct tessera_draws tessera_draws;

/* Groups of columns of a trace (docs/analysis.md). */
enum {
    TESSERA_POSTERIOR = 0,
    TESSERA_SAMPLE_STATS = 1,
    TESSERA_POSTERIOR_PREDICTIVE = 2, /* fitted curves */
    TESSERA_LOG_LIKELIHOOD = 3,
    TESSERA_OBSERVED_DATA = 6,
    TESSERA_CONSTANT_DATA = 7
};

/* The draws in the folder of a run, of a running or killed run too. Errors:
 * NOINPUT, DATA (damaged). */
TESSERA_API int tessera_draws_open(const char *folder, tessera_draws **out);
TESSERA_API void tessera_draws_free(tessera_draws *draws);

/* Number of columns of a group, and the name of one; NULL: there is none. */
TESSERA_API int tessera_draws_n_column(tessera_draws *draws, int group);
TESSERA_API const char *tessera_draws_column(tessera_draws *draws, int group,
                                             int index);

/* shape [3] out: chains, draws, numbers of a draw. */
TESSERA_API int tessera_draws_shape(tessera_draws *draws, int group,
                                    const char *column, int *shape);

/* value [chains][draws][numbers] out; size: the room in value, at least their
 * product. Errors: DATA (no such column), USAGE (size). */
TESSERA_API int tessera_draws_read(tessera_draws *draws, int group,
                                   const char *column, int64_t size,
                                   double *value);

/* Coordinates of the last axis of a column, as the q of a curve: value [size]
 * out; size: the length of that axis. Errors: DATA (no such column, axis
 * without numbers), USAGE (size). */
TESSERA_API int tessera_draws_coordinates(tessera_draws *draws, int group,
                                          const char *column, int size,
                                          double *value);

typedef struct tessera_frames tessera_frames;

/* Coordinates of draws: a trajectory-NNN.h5 of a run, whose atoms are those of
 * the run's model.pdb. Errors: NOINPUT, DATA. */
TESSERA_API int tessera_frames_open(const char *path, tessera_frames **out);
TESSERA_API void tessera_frames_free(tessera_frames *frames);

/* shape [2] out: frames, atoms. */
TESSERA_API int tessera_frames_shape(const tessera_frames *frames, int *shape);

/* n frames from `first` on. draw [n], atom [n][atoms][3] out; an array may be
 * NULL. Errors: RANGE. */
TESSERA_API int tessera_frames_read(const tessera_frames *frames, int first,
                                    int n, int64_t *draw, float *atom);

#ifdef __cplusplus
}
#endif

#endif
