/* Torsions and angles of a built chain are read from its file class by class;
 * strained, mirrored and terminal residues are left out. */
#include "tests/test.h"
#include "train/train.h"

#include <gsl/gsl_math.h>
#include <unistd.h>

#include "chain_pdb.h"

enum { N = 60 };

static void make_chain(chain_residue r[N])
{
    gsl_rng *rng = rng_new(9, 0);
    memset(r, 0, N * sizeof *r);
    for (int i = 0; i < N; i++) {
        r[i].amino = i % 5 == 4 ? TSR_PRO : (i * 7) % TSR_N_AMINO;
        r[i].phi = 2.0 * M_PI * gsl_rng_uniform(rng) - M_PI;
        r[i].psi = 2.0 * M_PI * gsl_rng_uniform(rng) - M_PI;
        r[i].angle = 1.85 + 0.2 * gsl_rng_uniform(rng);
        r[i].omega = i % 10 == 9 ? 0.1 : M_PI - 0.1;
        for (int d = 0; d < 3; d++)
            r[i].side[d] = -1.0 - gsl_rng_uniform(rng);
    }
    r[12].breaks = 1;
    r[20].is_mirrored = r[20].amino != TSR_GLY;
    r[31].omega = 2.4; /* twisted: 30 and 31 */
    r[41].angle = 2.3; /* too wide */
    r[50].amino = TSR_GLY;
    r[50].is_mirrored = 1; /* has no CB to tell */
}

static int is_left_out(int i)
{
    return i == 0 || i == N - 1 || i == 11 || i == 12 || i == 20 || i == 30 ||
           i == 31 || i == 41;
}

static tsr_rama_class class_of(const chain_residue r[N], int i)
{
    return tsr_rama_class_of((tsr_amino)r[i].amino, r[i + 1].amino == TSR_PRO,
                             r[i].omega);
}

static void visit_file(tsr_prior_sample *sample, const chain_residue *r)
{
    char path[] = "/tmp/tessera-sample-XXXXXX";
    tsr_structure *structure = NULL;
    int fd = mkstemp(path);
    assert_int_not_equal(fd, -1);
    FILE *file = fdopen(fd, "w");
    write_chain(file, N, r);
    fclose(file);
    OK(tsr_structure_read(path, &structure, &err));
    OK(tsr_prior_sample_visit(sample, structure, &err));
    tsr_structure_free(structure);
    remove(path);
}

/* Coordinates have three decimals: some 0.002 rad. */
static void check(const tsr_prior_sample *sample, const chain_residue r[N],
                  int copies)
{
    long at[TSR_N_RAMA] = {0}, angle_at[TSR_N_AMINO] = {0};
    long side_at[TSR_N_AMINO] = {0};
    for (int c = 0; c < copies; c++)
        for (int i = 0; i < N; i++) {
            int a = r[i].amino;
            if (tsr_amino_has_side_chain((tsr_amino)a)) {
                const tsr_sample *s = &sample->side[a];
                assert_true(side_at[a] < s->n);
                assert_int_equal(s->file[side_at[a]], c);
                for (int d = 0; d < 3; d++)
                    assert_near(s->x[3 * side_at[a] + d], r[i].side[d], 0.01);
                side_at[a]++;
            }
            if (is_left_out(i))
                continue;
            tsr_rama_class class = class_of(r, i);
            const tsr_sample *t = &sample->torsion[class];
            assert_true(at[class] < t->n);
            const double *x = t->x + 2 * at[class]++;
            assert_true(fabs(remainder(x[0] - r[i].phi, 2 * M_PI)) < 0.005);
            assert_true(fabs(remainder(x[1] - r[i].psi, 2 * M_PI)) < 0.005);
            const tsr_sample *g = &sample->angle[a];
            assert_true(angle_at[a] < g->n);
            assert_near(g->x[angle_at[a]++], r[i].angle, 0.002);
        }
    for (int c = 0; c < TSR_N_RAMA; c++)
        assert_int_equal(sample->torsion[c].n, at[c]);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        assert_int_equal(sample->angle[a].n, angle_at[a]);
        assert_int_equal(sample->side[a].n, side_at[a]);
    }
    assert_ints(sample->n_mirrored, copies, sample->n_strained, 3 * copies,
                sample->n_file, copies);
}

TEST(residues)
{
    chain_residue r[N];
    make_chain(r);
    assert_int_not_equal(r[20].amino, TSR_GLY);
    tsr_prior_sample one = {.n_file = 0}, all = {.n_file = 0};
    visit_file(&one, r);
    check(&one, r, 1);
    for (int k = 0; k < 3; k++)
        tsr_prior_sample_add(&all, &one);
    check(&all, r, 3);
    tsr_pool_clear(&one.pool);
    tsr_pool_clear(&all.pool);
}

TEST(classes)
{
    assert_ints(tsr_rama_class_of(TSR_ALA, 0, M_PI), TSR_RAMA_GENERAL,
                tsr_rama_class_of(TSR_ALA, 1, M_PI), TSR_RAMA_PRE_PRO,
                tsr_rama_class_of(TSR_VAL, 0, 0.0), TSR_RAMA_ILE_VAL,
                tsr_rama_class_of(TSR_ILE, 1, M_PI), TSR_RAMA_PRE_PRO,
                tsr_rama_class_of(TSR_GLY, 1, M_PI), TSR_RAMA_GLY,
                tsr_rama_class_of(TSR_PRO, 1, -3.0), TSR_RAMA_TRANS_PRO,
                tsr_rama_class_of(TSR_PRO, 0, (double)NAN), TSR_RAMA_TRANS_PRO,
                tsr_rama_class_of(TSR_PRO, 0, -0.3), TSR_RAMA_CIS_PRO,
                tsr_rama_class_of(TSR_PRO, 0, 6.2), TSR_RAMA_CIS_PRO);
}

/* Angles far from all others do not count. */
TEST(angles)
{
    double x[1003];
    tsr_sample sample = {.dim = 1, .n = 1003, .x = x};
    tsr_angle_gaussian g;
    for (int i = 0; i < 1000; i++)
        x[i] = 1.94 + 0.05 * sin(2.4 * i); /* sd 0.05 / sqrt(2) */
    x[1000] = 0.5, x[1001] = 2.6, x[1002] = 3.0;
    OK(tsr_angle_gaussian_of(&sample, &g, &err));
    assert_int_equal(g.count, 1000);
    assert_nears(1e-3, g.mean, 1.94, g.sd, 0.05 / sqrt(2.0));
}
