/* tessera devices */
#include "cli/command.h"

#include "core/text.h"
#include "gpu/engine_page_tile.h"

#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "json", .doc = "one JSON object instead of a table"},
    {.name = "no-test", .doc = "list only; skip the self-tests"},
    {0}};

typedef struct {
    int tested;
    tsr_status status;
    tsr_self_test result;
    tsr_err err;
} outcome;

static void test(const tsr_device_info *info, outcome *o)
{
    char choice[16];
    tsr_device *device = NULL;
    snprintf(choice, sizeof choice, "%d", info->index);
    o->tested = 1;
    o->status = tsr_device_open(choice, &device, &o->err);
    if (o->status == TSR_OK)
        o->status = tsr_engine_self_test(device, NULL, 0, &o->result, &o->err);
    tsr_device_free(device);
}

static void print_json(FILE *out, int n, const tsr_device_info *list,
                       const outcome *outcomes, int chosen)
{
    fputs("{\"devices\": [", out);
    for (int i = 0; i < n; i++) {
        const tsr_device_info *d = &list[i];
        fprintf(out, "%s\n  {\"index\": %d, \"name\": ", i > 0 ? "," : "",
                d->index);
        tsr_text_json(out, d->name);
        fprintf(out, ", \"type\": \"%s\", \"platform\": ",
                tsr_device_type_name(d->type));
        tsr_text_json(out, d->platform);
        fputs(", \"driver\": ", out);
        tsr_text_json(out, d->driver);
        fprintf(out,
                ", \"compute_units\": %d, \"global_bytes\": %llu, "
                "\"double\": %s, \"default\": %s, \"self_test\": ",
                d->compute_units, (unsigned long long)d->global_bytes,
                d->has_double ? "true" : "false",
                i == chosen ? "true" : "false");
        if (!outcomes[i].tested)
            fputs("null}", out);
        else if (outcomes[i].status == TSR_OK)
            fprintf(out, "{\"passed\": true, \"max_rel_error\": %.3g}}",
                    outcomes[i].result.max_rel_error);
        else {
            fputs("{\"passed\": false, \"message\": ", out);
            tsr_text_json(out, outcomes[i].err.message);
            fputs("}}", out);
        }
    }
    fputs("\n]}\n", out);
}

static void print_table(FILE *out, int n, const tsr_device_info *list,
                        const outcome *outcomes, int chosen)
{
    for (int i = 0; i < n; i++) {
        char line[1024];
        tsr_device_describe(&list[i], line, sizeof line);
        fprintf(out, "%c %d  %s\n", i == chosen ? '*' : ' ', list[i].index,
                line);
        if (!outcomes[i].tested)
            continue;
        if (outcomes[i].status == TSR_OK)
            fprintf(out,
                    "     self-test passed: %d profiles, worst error %.1e of "
                    "I(q)\n",
                    outcomes[i].result.n_check,
                    outcomes[i].result.max_rel_error);
        else
            fprintf(out, "     self-test FAILED: %s\n",
                    outcomes[i].err.message);
    }
    fputs(
        "*: what 'auto' takes. 'reference', plain C in double precision, "
        "works anywhere.\nSeveral in one run: --device 0,1, all-gpu or all.\n",
        out);
}

static tsr_status devices(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    (void)log;
    tsr_device_info *list = NULL;
    int n = 0, n_failed = 0;
    tsr_status status = tsr_device_list(&list, &n, err);
    if (status != TSR_OK)
        return status;
    outcome *outcomes = calloc((size_t)n + 1, sizeof *outcomes);
    if (outcomes == NULL) {
        free(list);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    for (int i = 0; i < n && tsr_args_count(args, "no-test") == 0; i++) {
        test(&list[i], &outcomes[i]);
        n_failed += outcomes[i].status != TSR_OK;
    }
    int chosen = tsr_device_choose("auto", n, list);
    if (tsr_args_count(args, "json") > 0)
        print_json(out, n, list, outcomes, chosen);
    else
        print_table(out, n, list, outcomes, chosen);
    free(outcomes);
    free(list);
    return n_failed == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_NO,
                          "%d of %d devices failed the self-test", n_failed, n);
}

const tsr_command tsr_command_devices = {
    .name = "devices",
    .doc = "what can compute here, and a self-test of each",
    .usage =
        {.max_arguments = 0,
         .options = options,
         .about =
             "The self-test compares profiles of small systems, of one to "
             "three "
             "components, with sums in double precision. A run does the same "
             "before it begins, and checks its own profiles while it goes "
             "on.\n\n"
             "TESSERA_TUNING in the environment names a file of the engine's "
             "settings, a line a device as 'tessera bench --tune' prints it, "
             "which "
             "is asked before the program's own table.\n\n"
             "TSR_KERNEL_DIR in the environment names a folder whose .cl files "
             "take the place of the program's kernels, for who develops them; "
             "a run "
             "says so in its log and its trace."},
    .run = devices};
