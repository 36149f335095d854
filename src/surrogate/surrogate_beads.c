/* Beads, their shapes, and what stays of their curve.
 *
 * The form factors of beads, and of their water, are met by two shapes of q,
 * the same for all: the protein's sum, and what explains most of the rest,
 * weighted towards small q. Pairs inside a rigid unit keep their distances, so
 * that their curve is known once and exactly, body by body; so is every bead's
 * own. */
#include "surrogate/surrogate_beads.h"

#include "core/vec3.h"
#include "likelihood/term_saxs.h"
#include "surrogate/surrogate_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where form factors are to be met best, 1/A. */
static const double shape_width = 0.1;

enum {
    SHAPES = TSR_SURROGATE_SHAPES,
    PRODUCTS = TSR_SURROGATE_PRODUCTS,
    POWERS = TSR_SURROGATE_POWERS
};

struct tsr_surrogate_beads {
    const tsr_likelihood *likelihood;
    int n_bead, has_water;
    tsr_bead *bead;   /* [n_bead] */
    double *factor;   /* [n_bead][n_comp][n_q] */
    double *constant; /* [n_pair][n_q] of pairs whose distance stays */
    double *amount;   /* [SHAPES][n_row] where c1 is fixed; NULL: it is not */
    double *shape;    /* [SHAPES][n_q] likewise */
    double *more; /* [SHAPES][n_row] by which rigid units scatter as they do,
                     where c1 starts */
};

/* What one job is made with. */
typedef struct {
    const tsr_surrogate_beads *beads;
    double contrast[TSR_N_CONTRAST];
    double (*coefficient)[TSR_N_COMP]; /* [n_q] of the components there */
    int n_row;      /* beads, and once more for their water */
    double *all;    /* [n_row][n_q] what of form factors is left to meet */
    double *amount; /* [SHAPES][n_row] */
    double *shape;  /* [SHAPES][n_q] */
    double *fixed;  /* [n_pair][n_q] partial profiles of what stays */
    double *work;   /* [n_q] */
} making;

static double dot(size_t n, const double *a, const double *b)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- beads ---- */

int tsr_surrogate_n_bead(const tsr_surrogate_beads *beads)
{
    return beads->n_bead;
}

const tsr_bead *tsr_surrogate_bead(const tsr_surrogate_beads *beads, int bead)
{
    return &beads->bead[bead];
}

int tsr_surrogate_has_water(const tsr_surrogate_beads *beads)
{
    return beads->has_water;
}

/* ---- what does not change ---- */

/* Of bodies also where the likelihood is of particles. */
static int n_body_type(const tsr_probe *p)
{
    return p->body_type != NULL ? p->n_body_type : p->n_type;
}

static const double *factor_of(const tsr_likelihood *l, int k, int body)
{
    const tsr_probe *p = l->probe;
    const int *type = p->body_type != NULL ? p->body_type : p->type;
    return (p->body_type != NULL ? p->body_amplitude : p->amplitude) +
           ((size_t)k * (size_t)n_body_type(p) + (size_t)type[body]) *
               (size_t)l->grid.n_q;
}

/* A bead's form factors: of its bodies about their centre. */
static void make_factors(tsr_surrogate_beads *g, const double (*body)[3],
                         double *work)
{
    const tsr_likelihood *l = g->likelihood;
    const int n_q = l->grid.n_q;
    double *out = g->factor;
    for (int b = 0; b < g->n_bead; b++)
        for (int k = 0; k < l->probe->n_comp; k++, out += n_q) {
            double x[3];
            tsr_bead_centre(&g->bead[b], body, x);
            for (int i = 0; i < g->bead[b].count; i++) {
                const int at = g->bead[b].first + i;
                const double *f = factor_of(l, k, at);
                tsr_sinc_series(
                    n_q, l->grid.dq_inv_ang * tsr_vec3_distance(x, body[at]),
                    work);
                for (int j = 0; j < n_q; j++)
                    out[j] += f[j] * work[j];
            }
        }
}

