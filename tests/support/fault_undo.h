/* The part of fault.c that knows what a power cut would undo: it remembers what
 * was there before each operation since the last sync. Included there once;
 * uses its `real`, `plan`, next_bit and path_of. */
/* ---- what a power cut would undo: contents ---- */

/* Bytes that were at a place before an operation. */
typedef struct change {
    struct change *before;
    off_t at;
    size_t n;
    off_t size; /* of the file before */
    unsigned char old[];
} change;

static struct {
    dev_t device;
    ino_t inode;
    int fd; /* ours, for reading and writing */
    change *last;
} file[MOST_FILES];
static int n_file;

static int find_file(int fd)
{
    struct stat info;
    char name[64];

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return -1;
    for (int i = 0; i < n_file; i++)
        if (file[i].device == info.st_dev && file[i].inode == info.st_ino)
            return i;
    if (n_file == MOST_FILES)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    file[n_file].fd = real.open(name, O_RDWR | O_CLOEXEC);
    if (file[n_file].fd < 0)
        return -1;
    file[n_file].device = info.st_dev;
    file[n_file].inode = info.st_ino;
    file[n_file].last = NULL;
    return n_file++;
}

static int want_undo(void)
{
    return strcmp(plan.what, "cut") == 0;
}

static void remember_bytes(int fd, off_t at, size_t n)
{
    struct stat info;
    int i = want_undo() ? find_file(fd) : -1;

    if (i < 0 || fstat(file[i].fd, &info) != 0)
        return;
    if (at > info.st_size) { /* what lies between becomes a hole */
        n += (size_t)(at - info.st_size);
        at = info.st_size;
    }
    change *c = calloc(1, sizeof *c + n);
    if (c == NULL)
        abort();
    c->before = file[i].last;
    c->at = at;
    c->n = n;
    c->size = info.st_size;
    if (pread(file[i].fd, c->old, n, at) < 0)
        abort();
    file[i].last = c;
}

static void forget_bytes(int fd)
{
    int i = want_undo() ? find_file(fd) : -1;

    while (i >= 0 && file[i].last != NULL) {
        change *before = file[i].last->before;
        free(file[i].last);
        file[i].last = before;
    }
}

/* Sector by sector: as it is, or as it was. */
static void mix_old_and_new(int i)
{
    struct stat info;
    size_t room;

    if (file[i].last == NULL || fstat(file[i].fd, &info) != 0)
        return;
    room = (size_t)info.st_size;
    off_t old_size = info.st_size;
    for (change *c = file[i].last; c != NULL; c = c->before) {
        old_size = c->size;
        if ((size_t)c->at + c->n > room)
            room = (size_t)c->at + c->n;
        if ((size_t)c->size > room)
            room = (size_t)c->size;
    }
    unsigned char *was = calloc(1, room + 1), *is = calloc(1, room + 1);
    if (was == NULL || is == NULL ||
        pread(file[i].fd, is, (size_t)info.st_size, 0) < 0)
        abort();
    memcpy(was, is, room);
    for (change *c = file[i].last; c != NULL; c = c->before)
        memcpy(was + c->at, c->old, c->n);
    memset(was + old_size, 0, room - (size_t)old_size);
    for (size_t at = 0; at < room; at += SECTOR) {
        const size_t n = room - at < SECTOR ? room - at : SECTOR;
        if (memcmp(was + at, is + at, n) != 0 && next_bit())
            memcpy(is + at, was + at, n);
    }
    const off_t size = next_bit() ? info.st_size : old_size;
    if (real.ftruncate(file[i].fd, 0) != 0 ||
        real.pwrite(file[i].fd, is, (size_t)size, 0) != (ssize_t)size)
        abort();
}

/* ---- what a power cut would undo: names ---- */

/* Undone by: removing `made`, then moving `from` to `to`, then `backup` to
 * `made`; each may be "". */
static struct {
    char made[4096], from[4096], to[4096], backup[4096];
} name[MOST_NAMES];
static int n_name, n_backup;

static int backup_of(const char *path, char backup[4096])
{
    const char *slash = strrchr(path, '/');
    snprintf(backup, 4096, "%.*s/.fault-%ld-%d", (int)(slash - path), path,
             (long)getpid(), n_backup++);
    return real.link(path, backup) == 0;
}

static void remember_name(const char *made, const char *from, const char *to,
                          const char *backup)
{
    if (!want_undo())
        return;
    if (n_name == MOST_NAMES)
        abort();
    snprintf(name[n_name].made, 4096, "%s", made);
    snprintf(name[n_name].from, 4096, "%s", from);
    snprintf(name[n_name].to, 4096, "%s", to);
    snprintf(name[n_name].backup, 4096, "%s", backup);
    n_name++;
}

static int is_in(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && path[n] == '/' &&
           strchr(path + n + 1, '/') == NULL;
}

static void forget_names(int fd)
{
    char directory[4096];
    int kept = 0;

    if (!path_of(fd, directory))
        return;
    for (int i = 0; i < n_name; i++) {
        if (is_in(name[i].made, directory)) {
            if (name[i].backup[0] != '\0')
                real.unlink(name[i].backup);
        } else {
            name[kept++] = name[i];
        }
    }
    n_name = kept;
}

static void undo_names(void)
{
    int keep = 0;

    while (keep < n_name && next_bit())
        keep++;
    for (int i = n_name; i-- > keep;) {
        if (name[i].from[0] != '\0')
            real.rename(name[i].from, name[i].to);
        else
            real.unlink(name[i].made);
        if (name[i].backup[0] != '\0')
            real.rename(name[i].backup, name[i].made);
    }
    for (int i = 0; i < keep; i++)
        if (name[i].backup[0] != '\0')
            real.unlink(name[i].backup);
}
