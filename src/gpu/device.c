/* Lists the devices of all platforms and chooses by words: an index, a part of
 * a name, gpu, cpu, auto. PoCL compiles into a folder and says little where
 * that has no room, so the folder is tried before. */
#include "gpu/device.h"

#include "gpu/opencl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64 };

typedef struct {
    cl_platform_id platform;
    cl_device_id id;
} device_place;

const char *tsr_device_type_name(tsr_device_type type)
{
    switch (type) {
    case TSR_DEVICE_GPU:
        return "GPU";
    case TSR_DEVICE_ACCELERATOR:
        return "accelerator";
    case TSR_DEVICE_CPU:
        return "CPU";
    default:
        return "other";
    }
}

static void get_text(cl_device_id id, cl_device_info what, char *text,
                     size_t size)
{
    if (clGetDeviceInfo(id, what, size, text, NULL) != CL_SUCCESS)
        snprintf(text, size, "unknown");
    text[size - 1] = '\0';
}

static int has_extension(cl_device_id id, const char *name)
{
    size_t size = 0, length = strlen(name);
    int found = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &size) != CL_SUCCESS)
        return 0;
    char *text = calloc(size + 1, 1);
    if (text != NULL && clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, size, text,
                                        NULL) == CL_SUCCESS)
        for (const char *at = text; !found && (at = strstr(at, name)) != NULL;
             at += length)
            found = at[length] == ' ' || at[length] == '\0';
    free(text);
    return found;
}

static void get_info(const device_place *place, int index,
                     tsr_device_info *info)
{
    cl_device_id id = place->id;
    cl_device_type type = 0;
    cl_uint units = 0, clock = 0, width = 0;
    cl_ulong global = 0, alloc = 0, local = 0;
    cl_bool unified = CL_FALSE;
    size_t group = 0;
    *info = (tsr_device_info){.index = index};
    get_text(id, CL_DEVICE_NAME, info->name, sizeof info->name);
    get_text(id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    get_text(id, CL_DEVICE_VERSION, info->version, sizeof info->version);
    if (clGetPlatformInfo(place->platform, CL_PLATFORM_NAME,
                          sizeof info->platform - 1, info->platform, NULL))
        snprintf(info->platform, sizeof info->platform, "unknown");
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units,
                    NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof clock, &clock,
                    NULL);
    clGetDeviceInfo(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof width,
                    &width, NULL);
    clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global,
                    NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof alloc, &alloc,
                    NULL);
    clGetDeviceInfo(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group,
                    NULL);
    clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified,
                    NULL);
    info->type = type & CL_DEVICE_TYPE_GPU           ? TSR_DEVICE_GPU
                 : type & CL_DEVICE_TYPE_ACCELERATOR ? TSR_DEVICE_ACCELERATOR
                 : type & CL_DEVICE_TYPE_CPU         ? TSR_DEVICE_CPU
                                                     : TSR_DEVICE_OTHER;
    info->compute_units = (int)units;
    info->clock_mhz = (int)clock;
    info->float_width = (int)width;
    info->max_work_group = (int)group;
    info->global_bytes = global;
    info->max_alloc_bytes = alloc;
    info->local_bytes = local;
    info->has_double = has_extension(id, "cl_khr_fp64");
    info->has_int64_atomics = has_extension(id, "cl_khr_int64_base_atomics");
    info->is_unified = unified == CL_TRUE;
}

/* ---- PoCL's kernel cache ---- */

/* Where PoCL compiles kernels (its lib/CL/pocl_cache.c), or as much of that as
 * is there yet: PoCL makes the rest. */
static void find_cache(char path[4096])
{
    const char *own = getenv("POCL_CACHE_DIR"), *home = getenv("HOME");
    const char *xdg = getenv("XDG_CACHE_HOME");
    struct stat info;
    if (own != NULL)
        snprintf(path, 4096, "%s", own);
    else if (xdg != NULL && *xdg != '\0')
        snprintf(path, 4096, "%s/pocl/kcache", xdg);
    else if (home != NULL)
        snprintf(path, 4096, "%s/.cache/pocl/kcache", home);
    else
        snprintf(path, 4096, "/tmp/pocl/kcache");
    while (stat(path, &info) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) {
            snprintf(path, 4096, slash == NULL ? "." : "/");
            return;
        }
        *slash = '\0';
    }
}

