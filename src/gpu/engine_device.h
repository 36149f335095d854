/* The two engines of an OpenCL device (docs/design.md, section 3), the choice
 * between them, and known answers that a device has to give before it is used.
 *
 * Tiles (engine_page_tile.c). Profile of a system = constant of the composition
 * (self terms and the page q = 0) + sum over its tiles. The device keeps every
 * tile's value in two slots and the host says which one is accepted. Tile
 * values are added as 64-bit fixed-point numbers: such sums are exact, so an
 * accepted profile changes by the sum over the dirty tiles of (new - old), bit
 * for bit as if all tiles had been added afresh, and whatever the batch, the
 * thread or the order.
 *
 * Where few bodies of a block moved, its tiles with untouched blocks change by
 * a difference (the new terms of these bodies less the old ones) instead of a
 * full sum, at most `max_age` times in a row for a block. A tile's error is
 * that of its last full sum and of at most 2 max_age differences since, each
 * rounded like a sum of at most 2 `difference` rows.
 *
 * The bits are those of the tile values: a tile that a rigid group carries
 * along keeps its value, and differences leave the rounding of their history.
 * To repeat a run to the bit from stored coordinates, call tsr_batch_set at the
 * same steps in both.
 *
 * Plane waves (engine_plane_wave.c), for molecules so large that a step of n
 * bodies is cheaper by directions than by pairs:
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * The device keeps the amplitudes of every system, in two slots as well. A step
 * adds the waves of the bodies that moved, at their new places, and takes away
 * those at the old ones. Bodies of a rigid unit (spec->unit) do so together, by
 * a table of the unit's amplitude, for the price of some 24 bodies on a
 * processor and 160 on a GPU, whatever their number (scattering/plane_wave.h);
 * smaller units are loose bodies. What a table is of may be other particles
 * than the unit's bodies (spec->unit_particles). So neither the size of the
 * molecule nor that of its domains counts, and components after the first cost
 * little, those that a body lacks nothing. Directions are those of
 * scattering/plane_wave.h in bands of q, and their number grows with the square
 * of the largest distance; there are several sets of them, of which a system
 * has the smallest that its present size allows for.
 *
 * Where more than half of that moves, after TSR_PLANE_WAVE_AGE differences in a
 * row, once the molecule has turned as a whole, and where it asks for another
 * set, all waves are summed afresh. A unit whose bodies are not where its pose
 * says, or of which a part moves, is refused (TSR_E_INTERNAL). */
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

/* Either is tried out on the device before it is used: one that the device
 * computes wrongly is refused, or with AUTO passed over. */
typedef enum {
    TSR_TRANSFER_AUTO,   /* mapped where device and host share memory, else
                            copy */
    TSR_TRANSFER_MAPPED, /* the host's side of a buffer stays mapped */
    TSR_TRANSFER_COPY    /* a write before and a read after the kernel */
} tsr_page_tile_transfer;

/* All 0: the engine chooses. */
typedef struct {
    int tile; /* bodies a side: 16, 32, 64 or 128 */
    tsr_page_tile_variant variant;
    int use_double; /* 1: double precision, where the device has it */
    int parts;      /* SIMT: tiles a work-group, 1, 2 or 4 */
    int difference; /* bodies of a block that may move for a difference, at most
                       half a tile; -1: full sums only */
    int max_age;    /* differences a block takes in a row, at most 255 */
    int max_pages;  /* pages a group, at most 128 */
    tsr_page_tile_transfer transfer;
    int no_atomics;        /* 1: no 64-bit atomics even where there are */
    int profiling;         /* 1: tsr_page_tile_device_us can tell */
    int split;             /* SIMT: work-groups a run */
    int tiles_a_launch;    /* a submit of more goes in several launches, so that
                              the device starts while the host prepares */
    uint64_t memory_limit; /* bytes on the device; more is refused. 0: all */
    int skip_kernel;       /* 1: launches nothing, to time the host; profiles
                              are wrong */
} tsr_page_tile_options;

/* options: NULL for all defaults. The device is borrowed and outlives the
 * engine. Errors: TSR_E_DEVICE (build, memory with the numbers, precision),
 * TSR_E_INTERNAL (spec), TSR_E_NOMEM. */
tsr_status tsr_engine_page_tile_new(const tsr_engine_spec *spec,
                                    const tsr_device *device,
                                    const tsr_page_tile_options *options,
                                    tsr_engine **out, tsr_err *err);

