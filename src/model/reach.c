/* How far apart two bodies can come, whatever the free torsions are.
 *
 * A free torsion turns about an axis through the CA of its residue, a hinge,
 * and so does a change of the angle there. So the distance between the CA of
 * two neighbouring hinges is fixed, and so is that from any body between them
 * to either. The distance of two bodies is at most the way along the hinges. */
#include "model/topology.h"

#include "core/vec3.h"

#include <stdlib.h>

typedef struct {
    const tsr_topology *t;
    const tsr_conformation *c;
    int first, last; /* residues of the chain */
    int n_hinge;
    int *hinge; /* [n_hinge] residues, ascending */
} chain_view;

/* Largest distance from `point` to a body of residues a..b. A free side chain
 * is taken at its present place. */
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

/* Stretch s of residues lies between hinges s-1 and s, both included. */
static void stretch(const chain_view *v, int s, int *a, int *b)
{
    *a = s == 0 ? v->first : v->hinge[s - 1];
    *b = s == v->n_hinge ? v->last : v->hinge[s];
}

static double chain_extent(const chain_view *v)
{
    double worst = 0.0;
    double open = 0.0; /* farthest body so far, measured to the last hinge */
    for (int s = 0; s <= v->n_hinge; s++) {
        int a, b;
        stretch(v, s, &a, &b);
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

/* A hinge whose CA nothing moves: the one next to a fixed residue, or else
 * where the turning side changes. */
static int still_hinge(const chain_view *v)
{
    int middle = 0;
    for (int i = v->first; i <= v->last; i++) {
        if (!v->t->residue[i].is_fixed)
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

/* Reach of the chain from a point that no move moves. */
static double chain_radius(const chain_view *v, double fixed[3])
{
    if (v->n_hinge == 0) {
        tsr_vec3_copy(fixed, v->c->backbone[v->first][TSR_CA]);
        return farthest(v, v->first, v->last, fixed);
    }
    int middle = still_hinge(v);
    tsr_vec3_copy(fixed, hinge_ca(v, middle));
    double worst = 0.0, way = 0.0;
    int a, b;
    for (int h = middle; h < v->n_hinge; h++) {
        stretch(v, h + 1, &a, &b);
        double d = way + farthest(v, a, b, hinge_ca(v, h));
        worst = d > worst ? d : worst;
        if (h + 1 < v->n_hinge)
            way += tsr_vec3_distance(hinge_ca(v, h), hinge_ca(v, h + 1));
    }
    way = 0.0;
    for (int h = middle; h >= 0; h--) {
        stretch(v, h, &a, &b);
        double d = way + farthest(v, a, b, hinge_ca(v, h));
        worst = d > worst ? d : worst;
        if (h > 0)
            way += tsr_vec3_distance(hinge_ca(v, h), hinge_ca(v, h - 1));
    }
    return worst;
}

/* Free side chains swing and bodies of a hinge shift with O: a margin for both,
 * Angstrom, on either end. It holds nearly all of a side chain's Gaussian,
 * which has no end; P(X) = 0 for the rest (run/setup.h). */
static const double side_margin = 3.0;

double tsr_topology_reach(const tsr_topology *topology,
                          const tsr_conformation *first)
{
    size_t n = (size_t)topology->n_residue;
    int *hinge = calloc(n, sizeof *hinge);
    double(*fixed)[3] = calloc((size_t)topology->n_chain, sizeof *fixed);
    double *radius = calloc((size_t)topology->n_chain, sizeof *radius);
    double worst = 0.0;
    if (hinge == NULL || fixed == NULL || radius == NULL) {
        worst = (double)NAN;
        goto done;
    }
    int chain = 0;
    for (int i = 0; i < topology->n_residue; chain++) {
        chain_view v = {topology, first, i, topology->residue[i].chain_last,
                        0,        hinge};
        for (int r = v.first; r <= v.last; r++)
            if (topology->residue[r].flexible)
                hinge[v.n_hinge++] = r;
        double own = chain_extent(&v);
        worst = own > worst ? own : worst;
        radius[chain] = chain_radius(&v, fixed[chain]);
        for (int other = 0; other < chain; other++) {
            double d = radius[chain] + radius[other] +
                       tsr_vec3_distance(fixed[chain], fixed[other]);
            worst = d > worst ? d : worst;
        }
        i = v.last + 1;
    }
    worst += 2.0 * side_margin;
    if (topology->n_ride > 0)
        worst = HUGE_VAL;
    for (int c = 0; c < topology->n_chain; c++)
        worst = topology->mobile[c] && topology->n_chain > 1 ? HUGE_VAL : worst;
done:
    free(hinge);
    free(fixed);
    free(radius);
    return worst;
}
