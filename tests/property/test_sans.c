/* Neutron curves in several shares of D2O, beside an X-ray curve, equal direct
 * sums during sampling.
 *
 * 5ZNG, two chains, one of them deuterated. */
#include "posterior/all_atoms.h"
#include "tests/objects.h"
#include "tests/test.h"

#include "core/vec3.h"
#include "sampler/chain.h"
#include "tests/chain_step.h"
#include "tests/saxs_likelihood.h"
#include "tests/setup_sample.h"

#include <unistd.h>

#define MODEL "../shared/data/structures/5zng.pdb.gz"
static const char data_path[] = "sans.tmp.dat";

/* One sample in three solvents, another, and X-rays. */
static const char series[] =
    "data:\n"
    "  - {file: sans.tmp.dat}\n"
    "  - {kind: sans, file: sans.tmp.dat, d2o: 0}\n"
    "  - {kind: distance, between: ['A:1000', 'C:40'], mean: 25, sd: 9}\n"
    "  - {kind: sans, file: sans.tmp.dat, d2o: 0.42, deuterated: [A=0.7]}\n"
    "  - {kind: sans, file: sans.tmp.dat, d2o: 0.42, background: none}\n"
    "  - {kind: sans, file: sans.tmp.dat, d2o: 1}\n";
enum { SERIES = 6, XRAY = 0, OTHER = 3 };
static const double d2o_of[SERIES] = {0.0, 0.0, 0.0, 0.42, 0.42, 1.0};

static void needs_model(void)
{
    if (access(MODEL, R_OK) == 0)
        return;
    print_message("../shared/data/structures is absent\n");
    skip();
}

/* Errors of `relative` of the curve; above 1 all are the same, and there is no
 * information. */
static void write_data(double relative)
{
    FILE *f = fopen(data_path, "w");
    assert_non_null(f);
    for (int k = 0; k < 40; k++) {
        const double q = 0.01 + 0.007 * k, y = exp(-70.0 * q * q) + 0.02;
        fprintf(f, "%.6g %.9g %.9g\n", q, y,
                relative < 1.0 ? relative * y : relative);
    }
    assert_int_equal(fclose(f), 0);
}

static void open_sample(sample *x, const char *data, int n_set,
                        const char *const *set)
{
    char text[2000];
    snprintf(text, sizeof text,
             "structure: {file: " MODEL ", flexible: ['A:1060-1069'], "
             "mobile: [C]}\n%s"
             "sampler: {chains: 1, temperatures: 1}\n",
             data);
    start_sample(x, n_set, set, text);
    unlink(data_path);
}

static tsr_atom_curves *curves_of(const sample *x)
{
    NEW(tsr_atom_curves, curves, tsr_atom_curves_new, &x->s.molecule,
        &x->s.data.likelihood->grid, NULL, NULL);
    return curves;
}

static const double *profile_of(const tsr_likelihood *l,
                                const tsr_chain_view *view, int d)
{
    return view->point->profile + l->term[d]->view * l->grid.n_q;
}

/* ---- what the chain sees ---- */

static void walk(tsr_chain *chain, tsr_batch *batch, int n, int warm)
{
    double partial[4096];
    for (int i = 0; i < n; i++)
        chain_step(chain, batch, partial, warm);
}

/* The profile of every term is that of its own solvent and sample, pair by pair
 * in double precision; after steps that were accepted and rejected as from
 * afresh. */
