/* All atoms of a drawn conformation. Each atom of the input has a placement:
 * the local frame to which it is fixed, and its coordinates in that frame.
 * Frames are the drawn backbone, the frame of N-CA-C, and the frame of the side
 * chain, which is turned about CA-CB until the side-chain centre is nearest to
 * the drawn centre. */
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

/* The frame to which an atom is fixed. */
typedef enum {
    FROM_MODEL, /* drawn position: N, CA, C, O */
    FROM_FRAME, /* fixed to N, CA, C: CB */
    FROM_SIDE,  /* fixed to the side chain, which turns about CA-CB: atoms
                   beyond CB */
    FROM_O      /* the mirror image of O: OXT */
} source;

/* How an atom is placed. */
typedef struct {
    source from;
    int model;       /* FROM_MODEL: index of the atom in the model. Indices
                        of an amino acid, here and below, count from the first
                        atom of its residue */
    double local[3]; /* in the frame; FROM_O: [0] is the bond length */
} placement;

/* An amino acid whose atoms are placed. */
typedef struct {
    int first, count; /* atoms in the list */
    int model_first;  /* first atom in the model */
    int n, ca, c, o;  /* atoms of the model; o < 0: no O */
    int sc;           /* drawn side-chain centre; < 0: not used */
    int cb;           /* CB in the list; < 0: no CB */
    int is_ring;      /* proline */
    double cb_local[3], side_local[3]; /* CB and side-chain centre of the
                                          input, in the frame of the residue */
} placed_residue;

struct tsr_all_atoms {
    tsr_pool pool; /* owns all members and the struct itself */
    tsr_model_atoms list;
    placement *placement;    /* [list.n_atom] */
    placed_residue *residue; /* [n_amino] */
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

/* First atom of a residue in the model. */
static int first_atom_of(const tsr_model_atoms *model, int residue_number)
{
    int i = model->ca[residue_number];
    while (i > 0 && model->atom[i - 1].at == residue_number)
        i--;
    return i;
}

/* Atom of that name in a residue of the model, or -1. */
static int find_atom(const tsr_model_atoms *model, int residue_number,
                     const char *name)
{
    for (int i = first_atom_of(model, residue_number);
         i < model->n_atom && model->atom[i].at == residue_number; i++)
        if (strcmp(model->atom[i].name, name) == 0)
            return i;
    return -1;
}

static int is_backbone(const char *name)
{
    return strcmp(name, "N") == 0 || strcmp(name, "CA") == 0 ||
           strcmp(name, "C") == 0 || strcmp(name, "O") == 0 ||
           strcmp(name, "SC") == 0; /* an input that has side-chain centres */
}

static tsr_status report_difference(const tsr_model_atoms *model, int r,
                                    const tsr_residue_record *theirs,
                                    tsr_err *err)
{
    const tsr_model_atom *ours = &model->atom[model->ca[r]];
    char label[32] = "none";
    if (theirs != NULL)
        tsr_residue_label(theirs, label, sizeof label);
    return tsr_fail(err, TSR_E_DATA,
                    "residue %d of model.pdb is %s %c:%d, but of the input %s "
                    "%s; export the atoms of the model with --atoms model",
                    r + 1, ours->residue, ours->chain, ours->number,
                    theirs != NULL ? theirs->name : "", label);
}

/* Uses the names of the file (MSE with SE, HID, OT1), unless the residue has
 * lost atoms that its original name implies. */
static void use_file_names(tsr_model_atom *to, const tsr_residue_record *in,
                           const tsr_atom *a)
{
    if (in->is_cut || strlen(in->file_name) >= sizeof to->residue)
        return;
    snprintf(to->residue, sizeof to->residue, "%.3s", in->file_name);
    snprintf(to->name, sizeof to->name, "%.4s", a->file_name);
    if (strcmp(to->residue, "MSE") == 0 && strcmp(a->name, "SD") == 0)
        snprintf(to->element, sizeof to->element, "SE");
}

/* Frame of a side chain: origin CA, first axis towards C, second axis in the
 * plane of N, CA and C. The angle N-CA-C is drawn. For proline, whose ring is
 * bound to N, the first axis points to N, which keeps the ring closed. */
static void side_frame(double frame[3][3], const placed_residue *r,
                       const double *n, const double *ca, const double *c)
{
    if (r->is_ring)
        tsr_frame(frame, c, ca, n);
    else
        tsr_frame(frame, n, ca, c);
}

/* Appends the atoms of a residue of the input to the list. */
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
        return report_difference(model, r, in, err);
    const int start = first_atom_of(model, r);
    *to = (placed_residue){.first = all->list.n_atom,
                           .count = in->n_atom,
                           .model_first = start,
                           .n = find_atom(model, r, "N") - start,
                           .ca = model->ca[r] - start,
                           .c = find_atom(model, r, "C") - start,
                           .o = find_atom(model, r, "O") - start,
                           .sc = find_atom(model, r, "SC") - start,
                           .cb = -1,
                           .is_ring = strcmp(in->name, "PRO") == 0};
    if (to->n < 0 || to->c < 0)
        return report_difference(model, r, in, err);
    side_frame(frame, to, n->xyz, ca->xyz, c->xyz);
    for (int k = 0; k < in->n_atom; k++) {
        const tsr_atom *a = &input->atom[in->first_atom + k];
        const int at = all->list.n_atom++;
        tsr_model_atom *out = &all->list.atom[at];
        placement *how = &all->placement[at];
        *out = *ours;
        snprintf(out->name, sizeof out->name, "%.4s", a->name);
        snprintf(out->element, sizeof out->element, "%.2s",
                 tsr_atom_symbol(a->z));
        snprintf(out->chain_id, sizeof out->chain_id, "%s", in->chain);
        out->at = r;
        tsr_vec3_copy(&all->list.xyz[3 * at], a->xyz);
        tsr_frame_to_local(how->local, frame, ca->xyz, a->xyz);
        const int own =
            is_backbone(a->name) ? find_atom(model, r, a->name) : -1;
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
            /* mass-weighted, as the centres of the model */
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
        use_file_names(out, in, a);
    }
    for (int d = 0; d < 3 && mass > 0.0; d++)
        to->side_local[d] = sum[d] / mass;
    /* the ring of proline ends at N, so that it cannot turn */
    if (!(mass > 0.0) || to->is_ring)
        to->sc = -1;
    return TSR_OK;
}

