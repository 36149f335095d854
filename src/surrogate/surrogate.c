/* Makes the surrogate of a run: the molecule as points, beads and torsions, the
 * quadratic forms of the measured curves, and the jobs of chains. */
#include "surrogate/surrogate.h"

#include "core/pool.h"
#include "core/vec3.h"
#include "likelihood/term_saxs.h"
#include "molecule/points.h"
#include "scattering/plane_wave.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPES = TSR_SURROGATE_SHAPES,
    PRODUCTS = TSR_SURROGATE_PRODUCTS,
    POWERS = TSR_SURROGATE_POWERS
};

/* ---- jobs ---- */

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec)
{
    const int q = spec->n_q;
    tsr_surrogate_layout l = {.head = 0, .count_unit = 8};
    l.n_row = q + 1;
    l.curve_size = q * l.n_row + l.n_row + 1;
    l.angle = l.count_unit + TSR_SURROGATE_PRODUCTS;
    l.width = l.angle + 2 * spec->n_slot;
    l.factor = l.width + spec->n_torsion + 1 + spec->n_linker;
    l.amount = l.factor + spec->n_linker * TSR_SURROGATE_FACTOR;
    l.shape = l.amount + 4 * spec->n_bead;
    l.constant = l.shape + TSR_SURROGATE_SHAPES * q;
    l.numerator = l.constant + TSR_SURROGATE_POWERS * q;
    l.denominator = l.numerator + TSR_SURROGATE_POWERS * q;
    l.curve = l.denominator + TSR_SURROGATE_POWERS * q;
    l.size = l.curve + spec->n_curve * l.curve_size;
    return l;
}

/* ---- beads ---- */

/* Points of a flexible residue, in the order in which torsions move them. */
enum { POINT_N, POINT_CB, POINT_SC, POINT_CA, POINT_C, POINT_O, N_POINT };

/* Number of residues in a bead of a rigid unit. A rigid protein has about
 * RIGID_BEADS beads of at most SMALL_BEAD residues. In a large protein, where
 * pairs of beads take most of a walk's time, there are about MAX_BEADS beads of
 * at most MAX_RESIDUES residues. In the ligase
 * (552 rigid residues, errors of 0.35 %) walks by beads of two residues are
 * accepted as often as walks by beads of four, and take 1.5 times as long. */
enum { RIGID_BEADS = 60, SMALL_BEAD = 4, MAX_RESIDUES = 8, MAX_BEADS = 200 };

/* Strength of the regularisation of amounts, relative to a bead's own diagonal
 * element. */
static const double ridge = 1e-4;

/* A fraction of the scattering without interference, of beads and of bodies,
 * that is added to a unit's curve in the weights of q. The weights then stay
 * finite where the amplitude of the beads vanishes. */
static const double min_curve = 0.01;

