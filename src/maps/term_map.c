/* The likelihood term `map`: a density map from electron microscopy.
 *
 *     E(x) = a S(x) + b + noise
 *
 * S is the density of the ensemble, with bodies as Gaussians. The scale a > 0
 * and the background b have flat priors, the noise level s has the prior 1 / s.
 * With these three integrated out, for N voxels that are equivalent to n
 * independent voxels, and with m = n - 2,
 *
 *     log L = -1/2 log(n^2 Var S) - m/2 log(pi n Var E (1 - CC^2))
 *             + log Gamma(m/2) - log 2 + log P(a > 0)
 *
 * which turns the correlation CC of map and density into a likelihood. The
 * noise of neighbouring voxels is correlated. If half-maps or solvent voxels
 * show the noise's power P by frequency, sums over voxels weigh frequencies by
 * W = 1 / P up to the resolution (maps/map_source.c), and n is the effective
 * number of frequencies. Otherwise W = 1, and by rule of thumb n = (4 pi / 3) V
 * / R^3. This is the number of frequencies below 1 / R, where R is the
 * resolution and V the volume in which the map varies.
 *
 * No grid is computed while structures move. With E' the map minus its mean,
 * three sums over voxels are needed: those of S W E', S W S and S. A body has
 * as many electrons as its atoms. It is a normal density whose variance is the
 * sum of the blur's, sigma^2 with sigma = (sigma / R) R, and of its atoms'
 * spread. The map is blurred beforehand by closely spaced widths, with
 * interpolation between them, so that sigma / R can be inferred. All voxels of
 * the box count, so the molecule must lie well within it. */
#include "core/clones.h"
#include "core/text.h"
#include "likelihood/term.h"
#include "maps/density.h"
#include "maps/dock.h"
#include "maps/map_source.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- bodies and fits ---- */

enum { BLOCK = 8 /* bodies in a block, neighbours along the chain */ };

/* Bodies as Gaussians. A body that is no part of an amino acid has the type of
 * a side chain with as many atoms. */
typedef struct {
    const tsr_topology *topology;
    int n, n_block, n_padded;     /* number of bodies, of blocks, and of bodies
                                     padded to     whole blocks */
    unsigned char *type;          /* [n_padded] */
    int occurs[TSR_MAX_TYPE];     /* 1: some body has the type */
    double weight[TSR_MAX_TYPE];  /* electrons of a body */
    double spread2[TSR_MAX_TYPE]; /* variance of its atoms along an axis,
                                     Angstrom squared, to which the blur's
                                     variance is added */
    int most_state;               /* largest number of states */
    double voxel_volume;          /* Angstrom^3 */
    const tsr_blurred *map;
} map_bodies;

/* Sum over voxels of the product of the Gaussians of two bodies of types a and
 * b, as a function of their distance r: the sum over the parts m of the map's
 * filter of height[m][a][b] exp(-decay[m][a][b] r^2). Heights are in units of
 * `unit`. Symmetric in a and b to the bit. */
typedef struct {
    float decay[TSR_FILTER_PARTS][TSR_MAX_TYPE][TSR_MAX_TYPE];
    float height[TSR_FILTER_PARTS][TSR_MAX_TYPE][TSR_MAX_TYPE];
    float reach_ang; /* cut-off distance */
    double unit;     /* value of the integer 1 */
} overlap_kernel;

/* The arrays of a fit. */
typedef struct {
    int64_t *overlap; /* [most_state][most_state] overlap of two states, in
                         units of the kernel; lower triangle; on the diagonal
                         without the pairs of a body with itself */
    double (*xyz)[3]; /* [most_state][n] Angstrom */
    double *value;    /* [most_state][n] weight of the body times the blurred
                         map at its position */
    float *position;  /* [most_state][position_floats]: x, y, z [n_padded], then
                         centre and radius of each block */
    float *rows;      /* [type][part][2][n_padded]: decay and height of the
                         overlap of a type with each body */
    int *include, *moved; /* [n_padded] scratch: bit masks that include (-1) or
                             exclude (0) a body, all -1 between calls; a list of
                             bodies */
} fit_arrays;

/* A prediction compared with the map: the three sums of the correlation,
 * updated as bodies move.
 *
 *     sum S W E    one evaluation of the blurred map for each body
 *     sum S W S    pairs of bodies: the overlap of two Gaussians is a Gaussian
 *     sum S        a constant
 *
 * E is the map minus its mean, W are the weights of frequencies
 * (maps/fourier.h). */
typedef struct {
    double cc, var_s; /* cc: correlation; var_s: sum of S W S, without the part
                         of the mean of S, divided by the number of voxels */
    double sigma_ang; /* sigma of the blur; 0: nothing is computed yet */
    double at_level[TSR_MAX_TYPE]; /* level of the blurred map for each type of
                                      body */
    double weight[TSR_MAX_STATES];
    int n_state;
    overlap_kernel kernel;
    fit_arrays arrays;
} map_fit;

/* Makes the Gaussians of a topology's bodies. rg2 [n_type]: mean square radius
 * of each type of body, Angstrom squared; NULL: 0. The caller sets most_state,
 * voxel_volume and map. Errors: TSR_E_NOMEM. */
