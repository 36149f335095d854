/* The list of moves, made from TSR_MOVES, and what several moves learn by. */
#include "moves/move.h"

#include <math.h>

#define X(name) &tsr_move_##name,
const tsr_move_type *const tsr_move_registry[] = {TSR_MOVES(X) NULL};
#undef X

double tsr_move_learn(long n, double accept_probability, double target)
{
    return 2.0 * pow((double)(n + 1), -0.6) * (accept_probability - target);
}
