/* The seal, verified reading, and writing through a file driver that never
 * fails. */
#define _GNU_SOURCE /* for mkostemps */
#include "store/hdf5_store.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
/* Before 1.10.7 a program cannot switch the locks of HDF5 off, but its user
 * can, by the variable HDF5_USE_FILE_LOCKING=FALSE. */
#if !H5_VERSION_GE(1, 10, 7)
#define H5Pset_file_locking(access, use, ignore) 0
#endif

#include "core/parallel.h"
#include "core/text.h"
#include "files/checksum.h"
#include "files/lock.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4096, SEAL = 64, PIECE = 1 << 20 };

/* Property list for opening a file. HDF5's own file locks are off, because
 * run.lock excludes other writers. Version bounds are those of netCDF. Closing
 * a file closes all its objects. */
static hid_t access_list(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    if (access >= 0 && (H5Pset_file_locking(access, 0, 1) < 0 ||
                        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
                        H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST,
                                             H5F_LIBVER_V18) < 0)) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

static hid_t open_hdf5(const char *path)
{
    hid_t access = access_list();
    hid_t file = access >= 0 ? H5Fopen(path, H5F_ACC_RDONLY, access) : access;

    tsr_hdf5_close(access);
    return file;
}

/* ---- the seal ----
 *
 * The sum is over blocks of 4096 bytes. Each block contributes the checksum of
 * its number and its bytes, or 0 if all its bytes are 0. A change of a single
 * word is always detected, other changes with probability 1 - 2^-64. */

static void write_seal(size_t size, uint64_t sum, char seal[SEAL + 1])
{
    const int n = snprintf(seal, SEAL + 1,
                           "\ntessera: %16zu bytes, page sum %016" PRIx64 "\n",
                           size, sum);
    memset(seal + n, ' ', SEAL - (size_t)n);
    seal[SEAL] = '\0';
}

typedef struct {
    int fd, copy;
    size_t n;
    atomic_int failed; /* 0 or an errno */
    _Atomic uint64_t sum;
} block_sum;

static void sum_piece(void *context, int i, int thread)
{
    static const unsigned char zero[BLOCK];
    block_sum *s = context;
    const size_t at = (size_t)i * PIECE;
    const size_t n = s->n - at < PIECE ? s->n - at : PIECE;
    unsigned char *piece = calloc(1, PIECE);
    int failed = piece == NULL ? ENOMEM : 0;
    uint64_t sum = 0;
    (void)thread;
    if (failed == 0)
        failed = tsr_file_read_at(s->fd, piece, n, at);
    if (failed == 0 && s->copy >= 0)
        failed = tsr_file_write_at(s->copy, piece, n, at);
    for (size_t k = 0; k < n && failed == 0; k += BLOCK)
        if (memcmp(piece + k, zero, BLOCK) != 0)
            sum += tsr_checksum((at + k) / BLOCK + 1, piece + k, BLOCK);
    s->sum += sum;
    if (failed != 0)
        s->failed = failed;
    free(piece);
}

/* The sum over the first n bytes of a file, which are also copied to the file
 * `copy` (< 0: no copy). Returns 0 or an errno. */
static int sum_blocks(int fd, size_t n, int copy, uint64_t *sum)
{
    block_sum s = {.fd = fd, .copy = copy, .n = n};
    tsr_parallel_run((int)((n + PIECE - 1) / PIECE), tsr_parallel_processors(),
                     sum_piece, &s);
    *sum = s.sum;
    return s.failed;
}

/* Reads the seal in the last bytes of a file of `size` bytes. Returns 0 if
 * there is no valid seal. */
static int read_seal(int fd, size_t size, uint64_t *sum)
{
    char seal[SEAL + 1] = "", same[SEAL + 1];
    size_t length = 0;

    if (size < SEAL || tsr_file_read_at(fd, seal, SEAL, size - SEAL) != 0 ||
        sscanf(seal, " tessera: %zu bytes, page sum %" SCNx64, &length, sum) !=
            2 ||
        length != size - SEAL)
        return 0;
    write_seal(length, *sum, same);
    return memcmp(same, seal, SEAL) == 0;
}

