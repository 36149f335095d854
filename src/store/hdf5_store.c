/* The seal, files as readers open them, and files as they are written. */
#define _GNU_SOURCE /* mkostemp */
#include "store/hdf5_store.h"

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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, SEAL = 64, PIECE = 1 << 20 };

/* HDF5's own locks are switched off: run.lock keeps writers apart. The bounds
 * are netCDF's own. Closing a file closes all that is open in it. */
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

static hid_t open_hdf5(const char *path, unsigned flags)
{
    hid_t access = access_list();
    hid_t file = access >= 0 ? H5Fopen(path, flags, access) : access;

    tsr_hdf5_close(access);
    return file;
}

/* ---- the seal ----
 * A page counts in the sum with the checksum of its number and its bytes, and
 * with 0 where all of them are 0. One changed word is always found, and more
 * than one but for a chance of 2^-64. */

static void write_seal(size_t size, uint64_t sum, char seal[SEAL + 1])
{
    const int n = snprintf(seal, SEAL + 1,
                           "\ntessera: %16zu bytes, page sum %016" PRIx64 "\n",
                           size, sum);
    memset(seal + n, ' ', SEAL - (size_t)n);
    seal[SEAL] = '\0';
}

/* The sum of a file's first n bytes, which are also written to the file `copy`
 * (< 0: nowhere). 0 or an errno. */
static int sum_pages(int fd, size_t n, int copy, uint64_t *sum)
{
    static const unsigned char zero[PAGE];
    unsigned char *piece = malloc(PIECE);
    int failed = piece == NULL ? ENOMEM : 0;

    *sum = 0;
    for (size_t at = 0; at < n && failed == 0; at += PIECE) {
        const size_t part = n - at < PIECE ? n - at : PIECE;
        memset(piece, 0, PIECE);
        failed = tsr_file_read_at(fd, piece, part, at);
        if (failed == 0 && copy >= 0)
            failed = tsr_file_write_at(copy, piece, part, at);
        for (size_t k = 0; k < part && failed == 0; k += PAGE)
            if (memcmp(piece + k, zero, PAGE) != 0)
                *sum += tsr_checksum((at + k) / PAGE + 1, piece + k, PAGE);
    }
    free(piece);
    return failed;
}

/* The last bytes of a file of `size` bytes, where they are a seal of it. */
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

/* ---- a file without a seal ----
 * HDF5 1.10 dies of some damaged files, so a child process reads everything
 * first: where it dies, or takes too long, the file is damaged. */

enum { MOST_SECONDS = 60 };

/* One value more than there is room for is never read; what the child
 * allocates is gone with it. */
static herr_t try_attribute(hid_t object, const char *name,
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

static herr_t try_scale(hid_t data, unsigned axis, hid_t scale, void *context)
{
    char name[256];
    (void)data, (void)axis, (void)context;
    return H5Iget_name(scale, name, sizeof name) < 0 ? -1 : 0;
}

/* All values, in pieces along the second axis where there are two (draws). What
 * HDF5 says it cannot read, it will say again. */
static int try_values(hid_t data, int rank, const hsize_t *size)
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

static herr_t try_object(hid_t file, const char *name, const H5O_info_t *info,
                         void *context)
{
    hsize_t size[H5S_MAX_RANK], next = 0;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);

    if (object < 0 || H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &next,
                                  try_attribute, context) < 0)
        return -1;
    if (info->type == H5O_TYPE_DATASET) {
        const int rank = tsr_hdf5_shape(object, size);
        const htri_t is_scale = H5DSis_scale(object);
        if (rank < 0 || is_scale < 0)
            return -1;
        for (int i = 0; i < rank && !is_scale; i++)
            if (H5DSiterate_scales(object, (unsigned)i, NULL, try_scale, NULL) <
                0)
                return -1;
        if (rank > 0 && !try_values(object, rank, size))
            return -1;
    }
    H5Oclose(object);
    return 0;
}

/* A death that is expected leaves no message and no core file behind. */
static void die_silently(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGXCPU};
    const struct rlimit no_core = {0, 0};
    const struct rlimit some_time = {MOST_SECONDS, MOST_SECONDS};
    const int nowhere = open("/dev/null", O_WRONLY);

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)signal(fatal[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &some_time);
    if (nowhere >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
}

/* Errors: TSR_E_DATA (damaged), TSR_E_IO (no child process). */
static tsr_status try_in_child(const char *path, tsr_err *err)
{
    int ended = 0;
    const pid_t child = fork();

    if (child == 0) {
        die_silently();
        const hid_t file = open_hdf5(path, H5F_ACC_RDONLY);
        _exit(file < 0 || H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC,
                                    try_object, NULL, H5O_INFO_BASIC) < 0);
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
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the file is damaged, or no HDF5 file: HDF5 %s it",
                    path, WIFSIGNALED(ended) ? "dies of" : "cannot read");
}

/* ---- a file opened for reading ---- */

