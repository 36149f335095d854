/* Scattering lengths of united atoms in mixtures of H2O and D2O.
 *
 * Lengths: Sears 1992, Neutron News 3(3), 26. Exchange of hydrogens: Jacrot
 * 1976, Rep. Prog. Phys. 39, 911; Svergun et al. 1998, PNAS 95, 2267, whose
 * program assumes that 0.9 of the amides exchange. */
#include "scattering/neutron.h"

#include "molecule/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Molecules per cubic Angstrom at 20 C, from 0.9982 g/ml at 18.015 g/mol and
 * 1.1050 g/ml at 20.028 g/mol. */
static const double water_per_ang3 = 0.033368, heavy_per_ang3 = 0.033225;

double tsr_neutron_solvent(double d2o)
{
    const double h = tsr_atom_neutron_length(1), o = tsr_atom_neutron_length(8);
    return (1.0 - d2o) * water_per_ang3 * (2.0 * h + o) +
           d2o * heavy_per_ang3 * (2.0 * TSR_DEUTERIUM_LENGTH + o);
}

/* ---- options ---- */

const char *const tsr_neutron_d2o_words[] = {"none", NULL};

int tsr_neutron_add_deuterated(tsr_neutron *neutron, const char *text)
{
    const char *equals = strchr(text, '=');
    const size_t length =
        equals == NULL ? strlen(text) : (size_t)(equals - text);
    char *end = NULL;
    if (length == 0 || length >= sizeof neutron->deuterated[0].chain ||
        neutron->n_deuterated == TSR_NEUTRON_CHAINS)
        return 0;
    tsr_deuterated *d = &neutron->deuterated[neutron->n_deuterated];
    *d = (tsr_deuterated){.fraction = 1.0};
    memcpy(d->chain, text, length);
    for (int k = 0; k < neutron->n_deuterated; k++)
        if (strcmp(neutron->deuterated[k].chain, d->chain) == 0)
            return 0;
    if (equals != NULL) {
        d->fraction = strtod(equals + 1, &end);
        if (end == equals + 1 || *end != '\0' ||
            !(d->fraction >= 0.0 && d->fraction <= 1.0))
            return 0;
    }
    neutron->n_deuterated++;
    return 1;
}

tsr_status tsr_neutron_make(const tsr_neutron_options *options,
                            tsr_neutron *out, tsr_err *err)
{
    const tsr_strings *chain = &options->deuterated;
    *out = (tsr_neutron){.exchange = options->exchange};
    if (options->d2o.word < 0)
        out->d2o = options->d2o.number;
    for (int k = 0; k < chain->n; k++)
        if (!tsr_neutron_add_deuterated(out, chain->item[k]))
            return tsr_fail(err, TSR_E_CONFIG,
                            "deuterated: '%s': expected a chain, or CHAIN=X, "
                            "X from 0 to 1, each chain once, %d at most",
                            chain->item[k], TSR_NEUTRON_CHAINS);
    return TSR_OK;
}

/* Deuterated fraction of the hydrogens in this chain that do not exchange. */
static double grown_fraction(const tsr_neutron *n, const char *chain)
{
    for (int k = 0; k < n->n_deuterated; k++)
        if (strcmp(n->deuterated[k].chain, chain) == 0)
            return n->deuterated[k].fraction;
    return 0.0;
}

/* A chain with fraction 0 counts too, because the file must contain it. */
int tsr_neutron_is_same_sample(const tsr_neutron *a, const tsr_neutron *b)
{
    int is_same =
        a->exchange == b->exchange && a->n_deuterated == b->n_deuterated;
    for (int k = 0; k < a->n_deuterated && is_same; k++) {
        is_same = 0;
        for (int m = 0; m < b->n_deuterated; m++)
            is_same |=
                strcmp(a->deuterated[k].chain, b->deuterated[m].chain) == 0 &&
                a->deuterated[k].fraction == b->deuterated[m].fraction;
    }
    return is_same;
}

/* ---- one atom ---- */

/* Deuterated fraction of an atom's hydrogens: `exchanged` times that of the
 * solvent, plus `grown`, which does not depend on the solvent. */
typedef struct {
    double exchanged, grown;
} deuterium;

static deuterium deuterium_of(const tsr_neutron *n, const tsr_file_residue *r,
                              const tsr_file_atom *a)
{
    deuterium d = {0.0, 0.0};
    if (a->z == 7 || a->z == 8 || a->z == 16) {
        const int is_amide =
            r->kind == TSR_MOLECULE_PROTEIN && strcmp(a->name, "N") == 0;
        d.exchanged = is_amide ? n->exchange : 1.0;
        return d;
    }
    d.grown = grown_fraction(n, r->chain);
    return d;
}

