/* Partial profiles of structures, from all atoms or from bodies. A fit then
 * varies c1 and c2 without another sum over pairs. The maker keeps device,
 * tables and buffers from one structure to the next, because opening them costs
 * more than a small profile. */
#include "posterior/profile_partials.h"

#include "core/clock.h"
#include "core/text.h"
#include "gpu/debye_sum.h"
#include "molecule/guest.h"
#include "molecule/topology.h"
#include "posterior/all_atoms.h"
#include "posterior/molecule.h"
#include "scattering/debye.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance times largest q: 1300 points of q, whose interpolation
 * operator takes ten seconds, and eight times as long for twice as many
 * points. */
static const double most_product = 2000.0;

struct tsr_profile_maker {
    tsr_profile_bodies bodies;
    tsr_solvent_model solvent;
    double density;
    tsr_neutron neutron;
    int is_neutron;
    double q_max;
    tsr_log *log;
    tsr_profile_sum *sum;
    tsr_config config; /* for bodies, with structure.frozen */
    tsr_tables tables;
};

/* ---- the maker ---- */

/* Checks that a user's table matches the number of bodies per residue.
 * *has_components out: 0: c1 and c2 cannot be fitted. */
static tsr_status check_table(const tsr_config *c, int *has_components,
                              tsr_err *err)
{
    const int is_two = c->structure.bodies == TSR_CONFIG_TWO;
    const char *own = c->structure.form_factors;
    tsr_form_factor_table *table;
    TSR_TRY(tsr_form_factor_read(own, &table, err));
    const int fits = (table->model == TSR_BODIES_TWO) == is_two;
    *has_components = table->n_comp > 1;
    tsr_form_factor_free(table);
    return fits ? TSR_OK
                : tsr_fail(err, TSR_E_USAGE,
                           "--form-factors: '%s' is a table for %s bodies per "
                           "residue, but --bodies is %s",
                           own, is_two ? "one" : "two", is_two ? "two" : "one");
}

/* Reads the user's table, or the shipped one of three components. */
static tsr_status read_tables(tsr_profile_maker *m, const char *own,
                              tsr_err *err)
{
    const tsr_number_or_word infer = {TSR_CONTRAST_INFER, 0.0};
    tsr_config *c = &m->config;
    int has_components = 1;
    TSR_TRY(tsr_fields_init(tsr_config_fields(), c, err));
    c->structure.frozen = 1;
    c->structure.bodies =
        m->bodies == TSR_PROFILE_TWO ? TSR_CONFIG_TWO : TSR_CONFIG_ONE;
    c->solvent.density = m->density;
    if (own != NULL) {
        c->structure.form_factors = strdup(own);
        TSR_TRY(tsr_allocated(c->structure.form_factors, err));
        TSR_TRY(check_table(c, &has_components, err));
    }
    c->contrast.c1 = (tsr_number_or_word){-1, 1.0};
    c->contrast.c2 = (tsr_number_or_word){-1, 0.0};
    if (has_components)
        c->contrast.c1 = c->contrast.c2 = infer;
    TSR_TRY(tsr_tables_read(c, &m->tables, err));
    if (has_components)
        tsr_info(
            m->log,
            "curves of bodies are not corrected, and their hydration is at the "
            "bodies: a run corrects them by all-atom curves with a hydration "
            "layer around the surface, as shown by --bodies atoms");
    return TSR_OK;
}

tsr_status tsr_profile_maker_new(const tsr_profile_spec *spec, tsr_log *log,
                                 tsr_profile_maker **out, tsr_err *err)
{
    const int is_atoms = spec->bodies == TSR_PROFILE_ATOMS;
    tsr_profile_maker *m = *out = calloc(1, sizeof *m);
    TSR_TRY(tsr_allocated(m, err));
    m->bodies = spec->bodies;
    m->solvent = spec->solvent;
    m->density = spec->density;
    m->is_neutron = spec->neutron != NULL;
    if (m->is_neutron)
        m->neutron = *spec->neutron;
    m->q_max = spec->q_max_inv_ang;
    m->log = log;
    tsr_status status =
        is_atoms ? TSR_OK : read_tables(m, spec->form_factors, err);
    TSR_THEN(status, tsr_profile_sum_new(spec->device, spec->method, !is_atoms,
                                         &m->sum, err));
    if (status != TSR_OK) {
        tsr_profile_maker_free(m);
        *out = NULL;
    }
    return status;
}

