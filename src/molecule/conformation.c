/* Coordinates of a conformation, and their changes.
 *
 * A turn about one torsion moves the chain beyond it as a rigid body. Several
 * turns are composed from one end of the chain to the other, so that each
 * residue is moved once, whatever the number of torsions. */
#include "core/vec3.h"
#include "molecule/guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Masses of the backbone atoms in Da, as tsr_atom_mass gives them. */
static const double mass_n = 14.0067, mass_c = 12.0107, mass_o = 15.9994;

tsr_conformation *tsr_conformation_new(const tsr_topology *t)
{
    tsr_conformation *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    tsr_pool_array(&c->pool, c->backbone, t->n_residue);
    tsr_pool_array(&c->pool, c->side, t->n_residue);
    tsr_pool_array(&c->pool, c->body, t->n_body + 1);
    if (!c->pool.failed)
        return c;
    tsr_conformation_free(c);
    return NULL;
}

void tsr_conformation_free(tsr_conformation *c)
{
    if (c != NULL)
        tsr_pool_clear(&c->pool);
    free(c);
}

void tsr_conformation_copy(const tsr_topology *t, tsr_conformation *to,
                           const tsr_conformation *from, int first, int count)
{
    if (count <= 0)
        return;
    size_t i = (size_t)first, n = (size_t)count;
    const tsr_residue *a = &t->residue[first];
    const tsr_residue *z = &t->residue[first + count - 1];
    size_t b = (size_t)a->first_body;
    size_t m = (size_t)(z->first_body + z->n_body - a->first_body);
    memcpy(to->backbone + i, from->backbone + i, n * sizeof *to->backbone);
    memcpy(to->side + i, from->side + i, n * sizeof *to->side);
    memcpy(to->body + b, from->body + b, m * sizeof *to->body);
}

void tsr_conformation_cb(const tsr_topology *t, const tsr_conformation *c,
                         int residue, double cb[3])
{
    double(*x)[3] = c->backbone[residue];
    double frame[3][3];
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_global(cb, frame, x[TSR_CA], t->residue[residue].cb);
}

void tsr_conformation_base(const tsr_topology *t, const tsr_conformation *c,
                           int residue, tsr_motion *motion)
{
    const tsr_base *base = &t->base[residue];
    tsr_motion_about(motion, base->from, base->to,
                     c->side[residue][0] - base->chi);
}

/* Places the bodies of a link, all of which are guests. */
static void place_link_bodies(const tsr_topology *t, tsr_conformation *c, int i)
{
    const tsr_residue *r = &t->residue[i];
    double(*x)[3] = c->backbone[i];
    double frame[3][3];
    tsr_motion turn = {.shift = {0.0}};
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    if (t->base[i].exists)
        tsr_conformation_base(t, c, i, &turn);
    for (int b = r->first_body; b < r->first_body + r->n_body; b++) {
        const tsr_guest_body *body = tsr_guests_body(t, b);
        double local[3];
        tsr_vec3_copy(local, body->local);
        if (body->with_base)
            tsr_motion_apply(&turn, local);
        tsr_frame_to_global(c->body[b], frame, x[TSR_CA], local);
    }
}

