/* Writes, checks and applies the pages of a commit. A journal counts only where
 * its length and checksum are right, so one cut off is as if it were not there.
 */
#include "store/journal.h"

#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"
#include "files/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t length, n_page, size, checksum;
} header;

static const char magic[8] = "tsrjrnl";
enum { VERSION = 1, BYTE_ORDER_MARK = 0x01020304 };

/* A reader holds the lock for as long as it takes to apply a commit; if it is
 * stopped just then, the writer gives up after a while. */
static const int writer_waits_ms = 60000;
static const int reader_waits_ms = 2000;
static const off_t keep_bytes = (off_t)1 << 20;

char *tsr_journal_name(const char *path)
{
    return tsr_words_of("%s.journal", path);
}

static uint64_t checksum_of(const unsigned char *content, size_t size)
{
    uint64_t sum = tsr_checksum(0, content, offsetof(header, checksum));
    return tsr_checksum(sum, content + sizeof(header), size - sizeof(header));
}

/* ---- writing ---- */

static unsigned char *pack(size_t length, size_t n_page,
                           const tsr_journal_page *page, size_t *size)
{
    header head = {.version = VERSION,
                   .byte_order = BYTE_ORDER_MARK,
                   .length = length,
                   .n_page = n_page,
                   .size = sizeof head};

    memcpy(head.magic, magic, sizeof magic);
    for (size_t i = 0; i < n_page; i++)
        head.size += 2 * sizeof(uint64_t) + page[i].n;
    *size = (size_t)head.size;
    unsigned char *content = malloc(*size);
    if (content == NULL)
        return NULL;
    unsigned char *to = content + sizeof head;
    for (size_t i = 0; i < n_page; i++) {
        const uint64_t place[2] = {page[i].at, page[i].n};
        memcpy(to, place, sizeof place);
        memcpy(to + sizeof place, page[i].bytes, page[i].n);
        to += sizeof place + page[i].n;
    }
    memcpy(content, &head, sizeof head);
    head.checksum = checksum_of(content, *size);
    memcpy(content, &head, sizeof head);
    return content;
}

static int open_for_writing(const char *name, int *fd, int *is_new)
{
    *is_new = 0;
    *fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT) {
        *is_new = 1;
        *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return *fd < 0 ? errno : 0;
}

int tsr_journal_write(const char *name, size_t length, size_t n_page,
                      const tsr_journal_page *page, int *fd, int *is_new)
{
    size_t size = 0;
    unsigned char *content = pack(length, n_page, page, &size);

    *fd = -1;
    *is_new = 0;
    if (content == NULL)
        return ENOMEM;
    int failed = open_for_writing(name, fd, is_new);
    if (failed == 0 && tsr_fd_lock(*fd, 1, writer_waits_ms) == TSR_FD_HELD) {
        failed = EBUSY;
        close(*fd); /* and what is in it stays */
        *fd = -1;
    }
    if (failed == 0)
        failed = tsr_file_write_at(*fd, content, size, 0);
    free(content);
    return failed;
}

/* A new name must be on the disk before the file is touched. */
int tsr_journal_sync(int fd, const char *name, int is_new)
{
    if (fsync(fd) != 0)
        return errno;
    return is_new ? tsr_file_sync_directory(name) : 0;
}

int tsr_journal_abandon(int fd)
{
    const int left = ftruncate(fd, 0) != 0 || fsync(fd) != 0;
    close(fd);
    return left;
}

void tsr_journal_end(int fd)
{
    const header none = {.version = 0};
    struct stat info;

    if (fstat(fd, &info) != 0 || info.st_size > keep_bytes ||
        tsr_file_write_at(fd, &none, sizeof none, 0) != 0) {
        int emptied = ftruncate(fd, 0);
        (void)emptied;
    }
    close(fd);
}

/* ---- recovery ---- */

int tsr_journal_is_empty(const char *name)
{
    char begins[sizeof magic] = "";
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR;
    const ssize_t n = pread(fd, begins, sizeof begins, 0);
    close(fd);
    return n >= 0 && memcmp(begins, magic, sizeof magic) != 0;
}

/* The pages of a content whose checksum is right: 0 or an errno, EBADMSG where
 * they do not lie in the content, or not in a file of its length. Whoever uses
 * them can then trust them: a place far away would cost memory for all pages
 * before it. */
