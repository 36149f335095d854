/* Displaced solvent and hydration refined against all atoms: Gauss-Newton on
 * the relative errors of I(q; c1, c2), as form_factor_refine.c does it for one
 * component. With x = 1 - G and the contrast c = solute - displaced,
 *
 *     I = I_cc + 2 x I_cd + x^2 I_dd + 2 c2 (I_ch + x I_dh) + c2^2 I_hh. */
#include "model/component_train.h"

#include "model/component_target.h"
#include "model/smooth_fit.h"
#include "model/structure_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ridge = 0.004; /* a structure, setting and grid point */
enum { MAX_ITERATION = 12 };
static const double converged = 1e-6;

/* Every other point of the tables' grid is enough for knots 0.1 apart. */
enum { STRIDE = 2 };

/* c1, c2 within what fits to data allow. */
enum { N_SETTING = 6 };
static const double setting[N_SETTING][2] = {
    {0.95, 0.0}, {1.05, 0.0}, {1.0, 1.0}, {1.0, 3.0}, {0.97, 2.0}, {1.03, 1.0}};

/* What changes, for each type: amplitudes of the displaced solvent and of
 * hydration, excesses of both with the contrast. */
enum { DISPLACED, HYDRATION, EXCESS_CD, EXCESS_CH, N_BLOCK };

typedef struct {
    tsr_component_grid grid;
    tsr_component_layout layout;
    int n_structure, n_filled;
    double *target;    /* [n_structure][length] */
    double *start;     /* [TSR_N_COMP + TSR_N_COMP_PAIR][n_type][table n_q] */
    double *unit;      /* [n_type][table n_q] e^2: P of the contrast */
    double *amplitude; /* [TSR_N_COMP][n_type][n_q], on the grid */
    double *excess;    /* [TSR_N_COMP_PAIR][n_type][n_q] */
    double *jacobian;  /* [n_structure][N_SETTING][N_BLOCK n_type], at a q */
    double *residual;  /* [n_structure][N_SETTING] */
    tsr_smooth_fit *fit;
} refinement;

static size_t values(const tsr_component_table *table)
{
    return (size_t)table->n_type * (size_t)table->n_q;
}

static tsr_status refinement_new(refinement *r,
                                 const tsr_component_table *table, int n_path,
                                 tsr_err *err)
{
    int n_q = (table->n_q - 1) / STRIDE + 1;
    size_t n = (size_t)n_path, n_value = values(table);
    size_t on_grid = (size_t)table->n_type * (size_t)n_q;
    size_t n_row = n * N_SETTING;
    *r = (refinement){.grid = {table->model, table->n_type, n_q,
                               STRIDE * table->dq_inv_ang, &table->exposure},
                      .n_structure = n_path};
    r->layout = tsr_component_layout_of(&r->grid);
    r->target = malloc(n * r->layout.length * sizeof(double));
    r->start =
        malloc((TSR_N_COMP + TSR_N_COMP_PAIR) * n_value * sizeof(double));
    r->unit = malloc(n_value * sizeof(double));
    r->amplitude = malloc(TSR_N_COMP * on_grid * sizeof(double));
    r->excess = malloc(TSR_N_COMP_PAIR * on_grid * sizeof(double));
    r->jacobian =
        malloc(n_row * N_BLOCK * (size_t)table->n_type * sizeof(double));
    r->residual = malloc(n_row * sizeof(double));
    r->fit =
        tsr_smooth_fit_new(N_BLOCK * table->n_type, n_q, r->grid.dq_inv_ang);
    if (r->target == NULL || r->start == NULL || r->unit == NULL ||
        r->amplitude == NULL || r->excess == NULL || r->jacobian == NULL ||
        r->residual == NULL || r->fit == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "no memory to refine on %d structures (%.1f MB each); "
                        "give fewer of them",
                        n_path, 8e-6 * (double)r->layout.length);
    memcpy(r->start, table->amplitude, TSR_N_COMP * n_value * sizeof(double));
    memcpy(r->start + TSR_N_COMP * n_value, table->excess,
           TSR_N_COMP_PAIR * n_value * sizeof(double));
    for (size_t i = 0; i < n_value; i++) {
        double c = table->amplitude[i] - table->amplitude[n_value + i];
        const double *e = table->excess + i;
        r->unit[i] = c * c + e[0] - 2.0 * e[n_value] + e[3 * n_value];
    }
    return TSR_OK;
}

