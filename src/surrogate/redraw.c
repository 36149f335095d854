/* Redraws (surrogate.h): stretches and their halves, positions of beads,
 * overlaps, curves, and the choice of a candidate. All loops that the compiler
 * must vectorise are in this file (see the Makefile). */
#include "surrogate/surrogate.h"

#include "core/clones.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI ((float)TSR_PI)

enum {
    WIDE = 16,     /* lanes of a vector */
    HALF = 10,     /* residues of half a stretch, at most */
    POOL = 256,    /* draws of each half */
    N_FIRST = 256, /* candidates whose overlaps are computed */
    N_SECOND = 64, /* candidates whose curves are computed */
    NODES = 8      /* grid points of c2 */
};

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

/* A motion: x becomes turn x + shift, Angstrom. */
typedef struct {
    float turn[3][3], shift[3];
} motion;

static void apply_motion(const motion *m, const float *x, float *to)
{
    const float a = x[0], b = x[1], c = x[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[i][0] * a + m->turn[i][1] * b + m->turn[i][2] * c +
                m->shift[i];
}

/* Applies the inverse of a motion. */
static void apply_inverse(const motion *m, const float *x, float *to)
{
    const float a = x[0] - m->shift[0], b = x[1] - m->shift[1],
                c = x[2] - m->shift[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[0][i] * a + m->turn[1][i] * b + m->turn[2][i] * c;
}

/* Squared distance. */
static float squared_distance(const float *a, const float *b)
{
    const float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z;
}

/* Consecutive residues with both torsions free: torsions
 * first..first+2*n_residue-1 of the spec. direction: 1: the C side moves, -1:
 * the N side. end: the end of the chain's points on the moving side (its begin
 * for -1). */
typedef struct {
    int first, n_residue, direction, end, is_tail;
} stretch;

/* One draw of half a stretch. The first half begins at the fixed points. The
 * second half is drawn with the first half in its present shape. */
typedef struct {
    motion end;        /* motion of the points beyond the half */
    float log_density; /* log density of its torsions */
    float log_weight;  /* the same minus the log probability of drawing them */
    float energy;      /* nat, overlaps within the half; INFINITY: forbidden */
    float middle[3];   /* centre of the fixed points (first half) or far points
                          (second half), in the frame between the halves */
    float turn[HALF][2]; /* changes of phi and psi */
} half;

/* Workspace of a thread. Beads are arranged in three blocks: fixed beads, loose
 * beads of the stretch, and far beads beyond it, which move as one. Each block
 * is padded to whole vectors with beads that do not scatter. */
typedef struct {
    tsr_surrogate_walker base;
    tsr_pool memory;
    gsl_rng *rng;
    int n_pad, row_pad; /* padded number of beads; padded length of a row of the
                           data */
    int n_density;
    float
        *density; /* [n_density][9][2 WIDE] coefficients of torsion densities */

    /* the current job */
    const float *job;
    const float (*point)[4]; /* [n_point] */
    const float *angle;      /* [n_slot][2] */
    float c2;
    float *rows; /* [n_curve][n_q][row_pad] */

    /* the stretch to be redrawn */
    int n_stretch;
    stretch *stretch;
    const stretch *own;
    int n_residue, n_half[2];
    int torsion[2 * HALF][2]; /* outwards from the fixed points */
    int *role;                /* [n_bead] 0 fixed, 1 loose, 2 far */
    int *segment; /* [n_point] number of torsions that move the point, 0 to 2
                     n_residue */
    float *outer_weight; /* [n_bead] sum of the weights of its points in the
                            second half and beyond */
    half *pool[2];       /* [POOL] draws; the present shape first */
    float *loose[2]; /* [POOL][n_bead][4] position of loose beads: weighted sum
                        over their points in the half */

    /* the arrangement of beads */
    int n_fixed, n_loose, n_far, first_loose, first_far, n_all;
    int *bead; /* [n_pad] index of the bead; -1: padding */
    float *x[3], *radius, *mask,
        *present_x[3]; /* [n_pad] current position, radius, mask of pairs,
                        present position */
    float *form[2]; /* [n_q][n_pad] form factors, constant and linear in c2 */

    /* curves, as polynomials in c2 */
    float *lane_sum[3], *row_sum[2]; /* [n_q][WIDE] */
    float *constant[3];       /* [n_q] pairs whose distance is constant */
    float *curve[3];          /* [n_q] */
    float *profile, *product; /* [n_q], [row_pad] scratch */

    /* candidates */
    int n_pair;
    uint32_t *pair;    /* [POOL POOL + 1] indices of both draws, 16 bits each */
    float *log_weight; /* [POOL POOL + 1] of each candidate in `resample` */
    double *cumulative; /* [POOL POOL + 1] sums of weights */
    int *count;         /* [POOL POOL + 1] multiplicity of each candidate */
    float *energy;      /* [N_FIRST + 1] nat, all overlaps of a candidate */
    int n_node;
    float node[NODES];
    float *ratio;   /* [NODES][n_q] numerator / denominator */
    double *weight; /* [N_SECOND + 1][NODES] log likelihood times beta plus log
                       prior of c2 */
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

/* ---- stretches ---- */

enum {
    CELLS = TSR_SURROGATE_CELLS,
    N_CELL = CELLS * CELLS,
    TERMS = 9,
    ATOMS = 6, /* points of a flexible residue */
    /* Number of residues redrawn at once: at most LONGEST_TAIL of a tail; all
     * of a linker or, if halves cannot hold them, a random number between LEAST
     * and LONGEST. */
    LONGEST_TAIL = 12,
    LONGEST = 2 * HALF,
    LEAST = 6
};

_Static_assert((int)LONGEST_TAIL <= (int)LONGEST, "halves hold a tail");

/* Returns 1 if torsions t and t + 1 are phi and psi of one residue. */
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

/* Returns 1 if torsions t and t + 1 belong to one residue, outside of linkers,
 * and both move the same side of the same chain as torsion `first`. */
static int moves_same_side(const tsr_surrogate_spec *p, int first, int t)
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
                               .direction = own[2] > 0 ? 1 : -1,
                               .end = own[3]};
        n += is_whole;
    }
    return n;
}

