/* A field table converts and checks text by type and range, prints help, and
 * names the nearest key. */
#include "../config_table.h"
#include "core/field.h"
#include "core/text.h"
#include "tests/test.h"

static uint64_t random_bits(uint64_t *state) /* splitmix64, Steele 2014 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

TEST(test_double_text)
{
    static const tsr_field field = {
        .name = "x", .type = TSR_FIELD_DOUBLE, .initial = "0"};
    char texts[] = "0 -0 1 0.1 -2.5 300 20000 0.0001 1e-5 1.25e-7 1e16 "
                   "1000000000000000 9007199254740992 0.3333333333333333 "
                   "0.30000000000000004 1.7976931348623157e308 5e-324";
    static const double third = 1.0 / 3.0;
    char text[64];
    for (char *want = strtok(texts, " "); want; want = strtok(NULL, " ")) {
        const double x = strtod(want, NULL);
        int n = tsr_field_format(&field, &x, text, sizeof text);
        assert_string_equal(text, want);
        assert_int_equal(n, (int)strlen(text));
    }
    /* what does not fit is cut, and its whole length returned */
    char cut[4];
    assert_int_equal(tsr_field_format(&field, &third, cut, 4), 18);
    assert_string_equal(cut, "0.3");
    assert_int_equal(tsr_field_format(&field, &third, NULL, 0), 18);
}

/* Any finite bits come back, and with a digit less they would not. */
TEST(test_double_bits)
{
    static const tsr_field field = {
        .name = "x", .type = TSR_FIELD_DOUBLE, .initial = "0"};
    uint64_t stream = 7;
    int n = 0;
    while (n < 20000) {
        uint64_t bits = random_bits(&stream);
        double x, y = 0.0;
        memcpy(&x, &bits, sizeof x);
        if (n % 2 == 1) /* and numbers of everyday size */
            x = ldexp((double)(int64_t)bits, -60);
        if (!isfinite(x))
            continue;
        char text[64];
        tsr_field_format(&field, &x, text, sizeof text);
        OK(tsr_field_parse(&field, &y, text, &err));
        assert_memory_equal(&x, &y, sizeof x);
        int digits = 0, leading = 1;
        for (const char *s = text; *s != '\0' && *s != 'e'; s++) {
            leading = leading && !(*s >= '1' && *s <= '9');
            digits += *s >= '0' && *s <= '9' && !leading;
        }
        if (digits > 1 && strchr(text, '.') != NULL) {
            const char *less = format("%.*e", digits - 2, x);
            assert_true(strtod(less, NULL) != x);
        }
        n++;
    }
}

/* Texts that are wrong in one way (NULL: accepted), and what a message ends
 * with. */
static void check_texts(const tsr_field *field, const char *expected,
                        const char *wrong, const char *const *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        err = (tsr_err){0};
        double raw[4] = {7.0, 7.0, 7.0, 7.0}, before[4];
        memcpy(before, raw, sizeof raw);
        tsr_status status = tsr_field_parse(field, raw, text[i], &err);
        if (wrong == NULL) {
            if (status != TSR_OK)
                fail_msg("'%s': %s", text[i], err.message);
            continue;
        }
        assert_ints(status, TSR_E_CONFIG, err.status, TSR_E_CONFIG);
        assert_memory_equal(raw, before, sizeof raw);
        assert_string_equal(err.message, format("value '%s' %s: expected %s",
                                                text[i], wrong, expected));
    }
}
#define TEXTS(field, expected, wrong, ...)                             \
    check_texts(field, expected, wrong, (const char *[]){__VA_ARGS__}, \
                N_OF(const char *, __VA_ARGS__))

TEST(test_parse_numbers)
{
    static const tsr_field integer = ROW(.name = "i", .type = TSR_FIELD_INT,
                                         .initial = "1", .min = 1, .max = 4096);
    static const char integers[] = "integer in [1, 4096]";
    TEXTS(&integer, integers, NULL, "1", "+12", "4096", "007");
    TEXTS(&integer, integers, "is out of range", "0", "4097");
    TEXTS(&integer, integers, "is not an integer", "5x", " 5", "5.0", "", "-",
          "0x10", "null");
    TEXTS(&integer, integers, "is too large for an integer",
          "99999999999999999999");

    static const tsr_field real =
        ROW(.name = "x", .type = TSR_FIELD_DOUBLE, .initial = "0.1",
            .unit = "rad", .min = 1e-6, .max = 3.15);
    static const char reals[] = "number in [1e-6, 3.15] (rad)";
    TEXTS(&real, reals, NULL, "0.5", ".5", "1.", "1e-6", "+3.15E0");
    TEXTS(&real, reals, "is not a number", "nan", ".nan", "inf", "0x1p-2", "1e",
          ".", "0.5 ", "1,5");
    TEXTS(&real, reals, "is out of range", "0");
    TEXTS(&real, reals, "is too large for a number", "1e999");

    static const tsr_field open = {
        .name = "x", .type = TSR_FIELD_DOUBLE, .initial = "1", .max = HUGE_VAL};
    TEXTS(&open, "number, at least 0", NULL, "0", "1e300");
    TEXTS(&open, "number, at least 0", "is out of range", "-1");
}

