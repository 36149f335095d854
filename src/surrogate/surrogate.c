/* The surrogate of a run's posterior: a molecule as points, beads and torsions,
 * what its curves say of a profile, and the place of a chain as the numbers of
 * a job. */
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

/* ---- jobs, and those that walk ---- */

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec)
{
    const int q = spec->n_q;
    tsr_surrogate_layout l = {.head = 0, .unit = 8};
    l.n_row = q + 1;
    l.curve_size = q * l.n_row + l.n_row + 1;
    l.angle = l.unit + TSR_SURROGATE_PRODUCTS;
    l.width = l.angle + 2 * spec->n_slot;
    l.factor = l.width + spec->n_torsion + 1 + spec->n_linker;
    l.amount = l.factor + spec->n_linker * TSR_SURROGATE_FACTOR;
    l.shape = l.amount + 4 * spec->n_bead;
    l.rest = l.shape + TSR_SURROGATE_SHAPES * q;
    l.top = l.rest + TSR_SURROGATE_POWERS * q;
    l.bottom = l.top + TSR_SURROGATE_POWERS * q;
    l.curve = l.bottom + TSR_SURROGATE_POWERS * q;
    l.size = l.curve + spec->n_curve * l.curve_size;
    return l;
}

void tsr_surrogate_engine_free(void *engine)
{
    if (engine != NULL)
        ((tsr_surrogate_engine *)engine)->free(engine);
}

tsr_status tsr_surrogate_walker_new(void *engine, int most_jobs, void **walker,
                                    tsr_err *err)
{
    tsr_surrogate_walker *w = NULL;
    const tsr_status status = ((tsr_surrogate_engine *)engine)
                                  ->walker_new(engine, most_jobs, &w, err);
    *walker = w;
    return status;
}

void tsr_surrogate_walker_free(void *walker)
{
    if (walker != NULL)
        ((tsr_surrogate_walker *)walker)->engine->walker_free(walker);
}

/* ---- which beads there are ---- */

/* Points of a flexible residue, in the order in which torsions take them. */
enum { POINT_N, POINT_CB, POINT_SC, POINT_CA, POINT_C, POINT_O, N_POINT };

/* A rigid protein gets some so many beads, of at most four residues each; of a
 * large one, whose pairs of beads are what a walk's time goes into, of more. In
 * the ligase (552 rigid residues, errors of .35 %) walks by beads of two
 * residues are accepted as often as those by beads of four, and take 1.5 times
 * as long. */
enum {
    RIGID_BEADS = 60,
    USUAL_RESIDUES = 4,
    MOST_RESIDUES = 8,
    MOST_BEADS = 200
};

/* How much of each bead's own weight pulls it back to what it was. */
static const double pull = 1e-4;

/* Of the unit's curve, what each q counts for at least: the squares of what its
 * beads scatter, and of what its bodies do, without interference, times this
 * (a bead's amplitude may vanish where its bodies' do not). */
static const double least_curve = 0.01;

