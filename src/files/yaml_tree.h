/* libyaml's document tree into field tables (private to src/files/yaml_*.c). */
#ifndef TSR_FILES_YAML_TREE_H
#define TSR_FILES_YAML_TREE_H

#include "core/field.h"
#include "core/status.h"
#include "files/yaml.h"

#include <yaml.h>

enum { TSR_YAML_KEY_SIZE = 256 };

typedef struct {
    const char *source; /* the file, or the KEY=VALUE of --set */
    int is_set;
    const char *folder;    /* absolute; relative paths start here */
    const tsr_field *top;  /* the whole table, for suggestions */
    tsr_yaml_marks *marks; /* NULL: not wanted */
    yaml_document_t document;
    long n_node; /* visited */
    tsr_err *err;
} tsr_yaml_reader;

/* Reads `node` (NULL: an empty value) into the field of `object`. `key`: its
 * path, for messages. */
tsr_status tsr_yaml_value(tsr_yaml_reader *r, yaml_node_t *node,
                          const tsr_field *field, void *object,
                          const char *key);

/* Reads `node` into the struct of a GROUP or of one element of a LIST. */
tsr_status tsr_yaml_struct(tsr_yaml_reader *r, yaml_node_t *node,
                           const tsr_field *field, void *object,
                           const char *key);

/* Reads the root of a file, which must be a mapping or empty. */
tsr_status tsr_yaml_root(tsr_yaml_reader *r, yaml_node_t *node, void *object);

/* Puts file, line, column and key before the message that is there. Returns
 * `status`. */
tsr_status tsr_yaml_place(tsr_yaml_reader *r, const yaml_node_t *node,
                          const char *key, tsr_status status);

/* Says that the struct of a GROUP or an element of a LIST (NULL: the whole
 * table) has no such key, and what was meant; no place. */
tsr_status tsr_yaml_unknown(tsr_yaml_reader *r, const tsr_field *field,
                            const void *object, const char *name);

/* Reads the selector of a struct that has kinds; key: its path. */
tsr_status tsr_yaml_choose(tsr_yaml_reader *r, yaml_node_t *node,
                           const tsr_field *group, void *object,
                           const char *key);

/* "a.b" from "a" and "b". */
void tsr_yaml_join(char out[TSR_YAML_KEY_SIZE], const char *key,
                   const char *name);

#endif
