/* Time that only goes forward. */
#ifndef TSR_CORE_CLOCK_H
#define TSR_CORE_CLOCK_H

/* Seconds since some moment in the past, the same for the whole process. */
double tsr_clock_s(void);

#endif
