/* Inside the engine by plane waves. */
#ifndef TSR_GPU_WAVE_ENGINE_H
#define TSR_GPU_WAVE_ENGINE_H

#include "gpu/engine_plane_wave.h"
#include "gpu/opencl.h"

/* q of a band, which is that of amplitude tables; directions of a work-group on
 * a GPU, and lanes of a work-item on a processor; entries that are worth a part
 * of their own, and parts of a proposal at most, on a GPU. */
enum {
    TSR_WAVE_BAND = 8,
    TSR_WAVE_ITEMS = 64,
    TSR_WAVE_LANES = 16,
    TSR_WAVE_PART = 128,
    TSR_WAVE_MOST_PARTS = 8
};

/* Entries of four numbers: a loose body has one, a unit POSE of them. */
enum { TSR_WAVE_POSE = 4 };

/* Sets of directions, of which a system has the smallest that its largest
 * distance allows for: the first for d_bound_ang, every other for
 * TSR_WAVE_SHRINK of the one before. */
enum { TSR_WAVE_LEVELS = 6 };
#define TSR_WAVE_SHRINK 0.88

typedef struct {
    int first, n; /* blocks */
    double d_ang;
} tsr_wave_level;

/* A rigid unit with a table. Three of its bodies far apart tell its pose. */
typedef struct {
    int given;          /* its number in the spec */
    int n, body[3];     /* how many bodies it has */
    double frame[3][3]; /* rows: axes by these bodies in the table's place */
    double centre[3];   /* from body[0] to the table's centre, on these axes */
    double middle[3];   /* the table's centre in the table's place */
    double radius;      /* nothing of it is farther from the table's centre */
} tsr_wave_unit;

typedef struct {
    int first, count;
} tsr_wave_range;

typedef struct {
    double (*now)[3], (*then)[3]; /* [n_body] accepted, proposed */
    double (*rim)[3];             /* [n_rim] scratch */
    double origin[3], proposed_origin[3];
    double centre[3], reach; /* no body is farther from the centre */
    double proposed_centre[3], proposed_reach;
    double span, proposed_span; /* nothing of it is farther apart */
    int level, proposed_level;  /* of directions */
    int n_range;
    tsr_wave_range *range;       /* [n_body] of the proposal */
    int n_loose, n_unit;         /* that moved: loose bodies, units */
    int *moved;                  /* [engine's n_unit] bodies of each that did */
    double *accepted, *proposed; /* [n_pair][n_q] */
    int slot, age;
    int is_full;  /* the proposal sums all waves */
    int is_same;  /* it changes no distance */
    int is_stale; /* the molecule turned as a whole since its last sum */
    int is_set, is_pending;
} tsr_wave_system;

typedef struct {
    tsr_engine base;
    const tsr_device *device;
    double d_bound_ang;
    double inside_ang; /* what is inside of units is not farther from their
                          bodies */
    int n_rim, *rim;   /* [n_rim] loose bodies, and those of units that are
                          outermost: no two bodies are farther apart than these,
                          but for */
    double rim_ang;    /* this, twice */
    int items, lanes;
    tsr_wave_level level[TSR_WAVE_LEVELS];
    int n_block;         /* of the first level, which has most */
    int *band;           /* [all blocks] */
    size_t row;          /* numbers of all amplitudes of a system */
    double *forward;     /* [n_pair] I(0) */
    int *unit;           /* [n_body] of its unit, -1: loose */
    unsigned char *part; /* [n_body] tsr_wave_find_parts */
    int *run_end;        /* [n_body] so far bodies after it are of the same */
    int n_loose, n_unit;
    int unit_cost; /* loose bodies that a table is as dear as */
    tsr_wave_unit *units;
    double (*rigid)[3]; /* [n_body] where tables are from */
    tsr_program program;
    cl_mem direction, bands, levels, factor, amplitude;
    cl_mem table, places, kernel; /* of units: values, where they are, kernel */
    tsr_wave_system *system;
} tsr_wave_engine;

static inline size_t tsr_wave_n_profile(const tsr_wave_engine *e)
{
    return (size_t)e->base.n_pair * (size_t)e->base.n_q;
}

/* ---- wave_system.c ---- */

tsr_status tsr_wave_system_init(const tsr_wave_engine *e, tsr_wave_system *s,
                                tsr_err *err);
void tsr_wave_system_clear(tsr_wave_system *s);

/* Takes a proposal over, which was checked; the system is pending then. Errors
 * leave it as it was: TSR_E_RANGE, TSR_E_INTERNAL (a part of a unit moved, or
 * it is another one than the table's). */
tsr_status tsr_wave_propose(const tsr_wave_engine *e,
                            const tsr_body_proposal *proposal, tsr_err *err);
void tsr_wave_accept(tsr_batch *batch, int system);
void tsr_wave_reject(tsr_batch *batch, int system);

/* Where the loose bodies of a proposal are and no longer are; the poses of its
 * units. to [.][4] out; returns how many entries. */
int tsr_wave_put_loose(const tsr_wave_engine *e, const tsr_wave_system *s,
                       cl_uint (*to)[4]);
int tsr_wave_put_units(const tsr_wave_engine *e, const tsr_wave_system *s,
                       cl_uint (*to)[4]);

/* ---- wave_units.c ---- */

/* The frame of a unit by its three bodies; 0 where they are on one line. */
int tsr_wave_find_frame(const tsr_wave_unit *unit, const double (*xyz)[3],
                        double frame[3][3]);

/* Numbers the units of the spec that are worth a table; the bodies of others
 * are loose. Those that have particles inside all have one. Errors:
 * TSR_E_NOMEM, TSR_E_INTERNAL (such a one whose bodies are on a line). */
tsr_status tsr_wave_find_units(tsr_wave_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err);

/* Atoms have no water, and water is the last component: part says which of its
 * components a body has (PART_... of the kernels). Errors: TSR_E_NOMEM. */
tsr_status tsr_wave_find_parts(tsr_wave_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err);

/* ---- wave_batch.c ---- */

/* Rows that the sums of one proposal take at most. */
size_t tsr_wave_most_parts(const tsr_wave_engine *e);

/* Launches of the widest grid that there can be, without work. */
tsr_status tsr_wave_open_widest(tsr_wave_engine *e, tsr_err *err);

tsr_status tsr_wave_batch_new(tsr_engine *engine, int max_proposal,
                              tsr_batch **out, tsr_err *err);
void tsr_wave_batch_free(tsr_batch *batch);
tsr_status tsr_wave_set(tsr_batch *batch, int system, const double (*xyz)[3],
                        double *profile, tsr_err *err);
tsr_status tsr_wave_submit(tsr_batch *batch, int n,
                           const tsr_body_proposal *proposal, tsr_err *err);
tsr_status tsr_wave_wait(tsr_batch *batch, double *profile, tsr_err *err);

#endif
