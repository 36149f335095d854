/* What curves say of a profile: a normal log likelihood that is quadratic in
 * I(q).
 *
 * With the grid's operator M, weights W = 1 / sigma^2 and the model's own error
 * E (as columns), that of a curve d is
 *
 *     -1/2 (d - c M I - b)' (s^2 W^-1 + E E')^-1 (d - c M I - b).
 *
 * Multiplied out, N = M' (...)^-1 M and what goes with d and with 1; N = L L'
 * by Cholesky makes rows L' and the data's side L^-1 M' (...)^-1 d, so that
 * single precision is enough for differences of the two. A free background is
 * projected out. */
#include "surrogate/surrogate.h"

#include "likelihood/term_saxs.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ln s is rounded to multiples of this, so that few factors are made; so many
 * times from 0 up and down. Differences of log L are then off by one per cent
 * of themselves at most, and the same both ways, since walks leave s. */
static const double spread_step = 0.01;
enum { MOST_SPREADS = 400 };

/* A curve: products of the grid's operator M with the data, all weighted by
 * 1 / sigma^2. */
typedef struct {
    int term, n_error;
    const tsr_linear *linear;
    int has_spread; /* s is a parameter, the term's first */
    double *normal; /* [n_q][n_q] M' W M */
    double *vector; /* [2 + n_error][n_q] M' W of data, of 1, of errors */
    double *gram;   /* [2 + n_error][2 + n_error] of those with another */
    _Atomic(float *) ready[2 * MOST_SPREADS + 1];
    /* [n_q + 1][n_q + 1] and the scale, by the number of ln s: the curve as a
     * job has it; NULL: not asked for yet */
} curve;

struct tsr_surrogate_data {
    const tsr_likelihood *likelihood;
    int n_curve;
    curve *curve; /* [n_curve] */
};

/* A curve's forms in the room that is filled: normal [n_q][n_q], then what goes
 * with the data and with 1 [2][n_q], then the three products of these. */
static size_t form_size(const tsr_surrogate_data *g)
{
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    return n_q * n_q + 2 * n_q + 3;
}

/* Row k of the data's side: 0 the data, 1 ones, then the model's errors. */
static double side_of(const tsr_saxs_term *t, double scale, int row, int k)
{
    return row == 0   ? t->saxs->intensity[k]
           : row == 1 ? 1.0
                      : scale * t->error[(size_t)((row - 1) * t->saxs->n + k)];
}

/* The best scale of the reference, in which its errors are known. */
static double reference_scale(const tsr_saxs_term *t)
{
    double up = 0.0, down = 0.0;
    for (int k = 0; k < t->saxs->n && t->term.n_error > 0; k++) {
        const double w = 1.0 / (t->saxs->sigma[k] * t->saxs->sigma[k]);
        up += w * t->error[k] * t->saxs->intensity[k];
        down += w * t->error[k] * t->error[k];
    }
    return down > 0.0 ? up / down : 0.0;
}

/* 0: out of memory. */
static int make_curve(tsr_surrogate_data *g, int d)
{
    const tsr_saxs_term *t = (const void *)g->likelihood->term[d];
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    curve *c = &g->curve[g->n_curve];
    const int n_row = 2 + t->term.n_error;
    const double scale = reference_scale(t);
    *c = (curve){.term = d, .n_error = t->term.n_error, .linear = &t->linear};
    c->has_spread = t->n_noise > 0 && t->noise != &tsr_noise_relative;
    c->normal = calloc(n_q * n_q, sizeof *c->normal);
    c->vector = calloc((size_t)n_row * n_q, sizeof *c->vector);
    c->gram = calloc((size_t)(n_row * n_row), sizeof *c->gram);
    g->n_curve++;
    if (c->normal == NULL || c->vector == NULL || c->gram == NULL)
        return 0;
    for (int k = 0; k < t->saxs->n; k++) {
        const double w = 1.0 / (t->saxs->sigma[k] * t->saxs->sigma[k]);
        const double *m = t->matrix + (size_t)k * n_q;
        for (size_t i = 0; i < n_q; i++)
            for (size_t j = 0; j < n_q; j++)
                c->normal[i * n_q + j] += w * m[i] * m[j];
        for (int a = 0; a < n_row; a++) {
            const double v = w * side_of(t, scale, a, k);
            for (size_t i = 0; i < n_q; i++)
                c->vector[(size_t)a * n_q + i] += v * m[i];
            for (int b = 0; b < n_row; b++)
                c->gram[a * n_row + b] += v * side_of(t, scale, b, k);
        }
    }
    return 1;
}

