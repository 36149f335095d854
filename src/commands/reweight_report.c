/* Every variable of the posterior before and after the new weights, so that
 * the reader sees what the new data changed; and how many draws the weights
 * rest on, which decides whether to believe it. */
#include "commands/reweight_report.h"

#include "core/json.h"
#include "files/file.h"
#include "likelihood/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

void tsr_reweight_report_clear(tsr_reweight_report *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->row[i].name);
    free(r->row);
    tsr_reweight_free(r->importance);
    tsr_maxent_free(r->entropy);
}

/* ---- rows ---- */

static int is_name(const char *name, const char *of, int data)
{
    char full[NAME];
    tsr_stored_curve_name(of, data, sizeof full, full);
    return strcmp(name, full) == 0;
}

/* Whether a variable is of the data that were replaced. */
static int belongs_to_data(const char *name, int data)
{
    static const char *const own[] = {"scale", "background", "chi2", NULL};
    for (int i = 0; own[i] != NULL; i++)
        if (is_name(name, own[i], data))
            return 1;
    char number[NAME];
    const char *last = strrchr(name, '_');
    tsr_stored_curve_name("", data, sizeof number, number);
    return strncmp(name, "noise_", 6) == 0 &&
           (data == 0 ? strspn(last + 1, "0123456789") == 0
                      : strcmp(last, number) == 0);
}

/* A row of values before and after; either may be NULL. */
static tsr_status add_row(tsr_reweight_report *r, const char *name,
                          const double *before, const double *after,
                          tsr_err *err)
{
    const tsr_stored_curve *s = r->stored;
    const long n = (long)s->n_chain * s->n_draw;
    tsr_reweight_row *more = realloc(r->row, (size_t)(r->n + 1) * sizeof *more);
    char *copy = strdup(name);
    if (more != NULL)
        r->row = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        return tsr_no_memory(err);
    }
    tsr_reweight_row *row = &r->row[r->n++];
    *row = (tsr_reweight_row){.name = copy,
                              .has_before = before != NULL,
                              .is_drawn_anew = before != after};
    if (before != NULL)
        TSR_TRY(tsr_weighted_make(n, before, NULL, &row->before, err));
    return tsr_weighted_make(n, after, r->log_weight, &row->after, err);
}

static tsr_status add_data_row(tsr_reweight_report *r, const char *name,
                               const double *after, tsr_err *err)
{
    char full[NAME];
    double *before;
    if (name == NULL || after == NULL)
        return TSR_OK;
    tsr_stored_curve_name(name, r->stored->data, sizeof full, full);
    tsr_status status = tsr_stored_curve_scalar(r->stored, TSR_TRACE_POSTERIOR,
                                                full, &before, err);
    TSR_THEN(status, add_row(r, full, before, after, err));
    free(before);
    return status;
}

tsr_status tsr_reweight_report_make(tsr_reweight_report *r, tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    const int n =
        tsr_trace_variables(r->stored->trace, TSR_TRACE_POSTERIOR, &name);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int n_chain, n_draw, n_each;
        double *value;
        if (belongs_to_data(name[i], r->stored->data) ||
            tsr_trace_shape(r->stored->trace, TSR_TRACE_POSTERIOR, name[i],
                            &n_chain, &n_draw, &n_each, NULL) != TSR_OK ||
            n_each != 1)
            continue;
        status = tsr_stored_curve_scalar(r->stored, TSR_TRACE_POSTERIOR,
                                         name[i], &value, err);
        TSR_THEN(status, add_row(r, name[i], value, value, err));
        free(value);
    }
    const tsr_reweight *made = r->importance;
    if (made == NULL)
        return status;
    TSR_THEN(status, add_data_row(r, "scale", made->scale, err));
    TSR_THEN(status, add_data_row(r, "background", made->background, err));
    TSR_THEN(status, add_data_row(r, "chi2", made->chi2, err));
    for (int i = 0; i < TSR_NOISE_PARAMETERS && status == TSR_OK; i++)
        status = add_data_row(r, made->noise_name[i], made->noise[i], err);
    return status;
}

/* ---- for people ---- */

/* Of n points, two standard deviations above what noise alone gives. */
static double most_chi2(int n)
{
    return 1.0 + 2.0 * sqrt(2.0 / n);
}

static void print_curve(const tsr_maxent *m, int n_data, FILE *out)
{
    fprintf(out, "%-3s%12s %12s %10s %10s\n", "", "theta", "chi2", "KL",
            "effective");
    fprintf(out, "   %12s %12.5g %10.4f %10.4f\n", "equal", m->start.chi2, 0.0,
            1.0);
    for (int i = 0; i < m->n_point; i++)
        fprintf(out, "%-3s%12.4g %12.5g %10.4f %10.4f\n",
                i == m->chosen ? "->" : "", m->point[i].theta, m->point[i].chi2,
                m->point[i].kl, m->point[i].effective);
    fprintf(out,
            "\ntheta = %.4g%s: chi2 %.4g a point (equal weights: %.4g), "
            "%.1f %% of the ensemble is used\n\n",
            m->point[m->chosen].theta,
            m->n_point > 1 ? ", at the elbow of the L-curve" : "",
            m->point[m->chosen].chi2, m->start.chi2,
            100.0 * m->point[m->chosen].effective);
    if (m->start.chi2 <= most_chi2(n_data))
        fprintf(out,
                "equal weights fit already: a chi2 of up to %.3g is within the "
                "noise of %d points, and what other weights gain there is "
                "noise\n\n",
                most_chi2(n_data), n_data);
}

