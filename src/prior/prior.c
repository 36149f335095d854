/* The prior of a molecule: options, densities prepared from the trained table,
 * single factors for moves, and the running log density of a chain's current
 * conformation. */
#include "prior/prior.h"

#include "core/clock.h"
#include "core/vec3.h"
#include "molecule/guest.h"
#include "molecule/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- restraints ---- */

enum { AT_CA, AT_SIDE_CHAIN };
static const char *const at_words[] = {"ca", "side_chain", NULL};

static const tsr_field restraint_fields[] = {
    TSR_FIELD(STRINGS, "between", tsr_restraint_options, between,
              .initial = "[]",
              .doc = "two residues, as [\"A:17\", \"A:203\"]; the P atom for a "
                     "nucleotide that moves"),
    TSR_FIELD(CHOICE, "at", tsr_restraint_options, at, .initial = "ca",
              .words = at_words,
              .doc = "atoms of the distance: CA or side-chain centres"),
    TSR_FIELD(PAIR, "distance", tsr_restraint_options, distance,
              .unit = "Angstrom", .initial = "[0, 30]", .min = 0.0,
              .max = 5000.0, .doc = "range of distances without penalty"),
    TSR_FIELD(DOUBLE, "width", tsr_restraint_options, width, .unit = "Angstrom",
              .initial = "2", .min = 0.01, .max = 1000.0,
              .doc = "excess over the range that costs half a nat"),
    {0}};

/* Returns 1 if residue i is a link, and the link before it belongs to the same
 * nucleotide. */
static int is_same_nucleotide(const tsr_topology *t, int i)
{
    return i > t->residue[i].chain_first &&
           t->residue[i].link > TSR_LINK_PHOSPHATE &&
           t->residue[i - 1].nucleotide == t->residue[i].nucleotide;
}

/* Finds the single residue that the text names. For a nucleotide this is its
 * first link, whose CA is P. */
static tsr_status find_residue(const tsr_topology *t, const char *text,
                               int *mark, int *residue, tsr_err *err)
{
    int n = 0;
    for (int i = 0; i < t->n_residue; i++)
        mark[i] = 0;
    TSR_TRY(tsr_range_mark(text, t->n_residue, t->residue, mark, err));
    for (int i = 0; i < t->n_residue; i++)
        if (mark[i] && !is_same_nucleotide(t, i)) {
            *residue = i;
            n++;
        }
    if (n != 1)
        return tsr_fail(err, TSR_E_CONFIG,
                        "'%s' names %d residues; expected one", text, n);
    return TSR_OK;
}

tsr_status tsr_restraint_make(const tsr_topology *t,
                              const tsr_restraint_options *options,
                              tsr_restraint *restraint, tsr_err *err)
{
    if (options->between.n != 2)
        return tsr_fail(err, TSR_E_CONFIG,
                        "between: names %d residue%s; expected two, as "
                        "[\"A:17\", \"A:203\"]",
                        options->between.n, options->between.n == 1 ? "" : "s");
    int *mark = calloc((size_t)t->n_residue, sizeof *mark);
    TSR_TRY(tsr_allocated(mark, err));
    *restraint = (tsr_restraint){{0, 0},
                                 options->at,
                                 options->distance[0],
                                 options->distance[1],
                                 1.0 / options->width};
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        status = tsr_wrap(err,
                          find_residue(t, options->between.item[k], mark,
                                       &restraint->residue[k], err),
                          "between");
    }
    free(mark);
    TSR_TRY(status);
    const tsr_residue *a = &t->residue[restraint->residue[0]];
    const tsr_residue *b = &t->residue[restraint->residue[1]];
    if (a == b || (a->unit >= 0 && a->unit == b->unit))
        return tsr_fail(
            err, TSR_E_CONFIG,
            "between: '%s' and '%s' are %s: their distance cannot change",
            options->between.item[0], options->between.item[1],
            a == b ? "the same residue" : "in one rigid part");
    return TSR_OK;
}

