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
    FROM_MODEL,   /* drawn: N, CA, C, O */
    FROM_FRAME,   /* CB: fixed to N, CA, C */
    FROM_SIDE,    /* beyond CB: turns about CA-CB */
    FROM_O,       /* OXT: opposite O */
    FROM_CARBONYL /* fixed to CA, C, O: what rides on O or OXT */
} source;

typedef struct {
    source from;
    int model;       /* FROM_MODEL: atom of the model; of an amino acid counted
                        from the first of its residue, as all below are */
    double local[3]; /* in the frame of the residue; FROM_O: [0] the bond */
} recipe;

typedef struct {
    int first, count;  /* its atoms */
    int model_first;   /* the model's */
    int rider, riders; /* the first of those that ride on it, how many */
    int n, ca, c, o;   /* atoms of the model; o < 0: none */
    int sc;            /* drawn centre; < 0: none */
    int cb;            /* its number among all atoms; < 0: none */
    int is_ring;       /* proline */
    double cb_local[3], side_local[3]; /* of the input */
} placed_residue;

struct tsr_all_atoms {
    tsr_model_atoms list;
    recipe *recipe;          /* [list.n_atom] */
    placed_residue *residue; /* [n_residue] of amino acids */
    int n_amino;
    recipe *rider; /* in the order of the residues; NULL: none */
};

void tsr_all_atoms_free(tsr_all_atoms *all)
{
    if (all == NULL)
        return;
    free(all->list.atom);
    free(all->list.xyz);
    free(all->list.ca);
    free(all->recipe);
    free(all->residue);
    free(all->rider);
    free(all);
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
        if (!model->atom[i].is_guest)
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
    tsr_all_atoms *all = calloc(1, sizeof *all);
    if (all != NULL) {
        all->list.atom = calloc(n + 1, sizeof *all->list.atom);
        all->list.xyz = calloc(3 * n + 3, sizeof *all->list.xyz);
        all->list.ca = calloc(n_residue + 1, sizeof *all->list.ca);
        all->list.n_residue = model->n_residue;
        all->list.is_nucleic = model->is_nucleic;
        all->recipe = calloc(n + 1, sizeof *all->recipe);
        all->residue = calloc(n_residue + 1, sizeof *all->residue);
    }
    tsr_status status = TSR_OK;
    if (all == NULL || all->list.atom == NULL || all->list.xyz == NULL ||
        all->list.ca == NULL || all->recipe == NULL || all->residue == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for all atoms");
    for (int r = 0; r < n_amino && status == TSR_OK; r++, all->n_amino++)
        status = add_residue(all, model, r, input, err);
    if (status == TSR_OK)
        add_guests(all, model);
    if (status != TSR_OK) {
        tsr_all_atoms_free(all);
        all = NULL;
    }
    *out = all;
    return status;
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
    double ca[3], c[3];
} carrier;

static void find_carrier(const placed_residue *at, const double (*model)[3],
                         carrier *to)
{
    const double *ca = model[at->ca], *c = model[at->c];
    double cb[3], centre[3];
    tsr_motion turn;
    *to = (carrier){.ca = {0.0}};
    side_frame(to->frame, at, model[at->n], ca, c);
    tsr_vec3_copy(to->ca, ca);
    tsr_vec3_copy(to->c, c);
    if (at->o >= 0)
        tsr_frame(to->carbonyl, ca, c, model[at->o]);
    memcpy(to->side, to->frame, sizeof to->side);
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
    }
}

/* One amino acid: model [its atoms in the model][3] -> xyz, its atoms and then
 * what rides on them. Returns how many these are. */
static int place_residue_all(const tsr_all_atoms *all, int residue_number,
                             const double (*model)[3], double (*xyz)[3])
{
    const placed_residue *at = &all->residue[residue_number];
    carrier by;
    find_carrier(at, model, &by);
    for (int k = 0; k < at->count; k++)
        place_one(&all->recipe[at->first + k], at, &by, model, xyz[k]);
    for (int k = 0; k < at->riders; k++)
        place_one(&all->rider[at->rider + k], at, &by, model,
                  xyz[at->count + k]);
    return at->count + at->riders;
}

void tsr_all_atoms_place(const tsr_all_atoms *all, const double (*model_xyz)[3],
                         double (*xyz)[3])
{
    int i = 0;
    for (int r = 0; r < all->n_amino; r++) {
        const placed_residue *at = &all->residue[r];
        const double(*model)[3] = model_xyz + at->model_first;
        carrier by;
        find_carrier(at, model, &by);
        for (i = at->first; i < at->first + at->count; i++)
            place_one(&all->recipe[i], at, &by, model, xyz[i]);
    }
    for (; i < all->list.n_atom; i++) /* guests */
        tsr_vec3_copy(xyz[i], model_xyz[all->recipe[i].model]);
}

