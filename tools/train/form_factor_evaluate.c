/* Errors of tables against all atoms. One target of a structure serves all
 * tables whose bodies and exposures are the same, so that a table's rows, which
 * differ in c1 and c2 or in S(q), cost no sums over pairs of their own. */
#include "train/form_factor_evaluate.h"

#include "train/form_factor_target.h"
#include "train/train.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

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
        size_t n = (size_t)n_structure;
        gsl_sort(value, 1, n);
        summary->band[b] = gsl_stats_median_from_sorted_data(value, 1, n);
        summary->high[b] =
            gsl_stats_quantile_from_sorted_data(value, 1, n, 0.95);
    }
    for (int k = 0; k < N_Q; k++) {
        for (int m = 0; m < n_structure; m++)
            value[m] = fabs(error[(size_t)m * stride + (size_t)k]);
        summary->curve[k] = gsl_stats_median(value, 1, (size_t)n_structure);
    }
    free(value);
    return TSR_OK;
}

/* The rows and their tables on the grid of the errors. */
typedef struct {
    int n;
    const tsr_evaluation *row; /* [n] */
    double *amplitude;         /* [n][TSR_N_COMP TABLE] */
    double *excess;            /* [n][TSR_N_COMP_PAIR TABLE] */
} prepared;

enum { TABLE = TSR_MAX_TYPE * N_Q };

static tsr_status prepare(prepared *p, int n, const tsr_evaluation *row,
                          tsr_err *err)
{
    size_t size = (size_t)n * TABLE * sizeof(double);
    *p = (prepared){.n = n,
                    .row = row,
                    .amplitude = malloc(TSR_N_COMP * size),
                    .excess = malloc(TSR_N_COMP_PAIR * size)};
    tsr_status s = p->amplitude == NULL || p->excess == NULL
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for tables")
                       : TSR_OK;
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_form_factor_at(
            row[i].table, N_Q, TSR_ERROR_DQ,
            p->amplitude + (size_t)(i * TSR_N_COMP) * TABLE,
            p->excess + (size_t)(i * TSR_N_COMP_PAIR) * TABLE, err);
    return s;
}

/* Errors [N_Q] of a row on a target of its table. */
static void one_row(const prepared *p, int i, const tsr_target_grid *grid,
                    const double *target, double *error)
{
    const tsr_evaluation *row = &p->row[i];
    const tsr_target_layout l = tsr_target_layout_of(grid);
    double partial[TSR_N_COMP_PAIR * N_Q], bodies[N_Q], atoms[N_Q];
    const double *excess = p->excess + (size_t)(i * TSR_N_COMP_PAIR) * TABLE;
    tsr_target_partials(grid, target,
                        p->amplitude + (size_t)(i * TSR_N_COMP) * TABLE,
                        row->with_self ? excess : NULL, partial);
    for (int k = 0; k < N_Q; k++) {
        double g =
            tsr_component_scale(row->c1, target[l.radius], k * TSR_ERROR_DQ);
        bodies[k] = tsr_target_intensity(grid, partial + k, N_Q, g, row->c2);
        atoms[k] =
            tsr_target_intensity(grid, target + l.atoms + k, N_Q, g, row->c2);
    }
    tsr_error_relative(bodies, atoms, error);
}

/* 1 where a target for one table is one for the other. */
static int same_target(const tsr_form_factor_table *a,
                       const tsr_form_factor_table *b)
{
    return a == b || (a->n_comp == 1 && b->n_comp == 1 && a->model == b->model);
}

/* part [n][N_Q]: errors of one structure. */
static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    const prepared *p = context;
    double *target = NULL;
    tsr_status s = TSR_OK;
    for (int i = 0; i < p->n && s == TSR_OK; i++) {
        const tsr_form_factor_table *table = p->row[i].table;
        const tsr_target_grid grid =
            tsr_target_grid_of(table, N_Q, TSR_ERROR_DQ);
        if (i == 0 || !same_target(table, p->row[i - 1].table)) {
            free(target);
            target =
                malloc(tsr_target_layout_of(&grid).length * sizeof *target);
            s = target == NULL ? tsr_fail(err, TSR_E_NOMEM,
                                          "no memory for '%s'", structure->path)
                               : tsr_target_fill(&grid, structure, target, err);
        }
        if (s == TSR_OK)
            one_row(p, i, &grid, target, (double *)part + (size_t)i * N_Q);
    }
    free(target);
    return s;
}

tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err)
{
    prepared p;
    const size_t row = (size_t)n * N_Q;
    tsr_target_parts all = {
        .length = row, .part = malloc((size_t)n_path * row * sizeof(double))};
    const tsr_structure_fold_type fold = {.part_size = row * sizeof(double),
                                          .visit = visit,
                                          .add = tsr_target_keep,
                                          .context = &p};
    tsr_status s = prepare(&p, n, evaluation, err);
    if (s == TSR_OK && all.part == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for errors");
    if (s == TSR_OK)
        s = tsr_structure_fold(&fold, n_path, path, n_thread, &all, log, err);
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_error_summarise(n_path, all.part + (size_t)i * N_Q, row,
                                &summary[i], err);
    free(all.part);
    free(p.amplitude);
    free(p.excess);
    return s;
}
