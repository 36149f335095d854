/* What tsr_yaml_write writes, tsr_yaml_read_marked reads back to the same
 * object, whatever the values. */
#include "../config_table.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include "core/text.h"
#include "files/yaml.h"

static uint64_t random_bits(uint64_t *state) /* splitmix64, Steele 2014 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(uint64_t *state, int n)
{
    return (int)(random_bits(state) % (uint64_t)n);
}

/* Pieces of text that a YAML reader could take for something else. */
/* clang-format off */
static const char *const pieces[] = {
    "a", "B9", "null", "~", "true", "no", "-", "- ", ": ", ":", "#", " #", "'",
    "\"", "\\", "{", "}", "[", "]", ",", "&x", "*x", "!t", "|", ">", "%", "@",
    "`", "?", " ", "\t", "\n", "\r", "\x01", "\x7f", "0x1F", "12", "1e3",
    ".inf", "1:30", "<<", "=", "A:262-9", "---", "...", "2026-01-02",
    "\xc3\x85", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xc2\x85", "\xef\xbf\xbe",
    "\xf0\x9f\x98\x80", "/", "../x.pdb", "\x1b[0m"};
/* clang-format on */

static char *random_text(uint64_t *state, const char *start)
{
    char text[400];
    snprintf(text, sizeof text, "%s", start);
    int n = below(state, 5);
    for (int i = 0; i < n; i++)
        strcat(text, pieces[below(state, (int)COUNT_OF(pieces))]);
    return strdup(text);
}

/* A double in [low, high], now and then one of the ends, or any bits at all. */
static double random_double(uint64_t *state, double low, double high)
{
    for (;;) {
        uint64_t bits = random_bits(state);
        const int way = below(state, 4);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (way == 0)
            x = below(state, 2) ? low : high;
        else if (way == 1)
            x = low + (high - low) * ((double)(bits >> 11) * 0x1p-53);
        else if (way == 2)
            x = (double)below(state, 1000) / 100.0;
        if (isfinite(x) && x >= low && x <= high)
            return x;
    }
}

static void bounds(const tsr_field *f, double *low, double *high)
{
    int checked = f->min < 0.0 || f->min > 0.0 || f->max < 0.0 || f->max > 0.0;
    *low = checked ? f->min : -HUGE_VAL;
    *high = checked ? f->max : HUGE_VAL;
}

static int count_words(const tsr_field *f)
{
    int n = 0;
    while (f->words[n] != NULL)
        n++;
    return n;
}

static void randomize(uint64_t *state, const tsr_field *fields, void *object);

static void randomize_field(uint64_t *state, const tsr_field *f, void *object)
{
    void *p = (char *)object + f->offset;
    double low, high;
    bounds(f, &low, &high);
    int unset = f->initial == NULL && below(state, 4) == 0;
    switch (f->type) {
    case TSR_FIELD_BOOL:
        *(int *)p = below(state, 2);
        break;
    case TSR_FIELD_INT: {
        uint64_t bits = random_bits(state);
        double span = high < 9e15 ? high - low : 9e15;
        *(long *)p =
            unset ? 0 : (long)(low + (double)(bits % ((uint64_t)span + 1)));
        break;
    }
    case TSR_FIELD_DOUBLE:
        *(double *)p = random_double(state, low, high);
        break;
    case TSR_FIELD_STRING:
        free(*(char **)p);
        *(char **)p = unset ? NULL : random_text(state, f->is_path ? "/" : "");
        break;
    case TSR_FIELD_CHOICE:
        *(int *)p = below(state, count_words(f));
        break;
    case TSR_FIELD_NUMBER_OR_WORD: {
        tsr_number_or_word *n = p;
        n->word = below(state, count_words(f) + 1) - 1;
        n->number = n->word < 0 ? random_double(state, low, high) : 0.0;
        break;
    }
    case TSR_FIELD_PAIR: {
        double *x = p;
        x[0] = x[1] = 0.0;
        while (!unset && !(x[0] < x[1])) {
            x[0] = random_double(state, low, high);
            x[1] = random_double(state, low, high);
        }
        break;
    }
    case TSR_FIELD_STRINGS: {
        const tsr_field only[] = {*f, {.name = NULL}};
        tsr_fields_clear(only, object);
        for (int n = below(state, 4); n > 0; n--) {
            char *text = random_text(state, "");
            OK(tsr_strings_append(p, text, &err));
            free(text);
        }
        break;
    }
    case TSR_FIELD_GROUP:
        randomize(state, f->fields, p);
        break;
    case TSR_FIELD_LIST:
        for (int n = below(state, 4); n > 0; n--) {
            void *element;
            OK(tsr_field_append(f, object, &element, &err));
            randomize(state, f->fields, element);
        }
        break;
    }
}

