/* tessera summary DIR */
#include "cli/command.h"
#include "cli/run_directory.h"

#include "analysis/summary.h"
#include "io/trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const tsr_option options[] = {
    {.name = "json", .doc = "one JSON object instead of a table"}, {0}};

static tsr_status summary(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    (void)log;
    const char *const *argument;
    tsr_trace_reader *reader = NULL;
    tsr_summary *made = NULL;
    struct stat info;
    tsr_args_arguments(args, &argument);
    int is_folder = stat(argument[0], &info) == 0 && S_ISDIR(info.st_mode);
    char *path = is_folder ? tsr_run_directory_file(argument[0], "trace.h5")
                           : strdup(argument[0]);
    tsr_status status = path == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : tsr_trace_open(path, &reader, err);
    if (status == TSR_OK)
        status = tsr_summary_make(reader, &made, err);
    if (status == TSR_OK)
        status = tsr_args_count(args, "json") > 0
                     ? tsr_summary_print_json(made, out, err)
                     : tsr_summary_print(made, out, err);
    tsr_summary_free(made);
    tsr_trace_reader_free(reader);
    free(path);
    return status;
}

const tsr_command tsr_command_summary = {
    .name = "summary",
    .doc = "mean, spread, effective sample size and R-hat of a run",
    .usage = {.arguments = "DIR",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about = "DIR is a run's folder, or a trace.h5 itself."},
    .run = summary};