/* ---- files without a seal ----
 *
 * HDF5 1.10 crashes on some damaged files, and never returns from others (a
 * damaged heap of texts). A child process therefore reads the whole file first;
 * if the child crashes or takes too long, the file is reported as damaged. */

enum { FEWEST_SECONDS = 3, MOST_SECONDS = 60 }; /* of processor */

/* Reads an attribute. Allocates one value more than needed, and frees nothing,
 * because the child process ends soon. */
static herr_t check_attribute(hid_t object, const char *name,
                              const H5A_info_t *info, void *context)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = H5Tget_native_type(H5Aget_type(attribute), H5T_DIR_DEFAULT);
    const hssize_t n = H5Sget_simple_extent_npoints(H5Aget_space(attribute));
    (void)info, (void)context;

    if (type < 0 || n < 0 || n > PIECE)
        return -1;
    void *value = calloc((size_t)n + 1, H5Tget_size(type) + 1);
    return value != NULL && H5Aread(attribute, type, value) >= 0 ? 0 : -1;
}

static herr_t check_scale(hid_t data, unsigned axis, hid_t scale, void *context)
{
    char name[256];
    (void)data, (void)axis, (void)context;
    return H5Iget_name(scale, name, sizeof name) < 0 ? -1 : 0;
}

/* Reads all values, in pieces along the second axis (draws) if there is one.
 * Read errors are not failures here, because HDF5 will report them again. */
static int check_values(hid_t data, int rank, const hsize_t *size)
{
    hid_t type = H5Tget_native_type(H5Dget_type(data), H5T_DIR_DEFAULT);
    const int axis = rank > 1 ? 1 : 0;
    hsize_t from[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    hsize_t row = type >= 0 ? H5Tget_size(type) : 0;

    for (int i = 0; i < rank; i++) {
        count[i] = size[i];
        row *= i == axis ? 1 : size[i];
    }
    const hsize_t step = row > 0 && row < PIECE ? PIECE / row : 1;
    void *value = type >= 0 ? malloc(row * step + 1) : NULL;
    for (; value != NULL && from[axis] < size[axis]; from[axis] += step) {
        const hsize_t left = size[axis] - from[axis];
        count[axis] = left < step ? left : step;
        (void)tsr_hdf5_block(data, type, rank, from, count, value, NULL);
    }
    free(value);
    return value != NULL;
}

static herr_t check_object(hid_t file, const char *name, const H5O_info_t *info,
                           void *context)
{
    hsize_t size[H5S_MAX_RANK], next = 0;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);

    if (object < 0 || H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &next,
                                  check_attribute, context) < 0)
        return -1;
    if (info->type == H5O_TYPE_DATASET) {
        const int rank = tsr_hdf5_shape(object, size);
        const htri_t is_scale = H5DSis_scale(object);
        if (rank < 0 || is_scale < 0)
            return -1;
        for (int i = 0; i < rank && !is_scale; i++)
            if (tsr_hdf5_scales(object, rank, i, check_scale, NULL) < 0)
                return -1;
        if (rank > 0 && !check_values(object, rank, size))
            return -1;
    }
    H5Oclose(object);
    return 0;
}

/* Prepares the child process for a crash: without handlers of signals, error
 * messages and core file, and with a limit on processor time, a second for each
 * MiB of the file. */
