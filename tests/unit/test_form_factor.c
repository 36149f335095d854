/* Trained form factors equal the sums over the atoms of their bodies, are
 * independent of the number of threads, and are read back to the bit. */
#include "core/vec3.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "table_text.h"
#include "tests/test.h"
#include "train/train.h"

#include <unistd.h>

OWNED(tsr_structure)
OWNED_AS(tsr_form_factor, tsr_form_factor_table)

static struct {
    char folder[64], pdb[2][96], table[96];
} files, *const f = &files;

/* Every residue once, each atom somewhere within a few Angstrom; `missing` is
 * left out of every residue that has it (NULL: none), `skip_amino` is not
 * written. */
static void write_pdb(const char *path, unsigned seed, const char *missing,
                      int skip_amino)
{
    FILE *file = fopen(path, "w");
    int serial = 1;
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const tsr_amino_info *info = &tsr_amino_table[a];
        for (int i = 0; i < info->n_atom && a != skip_amino; i++) {
            double x[3];
            for (int d = 0; d < 3; d++) {
                seed = seed * 1664525u + 1013904223u;
                x[d] = (seed >> 16) % 4000 * 0.001 + (d == 0 ? 6.0 * a : 0.0);
            }
            if (missing != NULL && strcmp(info->atom[i].name, missing) == 0)
                continue;
            fprintf(file,
                    "ATOM  %5d  %-3s %3s A%4d    %8.3f%8.3f%8.3f  1.00 10.00"
                    "           %c\n",
                    serial++, info->atom[i].name, info->three, a + 1, x[0],
                    x[1], x[2], info->atom[i].name[0]);
        }
    }
    fprintf(file, "TER\nEND\n");
    fclose(file);
}