tsr_status tsr_profile_maker_set_density(tsr_profile_maker *maker,
                                         double density, tsr_err *err)
{
    maker->density = density;
    if (maker->bodies == TSR_PROFILE_ATOMS)
        return TSR_OK;
    maker->config.solvent.density = density;
    tsr_tables_clear(&maker->tables);
    return tsr_tables_read(&maker->config, &maker->tables, err);
}

void tsr_profile_maker_expect(tsr_profile_maker *maker, int n)
{
    tsr_profile_sum_expect(maker->sum, n);
}

void tsr_profile_maker_free(tsr_profile_maker *maker)
{
    if (maker == NULL)
        return;
    tsr_profile_sum_free(maker->sum);
    tsr_tables_clear(&maker->tables);
    tsr_config_clear(&maker->config);
    free(maker);
}

const char *tsr_profile_maker_describe(const tsr_profile_maker *maker)
{
    return tsr_profile_sum_describe(maker->sum);
}

/* ---- the sum ---- */

typedef struct {
    tsr_log *log;
    const char *name;
    double started, shown;
} progress_bar;

static tsr_status show_progress(void *context, double done, tsr_err *err)
{
    enum { WIDTH = 30 };
    progress_bar *b = context;
    double now = tsr_clock_s();
    (void)err;
    if (now - b->shown < 0.2 || !tsr_log_is_terminal(b->log))
        return TSR_OK;
    b->shown = now;
    double left = (now - b->started) * (1.0 - done) / fmax(done, 1e-9);
    char line[160], marks[WIDTH + 1];
    int n = (int)(done * WIDTH);
    memset(marks, '.', WIDTH);
    memset(marks, '#', (size_t)n);
    marks[WIDTH] = '\0';
    snprintf(line, sizeof line, "%.60s [%s] %3.0f %%, %.0f s left", b->name,
             marks, 100.0 * done, left);
    tsr_log_progress(b->log, line);
    return TSR_OK;
}

/* Rounds a diameter up to 20 Angstrom times a power of 1.1, so that structures
 * of similar size share a q grid and a compiled program. */
static double round_up_diameter(double d_max)
{
    return 20.0 * pow(1.1, ceil(log(fmax(d_max, 20.0) / 20.0) / log(1.1)));
}

static tsr_status sum_profile(tsr_profile_maker *m, const tsr_debye_spec *spec,
                              double d, double d_bound,
                              tsr_profile_structure *out, tsr_err *err)
{
    progress_bar b = {.log = m->log,
                      .name = tsr_text_file_name(out->path),
                      .started = tsr_clock_s()};
    tsr_debye_progress progress = {show_progress, &b};
    tsr_profile_sum_result result = {.method = TSR_METHOD_DIRECT};
    tsr_status status =
        tsr_profile_sum_run(m->sum, spec, d, d_bound, m->log, &progress,
                            out->partials.pair, &result, err);
    out->method = result.method;
    out->seconds = result.seconds;
    out->predicted_s = result.predicted_s;
    if (b.shown > 0.0)
        tsr_log_progress(m->log, "");
    return status;
}

/* Chooses the q grid and allocates partial profiles; *factor
 * [n_comp][n_type][n_q] belongs to the pool. */
