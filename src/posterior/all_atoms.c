/* All atoms of a drawn conformation. Each atom of the input has a recipe that
 * says what carries it: the drawn backbone, the frame of N-CA-C, or the side
 * chain, which turns as a whole about CA-CB until its centre points to where
 * the drawn centre is. */
#include "posterior/all_atoms.h"

#include "core/vec3.h"
#include "gpu/debye_sum.h"
#include "molecule/guest.h"
#include "molecule/residue.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/profile_method.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where an atom comes from. */
typedef enum {
    FROM_MODEL, /* drawn: N, CA, C, O */
    FROM_FRAME, /* CB: fixed to N, CA, C */
    FROM_SIDE,  /* beyond CB: turns about CA-CB */
    FROM_O,     /* OXT: opposite O */
    /* what rides along */
    FROM_CARBONYL, /* on O or OXT: fixed to CA, C, O */
    FROM_HOST,     /* a guest: fixed to N, CA, C of its host */
    FROM_BASE      /* likewise, turning with the base of its host, a link */
} source;

typedef struct {
    source from;
    int model;       /* FROM_MODEL: atom of the model; of an amino acid counted
                        from the first of its residue, as all below are */
    double local[3]; /* in the frame of the residue; FROM_O: [0] the bond */
} recipe;

typedef struct {
    int first, count; /* its atoms */
    int model_first;  /* the model's */
    int n, ca, c, o;  /* atoms of the model; o < 0: none */
    int sc;           /* drawn centre; < 0: none */
    int cb;           /* its number among all atoms; < 0: none */
    int is_ring;      /* proline */
    double cb_local[3], side_local[3]; /* of the input */
} placed_residue;

struct tsr_all_atoms {
    tsr_pool pool; /* of what it holds, and of itself */
    tsr_model_atoms list;
    recipe *recipe;          /* [list.n_atom] */
    placed_residue *residue; /* [n_residue] of amino acids */
    int n_amino;
};

void tsr_all_atoms_free(tsr_all_atoms *all)
{
    tsr_pool pool = {0};
    if (all != NULL)
        pool = all->pool;
    tsr_pool_clear(&pool);
}

const tsr_model_atoms *tsr_all_atoms_list(const tsr_all_atoms *all)
{
    return &all->list;
}

/* The model's first atom of a residue. */
static int first_of(const tsr_model_atoms *model, int residue_number)
{
    int i = model->ca[residue_number];
    while (i > 0 && model->atom[i - 1].at == residue_number)
        i--;
    return i;
}

/* The model's atom of that name in a residue, or -1. */
static int find(const tsr_model_atoms *model, int residue_number,
                const char *name)
{
    for (int i = first_of(model, residue_number);
         i < model->n_atom && model->atom[i].at == residue_number; i++)
        if (strcmp(model->atom[i].name, name) == 0)
            return i;
    return -1;
}

static int is_backbone(const char *name)
{
    return strcmp(name, "N") == 0 || strcmp(name, "CA") == 0 ||
           strcmp(name, "C") == 0 || strcmp(name, "O") == 0 ||
           strcmp(name, "SC") == 0; /* an input of centres */
}

static tsr_status differs(const tsr_model_atoms *model, int r,
                          const tsr_residue_record *theirs, tsr_err *err)
{
    const tsr_model_atom *ours = &model->atom[model->ca[r]];
    char label[32] = "none";
    if (theirs != NULL)
        tsr_residue_label(theirs, label, sizeof label);
    return tsr_fail(err, TSR_E_DATA,
                    "residue %d of model.pdb is %s %c:%d, and of the input %s "
                    "%s; export the model's own atoms with --atoms model",
                    r + 1, ours->residue, ours->chain, ours->number,
                    theirs != NULL ? theirs->name : "", label);
}

/* MSE and its SE, HID, OT1: not where the residue has lost atoms that its name
 * promises. */
static void name_as_in_file(tsr_model_atom *to, const tsr_residue_record *in,
                            const tsr_atom *a)
{
    if (in->is_cut || strlen(in->file_name) >= sizeof to->residue)
        return;
    snprintf(to->residue, sizeof to->residue, "%.3s", in->file_name);
    snprintf(to->name, sizeof to->name, "%.4s", a->file_name);
    if (strcmp(to->residue, "MSE") == 0 && strcmp(a->name, "SD") == 0)
        snprintf(to->element, sizeof to->element, "SE");
}

/* What a side chain is fixed to: CA and the plane N-CA-C, whose angle is drawn;
 * of a proline, which is bound to N as well, N and CA exactly. */
static void side_frame(double frame[3][3], const placed_residue *r,
                       const double *n, const double *ca, const double *c)
{
    if (r->is_ring)
        tsr_frame(frame, c, ca, n);
    else
        tsr_frame(frame, n, ca, c);
}