static void randomize(uint64_t *state, const tsr_field *fields, void *object)
{
    for (const tsr_field *f = fields; f->name != NULL; f++)
        randomize_field(state, f, object);
}

/* 1 where the two hold the same, numbers to the bit. */
static int same(const tsr_field *fields, const void *a, const void *b);

static int same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static int same_field(const tsr_field *f, const void *a, const void *b)
{
    switch (f->type) {
    case TSR_FIELD_BOOL:
    case TSR_FIELD_CHOICE:
        return *(const int *)a == *(const int *)b;
    case TSR_FIELD_INT:
        return *(const long *)a == *(const long *)b;
    case TSR_FIELD_DOUBLE:
        return memcmp(a, b, sizeof(double)) == 0;
    case TSR_FIELD_PAIR:
        return memcmp(a, b, 2 * sizeof(double)) == 0;
    case TSR_FIELD_NUMBER_OR_WORD: {
        const tsr_number_or_word *x = a, *y = b;
        return x->word == y->word &&
               (x->word >= 0 ||
                memcmp(&x->number, &y->number, sizeof x->number) == 0);
    }
    case TSR_FIELD_STRING:
        return same_text(*(char *const *)a, *(char *const *)b);
    case TSR_FIELD_STRINGS: {
        const tsr_strings *x = a, *y = b;
        int equal = x->n == y->n;
        for (int i = 0; equal && i < x->n; i++)
            equal = same_text(x->item[i], y->item[i]);
        return equal;
    }
    case TSR_FIELD_GROUP:
        return same(f->fields, a, b);
    case TSR_FIELD_LIST: {
        const tsr_list *x = a, *y = b;
        int equal = x->n == y->n;
        for (int i = 0; equal && i < x->n; i++)
            equal = same(f->fields,
                         (const char *)x->item + (size_t)i * f->element_size,
                         (const char *)y->item + (size_t)i * f->element_size);
        return equal;
    }
    }
    return 0;
}

static int same(const tsr_field *fields, const void *a, const void *b)
{
    int equal = 1;
    for (const tsr_field *f = fields; equal && f->name != NULL; f++)
        equal = same_field(f, (const char *)a + f->offset,
                           (const char *)b + f->offset);
    return equal;
}

/* Comments wrap; a value is one line, however long. */
static void check_columns(const char *text)
{
    for (const char *s = text; *s != '\0';) {
        const size_t n = strcspn(s, "\n");
        char line[100];
        if (s[strspn(s, " ")] == '#') {
            assert_true(n < sizeof line);
            snprintf(line, sizeof line, "%.*s", (int)n, s);
            assert_true(tsr_text_width(line) <= 80);
        }
        s += n + (s[n] == '\n');
    }
}

TEST(test_round_trip)
{
    uint64_t stream = 1;
    for (int i = 0; i < 2000; i++) {
        config before, after;
        OK(tsr_fields_init(config_fields, &before, &err));
        OK(tsr_fields_init(config_fields, &after, &err));
        randomize(&stream, config_fields, &before);
        FILE *memory = text_begin();
        OK(tsr_yaml_write(memory, config_fields, &before, &err));
        const char *text = text_end(memory);
        const char *path = io_text("round.yaml", text);
        if (tsr_yaml_read_marked(path, config_fields, &after, 0, NULL, NULL,
                                 &err) != TSR_OK)
            fail_msg("object %d: %s\n%s", i, err.message, text);
        if (!same(config_fields, &before, &after))
            fail_msg("object %d differs:\n%s", i, text);
        check_columns(text);
        tsr_fields_clear(config_fields, &before);
        tsr_fields_clear(config_fields, &after);
    }
}