static void prepare_for_crash(size_t size)
{
    const rlim_t seconds = FEWEST_SECONDS + (size >> 20);
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGXCPU};
    const struct rlimit no_core = {0, 0};
    const struct rlimit some_time = {
        seconds < MOST_SECONDS ? seconds : MOST_SECONDS, MOST_SECONDS + 1};
    const int nowhere = open("/dev/null", O_WRONLY);

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)signal(fatal[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &some_time);
    if (nowhere >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
}

/* Reads the whole file in a child process. Errors: TSR_E_DATA (damaged),
 * TSR_E_IO (no child process). */
static tsr_status check_in_child(const char *path, size_t size, tsr_err *err)
{
    int ended = 0;
    const pid_t child = fork();

    if (child == 0) {
        prepare_for_crash(size);
        const hid_t file = open_hdf5(path);
        _exit(file < 0 || H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC,
                                    check_object, NULL, H5O_INFO_BASIC) < 0);
    }
    pid_t got = child;
    while (child > 0 && (got = waitpid(child, &ended, 0)) < 0 && errno == EINTR)
        continue;
    if (child < 0 || got < 0)
        return tsr_fail(err, TSR_E_IO,
                        "'%s': cannot start a process to try it: %s", path,
                        strerror(errno));
    if (ended == 0)
        return TSR_OK;
    return tsr_fail(
        err, TSR_E_DATA,
        "'%s': the file is damaged, or not an HDF5 file: HDF5 %s it", path,
        WIFSIGNALED(ended) ? "dies of" : "cannot read");
}

/* ---- reading ---- */

static tsr_status verify(const char *path, int fd, int *is_sealed, tsr_err *err)
{
    struct stat info;
    uint64_t wanted = 0, sum = 0;

    *is_sealed = 0;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': the file is damaged, or not an HDF5 file: it is "
                        "not a regular file",
                        path);
    const size_t size = (size_t)info.st_size;
    *is_sealed = read_seal(fd, size, &wanted);
    if (!*is_sealed)
        return check_in_child(path, size, err);
    const int failed = sum_blocks(fd, size - SEAL, -1, &sum);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s': %s", path,
                        strerror(failed));
    if (sum == wanted)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the file is damaged, or was changed by another "
                    "program: its checksum is wrong; restore it from a copy",
                    path);
}

tsr_status tsr_hdf5_input_open(const char *path, tsr_hdf5_input *input,
                               tsr_err *err)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    *input = (tsr_hdf5_input){.file = -1};
    if (fd < 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    tsr_hdf5_quiet();
    tsr_status status = verify(path, fd, &input->is_sealed, err);
    close(fd);
    if (status == TSR_OK && (input->path = strdup(path)) == NULL)
        status = tsr_no_memory(err);
    if (status == TSR_OK && (input->file = open_hdf5(path)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA,
                               "'%s': cannot open the file as HDF5", path);
    if (status != TSR_OK)
        tsr_hdf5_input_close(input);
    return status;
}

void tsr_hdf5_input_close(tsr_hdf5_input *input)
{
    if (input->file >= 0)
        H5Fclose(input->file);
    free(input->path);
    *input = (tsr_hdf5_input){.file = -1};
}

/* ---- the driver, called by HDF5 ---- */

struct tsr_hdf5_kept {
    size_t at, n;
    unsigned char *bytes;
};

typedef struct {
    H5FD_t base; /* for HDF5; must be first */
    tsr_hdf5_output *output;
    haddr_t end, size; /* end of the allocated space, and size of the file */
} handle;

typedef struct {
    tsr_hdf5_output *output;
} driver_info;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access,
                           haddr_t max)
{
    const driver_info *info = H5Pget_driver_info(access);
    struct stat now;
    handle *file = calloc(1, sizeof *file);

    (void)name, (void)flags, (void)max;
    if (info == NULL || file == NULL ||
        fstat(fileno(info->output->writer.out), &now) != 0) {
        free(file);
        return NULL;
    }
    file->output = info->output;
    file->size = (haddr_t)now.st_size;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base)
{
    free((handle *)base);
    return 0;
}

static herr_t driver_query(const H5FD_t *base, unsigned long *flags)
{
    (void)base;
    if (flags != NULL)
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)base)->end;
}

static herr_t driver_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((handle *)base)->end = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)base)->size;
}