/* A residue of the input: its atoms are added to the list. */
static tsr_status add_residue(tsr_all_atoms *all, const tsr_model_atoms *model,
                              int r, const tsr_structure *input, tsr_err *err)
{
    const tsr_residue_record *in = &input->residue[r];
    const tsr_model_atom *ours = &model->atom[model->ca[r]];
    placed_residue *to = &all->residue[r];
    const tsr_atom *n = tsr_residue_atom(input, in, "N");
    const tsr_atom *ca = tsr_residue_atom(input, in, "CA");
    const tsr_atom *c = tsr_residue_atom(input, in, "C");
    double frame[3][3], sum[3] = {0.0}, mass = 0.0;
    if (strcmp(in->name, ours->residue) != 0 || in->number != ours->number)
        return differs(model, r, in, err);
    const int start = first_of(model, r);
    *to = (placed_residue){.first = all->list.n_atom,
                           .count = in->n_atom,
                           .model_first = start,
                           .n = find(model, r, "N") - start,
                           .ca = model->ca[r] - start,
                           .c = find(model, r, "C") - start,
                           .o = find(model, r, "O") - start,
                           .sc = find(model, r, "SC") - start,
                           .cb = -1,
                           .is_ring = strcmp(in->name, "PRO") == 0};
    if (to->n < 0 || to->c < 0)
        return differs(model, r, in, err);
    side_frame(frame, to, n->xyz, ca->xyz, c->xyz);
    for (int k = 0; k < in->n_atom; k++) {
        const tsr_atom *a = &input->atom[in->first_atom + k];
        const int at = all->list.n_atom++;
        tsr_model_atom *out = &all->list.atom[at];
        recipe *how = &all->recipe[at];
        *out = *ours;
        snprintf(out->name, sizeof out->name, "%.4s", a->name);
        snprintf(out->element, sizeof out->element, "%.2s",
                 tsr_atom_symbol(a->z));
        snprintf(out->chain_id, sizeof out->chain_id, "%s", in->chain);
        out->at = r;
        tsr_vec3_copy(&all->list.xyz[3 * at], a->xyz);
        tsr_frame_to_local(how->local, frame, ca->xyz, a->xyz);
        const int own = is_backbone(a->name) ? find(model, r, a->name) : -1;
        if (own >= 0) {
            how->from = FROM_MODEL;
            how->model = own - start;
            memcpy(out->element, model->atom[own].element, sizeof out->element);
        } else if (strcmp(a->name, "OXT") == 0 && to->o >= 0) {
            how->from = FROM_O;
            how->local[0] = tsr_vec3_distance(a->xyz, c->xyz);
        } else if (strcmp(a->name, "CB") == 0 || is_backbone(a->name)) {
            how->from = FROM_FRAME;
        } else {
            how->from = FROM_SIDE;
            /* the model's centres are weighted so, too */
            const double m = tsr_atom_mass(a->z);
            for (int d = 0; d < 3; d++)
                sum[d] += m * how->local[d];
            mass += m;
        }
        if (strcmp(a->name, "CB") == 0) {
            to->cb = at;
            tsr_vec3_copy(to->cb_local, how->local);
        }
        if (strcmp(a->name, "CA") == 0)
            all->list.ca[r] = at;
        name_as_in_file(out, in, a);
    }
    for (int d = 0; d < 3 && mass > 0.0; d++)
        to->side_local[d] = sum[d] / mass;
    /* a proline's ring ends at N, so it cannot turn */
    if (!(mass > 0.0) || to->is_ring)
        to->sc = -1;
    return TSR_OK;
}

/* What is no amino acid is in the model, atom by atom, and stands last. */
static void add_guests(tsr_all_atoms *all, const tsr_model_atoms *model)
{
    for (int i = 0; i < model->n_atom; i++) {
        if (!model->atom[i].guest_kind)
            continue;
        const int at = all->list.n_atom++;
        all->list.atom[at] = model->atom[i];
        tsr_vec3_copy(&all->list.xyz[3 * at], &model->xyz[3 * i]);
        all->recipe[at] = (recipe){.from = FROM_MODEL, .model = i};
        const int of = model->atom[i].at; /* -1: no nucleotide */
        if (model->is_nucleic && of >= 0 && i == model->ca[of])
            all->list.ca[of] = at;
    }
}

tsr_status tsr_all_atoms_new(const tsr_model_atoms *model,
                             const tsr_structure *input, tsr_all_atoms **out,
                             tsr_err *err)
{
    const size_t n = (size_t)input->n_atom + (size_t)model->n_atom;
    const size_t n_residue = (size_t)model->n_residue;
    const int n_amino = model->is_nucleic ? 0 : model->n_residue;
    *out = NULL;
    if (input->n_residue != n_amino) {
        const int r = input->n_residue < n_amino ? input->n_residue
                                                 : model->n_residue - 1;
        return differs(model, r,
                       r < input->n_residue ? &input->residue[r] : NULL, err);
    }
    tsr_pool pool = {0};
    tsr_all_atoms *all = tsr_pool_new(&pool, 1, sizeof *all), made = {0};
    tsr_pool_array(&pool, made.list.atom, n);
    tsr_pool_array(&pool, made.list.xyz, 3 * n);
    tsr_pool_array(&pool, made.list.ca, n_residue);
    tsr_pool_array(&pool, made.recipe, n);
    tsr_pool_array(&pool, made.residue, n_residue);
    tsr_status status = tsr_pool_check(&pool, err);
    made.list.n_residue = model->n_residue;
    made.list.is_nucleic = model->is_nucleic;
    for (; made.n_amino < n_amino && status == TSR_OK; made.n_amino++)
        status = add_residue(&made, model, made.n_amino, input, err);
    if (status != TSR_OK) {
        tsr_pool_clear(&pool);
        return status;
    }
    add_guests(&made, model);
    *all = made;
    all->pool = pool;
    *out = all;
    return TSR_OK;
}

/* The turn about the axis from CA to CB that brings the centre of the side
 * chain nearest to the drawn one. */
