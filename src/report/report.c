/* Writes the report section by section, in the order in which a reader asks.
 * The first screen has the answer, the fit of the curve and the molecule. Below
 * follow the numbers with their uncertainties, the parts that move, and the
 * convergence of the chains. */
#include "report/report.h"

#include "core/json.h"
#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the box ----
 *
 * The table at the head of the page: fit, size, number of states, populations.
 * Convergence, links to files and the verdict in sentences follow below.
 * Results of all runs of a solve come from verdict.json in the folder above the
 * run. */

const char *tsr_report_interval(const tsr_convergence *value, char text[64])
{
    if (isfinite(value->q5))
        return tsr_verdict_interval(value, text);
    snprintf(text, 64, isfinite(value->mean) ? "%.1f" : "\xe2\x80\x93",
             value->mean);
    return text;
}

/* ---- the verdict of solve ---- */

/* Finds the member `key` of entry k of a list. Returns 0 where it is missing.
 */
static int find_member(const char *json, const char *list, int k,
                       const char *key, tsr_json_reader *r)
{
    char path[64];
    if (json == NULL)
        return 0;
    *r = (tsr_json_reader){json, json + strlen(json), 0, 0};
    snprintf(path, sizeof path, "%s.%d%s%s", list, k, *key ? "." : "", key);
    return tsr_json_find(r, path);
}

static double read_number(const char *json, const char *list, int k,
                          const char *key)
{
    tsr_json_reader r;
    double value;
    return find_member(json, list, k, key, &r) &&
                   tsr_json_read_number(&r, &value)
               ? value
               : (double)NAN;
}

/* Returns 0 where the text is missing. */
static int read_text(const char *json, const char *list, int k, const char *key,
                     size_t size, char *text)
{
    tsr_json_reader r;
    return find_member(json, list, k, key, &r) &&
           tsr_json_read_text(&r, size, text);
}

char *tsr_report_solve_verdict(const char *directory)
{
    char *path = directory != NULL
                     ? tsr_text_format("%s/../verdict.json", directory)
                     : NULL;
    char *json = NULL, run[512];
    size_t size;
    int is_listed = 0;
    if (path != NULL && tsr_file_read(path, &json, &size, NULL) != TSR_OK)
        json = NULL;
    for (int k = 0;
         !is_listed && read_text(json, "runs", k, "directory", sizeof run, run);
         k++) {
        char *here =
            tsr_text_format("%s/../%s", directory, tsr_text_file_name(run));
        is_listed = here != NULL && tsr_file_is_same(here, directory);
        free(here);
    }
    free(path);
    if (is_listed)
        return json;
    free(json);
    return NULL;
}

/* ---- rows of the box ---- */

static void begin_row(const tsr_report *r, const char *question)
{
    fprintf(tsr_page_html(r->page), "<tr><th>%s</th><td>", question);
}

static void write_fit(const tsr_report *r, const char *question, int fits,
                      const char *curve, const char *name, double chi2,
                      double p)
{
    FILE *out = tsr_page_html(r->page);
    char cormap[48];
    begin_row(r, question);
    fprintf(out, "<b class=\"%s\">%s</b> ", fits ? "yes" : "no",
            fits ? "yes" : "no");
    tsr_page_text(r->page, tsr_text_file_name(curve));
    fprintf(out, ": %s %.3g%s</td></tr>\n", name, chi2,
            tsr_cormap_text(", CorMap p ", p, cormap));
}

/* Fits of the rigid starting structure (all atoms, computed by solve) and of
 * the draws. */
static void write_fits(const tsr_report *r)
{
    const tsr_verdict *v = r->options->verdict;
    const char *json = r->options->solved;
    char curve[512];
    for (int k = 0; read_text(json, "rigid", k, "curve", sizeof curve, curve);
         k++) {
        tsr_json_reader truth;
        (void)find_member(json, "rigid", k, "fits", &truth);
        write_fit(r, k == 0 ? "Rigid model fits?" : "",
                  tsr_json_peek(&truth) == 't', curve, "reduced &chi;&sup2;",
                  read_number(json, "rigid", k, "reduced_chi2"),
                  read_number(json, "rigid", k, "cormap_p"));
    }
    for (int k = 0; v != NULL && k < v->n_curve; k++) {
        const tsr_verdict_curve *c = &v->curve[k];
        if (isfinite(c->chi2))
            write_fit(r, k == 0 ? "Flexible model fits?" : "",
                      tsr_verdict_fits(c->chi2, c->cormap_p, c->noise.level),
                      c->name, "&chi;&sup2;/N", c->chi2, c->cormap_p);
    }
}

