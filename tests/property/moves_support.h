/* Molecules for the tests of moves, and the test that a set of moves keeps the
 * prior: replicates start from exact draws, make some steps, and must still be
 * exact draws. That holds for any set of moves, ergodic or not, and the
 * replicates are independent. */
#ifndef TESTS_MOVES_SUPPORT_H
#define TESTS_MOVES_SUPPORT_H

#include "tests/io_files.h"
#include "tests/objects.h"
#include "tests/property/prior_sampler.h"

#include "moves/closure.h"
#include "moves/members.h"
#include "moves/move.h"
#include "prior/prior.h"
#include "sampler/chain.h"

#include <gsl/gsl_sort.h>

/* Moves that propose by themselves: the last two, which go by a surrogate, are
 * a walker's. */
enum { OWN_MOVES = TSR_MOVE_surrogate };

typedef struct {
    const char *name;
    const char *sequence;   /* chains separated by '/' */
    const char *flexible;   /* ranges, or NULL: all; "": none */
    const char *mobile;     /* a chain, or NULL */
    const char *between[2]; /* a restraint, or NULL */
    int clash;
    double d_limit_ang;
    int is_loose; /* torsions all but uniform: geometry alone matters */
    int contacts; /* of a mobile chain, at least */
} test_case;

/* All flexible; with excluded volume; a linker between rigid parts; two of
 * them, with a restraint; a complex, and one in contact; copies about an
 * axis. */
static const test_case cases[] = {
    {"all",
     "GAKPIVTSLFGNDE",
     NULL,
     NULL,
     {NULL, NULL},
     TSR_CLASH_NONE,
     0.0,
     0,
     0},
    {"clash",
     "AKPIVGTSLF",
     NULL,
     NULL,
     {NULL, NULL},
     TSR_CLASH_SOFT,
     0.0,
     0,
     0},
    {"linker",
     "AAAAKGSTVKLAAAA",
     "A:5-11",
     NULL,
     {NULL, NULL},
     TSR_CLASH_SOFT,
     0.0,
     0,
     0},
    {"restrained",
     "AAAAKGSTVKLAAAAGSTVKAGAAA",
     "A:5-11 A:16-22",
     NULL,
     {"A:2", "A:24"},
     TSR_CLASH_NONE,
     0.0,
     0,
     0},
    {"complex",
     "AAAAKGSTV/AAAKGST",
     "A:5-9 B:4-7",
     "B",
     {NULL, NULL},
     TSR_CLASH_SOFT,
     45.0,
     0,
     0},
    {"docked",
     "AKV/SAKLG",
     "B:2-3",
     "B",
     {NULL, NULL},
     TSR_CLASH_SOFT,
     24.0,
     0,
     2},
    {"symmetric",
     "AAKGST/AAKGST/AAKGST",
     "A:3-5",
     "subunit",
     {NULL, NULL},
     TSR_CLASH_SOFT,
     45.0,
     0,
     0},
    {"loose", "GAKIVTSLF", NULL, NULL, {NULL, NULL}, TSR_CLASH_NONE, 0.0, 1, 0},
    {"loose linker",
     "AAAAKGSTVKLAAAA",
     "A:5-11",
     NULL,
     {NULL, NULL},
     TSR_CLASH_NONE,
     0.0,
     1,
     0}};
enum { N_CASE = COUNT_OF(cases) };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior_options options_prior;
    tsr_restraint_options restraint;
    tsr_prior *prior;
    prior_sampler sampler;
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
    char text[4][32];
    char *item[4], *mobile[1], *between[2];
} fixture;

static void write_atom(FILE *file, int *serial, const char *name, char element,
                       const char *three, char chain, int number,
                       const double x[3])
{
    fprintf(file,
            "ATOM  %5d  %-3s %3s %c%4d    %8.3f%8.3f%8.3f  1.00  0.00          "
            " %c\n",
            ++*serial, name, three, chain, number, x[0], x[1], x[2], element);
}

/* A complex comes from a file: its chains side by side, extended, or, of a
 * symmetric assembly, about the z axis. */
