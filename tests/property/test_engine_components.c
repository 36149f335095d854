/* Every partial profile of every engine equals the reference after random
 * moves, and their weighted sum equals an engine of one component. */
#include "../engine_support.h"
#include "tests/test.h"

enum { N_BODY = 150, N_Q = 24, N_TYPE = 4, N_SYSTEM = 2, N_STEP = 30 };

static const double dq = 0.02, radius_ang = 25.0;

typedef struct {
    int n_comp, type[N_BODY];
    double factor[3 * N_TYPE * N_Q];
    double xyz[N_SYSTEM][N_BODY][3];
    tsr_engine_spec spec;
} problem;

/* Positive and negative amplitudes, as solute and displaced solvent have; no
 * component is a multiple of another, or who takes F_i^a F_j^b for F_i^b F_j^a
 * would not be seen. */
static void make_problem(problem *p, int n_comp)
{
    uint64_t random = 5;
    memset(p, 0, sizeof *p);
    p->n_comp = n_comp;
    for (int i = 0; i < N_BODY; i++)
        p->type[i] = (int)(N_TYPE * uniform(&random));
    for (int c = 0; c < 3; c++)
        for (int t = 0; t < N_TYPE; t++)
            for (int k = 0; k < N_Q; k++)
                p->factor[(c * N_TYPE + t) * N_Q + k] =
                    (c == 1 ? -5.0 : 9.0) * (1.0 + 0.2 * (t * (c + 1) % 4)) *
                    exp(-(1.0 + c) * k * k * dq * dq);
    for (int s = 0; s < N_SYSTEM; s++)
        for (int i = 0; i < N_BODY; i++)
            for (int d = 0; d < 3; d++)
                p->xyz[s][i][d] = radius_ang * (2.0 * uniform(&random) - 1.0);
    p->spec = (tsr_engine_spec){.n_body = N_BODY,
                                .n_type = N_TYPE,
                                .n_comp = n_comp,
                                .n_q = N_Q,
                                .dq_inv_ang = dq,
                                .n_system = N_SYSTEM,
                                .type = p->type,
                                .form_factor = p->factor,
                                .d_bound_ang = 4.0 * radius_ang};
}

/* Moves runs of bodies at random, accepts half of them; xyz follows. */
static void random_moves(problem *p, tsr_batch *batch, double *profile)
{
    uint64_t random = 17;
    for (int step = 0; step < N_STEP; step++) {
        int s = step % N_SYSTEM, count = 1 + (int)(20 * uniform(&random));
        int first = (int)((N_BODY - count) * uniform(&random));
        double moved[N_BODY][3];
        for (int i = 0; i < count; i++)
            for (int d = 0; d < 3; d++)
                moved[i][d] = p->xyz[s][first + i][d] + uniform(&random) - 0.5;
        tsr_body_range range = {first, count, 0, (const double(*)[3])moved};
        tsr_body_proposal proposal = {s, 1, &range};
        OK(tsr_batch_submit(batch, 1, &proposal, &err));
        OK(tsr_batch_wait(batch, profile, &err));
        if (uniform(&random) < 0.5) {
            tsr_batch_reject(batch, s);
            continue;
        }
        tsr_batch_accept(batch, s);
        memcpy(p->xyz[s][first], moved, (size_t)count * sizeof moved[0]);
    }
}

/* Partial profiles may change sign, so errors are relative to sqrt(Iaa Ibb),
 * which bounds |Iab| (Cauchy-Schwarz: the Debye matrix is positive definite).
 */
static void compare(const char *name, const problem *p, const double *got,
                    const double *exact, double limit)
{
    int n_pair = p->n_comp * (p->n_comp + 1) / 2, pair = 0;
    static const int diagonal[4][3] = {{0}, {0}, {0, 2}, {0, 3, 5}};
    for (int a = 0; a < p->n_comp; a++)
        for (int b = a; b < p->n_comp; b++, pair++)
            for (int k = 0; k < N_Q; k++) {
                double iaa = exact[diagonal[p->n_comp][a] * N_Q + k];
                double ibb = exact[diagonal[p->n_comp][b] * N_Q + k];
                double error =
                    fabs(got[pair * N_Q + k] - exact[pair * N_Q + k]) /
                    sqrt(iaa * ibb);
                if (!(error <= limit))
                    fail_msg("%s, K = %d: pair %d of %d, q %d: %g is off by "
                             "%.2g",
                             name, p->n_comp, pair, n_pair, k,
                             got[pair * N_Q + k], error);
            }
}

/* 1: every variant; slow_engine_components.c says so. */
#ifndef COMPONENTS_ALL
#define COMPONENTS_ALL 0
#endif

