/* Checkpoints of a run: its progress, its saved state, and the check that a
 * checkpoint belongs to a configuration and its input. */
#ifndef TSR_SESSION_RUN_CHECKPOINT_H
#define TSR_SESSION_RUN_CHECKPOINT_H

#include "core/archive.h"
#include "posterior/config.h"
#include "posterior/setup.h"

/* Progress of a run. Draws are counted per chain. */
typedef struct {
    long warmup, draws; /* warm-up and kept draws stored so far */
    long next_check; /* number of kept draws at which --until is checked next */
    int is_finished; /* 1: the run has ended */
    int is_converged; /* 1: --until was met at the last check */
    long expected;    /* draws at the end, with warm-up; 0: unknown */
    long steps; /* of all chains and temperatures, since the start of the run */
    double seconds;              /* time spent on these steps */
    double start_chi2, start_rg; /* of the first conformation */
} tsr_run_progress;

/* What must agree between a checkpoint and the run that continues it. */
typedef struct {
    long structure, data, tables; /* checksums of the structures, of the data,
                                     and of form factors and prior */
    long n_chain, n_temp, n_state;
} tsr_run_identity;

/* Computes the identity of a run whose input has been read (tsr_setup_read);
 * n_chain and n_temp are known after tsr_setup_engine. */
tsr_run_identity tsr_run_identity_of(const tsr_setup *setup);

/* Checksum of how this process rounds: of the descriptions of its engines
 * (device, driver, kernels), and of values of the C library's functions, which
 * has versions of them for processors with and without fused multiply-add.
 * Where it differs, draws are valid, but not the same bits. Needs
 * tsr_setup_engine. */
long tsr_run_arithmetic(const tsr_setup *setup);

/* Steps of all chains and temperatures for one draw of every chain. */
long tsr_run_draw_steps(const tsr_config *config,
                        const tsr_run_identity *identity);

/* Warm-up draws that this run will make: after a populations phase, fewer than
 * the configuration requests (docs/design.md 3). */
long tsr_run_warmup_expected(const tsr_config *config,
                             const tsr_run_progress *progress);

/* Estimated seconds until the run ends, at its average speed so far. The run
 * ends at whichever comes first: its last draw, the predicted convergence, or
 * sampler.time_limit. The time limit cannot end it during warm-up. The result
 * is not finite (unknown) before the first step of a run without
 * sampler.time_limit. text: the result in the form "0:41:07"; "at most 0:41:07"
 * if --until is set and convergence is not expected before the last draw;
 * "unknown" if the result is not finite. */
double tsr_run_remaining(const tsr_config *config,
                         const tsr_run_identity *identity,
                         const tsr_run_progress *progress, char text[48]);

/* Content of a checkpoint. */
typedef struct {
    tsr_run_progress progress;
    tsr_run_identity identity;
    long arithmetic;  /* tsr_run_arithmetic of the last session */
    char *text;       /* config.yaml */
    char *written_at; /* UTC, ISO 8601; set on reading */
    char *remark; /* why the newest checkpoint could not be used; NULL: it was
                     used; set on reading */
    tsr_archive saved; /* state of the chains; after reading, empty unless it
                          was requested, as the next two */
    tsr_archive error; /* model errors of the likelihoods */
    char *error_text;  /* their description (tsr_data) */
} tsr_run_checkpoint;

/* Writes DIRECTORY/checkpoint.h5. The previous checkpoint is kept as
 * checkpoint.h5.previous. Errors: TSR_E_IO. */
tsr_status tsr_run_checkpoint_write(const char *directory,
                                    const tsr_run_checkpoint *checkpoint,
                                    tsr_err *err);

/* Reads the newest undamaged checkpoint of a run. with_state 0: without the
 * state of the chains, which is large. The caller clears *out, also after an
 * error. Errors: TSR_E_NOINPUT (no checkpoint), TSR_E_DATA (damaged, or of
 * another version), TSR_E_NOMEM. */
tsr_status tsr_run_checkpoint_read(const char *directory, int with_state,
                                   tsr_run_checkpoint *out, tsr_err *err);
void tsr_run_checkpoint_clear(tsr_run_checkpoint *checkpoint);

/* Does the newest checkpoint of the folder say that the run has ended? */
int tsr_run_is_finished(const char *directory);

/* Refuses a checkpoint made with another configuration or other input, and
 * names the first line or the input that differs, or the version if keys or
 * defaults of tessera have changed, and not the file. Keys that may change
 * between sessions are ignored: sampler.draws, until and time_limit; the
 * sections device and simulate; output, except trajectory and trajectory_every.
 * file: content of config.yaml in the folder; text: the same as this version
 * writes it. Needs the structure, data and tables of the identity alone.
 * Errors: TSR_E_DATA. */
tsr_status tsr_run_checkpoint_match(const tsr_run_checkpoint *checkpoint,
                                    const char *file, const char *text,
                                    const tsr_run_identity *identity,
                                    tsr_err *err);

/* Does "KEY=VALUE" set a key that may change between sessions? */
int tsr_run_key_may_change(const char *set);

/* Refuses the trace at `path` if it was made with another configuration, with
 * the same keys ignored. Errors: TSR_E_DATA, those of tsr_trace_open. */
tsr_status tsr_run_trace_match(const char *path, const char *text,
                               tsr_err *err);

/* Warm-up draws that the configuration requests. */
long tsr_run_warmup_requested(const tsr_config *config);

#endif
