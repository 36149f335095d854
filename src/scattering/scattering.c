/* From a molecule and a table of form factors to what an engine is asked for,
 * and to direct sums in double precision that engines and grid are compared
 * with. */
#include "scattering/scattering.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

/* How the three components of the coarse model become as few as the inferred
 * parameters need.
 *
 * What is fixed of c1 and c2 is multiplied into the form factors, and what
 * then has the same factor is added up. Amplitudes add, so form factors are
 * summed; the constant S is quadratic in them, so a pair of different
 * components that fall into one counts twice. */

/* Which component each of the three becomes part of. Returns K. */
static int place(const tsr_parameter *prior, int *into)
{
    int n = 1;
    into[TSR_SOLUTE] = 0;
    into[TSR_DISPLACED] = prior[TSR_C1].infer ? n++ : 0;
    into[TSR_HYDRATION] = prior[TSR_C2].infer ? n++ : 0;
    return n;
}

/* By what each is multiplied as it is folded. */
static void fixed_part(const tsr_parameter *prior, double power, double *by)
{
    by[TSR_SOLUTE] = by[TSR_DISPLACED] = by[TSR_HYDRATION] = 1.0;
    if (!prior[TSR_C1].infer)
        by[TSR_DISPLACED] = -tsr_component_scale_of(prior[TSR_C1].start, power);
    if (!prior[TSR_C2].infer)
        by[TSR_HYDRATION] = prior[TSR_C2].start;
}

static int pair_of(int n_comp, int one, int other)
{
    int a = one < other ? one : other, b = one < other ? other : one;
    return a * (2 * n_comp - a - 1) / 2 + b;
}

static void fold_self(int n_comp, const int *into, const double *by,
                      double *self, size_t stride)
{
    double sum[TSR_N_COMP_PAIR] = {0.0};
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++) {
            double s = self[(size_t)tsr_component_pair(a, b) * stride];
            double both = a != b && into[a] == into[b] ? 2.0 : 1.0;
            sum[pair_of(n_comp, into[a], into[b])] += both * by[a] * by[b] * s;
        }
    for (int p = 0; p < n_comp * (n_comp + 1) / 2; p++)
        self[(size_t)p * stride] = sum[p];
}

void tsr_coarse_fold(tsr_coarse_spec *spec, const tsr_parameter *prior)
{
    int into[TSR_N_COMP], n = place(prior, into);
    size_t n_q = (size_t)spec->spec.n_q, n_type = (size_t)spec->spec.n_type;
    for (size_t k = 0; k < n_q; k++) {
        double by[TSR_N_COMP];
        fixed_part(prior,
                   tsr_component_power(spec->radius_ang,
                                       (double)k * spec->spec.dq_inv_ang),
                   by);
        for (size_t t = 0; t < n_type; t++) {
            double sum[TSR_N_COMP] = {0.0};
            double *f = spec->form_factor + t * n_q + k;
            for (int a = 0; a < TSR_N_COMP; a++)
                sum[into[a]] += by[a] * f[(size_t)a * n_type * n_q];
            for (int a = 0; a < n; a++)
                f[(size_t)a * n_type * n_q] = sum[a];
        }
        fold_self(n, into, by, spec->self + k, n_q);
    }
    spec->spec.n_comp = n;
}

int tsr_partials_fold(const tsr_parameter *prior, double radius_ang, int n_q,
                      double dq_inv_ang, double *partial)
{
    int into[TSR_N_COMP], n = place(prior, into);
    for (int k = 0; k < n_q; k++) {
        double by[TSR_N_COMP];
        fixed_part(prior, tsr_component_power(radius_ang, k * dq_inv_ang), by);
        fold_self(n, into, by, partial + k, (size_t)n_q);
    }
    return n;
}

int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c)
{
    int n = 1;
    c[0] = 1.0;
    if (prior[TSR_C1].infer)
        c[n++] = -tsr_component_scale_of(value[TSR_C1], power);
    if (prior[TSR_C2].infer)
        c[n++] = value[TSR_C2];
    return n;
}

double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride)
{
    double sum = 0.0;
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, partial += stride)
            sum += (a == b ? 1.0 : 2.0) * c[a] * c[b] * *partial;
    return sum;
}

static void set_types(const tsr_topology *topology, int *type)
{
    for (int b = 0; b < topology->n_body; b++)
        type[b] = topology->body[b].type;
}

