/* A rigid unit begins at neighbours in sequence whose distances hardly change
 * over all frames, and takes in what keeps its distances to four anchors of it:
 * four points that do not lie in a plane fix a body. */
#include "analysis/domains.h"

#include "analysis/mean_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
