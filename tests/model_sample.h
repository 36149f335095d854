/* A prior table and a chain made up for tests: no file is needed. */
#ifndef TESTS_MODEL_SAMPLE_H
#define TESTS_MODEL_SAMPLE_H

#include "molecule/topology.h"
#include "prior/prior.h"
#include "tests/check.h"

OWNED(tsr_conformation)
OWNED(tsr_topology)
OWNED(tsr_prior)

static inline void own_molecule(tsr_topology *t, tsr_conformation *c)
{
    own_tsr_topology(t);
    own_tsr_conformation(c);
}

static inline tsr_conformation *new_conformation(const tsr_topology *t)
{
    return own_tsr_conformation(tsr_conformation_new(t));
}

/* Helix, strand, left-handed and uniform; each class a little different. */
static inline void sample_torsions(tsr_prior_table *table)
{
    for (int c = 0; c < TSR_N_RAMA; c++) {
        double off = 0.1 * c;
        table->torsion[c] = (tsr_torsion_mixture){
            .count = 1000,
            .n = 4,
            .part = {{0.5, -1.1, -0.7 + off, 40.0, 30.0, -12.0},
                     {0.35, -2.0 + off, 2.4, 8.0, 10.0, 3.0},
                     {0.1, 1.0, 0.6 - off, 20.0, 15.0, -5.0},
                     {0.05, 0.0, 0.0, 0.0, 0.0, 0.0}}};
    }
}

/* Two Gaussians, 0.6 and 0.4; none for ALA and GLY. */
static inline void sample_sides(tsr_prior_table *table)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const double mean[2][3] = {{-1.2 - 0.03 * a, 0.3, 1.6 + 0.02 * a},
                                   {-0.9, -1.5, 1.2}};
        const double sd[3] = {0.5, 0.3 + 0.01 * a, 0.8};
        tsr_side_mixture *m = &table->side[a];
        if (!tsr_amino_has_side_chain((tsr_amino)a))
            continue;
        m->count = 1000;
        m->n = 2;
        for (int g = 0; g < 2; g++) {
            m->part[g].weight = g == 0 ? 0.6 : 0.4;
            for (int i = 0; i < 3; i++) {
                m->part[g].mean[i] = mean[g][i];
                for (int j = 0; j < 3; j++)
                    m->part[g].cov[i][j] = sd[i] * sd[j] * (i == j ? 1.0 : 0.3);
            }
        }
    }
}

static inline void sample_prior_table(tsr_prior_table *table)
{
    memset(table, 0, sizeof *table);
    sample_torsions(table);
    sample_sides(table);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        table->angle[a] = (tsr_angle_gaussian){1000, 1.94 + 0.002 * a, 0.05};
        for (int b = 0; b < TSR_N_AMINO; b++)
            table->contact[TSR_BODIES_ONE][a][b] = 4.5;
    }
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            table->contact[TSR_BODIES_TWO][a][b] = 3.8 + 0.05 * abs(a - b);
}

static inline void sample_chain(const char *sequence,
                                const tsr_strings *flexible,
                                const tsr_prior_table *table,
                                tsr_topology **topology,
                                tsr_conformation **first)
{
    tsr_flexibility all = {.flexible = flexible};
    OK(tsr_topology_from_sequence(sequence, TSR_BODIES_TWO, all, table,
                                  topology, first, &err));
    own_molecule(*topology, *first);
}

#endif
