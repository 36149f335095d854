/* Passes over structure files, and what tables' headings say of them.
 *
 * Files are taken by threads as they come free, but added in their order, in
 * blocks: rounding, and so every table, is then the same whatever the number of
 * threads, and memory is that of a block. */
#include "train/structure_fold.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 32, /* parts alive at once: bounds the memory */
    MAX_THREAD = 64
};

/* A block of files that the threads share; `next` is under the mutex. */
typedef struct {
    const tsr_structure_fold_type *type;
    const char *const *path;
    int n, next;
    pthread_mutex_t mutex;
    char *part; /* [BLOCK][part_size] */
    tsr_status status[BLOCK];
    tsr_err *error; /* [BLOCK] */
} fold_block;

static void *work(void *argument)
{
    fold_block *block = argument;
    for (;;) {
        pthread_mutex_lock(&block->mutex);
        int i = block->next < block->n ? block->next++ : -1;
        pthread_mutex_unlock(&block->mutex);
        if (i < 0)
            return NULL;
        tsr_structure *structure = NULL;
        tsr_status s =
            tsr_structure_read(block->path[i], &structure, &block->error[i]);
        if (s == TSR_OK)
            s = block->type->visit(structure, block->type->context,
                                   block->part +
                                       (size_t)i * block->type->part_size,
                                   &block->error[i]);
        tsr_structure_free(structure);
        block->status[i] = s;
    }
}

/* A thread that cannot be started is done without: the caller works too. */
static void run_block(fold_block *block, int n_thread)
{
    pthread_t thread[MAX_THREAD];
    int started = 0;
    while (started < n_thread - 1 &&
           pthread_create(&thread[started], NULL, work, block) == 0)
        started++;
    work(block);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

static tsr_status add_block(fold_block *block, void *total, tsr_err *err)
{
    for (int i = 0; i < block->n; i++) {
        if (block->status[i] != TSR_OK)
            return tsr_fail(err, block->status[i], "%s",
                            block->error[i].message);
        block->type->add(block->type->context, total,
                         block->part + (size_t)i * block->type->part_size);
    }
    return TSR_OK;
}

static void clear_block(const fold_block *block)
{
    for (int i = 0; i < block->n && block->type->clear != NULL; i++)
        block->type->clear(block->part + (size_t)i * block->type->part_size);
}

static int thread_count(int n_thread)
{
    long n = n_thread > 0 ? n_thread : sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1)
        n = 1;
    return n > MAX_THREAD ? MAX_THREAD : (int)n;
}

tsr_status tsr_structure_fold(const tsr_structure_fold_type *type, int n_path,
                              const char *const *path, int n_thread,
                              void *total, tsr_log *log, tsr_err *err)
{
    fold_block block = {.type = type, .mutex = PTHREAD_MUTEX_INITIALIZER};
    tsr_status s = TSR_OK;
    block.part = malloc(BLOCK * type->part_size);
    block.error = malloc(BLOCK * sizeof *block.error);
    if (block.part == NULL || block.error == NULL) {
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for %d parts of %zu bytes",
                     BLOCK, type->part_size);
        goto done;
    }
    n_thread = thread_count(n_thread);
    for (int first = 0; first < n_path && s == TSR_OK; first += BLOCK) {
        block.path = path + first;
        block.n = n_path - first < BLOCK ? n_path - first : BLOCK;
        block.next = 0;
        memset(block.part, 0, BLOCK * type->part_size);
        memset(block.error, 0, BLOCK * sizeof *block.error);
        run_block(&block, n_thread);
        s = add_block(&block, total, err);
        clear_block(&block);
        if (log != NULL && tsr_log_is_terminal(log)) {
            char text[64];
            snprintf(text, sizeof text, "%d of %d structures", first + block.n,
                     n_path);
            tsr_log_progress(log, text);
        }
    }
    if (log != NULL && tsr_log_is_terminal(log))
        tsr_log_progress(log, "");
done:
    pthread_mutex_destroy(&block.mutex);
    free(block.part);
    free(block.error);
    return s;
}

/* "1abc" of "dir/1abc.pdb.gz": up to the first known ending. */
static size_t stem_length(const char *base)
{
    static const char *const ending[] = {".gz", ".pdb", ".ent", ".cif"};
    size_t n = strlen(base);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        size_t m = strlen(ending[i]);
        if (n > m && strncmp(base + n - m, ending[i], m) == 0)
            n -= m;
    }
    return n;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

char *tsr_structure_names(const char *title, int n_path,
                          const char *const *path)
{
    enum { WIDTH = 76, INDENT = 2 };
    size_t size = strlen(title) + 32;
    for (int i = 0; i < n_path; i++)
        size += strlen(path[i]) + INDENT + 2;
    char *text = malloc(size);
    if (text == NULL)
        return NULL;
    char *end = text + snprintf(text, size, "%s: %d\n", title, n_path);
    size_t column = 0;
    for (int i = 0; i < n_path; i++) {
        const char *base = base_name(path[i]);
        size_t n = stem_length(base);
        if (column > 0 && column + 1 + n > WIDTH) {
            *end++ = '\n';
            column = 0;
        }
        size_t space = column == 0 ? INDENT : 1;
        memset(end, ' ', space);
        memcpy(end + space, base, n);
        end += space + n;
        column += space + n;
    }
    *end = '\0';
    return text;
}

char *tsr_structure_source(int n_path, const char *const *path, long n_used,
                           long n_skipped)
{
    char *names = tsr_structure_names("structures", n_path, path);
    size_t size = (names != NULL ? strlen(names) : 0) + 256;
    char *text = names != NULL ? malloc(size) : NULL;
    if (text != NULL)
        snprintf(text, size,
                 "program: tessera %s\n"
                 "residues: %ld used, %ld left out (atoms missing)\n"
                 "%s",
                 TSR_VERSION, n_used, n_skipped, names);
    free(names);
    return text;
}

int tsr_structure_listed(const char *source, const char *title,
                         const char *path)
{
    const char *base = base_name(path);
    size_t n = stem_length(base), m = strlen(title);
    int inside = 0;
    for (const char *line = source; line != NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        if (*line != ' ')
            inside = strncmp(line, title, m) == 0 && line[m] == ':';
        for (const char *word = line; inside && *line == ' ' && word < end;) {
            word += strspn(word, " ");
            size_t length = strcspn(word, " \n");
            if (length == n && strncmp(word, base, n) == 0)
                return 1;
            word += length;
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return 0;
}