FIXTURE(set_up)
{
    snprintf(f->folder, sizeof f->folder, "/tmp/tessera-ff-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->pdb[0], sizeof f->pdb[0], "%s/a.pdb", f->folder);
    snprintf(f->pdb[1], sizeof f->pdb[1], "%s/b.pdb", f->folder);
    snprintf(f->table, sizeof f->table, "%s/t.dat", f->folder);
    write_pdb(f->pdb[0], 1, NULL, -1);
    write_pdb(f->pdb[1], 2, NULL, -1);
    return 0;
}

FIXTURE(tear_down)
{
    remove(f->pdb[0]);
    remove(f->pdb[1]);
    remove(f->table);
    return rmdir(f->folder); /* nothing beside what was asked for */
}

static tsr_form_factor_table *train(int n, tsr_body_model model)
{
    const char *path[2] = {f->pdb[0], f->pdb[1]};
    tsr_form_factor_table *table = tsr_form_factor_new(model, 1, 101, 0.01);
    OK(tsr_form_factor_train(table, n, path, 2, NULL, &err));
    return own_tsr_form_factor(table);
}

/* The mean self-intensity P of a table of one component. */
static double self_of(const tsr_form_factor_table *t, int i)
{
    return t->excess[i] + t->amplitude[i] * t->amplitude[i];
}

/* Electrons less water, from the numbers of atoms. The tables' sum of f(0) is
 * within 0.12 % of Z. */
TEST(contrast_at_zero)
{
    static const double volume[17] = {
        [1] = 5.15, [6] = 16.44, [7] = 2.49, [8] = 9.13, [16] = 19.86};
    static const int z[4] = {6, 7, 8, 16};
    for (int i = 0; i < 4; i++)
        for (int h = 0; h < 4; h++) {
            double expect = z[i] + h - 0.334 * (volume[z[i]] + h * 5.15);
            assert_near(tsr_atom_contrast_amplitude(z[i], h, 0.0), expect,
                        0.0015 * (z[i] + h));
        }
    assert_true(isnan(tsr_atom_contrast_amplitude(34, 0, 0.1)));
    /* The solvent's Gaussian: oxygen at q = 0.5. */
    double g =
        0.334 * 9.13 * exp(-0.25 * pow(9.13, 2.0 / 3.0) / (4.0 * acos(-1.0)));
    assert_near(tsr_atom_contrast_amplitude(8, 0, 0.5),
                tsr_atom_form_factor(8, 0.5) - g, 1e-12);
}

/* At q = 0 the amplitude is the sum over the body's atoms, in any place. */
TEST(amplitude_at_zero)
{
    static const tsr_body_model model[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};
    for (int m = 0; m < 2; m++) {
        tsr_form_factor_table *t = train(2, model[m]);
        double sum[TSR_MAX_TYPE] = {0}, n[TSR_MAX_TYPE] = {0};
        for (int a = 0; a < TSR_N_AMINO; a++) {
            int type[2];
            int n_body = tsr_body_types(model[m], (tsr_amino)a, type);
            for (int b = 0; b < n_body; b++)
                n[type[b]] += 1.0;
            for (int i = 0; i < tsr_amino_table[a].n_atom; i++) {
                const tsr_amino_atom *atom = &tsr_amino_table[a].atom[i];
                int b = tsr_body_of_atom(model[m], (tsr_amino)a, atom->name);
                sum[type[b]] +=
                    tsr_atom_contrast_amplitude(atom->z, atom->n_hydrogen, 0.0);
            }
        }
        for (int i = 0; i < t->n_type; i++) {
            assert_int_equal(t->count[i], 2 * (long)n[i]);
            assert_near(t->amplitude[i * 101], sum[i] / n[i], 1e-11);
            for (int k = 0; k < 101; k++) /* Cauchy-Schwarz */
                assert_true(self_of(t, i * 101 + k) + 1e-9 >=
                            pow(t->amplitude[i * 101 + k], 2));
        }
    }
}

/* A body of one atom is that atom; of two, the closed form. */
TEST(small_bodies)
{
    tsr_form_factor_table *t = train(1, TSR_BODIES_TWO);
    FREED(tsr_structure) s;
    OK(tsr_structure_read(f->pdb[0], &s, &err));
    const tsr_atom *cg = tsr_residue_atom(s, &s->residue[TSR_PRO], "CG");
    const tsr_atom *cd = tsr_residue_atom(s, &s->residue[TSR_PRO], "CD");
    double r2 = 0.0;
    for (int d = 0; d < 3; d++)
        r2 += pow(cg->xyz[d] - cd->xyz[d], 2);
    double r = sqrt(r2);
    for (int k = 0; k < 101; k++) {
        double q = 0.01 * k;
        double oh = tsr_atom_contrast_amplitude(8, 1, q);
        double ch2 = tsr_atom_contrast_amplitude(6, 2, q);
        const double *ser = t->amplitude + (1 + TSR_SER) * 101;
        const double *pro = t->amplitude + (1 + TSR_PRO) * 101;
        double half = k > 0 ? sin(0.5 * q * r) / (0.5 * q * r) : 1.0;
        double full = k > 0 ? sin(q * r) / (q * r) : 1.0;
        assert_near(ser[k], oh, 1e-12);
        assert_near(self_of(t, (1 + TSR_SER) * 101 + k), oh * oh, 1e-11);
        assert_near(pro[k], 2.0 * ch2 * half, 1e-11);
        assert_near(self_of(t, (1 + TSR_PRO) * 101 + k),
                    2.0 * ch2 * ch2 * (1.0 + full), 1e-11);
    }
    assert_true(t->rg2[1 + TSR_SER] == 0.0);
    assert_near(t->rg2[1 + TSR_PRO], 0.25 * r2, 1e-12);
}

TEST(threads_change_nothing)
{
    enum { N = 70 }; /* more than two blocks */
    const char *path[N];
    for (int i = 0; i < N; i++)
        path[i] = f->pdb[(i * i) % 3 == 1];
    tsr_form_factor_table *t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = own_tsr_form_factor(
            tsr_form_factor_new(TSR_BODIES_TWO, 1, 11, 0.1));
        OK(tsr_form_factor_train(t[i], N, path, i == 0 ? 1 : 7, NULL, &err));
    }
    size_t size = TSR_MAX_TYPE * 11 * sizeof(double);
    assert_memory_equal(t[0]->amplitude, t[1]->amplitude, size);
    assert_memory_equal(t[0]->excess, t[1]->excess, size);
    assert_int_equal(t[0]->count[0], 18 * N);
    assert_string_equal(t[0]->source, t[1]->source);
}

