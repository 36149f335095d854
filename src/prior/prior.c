/* The prior of a molecule: its options, its densities made ready from the
 * table, and the terms that moves ask for one by one; prior_state.c sums them
 * over a conformation. */
#include "prior/prior.h"

#include "core/vec3.h"
#include "molecule/extent.h"
#include "molecule/guest.h"
#include "prior/nucleotide.h"
#include "prior/prior_factors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const clash_words[] = {"soft", "none", NULL};

const tsr_field tsr_prior_fields[] = {
    TSR_FIELD(CHOICE, "clash", tsr_prior_options, clash, .initial = "soft",
              .words = clash_words, .doc = "excluded volume between bodies"),
    TSR_FIELD(DOUBLE, "softness", tsr_prior_options, softness,
              .unit = "Angstrom", .initial = "0.5", .min = 0.01, .max = 10.0,
              .doc = "overlap that costs half a nat"),
    TSR_FIELD(
        DOUBLE, "clash_limit", tsr_prior_options, clash_limit, .unit = "nat",
        .initial = "10", .min = 0.01, .max = 1e5,
        .doc = "a pair that overlaps more than costs this is impossible; such "
               "proposals never reach the device"),
    TSR_FIELD(
        BOOL, "relax", tsr_prior_options, relax, .initial = "false",
        .doc =
            "move a start with impossible pairs until it has none, instead of "
            "refusing it"),
    TSR_FIELD(LIST, "restraints", tsr_prior_options, restraints,
              .fields = tsr_restraint_fields,
              .element_size = sizeof(tsr_restraint_options),
              .doc = "known distances between residues (cross-links, FRET)"),
    {0}};

static const double log_2pi = 1.8378770664093453;

void tsr_prior_free(tsr_prior *prior)
{
    if (prior == NULL)
        return;
    for (int r = 0; r < TSR_N_RAMA + TSR_N_NUCLEIC_CLASS; r++)
        tsr_torsion_density_free(prior->torsion[r]);
    for (int a = 0; a < TSR_N_AMINO; a++)
        tsr_side_density_free(prior->side[a]);
    free(prior->restraint);
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

tsr_status tsr_prior_new(const tsr_topology *topology,
                         const tsr_prior_table *table,
                         const tsr_prior_options *options, double d_limit_ang,
                         tsr_prior **out, tsr_err *err)
{
    *out = NULL;
    tsr_prior *p = calloc(1, sizeof *p);
    int n = options->restraints.n;
    if (p != NULL)
        p->restraint = calloc((size_t)n + 1, sizeof *p->restraint);
    if (p == NULL || p->restraint == NULL) {
        tsr_prior_free(p);
        return tsr_no_memory(err);
    }
    p->topology = topology;
    p->d_limit_ang = d_limit_ang;
    set_clash(&p->clash, topology, table, options);
    tsr_status status = set_densities(p, table, err);
    const tsr_restraint_options *item = options->restraints.item;
    for (int k = 0; k < n && status == TSR_OK; k++) {
        status = tsr_restraint_make(topology, &item[k], &p->restraint[k], err);
        if (status != TSR_OK)
            tsr_wrap(err, status, "prior.restraints.%d", k);
        p->n_restraint = k + 1;
    }
    if (status != TSR_OK)
        tsr_prior_free(p);
    else
        *out = p;
    return status;
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

/* Of chi, whose density is that of phi. */
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
                                const tsr_conformation *conformation,
                                int residue)
{
    const tsr_residue *r = &prior->topology->residue[residue];
    double(*x)[3] = conformation->backbone[residue];
    double phi[2] = {1.0, 0.0}, psi[2] = {1.0, 0.0};
    if (r->has_phi)
        torsion_cos_sin(
            conformation->backbone[residue - 1][tsr_residue_atom_before(r)],
            x[TSR_N], x[TSR_CA], x[TSR_C], phi);
    if (r->has_psi)
        torsion_cos_sin(
            x[TSR_N], x[TSR_CA], x[TSR_C],
            conformation->backbone[residue + 1][tsr_residue_atom_after(r)],
            psi);
    return tsr_prior_torsion_log(prior, residue, phi, psi);
}

int64_t tsr_prior_torsion_term(const tsr_prior *prior,
                               const tsr_conformation *conformation,
                               int residue)
{
    return tsr_fix(tsr_prior_torsion_log_of(prior, conformation, residue));
}

int64_t tsr_prior_angle_term(const tsr_prior *prior,
                             const tsr_conformation *conformation, int residue)
{
    double(*x)[3] = conformation->backbone[residue];
    if (prior->topology->residue[residue].link != TSR_LINK_NONE)
        return 0; /* held */
    double tau = tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C]);
    return tsr_fix(tsr_prior_angle_log(prior, residue, tau));
}

int64_t tsr_prior_side_term(const tsr_prior *prior,
                            const tsr_conformation *conformation, int residue)
{
    const tsr_residue *r = &prior->topology->residue[residue];
    if (r->link == TSR_LINK_NONE ? !tsr_amino_has_side_chain(r->amino)
                                 : !prior->topology->base[residue].is_there)
        return 0;
    return tsr_fix(
        tsr_prior_side_log(prior, residue, conformation->side[residue]));
}

int64_t tsr_prior_restraint_term(const tsr_prior *prior,
                                 const tsr_conformation *conformation, int k)
{
    const tsr_restraint *r = &prior->restraint[k];
    return tsr_fix(tsr_restraint_log(
        r, tsr_restraint_distance(prior->topology, r, conformation)));
}

/* ---- the reference ---- */

double tsr_prior_log_reference(const tsr_prior *prior,
                               const tsr_conformation *conformation)
{
    const tsr_topology *t = prior->topology;
    const double(*body)[3] = (const double(*)[3])conformation->body;
    int64_t sum = 0;
    if (prior->d_limit_ang > 0.0 &&
        tsr_is_distance_beyond(t->n_body, body, prior->d_limit_ang))
        return -(double)INFINITY;
    for (int i = 0; i < t->n_residue; i++)
        if (t->residue[i].flexible)
            sum += tsr_prior_torsion_term(prior, conformation, i) +
                   tsr_prior_angle_term(prior, conformation, i) +
                   tsr_prior_side_term(prior, conformation, i);
    for (int k = 0; k < prior->n_restraint; k++)
        sum += tsr_prior_restraint_term(prior, conformation, k);
    for (int a = 0; a < t->n_body; a++)
        for (int b = 0; b < a; b++) {
            int64_t term =
                tsr_clash_pair(&prior->clash, a, body[a], b, body[b]);
            if (term == TSR_CLASH_FORBIDDEN)
                return -(double)INFINITY;
            sum += term;
        }
    return tsr_unfix(sum);
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
            double d = c->contact[t->body[a].like][t->body[b].like];
            double r = tsr_vec3_distance(x[a], x[b]);
            double z = (d - r) * c->inverse_softness, nat = 0.5 * z * z;
            n++;
            if (nat <= most)
                continue;
            char one[48], other[48];
            most = nat;
            body_text(t, b, one, sizeof one);
            body_text(t, a, other, sizeof other);
            snprintf(worst, 160,
                     "%s and %s are %.2f A apart where contact is %.2f A, "
                     "%.1f nat",
                     one, other, r, d, nat);
        }
    return n;
}
