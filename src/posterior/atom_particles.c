/* Which particles a residue has, where they are, and what they scatter. Those
 * of a residue are its atoms, the beads on them, then the atoms of guests that
 * it carries and their beads. */
#include "posterior/atom_particles.h"

#include "core/vec3.h"
#include "molecule/guest.h"
#include "scattering/profile_method.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        n = tsr_all_atoms_place_residue(tsr_atom_curves_all(p->curves), residue,
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
        tsr_atom_model_spec(m, origin, n_q, dq_inv_ang, &each, &spec, err);
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
    tsr_coarse_spec fold = {.spec = {.n_type = particles->n_kind,
                                     .n_q = n_q,
                                     .dq_inv_ang = dq_inv_ang},
                            .form_factor = factor,
                            .radius_ang = particles->radius_ang};
    fold.self = calloc(TSR_N_COMP_PAIR * row, sizeof *fold.self);
    TSR_TRY(tsr_allocated(fold.self, err));
    tsr_coarse_fold(&fold, p->spec.contrast);
    free(fold.self);
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
    tsr_status status = tsr_atom_model_spec(p->model[probe], origin, n_q,
                                            dq_inv_ang, &each, &spec, err);
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
        tsr_all_atoms_ride(tsr_atom_curves_all(p->curves), n,
                           m->owner + m->n_atom, (const double(*)[3])model,
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
