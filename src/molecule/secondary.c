/* Assigns secondary structure by the method of DSSP (Kabsch & Sander 1983).
 *
 * A hydrogen bond exists where the partial charges of C=O and N-H attract each
 * other by more than 0.5 kcal/mol. Patterns of bonds define turns and bridges.
 * Consecutive turns form a helix, and consecutive bridges form a ladder of two
 * strands. */
#include "molecule/secondary.h"

#include "core/pool.h"
#include "core/vec3.h"

#include <stdlib.h>
#include <string.h>

/* The two strongest acceptors (C=O) of a residue's N-H; -1: none. */
typedef struct {
    int acceptor[2];
    double energy[2];
} bonds;

typedef struct {
    int n;
    const tsr_backbone *residue;
    int *follows; /* [n] 1: bonded to the preceding residue */
    bonds *bond;  /* [n] */
} chain;

static const double nearest_ca =
    9.0; /* residues with CA farther apart have no bond, Angstrom */
static const double weakest = -0.5;     /* kcal/mol */
static const double lowest = -9.9;      /* energy if atoms nearly coincide */
static const double longest_bond = 2.0; /* C to N of a peptide, Angstrom */

int tsr_backbone_follows(const tsr_backbone *residue)
{
    return residue->has_all && residue[-1].has_all &&
           tsr_vec3_distance(residue[-1].c, residue->n) < longest_bond;
}

/* Electrostatic energy of C=O ... H-N, kcal/mol (equation 1 of the paper). H is
 * 1 Angstrom from N, opposite to the C=O of the preceding residue. */
static double bond_energy(const tsr_backbone *donor,
                          const tsr_backbone *acceptor)
{
    const double scale = 0.42 * 0.20 * 332.0;
    double h[3];
    tsr_vec3_sub(h, donor[-1].c, donor[-1].o);
    tsr_vec3_normalize(h);
    for (int k = 0; k < 3; k++)
        h[k] += donor->n[k];
    double on = tsr_vec3_distance(acceptor->o, donor->n);
    double ch = tsr_vec3_distance(acceptor->c, h);
    double oh = tsr_vec3_distance(acceptor->o, h);
    double cn = tsr_vec3_distance(acceptor->c, donor->n);
    if (on < 0.5 || ch < 0.5 || oh < 0.5 || cn < 0.5)
        return lowest;
    return scale * (1.0 / on + 1.0 / ch - 1.0 / oh - 1.0 / cn);
}

static void insert_bond(bonds *bond, int acceptor, double energy)
{
    int place = energy < bond->energy[0] ? 0 : 1;
    if (energy >= bond->energy[1])
        return;
    if (place == 0) {
        bond->acceptor[1] = bond->acceptor[0];
        bond->energy[1] = bond->energy[0];
    }
    bond->acceptor[place] = acceptor;
    bond->energy[place] = energy;
}

static void find_bonds(const chain *s)
{
    for (int d = 0; d < s->n; d++) {
        const tsr_backbone *donor = &s->residue[d];
        s->bond[d] = (bonds){{-1, -1}, {weakest, weakest}};
        if (!s->follows[d] || donor->is_proline)
            continue;
        for (int a = 0; a < s->n; a++) {
            const tsr_backbone *acceptor = &s->residue[a];
            if (acceptor->has_all && a != d && a != d - 1 &&
                tsr_vec3_distance2(donor->ca, acceptor->ca) <
                    nearest_ca * nearest_ca)
                insert_bond(&s->bond[d], a, bond_energy(donor, acceptor));
        }
    }
}

/* Returns 1 if the C=O of a is bonded to the N-H of d. */
static int is_bonded(const chain *s, int a, int d)
{
    return s->bond[d].acceptor[0] == a || s->bond[d].acceptor[1] == a;
}

/* Returns 1 if residues first..last exist without a break. */
static int is_whole(const chain *s, int first, int last)
{
    if (first < 0 || last >= s->n)
        return 0;
    for (int i = first + 1; i <= last; i++)
        if (!s->follows[i])
            return 0;
    return 1;
}

static int is_turn(const chain *s, int i, int length)
{
    return is_whole(s, i, i + length) && is_bonded(s, i, i + length);
}

/* Marks the helices of turns i to i + length. Two consecutive turns begin a
 * helix, which contains the residues between their ends. An alpha helix has
 * priority over strands, and strands over other helices. */
static void mark_helices(const chain *s, int length, char *kind)
{
    for (int i = 1; i + length < s->n; i++) {
        if (!is_turn(s, i - 1, length) || !is_turn(s, i, length))
            continue;
        for (int k = i; k < i + length; k++)
            if (length == 4 || kind[k] == TSR_COIL)
                kind[k] = TSR_HELIX;
    }
}

/* Bridge between i and j by the patterns of the paper: 1: parallel, -1:
 * antiparallel, 0: no bridge. */
static int is_bridge(const chain *s, int i, int j)
{
    if (abs(i - j) < 3 || !is_whole(s, i - 1, i + 1) ||
        !is_whole(s, j - 1, j + 1))
        return 0;
    if ((is_bonded(s, i - 1, j) && is_bonded(s, j, i + 1)) ||
        (is_bonded(s, j - 1, i) && is_bonded(s, i, j + 1)))
        return 1;
    return (is_bonded(s, i, j) && is_bonded(s, j, i)) ||
                   (is_bonded(s, i - 1, j + 1) && is_bonded(s, j - 1, i + 1))
               ? -1
               : 0;
}

static void mark_run(int a, int b, char *kind)
{
    memset(kind + (a < b ? a : b), TSR_STRAND, (size_t)abs(a - b) + 1);
}

/* Marks the ladder from the bridge (i, j) to the next bridge of the same type:
 * adjacent, or beyond a bulge of at most one residue on one strand and up to
 * four on the other. */
static void mark_ladder(const chain *s, int i, int j, char *kind)
{
    const int way = is_bridge(s, i, j);
    for (int k = 1; way != 0 && k <= 5; k++)
        for (int l = 1; l <= (k <= 2 ? 5 : 2); l++) {
            const int to = j + way * l;
            if (is_bridge(s, i + k, to) != way || !is_whole(s, i, i + k) ||
                !is_whole(s, j < to ? j : to, j < to ? to : j))
                continue;
            mark_run(i, i + k, kind);
            mark_run(j, to, kind);
            return;
        }
}

/* Marks all ladders. In each bridge (i, j), the N-H of i or i + 1 is bonded to
 * j or j - 1. */
static void mark_strands(const chain *s, char *kind)
{
    for (int i = 1; i + 1 < s->n; i++)
        for (int d = i; d <= i + 1; d++)
            for (int b = 0; b < 2; b++) {
                const int a = s->bond[d].acceptor[b];
                for (int j = a; a >= 0 && j <= a + 1; j++)
                    mark_ladder(s, i, j, kind);
            }
}

tsr_status tsr_secondary_find(int n, const tsr_backbone *residue, char *kind,
                              tsr_err *err)
{
    tsr_pool pool = {0};
    chain s = {.n = n, .residue = residue};
    tsr_pool_array(&pool, s.follows, n);
    tsr_pool_array(&pool, s.bond, n);
    const tsr_status status = tsr_pool_check(&pool, err);
    if (status == TSR_OK) {
        for (int i = 1; i < n; i++)
            s.follows[i] = tsr_backbone_follows(&residue[i]);
        memset(kind, TSR_COIL, (size_t)n);
        find_bonds(&s);
        mark_strands(&s, kind);
        for (int length = 3; length <= 5; length++)
            mark_helices(&s, length, kind);
    }
    tsr_pool_clear(&pool);
    return status;
}
