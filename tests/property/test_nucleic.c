/* Laws of strands of nucleotides that move: what turns and what does not, the
 * prior of their torsions, and what is said of them in files. */
#include "tests/strand_sample.h"

#include "core/random.h"
#include "io/structure.h"
#include "moves/move.h"
#include "prior/nucleotide.h"
#include "sampler/chain.h"
#include "scattering/guest_factor.h"
#include "tests/unit/chain_pdb.h"
#include "tests/unit/folder.h"

#include <gsl/gsl_sort.h>

static char folder[64];
static tsr_err err;

typedef struct {
    char path[128], *range[2];
    tsr_prior_table table;
    tsr_structure *structure;
    tsr_atoms *atoms;
    tsr_nucleic *nucleic;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
} fixture;

static void read_file(fixture *f, const tsr_strings *flexible, int clash)
{
    sample_prior_table(&f->table);
    OK(tsr_structure_read_any(f->path, &f->structure, &err));
    OK(tsr_atoms_read(f->path, &f->atoms, &err));
    OK(tsr_nucleic_find(f->structure, f->atoms, flexible, &f->nucleic, &err));
    assert_non_null(f->nucleic);
    const tsr_flexibility flexibility = {.flexible = flexible,
                                         .nucleic = f->nucleic};
    OK(tsr_topology_from_structure(f->structure, TSR_BODIES_TWO, flexibility,
                                   &f->table, NULL, &f->t, &f->c, &err));
    OK(tsr_guests_attach(f->structure, f->atoms, NULL, NULL, f->t, f->c, &err));
    const tsr_prior_options options = {
        .clash = clash,
        .softness = 0.5,
        .clash_limit = f->structure->n_residue > 0 ? 1e5 : 4.0};
    OK(tsr_prior_new(f->t, &f->table, &options, 0.0, &f->prior, &err));
    for (int m = 0; m < TSR_N_MOVE; m++) {
        OK(tsr_fields_init(tsr_move_registry[m]->fields, f->option[m], &err));
        f->options[m] = f->option[m];
    }
}

/* A strand S of n nucleotides; range NULL: all are flexible. */
static void open_strand(fixture *f, int n, int is_dna, char *range, int clash)
{
    const double origin[3] = {0.0, 0.0, 0.0};
    const tsr_strings flexible = {.n = range != NULL, .item = f->range};
    *f = (fixture){.range = {range}};
    snprintf(f->path, sizeof f->path, "%s/strand.pdb", folder);
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    strand_write(file, 'S', n, is_dna, origin);
    fclose(file);
    read_file(f, &flexible, clash);
}

static void close_strand(fixture *f)
{
    tsr_prior_free(f->prior);
    tsr_conformation_free(f->c);
    tsr_topology_free(f->t);
    tsr_nucleic_free(f->nucleic);
    tsr_atoms_free(f->atoms);
    tsr_structure_free(f->structure);
}

/* ---- torsions by the names of atoms, apart from links ---- */

enum { ZETA, ALPHA, BETA, GAMMA, EPSILON, CHI, DELTA, N_TORSION };
static const char *const torsion_atoms[N_TORSION][4] = {
    {"-C3'", "-O3'", "P", "O5'"}, {"-O3'", "P", "O5'", "C5'"},
    {"P", "O5'", "C5'", "C4'"},   {"O5'", "C5'", "C4'", "C3'"},
    {"C4'", "C3'", "O3'", "+P"},  {"O4'", "C1'", "N9", "C4"},
    {"C5'", "C4'", "C3'", "O3'"}};

static const double *atom_of(const tsr_guests *g, const double (*xyz)[3], int r,
                             const char *name)
{
    r += name[0] == '+' ? 1 : name[0] == '-' ? -1 : 0;
    name += name[0] == '+' || name[0] == '-';
    if (r < 0 || r >= g->atoms->n_residue)
        return NULL;
    const tsr_file_residue *residue = &g->atoms->residue[r];
    for (int i = residue->first_atom; i < residue->first_atom + residue->n_atom;
         i++)
        if (strcmp(g->atoms->atom[i].name, name) == 0)
            return xyz[i];
    return NULL;
}