/* A pair of bodies (or one) in the constant part. */
static void add_constant(tsr_surrogate_beads *g, int u, int v, const double *s)
{
    const tsr_likelihood *l = g->likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    double *out = g->constant;
    for (int c = 0; c < l->probe->n_comp; c++)
        for (int d = c; d < l->probe->n_comp; d++)
            for (size_t q = 0; q < n_q; q++)
                *out++ += (u == v ? 0.5 : 1.0) * s[q] *
                          (factor_of(l, c, u)[q] * factor_of(l, d, v)[q] +
                           factor_of(l, c, v)[q] * factor_of(l, d, u)[q]);
}

static int last_unit(const tsr_surrogate_beads *g)
{
    int last = -1;
    for (int b = 0; b < g->n_bead; b++)
        last = g->bead[b].unit > last ? g->bead[b].unit : last;
    return last;
}

static int stays(const tsr_surrogate_beads *g, int a, int b)
{
    return a == b ||
           (g->bead[a].unit >= 0 && g->bead[a].unit == g->bead[b].unit);
}

/* Of units that have particles all pairs of these, of others those of their
 * bodies. */
static tsr_status make_constant(tsr_surrogate_beads *g, const double (*body)[3],
                                double *s, tsr_err *err)
{
    const tsr_likelihood *l = g->likelihood;
    const tsr_q_grid *grid = &l->grid;
    for (int unit = 0; unit <= last_unit(g); unit++)
        if (tsr_unit_n_particle(l, unit) > 0)
            TSR_TRY(tsr_unit_add_pairs(l, unit, g->constant, err));
    for (int a = 0; a < g->n_bead; a++) {
        const tsr_bead *p = &g->bead[a];
        if (tsr_unit_n_particle(l, p->unit) > 0)
            continue;
        for (int b = a; b < g->n_bead; b++) {
            const tsr_bead *w = &g->bead[b];
            if (!stays(g, a, b))
                continue;
            for (int u = p->first; u < p->first + p->count; u++)
                for (int v = a == b ? u : w->first; v < w->first + w->count;
                     v++) {
                    tsr_sinc_series(grid->n_q,
                                    grid->dq_inv_ang *
                                        tsr_vec3_distance(body[u], body[v]),
                                    s);
                    add_constant(g, u, v, s);
                }
        }
    }
    return TSR_OK;
}

static int knows_water(const tsr_likelihood *l)
{
    const tsr_parameter *p = &l->contrast[TSR_C2];
    return l->probe->n_comp > 1 && p->infer && !p->is_log &&
           p->shape == TSR_PRIOR_CUT_NORMAL;
}

/* ---- shapes ---- */

/* Form factors of the protein at c1, or of its water: of components that are
 * `stride` numbers apart. Without c2 inferred the water is part of the protein.
 */
static void put_factors(const making *s, const double *component, size_t stride,
                        int is_water, double *out)
{
    const tsr_likelihood *l = s->beads->likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t end = (size_t)l->probe->n_comp - (size_t)s->beads->has_water;
    for (size_t q = 0; q < n_q; q++) {
        out[q] = is_water ? component[end * stride + q] : 0.0;
        for (size_t k = 0; k < end && !is_water; k++)
            out[q] += s->coefficient[q][k] * component[k * stride + q];
    }
}

/* Rows of `all`: the protein's, then the water's. The first shape is the
 * protein's sum. */
static void set_factors(making *s)
{
    const tsr_surrogate_beads *g = s->beads;
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    const size_t each = (size_t)g->likelihood->probe->n_comp * n_q;
    const size_t n = (size_t)g->n_bead;
    for (size_t b = 0; b < n; b++) {
        const double *own = g->factor + b * each;
        double *row = s->all + b * n_q;
        put_factors(s, own, n_q, 0, row);
        for (size_t q = 0; q < n_q; q++)
            s->shape[q] += row[q];
        if (g->has_water)
            put_factors(s, own, n_q, 1, s->all + (n + b) * n_q);
    }
}