static void make_complex(fixture *f, const char *sequence, int n_copy,
                         tsr_flexibility flexibility)
{
    static const double origin[3] = {0.0}, up[3] = {0.0, 0.0, 1.0};
    char group[8];
    snprintf(group, sizeof group, "C%d", n_copy);
    const char *path = io_path("complex.pdb");
    FILE *file = fopen(path, "w");
    int serial = 0, n_chain = 0;
    for (const char *at = sequence; *at != '\0'; n_chain++) {
        char one[64] = "";
        size_t n = strcspn(at, "/");
        memcpy(one, at, n);
        at += at[n] == '/' ? n + 1 : n;
        tsr_topology *t;
        tsr_conformation *c;
        sample_chain(one, NULL, &f->table, &t, &c);
        for (int i = 0; i < t->n_residue; i++) {
            static const char *const names[4] = {"N", "CA", "C", "O"};
            const char *three = tsr_amino_table[t->residue[i].amino].three;
            for (int a = 0; a < 4; a++) {
                double x[3];
                tsr_vec3_copy(x, c->backbone[i][a]);
                if (n_copy == 0) {
                    x[2] += 12.0 * n_chain;
                } else {
                    tsr_motion turn;
                    x[1] += 8.0;
                    tsr_motion_about(&turn, origin, up,
                                     2.0 * acos(-1.0) * n_chain / n_copy);
                    tsr_motion_apply(&turn, x);
                }
                write_atom(file, &serial, names[a], names[a][0], three,
                           (char)('A' + n_chain), i + 1, x);
            }
        }
        fprintf(file, "TER\n");
    }
    fprintf(file, "END\n");
    fclose(file);
    NEW(tsr_structure, structure, tsr_structure_read_symmetric, path,
        n_copy > 0 ? group : NULL);
    OK(tsr_topology_from_structure(structure, TSR_BODIES_TWO, flexibility,
                                   &f->table, NULL, &f->t, &f->c, &err));
}

OWNED(tsr_members)

/* A pool of exact draws of the prior, but of a few: near none of them a chain
 * finds all of the prior. */
static void add_members(fixture *f, int n)
{
    tsr_regrow_options *o = (void *)f->option[TSR_MOVE_regrow];
    tsr_members *members = own_tsr_members(tsr_members_new(f->t));
    gsl_rng *rng = rng_new(5, 0);
    tsr_conformation *c = new_conformation(f->t);
    for (int m = 0; m < n; m++) {
        sample_prior(&f->sampler, rng, c);
        OK(tsr_members_add(members, c, &err));
    }
    o->members = members;
}

static void open_case(fixture *f, const test_case *k)
{
    memset(f, 0, sizeof *f);
    sample_prior_table(&f->table);
    for (int a = 0; a < TSR_N_AMINO; a++) /* so that measures matter */
        f->table.angle[a] = (tsr_angle_gaussian){1, 2.4, 0.25};
    for (int r = 0; r < TSR_N_RAMA && k->is_loose; r++)
        f->table.torsion[r] = (tsr_torsion_mixture){
            .count = 1, .n = 1, .part = {{1.0, -1.0, 1.0, 0.5, 0.3, 0.2}}};
    int n = 0;
    for (const char *at = k->flexible; at != NULL && *at != '\0'; n++) {
        size_t length = strcspn(at, " ");
        memcpy(f->text[n], at, length);
        f->item[n] = f->text[n];
        at += at[length] == ' ' ? length + 1 : length;
    }
    f->mobile[0] = k->mobile == NULL ? NULL : f->text[3];
    if (k->mobile != NULL)
        snprintf(f->text[3], sizeof f->text[3], "%s", k->mobile);
    tsr_strings flexible = {n, f->item},
                mobile = {k->mobile != NULL, f->mobile};
    static char a[] = "A", b[] = "B";
    static char *both[] = {a, b};
    const tsr_strings rigid = {2, both};
    const int is_rigid = k->flexible != NULL && n == 0;
    tsr_flexibility flexibility = {.flexible = is_rigid ? NULL : &flexible,
                                   .rigid = is_rigid ? &rigid : NULL,
                                   .mobile = &mobile,
                                   .contacts = k->contacts};
    const int is_subunit = n > 0 && mobile.n > 0 && k->mobile[1] != '\0';
    if (strchr(k->sequence, '/') != NULL)
        make_complex(f, k->sequence, is_subunit ? 3 : 0, flexibility);
    else
        OK(tsr_topology_from_sequence(k->sequence, TSR_BODIES_TWO, flexibility,
                                      &f->table, &f->t, &f->c, &err));
    own_molecule(f->t, f->c);
    f->options_prior = (tsr_prior_options){
        .clash = k->clash, .softness = 0.5, .clash_limit = 4.0};
    if (k->between[0] != NULL) {
        for (int b = 0; b < 2; b++) {
            f->between[b] = array(16, 1);
            snprintf(f->between[b], 16, "%s", k->between[b]);
        }
        f->restraint = (tsr_restraint_options){.between = {2, f->between},
                                               .at = 1,
                                               .distance = {10.0, 30.0},
                                               .width = 4.0};
        f->options_prior.restraints = (tsr_list){1, &f->restraint};
    }
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &f->options_prior,
         k->d_limit_ang);
    if (k->contacts > 0) { /* the chains of the file are apart */
        assert_false(tsr_prior_is_in_contact(f->t, f->c));
        assert_true(tsr_place_chains(f->prior, rng_new(4, 0), f->c));
    }
    f->sampler = (prior_sampler){.t = f->t,
                                 .table = &f->table,
                                 .prior = f->prior,
                                 .first = f->c,
                                 .box_ang = 1.6 * k->d_limit_ang};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        assert_true(type->options_size <= sizeof f->option[m]);
        OK(tsr_fields_init(type->fields, f->option[m], &err));
        const double weight = 1.0; /* of those too that are off by default */
        memcpy(f->option[m], &weight, sizeof weight);
        f->options[m] = f->option[m];
    }
    if (f->t->n_torsion > 0)
        add_members(f, 7);
}

