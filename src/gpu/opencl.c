/* Shared parts of all OpenCL code: names of error codes; objects of one owner;
 * programs from kernel sources (embedded, or from TSR_KERNEL_DIR), with the
 * compiler's log on failure; pinned memory for staging. This file also lists
 * the devices of all platforms, and chooses among them by an index, a part of a
 * name, gpu, cpu or auto. PoCL compiles into a folder and fails without a clear
 * message if the disk is full, so the folder is tested before PoCL is used. */
#include "gpu/opencl.h"

#include "core/parallel.h"
#include "files/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CL_ERRORS(X)                                \
    X(CL_DEVICE_NOT_FOUND)                          \
    X(CL_DEVICE_NOT_AVAILABLE)                      \
    X(CL_COMPILER_NOT_AVAILABLE)                    \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)             \
    X(CL_OUT_OF_RESOURCES)                          \
    X(CL_OUT_OF_HOST_MEMORY)                        \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)              \
    X(CL_MEM_COPY_OVERLAP)                          \
    X(CL_BUILD_PROGRAM_FAILURE)                     \
    X(CL_MAP_FAILURE)                               \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)              \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) \
    X(CL_COMPILE_PROGRAM_FAILURE)                   \
    X(CL_LINKER_NOT_AVAILABLE)                      \
    X(CL_LINK_PROGRAM_FAILURE)                      \
    X(CL_DEVICE_PARTITION_FAILED)                   \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)             \
    X(CL_INVALID_VALUE)                             \
    X(CL_INVALID_DEVICE_TYPE)                       \
    X(CL_INVALID_PLATFORM)                          \
    X(CL_INVALID_DEVICE)                            \
    X(CL_INVALID_CONTEXT)                           \
    X(CL_INVALID_QUEUE_PROPERTIES)                  \
    X(CL_INVALID_COMMAND_QUEUE)                     \
    X(CL_INVALID_HOST_PTR)                          \
    X(CL_INVALID_MEM_OBJECT)                        \
    X(CL_INVALID_BINARY)                            \
    X(CL_INVALID_BUILD_OPTIONS)                     \
    X(CL_INVALID_PROGRAM)                           \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                \
    X(CL_INVALID_KERNEL_NAME)                       \
    X(CL_INVALID_KERNEL_DEFINITION)                 \
    X(CL_INVALID_KERNEL)                            \
    X(CL_INVALID_ARG_INDEX)                         \
    X(CL_INVALID_ARG_VALUE)                         \
    X(CL_INVALID_ARG_SIZE)                          \
    X(CL_INVALID_KERNEL_ARGS)                       \
    X(CL_INVALID_WORK_DIMENSION)                    \
    X(CL_INVALID_WORK_GROUP_SIZE)                   \
    X(CL_INVALID_WORK_ITEM_SIZE)                    \
    X(CL_INVALID_GLOBAL_OFFSET)                     \
    X(CL_INVALID_EVENT_WAIT_LIST)                   \
    X(CL_INVALID_EVENT)                             \
    X(CL_INVALID_OPERATION)                         \
    X(CL_INVALID_BUFFER_SIZE)                       \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                  \
    X(CL_INVALID_PROPERTY)                          \
    X(CL_INVALID_COMPILER_OPTIONS)                  \
    X(CL_INVALID_LINKER_OPTIONS)                    \
    X(CL_INVALID_DEVICE_PARTITION_COUNT)

/* "CL_OUT_OF_RESOURCES", or "unknown OpenCL error". */
static const char *symbol(cl_int code)
{
    switch (code) {
#define CL_SYMBOL(name) \
    case name:          \
        return #name;
        CL_ERRORS(CL_SYMBOL)
#undef CL_SYMBOL
    case CL_SUCCESS:
        return "CL_SUCCESS";
    case -1001:
        return "CL_PLATFORM_NOT_FOUND_KHR";
    case -9999: /* NVIDIA's code for an invalid memory access of a kernel */
        return "illegal access in a kernel";
    default:
        return "unknown OpenCL error";
    }
}