static tsr_status bodies_make(const tsr_topology *topology, const double *rg2,
                              tsr_pool *pool, map_bodies *out, tsr_err *err)
{
    const int n = topology->n_body, n_block = (n + BLOCK - 1) / BLOCK;
    *out = (map_bodies){.topology = topology,
                        .n = n,
                        .n_block = n_block,
                        .n_padded = n_block * BLOCK};
    tsr_pool_array(pool, out->type, out->n_padded);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < n; i++) {
        /* For C, N, O and S the number of electrons is half the mass. */
        const int type = topology->body[i].contact_type;
        out->type[i] = (unsigned char)type;
        out->occurs[type] = 1;
        out->weight[type] = 0.5 * tsr_body_mass(topology->body_model, type);
        out->spread2[type] = rg2 != NULL ? rg2[type] / 3.0 : 0.0;
    }
    return TSR_OK;
}

static size_t position_floats(const map_bodies *t)
{
    return (size_t)(3 * t->n_padded + 4 * t->n_block);
}

static size_t row_floats(const map_bodies *t) /* floats for one type */
{
    return (size_t)(2 * t->map->filter.n) * (size_t)t->n_padded;
}

/* The arrays of one state. */
static double (*xyz_of(const map_bodies *t, const map_fit *f, int state))[3]
{
    return f->arrays.xyz + (size_t)state * (size_t)t->n;
}

static double *value_of(const map_bodies *t, const map_fit *f, int state)
{
    return f->arrays.value + (size_t)state * (size_t)t->n;
}

static float *positions_of(const map_bodies *t, const map_fit *f, int state)
{
    return f->arrays.position + (size_t)state * position_floats(t);
}

/* Returns NULL when out of memory. */
static map_fit *fit_new(const map_bodies *t, tsr_pool *pool)
{
    const size_t k = (size_t)t->most_state, n = (size_t)t->n;
    fit_arrays arrays;
    map_fit *f = tsr_pool_new(pool, 1, sizeof *f);
    tsr_pool_array(pool, arrays.overlap, k * k);
    tsr_pool_array(pool, arrays.xyz, k * n);
    tsr_pool_array(pool, arrays.value, k * n);
    tsr_pool_array(pool, arrays.position, k * position_floats(t));
    tsr_pool_array(pool, arrays.rows, TSR_MAX_TYPE * row_floats(t));
    tsr_pool_array(pool, arrays.include, t->n_padded);
    tsr_pool_array(pool, arrays.moved, t->n_padded);
    if (pool->failed)
        return NULL;
    for (int i = 0; i < t->n_padded; i++)
        arrays.include[i] = -1;
    f->arrays = arrays;
    return f;
}

static void fit_copy(const map_bodies *t, const map_fit *from, map_fit *f)
{
    const fit_arrays arrays = f->arrays, *old = &from->arrays;
    const size_t k = (size_t)t->most_state, n = (size_t)t->n;
    if (f->sigma_ang != from->sigma_ang)
        memcpy(arrays.rows, old->rows,
               TSR_MAX_TYPE * row_floats(t) * sizeof *arrays.rows);
    memcpy(arrays.overlap, old->overlap, k * k * sizeof *arrays.overlap);
    memcpy(arrays.xyz, old->xyz, k * n * sizeof *arrays.xyz);
    memcpy(arrays.value, old->value, k * n * sizeof *arrays.value);
    memcpy(arrays.position, old->position,
           k * position_floats(t) * sizeof *arrays.position);
    *f = *from;
    f->arrays = arrays;
}

/* ---- overlaps of bodies ----
 *
 * The kernel is short-ranged, so blocks of bodies beyond its reach are skipped.
 * The overlap of each pair is rounded to an integer, so that updated sums equal
 * sums computed afresh, to the bit. */

/* Overlap of the largest pair in units of the kernel: single precision resolves
 * about so many. */
static const double most_units = 0x1p26;

/* Gaussians are cut off where the exponent reaches -12.5. */
static const float cut_off_exponent = 12.5f;

static const float far_away = 1e9f; /* position of padding without a body */

/* Overlap of two unit Gaussians at distance 0 whose variances have the sum
 * `variance`, and *decay, its decay with the squared distance. */
static double overlap_of(double variance, double *decay)
{
    const double two_pi = 6.28318530717958648;
    *decay = 0.5 / variance;
    return pow(two_pi * variance, -1.5);
}

/* Computes the kernel for bodies with variance[type], Angstrom squared along an
 * axis (0: the type does not occur), and the parts of the map's filter. */
static void make_kernel(const map_bodies *t, const double *variance,
                        overlap_kernel *out)
{
    const tsr_map_filter *filter = &t->map->filter;
    const double *weight = t->weight, volume = t->voxel_volume;
    double most = 0.0, wide = 0.0, decay;
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        if (variance[a] > 0.0) {
            double sum = 0.0;
            for (int m = 0; m < filter->n; m++) {
                const double v = 2.0 * variance[a] + filter->extra[m];
                sum += weight[a] * weight[a] * fabs(filter->share[m]) *
                       overlap_of(v, &decay) / volume;
                wide = fmax(wide, v);
            }
            most = fmax(most, sum);
        }
    out->unit = most > 0.0 ? most / most_units : 1.0;
    out->reach_ang = (float)sqrt(2.0 * (double)cut_off_exponent * wide);
    for (int m = 0; m < filter->n; m++)
        for (int a = 0; a < TSR_MAX_TYPE; a++)
            for (int b = 0; b < TSR_MAX_TYPE; b++) {
                double height = 0.0;
                decay = 0.0;
                if (variance[a] > 0.0 && variance[b] > 0.0)
                    height =
                        weight[a] * weight[b] * filter->share[m] *
                        overlap_of(variance[a] + variance[b] + filter->extra[m],
                                   &decay) /
                        (volume * out->unit);
                out->decay[m][a][b] = (float)decay;
                out->height[m][a][b] = (float)height;
            }
}