/* Lists the stretches (out NULL: counts only). Returns their number. */
static int list_stretches(const tsr_surrogate_spec *p, stretch *out)
{
    int n = list_linkers(p, out), t = 0;
    while (t < p->n_torsion) {
        int m = 0;
        while (moves_same_side(p, t, t + 2 * m) &&
               (m == 0 || p->point_bounds[t + 2 * m][0] -
                                  p->point_bounds[t + 2 * m - 2][0] ==
                              ATOMS))
            m++;
        if (m > 0 && out != NULL)
            out[n] = (stretch){.first = t,
                               .n_residue = m,
                               .direction = side_of(p, t),
                               .end = end_of(p, t),
                               .is_tail = 1};
        n += m > 0;
        t += m > 0 ? 2 * m : 1;
    }
    return n;
}

/* ---- a stretch ----
 *
 * Torsions are numbered outwards from the fixed points. Turning all of them by
 * d is the motion R_1 R_2 ... R_n, each about its present axis, the outermost
 * first. Points between torsions k and k + 1, segment k, move by R_1 ... R_k.
 * Both torsions of a residue are drawn from the cells of its density, as in
 * walks. */

static void set_segments(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const stretch *own = s->own;
    for (int i = 0; i < p->n_point; i++)
        s->segment[i] = 0;
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[r][k];
            const int from =
                          own->direction > 0 ? p->point_bounds[t][1] : own->end,
                      to =
                          own->direction > 0 ? own->end : p->point_bounds[t][0];
            for (int i = from; i < to; i++)
                s->segment[i] = 2 * r + k + 1;
        }
}

/* Sets the role and the outer weight of each bead. */
static void set_beads(const redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int last = 2 * s->n_residue;
    for (int b = 0; b < p->n_bead; b++) {
        const int32_t *own = p->bead[b];
        int lowest = last, largest = 0;
        s->outer_weight[b] = 0.0F;
        for (int k = own[0]; k < own[0] + own[1]; k++) {
            const int at = s->segment[p->part[k]];
            lowest = at < lowest ? at : lowest;
            largest = at > largest ? at : largest;
            s->outer_weight[b] +=
                at > 2 * s->n_half[0] ? p->part_weight[k] : 0.0F;
        }
        s->role[b] = largest == 0 ? 0 : lowest == last ? 2 : 1;
    }
}

/* Selects the residues of a stretch to be redrawn, at random if the stretch is
 * too long for one redraw. Sets their torsions, the segments of points and the
 * role of each bead. */
static void choose_part(redraw_workspace *s, const stretch *whole)
{
    const int all = whole->n_residue;
    const int longest = whole->is_tail ? LONGEST_TAIL : LONGEST;
    s->own = whole;
    s->n_residue = all < longest ? all : longest;
    if (!whole->is_tail && all > LONGEST)
        s->n_residue =
            LEAST + (int)gsl_rng_uniform_int(s->rng, LONGEST - LEAST + 1);
    const int skip = (int)gsl_rng_uniform_int(
        s->rng, (unsigned long)(all - s->n_residue + 1));
    const int first =
        whole->first + (whole->direction > 0 ? 2 * skip : 2 * (all - skip) - 1);
    s->n_half[0] = (s->n_residue + 1) / 2;
    s->n_half[1] = s->n_residue - s->n_half[0];
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++)
            s->torsion[r][k] = first + (2 * r + k) * whole->direction;
    set_segments(s);
    set_beads(s);
}

/* ---- torsions ---- */

/* out [n_density][9][2 WIDE]: coefficients of torsion densities, with the
 * components side by side as vectors need them. */
static void set_densities(const tsr_surrogate_spec *spec, float *out)
{
    for (int d = 0; d < spec->n_density; d++, out += TERMS * 2 * WIDE)
        for (int k = 0; k < TERMS * 2 * WIDE; k++) {
            const int term = k / (2 * WIDE), part = k % (2 * WIDE);
            out[k] = part < spec->n_term[d] ? spec->term[d][part][term]
                     : term == 0            ? -80.0F /* negligible */
                                            : 0.0F;
        }
}

/* Computes exp for arguments below 80, with a relative error of 1e-7. Arguments
 * below -80 count as -80. */
