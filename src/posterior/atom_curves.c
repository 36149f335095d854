/* Places all atoms for a conformation of the run, builds the scatterers with
 * their layer of water, and sums their profile, on the device where there is
 * one. */
#include "posterior/atom_curves.h"

#include "gpu/debye_sum.h"
#include "molecule/atoms.h"
#include "molecule/guest.h"
#include "molecule/residue.h"
#include "posterior/all_atoms.h"
#include "scattering/atom_model.h"
#include "scattering/profile_method.h"

#include <stdlib.h>
#include <string.h>

/* Beyond this share of incomplete residues what is there says too little. */
static const double most_cut = 0.1;

struct tsr_atom_curves {
    tsr_atom_curves_spec spec;
    tsr_all_atoms *all;
    tsr_atoms atoms;    /* where they were placed last */
    char *path;         /* the atoms' */
    double (*model)[3]; /* of a conformation, as model.pdb has it */
    double (*xyz)[3];   /* [atoms.n_atom] */
    int *body;          /* [atoms.n_atom] of the topology */
    int *is_cut;        /* [residues of the topology] 1: it lacks atoms */
    tsr_debye_sum *sum; /* NULL: the reference */
};

void tsr_atom_curves_free(tsr_atom_curves *curves)
{
    if (curves == NULL)
        return;
    tsr_debye_sum_free(curves->sum);
    tsr_all_atoms_free(curves->all);
    free(curves->atoms.atom);
    free(curves->atoms.residue);
    free(curves->model);
    free(curves->xyz);
    free(curves->body);
    free(curves->is_cut);
    free(curves->path);
    free(curves);
}

static void take_guests(const tsr_guests *g, tsr_atoms *to)
{
    for (int r = 0; r < tsr_guests_n_residue(g); r++) {
        tsr_file_residue *residue = &to->residue[to->n_residue];
        *residue = g->atoms->residue[r];
        residue->first_atom = to->n_atom;
        for (int k = 0; k < residue->n_atom; k++) {
            tsr_file_atom *atom = &to->atom[to->n_atom++];
            *atom = g->atoms->atom[g->atoms->residue[r].first_atom + k];
            atom->residue = to->n_residue;
        }
        to->n_kind[residue->kind]++;
        to->n_residue++;
    }
}

/* The atoms of the run: the protein of the file, then what else the run has.
 * 0: out of memory. */
static int take_atoms(const tsr_structure *s, const tsr_guests *guests,
                      tsr_atoms *to)
{
    size_t n_atom = (size_t)(s->n_atom + tsr_guests_n_atom(guests));
    size_t n_residue = (size_t)(s->n_residue + tsr_guests_n_residue(guests));
    to->n_atom = s->n_atom;
    to->n_residue = s->n_residue;
    to->atom = calloc(n_atom + 1, sizeof *to->atom);
    to->residue = calloc(n_residue + 1, sizeof *to->residue);
    if (to->atom == NULL || to->residue == NULL)
        return 0;
    to->n_kind[TSR_MOLECULE_PROTEIN] = s->n_residue;
    for (int r = 0; r < s->n_residue; r++) {
        const tsr_residue_record *from = &s->residue[r];
        tsr_file_residue *residue = &to->residue[r];
        *residue = (tsr_file_residue){.number = from->number,
                                      .insertion = from->insertion,
                                      .kind = TSR_MOLECULE_PROTEIN,
                                      .is_tabulated = 1,
                                      .first_atom = from->first_atom,
                                      .n_atom = from->n_atom};
        memcpy(residue->name, from->name, sizeof residue->name);
        memcpy(residue->parent, from->name, sizeof residue->parent - 1);
        memcpy(residue->chain, from->chain, sizeof residue->chain);
        for (int i = from->first_atom; i < from->first_atom + from->n_atom;
             i++) {
            tsr_file_atom *atom = &to->atom[i];
            memcpy(atom->name, s->atom[i].name, sizeof atom->name);
            atom->z = s->atom[i].z;
            atom->residue = r;
        }
    }
    take_guests(guests, to);
    return 1;
}

/* n_cut (may be NULL) out: residues without some of their atoms, and is_cut
 * [n_residue] which. */
