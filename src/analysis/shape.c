/* Two passes over the drawn conformations: the mean shape, about which residues
 * stray; distances, contacts and P(r) of each. Only CA atoms are looked at,
 * which are enough for domains and linkers and keep thousands of frames in
 * memory. */
#include "analysis/shape.h"

#include "analysis/frames.h"
#include "analysis/mean_shape.h"

#include <gsl/gsl_sort_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
