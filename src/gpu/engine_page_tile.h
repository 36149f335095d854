/* The page-tile Debye engine on an OpenCL device (DESIGN 4).
 *
 * Profile of a system = constant of the composition (self terms and the page
 * q = 0) + sum over its tiles. The device keeps every tile's value in two slots
 * and the host says which one is accepted. Tile values are added as 64-bit
 * fixed-point numbers: such sums are exact, so an accepted profile changes by
 * the sum over the dirty tiles of (new - old), bit for bit as if all tiles had
 * been added afresh, and whatever the batch, the thread or the order.
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
 * same steps in both. */
#ifndef TSR_GPU_ENGINE_PAGE_TILE_H
#define TSR_GPU_ENGINE_PAGE_TILE_H

#include "engine/engine.h"
#include "gpu/device.h"

typedef enum {
    TSR_PAGE_TILE_AUTO, /* SIMD on a CPU, SIMT elsewhere */
    TSR_PAGE_TILE_SIMT,
    TSR_PAGE_TILE_SIMD
} tsr_page_tile_variant;

/* Every mode is tried out on the device before it is used: one that the device
 * computes wrongly is refused, or with AUTO passed over. */
typedef enum {
    TSR_TRANSFER_AUTO,     /* mapped where device and host share memory, else
                              copy */
    TSR_TRANSFER_MAPPED,   /* the host's side of a buffer stays mapped */
    TSR_TRANSFER_UNMAPPED, /* mapped by turns with the device */
    TSR_TRANSFER_COPY      /* a write before and a read after the kernel */
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

/* What systems take on the device, bytes, and how many there is room for. */
typedef struct {
    uint64_t per_system, shared, most_systems;
} tsr_page_tile_memory;

tsr_status tsr_page_tile_memory_needed(const tsr_engine_spec *spec,
                                       const tsr_device *device,
                                       const tsr_page_tile_options *options,
                                       tsr_page_tile_memory *out, tsr_err *err);

/* Time of the batch's last submit on the device, microseconds; NAN unless the
 * engine was made with `profiling`. The batch is idle. */
double tsr_page_tile_device_us(const tsr_batch *batch);

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

#endif
