/* Statistics of the drawn conformations, in two passes: first the mean shape
 * and the deviations from it, then distances and P(r) of each frame.
 *
 * Only CA atoms are used: they suffice to describe domains and linkers, and
 * thousands of frames fit into memory. */
#include "analysis/shape.h"

#include "analysis/frames.h"

#include <gsl/gsl_sort_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- mean shape ----
 *
 * The mean of many conformations and their superpositions on the mean are
 * iterated in turn. */

int tsr_frames_that_fit(int n_residue)
{
    const double bytes = 200e6;
    const double fits = bytes / (3.0 * sizeof(float) * n_residue);
    return fits > 1e6 ? 1000000 : fits < 2.0 ? 2 : (int)fits;
}

tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                tsr_pool *pool, float **ca, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const size_t one = 3 * (size_t)model->n_residue;
    tsr_pool_array(pool, *ca, (size_t)n * one);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < n; i++) {
        const float *xyz;
        TSR_TRY(tsr_frames_read(frames, at[i], &xyz, err));
        for (int r = 0; r < model->n_residue; r++)
            memcpy(*ca + (size_t)i * one + 3 * (size_t)r,
                   xyz + 3 * (size_t)model->ca[r], 3 * sizeof **ca);
    }
    return TSR_OK;
}

void tsr_start_ca(const tsr_model_atoms *model, double (*start)[3])
{
    for (int r = 0; r < model->n_residue; r++)
        tsr_vec3_copy(start[r], model->xyz + 3 * (size_t)model->ca[r]);
}

void tsr_frame_ca(const float *all, int n_residue, int i, double (*ca)[3])
{
    const float *from = all + (size_t)i * 3 * (size_t)n_residue;
    for (int r = 0; r < n_residue; r++)
        for (int d = 0; d < 3; d++)
            ca[r][d] = (double)*from++;
}

/* Superposes each conformation on the mean of the previous pass, in the first
 * pass on the first conformation; with `align` always on the start. The last
 * pass computes the deviations. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               int n_align, const int *align,
                               const double (*start)[3], double (*mean)[3],
                               double *square, tsr_err *err)
{
    const int last = align != NULL ? 1 : 3;
    const size_t n_ca = (size_t)n_residue;
    double(*ca)[3] = calloc(2 * n_ca, sizeof *ca), (*sum)[3] = ca + n_ca;
    TSR_TRY(tsr_allocated(ca, err));
    memset(square, 0, n_ca * sizeof *square);
    tsr_frame_ca(all, n_residue, 0, mean);
    for (int pass = 0; pass <= last; pass++) {
        memset(sum, 0, n_ca * sizeof *sum);
        for (int i = 0; i < n; i++) {
            tsr_motion motion;
            tsr_frame_ca(all, n_residue, i, ca);
            tsr_superpose(align != NULL ? n_align : n_residue, align,
                          align != NULL ? start : (const double(*)[3])mean,
                          (const double(*)[3])ca, &motion);
            for (int r = 0; r < n_residue; r++) {
                tsr_motion_apply(&motion, ca[r]);
                if (pass == last)
                    square[r] += tsr_vec3_distance2(ca[r], mean[r]) / n;
                for (int d = 0; d < 3; d++)
                    sum[r][d] += ca[r][d] / n;
            }
        }
        if (pass < last)
            memcpy(mean, sum, n_ca * sizeof *sum);
    }
    free(ca);
    return TSR_OK;
}

enum {
    MOST_PAIRS = 60000, /* pairs of a frame, for P(r) */
    MOST_PAIR_FRAMES = 400
};

void tsr_shape_free(tsr_shape *shape)
{
    if (shape == NULL)
        return;
    tsr_domains_free(shape->domains);
    tsr_pool_clear(&shape->pool);
    free(shape);
}

/* The analysis under way. */
typedef struct {
    tsr_pool pool;
    tsr_shape *shape;
    float *all;        /* [n][n_residue][3] CA of all frames */
    double (*ca)[3];   /* [n_residue] CA of the present frame */
    double (*mean)[3]; /* [n_residue] */
    double *square;    /* [n_residue] */
    float *pairs;      /* [n_pair_draw][TSR_N_PAIR_BIN] P(r) of draws */
    int n_draw, n_pair_draw;
    int *draw;      /* [n] draw of each frame */
    int *pair_row;  /* [n_draw] row of a draw in `pairs`; -1: not used */
    double *weight; /* [n] weight of a frame in its draw; sum over the draw 1 */
} job;

