/* Symmetric assemblies: the group is found in a distorted file, copies are
 * exact, and prior and profile are those of all chains written out. */
#include "tests/engine_support.h"
#include "tests/property/moves_support.h"
#include "tests/test.h"

/* Two rotations that generate each group: angle in parts of a turn, axis. */
static const struct {
    const char *name;
    int order, unique;
    double by[2][4];
} groups[] = {{"C2", 2, 2, {{2, 0, 0, 1}, {1, 0, 0, 1}}},
              {"C3", 3, 2, {{3, 0, 0, 1}, {1, 0, 0, 1}}},
              {"C6", 6, 4, {{6, 1, 2, 1}, {1, 0, 0, 1}}},
              {"D2", 4, 4, {{2, 0, 0, 1}, {2, 1, 0, 0}}},
              {"D3", 6, 5, {{3, 0, 0, 1}, {2, 1, 0, 0}}},
              {"T", 12, 8, {{2, 0, 0, 1}, {3, 1, 1, 1}}},
              {"O", 24, 17, {{4, 0, 0, 1}, {3, 1, 1, 1}}},
              {"I", 60, 38, {{2, 0, 0, 1}, {5, 0, 1, 1.6180339887498949}}}};

static tsr_motion turn_about(const double by[4])
{
    static const double origin[3] = {0.0, 0.0, 0.0};
    tsr_motion m;
    tsr_motion_about(&m, origin, by + 1, 2.0 * acos(-1.0) / by[0]);
    return m;
}

static double difference(const tsr_motion *a, const tsr_motion *b)
{
    double most = 0.0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            most = fmax(most, fabs(a->rotation[i][j] - b->rotation[i][j]));
        most = fmax(most, 1e-2 * fabs(a->shift[i] - b->shift[i]));
    }
    return most;
}

static int find_motion(int n, const tsr_motion *list, const tsr_motion *m)
{
    for (int k = 0; k < n; k++)
        if (difference(&list[k], m) < 1e-8)
            return k;
    return -1;
}

/* All products of two rotations. */
static int close_group(const double by[2][4], tsr_motion out[TSR_MAX_COPY])
{
    int n = 1;
    out[0] = turn_about((const double[4]){1, 0, 0, 1});
    for (int k = 0; k < n; k++)
        for (int g = 0; g < 2; g++) {
            tsr_motion next, one = turn_about(by[g]);
            tsr_motion_compose(&next, &one, &out[k]);
            if (find_motion(n, out, &next) < 0)
                out[n++] = next;
        }
    return n;
}

/* Copies of a chain of 24 residues, each shifted by 0.5 Angstrom, with another
 * place of its last 8 residues; n_short residues less in the last copy. All
 * turned and shifted. */
static const char *write_copies(int n, const tsr_motion *copy, int n_short)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *path = io_path("copies.pdb");
    FILE *file = fopen(path, "w");
    int serial = 0;
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    gsl_rng *rng = rng_new(5, 0);
    tsr_motion all = turn_about((const double[4]){5.3, 1, 2, -3});
    sample_prior_table(&table);
    sample_chain("AKPIVGTSLFGAKPIVGTSLFGAK", NULL, &table, &t, &c);
    for (int k = 0; k < n; k++) {
        double shift[3], tail[3];
        for (int d = 0; d < 3; d++) {
            shift[d] = gsl_ran_flat(rng, -0.5, 0.5) + 10.0 * (d + 1);
            tail[d] = gsl_ran_flat(rng, -20.0, 20.0);
        }
        for (int i = 0; i < 24 - (k == n - 1 ? n_short : 0); i++)
            for (int a = 0; a < 4; a++) {
                static const char *const names[4] = {"N", "CA", "C", "O"};
                double x[3] = {18.0, 7.0, 4.0};
                for (int d = 0; d < 3; d++)
                    x[d] += c->backbone[i][a][d] + (i < 16 ? 0.0 : tail[d]);
                tsr_motion_apply(&copy[k], x);
                for (int d = 0; d < 3; d++)
                    x[d] += shift[d];
                tsr_motion_apply(&all, x);
                write_atom(file, &serial, names[a], names[a][0],
                           tsr_amino_table[t->residue[i].amino].three,
                           letters[k], i + 1, x);
            }
        fprintf(file, "TER\n");
    }
    fprintf(file, "END\n");
    fclose(file);
    return path;
}

