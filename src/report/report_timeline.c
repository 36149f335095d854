/* Timelines of the conformations: draws along x, residues along y, and the
 * change as colour. They show which part moved when, and whether chains sample
 * different conformations. A second panel has the means over domains. */
#include "report/report.h"

#include <math.h>

/* ---- traces ---- */

/* Adds a panel with `value` [n_column], a line for each stretch of one chain
 * and state. */
static void add_trace(const tsr_report *r, tsr_figure *f, const char *title,
                      double dx, const double *value)
{
    const tsr_shape *s = r->options->shape;
    const tsr_drawn_frame *frame;
    double *x;
    tsr_pool_array(&f->pool, x, s->n_column);
    tsr_frames_list(r->options->frames, &frame);
    for (int c = 0; x != NULL && c < s->n_column; c++)
        x[c] = (c + 0.5) * dx;
    tsr_figure_panel(f, title, 0, 80);
    for (int from = 0, to, last = -1; from < s->n_column; from = to) {
        const tsr_drawn_frame *a = &frame[s->column[from]];
        char label[32];
        for (to = from + 1; to < s->n_column; to++) {
            const tsr_drawn_frame *b = &frame[s->column[to]];
            if (b->chain != a->chain || b->state != a->state)
                break;
        }
        snprintf(label, sizeof label, "chain %d", a->chain);
        tsr_figure_layer(f, TSR_LAYER_LINE,
                         a->chain != last && a->chain < TSR_MOST_CHAINS ? label
                                                                        : NULL,
                         tsr_report_chain_colour(a->chain), to - from, x + from,
                         value + from, NULL);
        last = a->chain;
    }
}

/* The values of a variable at the draws of the columns: *out [n_column]. NULL
 * where the trace lacks the variable. */
static tsr_status read_columns(tsr_report *r, const char *name, double **out,
                               tsr_err *err)
{
    const tsr_shape *s = r->options->shape;
    const tsr_drawn_frame *frame;
    int n_chain, n_draw;
    double *value;
    *out = NULL;
    tsr_frames_list(r->options->frames, &frame);
    TSR_TRY(
        tsr_report_scalar(r, r->trace, name, &n_chain, &n_draw, &value, err));
    if (value == NULL)
        return TSR_OK;
    tsr_pool_array(&r->pool, *out, s->n_column);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    for (int c = 0; c < s->n_column; c++) {
        const tsr_drawn_frame *a = &frame[s->column[c]];
        (*out)[c] =
            a->chain < n_chain && a->draw < n_draw
                ? value[(size_t)a->chain * (size_t)n_draw + (size_t)a->draw]
                : (double)NAN;
    }
    return TSR_OK;
}

/* ---- rows ---- */

/* Adds cells with the means over the rows of each domain. */
static void add_domains(const tsr_report *r, tsr_figure *f, double dx,
                        const tsr_domains *d, const double *value)
{
    const tsr_shape *s = r->options->shape;
    const size_t n = (size_t)s->n_column * (size_t)d->n_domain;
    double *z;
    tsr_pool_array(&f->pool, z, n);
    for (int c = 0; z != NULL && c < s->n_column; c++)
        for (int k = 0; k < d->n_domain; k++) {
            const tsr_domain *part = &d->domain[k];
            double sum = 0.0;
            int count = 0;
            for (int row = 0, i = 0; row < s->n_row; row++) {
                while (i < part->n_residue && part->residue[i] < s->row[row])
                    i++;
                if (i == part->n_residue || part->residue[i] != s->row[row])
                    continue;
                sum += value[(size_t)c * (size_t)s->n_row + (size_t)row];
                count++;
            }
            z[(size_t)c * (size_t)d->n_domain + (size_t)k] =
                count > 0 ? sum / count : (double)NAN;
        }
    tsr_figure_cells(f, s->n_column, d->n_domain, 0.0, dx, 0.5, 1.0, z);
}

typedef struct {
    const char *name, *title, *scale;
    const double *value; /* [n_column][n_row] */
} quantity;

/* Two traces, then residues and domains with the same colour scale. */
static tsr_figure make_timeline(tsr_report *r, const quantity *q,
                                const tsr_domains *d, const char *trace_title,
                                const double *trace)
{
    const tsr_shape *s = r->options->shape;
    const double dx = (double)s->n_frame / s->n_column;
    double z0 = HUGE_VAL, z1 = -HUGE_VAL;
    tsr_figure f = tsr_figure_new(q->name, q->title,
                                  "conformation (chains in sequence)", 640);
    add_trace(r, &f, "Rg of CA (\xc3\x85)", dx, s->rg);
    if (trace != NULL)
        add_trace(r, &f, trace_title, dx, trace);
    tsr_figure_panel(&f, "residue", 0, 260)->z_title = q->scale;
    tsr_report_add_rows(r, &f, s->n_column, 0.0, dx, q->value);
    for (int i = 0; i < s->n_column * s->n_row; i++) {
        z0 = fmin(z0, q->value[i]);
        z1 = fmax(z1, q->value[i]);
    }
    const int residues = f.n_panel - 1;
    if (d->n_domain > 1) {
        tsr_figure_panel(&f, "domain", 0, 16 + 22 * d->n_domain)->is_count = 1;
        add_domains(r, &f, dx, d, q->value);
    }
    for (int k = residues; k >= 0 && k < f.n_panel && z0 < z1; k++) {
        f.panel[k].z0 = z0;
        f.panel[k].z1 = z1;
    }
    return f;
}

tsr_status tsr_report_timeline(tsr_report *report, const tsr_domains *domains,
                               tsr_err *err)
{
    const tsr_shape *s = report->options->shape;
    const quantity shown[] = {
        {"timeline-change", "Timeline: displacement from start",
         "displacement (\xc3\x85)", s->change},
        {"timeline-contacts", "Timeline: contacts", "contacts", s->contacts},
        {"timeline-mobility", "Timeline: local mobility", "change (\xc3\x85)",
         s->mobility}};
    const char *title = "\xcf\x87\xc2\xb2";
    double *trace;
    tsr_status status = read_columns(report, "chi2", &trace, err);
    if (status == TSR_OK && trace == NULL) {
        title = "lp (nat)";
        status = read_columns(report, "lp", &trace, err);
    }
    tsr_page_choice(report->page, "timeline", "Show");
    for (size_t i = 0; i < sizeof shown / sizeof *shown && status == TSR_OK;
         i++)
        status = tsr_page_figure(
            report->page,
            make_timeline(report, &shown[i], domains, title, trace), err);
    tsr_page_choice_end(report->page);
    tsr_page_words(
        report->page,
        "Columns are conformations, rows are residues. Displacement: distance "
        "from the starting structure after superposition. Contacts: residues "
        "within 10&nbsp;&Aring;. Local mobility: change of the distances to "
        "six residues on either side since the previous column.%s Patterns "
        "that differ between chains show that chains sample different "
        "conformations. Drag to zoom; the traces above follow.",
        domains->n_domain > 1 ? " The lowest panel has the means over domains."
                              : "");
    return status;
}
