/* Redraws (surrogate.h): stretches and their halves, where beads are, overlaps,
 * curves, and the choice. The loops that are to become vector instructions are
 * all in this file (Makefile). */
#include "surrogate/surrogate.h"

#include "core/clones.h"
#include "core/pool.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846F

enum {
    WIDE = 16,   /* lanes of a vector */
    HALF = 10,   /* residues of half a stretch, at most */
    POOL = 256,  /* draws of each half */
    FIRST = 256, /* candidates whose overlaps are looked at */
    SECOND = 64, /* of these, those whose curves are */
    NODES = 8    /* of c2 */
};

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

/* x goes to turn x + shift, Angstrom. */
typedef struct {
    float turn[3][3], shift[3];
} motion;

static void apply(const motion *m, const float *x, float *to)
{
    const float a = x[0], b = x[1], c = x[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[i][0] * a + m->turn[i][1] * b + m->turn[i][2] * c +
                m->shift[i];
}

/* The way back. */
static void undo(const motion *m, const float *x, float *to)
{
    const float a = x[0] - m->shift[0], b = x[1] - m->shift[1],
                c = x[2] - m->shift[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[0][i] * a + m->turn[1][i] * b + m->turn[2][i] * c;
}

/* Of a distance. */
static float square(const float *a, const float *b)
{
    const float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z;
}

/* Residues that follow each other, both torsions of which walk: torsions
 * first..first+2*n_residue-1 of the spec. by: 1, what comes after moves, -1,
 * what comes before, up to the chain's last point, or from its first one, at
 * `end`. */
typedef struct {
    int first, n_residue, by, end, is_tail;
} stretch;

/* One draw of half a stretch. The first half begins where nothing moves, the
 * second as if the first had not moved. */
typedef struct {
    motion end;          /* of what lies beyond */
    float log_density;   /* of torsions, */
    float log_weight;    /* and that over how often they are drawn */
    float energy;        /* nat, of its own overlaps; INFINITY: impossible */
    float middle[3];     /* of what stays, or of what moves as one, as seen
                            from between the halves */
    float turn[HALF][2]; /* of phi, psi from the present ones */
} half;

/* Beads are arranged: those that stay, those that are loose, those that move as
 * one, each padded to whole vectors with beads that do not scatter. */
typedef struct {
    tsr_surrogate_walker base;
    tsr_pool memory;
    gsl_rng *rng;
    int n_pad, row_pad; /* room for an arrangement, for a row of the data */
    int n_density;
    float *density; /* [n_density][9][2 WIDE] terms of torsion densities */

    /* a job */
    const float *job;
    const float (*point)[4]; /* [n_point] */
    const float *angle;      /* [n_slot][2] */
    float c2;
    float *rows; /* [n_curve][n_q][row_pad] */

    /* a stretch of those that there are */
    int n_stretch;
    stretch *stretch;
    const stretch *own;
    int n_residue, n_half[2];
    int torsion[2 * HALF][2]; /* outwards from what stays */
    int *what;                /* [n_bead] 0 stays, 1 is loose, 2 moves as one */
    int *segment;    /* [n_point] turns that carry it, 0 to 2 n_residue */
    float *share;    /* [n_bead] of it, beyond the middle of the stretch */
    half *pool[2];   /* [POOL], the present one first */
    float *loose[2]; /* [POOL][n_bead][4] where the share of loose beads
                        that lies in a half is, times it */

    /* an arrangement */
    int n_stay, n_loose, n_far, at_loose, at_far, n_all;
    int *bead; /* [n_pad] its number; -1: padding */
    float *x[3], *radius, *mask, *still_x[3]; /* [n_pad] */
    float *form[2]; /* [n_q][n_pad] form factors without and by c2 */

    /* curves, by powers of c2 */
    float *lane_sum[3], *row_sum[2]; /* [n_q][WIDE] */
    float *rest[3];                  /* [n_q] of what stays as it is */
    float *curve[3];                 /* [n_q] */
    float *profile, *product;        /* [n_q], [row_pad] scratch */

    /* candidates */
    int n_pair;
    uint32_t *pair; /* [POOL POOL + 1] draws of both halves, 16 bits each */
    float *guess;
    double *upto;
    int *count;
    float *energy; /* [FIRST + 1] */
    int n_node;
    float node[NODES];
    float *ratio;   /* [NODES][n_q] */
    double *weight; /* [SECOND + 1][NODES] log, of curves and of c2 */
} redraw_workspace;

typedef uint32_t bits __attribute__((vector_size(64), aligned(4), may_alias));

static const tsr_surrogate_spec *spec_of(const redraw_workspace *s)
{
    return s->base.engine->spec;
}

static int padded(int n)
{
    return (n + WIDE - 1) / WIDE * WIDE;
}

/* ---- which stretches there are ---- */

enum {
    CELLS = TSR_SURROGATE_CELLS,
    N_CELL = CELLS * CELLS,
    TERMS = 9,
    ATOMS = 6, /* points of a flexible residue */
    /* Residues that are drawn together: of a tail up to so many, of a linker
     * all there are, or, where halves have no room for them, any number from
     * LEAST on. */
    LONGEST_TAIL = 12,
    LONGEST = 2 * HALF,
    LEAST = 6
};

_Static_assert((int)LONGEST_TAIL <= (int)LONGEST, "halves hold a tail");

/* Torsions t and t + 1 are phi and psi of one residue. */
static int is_residue(const tsr_surrogate_spec *p, int t)
{
    return t + 1 < p->n_torsion && p->turn[t][0] == p->turn[t + 1][0];
}

static int of_linker(const tsr_surrogate_spec *p, int t)
{
    for (int l = 0; l < p->n_linker; l++)
        if (t >= p->linker[l][0] && t < p->linker[l][0] + p->linker[l][1])
            return 1;
    return 0;
}

static int side_of(const tsr_surrogate_spec *p, int t)
{
    return p->turn[t][3];
}

/* The end of the chain on the side that torsion t moves. */
static int end_of(const tsr_surrogate_spec *p, int t)
{
    return side_of(p, t) > 0 ? p->torsion[t][3] : p->torsion[t][2];
}

/* Whether both torsions of the residue at t move what `first` does. */
static int goes_with(const tsr_surrogate_spec *p, int first, int t)
{
    return is_residue(p, t) && !of_linker(p, t) &&
           side_of(p, t) == side_of(p, first) &&
           side_of(p, t + 1) == side_of(p, first) &&
           end_of(p, t) == end_of(p, first);
}

static int list_linkers(const tsr_surrogate_spec *p, stretch *out)
{
    int n = 0;
    for (int l = 0; l < p->n_linker; l++) {
        const int32_t *own = p->linker[l];
        int is_whole = own[1] % 2 == 0;
        for (int k = own[0]; k < own[0] + own[1] && is_whole; k += 2)
            is_whole = is_residue(p, k);
        if (is_whole && out != NULL)
            out[n] = (stretch){.first = own[0],
                               .n_residue = own[1] / 2,
                               .by = own[2] > 0 ? 1 : -1,
                               .end = own[3]};
        n += is_whole;
    }
    return n;
}

/* Into out (NULL: they are only counted). */
static int list_stretches(const tsr_surrogate_spec *p, stretch *out)
{
    int n = list_linkers(p, out), t = 0;
    while (t < p->n_torsion) {
        int m = 0;
        while (goes_with(p, t, t + 2 * m) &&
               (m == 0 || p->point_bounds[t + 2 * m][0] -
                                  p->point_bounds[t + 2 * m - 2][0] ==
                              ATOMS))
            m++;
        if (m > 0 && out != NULL)
            out[n] = (stretch){.first = t,
                               .n_residue = m,
                               .by = side_of(p, t),
                               .end = end_of(p, t),
                               .is_tail = 1};
        n += m > 0;
        t += m > 0 ? 2 * m : 1;
    }
    return n;
}

/* ---- a stretch ----
 *
 * Torsions are numbered outwards from what stays. Turning all of them by d is
 * the motion R_1 R_2 ... R_n, each about the axis as it lies now: the outermost
 * first. Points between torsions k and k + 1, segment k, make R_1 ... R_k. Both
 * torsions of a residue are drawn from cells of its density, as walks do. */

static void set_segments(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const stretch *own = s->own;
    for (int i = 0; i < p->n_point; i++)
        s->segment[i] = 0;
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[r][k];
            const int from = own->by > 0 ? p->point_bounds[t][1] : own->end,
                      to = own->by > 0 ? own->end : p->point_bounds[t][0];
            for (int i = from; i < to; i++)
                s->segment[i] = 2 * r + k + 1;
        }
}

static void set_beads(const redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int last = 2 * s->n_residue;
    for (int b = 0; b < p->n_bead; b++) {
        const int32_t *own = p->bead[b];
        int least = last, most = 0;
        s->share[b] = 0.0F;
        for (int k = own[0]; k < own[0] + own[1]; k++) {
            const int of = s->segment[p->part[k]];
            least = of < least ? of : least;
            most = of > most ? of : most;
            s->share[b] += of > 2 * s->n_half[0] ? p->part_weight[k] : 0.0F;
        }
        s->what[b] = most == 0 ? 0 : least == last ? 2 : 1;
    }
}

/* Takes up to 2 HALF residues of a linker, fewer of a tail: torsions, segments,
 * and what each bead does. */
static void choose_part(redraw_workspace *s, const stretch *of)
{
    const int all = of->n_residue;
    const int longest = of->is_tail ? LONGEST_TAIL : LONGEST;
    s->own = of;
    s->n_residue = all < longest ? all : longest;
    if (!of->is_tail && all > LONGEST)
        s->n_residue =
            LEAST + (int)gsl_rng_uniform_int(s->rng, LONGEST - LEAST + 1);
    const int skip = (int)gsl_rng_uniform_int(
        s->rng, (unsigned long)(all - s->n_residue + 1));
    const int first =
        of->first + (of->by > 0 ? 2 * skip : 2 * (all - skip) - 1);
    s->n_half[0] = (s->n_residue + 1) / 2;
    s->n_half[1] = s->n_residue - s->n_half[0];
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++)
            s->torsion[r][k] = first + (2 * r + k) * of->by;
    set_segments(s);
    set_beads(s);
}

