/* A redraw: pools of halves, the shell, overlaps, curves, and the choice. */
#include "surrogate/redraw.h"

#include "surrogate/redraw_room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDE = TSR_REDRAW_WIDE,
    POOL = TSR_REDRAW_POOL,
    FIRST = TSR_REDRAW_FIRST,
    SECOND = TSR_REDRAW_SECOND,
    NODES = TSR_REDRAW_NODES,
    SHELLS = 4,      /* widths of shells, */
    GRIDS = 3,       /* and spacings of c2 */
    LINKER_SHARE = 3 /* linkers are drawn so many times as often as tails */
};

/* The narrowest shell, Angstrom; the others are twice as wide each. */
static const float shell_linker_ang = 0.25F, shell_tail_ang = 4.0F;

static int is_finite(double x)
{
    return x - x == 0.0;
}

/* ---- candidates ---- */

/* The middle of the bodies of beads from..to-1. */
static void middle_of(const tsr_redraw_room *s, int from, int to, float x[3])
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    float n = 0.0F;
    x[0] = x[1] = x[2] = 0.0F;
    for (int k = from; k < to; k++)
        n += (float)p->bead[s->bead[k]][3];
    for (int k = from; k < to; k++)
        for (int d = 0; d < 3; d++)
            x[d] += (float)p->bead[s->bead[k]][3] / n * s->still_x[d][k];
}

static int n_draw(const tsr_redraw_room *s, int which)
{
    return s->n_half[which] > 0 ? POOL : 1;
}

/* near, far: the middles of what stays and of what moves as one (where nothing
 * does, the last point of the chain), whose distance shells are of. */
static void fill_pools(tsr_redraw_room *s, float near[3], float far[3])
{
    middle_of(s, 0, s->n_stay, near);
    if (s->n_far > 0)
        middle_of(s, s->at_far, s->at_far + s->n_far, far);
    else
        memcpy(far, s->point[s->own->end - (s->own->by > 0)], 3 * sizeof *far);
    for (int w = 0; w < 2; w++)
        for (int k = 0; k < n_draw(s, w); k++) {
            tsr_redraw_half *own = &s->pool[w][k];
            tsr_redraw_draw(s, w, k);
            if (w == 0)
                tsr_redraw_undo(&own->end, near, own->middle);
            else
                tsr_redraw_apply(&own->end, far, own->middle);
            tsr_redraw_place_half(s, w, k);
            own->energy = tsr_redraw_half_energy(s, w);
        }
}

/* Pairs of draws at distances from low to high; the present one comes first. */
static void find_pairs(tsr_redraw_room *s, float low, float high)
{
    const float least = low > 0.0F ? low * low : 0.0F, most = high * high;
    s->pair[0] = 0;
    s->n_pair = 1;
    for (int a = 0; a < n_draw(s, 0); a++) {
        const tsr_redraw_half *u = &s->pool[0][a];
        for (int b = 0; b < n_draw(s, 1) && u->energy < INFINITY; b++) {
            const tsr_redraw_half *v = &s->pool[1][b];
            const float r2 = tsr_redraw_square(u->middle, v->middle);
            if (r2 >= least && r2 < most && v->energy < INFINITY && a + b > 0)
                s->pair[s->n_pair++] = (uint32_t)a << 16 | (uint32_t)b;
        }
    }
}

static const tsr_redraw_half *half_of(const tsr_redraw_room *s, int which,
                                      int k)
{
    const uint32_t pair = s->pair[k];
    return &s->pool[which][which == 0 ? pair >> 16 : pair & 0xffff];
}

/* ---- drawing some of a set ---- */

/* From the n of s->pair with log weights s->guess, each there s->count times,
 * n_drawn are drawn independently, into s->count; the first is there once more.
 * Uniform numbers in order are sums of exponential ones. */
