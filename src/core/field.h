/* Field tables. One table describes the members of a struct.
 *
 * The table is used to parse YAML (files/yaml.h) and options of a command line
 * (commands/command.h), to check ranges, to print defaults in --help, and to
 * write the resolved config.yaml and HDF5 attributes. Each move, noise model,
 * section of the configuration and command has a table, which ends with {0}:
 *
 *     static const tsr_field fields[] = {
 *         TSR_FIELD(DOUBLE, "step", pivot_options, step_rad, .initial = "0.1",
 *                   .unit = "rad", .min = 1e-6, .max = 3.15,
 *                   .doc = "standard deviation of the rotation"),
 *         {0}};
 *
 * A GROUP, or an element of a LIST, can be one of several kinds (noise models,
 * kinds of data), each with its own table. The struct then begins with an int,
 * the number of the kind, and a key called the selector chooses the kind. */
#ifndef TSR_CORE_FIELD_H
#define TSR_CORE_FIELD_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/* Types of fields, with the C type of the member. */
typedef enum {
    TSR_FIELD_BOOL = 1,       /* int, 0 or 1 */
    TSR_FIELD_INT,            /* long */
    TSR_FIELD_DOUBLE,         /* double */
    TSR_FIELD_STRING,         /* char *, owned, may be NULL */
    TSR_FIELD_CHOICE,         /* int, index into `words` */
    TSR_FIELD_NUMBER_OR_WORD, /* tsr_number_or_word */
    TSR_FIELD_PAIR,           /* double[2], ascending */
    TSR_FIELD_STRINGS,        /* tsr_strings */
    TSR_FIELD_GROUP,          /* a struct in place, described by `fields` */
    TSR_FIELD_LIST            /* tsr_list of structs described by `fields` */
} tsr_field_type;

/* A number, or one of a field's words. */
typedef struct {
    int word;      /* index into the field's `words`; -1: a number */
    double number; /* valid if word is -1 */
} tsr_number_or_word;

/* A list of strings. */
typedef struct {
    int n;
    char **item; /* [n], owned */
} tsr_strings;

/* A list of structs. */
typedef struct {
    int n;
    void *item; /* [n][element_size], owned */
} tsr_list;

typedef struct tsr_field tsr_field;

/* One kind of a struct. The members of each kind follow the int that begins the
 * struct. Members of different kinds may overlap in memory. */
typedef struct {
    const char *name; /* value of the selector; NULL: no such kind */
    const char *doc;
    const tsr_field *fields;
} tsr_field_kind;

/* One entry of a field table: a key, and the member of the struct for its
 * value. */
struct tsr_field {
    const char *name;
    tsr_field_type type;
    size_t offset;            /* bytes from the start of the struct */
    const char *unit;         /* NULL: no unit */
    const char *initial;      /* default as YAML text; NULL: no default */
    double min, max;          /* inclusive; both 0: not checked */
    const char *const *words; /* CHOICE, NUMBER_OR_WORD: allowed words. STRING
                                 with is_path: values that are not paths; a word
                                 that ends with ':' matches every value that
                                 begins with it. The array ends with NULL */
    const tsr_field *fields;  /* GROUP, LIST; NULL if there are kinds */
    const char *selector;     /* GROUP, LIST with kinds: key that chooses the
                                 kind; else NULL */
    tsr_field_kind (*kind)(
        int number); /* kind of a given number; 0: the default kind. The list
                        ends with a kind without name */
    size_t size;     /* GROUP with kinds: bytes of the largest struct */
    size_t element_size; /* LIST: bytes of an element */
    int is_path;         /* STRING: a path, relative to the file that
                            contains it */
    const char *doc;     /* one line */
    const char *alias;   /* GROUP, LIST: key that a bare scalar sets
                            (files/yaml.h); else NULL */
    /* Options of a command line: */
    char letter;          /* 'o' for -o; 0: no short form */
    const char *argument; /* name of its value in --help; NULL for BOOL */
};