/* ---- torsions ---- */

/* Terms of densities, as vectors take them: [n_density][9][2 WIDE]. */
static void set_densities(const tsr_surrogate_spec *spec, float *out)
{
    for (int d = 0; d < spec->n_density; d++, out += TERMS * 2 * WIDE)
        for (int k = 0; k < TERMS * 2 * WIDE; k++) {
            const int term = k / (2 * WIDE), part = k % (2 * WIDE);
            out[k] = part < spec->n_term[d] ? spec->term[d][part][term]
                     : term == 0            ? -80.0F /* as good as none */
                                            : 0.0F;
        }
}

/* exp of what is below 80, to 1e-7 of it; e^-80 where it is less. */
TSR_INLINE void exponentiate(lanes *x)
{
    const lanes least = *x - *x - 80.0F;
    const bits is_less = (bits)(*x < least);
    const bits held =
        (*(const bits *)x & ~is_less) | (*(const bits *)&least & is_less);
    const lanes v = *(const lanes *)&held;
    const lanes two = v * 1.44269504F + 12582912.0F, n = two - 12582912.0F;
    const lanes y = (v - n * 0.693359375F) + n * 2.12194440e-4F;
    const lanes e =
        1.0F +
        y * (1.0F +
             y * (0.5F +
                  y * (1.66666655e-1F +
                       y * (4.16657962e-2F +
                            y * (8.33345212e-3F +
                                 y * (1.39819994e-3F + y * 1.98756915e-4F))))));
    const bits scale = (*(const bits *)&two + 127U) << 23;
    *x = e * *(const lanes *)&scale;
}

/* The parts' sum, from the waves of both angles. */
TSR_CLONES
static float density_at(const float *term, const float wave[4])
{
    const float c = wave[0], s = wave[1], e = wave[2], f = wave[3];
    const float by[TERMS] = {1.0F, c, s, e, f, c * e, c * f, s * e, s * f};
    lanes sum = {0.0F};
    for (int set = 0; set < 2; set++) {
        lanes x = {0.0F};
        for (int k = 0; k < TERMS; k++)
            x += by[k] * *(const lanes *)(term + (2 * k + set) * WIDE);
        exponentiate(&x);
        sum += x;
    }
    float all = 0.0F;
    for (int l = 0; l < WIDE; l++)
        all += sum[l];
    return all;
}

static float log_density(const redraw_workspace *s, int density,
                         const float angle[2])
{
    const float wave[4] = {cosf(angle[0]), sinf(angle[0]), cosf(angle[1]),
                           sinf(angle[1])};
    return logf(
        density_at(s->density + (ptrdiff_t)density * TERMS * 2 * WIDE, wave));
}