static int can_join(const tsr_topology *t, int a, int b)
{
    const tsr_residue *i = &t->residue[a], *j = &t->residue[b];
    return i->unit >= 0 && i->unit == j->unit &&
           i->chain_first == j->chain_first;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int residues_of_bead(const tsr_topology *t)
{
    int n_rigid = 0;
    for (int i = 0; i < t->n_residue; i++)
        n_rigid += t->residue[i].unit >= 0;
    const int usual = smaller(1 + n_rigid / RIGID_BEADS, SMALL_BEAD);
    const int large = smaller(n_rigid / MAX_BEADS, MAX_RESIDUES);
    return large > usual ? large : usual;
}

/* Lists the beads (out NULL: counts only). Returns their number. */
static int list_beads(const tsr_topology *t, tsr_bead *out)
{
    const int most = residues_of_bead(t);
    int n = 0;
    for (int i = 0; i < t->n_residue;) {
        const tsr_residue *r = &t->residue[i];
        int count = 1;
        while (count < most && i + count < t->n_residue &&
               can_join(t, i, i + count))
            count++;
        const tsr_residue *z = &t->residue[i + count - 1];
        const int end = z->first_body + z->n_body;
        const int each = r->unit >= 0 ? end - r->first_body : 1;
        for (int b = r->first_body; b < end; b += each, n++)
            if (out != NULL)
                out[n] = (tsr_bead){b, each, r->unit};
        i += count;
    }
    return n;
}

/* Weights of the points in the centre of body b, 0 or 1, of a flexible
 * residue. */
static void body_point_weights(const tsr_residue *r, int b,
                               double weight[N_POINT])
{
    const double n = tsr_atom_mass(7), c = tsr_atom_mass(6),
                 o = tsr_atom_mass(8);
    const double side = tsr_amino_has_side_chain(r->amino)
                            ? tsr_amino_side_chain_mass(r->amino)
                            : 0.0;
    double sum = 0.0;
    memset(weight, 0, N_POINT * sizeof *weight);
    if (b == 0) {
        weight[POINT_N] = n, weight[POINT_CA] = weight[POINT_C] = c;
        weight[POINT_O] = o;
        weight[POINT_CB] = r->amino != TSR_GLY ? c : 0.0;
    }
    if (b == 1 || r->n_body == 1)
        weight[POINT_SC] = b == 1 ? 1.0 : side;
    for (int k = 0; k < N_POINT; k++)
        sum += weight[k];
    for (int k = 0; k < N_POINT; k++)
        weight[k] /= sum;
}

void tsr_bead_centre(const tsr_bead *bead, const double (*body)[3], double x[3])
{
    x[0] = x[1] = x[2] = 0.0;
    for (int i = 0; i < bead->count; i++)
        for (int d = 0; d < 3; d++)
            x[d] += body[bead->first + i][d] / bead->count;
}

/* ---- amounts of a rigid unit ---- */

void tsr_sinc_series(int n_q, double x, double *out)
{
    const double twice = 2.0 * cos(x);
    double before = 0.0, sine = sin(x);
    out[0] = 1.0;
    for (int j = 1; j < n_q; j++) {
        out[j] = fabs(x) < 1e-6 ? 1.0 : sine / (j * x);
        const double next = twice * sine - before;
        before = sine, sine = next;
    }
}

typedef struct {
    const tsr_unit_beads *unit;
    double *sinc, *weight, *curve; /* [n_q] */
    double *gram, *side;           /* [n][n], [n]: n = SHAPES n_bead */
} fit;

static double shape_at(const fit *f, int m, int q)
{
    return f->unit->shape[(ptrdiff_t)m * f->unit->n_q + q];
}

static void series_at(const fit *f, const double x[3], const double y[3])
{
    tsr_sinc_series(f->unit->n_q, f->unit->dq_inv_ang * tsr_vec3_distance(x, y),
                    f->sinc);
}

/* Amplitude of bead b at q with its present amounts. */
static double bead_at(const fit *f, int b, int q)
{
    double sum = 0.0;
    for (int m = 0; m < SHAPES; m++)
        sum += f->unit->amount[m * f->unit->n_bead + b] * shape_at(f, m, q);
    return sum;
}

/* Weights of q: errors count relative to the unit's own curve, and less at
 * large q, where data are less precise. */
static void set_weights(fit *f)
{
    const tsr_unit_beads *u = f->unit;
    for (int a = 0; a < u->n_bead; a++)
        for (int b = a; b < u->n_bead; b++) {
            const double times = a == b ? 1.0 + min_curve : 2.0;
            series_at(f, u->centre[a], u->centre[b]);
            for (int q = 0; q < u->n_q; q++)
                f->curve[q] +=
                    times * f->sinc[q] * bead_at(f, a, q) * bead_at(f, b, q);
        }
    for (int i = 0; i < u->n_body; i++)
        for (int q = 0; q < u->n_q; q++)
            f->curve[q] +=
                min_curve * pow(u->factor[(ptrdiff_t)i * u->n_q + q], 2.0);
    for (int q = 0; q < u->n_q; q++) {
        const double x = q * u->dq_inv_ang / u->width_inv_ang;
        f->weight[q] = f->curve[q] > 0.0 ? exp(-x * x) / f->curve[q] : 0.0;
    }
}

/* Elements of the normal equations for two beads. */
static void set_gram(fit *f, int a, int b)
{
    const tsr_unit_beads *u = f->unit;
    const int n_bead = u->n_bead, n = SHAPES * n_bead;
    series_at(f, u->centre[a], u->centre[b]);
    for (int m = 0; m < SHAPES; m++)
        for (int k = 0; k < SHAPES; k++) {
            const int i = m * n_bead + a, j = k * n_bead + b;
            double sum = 0.0;
            for (int q = 0; q < u->n_q; q++)
                sum += f->weight[q] * f->sinc[q] * shape_at(f, m, q) *
                       shape_at(f, k, q);
            f->gram[(ptrdiff_t)i * n + j] = f->gram[(ptrdiff_t)j * n + i] = sum;
        }
}

/* Right side of the normal equations for bead a: its products with the unit's
 * bodies. */
static void set_right_side(fit *f, int a)
{
    const tsr_unit_beads *u = f->unit;
    for (int i = 0; i < u->n_body; i++) {
        const double *own = u->factor + (ptrdiff_t)i * u->n_q;
        series_at(f, u->centre[a], u->body[i]);
        for (int m = 0; m < SHAPES; m++)
            for (int q = 0; q < u->n_q; q++)
                f->side[m * u->n_bead + a] +=
                    f->weight[q] * f->sinc[q] * shape_at(f, m, q) * own[q];
    }
}

/* Solves the normal equations; f->side becomes the change of the amounts.
 * Returns 0 if there is no solution. */
static int solve(fit *f)
{
    const size_t n = (size_t)(SHAPES * f->unit->n_bead);
    for (size_t i = 0; i < n; i++) {
        double *row = f->gram + i * n;
        for (size_t j = 0; j < n; j++)
            f->side[i] -= row[j] * f->unit->amount[j];
    }
    for (size_t i = 0; i < n; i++) {
        double *own = f->gram + i * (n + 1);
        *own = *own > 0.0 ? *own * (1.0 + ridge) : 1.0;
    }
    gsl_matrix_view gram = gsl_matrix_view_array(f->gram, n, n);
    gsl_vector_view side = gsl_vector_view_array(f->side, n);
    return gsl_linalg_cholesky_decomp1(&gram.matrix) == 0 &&
           gsl_linalg_cholesky_svx(&gram.matrix, &side.vector) == 0;
}

int tsr_unit_fit(const tsr_unit_beads *unit)
{
    const size_t n = (size_t)(SHAPES * unit->n_bead), n_q = (size_t)unit->n_q;
    double *workspace = calloc(3 * n_q + n * n + n, sizeof *workspace);
    if (workspace == NULL)
        return 0;
    fit f = {.unit = unit,
             .sinc = workspace,
             .weight = workspace + n_q,
             .curve = workspace + 2 * n_q,
             .gram = workspace + 3 * n_q,
             .side = workspace + 3 * n_q + n * n};
    set_weights(&f);
    for (int a = 0; a < unit->n_bead; a++) {
        for (int b = a; b < unit->n_bead; b++)
            set_gram(&f, a, b);
        set_right_side(&f, a);
    }
    if (solve(&f))
        for (size_t i = 0; i < n; i++)
            unit->amount[i] += f.side[i];
    free(workspace);
    return 1;
}

/* ---- shapes ----
 *
 * The form factors of beads and of their water are approximated by two shapes
 * of q, common to all beads. The first is the sum over the protein. The second
 * explains most of the residuals, weighted towards small q. Pairs inside a
 * rigid unit keep their distances, so that their contribution is computed once
 * and exactly, from all bodies. The same holds for pairs of bodies
 * in one bead. */

/* Width of the weight towards small q, 1/Angstrom. */
static const double shape_width = 0.1;

typedef struct {
    const tsr_likelihood *likelihood;
    int n_bead, has_water;
    tsr_bead *bead;   /* [n_bead] */
    double *factor;   /* [n_bead][n_comp][n_q] */
    double *constant; /* [n_pair][n_q] pairs whose distance is constant */
    double
        *amount;   /* [SHAPES][n_row] if c1 is constant; NULL: c1 is inferred */
    double *shape; /* [SHAPES][n_q] likewise */
    double *correction; /* [SHAPES][n_row] correction of amounts by
                     tsr_unit_fit, at the starting value of c1 */
} bead_set;

/* Data of one job while it is written. */
typedef struct {
    tsr_pool pool; /* holds the arrays below */
    const bead_set *beads;
    double contrast[TSR_N_CONTRAST];
    double (
        *coefficient)[TSR_N_COMP]; /* [n_q] coefficients of the components */
    int n_row;      /* beads, and a second time for their water */
    double *all;    /* [n_row][n_q] residuals of form factors */
    double *amount; /* [SHAPES][n_row] */
    double *shape;  /* [SHAPES][n_q] */
    double *fixed;  /* [n_pair][n_q] partial profiles that are constant */
    double *work;   /* [n_q] */
} job_builder;

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- the constant part ---- */

static const double *factor_of(const tsr_likelihood *l, int k, int body)
{
    const tsr_probe *p = l->probe;
    return p->amplitude +
           ((size_t)k * (size_t)p->n_type + (size_t)p->type[body]) *
               (size_t)l->grid.n_q;
}

/* Form factors of beads: orientational means over their bodies about their
 * centre. work [n_q]. */
static void compute_bead_factors(bead_set *g, const double (*body)[3],
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

/* Adds a pair of bodies (u = v: a body itself) to the constant part. */
static void add_constant(bead_set *g, int u, int v, const double *s)
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

static int last_unit(const bead_set *g)
{
    int last = -1;
    for (int b = 0; b < g->n_bead; b++)
        last = g->bead[b].unit > last ? g->bead[b].unit : last;
    return last;
}

static int is_constant(const bead_set *g, int a, int b)
{
    return a == b ||
           (g->bead[a].unit >= 0 && g->bead[a].unit == g->bead[b].unit);
}

/* Sums the pairs of bodies whose distance is constant: within a unit, and
 * within a bead. s [n_q]: scratch. */
static void compute_constant(bead_set *g, const double (*body)[3], double *s)
{
    const tsr_likelihood *l = g->likelihood;
    const tsr_q_grid *grid = &l->grid;
    for (int a = 0; a < g->n_bead; a++) {
        const tsr_bead *p = &g->bead[a];
        for (int b = a; b < g->n_bead; b++) {
            const tsr_bead *w = &g->bead[b];
            if (!is_constant(g, a, b))
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
}

static int infers_water(const tsr_likelihood *l)
{
    const tsr_parameter *p = &l->contrast[TSR_C2];
    return l->probe->n_comp > 1 && p->infer && !p->is_log &&
           p->shape == TSR_PRIOR_CUT_NORMAL;
}

/* ---- fitting shapes ---- */

/* Form factor of the protein at c1, or of its water, from components that are
 * `stride` elements apart. If c2 is not inferred, the water is part of the
 * protein. */
static void compute_factor(const job_builder *s, const double *component,
                           size_t stride, int is_water, double *out)
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

/* Computes the rows of `all`: the form factors of beads, then those of their
 * water. The first shape is the sum over the beads. */
static void compute_factors(job_builder *s)
{
    const bead_set *g = s->beads;
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    const size_t each = (size_t)g->likelihood->probe->n_comp * n_q;
    const size_t n = (size_t)g->n_bead;
    for (size_t b = 0; b < n; b++) {
        const double *own = g->factor + b * each;
        double *row = s->all + b * n_q;
        compute_factor(s, own, n_q, 0, row);
        for (size_t q = 0; q < n_q; q++)
            s->shape[q] += row[q];
        if (g->has_water)
            compute_factor(s, own, n_q, 1, s->all + (n + b) * n_q);
    }
}

/* Amount of shape m in each row, by least squares. */
static void fit_amounts(job_builder *s, int m)
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
            norm > 0.0 ? dot((int)n_q, s->work, s->all + (size_t)b * n_q) / norm
                       : 0.0;
}

static void subtract_shape(job_builder *s, int m)
{
    const size_t n_q = (size_t)s->beads->likelihood->grid.n_q;
    for (int b = 0; b < s->n_row; b++)
        for (size_t q = 0; q < n_q; q++)
            s->all[(size_t)b * n_q + q] -=
                s->amount[m * s->n_row + b] * s->shape[(size_t)m * n_q + q];
}

/* Finds shape m, which minimises the residuals, by power iteration from a shape
 * that increases with q. */
static void find_next_shape(job_builder *s, int m)
{
    enum { ITERATIONS = 6 };
    const size_t n_q = (size_t)s->beads->likelihood->grid.n_q;
    double *shape = s->shape + (size_t)m * n_q;
    for (size_t q = 0; q < n_q; q++)
        shape[q] = (double)(q + 1);
    for (int k = 0; k < ITERATIONS; k++) {
        fit_amounts(s, m);
        const double *amount = s->amount + m * s->n_row;
        const double norm = dot(s->n_row, amount, amount);
        if (!(norm > 0.0))
            break;
        memset(shape, 0, n_q * sizeof *shape);
        for (int b = 0; b < s->n_row; b++)
            for (size_t q = 0; q < n_q; q++)
                shape[q] += amount[b] / norm * s->all[(size_t)b * n_q + q];
    }
}

static void set_shapes(job_builder *s)
{
    compute_factors(s);
    for (int m = 0; m < SHAPES; m++) {
        if (m > 0)
            find_next_shape(s, m);
        fit_amounts(s, m);
        subtract_shape(s, m);
    }
}

/* The caller clears s->pool, also after an error. */
static tsr_status start_builder(job_builder *s, const bead_set *g,
                                const double *contrast, tsr_err *err)
{
    const tsr_likelihood *l = g->likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    *s = (job_builder){.beads = g, .n_row = g->n_bead * (1 + g->has_water)};
    const size_t n = (size_t)s->n_row;
    tsr_pool_array(&s->pool, s->all, n * n_q);
    tsr_pool_array(&s->pool, s->shape, SHAPES * n_q);
    tsr_pool_array(&s->pool, s->fixed, (size_t)l->n_pair * n_q);
    tsr_pool_array(&s->pool, s->work, n_q);
    tsr_pool_array(&s->pool, s->amount, SHAPES * n);
    tsr_pool_array(&s->pool, s->coefficient, n_q);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        s->contrast[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (size_t q = 0; q < n_q; q++) {
        s->coefficient[q][0] = 1.0;
        tsr_likelihood_coefficients(l, 0, s->contrast, l->probe->power[q],
                                    s->coefficient[q]);
    }
    return TSR_OK;
}

/* ---- rigid units ---- */

/* The beads of a unit, and its bodies. */
typedef struct {
    int n_bead, n_body;
    int *bead;                     /* [n_bead] */
    double (*centre)[3], (*at)[3]; /* [n_bead], [n_body] */
    const double **component; /* [n_body] form factors; the next component is
                                 `stride` elements behind */
    size_t stride;
    double *factor, *amount; /* [n_body][n_q], [SHAPES][n_bead] */
} unit_view;

static void set_unit_view(const bead_set *g, int unit, const double (*body)[3],
                          unit_view *v)
{
    const tsr_likelihood *l = g->likelihood;
    v->n_bead = v->n_body = 0;
    v->stride = (size_t)l->grid.n_q * (size_t)l->probe->n_type;
    for (int b = 0; b < g->n_bead; b++) {
        if (g->bead[b].unit != unit)
            continue;
        tsr_bead_centre(&g->bead[b], body, v->centre[v->n_bead]);
        v->bead[v->n_bead++] = b;
        for (int k = 0; k < g->bead[b].count; k++) {
            const int at = g->bead[b].first + k;
            v->component[v->n_body] = factor_of(l, 0, at);
            memcpy(v->at[v->n_body++], body[at], sizeof *v->at);
        }
    }
}

/* Fits the amounts of a unit's protein, or of its water, in s->amount. Returns
 * 0 when out of memory. */
static int fit_unit(job_builder *s, const unit_view *v, int is_water)
{
    const bead_set *g = s->beads;
    const tsr_q_grid *grid = &g->likelihood->grid;
    const int first = is_water ? g->n_bead : 0;
    const size_t n_q = (size_t)grid->n_q;
    for (int i = 0; i < v->n_body; i++)
        compute_factor(s, v->component[i], v->stride, is_water,
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

/* Fits the amounts of all rigid units with more than one bead. Requires
 * set_shapes. */
static tsr_status fit_units(job_builder *s, int n_body, const double (*body)[3],
                            tsr_err *err)
{
    const bead_set *g = s->beads;
    const size_t n = (size_t)g->n_bead, n_q = (size_t)g->likelihood->grid.n_q,
                 m = (size_t)n_body;
    unit_view v = {0};
    tsr_pool_array(&s->pool, v.bead, n);
    tsr_pool_array(&s->pool, v.centre, n);
    tsr_pool_array(&s->pool, v.at, m);
    tsr_pool_array(&s->pool, v.component, m);
    tsr_pool_array(&s->pool, v.factor, m * n_q);
    tsr_pool_array(&s->pool, v.amount, SHAPES * n);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    for (int unit = 0, last = last_unit(g); unit <= last; unit++) {
        set_unit_view(g, unit, body, &v);
        for (int water = 0; water <= g->has_water && v.n_bead > 1; water++)
            if (!fit_unit(s, &v, water))
                return tsr_no_memory(err);
    }
    return TSR_OK;
}

/* Shapes depend on c1 alone. If c1 is inferred, the correction of rigid units
 * at its starting value is used for all values. */
static tsr_status store_shapes(job_builder *s, bead_set *g, tsr_pool *pool,
                               int n_body, const double (*body)[3],
                               tsr_err *err)
{
    const size_t n = SHAPES * (size_t)s->n_row,
                 n_shape = SHAPES * (size_t)g->likelihood->grid.n_q;
    tsr_pool_array(pool, g->correction, n);
    if (!g->likelihood->contrast[TSR_C1].infer) {
        tsr_pool_array(pool, g->amount, n);
        tsr_pool_array(pool, g->shape, n_shape);
    }
    TSR_TRY(tsr_pool_check(pool, err));
    set_shapes(s);
    for (size_t k = 0; k < n; k++)
        g->correction[k] = -s->amount[k];
    TSR_TRY(fit_units(s, n_body, body, err));
    for (size_t k = 0; k < n; k++)
        g->correction[k] += s->amount[k];
    if (g->amount != NULL) {
        memcpy(g->amount, s->amount, n * sizeof *g->amount);
        memcpy(g->shape, s->shape, n_shape * sizeof *g->shape);
    }
    return TSR_OK;
}

static tsr_status set_beads(bead_set *g, tsr_pool *pool,
                            const tsr_topology *topology,
                            const tsr_likelihood *l, const double (*body)[3],
                            tsr_err *err)
{
    const size_t n_q = (size_t)l->grid.n_q;
    job_builder s;
    g->likelihood = l;
    g->has_water = infers_water(l);
    g->n_bead = list_beads(topology, NULL);
    tsr_pool_array(pool, g->bead, g->n_bead);
    tsr_pool_array(pool, g->constant, (size_t)l->n_pair * n_q);
    tsr_pool_array(pool, g->factor,
                   (size_t)(g->n_bead * l->probe->n_comp) * n_q);
    TSR_TRY(tsr_pool_check(pool, err));
    list_beads(topology, g->bead);
    tsr_status status = start_builder(&s, g, NULL, err);
    if (status == TSR_OK)
        compute_bead_factors(g, body, s.work);
    if (status == TSR_OK)
        compute_constant(g, body, s.work);
    TSR_THEN(status, store_shapes(&s, g, pool, topology->n_body, body, err));
    tsr_pool_clear(&s.pool);
    return status;
}

/* Parameters c1 and c2 of the chain; NULL: they have their starting values. */
static const double *contrast_of(const tsr_move_context *context)
{
    return context->contrast < 0 ? NULL : context->theta + context->contrast;
}

/* ---- the beads in a job ---- */

/* Writes the curve of partial profiles of bodies or all atoms as a polynomial
 * in c2, out [POWERS][n_q], or as a constant if c2 is not inferred. The curve
 * is multiplied by 1 + correction [n_q] (NULL: 0). */
static void write_powers(job_builder *s, int is_atoms, const double *partial,
                         const double *correction, float *out)
{
    const tsr_likelihood *l = s->beads->likelihood;
    const int n_q = l->grid.n_q;
    double at[TSR_N_CONTRAST], f[POWERS];
    memcpy(at, s->contrast, sizeof at);
    for (int q = 0; q < n_q; q++) {
        const double by = correction != NULL ? 1.0 + correction[q] : 1.0;
        for (int k = 0; k < POWERS; k++) {
            if (s->beads->has_water)
                at[TSR_C2] = k - 1.0;
            f[k] = by * (is_atoms ? tsr_likelihood_combine_atoms(l, 0, partial,
                                                                 at, (size_t)q)
                                  : tsr_likelihood_combine(l, 0, partial, at,
                                                           l->probe->power[q],
                                                           (size_t)q));
        }
        out[q] = (float)f[1];
        out[n_q + q] = (float)(0.5 * (f[2] - f[0]));
        out[2 * n_q + q] = (float)(0.5 * (f[2] + f[0]) - f[1]);
    }
}

static void write_constant(job_builder *s, const tsr_move_context *context,
                           const double *ratio, const tsr_surrogate_layout *at,
                           float *job)
{
    const tsr_likelihood *l = s->beads->likelihood;
    const tsr_view *v = l->view;
    const int n_q = l->grid.n_q;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    for (size_t k = 0; k < n; k++)
        s->fixed[k] = context->weight * s->beads->constant[k] + l->self[k] +
                      (context->others != NULL ? context->others[k] : 0.0);
    write_powers(s, 0, s->fixed, NULL, job + at->constant);
    if (v->atoms != NULL) {
        write_powers(s, 1, v->atoms, ratio, job + at->numerator);
        write_powers(s, 0, v->bodies, NULL, job + at->denominator);
        return;
    }
    for (int k = 0; k < POWERS * n_q; k++) {
        job[at->numerator + k] = k < n_q ? (float)(1.0 + ratio[k]) : 0.0F;
        job[at->denominator + k] = k < n_q ? 1.0F : 0.0F;
    }
}

/* Units of the counts, which are integers. All counts of product 00 together
 * stay below 2^30, and those of one pair below 2^22. The other products have 16
 * bits for each knot, which receives at most an eighth of all counts. Rounding
 * makes the surrogate differ from double precision by about 0.01 nat in small
 * molecules. Too few bits would only make the surrogate less accurate. The
 * units do not depend on the current c2, because the reverse walk must round in
 * the same way. */
static void write_shapes(job_builder *s, double weight,
                         const tsr_surrogate_layout *at, float *job)
{
    static const int pair[PRODUCTS][2] = {{0, 0}, {0, 1}, {1, 1}};
    static const double headroom[PRODUCTS] = {0x1p30, 0x1p18, 0x1p18};
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
        double unit = most > 0.0 ? headroom[k] / most : 0.0;
        if (k == 0 && largest > 0.0)
            unit = fmin(unit, 0x1p22 / (largest * largest));
        job[at->count_unit + k] = (float)unit;
    }
    for (int k = 0; k < SHAPES * n_q; k++) /* each pair counts twice */
        job[at->shape + k] = (float)(sqrt(2.0 * weight) * s->shape[k]);
}

/* Writes count_unit, and amount to denominator, of a job. */
static tsr_status write_beads(const bead_set *beads,
                              const tsr_move_context *context,
                              const double *ratio,
                              const tsr_surrogate_layout *layout, float *job,
                              tsr_err *err)
{
    const size_t n_q = (size_t)beads->likelihood->grid.n_q;
    job_builder s;
    const tsr_status status =
        start_builder(&s, beads, contrast_of(context), err);
    if (status == TSR_OK && beads->amount == NULL) {
        set_shapes(&s);
        for (int k = 0; k < SHAPES * s.n_row; k++)
            s.amount[k] += beads->correction[k];
    } else if (status == TSR_OK) {
        memcpy(s.amount, beads->amount,
               SHAPES * (size_t)s.n_row * sizeof *s.amount);
        memcpy(s.shape, beads->shape, SHAPES * n_q * sizeof *s.shape);
    }
    if (status == TSR_OK) {
        write_constant(&s, context, ratio, layout, job);
        write_shapes(&s, context->weight, layout, job);
    }
    tsr_pool_clear(&s.pool);
    return status;
}

/* ---- curves ----
 *
 * With the operator M from the grid to the data, weights W = 1 / sigma^2 and
 * the model's own error E (as columns), the log likelihood of a curve d is
 *
 *     -1/2 (d - c M I - b)' (s^2 W^-1 + E E')^-1 (d - c M I - b).
 *
 * It is expanded into N = M' (...)^-1 M and the products with d and with 1.
 * Cholesky's N = L L' gives rows L' and the target L^-1 M' (...)^-1 d, so that
 * single precision suffices for differences between the two. A free background
 * is projected out. */

/* ln s is rounded to multiples of spread_step, at most MAX_SPREADS of them on
 * either side of 0, so that few factors are computed. Differences of log L are
 * then wrong by at most one per cent. The error is the same for a walk and its
 * reverse, since walks do not change s. */
static const double spread_step = 0.01;
enum { MAX_SPREADS = 400 };

/* A curve: products of the operator M with the data, weighted by
 * 1 / sigma^2. */
typedef struct {
    int term, n_error;
    const tsr_linear *linear;
    int has_spread; /* 1: s is a parameter, the first of the term */
    double *normal; /* [n_q][n_q] M' W M */
    double *vector; /* [2 + n_error][n_q] M' W times data, ones, errors */
    double
        *gram; /* [2 + n_error][2 + n_error] W products of data, ones, errors */
    _Atomic(float *) cache[2 * MAX_SPREADS + 1];
    /* rows [n_q][n_q + 1], target [n_q + 1] and scale, as in a job, for each
     * rounded ln s; NULL: not computed yet */
} curve;

typedef struct {
    tsr_pool pool;
    const tsr_likelihood *likelihood;
    int n_curve;
    curve *curve; /* [n_curve] */
} curve_set;

/* Elements of the quadratic form of a curve: normal [n_q][n_q], the products
 * with data and ones [2][n_q], and three products of data and ones. */
static size_t form_size(const curve_set *g)
{
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    return n_q * n_q + 2 * n_q + 3;
}

/* Element k of a vector: row 0 the data, 1 ones, then the model's errors. */
static double right_side_of(const tsr_saxs_term *t, double scale, int row,
                            int k)
{
    return row == 0   ? t->saxs->intensity[k]
           : row == 1 ? 1.0
                      : scale * t->error[(size_t)((row - 1) * t->saxs->n + k)];
}

/* Best scale of the reference curve, relative to which the model's errors are
 * given. */
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

static void add_curve(curve_set *g, int d)
{
    const tsr_saxs_term *t = (const void *)g->likelihood->term[d];
    const size_t n_q = (size_t)g->likelihood->grid.n_q;
    curve *c = &g->curve[g->n_curve];
    const int n_row = 2 + t->term.n_error;
    const double scale = reference_scale(t);
    *c = (curve){.term = d, .n_error = t->term.n_error, .linear = &t->linear};
    c->has_spread = t->n_noise > 0 && t->noise != &tsr_noise_relative;
    tsr_pool_array(&g->pool, c->normal, n_q * n_q);
    tsr_pool_array(&g->pool, c->vector, (size_t)n_row * n_q);
    tsr_pool_array(&g->pool, c->gram, n_row * n_row);
    g->n_curve++;
    if (g->pool.failed)
        return;
    for (int k = 0; k < t->saxs->n; k++) {
        const double w = 1.0 / (t->saxs->sigma[k] * t->saxs->sigma[k]);
        const double *m = t->matrix + (size_t)k * n_q;
        for (size_t i = 0; i < n_q; i++)
            for (size_t j = 0; j < n_q; j++)
                c->normal[i * n_q + j] += w * m[i] * m[j];
        for (int a = 0; a < n_row; a++) {
            const double v = w * right_side_of(t, scale, a, k);
            for (size_t i = 0; i < n_q; i++)
                c->vector[(size_t)a * n_q + i] += v * m[i];
            for (int b = 0; b < n_row; b++)
                c->gram[a * n_row + b] += v * right_side_of(t, scale, b, k);
        }
    }
}

static void curves_free(curve_set *data)
{
    if (data == NULL)
        return;
    for (int d = 0; d < data->n_curve; d++)
        for (int k = 0; k < 2 * MAX_SPREADS + 1; k++)
            free(atomic_load(&data->curve[d].cache[k]));
    tsr_pool_clear(&data->pool);
    free(data);
}

/* Cholesky factor, in place. */
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

/* Computes the quadratic form of a curve at s (spread), in the order of
 * form_size, into `normal`. The model's own error E is integrated out
 * (Woodbury):
 *
 *     (s^2 W^-1 + E E')^-1 = (W - W E (s^2 + E' W E)^-1 E' W) / s^2.
 *
 * low [n][n_q]: scratch for L^-1 E' W M. */
static void set_curve(const curve *c, size_t n_q, double spread, double *normal,
                      double *low)
{
    const int n = c->n_error, n_row = 2 + n;
    const double s2 = spread * spread;
    double *vector = normal + n_q * n_q, *gram = vector + 2 * n_q;
    double a[TSR_MODEL_ERRORS * TSR_MODEL_ERRORS];
    double side[TSR_MODEL_ERRORS][2]; /* solved with data and ones */
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

/* Cholesky factor of the normal matrix, in place. A small multiple of the
 * identity makes up for missing rank. */
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

/* Subtracts from v its component along the unit vector `along`. */
static void project(int n, const double *along, double *v)
{
    const double weight = dot(n, along, v);
    for (int i = 0; i < n; i++)
        v[i] -= weight * along[i];
}

/* Data and ones in the coordinates of the rows: target, one [n_q + 1] out. The
 * last element is the component outside of the rows' span, so that products
 * with ones are complete. low: factor L. */
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

/* Factor that keeps squares of the rows within single precision, whatever the
 * unit of the data. Only used with a free scale. */
static double row_unit(const tsr_linear *l, int n_q, const double *low)
{
    double largest = 0.0;
    for (int q = 0; q < n_q; q++)
        for (int i = 0; i <= q; i++)
            largest = fmax(largest, fabs(low[q * n_q + i]));
    return l->infer_scale && largest > 0.0 ? 1.0 / largest : 1.0;
}

/* Writes rows, target and scale of a curve, as in a job. form: the quadratic
 * form (set_curve), overwritten. work [3][n_q + 1]. */
static void write_curve(const tsr_linear *l, int n_q, double *form,
                        double *work, float *out)
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

/* Elements of rows, target and scale of a curve in a job. */
static size_t curve_size(size_t n_q)
{
    return (n_q + 1) * (n_q + 1) + 1;
}

static tsr_status compute_curve(const curve_set *data, const curve *c,
                                double spread, float *out, tsr_err *err)
{
    const size_t n_q = (size_t)data->likelihood->grid.n_q;
    double *form =
        calloc(form_size(data) + (TSR_MODEL_ERRORS + 1) * n_q + 3 * (n_q + 1),
               sizeof *form);
    TSR_TRY(tsr_allocated(form, err));
    double *low = form + form_size(data);
    set_curve(c, n_q, spread, form, low);
    write_curve(c->linear, (int)n_q, form, low + (TSR_MODEL_ERRORS + 1) * n_q,
                out);
    free(form);
    return TSR_OK;
}

/* Returns the curve at rounded ln s, k. The first thread that needs the curve
 * computes it. Two threads at once compute the same bits. */
static tsr_status find_curve(const curve_set *data, curve *c, int k,
                             const float **out, tsr_err *err)
{
    const size_t size = curve_size((size_t)data->likelihood->grid.n_q);
    _Atomic(float *) *cache = &c->cache[MAX_SPREADS + k];
    float *before = atomic_load(cache);
    *out = before;
    if (before != NULL)
        return TSR_OK;
    float *made = calloc(size, sizeof *made);
    TSR_TRY(tsr_allocated(made, err));
    const tsr_status status =
        compute_curve(data, c, exp(spread_step * k), made, err);
    if (status != TSR_OK ||
        !atomic_compare_exchange_strong(cache, &before, made)) {
        free(made);
        made = before;
    }
    *out = made;
    return status;
}

static tsr_status write_curves(const curve_set *data, const double *theta,
                               float *out, tsr_err *err)
{
    const size_t size = curve_size((size_t)data->likelihood->grid.n_q);
    for (int d = 0; d < data->n_curve; d++, out += size) {
        curve *c = &data->curve[d];
        const tsr_term *t = data->likelihood->term[c->term];
        const double log_s = c->has_spread ? theta[t->first] : 0.0;
        const double most = MAX_SPREADS * spread_step;
        const float *cache;
        TSR_TRY(find_curve(
            data, c, (int)lround(fmin(fmax(log_s, -most), most) / spread_step),
            &cache, err));
        memcpy(out, cache, size * sizeof *out);
    }
    return TSR_OK;
}

/* Quadratic forms of all curves of the likelihood, which is borrowed. */
static tsr_status curves_new(const tsr_likelihood *likelihood, curve_set **out,
                             tsr_err *err)
{
    curve_set *g = calloc(1, sizeof *g);
    *out = NULL;
    TSR_TRY(tsr_allocated(g, err));
    g->likelihood = likelihood;
    tsr_pool_array(&g->pool, g->curve, likelihood->n_term);
    for (int d = 0; d < likelihood->n_term && !g->pool.failed; d++)
        if (likelihood->term[d]->type == &tsr_term_saxs)
            add_curve(g, d);
    *out = g;
    return tsr_pool_check(&g->pool, err);
}

/* ---- knots of distances ---- */

static double sinc(double x)
{
    return fabs(x) < 1e-6 ? 1.0 : sin(x) / x;
}

/* Sets the knots and the sinc at each. Dividing a distance between two knots
 * convolves it with a triangle, whose transform sinc(q h / 2)^2 is divided
 * out. */
static void set_knots(const tsr_q_grid *grid, tsr_surrogate_spec *p,
                      tsr_pool *pool)
{
    const double longest_ang = 0.5, part = 0.2; /* fraction of 1 / q_max */
    const double apart =
        fmin(longest_ang, part / (grid->dq_inv_ang * (grid->n_q - 1)));
    p->n_q = grid->n_q;
    p->dq_inv_ang = (float)grid->dq_inv_ang;
    p->n_knot = (int)(grid->band_ang / apart) + 3;
    p->knots_per_ang = (float)(1.0 / apart);
    tsr_pool_array(pool, p->sinc, (size_t)p->n_knot * (size_t)p->n_q);
    for (int b = 0; b < p->n_knot && p->sinc != NULL; b++)
        for (int q = 0; q < p->n_q; q++) {
            const double k = q * grid->dq_inv_ang * apart;
            p->sinc[b * p->n_q + q] =
                (float)(sinc(k * b) / pow(sinc(0.5 * k), 2.0));
        }
}

/* ---- the surrogate ---- */

/* Torsions first..end-1 of the spec, which turn the same side of consecutive
 * residues. */
typedef struct {
    int first, end;
} run;

struct tsr_surrogate {
    tsr_pool pool;
    const tsr_topology *topology;
    const tsr_likelihood *likelihood;
    tsr_surrogate_spec spec;
    int *first_point; /* [n_residue + 1] */
    int *torsion;     /* [spec.n_torsion] index in the topology */
    int *slot;        /* [spec.n_slot] residue */
    int n_run;
    run *run; /* [n_run] */
    bead_set beads;
    curve_set *data;
};

/* ---- where a surrogate is possible ---- */

int tsr_surrogate_applies(const tsr_topology *t, const tsr_likelihood *l)
{
    int n_curve = 0;
    if (l == NULL || l->n_probe != 1 || l->n_view != 1 || l->n_mixture != 1 ||
        l->probe->is_neutron)
        return 0;
    /* attached chains and copies would not move */
    if (t->n_attached > 0 || t->symmetry.n > 1)
        return 0;
    for (int d = 0; d < l->n_term; d++) {
        const tsr_saxs_term *own = (const void *)l->term[d];
        if ((l->term[d]->type->needs & TSR_NEEDS_POSE) != 0)
            return 0;
        if (l->term[d]->type != &tsr_term_saxs)
            continue;
        if (own->noise == &tsr_noise_relative || own->has_interparticle)
            return 0;
        n_curve++;
    }
    for (int i = 0; i < t->n_residue; i++)
        if (t->residue[i].unit < 0 && t->residue[i].n_guest > 0)
            return 0;
    return n_curve > 0 && t->n_torsion > 0;
}

/* Returns 1 if a residue has phi and psi, both free. */
static int has_slot(const tsr_residue *r)
{
    return r->flexible && r->has_phi && r->has_psi;
}

/* ---- the spec ---- */

static void set_points(tsr_surrogate *s)
{
    const tsr_topology *t = s->topology;
    int n = 0;
    for (int i = 0; i < t->n_residue; i++) {
        s->first_point[i] = n;
        n += t->residue[i].unit < 0 ? N_POINT : t->residue[i].n_body;
    }
    s->first_point[t->n_residue] = s->spec.n_point = n;
}

static void set_slots(tsr_surrogate *s, int *slot_of)
{
    const tsr_topology *t = s->topology;
    for (int i = 0; i < t->n_residue; i++) {
        slot_of[i] = -1;
        if (!has_slot(&t->residue[i]))
            continue;
        slot_of[i] = s->spec.n_slot;
        s->spec.density[s->spec.n_slot] = (int32_t)t->residue[i].rama;
        s->slot[s->spec.n_slot++] = i;
    }
}

/* The other torsion of the peptide plane on the moving side, if both torsions
 * turn that side; -1: none. k: index in the topology. */
static int partner_of(const tsr_topology *t, int k)
{
    const tsr_torsion *own = &t->torsion[k];
    const tsr_torsion_kind from = own->c_side ? TSR_PSI : TSR_PHI;
    const int to = k + (own->c_side ? 1 : -1);
    if (own->kind != from || to < 0 || to >= t->n_torsion)
        return -1;
    const tsr_torsion *other = &t->torsion[to];
    return other->kind != from && other->c_side == own->c_side &&
                   other->residue == own->residue + (own->c_side ? 1 : -1) &&
                   t->residue[other->residue].chain_first ==
                       t->residue[own->residue].chain_first
               ? to
               : -1;
}

static void set_torsions(tsr_surrogate *s, const int *slot_of)
{
    const tsr_topology *t = s->topology;
    tsr_surrogate_spec *p = &s->spec;
    /* [topology.n_torsion] index in the spec; -1: not in the spec */
    int *in_spec = s->torsion + t->n_torsion;
    for (int k = 0; k < t->n_torsion; k++) {
        in_spec[k] = slot_of[t->torsion[k].residue] >= 0 ? p->n_torsion : -1;
        if (in_spec[k] >= 0)
            s->torsion[p->n_torsion++] = k;
    }
    for (int j = 0; j < p->n_torsion; j++) {
        const tsr_torsion *own = &t->torsion[s->torsion[j]];
        const tsr_residue *r = &t->residue[own->residue];
        const int *first = s->first_point, at = first[own->residue];
        const int is_phi = own->kind == TSR_PHI;
        const int partner = partner_of(t, s->torsion[j]);
        int32_t *where = p->torsion[j], *turn = p->turn[j];
        where[0] = at + (is_phi ? POINT_N : POINT_CA);
        where[1] = at + (is_phi ? POINT_CA : POINT_C);
        p->point_bounds[j][0] = at + (is_phi ? POINT_N : POINT_CA);
        p->point_bounds[j][1] = at + (is_phi ? POINT_N : POINT_O);
        where[2] = own->c_side ? p->point_bounds[j][1] : first[r->chain_first];
        where[3] =
            own->c_side ? first[r->chain_last + 1] : p->point_bounds[j][0];
        turn[0] = slot_of[own->residue];
        turn[1] = is_phi ? 0 : 1;
        turn[2] = partner < 0 ? -1 : in_spec[partner];
        turn[3] = own->c_side ? 1 : -1;
    }
}

static int can_follow(const tsr_torsion *a, const tsr_torsion *b)
{
    return a->c_side == b->c_side && b->residue - a->residue <= 1 &&
           b->residue >= a->residue;
}

static void set_runs(tsr_surrogate *s)
{
    const tsr_torsion *all = s->topology->torsion;
    for (int k = 0; k < s->spec.n_torsion; k++) {
        run *last = &s->run[s->n_run - 1];
        if (s->n_run > 0 &&
            can_follow(&all[s->torsion[k - 1]], &all[s->torsion[k]]) &&
            s->topology->residue[all[s->torsion[k - 1]].residue].chain_first ==
                s->topology->residue[all[s->torsion[k]].residue].chain_first)
            last->end = k + 1;
        else
            s->run[s->n_run++] = (run){k, k + 1};
    }
}

/* Two points of a rigid unit. *middle: the body nearest to the unit's centre;
 * *edge: the body farthest from it. */
static void find_middle(const tsr_surrogate *s, int unit,
                        const double (*body)[3], int32_t *middle, int32_t *edge)
{
    const tsr_topology *t = s->topology;
    double centre[3] = {0.0, 0.0, 0.0}, n = 0.0;
    double nearest = (double)INFINITY, farthest = -1.0;
    for (int pass = 0; pass < 2; pass++)
        for (int b = 0; b < t->n_body; b++) {
            const tsr_residue *r = &t->residue[t->body[b].residue];
            if (r->unit != unit)
                continue;
            if (pass == 0) {
                n += 1.0;
                for (int d = 0; d < 3; d++)
                    centre[d] += (body[b][d] - centre[d]) / n;
                continue;
            }
            const double far = tsr_vec3_distance(body[b], centre);
            const int point =
                s->first_point[t->body[b].residue] + b - r->first_body;
            if (far < nearest)
                nearest = far, *middle = point;
            if (far > farthest)
                farthest = far, *edge = point;
        }
}

/* Number of torsions from j on that belong to consecutive residues of one
 * chain. */
static int count_consecutive(const tsr_surrogate *s, int j)
{
    const tsr_topology *t = s->topology;
    int n = 1;
    for (; j + n < s->spec.n_torsion; n++) {
        const int had = t->torsion[s->torsion[j + n - 1]].residue,
                  next = t->torsion[s->torsion[j + n]].residue;
        if (next - had > 1 ||
            t->residue[next].chain_first != t->residue[had].chain_first)
            break;
    }
    return n;
}

/* Rigid unit of residue i; -1: i is flexible, or not in the chain of `of`. */
static int unit_at(const tsr_topology *t, const tsr_residue *of, int i)
{
    return i < of->chain_first || i > of->chain_last ? -1 : t->residue[i].unit;
}

/* Returns 1 if torsions of one linker turn different sides and there are other
 * chains. The surrogate would turn all to one side, which changes distances to
 * the other chains. */
static int turns_both_sides(const tsr_surrogate *s, int j, int n)
{
    const tsr_topology *t = s->topology;
    int n_after = 0;
    for (int k = j; k < j + n; k++)
        n_after += t->torsion[s->torsion[k]].c_side != 0;
    return n_after > 0 && n_after < n &&
           t->residue[0].chain_last < t->n_residue - 1;
}

/* Lists the linkers between two rigid units. */
static void set_linkers(tsr_surrogate *s, const double (*body)[3])
{
    const tsr_topology *t = s->topology;
    tsr_surrogate_spec *p = &s->spec;
    for (int j = 0, n; j < p->n_torsion; j += n) {
        n = count_consecutive(s, j);
        const int first = t->torsion[s->torsion[j]].residue;
        const int last = t->torsion[s->torsion[j + n - 1]].residue;
        const tsr_residue *r = &t->residue[first];
        const int c_side = t->torsion[s->torsion[j + n / 2]].c_side;
        const int before = unit_at(t, r, first - 1),
                  after = unit_at(t, r, last + 1);
        int32_t *linker = p->linker[p->n_linker], unused;
        if (n < 2 || before < 0 || after < 0 || before == after ||
            turns_both_sides(s, j, n))
            continue;
        linker[0] = j, linker[1] = n;
        linker[2] = c_side ? 1 : -1;
        linker[3] = s->first_point[c_side ? r->chain_last + 1 : r->chain_first];
        find_middle(s, c_side ? after : before, body, &linker[4], &unused);
        find_middle(s, c_side ? before : after, body, &linker[5], &linker[6]);
        p->n_linker++;
    }
}

static void set_densities(tsr_surrogate_spec *p, const tsr_prior *prior,
                          const tsr_prior_table *table)
{
    p->n_density = TSR_N_RAMA;
    for (int d = 0; d < TSR_N_RAMA; d++) {
        const tsr_torsion_mixture *m = &table->torsion[d];
        double term[TSR_VON_MISES_TERM];
        p->n_term[d] = m->n;
        for (int k = 0; k < m->n; k++) {
            tsr_von_mises_terms(&m->part[k], term);
            for (int i = 0; i < TSR_VON_MISES_TERM; i++)
                p->term[d][k][i] = (float)term[i];
        }
        tsr_torsion_density_cells(prior->torsion[d], TSR_SURROGATE_CELLS,
                                  p->cell[d]);
    }
}

static void set_clash(tsr_surrogate *s, const tsr_prior *prior)
{
    const tsr_topology *t = s->topology;
    const tsr_clash *c = &prior->clash;
    const double most_nat = 30000.0; /* in units of 1 / 65536 nat */
    tsr_surrogate_spec *p = &s->spec;
    p->n_body = t->n_body, p->n_contact_type = TSR_MAX_TYPE;
    p->cutoff = (float)c->cutoff;
    p->inverse_softness = (float)c->inverse_softness;
    p->limit = (float)fmin(c->limit, most_nat);
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            p->contact[a * TSR_MAX_TYPE + b] =
                c->cutoff > 0.0 ? (float)c->contact[a][b] : 0.0F;
    for (int b = 0; b < t->n_body; b++) {
        const tsr_residue *r = &t->residue[t->body[b].residue];
        p->body[b][0] = t->body[b].contact_type;
        p->body[b][1] = t->body[b].residue;
        p->body[b][2] = r->chain_first;
        p->body[b][3] = r->unit;
    }
}

/* ---- making a surrogate ---- */

static void add_part(tsr_surrogate_spec *p, int point, double weight)
{
    p->part[p->n_part] = point;
    p->part_weight[p->n_part++] = (float)weight;
}

static void set_bead(tsr_surrogate *s, int b, const double (*body)[3])
{
    const tsr_topology *t = s->topology;
    tsr_surrogate_spec *p = &s->spec;
    const tsr_bead *own = &s->beads.bead[b];
    const int residue = t->body[own->first].residue;
    const tsr_residue *r = &t->residue[residue];
    double x[3], weight[N_POINT], far = 0.0;
    p->bead[b][0] = p->n_part;
    if (own->unit < 0) {
        body_point_weights(r, own->first - r->first_body, weight);
        for (int k = 0; k < N_POINT; k++)
            if (weight[k] > 0.0)
                add_part(p, s->first_point[residue] + k, weight[k]);
    } else {
        for (int i = own->first; i < own->first + own->count; i++) {
            const int of = t->body[i].residue;
            add_part(p, s->first_point[of] + i - t->residue[of].first_body,
                     1.0 / own->count);
        }
    }
    p->bead[b][1] = p->n_part - p->bead[b][0];
    p->bead[b][2] = own->first, p->bead[b][3] = own->count;
    p->point_range[b][0] = p->part[p->bead[b][0]];
    p->point_range[b][1] = p->part[p->n_part - 1] + 1;
    tsr_bead_centre(own, body, x);
    for (int i = own->first; i < own->first + own->count; i++)
        far = fmax(far, tsr_vec3_distance(x, body[i]));
    p->radius[b] = own->count > 1 ? (float)(1.001 * far + 1e-3) : 0.0F;
}

static void make_pairs(tsr_surrogate *s)
{
    tsr_surrogate_spec *p = &s->spec;
    tsr_pool_array(&s->pool, p->pair,
                   (size_t)p->n_bead * (size_t)p->n_bead / 2 + 1);
    for (int a = 0; a < p->n_bead && p->pair != NULL; a++)
        for (int b = a + 1; b < p->n_bead; b++) {
            if (is_constant(&s->beads, a, b))
                continue;
            p->pair[p->n_pair][0] = (uint16_t)a;
            p->pair[p->n_pair++][1] = (uint16_t)b;
        }
}

static tsr_status allocate(tsr_surrogate *s, int **slot_of, tsr_err *err)
{
    const tsr_topology *t = s->topology;
    const size_t n = (size_t)t->n_residue + 1, m = (size_t)t->n_torsion + 1,
                 beads = (size_t)s->beads.n_bead, bodies = (size_t)t->n_body;
    tsr_pool *pool = &s->pool;
    tsr_surrogate_spec *p = &s->spec;
    tsr_pool_array(pool, *slot_of, n);
    tsr_pool_array(pool, s->first_point, n);
    tsr_pool_array(pool, s->torsion, 2 * m);
    tsr_pool_array(pool, s->slot, n);
    tsr_pool_array(pool, s->run, m);
    tsr_pool_array(pool, p->bead, beads);
    tsr_pool_array(pool, p->point_range, beads);
    tsr_pool_array(pool, p->radius, beads);
    tsr_pool_array(pool, p->part, bodies * N_POINT);
    tsr_pool_array(pool, p->part_weight, bodies * N_POINT);
    tsr_pool_array(pool, p->body, bodies);
    tsr_pool_array(pool, p->contact, TSR_MAX_TYPE * TSR_MAX_TYPE);
    tsr_pool_array(pool, p->torsion, m);
    tsr_pool_array(pool, p->turn, m);
    tsr_pool_array(pool, p->point_bounds, m);
    tsr_pool_array(pool, p->linker, m);
    tsr_pool_array(pool, p->density, n);
    tsr_pool_array(pool, p->term, TSR_N_RAMA);
    tsr_pool_array(pool, p->n_term, TSR_N_RAMA);
    tsr_pool_array(pool, p->cell, TSR_N_RAMA);
    return tsr_pool_check(pool, err);
}

static tsr_status set_spec(tsr_surrogate *s, const tsr_prior *prior,
                           const tsr_prior_table *table,
                           const double (*body)[3], tsr_err *err)
{
    tsr_surrogate_spec *p = &s->spec;
    int *slot_of;
    TSR_TRY(
        set_beads(&s->beads, &s->pool, s->topology, s->likelihood, body, err));
    TSR_TRY(curves_new(s->likelihood, &s->data, err));
    TSR_TRY(allocate(s, &slot_of, err));
    set_points(s);
    set_slots(s, slot_of);
    set_torsions(s, slot_of);
    set_runs(s);
    set_linkers(s, body);
    set_densities(p, prior, table);
    set_clash(s, prior);
    p->n_bead = s->beads.n_bead;
    for (int b = 0; b < p->n_bead; b++)
        set_bead(s, b, body);
    p->has_c2 = s->beads.has_water;
    p->n_curve = s->data->n_curve;
    make_pairs(s);
    set_knots(&s->likelihood->grid, p, &s->pool);
    return tsr_pool_check(&s->pool, err);
}

tsr_status tsr_surrogate_new(const tsr_topology *topology,
                             const tsr_prior *prior,
                             const tsr_prior_table *table,
                             const tsr_likelihood *likelihood,
                             const tsr_conformation *first, tsr_surrogate **out,
                             tsr_err *err)
{
    *out = NULL;
    if (!tsr_surrogate_applies(topology, likelihood))
        return TSR_OK;
    tsr_surrogate *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->topology = topology;
    s->likelihood = likelihood;
    const tsr_status status =
        set_spec(s, prior, table, (const double(*)[3])first->body, err);
    if (status == TSR_OK && s->spec.n_torsion > 0 && s->spec.n_pair > 0)
        *out = s;
    else
        tsr_surrogate_free(s);
    return status;
}

void tsr_surrogate_free(tsr_surrogate *surrogate)
{
    if (surrogate == NULL)
        return;
    curves_free(surrogate->data);
    tsr_pool_clear(&surrogate->pool);
    free(surrogate);
}

tsr_status tsr_surrogate_update(tsr_surrogate *surrogate, tsr_err *err)
{
    curve_set *data, *other = surrogate->data;
    const tsr_status status = curves_new(surrogate->likelihood, &data, err);
    if (status == TSR_OK)
        surrogate->data = data;
    else
        other = data;
    curves_free(other);
    return status;
}

const tsr_surrogate_spec *tsr_surrogate_spec_of(const tsr_surrogate *surrogate)
{
    return &surrogate->spec;
}

/* ---- a job ---- */

static void write_point(const double x[3], const double centre[3], float *to)
{
    for (int d = 0; d < 3; d++)
        to[d] = (float)(x[d] - centre[d]);
    to[3] = 0.0F;
}

/* Writes the points relative to the molecule's centre, because the precision of
 * a float is best near the origin. */
static void write_points(const tsr_surrogate *s, const tsr_conformation *c,
                         float (*point)[4])
{
    const tsr_topology *t = s->topology;
    double centre[3] = {0.0, 0.0, 0.0};
    for (int b = 0; b < t->n_body; b++)
        for (int d = 0; d < 3; d++)
            centre[d] += c->body[b][d] / t->n_body;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        float(*to)[4] = point + s->first_point[i];
        double(*x)[3] = c->backbone[i];
        double frame[3][3], side[3], cb[3];
        for (int b = 0; r->unit >= 0 && b < r->n_body; b++)
            write_point(c->body[r->first_body + b], centre, to[b]);
        if (r->unit >= 0)
            continue;
        tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
        tsr_frame_to_global(side, frame, x[TSR_CA], c->side[i]);
        tsr_frame_to_global(cb, frame, x[TSR_CA], r->cb);
        write_point(x[TSR_N], centre, to[POINT_N]);
        write_point(r->amino == TSR_GLY ? x[TSR_CA] : cb, centre, to[POINT_CB]);
        write_point(tsr_amino_has_side_chain(r->amino) ? side : x[TSR_CA],
                    centre, to[POINT_SC]);
        write_point(x[TSR_CA], centre, to[POINT_CA]);
        write_point(x[TSR_C], centre, to[POINT_C]);
        write_point(x[TSR_O], centre, to[POINT_O]);
    }
}

static void write_head(const tsr_surrogate *s,
                       const tsr_surrogate_state *learnt,
                       const tsr_move_context *at, float *head)
{
    const tsr_parameter *p = &s->likelihood->contrast[TSR_C2];
    head[0] = (float)at->beta;
    head[6] = (float)lround(exp(learnt->log_steps));
    if (!s->spec.has_c2)
        return;
    head[1] = (float)contrast_of(at)[TSR_C2];
    head[2] = (float)p->mean, head[3] = (float)p->width;
    head[4] = (float)p->low, head[5] = (float)p->high;
}

tsr_status tsr_surrogate_write_job(const tsr_surrogate *s,
                                   const tsr_surrogate_layout *layout,
                                   const tsr_surrogate_state *learnt,
                                   const tsr_move_context *context, float *job,
                                   float (*point)[4], tsr_err *err)
{
    const tsr_surrogate_spec *p = &s->spec;
    const tsr_topology *t = s->topology;
    write_points(s, context->current, point);
    write_head(s, learnt, context, job + layout->head);
    for (int k = 0; k < p->n_slot; k++)
        for (int kind = 0; kind < 2; kind++)
            job[layout->angle + 2 * k + kind] = (float)tsr_conformation_torsion(
                t, context->current, s->slot[k], kind == 0 ? TSR_PHI : TSR_PSI);
    for (int k = 0; k < p->n_torsion + 1 + p->n_linker; k++)
        job[layout->width + k] = (float)exp(learnt->log_width[k]);
    for (int k = 0; k < p->n_linker * TSR_SURROGATE_FACTOR; k++)
        job[layout->factor + k] = (float)learnt->factor[0][k];
    TSR_TRY(write_beads(&s->beads, context, learnt->ratio, layout, job, err));
    return write_curves(s->data, context->theta, job + layout->curve, err);
}

tsr_status tsr_surrogate_apply_turns(const tsr_surrogate *s,
                                     const float *change_rad,
                                     tsr_conformation *to, tsr_err *err)
{
    const tsr_topology *t = s->topology;
    double(*change)[2] = calloc((size_t)t->n_residue, sizeof *change);
    TSR_TRY(tsr_allocated(change, err));
    for (int r = 0; r < s->n_run; r++) {
        const tsr_torsion *a = &t->torsion[s->torsion[s->run[r].first]],
                          *z = &t->torsion[s->torsion[s->run[r].end - 1]];
        const size_t n = (size_t)(z->residue - a->residue + 1);
        memset(change, 0, n * sizeof *change);
        for (int k = s->run[r].first; k < s->run[r].end; k++) {
            const tsr_torsion *own = &t->torsion[s->torsion[k]];
            change[own->residue - a->residue][own->kind == TSR_PSI] =
                (double)change_rad[k];
        }
        tsr_conformation_turn_many(t, to, a->residue, z->residue, a->c_side,
                                   (const double(*)[2])change);
    }
    free(change);
    return TSR_OK;
}

void tsr_surrogate_update_ratio(const tsr_surrogate *surrogate,
                                const tsr_move_context *context,
                                const float *walked, long n, double *ratio)
{
    const tsr_likelihood *l = surrogate->likelihood;
    const double *contrast = contrast_of(context);
    const double gain = pow((double)n + 1.0, -0.7);
    double start[TSR_N_CONTRAST];
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        start[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (int q = 0; q < l->grid.n_q; q++) {
        const double atoms = l->view->atoms != NULL
                                 ? tsr_likelihood_ratio(l, 0, start, (size_t)q)
                                 : 1.0;
        const double seen = context->profile[q] / ((double)walked[q] * atoms);
        if (seen > 0.0 &&
            isfinite(
                seen)) /* otherwise the curve of beads is unusable at this q */
            ratio[q] += gain * (seen - 1.0 - ratio[q]);
    }
}
