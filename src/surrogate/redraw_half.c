/* Stretches and their halves: which there are, and draws of a half with the
 * motion that it gives what lies beyond.
 *
 * Torsions are numbered outwards from what stays. Turning all of them by d is
 * the motion R_1 R_2 ... R_n, each about the axis as it lies now: the outermost
 * first. Points between torsions k and k + 1, segment k, make R_1 ... R_k. Both
 * torsions of a residue are drawn from cells of its density, as walks do. */
#include "surrogate/redraw_room.h"

#include <math.h>

#define PI 3.14159265358979323846F

enum {
    WIDE = TSR_REDRAW_WIDE,
    CELLS = TSR_SURROGATE_CELLS,
    N_CELL = CELLS * CELLS,
    TERMS = 9,
    ATOMS = 6, /* points of a flexible residue */
    /* Residues that are drawn together: of a tail up to so many, of a linker
     * all there are, or, where halves have no room for them, any number from
     * LEAST on. */
    LONGEST_TAIL = 12,
    LONGEST = 2 * TSR_REDRAW_HALF,
    LEAST = 6
};

_Static_assert((int)LONGEST_TAIL <= (int)LONGEST, "halves hold a tail");

typedef uint32_t bits __attribute__((vector_size(64), aligned(4), may_alias));

/* ---- which stretches there are ---- */

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

static int list_linkers(const tsr_surrogate_spec *p, tsr_redraw_stretch *out)
{
    int n = 0;
    for (int l = 0; l < p->n_linker; l++) {
        const int32_t *own = p->linker[l];
        int is_whole = own[1] % 2 == 0;
        for (int k = own[0]; k < own[0] + own[1] && is_whole; k += 2)
            is_whole = is_residue(p, k);
        if (is_whole && out != NULL)
            out[n] = (tsr_redraw_stretch){.first = own[0],
                                          .n_residue = own[1] / 2,
                                          .by = own[2] > 0 ? 1 : -1,
                                          .end = own[3]};
        n += is_whole;
    }
    return n;
}

int tsr_redraw_list(const tsr_surrogate_spec *spec, tsr_redraw_stretch *out)
{
    const tsr_surrogate_spec *p = spec;
    int n = list_linkers(p, out), t = 0;
    while (t < p->n_torsion) {
        int m = 0;
        while (goes_with(p, t, t + 2 * m) &&
               (m == 0 ||
                p->edge[t + 2 * m][0] - p->edge[t + 2 * m - 2][0] == ATOMS))
            m++;
        if (m > 0 && out != NULL)
            out[n] = (tsr_redraw_stretch){.first = t,
                                          .n_residue = m,
                                          .by = side_of(p, t),
                                          .end = end_of(p, t),
                                          .is_tail = 1};
        n += m > 0;
        t += m > 0 ? 2 * m : 1;
    }
    return n;
}

/* ---- a stretch ---- */

static void set_segments(tsr_redraw_room *s)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const tsr_redraw_stretch *own = s->own;
    for (int i = 0; i < p->n_point; i++)
        s->segment[i] = 0;
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[r][k];
            const int from = own->by > 0 ? p->edge[t][1] : own->end,
                      to = own->by > 0 ? own->end : p->edge[t][0];
            for (int i = from; i < to; i++)
                s->segment[i] = 2 * r + k + 1;
        }
}

static void set_beads(const tsr_redraw_room *s, int *what)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const int last = 2 * s->n_residue;
    for (int b = 0; b < p->n_bead; b++) {
        const int32_t *own = p->bead[b];
        int least = last, most = 0;
        s->share[b] = 0.0F;
        for (int k = own[0]; k < own[0] + own[1]; k++) {
            const int of = s->segment[p->part[k]];
            least = of < least ? of : least;
            most = of > most ? of : most;
            s->share[b] += of > 2 * s->n_half[0] ? p->share[k] : 0.0F;
        }
        what[b] = most == 0 ? 0 : least == last ? 2 : 1;
    }
}

void tsr_redraw_choose(tsr_redraw_room *room, const tsr_redraw_stretch *stretch,
                       int *what)
{
    tsr_redraw_room *s = room;
    const int all = stretch->n_residue;
    const int longest = stretch->is_tail ? LONGEST_TAIL : LONGEST;
    s->own = stretch;
    s->n_residue = all < longest ? all : longest;
    if (!stretch->is_tail && all > LONGEST)
        s->n_residue =
            LEAST + (int)gsl_rng_uniform_int(s->rng, LONGEST - LEAST + 1);
    const int skip = (int)gsl_rng_uniform_int(
        s->rng, (unsigned long)(all - s->n_residue + 1));
    const int first =
        stretch->first + (stretch->by > 0 ? 2 * skip : 2 * (all - skip) - 1);
    s->n_half[0] = (s->n_residue + 1) / 2;
    s->n_half[1] = s->n_residue - s->n_half[0];
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < 2; k++)
            s->torsion[r][k] = first + (2 * r + k) * stretch->by;
    set_segments(s);
    set_beads(s, what);
}

/* ---- torsions ---- */

