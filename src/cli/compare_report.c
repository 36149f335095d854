/* Runs side by side. Every run is a number in the tables, since names of
 * folders are long; differences are to the first run that is named. */
#include "cli/compare_report.h"

#include "core/text.h"
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- differences ---- */

static int is_same_data(const tsr_comparison *c, int a, int b)
{
    return c->run[a].data == c->run[b].data && c->run[a].verdict->has_data;
}

/* The log evidence of run b above that of a; NaN where one is not known, or
 * they saw other data. */
static void evidence_gain(const tsr_comparison *c, int a, int b, double *gain,
                          double *error)
{
    const tsr_evidence *x = &c->run[a].summary->evidence;
    const tsr_evidence *y = &c->run[b].summary->evidence;
    const int is_known =
        is_same_data(c, a, b) && x->n_temp > 1 && y->n_temp > 1;
    *gain = is_known ? y->log - x->log : (double)NAN;
    *error = is_known ? hypot(x->error, y->error) : (double)NAN;
}

static void loo_gain(const tsr_comparison *c, int a, int b, double *gain,
                     double *error)
{
    *gain = *error = (double)NAN;
    if (is_same_data(c, a, b))
        (void)tsr_loo_compare(&c->run[a].verdict->loo, &c->run[b].verdict->loo,
                              gain, error);
}

typedef void gain_function(const tsr_comparison *, int, int, double *,
                           double *);

static int counts(double gain, double error)
{
    return gain > fmax(1.0, 2.0 * error);
}

/* ---- sentences ---- */

/* The run that none of the same data is above; and whether it is clearly above
 * all of them. */
static void say_best(const tsr_comparison *c, gain_function *gain_of,
                     const char *what, tsr_words *w)
{
    for (int b = 0; b < c->n; b++) {
        int n = 0, n_clear = 0, is_best = 1, nearest = -1;
        double least = HUGE_VAL, least_error = 0.0;
        for (int a = 0; a < c->n; a++) {
            double gain, error;
            if (a == b)
                continue;
            gain_of(c, a, b, &gain, &error);
            if (!isfinite(gain))
                continue;
            n++;
            n_clear += counts(gain, error);
            is_best &= gain > 0.0 || (gain == 0.0 && b < a);
            if (gain < least) {
                least = gain;
                least_error = error;
                nearest = a;
            }
        }
        if (n == 0 || !is_best)
            continue;
        tsr_words_say(w,
                      "Run %d has the highest %s of its data, %.1f +- %.1f nat "
                      "above run %d: %s. ",
                      b + 1, what, least, least_error, nearest + 1,
                      n_clear == n ? "the data prefer it"
                                   : "too little to prefer it by");
    }
}

/* Data sets of two runs that cannot be of one structure; returns how many. */
static int conflicts(const tsr_comparison *c, int a, int b, int *i, int *k,
                     double *sigma)
{
    const tsr_verdict *x = c->run[a].verdict, *y = c->run[b].verdict;
    for (*i = 0; *i < x->n_curve; ++*i)
        for (*k = 0; *k < y->n_curve; ++*k)
            if (tsr_guinier_conflict(&x->curve[*i].guinier,
                                     &y->curve[*k].guinier, sigma))
                return 1;
    return 0;
}

static void say_conflicts(const tsr_comparison *c, tsr_words *w)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            int i, k;
            double sigma;
            if (!conflicts(c, a, b, &i, &k, &sigma))
                continue;
            const tsr_verdict_curve *x = &c->run[a].verdict->curve[i];
            const tsr_verdict_curve *y = &c->run[b].verdict->curve[k];
            tsr_words_say(w,
                          "The data of runs %d and %d cannot be of one "
                          "structure: Guinier's Rg is %.1f +- %.1f Angstrom in "
                          "%s and %.1f +- %.1f in %s, %.0f standard deviations "
                          "apart. ",
                          a + 1, b + 1, x->guinier.rg, x->guinier.error,
                          x->name, y->guinier.rg, y->guinier.error, y->name,
                          sigma);
        }
}

/* The least of the overlaps of two runs; NULL: they share no variable. */
static const tsr_overlap *least_overlap(const tsr_comparison *c, int a, int b)
{
    const tsr_overlap *least = NULL;
    for (int i = 0; i < c->n_overlap; i++) {
        const tsr_overlap *o = &c->overlap[i];
        if (o->a == a && o->b == b && isfinite(o->overlap) &&
            (least == NULL || o->overlap < least->overlap))
            least = o;
    }
    return least;
}