static tsr_status reserve_partials(const tsr_profile_maker *m, int n_comp,
                                   int n_type, double d_bound, tsr_pool *pool,
                                   tsr_partials *p, double **factor,
                                   tsr_err *err)
{
    double product = d_bound * m->q_max;
    if (!(product <= most_product))
        return tsr_fail(err, TSR_E_DATA,
                        "atoms are some %.0f A apart, too far for a curve up "
                        "to q = %g 1/A (in a few seconds distances up to %.0f "
                        "A are possible): lower --q-max",
                        d_bound, m->q_max, most_product / m->q_max);
    p->n_comp = n_comp;
    /* A grid finer than necessary: profiles computed once must be accurate to
     * 1e-5. On the few points of a chain's grid, single-precision errors of the
     * sums would be amplified too much. */
    p->grid = tsr_q_grid_make(1.5 * d_bound, m->q_max);
    size_t n_q = (size_t)p->grid.n_q;
    p->pair =
        calloc((size_t)(n_comp * (n_comp + 1) / 2) * n_q, sizeof *p->pair);
    p->self = calloc(n_q, sizeof *p->self);
    tsr_pool_array(pool, *factor, (size_t)(n_comp * n_type) * n_q);
    if (p->pair == NULL || p->self == NULL || *factor == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q",
                        p->grid.n_q);
    return TSR_OK;
}

/* ---- all atoms ---- */

/* Sums an atom model; `scratch` owns temporary arrays. */
static tsr_status sum_model(tsr_profile_maker *m, const tsr_atom_model *model,
                            tsr_pool *scratch, tsr_profile_structure *out,
                            tsr_err *err)
{
    const double(*xyz)[3] = (const double(*)[3])model->xyz;
    const double d = tsr_largest_distance(model->n, xyz),
                 d_bound = round_up_diameter(d);
    double *factor = NULL;
    out->n_body = model->n_atom;
    out->rg_ang = model->rg_ang;
    out->mass = model->mass;
    out->volume = model->volume;
    out->radius_ang = model->radius_ang;
    out->usual_c2 = m->solvent == TSR_SOLVENT_LAYER ? 0.5 : 1.0;
    out->d_max_ang = tsr_largest_distance(model->n_atom, xyz);
    out->partials.radius_ang = model->power_radius_ang;
    TSR_TRY(reserve_partials(m, TSR_ATOM_COMP, model->n_type, d_bound, scratch,
                             &out->partials, &factor, err));
    const tsr_q_grid grid = out->partials.grid;
    const tsr_debye_spec spec =
        tsr_atom_model_spec(model, grid.n_q, grid.dq_inv_ang, factor);
    tsr_atom_model_factors(model, grid.n_q, grid.dq_inv_ang, factor);
    return sum_profile(m, &spec, d, d_bound, out, err);
}

static tsr_status sum_atoms(tsr_profile_maker *m, const tsr_atoms *atoms,
                            int is_logged, tsr_profile_structure *out,
                            tsr_err *err)
{
    const tsr_file_residue *r = atoms->residue;
    tsr_atom_model *model = NULL;
    tsr_pool scratch = {0};
    TSR_TRY(tsr_atom_model_new(atoms, m->solvent, m->density, &model, err));
    tsr_status status = TSR_OK;
    out->layer_contrast = tsr_solvent_contrast(m->solvent);
    if (is_logged)
        tsr_atom_model_log(atoms, model, m->log);
    if (m->is_neutron) {
        out->is_neutron = 1;
        status =
            tsr_neutron_apply(&m->neutron, atoms, model,
                              is_logged ? m->log : NULL, &out->match_d2o, err);
        out->layer_contrast *= 10.0 * model->density / TSR_WATER_DENSITY;
    }
    for (int i = 0; i < atoms->n_residue; i++)
        out->n_chain += r[i].kind <= TSR_MOLECULE_NUCLEOTIDE &&
                        (i == 0 || strcmp(r[i].chain, r[i - 1].chain) != 0);
    TSR_THEN(status, sum_model(m, model, &scratch, out, err));
    tsr_pool_clear(&scratch);
    tsr_atom_model_free(model);
    return status;
}

static tsr_status profile_of_atoms(tsr_profile_maker *m, const char *path,
                                   tsr_profile_structure *out, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    tsr_status status = tsr_atoms_read(path, &atoms, err);
    TSR_THEN(status, sum_atoms(m, atoms, 1, out, err));
    tsr_atoms_free(atoms);
    return status;
}

