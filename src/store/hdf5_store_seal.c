/* The seal of a file: its last 64 bytes, behind the end of what HDF5 reads, say
 * how long the file is and what the sum of its pages is. A page counts with the
 * checksum (files/checksum.h) of its number and its bytes, and with 0 where all
 * of them are 0 (a hole that nobody wrote). So one changed word is always
 * found, and more than one but for a chance of 2^-64; and a commit takes the
 * old checksums of the pages that it changes from the sum, adds their new ones,
 * and need not read the others. */
#define _GNU_SOURCE /* memmem */
#include "store/hdf5_store_parts.h"

#include "files/checksum.h"
#include "files/file.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a file without a seal ----
 *
 * Can HDF5 read it? It is one of tessera 0.1, of another program, or one that
 * its writer is just changing. HDF5 1.10 dies of some damaged files, so a child
 * process looks at everything first: where it dies, or loses its way, the file
 * is damaged. */

/* Damage can lead a reader in circles. Seconds of the processor, and groups
 * within groups. */
enum { MOST_SECONDS = 60, MOST_DEPTH = 16, PIECE = 1 << 20 };

/* Room for one value: texts of variable length are left behind, as everything
 * is that a process has when it ends. */
static int walk_attribute(hid_t object, hsize_t i)
{
    hid_t attribute = H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i,
                                     H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    hid_t memory = type >= 0 ? H5Tget_native_type(type, H5T_DIR_DEFAULT) : -1;
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    const hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    if (memory < 0 || n < 0 || n > PIECE)
        return 0;
    void *value = calloc((size_t)n + 1, H5Tget_size(memory) + 1);
    return value != NULL && H5Aread(attribute, memory, value) >= 0;
}

static int walk_attributes(hid_t object)
{
    H5O_info_t info;

    if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
        return 0;
    for (hsize_t i = 0; i < info.num_attrs; i++)
        if (!walk_attribute(object, i))
            return 0;
    return 1;
}

static herr_t walk_scale(hid_t data, unsigned axis, hid_t scale, void *context)
{
    char name[256];
    (void)data, (void)axis, (void)context;
    return H5Iget_name(scale, name, sizeof name) < 0 ? -1 : 0;
}

/* All values, in pieces along the second axis where there are two (draws). What
 * HDF5 says it cannot read, it will say again. */
static int walk_values(hid_t data, hid_t space, int rank, const hsize_t *size)
{
    hid_t type = H5Dget_type(data);
    hid_t memory = type >= 0 ? H5Tget_native_type(type, H5T_DIR_DEFAULT) : -1;
    const int axis = rank > 1 ? 1 : 0;
    hsize_t from[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    hsize_t row = memory >= 0 ? H5Tget_size(memory) : 0;

    for (int i = 0; i < rank; i++) {
        count[i] = size[i];
        row *= i == axis ? 1 : size[i];
    }
    hsize_t step = row > 0 ? PIECE / row : 0;
    if (step == 0)
        step = 1;
    void *value = memory >= 0 ? malloc(row * step + 1) : NULL;
    int is_good = value != NULL;
    for (; is_good && from[axis] < size[axis]; from[axis] += step) {
        const hsize_t left = size[axis] - from[axis];
        count[axis] = left < step ? left : step;
        hid_t piece = H5Screate_simple(rank, count, NULL);
        is_good = piece >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, from,
                                                    NULL, count, NULL) >= 0;
        if (is_good)
            (void)H5Dread(data, memory, piece, space, H5P_DEFAULT, value);
        tsr_hdf5_close(piece);
    }
    free(value);
    return is_good;
}

static int walk_data(hid_t data)
{
    hsize_t size[H5S_MAX_RANK];
    hid_t space = H5Dget_space(data);
    const int rank =
        space >= 0 ? H5Sget_simple_extent_dims(space, size, NULL) : -1;
    const htri_t is_scale = H5DSis_scale(data);

    if (rank < 0 || is_scale < 0)
        return 0;
    for (int i = 0; i < rank && !is_scale; i++)
        if (H5DSiterate_scales(data, (unsigned)i, NULL, walk_scale, NULL) < 0)
            return 0;
    return rank == 0 || walk_values(data, space, rank, size);
}