static void draw_some(tsr_redraw_room *s, int n, int n_drawn)
{
    double most = -HUGE_VAL, sum = 0.0, step[FIRST + 1], total = 0.0;
    for (int k = 0; k < n; k++)
        most = fmax(most, (double)s->guess[k]);
    for (int k = 0; k < n; k++)
        s->upto[k] = sum += s->count[k] * exp((double)s->guess[k] - most);
    for (int i = 0; i <= n_drawn; i++)
        total += step[i] = -log1p(-gsl_rng_uniform(s->rng));
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    double at = 0.0;
    for (int i = 0, k = 0; i < n_drawn; i++) {
        at += step[i];
        while (k < n - 1 && s->upto[k] <= at / total * sum)
            k++;
        s->count[k]++;
    }
    s->count[0]++;
}

/* Candidate k becomes the n-th that is left. */
static void keep(tsr_redraw_room *s, int k, int n)
{
    s->pair[n] = s->pair[k];
    s->count[n] = s->count[k];
}

/* By torsions and the halves' own overlaps; of those drawn the overlaps of the
 * whole. Returns how many candidates are left. */
static int draw_first(tsr_redraw_room *s)
{
    int n = 0;
    for (int k = 0; k < s->n_pair; k++) {
        const tsr_redraw_half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
        s->guess[k] = u->log_weight - u->energy + v->log_weight - v->energy;
        s->count[k] = 1;
    }
    draw_some(s, s->n_pair, FIRST);
    for (int k = 0; k < s->n_pair; k++) {
        if (s->count[k] == 0)
            continue;
        const tsr_redraw_half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
        const tsr_redraw_motion both = tsr_redraw_after(&u->end, &v->end);
        tsr_redraw_place(s, (int)(s->pair[k] >> 16),
                         (int)(s->pair[k] & 0xffff));
        const float energy = tsr_redraw_energy(s, &both);
        if (!(energy < INFINITY))
            continue;
        keep(s, k, n);
        s->energy[n] = energy;
        s->guess[n++] = u->energy + v->energy - energy;
    }
    return n;
}

static double prior_of_c2(const tsr_redraw_room *s, float c2)
{
    const float *head = s->job + s->base.layout.head;
    const double z = ((double)c2 - (double)head[2]) / (double)head[3];
    if (!tsr_redraw_spec(s)->has_c2)
        return 0.0;
    return c2 >= head[4] && c2 <= head[5] ? -0.5 * z * z : -HUGE_VAL;
}

/* A grid of c2 that holds the present value, at any of its places. */
static int set_nodes(tsr_redraw_room *s)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const float width = s->job[s->base.layout.head + 3];
    s->n_node = p->has_c2 ? NODES : 1;
    const int own = (int)gsl_rng_uniform_int(s->rng, (unsigned long)s->n_node);
    const int scale = (int)gsl_rng_uniform_int(s->rng, GRIDS);
    for (int i = 0; i < s->n_node; i++) {
        s->node[i] = p->has_c2
                         ? s->c2 + (float)ldexp((double)width, -2 - 2 * scale) *
                                       (float)(i - own)
                         : 0.0F;
        tsr_redraw_ratio(s, s->node[i], s->ratio + i * p->n_q);
    }
    return own;
}

/* By the other overlaps; of those drawn, likelihoods at all nodes of c2. */
static int draw_second(tsr_redraw_room *s, int n_first)
{
    const int n_q = tsr_redraw_spec(s)->n_q;
    const double beta = (double)s->job[s->base.layout.head];
    int n = 0;
    draw_some(s, n_first, SECOND);
    for (int k = 0; k < n_first; k++) {
        if (s->count[k] == 0)
            continue;
        tsr_redraw_place(s, (int)(s->pair[k] >> 16),
                         (int)(s->pair[k] & 0xffff));
        tsr_redraw_sum(s);
        keep(s, k, n);
        s->energy[n] = s->energy[k];
        for (int i = 0; i < s->n_node; i++) {
            const double prior = prior_of_c2(s, s->node[i]);
            s->weight[n * s->n_node + i] =
                is_finite(prior)
                    ? beta * tsr_redraw_log_lik(s, s->node[i],
                                                s->ratio + i * n_q, NULL) +
                          prior
                    : -HUGE_VAL;
        }
        n++;
    }
    return n;
}

