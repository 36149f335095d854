/* A turn about a torsion moves all that lies behind it as one rigid body.
 * Several turns at once are composed from the one end, so that each residue is
 * moved once, whatever the number of torsions. */
#include "molecule/topology.h"

#include "core/vec3.h"
#include "molecule/guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Masses of the backbone atoms in Da (C, N, O), as io/structure has them. */
static const double mass_n = 14.0067, mass_c = 12.0107, mass_o = 15.9994;

tsr_conformation *tsr_conformation_new(const tsr_topology *topology)
{
    size_t n = (size_t)topology->n_residue;
    tsr_conformation *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->backbone = calloc(n, sizeof *c->backbone);
    c->side = calloc(n, sizeof *c->side);
    c->body = calloc((size_t)topology->n_body + 1, sizeof *c->body);
    if (c->backbone == NULL || c->side == NULL || c->body == NULL) {
        tsr_conformation_free(c);
        return NULL;
    }
    return c;
}

void tsr_conformation_free(tsr_conformation *conformation)
{
    if (conformation == NULL)
        return;
    free(conformation->backbone);
    free(conformation->side);
    free(conformation->body);
    free(conformation);
}

void tsr_conformation_copy(const tsr_topology *topology, tsr_conformation *to,
                           const tsr_conformation *from, int first, int count)
{
    if (count <= 0)
        return;
    size_t i = (size_t)first, n = (size_t)count;
    const tsr_residue *a = &topology->residue[first];
    const tsr_residue *z = &topology->residue[first + count - 1];
    size_t b = (size_t)a->first_body;
    size_t m = (size_t)(z->first_body + z->n_body - a->first_body);
    memcpy(to->backbone + i, from->backbone + i, n * sizeof *to->backbone);
    memcpy(to->side + i, from->side + i, n * sizeof *to->side);
    memcpy(to->body + b, from->body + b, m * sizeof *to->body);
}

void tsr_conformation_cb(const tsr_topology *topology,
                         const tsr_conformation *conformation, int residue,
                         double cb[3])
{
    double(*x)[3] = conformation->backbone[residue];
    double frame[3][3];
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_global(cb, frame, x[TSR_CA], topology->residue[residue].cb);
}

void tsr_conformation_base(const tsr_topology *topology,
                           const tsr_conformation *conformation, int residue,
                           tsr_motion *motion)
{
    const tsr_base *base = &topology->base[residue];
    tsr_motion_about(motion, base->from, base->to,
                     conformation->side[residue][0] - base->chi);
}

/* All bodies of a link are guests'. */
static void place_link(const tsr_topology *topology,
                       tsr_conformation *conformation, int i)
{
    const tsr_residue *r = &topology->residue[i];
    double(*x)[3] = conformation->backbone[i];
    double frame[3][3];
    tsr_motion turn = {.shift = {0.0}};
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    if (topology->base[i].is_there)
        tsr_conformation_base(topology, conformation, i, &turn);
    for (int b = r->first_body; b < r->first_body + r->n_body; b++) {
        const tsr_guest_body *body = tsr_guests_body(topology, b);
        double local[3];
        tsr_vec3_copy(local, body->local);
        if (body->turns)
            tsr_motion_apply(&turn, local);
        tsr_frame_to_global(conformation->body[b], frame, x[TSR_CA], local);
    }
}

