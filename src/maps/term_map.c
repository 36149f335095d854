/* The likelihood term `map`: a density map, as electron microscopy gives it.
 *
 *     E(x) = a S(x) + b + noise
 *
 * S is the density of the ensemble, its bodies as Gaussians. The scale a > 0
 * and the background b have flat priors, the noise level s has 1 / s;
 * integrated out, with N voxels that count as n independent ones and m = n - 2,
 *
 *     log L = -1/2 log(n^2 Var S) - m/2 log(pi n Var E (1 - CC^2))
 *             + log Gamma(m/2) - log 2 + log P(a > 0)
 *
 * so that the correlation CC of the two becomes a likelihood. Noise of
 * neighbouring voxels is correlated. Where half-maps, or voxels of the solvent,
 * show its power P by frequency, sums over voxels weigh frequencies by W = 1/P
 * up to the resolution (maps/fourier.h), and n is how many they are. Else
 * what is independent is a piece of the size of the resolution R,
 * n = (4 pi / 3) V / R^3, a rule of thumb, of the volume V in which the map
 * varies.
 *
 * No grid is made while structures move. With E' the map
 * less its mean, three sums matter: S W E', S W S and S. A body weighs as much
 * as its atoms have electrons; it is a normal density of the blur's width,
 * sigma = (sigma / R) R, and of its atoms' spread about its centre. The map is
 * blurred by widths that are close together, and read between them; so
 * sigma / R may be inferred. The whole box counts; a molecule must lie well
 * within it. */
#include "core/text.h"
#include "likelihood/term.h"
#include "maps/blurred.h"
#include "maps/density.h"
#include "maps/dock.h"
#include "maps/map_source.h"
#include "maps/overlap.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the sums of a prediction ---- */

/* What is known of one prediction beside a map: the three sums that its
 * correlation is made of, kept up to date as bodies move.
 *
 *     sum S W E    one reading a body of the map, blurred beforehand
 *     sum S W S    pairs of bodies: two Gaussians overlap in a Gaussian
 *     sum S        a constant
 *
 * E is the map less its mean, W what frequencies count (maps/fourier.h). */

/* What bodies are in the map's eyes: by type, in electrons and Angstrom^2 of
 * their atoms' spread along an axis. They are Gaussians of the blur's width and
 * this spread. A body of what is no amino acid counts as the side chain with as
 * many atoms. */
typedef struct {
    const tsr_topology *topology;
    unsigned char *type; /* of the bodies, up to whole blocks */
    int occurs[TSR_MAX_TYPE];
    double weight[TSR_MAX_TYPE], spread2[TSR_MAX_TYPE];
    int most_state;
    double voxel_volume; /* Angstrom^3 */
    const tsr_blurred *map;
} map_bodies;

/* Arrays follow it: for each state the bodies' coordinates, what the map reads
 * there, and their place for sums of overlaps. */
typedef struct {
    double cc, var_s; /* the correlation, S W S less the mean's part a voxel */
    double sigma_ang; /* of the kernel; 0: there is none */
    double at_level[TSR_MAX_TYPE]; /* of the map, by type */
    double weight[TSR_MAX_STATES];
    int n_state;
    tsr_overlap_kernel kernel;
    int64_t overlap[]; /* [most_state][most_state] of two states, the lower
                          triangle; of one with itself without i = j */
} map_fit;

/* Of a topology, with rg2 [n_type] (NULL: points); most_state, voxel_volume and
 * map are the caller's. Errors: TSR_E_NOMEM. */