static void refinement_clear(refinement *r)
{
    free(r->target);
    free(r->start);
    free(r->unit);
    free(r->amplitude);
    free(r->excess);
    free(r->jacobian);
    free(r->residual);
    tsr_smooth_fit_free(r->fit);
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    return tsr_component_target_fill(context, structure, part, err);
}

static void keep(const void *context, void *total, const void *part)
{
    (void)context;
    refinement *r = total;
    memcpy(r->target + (size_t)r->n_filled++ * r->layout.length, part,
           r->layout.length * sizeof(double));
}

/* Changes come in units that make them alike for all types: the displaced
 * solvent's amplitude of its own, hydration's of its own, excesses of the root
 * of P of the contrast with either. */
static void units(const refinement *r, const tsr_component_table *table,
                  size_t at, double unit[N_BLOCK])
{
    size_t n = values(table);
    double d = fabs(r->start[n + at]), h = fabs(r->start[2 * n + at]);
    double c = sqrt(fmax(r->unit[at], 0.0));
    unit[DISPLACED] = d;
    unit[HYDRATION] = h;
    unit[EXCESS_CD] = c * d;
    unit[EXCESS_CH] = c * h;
}

/* The table at the present changes; the contrast and its excess stay. */
static void fill_table(const refinement *r, tsr_component_table *table)
{
    size_t n = values(table);
    const double *e0 = r->start + TSR_N_COMP * n;
    for (int t = 0; t < table->n_type; t++)
        for (int k = 0; k < table->n_q; k++) {
            size_t at = (size_t)t * (size_t)table->n_q + (size_t)k;
            double unit[N_BLOCK], by[N_BLOCK];
            units(r, table, at, unit);
            for (int b = 0; b < N_BLOCK; b++)
                by[b] =
                    unit[b] * tsr_smooth_fit_at(r->fit, b * table->n_type + t,
                                                k * table->dq_inv_ang);
            double *f = table->amplitude + at, *e = table->excess + at;
            f[TSR_SOLUTE * n] = r->start[at] + by[DISPLACED];
            f[TSR_DISPLACED * n] = r->start[n + at] + by[DISPLACED];
            f[TSR_HYDRATION * n] = r->start[2 * n + at] + by[HYDRATION];
            /* vv = cc + 2 cd + dd, vd = cd + dd, vh = ch + dh */
            e[0] = e0[at] + 2.0 * by[EXCESS_CD];
            e[n] = e0[n + at] + by[EXCESS_CD];
            e[2 * n] = e0[2 * n + at] + by[EXCESS_CH];
        }
}

/* Sums over the other bodies that the derivatives by F_t need, of amplitudes
 * `plain` per body and `wet` per exposure; [0] met by t itself, [1] by its
 * hydration. */
static void fields(const refinement *r, const double *target, int t, int k,
                   const double *plain, const double *wet, double field[2])
{
    const tsr_component_grid *g = &r->grid;
    const tsr_component_layout *l = &r->layout;
    size_t n_q = (size_t)g->n_q, at = (size_t)k;
    field[0] = field[1] = 0.0;
    for (int s = 0; s < g->n_type; s++) {
        double twice = s == t ? 2.0 : 1.0;
        size_t pair = tsr_component_pair_at(g, t, s) + at;
        double p = plain[(size_t)s * n_q + at], w = wet[(size_t)s * n_q + at];
        field[0] += twice * p * target[l->pairs + pair] +
                    w * target[l->wet + tsr_component_wet_at(g, t, s) + at];
        field[1] += p * target[l->wet + tsr_component_wet_at(g, s, t) + at] +
                    twice * w * target[l->wet2 + pair];
    }
}

/* Residuals 1 - I / I_atoms of one structure and setting at q_k, and what they
 * change by. I is that of one amplitude a body, c + x d + c2 e h. */