/* Computes the quantities that depend on sigma alone: kernel, rows and levels
 * of the blurred map. For voxels smaller than the Gaussians, sums over voxels
 * of a product of two Gaussians equal the integral, a Gaussian of the distance.
 * Looking up decay and height of each pair would take as long as the other
 * arithmetic, so they are stored in rows for vector instructions. */
static void set_sigma(const map_bodies *t, double sigma_ang, map_fit *f)
{
    double variance[TSR_MAX_TYPE];
    float *row = f->arrays.rows;
    for (int a = 0; a < TSR_MAX_TYPE; a++) {
        const double v = sigma_ang * sigma_ang + t->spread2[a];
        variance[a] = t->occurs[a] ? v : 0.0;
        f->at_level[a] = tsr_blurred_level(t->map, v);
    }
    f->sigma_ang = sigma_ang;
    make_kernel(t, variance, &f->kernel);
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int m = 0; m < t->map->filter.n;
             m++, row += 2 * (size_t)t->n_padded)
            for (int j = 0; j < t->n_padded; j++) {
                row[j] = f->kernel.decay[m][a][t->type[j]];
                row[t->n_padded + j] = f->kernel.height[m][a][t->type[j]];
            }
}

/* Centre and radius of a sphere around the bodies of block b. */
static void bound_block(const map_bodies *t, int b, float *position)
{
    const int rest = t->n - b * BLOCK, count = rest < BLOCK ? rest : BLOCK;
    float *bound = position + (size_t)(3 * t->n_padded + 4 * b), square = 0.0f;
    for (int c = 0; c < 3; c++) {
        float sum = 0.0f;
        for (int k = 0; k < count; k++)
            sum += position[c * t->n_padded + b * BLOCK + k];
        bound[c] = sum / (float)count;
    }
    for (int k = 0; k < count; k++) {
        float d2 = 0.0f;
        for (int c = 0; c < 3; c++) {
            const float d =
                position[c * t->n_padded + b * BLOCK + k] - bound[c];
            d2 += d * d;
        }
        square = d2 > square ? d2 : square;
    }
    bound[3] = sqrtf(square) + 0.01f; /* larger than the rounding error */
}

/* Moves the n_moved bodies listed in `moved` to their positions in x [n]. */
static void set_positions(const map_bodies *t, map_fit *f, int state,
                          int n_moved, const double (*x)[3])
{
    const int *moved = f->arrays.moved, n_padded = t->n_padded;
    double(*xyz)[3] = xyz_of(t, f, state), *value = value_of(t, f, state);
    float *to = positions_of(t, f, state);
    int last = -1; /* last block whose bound is up to date */
    for (int m = 0; m < n_moved; m++) {
        const int i = moved[m], type = t->type[i];
        memmove(xyz[i], x[i], sizeof xyz[i]);
        value[i] =
            t->weight[type] * tsr_blurred_at(t->map, f->at_level[type], x[i]);
        for (int c = 0; c < 3; c++)
            to[c * n_padded + i] = (float)x[i][c];
    }
    for (int i = t->n; i < n_padded; i++)
        to[i] = to[n_padded + i] = to[2 * n_padded + i] = far_away;
    for (int m = 0; m < n_moved; m++)
        if (moved[m] / BLOCK != last) {
            last = moved[m] / BLOCK;
            bound_block(t, last, to);
        }
}

/* exp(-64 y): the series of exp(-y) - 1, doubled six times. Exact to single
 * precision, and vectorised by compilers. */
TSR_INLINE float exp_minus_64(float y)
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

/* Limits nonnegative values to `limit`. Their bits, read as integers, have the
 * order of the values, and compilers choose the smaller integer without a
 * branch. */
TSR_INLINE void clamp_block(float limit, float value[BLOCK])
{
    int32_t bits[BLOCK], most;
    memcpy(bits, value, sizeof bits);
    memcpy(&most, &limit, sizeof most);
    for (int j = 0; j < BLOCK; j++)
        bits[j] = bits[j] < most ? bits[j] : most;
    memcpy(value, bits, sizeof bits);
}

/* Adds one part of the kernel at the squared distances of a block. The value at
 * the cut-off is subtracted, so that the Gaussian ends at 0. */
TSR_INLINE void add_part(const float *decay, const float *height,
                         const float square[BLOCK], float sum[BLOCK])
{
    const float most = cut_off_exponent / 64.0f;
    const float at_cut_off = exp_minus_64(most);
    float y[BLOCK], value[BLOCK];
    for (int j = 0; j < BLOCK; j++)
        y[j] = decay[j] * (square[j] * (1.0f / 64.0f));
    clamp_block(most, y);
    for (int j = 0; j < BLOCK; j++)
        value[j] = height[j] * (exp_minus_64(y[j]) - at_cut_off);
    for (int j = 0; j < BLOCK; j++)
        sum[j] += value[j];
}

/* Overlap of a body at r with those bodies of block b that `include` selects.
 * row: the row of the body's type. */
TSR_CLONES static int64_t add_block(const map_bodies *t, const float *position,
                                    const float r[3], const float *row, int b,
                                    const int *include)
{
    const float *x = position + b * BLOCK, *y = x + t->n_padded,
                *z = y + t->n_padded;
    float square[BLOCK], value[BLOCK] = {0.0f};
    int32_t sum = 0;
    for (int j = 0; j < BLOCK; j++) {
        const float dx = x[j] - r[0], dy = y[j] - r[1], dz = z[j] - r[2];
        square[j] = dx * dx + dy * dy + dz * dz;
    }
    row += b * BLOCK;
    for (int m = 0; m < t->map->filter.n; m++, row += 2 * (size_t)t->n_padded)
        add_part(row, row + t->n_padded, square, value);
    for (int j = 0; j < BLOCK; j++)
        sum += (int32_t)value[j] & include[j];
    return sum;
}