/* NaN where it does not exist. */
static double torsion_of(const tsr_guests *g, const double (*xyz)[3], int r,
                         int k)
{
    const double *x[4];
    for (int a = 0; a < 4; a++) {
        x[a] = atom_of(g, xyz, r, torsion_atoms[k][a]);
        if (x[a] == NULL)
            return (double)NAN;
    }
    return tsr_vec3_torsion(x[0], x[1], x[2], x[3]);
}

/* ---- replicates ---- */

/* All torsions and bases from their densities. */
static void draw(const fixture *f, gsl_rng *rng, tsr_conformation *c)
{
    const tsr_topology *t = f->t;
    tsr_conformation_copy(t, c, f->c, 0, t->n_residue);
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        double phi, psi, change[1][2] = {{0.0, 0.0}};
        if (!r->flexible)
            continue;
        tsr_prior_torsion_draw(f->prior, i, rng, &phi, &psi);
        if (r->has_phi)
            change[0][0] = phi - tsr_conformation_torsion(t, c, i, TSR_PHI);
        if (r->has_psi)
            change[0][1] = psi - tsr_conformation_torsion(t, c, i, TSR_PSI);
        tsr_conformation_turn_many(t, c, i, i, 1, (const double(*)[2])change);
        if (t->base[i].is_there)
            tsr_prior_side_draw(f->prior, i, rng, c->side[i]);
        tsr_conformation_place_bodies(t, c, i, 1);
    }
}

static void step(tsr_chain *chain)
{
    tsr_body_proposal ask;
    int accepted;
    assert_int_equal(tsr_chain_propose(chain, &ask), 0);
    OK(tsr_chain_decide(chain, NULL, 0, &accepted, &err));
}

/* Two samples; both are put in order. */
static double ks_p(int n, double *u, double *v)
{
    gsl_sort(u, 1, (size_t)n);
    gsl_sort(v, 1, (size_t)n);
    double d = 0.0, sum = 0.0;
    for (int i = 0, j = 0; i < n && j < n;) {
        const double x = u[i] < v[j] ? u[i] : v[j];
        while (i < n && u[i] <= x)
            i++;
        while (j < n && v[j] <= x)
            j++;
        d = fmax(d, fabs((i - j) / (double)n));
    }
    const double root = sqrt(0.5 * n), x = d * (root + 0.12 + 0.11 / root);
    for (int j = 1; j < 100; j++)
        sum += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * x * x);
    return x < 0.3 ? 1.0 : sum;
}

/* draws: the share of proposals of a move that are draws of the prior. What
 * replicates have after some steps of the moves is what fresh draws have:
 * the torsions of one nucleotide, by its atoms, and the length of the strand.
 */
