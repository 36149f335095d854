/* The three sums of a prediction beside a map: only bodies that moved are read
 * anew, and only pairs with one of them are added up again. */
#include "maps/map_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tsr_status tsr_map_bodies_make(const tsr_topology *topology, const double *rg2,
                               tsr_map_bodies *out, tsr_err *err)
{
    const int n = topology->n_body;
    *out = (tsr_map_bodies){.topology = topology,
                            .type = calloc((size_t)tsr_overlap_bodies(n), 1)};
    if (out->type == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++) {
        const tsr_body *body = &topology->body[i];
        /* Half the mass of C, N, O and S is the number of their electrons. */
        const int type = body->like;
        out->type[i] = (unsigned char)type;
        out->occurs[type] = 1;
        out->weight[type] = 0.5 * tsr_body_mass(topology->body_model, type);
        out->spread2[type] = rg2 != NULL ? rg2[type] / 3.0 : 0.0;
    }
    return TSR_OK;
}

void tsr_map_bodies_clear(tsr_map_bodies *bodies)
{
    free(bodies->type);
    bodies->type = NULL;
}

/* ---- the arrays of a fit ---- */

static double *coordinates(const tsr_map_bodies *t, tsr_map_fit *f)
{
    return (double *)(f->overlap + t->most_state * t->most_state);
}

static double (*xyz_of(const tsr_map_bodies *t, tsr_map_fit *f, int k))[3]
{
    double(*first)[3] = (double(*)[3])coordinates(t, f);
    return first + (size_t)k * (size_t)t->topology->n_body;
}

static double *read_of(const tsr_map_bodies *t, tsr_map_fit *f, int k)
{
    return &xyz_of(t, f, t->most_state)[0][0] +
           (size_t)k * (size_t)t->topology->n_body;
}

static float *place_of(const tsr_map_bodies *t, tsr_map_fit *f, int k)
{
    return (float *)read_of(t, f, t->most_state) +
           (size_t)k * tsr_overlap_room(t->topology->n_body);
}

/* Scratch: which bodies are in, and a list of some of them. */
static int *scratch_of(const tsr_map_bodies *t, tsr_map_fit *f)
{
    return (int *)place_of(t, f, t->most_state);
}

static size_t row_bytes(const tsr_map_bodies *t)
{
    return sizeof(float) *
           tsr_overlap_row_room(t->map->filter.n, t->topology->n_body);
}

static size_t fit_bytes(const tsr_map_bodies *t)
{
    const size_t n = (size_t)t->topology->n_body, k = (size_t)t->most_state;
    return sizeof(tsr_map_fit) + k * k * sizeof(int64_t) +
           k * (4 * n * sizeof(double) +
                tsr_overlap_room((int)n) * sizeof(float));
}

/* The kernel's rows, behind the scratch; a copy seldom needs them. */
static size_t rows_at(const tsr_map_bodies *t)
{
    const size_t n = (size_t)tsr_overlap_bodies(t->topology->n_body);
    return fit_bytes(t) + 2 * n * sizeof(int);
}

static float *rows_of(const tsr_map_bodies *t, tsr_map_fit *f)
{
    return (float *)(void *)((char *)f + rows_at(t));
}

/* What depends on sigma alone. Sums over voxels of products of two Gaussians
 * are, of voxels smaller than they are wide, those of integrals: a Gaussian of
 * the distance. */
static void set_sigma(const tsr_map_bodies *t, double sigma_ang, tsr_map_fit *f)
{
    const tsr_map_filter *filter = &t->map->filter;
    double variance[TSR_MAX_TYPE];
    for (int a = 0; a < TSR_MAX_TYPE; a++) {
        const double v = sigma_ang * sigma_ang + t->spread2[a];
        variance[a] = t->occurs[a] ? v : 0.0;
        f->at_level[a] = tsr_blurred_level(t->map, v);
    }
    f->sigma_ang = sigma_ang;
    tsr_overlap_make(t->weight, variance, filter->n, filter->share,
                     filter->extra, t->voxel_volume, &f->kernel);
    tsr_overlap_make_rows(&f->kernel, t->topology->n_body, t->type,
                          rows_of(t, f));
}

/* The overlaps of some bodies of a state with all others, of its own and of the
 * other states, added (sign 1) or taken off (-1). */
