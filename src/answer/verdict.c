/* The verdict on a run, from the files in its folder. A part that cannot be
 * read is left out of the verdict. */
#include "answer/verdict.h"

#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tsr_convergence unknown = {.mean = (double)NAN,
                                        .sd = (double)NAN,
                                        .median = (double)NAN,
                                        .q5 = (double)NAN,
                                        .q95 = (double)NAN};

static tsr_convergence value_of(const tsr_summary *summary, const char *name)
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    return item != NULL ? item->value : unknown;
}

/* ---- variables of a term in the trace ---- */

/* A term of the run: number `ordinal` among the terms of its kind, from 0.
 * Kinds of curves are numbered together. */
typedef struct {
    const tsr_past_run *run;
    const tsr_term_type *type;
    int ordinal;
} trace_term;

/* Reads a constant variable of the term, [*n]; the caller frees it. NULL: the
 * trace lacks the variable. */
static double *read_constant(const trace_term *term, tsr_trace_group group,
                             const char *what, int *n)
{
    char name[64];
    int n_chain, n_draw;
    double *value = NULL;
    *n = 0;
    tsr_term_variable(term->type, term->ordinal, what, sizeof name, name);
    (void)tsr_trace_get(term->run->trace, group, name, &n_chain, &n_draw, n,
                        &value, NULL);
    return value;
}

/* Reads about `most` evenly spread draws of a variable of the term: `width`
 * elements from number `first` on. */
static tsr_status draws_of(const trace_term *term, tsr_trace_group group,
                           const char *what, long most, int first, int width,
                           tsr_thinned *out, tsr_err *err)
{
    char name[64];
    tsr_term_variable(term->type, term->ordinal, what, sizeof name, name);
    return tsr_thinned_get(term->run->trace, group, name, most, first, width,
                           out, err);
}

/* Index of the term's entry in `data:`; -1: not known, and name stays. name
 * [96] out: the entry's file without folders, or the pair of residues. */
static int find_entry(const trace_term *term, char name[96])
{
    const tsr_past_run *run = term->run;
    const tsr_term_options *data = run->config.data.item;
    for (int i = 0, seen = 0; run->has_config && i < run->config.data.n; i++)
        if (tsr_term_is_same_family(tsr_term_registry[data[i].kind],
                                    term->type) &&
            seen++ == term->ordinal) {
            tsr_config_data_name(&run->config, i, 96, name);
            return i;
        }
    return -1;
}

/* ---- maps and distances ----
 *
 * A measurement here is a single number, which is reported beside the
 * predictions from the draws and from the start. */

/* A structure explains a map if it leaves less than this share of the map's
 * signal unexplained. */
static const double small_share = 0.05;

/* The value of a variable with one number; NaN: the trace lacks it, or it has
 * several. */
static double single_value(const trace_term *term, tsr_trace_group group,
                           const char *what)
{
    int n;
    double *value = read_constant(term, group, what, &n);
    const double one = n == 1 && value != NULL ? value[0] : (double)NAN;
    free(value);
    return one;
}

/* Reads all measurements of one kind. */
static tsr_status read_measurements(tsr_verdict *v, trace_term term,
                                    tsr_err *err)
{
    enum { MOST = 20000 };
    char mean[40];
    tsr_thinned draws;
    snprintf(mean, sizeof mean, "%s_mean", term.type->observable);
    for (;; term.ordinal++) {
        tsr_verdict_measured m = {
            .type = term.type,
            .value = single_value(&term, TSR_TRACE_OBSERVED_DATA,
                                  term.type->observable),
            .sd = single_value(&term, TSR_TRACE_CONSTANT_DATA, "sigma"),
            .start = single_value(&term, TSR_TRACE_CONSTANT_DATA, "rigid"),
            .limit = single_value(&term, TSR_TRACE_CONSTANT_DATA, "limit")};
        if (!isfinite(m.value))
            return TSR_OK;
        snprintf(m.name, sizeof m.name, "%s %d", m.type->name,
                 term.ordinal + 1);
        (void)find_entry(&term, m.name);
        TSR_TRY(draws_of(&term, TSR_TRACE_POSTERIOR_PREDICTIVE, mean, MOST, 0,
                         1, &draws, err));
        const int n = draws.n_chain * draws.n_kept;
        const tsr_status status =
            n > 0 ? tsr_convergence_make(0, draws.n_chain, draws.n_kept,
                                         draws.value, &m.draws, err)
                  : TSR_OK;
        free(draws.value);
        if (n == 0 || status != TSR_OK)
            return status;
        void *more = tsr_pool_resize(&v->pool, v->measured,
                                     (size_t)v->n_measured + 1, sizeof m);
        TSR_TRY(tsr_allocated(more, err));
        v->measured = more;
        v->measured[v->n_measured++] = m;
    }
}

/* Whether some data, such as a map, fix the position of the molecule in
 * space. */
static int fixes_positions(const tsr_verdict *v)
{
    for (int k = 0; k < v->n_measured; k++)
        if ((v->measured[k].type->needs & TSR_NEEDS_POSE) != 0)
            return 1;
    return 0;
}

/* Computes distances and rotations of all other domains relative to the fixed
 * domain. */
static tsr_status find_displacements(tsr_verdict *v, tsr_err *err)
{
    const tsr_arrangements *a = v->arrangements;
    if (a == NULL || a->n_state > 1 || !fixes_positions(v))
        return TSR_OK;
    const tsr_domains *d = a->domains;
    double *degrees;
    tsr_pool_array(&v->pool, degrees, d->n);
    TSR_TRY(tsr_pool_check(&v->pool, err));
    for (int k = 0; k < d->n_pair; k++) {
        const tsr_domain_pair *p = &d->pair[k];
        if (p->a != a->fixed && p->b != a->fixed)
            continue;
        tsr_verdict_moved *m = &v->moved[v->n_moved];
        *m = (tsr_verdict_moved){.domain = p->a == a->fixed ? p->b : p->a,
                                 .start = p->start_ang};
        for (int i = 0; i < d->n; i++)
            degrees[i] = p->turn[i] * 57.29577951308232;
        TSR_TRY(
            tsr_convergence_make(0, 1, d->n, p->distance, &m->distance, err));
        TSR_TRY(tsr_convergence_make(0, 1, d->n, degrees, &m->turn, err));
        v->n_moved++;
    }
    return TSR_OK;
}

/* Share of a map's signal that a structure of correlation cc leaves
 * unexplained. limit: correlation of a correct structure; NaN: the noise is not
 * known. */
static double unexplained(double cc, double limit)
{
    const double explained = cc > 0.0 ? cc * cc / (limit * limit) : 0.0;
    return isnan(limit) || isnan(cc) ? (double)NAN
           : explained < 1.0         ? 1.0 - explained
                                     : 0.0;
}

/* ---- sentences on measurements ---- */

/* How much start and draws leave unexplained of a map with known noise. */
static void write_unexplained(const tsr_verdict_measured *m, tsr_words *w)
{
    const double start = unexplained(m->start, m->limit);
    const double draws = unexplained(m->draws.mean, m->limit);
    tsr_words_add(w,
                  " The noise of the map limits the correlation of the correct "
                  "structure to %.3f; of the map's signal ",
                  m->limit);
    if (isfinite(start))
        tsr_words_add(w, "the starting structure leaves %.0f %% unexplained, ",
                      100.0 * start);
    tsr_words_add(w, "the draws leave %.0f %%: ", 100.0 * draws);
    if (start < small_share)
        tsr_words_add(w, "the starting structure explains the map.");
    else if (draws < small_share)
        tsr_words_add(w, "the draws explain the map%s.",
                      isfinite(start) ? ", and the starting structure does not"
                                      : "");
    else
        tsr_words_add(
            w, "the draws do not explain the whole map: a part is missing from "
               "the model or extra, or is held rigid and moves.");
}