static int find_pages(tsr_journal *journal, size_t size)
{
    const unsigned char *at = journal->content + sizeof(header);
    const unsigned char *end = journal->content + size;

    if (journal->n_page > size / (2 * sizeof(uint64_t)))
        return EBADMSG;
    journal->page = calloc(journal->n_page + 1, sizeof *journal->page);
    if (journal->page == NULL)
        return ENOMEM;
    for (size_t i = 0; i < journal->n_page; i++) {
        uint64_t place[2];
        if ((size_t)(end - at) < sizeof place)
            return EBADMSG;
        memcpy(place, at, sizeof place);
        at += sizeof place;
        if (place[1] > (size_t)(end - at) || place[0] > journal->length ||
            place[1] > journal->length - place[0])
            return EBADMSG;
        journal->page[i] =
            (tsr_journal_page){(size_t)place[0], (size_t)place[1], at};
        at += place[1];
    }
    return 0;
}

/* Whether the content is a whole journal. */
static int is_complete(tsr_journal *journal, size_t size,
                       tsr_journal_state *state)
{
    header head;

    if (size < sizeof head)
        return 0;
    memcpy(&head, journal->content, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0)
        return 0;
    if (head.version > VERSION || head.byte_order != BYTE_ORDER_MARK) {
        *state = TSR_JOURNAL_NEWER;
        return 0;
    }
    /* A shorter one written over a longer one leaves its end behind. */
    if (head.size < sizeof head || head.size > size ||
        checksum_of(journal->content, (size_t)head.size) != head.checksum)
        return 0;
    journal->length = (size_t)head.length;
    journal->n_page = (size_t)head.n_page;
    return 1;
}

static int read_content(tsr_journal *journal, tsr_journal_state *state)
{
    struct stat info;

    if (fstat(journal->fd, &info) != 0)
        return errno;
    const size_t size = (size_t)info.st_size;
    journal->content = malloc(size + 1);
    if (journal->content == NULL)
        return ENOMEM;
    int failed = tsr_file_read_at(journal->fd, journal->content, size, 0);
    if (failed != 0)
        return failed;
    if (!is_complete(journal, size, state))
        return 0;
    header head;
    memcpy(&head, journal->content, sizeof head);
    failed = find_pages(journal, (size_t)head.size);
    if (failed == 0)
        *state = TSR_JOURNAL_OURS;
    if (failed != EBADMSG)
        return failed;
    *state = TSR_JOURNAL_BAD;
    return 0;
}

/* Of a writer that lives: it may be writing, or emptying, what is read here. */
static void read_busy(tsr_journal *journal)
{
    tsr_journal_state state = TSR_JOURNAL_NONE;

    if (read_content(journal, &state) == 0 && state == TSR_JOURNAL_OURS)
        return;
    tsr_journal_free(journal);
}

int tsr_journal_read(const char *name, int may_wait, tsr_journal *journal,
                     tsr_journal_state *state)
{
    int may_write = 1;

    *state = TSR_JOURNAL_NONE;
    *journal = (tsr_journal){.fd = -1};
    if (tsr_journal_is_empty(name))
        return 0;
    journal->fd = open(name, O_RDWR | O_CLOEXEC);
    if (journal->fd < 0 &&
        (errno == EACCES || errno == EROFS || errno == EPERM)) {
        may_write = 0;
        journal->fd = open(name, O_RDONLY | O_CLOEXEC);
    }
    if (journal->fd < 0)
        return errno == ENOENT ? 0 : errno;
    tsr_fd_lock_result lock =
        tsr_fd_lock(journal->fd, may_write, may_wait ? reader_waits_ms : 0);
    if (lock == TSR_FD_HELD) {
        *state = TSR_JOURNAL_BUSY;
        read_busy(journal);
        return 0;
    }
    int failed = read_content(journal, state);
    if (*state == TSR_JOURNAL_OURS && (!may_write || lock != TSR_FD_LOCKED))
        *state = TSR_JOURNAL_SEEN;
    if (failed != 0 ||
        (*state != TSR_JOURNAL_OURS && *state != TSR_JOURNAL_SEEN))
        tsr_journal_free(journal);
    return failed;
}

int tsr_journal_put(int fd, size_t length, size_t n_page,
                    const tsr_journal_page *page)
{
    struct stat info;

    for (size_t i = 0; i < n_page; i++) {
        int failed =
            tsr_file_write_at(fd, page[i].bytes, page[i].n, page[i].at);
        if (failed != 0)
            return failed;
    }
    if (fstat(fd, &info) != 0 ||
        ((size_t)info.st_size > length && ftruncate(fd, (off_t)length) != 0))
        return errno;
    return 0;
}

void tsr_journal_free(tsr_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->content);
    free(journal->page);
    *journal = (tsr_journal){.fd = -1};
}
