/* All atoms of a drawn conformation. Each atom of the input has a recipe that
 * says what carries it: the drawn backbone, the frame of N-CA-C, or the side
 * chain, which turns as a whole about CA-CB until its centre points to where
 * the drawn centre is. */
#include "posterior/all_atoms.h"

#include "core/vec3.h"

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
} residue;

struct tsr_all_atoms {
    tsr_model_atoms list;
    recipe *recipe;   /* [list.n_atom] */
    residue *residue; /* [n_residue] of amino acids */
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
static void side_frame(double frame[3][3], const residue *r, const double *n,
                       const double *ca, const double *c)
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
    residue *to = &all->residue[r];
    const tsr_atom *n = tsr_residue_atom(input, in, "N");
    const tsr_atom *ca = tsr_residue_atom(input, in, "CA");
    const tsr_atom *c = tsr_residue_atom(input, in, "C");
    double frame[3][3], sum[3] = {0.0}, mass = 0.0;
    if (strcmp(in->name, ours->residue) != 0 || in->number != ours->number)
        return differs(model, r, in, err);
    const int start = first_of(model, r);
    *to = (residue){.first = all->list.n_atom,
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

static void find_carrier(const residue *at, const double (*model)[3],
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
static void place_opposite(const residue *at, const double (*model)[3],
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

static void place_one(const recipe *how, const residue *at, carrier *by,
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

int tsr_all_atoms_place_residue(const tsr_all_atoms *all, int residue_number,
                                const double (*model)[3], double (*xyz)[3])
{
    const residue *at = &all->residue[residue_number];
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
        const residue *at = &all->residue[r];
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
static recipe ride_on(const recipe *atom, const residue *at, carrier *by,
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

tsr_status tsr_all_atoms_ride(tsr_all_atoms *all, int n, const int *atom,
                              const double (*model_xyz)[3],
                              const double (*xyz)[3], tsr_err *err)
{
    int k = 0;
    all->rider = calloc((size_t)n + 1, sizeof *all->rider);
    TSR_TRY(tsr_allocated(all->rider, err));
    for (int r = 0; r < all->n_amino; r++) {
        residue *at = &all->residue[r];
        carrier by;
        find_carrier(at, model_xyz + at->model_first, &by);
        at->rider = k;
        for (; k < n && atom[k] < at->first + at->count; k++)
            all->rider[k] = ride_on(&all->recipe[atom[k]], at, &by, xyz[k]);
        at->riders = k - at->rider;
    }
    return TSR_OK;
}