/* Whether some body of a block may be within reach of r. */
static int is_near(const map_bodies *t, const float *position, float reach,
                   const float r[3], int b)
{
    const float *bound = position + (size_t)(3 * t->n_padded + 4 * b);
    const float most = reach + bound[3];
    const float d[3] = {bound[0] - r[0], bound[1] - r[1], bound[2] - r[2]};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < most * most;
}

/* Twice the sum of the kernel over pairs of a body listed in `moved`
 * (ascending) of `state` and any body of the state `other`. If both states are
 * the same, each pair counts once. */
static int64_t sum_overlaps(const map_bodies *t, map_fit *f, int state,
                            int other, int n_moved)
{
    const int *moved = f->arrays.moved;
    const float *position = positions_of(t, f, state),
                *far = positions_of(t, f, other);
    int *include = f->arrays.include;
    int64_t sum = 0;
    /* Within one state, bodies whose pairs are counted are excluded, and blocks
     * without other bodies are skipped. */
    int first = 0;
    for (int m = 0; m < n_moved; m++) {
        const int i = moved[m];
        const float *row = f->arrays.rows + t->type[i] * row_floats(t);
        const float r[3] = {position[i], position[t->n_padded + i],
                            position[2 * t->n_padded + i]};
        if (state == other) {
            include[i] = 0;
            first = i == m ? (m + 1) / BLOCK : first;
        }
        for (int b = first; b < t->n_block; b++)
            if (is_near(t, far, f->kernel.reach_ang, r, b))
                sum += add_block(t, far, r, row, b, include + b * BLOCK);
    }
    for (int m = 0; m < n_moved; m++)
        include[moved[m]] = -1;
    return 2 * sum;
}

/* Overlap of a body of a type with itself. */
static double self_overlap(const map_bodies *t, const overlap_kernel *k,
                           int type)
{
    float sum = 0.0f;
    for (int m = 0; m < t->map->filter.n; m++)
        sum += k->height[m][type][type] *
               (exp_minus_64(0.0f) - exp_minus_64(cut_off_exponent / 64.0f));
    return k->unit * (double)(int32_t)sum;
}

/* Adds (sign 1) or subtracts (-1) the overlaps of the bodies listed in `moved`,
 * of a state, with all other bodies of this state and all bodies of the other
 * states. */
static void add_overlaps(const map_bodies *t, map_fit *f, int state,
                         int n_moved, int sign)
{
    for (int l = 0; l < f->n_state; l++) {
        const int high = l > state ? l : state, low = l > state ? state : l;
        f->arrays.overlap[high * t->most_state + low] +=
            sign * sum_overlaps(t, f, state, l, n_moved);
    }
}

/* ---- the sums over voxels ---- */

/* Lists in `moved` the bodies of a state whose positions differ from x [n].
 * Returns their number. */
static int list_moved(const map_bodies *t, map_fit *f, int state,
                      const double (*x)[3])
{
    int n_moved = 0;
    const double(*had)[3] = (const double(*)[3])xyz_of(t, f, state);
    for (int i = 0; i < t->n; i++)
        if (had[i][0] != x[i][0] || had[i][1] != x[i][1] ||
            had[i][2] != x[i][2])
            f->arrays.moved[n_moved++] = i;
    return n_moved;
}

static void set_weights(const tsr_prediction *prediction, map_fit *f)
{
    f->n_state = prediction->n_state;
    memcpy(f->weight, prediction->weight,
           (size_t)f->n_state * sizeof *f->weight);
}

/* Combines the sums into the variance of S and the correlation. */
static void combine_sums(const map_bodies *t, map_fit *f)
{
    double se = 0.0, ss = 0.0, self = 0.0, s = 0.0, each[TSR_MAX_TYPE];
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        each[a] = self_overlap(t, &f->kernel, a);
    for (int i = 0; i < t->n; i++) {
        self += each[t->type[i]];
        s += t->weight[t->type[i]];
    }
    for (int k = 0; k < f->n_state; k++) {
        const double w = f->weight[k], *value = value_of(t, f, k);
        double sum = 0.0;
        for (int i = 0; i < t->n; i++)
            sum += value[i];
        se += w * sum;
        ss += w * w * self;
        for (int l = 0; l <= k; l++)
            ss += w * f->weight[l] * f->kernel.unit *
                  (double)f->arrays.overlap[k * t->most_state + l];
    }
    const double n_voxel = t->map->n_voxel;
    const double mean_s = s / (t->voxel_volume * n_voxel);
    f->var_s = ss / n_voxel -
               mean_s * mean_s * tsr_map_filter_at(&t->map->filter, 0.0);
    f->cc = se / (t->voxel_volume * n_voxel) / sqrt(f->var_s * t->map->square);
}

/* Computes the fit for a width of the blur. prediction NULL: for the structures
 * that the fit already has. */
