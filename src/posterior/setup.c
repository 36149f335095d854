/* From a configuration to what is sampled, in the order in which each part
 * needs those before it: tables, molecule, data, the bound on distances, the
 * prior, and last, once the start is settled, what the bodies scatter. */
#include "posterior/setup.h"

#include "core/interrupt.h"
#include "molecule/guest.h"
#include "molecule/parts.h"
#include "molecule/structure.h"
#include "molecule/topology.h"
#include "sampler/relax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what may move ----
 *
 * What may move where the configuration does not say it: what `tessera init`
 * would find in the file, put into the configuration, so that the run's
 * config.yaml has it and a run that goes on finds it there. */

static int is_all(const tsr_strings *flexible)
{
    return flexible->n == 1 && strcmp(flexible->item[0], "all") == 0;
}

static int find_chain(const tsr_residue *r, int n, const char *chain)
{
    for (int i = 0; i < n; i++)
        if (strcmp(r[i].chain, chain) == 0)
            return i;
    return -1;
}

static void add_residue(const char chain[8], int number, tsr_residue *r, int *n)
{
    tsr_residue *to = &r[*n];
    const int is_next = *n > 0 && strcmp(to[-1].chain, chain) == 0;
    const int first = is_next ? to[-1].chain_first : find_chain(r, *n, chain);
    memcpy(to->chain, chain, sizeof to->chain);
    to->number = number;
    to->chain_first = first >= 0 ? first : *n;
    (*n)++;
}

/* Residues of a structure as ranges know them, and, where atoms are given, its
 * nucleotides behind them; *n out. */
static tsr_residue *residues_of(const tsr_structure *s, const tsr_atoms *atoms,
                                int *n)
{
    const int n_more = atoms != NULL ? atoms->n_residue : 0;
    tsr_residue *r = calloc((size_t)(s->n_residue + n_more) + 1, sizeof *r);
    *n = 0;
    for (int i = 0; r != NULL && i < s->n_residue; i++)
        add_residue(s->residue[i].chain, s->residue[i].number, r, n);
    for (int i = 0; r != NULL && i < n_more; i++)
        if (atoms->residue[i].kind == TSR_MOLECULE_NUCLEOTIDE)
            add_residue(atoms->residue[i].chain, atoms->residue[i].number, r,
                        n);
    return r;
}

/* What the user has fixed is not flexible. rigid [n_residue] out. Ranges of
 * other chains are looked at later. */
static tsr_status mark_fixed(const tsr_structure_config *c,
                             const tsr_structure *s, int *rigid, tsr_err *err)
{
    int n;
    tsr_range range;
    tsr_residue *residue = residues_of(s, NULL, &n);
    tsr_status status = tsr_allocated(residue, err);
    for (int k = 0; k < c->fixed.n && status == TSR_OK; k++) {
        if (tsr_range_read(c->fixed.item[k], &range) &&
            range.chain[0] != '\0' && find_chain(residue, n, range.chain) < 0)
            continue;
        status =
            tsr_range_mark(c->fixed.item[k], s->n_residue, residue, rigid, err);
        if (status != TSR_OK)
            status = tsr_wrap(err, status, "structure.fixed.%d", k);
    }
    free(residue);
    return status;
}

/* "A:1-19 A:224-246 ...", as long as there is room. */
static void list_text(const tsr_strings *list, size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < list->n && used + 24 < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 used + 48 < size ? list->item[k] : "...");
}

/* Nothing is flexible: then nothing moves, or what the user has chosen, as a
 * whole. */
static tsr_status hold(tsr_structure_config *c, const tsr_structure *s,
                       tsr_err *err)
{
    tsr_atoms *atoms = NULL; /* of strands alone */
    int n;
    c->still = c->fixed.n + c->mobile.n == 0;
    if (c->still ||
        (s->n_residue == 0 && tsr_atoms_read(s->path, &atoms, NULL) != TSR_OK))
        return TSR_OK; /* whoever reads them next tells why they cannot be */
    tsr_residue *r = residues_of(s, atoms, &n);
    tsr_status status = tsr_allocated(r, err);
    for (int i = 0; r != NULL && i < n; i++)
        if (r[i].chain_first == i)
            TSR_THEN(status, tsr_strings_append(&c->rigid, r[i].chain, err));
    free(r);
    tsr_atoms_free(atoms);
    return status;
}

