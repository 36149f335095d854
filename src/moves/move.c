/* The list of all moves, made from TSR_MOVES, and the adaptation of step sizes
 * that several moves share. */
#include "moves/move.h"

#include <math.h>

#define X(name) &tsr_move_##name,
const tsr_move_type *const tsr_move_registry[] = {TSR_MOVES(X) NULL};
#undef X

double tsr_move_robbins_monro(long n, double accept_probability, double target)
{
    return 2.0 * pow((double)(n + 1), -0.6) * (accept_probability - target);
}

/* ---- step sizes ---- */

double tsr_step_width(const tsr_step *common, const tsr_step *own,
                      double max_width)
{
    return fmin(exp(common->log_step + own->log_step), max_width);
}

void tsr_step_adapt(tsr_step *common, tsr_step *own, double accept_probability,
                    double target, double max_width)
{
    common->log_step +=
        tsr_move_robbins_monro(common->n++, accept_probability, target);
    own->log_step +=
        tsr_move_robbins_monro(own->n++, accept_probability, target);
    double beyond = common->log_step + own->log_step - log(max_width);
    if (beyond > 0.0)
        own->log_step -= beyond;
}

void tsr_step_archive(tsr_step *step, size_t n, tsr_archive *archive)
{
    for (size_t i = 0; i < n; i++) {
        tsr_archive_long(archive, &step[i].n, 1);
        tsr_archive_real(archive, &step[i].log_step, 1);
    }
}
