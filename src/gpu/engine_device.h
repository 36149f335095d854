/* The two engines of an OpenCL device (docs/design.md, section 3), the choice
 * between them, and a self-test that a device must pass before it is used.
 *
 * Tiles (engine_page_tile.c). Bodies form blocks, and a tile is a pair of
 * blocks. The profile of a system is a constant of the composition (self terms,
 * and the value at q = 0) plus the sum over its tiles. The device stores two
 * values for every tile, and the host records which one is accepted. Tile
 * values are summed as 64-bit fixed-point numbers, which is exact. The accepted
 * profile changes by the sum over the dirty tiles of (new - old). It equals the
 * sum of all current tiles bit for bit, whatever the batch, the thread or the
 * order.
 *
 * If at most `difference` bodies of a block moved, the tiles of this block with
 * untouched blocks are updated by a difference (new terms of these bodies minus
 * old terms) instead of a full sum, at most `max_age` times in a row for a
 * block. The error of a tile is then that of its last full sum plus at most 2
 * max_age differences, each with the rounding of a sum over at most 2
 * `difference` positions of moved bodies.
 *
 * Two runs agree in their bits only if their tile values agree. These depend on
 * the history: a tile inside a moving rigid group keeps its value, and
 * differences accumulate rounding. To repeat a run bit for bit from stored
 * coordinates, call tsr_batch_set at the same steps in both runs.
 *
 * Plane waves (engine_plane_wave.c), for large molecules, in which a step costs
 * less by a sum over directions n than by a sum over pairs:
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * The device stores the amplitudes of every system, also in two slots. A step
 * adds the waves of the moved bodies at their new positions and subtracts those
 * at the old positions. The bodies of a rigid unit (spec->unit) move together,
 * with a table of the unit's amplitude (scattering/plane_wave.h). This costs as
 * much as about 24 bodies on a CPU and 160 on a GPU, whatever the size of the
 * unit. Bodies of smaller units are treated one by one (loose bodies). For each
 * direction the cost depends neither on the size of the molecule nor on that of
 * its domains. Additional components cost little, and less for bodies that have
 * all components but the last, or only the last. The directions are those of
 * scattering/plane_wave.h in bands of q; their number grows with the square of
 * the largest distance. Several sets of directions exist for different sizes,
 * and a system uses the smallest sufficient set.
 *
 * All waves are summed from scratch if more than half of the loose bodies and
 * units move (a unit counts as the bodies that cost as much), after
 * TSR_PLANE_WAVE_AGE differences in a row, after a rotation of the whole
 * molecule, and for a new set of directions. A unit that moves in part is
 * refused (TSR_E_INTERNAL), and so is a unit in a range of group 0 whose bodies
 * do not match its pose. */
#ifndef TSR_GPU_ENGINE_DEVICE_H
#define TSR_GPU_ENGINE_DEVICE_H

#include "engine/engine.h"
#include "gpu/device.h"

/* ---- tiles ---- */

typedef enum {
    TSR_PAGE_TILE_AUTO, /* SIMD on a CPU, SIMT elsewhere */
    TSR_PAGE_TILE_SIMT,
    TSR_PAGE_TILE_SIMD
} tsr_page_tile_variant;

/* Transfer between host and device. Each method is tested on the device before
 * use. A method that fails is refused, or replaced if the choice was AUTO. */
typedef enum {
    TSR_TRANSFER_AUTO,   /* MAPPED if device and host share memory, else COPY */
    TSR_TRANSFER_MAPPED, /* the buffer stays mapped on the host */
    TSR_TRANSFER_COPY    /* a write before and a read after the kernel */
} tsr_page_tile_transfer;

/* Sizes and choices that are 0 are replaced by a choice of the engine. */
typedef struct {
    int tile; /* bodies of a block, 16, 32, 64 or 128 */
    tsr_page_tile_variant variant;
    int difference; /* largest number of moved bodies in a block for a
                       difference, at most half a tile; -1: full sums only */
    int max_age;    /* differences of a block in a row, at most 255 */
    int max_pages;  /* values of q in a group of pages, at most 128; SIMT: in a
                       group at most 168 for all components together */
    tsr_page_tile_transfer transfer;
    int no_atomics;        /* 1: do not use 64-bit atomics */
    int profiling;         /* 1: measure times for tsr_page_tile_device_us */
    int split;             /* SIMT: work-groups for each run of the work list
                              (kernels/page_tile.cl) */
    int tiles_a_launch;    /* a batch with more tiles is split into several
                              launches, so that the device starts while the host
                              prepares the rest */
    uint64_t memory_limit; /* bytes of device memory to use; 0: all */
} tsr_page_tile_options;