tsr_status tsr_profile_compute_atoms(tsr_profile_maker *maker, const char *path,
                                     const tsr_atoms *atoms, int is_logged,
                                     tsr_profile_structure *out, tsr_err *err)
{
    *out = (tsr_profile_structure){.path = strdup(path)};
    TSR_TRY(tsr_allocated(out->path, err));
    return sum_atoms(maker, atoms, is_logged, out, err);
}

/* ---- bodies ---- */

/* Adds the self terms. A single component stores S separately; with several,
 * S_ab are added to the pairs. excess [n_pair][n_type][n_q]. */
static void add_self(const tsr_form_factor_table *table, int n_body,
                     const int *type, const double *exposure,
                     const double *excess, tsr_partials *p)
{
    int n_q = p->grid.n_q;
    if (table->n_comp > 1)
        tsr_coarse_add_self(table, n_body, type, exposure, n_q, excess,
                            p->pair);
    for (int i = 0; i < n_body && table->n_comp == 1; i++)
        for (int k = 0; k < n_q; k++)
            p->self[k] += excess[type[i] * n_q + k];
}

static tsr_status expose_bodies(const tsr_profile_maker *m,
                                const tsr_molecule *molecule, double *exposure,
                                tsr_err *err)
{
    tsr_atom_curves *atoms = NULL;
    tsr_status status = tsr_atom_curves_try(molecule, m->log, &atoms, err);
    TSR_THEN(status, tsr_atom_curves_expose(atoms, molecule, molecule->first,
                                            NULL, exposure, err));
    tsr_atom_curves_free(atoms);
    return status;
}

/* Sums bodies: few types, and the hydration of each body as its weight.
 * `scratch` owns temporary arrays. */
static tsr_status sum_bodies(tsr_profile_maker *m, const tsr_molecule *molecule,
                             tsr_pool *scratch, tsr_profile_structure *out,
                             tsr_err *err)
{
    const tsr_topology *t = molecule->topology;
    const tsr_conformation *first = molecule->first;
    const tsr_form_factor_table *table = molecule->components != NULL
                                             ? molecule->components
                                             : molecule->form_factors;
    const double(*xyz)[3] = (const double(*)[3])first->body;
    const int n_comp = table->n_comp, n_type = table->n_type;
    tsr_partials *p = &out->partials;
    int *type;
    double *exposure, *factor = NULL, *excess;
    out->n_body = t->n_body;
    out->n_chain = t->n_chain;
    out->rg_ang = tsr_conformation_rg(t, first, molecule->form_factors->rg2);
    out->d_max_ang = tsr_largest_distance(t->n_body, xyz);
    const double d_bound = round_up_diameter(out->d_max_ang);
    TSR_TRY(
        reserve_partials(m, n_comp, n_type, d_bound, scratch, p, &factor, err));
    const int n_q = p->grid.n_q;
    const double dq = p->grid.dq_inv_ang;
    tsr_pool_array(scratch, type, t->n_body);
    tsr_pool_array(scratch, exposure, t->n_body);
    tsr_pool_array(scratch, excess, table->n_pair * n_type * n_q);
    TSR_TRY(tsr_pool_check(scratch, err));
    for (int i = 0; i < t->n_body; i++)
        type[i] = t->body[i].type;
    TSR_TRY(tsr_form_factor_resample(table, n_q, dq, factor, excess, err));
    if (n_comp > 1) {
        TSR_TRY(expose_bodies(m, molecule, exposure, err));
        p->radius_ang = tsr_component_radius(table, t->n_body, type);
        for (int i = 0; i < t->n_body; i++)
            out->volume += factor[(n_type + type[i]) * n_q] / m->density;
        out->radius_ang = p->radius_ang;
        out->layer_contrast = tsr_solvent_contrast(TSR_SOLVENT_ATOMS);
        out->usual_c2 = 1.0;
    }
    const tsr_debye_spec spec = {.n = t->n_body,
                                 .n_type = n_type,
                                 .n_comp = n_comp,
                                 .n_q = n_q,
                                 .dq_inv_ang = dq,
                                 .xyz = xyz,
                                 .type = type,
                                 .weight = n_comp > 1 ? exposure : NULL,
                                 .weighted = n_comp > 1 ? TSR_HYDRATION : 0,
                                 .form_factor = factor};
    TSR_TRY(sum_profile(m, &spec, out->d_max_ang, d_bound, out, err));
    add_self(table, t->n_body, type, exposure, excess, p);
    return TSR_OK;
}