static tsr_status take(tsr_structure_config *c, const tsr_parts *parts,
                       tsr_log *log, tsr_err *err)
{
    char text[512];
    for (int k = 0; k < parts->flexible.n; k++)
        TSR_TRY(tsr_strings_append(&c->flexible, parts->flexible.item[k], err));
    int is_free = c->fixed.n + c->mobile.n == 0; /* the user chose none */
    for (int k = 0; k < parts->fixed.n && is_free; k++)
        TSR_TRY(tsr_strings_append(&c->fixed, parts->fixed.item[k], err));
    list_text(&c->flexible, sizeof text, text);
    if (c->flexible.n > 0)
        tsr_info(log,
                 "structure.flexible is not given; by %s:%s (tessera init "
                 "shows more; flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence), text);
    else
        tsr_info(log,
                 "structure.flexible is not given, and by %s nothing is "
                 "flexible (flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence));
    return TSR_OK;
}

/* A chain that moves as a whole has no parts that keep their places. */
static tsr_status find(tsr_structure_config *c, const tsr_structure *s,
                       tsr_log *log, tsr_err *err)
{
    tsr_parts *parts = NULL;
    int *rigid = calloc((size_t)s->n_residue + 1, sizeof *rigid);
    const tsr_parts_wish wish = {.rigid = rigid,
                                 .fixed = &c->fixed,
                                 .no_loops = c->mobile.n > 0,
                                 .no_strands = c->ligands != 0};
    tsr_status status = tsr_allocated(rigid, err);
    TSR_THEN(status, mark_fixed(c, s, rigid, err));
    TSR_THEN(status, tsr_parts_with(s, NULL, wish, log, &parts, NULL, err));
    TSR_THEN(status, take(c, parts, log, err));
    if (c->flexible.n == 0)
        TSR_THEN(status, hold(c, s, err));
    free(rigid);
    tsr_parts_free(parts);
    return status;
}

/* Parts of tsr_setup_read: what may move where the configuration does not say
 * it, put into it; where the states start; tables of the prior, form
 * factors or components; what the bodies scatter, once the start is settled. */
static tsr_status set_parts(tsr_config *config, const tsr_structure *structure,
                            tsr_log *log, tsr_err *err)
{
    tsr_structure_config *c = &config->structure;
    if (c->still || c->flexible.n + c->rigid.n > 0)
        return TSR_OK;
    return find(c, structure, log, err);
}

/* ---- strands ---- */

typedef struct {
    const tsr_structure *structure;
    const tsr_nucleic *nucleic; /* what moves; NULL: none */
    tsr_residue *residue;       /* [n] of protein, then of nucleotides */
    int n;
} chains;

static int is_moving(const chains *s, const char *chain)
{
    for (int i = 0; s->nucleic != NULL && i < s->nucleic->n; i++)
        if (strcmp(s->nucleic->link[i].chain, chain) == 0)
            return 1;
    return find_chain(s->residue, s->structure->n_residue, chain) >= 0;
}

/* Chains that ranges name have to be among those that move. */
static tsr_status check_names(const chains *s, const char *key,
                              const tsr_strings *range, tsr_err *err)
{
    char all[TSR_CHAINS_SIZE];
    tsr_range own;
    const char *chain = own.chain;
    for (int k = 0; k < range->n; k++) {
        const char *text = range->item[k];
        (void)tsr_range_read(text,
                             &own); /* if it is none, that is told later */
        if (is_moving(s, chain) ||
            (chain[0] == '\0' && is_moving(s, s->residue[0].chain)))
            continue;
        tsr_range_chains(s->n, s->residue, all);
        if (chain[0] == '\0' || find_chain(s->residue, s->n, chain) < 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.%s.%d: '%s' names no chain of '%s'; "
                            "chains: %s",
                            key, k, text, s->structure->path, all);
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.%s.%d: '%s': the nucleotides of chain %s "
                        "are rigid, on what they touch (structure.bound), "
                        "where structure.flexible names none of them; name "
                        "there what may move, as %s:FIRST-LAST",
                        key, k, text, chain, chain);
    }
    return TSR_OK;
}

/* Who frees the whole protein may not know that this leaves its DNA out. */
static void tell_rigid(const chains *s, const tsr_structure_config *c,
                       tsr_log *log)
{
    const tsr_residue *r = s->residue;
    const int first = s->structure->n_residue;
    for (int i = first; i < s->n && first > 0; i++) {
        if (r[i].chain_first != i || is_moving(s, r[i].chain))
            continue;
        if (c->rigid.n > 0)
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; structure.rigid "
                     "frees a strand where it names some of it",
                     r[i].chain);
        else if (is_all(&c->flexible))
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; flexible: all is "
                     "of the protein alone: name all chains that are to, as "
                     "structure.flexible: [\"%s\", \"%s\"]",
                     r[i].chain, r[0].chain, r[i].chain);
    }
}