/* Of n_comp components. Compilers take eight seconds for a SIMT kernel of
 * several, so two and three share the variants' features: both kinds, groups of
 * pages, with and without atomics and differences. */
static int is_wanted(int n_comp, int v)
{
    static const unsigned variant[] = {0, 1u << 0 | 1u << 7,
                                       1u << 2 | 1u << 5 | 1u << 7,
                                       1u << 0 | 1u << 1 | 1u << 3 | 1u << 8};
    return COMPONENTS_ALL || variant[n_comp] >> v & 1u;
}

/* The compiler of PoCL 6 fails an assertion of its own (WorkitemLoops.cc: "PHI
 * node at the region entry") on the GPU's kernel of several components, whose
 * barriers all work-items reach. A CPU uses that kernel in tests alone. */
static int can_build(const tsr_device *device, int n_comp, int v)
{
    const tsr_device_info *info = tsr_device_get_info(device);
    const int is_pocl_6 = strstr(info->platform, "Portable") != NULL &&
                          strncmp(info->driver, "6.", 2) == 0;
    if (n_comp == 1 || !is_pocl_6 ||
        variants[v].options.variant != TSR_PAGE_TILE_SIMT)
        return 1;
    printf("skipped: %s of %d components, by PoCL 6\n", variants[v].name,
           n_comp);
    return 0;
}

TEST(against_reference)
{
    tsr_device *device = need_device();
    for (int n_comp = 1; n_comp <= 3; n_comp++)
        for (int v = 0; v < N_VARIANT; v++) {
            static problem p;
            double got[6 * N_Q], exact[6 * N_Q], allowed;
            if (!has_variant(&variants[v]) || !is_wanted(n_comp, v) ||
                !can_build(device, n_comp, v))
                continue;
            make_problem(&p, n_comp);
            tsr_engine *engine = new_variant(&p.spec, device, &variants[v]);
            NEW(tsr_engine, reference, tsr_engine_reference_new, &p.spec);
            assert_int_equal(engine->n_pair, n_comp * (n_comp + 1) / 2);
            assert_int_equal(reference->n_pair, engine->n_pair);
            NEW(tsr_batch, batch, tsr_batch_new, engine, N_SYSTEM);
            NEW(tsr_batch, truth, tsr_batch_new, reference, 1);
            for (int s = 0; s < N_SYSTEM; s++)
                OK(tsr_batch_set(batch, s, (const double(*)[3])p.xyz[s], NULL,
                                 &err));
            random_moves(&p, batch, got);
            for (int s = 0; s < N_SYSTEM; s++) {
                OK(tsr_batch_profile(batch, s, got, &err));
                OK(tsr_batch_set(truth, s, (const double(*)[3])p.xyz[s], exact,
                                 &err));
                compare(variants[v].name, &p, got, exact, variants[v].limit);
                assert_int_equal(
                    tsr_engine_worst_difference(engine, got, exact, &allowed),
                    -1);
            }
        }
}

/* sum_ab C_a C_b I_ab = I of the amplitudes sum_a C_a F^a. */
TEST(coefficients)
{
    static problem p, one;
    static const double c[3] = {1.0, 0.8, -0.3};
    double partial[6 * N_Q], whole[N_Q];
    make_problem(&p, 3);
    make_problem(&one, 1);
    for (int t = 0; t < N_TYPE * N_Q; t++) {
        one.factor[t] = 0.0;
        for (int comp = 0; comp < 3; comp++)
            one.factor[t] += c[comp] * p.factor[comp * N_TYPE * N_Q + t];
    }
    NEW(tsr_engine, many, tsr_engine_reference_new, &p.spec);
    NEW(tsr_engine, single, tsr_engine_reference_new, &one.spec);
    NEW(tsr_batch, a, tsr_batch_new, many, 1);
    NEW(tsr_batch, b, tsr_batch_new, single, 1);
    OK(tsr_batch_set(a, 0, (const double(*)[3])p.xyz[0], partial, &err));
    OK(tsr_batch_set(b, 0, (const double(*)[3])p.xyz[0], whole, &err));
    for (int k = 0; k < N_Q; k++) {
        double sum = 0.0, size = 0.0;
        int pair = 0;
        for (int i = 0; i < 3; i++)
            for (int j = i; j < 3; j++, pair++) {
                double term = (i == j ? 1.0 : 2.0) * c[i] * c[j] *
                              partial[pair * N_Q + k];
                sum += term;
                size += fabs(term);
            }
        assert_near(sum, whole[k], 1e-12 * size);
    }
}

TEST(refused)
{
    static problem p;
    tsr_engine *engine;
    make_problem(&p, 1);
    p.spec.n_comp = 4;
    FAILS(tsr_engine_reference_new(&p.spec, &engine, &err), TSR_E_INTERNAL,
          "components");
}
