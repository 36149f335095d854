/* core/text: JSON strings and excerpts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"

static void check_json(const char *text, const char *expected)
{
    char *got = NULL;
    size_t size;
    FILE *out = open_memstream(&got, &size);
    assert_non_null(out);
    tsr_text_json(out, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    free(got);
}

/* RFC 8259: quotes, backslashes and control characters are escaped, the rest is
 * UTF-8. */
static void json(void **state)
{
    (void)state;
    check_json("", "\"\"");
    check_json("a \"b\" \\c", "\"a \\\"b\\\" \\\\c\"");
    check_json("1\t2\n\x1f", "\"1\\u00092\\u000a\\u001f\"");
    check_json("\xc3\x85ngstr\xc3\xb6m", "\"\xc3\x85ngstr\xc3\xb6m\"");
    check_json("a\xff"
               "b",
               "\"a\\ufffdb\"");
}

/* What cannot be printed in one line of a message becomes '?'. */
static void excerpt(void **state)
{
    (void)state;
    char shown[TSR_EXCERPT_SIZE], text[500];
    assert_string_equal(tsr_text_excerpt("plain", shown), "plain");
    assert_string_equal(tsr_text_excerpt("a\nb\x1b[1m", shown), "a?b?[1m");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    tsr_text_excerpt(text, shown);
    assert_true(strlen(shown) < TSR_EXCERPT_SIZE);
    assert_string_equal(shown + strlen(shown) - 3, "...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(json),
                                       cmocka_unit_test(excerpt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
