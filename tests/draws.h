/* Draws of which every number follows from its place, so that a wrong one is
 * seen: as records of the log of draws, and checked in a trace. */
#ifndef TESTS_DRAWS_H
#define TESTS_DRAWS_H

#include "store/trace.h"
#include "tests/check.h"

/* Noise that a compressor cannot foresee; exact in float32. */
static inline double draw_value(int v, int chain, long draw, int k)
{
    uint64_t x = ((uint64_t)v << 48) ^ ((uint64_t)chain << 40) ^
                 ((uint64_t)draw << 8) ^ (uint64_t)k;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(float)(x >> 40);
}

/* One record of a log, from one array. */
static inline tsr_status draws_record(tsr_draw_log *log, tsr_draw_kind kind,
                                      long from, long to, size_t size,
                                      const void *value)
{
    const tsr_draw_record record = {.kind = kind,
                                    .first = from,
                                    .n = to - from,
                                    .n_chain = 1,
                                    .n_state = 1,
                                    .size = size};
    tsr_status status = tsr_draw_log_begin(log, &record, &err);
    TSR_THEN(status, tsr_draw_log_part(log, value, &err));
    return status;
}

/* Draws from..to of the variables first..last as a record, `more` bytes too
 * long. */
static inline tsr_status draws_log(tsr_draw_log *log, tsr_draw_kind kind,
                                   const tsr_trace_variable *variable,
                                   int first, int last, int n_chain, long from,
                                   long to, size_t more)
{
    size_t n = more + 1;
    for (int v = first; v <= last; v++)
        n += (size_t)(n_chain * (to - from) * variable[v].n) * sizeof(double);
    char *value = array(n, 1), *at = value;
    for (int v = first; v <= last; v++)
        for (int c = 0; c < n_chain; c++)
            for (long d = from; d < to; d++)
                for (int k = 0; k < variable[v].n; k++) {
                    const double one = draw_value(v, c, d, k);
                    const float single = (float)one;
                    const int is_single = variable[v].single;
                    const size_t size = is_single ? sizeof single : sizeof one;
                    memcpy(at, is_single ? (const void *)&single : &one, size);
                    at += size;
                }
    const tsr_status status =
        draws_record(log, kind, from, to, (size_t)(at - value) + more, value);
    return status;
}

/* The trace has these draws of the variables, to the bit, and no others. */
static inline void draws_check(tsr_trace_reader *reader, int n_variable,
                               const tsr_trace_variable *variable, int n_chain,
                               int n_warm, int n_kept)
{
    for (int v = 0; v < n_variable; v++) {
        const tsr_trace_group group = variable[v].group;
        const int is_warm = group == TSR_TRACE_WARMUP_POSTERIOR;
        int shape[3];
        double *value;
        OK(tsr_trace_get(reader, group, variable[v].name, &shape[0], &shape[1],
                         &shape[2], &value, &err));
        assert_int_equal(shape[0], n_chain);
        assert_int_equal(shape[1], is_warm ? n_warm : n_kept);
        assert_int_equal(shape[1], tsr_trace_n_draw(reader, group));
        assert_int_equal(shape[2], variable[v].n);
        const double *at = value;
        for (int c = 0; c < n_chain; c++)
            for (int d = 0; d < shape[1]; d++)
                for (int k = 0; k < shape[2]; k++, at++)
                    if (*at != draw_value(v, c, d, k))
                        fail_msg("%s [%d][%d][%d] of %d draws is %g, not %g",
                                 variable[v].name, c, d, k, shape[1], *at,
                                 draw_value(v, c, d, k));
        free(value);
    }
}

#endif