/* Appends the guests, which the model contains atom by atom. */
static void add_guests(tsr_all_atoms *all, const tsr_model_atoms *model)
{
    for (int i = 0; i < model->n_atom; i++) {
        if (!model->atom[i].guest_kind)
            continue;
        const int at = all->list.n_atom++;
        all->list.atom[at] = model->atom[i];
        tsr_vec3_copy(&all->list.xyz[3 * at], &model->xyz[3 * i]);
        all->placement[at] = (placement){.from = FROM_MODEL, .model = i};
        const int of = model->atom[i].at; /* -1: not a nucleotide */
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
        return report_difference(
            model, r, r < input->n_residue ? &input->residue[r] : NULL, err);
    }
    tsr_pool pool = {0};
    tsr_all_atoms *all = tsr_pool_new(&pool, 1, sizeof *all), made = {0};
    tsr_pool_array(&pool, made.list.atom, n);
    tsr_pool_array(&pool, made.list.xyz, 3 * n);
    tsr_pool_array(&pool, made.list.ca, n_residue);
    tsr_pool_array(&pool, made.placement, n);
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

/* Angle of the turn about the axis from CA to CB that brings the side-chain
 * centre nearest to the drawn one, rad. */
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
    /* 0 if one of the two centres lies on the axis */
    return atan2(tsr_vec3_dot(normal, axis), tsr_vec3_dot(a, b));
}

/* Places OXT in the direction of O mirrored at the axis CA-C. */
static void place_oxt(const placed_residue *at, const double (*model)[3],
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

/* Frame of a residue's side chain, turned about CA-CB. `frame`: not turned. */
static void turned_frame(const placed_residue *at, const double (*model)[3],
                         double (*frame)[3], double (*side)[3])
{
    const double *ca = model[at->ca];
    double cb[3], centre[3];
    tsr_motion turn;
    memcpy(side, frame, sizeof(double[3][3]));
    if (at->cb < 0 || at->sc < 0)
        return;
    tsr_frame_to_global(cb, frame, ca, at->cb_local);
    tsr_frame_to_global(centre, frame, ca, at->side_local);
    tsr_motion_about(&turn, ca, cb, best_turn(ca, cb, centre, model[at->sc]));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            side[i][k] = 0.0;
            for (int d = 0; d < 3; d++)
                side[i][k] += turn.rotation[i][d] * frame[d][k];
        }
}

