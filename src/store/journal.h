/* The journal of a file that is changed in place: PATH.journal, beside it.
 *
 * A commit writes the pages that it is about to put over old ones into the
 * journal first, and syncs it; only then does it touch the file. So whatever
 * stops it (SIGKILL, a power cut), either the journal is complete, and putting
 * its pages into the file finishes the commit, or it is not, and the file has
 * not been touched. See store/hdf5_store.h for the order of the steps.
 *
 * Content, in the byte order of the machine (checked):
 *   0  char[8]   "tsrjrnl" and NUL
 *   8  uint32    1, the format; a newer one is refused
 *  12  uint32    0x01020304, the byte order
 *  16  uint64    length of the file after the commit
 *  24  uint64    number of pages
 *  32  uint64    bytes of the journal
 *  40  uint64    checksum (files/checksum.h) of the above and of all that
 * follows 48  pages: uint64 place, uint64 n, n bytes
 *
 * The writer holds a lock on the journal (files/lock.h) from before it writes
 * to after it emptied it. Who gets the lock and finds a complete journal thus
 * knows that its writer is dead or has given up.
 *
 * For src/store only. */
#ifndef TSR_STORE_JOURNAL_H
#define TSR_STORE_JOURNAL_H

#include <stddef.h>

typedef struct {
    size_t at, n;
    const unsigned char *bytes; /* [n], borrowed */
} tsr_journal_page;

/* PATH.journal; caller frees; NULL without memory. */
char *tsr_journal_name(const char *path);

/* ---- for the writer ---- */

/* Opens and locks the journal `name`, makes it where there is none, and writes
 * the pages. 0, or the errno of what failed. *fd stays open, < 0 where it could
 * not be opened, for one of the three below to follow. */
int tsr_journal_write(const char *name, size_t length, size_t n_page,
                      const tsr_journal_page *page, int *fd, int *is_new);

/* Syncs it, and its directory where the name is new. 0 or an errno. */
int tsr_journal_sync(int fd, const char *name, int is_new);

/* Empties and closes it after a failure; 1 where it may still be complete on
 * the disk. */
int tsr_journal_abandon(int fd);

/* Empties and closes the journal: its pages are in the file, synced. A journal
 * that stays full does no harm: it only says once more what the file holds. One
 * of up to 1 MiB is emptied by zeros over its head: to give blocks back, only
 * to ask for them at the next commit, takes as long as a sync. */
void tsr_journal_end(int fd);

/* ---- for who comes later ---- */

/* 1: there is none, or an empty one. */
int tsr_journal_is_empty(const char *name);

typedef enum {
    TSR_JOURNAL_NONE, /* none, empty, or cut off: the file is as it should be */
    TSR_JOURNAL_BUSY, /* a writer is at work; see below */
    TSR_JOURNAL_OURS, /* complete, and locked by us until freed */
    TSR_JOURNAL_SEEN, /* complete; cannot be locked for writing */
    TSR_JOURNAL_NEWER, /* of a newer format, or of another machine */
    TSR_JOURNAL_BAD    /* its checksum is right, and its pages cannot be */
} tsr_journal_state;

typedef struct {
    int fd;
    unsigned char *content; /* the whole journal */
    size_t length;          /* of the file after the commit */
    size_t n_page;
    tsr_journal_page *page; /* [n_page], into content */
} tsr_journal;

/* Reads the journal `name`. 0, or the errno of what failed; then nothing is to
 * be freed. Where a writer is at work, `may_wait` waits up to 2 s for its end.
 * If it has not come, the journal holds the pages that the writer is about to
 * put into the file (n_page is 0 where they are not complete): whatever part of
 * them the file has by then, with all of them it is what the commit makes of
 * it. */
int tsr_journal_read(const char *name, int may_wait, tsr_journal *journal,
                     tsr_journal_state *state);

/* Puts the pages into the file and sets its length: 0 or an errno. */
int tsr_journal_put(int fd, size_t length, size_t n_page,
                    const tsr_journal_page *page);

void tsr_journal_free(tsr_journal *journal);

#endif