/* Bytes that were never written are 0. */
static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                          haddr_t from, size_t n, void *buffer)
{
    const tsr_hdf5_output *o = ((handle *)base)->output;
    const int fd = fileno(o->writer.out);
    const size_t at = (size_t)from;
    struct stat now;

    (void)type, (void)transfer;
    memset(buffer, 0, n);
    if (fstat(fd, &now) != 0)
        return -1;
    const size_t size = (size_t)now.st_size;
    const size_t known = at >= size ? 0 : size - at < n ? size - at : n;
    if (tsr_file_read_at(fd, buffer, known, at) != 0)
        return -1;
    for (size_t i = 0; i < o->n_kept; i++) {
        const struct tsr_hdf5_kept *k = &o->kept[i];
        const size_t first = k->at > at ? k->at : at;
        const size_t last = k->at + k->n < at + n ? k->at + k->n : at + n;
        if (first < last)
            memcpy((char *)buffer + (first - at), k->bytes + (first - k->at),
                   last - first);
    }
    return 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                           haddr_t at, size_t n, const void *buffer)
{
    handle *file = (handle *)base;
    tsr_hdf5_output *o = file->output;

    (void)type, (void)transfer;
    if (at + n > file->size)
        file->size = at + n;
    if (o->failed == 0)
        o->failed =
            tsr_file_write_at(fileno(o->writer.out), buffer, n, (size_t)at);
    if (o->failed == 0)
        return 0;
    struct tsr_hdf5_kept *more =
        realloc(o->kept, (o->n_kept + 1) * sizeof *o->kept);
    if (more == NULL)
        return -1;
    o->kept = more;
    unsigned char *bytes = malloc(n + 1);
    if (bytes == NULL)
        return -1;
    memcpy(bytes, buffer, n);
    more[o->n_kept++] = (struct tsr_hdf5_kept){(size_t)at, n, bytes};
    return 0;
}

/* Sets the size of the file to the allocated space, because HDF5 refuses a
 * shorter file. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    handle *file = (handle *)base;
    tsr_hdf5_output *o = file->output;

    (void)transfer, (void)closing;
    file->size = file->end;
    if (o->failed == 0 &&
        ftruncate(fileno(o->writer.out), (off_t)file->end) != 0)
        o->failed = errno;
    return 0;
}

static herr_t use_driver(tsr_hdf5_output *output, hid_t access)
{
    const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
        .version = H5FD_CLASS_VERSION,
        .value = 600, /* 512 and above: not registered with the HDF Group */
#endif
        .name = "tessera output",
        .maxaddr = (haddr_t)1 << 62,
        .fc_degree = H5F_CLOSE_STRONG,
        .fapl_size = sizeof(driver_info),
        .open = driver_open,
        .close = driver_close,
        .query = driver_query,
        .get_eoa = driver_get_eoa,
        .set_eoa = driver_set_eoa,
        .get_eof = driver_get_eof,
        .read = driver_read,
        .write = driver_write,
        .truncate = driver_truncate,
        .fl_map = H5FD_FLMAP_DICHOTOMY,
    };
    const driver_info info = {output};

    output->driver = H5FDregister(&driver);
    return output->driver < 0 ? -1
                              : H5Pset_driver(access, output->driver, &info);
}

/* ---- writing ---- */

/* Copies the content of the file `from`, without its seal, into the new
 * file. */
static tsr_status copy_content(const char *from, tsr_hdf5_output *output,
                               tsr_err *err)
{
    const int fd = open(from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    uint64_t wanted = 0, sum = 0;
    tsr_status status = TSR_OK;

    if (fd < 0 || fstat(fd, &info) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s': %s", from,
                        strerror(errno));
    const size_t size = (size_t)info.st_size;
    const int is_sealed = read_seal(fd, size, &wanted);
    const int failed = sum_blocks(fd, is_sealed ? size - SEAL : size,
                                  fileno(output->writer.out), &sum);
    if (failed != 0)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s",
                          output->writer.path, strerror(failed));
    else if (is_sealed && sum != wanted)
        status = tsr_fail(err, TSR_E_IO,
                          "cannot write '%s': the file was damaged meanwhile",
                          output->writer.path);
    close(fd);
    return status;
}