/* Mass with hydrogens. Those of nucleotides are included in the guests. */
static double total_mass(const tsr_topology *t)
{
    return tsr_topology_mass(t, NULL) +
           (t->guests != NULL ? t->guests->hydrogen_mass : 0.0);
}

static tsr_status profile_of_bodies(tsr_profile_maker *m,
                                    tsr_profile_structure *out, tsr_err *err)
{
    tsr_molecule molecule = {0};
    tsr_pool scratch = {0};
    tsr_config config = m->config; /* other threads read other files */
    config.structure.file = out->path;
    tsr_status status =
        tsr_molecule_read(&config, &m->tables, m->log, &molecule, err);
    if (status == TSR_OK) {
        out->mass = total_mass(molecule.topology);
        status = sum_bodies(m, &molecule, &scratch, out, err);
    }
    tsr_pool_clear(&scratch);
    tsr_molecule_clear(&molecule);
    return status;
}

static tsr_status reserve_bodies(tsr_bodies *b, int n, int **type,
                                 double **exposure, tsr_err *err)
{
    b->n = n;
    tsr_pool_array(&b->pool, *type, n);
    tsr_pool_array(&b->pool, *exposure, n);
    tsr_pool_array(&b->pool, b->xyz, n);
    tsr_pool_array(&b->pool, b->residue, n);
    return tsr_pool_check(&b->pool, err);
}

static tsr_status make_spec(const tsr_form_factor_table *table, const int *type,
                            const double *exposure, tsr_bodies *b, tsr_err *err)
{
    return tsr_coarse_spec_of(table, b->n, type, exposure, b->grid.n_q,
                              b->grid.dq_inv_ang, &b->pool, &b->coarse, err);
}

static tsr_status fill_bodies(const tsr_profile_maker *m,
                              const tsr_molecule *molecule, tsr_bodies *b,
                              tsr_err *err)
{
    const tsr_topology *t = molecule->topology;
    int *type;
    double *exposure;
    TSR_TRY(reserve_bodies(b, t->n_body, &type, &exposure, err));
    for (int i = 0; i < t->n_body; i++) {
        type[i] = t->body[i].type;
        b->residue[i] = t->body[i].residue;
        memcpy(b->xyz[i], molecule->first->body[i], sizeof b->xyz[i]);
    }
    b->mass = total_mass(t);
    TSR_TRY(expose_bodies(m, molecule, exposure, err));
    return make_spec(molecule->components, type, exposure, b, err);
}

tsr_status tsr_bodies_read(tsr_profile_maker *maker, const char *path,
                           double d_bound_ang, tsr_bodies *out, tsr_err *err)
{
    tsr_profile_maker *m = maker;
    tsr_molecule molecule = {0};
    char *file = strdup(path);
    *out = (tsr_bodies){.grid = tsr_q_grid_make(d_bound_ang, m->q_max)};
    TSR_TRY(tsr_allocated(file, err));
    m->config.structure.file = file;
    tsr_status status =
        tsr_molecule_read(&m->config, &m->tables, m->log, &molecule, err);
    TSR_THEN(status, fill_bodies(m, &molecule, out, err));
    m->config.structure.file = NULL;
    tsr_molecule_clear(&molecule);
    free(file);
    return status;
}

