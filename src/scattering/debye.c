/* The Debye sum of many particles in double precision on the host: the
 * reference for the device's sum (gpu/debye_sum.h), and its replacement on a
 * computer without a device.
 *
 * On a uniform grid sin(q r) follows from a recurrence, so a pair costs one
 * sine and one cosine in total instead of one for each q. */
#include "scattering/debye.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMP = 3, ROWS_A_REPORT = 64 };

tsr_status tsr_debye_check(const tsr_debye_spec *s, tsr_err *err)
{
    if (s->n < 1 || s->n_type < 1 || s->n_comp < 1 || s->n_comp > MAX_COMP ||
        s->n_q < 2 || !(s->dq_inv_ang > 0.0) ||
        (s->weight != NULL && (s->weighted < 0 || s->weighted >= s->n_comp)))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "Debye sum: %d particles, %d types, %d components, %d "
                        "q of step %g, weights for component %d",
                        s->n, s->n_type, s->n_comp, s->n_q, s->dq_inv_ang,
                        s->weighted);
    for (int i = 0; i < s->n; i++) {
        if (s->type[i] < 0 || s->type[i] >= s->n_type)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "Debye sum: particle %d is of type %d of %d", i,
                            s->type[i], s->n_type);
        const double *x = s->xyz[i];
        if (!isfinite(x[0]) || !isfinite(x[1]) || !isfinite(x[2]) ||
            (s->weight != NULL && !isfinite(s->weight[i])))
            return tsr_fail(err, TSR_E_NUMERIC,
                            "Debye sum: particle %d has a position or weight "
                            "that is not finite",
                            i);
    }
    return TSR_OK;
}

static double weight_of(const tsr_debye_spec *s, int comp, int i)
{
    return s->weight != NULL && comp == s->weighted ? s->weight[i] : 1.0;
}

/* sinc(q_k r) for all k, by sin((k + 1) x) = 2 cos x sin kx - sin (k - 1) x. In
 * double precision the error stays below 1e-12 for several hundred steps. */
static void sinc_row(double r, double dq, int n_q, double *out)
{
    double x = dq * r, two_cos = 2.0 * cos(x);
    double previous = 0.0, current = sin(x);
    out[0] = 1.0;
    for (int k = 1; k < n_q; k++) {
        out[k] = x < 1e-6 ? 1.0 : current / (k * x);
        double next = two_cos * current - previous;
        previous = current;
        current = next;
    }
}

/* field [n_comp][n_q]: A^a, the sum over j <= i of the multiplicity of the pair
 * times F_j^a sinc(q r_ij). Adds to every pair (a, b) of components the mean of
 * F_i^a A^b and F_i^b A^a. */
static void add_row(const tsr_debye_spec *s, int i, const double *field,
                    double *profile)
{
    size_t n_q = (size_t)s->n_q;
    for (int a = 0; a < s->n_comp; a++)
        for (int b = a; b < s->n_comp; b++, profile += n_q) {
            const double *fa = tsr_debye_factor(s, a, s->type[i]);
            const double *fb = tsr_debye_factor(s, b, s->type[i]);
            double wa = weight_of(s, a, i), wb = weight_of(s, b, i);
            const double *at_a = field + (size_t)a * n_q;
            const double *at_b = field + (size_t)b * n_q;
            for (size_t k = 0; k < n_q; k++)
                profile[k] +=
                    a == b
                        ? wa * fa[k] * at_a[k]
                        : 0.5 * (wa * fa[k] * at_b[k] + wb * fb[k] * at_a[k]);
        }
}

tsr_status tsr_debye_reference(const tsr_debye_spec *s,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_err *err)
{
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_debye_check(s, err));
    size_t n_q = (size_t)s->n_q, n_comp = (size_t)s->n_comp;
    double *row = calloc(n_q * (n_comp + 1), sizeof *row);
    TSR_TRY(tsr_allocated(row, err));
    double *field = row + n_q; /* [n_comp][n_q] A^a of add_row */
    memset(profile, 0, (size_t)tsr_debye_n_pair(s) * n_q * sizeof *profile);
    for (int i = 0; i < s->n && status == TSR_OK; i++) {
        memset(field, 0, n_comp * n_q * sizeof *field);
        for (int j = 0; j <= i; j++) {
            double x = s->xyz[i][0] - s->xyz[j][0],
                   y = s->xyz[i][1] - s->xyz[j][1],
                   z = s->xyz[i][2] - s->xyz[j][2];
            sinc_row(sqrt(x * x + y * y + z * z), s->dq_inv_ang, s->n_q, row);
            double multiplicity = i == j ? 1.0 : 2.0;
            for (int c = 0; c < s->n_comp; c++) {
                const double *f = tsr_debye_factor(s, c, s->type[j]);
                double w = multiplicity * weight_of(s, c, j);
                double *to = field + (size_t)c * n_q;
                for (size_t k = 0; k < n_q; k++)
                    to[k] += w * f[k] * row[k];
            }
        }
        add_row(s, i, field, profile);
        if ((i + 1) % ROWS_A_REPORT == 0)
            status = tsr_debye_report(
                progress,
                (double)(i + 1) * (i + 2) / ((double)s->n * (s->n + 1)), err);
    }
    free(row);
    return status;
}