static void fit_make(const map_bodies *t, double sigma_ang,
                     const tsr_prediction *prediction, map_fit *f)
{
    if (prediction != NULL)
        set_weights(prediction, f);
    const int n_state = f->n_state;
    set_sigma(t, sigma_ang, f);
    for (int i = 0; i < t->n; i++)
        f->arrays.moved[i] = i;
    memset(f->arrays.overlap, 0,
           (size_t)(t->most_state * t->most_state) * sizeof *f->arrays.overlap);
    for (int k = 0; k < n_state; k++) {
        set_positions(t, f, k, t->n,
                      prediction != NULL
                          ? (const double(*)[3])prediction->state[k]->body
                          : (const double(*)[3])xyz_of(t, f, k));
        f->n_state = k + 1; /* counts each pair of states once */
        add_overlaps(t, f, k, t->n, 1);
    }
    f->n_state = n_state;
    combine_sums(t, f);
}

/* Computes the fit of a prediction from the fit `from` of another prediction
 * with the same width and number of states. Bodies that did not move keep their
 * values. The bits equal those of fit_make. */
static void fit_update(const map_bodies *t, const map_fit *from,
                       const tsr_prediction *prediction, map_fit *f)
{
    fit_copy(t, from, f);
    set_weights(prediction, f);
    for (int k = 0; k < f->n_state; k++) {
        const double(*x)[3] = (const double(*)[3])prediction->state[k]->body;
        const int n_moved = list_moved(t, f, k, x);
        add_overlaps(t, f, k, n_moved, -1);
        set_positions(t, f, k, n_moved, x);
        add_overlaps(t, f, k, n_moved, 1);
    }
    combine_sums(t, f);
}

/* Second derivative of an overlap h exp(-f r^2) by the positions of both
 * bodies: 2 f h exp(-f r^2) (1 - 2 f r r'). */
static void overlap_hessian(const overlap_kernel *k, int n_part, int a, int b,
                            const double r[3], double out[3][3])
{
    const double r2 = tsr_vec3_dot(r, r);
    memset(out, 0, 9 * sizeof(double));
    for (int m = 0; m < n_part; m++) {
        const double f = (double)k->decay[m][a][b];
        const double h =
            k->unit * (double)k->height[m][a][b] * 2.0 * f * exp(-f * r2);
        for (int c = 0; c < 3; c++)
            for (int d = 0; d < 3; d++)
                out[c][d] += h * ((c == d) - 2.0 * f * r[c] * r[d]);
    }
}

/* y += by * (1/2) d2(sum S W S) v, with second derivatives by the positions of
 * a state's bodies (term.h, hessian_product). Only products of first
 * derivatives of S are included, for each pair of bodies and for each body with
 * itself. */
static void fit_hessian_product(const map_bodies *t, const map_fit *f,
                                int state, double by, int n, const double *v,
                                double *y)
{
    const double(*x)[3] = (const double(*)[3])xyz_of(t, f, state);
    const double reach = (double)f->kernel.reach_ang;
    double r[3], k[3][3];
    for (int i = 0; i < t->n; i++)
        for (int j = 0; j < t->n; j++) {
            tsr_vec3_sub(r, x[i], x[j]);
            if (tsr_vec3_dot(r, r) > reach * reach)
                continue;
            overlap_hessian(&f->kernel, t->map->filter.n, t->type[i],
                            t->type[j], r, k);
            for (int c = 0; c < 3; c++)
                for (int d = 0; d < 3; d++) {
                    const double element = by * k[c][d];
                    const double *from = v + (size_t)(3 * j + d) * (size_t)n;
                    double *to = y + (size_t)(3 * i + c) * (size_t)n;
                    for (int e = 0; e < n; e++)
                        to[e] += element * from[e];
                }
        }
}

/* ---- the term ---- */

/* The term of an entry of kind map. */
typedef struct {
    tsr_term term;
    char label[160];
    double resolution; /* Angstrom */
    double n_free;     /* n, number of independent voxels */
    map_bodies bodies;
    tsr_blurred *map;
    tsr_map *to_dock; /* map for docking; NULL: the entry does not ask for
                         docking */
    tsr_log *log;     /* for term_find_pose */
    double coord, observed, sigma; /* of the term's only point, a correlation */
    double limit; /* correlation of a correct structure, given the noise; NaN:
                     the noise is not known */
} map_term;

static const char *const origin_words[] = {"auto", "origin", "nstart", NULL};

static const char *const infer_words[] = {"infer", NULL};

static const char *const mask_words[] = {"model", "threshold:", NULL};

/* Median of the log-normal prior of sigma / R, and the range of sigma / R for
 * which the map is blurred. Programs use 0.19 to 0.5. */
static const double sigma_middle = 0.28, sigma_low = 0.08, sigma_high = 0.9;

