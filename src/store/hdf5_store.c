/* The pages that wait, the driver's functions, the seal, commits and recovery,
 * and on top of these a file of a run as its writer and its readers open it. */
#define _GNU_SOURCE /* syncfs, mkostemp, memmem */
#include "store/hdf5_store.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"
#include "store/hdf5_object.h"
#include "store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SEAL = 64 };

struct tsr_hdf5_store {
    char *path;
    char *journal; /* its name */
    int fd;
    hid_t driver;   /* HDF5's, with which it was attached; 0: not yet */
    int failed;     /* errno of the commit that failed */
    int is_copy;    /* of a file that is being written */
    int is_watched; /* the file must stay as it was `seen` */
    struct stat seen;
    int journal_idle;     /* nothing in it is needed any more */
    size_t on_disk;       /* bytes of the file on the disk, without its seal */
    size_t tail;          /* of the seal behind them: SEAL, or 0 without one */
    size_t size;          /* bytes as HDF5 sees it */
    uint64_t sum;         /* of the pages of the last commit */
    char seal[SEAL + 1];  /* of the commit under way */
    size_t n_page;        /* room of `page` */
    size_t n_held;        /* pages that are not NULL */
    unsigned char **page; /* [n_page] written since the last commit, or NULL */
    size_t n_change;
    tsr_journal_page *change; /* [n_change] what a commit puts over old pages */
};

/* Of n bytes from `at`, those in its page. */
static size_t part_of_page(size_t at, size_t n)
{
    const size_t left = PAGE - at % PAGE;
    return n < left ? n : left;
}

/* ---- pages ---- */

/* n bytes at `at`, which lie in one page, past every write so far. What was
 * never written is 0. */
static int peek(tsr_hdf5_store *store, size_t at, unsigned char *to, size_t n)
{
    const size_t i = at / PAGE;

    if (i < store->n_page && store->page[i] != NULL) {
        memcpy(to, store->page[i] + at % PAGE, n);
        return 1;
    }
    size_t known = at >= store->on_disk ? 0 : store->on_disk - at;
    if (known > n)
        known = n;
    memset(to + known, 0, n - known);
    return tsr_file_read_at(store->fd, to, known, at) == 0;
}

static unsigned char *writable_page(tsr_hdf5_store *store, size_t at)
{
    const size_t i = at / PAGE;

    if (i >= store->n_page) {
        const size_t n_page = i + i / 2 + 64;
        unsigned char **page =
            realloc(store->page, n_page * sizeof *store->page);
        if (page == NULL)
            return NULL;
        for (size_t k = store->n_page; k < n_page; k++)
            page[k] = NULL;
        store->page = page;
        store->n_page = n_page;
    }
    if (store->page[i] == NULL) {
        unsigned char *fresh = malloc(PAGE);
        if (fresh == NULL || !peek(store, i * PAGE, fresh, PAGE)) {
            free(fresh);
            return NULL;
        }
        store->page[i] = fresh;
        store->n_held++;
    }
    return store->page[i];
}

static void drop_pages(tsr_hdf5_store *store)
{
    for (size_t i = 0; i < store->n_page; i++) {
        free(store->page[i]);
        store->page[i] = NULL;
    }
    store->n_held = 0;
}

/* ---- the driver, as HDF5 calls it ---- */

typedef struct {
    H5FD_t base; /* HDF5's; must be first */
    tsr_hdf5_store *store;
    haddr_t end; /* of the space that HDF5 has given out */
} handle;

typedef struct {
    tsr_hdf5_store *store;
} driver_info;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access,
                           haddr_t max)
{
    const driver_info *info = H5Pget_driver_info(access);
    handle *file = calloc(1, sizeof *file);

    (void)name, (void)flags, (void)max;
    if (info == NULL || file == NULL) {
        free(file);
        return NULL;
    }
    file->store = info->store;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base)
{
    free((handle *)base);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    const char *left = ((const handle *)a)->store->path;
    const char *right = ((const handle *)b)->store->path;
    return strcmp(left, right);
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
    return ((const handle *)base)->store->size;
}

/* What HDF5 has read so far would not go with what it reads from now on. */
static herr_t check_unchanged(const tsr_hdf5_store *store)
{
    struct stat now;

    if (fstat(store->fd, &now) == 0 && now.st_size == store->seen.st_size &&
        now.st_mtim.tv_sec == store->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == store->seen.st_mtim.tv_nsec)
        return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO,
             H5E_READERROR,
             "a run has begun to write the file while it was read; try again");
    return -1;
}