static void place_residue_bodies(const tsr_topology *t, tsr_conformation *c,
                                 int i)
{
    const tsr_residue *r = &t->residue[i];
    double(*x)[3] = c->backbone[i];
    double frame[3][3], main[3], cb[3] = {0};
    if (r->link != TSR_LINK_NONE) {
        place_link_bodies(t, c, i);
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

    double(*body)[3] = c->body + r->first_body;
    int n_own = r->n_body - r->n_guest;
    for (int b = n_own; b < r->n_body; b++)
        tsr_frame_to_global(body[b], frame, x[TSR_CA],
                            tsr_guests_body(t, r->first_body + b)->local);
    if (!tsr_amino_has_side_chain(r->amino)) {
        tsr_vec3_copy(body[0], main);
        return;
    }
    double side[3];
    tsr_frame_to_global(side, frame, x[TSR_CA], c->side[i]);
    if (n_own == 2) {
        tsr_vec3_copy(body[0], main);
        tsr_vec3_copy(body[1], side);
        return;
    }
    double beyond = tsr_amino_side_chain_mass(r->amino);
    for (int d = 0; d < 3; d++)
        body[0][d] = (mass * main[d] + beyond * side[d]) / (mass + beyond);
}

void tsr_conformation_place_bodies(const tsr_topology *t, tsr_conformation *c,
                                   int first, int count)
{
    for (int i = first; i < first + count; i++)
        place_residue_bodies(t, c, i);
}

double tsr_conformation_torsion(const tsr_topology *t,
                                const tsr_conformation *c, int residue,
                                tsr_torsion_kind kind)
{
    const tsr_residue *r = &t->residue[residue];
    double(*x)[3] = c->backbone[residue];
    if (kind == TSR_PHI)
        return residue == r->chain_first
                   ? (double)NAN
                   : tsr_vec3_torsion(
                         c->backbone[residue - 1][tsr_residue_atom_before(r)],
                         x[TSR_N], x[TSR_CA], x[TSR_C]);
    return residue == r->chain_last
               ? (double)NAN
               : tsr_vec3_torsion(
                     x[TSR_N], x[TSR_CA], x[TSR_C],
                     c->backbone[residue + 1][tsr_residue_atom_after(r)]);
}

/* Lanes x, y, z and an unused one. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

/* Applies tsr_motion_apply to n points with vector instructions, by columns of
 * the rotation and with the same order of additions. The unused lane overwrites
 * x of the next point, which was read before. The last point uses the plain
 * function. */
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

void tsr_conformation_move(const tsr_topology *t, tsr_conformation *c,
                           int first, int last, const tsr_motion *motion)
{
    if (first > last)
        return;
    move_points(motion, c->backbone[first], 4 * (last - first + 1));
    const tsr_residue *a = &t->residue[first];
    const tsr_residue *z = &t->residue[last];
    move_points(motion, c->body + a->first_body,
                z->first_body + z->n_body - a->first_body);
}

/* Proceeds from the fixed end to the moving end, so that each residue is moved
 * once. Turning the C side about an axis by +angle, or the N side by -angle,
 * increases the torsion by this angle. */
void tsr_conformation_turn_many(const tsr_topology *t, tsr_conformation *c,
                                int first, int last, int c_side,
                                const double (*change_rad)[2])
{
    tsr_motion all, one;
    int moving = 0;
    for (int n = 0; n <= last - first; n++) {
        const int i = c_side ? first + n : last - n;
        const double *change = change_rad[i - first];
        double(*x)[3] = c->backbone[i];
        for (int a = 0; moving && a < 4; a++)
            tsr_motion_apply(&all, x[a]);
        /* phi of the N side does not move its own residue */
        const int own =
            moving || change[1] != 0.0 || (c_side && change[0] != 0.0);
        for (int m = 0; m < 2; m++) {
            const int k = c_side ? m : 1 - m, from = k == 0 ? TSR_N : TSR_CA;
            if (change[k] == 0.0)
                continue;
            tsr_motion_about(&one, x[from], x[from + 1],
                             c_side ? change[k] : -change[k]);
            if (c_side && k == 0)
                tsr_motion_apply(&one, x[TSR_C]);
            if (c_side || k == 1)
                tsr_motion_apply(&one, x[c_side ? TSR_O : TSR_N]);
            if (moving)
                tsr_motion_compose(&all, &one, &all);
            else
                all = one;
            moving = 1;
        }
        if (own)
            place_residue_bodies(t, c, i);
    }
    if (moving && c_side)
        tsr_conformation_move(t, c, last + 1, t->residue[last].chain_last,
                              &all);
    else if (moving)
        tsr_conformation_move(t, c, t->residue[first].chain_first, first - 1,
                              &all);
}

void tsr_conformation_turn(const tsr_topology *t, tsr_conformation *c,
                           const tsr_torsion *torsion, double angle_rad)
{
    double change[1][2] = {{0.0, 0.0}};
    change[0][torsion->kind == TSR_PSI] = angle_rad;
    tsr_conformation_turn_many(t, c, torsion->residue, torsion->residue,
                               torsion->c_side, (const double(*)[2])change);
}

double tsr_conformation_rg(const tsr_topology *t, const tsr_conformation *c,
                           const double *rg2)
{
    double centre[3] = {0}, sum = 0.0;
    for (int b = 0; b < t->n_body; b++)
        for (int d = 0; d < 3; d++)
            centre[d] += t->body[b].mass * c->body[b][d];
    for (int d = 0; d < 3; d++)
        centre[d] /= t->total_mass;
    for (int b = 0; b < t->n_body; b++) {
        const tsr_body *body = &t->body[b];
        double own = rg2 == NULL ? 0.0 : rg2[body->type];
        sum += body->mass * (tsr_vec3_distance2(c->body[b], centre) + own);
    }
    return sqrt(sum / t->total_mass);
}

/* Number of atoms of a residue in a model: GLY has no CB, and ALA has no
 * side-chain centre. Atoms of links are guests. */
static int atoms_of(const tsr_residue *r)
{
    return r->link != TSR_LINK_NONE             ? 0
           : r->amino == TSR_GLY                ? 4
           : tsr_amino_has_side_chain(r->amino) ? 6
                                                : 5;
}

int tsr_topology_n_atom(const tsr_topology *t)
{
    int n = 0;
    for (int i = 0; i < t->n_residue; i++)
        n += atoms_of(&t->residue[i]);
    return n + tsr_guests_n_atom(t->guests);
}

void tsr_conformation_atoms(const tsr_topology *t, const tsr_conformation *c,
                            double (*xyz)[3])
{
    double frame[3][3];
    for (int i = 0; i < t->n_residue; i++) {
        double(*x)[3] = c->backbone[i];
        const int n = atoms_of(&t->residue[i]);
        if (n > 0)
            memcpy(xyz, x, 4 * sizeof *xyz);
        if (n > 4)
            tsr_conformation_cb(t, c, i, xyz[4]);
        if (n > 5) {
            tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
            tsr_frame_to_global(xyz[5], frame, x[TSR_CA], c->side[i]);
        }
        xyz += n;
    }
    tsr_guests_place(t, c, xyz);
}

static void set_model_atom(tsr_model_atom *to, const char *name, int z,
                           const char *residue, const char *chain, int number,
                           char insertion, tsr_guest_kind guest_kind)
{
    *to = (tsr_model_atom){.chain = chain[0] == '\0'   ? ' '
                                    : chain[1] == '\0' ? chain[0]
                                                       : '\0',
                           .number = number,
                           .insertion = insertion,
                           .guest_kind = guest_kind};
    snprintf(to->name, sizeof to->name, "%.4s", name);
    snprintf(to->residue, sizeof to->residue, "%.3s", residue);
    snprintf(to->element, sizeof to->element, "%.2s", tsr_atom_symbol(z));
    snprintf(to->chain_id, sizeof to->chain_id, "%s", chain);
}

tsr_model_atoms *tsr_topology_model(const tsr_topology *t,
                                    const tsr_conformation *c)
{
    static const char *const names[6] = {"N", "CA", "C", "O", "CB", "SC"};
    static const int number[6] = {7, 6, 6, 8, 6, 6};
    tsr_model_atoms *m = tsr_model_atoms_new(tsr_topology_n_atom(t));
    if (m == NULL)
        return NULL;
    tsr_model_atom *to = m->atom;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        for (int a = 0; a < atoms_of(r); a++)
            set_model_atom(to++, names[a], number[a],
                           tsr_amino_table[r->amino].three, r->chain, r->number,
                           r->insertion, TSR_GUEST_NONE);
    }
    for (int i = 0; i < tsr_guests_n_atom(t->guests); i++) {
        const tsr_file_atom *a = &t->guests->atoms->atom[i];
        const tsr_file_residue *r = &t->guests->atoms->residue[a->residue];
        set_model_atom(to++, a->name, a->z, r->name, r->chain, r->number,
                       r->insertion,
                       r->kind == TSR_MOLECULE_NUCLEOTIDE ? TSR_GUEST_NUCLEOTIDE
                                                          : TSR_GUEST_LIGAND);
    }
    m->n_chain = t->n_chain;
    tsr_conformation_atoms(t, c, (double(*)[3])m->xyz);
    tsr_model_atoms_count(m);
    return m;
}