static double best_turn(const double ca[3], const double cb[3],
                        const double centre[3], const double drawn[3])
{
    double axis[3], a[3], b[3], normal[3];
    tsr_vec3_sub(axis, cb, ca);
    tsr_vec3_normalize(axis);
    tsr_vec3_sub(a, centre, ca);
    tsr_vec3_sub(b, drawn, ca);
    const double along_a = tsr_vec3_dot(a, axis);
    const double along_b = tsr_vec3_dot(b, axis);
    for (int d = 0; d < 3; d++) {
        a[d] -= along_a * axis[d];
        b[d] -= along_b * axis[d];
    }
    tsr_vec3_cross(normal, a, b);
    /* one of them on the axis: any turn is as good, so none */
    return atan2(tsr_vec3_dot(normal, axis), tsr_vec3_dot(a, b));
}

/* What carries the atoms of a residue. */
typedef struct {
    double frame[3][3], side[3][3]; /* at CA; the second turned about CA-CB */
    double carbonyl[3][3];          /* at C, where the model has O */
    double host[3][3];              /* at CA, of N-CA-C; for guests */
    tsr_motion base;                /* in that frame */
    double ca[3], c[3];
} carrier;

static void find_carrier(const placed_residue *at, const double (*model)[3],
                         carrier *to)
{
    const double *ca = model[at->ca], *c = model[at->c];
    double cb[3], centre[3];
    tsr_motion turn;
    side_frame(to->frame, at, model[at->n], ca, c);
    tsr_vec3_copy(to->ca, ca);
    tsr_vec3_copy(to->c, c);
    memcpy(to->side, to->frame, sizeof to->side);
    memcpy(to->carbonyl, to->frame, sizeof to->carbonyl);
    if (at->o >= 0)
        tsr_frame(to->carbonyl, ca, c, model[at->o]);
    if (at->cb < 0 || at->sc < 0)
        return;
    tsr_frame_to_global(cb, to->frame, ca, at->cb_local);
    tsr_frame_to_global(centre, to->frame, ca, at->side_local);
    tsr_motion_about(&turn, ca, cb, best_turn(ca, cb, centre, model[at->sc]));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            to->side[i][k] = 0.0;
            for (int d = 0; d < 3; d++)
                to->side[i][k] += turn.rotation[i][d] * to->frame[d][k];
        }
}

/* OXT. */
static void place_opposite(const placed_residue *at, const double (*model)[3],
                           double bond_ang, double out[3])
{
    const double *ca = model[at->ca], *c = model[at->c];
    double axis[3], bond[3];
    tsr_vec3_sub(axis, c, ca);
    tsr_vec3_normalize(axis);
    tsr_vec3_sub(bond, model[at->o], c);
    tsr_vec3_normalize(bond);
    const double along = 2.0 * tsr_vec3_dot(bond, axis);
    for (int d = 0; d < 3; d++)
        out[d] = c[d] + bond_ang * (along * axis[d] - bond[d]);
}

static void place_one(const recipe *how, const placed_residue *at, carrier *by,
                      const double (*model)[3], double out[3])
{
    double turned[3];
    switch (how->from) {
    case FROM_MODEL:
        tsr_vec3_copy(out, model[how->model]);
        break;
    case FROM_O:
        place_opposite(at, model, how->local[0], out);
        break;
    case FROM_CARBONYL:
        tsr_frame_to_global(out, by->carbonyl, by->c, how->local);
        break;
    case FROM_FRAME:
        tsr_frame_to_global(out, by->frame, by->ca, how->local);
        break;
    case FROM_SIDE:
        tsr_frame_to_global(out, by->side, by->ca, how->local);
        break;
    case FROM_HOST:
        tsr_frame_to_global(out, by->host, by->ca, how->local);
        break;
    case FROM_BASE:
        tsr_vec3_copy(turned, how->local);
        tsr_motion_apply(&by->base, turned);
        tsr_frame_to_global(out, by->host, by->ca, turned);
        break;
    }
}

/* The atoms of one amino acid: model [its atoms in the model][3] -> xyz.
 * Returns how many these are. */
static int place_amino(const tsr_all_atoms *all, int residue_number,
                       const double (*model)[3], carrier *by, double (*xyz)[3])
{
    const placed_residue *at = &all->residue[residue_number];
    find_carrier(at, model, by);
    for (int k = 0; k < at->count; k++)
        place_one(&all->recipe[at->first + k], at, by, model, xyz[k]);
    return at->count;
}

void tsr_all_atoms_place(const tsr_all_atoms *all, const double (*model_xyz)[3],
                         double (*xyz)[3])
{
    int i = 0;
    carrier by;
    for (int r = 0; r < all->n_amino; r++)
        i += place_amino(all, r, model_xyz + all->residue[r].model_first, &by,
                         xyz + i);
    for (; i < all->list.n_atom; i++) /* guests */
        tsr_vec3_copy(xyz[i], model_xyz[all->recipe[i].model]);
}

/* ---- curves of all atoms ----
 *
 * Places all atoms for a conformation of the run, builds the scatterers with
 * their layer of water, and sums their profile, on the device where there is
 * one. */

/* Beyond this share of incomplete residues what is there says too little. */
static const double most_cut = 0.1;

struct tsr_atom_curves {
    tsr_pool pool; /* of what it holds, and of itself */
    const tsr_molecule *molecule;
    tsr_q_grid grid;
    const tsr_device *device;
    tsr_all_atoms *all;
    tsr_atoms atoms;    /* where they were placed last */
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
    tsr_pool pool = curves->pool;
    tsr_debye_sum_free(curves->sum);
    tsr_all_atoms_free(curves->all);
    tsr_pool_clear(&pool);
}