static tsr_status check_whole(const tsr_structure *s, int *is_cut, int *n_cut,
                              tsr_err *err)
{
    int n = 0;
    for (int r = 0; r < s->n_residue; r++) {
        const tsr_residue_record *residue = &s->residue[r];
        const tsr_amino_info *info =
            &tsr_amino_table[tsr_amino_by_three(residue->name)];
        int is_whole = 1;
        for (int k = 0; k < info->n_atom; k++)
            is_whole &=
                tsr_residue_atom(s, residue, info->atom[k].name) != NULL;
        is_cut[r] = !is_whole;
        n += !is_whole;
    }
    if (n_cut != NULL)
        *n_cut = n;
    if (n <= most_cut * s->n_residue)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d of %d residues lack atoms; complete them "
                    "(PDBFixer, MODELLER)",
                    s->path, n, s->n_residue);
}

/* The body of a topology that is number k of its guests'. */
static int guest_body(const tsr_topology *t, int k)
{
    int b = 0;
    while (b < t->n_body - 1 &&
           t->body[b].type != tsr_body_n_type(t->body_model) + k)
        b++;
    return b;
}

/* Where each atom belongs; hydrogens of guests, which do not scatter on their
 * own, anywhere. */
static void find_bodies(const tsr_topology *t, const tsr_atoms *atoms,
                        int *body)
{
    const tsr_guests *g = t->guests;
    for (int i = 0; i < atoms->n_atom; i++) {
        const int r = atoms->atom[i].residue,
                  k = i - atoms->n_atom + tsr_guests_n_atom(g);
        if (r < t->n_residue - t->n_link) {
            const int own = tsr_body_of_atom(t->body_model, t->residue[r].amino,
                                             atoms->atom[i].name);
            body[i] = t->residue[r].first_body + (own > 0 ? own : 0);
        } else {
            body[i] = guest_body(t, g->body[k] > 0 ? g->body[k] : 0);
        }
    }
}

static tsr_status open_sum(tsr_atom_curves *c, tsr_err *err)
{
    const tsr_q_grid *grid = &c->spec.grid;
    if (c->spec.device == NULL)
        return TSR_OK;
    /* atoms and layer may reach beyond the band of the bodies: any distance */
    TSR_TRY(tsr_debye_sum_new(c->spec.device, grid->n_q, grid->dq_inv_ang, 1,
                              0.0, NULL, &c->sum, err));
    return tsr_debye_sum_test(c->sum, NULL, err);
}

tsr_status tsr_atom_curves_new(const tsr_atom_curves_spec *spec, int *n_cut,
                               tsr_atom_curves **out, tsr_err *err)
{
    tsr_structure *input = NULL;
    tsr_model_atoms *model = NULL;
    tsr_atom_curves *c = calloc(1, sizeof *c);
    *out = NULL;
    tsr_status status = tsr_allocated(c, err);
    TSR_THEN(status, tsr_structure_read_any(spec->file, &input, err));
    if (status == TSR_OK) {
        const size_t n = (size_t)tsr_topology_n_atom(spec->topology);
        c->spec = *spec;
        model = tsr_model_atoms_of(spec->model);
        c->model = calloc(n + 1, sizeof *c->model);
        c->xyz = calloc((size_t)input->n_atom + n + 1, sizeof *c->xyz);
        if (model == NULL || c->model == NULL || c->xyz == NULL ||
            !take_atoms(input, spec->topology->guests, &c->atoms))
            status = tsr_no_memory(err);
    }
    if (status == TSR_OK) {
        c->body = calloc((size_t)c->atoms.n_atom + 1, sizeof *c->body);
        c->is_cut = calloc((size_t)input->n_residue + 1, sizeof *c->is_cut);
        c->atoms.path = c->path = strdup(spec->file);
        if (c->body == NULL || c->is_cut == NULL || c->path == NULL)
            status = tsr_no_memory(err);
    }
    if (status == TSR_OK)
        status = check_whole(input, c->is_cut, n_cut, err);
    if (status == TSR_OK)
        status = tsr_all_atoms_new(model, input, &c->all, err);
    if (status == TSR_OK) {
        find_bodies(spec->topology, &c->atoms, c->body);
        status = open_sum(c, err);
    }
    tsr_model_atoms_free(model);
    tsr_structure_free(input);
    if (status == TSR_OK)
        *out = c;
    else
        tsr_atom_curves_free(c);
    return status;
}

