/* A folder of its own for each test, and calls that have to succeed. */
#ifndef TSR_TESTS_UNIT_FOLDER_H
#define TSR_TESTS_UNIT_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As /tmp/tessera-NAME-XXXXXX. Returns 0, or -1 where it cannot be made. */
static inline int folder_make(char folder[64], const char *name)
{
    snprintf(folder, 64, "/tmp/tessera-%s-XXXXXX", name);
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* With the files in it; returns 0, or -1 where something is left. */
static inline int folder_remove(const char *folder)
{
    char path[512];
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%.200s", folder, d->d_name);
        unlink(path);
    }
    if (dir != NULL)
        closedir(dir);
    return rmdir(folder);
}

#endif