/* How a point at x goes along with an atom, of which that is the recipe. */
static recipe ride_on(const recipe *atom, const placed_residue *at, carrier *by,
                      const double x[3])
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

/* From now on n points ride on atoms of amino acids: each turns with its atom,
 * as a part of what carries that. atom [n] ascends; xyz [n][3] is where they
 * are while the model's atoms are at model_xyz. Once. Errors: TSR_E_NOMEM. */
static tsr_status ride_on_bodies(tsr_all_atoms *all, int n, const int *atom,
                                 const double (*model_xyz)[3],
                                 const double (*xyz)[3], tsr_err *err)
{
    int k = 0;
    all->rider = calloc((size_t)n + 1, sizeof *all->rider);
    TSR_TRY(tsr_allocated(all->rider, err));
    for (int r = 0; r < all->n_amino; r++) {
        placed_residue *at = &all->residue[r];
        carrier by;
        find_carrier(at, model_xyz + at->model_first, &by);
        at->rider = k;
        for (; k < n && atom[k] < at->first + at->count; k++)
            all->rider[k] = ride_on(&all->recipe[atom[k]], at, &by, xyz[k]);
        at->riders = k - at->rider;
    }
    return TSR_OK;
}

/* ---- curves of all atoms ----
 *
 * Places all atoms for a conformation of the run, builds the scatterers with
 * their layer of water, and sums their profile, on the device where there is
 * one. */

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
    append_guests(guests, to);
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
    tsr_atom_curves *c = calloc(1, sizeof *c);
    *out = NULL;
    tsr_status status = tsr_allocated(c, err);
    TSR_THEN(status, tsr_structure_read_any(spec->file, &input, err));
    if (status == TSR_OK) {
        const size_t n = (size_t)tsr_topology_n_atom(spec->topology);
        c->spec = *spec;
        c->model = calloc(n + 1, sizeof *c->model);
        c->xyz = calloc((size_t)input->n_atom + n + 1, sizeof *c->xyz);
        if (c->model == NULL || c->xyz == NULL ||
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
        status = tsr_all_atoms_new(spec->model, input, &c->all, err);
    if (status == TSR_OK) {
        find_bodies(spec->topology, &c->atoms, c->body);
        status = open_sum(c, err);
    }
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
        model_spec(model, origin, c->spec.grid.n_q, c->spec.grid.dq_inv_ang,
                   &factor, &spec, err);
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

static tsr_all_atoms *all_atoms_of(tsr_atom_curves *curves)
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

/* What a guest brings along. */
typedef struct {
    int host;
    int turns;       /* 1: with the base of its host, a link */
    double local[3]; /* in the frame of the host's N-CA-C */
    int number;      /* in the model */
} guest_point;

typedef struct {
    tsr_particles base;
    tsr_atom_particles_spec spec; /* `first` is not looked at again */
    tsr_atom_curves *curves;
    int n_probe;
    tsr_atom_model **model; /* [n_probe] in the first conformation */
    int n_guest;
    guest_point *guest;  /* [n_guest] by host */
    int *first_guest;    /* [n_residue + 1] */
    int *first_all;      /* [n_residue + 1] of all particles */
    int *number;         /* [n_all] of a particle in the model */
    int *kind;           /* [n_all] its type */
    int *sample;         /* [n_kind - 1] number of one of that type */
    double (*inside)[3]; /* what base.inside points to */
    int *inside_kind, *inside_unit;
} atom_particles;

static const atom_particles *own(const tsr_particles *particles)
{
    return (const atom_particles *)particles;
}

static int is_amino(const atom_particles *p, int residue)
{
    return p->spec.topology->residue[residue].link == TSR_LINK_NONE;
}

static void free_particles(tsr_particles *particles)
{
    atom_particles *p = (atom_particles *)particles;
    tsr_particles *b = &p->base;
    for (int i = 0; p->model != NULL && i < p->n_probe; i++)
        tsr_atom_model_free(p->model[i]);
    tsr_atom_curves_free(p->curves);
    free(p->model);
    free(p->guest);
    free(p->first_guest);
    free(p->first_all);
    free(p->number);
    free(p->kind);
    free(p->sample);
    free(b->first);
    free(b->kind);
    free(b->unit);
    free(b->start);
    free(p->inside);
    free(p->inside_kind);
    free(p->inside_unit);
    free(p);
}

/* ---- where they are ---- */

/* All particles of a residue: xyz [.][3] out. Returns how many. */
static int place_residue(const atom_particles *p, const tsr_conformation *c,
                         int residue, double (*xyz)[3])
{
    const tsr_topology *t = p->spec.topology;
    const double(*x)[3] = (const double(*)[3])c->backbone[residue];
    double model[TSR_MODEL_ATOMS][3], frame[3][3], local[3];
    tsr_motion turn;
    int n = 0;
    if (is_amino(p, residue)) {
        tsr_conformation_residue_atoms(t, c, residue, model);
        n = place_residue_all(all_atoms_of(p->curves), residue,
                              (const double(*)[3])model, xyz);
    }
    const int from = p->first_guest[residue], to = p->first_guest[residue + 1];
    if (from < to)
        tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    for (int k = from; k < to; k++) {
        tsr_vec3_copy(local, p->guest[k].local);
        if (p->guest[k].turns) {
            tsr_conformation_base(t, c, residue, &turn);
            tsr_motion_apply(&turn, local);
        }
        tsr_frame_to_global(xyz[n++], frame, x[TSR_CA], local);
    }
    return n;
}

static void place(const tsr_particles *particles,
                  const tsr_conformation *conformation, int residue, int count,
                  double (*xyz)[3])
{
    const tsr_particles *b = particles;
    const tsr_topology *t = own(b)->spec.topology;
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
    const tsr_probe *as = &p->spec.likelihood->probe[probe];
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
        tsr_neutron_fold_factors(&as->basis, p->spec.contrast, n_kind * row,
                                 factor);
        return TSR_OK;
    }
    tsr_factors_fold(p->spec.contrast, particles->radius_ang, particles->n_kind,
                     n_q, dq_inv_ang, factor);
    return TSR_OK;
}

static tsr_status direct(const tsr_particles *particles,
                         const tsr_conformation *conformation, int probe,
                         int n_q, double dq_inv_ang,
                         const tsr_debye_progress *progress, double *partial,
                         tsr_err *err)
{
    const atom_particles *p = own(particles);
    const tsr_probe *as = &p->spec.likelihood->probe[probe];
    const int n_residue = p->spec.topology->n_residue;
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
        tsr_neutron_fold(&as->basis, p->spec.contrast, n_q, partial);
    else if (status == TSR_OK)
        tsr_partials_fold(p->spec.contrast, particles->radius_ang, n_q,
                          dq_inv_ang, partial);
    return status;
}

static const tsr_particles_type atom_type = {free_particles, place, factors,
                                             direct};

/* ---- making them ---- */

static tsr_status make_models(atom_particles *p, tsr_err *err)
{
    const tsr_likelihood *l = p->spec.likelihood;
    double match;
    p->model = calloc((size_t)l->n_probe + 1, sizeof(*p->model));
    TSR_TRY(tsr_allocated(p->model, err));
    for (; p->n_probe < l->n_probe; p->n_probe++) {
        tsr_atom_model **m = &p->model[p->n_probe];
        TSR_TRY(tsr_atom_curves_place(p->curves, p->spec.first,
                                      TSR_SOLVENT_LAYER, m, err));
        if (l->probe[p->n_probe].is_neutron)
            TSR_TRY(tsr_neutron_apply(&p->spec.sample[p->n_probe],
                                      tsr_atom_curves_atoms(p->curves), *m,
                                      NULL, &match, err));
        p->base.radius_ang = (*m)->power_radius_ang;
    }
    if (p->model[0] == NULL)
        return tsr_fail(err, TSR_E_INTERNAL, "particles that nothing sees");
    p->base.n_all = p->model[0]->n;
    return TSR_OK;
}

/* The frame of a host in the first conformation, and a point in it. */
static void to_host(const atom_particles *p, guest_point *g, const double x[3])
{
    const tsr_conformation *c = p->spec.first;
    const double(*b)[3] = (const double(*)[3])c->backbone[g->host];
    double frame[3][3], turned[3], back[3];
    tsr_motion turn;
    tsr_frame(frame, b[TSR_N], b[TSR_CA], b[TSR_C]);
    tsr_frame_to_local(turned, frame, b[TSR_CA], x);
    tsr_vec3_copy(g->local, turned);
    if (!g->turns)
        return;
    tsr_conformation_base(p->spec.topology, c, g->host, &turn);
    tsr_vec3_sub(back, turned, turn.shift);
    for (int k = 0; k < 3; k++) {
        g->local[k] = 0.0;
        for (int d = 0; d < 3; d++)
            g->local[k] += turn.rotation[d][k] * back[d];
    }
}

/* Beads of amino acids ride on their atoms; in the model they come before those
 * of guests, as the atoms do. n_amino: atoms of amino acids. */
static tsr_status ride(atom_particles *p, int n_amino, tsr_err *err)
{
    const tsr_atom_model *m = p->model[0];
    const tsr_topology *t = p->spec.topology;
    const size_t n_bead = (size_t)(m->n - m->n_atom);
    int n = 0;
    double(*model)[3] =
        calloc((size_t)tsr_topology_n_atom(t) + 1, sizeof *model);
    if (model == NULL)
        return tsr_no_memory(err);
    for (size_t k = 0; k < n_bead; k++)
        n += m->owner[(size_t)m->n_atom + k] < n_amino;
    tsr_conformation_atoms(t, p->spec.first, model);
    const tsr_status status =
        ride_on_bodies(all_atoms_of(p->curves), n, m->owner + m->n_atom,
                       (const double(*)[3])model,
                       (const double(*)[3])(m->xyz + m->n_atom), err);
    free(model);
    return status;
}

/* Atoms of guests but hydrogens, with the beads on them, by their hosts. */
static tsr_status take_guests(atom_particles *p, int n_amino, tsr_err *err)
{
    const tsr_atom_model *m = p->model[0];
    const tsr_topology *t = p->spec.topology;
    const tsr_guests *g = t->guests;
    const int n_of = tsr_guests_n_atom(g), n_residue = t->n_residue;
    int *atom = calloc((size_t)m->n_atom + 1, sizeof *atom), n_atom = n_amino;
    p->guest = calloc((size_t)m->n + 1, sizeof *p->guest);
    p->first_guest = calloc((size_t)n_residue + 2, sizeof *p->first_guest);
    if (atom == NULL || p->guest == NULL || p->first_guest == NULL) {
        free(atom);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < n_of; i++)
        if (g->atoms->atom[i].z != 1)
            atom[n_atom++] = i;
    for (int r = 0; r < n_residue; r++) {
        p->first_guest[r] = p->n_guest;
        for (int k = n_amino; k < m->n && n_of > 0; k++) {
            const int of = m->owner[k], i = of >= n_amino ? atom[of] : -1;
            if (i < 0 || g->host[i] != r)
                continue;
            guest_point *to = &p->guest[p->n_guest++];
            *to = (guest_point){r, g->turns[i], {0.0}, k};
            to_host(p, to, m->xyz[k]);
        }
    }
    p->first_guest[n_residue] = p->n_guest;
    free(atom);
    return TSR_OK;
}

/* The model's number of every particle. */
static tsr_status number_all(atom_particles *p, tsr_err *err)
{
    const tsr_atom_model *m = p->model[0];
    const tsr_atoms *atoms = tsr_atom_curves_atoms(p->curves);
    const int n_residue = p->spec.topology->n_residue;
    int n = 0, bead = m->n_atom;
    p->first_all = calloc((size_t)n_residue + 1, sizeof *p->first_all);
    p->number = calloc((size_t)m->n + 1, sizeof *p->number);
    if (p->first_all == NULL || p->number == NULL)
        return tsr_no_memory(err);
    for (int r = 0; r < n_residue; r++) {
        p->first_all[r] = n;
        if (is_amino(p, r)) {
            const tsr_file_residue *at = &atoms->residue[r];
            for (int k = 0; k < at->n_atom; k++)
                p->number[n++] = at->first_atom + k;
            for (; bead < m->n && m->owner[bead] < at->first_atom + at->n_atom;
                 bead++)
                p->number[n++] = bead;
        }
        for (int k = p->first_guest[r]; k < p->first_guest[r + 1]; k++)
            p->number[n++] = p->guest[k].number;
    }
    p->first_all[n_residue] = n;
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
    int n_kind = 0, n_atom_kind = 0;
    p->kind = calloc((size_t)n + 1, sizeof *p->kind);
    p->sample = calloc((size_t)n + 1, sizeof *p->sample);
    if (p->kind == NULL || p->sample == NULL)
        return tsr_no_memory(err);
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
        p->kind[i] = k; /* by the model's number, until all are known */
    }
    int *by_number = p->kind;
    p->kind = calloc((size_t)n + 1, sizeof *p->kind);
    for (int i = 0; p->kind != NULL && i < n; i++)
        p->kind[i] = by_number[p->number[i]];
    free(by_number);
    p->base.n_kind = n_kind + 1;
    return tsr_allocated(p->kind, err);
}

