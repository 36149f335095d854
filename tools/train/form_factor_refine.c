/* From averages to the table that meets all atoms best (DESIGN 3): Gauss-Newton
 * on the relative errors of I(q) over the training structures. What F and E may
 * change by is smooth in q (cubic B-splines) and held near zero (a ridge).
 *
 * The contrast c is refined first, as a table of one component, for it alone
 * decides I(q) at c1 = 1 and c2 = 0, where all uses of a table begin. It then
 * stays, and what displaced solvent d and hydration h may change by comes from
 * a few c1 and c2: with x = 1 - G,
 *
 *     I = I_cc + 2 x I_cd + x^2 I_dd + 2 c2 (I_ch + x I_dh) + c2^2 I_hh. */
#include "molecule/table_file.h"
#include "train/form_factor_target.h"
#include "train/train.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- smooth curves ----
 *
 * Least squares for curves in q that are smooth and small: Gauss-Newton steps
 * for n_curve curves at once, each a sum of cubic B-splines in q (knots 0.1
 * 1/Angstrom apart), zero at q = 0 and held near zero by a ridge.
 *
 * One step: smooth_fit_begin, smooth_fit_add at every q but 0,
 * smooth_fit_step. */

enum { MAX_CURVE = 84 };

/* Distance of the knots, 1/Angstrom. Held-out structures chose it, broadly:
 * with knots 0.15 1/Angstrom apart the errors of the two-body table on them
 * rise by less than a fifth. */
static const double knot = 0.1;

typedef struct {
    int n_curve, n_q, n_basis, n_param; /* n_param = n_basis n_curve */
    double dq;
    double *basis;                               /* [n_basis][n_q] */
    gsl_matrix *normal;                          /* [n_param][n_param] */
    gsl_vector *gradient, *change, *coefficient; /* [n_param]: of spline b,
                                            curve c: b n_curve + c */
} smooth_fit;

/* The uniform cubic B-spline around 0, knots at the integers. */
static double b_spline(double x)
{
    x = fabs(x);
    if (x >= 2.0)
        return 0.0;
    if (x >= 1.0)
        return (2.0 - x) * (2.0 - x) * (2.0 - x) / 6.0;
    return 2.0 / 3.0 - x * x * (1.0 - 0.5 * x);
}

/* What is fitted is exact at q = 0 and even in q: changes begin as q
 * squared. */
static double basis_at(int b, double q)
{
    double rise = q * q / (q * q + knot * knot);
    return rise * b_spline(q / knot - (b - 1));
}

static void smooth_fit_free(smooth_fit *fit)
{
    if (fit == NULL)
        return;
    free(fit->basis);
    gsl_matrix_free(fit->normal);
    gsl_vector_free(fit->gradient);
    gsl_vector_free(fit->change);
    gsl_vector_free(fit->coefficient);
    free(fit);
}

/* Curves of zero on q_k = k dq, k < n_q; NULL when out of memory. */
static smooth_fit *smooth_fit_new(int n_curve, int n_q, double dq_inv_ang)
{
    smooth_fit *fit = calloc(1, sizeof *fit);
    if (fit == NULL)
        return NULL;
    double last = (n_q - 1) * dq_inv_ang;
    fit->n_curve = n_curve;
    fit->n_q = n_q;
    fit->dq = dq_inv_ang;
    fit->n_basis = (int)ceil(last / knot - 1e-9) + 3;
    fit->n_param = fit->n_basis * n_curve;
    size_t n = (size_t)fit->n_param;
    fit->basis =
        malloc((size_t)fit->n_basis * (size_t)n_q * sizeof *fit->basis);
    fit->normal = gsl_matrix_alloc(n, n);
    fit->gradient = gsl_vector_alloc(n);
    fit->change = gsl_vector_alloc(n);
    fit->coefficient = gsl_vector_calloc(n);
    if (fit->basis == NULL || fit->normal == NULL || fit->gradient == NULL ||
        fit->change == NULL || fit->coefficient == NULL) {
        smooth_fit_free(fit);
        return NULL;
    }
    for (int b = 0; b < fit->n_basis; b++)
        for (int k = 0; k < n_q; k++)
            fit->basis[b * n_q + k] = basis_at(b, k * dq_inv_ang);
    return fit;
}

/* Value of a curve at any q up to the grid's last. */
static double smooth_fit_at(const smooth_fit *fit, int curve, double q)
{
    double sum = 0.0;
    for (int b = 0; b < fit->n_basis; b++)
        sum +=
            basis_at(b, q) * fit->coefficient->data[b * fit->n_curve + curve];
    return sum;
}

