/* The verdict of tessera solve. Each sentence rests on numbers that stand
 * beside it in the JSON object. */
#include "commands/solve_report.h"

#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_good(const tsr_profile_fit *fit)
{
    return tsr_verdict_fits(fit->reduced_chi2, fit->cormap_p, fit->noise);
}

int tsr_solve_fits(const tsr_solve *solve)
{
    int fits = 1;
    for (int k = 0; k < solve->n_curve; k++)
        fits &= is_good(&solve->rigid[k].fit);
    return fits;
}

static const tsr_verdict *verdict_of(const tsr_solve *s, int run)
{
    return s->runs->run[run].verdict;
}

static int is_converged(const tsr_solve *s, int run)
{
    return verdict_of(s, run)->advice.is_converged;
}

/* The run that needs more draws most: where the number of states is undecided
 * the one of the last two that decides least; else the chosen one where it has
 * not converged, else the first that has not; else the chosen one, of which
 * there could be twice as many. */
static int needy(const tsr_solve *s)
{
    if (s->says == TSR_GAIN_UNDECIDED) {
        const tsr_verdict *a = verdict_of(s, s->chosen);
        const tsr_verdict *b = verdict_of(s, s->chosen + 1);
        const int is_few = fmin(a->ess, b->ess) < TSR_GAIN_ESS;
        return s->chosen + (is_few ? b->ess < a->ess
                                   : b->evidence.error > a->evidence.error);
    }
    for (int k = 0; k < s->runs->n && is_converged(s, s->chosen); k++)
        if (!is_converged(s, k))
            return k;
    return s->chosen;
}

/* ---- the sentences ---- */

/* "2 states"; text [32]. */
static const char *states(int n, char text[32])
{
    snprintf(text, 32, "%d state%s", n, n == 1 ? "" : "s");
    return text;
}

static void say_rigid(const tsr_solve *s, tsr_words *w)
{
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_result *r = &s->rigid[k];
        const tsr_profile_fit *f = &r->fit;
        const tsr_saxs *saxs = s->saxs[k];
        char at[64], cormap[48];
        tsr_profile_bounds_text(f, at, sizeof at);
        tsr_words_say(
            w,
            "%sThe model as it is, rigid, %s %s: reduced chi2 %.3g%s (%s), of "
            "%s, over %d points of q %.3f to %.3f, with scale, "
            "background, c1 %.3f and c2 %.2f at their best%s.",
            k > 0 ? " " : "", is_good(f) ? "fits" : "does not fit",
            tsr_text_file_name(saxs->path), f->reduced_chi2,
            tsr_cormap_text(", CorMap p ", f->cormap_p, cormap),
            tsr_verdict_why(f->reduced_chi2, f->cormap_p, f->noise),
            strcmp(s->bodies, "atoms") == 0
                ? "all atoms"
                : "two bodies a residue, as atoms are missing",
            saxs->n, saxs->q[0], saxs->q[saxs->n - 1], f->c1, f->c2, at);
        (void)tsr_saxs_noise_say(&saxs->noise, sqrt(f->reduced_chi2), w);
        if (isfinite(saxs->rg_guinier) && isfinite(r->rg_guinier))
            tsr_words_say(w,
                          " Guinier's Rg is %.1f Angstrom in the data and %.1f "
                          "in the model's curve.",
                          saxs->rg_guinier, r->rg_guinier);
    }
    tsr_words_say(w, "\n");
}

static void say_motion(const tsr_solve *s, tsr_words *w)
{
    tsr_words_say(w, s->is_still    ? "Nothing flexible was found in the "
                                      "model, so there is nothing to sample."
                     : s->is_enough ? "Only tails are flexible:"
                                    : "What can move:");
    for (int i = 0; i < s->flexible->n; i++)
        tsr_words_say(w, "%s %s", i > 0 ? "," : "", s->flexible->item[i]);
    if (s->is_enough)
        tsr_words_say(w, ". The curve is explained without their motion, so "
                         "they were not sampled.");
    else if (!s->is_still)
        tsr_words_say(w, "; the rest moves as rigid parts.");
    else if (!tsr_solve_fits(s))
        tsr_words_say(
            w,
            " What may be tried: residues that you know to be flexible (under "
            "structure: of %s/solve.yaml, flexible: [\"A:10-20\"] instead of "
            "still: true; then the same command); another model; another "
            "oligomer, or what the model lacks (tags, missing residues, "
            "sugars), above all where Rg differs; and the curve itself "
            "(aggregates, concentration, the buffer that was subtracted).",
            s->directory);
    tsr_words_say(w, "\n");
}

