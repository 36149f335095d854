/* The likelihood of a measured distance equals its definition for one structure
 * and for ensembles; wrong entries are refused. */
#include "tests/model_sample.h"
#include "tests/term_entry.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

OWNED(tsr_term)

enum { FIRST, LAST = 7 };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c[2];
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    sample_prior_table(&f.table);
    sample_chain("GASFPLGK", NULL, &f.table, &f.t, &f.c[0]);
    f.c[1] = new_conformation(f.t);
    tsr_conformation_copy(f.t, f.c[1], f.c[0], 0, f.t->n_residue);
    *state = &f;
    return io_setup(state) == 0 ? 0 : -1;
}

static tsr_term *term_of(const fixture *f, const char *entry)
{
    tsr_term *term;
    err = (tsr_err){0};
    if (read_term(f->t, "distance", entry, &term) != TSR_OK)
        fail_msg("%s: %s", entry, err.message);
    return own_tsr_term(term);
}

#define ENDS "between: [\"A:1\", \"A:8\"], at: ca, "

/* The likelihood where the CA atoms are r [n] apart in n states. */
static double log_lik(fixture *f, const tsr_term *term, int n, const double *r,
                      const double *weight, double log_s, double *chi2)
{
    tsr_pool pool = {0};
    void *fit = tsr_term_fit_new(term, &pool);
    const tsr_prediction prediction = {
        NULL, n, (const tsr_conformation *const *)f->c, weight};
    for (int k = 0; k < n; k++) {
        double(*a)[3] = f->c[k]->backbone[FIRST];
        double(*b)[3] = f->c[k]->backbone[LAST];
        memcpy(b[TSR_CA], a[TSR_CA], sizeof b[TSR_CA]);
        b[TSR_CA][1] += r[k];
    }
    assert_non_null(fit);
    OK(term->type->fit(term, NULL, &prediction, &log_s, fit, &err));
    double sum = term->type->log_lik(term, fit, &log_s);
    if (chi2 != NULL)
        *chi2 = term->type->chi2(term, fit);
    tsr_pool_clear(&pool);
    return sum;
}

static double density(fixture *f, const tsr_term *term, double r, double log_s)
{
    const double one = 1.0;
    return exp(log_lik(f, term, 1, &r, &one, log_s, NULL));
}

TEST(mean_and_sd)
{
    fixture *f = *state;
    const double r = 23.0, one = 1.0;
    double chi2;
    tsr_term *term = term_of(f, ENDS "mean: 20, sd: 2");
    const tsr_parameter *s = &term->parameter[0];
    for (double log_s = -0.5; log_s < 1.0; log_s += 0.7) {
        double want = log(gsl_ran_gaussian_pdf(3.0, 2.0 * exp(log_s)));
        assert_near(log_lik(f, term, 1, &r, &one, log_s, &chi2), want, 1e-12);
        assert_near(chi2, 2.25, 1e-12); /* by sd, whatever s */
    }
    assert_int_equal(term->n_parameter, 1);
    assert_true(s->infer && s->shape == TSR_PRIOR_NORMAL && s->mean == 0.0 &&
                s->width == 0.3);
    term = term_of(f, ENDS "mean: 20, sd: 2, scale: 1.5");
    assert_false(term->parameter[0].infer);
    assert_near(term->parameter[0].start, log(1.5), 1e-15);
}

/* Two peaks; 1e-3 of the top counts as a hundredth of it. */
enum { N_ROW = 9 };
static const double row_r[N_ROW] = {20.0, 22.0, 23.0, 25.0, 26.0,
                                    28.0, 29.5, 31.0, 33.0};
static const double row_p[N_ROW] = {0.04, 0.5, 2.0, 0.8,  0.4,
                                    1.0,  1.2, 0.3, 0.002};

static const char *write_rows(const char *name, double unit)
{
    char text[600];
    size_t n = 0;
    for (int i = 0; i < N_ROW; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.6f %g\n",
                              unit * row_r[i], row_p[i]);
    return io_write(name, text, n);
}

static double integral(fixture *f, const tsr_term *term, double log_s)
{
    const double step = 0.002;
    double sum = 0.0;
    for (int i = 0; i < 50000; i++)
        sum += step * density(f, term, (i + 0.5) * step, log_s);
    return sum;
}

