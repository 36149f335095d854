/* The collective move keeps the prior with a learnt metric, and the opposite
 * step leads back. */
#include "tests/objects.h"
#include "tests/property/moves_support.h"
#include "tests/test.h"

/* Springs to places in space and between bodies, as data might hold them. */
static void springs(const void *context, int n, const double *v, double *y)
{
    const int rows = 3 * ((const tsr_topology *)context)->n_body;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) {
            const double next = r + 3 < rows ? v[(r + 3) * n + i] : 0.0;
            const double apart = 0.1 * (v[r * n + i] - next);
            y[r * n + i] += 0.01 * v[r * n + i] + apart;
            if (r + 3 < rows)
                y[(r + 3) * n + i] -= apart;
        }
}

/* The collective move with a metric that it has learnt: exact draws of the
 * prior stay exact draws. A chain without data has no such move, so that steps
 * are made here. */
TEST(collective_keeps_the_prior)
{
    enum { N = 125, STEPS = 60 };
    const tsr_move_type *type = &tsr_move_collective;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const int n = f.t->n_residue;
        const tsr_hessian stiffness = {f.t, springs};
        oracle o = oracle_new(&f, 8 * N);
        double *after = array((size_t)N * MAX_VALUE, sizeof *after);
        gsl_rng *rng = rng_new(22, (uint64_t)k);
        tsr_conformation *to = new_conformation(f.t);
        tsr_pool *pool = new_pool();
        void *move =
            type->state_new(pool, f.options[TSR_MOVE_collective], f.t, f.prior);
        type->learn(move, f.c, &stiffness);
        long accepted = 0;
        double shift[3] = {0.0}, square[3] = {0.0};
        for (int i = 0; i < N; i++) {
            double end[MAX_VALUE];
            sample_prior(&f.sampler, rng, f.c);
            for (int s = 0; s < STEPS; s++) {
                tsr_proposal p;
                tsr_conformation_copy(f.t, to, f.c, 0, n);
                type->propose(move, f.c, to, rng, &p);
                for (int d = 0; d < 3; d++) {
                    const double by = to->backbone[n - 4][TSR_CA][d] -
                                      f.c->backbone[n - 4][TSR_CA][d];
                    shift[d] += by;
                    square[d] += by * by;
                }
                const double change = tsr_prior_log_reference(f.prior, to) -
                                      tsr_prior_log_reference(f.prior, f.c);
                if (log(gsl_rng_uniform_pos(rng)) < change + p.log_ratio) {
                    tsr_conformation_copy(f.t, f.c, to, 0, n);
                    accepted++;
                }
            }
            measure(&f, f.c, end);
            for (int v = 0; v < o.n_value; v++)
                after[v * N + i] = end[v];
        }
        check_after(cases[k].name, &o, 1u << TSR_MOVE_collective, N, after);
        /* that of the complex stays but for the shift of its chain; the move
         * does not shift the subunit of a symmetric assembly */
        const int shifts = cases[k].mobile != NULL && f.t->symmetry.n <= 1;
        for (int d = 0; d < 3 && shifts; d++)
            if (!(square[d] > 1.0 && fabs(shift[d]) < 4.0 * sqrt(square[d])))
                fail_msg("shifted by %g along axis %d", shift[d], d);
        if (accepted < 3L * N)
            fail_msg("%s: %ld accepted", cases[k].name, accepted);
    }
}

/* A stream whose normal numbers are those of another, with the other sign: of
 * a word gsl_ran_gaussian_ziggurat takes bit 7 as the sign. */
static unsigned long mirrored(void *state)
{
    return gsl_rng_get(*(gsl_rng **)state) ^ 0x80ul;
}

static double mirrored_uniform(void *state)
{
    return gsl_rng_uniform(*(gsl_rng **)state);
}

static void mirrored_set(void *state, unsigned long seed)
{
    (void)state, (void)seed;
}

static const gsl_rng_type mirror = {"mirror",          0xffffffffUL, 0,
                                    sizeof(gsl_rng *), mirrored_set, mirrored,
                                    mirrored_uniform};

/* The way back is the opposite step, of the same density: with it, the
 * conformation comes back, in place. It would not if the whole turned about an
 * atom that torsions carry. A test of the prior alone does not see this, since
 * the prior of place is flat. */
TEST(opposite_step_leads_back)
{
    const tsr_move_type *type = &tsr_move_collective;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const int n = f.t->n_residue;
        const tsr_hessian stiffness = {f.t, springs};
        tsr_conformation *to = new_conformation(f.t);
        tsr_conformation *back = new_conformation(f.t);
        gsl_rng *away = gsl_rng_alloc(&mirror);
        tsr_pool *pool = new_pool();
        void *move =
            type->state_new(pool, f.options[TSR_MOVE_collective], f.t, f.prior);
        type->learn(move, f.c, &stiffness);
        double far = 0.0, off = 0.0;
        for (int i = 0; i < 20; i++) {
            tsr_proposal p;
            gsl_rng *there = rng_new(23, (uint64_t)i);
            gsl_rng *again = rng_new(23, (uint64_t)i);
            memcpy(away->state, &again, sizeof again);
            tsr_conformation_copy(f.t, to, f.c, 0, n);
            type->propose(move, f.c, to, there, &p);
            tsr_conformation_copy(f.t, back, to, 0, n);
            type->propose(move, to, back, away, &p);
            for (int r = 0; r < n; r++) {
                const double *from = f.c->backbone[r][TSR_CA];
                far =
                    fmax(far, tsr_vec3_distance(from, to->backbone[r][TSR_CA]));
                off = fmax(off,
                           tsr_vec3_distance(from, back->backbone[r][TSR_CA]));
            }
        }
        if (!(far > 1.0 && off < 1e-6))
            fail_msg("%s: %g Angstrom away and back to %g", cases[k].name, far,
                     off);
    }
}