/* Places the atoms of an amino acid from its atoms in the model. */
static void place_amino(const placed_residue *at, const placement *how,
                        const double (*model)[3], double (*xyz)[3])
{
    const double *ca = model[at->ca];
    double frame[3][3], side[3][3];
    side_frame(frame, at, model[at->n], ca, model[at->c]);
    turned_frame(at, model, frame, side);
    for (int k = 0; k < at->count; k++)
        switch (how[k].from) {
        case FROM_MODEL:
            tsr_vec3_copy(xyz[k], model[how[k].model]);
            break;
        case FROM_O:
            place_oxt(at, model, how[k].local[0], xyz[k]);
            break;
        case FROM_FRAME:
            tsr_frame_to_global(xyz[k], frame, ca, how[k].local);
            break;
        case FROM_SIDE:
            tsr_frame_to_global(xyz[k], side, ca, how[k].local);
            break;
        }
}

void tsr_all_atoms_place(const tsr_all_atoms *all, const double (*model_xyz)[3],
                         double (*xyz)[3])
{
    int i = 0;
    for (int r = 0; r < all->n_amino; r++) {
        const placed_residue *at = &all->residue[r];
        place_amino(at, &all->placement[at->first], model_xyz + at->model_first,
                    xyz + i);
        i += at->count;
    }
    for (; i < all->list.n_atom; i++) /* guests */
        tsr_vec3_copy(xyz[i], model_xyz[all->placement[i].model]);
}

/* ---- scattering of all atoms ----
 *
 * Places all atoms, adds the hydration layer, and sums the profile, on the
 * device if there is one. */

/* Largest share of incomplete residues for which the atoms are used. */
static const double most_cut = 0.1;

