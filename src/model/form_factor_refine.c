/* From averages to the table that meets all atoms best (DESIGN 3): Gauss-Newton
 * on the relative error of I(q) over the training structures. What F and P may
 * change by is smooth in q (cubic B-splines) and held near zero (a ridge). */
#include "model/form_factor.h"
#include "model/form_factor_target.h"
#include "model/structure_fold.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Held-out structures chose them, broadly: with a third of the ridge, thrice
 * it, or knots 0.15 1/Angstrom apart, the errors of the two-body table on them
 * rise by less than a fifth. */
static const double knot_step = 0.1; /* 1/Angstrom */
static const double ridge = 0.004;   /* a structure and grid point */
enum { MAX_ITERATION = 12 };
static const double converged = 1e-7;

typedef struct {
    tsr_target_grid grid;
    int n_structure, n_filled;
    double *target; /* [n_structure][length] */
    size_t length;
    int n_basis, n_param; /* n_param = n_basis 2 n_type */
    double *basis;        /* [n_basis][n_q] */
    double *f0, *p0;      /* [n_type][n_q], the averages */
    double *jacobian;     /* [n_structure][2 n_type], at one q */
    double *residual;     /* [n_structure], at one q */
    gsl_matrix *normal;   /* [n_param][n_param] */
    gsl_vector *gradient, *change, *coefficient; /* [n_param]: of basis b, type
                                        t: b 2 n_type + t, P after F */
} refinement;

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

/* F(0) is exact, and F and P are even in q: changes begin as q squared. */
static void fill_basis(refinement *r)
{
    for (int b = 0; b < r->n_basis; b++)
        for (int k = 0; k < r->grid.n_q; k++) {
            double q = k * r->grid.dq_inv_ang;
            double rise = q * q / (q * q + knot_step * knot_step);
            r->basis[b * r->grid.n_q + k] =
                rise * b_spline(q / knot_step - (b - 1));
        }
}

static tsr_status refinement_new(refinement *r,
                                 const tsr_form_factor_table *table, int n_path,
                                 tsr_err *err)
{
    size_t n_value = (size_t)table->n_type * (size_t)table->n_q;
    double last = (table->n_q - 1) * table->dq_inv_ang;
    *r = (refinement){
        .grid = {table->model, table->n_type, table->n_q, table->dq_inv_ang},
        .n_structure = n_path};
    r->length = tsr_target_length(&r->grid);
    r->n_basis = (int)ceil(last / knot_step - 1e-9) + 3;
    r->n_param = r->n_basis * 2 * r->grid.n_type;
    size_t n_param = (size_t)r->n_param, n = (size_t)n_path;
    r->target = malloc(n * r->length * sizeof *r->target);
    r->basis =
        malloc((size_t)r->n_basis * (size_t)table->n_q * sizeof *r->basis);
    r->f0 = malloc(n_value * sizeof *r->f0);
    r->p0 = malloc(n_value * sizeof *r->p0);
    r->jacobian = malloc(n * 2 * (size_t)table->n_type * sizeof *r->jacobian);
    r->residual = malloc(n * sizeof *r->residual);
    r->normal = gsl_matrix_alloc(n_param, n_param);
    r->gradient = gsl_vector_alloc(n_param);
    r->change = gsl_vector_alloc(n_param);
    r->coefficient = gsl_vector_calloc(n_param);
    if (r->target == NULL || r->basis == NULL || r->f0 == NULL ||
        r->p0 == NULL || r->jacobian == NULL || r->residual == NULL ||
        r->normal == NULL || r->gradient == NULL || r->change == NULL ||
        r->coefficient == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "no memory to refine on %d structures (%.1f MB each); "
                        "give fewer of them",
                        n_path, 8e-6 * (double)r->length);
    memcpy(r->f0, table->amplitude, n_value * sizeof *r->f0);
    memcpy(r->p0, table->self, n_value * sizeof *r->p0);
    fill_basis(r);
    return TSR_OK;
}

static void refinement_clear(refinement *r)
{
    free(r->target);
    free(r->basis);
    free(r->f0);
    free(r->p0);
    free(r->jacobian);
    free(r->residual);
    gsl_matrix_free(r->normal);
    gsl_vector_free(r->gradient);
    gsl_vector_free(r->change);
    gsl_vector_free(r->coefficient);
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    return tsr_target_fill(context, structure, part, err);
}

static void keep(const void *context, void *total, const void *part)
{
    (void)context;
    refinement *r = total;
    memcpy(r->target + (size_t)r->n_filled++ * r->length, part,
           r->length * sizeof *r->target);
}

/* The table at the present coefficients. P may not become negative, which the
 * ridge keeps far off; -1 where it does. */
static int fill_table(const refinement *r, tsr_form_factor_table *table)
{
    int n_type = r->grid.n_type, n_q = r->grid.n_q;
    for (int t = 0; t < n_type; t++)
        for (int k = 0; k < n_q; k++) {
            double df = 0.0, dp = 0.0;
            for (int b = 0; b < r->n_basis; b++) {
                const double *c = r->coefficient->data + b * 2 * n_type + t;
                df += r->basis[b * n_q + k] * c[0];
                dp += r->basis[b * n_q + k] * c[n_type];
            }
            int at = t * n_q + k;
            table->amplitude[at] = r->f0[at] + sqrt(r->p0[at]) * df;
            table->self[at] = r->p0[at] * (1.0 + dp);
            if (!(table->self[at] >= 0.0))
                return -1;
        }
    return 0;
}

