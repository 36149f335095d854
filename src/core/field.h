/* Field tables: one table describes the members of a struct.
 *
 * The same table parses YAML (files/yaml.h) and the options of a command line
 * (commands/command.h), checks ranges, prints the live defaults in --help,
 * writes the resolved config.yaml and HDF5 attributes. A move, a noise model, a
 * config section or a command owns one; it ends with {0}.
 *
 *     static const tsr_field fields[] = {
 *         TSR_FIELD(DOUBLE, "step", pivot_options, step_rad, .initial = "0.1",
 *                   .unit = "rad", .min = 1e-6, .max = 3.15,
 *                   .doc = "standard deviation of the rotation"),
 *         {0}};
 *
 * A GROUP, or the elements of a LIST, can be one of several kinds, each with
 * a table of its own: noise models, kinds of data. Such a struct begins with
 * an int, the number of its kind, and one key (the selector) says which.
 */
#ifndef TSR_CORE_FIELD_H
#define TSR_CORE_FIELD_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

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

typedef struct {
    int word;      /* index into the field's `words`, or -1 for a number */
    double number; /* where word is -1 */
} tsr_number_or_word;

typedef struct {
    int n;
    char **item; /* [n], owned */
} tsr_strings;

typedef struct {
    int n;
    void *item; /* [n][size of the element], owned */
} tsr_list;

typedef struct tsr_field tsr_field;

/* One of the kinds that a struct can be. The fields of all kinds lie behind the
 * int with which the struct begins, and may overlap from kind to kind. */
typedef struct {
    const char *name; /* as the selector's value; NULL: there is no such kind */
    const char *doc;
    const tsr_field *fields;
} tsr_field_kind;

struct tsr_field {
    const char *name;
    const char
        *former; /* the name of an earlier version, still read; or NULL */
    tsr_field_type type;
    size_t offset;            /* in bytes, from the start of the struct */
    const char *unit;         /* NULL where there is none */
    const char *initial;      /* the default, as YAML text; NULL: none */
    double min, max;          /* inclusive; both 0: unchecked */
    const char *const *words; /* NULL-terminated; CHOICE, NUMBER_OR_WORD; of a
                                 path: what is none, "threshold:" with a rest */
    const tsr_field *fields;  /* GROUP, LIST; NULL where there are kinds */
    const char *selector;     /* GROUP, LIST with kinds: the key that says which
                                 of them; else NULL */
    tsr_field_kind (*kind)(int number); /* with a selector; 0 is the default */
    size_t size; /* GROUP with kinds: bytes of the struct, whatever its kind */
    size_t element_size; /* LIST: bytes an element */
    int is_path;         /* STRING: relative to the file that names it */
    const char *doc;     /* one line */
    const char *alias;   /* GROUP, LIST: see files/yaml.h; else NULL */
    /* An option of a command line: */
    char letter;          /* 'o', for -o; 0: none */
    const char *argument; /* what --help calls its value; NULL of a BOOL */
};

/* An entry of a table: `member` of the struct `owner`, under a name of its own;
 * what follows are designated initialisers of the rest. */
#define TSR_FIELD(TYPE, NAME, owner, member, ...)      \
    {                                                  \
        .name = NAME, .type = TSR_FIELD_##TYPE,        \
        .offset = offsetof(owner, member), __VA_ARGS__ \
    }

/* Does the text of a STRING name a file? A path does, but for its words. */
int tsr_field_names_file(const tsr_field *field, const char *text);

/* Sets every field of `object` to its default. The object is raw memory or
 * zeroed; owned members are allocated. Errors: TSR_E_NOMEM, TSR_E_INTERNAL
 * (a default that its own table refuses). */
tsr_status tsr_fields_init(const tsr_field *fields, void *object, tsr_err *err);

/* Frees the owned members and zeroes them. The object stays. */
void tsr_fields_clear(const tsr_field *fields, void *object);

/* Parses one scalar (BOOL .. PAIR) from text and checks its range. The message
 * names the value, what was expected and the allowed range, not the place. A
 * field without a default takes "null" for unset: zero bytes, a NULL string. A
 * STRING is its text as it stands, without YAML's quotes. On failure the value
 * stays. Errors: TSR_E_CONFIG, TSR_E_NOMEM. */
tsr_status tsr_field_parse(const tsr_field *field, void *object,
                           const char *text, tsr_err *err);

/* The value of a scalar as text that tsr_field_parse reads back to the same
 * bits; returns the length, as snprintf. */
int tsr_field_format(const tsr_field *field, const void *object, char *text,
                     size_t size);

/* "number in [min, max]", "one of a, b, c", ... for messages and help; returns
 * the length, as snprintf. An infinite bound (HUGE_VAL) is not shown. */
int tsr_field_expects(const tsr_field *field, char *text, size_t size);

/* The table of the struct that a GROUP is, or of an element of a LIST: `object`
 * is that struct itself, and says of which kind it is. */
const tsr_field *tsr_field_members(const tsr_field *field, const void *object);

/* Makes that struct one of the kind of that name. What the kinds have under the
 * same name keeps its value, the rest takes its default. Errors: TSR_E_CONFIG
 * (no such kind), TSR_E_NOMEM. */
tsr_status tsr_field_choose(const tsr_field *field, void *object,
                            const char *name, tsr_err *err);

/* Appends an element, set to its defaults, to a LIST; *element is the new one
 * and the older ones may have moved. Errors: as tsr_fields_init. */
tsr_status tsr_field_append(const tsr_field *field, void *object,
                            void **element, tsr_err *err);

/* Appends a copy of `text` to a STRINGS. Errors: TSR_E_NOMEM. */
tsr_status tsr_strings_append(tsr_strings *strings, const char *text,
                              tsr_err *err);

/* Whether `name` is the field's name, or its former one. */
int tsr_field_is_named(const tsr_field *field, const char *name);

/* The field of that name, or NULL. */
const tsr_field *tsr_field_find(const tsr_field *fields, const char *name);

/* The nearest name to a misspelt one (Damerau-Levenshtein distance at most a
 * third of its length, at least 1; see core/text.h), or NULL. */
const char *tsr_field_nearest(const tsr_field *fields, const char *name);

/* Prints the table for --help: name, default, unit, doc, allowed values; groups
 * indented, 80 columns. topic: a key, with all that is in it, by its whole name
 * or the end of it: "contrast", "data.saxs", "moves.pivot", "pivot"; "all": the
 * whole table; NULL: what is in groups is left out. Errors: TSR_E_USAGE (no
 * such key; nothing is printed). */
tsr_status tsr_fields_help(const tsr_field *fields, const char *topic,
                           int indent, FILE *out, tsr_err *err);

#endif
