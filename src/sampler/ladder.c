/* Replica exchange: which replica is at which temperature, exchanges between
 * neighbours, and how the temperatures learn.
 *
 * Exchanging two replicas exchanges their numbers here; conformations stay
 * where they are. The ladder has a random stream of its own, so that exchanges
 * depend on no thread. */
#include "sampler/ladder.h"

#include <math.h>
#include <stdlib.h>

/* Streams of ladders begin here; those of chains are below. */
#define LADDER_STREAM 0x100000000u

/* Where a replica last was of the two ends. */
enum { NOWHERE, COLDEST, HOTTEST };

struct tsr_ladder {
    int n;
    double t_max; /* temperature[n - 1], to the bit */
    double temperature[TSR_MAX_TEMPERATURES];
    int replica[TSR_MAX_TEMPERATURES]; /* at temperature k */
    int seen[TSR_MAX_TEMPERATURES];    /* by replica */
    long n_round, n_learnt, round_trips;
    double sum[TSR_MAX_TEMPERATURES]; /* of probabilities, k with k + 1 */
    long offered[TSR_MAX_TEMPERATURES];
    gsl_rng *rng;
};

static void note_ends(tsr_ladder *l)
{
    int cold = l->replica[0], hot = l->replica[l->n - 1];
    if (l->n < 2)
        return;
    if (l->seen[cold] == HOTTEST)
        l->round_trips++;
    l->seen[cold] = COLDEST;
    if (l->seen[hot] == COLDEST)
        l->seen[hot] = HOTTEST;
}

tsr_ladder *tsr_ladder_new(int n, double t_max, uint64_t seed, int number)
{
    tsr_ladder *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->rng = tsr_rng_new(seed, LADDER_STREAM + (uint64_t)number);
    if (l->rng == NULL) {
        free(l);
        return NULL;
    }
    l->n = n;
    l->t_max = n > 1 ? t_max : 1.0;
    for (int k = 0; k < n; k++) {
        l->temperature[k] = n > 1 ? pow(t_max, (double)k / (n - 1)) : 1.0;
        l->replica[k] = k;
    }
    l->temperature[n - 1] = l->t_max;
    tsr_ladder_reset(l);
    return l;
}

void tsr_ladder_free(tsr_ladder *ladder)
{
    if (ladder == NULL)
        return;
    gsl_rng_free(ladder->rng);
    free(ladder);
}

int tsr_ladder_size(const tsr_ladder *ladder)
{
    return ladder->n;
}

int tsr_ladder_replica(const tsr_ladder *ladder, int k)
{
    return ladder->replica[k];
}

double tsr_ladder_beta(const tsr_ladder *ladder, int k)
{
    return 1.0 / ladder->temperature[k];
}

/* The gaps T_{k+1} - T_k grow where replicas are exchanged often, less and
 * less; then all are scaled so that t_max stays. */
static void learn_gaps(tsr_ladder *l, const double *probability)
{
    double gap[TSR_MAX_TEMPERATURES], total = 0.0;
    double range = l->t_max - 1.0;
    double gain = 0.5 * pow(1.0 + (double)l->n_learnt / 20.0, -0.6);
    l->n_learnt++;
    for (int k = 0; k + 1 < l->n; k++) {
        double log_gap = log(l->temperature[k + 1] - l->temperature[k]);
        /* seldom exchanged: too wide */
        gap[k] = exp(log_gap + gain * (probability[k] - 0.5));
        total += gap[k];
    }
    for (int k = 0; k + 2 < l->n; k++)
        l->temperature[k + 1] = l->temperature[k] + gap[k] * (range / total);
}

void tsr_ladder_swap(tsr_ladder *ladder, const double *log_lik, double heat,
                     int learn,
                     void (*exchange)(void *context, int colder, int hotter),
                     void *context)
{
    tsr_ladder *l = ladder;
    double probability[TSR_MAX_TEMPERATURES];
    int parity = (int)(l->n_round++ % 2);
    if (l->n < 2)
        return;
    for (int k = 0; k + 1 < l->n; k++) {
        int a = l->replica[k], b = l->replica[k + 1];
        double change =
            heat * (1.0 / l->temperature[k] - 1.0 / l->temperature[k + 1]) *
            (log_lik[b] - log_lik[a]);
        probability[k] = change < 0.0 ? exp(change) : 1.0;
    }
    for (int k = parity; k + 1 < l->n; k += 2) {
        int a = l->replica[k], b = l->replica[k + 1];
        l->sum[k] += probability[k];
        l->offered[k]++;
        if (gsl_rng_uniform(l->rng) >= probability[k])
            continue;
        l->replica[k] = b;
        l->replica[k + 1] = a;
        exchange(context, a, b);
    }
    note_ends(l);
    if (learn)
        learn_gaps(l, probability);
}

double tsr_ladder_rate(const tsr_ladder *ladder, int k)
{
    return ladder->offered[k] > 0 ? ladder->sum[k] / (double)ladder->offered[k]
                                  : (double)NAN;
}

long tsr_ladder_round_trips(const tsr_ladder *ladder)
{
    return ladder->round_trips;
}

void tsr_ladder_reset(tsr_ladder *ladder)
{
    ladder->round_trips = 0;
    for (int k = 0; k < ladder->n; k++) {
        ladder->sum[k] = 0.0;
        ladder->offered[k] = 0;
        ladder->seen[k] = NOWHERE;
    }
    note_ends(ladder);
}

void tsr_ladder_archive(tsr_ladder *ladder, tsr_archive *archive)
{
    tsr_ladder *l = ladder;
    size_t n = (size_t)l->n;
    tsr_archive_real(archive, l->temperature, n);
    tsr_archive_int(archive, l->replica, n);
    tsr_archive_int(archive, l->seen, n);
    tsr_archive_long(archive, &l->n_round, 1);
    tsr_archive_long(archive, &l->n_learnt, 1);
    tsr_archive_long(archive, &l->round_trips, 1);
    tsr_archive_real(archive, l->sum, n);
    tsr_archive_long(archive, l->offered, n);
    tsr_archive_rng(archive, l->rng);
}