/* options: NULL for all defaults. The device is borrowed and must outlive the
 * engine. Errors: TSR_E_DEVICE (build, insufficient memory with the numbers,
 * precision), TSR_E_INTERNAL (spec, options), TSR_E_NOMEM. */
tsr_status tsr_engine_page_tile_new(const tsr_engine_spec *spec,
                                    const tsr_device *device,
                                    const tsr_page_tile_options *options,
                                    tsr_engine **out, tsr_err *err);

/* Device time of the batch's last submit, microseconds; NaN unless the engine
 * was made with `profiling`, and after a submit with 64 launches or more. The
 * batch must be idle. */
double tsr_page_tile_device_us(const tsr_batch *batch);

/* Replaces the sizes and the variant that are 0 in the options (NULL: all zero)
 * by the engine's choice for the device and the number of bodies (0: many).
 * Errors: TSR_E_INTERNAL (impossible options). */
tsr_status tsr_page_tile_resolve(const tsr_device_info *info, int n_body,
                                 const tsr_page_tile_options *given,
                                 tsr_page_tile_options *out, tsr_err *err);

/* ---- blocks, tiles, pages ----
 *
 * The division of bodies into blocks and of q into groups of pages (one page is
 * one q), and the tiles that a proposal makes dirty. This part is independent
 * of devices. */

typedef struct {
    int n_body, n_q;
    int n_own;          /* bodies of a copy; n_body without symmetry. Each copy
                           begins with a block */
    int own_blocks;     /* blocks of a copy */
    int n_comp, n_pair; /* components, and their pairs */
    int tile;           /* bodies of a block */
    int n_block;        /* blocks; the last one is padded */
    int n_tile;         /* pairs of blocks: lower triangle with diagonal */
    int n_group;        /* groups of pages; q = 0 is in no group */
    int pages;          /* pages of a group, a multiple of 4; the last group is
                           padded */
    int stride;         /* n_group * pages, at least n_q - 1 */
    int row;            /* values of a tile, n_pair * stride */
} tsr_tile_shape;

/* max_pages: limit for the pages of a group. */
tsr_tile_shape tsr_tile_shape_make(int n_body, int n_q, int n_comp, int tile,
                                   int max_pages);

/* First body of a block, and number of its bodies, without padding. */
static inline int tsr_tile_block_body(const tsr_tile_shape *shape, int block)
{
    return block / shape->own_blocks * shape->n_own +
           block % shape->own_blocks * shape->tile;
}
static inline int tsr_tile_block_size(const tsr_tile_shape *shape, int block)
{
    int left = shape->n_own - block % shape->own_blocks * shape->tile;
    return left < shape->tile ? left : shape->tile;
}

enum { TSR_BLOCK_CLEAN = 0, TSR_BLOCK_MIXED = -1, TSR_MAX_GROUPS = 0x7fff };

/* Rigid group 1 of a symmetric assembly: all blocks of the copies. So tiles of
 * two copies, which are equivalent to others, are never computed. */
enum { TSR_COPIES_GROUP = 1 };

/* The tiles that a proposal makes dirty, in which a distance may have changed.
 * A block is touched if a body of the block moved. The rigid groups of the
 * proposal get new numbers 1..n_group. A mask has one bit for each block, in
 * `words` words. */
typedef struct {
    int *group;      /* [n_block] CLEAN: no body moved; g > 0: the whole block
                        moved with rigid group g; MIXED: any other case */
    int *covered;    /* [n_block] number of moved bodies, set for touched
                        blocks only */
    int *touched;    /* [n_block] indices of the touched blocks, ascending */
    int *name;       /* [n_block + 1] tsr_body_range.group of each rigid
                        group */
    uint32_t *mask;  /* [n_block + 2][words] masks of blocks. 0: touched; g:
                        wholly in group g; n_block + 1: all */
    uint32_t *moved; /* [n_block][moved_words] one bit for each body that moved,
                        set for touched blocks only */
    int words, moved_words, n_touched, n_group;
} tsr_dirty_tiles;

/* Allocates the arrays in the pool, for a proposal that moves nothing. */
void tsr_dirty_tiles_make(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                          tsr_pool *pool);

/* Sets `dirty` from the ranges of a proposal; n_range -1: every body moved
 * independently. Cost: O(ranges + touched blocks). */
void tsr_dirty_tiles_mark(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                          int n_range, const tsr_body_range *range);

/* The dirty tiles of a block, as bits for partner blocks 32 word to 32 word +
 * 31. */
