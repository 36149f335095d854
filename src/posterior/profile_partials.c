/* Partial profiles of structures, by atoms or by bodies. They hold all that is
 * to be summed: a fit then tries c1 and c2 on them without another sum. The
 * maker keeps device, tables and buffers from one structure to the next,
 * because opening them costs more than a small profile. */
#include "posterior/profile_partials.h"

#include "core/clock.h"
#include "core/text.h"
#include "engine/engine.h"
#include "gpu/debye_sum.h"
#include "molecule/guest.h"
#include "molecule/structure.h"
#include "molecule/topology.h"
#include "posterior/all_atoms.h"
#include "posterior/setup.h"
#include "scattering/atom_model.h"
#include "scattering/debye.h"
#include "scattering/form_factor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance times largest q: 1300 points of q, whose operator takes ten
 * seconds, and eight times that for twice as many. */
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
    /* Bodies one and two: */
    tsr_prior_table *prior;
    tsr_form_factor_table *table;
    tsr_form_factor_table *shipped; /* of one component, for the Rg of one of
                                       three; NULL: the table has it */
};

/* ---- the maker ---- */

static tsr_status read_table(const char *shipped, const char *own,
                             tsr_form_factor_table **table, tsr_err *err)
{
    char *path = NULL;
    tsr_status s = TSR_OK;
    if (own == NULL)
        s = tsr_data_file(shipped, &path, err);
    TSR_THEN(s, tsr_form_factor_read(own != NULL ? own : path, table, err));
    free(path);
    return s;
}

/* The shipped components, unless the user names a table: of either kind. */
static tsr_status read_tables(tsr_profile_maker *m, const char *own,
                              tsr_err *err)
{
    int is_two = m->bodies == TSR_PROFILE_TWO;
    char *prior = NULL;
    tsr_status s = tsr_data_file("prior.dat", &prior, err);
    TSR_THEN(s, tsr_prior_table_read(prior, &m->prior, err));
    free(prior);
    TSR_THEN(s, read_table(is_two ? "components_two_body.dat"
                                  : "components_one_body.dat",
                           own, &m->table, err));
    if (s == TSR_OK && m->table->n_comp > 1)
        s = read_table(is_two ? "form_factors_two_body.dat"
                              : "form_factors_one_body.dat",
                       NULL, &m->shipped, err);
    if (s == TSR_OK && (m->table->model == TSR_BODIES_TWO) != is_two)
        s = tsr_fail(err, TSR_E_USAGE,
                     "--form-factors: '%s' is a table for %s bodies a "
                     "residue; --bodies says %s",
                     own, is_two ? "one" : "two", is_two ? "two" : "one");
    return s == TSR_OK ? tsr_form_factor_set_density(m->table, m->density, err)
                       : s;
}

tsr_status tsr_profile_maker_new(const tsr_profile_spec *spec, tsr_log *log,
                                 tsr_profile_maker **out, tsr_err *err)
{
    tsr_status status = TSR_OK;
    *out = NULL;
    tsr_profile_maker *m = calloc(1, sizeof *m);
    TSR_TRY(tsr_allocated(m, err));
    m->bodies = spec->bodies;
    m->solvent = spec->solvent;
    m->density = spec->density;
    m->is_neutron = spec->neutron != NULL;
    if (m->is_neutron)
        m->neutron = *spec->neutron;
    m->q_max = spec->q_max_inv_ang;
    m->log = log;
    if (m->bodies != TSR_PROFILE_ATOMS)
        status = read_tables(m, spec->form_factors, err);
    if (status == TSR_OK && m->table != NULL && m->table->n_comp > 1)
        tsr_info(log, "curves of bodies as they are, hydration at the bodies: "
                      "a run corrects them by those of all atoms with a layer "
                      "outside, which --bodies atoms shows");
    TSR_THEN(status,
             tsr_profile_sum_new(spec->device, spec->method,
                                 m->bodies != TSR_PROFILE_ATOMS, &m->sum, err));
    if (status != TSR_OK) {
        tsr_profile_maker_free(m);
        return status;
    }
    *out = m;
    return TSR_OK;
}

void tsr_profile_maker_free(tsr_profile_maker *maker)
{
    if (maker == NULL)
        return;
    tsr_profile_sum_free(maker->sum);
    tsr_prior_table_free(maker->prior);
    tsr_form_factor_free(maker->table);
    tsr_form_factor_free(maker->shipped);
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
} bar;

