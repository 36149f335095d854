/* tessera devices: lists the devices that can compute. Each device first
 * computes known profiles, since some drivers return wrong numbers without an
 * error. */
#include "commands/command.h"

#include "core/json.h"
#include "gpu/engine_device.h"
#include "maps/map_sum.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    int json, no_test;
} options;

static const tsr_field fields[] = {
    TSR_OPTION_JSON(options),
    TSR_FIELD(BOOL, "no-test", options, no_test,
              .doc = "only list the devices; skip the self-tests"),
    {0}};

typedef struct {
    int tested;
    tsr_status status;
    tsr_self_test result,
        waves; /* largest error of both engines; of plane waves */
    double
        map_error; /* error of density maps; NaN: not supported by the device */
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
        o->status =
            tsr_engine_self_test(device, NULL, 0, 0, &o->result, &o->err);
    if (o->status == TSR_OK)
        o->status = tsr_plane_wave_self_test(device, 0, 0, &o->waves, &o->err);
    o->result.n_check += o->waves.n_check;
    o->result.max_rel_error =
        fmax(o->result.max_rel_error, o->waves.max_rel_error);
    o->map_error = (double)NAN;
    if (o->status == TSR_OK && info->has_double && info->has_int64_atomics)
        o->status = tsr_map_sum_test(device, &o->map_error, &o->err);
    tsr_device_free(device);
}

static void write_outcome(tsr_json *j, const outcome *o)
{
    if (!o->tested) {
        tsr_json_text(j, "self_test", NULL);
        return;
    }
    tsr_json_object(j, "self_test");
    tsr_json_boolean(j, "passed", o->status == TSR_OK);
    if (o->status == TSR_OK)
        tsr_json_members(j, "max_rel_error %g map_max_rel_error %g",
                         o->result.max_rel_error, o->map_error);
    else
        tsr_json_text(j, "message", o->err.message);
    tsr_json_close(j);
}

static void print_json(FILE *out, int n, const tsr_device_info *list,
                       const outcome *outcomes, int chosen)
{
    tsr_json j = {.out = out, .digits = 3};
    tsr_json_object(&j, NULL);
    tsr_json_array(&j, "devices");
    for (int i = 0; i < n; i++) {
        const tsr_device_info *d = &list[i];
        tsr_json_object(&j, NULL);
        tsr_json_members(&j,
                         "index %d name %s type %s platform %s driver %s "
                         "compute_units %d global_bytes %ld double %i "
                         "default %i",
                         d->index, d->name, tsr_device_type_name(d->type),
                         d->platform, d->driver, (int)d->compute_units,
                         (long)d->global_bytes, d->has_double, i == chosen);
        write_outcome(&j, &outcomes[i]);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_close(&j);
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
        if (outcomes[i].status == TSR_OK && !isnan(outcomes[i].map_error))
            fprintf(out, "     density maps: worst error %.1e of a sum\n",
                    outcomes[i].map_error);
        if (outcomes[i].status != TSR_OK)
            fprintf(out, "     self-test FAILED: %s\n",
                    outcomes[i].err.message);
    }
    fputs("*: device used by 'auto'. 'reference', plain C in double precision, "
          "works on every machine.\nSeveral devices in one run: --device 0,1, "
          "all-gpu or all.\n",
          out);
}

static tsr_status devices(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    (void)log;
    const options *o = args->options;
    tsr_device_info *list = NULL;
    int n = 0, n_failed = 0;
    TSR_TRY(tsr_device_list(&list, &n, err));
    outcome *outcomes = calloc((size_t)n + 1, sizeof *outcomes);
    if (outcomes == NULL) {
        free(list);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < n && !o->no_test; i++) {
        test(&list[i], &outcomes[i]);
        n_failed += outcomes[i].status != TSR_OK;
    }
    int chosen = tsr_device_choose("auto", n, list);
    if (o->json)
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
    .doc = "list the compute devices and test each of them",
    .options = fields,
    .size = sizeof(options),
    .about =
        "The self-test compares profiles of small systems, of one to "
        "three components, with sums in double precision. A run performs "
        "the same test before it begins, and checks its own profiles at "
        "intervals.\n\nTSR_KERNEL_DIR in the environment names a folder whose "
        ".cl files replace the built-in kernels, for development; a run "
        "records this in its log and its trace.",
    .run = devices};
