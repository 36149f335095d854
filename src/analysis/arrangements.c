/* Finds the arrangements of domains and compares their outlines.
 *
 * The CA of the chosen frames are read once and superposed on the fixed domain.
 * A domain is rigid, so a few of its CA suffice for distances between
 * conformations. */
#include "analysis/arrangements.h"

#include "analysis/frames.h"
#include "analysis/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- two clouds of beads ----
 *
 * Superposes one cloud of beads on another. The axes of inertia determine the
 * rotation except for half turns about the axes. From each of these four
 * orientations the superposition is refined by iterated closest points (Besl &
 * McKay 1992, IEEE Trans. PAMI 14, 239). */

enum { LEAST_BEADS = 4, MOST_ROUNDS = 12 };

typedef struct {
    int n[2];
    double (*x[2])[3];    /* [n] the clouds in their axes of inertia, the second
                             at its present orientation */
    double (*axes)[3];    /* [n[1]] the second cloud in its axes of inertia */
    double (*pair[2])[3]; /* [n[0] + n[1]] pairs of nearest beads */
    double spacing[2];    /* mean square distance of a bead to its nearest
                             neighbour in the same cloud */
} two_clouds;

/* The point of x nearest to `at`, except point number `but`. *squared out: its
 * squared distance. */
static int nearest(int n, double (*x)[3], const double at[3], int but,
                   double *squared)
{
    int best = -1;
    *squared = HUGE_VAL;
    for (int i = 0; i < n; i++) {
        const double d = tsr_vec3_distance2(x[i], at);
        if (i != but && d < *squared) {
            *squared = d;
            best = i;
        }
    }
    return best;
}

/* Returns the square of the discrepancy at the present orientation, and lists
 * the pairs of nearest beads. */
static double find_pairs(two_clouds *j)
{
    double sum = 0.0, squared;
    for (int i = 0; i < j->n[0] + j->n[1]; i++) {
        const int own = i >= j->n[0], other = !own;
        const double *bead = j->x[own][own ? i - j->n[0] : i];
        const int k = nearest(j->n[other], j->x[other], bead, -1, &squared);
        sum += 0.5 * squared / j->n[own] / j->spacing[other];
        tsr_vec3_copy(j->pair[own][i], bead);
        tsr_vec3_copy(j->pair[other][i], j->x[other][k]);
    }
    return sum;
}

static double refine_pose(two_clouds *j)
{
    double now = find_pairs(j), before = HUGE_VAL;
    for (int round = 0; round < MOST_ROUNDS && now < 0.999 * before; round++) {
        tsr_motion motion;
        tsr_superpose(j->n[0] + j->n[1], NULL, (const double(*)[3])j->pair[0],
                      (const double(*)[3])j->pair[1], &motion);
        for (int i = 0; i < j->n[1]; i++)
            tsr_motion_apply(&motion, j->x[1][i]);
        before = now;
        now = find_pairs(j);
    }
    return fmin(now, before);
}

/* Copies `from` to x, from its centre and turned into its axes of inertia, the
 * longest first, in a right-handed frame. is_mirror 1: x is reflected first.
 * Returns the mean square distance of a bead to its nearest neighbour. */
static double turn_to_axes(int n, const double (*from)[3], int is_mirror,
                           double (*x)[3])
{
    double centre[3] = {0.0}, square[9] = {0.0}, value[3], axis[3][3];
    double sum = 0.0, squared;
    for (int i = 0; i < 3 * n; i++) {
        x[i / 3][i % 3] =
            (is_mirror && i % 3 == 0 ? -1 : 1) * from[i / 3][i % 3];
        centre[i % 3] += x[i / 3][i % 3] / n;
    }
    for (int i = 0; i < n; i++) {
        tsr_vec3_sub(x[i], x[i], centre);
        for (int d = 0; d < 9; d++)
            square[d] += x[i][d / 3] * x[i][d % 3];
    }
    tsr_eigen(3, square, value, axis[0]);
    tsr_vec3_cross(axis[2], axis[0], axis[1]);
    for (int i = 0; i < n; i++) {
        double old[3];
        tsr_vec3_copy(old, x[i]);
        for (int d = 0; d < 3; d++)
            x[i][d] = tsr_vec3_dot(old, axis[d]);
    }
    for (int i = 0; i < n; i++) {
        (void)nearest(n, x, x[i], i, &squared);
        sum += squared / n;
    }
    return sum;
}

