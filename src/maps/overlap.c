/* A place in memory: x, y, z of all bodies, up to whole blocks, then of each
 * block its centre and radius. */
#include "maps/overlap.h"

#include "core/clones.h"

#include <math.h>
#include <string.h>

enum { BLOCK = TSR_OVERLAP_BLOCK };

/* So many units the largest pair has: what single precision can tell. */
static const double most_units = 0x1p26;

/* A Gaussian ends where it has fallen to exp(-12.5). */
static const float most_fall = 12.5f;

static const float far_away = 1e9f; /* where a block has no body */

static int blocks(int n)
{
    return (n + BLOCK - 1) / BLOCK;
}

int tsr_overlap_bodies(int n)
{
    return blocks(n) * BLOCK;
}

size_t tsr_overlap_room(int n)
{
    return (size_t)blocks(n) * (3 * BLOCK + 4);
}

/* Of the kernel's part m, in units of 1: what two bodies have in one place,
 * and how fast it falls. The order of a and b must not matter. */
static double overlap(double variance, double *falls)
{
    const double two_pi = 6.28318530717958648;
    *falls = 0.5 / variance;
    return pow(two_pi * variance, -1.5);
}

void tsr_overlap_make(const double *weight, const double *variance, int n_part,
                      const double *share, const double *extra, double volume,
                      tsr_overlap_kernel *out)
{
    double most = 0.0, wide = 0.0, falls;
    out->n_part = n_part;
    for (int a = 0; a < TSR_OVERLAP_TYPES; a++)
        if (variance[a] > 0.0) {
            double sum = 0.0;
            for (int m = 0; m < n_part; m++) {
                const double v = 2.0 * variance[a] + extra[m];
                sum += weight[a] * weight[a] * fabs(share[m]) *
                       overlap(v, &falls) / volume;
                wide = fmax(wide, v);
            }
            most = fmax(most, sum);
        }
    out->unit = most > 0.0 ? most / most_units : 1.0;
    out->reach_ang = (float)sqrt(2.0 * (double)most_fall * wide);
    for (int m = 0; m < n_part; m++)
        for (int a = 0; a < TSR_OVERLAP_TYPES; a++)
            for (int b = 0; b < TSR_OVERLAP_TYPES; b++) {
                double height = 0.0;
                falls = 0.0;
                if (variance[a] > 0.0 && variance[b] > 0.0)
                    height =
                        weight[a] * weight[b] * share[m] *
                        overlap(variance[a] + variance[b] + extra[m], &falls) /
                        (volume * out->unit);
                out->falls[m][a][b] = (float)falls;
                out->height[m][a][b] = (float)height;
            }
}

/* ---- places ---- */

static void bound_block(int n, int b, float *place)
{
    const int room = blocks(n) * BLOCK;
    const int count = n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK;
    float *bound = place + (size_t)(3 * room + 4 * b), square = 0.0f;
    for (int c = 0; c < 3; c++) {
        float sum = 0.0f;
        for (int k = 0; k < count; k++)
            sum += place[c * room + b * BLOCK + k];
        bound[c] = sum / (float)count;
    }
    for (int k = 0; k < count; k++) {
        float d2 = 0.0f;
        for (int c = 0; c < 3; c++) {
            const float d = place[c * room + b * BLOCK + k] - bound[c];
            d2 += d * d;
        }
        square = d2 > square ? d2 : square;
    }
    bound[3] = sqrtf(square) + 0.01f; /* on the safe side of rounding */
}

void tsr_overlap_place(int n, int first, int count, const double (*xyz)[3],
                       float *place)
{
    const int room = blocks(n) * BLOCK;
    for (int i = first; i < first + count; i++)
        for (int c = 0; c < 3; c++)
            place[c * room + i] = (float)xyz[i][c];
    for (int i = n; i < room; i++)
        place[i] = place[room + i] = place[2 * room + i] = far_away;
    for (int b = first / BLOCK; b * BLOCK < first + count; b++)
        bound_block(n, b, place);
}

/* ---- rows ---- */

static size_t row_floats(int n_part, int room)
{
    return (size_t)(2 * n_part) * (size_t)room;
}

size_t tsr_overlap_row_room(int n_part, int n)
{
    return TSR_OVERLAP_TYPES * row_floats(n_part, blocks(n) * BLOCK);
}

void tsr_overlap_make_rows(const tsr_overlap_kernel *kernel, int n,
                           const unsigned char *type, float *rows)
{
    const int room = blocks(n) * BLOCK;
    for (int a = 0; a < TSR_OVERLAP_TYPES; a++)
        for (int m = 0; m < kernel->n_part; m++, rows += 2 * (size_t)room)
            for (int j = 0; j < room; j++) {
                rows[j] = kernel->falls[m][a][type[j]];
                rows[room + j] = kernel->height[m][a][type[j]];
            }
}

/* ---- sums ---- */

typedef struct {
    const tsr_overlap_kernel *kernel;
    int room;
    const float *rows;
    const float *place; /* of the bodies j */
} partners;

/* exp(-64 y): a series, then exp(-y) - 1 doubled six times, which is as exact
 * as single precision and which the compiler makes for several y at once. */