tsr_status tsr_hdf5_output_start(const char *path, const char *from,
                                 tsr_hdf5_output *output, tsr_err *err)
{
    struct stat info;

    *output = (tsr_hdf5_output){.file = -1};
    tsr_hdf5_quiet();
    if (from != NULL && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return tsr_fail(err, TSR_E_IO, "'%s' is a symbolic link", path);
    TSR_TRY(tsr_file_begin(&output->writer, path, err));
    const char *beside = output->writer.beside;
    if (beside == NULL)
        return tsr_fail(err, TSR_E_IO,
                        "cannot write '%s': it is not a regular file", path);
    if (from != NULL)
        TSR_TRY(copy_content(from, output, err));
    hid_t create = H5Pcreate(H5P_FILE_CREATE), access = access_list();
    if (create >= 0 && access >= 0 && tsr_hdf5_track_order(create) &&
        use_driver(output, access) >= 0)
        output->file = from != NULL
                           ? H5Fopen(beside, H5F_ACC_RDWR, access)
                           : H5Fcreate(beside, H5F_ACC_TRUNC, create, access);
    const tsr_status status =
        output->file >= 0
            ? tsr_hdf5_output_check(output, err)
            : tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", path);
    tsr_hdf5_close(access);
    tsr_hdf5_close(create);
    return status;
}

tsr_status tsr_hdf5_output_check(const tsr_hdf5_output *output, tsr_err *err)
{
    return output->failed == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_IO, "cannot write '%s': %s",
                          output->writer.path, strerror(output->failed));
}

/* Gives the present file the additional name PATH.previous, which replaces the
 * older file of that name atomically. */
static int keep_previous(const char *path)
{
    char *name = tsr_text_format("%s.link", path);
    char *previous = tsr_text_format("%s.previous", path);
    int failed = name == NULL || previous == NULL ? ENOMEM : 0;

    if (failed == 0 && access(path, F_OK) != 0) {
        failed = errno;
    } else if (failed == 0) {
        unlink(name); /* left by a process that was killed here */
        if (link(path, name) == 0)
            failed = rename(name, previous) == 0 ? 0 : errno;
        else if (errno == EPERM || errno == ENOTSUP || errno == ENOSYS ||
                 errno ==
                     EMLINK) /* no links: for a moment PATH does not exist */
            failed = rename(path, previous) == 0 ? 0 : errno;
        else
            failed = errno;
        unlink(name); /* rename() leaves it if both names are the same
                         file */
    }
    free(name);
    free(previous);
    return failed == ENOENT ? 0 : failed;
}

/* Appends the seal after the data of HDF5. Returns 0 or an errno. */
static int add_seal(int fd)
{
    char seal[SEAL + 1];
    struct stat info;
    uint64_t sum = 0;

    if (fstat(fd, &info) != 0)
        return errno;
    const size_t size = (size_t)info.st_size;
    const int failed = sum_blocks(fd, size, -1, &sum);
    write_seal(size, sum, seal);
    return failed != 0 ? failed : tsr_file_write_at(fd, seal, SEAL, size);
}

tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err)
{
    tsr_hdf5_output *o = output;
    const char *path = o->writer.path;

    tsr_hdf5_quiet();
    if (o->writer.out == NULL)
        return status;
    if (o->file >= 0 && H5Fclose(o->file) < 0 && status == TSR_OK)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", path);
    if (o->driver > 0)
        H5FDunregister(o->driver);
    for (size_t i = 0; i < o->n_kept; i++)
        free(o->kept[i].bytes);
    free(o->kept);
    const int fd = fileno(o->writer.out);
    if (status == TSR_OK && o->failed == 0)
        o->failed = add_seal(fd);
    if (status == TSR_OK && o->failed == 0 && o->keeps_previous)
        o->failed = fsync(fd) != 0 ? errno : keep_previous(path);
    TSR_THEN(status, tsr_hdf5_output_check(o, err));
    return tsr_file_end(&o->writer, status, err);
}

/* ---- a file and its draw log ---- */

/* Writes the records of the log into the open file, in place of any draws that
 * it has from the first record on. With `keep`: only records up to `keep`, and
 * the file is then cut to `keep`. */
