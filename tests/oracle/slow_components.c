/* The shipped tables on all structures that they were not trained on: form
 * factors and components within what is asked for, exposures against
 * solvent-accessible surfaces; and that the documented command remakes them. */
#include "core/vec3.h"
#include "molecule/structure.h"
#include "tests/objects.h"
#include "tests/test.h"
#include "train/train.h"
#include <unistd.h>

#define FOLDER "../shared/data/structures"
static const char *const folder[1] = {FOLDER};
static const char *const shipped[2] = {"data/components_one_body.dat",
                                       "data/components_two_body.dat"};
static const tsr_body_model models[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};

typedef struct {
    tsr_path_list list;
    int n_train, n_test;
    const char **train, **test;
} files;

FIXTURE(set_up)
{
    files *f = array(1, sizeof *f);
    *state = f;
    own(&f->list.pool, release_pool);
    if (tsr_path_list_collect(&f->list, 1, folder, NULL) != TSR_OK)
        return 0; /* the tests skip */
    f->train = array((size_t)f->list.n, sizeof(*f->train));
    f->test = array((size_t)f->list.n, sizeof(*f->test));
    tsr_path_list_split(&f->list, TSR_TRAIN_HOLD_OUT, &f->n_train, f->train,
                        &f->n_test, f->test);
    return 0;
}

static void needs(const files *f)
{
    if (f->n_test == 0) {
        print_message("skipped: no %s\n", FOLDER);
        skip();
    }
}

static tsr_form_factor_table *read_table(int m)
{
    NEW(tsr_form_factor_table, table, tsr_form_factor_read, shipped[m]);
    return table;
}

/* Bounds at c1 = 1 without hydration: what is asked for. Others: a quarter
 * above what was measured (docs/forward-model.md). */
TEST(held_out)
{
    const files *f = *state;
    needs(f);
    enum { N = 5 };
    static const double setting[N][2] = {
        {1.0, 0.0}, {0.97, 0.0}, {1.03, 0.0}, {1.0, 1.0}, {1.0, 2.0}};
    static const double bound[2][N][TSR_ERROR_N_BAND] = {
        {{0.0015, 0.015, 0.05, 0.10},
         {0.0010, 0.0085, 0.033, 0.073},
         {0.0027, 0.022, 0.067, 0.092},
         {0.0013, 0.0124, 0.043, 0.070},
         {0.0015, 0.0134, 0.046, 0.060}},
        {{0.001, 0.01, 0.02, 0.04},
         {0.0007, 0.0048, 0.0144, 0.0234},
         {0.0014, 0.0117, 0.0279, 0.032},
         {0.0008, 0.0063, 0.0187, 0.0293},
         {0.0009, 0.0089, 0.0186, 0.0325}}};
    /* of 95 % of the structures, two-body, c1 = 1, c2 = 1 */
    static const double most[TSR_ERROR_N_BAND] = {0.002, 0.025, 0.05, 0.06};
    for (int m = 0; m < 2; m++) {
        tsr_form_factor_table *table = read_table(m);
        tsr_evaluation row[N];
        tsr_error_summary summary[N];
        for (int i = 0; i < f->n_test; i++) {
            assert_true(
                tsr_structure_is_listed(table->source, "held out", f->test[i]));
            assert_false(tsr_structure_is_listed(table->source, "structures",
                                                 f->test[i]));
        }
        for (int r = 0; r < N; r++)
            row[r] = (tsr_evaluation){table, 1, setting[r][0], setting[r][1]};
        OK(tsr_form_factor_evaluate(f->n_test, f->test, N, row, 0, NULL,
                                    summary, &err));
        for (int r = 0; r < N; r++) {
            printf("%s c1 %.2f c2 %g:", shipped[m], row[r].c1, row[r].c2);
            for (int b = 0; b < TSR_ERROR_N_BAND; b++)
                printf(" %.2f %%", 100.0 * summary[r].band[b]);
            printf("\n");
            for (int b = 0; b < TSR_ERROR_N_BAND; b++)
                assert_true(summary[r].band[b] < bound[m][r][b]);
        }
        for (int b = 0; b < TSR_ERROR_N_BAND && m == 1; b++)
            assert_true(summary[3].high[b] < most[b]);
    }
}

/* ---- the split ---- */

enum { WORD = 12 };

typedef struct {
    int n;
    char (*word)[WORD + 1]; /* [n], sorted by the caller */
} words;

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds every run of 12 residues of a chain. */
static void add_words(const char *path, words *w)
{
    NEW(tsr_structure, s, tsr_structure_read, path);
    w->word = realloc(w->word, (size_t)(w->n + s->n_residue) * sizeof *w->word);
    for (int r = 0; r + WORD <= s->n_residue; r++) {
        int same = 1;
        char *to = w->word[w->n];
        for (int i = 0; i < WORD; i++) {
            int amino = tsr_amino_by_three(s->residue[r + i].name);
            to[i] = amino < 0 ? 'X' : tsr_amino_table[amino].one;
            same &= strcmp(s->residue[r].chain, s->residue[r + i].chain) == 0;
        }
        to[WORD] = '\0';
        w->n += same;
    }
}