static int walk_name(hid_t group, H5_index_t by, hsize_t i, char *name,
                     size_t room)
{
    return H5Lget_name_by_idx(group, ".", by, H5_ITER_INC, i, name, room,
                              H5P_DEFAULT) >= 0;
}

static int walk(hid_t object, int depth)
{
    H5G_info_t info;
    char name[1024];

    if (depth > MOST_DEPTH || !walk_attributes(object))
        return 0;
    if (H5Iget_type(object) == H5I_DATASET)
        return walk_data(object);
    if (H5Iget_type(object) != H5I_GROUP)
        return 1;
    if (H5Gget_info(object, &info) < 0)
        return 0;
    for (hsize_t i = 0; i < info.nlinks; i++) {
        /* The order of creation is not always kept. */
        (void)walk_name(object, H5_INDEX_CRT_ORDER, i, name, sizeof name);
        if (!walk_name(object, H5_INDEX_NAME, i, name, sizeof name))
            return 0;
        hid_t member = H5Oopen(object, name, H5P_DEFAULT);
        if (member < 0 || !walk(member, depth + 1))
            return 0;
        H5Oclose(member);
    }
    return 1;
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

static int try_file(tsr_hdf5_store *store)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = access >= 0 && H5Pset_file_locking(access, 0, 1) >= 0 &&
                         tsr_hdf5_store_attach(store, access) >= 0
                     ? H5Fopen("trial", H5F_ACC_RDONLY, access)
                     : H5I_INVALID_HID;
    hid_t root = file >= 0 ? H5Gopen2(file, "/", H5P_DEFAULT) : file;
    return root >= 0 && walk(root, 0);
}

/* Errors: TSR_E_DATA (damaged), TSR_E_IO (no child process). */
static tsr_status try_in_child(tsr_hdf5_store *store, tsr_err *err)
{
    int ended = 0;

    tsr_hdf5_quiet();
    const pid_t child = fork();
    if (child == 0) {
        die_silently();
        _exit(try_file(store) ? 0 : 1);
    }
    pid_t got = child;
    while (child > 0 && (got = waitpid(child, &ended, 0)) < 0 && errno == EINTR)
        continue;
    if (child < 0 || got < 0)
        return tsr_fail(err, TSR_E_IO, "cannot start a process to try it: %s",
                        strerror(errno));
    if (ended == 0)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "the file is damaged, or no HDF5 file: HDF5 %s it",
                    WIFSIGNALED(ended) ? "dies of" : "cannot read");
}

/* n bytes at `at` of one page: on the disk, or with what was written since. */
static int load(const tsr_hdf5_store *store, int as_written, size_t at,
                size_t n, unsigned char *to)
{
    const size_t i = at / PAGE;

    if (!as_written || i >= store->n_page || store->page[i] == NULL)
        return tsr_file_read_at(store->fd, to, n, at);
    memcpy(to, store->page[i] + at % PAGE, n);
    return 0;
}

/* Adds page i of a file of `end` bytes to the sum, or takes it off. */
static int count_page(const tsr_hdf5_store *store, int as_written, size_t i,
                      size_t end, uint64_t *sum)
{
    static const unsigned char zero[PAGE];
    unsigned char page[PAGE] = {0};
    const size_t at = i * PAGE;

    if (at >= end)
        return 0;
    size_t known = end - at < PAGE ? end - at : PAGE;
    if (as_written && store->on_disk < at + known &&
        (i >= store->n_page || store->page[i] == NULL))
        known = store->on_disk > at ? store->on_disk - at : 0;
    const int failed = load(store, as_written, at, known, page);
    if (failed == 0 && memcmp(page, zero, PAGE) != 0) {
        const uint64_t one = tsr_checksum(i + 1, page, PAGE);
        *sum += as_written ? one : 0 - one;
    }
    return failed;
}

