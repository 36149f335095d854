/* Which devices a user means. */
#include "gpu/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int contains(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && tolower((unsigned char)text[i]) ==
                                      tolower((unsigned char)part[i]))
            i++;
        if (part[i] == '\0')
            return 1;
    }
    return 0;
}

static int largest_of_type(tsr_device_type type, int n,
                           const tsr_device_info *list)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (list[i].type == type &&
            (best < 0 || list[i].compute_units > list[best].compute_units))
            best = i;
    return best;
}

int tsr_device_choose(const char *choice, int n, const tsr_device_info *list)
{
    if (choice == NULL || strcmp(choice, "auto") == 0) {
        for (int type = TSR_DEVICE_GPU; type <= TSR_DEVICE_OTHER; type++) {
            int i = largest_of_type((tsr_device_type)type, n, list);
            if (i >= 0)
                return i;
        }
        return -1;
    }
    if (strcmp(choice, "gpu") == 0)
        return largest_of_type(TSR_DEVICE_GPU, n, list);
    if (strcmp(choice, "cpu") == 0)
        return largest_of_type(TSR_DEVICE_CPU, n, list);
    char *end;
    long index = strtol(choice, &end, 10);
    if (end != choice && *end == '\0')
        return index >= 0 && index < n ? (int)index : -1;
    for (int i = 0; *choice != '\0' && i < n; i++)
        if (contains(list[i].name, choice))
            return i;
    return -1;
}

tsr_status tsr_device_unknown(const char *choice, int n,
                              const tsr_device_info *list, tsr_err *err)
{
    char known[1024] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof known - 1; i++) {
        int more = snprintf(known + used, sizeof known - used, "%s%d: %s (%s)",
                            i > 0 ? "; " : "", i, list[i].name,
                            tsr_device_type_name(list[i].type));
        used += more > 0 ? (size_t)more : 0;
    }
    return tsr_fail(err, TSR_E_DEVICE,
                    "no OpenCL device answers to '%s'; there are: %s. auto, "
                    "cpu, gpu, all-gpu, all, an index, part of a name or a "
                    "list like 0,1 will do",
                    choice, known);
}

static tsr_status add(const char *choice, int at, const tsr_device_info *list,
                      int *chosen, int *n_chosen, tsr_err *err)
{
    for (int i = 0; i < *n_chosen; i++)
        if (chosen[i] == at)
            return tsr_fail(err, TSR_E_CONFIG,
                            "device.use: '%s' names device %d (%s) twice; name "
                            "each once",
                            choice, at, list[at].name);
    chosen[(*n_chosen)++] = at;
    return TSR_OK;
}

/* One item of the list: a device, or every one of a kind. */
static tsr_status add_item(const char *choice, const char *item, int n,
                           const tsr_device_info *list, int *chosen,
                           int *n_chosen, tsr_err *err)
{
    int gpus = strcmp(item, "all-gpu") == 0, before = *n_chosen;
    tsr_status status = TSR_OK;
    if (strcmp(item, "reference") == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "device.use: '%s': reference is no device; it "
                        "computes alone",
                        choice);
    if (!gpus && strcmp(item, "all") != 0) {
        int at = tsr_device_choose(item, n, list);
        return at < 0 ? tsr_device_unknown(item, n, list, err)
                      : add(choice, at, list, chosen, n_chosen, err);
    }
    for (int i = 0; i < n && status == TSR_OK; i++)
        if (!gpus || list[i].type == TSR_DEVICE_GPU)
            status = add(choice, i, list, chosen, n_chosen, err);
    if (status == TSR_OK && *n_chosen == before)
        status = tsr_device_unknown(item, n, list, err);
    return status;
}

tsr_status tsr_device_choose_many(const char *choice, int n,
                                  const tsr_device_info *list, int *chosen,
                                  int *n_chosen, tsr_err *err)
{
    const char *at = choice != NULL ? choice : "auto";
    tsr_status status = TSR_OK;
    *n_chosen = 0;
    for (int more = 1; more && status == TSR_OK;) {
        char item[256];
        size_t length = strcspn(at, ",");
        const char *next = at + length;
        more = *next == ',';
        while (length > 0 && isspace((unsigned char)*at))
            at++, length--;
        while (length > 0 && isspace((unsigned char)at[length - 1]))
            length--;
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        status = add_item(choice, item, n, list, chosen, n_chosen, err);
        at = next + more;
    }
    return status;
}

int tsr_device_is_alike(const tsr_device_info *a, const tsr_device_info *b)
{
    return strcmp(a->name, b->name) == 0 &&
           strcmp(a->platform, b->platform) == 0 &&
           strcmp(a->driver, b->driver) == 0 &&
           a->compute_units == b->compute_units;
}