tsr_status tsr_bodies_of_residues(tsr_profile_maker *maker, int n_residue,
                                  const char *const *residue, int n_body,
                                  const double (*xyz)[3], double d_bound_ang,
                                  tsr_bodies *out, tsr_err *err)
{
    const tsr_form_factor_table *table = maker->tables.components;
    tsr_bodies *b = out;
    double *exposure;
    int *type, of[2], n = 0;
    *b = (tsr_bodies){.grid = tsr_q_grid_make(d_bound_ang, maker->q_max)};
    TSR_TRY(reserve_bodies(b, n_body, &type, &exposure, err));
    for (int r = 0; r < n_residue; r++) {
        const int amino = tsr_amino_by_three(residue[r]);
        if (amino < 0)
            return tsr_fail(err, TSR_E_DATA,
                            "residue %d, '%s', is not one of the 20 amino "
                            "acids",
                            r, residue[r]);
        const int n_own = tsr_body_types(table->model, (tsr_amino)amino, of);
        b->mass += tsr_amino_hydrogen_mass((tsr_amino)amino);
        for (int k = 0; k < n_own; k++, n++) {
            b->mass += tsr_body_mass(table->model, of[k]);
            if (n < n_body) {
                type[n] = of[k];
                b->residue[n] = r;
            }
        }
    }
    if (n != n_body)
        return tsr_fail(err, TSR_E_USAGE, "the residues have %d bodies, not %d",
                        n, n_body);
    memcpy(b->xyz, xyz, (size_t)n * sizeof *xyz);
    tsr_form_factor_exposures(table, n, type, xyz, exposure);
    TSR_TRY(
        tsr_exposure_displace(&table->exposure, n, xyz, NULL, exposure, err));
    return make_spec(table, type, exposure, b, err);
}

tsr_status tsr_bodies_profile(const tsr_bodies *bodies, const double *sum,
                              tsr_profile_structure *out, tsr_err *err)
{
    const size_t n_q = (size_t)bodies->grid.n_q, n = TSR_N_COMP_PAIR * n_q;
    tsr_partials *p = &out->partials;
    *out = (tsr_profile_structure){.n_body = bodies->n,
                                   .mass = bodies->mass,
                                   .rg_ang = (double)NAN,
                                   .d_max_ang = (double)NAN};
    p->n_comp = TSR_N_COMP;
    p->grid = bodies->grid;
    p->radius_ang = bodies->coarse.radius_ang;
    p->pair = malloc(n * sizeof *p->pair);
    p->self = calloc(n_q, sizeof *p->self);
    if (p->pair == NULL || p->self == NULL)
        return tsr_no_memory(err);
    for (size_t i = 0; i < n; i++)
        p->pair[i] = sum[i] + bodies->coarse.self[i];
    return TSR_OK;
}

tsr_status tsr_profile_compute(tsr_profile_maker *maker, const char *path,
                               tsr_profile_structure *out, tsr_err *err)
{
    *out = (tsr_profile_structure){0};
    out->path = strdup(path);
    TSR_TRY(tsr_allocated(out->path, err));
    return maker->bodies == TSR_PROFILE_ATOMS
               ? profile_of_atoms(maker, path, out, err)
               : profile_of_bodies(maker, out, err);
}

tsr_status tsr_profile_fit_data(const tsr_profile_fit_options *how,
                                const tsr_partials *partials,
                                const tsr_saxs *saxs, tsr_profile_fit *fit,
                                double *curve, tsr_err *err)
{
    tsr_partial_curves curves;
    TSR_TRY(tsr_partial_curves_of_data(partials, saxs, &curves, err));
    const tsr_status status = tsr_profile_fit_make(
        &curves, saxs->intensity, saxs->sigma, how, fit, curve, err);
    tsr_profile_fit_set_noise(fit, &saxs->noise);
    tsr_partial_curves_clear(&curves);
    return status;
}

double tsr_profile_absolute(const tsr_profile_structure *structure)
{
    const double avogadro = 6.02214076e23;
    const double radius_cm = structure->is_neutron ? 1e-13 : 2.8179403e-13;
    return structure->mass > 0.0
               ? 1e-3 * avogadro * radius_cm * radius_cm / structure->mass
               : 0.0;
}

void tsr_profile_structure_clear(tsr_profile_structure *structure)
{
    tsr_partials_clear(&structure->partials);
    free(structure->path);
    *structure = (tsr_profile_structure){0};
}
