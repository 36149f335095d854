/* Tables of a configuration, and how much of each body meets water.
 *
 * Which table is shipped for it depends on whether c1 and c2 are what a table
 * of one component has; a user's own may always have three, and is then folded
 * where it need not. */
#include "posterior/setup.h"

#include "core/text.h"
#include "molecule/structure.h"
#include "posterior/all_atoms.h"
#include "scattering/atom_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tsr_status tsr_data_file(const char *name, char **path, tsr_err *err)
{
    const char *own = getenv("TESSERA_DATA");
    const char *folder[3] = {own, TSR_DATA_SOURCE "/data",
                             TSR_DATA_PREFIX "/share/tessera/data"};
    for (int k = 0; k < 3; k++) {
        if (folder[k] == NULL)
            continue;
        *path = tsr_words_of("%s/%s", folder[k], name);
        TSR_TRY(tsr_allocated(*path, err));
        if (access(*path, R_OK) == 0)
            return TSR_OK;
        free(*path);
        *path = NULL;
    }
    return tsr_fail(err, TSR_E_NOINPUT,
                    "the shipped table '%s' is neither in '%s' nor in '%s'; "
                    "set TESSERA_DATA to the folder that holds it",
                    name, folder[1], folder[2]);
}

/* Components and published tables lack the bodies' own square radii, which the
 * radius of gyration needs: they are the shipped table's. */
static tsr_status complete_rg2(const char *shipped, tsr_form_factor_table *own,
                               tsr_err *err)
{
    double sum = 0.0;
    for (int t = 0; t < own->n_type; t++)
        sum += own->rg2[t];
    if (sum > 0.0)
        return TSR_OK;
    char *path = NULL;
    tsr_form_factor_table *table = NULL;
    tsr_status status = tsr_data_file(shipped, &path, err);
    TSR_THEN(status, tsr_form_factor_read(path, &table, err));
    if (status == TSR_OK && table->model == own->model)
        memcpy(own->rg2, table->rg2, (size_t)own->n_type * sizeof *own->rg2);
    tsr_form_factor_free(table);
    free(path);
    return status;
}

/* A table of one component fixes c1, c2 and the solvent. */
static tsr_status refuse_contrast(const tsr_setup *s, const char *own,
                                  double density, tsr_err *err)
{
    if (density != TSR_WATER_DENSITY)
        return tsr_fail(err, TSR_E_CONFIG,
                        "solvent.density: '%s' is a table of one component, "
                        "with water in it; give a table of three as "
                        "structure.form_factors, or none for the shipped one",
                        own);
    int which = s->contrast[TSR_C1].infer || s->contrast[TSR_C1].start != 1.0
                    ? TSR_C1
                    : TSR_C2;
    return tsr_fail(err, TSR_E_CONFIG,
                    "contrast.%s: '%s' is a table of one component, in "
                    "which c1 and c2 are fixed; give a table of three as "
                    "structure.form_factors, or none for the shipped one",
                    s->contrast[which].name, own);
}

/* A table of three components serves where they are not needed, folded. */
static tsr_status read_form_factors(const char *path, int needs_components,
                                    double density, tsr_setup *s, tsr_err *err)
{
    tsr_form_factor_table *table;
    TSR_TRY(tsr_form_factor_read(path, &table, err));
    if (table->n_comp == 1) {
        s->form_factors = table;
        return needs_components ? refuse_contrast(s, path, density, err)
                                : TSR_OK;
    }
    tsr_status status = tsr_form_factor_set_density(table, density, err);
    TSR_THEN(status, tsr_form_factor_fold(table, &s->form_factors, err));
    if (needs_components)
        s->components = table;
    else
        tsr_form_factor_free(table);
    return status;
}

