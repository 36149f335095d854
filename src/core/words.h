/* A text that grows, sentence by sentence. Running out of memory is remembered
 * and told at the end. */
#ifndef TSR_CORE_WORDS_H
#define TSR_CORE_WORDS_H

#include "core/status.h"

#include <stdio.h>

typedef struct {
    FILE *out; /* NULL: out of memory */
    char *text;
    size_t size;
} tsr_words;

void tsr_words_begin(tsr_words *words);
void tsr_words_say(tsr_words *words, const char *format, ...) TSR_PRINTF(2, 3);

/* The text, which the caller frees; NULL: out of memory. */
char *tsr_words_end(tsr_words *words);

/* One sentence at once. */
char *tsr_words_of(const char *format, ...) TSR_PRINTF(1, 2);

#endif
