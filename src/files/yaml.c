/* Traverses libyaml's document tree and a field table in parallel. Errors name
 * file, line, column and key (yaml.h). The place of each key is recorded as a
 * mark, so that later checks can also report the place. */
#include "files/yaml.h"

#include "core/field.h"
#include "core/status.h"
#include "core/text.h"
#include "files/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <yaml.h>

enum { KEY_SIZE = 256 };

/* State while a file or an override is read. */
typedef struct {
    const char *source; /* the file, or KEY=VALUE of --set */
    int is_set;
    const char *folder;    /* absolute; start of relative paths */
    const tsr_field *top;  /* the whole table, for suggestions */
    tsr_yaml_marks *marks; /* NULL: not needed */
    yaml_document_t document;
    long n_node; /* nodes visited */
    tsr_err *err;
} yaml_reader;

/* Reads `node` (NULL: an empty value) into the field of `object`. `key` is its
 * full path, for messages. */
static tsr_status read_value(yaml_reader *r, yaml_node_t *node,
                             const tsr_field *field, void *object,
                             const char *key);

/* Reads `node` into the struct of a GROUP or of one element of a LIST. */
static tsr_status read_struct(yaml_reader *r, yaml_node_t *node,
                              const tsr_field *field, void *object,
                              const char *key);

/* Limit on nodes: with aliases a small file can expand to a huge tree. */
enum { NODE_MAX = 100000 };

/* ---- marks ---- */

/* Records the place of a key. Earlier marks of the key are not searched for, so
 * that long lists in a file take linear time. */
static tsr_status marks_add(tsr_yaml_marks *marks, const char *key,
                            const char *place, tsr_err *err)
{
    tsr_yaml_mark *item = tsr_pool_resize(&marks->pool, marks->item,
                                          (size_t)marks->n + 1, sizeof *item);
    TSR_TRY(tsr_allocated(item, err));
    marks->item = item;
    item[marks->n++] =
        (tsr_yaml_mark){.key = tsr_pool_text(&marks->pool, key),
                        .place = tsr_pool_text(&marks->pool, place)};
    return tsr_pool_check(&marks->pool, err);
}

tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err)
{
    size_t length = strlen(key);
    for (int k = marks->n - 1; k >= 0; k--) {
        const char *old = marks->item[k].key;
        if (strncmp(old, key, length) == 0 &&
            (old[length] == '\0' || old[length] == '.'))
            marks->item[k] = marks->item[--marks->n];
    }
    return marks_add(marks, key, place, err);
}

const char *tsr_yaml_marks_find(const tsr_yaml_marks *marks, const char *key)
{
    for (size_t length = strlen(key); length > 0;) {
        for (int k = 0; k < marks->n; k++)
            if (strncmp(marks->item[k].key, key, length) == 0 &&
                marks->item[k].key[length] == '\0')
                return marks->item[k].place;
        do
            length--;
        while (length > 0 && key[length] != '.');
    }
    return NULL;
}

void tsr_yaml_marks_clear(tsr_yaml_marks *marks)
{
    tsr_pool_clear(&marks->pool);
    *marks = (tsr_yaml_marks){0};
}

/* ---- nodes ---- */

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* Is the node missing, or a plain null? */
static int is_null(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node == NULL)
        return 1;
    if (node->type != YAML_SCALAR_NODE ||
        node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return 0;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(scalar(node), nulls[i]) == 0)
            return 1;
    return 0;
}

static const char *describe_node(const yaml_node_t *node)
{
    return node->type == YAML_MAPPING_NODE    ? "a mapping"
           : node->type == YAML_SEQUENCE_NODE ? "a list"
                                              : "a single value";
}

/* "run.yaml:7:12" or "--set a.b=c". Returns the length as snprintf does. */
static int format_place(const yaml_reader *r, const yaml_node_t *node,
                        char *text, size_t size)
{
    char shown[TSR_EXCERPT_SIZE];
    if (r->is_set)
        return snprintf(text, size, "--set %s",
                        tsr_text_excerpt(r->source, shown));
    size_t line = node != NULL ? node->start_mark.line + 1 : 1;
    size_t column = node != NULL ? node->start_mark.column + 1 : 1;
    return snprintf(text, size, "%s:%zu:%zu", r->source, line, column);
}

/* Puts file, line, column and key before the stored message. Returns
 * `status`. */
static tsr_status wrap_place(yaml_reader *r, const yaml_node_t *node,
                             const char *key, tsr_status status)
{
    char place[TSR_ERR_SIZE];
    format_place(r, node, place, sizeof place);
    return *key != '\0' ? tsr_wrap(r->err, status, "%s: key '%s'", place, key)
                        : tsr_wrap(r->err, status, "%s", place);
}

/* Reports a configuration error at a node. */
#define REFUSE(r, node, key, ...)  \
    wrap_place((r), (node), (key), \
               tsr_fail((r)->err, TSR_E_CONFIG, __VA_ARGS__))

