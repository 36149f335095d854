/* YAML through libyaml into field tables, and back.
 *
 * Every message names file, line, column, key, value and the allowed range, and
 * for an unknown key the nearest known one. A repeated key is refused. */
#ifndef TSR_FILES_YAML_H
#define TSR_FILES_YAML_H

#include "core/field.h"
#include "core/pool.h"
#include "core/status.h"

#include <stdio.h>

/* Where each key of a configuration was given, for messages that come later. */

typedef struct {
    char *key;    /* "data.0.file" */
    char *place;  /* "lar.yaml:7:12", "--set data.0.file=x" */
    char *former; /* the key's former name where that was used; NULL */
} tsr_yaml_mark;

/* Zeroed: empty. */
typedef struct {
    tsr_pool pool;
    int n;
    tsr_yaml_mark *item; /* [n] */
} tsr_yaml_marks;

/* Says where a key was given, in place of what was known of it and of keys
 * below it. Copies both. Looks through all marks. Errors: TSR_E_NOMEM. */
tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err);

/* Where the key, or else the nearest one above it, was given; NULL: nowhere. */
const char *tsr_yaml_marks_find(const tsr_yaml_marks *marks, const char *key);

void tsr_yaml_marks_clear(tsr_yaml_marks *marks);

/* Reads a mapping from a file into `object`, which holds its defaults
 * (tsr_fields_init); keys that the file lacks keep them. A GROUP takes a
 * mapping; where its `alias` names one of its fields, a bare scalar sets that
 * field (moves: {pivot: 1} is {pivot: {weight: 1}}). A LIST takes a sequence of
 * mappings, or one mapping for a list of one; with an alias, bare scalars too.
 * An empty value keeps the defaults of a GROUP and empties a list; a scalar
 * takes it only where it has no default. A STRINGS takes a bare scalar as a
 * list of one. A relative `is_path` string starts at the file's folder (in
 * `set`: the current folder) and is stored as an absolute path, which means the
 * same file in a config.yaml written elsewhere.
 * `set` [n_set]: "a.b=value" overrides from the command line, applied last;
 * the value is YAML, list elements are named by number ("data.0.file=x"), the
 * number after the last adds one.
 * `marks` (NULL: not wanted), empty before, says where each key was given; the
 * caller clears it, also after an error.
 * On failure `object` may be changed in part; tsr_fields_clear frees it.
 * Errors: TSR_E_NOINPUT (missing, unreadable), TSR_E_CONFIG, TSR_E_USAGE (a
 * `set` without '='). */
tsr_status tsr_yaml_read_marked(const char *path, const tsr_field *fields,
                                void *object, int n_set, const char *const *set,
                                tsr_yaml_marks *marks, tsr_err *err);

/* Writes every key with its value, units and docs as comments; reading it back
 * gives the same object; a relative path is written as an absolute one, except
 * "./x", which stays as it is and then lies beside the file. Errors: TSR_E_IO;
 * TSR_E_DATA (a text that is not UTF-8), TSR_E_NUMERIC. */
tsr_status tsr_yaml_write(FILE *out, const tsr_field *fields,
                          const void *object, tsr_err *err);

#endif