static tsr_status allocate(job *j, tsr_err *err)
{
    tsr_shape *s = j->shape;
    const int n_residue = s->n_residue, n = s->n, row = s->n_row;
    tsr_pool *scratch = &j->pool, *out = &s->pool;
    j->n_pair_draw = n < MOST_PAIR_FRAMES ? n : MOST_PAIR_FRAMES;
    tsr_pool_array(scratch, j->ca, n_residue);
    tsr_pool_array(scratch, j->mean, n_residue);
    tsr_pool_array(scratch, j->square, n_residue);
    tsr_pool_array(scratch, j->pairs, j->n_pair_draw * TSR_N_PAIR_BIN);
    tsr_pool_array(scratch, j->draw, n);
    tsr_pool_array(scratch, j->pair_row, n);
    tsr_pool_array(scratch, j->weight, n);
    tsr_pool_array(out, s->at, n);
    tsr_pool_array(out, s->rmsf, n_residue);
    tsr_pool_array(out, s->row, row);
    tsr_pool_array(out, s->distance, row * row);
    tsr_pool_array(out, s->distance_sd, row * row);
    TSR_TRY(tsr_pool_check(scratch, err));
    return tsr_pool_check(out, err);
}

/* ---- one frame ---- */

/* Updates the running means and sums of squares of the distances between rows
 * (Welford's method). seen: number of earlier frames. */
static void add_distances(tsr_shape *s, const double (*ca)[3], int seen)
{
    for (int a = 0; a < s->n_row; a++)
        for (int b = 0; b < a; b++) {
            const size_t at = (size_t)a * (size_t)s->n_row + (size_t)b;
            const double d = tsr_vec3_distance(ca[s->row[a]], ca[s->row[b]]);
            const double off = d - s->distance[at];
            s->distance[at] += off / (seen + 1);
            s->distance_sd[at] += off * (d - s->distance[at]);
        }
}

/* Adds the histogram of pair distances of frame i. In long molecules only every
 * so many residues are used. */
static void add_pairs(job *j, int i)
{
    const int n = j->shape->n_residue;
    int every = 1;
    while ((long)(n / every) * (n / every) > 2L * MOST_PAIRS)
        every++;
    float one[TSR_N_PAIR_BIN] = {0.0F};
    float *to = j->pairs + (size_t)j->pair_row[j->draw[i]] * TSR_N_PAIR_BIN;
    long count = 0;
    for (int a = 0; a < n; a += every)
        for (int b = 0; b < a; b += every) {
            const int bin = (int)(tsr_vec3_distance(j->ca[a], j->ca[b]) /
                                  j->shape->pair_width);
            one[bin < TSR_N_PAIR_BIN ? bin : TSR_N_PAIR_BIN - 1] += 1.0F;
            count++;
        }
    for (int k = 0; k < TSR_N_PAIR_BIN && count > 0; k++)
        to[k] += (float)(j->weight[i] * (double)one[k] /
                         ((double)count * j->shape->pair_width));
}

/* ---- all frames ---- */

/* Sets the bin width of P(r) by the longest distance in some frames. */
static void find_extent(job *j)
{
    enum { MOST_FRAMES = 20 };
    tsr_shape *s = j->shape;
    const int n_frame = s->n < MOST_FRAMES ? s->n : MOST_FRAMES;
    double longest = 1.0;
    for (int i = 0; i < n_frame; i++) {
        tsr_frame_ca(j->all, s->n_residue, tsr_even_index(s->n, n_frame, i),
                     j->ca);
        for (int a = 0; a < s->n_residue; a++)
            for (int b = 0; b < a; b++)
                longest = fmax(longest, tsr_vec3_distance2(j->ca[a], j->ca[b]));
    }
    s->pair_width = 1.1 * sqrt(longest) / TSR_N_PAIR_BIN;
}

static void analyse_frames(job *j)
{
    tsr_shape *s = j->shape;
    for (int i = 0; i < s->n; i++) {
        tsr_frame_ca(j->all, s->n_residue, i, j->ca);
        add_distances(s, (const double(*)[3])j->ca, i);
        if (j->pair_row[j->draw[i]] >= 0)
            add_pairs(j, i);
    }
}

