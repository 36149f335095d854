/* Two passes over the drawn conformations: the mean shape, about which residues
 * stray; distances, contacts and P(r) of each. Only CA atoms are looked at,
 * which are enough for domains and linkers and keep thousands of frames in
 * memory. */
#include "analysis/shape.h"

#include "analysis/frames.h"

#include <gsl/gsl_sort_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- mean_shape ----
 *
 * Superposition by quaternions (Horn 1987): the best rotation is the
 * eigenvector of the largest eigenvalue of a 4 x 4 matrix. The mean of many
 * conformations and their superpositions on it are found in turns. */

enum { N = 4, SWEEPS = 50 };

/* The eigenvector of the largest eigenvalue of a symmetric matrix, by Jacobi's
 * rotations; a is destroyed. Returns the eigenvalue. */
static double largest_eigenvector(double a[N][N], double out[N])
{
    double v[N][N] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0.0;
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++)
                off += a[p][q] * a[p][q];
        if (off == 0.0)
            break;
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++) {
                if (a[p][q] == 0.0)
                    continue;
                const double theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) /
                                 (fabs(theta) + sqrt(theta * theta + 1.0));
                const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
                for (int k = 0; k < N; k++) {
                    const double kp = a[k][p], kq = a[k][q];
                    a[k][p] = c * kp - s * kq;
                    a[k][q] = s * kp + c * kq;
                }
                for (int k = 0; k < N; k++) {
                    const double pk = a[p][k], qk = a[q][k];
                    a[p][k] = c * pk - s * qk;
                    a[q][k] = s * pk + c * qk;
                }
                for (int k = 0; k < N; k++) {
                    const double kp = v[k][p], kq = v[k][q];
                    v[k][p] = c * kp - s * kq;
                    v[k][q] = s * kp + c * kq;
                }
            }
    }
    int best = 0;
    for (int i = 1; i < N; i++)
        if (a[i][i] > a[best][best])
            best = i;
    for (int k = 0; k < N; k++)
        out[k] = v[k][best];
    return a[best][best];
}

static void centre_of(int n, const double (*x)[3], double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            out[d] += x[i][d];
    for (int d = 0; d < 3; d++)
        out[d] /= n;
}

double tsr_superpose(int n, const double (*fixed)[3], const double (*moving)[3],
                     tsr_motion *motion)
{
    double to[3], from[3], s[3][3] = {{0.0}}, squares = 0.0, q[N];
    centre_of(n, fixed, to);
    centre_of(n, moving, from);
    for (int i = 0; i < n; i++) {
        double a[3], b[3];
        tsr_vec3_sub(a, moving[i], from);
        tsr_vec3_sub(b, fixed[i], to);
        squares += tsr_vec3_dot(a, a) + tsr_vec3_dot(b, b);
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < 3; l++)
                s[k][l] += a[k] * b[l];
    }
    /* Horn's matrix */
    double m[N][N] = {
        {s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2],
         s[0][1] - s[1][0]},
        {0, s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2]},
        {0, 0, s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1]},
        {0, 0, 0, s[2][2] - s[0][0] - s[1][1]}};
    for (int k = 0; k < N; k++)
        for (int l = 0; l < k; l++)
            m[k][l] = m[l][k];
    const double value = largest_eigenvector(m, q);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z),
                             2 * (x * z + w * y)},
                            {2 * (x * y + w * z), w * w - x * x + y * y - z * z,
                             2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x),
                             w * w - x * x - y * y + z * z}};
    memcpy(motion->rotation, r, sizeof r);
    for (int d = 0; d < 3; d++)
        motion->shift[d] = to[d] - tsr_vec3_dot(r[d], from);
    return sqrt(fmax(0.0, (squares - 2.0 * value) / n));
}

int tsr_frames_that_fit(int n_residue)
{
    const double bytes = 200e6;
    const double fits = bytes / (3.0 * sizeof(float) * n_residue);
    return fits > 1e6 ? 1000000 : fits < 2.0 ? 2 : (int)fits;
}

tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                float **ca, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const size_t one = 3 * (size_t)model->n_residue;
    tsr_status status = TSR_OK;
    *ca = malloc(((size_t)n * one + 1) * sizeof **ca);
    if (*ca == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d conformations", n);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        const float *xyz;
        status = tsr_frames_read(frames, at[i], &xyz, err);
        for (int r = 0; status == TSR_OK && r < model->n_residue; r++)
            memcpy(*ca + (size_t)i * one + 3 * (size_t)r,
                   xyz + 3 * (size_t)model->ca[r], 3 * sizeof **ca);
    }
    if (status != TSR_OK) {
        free(*ca);
        *ca = NULL;
    }
    return status;
}

void tsr_ca_of(const float *all, int n_residue, int i, double (*ca)[3])
{
    const float *from = all + (size_t)i * 3 * (size_t)n_residue;
    for (int r = 0; r < n_residue; r++)
        for (int d = 0; d < 3; d++)
            ca[r][d] = (double)*from++;
}

/* Each one on the mean of the pass before, at first on the first; the last pass
 * takes the deviations. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               double (*mean)[3], double *square, tsr_err *err)
{
    enum { PASSES = 3 };
    const size_t room = (size_t)n_residue;
    double(*ca)[3] = calloc(room, sizeof *ca);
    double(*sum)[3] = calloc(room, sizeof *sum);
    if (ca == NULL || sum == NULL) {
        free(ca);
        free(sum);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the mean");
    }
    memset(square, 0, room * sizeof *square);
    tsr_ca_of(all, n_residue, 0, mean);
    for (int pass = 0; pass <= PASSES; pass++) {
        memset(sum, 0, room * sizeof *sum);
        for (int i = 0; i < n; i++) {
            tsr_motion motion;
            tsr_ca_of(all, n_residue, i, ca);
            tsr_superpose(n_residue, (const double(*)[3])mean,
                          (const double(*)[3])ca, &motion);
            for (int r = 0; r < n_residue; r++) {
                tsr_motion_apply(&motion, ca[r]);
                if (pass == PASSES)
                    square[r] += tsr_vec3_distance2(ca[r], mean[r]) / n;
                for (int d = 0; d < 3; d++)
                    sum[r][d] += ca[r][d] / n;
            }
        }
        if (pass < PASSES)
            memcpy(mean, sum, room * sizeof *sum);
    }
    free(ca);
    free(sum);
    return TSR_OK;
}

enum {
    MOST_PAIRS = 60000, /* of a frame, for P(r) */
    MOST_PAIR_FRAMES = 400
};
static const double contact_ang = 10.0;

void tsr_shape_free(tsr_shape *shape)
{
    if (shape == NULL)
        return;
    free(shape->at);
    free(shape->rmsf);
    free(shape->row);
    free(shape->distance);
    free(shape->distance_sd);
    free(shape->column);
    free(shape->rg);
    free(shape->change);
    free(shape->contacts);
    free(shape->mobility);
    free(shape->before);
    free(shape);
}

/* m of n numbers, evenly: the first and the last among them. */
static void spread_evenly(int n, int m, int *out)
{
    for (int i = 0; i < m; i++)
        out[i] = m > 1 ? (int)((long)i * (n - 1) / (m - 1)) : 0;
}

/* What the passes need beside the result. */
typedef struct {
    tsr_shape *shape;
    float *all;         /* [n][n_residue][3] */
    double (*ca)[3];    /* [n_residue] of one frame */
    double (*start)[3]; /* [n_residue] of model.pdb */
    double (*mean)[3];  /* [n_residue] */
    double *square;     /* [n_residue] */
    float *pairs;       /* [n_pair_draw][TSR_N_PAIR_BIN] */
    int n_draw, n_pair_draw;
    int *draw;      /* [n] that each frame is of */
    int *pair_row;  /* [n_draw] in pairs; -1: not in it */
    double *weight; /* [n] within its draw, of sum 1 */
} job;