static int can_join(const tsr_topology *t, int a, int b)
{
    const tsr_residue *i = &t->residue[a], *j = &t->residue[b];
    return i->unit >= 0 && i->unit == j->unit &&
           i->chain_first == j->chain_first;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int residues_of_bead(const tsr_topology *t)
{
    int n_rigid = 0;
    for (int i = 0; i < t->n_residue; i++)
        n_rigid += t->residue[i].unit >= 0;
    const int usual = least(1 + n_rigid / RIGID_BEADS, USUAL_RESIDUES);
    const int large = least(n_rigid / MOST_BEADS, MOST_RESIDUES);
    return large > usual ? large : usual;
}

/* Into out (NULL: they are only counted). Returns how many. */
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

/* Of these points, how much of each body 0 or 1 of the residue is. */
static void find_shares(const tsr_residue *r, int b, double share[N_POINT])
{
    const double n = tsr_atom_mass(7), c = tsr_atom_mass(6),
                 o = tsr_atom_mass(8);
    const double side = tsr_amino_has_side_chain(r->amino)
                            ? tsr_amino_side_chain_mass(r->amino)
                            : 0.0;
    double sum = 0.0;
    memset(share, 0, N_POINT * sizeof *share);
    if (b == 0) {
        share[POINT_N] = n, share[POINT_CA] = share[POINT_C] = c;
        share[POINT_O] = o;
        share[POINT_CB] = r->amino != TSR_GLY ? c : 0.0;
    }
    if (b == 1 || r->n_body == 1)
        share[POINT_SC] = b == 1 ? 1.0 : side;
    for (int k = 0; k < N_POINT; k++)
        sum += share[k];
    for (int k = 0; k < N_POINT; k++)
        share[k] /= sum;
}

void tsr_bead_centre(const tsr_bead *bead, const double (*body)[3], double x[3])
{
    x[0] = x[1] = x[2] = 0.0;
    for (int i = 0; i < bead->count; i++)
        for (int d = 0; d < 3; d++)
            x[d] += body[bead->first + i][d] / bead->count;
}

/* ---- particles ---- */

/* Particles of a unit of the topology; 0 where the likelihood is of bodies, or
 * the unit is too small. */
static int n_particle(const tsr_likelihood *likelihood, int unit)
{
    const tsr_particles *own = likelihood->particles;
    int n = 0;
    for (int i = 0; own != NULL && unit >= 0 && i < own->inside.n; i++)
        n += own->inside.unit[i] == unit;
    return n;
}

/* Adds the partial profiles of a unit's particles to partial [n_pair][n_q], of
 * the first probe. */
static tsr_status add_particles(const tsr_likelihood *l, int unit,
                                double *partial, tsr_err *err)
{
    const tsr_probe *p = l->probe;
    const tsr_engine_inside *in = &l->particles->inside;
    const size_t n_profile = (size_t)p->n_pair * (size_t)l->grid.n_q;
    tsr_pool pool = {0};
    double(*xyz)[3], *own;
    int *type, n = 0;
    tsr_pool_array(&pool, xyz, in->n);
    tsr_pool_array(&pool, type, in->n);
    tsr_pool_array(&pool, own, n_profile);
    tsr_status status = tsr_pool_check(&pool, err);
    for (int i = 0; i < in->n && status == TSR_OK; i++)
        if (in->unit[i] == unit) {
            tsr_vec3_copy(xyz[n], in->xyz[i]);
            type[n++] = in->type[i];
        }
    const tsr_debye_spec spec = {.n = n,
                                 .n_type = p->n_type,
                                 .n_comp = p->n_comp,
                                 .n_q = l->grid.n_q,
                                 .dq_inv_ang = l->grid.dq_inv_ang,
                                 .xyz = (const double(*)[3])xyz,
                                 .type = type,
                                 .form_factor = p->amplitude};
    TSR_THEN(status,
             tsr_plane_wave_sum(
                 &spec, tsr_largest_distance(n, (const double(*)[3])xyz), 1,
                 NULL, own, err));
    for (size_t k = 0; k < n_profile && status == TSR_OK; k++)
        partial[k] += own[k];
    tsr_pool_clear(&pool);
    return status;
}

/* ---- amounts ---- */

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

/* What bead b scatters at q, of the amounts as they are. */
static double bead_at(const fit *f, int b, int q)
{
    double sum = 0.0;
    for (int m = 0; m < SHAPES; m++)
        sum += f->unit->amount[m * f->unit->n_bead + b] * shape_at(f, m, q);
    return sum;
}

/* Errors of the unit's amplitude count relative to it, and less where data are
 * less precise. */
static void weigh(fit *f)
{
    const tsr_unit_beads *u = f->unit;
    for (int a = 0; a < u->n_bead; a++)
        for (int b = a; b < u->n_bead; b++) {
            const double times = a == b ? 1.0 + least_curve : 2.0;
            series_at(f, u->centre[a], u->centre[b]);
            for (int q = 0; q < u->n_q; q++)
                f->curve[q] +=
                    times * f->sinc[q] * bead_at(f, a, q) * bead_at(f, b, q);
        }
    for (int i = 0; i < u->n_body; i++)
        for (int q = 0; q < u->n_q; q++)
            f->curve[q] +=
                least_curve * pow(u->factor[(ptrdiff_t)i * u->n_q + q], 2.0);
    for (int q = 0; q < u->n_q; q++) {
        const double x = q * u->dq_inv_ang / u->width_inv_ang;
        f->weight[q] = f->curve[q] > 0.0 ? exp(-x * x) / f->curve[q] : 0.0;
    }
}

/* The sums over q that two beads have in common. */
static void put_pair(fit *f, int a, int b)
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

/* The unit's amplitude, seen from bead a. */
static void put_side(fit *f, int a)
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

/* side: what is to be added to the amounts. */
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
        *own = *own > 0.0 ? *own * (1.0 + pull) : 1.0;
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
    weigh(&f);
    for (int a = 0; a < unit->n_bead; a++) {
        for (int b = a; b < unit->n_bead; b++)
            put_pair(&f, a, b);
        put_side(&f, a);
    }
    if (solve(&f))
        for (size_t i = 0; i < n; i++)
            unit->amount[i] += f.side[i];
    free(workspace);
    return 1;
}