void tsr_surrogate_data_free(tsr_surrogate_data *data)
{
    if (data == NULL)
        return;
    for (int d = 0; d < data->n_curve; d++) {
        free(data->curve[d].normal);
        free(data->curve[d].vector);
        free(data->curve[d].gram);
        for (int k = 0; k < 2 * MOST_SPREADS + 1; k++)
            free(atomic_load(&data->curve[d].ready[k]));
    }
    free(data->curve);
    free(data);
}

/* Cholesky factor of s^2 + gram of the errors, in place. */
static void factor(int n, double *a)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
}

/* A curve's forms at s, the model's own error E integrated out (Woodbury):
 *     (s^2 W^-1 + E E')^-1 = (W - W E (s^2 + E' W E)^-1 E' W) / s^2.
 * low [n][n_q] is scratch, for L^-1 E' W M. */
static void set_curve(const curve *c, size_t n_q, double spread, double *normal,
                      double *low)
{
    const int n = c->n_error, n_row = 2 + n;
    const double s2 = spread * spread;
    double *vector = normal + n_q * n_q, *gram = vector + 2 * n_q;
    double a[TSR_MODEL_ERRORS * TSR_MODEL_ERRORS];
    double side[TSR_MODEL_ERRORS][2]; /* solved with data and 1 */
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] =
                c->gram[(2 + i) * n_row + 2 + j] + (i == j ? s2 : 0.0);
    factor(n, a);
    memcpy(normal, c->normal, n_q * n_q * sizeof *normal);
    memcpy(vector, c->vector, 2 * n_q * sizeof *vector);
    gram[0] = c->gram[0], gram[1] = c->gram[1], gram[2] = c->gram[n_row + 1];
    for (int i = 0; i < n; i++) {
        double *row = low + (size_t)i * n_q;
        memcpy(row, c->vector + (size_t)(2 + i) * n_q, n_q * sizeof *row);
        side[i][0] = c->gram[2 + i], side[i][1] = c->gram[n_row + 2 + i];
        for (int k = 0; k < i; k++) {
            for (size_t q = 0; q < n_q; q++)
                row[q] -= a[i * n + k] * low[(size_t)k * n_q + q];
            side[i][0] -= a[i * n + k] * side[k][0];
            side[i][1] -= a[i * n + k] * side[k][1];
        }
        for (size_t q = 0; q < n_q; q++)
            row[q] /= a[i * n + i];
        side[i][0] /= a[i * n + i], side[i][1] /= a[i * n + i];
        for (size_t p = 0; p < n_q; p++) {
            for (size_t q = 0; q < n_q; q++)
                normal[p * n_q + q] -= row[p] * row[q];
            vector[p] -= row[p] * side[i][0];
            vector[n_q + p] -= row[p] * side[i][1];
        }
        gram[0] -= side[i][0] * side[i][0];
        gram[1] -= side[i][0] * side[i][1];
        gram[2] -= side[i][1] * side[i][1];
    }
    for (size_t k = 0; k < n_q * n_q; k++)
        normal[k] /= s2;
    for (size_t k = 0; k < 2 * n_q + 3; k++)
        vector[k] /= s2;
}

/* Cholesky factor of the normal matrix, in place below the diagonal, with what
 * it lacks of rank made up by a little more on the diagonal. */