static inline uint32_t tsr_dirty_tiles_bits(const tsr_dirty_tiles *dirty,
                                            const tsr_tile_shape *shape,
                                            int block, int word)
{
    int group = dirty->group[block];
    uint32_t all = dirty->mask[(shape->n_block + 1) * dirty->words + word];
    if (group == TSR_BLOCK_MIXED)
        return all;
    uint32_t bits = dirty->mask[group * dirty->words + word];
    return group == TSR_BLOCK_CLEAN ? bits : all & ~bits;
}

/* 1 if no tile is dirty: nothing moved, or everything moved rigidly. Cost:
 * O(blocks). */
int tsr_dirty_tiles_is_empty(const tsr_dirty_tiles *dirty,
                             const tsr_tile_shape *shape);

/* Flips the accepted slot of every dirty tile. select [n_block][words] has one
 * bit for each tile: its accepted slot, stored for (row, column) and for
 * (column, row). Cost: O(touched words * blocks). */
void tsr_dirty_tiles_flip(const tsr_dirty_tiles *dirty,
                          const tsr_tile_shape *shape, uint32_t *select);

/* ---- plane waves ---- */

enum {
    TSR_PLANE_WAVE_AGE = 64,  /* differences in a row, at most */
    TSR_PLANE_WAVE_LEVELS = 6 /* number of sets of directions */
};

/* The device is borrowed and must outlive the engine. Single precision. as_gpu:
 * 1 uses the GPU's kernel on a CPU, for tests. Errors: TSR_E_DEVICE (build,
 * insufficient memory with the numbers), TSR_E_INTERNAL (spec, or no
 * d_bound_ang), TSR_E_NOMEM. */
tsr_status tsr_engine_plane_wave_new(const tsr_engine_spec *spec,
                                     const tsr_device *device, int as_gpu,
                                     tsr_engine **out, tsr_err *err);

/* Number of the set of directions that a system's last proposal uses; 0 is the
 * largest set. For tests. */
int tsr_plane_wave_level(const tsr_engine *engine, int system);

/* Sum over the bands of the number of directions for d_bound_ang. */
double tsr_plane_wave_size(const tsr_engine_spec *spec);

/* ---- choice of the engine ---- */

typedef enum {
    TSR_ENGINE_AUTO,
    TSR_ENGINE_TILES,
    TSR_ENGINE_PLANE_WAVES
} tsr_engine_choice;

/* AUTO chooses the engine with the lower cost for a step of a rigid unit. The
 * costs were measured once for each kind of device, so runs on the same kind
 * choose the same engine. Without d_bound_ang the choice is tiles. */
tsr_engine_choice tsr_engine_choose(const tsr_engine_spec *spec,
                                    const tsr_device_info *info,
                                    tsr_engine_choice choice);

/* Creates the chosen engine. Errors: those of either engine. */
tsr_status tsr_engine_device_new(const tsr_engine_spec *spec,
                                 const tsr_device *device,
                                 tsr_engine_choice choice, tsr_engine **out,
                                 tsr_err *err);

/* Number of systems that fit into device memory; 0: no system fits, or no
 * engine can be made for the spec. */
double tsr_engine_capacity(const tsr_engine_spec *spec,
                           const tsr_device *device, tsr_engine_choice choice);
double tsr_page_tile_capacity(const tsr_engine_spec *spec,
                              const tsr_device *device);
double tsr_plane_wave_capacity(const tsr_engine_spec *spec,
                               const tsr_device *device);

typedef struct {
    int n_check;          /* number of profiles compared */
    double max_rel_error; /* of I(q), relative to double precision */
    double limit;         /* allowed error */
} tsr_self_test;

/* Self-test of tiles on two systems of four blocks in one batch, with the
 * settings for a molecule of n_body bodies (0: a large one). Compares set, full
 * sums, differences, rigid groups, acceptance and rejection with sums in double
 * precision. n_comp: components; 0: 1, 2 and 3 in turn (three kernels to
 * build). TSR_E_DEVICE, with the device's name and the largest error, if a
 * profile is wrong. result out, may be NULL. */
tsr_status tsr_engine_self_test(const tsr_device *device,
                                const tsr_page_tile_options *options,
                                int n_body, int n_comp, tsr_self_test *result,
                                tsr_err *err);

/* The same for plane waves, with a rigid unit. */
tsr_status tsr_plane_wave_self_test(const tsr_device *device, int as_gpu,
                                    int n_comp, tsr_self_test *result,
                                    tsr_err *err);

#endif