/* Copies are placed within 3 Angstrom of the file by rotations that are a group
 * to rounding; each pair of inverses has one copy among the unique ones. */
TEST(groups_are_found)
{
    for (size_t g = 0; g < COUNT_OF(groups); g++) {
        tsr_motion copy[TSR_MAX_COPY];
        const int n = close_group(groups[g].by, copy);
        const char *path = write_copies(n, copy, 0);
        int stands = 1;
        assert_int_equal(n, groups[g].order);
        NEW(tsr_structure, s, tsr_structure_read_symmetric, path, "auto");
        NEW(tsr_structure, plain, tsr_structure_read_any, path);
        const tsr_symmetry *y = &s->symmetry;
        assert_string_equal(y->group, groups[g].name);
        assert_int_equal(tsr_symmetry_order(y->group), n);
        assert_int_equal(y->n, n);
        assert_int_equal(y->n_unique, groups[g].unique);
        for (int k = 1; k < y->n_unique; k++)
            stands += y->weight[k];
        assert_int_equal(stands, n);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) {
                tsr_motion m;
                tsr_motion_compose(&m, &y->motion[a], &y->motion[b]);
                assert_true(find_motion(n, y->motion, &m) >= 0);
            }
        assert_int_equal(s->n_residue, plain->n_residue);
        for (int i = 0; i < s->n_residue; i++) {
            const tsr_residue_record *r = &s->residue[i], *p = plain->residue;
            while (strcmp(p->chain, r->chain) != 0 || p->number != r->number)
                p++;
            if (r->number <= 16)
                assert_true(tsr_vec3_distance(s->atom[r->first_atom].xyz,
                                              plain->atom[p->first_atom].xyz) <
                            3.0);
        }
    }
}

TEST(subgroups_and_refusals)
{
    tsr_motion copy[TSR_MAX_COPY];
    tsr_structure *s;
    const int n = close_group(groups[4].by, copy); /* D3 */
    const char *path = write_copies(n, copy, 0);
    static const char *const inside[] = {"C2", "C3", "D3"};
    for (size_t k = 0; k < COUNT_OF(inside); k++) {
        NEW(tsr_structure, one, tsr_structure_read_symmetric, path, inside[k]);
        assert_string_equal(one->symmetry.group, inside[k]);
        assert_int_equal(one->n_residue, 24 * n);
    }
    FAILS(tsr_structure_read_symmetric(path, "C6", &s, &err), TSR_E_DATA,
          "their symmetry is D3");
    path = write_copies(n, copy, 1);
    FAILS(tsr_structure_read_symmetric(path, "D3", &s, &err), TSR_E_DATA,
          "chain F has 23 residues");
    NEW(tsr_structure, none, tsr_structure_read_symmetric, path, "auto");
    assert_int_equal(none->symmetry.n, 0);
    static const char *const wrong[] = {"", "C1", "C61", "D1", "D31", "C3x"};
    for (size_t k = 0; k < COUNT_OF(wrong); k++)
        assert_int_equal(tsr_symmetry_order(wrong[k]), 0);
}

/* ---- the prior of all chains ---- */

/* After moves of all kinds copies are exact, and the log density is that of all
 * chains over their number. Of three chains as one subunit, whose fixed parts
 * exclude no volume to each other, it is that of the sum over all pairs. */
