#include "model/form_factor_evaluate.h"

#include "model/form_factor_target.h"
#include "model/structure_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_Q = TSR_ERROR_N_Q };

const double tsr_error_band[TSR_ERROR_N_BAND + 1] = {0.0, 0.1, 0.2, 0.35, 0.5};

static int band_of(int k)
{
    double q = k * TSR_ERROR_DQ + 1e-9;
    int b = 0;
    while (b < TSR_ERROR_N_BAND - 1 && q >= tsr_error_band[b + 1])
        b++;
    return b;
}

void tsr_error_relative(const double *model, const double *atoms, double *error)
{
    double one = 0.0, two = 0.0;
    for (int k = 0; k < N_Q && band_of(k) == 0; k++) {
        double ratio = model[k] / atoms[k];
        one += ratio;
        two += ratio * ratio;
    }
    for (int k = 0; k < N_Q; k++)
        error[k] = one / two * model[k] / atoms[k] - 1.0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, ascending);
    return n % 2 ? value[n / 2] : 0.5 * (value[n / 2 - 1] + value[n / 2]);
}

static double band_rms(const double *error, int band)
{
    double sum = 0.0;
    int n = 0;
    for (int k = 0; k < N_Q; k++)
        if (band_of(k) == band) {
            sum += error[k] * error[k];
            n++;
        }
    return sqrt(sum / n);
}

tsr_status tsr_error_summarise(int n_structure, const double *error,
                               size_t stride, tsr_error_summary *summary,
                               tsr_err *err)
{
    double *value = malloc((size_t)n_structure * sizeof *value);
    if (value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d errors",
                        n_structure);
    for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
        for (int m = 0; m < n_structure; m++)
            value[m] = band_rms(error + (size_t)m * stride, b);
        summary->band[b] = median_of(value, n_structure);
    }
    for (int k = 0; k < N_Q; k++) {
        for (int m = 0; m < n_structure; m++)
            value[m] = fabs(error[(size_t)m * stride + (size_t)k]);
        summary->curve[k] = median_of(value, n_structure);
    }
    free(value);
    return TSR_OK;
}

/* Tables on the grid of the errors. */
typedef struct {
    int n;
    tsr_body_model *model;    /* [n] */
    double *amplitude, *self; /* [n][TSR_MAX_TYPE][N_Q] */
} prepared;

enum { TABLE = TSR_MAX_TYPE * N_Q };

static tsr_target_grid grid_of(tsr_body_model model)
{
    return (tsr_target_grid){model, tsr_body_n_type(model), N_Q, TSR_ERROR_DQ};
}

static tsr_status prepare(prepared *p, int n, const tsr_evaluation *evaluation,
                          tsr_err *err)
{
    p->n = n;
    p->model = malloc((size_t)n * sizeof *p->model);
    p->amplitude = malloc((size_t)n * TABLE * sizeof *p->amplitude);
    p->self = malloc((size_t)n * TABLE * sizeof *p->self);
    if (p->model == NULL || p->amplitude == NULL || p->self == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d tables", n);
    for (int i = 0; i < n; i++) {
        const tsr_form_factor_table *table = evaluation[i].table;
        double *f = p->amplitude + (size_t)i * TABLE;
        double *self = p->self + (size_t)i * TABLE;
        tsr_status s =
            tsr_form_factor_at(table, N_Q, TSR_ERROR_DQ, f, self, err);
        if (s != TSR_OK)
            return s;
        p->model[i] = table->model;
        for (int j = 0; j < table->n_type * N_Q; j++)
            self[j] = f[j] * f[j] + (evaluation[i].with_self ? self[j] : 0.0);
    }
    return TSR_OK;
}

static void prepared_clear(prepared *p)
{
    free(p->model);
    free(p->amplitude);
    free(p->self);
}

/* part [n][N_Q]: errors of one structure. */
static tsr_status visit_model(const prepared *p, tsr_body_model model,
                              const tsr_structure *structure, double *part,
                              tsr_err *err)
{
    const tsr_target_grid grid = grid_of(model);
    int wanted = 0;
    for (int i = 0; i < p->n; i++)
        wanted |= p->model[i] == model;
    if (!wanted)
        return TSR_OK;
    double *target = malloc(tsr_target_length(&grid) * sizeof *target);
    if (target == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'",
                        structure->path);
    tsr_status s = tsr_target_fill(&grid, structure, target, err);
    for (int i = 0; i < p->n && s == TSR_OK; i++) {
        double profile[N_Q];
        if (p->model[i] != model)
            continue;
        tsr_target_profile(&grid, target, p->amplitude + (size_t)i * TABLE,
                           p->self + (size_t)i * TABLE, profile);
        tsr_error_relative(profile, tsr_target_atoms(&grid, target),
                           part + (size_t)i * N_Q);
    }
    free(target);
    return s;
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    tsr_status s = visit_model(context, TSR_BODIES_ONE, structure, part, err);
    if (s == TSR_OK)
        s = visit_model(context, TSR_BODIES_TWO, structure, part, err);
    return s;
}

typedef struct {
    int n; /* structures so far */
    size_t row;
    double *error; /* [n_path][n tables][N_Q] */
} collection;

static void keep(const void *context, void *total, const void *part)
{
    collection *all = total;
    (void)context;
    memcpy(all->error + (size_t)all->n++ * all->row, part,
           all->row * sizeof(double));
}

tsr_status tsr_error_fold(int n_path, const char *const *path, int n,
                          tsr_structure_visit *one, const void *context,
                          int n_thread, tsr_log *log,
                          tsr_error_summary *summary, tsr_err *err)
{
    const size_t row = (size_t)n * N_Q;
    collection all = {.row = row,
                      .error = malloc((size_t)n_path * row * sizeof(double))};
    const tsr_structure_fold_type fold = {.part_size = row * sizeof(double),
                                          .visit = one,
                                          .add = keep,
                                          .context = context};
    if (all.error == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for errors");
    tsr_status s =
        tsr_structure_fold(&fold, n_path, path, n_thread, &all, log, err);
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_error_summarise(n_path, all.error + (size_t)i * N_Q, row,
                                &summary[i], err);
    free(all.error);
    return s;
}

tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err)
{
    prepared p = {0};
    tsr_status s = prepare(&p, n, evaluation, err);
    if (s == TSR_OK)
        s = tsr_error_fold(n_path, path, n, visit, &p, n_thread, log, summary,
                           err);
    prepared_clear(&p);
    return s;
}