static void restraint_point(const tsr_topology *t, const tsr_conformation *c,
                            int at, int i, double x[3])
{
    double(*backbone)[3] = c->backbone[i];
    if (at == AT_CA || t->residue[i].amino == TSR_GLY) {
        tsr_vec3_copy(x, backbone[TSR_CA]);
    } else if (!tsr_amino_has_side_chain(t->residue[i].amino)) {
        tsr_conformation_cb(t, c, i, x);
    } else {
        double frame[3][3];
        tsr_frame(frame, backbone[TSR_N], backbone[TSR_CA], backbone[TSR_C]);
        tsr_frame_to_global(x, frame, backbone[TSR_CA], c->side[i]);
    }
}

double tsr_restraint_distance(const tsr_topology *t,
                              const tsr_restraint *restraint,
                              const tsr_conformation *c)
{
    double x[2][3];
    for (int k = 0; k < 2; k++)
        restraint_point(t, c, restraint->at, restraint->residue[k], x[k]);
    return tsr_vec3_distance(x[0], x[1]);
}

double tsr_restraint_log(const tsr_restraint *restraint, double distance_ang)
{
    double out =
        fmax(distance_ang - restraint->upper, restraint->lower - distance_ang);
    double z = out > 0.0 ? out * restraint->inverse_width : 0.0;
    return -0.5 * z * z;
}

/* ---- chains in contact ---- */

/* The bodies of a chain, guests included. */
static tsr_body_span chain_bodies(const tsr_topology *t, int chain)
{
    const tsr_residue *a = &t->residue[t->chain_start[chain]];
    const tsr_residue *z = &t->residue[t->chain_start[chain + 1] - 1];
    return (tsr_body_span){a->first_body, z->first_body + z->n_body, 0};
}

/* Number of contacts of two chains; counting ends at `most`. */
static int count_contacts(const tsr_topology *t, const double (*x)[3], int one,
                          int other, int most)
{
    const tsr_body_span a = chain_bodies(t, one), b = chain_bodies(t, other);
    double centre[3], far2 = 0.0;
    int n = 0;
    tsr_centroid(b.end - b.first, NULL, x + b.first, centre);
    for (int j = b.first; j < b.end; j++)
        far2 = fmax(far2, tsr_vec3_distance2(x[j], centre));
    const double near = sqrt(far2) + TSR_CONTACT_ANG;
    for (int i = a.first; i < a.end && n < most; i++) {
        if (tsr_vec3_distance2(x[i], centre) > near * near)
            continue;
        for (int j = b.first; j < b.end && n < most; j++)
            n += tsr_vec3_distance2(x[i], x[j]) <
                 TSR_CONTACT_ANG * TSR_CONTACT_ANG;
    }
    return n;
}

int tsr_prior_is_in_contact(const tsr_topology *t, const tsr_conformation *c)
{
    const double(*x)[3] = (const double(*)[3])c->body;
    for (int k = 0; k < t->n_chain && t->contacts > 0 && t->n_chain > 1; k++) {
        int n = t->mobile[k] ? 0 : t->contacts;
        for (int o = 0; o < t->n_chain && n < t->contacts; o++)
            if (tsr_topology_part(t, o) != k + 1)
                n += count_contacts(t, x, k, o, t->contacts - n);
        if (n < t->contacts)
            return 0;
    }
    return 1;
}

/* ---- the prior ---- */

static const char *const clash_words[] = {"soft", "none", NULL};

