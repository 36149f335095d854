#include "scattering/atom_model.h"

#include "core/vec3.h"
#include "io/structure.h"
#include "scattering/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double rho0 = 0.334;    /* e/A^3, water */
static const double probe_ang = 1.8; /* as FoXS */
enum { N_POINT = 200, MAX_HYDROGEN = 8, MAX_Z = 98 };

double tsr_displaced_volume(int z)
{
    static const struct {
        int z;
        double volume;
    } table[] = {{1, 5.15},   {6, 16.44}, {7, 2.49},   {8, 9.13},
                 {12, 17.16}, {15, 5.73}, {16, 19.86}, {20, 31.89},
                 {25, 9.20},  {26, 7.99}, {29, 8.78},  {30, 9.85}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].z == z)
            return table[i].volume;
    return tsr_atom_is_metal(z)
               ? 9.0
               : 4.0 / 3.0 * PI * pow(tsr_atom_vdw_radius(z), 3.0);
}

static double radius_of(double volume)
{
    return cbrt(0.75 * volume / PI);
}

void tsr_atom_model_free(tsr_atom_model *model)
{
    if (model == NULL)
        return;
    free(model->xyz);
    free(model->type);
    free(model->surface);
    free(model->kind);
    free(model);
}

/* Numbers the kinds of atoms that occur. */
static void find_types(const tsr_atoms *atoms, const int *n_hydrogen,
                       tsr_atom_model *m)
{
    int number[MAX_Z + 1][MAX_HYDROGEN + 1];
    memset(number, 0, sizeof number);
    for (int i = 0; i < m->n; i++)
        number[atoms->atom[i].z][n_hydrogen[i]] = 1;
    for (int z = 1; z <= MAX_Z; z++)
        for (int h = 0; h <= MAX_HYDROGEN; h++)
            if (number[z][h]) {
                number[z][h] = m->n_type;
                m->kind[m->n_type++] = (tsr_atom_kind){
                    z, h,
                    tsr_displaced_volume(z) + h * tsr_displaced_volume(1)};
            }
    for (int i = 0; i < m->n; i++)
        m->type[i] = number[atoms->atom[i].z][n_hydrogen[i]];
}

static void add_up(tsr_atom_model *m)
{
    double centre[3] = {0.0, 0.0, 0.0}, moment = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n; i++) {
            const tsr_atom_kind *k = &m->kind[m->type[i]];
            double mass =
                tsr_atom_mass(k->z) + k->n_hydrogen * tsr_atom_mass(1);
            if (pass == 1) {
                moment += mass * tsr_vec3_distance2(m->xyz[i], centre);
                continue;
            }
            for (int c = 0; c < 3; c++)
                centre[c] = (m->mass * centre[c] + mass * m->xyz[i][c]) /
                            (m->mass + mass);
            m->mass += mass;
            m->n_electron += k->z + k->n_hydrogen;
            m->volume += k->volume;
            m->radius_ang += radius_of(k->volume) / m->n;
        }
    m->rg_ang = sqrt(moment / m->mass);
}

tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_atom_model **out,
                              tsr_err *err)
{
    size_t n = (size_t)atoms->n_atom;
    tsr_status status = TSR_OK;
    *out = NULL;
    tsr_atom_model *m = calloc(1, sizeof *m);
    int *n_hydrogen = calloc(n, sizeof *n_hydrogen);
    double *radius = calloc(n, sizeof *radius);
    if (m != NULL) {
        m->n = atoms->n_atom;
        m->xyz = calloc(n, sizeof *m->xyz);
        m->type = calloc(n, sizeof *m->type);
        m->surface = calloc(n, sizeof *m->surface);
        m->kind = calloc(MAX_Z * (MAX_HYDROGEN + 1), sizeof *m->kind);
    }
    if (m == NULL || n_hydrogen == NULL || radius == NULL || m->xyz == NULL ||
        m->type == NULL || m->surface == NULL || m->kind == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %d atoms",
                          atoms->n_atom);
    else
        status = tsr_hydrogens_assign(atoms, n_hydrogen, &m->hydrogens, err);
    if (status == TSR_OK) {
        for (int i = 0; i < m->n; i++)
            tsr_vec3_copy(m->xyz[i], atoms->atom[i].xyz);
        find_types(atoms, n_hydrogen, m);
        for (int i = 0; i < m->n; i++)
            radius[i] = radius_of(m->kind[m->type[i]].volume);
        add_up(m);
        status = tsr_surface_fraction(m->n, (const double(*)[3])m->xyz, radius,
                                      probe_ang, N_POINT, m->surface, err);
    }
    if (status == TSR_OK) {
        *out = m;
        m = NULL;
    }
    tsr_atom_model_free(m);
    free(n_hydrogen);
    free(radius);
    return status;
}

static double displaced(double volume, double q)
{
    return rho0 * volume * exp(-q * q * cbrt(volume * volume) / (4.0 * PI));
}

void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out)
{
    const double water =
        tsr_displaced_volume(8) + 2.0 * tsr_displaced_volume(1);
    size_t row = (size_t)n_q, comp = (size_t)model->n_type * row;
    for (int t = 0; t < model->n_type; t++) {
        const tsr_atom_kind *kind = &model->kind[t];
        double *at = out + (size_t)t * row;
        for (int k = 0; k < n_q; k++) {
            double q = k * dq_inv_ang, h = tsr_atom_form_factor(1, q);
            at[k] = tsr_atom_form_factor(kind->z, q) + kind->n_hydrogen * h;
            at[comp + (size_t)k] = displaced(kind->volume, q);
            at[2 * comp + (size_t)k] =
                tsr_atom_form_factor(8, q) + 2.0 * h - displaced(water, q);
        }
    }
}