/* ---- beads ----
 *
 * The form factors of beads, and of their water, are met by two shapes of q,
 * the same for all: the protein's sum, and what explains most of the rest,
 * weighted towards small q. Pairs inside a rigid unit keep their distances, so
 * that their curve is known once and exactly, body by body; so is every bead's
 * own. */

/* Where form factors are to be met best, 1/A. */
static const double shape_width = 0.1;

typedef struct {
    const tsr_likelihood *likelihood;
    int n_bead, has_water;
    tsr_bead *bead;   /* [n_bead] */
    double *factor;   /* [n_bead][n_comp][n_q] */
    double *constant; /* [n_pair][n_q] of pairs whose distance stays */
    double *amount;   /* [SHAPES][n_row] where c1 is fixed; NULL: it is not */
    double *shape;    /* [SHAPES][n_q] likewise */
    double *more; /* [SHAPES][n_row] by which rigid units scatter as they do,
                     where c1 starts */
} bead_set;

/* What one job is made with. */
typedef struct {
    tsr_pool pool; /* of what follows */
    const bead_set *beads;
    double contrast[TSR_N_CONTRAST];
    double (*coefficient)[TSR_N_COMP]; /* [n_q] of the components there */
    int n_row;      /* beads, and once more for their water */
    double *all;    /* [n_row][n_q] what of form factors is left to meet */
    double *amount; /* [SHAPES][n_row] */
    double *shape;  /* [SHAPES][n_q] */
    double *fixed;  /* [n_pair][n_q] partial profiles of what stays */
    double *work;   /* [n_q] */
} making;

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
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
static void make_factors(bead_set *g, const double (*body)[3], double *work)
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

static int stays(const bead_set *g, int a, int b)
{
    return a == b ||
           (g->bead[a].unit >= 0 && g->bead[a].unit == g->bead[b].unit);
}

/* Of units that have particles all pairs of these, of others those of their
 * bodies. */
