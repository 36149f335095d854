#include "cli/interrupt.h"

#include <string.h>
#include <time.h>

volatile sig_atomic_t tsr_stop_asked;
volatile sig_atomic_t tsr_checkpoint_asked;

static volatile sig_atomic_t asked_at; /* seconds */

static void ask_to_stop(int signal_number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!tsr_stop_asked) {
        asked_at = (sig_atomic_t)now.tv_sec;
        tsr_stop_asked = signal_number;
    } else if ((sig_atomic_t)now.tv_sec - asked_at > 1) {
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* comes when this handler returns */
    }
}

static void ask_for_checkpoint(int signal_number)
{
    (void)signal_number;
    tsr_checkpoint_asked = 1;
}

int tsr_hang_up_is_ignored(void)
{
    struct sigaction hang_up;
    return sigaction(SIGHUP, NULL, &hang_up) == 0 &&
           hang_up.sa_handler == SIG_IGN;
}

void tsr_interrupt_hold(int hold)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void tsr_interrupt_catch(int ignore_hang_up)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ask_to_stop;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* a device's library may not know EINTR */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (ignore_hang_up)
        action.sa_handler = SIG_IGN;
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = ask_for_checkpoint;
    sigaction(SIGUSR1, &action, NULL);
}