static void job_clear(job *j)
{
    free(j->all);
    free(j->ca);
    free(j->start);
    free(j->mean);
    free(j->square);
    free(j->pairs);
    free(j->draw);
    free(j->pair_row);
    free(j->weight);
}

static int allocate(job *j)
{
    tsr_shape *s = j->shape;
    const size_t n_residue = (size_t)s->n_residue, n = (size_t)s->n;
    const size_t row = (size_t)s->n_row, column = (size_t)s->n_column;
    j->n_pair_draw = s->n < MOST_PAIR_FRAMES ? s->n : MOST_PAIR_FRAMES;
    j->ca = calloc(n_residue, sizeof *j->ca);
    j->start = calloc(n_residue, sizeof *j->start);
    j->mean = calloc(n_residue, sizeof *j->mean);
    j->square = calloc(n_residue, sizeof *j->square);
    j->pairs =
        calloc((size_t)j->n_pair_draw * TSR_N_PAIR_BIN, sizeof *j->pairs);
    j->draw = calloc(n, sizeof *j->draw);
    j->pair_row = calloc(n, sizeof *j->pair_row);
    j->weight = calloc(n, sizeof *j->weight);
    s->at = calloc(n, sizeof *s->at);
    s->rmsf = calloc(n_residue, sizeof *s->rmsf);
    s->row = calloc(row, sizeof *s->row);
    s->distance = calloc(row * row, sizeof *s->distance);
    s->distance_sd = calloc(row * row, sizeof *s->distance_sd);
    s->column = calloc(column, sizeof *s->column);
    s->rg = calloc(column, sizeof *s->rg);
    s->change = calloc(column * row, sizeof *s->change);
    s->contacts = calloc(column * row, sizeof *s->contacts);
    s->mobility = calloc(column * row, sizeof *s->mobility);
    s->before = calloc((size_t)s->n_residue + 1, sizeof *s->before);
    return j->ca != NULL && j->start != NULL && j->mean != NULL &&
           j->square != NULL && j->pairs != NULL && j->draw != NULL &&
           j->pair_row != NULL && j->weight != NULL && s->at != NULL &&
           s->rmsf != NULL && s->row != NULL && s->distance != NULL &&
           s->distance_sd != NULL && s->column != NULL && s->rg != NULL &&
           s->change != NULL && s->contacts != NULL && s->mobility != NULL &&
           s->before != NULL;
}

/* ---- one frame ---- */

/* Welford's means and sums of squares of the distances between rows. */
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

/* Shares of pairs by distance; of long chains every so many residues. */
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

static double gyration(int n, const double (*x)[3])
{
    double centre[3] = {0.0}, sum = 0.0;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += x[i][d] / n;
    for (int i = 0; i < n; i++)
        sum += tsr_vec3_distance2(x[i], centre) / n;
    return sqrt(sum);
}

/* Root mean square change of the distances from residue r to its neighbours in
 * sequence, between two conformations. */
static double local_change(int n, int r, const double (*now)[3],
                           const double (*before)[3])
{
    enum { REACH = 6 };
    double sum = 0.0;
    int count = 0;
    for (int o = r - REACH; o <= r + REACH; o++) {
        if (o < 0 || o >= n || o == r)
            continue;
        double d = tsr_vec3_distance(now[r], now[o]) -
                   tsr_vec3_distance(before[r], before[o]);
        sum += d * d;
        count++;
    }
    return count > 0 ? sqrt(sum / count) : 0.0;
}