static tsr_status check_strands(const chains *s, const tsr_structure_config *c,
                                tsr_log *log, tsr_err *err)
{
    if (!is_all(&c->flexible))
        TSR_TRY(check_names(s, "flexible", &c->flexible, err));
    TSR_TRY(check_names(s, "rigid", &c->rigid, err));
    TSR_TRY(check_names(s, "fixed", &c->fixed, err));
    TSR_TRY(check_names(s, "mobile", &c->mobile, err));
    tell_rigid(s, c, log);
    return TSR_OK;
}

tsr_status tsr_setup_nucleic(const tsr_structure *structure,
                             const tsr_structure_config *config, tsr_log *log,
                             tsr_nucleic **out, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    *out = NULL;
    const int is_alone = structure->n_residue == 0;
    if (is_alone && config->ligands != 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.ligands: none leaves nothing of '%s', which "
                        "holds no protein",
                        structure->path);
    if (structure->n_nucleotide == 0 || config->ligands != 0 ||
        (config->still && !is_alone))
        return TSR_OK;
    tsr_err why;
    tsr_status status = tsr_atoms_read(structure->path, &atoms, &why);
    const int is_read = status == TSR_OK;
    const tsr_strings *named =
        !is_alone && config->rigid.n > 0 ? &config->rigid : &config->flexible;
    if (is_read)
        status = tsr_nucleic_find(structure, atoms, named, out, err);
    chains s = {.structure = structure, .nucleic = *out};
    s.residue = residues_of(structure, atoms, &s.n);
    if (s.residue == NULL)
        status = tsr_no_memory(err);
    else if (!is_read) /* tsr_setup_guests says it where the protein is all */
        status = is_alone || check_strands(&s, config, NULL, NULL) != TSR_OK
                     ? tsr_fail(err, status, "%s", why.message)
                     : TSR_OK;
    else if (!config->still)
        TSR_THEN(status, check_strands(&s, config, log, err));
    if (status != TSR_OK) {
        free(*out);
        *out = NULL;
    }
    free(s.residue);
    tsr_atoms_free(atoms);
    return status;
}

/* ---- what the configuration says, beside what would be found ---- */

/* The part nearest to residue i in the direction of step; -1: none. */
static int part_from(const tsr_topology *t, const int *part, int i, int step)
{
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    for (i += step; i >= first && i <= last; i += step)
        if (part[i] >= 0)
            return part[i];
    return -1;
}

/* Both sides of residues first..last keep their places, whatever moves. */
static int is_closed(const tsr_topology *t, int first, int last)
{
    int a = first, b = last;
    while (a > t->residue[first].chain_first && t->residue[a].flexible)
        a--;
    while (b < t->residue[last].chain_last && t->residue[b].flexible)
        b++;
    return t->residue[a].is_fixed && t->residue[b].is_fixed;
}