/* Reports a value of the wrong type for its field. */
static tsr_status refuse(yaml_reader *r, const yaml_node_t *node,
                         const char *key, const tsr_field *field)
{
    char expected[600], value[TSR_EXCERPT_SIZE];
    tsr_field_expected(field, expected, sizeof expected);
    if (is_null(node))
        return REFUSE(r, node, key, "no value: expected %s", expected);
    if (node->type == YAML_SCALAR_NODE)
        return REFUSE(r, node, key, "value '%s' is a single value: expected %s",
                      tsr_text_excerpt(scalar(node), value), expected);
    if (node->type == YAML_SEQUENCE_NODE)
        return REFUSE(r, node, key, "value is a list of %d: expected %s",
                      (int)(node->data.sequence.items.top -
                            node->data.sequence.items.start),
                      expected);
    return REFUSE(r, node, key, "value is a mapping: expected %s", expected);
}

/* Checks rules for all values: number of nodes, tags, NUL characters. */
static tsr_status check_node(yaml_reader *r, const yaml_node_t *node,
                             const char *key)
{
    static const char standard[] = "tag:yaml.org,2002:";
    char shown[TSR_EXCERPT_SIZE];
    if (node == NULL)
        return TSR_OK;
    if (++r->n_node > NODE_MAX)
        return REFUSE(r, node, key,
                      "more than %d values once aliases are followed: not a "
                      "configuration",
                      NODE_MAX);
    if (node->tag != NULL &&
        strncmp((const char *)node->tag, standard, sizeof standard - 1) != 0)
        return REFUSE(r, node, key,
                      "tag '%s' is not supported: write the value itself",
                      tsr_text_excerpt((const char *)node->tag, shown));
    if (node->type == YAML_SCALAR_NODE &&
        memchr(scalar(node), 0, node->data.scalar.length) != NULL)
        return REFUSE(r, node, key, "a NUL character in '%s'",
                      tsr_text_excerpt(scalar(node), shown));
    return TSR_OK;
}

/* check_node for the value of a key, and records the place of the key. A file
 * is read before any --set and has no repeated keys, so that no earlier marks
 * must be forgotten. */
static tsr_status check_value(yaml_reader *r, const yaml_node_t *node,
                              const char *key)
{
    char place[TSR_ERR_SIZE];
    TSR_TRY(check_node(r, node, key));
    if (r->marks == NULL)
        return TSR_OK;
    format_place(r, node, place, sizeof place);
    return r->is_set ? tsr_yaml_marks_put(r->marks, key, place, r->err)
                     : marks_add(r->marks, key, place, r->err);
}

/* "a.b" from "a" and "b". */
static void join_key(char out[KEY_SIZE], const char *key, const char *name)
{
    snprintf(out, KEY_SIZE, "%s%s%s", key, *key != '\0' ? "." : "", name);
}

/* ---- names ---- */

/* Finds a field called `name` anywhere in the table, for a key in the wrong
 * section, which is the most common mistake after a misspelt key. out: path of
 * the field. Returns 0 if no field has the name. */
static int find_elsewhere(const tsr_field *fields, const char *name,
                          const char *key, char out[KEY_SIZE])
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        char path[KEY_SIZE];
        join_key(path, key, f->name);
        if (strcmp(f->name, name) == 0) {
            memcpy(out, path, sizeof path);
            return 1;
        }
        if (f->fields != NULL && find_elsewhere(f->fields, name, path, out))
            return 1;
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++)
            if (find_elsewhere(f->kind(k).fields, name, path, out))
                return 1;
    }
    return 0;
}

/* Number of the first kind of a struct that has a key `name`; -1: no kind
 * has. */
static int find_kind(const tsr_field *field, const char *name)
{
    for (int k = 0; field->selector != NULL && field->kind(k).name != NULL; k++)
        if (tsr_field_find(field->kind(k).fields, name) != NULL)
            return k;
    return -1;
}

/* Reports an unknown key of a struct (field NULL: of the whole table), and
 * suggests a known one. The caller adds the place. */
static tsr_status refuse_unknown(yaml_reader *r, const tsr_field *field,
                                 const void *object, const char *name)
{
    char path[KEY_SIZE], known[900] = "";
    const tsr_field *fields =
        field == NULL ? r->top : tsr_field_members(field, object);
    const int other = field == NULL ? -1 : find_kind(field, name);
    if (other >= 0) {
        int number;
        memcpy(&number, object, sizeof number);
        return tsr_fail(r->err, TSR_E_CONFIG,
                        "it has no effect with %s: %s; it belongs to %s: %s",
                        field->selector, field->kind(number).name,
                        field->selector, field->kind(other).name);
    }
    const char *nearest = tsr_field_nearest(fields, name);
    if (nearest != NULL)
        return tsr_fail(r->err, TSR_E_CONFIG, "unknown key; did you mean '%s'?",
                        nearest);
    size_t n = 0;
    for (const tsr_field *f = fields; f->name != NULL && n < sizeof known; f++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                              f == fields ? "" : ", ", f->name);
    if (find_elsewhere(r->top, name, "", path))
        return tsr_fail(r->err, TSR_E_CONFIG,
                        "unknown key; did you mean '%s'? Known here: %s", path,
                        known);
    return tsr_fail(r->err, TSR_E_CONFIG, "unknown key; known keys: %s", known);
}