static void add_column(job *j, int column)
{
    tsr_shape *s = j->shape;
    const double most = contact_ang * contact_ang;
    tsr_motion motion;
    if (column == 0)
        memcpy(s->before, j->start, (size_t)s->n_residue * sizeof *s->before);
    s->rg[column] = gyration(s->n_residue, (const double(*)[3])j->ca);
    tsr_superpose(s->n_residue, (const double(*)[3])j->start,
                  (const double(*)[3])j->ca, &motion);
    for (int a = 0; a < s->n_row; a++) {
        const int r = s->row[a];
        double x[3];
        int n = 0;
        tsr_vec3_copy(x, j->ca[r]);
        for (int o = 0; o < s->n_residue; o++)
            n += (o > r + 2 || o < r - 2) &&
                 tsr_vec3_distance2(x, j->ca[o]) < most;
        tsr_motion_apply(&motion, x);
        const size_t at = (size_t)column * (size_t)s->n_row + (size_t)a;
        s->change[at] = tsr_vec3_distance(x, j->start[r]);
        s->contacts[at] = n;
        s->mobility[at] =
            local_change(s->n_residue, r, (const double(*)[3])j->ca,
                         (const double(*)[3])s->before);
    }
    memcpy(s->before, j->ca, (size_t)s->n_residue * sizeof *s->before);
}

/* ---- all of them ---- */

/* The longest distance in some frames, for the bins of P(r). */
static void find_extent(job *j)
{
    enum { LOOKS = 20 };
    tsr_shape *s = j->shape;
    const int looks = s->n < LOOKS ? s->n : LOOKS;
    int at[LOOKS];
    double longest = 1.0;
    spread_evenly(s->n, looks, at);
    for (int i = 0; i < looks; i++) {
        tsr_ca_of(j->all, s->n_residue, at[i], j->ca);
        for (int a = 0; a < s->n_residue; a++)
            for (int b = 0; b < a; b++)
                longest = fmax(longest, tsr_vec3_distance2(j->ca[a], j->ca[b]));
    }
    s->pair_width = 1.1 * sqrt(longest) / TSR_N_PAIR_BIN;
}

static void look_at_each(job *j)
{
    tsr_shape *s = j->shape;
    int next_column = 0;
    for (int i = 0; i < s->n; i++) {
        tsr_ca_of(j->all, s->n_residue, i, j->ca);
        add_distances(s, (const double(*)[3])j->ca, i);
        if (j->pair_row[j->draw[i]] >= 0)
            add_pairs(j, i);
        /* s->column holds places in s->at until it is looked at */
        while (next_column < s->n_column && s->column[next_column] == i) {
            s->column[next_column] = s->at[i];
            add_column(j, next_column++);
        }
    }
}

static void finish(job *j)
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

/* ---- all of it ---- */

/* What each frame counts within its draw. */
static tsr_status weigh(job *j, const double *weight, tsr_err *err)
{
    const tsr_shape *s = j->shape;
    double *sum = calloc((size_t)j->n_draw + 1, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for conformations");
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

/* The frames to look at, and the draws of P(r). */
static tsr_status choose(job *j, tsr_frames *frames, const double *weight,
                         tsr_err *err)
{
    tsr_shape *s = j->shape;
    s->n = tsr_frames_spread(frames, s->n, s->at, j->draw, &j->n_draw);
    if (s->n == 0)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for conformations");
    s->n_column = s->n < s->n_column ? s->n : s->n_column;
    if (j->n_pair_draw > j->n_draw)
        j->n_pair_draw = j->n_draw;
    for (int d = 0; d < j->n_draw; d++)
        j->pair_row[d] = -1;
    for (int k = 0; k < j->n_pair_draw; k++)
        j->pair_row[(long)k * j->n_draw / j->n_pair_draw] = k;
    return weigh(j, weight, err);
}

tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const tsr_drawn_frame *frame;
    job j = {.shape = calloc(1, sizeof *j.shape)};
    tsr_shape *s = j.shape;
    *out = NULL;
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for conformations");
    s->n_frame = tsr_frames_list(frames, &frame);
    s->n_residue = model->n_residue;
    const int fits = tsr_frames_that_fit(s->n_residue);
    s->n = s->n_frame < most ? s->n_frame : most;
    s->n = s->n < fits ? s->n : fits;
    s->n_row = s->n_residue < TSR_MOST_ROWS ? s->n_residue : TSR_MOST_ROWS;
    s->n_column = s->n < TSR_MOST_COLUMNS ? s->n : TSR_MOST_COLUMNS;
    tsr_status status = allocate(&j)
                            ? TSR_OK
                            : tsr_fail(err, TSR_E_NOMEM,
                                       "no memory for %d conformations", s->n);
    TSR_THEN(status, choose(&j, frames, weight, err));
    if (status == TSR_OK) {
        spread_evenly(s->n_residue, s->n_row, s->row);
        spread_evenly(s->n, s->n_column, s->column);
        for (int r = 0; r < s->n_residue; r++)
            tsr_vec3_copy(j.start[r], &model->xyz[3 * model->ca[r]]);
        status = tsr_frames_gather_ca(frames, s->n, s->at, &j.all, err);
    }
    TSR_THEN(status, tsr_mean_shape_make(s->n, s->n_residue, j.all, j.mean,
                                         j.square, err));
    if (status == TSR_OK) {
        find_extent(&j);
        look_at_each(&j);
        finish(&j);
    }
    job_clear(&j);
    if (status != TSR_OK) {
        tsr_shape_free(s);
        s = NULL;
    }
    *out = s;
    return status;
}

/* ---- domains ----
 *
 * A rigid unit begins at neighbours in sequence whose distances hardly change
 * over all frames, and takes in what keeps its distances to four anchors of it:
 * four points that do not lie in a plane fix a body. */

enum { N_ANCHOR = 4 };
static const double rigid_ang = 0.1; /* trajectories are rounded, too */

void tsr_domains_free(tsr_domains *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < d->n_domain; i++)
        free(d->domain[i].residue);
    for (int i = 0; i < d->n_pair; i++) {
        free(d->pair[i].distance);
        free(d->pair[i].turn);
    }
    free(d);
}