static void doubt_ranges(const tsr_topology *t, const tsr_parts *parts,
                         tsr_log *log)
{
    for (int i = 0, last; i < t->n_residue - t->n_link; i = last + 1) {
        const tsr_residue *r = &t->residue[i];
        for (last = i; r->flexible && last < r->chain_last &&
                       t->residue[last + 1].flexible;)
            last++;
        int before = part_from(t, parts->part, i, -1);
        if (!r->flexible || before < 0 || is_closed(t, i, last) ||
            before != part_from(t, parts->part, last, 1))
            continue;
        const tsr_rigid_part *part = &parts->rigid[before];
        tsr_warn(log,
                 "structure.flexible: %s:%d-%d lies within one compact part, "
                 "%s:%d-%d, which it takes apart where it turns; leave it out, "
                 "or name what lies before and after it in structure.fixed, so "
                 "that it moves as a loop",
                 r->chain, r->number, t->residue[last].number, r->chain,
                 t->residue[part->first].number, t->residue[part->last].number);
    }
}

tsr_status tsr_setup_doubt(const tsr_config *config, const tsr_setup *setup,
                           tsr_log *log, tsr_err *err)
{
    tsr_structure *structure = NULL;
    tsr_parts *parts = NULL;
    if (config->structure.file == NULL)
        return TSR_OK;
    tsr_status status =
        tsr_structure_read_any(config->structure.file, &structure, err);
    if (status == TSR_OK && structure->n_residue == 0) {
        tsr_structure_free(structure);
        return TSR_OK;
    }
    TSR_THEN(status,
             tsr_parts_with(structure, NULL, (tsr_parts_wish){.no_strands = 1},
                            NULL, &parts, NULL, err));
    for (int k = 0; status == TSR_OK && k < parts->n_grave; k++)
        tsr_warn(log, "%s: %s", config->structure.file, parts->note[k]);
    if (status == TSR_OK)
        doubt_ranges(setup->topology, parts, log);
    tsr_parts_free(parts);
    tsr_structure_free(structure);
    return status;
}

/* ---- where states and chains start ----
 *
 * Where the states of an ensemble, and groups of chains, start. */

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
    free(nucleic);
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

static tsr_status set_starts(const tsr_config *config, tsr_log *log,
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

void tsr_setup_clear(tsr_setup *setup)
{
    for (int e = 0; e < setup->n_engine; e++) {
        tsr_engine_share_clear(&setup->share[e]);
        tsr_device_free(setup->device[e]);
    }
    tsr_setup_atom_target_free(setup->atom_target);
    free(setup->share);
    free(setup->device);
    free(setup->speed);
    free(setup->engine_text);
    free(setup->unit);
    free(setup->model_error_text);
    tsr_surrogate_free(setup->surrogate);
    tsr_likelihood_free(setup->likelihood);
    tsr_particles_free(setup->particles);
    tsr_atom_curves_free(setup->atoms);
    tsr_prior_free(setup->prior);
    tsr_prior_table_free(setup->prior_table);
    tsr_form_factor_free(setup->form_factors);
    tsr_form_factor_free(setup->components);
    free(setup->exposure);
    free(setup->scattering);
    free(setup->sample);
    for (int p = 0; p < setup->n_probe && setup->neutron != NULL; p++)
        tsr_neutron_bodies_free(setup->neutron[p]);
    free(setup->neutron);
    free(setup->rigid);
    tsr_model_atoms_free(setup->model);
    tsr_conformation_free(setup->first);
    for (int k = 0; k < setup->n_start; k++)
        tsr_conformation_free(setup->start[k]);
    free(setup->start);
    for (int k = 0; k < setup->n_group_start; k++)
        tsr_conformation_free(setup->group_start[k]);
    free(setup->group_start);
    free(setup->group_log_z);
    tsr_topology_free(setup->topology);
    memset(setup, 0, sizeof *setup);
}

/* What of the file is not in the model; waters and hydrogens never are. */
static void say_left_out(const tsr_structure *s, int has_guests, tsr_log *log)
{
    const int n_ligand = has_guests ? 0 : s->n_ligand;
    const int n_nucleotide = has_guests ? 0 : s->n_nucleotide;
    const struct {
        int n;
        const char *what;
    } part[] = {{n_ligand, "ligands"},
                {n_nucleotide, "nucleotides"},
                {s->n_model, "models after the first"},
                {s->n_altloc_atom, "atoms of alternate locations"},
                {s->n_extra_atom - (has_guests ? s->n_modified_atom : 0),
                 "atoms that their residue should not have"}};
    char list[256] = "";
    size_t used = 0;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++)
        if (part[k].n > 0 && used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s %d",
                                 used > 0 ? ", " : "", part[k].what, part[k].n);
    if (n_ligand + n_nucleotide > 0)
        tsr_warn(log,
                 "%s: left out: %s; what scatters and is not in the model "
                 "spoils the fit",
                 s->path, list);
    else if (used > 0)
        tsr_info(log, "%s: left out: %s", s->path, list);
    if (s->copies[0] != '\0')
        tsr_info(log,
                 "%s: copies of a molecule under one chain id; those after the "
                 "first are now chains %s, %d chains in all",
                 s->path, s->copies, s->n_chain);
    if (s->n_mapped > 0)
        tsr_info(log, "%s: %d residues read as the amino acid they come from",
                 s->path, s->n_mapped);
}