const tsr_field tsr_prior_fields[] = {
    TSR_FIELD(CHOICE, "clash", tsr_prior_options, clash, .initial = "soft",
              .words = clash_words, .doc = "excluded volume of the bodies"),
    TSR_FIELD(DOUBLE, "softness", tsr_prior_options, softness,
              .unit = "Angstrom", .initial = "0.5", .min = 0.01, .max = 10.0,
              .doc = "overlap that costs half a nat"),
    TSR_FIELD(DOUBLE, "clash_limit", tsr_prior_options, clash_limit,
              .unit = "nat", .initial = "10", .min = 0.01, .max = 1e5,
              .doc =
                  "a pair whose overlap costs more is impossible; such "
                  "proposals are rejected before the likelihood is computed"),
    TSR_FIELD(BOOL, "relax", tsr_prior_options, relax, .initial = "false",
              .doc = "move the starting structure until no pair is impossible, "
                     "instead of refusing it"),
    TSR_FIELD(LIST, "restraints", tsr_prior_options, restraints,
              .fields = restraint_fields,
              .element_size = sizeof(tsr_restraint_options),
              .doc = "known distances between residues (cross-links, FRET)"),
    {0}};

static const double log_2pi = 1.8378770664093453;

void tsr_prior_free(tsr_prior *prior)
{
    if (prior == NULL)
        return;
    for (int r = 0; r < TSR_N_RAMA + TSR_N_NUCLEIC_CLASS; r++)
        free(prior->torsion[r]);
    for (int a = 0; a < TSR_N_AMINO; a++)
        free(prior->side[a]);
    tsr_pool_clear(&prior->pool);
    free(prior);
}

static void set_clash(tsr_clash *clash, const tsr_topology *topology,
                      const tsr_prior_table *table,
                      const tsr_prior_options *options)
{
    int n_type = tsr_body_n_type(topology->body_model);
    clash->topology = topology;
    clash->inverse_softness = 1.0 / options->softness;
    clash->limit = options->clash_limit;
    for (int t = 0; t < n_type; t++)
        for (int u = 0; u < n_type; u++) {
            double d = table->contact[topology->body_model][t][u];
            clash->contact[t][u] = d;
            if (options->clash == TSR_CLASH_SOFT && d > clash->cutoff)
                clash->cutoff = d;
        }
}

static tsr_status set_densities(tsr_prior *p, const tsr_prior_table *table,
                                tsr_err *err)
{
    for (int r = 0; r < TSR_N_RAMA; r++) {
        p->torsion[r] = tsr_torsion_density_new(&table->torsion[r]);
        TSR_TRY(tsr_allocated(p->torsion[r], err));
    }
    for (int k = 0; k < TSR_N_NUCLEIC_CLASS && p->topology->n_link > 0; k++) {
        tsr_torsion_mixture mixture;
        tsr_nucleotide_mixture((tsr_nucleic_class)k, &mixture);
        p->torsion[TSR_N_RAMA + k] = tsr_torsion_density_new(&mixture);
        TSR_TRY(tsr_allocated(p->torsion[TSR_N_RAMA + k], err));
    }
    for (int a = 0; a < TSR_N_AMINO; a++) {
        p->angle[a] = table->angle[a];
        if (!tsr_amino_has_side_chain((tsr_amino)a))
            continue;
        p->side[a] = tsr_side_density_new(&table->side[a]);
        TSR_TRY(tsr_allocated(p->side[a], err));
    }
    return TSR_OK;
}

static tsr_status set_restraints(tsr_prior *p, const tsr_list *restraints,
                                 tsr_err *err)
{
    const tsr_restraint_options *item = restraints->item;
    tsr_pool_array(&p->pool, p->restraint, restraints->n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int k = 0; k < restraints->n; k++) {
        TSR_TRY(tsr_wrap(
            err,
            tsr_restraint_make(p->topology, &item[k], &p->restraint[k], err),
            "prior.restraints.%d", k));
        p->n_restraint = k + 1;
    }
    return TSR_OK;
}

tsr_status tsr_prior_new(const tsr_topology *t, const tsr_prior_table *table,
                         const tsr_prior_options *options, double d_limit_ang,
                         tsr_prior **out, tsr_err *err)
{
    *out = NULL;
    tsr_prior *p = calloc(1, sizeof *p);
    TSR_TRY(tsr_allocated(p, err));
    p->topology = t;
    p->d_limit_ang = d_limit_ang;
    set_clash(&p->clash, t, table, options);
    tsr_status status = set_densities(p, table, err);
    TSR_THEN(status, set_restraints(p, &options->restraints, err));
    TSR_HAND_OVER(status, p, out, tsr_prior_free);
}