static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                          haddr_t at, size_t n, void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    unsigned char *to = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = part_of_page((size_t)at, n);
        if (!peek(store, (size_t)at, to, part))
            return -1;
        to += part;
        at += part;
        n -= part;
    }
    return store->is_watched ? check_unchanged(store) : 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                           haddr_t at, size_t n, const void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    const unsigned char *from = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = part_of_page((size_t)at, n);
        unsigned char *page = writable_page(store, (size_t)at);
        if (page == NULL)
            return -1;
        memcpy(page + at % PAGE, from, part);
        from += part;
        at += part;
        n -= part;
        if (at > store->size)
            store->size = (size_t)at;
    }
    return 0;
}

/* The file ends where the space given out ends: HDF5 refuses a shorter one. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    handle *file = (handle *)base;

    (void)transfer, (void)closing;
    file->store->size = (size_t)file->end;
    return 0;
}

herr_t tsr_hdf5_store_attach(tsr_hdf5_store *store, hid_t access)
{
    const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
        .version = H5FD_CLASS_VERSION,
        .value = 600, /* 512 and above: not registered with the HDF Group */
#endif
        .name = "tessera store",
        .maxaddr = (haddr_t)1 << 62,
        .fc_degree = H5F_CLOSE_STRONG,
        .fapl_size = sizeof(driver_info),
        .open = driver_open,
        .close = driver_close,
        .cmp = driver_compare,
        .query = driver_query,
        .get_eoa = driver_get_eoa,
        .set_eoa = driver_set_eoa,
        .get_eof = driver_get_eof,
        .read = driver_read,
        .write = driver_write,
        .truncate = driver_truncate,
        .fl_map = H5FD_FLMAP_DICHOTOMY,
    };
    const driver_info info = {store};

    /* Until the store is freed: H5FD_close of HDF5 1.10 still looks at the
     * driver when it has given back the file's share in it. */
    if (store->driver <= 0)
        store->driver = H5FDregister(&driver);
    return store->driver < 0 ? -1 : H5Pset_driver(access, store->driver, &info);
}

/* ---- the seal ----
 * The seal of a file: its last 64 bytes, behind the end of what HDF5 reads, say
 * how long the file is and what the sum of its pages is. A page counts with the
 * checksum (files/checksum.h) of its number and its bytes, and with 0 where all
 * of them are 0 (a hole that nobody wrote). So one changed word is always
 * found, and more than one but for a chance of 2^-64; and a commit takes the
 * old checksums of the pages that it changes from the sum, adds their new ones,
 * and need not read the others. */

/* A file without a seal.
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

static int make_seal(tsr_hdf5_store *store)
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
        const size_t part = part_of_page(at, SEAL - n);
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

static tsr_status verify(tsr_hdf5_store *store, tsr_err *err)
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

/* ---- opening and closing ---- */

void tsr_hdf5_store_free(tsr_hdf5_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    if (store->journal_idle)
        unlink(store->journal);
    if (store->driver > 0)
        H5FDunregister(store->driver);
    drop_pages(store);
    free(store->page);
    free(store->change);
    free(store->path);
    free(store->journal);
    free(store);
}

/* Frees and removes the file: a creation that failed. NULL is fine. */
static void discard_store(tsr_hdf5_store *store)
{
    if (store == NULL)
        return;
    unlink(store->path);
    store->journal_idle = 1;
    tsr_hdf5_store_free(store);
}

/* Without a file yet; NULL without memory. */
static tsr_hdf5_store *store_new(const char *path)
{
    tsr_hdf5_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->fd = -1;
    store->path = strdup(path);
    store->journal = tsr_journal_name(path);
    if (store->path == NULL || store->journal == NULL) {
        tsr_hdf5_store_free(store);
        return NULL;
    }
    return store;
}

/* A journal of an earlier file of that name must not come back after a power
 * cut, so its removal is synced. The new name itself is synced with that of the
 * new journal. */