static void summarise_frames(job *j)
{
    tsr_shape *s = j->shape;
    float one[MOST_PAIR_FRAMES];
    for (int r = 0; r < s->n_residue; r++)
        s->rmsf[r] = sqrt(j->square[r]);
    for (int a = 0; a < s->n_row; a++)
        for (int b = 0; b < a; b++) {
            const size_t at = (size_t)a * (size_t)s->n_row + (size_t)b;
            const size_t mirror = (size_t)b * (size_t)s->n_row + (size_t)a;
            s->distance_sd[at] =
                s->n > 1 ? sqrt(s->distance_sd[at] / (s->n - 1)) : 0.0;
            s->distance_sd[mirror] = s->distance_sd[at];
            s->distance[mirror] = s->distance[at];
        }
    const int n = j->n_pair_draw;
    for (int k = 0; k < TSR_N_PAIR_BIN; k++) {
        double sum = 0.0;
        for (int i = 0; i < n; i++) {
            one[i] = j->pairs[(size_t)i * TSR_N_PAIR_BIN + (size_t)k];
            sum += (double)one[i];
        }
        gsl_sort_float(one, 1, (size_t)n);
        s->pair_mean[k] = sum / n;
        s->pair_low[k] = (double)one[(int)(0.05 * (n - 1))];
        s->pair_high[k] = (double)one[(int)ceil(0.95 * (n - 1))];
    }
}

/* ---- the analysis ---- */

/* Normalises the weights of the frames within each draw. */
static tsr_status set_weights(job *j, const double *weight, tsr_err *err)
{
    const tsr_shape *s = j->shape;
    double *sum = calloc((size_t)j->n_draw + 1, sizeof *sum);
    TSR_TRY(tsr_allocated(sum, err));
    for (int i = 0; i < s->n; i++) {
        j->weight[i] = weight != NULL ? weight[s->at[i]] : 1.0;
        sum[j->draw[i]] += j->weight[i];
    }
    for (int i = 0; i < s->n; i++)
        if (sum[j->draw[i]] > 0.0)
            j->weight[i] /= sum[j->draw[i]];
    free(sum);
    return TSR_OK;
}

/* Chooses the frames, and the draws for P(r). */
static tsr_status choose_frames(job *j, tsr_frames *frames,
                                const double *weight, tsr_err *err)
{
    tsr_shape *s = j->shape;
    s->n = tsr_frames_select(frames, s->n, s->at, j->draw, &j->n_draw);
    if (s->n == 0)
        return tsr_no_memory(err);
    if (j->n_pair_draw > j->n_draw)
        j->n_pair_draw = j->n_draw;
    for (int d = 0; d < j->n_draw; d++)
        j->pair_row[d] = -1;
    for (int k = 0; k < j->n_pair_draw; k++)
        j->pair_row[(long)k * j->n_draw / j->n_pair_draw] = k;
    return set_weights(j, weight, err);
}

tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const tsr_drawn_frame *frame;
    job j = {.shape = calloc(1, sizeof *j.shape)};
    tsr_shape *s = j.shape;
    *out = NULL;
    TSR_TRY(tsr_allocated(s, err));
    s->n_frame = tsr_frames_list(frames, &frame);
    s->n_residue = model->n_residue;
    const int fits = tsr_frames_that_fit(s->n_residue);
    s->n = s->n_frame < most ? s->n_frame : most;
    s->n = s->n < fits ? s->n : fits;
    s->n_row = s->n_residue < TSR_MOST_ROWS ? s->n_residue : TSR_MOST_ROWS;
    tsr_status status = allocate(&j, err);
    TSR_THEN(status, choose_frames(&j, frames, weight, err));
    if (status == TSR_OK) {
        for (int k = 0; k < s->n_row; k++)
            s->row[k] = tsr_even_index(s->n_residue, s->n_row, k);
        status =
            tsr_frames_gather_ca(frames, s->n, s->at, &j.pool, &j.all, err);
    }
    TSR_THEN(status, tsr_mean_shape_make(s->n, s->n_residue, j.all, 0, NULL,
                                         NULL, j.mean, j.square, err));
    if (status == TSR_OK) {
        find_extent(&j);
        analyse_frames(&j);
        summarise_frames(&j);
        tsr_start_ca(model, j.ca);
        status =
            tsr_domains_from_ca(s->n, s->n_residue, j.all,
                                (const double(*)[3])j.ca, &s->domains, err);
    }
    tsr_pool_clear(&j.pool);
    TSR_HAND_OVER(status, s, out, tsr_shape_free);
}

