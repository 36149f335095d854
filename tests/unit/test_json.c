/* JSON output has its commas and keys, numbers are read back to the bit, and
 * strings stay whole. */
#include <float.h>

#include "core/json.h"
#include "core/vec3.h"
#include "tests/test.h"

typedef struct {
    tsr_json json;
    char *text;
    size_t size;
} written;

static void begin(written *w)
{
    *w = (written){.text = NULL};
    w->json.out = open_memstream(&w->text, &w->size);
    assert_non_null(w->json.out);
}

static void expect(written *w, const char *expected)
{
    assert_int_equal(fclose(w->json.out), 0);
    assert_string_equal(w->text, expected);
    free(w->text);
}

TEST(nesting)
{
    const double two[2] = {0.25, (double)NAN};
    written w;
    begin(&w);
    tsr_json_object(&w.json, NULL);
    tsr_json_integer(&w.json, "n", -3);
    tsr_json_numbers(&w.json, "q", 2, two);
    tsr_json_array(&w.json, "rows");
    for (int i = 0; i < 2; i++) {
        tsr_json_object(&w.json, NULL);
        tsr_json_boolean(&w.json, "is", i);
        tsr_json_object(&w.json, "in");
        tsr_json_close(&w.json);
        tsr_json_text(&w.json, "no", NULL);
        tsr_json_close(&w.json);
    }
    tsr_json_close(&w.json);
    tsr_json_close(&w.json);
    expect(&w, "{\"n\": -3,\n \"q\": [0.25, null],\n \"rows\": [\n"
               "  {\"is\": false, \"in\": {}, \"no\": null},\n"
               "  {\"is\": true, \"in\": {}, \"no\": null}]}\n");
}

/* Reading gives back the same double, or as many digits as were asked for. */
TEST(numbers)
{
    const double value[] = {0.0,     -0.1,        1.0 / 3.0, 6.02214076e23,
                            DBL_MIN, DBL_MAX,     5e-324,    0.1 + 0.2,
                            1e22,    -123456.789, TSR_PI};
    enum { N = COUNT_OF(value) };
    written w;
    begin(&w);
    tsr_json_numbers(&w.json, NULL, N, value);
    fflush(w.json.out);
    char *at = w.text;
    for (int i = 0; i < N; i++)
        assert_true(strtod(at + 1, &at) == value[i]);
    assert_has(w.text, "[0, -0.1, 0.333");
    fclose(w.json.out);
    free(w.text);
    begin(&w);
    w.json.digits = 3;
    tsr_json_array(&w.json, NULL);
    tsr_json_number(&w.json, NULL, TSR_PI);
    tsr_json_number(&w.json, NULL, -(double)INFINITY);
    tsr_json_close(&w.json);
    expect(&w, "[3.14, null]\n");
}

static void check_text(const char *text, int is_script, const char *expected)
{
    written w;
    begin(&w);
    w.json.is_script = is_script;
    tsr_json_text(&w.json, NULL, text);
    expect(&w, expected);
}

/* RFC 8259: quotes, backslashes and control characters are escaped, the rest is
 * UTF-8. */
TEST(strings)
{
    check_text("", 0, "\"\"");
    check_text("a \"b\" \\c", 0, "\"a \\\"b\\\" \\\\c\"");
    check_text("1\t2\n\x1f", 0, "\"1\\u00092\\u000a\\u001f\"");
    check_text("\xc3\x85ngstr\xc3\xb6m", 0, "\"\xc3\x85ngstr\xc3\xb6m\"");
    check_text("a\xff"
               "b",
               0, "\"a\\ufffdb\"");
    check_text("</script>", 0, "\"</script>\"");
}

/* In a page a string can neither end the script nor hide its end. */
TEST(script)
{
    written w;
    check_text("</script><!--", 1, "\"\\u003c/script>\\u003c!--\"");
    begin(&w);
    w.json.is_script = 1;
    tsr_json_object(&w.json, NULL);
    tsr_json_array(&w.json, "<");
    tsr_json_integer(&w.json, NULL, 1);
    tsr_json_integer(&w.json, NULL, 2);
    tsr_json_close(&w.json);
    tsr_json_close(&w.json);
    expect(&w, "{\"\\u003c\":[1,2]}");
}

