/* Mixtures of species: the equilibrium, the curve of a mixture against sums
 * that are written out, and draws of the sampler against quadrature. */
#include "sampler/chain.h"
#include "sampler/sampler.h"
#include "tests/property/posterior_sample.h"
#include "tests/test.h"
#include "tests/weighted.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_sf_trig.h>

/* Mass action and balance of mass, at all ratios of c and kd; a dimer has a
 * closed form. */
TEST(equilibrium_obeys_mass_action)
{
    static const int n_unit[] = {1, 2, 3, 12, 60};
    enum { N = COUNT_OF(n_unit) };
    for (int i = -8; i <= 8; i++)
        for (int n = 2; n <= N; n++) {
            const double c = 3.0 * pow(10.0, i);
            double kd[N], fraction[N], sum = 0.0;
            for (int s = 0; s < n; s++)
                kd[s] = 0.5 + s;
            tsr_species_equilibrium(n, n_unit, kd, c, fraction);
            for (int s = 0; s < n; s++) {
                assert_true(fraction[s] >= 0.0);
                sum += fraction[s];
            }
            assert_near(sum, 1.0, 1e-12);
            for (int s = 1; s < n && fraction[0] > 1e-6; s++) {
                const double log_free = log(fraction[0] * c);
                const double particles = log(fraction[s] * c / n_unit[s]);
                if (fraction[s] > 1e-200)
                    assert_near(particles,
                                n_unit[s] * log_free -
                                    (n_unit[s] - 1) * log(kd[s]),
                                1e-7 * n_unit[s]);
            }
            if (n == 2) {
                const double b = 1.0 + kd[1] / (4.0 * c);
                assert_near(fraction[1], b - sqrt(b * b - 1.0),
                            1e-6 * fraction[1] + 1e-15 * b);
            }
        }
}

enum { N_SAMPLE = 2, N_CHAIN = 2, N_TEMP = 2, N_SPECIES = 2 };
static const double at[N_SAMPLE] = {2.0, 20.0}, true_kd = 6.0;

typedef struct {
    posterior_sample s;
    tsr_scattering scattering[N_SPECIES];
    tsr_species species[N_SPECIES];
    tsr_saxs saxs[N_SAMPLE];
    double intensity[N_SAMPLE][POSTERIOR_POINTS];
    double sigma[N_SAMPLE][POSTERIOR_POINTS];
    int *absent;
} mixture;

/* Curve of a species by its own bodies, without zeros, at a q of the table. */
static double direct(const mixture *x, int species, double q)
{
    const tsr_topology *t = x->s.t;
    const tsr_form_factor_table *f = x->s.factors;
    double sum = 0.0;
    for (int i = 0; i < t->n_body; i++)
        for (int j = 0; j < t->n_body; j++) {
            const int k = (int)lround(q / f->dq_inv_ang);
            const double *a = f->amplitude + t->body[i].type * f->n_q;
            const double *b = f->amplitude + t->body[j].type * f->n_q;
            const double r = tsr_vec3_distance(x->s.extended->body[i],
                                               x->s.extended->body[j]);
            if (species == 0 && (x->absent[i] || x->absent[j]))
                continue;
            sum += a[k] * b[k] * gsl_sf_sinc(q * r / M_PI);
            if (i == j)
                sum += f->excess[t->body[i].type * f->n_q + k];
        }
    return sum;
}

/* Fractions of a dimer at the true constant. */
static double dimer(double c)
{
    const double b = 1.0 + true_kd / (4.0 * c);
    return b - sqrt(b * b - 1.0);
}

