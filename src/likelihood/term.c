/* The list of likelihood terms, made from TSR_TERMS, and what all of them do
 * alike. */
#include "likelihood/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define X(name) &tsr_term_##name,
const tsr_term_type *const tsr_term_registry[] = {TSR_TERMS(X) NULL};
#undef X

tsr_field_kind tsr_term_kind(int number)
{
    const tsr_term_type *type = tsr_term_registry[number];
    return type == NULL ? (tsr_field_kind){.name = NULL}
                        : (tsr_field_kind){type->name, type->doc, type->fields};
}

void tsr_term_tell_free(FILE *out, const char *name, tsr_number_or_word value)
{
    if (value.word == 0)
        fprintf(out, "%s was free", name);
    else
        fprintf(out, "%s was %g", name, value.number);
}

int tsr_term_is_alike(const tsr_term_type *a, const tsr_term_type *b)
{
    return a == b || (a->is_curve && b->is_curve);
}

tsr_term *tsr_term_new(const tsr_term_type *type, int number)
{
    tsr_pool pool = {0};
    tsr_term *term = tsr_pool_new(&pool, 1, type->size);
    if (term == NULL)
        return NULL;
    term->type = type;
    term->pool = pool;
    term->number = number;
    return term;
}

tsr_status tsr_term_read(const tsr_term_source *source, tsr_term **out,
                         tsr_err *err)
{
    const tsr_term_type *type = tsr_term_registry[source->options->kind];
    tsr_term *term = tsr_term_new(type, source->number);
    tsr_status status = tsr_allocated(term, err);
    TSR_THEN(status, type->read(source, term, err));
    if (status != TSR_OK) {
        tsr_term_free(term);
        term = NULL;
    }
    *out = term;
    return status;
}

void tsr_term_free(tsr_term *term)
{
    if (term == NULL)
        return;
    if (term->type->free != NULL)
        term->type->free(term);
    tsr_pool pool = term->pool;
    tsr_pool_clear(&pool);
}

void tsr_term_add_note(tsr_term *term, const char *name, const char *text,
                       const double *value)
{
    if (term->n_note < TSR_TERM_NOTES)
        term->note[term->n_note++] = (tsr_term_note){name, text, value};
}

void *tsr_term_fit_new(const tsr_term *term, tsr_pool *pool)
{
    return term->type->fit_new != NULL
               ? term->type->fit_new(term, pool)
               : tsr_pool_new(pool, 1, term->type->fit_size);
}

double tsr_term_log_point(const tsr_term *term, const void *fit,
                          const double *theta, int k, double value)
{
    return term->type->log_point != NULL
               ? term->type->log_point(term, theta, k, value)
               : term->type->log_lik(term, fit, theta);
}

double tsr_term_draw_point(const tsr_term *term, const double *theta, int k,
                           double value, gsl_rng *rng)
{
    return term->type->draw_point != NULL
               ? term->type->draw_point(term, theta, k, value, rng)
               : value;
}

/* theta[i] at the best of values within three of its prior's widths. */
static tsr_status find_best(const tsr_term *term, int i,
                            const tsr_prediction *prediction, void *fit,
                            double *theta, tsr_err *err)
{
    const tsr_parameter *p = &term->parameter[i];
    double most = -HUGE_VAL, best = theta[i];
    for (int k = -30; k <= 30; k++) {
        theta[i] = p->mean + 0.1 * k * p->width;
        TSR_TRY(term->type->fit(term, NULL, prediction, theta, fit, err));
        const double own = term->type->log_lik(term, fit, theta);
        if (own > most) {
            most = own;
            best = theta[i];
        }
    }
    theta[i] = best;
    return TSR_OK;
}

tsr_status tsr_term_expect(tsr_term *term, const tsr_prediction *prediction,
                           tsr_err *err)
{
    double theta[TSR_TERM_PARAMETERS];
    tsr_pool pool = {0};
    void *fit = tsr_term_fit_new(term, &pool);
    if (term->start == NULL)
        tsr_pool_array(&term->pool, term->start, term->n_point);
    tsr_status status = tsr_allocated(fit, err);
    TSR_THEN(status, tsr_allocated(term->start, err));
    tsr_term_start(term, theta);
    for (int i = 0; i < term->n_parameter && status == TSR_OK; i++) {
        const tsr_parameter *p = &term->parameter[i];
        if (p->infer && p->scope == TSR_CHANGES_FIT &&
            p->shape == TSR_PRIOR_NORMAL)
            status = find_best(term, i, prediction, fit, theta, err);
    }
    TSR_THEN(status, term->type->fit(term, NULL, prediction, theta, fit, err));
    if (status == TSR_OK)
        term->type->predict(term, prediction, fit, theta, term->start);
    tsr_pool_clear(&pool);
    return status;
}

int tsr_term_n_free(const tsr_term *term)
{
    int n = 0;
    for (int i = 0; i < term->n_parameter; i++)
        n += term->parameter[i].infer;
    return n;
}

void tsr_term_start(const tsr_term *term, double *theta)
{
    for (int i = 0; i < term->n_parameter; i++)
        theta[i] = term->parameter[i].start;
}

void tsr_term_variable(const tsr_term_type *type, int ordinal, const char *name,
                       size_t size, char *out)
{
    char number[16] = "";
    const int is_plain =
        type->is_curve || strncmp(name, type->name, strlen(type->name)) == 0;
    if (ordinal > 0)
        snprintf(number, sizeof number, "_%d", ordinal + 1);
    snprintf(out, size, "%s%s%s%s", is_plain ? "" : type->name,
             is_plain ? "" : "_", name, number);
}