/* ---- finding them ---- */

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

/* Whether a pair keeps its distance in every draw: a part may move seldom. */
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

/* unit [n_residue] out: -1 where none; returns how many. */
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

static int count(const int *unit, int n_residue, int u)
{
    int n = 0;
    for (int r = 0; r < n_residue; r++)
        n += unit[r] == u;
    return n;
}

/* The largest units, in their order. Returns 0 when out of memory. */
static int take_largest(tsr_domains *d, const int *unit, int n_unit,
                        int n_residue)
{
    int *size = calloc((size_t)n_unit + 1, sizeof *size), is_good = 1;
    if (size == NULL)
        return 0;
    for (int u = 0; u < n_unit; u++)
        size[u] = count(unit, n_residue, u);
    for (int u = 0; u < n_unit && is_good; u++) {
        int n_larger = 0;
        for (int v = 0; v < n_unit; v++)
            n_larger += size[v] > size[u] || (size[v] == size[u] && v < u);
        if (size[u] < TSR_LEAST_DOMAIN || n_larger >= TSR_MOST_DOMAINS)
            continue;
        tsr_domain *domain = &d->domain[d->n_domain];
        domain->residue = malloc((size_t)size[u] * sizeof(int));
        is_good = domain->residue != NULL;
        for (int r = 0; r < n_residue && is_good; r++)
            if (unit[r] == u)
                domain->residue[domain->n_residue++] = r;
        d->n_domain += is_good;
    }
    free(size);
    return is_good;
}

/* ---- how they lie ---- */

static void centre(const tsr_domain *d, const double (*xyz)[3], double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (int i = 0; i < d->n_residue; i++)
        for (int k = 0; k < 3; k++)
            out[k] += xyz[d->residue[i]][k] / d->n_residue;
}

/* The rotation that takes a domain from the start to a draw. */
static void turn_of(const tsr_domain *d, const double (*start)[3],
                    const double (*now)[3], double (*room)[3],
                    double rotation[3][3])
{
    double(*to)[3] = room + d->n_residue;
    tsr_motion motion;
    for (int i = 0; i < d->n_residue; i++) {
        tsr_vec3_copy(room[i], start[d->residue[i]]);
        tsr_vec3_copy(to[i], now[d->residue[i]]);
    }
    tsr_superpose(d->n_residue, (const double(*)[3])to,
                  (const double(*)[3])room, &motion);
    memcpy(rotation, motion.rotation, sizeof motion.rotation);
}