static void add_overlaps(const tsr_map_bodies *t, tsr_map_fit *f, int state,
                         int n_moved, int sign)
{
    const int n = t->topology->n_body;
    int *is_in = scratch_of(t, f), *moved = is_in + tsr_overlap_bodies(n);
    for (int l = 0; l < f->n_state; l++) {
        const int high = l > state ? l : state, low = l > state ? state : l;
        const int64_t sum =
            l == state
                ? tsr_overlap_own(&f->kernel, n, t->type, rows_of(t, f),
                                  place_of(t, f, l), n_moved, moved, is_in)
                : tsr_overlap_between(&f->kernel, n, t->type, rows_of(t, f),
                                      place_of(t, f, state), n_moved, moved,
                                      place_of(t, f, l));
        f->overlap[high * t->most_state + low] += sign * sum;
    }
}

/* Bodies of the list come to x. */
static void place(const tsr_map_bodies *t, tsr_map_fit *f, int state,
                  int n_moved, const double (*x)[3])
{
    const int n = t->topology->n_body;
    const int *moved = scratch_of(t, f) + tsr_overlap_bodies(n);
    double(*xyz)[3] = xyz_of(t, f, state), *value = read_of(t, f, state);
    for (int m = 0; m < n_moved; m++) {
        const int i = moved[m];
        const double at = f->at_level[t->type[i]];
        memmove(xyz[i], x[i], sizeof xyz[i]);
        value[i] = t->weight[t->type[i]] * tsr_blurred_read(t->map, at, x[i]);
    }
    for (int m = 0; m < n_moved;) {
        int end = m + 1;
        while (end < n_moved && moved[end] == moved[end - 1] + 1)
            end++;
        tsr_overlap_place(n, moved[m], end - m, (const double(*)[3])xyz,
                          place_of(t, f, state));
        m = end;
    }
}

/* A state's bodies that are not at x are listed. */
static int list_moved(const tsr_map_bodies *t, tsr_map_fit *f, int state,
                      const double (*x)[3])
{
    const int n = t->topology->n_body;
    int *moved = scratch_of(t, f) + tsr_overlap_bodies(n), n_moved = 0;
    const double(*had)[3] = (const double(*)[3])xyz_of(t, f, state);
    for (int i = 0; i < n; i++)
        if (had[i][0] != x[i][0] || had[i][1] != x[i][1] ||
            had[i][2] != x[i][2])
            moved[n_moved++] = i;
    return n_moved;
}

static void list_all(const tsr_map_bodies *t, tsr_map_fit *f)
{
    const int n = t->topology->n_body;
    int *moved = scratch_of(t, f) + tsr_overlap_bodies(n);
    for (int i = 0; i < n; i++)
        moved[i] = i;
}

static void take_weights(const tsr_prediction *prediction, tsr_map_fit *f)
{
    f->n_state = prediction->n_state;
    memcpy(f->weight, prediction->weight,
           (size_t)f->n_state * sizeof *f->weight);
}

/* The sums over the voxels, and what follows from them. */
static void add_up(const tsr_map_bodies *t, tsr_map_fit *f)
{
    const int n = t->topology->n_body;
    double se = 0.0, ss = 0.0, self = 0.0, s = 0.0, each[TSR_MAX_TYPE];
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        each[a] = tsr_overlap_self(&f->kernel, a);
    for (int i = 0; i < n; i++) {
        self += each[t->type[i]];
        s += t->weight[t->type[i]];
    }
    for (int k = 0; k < f->n_state; k++) {
        const double w = f->weight[k], *value = read_of(t, f, k);
        double sum = 0.0;
        for (int i = 0; i < n; i++)
            sum += value[i];
        se += w * sum;
        ss += w * w * self;
        for (int l = 0; l <= k; l++)
            ss += w * f->weight[l] * f->kernel.unit *
                  (double)f->overlap[k * t->most_state + l];
    }
    const double n_voxel = t->map->n_voxel;
    const double mean_s = s / (t->voxel_volume * n_voxel);
    f->var_s = ss / n_voxel -
               mean_s * mean_s * tsr_map_filter_at(&t->map->filter, 0.0);
    f->cc = se / (t->voxel_volume * n_voxel) / sqrt(f->var_s * t->map->square);
}

tsr_map_fit *tsr_map_fit_new(const tsr_map_bodies *bodies, tsr_pool *pool)
{
    const size_t room = (size_t)tsr_overlap_bodies(bodies->topology->n_body);
    tsr_map_fit *f = tsr_pool_new(pool, 1, rows_at(bodies) + row_bytes(bodies));
    for (size_t i = 0; f != NULL && i < room; i++)
        scratch_of(bodies, f)[i] = -1;
    return f;
}