static void keep_prior(int is_dna, const double weight[3], double draws)
{
    enum { N = 2500, STEPS = 40, N_VALUE = N_TORSION + 1 };
    static const int moves[3] = {TSR_MOVE_pivot, TSR_MOVE_side_chain,
                                 TSR_MOVE_regrow};
    static double value[2][N_VALUE][N];
    fixture f;
    open_strand(&f, 3, is_dna, NULL, TSR_CLASH_NONE);
    const tsr_guests *g = f.t->guests;
    const double none = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        memcpy(f.option[m], &none, sizeof none);
    for (int m = 0; m < 3; m++) {
        memcpy(f.option[moves[m]], &weight[m], sizeof weight[m]);
        for (const tsr_field *o = tsr_move_registry[moves[m]]->fields;
             o->name != NULL; o++)
            if (strcmp(o->name, "draw") == 0)
                memcpy(f.option[moves[m]] + o->offset, &draws, sizeof draws);
    }
    gsl_rng *rng = tsr_rng_new(11, 0);
    tsr_conformation *c = tsr_conformation_new(f.t);
    double(*xyz)[3] = calloc((size_t)tsr_topology_n_atom(f.t), sizeof *xyz);
    long n_accepted = 0;
    for (int i = 0; i < N; i++)
        for (int after = 0; after < 2; after++) {
            draw(&f, rng, c);
            if (after) {
                const tsr_target target = {.topology = f.t,
                                           .first = c,
                                           .prior = f.prior,
                                           .move_options = f.options,
                                           .seed = 3};
                tsr_chain *chain;
                tsr_chain_view view;
                OK(tsr_chain_new(&target, i, &chain, &err));
                for (int k = 0; k < STEPS; k++)
                    step(chain);
                tsr_chain_look(chain, &view);
                tsr_conformation_copy(f.t, c, view.conformation, 0,
                                      f.t->n_residue);
                for (int m = 0; m < TSR_N_MOVE; m++)
                    n_accepted += tsr_chain_counts_get(chain)->accepted[m];
                tsr_chain_free(chain);
            }
            tsr_conformation_atoms(f.t, c, xyz);
            for (int k = 0; k < N_TORSION; k++)
                value[after][k][i] =
                    torsion_of(g, (const double(*)[3])xyz, 1, k);
            value[after][N_TORSION][i] =
                tsr_vec3_distance(c->body[0], c->body[f.t->n_body - 1]);
        }
    assert_true(n_accepted > N * STEPS / 4);
    for (int k = 0; k < N_VALUE; k++) {
        if (k == DELTA) {
            assert_true(fabs(value[1][k][0] - value[0][k][N - 1]) < 1e-9);
            continue;
        }
        const double p = ks_p(N, value[0][k], value[1][k]);
        if (p < 1e-4)
            fail_msg("torsion %d of %s: p %.1e", k, is_dna ? "DNA" : "RNA", p);
    }
    free(xyz);
    gsl_rng_free(rng);
    tsr_conformation_free(c);
    close_strand(&f);
}

static void prior_in_is_prior_out(void **state)
{
    (void)state;
    keep_prior(0, (const double[3]){1.0, 0.0, 0.0}, 0.0);
    keep_prior(1, (const double[3]){1.0, 0.0, 0.0}, 1.0);
    keep_prior(1, (const double[3]){0.0, 1.0, 0.0}, 0.0);
    keep_prior(0, (const double[3]){0.0, 1.0, 1.0}, 1.0);
}

/* The density of each torsion, by steps over the circle, is what is drawn, of
 * RNA near the helix of its paper. */
static void densities(void **state)
{
    (void)state;
    for (int k = 0; k < TSR_N_NUCLEIC_CLASS; k++) {
        tsr_torsion_mixture mixture;
        double weight = 0.0, sum = 0.0;
        enum { GRID = 180 };
        tsr_nucleotide_mixture((tsr_nucleic_class)k, &mixture);
        assert_true(mixture.n <= TSR_MAX_VON_MISES);
        for (int i = 0; i < mixture.n; i++)
            weight += mixture.part[i].weight;
        assert_true(fabs(weight - 1.0) < 1e-12);
        tsr_torsion_density *density = tsr_torsion_density_new(&mixture);
        const double h = 2.0 * 3.14159265358979323846 / GRID;
        for (int i = 0; i < GRID; i++)
            for (int j = 0; j < GRID; j++)
                sum +=
                    h * h * exp(tsr_torsion_density_log(density, i * h, j * h));
        assert_true(fabs(sum - 1.0) < 1e-9);
        tsr_torsion_density_free(density);
    }
    tsr_torsion_mixture mixture;
    const double degree = 3.14159265358979323846 / 180.0;
    tsr_nucleotide_mixture(TSR_NUCLEIC_PHOSPHATE, &mixture);
    tsr_torsion_density *density = tsr_torsion_density_new(&mixture);
    assert_true(
        tsr_torsion_density_log(density, -71.0 * degree, -66.0 * degree) >
        4.0 + tsr_torsion_density_log(density, 71.0 * degree, 170.0 * degree));
    tsr_torsion_density_free(density);
}