double tsr_discrepancy(int n, const double (*a)[3], int m, const double (*b)[3],
                       int is_mirror)
{
    /* The four orientations with parallel axes. */
    static const double turn[4][3] = {
        {1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
    const size_t all = (size_t)(n + m);
    double best = HUGE_VAL;
    double(*x)[3] = n >= LEAST_BEADS && m >= LEAST_BEADS
                        ? calloc(3 * all + (size_t)m, sizeof *x)
                        : NULL;
    if (x == NULL)
        return (double)NAN;
    two_clouds j = {.n = {n, m},
                    .x = {x, x + n},
                    .pair = {x + all, x + 2 * all},
                    .axes = x + 3 * all};
    j.spacing[0] = turn_to_axes(n, a, 0, j.x[0]);
    j.spacing[1] = turn_to_axes(m, b, is_mirror, j.axes);
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < 3 * m; i++)
            j.x[1][i / 3][i % 3] = turn[t][i % 3] * j.axes[i / 3][i % 3];
        best = fmin(best, refine_pose(&j));
    }
    free(x);
    return sqrt(best);
}

const double tsr_arrangements_threshold = 15.0;

/* ---- arrangements ---- */

enum {
    MOST_FRAMES = 600,
    N_POINT = 8,  /* points of a domain, for distances */
    N_BEAD = 100, /* beads of all domains, for outlines */
    MOST_STATES = 32
};
/* main_share: n_main groups hold this share of the draws. similar_below: below
 * this discrepancy a curve cannot distinguish two arrangements. clear_ratio: a
 * pair counts as mirror images if the mirror's discrepancy is below this ratio
 * of the plain one. */
static const double main_share = 0.9, similar_below = 1.0, clear_ratio = 0.9;

void tsr_arrangements_free(tsr_arrangements *arrangements)
{
    if (arrangements == NULL)
        return;
    tsr_domains_free(arrangements->domains);
    tsr_pool_clear(&arrangements->pool);
    free(arrangements);
}

typedef struct {
    tsr_pool pool;
    tsr_arrangements *out;
    const tsr_drawn_frame *frame;
    int n, n_residue;
    int *at;              /* [n] numbers of the chosen frames, sorted by
                             state */
    float *ca;            /* [n][n_residue][3] CA of these frames, superposed */
    double (*start)[3];   /* [n_residue] CA of the start */
    double (*scratch)[3]; /* [n_residue] scratch */
    int n_point;          /* points of the other domains, for distances between
                             conformations */
    int *point;           /* [n_point] residue of each point */
    double *distance;     /* [n][n] distances between the frames of one state */
    int *group;           /* [n] number of each frame's group in its state */
    const tsr_model_atoms *atoms;
    tsr_draw_values values;
    int last_chain; /* largest chain number of the run */
    int *domain;    /* [n_residue] domain of each residue; -1: no domain */
    int *near;      /* [n_residue] members in which a residue is in contact */
} job;

/* ---- superposition ---- */

/* Superposes all conformations on the start by the fixed domain. */
static void superpose(job *j)
{
    const tsr_domain *d = &j->out->domains->domain[j->out->fixed];
    double(*all)[3] = j->scratch;
    for (int i = 0; i < j->n; i++) {
        tsr_motion motion;
        float *to = j->ca + (size_t)i * 3 * (size_t)j->n_residue;
        tsr_frame_ca(j->ca, j->n_residue, i, all);
        tsr_superpose(d->n_residue, d->residue, (const double(*)[3])j->start,
                      (const double(*)[3])all, &motion);
        for (int r = 0; r < j->n_residue; r++) {
            tsr_motion_apply(&motion, all[r]);
            for (int k = 0; k < 3; k++)
                to[3 * r + k] = (float)all[r][k];
        }
    }
}

/* Root mean square distance of each domain from its mean position, over the
 * conformations first .. first + n - 1. */
static void find_displacements(job *j, int first, int n, double *displacement)
{
    const size_t row = 3 * (size_t)j->n_residue;
    for (int k = 0; k < j->out->domains->n_domain; k++) {
        const tsr_domain *d = &j->out->domains->domain[k];
        double sum = 0.0;
        for (int i = 0; i < 3 * d->n_residue; i++) {
            const float *x = j->ca + (size_t)first * row +
                             3 * (size_t)d->residue[i / 3] + i % 3;
            double mean = 0.0, square = 0.0;
            for (int f = 0; f < n; f++)
                mean += (double)x[(size_t)f * row] / n;
            for (int f = 0; f < n; f++)
                square += pow((double)x[(size_t)f * row] - mean, 2.0) / n;
            sum += square;
        }
        displacement[k] = sqrt(sum / d->n_residue);
    }
}