static void append_guests(const tsr_guests *g, tsr_atoms *to)
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

/* The atoms of the run: the protein of the file, then what else the run has,
 * into arrays that have room for them. */
static void take_atoms(const tsr_structure *s, const tsr_guests *guests,
                       tsr_atoms *to)
{
    to->n_atom = s->n_atom;
    to->n_residue = s->n_residue;
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
    append_guests(guests, to);
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
    if (c->device == NULL)
        return TSR_OK;
    /* atoms and layer may reach beyond the band of the bodies: any distance */
    TSR_TRY(tsr_debye_sum_new(c->device, c->grid.n_q, c->grid.dq_inv_ang, 1,
                              0.0, NULL, &c->sum, err));
    return tsr_debye_sum_test(c->sum, NULL, err);
}

static tsr_status fill_curves(tsr_atom_curves *c, const tsr_structure *input,
                              int *n_cut, tsr_err *err)
{
    const tsr_topology *t = c->molecule->topology;
    const int n_atom = input->n_atom + tsr_guests_n_atom(t->guests);
    tsr_pool_array(&c->pool, c->atoms.atom, n_atom);
    tsr_pool_array(&c->pool, c->atoms.residue,
                   input->n_residue + tsr_guests_n_residue(t->guests));
    tsr_pool_array(&c->pool, c->model, tsr_topology_n_atom(t));
    tsr_pool_array(&c->pool, c->xyz, input->n_atom + tsr_topology_n_atom(t));
    tsr_pool_array(&c->pool, c->body, n_atom);
    tsr_pool_array(&c->pool, c->is_cut, input->n_residue);
    c->atoms.path = tsr_pool_text(&c->pool, c->molecule->file);
    TSR_TRY(tsr_pool_check(&c->pool, err));
    TSR_TRY(check_whole(input, c->is_cut, n_cut, err));
    take_atoms(input, t->guests, &c->atoms);
    find_bodies(t, &c->atoms, c->body);
    tsr_model_atoms *model = tsr_topology_model(t, c->molecule->first);
    tsr_status status = tsr_allocated(model, err);
    TSR_THEN(status, tsr_all_atoms_new(model, input, &c->all, err));
    tsr_model_atoms_free(model);
    return status;
}

tsr_status tsr_atom_curves_new(const tsr_molecule *molecule,
                               const tsr_q_grid *grid, const tsr_device *device,
                               int *n_cut, tsr_atom_curves **out, tsr_err *err)
{
    tsr_pool pool = {0};
    tsr_structure *input = NULL;
    *out = NULL;
    TSR_TRY(tsr_structure_read_any(molecule->file, &input, err));
    tsr_atom_curves *c = tsr_pool_new(&pool, 1, sizeof *c);
    tsr_status status = tsr_allocated(c, err);
    if (c != NULL)
        *c = (tsr_atom_curves){
            .pool = pool, .molecule = molecule, .device = device};
    if (c != NULL && grid != NULL)
        c->grid = *grid;
    TSR_THEN(status, fill_curves(c, input, n_cut, err));
    TSR_THEN(status, open_sum(c, err));
    tsr_structure_free(input);
    if (status == TSR_OK)
        *out = c;
    else
        tsr_atom_curves_free(c);
    return status;
}

tsr_status tsr_atom_curves_try(const tsr_molecule *molecule, tsr_log *log,
                               tsr_atom_curves **out, tsr_err *err)
{
    tsr_err why = {.status = TSR_OK};
    *out = NULL;
    if (molecule->file == NULL ||
        tsr_atom_curves_new(molecule, NULL, NULL, NULL, out, &why) == TSR_OK)
        return TSR_OK;
    if (why.status == TSR_E_NOMEM)
        return tsr_fail(err, why.status, "%s", why.message);
    tsr_info(log, "hydration: estimated from bodies alone: %s", why.message);
    return TSR_OK;
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
    const int is_cpu = tsr_device_get_info(c->device)->type == TSR_DEVICE_CPU;
    const tsr_method_speed speed = {
        .n_thread = 1, .host = 1.0, .pair_s = is_cpu ? core_s : gpu_s};
    return tsr_method_seconds(TSR_METHOD_FFT, spec, 0.0, &speed) <
           tsr_method_seconds(TSR_METHOD_DIRECT, spec, 0.0, &speed);
}

/* Such a model for a Debye sum, of neutrons with a series that begins at
 * `origin`. It points into the model and *factor, which the caller frees, also
 * after an error. Errors: TSR_E_NOMEM. */
static tsr_status model_spec(const tsr_atom_model *model, double origin,
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
    *out = tsr_atom_model_spec(model, n_q, dq_inv_ang, *factor);
    return status;
}

/* origin: of neutrons. */
static tsr_status sum_up(tsr_atom_curves *c, const tsr_atom_model *model,
                         double origin, double *partial, tsr_err *err)
{
    double *factor;
    tsr_debye_spec spec;
    tsr_status status = model_spec(model, origin, c->grid.n_q,
                                   c->grid.dq_inv_ang, &factor, &spec, err);
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

tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err)
{
    tsr_atom_curves *c = curves;
    tsr_conformation_atoms(c->molecule->topology, conformation, c->model);
    tsr_all_atoms_place(c->all, (const double(*)[3])c->model, c->xyz);
    for (int i = 0; i < c->atoms.n_atom; i++)
        memcpy(c->atoms.atom[i].xyz, c->xyz[i], sizeof c->xyz[i]);
    return tsr_atom_model_new(&c->atoms, solvent, c->molecule->density, model,
                              err);
}

tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, double *radius_ang,
                                   tsr_err *err)
{
    tsr_atom_model *model = NULL;
    double match;
    tsr_status status = tsr_atom_curves_place(curves, conformation,
                                              TSR_SOLVENT_LAYER, &model, err);
    if (neutron != NULL)
        TSR_THEN(status, tsr_neutron_apply(neutron, &curves->atoms, model, NULL,
                                           &match, err));
    else if (status == TSR_OK)
        *radius_ang = model->power_radius_ang;
    TSR_THEN(status, sum_up(curves, model, origin, partial, err));
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
        status = tsr_neutron_bodies_new(
            model, c->molecule->topology->n_body, body,
            (const double(*)[3])conformation->body, basis, out, err);
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
    const tsr_topology *t = c->molecule->topology;
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
                                  const tsr_molecule *molecule,
                                  const tsr_conformation *conformation,
                                  double *exposure, tsr_err *err)
{
    const tsr_topology *t = molecule->topology;
    const tsr_form_factor_table *table = molecule->components;
    const double(*xyz)[3] = (const double(*)[3])conformation->body;
    tsr_pool room = {0};
    int *type, *dry;
    tsr_pool_array(&room, type, t->n_body);
    tsr_pool_array(&room, dry, t->n_body);
    tsr_status status = tsr_pool_check(&room, err);
    for (int b = 0; b < t->n_body && status == TSR_OK; b++) {
        type[b] = t->body[b].type;
        dry[b] = type[b] >= table->n_trained && table->exposed[type[b]] == 0.0;
    }
    if (status == TSR_OK)
        tsr_form_factor_expose(table, t->n_body, type, xyz, exposure);
    if (curves != NULL)
        TSR_THEN(status, expose_atoms(curves, conformation, exposure, err));
    TSR_THEN(status, tsr_exposure_carry(&table->exposure, t->n_body, xyz, dry,
                                        exposure, err));
    tsr_pool_clear(&room);
    return status;
}

/* ---- particles ----
 *
 * Which particles a residue has, where they are, and what they scatter. Those
 * of a residue are its atoms, the beads on them, then the atoms of guests that
 * it carries and their beads. */

/* A unit of fewer residues or particles has no table: three bodies far apart
 * have to tell where it is, and what a table saves has to be worth a read. */
enum { LEAST_RESIDUES = 3, LEAST_PARTICLES = 100 };

/* How much farther from CA than in the first conformation a residue's first
 * body can come, where N-CA-C bends, Angstrom. */
static const double bending_ang = 0.5;

/* What rides on a residue: a bead of water, or what a guest brings along. */
typedef struct {
    recipe how;
    int number; /* in the model */
} rider;

typedef struct {
    tsr_particles base;
    tsr_pool pool; /* of what it holds, and of itself */
    const tsr_topology *topology;
    const tsr_conformation *first; /* whose layer rides; of the run's start */
    const tsr_likelihood *likelihood; /* of bodies: its probes */
    tsr_atom_curves *curves;
    int n_probe;
    tsr_atom_model **model; /* [n_probe] in the first conformation */
    rider *rider;           /* [n_all] by residue */
    int *first_rider;       /* [n_residue + 1] */
    int *first_all;         /* [n_residue + 1] of all particles */
    int *number;            /* [n_all] of a particle in the model */
    int *kind;              /* [n_all] its type */
    int *sample;            /* [n_kind - 1] number of one of that type */
    double (*inside)[3];    /* what base.inside points to */
    int *inside_kind, *inside_unit;
} atom_particles;

static const atom_particles *own(const tsr_particles *particles)
{
    return (const atom_particles *)particles;
}

static int is_amino(const atom_particles *p, int residue)
{
    return p->topology->residue[residue].link == TSR_LINK_NONE;
}

static void free_particles(tsr_particles *particles)
{
    atom_particles *p = (atom_particles *)particles;
    tsr_pool pool = p->pool;
    for (int i = 0; i < p->n_probe; i++)
        tsr_atom_model_free(p->model[i]);
    tsr_atom_curves_free(p->curves);
    tsr_pool_clear(&pool);
}

/* ---- where they are ---- */

/* All particles of a residue: xyz [.][3] out. Returns how many. */
static int place_residue(const atom_particles *p, const tsr_conformation *c,
                         int residue, double (*xyz)[3])
{
    const tsr_topology *t = p->topology;
    const tsr_all_atoms *all = p->curves->all;
    const double(*x)[3] = (const double(*)[3])c->backbone[residue];
    const int amino = is_amino(p, residue);
    const placed_residue *at = &all->residue[amino ? residue : 0];
    const rider *r = p->rider + p->first_rider[residue];
    const rider *end = p->rider + p->first_rider[residue + 1];
    double model[TSR_MODEL_ATOMS][3] = {{0.0}};
    carrier by = {.ca = {0.0}};
    int n = 0, has_base = 0;
    if (amino) {
        tsr_conformation_residue_atoms(t, c, residue, model);
        n = place_amino(all, residue, (const double(*)[3])model, &by, xyz);
    }
    if (r < end && end[-1].how.from >= FROM_HOST) { /* guests are last */
        tsr_vec3_copy(by.ca, x[TSR_CA]);
        tsr_frame(by.host, x[TSR_N], x[TSR_CA], x[TSR_C]);
    }
    for (; r < end; r++) {
        if (r->how.from == FROM_BASE && !has_base)
            tsr_conformation_base(t, c, residue, &by.base);
        has_base |= r->how.from == FROM_BASE;
        place_one(&r->how, at, &by, (const double(*)[3])model, xyz[n++]);
    }
    return n;
}