static void check_walk(const char *device, double close)
{
    const char *const set[] = {device, "model_error=none", "seed=4"};
    sample x;
    tsr_chain_view view;
    write_data(0.03);
    open_sample(&x, series, 3, set);
    const tsr_likelihood *l = x.s.data.likelihood;
    assert_int_equal(l->n_probe, 3);
    assert_int_equal(l->n_view, 5);
    assert_int_equal(l->n_pair, 3 + 6 + 3);
    assert_true(tsr_likelihood_n_profile(l) <= 4096);
    tsr_atom_curves *curves = curves_of(&x);
    NEW(tsr_batch, batch, tsr_batch_new, x.s.devices.group[0].engine, 1);
    tsr_chain *chain = new_chain(&x.s.target, 0, batch);
    walk(chain, batch, 150, 1);
    tsr_chain_view_get(chain, &view);
    const double before = view.log_lik;
    const tsr_chain_counts *counts = tsr_chain_counts_get(chain);
    long proposed = 0, accepted = 0;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        proposed += counts->proposed[m];
        accepted += counts->accepted[m];
    }
    assert_true(accepted > 5 && accepted < proposed - 5);
    for (int d = 0; d < SERIES; d++) {
        tsr_scattering s = *x.s.data.scattering;
        double match;
        if (d == 2)
            continue;
        if (d != XRAY) {
            NEW(tsr_neutron_bodies, bodies, tsr_atom_curves_bodies, curves,
                x.s.molecule.first, l->term[d]->neutron, 1, &d2o_of[d], &match);
            s.neutron = bodies;
        }
        const double *profile = profile_of(l, &view, d);
        for (int k = 0; k < l->grid.n_q; k += 3) {
            double exact;
            OK(tsr_scattering_intensity(
                &s, x.s.molecule.topology, view.conformation,
                tsr_parameters_contrast(view.parameters, view.point->theta),
                k * l->grid.dq_inv_ang, &exact, &err));
            assert_near(profile[k], exact, close * fabs(exact));
        }
    }
    OK(tsr_chain_refresh(chain, batch, &err));
    tsr_chain_view_get(chain, &view);
    assert_near(view.log_lik, before, 20.0 * close * fabs(before));
}

TEST(reference_sees_each_sample)
{
    needs_model();
    check_walk("device.use=reference", 1e-9);
}

TEST(device_sees_each_sample)
{
    needs_model();
    check_walk("device.use=cpu", 5e-5);
}

/* ---- bodies from their atoms ---- */

/* Amplitude of a particle of a model in its own solvent. */
static double amplitude(const tsr_atom_model *m, const double *factor, int i,
                        double c2)
{
    const int n = m->n_type, t = m->type[i];
    return factor[t] - factor[n + t] + c2 * m->surface[i] * factor[2 * n + t];
}

/* F of every body at one q, and the sum of what the bodies' own intensities
 * have beside F^2, from the file's atoms alone. */
static double bodies_of_file(const tsr_topology *t, const tsr_conformation *c,
                             const tsr_neutron *neutron, double c2, double q,
                             double *f)
{
    double match, self = 0.0;
    NEW(tsr_atoms, atoms, tsr_atoms_read, MODEL);
    NEW(tsr_atom_model, m, tsr_atom_model_new, atoms, TSR_SOLVENT_LAYER,
        TSR_WATER_DENSITY);
    OK(tsr_neutron_apply(neutron, atoms, m, NULL, &match, &err));
    double *at_two = array(3 * 2 * (size_t)m->n_type, sizeof *at_two);
    double *factor = array(3 * (size_t)m->n_type, sizeof *factor);
    int *body = array((size_t)m->n, sizeof *body);
    tsr_atom_model_factors(m, 2, q, at_two);
    for (int i = 0; i < 3 * m->n_type; i++)
        factor[i] = at_two[2 * i + 1];
    for (int i = 0, k = 0; i < atoms->n_atom; i++) {
        const tsr_residue *r = &t->residue[atoms->atom[i].residue];
        const int own =
            tsr_body_of_atom(t->body_model, r->amino, atoms->atom[i].name);
        if (atoms->atom[i].z != 1)
            body[k++] = r->first_body + (own > 0 ? own : 0);
    }
    for (int i = m->n_atom; i < m->n; i++) /* the bead's atom is the nearest */
        for (int k = 0, best = -1; k < m->n_atom; k++)
            if (best < 0 || tsr_vec3_distance(m->xyz[i], m->xyz[k]) <
                                tsr_vec3_distance(m->xyz[i], m->xyz[best])) {
                best = k;
                body[i] = body[k];
            }
    memset(f, 0, (size_t)t->n_body * sizeof *f);
    for (int i = 0; i < m->n; i++) {
        const double u = amplitude(m, factor, i, c2);
        const double x = q * tsr_vec3_distance(m->xyz[i], c->body[body[i]]);
        f[body[i]] += u * (x > 1e-8 ? sin(x) / x : 1.0);
        for (int k = 0; k < m->n; k++) {
            const double y = q * tsr_vec3_distance(m->xyz[i], m->xyz[k]);
            if (body[k] == body[i])
                self += u * amplitude(m, factor, k, c2) *
                        (y > 1e-8 ? sin(y) / y : 1.0);
        }
    }
    for (int b = 0; b < t->n_body; b++)
        self -= f[b] * f[b];
    return self;
}