static void open_mixture(mixture *x, int has_kd, int is_frozen)
{
    posterior_sample *s = &x->s;
    const tsr_prior_options prior = {
        .clash = TSR_CLASH_SOFT, .softness = 0.5, .clash_limit = 10.0};
    tsr_term *term[N_SAMPLE];
    tsr_engine *part[N_SPECIES];
    gsl_rng *rng = rng_new(8, 0);
    posterior_open(s, "GASFGKLEWKDG", NULL, prior);
    x->absent = array((size_t)s->t->n_body, sizeof *x->absent);
    for (int b = 0; b < s->t->n_body; b++)
        x->absent[b] = s->t->body[b].residue >= s->t->n_residue / 2;
    x->scattering[0] = x->scattering[1] = s->scattering;
    x->scattering[0].absent = x->absent;
    x->species[0] =
        (tsr_species){.name = "half", .mass = 500.0, .n_unit = 1, .is_part = 1};
    x->species[1] = (tsr_species){.name = "whole",
                                  .mass = 1000.0,
                                  .n_unit = 2,
                                  .kd = {has_kd, 0.0},
                                  .kd_range = {0.1, 300.0}};
    for (int d = 0; d < N_SAMPLE; d++) {
        const double f = dimer(at[d]);
        x->saxs[d] = s->saxs;
        x->saxs[d].intensity = x->intensity[d];
        x->saxs[d].sigma = x->sigma[d];
        for (int k = 0; k < POSTERIOR_POINTS; k++) {
            double one[N_SPECIES];
            for (int i = 0; i < N_SPECIES; i++)
                OK(tsr_scattering_intensity(&x->scattering[i], s->t,
                                            s->extended, NULL, s->q[k], &one[i],
                                            &err));
            x->sigma[d][k] = 1500.0;
            x->intensity[d][k] = (1.0 - f) * one[0] + 0.5 * f * one[1] +
                                 gsl_ran_gaussian(rng, x->sigma[d][k]);
        }
        tsr_data_set set = {.saxs = &x->saxs[d],
                            .noise = noise_of("measured"),
                            .background = {-1, 0.0}};
        noise_set(&set.noise, "scale", "1");
        OK(tsr_saxs_term_new(&set, d, &term[d], &err));
        term[d]->has_own_weights = 1;
        term[d]->at = at[d];
    }
    MAKE(tsr_likelihood, s->likelihood, tsr_likelihood_new, s->t, N_SPECIES,
         x->scattering, tsr_topology_reach(s->t, s->extended), N_SAMPLE, term);
    OK(tsr_likelihood_set_species(s->likelihood, N_SPECIES, x->species, &err));
    for (int i = 0; i < N_SPECIES; i++) {
        const tsr_engine_spec spec = tsr_likelihood_engine(
            s->likelihood, i, s->t->n_body, N_CHAIN * N_TEMP, 0.0);
        OK(tsr_engine_reference_new(&spec, &part[i], &err));
    }
    MAKE(tsr_engine, s->share.engine, tsr_engine_join, N_SPECIES, part);
    s->share.n_chain = N_CHAIN;
    s->target.n_engine = 1, s->target.engines = &s->share;
    s->target.likelihood = s->likelihood;
    s->target.n_temp = N_TEMP, s->target.t_max = 5.0;
    s->target.swap_every = 2, s->target.is_frozen = is_frozen;
}

/* The profile of a half-dimerised sample is half the curve of a monomer and a
 * quarter of that of a dimer. */