TSR_INLINE void exponentiate(lanes *x)
{
    const lanes lowest = *x - *x - 80.0F;
    const bits is_less = (bits)(*x < lowest);
    const bits held =
        (*(const bits *)x & ~is_less) | (*(const bits *)&lowest & is_less);
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

/* The density at two angles: the sum of its components. wave: cos and sin of
 * phi, cos and sin of psi. */
TSR_CLONES
static float density_at(const float *term, const float wave[4])
{
    const float c = wave[0], s = wave[1], e = wave[2], f = wave[3];
    const float direction[TERMS] = {1.0F,  c,     s,     e,    f,
                                    c * e, c * f, s * e, s * f};
    lanes sum = {0.0F};
    for (int set = 0; set < 2; set++) {
        lanes x = {0.0F};
        for (int k = 0; k < TERMS; k++)
            x += direction[k] * *(const lanes *)(term + (2 * k + set) * WIDE);
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

static void draw_angles(const uint32_t *cumulative, gsl_rng *rng,
                        float angle[2])
{
    const uint32_t number = (uint32_t)gsl_rng_get(rng);
    int low = 0, high = N_CELL - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (number < cumulative[middle])
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

/* Log probability of drawing the cell of two angles, up to a constant. */
static float log_proposal(const uint32_t *cumulative, const float angle[2])
{
    int at[2];
    for (int i = 0; i < 2; i++) {
        at[i] = (int)((angle[i] + PI) * (CELLS / (2.0F * PI)));
        at[i] = at[i] < 0 ? 0 : at[i] >= CELLS ? CELLS - 1 : at[i];
    }
    const int k = at[0] * CELLS + at[1];
    return logf((float)(cumulative[k] - (k > 0 ? cumulative[k - 1] : 0)));
}

/* ---- half a stretch ---- */

static float wrapped(float angle)
{
    return angle - 2.0F * PI * rintf(angle / (2.0F * PI));
}

/* The motion b followed by a. */
static motion compose(const motion *a, const motion *b)
{
    motion m;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m.turn[i][j] = a->turn[i][0] * b->turn[0][j] +
                           a->turn[i][1] * b->turn[1][j] +
                           a->turn[i][2] * b->turn[2][j];
    apply_motion(a, b->shift, m.shift);
    return m;
}

static motion rotation_about(const float *from, const float *to,
                             float angle_rad)
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
    apply_motion(&m, from, still);
    for (int d = 0; d < 3; d++)
        m.shift[d] = from[d] - still[d];
    return m;
}

/* Motions of the segments of a half, cumulative [2 n_half + 1]; the first is
 * the identity. */
static void move_segments(const redraw_workspace *s, int which, const half *own,
                          motion *cumulative)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int first = which == 0 ? 0 : s->n_half[0];
    cumulative[0] =
        (motion){{{1.0F, 0.0F, 0.0F}, {0.0F, 1.0F, 0.0F}, {0.0F, 0.0F, 1.0F}},
                 {0.0F, 0.0F, 0.0F}};
    for (int r = 0; r < s->n_half[which]; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[first + r][k];
            const motion m = rotation_about(
                s->point[p->torsion[t][0]], s->point[p->torsion[t][1]],
                (float)s->own->direction * own->turn[r][p->turn[t][1]]);
            cumulative[2 * r + k + 1] = compose(&cumulative[2 * r + k], &m);
        }
}

/* Writes s->loose for draw `number` of a half. */
static void move_loose(redraw_workspace *s, int which, int number,
                       const motion *cumulative)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int split = 2 * s->n_half[0];
    for (int k = 0; k < s->n_loose; k++) {
        const int32_t *bead = p->bead[s->bead[s->first_loose + k]];
        float *to = s->loose[which] + 4 * ((ptrdiff_t)number * p->n_bead + k);
        to[0] = to[1] = to[2] = 0.0F;
        for (int m = bead[0]; m < bead[0] + bead[1]; m++) {
            const int at = s->segment[p->part[m]];
            float x[3];
            if ((at > split) != (which == 1))
                continue;
            apply_motion(&cumulative[at - (which == 1 ? split : 0)],
                         s->point[p->part[m]], x);
            for (int d = 0; d < 3; d++)
                to[d] += p->part_weight[m] * x[d];
        }
    }
}

/* Draws shape `number` of a half; 0 is the present shape. */
static void draw_half(redraw_workspace *s, int which, int number)
{
    const tsr_surrogate_spec *p = spec_of(s);
    half *own = &s->pool[which][number];
    motion cumulative[2 * HALF + 1];
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
        own->log_weight += log_p - log_proposal(cell, angle);
        for (int k = 0; k < 2; k++)
            own->turn[r][k] = number > 0 ? wrapped(angle[k] - had[k]) : 0.0F;
    }
    move_segments(s, which, own, cumulative);
    own->end = cumulative[2 * s->n_half[which]];
    move_loose(s, which, number, cumulative);
}

/* ---- positions of beads ---- */

static void set_bead_position(redraw_workspace *s, int k)
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
        s->x[d][k] = s->present_x[d][k] = x[d];
    s->mask[k] = 1.0F;
    s->radius[k] =
        b >= 0 ? p->radius[b] : -p->cutoff; /* padding is close to no bead */
}

static void set_form_factors(redraw_workspace *s)
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

static void arrange_beads(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    int n[3] = {0};
    for (int b = 0; b < p->n_bead; b++)
        n[s->role[b]]++;
    s->n_fixed = n[0], s->n_loose = n[1], s->n_far = n[2];
    s->first_loose = padded(n[0]);
    s->first_far = s->first_loose + padded(n[1]);
    s->n_all = s->first_far + padded(n[2]);
    int at[3] = {0, s->first_loose, s->first_far};
    for (int k = 0; k < s->n_all; k++)
        s->bead[k] = -1;
    for (int b = 0; b < p->n_bead; b++)
        s->bead[at[s->role[b]]++] = b;
    for (int k = 0; k < s->n_all; k++)
        set_bead_position(s, k);
    set_form_factors(s);
}