/* The table that the configuration names, or the shipped one. */
static tsr_status read_tables(const char *own, int two, double density,
                              tsr_setup *s, tsr_err *err)
{
    static const char *const shipped[2][2] = {
        {"form_factors_one_body.dat", "form_factors_two_body.dat"},
        {"components_one_body.dat", "components_two_body.dat"}};
    int needs_components =
        !tsr_contrast_is_plain(s->contrast) || density != TSR_WATER_DENSITY;
    char *path = NULL;
    tsr_status status = TSR_OK;
    if (own == NULL)
        status = tsr_data_file(shipped[needs_components][two], &path, err);
    TSR_THEN(status, read_form_factors(own != NULL ? own : path,
                                       needs_components, density, s, err));
    free(path);
    if (status == TSR_OK && (s->form_factors->model == TSR_BODIES_TWO) != two)
        status = tsr_fail(err, TSR_E_CONFIG,
                          "structure.form_factors: '%s' is a table for %s "
                          "bodies a residue, structure.bodies says %s",
                          own, two ? "one" : "two", two ? "two" : "one");
    return status == TSR_OK
               ? complete_rg2(shipped[0][two], s->form_factors, err)
               : status;
}

tsr_status tsr_setup_tables(const tsr_config *config, tsr_setup *setup,
                            tsr_err *err)
{
    char *path = NULL;
    tsr_status status = tsr_data_file("prior.dat", &path, err);
    TSR_THEN(status, tsr_prior_table_read(path, &setup->prior_table, err));
    free(path);
    TSR_THEN(status,
             tsr_contrast_priors(&config->contrast, setup->contrast, err));
    return status == TSR_OK
               ? read_tables(config->structure.form_factors,
                             config->structure.bodies != TSR_CONFIG_ONE,
                             config->solvent.density, setup, err)
               : status;
}

static tsr_status weigh_hydrogens(const tsr_atoms *atoms, tsr_guests *g,
                                  tsr_err *err)
{
    tsr_hydrogen_count count;
    int *n = calloc((size_t)atoms->n_atom + 1, sizeof *n);
    tsr_status status = tsr_allocated(n, err);
    TSR_THEN(status, tsr_hydrogens_assign(atoms, n, &count, err));
    for (int i = 0; i < g->atoms->n_atom && status == TSR_OK; i++)
        g->hydrogen_mass += n[g->file_atom[i]] * tsr_atom_mass(1);
    free(n);
    return status;
}

tsr_status tsr_setup_guests(const tsr_structure *structure,
                            const tsr_strings *bound, double density,
                            tsr_log *log, tsr_topology *topology,
                            tsr_conformation *conformation, int n_table,
                            tsr_form_factor_table **table, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    tsr_err why = {0};
    const int is_asked = bound != NULL && bound->n > 0;
    int n_beside =
        structure->n_ligand + structure->n_nucleotide + structure->n_bare;
    for (int r = 0; r < structure->n_residue; r++)
        n_beside += structure->residue[r].is_cut;
    if (n_beside == 0 && !is_asked)
        return TSR_OK;
    if (tsr_atoms_read(structure->path, &atoms, &why) != TSR_OK) {
        tsr_info(log, "ligands and nucleotides cannot be read: %s",
                 why.message);
        return TSR_OK;
    }
    tsr_status status = tsr_guests_attach(structure, atoms, bound, log,
                                          topology, conformation, err);
    if (status == TSR_OK && topology->guests != NULL)
        status = weigh_hydrogens(atoms, topology->guests, err);
    for (int k = 0; k < n_table && status == TSR_OK; k++)
        if (topology->guests != NULL && table[k] != NULL)
            status = tsr_form_factor_of_guests(table[k], topology->guests,
                                               atoms, density, &table[k], err);
    tsr_atoms_free(atoms);
    return status;
}

tsr_status tsr_setup_expose(const tsr_setup *setup,
                            const tsr_conformation *conformation,
                            double *exposure, tsr_err *err)
{
    return tsr_atom_curves_expose(setup->atoms, setup->components,
                                  setup->topology, conformation, exposure, err);
}

