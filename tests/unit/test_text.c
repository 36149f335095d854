/* Excerpts, shell quoting and paragraphs of text have the documented form. */
#include "core/text.h"
#include "tests/test.h"

/* What cannot be printed in one line of a message becomes '?'. */
TEST(excerpt)
{
    char shown[TSR_EXCERPT_SIZE], text[500];
    assert_string_equal(tsr_text_excerpt("plain", shown), "plain");
    assert_string_equal(tsr_text_excerpt("a\nb\x1b[1m", shown), "a?b?[1m");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    tsr_text_excerpt(text, shown);
    assert_true(strlen(shown) < TSR_EXCERPT_SIZE);
    assert_string_equal(shown + strlen(shown) - 3, "...");
}

/* A shell gives every name back. */
TEST(shell)
{
    static const struct {
        const char *name, *word;
    } file[] = {{"runs/a-1_b.yaml", "runs/a-1_b.yaml"},
                {"two words", "'two words'"},
                {"a; touch x", "'a; touch x'"},
                {"it's $(x)", "'it'\\''s $(x)'"},
                {"-o", "./-o"},
                {"- o", "'./- o'"},
                {"a\nb", "'a'$'\\012''b'"},
                {"", "''"}};
    char word[TSR_SHELL_SIZE], text[TSR_SHELL_SIZE + 1];
    for (size_t k = 0; k < COUNT_OF(file); k++)
        assert_string_equal(tsr_text_shell(file[k].name, word), file[k].word);
    memset(text, '\'', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_string_equal(tsr_text_shell(text, word), "...");
    text[TSR_SHELL_SIZE / 8] = '\0';
    assert_int_equal(strlen(tsr_text_shell(text, word)),
                     TSR_SHELL_SIZE / 8 * 4 + 2);
}

TEST(paragraphs)
{
    FILE *out = text_begin();
    tsr_words w;
    tsr_words_begin(&w);
    tsr_words_add(&w, "\none\n\ntwo of it\n");
    OK(tsr_words_print(&w, out, 2, "- ", &err));
    char *text = text_end(out);
    assert_string_equal(text, "-   one\n-   two of it\n");
}
