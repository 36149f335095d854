/* How well the first conformation alone meets the curves: what the molecule has
 * to move for. All that a run infers beside the structure is fitted: c1 and c2
 * where they are inferred, within their ranges and for all curves together, and
 * scale and background of each curve. The forward model is the run's own, so
 * that a better fit of the draws is one by motion. */
#include "posterior/setup.h"

#include "core/json.h"
#include "likelihood/term_saxs.h"
#include "scattering/profile_fit.h"

#include <stdlib.h>

typedef struct {
    const tsr_likelihood *likelihood;
    const double *partial; /* of the engine */
    double *profile;       /* [n_view][n_q] */
} job;

static int is_curve(const tsr_term *term)
{
    return term->type->is_curve;
}

static void predict(void *context, double c1, double c2, double *model)
{
    const job *j = context;
    const tsr_likelihood *l = j->likelihood;
    double contrast[TSR_N_CONTRAST];
    contrast[TSR_C1] = c1;
    contrast[TSR_C2] = c2;
    for (int v = 0; v < l->n_view; v++)
        tsr_likelihood_profile(l, v, j->partial, contrast,
                               j->profile + v * l->grid.n_q);
    for (int d = 0; d < l->n_term; d++)
        if (is_curve(l->term[d])) {
            tsr_saxs_curve((const tsr_saxs_term *)l->term[d],
                           j->profile + l->term[d]->view * l->grid.n_q, 1.0,
                           0.0, model);
            model += l->term[d]->n_point;
        }
}

/* What the curves are fitted to; returns how many, or -1: out of memory. */
static int list_data(const tsr_setup *setup, const tsr_likelihood *l,
                     tsr_profile_fit_curve *data)
{
    int n = 0;
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        if (!is_curve(term))
            continue;
        term->start = calloc((size_t)term->n_point, sizeof(double));
        if (term->start == NULL)
            return -1;
        const tsr_parameter *b =
            &term->parameter[((const tsr_saxs_term *)term)->n_noise + 1];
        data[n++] = (tsr_profile_fit_curve){.n = term->n_point,
                                            .intensity = term->observed,
                                            .sigma = term->sigma,
                                            .fit_background = b->infer,
                                            .background = b->start,
                                            .fit = &setup->rigid[d],
                                            .curve = term->start};
    }
    return n;
}

tsr_status tsr_setup_fit_start(tsr_setup *setup,
                               const tsr_likelihood *likelihood,
                               const double *partial, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const size_t room = (size_t)l->n_term + 1;
    job j = {l, partial,
             calloc((size_t)(l->n_view * l->grid.n_q), sizeof(double))};
    tsr_profile_fit_curve *data = calloc(room, sizeof *data);
    double bound[TSR_N_CONTRAST][2];
    setup->rigid = calloc(room, sizeof *setup->rigid);
    const int n = j.profile != NULL && data != NULL && setup->rigid != NULL
                      ? list_data(setup, l, data)
                      : -1;
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        const tsr_parameter *p = &l->contrast[k];
        bound[k][0] = p->infer ? p->low : p->start;
        bound[k][1] = p->infer ? p->high : p->start;
    }
    /* A start that cannot be brought to the data has no fit: n_point is 0. */
    if (n > 0)
        (void)tsr_profile_fit_joint(n, data, bound[TSR_C1], bound[TSR_C2],
                                    predict, &j, NULL);
    free(j.profile);
    free(data);
    return n < 0 ? tsr_no_memory(err) : TSR_OK;
}

char *tsr_setup_rigid_text(const tsr_setup *setup)
{
    char *text = NULL;
    size_t size;
    const tsr_likelihood *l = setup->likelihood;
    FILE *out = setup->rigid != NULL ? open_memstream(&text, &size) : NULL;
    if (out == NULL)
        return NULL;
    tsr_json j = {.out = out, .is_script = 1};
    tsr_json_array(&j, NULL);
    for (int d = 0; d < l->n_term; d++) {
        const tsr_profile_fit *fit = &setup->rigid[d];
        if (!is_curve(l->term[d]))
            continue;
        tsr_json_object(&j, NULL);
        tsr_json_integer(&j, "n_point", fit->n_point);
        tsr_json_integer(&j, "n_parameter", fit->n_parameter);
        tsr_json_number(&j, "scale", fit->scale);
        tsr_json_number(&j, "background", fit->background);
        tsr_json_number(&j, "c1", fit->c1);
        tsr_json_number(&j, "c2", fit->c2);
        tsr_json_integer(&j, "c1_at", fit->c1_at);
        tsr_json_integer(&j, "c2_at", fit->c2_at);
        tsr_json_number(&j, "chi2", fit->chi2);
        tsr_json_number(&j, "cormap_p", fit->cormap_p);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    return fclose(out) == 0 ? text : NULL;
}