static tsr_status check_chains(const tsr_neutron *n, const tsr_atoms *atoms,
                               tsr_err *err)
{
    for (int k = 0; k < n->n_deuterated; k++) {
        int is_found = 0;
        for (int r = 0; r < atoms->n_residue; r++)
            is_found |=
                strcmp(n->deuterated[k].chain, atoms->residue[r].chain) == 0;
        if (!is_found)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' has no chain %s that could be deuterated; "
                            "the first chain is %s",
                            atoms->path, n->deuterated[k].chain,
                            atoms->residue[0].chain);
    }
    return TSR_OK;
}

static tsr_status check_element(const tsr_atoms *atoms, const tsr_file_atom *a,
                                tsr_err *err)
{
    const tsr_file_residue *r = &atoms->residue[a->residue];
    if (!isnan(tsr_atom_neutron_length(a->z)))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the neutron scattering length of atom %s of %s "
                    "%s:%d (atomic number %d) is unknown: the element absorbs "
                    "neutrons, or was not measured; remove the atom",
                    atoms->path, a->name, r->name, r->chain, r->number, a->z);
}

/* ---- the model ---- */

/* Index of the kind with the element and number of hydrogens of `from`, and
 * with these scattering lengths. Appends such a kind if kind [*n] lacks it. */
static int find_kind(tsr_atom_kind *kind, int *n, const tsr_atom_kind *from,
                     double hydrogen, double growth)
{
    for (int k = 0; k < *n; k++)
        if (kind[k].z == from->z && kind[k].n_hydrogen == from->n_hydrogen &&
            kind[k].hydrogen == hydrogen && kind[k].growth == growth)
            return k;
    kind[*n] = *from;
    kind[*n].length = tsr_atom_neutron_length(from->z);
    kind[*n].hydrogen = hydrogen;
    kind[*n].growth = growth;
    return (*n)++;
}

/* Sums over the atoms: scattering length in H2O, and its increase to D2O. */
typedef struct {
    double length, growth;
} totals;

/* Assigns neutron kinds to the atoms, and adds the mass of their deuterium to
 * m->mass. kind [*n_kind] out. */
static totals assign_kinds(const tsr_neutron *n, const tsr_atoms *atoms,
                           tsr_atom_model *m, tsr_atom_kind *kind, int *n_kind)
{
    const double h = tsr_atom_neutron_length(1), d = TSR_DEUTERIUM_LENGTH;
    const double heavier = 1.0062; /* mass of deuterium minus hydrogen, Da */
    totals sum = {0.0, 0.0};
    for (int k = 0, i = 0; k < atoms->n_atom; k++) {
        const tsr_file_atom *a = &atoms->atom[k];
        if (a->z == 1)
            continue;
        const tsr_atom_kind *old = &m->kind[m->type[i]];
        const deuterium f = deuterium_of(n, &atoms->residue[a->residue], a);
        const double number = old->n_hydrogen;
        const double in_water = number * (h + f.grown * (d - h));
        const double growth = number * f.exchanged * (d - h);
        m->mass += heavier * number * (f.grown + n->d2o * f.exchanged);
        sum.length += tsr_atom_neutron_length(a->z) + in_water;
        sum.growth += growth;
        m->type[i++] =
            find_kind(kind, n_kind, old, in_water + n->d2o * growth, growth);
    }
    return sum;
}

tsr_status tsr_neutron_apply(const tsr_neutron *neutron, const tsr_atoms *atoms,
                             tsr_atom_model *m, tsr_log *log, double *match,
                             tsr_err *err)
{
    const double light = tsr_neutron_solvent(0.0);
    const double heavy = tsr_neutron_solvent(1.0);
    int n_kind = 0;
    TSR_TRY(check_chains(neutron, atoms, err));
    for (int k = 0; k < atoms->n_atom; k++)
        TSR_TRY(check_element(atoms, &atoms->atom[k], err));
    tsr_atom_kind *kind;
    tsr_pool_array(&m->pool, kind, m->n_atom + 1);
    TSR_TRY(tsr_pool_check(&m->pool, err));
    const totals sum = assign_kinds(neutron, atoms, m, kind, &n_kind);
    for (int i = m->n_atom; i < m->n; i++) /* beads */
        m->type[i] = n_kind;
    kind[n_kind++] = (tsr_atom_kind){0};
    tsr_pool_free(&m->pool, m->kind);
    m->kind = kind;
    m->n_type = n_kind;
    m->is_neutron = 1;
    m->d2o = neutron->d2o;
    m->density = tsr_neutron_solvent(neutron->d2o);
    *match = (sum.length - light * m->volume) /
             ((heavy - light) * m->volume - sum.growth);
    tsr_info(log,
             "'%s': neutrons, %.4g %% D2O (%.3f 1e-6/A^2); contrast match "
             "point at %.1f %% D2O",
             atoms->path, 100.0 * neutron->d2o, 10.0 * m->density,
             100.0 * *match);
    return TSR_OK;
}