/* Of the states' starts the mean. */
static tsr_status expose_starts(tsr_setup *s, tsr_err *err)
{
    int n_body = s->topology->n_body;
    if (s->n_start == 0)
        return tsr_setup_expose(s, s->first, s->exposure, err);
    double *one = calloc((size_t)n_body, sizeof *one);
    tsr_status status = tsr_allocated(one, err);
    for (int b = 0; b < n_body; b++)
        s->exposure[b] = 0.0;
    for (int k = 0; k < s->n_start && status == TSR_OK; k++) {
        status = tsr_setup_expose(s, s->start[k], one, err);
        for (int b = 0; b < n_body && status == TSR_OK; b++)
            s->exposure[b] += one[b] / s->n_start;
    }
    free(one);
    return status;
}

/* What of the contrast is fixed and what is inferred. */
static void tell_contrast(const tsr_setup *s, tsr_log *log)
{
    static const char *const what[TSR_N_CONTRAST] = {"excluded volume c1",
                                                     "hydration c2"};
    for (int i = 0; i < TSR_N_CONTRAST; i++) {
        const tsr_parameter *p = &s->contrast[i];
        if (p->infer)
            tsr_info(log, "%s: inferred, prior normal %g +- %g on [%g, %g]",
                     what[i], p->mean, p->width, p->low, p->high);
        else
            tsr_info(log, "%s: fixed at %g (contrast.%s: infer would infer it)",
                     what[i], p->start, p->name);
    }
}

static void tell_exposure(const tsr_setup *s, tsr_log *log)
{
    double atoms = 0.0;
    for (int b = 0; b < s->topology->n_body; b++)
        atoms += s->exposure[b];
    tsr_info(log,
             "hydration: what each body shows to the water is that of the "
             "start, %.0f exposed atoms in all",
             atoms);
}

/* Without atoms, as of a sequence, exposures are estimated. */
static tsr_status read_atoms(const tsr_config *config, tsr_log *log,
                             tsr_setup *s, tsr_err *err)
{
    const tsr_atom_curves_spec spec = {.topology = s->topology,
                                       .model = s->model,
                                       .file = config->structure.file,
                                       .density = config->solvent.density};
    tsr_err why = {.status = TSR_OK};
    if (spec.file == NULL ||
        tsr_atom_curves_new(&spec, NULL, &s->atoms, &why) == TSR_OK)
        return TSR_OK;
    if (why.status == TSR_E_NOMEM)
        return tsr_fail(err, why.status, "%s", why.message);
    tsr_info(log, "hydration: estimated from bodies alone: %s", why.message);
    return TSR_OK;
}

/* X-rays see the bodies by the tables. */
static tsr_status set_tables(const tsr_config *config, tsr_log *log,
                             tsr_setup *s, tsr_err *err)
{
    *s->scattering = (tsr_scattering){.plain = s->form_factors,
                                      .component = s->components,
                                      .contrast = s->contrast};
    if (s->components == NULL)
        return TSR_OK;
    s->exposure = malloc((size_t)s->topology->n_body * sizeof *s->exposure);
    TSR_TRY(tsr_allocated(s->exposure, err));
    s->scattering->exposure = s->exposure;
    TSR_TRY(read_atoms(config, log, s, err));
    TSR_TRY(expose_starts(s, err));
    tell_exposure(s, log);
    return TSR_OK;
}

/* ---- neutrons ---- */

/* One probe for all entries of one sample: s->sample, and the terms' own
 * numbers. The first is that of X-rays, unless all curves are of neutrons.
 * Returns whether it is. */