/* Of no held-out structure is a twentieth among those trained on. */
TEST(held_out_are_others)
{
    const files *f = *state;
    needs(f);
    words trained = {0};
    for (int i = 0; i < f->n_train; i++)
        add_words(f->train[i], &trained);
    qsort(trained.word, (size_t)trained.n, sizeof *trained.word, by_text);
    assert_true(trained.n > 50000);
    for (int i = 0; i < f->n_test; i++) {
        words own = {0};
        int known = 0;
        add_words(f->test[i], &own);
        assert_true(own.n > 0);
        for (int k = 0; k < own.n; k++)
            known += bsearch(own.word[k], trained.word, (size_t)trained.n,
                             sizeof *trained.word, by_text) != NULL;
        assert_true(20 * known < own.n);
        free(own.word);
    }
    free(trained.word);
}

/* ---- exposures ---- */

/* Sums over bodies: of the exposure, its estimate, squares, their difference's
 * square; by type for the mean of each. */
typedef struct {
    double n[TSR_MAX_TYPE], mean[TSR_MAX_TYPE], square, misfit;
} spread;

/* Exposures of a structure's bodies from its atoms: type, xyz, e. */
static int bodies_of(const tsr_structure *s, tsr_body_model model,
                     const double *share, int *type, double (*xyz)[3],
                     double *exposed)
{
    int n = 0, atom = 0;
    for (int r = 0; r < s->n_residue; r++) {
        tsr_residue_atoms a;
        int own[2], index[TSR_MAX_RESIDUE_ATOM];
        if (tsr_residue_atoms_find(s, &s->residue[r], &a) != 0 ||
            a.n_missing > 0)
            continue;
        int n_body = tsr_body_types(model, a.amino, own);
        for (int b = 0; b < n_body; b++, n++) {
            int n_atom = tsr_body_atoms(model, a.amino, b, index);
            tsr_body_centre(model, &a, b, xyz[n]);
            type[n] = own[b];
            exposed[n] = 0.0;
            for (int i = 0; i < n_atom; i++)
                exposed[n] += share[atom + index[i]];
        }
        atom += tsr_amino_table[a.amino].n_atom;
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST(exposures)
{
    const files *f = *state;
    needs(f);
    /* Share of the variance within types, and median error of the total. */
    static const double least[2] = {0.80, 0.82}, most[2] = {0.08, 0.055};
    for (int m = 0; m < 2; m++) {
        tsr_form_factor_table *table = read_table(m);
        spread all = {0};
        double *total = array((size_t)f->n_test, sizeof *total);
        for (int i = 0; i < f->n_test; i++) {
            NEW(tsr_structure, s, tsr_structure_read, f->test[i]);
            size_t most_bodies = 2 * (size_t)s->n_residue;
            double *share = array((size_t)s->n_atom, sizeof *share);
            double(*xyz)[3] = array(most_bodies, sizeof *xyz);
            int *type = array(most_bodies, sizeof *type);
            double *e = array(2 * most_bodies, sizeof *e);
            double *guess = e + most_bodies, sum = 0.0, guessed = 0.0;
            OK(tsr_target_exposure(s, share, &err));
            int n = bodies_of(s, models[m], share, type, xyz, e);
            tsr_form_factor_exposures(table, n, type, (const double(*)[3])xyz,
                                      guess);
            for (int b = 0; b < n; b++) {
                sum += e[b];
                guessed += guess[b];
                all.n[type[b]] += 1.0;
                all.mean[type[b]] += e[b];
                all.square += e[b] * e[b];
                all.misfit += (e[b] - guess[b]) * (e[b] - guess[b]);
            }
            total[i] = fabs(guessed / sum - 1.0);
        }
        for (int t = 0; t < table->n_type; t++)
            all.square -= all.mean[t] * all.mean[t] / all.n[t];
        qsort(total, (size_t)f->n_test, sizeof *total, ascending);
        double explained = 1.0 - all.misfit / all.square;
        double median = total[f->n_test / 2];
        printf("%s: %.0f %% of the variance of exposures within types, their "
               "sum to %.1f %% (median)\n",
               shipped[m], 100.0 * explained, 100.0 * median);
        assert_true(explained > least[m]);
        assert_true(median < most[m]);
    }
}

/* ---- the command ---- */

/* Another compiler or mathematics library may change last digits. */
TEST(remade)
{
    const files *f = *state;
    needs(f);
    char path[64];
    snprintf(path, sizeof path, "/tmp/tessera-remade-%ld.dat", (long)getpid());
    for (int m = 0; m < 2; m++) {
        tsr_form_factor_table *own_table = read_table(m);
        const tsr_form_factor_training order = {
            models[m],
            TSR_N_COMP,
            TSR_TRAIN_HOLD_OUT,
            0,
            "tessera train components " FOLDER,
            path};
        OK(tsr_train_form_factors(1, folder, &order, NULL, &err));
        NEW(tsr_form_factor_table, made, tsr_form_factor_read, path);
        remove(path);
        assert_string_equal(made->source, own_table->source);
        size_t n = (size_t)own_table->n_type * (size_t)own_table->n_q;
        double worst = 0.0;
        for (size_t i = 0; i < TSR_N_COMP * n; i++)
            worst =
                fmax(worst, fabs(made->amplitude[i] - own_table->amplitude[i]));
        for (size_t i = 0; i < TSR_N_COMP_PAIR * n; i++)
            worst = fmax(worst, fabs(made->excess[i] - own_table->excess[i]));
        printf("%s remade: largest difference %g\n", shipped[m], worst);
        assert_true(worst < 1e-3);
    }
}

static test_fixture around_all = {set_up, NULL};