int tsr_config_is_placed(const tsr_config *config)
{
    const tsr_term_options *entry = config->data.item;
    for (int d = 0; d < config->data.n; d++)
        if ((tsr_term_registry[entry[d].kind]->needs & TSR_NEEDS_PLACE) != 0)
            return 1;
    return 0;
}

static tsr_status add_guests(const tsr_config *config,
                             const tsr_structure *structure, tsr_log *log,
                             tsr_setup *s, tsr_err *err)
{
    tsr_form_factor_table *table[] = {s->form_factors, s->components};
    tsr_status status = tsr_setup_guests(structure, &config->structure.bound,
                                         config->solvent.density, log,
                                         s->topology, s->first, 2, table, err);
    if (table[0] != s->form_factors)
        tsr_form_factor_free(s->form_factors);
    if (table[1] != s->components)
        tsr_form_factor_free(s->components);
    s->form_factors = table[0];
    s->components = table[1];
    return status;
}

static tsr_status read_molecule(tsr_config *config, tsr_log *log, tsr_setup *s,
                                tsr_err *err)
{
    tsr_structure_config *c = &config->structure;
    tsr_body_model model =
        c->bodies == TSR_CONFIG_ONE ? TSR_BODIES_ONE : TSR_BODIES_TWO;
    tsr_structure *structure = NULL;
    tsr_status status = TSR_OK;
    if (c->file != NULL)
        status = tsr_structure_read_any(c->file, &structure, err);
    if (status == TSR_OK && c->file != NULL)
        status = set_parts(config, structure, log, err);
    tsr_nucleic *nucleic = NULL;
    if (status == TSR_OK && c->file != NULL)
        status = tsr_setup_nucleic(structure, c, log, &nucleic, err);
    tsr_flexibility flexibility = {.flexible = &c->flexible,
                                   .rigid = &c->rigid,
                                   .fixed = &c->fixed,
                                   .mobile = &c->mobile,
                                   .file = c->file,
                                   .is_still = c->still,
                                   .nucleic = nucleic,
                                   .is_placed = tsr_config_is_placed(config)};
    if (status == TSR_OK && c->file == NULL)
        return tsr_topology_from_sequence(c->sequence, model, flexibility,
                                          s->prior_table, &s->topology,
                                          &s->first, err);
    TSR_THEN(status, tsr_topology_from_structure(structure, model, flexibility,
                                                 s->prior_table, log,
                                                 &s->topology, &s->first, err));
    if (status == TSR_OK && c->ligands == 0)
        status = add_guests(config, structure, log, s, err);
    if (status == TSR_OK)
        say_left_out(structure, s->topology->guests != NULL, log);
    free(nucleic);
    tsr_structure_free(structure);
    return status;
}

/* What model.pdb cannot hold is said before anything is computed. */
static tsr_status make_model(tsr_setup *s, tsr_log *log, tsr_err *err)
{
    s->model = tsr_topology_model(s->topology, s->first);
    TSR_TRY(tsr_allocated(s->model, err));
    TSR_TRY(tsr_model_atoms_letter_chains(s->model, log, err));
    return tsr_model_atoms_write(s->model, NULL, NULL, err);
}