/* ---- average linkage ---- */

/* The number of a group is that of its first member. A group that was joined to
 * another has size 0. The distances of a new group are means weighted by the
 * sizes of its two parts (Lance & Williams 1967). */
int tsr_average_linkage(int n, double *distance, double threshold, int *group)
{
    const size_t row = (size_t)n;
    int *size = malloc(2 * (row + 1) * sizeof *size);
    int *first = size != NULL ? size + n : NULL;
    int n_group = size != NULL ? n : 0;
    for (int i = 0; i < n_group; i++) {
        size[i] = 1;
        first[i] = i;
    }
    for (int a = 0; a >= 0 && size != NULL;) {
        double least = threshold;
        int b = a = -1;
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < n && size[i] > 0; k++)
                if (size[k] > 0 &&
                    distance[(size_t)i * row + (size_t)k] < least) {
                    least = distance[(size_t)i * row + (size_t)k];
                    a = i;
                    b = k;
                }
        for (int c = 0; c < n && a >= 0; c++) {
            double *of_a = distance + (size_t)a * row + (size_t)c;
            const double *of_b = distance + (size_t)b * row + (size_t)c;
            if (c != a && c != b && size[c] > 0)
                *of_a = distance[(size_t)c * row + (size_t)a] =
                    (size[a] * *of_a + size[b] * *of_b) / (size[a] + size[b]);
            if (first[c] == b)
                first[c] = a;
        }
        if (a >= 0) {
            size[a] += size[b];
            size[b] = 0;
            n_group--;
        }
    }
    for (int c = 0; c < n && size != NULL; c++) {
        const int own = first[c];
        group[c] = 0;
        for (int b = 0; b < n; b++)
            group[c] +=
                size[b] > size[own] || (size[b] == size[own] && b < own);
    }
    free(size);
    return n_group;
}

/* ---- groups of one state ---- */

static void choose_points(job *j)
{
    const tsr_domains *d = j->out->domains;
    j->n_point = 0;
    for (int k = 0; k < d->n_domain; k++)
        for (int i = 0; i < N_POINT && k != j->out->fixed; i++)
            j->point[j->n_point++] =
                d->domain[k].residue[(long)i * (d->domain[k].n_residue - 1) /
                                     (N_POINT - 1)];
}

static const float *ca_of(const job *j, int i)
{
    return j->ca + (size_t)i * 3 * (size_t)j->n_residue;
}

static double rms_distance(const job *j, int a, int b)
{
    const float *x = ca_of(j, a), *y = ca_of(j, b);
    double sum = 0.0;
    for (int i = 0; i < j->n_point; i++)
        for (int k = 0; k < 3; k++) {
            const int at = 3 * j->point[i] + k;
            sum += (double)(x[at] - y[at]) * (double)(x[at] - y[at]);
        }
    return sqrt(sum / j->n_point);
}

/* Computes the distances between frames first .. first + n - 1. */
static void compute_distances(job *j, int first, int n)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++)
            j->distance[(size_t)a * (size_t)n + (size_t)b] =
                j->distance[(size_t)b * (size_t)n + (size_t)a] =
                    a == b ? 0.0 : rms_distance(j, first + a, first + b);
}

/* The member of group g with the least mean distance to all members. *spread
 * out: rms distance of the members from it. */
static int find_representative(const job *j, int first, int n, int g,
                               double *spread)
{
    int best = -1;
    double least = HUGE_VAL;
    *spread = 0.0;
    for (int a = 0; a < n; a++) {
        double sum = 0.0, square = 0.0;
        int count = 0;
        for (int b = 0; b < n && j->group[first + a] == g; b++)
            if (j->group[first + b] == g) {
                const double d = rms_distance(j, first + a, first + b);
                sum += d;
                square += d * d;
                count++;
            }
        if (count > 0 && sum < least) {
            least = sum;
            *spread = sqrt(square / count);
            best = first + a;
        }
    }
    return best;
}

