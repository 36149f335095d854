/* Contacts by the distance of CB, since side chains are often incomplete and a
 * prediction of them is the least sure part. Where the B column may hold pLDDT
 * the structure itself tells: see plddt_scale. */
#include "molecule/parts_steps.h"

#include "core/vec3.h"
#include "molecule/cell_list.h"
#include "molecule/geometry.h"
#include "molecule/secondary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_APART = 4, /* residues in sequence: nearer ones always touch */
    MOST_NEAR = 256,
    SMOOTH = 2 /* residues to either side over which pLDDT is averaged */
};
static const double touching = 7.0, apart = 9.0; /* Angstrom, between CB */
static const double holding = 2.0;               /* contacts of one residue */
static const double bridge = 5.0;       /* weight of a disulfide bond */
static const double longest_bond = 2.0; /* C to N, Angstrom */

void tsr_parts_graph_clear(tsr_parts_graph *graph)
{
    free(graph->row);
    free(graph->chain_first);
    free(graph->chain_last);
    free(graph->kind);
    free(graph->confidence);
    free(graph->contact);
    free(graph->is_bridged);
    free(graph->held);
    *graph = (tsr_parts_graph){.structure = NULL};
}

double tsr_parts_relation(const tsr_parts_graph *graph, int a, int b)
{
    if (graph->pae == NULL || graph->row[a] < 0 || graph->row[b] < 0)
        return 1.0;
    double error = tsr_pae_between(graph->pae, graph->row[a], graph->row[b]);
    return 1.0 / (1.0 + pow(error / 6.0, 4.0));
}

int tsr_parts_is_linked(const tsr_parts_graph *graph, int i)
{
    const tsr_structure *s = graph->structure;
    if (i <= graph->chain_first[i])
        return 0;
    const tsr_atom *c = tsr_residue_atom(s, &s->residue[i - 1], "C");
    const tsr_atom *n = tsr_residue_atom(s, &s->residue[i], "N");
    return tsr_vec3_distance(c->xyz, n->xyz) < longest_bond;
}

static void set_chains(tsr_parts_graph *g)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = 0; i < g->n; i++)
        g->chain_first[i] = i > 0 && strcmp(r[i].chain, r[i - 1].chain) == 0
                                ? g->chain_first[i - 1]
                                : i;
    for (int i = g->n - 1; i >= 0; i--)
        g->chain_last[i] =
            i + 1 < g->n && g->chain_first[i + 1] == g->chain_first[i]
                ? g->chain_last[i + 1]
                : i;
}

static int take_atom(const tsr_structure *s, int i, const char *name,
                     double x[3])
{
    const tsr_atom *atom = tsr_residue_atom(s, &s->residue[i], name);
    if (atom != NULL)
        tsr_vec3_copy(x, atom->xyz);
    return atom != NULL;
}

/* Secondary structure, and CB as it is in ideal frames. */
static tsr_status read_backbones(const tsr_structure *s, char *kind,
                                 double (*cb)[3], tsr_err *err)
{
    tsr_backbone *backbone = calloc((size_t)s->n_residue, sizeof *backbone);
    TSR_TRY(tsr_allocated(backbone, err));
    for (int i = 0; i < s->n_residue; i++) {
        tsr_backbone *b = &backbone[i];
        b->is_proline = strcmp(s->residue[i].name, "PRO") == 0;
        b->has_all = take_atom(s, i, "N", b->n) &&
                     take_atom(s, i, "CA", b->ca) &&
                     take_atom(s, i, "C", b->c) && take_atom(s, i, "O", b->o);
        tsr_place_cb(cb[i], b->n, b->ca, b->c);
    }
    tsr_status status = tsr_secondary_find(s->n_residue, backbone, kind, err);
    free(backbone);
    return status;
}

/* ---- how sure a residue's place is ---- */

/* CA within 10 Angstrom: how deep a residue lies. */
static void count_neighbours(const tsr_cell_list *cells, int n,
                             const double (*cb)[3], double *count)
{
    int near[MOST_NEAR];
    for (int i = 0; i < n; i++)
        count[i] = tsr_cell_list_near(cells, cb[i], apart, MOST_NEAR, near);
}

