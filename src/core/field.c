/* Field tables: defaults, ownership, names. */
#include "core/field.h"

#include "core/text.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *at(const tsr_field *field, void *object)
{
    return (char *)object + field->offset;
}

static size_t size_of(const tsr_field *field)
{
    switch (field->type) {
    case TSR_FIELD_BOOL:
    case TSR_FIELD_CHOICE:
        return sizeof(int);
    case TSR_FIELD_INT:
        return sizeof(long);
    case TSR_FIELD_DOUBLE:
        return sizeof(double);
    case TSR_FIELD_STRING:
        return sizeof(char *);
    case TSR_FIELD_NUMBER_OR_WORD:
        return sizeof(tsr_number_or_word);
    case TSR_FIELD_PAIR:
        return 2 * sizeof(double);
    case TSR_FIELD_STRINGS:
        return sizeof(tsr_strings);
    case TSR_FIELD_LIST:
        return sizeof(tsr_list);
    case TSR_FIELD_GROUP:
        break;
    }
    return 0;
}

const tsr_field *tsr_field_members(const tsr_field *field, const void *object)
{
    if (field->selector == NULL)
        return field->fields;
    int number;
    memcpy(&number, object, sizeof number);
    return field->kind(number).fields;
}

/* Raw memory becomes something that tsr_fields_clear may be given. */
static void zero(const tsr_field *fields, void *object)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        if (f->type == TSR_FIELD_GROUP && f->selector != NULL)
            memset(at(f, object), 0, f->size);
        else if (f->type == TSR_FIELD_GROUP)
            zero(f->fields, at(f, object));
        else
            memset(at(f, object), 0, size_of(f));
    }
}

void tsr_fields_clear(const tsr_field *fields, void *object)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        void *p = at(f, object);
        if (f->type == TSR_FIELD_GROUP) {
            tsr_fields_clear(tsr_field_members(f, p), p);
        } else if (f->type == TSR_FIELD_STRING) {
            free(*(char **)p);
            *(char **)p = NULL;
        } else if (f->type == TSR_FIELD_STRINGS) {
            tsr_strings *strings = p;
            for (int i = 0; i < strings->n; i++)
                free(strings->item[i]);
            free(strings->item);
            *strings = (tsr_strings){0, NULL};
        } else if (f->type == TSR_FIELD_LIST) {
            tsr_list *list = p;
            for (int i = 0; i < list->n; i++) {
                char *element =
                    (char *)list->item + (size_t)i * f->element_size;
                tsr_fields_clear(tsr_field_members(f, element), element);
            }
            free(list->item);
            *list = (tsr_list){0, NULL};
        }
    }
}

tsr_status tsr_strings_append(tsr_strings *strings, const char *text,
                              tsr_err *err)
{
    if (strings->n == INT_MAX)
        return tsr_fail(err, TSR_E_NOMEM, "a list is too long");
    char *copy = strdup(text);
    char **item =
        realloc(strings->item, ((size_t)strings->n + 1) * sizeof *item);
    if (item != NULL)
        strings->item = item;
    if (copy == NULL || item == NULL) {
        free(copy);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a list of %d",
                        strings->n + 1);
    }
    item[strings->n++] = copy;
    return TSR_OK;
}

tsr_status tsr_field_append(const tsr_field *field, void *object,
                            void **element, tsr_err *err)
{
    tsr_list *list = at(field, object);
    size_t n = (size_t)list->n + 1;
    if (field->element_size == 0)
        return tsr_fail(err, TSR_E_INTERNAL, "field '%s': no element_size",
                        field->name);
    if (n > INT_MAX || n > SIZE_MAX / field->element_size)
        return tsr_fail(err, TSR_E_NOMEM, "list '%s' is too long", field->name);
    void *item = realloc(list->item, n * field->element_size);
    if (item == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %zu '%s'", n,
                        field->name);
    list->item = item;
    char *fresh = (char *)item + (n - 1) * field->element_size;
    memset(fresh, 0, field->element_size);
    TSR_TRY(tsr_fields_init(tsr_field_members(field, fresh), fresh, err));
    list->n++;
    *element = fresh;
    return TSR_OK;
}

