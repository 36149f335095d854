/* The part of a verdict that is on maps and distances: numbers, sentences and
 * JSON. What was measured is one number, so that what the draws expect of it
 * and what the start did can be said beside it. */
#include "answer/verdict.h"

#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A structure explains a map that leaves less than this of its signal. */
static const double little = 0.05;

/* ---- numbers ---- */

/* The only number of a variable; NaN: there is none, or several. */
static double constant(const tsr_past_run *run, const tsr_verdict_measured *m,
                       int ordinal, tsr_trace_group group, const char *what)
{
    char name[64];
    int n_chain, n_draw, n = 0;
    double *value = NULL, one = (double)NAN;
    tsr_term_variable(m->type, ordinal, what, sizeof name, name);
    if (tsr_trace_get(run->trace, group, name, &n_chain, &n_draw, &n, &value,
                      NULL) == TSR_OK &&
        n == 1)
        one = value[0];
    free(value);
    return one;
}

/* *is_there 0: the trace has no such measurement. */
static tsr_status measure(const tsr_past_run *run, int ordinal,
                          tsr_verdict_measured *m, int *is_there, tsr_err *err)
{
    enum { MOST = 20000 };
    char mean[40], name[64];
    tsr_thinned draws;
    snprintf(mean, sizeof mean, "%s_mean", m->type->observable);
    tsr_term_variable(m->type, ordinal, mean, sizeof name, name);
    m->value =
        constant(run, m, ordinal, TSR_TRACE_OBSERVED_DATA, m->type->observable);
    *is_there = isfinite(m->value);
    if (!*is_there)
        return TSR_OK;
    m->sd = constant(run, m, ordinal, TSR_TRACE_CONSTANT_DATA, "sigma");
    m->start = constant(run, m, ordinal, TSR_TRACE_CONSTANT_DATA, "rigid");
    m->limit = constant(run, m, ordinal, TSR_TRACE_CONSTANT_DATA, "limit");
    TSR_TRY(tsr_thinned_get(run->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                            MOST, 0, 1, &draws, err));
    *is_there = draws.n_chain * draws.n_kept > 0;
    tsr_status status = *is_there
                            ? tsr_convergence_make(draws.n_chain, draws.n_kept,
                                                   draws.value, &m->draws, err)
                            : TSR_OK;
    free(draws.value);
    return status;
}

static void name_measured(const tsr_past_run *run, int ordinal,
                          tsr_verdict_measured *m)
{
    const tsr_term_options *data = run->config.data.item;
    snprintf(m->name, sizeof m->name, "%s %d", m->type->name, ordinal + 1);
    for (int i = 0, seen = 0; run->has_config && i < run->config.data.n; i++)
        if (tsr_term_registry[data[i].kind] == m->type && seen++ == ordinal)
            tsr_config_data_name(&run->config, i, sizeof m->name, m->name);
}

static tsr_status measure_kind(tsr_verdict *v, const tsr_past_run *run,
                               const tsr_term_type *type, tsr_err *err)
{
    for (int ordinal = 0, is_there = 1; is_there; ordinal++) {
        tsr_verdict_measured m = {.type = type};
        TSR_TRY(measure(run, ordinal, &m, &is_there, err));
        if (!is_there)
            break;
        name_measured(run, ordinal, &m);
        tsr_verdict_measured *more =
            realloc(v->measured, ((size_t)v->n_measured + 1) * sizeof *more);
        TSR_TRY(tsr_allocated(more, err));
        v->measured = more;
        more[v->n_measured++] = m;
    }
    return TSR_OK;
}

/* Does anything that was measured see where domains lie? */
static int has_place(const tsr_verdict *v)
{
    for (int k = 0; k < v->n_measured; k++)
        if ((v->measured[k].type->needs & TSR_NEEDS_PLACE) != 0)
            return 1;
    return 0;
}

