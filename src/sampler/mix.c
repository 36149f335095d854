/* Which move comes next, and how often each is made.
 *
 * The shares are kept as a cumulative sum, so one uniform number chooses.
 * After warm-up they are frozen, like every step size: only then do the draws
 * come from the posterior. */
#include "sampler/mix.h"

void tsr_mix_set(tsr_mix *mix, const double *weight)
{
    double total = 0.0, sum = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        total += weight[m];
    for (int m = 0; m < TSR_N_MOVE; m++) {
        sum += weight[m];
        mix->end[m] = sum / total;
    }
}

int tsr_mix_choose(const tsr_mix *mix, double u)
{
    int m = 0;
    while (m < TSR_N_MOVE - 1 && u >= mix->end[m])
        m++;
    return m;
}

static void count_moved(const tsr_topology *topology,
                        const tsr_proposal *proposal, double *rigid,
                        double *loose)
{
    *rigid = *loose = 0.0;
    for (int k = 0; k < proposal->n_span; k++) {
        const tsr_span *s = &proposal->span[k];
        const tsr_residue *a = &topology->residue[s->first];
        const tsr_residue *z = &topology->residue[s->first + s->count - 1];
        double bodies = z->first_body + z->n_body - a->first_body;
        if (s->group > 0)
            *rigid += bodies;
        else
            *loose += bodies;
    }
}

double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal)
{
    double rigid, loose, n = topology->n_body;
    count_moved(topology, proposal, &rigid, &loose);
    double still = n - rigid - loose;
    return ((rigid + loose) * still + loose * rigid + 0.5 * loose * loose) /
           (0.5 * n * n);
}