/* Every row's amount of a shape, by least squares. */
static void take_amounts(making *s, int m)
{
    const size_t n_q = (size_t)s->beads->likelihood->grid.n_q;
    const double dq = s->beads->likelihood->grid.dq_inv_ang;
    const double *shape = s->shape + (size_t)m * n_q;
    double norm = 0.0;
    for (size_t q = 0; q < n_q; q++) {
        const double x = (double)q * dq / shape_width;
        s->work[q] = shape[q] * exp(-x * x);
        norm += s->work[q] * shape[q];
    }
    for (int b = 0; b < s->n_row; b++)
        s->amount[m * s->n_row + b] =
            norm > 0.0 ? dot(n_q, s->work, s->all + (size_t)b * n_q) / norm
                       : 0.0;
}

static void take_off(making *s, int m)
{
    const size_t n_q = (size_t)s->beads->likelihood->grid.n_q;
    for (int b = 0; b < s->n_row; b++)
        for (size_t q = 0; q < n_q; q++)
            s->all[(size_t)b * n_q + q] -=
                s->amount[m * s->n_row + b] * s->shape[(size_t)m * n_q + q];
}

/* The shape that leaves the least to be explained: power iterations, from one
 * that grows with q. */
static void find_shape(making *s, int m)
{
    enum { ITERATIONS = 6 };
    const size_t n_q = (size_t)s->beads->likelihood->grid.n_q;
    double *shape = s->shape + (size_t)m * n_q;
    for (size_t q = 0; q < n_q; q++)
        shape[q] = (double)(q + 1);
    for (int k = 0; k < ITERATIONS; k++) {
        take_amounts(s, m);
        const double *amount = s->amount + m * s->n_row;
        const double norm = dot((size_t)s->n_row, amount, amount);
        if (!(norm > 0.0))
            break;
        memset(shape, 0, n_q * sizeof *shape);
        for (int b = 0; b < s->n_row; b++)
            for (size_t q = 0; q < n_q; q++)
                shape[q] += amount[b] / norm * s->all[(size_t)b * n_q + q];
    }
}

static void set_shapes(making *s)
{
    set_factors(s);
    for (int m = 0; m < SHAPES; m++) {
        if (m > 0)
            find_shape(s, m);
        take_amounts(s, m);
        take_off(s, m);
    }
}