/* Distances, and correlations with maps: the draws, and the measured value. */
static void write_measured(const tsr_report *r)
{
    const tsr_verdict *v = r->options->verdict;
    enum { MOST = 6 };
    char text[64];
    for (int k = 0; v != NULL && k < v->n_measured && k < MOST; k++) {
        const tsr_verdict_measured *m = &v->measured[k];
        begin_row(r, k == 0 || m->type != m[-1].type ? m->type->title : "");
        tsr_page_text(r->page, m->name);
        fprintf(tsr_page_html(r->page), ": <b>%s</b>",
                tsr_report_interval(&m->draws, text));
        if (!m->type->is_map)
            fprintf(tsr_page_html(r->page), ", measured %.4g &plusmn; %.2g",
                    m->value, m->sd);
        fputs("</td></tr>\n", tsr_page_html(r->page));
    }
}

static void write_size(const tsr_report *r, const char *question,
                       const tsr_convergence *value)
{
    char text[64];
    if (!isfinite(value->mean))
        return;
    begin_row(r, question);
    fprintf(tsr_page_html(r->page), "<b>%s&nbsp;&Aring;</b>%s</td></tr>\n",
            tsr_report_interval(value, text),
            isfinite(value->q5) ? " 90&nbsp;% interval" : "");
}

/* Each number of states that solve tried, with its log evidence, the gain over
 * one state less, and its probability. Without a solve: the number of states of
 * this run. */
static void write_states(const tsr_report *r)
{
    const char *json = r->options->solved;
    const tsr_verdict *v = r->options->verdict;
    FILE *out = tsr_page_html(r->page);
    char text[TSR_EVIDENCE_TEXT];
    int n = 0;
    for (; isfinite(read_number(json, "runs", n, "states")); n++) {
        const double gain = read_number(json, "runs", n, "gain");
        const double probability = read_number(json, "runs", n, "probability");
        const int states = (int)read_number(json, "runs", n, "states");
        begin_row(r, n == 0 ? "States" : "");
        fprintf(out, "<b>%d%s:</b> log evidence %.1f &plusmn; %.1f", states,
                v != NULL && states == v->n_state ? " (shown)" : "",
                read_number(json, "runs", n, "evidence.log"),
                read_number(json, "runs", n, "evidence.error"));
        if (isfinite(gain))
            fprintf(out, ", %+.1f &plusmn; %.1f against %d", gain,
                    read_number(json, "runs", n, "gain_error"), states - 1);
        if (isfinite(probability))
            fprintf(out, "; probability %.2g", probability);
        if (read_text(json, "runs", n, "conclusion", sizeof text, text) &&
            strcmp(text, "undecided") == 0)
            fputs(": <b class=\"open\">undecided</b>", out);
        fputs("</td></tr>\n", out);
    }
    if (n > 0 || v == NULL)
        return;
    begin_row(r, "States");
    fprintf(out, "<b>%d</b>", v->n_state);
    if (v->evidence.n_temp > 1 && isfinite(v->evidence.log))
        fprintf(out, " log evidence %s",
                tsr_evidence_format(&v->evidence, text));
    fputs("</td></tr>\n", out);
}

/* The medians of the first and the last sample of a series, else the mean over
 * the samples. */
static void write_populations(const tsr_report *r)
{
    const tsr_verdict *v = r->options->verdict;
    const tsr_series *s = v != NULL ? &v->series : NULL;
    FILE *out = tsr_page_html(r->page);
    for (int k = 1; v != NULL && k <= v->n_state; k++) {
        char name[24];
        snprintf(name, sizeof name, "weight_%d", k);
        const tsr_summary_item *item =
            tsr_summary_find(r->diagnosis->summary, name);
        if (item == NULL)
            continue;
        begin_row(r, k == 1 ? "Populations" : "");
        fprintf(out, "state %d: ", k);
        const int is_series = s->is_series && !s->is_species;
        for (int i = 0; is_series && i < s->n; i += s->n - 1)
            fprintf(out, "<b>%.0f&nbsp;%%</b> at %s%s",
                    100.0 * s->quantile[(k - 1) * s->n + i][2], s->label[i],
                    i == 0            ? " to "
                    : s->unit != NULL ? "&nbsp;"
                                      : "");
        if (is_series)
            fputs(s->unit != NULL ? tsr_page_escape(r->page, s->unit) : "",
                  out);
        else
            fprintf(out, "<b>%.0f [%.0f, %.0f]&nbsp;%%</b>%s",
                    100.0 * item->value.mean, 100.0 * item->value.q5,
                    100.0 * item->value.q95,
                    s->n > 0 && !s->is_species ? ", mean over the samples"
                                               : "");
        fputs("</td></tr>\n", out);
    }
}