/* Residuals 1 - I / I_atoms at q_k and what they change by with the scaled
 * deviations of F and P. */
static void linearise(refinement *r, const tsr_form_factor_table *table, int k)
{
    int n_type = r->grid.n_type, n_q = r->grid.n_q;
    for (int m = 0; m < r->n_structure; m++) {
        double *target = r->target + (size_t)m * r->length;
        double atoms = tsr_target_atoms(&r->grid, target)[k];
        const double *count = tsr_target_count(&r->grid, target);
        double *j = r->jacobian + m * 2 * n_type, intensity = 0.0;
        for (int t = 0; t < n_type; t++) {
            double field = 0.0;
            for (int s = 0; s < n_type; s++)
                field += (s == t ? 2.0 : 1.0) * table->amplitude[s * n_q + k] *
                         tsr_target_pairs(&r->grid, target, t, s)[k];
            int at = t * n_q + k;
            intensity +=
                table->amplitude[at] * field + count[t] * table->self[at];
            j[t] = 2.0 * field * sqrt(r->p0[at]) / atoms;
            j[n_type + t] = count[t] * r->p0[at] / atoms;
        }
        r->residual[m] = 1.0 - intensity / atoms;
    }
}

/* Adds the normal equations of one q. */
static void accumulate(refinement *r, int k)
{
    enum { WIDTH = 2 * TSR_MAX_TYPE };
    int n = 2 * r->grid.n_type, n_q = r->grid.n_q;
    double square[WIDTH][WIDTH] = {{0}}, slope[WIDTH] = {0};
    for (int m = 0; m < r->n_structure; m++) {
        const double *j = r->jacobian + m * n;
        for (int a = 0; a < n; a++) {
            slope[a] += j[a] * r->residual[m];
            for (int b = 0; b <= a; b++)
                square[a][b] += j[a] * j[b];
        }
    }
    for (int u = 0; u < r->n_basis; u++) {
        double bu = r->basis[u * n_q + k];
        for (int a = 0; a < n && bu != 0.0; a++)
            r->gradient->data[u * n + a] += bu * slope[a];
        for (int v = 0; v < r->n_basis; v++) {
            double w = bu * r->basis[v * n_q + k];
            if (w == 0.0)
                continue;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++)
                    *gsl_matrix_ptr(r->normal, (size_t)(u * n + a),
                                    (size_t)(v * n + b)) +=
                        w * (a >= b ? square[a][b] : square[b][a]);
        }
    }
}

/* One Gauss-Newton step; *largest is its largest component. */
static tsr_status step(refinement *r, tsr_form_factor_table *table,
                       double *largest, tsr_err *err)
{
    gsl_matrix_set_zero(r->normal);
    gsl_vector_set_zero(r->gradient);
    for (int k = 1; k < r->grid.n_q; k++) {
        linearise(r, table, k);
        accumulate(r, k);
    }
    double hold = ridge * r->n_structure * knot_step / r->grid.dq_inv_ang;
    for (int i = 0; i < r->n_param; i++) {
        *gsl_matrix_ptr(r->normal, (size_t)i, (size_t)i) += hold;
        r->gradient->data[i] -= hold * r->coefficient->data[i];
    }
    int gsl = gsl_linalg_cholesky_decomp1(r->normal);
    if (gsl == GSL_SUCCESS)
        gsl = gsl_linalg_cholesky_solve(r->normal, r->gradient, r->change);
    if (gsl != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors has no solution: %s",
                        gsl_strerror(gsl));
    gsl_vector_add(r->coefficient, r->change);
    *largest = 0.0;
    for (int i = 0; i < r->n_param; i++)
        *largest = fmax(*largest, fabs(r->change->data[i]));
    if (fill_table(r, table) != 0)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors left its range; give "
                        "more structures, or do not refine");
    return TSR_OK;
}

static tsr_status iterate(refinement *r, tsr_form_factor_table *table,
                          tsr_log *log, tsr_err *err)
{
    double largest = HUGE_VAL;
    int i = 0;
    tsr_status s = TSR_OK;
    for (; i < MAX_ITERATION && largest > converged && s == TSR_OK; i++)
        s = step(r, table, &largest, err);
    if (s == TSR_OK && largest > converged)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors did not converge in %d "
                        "steps; give more structures, or do not refine",
                        MAX_ITERATION);
    if (s == TSR_OK && log != NULL)
        tsr_info(log, "refined in %d steps", i);
    return s;
}

static tsr_status note_refinement(tsr_form_factor_table *table, tsr_err *err)
{
    static const char note[] = "refined: on the relative error of I(q) against "
                               "all atoms\n";
    const char *source = table->source != NULL ? table->source : "";
    size_t size = sizeof note + strlen(source);
    char *text = malloc(size);
    if (text == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a heading");
    snprintf(text, size, "%s%s", note, source);
    free(table->source);
    table->source = text;
    return TSR_OK;
}

tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err)
{
    refinement r = {0};
    tsr_status s = refinement_new(&r, table, n_path, err);
    if (s == TSR_OK) {
        tsr_structure_fold_type fold = {.part_size = r.length * sizeof(double),
                                        .visit = visit,
                                        .add = keep,
                                        .context = &r.grid};
        s = tsr_structure_fold(&fold, n_path, path, n_thread, &r, log, err);
    }
    if (s == TSR_OK)
        s = iterate(&r, table, log, err);
    if (s == TSR_OK)
        s = note_refinement(table, err);
    refinement_clear(&r);
    return s;
}