/* Candidate and node, as one number. */
static int choose(tsr_redraw_room *s, int n)
{
    const int all = n * s->n_node;
    double most = -HUGE_VAL, sum = 0.0;
    for (int k = 0; k < all; k++)
        most = fmax(most, s->weight[k]);
    for (int k = 0; k < all; k++) {
        const int count = s->count[k / s->n_node];
        const double by = count * exp(s->weight[k] - most);
        s->upto[k] = sum += by >= 0.0 ? by : 0.0;
    }
    const double at = sum * gsl_rng_uniform(s->rng);
    int k = 0;
    while (k < all - 1 && s->upto[k] <= at)
        k++;
    return k;
}

/* ---- a job ---- */

/* Returns log g, but for what a redraw leaves; bare [n_q] out. */
static double tell_place(tsr_redraw_room *s, int k, int node, float *bare)
{
    const tsr_redraw_half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
    tsr_redraw_place(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
    tsr_redraw_sum(s);
    tsr_redraw_log_lik(s, s->node[node],
                       s->ratio + node * tsr_redraw_spec(s)->n_q, bare);
    return (double)u->log_density + (double)v->log_density -
           (double)s->energy[k] + s->weight[k * s->n_node + node];
}

static void tell_turns(const tsr_redraw_room *s, int k, float *turned)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    for (int w = 0; w < 2; w++)
        for (int r = 0; r < s->n_half[w]; r++)
            for (int i = 0; i < 2; i++) {
                const int t = s->torsion[r + (w == 1 ? s->n_half[0] : 0)][i];
                turned[t] = half_of(s, w, k)->turn[r][p->turn[t][1]];
            }
}

static void redraw(tsr_redraw_room *s, int *what, float *result)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    float near[3], far[3], *bare = result + TSR_SURROGATE_HEAD;
    tsr_redraw_arrange(s, what);
    if (s->n_stay == 0 || s->n_loose == 0)
        return;
    tsr_redraw_sum_rest(s);
    fill_pools(s, near, far);
    const float wide = (s->own->is_tail ? shell_tail_ang : shell_linker_ang) *
                       (float)(1 << gsl_rng_uniform_int(s->rng, SHELLS));
    const float low = sqrtf(tsr_redraw_square(near, far)) -
                      wide * (float)gsl_rng_uniform(s->rng);
    find_pairs(s, low, low + wide);
    const int n_first = draw_first(s);
    if (n_first == 0 || s->pair[0] != 0) /* g is 0 where it is */
        return;
    const int own = set_nodes(s), n = draw_second(s, n_first);
    if (!is_finite(s->weight[own]))
        return;
    const int chosen = choose(s, n), k = chosen / s->n_node;
    const double before = tell_place(s, 0, own, bare);
    const double after = tell_place(s, k, chosen % s->n_node, bare + p->n_q);
    result[1] = (float)(after - before);
    if (p->has_c2)
        result[2] = s->node[chosen % s->n_node];
    tell_turns(s, k, bare + 2 * (ptrdiff_t)p->n_q);
}

static void open_job(tsr_redraw_room *s, int i)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const tsr_surrogate_layout *l = &s->base.layout;
    const tsr_surrogate_call *c = &s->base.call;
    s->job = c->job + (ptrdiff_t)i * l->size;
    s->point = (const float(*)[4])(c->point + (ptrdiff_t)i * p->n_point);
    s->angle = s->job + l->angle;
    s->c2 = p->has_c2 ? s->job[l->head + 1] : 0.0F;
    for (int d = 0; d < p->n_curve; d++)
        for (int q = 0; q < p->n_q; q++)
            memcpy(s->rows + (ptrdiff_t)(d * p->n_q + q) * s->row_pad,
                   s->job + l->curve + d * l->curve_size + q * l->n_row,
                   (size_t)l->n_row * sizeof *s->rows);
}