/* Without room for what it compiles, even where all is in the cache, PoCL fails
 * without a reason, or its LLVM ends the process. So a file as large as several
 * times what one kernel takes (1.1 MiB was measured) is made there and removed.
 */
static tsr_status check_cache(tsr_err *err)
{
    const off_t room = 4 << 20;
    char folder[4096], file[4160];
    find_cache(folder);
    snprintf(file, sizeof file, "%s/tessera-XXXXXX", folder);
    int fd = mkstemp(file);
    int code = fd < 0 ? errno : posix_fallocate(fd, 0, room);
    if (fd >= 0) {
        close(fd);
        unlink(file);
    }
    if (code == 0 || code == EINVAL || code == EOPNOTSUPP) /* cannot be told */
        return TSR_OK;
    return tsr_fail(err, TSR_E_DEVICE,
                    "PoCL, the OpenCL of this CPU, needs %d MiB to compile "
                    "kernels in '%s': %s; make room there, or name another "
                    "folder in the environment, as POCL_CACHE_DIR=/tmp/pocl, "
                    "or use --device reference",
                    (int)(room >> 20), folder, strerror(code));
}

static int is_pocl(cl_platform_id platform)
{
    char name[128] = "";
    return clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name,
                             NULL) == CL_SUCCESS &&
           strcmp(name, "Portable Computing Language") == 0;
}

/* ---- what there is ---- */

/* Devices of one platform that can be used, after the *n there are. */
static cl_int find_on(cl_platform_id platform, device_place place[MAX_DEVICES],
                      int *n)
{
    cl_device_id id[MAX_DEVICES];
    cl_uint n_id = 0;
    cl_int code =
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, id, &n_id);
    if (code != CL_SUCCESS)
        return code;
    for (cl_uint d = 0; d < n_id && d < MAX_DEVICES && *n < MAX_DEVICES; d++) {
        cl_bool usable = CL_FALSE, compiler = CL_FALSE;
        clGetDeviceInfo(id[d], CL_DEVICE_AVAILABLE, sizeof usable, &usable,
                        NULL);
        clGetDeviceInfo(id[d], CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler,
                        &compiler, NULL);
        if (usable && compiler)
            place[(*n)++] = (device_place){platform, id[d]};
    }
    return CL_SUCCESS;
}

/* A driver that is there and fails wants another remedy than one that is not.
 */
static tsr_status no_device(cl_int code, cl_uint n_platform,
                            const cl_platform_id *platform, cl_int why,
                            tsr_err *err)
{
    char name[128] = "unknown";
    if (n_platform == 0)
        return tsr_fail(
            err, TSR_E_DEVICE,
            "no OpenCL device: the ICD loader (libOpenCL.so.1) found no "
            "platform (clGetPlatformIDs: %s); install the driver of your GPU, "
            "or PoCL to compute on the CPU (apt-get install pocl-opencl-icd), "
            "or use --device reference",
            tsr_cl_symbol(code));
    if (clGetPlatformInfo(*platform, CL_PLATFORM_NAME, sizeof name - 1, name,
                          NULL) != CL_SUCCESS)
        snprintf(name, sizeof name, "unknown");
    return tsr_fail(
        err, TSR_E_DEVICE,
        "no OpenCL device: %u platform%s installed (%s), but none has a usable "
        "device (clGetDeviceIDs: %s (%d)); a GPU needs its kernel driver, and "
        "permission on its device files; or use --device reference",
        (unsigned)n_platform, n_platform == 1 ? " is" : "s are", name,
        tsr_cl_symbol(why), (int)why);
}

