/* The methods for a Debye profile of many particles, and a prediction of their
 * run times, by which `tessera profile` chooses. */
#ifndef TSR_SCATTERING_PROFILE_METHOD_H
#define TSR_SCATTERING_PROFILE_METHOD_H

#include "scattering/debye.h"

typedef enum {
    TSR_METHOD_DIRECT,     /* pair by pair: gpu/debye_sum.h, or the reference */
    TSR_METHOD_FFT,        /* scattering/grid_sum.h */
    TSR_METHOD_QUADRATURE, /* scattering/plane_wave.h */
    TSR_N_METHOD,
    TSR_METHOD_AUTO = TSR_N_METHOD
} tsr_profile_method;

/* "direct", "fft", "quadrature", "auto". */
const char *tsr_profile_method_name(tsr_profile_method method);

typedef struct {
    int n_thread;
    double pair_s;       /* direct sum: seconds for one pair at one q */
    double start_s;      /* direct sum: seconds before the sum starts */
    double memory_bytes; /* memory that a method may use; 0: unknown */
} tsr_method_speed;

/* Threads and memory of this computer. The members for the direct sum are 0. */
tsr_method_speed tsr_method_speed_here(void);

/* Predicted time in seconds, from constants measured once
 * (docs/forward-model.md). TSR_METHOD_FFT: infinite if memory is too small, or
 * if the spec goes beyond tsr_grid_q_max. d_ang: largest distance between two
 * particles. */
double tsr_method_seconds(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, const tsr_method_speed *speed);

/* Runs TSR_METHOD_FFT or TSR_METHOD_QUADRATURE on the host. Errors:
 * TSR_E_INTERNAL for another method, and those of the two methods. */
tsr_status tsr_method_run(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, int n_thread,
                          const tsr_debye_progress *progress, double *profile,
                          tsr_err *err);

#endif
