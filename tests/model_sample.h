/* A prior table and a chain made up for tests: no file is needed. */
#ifndef TESTS_MODEL_SAMPLE_H
#define TESTS_MODEL_SAMPLE_H

#include "model/prior.h"
#include "model/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void sample_prior_table(tsr_prior_table *table)
{
    memset(table, 0, sizeof *table);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const double mean[3] = {-1.2 - 0.03 * a, 0.3, 1.6 + 0.02 * a};
        const double sd[3] = {0.5, 0.3 + 0.01 * a, 0.8};
        for (int i = 0; i < 3; i++) {
            table->side_mean[a][i] = mean[i];
            for (int j = 0; j < 3; j++)
                table->side_cov[a][i][j] = sd[i] * sd[j] * (i == j ? 1.0 : 0.3);
        }
        for (int b = 0; b < TSR_N_AMINO; b++)
            table->contact_one[a][b] = 4.5;
    }
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            table->contact_two[a][b] = 3.8 + 0.05 * abs(a - b);
}

static inline void sample_chain(const char *sequence,
                                const tsr_strings *flexible,
                                const tsr_prior_table *table,
                                tsr_topology **topology,
                                tsr_conformation **first)
{
    tsr_err err = {0};
    tsr_flexibility all = {flexible, NULL};
    if (tsr_topology_from_sequence(sequence, TSR_BODIES_TWO, all, table,
                                   topology, first, &err) != TSR_OK)
        fail_msg("%s", err.message);
}

#endif
