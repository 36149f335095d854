/* What --draws of export says, as a list of ranges of draws, and which stored
 * frames these are. */
#include "analysis/export.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void tsr_draw_choice_clear(tsr_draw_choice *choice)
{
    free(choice->range);
    *choice = (tsr_draw_choice){.n = 0};
}

static tsr_status bad(const char *text, tsr_err *err)
{
    return tsr_fail(err, TSR_E_USAGE,
                    "--draws '%.60s': expected all, best, even:NUMBER, or "
                    "[CHAIN/]FIRST[:LAST[:EVERY]], several with commas",
                    text);
}

/* A whole number that is not below 0; moves *at past it. */
static int whole(const char **at, long *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return 0;
    *out = strtol(*at, &end, 10);
    *at = end;
    return *out < LONG_MAX;
}

static int parse_range(const char **at, tsr_draw_range *range)
{
    long number;
    *range = (tsr_draw_range){.chain = -1, .every = 1};
    if (!whole(at, &number))
        return 0;
    if (**at == '/') {
        if (number > INT_MAX)
            return 0;
        range->chain = (int)number;
        (*at)++;
        if (!whole(at, &number))
            return 0;
    }
    range->first = range->last = number;
    if (**at == ':') {
        (*at)++;
        if (!whole(at, &range->last) || range->last < range->first)
            return 0;
    }
    if (**at == ':') {
        (*at)++;
        if (!whole(at, &range->every) || range->every < 1)
            return 0;
    }
    return 1;
}

static int starts(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return 0;
    *at += n;
    return 1;
}

tsr_status tsr_draw_choice_parse(const char *text, tsr_draw_choice *choice,
                                 tsr_err *err)
{
    const char *at = text;
    *choice = (tsr_draw_choice){.n = 0};
    do {
        tsr_draw_range range = {.chain = -1, .last = LONG_MAX, .every = 1};
        if (at != text)
            at++; /* the comma */
        if (starts(&at, "best")) {
            choice->is_best = 1;
        } else if (starts(&at, "even:")) {
            if (!whole(&at, &choice->even) || choice->even < 1)
                return bad(text, err);
        } else if (starts(&at, "all") || parse_range(&at, &range)) {
            const size_t n = (size_t)choice->n + 1;
            tsr_draw_range *more = realloc(choice->range, n * sizeof *more);
            if (more == NULL)
                return tsr_no_memory(err);
            choice->range = more;
            choice->range[choice->n++] = range;
        } else {
            return bad(text, err);
        }
    } while (*at == ',');
    return *at == '\0' ? TSR_OK : bad(text, err);
}

static int is_in(const tsr_draw_range *range, int chain, long draw)
{
    return (range->chain < 0 || range->chain == chain) &&
           draw >= range->first && draw <= range->last &&
           (draw - range->first) % range->every == 0;
}

int tsr_draw_choice_apply(const tsr_draw_choice *choice, int n,
                          const int *chain, const long *draw, const double *lp,
                          char *is_chosen)
{
    int best = n - 1, count = 0;
    memset(is_chosen, 0, (size_t)n);
    for (int i = 0; i < n; i++)
        for (int r = 0; r < choice->n && !is_chosen[i]; r++)
            is_chosen[i] = (char)is_in(&choice->range[r], chain[i], draw[i]);
    for (int i = 0; lp != NULL && i < n; i++)
        if (lp[i] > lp[best] || isnan(lp[best]))
            best = i;
    if (choice->is_best && n > 0)
        is_chosen[best] = 1;
    /* the middles of as many equal stretches */
    const long even = choice->even < n ? choice->even : n;
    for (long k = 0; k < even; k++)
        is_chosen[(long)((double)(2 * k + 1) * n / (double)(2 * even))] = 1;
    for (int i = 0; i < n; i++)
        count += is_chosen[i];
    return count;
}