static void linearise(refinement *r, const tsr_component_table *table, int m,
                      int s, int k, double *total /* [2][n_type][n_q] */)
{
    const tsr_component_grid *g = &r->grid;
    const tsr_component_layout *l = &r->layout;
    const double *target = r->target + (size_t)m * l->length;
    int n_type = g->n_type;
    size_t n_q = (size_t)g->n_q, block = (size_t)n_type * n_q, at = (size_t)k;
    double c2 = setting[s][1];
    double scale = tsr_component_scale(setting[s][0], target[l->radius],
                                       k * g->dq_inv_ang);
    double x = 1.0 - scale;
    double atoms =
        tsr_component_intensity(target + l->atoms + at, n_q, scale, c2);
    size_t row = (size_t)m * N_SETTING + (size_t)s;
    double *j = r->jacobian + row * N_BLOCK * (size_t)n_type, sum = 0.0;
    for (int t = 0; t < n_type; t++) {
        size_t i = (size_t)t * n_q + at;
        const double *f = r->amplitude + i;
        total[i] = f[0] - scale * f[block];
        total[block + i] = c2 * f[2 * block];
    }
    for (int t = 0; t < n_type; t++) {
        size_t i = (size_t)t * n_q + at;
        double dry = total[i], wet = total[block + i], field[2], unit[N_BLOCK];
        double n = target[l->count + (size_t)t];
        double e = target[l->exposed + (size_t)t];
        double e2 = target[l->exposed2 + (size_t)t];
        fields(r, target, t, k, total, total + block, field);
        sum += dry * (field[0] + n * dry + e * wet) +
               wet * (field[1] + e * dry + e2 * wet);
        const double *ex = r->excess + i;
        double cc = ex[0] - 2.0 * ex[block] + ex[3 * block];
        double cd = ex[block] - ex[3 * block],
               ch = ex[2 * block] - ex[4 * block];
        sum += n * (cc + 2.0 * x * cd + x * x * ex[3 * block]) +
               2.0 * c2 * e * (ch + x * ex[4 * block]) +
               c2 * c2 * e2 * ex[5 * block];
        units(r, table, (size_t)t * (size_t)table->n_q + (size_t)k * STRIDE,
              unit);
        j[DISPLACED * n_type + t] =
            2.0 * x * unit[DISPLACED] * (field[0] + n * dry + e * wet) / atoms;
        j[HYDRATION * n_type + t] = 2.0 * c2 * unit[HYDRATION] *
                                    (field[1] + e * dry + e2 * wet) / atoms;
        j[EXCESS_CD * n_type + t] = 2.0 * x * n * unit[EXCESS_CD] / atoms;
        j[EXCESS_CH * n_type + t] = 2.0 * c2 * e * unit[EXCESS_CH] / atoms;
    }
    r->residual[row] = 1.0 - sum / atoms;
}

static tsr_status step(refinement *r, tsr_component_table *table, double *total,
                       double *largest, tsr_err *err)
{
    tsr_status s = tsr_component_at(table, r->grid.n_q, r->grid.dq_inv_ang,
                                    r->amplitude, r->excess, err);
    if (s != TSR_OK)
        return s;
    tsr_smooth_fit_begin(r->fit);
    for (int k = 1; k < r->grid.n_q; k++) {
        for (int m = 0; m < r->n_structure; m++)
            for (int i = 0; i < N_SETTING; i++)
                linearise(r, table, m, i, k, total);
        tsr_smooth_fit_add(r->fit, k, r->n_structure * N_SETTING, r->jacobian,
                           r->residual);
    }
    double hold = ridge * r->n_structure * N_SETTING * tsr_smooth_fit_knot /
                  r->grid.dq_inv_ang;
    s = tsr_smooth_fit_step(r->fit, hold, largest, err);
    if (s == TSR_OK)
        fill_table(r, table);
    return s;
}

static tsr_status iterate(refinement *r, tsr_component_table *table,
                          tsr_log *log, tsr_err *err)
{
    double largest = HUGE_VAL;
    double *total = malloc(2 * (size_t)r->grid.n_type * (size_t)r->grid.n_q *
                           sizeof *total);
    int i = 0;
    tsr_status s = total == NULL
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory to refine")
                       : TSR_OK;
    for (; i < MAX_ITERATION && largest > converged && s == TSR_OK; i++)
        s = step(r, table, total, &largest, err);
    free(total);
    if (s == TSR_OK && largest > converged)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of components did not converge in %d "
                        "steps; give more structures",
                        MAX_ITERATION);
    if (s == TSR_OK && log != NULL)
        tsr_info(log, "components refined in %d steps", i);
    return s;
}

tsr_status tsr_component_refine(tsr_component_table *table, int n_path,
                                const char *const *path, int n_thread,
                                tsr_log *log, tsr_err *err)
{
    refinement r = {0};
    tsr_status s = refinement_new(&r, table, n_path, err);
    if (s == TSR_OK) {
        tsr_structure_fold_type fold = {.part_size =
                                            r.layout.length * sizeof(double),
                                        .visit = visit,
                                        .add = keep,
                                        .context = &r.grid};
        s = tsr_structure_fold(&fold, n_path, path, n_thread, &r, log, err);
    }
    if (s == TSR_OK)
        s = iterate(&r, table, log, err);
    refinement_clear(&r);
    return s;
}