tsr_status tsr_cl_fail(tsr_err *err, const tsr_device *device, const char *call,
                       cl_int code)
{
    return tsr_fail(err,
                    code == CL_OUT_OF_HOST_MEMORY ? TSR_E_NOMEM : TSR_E_DEVICE,
                    "%s%s%s: %s (%d)", device != NULL ? device->info.name : "",
                    device != NULL ? ": " : "", call, symbol(code), (int)code);
}

/* ---- objects of one owner ---- */

/* Records a new object, or the first failure. */
static void *record_object(tsr_cl *cl, const char *call, cl_int code, int kind,
                           void *object)
{
    cl->call = call;
    cl->code = code;
    if (code != CL_SUCCESS)
        return NULL;
    cl->object[cl->n].kind = kind;
    return cl->object[cl->n++].at = object;
}

/* 1 if another object can be created. */
static int can_continue(tsr_cl *cl)
{
    if (cl->code == CL_SUCCESS && cl->n == TSR_CL_OBJECTS)
        record_object(cl, "objects of one owner", CL_OUT_OF_HOST_MEMORY, 0,
                      NULL);
    return cl->code == CL_SUCCESS;
}

cl_command_queue tsr_cl_queue(tsr_cl *cl, cl_command_queue_properties with)
{
    cl_int code;
    if (!can_continue(cl))
        return NULL;
    cl_command_queue queue =
        clCreateCommandQueue(cl->device->context, cl->device->id, with, &code);
    return record_object(cl, "clCreateCommandQueue", code, TSR_CL_QUEUE, queue);
}

cl_kernel tsr_cl_kernel(tsr_cl *cl, const tsr_program *program,
                        const char *name)
{
    cl_int code;
    if (!can_continue(cl))
        return NULL;
    cl_kernel kernel = clCreateKernel(program->program, name, &code);
    return record_object(cl, "clCreateKernel", code, TSR_CL_KERNEL, kernel);
}

cl_mem tsr_cl_buffer(tsr_cl *cl, cl_mem_flags with, size_t bytes, void *from)
{
    cl_int code;
    if (!can_continue(cl))
        return NULL;
    cl_mem buffer = clCreateBuffer(
        cl->device->context, with | (from != NULL ? CL_MEM_COPY_HOST_PTR : 0),
        bytes, from, &code);
    return record_object(cl, "clCreateBuffer", code, TSR_CL_BUFFER, buffer);
}

void *tsr_cl_pinned(tsr_cl *cl, cl_command_queue queue, size_t bytes,
                    cl_mem *out)
{
    cl_int code;
    cl_mem buffer = tsr_cl_buffer(cl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  bytes, NULL);
    if (out != NULL)
        *out = buffer;
    if (!can_continue(cl))
        return NULL;
    void *at =
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                           0, bytes, 0, NULL, NULL, &code);
    cl->object[cl->n].queue = queue;
    cl->object[cl->n].buffer = buffer;
    return record_object(cl, "clEnqueueMapBuffer", code, TSR_CL_MAPPED, at);
}

tsr_status tsr_cl_check(const tsr_cl *cl, tsr_err *err)
{
    return tsr_cl_status(err, cl->device, cl->call, cl->code);
}

void tsr_cl_finish(const tsr_cl *cl)
{
    for (int i = 0; i < cl->n; i++)
        if (cl->object[i].kind == TSR_CL_QUEUE)
            clFinish(cl->object[i].at);
}

void tsr_cl_clear(tsr_cl *cl)
{
    tsr_cl_finish(cl);
    while (cl->n > 0) {
        void *at = cl->object[--cl->n].at;
        switch (cl->object[cl->n].kind) {
        case TSR_CL_QUEUE:
            clReleaseCommandQueue(at);
            break;
        case TSR_CL_KERNEL:
            clReleaseKernel(at);
            break;
        case TSR_CL_BUFFER:
            clReleaseMemObject(at);
            break;
        default:
            clEnqueueUnmapMemObject(cl->object[cl->n].queue,
                                    cl->object[cl->n].buffer, at, 0, NULL,
                                    NULL);
            clFinish(cl->object[cl->n].queue);
        }
    }
    *cl = (tsr_cl){.device = cl->device};
}

