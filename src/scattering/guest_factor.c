/* Sums of sinc over the atoms of a guest's body, which are few; types of guests
 * follow those of the trained table. */
#include "scattering/guest_factor.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

typedef struct {
    const tsr_guests *guests;
    const tsr_atom_model *model;
    int n_q;
    double dq;
    const double *factor;       /* [TSR_ATOM_COMP][model->n_type][n_q] */
    int *of;                    /* [file's atoms] atom of the model, or -1 */
    tsr_form_factor_table *out; /* of one component or three */
} job;

static double sinc(double x)
{
    return x > 1e-8 ? sin(x) / x : 1.0;
}

int tsr_cluster_make(int n, tsr_cluster *cluster)
{
    const size_t room = (size_t)n + 1;
    *cluster =
        (tsr_cluster){.atom = calloc(room, sizeof *cluster->atom),
                      .r = calloc(room, sizeof *cluster->r),
                      .r_kl = calloc(room * room, sizeof *cluster->r_kl)};
    return cluster->atom != NULL && cluster->r != NULL && cluster->r_kl != NULL;
}

void tsr_cluster_clear(tsr_cluster *cluster)
{
    free(cluster->atom);
    free(cluster->r);
    free(cluster->r_kl);
    *cluster = (tsr_cluster){.n = 0};
}

void tsr_cluster_measure(const tsr_atom_model *model, const double centre[3],
                         tsr_cluster *cluster)
{
    tsr_cluster *c = cluster;
    for (int k = 0; k < c->n; k++) {
        const double *x = model->xyz[c->atom[k]];
        c->r[k] = tsr_vec3_distance(x, centre);
        for (int l = 0; l < c->n; l++)
            c->r_kl[k * c->n + l] =
                tsr_vec3_distance(x, model->xyz[c->atom[l]]);
    }
}

/* What atom i of the model has in component a at q_k. */
static double factor_of(const tsr_atom_model *m, const double *factor, int n_q,
                        int a, int i, int k)
{
    const double *f = factor + (a * m->n_type + m->type[i]) * n_q + k;
    return a == TSR_HYDRATION ? m->surface[i] * *f : *f;
}

void tsr_cluster_factor(const tsr_cluster *cluster, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e)
{
    const tsr_cluster *c = cluster;
    const double q = k * dq_inv_ang;
    for (int a = 0; a < TSR_N_COMP; a++)
        f[a] = 0.0;
    for (int p = 0; p < TSR_N_COMP_PAIR; p++)
        e[p] = 0.0;
    for (int m = 0; m < c->n; m++) {
        double own[TSR_N_COMP], by = sinc(q * c->r[m]);
        for (int a = 0; a < TSR_N_COMP; a++) {
            own[a] = factor_of(model, factor, n_q, a, c->atom[m], k);
            f[a] += own[a] * by;
        }
        for (int l = 0; l < c->n; l++) {
            double s = sinc(q * c->r_kl[m * c->n + l]);
            for (int b = 0; b < TSR_N_COMP; b++) {
                double other = factor_of(model, factor, n_q, b, c->atom[l], k);
                for (int a = 0; a <= b; a++)
                    e[tsr_component_pair(a, b)] += own[a] * other * s;
            }
        }
    }
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++)
            e[tsr_component_pair(a, b)] -= f[a] * f[b];
}

static void take_cluster(const job *j, int body, tsr_cluster *c)
{
    const tsr_guests *g = j->guests;
    c->n = 0;
    for (int i = 0; i < g->atoms->n_atom; i++)
        if (g->body[i] == body)
            c->atom[c->n++] = j->of[g->file_atom[i]];
    tsr_cluster_measure(j->model, g->part[body].xyz, c);
}