static int find_probes(int n_term, tsr_term **term, tsr_setup *s)
{
    int has_xray = 0, has_neutron = 0;
    for (int d = 0; d < n_term; d++) {
        has_xray |= term[d]->neutron == NULL &&
                    (term[d]->type->needs & TSR_NEEDS_PROFILE) != 0;
        has_neutron |= term[d]->neutron != NULL;
    }
    has_xray |= !has_neutron;
    s->n_probe = has_xray;
    for (int d = 0; d < n_term; d++) {
        const tsr_neutron *neutron = term[d]->neutron;
        int p = has_xray;
        term[d]->probe = 0;
        if (neutron == NULL)
            continue;
        while (p < s->n_probe && !tsr_neutron_is_alike(&s->sample[p], neutron))
            p++;
        if (p == s->n_probe)
            s->sample[s->n_probe++] = *neutron;
        term[d]->probe = p;
    }
    return has_xray;
}

/* Form factors of the bodies' own atoms at the start. */
static tsr_status set_neutrons(int p, tsr_atom_curves *curves, int n_term,
                               tsr_term **term, tsr_log *log, tsr_setup *s,
                               tsr_err *err)
{
    double *d2o = calloc((size_t)n_term, sizeof *d2o), match = 0.0;
    int n = 0, first = 0;
    TSR_TRY(tsr_allocated(d2o, err));
    for (int d = n_term - 1; d >= 0; d--)
        if (term[d]->neutron != NULL && term[d]->probe == p) {
            d2o[n++] = term[d]->neutron->d2o;
            first = term[d]->number;
        }
    tsr_status status = tsr_atom_curves_bodies(
        curves, s->first, &s->sample[p], n, d2o, &match, &s->neutron[p], err);
    free(d2o);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "data.%d", first);
    s->scattering[p] =
        (tsr_scattering){.contrast = s->contrast, .neutron = s->neutron[p]};
    tsr_info(log,
             "data.%d%s: neutrons; the molecule has no contrast at %.1f %% "
             "D2O; excluded volume c1 is 1 for them",
             first, n > 1 ? " and others of its sample" : "", 100.0 * match);
    return TSR_OK;
}

static tsr_status read_neutrons(const tsr_config *config, int n_term,
                                tsr_term **term, tsr_log *log, tsr_setup *s,
                                tsr_err *err)
{
    const tsr_atom_curves_spec spec = {.topology = s->topology,
                                       .model = s->model,
                                       .file = config->structure.file,
                                       .density = config->solvent.density};
    tsr_atom_curves *curves = NULL;
    int n_cut = 0;
    if (spec.file == NULL)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data: kind sans needs the atoms of a structure.file; "
                        "a sequence has none");
    TSR_TRY(tsr_atom_curves_new(&spec, &n_cut, &curves, err));
    if (n_cut > 0)
        tsr_warn(log,
                 "'%s': %d residue%s atoms, which do not scatter neutrons; "
                 "complete them (PDBFixer, MODELLER)",
                 spec.file, n_cut, n_cut == 1 ? " lacks" : "s lack");
    tsr_status status = TSR_OK;
    for (int p = 0; p < s->n_probe && status == TSR_OK; p++)
        if (s->scattering[p].contrast == NULL) /* not yet */
            status = set_neutrons(p, curves, n_term, term, log, s, err);
    tsr_atom_curves_free(curves);
    return status;
}

tsr_status tsr_setup_scattering(const tsr_config *config, int n_term,
                                tsr_term **term, tsr_log *log, tsr_setup *setup,
                                tsr_err *err)
{
    tsr_setup *s = setup;
    const size_t room = (size_t)n_term + 1;
    s->scattering = calloc(room, sizeof *s->scattering);
    s->sample = calloc(room, sizeof *s->sample);
    s->neutron = calloc(room, sizeof(*s->neutron));
    if (s->scattering == NULL || s->sample == NULL || s->neutron == NULL)
        return tsr_no_memory(err);
    if (n_term > 0 || s->components != NULL)
        tell_contrast(s, log);
    const int has_xray = find_probes(n_term, term, s);
    if (has_xray)
        TSR_TRY(set_tables(config, log, s, err));
    return s->n_probe > has_xray
               ? read_neutrons(config, n_term, term, log, s, err)
               : TSR_OK;
}