static tsr_status bodies_make(const tsr_topology *topology, const double *rg2,
                              map_bodies *out, tsr_err *err)
{
    const int n = topology->n_body;
    *out = (map_bodies){.topology = topology,
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

static void bodies_clear(map_bodies *bodies)
{
    free(bodies->type);
    bodies->type = NULL;
}

/* ---- the arrays of a fit ---- */

static double *coordinates(const map_bodies *t, map_fit *f)
{
    return (double *)(f->overlap + t->most_state * t->most_state);
}

static double (*xyz_of(const map_bodies *t, map_fit *f, int k))[3]
{
    double(*first)[3] = (double(*)[3])coordinates(t, f);
    return first + (size_t)k * (size_t)t->topology->n_body;
}

static double *read_of(const map_bodies *t, map_fit *f, int k)
{
    return &xyz_of(t, f, t->most_state)[0][0] +
           (size_t)k * (size_t)t->topology->n_body;
}

static float *place_of(const map_bodies *t, map_fit *f, int k)
{
    return (float *)read_of(t, f, t->most_state) +
           (size_t)k * tsr_overlap_room(t->topology->n_body);
}

/* Scratch: which bodies are in, and a list of some of them. */
static int *scratch_of(const map_bodies *t, map_fit *f)
{
    return (int *)place_of(t, f, t->most_state);
}

static size_t row_bytes(const map_bodies *t)
{
    return sizeof(float) *
           tsr_overlap_row_room(t->map->filter.n, t->topology->n_body);
}

static size_t fit_bytes(const map_bodies *t)
{
    const size_t n = (size_t)t->topology->n_body, k = (size_t)t->most_state;
    return sizeof(map_fit) + k * k * sizeof(int64_t) +
           k * (4 * n * sizeof(double) +
                tsr_overlap_room((int)n) * sizeof(float));
}

/* The kernel's rows, behind the scratch; a copy seldom needs them. */
static size_t rows_at(const map_bodies *t)
{
    const size_t n = (size_t)tsr_overlap_bodies(t->topology->n_body);
    return fit_bytes(t) + 2 * n * sizeof(int);
}

static float *rows_of(const map_bodies *t, map_fit *f)
{
    return (float *)(void *)((char *)f + rows_at(t));
}

/* What depends on sigma alone. Sums over voxels of products of two Gaussians
 * are, of voxels smaller than they are wide, those of integrals: a Gaussian of
 * the distance. */
static void set_sigma(const map_bodies *t, double sigma_ang, map_fit *f)
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
static void add_overlaps(const map_bodies *t, map_fit *f, int state,
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
static void place(const map_bodies *t, map_fit *f, int state, int n_moved,
                  const double (*x)[3])
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
static int list_moved(const map_bodies *t, map_fit *f, int state,
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

static void list_all(const map_bodies *t, map_fit *f)
{
    const int n = t->topology->n_body;
    int *moved = scratch_of(t, f) + tsr_overlap_bodies(n);
    for (int i = 0; i < n; i++)
        moved[i] = i;
}

static void take_weights(const tsr_prediction *prediction, map_fit *f)
{
    f->n_state = prediction->n_state;
    memcpy(f->weight, prediction->weight,
           (size_t)f->n_state * sizeof *f->weight);
}

/* The sums over the voxels, and what follows from them. */
static void add_up(const map_bodies *t, map_fit *f)
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

/* NULL: out of memory. */
static map_fit *fit_new(const map_bodies *t, tsr_pool *pool)
{
    const size_t room = (size_t)tsr_overlap_bodies(t->topology->n_body);
    map_fit *f = tsr_pool_new(pool, 1, rows_at(t) + row_bytes(t));
    for (size_t i = 0; f != NULL && i < room; i++)
        scratch_of(t, f)[i] = -1;
    return f;
}

/* All at a width of the blur. prediction NULL: of the structures that it has.
 */
static void fit_make(const map_bodies *t, double sigma_ang,
                     const tsr_prediction *prediction, map_fit *f)
{
    const int n = t->topology->n_body;
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

static void fit_copy(const map_bodies *t, const map_fit *from, map_fit *f)
{
    const size_t at = rows_at(t);
    if (f->sigma_ang != from->sigma_ang)
        memcpy((char *)f + at, (const char *)from + at, row_bytes(t));
    memcpy(f, from, fit_bytes(t));
}

/* The same bits from the fit of another prediction at the same width, with as
 * many states: bodies that did not move keep what is known of them. */
static void fit_update(const map_bodies *t, const map_fit *from,
                       const tsr_prediction *prediction, map_fit *f)
{
    fit_copy(t, from, f);
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

/* y += by * d2/2 of the sum S W S, by the places of a state's bodies, times v
 * (term.h, stiffen): of the part in which each of two bodies moves. */
static void fit_stiffen(const map_bodies *t, const map_fit *f, int state,
                        double by, int n, const double *v, double *y)
{
    const int n_body = t->topology->n_body;
    const double *x =
        (const double *)(f->overlap + t->most_state * t->most_state) +
        (size_t)(3 * state * n_body);
    const double reach = (double)f->kernel.reach_ang;
    double r[3], k[3][3];
    for (int i = 0; i < n_body; i++)
        for (int j = 0; j < n_body; j++) {
            tsr_vec3_sub(r, x + (ptrdiff_t)3 * i, x + (ptrdiff_t)3 * j);
            if (tsr_vec3_dot(r, r) > reach * reach)
                continue;
            slopes(&f->kernel, t->type[i], t->type[j], r, k);
            for (int c = 0; c < 3; c++)
                for (int d = 0; d < 3; d++) {
                    const double stiff = by * k[c][d];
                    const double *from = v + (size_t)(3 * j + d) * (size_t)n;
                    double *to = y + (size_t)(3 * i + c) * (size_t)n;
                    for (int e = 0; e < n; e++)
                        to[e] += stiff * from[e];
                }
        }
}

/* ---- the term ---- */

typedef struct {
    tsr_term term;
    char label[160];
    double resolution;
    double n_free; /* n, voxels that count as independent */
    map_bodies bodies;
    tsr_blurred *map;
    tsr_map *to_dock; /* until the molecule is placed; NULL: it is */
    tsr_log *log;     /* until then */
    double coord, observed, sigma;
    double limit; /* the correlation that noise leaves of the molecule itself;
                     NaN: the noise is not known */
} map_term;

static const char *const origin_words[] = {"auto", "origin", "nstart", NULL};

static const char *const infer_words[] = {"infer", NULL};

static const char *const mask_words[] = {"model", "threshold:", NULL};

static const double pi = 3.14159265358979324;

/* The prior of sigma / R where it is inferred: log-normal; programs have 0.19
 * to 0.5. The widths that the map is blurred by reach beyond it. */
static const double sigma_middle = 0.28, sigma_low = 0.08, sigma_high = 0.9;

/* Of the start; a molecule has to lie within its map. */
static const double least_inside = 0.5;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "file", tsr_map_options, file, .is_path = 1,
              .doc = "the density map: MRC2014, CCP4 or OpenDX"),
    TSR_FIELD(DOUBLE, "resolution", tsr_map_options, resolution,
              .unit = "Angstrom", .min = 0.0, .max = 100.0,
              .doc = "of the map"),
    TSR_FIELD(
        NUMBER_OR_WORD, "sigma_over_r", tsr_map_options, sigma_over_r,
        .initial = "infer", .min = 0.08, .max = 0.9, .words = infer_words,
        .doc =
            "width of an atom's Gaussian over the resolution: inferred, with a "
            "log-normal prior around 0.28, or fixed"),
    TSR_FIELD(DOUBLE, "sigma_width", tsr_map_options, sigma_width,
              .initial = "0.35", .min = 1e-3, .max = 2.0,
              .doc = "standard deviation of log sigma_over_r in its prior"),
    TSR_FIELD(CHOICE, "origin", tsr_map_options, origin, .initial = "auto",
              .words = origin_words,
              .doc = "which field of the header says where the first voxel is"),
    TSR_FIELD(
        STRING, "half_map_1", tsr_map_options, half[0], .is_path = 1,
        .doc =
            "with half_map_2: the two halves of the data, whose difference is "
            "the noise, so that it can be whitened"),
    TSR_FIELD(STRING, "half_map_2", tsr_map_options, half[1], .is_path = 1,
              .doc = "the other half"),
    TSR_FIELD(
        STRING, "mask", tsr_map_options, mask, .is_path = 1,
        .words = mask_words,
        .doc = "where the molecule may be: a map on the same grid, 0.5 or more "
               "inside; model: around the start; threshold:X: around voxels of "
               "at least X. The rest is set to its mean, and without half-maps "
               "shows the noise"),
    TSR_FIELD(
        DOUBLE, "mask_distance", tsr_map_options, mask_distance,
        .initial = "10", .unit = "Angstrom", .min = 0.0, .max = 1000.0,
        .doc =
            "how far masks by model or threshold reach: farther than anything "
            "will move"),
    TSR_FIELD(
        BOOL, "dock", tsr_map_options, dock, .initial = "false",
        .doc = "bring the start to its best place in the map first, as a rigid "
               "body, as tessera map dock does"),
    TSR_FIELD(
        DOUBLE, "independent", tsr_map_options, independent, .initial = "0",
        .min = 0.0, .max = 1e12,
        .doc = "voxels that count as independent; 0: (4 pi / 3) V / R^3 of the "
               "volume V in which the map varies"),
    {0}};

static void term_free(tsr_term *term)
{
    map_term *t = (map_term *)term;
    tsr_blurred_free(t->map);
    tsr_map_free(t->to_dock);
    bodies_clear(&t->bodies);
}

/* ---- the map ---- */

/* Blurred from the narrowest body at the smallest sigma / R to the widest at
 * the largest. */
static tsr_status blur(map_term *t, const tsr_map_source *m,
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
                            wide + pow(high * t->resolution, 2.0), &t->map,
                            err);
}

/* The start mirrored in the middle of the box: a map of the wrong hand agrees
 * with one of its images better than with itself, as in tessera map cc. */
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
                     "%s: mirrored along %c in the middle of the box the start "
                     "has a correlation of %.3f, not %.3f: the map has the "
                     "wrong hand, or its sections were read in the wrong order",
                     t->label, "xyz"[c], cc[c], cc[3]);
    }
    tsr_pool_clear(&pool);
    return status;
}

