/* Distance restraints have the stated potential, find their residues, and are
 * part of the prior. */
#include "posterior/config.h"
#include "prior/prior.h"
#include "tests/freedom_sample.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

OWNED(tsr_prior_state)
OWNED(tsr_structure)

enum { AT_CA, AT_SIDE_CHAIN };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
} fixture;

static void open_fixture(fixture *f, const sample_molecule *m)
{
    sample_prior_table(&f->table);
    OK(sample_topology(&f->table, m, &f->t, &f->c, NULL));
}

TEST(flat_bottom)
{
    const tsr_restraint r = {
        .lower = 10.0, .upper = 30.0, .inverse_width = 0.5};
    static const double value[][2] = {
        {10.0, 0.0},  {20.0, 0.0},      {30.0, 0.0}, {32.0, -0.5},
        {34.0, -2.0}, {130.0, -1250.0}, {8.0, -0.5}, {0.0, -12.5}};
    for (size_t k = 0; k < COUNT_OF(value); k++)
        assert_near(tsr_restraint_log(&r, value[k][0]), value[k][1], 1e-12);
    /* no flat part: harmonic */
    const tsr_restraint h = {.lower = 5.0, .upper = 5.0, .inverse_width = 1.0};
    for (double d = 0.0; d < 10.0; d += 0.5)
        assert_true(fabs(tsr_restraint_log(&h, d) +
                         0.5 * (d - 5.0) * (d - 5.0)) < 1e-12);
}

/* GLY: CA; ALA: CB; others: the centre. */
TEST(where_it_is_measured)
{
    const sample_molecule m = {.sequence = "GAKLGAW"};
    fixture f;
    open_fixture(&f, &m);
    FREED(tsr_structure) s = sample_structure(&f.table, &m);
    static const char *const atom[7] = {"CA", "CB", "SC", "SC",
                                        "CA", "CB", "SC"};
    for (int at = AT_CA; at <= AT_SIDE_CHAIN; at++)
        for (int i = 0; i < 7; i++)
            for (int j = 0; j < i; j++) {
                const tsr_restraint r = {.residue = {i, j}, .at = at};
                const tsr_atom *a = tsr_residue_atom(
                    s, &s->residue[i], at == AT_CA ? "CA" : atom[i]);
                const tsr_atom *b = tsr_residue_atom(
                    s, &s->residue[j], at == AT_CA ? "CA" : atom[j]);
                assert_near(tsr_restraint_distance(f.t, &r, f.c),
                            tsr_vec3_distance(a->xyz, b->xyz), 1e-9);
            }
}

static tsr_status make(const fixture *f, const char *between,
                       tsr_restraint *restraint)
{
    const char *const ranges[4] = {between, NULL, NULL, NULL};
    sample_ranges text;
    sample_split(ranges, &text);
    const tsr_restraint_options options = {.between = text.list[0],
                                           .at = AT_SIDE_CHAIN,
                                           .distance = {3.0, 9.0},
                                           .width = 4.0};
    return tsr_restraint_make(f->t, &options, restraint, &err);
}

TEST(found_residues)
{
    fixture f;
    tsr_restraint r;
    open_fixture(&f, &(sample_molecule){.sequence = "GAKL/GAW"});
    OK(make(&f, "A:2 B:3", &r));
    assert_ints(r.residue[0], 1, r.residue[1], 6, r.at, AT_SIDE_CHAIN);
    assert_true(r.lower == 3.0 && r.upper == 9.0 && r.inverse_width == 0.25);
    OK(make(&f, "B:1-1 A:4", &r));
    assert_int_equal(r.residue[0], 4);
}

TEST(refused)
{
    static const struct {
        const char *between, *message;
    } cases[] = {
        {"", "between: names 0 residues; expected two, as [\"A:17\", "},
        {"A:2", "between: names 1 residue; expected two"},
        {"A:2 A:5 B:3", "between: names 3 residues; expected two"},
        {"A:2 A:99", "between: residue range 'A:99': contains no residue; the "
                     "chain has residues 1 to 10"},
        {"C:2 A:5", "between: residue range 'C:2': there is no chain 'C'; "
                    "chains: A"},
        {"2 A:5", "between: residue range '2': the structure has several"},
        {"A:2 A:5-6", "between: 'A:5-6' names 2 residues; expected one"},
        {"A:2 B", "between: 'B' names 8 residues; expected one"},
        {"A:5 A:5", "between: 'A:5' and 'A:5' are the same residue: "
                    "their distance cannot change"},
        {"A:1 A:4", "between: 'A:1' and 'A:4' are in one rigid part: "
                    "their distance cannot change"},
        /* both largest rigid parts stay where they are */
        {"A:1 B:8", "between: 'A:1' and 'B:8' are in one rigid part"}};
    fixture f;
    open_fixture(&f, &(sample_molecule){.sequence = "GAKLGAWKLA/GAWKLAGA",
                                        .ranges = {"A:5-7 B:2-3"}});
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        err = (tsr_err){0};
        tsr_restraint r;
        tsr_status status = make(&f, cases[k].between, &r);
        if (status != TSR_E_CONFIG || strncmp(err.message, cases[k].message,
                                              strlen(cases[k].message)) != 0)
            fail_msg("%s: status %d, %s", cases[k].between, (int)status,
                     err.message);
    }
}

