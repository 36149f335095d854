/* A monotonic clock, and the time of day. */
#ifndef TSR_CORE_CLOCK_H
#define TSR_CORE_CLOCK_H

/* Seconds since a moment in the past that is fixed for the process. */
double tsr_clock_s(void);

/* The current time as ISO 8601 in UTC: "2026-11-22T06:30:00+00:00". */
void tsr_clock_utc(char text[40]);

#endif