/* The distance of rms_distance between frame i and the first conformation. */
static double distance_from_start(const job *j, int i)
{
    double sum = 0.0, x[3];
    for (int p = 0; p < j->n_point; p++) {
        for (int k = 0; k < 3; k++)
            x[k] = (double)ca_of(j, i)[3 * j->point[p] + k];
        sum += tsr_vec3_distance2(x, j->start[j->point[p]]);
    }
    return sqrt(sum / j->n_point);
}

/* Mean of value [n_chain][n_draw] over the draws of a group. */
static double mean_value(const job *j, const double *value, int first, int n,
                         int g)
{
    const tsr_draw_values *v = &j->values;
    double sum = 0.0;
    long count = 0;
    for (int a = first; a < first + n && value != NULL; a++) {
        const tsr_drawn_frame *f = &j->frame[j->at[a]];
        if (j->group[a] == g && f->chain < v->n_chain && f->draw < v->n_draw) {
            sum +=
                value[(size_t)f->chain * (size_t)v->n_draw + (size_t)f->draw];
            count++;
        }
    }
    return sum / (double)count;
}

/* Standard error of the share of group g, from the spread of its shares in the
 * groups of chains, which started independently. */
static double share_error(const job *j, int first, int n, int g)
{
    const int n_chain = j->last_chain + 1;
    const int n_group = j->values.n_group > 0 ? j->values.n_group : n_chain;
    double mean = 0.0, square = 0.0;
    for (int k = 0; k < n_group; k++) {
        int all = 0, own = 0;
        for (int a = first; a < first + n; a++)
            if ((long)j->frame[j->at[a]].chain * n_group / n_chain == k) {
                all++;
                own += j->group[a] == g;
            }
        const double share = (double)own / all;
        mean += share / n_group;
        square += share * share / n_group;
    }
    return sqrt(fmax(square - mean * mean, 0.0) / (n_group - 1.0));
}

static int are_in_contact(const job *j, const float *x, int a, int b)
{
    const double contact_ang = 10.0;
    double d2 = 0.0;
    if (j->atoms->atom[j->atoms->ca[a]].chain ==
            j->atoms->atom[j->atoms->ca[b]].chain ||
        (j->domain[a] >= 0 && j->domain[a] == j->domain[b]))
        return 0;
    for (int k = 0; k < 3; k++)
        d2 += pow((double)(x[3 * a + k] - x[3 * b + k]), 2.0);
    return d2 < contact_ang * contact_ang;
}

/* Lists the residues that are in contact in half or more of the members of
 * group g; of many members, or in large molecules, of some. */
static tsr_status list_contacts(job *j, int first, int n, int g, int n_member,
                                tsr_domain *out, tsr_err *err)
{
    const double pairs = (double)j->n_residue * j->n_residue;
    const int most = (int)fmax(fmin(40.0, 2e7 / pairs), 1.0);
    const int step = (n_member + most - 1) / most;
    int seen = 0, used = 0;
    memset(j->near, 0, (size_t)j->n_residue * sizeof *j->near);
    for (int i = first; i < first + n; i++) {
        if (j->group[i] != g || seen++ % step != 0)
            continue;
        used++;
        for (int a = 0; a < j->n_residue; a++) {
            int b = 0;
            while (b < j->n_residue && !are_in_contact(j, ca_of(j, i), a, b))
                b++;
            j->near[a] += b < j->n_residue;
        }
    }
    tsr_pool_array(&j->out->pool, out->residue, j->n_residue + 1);
    TSR_TRY(tsr_pool_check(&j->out->pool, err));
    for (int a = 0; a < j->n_residue; a++)
        if (2 * j->near[a] >= used)
            out->residue[out->n_residue++] = a;
    return TSR_OK;
}

/* Number of the half of the chains, 0 or 1, to which conformation i belongs. */
static int half_of(const job *j, int i)
{
    return 2 * j->frame[j->at[i]].chain > j->last_chain;
}

/* Adds group g to the result. count [2]: members in the halves. n_half [2]:
 * conformations in the halves. */
static tsr_status add_group(job *j, int first, int n, int g, const int *count,
                            const int *n_half, tsr_err *err)
{
    tsr_arrangement *item = &j->out->item[j->out->n++];
    const int at = find_representative(j, first, n, g, &item->spread);
    const tsr_drawn_frame *f = &j->frame[j->at[at]];
    item->state = f->state;
    item->share = (double)(count[0] + count[1]) / n;
    for (int h = 0; h < 2; h++)
        item->half[h] = (double)count[h] / n_half[h];
    item->frame = j->at[at];
    item->chain = f->chain;
    item->draw = f->draw;
    item->error = share_error(j, first, n, g);
    item->chi2 = mean_value(j, j->values.chi2, first, n, g);
    item->rg = mean_value(j, j->values.rg, first, n, g);
    item->from_start = distance_from_start(j, at);
    item->mirror_of = item->alike = -1;
    item->discrepancy = (double)NAN;
    return list_contacts(j, first, n, g, count[0] + count[1], &item->contact,
                         err);
}

