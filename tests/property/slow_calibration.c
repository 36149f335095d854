/* Simulation-based calibration (Talts et al. 2018): structure, noise scale,
 * scale and background are drawn from their priors, data from those, and the
 * truth must rank evenly among draws of the posterior. Prior bookkeeping,
 * moves, likelihood, noise-scale step and the draws of c and b must all be
 * right for that; the structures come from the prior without any move. */
#include "tests/chain_step.h"
#include "tests/objects.h"
#include "tests/parameter_draw.h"
#include "tests/property/prior_sampler.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"

#include "moves/move.h"
#include "sampler/chain.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

enum { N_POINT = 24, N_REPEAT = 300, N_DRAW = 24, THIN = 400, WARMUP = 1000 };
enum { N_BIN = 5, N_QUANTITY = 8 };

/* The rank of log s is even for a flat prior too; how far it is from 0 is not.
 */
static const char *const quantity_name[N_QUANTITY] = {
    "Rg",    "middle torsion", "side chain",        "noise scale",
    "scale", "background",     "|log noise scale|", "degrees of freedom"};
static const double scale_width = 0.3;

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *extended, *truth, *start;
    tsr_prior *prior;
    prior_sampler sampler;
    tsr_form_factor_table *factors;
    tsr_noise_options noise;
    tsr_saxs saxs;
    double q[N_POINT], intensity[N_POINT], sigma[N_POINT];
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
} fixture;

static void open_fixture(fixture *f, const char *noise)
{
    const tsr_prior_options prior = {
        .clash = TSR_CLASH_SOFT, .softness = 0.8, .clash_limit = 10.0};
    memset(f, 0, sizeof *f);
    f->noise = noise_of(noise);
    noise_put(&f->noise, "scale_width", scale_width);
    sample_prior_table(&f->table);
    sample_chain("GASFPLG", NULL, &f->table, &f->t, &f->extended);
    f->truth = new_conformation(f->t);
    f->start = new_conformation(f->t);
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &prior, 0.0);
    f->sampler = (prior_sampler){
        .t = f->t, .table = &f->table, .prior = f->prior, .first = f->extended};
    f->factors = own_tsr_form_factor(sample_form_factors());
    for (int k = 0; k < N_POINT; k++)
        f->q[k] = 0.02 + 0.48 * k / (N_POINT - 1);
    f->saxs = (tsr_saxs){
        .n = N_POINT, .q = f->q, .intensity = f->intensity, .sigma = f->sigma};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        OK(tsr_fields_init(tsr_move_registry[m]->fields, f->option[m], &err));
        f->options[m] = f->option[m];
    }
    /* Torsions have several modes here; turns by any angle change between
     * them, so that the draws are all but independent. */
    const tsr_field *field = tsr_move_pivot.fields;
    while (strcmp(field->name, "uniform") != 0)
        field++;
    const double uniform = 0.5;
    memcpy(f->option[0] + field->offset, &uniform, sizeof uniform);
}

static void measure(const fixture *f, const tsr_conformation *c,
                    const double *theta, double scale, double background,
                    double value[N_QUANTITY])
{
    value[0] = tsr_conformation_rg(f->t, c, NULL);
    value[1] = tsr_conformation_torsion(f->t, c, 3, TSR_PSI);
    value[2] = c->side[3][0];
    value[3] = theta[0], value[4] = scale, value[5] = background;
    value[6] = fabs(theta[0]);
    value[7] = theta[1];
}

/* Data of the truth. The prior of the scale is flat on a range that is wide
 * against what the data leave open; that of the background is flat everywhere,
 * so that any value will do. */
static void make_data(fixture *f, gsl_rng *rng, double truth[N_QUANTITY])
{
    const tsr_noise_type *noise = tsr_noise_registry[f->noise.model];
    tsr_parameter parameter[TSR_NOISE_PARAMETERS];
    double i0, theta[TSR_NOISE_PARAMETERS] = {0.0};
    double scale = gsl_ran_flat(rng, 0.5, 3.0), background;
    OK(tsr_scattering_intensity(&(tsr_scattering){.plain = f->factors}, f->t,
                                f->truth, NULL, 0.0, &i0, &err));
    background = gsl_ran_flat(rng, -0.2, 0.2) * i0;
    noise->parameters(&f->noise, parameter);
    parameters_draw(noise->n_parameter, parameter, rng, theta);
    for (int k = 0; k < N_POINT; k++) {
        OK(tsr_scattering_intensity(&(tsr_scattering){.plain = f->factors},
                                    f->t, f->truth, NULL, f->q[k],
                                    &f->intensity[k], &err));
        f->sigma[k] = (0.01 + 0.02 * f->q[k]) * i0;
        double error = noise == &tsr_noise_student
                           ? gsl_ran_tdist(rng, 1.0 + exp(theta[1]))
                           : gsl_ran_gaussian(rng, 1.0);
        f->intensity[k] = scale * f->intensity[k] + background +
                          exp(theta[0]) * f->sigma[k] * error;
    }
    measure(f, f->truth, theta, scale, background, truth);
}