/* Links to files beside the page. Arrangements after the fourth have links in
 * their table only. */
static void write_links(const tsr_report *r)
{
    enum { MOST = 4 };
    const tsr_report_options *o = r->options;
    const tsr_arrangements *a = o->diagnose.arrangements;
    FILE *out = tsr_page_html(r->page);
    fputs("<p class=\"links\">Files:", out);
    if (o->file != NULL)
        fprintf(out, " <a href=\"%s\" download>%s</a>", o->file, o->file);
    for (int i = 0; a != NULL && i < a->n && i < MOST; i++) {
        fprintf(out,
                " <a href=\"report/arrangement-%d.cif\" download>"
                "arrangement-%d.cif</a> (%.0f&nbsp;%%",
                i + 1, i + 1, 100.0 * a->item[i].share);
        if (a->item[i].state > 0)
            fprintf(out, " of state %d", a->item[i].state);
        fputs(")", out);
    }
    fputs("</p>\n", out);
}

/* The sentences of the solve's verdict, then those of this run's. */
static tsr_status write_sentences(const tsr_report *r, tsr_err *err)
{
    char text[4096], *rest, *own = NULL;
    tsr_words words;
    FILE *out = tsr_page_html(r->page);
    fputs("<details><summary>Verdict in words</summary>\n", out);
    for (int k = 0;
         read_text(r->options->solved, "verdict", k, "", sizeof text, text);
         k++)
        tsr_page_paragraph(r->page, "answer", "", text);
    if (r->options->verdict != NULL) {
        tsr_verdict_write(r->options->verdict, &words);
        own = tsr_words_end(&words);
        TSR_TRY(tsr_allocated(own, err));
    }
    for (char *line = own != NULL ? strtok_r(own, "\n", &rest) : NULL;
         line != NULL; line = strtok_r(NULL, "\n", &rest))
        tsr_page_paragraph(r->page, "answer", "", line);
    fputs("</details>\n", out);
    free(own);
    return TSR_OK;
}

/* The first column of the page: the box, convergence, links, verdict. */
static tsr_status write_box(tsr_report *report, tsr_err *err)
{
    tsr_report *r = report;
    const tsr_report_options *o = r->options;
    tsr_page_column(r->page);
    if (o->is_prior)
        tsr_page_words(r->page, "<b>Run without data:</b> all results are "
                                "those of the prior.");
    fputs("<table class=\"box\">\n", tsr_page_html(r->page));
    write_fits(r);
    write_measured(r);
    write_size(r, "Rg", &r->rg);
    write_size(r, "D<sub>max</sub>", &r->d_max);
    write_states(r);
    write_populations(r);
    fputs("</table>\n", tsr_page_html(r->page));
    tsr_page_paragraph(r->page, "open", "", o->remark);
    if (r->trace != NULL)
        tsr_report_convergence(r);
    write_links(r);
    return write_sentences(r, err);
}

const char *tsr_report_chain_colour(int c)
{
    /* Okabe & Ito 2008, distinguishable with colour blindness; then two more */
    static const char *const colour[] = {
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
        "#d55e00", "#000000", "#f0e442", "#7f7f7f", "#8c564b"};
    return colour[c % (int)(sizeof colour / sizeof *colour)];
}

tsr_status tsr_report_scalar(tsr_report *report, tsr_trace_reader *trace,
                             const char *name, int *n_chain, int *n_draw,
                             double **value, tsr_err *err)
{
    double *read;
    *value = NULL;
    TSR_TRY(tsr_summary_draws(trace, name, n_chain, n_draw, &read, err));
    const size_t n = read != NULL ? (size_t)*n_chain * (size_t)*n_draw : 0;
    size_t n_finite = 0;
    while (n_finite < n && isfinite(read[n_finite]))
        n_finite++;
    if (n > 0 && n_finite == n) {
        tsr_pool_array(&report->pool, *value, n);
        if (*value != NULL)
            memcpy(*value, read, n * sizeof *read);
    }
    free(read);
    return tsr_pool_check(&report->pool, err);
}

const char *tsr_report_data_name(const tsr_report *report,
                                 const tsr_term_type *type, int ordinal)
{
    const tsr_report_options *o = report->options;
    for (int i = 0, n = 0; i < o->n_data; i++)
        if (tsr_term_is_same_family(tsr_term_registry[o->data[i].kind], type) &&
            n++ == ordinal)
            return o->data[i].name;
    return NULL;
}