/* Pairs on the device, or a grid on this thread: by costs as they were measured
 * once, so that a run that goes on elsewhere chooses the same. A device that
 * is this computer's processor is shared by all threads. Without a device the
 * exact sum of many particles would take minutes. */
static int is_grid_faster(const tsr_atom_curves *c, const tsr_debye_spec *spec)
{
    static const double core_s = 2.4e-10, gpu_s = 2.5e-13;
    enum { MOST_EXACT = 5000 };
    if (c->sum == NULL)
        return spec->n > MOST_EXACT;
    const int is_cpu =
        tsr_device_get_info(c->spec.device)->type == TSR_DEVICE_CPU;
    const tsr_method_speed speed = {
        .n_thread = 1, .host = 1.0, .pair_s = is_cpu ? core_s : gpu_s};
    return tsr_method_seconds(TSR_METHOD_FFT, spec, 0.0, &speed) <
           tsr_method_seconds(TSR_METHOD_DIRECT, spec, 0.0, &speed);
}

tsr_status tsr_atom_model_spec(const tsr_atom_model *model, double origin,
                               int n_q, double dq_inv_ang, double **factor,
                               tsr_debye_spec *out, tsr_err *err)
{
    tsr_status status = TSR_OK;
    *factor = malloc(TSR_ATOM_COMP * (size_t)model->n_type * (size_t)n_q *
                     sizeof **factor);
    TSR_TRY(tsr_allocated(*factor, err));
    if (model->is_neutron)
        status =
            tsr_neutron_factors(model, origin, n_q, dq_inv_ang, *factor, err);
    else
        tsr_atom_model_factors(model, n_q, dq_inv_ang, *factor);
    *out = (tsr_debye_spec){.n = model->n,
                            .n_type = model->n_type,
                            .n_comp = TSR_ATOM_COMP,
                            .n_q = n_q,
                            .dq_inv_ang = dq_inv_ang,
                            .xyz = (const double(*)[3])model->xyz,
                            .type = model->type,
                            .weight = model->surface,
                            .weighted = TSR_ATOM_HYDRATION,
                            .form_factor = *factor};
    return status;
}

/* origin: of neutrons. */
static tsr_status sum_up(tsr_atom_curves *c, const tsr_atom_model *model,
                         double origin, double *partial, tsr_err *err)
{
    double *factor;
    tsr_debye_spec spec;
    tsr_status status =
        tsr_atom_model_spec(model, origin, c->spec.grid.n_q,
                            c->spec.grid.dq_inv_ang, &factor, &spec, err);
    if (status == TSR_OK && is_grid_faster(c, &spec))
        status =
            tsr_method_run(TSR_METHOD_FFT, &spec, 0.0, 1, NULL, partial, err);
    else
        TSR_THEN(status,
                 c->sum != NULL
                     ? tsr_debye_sum_run(c->sum, &spec, NULL, partial, err)
                     : tsr_debye_reference(&spec, NULL, partial, err));
    free(factor);
    return status;
}

const tsr_atoms *tsr_atom_curves_atoms(const tsr_atom_curves *curves)
{
    return &curves->atoms;
}

tsr_all_atoms *tsr_atom_curves_all(tsr_atom_curves *curves)
{
    return curves->all;
}

tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err)
{
    tsr_atom_curves *c = curves;
    tsr_conformation_atoms(c->spec.topology, conformation, c->model);
    tsr_all_atoms_place(c->all, (const double(*)[3])c->model, c->xyz);
    for (int i = 0; i < c->atoms.n_atom; i++)
        memcpy(c->atoms.atom[i].xyz, c->xyz[i], sizeof c->xyz[i]);
    return tsr_atom_model_new(&c->atoms, solvent, c->spec.density, model, err);
}

tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   double *partial, double *radius_ang,
                                   tsr_err *err)
{
    tsr_atom_model *model = NULL;
    tsr_status status = tsr_atom_curves_place(curves, conformation,
                                              TSR_SOLVENT_LAYER, &model, err);
    if (status == TSR_OK) {
        *radius_ang = model->power_radius_ang;
        status = sum_up(curves, model, 0.0, partial, err);
    }
    tsr_atom_model_free(model);
    return status;
}