static tsr_engine *make_engine(const fixture *f, const tsr_likelihood *l)
{
    const tsr_engine_spec spec = probe_spec(l, f->t->n_body, 1);
    NEW(tsr_engine, engine, tsr_engine_reference_new, &spec);
    return engine;
}

/* One repetition: how many draws of the posterior lie below the truth. */
static void repetition(fixture *f, uint64_t number, int rank[N_QUANTITY])
{
    double truth[N_QUANTITY], value[N_QUANTITY];
    gsl_rng *rng = rng_new(2024, number);
    sample_prior(&f->sampler, rng, f->truth);
    sample_prior(&f->sampler, rng, f->start);
    make_data(f, rng, truth);
    tsr_data_set set = {.saxs = &f->saxs,
                        .noise = f->noise,
                        .background = {TSR_BACKGROUND_FLAT, 0.0}};
    const tsr_scattering scattering = {.plain = f->factors};
    NEW(tsr_likelihood, l, saxs_likelihood, f->t, &scattering,
        tsr_topology_reach(f->t, f->extended), 1, &set);
    tsr_engine *engine = make_engine(f, l);
    tsr_target target = {.topology = f->t,
                         .first = f->start,
                         .prior = f->prior,
                         .likelihood = l,
                         .move_options = f->options,
                         .seed = 9000 + number};
    double *profile = array((size_t)l->grid.n_q, sizeof *profile);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    tsr_chain *chain = new_chain(&target, 0, batch);
    for (int i = 0; i < WARMUP; i++)
        chain_step(chain, batch, profile, 1);
    for (int i = 0; i < N_DRAW; i++) {
        tsr_chain_view view;
        double theta[TSR_TERM_PARAMETERS];
        for (int j = 0; j < THIN; j++)
            chain_step(chain, batch, profile, 0);
        tsr_chain_view_get(chain, &view);
        int n = saxs_draw(l, 0, view.point, view.rng, theta);
        measure(f, view.conformation, theta, theta[n - 2], theta[n - 1], value);
        for (int k = 0; k < N_QUANTITY; k++)
            rank[k] += value[k] < truth[k];
    }
}

/* Ranks 0..N_DRAW are N_BIN bins of equal size. Chi-squared for any shape, and
 * the mean rank for a shift. */
static void ranks_are_even(const char *noise)
{
    _Static_assert((N_DRAW + 1) % N_BIN == 0, "bins of one size");
    fixture f;
    int count[N_QUANTITY][N_BIN] = {0};
    double mean[N_QUANTITY] = {0};
    open_fixture(&f, noise);
    for (int r = 0; r < N_REPEAT; r++) {
        int rank[N_QUANTITY] = {0};
        repetition(&f, (uint64_t)r, rank);
        for (int k = 0; k < N_QUANTITY; k++) {
            count[k][rank[k] * N_BIN / (N_DRAW + 1)]++;
            mean[k] += rank[k] / (double)N_REPEAT;
        }
    }
    int failed = 0;
    for (int k = 0; k < N_QUANTITY - (f.noise.model == 0); k++) {
        double each = (double)N_REPEAT / N_BIN, chi2 = 0.0;
        for (int b = 0; b < N_BIN; b++)
            chi2 += pow(count[k][b] - each, 2.0) / each;
        double sd = sqrt(N_DRAW * (N_DRAW + 2.0) / 12.0 / N_REPEAT);
        double p = gsl_cdf_chisq_Q(chi2, N_BIN - 1);
        double z = (mean[k] - 0.5 * N_DRAW) / sd;
        print_message("  %-17s", quantity_name[k]);
        for (int b = 0; b < N_BIN; b++)
            print_message(" %4d", count[k][b]);
        print_message("   p = %.3g, mean rank off by %+.1f sd\n", p, z);
        failed += p < 1e-4 || fabs(z) > 4.0;
    }
    if (failed)
        fail_msg("%d quantities are not calibrated", failed);
}

TEST(measured)
{
    ranks_are_even("measured");
}

TEST(student)
{
    ranks_are_even("student");
}