/* ---- one sample in several solvents ---- */

/* Amplitudes of a model in a solvent with this D2O fraction. kind
 * [model->n_type]: scratch. */
static void factors_at(const tsr_atom_model *model, double d2o,
                       tsr_atom_kind *kind, int n_q, double dq_inv_ang,
                       double *out)
{
    tsr_atom_model copy = *model;
    copy.kind = kind;
    copy.density = tsr_neutron_solvent(d2o);
    for (int t = 0; t < model->n_type; t++) {
        kind[t] = model->kind[t];
        kind[t].hydrogen += (d2o - model->d2o) * kind[t].growth;
    }
    tsr_atom_model_factors(&copy, n_q, dq_inv_ang, out);
}

tsr_status tsr_neutron_factors(const tsr_atom_model *model, double origin,
                               int n_q, double dq_inv_ang, double *out,
                               tsr_err *err)
{
    const size_t n = (size_t)model->n_type * (size_t)n_q;
    tsr_pool pool = {0};
    tsr_atom_kind *kind;
    double *light;
    tsr_pool_array(&pool, kind, model->n_type);
    tsr_pool_array(&pool, light, TSR_ATOM_COMP * n);
    if (pool.failed) {
        tsr_pool_clear(&pool);
        return tsr_no_memory(err);
    }
    factors_at(model, 0.0, kind, n_q, dq_inv_ang, light);
    factors_at(model, 1.0, kind, n_q, dq_inv_ang, out); /* the layer in D2O
                                                           stays */
    for (size_t i = 0; i < n; i++) {
        const double in_light = light[i] - light[n + i];
        const double growth = out[i] - out[n + i] - in_light;
        out[i] = in_light + origin * growth;
        out[n + i] = growth;
    }
    tsr_pool_clear(&pool);
    return TSR_OK;
}

/* part [K][3] out: each of the K folded components as a sum of the three of the
 * basis. Returns K. */
static int fold_matrix(const tsr_neutron_basis *basis,
                       const tsr_parameter *prior,
                       double part[TSR_N_COMP][TSR_N_COMP])
{
    const double heavy = tsr_neutron_solvent(1.0);
    const double c2 = prior[TSR_C2].infer ? 0.0 : prior[TSR_C2].start;
    int n = 1;
    memset(part, 0, sizeof(double[TSR_N_COMP][TSR_N_COMP]));
    part[0][0] = 1.0;
    part[0][2] = c2 * tsr_neutron_solvent(basis->origin) / heavy;
    if (basis->is_series) {
        part[n][1] = 1.0;
        part[n++][2] = c2 * (1.0 - tsr_neutron_solvent(0.0) / heavy);
    }
    if (prior[TSR_C2].infer)
        part[n++][2] = 1.0;
    return n;
}

/* Folds six values, `stride` apart, in place. */
static void fold_pairs(int n, double part[TSR_N_COMP][TSR_N_COMP], double *pair,
                       size_t stride)
{
    double sum[TSR_N_COMP_PAIR] = {0.0};
    int at = 0;
    for (int a = 0; a < n; a++)
        for (int b = a; b < n; b++, at++)
            for (int r = 0; r < TSR_N_COMP; r++)
                for (int s = 0; s < TSR_N_COMP; s++)
                    sum[at] += part[a][r] * part[b][s] *
                               pair[(size_t)tsr_component_pair(r < s ? r : s,
                                                               r < s ? s : r) *
                                    stride];
    for (int p = 0; p < at; p++)
        pair[(size_t)p * stride] = sum[p];
}

int tsr_neutron_fold(const tsr_neutron_basis *basis, const tsr_parameter *prior,
                     int n_q, double *partial)
{
    double part[TSR_N_COMP][TSR_N_COMP];
    const int n = fold_matrix(basis, prior, part);
    for (int k = 0; k < n_q; k++)
        fold_pairs(n, part, partial + k, (size_t)n_q);
    return n;
}

int tsr_neutron_coefficients(const tsr_neutron_basis *basis,
                             const tsr_parameter *prior, const double *value,
                             double d2o, double *c)
{
    int n = 1;
    c[0] = 1.0;
    if (basis->is_series)
        c[n++] = d2o - basis->origin;
    if (prior[TSR_C2].infer)
        c[n++] =
            value[TSR_C2] * tsr_neutron_solvent(d2o) / tsr_neutron_solvent(1.0);
    return n;
}

/* ---- bodies ---- */

struct tsr_neutron_bodies {
    tsr_pool pool; /* owns the clusters and this struct */
    tsr_atom_model *model;
    tsr_neutron_basis basis;
    int n;
    tsr_cluster *cluster; /* [n] */
};

