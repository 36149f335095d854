/* Where the states of an ensemble, and groups of chains, start. */
#include "posterior/setup.h"

#include "core/interrupt.h"
#include "molecule/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same residues, joined in the same places. */
static tsr_status check_alike(const tsr_topology *own,
                              const tsr_topology *other, const char *path,
                              tsr_err *err)
{
    if (own->n_residue != other->n_residue)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d residues, structure.file has %d; a state has "
                        "the same molecule",
                        path, other->n_residue, own->n_residue);
    for (int i = 0; i < own->n_residue; i++) {
        const tsr_residue *a = &own->residue[i], *b = &other->residue[i];
        if (strcmp(tsr_residue_name(a), tsr_residue_name(b)) != 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': residue %s:%d is %s where structure.file "
                            "has %s (%s:%d); a state has the same molecule",
                            path, b->chain, b->number, tsr_residue_name(b),
                            tsr_residue_name(a), a->chain, a->number);
        if (a->linked != b->linked)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': %s peptide bond before %s:%d, unlike in "
                            "structure.file; complete the chain in both",
                            path, b->linked ? "a" : "no", b->chain, b->number);
    }
    return TSR_OK;
}

static tsr_status read_start(const tsr_structure_config *config,
                             const char *path, tsr_log *log, tsr_setup *s,
                             tsr_conformation **out, tsr_err *err)
{
    const tsr_topology *own = s->topology;
    tsr_structure *structure = NULL;
    tsr_topology *topology = NULL;
    tsr_conformation *read = NULL, *c = NULL;
    tsr_nucleic *nucleic = NULL;
    tsr_status status = tsr_structure_read_any(path, &structure, err);
    TSR_THEN(status, tsr_setup_nucleic(structure, config, NULL, &nucleic, err));
    const tsr_flexibility still = {.nucleic = nucleic, .is_still = 1};
    TSR_THEN(status, tsr_topology_from_structure(structure, own->body_model,
                                                 still, s->prior_table, log,
                                                 &topology, &read, err));
    TSR_THEN(status, check_alike(own, topology, path, err));
    if (status == TSR_OK) {
        c = tsr_conformation_new(own);
        TSR_THEN(status, tsr_allocated(c, err));
    }
    if (status == TSR_OK) {
        /* its bodies are not those of the run, which may have ligands */
        size_t n = (size_t)own->n_residue;
        memcpy(c->backbone, read->backbone, n * sizeof *c->backbone);
        memcpy(c->side, read->side, n * sizeof *c->side);
        tsr_conformation_place_bodies(own, c, 0, own->n_residue);
        *out = c;
    }
    tsr_conformation_free(read);
    tsr_topology_free(topology);
    tsr_nucleic_free(nucleic);
    tsr_structure_free(structure);
    return status;
}

/* ---- groups of chains ---- */

/* Streams that no chain of a run has. */
enum { PRIOR_STREAM = 0x7f000000 };

/* Steps in which a chain without data largely forgets where it came from: some
 * thirty for all that is free of each state. Warm-up does the rest. */
static long n_forgotten(const tsr_target *t)
{
    const long n_free = t->topology->n_torsion + t->topology->n_side;
    return 1000 + 30 * n_free * tsr_target_n_state(t);
}

