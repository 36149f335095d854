/* Training recovers the distances, torsions, angles and side-chain centres of
 * structures that the test wrote, and the table is read back to the bit. */
#include "chain_pdb.h"
#include "molecule/prior_table.h"
#include "table_text.h"
#include "tests/test.h"
#include "train/train.h"

#include <unistd.h>

/* Of twelve files every sixth is held out, and large. How many parts a mixture
 * has is tried on the others, in which so little is that few numbers are tried.
 * A file has residues of a random chain, and chains of a crowd so long. */
enum { N_FILE = 12 };
typedef struct {
    int n_link, n_side, n_crowd;
} file_size;
static const file_size small = {123, 1, 60}, large = {945, 4, 300};
enum { MOST_LINK = 945, ALL_LINK = 10 * 123 + 2 * 945 };

static int is_held_out(int file)
{
    return file % TSR_MIXTURE_HOLD_OUT == TSR_MIXTURE_HOLD_OUT - 1;
}

static struct {
    char folder[64], path[N_FILE][96], table[96];
    tsr_prior_table *trained;
} files, *const f = &files;

/* One residue at `at`: N, CA, C, O in the xy plane and all others at `side`
 * from CA. C lies on +x and N at y > 0, so the frame of N-CA-C has the axes of
 * the file and `side` is the side-chain centre in it. */
static void put_residue(FILE *file, int *serial, int amino, char chain,
                        int number, const double at[3], const double side[3])
{
    static const double backbone[4][3] = {
        {-1.0, 1.0, 0.0}, {0.0, 0.0, 0.0}, {1.5, 0.0, 0.0}, {1.5, 1.2, 0.0}};
    const tsr_amino_info *info = &tsr_amino_table[amino];
    for (int i = 0; i < info->n_atom; i++) {
        double x[3];
        for (int d = 0; d < 3; d++)
            x[d] = at[d] + (i < 4 ? backbone[i][d] : side[d]);
        put_atom(file, serial, info->atom[i].name, info->three, chain, number,
                 x);
    }
}

/* Residue i of a chain of threes: in the long one all types in turn are in the
 * middle, in the others the classes of torsions: any, VAL, GLY, any before PRO,
 * PRO twice, one of them cis. */
static int pick_amino(gsl_rng *rng, int is_long, int i)
{
    const int any = (int)gsl_rng_uniform_int(rng, TSR_N_AMINO);
    const int in_turn = i / 3 % (TSR_N_AMINO + 1);
    const int class[6] = {any, TSR_VAL, TSR_GLY, any, TSR_PRO, TSR_PRO};
    if (i % 3 == 2)
        return i / 3 % 6 == 3 ? TSR_PRO : any;
    if (is_long)
        return in_turn < TSR_N_AMINO ? in_turn : TSR_PRO;
    return class[i / 3 % 6];
}

/* Threes of residues far from one another, so that there are no contacts; the
 * torsions of the middle one count. Helix, strand and, of Gly, left-handed;
 * half of the prolines cis. Side chains at two places. */
static void write_random_chain(FILE *file, int n, unsigned long stream)
{
    static chain_residue r[MOST_LINK];
    gsl_rng *rng = rng_new(7, stream);
    for (int i = 0; i < n; i++) {
        int helix = gsl_rng_uniform(rng) < 0.6, near = i / 20 % 2;
        int amino = pick_amino(rng, n == large.n_link, i);
        double left = amino == TSR_GLY && gsl_rng_uniform(rng) < 0.5 ? -1 : 1;
        r[i] = (chain_residue){
            .amino = amino,
            .phi = left * (helix ? -1.1 : -2.1) + 0.1 * gsl_rng_uniform(rng),
            .psi = left * (helix ? -0.8 : 2.3) + 0.2 * gsl_rng_uniform(rng),
            .angle = 1.92 + 0.05 * gsl_rng_uniform(rng),
            .omega = amino == TSR_PRO && i % 2 ? 0.0 : M_PI,
            .breaks = i % 3 == 0};
        for (int d = 0; d < 3; d++)
            r[i].side[d] = (near ? -1.0 : -2.0) +
                           0.2 * (gsl_rng_uniform(rng) - 0.5) * (d + 1);
    }
    write_chain(file, n, r);
}

