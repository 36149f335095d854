/* YAML files and --set overrides: bytes to libyaml's document tree. */
#include "files/yaml.h"

#include "core/text.h"
#include "files/file.h"
#include "files/yaml_tree.h"

#include <stdlib.h>
#include <string.h>

/* Field tables nest four deep. */
enum { FILE_MAX_BYTES = 16 << 20, DEPTH_MAX = 64 };

/* ---- files ---- */

static tsr_status read_file(const char *path, char **text, size_t *n,
                            tsr_err *err)
{
    tsr_status status = tsr_file_read_most(path, FILE_MAX_BYTES, text, n, err);
    return status == TSR_E_DATA
               ? tsr_wrap(err, TSR_E_CONFIG, "not a configuration")
               : status;
}

/* The folder of `path` ("" for the current one) as an absolute path, so that a
 * path made from it means the same file wherever it is read next. The caller
 * frees it. */
static tsr_status absolute_folder(const char *path, char **out, tsr_err *err)
{
    tsr_status status = tsr_file_absolute(path, out, err);
    char *slash = status == TSR_OK && *path != '\0' ? strrchr(*out, '/') : NULL;
    if (slash != NULL)
        slash[slash == *out] = '\0'; /* the root keeps its slash */
    return status;
}

/* ---- libyaml ---- */

/* The offset of a place; libyaml counts characters, not bytes. */
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

/* libyaml's own words, with the place that it found. */
static tsr_status not_yaml(const tsr_yaml_reader *r,
                           const yaml_parser_t *parser, const char *text,
                           size_t n)
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
        /* no mark here, only an offset in bytes */
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

/* libyaml's time grows with the square of the depth, so what is nested deeper
 * than any configuration is refused as soon as it is met. An error of syntax
 * ends the look: whoever loads the text says it. */
static tsr_status check_depth(tsr_yaml_reader *r, const char *text, size_t n)
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
        if (depth > DEPTH_MAX) {
            tsr_fail(r->err, TSR_E_CONFIG,
                     "lists and mappings nested more than %d deep: not a "
                     "configuration",
                     DEPTH_MAX);
            status = tsr_yaml_place(r, &here, "", TSR_E_CONFIG);
        }
        done = status != TSR_OK || event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* Loads the one document of a text. On success the caller deletes it. */
static tsr_status load(tsr_yaml_reader *r, const char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_document_t second;
    tsr_status status = check_depth(r, text, n);
    if (status != TSR_OK)
        return status;
    if (!yaml_parser_initialize(&parser))
        return tsr_fail(r->err, TSR_E_NOMEM, "out of memory for '%s'",
                        r->source);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    if (!yaml_parser_load(&parser, &r->document)) {
        status = not_yaml(r, &parser, text, n);
        goto done;
    }
    if (yaml_document_get_root_node(&r->document) == NULL)
        goto done; /* an empty stream; libyaml allows no more calls */
    if (!yaml_parser_load(&parser, &second)) {
        status = not_yaml(r, &parser, text, n);
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&second);
        if (root != NULL) {
            tsr_fail(r->err, TSR_E_CONFIG,
                     "a second document starts here: "
                     "one file is one configuration");
            status = tsr_yaml_place(r, root, "", TSR_E_CONFIG);
        }
        yaml_document_delete(&second);
    }
    if (status != TSR_OK)
        yaml_document_delete(&r->document);
done:
    yaml_parser_delete(&parser);
    return status;
}

/* ---- --set KEY=VALUE ---- */

/* Which element of a list "data.0.file" means; the number after the last is a
 * new element. */