static const tsr_redraw_stretch *choose_stretch(const tsr_redraw_room *s)
{
    int all = 0, k = 0;
    for (int i = 0; i < s->n_stretch; i++)
        all += s->stretch[i].is_tail ? 1 : LINKER_SHARE;
    int at = (int)gsl_rng_uniform_int(s->rng, (unsigned long)all);
    while ((at -= s->stretch[k].is_tail ? 1 : LINKER_SHARE) >= 0)
        k++;
    return &s->stretch[k];
}

/* 0: out of memory. */
static int do_job(tsr_redraw_room *s, int i, int *what)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const size_t size = (size_t)tsr_surrogate_result_size(p);
    const uint32_t *key = s->base.call.key[i];
    float *result = s->base.call.result + (size_t)i * size;
    open_job(s, i);
    memset(result, 0, size * sizeof *result);
    for (int q = 0; q < 2 * p->n_q; q++)
        result[TSR_SURROGATE_HEAD + q] = NAN;
    result[2] = s->job[s->base.layout.head + 1];
    s->rng = tsr_rng_new((uint64_t)key[0] << 32 | key[1], 0);
    if (s->rng == NULL)
        return 0;
    tsr_redraw_choose(s, choose_stretch(s), what);
    redraw(s, what, result);
    gsl_rng_free(s->rng);
    return 1;
}

static tsr_status room_walk(tsr_surrogate_walker *walker, tsr_err *err)
{
    tsr_redraw_room *s = (tsr_redraw_room *)walker;
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const tsr_surrogate_call *c = &s->base.call;
    int *what = calloc((size_t)p->n_bead, sizeof *what), ok = what != NULL;
    for (int i = 0; i < c->n_job && ok; i++)
        ok = do_job(s, i, what);
    free(what);
    return ok ? TSR_OK : tsr_no_memory(err);
}

/* ---- the engine ---- */

static void room_free(tsr_surrogate_walker *walker)
{
    tsr_redraw_room *s = (tsr_redraw_room *)walker;
    tsr_surrogate_call *c = &walker->call;
    void *const owned[] = {
        c->job,        c->point,       c->key,         c->result,
        c->count,      s->density,     s->rows,        s->stretch,
        s->segment,    s->share,       s->pool[0],     s->pool[1],
        s->loose[0],   s->loose[1],    s->bead,        s->x[0],
        s->x[1],       s->x[2],        s->radius,      s->mask,
        s->still_x[0], s->still_x[1],  s->still_x[2],  s->form[0],
        s->form[1],    s->lane_sum[0], s->lane_sum[1], s->lane_sum[2],
        s->row_sum[0], s->row_sum[1],  s->rest[0],     s->rest[1],
        s->rest[2],    s->curve[0],    s->curve[1],    s->curve[2],
        s->profile,    s->product,     s->pair,        s->guess,
        s->upto,       s->count,       s->energy,      s->ratio,
        s->weight};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(s);
}

/* n items of some size, and one more; *ok becomes 0 without memory. */
static void *room_for(size_t n, size_t size, int *ok)
{
    void *p = calloc(n + 1, size);
    *ok &= p != NULL;
    return p;
}

static void make_call(tsr_redraw_room *s, size_t n, int *ok)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const size_t result = (size_t)tsr_surrogate_result_size(p),
                 count = (size_t)tsr_surrogate_n_count(p);
    tsr_surrogate_call *c = &s->base.call;
    c->job = room_for(n * (size_t)s->base.layout.size, sizeof *c->job, ok);
    c->point = room_for(n * (size_t)p->n_point, sizeof *c->point, ok);
    c->key = room_for(n, sizeof *c->key, ok);
    c->result = room_for(n * result, sizeof *c->result, ok);
    c->count = room_for(n * count, sizeof *c->count, ok);
}

