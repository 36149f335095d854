/* What a table of form factors is trained on: the amplitudes of atoms; the
 * curve of exposures by neighbours, fitted by least squares. */
#include "train/form_factor_atoms.h"

#include "molecule/structure.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- atoms ---- */

/* Fraser, MacRae & Suzuki 1978, J. Appl. Cryst. 11, 693, table 1. */
static double displaced_volume(int z)
{
    switch (z) {
    case 1:
        return 5.15;
    case 6:
        return 16.44;
    case 7:
        return 2.49;
    case 8:
        return 9.13;
    case 16:
        return 19.86;
    default:
        return (double)NAN;
    }
}

double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    /* An atom with its hydrogens displaces one volume, as the atomic groups
     * of Svergun et al. 1995 (J. Appl. Cryst. 28, 768) do. */
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    double g = v * exp(-q_inv_ang * q_inv_ang * cbrt(v * v) / (4.0 * pi));
    return TSR_WATER_DENSITY * g;
}

double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    double f = tsr_atom_form_factor(z, q_inv_ang);
    if (n_hydrogen > 0)
        f += n_hydrogen * tsr_atom_form_factor(1, q_inv_ang);
    return f - tsr_atom_displaced_amplitude(z, n_hydrogen, q_inv_ang);
}

double tsr_atom_radius(int z, int n_hydrogen)
{
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    return cbrt(0.75 * v / pi);
}

double tsr_component_water(double q_inv_ang)
{
    return tsr_atom_contrast_amplitude(8, 2, q_inv_ang);
}

/* ---- exposures ---- */

static const double bin_width = 0.1;

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