/* Each term's curve of the start from form factors that are made here, of the
 * atoms in the file, in the term's own solvent: no components. */
TEST(bodies_are_their_atoms)
{
    const char *const set[] = {"device.use=reference", "model_error=none",
                               "contrast.c2=1.3"};
    const double value[TSR_N_CONTRAST] = {1.0, 1.3};
    sample x;
    double partial[4096], profile[512], f[512];
    needs_model();
    write_data(0.03);
    open_sample(&x, series, 3, set);
    const tsr_likelihood *l = x.s.data.likelihood;
    const tsr_topology *t = x.s.molecule.topology;
    assert_true(t->n_body <= 512 && l->grid.n_q <= 512);
    assert_int_equal(l->n_pair, 1 + 3 + 1); /* c2 is fixed */
    NEW(tsr_batch, batch, tsr_batch_new, x.s.devices.group[0].engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])x.s.molecule.first->body,
                     partial, &err));
    for (int d = 0; d < SERIES; d++) {
        const tsr_term *term = l->term[d];
        if (term->neutron == NULL)
            continue;
        tsr_likelihood_profile(l, term->view, partial, value, profile);
        for (int k = 1; k < l->grid.n_q; k += 6) {
            const double q = k * l->grid.dq_inv_ang;
            double sum = bodies_of_file(t, x.s.molecule.first, term->neutron,
                                        value[TSR_C2], q, f);
            for (int a = 0; a < t->n_body; a++)
                for (int b = 0; b < t->n_body; b++) {
                    const double y =
                        q * tsr_vec3_distance(x.s.molecule.first->body[a],
                                              x.s.molecule.first->body[b]);
                    sum += f[a] * f[b] * (y > 1e-8 ? sin(y) / y : 1.0);
                }
            /* OXT is put opposite O, not where the file has it */
            assert_near(profile[k], sum, 2e-3 * fabs(sum));
        }
    }
}

/* ---- contrast ---- */

/* At the share of D2O that the atoms' lengths and volumes say I(0) vanishes,
 * without a layer. */
TEST(match_point_has_no_forward_scattering)
{
    char at_match[256];
    const char *const set[] = {"device.use=reference", "model_error=none",
                               "contrast.c2=0"};
    const double value[TSR_N_CONTRAST] = {1.0, 0.0}, water = 0.0;
    const tsr_neutron neutron = {.exchange = 0.9};
    sample x;
    double partial[4096], profile[2][512], match;
    needs_model();
    write_data(0.03);
    open_sample(&x, "data: [{kind: sans, file: sans.tmp.dat}]\n", 3, set);
    tsr_atom_curves *curves = curves_of(&x);
    NEW(tsr_neutron_bodies, bodies, tsr_atom_curves_bodies, curves,
        x.s.molecule.first, &neutron, 1, &water, &match);
    assert_true(match > 0.38 && match < 0.48);
    snprintf(at_match, sizeof at_match,
             "data:\n"
             "  - {kind: sans, file: sans.tmp.dat}\n"
             "  - {kind: sans, file: sans.tmp.dat, d2o: %.17g}\n",
             match);
    write_data(0.03);
    open_sample(&x, at_match, 3, set);
    NEW(tsr_batch, batch, tsr_batch_new, x.s.devices.group[0].engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])x.s.molecule.first->body,
                     partial, &err));
    for (int v = 0; v < 2; v++)
        tsr_likelihood_profile(x.s.data.likelihood, v, partial, value,
                               profile[v]);
    assert_true(profile[0][0] > 1e4);
    assert_true(fabs(profile[1][0]) < 1e-9 * profile[0][0]);
    assert_true(profile[1][8] > 100.0 * fabs(profile[1][0]));
}

