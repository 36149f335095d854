/* Exact draws from the prior, without a Markov chain: the oracle of the moves.
 *
 * Torsions, bond angles, side chains and the places of mobile chains are drawn
 * from their densities, the coordinates built from them; what is not a product
 * (excluded volume, restraints, d_limit; each factor at most 1) is met by
 * rejection. */
#ifndef TESTS_PRIOR_SAMPLER_H
#define TESTS_PRIOR_SAMPLER_H

#include "core/vec3.h"
#include "molecule/topology.h"
#include "prior/prior.h"
#include "tests/geometry.h"
#include "tests/model_sample.h"

#include <gsl/gsl_randist.h>

typedef struct {
    const tsr_topology *t;
    const tsr_prior_table *table;
    const tsr_prior *prior;
    const tsr_conformation *first; /* for what does not change */
    double box_ang;                /* mobile chains: half the side */
    long n_drawn, n_kept;
} prior_sampler;

/* Of all that is flexible, without excluded volume and the like. */
static inline double sample_product_log(const prior_sampler *s,
                                        const tsr_conformation *c)
{
    double sum = 0.0;
    for (int i = 0; i < s->t->n_residue; i++) {
        const tsr_residue *r = &s->t->residue[i];
        double(*x)[3] = c->backbone[i];
        if (!r->flexible)
            continue;
        sum += tsr_prior_torsion_log_of(s->prior, c, i);
        sum += tsr_prior_angle_log(
            s->prior, i, tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C]));
        if (tsr_amino_has_side_chain(r->amino))
            sum += tsr_prior_side_log(s->prior, i, c->side[i]);
    }
    return sum;
}

/* C of the first residue of a chain at another angle, in its plane. */
static inline void sample_first_angle(double x[4][3], double change)
{
    double frame[3][3], axis[3];
    tsr_motion motion;
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    for (int d = 0; d < 3; d++) /* about the normal: z = C x N, towards N */
        axis[d] = x[TSR_CA][d] - frame[d][2];
    tsr_motion_about(&motion, x[TSR_CA], axis, change);
    tsr_motion_apply(&motion, x[TSR_C]);
}

static inline void sample_place_chain(const prior_sampler *s, int first,
                                      gsl_rng *rng, tsr_conformation *c)
{
    const tsr_topology *t = s->t;
    double axis[3], origin[3] = {0.0, 0.0, 0.0}, q[4], size = 0.0, shift[3];
    for (int k = 0; k < 4; k++) {
        q[k] = gsl_ran_gaussian(rng, 1.0);
        size += q[k] * q[k];
    }
    for (int k = 0; k < 4; k++)
        q[k] /= sqrt(size);
    for (int d = 0; d < 3; d++)
        axis[d] = q[1 + d];
    tsr_motion motion;
    tsr_motion_about(&motion, origin, axis, 2.0 * acos(q[0]));
    const double *ca = c->backbone[first][TSR_CA];
    for (int d = 0; d < 3; d++)
        shift[d] = gsl_ran_flat(rng, -s->box_ang, s->box_ang) -
                   tsr_vec3_dot(motion.rotation[d], ca);
    tsr_vec3_copy(motion.shift, shift);
    tsr_conformation_move(t, c, first, t->residue[first].chain_last, &motion);
}

/* A chain with a fixed residue goes back to where that was. */
static inline void sample_anchor(const prior_sampler *s, int fixed,
                                 tsr_conformation *c)
{
    double was[3][3], is[3][3];
    double(*a)[3] = s->first->backbone[fixed], (*b)[3] = c->backbone[fixed];
    tsr_motion motion;
    tsr_frame(was, a[TSR_N], a[TSR_CA], a[TSR_C]);
    tsr_frame(is, b[TSR_N], b[TSR_CA], b[TSR_C]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            motion.rotation[i][j] = was[i][0] * is[j][0] +
                                    was[i][1] * is[j][1] + was[i][2] * is[j][2];
        motion.shift[i] =
            a[TSR_CA][i] - tsr_vec3_dot(motion.rotation[i], b[TSR_CA]);
    }
    const tsr_residue *r = &s->t->residue[fixed];
    tsr_conformation_move(s->t, c, r->chain_first, r->chain_last, &motion);
}

static inline void sample_once(const prior_sampler *s, gsl_rng *rng,
                               tsr_conformation *c)
{
    const tsr_topology *t = s->t;
    internal_geometry *g = array((size_t)t->n_residue, sizeof *g);
    tsr_conformation_copy(t, c, s->first, 0, t->n_residue);
    measure_geometry(t, c, g);
    int chain = -1;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        double phi, psi;
        chain += r->chain_first == i;
        if (!r->flexible)
            continue;
        tsr_prior_torsion_draw(s->prior, i, rng, &phi, &psi);
        const tsr_angle_gaussian *a = &s->table->angle[r->amino];
        double tau = a->mean + gsl_ran_gaussian(rng, a->sd);
        if (r->has_phi)
            g[i].phi = phi;
        if (r->has_psi) {
            g[i].o_torsion += psi - g[i].psi;
            g[i].psi = psi;
        }
        if (i == r->chain_first)
            sample_first_angle(c->backbone[i], tau - g[i].n_ca_c);
        g[i].n_ca_c = tau;
        if (tsr_amino_has_side_chain(r->amino))
            tsr_prior_side_draw(s->prior, i, rng, c->side[i]);
    }
    build_geometry(t, g, c);
    chain = -1;
    for (int i = 0; i < t->n_residue; i++) {
        chain += t->residue[i].chain_first == i;
        if (t->residue[i].chain_first == i && t->mobile[chain])
            sample_place_chain(s, i, rng, c);
        int started =
            i > 0 && t->residue[i - 1].is_fixed &&
            t->residue[i - 1].chain_first == t->residue[i].chain_first;
        if (t->residue[i].is_fixed && !started && t->residue[i].copy == 0)
            sample_anchor(s, i, c);
    }
    tsr_conformation_place_copies(t, c, 0, t->n_own);
}

static inline void sample_prior(prior_sampler *s, gsl_rng *rng,
                                tsr_conformation *c)
{
    for (;;) {
        sample_once(s, rng, c);
        s->n_drawn++;
        double log_p = tsr_prior_log_reference(s->prior, c);
        if (log(gsl_rng_uniform_pos(rng)) <
            log_p - sample_product_log(s, c) + 1e-6)
            break;
    }
    s->n_kept++;
}

#endif
