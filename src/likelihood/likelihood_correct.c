/* What bodies lack of atoms: corrections of the likelihood's curves and the
 * errors that are left, set, set again, saved and restored; and a likelihood
 * whose profiles are those of atoms themselves.
 */
#include "likelihood/likelihood.h"
#include "scattering/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int tsr_likelihood_corners(const tsr_likelihood *likelihood, int view,
                           double (*value)[TSR_N_CONTRAST])
{
    const tsr_likelihood *l = likelihood;
    int n = l->probe[l->view[view].probe].n_comp == 1 ? 1 : 5;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < TSR_N_CONTRAST; v++) {
            const tsr_parameter *p = &l->contrast[v];
            value[i][v] = i == 0 || !p->infer ? p->start
                          : (i - 1) >> v & 1  ? p->high
                                              : p->low;
        }
    return n;
}

static double *copied(size_t n, const double *from)
{
    double *to = malloc(n * sizeof *to);
    if (to != NULL)
        memcpy(to, from, n * sizeof *to);
    return to;
}

static tsr_status check_correction(const tsr_likelihood *l, int view,
                                   tsr_err *err)
{
    double value[5][TSR_N_CONTRAST];
    int n = tsr_likelihood_corners(l, view, value);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->grid.n_q; k++) {
            double ratio =
                tsr_likelihood_free_ratio(l, view, value[i], (size_t)k);
            if (!(ratio > 0.0) || !isfinite(ratio))
                return tsr_fail(
                    err, TSR_E_NUMERIC,
                    "at c1 = %.4g, c2 = %.4g and q = %.4f 1/A atoms scatter %g "
                    "times as much as bodies; narrow contrast.c1_range and "
                    "contrast.c2_range, or set model_error: none",
                    value[i][TSR_C1], value[i][TSR_C2], k * l->grid.dq_inv_ang,
                    ratio);
        }
    return TSR_OK;
}

static void clear_correction(tsr_view *v)
{
    free(v->atoms);
    free(v->bodies);
    free(v->atom_power);
}

tsr_status tsr_likelihood_correct(tsr_likelihood *likelihood, int view,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err)
{
    tsr_likelihood *l = likelihood;
    tsr_view *v = &l->view[view];
    tsr_view before = *v;
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n = (size_t)l->probe[v->probe].n_pair * n_q;
    v->radius_ang = radius_ang;
    v->atoms = copied(n, atoms);
    v->bodies = copied(n, bodies);
    v->atom_power = malloc(n_q * sizeof *v->atom_power);
    tsr_status status =
        v->atoms == NULL || v->bodies == NULL || v->atom_power == NULL
            ? tsr_no_memory(err)
            : TSR_OK;
    for (size_t k = 0; k < n_q && status == TSR_OK; k++)
        v->atom_power[k] =
            tsr_component_power(radius_ang, (double)k * l->grid.dq_inv_ang);
    TSR_THEN(status, check_correction(l, view, err));
    if (status == TSR_OK) {
        clear_correction(&before);
    } else { /* they stay as they are */
        clear_correction(v);
        *v = before;
    }
    return status;
}

/* Partial profiles of particles are folded and have S_ab in them: what bodies
 * would add is left out. radius_ang: r_m of the atoms' G. */
static void leave_bodies(tsr_likelihood *l, double radius_ang)
{
    const int n_q = l->grid.n_q;
    for (int k = 0; k < l->n_pair * n_q; k++)
        l->self[k] = 0.0;
    for (int p = 0; p < l->n_probe; p++)
        for (int k = 0; k < n_q; k++)
            l->probe[p].power[k] =
                tsr_component_power(radius_ang, k * l->grid.dq_inv_ang);
}