tsr_status tsr_hdf5_store_create(const char *path, tsr_hdf5_store **out,
                                 tsr_err *err)
{
    tsr_hdf5_store *store = store_new(path);

    *out = NULL;
    if (store == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    store->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (store->fd < 0) {
        tsr_status status =
            errno == EEXIST
                ? tsr_fail(err, TSR_E_IO,
                           "'%s' exists already; remove it, or choose another "
                           "output directory",
                           path)
                : tsr_fail(err, TSR_E_IO, "cannot create '%s': %s", path,
                           strerror(errno));
        tsr_hdf5_store_free(store);
        return status;
    }
    int failed = 0;
    if (unlink(store->journal) == 0)
        failed = tsr_file_sync_directory(path);
    else if (errno != ENOENT)
        failed = errno;
    if (failed != 0) {
        discard_store(store);
        return tsr_fail(err, TSR_E_IO, "cannot create '%s': %s", path,
                        strerror(failed));
    }
    *out = store;
    return TSR_OK;
}

static int is_missing(int why)
{
    return why == ENOENT || why == ENOTDIR;
}

/* Opens the file, with the flags of open(). */
static tsr_status open_disk(tsr_hdf5_store *store, int flags, tsr_err *err)
{
    struct stat info;

    store->fd = open(store->path, flags | O_NONBLOCK | O_CLOEXEC);
    if (store->fd < 0 || fstat(store->fd, &info) != 0)
        return tsr_fail(err, is_missing(errno) ? TSR_E_NOINPUT : TSR_E_IO,
                        "cannot open '%s': %s", store->path, strerror(errno));
    store->on_disk = store->size = (size_t)info.st_size;
    return TSR_OK;
}

int tsr_hdf5_store_has_failed(const tsr_hdf5_store *store)
{
    return store->failed != 0;
}

size_t tsr_hdf5_store_pending(const tsr_hdf5_store *store)
{
    return store->n_held * PAGE;
}

static tsr_status open_reading(const char *path, tsr_hdf5_store **out,
                               tsr_err *err)
{
    tsr_hdf5_store *store = store_new(path);
    tsr_status status = store == NULL ? tsr_fail(err, TSR_E_NOMEM,
                                                 "no memory to open '%s'", path)
                                      : open_disk(store, O_RDONLY, err);

    if (status == TSR_OK) {
        store->failed = EROFS;
    } else {
        tsr_hdf5_store_free(store);
        store = NULL;
    }
    *out = store;
    return status;
}

/* ---- commits ----
 * Bringing what HDF5 wrote to the disk; hdf5_store.h has the order of the
 * steps. Many files go through each step together: then one sync of the file
 * system takes most of the time that a sync of each would. */

enum { AT_ONCE = 64, WORTH_IT = 8 };

/* One store on its way through a commit. */
typedef struct {
    tsr_hdf5_store *store;
    int is_needed, failed; /* errno */
    int journal, is_new;
    int left; /* the journal may be complete on the disk */
} job;

/* Brings the bytes from..to to the disk; those without a page of their own are
 * 0, and written so: a hole would be filled later, perhaps on a full disk.
 * Page 0 of a new file stays 0: until the journal has it, there is no file. */
static int write_range(const tsr_hdf5_store *store, size_t from, size_t to)
{
    const size_t room = (size_t)64 * PAGE;
    unsigned char *buffer = malloc(room);
    int failed = buffer == NULL ? ENOMEM : 0;

    while (from < to && failed == 0) {
        size_t n = 0;
        while (n + PAGE <= room && from + n < to) {
            const size_t at = from + n, i = at / PAGE;
            const size_t part = part_of_page(at, to - at);
            if (i > 0 && i < store->n_page && store->page[i] != NULL)
                memcpy(buffer + n, store->page[i] + at % PAGE, part);
            else
                memset(buffer + n, 0, part);
            n += part;
        }
        failed = tsr_file_write_at(store->fd, buffer, n, from);
        from += n;
    }
    free(buffer);
    return failed;
}

/* For the space only: HDF5 does not mind a longer file. */
static void cut_growth(const tsr_hdf5_store *store)
{
    int cut = ftruncate(store->fd, (off_t)(store->on_disk + store->tail));
    (void)cut;
}

/* A file that grows loses its old seal: the pages that hold it become pages
 * that change, so that the seal stays until the journal has the new one. */
static int cover_old_seal(tsr_hdf5_store *store)
{
    const size_t end = store->on_disk + store->tail;

    for (size_t at = store->on_disk; at < end && at < store->size;) {
        if (writable_page(store, at) == NULL)
            return ENOMEM;
        at += part_of_page(at, end - at);
    }
    return 0;
}

/* The pages that cover what is on the disk, ascending. 0 or an errno. */
static int list_changes(tsr_hdf5_store *store)
{
    const size_t end = store->on_disk > 0 ? store->on_disk + store->tail : 1;
    tsr_journal_page *list;

    if (cover_old_seal(store) != 0 ||
        (list = realloc(store->change, (store->n_held + 2) * sizeof *list)) ==
            NULL)
        return ENOMEM;
    store->change = list;
    store->n_change = 0;
    for (size_t i = 0; i < store->n_page; i++) {
        const size_t at = i * PAGE;
        if (store->page[i] == NULL || at >= end || at >= store->size)
            continue;
        const size_t n = part_of_page(at, store->size - at);
        list[store->n_change++] = (tsr_journal_page){at, n, store->page[i]};
    }
    return 0;
}

/* The last of the changes: a file has its seal only with all the others. */
static int add_seal(tsr_hdf5_store *store)
{
    const int failed = make_seal(store);

    store->change[store->n_change++] = (tsr_journal_page){
        store->size, SEAL, (const unsigned char *)store->seal};
    return failed;
}

static void write_growth(job *j)
{
    const tsr_hdf5_store *store = j->store;
    const size_t from = store->on_disk + store->tail, to = store->size + SEAL;
    if (to > from)
        j->failed = write_range(store, from, to);
}

static void write_journal(job *j)
{
    tsr_hdf5_store *store = j->store;
    j->failed =
        tsr_journal_write(store->journal, store->size + SEAL, store->n_change,
                          store->change, &j->journal, &j->is_new);
}

static void write_changes(job *j)
{
    const tsr_hdf5_store *store = j->store;
    j->failed = tsr_journal_put(store->fd, store->size + SEAL, store->n_change,
                                store->change);
}

static int is_alive(const job *j)
{
    return j->is_needed && j->failed == 0;
}

/* Only fsync reports a failure of just this file, on every kernel; after the
 * other it has little left to do. */
static void sync_each(job *jobs, int n, int journals)
{
    int n_alive = 0, any = -1;

    for (int i = 0; i < n; i++)
        if (is_alive(&jobs[i])) {
            any = journals ? jobs[i].journal : jobs[i].store->fd;
            n_alive++;
        }
#ifdef __linux__
    if (n_alive >= WORTH_IT)
        (void)syncfs(any);
#else
    (void)any;
#endif
    for (int i = 0; i < n; i++) {
        job *j = &jobs[i];
        if (!is_alive(j))
            continue;
        if (journals)
            j->failed =
                tsr_journal_sync(j->journal, j->store->journal, j->is_new);
        else if (fsync(j->store->fd) != 0)
            j->failed = errno;
    }
}

static void step(job *jobs, int n, void (*write_one)(job *), int journals)
{
    for (int i = 0; i < n; i++)
        if (is_alive(&jobs[i]))
            write_one(&jobs[i]);
    sync_each(jobs, n, journals);
}

/* An open file that somebody has removed, or replaced, takes what is written
 * and loses it: ENOENT or ESTALE where the name is no longer that file's. */
static int find_moved(const tsr_hdf5_store *store)
{
    struct stat named, ours;

    if (stat(store->path, &named) != 0 || fstat(store->fd, &ours) != 0)
        return errno;
    return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino ? 0
                                                                      : ESTALE;
}

static void prepare(job *j, tsr_hdf5_store *store)
{
    *j = (job){.store = store, .journal = -1, .failed = store->failed};
    if (j->failed == 0)
        j->failed = find_moved(store);
    if (j->failed == 0)
        j->failed = list_changes(store);
    if (j->failed != 0)
        return;
    j->is_needed = store->n_change > 0 || store->size != store->on_disk ||
                   (store->size > 0 && store->tail == 0);
    if (j->is_needed)
        j->failed = add_seal(store);
}

/* The file has not been touched: it loses what it has grown by, but not where
 * its journal may be complete. */
static void give_up(job *j)
{
    if (j->journal >= 0)
        j->left = tsr_journal_abandon(j->journal);
    j->journal = -1;
    j->store->journal_idle = !j->left;
    if (!j->left)
        cut_growth(j->store);
}

static void finish(job *j)
{
    tsr_hdf5_store *store = j->store;

    if (is_alive(j)) {
        tsr_journal_end(j->journal);
        store->journal_idle = 1;
    } else if (j->journal >= 0) {
        close(j->journal); /* it has the rest */
        store->journal_idle = 0;
    }
    store->failed = j->failed;
    if (j->failed == 0) {
        if (j->is_needed) {
            store->on_disk = store->size;
            store->tail = SEAL;
        }
        drop_pages(store);
    }
}

static tsr_status commit(tsr_hdf5_store *const *store, int n, tsr_err *err)
{
    job jobs[AT_ONCE];
    tsr_status status = TSR_OK;

    for (int i = 0; i < n; i++)
        prepare(&jobs[i], store[i]);
    step(jobs, n, write_growth, 0);
    step(jobs, n, write_journal, 1);
    for (int i = 0; i < n; i++)
        if (jobs[i].is_needed && jobs[i].failed != 0)
            give_up(&jobs[i]);
    step(jobs, n, write_changes, 0);
    for (int i = 0; i < n; i++) {
        finish(&jobs[i]);
        if (jobs[i].failed != 0 && status == TSR_OK)
            status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s",
                              store[i]->path, strerror(jobs[i].failed));
    }
    return status;
}