TEST(test_parse_others)
{
    static const tsr_field bool_field = {
        .name = "b", .type = TSR_FIELD_BOOL, .initial = "no"};
    static const char *const words[] = {"false", "true", "no",
                                        "yes",   "off",  "On"};
    for (int i = 0; i < 6; i++) {
        int value = -1;
        OK(tsr_field_parse(&bool_field, &value, words[i], &err));
        assert_int_equal(value, i % 2);
    }
    TEXTS(&bool_field, "true or false", "is neither true nor false", "1",
          "maybe");

    static const char *const models[] = {"measured", "relative", NULL};
    static const tsr_field choice = ROW(.name = "c", .type = TSR_FIELD_CHOICE,
                                        .initial = "measured", .words = models);
    TEXTS(&choice, "one of measured, relative", NULL, "relative");
    TEXTS(&choice, "one of measured, relative", "is not known", "gauss");

    static const char *const infer[] = {"infer", "none", NULL};
    static const tsr_field mixed =
        ROW(.name = "n", .type = TSR_FIELD_NUMBER_OR_WORD, .initial = "infer",
            .min = 0.0, .max = 5.0, .words = infer);
    tsr_number_or_word n;
    OK(tsr_field_parse(&mixed, &n, "none", &err));
    assert_int_equal(n.word, 1);
    OK(tsr_field_parse(&mixed, &n, "2.5", &err));
    assert_int_equal(n.word, -1);
    assert_true(n.number == 2.5);
    TEXTS(&mixed, "number in [0, 5], or one of infer, none", "is out of range",
          "6");
    TEXTS(&mixed, "number in [0, 5], or one of infer, none",
          "is neither a number nor a known word", "infr");

    static const tsr_field pair =
        ROW(.name = "p", .type = TSR_FIELD_PAIR, .initial = "[0, 1]",
            .max = 10.0, .unit = "1/A");
    double p[2];
    OK(tsr_field_parse(&pair, p, "[0.01,0.3]", &err));
    assert_true(p[0] == 0.01 && p[1] == 0.3);
    static const char pairs[] =
        "ascending pair [low, high] within [0, 10] (1/A)";
    TEXTS(&pair, pairs, NULL, "[ 0 , 10 ]");
    TEXTS(&pair, pairs, "is not ascending", "[1, 1]", "[2, 1]");
    TEXTS(&pair, pairs, "is out of range", "[1, 11]");
    TEXTS(&pair, pairs, "is not a number", "[1, x]");
    TEXTS(&pair, pairs, "is not a pair of numbers", "[1]", "[1, 2, 3]",
          "[1, 2] ", "1", "");
}

TEST(test_unset)
{
    static const tsr_field pair = {
        .name = "p", .type = TSR_FIELD_PAIR, .max = 10.0};
    static const tsr_field count = {
        .name = "n", .type = TSR_FIELD_INT, .min = 2, .max = 9};
    static const tsr_field text = {.name = "s", .type = TSR_FIELD_STRING};
    double p[2] = {1.0, 2.0};
    long n = 5;
    char *s = NULL, shown[20];
    OK(tsr_field_parse(&text, &s, "abc", &err));
    assert_string_equal(s, "abc");
    OK(tsr_field_parse(&pair, p, "null", &err));
    OK(tsr_field_parse(&count, &n, "null", &err));
    OK(tsr_field_parse(&text, &s, "null", &err));
    assert_true(p[0] == 0.0 && p[1] == 0.0 && n == 0 && s == NULL);
    tsr_field_format(&pair, p, shown, sizeof shown);
    assert_string_equal(shown, "null");
    tsr_field_format(&count, &n, shown, sizeof shown);
    assert_string_equal(shown, "null");
    tsr_field_format(&text, &s, shown, sizeof shown);
    assert_string_equal(shown, "null");
}

TEST(test_defaults)
{
    config c;
    memset(&c, 0xa5, sizeof c); /* raw memory */
    OK(tsr_fields_init(config_fields, &c, &err));
    assert_string_equal(c.name, "run");
    assert_int_equal(c.seed, 1);
    assert_null(c.structure.file);
    assert_ints(c.structure.bodies, 1, c.structure.flexible.n, 0, c.data.n, 0,
                c.prior.restraints.n, 0);
    assert_true(c.moves.crankshaft.step_rad == 0.1);
    assert_int_equal(c.sampler.temperatures.word, 0);
    assert_true(c.sampler.window[0] == -1.0 && c.sampler.window[1] == 1e-3);
    void *element;
    const tsr_field *data = tsr_field_find(config_fields, "data");
    for (int i = 0; i < 3; i++)
        OK(tsr_field_append(data, &c, &element, &err));
    assert_int_equal(c.data.n, 3);
    assert_true(((config_data *)element)->noise.alpha_inv_ang == 0.15);
    tsr_fields_clear(config_fields, &c);
    assert_null(c.name);
    assert_null(c.data.item);
    tsr_fields_clear(config_fields, &c); /* twice is fine */
}