void tsr_cl_release_event(cl_event *event)
{
    if (*event != NULL)
        clReleaseEvent(*event);
    *event = NULL;
}

/* ---- programs ---- */

enum { MAX_SOURCES = 8 };

static uint64_t fnv1a(uint64_t hash, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash ^= (unsigned char)text[i];
        hash *= UINT64_C(1099511628211);
    }
    return hash;
}

/* TSR_KERNEL_DIR; NULL if not set or empty. */
static const char *kernel_folder(void)
{
    const char *dir = getenv("TSR_KERNEL_DIR");
    return dir != NULL && *dir != '\0' ? dir : NULL;
}

/* text [size] out: the file `name` of kernels/, from TSR_KERNEL_DIR if set,
 * else as embedded. *owned out: the caller frees it; NULL for an embedded file.
 */
static tsr_status read_source(const char *name, char **owned, const char **text,
                              size_t *size, tsr_err *err)
{
    const char *dir = kernel_folder();
    char path[1024];
    *owned = NULL;
    if (dir != NULL) {
        int n = snprintf(path, sizeof path, "%s/%s", dir, name);
        if (n < 0 || (size_t)n >= sizeof path)
            return tsr_fail(err, TSR_E_NOINPUT, "TSR_KERNEL_DIR is too long");
        const tsr_status status = tsr_file_read(path, owned, size, err);
        *text = *owned;
        return status == TSR_OK
                   ? TSR_OK
                   : tsr_wrap(err, TSR_E_NOINPUT, "TSR_KERNEL_DIR");
    }
    for (const tsr_kernel_source *s = tsr_kernel_sources; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0) {
            *text = s->text;
            *size = s->size;
            return TSR_OK;
        }
    return tsr_fail(err, TSR_E_INTERNAL, "no kernel source '%s'", name);
}

/* A message is cut after the first 2 KiB of the log, which contain the first
 * errors. */
static tsr_status build_fail(const tsr_device *device, cl_program program,
                             cl_int code, const char *options, tsr_err *err)
{
    size_t size = 0;
    char *log = NULL;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0,
                              NULL, &size) == CL_SUCCESS)
        log = calloc(size + 1, 1);
    if (log != NULL)
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size,
                              log, NULL);
    tsr_status status = tsr_fail(
        err, TSR_E_DEVICE, "%s: clBuildProgram: %s (options '%s'):\n%s",
        device->info.name, symbol(code), options, log != NULL ? log : "no log");
    free(log);
    return status;
}

tsr_status tsr_program_build(const tsr_device *device, int n,
                             const char *const *name, const char *options,
                             tsr_program *out, tsr_err *err)
{
    const char *text[MAX_SOURCES];
    char *owned[MAX_SOURCES] = {NULL};
    size_t size[MAX_SOURCES];
    tsr_status status = TSR_OK;
    cl_int code;
    *out = (tsr_program){.source_hash = UINT64_C(14695981039346656037)};
    if (n > MAX_SOURCES)
        return tsr_fail(err, TSR_E_INTERNAL, "%d kernel sources", n);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        status = read_source(name[i], &owned[i], &text[i], &size[i], err);
        if (status == TSR_OK)
            out->source_hash = fnv1a(out->source_hash, text[i], size[i]);
    }
    if (status == TSR_OK) {
        out->program = clCreateProgramWithSource(device->context, (cl_uint)n,
                                                 text, size, &code);
        if (out->program == NULL)
            status =
                tsr_cl_fail(err, device, "clCreateProgramWithSource", code);
    }
    if (status == TSR_OK) {
        code =
            clBuildProgram(out->program, 1, &device->id, options, NULL, NULL);
        if (code != CL_SUCCESS) {
            status = build_fail(device, out->program, code, options, err);
            tsr_program_clear(out);
        }
    }
    for (int i = 0; i < n; i++)
        free(owned[i]);
    return status;
}