/* Groups the frames first .. first + n - 1 of one state. */
static tsr_status group_state(job *j, int first, int n, tsr_err *err)
{
    tsr_arrangements *o = j->out;
    const int s = o->n_state++;
    int n_half[2] = {0};
    double cumulative = 0.0;
    for (int a = 0; a < n; a++)
        n_half[half_of(j, first + a)]++;
    o->n_seen[s] = n;
    o->overlap[s] = n_half[0] > 0 && n_half[1] > 0 ? 0.0 : (double)NAN;
    find_displacements(j, first, n, o->displacement + s * o->domains->n_domain);
    compute_distances(j, first, n);
    o->n_group[s] =
        tsr_average_linkage(n, j->distance, o->threshold_ang, j->group + first);
    for (int g = 0; g < o->n_group[s]; g++) {
        int count[2] = {0};
        for (int a = 0; a < n; a++)
            count[half_of(j, first + a)] += j->group[first + a] == g;
        if (g < TSR_MOST_ARRANGEMENTS)
            TSR_TRY(add_group(j, first, n, g, count, n_half, err));
        o->n_main[s] += cumulative < main_share;
        cumulative += (double)(count[0] + count[1]) / n;
        o->overlap[s] +=
            fmin((double)count[0] / n_half[0], (double)count[1] / n_half[1]);
    }
    return o->n_group[s] > 0 ? TSR_OK : tsr_no_memory(err);
}

/* ---- arrangements that a curve cannot distinguish ---- */

/* Chooses beads evenly from the residues of all domains of a frame. Returns
 * their number. */
static int beads_of(const job *j, int frame, double (*bead)[3])
{
    const tsr_domains *d = j->out->domains;
    int total = 0, n = 0, seen = 0, i = 0;
    while (i < j->n && j->at[i] != frame)
        i++;
    for (int k = 0; k < d->n_domain; k++)
        total += d->domain[k].n_residue;
    const int count = total < N_BEAD ? total : N_BEAD;
    for (int k = 0; k < d->n_domain; k++)
        for (int r = 0; r < d->domain[k].n_residue; r++, seen++) {
            if ((long)n * total > (long)seen * count || n >= count)
                continue;
            const float *x = j->ca + 3 * ((size_t)i * (size_t)j->n_residue +
                                          (size_t)d->domain[k].residue[r]);
            for (int c = 0; c < 3; c++)
                bead[n][c] = (double)x[c];
            n++;
        }
    return n;
}

/* Compares two arrangements of one state. If they are similar, records this in
 * the second one, unless that is more similar to an earlier one. */
static void compare_outlines(const job *j, int first, int second)
{
    double a[N_BEAD][3], b[N_BEAD][3];
    tsr_arrangement *item = &j->out->item[second];
    const int n = beads_of(j, j->out->item[first].frame, a);
    const int m = beads_of(j, item->frame, b);
    const double plain =
        tsr_discrepancy(n, (const double(*)[3])a, m, (const double(*)[3])b, 0);
    const double mirror =
        tsr_discrepancy(n, (const double(*)[3])a, m, (const double(*)[3])b, 1);
    const int is_mirror = mirror < clear_ratio * plain;
    const double least = fmin(plain, mirror);
    if (!(least < similar_below) || least >= item->discrepancy)
        return;
    item->discrepancy = least;
    item->mirror_of = is_mirror ? first : -1;
    item->alike = is_mirror ? -1 : first;
}

static void compare_all(const job *j)
{
    const tsr_arrangements *o = j->out;
    for (int b = 0; b < o->n; b++)
        for (int a = 0; a < b; a++)
            if (o->item[a].state == o->item[b].state)
                compare_outlines(j, a, b);
}

/* ---- all arrangements ---- */

