/* What the files of a redraw share: its room, which one thread uses. */
#ifndef TSR_SURROGATE_REDRAW_ROOM_H
#define TSR_SURROGATE_REDRAW_ROOM_H

#include "core/clones.h"
#include "core/random.h"
#include "surrogate/walker.h"

enum {
    TSR_REDRAW_WIDE = 16,   /* lanes of a vector */
    TSR_REDRAW_HALF = 10,   /* residues of half a stretch, at most */
    TSR_REDRAW_POOL = 256,  /* draws of each half */
    TSR_REDRAW_FIRST = 256, /* candidates whose overlaps are looked at */
    TSR_REDRAW_SECOND = 64, /* of these, those whose curves are */
    TSR_REDRAW_NODES = 8    /* of c2 */
};

typedef float tsr_lanes __attribute__((vector_size(64), aligned(4), may_alias));

/* x goes to turn x + shift, Angstrom. */
typedef struct {
    float turn[3][3], shift[3];
} tsr_redraw_motion;

static inline void tsr_redraw_apply(const tsr_redraw_motion *m, const float *x,
                                    float *to)
{
    const float a = x[0], b = x[1], c = x[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[i][0] * a + m->turn[i][1] * b + m->turn[i][2] * c +
                m->shift[i];
}

/* The way back. */
static inline void tsr_redraw_undo(const tsr_redraw_motion *m, const float *x,
                                   float *to)
{
    const float a = x[0] - m->shift[0], b = x[1] - m->shift[1],
                c = x[2] - m->shift[2];
    for (int i = 0; i < 3; i++)
        to[i] = m->turn[0][i] * a + m->turn[1][i] * b + m->turn[2][i] * c;
}

/* Of a distance. */
static inline float tsr_redraw_square(const float *a, const float *b)
{
    const float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z;
}

/* First b, then a. */
tsr_redraw_motion tsr_redraw_after(const tsr_redraw_motion *a,
                                   const tsr_redraw_motion *b);

/* Residues that follow each other, both torsions of which walk: torsions
 * first..first+2*n_residue-1 of the spec. by: 1, what comes after moves, -1,
 * what comes before, up to the chain's last point, or from its first one, at
 * `end`. */
typedef struct {
    int first, n_residue, by, end, is_tail;
} tsr_redraw_stretch;

/* One draw of half a stretch. The first half begins where nothing moves, the
 * second as if the first had not moved. */
typedef struct {
    tsr_redraw_motion end; /* of what lies beyond */
    float log_density;     /* of torsions, */
    float log_weight;      /* and that over how often they are drawn */
    float energy;          /* nat, of its own overlaps; INFINITY: impossible */
    float middle[3];       /* of what stays, or of what moves as one, as seen
                              from between the halves */
    float turn[TSR_REDRAW_HALF][2]; /* of phi, psi from the present ones */
} tsr_redraw_half;

/* Beads are arranged: those that stay, those that are loose, those that move as
 * one, each padded to whole vectors with beads that do not scatter. */
typedef struct {
    tsr_surrogate_walker base;
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
    tsr_redraw_stretch *stretch;
    const tsr_redraw_stretch *own;
    int n_residue, n_half[2];
    int torsion[2 * TSR_REDRAW_HALF][2]; /* outwards from what stays */
    int *segment; /* [n_point] turns that carry it, 0 to 2 n_residue */
    float *share; /* [n_bead] of it, beyond the middle of the stretch */
    tsr_redraw_half *pool[2]; /* [POOL], the present one first */
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
    float node[TSR_REDRAW_NODES];
    float *ratio;   /* [NODES][n_q] */
    double *weight; /* [SECOND + 1][NODES] log, of curves and of c2 */
} tsr_redraw_room;

static inline const tsr_surrogate_spec *
tsr_redraw_spec(const tsr_redraw_room *room)
{
    return room->base.engine->spec;
}

static inline int tsr_redraw_padded(int n)
{
    return (n + TSR_REDRAW_WIDE - 1) / TSR_REDRAW_WIDE * TSR_REDRAW_WIDE;
}

/* ---- redraw_half.c ---- */

/* Into out (NULL: they are only counted). */
int tsr_redraw_list(const tsr_surrogate_spec *spec, tsr_redraw_stretch *out);

/* Terms of densities, as vectors take them: [n_density][9][2 WIDE]. */
void tsr_redraw_set_densities(const tsr_surrogate_spec *spec, float *out);

/* Takes up to 2 HALF residues of a linker, fewer of a tail: torsions, segments,
 * and what each bead does, what [n_bead]: 0 stays, 1 is loose, 2 moves as one.
 */
void tsr_redraw_choose(tsr_redraw_room *room, const tsr_redraw_stretch *stretch,
                       int *what);

/* Draw `number` of a half; 0 is the present shape. */
void tsr_redraw_draw(tsr_redraw_room *room, int which, int number);

/* ---- redraw_curve.c ---- */

void tsr_redraw_arrange(tsr_redraw_room *room, const int *what);

/* Beads where draws a and b take them; and those of one half alone, the second
 * as seen from what moves as one. */
void tsr_redraw_place(tsr_redraw_room *room, int a, int b);
void tsr_redraw_place_half(tsr_redraw_room *room, int which, int number);

/* Pairs whose distance a redraw keeps, into rest. */
void tsr_redraw_sum_rest(tsr_redraw_room *room);

/* Partial curves of all pairs, with beads where they are placed. */
void tsr_redraw_sum(tsr_redraw_room *room);

/* What `top` over `bottom` is at c2: ratio [n_q]. */
void tsr_redraw_ratio(const tsr_redraw_room *room, float c2, float *ratio);

/* Of the curves that were summed: the bare profile at c2 into bare [n_q] (NULL:
 * not wanted), and log L. */
double tsr_redraw_log_lik(tsr_redraw_room *room, float c2, const float *ratio,
                          float *bare);

/* ---- redraw_touch.c ---- */

/* Overlaps, nat, of distances that a redraw changes, where beads are placed and
 * `both` takes what moves as one; of one half alone, with that where it is.
 * INFINITY: impossible. */
float tsr_redraw_energy(const tsr_redraw_room *room,
                        const tsr_redraw_motion *both);
float tsr_redraw_half_energy(const tsr_redraw_room *room, int which);

#endif