/* ---- geometry ---- */

/* Bonds and angles are those of the file, flexible or not, after many moves;
 * what of the strand is rigid stays so. */
static void geometry_keeps(void **state)
{
    (void)state;
    fixture f;
    open_strand(&f, 8, 1, "S:4-8", TSR_CLASH_NONE);
    const tsr_guests *g = f.t->guests;
    const int n = tsr_topology_n_atom(f.t);
    double(*xyz)[3] = calloc((size_t)n, sizeof *xyz);
    const tsr_target target = {.topology = f.t,
                               .first = f.c,
                               .prior = f.prior,
                               .move_options = f.options,
                               .seed = 5};
    tsr_chain *chain;
    tsr_chain_view view;
    OK(tsr_chain_new(&target, 0, &chain, &err));
    for (int k = 0; k < 100000; k++)
        step(chain);
    tsr_chain_look(chain, &view);
    tsr_conformation_atoms(f.t, view.conformation, xyz);
    assert_int_equal(n, g->atoms->n_atom);
    double moved = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            const tsr_file_atom *a = &g->atoms->atom[i],
                                *b = &g->atoms->atom[j];
            const double was = tsr_vec3_distance(a->xyz, b->xyz);
            const double is = tsr_vec3_distance(xyz[i], xyz[j]);
            moved = fmax(moved, fabs(was - is));
            /* the strand of the file is in its own way here and there */
            if (a->residue - b->residue > 1)
                continue;
            int is_held = was < 1.9 || (a->residue < 3 && b->residue < 3);
            for (int k = 0; k < n && !is_held; k++) {
                const tsr_file_atom *c = &g->atoms->atom[k];
                is_held = k != i && k != j &&
                          abs(c->residue - b->residue) <= 1 &&
                          tsr_vec3_distance(c->xyz, a->xyz) < 1.9 &&
                          tsr_vec3_distance(c->xyz, b->xyz) < 1.9;
            }
            assert_true(!is_held || fabs(was - is) < 1e-6);
        }
    assert_true(moved > 10.0);
    /* bodies are the centres of their atoms */
    for (int b = 0; b < f.t->n_body; b++) {
        double centre[3] = {0.0, 0.0, 0.0}, mass = 0.0;
        const int own = f.t->body[b].type - tsr_body_n_type(TSR_BODIES_TWO);
        for (int i = 0; i < n; i++)
            if (g->body[i] == own) {
                const double m = tsr_atom_mass(g->atoms->atom[i].z);
                mass += m;
                for (int d = 0; d < 3; d++)
                    centre[d] += m * xyz[i][d];
            }
        for (int d = 0; d < 3; d++)
            centre[d] /= mass;
        assert_true(tsr_vec3_distance(centre, view.conformation->body[b]) <
                    1e-8);
    }
    tsr_chain_free(chain);
    free(xyz);
    close_strand(&f);
}

/* ---- curves ---- */

/* I(q) of the bodies of a conformation, form factors from their atoms. */
static void curve_of(const fixture *f, const tsr_conformation *c, int n_q,
                     double *intensity)
{
    const double dq = 0.02;
    tsr_form_factor_table *empty =
        tsr_form_factor_new(TSR_BODIES_TWO, 1, n_q, dq);
    tsr_form_factor_table *table = NULL;
    assert_non_null(empty);
    OK(tsr_form_factor_of_guests(empty, f->t->guests, f->atoms,
                                 TSR_WATER_DENSITY, &table, &err));
    for (int k = 0; k < n_q; k++) {
        intensity[k] = 0.0;
        for (int a = 0; a < f->t->n_body; a++)
            for (int b = 0; b < f->t->n_body; b++) {
                const double x =
                    k * dq * tsr_vec3_distance(c->body[a], c->body[b]);
                const int i = f->t->body[a].type, j = f->t->body[b].type;
                intensity[k] += table->amplitude[i * n_q + k] *
                                table->amplitude[j * n_q + k] *
                                (x > 1e-9 ? sin(x) / x : 1.0);
                intensity[k] += a == b ? table->excess[i * n_q + k] : 0.0;
            }
    }
    tsr_form_factor_free(table);
    tsr_form_factor_free(empty);
}

