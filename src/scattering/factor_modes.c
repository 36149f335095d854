/* Modes by singular value decomposition (GSL, one-sided Jacobi). Each column, a
 * component at one q, is divided by its largest value first, since amplitudes
 * of displaced solvent fall by orders of magnitude and are to be as exact at
 * the end as at the beginning. Curves at all q then follow by projection: the
 * v_tm are orthonormal. */
#include "scattering/grid_plan.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_SAMPLE = 48 }; /* of q, for the decomposition */

static int group_of(const tsr_debye_spec *spec, int comp)
{
    return spec->weight != NULL && comp == spec->weighted;
}

static double largest(const tsr_debye_spec *s, int comp, int k)
{
    double most = 0.0;
    for (int t = 0; t < s->n_type; t++)
        most = fmax(most, fabs(tsr_debye_factor(s, comp, t)[k]));
    return most;
}

/* Rows: the components of the group at a sample of q, then zeros, since the
 * decomposition wants at least as many rows as columns, which are types. */
static void fill(const tsr_debye_spec *s, int group, int n_sample,
                 gsl_matrix *a)
{
    size_t row = 0;
    gsl_matrix_set_zero(a);
    for (int c = 0; c < s->n_comp; c++)
        for (int i = 0; i < n_sample && group_of(s, c) == group; i++, row++) {
            int k = (int)((long)i * (s->n_q - 1) / (n_sample - 1));
            double most = largest(s, c, k);
            for (int t = 0; t < s->n_type && most > 0.0; t++)
                gsl_matrix_set(a, row, (size_t)t,
                               tsr_debye_factor(s, c, t)[k] / most);
        }
}

/* Vectors v of one group into value [n_type][n_type]; returns how many count.
 * A row's error is at most the root of the sum of the squares left out. */
static int decompose(const tsr_debye_spec *s, int group, double error,
                     double *value, tsr_err *err)
{
    size_t n_type = (size_t)s->n_type;
    int n_sample = s->n_q < MAX_SAMPLE ? s->n_q : MAX_SAMPLE;
    size_t rows = (size_t)(s->n_comp * n_sample);
    gsl_matrix *a = gsl_matrix_alloc(rows > n_type ? rows : n_type, n_type);
    gsl_matrix *v = gsl_matrix_alloc(n_type, n_type);
    gsl_vector *size = gsl_vector_alloc(n_type);
    int n = -1;
    if (a == NULL || v == NULL || size == NULL) {
        tsr_no_memory(err);
    } else {
        double left = 0.0;
        fill(s, group, n_sample, a);
        gsl_linalg_SV_decomp_jacobi(a, v, size);
        for (n = s->n_type; n > 0; n--) {
            left += pow(gsl_vector_get(size, (size_t)n - 1), 2.0);
            if (left > error * error)
                break;
        }
        for (size_t t = 0; t < n_type; t++)
            for (size_t m = 0; m < n_type; m++)
                value[t * n_type + m] = gsl_matrix_get(v, t, m);
    }
    gsl_matrix_free(a);
    gsl_matrix_free(v);
    gsl_vector_free(size);
    return n;
}

static void project(const tsr_debye_spec *s, tsr_factor_modes *out)
{
    for (int c = 0; c < s->n_comp; c++)
        for (int m = tsr_modes_first(out, c); m < tsr_modes_end(out, c); m++) {
            double *to = out->curve + ((size_t)c * (size_t)out->n + (size_t)m) *
                                          (size_t)s->n_q;
            for (int t = 0; t < s->n_type; t++) {
                double v = out->value[t * out->n + m];
                const double *f = tsr_debye_factor(s, c, t);
                for (int k = 0; k < s->n_q; k++)
                    to[k] += v * f[k];
            }
        }
}

tsr_status tsr_factor_modes_make(const tsr_debye_spec *spec, double error,
                                 tsr_factor_modes *out, tsr_err *err)
{
    size_t n_type = (size_t)spec->n_type;
    double *v = calloc(2 * n_type * n_type, sizeof *v);
    *out = (tsr_factor_modes){.n_type = spec->n_type,
                              .n_comp = spec->n_comp,
                              .n_q = spec->n_q,
                              .weighted =
                                  spec->weight != NULL ? spec->weighted : -1};
    TSR_TRY(tsr_allocated(v, err));
    for (int g = 0; g < 2; g++) {
        out->n_group[g] =
            decompose(spec, g, error, v + (size_t)g * n_type * n_type, err);
        if (out->n_group[g] < 0) {
            free(v);
            return TSR_E_NOMEM;
        }
    }
    out->n = out->n_group[0] + out->n_group[1];
    size_t n = (size_t)out->n;
    out->value = calloc(n_type * n + 1, sizeof *out->value);
    out->curve = calloc((size_t)spec->n_comp * n * (size_t)spec->n_q + 1,
                        sizeof *out->curve);
    if (out->value == NULL || out->curve == NULL) {
        free(v);
        tsr_factor_modes_clear(out);
        return tsr_no_memory(err);
    }
    for (size_t t = 0; t < n_type; t++)
        for (size_t m = 0; m < n; m++) {
            size_t g = m >= (size_t)out->n_group[0];
            size_t own = m - g * (size_t)out->n_group[0];
            out->value[t * n + m] = v[(g * n_type + t) * n_type + own];
        }
    project(spec, out);
    free(v);
    return TSR_OK;
}

void tsr_factor_modes_clear(tsr_factor_modes *modes)
{
    free(modes->value);
    free(modes->curve);
    *modes = (tsr_factor_modes){0};
}