/* The states of one group, from the prior. */
static tsr_status draw_group(const tsr_target *run, int group,
                             tsr_conformation **state, tsr_err *err)
{
    tsr_target prior = *run;
    tsr_chain *chain = NULL;
    tsr_chain_view view;
    prior.likelihood = NULL;
    prior.n_share = prior.n_group = 0;
    prior.n_temp = 1;
    tsr_status status =
        tsr_chain_new(&prior, PRIOR_STREAM + group, &chain, err);
    const long half = n_forgotten(run) / 2;
    for (long i = 0; i < 2 * half && status == TSR_OK; i++) {
        tsr_body_proposal ask;
        int accepted;
        if (tsr_stop_asked) {
            status = tsr_fail(err, TSR_E_INTERRUPTED,
                              "interrupted while the prior was drawn from");
            break;
        }
        tsr_chain_propose(chain, &ask);
        status = tsr_chain_decide(chain, NULL, i < half, &accepted, err);
    }
    if (status == TSR_OK)
        tsr_chain_look(chain, &view);
    for (int k = 0; k < tsr_target_n_state(run) && status == TSR_OK; k++) {
        state[k] = tsr_conformation_new(run->topology);
        if (state[k] == NULL)
            status = tsr_no_memory(err);
        else
            tsr_conformation_copy(run->topology, state[k], view.state[k], 0,
                                  run->topology->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

/* As many as compare well, of as many chains each, of four or more. */
static int n_group_of(int n_chain)
{
    static const int wanted[] = {8, 4, 7, 6, 5};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        if (n_chain >= 4 * wanted[k] && n_chain % wanted[k] == 0)
            return wanted[k];
    return n_chain;
}

/* chi2 of the first conformation, by a chain that starts there. */
static tsr_status measure_first(tsr_setup *s, tsr_err *err)
{
    tsr_target alone = s->target;
    tsr_chain *chain = NULL;
    tsr_batch *batch = NULL;
    tsr_status status = tsr_chain_new(&alone, 0, &chain, err);
    if (status == TSR_OK && s->n_engine > 0)
        status = tsr_batch_new(s->share[0].engine, tsr_target_n_state(&alone),
                               &batch, err);
    TSR_THEN(status, tsr_chain_start(chain, batch, err));
    if (status == TSR_OK)
        s->first_chi2 = tsr_chain_chi2(chain);
    tsr_batch_free(batch);
    tsr_chain_free(chain);
    return status;
}

tsr_status tsr_setup_draw_starts(int is_restored, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    tsr_target *t = &s->target;
    const int n_group = n_group_of(s->n_chain), n_state = tsr_target_n_state(t);
    if (t->likelihood != NULL && t->n_start > 0)
        tsr_info(log, "chains start as structure.starts says, not from the "
                      "prior (sampler.start)");
    if (t->likelihood == NULL || t->is_still || t->n_start > 0)
        return TSR_OK;
    const int drawn = is_restored ? 0 : n_group;
    tsr_status status = is_restored ? TSR_OK : measure_first(s, err);
    s->n_group_start = n_group * n_state;
    s->group_start = calloc((size_t)s->n_group_start, sizeof(*s->group_start));
    s->group_log_z = calloc((size_t)n_group, sizeof *s->group_log_z);
    for (int g = 0; g < n_group && s->group_log_z != NULL; g++)
        s->group_log_z[g] = (double)NAN;
    if (status == TSR_OK && (s->group_start == NULL || s->group_log_z == NULL))
        status = tsr_no_memory(err);
    for (int g = 0; g < drawn && status == TSR_OK; g++)
        status = draw_group(t, g, s->group_start + (size_t)(g * n_state), err);
    if (status != TSR_OK)
        return status;
    t->n_group = n_group;
    t->chains_each = s->n_chain / n_group;
    t->group_start = drawn > 0 ? s->group_start : NULL;
    t->group_log_z = s->group_log_z;
    if (drawn > 0)
        tsr_info(log, "chains start from %d draws of the prior%s", n_group,
                 n_group < s->n_chain ? ", in groups" : "");
    return TSR_OK;
}

/* ---- states ---- */

tsr_status tsr_setup_starts(const tsr_config *config, tsr_log *log,
                            tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const tsr_list *starts = &config->structure.starts;
    const tsr_start_config *start = starts->item;
    tsr_status status = TSR_OK;
    if (starts->n == 0)
        return TSR_OK;
    s->start = calloc((size_t)starts->n, sizeof(*s->start));
    TSR_TRY(tsr_allocated(s->start, err));
    for (int k = 0; k < starts->n && status == TSR_OK; k++) {
        status = read_start(&config->structure, start[k].file, log, s,
                            &s->start[k], err);
        s->n_start += status == TSR_OK;
    }
    return status;
}