/* Sets the positions of loose and far beads for draws a and b of the halves.
 * far (below): the contribution of the second half to a bead, with the first
 * half in its present shape. */
static void place_candidate(redraw_workspace *s, int a, int b)
{
    const ptrdiff_t n_bead = spec_of(s)->n_bead;
    const motion *m = &s->pool[0][a].end;
    const motion both = compose(m, &s->pool[1][b].end);
    for (int k = 0; k < s->n_loose; k++) {
        const float *near = s->loose[0] + 4 * (a * n_bead + k),
                    *far = s->loose[1] + 4 * (b * n_bead + k);
        const float outer = s->outer_weight[s->bead[s->first_loose + k]];
        for (int d = 0; d < 3; d++)
            s->x[d][s->first_loose + k] =
                near[d] + m->turn[d][0] * far[0] + m->turn[d][1] * far[1] +
                m->turn[d][2] * far[2] + outer * m->shift[d];
    }
    for (int d = 0; d < 3; d++)
        for (int k = s->first_far; k < s->n_all; k++)
            s->x[d][k] = both.turn[d][0] * s->present_x[0][k] +
                         both.turn[d][1] * s->present_x[1][k] +
                         both.turn[d][2] * s->present_x[2][k] + both.shift[d];
}

/* Positions of the loose beads for draw `number` of a half: those of the first
 * half beside the fixed beads, those of the second half, moved back, beside the
 * present far beads. */
static void place_loose(redraw_workspace *s, int which, int number)
{
    const half *own = &s->pool[which][number];
    const float *loose =
        s->loose[which] + 4 * (ptrdiff_t)number * spec_of(s)->n_bead;
    for (int k = 0; k < s->n_loose; k++) {
        float x[3];
        memcpy(x, loose + 4 * (ptrdiff_t)k, sizeof x);
        if (which == 1)
            apply_inverse(&own->end, x, x);
        for (int d = 0; d < 3; d++)
            s->x[d][s->first_loose + k] = x[d];
    }
}

/* ---- overlaps ----
 *
 * Beads are compared by vectors first, and their bodies only if the beads are
 * close. */

#define SIGNS 0x8000000080000000U /* sign bits of two floats */

/* Energies are integers, so that the order of sums does not matter. */
static const float unit_per_nat = 65536.0F;
enum { IMPOSSIBLE = -1 };

/* Energy of two bodies at a squared distance r2, in units of 1 /
 * unit_per_nat. */
static int overlap(const tsr_surrogate_spec *p, int a, int b, float r2)
{
    const int32_t *u = p->body[a], *v = p->body[b];
    const float d = p->contact[u[0] * p->n_contact_type + v[0]];
    if (r2 >= d * d || (u[2] == v[2] && abs(u[1] - v[1]) < 3) ||
        (u[3] >= 0 && u[3] == v[3]))
        return 0;
    const float z = (d - sqrtf(r2)) * p->inverse_softness, nat = 0.5F * z * z;
    return nat > p->limit ? IMPOSSIBLE : (int)lrintf(nat * unit_per_nat);
}

/* Energy of the bodies of beads k and m in the arrangement. moved: motion of
 * the bodies of k (NULL: present position). */