/* ---- values ---- */

static yaml_node_t *node_at(yaml_reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

/* Refuses a key that occurs earlier in the mapping. */
static tsr_status check_repeated(yaml_reader *r, yaml_node_t *mapping, int pair,
                                 const char *path)
{
    yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    yaml_node_t *name = node_at(r, pairs[pair].key);
    for (int i = 0; i < pair; i++) {
        yaml_node_t *earlier = node_at(r, pairs[i].key);
        if (strcmp(scalar(earlier), scalar(name)) == 0)
            return REFUSE(r, name, path,
                          "repeated key: the first is in line %zu",
                          earlier->start_mark.line + 1);
    }
    return TSR_OK;
}

/* Reads the pair number `pair` of a mapping. group: the field of the struct
 * `object`; NULL for the whole table. */
static tsr_status read_key(yaml_reader *r, yaml_node_t *mapping, int pair,
                           const tsr_field *group, void *object,
                           const char *key)
{
    yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    yaml_node_t *name = node_at(r, pairs[pair].key);
    TSR_TRY(check_node(r, name, key));
    if (name->type != YAML_SCALAR_NODE)
        return REFUSE(r, name, key, "%s where a key is expected",
                      describe_node(name));
    char path[KEY_SIZE], shown[TSR_EXCERPT_SIZE];
    join_key(path, key, tsr_text_excerpt(scalar(name), shown));
    if (group != NULL && group->selector != NULL &&
        strcmp(scalar(name), group->selector) == 0) /* already read by
                                                       read_kind */
        return check_repeated(r, mapping, pair, path);
    const tsr_field *field = tsr_field_find(
        group == NULL ? r->top : tsr_field_members(group, object),
        scalar(name));
    if (field == NULL && strcmp(scalar(name), "<<") == 0)
        return REFUSE(r, name, path,
                      "merge keys are not supported: write the keys out, or "
                      "use an alias for a whole value");
    if (field == NULL)
        return wrap_place(r, name, path,
                          refuse_unknown(r, group, object, scalar(name)));
    TSR_TRY(check_repeated(r, mapping, pair, path));
    return read_value(r, node_at(r, pairs[pair].value), field, object, path);
}

/* Reads the selector of a struct with kinds; key: its full path. */
static tsr_status choose_kind(yaml_reader *r, yaml_node_t *node,
                              const tsr_field *group, void *object,
                              const char *key)
{
    TSR_TRY(check_value(r, node, key));
    if (is_null(node) || node->type != YAML_SCALAR_NODE)
        return REFUSE(r, node, key, "expected one word, the %s, such as %s",
                      group->selector, group->kind(0).name);
    const tsr_status status =
        tsr_field_set_kind(group, object, scalar(node), r->err);
    return status == TSR_OK ? TSR_OK : wrap_place(r, node, key, status);
}

/* Reads the selector before the other keys, whose meaning depends on it. */
static tsr_status read_kind(yaml_reader *r, yaml_node_t *mapping,
                            const tsr_field *group, void *object,
                            const char *key)
{
    yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(r, pair->key);
        char path[KEY_SIZE];
        if (name->type != YAML_SCALAR_NODE ||
            strcmp(scalar(name), group->selector) != 0)
            continue;
        join_key(path, key, group->selector);
        return choose_kind(r, node_at(r, pair->value), group, object, path);
    }
    return TSR_OK;
}

static tsr_status read_mapping(yaml_reader *r, yaml_node_t *node,
                               const tsr_field *group, void *object,
                               const char *key)
{
    int n =
        (int)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    if (group != NULL && group->selector != NULL)
        TSR_TRY(read_kind(r, node, group, object, key));
    for (int i = 0; i < n; i++)
        TSR_TRY(read_key(r, node, i, group, object, key));
    return TSR_OK;
}

/* Reads the struct of a GROUP or of one element of a LIST. */
static tsr_status read_struct(yaml_reader *r, yaml_node_t *node,
                              const tsr_field *field, void *object,
                              const char *key)
{
    if (is_null(node))
        return TSR_OK;
    if (node->type == YAML_MAPPING_NODE)
        return read_mapping(r, node, field, object, key);
    const tsr_field *alias =
        field->alias != NULL
            ? tsr_field_find(tsr_field_members(field, object), field->alias)
            : NULL;
    if (alias == NULL || node->type != YAML_SCALAR_NODE) {
        tsr_field one = *field; /* the element of a list */
        one.type = TSR_FIELD_GROUP;
        return refuse(r, node, key, &one);
    }
    return read_value(r, node, alias, object, key);
}

