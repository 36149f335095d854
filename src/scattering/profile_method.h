/* The ways to a Debye profile of many particles, and how long each takes here:
 * what `tessera profile` chooses by. */
#ifndef TSR_SCATTERING_PROFILE_METHOD_H
#define TSR_SCATTERING_PROFILE_METHOD_H

#include "scattering/debye.h"

typedef enum {
    TSR_METHOD_DIRECT,     /* pairs: gpu/debye_sum.h, or the reference */
    TSR_METHOD_FFT,        /* scattering/grid_sum.h */
    TSR_METHOD_QUADRATURE, /* scattering/plane_wave.h */
    TSR_N_METHOD,
    TSR_METHOD_AUTO = TSR_N_METHOD
} tsr_profile_method;

/* "direct", "fft", "quadrature", "auto". */
const char *tsr_profile_method_name(tsr_profile_method method);

typedef struct {
    int n_thread;
    double host;         /* time of one thread relative to where the constants
                            were measured */
    double pair_s;       /* of a direct sum, for each pair and q */
    double start_s;      /* before its first sum */
    double memory_bytes; /* that a method may take; 0: not known */
} tsr_method_speed;

/* Threads, memory, and what a trial of less than a millisecond takes. What is
 * of a device stays 0. Errors: those of the trial. */
tsr_status tsr_method_speed_measure(tsr_method_speed *out, tsr_err *err);

/* Seconds, by constants measured once (docs/forward-model.md); infinite where
 * memory does not do, or a grid would not be exact. d_ang: the largest
 * distance. */
double tsr_method_seconds(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, const tsr_method_speed *speed);

/* The host's two methods. Errors: TSR_E_INTERNAL (direct), theirs. */
tsr_status tsr_method_run(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, int n_thread,
                          const tsr_debye_progress *progress, double *profile,
                          tsr_err *err);

#endif