TEST(prior_of_one_subunit)
{
    static const int which[] = {0, 2, 3, 5, 4};
    for (size_t g = 0; g < COUNT_OF(which); g++) {
        const char *name = which[g] == 4 ? "C2" : groups[which[g]].name;
        tsr_motion copy[TSR_MAX_COPY];
        char ranges[TSR_MAX_COPY][16], *item[TSR_MAX_COPY],
            *names[TSR_MAX_COPY], *subunit[] = {"subunit"};
        const int n = close_group(groups[which[g]].by, copy);
        NEW(tsr_structure, s, tsr_structure_read_symmetric,
            write_copies(n, copy, 0), name);
        const int n_copy = s->symmetry.n;
        fixture f;
        open_case(&f, &cases[1]);
        for (int k = 0; k < n; k++) {
            names[k] = s->residue[24 * k].chain;
            item[k] = ranges[k];
            snprintf(ranges[k], sizeof ranges[k], "%s:5-12", names[k]);
        }
        tsr_strings one = {1, item}, all = {n, item}, still = {n - 1, names},
                    mobile = {1, subunit};
        tsr_topology *t, *whole;
        tsr_conformation *c, *first;
        OK(tsr_topology_from_structure(
            s, TSR_BODIES_TWO,
            (tsr_flexibility){.flexible = &one, .mobile = &mobile}, &f.table,
            NULL, &t, &c, &err));
        own_molecule(t, c);
        s->symmetry.n = 0;
        OK(tsr_topology_from_structure(
            s, TSR_BODIES_TWO,
            (tsr_flexibility){.flexible = &all, .mobile = &still}, &f.table,
            NULL, &whole, &first, &err));
        own_molecule(whole, first);
        f.options_prior.clash_limit = 1e4;
        NEW(tsr_prior, prior, tsr_prior_new, t, &f.table, &f.options_prior,
            0.0);
        NEW(tsr_prior, of_all, tsr_prior_new, whole, &f.table, &f.options_prior,
            0.0);
        f.t = t, f.prior = prior;
        tsr_target target = target_of(&f, c, 3);
        tsr_chain *chain = chain_of(&target, 0);
        tsr_chain_view view;
        for (int i = 0; i < 2000; i++)
            step(chain, 1);
        tsr_chain_view_get(chain, &view);
        assert_true(tsr_vec3_distance(c->body[0], view.conformation->body[0]) >
                    1e-3);
        for (int b = 0; b < t->n_body; b++) {
            double x[3];
            const int own = t->n_body / n_copy;
            tsr_vec3_copy(x, view.conformation->body[b % own]);
            tsr_motion_apply(&t->symmetry.motion[b / own], x);
            assert_true(tsr_vec3_distance(x, view.conformation->body[b]) <
                        1e-9);
        }
        const double log_all =
            n_copy < n ? tsr_prior_log_reference(prior, view.conformation)
                       : tsr_prior_log_reference(of_all, view.conformation) / n;
        assert_int_equal(t->moves_subunit, n_copy < n);
        if (!(fabs(view.log_prior - log_all) < 1e-6))
            fail_msg("%s: %.9g, %.9g of %d chains", name, view.log_prior,
                     log_all, n);
        tsr_chain_free(chain);
    }
}

/* ---- the sum over pairs ---- */

enum { OWN = 70, PAGES = 24, TYPES = 3, MOVES = 300 };

/* Places the copies of bodies first..first+count-1 in xyz, as ranges. */
static int place_copies(int n_copy, const tsr_motion *copy, double (*xyz)[3],
                        int first, int count, int group, tsr_body_range *range)
{
    for (int g = 0; g < n_copy; g++) {
        double(*to)[3] = xyz + g * OWN + first;
        for (int i = 0; i < count; i++) {
            tsr_vec3_copy(to[i], xyz[first + i]);
            tsr_motion_apply(&copy[g], to[i]);
        }
        range[g] =
            (tsr_body_range){g * OWN + first, count, group > 0 ? 1 + g : 0,
                             (const double(*)[3])to};
    }
    return n_copy;
}

/* Moves a few bodies freely, or a tail rigidly, or all of copy 0. Returns the
 * first body that moved. */
static int move_some(uint64_t *random, double (*xyz)[3], int *count, int *group)
{
    const double kind = uniform(random);
    const int first = kind < 0.3 ? 0 : (int)(OWN * uniform(random));
    *group = kind < 0.6;
    *count = kind < 0.6   ? OWN - first
             : kind < 0.8 ? 1
                          : 1 + (int)((OWN - first) * uniform(random));
    const tsr_motion m =
        turn_about((const double[4]){3.0 + 50.0 * uniform(random), 1, 2, 3});
    for (int i = first; i < first + *count; i++) {
        tsr_motion_apply(&m, xyz[i]);
        for (int d = 0; d < 3 && !*group; d++)
            xyz[i][d] += uniform(random) - 0.5;
    }
    return first;
}