/* One component: the engine's types are those of the table. */
static tsr_status plain_spec(const tsr_form_factor_table *table,
                             const tsr_topology *topology, int n_q,
                             double dq_inv_ang, tsr_coarse_spec *out,
                             tsr_err *err)
{
    size_t n = (size_t)topology->n_body, row = (size_t)n_q;
    size_t n_table = (size_t)table->n_type * row;
    int *type = malloc((n + 1) * sizeof *type);
    double *factor = malloc(n_table * sizeof *factor);
    double *self = calloc(row, sizeof *self);
    double *excess = malloc(n_table * sizeof *excess);
    tsr_status s = TSR_OK;
    *out = (tsr_coarse_spec){0};
    if (type == NULL || factor == NULL || self == NULL || excess == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for %zu bodies", n);
    TSR_THEN(s,
             tsr_form_factor_at(table, n_q, dq_inv_ang, factor, excess, err));
    if (s != TSR_OK) {
        free(type);
        free(factor);
        free(self);
        free(excess);
        return s;
    }
    set_types(topology, type);
    for (size_t b = 0; b < n; b++)
        for (size_t k = 0; k < row; k++)
            self[k] += excess[(size_t)type[b] * row + k];
    free(excess);
    out->type = type;
    out->form_factor = factor;
    out->self = self;
    out->spec = (tsr_engine_spec){.n_body = topology->n_body,
                                  .n_type = table->n_type,
                                  .n_comp = 1,
                                  .n_q = n_q,
                                  .dq_inv_ang = dq_inv_ang,
                                  .n_system = 1,
                                  .type = type,
                                  .form_factor = factor};
    return TSR_OK;
}

tsr_status tsr_scattering_spec(const tsr_scattering *scattering,
                               const tsr_topology *topology, int n_q,
                               double dq_inv_ang, tsr_coarse_spec *out,
                               tsr_err *err)
{
    const tsr_scattering *s = scattering;
    if (s->neutron != NULL)
        return tsr_neutron_bodies_spec(s->neutron, s->contrast, n_q, dq_inv_ang,
                                       out, err);
    if (s->component == NULL)
        return plain_spec(s->plain, topology, n_q, dq_inv_ang, out, err);
    *out = (tsr_coarse_spec){0};
    int *type = malloc(((size_t)topology->n_body + 1) * sizeof *type);
    TSR_TRY(tsr_allocated(type, err));
    set_types(topology, type);
    tsr_status status =
        tsr_coarse_spec_of(s->component, topology->n_body, type, s->exposure,
                           n_q, dq_inv_ang, out, err);
    if (status == TSR_OK)
        tsr_coarse_fold(out, s->contrast);
    free(type);
    return status;
}

tsr_status tsr_scattering_direct(const tsr_scattering *scattering,
                                 const tsr_topology *topology,
                                 const tsr_conformation *conformation,
                                 double q_inv_ang, double *partial,
                                 double *radius_ang, tsr_err *err)
{
    /* The tables on a grid of 0 and q. */
    const tsr_scattering *s = scattering;
    int at = q_inv_ang > 0.0;
    double dq = at                     ? q_inv_ang
                : s->neutron != NULL   ? 1.0
                : s->component != NULL ? s->component->dq_inv_ang
                                       : s->plain->dq_inv_ang;
    tsr_coarse_spec coarse;
    TSR_TRY(tsr_scattering_spec(s, topology, 2, dq, &coarse, err));
    int n_comp = coarse.spec.n_comp;
    double sum[TSR_N_COMP_PAIR] = {0.0};
    for (int i = 0; i < topology->n_body; i++) {
        double field[TSR_N_COMP] = {0.0}, f[TSR_N_COMP];
        double *to = sum;
        for (int j = 0; j < i; j++) {
            double x = q_inv_ang * tsr_vec3_distance(conformation->body[i],
                                                     conformation->body[j]);
            double sinc = x > 1e-8 ? sin(x) / x : 1.0;
            for (int a = 0; a < n_comp; a++)
                field[a] += sinc * *tsr_engine_factor(&coarse.spec, a,
                                                      coarse.type[j], at);
        }
        for (int a = 0; a < n_comp; a++)
            f[a] = *tsr_engine_factor(&coarse.spec, a, coarse.type[i], at);
        for (int a = 0; a < n_comp; a++)
            for (int b = a; b < n_comp; b++)
                *to++ += f[a] * field[b] + f[b] * field[a] + f[a] * f[b];
    }
    for (int p = 0; p < n_comp * (n_comp + 1) / 2; p++)
        partial[p] = sum[p] + coarse.self[2 * p + at];
    if (radius_ang != NULL)
        *radius_ang = coarse.radius_ang;
    tsr_coarse_spec_clear(&coarse);
    return TSR_OK;
}

tsr_status tsr_scattering_intensity(const tsr_scattering *scattering,
                                    const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    const double *value, double q_inv_ang,
                                    double *intensity, tsr_err *err)
{
    const tsr_parameter *prior = scattering->contrast;
    double partial[TSR_N_COMP_PAIR] = {0.0}, c[TSR_N_COMP] = {1.0}, radius;
    double start[TSR_N_CONTRAST];
    const tsr_neutron_basis *basis =
        scattering->neutron != NULL
            ? tsr_neutron_bodies_basis(scattering->neutron)
            : NULL;
    int n_comp = 1;
    TSR_TRY(tsr_scattering_direct(scattering, topology, conformation, q_inv_ang,
                                  partial, &radius, err));
    const int is_plain = basis == NULL && scattering->component == NULL;
    for (int i = 0; i < TSR_N_CONTRAST && !is_plain; i++)
        start[i] = value != NULL ? value[i] : prior[i].start;
    if (basis != NULL)
        n_comp =
            tsr_neutron_coefficients(basis, prior, start, basis->origin, c);
    else if (!is_plain)
        n_comp = tsr_coarse_coefficients(
            prior, start, tsr_component_power(radius, q_inv_ang), c);
    *intensity = tsr_coarse_sum(n_comp, c, partial, 1);
    return TSR_OK;
}