/* ---- factors ---- */

double tsr_prior_torsion_log(const tsr_prior *prior, int residue,
                             const double phi_cos_sin[2],
                             const double psi_cos_sin[2])
{
    const tsr_residue *r = &prior->topology->residue[residue];
    const tsr_torsion_density *f = prior->torsion[r->rama];
    if (r->has_phi && r->has_psi)
        return tsr_torsion_density_log_at(f, phi_cos_sin, psi_cos_sin);
    if (r->has_phi)
        return tsr_torsion_density_log_phi(
            f, atan2(phi_cos_sin[1], phi_cos_sin[0]));
    if (r->has_psi)
        return tsr_torsion_density_log_psi(
            f, atan2(psi_cos_sin[1], psi_cos_sin[0]));
    return 0.0;
}

void tsr_prior_torsion_draw(const tsr_prior *prior, int residue, gsl_rng *rng,
                            double *phi_rad, double *psi_rad)
{
    const int rama = prior->topology->residue[residue].rama;
    tsr_torsion_density_draw(prior->torsion[rama], rng, phi_rad, psi_rad);
}

double tsr_prior_angle_log(const tsr_prior *prior, int residue, double tau_rad)
{
    const tsr_angle_gaussian *g =
        &prior->angle[prior->topology->residue[residue].amino];
    double z = (tau_rad - g->mean) / g->sd;
    return -0.5 * (z * z + log_2pi) - log(g->sd);
}

/* The density of chi is stored as the density of phi. */
static const tsr_torsion_density *chi_density(const tsr_prior *prior,
                                              const tsr_residue *r)
{
    const int is_dna = r->rama - TSR_N_RAMA >= TSR_N_NUCLEIC;
    return prior
        ->torsion[TSR_N_RAMA + TSR_NUCLEIC_CHI + (is_dna ? TSR_N_NUCLEIC : 0)];
}

double tsr_prior_side_log(const tsr_prior *prior, int residue,
                          const double side[3])
{
    const tsr_residue *r = &prior->topology->residue[residue];
    const tsr_amino amino = r->amino;
    if (r->link != TSR_LINK_NONE)
        return tsr_torsion_density_log_phi(chi_density(prior, r), side[0]);
    return tsr_side_density_log(prior->side[amino], side);
}

void tsr_prior_side_draw(const tsr_prior *prior, int residue, gsl_rng *rng,
                         double side[3])
{
    const tsr_residue *r = &prior->topology->residue[residue];
    const tsr_amino amino = r->amino;
    if (r->link != TSR_LINK_NONE) {
        double other;
        tsr_torsion_density_draw(chi_density(prior, r), rng, &side[0], &other);
        return;
    }
    tsr_side_density_draw(prior->side[amino], rng, side);
}

/* ---- terms from coordinates ---- */

/* {cos, sin} of the torsion a-b-c-d. */
static void torsion_cos_sin(const double a[3], const double b[3],
                            const double c[3], const double d[3], double out[2])
{
    double x, y;
    tsr_vec3_torsion_xy(a, b, c, d, &x, &y);
    double size = sqrt(x * x + y * y);
    out[0] = size > 0.0 ? x / size : 1.0;
    out[1] = size > 0.0 ? y / size : 0.0;
}

double tsr_prior_torsion_log_of(const tsr_prior *prior,
                                const tsr_conformation *c, int residue)
{
    const tsr_residue *r = &prior->topology->residue[residue];
    double(*x)[3] = c->backbone[residue];
    double phi[2] = {1.0, 0.0}, psi[2] = {1.0, 0.0};
    if (r->has_phi)
        torsion_cos_sin(c->backbone[residue - 1][tsr_residue_atom_before(r)],
                        x[TSR_N], x[TSR_CA], x[TSR_C], phi);
    if (r->has_psi)
        torsion_cos_sin(x[TSR_N], x[TSR_CA], x[TSR_C],
                        c->backbone[residue + 1][tsr_residue_atom_after(r)],
                        psi);
    return tsr_prior_torsion_log(prior, residue, phi, psi);
}