tsr_status tsr_hdf5_store_commit_all(tsr_hdf5_store *const *store, int n,
                                     tsr_err *err)
{
    tsr_status status = TSR_OK;

    for (int i = 0; i < n; i += AT_ONCE) {
        const int some = n - i < AT_ONCE ? n - i : AT_ONCE;
        tsr_status one = commit(store + i, some, status == TSR_OK ? err : NULL);
        TSR_THEN(status, one);
    }
    return status;
}

/* Brings all writes so far to the disk (after H5Fflush), as above; nothing
 * where there are none. Errors: TSR_E_IO; from then on every commit fails, and
 * the file is as the last commit left it, or has this one in its journal. */
/* ---- commits that were interrupted, or are under way ---- */

/* Pages of a journal that the file must not get, as if just written. */
static tsr_status lay_over(tsr_hdf5_store *store, const tsr_journal *journal,
                           tsr_err *err)
{
    for (size_t i = 0; i < journal->n_page; i++) {
        const unsigned char *from = journal->page[i].bytes;
        size_t at = journal->page[i].at, n = journal->page[i].n;
        while (n > 0) {
            const size_t part = part_of_page(at, n);
            unsigned char *page = writable_page(store, at);
            if (page == NULL)
                return tsr_fail(err, TSR_E_IO, "cannot read '%s'", store->path);
            memcpy(page + at % PAGE, from, part);
            from += part;
            at += part;
            n -= part;
        }
    }
    store->size = journal->length;
    return TSR_OK;
}

