/* Redraw: a linker or a tail takes another of many thousands of shapes that are
 * drawn at once, by a stand-in for the posterior, and the posterior decides.
 *
 * surrogate/redraw.h has how, and why it is exact. Where other moves turn a
 * linker a little at a time, this one makes another of it: of some 10^5 draws
 * from the prior one will do where a curve holds two domains at a distance, and
 * so many halves of a linker are joined in a millisecond. What the stand-in
 * learns it shares with walks (surrogate/surrogate_move.c), and the chain makes
 * the proposal (sampler/chain.c) in the same way. */
#include "moves/move.h"

#include <stdlib.h>

typedef struct {
    double weight;
} redraw_options;

static const tsr_field fields[] = {
    TSR_FIELD(
        DOUBLE, "weight", redraw_options, weight, .initial = "3", .min = 0.0,
        .max = 1e6,
        .doc = "share of the time, about, relative to the other moves; 0: off; "
               "not beside a GPU that walks, which finds shapes sooner"),
    {0}};

/* A chain adds it where there is a surrogate. */
static int redraw_targets(const void *options, const tsr_topology *topology)
{
    (void)options, (void)topology;
    return 0;
}

static void *redraw_new(const void *options, const tsr_topology *topology,
                        const tsr_prior *prior)
{
    (void)options, (void)topology, (void)prior;
    return calloc(1, 1);
}

static void redraw_adapt(void *state, const tsr_proposal *proposal,
                         double accept_probability)
{
    (void)state, (void)proposal, (void)accept_probability;
}

static void redraw_archive(void *state, tsr_archive *archive)
{
    (void)state, (void)archive; /* the surrogate's move has what is learnt */
}

const tsr_move_type tsr_move_redraw = {
    .name = "redraw",
    .doc = "another of many thousands of shapes of a linker or a tail, by a "
           "stand-in; one decision by the posterior",
    .source = "Neal, Beal & Roweis 2003; Andrieu, Lee & Vihola 2018",
    .options_size = sizeof(redraw_options),
    .fields = fields,
    .state_new = redraw_new,
    .state_free = free,
    .n_target = redraw_targets,
    .adapt = redraw_adapt,
    .archive = redraw_archive};