enum { TORSION, ANGLE, SIDE, N_RESIDUE_TERM };

/* One term of a flexible residue: torsions, angle N-CA-C or side chain. */
static int64_t residue_term(const tsr_prior *prior, const tsr_conformation *c,
                            int i, int kind)
{
    const tsr_residue *r = &prior->topology->residue[i];
    double(*x)[3] = c->backbone[i];
    const int is_link = r->link != TSR_LINK_NONE;
    if (kind == TORSION)
        return tsr_to_fixed(tsr_prior_torsion_log_of(prior, c, i));
    if (kind == ANGLE) /* constant in a link */
        return is_link ? 0
                       : tsr_to_fixed(tsr_prior_angle_log(
                             prior, i,
                             tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C])));
    const int has_side = is_link ? prior->topology->base[i].exists
                                 : tsr_amino_has_side_chain(r->amino);
    return has_side ? tsr_to_fixed(tsr_prior_side_log(prior, i, c->side[i]))
                    : 0;
}

static int64_t restraint_term(const tsr_prior *prior, const tsr_conformation *c,
                              int k)
{
    const tsr_restraint *r = &prior->restraint[k];
    return tsr_to_fixed(
        tsr_restraint_log(r, tsr_restraint_distance(prior->topology, r, c)));
}

/* ---- reference ---- */

double tsr_prior_log_reference(const tsr_prior *prior,
                               const tsr_conformation *c)
{
    const tsr_topology *t = prior->topology;
    const double(*body)[3] = (const double(*)[3])c->body;
    int64_t sum = 0;
    if (prior->d_limit_ang > 0.0 &&
        tsr_is_distance_beyond(t->n_body, body, prior->d_limit_ang))
        return -(double)INFINITY;
    if (!tsr_prior_is_in_contact(t, c))
        return -(double)INFINITY;
    for (int i = 0; i < t->n_residue; i++)
        for (int k = 0; k < N_RESIDUE_TERM && t->residue[i].flexible; k++)
            sum += residue_term(prior, c, i, k);
    for (int k = 0; k < prior->n_restraint; k++)
        sum += restraint_term(prior, c, k);
    for (int a = 0; a < t->n_body; a++)
        for (int b = 0; b < a; b++) {
            int64_t term =
                tsr_clash_pair(&prior->clash, a, body[a], b, body[b]);
            if (term == TSR_CLASH_FORBIDDEN)
                return -(double)INFINITY;
            sum += term;
        }
    return tsr_from_fixed(sum);
}

/* "A:12 LEU (side chain)" */
static int body_text(const tsr_topology *t, int b, char *text, size_t size)
{
    const tsr_residue *r = &t->residue[t->body[b].residue];
    if (t->body[b].type >= tsr_body_n_type(t->body_model)) {
        const tsr_file_residue *guest =
            &t->guests->atoms->residue[tsr_guests_body(t, b)->residue];
        return snprintf(text, size, "%s:%d %s", guest->chain, guest->number,
                        guest->name);
    }
    char insertion[2] = {r->insertion == ' ' ? '\0' : r->insertion, '\0'};
    const char *part = r->n_body - r->n_guest == 1 ? ""
                       : r->first_body == b        ? " (backbone)"
                                                   : " (side chain)";
    return snprintf(text, size, "%s:%d%s %s%s", r->chain, r->number, insertion,
                    tsr_amino_table[r->amino].three, part);
}

