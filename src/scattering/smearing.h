/* The instrument's resolution as a linear operator: each measured point is a
 * weighted mean of the ideal curve at a few q (io/resolution.h says of which
 * shape). Its rows add up to 1. */
#ifndef TSR_SCATTERING_SMEARING_H
#define TSR_SCATTERING_SMEARING_H

#include "io/resolution.h"

/* A sparse matrix: I_k = sum of weight[j] I(q[j]) over first[k] <= j <
 * first[k + 1]. */
typedef struct {
    int n;
    int *first;     /* [n + 1] */
    double *q;      /* [first[n]] 1/Angstrom */
    double *weight; /* [first[n]] */
} tsr_smearing;

/* The integrals over the shapes by Gauss and Legendre's rule, with as many
 * nodes as curves of a molecule of that largest distance need: 1e-6 of I.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_smearing_new(const tsr_resolution *resolution, int n,
                            const double *q_inv_ang, double d_max_ang,
                            tsr_smearing **out, tsr_err *err);
void tsr_smearing_free(tsr_smearing *smearing);

#endif
