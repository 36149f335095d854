/* The inside of a store, for src/store/hdf5_store*.c only. */
#ifndef TSR_STORE_HDF5_STORE_PARTS_H
#define TSR_STORE_HDF5_STORE_PARTS_H

#include "store/hdf5_store.h"
#include "store/journal.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

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

/* The page at `at` for writing; NULL without memory or where the disk fails. */
unsigned char *tsr_hdf5_store_writable(tsr_hdf5_store *store, size_t at);

void tsr_hdf5_store_drop_pages(tsr_hdf5_store *store);

/* Before a commit: brings `sum` and `seal` up to what HDF5 has written. 0 or an
 * errno. */
int tsr_hdf5_store_make_seal(tsr_hdf5_store *store);

/* As tsr_hdf5_store_recover; must_write: an overlay will not do. */
tsr_status tsr_hdf5_store_repair(const char *path, int must_write,
                                 tsr_hdf5_store **overlay, int *is_busy,
                                 tsr_err *err);

/* Of n bytes from `at`, those in its page. */
static inline size_t tsr_hdf5_part_of_page(size_t at, size_t n)
{
    const size_t left = PAGE - at % PAGE;
    return n < left ? n : left;
}

#endif
