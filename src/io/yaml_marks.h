/* Where each key of a configuration was given, for messages that come later. */
#ifndef TSR_IO_YAML_MARKS_H
#define TSR_IO_YAML_MARKS_H

#include "core/status.h"

typedef struct {
    char *key;   /* "data.0.file" */
    char *place; /* "lar.yaml:7:12", "--set data.0.file=x" */
} tsr_yaml_mark;

/* Zeroed: empty. */
typedef struct {
    int n, room;
    tsr_yaml_mark *item; /* [n], owned */
} tsr_yaml_marks;

/* Says where a key was given, in place of what was known of it and of keys
 * below it. Copies both. Looks through all marks. Errors: TSR_E_NOMEM. */
tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err);

/* The same for a key of which nothing is known yet: looks through none, so that
 * a file's long lists do not take time that grows with their square. */
tsr_status tsr_yaml_marks_add(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err);

/* Where the key, or else the nearest one above it, was given; NULL: nowhere. */
const char *tsr_yaml_marks_find(const tsr_yaml_marks *marks, const char *key);

void tsr_yaml_marks_clear(tsr_yaml_marks *marks);

#endif