static void draw_angles(const uint32_t *upto, gsl_rng *rng, float angle[2])
{
    const uint32_t number = (uint32_t)gsl_rng_get(rng);
    int low = 0, high = N_CELL - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (number < upto[middle])
            high = middle;
        else
            low = middle + 1;
    }
    const int cell[2] = {low / CELLS, low % CELLS};
    for (int i = 0; i < 2; i++) {
        const float at = (float)cell[i] + (float)gsl_rng_uniform(rng);
        angle[i] = (at * (2.0F / CELLS) - 1.0F) * PI;
    }
}

/* log of how often the cell of two angles is drawn, and a constant. */
static float log_chance(const uint32_t *upto, const float angle[2])
{
    int at[2];
    for (int i = 0; i < 2; i++) {
        at[i] = (int)((angle[i] + PI) * (CELLS / (2.0F * PI)));
        at[i] = at[i] < 0 ? 0 : at[i] >= CELLS ? CELLS - 1 : at[i];
    }
    const int k = at[0] * CELLS + at[1];
    return logf((float)(upto[k] - (k > 0 ? upto[k - 1] : 0)));
}

/* ---- a half ---- */

static float wrapped(float angle)
{
    return angle - 2.0F * PI * rintf(angle / (2.0F * PI));
}

/* First b, then a. */
static motion after(const motion *a, const motion *b)
{
    motion m;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m.turn[i][j] = a->turn[i][0] * b->turn[0][j] +
                           a->turn[i][1] * b->turn[1][j] +
                           a->turn[i][2] * b->turn[2][j];
    apply(a, b->shift, m.shift);
    return m;
}

static motion about(const float *from, const float *to, float angle_rad)
{
    float u[3], n = 0.0F, still[3];
    for (int d = 0; d < 3; d++)
        u[d] = to[d] - from[d], n += u[d] * u[d];
    n = 1.0F / sqrtf(n);
    for (int d = 0; d < 3; d++)
        u[d] *= n;
    const float c = cosf(angle_rad), s = sinf(angle_rad), v = 1.0F - c;
    motion m = {{{c + u[0] * u[0] * v, u[0] * u[1] * v - u[2] * s,
                  u[0] * u[2] * v + u[1] * s},
                 {u[1] * u[0] * v + u[2] * s, c + u[1] * u[1] * v,
                  u[1] * u[2] * v - u[0] * s},
                 {u[2] * u[0] * v - u[1] * s, u[2] * u[1] * v + u[0] * s,
                  c + u[2] * u[2] * v}},
                {0.0F, 0.0F, 0.0F}};
    apply(&m, from, still);
    for (int d = 0; d < 3; d++)
        m.shift[d] = from[d] - still[d];
    return m;
}

/* Motions of a half's segments, upto [2 n_half + 1], the first of which is that
 * of nothing. */
static void move_segments(const redraw_workspace *s, int which, const half *own,
                          motion *upto)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int first = which == 0 ? 0 : s->n_half[0];
    upto[0] =
        (motion){{{1.0F, 0.0F, 0.0F}, {0.0F, 1.0F, 0.0F}, {0.0F, 0.0F, 1.0F}},
                 {0.0F, 0.0F, 0.0F}};
    for (int r = 0; r < s->n_half[which]; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[first + r][k];
            const motion m =
                about(s->point[p->torsion[t][0]], s->point[p->torsion[t][1]],
                      (float)s->own->by * own->turn[r][p->turn[t][1]]);
            upto[2 * r + k + 1] = after(&upto[2 * r + k], &m);
        }
}

static void move_loose(redraw_workspace *s, int which, int number,
                       const motion *upto)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int split = 2 * s->n_half[0];
    for (int k = 0; k < s->n_loose; k++) {
        const int32_t *bead = p->bead[s->bead[s->at_loose + k]];
        float *to = s->loose[which] + 4 * ((ptrdiff_t)number * p->n_bead + k);
        to[0] = to[1] = to[2] = 0.0F;
        for (int m = bead[0]; m < bead[0] + bead[1]; m++) {
            const int of = s->segment[p->part[m]];
            float x[3];
            if ((of > split) != (which == 1))
                continue;
            apply(&upto[of - (which == 1 ? split : 0)], s->point[p->part[m]],
                  x);
            for (int d = 0; d < 3; d++)
                to[d] += p->part_weight[m] * x[d];
        }
    }
}

/* Draw `number` of a half; 0 is the present shape. */
static void draw_half(redraw_workspace *s, int which, int number)
{
    const tsr_surrogate_spec *p = spec_of(s);
    half *own = &s->pool[which][number];
    motion upto[2 * HALF + 1];
    const int first = which == 0 ? 0 : s->n_half[0];
    own->log_density = own->log_weight = 0.0F;
    for (int r = 0; r < s->n_half[which]; r++) {
        const int slot = p->turn[s->torsion[first + r][0]][0];
        const uint32_t *cell = p->cell[p->density[slot]];
        const float *had = s->angle + 2 * (ptrdiff_t)slot;
        float angle[2] = {had[0], had[1]};
        if (number > 0)
            draw_angles(cell, s->rng, angle);
        const float log_p = log_density(s, p->density[slot], angle);
        own->log_density += log_p;
        own->log_weight += log_p - log_chance(cell, angle);
        for (int k = 0; k < 2; k++)
            own->turn[r][k] = number > 0 ? wrapped(angle[k] - had[k]) : 0.0F;
    }
    move_segments(s, which, own, upto);
    own->end = upto[2 * s->n_half[which]];
    move_loose(s, which, number, upto);
}

/* ---- where beads are ---- */

static void put_bead(redraw_workspace *s, int k)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int b = s->bead[k];
    float x[3] = {0.0F, 0.0F, 0.0F};
    for (int m = 0; b >= 0 && m < p->bead[b][1]; m++) {
        const int part = p->bead[b][0] + m;
        for (int d = 0; d < 3; d++)
            x[d] += p->part_weight[part] * s->point[p->part[part]][d];
    }
    for (int d = 0; d < 3; d++)
        s->x[d][k] = s->still_x[d][k] = x[d];
    s->mask[k] = 1.0F;
    s->radius[k] = b >= 0 ? p->radius[b] : -p->cutoff; /* near nothing */
}

static void put_forms(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const float *amount = s->job + s->base.layout.amount,
                *shape = s->job + s->base.layout.shape;
    for (int f = 0; f < 2; f++)
        for (int q = 0; q < p->n_q; q++)
            for (int k = 0; k < s->n_all; k++) {
                const float *a = amount + 4 * s->bead[k] + 2 * f;
                s->form[f][q * s->n_pad + k] =
                    s->bead[k] < 0 ? 0.0F
                                   : a[0] * shape[q] + a[1] * shape[p->n_q + q];
            }
}