/* A commit makes the file as long as it will be before it completes the
 * journal. */
static tsr_status check_length(const char *path, size_t length, tsr_err *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return tsr_fail(err,
                        (errno == ENOENT || errno == ENOTDIR) ? TSR_E_NOINPUT
                                                              : TSR_E_IO,
                        "cannot open '%s': %s", path, strerror(errno));
    if ((size_t)info.st_size < length)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %lld bytes, and its journal belongs to a "
                        "file of %zu: it was cut off or replaced; restore both "
                        "from a copy",
                        path, (long long)info.st_size, length);
    return TSR_OK;
}

/* 0 where the pages are in the file and the journal is empty. */
static int finish_commit(const char *path, tsr_journal *journal)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int failed =
        tsr_journal_put(fd, journal->length, journal->n_page, journal->page);
    if (failed == 0 && fsync(fd) != 0)
        failed = errno;
    close(fd);
    if (failed == 0) {
        tsr_journal_end(journal->fd);
        journal->fd = -1;
    }
    return failed;
}

static tsr_status repair(const char *path, int must_write,
                         tsr_hdf5_store **overlay, int *is_busy, tsr_err *err)
{
    tsr_journal journal;
    tsr_journal_state state;
    tsr_status status;
    char *name = tsr_journal_name(path);

    if (name == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    int failed = tsr_journal_read(name, must_write, &journal, &state);
    free(name);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s.journal': %s", path,
                        strerror(failed));
    if (state == TSR_JOURNAL_NEWER)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s.journal' was left by a newer tessera, or on "
                        "another kind of machine; open it there once",
                        path);
    if (state == TSR_JOURNAL_BAD)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s.journal' is damaged: it has pages outside of its "
                        "file; restore both from a copy",
                        path);
    *is_busy = state == TSR_JOURNAL_BUSY;
    if (state == TSR_JOURNAL_BUSY && must_write) {
        tsr_journal_free(&journal);
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is being written by another process; stop it "
                        "first",
                        path);
    }
    if (state == TSR_JOURNAL_NONE || journal.n_page == 0) {
        tsr_journal_free(&journal);
        return TSR_OK;
    }
    status = check_length(path, journal.length, err);
    if (status == TSR_OK) {
        /* Without locks only who must be alone may write. */
        failed = state == TSR_JOURNAL_OURS || must_write
                     ? finish_commit(path, &journal)
                     : EACCES;
        if (failed != 0 && must_write) {
            status = tsr_fail(err, TSR_E_IO,
                              "'%s' was left in the middle of a write, which "
                              "cannot be finished: %s; make it writable, or "
                              "free space",
                              path, strerror(failed));
        } else if (failed != 0) {
            tsr_hdf5_store *store = NULL;
            status = open_reading(path, &store, err);
            TSR_THEN(status, lay_over(store, &journal, err));
            if (status == TSR_OK)
                *overlay = store;
            else
                tsr_hdf5_store_free(store);
        }
    }
    tsr_journal_free(&journal);
    return status;
}