/* Where nothing moves bodies scatter neutrons like atoms, in every solvent. */
TEST(what_stays_is_exact)
{
    const char *const set[] = {"device.use=reference", "structure.frozen=true",
                               "structure.flexible=[]", "structure.mobile=[]"};
    const double value[TSR_N_CONTRAST] = {1.0, 0.8};
    sample x;
    double partial[4096], profile[512], six[TSR_N_COMP_PAIR * 512];
    needs_model();
    write_data(0.03);
    open_sample(&x, series, 4, set);
    const tsr_likelihood *l = x.s.data.likelihood;
    tsr_atom_curves *curves = curves_of(&x);
    NEW(tsr_batch, batch, tsr_batch_new, x.s.devices.group[0].engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])x.s.molecule.first->body,
                     partial, &err));
    for (int d = 0; d < SERIES; d++) {
        const tsr_term *term = l->term[d];
        if (term->neutron == NULL)
            continue;
        const double rho =
            tsr_neutron_solvent(term->neutron->d2o) / tsr_neutron_solvent(1.0);
        const double c[3] = {1.0, 0.0, value[TSR_C2] * rho};
        OK(tsr_atom_curves_partial(curves, x.s.molecule.first, NULL,
                                   term->neutron, term->neutron->d2o, six, NULL,
                                   &err));
        tsr_likelihood_profile(l, term->view, partial, value, profile);
        for (int k = 0; k < l->grid.n_q; k++) {
            const double exact =
                tsr_coarse_sum(3, c, six + k, (size_t)l->grid.n_q);
            assert_near(profile[k], exact, 1e-9 * six[0]);
        }
    }
}

/* ---- the law ---- */

/* Mean of a series and the standard error of it, from batches. */
static void mean_of(int n, const double *x, double *mean, double *error)
{
    enum { BATCHES = 20 };
    double part[BATCHES] = {0.0}, square = 0.0;
    const int each = n / BATCHES;
    *mean = 0.0;
    for (int i = 0; i < each * BATCHES; i++) {
        part[i / each] += x[i] / each;
        *mean += x[i] / (each * BATCHES);
    }
    for (int b = 0; b < BATCHES; b++)
        square += (part[b] - *mean) * (part[b] - *mean);
    *error = sqrt(square / (BATCHES * (BATCHES - 1)));
}

enum { LAW_STEPS = 40000, LAW_THIN = 10, N_LAW = LAW_STEPS / LAW_THIN };

/* Rg, its square and c2 along a chain. */
static void follow(const sample *x, int with_data, double (*value)[N_LAW])
{
    tsr_target target = x->s.target;
    tsr_batch *batch = NULL;
    if (with_data) {
        MAKE(tsr_batch, batch, tsr_batch_new, x->s.devices.group[0].engine, 1);
    } else {
        target.likelihood = NULL;
        target.n_engine = 0;
    }
    tsr_chain *chain = new_chain(&target, with_data ? 0 : 9, batch);
    walk(chain, batch, LAW_STEPS / 10, 1);
    for (int i = 0; i < N_LAW; i++) {
        tsr_chain_view view;
        walk(chain, batch, LAW_THIN, 0);
        tsr_chain_view_get(chain, &view);
        value[0][i] = view.rg_ang;
        value[1][i] = view.rg_ang * view.rg_ang;
        value[2][i] =
            tsr_parameters_contrast(view.parameters, view.point->theta)[TSR_C2];
    }
}

/* Data that say nothing leave the prior: of the structure, and of c2. Scale and
 * background are fixed, since their flat priors weigh curves by their size. */
TEST(no_information_leaves_the_prior)
{
    static double with[3][N_LAW], without[3][N_LAW];
    const char *const set[] = {"device.use=cpu", "model_error=none"};
    sample x;
    needs_model();
    write_data(1e6);
    open_sample(&x,
                "data: [{kind: sans, file: sans.tmp.dat, d2o: 0.42, "
                "intensity_scale: 1e-8, background: none, "
                "deuterated: [A], noise: {scale: 1}}]\n",
                2, set);
    follow(&x, 1, with);
    follow(&x, 0, without);
    for (int v = 0; v < 3; v++) {
        double mean[2], error[2];
        mean_of(N_LAW, with[v], &mean[0], &error[0]);
        mean_of(N_LAW, without[v], &mean[1], &error[1]);
        print_message("  %.4f +- %.4f, prior %.4f +- %.4f\n", mean[0], error[0],
                      mean[1], error[1]);
        assert_true(error[0] > 0.0 && error[0] < 0.05 * fabs(mean[0]));
        assert_near(mean[0], mean[1], 4.5 * hypot(error[0], error[1]));
    }
}
