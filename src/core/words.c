#include "core/words.h"

#include <stdarg.h>
#include <stdlib.h>

void tsr_words_begin(tsr_words *words)
{
    *words = (tsr_words){NULL, NULL, 0};
    words->out = open_memstream(&words->text, &words->size);
}

void tsr_words_say(tsr_words *words, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (words->out != NULL)
        vfprintf(words->out, format, list);
    va_end(list);
}

char *tsr_words_end(tsr_words *words)
{
    if (words->out == NULL)
        return NULL;
    int failed = ferror(words->out);
    failed |= fclose(words->out) != 0;
    words->out = NULL;
    if (!failed)
        return words->text;
    free(words->text);
    return NULL;
}

char *tsr_words_of(const char *format, ...)
{
    va_list list;
    tsr_words words;
    tsr_words_begin(&words);
    va_start(list, format);
    if (words.out != NULL)
        vfprintf(words.out, format, list);
    va_end(list);
    return tsr_words_end(&words);
}