/* A strand that moved, written with its atoms and read as a file of its own,
 * scatters as it did. */
static void read_again(void **state)
{
    (void)state;
    enum { N_Q = 21 };
    fixture f, g = {.range = {NULL}};
    double moved[N_Q], first[N_Q], again[N_Q], most = 0.0;
    open_strand(&f, 8, 0, NULL, TSR_CLASH_NONE);
    gsl_rng *rng = tsr_rng_new(4, 0);
    tsr_conformation *c = tsr_conformation_new(f.t);
    draw(&f, rng, c);
    tsr_structure *model = tsr_topology_structure(f.t, c);
    assert_non_null(model);
    snprintf(g.path, sizeof g.path, "%s/moved.pdb", folder);
    OK(tsr_structure_write_pdb(model, g.path, NULL, &err));
    const tsr_strings all = {.n = 0};
    read_file(&g, &all, TSR_CLASH_NONE);
    assert_int_equal(g.t->n_body, f.t->n_body);
    curve_of(&f, f.c, N_Q, first);
    curve_of(&f, c, N_Q, moved);
    curve_of(&g, g.c, N_Q, again);
    for (int k = 0; k < N_Q; k++) {
        assert_true(fabs(again[k] / moved[k] - 1.0) < 2e-3);
        most = fmax(most, fabs(first[k] / moved[k] - 1.0));
    }
    assert_true(most > 0.05);
    for (int i = 0; i < f.t->n_residue; i++)
        if (f.t->base[i].is_there)
            assert_true(fabs(tsr_von_mises_wrap(c->side[i][0] -
                                                g.c->side[i][0])) < 5e-3);
    tsr_structure_free(model);
    tsr_conformation_free(c);
    gsl_rng_free(rng);
    close_strand(&f);
    close_strand(&g);
}

/* ---- what links are made of ---- */

static void links_of_a_strand(void **state)
{
    (void)state;
    fixture f;
    open_strand(&f, 5, 1, "S:3-4", TSR_CLASH_NONE);
    const tsr_topology *t = f.t;
    const tsr_guests *g = t->guests;
    double(*xyz)[3] = calloc((size_t)tsr_topology_n_atom(t), sizeof *xyz);
    int n[5] = {0};
    assert_int_equal(t->n_residue, 15);
    assert_int_equal(t->n_link, 15);
    assert_int_equal(t->n_chain, 1);
    for (int k = 0; k < g->n_body; k++)
        n[g->part[k].residue]++;
    for (int r = 0; r < 5; r++)
        assert_int_equal(n[r], 4);
    /* zeta, alpha, beta, gamma, epsilon of two, and two bases */
    assert_int_equal(t->n_torsion, 10);
    assert_int_equal(t->n_side, 2);
    tsr_conformation_atoms(t, f.c, xyz);
    for (int i = 0; i < g->atoms->n_atom; i++)
        assert_true(tsr_vec3_distance(xyz[i], g->atoms->atom[i].xyz) < 1e-9);
    const int class[3] = {TSR_NUCLEIC_PHOSPHATE, TSR_NUCLEIC_METHYLENE,
                          TSR_NUCLEIC_C3_ENDO};
    for (int i = 0; i < 15; i++) {
        assert_int_equal(t->residue[i].rama,
                         TSR_N_RAMA + TSR_N_NUCLEIC + class[i % 3]);
        assert_int_equal(t->residue[i].place, 2 * (i / 3));
    }
    /* each turns as its name says, and nothing else does */
    static const int of_link[3][2] = {
        {ZETA, ALPHA}, {BETA, GAMMA}, {DELTA, EPSILON}};
    for (int k = 0; k < t->n_torsion; k++) {
        const tsr_torsion *turned = &t->torsion[k];
        const int r = turned->residue / 3;
        const int which = of_link[turned->residue % 3][turned->kind];
        double was[5][N_TORSION];
        tsr_conformation_atoms(t, f.c, xyz);
        for (int i = 0; i < 5; i++)
            for (int m = 0; m < N_TORSION; m++)
                was[i][m] = torsion_of(g, (const double(*)[3])xyz, i, m);
        tsr_conformation_turn(t, f.c, turned, 0.4);
        tsr_conformation_atoms(t, f.c, xyz);
        for (int i = 0; i < 5; i++)
            for (int m = 0; m < N_TORSION; m++) {
                const double is = torsion_of(g, (const double(*)[3])xyz, i, m);
                const double by = i == r && m == which ? 0.4 : 0.0;
                if (!isnan(is))
                    assert_true(fabs(tsr_von_mises_wrap(is - was[i][m] - by)) <
                                1e-9);
            }
    }
    f.c->side[8][0] += 0.4;
    const double chi = torsion_of(g, (const double(*)[3])xyz, 2, CHI);
    tsr_conformation_atoms(t, f.c, xyz);
    assert_true(
        fabs(tsr_von_mises_wrap(torsion_of(g, (const double(*)[3])xyz, 2, CHI) -
                                chi - 0.4)) < 1e-9);
    assert_true(fabs(tsr_von_mises_wrap(f.c->side[8][0] - chi - 0.4)) < 1e-9);
    free(xyz);
    close_strand(&f);
}

