/* Checkpoints of a run: its progress, its saved state, and the check that a
 * checkpoint belongs to a configuration and its input. */
#ifndef TSR_SESSION_RUN_CHECKPOINT_H
#define TSR_SESSION_RUN_CHECKPOINT_H

#include "core/archive.h"
#include "posterior/config.h"
#include "posterior/setup.h"

/* Progress of a run. Draws are counted per chain. */
typedef struct {
    long warmup, draws; /* stored so far */
    long next_check;    /* of --until, after so many draws */
    int is_finished;    /* 1: the run has ended */
    int is_converged;   /* 1: --until was met at the last check */
    long expected;      /* draws at the end, with warm-up; 0: unknown */
    long steps;         /* of all chains, since the start of the run */
    double seconds;     /* duration of these steps */
    double start_chi2, start_rg; /* of the first conformation */
} tsr_run_progress;

/* What must agree between a checkpoint and the run that continues it. */
typedef struct {
    int64_t structure, data, tables; /* checksums of the input */
    int64_t n_chain, n_temp, n_state;
} tsr_run_identity;

/* Computes the identity of a run that has been set up. */
tsr_run_identity tsr_run_identity_of(const tsr_setup *setup);

/* Steps of all chains for one draw of every chain. */
long tsr_run_draw_steps(const tsr_config *config,
                        const tsr_run_identity *identity);

/* Total warm-up draws. After a populations phase this is less than the
 * configuration requests. */
long tsr_run_warmup_expected(const tsr_config *config,
                             const tsr_run_progress *progress);

/* Estimated seconds until the run ends, at its average speed so far. A run ends
 * after its last draw, at the predicted convergence, or at sampler.time_limit
 * but not before the end of warm-up. The result is not finite if unknown. text:
 * the same time as "0:41:07", after "at most" if the number of draws to
 * convergence is unknown. */
double tsr_run_remaining(const tsr_config *config,
                         const tsr_run_identity *identity,
                         const tsr_run_progress *progress, char text[48]);

/* Content of a checkpoint. */
typedef struct {
    tsr_run_progress progress;
    tsr_run_identity identity;
    char *text;        /* config.yaml */
    char *engine;      /* engines of the profiles; "": the prior alone */
    char *written_at;  /* UTC, ISO 8601 */
    char *remark;      /* why an older checkpoint was read; NULL: it is the
                          newest */
    tsr_archive saved; /* state of the chains; empty unless requested */
} tsr_run_checkpoint;

/* Writes DIRECTORY/checkpoint.h5. The previous checkpoint is kept as
 * checkpoint.h5.previous. Errors: TSR_E_IO. */
tsr_status tsr_run_checkpoint_write(const char *directory,
                                    const tsr_run_checkpoint *checkpoint,
                                    tsr_err *err);

/* Reads the newest undamaged checkpoint of a run. with_state 0: without the
 * state of the chains, which is large. The caller clears *out, also after an
 * error. Errors: TSR_E_NOINPUT (no checkpoint), TSR_E_DATA (damaged, or of
 * another version). */
tsr_status tsr_run_checkpoint_read(const char *directory, int with_state,
                                   tsr_run_checkpoint *out, tsr_err *err);
void tsr_run_checkpoint_clear(tsr_run_checkpoint *checkpoint);

/* Refuses a checkpoint made with another configuration or other input, and
 * names the first line or the input that differs. Keys that may change between
 * sessions are ignored: draws, until, time limit, device, most of output. text:
 * the current config.yaml. Errors: TSR_E_DATA. */
tsr_status tsr_run_checkpoint_match(const tsr_run_checkpoint *checkpoint,
                                    const char *text,
                                    const tsr_run_identity *identity,
                                    tsr_err *err);

/* Refuses a trace made with another configuration, in the same way. Errors:
 * TSR_E_DATA, those of tsr_trace_open. */
tsr_status tsr_run_trace_match(const char *path, const char *text,
                               tsr_err *err);

/* Warm-up draws that the configuration requests. */
long tsr_run_warmup_requested(const tsr_config *config);

#endif