static double correlation(int n, const double *x, const double *y)
{
    double sx = 0.0, sy = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
    for (int i = 0; i < n; i++) {
        sx += x[i], sy += y[i];
        xx += x[i] * x[i], yy += y[i] * y[i], xy += x[i] * y[i];
    }
    double var = (n * xx - sx * sx) * (n * yy - sy * sy);
    return var > 0.0 ? (n * xy - sx * sy) / sqrt(var) : 0.0;
}

/* Does the B column hold pLDDT, 0 to 100 (or 0 to 1)? Where the file does not
 * say so: what predictions are sure of lies deep in the structure; B factors
 * are small there. Returns the factor that makes it 0 to 100; 0: no. */
static double plddt_scale(const tsr_structure *s, const double *depth,
                          double *b)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int i = 0; i < s->n_residue; i++) {
        b[i] = s->residue[i].b;
        low = fmin(low, b[i]);
        high = fmax(high, b[i]);
    }
    double scale = high <= 1.0 ? 100.0 : 1.0;
    if (!(low >= 0.0 && high <= 100.0 && high * scale > 50.0))
        return 0.0;
    if (s->is_prediction)
        return scale;
    return (high - low) * scale > 20.0 &&
                   correlation(s->n_residue, b, depth) > 0.3
               ? scale
               : 0.0;
}

/* pLDDT below 50 is as good as always disorder, above 70 a fold (Jumper et al.
 * 2021; Tunyasuvunakool et al. 2021). */
static void set_confidence(tsr_parts_graph *g, const double *plddt)
{
    for (int i = 0; i < g->n; i++) {
        double sum = 0.0;
        int n = 0;
        for (int j = i - SMOOTH; j <= i + SMOOTH; j++)
            if (j >= g->chain_first[i] && j <= g->chain_last[i]) {
                sum += plddt[j];
                n++;
            }
        g->confidence[i] = 1.0 / (1.0 + exp(-(sum / n - 60.0) / 4.0));
    }
}

/* Of errors alone: how sure a residue's relation to its neighbours is. */
static void set_confidence_by_errors(tsr_parts_graph *g)
{
    for (int i = 0; i < g->n; i++) {
        double sum = 0.0;
        int n = 0;
        for (int j = i - 6; j <= i + 6; j++)
            if (abs(j - i) > 2 && j >= g->chain_first[i] &&
                j <= g->chain_last[i]) {
                sum += tsr_parts_relation(g, i, j);
                n++;
            }
        g->confidence[i] = n > 0 ? sum / n : 1.0;
    }
}

static tsr_status read_confidence(tsr_parts_graph *g,
                                  const tsr_cell_list *cells,
                                  const double (*cb)[3], tsr_err *err)
{
    size_t n = (size_t)g->n;
    double *depth = calloc(n, sizeof *depth), *b = calloc(n, sizeof *b);
    if (depth == NULL || b == NULL) {
        free(depth);
        free(b);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < g->n; i++)
        g->confidence[i] = 1.0;
    count_neighbours(cells, g->n, cb, depth);
    double scale = plddt_scale(g->structure, depth, b);
    g->has_plddt = scale > 0.0;
    for (int i = 0; i < g->n && g->pae != NULL && g->pae->plddt != NULL; i++)
        if (g->row[i] >= 0 && !g->has_plddt)
            b[i] = g->pae->plddt[g->row[i]];
    if (!g->has_plddt && g->pae != NULL && g->pae->plddt != NULL)
        g->has_plddt = 1, scale = 1.0;
    for (int i = 0; i < g->n; i++)
        b[i] *= scale;
    if (g->has_plddt)
        set_confidence(g, b);
    else if (g->pae != NULL)
        set_confidence_by_errors(g);
    free(depth);
    free(b);
    return TSR_OK;
}

/* ---- contacts ---- */

static int add_contact(tsr_parts_graph *g, size_t *room, tsr_contact contact)
{
    if ((size_t)g->n_contact == *room) {
        *room = 2 * *room + 4096;
        tsr_contact *bigger = realloc(g->contact, *room * sizeof *bigger);
        if (bigger == NULL)
            return 0;
        g->contact = bigger;
    }
    g->contact[g->n_contact++] = contact;
    return 1;
}

