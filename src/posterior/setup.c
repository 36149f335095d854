/* From a configuration to what is sampled, in the order in which each part
 * needs those before it: tables, molecule, data, the bound on distances, the
 * prior, and last, once the start is settled, what the bodies scatter. */
#include "posterior/setup.h"

#include "molecule/structure.h"
#include "sampler/relax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tsr_setup_clear(tsr_setup *setup)
{
    for (int e = 0; e < setup->n_engine; e++) {
        tsr_engine_free(setup->share[e].engine);
        tsr_surrogate_engine_free(setup->share[e].walks);
        tsr_surrogate_engine_free(setup->share[e].redraws);
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
    tsr_structure_free(setup->model);
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
        status = tsr_setup_parts(config, structure, log, err);
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
    tsr_nucleic_free(nucleic);
    tsr_structure_free(structure);
    return status;
}

/* What model.pdb cannot hold is said before anything is computed. */
static tsr_status make_model(tsr_setup *s, tsr_log *log, tsr_err *err)
{
    s->model = tsr_topology_structure(s->topology, s->first);
    TSR_TRY(tsr_allocated(s->model, err));
    TSR_TRY(tsr_structure_letter_chains(s->model, log, err));
    return tsr_structure_check_pdb(s->model, err);
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
        tsr_structure_free(s->model); /* model.pdb is where the run starts */
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
    TSR_THEN(status, tsr_setup_starts(config, log, s, err));
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