static tsr_status apply_log(const char *path, const tsr_hdf5_updater *updater,
                            void *object, const tsr_draw_records *log,
                            const long *keep, const tsr_hdf5_output *output,
                            tsr_err *err)
{
    void *bytes = NULL;

    for (size_t i = 0; i < log->n; i++) {
        const tsr_draw_record *r = &log->record[i];
        const int part = updater->part(object, r);
        const long have = updater->count(object, r->kind);
        if (r->kind < updater->first || r->kind > updater->last || part < 0 ||
            (keep != NULL && r->first + r->n > keep[r->kind]))
            continue;
        if (r->size != updater->size(object, r) || r->first > have)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' has %ld %s, but draws.log in the same folder "
                            "has those from %ld on, or belongs to another run: "
                            "restore both from a copy",
                            path, have, updater->noun, r->first);
        TSR_TRY(tsr_draw_records_part(log, i, part, &bytes, err));
        if (bytes == NULL)
            break;
        tsr_status status = updater->cut(object, r->kind, r->first, err);
        TSR_THEN(status, updater->append(object, r, bytes, err));
        free(bytes);
        TSR_THEN(status, tsr_hdf5_output_check(output, err));
        TSR_TRY(status);
    }
    for (tsr_draw_kind kind = updater->first;
         kind <= updater->last && keep != NULL; kind++) {
        const long have = updater->count(object, kind);
        if (have < keep[kind])
            return tsr_fail(err, TSR_E_DATA,
                            "'%s', with draws.log, has %ld %s%s, but the "
                            "checkpoint counts %ld",
                            path, have, updater->noun,
                            kind == TSR_DRAWN_WARMUP ? " of warm-up" : "",
                            keep[kind]);
        TSR_TRY(updater->cut(object, kind, keep[kind], err));
    }
    return updater->finish != NULL ? updater->finish(object, err) : TSR_OK;
}

/* Writes the file `to`: the file at `path` with the draws of the log. */
static tsr_status rewrite_with_log(const char *path, const char *to,
                                   const tsr_hdf5_updater *updater,
                                   const tsr_draw_records *log,
                                   const long *keep, tsr_err *err)
{
    tsr_hdf5_output output;
    void *object = NULL;
    tsr_status status = tsr_hdf5_output_start(to, path, &output, err);

    TSR_THEN(status, tsr_wrap(err, updater->open(output.file, &object, err),
                              "'%s'", path));
    TSR_THEN(status, apply_log(path, updater, object, log, keep, &output, err));
    updater->close(object);
    return tsr_hdf5_output_end(&output, status, err);
}

/* *differs out: has the log draws that the file lacks? With `keep`: do the
 * numbers of draws in the file differ from `keep`? */
static tsr_status find_difference(const tsr_hdf5_input *input,
                                  const tsr_hdf5_updater *updater,
                                  const tsr_draw_records *log, const long *keep,
                                  int *differs, tsr_err *err)
{
    void *object = NULL;
    tsr_status status = updater->open(input->file, &object, err);

    *differs = 0;
    if (status == TSR_OK)
        for (tsr_draw_kind kind = updater->first; kind <= updater->last;
             kind++) {
            const long have = updater->count(object, kind);
            *differs |= keep != NULL && have != keep[kind];
            for (size_t i = 0; keep == NULL && i < log->n; i++)
                *differs |= log->record[i].kind == kind &&
                            log->record[i].first + log->record[i].n > have;
        }
    updater->close(object);
    return status == TSR_OK ? TSR_OK
                            : tsr_wrap(err, status, "'%s'", input->path);
}

tsr_status tsr_hdf5_update(const char *path, const tsr_hdf5_updater *updater,
                           const tsr_draw_records *log,
                           const long keep[TSR_DRAWN_N_KIND], tsr_err *err)
{
    tsr_hdf5_input input;
    int differs = 0;
    TSR_TRY(tsr_hdf5_input_open(path, &input, err));
    tsr_status status =
        find_difference(&input, updater, log, keep, &differs, err);
    tsr_hdf5_input_close(&input);
    if (differs)
        TSR_THEN(status, rewrite_with_log(path, path, updater, log, keep, err));
    return status;
}

/* Adds the draws of the log to the file, while holding the lock of the run's
 * folder, so that no other process writes. The log is read again, because the
 * run may have continued before the lock was taken. The file keeps its owner
 * and mode. Returns TSR_E_IO, among other errors, if a process works on the run
 * or the folder is not writable. */