void tsr_program_describe(const tsr_program *program, const tsr_device *device,
                          const char *options, char *text, size_t size)
{
    snprintf(text, size, "%.120s, driver %.60s; source %016llx%s; %s",
             device->info.name, device->info.driver,
             (unsigned long long)program->source_hash,
             kernel_folder() != NULL ? " from TSR_KERNEL_DIR" : "", options);
}

void tsr_program_clear(tsr_program *program)
{
    if (program->program != NULL)
        clReleaseProgram(program->program);
    program->program = NULL;
}

/* ---- devices ---- */

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64 };

typedef struct {
    cl_platform_id platform;
    cl_device_id id;
} device_handle;

const char *tsr_device_type_name(tsr_device_type type)
{
    static const char *const name[] = {"GPU", "accelerator", "CPU", "other"};
    return name[type];
}

static void get_text(cl_device_id id, cl_device_info what, char *text,
                     size_t size)
{
    if (clGetDeviceInfo(id, what, size, text, NULL) != CL_SUCCESS)
        snprintf(text, size, "unknown");
    text[size - 1] = '\0';
}

/* Name of a platform. */
static void get_platform(cl_platform_id platform, char name[128])
{
    memset(name, 0, 128);
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, 127, name, NULL) !=
        CL_SUCCESS)
        snprintf(name, 128, "unknown");
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

/* A number of 4 or 8 bytes; 0: unknown. */
static uint64_t get_number(cl_device_id id, cl_device_info what)
{
    cl_ulong number = 0;
    cl_uint half;
    size_t size = 0;
    if (clGetDeviceInfo(id, what, sizeof number, &number, &size) != CL_SUCCESS)
        return 0;
    memcpy(&half, &number, sizeof half);
    return size == sizeof half ? half : number;
}

