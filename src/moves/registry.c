#include "moves/move.h"

#include <math.h>

const tsr_move_type *const tsr_move_registry[TSR_N_MOVE + 1] = {
    &tsr_move_pivot, &tsr_move_side_chain, NULL};

double tsr_move_learn(long n, double accept_probability, double target)
{
    return 2.0 * pow((double)(n + 1), -0.6) * (accept_probability - target);
}