TEST(particles_are_counted_by_mass)
{
    mixture x;
    tsr_point point;
    open_mixture(&x, 0, 1);
    const tsr_likelihood *l = x.s.likelihood;
    double *partial = array((size_t)(N_SAMPLE * tsr_likelihood_n_profile(l)),
                            sizeof *partial);
    OK(tsr_likelihood_direct(l, x.s.t->n_body, x.s.extended, NULL, partial,
                             &err));
    memcpy(partial + tsr_likelihood_n_profile(l), partial,
           (size_t)tsr_likelihood_n_profile(l) * sizeof *partial);
    assert_int_equal(l->n_mixing, N_SAMPLE * N_SPECIES);
    assert_true(tsr_point_make(l, l->n_parameter, &point));
    for (int d = 0; d < N_SAMPLE; d++)
        tsr_term_start(l->term[d], point.theta + l->term[d]->first);
    double *f = point.theta + l->n_parameter - l->n_mixing;
    f[0] = f[1] = 0.5, f[2] = 0.9, f[3] = 0.1;
    saxs_evaluate(l, partial, 1.0, NULL, &point);
    for (int i = 0; i < N_SPECIES; i++)
        for (int k = 0; k < 50; k += 7) {
            double value;
            OK(tsr_scattering_intensity(&x.scattering[i], x.s.t, x.s.extended,
                                        NULL, 0.01 * k, &value, &err));
            assert_near(value, direct(&x, i, 0.01 * k), 1e-9 * value);
        }
    for (int k = 0; k < l->grid.n_q; k++) {
        const tsr_prediction none = {.n_state = 0};
        double one, both;
        OK(tsr_scattering_intensity(&x.scattering[0], x.s.t, x.s.extended, NULL,
                                    k * l->grid.dq_inv_ang, &one, &err));
        OK(tsr_scattering_intensity(&x.scattering[1], x.s.t, x.s.extended, NULL,
                                    k * l->grid.dq_inv_ang, &both, &err));
        for (int d = 0; d < N_SAMPLE; d++) {
            const double *p =
                tsr_likelihood_prediction(l, &point, l->term[d], none).profile;
            const double mean =
                d == 0 ? 0.5 * one + 0.25 * both : 0.9 * one + 0.05 * both;
            assert_near(p[k], mean, 1e-9 * mean);
        }
    }
    tsr_point_clear(&point);
}

enum { FIRST, SECOND, LOG_KD, SQUARE, N_VALUE };
static const char *const value_name[] = {"fraction at 2", "fraction at 20",
                                         "log kd", "square of the first"};

static void set_value(const tsr_likelihood *l, const double *theta,
                      double value[N_VALUE])
{
    double f[TSR_MAX_SPECIES];
    for (int m = 0; m < N_SAMPLE; m++) {
        tsr_likelihood_fractions(l, theta, m, f);
        value[m] = f[1];
        assert_near(f[0] + f[1], 1.0, 1e-12);
    }
    value[LOG_KD] = l->n_mixing == 1 ? theta[l->n_parameter - 1] : 0.0;
    value[SQUARE] = value[FIRST] * value[FIRST];
}

/* Means over the posterior at the structure of the start, by quadrature in log
 * kd, or in the fraction of each sample. */
static void integrate(const mixture *x, double mean[N_VALUE])
{
    enum { N = 200 };
    const tsr_likelihood *l = x->s.likelihood;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    const int is_kd = l->n_mixing == 1, n_grid = is_kd ? N * N : N;
    double *partial = array(N_SAMPLE * n, sizeof *partial);
    double *w = array((size_t)(N * N), sizeof *w), error[N_VALUE];
    double(*value)[N_VALUE] = array(N * N, sizeof *value);
    tsr_point point;
    OK(tsr_likelihood_direct(l, x->s.t->n_body, x->s.extended, NULL, partial,
                             &err));
    memcpy(partial + n, partial, n * sizeof *partial);
    assert_true(tsr_point_make(l, l->n_parameter, &point));
    for (int d = 0; d < N_SAMPLE; d++)
        tsr_term_start(l->term[d], point.theta + l->term[d]->first);
    double *own = point.theta + l->n_parameter - l->n_mixing;
    for (int i = 0; i < n_grid; i++)
        for (int j = 0; j < N * N / n_grid; j++) {
            const int at_grid = i * (N * N / n_grid) + j;
            if (is_kd) {
                own[0] = log(0.1) + log(3000.0) * (i + 0.5) / n_grid;
            } else {
                own[1] = (i + 0.5) / N, own[0] = 1.0 - own[1];
                own[3] = (j + 0.5) / N, own[2] = 1.0 - own[3];
            }
            w[at_grid] = saxs_evaluate(l, partial, 1.0, NULL, &point);
            set_value(l, point.theta, value[at_grid]);
        }
    weighted_means(N * N, N_VALUE, value[0], w, mean, error, NULL);
    tsr_point_clear(&point);
}

