/* Settings of the page-tile engine by device, from a small table:
 * kernels/engine_tuning.dat, which ships in the program, and before it the file
 * that TESSERA_TUNING names. `tessera bench --tune` finds what to put there. */
#ifndef TSR_GPU_TUNING_H
#define TSR_GPU_TUNING_H

#include "gpu/engine_page_tile.h"

/* Fills tile, parts, split and difference where they are 0 and a line fits the
 * device and a molecule of n_body bodies (0: one larger than any that has lines
 * of its own); `difference` goes with the tile of its line. Errors:
 * TSR_E_NOINPUT (the file cannot be read), TSR_E_DATA with file and line. */
tsr_status tsr_tuning_find(const tsr_device_info *info, int n_body,
                           tsr_page_tile_options *options, tsr_err *err);

/* The same from one table; *found: whether a line fits. `name` is for errors.
 */
tsr_status tsr_tuning_find_in(const char *table, const char *name,
                              const tsr_device_info *info, int n_body,
                              tsr_page_tile_options *options, int *found,
                              tsr_err *err);

/* A line of the table for molecules of up to n_body bodies (0: of any number),
 * without its end; returns the length, as snprintf. */
int tsr_tuning_line(const tsr_device_info *info, int n_body,
                    const tsr_page_tile_options *options, char *text,
                    size_t size);

#endif