TEST(incomplete_residues)
{
    tsr_form_factor_table *t =
        own_tsr_form_factor(tsr_form_factor_new(TSR_BODIES_ONE, 1, 11, 0.1));
    const char *path[2] = {f->pdb[0], f->table};
    write_pdb(f->table, 3, "CG", -1); /* 13 have a CG */
    OK(tsr_form_factor_train(t, 2, path, 1, NULL, &err));
    assert_ints(t->count[TSR_ALA], 2, t->count[TSR_ILE], 2, t->count[TSR_ARG],
                1, t->count[TSR_TRP], 1);
    assert_has(t->source, "13 left out");

    write_pdb(f->table, 3, NULL, TSR_TRP);
    t = own_tsr_form_factor(tsr_form_factor_new(TSR_BODIES_TWO, 1, 11, 0.1));
    FAILS(tsr_form_factor_train(t, 1, path + 1, 1, NULL, &err), TSR_E_DATA,
          "TRP side chain");

    path[1] = "/nonexistent/x.pdb";
    FAILS(tsr_form_factor_train(t, 2, path, 2, NULL, &err), TSR_E_NOINPUT,
          path[1]);
}

/* Pair sums through bins against every pair with its own sine. */
TEST(targets)
{
    FREED(tsr_structure) s;
    OK(tsr_structure_read(f->pdb[0], &s, &err));
    const tsr_target_grid grid = {TSR_BODIES_TWO, 1,   TSR_MAX_TYPE, 101,
                                  0.01,           NULL};
    const tsr_target_layout l = tsr_target_layout_of(&grid);
    double *target = array(l.length * sizeof *target, 1);
    OK(tsr_target_compute(&grid, s, target, &err));
    for (int k = 0; k < 101; k += 4) {
        double q = 0.01 * k, expect = 0.0, scale = 0.0;
        for (int r = 0; r < TSR_N_AMINO; r++)
            for (int u = 0; u < TSR_N_AMINO; u++) {
                const tsr_amino_info *ri = &tsr_amino_table[r];
                const tsr_amino_info *ui = &tsr_amino_table[u];
                for (int i = 0; i < ri->n_atom; i++)
                    for (int j = 0; j < ui->n_atom; j++) {
                        const tsr_amino_atom *ai = &ri->atom[i];
                        const tsr_amino_atom *aj = &ui->atom[j];
                        double x =
                            q *
                            tsr_vec3_distance(
                                tsr_residue_atom(s, &s->residue[r], ai->name)
                                    ->xyz,
                                tsr_residue_atom(s, &s->residue[u], aj->name)
                                    ->xyz);
                        double term = tsr_atom_contrast_amplitude(
                                          ai->z, ai->n_hydrogen, q) *
                                      tsr_atom_contrast_amplitude(
                                          aj->z, aj->n_hydrogen, q);
                        expect += term * (x > 0.0 ? sin(x) / x : 1.0);
                        scale += fabs(term) * (x > 1.0 ? 1.0 / x : 1.0);
                    }
            }
        double got = target[l.atoms + (size_t)k];
        /* the bins' (0.05 q)^2 / 24 of what is summed */
        assert_near(got, expect, 1.1e-4 * scale);
    }
    /* One pair of bodies: serine's hydroxyl and cysteine's thiol. */
    double r =
        tsr_vec3_distance(tsr_residue_atom(s, &s->residue[TSR_SER], "OG")->xyz,
                          tsr_residue_atom(s, &s->residue[TSR_CYS], "SG")->xyz);
    const double *pair =
        target + l.sum[0] + tsr_target_pair_at(&grid, 1 + TSR_SER, 1 + TSR_CYS);
    assert_true(pair ==
                target + l.sum[0] +
                    tsr_target_pair_at(&grid, 1 + TSR_CYS, 1 + TSR_SER));
    for (int k = 1; k < 101; k++)
        assert_near(pair[k], sin(0.01 * k * r) / (0.01 * k * r), 1e-4);
    assert_near(pair[0], 1.0, 1e-12);
    assert_true(target[l.moment[0] + (size_t)0] == 18.0);
}

