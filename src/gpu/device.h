/* OpenCL devices: listing, choosing and opening them. */
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
    int index; /* number among all devices, as --device takes it */
    tsr_device_type type;
    char name[256], platform[128], driver[128], version[128];
    int compute_units, clock_mhz;
    int float_width; /* lanes of the native float vectors */
    int max_work_group;
    uint64_t global_bytes, max_alloc_bytes, local_bytes;
    int has_double;        /* cl_khr_fp64 */
    int has_int64_atomics; /* cl_khr_int64_base_atomics */
    int is_unified;        /* device and host share memory */
} tsr_device_info;

typedef struct tsr_device tsr_device;

/* "GPU", "accelerator", "CPU", "other". */
const char *tsr_device_type_name(tsr_device_type type);

/* All usable devices of all platforms, in a fixed order: list [n] out, the
 * caller frees it. Errors: TSR_E_DEVICE if there is no device, with the remedy,
 * TSR_E_NOMEM. */
tsr_status tsr_device_list(tsr_device_info **list, int *n, tsr_err *err);

/* 1 if OpenCL's loader finds a driver, whether its devices are usable or not.
 */
int tsr_device_has_driver(void);

/* Index of the chosen device in a list. choice: "auto" or NULL (a GPU, else an
 * accelerator, else a CPU, else any other device), "gpu", "cpu" (of several
 * such devices the one with the most compute units), an index, or part of a
 * name in any case. Returns -1 if no device matches. */
int tsr_device_choose(const char *choice, int n, const tsr_device_info *list);

/* The devices of a text like "0,1": choices of tsr_device_choose separated by
 * commas, in their order; also "all-gpu" (every GPU) and "all". chosen [n] out:
 * indices in the list; *n_chosen out: at least 1. Errors: TSR_E_DEVICE for an
 * unknown device, with a list of the known ones; TSR_E_CONFIG for a device
 * named twice, and for "reference". */
tsr_status tsr_device_choose_many(const char *choice, int n,
                                  const tsr_device_info *list, int *chosen,
                                  int *n_chosen, tsr_err *err);

/* Opens a device, with a context that all engines on it share. Errors:
 * TSR_E_DEVICE, for an unknown choice with a list of the devices; TSR_E_NOMEM.
 */
tsr_status tsr_device_open(const char *choice, tsr_device **out, tsr_err *err);
void tsr_device_free(tsr_device *device); /* free its engines first */

const tsr_device_info *tsr_device_get_info(const tsr_device *device);

/* One line: name, platform, driver, compute units, memory, limits. Returns the
 * length like snprintf. */
int tsr_device_describe(const tsr_device_info *info, char *text, size_t size);

#endif