static void arrange(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    int n[3] = {0};
    for (int b = 0; b < p->n_bead; b++)
        n[s->what[b]]++;
    s->n_stay = n[0], s->n_loose = n[1], s->n_far = n[2];
    s->at_loose = padded(n[0]);
    s->at_far = s->at_loose + padded(n[1]);
    s->n_all = s->at_far + padded(n[2]);
    int at[3] = {0, s->at_loose, s->at_far};
    for (int k = 0; k < s->n_all; k++)
        s->bead[k] = -1;
    for (int b = 0; b < p->n_bead; b++)
        s->bead[at[s->what[b]]++] = b;
    for (int k = 0; k < s->n_all; k++)
        put_bead(s, k);
    put_forms(s);
}

/* Beads where draws a and b take them; and those of one half alone, the second
 * as seen from what moves as one. */
static void context(redraw_workspace *s, int a, int b)
{
    const ptrdiff_t n_bead = spec_of(s)->n_bead;
    const motion *m = &s->pool[0][a].end;
    const motion both = after(m, &s->pool[1][b].end);
    for (int k = 0; k < s->n_loose; k++) {
        const float *near = s->loose[0] + 4 * (a * n_bead + k),
                    *far = s->loose[1] + 4 * (b * n_bead + k);
        const float by = s->share[s->bead[s->at_loose + k]];
        for (int d = 0; d < 3; d++)
            s->x[d][s->at_loose + k] =
                near[d] + m->turn[d][0] * far[0] + m->turn[d][1] * far[1] +
                m->turn[d][2] * far[2] + by * m->shift[d];
    }
    for (int d = 0; d < 3; d++)
        for (int k = s->at_far; k < s->n_all; k++)
            s->x[d][k] = both.turn[d][0] * s->still_x[0][k] +
                         both.turn[d][1] * s->still_x[1][k] +
                         both.turn[d][2] * s->still_x[2][k] + both.shift[d];
}

static void place_half(redraw_workspace *s, int which, int number)
{
    const half *own = &s->pool[which][number];
    const float *loose =
        s->loose[which] + 4 * (ptrdiff_t)number * spec_of(s)->n_bead;
    for (int k = 0; k < s->n_loose; k++) {
        float x[3];
        memcpy(x, loose + 4 * (ptrdiff_t)k, sizeof x);
        if (which == 1)
            undo(&own->end, x, x);
        for (int d = 0; d < 3; d++)
            s->x[d][s->at_loose + k] = x[d];
    }
}

/* ---- overlaps ----
 *
 * Beads are compared by vectors first, their bodies only where the beads are
 * near. */

#define SIGNS 0x8000000080000000U /* of two numbers */

/* Energies are integers, so that no order of sums matters. */
static const float unit_per_nat = 65536.0F;
enum { IMPOSSIBLE = -1 };

/* Of two bodies. */
static int overlap(const tsr_surrogate_spec *p, int a, int b, float r2)
{
    const int32_t *u = p->body[a], *v = p->body[b];
    const float d = p->contact[u[0] * p->n_like + v[0]];
    if (r2 >= d * d || (u[2] == v[2] && abs(u[1] - v[1]) < 3) ||
        (u[3] >= 0 && u[3] == v[3]))
        return 0;
    const float z = (d - sqrtf(r2)) * p->inverse_softness, nat = 0.5F * z * z;
    return nat > p->limit ? IMPOSSIBLE : (int)lrintf(nat * unit_per_nat);
}

/* The bodies of beads k and m of the arrangement, those of k where `moved`
 * takes them (NULL: where they are). */
static long touch(const redraw_workspace *s, int k, int m, const motion *moved)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int32_t *a = p->bead[s->bead[k]], *b = p->bead[s->bead[m]];
    const float at_k[3] = {s->x[0][k], s->x[1][k], s->x[2][k]},
                at_m[3] = {s->x[0][m], s->x[1][m], s->x[2][m]};
    const float close = p->cutoff + s->radius[m];
    long sum = 0;
    for (int i = 0; i < a[3]; i++) {
        float x[3];
        memcpy(x, a[3] > 1 ? s->point[p->part[a[0] + i]] : at_k, sizeof x);
        if (a[3] > 1 && moved != NULL)
            apply(moved, x, x);
        if (square(x, at_m) >= close * close)
            continue;
        for (int j = 0; j < b[3]; j++) {
            const float r2 =
                square(x, b[3] > 1 ? s->point[p->part[b[0] + j]] : at_m);
            const int e = r2 < p->cutoff * p->cutoff
                              ? overlap(p, a[2] + i, b[2] + j, r2)
                              : 0;
            if (e == IMPOSSIBLE)
                return IMPOSSIBLE;
            sum += e;
        }
    }
    return sum;
}

/* Which of WIDE beads from `at` on are near bead k: two a word, each by the
 * sign of how far they are beyond, as compilers spoil comparisons of vectors.
 * Returns whether any is. */
TSR_INLINE int find_near(const redraw_workspace *s, int k, int at, float close,
                         uint64_t near[WIDE / 2])
{
    const lanes x = *(const lanes *)(s->x[0] + at) - s->x[0][k],
                y = *(const lanes *)(s->x[1] + at) - s->x[1][k],
                z = *(const lanes *)(s->x[2] + at) - s->x[2][k],
                d = *(const lanes *)(s->radius + at) + close;
    const lanes beyond = x * x + y * y + z * z - d * d;
    uint64_t any = 0;
    memcpy(near, &beyond, sizeof beyond);
    for (int l = 0; l < WIDE / 2; l++)
        any |= near[l];
    return (any & SIGNS) != 0;
}

/* Adds pairs of bead k with from..to-1; `moved` takes the bodies of k, or those
 * of the others. 0: impossible. */
TSR_CLONES
static int touch_row(const redraw_workspace *s, int k, int from, int to,
                     const motion *moved, int moves_others, long *sum)
{
    const float close = spec_of(s)->cutoff + s->radius[k];
    uint64_t near[WIDE / 2];
    for (int at = from; at < to; at += WIDE) {
        if (!find_near(s, k, at, close, near))
            continue;
        for (int l = 0; l < WIDE && at + l < to; l++) {
            if ((near[l / 2] >> (32 * (l % 2) + 31) & 1) == 0)
                continue;
            const long e = moves_others ? touch(s, at + l, k, moved)
                                        : touch(s, k, at + l, moved);
            if (e == IMPOSSIBLE)
                return 0;
            *sum += e;
        }
    }
    return 1;
}