static void write_map(const tsr_verdict_measured *m, tsr_words *w)
{
    char text[64];
    tsr_words_add(w, "%s: ", m->name);
    if (isfinite(m->start))
        tsr_words_add(
            w,
            "the starting structure has a correlation of %.3f with the map, ",
            m->start);
    tsr_words_add(w, "the draws %s (computed from bodies).",
                  tsr_verdict_interval(&m->draws, text));
    if (isfinite(m->limit))
        write_unexplained(m, w);
    else
        tsr_words_add(w, " The limit that noise sets on the correlation is "
                         "unknown: half-maps or a mask would show it.");
    if (m->draws.rhat > 1.1)
        tsr_words_add(
            w,
            " The chains do not agree on the correlation (R-hat %.2f): the "
            "data do not decide where all parts belong, or some chains are "
            "stuck in arrangements that fit worse.",
            m->draws.rhat);
}

static void write_number(const tsr_verdict_measured *m, tsr_words *w)
{
    char text[64];
    const char *unit =
        m->type->observable_unit != NULL ? m->type->observable_unit : "";
    const double off = (m->draws.mean - m->value) / m->sd;
    tsr_words_add(w, "%s of %s: measured %.4g +- %.2g %s, ",
                  m->type->observable, m->name, m->value, m->sd, unit);
    if (isfinite(m->start))
        tsr_words_add(w, "the starting structure has %.4g, ", m->start);
    tsr_words_add(w, "the draws %s with a standard deviation of %.2g",
                  tsr_verdict_interval(&m->draws, text), m->draws.sd);
    tsr_words_add(
        w,
        fabs(off) <= 1.0 ? "; they agree (%.1f standard deviations off)."
        : fabs(off) <= 2.0
            ? "; the measured value is at the edge of the draws (%.1f standard "
              "deviations off)."
            : "; they do not agree (%.1f standard deviations off): other data "
              "or rigid parts of the model prevent agreement.",
        off);
}

/* One sentence for each measurement. */
static void write_measured(const tsr_verdict *v, tsr_words *w)
{
    enum { MOST = 12 };
    for (int k = 0; k < v->n_measured && k < MOST; k++) {
        const tsr_verdict_measured *m = &v->measured[k];
        if (k > 0)
            tsr_words_add(w, " ");
        if (m->type->is_map)
            write_map(m, w);
        else
            write_number(m, w);
    }
    if (v->n_measured > MOST)
        tsr_words_add(w, " And %d more (summary --json).",
                      v->n_measured - MOST);
}

static void write_moved(const tsr_verdict *v, tsr_words *w)
{
    char name[120], distance[64], turn[64];
    if (v->n_moved == 0 || v->atoms == NULL)
        return;
    const tsr_domain *domain = v->arrangements->domains->domain;
    tsr_domain_name(v->atoms, &domain[v->arrangements->fixed], sizeof name,
                    name);
    tsr_words_add(w, "Since the start of the run, relative to %s: ", name);
    for (int k = 0; k < v->n_moved; k++) {
        const tsr_verdict_moved *m = &v->moved[k];
        tsr_domain_name(v->atoms, &domain[m->domain], sizeof name, name);
        tsr_words_add(w,
                      "%s%s has turned by %s degrees, and its centre has moved "
                      "from %.1f to %s Angstrom",
                      k > 0 ? "; " : "", name,
                      tsr_verdict_interval(&m->turn, turn), m->start,
                      tsr_verdict_interval(&m->distance, distance));
    }
    tsr_words_add(w, ".");
}

/* ---- JSON of measurements ---- */