static void place(const tsr_particles *particles,
                  const tsr_conformation *conformation, int residue, int count,
                  double (*xyz)[3])
{
    const tsr_particles *b = particles;
    const tsr_topology *t = own(b)->topology;
    for (int r = residue; r < residue + count; r++) {
        const int n = b->first[r + 1] - b->first[r];
        if (n > 0 && b->unit[b->first[r]] >= 0)
            memcpy(xyz, conformation->body + t->residue[r].first_body,
                   (size_t)n * sizeof *xyz);
        else
            place_residue(own(b), conformation, r, xyz);
        xyz += n;
    }
}

/* ---- what they scatter ---- */

static tsr_status factors(const tsr_particles *particles, int probe, int n_q,
                          double dq_inv_ang, double *factor, tsr_err *err)
{
    const atom_particles *p = own(particles);
    const tsr_atom_model *m = p->model[probe];
    const tsr_probe *as = &p->likelihood->probe[probe];
    const size_t n_kind = (size_t)particles->n_kind, row = (size_t)n_q;
    const double origin = as->is_neutron ? as->basis.origin : 0.0;
    double *each;
    tsr_debye_spec spec;
    tsr_status status =
        model_spec(m, origin, n_q, dq_inv_ang, &each, &spec, err);
    memset(factor, 0, TSR_N_COMP * n_kind * row * sizeof *factor);
    for (size_t k = 0; status == TSR_OK && k + 1 < n_kind; k++)
        for (int a = 0; a < TSR_N_COMP; a++) {
            const int i = p->sample[k];
            const double *f = tsr_debye_factor(&spec, a, m->type[i]);
            const double by = a == TSR_ATOM_HYDRATION ? m->surface[i] : 1.0;
            for (size_t q = 0; q < row; q++)
                factor[((size_t)a * n_kind + k) * row + q] = by * f[q];
        }
    free(each);
    if (status != TSR_OK)
        return status;
    if (as->is_neutron) {
        tsr_neutron_fold_factors(&as->basis, p->likelihood->contrast,
                                 n_kind * row, factor);
        return TSR_OK;
    }
    tsr_factors_fold(p->likelihood->contrast, particles->radius_ang,
                     particles->n_kind, n_q, dq_inv_ang, factor);
    return TSR_OK;
}

static tsr_status direct(const tsr_particles *particles,
                         const tsr_conformation *conformation, int probe,
                         int n_q, double dq_inv_ang,
                         const tsr_debye_progress *progress, double *partial,
                         tsr_err *err)
{
    const atom_particles *p = own(particles);
    const tsr_probe *as = &p->likelihood->probe[probe];
    const int n_residue = p->topology->n_residue;
    const size_t n = (size_t)particles->n_all;
    const double origin = as->is_neutron ? as->basis.origin : 0.0;
    double *each = NULL;
    tsr_debye_spec spec;
    double(*xyz)[3] = calloc(2 * n + 1, sizeof *xyz), (*in_model)[3] = xyz + n;
    TSR_TRY(tsr_allocated(xyz, err));
    for (int r = 0; r < n_residue; r++)
        place_residue(p, conformation, r, xyz + p->first_all[r]);
    for (size_t i = 0; i < n; i++)
        tsr_vec3_copy(in_model[p->number[i]], xyz[i]);
    tsr_status status =
        model_spec(p->model[probe], origin, n_q, dq_inv_ang, &each, &spec, err);
    spec.xyz = (const double(*)[3])in_model;
    TSR_THEN(status, tsr_method_run(TSR_METHOD_FFT, &spec, 0.0, 1, progress,
                                    partial, err));
    free(each);
    free(xyz);
    if (status == TSR_OK && as->is_neutron)
        tsr_neutron_fold(&as->basis, p->likelihood->contrast, n_q, partial);
    else if (status == TSR_OK)
        tsr_partials_fold(p->likelihood->contrast, particles->radius_ang, n_q,
                          dq_inv_ang, partial);
    return status;
}

static const tsr_particles_type atom_type = {free_particles, place, factors,
                                             direct};

/* ---- making them ---- */

static tsr_status make_models(atom_particles *p, const tsr_neutron *sample,
                              tsr_err *err)
{
    const tsr_likelihood *l = p->likelihood;
    double match;
    tsr_pool_array(&p->pool, p->model, l->n_probe);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (; p->n_probe < l->n_probe; p->n_probe++) {
        tsr_atom_model **m = &p->model[p->n_probe];
        TSR_TRY(tsr_atom_curves_place(p->curves, p->first, TSR_SOLVENT_LAYER, m,
                                      err));
        if (l->probe[p->n_probe].is_neutron)
            TSR_TRY(tsr_neutron_apply(&sample[p->n_probe], &p->curves->atoms,
                                      *m, NULL, &match, err));
        p->base.radius_ang = (*m)->power_radius_ang;
    }
    p->base.n_all = p->model[0]->n;
    return TSR_OK;
}