/* Entry of a table for `member` of the struct `owner`. The remaining arguments
 * are designated initialisers of a tsr_field. */
#define TSR_FIELD(TYPE, NAME, owner, member, ...)      \
    {                                                  \
        .name = NAME, .type = TSR_FIELD_##TYPE,        \
        .offset = offsetof(owner, member), __VA_ARGS__ \
    }

/* Does `text`, the value of a STRING, name a file? 1 if the field has is_path,
 * unless the text matches one of its `words`. */
int tsr_field_names_file(const tsr_field *field, const char *text);

/* Sets every field of `object` to its default. The object is uninitialised
 * memory; owned members are allocated. Errors: TSR_E_NOMEM, TSR_E_INTERNAL (the
 * table refuses its own default). */
tsr_status tsr_fields_init(const tsr_field *fields, void *object, tsr_err *err);

/* Frees and zeroes the owned members. The object itself is not freed. */
void tsr_fields_clear(const tsr_field *fields, void *object);

/* Parses one scalar (BOOL .. PAIR) and checks its range. The message names the
 * value, the expected type and the allowed range; the caller adds the key. For
 * a field without default, "null" or "~" unsets the value (zero bytes, a NULL
 * string). A STRING is copied as it is: quotes are part of the text. On failure
 * the old value stays. object: the struct that has the field as a member.
 * Errors: TSR_E_CONFIG, TSR_E_NOMEM, TSR_E_INTERNAL (the field is not a
 * scalar). */
tsr_status tsr_field_parse(const tsr_field *field, void *object,
                           const char *text, tsr_err *err);

/* Formats the value of a scalar, a member of `object`, so that tsr_field_parse
 * reads back the same bits. Returns the length as snprintf does. */
int tsr_field_format(const tsr_field *field, const void *object, char *text,
                     size_t size);

/* Describes the allowed values for messages and help: "number in [min, max]",
 * "one of a, b, c". Infinite bounds (HUGE_VAL) are left out. Returns the length
 * as snprintf does. */
int tsr_field_expected(const tsr_field *field, char *text, size_t size);

/* The table for `object`, the struct of a GROUP or an element of a LIST,
 * according to its kind. */
const tsr_field *tsr_field_members(const tsr_field *field, const void *object);

/* Changes the kind of `object`, the struct of a GROUP or an element of a LIST,
 * to `name`. Fields that both kinds have keep their values, except GROUPs and
 * LISTs; all other fields get their defaults. On failure `object` stays
 * unchanged. Errors: TSR_E_CONFIG (no such kind), TSR_E_NOMEM. */
tsr_status tsr_field_set_kind(const tsr_field *field, void *object,
                              const char *name, tsr_err *err);

/* Appends an element with default values to a LIST, a member of `object`.
 * *element points to the new element; older elements may have moved in memory.
 * Errors: as tsr_fields_init. */
tsr_status tsr_field_append(const tsr_field *field, void *object,
                            void **element, tsr_err *err);

/* Appends a copy of `text` to a STRINGS. Errors: TSR_E_NOMEM. */
tsr_status tsr_strings_append(tsr_strings *strings, const char *text,
                              tsr_err *err);

/* The field called `name`, or NULL. */
const tsr_field *tsr_field_find(const tsr_field *fields, const char *name);

/* The known name nearest to a misspelt one, or NULL. The largest distance is
 * that of tsr_nearest (core/text.h). */
const char *tsr_field_nearest(const tsr_field *fields, const char *name);

/* Prints the table for --help: name, default, unit, doc and allowed values, in
 * 80 columns, with groups indented.
 * topic  a key or the end of its full name ("contrast", "data.saxs",
 *        "moves.pivot", "pivot"): that key with all keys below it.
 *        "all": the whole table. NULL: the table without the content of
 *        groups.
 * Errors: TSR_E_USAGE (no such key; nothing is printed). */
tsr_status tsr_fields_help(const tsr_field *fields, const char *topic,
                           int indent, FILE *out, tsr_err *err);

#endif