static tsr_status tell(void *context, double done, tsr_err *err)
{
    enum { WIDTH = 30 };
    bar *b = context;
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

/* Diameters in steps of a tenth, so that structures of about one size share a
 * grid, and a program. */
static double bound_of(double d_max)
{
    return 20.0 * pow(1.1, ceil(log(fmax(d_max, 20.0) / 20.0) / log(1.1)));
}

static tsr_status sum_up(tsr_profile_maker *m, const tsr_debye_spec *spec,
                         double d, double d_bound, tsr_profile_structure *out,
                         tsr_err *err)
{
    bar b = {.log = m->log,
             .name = tsr_text_file_name(out->path),
             .started = tsr_clock_s()};
    tsr_debye_progress progress = {tell, &b};
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

/* The grid and room for partial profiles; *factor [n_comp][n_type][n_q]. */
static tsr_status reserve(const tsr_profile_maker *m, int n_comp, int n_type,
                          double d_bound, tsr_partials *p, double **factor,
                          tsr_err *err)
{
    double product = d_bound * m->q_max;
    if (!(product <= most_product))
        return tsr_fail(err, TSR_E_DATA,
                        "atoms are some %.0f A from each other, too far for a "
                        "curve up to q = %g 1/A (a few seconds go as far as "
                        "%.0f A there): lower --q-max",
                        d_bound, m->q_max, most_product / m->q_max);
    p->n_comp = n_comp;
    /* As for a larger molecule: a profile is made once and right to 1e-5, which
     * the single precision of the sums would not be with a chain's few points,
     * whose errors weigh more. */
    p->grid = tsr_q_grid_make(1.5 * d_bound, m->q_max);
    size_t n_q = (size_t)p->grid.n_q;
    p->pair =
        calloc((size_t)(n_comp * (n_comp + 1) / 2) * n_q, sizeof *p->pair);
    p->self = calloc(n_q, sizeof *p->self);
    *factor = calloc((size_t)(n_comp * n_type) * n_q, sizeof **factor);
    if (p->pair == NULL || p->self == NULL || *factor == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q",
                        p->grid.n_q);
    return TSR_OK;
}

/* ---- all atoms ---- */

static tsr_status sum_atoms(tsr_profile_maker *m, const tsr_atoms *atoms,
                            int tell, tsr_profile_structure *out, tsr_err *err)
{
    tsr_atom_model *model = NULL;
    double *factor = NULL;
    tsr_status status =
        tsr_atom_model_new(atoms, m->solvent, m->density, &model, err);
    if (status == TSR_OK) {
        out->layer_contrast = tsr_solvent_contrast(m->solvent);
        if (tell)
            tsr_atom_model_tell(atoms, model, m->log);
    }
    if (status == TSR_OK && m->is_neutron) {
        out->is_neutron = 1;
        status = tsr_neutron_apply(&m->neutron, atoms, model,
                                   tell ? m->log : NULL, &out->match_d2o, err);
        out->layer_contrast *= 10.0 * model->density / TSR_WATER_DENSITY;
    }
    if (status == TSR_OK) {
        const double(*xyz)[3] = (const double(*)[3])model->xyz;
        const tsr_file_residue *r = atoms->residue;
        for (int i = 0; i < atoms->n_residue; i++)
            out->n_chain += r[i].kind <= TSR_MOLECULE_NUCLEOTIDE &&
                            (i == 0 || strcmp(r[i].chain, r[i - 1].chain) != 0);
        out->n_body = model->n_atom;
        out->rg_ang = model->rg_ang;
        out->mass = model->mass;
        out->volume = model->volume;
        out->radius_ang = model->radius_ang;
        out->usual_c2 = m->solvent == TSR_SOLVENT_LAYER ? 0.5 : 1.0;
        out->d_max_ang = tsr_largest_distance(model->n_atom, xyz);
        out->partials.radius_ang = model->power_radius_ang;
        double d = tsr_largest_distance(model->n, xyz);
        double d_bound = bound_of(d);
        status = reserve(m, TSR_ATOM_COMP, model->n_type, d_bound,
                         &out->partials, &factor, err);
        tsr_q_grid grid = out->partials.grid;
        tsr_debye_spec spec = {.n = model->n,
                               .n_type = model->n_type,
                               .n_comp = TSR_ATOM_COMP,
                               .n_q = grid.n_q,
                               .dq_inv_ang = grid.dq_inv_ang,
                               .xyz = xyz,
                               .type = model->type,
                               .weight = model->surface,
                               .weighted = TSR_ATOM_HYDRATION,
                               .form_factor = factor};
        if (status == TSR_OK) {
            tsr_atom_model_factors(model, grid.n_q, grid.dq_inv_ang, factor);
            status = sum_up(m, &spec, d, d_bound, out, err);
        }
    }
    free(factor);
    tsr_atom_model_free(model);
    return status;
}

static tsr_status of_atoms(tsr_profile_maker *m, const char *path,
                           tsr_profile_structure *out, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    tsr_status status = tsr_atoms_read(path, &atoms, err);
    TSR_THEN(status, sum_atoms(m, atoms, 1, out, err));
    tsr_atoms_free(atoms);
    return status;
}

tsr_status tsr_profile_compute_atoms(tsr_profile_maker *maker, const char *path,
                                     const tsr_atoms *atoms, int tell,
                                     tsr_profile_structure *out, tsr_err *err)
{
    *out = (tsr_profile_structure){.path = strdup(path)};
    TSR_TRY(tsr_allocated(out->path, err));
    return sum_atoms(maker, atoms, tell, out, err);
}

/* ---- bodies ---- */

/* What the Debye sum takes of bodies: as of atoms, few types and the hydration
 * of each body as its weight. */
typedef struct {
    int *type;        /* [n_body] */
    double *exposure; /* [n_body] */
    double *factor;   /* [n_comp][n_type][n_q] */
    double *excess;   /* [n_pair][n_type][n_q] */
} body_sum;

static void body_sum_clear(body_sum *b)
{
    free(b->type);
    free(b->exposure);
    free(b->factor);
    free(b->excess);
}

/* The terms of a body with itself: S of one component has a place of its own,
 * S_ab are part of the pairs. */
static void add_self(const tsr_form_factor_table *table, int n_body,
                     const body_sum *b, tsr_partials *p)
{
    int n_q = p->grid.n_q;
    if (table->n_comp > 1)
        tsr_coarse_add_self(table, n_body, b->type, b->exposure, n_q, b->excess,
                            p->pair);
    for (int i = 0; i < n_body && table->n_comp == 1; i++)
        for (int k = 0; k < n_q; k++)
            p->self[k] += b->excess[b->type[i] * n_q + k];
}

/* rg2: of the table's types; atoms: NULL where the file has none. */
static tsr_status sum_bodies(tsr_profile_maker *m,
                             const tsr_form_factor_table *table,
                             const double *rg2, tsr_atom_curves *atoms,
                             const tsr_topology *t,
                             const tsr_conformation *first,
                             tsr_profile_structure *out, tsr_err *err)
{
    const double(*xyz)[3] = (const double(*)[3])first->body;
    int n_comp = table->n_comp, n_type = table->n_type;
    tsr_partials *p = &out->partials;
    body_sum b = {.type = calloc((size_t)t->n_body, sizeof *b.type),
                  .exposure = calloc((size_t)t->n_body, sizeof *b.exposure)};
    out->n_body = t->n_body;
    out->n_chain = t->n_chain;
    out->rg_ang = tsr_conformation_rg(t, first, rg2);
    out->d_max_ang = tsr_largest_distance(t->n_body, xyz);
    double d_bound = bound_of(out->d_max_ang);
    tsr_status s = reserve(m, n_comp, n_type, d_bound, p, &b.factor, err);
    int n_q = p->grid.n_q;
    double dq = p->grid.dq_inv_ang;
    if (s == TSR_OK)
        b.excess = calloc((size_t)(table->n_pair * n_type) * (size_t)n_q,
                          sizeof *b.excess);
    if (s == TSR_OK &&
        (b.type == NULL || b.exposure == NULL || b.excess == NULL))
        s = tsr_no_memory(err);
    for (int i = 0; i < t->n_body && s == TSR_OK; i++)
        b.type[i] = t->body[i].type;
    if (s == TSR_OK)
        s = tsr_form_factor_at(table, n_q, dq, b.factor, b.excess, err);
    if (s == TSR_OK && n_comp > 1)
        s = tsr_atom_curves_expose(atoms, table, t, first, b.exposure, err);
    if (s == TSR_OK && n_comp > 1) {
        p->radius_ang = tsr_component_radius(table, t->n_body, b.type);
        for (int i = 0; i < t->n_body; i++)
            out->volume += b.factor[(n_type + b.type[i]) * n_q] / m->density;
        out->radius_ang = p->radius_ang;
        out->layer_contrast = tsr_solvent_contrast(TSR_SOLVENT_ATOMS);
        out->usual_c2 = 1.0;
    }
    tsr_debye_spec spec = {.n = t->n_body,
                           .n_type = n_type,
                           .n_comp = n_comp,
                           .n_q = n_q,
                           .dq_inv_ang = dq,
                           .xyz = xyz,
                           .type = b.type,
                           .weight = n_comp > 1 ? b.exposure : NULL,
                           .weighted = n_comp > 1 ? TSR_HYDRATION : 0,
                           .form_factor = b.factor};
    TSR_THEN(s, sum_up(m, &spec, out->d_max_ang, d_bound, out, err));
    if (s == TSR_OK)
        add_self(table, t->n_body, &b, p);
    body_sum_clear(&b);
    return s;
}

/* The atoms of the bodies, for exposures; *out NULL where the file lacks too
 * many. */
static tsr_status read_atoms(const tsr_profile_maker *m, const char *path,
                             const tsr_topology *topology,
                             const tsr_conformation *first,
                             tsr_atom_curves **out, tsr_err *err)
{
    tsr_model_atoms *model = tsr_topology_model(topology, first);
    const tsr_atom_curves_spec spec = {.topology = topology,
                                       .model = model,
                                       .file = path,
                                       .density = m->density};
    tsr_err why = {.status = TSR_OK};
    tsr_status status = model == NULL ? tsr_no_memory(err) : TSR_OK;
    if (status == TSR_OK &&
        tsr_atom_curves_new(&spec, NULL, out, &why) != TSR_OK) {
        tsr_info(m->log, "hydration: estimated from bodies alone: %s",
                 why.message);
        if (why.status == TSR_E_NOMEM)
            status = tsr_fail(err, why.status, "%s", why.message);
    }
    tsr_model_atoms_free(model);
    return status;
}

/* With the hydrogens, which bodies' own masses leave out; those of links are
 * with the guests' bodies. */
static double mass_of(const tsr_topology *t)
{
    double mass = t->total_mass;
    mass += t->guests != NULL ? t->guests->hydrogen_mass : 0.0;
    for (int r = 0; r < t->n_residue - t->n_link; r++) {
        const tsr_amino_info *amino = &tsr_amino_table[t->residue[r].amino];
        for (int k = 0; k < amino->n_atom; k++)
            mass += amino->atom[k].n_hydrogen * tsr_atom_mass(1);
    }
    return mass;
}

static tsr_status of_bodies(tsr_profile_maker *m, const char *path,
                            tsr_profile_structure *out, tsr_err *err)
{
    tsr_structure *structure = NULL;
    tsr_topology *topology = NULL;
    tsr_conformation *first = NULL;
    tsr_form_factor_table *table[] = {m->table, m->shipped};
    tsr_atom_curves *atoms = NULL;
    tsr_nucleic *nucleic = NULL; /* where there is no protein */
    const tsr_structure_config still = {.still = 1};
    tsr_status status = tsr_structure_read_any(path, &structure, err);
    TSR_THEN(status,
             tsr_setup_nucleic(structure, &still, m->log, &nucleic, err));
    if (status == TSR_OK)
        status = tsr_topology_from_structure(
            structure,
            m->bodies == TSR_PROFILE_TWO ? TSR_BODIES_TWO : TSR_BODIES_ONE,
            (tsr_flexibility){.is_still = 1, .nucleic = nucleic}, m->prior,
            m->log, &topology, &first, err);
    free(nucleic);
    if (status == TSR_OK)
        status = tsr_setup_guests(structure, NULL, m->density, m->log, topology,
                                  first, 2, table, err);
    if (status == TSR_OK && table[0]->n_comp > 1)
        status = read_atoms(m, path, topology, first, &atoms, err);
    if (status == TSR_OK) {
        const tsr_form_factor_table *own =
            table[1] != NULL ? table[1] : table[0];
        out->mass = mass_of(topology);
        status =
            sum_bodies(m, table[0], own->rg2, atoms, topology, first, out, err);
    }
    if (table[0] != m->table)
        tsr_form_factor_free(table[0]);
    if (table[1] != m->shipped)
        tsr_form_factor_free(table[1]);
    tsr_atom_curves_free(atoms);
    tsr_conformation_free(first);
    tsr_topology_free(topology);
    tsr_structure_free(structure);
    return status;
}

tsr_status tsr_profile_compute(tsr_profile_maker *maker, const char *path,
                               tsr_profile_structure *out, tsr_err *err)
{
    *out = (tsr_profile_structure){0};
    out->path = strdup(path);
    TSR_TRY(tsr_allocated(out->path, err));
    return maker->bodies == TSR_PROFILE_ATOMS
               ? of_atoms(maker, path, out, err)
               : of_bodies(maker, path, out, err);
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