/* ---- ideal geometry ---- */

void tsr_place_atom(double d[3], const double a[3], const double b[3],
                    const double c[3], double bond_ang, double angle_rad,
                    double torsion_rad)
{
    double ab[3], bc[3], n[3], m[3];
    tsr_vec3_sub(ab, b, a);
    tsr_vec3_sub(bc, c, b);
    tsr_vec3_normalize(bc);
    tsr_vec3_cross(n, ab, bc);
    tsr_vec3_normalize(n);
    tsr_vec3_cross(m, n, bc);
    double x = -bond_ang * cos(angle_rad);
    double r = bond_ang * sin(angle_rad);
    double y = r * cos(torsion_rad), z = r * sin(torsion_rad);
    for (int i = 0; i < 3; i++)
        d[i] = c[i] + x * bc[i] + y * m[i] + z * n[i];
}

void tsr_place_cb(double cb[3], const double n[3], const double ca[3],
                  const double c[3])
{
    /* Engh & Huber 1991: CA-CB 1.530, C-CA-CB 110.1 degrees; the torsion
     * N-C-CA-CB of an L residue, from the same set, is 122.6 degrees. */
    tsr_place_atom(cb, n, c, ca, 1.530, 110.1 * TSR_PI / 180.0,
                   122.6 * TSR_PI / 180.0);
}

/* ---- attached chains ---- */

/* The motion that takes a residue from position `was` to position `is`. */
static void motion_of(const double was[4][3], const double is[4][3],
                      tsr_motion *motion)
{
    double from[3][3], to[3][3];
    tsr_frame(from, was[TSR_N], was[TSR_CA], was[TSR_C]);
    tsr_frame(to, is[TSR_N], is[TSR_CA], is[TSR_C]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            motion->rotation[i][j] = to[i][0] * from[j][0] +
                                     to[i][1] * from[j][1] +
                                     to[i][2] * from[j][2];
        motion->shift[i] =
            is[TSR_CA][i] - tsr_vec3_dot(motion->rotation[i], was[TSR_CA]);
    }
}

