/* OpenCL devices: what there is, which to use. */
#ifndef TSR_GPU_DEVICE_H
#define TSR_GPU_DEVICE_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum {
    TSR_DEVICE_GPU,
    TSR_DEVICE_ACCELERATOR,
    TSR_DEVICE_CPU,
    TSR_DEVICE_OTHER
} tsr_device_type;

typedef struct {
    int index; /* among all devices, as --device takes it */
    tsr_device_type type;
    char name[256], platform[128], driver[128], version[128];
    int compute_units, clock_mhz;
    int float_width; /* lanes of the native vectors */
    int max_work_group;
    uint64_t global_bytes, max_alloc_bytes, local_bytes;
    int has_double;        /* cl_khr_fp64 */
    int has_int64_atomics; /* cl_khr_int64_base_atomics */
    int is_unified;        /* device and host share memory */
} tsr_device_info;

typedef struct tsr_device tsr_device;

/* "GPU", "accelerator", "CPU", "other". */
const char *tsr_device_type_name(tsr_device_type type);

/* All devices of all platforms, in a fixed order. list: caller frees.
 * Errors: TSR_E_DEVICE where there is none, with the remedy. */
tsr_status tsr_device_list(tsr_device_info **list, int *n, tsr_err *err);

/* The device that `choice` means in a list: "auto" (a GPU, else an
 * accelerator, else a CPU; the one with the most compute units), "gpu", "cpu",
 * an index, or part of a name (any case). -1: none. */
int tsr_device_choose(const char *choice, int n, const tsr_device_info *list);

/* The devices that a list means: what tsr_device_choose takes, joined by
 * commas, in that order; "all-gpu" (every GPU) and "all".
 * chosen [n] out, places in the list; *n_chosen at least 1. Errors:
 * TSR_E_DEVICE where one is unknown, naming what there is; TSR_E_CONFIG where
 * one comes twice. */
tsr_status tsr_device_choose_many(const char *choice, int n,
                                  const tsr_device_info *list, int *chosen,
                                  int *n_chosen, tsr_err *err);

/* Whether two devices compute the same bits in the same time: of one model,
 * under one driver. */
int tsr_device_is_same_model(const tsr_device_info *a,
                             const tsr_device_info *b);

/* Opens it: a context, shared by all engines on it.
 * Errors: TSR_E_DEVICE, naming what there is. */
tsr_status tsr_device_open(const char *choice, tsr_device **out, tsr_err *err);
void tsr_device_free(tsr_device *device); /* after its engines */

const tsr_device_info *tsr_device_get_info(const tsr_device *device);

/* Whether `part` is in its name, in any case. */
int tsr_device_is_named(const tsr_device_info *info, const char *part);

/* One line: name, platform, driver, compute units, memory, limits; returns the
 * length, as snprintf. */
int tsr_device_describe(const tsr_device_info *info, char *text, size_t size);

#endif