static void say_overlaps(const tsr_comparison *c, tsr_words *w)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            const tsr_overlap *o = least_overlap(c, a, b);
            if (o != NULL)
                tsr_words_say(w,
                              "The ensembles of runs %d and %d %s (overlap of "
                              "%s %.2f, the least). ",
                              a + 1, b + 1,
                              o->overlap > 0.8   ? "are alike"
                              : o->overlap > 0.3 ? "overlap in part"
                                                 : "hardly overlap",
                              o->variable, o->overlap);
        }
}

static void say_convergence(const tsr_comparison *c, tsr_words *w)
{
    for (int i = 0; i < c->n; i++)
        if (!c->run[i].verdict->advice.is_converged)
            tsr_words_say(w,
                          "Run %d has not converged, so what is said of it "
                          "may change. ",
                          i + 1);
}

static char *say_all(const tsr_comparison *c, int k, tsr_err *err)
{
    tsr_words w;
    tsr_words_begin(&w);
    if (k == 0)
        say_conflicts(c, &w);
    else if (k == 1)
        say_best(c, evidence_gain, "log evidence", &w);
    else if (k == 2)
        say_best(c, loo_gain, "expected log predictive density", &w);
    else if (k == 3)
        say_overlaps(c, &w);
    else
        say_convergence(c, &w);
    char *text = tsr_words_end(&w);
    if (text == NULL)
        (void)tsr_fail(err, TSR_E_NOMEM, "out of memory");
    return text;
}

enum { N_SAID = 5 };

/* ---- tables ---- */

/* Parameters that are told side by side: not how the sampler did, and not
 * directions. */