static tsr_status make_constant(bead_set *g, const double (*body)[3], double *s,
                                tsr_err *err)
{
    const tsr_likelihood *l = g->likelihood;
    const tsr_q_grid *grid = &l->grid;
    for (int unit = 0; unit <= last_unit(g); unit++)
        if (n_particle(l, unit) > 0)
            TSR_TRY(add_particles(l, unit, g->constant, err));
    for (int a = 0; a < g->n_bead; a++) {
        const tsr_bead *p = &g->bead[a];
        if (n_particle(l, p->unit) > 0)
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
    const bead_set *g = s->beads;
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
            norm > 0.0 ? dot((int)n_q, s->work, s->all + (size_t)b * n_q) / norm
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
        const double norm = dot(s->n_row, amount, amount);
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

/* Clear its pool, also after an error. */
static tsr_status start_making(making *s, const bead_set *g,
                               const double *contrast, tsr_err *err)
{
    const tsr_likelihood *l = g->likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    *s = (making){.beads = g, .n_row = g->n_bead * (1 + g->has_water)};
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

static void find_unit(const bead_set *g, int unit, const double (*body)[3],
                      unit_view *v)
{
    const tsr_likelihood *l = g->likelihood;
    const tsr_probe *p = l->probe;
    const size_t n_q = (size_t)l->grid.n_q;
    const int has_particles = n_particle(l, unit) > 0;
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
    const bead_set *g = s->beads;
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

/* After set_shapes. */
static tsr_status fit_units(making *s, int n_body, const double (*body)[3],
                            tsr_err *err)
{
    const bead_set *g = s->beads;
    const tsr_particles *own = g->likelihood->particles;
    const size_t n = (size_t)g->n_bead, n_q = (size_t)g->likelihood->grid.n_q,
                 m = (size_t)(n_body + (own != NULL ? own->inside.n : 0));
    unit_view v = {0};
    tsr_pool_array(&s->pool, v.bead, n);
    tsr_pool_array(&s->pool, v.centre, n);
    tsr_pool_array(&s->pool, v.at, m);
    tsr_pool_array(&s->pool, v.component, m);
    tsr_pool_array(&s->pool, v.factor, m * n_q);
    tsr_pool_array(&s->pool, v.amount, SHAPES * n);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    for (int unit = 0, last = last_unit(g); unit <= last; unit++) {
        find_unit(g, unit, body, &v);
        for (int water = 0; water <= g->has_water && v.n_bead > 1; water++)
            if (!fit_unit(s, &v, water))
                return tsr_no_memory(err);
    }
    return TSR_OK;
}

/* Shapes depend on c1 alone. Where it is inferred, what makes units exact at
 * its start is nearly right elsewhere. */
static tsr_status keep_shapes(making *s, bead_set *g, tsr_pool *pool,
                              int n_body, const double (*body)[3], tsr_err *err)
{
    const size_t n = SHAPES * (size_t)s->n_row,
                 n_shape = SHAPES * (size_t)g->likelihood->grid.n_q;
    tsr_pool_array(pool, g->more, n);
    if (!g->likelihood->contrast[TSR_C1].infer) {
        tsr_pool_array(pool, g->amount, n);
        tsr_pool_array(pool, g->shape, n_shape);
    }
    TSR_TRY(tsr_pool_check(pool, err));
    set_shapes(s);
    for (size_t k = 0; k < n; k++)
        g->more[k] = -s->amount[k];
    TSR_TRY(fit_units(s, n_body, body, err));
    for (size_t k = 0; k < n; k++)
        g->more[k] += s->amount[k];
    if (g->amount != NULL) {
        memcpy(g->amount, s->amount, n * sizeof *g->amount);
        memcpy(g->shape, s->shape, n_shape * sizeof *g->shape);
    }
    return TSR_OK;
}

static tsr_status make_beads(bead_set *g, tsr_pool *pool,
                             const tsr_topology *topology,
                             const tsr_likelihood *l, const double (*body)[3],
                             tsr_err *err)
{
    const size_t n_q = (size_t)l->grid.n_q;
    making s;
    g->likelihood = l;
    g->has_water = knows_water(l);
    g->n_bead = list_beads(topology, NULL);
    tsr_pool_array(pool, g->bead, g->n_bead);
    tsr_pool_array(pool, g->constant, (size_t)l->n_pair * n_q);
    tsr_pool_array(pool, g->factor,
                   (size_t)(g->n_bead * l->probe->n_comp) * n_q);
    TSR_TRY(tsr_pool_check(pool, err));
    list_beads(topology, g->bead);
    tsr_status status = start_making(&s, g, NULL, err);
    if (status == TSR_OK)
        make_factors(g, body, s.work);
    TSR_THEN(status, make_constant(g, body, s.work, err));
    TSR_THEN(status, keep_shapes(&s, g, pool, topology->n_body, body, err));
    tsr_pool_clear(&s.pool);
    return status;
}

/* NULL: c1 and c2 are where they start. */
static const double *contrast_of(const tsr_move_context *context)
{
    return context->contrast < 0 ? NULL : context->theta + context->contrast;
}

/* ---- the beads of a job ---- */

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

static void put_rest(making *s, const tsr_move_context *context,
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
    put_powers(s, s->fixed, l->probe->power, NULL, job + at->rest);
    if (v->atoms != NULL) {
        put_powers(s, v->atoms, v->atom_power, ratio, job + at->top);
        put_powers(s, v->bodies, l->probe->power, NULL, job + at->bottom);
        return;
    }
    for (int k = 0; k < POWERS * n_q; k++) {
        job[at->top + k] = k < n_q ? (float)(1.0 + ratio[k]) : 0.0F;
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
        job[at->unit + k] = (float)unit;
    }
    for (int k = 0; k < SHAPES * n_q; k++) /* a pair counts twice */
        job[at->shape + k] = (float)(sqrt(2.0 * weight) * s->shape[k]);
}

/* The parts of a job from unit and amount to bottom. */
static tsr_status fill_beads(const bead_set *beads,
                             const tsr_move_context *context,
                             const double *ratio,
                             const tsr_surrogate_layout *layout, float *job,
                             tsr_err *err)
{
    const size_t n_q = (size_t)beads->likelihood->grid.n_q;
    making s;
    const tsr_status status =
        start_making(&s, beads, contrast_of(context), err);
    if (status == TSR_OK && beads->amount == NULL) {
        set_shapes(&s);
        for (int k = 0; k < SHAPES * s.n_row; k++)
            s.amount[k] += beads->more[k];
    } else if (status == TSR_OK) {
        memcpy(s.amount, beads->amount,
               SHAPES * (size_t)s.n_row * sizeof *s.amount);
        memcpy(s.shape, beads->shape, SHAPES * n_q * sizeof *s.shape);
    }
    if (status == TSR_OK) {
        put_rest(&s, context, ratio, layout, job);
        put_shapes(&s, context->weight, layout, job);
    }
    tsr_pool_clear(&s.pool);
    return status;
}

/* ---- curves ----
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

typedef struct {
    tsr_pool pool;
    const tsr_likelihood *likelihood;
    int n_curve;
    curve *curve; /* [n_curve] */
} curve_set;

/* A curve's forms in the room that is filled: normal [n_q][n_q], then what goes
 * with the data and with 1 [2][n_q], then the three products of these. */
static size_t form_size(const curve_set *g)
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

static void make_curve(curve_set *g, int d)
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
            const double v = w * side_of(t, scale, a, k);
            for (size_t i = 0; i < n_q; i++)
                c->vector[(size_t)a * n_q + i] += v * m[i];
            for (int b = 0; b < n_row; b++)
                c->gram[a * n_row + b] += v * side_of(t, scale, b, k);
        }
    }
}