struct tsr_atom_curves {
    tsr_pool pool; /* owns all arrays and the struct itself */
    const tsr_molecule *molecule;
    tsr_q_grid grid;
    const tsr_device *device;
    tsr_all_atoms *all;
    tsr_atoms atoms;    /* in the last conformation placed */
    double (*model)[3]; /* atoms of model.pdb */
    double (*xyz)[3];   /* [atoms.n_atom] */
    int *body;          /* [atoms.n_atom] body of each atom */
    tsr_atoms part;     /* those of one species */
    int *keep;          /* [atoms.n_residue] residues of that species */
    int *is_cut;        /* [n_residue] 1: the residue lacks atoms */
    tsr_debye_sum *sum; /* NULL: the host sums */
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

/* Collects the atoms of the run: the protein of the file, then the guests. The
 * arrays are already allocated. */
static void collect_atoms(const tsr_structure *s, const tsr_guests *guests,
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

/* Finds residues that lack atoms: is_cut [n_residue] out, and their number
 * *n_cut out (may be NULL). */
static tsr_status check_complete(const tsr_structure *s, int *is_cut,
                                 int *n_cut, tsr_err *err)
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

/* Number of the body of the topology that is guest body k. */
static int guest_body(const tsr_topology *t, int k)
{
    int b = 0;
    while (b < t->n_body - 1 &&
           t->body[b].type != tsr_body_n_type(t->body_model) + k)
        b++;
    return b;
}

/* Body of each atom. Hydrogens of guests do not scatter separately, so their
 * body does not matter. */
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
    /* 0: no bound on distances, because atoms and layer may exceed the bound of
     * the bodies */
    TSR_TRY(tsr_debye_sum_new(c->device, c->grid.n_q, c->grid.dq_inv_ang, 1,
                              0.0, NULL, &c->sum, err));
    return tsr_debye_sum_test(c->sum, NULL, err);
}

static tsr_status init_curves(tsr_atom_curves *c, const tsr_structure *input,
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
    tsr_pool_array(&c->pool, c->part.atom, n_atom);
    tsr_pool_array(&c->pool, c->part.residue,
                   input->n_residue + tsr_guests_n_residue(t->guests));
    tsr_pool_array(&c->pool, c->keep,
                   input->n_residue + tsr_guests_n_residue(t->guests));
    tsr_pool_array(&c->pool, c->is_cut, input->n_residue);
    c->atoms.path = tsr_pool_text(&c->pool, c->molecule->file);
    TSR_TRY(tsr_pool_check(&c->pool, err));
    TSR_TRY(check_complete(input, c->is_cut, n_cut, err));
    collect_atoms(input, t->guests, &c->atoms);
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
    TSR_TRY(tsr_structure_read_symmetric(molecule->file, molecule->symmetry,
                                         &input, err));
    tsr_atom_curves *c = tsr_pool_new(&pool, 1, sizeof *c);
    tsr_status status = tsr_allocated(c, err);
    if (c != NULL)
        *c = (tsr_atom_curves){
            .pool = pool, .molecule = molecule, .device = device};
    if (c != NULL && grid != NULL)
        c->grid = *grid;
    TSR_THEN(status, init_curves(c, input, n_cut, err));
    TSR_THEN(status, open_sum(c, err));
    tsr_structure_free(input);
    TSR_HAND_OVER(status, c, out, tsr_atom_curves_free);
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
    tsr_info(log, "hydration: estimated from bodies instead of atoms: %s",
             why.message);
    return TSR_OK;
}

/* Is FFT on a grid, on this thread, faster than the pair sum on the device? The
 * costs are constants, so that a resumed run on another machine chooses the
 * same method. A device that is this computer's CPU is shared by all threads.
 * Without a device the pair sum of many particles would take minutes. */
static int is_grid_faster(const tsr_atom_curves *c, const tsr_debye_spec *spec)
{
    static const double core_s = 2.4e-10, gpu_s = 2.5e-13;
    enum { MOST_EXACT = 5000 };
    if (c->sum == NULL)
        return spec->n > MOST_EXACT;
    const int is_cpu = tsr_device_get_info(c->device)->type == TSR_DEVICE_CPU;
    const tsr_method_speed speed = {.n_thread = 1,
                                    .pair_s = is_cpu ? core_s : gpu_s};
    return tsr_method_seconds(TSR_METHOD_FFT, spec, 0.0, &speed) <
           tsr_method_seconds(TSR_METHOD_DIRECT, spec, 0.0, &speed);
}

/* Partial profiles of a model. origin, neutrons only: share of D2O about which
 * the contrast is expanded. */
static tsr_status sum_profile(tsr_atom_curves *c, const tsr_atom_model *model,
                              double origin, double *partial, tsr_err *err)
{
    const int n_q = c->grid.n_q;
    const double dq = c->grid.dq_inv_ang;
    tsr_status status = TSR_OK;
    double *factor = malloc(TSR_ATOM_COMP * (size_t)model->n_type *
                            (size_t)n_q * sizeof *factor);
    TSR_TRY(tsr_allocated(factor, err));
    if (model->is_neutron)
        status = tsr_neutron_factors(model, origin, n_q, dq, factor, err);
    else
        tsr_atom_model_factors(model, n_q, dq, factor);
    const tsr_debye_spec spec = tsr_atom_model_spec(model, n_q, dq, factor);
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

/* Copies the residues without absent bodies to c->part. Hydrogens have no
 * body. */
static void select_part(tsr_atom_curves *c, const int *absent)
{
    for (int r = 0; r < c->atoms.n_residue; r++) {
        const tsr_file_residue *residue = &c->atoms.residue[r];
        int i = residue->first_atom;
        while (i < residue->first_atom + residue->n_atom - 1 &&
               c->atoms.atom[i].z == 1)
            i++;
        c->keep[r] = !absent[c->body[i]];
    }
    tsr_atoms_select(&c->atoms, c->keep, &c->part);
}

tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 const int *absent, tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err)
{
    tsr_atom_curves *c = curves;
    tsr_conformation_atoms(c->molecule->topology, conformation, c->model);
    tsr_all_atoms_place(c->all, (const double(*)[3])c->model, c->xyz);
    for (int i = 0; i < c->atoms.n_atom; i++)
        memcpy(c->atoms.atom[i].xyz, c->xyz[i], sizeof c->xyz[i]);
    if (absent != NULL)
        select_part(c, absent);
    return tsr_atom_model_new(absent != NULL ? &c->part : &c->atoms, solvent,
                              c->molecule->density, model, err);
}

tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const int *absent,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, double *radius_ang,
                                   tsr_err *err)
{
    tsr_atom_model *model = NULL;
    double match;
    tsr_status status = tsr_atom_curves_place(curves, conformation, absent,
                                              TSR_SOLVENT_LAYER, &model, err);
    if (neutron != NULL)
        TSR_THEN(status, tsr_neutron_apply(neutron,
                                           absent != NULL ? &curves->part
                                                          : &curves->atoms,
                                           model, NULL, &match, err));
    else if (status == TSR_OK)
        *radius_ang = model->power_radius_ang;
    TSR_THEN(status, sum_profile(curves, model, origin, partial, err));
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
                     : tsr_atom_curves_place(c, conformation, NULL,
                                             TSR_SOLVENT_LAYER, &model, err);
    if (status == TSR_OK)
        status = tsr_neutron_apply(neutron, &c->atoms, model, NULL, match, err);
    for (int i = 1; i < n; i++)
        basis.is_series |= d2o[i] != d2o[0];
    if (basis.is_series)
        basis.origin = *match;
    for (int i = 0, k = 0; i < c->atoms.n_atom && status == TSR_OK; i++)
        if (c->atoms.atom[i].z != 1) /* the model has no hydrogens */
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

/* ---- hydration of bodies ---- */

/* For bodies of complete residues, replaces `exposure` [n_body] by the sum over
 * their atoms. */
static tsr_status expose_atoms(tsr_atom_curves *c,
                               const tsr_conformation *conformation,
                               const int *absent, double *exposure,
                               tsr_err *err)
{
    const tsr_topology *t = c->molecule->topology;
    tsr_atom_model *model = NULL;
    TSR_TRY(tsr_atom_curves_place(c, conformation, absent, TSR_SOLVENT_ATOMS,
                                  &model, err));
    for (int b = 0; b < t->n_body; b++)
        if (t->body[b].type < tsr_body_n_type(t->body_model) &&
            !c->is_cut[t->body[b].residue])
            exposure[b] = 0.0;
    for (int i = 0, k = 0; i < c->atoms.n_atom; i++) {
        const int r = c->atoms.atom[i].residue;
        if (c->atoms.atom[i].z == 1 || (absent != NULL && !c->keep[r]))
            continue; /* not in the model */
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
                                  const int *absent, double *exposure,
                                  tsr_err *err)
{
    const tsr_topology *t = molecule->topology;
    const tsr_form_factor_table *table = molecule->components;
    tsr_pool scratch = {0};
    int *type, *dry;
    double(*own)[3];
    tsr_pool_array(&scratch, type, t->n_body);
    tsr_pool_array(&scratch, dry, t->n_body);
    tsr_pool_array(&scratch, own, t->n_body);
    tsr_status status = tsr_pool_check(&scratch, err);
    for (int b = 0; b < t->n_body && status == TSR_OK; b++) {
        type[b] = t->body[b].type;
        dry[b] = type[b] >= table->n_trained && table->exposed[type[b]] == 0.0;
        tsr_vec3_copy(own[b], conformation->body[b]);
        if (absent != NULL && absent[b]) /* far from all neighbours */
            own[b][0] += 1e4 * (b + 1);
    }
    const double(*xyz)[3] = (const double(*)[3])own;
    if (status == TSR_OK)
        tsr_form_factor_exposures(table, t->n_body, type, xyz, exposure);
    if (curves != NULL)
        TSR_THEN(status,
                 expose_atoms(curves, conformation, absent, exposure, err));
    TSR_THEN(status, tsr_exposure_displace(&table->exposure, t->n_body, xyz,
                                           dry, exposure, err));
    for (int b = 0; b < t->n_body && absent != NULL && status == TSR_OK; b++)
        exposure[b] = absent[b] ? 0.0 : exposure[b];
    tsr_pool_clear(&scratch);
    return status;
}
