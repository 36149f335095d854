/* What a record stores, in a trace: by way of a log beside it, as in a run. */
#ifndef TESTS_RECORD_TRACE_H
#define TESTS_RECORD_TRACE_H

#include "sampler/record.h"
#include "store/trace.h"
#include "tests/check.h"

/* Makes the trace; tsr_record_write then goes to the log. */
static inline tsr_draw_log *record_begin(const char *path, int n_chain,
                                         tsr_record *record)
{
    char folder[200];
    const tsr_trace_variable *variable;
    const int n = tsr_record_variables(record, &variable);
    tsr_draw_log *log;
    tsr_trace *trace;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path),
             path);
    OK(tsr_trace_create(path, n_chain, n, variable, 0, NULL, &trace, &err));
    OK(tsr_record_write_data(record, trace, &err));
    OK(tsr_trace_close(trace, &err));
    OK(tsr_draw_log_new(folder, &log, &err));
    return log;
}

/* Puts the draws into the trace. */
static inline void record_end(const char *path, tsr_draw_log *log)
{
    tsr_draw_records records;
    OK(tsr_draw_records_open(path, &records, &err));
    OK(tsr_trace_update(path, &records, NULL, &err));
    tsr_draw_records_close(&records);
    tsr_draw_log_remove(log);
    tsr_draw_log_free(log);
}

#endif