/* How a bead at x goes along with an atom, of which that is the recipe. */
static recipe ride_on_atom(const recipe *atom, const placed_residue *at,
                           carrier *by, const double x[3])
{
    const int is_o = atom->from == FROM_O ||
                     (atom->from == FROM_MODEL && atom->model == at->o);
    recipe out = {.from = is_o                      ? FROM_CARBONYL
                          : atom->from == FROM_SIDE ? FROM_SIDE
                                                    : FROM_FRAME};
    if (is_o)
        tsr_frame_to_local(out.local, by->carbonyl, by->c, x);
    else
        tsr_frame_to_local(
            out.local, out.from == FROM_SIDE ? by->side : by->frame, by->ca, x);
    return out;
}

/* How a point of a guest goes along with its host. */
static recipe ride_on_host(const atom_particles *p, int host, int turns,
                           const double x[3])
{
    const double(*b)[3] = (const double(*)[3])p->first->backbone[host];
    double frame[3][3], back[3];
    tsr_motion turn;
    recipe out = {.from = turns ? FROM_BASE : FROM_HOST};
    tsr_frame(frame, b[TSR_N], b[TSR_CA], b[TSR_C]);
    tsr_frame_to_local(out.local, frame, b[TSR_CA], x);
    if (!turns)
        return out;
    tsr_conformation_base(p->topology, p->first, host, &turn);
    tsr_vec3_sub(back, out.local, turn.shift);
    for (int k = 0; k < 3; k++) {
        out.local[k] = 0.0;
        for (int d = 0; d < 3; d++)
            out.local[k] += turn.rotation[d][k] * back[d];
    }
    return out;
}

/* The particles of an amino acid: its atoms, and the beads on them from *bead
 * on. *n, *n_rider: particles and riders so far. */
static void list_amino(atom_particles *p, int residue, int *bead, int *n,
                       int *n_rider)
{
    const tsr_atom_model *m = p->model[0];
    const tsr_all_atoms *all = p->curves->all;
    const placed_residue *at = &all->residue[residue];
    const int end = at->first + at->count;
    double model[TSR_MODEL_ATOMS][3];
    carrier by;
    tsr_conformation_residue_atoms(p->topology, p->first, residue, model);
    find_carrier(at, (const double(*)[3])model, &by);
    for (int k = at->first; k < end; k++)
        p->number[(*n)++] = k;
    for (; *bead < m->n && m->owner[*bead] < end; ++*bead)
        p->rider[(*n_rider)++] = (rider){
            ride_on_atom(&all->recipe[m->owner[*bead]], at, &by, m->xyz[*bead]),
            *bead};
}

/* What rides on every residue, and the model's number of every particle: atoms
 * of an amino acid, beads on them, then atoms of guests but hydrogens with the
 * beads on these. In the model beads come behind all atoms, those of amino
 * acids first. */
static tsr_status list_all(atom_particles *p, tsr_err *err)
{
    const tsr_atom_model *m = p->model[0];
    const tsr_topology *t = p->topology;
    const tsr_guests *g = t->guests;
    const int n_of = tsr_guests_n_atom(g);
    const int n_amino = p->curves->atoms.n_atom - n_of;
    int n = 0, n_rider = 0, bead = m->n_atom, *atom, n_atom = n_amino;
    tsr_pool_array(&p->pool, atom, m->n_atom);
    tsr_pool_array(&p->pool, p->rider, m->n);
    tsr_pool_array(&p->pool, p->first_rider, t->n_residue + 1);
    tsr_pool_array(&p->pool, p->first_all, t->n_residue + 1);
    tsr_pool_array(&p->pool, p->number, m->n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int i = 0; i < n_of; i++)
        if (g->atoms->atom[i].z != 1)
            atom[n_atom++] = i;
    for (int r = 0; r < t->n_residue; r++) {
        p->first_all[r] = n;
        p->first_rider[r] = n_rider;
        if (is_amino(p, r))
            list_amino(p, r, &bead, &n, &n_rider);
        for (int k = n_amino; k < m->n && n_of > 0; k++) {
            const int of = m->owner[k], i = of >= n_amino ? atom[of] : -1;
            if (i >= 0 && g->host[i] == r)
                p->rider[n_rider++] =
                    (rider){ride_on_host(p, r, g->with_base[i], m->xyz[k]), k};
        }
        for (int k = p->first_rider[r]; k < n_rider; k++)
            p->number[n++] = p->rider[k].number;
    }
    p->first_all[t->n_residue] = n;
    p->first_rider[t->n_residue] = n_rider;
    return n == m->n
               ? TSR_OK
               : tsr_fail(err, TSR_E_INTERNAL,
                          "%d of %d atoms and beads have a residue", n, m->n);
}

/* What all probes see alike is of one type. */
static int is_alike(const atom_particles *p, int i, int j)
{
    int alike = i < p->model[0]->n_atom && j < p->model[0]->n_atom;
    for (int k = 0; k < p->n_probe && alike; k++)
        alike = p->model[k]->type[i] == p->model[k]->type[j];
    return alike;
}

static tsr_status find_kinds(atom_particles *p, tsr_err *err)
{
    const int n = p->base.n_all;
    int n_kind = 0, n_atom_kind = 0, *by_number;
    tsr_pool_array(&p->pool, p->kind, n);
    tsr_pool_array(&p->pool, by_number, n);
    tsr_pool_array(&p->pool, p->sample, n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int i = 0; i < n; i++) { /* atoms come before beads in the model */
        int k = 0;
        while (k < n_atom_kind && !is_alike(p, i, p->sample[k]))
            k++;
        if (i >= p->model[0]->n_atom)
            k = n_kind;
        if (k == n_kind)
            p->sample[n_kind++] = i;
        if (i < p->model[0]->n_atom)
            n_atom_kind = n_kind;
        by_number[i] = k;
    }
    for (int i = 0; i < n; i++)
        p->kind[i] = by_number[p->number[i]];
    p->base.n_kind = n_kind + 1;
    return TSR_OK;
}