/* Appends an element to a LIST, or a string to a STRINGS. */
static tsr_status read_item(yaml_reader *r, yaml_node_t *node,
                            const tsr_field *field, void *object,
                            const char *key)
{
    void *list = (char *)object + field->offset, *element;
    const int is_list = field->type == TSR_FIELD_LIST;
    char path[KEY_SIZE], number[16];
    snprintf(number, sizeof number, "%d",
             is_list ? ((tsr_list *)list)->n : ((tsr_strings *)list)->n);
    join_key(path, key, number);
    TSR_TRY(check_value(r, node, path));
    if (is_list) {
        TSR_TRY(tsr_field_append(field, object, &element, r->err));
        return read_struct(r, node, field, element, path);
    }
    if (node->type != YAML_SCALAR_NODE || is_null(node))
        return refuse(r, node, path, field);
    return tsr_strings_append(list, scalar(node), r->err);
}

/* Reads a LIST or STRINGS, which replaces the old list. */
static tsr_status read_items(yaml_reader *r, yaml_node_t *node,
                             const tsr_field *field, void *object,
                             const char *key)
{
    const tsr_field only[] = {*field, {.name = NULL}};
    tsr_fields_clear(only, object);
    if (is_null(node))
        return TSR_OK;
    if (node->type == YAML_MAPPING_NODE && field->type == TSR_FIELD_STRINGS)
        return refuse(r, node, key, field);
    if (node->type != YAML_SEQUENCE_NODE)
        return read_item(r, node, field, object, key);
    yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++)
        TSR_TRY(read_item(r, node_at(r, *item), field, object, key));
    return TSR_OK;
}

/* Removes "/." and "/folder/.." from an absolute path, for readability. If
 * `folder` is a link or does not exist, ".." stays, because it may lead
 * elsewhere. */
static void shorten_path(char *path)
{
    struct stat info;
    for (char *p = path; (p = strstr(p, "/.")) != NULL;) {
        size_t n = p[2] == '.' ? 3 : 2; /* length of "/.." or "/." */
        char *from = p;
        if (p[n] != '/') { /* a name that begins with a dot, or the end */
            p += 2;
            continue;
        }
        if (n == 3) {
            *p = '\0';
            from = strrchr(path, '/');
            int is_folder = from != NULL && strcmp(from, "/..") != 0 &&
                            lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
            *p = '/';
            if (!is_folder) {
                p += n;
                continue;
            }
        }
        memmove(from, p + n, strlen(p + n) + 1);
        p = from;
    }
}

static tsr_status read_string(yaml_reader *r, yaml_node_t *node,
                              const tsr_field *field, void *object)
{
    char **p = (void *)((char *)object + field->offset);
    const char *text = scalar(node);
    int joined =
        tsr_field_names_file(field, text) && *text != '\0' && *text != '/';
    char *copy = tsr_text_format("%s%s%s", joined ? r->folder : "",
                                 joined ? "/" : "", text);
    TSR_TRY(tsr_allocated(copy, r->err));
    if (joined)
        shorten_path(copy);
    free(*p);
    *p = copy;
    return TSR_OK;
}

static tsr_status read_scalar(yaml_reader *r, yaml_node_t *node,
                              const tsr_field *field, void *object,
                              const char *key)
{
    char pair[160];
    const char *text;
    if (is_null(node)) {
        if (field->initial != NULL)
            return refuse(r, node, key, field);
        text = "null";
    } else if (field->type == TSR_FIELD_PAIR) {
        /* tsr_field_parse needs the pair as text */
        if (node->type != YAML_SEQUENCE_NODE ||
            node->data.sequence.items.top - node->data.sequence.items.start !=
                2)
            return refuse(r, node, key, field);
        const yaml_node_item_t *item = node->data.sequence.items.start;
        yaml_node_t *low = node_at(r, item[0]), *high = node_at(r, item[1]);
        TSR_TRY(check_node(r, low, key));
        TSR_TRY(check_node(r, high, key));
        if (low->type != YAML_SCALAR_NODE || high->type != YAML_SCALAR_NODE)
            return refuse(r, node, key, field);
        snprintf(pair, sizeof pair, "[%.70s, %.70s]", scalar(low),
                 scalar(high));
        text = pair;
    } else if (node->type != YAML_SCALAR_NODE) {
        return refuse(r, node, key, field);
    } else if (field->type == TSR_FIELD_STRING) {
        return read_string(r, node, field, object);
    } else {
        text = scalar(node);
    }
    tsr_status status = tsr_field_parse(field, object, text, r->err);
    return status == TSR_OK ? TSR_OK : wrap_place(r, node, key, status);
}

static tsr_status read_value(yaml_reader *r, yaml_node_t *node,
                             const tsr_field *field, void *object,
                             const char *key)
{
    TSR_TRY(check_value(r, node, key));
    switch (field->type) {
    case TSR_FIELD_GROUP:
        return read_struct(r, node, field, (char *)object + field->offset, key);
    case TSR_FIELD_LIST:
    case TSR_FIELD_STRINGS:
        return read_items(r, node, field, object, key);
    default:
        return read_scalar(r, node, field, object, key);
    }
}

