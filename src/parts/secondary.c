/* Their energy of a bond, patterns of turns and bridges; of their eight kinds
 * of structure helix and ladder are enough to know what is folded. */
#include "parts/secondary.h"

#include "core/vec3.h"
#include "model/cell_list.h"

#include <stdlib.h>
#include <string.h>

/* A residue's NH, or its CO, in Angstrom; and whom its NH is bonded to. */
typedef struct {
    double n[3], h[3], c[3], o[3], ca[3];
    int has_all, has_h;
    int acceptor[2]; /* residues of the two best bonds; -1: none */
    double energy[2];
} group;

enum { MOST_NEAR = 256 };
static const double nearest_ca = 9.0;   /* no bond between CA further apart */
static const double weakest = -0.5;     /* kcal/mol: Kabsch & Sander's bound */
static const double lowest = -9.9;      /* where atoms nearly coincide */
static const double longest_bond = 2.0; /* C to N of a peptide, Angstrom */

static int take_atom(const tsr_structure *s, int i, const char *name,
                     double x[3])
{
    const tsr_atom *atom = tsr_residue_atom(s, &s->residue[i], name);
    if (atom == NULL)
        return 0;
    tsr_vec3_copy(x, atom->xyz);
    return 1;
}

/* H lies 1 Angstrom from N, against the C=O of the residue before. */
static void place_hydrogen(const tsr_structure *s, group *g, int i)
{
    const group *before = &g[i - 1];
    if (i == 0 || !before->has_all || !g[i].has_all ||
        strcmp(s->residue[i].name, "PRO") == 0 ||
        tsr_vec3_distance(before->c, g[i].n) > longest_bond)
        return;
    double back[3];
    tsr_vec3_sub(back, before->c, before->o);
    tsr_vec3_normalize(back);
    for (int k = 0; k < 3; k++)
        g[i].h[k] = g[i].n[k] + back[k];
    g[i].has_h = 1;
}

static void read_groups(const tsr_structure *s, group *g)
{
    for (int i = 0; i < s->n_residue; i++) {
        g[i].acceptor[0] = g[i].acceptor[1] = -1;
        (void)take_atom(s, i, "CA", g[i].ca);
        g[i].has_all = take_atom(s, i, "N", g[i].n) &&
                       take_atom(s, i, "C", g[i].c) &&
                       take_atom(s, i, "O", g[i].o);
    }
    for (int i = 1; i < s->n_residue; i++)
        place_hydrogen(s, g, i);
}

/* Electrostatic energy of C=O ... H-N, kcal/mol (their equation 1). */
static double bond_energy(const group *donor, const group *acceptor)
{
    const double scale = 0.42 * 0.20 * 332.0;
    double on = tsr_vec3_distance(acceptor->o, donor->n);
    double ch = tsr_vec3_distance(acceptor->c, donor->h);
    double oh = tsr_vec3_distance(acceptor->o, donor->h);
    double cn = tsr_vec3_distance(acceptor->c, donor->n);
    if (on < 0.5 || ch < 0.5 || oh < 0.5 || cn < 0.5)
        return lowest;
    return scale * (1.0 / on + 1.0 / ch - 1.0 / oh - 1.0 / cn);
}

static void keep_bond(group *donor, int acceptor, double energy)
{
    int place = donor->acceptor[0] < 0 || energy < donor->energy[0]   ? 0
                : donor->acceptor[1] < 0 || energy < donor->energy[1] ? 1
                                                                      : 2;
    if (place == 2 || energy > weakest)
        return;
    if (place == 0) {
        donor->acceptor[1] = donor->acceptor[0];
        donor->energy[1] = donor->energy[0];
    }
    donor->acceptor[place] = acceptor;
    donor->energy[place] = energy;
}

