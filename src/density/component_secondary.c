/* Secondary structure from hydrogen bonds (Kabsch & Sander 1983, Biopolymers
 * 22:2577), as far as helices and strands go: a helix is two 4-turns in a row,
 * a strand takes part in a bridge. */
#include "core/vec3.h"
#include "density/component.h"

#include <math.h>
#include <string.h>

enum { N, CA, C, O };

typedef struct {
    int n;
    const double (*x)[4][3];
    const int *has, *linked;
} chain;

static double distance(const double a[3], const double b[3])
{
    double d[3];
    tsr_vec3_sub(d, a, b);
    return sqrt(tsr_vec3_dot(d, d));
}

/* Is there a bond from the N-H of residue d to the O=C of residue a? The energy
 * of four partial charges below -0.5 kcal/mol; H is 1 Angstrom from N, opposite
 * the C=O before it. */
static int is_bonded(const chain *s, int d, int a)
{
    double h[3], length;
    if (d < 1 || d >= s->n || a < 0 || a >= s->n || !s->has[d] || !s->has[a] ||
        !s->linked[d] || !s->has[d - 1] || d == a || d == a + 1)
        return 0;
    const double(*x)[3] = s->x[d], (*y)[3] = s->x[a];
    const double(*before)[3] = s->x[d - 1];
    if (distance(x[CA], y[CA]) > 9.0)
        return 0;
    tsr_vec3_sub(h, before[C], before[O]);
    length = sqrt(tsr_vec3_dot(h, h));
    for (int c = 0; c < 3; c++)
        h[c] = x[N][c] + h[c] / length;
    const double energy =
        27.9 * (1.0 / distance(x[N], y[O]) + 1.0 / distance(h, y[C]) -
                1.0 / distance(h, y[O]) - 1.0 / distance(x[N], y[C]));
    return energy < -0.5;
}

static int is_turn(const chain *s, int i)
{
    for (int k = i + 1; k <= i + 4; k++)
        if (k >= s->n || !s->linked[k])
            return 0;
    return is_bonded(s, i + 4, i);
}

/* A bridge between residues i and j, with neighbours on both sides. */
static int is_bridge(const chain *s, int i, int j)
{
    const int at[4] = {i, i + 1, j, j + 1};
    if (i < 1 || j < 1 || i + 1 >= s->n || j + 1 >= s->n)
        return 0;
    for (int k = 0; k < 4; k++)
        if (!s->linked[at[k]])
            return 0;
    const int parallel = (is_bonded(s, j, i - 1) && is_bonded(s, i + 1, j)) ||
                         (is_bonded(s, i, j - 1) && is_bonded(s, j + 1, i));
    const int antiparallel =
        (is_bonded(s, j, i) && is_bonded(s, i, j)) ||
        (is_bonded(s, j + 1, i - 1) && is_bonded(s, i + 1, j - 1));
    return parallel || antiparallel;
}

void tsr_secondary(int n_residue, const double (*backbone)[4][3],
                   const int *has, const int *linked, char *out)
{
    const chain s = {n_residue, backbone, has, linked};
    memset(out, '-', (size_t)n_residue);
    for (int i = 0; i < n_residue; i++)
        for (int j = i + 3; has[i] && j < n_residue; j++)
            if (has[j] && distance(backbone[i][CA], backbone[j][CA]) < 8.0 &&
                is_bridge(&s, i, j))
                out[i] = out[j] = 'E';
    for (int i = 1; i < n_residue; i++)
        if (is_turn(&s, i - 1) && is_turn(&s, i))
            memset(out + i, 'H', 4);
}