static void smooth_fit_begin(smooth_fit *fit)
{
    gsl_matrix_set_zero(fit->normal);
    gsl_vector_set_zero(fit->gradient);
}

/* Adds n_row equations at q_k: residual [n_row] and how it would fall with each
 * curve's value there, jacobian [n_row][n_curve]. */
static void smooth_fit_add(smooth_fit *fit, int k, int n_row,
                           const double *jacobian, const double *residual)
{
    enum { WIDTH = MAX_CURVE };
    int n = fit->n_curve, n_q = fit->n_q;
    double square[WIDTH][WIDTH] = {{0}}, slope[WIDTH] = {0};
    for (int m = 0; m < n_row; m++) {
        const double *j = jacobian + m * n;
        for (int a = 0; a < n; a++) {
            slope[a] += j[a] * residual[m];
            for (int b = 0; b <= a; b++)
                square[a][b] += j[a] * j[b];
        }
    }
    for (int u = 0; u < fit->n_basis; u++) {
        double bu = fit->basis[u * n_q + k];
        for (int a = 0; a < n && bu != 0.0; a++)
            fit->gradient->data[u * n + a] += bu * slope[a];
        for (int v = 0; v < fit->n_basis; v++) {
            double w = bu * fit->basis[v * n_q + k];
            if (w == 0.0)
                continue;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++)
                    *gsl_matrix_ptr(fit->normal, (size_t)(u * n + a),
                                    (size_t)(v * n + b)) +=
                        w * (a >= b ? square[a][b] : square[b][a]);
        }
    }
}

/* Solves with a ridge of `hold` a spline; *largest is the largest change.
 * Errors: TSR_E_NUMERIC. */
static tsr_status smooth_fit_step(smooth_fit *fit, double hold, double *largest,
                                  tsr_err *err)
{
    for (int i = 0; i < fit->n_param; i++) {
        *gsl_matrix_ptr(fit->normal, (size_t)i, (size_t)i) += hold;
        fit->gradient->data[i] -= hold * fit->coefficient->data[i];
    }
    int gsl = gsl_linalg_cholesky_decomp1(fit->normal);
    if (gsl == GSL_SUCCESS)
        gsl =
            gsl_linalg_cholesky_solve(fit->normal, fit->gradient, fit->change);
    if (gsl != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors has no solution: %s",
                        gsl_strerror(gsl));
    gsl_vector_add(fit->coefficient, fit->change);
    *largest = 0.0;
    for (int i = 0; i < fit->n_param; i++)
        *largest = fmax(*largest, fabs(fit->change->data[i]));
    return TSR_OK;
}

/* Held-out structures chose it, broadly: with a third of it, or thrice it, the
 * errors of the two-body table on them rise by less than a fifth. */
static const double ridge = 0.004; /* a structure, setting and grid point */
enum { MAX_ITERATION = 12 };

/* What changes, for each type, in blocks. One component: the amplitude, and P
 * rather than the excess, so that a change of F leaves the terms of a body with
 * itself alone. Three: amplitudes of the displaced solvent and of hydration,
 * excesses of both with the contrast. */
enum { CONTRAST, SELF, N_ONE };
enum { DISPLACED, HYDRATION, EXCESS_CD, EXCESS_CH, N_THREE, MAX_BLOCK = 4 };

typedef struct {
    const char *what;
    int n_block;
    int stride; /* points of the table a point of the fit */
    double converged;
    int n_setting;
    double setting[6][2]; /* c1, c2 within what fits to data allow */
} kind;

static const kind one_component = {"form factors", N_ONE, 1,
                                   1e-7,           1,     {{1.0, 0.0}}};
/* Every other point of the table is enough for knots 0.1 apart. */
static const kind three_components = {"components",
                                      N_THREE,
                                      2,
                                      1e-6,
                                      6,
                                      {{0.95, 0.0},
                                       {1.05, 0.0},
                                       {1.0, 1.0},
                                       {1.0, 3.0},
                                       {0.97, 2.0},
                                       {1.03, 1.0}}};

typedef struct {
    const kind *kind;
    tsr_form_factor_table *table;
    tsr_target_grid grid;
    tsr_target_layout layout;
    int n_structure;
    tsr_target_parts target; /* [n_structure][layout.length] */
    double *start;    /* [n_comp + n_pair][n_type][table n_q]: F, then E */
    double *self;     /* [n_type][table n_q] e^2: P of the contrast */
    double *jacobian; /* [n_structure][n_setting][n_block n_type], at a q */
    double *residual; /* [n_structure][n_setting] */
    double *total;    /* [2][n_type]: amplitudes, dry and per exposure */
    smooth_fit *fit;
} refinement;

