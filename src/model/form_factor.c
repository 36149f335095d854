#include "model/form_factor.h"

#include "io/structure.h"
#include "model/even_spline.h"

#include <math.h>
#include <stdlib.h>

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

static const double pi = 3.14159265358979323846;

double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    static const double rho0 = 0.334; /* e/A^3, water */
    /* An atom with its hydrogens displaces one volume, as the atomic groups
     * of Svergun et al. 1995 (J. Appl. Cryst. 28, 768) do. */
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    double g = v * exp(-q_inv_ang * q_inv_ang * cbrt(v * v) / (4.0 * pi));
    return rho0 * g;
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

tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_q,
                                           double dq_inv_ang)
{
    tsr_form_factor_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    size_t n_type = (size_t)tsr_body_n_type(model);
    table->model = model;
    table->n_type = (int)n_type;
    table->n_q = n_q;
    table->dq_inv_ang = dq_inv_ang;
    table->amplitude = calloc(n_type * (size_t)n_q, sizeof(double));
    table->self = calloc(n_type * (size_t)n_q, sizeof(double));
    table->rg2 = calloc(n_type, sizeof(double));
    table->count = calloc(n_type, sizeof(long));
    if (table->amplitude == NULL || table->self == NULL || table->rg2 == NULL ||
        table->count == NULL) {
        tsr_form_factor_free(table);
        return NULL;
    }
    return table;
}

void tsr_form_factor_free(tsr_form_factor_table *table)
{
    if (table == NULL)
        return;
    free(table->amplitude);
    free(table->self);
    free(table->rg2);
    free(table->count);
    free(table->source);
    free(table);
}

tsr_status tsr_form_factor_at(const tsr_form_factor_table *table, int n_q,
                              double dq_inv_ang, double *amplitude,
                              double *excess, tsr_err *err)
{
    const tsr_even_spline grid = {table->n_q, table->dq_inv_ang};
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    tsr_status s = TSR_OK;
    if (amplitude != NULL)
        s = tsr_even_spline_at(&grid, table->n_type, table->amplitude, n_q,
                               dq_inv_ang, amplitude, err);
    if (excess == NULL || s != TSR_OK)
        return s;
    double *difference = malloc(n * sizeof *difference);
    if (difference == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    /* The difference itself, not P and F: it begins as q^4 under terms of
     * some hundred, and S(q) must not be made of their rounding. */
    for (size_t i = 0; i < n; i++)
        difference[i] =
            table->self[i] - table->amplitude[i] * table->amplitude[i];
    s = tsr_even_spline_at(&grid, table->n_type, difference, n_q, dq_inv_ang,
                           excess, err);
    free(difference);
    return s;
}
