/* Which move comes next, and how often each is made.
 *
 * The shares are kept as a cumulative sum, so one uniform number chooses.
 * After warm-up they are frozen, like every step size: only then do the draws
 * come from the posterior. */
#include "sampler/mix.h"

#include <math.h>
#include <string.h>

static void set_ends(tsr_mix *mix, const double *weight)
{
    double total = 0.0, sum = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        total += weight[m];
    for (int m = 0; m < TSR_N_MOVE; m++) {
        sum += weight[m];
        mix->end[m] = sum / total;
    }
}

void tsr_mix_set(tsr_mix *mix, const double *weight)
{
    memset(mix, 0, sizeof *mix);
    memcpy(mix->weight, weight, sizeof mix->weight);
    set_ends(mix, weight);
}

int tsr_mix_choose(const tsr_mix *mix, double u)
{
    int m = 0;
    while (m < TSR_N_MOVE - 1 && u >= mix->end[m])
        m++;
    return m;
}

double tsr_mix_share(const tsr_mix *mix, int move)
{
    return move > 0 ? mix->end[move] - mix->end[move - 1] : mix->end[0];
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

double tsr_mix_cost(const tsr_topology *topology, const tsr_proposal *proposal,
                    int reached)
{
    double rigid, loose;
    if (!reached)
        return 0.25;
    count_moved(topology, proposal, &rigid, &loose);
    return 1.0 + 10.0 * tsr_mix_changed(topology, proposal) +
           (rigid + loose) / 32.0;
}

void tsr_mix_learn(tsr_mix *mix, int move, double gain, double cost)
{
    enum { BETWEEN = 200, LEAST = 30 };
    const double most = 4.0;
    double rate[TSR_N_MOVE], weight[TSR_N_MOVE], sum = 0.0, top = 0.0;
    int n = 0;
    mix->gain[move] += gain;
    mix->cost[move] += cost;
    mix->n[move]++;
    if (++mix->n_all % BETWEEN != 0)
        return;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        if (mix->weight[m] <= 0.0)
            continue;
        if (mix->n[m] < LEAST) /* wait until all are known */
            return;
        rate[m] = mix->gain[m] / mix->cost[m];
        top = rate[m] > top ? rate[m] : top;
        n++;
    }
    if (top <= 0.0)
        return;
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (mix->weight[m] > 0.0) { /* one of no use must not set the scale */
            rate[m] = log(fmax(rate[m], 1e-3 * top));
            sum += rate[m];
        }
    for (int m = 0; m < TSR_N_MOVE; m++) {
        double factor =
            mix->weight[m] > 0.0 ? exp(0.5 * (rate[m] - sum / n)) : 0.0;
        factor = factor > most         ? most
                 : factor < 1.0 / most ? 1.0 / most
                                       : factor;
        weight[m] = mix->weight[m] * factor;
        /* what was long ago counts less */
        mix->gain[m] *= 0.98;
        mix->cost[m] *= 0.98;
    }
    set_ends(mix, weight);
}

void tsr_mix_archive(tsr_mix *mix, tsr_archive *archive)
{
    tsr_archive_real(archive, mix->end, TSR_N_MOVE);
    tsr_archive_real(archive, mix->gain, TSR_N_MOVE);
    tsr_archive_real(archive, mix->cost, TSR_N_MOVE);
    tsr_archive_long(archive, mix->n, TSR_N_MOVE);
    tsr_archive_long(archive, &mix->n_all, 1);
}