static size_t values(const tsr_form_factor_table *table)
{
    return (size_t)table->n_type * (size_t)table->n_q;
}

/* P of the contrast. */
static void fill_self(refinement *r)
{
    const tsr_form_factor_table *table = r->table;
    size_t n = values(table);
    for (size_t i = 0; i < n; i++) {
        const double *f = table->amplitude + i, *e = table->excess + i;
        double c = table->n_comp == 1 ? f[0] : f[0] - f[n];
        r->self[i] =
            c * c + (table->n_comp == 1 ? e[0] : e[0] - 2.0 * e[n] + e[3 * n]);
    }
}

static tsr_status refinement_new(refinement *r, tsr_form_factor_table *table,
                                 int n_path, tsr_err *err)
{
    const kind *of = table->n_comp == 1 ? &one_component : &three_components;
    int n_q = (table->n_q - 1) / of->stride + 1;
    size_t n = (size_t)n_path, n_type = (size_t)table->n_type;
    size_t n_row = n * (size_t)of->n_setting, n_value = values(table);
    size_t n_f = (size_t)table->n_comp * n_value;
    size_t n_e = (size_t)table->n_pair * n_value;
    *r = (refinement){
        .kind = of,
        .table = table,
        .grid = tsr_target_grid_of(table, n_q, of->stride * table->dq_inv_ang),
        .n_structure = n_path};
    r->layout = tsr_target_layout_of(&r->grid);
    r->target.length = r->layout.length;
    r->target.part = malloc(n * r->layout.length * sizeof(double));
    r->start = malloc((n_f + n_e) * sizeof(double));
    r->self = malloc(n_value * sizeof(double));
    r->jacobian = malloc(n_row * (size_t)of->n_block * n_type * sizeof(double));
    r->residual = malloc(n_row * sizeof(double));
    r->total = malloc(2 * n_type * sizeof(double));
    r->fit =
        smooth_fit_new(of->n_block * table->n_type, n_q, r->grid.dq_inv_ang);
    if (r->target.part == NULL || r->start == NULL || r->self == NULL ||
        r->jacobian == NULL || r->residual == NULL || r->total == NULL ||
        r->fit == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "no memory to refine on %d structures (%.1f MB each); "
                        "give fewer of them",
                        n_path, 8e-6 * (double)r->layout.length);
    memcpy(r->start, table->amplitude, n_f * sizeof(double));
    memcpy(r->start + n_f, table->excess, n_e * sizeof(double));
    fill_self(r);
    return TSR_OK;
}

static void refinement_clear(refinement *r)
{
    free(r->target.part);
    free(r->start);
    free(r->self);
    free(r->jacobian);
    free(r->residual);
    free(r->total);
    smooth_fit_free(r->fit);
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    return tsr_target_fill(context, structure, part, err);
}

/* Changes come in units that make them alike for all types: P of its own, the
 * contrast's amplitude of the root of P, amplitudes of displaced solvent and of
 * hydration of their own, excesses of the root of P of the contrast with
 * either. */
static void units(const refinement *r, size_t at, double unit[MAX_BLOCK])
{
    size_t n = values(r->table);
    double c = sqrt(fmax(r->self[at], 0.0));
    if (r->table->n_comp == 1) {
        unit[CONTRAST] = c;
        unit[SELF] = r->self[at];
        return;
    }
    double d = fabs(r->start[n + at]), h = fabs(r->start[2 * n + at]);
    unit[DISPLACED] = d;
    unit[HYDRATION] = h;
    unit[EXCESS_CD] = c * d;
    unit[EXCESS_CH] = c * h;
}

/* One value of the table with its changes. P may not become negative, which the
 * ridge keeps far off; -1 where it does. */
static int change(const refinement *r, size_t at, const double by[MAX_BLOCK])
{
    size_t n = values(r->table);
    const double *f0 = r->start + at, *e0 = f0 + (size_t)r->table->n_comp * n;
    double *f = r->table->amplitude + at, *e = r->table->excess + at;
    if (r->table->n_comp == 1) {
        double self = r->self[at] + by[SELF];
        f[0] = f0[0] + by[CONTRAST];
        e[0] = self - f[0] * f[0];
        return self >= 0.0 ? 0 : -1;
    }
    f[TSR_SOLUTE * n] = f0[0] + by[DISPLACED]; /* the contrast stays */
    f[TSR_DISPLACED * n] = f0[n] + by[DISPLACED];
    f[TSR_HYDRATION * n] = f0[2 * n] + by[HYDRATION];
    /* vv = cc + 2 cd + dd, vd = cd + dd, vh = ch + dh */
    e[0] = e0[0] + 2.0 * by[EXCESS_CD];
    e[n] = e0[n] + by[EXCESS_CD];
    e[2 * n] = e0[2 * n] + by[EXCESS_CH];
    return 0;
}