/* Overlaps, nat, of distances that a redraw changes, where beads are placed and
 * `both` takes what moves as one; of one half alone, with that where it is.
 * INFINITY: impossible. */
static float energy_of(const redraw_workspace *s, const motion *both)
{
    const int loose_end = s->at_loose + s->n_loose,
              far_end = s->at_far + s->n_far;
    long sum = 0;
    for (int k = s->at_loose; k < loose_end; k++)
        if (!touch_row(s, k, 0, s->n_stay, NULL, 0, &sum) ||
            !touch_row(s, k, s->at_loose, k, NULL, 0, &sum) ||
            !touch_row(s, k, s->at_far, far_end, both, 1, &sum))
            return INFINITY;
    for (int k = s->at_far; k < far_end; k++)
        if (!touch_row(s, k, 0, s->n_stay, both, 0, &sum))
            return INFINITY;
    return (float)sum / unit_per_nat;
}

/* Beads that lie in both halves count in neither. */
static float half_energy(const redraw_workspace *s, int which)
{
    const int from = which == 0 ? 0 : s->at_far,
              to = from + (which == 0 ? s->n_stay : s->n_far);
    const float whole_share = which == 0 ? 0.0F : 1.0F;
    long sum = 0;
    for (int k = s->at_loose; k < s->at_loose + s->n_loose; k++) {
        if (fabsf(s->share[s->bead[k]] - whole_share) > 1e-5F)
            continue;
        if (!touch_row(s, k, from, to, NULL, 0, &sum))
            return INFINITY;
        for (int m = s->at_loose; m < k; m++) {
            if (fabsf(s->share[s->bead[m]] - whole_share) > 1e-5F)
                continue;
            const long e = touch(s, k, m, NULL);
            if (e == IMPOSSIBLE)
                return INFINITY;
            sum += e;
        }
    }
    return (float)sum / unit_per_nat;
}

/* ---- curves ----
 *
 * A bead's form factor is F + c2 H, so that the curve of a candidate at any c2
 * follows from three sums over pairs: F F, F H and H H times sin(q r) / (q r).
 * On the uniform grid of q, sin(q r) follows by a recurrence; a row is one
 * bead with vectors of others. */

/* 1 / sqrt, by Newton's method from the number's own exponent. */
TSR_INLINE void inverse_root(const lanes *v, lanes *out)
{
    const bits first = 0x5f3759dfU - (*(const bits *)v >> 1);
    lanes y = *(const lanes *)&first;
    for (int k = 0; k < 3; k++)
        y *= 1.5F - 0.5F * *v * y * y;
    *out = y;
}

/* Of WIDE pairs, bead k with those from `at` on: sin(a) / (q1 r) times their
 * mask and 2 cos(a), a = q1 r below .9 pi, by half the angle. */
TSR_INLINE void start_pairs(const redraw_workspace *s, int k, int at, float dq,
                            lanes *is, lanes *twice)
{
    const lanes dx = *(const lanes *)(s->x[0] + at) - s->x[0][k],
                dy = *(const lanes *)(s->x[1] + at) - s->x[1][k],
                dz = *(const lanes *)(s->x[2] + at) - s->x[2][k];
    const lanes r2 = dx * dx + dy * dy + dz * dz + 1e-6F;
    lanes inverse;
    inverse_root(&r2, &inverse);
    const lanes a = 0.5F * dq * r2 * inverse, t = a * a;
    const lanes sine =
        a *
        (1.0F + t * (-1.66666667e-1F +
                     t * (8.33333333e-3F +
                          t * (-1.98412698e-4F +
                               t * (2.75573192e-6F + t * -2.50521084e-8F)))));
    const lanes cosine =
        1.0F +
        t * (-0.5F + t * (4.16666667e-2F +
                          t * (-1.38888889e-3F +
                               t * (2.48015873e-5F + t * -2.75573192e-7F))));
    *is =
        *(const lanes *)(s->mask + at) * sine * cosine * inverse * (2.0F / dq);
    *twice = 2.0F - 4.0F * sine * sine;
}

/* Two vectors of pairs at a time, so that one recurrence need not wait for the
 * other. */
TSR_INLINE void add_pairs(const redraw_workspace *s, int n_q, int k, int at,
                          int n, float dq, int has_water)
{
    lanes *u = (lanes *)s->row_sum[0], *v = (lanes *)s->row_sum[1];
    const float *f = s->form[0] + at, *h = s->form[1] + at;
    const ptrdiff_t n_pad = s->n_pad;
    lanes is[2], was[2], twice[2];
    for (int m = 0; m < n; m++) {
        const lanes mask = *(const lanes *)(s->mask + at + m * WIDE);
        start_pairs(s, k, at + m * WIDE, dq, &is[m], &twice[m]);
        was[m] = mask - mask;
        u[0] += mask * *(const lanes *)(f + m * WIDE);
        if (has_water)
            v[0] += mask * *(const lanes *)(h + m * WIDE);
    }
    for (int q = 1; q < n_q; q++) {
        f += n_pad, h += n_pad;
        lanes sum = u[q];
        for (int m = 0; m < n; m++)
            sum += is[m] * *(const lanes *)(f + m * WIDE);
        u[q] = sum;
        if (has_water) {
            sum = v[q];
            for (int m = 0; m < n; m++)
                sum += is[m] * *(const lanes *)(h + m * WIDE);
            v[q] = sum;
        }
        for (int m = 0; m < n; m++) {
            const lanes next = twice[m] * is[m] - was[m];
            was[m] = is[m], is[m] = next;
        }
    }
}

/* Adds bead k's pairs with from..to-1, whole vectors of them. */
TSR_INLINE void add_row(const redraw_workspace *s, int n_q, int k, int from,
                        int to, float dq, int has_water)
{
    const lanes *u = (const lanes *)s->row_sum[0],
                *v = (const lanes *)s->row_sum[1];
    lanes *ff = (lanes *)s->lane_sum[0], *fh = (lanes *)s->lane_sum[1],
          *hh = (lanes *)s->lane_sum[2];
    memset(s->row_sum[0], 0, (size_t)n_q * WIDE * sizeof(float));
    if (has_water)
        memset(s->row_sum[1], 0, (size_t)n_q * WIDE * sizeof(float));
    int at = from;
    for (; at + WIDE < to; at += 2 * WIDE)
        add_pairs(s, n_q, k, at, 2, dq, has_water);
    if (at < to)
        add_pairs(s, n_q, k, at, 1, dq, has_water);
    const float *own_f = s->form[0] + k, *own_h = s->form[1] + k;
    const ptrdiff_t n_pad = s->n_pad;
    for (int q = 0; q < n_q; q++, own_f += n_pad, own_h += n_pad) {
        const lanes sum = u[q];
        ff[q] += *own_f * sum;
        if (has_water) {
            fh[q] += *own_h * sum + *own_f * v[q];
            hh[q] += *own_h * v[q];
        }
    }
}

