/* The page is made section by section, in the order in which a reader asks. The
 * first screen: what is the answer, does the curve fit, what does the molecule
 * look like. Below it: what are the numbers and how sure are they, which parts
 * move, how did the chains fare. */
#include "report/report.h"

#include "report/report_sections.h"

#include <math.h>
#include <stdlib.h>

const char *tsr_report_chain_colour(int c)
{
    /* Okabe & Ito 2008, for all kinds of colour vision; then two more */
    static const char *const colour[] = {
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
        "#d55e00", "#000000", "#f0e442", "#7f7f7f", "#8c564b"};
    return colour[c % (int)(sizeof colour / sizeof *colour)];
}

tsr_status tsr_report_scalar(tsr_trace_reader *trace, const char *name,
                             int *n_chain, int *n_draw, double **value,
                             tsr_err *err)
{
    tsr_status status =
        tsr_summary_draws(trace, name, n_chain, n_draw, value, err);
    const size_t count =
        *value != NULL ? (size_t)*n_chain * (size_t)*n_draw : 0;
    for (size_t i = 0; i < count; i++)
        if (!isfinite((*value)[i])) {
            free(*value);
            *value = NULL;
            break;
        }
    return status;
}

const char *tsr_report_data_name(const tsr_report *report,
                                 const tsr_term_type *type, int ordinal)
{
    const tsr_report_options *o = report->options;
    for (int i = 0, n = 0; i < o->n_data; i++)
        if (tsr_term_is_alike(tsr_term_registry[o->data[i].kind], type) &&
            n++ == ordinal)
            return o->data[i].name;
    return NULL;
}

static void methods(tsr_report *r)
{
    if (r->trace == NULL)
        return;
    FILE *out = tsr_page_html(r->page);
    char *config = tsr_trace_attribute_text(r->trace, "config");
    char *engine = tsr_trace_attribute_text(r->trace, "engine");
    char *created = tsr_trace_attribute_text(r->trace, "created_at");
    tsr_page_section(r->page, "methods", "Methods");
    tsr_page_paragraph(r->page, NULL, "", r->options->methods);
    tsr_page_words(
        r->page,
        "Every figure is in the folder <code>report</code> as SVG, and its "
        "numbers beside it as CSV%s.",
        r->options->frames != NULL
            ? "; <code>conformations.csv</code> has the distances and turns of "
              "the domains of each conformation"
            : "");
    tsr_page_paragraph(r->page, NULL, "The trace was begun at ", created);
    tsr_page_paragraph(r->page, NULL, "Engine: ", engine);
    if (config != NULL) {
        fputs("<details><summary>The configuration, as resolved</summary>"
              "<pre>",
              out);
        tsr_page_text(r->page, config);
        fputs("</pre></details>\n", out);
    }
    free(config);
    free(engine);
    free(created);
}

/* ---- all of it ---- */

int tsr_report_state(const tsr_report *report, int i)
{
    const tsr_drawn_frame *frame;
    tsr_frames_list(report->options->frames, &frame);
    const int state = frame[report->options->shape->at[i]].state;
    return state > 0 ? state : 1;
}

/* What all sections of the structure have in common. */
static tsr_status find_domains(tsr_report *r, tsr_err *err)
{
    const tsr_shape *s = r->options->shape;
    for (int i = 0; s != NULL && i < s->n; i++)
        if (tsr_report_state(r, i) > r->n_state)
            r->n_state = tsr_report_state(r, i);
    return s == NULL ? TSR_OK
                     : tsr_domains_make(r->options->frames, s->n, s->at,
                                        &r->domains, err);
}

static tsr_status open_page(tsr_report *r, const char *folder, char **vega,
                            tsr_log *log, tsr_err *err)
{
    tsr_err local;
    tsr_status status =
        tsr_vega_script(r->options->vega_directory, vega, &local);
    if (status == TSR_E_NOMEM)
        return tsr_fail(err, status, "%s", local.message);
    if (status != TSR_OK)
        tsr_warn(log, "%s", local.message);
    r->page = tsr_page_new(r->options->name, *vega, folder);
    return tsr_allocated(r->page, err);
}

tsr_status tsr_report_write(tsr_trace_reader *trace,
                            const tsr_report_options *options, const char *path,
                            const char *folder, tsr_log *log, tsr_err *err)
{
    static const struct {
        const char *name;
        tsr_status (*make)(tsr_report *, tsr_err *);
    } section[] = {{"fit", tsr_report_fit},
                   {"view", tsr_report_view}, /* without a run all */
                   {"measurements", tsr_report_terms},
                   {"numbers", tsr_report_numbers},
                   {"distributions", tsr_report_posterior},
                   {"structure", tsr_report_structure},
                   {"chains", tsr_report_chains}};
    const int n = trace == NULL ? 2 : (int)(sizeof section / sizeof *section);
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
    char *vega = NULL;
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
    TSR_THEN(status, find_domains(&r, err));
    TSR_THEN(status, open_page(&r, folder, &vega, log, err));
    TSR_THEN(status, tsr_report_box(&r, err));
    for (int i = 0; i < n && status == TSR_OK; i++) {
        char text[80];
        snprintf(text, sizeof text, "report: %s (%d of %d)", section[i].name,
                 i + 1, n);
        tsr_log_progress(log, text);
        status = section[i].make(&r, err);
    }
    tsr_log_progress(log, "");
    if (status == TSR_OK) {
        methods(&r);
        status = tsr_page_write(r.page, path, err);
    }
    tsr_page_free(r.page);
    tsr_diagnosis_free(r.diagnosis);
    tsr_domains_free(r.domains);
    free(vega);
    return status;
}