static void put_measured(const tsr_verdict *v, tsr_json *j)
{
    tsr_json_array(j, "measured");
    for (int k = 0; k < v->n_measured; k++) {
        const tsr_verdict_measured *m = &v->measured[k];
        tsr_json_members(j, "{ kind %s name %s measured %g sd %g start %g",
                         m->type->name, m->name, m->value, m->sd, m->start);
        tsr_verdict_put_interval(j, "draws", &m->draws);
        tsr_json_members(j, "draws_sd %g draws_rhat %g", m->draws.sd,
                         m->draws.rhat);
        if (m->type->is_map)
            tsr_json_members(
                j, "limit %g start_unexplained %g draws_unexplained %g",
                m->limit, unexplained(m->start, m->limit),
                unexplained(m->draws.mean, m->limit));
        else
            tsr_json_number(j, "off", (m->draws.mean - m->value) / m->sd);
        tsr_json_close(j);
    }
    tsr_json_close(j);
    tsr_json_array(j, "since_start");
    for (int k = 0; k < v->n_moved; k++) {
        const tsr_verdict_moved *m = &v->moved[k];
        tsr_json_members(j, "{ domain %d distance_start %g", m->domain,
                         m->start);
        tsr_verdict_put_interval(j, "distance", &m->distance);
        tsr_verdict_put_interval(j, "turn_degrees", &m->turn);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

/* ---- the curves ---- */

/* Limits of tsr_verdict_fits: CorMap p, reduced chi2. */
static const double rare = 0.01, poor = 1.5;

int tsr_verdict_fits(double reduced_chi2, double cormap_p, double noise)
{
    const double level = fmax(1.0, noise); /* 1 where noise is NaN */
    return !(cormap_p < rare) && reduced_chi2 <= poor * level * level;
}

void tsr_verdict_free(tsr_verdict *verdict)
{
    if (verdict == NULL)
        return;
    tsr_pool pool = verdict->pool;
    tsr_arrangements_free(verdict->arrangements);
    tsr_loo_clear(&verdict->loo);
    tsr_advice_clear(&verdict->advice);
    tsr_model_atoms_free(verdict->atoms);
    tsr_pool_clear(&pool);
}

/* A curve of the run, and its measured points. */
typedef struct {
    trace_term term;
    const tsr_summary *summary;
    int n;
    double *q, *intensity, *sigma; /* [n] */
    double background;
} job;

static tsr_convergence curve_value(const job *j, const char *what)
{
    char name[64];
    tsr_term_variable(j->term.type, j->term.ordinal, what, sizeof name, name);
    return value_of(j->summary, name);
}

/* Reads the measured curve. Returns 0 where the trace lacks it. */
static int read_data(job *j)
{
    char name[64];
    int n_sigma = 0, n_q = 0;
    tsr_term_variable(j->term.type, j->term.ordinal, "intensity", sizeof name,
                      name);
    j->intensity =
        read_constant(&j->term, TSR_TRACE_OBSERVED_DATA, "intensity", &j->n);
    j->sigma =
        read_constant(&j->term, TSR_TRACE_CONSTANT_DATA, "sigma", &n_sigma);
    if (j->intensity != NULL)
        (void)tsr_trace_coordinates(j->term.run->trace, TSR_TRACE_OBSERVED_DATA,
                                    name, &n_q, &j->q, NULL);
    return j->intensity != NULL && j->sigma != NULL && j->q != NULL &&
           n_sigma == j->n && n_q == j->n;
}

enum {
    MOST_DRAWS = 500
}; /* largest number of drawn curves that are
      analysed */

/* Compares the mean curve of the draws with the data. */
static tsr_status compare_mean(const job *j, tsr_verdict_curve *c, tsr_err *err)
{
    tsr_thinned curve;
    double sum = 0.0;
    c->chi2 = c->cormap_p = (double)NAN;
    TSR_TRY(draws_of(&j->term, TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean",
                     MOST_DRAWS, 0, j->n, &curve, err));
    const int rows = curve.n_chain * curve.n_kept;
    for (int k = 0; k < j->n && rows > 0; k++) {
        double mean = 0.0;
        for (int i = 0; i < rows; i++)
            mean += curve.value[(size_t)i * (size_t)j->n + (size_t)k] / rows;
        curve.value[k] = j->intensity[k] - mean;
        sum += pow(curve.value[k] / j->sigma[k], 2.0);
    }
    if (rows > 0)
        c->chi2 = sum / j->n;
    if (rows > 0 && !c->noise.is_shared)
        c->cormap_p =
            tsr_cormap_p(j->n, tsr_cormap_longest_run(j->n, curve.value));
    free(curve.value);
    return TSR_OK;
}

/* Computes Guinier's Rg of the data, and of the draws over the same points. */
static tsr_status compare_guinier(const job *j, double rg_first,
                                  tsr_verdict_curve *c, tsr_err *err)
{
    tsr_thinned curve, background = {.value = NULL};
    c->guinier_draws = unknown;
    TSR_TRY(tsr_guinier_fit(j->n, j->q, j->intensity, j->sigma, j->background,
                            rg_first, &c->guinier, err));
    if (c->guinier.n == 0)
        return TSR_OK;
    const int first = c->guinier.first, width = c->guinier.last + 1 - first;
    tsr_status status =
        draws_of(&j->term, TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean",
                 MOST_DRAWS, first, width, &curve, err);
    TSR_THEN(status, draws_of(&j->term, TSR_TRACE_POSTERIOR, "background",
                              MOST_DRAWS, 0, 1, &background, err));
    double *rg =
        malloc(((size_t)curve.n_chain * (size_t)curve.n_kept + 1) * sizeof *rg);
    TSR_THEN(status, tsr_allocated(rg, err));
    const int rows = curve.n_chain * curve.n_kept;
    const int has_background = background.n_chain * background.n_kept == rows;
    int n = 0; /* finite values */
    for (int i = 0; i < rows && status == TSR_OK; i++) {
        double *one = curve.value + (size_t)i * (size_t)width;
        for (int k = 0; k < width; k++)
            one[k] -= has_background ? background.value[i] : j->background;
        rg[n] = tsr_guinier_rg(&c->guinier, j->q, j->intensity, j->sigma,
                               j->background, one);
        n += isfinite(rg[n]) != 0;
    }
    if (n > 0)
        status = tsr_convergence_make(0, 1, n, rg, &c->guinier_draws, err);
    free(rg);
    free(curve.value);
    free(background.value);
    return status;
}

/* Reads fit number k from `text`, the attribute rigid_fit, which the run wrote
 * at its start. */
static void read_rigid(const char *text, int k, tsr_profile_fit *fit)
{
    static const char *const key[] = {
        "n_point",    "n_parameter", "c1_at", "c2_at", "scale",
        "background", "c1",          "c2",    "chi2",  "cormap_p"};
    enum { N_KEY = sizeof key / sizeof *key };
    double v[N_KEY];
    *fit = (tsr_profile_fit){.n_point = 0};
    for (int i = 0; i < N_KEY; i++) {
        tsr_json_reader r = {text, text + strlen(text), 0, 0};
        char path[32];
        snprintf(path, sizeof path, "%d.%s", k, key[i]);
        if (!tsr_json_find(&r, path) || !tsr_json_read_number(&r, &v[i]))
            return;
    }
    *fit = (tsr_profile_fit){.n_point = (int)v[0],
                             .n_parameter = (int)v[1],
                             .c1_at = (int)v[2],
                             .c2_at = (int)v[3],
                             .scale = v[4],
                             .background = v[5],
                             .c1 = v[6],
                             .c2 = v[7],
                             .chi2 = v[8],
                             .cormap_p = v[9]};
    fit->reduced_chi2 =
        fit->n_point > fit->n_parameter
            ? fit->chi2 * fit->n_point / (fit->n_point - fit->n_parameter)
            : (double)NAN;
}

int tsr_verdict_conflict(const tsr_verdict_curve *a, const tsr_verdict_curve *b,
                         double *sigma)
{
    return !a->is_neutron && !b->is_neutron && !a->has_own_weights &&
           !b->has_own_weights &&
           tsr_guinier_conflict(&a->guinier, &b->guinier, sigma);
}

/* Adds the next curve of the run. *is_there 0: the run has no more. */
static tsr_status add_curve(tsr_verdict *v, job *j, const char *rigid,
                            int *is_there, tsr_err *err)
{
    const tsr_past_run *run = j->term.run;
    const tsr_term_options *data = run->config.data.item;
    const int k = v->n_curve;
    *is_there = read_data(j);
    if (!*is_there)
        return TSR_OK;
    tsr_verdict_curve *more =
        tsr_pool_resize(&v->pool, v->curve, (size_t)k + 1, sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    v->curve = more;
    tsr_verdict_curve *c = &v->curve[v->n_curve++];
    *c = (tsr_verdict_curve){.n = 0};
    snprintf(c->name, sizeof c->name, "data set %d", k + 1);
    const int entry = find_entry(&j->term, c->name);
    c->is_neutron =
        entry >= 0 && tsr_term_registry[data[entry].kind]->is_neutron;
    c->has_own_weights = entry >= 0 && tsr_saxs_has_own_weights(&data[entry]);
    if (rigid != NULL)
        read_rigid(rigid, k, &c->rigid);
    const double background = curve_value(j, "background").mean;
    j->background = isfinite(background) ? background : 0.0;
    c->draws = curve_value(j, "chi2");
    c->noise_scale = curve_value(j, "noise_scale");
    c->n = j->n;
    c->noise = tsr_saxs_noise_make(j->n, j->q, j->intensity, j->sigma);
    tsr_profile_fit_set_noise(&c->rigid, &c->noise);
    TSR_TRY(compare_mean(j, c, err));
    return compare_guinier(j, value_of(j->summary, "rg").mean, c, err);
}

/* Reads the weights in several samples, which are named by files where they
 * are no series. */
static tsr_status read_series(tsr_verdict *v, const tsr_past_run *run,
                              tsr_err *err)
{
    tsr_series *s = &v->series;
    TSR_TRY(tsr_series_make(run->trace, &v->pool, s, err));
    for (int i = 0; i < s->n && !s->is_series && run->has_config; i++) {
        const int entry = (int)s->at[i];
        char **file = entry < run->config.data.n
                          ? tsr_config_data_file(&run->config, entry)
                          : NULL;
        if (file != NULL && *file != NULL)
            s->label[i] = tsr_pool_text(&v->pool, tsr_text_file_name(*file));
    }
    const tsr_species_config *species = run->config.species.item;
    for (int k = 0; k < s->n_state && s->is_species && run->has_config; k++)
        if (k < run->config.species.n)
            s->name[k] = tsr_pool_text(&v->pool, species[k].name);
    return tsr_pool_check(&v->pool, err);
}

static tsr_status compare_curves(tsr_verdict *v, const tsr_past_run *run,
                                 const tsr_summary *summary, tsr_err *err)
{
    tsr_status status = TSR_OK;
    char *rigid = tsr_trace_attribute_text(run->trace, "rigid_fit");
    const tsr_term_type *const *curves = tsr_term_registry;
    while (!(*curves)->is_curve)
        curves++; /* any kind of curve stands for all kinds, which are numbered
                     together */
    for (int is_there = 1; is_there && status == TSR_OK;) {
        job j = {.term = {run, *curves, v->n_curve}, .summary = summary};
        status = add_curve(v, &j, rigid, &is_there, err);
        free(j.q);
        free(j.intensity);
        free(j.sigma);
    }
    free(rigid);
    return status;
}

/* ---- motion ---- */

/* Lists the distances between parts and of tails in the trace, which
 * sampler/record.c names pose_1_distance or, in an ensemble,
 * pose_1_distance_2. */
static void find_motions(tsr_verdict *v, const tsr_past_run *run,
                         const tsr_summary *summary)
{
    for (int i = 0; i < summary->n && v->n_motion < TSR_MOST_MOTIONS; i++) {
        const tsr_summary_item *item = &summary->item[i];
        const int is_tail = strncmp(item->name, "tail_", 5) == 0;
        const char *distance = strstr(item->name, "_distance");
        if ((!is_tail && strncmp(item->name, "pose_", 5) != 0) ||
            distance == NULL || !isfinite(item->value.mean))
            continue;
        char *doc = tsr_trace_variable_text(run->trace, TSR_TRACE_POSTERIOR,
                                            item->name, "long_name");
        char *end = doc != NULL ? strstr(doc, ": ") : NULL;
        tsr_verdict_motion *m = &v->motion[v->n_motion++];
        *m = (tsr_verdict_motion){.variable = item->name,
                                  .is_tail = is_tail,
                                  .distance = item->value};
        distance += strlen("_distance");
        m->state = *distance == '_' ? atoi(distance + 1) : 0;
        if (end != NULL)
            *end = '\0';
        snprintf(m->where, sizeof m->where, "%s",
                 end != NULL ? doc : item->name);
        free(doc);
    }
}

/* Computes arrangements and reads the model's atoms. The arrangements stay NULL
 * where conformations are not stored or not readable. */
static tsr_status find_arrangements(tsr_verdict *v, const tsr_past_run *run,
                                    int fixed, double threshold_ang,
                                    tsr_err *err)
{
    tsr_err why = {.status = TSR_OK};
    tsr_status status = tsr_past_run_arrangements(run, fixed, threshold_ang,
                                                  NULL, &v->arrangements, err);
    if (status != TSR_OK || v->arrangements == NULL)
        return status;
    const char *model =
        tsr_pool_format(&v->pool, "%s/model.pdb", run->directory);
    TSR_TRY(tsr_allocated(model, err));
    status = tsr_model_atoms_read(model, &v->atoms, &why);
    return status == TSR_E_NOMEM ? tsr_fail(err, status, "%s", why.message)
                                 : TSR_OK;
}

/* ---- undecided questions ---- */

static void add_undecided(tsr_verdict *v, tsr_verdict_undecided what)
{
    if (v->n_undecided < TSR_MOST_UNDECIDED)
        v->undecided[v->n_undecided++] = what;
}

/* Notes a variable that accumulates at an end of its prior: 5 % of the draws in
 * the outermost 1 % of the range, of the logarithm with is_log. */
static void check_bound(tsr_verdict *v, const tsr_summary *summary,
                        const char *name, const double range[2], int is_log)
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    const double edge = 0.01 * (range[1] - range[0]);
    const double ratio = pow(range[1] / range[0], 0.01);
    if (item == NULL || item->flaw == TSR_FLAW_NOT_FINITE ||
        !(item->value.sd > 0.0))
        return;
    const int is_low =
        item->value.q5 < (is_log ? range[0] * ratio : range[0] + edge);
    if (is_low ||
        item->value.q95 > (is_log ? range[1] / ratio : range[1] - edge))
        add_undecided(v, (tsr_verdict_undecided){.kind = TSR_UNDECIDED_BOUND,
                                                 .variable = name,
                                                 .value = range[!is_low],
                                                 .is_low = is_low});
}

/* Reads the dissociation constants. */
static void find_equilibrium(tsr_verdict *v, const tsr_past_run *run,
                             const tsr_summary *summary)
{
    const tsr_series *s = &v->series;
    const tsr_species_config *species = run->config.species.item;
    for (int k = 1; k < s->n_state && s->is_species && run->has_config; k++) {
        const char *name = s->n_state == 2 ? "kd"
                                           : tsr_pool_format(&v->pool, "kd_%s",
                                                             species[k].name);
        const double range[2] = {0.01 * s->at[0], 100.0 * s->at[s->n - 1]};
        if (name == NULL)
            return;
        v->kd[k] = value_of(summary, name);
        check_bound(v, summary, name, range, 1);
    }
}

/* Notes weights that are nearly as wide as their prior. A weight under a flat
 * prior on n weights with sum 1 has the variance (n - 1) / (n^2 (n + 1)). */
static void check_weights(tsr_verdict *v, const tsr_summary *summary)
{
    const double much = 0.7;
    const double n = v->n_state;
    const double prior_sd = sqrt((n - 1.0) / (n * n * (n + 1.0)));
    const int has_samples = v->series.n > 0 && !v->series.is_species;
    const int n_sample = has_samples ? v->series.n : 1;
    for (int i = 0; i < v->n_state * n_sample && v->n_state > 1; i++) {
        const int k = i / n_sample + 1;
        char name[40];
        if (has_samples)
            snprintf(name, sizeof name, "curve_weight_%d[%d]", k, i % n_sample);
        else
            snprintf(name, sizeof name, "weight_%d", k);
        const tsr_summary_item *item = tsr_summary_find(summary, name);
        if (item != NULL && item->value.sd > much * prior_sd)
            add_undecided(
                v, (tsr_verdict_undecided){.kind = TSR_UNDECIDED_WEIGHT,
                                           .variable = item->name,
                                           .value = item->value.sd / prior_sd});
    }
}

static void find_undecided(tsr_verdict *v, const tsr_past_run *run,
                           const tsr_summary *summary)
{
    if (run->has_config) {
        check_bound(v, summary, "c1", run->config.contrast.c1_range, 0);
        check_bound(v, summary, "c2", run->config.contrast.c2_range, 0);
    }
    find_equilibrium(v, run, summary);
    check_weights(v, summary);
    for (int i = 0; v->arrangements != NULL && i < v->arrangements->n; i++) {
        const tsr_arrangement *a = &v->arrangements->item[i];
        if (a->mirror_of >= 0 || a->alike >= 0)
            add_undecided(
                v,
                (tsr_verdict_undecided){
                    .kind = a->mirror_of >= 0 ? TSR_UNDECIDED_MIRROR
                                              : TSR_UNDECIDED_OUTLINE,
                    .value = a->discrepancy,
                    .item = {a->mirror_of >= 0 ? a->mirror_of : a->alike, i}});
    }
}

/* ---- the verdict ---- */

/* Number of states, from the variables rg_1, rg_2, ... */
static int count_states(const tsr_summary *summary)
{
    char name[32];
    int n = 0;
    do
        snprintf(name, sizeof name, "rg_%d", ++n);
    while (tsr_summary_find(summary, name) != NULL);
    return n > 1 ? n - 1 : 1;
}

/* Computes the leave-one-out density, which stays unknown where an error
 * occurs. */
static tsr_status compute_loo(tsr_verdict *v, const tsr_past_run *run,
                              tsr_err *err)
{
    tsr_err local = {.status = TSR_OK};
    const tsr_status status = tsr_loo_make(run->trace, &v->loo, &local);
    if (status == TSR_E_NOMEM)
        return tsr_fail(err, status, "%s", local.message);
    if (status != TSR_OK)
        tsr_loo_clear(&v->loo);
    return TSR_OK;
}

tsr_status tsr_verdict_make(const tsr_past_run *run, const tsr_summary *summary,
                            int fixed, double threshold_ang, tsr_verdict **out,
                            tsr_err *err)
{
    *out = NULL;
    tsr_pool pool = {0};
    tsr_verdict *v = tsr_pool_new(&pool, 1, sizeof *v);
    TSR_TRY(tsr_allocated(v, err));
    v->pool = pool;
    v->has_data = run->has_data;
    v->n_state = count_states(summary);
    v->rg = value_of(summary, "rg");
    v->d_max = value_of(summary, "d_max");
    v->evidence = summary->evidence;
    (void)tsr_summary_slowest(summary, &v->ess);
    v->directory = tsr_pool_text(&v->pool, run->directory);
    tsr_status status = tsr_pool_check(&v->pool, err);
    TSR_THEN(status, compare_curves(v, run, summary, err));
    TSR_THEN(status, read_series(v, run, err));
    find_motions(v, run, summary);
    TSR_THEN(status, compute_loo(v, run, err));
    TSR_THEN(status, find_arrangements(v, run, fixed, threshold_ang, err));
    v->is_docked = run->has_config && v->atoms != NULL &&
                   run->config.structure.contacts > 0;
    for (int k = 0; tsr_term_registry[k] != NULL; k++)
        if (!tsr_term_registry[k]->is_curve)
            TSR_THEN(status,
                     read_measurements(
                         v, (trace_term){run, tsr_term_registry[k], 0}, err));
    TSR_THEN(status, find_displacements(v, err));
    TSR_THEN(status, tsr_advice_make(run, summary, &v->advice, err));
    if (status == TSR_OK)
        find_undecided(v, run, summary);
    TSR_HAND_OVER(status, v, out, tsr_verdict_free);
}

tsr_status tsr_verdict_of_run(const tsr_past_run *run, tsr_summary **summary,
                              tsr_verdict **verdict, tsr_err *err)
{
    TSR_TRY(tsr_summary_make(run->trace, summary, err));
    TSR_TRY(tsr_summary_add_evidence(*summary, run->trace, err));
    return tsr_verdict_make(run, *summary, -1, tsr_arrangements_threshold,
                            verdict, err);
}

/* ---- sentences ----
 *
 * Readers know proteins and scattering, but not sampling: every sentence must
 * be clear without log or manual, and every number in it is in the JSON object
 * too. */

/* Number of decimals that show the first digit of the standard deviation. */
static int decimals(double sd)
{
    if (!(sd > 0.0) || !isfinite(sd))
        return 1;
    const int n = -(int)floor(log10(sd));
    return n < 0 ? 0 : n > 3 ? 3 : n;
}

const char *tsr_verdict_interval(const tsr_convergence *value, char text[64])
{
    const int n = decimals(value->sd);
    snprintf(text, 64, "%.*f [%.*f, %.*f]", n, value->mean, n, value->q5, n,
             value->q95);
    return text;
}

/* ---- sentences, one function each ----
 *
 * A function may write nothing. A newline in the text starts a new
 * paragraph. */

static void write_state_of_run(const tsr_verdict *v, tsr_words *w)
{
    if (!v->has_data)
        tsr_words_add(w, "This run used no data: the following results "
                         "describe the prior. ");
    if (v->advice.is_converged)
        return;
    if (v->advice.worst[0] != '\0')
        tsr_words_add(w, "Not converged yet (%s)", v->advice.worst);
    else
        tsr_words_add(w, "Too few draws to decide whether the run has "
                         "converged");
    tsr_words_add(w, ": the following results may still change.");
}

const char *tsr_verdict_fit_clause(double reduced_chi2, double cormap_p,
                                   double noise)
{
    static const char *const text[2][3] = {
        {"residuals are no larger than the noise",
         "residuals change their sign as often as random noise and are no "
         "larger than the noise",
         "residuals keep their sign for longer than random noise"},
        {"residuals are larger than the noise",
         "residuals are larger than the noise",
         "residuals are larger than the noise, and keep their sign for longer "
         "than random noise"}};
    return text[!tsr_verdict_fits(reduced_chi2, 1.0, noise)]
               [isnan(cormap_p) ? 0 : 2 - tsr_verdict_fits(0.0, cormap_p, 1.0)];
}

/* The mean curve of the draws; chi2 of the rigid start by the same bodies, for
 * comparison (the commands profile and solve answer, with all atoms, whether
 * the rigid model fits); the size of the residuals, and how much of this size
 * is noise. */
static void write_fit(const tsr_verdict *v, tsr_words *w)
{
    for (int k = 0; k < v->n_curve; k++) {
        const tsr_verdict_curve *c = &v->curve[k];
        const tsr_convergence *s = &c->noise_scale;
        const double level = c->noise.level;
        const int has_scale = isfinite(s->mean);
        char text[64];
        tsr_words_add(w, k > 0 ? "\n" : "");
        if (isfinite(c->chi2))
            tsr_words_add(
                w,
                "The sampled structures %s %s: their mean curve has chi2 "
                "%.3g%s (%s).",
                tsr_verdict_fits(c->chi2, c->cormap_p, level) ? "fit"
                                                              : "do not fit",
                c->name, c->chi2,
                tsr_cormap_text(", CorMap p ", c->cormap_p, text),
                tsr_verdict_fit_clause(c->chi2, c->cormap_p, level));
        if (c->rigid.n_point > 0 && isfinite(c->chi2))
            tsr_words_add(w,
                          " With the same bodies, the starting structure kept "
                          "rigid has chi2 %.3g (for all atoms see tessera "
                          "profile).",
                          c->rigid.chi2);
        if (has_scale)
            tsr_words_add(w, " The residuals are %s times the stated errors%s.",
                          tsr_verdict_interval(s, text),
                          isnan(c->noise.next)
                              ? "; here neighbouring points do not "
                                "separate noise from misfit"
                              : "");
        (void)tsr_saxs_noise_describe(&c->noise,
                                      has_scale ? s->mean : sqrt(c->chi2), w);
    }
}

/* Root mean square displacement of each domain about its mean position, in
 * state s. */
static void write_spread(const tsr_verdict *v, int s, tsr_words *w)
{
    const tsr_arrangements *a = v->arrangements;
    const tsr_domains *d = a->domains;
    char name[120];
    tsr_domain_name(v->atoms, &d->domain[a->fixed], sizeof name, name);
    tsr_words_add(w, " When draws are superposed on %s", name);
    if (a->n_state > 1)
        tsr_words_add(w, " of state %d", s + 1);
    for (int k = 0; k < d->n_domain; k++) {
        if (k == a->fixed)
            continue;
        tsr_domain_name(v->atoms, &d->domain[k], sizeof name, name);
        const double by = a->displacement[s * d->n_domain + k];
        tsr_words_add(w, ", %s moves by %.*f Angstrom", name,
                      by < 1.0    ? 2
                      : by < 10.0 ? 1
                                  : 0,
                      by);
    }
    tsr_words_add(w, " about its mean position (root mean square).");
}

static void write_motion(const tsr_verdict *v, tsr_words *w)
{
    enum { MOST = 8 };
    char text[64];
    for (int i = 0; i < v->n_motion && i < MOST; i++) {
        const tsr_verdict_motion *m = &v->motion[i];
        tsr_words_add(w, "%s%s", i == 0 ? "Motion: " : "; ", m->where);
        if (m->state > 0)
            tsr_words_add(w, " of state %d", m->state);
        tsr_words_add(w,
                      m->is_tail ? ", end-to-end distance %s Angstrom"
                                 : ", centres %s Angstrom apart",
                      tsr_verdict_interval(&m->distance, text));
    }
    if (v->n_motion > MOST)
        tsr_words_add(w, "; and %d more (summary --json)", v->n_motion - MOST);
    if (v->n_motion > 0)
        tsr_words_add(
            w, " (mean, and in brackets the 90 %% interval of the draws).");
    for (int s = 0; v->arrangements != NULL && v->atoms != NULL &&
                    s < v->arrangements->n_state;
         s++)
        write_spread(v, s, w);
}

static void write_guinier(const tsr_verdict_curve *c, int is_one, tsr_words *w)
{
    const double sure = 3.0;
    const tsr_guinier *g = &c->guinier;
    const tsr_convergence *m = &c->guinier_draws;
    char text[64];
    if (g->n == 0 || !isfinite(m->mean))
        return;
    tsr_words_add(w,
                  "%sGuinier's Rg of %s, computed with the hydration layer, is "
                  "%s Angstrom",
                  is_one ? " " : "\n", is_one ? "the curve" : c->name,
                  tsr_verdict_interval(m, text));
    tsr_words_add(w,
                  "; the measured curve has %.*f +- %.*f over the same points "
                  "(q %.3f to %.3f).",
                  decimals(g->error), g->rg, decimals(g->error), g->error,
                  g->q[0], g->q[1]);
    if (fabs(m->mean - g->rg) > sure * hypot(g->error, m->sd))
        tsr_words_add(w,
                      " The two differ by more than their errors: the molecule "
                      "may be more flexible than the model, parts may be "
                      "missing from the model, the sample may contain another "
                      "oligomer or aggregates, or the buffer may not match.");
}

/* Pairs of curves that cannot come from one structure. */
static void write_conflicts(const tsr_verdict *v, tsr_words *w)
{
    for (int b = 0; b < v->n_curve; b++)
        for (int a = 0; a < b; a++) {
            const tsr_verdict_curve *x = &v->curve[a], *y = &v->curve[b];
            double sigma;
            if (tsr_verdict_conflict(x, y, &sigma))
                tsr_words_add(
                    w,
                    "\n%s and %s cannot come from one structure: Guinier's Rg "
                    "is %.1f +- %.1f and %.1f +- %.1f Angstrom.",
                    x->name, y->name, x->guinier.rg, x->guinier.error,
                    y->guinier.rg, y->guinier.error);
        }
}

/* Dissociation constants, with the concentrations of the samples. */
static void write_species(const tsr_verdict *v, tsr_words *w)
{
    const tsr_series *s = &v->series;
    const char *unit = s->unit != NULL ? s->unit : "in the unit of at";
    for (int k = 1; k < s->n_state && s->is_species; k++) {
        const tsr_convergence *kd = &v->kd[k];
        if (!(kd->median > 0.0))
            continue;
        tsr_words_add(w,
                      "%sThe dissociation constant of %s into %s is %.3g "
                      "[%.3g, %.3g] %s (median and 90 %% interval)",
                      k > 1 ? " " : "", s->name[k], s->name[0], kd->median,
                      kd->q5, kd->q95, unit);
        if (s->n > 1)
            tsr_words_add(w, ", from samples at %s to %s", s->label[0],
                          s->label[s->n - 1]);
        tsr_words_add(w, ".");
    }
}

static void write_size(const tsr_verdict *v, tsr_words *w)
{
    char rg[64], d_max[64];
    if (!isfinite(v->rg.mean))
        return;
    tsr_words_add(w, "Size: Rg (of the mass%s) %s Angstrom",
                  v->series.is_species ? ", all chains together" : "",
                  tsr_verdict_interval(&v->rg, rg));
    if (isfinite(v->d_max.mean))
        tsr_words_add(w, ", D_max %s Angstrom",
                      tsr_verdict_interval(&v->d_max, d_max));
    tsr_words_add(w, ".");
    for (int k = 0; k < v->n_curve; k++)
        write_guinier(&v->curve[k], v->n_curve == 1, w);
    write_conflicts(v, w);
}

enum { INTERFACE_SIZE = 1024 };

/* The placements of docked chains: a sentence for each arrangement. */
static void write_interface(const tsr_verdict *v, const tsr_arrangement *item,
                            int number, tsr_words *w)
{
    char name[INTERFACE_SIZE];
    tsr_domain_name(v->atoms, &item->contact, sizeof name, name);
    tsr_words_add(w, "\n%d: %.0f", number, 100.0 * item->share);
    if (isfinite(item->error))
        tsr_words_add(w, " +- %.0f", 100.0 * item->error);
    tsr_words_add(
        w,
        " %%, chi2 %.3g, Rg %.1f, spread %.0f, %.0f Angstrom from the "
        "start; interface %s",
        item->chi2, item->rg, item->spread, item->from_start,
        name[0] != '\0' ? name : "varies");
}

/* The main arrangements of one state: shares and chi2. */
static void write_state(const tsr_verdict *v, int s, tsr_words *w)
{
    const tsr_arrangements *a = v->arrangements;
    const int state = a->n_state > 1 ? s + 1 : 0;
    const int n_main = a->n_main[s];
    const int most_shown = v->is_docked ? TSR_MOST_ARRANGEMENTS : 4;
    int n = 0;
    if (s > 0)
        tsr_words_add(w, " ");
    if (state > 0)
        tsr_words_add(w, "State %d: ", state);
    if (a->n_group[s] == 1)
        tsr_words_add(w,
                      "The domains have one arrangement: any two draws differ "
                      "by less than %.0f Angstrom on average.",
                      a->threshold_ang);
    else
        tsr_words_add(
            w,
            "%d arrangements of the domains fit the data, at least %.0f "
            "Angstrom apart on average; %d contain%s 90 %% of the draws.",
            a->n_group[s], a->threshold_ang, n_main, n_main == 1 ? "s" : "");
    if (a->n_group[s] == 1 && !v->is_docked)
        return;
    for (int i = 0; i < a->n && n < most_shown && n < n_main; i++) {
        if (state > 0 && a->item[i].state != state)
            continue;
        if (v->is_docked) {
            write_interface(v, &a->item[i], ++n, w);
            continue;
        }
        tsr_words_add(w, "%s %.0f %%", n++ == 0 ? " The largest:" : ",",
                      100.0 * a->item[i].share);
        if (isfinite(a->item[i].chi2))
            tsr_words_add(w, " (chi2 %.3g)", a->item[i].chi2);
    }
    tsr_words_add(w, "%s.", n_main > n ? ", and smaller ones" : "");
}

static void write_arrangements(const tsr_verdict *v, tsr_words *w)
{
    for (int s = 0; v->arrangements != NULL && s < v->arrangements->n_state;
         s++)
        write_state(v, s, w);
}

/* Pairs of arrangements that a curve cannot distinguish, with the shares of the
 * first pairs. */
static void write_pairs(const tsr_verdict *v, tsr_undecided_kind kind, int n,
                        tsr_words *w)
{
    enum { MOST = 3 };
    int n_printed = 0;
    tsr_words_add(w, "which arrangement is right among those that %s (",
                  kind == TSR_UNDECIDED_MIRROR
                      ? "are mirror images, which no curve distinguishes"
                      : "have the same outline");
    for (int i = 0; i < v->n_undecided && n_printed < MOST; i++) {
        const tsr_verdict_undecided *o = &v->undecided[i];
        if (o->kind != kind)
            continue;
        const tsr_arrangement *a = &v->arrangements->item[o->item[0]];
        const tsr_arrangement *b = &v->arrangements->item[o->item[1]];
        tsr_words_add(w, "%s%.0f %% and %.0f %%", n_printed++ > 0 ? "; " : "",
                      100.0 * a->share, 100.0 * b->share);
        if (a->state > 0)
            tsr_words_add(w, " of state %d", a->state);
    }
    tsr_words_add(w, "%s)", n > n_printed ? "; and others" : "");
}

static void write_bound(const tsr_verdict_undecided *o, tsr_words *w)
{
    tsr_words_add(w, "%s, which accumulates at the %s end of its prior, %g",
                  o->variable, o->is_low ? "lower" : "upper", o->value);
    if (strncmp(o->variable, "kd", 2) == 0)
        tsr_words_add(w, " (%s limit; other concentrations may show kd)",
                      o->is_low ? "an upper" : "a lower");
    else
        tsr_words_add(w,
                      " (because of a missing part, another oligomer, more "
                      "flexibility or a wrong buffer; contrast.%s_range widens "
                      "the prior)",
                      o->variable);
}

static void write_undecided(const tsr_verdict *v, tsr_words *w)
{
    int n_pair[TSR_UNDECIDED_OUTLINE + 1] = {0}, n = 0;
    for (int i = 0; i < v->n_undecided; i++) {
        const tsr_verdict_undecided *o = &v->undecided[i];
        n_pair[o->kind]++;
        if (o->kind >= TSR_UNDECIDED_MIRROR)
            continue; /* described together below */
        tsr_words_add(w, n++ == 0 ? "The data do not determine " : "; ");
        if (o->kind == TSR_UNDECIDED_BOUND)
            write_bound(o, w);
        else
            tsr_words_add(w, "%s (its spread is %.0f %% of that of the prior)",
                          o->variable, 100.0 * o->value);
    }
    for (tsr_undecided_kind kind = TSR_UNDECIDED_MIRROR;
         kind <= TSR_UNDECIDED_OUTLINE; kind++) {
        if (n_pair[kind] == 0)
            continue;
        tsr_words_add(w, n++ == 0 ? "The data do not determine " : "; ");
        write_pairs(v, kind, n_pair[kind], w);
    }
    if (n > 0)
        tsr_words_add(w, ".");
}

static void write_models(const tsr_verdict *v, tsr_words *w)
{
    char text[TSR_EVIDENCE_TEXT];
    const int has_evidence =
        v->evidence.n_temp > 1 && isfinite(v->evidence.log);
    const int has_loo = isfinite(v->loo.elpd);
    if (!has_evidence && !has_loo)
        return;
    tsr_words_add(w, "For comparison with other runs of the same data:");
    if (has_evidence)
        tsr_words_add(w, " log evidence %s%s",
                      tsr_evidence_format(&v->evidence, text),
                      has_loo ? "," : "");
    if (has_loo)
        tsr_words_add(w,
                      " expected log predictive density %.1f +- %.1f nat "
                      "(PSIS-LOO)",
                      v->loo.elpd, v->loo.error);
    tsr_words_add(w, ".");
    if (v->loo.n_bad > 0)
        tsr_words_add(w,
                      " The expected log predictive density relies on few "
                      "draws at %d point%s (Pareto k above 0.7).",
                      v->loo.n_bad, v->loo.n_bad == 1 ? "" : "s");
}

static void write_convergence(const tsr_verdict *v, tsr_words *w)
{
    if (v->advice.is_converged)
        tsr_words_add(w, "The run has converged (%s).", v->advice.asked);
}

static void (*const paragraph[])(const tsr_verdict *, tsr_words *) = {
    write_state_of_run, write_fit,    write_measured,   write_species,
    write_motion,       write_moved,  write_size,       write_arrangements,
    write_undecided,    write_models, write_convergence};
enum { N_PARAGRAPH = sizeof paragraph / sizeof *paragraph };

void tsr_verdict_write(const tsr_verdict *verdict, tsr_words *words)
{
    tsr_words_begin(words);
    for (int i = 0; i < N_PARAGRAPH; i++) {
        paragraph[i](verdict, words);
        tsr_words_add(words, "\n");
    }
}

void tsr_verdict_print_series(const tsr_verdict *verdict, FILE *out, int indent)
{
    const tsr_series *s = &verdict->series;
    if (s->n == 0)
        return;
    fprintf(out, "\n%*s%s, as quantiles of the draws:\n", indent, "",
            s->is_species ? "Mass fraction of each species"
                          : "Population of each state");
    fprintf(out, "%*s  %-24.24s  %s", indent, "",
            !s->is_series     ? "curve"
            : s->unit == NULL ? "at"
                              : s->unit,
            s->is_species ? "species     " : "state");
    for (int q = 0; q < TSR_SERIES_QUANTILES; q++)
        fprintf(out, "  %4.1f %%", 100.0 * tsr_series_probability[q]);
    fputc('\n', out);
    for (int i = 0; i < s->n * s->n_state; i++) {
        const int sample = i / s->n_state, state = i % s->n_state;
        fprintf(out, "%*s  %-24.24s", indent, "",
                state == 0 ? s->label[sample] : "");
        if (s->is_species)
            fprintf(out, "  %-12.12s", s->name[state]);
        else
            fprintf(out, "  %5d", state + 1);
        for (int q = 0; q < TSR_SERIES_QUANTILES; q++)
            fprintf(out, "  %6.3f", s->quantile[state * s->n + sample][q]);
        fputc('\n', out);
    }
}

tsr_status tsr_verdict_print(const tsr_verdict *verdict, FILE *out,
                             tsr_err *err)
{
    tsr_words words;
    tsr_verdict_write(verdict, &words);
    TSR_TRY(tsr_words_print(&words, out, 0, "", err));
    tsr_verdict_print_series(verdict, out, 0);
    char *advice = tsr_advice_text(&verdict->advice);
    if (advice != NULL && !verdict->advice.is_converged)
        fprintf(out, "To continue:\n    %s\n", advice);
    free(advice);
    return TSR_OK;
}

/* ---- JSON of the verdict ---- */

void tsr_verdict_put_interval(tsr_json *json, const char *name,
                              const tsr_convergence *value)
{
    tsr_json_object(json, name);
    tsr_json_members(json, "mean %g q5 %g q95 %g }", value->mean, value->q5,
                     value->q95);
}

void tsr_verdict_put_fit(tsr_json *json, const tsr_profile_fit *fit)
{
    tsr_json_members(json,
                     "chi2 %g reduced_chi2 %g cormap_p %g c1 %g c2 %g scale %g "
                     "background %g",
                     fit->chi2, fit->reduced_chi2, fit->cormap_p, fit->c1,
                     fit->c2, fit->scale, fit->background);
}

static void put_curve(tsr_json *j, const tsr_verdict_curve *c)
{
    tsr_json_members(j, "{ curve %s n_points %d", c->name, c->n);
    if (c->rigid.n_point > 0) {
        tsr_json_object(j, "rigid");
        tsr_verdict_put_fit(j, &c->rigid);
        tsr_json_close(j);
    } else
        tsr_json_text(j, "rigid", NULL);
    tsr_json_members(j, "fits %i chi2 %g cormap_p %g",
                     tsr_verdict_fits(c->chi2, c->cormap_p, c->noise.level),
                     c->chi2, c->cormap_p);
    tsr_verdict_put_interval(j, "chi2_of_draws", &c->draws);
    tsr_verdict_put_interval(j, "noise_scale", &c->noise_scale);
    tsr_json_members(j,
                     "noise_by_neighbours %g neighbours_share_noise %i "
                     "rg_guinier_data %g rg_guinier_data_error %g "
                     "guinier_q_range[ %g %g ]",
                     c->noise.next, c->noise.is_shared, c->guinier.rg,
                     c->guinier.error, c->guinier.q[0], c->guinier.q[1]);
    tsr_verdict_put_interval(j, "rg_guinier", &c->guinier_draws);
    tsr_json_close(j);
}

/* Pairs of curves that cannot come from one structure. */
static void put_conflicts(tsr_json *j, const tsr_verdict *v)
{
    tsr_json_array(j, "conflicts");
    for (int b = 0; b < v->n_curve; b++)
        for (int a = 0; a < b; a++) {
            double sigma;
            if (tsr_verdict_conflict(&v->curve[a], &v->curve[b], &sigma))
                tsr_json_members(j,
                                 "{ curves[ %d %d ] standard_deviations %g }",
                                 a, b, sigma);
        }
    tsr_json_close(j);
}

static void put_series(tsr_json *j, const tsr_series *s)
{
    tsr_json_array(j, "series");
    for (int i = 0; i < s->n * s->n_state; i++) {
        const double *q = s->quantile[i];
        tsr_json_members(j,
                         "{ state %d name %s curve %s at %g unit %s median %g "
                         "interval_68[ %g %g ] interval_95[ %g %g ] }",
                         i / s->n + 1, s->name[i / s->n], s->label[i % s->n],
                         s->at[i % s->n], s->unit, q[2], q[1], q[3], q[0],
                         q[4]);
    }
    tsr_json_close(j);
}

static void put_motion(tsr_json *j, const tsr_verdict *v)
{
    tsr_json_array(j, "motion");
    for (int i = 0; i < v->n_motion; i++) {
        const tsr_verdict_motion *m = &v->motion[i];
        tsr_json_members(j, "{ variable %s where %s", m->variable, m->where);
        if (m->state > 0)
            tsr_json_integer(j, "state", m->state);
        tsr_verdict_put_interval(j, "distance", &m->distance);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static void put_domains(tsr_json *j, const tsr_verdict *v)
{
    const tsr_arrangements *a = v->arrangements;
    tsr_json_array(j, "domains");
    for (int k = 0; k < a->domains->n_domain; k++) {
        char name[120] = "";
        if (v->atoms != NULL)
            tsr_domain_name(v->atoms, &a->domains->domain[k], sizeof name,
                            name);
        tsr_json_members(j, "{ residues %s superposed_on %i rms_displacement[",
                         name, k == a->fixed);
        for (int s = 0; s < a->n_state; s++) /* for each state */
            tsr_json_number(j, NULL,
                            a->displacement[s * a->domains->n_domain + k]);
        tsr_json_members(j, "] }");
    }
    tsr_json_close(j);
}

static void put_arrangement(tsr_json *j, const tsr_verdict *v,
                            const tsr_arrangement *item)
{
    char name[INTERFACE_SIZE];
    tsr_json_object(j, NULL);
    if (item->state > 0)
        tsr_json_integer(j, "state", item->state);
    tsr_json_members(j, "share %g spread %g chi2 %g chain %d draw %ld",
                     item->share, item->spread, item->chi2, item->chain,
                     item->draw);
    tsr_json_members(j, "error %g rg %g from_start %g", item->error, item->rg,
                     item->from_start);
    if (item->contact.n_residue > 0 && v->atoms != NULL) {
        tsr_domain_name(v->atoms, &item->contact, sizeof name, name);
        tsr_json_text(j, "interface", name);
    }
    if (item->mirror_of >= 0)
        tsr_json_integer(j, "mirror_of", item->mirror_of);
    if (item->alike >= 0)
        tsr_json_integer(j, "alike", item->alike);
    if (isfinite(item->discrepancy))
        tsr_json_number(j, "discrepancy", item->discrepancy);
    tsr_json_close(j);
}

static void put_arrangements(tsr_json *j, const tsr_verdict *v)
{
    const tsr_arrangements *a = v->arrangements;
    if (a == NULL) {
        tsr_json_text(j, "arrangements", NULL);
        return;
    }
    tsr_json_members(j, "arrangements{ threshold %g conformations %d",
                     a->threshold_ang, a->n_frame);
    put_domains(j, v);
    tsr_json_array(j, "states");
    for (int s = 0; s < a->n_state; s++)
        tsr_json_members(j, "{ groups %d hold_90_percent %d }", a->n_group[s],
                         a->n_main[s]);
    tsr_json_members(j, "] largest[");
    for (int i = 0; i < a->n; i++)
        put_arrangement(j, v, &a->item[i]);
    tsr_json_members(j, "] }");
}

static void put_undecided(tsr_json *j, const tsr_verdict *v)
{
    static const char *const kind[] = {[TSR_UNDECIDED_BOUND] = "bound",
                                       [TSR_UNDECIDED_WEIGHT] = "weight",
                                       [TSR_UNDECIDED_MIRROR] = "mirror images",
                                       [TSR_UNDECIDED_OUTLINE] =
                                           "same outline"};
    tsr_json_array(j, "undecided");
    for (int i = 0; i < v->n_undecided; i++) {
        const tsr_verdict_undecided *o = &v->undecided[i];
        tsr_json_members(j, "{ kind %s variable %s value %g", kind[o->kind],
                         o->variable, o->value);
        if (o->kind == TSR_UNDECIDED_BOUND)
            tsr_json_text(j, "end", o->is_low ? "lower" : "upper");
        if (o->kind >= TSR_UNDECIDED_MIRROR)
            tsr_json_members(j, "arrangements[ %d %d ]", o->item[0],
                             o->item[1]);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

tsr_status tsr_verdict_put(const tsr_verdict *verdict, const char *name,
                           tsr_json *json, tsr_err *err)
{
    const tsr_verdict *v = verdict;
    tsr_words words;
    tsr_verdict_write(v, &words);
    tsr_json_object(json, name);
    TSR_TRY(tsr_json_lines(json, "sentences", &words, err));
    tsr_json_integer(json, "states", v->n_state);
    tsr_json_array(json, "curves");
    for (int k = 0; k < v->n_curve; k++)
        put_curve(json, &v->curve[k]);
    tsr_json_close(json);
    put_conflicts(json, v);
    put_series(json, &v->series);
    put_measured(v, json);
    tsr_verdict_put_interval(json, "rg", &v->rg);
    tsr_verdict_put_interval(json, "d_max", &v->d_max);
    put_motion(json, v);
    put_arrangements(json, v);
    tsr_evidence_put(&v->evidence, "evidence", json);
    tsr_loo_put(&v->loo, "loo", json);
    put_undecided(json, v);
    tsr_advice_put(&v->advice, json);
    tsr_json_close(json);
    return TSR_OK;
}