/* ---- domains ----
 *
 * A rigid unit begins with four successive residues whose distances are
 * constant over all frames, its anchors. Four points that do not lie in a plane
 * determine the position of a rigid body, so all residues with constant
 * distances to the anchors belong to the unit. */

enum { N_ANCHOR = 4 };
static const double rigid_ang = 0.1; /* larger than the rounding of
                                        trajectories */

void tsr_domains_free(tsr_domains *d)
{
    if (d == NULL)
        return;
    tsr_pool_clear(&d->pool);
    free(d);
}

/* ---- rigid units ---- */

typedef struct {
    int n, n_residue;
    const float *ca;
} draws;

static double distance(const draws *s, int i, int a, int b)
{
    const float *x = s->ca + 3 * ((size_t)i * (size_t)s->n_residue + (size_t)a);
    const float *y = s->ca + 3 * ((size_t)i * (size_t)s->n_residue + (size_t)b);
    double sum = 0.0;
    for (int d = 0; d < 3; d++)
        sum += (double)(x[d] - y[d]) * (double)(x[d] - y[d]);
    return sqrt(sum);
}

/* Whether a pair keeps its distance in every draw. All draws are checked
 * because a part may move rarely. */
static int is_rigid(const draws *s, int a, int b)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < s->n; i++) {
        double r = distance(s, i, a, b);
        low = fmin(low, r);
        high = fmax(high, r);
        if (high - low > rigid_ang)
            return 0;
    }
    return 1;
}

static int is_rigid_with(const draws *s, int anchor, int r)
{
    for (int k = 0; k < N_ANCHOR; k++)
        if (anchor + k != r && !is_rigid(s, anchor + k, r))
            return 0;
    return 1;
}

/* Finds the rigid units. unit [n_residue] out: number of each residue's unit;
 * -1: the residue belongs to no unit. Returns the number of units. */
static int find_units(const draws *s, int *unit)
{
    int n_unit = 0;
    for (int r = 0; r < s->n_residue; r++)
        unit[r] = -1;
    for (int r = 0; r + N_ANCHOR <= s->n_residue; r++) {
        int is_good = unit[r] < 0;
        for (int k = 1; k < N_ANCHOR && is_good; k++)
            is_good = unit[r + k] < 0 && is_rigid_with(s, r, r + k);
        if (!is_good)
            continue;
        for (int j = r; j < s->n_residue; j++)
            if (unit[j] < 0 && is_rigid_with(s, r, j))
                unit[j] = n_unit;
        n_unit++;
    }
    return n_unit;
}

/* Makes domains of the largest units, in the order of the sequence. size
 * [n_unit]: scratch. */
static void choose_largest(tsr_domains *d, const int *unit, int n_unit,
                           int n_residue, int *size)
{
    memset(size, 0, (size_t)n_unit * sizeof *size);
    for (int r = 0; r < n_residue; r++)
        if (unit[r] >= 0)
            size[unit[r]]++;
    for (int u = 0; u < n_unit; u++) {
        int n_larger = 0;
        for (int v = 0; v < n_unit; v++)
            n_larger += size[v] > size[u] || (size[v] == size[u] && v < u);
        if (size[u] < TSR_LEAST_DOMAIN || n_larger >= TSR_MOST_DOMAINS)
            continue;
        tsr_domain *domain = &d->domain[d->n_domain++];
        tsr_pool_array(&d->pool, domain->residue, size[u]);
        for (int r = 0; r < n_residue && domain->residue != NULL; r++)
            if (unit[r] == u)
                domain->residue[domain->n_residue++] = r;
    }
}

/* ---- relative positions ---- */

/* Angle of the relative rotation from a to b: the matrix has trace 1 + 2 cos,
 * and its antisymmetric part has half-length sin. */