/* The unit of a residue, where that has a table; else -1. count, residues
 * [n_residue]: particles and residues of every unit. */
static int table_of(const atom_particles *p, const int *count,
                    const int *residues, int r)
{
    const int unit = p->spec.topology->residue[r].unit;
    return unit >= 0 && count[unit] >= LEAST_PARTICLES &&
                   residues[unit] >= LEAST_RESIDUES
               ? unit
               : -1;
}

static int make_room(atom_particles *p)
{
    const size_t n_all = (size_t)p->base.n_all + 1,
                 n = n_all + (size_t)p->spec.topology->n_body;
    tsr_particles *b = &p->base;
    b->first =
        calloc((size_t)p->spec.topology->n_residue + 1, sizeof *b->first);
    b->kind = calloc(n, sizeof *b->kind);
    b->unit = calloc(n, sizeof *b->unit);
    b->start = calloc(n, sizeof *b->start);
    p->inside = calloc(n_all, sizeof *p->inside);
    p->inside_kind = calloc(n_all, sizeof *p->inside_kind);
    p->inside_unit = calloc(n_all, sizeof *p->inside_unit);
    b->inside = (tsr_engine_inside){.xyz = (const double(*)[3])p->inside,
                                    .type = p->inside_kind,
                                    .unit = p->inside_unit};
    return b->first != NULL && b->kind != NULL && b->unit != NULL &&
           b->start != NULL && p->inside != NULL && p->inside_kind != NULL &&
           p->inside_unit != NULL;
}

