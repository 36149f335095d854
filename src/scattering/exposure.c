/* How much of a body water can reach, guessed from the number of its neighbours
 * within a soft sphere: a logistic curve for each type, fitted to exposures
 * from all atoms. */
#include "scattering/form_factor.h"

#include "core/vec3.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

static const double bin_width = 0.1;
static const double pi = 3.14159265358979323846;

tsr_exposure_model tsr_exposure_model_of(tsr_body_model model)
{
    tsr_exposure_model m = {.near_ang = 4.0, .far_ang = 10.0};
    if (model == TSR_BODIES_ONE)
        m.near_ang = 3.3, m.far_ang = 11.1;
    return m;
}

void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count)
{
    double near = model->near_ang, far = model->far_ang;
    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double d2 = tsr_vec3_distance2(xyz[i], xyz[j]);
            if (d2 >= far * far)
                continue;
            double x = (sqrt(d2) - near) / (far - near);
            double share = x <= 0.0 ? 1.0 : 0.5 * (1.0 + cos(pi * x));
            count[i] += share;
            count[j] += share;
        }
}

double tsr_exposure_at(const tsr_exposure_type *type, double count)
{
    if (type->largest == 0.0)
        return 0.0;
    return type->largest / (1.0 + exp((count - type->middle) / type->width));
}

void tsr_exposure_estimate(const tsr_exposure_model *model, int n,
                           const int *type, const double (*xyz)[3],
                           double *exposure)
{
    tsr_exposure_count(model, n, xyz, exposure);
    for (int i = 0; i < n; i++)
        exposure[i] = tsr_exposure_at(&model->type[type[i]], exposure[i]);
}

double *tsr_exposure_bin(double *bins, double count)
{
    double b = fmin(count / bin_width, TSR_EXPOSURE_N_BIN - 1);
    return bins + 2 * (size_t)b;
}

static double middle_of(int bin)
{
    return (bin + 0.5) * bin_width;
}

/* Squares left with the best A, and that A. */
static double squares(const double *bins, double middle, double width,
                      double *largest)
{
    double curve = 0.0, product = 0.0;
    for (int b = 0; b < TSR_EXPOSURE_N_BIN; b++) {
        double h = 1.0 / (1.0 + exp((middle_of(b) - middle) / width));
        curve += bins[2 * b] * h * h;
        product += bins[2 * b + 1] * h;
    }
    *largest = curve > 0.0 ? product / curve : 0.0;
    return -*largest * product;
}

/* Of n0 and log w. */
static double cost(const gsl_vector *x, void *bins)
{
    double largest;
    return squares(bins, gsl_vector_get(x, 0), exp(gsl_vector_get(x, 1)),
                   &largest);
}

static int minimise(double *bins, gsl_vector *x, gsl_vector *step,
                    gsl_multimin_fminimizer *solver)
{
    enum { MAX_STEP = 500 };
    gsl_multimin_function f = {.f = cost, .n = 2, .params = bins};
    int gsl = gsl_multimin_fminimizer_set(solver, &f, x, step);
    for (int i = 0; i < MAX_STEP && gsl == GSL_SUCCESS; i++) {
        gsl = gsl_multimin_fminimizer_iterate(solver);
        if (gsl == GSL_SUCCESS &&
            gsl_multimin_test_size(gsl_multimin_fminimizer_size(solver),
                                   1e-6) == GSL_SUCCESS)
            return 0;
    }
    return -1;
}

tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err)
{
    double own[2 * TSR_EXPOSURE_N_BIN], n = 0.0, sum = 0.0, exposed = 0.0;
    memcpy(own, bins, sizeof own);
    for (int b = 0; b < TSR_EXPOSURE_N_BIN; b++) {
        n += own[2 * b];
        sum += own[2 * b] * middle_of(b);
        exposed += own[2 * b + 1];
    }
    *type = (tsr_exposure_type){.width = 1.0};
    if (!(exposed > 0.0))
        return TSR_OK;
    gsl_multimin_fminimizer *solver =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 2);
    gsl_vector *x = gsl_vector_alloc(2), *step = gsl_vector_alloc(2);
    tsr_status s = TSR_OK;
    if (solver == NULL || x == NULL || step == NULL) {
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to fit exposures");
        goto done;
    }
    gsl_vector_set(x, 0, 0.7 * sum / n);
    gsl_vector_set(x, 1, 0.5);
    gsl_vector_set(step, 0, 2.0);
    gsl_vector_set(step, 1, 0.5);
    if (minimise(own, x, step, solver) != 0) {
        s = tsr_fail(err, TSR_E_NUMERIC,
                     "the fit of exposures to neighbours did not converge; "
                     "give more structures");
        goto done;
    }
    const gsl_vector *best = gsl_multimin_fminimizer_x(solver);
    type->middle = gsl_vector_get(best, 0);
    type->width = exp(gsl_vector_get(best, 1));
    squares(own, type->middle, type->width, &type->largest);
done:
    if (solver != NULL)
        gsl_multimin_fminimizer_free(solver);
    gsl_vector_free(x);
    gsl_vector_free(step);
    return s;
}

void tsr_exposure_bin_sums(const double *bins, const tsr_exposure_type *type,
                           double sum[2])
{
    sum[0] = sum[1] = 0.0;
    for (int b = 0; b < TSR_EXPOSURE_N_BIN; b++) {
        double e = tsr_exposure_at(type, middle_of(b));
        sum[0] += bins[2 * b] * e;
        sum[1] += bins[2 * b] * e * e;
    }
}
