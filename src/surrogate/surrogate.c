/* A molecule as points, beads and torsions, and the place of a chain as the
 * numbers of a job. */
#include "surrogate/surrogate.h"

#include "core/vec3.h"
#include "likelihood/term_saxs.h"
#include "prior/prior.h"
#include "surrogate/surrogate_beads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Torsions first..end-1 of a walk, which turn one side of residues that follow
 * each other. */
typedef struct {
    int first, end;
} run;

struct tsr_surrogate {
    const tsr_topology *topology;
    const tsr_likelihood *likelihood;
    tsr_surrogate_spec spec;
    int *first_point; /* [n_residue + 1] */
    int *torsion;     /* [spec.n_torsion] of the topology's */
    int *slot;        /* [spec.n_slot] residues */
    int n_run;
    run *run; /* [n_run] */
    tsr_surrogate_beads *beads;
    tsr_surrogate_data *data;
};

/* ---- may there be one ---- */

int tsr_surrogate_applies(const tsr_topology *topology,
                          const tsr_likelihood *likelihood)
{
    const tsr_topology *t = topology;
    const tsr_likelihood *l = likelihood;
    int n_curve = 0;
    if (l == NULL || l->n_probe != 1 || l->n_view != 1 || l->probe->is_neutron)
        return 0;
    if (t->n_ride > 0) /* what rides would stay behind */
        return 0;
    for (int d = 0; d < l->n_term; d++) {
        const tsr_saxs_term *curve = (const void *)l->term[d];
        if ((l->term[d]->type->needs & TSR_NEEDS_PLACE) != 0)
            return 0;
        if (l->term[d]->type != &tsr_term_saxs)
            continue;
        if (curve->noise == &tsr_noise_relative)
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
        n += t->residue[i].unit < 0 ? TSR_N_POINT : t->residue[i].n_body;
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
    int *place = s->torsion + t->n_torsion; /* of the topology's, here */
    for (int k = 0; k < t->n_torsion; k++) {
        place[k] = slot_of[t->torsion[k].residue] >= 0 ? p->n_torsion : -1;
        if (place[k] >= 0)
            s->torsion[p->n_torsion++] = k;
    }
    for (int j = 0; j < p->n_torsion; j++) {
        const tsr_torsion *own = &t->torsion[s->torsion[j]];
        const tsr_residue *r = &t->residue[own->residue];
        const int *first = s->first_point, at = first[own->residue];
        const int is_phi = own->kind == TSR_PHI;
        const int partner = partner_of(t, s->torsion[j]);
        int32_t *where = p->torsion[j], *turn = p->turn[j];
        where[0] = at + (is_phi ? TSR_POINT_N : TSR_POINT_CA);
        where[1] = at + (is_phi ? TSR_POINT_CA : TSR_POINT_C);
        p->edge[j][0] = at + (is_phi ? TSR_POINT_N : TSR_POINT_CA);
        p->edge[j][1] = at + (is_phi ? TSR_POINT_N : TSR_POINT_O);
        where[2] = own->c_side ? p->edge[j][1] : first[r->chain_first];
        where[3] = own->c_side ? first[r->chain_last + 1] : p->edge[j][0];
        turn[0] = slot_of[own->residue];
        turn[1] = is_phi ? 0 : 1;
        turn[2] = partner < 0 ? -1 : place[partner];
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
    double centre[3] = {0.0, 0.0, 0.0}, n = 0.0, least = INFINITY, most = -1.0;
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
    const tsr_bead *own = tsr_surrogate_bead(s->beads, b);
    const int residue = t->body[own->first].residue;
    const tsr_residue *r = &t->residue[residue];
    double x[3], share[TSR_N_POINT], far = 0.0;
    p->bead[b][0] = p->n_part;
    if (own->unit < 0) {
        tsr_bead_shares(r, own->first - r->first_body, share);
        for (int k = 0; k < TSR_N_POINT; k++)
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

static int stays(const tsr_surrogate_beads *beads, int a, int b)
{
    const int unit = tsr_surrogate_bead(beads, a)->unit;
    return unit >= 0 && unit == tsr_surrogate_bead(beads, b)->unit;
}

static int make_pairs(tsr_surrogate *s)
{
    tsr_surrogate_spec *p = &s->spec;
    const size_t most = (size_t)p->n_bead * (size_t)p->n_bead / 2 + 1;
    p->pair = calloc(most, sizeof *p->pair);
    if (p->pair == NULL)
        return 0;
    for (int a = 0; a < p->n_bead; a++)
        for (int b = a + 1; b < p->n_bead; b++) {
            if (stays(s->beads, a, b))
                continue;
            p->pair[p->n_pair][0] = (uint16_t)a;
            p->pair[p->n_pair++][1] = (uint16_t)b;
        }
    return 1;
}

static int make_room(tsr_surrogate *s)
{
    const tsr_topology *t = s->topology;
    const size_t n = (size_t)t->n_residue + 1, m = (size_t)t->n_torsion + 1,
                 beads = (size_t)tsr_surrogate_n_bead(s->beads),
                 bodies = (size_t)t->n_body;
    tsr_surrogate_spec *p = &s->spec;
    s->first_point = calloc(n, sizeof *s->first_point);
    s->torsion = calloc(2 * m, sizeof *s->torsion);
    s->slot = calloc(n, sizeof *s->slot);
    s->run = calloc(m, sizeof *s->run);
    p->bead = calloc(beads, sizeof *p->bead);
    p->reach = calloc(beads, sizeof *p->reach);
    p->radius = calloc(beads, sizeof *p->radius);
    p->part = calloc(bodies * TSR_N_POINT, sizeof *p->part);
    p->share = calloc(bodies * TSR_N_POINT, sizeof *p->share);
    p->body = calloc(bodies, sizeof *p->body);
    p->contact =
        calloc((size_t)TSR_MAX_TYPE * TSR_MAX_TYPE, sizeof *p->contact);
    p->torsion = calloc(m, sizeof *p->torsion);
    p->turn = calloc(m, sizeof *p->turn);
    p->edge = calloc(m, sizeof *p->edge);
    p->linker = calloc(m, sizeof *p->linker);
    p->density = calloc(n, sizeof *p->density);
    p->term = calloc(TSR_N_RAMA, sizeof *p->term);
    p->n_term = calloc(TSR_N_RAMA, sizeof *p->n_term);
    p->cell = calloc(TSR_N_RAMA, sizeof *p->cell);
    return s->first_point != NULL && s->torsion != NULL && s->slot != NULL &&
           s->run != NULL && p->bead != NULL && p->reach != NULL &&
           p->radius != NULL && p->part != NULL && p->share != NULL &&
           p->body != NULL && p->contact != NULL && p->torsion != NULL &&
           p->turn != NULL && p->edge != NULL && p->linker != NULL &&
           p->density != NULL && p->term != NULL && p->n_term != NULL &&
           p->cell != NULL;
}

static int describe(tsr_surrogate *s, const tsr_prior *prior,
                    const tsr_prior_table *table, const tsr_conformation *first)
{
    const double(*body)[3] = (const double(*)[3])first->body;
    int *slot_of = calloc((size_t)s->topology->n_residue + 1, sizeof *slot_of);
    if (slot_of == NULL)
        return 0;
    set_points(s);
    set_slots(s, slot_of);
    set_torsions(s, slot_of);
    set_runs(s);
    set_linkers(s, body);
    free(slot_of);
    set_densities(&s->spec, prior, table);
    set_clash(s, prior);
    s->spec.n_bead = tsr_surrogate_n_bead(s->beads);
    for (int b = 0; b < s->spec.n_bead; b++)
        set_bead(s, b, body);
    s->spec.has_c2 = tsr_surrogate_has_water(s->beads);
    s->spec.n_curve = tsr_surrogate_data_n_curve(s->data);
    return make_pairs(s) && tsr_surrogate_knots(s->likelihood, &s->spec);
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
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    s->topology = topology;
    s->likelihood = likelihood;
    s->beads = tsr_surrogate_beads_new(topology, likelihood, first);
    s->data = tsr_surrogate_data_new(likelihood);
    if (s->beads == NULL || s->data == NULL || !make_room(s) ||
        !describe(s, prior, table, first)) {
        tsr_surrogate_free(s);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    if (s->spec.n_torsion == 0 || s->spec.n_pair == 0) {
        tsr_surrogate_free(s);
        return TSR_OK;
    }
    *out = s;
    return TSR_OK;
}

void tsr_surrogate_free(tsr_surrogate *surrogate)
{
    tsr_surrogate *s = surrogate;
    if (s == NULL)
        return;
    tsr_surrogate_spec *p = &s->spec;
    void *const owned[] = {
        s->first_point, s->torsion, s->slot,  s->run,    p->bead,    p->reach,
        p->radius,      p->part,    p->share, p->body,   p->contact, p->pair,
        p->torsion,     p->turn,    p->edge,  p->linker, p->density, p->term,
        p->n_term,      p->cell,    p->sinc};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    tsr_surrogate_beads_free(s->beads);
    tsr_surrogate_data_free(s->data);
    free(s);
}

tsr_status tsr_surrogate_update(tsr_surrogate *surrogate, tsr_err *err)
{
    tsr_surrogate_data *data = tsr_surrogate_data_new(surrogate->likelihood);
    TSR_TRY(tsr_allocated(data, err));
    tsr_surrogate_data_free(surrogate->data);
    surrogate->data = data;
    return TSR_OK;
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
        put(x[TSR_N], centre, to[TSR_POINT_N]);
        put(r->amino == TSR_GLY ? x[TSR_CA] : cb, centre, to[TSR_POINT_CB]);
        put(tsr_amino_has_side_chain(r->amino) ? side : x[TSR_CA], centre,
            to[TSR_POINT_SC]);
        put(x[TSR_CA], centre, to[TSR_POINT_CA]);
        put(x[TSR_C], centre, to[TSR_POINT_C]);
        put(x[TSR_O], centre, to[TSR_POINT_O]);
    }
}

static void put_head(const tsr_surrogate *s, const tsr_surrogate_place *at,
                     float *head)
{
    const tsr_parameter *p = &s->likelihood->contrast[TSR_C2];
    head[0] = (float)at->beta;
    head[6] = (float)at->steps;
    if (!s->spec.has_c2)
        return;
    head[1] = (float)at->contrast[TSR_C2];
    head[2] = (float)p->mean, head[3] = (float)p->width;
    head[4] = (float)p->low, head[5] = (float)p->high;
}

tsr_status tsr_surrogate_fill(const tsr_surrogate *surrogate,
                              const tsr_surrogate_layout *layout,
                              const tsr_surrogate_place *place, float *job,
                              float (*point)[4], tsr_err *err)
{
    const tsr_surrogate *s = surrogate;
    const tsr_surrogate_spec *p = &s->spec;
    const tsr_topology *t = s->topology;
    put_points(s, place->conformation, point);
    put_head(s, place, job + layout->head);
    for (int k = 0; k < p->n_slot; k++)
        for (int kind = 0; kind < 2; kind++)
            job[layout->angle + 2 * k + kind] = (float)tsr_conformation_torsion(
                t, place->conformation, s->slot[k],
                kind == 0 ? TSR_PHI : TSR_PSI);
    for (int k = 0; k < p->n_torsion + 1 + p->n_linker; k++)
        job[layout->width + k] = (float)exp(place->log_width[k]);
    for (int k = 0; k < p->n_linker * TSR_SURROGATE_FACTOR; k++)
        job[layout->factor + k] = (float)place->factor[0][k];
    TSR_TRY(tsr_surrogate_beads_fill(
        s->beads,
        &(tsr_surrogate_mix){place->contrast, place->others, place->weight,
                             place->learnt},
        layout, job, err));
    return tsr_surrogate_data_fill(s->data, place->theta, job + layout->curve,
                                   err);
}

tsr_status tsr_surrogate_turn(const tsr_surrogate *surrogate,
                              const float *change_rad, tsr_conformation *to,
                              tsr_err *err)
{
    const tsr_surrogate *s = surrogate;
    const tsr_topology *t = s->topology;
    double(*change)[2] = calloc((size_t)t->n_residue, sizeof *change);
    if (change == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
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

void tsr_surrogate_learn(const tsr_surrogate *surrogate, const double *profile,
                         const float *walked, const double *contrast, long n,
                         double *learnt)
{
    const tsr_likelihood *l = surrogate->likelihood;
    const double gain = pow((double)n + 1.0, -0.7);
    double start[TSR_N_CONTRAST];
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        start[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (int q = 0; q < l->grid.n_q; q++) {
        const double ratio = l->view->atoms != NULL
                                 ? tsr_likelihood_ratio(l, 0, start, (size_t)q)
                                 : 1.0;
        const double seen = profile[q] / ((double)walked[q] * ratio);
        if (seen > 0.0 && isfinite(seen)) /* else beads are of no use there */
            learnt[q] += gain * (seen - 1.0 - learnt[q]);
    }
}