/* ---- excluded volume, dirty bodies ---- */

/* What a proposal says of itself: what it does not name stays to the bit, and
 * what it calls rigid is. */
static void check_spans(const tsr_topology *t, const tsr_conformation *now,
                        const tsr_conformation *to, const tsr_proposal *p)
{
    int group[256];
    assert_true(t->n_body <= 256 && p->n_span <= TSR_MAX_SPAN);
    for (int a = 0; a < t->n_body; a++) {
        group[a] = -1;
        for (int q = 0; q < p->n_span; q++)
            if (t->body[a].residue >= p->span[q].first &&
                t->body[a].residue < p->span[q].first + p->span[q].count)
                group[a] = p->span[q].group;
        if (group[a] < 0)
            assert_memory_equal(now->body[a], to->body[a], sizeof to->body[a]);
        for (int b = 0; b < a && group[a] > 0; b++)
            if (group[a] == group[b])
                assert_true(fabs(tsr_vec3_distance(now->body[a], now->body[b]) -
                                 tsr_vec3_distance(to->body[a], to->body[b])) <
                            1e-9);
    }
    for (int q = 1; q < p->n_span; q++)
        assert_true(p->span[q].first >=
                    p->span[q - 1].first + p->span[q - 1].count);
}

/* Proposals of pivots, bases and whole chains, accepted by the prior, whose
 * changes are those of the sum over all pairs. */
