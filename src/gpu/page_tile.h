/* Inside the page-tile engine. */
#ifndef TSR_GPU_PAGE_TILE_H
#define TSR_GPU_PAGE_TILE_H

#include "gpu/engine_page_tile.h"
#include "gpu/opencl.h"
#include "gpu/plan.h"

/* Where the bodies are, for the check of the largest distance: none is farther
 * from `centre` than its block's reach, none of all farther than `most`. They
 * are bounds; the exact check makes them tight again. Squares, Angstrom^2, and
 * relative to the system's origin. */
typedef struct {
    double centre[3], most2;
    double *reach2; /* [n_block] */
} tsr_tile_extent;

typedef struct {
    double radius, xyz[3]; /* from the centre */
    int block;
} tsr_far_body;

/* A system as the host knows it. Blocks and tiles have two slots, one of them
 * accepted; a proposal writes the other. */
typedef struct {
    uint32_t *entry;  /* [n_block] block | accepted slot << 16 */
    uint32_t *select; /* [n_block][words] accepted slots of the tiles */
    void *position;   /* [2][n_block][3][tile] float or double */
    tsr_tile_extent extent, proposed_extent;
    tsr_far_body *far; /* [n_body] scratch */
    double origin[3];  /* Angstrom; positions are relative to it */
    double proposed_origin[3];
    int64_t *accepted, *proposed; /* [shape.row] fixed point */
    tsr_tile_dirt dirt;           /* of the proposal */
    int *order; /* [n_block] touched blocks; first n_full with full sums,
                   then those whose tiles with others take differences */
    int n_full;
    uint8_t *age;   /* [n_block] differences since its last full sums */
    int n_moved;    /* bodies of the proposal */
    long n_since;   /* bodies moved since `centre` was found */
    int is_centred; /* the proposal has a centre of its own, and all reaches */
    int is_tight;   /* bounds did not do, lately */
    int is_set, is_pending;
} tsr_tile_system;

typedef struct {
    tsr_engine base;
    const tsr_device *device;
    tsr_page_tile_options options; /* resolved: no AUTO left */
    tsr_tile_shape shape;
    size_t real_size; /* 4 or 8 */
    double d_bound_ang;
    double fixed_scale; /* a power of two: fixed = value * scale */
    double *constant;   /* [n_pair][n_q] self terms; all of I at q = 0 */
    int is_atomic;      /* runs add to one out row a proposal */
    int split;          /* work-groups a run */
    int is_pipelined;   /* a submit may go in several launches */
    tsr_program program;
    char build_options[320];
    cl_mem position; /* [n_system][2][n_block][3][tile] */
    cl_mem cache;    /* [n_system][n_tile][2][shape.row] */
    cl_mem form_factor;
    tsr_tile_system *system; /* [n_system] */
} tsr_page_tile_engine;

enum { TSR_EXCHANGE_UNIT = 16 }; /* bytes; offsets and sizes count these */

enum { TSR_MAX_LAUNCHES = 64 };

typedef struct {
    tsr_batch base;
    tsr_page_tile_transfer transfer;
    int max_proposal;
    int n, n_launched; /* proposals in flight, and how many were launched */
    int *system;       /* [max_proposal] in flight */
    size_t *tiles;     /* [max_proposal] full sums looked at */
    size_t *changes;   /* [max_proposal] differences */
    size_t *meta_at;   /* [max_proposal] blocks, in units */
    size_t *staged_at; /* [max_proposal] their positions */
    int *out_first;    /* [max_proposal] first row of results */
    int *out_count;    /* [max_proposal] rows of results */
    cl_command_queue queue;
    cl_command_queue loader; /* pipelined: for input beside kernels, or NULL */
    cl_event loaded;         /* the next kernel waits for it; or NULL */
    cl_kernel kernel;
    cl_mem exchange;      /* what the kernel sees */
    cl_mem pinned;        /* COPY: the host's side; else NULL */
    char *host;           /* the host's side; UNMAPPED: NULL while unmapped */
    char *mapped_results; /* UNMAPPED: as results, while mapped */
    const char *results;  /* rows of results */
    cl_event done;        /* NULL: nothing in flight */
    int n_kernel_done;    /* with profiling: events of the last launches */
    cl_event kernel_done[TSR_MAX_LAUNCHES];
    size_t size;       /* of the exchange buffer, units */
    size_t sent, used; /* of it, by what was launched and added */
    size_t out_rows;   /* rows of results in flight, at its start */
} tsr_page_tile_batch;

/* ---- engine_page_tile.c ---- */

/* Fills what the options (NULL: all) leave to the engine, from the kind of
 * device and the number of bodies (0: many). Errors: TSR_E_INTERNAL
 * (impossible), TSR_E_DEVICE (no double), those of tsr_tuning_find. */
tsr_status tsr_page_tile_resolve(const tsr_device_info *info, int n_body,
                                 const tsr_page_tile_options *given,
                                 tsr_page_tile_options *out, tsr_err *err);

/* ---- page_tile_list.c ---- */

size_t tsr_exchange_out_units(const tsr_page_tile_engine *e, size_t rows);
/* Units of the exchange buffer of a batch. */
size_t tsr_exchange_size_of(const tsr_page_tile_engine *e, int max_proposal);

