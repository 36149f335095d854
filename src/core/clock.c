/* Uses the system's monotonic clock, which is independent of changes of the
 * date. */
#include "core/clock.h"

#include <time.h>

double tsr_clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tsr_clock_utc(char text[40])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 40, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
}