static void check_posterior(int has_kd)
{
    enum { N_BLOCK = 60, BLOCK = 100, THIN = 5 };
    double(*block)[N_VALUE] = array(N_BLOCK * N_CHAIN, sizeof *block);
    double expected[N_VALUE], mean[N_VALUE], error[N_VALUE], value[N_VALUE];
    mixture x;
    open_mixture(&x, has_kd, 1);
    integrate(&x, expected);
    posterior_run run = posterior_run_new(&x.s, N_CHAIN, 1, 1);
    posterior_warm_up(run, 2000);
    for (int i = 0; i < N_BLOCK; i++)
        for (int j = 0; j < BLOCK; j++) {
            posterior_advance(run, 1, THIN, 0);
            for (int c = 0; c < N_CHAIN; c++) {
                tsr_chain_view view;
                tsr_chain_view_get(tsr_sampler_chain(run.sampler, c), &view);
                set_value(x.s.likelihood, view.point->theta, value);
                for (int v = 0; v < N_VALUE; v++)
                    block[i * N_CHAIN + c][v] += value[v] / BLOCK;
            }
        }
    block_means(N_BLOCK * N_CHAIN, N_VALUE, block[0], mean, error);
    for (int v = 0; v < N_VALUE; v++) {
        if (v == LOG_KD && !has_kd)
            continue;
        const double z = (mean[v] - expected[v]) / error[v];
        print_message("  %-20s %8.4f, quadrature %8.4f, error %.4f: z %.2f\n",
                      value_name[v], mean[v], expected[v], error[v], z);
        assert_true(fabs(z) < 4.0);
        assert_true(error[v] < 0.05 * fabs(expected[v]) + 0.02);
    }
}

TEST(dissociation_constant_is_as_by_quadrature)
{
    check_posterior(1);
}

TEST(fractions_are_as_by_quadrature)
{
    check_posterior(0);
}

/* What chains keep of moving structures and of parameters equals a fresh
 * computation, in every sample. */
static void check_kept(int has_kd)
{
    mixture x;
    open_mixture(&x, has_kd, 0);
    const tsr_likelihood *l = x.s.likelihood;
    const int n = N_SAMPLE * l->n_view * l->grid.n_q;
    posterior_run run = posterior_run_new(&x.s, N_CHAIN, 2, 1);
    NEW(tsr_batch, batch, tsr_batch_new, x.s.share.engine, 1);
    double *profile = array((size_t)n, sizeof *profile);
    for (int round = 0; round < 6; round++) {
        posterior_advance(run, 1, 101, round < 3);
        for (int r = 0; r < N_CHAIN * N_TEMP; r++) {
            tsr_chain *chain = run.sampler->chain[r];
            tsr_chain_view was, is;
            tsr_chain_view_get(chain, &was);
            memcpy(profile, was.point->profile, (size_t)n * sizeof *profile);
            OK(tsr_chain_refresh(chain, batch, &err));
            tsr_chain_view_get(chain, &is);
            assert_near(is.log_lik, was.log_lik, 1e-7);
            assert_near(is.lp, was.lp, 1e-7);
            for (int m = 0; m < N_SAMPLE; m++) {
                const int first = (m * l->n_view + l->whole) * l->grid.n_q;
                for (int q = 0; q < l->grid.n_q; q++)
                    assert_near(profile[first + q],
                                is.point->profile[first + q],
                                1e-9 * fabs(is.point->profile[first]));
            }
            assert_true(tsr_chain_counts_get(chain)->accepted[0] > 0);
        }
    }
}

TEST(chains_are_as_if_afresh)
{
    check_kept(1);
    check_kept(0);
}