static tsr_status verify(const char *path, int fd, int *is_sealed, tsr_err *err)
{
    struct stat info;
    uint64_t wanted = 0, sum = 0;

    *is_sealed = 0;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': the file is damaged, or no HDF5 file: it is no "
                        "regular file",
                        path);
    const size_t size = (size_t)info.st_size;
    *is_sealed = read_seal(fd, size, &wanted);
    if (!*is_sealed)
        return try_in_child(path, err);
    const int failed = sum_pages(fd, size - SEAL, -1, &sum);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s': %s", path,
                        strerror(failed));
    if (sum == wanted)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the file is damaged, or another program has changed "
                    "it: its checksum does not fit; restore it from a copy",
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
    if (status == TSR_OK && (input->file = open_hdf5(path, H5F_ACC_RDONLY)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot open it as HDF5",
                               path);
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

/* Whether some process works on the run that the file belongs to. */
static int is_in_use(const char *path)
{
    tsr_lock_holder holder = {.is_held = 1};
    char *copy = strdup(path);

    if (copy != NULL)
        (void)tsr_lock_query(dirname(copy), &holder, NULL);
    free(copy);
    return holder.is_held;
}

/* A name in TMPDIR or /tmp that nothing else has; caller frees. */
static tsr_status temporary_name(char **name, tsr_err *err)
{
    const char *folder = getenv("TMPDIR");

    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    *name = tsr_words_of("%s/tessera-XXXXXX", folder);
    TSR_TRY(tsr_allocated(*name, err));
    const int fd = mkostemp(*name, O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return TSR_OK;
    }
    free(*name);
    *name = NULL;
    return tsr_fail(err, TSR_E_IO,
                    "a run that goes on is read from a copy, which cannot be "
                    "made in '%s': %s; name another folder in the environment "
                    "as TMPDIR",
                    folder, strerror(errno));
}

tsr_status tsr_hdf5_input_renew(tsr_hdf5_input *input,
                                tsr_hdf5_rewrite *rewrite,
                                const tsr_draw_records *log, tsr_err *err)
{
    char *path = input->path, *name = NULL;
    tsr_status status = TSR_E_IO;

    input->path = NULL;
    tsr_hdf5_input_close(input);
    if (!is_in_use(path))
        status = rewrite(path, path, log, NULL, err);
    if (status == TSR_OK) {
        status = tsr_hdf5_input_open(path, input, err);
    } else if (status == TSR_E_IO) {
        status = temporary_name(&name, err);
        TSR_THEN(status, rewrite(path, name, log, NULL, err));
        TSR_THEN(status, tsr_hdf5_input_open(name, input, err));
        if (name != NULL)
            unlink(name);
        free(name);
    }
    free(input->path);
    input->path = path; /* for messages */
    return status;
}

/* ---- a file that is written ---- */

/* The content of the file `from` becomes that of the one that is begun. */
static tsr_status copy(const char *from, tsr_hdf5_output *output, tsr_err *err)
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
    const int failed = sum_pages(fd, is_sealed ? size - SEAL : size,
                                 fileno(output->writer.out), &sum);
    if (failed != 0)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s",
                          output->writer.path, strerror(failed));
    else if (is_sealed && sum != wanted)
        status = tsr_fail(err, TSR_E_IO,
                          "cannot write '%s': it has been damaged meanwhile",
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
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': it is no file",
                        path);
    if (from != NULL) {
        TSR_TRY(copy(from, output, err));
        output->file = open_hdf5(beside, H5F_ACC_RDWR);
    } else {
        hid_t create = H5Pcreate(H5P_FILE_CREATE), access = access_list();
        if (create >= 0 && access >= 0 && tsr_hdf5_track_order(create))
            output->file = H5Fcreate(beside, H5F_ACC_TRUNC, create, access);
        tsr_hdf5_close(access);
        tsr_hdf5_close(create);
    }
    return output->file >= 0
               ? TSR_OK
               : tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", path);
}

/* A second name for the present file, so that the first stays in use. It takes
 * the place of the one before it at once: at no moment is there none. */
static int keep_previous(const char *path)
{
    char *name = tsr_words_of("%s.link", path);
    char *previous = tsr_words_of("%s.previous", path);
    int failed = name == NULL || previous == NULL ? ENOMEM : 0;

    if (failed == 0 && access(path, F_OK) != 0) {
        failed = errno;
    } else if (failed == 0) {
        unlink(name); /* of a process that was killed here */
        if (link(path, name) == 0)
            failed = rename(name, previous) == 0 ? 0 : errno;
        else if (errno == EPERM || errno == ENOTSUP || errno == ENOSYS ||
                 errno ==
                     EMLINK) /* no links here: a moment without the first */
            failed = rename(path, previous) == 0 ? 0 : errno;
        else
            failed = errno;
        unlink(name); /* rename leaves it where both are the same file */
    }
    free(name);
    free(previous);
    return failed == ENOENT ? 0 : failed;
}

/* Behind the end of what HDF5 wrote. 0 or an errno. */
static int add_seal(int fd)
{
    char seal[SEAL + 1];
    struct stat info;
    uint64_t sum = 0;

    if (fstat(fd, &info) != 0)
        return errno;
    const size_t size = (size_t)info.st_size;
    const int failed = sum_pages(fd, size, -1, &sum);
    write_seal(size, sum, seal);
    return failed != 0 ? failed : tsr_file_write_at(fd, seal, SEAL, size);
}

/* HDF5 1.10 can crash when a file is closed to which a write failed. So the
 * file is flushed first, and stays open where that, or anything before it,
 * failed: it is gone with the process (tsr_hdf5_quiet). */
tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err)
{
    const char *path = output->writer.path;
    int failed = 0;

    tsr_hdf5_quiet();
    if (output->writer.out == NULL)
        return status;
    if (status == TSR_OK && (H5Fflush(output->file, H5F_SCOPE_GLOBAL) < 0 ||
                             H5Fclose(output->file) < 0))
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", path);
    if (status == TSR_OK) {
        failed = add_seal(fileno(output->writer.out));
        if (failed == 0 && output->keeps_previous) {
            failed = fsync(fileno(output->writer.out)) != 0 ? errno : 0;
            failed = failed == 0 ? keep_previous(path) : failed;
        }
    }
    if (failed != 0)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                          strerror(failed));
    return tsr_file_end(&output->writer, status, err);
}