static void factor_normal(int n, double *a)
{
    double trace = 0.0;
    for (int i = 0; i < n; i++)
        trace += a[i * n + i];
    for (int i = 0; i < n; i++)
        a[i * n + i] += 1e-10 * trace / n + 1e-300;
    factor(n, a);
}

/* x = L^-1 v. */
static void solve_lower(int n, const double *low, const double *v, double *x)
{
    for (int i = 0; i < n; i++) {
        double sum = v[i];
        for (int k = 0; k < i; k++)
            sum -= low[i * n + k] * x[k];
        x[i] = sum / low[i * n + i];
    }
}

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* v less its share along the unit vector `along`. */
static void project(int n, const double *along, double *v)
{
    const double share = dot(n, along, v);
    for (int i = 0; i < n; i++)
        v[i] -= share * along[i];
}

/* What the data's side has beyond the rows' span stands behind them, so that
 * products with 1 are whole. target, one [n_q + 1]. */
static void make_sides(int n_q, const double *low, const double *form,
                       double *target, double *one)
{
    const double *gram = form + 2 * n_q;
    solve_lower(n_q, low, form, target);
    solve_lower(n_q, low, form + n_q, one);
    one[n_q] = sqrt(fmax(gram[2] - dot(n_q, one, one), 0.0));
    target[n_q] =
        one[n_q] > 0.0 ? (gram[1] - dot(n_q, target, one)) / one[n_q] : 0.0;
}

/* What rows are multiplied by so that squares of them keep within single
 * precision, whatever the unit of the data; any will do where the scale is
 * free. */
static double row_unit(const tsr_linear *l, int n_q, const double *low)
{
    double largest = 0.0;
    for (int q = 0; q < n_q; q++)
        for (int i = 0; i <= q; i++)
            largest = fmax(largest, fabs(low[q * n_q + i]));
    return l->infer_scale && largest > 0.0 ? 1.0 / largest : 1.0;
}

/* form: normal [n_q][n_q] and what follows it; work [3][n_q + 1]. */
static void put_curve(const tsr_linear *l, int n_q, double *form, double *work,
                      float *out)
{
    const int n_row = n_q + 1;
    double *target = work, *one = work + n_row, *row = work + 2 * (size_t)n_row;
    factor_normal(n_q, form);
    make_sides(n_q, form, form + (size_t)n_q * (size_t)n_q, target, one);
    const double norm = sqrt(dot(n_row, one, one));
    const double unit = row_unit(l, n_q, form);
    const int is_free = l->infer_background && norm > 0.0;
    for (int i = 0; i < n_row; i++) {
        if (is_free)
            one[i] /= norm;
        else
            target[i] -= l->infer_background ? 0.0 : l->background * one[i];
    }
    if (is_free)
        project(n_row, one, target);
    for (int q = 0; q < n_q; q++) {
        for (int i = 0; i < n_row; i++)
            row[i] = i <= q ? form[q * n_q + i] : 0.0;
        if (is_free)
            project(n_row, one, row);
        for (int i = 0; i < n_row; i++)
            out[q * n_row + i] = (float)(unit * row[i]);
    }
    out += (ptrdiff_t)n_q * n_row;
    for (int i = 0; i < n_row; i++)
        out[i] = (float)target[i];
    out[n_row] = l->infer_scale ? 0.0F : (float)l->scale;
}

int tsr_surrogate_data_n_curve(const tsr_surrogate_data *data)
{
    return data->n_curve;
}

/* Rows, target and scale of a curve in a job. */
static size_t curve_size(size_t n_q)
{
    return (n_q + 1) * (n_q + 1) + 1;
}

static tsr_status fill_curve(const tsr_surrogate_data *data, const curve *c,
                             double spread, float *out, tsr_err *err)
{
    const size_t n_q = (size_t)data->likelihood->grid.n_q;
    double *form =
        calloc(form_size(data) + (TSR_MODEL_ERRORS + 1) * n_q + 3 * (n_q + 1),
               sizeof *form);
    TSR_TRY(tsr_allocated(form, err));
    double *low = form + form_size(data);
    set_curve(c, n_q, spread, form, low);
    put_curve(c->linear, (int)n_q, form, low + (TSR_MODEL_ERRORS + 1) * n_q,
              out);
    free(form);
    return TSR_OK;
}