static void write_seal(size_t size, uint64_t sum, char seal[SEAL + 1])
{
    const int n = snprintf(seal, SEAL + 1,
                           "\ntessera: %16zu bytes, page sum %016" PRIx64 "\n",
                           size, sum);
    memset(seal + n, ' ', SEAL - (size_t)n);
    seal[SEAL] = '\0';
}

int tsr_hdf5_store_make_seal(tsr_hdf5_store *store)
{
    const size_t old = store->on_disk, now = store->size;
    const size_t kept = now < old ? now / PAGE : old / PAGE + 1;
    const size_t n = (now > old ? now : old) / PAGE + 1;
    int failed = 0;

    for (size_t i = 0; i < n && failed == 0; i++) {
        const int is_held = i < store->n_page && store->page[i] != NULL;
        if (!is_held && (i < kept || now >= old))
            continue;
        failed = count_page(store, 0, i, old, &store->sum);
        if (failed == 0)
            failed = count_page(store, 1, i, now, &store->sum);
    }
    write_seal(now, store->sum, store->seal);
    return failed;
}

/* ---- reading ---- */

/* The last bytes of the file, where they are a seal of its length. */
static int read_seal(tsr_hdf5_store *store, uint64_t *sum)
{
    unsigned char *to = (unsigned char *)store->seal;
    char same[SEAL + 1];
    size_t size = 0;

    if (store->size < SEAL)
        return 0;
    for (size_t n = 0; n < SEAL;) {
        const size_t at = store->size - SEAL + n;
        const size_t part = tsr_hdf5_part_of_page(at, SEAL - n);
        if (load(store, 1, at, part, to + n) != 0)
            return 0;
        n += part;
    }
    store->seal[SEAL] = '\0';
    if (sscanf(store->seal, " tessera: %zu bytes, page sum %" SCNx64, &size,
               sum) != 2 ||
        size != store->size - SEAL)
        return 0;
    write_seal(size, *sum, same);
    return memcmp(same, store->seal, SEAL) == 0;
}

/* A commit under way lets the file grow behind its seal before it changes
 * anything else: then the file up to the seal is what the commit before made
 * of it. From the end of the file backwards; the blocks overlap by a seal. */
static int find_seal(tsr_hdf5_store *store, uint64_t *sum)
{
    enum { BLOCK = 1 << 16 };
    static const char begins[] = "\ntessera: ";
    const size_t size = store->size;
    char *block = malloc(BLOCK);

    for (size_t end = block != NULL ? size : 0; end > SEAL;) {
        const size_t n = end < BLOCK ? end : BLOCK;
        const char *from = block, *at;
        if (tsr_file_read_at(store->fd, block, n, end - n) != 0)
            break;
        while ((at = memmem(from, (size_t)(block + n - from), begins,
                            sizeof begins - 1)) != NULL) {
            store->size = end - n + (size_t)(at - block) + SEAL;
            if (store->size <= size && read_seal(store, sum)) {
                free(block);
                return 1;
            }
            from = at + 1;
        }
        end -= n > SEAL ? n - SEAL : n;
    }
    store->size = size;
    free(block);
    return 0;
}

tsr_status tsr_hdf5_store_verify(tsr_hdf5_store *store, tsr_err *err)
{
    uint64_t wanted = 0;
    const int is_sealed =
        read_seal(store, &wanted) ||
        (store->is_copy && store->n_held == 0 && find_seal(store, &wanted));
    int failed = 0;

    if (is_sealed) {
        store->size -= SEAL;
        if (store->n_held == 0) {
            store->on_disk = store->size;
            store->tail = SEAL;
        }
    }
    store->sum = 0;
    store->is_watched =
        store->failed == EROFS && fstat(store->fd, &store->seen) == 0;
    for (size_t i = 0; i * PAGE < store->size && failed == 0; i++)
        failed = count_page(store, 1, i, store->size, &store->sum);
    if (!is_sealed)
        return try_in_child(store, err);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read it: %s", strerror(failed));
    if (store->sum == wanted)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "the file is damaged, or another program has changed it: "
                    "its checksum does not fit; restore it from a copy");
}