/* The last run and the one before it. */
static void say_gain(const tsr_solve *s, tsr_words *w)
{
    const int last = s->runs->n - 1;
    double gain, error;
    char text[32];
    (void)tsr_evidence_gain(s->runs, last - 1, last, &gain, &error);
    if (s->says == TSR_GAIN_UNDECIDED)
        tsr_words_say(w, "Undecided whether the data ask for %s or %d: ",
                      states(last + 1, text), last);
    else
        tsr_words_say(w, "The data ask for %s %s: ",
                      s->says == TSR_GAIN_CLEAR ? "at least" : "no more than",
                      states(s->chosen + 1, text));
    tsr_words_say(w, "the log evidence of %d is %.1f +- %.1f nat %s that of %d",
                  last + 1, fabs(gain), error, gain < 0.0 ? "below" : "above",
                  last);
    if (s->says == TSR_GAIN_UNDECIDED && fabs(gain) <= 2.0 * error)
        tsr_words_say(w, ", within two errors");
    if (s->says == TSR_GAIN_UNDECIDED)
        tsr_words_say(w,
                      "; the slowest variable has %.0f effective draws with %d "
                      "and %.0f with %d, of %d that are needed. Longer runs "
                      "would decide, first of all that of %s.",
                      verdict_of(s, last)->ess, last + 1,
                      verdict_of(s, last - 1)->ess, last, TSR_GAIN_ESS,
                      states(needy(s) + 1, text));
    else if (s->says == TSR_GAIN_CLEAR)
        tsr_words_say(w, ". More were not tried (--states %d).", last + 2);
    else
        tsr_words_say(w, "; a further state counts from 1 nat above.");
    if (isfinite((tsr_loo_gain(s->runs, last - 1, last, &gain, &error), gain)))
        tsr_words_say(w,
                      " Points left out of the fit are predicted %s by %d "
                      "states than by %d: the expected log predictive density "
                      "changes by %.1f +- %.1f nat (PSIS-LOO).",
                      fabs(gain) < 2.0 * error ? "no better or worse"
                      : gain > 0.0             ? "better"
                                               : "worse",
                      last + 1, last, gain, error);
}

static void say_states(const tsr_solve *s, tsr_words *w)
{
    const int n = s->runs->n;
    const tsr_evidence *evidence = &verdict_of(s, n - 1)->evidence;
    if (n > 1 && s->says != TSR_GAIN_UNKNOWN)
        say_gain(s, w);
    else if (n > 1 || evidence->n_temp < 2 || !isfinite(evidence->log))
        tsr_words_say(w,
                      "How many states the data ask for is not known: the log "
                      "evidence of %d is missing%s%s.",
                      n, evidence->why_not[0] ? ", " : "", evidence->why_not);
    else
        tsr_words_say(w, "Whether the data ask for more than one state %s.",
                      s->is_finished ? "was not tried" : "is not known yet");
    tsr_words_say(w, " States are not conformations: with n states the mean "
                     "curve of n structures is compared with the data; the "
                     "arrangements below are alternatives for each of them "
                     "that the data leave open.\n");
}

static void say_convergence(const tsr_solve *s, tsr_words *w)
{
    int n = 0;
    char text[32];
    for (int k = 0; k < s->runs->n; k++)
        if (!is_converged(s, k))
            tsr_words_say(w, "%s%s (%s)",
                          n++ > 0 ? ", "
                                  : "Not converged, so this may "
                                    "change: ",
                          states(k + 1, text), verdict_of(s, k)->advice.worst);
    tsr_words_say(w, n > 0 ? "." : "All runs have converged.");
}

/* Of the model as it is, of the runs, or of both. */
enum { OF_MODEL = 1, OF_RUNS = 2 };
static tsr_status sentences(const tsr_solve *s, int of, int *n, char ***text,
                            tsr_err *err)
{
    tsr_words w;
    tsr_words_begin(&w);
    if (of & OF_MODEL) {
        say_rigid(s, &w);
        say_motion(s, &w);
    }
    if ((of & OF_RUNS) && s->runs->n > 0) {
        say_states(s, &w);
        say_convergence(s, &w);
    }
    return tsr_words_paragraphs(&w, n, text, err);
}

/* ---- for people ---- */

static tsr_status print_sentences(const tsr_solve *s, int of, FILE *out,
                                  tsr_err *err)
{
    int n;
    char **text;
    TSR_TRY(sentences(s, of, &n, &text, err));
    for (int i = 0; i < n; i++) {
        fputc('\n', out);
        tsr_text_wrap(out, 0, 0, "", text[i]);
    }
    tsr_paragraphs_free(n, text);
    return TSR_OK;
}