/* Of the first entries alone, since the pairs grow with the square. */
static void warn_same_file(const tsr_config *config, int d, tsr_log *log)
{
    const int most = 1000;
    char **own = tsr_config_data_file(config, d);
    for (int e = 0; own != NULL && *own != NULL && e < d && d < most; e++) {
        char **other = tsr_config_data_file(config, e);
        if (other == NULL || *other == NULL || strcmp(*own, *other) != 0)
            continue;
        tsr_warn(log,
                 "data.%d and data.%d are the same file, '%s': it counts twice",
                 e, d, *own);
        return;
    }
}

tsr_status tsr_setup_terms(const tsr_config *config, tsr_log *log,
                           const tsr_setup *setup, int *n, tsr_term **term,
                           tsr_err *err)
{
    const tsr_setup *s = setup;
    const tsr_term_options *entry = config->data.item;
    tsr_status status = TSR_OK;
    for (*n = 0; *n < config->data.n && status == TSR_OK; (*n)++) {
        const tsr_term_source source = {&entry[*n],
                                        *n,
                                        s->topology,
                                        log,
                                        s->form_factors->rg2,
                                        (int)config->structure.states,
                                        s->first};
        status = tsr_term_read(&source, &term[*n], err);
        if (status != TSR_OK)
            break;
        warn_same_file(config, *n, log);
    }
    return status;
}

/* A start is brought to where the first of the data that knows says it lies. */
static tsr_status place_start(const tsr_setup *s, int n, tsr_term **term,
                              tsr_conformation *start, tsr_log *log,
                              tsr_err *err)
{
    const tsr_topology *t = s->topology;
    tsr_motion motion;
    int is_placed = 0;
    for (int d = 0; d < n && !is_placed; d++)
        if (term[d]->type->place != NULL)
            TSR_TRY(
                term[d]->type->place(term[d], start, &motion, &is_placed, err));
    if (!is_placed)
        return TSR_OK;
    double from[3], to[3];
    tsr_vec3_copy(from, start->backbone[0][TSR_CA]);
    tsr_conformation_move(t, start, 0, t->n_residue - 1, &motion);
    tsr_vec3_copy(to, start->backbone[0][TSR_CA]);
    tsr_info(log,
             "the start is docked: its first CA comes from (%.1f, %.1f, "
             "%.1f) to (%.1f, %.1f, %.1f)",
             from[0], from[1], from[2], to[0], to[1], to[2]);
    return TSR_OK;
}

static tsr_status place_starts(tsr_setup *s, int n, tsr_term **term,
                               tsr_log *log, tsr_err *err)
{
    TSR_TRY(place_start(s, n, term, s->first, log, err));
    for (int k = 0; k < s->n_start; k++)
        TSR_TRY(place_start(s, n, term, s->start[k], log, err));
    return TSR_OK;
}

/* A random coil is hardly ever wider than 6.5 of its Rg; domains add their
 * own. Only where the whole reach would make the grid long. */
static double coil_bound(const tsr_setup *s)
{
    const double of_link = 2.6, of_amino = 3.8; /* from CA to CA */
    int most = 0;
    double contour = 0.0;
    for (int i = 0; i < s->topology->n_residue;) {
        const int is_strand = s->topology->residue[i].link != TSR_LINK_NONE;
        int n = 0, last = s->topology->residue[i].chain_last;
        for (; i <= last; i++)
            n += s->topology->residue[i].flexible;
        most = n > most ? n : most;
        contour = fmax(contour, n * (is_strand ? of_link : of_amino));
    }
    double coil = 6.5 * 1.927 * pow(most + 1.0, 0.598);
    return fmax(s->reach_ang - contour + coil, 1.25 * s->d_max_first_ang);
}

