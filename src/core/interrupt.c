/* Signal handlers set only a flag, which the drawing loop checks between steps.
 * A second signal more than one second later has its default action, and so
 * ends the process. */
#include "core/interrupt.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Required for use in signal handlers (C11, 7.14.1.1). */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2,
               "atomic integers take a lock here");

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
enum { N_STOPPING = sizeof stopping / sizeof *stopping };

atomic_int tsr_stop_requested;
atomic_int tsr_checkpoint_requested;

const atomic_int *tsr_watch_stop(const tsr_watch *watch)
{
    return watch != NULL && watch->stop != NULL ? watch->stop
                                                : &tsr_stop_requested;
}

void tsr_watch_call(const tsr_watch *watch, const char *phase, long done,
                    long planned)
{
    if (watch != NULL && watch->call != NULL)
        watch->call(watch->context, phase, done, planned);
}

tsr_status tsr_watch_check(const tsr_watch *watch, const char *what,
                           tsr_err *err)
{
    return *tsr_watch_stop(watch) != 0
               ? tsr_fail(err, TSR_E_INTERRUPTED, "interrupted while %s", what)
               : TSR_OK;
}

static atomic_long first_signal_at; /* s, monotonic clock; 0: no signal yet */

/* May run in two threads at the same time. */
static void handle_stop(int signal_number)
{
    struct timespec now;
    long before = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long at = (long)now.tv_sec + 1;
    if (atomic_compare_exchange_strong(&first_signal_at, &before, at)) {
        tsr_stop_requested = signal_number;
    } else if (at - before > 1 && signal_number != SIGXCPU) {
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* delivered when this handler returns */
    }
}

static void handle_checkpoint(int signal_number)
{
    (void)signal_number;
    tsr_checkpoint_requested = 1;
}

/* -1: the handlers are not installed; 1: SIGHUP stays ignored, as under nohup.
 */
static int hang_up_is_ignored = -1;

static void install_handlers(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle_stop;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* a device's library may not handle EINTR */
    for (int i = 0; i < N_STOPPING; i++)
        sigaction(stopping[i], &action, NULL);
    action.sa_handler = handle_checkpoint;
    sigaction(SIGUSR1, &action, NULL);
    if (hang_up_is_ignored)
        signal(SIGHUP, SIG_IGN);
    signal(SIGABRT, SIG_DFL); /* LLVM's handler would ignore the first signal */
    signal(SIGXFSZ, SIG_IGN); /* set by main, and changed by LLVM */
}

void tsr_interrupt_catch(void)
{
    struct sigaction hang_up;
    if (hang_up_is_ignored < 0)
        hang_up_is_ignored = sigaction(SIGHUP, NULL, &hang_up) == 0 &&
                             hang_up.sa_handler == SIG_IGN;
    install_handlers();
}

void tsr_interrupt_block(int block)
{
    static _Thread_local sigset_t before;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int i = 0; i < N_STOPPING; i++)
        sigaddset(&set, stopping[i]);
    if (!block && hang_up_is_ignored >= 0)
        install_handlers();
    if (block)
        pthread_sigmask(SIG_BLOCK, &set, &before);
    else
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}