tsr_status tsr_likelihood_take_particles(tsr_likelihood *likelihood,
                                         const tsr_particles *particles,
                                         tsr_err *err)
{
    tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n_factor = TSR_N_COMP * (size_t)particles->n_kind * n_q;
    for (int p = 0; p < l->n_probe; p++) {
        tsr_probe *probe = &l->probe[p];
        int *type = malloc(((size_t)particles->n + 1) * sizeof *type);
        double *factor = malloc(n_factor * sizeof *factor);
        tsr_status status =
            type == NULL || factor == NULL
                ? tsr_no_memory(err)
                : particles->type->factors(particles, p, l->grid.n_q,
                                           l->grid.dq_inv_ang, factor, err);
        if (status != TSR_OK) {
            free(type);
            free(factor);
            return status;
        }
        memcpy(type, particles->kind, (size_t)particles->n * sizeof *type);
        probe->body_type = probe->type;
        probe->body_amplitude = probe->amplitude;
        probe->n_body_type = probe->n_type;
        probe->type = type;
        probe->amplitude = factor;
        probe->n_type = particles->n_kind;
    }
    l->particles = particles;
    leave_bodies(l, particles->radius_ang);
    return TSR_OK;
}

tsr_status tsr_likelihood_doubt(tsr_likelihood *likelihood, int view,
                                const tsr_profile_error *error, tsr_err *err)
{
    tsr_likelihood *l = likelihood;
    tsr_view *v = &l->view[view];
    const size_t n_q = (size_t)l->grid.n_q, n = (size_t)error->n * n_q;
    tsr_status status = TSR_OK;
    double *held = v->error_curve;
    v->error_curve = malloc((n + n_q) * sizeof *v->error_curve);
    free(held);
    if (v->error_curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    memcpy(v->error_curve, error->curve, n * sizeof *error->curve);
    memcpy(v->error_curve + n, error->reference,
           n_q * sizeof *error->reference);
    v->error =
        (tsr_profile_error){error->n, v->error_curve, v->error_curve + n};
    for (int d = 0; d < l->n_term && status == TSR_OK; d++)
        if (l->term[d]->type->doubt != NULL && l->term[d]->view == view)
            status = l->term[d]->type->doubt(l->term[d], &v->error, err);
    return status;
}

/* What is restored goes through the same functions as what was learnt. */
static tsr_status archive_view(tsr_likelihood *l, int view,
                               tsr_archive *archive, tsr_err *err)
{
    tsr_view *v = &l->view[view];
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n_profile = (size_t)l->probe[v->probe].n_pair * n_q;
    const size_t n_error = (TSR_MODEL_ERRORS + 1) * n_q;
    int is_known = v->atoms != NULL, n = v->error.n;
    double radius_ang = v->radius_ang;
    double *atoms = calloc(2 * n_profile + n_error, sizeof *atoms);
    TSR_TRY(tsr_allocated(atoms, err));
    double *bodies = atoms + n_profile, *error = bodies + n_profile;
    if (is_known) {
        memcpy(atoms, v->atoms, n_profile * sizeof *atoms);
        memcpy(bodies, v->bodies, n_profile * sizeof *bodies);
    }
    if (n > 0)
        memcpy(error, v->error_curve, ((size_t)n + 1) * n_q * sizeof *error);
    tsr_archive_int(archive, &is_known, 1);
    tsr_archive_int(archive, &n, 1);
    tsr_archive_real(archive, &radius_ang, 1);
    tsr_archive_real(archive, atoms, 2 * n_profile + n_error);
    tsr_status status = TSR_OK;
    if (archive->is_restoring && !archive->failed && is_known)
        status =
            tsr_likelihood_correct(l, view, atoms, bodies, radius_ang, err);
    if (archive->is_restoring && !archive->failed && n > 0 &&
        n <= TSR_MODEL_ERRORS) {
        const tsr_profile_error own = {n, error, error + (size_t)n * n_q};
        TSR_THEN(status, tsr_likelihood_doubt(l, view, &own, err));
    }
    free(atoms);
    return status;
}

tsr_status tsr_likelihood_archive(tsr_likelihood *likelihood,
                                  tsr_archive *archive, tsr_err *err)
{
    for (int v = 0; v < likelihood->n_view; v++)
        TSR_TRY(archive_view(likelihood, v, archive, err));
    return TSR_OK;
}