/* What the data say of each number of states, and each above the one before. */
static void print_table(const tsr_solve *s, FILE *out)
{
    fprintf(out, "\n  %-6s  %14s  %12s  %12s  %4s  %s\n", "states",
            "log evidence", "above before", "LOO above", "chi2",
            "Rg, Angstrom");
    for (int k = 0; k < s->runs->n; k++) {
        const tsr_verdict *v = verdict_of(s, k);
        double gain = (double)NAN, error = (double)NAN;
        fprintf(out, "%c %-6d", k == s->chosen ? '*' : ' ', k + 1);
        tsr_gain_print(out, 14, v->evidence.n_temp > 1 ? v->evidence.log : gain,
                       v->evidence.error);
        if (k > 0)
            (void)tsr_evidence_gain(s->runs, k - 1, k, &gain, &error);
        tsr_gain_print(out, 12, gain, error);
        if (k > 0)
            (void)tsr_loo_gain(s->runs, k - 1, k, &gain, &error);
        tsr_gain_print(out, 12, gain, error);
        fprintf(out, "  %4.3g  %.1f [%.1f, %.1f]\n",
                v->n_curve > 0 ? v->curve[0].draws.mean : (double)NAN,
                v->rg.mean, v->rg.q5, v->rg.q95);
    }
    fputs("  (nat; LOO: expected log predictive density of points left out; "
          "chi2, Rg: mean,\n  and 90 % interval)\n",
          out);
}

tsr_status tsr_solve_print_model(const tsr_solve *solve, FILE *out,
                                 tsr_err *err)
{
    TSR_TRY(print_sentences(solve, OF_MODEL, out, err));
    if (solve->is_enough)
        fprintf(out, "\nTo sample them all the same:\n    %s\n", solve->again);
    return TSR_OK;
}

tsr_status tsr_solve_print_runs(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    const tsr_solve *s = solve;
    int n;
    char **text, number[32];
    if (s->runs->n > 0) {
        TSR_TRY(print_sentences(s, OF_RUNS, out, err));
        print_table(s, out);
        fprintf(out, "\nThe run of %s, %s:\n", states(s->chosen + 1, number),
                s->runs->run[s->chosen].directory);
        TSR_TRY(
            tsr_verdict_sentences(verdict_of(s, s->chosen), &n, &text, err));
        for (int i = 0; i < n; i++)
            tsr_text_wrap(out, 0, 2, "", text[i]);
        tsr_paragraphs_free(n, text);
    }
    if (!s->is_finished) {
        fprintf(out, "\nNot finished. To go on:\n    %s\n", s->again);
    } else if (s->runs->n > 0) {
        char *more = tsr_advice_text(&verdict_of(s, needy(s))->advice);
        TSR_TRY(tsr_allocated(more, err));
        fprintf(
            out, "\n%s\n    %s\nThe same solve command then judges anew.\n",
            is_converged(s, needy(s)) ? "For more draws:" : "To go on:", more);
        free(more);
    }
    if (s->report != NULL)
        fprintf(out, "\nreport: %s\n", s->report);
    return TSR_OK;
}

tsr_status tsr_solve_print(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    fprintf(out, TSR_SOLVE_MARK " of %s\n", solve->model);
    TSR_TRY(tsr_solve_print_model(solve, out, err));
    return tsr_solve_print_runs(solve, out, err);
}

/* ---- JSON ---- */