/* The map is the term's only until the molecule is placed. */
static tsr_status take_map(map_term *t, const tsr_term_source *source,
                           tsr_err *err)
{
    const tsr_map_options *o = (const void *)source->options;
    tsr_map_start start = {0, NULL};
    tsr_map_source m;
    if (source->start != NULL && !o->dock)
        start = (tsr_map_start){source->topology->n_body,
                                (const double(*)[3])source->start->body};
    TSR_TRY(tsr_map_source_read(o, start, source->log, &m, err));
    const double *step = m.map->grid.step;
    t->bodies.voxel_volume = step[0] * step[1] * step[2];
    t->n_free = m.n_free;
    t->sigma = 1.0 / sqrt(t->n_free); /* of one of so many voxels */
    tsr_status status = TSR_OK;
    if (start.n > 0)
        status = tsr_map_check_overlap(
            &m.map->grid, "the start", start.n, start.xyz, least_inside,
            "dock: true brings it there, or is origin another?", source->log,
            err);
    TSR_THEN(status, blur(t, &m, o, err));
    t->bodies.map = t->map;
    if (status == TSR_OK && start.n > 0)
        status = check_hand(t, source, m.middle, err);
    if (status == TSR_OK)
        t->limit = sqrt(fmax(0.0, 1.0 - m.noise / t->map->square));
    if (isnan(m.noise))
        t->limit = (double)NAN;
    if (o->dock)
        t->to_dock = m.map, t->log = source->log;
    else
        tsr_map_free(m.map);
    return status;
}