/* Chooses the frames, sorts them by state, and reads their CA. */
static tsr_status choose_frames(job *j, tsr_frames *frames, tsr_err *err)
{
    int n_draw, n, *draw, *spread;
    const int fits = tsr_frames_that_fit(j->n_residue);
    const int total = tsr_frames_list(frames, &j->frame);
    const int most = fits < MOST_FRAMES ? fits : MOST_FRAMES;
    tsr_pool_array(&j->pool, draw, most);
    tsr_pool_array(&j->pool, spread, most);
    tsr_pool_array(&j->pool, j->at, most);
    tsr_pool_array(&j->pool, j->start, j->n_residue);
    tsr_pool_array(&j->pool, j->scratch, j->n_residue);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    n = tsr_frames_select(frames, most, spread, draw, &n_draw);
    for (int i = 0; i < total; i++)
        if (j->frame[i].chain > j->last_chain)
            j->last_chain = j->frame[i].chain;
    for (int s = 0; s <= MOST_STATES; s++)
        for (int i = 0; i < n; i++)
            if (j->frame[spread[i]].state == s)
                j->at[j->n++] = spread[i];
    if (j->n == 0)
        return tsr_no_memory(err);
    tsr_start_ca(tsr_frames_atoms(frames), j->start);
    return tsr_frames_gather_ca(frames, j->n, j->at, &j->pool, &j->ca, err);
}

static int largest_domain(const tsr_domains *d)
{
    int best = 0;
    for (int k = 1; k < d->n_domain; k++)
        if (d->domain[k].n_residue > d->domain[best].n_residue)
            best = k;
    return best;
}

static tsr_status find_arrangements(job *j, tsr_err *err)
{
    tsr_arrangements *o = j->out;
    const int n_domain = o->domains->n_domain;
    tsr_pool_array(&j->pool, j->point, n_domain * N_POINT);
    tsr_pool_array(&j->pool, j->distance, j->n * j->n);
    tsr_pool_array(&j->pool, j->group, j->n);
    tsr_pool_array(&j->pool, j->domain, j->n_residue);
    tsr_pool_array(&j->pool, j->near, j->n_residue);
    tsr_pool_array(&o->pool, o->displacement, n_domain * MOST_STATES);
    tsr_pool_array(&o->pool, o->item, MOST_STATES * TSR_MOST_ARRANGEMENTS);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    TSR_TRY(tsr_pool_check(&o->pool, err));
    for (int r = 0; r < j->n_residue; r++)
        j->domain[r] = -1;
    for (int k = 0; k < n_domain; k++)
        for (int r = 0; r < o->domains->domain[k].n_residue; r++)
            j->domain[o->domains->domain[k].residue[r]] = k;
    choose_points(j);
    superpose(j);
    for (int from = 0, to; from < j->n && o->n_state < MOST_STATES; from = to) {
        for (to = from; to < j->n && j->frame[j->at[to]].state ==
                                         j->frame[j->at[from]].state;)
            to++;
        TSR_TRY(group_state(j, from, to - from, err));
    }
    compare_all(j);
    return TSR_OK;
}

tsr_status tsr_arrangements_make(tsr_frames *frames, int fixed,
                                 double threshold_ang,
                                 const tsr_draw_values *values,
                                 tsr_arrangements **out, tsr_err *err)
{
    job j = {.n_residue = tsr_frames_atoms(frames)->n_residue,
             .atoms = tsr_frames_atoms(frames),
             .out = calloc(1, sizeof *j.out)};
    tsr_arrangements *o = j.out;
    *out = NULL;
    TSR_TRY(tsr_allocated(o, err));
    if (values != NULL)
        j.values = *values;
    tsr_status status = choose_frames(&j, frames, err);
    TSR_THEN(status, tsr_domains_from_ca(j.n, j.n_residue, j.ca,
                                         (const double(*)[3])j.start,
                                         &o->domains, err));
    const int n_domain = status == TSR_OK ? o->domains->n_domain : 0;
    if (status == TSR_OK && fixed >= n_domain && fixed > 0)
        status = tsr_fail(err, TSR_E_USAGE,
                          "there is no domain %d: %d were "
                          "found",
                          fixed + 1, n_domain);
    if (status == TSR_OK && n_domain > 1) {
        o->n_frame = j.n;
        o->threshold_ang = threshold_ang;
        o->fixed = fixed >= 0 ? fixed : largest_domain(o->domains);
        status = find_arrangements(&j, err);
    }
    tsr_pool_clear(&j.pool);
    if (status == TSR_OK && n_domain > 1)
        *out = o;
    else
        tsr_arrangements_free(o);
    return status;
}