static tsr_status find_element(tsr_yaml_reader *r, const tsr_field *field,
                               void *object, const char *name, const char *key,
                               void **element)
{
    const tsr_list *list = (void *)((char *)object + field->offset);
    size_t digits = strspn(name, "0123456789");
    long i = digits > 0 && digits < 9 && name[digits] == '\0'
                 ? strtol(name, NULL, 10)
                 : -1;
    tsr_status status;
    if (i < 0)
        status = tsr_fail(r->err, TSR_E_CONFIG,
                          "a list: name an element by its number, as in "
                          "'%s.0'",
                          field->name);
    else if (i > list->n)
        status = tsr_fail(r->err, TSR_E_CONFIG,
                          "the list has %d element%s: expected a number from "
                          "0 to %d",
                          list->n, list->n == 1 ? "" : "s", list->n);
    else if (i == list->n)
        status = tsr_field_append(field, object, element, r->err);
    else {
        *element = (char *)list->item + (size_t)i * field->element_size;
        return TSR_OK;
    }
    if (status != TSR_OK)
        tsr_yaml_place(r, NULL, key, status);
    return status;
}

/* Walks the dotted path `names`, which it takes apart, and reads the value. */
static tsr_status set_path(tsr_yaml_reader *r, yaml_node_t *root, char *names,
                           void *object)
{
    const tsr_field *group = NULL; /* whose struct `object` is */
    char key[TSR_YAML_KEY_SIZE] = "", path[TSR_YAML_KEY_SIZE];
    char shown[TSR_EXCERPT_SIZE];
    for (char *name = names, *next; name != NULL; name = next) {
        next = strchr(name, '.');
        if (next != NULL)
            *next++ = '\0';
        tsr_yaml_join(path, key, tsr_text_excerpt(name, shown));
        if (group != NULL && group->selector != NULL && next == NULL &&
            strcmp(name, group->selector) == 0)
            return tsr_yaml_choose(r, root, group, object, path);
        const tsr_field *field = tsr_field_find(
            group == NULL ? r->top : tsr_field_members(group, object), name);
        if (field == NULL)
            return tsr_yaml_place(r, NULL, path,
                                  tsr_yaml_unknown(r, group, object, name));
        if (next == NULL)
            return tsr_yaml_value(r, root, field, object, path);
        memcpy(key, path, sizeof key);
        if (field->type == TSR_FIELD_GROUP) {
            object = (char *)object + field->offset;
        } else if (field->type == TSR_FIELD_LIST) {
            name = next;
            next = strchr(name, '.');
            if (next != NULL)
                *next++ = '\0';
            void *element = NULL;
            tsr_status status =
                find_element(r, field, object, name, key, &element);
            if (status != TSR_OK)
                return status;
            object = element;
            tsr_yaml_join(path, key, name);
            if (next == NULL)
                return tsr_yaml_struct(r, root, field, object, path);
            memcpy(key, path, sizeof key);
        } else {
            tsr_fail(r->err, TSR_E_CONFIG, "it has no keys below it");
            return tsr_yaml_place(r, NULL, key, TSR_E_CONFIG);
        }
        group = field;
    }
    return TSR_OK;
}

static tsr_status apply_set(tsr_yaml_reader *r, void *object)
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
    tsr_status status = load(r, equals + 1, strlen(equals + 1));
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
    tsr_yaml_reader r = {
        .source = path, .top = fields, .marks = marks, .err = err};
    tsr_status status = read_file(path, &text, &n, err);
    TSR_THEN(status, absolute_folder(path, &folder, err));
    TSR_THEN(status, absolute_folder("", &here, err));
    TSR_THEN(status, load(&r, text, n));
    if (status == TSR_OK) {
        r.folder = folder;
        status =
            tsr_yaml_root(&r, yaml_document_get_root_node(&r.document), object);
        yaml_document_delete(&r.document);
    }
    for (int i = 0; i < n_set && status == TSR_OK; i++) {
        r = (tsr_yaml_reader){.source = set[i],
                              .is_set = 1,
                              .folder = here,
                              .top = fields,
                              .marks = marks,
                              .err = err};
        status = apply_set(&r, object);
    }
    free(text);
    free(folder);
    free(here);
    return status;
}
