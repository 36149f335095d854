#include "model/component_table.h"

#include "model/even_spline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

int tsr_component_pair(int a, int b)
{
    return a * (2 * TSR_N_COMP - a - 1) / 2 + b;
}

tsr_component_table *tsr_component_new(tsr_body_model model, int n_q,
                                       double dq_inv_ang)
{
    tsr_component_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    size_t n = (size_t)tsr_body_n_type(model) * (size_t)n_q;
    table->model = model;
    table->n_type = tsr_body_n_type(model);
    table->n_q = n_q;
    table->dq_inv_ang = dq_inv_ang;
    table->exposure = tsr_exposure_model_of(model);
    table->amplitude = calloc(TSR_N_COMP * n, sizeof(double));
    table->excess = calloc(TSR_N_COMP_PAIR * n, sizeof(double));
    if (table->amplitude == NULL || table->excess == NULL) {
        tsr_component_free(table);
        return NULL;
    }
    return table;
}

void tsr_component_free(tsr_component_table *table)
{
    if (table == NULL)
        return;
    free(table->amplitude);
    free(table->excess);
    free(table->source);
    free(table);
}

tsr_status tsr_component_at(const tsr_component_table *table, int n_q,
                            double dq_inv_ang, double *amplitude,
                            double *excess, tsr_err *err)
{
    const tsr_even_spline grid = {table->n_q, table->dq_inv_ang};
    tsr_status s =
        tsr_even_spline_at(&grid, TSR_N_COMP * table->n_type, table->amplitude,
                           n_q, dq_inv_ang, amplitude, err);
    if (s == TSR_OK)
        s = tsr_even_spline_at(&grid, TSR_N_COMP_PAIR * table->n_type,
                               table->excess, n_q, dq_inv_ang, excess, err);
    return s;
}

tsr_status tsr_component_fold(const tsr_component_table *table,
                              tsr_form_factor_table **out, tsr_err *err)
{
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    tsr_form_factor_table *t =
        tsr_form_factor_new(table->model, table->n_q, table->dq_inv_ang);
    *out = t;
    if (t == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    for (size_t i = 0; i < n; i++) {
        double f = table->amplitude[i] - table->amplitude[n + i];
        t->amplitude[i] = f;
        t->self[i] =
            f * f + table->excess[i] -
            2.0 * table->excess[(size_t)tsr_component_pair(0, 1) * n + i] +
            table->excess[(size_t)tsr_component_pair(1, 1) * n + i];
    }
    return TSR_OK;
}

double tsr_component_radius(const tsr_component_table *table, int n,
                            const int *type)
{
    double atoms = 0.0, sum = 0.0;
    for (int i = 0; i < n; i++) {
        atoms += table->atoms[type[i]];
        sum += table->atoms[type[i]] * table->radius[type[i]];
    }
    return sum / atoms;
}

double tsr_component_power(double radius_ang, double q_inv_ang)
{
    double area = pow(4.0 * pi / 3.0, 2.0 / 3.0) * radius_ang * radius_ang;
    return area * q_inv_ang * q_inv_ang / (4.0 * pi);
}

double tsr_component_scale_of(double c1, double power)
{
    double square = c1 * c1;
    return square * c1 * exp(-(square - 1.0) * power);
}

double tsr_component_scale(double c1, double radius_ang, double q_inv_ang)
{
    return tsr_component_scale_of(c1,
                                  tsr_component_power(radius_ang, q_inv_ang));
}

double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2)
{
    const double c[TSR_N_COMP] = {1.0, -g, c2};
    double sum = 0.0;
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++, partial += stride)
            sum += (a == b ? 1.0 : 2.0) * c[a] * c[b] * *partial;
    return sum;
}
