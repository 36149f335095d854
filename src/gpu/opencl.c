/* What every use of OpenCL here shares: names of error codes, the texts of
 * kernels (embedded, or from TSR_KERNEL_DIR), and building a program, with the
 * compiler's whole log where it fails. */
#include "gpu/opencl.h"

#include "files/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *tsr_cl_symbol(cl_int code)
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
    case -9999: /* NVIDIA's: a kernel read or wrote where it must not */
        return "illegal access in a kernel";
    default:
        return "unknown OpenCL error";
    }
}

tsr_status tsr_cl_fail(tsr_err *err, const tsr_device *device, const char *call,
                       cl_int code)
{
    return tsr_fail(
        err, code == CL_OUT_OF_HOST_MEMORY ? TSR_E_NOMEM : TSR_E_DEVICE,
        "%s%s%s: %s (%d)", device != NULL ? device->info.name : "",
        device != NULL ? ": " : "", call, tsr_cl_symbol(code), (int)code);
}

enum { MAX_SOURCES = 8 };

static uint64_t fnv1a(uint64_t hash, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash ^= (unsigned char)text[i];
        hash *= UINT64_C(1099511628211);
    }
    return hash;
}

/* why: the environment variable that names the file. */
static tsr_status read_text(const char *path, const char *why, char **text,
                            size_t *size, tsr_err *err)
{
    const tsr_status status = tsr_file_read(path, text, size, err);
    return status == TSR_OK ? TSR_OK : tsr_wrap(err, TSR_E_NOINPUT, "%s", why);
}

const char *tsr_program_folder(void)
{
    const char *dir = getenv("TSR_KERNEL_DIR");
    return dir != NULL && *dir != '\0' ? dir : NULL;
}

static tsr_status find_text(const char *name, const char **text, size_t *size,
                            char **owned, tsr_err *err)
{
    const char *dir = tsr_program_folder();
    *owned = NULL;
    if (dir != NULL) {
        char path[1024];
        int n = snprintf(path, sizeof path, "%s/%s", dir, name);
        if (n < 0 || (size_t)n >= sizeof path)
            return tsr_fail(err, TSR_E_NOINPUT, "TSR_KERNEL_DIR is too long");
        tsr_status status = read_text(path, "TSR_KERNEL_DIR", owned, size, err);
        *text = *owned;
        return status;
    }
    for (const tsr_kernel_source *s = tsr_kernel_sources; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0) {
            *text = s->text;
            *size = s->size;
            return TSR_OK;
        }
    return tsr_fail(err, TSR_E_INTERNAL, "no kernel source '%s'", name);
}

tsr_status tsr_program_text(const char *name, const char *path, char **out,
                            tsr_err *err)
{
    const char *text = NULL;
    size_t size = 0;
    *out = NULL;
    if (path != NULL)
        return read_text(path, "TESSERA_TUNING", out, &size, err);
    tsr_status status = find_text(name, &text, &size, out, err);
    if (status || *out != NULL)
        return status;
    *out = malloc(size + 1);
    if (*out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for '%s'", name);
    memcpy(*out, text, size);
    (*out)[size] = '\0';
    return TSR_OK;
}

/* The first errors of a log say what failed; a message holds 2 KiB of it. */
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
    tsr_status status = tsr_fail(err, TSR_E_DEVICE,
                                 "%s: clBuildProgram: %s (options '%s'):\n%s",
                                 device->info.name, tsr_cl_symbol(code),
                                 options, log != NULL ? log : "no log");
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
        status = find_text(name[i], &text[i], &size[i], &owned[i], err);
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

void tsr_program_clear(tsr_program *program)
{
    if (program->program != NULL)
        clReleaseProgram(program->program);
    program->program = NULL;
}
