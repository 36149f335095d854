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

/* ---- stretches ---- */

void tsr_move_set_torsions(const tsr_topology *topology,
                           const tsr_conformation *current,
                           tsr_conformation *proposed, int first, int count,
                           int c_side, const double (*torsion_rad)[2],
                           tsr_proposal *proposal)
{
    const tsr_residue *r = &topology->residue[first];
    const int last = first + count - 1;
    double change[TSR_MAX_STRETCH][2];
    for (int n = 0; n < count; n++)
        for (int k = 0; k < 2; k++) {
            const int i = first + n;
            const int is_free = k == TSR_PHI ? topology->residue[i].has_phi
                                             : topology->residue[i].has_psi;
            change[n][k] =
                is_free ? torsion_rad[n][k] -
                              tsr_conformation_torsion(topology, current, i,
                                                       (tsr_torsion_kind)k)
                        : 0.0;
        }
    tsr_conformation_turn_many(topology, proposed, first, last, c_side,
                               (const double(*)[2])change);
    proposal->n_span = 0;
    if (!c_side && first > r->chain_first)
        proposal->span[proposal->n_span++] =
            (tsr_span){r->chain_first, first - r->chain_first, 1};
    proposal->span[proposal->n_span++] = (tsr_span){first, count, 0};
    if (c_side && last < r->chain_last)
        proposal->span[proposal->n_span++] =
            (tsr_span){last + 1, r->chain_last - last, 1};
}