/* The table at the present changes. */
static tsr_status fill_table(const refinement *r, tsr_err *err)
{
    const tsr_form_factor_table *table = r->table;
    for (int t = 0; t < table->n_type; t++)
        for (int k = 0; k < table->n_q; k++) {
            size_t at = (size_t)(t * table->n_q + k);
            double by[MAX_BLOCK];
            units(r, at, by);
            for (int b = 0; b < r->kind->n_block; b++)
                by[b] *= smooth_fit_at(r->fit, b * table->n_type + t,
                                       k * table->dq_inv_ang);
            if (change(r, at, by) != 0)
                return tsr_fail(err, TSR_E_NUMERIC,
                                "the refinement of form factors left its "
                                "range; give more structures, or do not "
                                "refine");
        }
    return TSR_OK;
}

/* Sums over the other bodies that the derivatives by F_t need, of the total
 * amplitudes; [0] met by t itself, [1] by its hydration. */
static void fields(const refinement *r, const double *target, int t, int k,
                   double field[2])
{
    const tsr_target_grid *g = &r->grid;
    const tsr_target_layout *l = &r->layout;
    const double *dry = r->total, *wet = r->total + g->n_type;
    size_t at = (size_t)k;
    field[0] = field[1] = 0.0;
    for (int s = 0; s < g->n_type; s++) {
        double twice = s == t ? 2.0 : 1.0;
        size_t pair = tsr_target_pair_at(g, t, s) + at;
        field[0] += twice * dry[s] * target[l->pairs + pair];
        if (g->n_comp == 1)
            continue;
        field[0] += wet[s] * target[l->wet + tsr_target_wet_at(g, t, s) + at];
        field[1] += dry[s] * target[l->wet + tsr_target_wet_at(g, s, t) + at] +
                    twice * wet[s] * target[l->wet2 + pair];
    }
}

/* What a body of type t adds to I with itself and all others, and what I
 * changes by with its blocks, in their units; x = 1 - G. */
static double linearise_type(const refinement *r, const double *target, int t,
                             int k, double x, double c2, double by[MAX_BLOCK])
{
    const tsr_form_factor_table *table = r->table;
    const tsr_target_layout *l = &r->layout;
    size_t n = values(table);
    size_t at = (size_t)(t * table->n_q + k * r->kind->stride);
    const double *ex = table->excess + at;
    double dry = r->total[t], wet = r->total[table->n_type + t];
    double many = target[l->count + (size_t)t], field[2], unit[MAX_BLOCK];
    fields(r, target, t, k, field);
    units(r, at, unit);
    if (table->n_comp == 1) {
        by[CONTRAST] = 2.0 * field[0] * unit[CONTRAST];
        by[SELF] = many * unit[SELF];
        return dry * field[0] + many * (ex[0] + dry * dry);
    }
    double e = target[l->exposed + (size_t)t];
    double e2 = target[l->exposed2 + (size_t)t];
    double cc = ex[0] - 2.0 * ex[n] + ex[3 * n];
    double cd = ex[n] - ex[3 * n], ch = ex[2 * n] - ex[4 * n];
    double of_dry = field[0] + many * dry + e * wet;
    double of_wet = field[1] + e * dry + e2 * wet;
    by[DISPLACED] = 2.0 * x * unit[DISPLACED] * of_dry;
    by[HYDRATION] = 2.0 * c2 * unit[HYDRATION] * of_wet;
    by[EXCESS_CD] = 2.0 * x * many * unit[EXCESS_CD];
    by[EXCESS_CH] = 2.0 * c2 * e * unit[EXCESS_CH];
    return dry * of_dry + wet * of_wet +
           many * (cc + 2.0 * x * cd + x * x * ex[3 * n]) +
           2.0 * c2 * e * (ch + x * ex[4 * n]) + c2 * c2 * e2 * ex[5 * n];
}

/* Residual 1 - I / I_atoms of one structure m and setting s at q_k, and what it
 * changes by. I is that of one amplitude a body, c + x d + c2 e h. */
