/* Appends records of draws to the log, and reads them. */
#include "store/draw_log.h"

#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes "draws 1". A machine of another byte order reads another number,
 * and so no record. */
static const uint64_t magic = UINT64_C(0x0031207377617264);

/* Header of a record in the file. */
typedef struct {
    uint64_t magic, checksum; /* of the header with this member 0 */
    int64_t kind, first, n, n_chain, n_state;
    uint64_t size;
} header;

static uint64_t checksum_of(header head)
{
    head.checksum = 0;
    return tsr_checksum(0, &head, sizeof head);
}

/* ---- writing ---- */

struct tsr_draw_log {
    char *path;
    int fd; /* < 0: no file */
    int is_new;
    size_t end, part; /* bytes of the file, and of a part */
};

tsr_status tsr_draw_log_new(const char *directory, tsr_draw_log **out,
                            tsr_err *err)
{
    tsr_draw_log *log = calloc(1, sizeof *log);
    char *path = tsr_text_format("%s/%s", directory, TSR_DRAW_LOG_NAME);

    *out = log;
    if (log == NULL || path == NULL) {
        free(log);
        free(path);
        *out = NULL;
        return tsr_no_memory(err);
    }
    *log = (tsr_draw_log){.path = path, .fd = -1};
    return TSR_OK;
}

static tsr_status append_bytes(tsr_draw_log *log, const void *bytes, size_t n,
                               tsr_err *err)
{
    const int failed = tsr_file_write_at(log->fd, bytes, n, log->end);

    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", log->path,
                        strerror(failed));
    log->end += n;
    return TSR_OK;
}

tsr_status tsr_draw_log_begin(tsr_draw_log *log, const tsr_draw_record *r,
                              tsr_err *err)
{
    header head = {magic, 0,          (int64_t)r->kind, r->first,
                   r->n,  r->n_chain, r->n_state,       r->size};

    head.checksum = checksum_of(head);
    if (log->fd < 0) {
        log->fd =
            open(log->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 0666);
        if (log->fd < 0)
            return tsr_fail(err, TSR_E_IO, "cannot make '%s': %s", log->path,
                            strerror(errno));
        log->is_new = 1;
        log->end = 0;
    }
    log->part = r->size;
    return append_bytes(log, &head, sizeof head, err);
}

tsr_status tsr_draw_log_part(tsr_draw_log *log, const void *bytes, tsr_err *err)
{
    const uint64_t checksum = tsr_checksum(0, bytes, log->part);

    TSR_TRY(append_bytes(log, bytes, log->part, err));
    return append_bytes(log, &checksum, sizeof checksum, err);
}

/* Fails also if another process has removed the file, because all later writes
 * would be lost. */
tsr_status tsr_draw_log_sync(tsr_draw_log *log, tsr_err *err)
{
    struct stat info;
    int failed = 0;

    if (log->fd < 0)
        return TSR_OK;
    if (fsync(log->fd) != 0 || fstat(log->fd, &info) != 0)
        failed = errno;
    else if (info.st_nlink == 0)
        failed = ENOENT;
    else if (log->is_new)
        failed = tsr_file_sync_directory(log->path);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", log->path,
                        strerror(failed));
    log->is_new = 0;
    return TSR_OK;
}

void tsr_draw_log_remove(tsr_draw_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
    unlink(log->path);
}

void tsr_draw_log_free(tsr_draw_log *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->path);
    free(log);
}

/* ---- reading ---- */

/* Reads the record at offset `at` of a file of `end` bytes. *next out: offset
 * of the record after it. Returns 0 if the record is incomplete or damaged. */
static int read_record(int fd, size_t at, size_t end, tsr_draw_record *r,
                       size_t *next)
{
    header head;

    if (end - at < sizeof head ||
        tsr_file_read_at(fd, &head, sizeof head, at) != 0 ||
        head.magic != magic || head.checksum != checksum_of(head) ||
        head.kind < 0 || head.kind >= TSR_DRAWN_N_KIND || head.first < 0 ||
        head.n < 1 || head.n > INT_MAX || head.n_chain < 1 ||
        head.n_chain > SHRT_MAX || head.n_state < 1 || head.n_state > SHRT_MAX)
        return 0;
    *r = (tsr_draw_record){.kind = (tsr_draw_kind)head.kind,
                           .first = (long)head.first,
                           .n = (long)head.n,
                           .n_chain = (int)head.n_chain,
                           .n_state = (int)head.n_state,
                           .size = (size_t)head.size,
                           .at = at + sizeof head};
    const size_t left = end - r->at, parts = (size_t)(r->n_chain * r->n_state);
    if (r->size > left || parts > left / (r->size + sizeof(uint64_t)))
        return 0;
    *next = r->at + parts * (r->size + sizeof(uint64_t));
    return 1;
}

tsr_status tsr_draw_records_open(const char *beside, tsr_draw_records *log,
                                 tsr_err *err)
{
    const char *slash = strrchr(beside, '/');
    struct stat info;
    size_t capacity = 0;

    *log = (tsr_draw_records){.fd = -1};
    log->path = slash == NULL
                    ? strdup(TSR_DRAW_LOG_NAME)
                    : tsr_text_format("%.*s/%s", (int)(slash - beside), beside,
                                      TSR_DRAW_LOG_NAME);
    TSR_TRY(tsr_allocated(log->path, err));
    log->fd = open(log->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (log->fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return TSR_OK;
    if (log->fd < 0 || fstat(log->fd, &info) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot open '%s': %s", log->path,
                        strerror(errno));
    tsr_draw_record next;
    for (size_t at = 0;
         read_record(log->fd, at, (size_t)info.st_size, &next, &at);) {
        if (log->n == capacity) {
            capacity = 2 * capacity + 64;
            tsr_draw_record *more =
                realloc(log->record, capacity * sizeof *log->record);
            TSR_TRY(tsr_allocated(more, err));
            log->record = more;
        }
        log->record[log->n++] = next;
    }
    return TSR_OK;
}

void tsr_draw_records_close(tsr_draw_records *log)
{
    if (log->fd >= 0)
        close(log->fd);
    free(log->path);
    free(log->record);
    *log = (tsr_draw_records){.fd = -1};
}

tsr_status tsr_draw_records_part(const tsr_draw_records *log, size_t i,
                                 int part, void **bytes, tsr_err *err)
{
    const tsr_draw_record *r = &log->record[i];
    const size_t at = r->at + (size_t)part * (r->size + sizeof(uint64_t));
    uint64_t checksum;
    void *to = malloc(r->size + 1);

    *bytes = to;
    TSR_TRY(tsr_allocated(to, err));
    if (tsr_file_read_at(log->fd, to, r->size, at) == 0 &&
        tsr_file_read_at(log->fd, &checksum, sizeof checksum, at + r->size) ==
            0 &&
        checksum == tsr_checksum(0, to, r->size))
        return TSR_OK;
    free(to);
    *bytes = NULL;
    return TSR_OK;
}