static long pair_energy(const redraw_workspace *s, int k, int m,
                        const motion *moved)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const int32_t *a = p->bead[s->bead[k]], *b = p->bead[s->bead[m]];
    const float at_k[3] = {s->x[0][k], s->x[1][k], s->x[2][k]},
                at_m[3] = {s->x[0][m], s->x[1][m], s->x[2][m]};
    const float reach = p->cutoff + s->radius[m];
    long sum = 0;
    for (int i = 0; i < a[3]; i++) {
        float x[3];
        memcpy(x, a[3] > 1 ? s->point[p->part[a[0] + i]] : at_k, sizeof x);
        if (a[3] > 1 && moved != NULL)
            apply_motion(moved, x, x);
        if (squared_distance(x, at_m) >= reach * reach)
            continue;
        for (int j = 0; j < b[3]; j++) {
            const float r2 = squared_distance(
                x, b[3] > 1 ? s->point[p->part[b[0] + j]] : at_m);
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

/* Finds the beads among WIDE from `at` on that are close to bead k. Each
 * element of `neighbours` holds two floats, whose sign bit is set for a close
 * bead; compilers translate vector comparisons poorly. Returns 1 if at least
 * one bead is close. */
TSR_INLINE int find_neighbours(const redraw_workspace *s, int k, int at,
                               float reach, uint64_t neighbours[WIDE / 2])
{
    const lanes x = *(const lanes *)(s->x[0] + at) - s->x[0][k],
                y = *(const lanes *)(s->x[1] + at) - s->x[1][k],
                z = *(const lanes *)(s->x[2] + at) - s->x[2][k],
                d = *(const lanes *)(s->radius + at) + reach;
    const lanes beyond = x * x + y * y + z * z - d * d;
    uint64_t any = 0;
    memcpy(neighbours, &beyond, sizeof beyond);
    for (int l = 0; l < WIDE / 2; l++)
        any |= neighbours[l];
    return (any & SIGNS) != 0;
}

/* Adds the energy of bead k with beads from..to-1 to *sum. moved: motion of the
 * bodies of k or, with moves_others, of the bodies of the other beads. Returns
 * 0 if a pair is forbidden. */
TSR_CLONES
static int add_row_energy(const redraw_workspace *s, int k, int from, int to,
                          const motion *moved, int moves_others, long *sum)
{
    const float reach = spec_of(s)->cutoff + s->radius[k];
    uint64_t neighbours[WIDE / 2];
    for (int at = from; at < to; at += WIDE) {
        if (!find_neighbours(s, k, at, reach, neighbours))
            continue;
        for (int l = 0; l < WIDE && at + l < to; l++) {
            if ((neighbours[l / 2] >> (32 * (l % 2) + 31) & 1) == 0)
                continue;
            const long e = moves_others ? pair_energy(s, at + l, k, moved)
                                        : pair_energy(s, k, at + l, moved);
            if (e == IMPOSSIBLE)
                return 0;
            *sum += e;
        }
    }
    return 1;
}

/* Energy, nat, of all pairs whose distance a redraw changes, at the current
 * positions s->x. both: motion of the far beads. INFINITY: a pair is
 * forbidden. */
static float candidate_energy(const redraw_workspace *s, const motion *both)
{
    const int loose_end = s->first_loose + s->n_loose,
              far_end = s->first_far + s->n_far;
    long sum = 0;
    for (int k = s->first_loose; k < loose_end; k++)
        if (!add_row_energy(s, k, 0, s->n_fixed, NULL, 0, &sum) ||
            !add_row_energy(s, k, s->first_loose, k, NULL, 0, &sum) ||
            !add_row_energy(s, k, s->first_far, far_end, both, 1, &sum))
            return INFINITY;
    for (int k = s->first_far; k < far_end; k++)
        if (!add_row_energy(s, k, 0, s->n_fixed, both, 0, &sum))
            return INFINITY;
    return (float)sum / unit_per_nat;
}

/* Energy, nat, of the loose beads of one half with each other and with the
 * fixed beads (first half) or the far beads (second half). Beads with points in
 * both halves are left out. INFINITY: a pair is forbidden. */
static float half_energy(const redraw_workspace *s, int which)
{
    const int from = which == 0 ? 0 : s->first_far,
              to = from + (which == 0 ? s->n_fixed : s->n_far);
    const float whole_share = which == 0 ? 0.0F : 1.0F;
    long sum = 0;
    for (int k = s->first_loose; k < s->first_loose + s->n_loose; k++) {
        if (fabsf(s->outer_weight[s->bead[k]] - whole_share) > 1e-5F)
            continue;
        if (!add_row_energy(s, k, from, to, NULL, 0, &sum))
            return INFINITY;
        for (int m = s->first_loose; m < k; m++) {
            if (fabsf(s->outer_weight[s->bead[m]] - whole_share) > 1e-5F)
                continue;
            const long e = pair_energy(s, k, m, NULL);
            if (e == IMPOSSIBLE)
                return INFINITY;
            sum += e;
        }
    }
    return (float)sum / unit_per_nat;
}

/* ---- curves ----
 *
 * The form factor of a bead is F + c2 H. The curve of a candidate at any c2
 * follows from three sums over pairs, F F, F H and H H, each times sin(q r) /
 * (q r). On the uniform grid of q, sin(q r) is computed by a recurrence. A row
 * is one bead with vectors of other beads. */

/* 1 / sqrt by Newton's method, starting from the exponent bits. */
TSR_INLINE void inverse_root(const lanes *v, lanes *out)
{
    const bits first = 0x5f3759dfU - (*(const bits *)v >> 1);
    lanes y = *(const lanes *)&first;
    for (int k = 0; k < 3; k++)
        y *= 1.5F - 0.5F * *v * y * y;
    *out = y;
}

/* For bead k and WIDE beads from `at` on: is = sin(a) / (q1 r) times the mask,
 * twice = 2 cos(a), with a = q1 r below 0.9 pi, computed from half the
 * angle. */
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

/* Adds the pairs of bead k with n vectors of beads from `at` on to the row
 * sums. n is 2 where possible, so that the latency of one recurrence is hidden
 * behind the other. */
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

/* Adds the pairs of bead k with beads from..to-1, in whole vectors, to the lane
 * sums. */
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
    if (has_water) /* constant in the inner loops */
        add_row(s, n_q, k, from, to, dq, 1);
    else
        add_row(s, n_q, k, from, to, dq, 0);
}

/* Adds the pairs of fixed beads with loose and far beads, and of loose beads
 * with far beads. */
TSR_INLINE void add_others(const redraw_workspace *s, int n_q, float dq,
                           int has_water)
{
    for (int k = s->first_far; k < s->first_far + s->n_far; k++)
        add_row(s, n_q, k, 0, s->first_loose, dq, has_water);
    for (int k = s->first_loose; k < s->first_loose + s->n_loose; k++) {
        add_row(s, n_q, k, 0, s->first_loose, dq, has_water);
        if (s->n_far > 0)
            add_row(s, n_q, k, s->first_far, s->n_all, dq, has_water);
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

/* Adds the pairs of beads within from..to-1, each once. Pairs of one rigid unit
 * are left out, because they are in the constant part of the job. */
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

static void reduce_sums(const redraw_workspace *s, float *const out[3])
{
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < spec_of(s)->n_q; q++) {
            float sum = 0.0F;
            for (int l = 0; l < WIDE; l++)
                sum += s->lane_sum[k][q * WIDE + l];
            out[k][q] = q > 0 ? sum / (float)q : sum;
        }
}

/* Sums the pairs whose distance a redraw does not change, into s->constant. */
static void sum_constant(redraw_workspace *s)
{
    clear_sums(s);
    add_within(s, 0, s->n_fixed);
    add_within(s, s->first_far, s->first_far + s->n_far);
    reduce_sums(s, s->constant);
}

/* Sums the pairs at the current positions into s->curve, for the three powers
 * of c2. */
static void sum_curves(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    clear_sums(s);
    add_between(s, p->n_q, p->dq_inv_ang, p->has_c2);
    add_within(s, s->first_loose, s->first_loose + s->n_loose);
    reduce_sums(s, s->curve);
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < p->n_q; q++)
            s->curve[k][q] += s->constant[k][q];
}

/* ---- likelihood of curves ---- */

static float by_powers(const float *a, int n_q, int q, float c2)
{
    return a[q] + c2 * (a[n_q + q] + c2 * a[2 * n_q + q]);
}

/* ratio [n_q] out: numerator / denominator of the job at c2. */
static void ratio_at(const redraw_workspace *s, float c2, float *ratio)
{
    const tsr_surrogate_layout *l = &s->base.layout;
    const int n_q = spec_of(s)->n_q;
    for (int q = 0; q < n_q; q++)
        ratio[q] = by_powers(s->job + l->numerator, n_q, q, c2) /
                   by_powers(s->job + l->denominator, n_q, q, c2);
}

/* out [row_pad] = profile [n_q] times rows [n_q][row_pad]. */
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

/* Log likelihood of the profile s->curve at c2. ratio [n_q]: numerator /
 * denominator at c2. bare [n_q] (may be NULL) out: the profile without
 * numerator and denominator. */
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
    SHELLS = 4,      /* number of widths of shells */
    GRIDS = 3,       /* number of spacings of c2 */
    LINKER_SHARE = 3 /* ratio of the probabilities of a linker and of a tail */
};