/* 0: out of memory; clear it then too. */
static int making_init(making *s, const tsr_surrogate_beads *g,
                       const double *contrast)
{
    const tsr_likelihood *l = g->likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    *s = (making){.beads = g, .n_row = g->n_bead * (1 + g->has_water)};
    const size_t n = (size_t)s->n_row;
    s->all = calloc((n + SHAPES + (size_t)l->n_pair + 1 + TSR_N_COMP) * n_q +
                        SHAPES * n,
                    sizeof *s->all);
    if (s->all == NULL)
        return 0;
    s->shape = s->all + n * n_q;
    s->fixed = s->shape + SHAPES * n_q;
    s->work = s->fixed + (size_t)l->n_pair * n_q;
    s->amount = s->work + n_q;
    s->coefficient = (double(*)[TSR_N_COMP])(s->amount + SHAPES * n);
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        s->contrast[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (size_t q = 0; q < n_q; q++) {
        s->coefficient[q][0] = 1.0;
        tsr_likelihood_coefficients(l, 0, s->contrast, l->probe->power[q],
                                    s->coefficient[q]);
    }
    return 1;
}

/* ---- rigid units ---- */

/* The beads of a unit, and what scatters in it: its particles, or its bodies.
 */
typedef struct {
    int n_bead, n_body;
    int *bead;                     /* [n_bead] */
    double (*centre)[3], (*at)[3]; /* [n_bead], [n_body] */
    const double **component;      /* [n_body] form factors, those of the next
                                      component so far behind: */
    size_t stride;
    double *factor, *amount; /* [n_body][n_q], [SHAPES][n_bead] */
} unit_view;

static void find_unit(const tsr_surrogate_beads *g, int unit,
                      const double (*body)[3], unit_view *v)
{
    const tsr_likelihood *l = g->likelihood;
    const tsr_probe *p = l->probe;
    const size_t n_q = (size_t)l->grid.n_q;
    const int has_particles = tsr_unit_n_particle(l, unit) > 0;
    v->n_bead = v->n_body = 0;
    v->stride = n_q * (size_t)(has_particles ? p->n_type : n_body_type(p));
    for (int b = 0; b < g->n_bead; b++) {
        if (g->bead[b].unit != unit)
            continue;
        tsr_bead_centre(&g->bead[b], body, v->centre[v->n_bead]);
        v->bead[v->n_bead++] = b;
        for (int k = 0; k < g->bead[b].count && !has_particles; k++) {
            const int at = g->bead[b].first + k;
            v->component[v->n_body] = factor_of(l, 0, at);
            memcpy(v->at[v->n_body++], body[at], sizeof *v->at);
        }
    }
    const tsr_engine_inside *in = has_particles ? &l->particles->inside : NULL;
    for (int i = 0; in != NULL && i < in->n; i++) {
        if (in->unit[i] != unit)
            continue;
        v->component[v->n_body] = p->amplitude + (size_t)in->type[i] * n_q;
        memcpy(v->at[v->n_body++], in->xyz[i], sizeof *v->at);
    }
}

/* Of the protein's amounts, or of its water's. */
static int fit_unit(making *s, const unit_view *v, int is_water)
{
    const tsr_surrogate_beads *g = s->beads;
    const tsr_q_grid *grid = &g->likelihood->grid;
    const int first = is_water ? g->n_bead : 0;
    const size_t n_q = (size_t)grid->n_q;
    for (int i = 0; i < v->n_body; i++)
        put_factors(s, v->component[i], v->stride, is_water,
                    v->factor + (size_t)i * n_q);
    for (int m = 0; m < SHAPES; m++)
        for (int b = 0; b < v->n_bead; b++)
            v->amount[m * v->n_bead + b] =
                s->amount[m * s->n_row + first + v->bead[b]];
    if (!tsr_unit_fit(&(tsr_unit_beads){.n_bead = v->n_bead,
                                        .n_body = v->n_body,
                                        .n_q = grid->n_q,
                                        .dq_inv_ang = grid->dq_inv_ang,
                                        .width_inv_ang = shape_width,
                                        .centre = (const double(*)[3])v->centre,
                                        .body = (const double(*)[3])v->at,
                                        .factor = v->factor,
                                        .shape = s->shape,
                                        .amount = v->amount}))
        return 0;
    for (int m = 0; m < SHAPES; m++)
        for (int b = 0; b < v->n_bead; b++)
            s->amount[m * s->n_row + first + v->bead[b]] =
                v->amount[m * v->n_bead + b];
    return 1;
}

/* After set_shapes. 0: out of memory. */
static int fit_units(making *s, int n_body, const double (*body)[3])
{
    const tsr_surrogate_beads *g = s->beads;
    const tsr_particles *own = g->likelihood->particles;
    const size_t n = (size_t)g->n_bead, n_q = (size_t)g->likelihood->grid.n_q,
                 m = (size_t)(n_body + (own != NULL ? own->inside.n : 0));
    unit_view v = {.bead = calloc(n + 1, sizeof *v.bead),
                   .centre = calloc(n + m, sizeof *v.centre),
                   .component = calloc(m + 1, sizeof(*v.component)),
                   .factor = calloc(m * n_q + SHAPES * n, sizeof *v.factor)};
    int ok = v.bead != NULL && v.centre != NULL && v.component != NULL &&
             v.factor != NULL;
    const int last = last_unit(g);
    for (int unit = 0; unit <= last && ok; unit++) {
        v.at = v.centre + n, v.amount = v.factor + m * n_q;
        find_unit(g, unit, body, &v);
        for (int water = 0; water <= g->has_water && v.n_bead > 1; water++)
            ok &= fit_unit(s, &v, water);
    }
    free(v.bead);
    free(v.centre);
    free(v.component);
    free(v.factor);
    return ok;
}

/* Shapes depend on c1 alone. Where it is inferred, what makes units exact at
 * its start is nearly right elsewhere. */
static int keep_shapes(tsr_surrogate_beads *g, int n_body,
                       const double (*body)[3])
{
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    const int is_fixed = !g->likelihood->contrast[TSR_C1].infer;
    making s;
    int ok = making_init(&s, g, NULL);
    const size_t n = SHAPES * (size_t)s.n_row;
    g->more = calloc(n, sizeof *g->more);
    ok &= g->more != NULL;
    if (ok) {
        set_shapes(&s);
        for (size_t k = 0; k < n; k++)
            g->more[k] = -s.amount[k];
        ok = fit_units(&s, n_body, body);
        for (size_t k = 0; k < n; k++)
            g->more[k] += s.amount[k];
    }
    if (ok && is_fixed) {
        g->amount = malloc(n * sizeof *g->amount);
        g->shape = malloc(SHAPES * n_q * sizeof *g->shape);
        ok = g->amount != NULL && g->shape != NULL;
    }
    if (ok && is_fixed) {
        memcpy(g->amount, s.amount, n * sizeof *g->amount);
        memcpy(g->shape, s.shape, SHAPES * n_q * sizeof *g->shape);
    }
    free(s.all);
    return ok;
}

void tsr_surrogate_beads_free(tsr_surrogate_beads *beads)
{
    if (beads == NULL)
        return;
    free(beads->bead);
    free(beads->factor);
    free(beads->constant);
    free(beads->amount);
    free(beads->shape);
    free(beads->more);
    free(beads);
}

tsr_surrogate_beads *tsr_surrogate_beads_new(const tsr_topology *topology,
                                             const tsr_likelihood *likelihood,
                                             const tsr_conformation *first)
{
    const double(*body)[3] = (const double(*)[3])first->body;
    const tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    tsr_surrogate_beads *g = calloc(1, sizeof *g);
    double *work = calloc(n_q, sizeof *work);
    if (g != NULL) {
        g->likelihood = l;
        g->has_water = knows_water(l);
        g->n_bead = tsr_bead_list(topology, NULL);
        g->bead = calloc((size_t)g->n_bead, sizeof *g->bead);
        g->constant = calloc((size_t)l->n_pair * n_q, sizeof *g->constant);
        g->factor = calloc((size_t)(g->n_bead * l->probe->n_comp) * n_q,
                           sizeof *g->factor);
    }
    if (g == NULL || work == NULL || g->bead == NULL || g->constant == NULL ||
        g->factor == NULL) {
        tsr_surrogate_beads_free(g);
        free(work);
        return NULL;
    }
    tsr_bead_list(topology, g->bead);
    make_factors(g, body, work);
    const tsr_status status = make_constant(g, body, work, NULL);
    free(work);
    if (status != TSR_OK || !keep_shapes(g, topology->n_body, body)) {
        tsr_surrogate_beads_free(g);
        return NULL;
    }
    return g;
}

/* ---- a job ---- */

/* A curve of partial profiles by the powers of c2, where that is inferred. */
static void put_powers(making *s, const double *partial, const double *power,
                       const double *more, float *out)
{
    const tsr_likelihood *l = s->beads->likelihood;
    const int n_q = l->grid.n_q;
    double at[TSR_N_CONTRAST], f[POWERS];
    memcpy(at, s->contrast, sizeof at);
    for (int q = 0; q < n_q; q++) {
        const double by = more != NULL ? 1.0 + more[q] : 1.0;
        for (int k = 0; k < POWERS; k++) {
            if (s->beads->has_water)
                at[TSR_C2] = k - 1.0;
            f[k] =
                tsr_likelihood_combine(l, 0, partial, at, power[q], (size_t)q) *
                by;
        }
        out[q] = (float)f[1];
        out[n_q + q] = (float)(0.5 * (f[2] - f[0]));
        out[2 * n_q + q] = (float)(0.5 * (f[2] + f[0]) - f[1]);
    }
}

static void put_rest(making *s, const tsr_surrogate_mix *mix,
                     const tsr_surrogate_layout *at, float *job)
{
    const tsr_likelihood *l = s->beads->likelihood;
    const tsr_view *v = l->view;
    const int n_q = l->grid.n_q;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    for (size_t k = 0; k < n; k++)
        s->fixed[k] = mix->weight * s->beads->constant[k] + l->self[k] +
                      (mix->others != NULL ? mix->others[k] : 0.0);
    put_powers(s, s->fixed, l->probe->power, NULL, job + at->rest);
    if (v->atoms != NULL) {
        put_powers(s, v->atoms, v->atom_power, mix->learnt, job + at->top);
        put_powers(s, v->bodies, l->probe->power, NULL, job + at->bottom);
        return;
    }
    for (int k = 0; k < POWERS * n_q; k++) {
        job[at->top + k] = k < n_q ? (float)(1.0 + mix->learnt[k]) : 0.0F;
        job[at->bottom + k] = k < n_q ? 1.0F : 0.0F;
    }
}

/* Counts are integers: of product 00 all of them together stay below 2^30, and
 * one pair's below 2^22; the others have 16 bits for what falls on one knot, an
 * eighth of all at most: their rounding is what makes the surrogate differ from
 * double precision, by some 0.01 nat in small molecules. Where the bits do not
 * do the surrogate is worse, nothing else. The units are the same wherever c2
 * is: a walk back from the end has to round as the walk there did. */
static void put_shapes(making *s, double weight, const tsr_surrogate_layout *at,
                       float *job)
{
    static const int pair[PRODUCTS][2] = {{0, 0}, {0, 1}, {1, 1}};
    static const double room[PRODUCTS] = {0x1p30, 0x1p18, 0x1p18};
    const int n = s->beads->n_bead, n_q = s->beads->likelihood->grid.n_q;
    const int has_water = s->beads->has_water;
    const tsr_parameter *water_prior = &s->beads->likelihood->contrast[TSR_C2];
    const double c2 = fmax(fabs(water_prior->low), fabs(water_prior->high));
    double size[SHAPES] = {0.0}, largest = 0.0;
    for (int m = 0; m < SHAPES; m++)
        for (int b = 0; b < n; b++) {
            const double *own = s->amount + m * s->n_row + b;
            const double water = has_water ? own[n] : 0.0;
            const double most =
                fabs(own[0]) + (has_water ? c2 * fabs(water) : 0.0);
            size[m] += most;
            largest = m == 0 ? fmax(largest, most) : largest;
            job[at->amount + 4 * b + m] = (float)own[0];
            job[at->amount + 4 * b + 2 + m] = (float)water;
        }
    for (int k = 0; k < PRODUCTS; k++) {
        const double most = size[pair[k][0]] * size[pair[k][1]];
        double unit = most > 0.0 ? room[k] / most : 0.0;
        if (k == 0 && largest > 0.0)
            unit = fmin(unit, 0x1p22 / (largest * largest));
        job[at->unit + k] = (float)unit;
    }
    for (int k = 0; k < SHAPES * n_q; k++) /* a pair counts twice */
        job[at->shape + k] = (float)(sqrt(2.0 * weight) * s->shape[k]);
}

tsr_status tsr_surrogate_beads_fill(const tsr_surrogate_beads *beads,
                                    const tsr_surrogate_mix *mix,
                                    const tsr_surrogate_layout *layout,
                                    float *job, tsr_err *err)
{
    const size_t n_q = (size_t)beads->likelihood->grid.n_q;
    making s;
    if (!making_init(&s, beads, mix->contrast))
        return tsr_no_memory(err);
    double *const room = s.all;
    if (beads->amount == NULL) {
        set_shapes(&s);
        for (int k = 0; k < SHAPES * s.n_row; k++)
            s.amount[k] += beads->more[k];
    } else {
        memcpy(s.amount, beads->amount,
               SHAPES * (size_t)s.n_row * sizeof *s.amount);
        memcpy(s.shape, beads->shape, SHAPES * n_q * sizeof *s.shape);
    }
    put_rest(&s, mix, layout, job);
    put_shapes(&s, mix->weight, layout, job);
    free(room);
    return TSR_OK;
}