/* An existing file for reading and writing: finishes a commit that was
 * interrupted. H5Fopen then reads through the store. Errors: TSR_E_NOINPUT (no
 * such file), TSR_E_IO (may not be written; another process is writing),
 * TSR_E_DATA (a journal that does not fit the file). */
static tsr_status open_store(const char *path, tsr_hdf5_store **out,
                             tsr_err *err)
{
    tsr_hdf5_store *none = NULL;
    int is_busy = 0;

    *out = NULL;
    TSR_TRY(repair(path, 1, &none, &is_busy, err));
    tsr_hdf5_store *store = store_new(path);
    if (store == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    tsr_status status = open_disk(store, O_RDWR, err);
    if (status != TSR_OK) {
        tsr_hdf5_store_free(store);
        return status;
    }
    status = verify(store, err);
    if (status != TSR_OK) {
        tsr_hdf5_store_free(store);
        return tsr_wrap(err, status, "'%s'", path);
    }
    store->journal_idle = 1;
    *out = store;
    return TSR_OK;
}

/* ---- beside a writer ---- */

/* A file without a name, in TMPDIR or /tmp: it is gone with its descriptor. */
static tsr_status open_unnamed(int *fd, tsr_err *err)
{
    const char *folder = getenv("TMPDIR");

    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    char *name = tsr_words_of("%s/tessera-XXXXXX", folder);
    TSR_TRY(tsr_allocated(name, err));
    *fd = mkostemp(name, O_CLOEXEC);
    const int failed = *fd < 0 ? errno : 0;
    if (*fd >= 0)
        unlink(name);
    free(name);
    return failed == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_IO,
                          "a file that is being written is read from a copy, "
                          "which cannot be made in '%s': %s; name another "
                          "folder in the environment as TMPDIR",
                          folder, strerror(failed));
}

/* n bytes. *is_short: `from` has fewer. 0 or an errno of the copy. */
static int copy_bytes(int from, int to, size_t n, int *is_short)
{
    const size_t room = (size_t)1 << 20;
    char *buffer = malloc(room);
    int failed = buffer == NULL ? ENOMEM : 0;

    *is_short = 0;
    for (size_t at = 0; at < n && failed == 0 && !*is_short;) {
        const size_t part = n - at < room ? n - at : room;
        *is_short = tsr_file_read_at(from, buffer, part, at) != 0;
        if (!*is_short)
            failed = tsr_file_write_at(to, buffer, part, at);
        at += part;
    }
    free(buffer);
    return failed;
}

static tsr_status copy_store(tsr_hdf5_store *store, tsr_err *err)
{
    int fd = -1, is_short = 0;

    TSR_TRY(open_unnamed(&fd, err));
    const int failed = copy_bytes(store->fd, fd, store->on_disk, &is_short);
    close(store->fd);
    store->fd = fd;
    store->is_copy = 1;
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO,
                        "it is being written, and read from a copy of %.4g "
                        "MiB, which cannot be made: %s; name a folder with "
                        "room in the environment as TMPDIR",
                        (double)store->on_disk / 1048576.0, strerror(failed));
    return is_short
               ? tsr_fail(err, TSR_E_DATA, "the file was cut while it was read")
               : TSR_OK;
}

/* ---- all files of a run ---- */

static const char ending[] = ".journal";

static tsr_status recover_one(const char *path, const char *journal,
                              const char *name, tsr_recovery *recovery,
                              tsr_err *err)
{
    tsr_hdf5_store *overlay = NULL;
    int is_busy = 0;

    if (tsr_journal_is_empty(journal))
        return TSR_OK;
    if (access(path, F_OK) != 0) {
        recovery->n_orphan++;
        return TSR_OK;
    }
    TSR_TRY(repair(path, 0, &overlay, &is_busy, err));
    if (is_busy) {
        recovery->n_busy++;
    } else if (overlay != NULL) {
        if (recovery->n_pending++ == 0)
            snprintf(recovery->pending, sizeof recovery->pending, "%s", name);
    } else if (tsr_journal_is_empty(journal)) {
        recovery->n_finished++;
    }
    tsr_hdf5_store_free(overlay);
    return TSR_OK;
}

