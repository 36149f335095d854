/* Field tables as commented YAML.
 *
 * Written by hand: libyaml's emitter has no comments, and what is written here
 * (block style, one value a line) is a small part of YAML. */
#include "files/yaml.h"

#include "core/text.h"
#include "files/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char LETTERS[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* 1 where any YAML reader takes the unquoted text for that same string. */
static int is_plain(const char *text)
{
    static const char *const taken[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    size_t n = strlen(text);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcasecmp(text, taken[i]) == 0)
            return 0;
    /* what numbers, dates and times are made of */
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

/* 1 where YAML allows the character as it stands in double quotes. */
static int is_printable(long code)
{
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0x2028) ||
           (code > 0x2029 && code < 0xd800) ||
           (code >= 0xe000 && code < 0xfffe && code != 0xfeff) ||
           (code >= 0x10000 && code <= 0x10ffff);
}

/* Errors: TSR_E_DATA, bytes that are no UTF-8, which YAML cannot hold. */
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

/* A path that is relative is so to the current folder, and whoever reads the
 * file resolves it against the file's own; only an absolute one means the same
 * to both. "./x" is meant to be relative to the file that is written. */
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
        tsr_field_expects(f, expected, sizeof expected);
    if (*doc == '\0' && *unit == '\0' && !is_choice)
        return;
    snprintf(text, sizeof text, "%s%s%s%s%s", doc,
             *unit != '\0' ? (*doc != '\0' ? ", in " : "in ") : "", unit,
             is_choice && (*doc != '\0' || *unit != '\0') ? ": " : "",
             expected);
    tsr_text_wrap(out, 0, indent, "# ", text);
}

/* The selector's line of a struct that has kinds; empty where it has none. */
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
        tsr_status status =
            write_fields(out, tsr_field_members(f, element), element,
                         indent + 4, f->selector == NULL,
                         comments && (i == 0 || f->selector != NULL), err);
        if (status != TSR_OK)
            return status;
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

/* dash: the first key follows the "- " of a list. */
static tsr_status write_fields(FILE *out, const tsr_field *fields,
                               const void *object, int indent, int dash,
                               int comments, tsr_err *err)
{
    if (fields->name == NULL) {
        fprintf(out, "%*s%s{}\n", indent - 2 * dash, "", dash ? "- " : "");
        return TSR_OK;
    }
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        tsr_status status = TSR_OK;
        if (comments)
            write_comment(out, f, indent);
        if (dash && f == fields)
            fprintf(out, "%*s- %s:", indent - 2, "", f->name);
        else
            fprintf(out, "%*s%s:", indent, "", f->name);
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
        if (status != TSR_OK)
            return status;
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
