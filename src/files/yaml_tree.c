/* Walks libyaml's tree and a field table side by side. Every refusal names
 * file, line, column and key, and for an unknown key the nearest known one;
 * where a key was given is kept as a mark, so that later checks can name the
 * place, too. */
#include "files/yaml_tree.h"

#include "core/text.h"
#include "files/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Aliases let a small file stand for a huge tree. */
enum { NODE_MAX = 100000 };

/* ---- marks ---- */

static void drop(tsr_yaml_marks *marks, int k)
{
    free(marks->item[k].key);
    free(marks->item[k].place);
    marks->item[k] = marks->item[--marks->n];
}

/* Says where a key was given of which nothing is known yet: looks through none,
 * so that a file's long lists do not take time that grows with their square. */
static tsr_status marks_add(tsr_yaml_marks *marks, const char *key,
                            const char *place, tsr_err *err)
{
    if (marks->n == marks->room) {
        int room = 2 * marks->room + 32;
        tsr_yaml_mark *more =
            realloc(marks->item, (size_t)room * sizeof *marks->item);
        TSR_TRY(tsr_allocated(more, err));
        marks->item = more;
        marks->room = room;
    }
    tsr_yaml_mark mark = {strdup(key), strdup(place)};
    if (mark.key == NULL || mark.place == NULL) {
        free(mark.key);
        free(mark.place);
        return tsr_no_memory(err);
    }
    marks->item[marks->n++] = mark;
    return TSR_OK;
}

tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err)
{
    size_t length = strlen(key);
    for (int k = marks->n - 1; k >= 0; k--) {
        const char *old = marks->item[k].key;
        if (strncmp(old, key, length) == 0 &&
            (old[length] == '\0' || old[length] == '.'))
            drop(marks, k);
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
    while (marks->n > 0)
        drop(marks, marks->n - 1);
    free(marks->item);
    *marks = (tsr_yaml_marks){0};
}

/* ---- nodes ---- */

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* An absent node, or a plain null. */
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

static const char *kind(const yaml_node_t *node)
{
    return node->type == YAML_MAPPING_NODE    ? "a mapping"
           : node->type == YAML_SEQUENCE_NODE ? "a list"
                                              : "a single value";
}

/* "run.yaml:7:12", "--set a.b=c". Returns the length, as snprintf. */
static int say_place(const tsr_yaml_reader *r, const yaml_node_t *node,
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

tsr_status tsr_yaml_place(tsr_yaml_reader *r, const yaml_node_t *node,
                          const char *key, tsr_status status)
{
    char place[TSR_ERR_SIZE];
    say_place(r, node, place, sizeof place);
    return *key != '\0' ? tsr_wrap(r->err, status, "%s: key '%s'", place, key)
                        : tsr_wrap(r->err, status, "%s", place);
}

/* A file is read before any --set and gives no key twice. */
static tsr_status mark(tsr_yaml_reader *r, const yaml_node_t *node,
                       const char *key)
{
    char place[TSR_ERR_SIZE];
    if (r->marks == NULL)
        return TSR_OK;
    say_place(r, node, place, sizeof place);
    return r->is_set ? tsr_yaml_marks_put(r->marks, key, place, r->err)
                     : marks_add(r->marks, key, place, r->err);
}

/* The value is of the wrong kind for its field. */
static tsr_status refuse(tsr_yaml_reader *r, const yaml_node_t *node,
                         const char *key, const tsr_field *field)
{
    char expected[600], value[TSR_EXCERPT_SIZE];
    tsr_field_expects(field, expected, sizeof expected);
    if (is_null(node))
        tsr_fail(r->err, TSR_E_CONFIG, "no value: expected %s", expected);
    else if (node->type == YAML_SCALAR_NODE)
        tsr_fail(r->err, TSR_E_CONFIG,
                 "value '%s' is a single one: expected %s",
                 tsr_text_excerpt(scalar(node), value), expected);
    else if (node->type == YAML_SEQUENCE_NODE)
        tsr_fail(r->err, TSR_E_CONFIG, "value is a list of %d: expected %s",
                 (int)(node->data.sequence.items.top -
                       node->data.sequence.items.start),
                 expected);
    else
        tsr_fail(r->err, TSR_E_CONFIG, "value is a mapping: expected %s",
                 expected);
    return tsr_yaml_place(r, node, key, TSR_E_CONFIG);
}

/* What no value may be, whatever its field. */
static tsr_status check_node(tsr_yaml_reader *r, const yaml_node_t *node,
                             const char *key)
{
    static const char own[] = "tag:yaml.org,2002:";
    char shown[TSR_EXCERPT_SIZE];
    if (node == NULL)
        return TSR_OK;
    if (++r->n_node > NODE_MAX)
        tsr_fail(r->err, TSR_E_CONFIG,
                 "more than %d values once aliases are "
                 "followed: not a configuration",
                 NODE_MAX);
    else if (node->tag != NULL &&
             strncmp((const char *)node->tag, own, sizeof own - 1) != 0)
        tsr_fail(r->err, TSR_E_CONFIG,
                 "tag '%s' is not supported: write the "
                 "value itself",
                 tsr_text_excerpt((const char *)node->tag, shown));
    else if (node->type == YAML_SCALAR_NODE &&
             memchr(scalar(node), 0, node->data.scalar.length) != NULL)
        tsr_fail(r->err, TSR_E_CONFIG, "a NUL character in '%s'",
                 tsr_text_excerpt(scalar(node), shown));
    else
        return TSR_OK;
    return tsr_yaml_place(r, node, key, TSR_E_CONFIG);
}

void tsr_yaml_join(char out[TSR_YAML_KEY_SIZE], const char *key,
                   const char *name)
{
    snprintf(out, TSR_YAML_KEY_SIZE, "%s%s%s", key, *key != '\0' ? "." : "",
             name);
}

/* ---- names ---- */

/* Where the whole table has a field of that name, its path; a key in the wrong
 * section is the commonest mistake after a misspelt one. */
static int find_elsewhere(const tsr_field *fields, const char *name,
                          const char *key, char out[TSR_YAML_KEY_SIZE])
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        char path[TSR_YAML_KEY_SIZE];
        tsr_yaml_join(path, key, f->name);
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

/* The number of the kind of a struct that has a key of that name; -1: none. */
static int find_kind(const tsr_field *field, const char *name)
{
    for (int k = 0; field->selector != NULL && field->kind(k).name != NULL; k++)
        if (tsr_field_find(field->kind(k).fields, name) != NULL)
            return k;
    return -1;
}

tsr_status tsr_yaml_unknown(tsr_yaml_reader *r, const tsr_field *field,
                            const void *object, const char *name)
{
    char path[TSR_YAML_KEY_SIZE], known[900] = "";
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

static yaml_node_t *node_at(tsr_yaml_reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

/* Refuses a key that stands before `pair` in the mapping. */
static tsr_status check_repeated(tsr_yaml_reader *r, yaml_node_t *mapping,
                                 int pair, const char *path)
{
    yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    yaml_node_t *name = node_at(r, pairs[pair].key);
    for (int i = 0; i < pair; i++) {
        yaml_node_t *earlier = node_at(r, pairs[i].key);
        if (strcmp(scalar(earlier), scalar(name)) == 0) {
            tsr_fail(r->err, TSR_E_CONFIG,
                     "repeated key: it stands in line "
                     "%zu already",
                     earlier->start_mark.line + 1);
            return tsr_yaml_place(r, name, path, TSR_E_CONFIG);
        }
    }
    return TSR_OK;
}

/* group: whose struct this is; NULL for the whole table. */
static tsr_status read_key(tsr_yaml_reader *r, yaml_node_t *mapping, int pair,
                           const tsr_field *group, void *object,
                           const char *key)
{
    yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    yaml_node_t *name = node_at(r, pairs[pair].key);
    TSR_TRY(check_node(r, name, key));
    if (name->type != YAML_SCALAR_NODE) {
        tsr_fail(r->err, TSR_E_CONFIG, "%s where a key belongs", kind(name));
        return tsr_yaml_place(r, name, key, TSR_E_CONFIG);
    }
    char path[TSR_YAML_KEY_SIZE], shown[TSR_EXCERPT_SIZE];
    tsr_yaml_join(path, key, tsr_text_excerpt(scalar(name), shown));
    if (group != NULL && group->selector != NULL &&
        strcmp(scalar(name), group->selector) == 0) /* was read before */
        return check_repeated(r, mapping, pair, path);
    const tsr_field *field = tsr_field_find(
        group == NULL ? r->top : tsr_field_members(group, object),
        scalar(name));
    if (field == NULL) {
        if (strcmp(scalar(name), "<<") == 0)
            tsr_fail(r->err, TSR_E_CONFIG,
                     "merge keys are not supported: "
                     "write the keys out, or use an alias for a whole value");
        else
            tsr_yaml_unknown(r, group, object, scalar(name));
        return tsr_yaml_place(r, name, path, TSR_E_CONFIG);
    }
    tsr_status status = check_repeated(r, mapping, pair, path);
    return status != TSR_OK ? status
                            : tsr_yaml_value(r, node_at(r, pairs[pair].value),
                                             field, object, path);
}

tsr_status tsr_yaml_choose(tsr_yaml_reader *r, yaml_node_t *node,
                           const tsr_field *group, void *object,
                           const char *key)
{
    tsr_status status = check_node(r, node, key);
    TSR_THEN(status, mark(r, node, key));
    if (status != TSR_OK)
        return status;
    if (is_null(node) || node->type != YAML_SCALAR_NODE)
        status = tsr_fail(r->err, TSR_E_CONFIG,
                          "expected one word, the %s, such as %s",
                          group->selector, group->kind(0).name);
    else
        status = tsr_field_choose(group, object, scalar(node), r->err);
    return status == TSR_OK ? TSR_OK : tsr_yaml_place(r, node, key, status);
}

/* Of which kind the struct is decides what its other keys mean. */
static tsr_status read_kind(tsr_yaml_reader *r, yaml_node_t *mapping,
                            const tsr_field *group, void *object,
                            const char *key)
{
    yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(r, pair->key);
        char path[TSR_YAML_KEY_SIZE];
        if (name->type != YAML_SCALAR_NODE ||
            strcmp(scalar(name), group->selector) != 0)
            continue;
        tsr_yaml_join(path, key, group->selector);
        return tsr_yaml_choose(r, node_at(r, pair->value), group, object, path);
    }
    return TSR_OK;
}

static tsr_status read_mapping(tsr_yaml_reader *r, yaml_node_t *node,
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

/* The struct of a GROUP or of one element of a LIST. */
tsr_status tsr_yaml_struct(tsr_yaml_reader *r, yaml_node_t *node,
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
        tsr_field one = *field; /* of a list, the element */
        one.type = TSR_FIELD_GROUP;
        return refuse(r, node, key, &one);
    }
    return tsr_yaml_value(r, node, alias, object, key);
}

static tsr_status read_element(tsr_yaml_reader *r, yaml_node_t *node,
                               const tsr_field *field, void *object,
                               const char *key)
{
    tsr_list *list = (void *)((char *)object + field->offset);
    char path[TSR_YAML_KEY_SIZE], number[16];
    void *element;
    snprintf(number, sizeof number, "%d", list->n);
    tsr_yaml_join(path, key, number);
    TSR_TRY(check_node(r, node, path));
    TSR_TRY(mark(r, node, path));
    TSR_TRY(tsr_field_append(field, object, &element, r->err));
    return tsr_yaml_struct(r, node, field, element, path);
}

/* What the document says replaces the list that was there. */
static tsr_status read_list(tsr_yaml_reader *r, yaml_node_t *node,
                            const tsr_field *field, void *object,
                            const char *key)
{
    const tsr_field only[] = {*field, {.name = NULL}};
    tsr_fields_clear(only, object);
    if (is_null(node))
        return TSR_OK;
    if (node->type != YAML_SEQUENCE_NODE)
        return read_element(r, node, field, object, key);
    yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        tsr_status status =
            read_element(r, node_at(r, *item), field, object, key);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}

static tsr_status read_text(tsr_yaml_reader *r, yaml_node_t *node,
                            const tsr_field *field, tsr_strings *strings,
                            const char *key)
{
    char path[TSR_YAML_KEY_SIZE], number[16];
    snprintf(number, sizeof number, "%d", strings->n);
    tsr_yaml_join(path, key, number);
    TSR_TRY(check_node(r, node, path));
    if (node->type != YAML_SCALAR_NODE || is_null(node))
        return refuse(r, node, path, field);
    tsr_status status = mark(r, node, path);
    return status != TSR_OK ? status
                            : tsr_strings_append(strings, scalar(node), r->err);
}

static tsr_status read_strings(tsr_yaml_reader *r, yaml_node_t *node,
                               const tsr_field *field, void *object,
                               const char *key)
{
    const tsr_field only[] = {*field, {.name = NULL}};
    tsr_strings *strings = (void *)((char *)object + field->offset);
    tsr_fields_clear(only, object);
    if (is_null(node))
        return TSR_OK;
    if (node->type == YAML_SCALAR_NODE)
        return read_text(r, node, field, strings, key);
    if (node->type != YAML_SEQUENCE_NODE)
        return refuse(r, node, key, field);
    yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        tsr_status status =
            read_text(r, node_at(r, *item), field, strings, key);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}

/* Takes "/." and "/folder/.." out of an absolute path, for messages and for who
 * reads the resolved config. Not where `folder` is a link or is not there: then
 * ".." leads elsewhere. */
static void shorten_path(char *path)
{
    struct stat info;
    for (char *p = path; (p = strstr(p, "/.")) != NULL;) {
        size_t n = p[2] == '.' ? 3 : 2; /* of "/.." or "/." */
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

static tsr_status read_string(tsr_yaml_reader *r, yaml_node_t *node,
                              const tsr_field *field, void *object,
                              const char *key)
{
    char **p = (void *)((char *)object + field->offset);
    const char *text = scalar(node);
    int joined =
        tsr_field_names_file(field, text) && *text != '\0' && *text != '/';
    char *copy = tsr_words_of("%s%s%s", joined ? r->folder : "",
                              joined ? "/" : "", text);
    if (copy == NULL) {
        tsr_no_memory(r->err);
        return tsr_yaml_place(r, node, key, TSR_E_NOMEM);
    }
    if (joined)
        shorten_path(copy);
    free(*p);
    *p = copy;
    return TSR_OK;
}

static tsr_status read_scalar(tsr_yaml_reader *r, yaml_node_t *node,
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
        /* the table parses text; the tree has taken the brackets away */
        if (node->type != YAML_SEQUENCE_NODE ||
            node->data.sequence.items.top - node->data.sequence.items.start !=
                2)
            return refuse(r, node, key, field);
        const yaml_node_item_t *item = node->data.sequence.items.start;
        yaml_node_t *low = node_at(r, item[0]), *high = node_at(r, item[1]);
        tsr_status status = check_node(r, low, key);
        TSR_THEN(status, check_node(r, high, key));
        if (status != TSR_OK)
            return status;
        if (low->type != YAML_SCALAR_NODE || high->type != YAML_SCALAR_NODE)
            return refuse(r, node, key, field);
        snprintf(pair, sizeof pair, "[%.70s, %.70s]", scalar(low),
                 scalar(high));
        text = pair;
    } else if (node->type != YAML_SCALAR_NODE) {
        return refuse(r, node, key, field);
    } else if (field->type == TSR_FIELD_STRING) {
        return read_string(r, node, field, object, key);
    } else {
        text = scalar(node);
    }
    tsr_status status = tsr_field_parse(field, object, text, r->err);
    return status == TSR_OK ? TSR_OK : tsr_yaml_place(r, node, key, status);
}

tsr_status tsr_yaml_value(tsr_yaml_reader *r, yaml_node_t *node,
                          const tsr_field *field, void *object, const char *key)
{
    TSR_TRY(check_node(r, node, key));
    TSR_TRY(mark(r, node, key));
    switch (field->type) {
    case TSR_FIELD_GROUP:
        return tsr_yaml_struct(r, node, field, (char *)object + field->offset,
                               key);
    case TSR_FIELD_LIST:
        return read_list(r, node, field, object, key);
    case TSR_FIELD_STRINGS:
        return read_strings(r, node, field, object, key);
    default:
        return read_scalar(r, node, field, object, key);
    }
}

tsr_status tsr_yaml_root(tsr_yaml_reader *r, yaml_node_t *node, void *object)
{
    TSR_TRY(check_node(r, node, ""));
    if (is_null(node))
        return TSR_OK;
    if (node->type == YAML_MAPPING_NODE)
        return read_mapping(r, node, NULL, object, "");
    tsr_fail(r->err, TSR_E_CONFIG,
             "the file is %s: expected lines of 'key: value' (a mapping)",
             kind(node));
    return tsr_yaml_place(r, node, "", TSR_E_CONFIG);
}