int tsr_prior_clashes(const tsr_prior *prior,
                      const tsr_conformation *conformation, char worst[160])
{
    const tsr_clash *c = &prior->clash;
    const tsr_topology *t = prior->topology;
    const double(*x)[3] = (const double(*)[3])conformation->body;
    int n = 0;
    double most = 0.0;
    for (int a = 0; a < t->n_body; a++)
        for (int b = 0; b < a; b++) {
            if (tsr_clash_pair(c, a, x[a], b, x[b]) != TSR_CLASH_FORBIDDEN)
                continue;
            double d =
                c->contact[t->body[a].contact_type][t->body[b].contact_type];
            double r = tsr_vec3_distance(x[a], x[b]);
            double z = (d - r) * c->inverse_softness, nat = 0.5 * z * z;
            n++;
            if (nat <= most)
                continue;
            char one[48], other[48];
            most = nat;
            body_text(t, b, one, sizeof one);
            body_text(t, a, other, sizeof other);
            snprintf(
                worst, 160,
                "%s and %s are %.2f A apart, contact is at %.2f A: %.1f nat",
                one, other, r, d, nat);
        }
    return n;
}

/* ---- running log density ---- */

typedef struct {
    int residue;
    int64_t term[N_RESIDUE_TERM];
} residue_terms;

struct tsr_prior_state {
    tsr_pool pool;
    const tsr_prior *prior;
    int64_t total, pending; /* log density; its change by the proposal */
    tsr_clash_state *clash; /* NULL: no excluded volume */
    int64_t (*term)[N_RESIDUE_TERM]; /* [n_residue] */
    residue_terms *changed;          /* [n_residue] terms of the proposal */
    int n_changed;
    uint64_t *seen,
        stamp; /* [n_residue] the latest proposal that changed the residue */
    int64_t *restraint;       /* [n_restraint] current terms */
    int64_t *new_restraint;   /* [n_restraint] terms of the proposal */
    double centre[3], radius; /* sphere around all current bodies, Angstrom */
    double new_radius;        /* its radius if the proposal is accepted */
    int sphere_is_current;    /* 1: the sphere was computed from the current
                                 conformation, and not enlarged since */
    long n_proposed;
    double clash_seconds;
};

/* One of TIMED_EVERY proposals is timed, and its time counts for all of
 * them. */
enum { TIMED_EVERY = 64 };

void tsr_prior_state_free(tsr_prior_state *state)
{
    if (state != NULL)
        tsr_pool_clear(&state->pool);
    free(state);
}

static void set_bounding_sphere(tsr_prior_state *s, const tsr_conformation *c)
{
    int n = s->prior->topology->n_body;
    double most = 0.0;
    for (int d = 0; d < 3; d++)
        s->centre[d] = 0.0;
    for (int b = 0; b < n; b++)
        for (int d = 0; d < 3; d++)
            s->centre[d] += c->body[b][d] / n;
    for (int b = 0; b < n; b++)
        most = fmax(most, tsr_vec3_distance2(c->body[b], s->centre));
    s->radius = sqrt(most);
    s->sphere_is_current = 1;
}

tsr_prior_state *tsr_prior_state_new(const tsr_prior *prior,
                                     const tsr_conformation *c)
{
    const tsr_topology *t = prior->topology;
    tsr_prior_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->prior = prior;
    tsr_pool_array(&s->pool, s->term, t->n_residue);
    tsr_pool_array(&s->pool, s->changed, t->n_residue);
    tsr_pool_array(&s->pool, s->seen, t->n_residue);
    tsr_pool_array(&s->pool, s->restraint, prior->n_restraint);
    tsr_pool_array(&s->pool, s->new_restraint, prior->n_restraint);
    if (prior->clash.cutoff > 0.0)
        s->clash = tsr_clash_state_new(&s->pool, &prior->clash,
                                       (const double(*)[3])c->body, &s->total);
    if (s->pool.failed) {
        tsr_prior_state_free(s);
        return NULL;
    }
    for (int i = 0; i < t->n_residue; i++) {
        if (!t->residue[i].flexible)
            continue;
        for (int k = 0; k < N_RESIDUE_TERM; k++) {
            s->term[i][k] = residue_term(prior, c, i, k);
            s->total += s->term[i][k];
        }
    }
    for (int k = 0; k < prior->n_restraint; k++) {
        s->restraint[k] = restraint_term(prior, c, k);
        s->total += s->restraint[k];
    }
    set_bounding_sphere(s, c);
    return s;
}