static void linearise(refinement *r, int m, int s, int k)
{
    const tsr_form_factor_table *table = r->table;
    const double *target = r->target.part + (size_t)m * r->layout.length;
    int n_type = table->n_type, n_block = r->kind->n_block;
    size_t n = values(table);
    double c2 = r->kind->setting[s][1];
    double scale =
        tsr_component_scale(r->kind->setting[s][0], target[r->layout.radius],
                            k * r->grid.dq_inv_ang);
    double atoms = tsr_target_intensity(&r->grid, target + r->layout.atoms + k,
                                        (size_t)r->grid.n_q, scale, c2);
    int row = m * r->kind->n_setting + s;
    double *j = r->jacobian + row * n_block * n_type, sum = 0.0;
    for (int t = 0; t < n_type; t++) {
        const double *f =
            table->amplitude + t * table->n_q + k * r->kind->stride;
        r->total[t] = table->n_comp == 1 ? f[0] : f[0] - scale * f[n];
        r->total[n_type + t] = table->n_comp == 1 ? 0.0 : c2 * f[2 * n];
    }
    for (int t = 0; t < n_type; t++) {
        double by[MAX_BLOCK];
        sum += linearise_type(r, target, t, k, 1.0 - scale, c2, by);
        for (int b = 0; b < n_block; b++)
            j[b * n_type + t] = by[b] / atoms;
    }
    r->residual[row] = 1.0 - sum / atoms;
}

/* One Gauss-Newton step; *largest is its largest component. */
static tsr_status step(refinement *r, double *largest, tsr_err *err)
{
    int n_row = r->n_structure * r->kind->n_setting;
    smooth_fit_begin(r->fit);
    for (int k = 1; k < r->grid.n_q; k++) {
        for (int m = 0; m < r->n_structure; m++)
            for (int s = 0; s < r->kind->n_setting; s++)
                linearise(r, m, s, k);
        smooth_fit_add(r->fit, k, n_row, r->jacobian, r->residual);
    }
    double hold = ridge * n_row * knot / r->grid.dq_inv_ang;
    tsr_status s = smooth_fit_step(r->fit, hold, largest, err);
    return s == TSR_OK ? fill_table(r, err) : s;
}

static tsr_status iterate(refinement *r, tsr_log *log, tsr_err *err)
{
    double largest = HUGE_VAL;
    int i = 0;
    tsr_status s = TSR_OK;
    for (; i < MAX_ITERATION && largest > r->kind->converged && s == TSR_OK;
         i++)
        s = step(r, &largest, err);
    if (s == TSR_OK && largest > r->kind->converged)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of %s did not converge in %d steps; "
                        "give more structures, or do not refine",
                        r->kind->what, MAX_ITERATION);
    if (s == TSR_OK && log != NULL)
        tsr_info(log, "%s refined in %d steps", r->kind->what, i);
    return s;
}

/* The contrast of a table of one component, displaced solvent and hydration of
 * one of three. */
static tsr_status refine(tsr_form_factor_table *table, int n_path,
                         const char *const *path, int n_thread, tsr_log *log,
                         tsr_err *err)
{
    refinement r = {0};
    tsr_status s = refinement_new(&r, table, n_path, err);
    if (s == TSR_OK) {
        tsr_structure_fold_type fold = {.part_size =
                                            r.layout.length * sizeof(double),
                                        .visit = visit,
                                        .add = tsr_target_keep,
                                        .context = &r.grid};
        s = tsr_structure_fold(&fold, n_path, path, n_thread, &r.target, log,
                               err);
    }
    if (s == TSR_OK)
        s = iterate(&r, log, err);
    refinement_clear(&r);
    return s;
}

tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err)
{
    tsr_status s;
    if (table->n_comp == 1) {
        s = refine(table, n_path, path, n_thread, log, err);
    } else {
        tsr_form_factor_table *contrast = NULL;
        s = tsr_form_factor_fold(table, &contrast, err);
        if (s == TSR_OK)
            s = refine(contrast, n_path, path, n_thread, log, err);
        if (s == TSR_OK)
            tsr_form_factor_unfold(contrast, table);
        if (s == TSR_OK)
            s = refine(table, n_path, path, n_thread, log, err);
        tsr_form_factor_free(contrast);
    }
    if (s != TSR_OK)
        return s;
    return tsr_table_head(
        &table->source, err,
        "refined: on the relative error of I(q) against all atoms\n%s",
        table->source != NULL ? table->source : "");
}