static tsr_status find_all(device_place place[MAX_DEVICES], int *n,
                           tsr_err *err)
{
    cl_platform_id platform[MAX_PLATFORMS];
    cl_uint n_platform = 0;
    cl_int code = clGetPlatformIDs(MAX_PLATFORMS, platform, &n_platform);
    cl_int why = CL_DEVICE_NOT_FOUND;
    tsr_err no_cache = {0};
    *n = 0;
    if (code != CL_SUCCESS)
        n_platform = 0;
    if (n_platform > MAX_PLATFORMS)
        n_platform = MAX_PLATFORMS;
    for (cl_uint p = 0; p < n_platform; p++) {
        if (is_pocl(platform[p]) && check_cache(&no_cache) != TSR_OK)
            continue; /* a GPU can do without */
        cl_int own = find_on(platform[p], place, n);
        if (own != CL_SUCCESS && own != CL_DEVICE_NOT_FOUND)
            why = own; /* says more than that there is none */
    }
    if (*n == 0 && no_cache.status != TSR_OK)
        return tsr_fail(err, no_cache.status, "%s", no_cache.message);
    return *n > 0 ? TSR_OK : no_device(code, n_platform, platform, why, err);
}

tsr_status tsr_device_list(tsr_device_info **list, int *n, tsr_err *err)
{
    device_place place[MAX_DEVICES];
    *list = NULL;
    TSR_TRY(find_all(place, n, err));
    *list = calloc((size_t)*n + 1, sizeof **list);
    if (*list == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d devices", *n);
    for (int i = 0; i < *n; i++)
        get_info(&place[i], i, &(*list)[i]);
    return TSR_OK;
}

/* Nothing in the list answers to this. */
static tsr_status fail_unknown(const char *choice, int n,
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

tsr_status tsr_device_open(const char *choice, tsr_device **out, tsr_err *err)
{
    device_place place[MAX_DEVICES];
    tsr_device_info *list = NULL;
    int n = 0, at;
    cl_int code;
    *out = NULL;
    tsr_status status = tsr_device_list(&list, &n, err);
    if (status != TSR_OK)
        return status;
    at = tsr_device_choose(choice, n, list);
    if (at < 0) {
        status = fail_unknown(choice, n, list, err);
        free(list);
        return status;
    }
    status = find_all(place, &n, err);
    if (status == TSR_OK && at >= n)
        status = tsr_fail(err, TSR_E_DEVICE, "device %d has gone", at);
    tsr_device *device = status ? NULL : calloc(1, sizeof *device);
    TSR_THEN(status, tsr_allocated(device, err));
    if (status == TSR_OK) {
        device->info = list[at];
        device->platform = place[at].platform;
        device->id = place[at].id;
        cl_context_properties with[] = {
            CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
        device->context =
            clCreateContext(with, 1, &device->id, NULL, NULL, &code);
        if (device->context == NULL) {
            status = tsr_cl_fail(err, device, "clCreateContext", code);
            free(device);
        } else {
            *out = device;
        }
    }
    free(list);
    return status;
}

void tsr_device_free(tsr_device *device)
{
    if (device == NULL)
        return;
    clReleaseContext(device->context);
    free(device);
}

const tsr_device_info *tsr_device_get_info(const tsr_device *device)
{
    return &device->info;
}

int tsr_device_describe(const tsr_device_info *info, char *text, size_t size)
{
    const double mib = 1.0 / (1024.0 * 1024.0);
    return snprintf(
        text, size,
        "%s (%s), %s, driver %s, %d compute units, %.0f MiB "
        "(%.0f MiB a buffer, %.0f KiB local)%s",
        info->name, tsr_device_type_name(info->type), info->platform,
        info->driver, info->compute_units, (double)info->global_bytes * mib,
        (double)info->max_alloc_bytes * mib, (double)info->local_bytes / 1024.0,
        info->has_double ? ", double precision" : "");
}

/* Which devices a user means. */

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
    if (strcmp(item, "reference") == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "device.use: '%s': reference is no device; it "
                        "computes alone",
                        choice);
    if (!gpus && strcmp(item, "all") != 0) {
        int at = tsr_device_choose(item, n, list);
        return at < 0 ? fail_unknown(item, n, list, err)
                      : add(choice, at, list, chosen, n_chosen, err);
    }
    for (int i = 0; i < n; i++)
        if (!gpus || list[i].type == TSR_DEVICE_GPU)
            TSR_TRY(add(choice, i, list, chosen, n_chosen, err));
    if (*n_chosen == before)
        TSR_TRY(fail_unknown(item, n, list, err));
    return TSR_OK;
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