double tsr_prior_state_log(const tsr_prior_state *state)
{
    return tsr_from_fixed(state->total);
}

void tsr_prior_state_terms(const tsr_prior_state *s, double term[TSR_N_TERM])
{
    int64_t sum[TSR_N_TERM] = {0};
    for (int i = 0; i < s->prior->topology->n_residue; i++)
        for (int k = 0; k < N_RESIDUE_TERM; k++)
            sum[TSR_TERM_TORSION + k] += s->term[i][k];
    for (int k = 0; k < s->prior->n_restraint; k++)
        sum[TSR_TERM_RESTRAINT] += s->restraint[k];
    sum[TSR_TERM_CLASH] = s->total;
    for (int k = 0; k < TSR_N_TERM; k++)
        if (k != TSR_TERM_CLASH)
            sum[TSR_TERM_CLASH] -= sum[k];
    for (int k = 0; k < TSR_N_TERM; k++)
        term[k] = tsr_from_fixed(sum[k]);
}

/* ---- a proposal ---- */

/* Recomputes the terms of residue i for a proposal: the torsions, and with
 * `inner` also the angle and the side chain. Does nothing if i is not a
 * flexible residue or was already updated. */
static void update_residue(tsr_prior_state *s, const tsr_conformation *proposed,
                           int i, int inner)
{
    const tsr_topology *t = s->prior->topology;
    if (i < 0 || i >= t->n_residue || !t->residue[i].flexible ||
        s->seen[i] == s->stamp)
        return;
    s->seen[i] = s->stamp;
    residue_terms *r = &s->changed[s->n_changed++];
    r->residue = i;
    memcpy(r->term, s->term[i], sizeof r->term);
    for (int k = 0; k < (inner ? N_RESIDUE_TERM : ANGLE); k++) {
        r->term[k] = residue_term(s->prior, proposed, i, k);
        s->pending += r->term[k] - s->term[i][k];
    }
}

/* Updates the residues whose terms a proposal may change. In a rigid span only
 * torsions at its ends change. */
static void update_spans(tsr_prior_state *s, const tsr_conformation *proposed,
                         const tsr_proposal *p)
{
    s->n_changed = 0;
    s->stamp++;
    for (int k = 0; k < p->n_span; k++) {
        const tsr_span *span = &p->span[k];
        for (int i = 0; span->group == 0 && i < span->count; i++)
            update_residue(s, proposed, span->first + i, 1);
    }
    for (int k = 0; k < p->n_span; k++) {
        int first = p->span[k].first, end = first + p->span[k].count;
        update_residue(s, proposed, first - 1, 0);
        update_residue(s, proposed, first, 0);
        update_residue(s, proposed, end - 1, 0);
        update_residue(s, proposed, end, 0);
    }
}

/* *group: group of the residue's span; -1: the residue did not move. */
static int is_moved(const tsr_proposal *p, int residue, int *group)
{
    for (int k = 0; k < p->n_span; k++)
        if (residue >= p->span[k].first &&
            residue < p->span[k].first + p->span[k].count) {
            *group = p->span[k].group;
            return 1;
        }
    *group = -1;
    return 0;
}

static void update_restraints(tsr_prior_state *s,
                              const tsr_conformation *proposed,
                              const tsr_proposal *p)
{
    for (int k = 0; k < s->prior->n_restraint; k++) {
        const int *residue = s->prior->restraint[k].residue;
        int a, b;
        int moved = is_moved(p, residue[0], &a);
        moved |= is_moved(p, residue[1], &b);
        s->new_restraint[k] = moved && (a != b || a == 0)
                                  ? restraint_term(s->prior, proposed, k)
                                  : s->restraint[k];
        s->pending += s->new_restraint[k] - s->restraint[k];
    }
}