static void walk(const tsr_engine_spec *spec, const tsr_motion *copy,
                 double (*start)[3], tsr_engine *engine, int n_move,
                 double limit, const char *name)
{
    const int n = spec->n_body, n_copy = spec->n_copy;
    double(*xyz)[3] = array((size_t)n, sizeof *xyz);
    double(*to)[3] = array((size_t)n, sizeof *to);
    tsr_engine_spec whole = *spec;
    whole.n_copy = 0;
    whole.d_bound_ang = 0.0;
    NEW(tsr_engine, exact, tsr_engine_reference_new, &whole);
    NEW(tsr_batch, direct, tsr_batch_new, exact, 1);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    double profile[PAGES], correct[PAGES];
    tsr_body_range range[TSR_MAX_COPY];
    uint64_t random = 7;
    memcpy(xyz, start, (size_t)n * sizeof *xyz);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])xyz, profile, &err));
    for (int i = 0; i <= n_move; i++) {
        if (i % 20 == 0 || i == n_move) {
            OK(tsr_batch_set(direct, 0, (const double(*)[3])xyz, correct,
                             &err));
            OK(tsr_batch_profile(batch, 0, profile, &err));
            double error = worst_error(profile, correct, PAGES);
            if (!(error < limit))
                fail_msg("%s, %d copies, step %d: relative error %g", name,
                         n_copy, i, error);
        }
        int count, group;
        memcpy(to, xyz, (size_t)n * sizeof *to);
        const int first = move_some(&random, to, &count, &group);
        const tsr_body_proposal ask = {
            0, place_copies(n_copy, copy, to, first, count, group, range),
            range};
        OK(tsr_batch_submit(batch, 1, &ask, &err));
        OK(tsr_batch_wait(batch, profile, &err));
        if (uniform(&random) < 0.5) {
            tsr_batch_accept(batch, 0);
            memcpy(xyz, to, (size_t)n * sizeof *xyz);
        } else {
            tsr_batch_reject(batch, 0);
        }
    }
}

/* Each engine sums unique pairs alone, and finds the profile of all bodies. */
TEST(unique_pairs)
{
    static const int which[] = {2, 0, 4};
    tsr_device *device = open_device();
    for (size_t g = 0; g < COUNT_OF(which); g++) {
        tsr_motion copy[TSR_MAX_COPY];
        close_group(groups[which[g]].by, copy);
        NEW(tsr_structure, s, tsr_structure_read_symmetric,
            write_copies(groups[which[g]].order, copy, 0), "auto");
        const tsr_symmetry *y = &s->symmetry;
        const int n = y->n * OWN;
        double(*xyz)[3] = array((size_t)n, sizeof *xyz);
        double factor[TYPES * PAGES];
        int *type = array((size_t)n, sizeof *type);
        tsr_body_range range[TSR_MAX_COPY];
        uint64_t random = 3;
        for (int b = 0; b < n; b++)
            type[b] = b % OWN % TYPES;
        for (int b = 0; b < OWN; b++)
            for (int d = 0; d < 3; d++)
                xyz[b][d] = 30.0 * uniform(&random);
        place_copies(y->n, y->motion, xyz, 0, OWN, 1, range);
        for (int i = 0; i < TYPES * PAGES; i++)
            factor[i] = (i / PAGES == 1 ? -1.5 : 4.0) *
                        exp(-1e-3 * (i % PAGES) * (i % PAGES));
        const tsr_engine_spec spec = {.n_body = n,
                                      .n_type = TYPES,
                                      .n_q = PAGES,
                                      .dq_inv_ang = 0.004,
                                      .n_system = 1,
                                      .type = type,
                                      .form_factor = factor,
                                      .d_bound_ang = 500.0,
                                      .n_copy = y->n,
                                      .n_unique = y->n_unique,
                                      .copy_weight = y->weight};
        NEW(tsr_engine, reference, tsr_engine_reference_new, &spec);
        walk(&spec, y->motion, xyz, reference, 60, 1e-10, "reference");
        /* one variant for all groups, all variants for C6 */
        for (int v = 0; v < (g == 0 ? N_VARIANT : 1) && device != NULL; v++)
            if (has_variant(&variants[v]))
                walk(&spec, y->motion, xyz,
                     new_variant(&spec, device, &variants[v]),
                     MOVES / variants[v].one_of + 10, variants[v].limit,
                     variants[v].name);
    }
    if (device == NULL)
        skip();
}