static void propose_many(fixture *f, tsr_conformation *now, int n)
{
    static const int moves[] = {TSR_MOVE_pivot, TSR_MOVE_side_chain,
                                TSR_MOVE_crankshaft, TSR_MOVE_regrow};
    enum { N_KIND = sizeof moves / sizeof *moves };
    gsl_rng *rng = tsr_rng_new(2, 0);
    tsr_conformation *to = tsr_conformation_new(f->t);
    tsr_prior_state *s = tsr_prior_state_new(f->prior, now);
    void *move[N_KIND];
    int n_soft = 0;
    assert_non_null(s);
    for (int m = 0; m < N_KIND; m++) {
        const tsr_move_type *type = tsr_move_registry[moves[m]];
        move[m] = type->n_target(f->options[moves[m]], f->t) > 0
                      ? type->state_new(f->options[moves[m]], f->t, f->prior)
                      : NULL;
    }
    tsr_conformation_copy(f->t, to, now, 0, f->t->n_residue);
    for (int k = 0; k < n; k++) {
        tsr_proposal p;
        const int m = k % N_KIND;
        if (move[m] == NULL)
            continue;
        tsr_move_registry[moves[m]]->propose(move[m], now, to, rng, &p);
        tsr_proposal_carry(f->t, now, to, &p);
        check_spans(f->t, now, to, &p);
        const double change = p.n_span == 0 ? -(double)INFINITY
                                            : tsr_prior_propose(s, now, to, &p);
        const double whole = tsr_prior_log_reference(f->prior, to) -
                             tsr_prior_log_reference(f->prior, now);
        if (p.n_span > 0 && isinf(change))
            assert_true(isinf(whole));
        else if (p.n_span > 0)
            assert_true(fabs(change - whole) < 1e-6);
        n_soft += !isinf(change);
        if (!isinf(change) && gsl_rng_uniform(rng) < exp(change)) {
            tsr_prior_accept(s, to, &p);
            tsr_conformation_copy(f->t, now, to, 0, f->t->n_residue);
        } else {
            tsr_conformation_copy(f->t, to, now, 0, f->t->n_residue);
        }
    }
    assert_true(n_soft > n / 5);
    assert_true(fabs(tsr_prior_state_log(s) -
                     tsr_prior_log_reference(f->prior, now)) < 1e-6);
    for (int m = 0; m < N_KIND; m++)
        if (move[m] != NULL)
            tsr_move_registry[moves[m]]->state_free(move[m]);
    tsr_prior_state_free(s);
    tsr_conformation_free(to);
    gsl_rng_free(rng);
}

static void proposals_tell_the_truth(void **state)
{
    (void)state;
    fixture f;
    open_strand(&f, 9, 0, NULL, TSR_CLASH_SOFT);
    gsl_rng *rng = tsr_rng_new(2, 0);
    tsr_conformation *now = tsr_conformation_new(f.t);
    tsr_conformation *good = tsr_conformation_new(f.t);
    int n_forbidden = 0;
    for (int k = 0; k < 300; k++) {
        char worst[160];
        draw(&f, rng, now);
        const int n = tsr_prior_clashes(f.prior, now, worst);
        n_forbidden += n > 0;
        assert_true((n > 0) ==
                    (isinf(tsr_prior_log_reference(f.prior, now)) != 0));
        if (n == 0)
            tsr_conformation_copy(f.t, good, now, 0, f.t->n_residue);
    }
    assert_true(n_forbidden > 10 && n_forbidden < 300);
    propose_many(&f, good, 4000);
    tsr_conformation_free(now);
    tsr_conformation_free(good);
    gsl_rng_free(rng);
    close_strand(&f);
}

/* ---- a complex ---- */

/* Protein A of two domains with a hinge at 11 to 14; a strand S of 8 on the
 * second; protein B on the strand's end. */
static void write_complex(const char *path)
{
    chain_residue residue[24];
    char plain[128];
    tsr_structure *s = NULL;
    tsr_atoms *atoms = NULL;
    for (int i = 0; i < 24; i++)
        residue[i] = (chain_residue){.amino = i % 2 ? TSR_ALA : TSR_GLY,
                                     .phi = -2.3,
                                     .psi = 2.4,
                                     .angle = 1.94,
                                     .omega = 3.1};
    snprintf(plain, sizeof plain, "%s/plain.pdb", folder);
    FILE *file = fopen(plain, "w");
    assert_non_null(file);
    write_chain(file, 24, residue);
    fclose(file);
    OK(tsr_structure_read(plain, &s, &err));
    const double *ca = tsr_residue_atom(s, &s->residue[19], "CA")->xyz;
    const double beside[3] = {ca[0], ca[1], ca[2] + 7.0};
    file = fopen(plain, "w");
    strand_write(file, 'S', 8, 0, beside);
    fclose(file);
    OK(tsr_atoms_read(plain, &atoms, &err));
    double shift[3];
    const double *first = tsr_residue_atom(s, &s->residue[0], "CA")->xyz;
    const double *end = atoms->atom[atoms->n_atom - 1].xyz;
    for (int d = 0; d < 3; d++)
        shift[d] = end[d] - first[d] + (d == 0 ? 5.0 : 0.0);
    file = fopen(path, "w");
    for (int chain = 0; chain < 2; chain++) {
        for (int i = 0; i < (chain == 0 ? 24 : 6); i++)
            for (int k = 0; k < s->residue[i].n_atom; k++) {
                const tsr_atom *a = &s->atom[s->residue[i].first_atom + k];
                const char element[2] = {a->name[0], '\0'};
                double x[3];
                for (int d = 0; d < 3; d++)
                    x[d] = a->xyz[d] + chain * shift[d];
                strand_put(file, a->name, element, s->residue[i].name,
                           (char)('A' + chain), s->residue[i].number, x);
            }
        fprintf(file, "TER\n");
    }
    strand_write(file, 'S', 8, 0, beside);
    fclose(file);
    tsr_atoms_free(atoms);
    tsr_structure_free(s);
}

