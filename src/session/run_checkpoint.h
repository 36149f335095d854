/* Checkpoints of a run: where it is, and whether one belongs to it. */
#ifndef TSR_SESSION_RUN_CHECKPOINT_H
#define TSR_SESSION_RUN_CHECKPOINT_H

#include "core/archive.h"
#include "posterior/config.h"
#include "posterior/setup.h"

/* How far a run is. Draws are counted a chain. */
typedef struct {
    long warmup, draws;          /* stored so far */
    long next_check;             /* of --until, at so many draws */
    int is_finished;             /* all draws, time over, or converged */
    int is_converged;            /* as asked, at the last look */
    long expected;               /* of both, that it takes; 0: not known */
    long steps;                  /* of all chains, since the first */
    double seconds;              /* that they took */
    double start_chi2, start_rg; /* of the first conformation */
} tsr_run_progress;

/* What has to be the same for a state to belong to a run. */
typedef struct {
    int64_t structure, data, tables; /* checksums of what was read */
    int64_t n_chain, n_temp, n_state;
} tsr_run_identity;

tsr_run_identity tsr_run_identity_of(const tsr_setup *setup);

/* Steps of all chains in a draw. */
long tsr_run_draw_steps(const tsr_config *config, const tsr_run_identity *of);

/* Draws of warm-up in all; behind populations fewer than were asked for. */
long tsr_run_warmup(const tsr_config *config, const tsr_run_progress *progress);

/* Seconds until the end, at the pace so far: of all draws, or of those that
 * convergence takes, and no more than sampler.time_limit leaves once warm-up is
 * over; not finite: not known. text: the same as "0:41:07", with "at most"
 * where it is not known when the chains will have converged. */
double tsr_run_remaining(const tsr_config *config, const tsr_run_identity *of,
                         const tsr_run_progress *progress, char text[48]);

typedef struct {
    tsr_run_progress progress;
    tsr_run_identity identity;
    char *text;        /* config.yaml */
    char *engine;      /* what computed the profiles; "": the prior alone */
    char *written_at;  /* UTC, ISO 8601 */
    char *remark;      /* why it is not the newest; NULL: it is */
    tsr_archive saved; /* empty where it was not asked for */
} tsr_run_checkpoint;

/* Becomes DIRECTORY/checkpoint.h5; the one before it stays as
 * checkpoint.h5.previous. Errors: TSR_E_IO. */
tsr_status tsr_run_checkpoint_write(const char *directory,
                                    const tsr_run_checkpoint *checkpoint,
                                    tsr_err *err);

/* The newest of a directory that is sound. Errors: TSR_E_NOINPUT (there is
 * none), TSR_E_DATA (damaged, or of another version). The caller clears it,
 * also after an error. */
tsr_status tsr_run_checkpoint_read(const char *directory, int with_state,
                                   tsr_run_checkpoint *out, tsr_err *err);
void tsr_run_checkpoint_clear(tsr_run_checkpoint *checkpoint);

/* Refuses a checkpoint of another configuration or other input (TSR_E_DATA),
 * naming the first line or the file that differs. What may change between two
 * sessions is left out: draws, until, threads, device, output. text: the
 * config.yaml of today. */
tsr_status tsr_run_checkpoint_match(const tsr_run_checkpoint *checkpoint,
                                    const char *text,
                                    const tsr_run_identity *identity,
                                    tsr_err *err);

/* Refuses a trace that was made with another configuration, in the same way.
 * Errors: TSR_E_DATA, those of tsr_trace_open. */
tsr_status tsr_run_trace_match(const char *path, const char *text,
                               tsr_err *err);

/* Draws of warm-up that the config asks for. */
long tsr_session_warmup(const tsr_config *config);

#endif