/* Angle of the rotation from a to b: its trace is 1 + 2 cos, and half the
 * length of its antisymmetric part sin. */
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

static int make_pairs(tsr_domains *d, const double (*start)[3])
{
    for (int a = 0; a < d->n_domain; a++)
        for (int b = a + 1; b < d->n_domain; b++) {
            tsr_domain_pair *p = &d->pair[d->n_pair++];
            double x[3], y[3];
            p->a = a;
            p->b = b;
            centre(&d->domain[a], start, x);
            centre(&d->domain[b], start, y);
            p->start_ang = tsr_vec3_distance(x, y);
            p->distance = malloc((size_t)d->n * sizeof *p->distance);
            p->turn = malloc((size_t)d->n * sizeof *p->turn);
            if (p->distance == NULL || p->turn == NULL)
                return 0;
        }
    return 1;
}

static void look(tsr_domains *d, int i, const double (*start)[3],
                 const double (*now)[3], double (*room)[3])
{
    double at[TSR_MOST_DOMAINS][3], rotation[TSR_MOST_DOMAINS][3][3];
    for (int k = 0; k < d->n_domain; k++) {
        centre(&d->domain[k], now, at[k]);
        turn_of(&d->domain[k], start, now, room, rotation[k]);
    }
    for (int k = 0; k < d->n_pair; k++) {
        tsr_domain_pair *p = &d->pair[k];
        p->distance[i] = tsr_vec3_distance(at[p->a], at[p->b]);
        p->turn[i] = relative_angle(rotation[p->a], rotation[p->b]);
    }
}

tsr_status tsr_domains_of(int n, int n_residue, const float *ca,
                          const double (*start)[3], tsr_domains **out,
                          tsr_err *err)
{
    const draws s = {n, n_residue, ca};
    const size_t room = (size_t)n_residue;
    tsr_domains *d = calloc(1, sizeof *d);
    int *unit = malloc((room + 1) * sizeof *unit);
    double(*now)[3] = malloc((room + 1) * sizeof *now);
    double(*scratch)[3] = malloc((2 * room + 1) * sizeof *scratch);
    int is_good = d != NULL && unit != NULL && now != NULL && scratch != NULL;
    if (is_good) {
        d->n = n;
        is_good = take_largest(d, unit, find_units(&s, unit), n_residue) &&
                  make_pairs(d, start);
    }
    for (int i = 0; i < n && is_good && d->n_pair > 0; i++) {
        tsr_ca_of(ca, n_residue, i, now);
        look(d, i, start, (const double(*)[3])now, scratch);
    }
    free(unit);
    free(now);
    free(scratch);
    *out = is_good ? d : NULL;
    if (is_good)
        return TSR_OK;
    tsr_domains_free(d);
    return tsr_fail(err, TSR_E_NOMEM, "no memory for the domains");
}

tsr_status tsr_domains_make(tsr_frames *frames, int n, const int *at,
                            tsr_domains **out, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    float *ca;
    *out = NULL;
    tsr_status status = tsr_frames_gather_ca(frames, n, at, &ca, err);
    double(*start)[3] = malloc(((size_t)model->n_residue + 1) * sizeof *start);
    TSR_THEN(status, tsr_allocated(start, err));
    for (int r = 0; r < model->n_residue && status == TSR_OK; r++)
        tsr_vec3_copy(start[r], model->xyz + 3 * (size_t)model->ca[r]);
    TSR_THEN(status, tsr_domains_of(n, model->n_residue, ca,
                                    (const double(*)[3])start, out, err));
    free(start);
    if (ca != NULL)
        free(ca);
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
        used += (size_t)snprintf(text + used, size - used, "%s%c:%d-%d",
                                 i > 0 ? ", " : "", first->chain, first->number,
                                 atoms->atom[atoms->ca[r[j]]].number);
    }
}
