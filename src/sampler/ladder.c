/* Replica exchange: the replica at each temperature, exchanges between
 * neighbours, and adaptation of the temperatures.
 *
 * An exchange swaps the replicas' numbers; conformations are not copied. The
 * ladder has its own random stream, so that exchanges do not depend on the
 * number of threads. */
#include "sampler/ladder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* First random stream of the ladders, above those of the chains. */
#define LADDER_STREAM 0x100000000u

/* The end of the ladder at which a replica was last. */
enum { NEITHER, COLDEST, HOTTEST };

struct tsr_ladder {
    int n;
    double temperature[TSR_MAX_TEMPERATURES];
    int replica[TSR_MAX_TEMPERATURES]; /* replica at temperature k */
    int seen[TSR_MAX_TEMPERATURES];    /* by replica: the end at which the
                                          replica was last */
    long n_round, round_trips;
    long n_seen, wait; /* n_seen: rounds since the temperatures were adapted;
                          wait: rounds until the next adaptation */
    double refused[TSR_MAX_TEMPERATURES]; /* since the last adaptation: sum of
                                             refusal probabilities, of
                                             temperature k with k + 1 */
    double sum[TSR_MAX_TEMPERATURES];     /* since the reset: sum of exchange
                                             probabilities, likewise */
    long offered[TSR_MAX_TEMPERATURES];   /* number of summands of `sum` */
    gsl_rng *rng;
};

static void count_round_trips(tsr_ladder *l)
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
    l->wait = 16;
    for (int k = 0; k < n; k++) {
        l->temperature[k] = n > 1 ? pow(t_max, (double)k / (n - 1)) : 1.0;
        l->replica[k] = k;
    }
    l->temperature[n - 1] = n > 1 ? t_max : 1.0;
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

void tsr_ladder_set(tsr_ladder *ladder, const double *beta)
{
    for (int k = 1; k + 1 < ladder->n; k++)
        ladder->temperature[k] =
            fmin(1.0 / beta[k], ladder->temperature[ladder->n - 1]);
}

/* Chooses temperatures between which exchanges are refused equally often. The
 * refused share, summed along the ladder, is a function of 1 / T (the
 * communication barrier). The new temperatures divide the total barrier into
 * equal parts, by linear interpolation. */
static void space_evenly(tsr_ladder *l)
{
    const double least = 1e-3; /* keeps neighbouring temperatures apart */
    double sum[TSR_MAX_TEMPERATURES] = {0.0}, beta[TSR_MAX_TEMPERATURES];
    for (int k = 0; k + 1 < l->n; k++)
        sum[k + 1] = sum[k] + fmax(l->refused[k] / (double)l->n_seen, least);
    for (int j = 1, k = 0; j + 1 < l->n; j++) {
        const double wanted = sum[l->n - 1] * j / (l->n - 1);
        while (k + 2 < l->n && sum[k + 1] < wanted)
            k++;
        const double from = 1.0 / l->temperature[k];
        const double to = 1.0 / l->temperature[k + 1];
        beta[j] =
            from + (to - from) * (wanted - sum[k]) / (sum[k + 1] - sum[k]);
    }
    for (int j = 1; j + 1 < l->n; j++)
        l->temperature[j] = 1.0 / beta[j];
}

/* Adapts the temperatures after 16 rounds, after 32 more, after 64 more and so
 * on, each time from the refusals since the last adaptation. */
static void adapt_temperatures(tsr_ladder *l, const double *probability)
{
    for (int k = 0; k + 1 < l->n; k++)
        l->refused[k] += 1.0 - probability[k];
    if (++l->n_seen < l->wait)
        return;
    space_evenly(l);
    memset(l->refused, 0, sizeof l->refused);
    l->n_seen = 0;
    l->wait *= 2;
}

void tsr_ladder_swap(tsr_ladder *ladder, const double *log_lik,
                     double beta_factor, int learn,
                     void (*exchange)(void *context, int colder, int hotter),
                     void *context)
{
    tsr_ladder *l = ladder;
    double probability[TSR_MAX_TEMPERATURES];
    int parity = (int)(l->n_round++ & 1);
    if (l->n < 2)
        return;
    for (int k = 0; k + 1 < l->n; k++) {
        int a = l->replica[k], b = l->replica[k + 1];
        double change =
            beta_factor *
            (1.0 / l->temperature[k] - 1.0 / l->temperature[k + 1]) *
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
    count_round_trips(l);
    if (learn)
        adapt_temperatures(l, probability);
}

void tsr_ladder_average(tsr_ladder *const *ladder, int n)
{
    for (int k = 1; k + 1 < ladder[0]->n; k++) {
        const double first = ladder[0]->temperature[k];
        double sum = 0.0;
        int alike = 1; /* equal temperatures keep their bits */
        for (int c = 0; c < n; c++) {
            sum += log(ladder[c]->temperature[k]);
            alike &= ladder[c]->temperature[k] == first;
        }
        for (int c = 0; c < n && !alike; c++)
            ladder[c]->temperature[k] = exp(sum / n);
    }
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
        ladder->seen[k] = NEITHER;
    }
    count_round_trips(ladder);
}

void tsr_ladder_archive(tsr_ladder *ladder, tsr_archive *archive)
{
    tsr_ladder *l = ladder;
    size_t n = (size_t)l->n;
    uint64_t placed = 0; /* one bit for each replica: it is at some
                            temperature */
    tsr_archive_real(archive, l->temperature, n);
    tsr_archive_int(archive, l->replica, n);
    for (size_t k = 0; k < n; k++)
        if (l->replica[k] >= 0 && l->replica[k] < l->n)
            placed |= UINT64_C(1) << l->replica[k];
    archive->failed |= placed != UINT64_MAX >> (64 - n);
    tsr_archive_int(archive, l->seen, n);
    tsr_archive_long(archive, &l->n_round, 1);
    tsr_archive_long(archive, &l->n_seen, 1);
    tsr_archive_long(archive, &l->wait, 1);
    tsr_archive_real(archive, l->refused, n);
    tsr_archive_long(archive, &l->round_trips, 1);
    tsr_archive_real(archive, l->sum, n);
    tsr_archive_long(archive, l->offered, n);
    tsr_archive_rng(archive, l->rng);
}