static tsr_status find_bonds(int n, group *g, tsr_err *err)
{
    double(*ca)[3] = malloc((size_t)n * sizeof *ca);
    if (ca == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        tsr_vec3_copy(ca[i], g[i].ca);
    tsr_cell_list *cells =
        tsr_cell_list_new(n, (const double(*)[3])ca, nearest_ca);
    for (int i = 0; i < n && cells != NULL; i++) {
        int near[MOST_NEAR];
        int found = !g[i].has_h ? 0
                                : tsr_cell_list_near(cells, ca[i], nearest_ca,
                                                     MOST_NEAR, near);
        for (int k = 0; k < found && k < MOST_NEAR; k++) {
            int j = near[k];
            if (g[j].has_all && j != i && j != i - 1)
                keep_bond(&g[i], j, bond_energy(&g[i], &g[j]));
        }
    }
    free(ca);
    tsr_cell_list_free(cells);
    return cells == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory") : TSR_OK;
}

/* Is the C=O of a bonded to the N-H of b? */
static int is_bonded(const group *g, int n, int a, int b)
{
    return a >= 0 && b >= 0 && a < n && b < n &&
           (g[b].acceptor[0] == a || g[b].acceptor[1] == a);
}

static int same_chain(const tsr_structure *s, int i, int j)
{
    return j < s->n_residue &&
           strcmp(s->residue[i].chain, s->residue[j].chain) == 0;
}

/* Two turns in a row begin a helix; the residues they enclose belong to it. */
static void mark_helices(const tsr_structure *s, const group *g, char *kind)
{
    static const int turn[] = {4, 3, 5}; /* alpha first, 3-10, pi */
    int n = s->n_residue;
    for (int t = 0; t < 3; t++)
        for (int i = 1; i + turn[t] < n; i++)
            if (same_chain(s, i - 1, i + turn[t]) &&
                is_bonded(g, n, i - 1, i - 1 + turn[t]) &&
                is_bonded(g, n, i, i + turn[t]))
                for (int k = i; k < i + turn[t]; k++)
                    kind[k] = TSR_HELIX;
}

/* Their patterns of a bridge between i and j, which are not neighbours. */
static int is_bridge(const group *g, int n, int i, int j)
{
    int parallel = (is_bonded(g, n, i - 1, j) && is_bonded(g, n, j, i + 1)) ||
                   (is_bonded(g, n, j - 1, i) && is_bonded(g, n, i, j + 1));
    int against =
        (is_bonded(g, n, i, j) && is_bonded(g, n, j, i)) ||
        (is_bonded(g, n, i - 1, j + 1) && is_bonded(g, n, j - 1, i + 1));
    return parallel ? 1 : against ? -1 : 0;
}

/* The bridge of i goes to j; where i + 1 has one beside it, they are a ladder.
 * Partners are looked for around whom the residues are bonded to. */
static void mark_strands(int n, const group *g, char *kind)
{
    for (int i = 1; i + 2 < n; i++)
        for (int e = -1; e <= 2; e++)
            for (int b = 0; b < 2; b++) {
                int to = g[i + e].acceptor[b];
                for (int j = to - 2; to >= 0 && j <= to + 2; j++) {
                    int way =
                        j > i + 2 || j < i - 2 ? is_bridge(g, n, i, j) : 0;
                    int next = way == 0 ? 0 : is_bridge(g, n, i + 1, j + way);
                    if (next == way && way != 0)
                        kind[i] = kind[i + 1] = kind[j] = kind[j + way] =
                            TSR_STRAND;
                }
            }
}

tsr_status tsr_secondary_find(const tsr_structure *structure, char *kind,
                              tsr_err *err)
{
    int n = structure->n_residue;
    group *g = calloc((size_t)n + 1, sizeof *g);
    if (g == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    read_groups(structure, g);
    for (int i = 0; i < n; i++)
        kind[i] = TSR_COIL;
    tsr_status status = find_bonds(n, g, err);
    if (status == TSR_OK) {
        mark_strands(n, g, kind);
        mark_helices(structure, g, kind);
    }
    free(g);
    return status;
}
