/* How a molecule goes onto a grid for grid_sum.c: the box, the kernel that
 * spreads particles, the window that ends the spectrum. */
#ifndef TSR_SCATTERING_GRID_PLAN_H
#define TSR_SCATTERING_GRID_PLAN_H

#include "scattering/debye.h"

/* Form factors of many types as sums of few products of a number of the type
 * and a curve, so that a sum over all particles has to be made only for each of
 * these modes, not for each type:
 *
 *     F_t^a(q) = sum_m v_tm u_m^a(q)
 *
 * The v_tm are the singular vectors of the table of all types; components whose
 * particles have no weight share them. */

/* Group 0: components without weights. Group 1: the one with. */
typedef struct {
    int n_type, n_comp, n_q;
    int n_group[2]; /* modes of each */
    int n;          /* of both */
    int weighted;   /* the component of group 1; -1: none */
    double *value;  /* [n_type][n] v */
    double *curve;  /* [n_comp][n][n_q] u; 0 for modes of the other group */
} tsr_factor_modes;

/* What is left out is at most `error` of the largest |F_t^a(q)| at each a and
 * q. Errors: TSR_E_NOMEM. */
tsr_status tsr_factor_modes_make(const tsr_debye_spec *spec, double error,
                                 tsr_factor_modes *out, tsr_err *err);
void tsr_factor_modes_clear(tsr_factor_modes *modes);

/* The first of the modes that a component has, and the end of them. */
static inline int tsr_modes_first(const tsr_factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n_group[0] : 0;
}

static inline int tsr_modes_end(const tsr_factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n : m->n_group[0];
}

/* Points a side of what a particle is spread on, and terms of the kernel
 * between two of them. */
enum { TSR_GRID_WIDTH = 8, TSR_GRID_TERM = 14 };

typedef struct {
    double axis[3][3];    /* rows: the box's axes, x, y and z */
    double low[3], h_ang; /* least coordinates along them; spacing */
    int n[3];             /* points of the box */
    int n_filled[3];      /* points that particles are spread on */
    double k_cut;         /* 1/Angstrom: the spectrum ends there */
    double beta;          /* of the kernel */
    double kernel[TSR_GRID_TERM][TSR_GRID_WIDTH]; /* each piece's Chebyshev
                                                     polynomials */
    double *kernel_inv[3]; /* [n] 1 over the kernel's transform, by index */
    double *k[3];          /* [n] 1/Angstrom, of either sign */
    int n_fine;            /* curves at |k| = i k_cut / (n_fine - 1) */
    double *curve;         /* [n_comp][n_mode][n_fine], with the root of the
                              window */
} tsr_grid_plan;

/* Errors: TSR_E_NOMEM. */
tsr_status tsr_grid_plan_make(const tsr_debye_spec *spec,
                              const tsr_factor_modes *modes, tsr_grid_plan *out,
                              tsr_err *err);
void tsr_grid_plan_clear(tsr_grid_plan *plan);

/* Box alone, without tables: what the cost follows from. */
void tsr_grid_plan_box(const tsr_debye_spec *spec, tsr_grid_plan *out);

/* The share of the spectrum's power that the window leaves at q. */
double tsr_grid_window(const tsr_grid_plan *plan, double q_inv_ang);

/* Where a particle lies along an axis: the first point that it is spread on,
 * which is the next from WIDTH / 2 before; first points and weights along each
 * axis. */
int tsr_grid_first(const tsr_grid_plan *plan, int axis, const double xyz[3]);
void tsr_grid_place(const tsr_grid_plan *plan, const double xyz[3],
                    int first[3], double weight[3][TSR_GRID_WIDTH]);

#endif
