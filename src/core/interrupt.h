/* Signals that end a run in good order: SIGINT, SIGTERM, SIGHUP (the terminal
 * closes), SIGQUIT and SIGXCPU (limit on processor time). SIGUSR1 requests a
 * checkpoint. */
#ifndef TSR_CORE_INTERRUPT_H
#define TSR_CORE_INTERRUPT_H

#include "core/status.h"

#include <stdatomic.h>

/* The signal that requested a stop; 0: no stop was requested. It has static
 * storage, because a signal handler cannot reach other objects, and is atomic,
 * because worker threads read it. */
extern atomic_int tsr_stop_requested;

/* 1 after SIGUSR1. The code that writes the checkpoint sets it to 0. */
extern atomic_int tsr_checkpoint_requested;

/* How a caller follows and stops long work. A NULL pointer to a watch is a
 * zeroed watch. */
typedef struct {
    const atomic_int *stop; /* nonzero: stop; NULL: tsr_stop_requested */
    /* Called in the caller's thread, about four times a second and after each
     * part of the work; planned 0: unknown. NULL: no calls. */
    void (*call)(void *context, const char *phase, long done, long planned);
    void *context;
} tsr_watch;

/* The flag of a watch, never NULL. */
const atomic_int *tsr_watch_stop(const tsr_watch *watch);

/* Calls watch->call, if there is one. */
void tsr_watch_call(const tsr_watch *watch, const char *phase, long done,
                    long planned);

/* Errors: TSR_E_INTERRUPTED, "interrupted while WHAT", if a stop was
 * requested. */
tsr_status tsr_watch_check(const tsr_watch *watch, const char *what,
                           tsr_err *err);

/* Installs the handlers. The first signal sets tsr_stop_requested. Further
 * signals within the next one to two seconds are ignored, because timeout, make
 * and a closing terminal often send two at once; a later signal kills the
 * process. SIGXCPU never kills through the handler, because the kernel repeats
 * it every second of processor time and kills at the hard limit itself.
 * SIGABRT, which indicates a fault in the program, gets its default action, and
 * SIGXFSZ is ignored, so that a write beyond a size limit returns an error.
 * SIGHUP stays ignored where it was, as under nohup. To be called before a
 * device is opened. */
void tsr_interrupt_catch(void);

/* Blocks the signals (1) while a device is opened, and then lets those through
 * again that were let through before (0): the signal handlers of LLVM, a part
 * of PoCL, delete the files that PoCL is compiling, and may lose the signal.
 * Threads created while signals are blocked never receive them. Unblocking
 * replaces LLVM's handlers by those of tsr_interrupt_catch. */
void tsr_interrupt_block(int block);

#endif