/* Distances and turns of the other domains to the fixed one. */
static tsr_status find_moved(tsr_verdict *v, tsr_err *err)
{
    const tsr_arrangements *a = v->arrangements;
    if (a == NULL || a->n_state > 1 || !has_place(v))
        return TSR_OK;
    const tsr_domains *d = a->domains;
    double *degrees = calloc((size_t)d->n + 1, sizeof *degrees);
    tsr_status status = tsr_allocated(degrees, err);
    for (int k = 0; k < d->n_pair && status == TSR_OK; k++) {
        const tsr_domain_pair *p = &d->pair[k];
        if (p->a != a->fixed && p->b != a->fixed)
            continue;
        tsr_verdict_moved *m = &v->moved[v->n_moved];
        *m = (tsr_verdict_moved){.domain = p->a == a->fixed ? p->b : p->a,
                                 .start = p->start_ang};
        for (int i = 0; i < d->n; i++)
            degrees[i] = p->turn[i] * 57.29577951308232;
        status = tsr_convergence_make(1, d->n, p->distance, &m->distance, err);
        TSR_THEN(status, tsr_convergence_make(1, d->n, degrees, &m->turn, err));
        v->n_moved += status == TSR_OK;
    }
    free(degrees);
    return status;
}

tsr_status tsr_verdict_measure(tsr_verdict *verdict, const tsr_past_run *run,
                               tsr_err *err)
{
    for (int k = 0; tsr_term_registry[k] != NULL; k++)
        if (!tsr_term_registry[k]->is_curve)
            TSR_TRY(measure_kind(verdict, run, tsr_term_registry[k], err));
    return find_moved(verdict, err);
}

/* Of a map: the share of what it has beside noise that a correlation leaves
 * unexplained; NaN where the noise is not known. */
static double unexplained(double cc, double limit)
{
    const double explained = cc > 0.0 ? cc * cc / (limit * limit) : 0.0;
    return isnan(limit) || isnan(cc) ? (double)NAN
           : explained < 1.0         ? 1.0 - explained
                                     : 0.0;
}

/* ---- sentences ---- */

/* What start and draws leave of the map, where its noise is known. */
static void say_unexplained(const tsr_verdict_measured *m, tsr_words *w)
{
    const double start = unexplained(m->start, m->limit);
    const double draws = unexplained(m->draws.mean, m->limit);
    tsr_words_say(w,
                  " Noise would leave %.3f of a structure that is right; of "
                  "what the map shows beside noise ",
                  m->limit);
    if (isfinite(start))
        tsr_words_say(w, "the start leaves %.0f %% unexplained, ",
                      100.0 * start);
    tsr_words_say(w, "the draws %.0f %%: ", 100.0 * draws);
    if (start < little)
        tsr_words_say(w, "the start explains the map.");
    else if (draws < little)
        tsr_words_say(w, "they explain the map%s.",
                      isfinite(start) ? ", and the start does not" : "");
    else
        tsr_words_say(w, "they do not explain all of it: a part that is "
                         "missing or too many, or held rigid and is not.");
}

static void say_map(const tsr_verdict_measured *m, tsr_words *w)
{
    char text[64];
    tsr_words_say(w, "%s: ", m->name);
    if (isfinite(m->start))
        tsr_words_say(w, "the start has a correlation of %.3f with the map, ",
                      m->start);
    tsr_words_say(w, "the draws %s (of bodies).",
                  tsr_verdict_interval(&m->draws, text));
    if (isfinite(m->limit))
        say_unexplained(m, w);
    else
        tsr_words_say(w, " How high noise would let it be is not known: "
                         "half-maps or a mask would show it.");
    if (m->draws.rhat > 1.1)
        tsr_words_say(w,
                      " Chains do not agree on it (R-hat %.2f): where all "
                      "parts belong is not decided, or some chains are stuck "
                      "in places that fit less well.",
                      m->draws.rhat);
}