/* Nothing bounds parts that move freely. */
static void tell_bound(const tsr_setup *s, tsr_log *log)
{
    char reach[80] = "without it parts could move apart without end";
    if (isfinite(s->reach_ang))
        snprintf(reach, sizeof reach, "the molecule could reach %.0f A",
                 s->reach_ang);
    tsr_info(log,
             "the prior is zero beyond d_max %.0f A (%s); structure.d_max "
             "sets it",
             s->d_bound_ang, reach);
}

/* The bound is part of P(X), so it must not depend on the data: a run on the
 * prior alone has the same. */
static tsr_status choose_bound(const tsr_config *config, tsr_log *log,
                               tsr_setup *s, tsr_err *err)
{
    const double long_reach = 400.0; /* Angstrom; 80 grid points up to 0.3 */
    const tsr_number_or_word *d_max = &config->structure.d_max;
    s->d_max_first_ang = s->reach_ang = 0.0;
    for (int k = -1; k < s->n_start; k++) {
        const tsr_conformation *c = k < 0 ? s->first : s->start[k];
        double wide = tsr_largest_distance(s->topology->n_body,
                                           (const double(*)[3])c->body);
        double reach = tsr_topology_reach(s->topology, c);
        if (isnan(reach))
            return tsr_no_memory(err);
        s->d_max_first_ang = fmax(s->d_max_first_ang, wide);
        s->reach_ang = fmax(s->reach_ang, reach);
    }
    s->d_bound_ang = s->reach_ang;
    if (d_max->word < 0)
        s->d_bound_ang = d_max->number;
    else if (isinf(s->reach_ang))
        s->d_bound_ang = 1.5 * s->d_max_first_ang;
    else if (s->reach_ang > long_reach)
        s->d_bound_ang = fmin(s->reach_ang, coil_bound(s));
    if (s->d_bound_ang < s->d_max_first_ang)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.d_max: %.1f Angstrom is less than the "
                        "%.1f Angstrom of the structure itself",
                        s->d_bound_ang, s->d_max_first_ang);
    s->is_limited = s->d_bound_ang < s->reach_ang;
    if (s->is_limited)
        tell_bound(s, log);
    return TSR_OK;
}

/* A chain starts here, so P(X) must not be 0. */
static tsr_status settle(const tsr_config *config, const char *file,
                         tsr_conformation *start, tsr_log *log, tsr_setup *s,
                         int *n_moved, tsr_err *err)
{
    char worst[160];
    int n = tsr_prior_clashes(s->prior, start, worst);
    if (n == 0)
        return TSR_OK;
    if (!config->prior.relax)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d pairs of bodies that can move against each "
                        "other overlap beyond prior.clash_limit (%g nat): %s; "
                        "prior.relax: true moves them apart first",
                        file, n, config->prior.clash_limit, worst);
    const void *moves[TSR_N_MOVE];
    tsr_config_moves(config, moves);
    (*n_moved)++;
    return tsr_relax(s->topology, s->prior_table, &config->prior,
                     s->d_bound_ang, moves, (uint64_t)config->seed, s->prior,
                     start, log, err);
}

static tsr_status settle_starts(const tsr_config *config, tsr_log *log,
                                tsr_setup *s, tsr_err *err)
{
    const tsr_structure_config *c = &config->structure;
    const tsr_start_config *own = c->starts.item;
    const char *file = c->file == NULL ? "structure.sequence" : c->file;
    int n_moved = 0;
    TSR_TRY(settle(config, file, s->first, log, s, &n_moved, err));
    if (n_moved > 0) {
        tsr_model_atoms_free(s->model); /* model.pdb is where the run starts */
        s->model = NULL;
        TSR_TRY(make_model(s, NULL, err));
    }
    for (int k = 0; k < s->n_start; k++)
        TSR_TRY(
            settle(config, own[k].file, s->start[k], log, s, &n_moved, err));
    return TSR_OK;
}

/* Where scale and background are sampled under errors with long tails, a
 * likelihood that is too flat leaves them nothing to be drawn from. */