tsr_status tsr_atom_curves_neutron(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, tsr_err *err)
{
    tsr_atom_model *model = NULL;
    double match;
    tsr_status status = tsr_atom_curves_place(curves, conformation,
                                              TSR_SOLVENT_LAYER, &model, err);
    if (status == TSR_OK)
        status = tsr_neutron_apply(neutron, &curves->atoms, model, NULL, &match,
                                   err);
    if (status == TSR_OK)
        status = sum_up(curves, model, origin, partial, err);
    tsr_atom_model_free(model);
    return status;
}

tsr_status tsr_atom_curves_bodies(tsr_atom_curves *curves,
                                  const tsr_conformation *conformation,
                                  const tsr_neutron *neutron, int n,
                                  const double *d2o, double *match,
                                  tsr_neutron_bodies **out, tsr_err *err)
{
    tsr_atom_curves *c = curves;
    tsr_neutron_basis basis = {.origin = d2o[0]};
    tsr_atom_model *model = NULL;
    *out = NULL;
    int *body = calloc((size_t)c->atoms.n_atom + 1, sizeof *body);
    tsr_status status =
        body == NULL ? tsr_no_memory(err)
                     : tsr_atom_curves_place(c, conformation, TSR_SOLVENT_LAYER,
                                             &model, err);
    if (status == TSR_OK)
        status = tsr_neutron_apply(neutron, &c->atoms, model, NULL, match, err);
    for (int i = 1; i < n; i++)
        basis.is_series |= d2o[i] != d2o[0];
    if (basis.is_series)
        basis.origin = *match;
    for (int i = 0, k = 0; i < c->atoms.n_atom && status == TSR_OK; i++)
        if (c->atoms.atom[i].z != 1) /* as in the model */
            body[k++] = c->body[i];
    if (status == TSR_OK)
        status = tsr_neutron_bodies_new(model, c->spec.topology->n_body, body,
                                        (const double(*)[3])conformation->body,
                                        basis, out, err);
    else
        tsr_atom_model_free(model);
    free(body);
    return status;
}

/* ---- exposures ---- */

/* Bodies of whole residues: the sums over their atoms, in place of what is in
 * `exposure`. */
static tsr_status expose_atoms(tsr_atom_curves *c,
                               const tsr_conformation *conformation,
                               double *exposure, tsr_err *err)
{
    const tsr_topology *t = c->spec.topology;
    tsr_atom_model *model = NULL;
    TSR_TRY(
        tsr_atom_curves_place(c, conformation, TSR_SOLVENT_ATOMS, &model, err));
    for (int b = 0; b < t->n_body; b++)
        if (t->body[b].type < tsr_body_n_type(t->body_model) &&
            !c->is_cut[t->body[b].residue])
            exposure[b] = 0.0;
    for (int i = 0, k = 0; i < c->atoms.n_atom; i++) {
        const int r = c->atoms.atom[i].residue;
        if (c->atoms.atom[i].z == 1) /* not in the model */
            continue;
        if (r < t->n_residue - t->n_link && !c->is_cut[r])
            exposure[c->body[i]] += model->surface[k];
        k++;
    }
    tsr_atom_model_free(model);
    return TSR_OK;
}

tsr_status tsr_atom_curves_expose(tsr_atom_curves *curves,
                                  const tsr_form_factor_table *table,
                                  const tsr_topology *topology,
                                  const tsr_conformation *conformation,
                                  double *exposure, tsr_err *err)
{
    const tsr_topology *t = topology;
    const double(*xyz)[3] = (const double(*)[3])conformation->body;
    int *type = calloc(2 * (size_t)t->n_body + 1, sizeof *type);
    if (type == NULL)
        return tsr_no_memory(err);
    int *dry = type + t->n_body;
    for (int b = 0; b < t->n_body; b++) {
        type[b] = t->body[b].type;
        dry[b] = type[b] >= table->n_trained && table->exposed[type[b]] == 0.0;
    }
    tsr_form_factor_expose(table, t->n_body, type, xyz, exposure);
    tsr_status status = curves == NULL
                            ? TSR_OK
                            : expose_atoms(curves, conformation, exposure, err);
    if (status == TSR_OK)
        status = tsr_exposure_carry(&table->exposure, t->n_body, xyz, dry,
                                    exposure, err);
    free(type);
    return status;
}