/* Reads the root of a file, which must be a mapping or empty. */
static tsr_status read_root(yaml_reader *r, yaml_node_t *node, void *object)
{
    TSR_TRY(check_node(r, node, ""));
    if (is_null(node))
        return TSR_OK;
    if (node->type == YAML_MAPPING_NODE)
        return read_mapping(r, node, NULL, object, "");
    return REFUSE(r, node, "",
                  "the file is %s: expected lines of 'key: value' (a mapping)",
                  describe_node(node));
}

/* ---- files and overrides ----
 *
 * From the text of a file or of --set to libyaml's document tree. */

/* Far more than needed: field tables nest four deep. */
enum { FILE_MAX_BYTES = 16 << 20, DEPTH_MAX = 64 };

/* The folder of `path` ("": the current folder) as an absolute path, so that
 * paths that start there keep their meaning in other folders. The caller frees
 * *out. */
static tsr_status absolute_folder(const char *path, char **out, tsr_err *err)
{
    tsr_status status = tsr_file_absolute(path, out, err);
    char *slash = status == TSR_OK && *path != '\0' ? strrchr(*out, '/') : NULL;
    if (slash != NULL)
        slash[slash == *out] = '\0'; /* keeps the slash of "/" */
    return status;
}

/* ---- libyaml ---- */

/* Byte offset of a line and column, from 1. libyaml counts columns in
 * characters. */
static size_t byte_at(const char *text, size_t n, size_t line, size_t column)
{
    size_t at = 0;
    for (; at < n && line > 1; at++)
        line -= text[at] == '\n';
    for (; at < n && column > 1; column--)
        do
            at++;
        while (at < n && (text[at] & 0xc0) == 0x80);
    return at;
}

/* Reports a syntax error with libyaml's message and position. */
static tsr_status report_syntax_error(const yaml_reader *r,
                                      const yaml_parser_t *parser,
                                      const char *text, size_t n)
{
    const char *problem =
        parser->problem != NULL ? parser->problem : "cannot be read";
    const char *context = parser->context != NULL ? parser->context : "";
    const char *comma = *context != '\0' ? ", " : "";
    size_t line = parser->problem_mark.line + 1;
    size_t column = parser->problem_mark.column + 1;
    const char *remedy = "";
    if (parser->error == YAML_MEMORY_ERROR)
        return tsr_fail(r->err, TSR_E_NOMEM, "out of memory for '%s'",
                        r->source);
    size_t at = byte_at(text, n, line, column);
    if (parser->error == YAML_READER_ERROR) {
        /* this error has a byte offset instead of a mark */
        at = parser->problem_offset < n ? parser->problem_offset : n;
        line = column = 1;
        for (size_t i = 0; i < at; i++) {
            column = text[i] == '\n' ? 1 : column + ((text[i] & 0xc0) != 0x80);
            line += text[i] == '\n';
        }
        if (strstr(problem, "UTF-8") != NULL)
            remedy = "; save the file as UTF-8";
    } else if (parser->error == YAML_SCANNER_ERROR && at < n &&
               text[at] == '\t') {
        remedy = "; indent with spaces, not with tabs";
    }
    char shown[TSR_EXCERPT_SIZE];
    if (r->is_set)
        return tsr_fail(r->err, TSR_E_CONFIG,
                        "--set %s: the value is not YAML: %s%s%s%s; quote it",
                        tsr_text_excerpt(r->source, shown), problem, comma,
                        context, remedy);
    return tsr_fail(r->err, TSR_E_CONFIG, "%s:%zu:%zu: not YAML: %s%s%s%s",
                    r->source, line, column, problem, comma, context, remedy);
}

/* Refuses text nested too deep before it is loaded, because libyaml's time
 * grows quadratically with depth. Syntax errors end the check; load_document
 * reports them. */