TSR_CLONES
static void add_one_row(const redraw_workspace *s, int n_q, int k, int from,
                        int to, float dq, int has_water)
{
    if (has_water) /* known where the loops are made */
        add_row(s, n_q, k, from, to, dq, 1);
    else
        add_row(s, n_q, k, from, to, dq, 0);
}

/* Beads that stay with all that does not, and loose ones with what moves as
 * one. */
TSR_INLINE void add_others(const redraw_workspace *s, int n_q, float dq,
                           int has_water)
{
    for (int k = s->at_far; k < s->at_far + s->n_far; k++)
        add_row(s, n_q, k, 0, s->at_loose, dq, has_water);
    for (int k = s->at_loose; k < s->at_loose + s->n_loose; k++) {
        add_row(s, n_q, k, 0, s->at_loose, dq, has_water);
        if (s->n_far > 0)
            add_row(s, n_q, k, s->at_far, s->n_all, dq, has_water);
    }
}

TSR_CLONES
static void add_between(const redraw_workspace *s, int n_q, float dq,
                        int has_water)
{
    if (has_water)
        add_others(s, n_q, dq, 1);
    else
        add_others(s, n_q, dq, 0);
}

static int unit_of(const tsr_surrogate_spec *p, int bead)
{
    return p->body[p->bead[bead][2]][3];
}

/* Pairs of beads within from..to-1, each once, but for those of one rigid unit,
 * which the rest of the job has. */
static void add_within(redraw_workspace *s, int from, int to)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int end = from + padded(to - from);
    for (int k = from; k < to; k++) {
        const int unit = unit_of(p, s->bead[k]);
        for (int m = from; m < end; m++)
            s->mask[m] = m < k && (unit < 0 || unit != unit_of(p, s->bead[m]))
                             ? 1.0F
                             : 0.0F;
        add_one_row(s, p->n_q, k, from, from + padded(k - from), p->dq_inv_ang,
                    p->has_c2);
    }
    for (int m = from; m < end; m++)
        s->mask[m] = 1.0F;
}

static void clear_sums(const redraw_workspace *s)
{
    for (int k = 0; k < 3; k++)
        memset(s->lane_sum[k], 0,
               (size_t)spec_of(s)->n_q * WIDE * sizeof(float));
}

static void take_sums(const redraw_workspace *s, float *const out[3])
{
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < spec_of(s)->n_q; q++) {
            float sum = 0.0F;
            for (int l = 0; l < WIDE; l++)
                sum += s->lane_sum[k][q * WIDE + l];
            out[k][q] = q > 0 ? sum / (float)q : sum;
        }
}

/* Pairs whose distance a redraw keeps, into rest. */
static void sum_rest(redraw_workspace *s)
{
    clear_sums(s);
    add_within(s, 0, s->n_stay);
    add_within(s, s->at_far, s->at_far + s->n_far);
    take_sums(s, s->rest);
}

/* Partial curves of all pairs, with beads where they are placed. */
static void sum_curves(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    clear_sums(s);
    add_between(s, p->n_q, p->dq_inv_ang, p->has_c2);
    add_within(s, s->at_loose, s->at_loose + s->n_loose);
    take_sums(s, s->curve);
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < p->n_q; q++)
            s->curve[k][q] += s->rest[k][q];
}

/* ---- what the data say ---- */

static float by_powers(const float *a, int n_q, int q, float c2)
{
    return a[q] + c2 * (a[n_q + q] + c2 * a[2 * n_q + q]);
}

/* What `top` over `bottom` is at c2: ratio [n_q]. */
static void ratio_at(const redraw_workspace *s, float c2, float *ratio)
{
    const tsr_surrogate_layout *l = &s->base.layout;
    const int n_q = spec_of(s)->n_q;
    for (int q = 0; q < n_q; q++)
        ratio[q] = by_powers(s->job + l->numerator, n_q, q, c2) /
                   by_powers(s->job + l->denominator, n_q, q, c2);
}

/* out [row_pad] = the profile times rows [n_q][row_pad]. */
TSR_CLONES
static void multiply(const float *rows, int n_q, int row_pad,
                     const float *profile, float *out)
{
    for (int m = 0; m < row_pad; m += WIDE) {
        lanes sum = {0.0F};
        for (int q = 0; q < n_q; q++)
            sum += profile[q] * *(const lanes *)(rows + q * row_pad + m);
        *(lanes *)(out + m) = sum;
    }
}

/* Of the curves that were summed: the bare profile at c2 into bare [n_q] (NULL:
 * not wanted), and log L. */
static double log_lik_at(redraw_workspace *s, float c2, const float *ratio,
                         float *bare)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const tsr_surrogate_layout *l = &s->base.layout;
    double sum = 0.0;
    for (int q = 0; q < p->n_q; q++) {
        const float own = by_powers(s->job + l->constant, p->n_q, q, c2) +
                          s->curve[0][q] +
                          c2 * (s->curve[1][q] + c2 * s->curve[2][q]);
        s->profile[q] = own * ratio[q];
        if (bare != NULL)
            bare[q] = own;
    }
    for (int c = 0; c < p->n_curve; c++) {
        multiply(s->rows + (ptrdiff_t)c * p->n_q * s->row_pad, p->n_q,
                 s->row_pad, s->profile, s->product);
        const float *target =
            s->job + l->curve + c * l->curve_size + p->n_q * l->n_row;
        double scale = (double)target[l->n_row], mm = 0.0, tm = 0.0;
        for (int k = 0; k < l->n_row && target[l->n_row] == 0.0F; k++) {
            mm += (double)s->product[k] * (double)s->product[k];
            tm += (double)s->product[k] * (double)target[k];
        }
        scale = target[l->n_row] == 0.0F ? tm / mm : scale;
        for (int k = 0; k < l->n_row; k++) {
            const double rest =
                (double)target[k] - scale * (double)s->product[k];
            sum -= 0.5 * rest * rest;
        }
    }
    return sum;
}

/* ---- candidates ---- */