/* Hydration stands in the table for an exposure of 1. */
static void put(const job *j, int type, int k, double exposed, double *f,
                double *e)
{
    const tsr_form_factor_table *t = j->out;
    const size_t row = (size_t)(type * t->n_q + k);
    const size_t block = (size_t)(t->n_type * t->n_q);
    double by[TSR_N_COMP] = {1.0, 1.0, exposed > 0.0 ? 1.0 / exposed : 0.0};
    if (t->n_comp == 1) {
        t->amplitude[row] = f[TSR_SOLUTE] - f[TSR_DISPLACED];
        t->excess[row] = e[0] - 2.0 * e[1] + e[3];
        return;
    }
    for (int a = 0; a < TSR_N_COMP; a++) {
        t->amplitude[(size_t)a * block + row] = by[a] * f[a];
        for (int b = a; b < TSR_N_COMP; b++) {
            int p = tsr_component_pair(a, b);
            t->excess[(size_t)p * block + row] = by[a] * by[b] * e[p];
        }
    }
}

static void fill_type(const job *j, int body, const tsr_cluster *c)
{
    tsr_form_factor_table *t = j->out;
    const int type = t->n_trained + body;
    double f[TSR_N_COMP], e[TSR_N_COMP_PAIR], exposed = 0.0, radius = 0.0;
    double moment = 0.0;
    for (int k = 0; k < c->n; k++) {
        const tsr_atom_kind *kind = &j->model->kind[j->model->type[c->atom[k]]];
        exposed += j->model->surface[c->atom[k]];
        radius += cbrt(0.75 * kind->volume / pi);
        moment += tsr_atom_mass(kind->z) * c->r[k] * c->r[k];
    }
    t->count[type] = 1;
    t->rg2[type] = moment / j->guests->part[body].mass;
    t->atoms[type] = c->n;
    t->radius[type] = radius / c->n;
    t->exposed[type] = exposed;
    for (int k = 0; k < j->n_q; k++) {
        tsr_cluster_factor(c, j->model, j->factor, j->n_q, j->dq, k, f, e);
        put(j, type, k, exposed, f, e);
    }
}

/* The model has the file's atoms in their order, but no hydrogens. */
static void number_atoms(const tsr_atoms *atoms, int *of)
{
    int n = 0;
    for (int i = 0; i < atoms->n_atom; i++)
        of[i] = atoms->atom[i].z == 1 ? -1 : n++;
}

static int reserve(job *j, const tsr_form_factor_table *table,
                   const tsr_atoms *atoms, double **factor, tsr_cluster *c)
{
    int n = 0;
    for (int b = 0; b < j->guests->n_body; b++) {
        const int m = j->guests->part[b].n_atom;
        n = m > n ? m : n;
    }
    const int has_room = tsr_cluster_make(n, c);
    j->of = calloc((size_t)atoms->n_atom + 1, sizeof *j->of);
    j->out = tsr_form_factor_grow(table, j->guests->n_body);
    *factor = calloc(TSR_ATOM_COMP * (size_t)j->model->n_type * (size_t)j->n_q,
                     sizeof **factor);
    j->factor = *factor;
    return has_room && j->of != NULL && j->out != NULL && *factor != NULL;
}

tsr_status tsr_form_factor_of_guests(const tsr_form_factor_table *table,
                                     const tsr_guests *guests,
                                     const tsr_atoms *atoms, double density,
                                     tsr_form_factor_table **out, tsr_err *err)
{
    tsr_atom_model *model = NULL;
    tsr_cluster c = {0};
    double *factor = NULL;
    TSR_TRY(tsr_atom_model_new(atoms, TSR_SOLVENT_ATOMS, density, &model, err));
    job j = {.guests = guests,
             .model = model,
             .n_q = table->n_q,
             .dq = table->dq_inv_ang};
    tsr_status status =
        reserve(&j, table, atoms, &factor, &c)
            ? TSR_OK
            : tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    if (status == TSR_OK) {
        number_atoms(atoms, j.of);
        tsr_atom_model_factors(model, j.n_q, j.dq, factor);
        for (int b = 0; b < guests->n_body; b++) {
            take_cluster(&j, b, &c);
            fill_type(&j, b, &c);
        }
        *out = j.out;
    } else {
        tsr_form_factor_free(j.out);
    }
    tsr_atom_model_free(model);
    free(factor);
    free(j.of);
    tsr_cluster_clear(&c);
    return status;
}
