#include "model/component_evaluate.h"

#include "model/component_target.h"
#include "model/structure_fold.h"

#include <stdlib.h>
#include <string.h>

enum { N_Q = TSR_ERROR_N_Q, TABLE = TSR_MAX_TYPE * N_Q };

typedef struct {
    int n;
    const tsr_component_evaluation *row; /* [n] */
    double *amplitude;                   /* [n][TSR_N_COMP TABLE] */
    double *excess;                      /* [n][TSR_N_COMP_PAIR TABLE] */
} prepared;

static tsr_status prepare(prepared *p, int n,
                          const tsr_component_evaluation *row, tsr_err *err)
{
    size_t size = (size_t)n * TABLE * sizeof(double);
    p->n = n;
    p->row = row;
    p->amplitude = malloc(TSR_N_COMP * size);
    p->excess = malloc(TSR_N_COMP_PAIR * size);
    tsr_status s = p->amplitude == NULL || p->excess == NULL
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for tables")
                       : TSR_OK;
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_component_at(row[i].table, N_Q, TSR_ERROR_DQ,
                             p->amplitude + (size_t)(i * TSR_N_COMP) * TABLE,
                             p->excess + (size_t)(i * TSR_N_COMP_PAIR) * TABLE,
                             err);
    return s;
}

/* Errors [N_Q] of a row on a target of its table. */
static void one_row(const prepared *p, int i, const tsr_component_grid *grid,
                    const double *target, double *error)
{
    const tsr_component_layout l = tsr_component_layout_of(grid);
    double partial[TSR_N_COMP_PAIR * N_Q], bodies[N_Q], atoms[N_Q];
    tsr_component_target_partials(
        grid, target, p->amplitude + (size_t)(i * TSR_N_COMP) * TABLE,
        p->excess + (size_t)(i * TSR_N_COMP_PAIR) * TABLE, partial);
    for (int k = 0; k < N_Q; k++) {
        double g = tsr_component_scale(p->row[i].c1, target[l.radius],
                                       k * TSR_ERROR_DQ);
        double c2 = p->row[i].c2;
        bodies[k] = tsr_component_intensity(partial + k, N_Q, g, c2);
        atoms[k] = tsr_component_intensity(target + l.atoms + k, N_Q, g, c2);
    }
    tsr_error_relative(bodies, atoms, error);
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    const prepared *p = context;
    double *target = NULL;
    tsr_status s = TSR_OK;
    for (int i = 0; i < p->n && s == TSR_OK; i++) {
        const tsr_component_table *table = p->row[i].table;
        const tsr_component_grid grid = {table->model, table->n_type, N_Q,
                                         TSR_ERROR_DQ, &table->exposure};
        if (i == 0 || table != p->row[i - 1].table) {
            free(target);
            target =
                malloc(tsr_component_layout_of(&grid).length * sizeof *target);
            s = target == NULL
                    ? tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'",
                               structure->path)
                    : tsr_component_target_fill(&grid, structure, target, err);
        }
        if (s == TSR_OK)
            one_row(p, i, &grid, target, (double *)part + (size_t)i * N_Q);
    }
    free(target);
    return s;
}

tsr_status tsr_component_evaluate(int n_path, const char *const *path, int n,
                                  const tsr_component_evaluation *evaluation,
                                  int n_thread, tsr_log *log,
                                  tsr_error_summary *summary, tsr_err *err)
{
    prepared p = {0};
    tsr_status s = prepare(&p, n, evaluation, err);
    if (s == TSR_OK)
        s = tsr_error_fold(n_path, path, n, visit, &p, n_thread, log, summary,
                           err);
    free(p.amplitude);
    free(p.excess);
    return s;
}