static double relative_angle(double a[3][3], double b[3][3])
{
    double m[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            m[i][j] = 0.0;
            for (int k = 0; k < 3; k++)
                m[i][j] += a[k][i] * b[k][j];
        }
    const double v[3] = {m[2][1] - m[1][2], m[0][2] - m[2][0],
                         m[1][0] - m[0][1]};
    return atan2(tsr_vec3_norm(v), m[0][0] + m[1][1] + m[2][2] - 1.0);
}

static void make_pairs(tsr_domains *d, const double (*start)[3])
{
    for (int a = 0; a < d->n_domain; a++)
        for (int b = a + 1; b < d->n_domain; b++) {
            tsr_domain_pair *p = &d->pair[d->n_pair++];
            double x[3], y[3];
            p->a = a;
            p->b = b;
            tsr_centroid(d->domain[a].n_residue, d->domain[a].residue, start,
                         x);
            tsr_centroid(d->domain[b].n_residue, d->domain[b].residue, start,
                         y);
            p->start_ang = tsr_vec3_distance(x, y);
            tsr_pool_array(&d->pool, p->distance, d->n);
            tsr_pool_array(&d->pool, p->turn, d->n);
        }
}

static void measure_pairs(tsr_domains *d, int i, const double (*start)[3],
                          const double (*now)[3])
{
    double at[TSR_MOST_DOMAINS][3];
    tsr_motion since[TSR_MOST_DOMAINS];
    for (int k = 0; k < d->n_domain; k++) {
        const tsr_domain *domain = &d->domain[k];
        tsr_centroid(domain->n_residue, domain->residue, now, at[k]);
        tsr_superpose(domain->n_residue, domain->residue, now, start,
                      &since[k]);
    }
    for (int k = 0; k < d->n_pair; k++) {
        tsr_domain_pair *p = &d->pair[k];
        p->distance[i] = tsr_vec3_distance(at[p->a], at[p->b]);
        p->turn[i] = relative_angle(since[p->a].rotation, since[p->b].rotation);
    }
}

tsr_status tsr_domains_from_ca(int n, int n_residue, const float *ca,
                               const double (*start)[3], tsr_domains **out,
                               tsr_err *err)
{
    const draws s = {n, n_residue, ca};
    tsr_domains *d = calloc(1, sizeof *d);
    tsr_pool pool = {0};
    int *unit, *size;
    double(*now)[3];
    *out = NULL;
    tsr_pool_array(&pool, unit, n_residue);
    tsr_pool_array(&pool, size, n_residue);
    tsr_pool_array(&pool, now, n_residue);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_allocated(d, err));
    if (status == TSR_OK) {
        d->n = n;
        choose_largest(d, unit, find_units(&s, unit), n_residue, size);
        make_pairs(d, start);
        status = tsr_pool_check(&d->pool, err);
    }
    for (int i = 0; i < n && status == TSR_OK && d->n_pair > 0; i++) {
        tsr_frame_ca(ca, n_residue, i, now);
        measure_pairs(d, i, start, (const double(*)[3])now);
    }
    tsr_pool_clear(&pool);
    TSR_HAND_OVER(status, d, out, tsr_domains_free);
}

tsr_status tsr_domains_make(tsr_frames *frames, int n, const int *at,
                            tsr_domains **out, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    tsr_pool pool = {0};
    double(*start)[3];
    float *ca;
    *out = NULL;
    tsr_pool_array(&pool, start, model->n_residue);
    tsr_status status = tsr_frames_gather_ca(frames, n, at, &pool, &ca, err);
    if (status == TSR_OK) {
        tsr_start_ca(model, start);
        status = tsr_domains_from_ca(n, model->n_residue, ca,
                                     (const double(*)[3])start, out, err);
    }
    tsr_pool_clear(&pool);
    return status;
}

void tsr_domain_name(const tsr_model_atoms *atoms, const tsr_domain *domain,
                     size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0, j; i < domain->n_residue && used < size; i = j + 1) {
        const int *r = domain->residue;
        const tsr_model_atom *first = &atoms->atom[atoms->ca[r[i]]];
        for (j = i; j + 1 < domain->n_residue && r[j + 1] == r[j] + 1 &&
                    atoms->atom[atoms->ca[r[j + 1]]].chain == first->chain;)
            j++;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%c:%d",
                             i > 0 ? ", " : "", first->chain, first->number);
        if (j > i && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%d",
                                     atoms->atom[atoms->ca[r[j]]].number);
    }
}