tsr_status tsr_recover(const char *directory, tsr_recovery *recovery,
                       tsr_err *err)
{
    tsr_status status = TSR_OK;
    DIR *dir = opendir(directory);

    memset(recovery, 0, sizeof *recovery);
    if (dir == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", directory,
                        strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const size_t n = strlen(entry->d_name);
        tsr_err why;
        if (n < sizeof ending ||
            strcmp(entry->d_name + n + 1 - sizeof ending, ending) != 0)
            continue;
        const int stem = (int)(n + 1 - sizeof ending);
        char *journal = tsr_words_of("%s/%s", directory, entry->d_name);
        char *path = tsr_words_of("%s/%.*s", directory, stem, entry->d_name);
        tsr_status one = TSR_E_NOMEM;
        if (journal == NULL || path == NULL)
            tsr_fail(&why, one, "no memory to look at '%s'", directory);
        else
            one = recover_one(path, journal, tsr_text_file_name(path), recovery,
                              &why);
        free(journal);
        free(path);
        if (one != TSR_OK && status == TSR_OK) {
            status = one;
            if (err != NULL)
                *err = why;
        }
    }
    closedir(dir);
    return status;
}

/* ---- a file opened for reading ---- */

/* How often it is tried while nothing seems to move (file times can be as
 * coarse as the system's clock ticks), in all, and the longest pause between,
 * ms: some ten seconds for a run that commits all the time. */
enum { TRIES_STILL = 5, TRIES = 600, LONGEST_PAUSE = 16 };