TEST(test_bad_default)
{
    static const tsr_field fields[] = {
        ROW(.name = "s", .type = TSR_FIELD_STRING, .initial = "kept"),
        ROW(.name = "n", .type = TSR_FIELD_INT, .initial = "9", .min = 1,
            .max = 5, .offset = sizeof(char *)),
        ROW(.name = NULL)};
    struct {
        char *s;
        long n;
    } object;
    assert_int_equal(tsr_fields_init(fields, &object, &err), TSR_E_INTERNAL);
    assert_null(object.s);
    assert_string_equal(err.message,
                        "default '9' of field 'n': value '9' is out of range: "
                        "expected integer in [1, 5]");
}

TEST(test_nearest)
{
    static const tsr_field fields[] = {
        {.name = "chains"},       {.name = "warmup"}, {.name = "draws"},
        {.name = "temperatures"}, {.name = "q_unit"}, {.name = NULL}};
    static const char *const near[] = {
        "chians",      "chains",       "chain",      "chains",       "drws",
        "draws",       "draw",         "draws",      "warm_up",      "warmup",
        "tempratures", "temperatures", "tmpertures", "temperatures", "quinit",
        "q_unit"}; /* typed, meant */
    static const char *const far[] = {
        "dr", "steps", "x", "", "CHAINS", "chaxyz", "chains_and_many_more"};
    for (size_t i = 0; i < COUNT_OF(near); i += 2)
        assert_string_equal(tsr_field_nearest(fields, near[i]), near[i + 1]);
    for (size_t i = 0; i < COUNT_OF(far); i++)
        assert_null(tsr_field_nearest(fields, far[i]));
}

TEST(test_help)
{
    FILE *out = text_begin();
    tsr_fields_help(config_fields, "all", 2, out, NULL);
    char *text = text_end(out);
    static const char begin[] =
        "  name                run              a title for people\n"
        "  seed                1                of the random numbers; integer "
        "in [0,\n"
        "                                       9007199254740992]\n"
        "  structure                            the molecule\n"
        "    file              -                PDB or mmCIF\n";
    assert_memory_equal(text, begin, sizeof begin - 1);
    assert_has(text,
               "      step            0.1         rad  standard deviation of "
               "the rotation;\n"
               "                                       number in [1e-6, "
               "3.15]\n");
    assert_null(strstr(text, " \n"));
    for (char *line = text, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        assert_true(tsr_text_width(line) <= 80);
    }
}

/* A key by its whole name or the end of it, of a kind or of a group; without
 * one the table's own rows. The whole name comes before an end. */
TEST(test_help_topic)
{
    static const struct {
        const char *topic, *begins; /* NULL: there is no such key */
    } rows[] = {{"structure.file", "structure.file  -  PDB or mmCIF\n"},
                {"crankshaft", "moves.crankshaft "},
                {"name", "name  run  a title for people\n"},
                {"sampler", "sampler\n"},
                {NULL, "name "},
                {"all", "name "},
                {"structure.step", NULL},
                {"file.", NULL},
                {"ile", NULL},
                {"", NULL}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        FILE *out = text_begin();
        const tsr_status status =
            tsr_fields_help(config_fields, rows[i].topic, 0, out, &err);
        char *text = text_end(out);
        if (rows[i].begins != NULL)
            assert_memory_equal(text, rows[i].begins, strlen(rows[i].begins));
        else
            assert_string_equal(text, "");
        assert_true(rows[i].topic != NULL || strstr(text, " file ") == NULL);
        assert_int_equal(status, rows[i].begins != NULL ? TSR_OK : TSR_E_USAGE);
    }
    FILE *out = text_begin();
    OK(tsr_fields_help(kinds_fields, "many.crate", 0, out, &err));
    OK(tsr_fields_help(kinds_fields, "many.radius", 0, out, &err));
    char *text = text_end(out);
    assert_memory_equal(text, "many.crate ", 11);
    assert_null(strstr(text, "ball (default)"));
    assert_has(text, "\nmany.radius  1  m  of the ball; number");
}