static void put_rigid(const tsr_solve *s, tsr_json *j)
{
    tsr_json_array(j, "rigid");
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_result *r = &s->rigid[k];
        tsr_json_object(j, NULL);
        tsr_json_text(j, "curve", s->saxs[k]->path);
        tsr_json_truth(j, "fits", is_good(&r->fit));
        tsr_verdict_put_fit(j, &r->fit);
        tsr_json_number(j, "noise_by_neighbours", s->saxs[k]->noise.next);
        tsr_json_number(j, "rg_guinier", r->rg_guinier);
        tsr_json_number(j, "rg_guinier_data", s->saxs[k]->rg_guinier);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

/* Of a number of states among those that were tried, by their evidence alone;
 * NaN where that is not known, or decides nothing. */
static double probability(const tsr_solve *s, int k)
{
    double sum = 0.0;
    for (int i = 0; i < s->runs->n; i++)
        sum += exp(verdict_of(s, i)->evidence.log -
                   verdict_of(s, k)->evidence.log);
    return s->says == TSR_GAIN_CLEAR || s->says == TSR_GAIN_NONE ? 1.0 / sum
                                                                 : (double)NAN;
}

static void put_run(const tsr_solve *s, int k, tsr_json *j)
{
    const tsr_compared *r = &s->runs->run[k];
    const tsr_verdict *v = r->verdict;
    double gain, error;
    tsr_json_object(j, NULL);
    tsr_json_integer(j, "states", k + 1);
    tsr_json_text(j, "directory", r->directory);
    tsr_evidence_put(&v->evidence, "evidence", j);
    tsr_loo_put(&v->loo, "loo", j);
    if (k > 0) {
        const tsr_gain says =
            tsr_evidence_gain(s->runs, k - 1, k, &gain, &error);
        tsr_json_number(j, "gain", gain);
        tsr_json_number(j, "gain_error", error);
        tsr_json_truth(j, "gain_counts", says == TSR_GAIN_CLEAR);
        (void)tsr_loo_gain(s->runs, k - 1, k, &gain, &error);
        tsr_json_number(j, "loo_gain", gain);
        tsr_json_number(j, "loo_gain_error", error);
    }
    tsr_json_number(j, "probability", probability(s, k));
    if (v->n_curve > 0)
        tsr_verdict_put_interval(j, "chi2", &v->curve[0].draws);
    tsr_verdict_put_interval(j, "rg", &v->rg);
    tsr_verdict_put_interval(j, "d_max", &v->d_max);
    tsr_json_truth(j, "converged", is_converged(s, k));
    tsr_json_text(j, "worst", v->advice.worst);
    tsr_json_number(j, "ess", v->ess);
    tsr_json_integer(j, "n_draw", r->past.n_draw);
    tsr_json_close(j);
}

/* What the runs say together. */
static tsr_status put_answer(const tsr_solve *s, tsr_json *j, tsr_err *err)
{
    const tsr_verdict *v = verdict_of(s, s->chosen);
    int converged = 1;
    for (int k = 0; k < s->runs->n; k++)
        converged &= is_converged(s, k);
    tsr_json_integer(j, "states", s->chosen + 1);
    tsr_json_truth(j, "undecided", s->says == TSR_GAIN_UNDECIDED);
    tsr_json_truth(j, "converged", converged);
    tsr_verdict_put_interval(j, "rg", &v->rg);
    tsr_verdict_put_interval(j, "d_max", &v->d_max);
    return tsr_verdict_put(v, "answer", j, err);
}

tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    const tsr_solve *s = solve;
    tsr_json j = {.out = out};
    int n;
    char **text;
    TSR_TRY(sentences(s, OF_MODEL | OF_RUNS, &n, &text, err));
    tsr_json_object(&j, NULL);
    tsr_json_array(&j, "verdict");
    for (int i = 0; i < n; i++)
        tsr_json_text(&j, NULL, text[i]);
    tsr_json_close(&j);
    tsr_paragraphs_free(n, text);
    tsr_json_text(&j, "directory", s->directory);
    tsr_json_text(&j, "model", s->model);
    tsr_json_text(&j, "bodies", s->bodies);
    put_rigid(s, &j);
    tsr_json_array(&j, "flexible");
    for (int i = 0; i < s->flexible->n; i++)
        tsr_json_text(&j, NULL, s->flexible->item[i]);
    tsr_json_close(&j);
    tsr_json_array(&j, "runs");
    for (int k = 0; k < s->runs->n; k++)
        put_run(s, k, &j);
    tsr_json_close(&j);
    tsr_json_truth(&j, "finished", s->is_finished);
    tsr_status status = s->runs->n > 0 ? put_answer(s, &j, err) : TSR_OK;
    if (s->runs->n > 0 && s->is_finished) {
        const tsr_advice *more = &verdict_of(s, needy(s))->advice;
        tsr_json_text(&j, "more", more->command);
        tsr_json_number(&j, "more_seconds", more->seconds);
    } else {
        tsr_json_text(&j, "more", s->is_still ? NULL : s->again);
    }
    tsr_json_text(&j, "report", s->report);
    tsr_json_close(&j);
    return status;
}

/* ---- of a run ---- */

void tsr_solve_name_run(const char *model, int n_state, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *file = tsr_text_file_name(model);
    char number[32];
    if (file[strspn(file, plain)] != '\0')
        file = "the model";
    snprintf(text, size, "name=%.80s with %s", file, states(n_state, number));
}