/* Sum over the structures of the squared relative errors. */
static double misfit(const tsr_form_factor_table *t)
{
    double sum = 0.0;
    const tsr_target_grid grid = tsr_target_grid_of(t, t->n_q, t->dq_inv_ang);
    const tsr_target_layout l = tsr_target_layout_of(&grid);
    double *target = array(l.length * sizeof *target, 1);
    for (int m = 0; m < 2; m++) {
        tsr_structure *s;
        OK(tsr_structure_read(f->pdb[m], &s, &err));
        OK(tsr_target_compute(&grid, s, target, &err));
        tsr_structure_free(s);
        for (int k = 0; k < t->n_q; k++) {
            double i = 0.0;
            for (int a = 0; a < t->n_type; a++) {
                i += target[l.moment[0] + (size_t)a] *
                     self_of(t, a * t->n_q + k);
                for (int b = 0; b <= a; b++)
                    i += 2.0 * t->amplitude[a * t->n_q + k] *
                         t->amplitude[b * t->n_q + k] *
                         target[l.sum[0] + tsr_target_pair_at(&grid, a, b) +
                                (size_t)k];
            }
            sum += pow(i / target[l.atoms + (size_t)k] - 1.0, 2);
        }
    }
    return sum;
}

TEST(refinement)
{
    const char *path[2] = {f->pdb[0], f->pdb[1]};
    tsr_form_factor_table *start = train(2, TSR_BODIES_TWO);
    tsr_form_factor_table *t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = train(2, TSR_BODIES_TWO);
        OK(tsr_form_factor_refine(t[i], 2, path, 1 + 2 * i, NULL, &err));
    }
    size_t size = TSR_MAX_TYPE * 101 * sizeof(double);
    assert_memory_equal(t[0]->amplitude, t[1]->amplitude, size);
    assert_memory_equal(t[0]->excess, t[1]->excess, size);
    double before = misfit(start), after = misfit(t[0]);
    /* The ridge holds it back: on two structures it does not fit noise. */
    assert_all(0.6 * before > after, after > 1e-6 * before);
    for (int i = 0; i < TSR_MAX_TYPE; i++) {
        double f0 = start->amplitude[i * 101]; /* q = 0 stays */
        assert_true(t[0]->amplitude[i * 101] == f0);
        assert_near(self_of(t[0], i * 101), self_of(start, i * 101), 1e-9);
    }
    assert_int_equal(strncmp(t[0]->source, "refined", 7), 0);
    const char *missing[1] = {"/nonexistent/x.pdb"};
    assert_int_equal(tsr_form_factor_refine(t[0], 1, missing, 1, NULL, NULL),
                     TSR_E_NOINPUT);
}

TEST(round_trip)
{
    tsr_form_factor_table *t = train(2, TSR_BODIES_TWO), *u = NULL;
    assert_has(t->source, "structures: 2\n  a b");
    OK(tsr_form_factor_write(t, f->table, &err));
    OK(tsr_form_factor_read(f->table, &u, &err));
    assert_ints(u->model, t->model, u->n_type, 21, u->n_q, 101);
    assert_true(u->dq_inv_ang == t->dq_inv_ang);
    assert_string_equal(u->source, t->source);
    for (int i = 0; i < 21 * 101; i++) { /* nine digits */
        double a = t->amplitude[i], p = self_of(t, i);
        assert_near(u->amplitude[i], a, 5e-9 * fabs(a));
        assert_near(self_of(u, i), p, 5e-9 * fabs(p));
    }
    for (int i = 0; i < 21; i++) {
        assert_int_equal(u->count[i], t->count[i]);
        assert_near(u->rg2[i], t->rg2[i], 5e-9 * t->rg2[i]);
    }
    tsr_form_factor_free(u);
    assert_int_equal(tsr_form_factor_write(t, "/dev/null/t.dat", &err),
                     TSR_E_IO);
}