/* Chains side by side in a square, 9 Angstrom apart, of all types in turn every
 * 2.5: residues 1 and 2 apart in a chain are at 2.5 and 5 and do not count, 3
 * apart at 7.5, 4 apart at 10; across, the same type is at 9, the next at 9.3.
 * The random chain is far away. */
static void write_contacts(FILE *file, const file_size *size)
{
    int serial = 0, side = size->n_side;
    static const double nothing[3] = {0.0, 0.0, 0.0};
    for (int chain = 0; chain < side * side; chain++)
        for (int i = 0; i < size->n_crowd; i++) {
            double at[3] = {2.5 * i, 9.0 * (chain % side),
                            1000.0 + 9.0 * (double)(chain / side)};
            put_residue(file, &serial, i % TSR_N_AMINO, (char)('B' + chain),
                        i + 1, at, nothing);
        }
    fprintf(file, "TER\nEND\n");
}

FIXTURE(set_up)
{
    snprintf(f->folder, sizeof f->folder, "/tmp/tessera-prior-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->table, sizeof f->table, "%s/t.dat", f->folder);
    const char *path[N_FILE];
    for (int i = 0; i < N_FILE; i++) {
        const file_size *size = is_held_out(i) ? &large : &small;
        snprintf(f->path[i], sizeof f->path[i], "%s/%d.pdb", f->folder, i);
        path[i] = f->path[i];
        FILE *file = fopen(path[i], "w");
        write_random_chain(file, size->n_link, (unsigned long)i);
        write_contacts(file, size);
        fclose(file);
    }
    if (tsr_prior_table_train(N_FILE, path, 2, NULL, &f->trained, &err) !=
        TSR_OK) {
        print_message("%s\n", err.message);
        return -1;
    }
    return 0;
}

FIXTURE(tear_down)
{
    tsr_prior_table_free(f->trained);
    for (int i = 0; i < N_FILE; i++)
        remove(f->path[i]);
    remove(f->table);
    return rmdir(f->folder);
}

/* What was put into the chains comes out of the mixtures. */
TEST(mixtures)
{
    const tsr_prior_table *t = f->trained;
    long count = 0;
    for (int c = 0; c < TSR_N_RAMA; c++) {
        const tsr_torsion_mixture *m = &t->torsion[c];
        tsr_torsion_density *d = tsr_torsion_density_new(m);
        count += m->count;
        assert_true(m->n >= 2 && m->part[m->n - 1].k_phi == 0.0);
        double helix = tsr_torsion_density_log(d, -1.05, -0.7);
        double strand = tsr_torsion_density_log(d, -2.05, 2.4);
        double nothing = tsr_torsion_density_log(d, 0.0, 1.0);
        double left = tsr_torsion_density_log(d, 1.15, 0.9);
        assert_true(helix > nothing + 2.0 && strand > nothing + 2.0);
        if (c == TSR_RAMA_GLY)
            assert_true(left > nothing + 2.0);
        else
            assert_true(left < helix - 4.0);
        free(d);
    }
    /* of the crowds' residues all are too strained */
    assert_int_equal(count, ALL_LINK / 3);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        /* of some thirty residues: four standard errors */
        assert_near(t->angle[a].mean, 1.945, 0.0105);
        assert_near(t->angle[a].sd, 0.05 / sqrt(12.0), 0.004);
        double side[3];
        tsr_prior_table_side(t, (tsr_amino)a, side);
        if (!tsr_amino_has_side_chain((tsr_amino)a)) {
            assert_int_equal(t->side[a].n, 0);
            assert_true(side[0] == 0.0 && side[1] == 0.0 && side[2] == 0.0);
            continue;
        }
        tsr_side_density *d = tsr_side_density_new(&t->side[a]);
        double one = tsr_side_density_log(d, (double[3]){-1.0, -1.0, -1.0});
        double two = tsr_side_density_log(d, (double[3]){-2.0, -2.0, -2.0});
        double none = tsr_side_density_log(d, (double[3]){-1.5, -1.5, -1.5});
        if (!(one > none && two > none))
            fail_msg("%s: %g %g %g", tsr_amino_table[a].three, one, two, none);
        assert_true(fabs(side[0]) < 0.01); /* the crowds', which are most */
        free(d);
    }
}