/* Two SG as near as a bond between them. */
static int is_disulfide(const tsr_structure *s, int i, int j)
{
    const tsr_atom *a = tsr_residue_atom(s, &s->residue[i], "SG");
    const tsr_atom *b =
        a == NULL ? NULL : tsr_residue_atom(s, &s->residue[j], "SG");
    return b != NULL && tsr_vec3_distance(a->xyz, b->xyz) < 2.5;
}

static double weigh(tsr_parts_graph *g, int i, int j, double distance)
{
    double weight = fmin(1.0, (apart - distance) / (apart - touching));
    double sure = g->confidence[i] * g->confidence[j];
    if (is_disulfide(g->structure, i, j)) {
        g->is_bridged[i] = g->is_bridged[j] = sure >= 0.25;
        weight = bridge;
    }
    return weight * sure * tsr_parts_relation(g, i, j);
}

static int find_contacts(tsr_parts_graph *g, const tsr_cell_list *cells,
                         const double (*cb)[3])
{
    int near[MOST_NEAR];
    size_t room = 0;
    for (int i = 0; i < g->n; i++) {
        int n = tsr_cell_list_near(cells, cb[i], apart, MOST_NEAR, near);
        for (int k = 0; k < n && k < MOST_NEAR; k++) {
            int j = near[k];
            int is_near =
                j - i < LEAST_APART && g->chain_first[i] == g->chain_first[j];
            if (j <= i || is_near)
                continue;
            double weight = weigh(g, i, j, tsr_vec3_distance(cb[i], cb[j]));
            if (weight > 0.01 &&
                !add_contact(g, &room, (tsr_contact){i, j, weight}))
                return 0;
        }
    }
    return 1;
}

static int find_held(tsr_parts_graph *g)
{
    double *sum = calloc((size_t)g->n, sizeof *sum);
    if (sum == NULL)
        return 0;
    for (int k = 0; k < g->n_contact; k++) {
        sum[g->contact[k].a] += g->contact[k].weight;
        sum[g->contact[k].b] += g->contact[k].weight;
    }
    for (int i = 0; i < g->n; i++)
        g->held[i] = g->confidence[i] >= 0.5 &&
                     (g->kind[i] != TSR_COIL || sum[i] >= holding);
    free(sum);
    return 1;
}

tsr_status tsr_parts_graph_make(const tsr_structure *structure,
                                const tsr_pae *pae, tsr_parts_graph *graph,
                                tsr_err *err)
{
    tsr_parts_graph *g = graph;
    size_t n = (size_t)structure->n_residue;
    *g = (tsr_parts_graph){.structure = structure,
                           .pae = pae,
                           .n = structure->n_residue,
                           .row = calloc(n, sizeof *g->row),
                           .chain_first = calloc(n, sizeof *g->chain_first),
                           .chain_last = calloc(n, sizeof *g->chain_last),
                           .kind = calloc(n, 1),
                           .confidence = calloc(n, sizeof *g->confidence),
                           .is_bridged = calloc(n, 1),
                           .held = calloc(n, sizeof *g->held)};
    double(*cb)[3] = calloc(n, sizeof *cb);
    tsr_cell_list *cells = NULL;
    tsr_status status = cb == NULL || g->row == NULL ||
                                g->chain_first == NULL ||
                                g->chain_last == NULL || g->kind == NULL ||
                                g->confidence == NULL || g->held == NULL ||
                                g->is_bridged == NULL
                            ? tsr_no_memory(err)
                            : TSR_OK;
    if (status == TSR_OK)
        set_chains(g);
    if (status == TSR_OK && pae != NULL)
        status = tsr_pae_rows(pae, structure, g->row, err);
    TSR_THEN(status, read_backbones(structure, g->kind, cb, err));
    TSR_THEN(status, tsr_cell_list_new(g->n, (const double(*)[3])cb, apart,
                                       &cells, err));
    TSR_THEN(status, read_confidence(g, cells, (const double(*)[3])cb, err));
    if (status == TSR_OK &&
        (!find_contacts(g, cells, (const double(*)[3])cb) || !find_held(g)))
        status = tsr_no_memory(err);
    tsr_cell_list_free(cells);
    free(cb);
    return status;
}

int tsr_parts_n_held(const tsr_parts_graph *g, int first, int last)
{
    int n = 0;
    for (int i = first; i <= last; i++)
        n += g->held[i];
    return n;
}
