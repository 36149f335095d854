#include "moves/move.h"

#include <math.h>

const tsr_move_type *const tsr_move_registry[TSR_N_MOVE + 1] = {
    &tsr_move_pivot,      &tsr_move_crankshaft,
    &tsr_move_concerted,  &tsr_move_side_chain,
    &tsr_move_rigid_body, &tsr_move_regrow,
    &tsr_move_pose,       NULL};

double tsr_move_learn(long n, double accept_probability, double target)
{
    return 2.0 * pow((double)(n + 1), -0.6) * (accept_probability - target);
}