void tsr_reweight_report_print(const tsr_reweight_report *r, FILE *out)
{
    const long n = (long)r->stored->n_chain * r->stored->n_draw;
    fprintf(out, "data: %s, %d points, q = %.4g to %.4g 1/A", r->saxs->path,
            r->saxs->n, r->saxs->q[0], r->saxs->q[r->saxs->n - 1]);
    if (r->importance != NULL)
        fprintf(out, "; noise model %s", r->noise);
    fputc('\n', out);
    if (r->interpolation > 0.0)
        fprintf(out,
                "its q are not the run's: the interpolated curve is wrong by "
                "some %.1g sigma at most\n",
                r->interpolation);
    if (r->entropy != NULL)
        print_curve(r->entropy, r->saxs->n, out);
    fprintf(out, "effective draws: %.1f of %ld (%.1f %%)", r->psis.ess, n,
            100.0 * r->psis.ess / (double)n);
    if (r->importance != NULL && isfinite(r->psis.pareto_k))
        fprintf(out, "; Pareto k = %.2f (good below 0.7)", r->psis.pareto_k);
    else if (r->importance != NULL)
        fputs("; all weights are equal", out);
    if (r->importance != NULL && isfinite(r->psis.pareto_k))
        fprintf(out, "; worth %.1f independent ones", r->worth);
    fprintf(out, "\n\n%-16s %11s %11s | %11s %11s %11s %11s %11s\n", "",
            "run: mean", "sd", "now: mean", "sd", "q5", "median", "q95");
    for (int i = 0; i < r->n; i++) {
        const tsr_reweight_row *row = &r->row[i];
        const tsr_weighted *w = &row->after;
        fprintf(out, "%-16s ", row->name);
        if (row->has_before)
            fprintf(out, "%11.5g %11.3g", row->before.mean, row->before.sd);
        else
            fprintf(out, "%11s %11s", "-", "-");
        fprintf(out, " | %11.5g %11.3g %11.5g %11.5g %11.5g\n", w->mean, w->sd,
                w->q5, w->median, w->q95);
    }
}

/* ---- for programs ---- */

static void put_values(tsr_json *j, const char *key, const tsr_weighted *w)
{
    tsr_json_object(j, key);
    tsr_json_number(j, "mean", w->mean);
    tsr_json_number(j, "sd", w->sd);
    tsr_json_number(j, "q5", w->q5);
    tsr_json_number(j, "median", w->median);
    tsr_json_number(j, "q95", w->q95);
    tsr_json_close(j);
}

static void put_point(tsr_json *j, const char *key, const tsr_maxent_point *p)
{
    tsr_json_object(j, key);
    tsr_json_number(j, "theta", p->theta);
    tsr_json_number(j, "chi2", p->chi2);
    tsr_json_number(j, "kl", p->kl);
    tsr_json_number(j, "effective", p->effective);
    tsr_json_number(j, "scale", p->scale);
    tsr_json_number(j, "background", p->background);
    tsr_json_close(j);
}

static void put_entropy(tsr_json *j, const tsr_maxent *m, int n_data)
{
    tsr_json_number(j, "theta", m->point[m->chosen].theta);
    tsr_json_truth(j, "equal_weights_fit", m->start.chi2 <= most_chi2(n_data));
    put_point(j, "equal", &m->start);
    tsr_json_array(j, "l_curve");
    for (int i = 0; i < m->n_point; i++)
        put_point(j, NULL, &m->point[i]);
    tsr_json_close(j);
}

void tsr_reweight_report_json(const tsr_reweight_report *r, FILE *out)
{
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_json_integer(&j, "draws", (long)r->stored->n_chain * r->stored->n_draw);
    tsr_json_integer(&j, "points", r->saxs->n);
    tsr_json_number(&j, "ess", r->psis.ess);
    if (r->importance != NULL) {
        tsr_json_number(&j, "worth", r->worth);
        tsr_json_number(&j, "pareto_k", r->psis.pareto_k);
        tsr_json_number(&j, "recovered", r->importance->recovered);
    }
    tsr_json_number(&j, "interpolation", r->interpolation);
    if (r->entropy != NULL)
        put_entropy(&j, r->entropy, r->saxs->n);
    tsr_json_object(&j, "variables");
    for (int i = 0; i < r->n; i++) {
        tsr_json_object(&j, r->row[i].name);
        if (r->row[i].has_before)
            put_values(&j, "run", &r->row[i].before);
        put_values(&j, "now", &r->row[i].after);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_close(&j);
}

tsr_status tsr_reweight_report_csv(const tsr_reweight_report *r,
                                   const char *path, tsr_err *err)
{
    const tsr_stored_curve *s = r->stored;
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    FILE *out = to.out;
    if (status != TSR_OK)
        return status;
    fputs("chain,draw,weight,log_weight\n", out);
    for (long i = 0; i < (long)s->n_chain * s->n_draw; i++) {
        fprintf(out, "%ld,%ld,%.17g,", i / s->n_draw, i % s->n_draw,
                exp(r->log_weight[i]));
        if (isfinite(r->log_weight[i]))
            fprintf(out, "%.17g", r->log_weight[i]);
        fputc('\n', out);
    }
    return tsr_file_end(&to, TSR_OK, err);
}