/* The unit of a residue, where that has a table; else -1. count, residues
 * [n_residue]: particles and residues of every unit. */
static int table_of(const atom_particles *p, const int *count,
                    const int *residues, int r)
{
    const int unit = p->topology->residue[r].unit;
    return unit >= 0 && count[unit] >= LEAST_PARTICLES &&
                   residues[unit] >= LEAST_RESIDUES
               ? unit
               : -1;
}

static tsr_status reserve(atom_particles *p, tsr_err *err)
{
    const int n_all = p->base.n_all, n = n_all + p->topology->n_body;
    tsr_particles *b = &p->base;
    tsr_pool_array(&p->pool, b->first, p->topology->n_residue + 1);
    tsr_pool_array(&p->pool, b->kind, n);
    tsr_pool_array(&p->pool, b->unit, n);
    tsr_pool_array(&p->pool, b->start, n);
    tsr_pool_array(&p->pool, p->inside, n_all);
    tsr_pool_array(&p->pool, p->inside_kind, n_all);
    tsr_pool_array(&p->pool, p->inside_unit, n_all);
    b->inside = (tsr_engine_inside){.xyz = (const double(*)[3])p->inside,
                                    .type = p->inside_kind,
                                    .unit = p->inside_unit};
    return tsr_pool_check(&p->pool, err);
}

/* No particle of a residue is farther from its first body than this, whatever
 * the side chain does: atoms keep their distances from CA. */
static double margin_of(const atom_particles *p, int r, int n,
                        const double (*xyz)[3])
{
    const tsr_conformation *c = p->first;
    const double *ca = c->backbone[r][TSR_CA];
    double most = 0.0;
    for (int i = 0; i < n; i++)
        most = fmax(most, tsr_vec3_distance(xyz[i], ca));
    return most + bending_ang +
           tsr_vec3_distance(ca, c->body[p->topology->residue[r].first_body]);
}

/* Residue by residue: into a unit's table, or particles of their own. */
static void lay_out(atom_particles *p, const int *count, const int *residues,
                    double (*xyz)[3])
{
    const tsr_topology *t = p->topology;
    tsr_particles *b = &p->base;
    for (int r = 0; r < t->n_residue; r++) {
        const int unit = table_of(p, count, residues, r);
        const int n = place_residue(p, p->first, r, xyz);
        const int *kind = p->kind + p->first_all[r];
        b->first[r] = b->n;
        b->margin_ang =
            fmax(b->margin_ang, margin_of(p, r, n, (const double(*)[3])xyz));
        for (int k = 0; k < n && unit >= 0; k++, b->inside.n++) {
            tsr_vec3_copy(p->inside[b->inside.n], xyz[k]);
            p->inside_kind[b->inside.n] = kind[k];
            p->inside_unit[b->inside.n] = unit;
        }
        for (int k = 0; k < n && unit < 0; k++, b->n++) {
            tsr_vec3_copy(b->start[b->n], xyz[k]);
            b->kind[b->n] = kind[k];
            b->unit[b->n] = -1;
        }
        for (int k = 0; k < t->residue[r].n_body && unit >= 0; k++, b->n++) {
            tsr_vec3_copy(b->start[b->n],
                          p->first->body[t->residue[r].first_body + k]);
            b->kind[b->n] = b->n_kind - 1;
            b->unit[b->n] = unit;
        }
    }
    b->first[t->n_residue] = b->n;
}

static tsr_status arrange(atom_particles *p, tsr_err *err)
{
    const tsr_topology *t = p->topology;
    int *count, *residues;
    double(*xyz)[3];
    tsr_pool_array(&p->pool, count, t->n_residue + 1);
    tsr_pool_array(&p->pool, residues, t->n_residue + 1);
    tsr_pool_array(&p->pool, xyz, p->base.n_all);
    TSR_TRY(reserve(p, err));
    for (int r = 0; r < t->n_residue; r++)
        if (t->residue[r].unit >= 0) {
            count[t->residue[r].unit] += p->first_all[r + 1] - p->first_all[r];
            residues[t->residue[r].unit]++;
        }
    lay_out(p, count, residues, xyz);
    return TSR_OK;
}

tsr_status tsr_atom_particles_new(const tsr_likelihood *likelihood,
                                  const tsr_neutron *sample,
                                  tsr_atom_curves *curves, tsr_particles **out,
                                  tsr_err *err)
{
    const tsr_molecule *m = curves->molecule;
    tsr_pool pool = {0};
    atom_particles *p = tsr_pool_new(&pool, 1, sizeof *p);
    *out = NULL;
    if (p == NULL) {
        tsr_atom_curves_free(curves);
        return tsr_no_memory(err);
    }
    *p = (atom_particles){.base = {.type = &atom_type},
                          .pool = pool,
                          .topology = m->topology,
                          .first = m->first,
                          .likelihood = likelihood,
                          .curves = curves};
    tsr_status status = make_models(p, sample, err);
    TSR_THEN(status, list_all(p, err));
    TSR_THEN(status, find_kinds(p, err));
    TSR_THEN(status, arrange(p, err));
    if (status == TSR_OK)
        *out = &p->base;
    else
        free_particles(&p->base);
    return status;
}