static void get_info(const device_handle *handle, int index,
                     tsr_device_info *info)
{
    cl_device_id id = handle->id;
    const uint64_t type = get_number(id, CL_DEVICE_TYPE);
    *info = (tsr_device_info){
        .index = index,
        .type = type & CL_DEVICE_TYPE_GPU           ? TSR_DEVICE_GPU
                : type & CL_DEVICE_TYPE_ACCELERATOR ? TSR_DEVICE_ACCELERATOR
                : type & CL_DEVICE_TYPE_CPU         ? TSR_DEVICE_CPU
                                                    : TSR_DEVICE_OTHER,
        .compute_units = (int)get_number(id, CL_DEVICE_MAX_COMPUTE_UNITS),
        .clock_mhz = (int)get_number(id, CL_DEVICE_MAX_CLOCK_FREQUENCY),
        .float_width = (int)get_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
        .max_work_group = (int)get_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE),
        .global_bytes = get_number(id, CL_DEVICE_GLOBAL_MEM_SIZE),
        .max_alloc_bytes = get_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        .local_bytes = get_number(id, CL_DEVICE_LOCAL_MEM_SIZE),
        .has_double = has_extension(id, "cl_khr_fp64"),
        .has_int64_atomics = has_extension(id, "cl_khr_int64_base_atomics"),
        .is_unified = get_number(id, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE};
    get_text(id, CL_DEVICE_NAME, info->name, sizeof info->name);
    get_text(id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    get_text(id, CL_DEVICE_VERSION, info->version, sizeof info->version);
    get_platform(handle->platform, info->platform);
}

/* ---- PoCL's kernel cache ---- */

/* The folder in which PoCL compiles kernels (its lib/CL/pocl_cache.c), or the
 * part of the path that exists already; PoCL creates the rest. */
static void find_cache(char path[4096])
{
    const char *cache = getenv("POCL_CACHE_DIR"), *home = getenv("HOME");
    const char *xdg = getenv("XDG_CACHE_HOME");
    struct stat info;
    if (cache != NULL)
        snprintf(path, 4096, "%s", cache);
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

/* On a full disk PoCL fails without a reason, or its LLVM ends the process,
 * even if all kernels are cached. So a file several times the size of one
 * kernel (1.1 MiB was measured) is written into the folder and removed again.
 */
static tsr_status check_cache(tsr_err *err)
{
    const size_t needed = 4 << 20;
    char folder[4096], file[4160] = "";
    find_cache(folder);
    snprintf(file, sizeof file, "%s/tessera-XXXXXX", folder);
    int fd = mkstemp(file);
    int code = fd < 0 ? errno : 0;
    for (size_t n = 0; n < needed && code == 0;) {
        const ssize_t written = write(fd, file, sizeof file);
        n += written > 0 ? (size_t)written : 0;
        if (written <= 0) /* a shorter write is repeated, to learn why */
            code = written < 0 ? errno : ENOSPC;
    }
    if (fd >= 0) {
        close(fd);
        unlink(file);
    }
    if (code == 0)
        return TSR_OK;
    return tsr_fail(
        err, TSR_E_DEVICE,
        "PoCL, the OpenCL driver of this CPU, needs %d MiB to compile kernels "
        "in '%s': %s; free space there, or name another folder in the "
        "environment, as POCL_CACHE_DIR=/tmp/pocl, or use --device reference",
        (int)(needed >> 20), folder, strerror(code));
}

/* ---- listing ---- */

/* Appends the usable devices of one platform. */
static cl_int find_on_platform(cl_platform_id platform,
                               device_handle handle[MAX_DEVICES], int *n)
{
    cl_device_id id[MAX_DEVICES];
    cl_uint n_id = 0;
    cl_int code =
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, id, &n_id);
    if (code != CL_SUCCESS)
        return code;
    for (cl_uint d = 0; d < n_id && d < MAX_DEVICES && *n < MAX_DEVICES; d++) {
        if (get_number(id[d], CL_DEVICE_AVAILABLE) &&
            get_number(id[d], CL_DEVICE_COMPILER_AVAILABLE))
            handle[(*n)++] = (device_handle){platform, id[d]};
    }
    return CL_SUCCESS;
}

/* The error for an empty list. A driver that fails needs another remedy than a
 * missing driver. */
static tsr_status no_device(cl_int code, cl_uint n_platform,
                            const cl_platform_id *platform, cl_int why,
                            tsr_err *err)
{
    char name[128];
    if (n_platform == 0)
        return tsr_fail(
            err, TSR_E_DEVICE,
            "no OpenCL device: the ICD loader (libOpenCL.so.1) found no "
            "platform (clGetPlatformIDs: %s); install the driver of your GPU, "
            "or PoCL to compute on the CPU (apt-get install pocl-opencl-icd or "
            "pip install \"tessera-saxs[cpu]\"), or use --device reference",
            symbol(code));
    get_platform(*platform, name);
    return tsr_fail(
        err, TSR_E_DEVICE,
        "no OpenCL device: %u platform%s installed (%s), but none has a usable "
        "device (clGetDeviceIDs: %s (%d)); a GPU needs its kernel driver, and "
        "permission on its device files; or use --device reference",
        (unsigned)n_platform, n_platform == 1 ? " is" : "s are", name,
        symbol(why), (int)why);
}

static tsr_status find_all(device_handle handle[MAX_DEVICES], int *n,
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
        char name[128];
        get_platform(platform[p], name);
        if (strcmp(name, "Portable Computing Language") == 0 &&
            check_cache(&no_cache) != TSR_OK)
            continue; /* a GPU can work without PoCL */
        cl_int result = find_on_platform(platform[p], handle, n);
        if (result != CL_SUCCESS && result != CL_DEVICE_NOT_FOUND)
            why = result; /* more informative than "device not found" */
    }
    if (*n == 0 && no_cache.status != TSR_OK)
        return tsr_fail(err, no_cache.status, "%s", no_cache.message);
    return *n > 0 ? TSR_OK : no_device(code, n_platform, platform, why, err);
}

/* As tsr_device_list, with the OpenCL handles. */
static tsr_status list_handles(device_handle handle[MAX_DEVICES],
                               tsr_device_info **list, int *n, tsr_err *err)
{
    *list = NULL;
    TSR_TRY(find_all(handle, n, err));
    *list = calloc((size_t)*n + 1, sizeof **list);
    TSR_TRY(tsr_allocated(*list, err));
    for (int i = 0; i < *n; i++)
        get_info(&handle[i], i, &(*list)[i]);
    return TSR_OK;
}

