/* A monotonic clock, waiting by it, and the time of day. */
#ifndef TSR_CORE_CLOCK_H
#define TSR_CORE_CLOCK_H

#include <pthread.h>

/* Seconds since a moment in the past that is fixed for the process. */
double tsr_clock_s(void);

/* A condition on which a thread can wait for a limited time. */
void tsr_clock_cond_init(pthread_cond_t *cond);

/* Waits on such a condition, with `lock` held, for at most `seconds`. */
void tsr_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                         double seconds);

/* The current time as ISO 8601 in UTC: "2026-11-22T06:30:00+00:00". */
void tsr_clock_utc(char text[40]);

#endif