TEST(bad_files)
{
    static const struct {
        const char *after, *old, *new, *message;
    } spoil[] = {
        {"", "form factors 1", "form factors 9", "tessera form factors 1"},
        {"", "bodies two", "bodies ten", "'ten'"},
        {"", "bodies two", "bodies one", "type 0"},
        {"", "grid 101", "grid 1.5", "grid"},
        {"", "grid 101", "grid 2e9", "grid"},
        {"", "#: type  3", "#: type  4", "type 3"},
        {"", "ASN side chain", "ASN", "type 3"},
        {"#: type", "\n#: type 20", "\n# type 20", "type"},
        {"# TYR side chain\n", "0.01", "0.02", "q = 0.01"},
        {"# TYR side chain\n", "0.01 ", "0.01 nan ", "finite"},
        {"# TYR side chain\n", "0.01 ", "0.01 x", "numbers"},
        {"# TYR side chain\n", "0.01 ", "0.01 1 2 3 #", "follows"},
        {"# TYR side chain\n", "19     0.05", "# 19    0.05", "q = 0.05"},
        {"# TYR side chain\n", "0.01 ", "0.01 4 -4 #", "follows"},
        {"# TYR side chain\n", "0.5 ", "0.5 1 -1\n#", "negative"}};
    tsr_form_factor_table *t = train(1, TSR_BODIES_TWO);
    OK(tsr_form_factor_write(t, f->table, &err));
    char *text = text_of(f->table), place[128];
    for (size_t i = 0; i < COUNT_OF(spoil); i++) {
        err = (tsr_err){0};
        int line = write_spoilt(f->table, text, spoil[i].after, spoil[i].old,
                                spoil[i].new);
        assert_int_not_equal(line, 0);
        FAILS(tsr_form_factor_read(f->table, &t, &err), TSR_E_DATA,
              spoil[i].message);
        assert_null(t);
        snprintf(place, sizeof place, "%s:%d: ", f->table, line);
        /* A line turned into a comment is missed on the next. */
        if (strncmp(spoil[i].new, "# 19", 4) != 0 && spoil[i].old[0] != '\n' &&
            strncmp(spoil[i].new, "bodies one", 10) != 0)
            assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
    }
    /* Cut short, empty, and absent. */
    char *cut = strstr(text, "# VAL side chain\n20");
    assert_non_null(cut);
    *cut = '\0';
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(f->table, "w");
        fputs(i == 0 ? text : "", file);
        fclose(file);
        assert_int_equal(tsr_form_factor_read(f->table, &t, NULL), TSR_E_DATA);
    }
    assert_int_equal(tsr_form_factor_read(f->folder, &t, NULL), TSR_E_NOINPUT);
    assert_int_equal(tsr_form_factor_read("/nonexistent", &t, NULL),
                     TSR_E_NOINPUT);
    free(text);
}

/* F = 8 exp(-2 q^2) and P - F^2 = 5 q^4, interpolated to a finer grid. */
TEST(at_grid)
{
    tsr_form_factor_table *t =
        own_tsr_form_factor(tsr_form_factor_new(TSR_BODIES_ONE, 1, 101, 0.01));
    for (int i = 0; i < t->n_type * 101; i++) {
        double q = 0.01 * (i % 101);
        t->amplitude[i] = (1 + i / 101) * exp(-2.0 * q * q);
        t->excess[i] = 5.0 * pow(q, 4);
    }
    enum { N = 334 };
    double *a = array(20 * N, sizeof *a), *e = array(20 * N, sizeof *e);
    double dq = 1.0 / (N - 1);
    OK(tsr_form_factor_resample(t, N, dq, a, e, &err));
    for (int i = 0; i < 20 * N; i++) {
        double q = dq * (i % N), want = (1 + i / N) * exp(-2.0 * q * q);
        /* h^4 / 384 F''''; at the last few knots F'' h^2 of the natural end */
        double bound = q < 0.9 ? 2e-8 : 2e-5;
        assert_near(a[i], want, bound * (1 + i / N));
        assert_near(e[i], 5.0 * pow(q, 4), (q < 0.9 ? 2e-7 : 1e-3));
    }
    /* On the knots, the table itself. */
    OK(tsr_form_factor_resample(t, 51, 0.02, a, NULL, &err));
    for (int i = 0; i < 20 * 51; i++)
        assert_near(a[i], t->amplitude[i / 51 * 101 + 2 * (i % 51)], 1e-12);
    OK(tsr_form_factor_resample(t, 51, 0.02, NULL, e, &err));

    FAILS(tsr_form_factor_resample(t, 52, 0.02, a, e, &err), TSR_E_RANGE,
          "1.02");
    assert_int_equal(tsr_form_factor_resample(t, 0, 0.02, a, e, NULL),
                     TSR_E_RANGE);
    assert_int_equal(tsr_form_factor_resample(t, 9, (double)NAN, a, e, NULL),
                     TSR_E_RANGE);
    tsr_form_factor_free(NULL);
}

static test_fixture around_all = {set_up, tear_down};