/* ---- in a configuration ---- */

static tsr_status read_text(const char *text, tsr_config *config)
{
    static const char start[] =
        "structure: {sequence: MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE}\n";
    const char *path = io_text("run.yaml", format("%s%s", start, text));
    return tsr_config_read(path, 0, NULL, config, &err);
}

TEST(in_a_config)
{
    CLEARED(tsr_config) config;
    OK(read_text("prior:\n"
                 "  restraints:\n"
                 "    - {between: [\"A:2\", \"A:24\"], distance: [10, 30]}\n"
                 "    - between: [\"3\", \"9\"]\n"
                 "      at: side_chain\n"
                 "      width: 0.5\n",
                 &config));
    const tsr_restraint_options *r = config.prior.restraints.item;
    assert_ints(config.prior.restraints.n, 2, r[0].between.n, 2, r[0].at, AT_CA,
                r[0].distance[0], 10.0, r[0].distance[1], 30.0, r[0].width, 2.0,
                r[1].at, AT_SIDE_CHAIN, r[1].distance[0], 0.0, r[1].distance[1],
                30.0, r[1].width, 0.5);
    assert_string_equal(r[0].between.item[1], "A:24");
}

TEST(refused_in_a_config)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"prior: {restraints: [{between: [\"A:2\", \"A:24\"], distance: [30, "
         "10]}]}\n",
         ":2:59: key 'prior.restraints.0.distance': value '[30, 10]' is not "
         "ascending"},
        {"prior: {restraints: [{between: [\"A:2\", \"A:24\"], width: 0}]}\n",
         ":2:56: key 'prior.restraints.0.width'"},
        {"prior: {restraints: [{between: [\"A:2\", \"A:24\"], at: cb}]}\n",
         ":2:53: key 'prior.restraints.0.at'"},
        {"prior: {restraints: [{betwen: [\"A:2\", \"A:24\"]}]}\n",
         "did you mean"},
        {"prior: {restraints: [{between: [\"A:2\", \"A:24\"], distance: [-1, "
         "10]}]}\n",
         "prior.restraints.0.distance"}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        CLEARED(tsr_config) config;
        err = (tsr_err){0};
        tsr_status status = read_text(cases[k].text, &config);
        if (status != TSR_E_CONFIG ||
            strstr(err.message, cases[k].message) == NULL)
            fail_msg("%zu: status %d, %s", k, (int)status, err.message);
    }
}

/* ---- in the prior ---- */

/* Random spans in random groups, accepted or not: the running value is the
 * reference's. */
