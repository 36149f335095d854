/* Two traces, number by number. */
#ifndef TESTS_TRACE_COMPARE_H
#define TESTS_TRACE_COMPARE_H

#include "store/trace.h"
#include "tests/check.h"

/* Every number of the two traces is the same to the bit. Returns how many were
 * compared. */
static inline long trace_compare(const char *const path[2])
{
    tsr_trace_reader *reader[2];
    long compared = 0;
    for (int k = 0; k < 2; k++)
        OK(tsr_trace_open(path[k], &reader[k], &err));
    for (int group = 0; group < TSR_TRACE_N_GROUP; group++) {
        const char *const *name;
        int n = tsr_trace_variables(reader[0], (tsr_trace_group)group, &name);
        for (int v = 0; v < n; v++) {
            int shape[2][3];
            double *value[2];
            for (int k = 0; k < 2; k++)
                OK(tsr_trace_get(reader[k], (tsr_trace_group)group, name[v],
                                 &shape[k][0], &shape[k][1], &shape[k][2],
                                 &value[k], &err));
            assert_memory_equal(shape[0], shape[1], sizeof shape[0]);
            size_t size =
                (size_t)shape[0][0] * (size_t)shape[0][1] * (size_t)shape[0][2];
            if (memcmp(value[0], value[1], size * sizeof(double)) != 0)
                fail_msg("%s: %s differs", path[1], name[v]);
            compared += (long)size;
            free(value[0]);
            free(value[1]);
        }
    }
    for (int k = 0; k < 2; k++)
        tsr_trace_reader_free(reader[k]);
    return compared;
}

#endif