/* Time of the batch's last submit on the device, microseconds; NAN unless the
 * engine was made with `profiling`. The batch is idle. */
double tsr_page_tile_device_us(const tsr_batch *batch);

/* Fills what the options (NULL: all) leave to the engine, from the kind of
 * device and the number of bodies (0: many). Errors: TSR_E_INTERNAL
 * (impossible), TSR_E_DEVICE (no double), those of tsr_tuning_find. */
tsr_status tsr_page_tile_resolve(const tsr_device_info *info, int n_body,
                                 const tsr_page_tile_options *given,
                                 tsr_page_tile_options *out, tsr_err *err);

/* Settings of tiles by device, from a small table: kernels/engine_tuning.dat,
 * which ships in the program, and before it the file that TESSERA_TUNING names.
 * `tessera bench --tune` finds what to put there.
 *
 * Fills tile, parts, split and difference where they are 0 and a line fits the
 * device and a molecule of n_body bodies (0: one larger than any that has lines
 * of its own); `difference` goes with the tile of its line. Errors:
 * TSR_E_NOINPUT (the file cannot be read), TSR_E_DATA with file and line. */
tsr_status tsr_tuning_find(const tsr_device_info *info, int n_body,
                           tsr_page_tile_options *options, tsr_err *err);

/* The same from one table; *found: whether a line fits. `name` is for errors.
 */
tsr_status tsr_tuning_find_in_table(const char *table, const char *name,
                                    const tsr_device_info *info, int n_body,
                                    tsr_page_tile_options *options, int *found,
                                    tsr_err *err);

/* A line of the table for molecules of up to n_body bodies (0: of any number),
 * without its end; returns the length, as snprintf. */
int tsr_tuning_line(const tsr_device_info *info, int n_body,
                    const tsr_page_tile_options *options, char *text,
                    size_t size);

/* ---- blocks, tiles, pages ----
 *
 * Blocks, tiles and pages, and which tiles a proposal makes dirty.
 * Host only; knows nothing of devices. */

typedef struct {
    int n_body, n_q;
    int n_comp, n_pair; /* components, and pairs of them */
    int tile;           /* bodies a block */
    int n_block;        /* the last one is padded */
    int n_tile;         /* pairs of blocks, lower triangle with the diagonal */
    int n_group;        /* groups of pages; the page q = 0 belongs to none */
    int pages;          /* a group, a multiple of 4 */
    int stride;         /* n_group * pages */
    int row;            /* n_pair * stride: values of a tile */
} tsr_tile_shape;

/* max_pages: at most so many pages a group. */
tsr_tile_shape tsr_tile_shape_make(int n_body, int n_q, int n_comp, int tile,
                                   int max_pages);

/* Bodies in a block that are not padding. */
static inline int tsr_tile_block_size(const tsr_tile_shape *shape, int block)
{
    int left = shape->n_body - block * shape->tile;
    return left < shape->tile ? left : shape->tile;
}

enum { TSR_BLOCK_CLEAN = 0, TSR_BLOCK_MIXED = -1, TSR_MAX_GROUPS = 0x7fff };

/* What a proposal touches. Rigid groups are numbered anew, 1..n_group. Masks
 * hold one bit a block in `words` words. */
typedef struct {
    int *group;      /* [n_block] CLEAN: untouched; g > 0: wholly in rigid group
                        g; MIXED: else */
    int *covered;    /* [n_block] of the touched blocks: bodies that moved */
    int *touched;    /* [n_block] the touched blocks, ascending */
    int *name;       /* [n_block + 1] the proposal's number of a group */
    uint32_t *mask;  /* [n_block + 2][words] 0: touched; g: wholly in group g;
                        the last: every block */
    uint32_t *moved; /* [n_block][moved_words] of the touched blocks: bodies
                        that moved, a bit each */
    int words, moved_words, n_touched, n_group;
} tsr_dirty_tiles;

void tsr_dirty_tiles_make(tsr_dirty_tiles *dirt, const tsr_tile_shape *shape,
                          tsr_pool *pool);

/* Marks what the ranges touch; n_range -1: every body moved, each on its own.
 * Cost: O(ranges + touched blocks). */
void tsr_dirty_tiles_mark(tsr_dirty_tiles *dirt, const tsr_tile_shape *shape,
                          int n_range, const tsr_body_range *range);

