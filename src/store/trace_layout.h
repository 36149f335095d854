/* The groups, dimensions and variables of trace.h5, made once when the file is
 * created. For src/store/trace*.c only. */
#ifndef TSR_STORE_TRACE_LAYOUT_H
#define TSR_STORE_TRACE_LAYOUT_H

#include "store/trace.h"

#include <hdf5.h>

/* "posterior", ... as ArviZ calls it. */
const char *tsr_trace_group_name(tsr_trace_group group);

/* 1: its variables begin with the dimensions chain and draw. */
int tsr_trace_group_has_draws(tsr_trace_group group);

/* The first variable of v's group with v's dimension: it defines it. */
int tsr_trace_first_of_dim(const tsr_trace_variable *variable, int v);

/* Whether variables can live in one file; TSR_E_INTERNAL with the reason. */
tsr_status tsr_trace_layout_check(int n_chain, int n_variable,
                                  const tsr_trace_variable *variable,
                                  tsr_err *err);

/* Writes all but the draws into an empty file.
 * draw  [TSR_TRACE_N_GROUP]  out  the draw dimension of each group
 * data  [n_variable]         out  the variables
 * Both are < 0 where there is none, also on failure; caller closes. */
tsr_status tsr_trace_layout_make(hid_t file, int n_chain, int n_variable,
                                 const tsr_trace_variable *variable,
                                 int n_attribute,
                                 const tsr_trace_attribute *attribute,
                                 hid_t *draw, hid_t *data, tsr_err *err);

/* Opens the same in a file that is there already, after comparing it with the
 * declaration: groups, variables, types, dimensions, coordinates, units.
 * n_draw  [TSR_TRACE_N_GROUP]  out  draws in the file
 * Errors: TSR_E_DATA with the first difference; draw and data as above. */
tsr_status tsr_trace_layout_open(hid_t file, int n_chain, int n_variable,
                                 const tsr_trace_variable *variable,
                                 hid_t *draw, hid_t *data, size_t *n_draw,
                                 tsr_err *err);

#endif
