/* Is the grid fine enough, and is the engine right? The curves of the start are
 * compared with direct sums, at every corner of what c1 and c2 may be. */
#include "likelihood/likelihood.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    const tsr_likelihood *l;
    const tsr_topology *topology;
    const tsr_scattering *scattering;
    const tsr_conformation *conformation;
    const double *partial; /* of the engine */
    double *profile;       /* [n_q] scratch */
    double worst;
} check;

/* Partial profiles at one q without a grid. */
static tsr_status direct_at(const check *c, int probe, double q,
                            double *partial, double *radius, tsr_err *err)
{
    const tsr_particles *own = c->l->particles;
    double pair[TSR_N_COMP_PAIR][2]; /* at 0 and q, or some other one */
    const double step = q > 0.0 ? q : 0.01;
    if (own == NULL)
        return tsr_scattering_direct(&c->scattering[probe], c->topology,
                                     c->conformation, q, partial, radius, err);
    *radius = own->radius_ang;
    TSR_TRY(own->type->direct(own, c->conformation, probe, 2, step, NULL,
                              pair[0], err));
    for (int p = 0; p < TSR_N_COMP_PAIR; p++)
        partial[p] = pair[p][q > 0.0];
    return TSR_OK;
}

/* One term at one q, at every place of c1 and c2. The scale of sigma is that of
 * the place. */
static tsr_status check_point(check *c, const tsr_term *term, int k,
                              const double *scale, const double *curve,
                              tsr_err *err)
{
    double q = term->coord[k], direct[TSR_N_COMP_PAIR], radius, by[TSR_N_COMP];
    double value[5][TSR_N_CONTRAST];
    const tsr_view *view = &c->l->view[term->view];
    int n = tsr_likelihood_corners(c->l, term->view, value);
    tsr_status status = direct_at(c, view->probe, q, direct, &radius, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        const int n_comp = tsr_likelihood_coefficients(
            c->l, term->view, value[i], tsr_component_power(radius, q), by);
        double exact = tsr_coarse_sum(n_comp, by, direct, 1);
        double allowed =
            fmax(1e-4 * fabs(exact), 0.05 * term->sigma[k] / fabs(scale[i]));
        double had = curve[i * term->n_point + k];
        double error = fabs(had - exact) / allowed;
        c->worst = fmax(c->worst, error);
        if (error <= 1.0)
            continue;
        status = tsr_fail(
            err, TSR_E_INTERNAL,
            "'%s': at q = %.4f 1/A the engine and its q grid give "
            "I = %.8g, the direct sum %.8g: more than is allowed (%.2g)",
            term->label, q, had, exact, allowed);
        if (i > 0) /* the parts of the curve all but cancel there */
            status = tsr_fail(
                err, TSR_E_CONFIG,
                "contrast: at c1 = %.4g, c2 = %.4g, within what is allowed for "
                "them, the curve at q = %.4f 1/A of '%s' cannot be had to "
                "%.2g (%.8g instead of %.8g); narrow contrast.c1_range and "
                "contrast.c2_range",
                value[i][TSR_C1], value[i][TSR_C2], q, term->label, allowed,
                had, exact);
    }
    return status;
}

/* The profile at the points' own q: of a smeared term, whose points are means
 * of it with weights that add up to 1, the ideal curve is what is checked. */
static tsr_status check_curve(const check *c, const tsr_term *term,
                              double *scale, double *curve, tsr_err *err)
{
    const tsr_q_grid *grid = &c->l->grid;
    const size_t n_q = (size_t)grid->n_q;
    double *matrix;
    TSR_TRY(term->type->carry(term, c->profile, scale, curve, err));
    if (!term->is_smeared)
        return TSR_OK;
    TSR_TRY(tsr_q_operator_new(grid, term->n_point, term->coord, &matrix, err));
    for (size_t k = 0; k < (size_t)term->n_point; k++) {
        curve[k] = 0.0;
        for (size_t j = 0; j < n_q; j++)
            curve[k] += matrix[k * n_q + j] * c->profile[j];
    }
    free(matrix);
    return TSR_OK;
}

static tsr_status check_term(check *c, const tsr_term *term, tsr_err *err)
{
    enum { N_CHECK = 16 };
    const int n_point = term->n_point;
    double value[5][TSR_N_CONTRAST], scale[5] = {0.0};
    int n = tsr_likelihood_corners(c->l, term->view, value);
    double *curve = calloc((size_t)(n * n_point), sizeof *curve);
    tsr_status status = TSR_OK;
    if (curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n && status == TSR_OK; i++) {
        tsr_likelihood_profile(c->l, term->view, c->partial, value[i],
                               c->profile);
        status = check_curve(c, term, &scale[i], curve + i * n_point, err);
    }
    for (int i = 0; i < N_CHECK && status == TSR_OK; i++)
        status =
            check_point(c, term, (int)((long)i * (n_point - 1) / (N_CHECK - 1)),
                        scale, curve, err);
    free(curve);
    return status;
}

tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err)
{
    check c = {
        likelihood, topology,
        scattering, conformation,
        partial,    calloc((size_t)likelihood->grid.n_q + 1, sizeof(double)),
        0.0};
    tsr_status status = c.profile == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : TSR_OK;
    for (int d = 0; d < likelihood->n_term && status == TSR_OK; d++)
        if (likelihood->term[d]->type->carry != NULL)
            status = check_term(&c, likelihood->term[d], err);
    free(c.profile);
    if (worst != NULL)
        *worst = c.worst;
    return status;
}