static void say_number(const tsr_verdict_measured *m, tsr_words *w)
{
    char text[64];
    const char *unit =
        m->type->observable_unit != NULL ? m->type->observable_unit : "";
    const double off = (m->draws.mean - m->value) / m->sd;
    tsr_words_say(w, "%s of %s: measured %.4g +- %.2g %s, ",
                  m->type->observable, m->name, m->value, m->sd, unit);
    if (isfinite(m->start))
        tsr_words_say(w, "the start has %.4g, ", m->start);
    tsr_words_say(w, "the draws %s with a standard deviation of %.2g",
                  tsr_verdict_interval(&m->draws, text), m->draws.sd);
    tsr_words_say(w,
                  fabs(off) <= 1.0
                      ? "; they agree (%.1f standard deviations off)."
                  : fabs(off) <= 2.0
                      ? "; they are at its edge (%.1f standard deviations off)."
                      : "; they do not agree (%.1f standard deviations off): "
                        "other data, or what cannot move, hold them there.",
                  off);
}

void tsr_verdict_say_measured(const tsr_verdict *verdict, tsr_words *words)
{
    enum { MOST = 12 };
    const tsr_verdict *v = verdict;
    for (int k = 0; k < v->n_measured && k < MOST; k++) {
        const tsr_verdict_measured *m = &v->measured[k];
        if (k > 0)
            tsr_words_say(words, " ");
        if (m->type->is_correlation)
            say_map(m, words);
        else
            say_number(m, words);
    }
    if (v->n_measured > MOST)
        tsr_words_say(words, " And %d more (summary --json).",
                      v->n_measured - MOST);
}

void tsr_verdict_say_moved(const tsr_verdict *verdict, tsr_words *words)
{
    const tsr_verdict *v = verdict;
    char name[120], distance[64], turn[64];
    if (v->n_moved == 0 || v->atoms == NULL)
        return;
    const tsr_domain *domain = v->arrangements->domains->domain;
    tsr_domain_name(v->atoms, &domain[v->arrangements->fixed], sizeof name,
                    name);
    tsr_words_say(words, "Since the start, against %s: ", name);
    for (int k = 0; k < v->n_moved; k++) {
        const tsr_verdict_moved *m = &v->moved[k];
        tsr_domain_name(v->atoms, &domain[m->domain], sizeof name, name);
        tsr_words_say(words,
                      "%s%s has turned by %s degrees, its centre moved from "
                      "%.1f to %s Angstrom",
                      k > 0 ? "; " : "", name,
                      tsr_verdict_interval(&m->turn, turn), m->start,
                      tsr_verdict_interval(&m->distance, distance));
    }
    tsr_words_say(words, ".");
}

/* ---- JSON ---- */

static void put_one(const tsr_verdict_measured *m, tsr_json *j)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "kind", m->type->name);
    tsr_json_text(j, "name", m->name);
    tsr_json_number(j, "measured", m->value);
    tsr_json_number(j, "sd", m->sd);
    tsr_json_number(j, "start", m->start);
    tsr_verdict_put_interval(j, "draws", &m->draws);
    tsr_json_number(j, "draws_sd", m->draws.sd);
    tsr_json_number(j, "draws_rhat", m->draws.rhat);
    if (m->type->is_correlation) {
        tsr_json_number(j, "limit", m->limit);
        tsr_json_number(j, "start_unexplained",
                        unexplained(m->start, m->limit));
        tsr_json_number(j, "draws_unexplained",
                        unexplained(m->draws.mean, m->limit));
    } else {
        tsr_json_number(j, "off", (m->draws.mean - m->value) / m->sd);
    }
    tsr_json_close(j);
}

void tsr_verdict_put_measured(const tsr_verdict *verdict, tsr_json *json)
{
    const tsr_verdict *v = verdict;
    tsr_json_array(json, "measured");
    for (int k = 0; k < v->n_measured; k++)
        put_one(&v->measured[k], json);
    tsr_json_close(json);
    tsr_json_array(json, "since_start");
    for (int k = 0; k < v->n_moved; k++) {
        const tsr_verdict_moved *m = &v->moved[k];
        tsr_json_object(json, NULL);
        tsr_json_integer(json, "domain", m->domain); /* of arrangements */
        tsr_json_number(json, "distance_start", m->start);
        tsr_verdict_put_interval(json, "distance", &m->distance);
        tsr_verdict_put_interval(json, "turn_degrees", &m->turn);
        tsr_json_close(json);
    }
    tsr_json_close(json);
}