/* Least share of the start's bodies inside the map. */
static const double least_inside = 0.5;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "file", tsr_map_options, file, .is_path = 1,
              .doc = "file of the density map: MRC2014, CCP4 or OpenDX"),
    TSR_FIELD(DOUBLE, "resolution", tsr_map_options, resolution,
              .unit = "Angstrom", .min = 0.0, .max = 100.0,
              .doc = "resolution of the map"),
    TSR_FIELD(NUMBER_OR_WORD, "sigma_over_r", tsr_map_options, sigma_over_r,
              .initial = "infer", .min = 0.08, .max = 0.9, .words = infer_words,
              .doc =
                  "ratio of the width of an atom's Gaussian to the resolution: "
                  "inferred, with a log-normal prior around 0.28, or fixed"),
    TSR_FIELD(DOUBLE, "sigma_width", tsr_map_options, sigma_width,
              .initial = "0.35", .min = 1e-3, .max = 2.0,
              .doc = "standard deviation of log sigma_over_r in its prior"),
    TSR_FIELD(CHOICE, "origin", tsr_map_options, origin, .initial = "auto",
              .words = origin_words,
              .doc = "header field with the position of the first voxel"),
    TSR_FIELD(STRING, "half_map_1", tsr_map_options, half[0], .is_path = 1,
              .doc = "first half-map, with half_map_2: their difference is the "
                     "noise, which is then whitened"),
    TSR_FIELD(STRING, "half_map_2", tsr_map_options, half[1], .is_path = 1,
              .doc = "second half-map"),
    TSR_FIELD(STRING, "mask", tsr_map_options, mask, .is_path = 1,
              .words = mask_words,
              .doc = "region of the molecule: a map on the same grid, inside "
                     "where it is 0.5 or more; model: around the starting "
                     "structure; threshold:X: around voxels of at least X. "
                     "The density outside shows the noise if there are no "
                     "half-maps, and is then set to its mean"),
    TSR_FIELD(DOUBLE, "mask_distance", tsr_map_options, mask_distance,
              .initial = "10", .unit = "Angstrom", .min = 0.0, .max = 1000.0,
              .doc = "distance to which masks by model or threshold extend; "
                     "must be larger than any motion"),
    TSR_FIELD(BOOL, "dock", tsr_map_options, dock, .initial = "false",
              .doc = "first dock the starting structure into the map as a "
                     "rigid body, as tessera map dock does"),
    TSR_FIELD(DOUBLE, "independent_voxels", tsr_map_options, independent,
              .initial = "0", .min = 0.0, .max = 1e12,
              .doc = "number of independent voxels; 0: (4 pi / 3) V / R^3, "
                     "with V the volume in which the map varies"),
    {0}};

/* ---- the map ---- */

/* Blurs the map by all widths from the narrowest body at the smallest sigma / R
 * to the widest body at the largest. */
static tsr_status blur_map(map_term *t, const tsr_map_source *m,
                           const tsr_map_options *o, tsr_err *err)
{
    const int is_fixed = o->sigma_over_r.word < 0;
    const double low = is_fixed ? o->sigma_over_r.number : sigma_low;
    const double high = is_fixed ? o->sigma_over_r.number : sigma_high;
    const tsr_map_sums whole = tsr_map_whole(m->map);
    double narrow = HUGE_VAL, wide = 0.0;
    for (int k = 0; k < TSR_MAX_TYPE; k++)
        if (t->bodies.occurs[k]) {
            narrow = fmin(narrow, t->bodies.spread2[k]);
            wide = fmax(wide, t->bodies.spread2[k]);
        }
    return tsr_blurred_make(m->map, whole.e / whole.n, &m->filter,
                            narrow + pow(low * t->resolution, 2.0),
                            wide + pow(high * t->resolution, 2.0),
                            &t->term.pool, &t->map, err);
}

/* Compares the start with its mirror images through the middle of the map's
 * box, and warns of a better image. A better correlation of an image shows a
 * map of the wrong hand, as in tessera map cc. */
static tsr_status check_hand(const map_term *t, const tsr_term_source *source,
                             const double middle[3], tsr_err *err)
{
    const size_t n = (size_t)source->topology->n_body;
    const double weight = 1.0;
    double cc[4] = {0.0};
    tsr_conformation image = *source->start;
    const tsr_conformation *state = &image;
    const tsr_prediction prediction = {
        .n_state = 1, .state = &state, .weight = &weight};
    tsr_pool pool = {0};
    double(*xyz)[3] = tsr_pool_new(&pool, n, sizeof *xyz);
    map_fit *fit = fit_new(&t->bodies, &pool);
    const tsr_status status = tsr_pool_check(&pool, err);
    for (int c = 3; c >= 0 && status == TSR_OK; c--) {
        memcpy(xyz, source->start->body, n * sizeof *xyz);
        for (size_t i = 0; i < n && c < 3; i++)
            xyz[i][c] = 2.0 * middle[c] - xyz[i][c];
        image.body = xyz;
        fit_make(&t->bodies, sigma_middle * t->resolution, &prediction, fit);
        cc[c] = fit->cc;
        if (c < 3 && cc[c] > cc[3] + 0.1)
            tsr_warn(source->log,
                     "%s: mirrored along %c about the centre of the box the "
                     "starting structure has a correlation of %.3f, not %.3f: "
                     "the map has the wrong hand, or its sections were read in "
                     "reverse order",
                     t->label, "xyz"[c], cc[c], cc[3]);
    }
    tsr_pool_clear(&pool);
    return status;
}

/* Reads and blurs the map. The map itself is kept only for docking. */
static tsr_status set_map(map_term *t, const tsr_term_source *source,
                          tsr_pool *pool, tsr_err *err)
{
    const tsr_map_options *o = (const void *)source->options;
    tsr_map_start start = {0, NULL};
    tsr_map_source m;
    if (source->start != NULL && !o->dock)
        start = (tsr_map_start){source->topology->n_body,
                                (const double(*)[3])source->start->body};
    TSR_TRY(tsr_map_source_read(o, start, source->log, pool, &m, err));
    const double *step = m.map->grid.step;
    t->bodies.voxel_volume = step[0] * step[1] * step[2];
    t->n_free = m.n_free;
    t->sigma = 1.0 / sqrt(t->n_free); /* standard error of a correlation */
    if (start.n > 0)
        TSR_TRY(tsr_map_check_overlap(&m.map->grid, "the starting structure",
                                      start.n, start.xyz, least_inside,
                                      "dock: true docks the structure; or the "
                                      "other value of origin is right",
                                      source->log, err));
    TSR_TRY(blur_map(t, &m, o, err));
    t->bodies.map = t->map;
    if (start.n > 0)
        TSR_TRY(check_hand(t, source, m.middle, err));
    t->limit = isnan(m.noise) ? (double)NAN
                              : sqrt(fmax(0.0, 1.0 - m.noise / t->map->square));
    if (o->dock)
        t->to_dock = m.map, t->log = source->log;
    return TSR_OK;
}