static tsr_status check_temperatures(const tsr_config *config,
                                     const tsr_setup *s, tsr_err *err)
{
    const tsr_sampler_options *o = &config->sampler;
    double least =
        s->likelihood == NULL ? 0.0 : tsr_likelihood_least_beta(s->likelihood);
    if (tsr_sampler_n_temp(o, s->likelihood != NULL) < 2 ||
        1.0 / tsr_sampler_t_max(o) > least)
        return TSR_OK;
    return tsr_fail(err, TSR_E_CONFIG,
                    "sampler.t_max: at a temperature of %g scale and "
                    "background have no proper distribution under the noise "
                    "model student; take less than %g, or "
                    "a larger nu",
                    tsr_sampler_t_max(o), 1.0 / least);
}

tsr_status tsr_setup_expect(const tsr_setup *setup, tsr_likelihood *likelihood,
                            tsr_err *err)
{
    const double one = 1.0;
    const tsr_conformation *first = setup->first;
    const tsr_prediction prediction = {
        .n_state = 1, .state = &first, .weight = &one};
    for (int d = 0; d < likelihood->n_term; d++) {
        tsr_term *term = likelihood->term[d];
        if ((term->type->needs & TSR_NEEDS_PROFILE) == 0)
            TSR_TRY(tsr_term_expect(term, &prediction, err));
    }
    return TSR_OK;
}

static int processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}

tsr_status tsr_setup_read(tsr_config *config, int with_data, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    memset(s, 0, sizeof *s);
    int n = 0;
    tsr_term **term = calloc((size_t)config->data.n + 1, sizeof(*term));
    tsr_status status = tsr_allocated(term, err);
    TSR_THEN(status, tsr_setup_tables(config, s, err));
    TSR_THEN(status, read_molecule(config, log, s, err));
    TSR_THEN(status, set_starts(config, log, s, err));
    if (status == TSR_OK && with_data)
        status = tsr_setup_terms(config, log, s, &n, term, err);
    TSR_THEN(status, place_starts(s, n, term, log, err));
    TSR_THEN(status, make_model(s, log, err));
    if (status == TSR_OK && with_data && n == 0)
        tsr_info(log, "no data: this samples the prior alone");
    TSR_THEN(status, choose_bound(config, log, s, err));
    tsr_prior_options prior = config->prior;
    if (config->structure.still) /* chains that touch do so for good */
        prior.clash = TSR_CLASH_NONE;
    TSR_THEN(status, tsr_prior_new(s->topology, s->prior_table, &prior,
                                   s->d_bound_ang, &s->prior, err));
    TSR_THEN(status, settle_starts(config, log, s, err));
    TSR_THEN(status, tsr_setup_scattering(config, n, term, log, s, err));
    if (status == TSR_OK && n > 0) {
        status =
            tsr_likelihood_new(s->topology, s->n_probe, s->scattering,
                               s->d_bound_ang, n, term, &s->likelihood, err);
        n = 0; /* they are the likelihood's now */
        TSR_THEN(status, tsr_setup_expect(s, s->likelihood, err));
    }
    if (status == TSR_E_RANGE) /* the data go beyond the form factors */
        status = tsr_wrap(err, TSR_E_DATA, "data");
    for (int d = 0; d < n; d++)
        tsr_term_free(term[d]);
    free(term);
    TSR_THEN(status, check_temperatures(config, s, err));
    if (status != TSR_OK)
        return tsr_config_blame(config, status, err);
    s->n_thread = config->device.threads.word < 0
                      ? (int)config->device.threads.number
                      : processors();
    tsr_config_moves(config, s->move_options);
    s->target = (tsr_target){
        .topology = s->topology,
        .first = s->first,
        .prior = s->prior,
        .likelihood = s->likelihood,
        .rg2 = s->form_factors->rg2,
        .move_options = s->move_options,
        .seed = (uint64_t)config->seed,
        .n_state = (int)config->structure.states,
        .infer_weights = config->structure.weights == 0,
        .n_temp = tsr_sampler_n_temp(&config->sampler, s->likelihood != NULL),
        .t_max = tsr_sampler_t_max(&config->sampler),
        .swap_every = config->sampler.swap_every,
        .n_start = s->n_start,
        .start = s->start,
        .is_still = config->structure.still,
        .contrast = s->contrast};
    return TSR_OK;
}