static tsr_status check_depth(yaml_reader *r, const char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_event_t event;
    tsr_status status = TSR_OK;
    int depth = 0, done = 0;
    if (!yaml_parser_initialize(&parser))
        return tsr_fail(r->err, TSR_E_NOMEM, "out of memory for '%s'",
                        r->source);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    while (!done && yaml_parser_parse(&parser, &event)) {
        const yaml_node_t here = {.start_mark = event.start_mark};
        depth += event.type == YAML_SEQUENCE_START_EVENT ||
                 event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT ||
                 event.type == YAML_MAPPING_END_EVENT;
        if (depth > DEPTH_MAX)
            status = REFUSE(r, &here, "",
                            "lists and mappings nested more than %d deep: not "
                            "a configuration",
                            DEPTH_MAX);
        done = status != TSR_OK || event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* Loads a text with one document. On success the caller deletes r->document. */
static tsr_status load_document(yaml_reader *r, const char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_document_t second;
    tsr_status status = TSR_OK;
    TSR_TRY(check_depth(r, text, n));
    if (!yaml_parser_initialize(&parser))
        return tsr_fail(r->err, TSR_E_NOMEM, "out of memory for '%s'",
                        r->source);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    if (!yaml_parser_load(&parser, &r->document)) {
        status = report_syntax_error(r, &parser, text, n);
        goto done;
    }
    if (yaml_document_get_root_node(&r->document) == NULL)
        goto done; /* an empty stream; libyaml then allows no further calls */
    if (!yaml_parser_load(&parser, &second)) {
        status = report_syntax_error(r, &parser, text, n);
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&second);
        if (root != NULL)
            status = REFUSE(r, root, "",
                            "a second document starts here: one file holds one "
                            "configuration");
        yaml_document_delete(&second);
    }
    if (status != TSR_OK)
        yaml_document_delete(&r->document);
done:
    yaml_parser_delete(&parser);
    return status;
}

/* ---- --set KEY=VALUE ---- */

/* The element that the number in "data.0.file" selects; the next free number
 * appends an element. */
static tsr_status find_element(yaml_reader *r, const tsr_field *field,
                               void *object, const char *name, const char *key,
                               void **element)
{
    const tsr_list *list = (void *)((char *)object + field->offset);
    const size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 8 || name[digits] != '\0')
        return REFUSE(
            r, NULL, key,
            "this is a list: name an element by its number, as in '%s.0'",
            field->name);
    const long i = strtol(name, NULL, 10);
    if (i > list->n)
        return REFUSE(
            r, NULL, key,
            "the list has %d element%s: expected a number from 0 to %d",
            list->n, list->n == 1 ? "" : "s", list->n);
    if (i == list->n)
        return tsr_field_append(field, object, element, r->err);
    *element = (char *)list->item + (size_t)i * field->element_size;
    return TSR_OK;
}

/* Follows the dotted path `names`, which is modified, and reads the value. */
static tsr_status set_path(yaml_reader *r, yaml_node_t *root, char *names,
                           void *object)
{
    const tsr_field *group = NULL; /* field of the struct `object` */
    char key[KEY_SIZE] = "", path[KEY_SIZE];
    char shown[TSR_EXCERPT_SIZE];
    for (char *name = names, *next; name != NULL; name = next) {
        next = strchr(name, '.');
        if (next != NULL)
            *next++ = '\0';
        join_key(path, key, tsr_text_excerpt(name, shown));
        if (group != NULL && group->selector != NULL && next == NULL &&
            strcmp(name, group->selector) == 0)
            return choose_kind(r, root, group, object, path);
        const tsr_field *field = tsr_field_find(
            group == NULL ? r->top : tsr_field_members(group, object), name);
        if (field == NULL)
            return wrap_place(r, NULL, path,
                              refuse_unknown(r, group, object, name));
        if (next == NULL)
            return read_value(r, root, field, object, path);
        memcpy(key, path, sizeof key);
        if (field->type == TSR_FIELD_GROUP) {
            object = (char *)object + field->offset;
        } else if (field->type == TSR_FIELD_LIST) {
            name = next;
            next = strchr(name, '.');
            if (next != NULL)
                *next++ = '\0';
            void *element = NULL;
            TSR_TRY(find_element(r, field, object, name, key, &element));
            object = element;
            join_key(path, key, name);
            if (next == NULL)
                return read_struct(r, root, field, object, path);
            memcpy(key, path, sizeof key);
        } else {
            return REFUSE(r, NULL, key, "it has no subkeys");
        }
        group = field;
    }
    return TSR_OK;
}

static tsr_status apply_set(yaml_reader *r, void *object)
{
    const char *equals = strchr(r->source, '=');
    char shown[TSR_EXCERPT_SIZE];
    if (equals == NULL || equals == r->source)
        return tsr_fail(r->err, TSR_E_USAGE,
                        "--set %s: expected KEY=VALUE, as in "
                        "--set sampler.chains=4",
                        tsr_text_excerpt(r->source, shown));
    char *names = strndup(r->source, (size_t)(equals - r->source));
    TSR_TRY(tsr_allocated(names, r->err));
    tsr_status status = load_document(r, equals + 1, strlen(equals + 1));
    if (status == TSR_OK) {
        status = set_path(r, yaml_document_get_root_node(&r->document), names,
                          object);
        yaml_document_delete(&r->document);
    }
    free(names);
    return status;
}

tsr_status tsr_yaml_read_marked(const char *path, const tsr_field *fields,
                                void *object, int n_set, const char *const *set,
                                tsr_yaml_marks *marks, tsr_err *err)
{
    char *text = NULL, *folder = NULL, *here = NULL;
    size_t n = 0;
    yaml_reader r = {.source = path, .top = fields, .marks = marks, .err = err};
    tsr_status status =
        tsr_file_read_limited(path, FILE_MAX_BYTES, &text, &n, err);
    if (status == TSR_E_DATA)
        status = tsr_wrap(err, TSR_E_CONFIG, "not a configuration");
    TSR_THEN(status, absolute_folder(path, &folder, err));
    TSR_THEN(status, absolute_folder("", &here, err));
    r.folder = folder;
    TSR_THEN(status, load_document(&r, text, n));
    if (status == TSR_OK) {
        status =
            read_root(&r, yaml_document_get_root_node(&r.document), object);
        yaml_document_delete(&r.document);
    }
    for (int i = 0; i < n_set && status == TSR_OK; i++) {
        r.source = set[i];
        r.is_set = 1;
        r.folder = here;
        r.n_node = 0;
        status = apply_set(&r, object);
    }
    free(text);
    free(folder);
    free(here);
    return status;
}