/* Width of the narrowest shell, Angstrom. Each other shell is twice as wide as
 * the one before. */
static const float shell_linker_ang = 0.25F, shell_tail_ang = 4.0F;

static int is_finite(double x)
{
    return x - x == 0.0;
}

/* Centre of the bodies of beads from..to-1. */
static void find_middle(const redraw_workspace *s, int from, int to, float x[3])
{
    const tsr_surrogate_spec *p = spec_of(s);
    float n = 0.0F;
    x[0] = x[1] = x[2] = 0.0F;
    for (int k = from; k < to; k++)
        n += (float)p->bead[s->bead[k]][3];
    for (int k = from; k < to; k++)
        for (int d = 0; d < 3; d++)
            x[d] += (float)p->bead[s->bead[k]][3] / n * s->present_x[d][k];
}

static int n_draw(const redraw_workspace *s, int which)
{
    return s->n_half[which] > 0 ? POOL : 1;
}

/* Draws the pools of both halves. near, far [3] out: centres of the fixed and
 * of the far beads (without far beads the last point of the chain). Shells are
 * ranges of the distance between these centres. */
static void draw_pools(redraw_workspace *s, float near[3], float far[3])
{
    find_middle(s, 0, s->n_fixed, near);
    if (s->n_far > 0)
        find_middle(s, s->first_far, s->first_far + s->n_far, far);
    else
        memcpy(far, s->point[s->own->end - (s->own->direction > 0)],
               3 * sizeof *far);
    for (int w = 0; w < 2; w++)
        for (int k = 0; k < n_draw(s, w); k++) {
            half *own = &s->pool[w][k];
            draw_half(s, w, k);
            if (w == 0)
                apply_inverse(&own->end, near, own->middle);
            else
                apply_motion(&own->end, far, own->middle);
            place_loose(s, w, k);
            own->energy = half_energy(s, w);
        }
}

/* Lists the pairs of draws whose centres have a distance from low to high,
 * Angstrom, without forbidden halves. The present pair comes first in any
 * case. */
static void find_pairs(redraw_workspace *s, float low, float high)
{
    const float lowest = low > 0.0F ? low * low : 0.0F, largest = high * high;
    s->pair[0] = 0;
    s->n_pair = 1;
    for (int a = 0; a < n_draw(s, 0); a++) {
        const half *u = &s->pool[0][a];
        for (int b = 0; b < n_draw(s, 1) && u->energy < INFINITY; b++) {
            const half *v = &s->pool[1][b];
            const float r2 = squared_distance(u->middle, v->middle);
            if (r2 >= lowest && r2 < largest && v->energy < INFINITY &&
                a + b > 0)
                s->pair[s->n_pair++] = (uint32_t)a << 16 | (uint32_t)b;
        }
    }
}

static const half *draw_of(const redraw_workspace *s, int which, int k)
{
    const uint32_t pair = s->pair[k];
    return &s->pool[which][which == 0 ? pair >> 16 : pair & 0xffff];
}

/* ---- resampling ---- */

/* Draws n_drawn of n candidates independently, by weights exp(log_weight) and
 * with their multiplicity s->count, and adds the present candidate 0 once. The
 * new multiplicities are in s->count. Sorted uniform numbers are generated as
 * normalised sums of exponential ones. */