static int is_told(const char *name)
{
    static const char *const begins[] = {"chi2", "distance_chi2", "map_chi2",
                                         "rg",   "d_max",         "c1",
                                         "c2",   "noise_scale",   "weight_"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return strstr(name, "_distance") != NULL;
}

/* The k-th parameter that any run has, in the order of the first that has it;
 * NULL past the last. */
static const char *parameter(const tsr_comparison *c, int k)
{
    for (int i = 0; i < c->n; i++)
        for (int v = 0; v < c->run[i].summary->n; v++) {
            const char *name = c->run[i].summary->item[v].name;
            int is_new = is_told(name);
            for (int a = 0; a < i && is_new; a++)
                is_new = tsr_summary_find(c->run[a].summary, name) == NULL;
            if (is_new && k-- == 0)
                return name;
        }
    return NULL;
}

static const char *interval(const tsr_convergence *v, char text[64])
{
    const int n =
        v->sd > 0.0 ? (int)fmin(fmax(-floor(log10(v->sd)), 0.0), 3.0) : 1;
    snprintf(text, 64, "%.*f [%.*f, %.*f]", n, v->mean, n, v->q5, n, v->q95);
    return text;
}

static void print_gain(FILE *out, int width, double gain, double error)
{
    char text[48] = "";
    if (isfinite(gain))
        snprintf(text, sizeof text, "%.1f +- %.1f", gain, error);
    fprintf(out, "  %*s", width, text);
}

static void print_models(const tsr_comparison *c, FILE *out)
{
    fprintf(out, "\n  %-3s %6s  %16s  %13s  %16s  %13s  %s\n", "run", "states",
            "log evidence", "above run 1", "LOO density", "above run 1",
            "converged");
    for (int i = 0; i < c->n; i++) {
        const tsr_verdict *v = c->run[i].verdict;
        const tsr_evidence *e = &c->run[i].summary->evidence;
        double gain = (double)NAN, error = (double)NAN;
        fprintf(out, "  %-3d %6d", i + 1, v->n_state);
        print_gain(out, 16, e->n_temp > 1 ? e->log : gain, e->error);
        if (i > 0)
            evidence_gain(c, 0, i, &gain, &error);
        print_gain(out, 13, gain, error);
        print_gain(out, 16, v->loo.elpd, v->loo.error);
        if (i > 0)
            loo_gain(c, 0, i, &gain, &error);
        print_gain(out, 13, gain, error);
        fprintf(out, "  %s\n", v->advice.is_converged ? "yes" : "no");
    }
}

static void print_parameters(const tsr_comparison *c, FILE *out)
{
    const char *name;
    fprintf(out, "\n  %-18s", "mean [5 %, 95 %]");
    for (int i = 0; i < c->n; i++)
        fprintf(out, "  run %-18d", i + 1);
    fputc('\n', out);
    for (int k = 0; (name = parameter(c, k)) != NULL; k++) {
        fprintf(out, "  %-18s", name);
        for (int i = 0; i < c->n; i++) {
            const tsr_summary_item *item =
                tsr_summary_find(c->run[i].summary, name);
            char text[64] = "-";
            if (item != NULL && isfinite(item->value.mean))
                interval(&item->value, text);
            fprintf(out, "  %-22s", text);
        }
        fputc('\n', out);
    }
}

tsr_status tsr_comparison_print(const tsr_comparison *c, FILE *out,
                                tsr_err *err)
{
    for (int i = 0; i < c->n; i++) {
        fprintf(out, "run %d: %s", i + 1, c->run[i].directory);
        for (int k = 0; k < c->run[i].verdict->n_curve; k++)
            fprintf(out, "%s%s", k == 0 ? " (" : ", ",
                    c->run[i].verdict->curve[k].name);
        fprintf(out, "%s\n", c->run[i].verdict->n_curve > 0 ? ")" : "");
    }
    fputc('\n', out);
    for (int k = 0; k < N_SAID; k++) {
        char *text = say_all(c, k, err);
        if (text == NULL)
            return TSR_E_NOMEM;
        if (text[0] != '\0')
            tsr_text_wrap(out, 0, 0, "", text);
        free(text);
    }
    print_models(c, out);
    print_parameters(c, out);
    return TSR_OK;
}

/* ---- JSON ---- */

static void put_run(const tsr_comparison *c, int i, tsr_json *j)
{
    const tsr_compared *r = &c->run[i];
    const char *name;
    double gain, error;
    tsr_json_object(j, NULL);
    tsr_json_text(j, "directory", r->directory);
    tsr_json_integer(j, "states", r->verdict->n_state);
    tsr_json_truth(j, "same_data_as_first", is_same_data(c, 0, i));
    tsr_json_truth(j, "converged", r->verdict->advice.is_converged);
    if (r->summary->evidence.n_temp > 1)
        tsr_evidence_put(&r->summary->evidence, "evidence", j);
    else
        tsr_json_text(j, "evidence", NULL);
    evidence_gain(c, 0, i, &gain, &error);
    tsr_json_number(j, "evidence_gain", gain);
    tsr_json_number(j, "evidence_gain_error", error);
    tsr_loo_put(&r->verdict->loo, "loo", j);
    loo_gain(c, 0, i, &gain, &error);
    tsr_json_number(j, "loo_gain", gain);
    tsr_json_number(j, "loo_gain_error", error);
    tsr_json_object(j, "parameters");
    for (int k = 0; (name = parameter(c, k)) != NULL; k++) {
        const tsr_summary_item *item = tsr_summary_find(r->summary, name);
        if (item == NULL)
            continue;
        tsr_json_object(j, name);
        tsr_json_number(j, "mean", item->value.mean);
        tsr_json_number(j, "q5", item->value.q5);
        tsr_json_number(j, "q95", item->value.q95);
        tsr_json_close(j);
    }
    tsr_json_close(j);
    tsr_json_array(j, "curves");
    for (int k = 0; k < r->verdict->n_curve; k++) {
        const tsr_verdict_curve *curve = &r->verdict->curve[k];
        tsr_json_object(j, NULL);
        tsr_json_text(j, "curve", curve->name);
        tsr_json_number(j, "chi2", curve->chi2);
        tsr_json_number(j, "cormap_p", curve->cormap_p);
        tsr_json_number(j, "rg_guinier_data", curve->guinier.rg);
        tsr_json_number(j, "rg_guinier_data_error", curve->guinier.error);
        tsr_json_close(j);
    }
    tsr_json_close(j);
    tsr_json_close(j);
}

static void put_pair(tsr_json *j, int a, int b)
{
    tsr_json_object(j, NULL);
    tsr_json_array(j, "runs");
    tsr_json_integer(j, NULL, a);
    tsr_json_integer(j, NULL, b);
    tsr_json_close(j);
}

tsr_status tsr_comparison_print_json(const tsr_comparison *c, FILE *out,
                                     tsr_err *err)
{
    tsr_json j = {.out = out};
    tsr_status status = TSR_OK;
    tsr_json_object(&j, NULL);
    tsr_json_array(&j, "verdict");
    for (int k = 0; k < N_SAID && status == TSR_OK; k++) {
        char *text = say_all(c, k, err);
        status = text == NULL ? TSR_E_NOMEM : TSR_OK;
        if (text != NULL && text[0] != '\0')
            tsr_json_text(&j, NULL, text);
        free(text);
    }
    tsr_json_close(&j);
    tsr_json_array(&j, "runs");
    for (int i = 0; i < c->n; i++)
        put_run(c, i, &j);
    tsr_json_close(&j);
    tsr_json_array(&j, "overlaps");
    for (int i = 0; i < c->n_overlap; i++) {
        put_pair(&j, c->overlap[i].a, c->overlap[i].b);
        tsr_json_text(&j, "variable", c->overlap[i].variable);
        tsr_json_number(&j, "overlap", c->overlap[i].overlap);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_array(&j, "conflicts");
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            int i, k;
            double sigma;
            if (!conflicts(c, a, b, &i, &k, &sigma))
                continue;
            put_pair(&j, a, b);
            tsr_json_number(&j, "standard_deviations", sigma);
            tsr_json_close(&j);
        }
    tsr_json_close(&j);
    tsr_json_close(&j);
    return status;
}

/* ---- picture ---- */

/* A mean with what lies to either side, of run i. */
static void add_bar(tsr_figure *f, int i, double low, double middle,
                    double high)
{
    const double x = i + 0.5;
    if (!isfinite(low) || !isfinite(high))
        return;
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_DATA, 1, &x, &low,
                     &high);
    tsr_figure_layer(f, TSR_LAYER_POINTS, NULL, TSR_COLOUR_DATA, 1, &x, &middle,
                     NULL);
}