static void make_room(tsr_redraw_room *s, int *ok)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const size_t q = (size_t)p->n_q, n_bead = (size_t)p->n_bead,
                 n = (size_t)s->n_pad, pairs = (size_t)POOL * POOL + 1,
                 row = (size_t)s->row_pad;
    const size_t terms = (size_t)p->n_density * 9 * 2 * WIDE;
    s->density = room_for(terms, sizeof *s->density, ok);
    s->rows = room_for((size_t)p->n_curve * q * row, sizeof *s->rows, ok);
    s->stretch = room_for((size_t)s->n_stretch, sizeof *s->stretch, ok);
    s->segment = room_for((size_t)p->n_point, sizeof *s->segment, ok);
    s->share = room_for(n_bead, sizeof *s->share, ok);
    s->bead = room_for(n, sizeof *s->bead, ok);
    s->radius = room_for(n, sizeof *s->radius, ok);
    s->mask = room_for(n, sizeof *s->mask, ok);
    s->profile = room_for(q, sizeof *s->profile, ok);
    s->product = room_for(row, sizeof *s->product, ok);
    s->pair = room_for(pairs, sizeof *s->pair, ok);
    s->guess = room_for(pairs, sizeof *s->guess, ok);
    s->upto = room_for(pairs, sizeof *s->upto, ok);
    s->count = room_for(pairs, sizeof *s->count, ok);
    s->energy = room_for(FIRST + 1, sizeof *s->energy, ok);
    s->ratio = room_for(NODES * q, sizeof *s->ratio, ok);
    s->weight = room_for((SECOND + 1) * NODES, sizeof *s->weight, ok);
    for (int k = 0; k < 3; k++) {
        s->x[k] = room_for(n, sizeof *s->x[k], ok);
        s->still_x[k] = room_for(n, sizeof *s->still_x[k], ok);
        s->lane_sum[k] = room_for(q * WIDE, sizeof *s->lane_sum[k], ok);
        s->rest[k] = room_for(q, sizeof *s->rest[k], ok);
        s->curve[k] = room_for(q, sizeof *s->curve[k], ok);
    }
    for (int k = 0; k < 2; k++) {
        s->form[k] = room_for(q * n, sizeof *s->form[k], ok);
        s->row_sum[k] = room_for(q * WIDE, sizeof *s->row_sum[k], ok);
        s->pool[k] = room_for(POOL, sizeof *s->pool[k], ok);
        s->loose[k] = room_for(POOL * n_bead * 4, sizeof *s->loose[k], ok);
    }
}

static tsr_status room_new(tsr_surrogate_engine *engine, int most_jobs,
                           tsr_surrogate_walker **out, tsr_err *err)
{
    const tsr_surrogate_spec *p = engine->spec;
    int ok = 1;
    tsr_redraw_room *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->base.engine = engine;
    s->base.layout = tsr_surrogate_layout_of(p);
    s->n_pad = tsr_redraw_padded(p->n_bead) + 3 * WIDE;
    s->row_pad = tsr_redraw_padded(s->base.layout.n_row);
    s->n_stretch = tsr_redraw_list(p, NULL);
    make_call(s, (size_t)most_jobs, &ok);
    make_room(s, &ok);
    if (!ok) {
        room_free(&s->base);
        return tsr_no_memory(err);
    }
    tsr_redraw_list(p, s->stretch);
    tsr_redraw_set_densities(p, s->density);
    *out = &s->base;
    return TSR_OK;
}

static void engine_free(tsr_surrogate_engine *engine)
{
    free(engine);
}

int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec)
{
    return tsr_redraw_list(spec, NULL);
}

tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec)
{
    tsr_surrogate_engine *e = calloc(1, sizeof *e);
    if (e != NULL)
        *e = (tsr_surrogate_engine){.spec = spec,
                                    .free = engine_free,
                                    .walker_new = room_new,
                                    .walk = room_walk,
                                    .walker_free = room_free};
    return e;
}