/* Default of a STRINGS: "[]", "[a, b]" or one text; nothing in it is quoted. */
static tsr_status init_strings(const tsr_field *f, tsr_strings *strings,
                               tsr_err *err)
{
    const char *s = f->initial, *end = s + strlen(s);
    int brackets = *s == '[' && end[-1] == ']';
    if (brackets)
        s++, end--;
    while (s < end) {
        const char *comma = brackets ? memchr(s, ',', (size_t)(end - s)) : NULL;
        const char *stop = comma != NULL ? comma : end;
        s += strspn(s, " ");
        size_t n = stop > s ? (size_t)(stop - s) : 0;
        while (n > 0 && s[n - 1] == ' ')
            n--;
        if (n == 0 && (comma != NULL || strings->n > 0))
            return tsr_fail(err, TSR_E_INTERNAL, "an empty item");
        if (n > 0) {
            char *item = strndup(s, n);
            tsr_status status = tsr_allocated(item, err);
            TSR_THEN(status, tsr_strings_append(strings, item, err));
            free(item);
            if (status != TSR_OK)
                return status;
        }
        s = comma != NULL ? comma + 1 : end;
    }
    return TSR_OK;
}

static tsr_status init_field(const tsr_field *f, void *object, tsr_err *err)
{
    if (f->type == TSR_FIELD_GROUP)
        return tsr_fields_init(tsr_field_members(f, at(f, object)),
                               at(f, object), err);
    if (f->initial == NULL)
        return TSR_OK;
    tsr_status status;
    if (f->type == TSR_FIELD_STRINGS)
        status = init_strings(f, at(f, object), err);
    else if (f->type != TSR_FIELD_LIST)
        status = tsr_field_parse(f, object, f->initial, err);
    else if (strcmp(f->initial, "[]") == 0)
        status = TSR_OK;
    else
        status = tsr_fail(err, TSR_E_INTERNAL, "a list starts empty");
    if (status == TSR_OK || status == TSR_E_NOMEM)
        return status;
    return tsr_wrap(err, TSR_E_INTERNAL, "default '%s' of field '%s'",
                    f->initial, f->name);
}

tsr_status tsr_fields_init(const tsr_field *fields, void *object, tsr_err *err)
{
    zero(fields, object);
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        tsr_status status = init_field(f, object, err);
        if (status != TSR_OK) {
            tsr_fields_clear(fields, object);
            return status;
        }
    }
    return TSR_OK;
}

/* What two kinds have in common moves from one struct to the other. */
static void hand_over(const tsr_field *from, void *old, const tsr_field *to,
                      void *fresh)
{
    for (const tsr_field *t = to; t->name != NULL; t++) {
        const tsr_field *f = tsr_field_find(from, t->name);
        if (f == NULL || f->type != t->type || f->words != t->words ||
            t->type == TSR_FIELD_GROUP || t->type == TSR_FIELD_LIST)
            continue;
        char held[sizeof(tsr_list) + sizeof(tsr_number_or_word)];
        memcpy(held, at(t, fresh), size_of(t));
        memcpy(at(t, fresh), at(f, old), size_of(t));
        memcpy(at(f, old), held, size_of(t));
    }
}

tsr_status tsr_field_choose(const tsr_field *field, void *object,
                            const char *name, tsr_err *err)
{
    const size_t size =
        field->type == TSR_FIELD_LIST ? field->element_size : field->size;
    const tsr_field *from = tsr_field_members(field, object);
    int number = 0;
    while (field->kind(number).name != NULL &&
           strcmp(field->kind(number).name, name) != 0)
        number++;
    const tsr_field *to = field->kind(number).fields;
    if (field->kind(number).name == NULL) {
        char shown[TSR_EXCERPT_SIZE], known[256] = "";
        size_t n = 0;
        for (int k = 0; field->kind(k).name != NULL && n < sizeof known; k++)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                                  k == 0 ? "" : ", ", field->kind(k).name);
        return tsr_fail(err, TSR_E_CONFIG,
                        "value '%s' is not known: expected one of %s",
                        tsr_text_excerpt(name, shown), known);
    }
    if (to == from) {
        memcpy(object, &number, sizeof number);
        return TSR_OK;
    }
    void *fresh = calloc(1, size);
    TSR_TRY(tsr_allocated(fresh, err));
    tsr_status status = tsr_fields_init(to, fresh, err);
    if (status == TSR_OK) {
        hand_over(from, object, to, fresh);
        tsr_fields_clear(from, object);
        memcpy(object, fresh, size);
        memcpy(object, &number, sizeof number);
    }
    free(fresh);
    return status;
}

const tsr_field *tsr_field_find(const tsr_field *fields, const char *name)
{
    for (const tsr_field *f = fields; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const char *tsr_field_nearest(const tsr_field *fields, const char *name)
{
    tsr_nearest nearest = {.typed = name};
    for (const tsr_field *f = fields; f->name != NULL; f++)
        tsr_nearest_try(&nearest, f->name);
    return nearest.best;
}
