/* Redraw: a linker or a tail takes another of many thousands of shapes that are
 * drawn at once, by a stand-in for the posterior, and the posterior decides.
 *
 * surrogate/redraw.h has how, and why it is exact. Where other moves turn a
 * linker a little at a time, this one makes another of it: of some 10^5 draws
 * from the prior one will do where a curve holds two domains at a distance, and
 * so many halves of a linker are joined in a millisecond. What the stand-in
 * learns it shares with walks (surrogate/surrogate_move.c), and jobs and
 * results are the same. */
#include "surrogate/surrogate_move.h"

#include <math.h>

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

/* A redraw takes as long as so many other steps, whose cost grows with the
 * square of the number of bodies; in lar, of 382, it was 26 on two cores. */
static double redraw_cost(const void *launcher, const tsr_topology *topology)
{
    const double n = (double)topology->n_body, most = 200.0, least = 10.0;
    (void)launcher;
    return fmin(fmax(4e6 / (n * n), least), most);
}

static void redraw_learn(const void *room, int job, void *state,
                         const tsr_move_place *place, int accepted)
{
    tsr_surrogate_state *learnt = state;
    const float drawn = tsr_surrogate_numbers(room, job)[TSR_SURROGATE_HEAD];
    const long n = learnt->n_learnt + learnt->n_redrawn;
    learnt->n_redrawn += isfinite(drawn) ? 1 : 0; /* NaN: nothing to draw */
    tsr_surrogate_learn_ratio(room, job, learnt, place, accepted, n);
}

/* Redraws are rarer than walks: where both are due it is they that are made. */
static const tsr_move_launch redraws = {.keeper = &tsr_move_surrogate,
                                        .is_between = 1,
                                        .cost = redraw_cost,
                                        .open = tsr_surrogate_open,
                                        .launcher_free =
                                            tsr_surrogate_launcher_free,
                                        .room_new = tsr_surrogate_room_new,
                                        .room_free = tsr_surrogate_room_free,
                                        .job = tsr_surrogate_job,
                                        .run = tsr_surrogate_run,
                                        .result = tsr_surrogate_result,
                                        .learn = redraw_learn};

const tsr_move_type tsr_move_redraw = {
    .name = "redraw",
    .doc = "another of many thousands of shapes of a linker or a tail, by a "
           "stand-in; one decision by the posterior",
    .source = "Neal, Beal & Roweis 2003; Andrieu, Lee & Vihola 2018",
    .options_size = sizeof(redraw_options),
    .fields = fields,
    .launch = &redraws};
