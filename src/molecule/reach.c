/* Upper bound on the distance between two bodies, for any values of the free
 * torsions.
 *
 * A hinge is the CA of a flexible residue. A free torsion turns about an axis
 * through a hinge, and a change of the bond angle is a turn about an axis
 * through the hinge, too. The distance between two neighbouring hinges is
 * therefore constant, and so is the distance from a body between them to
 * either. The distance of two bodies is at most the length of the path along
 * the hinges. Where a chain is attached to another, the path passes from one to
 * the other within the rigid unit that they share. */
#include "molecule/topology.h"

#include "core/vec3.h"

#include <stdlib.h>

typedef struct {
    const tsr_topology *t;
    const tsr_conformation *c;
    int first, last; /* residues of the chain */
    int n_hinge;
    int *hinge; /* [n_hinge] residues, ascending */
} chain_view;

/* Largest distance from `point` to a body of residues a..b, with side chains at
 * their present positions. */
static double farthest(const chain_view *v, int a, int b, const double point[3])
{
    double worst = 0.0;
    for (int i = a; i <= b; i++) {
        const tsr_residue *r = &v->t->residue[i];
        for (int k = 0; k < r->n_body; k++) {
            double d = tsr_vec3_distance(v->c->body[r->first_body + k], point);
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}

static double inner_diameter(const chain_view *v, int a, int b)
{
    double worst = 0.0;
    for (int i = a; i <= b; i++) {
        const tsr_residue *r = &v->t->residue[i];
        for (int k = 0; k < r->n_body; k++) {
            double d = farthest(v, i, b, v->c->body[r->first_body + k]);
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}

static const double *hinge_ca(const chain_view *v, int h)
{
    return v->c->backbone[v->hinge[h]][TSR_CA];
}

/* Segment s is the residues between hinges s-1 and s, both included. */
static void segment(const chain_view *v, int s, int *a, int *b)
{
    *a = s == 0 ? v->first : v->hinge[s - 1];
    *b = s == v->n_hinge ? v->last : v->hinge[s];
}

/* Upper bound on the distance between two bodies of the chain. */
static double chain_extent(const chain_view *v)
{
    double worst = 0.0;
    double open = 0.0; /* upper bound on the distance from an earlier body to
                          the latest hinge */
    for (int s = 0; s <= v->n_hinge; s++) {
        int a, b;
        segment(v, s, &a, &b);
        double own = inner_diameter(v, a, b);
        worst = own > worst ? own : worst;
        if (s > 0) {
            double d = open + farthest(v, a, b, hinge_ca(v, s - 1));
            worst = d > worst ? d : worst;
        }
        if (s == v->n_hinge)
            break;
        double link =
            s == 0 ? 0.0
                   : tsr_vec3_distance(hinge_ca(v, s - 1), hinge_ca(v, s));
        double here = farthest(v, a, b, hinge_ca(v, s));
        open = open + link > here ? open + link : here;
    }
    return worst;
}

/* Index of a hinge whose CA no torsion moves: next to a fixed residue, or else
 * where the moving side changes from N to C. */
static int unmoved_hinge(const chain_view *v)
{
    int middle = 0;
    for (int i = v->first; i <= v->last; i++) {
        if (!v->t->residue[i % v->t->n_own].is_fixed)
            continue;
        while (middle + 1 < v->n_hinge && v->hinge[middle] < i)
            middle++;
        return middle;
    }
    for (int h = 0; h < v->n_hinge; h++) {
        int i = v->hinge[h];
        if (!(v->last - i < i - v->first))
            middle = h;
    }
    return middle;
}

/* The segment of a residue; a hinge belongs to the segment that it ends. */
static int segment_of(const chain_view *v, int residue)
{
    int s = 0;
    while (s < v->n_hinge && v->hinge[s] < residue)
        s++;
    return s;
}

/* Largest distance of any body of the chain from a point that moves rigidly
 * with segment s. */
static double reach_from(const chain_view *v, int s, const double point[3])
{
    int a, b;
    segment(v, s, &a, &b);
    double worst = farthest(v, a, b, point);
    for (int side = -1; side <= 1; side += 2) {
        double way = 0.0;
        const double *from = point;
        for (int h = side < 0 ? s - 1 : s; h >= 0 && h < v->n_hinge;
             h += side) {
            way += tsr_vec3_distance(from, hinge_ca(v, h));
            from = hinge_ca(v, h);
            segment(v, side < 0 ? h : h + 1, &a, &b);
            worst = fmax(worst, way + farthest(v, a, b, from));
        }
    }
    return worst;
}

/* Largest distance between a point that moves with segment s and the chain's
 * unmoved point, which ends segment `middle`. */
static double path_length(const chain_view *v, int middle, int s,
                          const double unmoved[3], const double point[3])
{
    if (s == middle || s == middle + 1)
        return tsr_vec3_distance(unmoved, point);
    const int side = s < middle ? -1 : 1, end = side < 0 ? s : s - 1;
    double way = tsr_vec3_distance(hinge_ca(v, end), point);
    for (int h = middle; h != end; h += side)
        way += tsr_vec3_distance(hinge_ca(v, h), hinge_ca(v, h + side));
    return way;
}

/* Margin at either end of a distance for motions of free side chains, and for
 * bodies of a hinge residue, which move with O; Angstrom. The Gaussian density
 * of a side chain has infinite support. The margin covers nearly all of it, and
 * P(X) = 0 for the rest (posterior/setup.h). */
static const double side_margin = 3.0;

/* Extent of one chain. */
typedef struct {
    chain_view view;
    double fixed[3]; /* a point that no torsion of this chain moves; in an
                        attached chain only torsions of the host move it */
    int middle;      /* the segment that this point ends */
    double radius;   /* largest distance of a body from this point */
    int order;       /* increases from hosts to attached chains */
    int host;        /* chain of its host; -1: not attached */
    double to_host;  /* largest distance between `fixed` and that of the host
                        chain */
    double to_host_body; /* largest distance between `fixed` and a body of the
                            host chain */
} chain_reach;

static void set_chains(const tsr_topology *t, const tsr_conformation *first,
                       int *hinge, chain_reach *chain)
{
    for (int k = 0; k < t->n_chain; k++) {
        const int i = t->chain_start[k];
        chain_view v = {t, first, i, t->residue[i].chain_last, 0, hinge + i};
        for (int r = v.first; r <= v.last; r++)
            if (t->residue[r % t->n_own].flexible)
                v.hinge[v.n_hinge++] = r;
        chain_reach *c = &chain[k];
        *c = (chain_reach){.view = v, .order = -1, .host = -1};
        c->middle = v.n_hinge == 0 ? 0 : unmoved_hinge(&v);
        tsr_vec3_copy(c->fixed, v.n_hinge == 0 ? first->backbone[i][TSR_CA]
                                               : hinge_ca(&v, c->middle));
        c->radius = reach_from(&v, c->middle, c->fixed);
    }
    for (int k = 0; k < t->n_attached; k++) {
        chain_reach *c = &chain[t->attached[k].chain];
        c->order = k;
        c->host = t->residue[t->attached[k].host].in_chain;
        const chain_reach *host = &chain[c->host];
        const int s = segment_of(&host->view, t->attached[k].host);
        c->to_host =
            path_length(&host->view, host->middle, s, host->fixed, c->fixed);
        c->to_host_body = reach_from(&host->view, s, c->fixed);
    }
}

/* Upper bound on the distance between bodies of two chains, along the path over
 * their hosts. */
static double chain_distance(const chain_reach *chain, int x, int y)
{
    double way = chain[x].radius + chain[y].radius;
    if (chain[x].host == y)
        return chain[x].radius + chain[x].to_host_body;
    if (chain[y].host == x)
        return chain[y].radius + chain[y].to_host_body;
    while (x != y && (chain[x].host >= 0 || chain[y].host >= 0)) {
        int *later = chain[x].order > chain[y].order ? &x : &y;
        way += chain[*later].to_host;
        *later = chain[*later].host;
    }
    return way + tsr_vec3_distance(chain[x].fixed, chain[y].fixed);
}

int tsr_topology_part(const tsr_topology *t, int chain)
{
    for (int k = t->n_attached - 1; k >= 0; k--)
        if (t->attached[k].chain == chain)
            chain = t->residue[t->attached[k].host].in_chain;
    return t->mobile[chain] ? chain + 1 : 0;
}

double tsr_topology_reach(const tsr_topology *t, const tsr_conformation *first)
{
    const int n = t->n_chain;
    tsr_pool pool = {0};
    int *hinge = tsr_pool_new(&pool, (size_t)t->n_residue, sizeof *hinge);
    chain_reach *chain = tsr_pool_new(&pool, (size_t)n, sizeof *chain);
    double worst = (double)NAN, *extent; /* [n + 1] of each part */
    tsr_pool_array(&pool, extent, n + 1);
    if (!pool.failed) {
        set_chains(t, first, hinge, chain);
        worst = 0.0;
        for (int x = 0; x < n; x++) {
            const int part = tsr_topology_part(t, x);
            for (int y = 0; y <= x; y++) {
                const double d = x == y ? chain_extent(&chain[x].view)
                                        : chain_distance(chain, x, y);
                worst = fmax(worst, d);
                if (part == tsr_topology_part(t, y))
                    extent[part] = fmax(extent[part], d + 2.0 * side_margin);
            }
        }
        worst += 2.0 * side_margin;
        for (int c = 0; c < n; c++)
            worst =
                (t->mobile[c] || t->moves_subunit) && n > 1 ? HUGE_VAL : worst;
        for (int part = 0; part <= n && t->contacts > 0; part++)
            worst = (part == 0 ? -TSR_CONTACT_ANG : worst) + extent[part] +
                    (extent[part] > 0.0 ? TSR_CONTACT_ANG : 0.0);
    }
    tsr_pool_clear(&pool);
    return worst;
}