/* A name, default and unit beyond their columns break the line. */
TEST(test_help_long)
{
    static const tsr_field fields[] = {
        {.name = "a", .type = TSR_FIELD_STRING, .initial = "b", .doc = "c"},
        ROW(.name = "a_name_that_is_much_too_long_for_it",
            .type = TSR_FIELD_STRING, .initial = "a default that is too long",
            .unit = "mol/(m^2 s)", .doc = "d"),
        {.name = NULL}};
    FILE *out = text_begin();
    tsr_fields_help(fields, "all", 0, out, NULL);
    char *text = text_end(out);
    assert_string_equal(text, "a  b  c\n"
                              "a_name_that_is_much_too_long_for_it\n"
                              "   a default that is too long\n"
                              "      mol/(m^2 s)\n"
                              "      d\n");
}

TEST(test_excerpt)
{
    char out[TSR_EXCERPT_SIZE], big[400];
    assert_string_equal(tsr_text_excerpt("a\tb\xff\xc3\xa5\n", out),
                        "a?b?\xc3\xa5?");
    for (size_t i = 0; i + 2 < sizeof big; i += 2)
        memcpy(big + i, "\xc3\xa5", 3); /* cut only between characters */
    tsr_text_excerpt(big, out);
    assert_true(strlen(out) < TSR_EXCERPT_SIZE);
    assert_string_equal(out + strlen(out) - 5, "\xc3\xa5...");
}

/* ---- structs that have kinds ---- */

TEST(test_kinds_choose)
{
    kinds k;
    void *element;
    const tsr_field *one = &kinds_fields[0], *many = &kinds_fields[1];
    memset(&k, 0xa5, sizeof k); /* raw memory */
    OK(tsr_fields_init(kinds_fields, &k, &err));
    assert_int_equal(k.one.ball.shape, 0);
    assert_string_equal(k.one.ball.name, "round");
    k.one.ball.radius = 3.0;
    OK(tsr_field_set_kind(one, &k.one, "ball", &err));
    assert_true(k.one.ball.radius == 3.0); /* the kind that it was */

    /* what both have stays, the rest is as by default, both ways */
    OK(tsr_field_set_kind(one, &k.one, "box", &err));
    assert_int_equal(k.one.box.shape, 1);
    assert_string_equal(k.one.box.name, "round");
    assert_true(k.one.box.size[0] == 1.0 && k.one.box.size[1] == 2.0);
    assert_int_equal(k.one.box.lines.n, 0);
    assert_ptr_equal(tsr_field_members(one, &k.one), kinds_box_fields);
    k.one.box.size[0] = 0.5;
    OK(tsr_field_set_kind(one, &k.one, "crate", &err));
    assert_int_equal(k.one.box.shape, 2); /* all of it in common */
    assert_true(k.one.box.size[0] == 0.5);
    OK(tsr_field_set_kind(one, &k.one, "ball", &err));
    assert_int_equal(k.one.ball.shape, 0);
    assert_string_equal(k.one.ball.name, "round");
    assert_true(k.one.ball.radius == 1.0);

    assert_int_equal(tsr_field_set_kind(one, &k.one, "bal", &err),
                     TSR_E_CONFIG);
    assert_string_equal(err.message, "value 'bal' is unknown: expected one "
                                     "of ball, box, crate");
    assert_int_equal(k.one.ball.shape, 0);

    OK(tsr_field_append(many, &k, &element, &err));
    OK(tsr_field_set_kind(many, element, "box", &err));
    OK(tsr_field_append(many, &k, &element, &err));
    const kinds_shape *shape = k.many.item;
    assert_ints(shape[0].box.shape, 1, shape[1].ball.shape, 0);
    assert_true(shape[1].ball.radius == 1.0);
    tsr_fields_clear(kinds_fields, &k);
    assert_null(k.many.item);
    assert_null(k.one.ball.name);
}

TEST(test_kinds_text)
{
    char expected[300];
    FILE *out = text_begin();
    tsr_fields_help(&kinds_fields[1], "all", 0, out, NULL);
    char *text = text_end(out);
    assert_string_equal(
        text,
        "many        []         shapes; list; a bare value sets name\n"
        "  shape: ball (default)\n"
        "                       a round one\n"
        "    name    round      what it is called\n"
        "    radius  1       m  of the ball; number in [0, 10]\n"
        "  shape: box           one with edges\n"
        "    size    [1, 2]     least and largest; ascending pair [low, high]\n"
        "    lines   []         on it; list of texts\n"
        "    name    square     what it is called\n"
        "  shape: crate         a box of wood\n"
        "    size    [1, 2]     least and largest; ascending pair [low, high]\n"
        "    lines   []         on it; list of texts\n"
        "    name    square     what it is called\n");
    tsr_field_expected(&kinds_fields[0], expected, sizeof expected);
    assert_string_equal(expected,
                        "mapping with keys among shape, name, radius (shape "
                        "ball); shape, size, lines, name (shape box); shape, "
                        "size, lines, name (shape crate)");
}