/* No particle of a residue is farther from its first body than this, whatever
 * the side chain does: atoms keep their distances from CA. */
static double margin_of(const atom_particles *p, int r, int n,
                        const double (*xyz)[3])
{
    const tsr_conformation *c = p->spec.first;
    const double *ca = c->backbone[r][TSR_CA];
    double most = 0.0;
    for (int i = 0; i < n; i++)
        most = fmax(most, tsr_vec3_distance(xyz[i], ca));
    return most + bending_ang +
           tsr_vec3_distance(ca,
                             c->body[p->spec.topology->residue[r].first_body]);
}

/* Residue by residue: into a unit's table, or particles of their own. */
static void lay_out(atom_particles *p, const int *count, const int *residues,
                    double (*xyz)[3])
{
    const tsr_topology *t = p->spec.topology;
    tsr_particles *b = &p->base;
    for (int r = 0; r < t->n_residue; r++) {
        const int unit = table_of(p, count, residues, r);
        const int n = place_residue(p, p->spec.first, r, xyz);
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
                          p->spec.first->body[t->residue[r].first_body + k]);
            b->kind[b->n] = b->n_kind - 1;
            b->unit[b->n] = unit;
        }
    }
    b->first[t->n_residue] = b->n;
}

static tsr_status arrange(atom_particles *p, tsr_err *err)
{
    const tsr_topology *t = p->spec.topology;
    int *count = calloc(2 * (size_t)t->n_residue + 2, sizeof *count),
        *residues = count + t->n_residue;
    double(*xyz)[3] = calloc((size_t)p->base.n_all + 1, sizeof *xyz);
    const int is_there = count != NULL && xyz != NULL && make_room(p);
    for (int r = 0; r < t->n_residue && is_there; r++)
        if (t->residue[r].unit >= 0) {
            count[t->residue[r].unit] += p->first_all[r + 1] - p->first_all[r];
            residues[t->residue[r].unit]++;
        }
    if (is_there)
        lay_out(p, count, residues, xyz);
    free(count);
    free(xyz);
    return is_there ? TSR_OK : tsr_no_memory(err);
}

tsr_status tsr_atom_particles_new(const tsr_atom_particles_spec *spec,
                                  tsr_atom_curves *curves, tsr_particles **out,
                                  tsr_err *err)
{
    atom_particles *p = calloc(1, sizeof *p);
    *out = NULL;
    if (p == NULL) {
        tsr_atom_curves_free(curves);
        return tsr_no_memory(err);
    }
    p->base.type = &atom_type;
    p->spec = *spec;
    p->curves = curves;
    const int n_amino = tsr_atom_curves_atoms(curves)->n_atom -
                        tsr_guests_n_atom(spec->topology->guests);
    tsr_status status = make_models(p, err);
    TSR_THEN(status, ride(p, n_amino, err));
    TSR_THEN(status, take_guests(p, n_amino, err));
    TSR_THEN(status, number_all(p, err));
    TSR_THEN(status, find_kinds(p, err));
    TSR_THEN(status, arrange(p, err));
    if (status == TSR_OK)
        *out = &p->base;
    else
        free_particles(&p->base);
    return status;
}