/* Returns 1 if two bodies are farther apart than d_limit. The result is exact.
 * A distance that changed has a moved body at one end, and is at most that
 * body's distance from the centre plus the radius of the bounding sphere. Cost:
 * O(moved bodies), except where a body moves near the surface of a large
 * molecule. */
static int is_too_wide(tsr_prior_state *s, const tsr_conformation *current,
                       const tsr_conformation *proposed, int n_span,
                       const tsr_body_span *span)
{
    double limit = s->prior->d_limit_ang;
    if (limit <= 0.0)
        return 0;
    for (;;) {
        double most = 0.0;
        for (int k = 0; k < n_span; k++)
            for (int b = span[k].first; b < span[k].end; b++) {
                double d2 = tsr_vec3_distance2(proposed->body[b], s->centre);
                most = d2 > most ? d2 : most;
            }
        s->new_radius = fmax(s->radius, sqrt(most));
        if (sqrt(most) + s->new_radius < limit * (1.0 - 1e-12))
            return 0;
        if (s->sphere_is_current)
            break;
        set_bounding_sphere(s, current);
    }
    return tsr_is_distance_beyond(s->prior->topology->n_body,
                                  (const double(*)[3])proposed->body, limit);
}

static int body_spans(const tsr_topology *t, const tsr_proposal *proposal,
                      tsr_body_span span[TSR_ALL_SPANS])
{
    for (int k = 0; k < proposal->n_span; k++) {
        const tsr_span *from = &proposal->span[k];
        const tsr_residue *a = &t->residue[from->first];
        const tsr_residue *z = &t->residue[from->first + from->count - 1];
        span[k] = (tsr_body_span){a->first_body, z->first_body + z->n_body,
                                  from->group};
    }
    return proposal->n_span;
}

double tsr_prior_state_clash_seconds(const tsr_prior_state *state)
{
    return state->clash_seconds;
}

double tsr_prior_propose(tsr_prior_state *s, const tsr_conformation *current,
                         const tsr_conformation *proposed,
                         const tsr_proposal *proposal)
{
    tsr_body_span span[TSR_ALL_SPANS];
    int n = body_spans(s->prior->topology, proposal, span);
    s->pending = 0;
    if (s->clash != NULL) {
        int is_timed = s->n_proposed++ % TIMED_EVERY == 0;
        double start = is_timed ? tsr_clock_s() : 0.0;
        int64_t change =
            tsr_clash_propose(s->clash, (const double(*)[3])current->body,
                              (const double(*)[3])proposed->body, n, span);
        if (is_timed)
            s->clash_seconds += TIMED_EVERY * (tsr_clock_s() - start);
        if (change == TSR_CLASH_FORBIDDEN)
            return -(double)INFINITY;
        s->pending = change;
    }
    if (is_too_wide(s, current, proposed, n, span) ||
        !tsr_prior_is_in_contact(s->prior->topology, proposed))
        return -(double)INFINITY;
    update_spans(s, proposed, proposal);
    update_restraints(s, proposed, proposal);
    return tsr_from_fixed(s->pending);
}

void tsr_prior_accept(tsr_prior_state *s, const tsr_conformation *proposed,
                      const tsr_proposal *proposal)
{
    tsr_body_span span[TSR_ALL_SPANS];
    int n = body_spans(s->prior->topology, proposal, span);
    s->total += s->pending;
    s->pending = 0;
    for (int k = 0; k < s->n_changed; k++)
        memcpy(s->term[s->changed[k].residue], s->changed[k].term,
               sizeof s->changed[k].term);
    for (int k = 0; k < s->prior->n_restraint; k++)
        s->restraint[k] = s->new_restraint[k];
    if (s->prior->d_limit_ang > 0.0)
        s->radius = s->new_radius, s->sphere_is_current = 0;
    if (s->clash != NULL)
        tsr_clash_accept(s->clash, (const double(*)[3])proposed->body, n, span);
}
