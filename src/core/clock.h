/* Time that only goes forward, and the time of day. */
#ifndef TSR_CORE_CLOCK_H
#define TSR_CORE_CLOCK_H

/* Seconds since some moment in the past, the same for the whole process. */
double tsr_clock_s(void);

/* "2026-11-22T06:30:00+00:00": now, as ISO 8601 has it. */
void tsr_clock_utc(char text[40]);

#endif