int tsr_device_has_driver(void)
{
    cl_uint n = 0;
    clGetPlatformIDs(0, NULL, &n);
    return n > 0;
}

tsr_status tsr_device_list(tsr_device_info **list, int *n, tsr_err *err)
{
    device_handle handle[MAX_DEVICES];
    return list_handles(handle, list, n, err);
}

/* Error: no device of the list matches. */
static tsr_status fail_unknown(const char *choice, int n,
                               const tsr_device_info *list, tsr_err *err)
{
    char listing[1024] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof listing - 1; i++) {
        int more = snprintf(listing + used, sizeof listing - used,
                            "%s%d: %s (%s)", i > 0 ? "; " : "", i, list[i].name,
                            tsr_device_type_name(list[i].type));
        used += more > 0 ? (size_t)more : 0;
    }
    return tsr_fail(
        err, TSR_E_DEVICE,
        "no OpenCL device matches '%s'; devices: %s. Give auto, cpu, gpu, "
        "all-gpu, all, an index, part of a name or a list like 0,1",
        choice, listing);
}

tsr_status tsr_device_open(const char *choice, tsr_device **out, tsr_err *err)
{
    device_handle handle[MAX_DEVICES];
    tsr_device_info *list = NULL;
    tsr_device *device = NULL;
    int n = 0, at = 0;
    cl_int code;
    *out = NULL;
    TSR_TRY(list_handles(handle, &list, &n, err));
    tsr_status status = TSR_OK;
    if ((at = tsr_device_choose(choice, n, list)) < 0) {
        status = fail_unknown(choice, n, list, err);
    } else {
        device = calloc(1, sizeof *device);
        status = tsr_allocated(device, err);
    }
    if (status == TSR_OK && device != NULL) {
        cl_context_properties with[] = {
            CL_CONTEXT_PLATFORM, (cl_context_properties)handle[at].platform, 0};
        device->info = list[at];
        device->id = handle[at].id;
        device->context =
            clCreateContext(with, 1, &device->id, NULL, NULL, &code);
        if (device->context == NULL)
            status = tsr_cl_fail(err, device, "clCreateContext", code);
    }
    free(list);
    TSR_HAND_OVER(status, device, out, free);
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

/* ---- choice of devices ---- */

/* 1 if `part` is a part of the device's name, in any case. */
static int is_named(const tsr_device_info *info, const char *part)
{
    for (const char *text = info->name; *text != '\0'; text++) {
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
        if (is_named(&list[i], choice))
            return i;
    return -1;
}

static tsr_status add_device(const char *choice, int at,
                             const tsr_device_info *list, int *chosen,
                             int *n_chosen, tsr_err *err)
{
    for (int i = 0; i < *n_chosen; i++)
        if (chosen[i] == at)
            return tsr_fail(
                err, TSR_E_CONFIG,
                "device.use: '%s' names device %d (%s) twice; name each once",
                choice, at, list[at].name);
    chosen[(*n_chosen)++] = at;
    return TSR_OK;
}

/* One item of the list: a device, or all devices of a kind. */
static tsr_status add_item(const char *choice, const char *item, int n,
                           const tsr_device_info *list, int *chosen,
                           int *n_chosen, tsr_err *err)
{
    int gpus = strcmp(item, "all-gpu") == 0, before = *n_chosen;
    if (strcmp(item, "reference") == 0)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "device.use: '%s': reference cannot be combined with devices",
            choice);
    if (!gpus && strcmp(item, "all") != 0) {
        int at = tsr_device_choose(item, n, list);
        return at < 0 ? fail_unknown(item, n, list, err)
                      : add_device(choice, at, list, chosen, n_chosen, err);
    }
    for (int i = 0; i < n; i++)
        if (!gpus || list[i].type == TSR_DEVICE_GPU)
            TSR_TRY(add_device(choice, i, list, chosen, n_chosen, err));
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

/* ---- staging ---- */

tsr_status tsr_staging_make(tsr_staging *s, const tsr_device *device,
                            cl_command_queue queue, tsr_err *err)
{
    const int n = tsr_parallel_processors();
    *s = (tsr_staging){.cl = {.device = device},
                       .queue = queue,
                       .n_thread =
                           n < TSR_STAGING_THREADS ? n : TSR_STAGING_THREADS};
    s->at = tsr_cl_pinned(
        &s->cl, queue,
        (size_t)s->n_thread * TSR_STAGING_SLOTS * TSR_STAGING_BYTES, NULL);
    return tsr_cl_check(&s->cl, err);
}

/* Waits until the slot of a thread is free. */
static void wait_slot(tsr_staging *s, int thread, int slot)
{
    cl_event *sent = &s->lane[thread].sent[slot];
    cl_ulong from = 0, to = 0;
    if (*sent == NULL)
        return;
    clWaitForEvents(1, sent);
    clGetEventProfilingInfo(*sent, CL_PROFILING_COMMAND_START, sizeof from,
                            &from, NULL);
    clGetEventProfilingInfo(*sent, CL_PROFILING_COMMAND_END, sizeof to, &to,
                            NULL);
    s->lane[thread].seconds += to > from ? 1e-9 * (double)(to - from) : 0.0;
    clReleaseEvent(*sent);
    *sent = NULL;
}

double tsr_staging_wait(tsr_staging *s)
{
    double seconds = 0.0;
    for (int t = 0; t < s->n_thread; t++) {
        for (int slot = 0; slot < TSR_STAGING_SLOTS; slot++)
            wait_slot(s, t, slot);
        seconds += s->lane[t].seconds;
        s->lane[t].seconds = 0.0;
    }
    return seconds;
}

void tsr_staging_clear(tsr_staging *s)
{
    tsr_staging_wait(s);
    tsr_cl_clear(&s->cl);
    *s = (tsr_staging){0};
}

typedef struct {
    tsr_staging *staging;
    cl_mem to;
    size_t n, size, each; /* elements; bytes of one; elements of a piece */
    tsr_staging_fill fill;
    void *context;
} staging_job;

static void send_piece(void *context, int part, int thread)
{
    const staging_job *d = context;
    tsr_staging *s = d->staging;
    if (s->lane[thread].code != CL_SUCCESS)
        return;
    const int slot = s->lane[thread].next++ % TSR_STAGING_SLOTS;
    const size_t first = (size_t)part * d->each;
    const size_t n = d->n - first < d->each ? d->n - first : d->each;
    char *at = s->at + ((size_t)thread * TSR_STAGING_SLOTS + (size_t)slot) *
                           TSR_STAGING_BYTES;
    wait_slot(s, thread, slot);
    d->fill(d->context, first, n, at);
    s->lane[thread].code = clEnqueueWriteBuffer(
        s->queue, d->to, CL_FALSE, first * d->size, n * d->size, at, 0, NULL,
        &s->lane[thread].sent[slot]);
    clFlush(s->queue);
}

tsr_status tsr_staging_send(tsr_staging *s, cl_mem to, size_t n, size_t size,
                            tsr_staging_fill fill, void *context, tsr_err *err)
{
    staging_job d = {.staging = s,
                     .to = to,
                     .n = n,
                     .size = size,
                     .each = TSR_STAGING_BYTES / size,
                     .fill = fill,
                     .context = context};
    for (int t = 0; t < s->n_thread; t++) {
        s->lane[t].code = CL_SUCCESS;
        s->lane[t].next = 0;
    }
    tsr_parallel_run((int)((n + d.each - 1) / d.each), s->n_thread, send_piece,
                     &d);
    tsr_status status = TSR_OK;
    for (int t = 0; t < s->n_thread; t++)
        TSR_THEN(status,
                 tsr_cl_status(err, s->cl.device, "clEnqueueWriteBuffer",
                               s->lane[t].code));
    return status;
}