static void place_residue(const tsr_topology *topology,
                          tsr_conformation *conformation, int i)
{
    const tsr_residue *r = &topology->residue[i];
    double(*x)[3] = conformation->backbone[i];
    double frame[3][3], main[3], cb[3] = {0};
    if (r->link != TSR_LINK_NONE) {
        place_link(topology, conformation, i);
        return;
    }
    double mass = mass_n + 2.0 * mass_c + mass_o;
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    for (int d = 0; d < 3; d++)
        main[d] = mass_n * x[TSR_N][d] + mass_c * x[TSR_CA][d] +
                  mass_c * x[TSR_C][d] + mass_o * x[TSR_O][d];
    if (r->amino != TSR_GLY) {
        tsr_frame_to_global(cb, frame, x[TSR_CA], r->cb);
        for (int d = 0; d < 3; d++)
            main[d] += mass_c * cb[d];
        mass += mass_c;
    }
    for (int d = 0; d < 3; d++)
        main[d] /= mass;

    double(*body)[3] = conformation->body + r->first_body;
    int n_own = r->n_body - r->n_guest;
    for (int b = n_own; b < r->n_body; b++)
        tsr_frame_to_global(
            body[b], frame, x[TSR_CA],
            tsr_guests_body(topology, r->first_body + b)->local);
    if (!tsr_amino_has_side_chain(r->amino)) {
        tsr_vec3_copy(body[0], main);
        return;
    }
    double side[3];
    tsr_frame_to_global(side, frame, x[TSR_CA], conformation->side[i]);
    if (n_own == 2) {
        tsr_vec3_copy(body[0], main);
        tsr_vec3_copy(body[1], side);
        return;
    }
    double beyond = tsr_amino_side_chain_mass(r->amino);
    for (int d = 0; d < 3; d++)
        body[0][d] = (mass * main[d] + beyond * side[d]) / (mass + beyond);
}

void tsr_conformation_place_bodies(const tsr_topology *topology,
                                   tsr_conformation *conformation, int first,
                                   int count)
{
    for (int i = first; i < first + count; i++)
        place_residue(topology, conformation, i);
}

double tsr_conformation_torsion(const tsr_topology *topology,
                                const tsr_conformation *conformation,
                                int residue, tsr_torsion_kind kind)
{
    const tsr_residue *r = &topology->residue[residue];
    double(*x)[3] = conformation->backbone[residue];
    if (kind == TSR_PHI)
        return residue == r->chain_first
                   ? (double)NAN
                   : tsr_vec3_torsion(
                         conformation->backbone[residue - 1]
                                               [tsr_residue_atom_before(r)],
                         x[TSR_N], x[TSR_CA], x[TSR_C]);
    return residue == r->chain_last
               ? (double)NAN
               : tsr_vec3_torsion(
                     x[TSR_N], x[TSR_CA], x[TSR_C],
                     conformation
                         ->backbone[residue + 1][tsr_residue_atom_after(r)]);
}

/* Lanes x, y, z and one to spare. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

/* tsr_motion_apply, a column of the rotation at a time: the same sums. The
 * spare lane spills into the next point, whose x was read before; the last is
 * left to the plain function. */
static void move_points(const tsr_motion *motion, double (*x)[3], int n)
{
    four column[4];
    for (int d = 0; d < 3; d++) {
        for (int k = 0; k < 3; k++)
            column[k][d] = motion->rotation[d][k];
        column[3][d] = motion->shift[d];
    }
    for (int k = 0; k < 4; k++)
        column[k][3] = 0.0;
    double next = n > 0 ? x[0][0] : 0.0;
    for (int i = 0; i < n - 1; i++) {
        double u = next;
        next = x[i + 1][0];
        *(four *)x[i] = column[0] * u + column[1] * x[i][1] +
                        column[2] * x[i][2] + column[3];
    }
    if (n > 0) {
        x[n - 1][0] = next;
        tsr_motion_apply(motion, x[n - 1]);
    }
}

void tsr_conformation_move(const tsr_topology *topology,
                           tsr_conformation *conformation, int first, int last,
                           const tsr_motion *motion)
{
    if (first > last)
        return;
    move_points(motion, conformation->backbone[first], 4 * (last - first + 1));
    const tsr_residue *a = &topology->residue[first];
    const tsr_residue *z = &topology->residue[last];
    move_points(motion, conformation->body + a->first_body,
                z->first_body + z->n_body - a->first_body);
}

