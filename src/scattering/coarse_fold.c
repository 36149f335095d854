/* How the three components of the coarse model become as few as the inferred
 * parameters need.
 *
 * What is fixed of c1 and c2 is multiplied into the form factors, and what
 * then has the same factor is added up. Amplitudes add, so form factors are
 * summed; the constant S is quadratic in them, so a pair of different
 * components that fall into one counts twice. */
#include "scattering/coarse_fold.h"

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