static tsr_status open_once(const char *path, tsr_hdf5_input *input,
                            tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    /* No lock, as in the writer: the run may be writing. */
    if (access < 0 || H5Pset_file_locking(access, 0, 1) < 0 ||
        tsr_hdf5_store_attach(input->store, access) < 0 ||
        (input->file = H5Fopen(path, H5F_ACC_RDONLY, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "cannot open it as HDF5");
    tsr_hdf5_close(access);
    return status;
}

/* The journal's last change, and the file's; a file of a run can change under a
 * reader only while it has a journal. */
typedef struct {
    int has_journal;
    struct timespec journal, file;
} moment;

static moment look_at(const char *path)
{
    char *name = tsr_journal_name(path);
    struct stat info;
    moment now = {.has_journal = 0};

    if (name != NULL && stat(name, &info) == 0) {
        now.has_journal = 1;
        now.journal = info.st_mtim;
    }
    if (stat(path, &info) == 0)
        now.file = info.st_mtim;
    free(name);
    return now;
}

static int is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The store of one try: verified, and safe from what a writer does next. */
static tsr_status take(const char *path, int has_journal, int *is_busy,
                       tsr_hdf5_store **store, tsr_err *err)
{
    TSR_TRY(repair(path, 0, store, is_busy, err));
    if (*store == NULL)
        TSR_TRY(open_reading(path, store, err));
    tsr_status status = has_journal ? copy_store(*store, err) : TSR_OK;
    TSR_THEN(status, verify(*store, err));
    return status == TSR_OK ? TSR_OK : tsr_wrap(err, status, "'%s'", path);
}

/* What the caller needs of the file that HDF5 now reads. */
static tsr_status
open_checked(const char *path,
             tsr_status (*check)(hid_t file, void *context, tsr_err *err),
             void *context, tsr_hdf5_input *input, tsr_err *err)
{
    tsr_status status = open_once(path, input, err);

    if (status == TSR_OK && check != NULL)
        status = check(input->file, context, err);
    return status == TSR_OK ? TSR_OK : tsr_wrap(err, status, "'%s'", path);
}

static tsr_status keep_path(const char *path, tsr_hdf5_input *input,
                            tsr_err *err)
{
    input->path = strdup(path);
    if (input->path == NULL)
        tsr_hdf5_input_close(input);
    return tsr_allocated(input->path, err);
}

tsr_status tsr_hdf5_input_open(const char *path,
                               tsr_status (*check)(hid_t file, void *context,
                                                   tsr_err *err),
                               void *context, tsr_hdf5_input *input,
                               tsr_err *err)
{
    tsr_status status = TSR_OK;
    int n_still = 0; /* tries in turn in which nothing moved */

    *input = (tsr_hdf5_input){.file = -1};
    if (access(path, R_OK) != 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    tsr_hdf5_quiet();
    for (int i = 0; i < TRIES && n_still < TRIES_STILL; i++) {
        const long ms = 2 + 2 * i < LONGEST_PAUSE ? 2 + 2 * i : LONGEST_PAUSE;
        const struct timespec pause = {0, 1000000L * ms};
        int is_busy = 0;
        const moment before = look_at(path);
        status = take(path, before.has_journal, &is_busy, &input->store, err);
        TSR_THEN(status, open_checked(path, check, context, input, err));
        if (status == TSR_OK)
            return keep_path(path, input, err);
        tsr_hdf5_input_close(input);
        const moment now = look_at(path);
        const int is_moving = is_busy ||
                              before.has_journal != now.has_journal ||
                              !is_same_time(before.journal, now.journal) ||
                              !is_same_time(before.file, now.file);
        n_still = is_moving ? 0 : n_still + 1;
        if (status != TSR_E_DATA || !(before.has_journal || now.has_journal))
            break;
        nanosleep(&pause, NULL);
    }
    return n_still == 0 && status == TSR_E_DATA
               ? tsr_fail(err, TSR_E_IO,
                          "'%s' is being written faster than it can be read; "
                          "try again, or stop the run first",
                          path)
               : status;
}

void tsr_hdf5_input_close(tsr_hdf5_input *input)
{
    if (input->file >= 0)
        H5Fclose(input->file);
    tsr_hdf5_store_free(input->store);
    free(input->path);
    *input = (tsr_hdf5_input){.file = -1};
}

/* ---- a file opened for writing ---- */

/* Not the latest format: its superblock marks a file as open for writing, and
 * after a kill HDF5 1.10 refuses the file until h5clear is run. The bounds are
 * netCDF's own. */
static hid_t access_list(tsr_hdf5_store *store)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    if (access >= 0 && (H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST,
                                             H5F_LIBVER_V18) < 0 ||
                        tsr_hdf5_store_attach(store, access) < 0)) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

static tsr_status open_output(tsr_hdf5_output *output, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = access_list(output->store);

    if (create >= 0 && access >= 0 && tsr_hdf5_track_order(create))
        output->file =
            output->is_new
                ? H5Fcreate(output->path, H5F_ACC_TRUNC, create, access)
                : H5Fopen(output->path, H5F_ACC_RDWR, access);
    if (output->file < 0)
        status = output->is_new
                     ? tsr_hdf5_fail(err, TSR_E_IO, "cannot create the file")
                     : tsr_hdf5_fail(err, TSR_E_DATA, "cannot open it as HDF5");
    tsr_hdf5_close(access);
    tsr_hdf5_close(create);
    return status == TSR_OK ? TSR_OK
                            : tsr_hdf5_output_wrap(output, status, err);
}

tsr_status tsr_hdf5_output_start(const char *path, int is_new,
                                 tsr_hdf5_output *output, tsr_err *err)
{
    *output =
        (tsr_hdf5_output){.path = strdup(path), .file = -1, .is_new = is_new};
    TSR_TRY(tsr_allocated(output->path, err));
    tsr_hdf5_quiet();
    TSR_TRY(is_new ? tsr_hdf5_store_create(path, &output->store, err)
                   : open_store(path, &output->store, err));
    return open_output(output, err);
}

tsr_status tsr_hdf5_output_wrap(const tsr_hdf5_output *output,
                                tsr_status status, tsr_err *err)
{
    return tsr_wrap(err, status, output->is_new ? "cannot write '%s'" : "'%s'",
                    output->path);
}

void tsr_hdf5_output_keep(tsr_hdf5_output *output)
{
    output->is_new = 0;
}

tsr_status tsr_hdf5_output_check(const tsr_hdf5_output *output, tsr_err *err)
{
    return output->is_broken
               ? tsr_fail(err, TSR_E_IO,
                          "'%s' is not written any more: an earlier write "
                          "failed",
                          output->path)
               : TSR_OK;
}

tsr_status tsr_hdf5_output_commit(tsr_hdf5_output *output, tsr_err *err)
{
    tsr_status status =
        H5Fflush(output->file, H5F_SCOPE_GLOBAL) < 0
            ? tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", output->path)
            : commit(&output->store, 1, err);
    output->is_broken = output->is_broken || status != TSR_OK;
    return status;
}

tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err)
{
    tsr_hdf5_quiet();
    if (output->file >= 0 && H5Fclose(output->file) < 0 && status == TSR_OK)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot close '%s'", output->path);
    TSR_THEN(status, commit(&output->store, 1, err));
    if (output->is_new)
        discard_store(output->store);
    else
        tsr_hdf5_store_free(output->store);
    free(output->path);
    return status;
}