tsr_status tsr_yaml_parse(const char *text, const tsr_field *fields,
                          void *object, tsr_err *err)
{
    yaml_reader r = {.source = "", .folder = "", .top = fields, .err = err};
    TSR_TRY(load_document(&r, text, strlen(text)));
    const tsr_status status =
        read_root(&r, yaml_document_get_root_node(&r.document), object);
    yaml_document_delete(&r.document);
    return status;
}

/* ---- writing ----
 *
 * Writes field tables as YAML with comments. libyaml's emitter cannot write
 * comments, and only a small part of YAML is needed: block style, one value per
 * line. */

static const char LETTERS[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Would every YAML reader read the unquoted text as the same string? */
static int is_plain(const char *text)
{
    static const char *const taken[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    size_t n = strlen(text);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcasecmp(text, taken[i]) == 0)
            return 0;
    /* characters of numbers, dates and times */
    if (strspn(text, "0123456789+-._:abcdefxoABCDEFXOTZ") == n &&
        strcspn(text, "0123456789") < n)
        return 0;
    if (strspn(text, "0123456789") == 0 && strspn(text, LETTERS) == 0 &&
        text[0] != '/' && text[0] != '_')
        return 0;
    for (const char *s = text; *s != '\0'; s++)
        if (strchr(LETTERS, *s) == NULL &&
            strchr("0123456789_./+-", *s) == NULL)
            return 0;
    return n > 0;
}

/* Does YAML allow the character unescaped in double quotes? */
static int is_printable(long code)
{
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0x2028) ||
           (code > 0x2029 && code < 0xd800) ||
           (code >= 0xe000 && code < 0xfffe && code != 0xfeff) ||
           (code >= 0x10000 && code <= 0x10ffff);
}

/* Errors: TSR_E_DATA (not UTF-8, which YAML cannot represent). */
static tsr_status write_text(FILE *out, const char *name, const char *text,
                             tsr_err *err)
{
    if (is_plain(text)) {
        fputs(text, out);
        return TSR_OK;
    }
    fputc('"', out);
    for (const char *s = text; *s != '\0';) {
        const char *from = s;
        long code = tsr_utf8_next(&s);
        if (code < 0) {
            char shown[TSR_EXCERPT_SIZE];
            return tsr_fail(err, TSR_E_DATA,
                            "key '%s': '%s' is not UTF-8 and cannot be written "
                            "as YAML: rename it",
                            name, tsr_text_excerpt(text, shown));
        }
        if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else if (is_printable(code))
            fwrite(from, 1, (size_t)(s - from), out);
        else
            fprintf(out, code < 0x100 ? "\\x%02lx" : "\\u%04lx", code);
    }
    fputc('"', out);
    return TSR_OK;
}

/* Writes a path as an absolute one. A relative path in `object` starts at the
 * current folder, but a reader of the file would start at the folder of the
 * file. Only "./x" is meant to start there. */
static tsr_status write_path(FILE *out, const char *name, const char *path,
                             tsr_err *err)
{
    if (*path == '\0' || strncmp(path, "./", 2) == 0)
        return write_text(out, name, path, err);
    char *whole;
    tsr_status status = tsr_file_absolute(path, &whole, err);
    TSR_THEN(status, write_text(out, name, whole, err));
    free(whole);
    return status;
}

static tsr_status write_scalar(FILE *out, const tsr_field *f,
                               const void *object, tsr_err *err)
{
    const void *p = (const char *)object + f->offset;
    char text[128];
    if (f->type == TSR_FIELD_STRING) {
        const char *s = *(char *const *)p;
        if (s != NULL)
            return tsr_field_names_file(f, s)
                       ? write_path(out, f->name, s, err)
                       : write_text(out, f->name, s, err);
        if (f->initial != NULL)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "key '%s' has a default and yet is NULL", f->name);
    }
    const double *x = p;
    const tsr_number_or_word *n = p;
    if ((f->type == TSR_FIELD_DOUBLE && !isfinite(*x)) ||
        (f->type == TSR_FIELD_PAIR && !(isfinite(x[0]) && isfinite(x[1]))) ||
        (f->type == TSR_FIELD_NUMBER_OR_WORD && n->word < 0 &&
         !isfinite(n->number)))
        return tsr_fail(err, TSR_E_NUMERIC, "key '%s' is not finite", f->name);
    if (f->type == TSR_FIELD_CHOICE)
        return write_text(out, f->name, f->words[*(const int *)p], err);
    if (f->type == TSR_FIELD_NUMBER_OR_WORD && n->word >= 0)
        return write_text(out, f->name, f->words[n->word], err);
    tsr_field_format(f, object, text, sizeof text);
    fputs(text, out);
    return TSR_OK;
}