void tsr_redraw_set_densities(const tsr_surrogate_spec *spec, float *out)
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
TSR_INLINE void exponentiate(tsr_lanes *x)
{
    const tsr_lanes least = *x - *x - 80.0F;
    const bits is_less = (bits)(*x < least);
    const bits held =
        (*(const bits *)x & ~is_less) | (*(const bits *)&least & is_less);
    const tsr_lanes v = *(const tsr_lanes *)&held;
    const tsr_lanes two = v * 1.44269504F + 12582912.0F, n = two - 12582912.0F;
    const tsr_lanes y = (v - n * 0.693359375F) + n * 2.12194440e-4F;
    const tsr_lanes e =
        1.0F +
        y * (1.0F +
             y * (0.5F +
                  y * (1.66666655e-1F +
                       y * (4.16657962e-2F +
                            y * (8.33345212e-3F +
                                 y * (1.39819994e-3F + y * 1.98756915e-4F))))));
    const bits scale = (*(const bits *)&two + 127U) << 23;
    *x = e * *(const tsr_lanes *)&scale;
}

/* The parts' sum, from the waves of both angles. */
TSR_CLONES
static float density_at(const float *term, const float wave[4])
{
    const float c = wave[0], s = wave[1], e = wave[2], f = wave[3];
    const float by[TERMS] = {1.0F, c, s, e, f, c * e, c * f, s * e, s * f};
    tsr_lanes sum = {0.0F};
    for (int half = 0; half < 2; half++) {
        tsr_lanes x = {0.0F};
        for (int k = 0; k < TERMS; k++)
            x += by[k] * *(const tsr_lanes *)(term + (2 * k + half) * WIDE);
        exponentiate(&x);
        sum += x;
    }
    float all = 0.0F;
    for (int l = 0; l < WIDE; l++)
        all += sum[l];
    return all;
}

static float log_density(const tsr_redraw_room *s, int density,
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

tsr_redraw_motion tsr_redraw_after(const tsr_redraw_motion *a,
                                   const tsr_redraw_motion *b)
{
    tsr_redraw_motion m;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m.turn[i][j] = a->turn[i][0] * b->turn[0][j] +
                           a->turn[i][1] * b->turn[1][j] +
                           a->turn[i][2] * b->turn[2][j];
    tsr_redraw_apply(a, b->shift, m.shift);
    return m;
}

static tsr_redraw_motion about(const float *from, const float *to,
                               float angle_rad)
{
    float u[3], n = 0.0F, still[3];
    for (int d = 0; d < 3; d++)
        u[d] = to[d] - from[d], n += u[d] * u[d];
    n = 1.0F / sqrtf(n);
    for (int d = 0; d < 3; d++)
        u[d] *= n;
    const float c = cosf(angle_rad), s = sinf(angle_rad), v = 1.0F - c;
    tsr_redraw_motion m = {{{c + u[0] * u[0] * v, u[0] * u[1] * v - u[2] * s,
                             u[0] * u[2] * v + u[1] * s},
                            {u[1] * u[0] * v + u[2] * s, c + u[1] * u[1] * v,
                             u[1] * u[2] * v - u[0] * s},
                            {u[2] * u[0] * v - u[1] * s,
                             u[2] * u[1] * v + u[0] * s, c + u[2] * u[2] * v}},
                           {0.0F, 0.0F, 0.0F}};
    tsr_redraw_apply(&m, from, still);
    for (int d = 0; d < 3; d++)
        m.shift[d] = from[d] - still[d];
    return m;
}

/* Motions of a half's segments, upto [2 n_half + 1], the first of which is that
 * of nothing. */
static void move_segments(const tsr_redraw_room *s, int which,
                          const tsr_redraw_half *own, tsr_redraw_motion *upto)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const int first = which == 0 ? 0 : s->n_half[0];
    upto[0] = (tsr_redraw_motion){
        {{1.0F, 0.0F, 0.0F}, {0.0F, 1.0F, 0.0F}, {0.0F, 0.0F, 1.0F}},
        {0.0F, 0.0F, 0.0F}};
    for (int r = 0; r < s->n_half[which]; r++)
        for (int k = 0; k < 2; k++) {
            const int t = s->torsion[first + r][k];
            const tsr_redraw_motion m =
                about(s->point[p->torsion[t][0]], s->point[p->torsion[t][1]],
                      (float)s->own->by * own->turn[r][p->turn[t][1]]);
            upto[2 * r + k + 1] = tsr_redraw_after(&upto[2 * r + k], &m);
        }
}

static void move_loose(tsr_redraw_room *s, int which, int number,
                       const tsr_redraw_motion *upto)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
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
            tsr_redraw_apply(&upto[of - (which == 1 ? split : 0)],
                             s->point[p->part[m]], x);
            for (int d = 0; d < 3; d++)
                to[d] += p->share[m] * x[d];
        }
    }
}

void tsr_redraw_draw(tsr_redraw_room *room, int which, int number)
{
    tsr_redraw_room *s = room;
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    tsr_redraw_half *own = &s->pool[which][number];
    tsr_redraw_motion upto[2 * TSR_REDRAW_HALF + 1];
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