/* Structures too few: what is missing is named. */
TEST(too_few)
{
    tsr_prior_table *t = NULL;
    /* thrice the same chain: enough residues, which touch nothing */
    const char *path[] = {f->table, f->table, f->table};
    FILE *file = fopen(f->table, "w");
    write_random_chain(file, large.n_link, 0);
    fclose(file);
    FAILS(tsr_prior_table_train(1, path, 1, NULL, &t, &err), TSR_E_DATA,
          "are needed");
    FAILS(tsr_prior_table_train(3, path, 1, NULL, &t, &err), TSR_E_DATA,
          "contacts");
    assert_null(t);
}

/* Body centres lie within 0.5 of one another along x, hence the tolerances. */
TEST(contacts)
{
    const tsr_prior_table *t = f->trained;
    for (int a = 0; a < TSR_N_AMINO; a++)
        for (int b = 0; b < TSR_N_AMINO; b++) {
            double d = t->contact[TSR_BODIES_ONE][a][b];
            assert_true(d == t->contact[TSR_BODIES_ONE][b][a]);
            assert_true(d > 6.7 && d < 10.0); /* neither 2.5 nor 5 */
            if (abs(a - b) == 3 || abs(a - b) == 17)
                assert_true(d < 8.3);
        }
    assert_nears(0.02, t->contact[TSR_BODIES_TWO][1 + TSR_GLY][1 + TSR_GLY],
                 9.0, t->contact[TSR_BODIES_ONE][TSR_TRP][TSR_TRP], 9.0);
    /* Types 5, 6 and 7 apart never meet: the mean of two types' own, which
     * shows as a sum that does not depend on who is paired with whom. */
    double together =
        t->contact[TSR_BODIES_ONE][0][6] + t->contact[TSR_BODIES_ONE][1][7];
    double crossed =
        t->contact[TSR_BODIES_ONE][0][7] + t->contact[TSR_BODIES_ONE][1][6];
    assert_near(together, crossed, 1e-12);
    assert_true(together < 2 * 7.7); /* the lowest hundredth: 3 apart */
    assert_has(t->source, "structures: 12");
}

/* Nine figures are written. */
static int same(double a, double b)
{
    return fabs(a - b) <= 1e-8 * fabs(a);
}

TEST(round_trip)
{
    const tsr_prior_table *t = f->trained;
    tsr_prior_table *u = NULL;
    OK(tsr_prior_table_write(t, f->table, &err));
    OK(tsr_prior_table_read(f->table, &u, &err));
    assert_string_equal(u->source, t->source);
    for (int c = 0; c < TSR_N_RAMA; c++) {
        const tsr_torsion_mixture *a = &t->torsion[c], *b = &u->torsion[c];
        assert_ints(a->count, b->count, a->n, b->n);
        double sum = 0.0;
        for (int i = 0; i < a->n; i++) {
            const tsr_von_mises *p = &a->part[i], *q = &b->part[i];
            assert_true(same(p->weight, q->weight) && same(p->phi, q->phi) &&
                        same(p->psi, q->psi) && same(p->k_phi, q->k_phi) &&
                        same(p->k_psi, q->k_psi) && same(p->lambda, q->lambda));
            sum += q->weight;
        }
        assert_near(sum, 1.0, 1e-15);
    }
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const tsr_side_mixture *m = &t->side[a], *v = &u->side[a];
        assert_ints(m->count, v->count, m->n, v->n);
        for (int g = 0; g < m->n; g++) {
            assert_true(same(m->part[g].weight, v->part[g].weight));
            for (int i = 0; i < 3; i++) {
                assert_true(same(m->part[g].mean[i], v->part[g].mean[i]));
                for (int j = 0; j < 3; j++)
                    assert_true(
                        same(m->part[g].cov[i][j], v->part[g].cov[i][j]));
            }
        }
        assert_int_equal(t->angle[a].count, u->angle[a].count);
        assert_true(same(t->angle[a].mean, u->angle[a].mean) &&
                    same(t->angle[a].sd, u->angle[a].sd));
        for (int b = 0; b < TSR_N_AMINO; b++)
            assert_near(u->contact[TSR_BODIES_ONE][a][b],
                        t->contact[TSR_BODIES_ONE][a][b], 1e-8);
    }
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            assert_near(u->contact[TSR_BODIES_TWO][a][b],
                        t->contact[TSR_BODIES_TWO][a][b], 1e-8);
    tsr_prior_table_free(u);
    tsr_prior_table_free(NULL);
    assert_int_equal(tsr_prior_table_write(t, "/dev/null/t", NULL), TSR_E_IO);
}