/* What is nested too deep is null and said; what comes behind it is there. */
/* A place deep in an object, and what is not there. */
TEST(finding)
{
    static const char text[] =
        "{\"a\": {\"runs\": 7}, \"runs\": [{\"x\": 1}, {\"y\": [2, \"b\"], "
        "\"x\": {\"log\": -3.5, \"none\": null}}], \"run\": 9}";
    static const struct {
        const char *path;
        double value; /* NaN: it is not there, or no number */
    } want[] = {{"runs.0.x", 1.0},         {"runs.1.x.log", -3.5},
                {"runs.1.y.0", 2.0},       {"run", 9.0},
                {"a.runs", 7.0},           {"runs.1.y.1", (double)NAN},
                {"runs.2.x", (double)NAN}, {"runs.1.x.none", (double)NAN},
                {"x", (double)NAN},        {"run.0", (double)NAN},
                {"runs.0.y", (double)NAN}, {"runs.0.x.log", (double)NAN}};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        tsr_json_reader r = {text, text + strlen(text), 0, 0};
        double value = 0.0;
        const int is_there =
            tsr_json_find(&r, want[i].path) && tsr_json_read_number(&r, &value);
        assert_int_equal(is_there, !isnan(want[i].value));
        if (is_there)
            assert_true(value == want[i].value);
    }
}

TEST(too_deep)
{
    enum { DEEP = TSR_JSON_DEPTH + 2 };
    written w;
    char expected[4 * DEEP] = "";
    begin(&w);
    w.json.is_script = 1;
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(w.json.is_bad, i > TSR_JSON_DEPTH);
        tsr_json_array(&w.json, NULL);
    }
    tsr_json_number(&w.json, NULL, 1.5);
    tsr_json_integer(&w.json, NULL, 2);
    tsr_json_boolean(&w.json, NULL, 1);
    tsr_json_text(&w.json, NULL, "lost");
    for (int i = 0; i < DEEP - 1; i++)
        tsr_json_close(&w.json);
    tsr_json_integer(&w.json, NULL, 3);
    tsr_json_close(&w.json);
    for (int i = 0; i < TSR_JSON_DEPTH; i++)
        expected[i] = '[';
    strncat(expected, "null", 4);
    for (int i = 1; i < TSR_JSON_DEPTH; i++)
        strncat(expected, "]", 1);
    strncat(expected, ",3]", 3);
    assert_int_equal(w.json.is_bad, 1);
    expect(&w, expected);
}

/* Values with and without keys and headings, as text and as JSON. */
static void put_table(tsr_table *t)
{
    const char *const name[] = {"a", "bc"};
    const double value[] = {1.25, (double)NAN};
    for (int i = 0; i < 2; i++) {
        tsr_table_row(t, NULL);
        tsr_table_put(t, "name|the~name %-*s n|n %3d x|x %7.2f~%% y %g", 8,
                      name[i], 10 * i, value[i], 0.5);
        tsr_table_put(t, "fits %i big|big %8.1e | %-3s big_n %ld", i == 1,
                      12345.0, i == 0 ? "*" : "", 1L << 40);
        tsr_table_end(t);
    }
}

TEST(tables)
{
    written w;
    begin(&w);
    put_table(&(tsr_table){.out = w.json.out});
    expect(&w, "the name   n       x      big\n"
               "a          0  1.25 %  1.2e+04 *\n"
               "bc        10       -  1.2e+04\n");
    begin(&w);
    tsr_json_array(&w.json, NULL);
    put_table(&(tsr_table){.json = &w.json});
    tsr_json_close(&w.json);
    expect(&w, "[\n {\"name\": \"a\", \"n\": 0, \"x\": 1.25, \"y\": 0.5, "
               "\"fits\": false, \"big\": 12345, \"big_n\": 1099511627776},\n"
               " {\"name\": \"bc\", \"n\": 10, \"x\": null, \"y\": 0.5, "
               "\"fits\": true, \"big\": 12345, \"big_n\": "
               "1099511627776}]\n");
}

TEST(members)
{
    written w;
    begin(&w);
    tsr_json_members(&w.json, "{ a %g b %d c[ %ld { d %i } ] e{ f %s } g %d }",
                     0.5, 3, 4L, 1, "x", 7);
    expect(&w, "{\"a\": 0.5, \"b\": 3,\n \"c\": [4,\n  {\"d\": true}],\n "
               "\"e\": {\"f\": \"x\"}, \"g\": 7}\n");
}
