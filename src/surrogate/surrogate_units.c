/* Which beads a molecule has, and amounts by which those of a rigid unit
 * scatter as the unit does. */
#include "surrogate/surrogate_units.h"

#include "core/vec3.h"
#include "molecule/points.h"
#include "scattering/plane_wave.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rigid protein gets some so many beads, of at most four residues each; of a
 * large one, whose pairs of beads are what a walk's time goes into, of more. In
 * the ligase (552 rigid residues, errors of .35 %) walks by beads of two
 * residues are accepted as often as those by beads of four, and take 1.5 times
 * as long. */
enum {
    RIGID_BEADS = 60,
    USUAL_RESIDUES = 4,
    MOST_RESIDUES = 8,
    MOST_BEADS = 200,
    SHAPES = TSR_SURROGATE_SHAPES
};

/* How much of each bead's own weight pulls it back to what it was. */
static const double pull = 1e-4;

/* Of the unit's curve, what each q counts for at least: the squares of what its
 * beads scatter, and of what its bodies do, without interference, times this
 * (a bead's amplitude may vanish where its bodies' do not). */
static const double least_curve = 0.01;

/* ---- which there are ---- */

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

int tsr_bead_list(const tsr_topology *topology, tsr_bead *out)
{
    const tsr_topology *t = topology;
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

void tsr_bead_shares(const tsr_residue *residue, int body,
                     double share[TSR_N_POINT])
{
    const tsr_residue *r = residue;
    const int b = body;
    const double n = tsr_atom_mass(7), c = tsr_atom_mass(6),
                 o = tsr_atom_mass(8);
    const double side = tsr_amino_has_side_chain(r->amino)
                            ? tsr_amino_side_chain_mass(r->amino)
                            : 0.0;
    double sum = 0.0;
    memset(share, 0, TSR_N_POINT * sizeof *share);
    if (b == 0) {
        share[TSR_POINT_N] = n, share[TSR_POINT_CA] = share[TSR_POINT_C] = c;
        share[TSR_POINT_O] = o;
        share[TSR_POINT_CB] = r->amino != TSR_GLY ? c : 0.0;
    }
    if (b == 1 || r->n_body == 1)
        share[TSR_POINT_SC] = b == 1 ? 1.0 : side;
    for (int k = 0; k < TSR_N_POINT; k++)
        sum += share[k];
    for (int k = 0; k < TSR_N_POINT; k++)
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

int tsr_unit_n_particle(const tsr_likelihood *likelihood, int unit)
{
    const tsr_particles *own = likelihood->particles;
    int n = 0;
    for (int i = 0; own != NULL && unit >= 0 && i < own->inside.n; i++)
        n += own->inside.unit[i] == unit;
    return n;
}

tsr_status tsr_unit_add_pairs(const tsr_likelihood *likelihood, int unit,
                              double *partial, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const tsr_probe *p = l->probe;
    const tsr_engine_inside *in = &l->particles->inside;
    const size_t n_profile = (size_t)p->n_pair * (size_t)l->grid.n_q;
    double(*xyz)[3] = calloc((size_t)in->n + 1, sizeof *xyz);
    int *type = calloc((size_t)in->n + 1, sizeof *type), n = 0;
    double *own = calloc(n_profile, sizeof *own);
    const int is_there = xyz != NULL && type != NULL && own != NULL;
    for (int i = 0; i < in->n && is_there; i++)
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
    const tsr_status status =
        !is_there ? tsr_no_memory(err)
                  : tsr_plane_wave_sum(
                        &spec, tsr_largest_distance(n, (const double(*)[3])xyz),
                        1, NULL, own, err);
    for (size_t k = 0; k < n_profile && status == TSR_OK; k++)
        partial[k] += own[k];
    free(xyz);
    free(type);
    free(own);
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
    double *room = calloc(3 * n_q + n * n + n, sizeof *room);
    if (room == NULL)
        return 0;
    fit f = {.unit = unit,
             .sinc = room,
             .weight = room + n_q,
             .curve = room + 2 * n_q,
             .gram = room + 3 * n_q,
             .side = room + 3 * n_q + n * n};
    weigh(&f);
    for (int a = 0; a < unit->n_bead; a++) {
        for (int b = a; b < unit->n_bead; b++)
            put_pair(&f, a, b);
        put_side(&f, a);
    }
    if (solve(&f))
        for (size_t i = 0; i < n; i++)
            unit->amount[i] += f.side[i];
    free(room);
    return 1;
}
