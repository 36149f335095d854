/* How well the first conformation alone meets the curves: what the molecule has
 * to move for. All that a run infers beside the structure is fitted: c1 and c2
 * where they are inferred, within their ranges and for all curves together, and
 * scale and background of each curve. The forward model is the run's own, so
 * that a better fit of the draws is one by motion. */
#include "run/setup.h"

#include "core/json.h"
#include "likelihood/term_saxs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* c1 and c2 are looked for on a grid of so many values, then on finer ones
 * about the best, each a fourth as wide. */
enum { SIDE = 9, ROUNDS = 6 };

typedef struct {
    const tsr_setup *setup;
    const double *partial; /* of the engine */
    double *profile;       /* [n_q] */
} job;

static int is_curve(const tsr_term *term)
{
    return term->type == &tsr_term_saxs;
}

/* One curve at one profile; the curve is left in term->start. */
static tsr_status fit_curve(tsr_term *term, const double *profile,
                            tsr_profile_fit *fit, tsr_err *err)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const tsr_parameter *b = &term->parameter[t->n_noise + 1];
    const size_t n = (size_t)term->n_point;
    const tsr_profile_fit_options options = {.fit_background = b->infer,
                                             .background = b->start};
    double *of = calloc(2 * n, sizeof *of);
    if (of == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_partial_curves curves = {.n_comp = 1,
                                 .n = term->n_point,
                                 .q = t->saxs->q,
                                 .pair = of,
                                 .self = of + n};
    tsr_saxs_curve(t, profile, 1.0, 0.0, of);
    tsr_status status = tsr_profile_fit_make(
        &curves, term->observed, term->sigma, &options, fit, term->start, err);
    free(of);
    return status;
}

/* All curves at c1 and c2; returns their chi2, infinite where one cannot be
 * met. */
static double fit_at(const job *j, const double *contrast)
{
    const tsr_setup *s = j->setup;
    const tsr_likelihood *l = s->likelihood;
    double sum = 0.0;
    tsr_likelihood_profile(l, j->partial, contrast, j->profile);
    for (int d = 0; d < l->n_term; d++) {
        tsr_profile_fit *fit = &s->rigid[d];
        if (!is_curve(l->term[d]))
            continue;
        if (fit_curve(l->term[d], j->profile, fit, NULL) != TSR_OK)
            return (double)INFINITY;
        fit->c1 = contrast[TSR_C1];
        fit->c2 = contrast[TSR_C2];
        sum += fit->chi2 * fit->n_point;
    }
    return sum;
}

/* The k-th of n places from -1 to 1. */
static double step_of(int k, int n)
{
    return n > 1 ? 2.0 * k / (n - 1) - 1.0 : 0.0;
}

/* The best c1 and c2 near `best` on one grid, each `half` to either side. */
static void search(const job *j, const double half[TSR_N_CONTRAST],
                   double best[TSR_N_CONTRAST])
{
    const tsr_parameter *p = j->setup->likelihood->contrast;
    const double middle[] = {best[0], best[1]};
    double lowest = HUGE_VAL;
    const int n1 = p[TSR_C1].infer ? SIDE : 1, n2 = p[TSR_C2].infer ? SIDE : 1;
    for (int i = 0; i < n1 * n2; i++) {
        const int column = i % n1, row = i / n1;
        const double at[] = {step_of(column, n1), step_of(row, n2)};
        double c[TSR_N_CONTRAST];
        for (int k = 0; k < TSR_N_CONTRAST; k++)
            c[k] = p[k].infer
                       ? fmin(p[k].high,
                              fmax(p[k].low, middle[k] + at[k] * half[k]))
                       : middle[k];
        const double chi2 = fit_at(j, c);
        if (chi2 < lowest) {
            lowest = chi2;
            memcpy(best, c, sizeof c);
        }
    }
}

/* What fitting c1 and c2 took, and whether they ended at a bound. */
static void finish(const tsr_parameter *p, tsr_profile_fit *fit)
{
    const double edge = 1e-3;
    int *at[] = {&fit->c1_at, &fit->c2_at};
    const double c[] = {fit->c1, fit->c2};
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        const double width = edge * (p[k].high - p[k].low);
        fit->n_parameter += p[k].infer != 0;
        *at[k] = !p[k].infer                ? 0
                 : c[k] < p[k].low + width  ? -1
                 : c[k] > p[k].high - width ? 1
                                            : 0;
    }
    fit->reduced_chi2 =
        fit->n_point > fit->n_parameter
            ? fit->chi2 * fit->n_point / (fit->n_point - fit->n_parameter)
            : (double)NAN;
}

tsr_status tsr_setup_fit_start(tsr_setup *setup, const double *partial,
                               tsr_err *err)
{
    const tsr_likelihood *l = setup->likelihood;
    const tsr_parameter *p = l->contrast;
    double best[TSR_N_CONTRAST], half[TSR_N_CONTRAST];
    job j = {setup, partial, calloc((size_t)l->grid.n_q, sizeof(double))};
    setup->rigid = calloc((size_t)l->n_term + 1, sizeof *setup->rigid);
    int is_good = j.profile != NULL && setup->rigid != NULL;
    for (int d = 0; d < l->n_term && is_good; d++)
        if (is_curve(l->term[d])) {
            l->term[d]->start =
                calloc((size_t)l->term[d]->n_point, sizeof(double));
            is_good = l->term[d]->start != NULL;
        }
    if (!is_good) {
        free(j.profile);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        best[k] = p[k].infer ? 0.5 * (p[k].low + p[k].high) : p[k].start;
        half[k] = 0.5 * (p[k].high - p[k].low);
    }
    const int rounds = p[TSR_C1].infer || p[TSR_C2].infer ? ROUNDS : 1;
    for (int round = 0; round < rounds; round++) {
        search(&j, half, best);
        half[0] /= 4.0, half[1] /= 4.0;
    }
    const int has_fit = isfinite(fit_at(&j, best));
    for (int d = 0; d < l->n_term; d++)
        if (!is_curve(l->term[d]))
            continue;
        else if (has_fit)
            finish(p, &setup->rigid[d]);
        else
            setup->rigid[d] = (tsr_profile_fit){.n_point = 0};
    free(j.profile);
    return TSR_OK;
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