/* Distance of the CA of two residues of the topology. */
static double apart(const tsr_conformation *c, int i, int j)
{
    return tsr_vec3_distance(c->backbone[i][TSR_CA], c->backbone[j][TSR_CA]);
}

static void chains_ride(void **state)
{
    (void)state;
    fixture f = {.range = {"A:11-14", "S:4-5"}};
    const tsr_strings flexible = {.n = 2, .item = f.range};
    snprintf(f.path, sizeof f.path, "%s/complex.pdb", folder);
    write_complex(f.path);
    read_file(&f, &flexible, TSR_CLASH_SOFT);
    const tsr_topology *t = f.t;
    /* A 0 to 23, B 24 to 29, S from 30, three links a nucleotide */
    assert_int_equal(t->n_residue, 30 + 24);
    assert_int_equal(t->n_ride, 2);
    assert_int_equal(t->ride[0].chain, 2);
    assert_true(t->ride[0].host >= 14 && t->ride[0].host < 24);
    assert_int_equal(t->ride[1].chain, 1);
    assert_true(t->ride[1].host >= 30 + 15);
    assert_true(t->residue[0].is_fixed && !t->residue[20].is_fixed);
    assert_int_equal(t->residue[30].unit, t->residue[t->ride[0].host].unit);
    assert_int_equal(t->residue[24].unit, t->residue[t->ride[1].host].unit);
    assert_true(t->residue[30].unit != t->residue[0].unit &&
                t->residue[24].unit != t->residue[30].unit);
    tsr_conformation *now = tsr_conformation_new(t);
    tsr_conformation_copy(t, now, f.c, 0, t->n_residue);
    propose_many(&f, now, 4000);
    assert_memory_equal(now->backbone[0], f.c->backbone[0],
                        sizeof now->backbone[0]);
    assert_true(fabs(apart(now, 20, 30) - apart(f.c, 20, 30)) < 1e-6);
    assert_true(fabs(apart(now, 24, 50) - apart(f.c, 24, 50)) < 1e-6);
    assert_true(fabs(apart(now, 24, 29) - apart(f.c, 24, 29)) < 1e-6);
    assert_true(fabs(apart(now, 0, 30) - apart(f.c, 0, 30)) > 0.1);
    assert_true(fabs(apart(now, 30, 24) - apart(f.c, 30, 24)) > 0.1);
    tsr_conformation_free(now);
    close_strand(&f);
}

static int make_folder(void **state)
{
    (void)state;
    return folder_make(folder, "nucleic");
}

static int remove_folder(void **state)
{
    (void)state;
    return folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_of_a_strand),
        cmocka_unit_test(densities),
        cmocka_unit_test(geometry_keeps),
        cmocka_unit_test(proposals_tell_the_truth),
        cmocka_unit_test(chains_ride),
        cmocka_unit_test(read_again),
        cmocka_unit_test(prior_in_is_prior_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