/* The dirty tiles of a block, those where a distance may have changed: the bits
 * of its partners 32 word to 32 word + 31. */
static inline uint32_t tsr_dirty_tiles_bits(const tsr_dirty_tiles *dirt,
                                            const tsr_tile_shape *shape,
                                            int block, int word)
{
    int group = dirt->group[block];
    uint32_t all = dirt->mask[(shape->n_block + 1) * dirt->words + word];
    if (group == TSR_BLOCK_MIXED)
        return all;
    uint32_t bits = dirt->mask[group * dirt->words + word];
    return group == TSR_BLOCK_CLEAN ? bits : all & ~bits;
}

/* Whether none is: nothing moved, or everything as one. Cost: O(blocks). */
int tsr_dirty_tiles_is_empty(const tsr_dirty_tiles *dirt,
                             const tsr_tile_shape *shape);

/* Which of a tile's two slots is the accepted one, a bit each: select
 * [n_block][words], the same bit for (row, column) and (column, row). Turns
 * round those of the dirty tiles. Cost: O(touched words * blocks). */
void tsr_dirty_tiles_flip(const tsr_dirty_tiles *dirt,
                          const tsr_tile_shape *shape, uint32_t *select);

/* ---- plane waves ---- */

enum {
    TSR_PLANE_WAVE_AGE = 64,
    TSR_PLANE_WAVE_LEVELS = 6 /* sets of directions */
};

/* The device is borrowed and outlives the engine. Single precision. as_gpu: 1
 * for the GPU's kernel even on a processor, which tests want. Errors:
 * TSR_E_DEVICE (build, memory with the numbers), TSR_E_INTERNAL (spec, or no
 * d_bound_ang), TSR_E_NOMEM. */
tsr_status tsr_engine_plane_wave_new(const tsr_engine_spec *spec,
                                     const tsr_device *device, int as_gpu,
                                     tsr_engine **out, tsr_err *err);

/* Which set of directions a system's proposal has, the widest first; for
 * tests. */
int tsr_plane_wave_level(const tsr_engine *engine, int system);

/* How many directions there are to d_bound_ang. */
double tsr_plane_wave_size(const tsr_engine_spec *spec);

/* ---- either ---- */

typedef enum {
    TSR_ENGINE_AUTO,
    TSR_ENGINE_TILES,
    TSR_ENGINE_PLANE_WAVES
} tsr_engine_choice;

/* AUTO: the one that a step of a rigid unit costs least, by costs that were
 * measured once for each kind of device, so that a run chooses the same on
 * every one of that kind; tiles where no d_bound_ang is given. Particles inside
 * of units: plane waves whatever the choice. */
tsr_engine_choice tsr_engine_choose(const tsr_engine_spec *spec,
                                    const tsr_device_info *info,
                                    tsr_engine_choice choice);

/* Errors: those of either engine. */
tsr_status tsr_engine_device_new(const tsr_engine_spec *spec,
                                 const tsr_device *device,
                                 tsr_engine_choice choice, tsr_engine **out,
                                 tsr_err *err);

/* Systems that the device has room for; 0: not known. */
double tsr_engine_capacity(const tsr_engine_spec *spec,
                           const tsr_device *device, tsr_engine_choice choice);
double tsr_page_tile_capacity(const tsr_engine_spec *spec,
                              const tsr_device *device);
double tsr_plane_wave_capacity(const tsr_engine_spec *spec,
                               const tsr_device *device);

typedef struct {
    int n_check;          /* profiles compared */
    double max_rel_error; /* of I(q), against double precision */
    double limit;         /* what is tolerated */
} tsr_self_test;

/* Known answers on two systems of four blocks in one batch, with the settings
 * of a molecule of n_body bodies (0: a large one), against sums in double
 * precision: set, full sums, differences, rigid groups, accepted and
 * rejected. n_comp: components, 0 for 1, 2 and 3 in turn (each is a kernel of
 * its own to build). TSR_E_DEVICE, with the device's name and the worst error,
 * when one is wrong; result may be NULL. */
tsr_status tsr_engine_self_test(const tsr_device *device,
                                const tsr_page_tile_options *options,
                                int n_body, int n_comp, tsr_self_test *result,
                                tsr_err *err);

/* The same of plane waves, with a rigid unit. */
tsr_status tsr_plane_wave_self_test(const tsr_device *device, int as_gpu,
                                    int n_comp, tsr_self_test *result,
                                    tsr_err *err);

#endif