/* Turning the C side about an axis by +angle raises the torsion by it; so does
 * turning the N side by -angle. */
static void turn_c_side(const tsr_topology *t, tsr_conformation *c, int first,
                        int last, const double (*change)[2])
{
    tsr_motion all, one;
    int moving = 0;
    for (int i = first; i <= last; i++) {
        double(*x)[3] = c->backbone[i];
        for (int a = 0; moving && a < 4; a++)
            tsr_motion_apply(&all, x[a]);
        for (int k = 0; k < 2; k++) {
            if (change[i - first][k] == 0.0)
                continue;
            if (k == 0)
                tsr_motion_about(&one, x[TSR_N], x[TSR_CA],
                                 change[i - first][0]);
            else
                tsr_motion_about(&one, x[TSR_CA], x[TSR_C],
                                 change[i - first][1]);
            if (k == 0)
                tsr_motion_apply(&one, x[TSR_C]);
            tsr_motion_apply(&one, x[TSR_O]);
            if (moving)
                tsr_motion_compose(&all, &one, &all);
            else
                all = one;
            moving = 1;
        }
        if (moving)
            place_residue(t, c, i);
    }
    if (moving)
        tsr_conformation_move(t, c, last + 1, t->residue[last].chain_last,
                              &all);
}

static void turn_n_side(const tsr_topology *t, tsr_conformation *c, int first,
                        int last, const double (*change)[2])
{
    tsr_motion all, one;
    int moving = 0;
    for (int i = last; i >= first; i--) {
        double(*x)[3] = c->backbone[i];
        int own = moving || change[i - first][1] != 0.0; /* phi leaves it */
        for (int a = 0; moving && a < 4; a++)
            tsr_motion_apply(&all, x[a]);
        for (int k = 1; k >= 0; k--) {
            if (change[i - first][k] == 0.0)
                continue;
            if (k == 0)
                tsr_motion_about(&one, x[TSR_N], x[TSR_CA],
                                 -change[i - first][0]);
            else
                tsr_motion_about(&one, x[TSR_CA], x[TSR_C],
                                 -change[i - first][1]);
            if (k == 1)
                tsr_motion_apply(&one, x[TSR_N]);
            if (moving)
                tsr_motion_compose(&all, &one, &all);
            else
                all = one;
            moving = 1;
        }
        if (own)
            place_residue(t, c, i);
    }
    if (moving)
        tsr_conformation_move(t, c, t->residue[first].chain_first, first - 1,
                              &all);
}

void tsr_conformation_turn_many(const tsr_topology *topology,
                                tsr_conformation *conformation, int first,
                                int last, int c_side,
                                const double (*change_rad)[2])
{
    if (c_side)
        turn_c_side(topology, conformation, first, last, change_rad);
    else
        turn_n_side(topology, conformation, first, last, change_rad);
}

void tsr_conformation_turn(const tsr_topology *topology,
                           tsr_conformation *conformation,
                           const tsr_torsion *torsion, double angle_rad)
{
    double change[1][2] = {{0.0, 0.0}};
    change[0][torsion->kind == TSR_PSI] = angle_rad;
    tsr_conformation_turn_many(topology, conformation, torsion->residue,
                               torsion->residue, torsion->c_side,
                               (const double(*)[2])change);
}

double tsr_conformation_rg(const tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const double *rg2)
{
    double centre[3] = {0}, sum = 0.0;
    for (int b = 0; b < topology->n_body; b++)
        for (int d = 0; d < 3; d++)
            centre[d] += topology->body[b].mass * conformation->body[b][d];
    for (int d = 0; d < 3; d++)
        centre[d] /= topology->total_mass;
    for (int b = 0; b < topology->n_body; b++) {
        const tsr_body *body = &topology->body[b];
        double own = rg2 == NULL ? 0.0 : rg2[body->type];
        sum += body->mass *
               (tsr_vec3_distance2(conformation->body[b], centre) + own);
    }
    return sqrt(sum / topology->total_mass);
}