static tsr_status check_options(const tsr_term_source *source, tsr_err *err)
{
    const tsr_map_options *o = (const void *)source->options;
    if (o->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: a map needs a file",
                        source->number);
    if (!(o->resolution > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: a map needs its resolution in Angstrom",
                        source->number);
    if ((o->half[0] == NULL) != (o->half[1] == NULL))
        return tsr_fail(
            err, TSR_E_CONFIG,
            "data.%d: half_map_1 and half_map_2 must be given together",
            source->number);
    tsr_mask kind;
    double threshold;
    tsr_err local;
    if (o->mask != NULL &&
        tsr_mask_parse(o->mask, &kind, &threshold, &local) != TSR_OK)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: %s", source->number,
                        local.message);
    return TSR_OK;
}

static tsr_status term_read(const tsr_term_source *source, tsr_term *term,
                            tsr_err *err)
{
    const tsr_map_options *o = (const void *)source->options;
    map_term *t = (map_term *)term;
    TSR_TRY(check_options(source, err));
    t->resolution = o->resolution;
    t->observed = 1.0; /* the correlation without noise */
    snprintf(t->label, sizeof t->label, "%.150s", tsr_text_file_name(o->file));
    term->label = t->label;
    term->n_point = 1;
    term->coord = &t->coord;
    term->observed = &t->observed;
    term->sigma = &t->sigma;
    term->n_parameter = 1;
    term->parameter[0] = tsr_parameter_log_normal(
        "sigma_over_r", NULL, "ratio of the blur's width to the resolution",
        o->sigma_over_r, sigma_middle, o->sigma_width, TSR_CHANGES_FIT);
    term->parameter[0].skip_fraction = 0.9; /* a step moves all bodies */
    TSR_TRY(bodies_make(source->topology, source->rg2, &term->pool, &t->bodies,
                        err));
    t->bodies.most_state =
        source->n_state > 0 ? source->n_state : TSR_MAX_STATES;
    tsr_pool pool = {0};
    const tsr_status status =
        set_map(t, source, o->dock ? &term->pool : &pool, err);
    tsr_pool_clear(&pool);
    TSR_TRY(status);
    if (!isnan(t->limit))
        tsr_term_add_note(term, "limit",
                          "correlation of the correct structure with this map, "
                          "limited by the map's noise",
                          &t->limit);
    return TSR_OK;
}

/* Docks the start and its mirror image, and warns if the image fits better. The
 * ratio of the two scores is that of the correlations. image: scratch. */
static tsr_status dock_start(const map_term *t, const double (*xyz)[3],
                             const double *weight, double (*image)[3],
                             tsr_map_pose *pose, int *is_placed, tsr_err *err)
{
    const int n = t->bodies.n;
    const tsr_dock_options options = {.resolution_ang = t->resolution,
                                      .sigma_ang =
                                          sigma_middle * t->resolution};
    tsr_map_pose mirrored;
    int has_image;
    TSR_TRY(tsr_dock(t->to_dock, n, xyz, weight, &options, 1, pose, is_placed,
                     err));
    if (!*is_placed)
        return TSR_OK;
    memcpy(image, xyz, (size_t)n * sizeof *image);
    for (int i = 0; i < n; i++)
        image[i][0] = -image[i][0];
    TSR_TRY(tsr_dock(t->to_dock, n, (const double(*)[3])image, weight, &options,
                     1, &mirrored, &has_image, err));
    if (has_image && mirrored.score > 1.04 * pose->score)
        tsr_warn(
            t->log,
            "%s: the mirror image of the starting structure fits better, with "
            "%.2f times the correlation: the map has the wrong hand; mirror it",
            t->label, mirrored.score / pose->score);
    return TSR_OK;
}

static tsr_status term_find_pose(const tsr_term *term,
                                 const tsr_conformation *conformation,
                                 tsr_motion *motion, int *is_placed,
                                 tsr_err *err)
{
    const map_term *t = (const map_term *)term;
    const map_bodies *b = &t->bodies;
    tsr_map_pose pose = {.score = 0.0};
    tsr_pool pool = {0};
    double *weight, (*image)[3];
    *is_placed = 0;
    if (t->to_dock == NULL)
        return TSR_OK;
    tsr_pool_array(&pool, weight, b->n);
    tsr_pool_array(&pool, image, b->n);
    tsr_status status = tsr_pool_check(&pool, err);
    for (int i = 0; i < b->n && status == TSR_OK; i++)
        weight[i] = b->weight[b->type[i]];
    TSR_THEN(status, dock_start(t, (const double(*)[3])conformation->body,
                                weight, image, &pose, is_placed, err));
    tsr_pool_clear(&pool);
    memcpy(motion->rotation, pose.turn, sizeof pose.turn);
    for (int c = 0; c < 3 && *is_placed; c++)
        motion->shift[c] = pose.to[c] - tsr_vec3_dot(pose.turn[c], pose.from);
    return status;
}