TEST(running_value)
{
    enum { N = 6 };
    static const char *const between[N][2] = {{"A:1", "A:33"},  {"A:5", "A:6"},
                                              {"A:12", "A:20"}, {"A:2", "A:31"},
                                              {"A:16", "A:18"}, {"A:1", "A:2"}};
    fixture f;
    tsr_prior *prior, *without;
    char text[N][2][8];
    char *item[N][2];
    tsr_restraint_options options[N];
    open_fixture(&f, &(sample_molecule){
                         .sequence = "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE"});
    for (int k = 0; k < N; k++) {
        for (int e = 0; e < 2; e++) {
            snprintf(text[k][e], sizeof text[k][e], "%s", between[k][e]);
            item[k][e] = text[k][e];
        }
        options[k] = (tsr_restraint_options){.between = {2, item[k]},
                                             .at = k % 2,
                                             .distance = {4.0 * k, 8.0 * k},
                                             .width = 1.0 + k};
    }
    tsr_prior_options o = {
        .clash = TSR_CLASH_NONE, .softness = 0.5, .clash_limit = 10.0};
    OK(tsr_prior_new(f.t, &f.table, &o, 0.0, &without, &err));
    o.restraints = (tsr_list){N, options};
    OK(tsr_prior_new(f.t, &f.table, &o, 0.0, &prior, &err));
    gsl_rng *rng = rng_new(3, 0);
    tsr_conformation *y = new_conformation(f.t);
    tsr_conformation_copy(f.t, y, f.c, 0, f.t->n_residue);
    FREED(tsr_prior_state) s = tsr_prior_state_new(prior, f.c);
    double now = tsr_prior_log_reference(prior, f.c);
    double least = 0.0, most = (double)-INFINITY;
    for (int i = 0; i < 5000; i++) {
        tsr_proposal p = {.n_span = 0};
        int at = 0, n = f.t->n_residue;
        while (at < n && p.n_span < TSR_MAX_SPAN) {
            int first = at + (int)gsl_rng_uniform_int(rng, 12);
            int count = 1 + (int)gsl_rng_uniform_int(rng, 12);
            if (first + count > n)
                break;
            p.span[p.n_span++] =
                (tsr_span){first, count, (int)gsl_rng_uniform_int(rng, 3)};
            at = first + count;
        }
        tsr_motion motion[3];
        for (int g = 0; g < 3; g++) {
            tsr_motion_about(&motion[g], f.c->backbone[9][TSR_CA],
                             f.c->backbone[25][TSR_N],
                             gsl_ran_gaussian(rng, 0.3));
            motion[g].shift[g] += gsl_ran_gaussian(rng, 0.5);
        }
        for (int k = 0; k < p.n_span; k++)
            for (int r = p.span[k].first; r < p.span[k].first + p.span[k].count;
                 r++) {
                int g = p.span[k].group;
                if (g == 0) /* each by itself */
                    motion[0].shift[r % 3] += gsl_ran_gaussian(rng, 0.2);
                tsr_conformation_move(f.t, y, r, r, &motion[g]);
            }
        double change = tsr_prior_propose(s, f.c, y, &p);
        double then = tsr_prior_log_reference(prior, y);
        /* rigid parts differ from themselves in the last bits */
        if (!(fabs(change - (then - now)) < 1e-6))
            fail_msg("step %d: %.12g, expected %.12g", i, change, then - now);
        double part = then - tsr_prior_log_reference(without, y);
        least = fmin(least, part), most = fmax(most, part);
        int accept = part > -500.0 && gsl_rng_uniform(rng) < 0.5;
        if (accept) {
            tsr_prior_accept(s, y, &p);
            now = then;
            assert_near(tsr_prior_state_log(s), now, 1e-6);
        }
        for (int k = 0; k < p.n_span; k++)
            tsr_conformation_copy(f.t, accept ? f.c : y, accept ? y : f.c,
                                  p.span[k].first, p.span[k].count);
    }
    assert_true(most > least + 50.0);
    tsr_prior_free(prior);
    tsr_prior_free(without);
}

/* The reference adds them up. */
TEST(part_of_the_prior)
{
    fixture f;
    err = (tsr_err){0};
    char text[2][8] = {"A:1", "A:9"};
    char *item[2] = {text[0], text[1]};
    open_fixture(&f, &(sample_molecule){.sequence = "GAKLGAWKLA"});
    double d =
        tsr_vec3_distance(f.c->backbone[0][TSR_CA], f.c->backbone[8][TSR_CA]);
    double value[2];
    for (int k = 0; k < 2; k++) {
        tsr_restraint_options r = {
            .between = {2, item}, .distance = {0.0, d - 3.0}, .width = 2.0};
        tsr_prior_options o = ROW(.clash = TSR_CLASH_NONE, .softness = 0.5,
                                  .clash_limit = 10.0, .restraints = {k, &r});
        FREED(tsr_prior) prior;
        OK(tsr_prior_new(f.t, &f.table, &o, 0.0, &prior, &err));
        value[k] = tsr_prior_log_reference(prior, f.c);
        FREED(tsr_prior_state) s = tsr_prior_state_new(prior, f.c);
        assert_true(tsr_prior_state_log(s) == value[k]);
    }
    assert_true(fabs(value[1] - value[0] + 0.5 * 1.5 * 1.5) < 1e-8);
    tsr_prior_options o = {.clash = TSR_CLASH_NONE, .softness = 0.5};
    snprintf(text[1], sizeof text[1], "A:11");
    tsr_restraint_options r = {.between = {2, item}, .width = 2.0};
    tsr_prior *prior;
    o.restraints = (tsr_list){1, &r};
    FAILS(tsr_prior_new(f.t, &f.table, &o, 0.0, &prior, &err), TSR_E_CONFIG,
          "prior.restraints.0: between: residue range 'A:11'");
    assert_null(prior);
}