static void write_methods(tsr_report *r)
{
    if (r->trace == NULL)
        return;
    FILE *out = tsr_page_html(r->page);
    char *config = tsr_trace_attribute_text(r->trace, "config");
    char *engine = tsr_trace_attribute_text(r->trace, "engine");
    char *created = tsr_trace_attribute_text(r->trace, "created_at");
    tsr_page_section(r->page, "methods", "Methods");
    tsr_page_paragraph(r->page, "", "", r->options->methods);
    tsr_page_words(
        r->page,
        "The folder <code>report</code> has every figure as SVG and its "
        "numbers as CSV%s.",
        r->options->frames != NULL
            ? "; <code>conformations.csv</code> has the domain distances and "
              "rotations of each conformation"
            : "");
    tsr_page_paragraph(r->page, "", "Run started: ", created);
    tsr_page_paragraph(r->page, "", "Engine: ", engine);
    if (config != NULL) {
        fputs("<details><summary>Resolved configuration</summary>"
              "<pre>",
              out);
        tsr_page_text(r->page, config);
        fputs("</pre></details>\n", out);
    }
    free(config);
    free(engine);
    free(created);
}

/* ---- the report ---- */

int tsr_report_state(const tsr_report *report, int i)
{
    const tsr_drawn_frame *frame;
    tsr_frames_list(report->options->frames, &frame);
    const int state = frame[report->options->shape->at[i]].state;
    return state > 0 ? state : 1;
}

tsr_status tsr_report_write(tsr_trace_reader *trace,
                            const tsr_report_options *options, const char *path,
                            const char *folder, tsr_log *log, tsr_err *err)
{
    static const struct {
        const char *name;
        tsr_status (*make)(tsr_report *, tsr_err *);
    } sections[] = {
        {"fit", tsr_report_fit},
        {"view", tsr_report_view}, /* without a run the last section */
        {"populations", tsr_report_series},
        {"measurements", tsr_report_terms},
        {"numbers", tsr_report_numbers},
        {"distributions", tsr_report_posterior},
        {"structure", tsr_report_structure},
        {"chains", tsr_report_chains}};
    const int n = trace == NULL ? 2 : (int)(sizeof sections / sizeof *sections);
    tsr_report r = {.trace = trace, .options = options, .folder = folder};
    const tsr_verdict *v = options->verdict;
    const tsr_report_rigid_fit *rigid = options->rigid;
    const double none = (double)NAN;
    const int is_rigid = options->n_rigid > 0;
    r.rg = v != NULL ? v->rg
                     : (tsr_convergence){.mean = is_rigid ? rigid->rg : none,
                                         .q5 = none};
    r.d_max = v != NULL
                  ? v->d_max
                  : (tsr_convergence){.mean = is_rigid ? rigid->d_max : none,
                                      .q5 = none};
    const tsr_shape *shape = options->shape;
    r.domains = shape != NULL ? shape->domains : NULL;
    for (int i = 0; shape != NULL && i < shape->n; i++)
        if (tsr_report_state(&r, i) > r.n_state)
            r.n_state = tsr_report_state(&r, i);
    tsr_log_progress(log, "report: diagnosis");
    tsr_status status = TSR_OK;
    if (trace != NULL) {
        status = tsr_diagnose(trace, &options->diagnose, &r.diagnosis, err);
        if (status == TSR_OK && options->prior != NULL)
            status = tsr_summary_add_prior(r.diagnosis->summary, options->prior,
                                           err);
        if (status == TSR_OK)
            tsr_summary_hide_poses(r.diagnosis->summary);
    }
    if (status == TSR_OK) {
        r.page = tsr_page_new(options->name, folder);
        status = tsr_allocated(r.page, err);
    }
    TSR_THEN(status, write_box(&r, err));
    for (int i = 0; i < n && status == TSR_OK; i++) {
        char text[80];
        snprintf(text, sizeof text, "report: %s (%d of %d)", sections[i].name,
                 i + 1, n);
        tsr_log_progress(log, text);
        status = sections[i].make(&r, err);
    }
    tsr_log_progress(log, "");
    if (status == TSR_OK) {
        write_methods(&r);
        status = tsr_page_write(r.page, path, err);
    }
    tsr_page_free(r.page);
    tsr_pool_clear(&r.pool);
    tsr_diagnosis_free(r.diagnosis);
    return status;
}
