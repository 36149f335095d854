#include "analysis/frame_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first frame's number that is not before chain, state, draw. */
static int lower_bound(const tsr_drawn_frame *frame, int n, int chain,
                       int state, long draw)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const tsr_drawn_frame *f = &frame[middle];
        const int is_before = f->chain != chain   ? f->chain < chain
                              : f->state != state ? f->state < state
                                                  : f->draw < draw;
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int last_state(const tsr_drawn_frame *frame, int n)
{
    int last = 0;
    for (int i = 0; i < n; i++)
        last = frame[i].state > last ? frame[i].state : last;
    return last;
}

typedef struct {
    int at, draw;
} pick;

static int by_at(const void *left, const void *right)
{
    const pick *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

/* k of m, evenly among n: the first and the last are in. */
static int even_place(int n, int m, int k)
{
    return m > 1 ? (int)((long)k * (n - 1) / (m - 1)) : 0;
}

int tsr_frames_spread(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(frames, &frame);
    const int n_state = last_state(frame, n);
    *n_draw = n < most ? n : most;
    if (n_state < 2) {
        for (int i = 0; i < *n_draw; i++) {
            at[i] = even_place(n, *n_draw, i);
            draw[i] = i;
        }
        return *n_draw;
    }
    /* the draws are those that the first state was stored of */
    int *first = malloc((size_t)n * sizeof *first), n_first = 0, count = 0;
    pick *chosen = malloc((size_t)most * sizeof *chosen);
    for (int i = 0; first != NULL && i < n; i++)
        if (frame[i].state == frame[0].state)
            first[n_first++] = i;
    *n_draw = n_first < most / n_state ? n_first : most / n_state;
    for (int k = 0; first != NULL && chosen != NULL && k < *n_draw; k++) {
        const tsr_drawn_frame *f =
            &frame[first[even_place(n_first, *n_draw, k)]];
        for (int s = 1; s <= n_state && count < most; s++) {
            const int i = lower_bound(frame, n, f->chain, s, f->draw);
            if (i < n && frame[i].chain == f->chain && frame[i].state == s &&
                frame[i].draw == f->draw)
                chosen[count++] = (pick){i, k};
        }
    }
    if (count > 0)
        qsort(chosen, (size_t)count, sizeof *chosen, by_at);
    for (int i = 0; i < count; i++) {
        at[i] = chosen[i].at;
        draw[i] = chosen[i].draw;
    }
    free(first);
    free(chosen);
    return count;
}

/* The weights of one state into those of its frames; 0: there are none. */
static int fill_state(const tsr_drawn_frame *frame, int n, int state,
                      tsr_trace_reader *trace, double *weight)
{
    char name[32];
    int n_chain, n_draw, n_each;
    double *value;
    snprintf(name, sizeof name, "weight_%d", state);
    if (tsr_trace_get(trace, TSR_TRACE_POSTERIOR, name, &n_chain, &n_draw,
                      &n_each, &value, NULL) != TSR_OK)
        return 0;
    for (int i = 0; i < n && n_each == 1; i++) {
        const tsr_drawn_frame *f = &frame[i];
        if (f->state == state && f->chain < n_chain && f->draw < n_draw)
            weight[i] =
                value[(size_t)f->chain * (size_t)n_draw + (size_t)f->draw];
    }
    free(value);
    return n_each == 1;
}

tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(frames, &frame);
    const int n_state = last_state(frame, n);
    int is_there = trace != NULL && n_state > 1;
    *weight = NULL;
    if (!is_there)
        return TSR_OK;
    double *w = malloc((size_t)n * sizeof *w);
    if (w == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d weights", n);
    for (int i = 0; i < n; i++) /* beyond the trace: as the others on average */
        w[i] = 1.0 / n_state;
    for (int s = 1; s <= n_state && is_there; s++)
        is_there = fill_state(frame, n, s, trace, w);
    for (int i = 0; i < n && is_there; i++)
        is_there = w[i] >= 0.0 && isfinite(w[i]);
    if (!is_there) {
        free(w);
        w = NULL;
    }
    *weight = w;
    return TSR_OK;
}