static tsr_target target_of(const fixture *f, const tsr_conformation *first,
                            uint64_t seed)
{
    return (tsr_target){.topology = f->t,
                        .first = first,
                        .prior = f->prior,
                        .move_options = f->options,
                        .seed = seed};
}

static tsr_chain *chain_of(const tsr_target *target, int number)
{
    tsr_chain *chain;
    OK(tsr_chain_new(target, number, &chain, &err));
    return chain;
}

static void step(tsr_chain *chain, int warm)
{
    tsr_body_proposal ask;
    int accepted;
    assert_int_equal(tsr_chain_propose(chain, &ask), 0);
    OK(tsr_chain_decide(chain, NULL, warm, &accepted, &err));
}

/* ---- the prior in is the prior out ---- */

/* Kolmogorov-Smirnov p-value of two samples, of which v is in ascending order.
 * Stephens' approximation. */
static double ks_p(int n, double *u, int m, const double *v)
{
    gsl_sort(u, 1, (size_t)n);
    double d = 0.0, sum = 0.0;
    for (int i = 0, j = 0; i < n && j < m;) {
        double x = u[i] < v[j] ? u[i] : v[j];
        while (i < n && u[i] <= x)
            i++;
        while (j < m && v[j] <= x)
            j++;
        d = fmax(d, fabs(i / (double)n - j / (double)m));
    }
    double root = sqrt(n / (n / (double)m + 1.0));
    double x = d * (root + 0.12 + 0.11 / root);
    for (int j = 1; j < 100; j++)
        sum += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * x * x);
    return x < 0.3 ? 1.0 : sum;
}

enum { MAX_VALUE = 256 };

/* log D of three neighbours as pivots: what a forgotten Jacobian of a closure
 * would shift most. */
static double log_det_at(const tsr_conformation *c, int i)
{
    double axis[6][2][3];
    for (int k = 0; k < 6; k++) {
        double(*x)[3] = c->backbone[i + k / 2];
        tsr_vec3_copy(axis[k][0], x[k % 2]);
        tsr_vec3_copy(axis[k][1], x[k % 2 + 1]);
    }
    return tsr_closure_log_det(axis);
}

/* What is compared: every coordinate of the prior, distances, and sums over the
 * residues, in which a small shift of each adds up while the spread does not.
 */
static int measure(const fixture *f, const tsr_conformation *c,
                   double value[MAX_VALUE])
{
    const tsr_topology *t = f->t;
    int n = 0, last = t->n_residue - 1;
    double angles = 0.0, torsions = 0.0, log_dets = 0.0;
    for (int i = 0; i <= last; i++) {
        const tsr_residue *r = &t->residue[i];
        double(*x)[3] = c->backbone[i];
        if (!r->flexible)
            continue;
        if (r->has_phi)
            value[n++] = tsr_conformation_torsion(t, c, i, TSR_PHI);
        if (r->has_psi)
            value[n++] = tsr_conformation_torsion(t, c, i, TSR_PSI);
        angles += value[n++] = tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C]);
        torsions += value[n++] = tsr_prior_torsion_log_of(f->prior, c, i);
        if (i + 2 <= r->chain_last && t->residue[i + 2].flexible)
            log_dets += value[n++] = log_det_at(c, i);
        if (tsr_amino_has_side_chain(r->amino)) {
            value[n++] = c->side[i][0];
            value[n++] = c->side[i][1];
            value[n++] = c->side[i][2];
        }
    }
    value[n++] =
        tsr_vec3_distance(c->backbone[0][TSR_CA], c->backbone[last][TSR_CA]);
    value[n++] =
        tsr_vec3_distance(c->backbone[1][TSR_N], c->backbone[last / 2][TSR_O]);
    value[n++] = tsr_conformation_rg(t, c, NULL);
    value[n++] = tsr_prior_log_reference(f->prior, c);
    value[n++] = angles, value[n++] = torsions, value[n++] = log_dets;
    return n;
}

