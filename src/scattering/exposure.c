/* How much of a body water can reach, guessed from the number of its neighbours
 * within a soft sphere: a logistic curve for each type, fitted to exposures
 * from all atoms. */
#include "scattering/form_factor.h"

#include "core/vec3.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double bin_width = 0.1;
static const double pi = 3.14159265358979323846;

tsr_exposure_model tsr_exposure_model_of(tsr_body_model model)
{
    tsr_exposure_model m = {.near_ang = 4.0, .far_ang = 10.0, .carry = 0.33};
    if (model == TSR_BODIES_ONE)
        m.near_ang = 3.3, m.far_ang = 11.1, m.carry = 0.5;
    return m;
}

/* u of two bodies at the square of their distance. */
static double share_of(const tsr_exposure_model *model, double d2)
{
    double near = model->near_ang, far = model->far_ang;
    if (d2 >= far * far)
        return 0.0;
    double x = (sqrt(d2) - near) / (far - near);
    return x <= 0.0 ? 1.0 : 0.5 * (1.0 + cos(pi * x));
}

void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count)
{
    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double share = share_of(model, tsr_vec3_distance2(xyz[i], xyz[j]));
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

/* The bodies around each body, once to count and once to give. */
static void give(const tsr_exposure_model *model, int n, const double (*xyz)[3],
                 const int *dry, double *count, double *part, double *exposure)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                double u = share_of(model, tsr_vec3_distance2(xyz[i], xyz[j]));
                if (u == 0.0 || (dry != NULL && (dry[i] || dry[j])))
                    continue;
                count[i] += pass == 0 ? u : 0.0;
                count[j] += pass == 0 ? u : 0.0;
                exposure[i] += u * (part[i] - part[j]);
                exposure[j] += u * (part[j] - part[i]);
            }
        for (int i = 0; i < n && pass == 0; i++)
            part[i] =
                count[i] > 0.0 ? model->carry * exposure[i] / count[i] : 0.0;
    }
}

tsr_status tsr_exposure_carry(const tsr_exposure_model *model, int n,
                              const double (*xyz)[3], const int *dry,
                              double *exposure, tsr_err *err)
{
    double *count = calloc(2 * (size_t)n + 1, sizeof *count);
    if (count == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n);
    if (model->carry != 0.0)
        give(model, n, xyz, dry, count, count + n, exposure);
    free(count);
    return TSR_OK;
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