/* Index of the span that contains a residue; -1: no span does. */
static int span_of(const tsr_proposal *p, int residue)
{
    for (int k = 0; k < p->n_span; k++)
        if (residue >= p->span[k].first &&
            residue < p->span[k].first + p->span[k].count)
            return k;
    return -1;
}

/* Adds the span of an attached chain, and removes spans within that chain. */
static void add_attached_span(tsr_proposal *p, tsr_span span)
{
    int n = 0;
    for (int k = 0; k < p->n_span; k++) {
        const tsr_span old = p->span[k];
        if (old.first >= span.first && old.first < span.first + span.count)
            span.group = 0; /* mutual distances changed as well */
        else
            p->span[n++] = old;
    }
    int k = n++;
    for (; k > 0 && p->span[k - 1].first > span.first; k--)
        p->span[k] = p->span[k - 1];
    p->span[k] = span;
    p->n_span = n;
}

/* ---- symmetric assemblies ---- */

void tsr_conformation_place_copies(const tsr_topology *t, tsr_conformation *c,
                                   int first, int count)
{
    const tsr_residue *a = &t->residue[first];
    const tsr_residue *z = &t->residue[first + count - 1];
    const size_t n = (size_t)count;
    const size_t n_body = (size_t)(z->first_body + z->n_body - a->first_body);
    for (int g = 1; g < t->symmetry.n; g++) {
        const int to = first + g * t->n_own;
        double(*body)[3] = c->body + t->residue[to].first_body;
        memcpy(c->backbone + to, c->backbone + first, n * sizeof *c->backbone);
        memcpy(c->side + to, c->side + first, n * sizeof *c->side);
        memcpy(body, c->body + a->first_body, n_body * sizeof *body);
        tsr_conformation_move(t, c, to, to + count - 1, &t->symmetry.motion[g]);
    }
}

/* A group of the subunit is another group in each copy. */
static void move_copies(const tsr_topology *t, tsr_conformation *proposed,
                        tsr_proposal *p)
{
    const int n = p->n_span, n_copy = t->symmetry.n;
    for (int k = 0; k < n; k++)
        tsr_conformation_place_copies(t, proposed, p->span[k].first,
                                      p->span[k].count);
    for (int g = n_copy - 1; g >= 0; g--)
        for (int k = 0; k < n; k++) {
            tsr_span *to = &p->span[g * n + k];
            *to = p->span[k];
            to->first += g * t->n_own;
            to->group = to->group > 0 ? to->group * n_copy + g : 0;
        }
    p->n_span = n * n_copy;
}

void tsr_topology_project_shift(const tsr_topology *t, double shift[3])
{
    double mean[3] = {0.0, 0.0, 0.0};
    for (int g = 0; g < t->symmetry.n; g++)
        for (int d = 0; d < 3; d++)
            mean[d] += tsr_vec3_dot(t->symmetry.motion[g].rotation[d], shift) /
                       t->symmetry.n;
    tsr_vec3_sub(shift, shift, mean);
}

tsr_status tsr_topology_check_copies(const tsr_topology *t, tsr_err *err)
{
    for (int i = t->n_own; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i], *own = &t->residue[i % t->n_own];
        if (r->n_body != own->n_body)
            return tsr_fail(err, TSR_E_DATA,
                            "structure.symmetry: %s:%d carries %d bodies of "
                            "ligands, but its copy %s:%d carries %d: ligands "
                            "near an axis break the symmetry; take them out of "
                            "the file, or structure.ligands: none",
                            own->chain, own->number, own->n_guest, r->chain,
                            r->number, r->n_guest);
    }
    return TSR_OK;
}

void tsr_proposal_move_attached(const tsr_topology *t,
                                const tsr_conformation *current,
                                tsr_conformation *proposed,
                                tsr_proposal *proposal)
{
    for (int k = 0; k < t->n_attached && proposal->n_span > 0; k++) {
        const tsr_attached_chain *chain = &t->attached[k];
        const int host = span_of(proposal, chain->host);
        if (host < 0)
            continue;
        tsr_motion motion;
        motion_of((const double(*)[3])current->backbone[chain->host],
                  (const double(*)[3])proposed->backbone[chain->host], &motion);
        tsr_conformation_move(t, proposed, chain->first, chain->last, &motion);
        add_attached_span(proposal, (tsr_span){chain->first,
                                               chain->last - chain->first + 1,
                                               proposal->span[host].group});
    }
    if (t->symmetry.n > 1)
        move_copies(t, proposed, proposal);
}