static tsr_status check_options(const tsr_term_source *source, tsr_err *err)
{
    const tsr_map_options *o = (const void *)source->options;
    if (o->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: a map needs a file",
                        source->number);
    if (!(o->resolution > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: a map needs its resolution, in Angstrom",
                        source->number);
    if ((o->half[0] == NULL) != (o->half[1] == NULL))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: half_map_1 and half_map_2 come together",
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
    t->observed = 1.0; /* the correlation that no noise would leave */
    snprintf(t->label, sizeof t->label, "%.150s", tsr_text_file_name(o->file));
    term->label = t->label;
    term->n_point = 1;
    term->coord = &t->coord;
    term->observed = &t->observed;
    term->sigma = &t->sigma;
    term->n_parameter = 1;
    term->parameter[0] = tsr_parameter_log_normal(
        "sigma_over_r", NULL, "width of the blur over the resolution",
        o->sigma_over_r, sigma_middle, o->sigma_width, TSR_CHANGES_FIT);
    term->parameter[0].seldom = 0.9; /* all bodies change */
    TSR_TRY(bodies_make(source->topology, source->rg2, &t->bodies, err));
    t->bodies.most_state =
        source->n_state > 0 ? source->n_state : TSR_MAX_STATES;
    TSR_TRY(take_map(t, source, err));
    if (!isnan(t->limit))
        tsr_term_add_note(term, "limit",
                          "the correlation that the map's noise would leave of "
                          "a structure that is right",
                          &t->limit);
    return TSR_OK;
}

/* Scores of a model and of its mirror image are in the ratio of correlations.
 */
static tsr_status check_docked_hand(const map_term *t, int n,
                                    const double (*xyz)[3],
                                    const double *weight,
                                    const tsr_dock_options *options,
                                    double score, tsr_err *err)
{
    tsr_map_pose pose;
    int is_placed = 0;
    double(*image)[3] = calloc((size_t)n, sizeof *image);
    if (image == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a mirror image");
    memcpy(image, xyz, (size_t)n * sizeof *image);
    for (int i = 0; i < n; i++)
        image[i][0] = -image[i][0];
    tsr_status status = tsr_dock(t->to_dock, n, (const double(*)[3])image,
                                 weight, options, 1, &pose, &is_placed, err);
    if (status == TSR_OK && is_placed && pose.score > 1.04 * score)
        tsr_warn(t->log,
                 "%s: the mirror image of the start fits better, %.2f times as "
                 "high a correlation: the map has the wrong hand; mirror it",
                 t->label, pose.score / score);
    free(image);
    return status;
}

static tsr_status term_place(const tsr_term *term,
                             const tsr_conformation *conformation,
                             tsr_motion *motion, int *is_placed, tsr_err *err)
{
    const map_term *t = (const map_term *)term;
    const int n = t->bodies.topology->n_body;
    const tsr_dock_options options = {.resolution_ang = t->resolution,
                                      .sigma_ang =
                                          sigma_middle * t->resolution};
    tsr_map_pose pose = {.score = 0.0};
    *is_placed = 0;
    if (t->to_dock == NULL)
        return TSR_OK;
    double *weight = calloc((size_t)n, sizeof *weight);
    if (weight == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for docking");
    for (int i = 0; i < n; i++)
        weight[i] = t->bodies.weight[t->bodies.type[i]];
    tsr_status status =
        tsr_dock(t->to_dock, n, (const double(*)[3])conformation->body, weight,
                 &options, 1, &pose, is_placed, err);
    if (status == TSR_OK && *is_placed)
        status = check_docked_hand(t, n, (const double(*)[3])conformation->body,
                                   weight, &options, pose.score, err);
    free(weight);
    memcpy(motion->rotation, pose.turn, sizeof pose.turn);
    for (int c = 0; c < 3 && *is_placed; c++)
        motion->shift[c] = pose.to[c] - tsr_vec3_dot(pose.turn[c], pose.from);
    return status;
}

static void term_tell(const tsr_term_options *options, FILE *out)
{
    const tsr_map_options *o = (const void *)options;
    fprintf(out,
            "Structures were compared with a density map of %g \xc3\x85 "
            "resolution, bodies as Gaussians; scale, background and noise "
            "level were integrated out",
            o->resolution);
    tsr_term_tell_free(out, ", the width over the resolution", o->sigma_over_r);
    fputs(". ", out);
}

/* ---- one prediction ---- */

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
        return tsr_fail(err, TSR_E_INTERNAL, "map: %d states, room for %d",
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
 * incomplete beta function, whose first terms do where the number itself would
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

/* log P(a > 0): a is distributed as Student's t about its best value. */
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
    /* Sums over all of space are not those of a box that the blurred molecule
     * does not fit into: what is left of its variance is none. */
    if (!(f->var_s > 0.0))
        return -HUGE_VAL;
    /* Sums of bodies are those of the grid to some 1e-4. */
    const double most = 1.0 - 1e-6;
    const double cc = fmax(-most, fmin(most, f->cc));
    return -0.5 * log(n * n * f->var_s) -
           0.5 * m * log(pi * n * t->map->square * (1.0 - cc * cc)) +
           gsl_sf_lngamma(0.5 * m) - log(2.0) + log_positive(cc, m);
}

/* That of least squares: the noise is what the residuals show, (1 - CC^2) of
 * the map's variance, and the density on the map's scale explains CC^2. */
static void term_stiffen(const tsr_term *term, const void *fit, int state,
                         int n, const double *v, double *y)
{
    const map_term *t = (const map_term *)term;
    const map_fit *f = fit;
    const double w = f->weight[state], cc2 = fmin(f->cc * f->cc, 1.0 - 1e-6);
    if (f->cc > 0.0)
        fit_stiffen(&t->bodies, f, state,
                    w * w * (t->n_free - 2.0) * cc2 / (1.0 - cc2) /
                        (t->map->n_voxel * f->var_s),
                    n, v, y);
}

/* The noise is estimated from the residuals, so that in units of it their
 * squares add up to n whatever the structure. In units of the map's own spread
 * they are, a voxel, the share of its variance that the structures leave. */
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

/* A map is not drawn anew: its noise has no model in space. */
const tsr_term_type tsr_term_map = {
    .name = "map",
    .doc = "a density map, as of electron microscopy",
    .source = "docs/density.md",
    .fields = fields,
    .needs = TSR_NEEDS_STATES | TSR_NEEDS_PLACE,
    .observable = "map_correlation",
    .axis = "map_point",
    .title = "Density map",
    .is_map = 1,
    .size = sizeof(map_term),
    .read = term_read,
    .tell = term_tell,
    .fit = term_fit,
    .log_lik = term_log_lik,
    .chi2 = term_chi2,
    .predict = term_predict,
    .free = term_free,
    .fit_new = term_fit_new,
    .refit = term_refit,
    .place = term_place,
    .stiffen = term_stiffen};
