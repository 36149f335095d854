/* Reads every so many draws of a variable from the trace. */
#include "analysis/thinned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws lie in compressed blocks, each of which a call unpacks whole: where
 * most blocks hold a draw that is wanted, it is quicker to read all of them. */
enum { DENSE = 64 };
static const double block_numbers = 4194304.0;

/* Draws from `first` on, `count` of them, of which every `every`-th is kept. */
static tsr_status read_block(tsr_trace_reader *reader, tsr_trace_group group,
                             const char *name, const tsr_trace_part *part,
                             double *block, tsr_thinned *t, tsr_err *err)
{
    const size_t n = (size_t)t->n;
    TSR_TRY(tsr_trace_get_part(reader, group, name, part, block, err));
    for (int c = 0; c < t->n_chain; c++)
        for (int d = 0; d < part->n_draw; d++) {
            const int draw = part->draw_from + d;
            if (draw % t->every == 0)
                memcpy(t->value + ((size_t)c * (size_t)t->n_kept +
                                   (size_t)(draw / t->every)) *
                                      n,
                       block +
                           ((size_t)c * (size_t)part->n_draw + (size_t)d) * n,
                       n * sizeof *block);
        }
    return TSR_OK;
}

tsr_status tsr_thinned_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, long most, int entry_from, int n,
                           tsr_thinned *out, tsr_err *err)
{
    int n_chain, n_draw, n_entry;
    *out = (tsr_thinned){.n = n, .every = 1};
    if (tsr_trace_shape(reader, group, name, &n_chain, &n_draw, &n_entry,
                        NULL) != TSR_OK ||
        n_chain < 1 || n_draw < 1 || entry_from + n > n_entry)
        return TSR_OK;
    out->every = (int)(((long)n_chain * n_draw + most - 1) / most);
    const int n_kept = (n_draw + out->every - 1) / out->every;
    const size_t row = (size_t)n_chain * (size_t)n;
    const int dense = (int)fmax(1.0, floor(block_numbers / (double)row));
    const int width = out->every >= DENSE ? 1 : dense < n_draw ? dense : n_draw;
    double *block = malloc((size_t)width * row * sizeof *block);
    out->value = malloc((size_t)n_kept * row * sizeof *out->value);
    tsr_status status =
        block != NULL && out->value != NULL
            ? TSR_OK
            : tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", name);
    out->n_chain = n_chain;
    out->n_kept = n_kept;
    const int step = width == 1 ? out->every : width;
    for (int from = 0; from < n_draw && status == TSR_OK; from += step) {
        const int left = n_draw - from;
        const tsr_trace_part part = {from, left < width ? left : width,
                                     entry_from, n};
        status = read_block(reader, group, name, &part, block, out, err);
    }
    free(block);
    return status;
}
