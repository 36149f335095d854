/* Reads YAML into field tables with libyaml, and writes it.
 *
 * Errors in a file name file, line and column, and the key if there is one. A
 * refused value is shown with the allowed values, an unknown key with the
 * nearest known key. Errors of an override name the override instead of a line.
 * A repeated key is an error. */
#ifndef TSR_FILES_YAML_H
#define TSR_FILES_YAML_H

#include "core/field.h"
#include "core/pool.h"
#include "core/status.h"

#include <stdio.h>

/* Where each key of a configuration was given, for later error messages. */
typedef struct {
    char *key;   /* "data.0.file" */
    char *place; /* "lar.yaml:7:12", "--set data.0.file=x" */
} tsr_yaml_mark;

/* All marks of a configuration. A zeroed struct is empty. */
typedef struct {
    tsr_pool pool;
    int n;
    tsr_yaml_mark *item; /* [n] */
} tsr_yaml_marks;

/* Records where a key was given, and forgets earlier records of the key and of
 * keys below it. Both strings are copied. Cost: O(number of marks). Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err);

/* The place where the key, or else the nearest key above it that has a mark,
 * was given; NULL: no such mark. */
const char *tsr_yaml_marks_find(const tsr_yaml_marks *marks, const char *key);

void tsr_yaml_marks_clear(tsr_yaml_marks *marks);

/* Reads a mapping from a file into `object`, which already has its default
 * values (tsr_fields_init). Keys that the file lacks keep their defaults.
 *
 * A GROUP is a mapping. A bare scalar sets the field that the group's `alias`
 * names: moves: {pivot: 1} is {pivot: {weight: 1}}. A LIST is a sequence of
 * mappings. A single mapping is a list of one element. If the LIST has an
 * alias, a bare scalar may replace any of these mappings. A STRINGS may be a
 * bare scalar. An empty value keeps the defaults of a GROUP, empties a LIST or
 * STRINGS, and unsets a scalar that has no default. A relative path (`is_path`)
 * starts at the file's folder, or for `set` at the current folder. It is stored
 * as an absolute path, so that a config.yaml in another folder has the same
 * meaning.
 * set    [n_set]  in   "a.b=value" overrides of the command line, applied
 *                      last. The value is YAML. List elements have numbers
 *                      ("data.0.file=x"); the next free number appends an
 *                      element
 * marks           out  where each key was given, empty on entry; NULL: not
 *                      needed. The caller clears it, also after an error
 * After an error `object` may be partly changed; tsr_fields_clear frees it.
 * Errors: TSR_E_NOINPUT (missing, unreadable), TSR_E_CONFIG, TSR_E_USAGE (an
 * override without '='), TSR_E_NOMEM. */
tsr_status tsr_yaml_read_marked(const char *path, const tsr_field *fields,
                                void *object, int n_set, const char *const *set,
                                tsr_yaml_marks *marks, tsr_err *err);

/* Reads a text in memory with absolute paths, as tsr_yaml_write writes it.
 * Errors: those of tsr_yaml_read_marked. */
tsr_status tsr_yaml_parse(const char *text, const tsr_field *fields,
                          void *object, tsr_err *err);

/* Writes every key with its value, and unit and doc as comments. Reading the
 * file gives the same object. A relative path is written as an absolute one,
 * except that a path which the program has set to "./x" is written as it is,
 * and means a file beside the written file. Errors: TSR_E_IO; TSR_E_DATA (a
 * text that is not UTF-8); TSR_E_NUMERIC (a number that is not finite). */
tsr_status tsr_yaml_write(FILE *out, const tsr_field *fields,
                          const void *object, tsr_err *err);

#endif