TSR_INLINE float fallen(float y)
{
    const float third = 1.0f / 3.0f;
    float e = -y * (1.0f - 0.5f * y * (1.0f - third * y * (1.0f - 0.25f * y)));
    e *= 2.0f + e;
    e *= 2.0f + e;
    e *= 2.0f + e;
    e *= 2.0f + e;
    e *= 2.0f + e;
    e *= 2.0f + e;
    return 1.0f + e;
}

/* Numbers that are not negative are in the order of their bits, as integers,
 * among which compilers choose without a branch. */
TSR_INLINE void at_most(float limit, float value[BLOCK])
{
    int32_t bits[BLOCK], most;
    memcpy(bits, value, sizeof bits);
    memcpy(&most, &limit, sizeof most);
    for (int j = 0; j < BLOCK; j++)
        bits[j] = bits[j] < most ? bits[j] : most;
    memcpy(value, bits, sizeof bits);
}

/* What is left of a Gaussian at its end is taken off all of it, so that it ends
 * at 0. */
TSR_INLINE void add_part(const float *falls, const float *height,
                         const float square[BLOCK], float sum[BLOCK])
{
    const float most = most_fall / 64.0f, rest = fallen(most);
    float y[BLOCK], value[BLOCK];
    for (int j = 0; j < BLOCK; j++)
        y[j] = falls[j] * (square[j] * (1.0f / 64.0f));
    at_most(most, y);
    for (int j = 0; j < BLOCK; j++)
        value[j] = height[j] * (fallen(y[j]) - rest);
    for (int j = 0; j < BLOCK; j++)
        sum[j] += value[j];
}

/* A body at r with those of block b that are not left out; row: of its type. */
TSR_CLONES static int64_t add_block(const partners *p, const float r[3],
                                    const float *row, int b, const int *is_in)
{
    const tsr_overlap_kernel *k = p->kernel;
    const float *x = p->place + b * BLOCK, *y = x + p->room, *z = y + p->room;
    float square[BLOCK], value[BLOCK] = {0.0f};
    int32_t sum = 0;
    for (int j = 0; j < BLOCK; j++) {
        const float dx = x[j] - r[0], dy = y[j] - r[1], dz = z[j] - r[2];
        square[j] = dx * dx + dy * dy + dz * dz;
    }
    row += b * BLOCK;
    for (int m = 0; m < k->n_part; m++, row += 2 * (size_t)p->room)
        add_part(row, row + p->room, square, value);
    for (int j = 0; j < BLOCK; j++)
        sum += (int32_t)value[j] & is_in[j];
    return sum;
}

/* Whether any of a block is within reach of r. */
static int is_near(const partners *p, const float r[3], int b)
{
    const float *bound = p->place + (size_t)(3 * p->room + 4 * b);
    const float most = p->kernel->reach_ang + bound[3];
    const float d[3] = {bound[0] - r[0], bound[1] - r[1], bound[2] - r[2]};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < most * most;
}

static const float *row_of(const partners *p, int type)
{
    return p->rows + (size_t)type * row_floats(p->kernel->n_part, p->room);
}

static void take(const float *place, int room, int i, float r[3])
{
    for (int c = 0; c < 3; c++)
        r[c] = place[c * room + i];
}

int64_t tsr_overlap_own(const tsr_overlap_kernel *kernel, int n,
                        const unsigned char *type, const float *rows,
                        const float *place, int n_moved, const int *moved,
                        int *is_in)
{
    const int n_block = blocks(n);
    const partners p = {kernel, n_block * BLOCK, rows, place};
    int64_t sum = 0;
    /* Bodies that are done leave; blocks that all have left are passed over. */
    int first = 0;
    for (int m = 0; m < n_moved; m++) {
        const float *row = row_of(&p, type[moved[m]]);
        float r[3];
        take(place, p.room, moved[m], r);
        is_in[moved[m]] = 0;
        if (moved[m] == m)
            first = (m + 1) / BLOCK;
        for (int b = first; b < n_block; b++)
            if (is_near(&p, r, b))
                sum += add_block(&p, r, row, b, is_in + b * BLOCK);
    }
    for (int m = 0; m < n_moved; m++)
        is_in[moved[m]] = -1;
    return 2 * sum;
}

int64_t tsr_overlap_between(const tsr_overlap_kernel *kernel, int n,
                            const unsigned char *type, const float *rows,
                            const float *place, int n_moved, const int *moved,
                            const float *other)
{
    static const int all[BLOCK] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const int n_block = blocks(n);
    const partners p = {kernel, n_block * BLOCK, rows, other};
    int64_t sum = 0;
    for (int m = 0; m < n_moved; m++) {
        const float *row = row_of(&p, type[moved[m]]);
        float r[3];
        take(place, p.room, moved[m], r);
        for (int b = 0; b < n_block; b++)
            if (is_near(&p, r, b))
                sum += add_block(&p, r, row, b, all);
    }
    return 2 * sum;
}

double tsr_overlap_self(const tsr_overlap_kernel *kernel, int type)
{
    float sum = 0.0f;
    for (int m = 0; m < kernel->n_part; m++)
        sum += kernel->height[m][type][type] *
               (fallen(0.0f) - fallen(most_fall / 64.0f));
    return kernel->unit * (double)(int32_t)sum;
}