void tsr_neutron_bodies_free(tsr_neutron_bodies *bodies)
{
    if (bodies == NULL)
        return;
    tsr_atom_model_free(bodies->model);
    tsr_pool pool = bodies->pool;
    tsr_pool_clear(&pool);
}

const tsr_neutron_basis *
tsr_neutron_bodies_basis(const tsr_neutron_bodies *bodies)
{
    return &bodies->basis;
}

/* Makes the cluster of every body from the atoms that `body` assigns to it, and
 * from the beads of these atoms. */
static tsr_status assign_atoms(tsr_neutron_bodies *bodies, const int *body,
                               const double (*centre)[3], tsr_err *err)
{
    const tsr_atom_model *m = bodies->model;
    tsr_pool *pool = &bodies->pool;
    int *n = tsr_pool_new(pool, (size_t)bodies->n, sizeof *n);
    tsr_pool_array(pool, bodies->cluster, bodies->n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < m->n; i++)
        n[body[m->owner[i]]]++;
    for (int b = 0; b < bodies->n; b++)
        tsr_cluster_make(n[b], pool, &bodies->cluster[b]);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < m->n; i++) {
        tsr_cluster *c = &bodies->cluster[body[m->owner[i]]];
        c->atom[c->n++] = i;
    }
    for (int b = 0; b < bodies->n; b++)
        tsr_cluster_distances(m, centre[b], &bodies->cluster[b]);
    return TSR_OK;
}

tsr_status tsr_neutron_bodies_new(tsr_atom_model *model, int n_body,
                                  const int *body, const double (*centre)[3],
                                  tsr_neutron_basis basis,
                                  tsr_neutron_bodies **out, tsr_err *err)
{
    tsr_pool pool = {0};
    tsr_neutron_bodies *b = *out = tsr_pool_new(&pool, 1, sizeof *b);
    if (b == NULL) {
        tsr_atom_model_free(model);
        return tsr_no_memory(err);
    }
    b->pool = pool;
    b->model = model;
    b->basis = basis;
    b->n = n_body;
    tsr_status status = assign_atoms(b, body, centre, err);
    if (status != TSR_OK) {
        tsr_neutron_bodies_free(b);
        *out = NULL;
    }
    return status;
}

/* Sets the form factors of body b at q_k, and adds its excess to S_ab. */
static void compute_body(const tsr_neutron_bodies *bodies, int b,
                         const double *factor, int n_comp,
                         double part[TSR_N_COMP][TSR_N_COMP], int k,
                         tsr_coarse_spec *out)
{
    const size_t n_q = (size_t)out->spec.n_q, n = (size_t)bodies->n;
    double f[TSR_N_COMP], e[TSR_N_COMP_PAIR];
    tsr_cluster_factor(&bodies->cluster[b], bodies->model, factor,
                       out->spec.n_q, out->spec.dq_inv_ang, k, f, e);
    fold_pairs(n_comp, part, e, 1);
    for (int a = 0; a < n_comp; a++) {
        double sum = 0.0;
        for (int r = 0; r < TSR_N_COMP; r++)
            sum += part[a][r] * f[r];
        out->form_factor[((size_t)a * n + (size_t)b) * n_q + (size_t)k] = sum;
    }
    for (int p = 0; p < n_comp * (n_comp + 1) / 2; p++)
        out->self[(size_t)p * n_q + (size_t)k] += e[p];
}

tsr_status tsr_neutron_bodies_spec(const tsr_neutron_bodies *bodies,
                                   const tsr_parameter *prior, int n_q,
                                   double dq_inv_ang, tsr_pool *pool,
                                   tsr_coarse_spec *out, tsr_err *err)
{
    const tsr_neutron_bodies *b = bodies;
    const size_t row = (size_t)n_q, n = (size_t)b->n;
    double part[TSR_N_COMP][TSR_N_COMP], *factor;
    const int n_comp = fold_matrix(&b->basis, prior, part);
    *out = (tsr_coarse_spec){.radius_ang = b->model->power_radius_ang};
    tsr_pool_array(pool, out->type, n);
    tsr_pool_array(pool, out->form_factor, TSR_N_COMP * n * row);
    tsr_pool_array(pool, out->self, TSR_N_COMP_PAIR * row);
    tsr_pool_array(pool, factor,
                   TSR_ATOM_COMP * (size_t)b->model->n_type * row);
    if (pool->failed)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", b->n);
    TSR_TRY(tsr_neutron_factors(b->model, b->basis.origin, n_q, dq_inv_ang,
                                factor, err));
    tsr_coarse_spec_set(out, b->n, b->n, n_comp, n_q, dq_inv_ang);
    for (int i = 0; i < b->n; i++) {
        out->type[i] = i;
        for (int k = 0; k < n_q; k++)
            compute_body(b, i, factor, n_comp, part, k, out);
    }
    tsr_pool_free(pool, factor);
    return TSR_OK;
}