/* Exact draws of a case, with which all sets of moves are compared. */
typedef struct {
    int n, n_value;
    double *value; /* [n_value][n], each row in ascending order */
} oracle;

static inline oracle oracle_new(fixture *f, int n)
{
    double one[MAX_VALUE];
    oracle o = {.n = n, .n_value = measure(f, f->c, one)};
    assert_true(o.n_value <= MAX_VALUE);
    o.value = array((size_t)n * (size_t)o.n_value, sizeof *o.value);
    gsl_rng *rng = rng_new(40, 0);
    tsr_conformation *c = new_conformation(f->t);
    for (int i = 0; i < n; i++) {
        sample_prior(&f->sampler, rng, c);
        measure(f, c, one);
        for (int v = 0; v < o.n_value; v++)
            o.value[v * n + i] = one[v];
    }
    for (int v = 0; v < o.n_value; v++)
        gsl_sort(&o.value[v * n], 1, (size_t)n);
    return o;
}

/* One replicate: an exact draw, then so many steps. Returns how many were
 * accepted; *n_moved: coordinates that changed. */
static long replicate(fixture *f, const tsr_target *target, int number,
                      int steps, double end[MAX_VALUE], long *n_moved)
{
    double start[MAX_VALUE];
    tsr_chain_view view;
    long accepted = 0;
    tsr_chain *chain = chain_of(target, number);
    int n = measure(f, target->first, start);
    for (int s = 0; s < steps; s++)
        step(chain, 0);
    tsr_chain_view_get(chain, &view);
    measure(f, view.conformation, end);
    for (int v = 0; v < n; v++)
        *n_moved += end[v] != start[v];
    for (int m = 0; m < TSR_N_MOVE; m++)
        accepted += tsr_chain_counts_get(chain)->accepted[m];
    tsr_chain_free(chain);
    return accepted;
}

/* What became of n exact draws, after [n_value][n], against the oracle. */
static void check_after(const char *name, const oracle *o, unsigned set, int n,
                        double *after)
{
    for (int v = 0; v < o->n_value; v++) {
        double p = ks_p(n, &after[v * n], o->n, &o->value[v * o->n]);
        if (p * o->n_value < 1e-4)
            fail_msg("%s, moves %x: value %d of %d, p = %g", name, set, v,
                     o->n_value, p);
    }
}

/* n replicates of so many steps of the moves in `set`, against the oracle. The
 * smallest p-value of all coordinates is Bonferroni-corrected; the seeds are
 * fixed. Moves that change nothing fail too. With 125 replicates, 1000 exact
 * draws and 60 coordinates a distribution function that is off by 0.26
 * somewhere fails; a limit of 1e-4 a set is a false alarm in 200 seeds. */
static inline void check_subset(fixture *f, const char *name, const oracle *o,
                                unsigned set, int n, int steps)
{
    const void *options[TSR_N_MOVE] = {NULL};
    int n_target = 0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (set >> m & 1u) {
            options[m] = f->options[m];
            if (tsr_move_registry[m]->launch == NULL &&
                tsr_move_registry[m]->learn == NULL) /* else no data, no move */
                n_target += tsr_move_registry[m]->n_target(options[m], f->t);
        }
    if (n_target == 0)
        return;
    gsl_rng *rng = rng_new(41 + set, 0);
    tsr_conformation *start = new_conformation(f->t);
    tsr_target target = target_of(f, start, 1000 + set);
    target.move_options = options;
    double *after = array((size_t)n * MAX_VALUE, sizeof *after);
    long moved = 0, accepted = 0;
    for (int i = 0; i < n; i++) {
        double end[MAX_VALUE];
        sample_prior(&f->sampler, rng, start);
        accepted += replicate(f, &target, i, steps, end, &moved);
        for (int v = 0; v < o->n_value; v++)
            after[v * n + i] = end[v];
    }
    check_after(name, o, set, n, after);
    if ((double)moved < 0.02 * n * o->n_value || accepted < (long)n)
        fail_msg("%s, moves %x: %ld of %ld accepted, too few to tell anything",
                 name, set, accepted, (long)n * steps);
}

#endif