static void term_print(const tsr_term_options *options, FILE *out)
{
    const tsr_map_options *o = (const void *)options;
    fprintf(out,
            "Structures were compared with a density map of %g \xc3\x85 "
            "resolution, with bodies as Gaussians; scale, background and noise "
            "level were integrated out",
            o->resolution);
    tsr_term_print_setting(out, ", the width over the resolution",
                           o->sigma_over_r);
    fputs(". ", out);
}

/* ---- a prediction ---- */

static double sigma_of(const map_term *t, const double *theta)
{
    const double ratio = tsr_parameter_value(&t->term.parameter[0], theta[0]);
    return fmin(fmax(ratio, sigma_low), sigma_high) * t->resolution;
}

static void *term_fit_new(const tsr_term *term, tsr_pool *pool)
{
    return fit_new(&((const map_term *)term)->bodies, pool);
}

static tsr_status term_fit(const tsr_term *term, const void *from,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    const map_term *t = (const map_term *)term;
    const map_fit *old = from;
    if (prediction->n_state > t->bodies.most_state)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "map: %d states, but only %d slots",
                        prediction->n_state, t->bodies.most_state);
    if (old != NULL && old->sigma_ang == sigma_of(t, theta) &&
        old->n_state == prediction->n_state)
        fit_update(&t->bodies, old, prediction, fit);
    else
        fit_make(&t->bodies, sigma_of(t, theta), prediction, fit);
    return TSR_OK;
}

static void term_refit(const tsr_term *term, const void *from,
                       const double *theta, void *fit)
{
    const map_term *t = (const map_term *)term;
    fit_copy(&t->bodies, from, fit);
    fit_make(&t->bodies, sigma_of(t, theta), NULL, fit);
}

/* log P(T < -x) of Student's t with nu degrees of freedom, x > 0: half the
 * incomplete beta function, by its series, where the probability itself would
 * underflow. */
static double log_tail(double x, double nu)
{
    const double a = 0.5 * nu, z = nu / (nu + x * x);
    double term = 1.0, sum = 1.0;
    for (int k = 0; k < 10000 && term > 1e-12 * sum; k++) {
        term *= z * (a + 0.5 + k) / (a + 1.0 + k);
        sum += term;
    }
    return a * log(z) + 0.5 * log1p(-z) - log(a) - gsl_sf_lnbeta(a, 0.5) +
           log(sum) - log(2.0);
}

/* log P(a > 0): the scale a is Student-distributed about its best value. */
static double log_positive(double cc, double m)
{
    const double x = cc * sqrt(m / (1.0 - cc * cc));
    return x > -5.0 ? log(gsl_cdf_tdist_P(x, m)) : log_tail(-x, m);
}

static double term_log_lik(const tsr_term *term, const void *fit,
                           const double *theta)
{
    const map_term *t = (const map_term *)term;
    const map_fit *f = fit;
    const double n = t->n_free, m = n - 2.0;
    (void)theta;
    /* The sums extend over all space. If the blurred molecule exceeds the box,
     * the variance can become negative. */
    if (!(f->var_s > 0.0))
        return -HUGE_VAL;
    /* cc may exceed 1: sums over bodies differ from sums on the grid by up to
     * 1e-4 */
    const double most = 1.0 - 1e-6;
    const double cc = fmax(-most, fmin(most, f->cc));
    return -0.5 * log(n * n * f->var_s) -
           0.5 * m * log(TSR_PI * n * t->map->square * (1.0 - cc * cc)) +
           gsl_sf_lngamma(0.5 * m) - log(2.0) + log_positive(cc, m);
}

/* Hessian of the sum of squared residuals. Of the map's variance, the residuals
 * have the share 1 - CC^2, which estimates the noise, and the density on the
 * map's scale has CC^2. */
static void term_hessian_product(const tsr_term *term, const void *fit,
                                 int state, int n, const double *v, double *y)
{
    const map_term *t = (const map_term *)term;
    const map_fit *f = fit;
    const double w = f->weight[state], cc2 = fmin(f->cc * f->cc, 1.0 - 1e-6);
    if (f->cc > 0.0)
        fit_hessian_product(&t->bodies, f, state,
                            w * w * (t->n_free - 2.0) * cc2 / (1.0 - cc2) /
                                (t->map->n_voxel * f->var_s),
                            n, v, y);
}

/* The noise is estimated from the residuals, so their squares in units of the
 * noise add up to n for any structure. So chi2 is given in units of the map's
 * variance: the share of the variance that the structures leave unexplained. */
static double term_chi2(const tsr_term *term, const void *fit)
{
    const map_fit *f = fit;
    (void)term;
    return 1.0 - f->cc * f->cc;
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const void *fit, const double *theta, double *value)
{
    (void)term, (void)prediction, (void)theta;
    value[0] = ((const map_fit *)fit)->cc;
}

/* Replicates are not drawn, since the noise has no spatial model. */
const tsr_term_type tsr_term_map = {
    .name = "map",
    .doc = "density map, for example from electron microscopy",
    .source = "docs/density.md",
    .fields = fields,
    .needs = TSR_NEEDS_STATES | TSR_NEEDS_POSE,
    .observable = "map_correlation",
    .axis = "map_point",
    .title = "Density map",
    .is_map = 1,
    .size = sizeof(map_term),
    .read = term_read,
    .print_assumptions = term_print,
    .fit = term_fit,
    .log_lik = term_log_lik,
    .chi2 = term_chi2,
    .predict = term_predict,
    .fit_new = term_fit_new,
    .refit = term_refit,
    .find_pose = term_find_pose,
    .hessian_product = term_hessian_product};