enum {
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

/* The middle of the bodies of beads from..to-1. */
static void middle_of(const redraw_workspace *s, int from, int to, float x[3])
{
    const tsr_surrogate_spec *p = spec_of(s);
    float n = 0.0F;
    x[0] = x[1] = x[2] = 0.0F;
    for (int k = from; k < to; k++)
        n += (float)p->bead[s->bead[k]][3];
    for (int k = from; k < to; k++)
        for (int d = 0; d < 3; d++)
            x[d] += (float)p->bead[s->bead[k]][3] / n * s->still_x[d][k];
}

static int n_draw(const redraw_workspace *s, int which)
{
    return s->n_half[which] > 0 ? POOL : 1;
}

/* near, far: the middles of what stays and of what moves as one (where nothing
 * does, the last point of the chain), whose distance shells are of. */
static void fill_pools(redraw_workspace *s, float near[3], float far[3])
{
    middle_of(s, 0, s->n_stay, near);
    if (s->n_far > 0)
        middle_of(s, s->at_far, s->at_far + s->n_far, far);
    else
        memcpy(far, s->point[s->own->end - (s->own->by > 0)], 3 * sizeof *far);
    for (int w = 0; w < 2; w++)
        for (int k = 0; k < n_draw(s, w); k++) {
            half *own = &s->pool[w][k];
            draw_half(s, w, k);
            if (w == 0)
                undo(&own->end, near, own->middle);
            else
                apply(&own->end, far, own->middle);
            place_half(s, w, k);
            own->energy = half_energy(s, w);
        }
}

/* Pairs of draws at distances from low to high; the present one comes first. */
static void find_pairs(redraw_workspace *s, float low, float high)
{
    const float least = low > 0.0F ? low * low : 0.0F, most = high * high;
    s->pair[0] = 0;
    s->n_pair = 1;
    for (int a = 0; a < n_draw(s, 0); a++) {
        const half *u = &s->pool[0][a];
        for (int b = 0; b < n_draw(s, 1) && u->energy < INFINITY; b++) {
            const half *v = &s->pool[1][b];
            const float r2 = square(u->middle, v->middle);
            if (r2 >= least && r2 < most && v->energy < INFINITY && a + b > 0)
                s->pair[s->n_pair++] = (uint32_t)a << 16 | (uint32_t)b;
        }
    }
}

static const half *half_of(const redraw_workspace *s, int which, int k)
{
    const uint32_t pair = s->pair[k];
    return &s->pool[which][which == 0 ? pair >> 16 : pair & 0xffff];
}

/* ---- drawing some of a set ---- */

/* From the n of s->pair with log weights s->guess, each there s->count times,
 * n_drawn are drawn independently, into s->count; the first is there once more.
 * Uniform numbers in order are sums of exponential ones. */
static void draw_some(redraw_workspace *s, int n, int n_drawn)
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
static void keep(redraw_workspace *s, int k, int n)
{
    s->pair[n] = s->pair[k];
    s->count[n] = s->count[k];
}

/* By torsions and the halves' own overlaps; of those drawn the overlaps of the
 * whole. Returns how many candidates are left. */
static int draw_first(redraw_workspace *s)
{
    int n = 0;
    for (int k = 0; k < s->n_pair; k++) {
        const half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
        s->guess[k] = u->log_weight - u->energy + v->log_weight - v->energy;
        s->count[k] = 1;
    }
    draw_some(s, s->n_pair, FIRST);
    for (int k = 0; k < s->n_pair; k++) {
        if (s->count[k] == 0)
            continue;
        const half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
        const motion both = after(&u->end, &v->end);
        context(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
        const float energy = energy_of(s, &both);
        if (!(energy < INFINITY))
            continue;
        keep(s, k, n);
        s->energy[n] = energy;
        s->guess[n++] = u->energy + v->energy - energy;
    }
    return n;
}

static double prior_of_c2(const redraw_workspace *s, float c2)
{
    const float *head = s->job + s->base.layout.head;
    const double z = ((double)c2 - (double)head[2]) / (double)head[3];
    if (!spec_of(s)->has_c2)
        return 0.0;
    return c2 >= head[4] && c2 <= head[5] ? -0.5 * z * z : -HUGE_VAL;
}

/* A grid of c2 that holds the present value, at any of its places. */
static int set_nodes(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const float width = s->job[s->base.layout.head + 3];
    s->n_node = p->has_c2 ? NODES : 1;
    const int own = (int)gsl_rng_uniform_int(s->rng, (unsigned long)s->n_node);
    const int scale = (int)gsl_rng_uniform_int(s->rng, GRIDS);
    for (int i = 0; i < s->n_node; i++) {
        s->node[i] = p->has_c2
                         ? s->c2 + (float)ldexp((double)width, -2 - 2 * scale) *
                                       (float)(i - own)
                         : 0.0F;
        ratio_at(s, s->node[i], s->ratio + i * p->n_q);
    }
    return own;
}

/* By the other overlaps; of those drawn, likelihoods at all nodes of c2. */
static int draw_second(redraw_workspace *s, int n_first)
{
    const int n_q = spec_of(s)->n_q;
    const double beta = (double)s->job[s->base.layout.head];
    int n = 0;
    draw_some(s, n_first, SECOND);
    for (int k = 0; k < n_first; k++) {
        if (s->count[k] == 0)
            continue;
        context(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
        sum_curves(s);
        keep(s, k, n);
        s->energy[n] = s->energy[k];
        for (int i = 0; i < s->n_node; i++) {
            const double prior = prior_of_c2(s, s->node[i]);
            s->weight[n * s->n_node + i] =
                is_finite(prior) ? beta * log_lik_at(s, s->node[i],
                                                     s->ratio + i * n_q, NULL) +
                                       prior
                                 : -HUGE_VAL;
        }
        n++;
    }
    return n;
}

/* Candidate and node, as one number. */
static int choose(redraw_workspace *s, int n)
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
static double tell_place(redraw_workspace *s, int k, int node, float *bare)
{
    const half *u = half_of(s, 0, k), *v = half_of(s, 1, k);
    context(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
    sum_curves(s);
    log_lik_at(s, s->node[node], s->ratio + node * spec_of(s)->n_q, bare);
    return (double)u->log_density + (double)v->log_density -
           (double)s->energy[k] + s->weight[k * s->n_node + node];
}

static void tell_turns(const redraw_workspace *s, int k, float *turned)
{
    const tsr_surrogate_spec *p = spec_of(s);
    for (int w = 0; w < 2; w++)
        for (int r = 0; r < s->n_half[w]; r++)
            for (int i = 0; i < 2; i++) {
                const int t = s->torsion[r + (w == 1 ? s->n_half[0] : 0)][i];
                turned[t] = half_of(s, w, k)->turn[r][p->turn[t][1]];
            }
}

static void redraw(redraw_workspace *s, float *result)
{
    const tsr_surrogate_spec *p = spec_of(s);
    float near[3], far[3], *bare = result + TSR_SURROGATE_HEAD;
    arrange(s);
    if (s->n_stay == 0 || s->n_loose == 0)
        return;
    sum_rest(s);
    fill_pools(s, near, far);
    const float wide = (s->own->is_tail ? shell_tail_ang : shell_linker_ang) *
                       (float)(1 << gsl_rng_uniform_int(s->rng, SHELLS));
    const float low =
        sqrtf(square(near, far)) - wide * (float)gsl_rng_uniform(s->rng);
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

static void open_job(redraw_workspace *s, int i)
{
    const tsr_surrogate_spec *p = spec_of(s);
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

static const stretch *choose_stretch(const redraw_workspace *s)
{
    int all = 0, k = 0;
    for (int i = 0; i < s->n_stretch; i++)
        all += s->stretch[i].is_tail ? 1 : LINKER_SHARE;
    int at = (int)gsl_rng_uniform_int(s->rng, (unsigned long)all);
    while ((at -= s->stretch[k].is_tail ? 1 : LINKER_SHARE) >= 0)
        k++;
    return &s->stretch[k];
}

static tsr_status do_job(redraw_workspace *s, int i, tsr_err *err)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const size_t size = (size_t)tsr_surrogate_result_size(p);
    const uint32_t *key = s->base.call.key[i];
    float *result = s->base.call.result + (size_t)i * size;
    open_job(s, i);
    memset(result, 0, size * sizeof *result);
    for (int q = 0; q < 2 * p->n_q; q++)
        result[TSR_SURROGATE_HEAD + q] = NAN;
    result[2] = s->job[s->base.layout.head + 1];
    s->rng = tsr_rng_new((uint64_t)key[0] << 32 | key[1], 0);
    TSR_TRY(tsr_allocated(s->rng, err));
    choose_part(s, choose_stretch(s));
    redraw(s, result);
    gsl_rng_free(s->rng);
    return TSR_OK;
}

static tsr_status room_walk(tsr_surrogate_walker *walker, tsr_err *err)
{
    for (int i = 0; i < walker->call.n_job; i++)
        TSR_TRY(do_job((redraw_workspace *)walker, i, err));
    return TSR_OK;
}

/* ---- the engine ---- */

static void workspace_free(tsr_surrogate_walker *walker)
{
    tsr_pool_clear(&((redraw_workspace *)walker)->memory);
    free(walker);
}

static void make_call(redraw_workspace *s, size_t n)
{
    const tsr_surrogate_spec *p = spec_of(s);
    tsr_surrogate_call *c = &s->base.call;
    tsr_pool_array(&s->memory, c->job, n * (size_t)s->base.layout.size);
    tsr_pool_array(&s->memory, c->point, n * (size_t)p->n_point);
    tsr_pool_array(&s->memory, c->key, n);
    tsr_pool_array(&s->memory, c->result,
                   n * (size_t)tsr_surrogate_result_size(p));
    tsr_pool_array(&s->memory, c->count, n * (size_t)tsr_surrogate_n_count(p));
}

static void reserve(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const size_t q = (size_t)p->n_q, n_bead = (size_t)p->n_bead,
                 n = (size_t)s->n_pad, pairs = (size_t)POOL * POOL + 1,
                 row = (size_t)s->row_pad;
    tsr_pool *m = &s->memory;
    tsr_pool_array(m, s->density, (size_t)p->n_density * TERMS * 2 * WIDE);
    tsr_pool_array(m, s->rows, (size_t)p->n_curve * q * row);
    tsr_pool_array(m, s->stretch, s->n_stretch);
    tsr_pool_array(m, s->what, n_bead);
    tsr_pool_array(m, s->segment, p->n_point);
    tsr_pool_array(m, s->share, n_bead);
    tsr_pool_array(m, s->bead, n);
    tsr_pool_array(m, s->radius, n);
    tsr_pool_array(m, s->mask, n);
    tsr_pool_array(m, s->profile, q);
    tsr_pool_array(m, s->product, row);
    tsr_pool_array(m, s->pair, pairs);
    tsr_pool_array(m, s->guess, pairs);
    tsr_pool_array(m, s->upto, pairs);
    tsr_pool_array(m, s->count, pairs);
    tsr_pool_array(m, s->energy, FIRST + 1);
    tsr_pool_array(m, s->ratio, NODES * q);
    tsr_pool_array(m, s->weight, (SECOND + 1) * NODES);
    for (int k = 0; k < 3; k++) {
        tsr_pool_array(m, s->x[k], n);
        tsr_pool_array(m, s->still_x[k], n);
        tsr_pool_array(m, s->lane_sum[k], q * WIDE);
        tsr_pool_array(m, s->rest[k], q);
        tsr_pool_array(m, s->curve[k], q);
    }
    for (int k = 0; k < 2; k++) {
        tsr_pool_array(m, s->form[k], q * n);
        tsr_pool_array(m, s->row_sum[k], q * WIDE);
        tsr_pool_array(m, s->pool[k], POOL);
        tsr_pool_array(m, s->loose[k], POOL * n_bead * 4);
    }
}

static tsr_status workspace_new(tsr_surrogate_engine *engine, int most_jobs,
                                tsr_surrogate_walker **out, tsr_err *err)
{
    const tsr_surrogate_spec *p = engine->spec;
    redraw_workspace *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->base.engine = engine;
    s->base.layout = tsr_surrogate_layout_of(p);
    s->n_pad = padded(p->n_bead) + 3 * WIDE;
    s->row_pad = padded(s->base.layout.n_row);
    s->n_stretch = list_stretches(p, NULL);
    make_call(s, (size_t)most_jobs);
    reserve(s);
    const tsr_status status = tsr_pool_check(&s->memory, err);
    if (status != TSR_OK) {
        workspace_free(&s->base);
        return status;
    }
    list_stretches(p, s->stretch);
    set_densities(p, s->density);
    *out = &s->base;
    return TSR_OK;
}

static void engine_free(tsr_surrogate_engine *engine)
{
    free(engine);
}

int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec)
{
    return list_stretches(spec, NULL);
}

tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec)
{
    tsr_surrogate_engine *e = calloc(1, sizeof *e);
    if (e != NULL)
        *e = (tsr_surrogate_engine){.spec = spec,
                                    .free = engine_free,
                                    .walker_new = workspace_new,
                                    .walk = room_walk,
                                    .walker_free = workspace_free};
    return e;
}
