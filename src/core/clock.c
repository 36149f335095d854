/* Uses the system's monotonic clock, which is independent of changes of the
 * date. macOS cannot give it to a condition, but waits relative to it. */
#include "core/clock.h"

#include <math.h>
#include <time.h>

double tsr_clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tsr_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
#ifndef __APPLE__
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void tsr_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                         double seconds)
{
#ifndef __APPLE__
    seconds += tsr_clock_s();
#endif
    const double whole = floor(seconds);
    const struct timespec t = {(time_t)whole, (long)(1e9 * (seconds - whole))};
#ifdef __APPLE__
    pthread_cond_timedwait_relative_np(cond, lock, &t);
#else
    pthread_cond_timedwait(cond, lock, &t);
#endif
}

void tsr_clock_utc(char text[40])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 40, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
}