static void resample(redraw_workspace *s, int n, int n_drawn)
{
    double largest = -HUGE_VAL, sum = 0.0, step[N_FIRST + 1], total = 0.0;
    for (int k = 0; k < n; k++)
        largest = fmax(largest, (double)s->log_weight[k]);
    for (int k = 0; k < n; k++)
        s->cumulative[k] = sum +=
            s->count[k] * exp((double)s->log_weight[k] - largest);
    for (int i = 0; i <= n_drawn; i++)
        total += step[i] = -log1p(-gsl_rng_uniform(s->rng));
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    double at = 0.0;
    for (int i = 0, k = 0; i < n_drawn; i++) {
        at += step[i];
        while (k < n - 1 && s->cumulative[k] <= at / total * sum)
            k++;
        s->count[k]++;
    }
    s->count[0]++;
}

/* Moves candidate k to index n in the list of remaining candidates. */
static void move_candidate(redraw_workspace *s, int k, int n)
{
    s->pair[n] = s->pair[k];
    s->count[n] = s->count[k];
}

/* First stage: draws by torsions and the overlaps within halves, then computes
 * all overlaps. Returns the number of remaining candidates. */
static int first_stage(redraw_workspace *s)
{
    int n = 0;
    for (int k = 0; k < s->n_pair; k++) {
        const half *u = draw_of(s, 0, k), *v = draw_of(s, 1, k);
        s->log_weight[k] =
            u->log_weight - u->energy + v->log_weight - v->energy;
        s->count[k] = 1;
    }
    resample(s, s->n_pair, N_FIRST);
    for (int k = 0; k < s->n_pair; k++) {
        if (s->count[k] == 0)
            continue;
        const half *u = draw_of(s, 0, k), *v = draw_of(s, 1, k);
        const motion both = compose(&u->end, &v->end);
        place_candidate(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
        const float energy = candidate_energy(s, &both);
        if (!(energy < INFINITY))
            continue;
        move_candidate(s, k, n);
        s->energy[n] = energy;
        s->log_weight[n++] = u->energy + v->energy - energy;
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

/* Sets a grid of c2 that contains the present value at a random index, which is
 * returned. */
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

/* Second stage: draws by the other overlaps, then computes likelihoods at all
 * grid points of c2. Returns the number of remaining candidates. */
static int second_stage(redraw_workspace *s, int n_first)
{
    const int n_q = spec_of(s)->n_q;
    const double beta = (double)s->job[s->base.layout.head];
    int n = 0;
    resample(s, n_first, N_SECOND);
    for (int k = 0; k < n_first; k++) {
        if (s->count[k] == 0)
            continue;
        place_candidate(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
        sum_curves(s);
        move_candidate(s, k, n);
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

/* Draws a candidate k and a grid point of c2, returned as k * n_node + node. */
static int choose_candidate(redraw_workspace *s, int n)
{
    const int all = n * s->n_node;
    double largest = -HUGE_VAL, sum = 0.0;
    for (int k = 0; k < all; k++)
        largest = fmax(largest, s->weight[k]);
    for (int k = 0; k < all; k++) {
        const int count = s->count[k / s->n_node];
        const double p = count * exp(s->weight[k] - largest);
        s->cumulative[k] = sum += p >= 0.0 ? p : 0.0; /* NaN counts as 0 */
    }
    const double at = sum * gsl_rng_uniform(s->rng);
    int k = 0;
    while (k < all - 1 && s->cumulative[k] <= at)
        k++;
    return k;
}

/* ---- a job ---- */

/* Returns log g of a candidate without the factors that a redraw does not
 * change. bare [n_q] out: its profile without numerator and denominator. */
static double candidate_log_g(redraw_workspace *s, int k, int node, float *bare)
{
    const half *u = draw_of(s, 0, k), *v = draw_of(s, 1, k);
    place_candidate(s, (int)(s->pair[k] >> 16), (int)(s->pair[k] & 0xffff));
    sum_curves(s);
    log_lik_at(s, s->node[node], s->ratio + node * spec_of(s)->n_q, bare);
    return (double)u->log_density + (double)v->log_density -
           (double)s->energy[k] + s->weight[k * s->n_node + node];
}

static void write_turns(const redraw_workspace *s, int k, float *turned)
{
    const tsr_surrogate_spec *p = spec_of(s);
    for (int w = 0; w < 2; w++)
        for (int r = 0; r < s->n_half[w]; r++)
            for (int i = 0; i < 2; i++) {
                const int t = s->torsion[r + (w == 1 ? s->n_half[0] : 0)][i];
                turned[t] = draw_of(s, w, k)->turn[r][p->turn[t][1]];
            }
}

/* Redraws the selected residues. If no redraw is possible, the result stays as
 * run_job has set it: no turn, profiles NaN. */
static void redraw(redraw_workspace *s, float *result)
{
    const tsr_surrogate_spec *p = spec_of(s);
    float near[3], far[3], *bare = result + TSR_SURROGATE_HEAD;
    arrange_beads(s);
    if (s->n_fixed == 0 || s->n_loose == 0)
        return;
    sum_constant(s);
    draw_pools(s, near, far);
    const float width = (s->own->is_tail ? shell_tail_ang : shell_linker_ang) *
                        (float)(1 << gsl_rng_uniform_int(s->rng, SHELLS));
    const float low = sqrtf(squared_distance(near, far)) -
                      width * (float)gsl_rng_uniform(s->rng);
    find_pairs(s, low, low + width);
    const int n_first = first_stage(s);
    if (n_first == 0 || s->pair[0] != 0) /* g is 0 at the present shape */
        return;
    const int own = set_nodes(s), n = second_stage(s, n_first);
    if (!is_finite(s->weight[own]))
        return;
    const int chosen = choose_candidate(s, n), k = chosen / s->n_node;
    const double before = candidate_log_g(s, 0, own, bare);
    const double after =
        candidate_log_g(s, k, chosen % s->n_node, bare + p->n_q);
    result[1] = (float)(after - before);
    if (p->has_c2)
        result[2] = s->node[chosen % s->n_node];
    write_turns(s, k, bare + 2 * (ptrdiff_t)p->n_q);
}

static void read_job(redraw_workspace *s, int i)
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

static tsr_status run_job(redraw_workspace *s, int i, tsr_err *err)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const size_t size = (size_t)tsr_surrogate_result_size(p);
    const uint32_t *key = s->base.call.key[i];
    const int n_count = tsr_surrogate_n_count(p);
    int32_t(*count)[2] = s->base.call.count + (ptrdiff_t)i * n_count;
    float *result = s->base.call.result + (size_t)i * size;
    read_job(s, i);
    memset(result, 0, size * sizeof *result);
    for (int q = 0; q < 2 * p->n_q; q++)
        result[TSR_SURROGATE_HEAD + q] = NAN;
    result[2] = s->job[s->base.layout.head + 1];
    s->rng = tsr_rng_new((uint64_t)key[0] << 32 | key[1], 0);
    TSR_TRY(tsr_allocated(s->rng, err));
    const stretch *chosen = choose_stretch(s);
    const ptrdiff_t number = chosen - s->stretch;
    const int is_tried =
        gsl_rng_uniform(s->rng) < (double)s->job[s->base.layout.width + number];
    memset(count, 0, (size_t)n_count * sizeof *count);
    count[number][0] = is_tried;
    if (is_tried) {
        choose_part(s, chosen);
        redraw(s, result);
    }
    gsl_rng_free(s->rng);
    return TSR_OK;
}

tsr_status tsr_redrawer_run(void *redrawer, int n_job, tsr_err *err)
{
    for (int i = 0; i < n_job; i++)
        TSR_TRY(run_job(redrawer, i, err));
    return TSR_OK;
}

/* ---- the engine ---- */

void tsr_redrawer_free(void *redrawer)
{
    redraw_workspace *s = redrawer;
    if (s != NULL)
        tsr_pool_clear(&s->memory);
    free(s);
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

static void allocate(redraw_workspace *s)
{
    const tsr_surrogate_spec *p = spec_of(s);
    const size_t q = (size_t)p->n_q, n_bead = (size_t)p->n_bead,
                 n = (size_t)s->n_pad, pairs = (size_t)POOL * POOL + 1,
                 row = (size_t)s->row_pad;
    tsr_pool *m = &s->memory;
    tsr_pool_array(m, s->density, (size_t)p->n_density * TERMS * 2 * WIDE);
    tsr_pool_array(m, s->rows, (size_t)p->n_curve * q * row);
    tsr_pool_array(m, s->stretch, s->n_stretch);
    tsr_pool_array(m, s->role, n_bead);
    tsr_pool_array(m, s->segment, p->n_point);
    tsr_pool_array(m, s->outer_weight, n_bead);
    tsr_pool_array(m, s->bead, n);
    tsr_pool_array(m, s->radius, n);
    tsr_pool_array(m, s->mask, n);
    tsr_pool_array(m, s->profile, q);
    tsr_pool_array(m, s->product, row);
    tsr_pool_array(m, s->pair, pairs);
    tsr_pool_array(m, s->log_weight, pairs);
    tsr_pool_array(m, s->cumulative, pairs);
    tsr_pool_array(m, s->count, pairs);
    tsr_pool_array(m, s->energy, N_FIRST + 1);
    tsr_pool_array(m, s->ratio, NODES * q);
    tsr_pool_array(m, s->weight, (N_SECOND + 1) * NODES);
    for (int k = 0; k < 3; k++) {
        tsr_pool_array(m, s->x[k], n);
        tsr_pool_array(m, s->present_x[k], n);
        tsr_pool_array(m, s->lane_sum[k], q * WIDE);
        tsr_pool_array(m, s->constant[k], q);
        tsr_pool_array(m, s->curve[k], q);
    }
    for (int k = 0; k < 2; k++) {
        tsr_pool_array(m, s->form[k], q * n);
        tsr_pool_array(m, s->row_sum[k], q * WIDE);
        tsr_pool_array(m, s->pool[k], POOL);
        tsr_pool_array(m, s->loose[k], POOL * n_bead * 4);
    }
}

tsr_status tsr_redrawer_new(void *engine, int max_jobs, void **redrawer,
                            tsr_err *err)
{
    const tsr_surrogate_spec *p = ((tsr_surrogate_engine *)engine)->spec;
    redraw_workspace *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->base.engine = engine;
    s->base.layout = tsr_surrogate_layout_of(p);
    s->n_pad = padded(p->n_bead) + 3 * WIDE;
    s->row_pad = padded(s->base.layout.n_row);
    s->n_stretch = list_stretches(p, NULL);
    make_call(s, (size_t)max_jobs);
    allocate(s);
    const tsr_status status = tsr_pool_check(&s->memory, err);
    if (status != TSR_OK) {
        tsr_redrawer_free(s);
        return status;
    }
    list_stretches(p, s->stretch);
    set_densities(p, s->density);
    *redrawer = s;
    return TSR_OK;
}

int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec)
{
    return list_stretches(spec, NULL);
}

tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec)
{
    tsr_surrogate_engine *e = calloc(1, sizeof *e);
    if (e != NULL)
        e->spec = spec;
    return e;
}