static tsr_status update_locked(const char *path, const char *folder,
                                const tsr_hdf5_updater *updater, tsr_err *err)
{
    tsr_lock *lock;
    tsr_draw_records log;
    struct stat before;

    if (stat(path, &before) != 0 || tsr_lock_acquire(folder, &lock, NULL) != 0)
        return TSR_E_IO;
    tsr_status status = tsr_draw_records_open(path, &log, err);
    TSR_THEN(status, tsr_hdf5_update(path, updater, &log, NULL, err));
    tsr_draw_records_close(&log);
    tsr_lock_free(lock);
    /* Users other than root cannot change the owner, and need not. */
    const int is_kept = chown(path, before.st_uid, before.st_gid) == 0 &&
                        chmod(path, before.st_mode & 07777) == 0;
    (void)is_kept;
    return status;
}

/* Opens a copy of the file with the draws of the log, in `folder`. The copy is
 * unlinked after opening. */
static tsr_status open_copy(const char *path, const char *folder,
                            const tsr_hdf5_updater *updater,
                            const tsr_draw_records *log, tsr_hdf5_input *input,
                            tsr_err *err)
{
    char *name = tsr_text_format("%s/tessera-XXXXXX.tmp", folder);
    tsr_status status = tsr_allocated(name, err);
    const int fd = name != NULL ? mkostemps(name, 4, O_CLOEXEC) : -1;

    if (status == TSR_OK && fd < 0)
        status = tsr_fail(err, TSR_E_IO, "%s: %s", folder, strerror(errno));
    TSR_THEN(status, rewrite_with_log(path, name, updater, log, NULL, err));
    TSR_THEN(status, tsr_hdf5_input_open(name, input, err));
    if (fd >= 0) {
        close(fd);
        unlink(name);
    }
    free(name);
    return status;
}

/* Reopens the file with the draws of the log: the updated file, or a copy in
 * TMPDIR, or else a copy beside the file. */
static tsr_status reopen_updated(tsr_hdf5_input *input,
                                 const tsr_hdf5_updater *updater,
                                 const tsr_draw_records *log, tsr_err *err)
{
    const char *folder = getenv("TMPDIR");
    char *path = input->path, *copy = strdup(path);
    tsr_status status = tsr_allocated(copy, err);
    const char *run_folder = copy != NULL ? dirname(copy) : ".";

    input->path = NULL;
    tsr_hdf5_input_close(input);
    TSR_THEN(status, update_locked(path, run_folder, updater, err));
    if (status == TSR_OK) {
        status = tsr_hdf5_input_open(path, input, err);
    } else if (status == TSR_E_IO) {
        status =
            open_copy(path, folder != NULL && *folder != '\0' ? folder : "/tmp",
                      updater, log, input, err);
        if (status == TSR_E_IO)
            status = tsr_wrap(
                err, open_copy(path, run_folder, updater, log, input, NULL),
                "'%s' is read from a temporary copy; TMPDIR in the "
                "environment names its folder",
                path);
    }
    free(copy);
    free(input->path);
    input->path = path; /* for messages */
    return status;
}

/* The log is opened first, because a running session removes it once the file
 * has its draws. */
tsr_status tsr_hdf5_input_open_all(const char *path,
                                   const tsr_hdf5_updater *updater,
                                   tsr_hdf5_input *input, tsr_err *err)
{
    tsr_draw_records log;
    int differs = 0;
    tsr_status status = tsr_draw_records_open(path, &log, err);

    *input = (tsr_hdf5_input){.file = -1};
    TSR_THEN(status, tsr_hdf5_input_open(path, input, err));
    if (status == TSR_OK && log.n > 0)
        status = find_difference(input, updater, &log, NULL, &differs, err);
    if (differs)
        TSR_THEN(status, reopen_updated(input, updater, &log, err));
    tsr_draw_records_close(&log);
    if (status != TSR_OK)
        tsr_hdf5_input_close(input);
    return status;
}
