#include "model/contact_train.h"
#include "model/residue_atoms.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_BIN = TSR_CONTACT_BIN,
    N_PAIR = TSR_CONTACT_PAIR,
    MIN_APART = 3, /* residues */
    MIN_PAIRS = TSR_CONTACT_LEAST
};
static const double reach = 10.0; /* Angstrom */
static const double quantile = 0.01;
static const tsr_body_model models[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};

static int pair_index(int t, int u)
{
    return t >= u ? t * (t + 1) / 2 + u : u * (u + 1) / 2 + t;
}

typedef struct {
    double x[3];
    int type, chain, position;
} placed_body;

/* The complete bodies of a structure. Chains are told apart by order, so that
 * two that share an id in a poor file are still one after the other. */
static int place_bodies(const tsr_structure *s, tsr_body_model model,
                        placed_body *body)
{
    int n = 0, chain = 0, position = 0;
    for (int r = 0; r < s->n_residue; r++, position++) {
        if (r > 0 &&
            strcmp(s->residue[r].chain, s->residue[r - 1].chain) != 0) {
            chain++;
            position = 0;
        }
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(s, &s->residue[r], &atoms) != 0)
            continue;
        int type[2];
        int n_body = tsr_body_types(model, atoms.amino, type);
        for (int b = 0; b < n_body; b++) {
            if (tsr_body_centre(model, &atoms, b, body[n].x) != 0)
                continue;
            body[n].type = type[b];
            body[n].chain = chain;
            body[n].position = position;
            n++;
        }
    }
    return n;
}

/* All pairs: a few seconds for the whole training set. */
static void visit_contacts(const placed_body *body, int n,
                           uint64_t bin[N_PAIR][N_BIN])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double d2 = tsr_vec3_distance2(body[i].x, body[j].x);
            if (d2 >= reach * reach ||
                (body[i].chain == body[j].chain &&
                 body[i].position - body[j].position < MIN_APART))
                continue;
            int k = (int)(sqrt(d2) * (N_BIN / reach));
            if (k >= N_BIN)
                k = N_BIN - 1;
            bin[pair_index(body[i].type, body[j].type)][k]++;
        }
}

tsr_status tsr_contact_visit(const tsr_structure *structure,
                             tsr_contact_sum *sum, tsr_err *err)
{
    placed_body *body =
        malloc((2 * (size_t)structure->n_residue + 1) * sizeof *body);
    if (body == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                        structure->path);
    for (int m = 0; m < 2; m++)
        visit_contacts(body, place_bodies(structure, models[m], body),
                       sum->bin[m]);
    free(body);
    return TSR_OK;
}

void tsr_contact_add(tsr_contact_sum *to, const tsr_contact_sum *from)
{
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < N_PAIR; p++)
            for (int k = 0; k < N_BIN; k++)
                to->bin[m][p][k] += from->bin[m][p][k];
}

static uint64_t total_of(const uint64_t bin[N_BIN])
{
    uint64_t total = 0;
    for (int k = 0; k < N_BIN; k++)
        total += bin[k];
    return total;
}

/* Linear within a bin. */
static double quantile_of(const uint64_t bin[N_BIN])
{
    double target = quantile * (double)total_of(bin), below = 0.0;
    for (int k = 0; k < N_BIN; k++) {
        double here = (double)bin[k];
        if (here > 0.0 && below + here >= target)
            return (k + (target - below) / here) * (reach / N_BIN);
        below += here;
    }
    return reach;
}

/* Fills one table; returns how many pairs were too rare, -1 where a type has
 * too few partners altogether (*rare is the type). */
static int take_contacts(const tsr_contact_sum *sum, int m,
                         tsr_prior_table *table, int *rare)
{
    int n = tsr_body_n_type(models[m]), n_rare = 0;
    double own[TSR_MAX_TYPE];
    for (int t = 0; t < n; t++) {
        uint64_t all[N_BIN] = {0};
        for (int u = 0; u < n; u++)
            for (int k = 0; k < N_BIN; k++)
                all[k] += sum->bin[m][pair_index(t, u)][k];
        own[t] = quantile_of(all);
        if (total_of(all) < MIN_PAIRS) {
            *rare = t;
            return -1;
        }
    }
    for (int t = 0; t < n; t++)
        for (int u = 0; u <= t; u++) {
            const uint64_t *bin = sum->bin[m][pair_index(t, u)];
            double d = quantile_of(bin);
            if (total_of(bin) < MIN_PAIRS) {
                d = 0.5 * (own[t] + own[u]);
                n_rare++;
            }
            if (models[m] == TSR_BODIES_TWO)
                table->contact_two[t][u] = table->contact_two[u][t] = d;
            else
                table->contact_one[t][u] = table->contact_one[u][t] = d;
        }
    return n_rare;
}

tsr_status tsr_contact_take(const tsr_contact_sum *sum, tsr_prior_table *table,
                            int n_rare[2], tsr_err *err)
{
    for (int m = 0; m < 2; m++) {
        int rare = 0;
        n_rare[m] = take_contacts(sum, m, table, &rare);
        if (n_rare[m] < 0)
            return tsr_fail(err, TSR_E_DATA,
                            "%s has fewer than %d contacts in the training "
                            "structures; give more of them",
                            tsr_body_type_name(models[m], rare), MIN_PAIRS);
    }
    return TSR_OK;
}