void tsr_map_fit_make(const tsr_map_bodies *bodies, double sigma_ang,
                      const tsr_prediction *prediction, tsr_map_fit *fit)
{
    const tsr_map_bodies *t = bodies;
    const int n = t->topology->n_body;
    tsr_map_fit *f = fit;
    if (prediction != NULL)
        take_weights(prediction, f);
    const int n_state = f->n_state;
    set_sigma(t, sigma_ang, f);
    list_all(t, f);
    memset(f->overlap, 0,
           (size_t)(t->most_state * t->most_state) * sizeof *f->overlap);
    for (int k = 0; k < n_state; k++) {
        place(t, f, k, n,
              prediction != NULL
                  ? (const double(*)[3])prediction->state[k]->body
                  : (const double(*)[3])xyz_of(t, f, k));
        f->n_state = k + 1; /* each pair of states once */
        add_overlaps(t, f, k, n, 1);
    }
    f->n_state = n_state;
    add_up(t, f);
}

void tsr_map_fit_update(const tsr_map_bodies *bodies, const tsr_map_fit *from,
                        const tsr_prediction *prediction, tsr_map_fit *fit)
{
    const tsr_map_bodies *t = bodies;
    tsr_map_fit *f = fit;
    tsr_map_fit_copy(t, from, f);
    take_weights(prediction, f);
    for (int k = 0; k < f->n_state; k++) {
        const double(*x)[3] = (const double(*)[3])prediction->state[k]->body;
        const int n_moved = list_moved(t, f, k, x);
        add_overlaps(t, f, k, n_moved, -1);
        place(t, f, k, n_moved, x);
        add_overlaps(t, f, k, n_moved, 1);
    }
    add_up(t, f);
}

/* The product of the slopes of two Gaussians, summed over the voxels: of an
 * overlap h exp(-f r^2) it is 2 f h exp(-f r^2) (1 - 2 f r r'). */
static void slopes(const tsr_overlap_kernel *k, int a, int b, const double r[3],
                   double out[3][3])
{
    const double r2 = tsr_vec3_dot(r, r);
    memset(out, 0, 9 * sizeof(double));
    for (int m = 0; m < k->n_part; m++) {
        const double f = (double)k->falls[m][a][b];
        const double h =
            k->unit * (double)k->height[m][a][b] * 2.0 * f * exp(-f * r2);
        for (int c = 0; c < 3; c++)
            for (int d = 0; d < 3; d++)
                out[c][d] += h * ((c == d) - 2.0 * f * r[c] * r[d]);
    }
}

void tsr_map_fit_stiffen(const tsr_map_bodies *bodies, const tsr_map_fit *fit,
                         int state, double by, int n, const double *v,
                         double *y)
{
    const tsr_map_bodies *t = bodies;
    const int n_body = t->topology->n_body;
    const double *x =
        (const double *)(fit->overlap + t->most_state * t->most_state) +
        (size_t)(3 * state * n_body);
    const double reach = (double)fit->kernel.reach_ang;
    double r[3], k[3][3];
    for (int i = 0; i < n_body; i++)
        for (int j = 0; j < n_body; j++) {
            tsr_vec3_sub(r, x + (ptrdiff_t)3 * i, x + (ptrdiff_t)3 * j);
            if (tsr_vec3_dot(r, r) > reach * reach)
                continue;
            slopes(&fit->kernel, t->type[i], t->type[j], r, k);
            for (int c = 0; c < 3; c++)
                for (int d = 0; d < 3; d++) {
                    const double f = by * k[c][d];
                    const double *from = v + (size_t)(3 * j + d) * (size_t)n;
                    double *to = y + (size_t)(3 * i + c) * (size_t)n;
                    for (int e = 0; e < n; e++)
                        to[e] += f * from[e];
                }
        }
}

void tsr_map_fit_copy(const tsr_map_bodies *bodies, const tsr_map_fit *from,
                      tsr_map_fit *fit)
{
    const size_t at = rows_at(bodies);
    if (fit->sigma_ang != from->sigma_ang)
        memcpy((char *)fit + at, (const char *)from + at, row_bytes(bodies));
    memcpy(fit, from, fit_bytes(bodies));
}