/* The curve at the number of ln s, made by whoever asks first: the same bits,
 * should two threads make it at once. */
static tsr_status find_curve(const tsr_surrogate_data *data, curve *c, int k,
                             const float **out, tsr_err *err)
{
    const size_t size = curve_size((size_t)data->likelihood->grid.n_q);
    _Atomic(float *) *ready = &c->ready[MOST_SPREADS + k];
    float *before = atomic_load(ready);
    *out = before;
    if (before != NULL)
        return TSR_OK;
    float *made = calloc(size, sizeof *made);
    TSR_TRY(tsr_allocated(made, err));
    const tsr_status status =
        fill_curve(data, c, exp(spread_step * k), made, err);
    if (status != TSR_OK ||
        !atomic_compare_exchange_strong(ready, &before, made)) {
        free(made);
        made = before;
    }
    *out = made;
    return status;
}

tsr_status tsr_surrogate_data_fill(const tsr_surrogate_data *data,
                                   const double *theta, float *out,
                                   tsr_err *err)
{
    const size_t size = curve_size((size_t)data->likelihood->grid.n_q);
    for (int d = 0; d < data->n_curve; d++, out += size) {
        curve *c = &data->curve[d];
        const tsr_term *t = data->likelihood->term[c->term];
        const double log_s = c->has_spread ? theta[t->first] : 0.0;
        const double most = MOST_SPREADS * spread_step;
        const float *ready;
        TSR_TRY(find_curve(
            data, c, (int)lround(fmin(fmax(log_s, -most), most) / spread_step),
            &ready, err));
        memcpy(out, ready, size * sizeof *out);
    }
    return TSR_OK;
}

tsr_surrogate_data *tsr_surrogate_data_new(const tsr_likelihood *likelihood)
{
    tsr_surrogate_data *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->likelihood = likelihood;
    g->curve = calloc((size_t)likelihood->n_term + 1, sizeof *g->curve);
    int ok = g->curve != NULL;
    for (int d = 0; d < likelihood->n_term && ok; d++)
        if (likelihood->term[d]->type == &tsr_term_saxs)
            ok = make_curve(g, d);
    if (!ok) {
        tsr_surrogate_data_free(g);
        return NULL;
    }
    return g;
}

/* ---- distances ---- */

static double sinc(double x)
{
    return fabs(x) < 1e-6 ? 1.0 : sin(x) / x;
}

/* Sharing a distance between two knots widens it by a triangle, whose
 * transform, sinc(q h / 2)^2, is taken out. */
int tsr_surrogate_knots(const tsr_likelihood *likelihood,
                        tsr_surrogate_spec *spec)
{
    const double longest_ang = 0.5, part = 0.2; /* of 1 / q_max */
    const tsr_q_grid *grid = &likelihood->grid;
    tsr_surrogate_spec *p = spec;
    const double apart =
        fmin(longest_ang, part / (grid->dq_inv_ang * (grid->n_q - 1)));
    p->n_q = grid->n_q;
    p->dq_inv_ang = (float)grid->dq_inv_ang;
    p->n_knot = (int)(grid->band_ang / apart) + 3;
    p->knots_per_ang = (float)(1.0 / apart);
    p->sinc = calloc((size_t)p->n_knot * (size_t)p->n_q, sizeof *p->sinc);
    for (int b = 0; b < p->n_knot && p->sinc != NULL; b++)
        for (int q = 0; q < p->n_q; q++) {
            const double k = q * grid->dq_inv_ang * apart;
            p->sinc[b * p->n_q + q] =
                (float)(sinc(k * b) / pow(sinc(0.5 * k), 2.0));
        }
    return p->sinc != NULL;
}