/* GLY has no CB, ALA no centre of its own. The atoms of links are guests'. */
static int atoms_of(const tsr_residue *r)
{
    return r->link != TSR_LINK_NONE             ? 0
           : r->amino == TSR_GLY                ? 4
           : tsr_amino_has_side_chain(r->amino) ? 6
                                                : 5;
}

int tsr_topology_n_atom(const tsr_topology *topology)
{
    int n = 0;
    for (int i = 0; i < topology->n_residue; i++)
        n += atoms_of(&topology->residue[i]);
    return n + tsr_guests_n_atom(topology->guests);
}

int tsr_conformation_residue_atoms(const tsr_topology *topology,
                                   const tsr_conformation *conformation,
                                   int residue, double xyz[TSR_MODEL_ATOMS][3])
{
    double(*x)[3] = conformation->backbone[residue], frame[3][3];
    const int n = atoms_of(&topology->residue[residue]);
    if (n > 0)
        memcpy(xyz, x, 4 * sizeof *xyz);
    if (n > 4)
        tsr_conformation_cb(topology, conformation, residue, xyz[4]);
    if (n > 5) {
        tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
        tsr_frame_to_global(xyz[5], frame, x[TSR_CA],
                            conformation->side[residue]);
    }
    return n;
}

void tsr_conformation_atoms(const tsr_topology *topology,
                            const tsr_conformation *conformation,
                            double (*xyz)[3])
{
    for (int i = 0; i < topology->n_residue; i++)
        xyz += tsr_conformation_residue_atoms(topology, conformation, i, xyz);
    tsr_guests_place(topology, conformation, xyz);
}

tsr_structure *tsr_topology_structure(const tsr_topology *topology,
                                      const tsr_conformation *conformation)
{
    static const char *const names[6] = {"N", "CA", "C", "O", "CB", "SC"};
    static const int number[6] = {7, 6, 6, 8, 6, 6};
    tsr_structure *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->path = calloc(1, 1);
    s->n_guest = tsr_guests_n_residue(topology->guests);
    const int n_amino = topology->n_residue - topology->n_link;
    s->n_residue = n_amino + s->n_guest;
    s->residue = calloc((size_t)s->n_residue + 1, sizeof *s->residue);
    size_t n_atom = (size_t)tsr_topology_n_atom(topology);
    double(*xyz)[3] = calloc(n_atom + 1, sizeof *xyz);
    s->atom = calloc(n_atom + 1, sizeof *s->atom);
    if (s->path == NULL || s->residue == NULL || s->atom == NULL ||
        xyz == NULL) {
        free(xyz);
        tsr_structure_free(s);
        return NULL;
    }
    s->n_chain = topology->n_chain;
    tsr_conformation_atoms(topology, conformation, xyz);
    for (int i = 0; i < n_amino; i++) {
        const tsr_residue *r = &topology->residue[i];
        tsr_residue_record *record = &s->residue[i];
        const char *three = tsr_amino_table[r->amino].three;
        snprintf(record->name, sizeof record->name, "%s", three);
        snprintf(record->file_name, sizeof record->file_name, "%s", three);
        memcpy(record->chain, r->chain, sizeof record->chain);
        record->number = r->number;
        record->insertion = r->insertion;
        record->first_atom = s->n_atom;
        record->n_atom = atoms_of(r);
        for (int a = 0; a < record->n_atom; a++) {
            tsr_atom *atom = &s->atom[s->n_atom];
            memcpy(atom->name, names[a], strlen(names[a]) + 1);
            atom->z = number[a];
            tsr_vec3_copy(atom->xyz, xyz[s->n_atom++]);
        }
    }
    tsr_guests_write(topology->guests, (const double(*)[3])xyz, s);
    free(xyz);
    return s;
}