static void data_free(curve_set *data)
{
    if (data == NULL)
        return;
    for (int d = 0; d < data->n_curve; d++)
        for (int k = 0; k < 2 * MOST_SPREADS + 1; k++)
            free(atomic_load(&data->curve[d].ready[k]));
    tsr_pool_clear(&data->pool);
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

/* Rows, target and scale of a curve in a job. */
static size_t curve_size(size_t n_q)
{
    return (n_q + 1) * (n_q + 1) + 1;
}

static tsr_status fill_curve(const curve_set *data, const curve *c,
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
static tsr_status find_curve(const curve_set *data, curve *c, int k,
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

static tsr_status fill_curves(const curve_set *data, const double *theta,
                              float *out, tsr_err *err)
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

/* Of all curves of the likelihood, which is borrowed. */
static tsr_status data_new(const tsr_likelihood *likelihood, curve_set **out,
                           tsr_err *err)
{
    curve_set *g = calloc(1, sizeof *g);
    *out = NULL;
    TSR_TRY(tsr_allocated(g, err));
    g->likelihood = likelihood;
    tsr_pool_array(&g->pool, g->curve, likelihood->n_term);
    for (int d = 0; d < likelihood->n_term && !g->pool.failed; d++)
        if (likelihood->term[d]->type == &tsr_term_saxs)
            make_curve(g, d);
    *out = g;
    return tsr_pool_check(&g->pool, err);
}

/* ---- distances ---- */

static double sinc(double x)
{
    return fabs(x) < 1e-6 ? 1.0 : sin(x) / x;
}

/* The knots that distances are shared by, and their curves. Sharing a distance
 * between two knots widens it by a triangle, whose transform, sinc(q h / 2)^2,
 * is taken out. */
static void set_knots(const tsr_q_grid *grid, tsr_surrogate_spec *p,
                      tsr_pool *pool)
{
    const double longest_ang = 0.5, part = 0.2; /* of 1 / q_max */
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

/* ---- the molecule ---- */

/* Torsions first..end-1 of a walk, which turn one side of residues that follow
 * each other. */
typedef struct {
    int first, end;
} run;

struct tsr_surrogate {
    tsr_pool pool;
    const tsr_topology *topology;
    const tsr_likelihood *likelihood;
    tsr_surrogate_spec spec;
    int *first_point; /* [n_residue + 1] */
    int *torsion;     /* [spec.n_torsion] of the topology's */
    int *slot;        /* [spec.n_slot] residues */
    int n_run;
    run *run; /* [n_run] */
    bead_set beads;
    curve_set *data;
};

/* ---- may there be one ---- */

int tsr_surrogate_applies(const tsr_topology *t, const tsr_likelihood *l)
{
    int n_curve = 0;
    if (l == NULL || l->n_probe != 1 || l->n_view != 1 || l->probe->is_neutron)
        return 0;
    if (t->n_ride > 0) /* what rides would stay behind */
        return 0;
    for (int d = 0; d < l->n_term; d++) {
        const tsr_saxs_term *own = (const void *)l->term[d];
        if ((l->term[d]->type->needs & TSR_NEEDS_PLACE) != 0)
            return 0;
        if (l->term[d]->type != &tsr_term_saxs)
            continue;
        if (own->noise == &tsr_noise_relative)
            return 0;
        n_curve++;
    }
    for (int i = 0; i < t->n_residue; i++)
        if (t->residue[i].unit < 0 && t->residue[i].n_guest > 0)
            return 0;
    return n_curve > 0 && t->n_torsion > 0;
}

/* Both torsions exist and are free: the density of the pair is known. */
static int has_slot(const tsr_residue *r)
{
    return r->flexible && r->has_phi && r->has_psi;
}

/* ---- the molecule ---- */

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

/* The other torsion of the peptide plane on the moving side, if both turn that
 * side; k: of the topology's. */
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
    int *context = s->torsion + t->n_torsion; /* of the topology's, here */
    for (int k = 0; k < t->n_torsion; k++) {
        context[k] = slot_of[t->torsion[k].residue] >= 0 ? p->n_torsion : -1;
        if (context[k] >= 0)
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
        p->edge[j][0] = at + (is_phi ? POINT_N : POINT_CA);
        p->edge[j][1] = at + (is_phi ? POINT_N : POINT_O);
        where[2] = own->c_side ? p->edge[j][1] : first[r->chain_first];
        where[3] = own->c_side ? first[r->chain_last + 1] : p->edge[j][0];
        turn[0] = slot_of[own->residue];
        turn[1] = is_phi ? 0 : 1;
        turn[2] = partner < 0 ? -1 : context[partner];
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

/* Of a rigid unit: the body nearest to its middle, and the one farthest from
 * it, as points. */
static void middle_of(const tsr_surrogate *s, int unit, const double (*body)[3],
                      int32_t *middle, int32_t *edge)
{
    const tsr_topology *t = s->topology;
    double centre[3] = {0.0, 0.0, 0.0}, n = 0.0;
    double least = (double)INFINITY, most = -1.0;
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
            if (far < least)
                least = far, *middle = point;
            if (far > most)
                most = far, *edge = point;
        }
}

/* Torsions j.. of residues that follow each other: how many. */
static int stretch_at(const tsr_surrogate *s, int j)
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

/* The rigid unit of residue i; -1: none, or of another chain than `of`. */
static int unit_at(const tsr_topology *t, const tsr_residue *of, int i)
{
    return i < of->chain_first || i > of->chain_last ? -1 : t->residue[i].unit;
}

/* Where torsions of one linker turn both of its sides, what the surrogate moves
 * is the other way round for some, which other chains would see. */
static int is_torn(const tsr_surrogate *s, int j, int n)
{
    const tsr_topology *t = s->topology;
    int n_after = 0;
    for (int k = j; k < j + n; k++)
        n_after += t->torsion[s->torsion[k]].c_side != 0;
    return n_after > 0 && n_after < n &&
           t->residue[0].chain_last < t->n_residue - 1;
}

/* Stretches between two rigid units. */
static void set_linkers(tsr_surrogate *s, const double (*body)[3])
{
    const tsr_topology *t = s->topology;
    tsr_surrogate_spec *p = &s->spec;
    for (int j = 0, n; j < p->n_torsion; j += n) {
        n = stretch_at(s, j);
        const int first = t->torsion[s->torsion[j]].residue;
        const int last = t->torsion[s->torsion[j + n - 1]].residue;
        const tsr_residue *r = &t->residue[first];
        const int c_side = t->torsion[s->torsion[j + n / 2]].c_side;
        const int before = unit_at(t, r, first - 1),
                  after = unit_at(t, r, last + 1);
        int32_t *linker = p->linker[p->n_linker], unused;
        if (n < 2 || before < 0 || after < 0 || before == after ||
            is_torn(s, j, n))
            continue;
        linker[0] = j, linker[1] = n;
        linker[2] = c_side ? 1 : -1;
        linker[3] = s->first_point[c_side ? r->chain_last + 1 : r->chain_first];
        middle_of(s, c_side ? after : before, body, &linker[4], &unused);
        middle_of(s, c_side ? before : after, body, &linker[5], &linker[6]);
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
    const double most_nat = 30000.0; /* as integers of 1 / 65536 nat */
    tsr_surrogate_spec *p = &s->spec;
    p->n_body = t->n_body, p->n_like = TSR_MAX_TYPE;
    p->cutoff = (float)c->cutoff;
    p->inverse_softness = (float)c->inverse_softness;
    p->limit = (float)fmin(c->limit, most_nat);
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            p->contact[a * TSR_MAX_TYPE + b] =
                c->cutoff > 0.0 ? (float)c->contact[a][b] : 0.0F;
    for (int b = 0; b < t->n_body; b++) {
        const tsr_residue *r = &t->residue[t->body[b].residue];
        p->body[b][0] = t->body[b].like;
        p->body[b][1] = t->body[b].residue;
        p->body[b][2] = r->chain_first;
        p->body[b][3] = r->unit;
    }
}

/* ---- making it ---- */

static void add_part(tsr_surrogate_spec *p, int point, double share)
{
    p->part[p->n_part] = point;
    p->share[p->n_part++] = (float)share;
}

static void set_bead(tsr_surrogate *s, int b, const double (*body)[3])
{
    const tsr_topology *t = s->topology;
    tsr_surrogate_spec *p = &s->spec;
    const tsr_bead *own = &s->beads.bead[b];
    const int residue = t->body[own->first].residue;
    const tsr_residue *r = &t->residue[residue];
    double x[3], share[N_POINT], far = 0.0;
    p->bead[b][0] = p->n_part;
    if (own->unit < 0) {
        find_shares(r, own->first - r->first_body, share);
        for (int k = 0; k < N_POINT; k++)
            if (share[k] > 0.0)
                add_part(p, s->first_point[residue] + k, share[k]);
    } else {
        for (int i = own->first; i < own->first + own->count; i++) {
            const int of = t->body[i].residue;
            add_part(p, s->first_point[of] + i - t->residue[of].first_body,
                     1.0 / own->count);
        }
    }
    p->bead[b][1] = p->n_part - p->bead[b][0];
    p->bead[b][2] = own->first, p->bead[b][3] = own->count;
    p->reach[b][0] = p->part[p->bead[b][0]];
    p->reach[b][1] = p->part[p->n_part - 1] + 1;
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
            if (stays(&s->beads, a, b))
                continue;
            p->pair[p->n_pair][0] = (uint16_t)a;
            p->pair[p->n_pair++][1] = (uint16_t)b;
        }
}

static tsr_status reserve(tsr_surrogate *s, int **slot_of, tsr_err *err)
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
    tsr_pool_array(pool, p->reach, beads);
    tsr_pool_array(pool, p->radius, beads);
    tsr_pool_array(pool, p->part, bodies * N_POINT);
    tsr_pool_array(pool, p->share, bodies * N_POINT);
    tsr_pool_array(pool, p->body, bodies);
    tsr_pool_array(pool, p->contact, TSR_MAX_TYPE * TSR_MAX_TYPE);
    tsr_pool_array(pool, p->torsion, m);
    tsr_pool_array(pool, p->turn, m);
    tsr_pool_array(pool, p->edge, m);
    tsr_pool_array(pool, p->linker, m);
    tsr_pool_array(pool, p->density, n);
    tsr_pool_array(pool, p->term, TSR_N_RAMA);
    tsr_pool_array(pool, p->n_term, TSR_N_RAMA);
    tsr_pool_array(pool, p->cell, TSR_N_RAMA);
    return tsr_pool_check(pool, err);
}

static tsr_status describe(tsr_surrogate *s, const tsr_prior *prior,
                           const tsr_prior_table *table,
                           const double (*body)[3], tsr_err *err)
{
    tsr_surrogate_spec *p = &s->spec;
    int *slot_of;
    TSR_TRY(
        make_beads(&s->beads, &s->pool, s->topology, s->likelihood, body, err));
    TSR_TRY(data_new(s->likelihood, &s->data, err));
    TSR_TRY(reserve(s, &slot_of, err));
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
        describe(s, prior, table, (const double(*)[3])first->body, err);
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
    data_free(surrogate->data);
    tsr_pool_clear(&surrogate->pool);
    free(surrogate);
}

tsr_status tsr_surrogate_update(tsr_surrogate *surrogate, tsr_err *err)
{
    curve_set *data, *other = surrogate->data;
    const tsr_status status = data_new(surrogate->likelihood, &data, err);
    if (status == TSR_OK)
        surrogate->data = data;
    else
        other = data;
    data_free(other);
    return status;
}

const tsr_surrogate_spec *tsr_surrogate_spec_of(const tsr_surrogate *surrogate)
{
    return &surrogate->spec;
}

/* ---- a job ---- */

static void put(const double x[3], const double centre[3], float *to)
{
    for (int d = 0; d < 3; d++)
        to[d] = (float)(x[d] - centre[d]);
    to[3] = 0.0F;
}

/* About the molecule's middle, wherever in space that is: single precision
 * has the more digits the nearer a point is to the origin. */
static void put_points(const tsr_surrogate *s, const tsr_conformation *c,
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
            put(c->body[r->first_body + b], centre, to[b]);
        if (r->unit >= 0)
            continue;
        tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
        tsr_frame_to_global(side, frame, x[TSR_CA], c->side[i]);
        tsr_frame_to_global(cb, frame, x[TSR_CA], r->cb);
        put(x[TSR_N], centre, to[POINT_N]);
        put(r->amino == TSR_GLY ? x[TSR_CA] : cb, centre, to[POINT_CB]);
        put(tsr_amino_has_side_chain(r->amino) ? side : x[TSR_CA], centre,
            to[POINT_SC]);
        put(x[TSR_CA], centre, to[POINT_CA]);
        put(x[TSR_C], centre, to[POINT_C]);
        put(x[TSR_O], centre, to[POINT_O]);
    }
}

static void put_head(const tsr_surrogate *s, const tsr_surrogate_state *learnt,
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

tsr_status tsr_surrogate_fill(const tsr_surrogate *s,
                              const tsr_surrogate_layout *layout,
                              const tsr_surrogate_state *learnt,
                              const tsr_move_context *context, float *job,
                              float (*point)[4], tsr_err *err)
{
    const tsr_surrogate_spec *p = &s->spec;
    const tsr_topology *t = s->topology;
    put_points(s, context->current, point);
    put_head(s, learnt, context, job + layout->head);
    for (int k = 0; k < p->n_slot; k++)
        for (int kind = 0; kind < 2; kind++)
            job[layout->angle + 2 * k + kind] = (float)tsr_conformation_torsion(
                t, context->current, s->slot[k], kind == 0 ? TSR_PHI : TSR_PSI);
    for (int k = 0; k < p->n_torsion + 1 + p->n_linker; k++)
        job[layout->width + k] = (float)exp(learnt->log_width[k]);
    for (int k = 0; k < p->n_linker * TSR_SURROGATE_FACTOR; k++)
        job[layout->factor + k] = (float)learnt->factor[0][k];
    TSR_TRY(fill_beads(&s->beads, context, learnt->ratio, layout, job, err));
    return fill_curves(s->data, context->theta, job + layout->curve, err);
}

tsr_status tsr_surrogate_turn(const tsr_surrogate *s, const float *change_rad,
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

void tsr_surrogate_learn(const tsr_surrogate *surrogate,
                         const tsr_move_context *context, const float *walked,
                         long n, double *ratio)
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
        if (seen > 0.0 && isfinite(seen)) /* else beads are of no use there */
            ratio[q] += gain * (seen - 1.0 - ratio[q]);
    }
}
