/* What it costs to keep the exposures of the start for a whole run: over
 * conformations that a run of the ligase draws, the curve with the start's
 * exposures against that with each conformation's own. docs/statistics.md has
 * the numbers. */
#include "posterior/setup.h"
#include "tests/objects.h"
#include "tests/test.h"

#include <unistd.h>

enum { N_Q = 61, N_CHAIN = 4, N_DRAW = 4, N_BAND = 3 };
static const double dq = 0.005;
static const double band[N_BAND + 1] = {0.01, 0.1, 0.2, 0.301};

/* In double precision, S_ab included. */
static void partials(const tsr_setup *s, const tsr_conformation *c,
                     const double *exposure, double *partial)
{
    tsr_coarse_spec spec;
    tsr_pool *pool = new_pool();
    int *type = array((size_t)s->molecule.topology->n_body, sizeof *type);
    for (int b = 0; b < s->molecule.topology->n_body; b++)
        type[b] = s->molecule.topology->body[b].type;
    OK(tsr_coarse_spec_of(s->molecule.components, s->molecule.topology->n_body,
                          type, exposure, N_Q, dq, pool, &spec, &err));
    NEW(tsr_engine, engine, tsr_engine_reference_new, &spec.spec);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, partial, &err));
    for (int i = 0; i < TSR_N_COMP_PAIR * N_Q; i++)
        partial[i] += spec.self[i];
}

/* rms relative difference in each band of q, %, scales matched below 0.1; c1 =
 * 1. */
static void compare(const double *own, const double *frozen, double c2_own,
                    double c2, double rms[N_BAND])
{
    double ratio[N_Q], scale = 0.0;
    int n_scale = 0;
    for (int k = 0; k < N_Q; k++) {
        ratio[k] = tsr_component_intensity(frozen + k, N_Q, 1.0, c2) /
                   tsr_component_intensity(own + k, N_Q, 1.0, c2_own);
        if (k * dq > band[0] - 1e-9 && k * dq < band[1])
            scale += 1.0 / ratio[k], n_scale++;
    }
    scale /= n_scale;
    for (int b = 0; b < N_BAND; b++) {
        double sum = 0.0;
        int n = 0;
        for (int k = 0; k < N_Q; k++)
            if (k * dq > band[b] - 1e-9 && k * dq < band[b + 1] - 1e-9)
                sum += pow(ratio[k] * scale - 1.0, 2.0), n++;
        rms[b] += 100.0 * sqrt(sum / n) / (N_CHAIN * N_DRAW);
    }
}

TEST(freezing_costs_little)
{
    static const char config_path[] = "configs/ligase.yaml";
    const char *const set[] = {"contrast.c2=infer", "sampler.temperatures=1"};
    static double own[TSR_N_COMP_PAIR * N_Q], frozen[TSR_N_COMP_PAIR * N_Q];
    double cost[2][N_BAND] = {{0.0}}, dry[2][N_BAND] = {{0.0}};
    tsr_config config;
    tsr_setup s;
    int done;
    if (access("../shared/data/saxs/ligase_multifoxs", R_OK) != 0) {
        print_message("../shared/data/saxs is absent\n");
        skip();
    }
    OK(tsr_config_read(config_path, 2, set, &config, &err));
    OK(tsr_setup_read(&config, 1, NULL, &s, &err));
    OK(tsr_setup_engine(&config, N_CHAIN, NULL, &s, &err));
    tsr_record *record;
    tsr_sampler *sampler;
    OK(tsr_record_new(&s.target, N_CHAIN, 1, &record, &err));
    OK(tsr_sampler_new(&s.target, N_CHAIN, s.n_thread, NULL, &sampler, &err));
    tsr_sampler_plan_warmup(sampler, 6000, 0.5);
    OK(tsr_sampler_advance(sampler, record, 1, 6000, 1, NULL, NULL, &done,
                           &err));
    double *exposure =
        array((size_t)s.molecule.topology->n_body, sizeof *exposure);
    for (int d = 0; d < N_DRAW; d++) {
        OK(tsr_sampler_advance(sampler, record, 1, 2000, 0, NULL, NULL, &done,
                               &err));
        for (int c = 0; c < N_CHAIN; c++) {
            tsr_chain_view view;
            tsr_chain_view_get(tsr_sampler_chain(sampler, c), &view);
            const tsr_conformation *x = view.state[d % view.n_state];
            OK(tsr_atom_curves_expose(s.data.atoms, &s.molecule, x, NULL,
                                      exposure, &err));
            partials(&s, x, exposure, own);
            partials(&s, x, s.data.exposure, frozen);
            for (int i = 0; i < 2; i++) {
                compare(own, frozen, 1.0 + i, 1.0 + i, cost[i]);
                compare(own, own, 1.0 + i, 0.0, dry[i]);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        print_message("  c2 = %d: %% of I(q), q to 0.1, 0.2, 0.3: exposures of "
                      "the start %.3f %.3f %.3f, no hydration %.2f %.2f %.2f\n",
                      i + 1, cost[i][0], cost[i][1], cost[i][2], dry[i][0],
                      dry[i][1], dry[i][2]);
        /* 1.5 %: the bodies' own error in the last band, for c2 = 1 */
        for (int b = 0; b < N_BAND; b++)
            assert_true(cost[i][b] < 1.5 * (i + 1) &&
                        cost[i][b] < 0.2 * dry[i][b]);
    }
    tsr_sampler_free(sampler);
    tsr_record_free(record);
    tsr_setup_clear(&s);
    tsr_config_clear(&config);
}