static void write_comment(FILE *out, const tsr_field *f, int indent)
{
    char text[1400], expected[600] = "";
    const char *doc = f->doc != NULL ? f->doc : "";
    const char *unit = f->unit != NULL ? f->unit : "";
    int is_choice =
        f->type == TSR_FIELD_CHOICE || f->type == TSR_FIELD_NUMBER_OR_WORD;
    if (is_choice)
        tsr_field_expected(f, expected, sizeof expected);
    if (*doc == '\0' && *unit == '\0' && !is_choice)
        return;
    snprintf(text, sizeof text, "%s%s%s%s%s", doc,
             *unit != '\0' ? (*doc != '\0' ? ", in " : "in ") : "", unit,
             is_choice && (*doc != '\0' || *unit != '\0') ? ": " : "",
             expected);
    tsr_text_wrap(out, 0, indent, "# ", text);
}

/* Writes the line of the selector, with the known kinds as a comment. */
static void write_kind(FILE *out, const tsr_field *f, const void *object,
                       int indent, int dash, int comments)
{
    char known[200] = "";
    size_t n = 0;
    int number;
    memcpy(&number, object, sizeof number);
    for (int k = 0; f->kind(k).name != NULL && n < sizeof known; k++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                              k == 0 ? "one of " : ", ", f->kind(k).name);
    if (comments)
        tsr_text_wrap(out, 0, indent, "# ", known);
    fprintf(out, "%*s%s%s: %s\n", indent - 2 * dash, "", dash ? "- " : "",
            f->selector, f->kind(number).name);
}

static tsr_status write_fields(FILE *out, const tsr_field *fields,
                               const void *object, int indent, int dash,
                               int comments, tsr_err *err);

static tsr_status write_list(FILE *out, const tsr_field *f, const void *object,
                             int indent, int comments, tsr_err *err)
{
    const tsr_list *list = (const void *)((const char *)object + f->offset);
    if (list->n == 0)
        fputs(" []", out);
    fputc('\n', out);
    for (int i = 0; i < list->n; i++) {
        const char *element =
            (const char *)list->item + (size_t)i * f->element_size;
        if (f->selector != NULL)
            write_kind(out, f, element, indent + 4, 1, comments && i == 0);
        TSR_TRY(write_fields(out, tsr_field_members(f, element), element,
                             indent + 4, f->selector == NULL,
                             comments && (i == 0 || f->selector != NULL), err));
    }
    return TSR_OK;
}

static tsr_status write_strings(FILE *out, const tsr_field *f,
                                const void *object, int indent, tsr_err *err)
{
    const tsr_strings *strings =
        (const void *)((const char *)object + f->offset);
    if (strings->n == 0)
        fputs(" []", out);
    fputc('\n', out);
    for (int i = 0; i < strings->n; i++) {
        fprintf(out, "%*s- ", indent + 2, "");
        TSR_TRY(write_text(out, f->name, strings->item[i], err));
        fputc('\n', out);
    }
    return TSR_OK;
}

/* dash 1: the first key follows the "- " of a list. */
static tsr_status write_fields(FILE *out, const tsr_field *fields,
                               const void *object, int indent, int dash,
                               int comments, tsr_err *err)
{
    if (fields->name == NULL) {
        fprintf(out, "%*s%s{}\n", indent - 2 * dash, "", dash ? "- " : "");
        return TSR_OK;
    }
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        const int is_first = dash && f == fields;
        tsr_status status = TSR_OK;
        if (comments)
            write_comment(out, f, indent);
        fprintf(out, "%*s%s%s:", indent - 2 * is_first, "",
                is_first ? "- " : "", f->name);
        if (f->type == TSR_FIELD_GROUP) {
            const char *group = (const char *)object + f->offset;
            const tsr_field *members = tsr_field_members(f, group);
            int empty = members->name == NULL && f->selector == NULL;
            fputc(empty ? ' ' : '\n', out);
            if (f->selector != NULL)
                write_kind(out, f, group, indent + 2, 0, comments);
            if (members->name != NULL || empty)
                status = write_fields(out, members, group,
                                      empty ? 0 : indent + 2, 0, comments, err);
        } else if (f->type == TSR_FIELD_LIST) {
            status = write_list(out, f, object, indent, comments, err);
        } else if (f->type == TSR_FIELD_STRINGS) {
            status = write_strings(out, f, object, indent, err);
        } else {
            fputc(' ', out);
            status = write_scalar(out, f, object, err);
            fputc('\n', out);
        }
        TSR_TRY(status);
    }
    return TSR_OK;
}

tsr_status tsr_yaml_write(FILE *out, const tsr_field *fields,
                          const void *object, tsr_err *err)
{
    TSR_TRY(write_fields(out, fields, object, 0, 0, 1, err));
    errno = 0;
    if (fflush(out) != 0 || ferror(out))
        return tsr_fail(err, TSR_E_IO, "cannot write the configuration: %s",
                        errno != 0 ? strerror(errno) : "write error");
    return TSR_OK;
}