TEST(table)
{
    fixture *f = *state;
    write_rows("p.dat", 1.0);
    write_rows("nm.dat", 0.1);
    tsr_term *term = term_of(f, ENDS "file: p.dat");
    tsr_term *nm = term_of(f, ENDS "file: nm.dat, unit: nm");
    double sum = 0.0, first = 0.0, square = 0.0;
    for (int i = 0; i + 1 < N_ROW; i++) {
        double h = 0.5 * (row_r[i + 1] - row_r[i]);
        sum += h * (row_p[i] + row_p[i + 1]);
        first += h * (row_p[i] * row_r[i] + row_p[i + 1] * row_r[i + 1]);
        square += h * (row_p[i] * row_r[i] * row_r[i] +
                       row_p[i + 1] * row_r[i + 1] * row_r[i + 1]);
    }
    const double mean = first / sum, sd = sqrt(square / sum - mean * mean);
    assert_nears(1e-9, term->observed[0], mean, term->sigma[0], sd);
    assert_near(integral(f, term, 0.0), 1.0, 1e-4);
    assert_near(integral(f, term, log(1.4)), 1.0, 1e-4);
    const double norm = density(f, term, row_r[2], 0.0) / row_p[2];
    for (int i = 0; i < N_ROW; i++) {
        double p = fmax(row_p[i], 0.02), had = density(f, term, row_r[i], 0.0);
        assert_near(had / (norm * p), 1.0, 1e-9);
        assert_near(density(f, nm, row_r[i], 0.0) / had, 1.0, 1e-4);
    }
    /* linear in the logarithm between rows, normal beyond them */
    assert_near(density(f, term, 22.5, 0.0) / norm, 1.0, 1e-9);
    assert_near(density(f, term, 20.0 - sd, 0.0) / (norm * 0.04 * exp(-0.5)),
                1.0, 1e-9);
    assert_near(density(f, term, 33.0 + 2.0 * sd, 0.0) /
                    (norm * 0.02 * exp(-2.0)),
                1.0, 1e-9);
    /* wider about its mean */
    for (double r = 15.0; r < 40.0; r += 3.7) {
        double wide = density(f, term, mean + 1.6 * (r - mean), log(1.6));
        assert_near(1.6 * wide / density(f, term, r, 0.0), 1.0, 1e-9);
    }
}

/* Of an ensemble each state's distance counts as its weight says. */
TEST(ensembles)
{
    fixture *f = *state;
    const double r[] = {17.0, 24.0}, weight[] = {0.3, 0.7}, one = 1.0;
    double chi2, value;
    tsr_term *term = term_of(f, ENDS "mean: 20, sd: 2");
    double both = log_lik(f, term, 2, r, weight, 0.2, &chi2);
    const tsr_prediction prediction = {
        NULL, 2, (const tsr_conformation *const *)f->c, weight};
    const double log_s = 0.2;
    void *fit = tsr_term_fit_new(term, &term->pool);
    term->type->fit(term, NULL, &prediction, &log_s, fit, NULL);
    term->type->predict(term, &prediction, fit, &log_s, &value);
    assert_near(value, (0.3 * 17.0 + 0.7 * 24.0), 1e-9);
    assert_near(chi2, (0.3 * 2.25 + 0.7 * 4.0), 1e-9);
    double want = 0.3 * log_lik(f, term, 1, &r[0], &one, 0.2, NULL) +
                  0.7 * log_lik(f, term, 1, &r[1], &one, 0.2, NULL);
    assert_near(both, want, 1e-9);
}

static void refused(const fixture *f, const char *entry, tsr_status want,
                    const char *why)
{
    tsr_term *term;
    err = (tsr_err){0};
    tsr_status status = read_term(f->t, "distance", entry, &term);
    assert_null(term);
    if (status != want || strstr(err.message, why) == NULL)
        fail_msg("%s: '%s' does not say '%s'", entry, err.message, why);
}

TEST(bad_input)
{
    fixture *f = *state;
    char flexible_range[] = "A:5-6", *range[] = {flexible_range};
    const tsr_strings flexible = {1, range};
    fixture stiff = {.t = NULL};
    static const struct {
        const char *rows, *why;
    } tables[] = {
        {"20 1\n22 2\n21 3\n24 1\n", "bad.dat:3: expected a distance above"},
        {"20 1\n22 nan\n24 1\n26 1\n", "bad.dat:2"},
        {"20 1\n22 2\n", "three"},
        {"20 0\n22 1\n24 0\n26 0\n", "no distribution in its 4 rows"},
        {"20 0\n22 0\n24 -1\n26 0\n", "no distribution in its 4 rows"},
        {"-2 1\n2 1\n4 1\n6 1\n", "bad.dat:1: expected a distance above"}};
    refused(f, ENDS "mean: 20", TSR_E_CONFIG, "data.0: a distance needs mean");
    refused(f, ENDS "sd: 2", TSR_E_CONFIG, "data.0: a distance needs mean");
    refused(f, "mean: 20, sd: 2", TSR_E_CONFIG,
            "data.0: between: names 0 residues; expected two");
    refused(f, "between: [\"A:1\", \"A:90\"], mean: 20, sd: 2", TSR_E_CONFIG,
            "data.0: between: ");
    refused(f, "between: [\"A:1\", \"A:1\"], mean: 20, sd: 2", TSR_E_CONFIG,
            "are the same residue: their distance cannot change");
    write_rows("p.dat", 1.0);
    refused(f, ENDS "file: p.dat, sd: 2", TSR_E_CONFIG,
            "data.0: give mean and sd, or a file, not both");
    refused(f, ENDS "file: p.dat, mean: 20", TSR_E_CONFIG,
            "data.0: give mean and sd, or a file, not both");
    refused(f, ENDS "file: nowhere.dat", TSR_E_NOINPUT, "nowhere.dat");
    refused(f, ENDS "q_unit: 1/nm", TSR_E_CONFIG,
            "it has no effect with kind: distance; it belongs to kind: saxs");
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        io_write("bad.dat", tables[i].rows, strlen(tables[i].rows));
        refused(f, ENDS "file: bad.dat", TSR_E_DATA, tables[i].why);
    }
    sample_chain("GASFPLGK", &flexible, &f->table, &stiff.t, &stiff.c[0]);
    refused(&stiff, "between: [\"A:1\", \"A:3\"], mean: 20, sd: 2",
            TSR_E_CONFIG, "are in one rigid part");
}

static test_fixture around_all = {open_fixture, io_teardown};