/* Where the parts of a launch lie in the exchange buffer, in units: its
 * proposals' blocks from `begin`, then runs. */
typedef struct {
    int first; /* proposal of the batch */
    size_t begin, run_at, end;
    size_t n_run;
    size_t chunk, change_chunk; /* full sums a run, differences a run */
    size_t rows; /* of results; with atomics, of the whole batch */
} tsr_launch_layout;

/* Before the first of n proposals; then a pending system, whose blocks are
 * written if the buffer is open. */
void tsr_launch_begin(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                      int n);
void tsr_launch_add(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                    int system);

/* Lays out what proposals that were added and not launched need, and writes it:
 * runs, which rows of results are whose, and with is_late their blocks. */
tsr_launch_layout tsr_launch_lay_out(const tsr_page_tile_engine *e,
                                     const tsr_page_tile_batch *b);
/* Of as many runs as any launch of the batch can have, none with work. */
tsr_launch_layout tsr_launch_lay_out_widest(const tsr_page_tile_engine *e,
                                            const tsr_page_tile_batch *b);
void tsr_launch_fill_widest(tsr_page_tile_batch *b, const tsr_launch_layout *l);
void tsr_launch_fill(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                     const tsr_launch_layout *l, int is_late);

/* ---- page_tile_launch.c ---- */

/* The exchange buffer; the batch has queue, kernel, size. Tries out that host
 * and device see the same: TSR_E_DEVICE. The batch is cleared by the caller,
 * also after an error. */
tsr_status tsr_exchange_make(tsr_page_tile_batch *b, tsr_err *err);
void tsr_exchange_free(tsr_page_tile_batch *b);
const char *tsr_transfer_name(tsr_page_tile_transfer transfer);

/* Enqueues the proposals that were not launched yet; the last launch of a
 * submit asks for the results. After an error nothing is in flight. */
tsr_status tsr_launch(tsr_page_tile_batch *b, int is_fresh, int is_last,
                      tsr_err *err);
/* Waits, and adds the results up in the systems. */
/* Launches that and waits. */
tsr_status tsr_launch_widest(tsr_page_tile_batch *b, tsr_err *err);
tsr_status tsr_launch_finish(tsr_page_tile_batch *b, tsr_err *err);
/* Waits for launches whose results nobody wants. */
void tsr_launch_cancel(tsr_page_tile_batch *b);

/* ---- page_tile_system.c ---- */
tsr_status tsr_tile_system_init(const tsr_page_tile_engine *e,
                                tsr_tile_system *s, tsr_err *err);
void tsr_tile_system_clear(tsr_tile_system *s);

/* Tiles that a launch looks at for the pending proposal: pairs with a touched
 * block, or none where all are clean. Full sums; *changes: differences. */
size_t tsr_tile_system_tiles(const tsr_page_tile_engine *e,
                             const tsr_tile_system *s, size_t *changes);

/* Accepted slot of a block, and a block's coordinates in a slot: [3][tile]. */
static inline int tsr_tile_slot(const tsr_tile_system *s, int block)
{
    return (int)(s->entry[block] >> 16 & 1);
}
static inline char *tsr_tile_block(const tsr_page_tile_engine *e,
                                   const tsr_tile_system *s, int slot,
                                   int block)
{
    size_t at = (size_t)(slot * e->shape.n_block + block);
    return (char *)s->position + at * 3 * (size_t)e->shape.tile * e->real_size;
}

/* Checks a proposal and writes its positions and dirty tiles into the free
 * slots; range NULL: all bodies from `all`, with a new origin. Afterwards the
 * system is pending. An error leaves it as it was. */
tsr_status tsr_tile_system_propose(const tsr_page_tile_engine *e, int system,
                                   int n_range, const tsr_body_range *range,
                                   const double (*all)[3], tsr_err *err);
void tsr_tile_system_accept(const tsr_page_tile_engine *e, int system);
void tsr_tile_system_reject(const tsr_page_tile_engine *e, int system);

/* Fixed point to electrons squared; profile [n_pair][n_q] out. */
void tsr_tile_system_profile(const tsr_page_tile_engine *e,
                             const int64_t *fixed, double *profile);

/* ---- page_tile_batch.c: extents ---- */

/* Whether the pending proposal stays within the distance that the grid allows
 * for, exactly: TSR_E_RANGE where one pair does not. The proposed extent holds
 * bounds. Cost: O(1) where bounds decide, else O(touched blocks * blocks) and
 * the pairs in doubt. */
tsr_status tsr_tile_extent_check(const tsr_page_tile_engine *e, int system,
                                 tsr_err *err);
void tsr_tile_extent_accept(const tsr_page_tile_engine *e, tsr_tile_system *s);

/* ---- page_tile_batch.c ---- */
tsr_status tsr_page_tile_batch_new(tsr_engine *engine, int max_proposal,
                                   tsr_batch **out, tsr_err *err);
void tsr_page_tile_batch_free(tsr_batch *batch);
tsr_status tsr_page_tile_set(tsr_batch *batch, int system,
                             const double (*xyz)[3], double *profile,
                             tsr_err *err);
tsr_status tsr_page_tile_submit(tsr_batch *batch, int n,
                                const tsr_body_proposal *proposal,
                                tsr_err *err);
tsr_status tsr_page_tile_wait(tsr_batch *batch, double *profile, tsr_err *err);

#endif