static void add_gains(tsr_figure *f, const tsr_comparison *c,
                      gain_function *gain_of, const char *title)
{
    int n = 0;
    for (int i = 1; i < c->n; i++) {
        double gain, error;
        gain_of(c, 0, i, &gain, &error);
        if (!isfinite(gain) || !isfinite(error))
            continue;
        if (n++ == 0) {
            const double x[] = {0.0, c->n}, zero[] = {0.0, 0.0};
            tsr_figure_panel(f, title, 0, 110);
            tsr_figure_layer(f, TSR_LAYER_DASHES, NULL, "#444444", 2, x, zero,
                             NULL);
        }
        add_bar(f, i, gain - error, gain, gain + error);
    }
}

static void add_values(tsr_figure *f, const tsr_comparison *c, const char *name,
                       const char *title)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        const tsr_summary_item *item =
            tsr_summary_find(c->run[i].summary, name);
        if (item == NULL || !isfinite(item->value.mean))
            continue;
        if (n++ == 0)
            tsr_figure_panel(f, title, 0, 110);
        add_bar(f, i, item->value.q5, item->value.mean, item->value.q95);
    }
}

tsr_status tsr_comparison_draw(const tsr_comparison *c, const char *path,
                               tsr_err *err)
{
    const char *name[TSR_MOST_COMPARED];
    tsr_figure f =
        tsr_figure_new("compare", "Runs side by side", "run", 90 + 90 * c->n);
    for (int i = 0; i < c->n; i++)
        name[i] = tsr_text_file_name(c->run[i].directory);
    add_gains(&f, c, evidence_gain, "log evidence (nat)");
    add_gains(&f, c, loo_gain, "LOO density (nat)");
    add_values(&f, c, "chi2", "\xcf\x87\xc2\xb2");
    add_values(&f, c, "rg", "Rg (\xc3\x85)");
    add_values(&f, c, "d_max", "D_max (\xc3\x85)");
    tsr_figure_names(&f, c->n, name);
    f.x0 = 0.0;
    f.x1 = c->n;
    tsr_status status = tsr_figure_finish(&f, err);
    if (status == TSR_OK)
        status = tsr_figure_write_svg(&f, path, err);
    tsr_figure_clear(&f);
    return status;
}