TEST(bad_files)
{
    static const struct {
        const char *after, *old, *new, *message;
    } spoil[] = {
        {"", "tessera prior 2", "tessera prior 3", "tessera prior 2"},
        {"", "tessera prior 2", "tessera prior 1", "tessera train"},
        {"#: torsion", " general", " Gly", "torsion general"},
        {"#: torsion", " general ", " general -", "count"},
        {"#: torsion", " general ", " general 1.5 ", "follows"},
        {"#: torsion general", " 2\n", " 25\n", "25 parts"},
        {"#: torsion general", " 2\n", " 0\n", "no component"},
        {"#: torsion general", "\n 0 ", "\n 0 -", "below 0"},
        {"#: torsion general", "\n 0 ", "\n 0 1", "the sum of the weights is"},
        {"#: torsion general", "\n 0 ", "\n 1 ", "expected row 0"},
        {"#: torsion general", "\n 1 ", "\n 1 nan ", "finite"},
        {"#: torsion general", " 0 0 0 0 0\n", " 0 0 -1 0 0\n", "k outside"},
        {"#: torsion general", " 0 0 0 0 0\n", " 0 0 1 2 1.5\n", "lambda^2"},
        {"#: torsion general", " 0 0 0 0 0\n", " 0 0 0 0\n", "numbers"},
        {"#: side", "ALA 0 0", "ALA 0 1", "ALA"},
        {"#: side", "ARG", "ARP", "side ARG"},
        {"#: side ARG", "#: side ASN", "#", "side"},
        {"#: torsion general", "\n 1 ", "\n# ", "row 1 is missing"},
        {"#: angle\n", " 1 ", " 2 ", "expected row 1"},
        {"#: angle\n", " 1.9", " 3.9", "between 0 and 3.14"},
        {"#: angle", "contact two", "contact one", "contact two"},
        {"#: contact one\n", "ALA\n 0 ", "ALA\n 0 -", "above 0"},
        {"#: contact one\n", "ARG\n 1 ", "ARG\n 1 9", "symmetric"}};
    /* two components of general, so that lines are known */
    tsr_prior_table known = *f->trained;
    known.torsion[0].n = 2;
    known.torsion[0].part[0] = (tsr_von_mises){0.9, -1, 1, 10, 5, 2};
    known.torsion[0].part[1] = (tsr_von_mises){.weight = 0.1};
    OK(tsr_prior_table_write(&known, f->table, &err));
    char *text = text_of(f->table), place[128];
    tsr_prior_table *t = NULL;
    for (size_t i = 0; i < COUNT_OF(spoil); i++) {
        err = (tsr_err){0};
        int line = write_spoilt(f->table, text, spoil[i].after, spoil[i].old,
                                spoil[i].new);
        assert_int_not_equal(line, 0);
        assert_int_equal(tsr_prior_table_read(f->table, &t, &err), TSR_E_DATA);
        assert_null(t);
        if (strstr(err.message, spoil[i].message) == NULL)
            fail_msg("%zu: %s", i, err.message);
        snprintf(place, sizeof place, "%s:", f->table);
        assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
    }
    free(text);
    assert_int_equal(tsr_prior_table_read("/dev/null/t", &t, NULL),
                     TSR_E_NOINPUT);
}

static test_fixture around_all = {set_up, tear_down};
