/* core/text: excerpts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(excerpt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
