/* tessera solve: goes from a model and curves to a verdict by means of other
 * commands: init, the fit of profile, run or resume for 1, 2, ... states, and
 * report. The state of a solve is only the files of these commands in its
 * folder, so that the same command continues after an interruption.
 * verdict.json and verdict.txt are rewritten whenever a further part of the
 * verdict is known. */
#include "commands/command.h"
#include "commands/solve.h"

#include "core/json.h"
#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"
#include "files/lock.h"
#include "likelihood/term_saxs.h"
#include "molecule/rigid_pose.h"
#include "posterior/setup.h"
#include "session/run_checkpoint.h"
#include "session/run_directory.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_STATES = 16 };

typedef struct {
    char *output, *device;
    tsr_strings set;
    long states, threads;
    double time_limit;
    tsr_data_options data;
    int sample, json;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "DIR", .doc = "output folder, instead of runs/MODEL"),
    TSR_FIELD(INT, "states", options, states, .argument = "N", .initial = "3",
              .min = 1, .max = MOST_STATES, .doc = "largest number of states"),
    TSR_FIELD(DOUBLE, "time-limit", options, time_limit, .argument = "S",
              .initial = "3600", .unit = "s", .max = 1e9,
              .doc = "time limit of each run; warm-up counts, but is never cut "
                     "short; 0: no limit"),
    TSR_FIELD(STRINGS, "set", options, set, .argument = "KEY=VALUE",
              .doc = "override a key of the configuration in new runs"),
    TSR_FIELD(STRING, "device", options, device, .argument = "DEVICE",
              .doc = "device, instead of device.use, as for run"),
    TSR_FIELD(INT, "threads", options, threads, .argument = "N", .min = 1,
              .max = 4096,
              .doc = "number of host threads, instead of device.threads"),
    TSR_OPTIONS_DATA(options),
    TSR_FIELD(
        BOOL, "sample", options, sample,
        .doc =
            "sample also if the rigid model fits and only tails are flexible"),
    TSR_FIELD(BOOL, "json", options, json,
              .doc = "print the verdict as one JSON object"),
    {0}};

/* ---- sentences of the verdict ----
 *
 * The JSON object contains the numbers behind each sentence. */

static int is_good(const tsr_profile_fit *fit)
{
    return tsr_verdict_fits(fit->reduced_chi2, fit->cormap_p, fit->noise);
}

/* Returns 1 where the rigid model fits every curve. */
static int fits_all(const tsr_solve *solve)
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

/* The run with the next number of states that is not excluded; -1: the number
 * is decided. */
static int find_rival(const tsr_solve *s)
{
    for (int k = s->chosen + 1; k < s->runs->n; k++)
        if (!s->runs->run[k].is_excluded &&
            isfinite(tsr_evidence_gain(s->runs, s->chosen, k).gain))
            return k;
    return -1;
}

/* The run that needs more draws most: of the chosen one and its rival the one
 * with the larger error; without a rival the chosen one where it has not
 * converged, else the first that has not; else the chosen one, of which there
 * could be twice as many. */
static int run_to_extend(const tsr_solve *s)
{
    const int rival = find_rival(s);
    if (rival >= 0)
        return verdict_of(s, rival)->evidence.error >
                       verdict_of(s, s->chosen)->evidence.error
                   ? rival
                   : s->chosen;
    for (int k = 0; k < s->runs->n && is_converged(s, s->chosen); k++)
        if (!is_converged(s, k))
            return k;
    return s->chosen;
}

/* ---- the verdict in sentences ---- */

/* Writes "2 states" to text [32]. */
static const char *states(int n, char text[32])
{
    snprintf(text, 32, "%d state%s", n, n == 1 ? "" : "s");
    return text;
}

/* Which of the first chain, all chains, and their mixture fits a curve. */
static void write_species(const tsr_profile_result *r, tsr_words *w)
{
    const tsr_profile_species *x = &r->species;
    if (x->n_chain > 0)
        tsr_words_add(
            w,
            " Its %d chains are identical: reduced chi2 is %.3g for the first "
            "alone, and %.3g for the best mixture, with %.0f %% of the mass in "
            "the assembly. %s.",
            x->n_chain, x->one.reduced_chi2, x->best.reduced_chi2,
            100.0 * x->fraction,
            is_good(&x->one)    ? "The first chain alone fits"
            : is_good(&x->best) ? "Only a mixture fits: sample it with species "
                                  "in solve.yaml (docs/domains.md)"
                                : "No mixture of the two fits");
}

static void write_rigid(const tsr_solve *s, tsr_words *w)
{
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_result *r = &s->rigid[k];
        const tsr_profile_fit *f = &r->fit;
        const tsr_saxs *saxs = s->saxs[k];
        char at[64], cormap[48];
        tsr_profile_bounds_text(f, at, sizeof at);
        tsr_words_add(
            w,
            "%sThe rigid model %s %s: reduced chi2 %.3g%s (%s), for %s, over "
            "%d points of q %.3f to %.3f, with scale, background, c1 %.3f and "
            "c2 %.2f at their best fit%s.",
            k > 0 ? " " : "", is_good(f) ? "fits" : "does not fit",
            tsr_text_file_name(saxs->path), f->reduced_chi2,
            tsr_cormap_text(", CorMap p ", f->cormap_p, cormap),
            tsr_verdict_fit_clause(f->reduced_chi2, f->cormap_p, f->noise),
            strcmp(s->bodies, "atoms") == 0
                ? "all atoms"
                : "two bodies per residue, as atoms are missing",
            saxs->n, saxs->q[0], saxs->q[saxs->n - 1], f->c1, f->c2, at);
        (void)tsr_saxs_noise_describe(&saxs->noise, sqrt(f->reduced_chi2), w);
        if (isfinite(saxs->rg_guinier) && isfinite(r->rg_guinier))
            tsr_words_add(w,
                          " Guinier's Rg is %.1f Angstrom in the data and %.1f "
                          "in the model's curve.",
                          saxs->rg_guinier, r->rg_guinier);
        write_species(r, w);
        tsr_words_add(w, saxs->entry.name[0] != '\0' ? " " : "");
        tsr_profile_describe_entry(r, saxs, w);
    }
    tsr_words_add(w, "\n");
}

static void write_motion(const tsr_solve *s, tsr_words *w)
{
    tsr_words_add(w, s->is_frozen   ? "No flexible residues were found in the "
                                      "model, so there is nothing to sample."
                     : s->is_enough ? "Only tails are flexible:"
                                    : "Flexible residues:");
    for (int i = 0; i < s->flexible->n; i++)
        tsr_words_add(w, "%s %s", i > 0 ? "," : "", s->flexible->item[i]);
    if (s->is_enough)
        tsr_words_add(w, ". The model fits the curve without their motion, so "
                         "they were not sampled.");
    else if (!s->is_frozen)
        tsr_words_add(w, "; the rest moves as rigid parts.");
    else if (!fits_all(s))
        tsr_words_add(
            w,
            " Possible next steps: name residues known to be flexible (under "
            "structure: of %s/solve.yaml, flexible: [\"A:10-20\"] instead of "
            "frozen: true; then the same command); try another model or "
            "oligomer, or add missing parts (tags, missing residues, sugars), "
            "above all if Rg differs; and check the curve itself (aggregates, "
            "concentration, buffer subtraction).",
            s->directory);
    tsr_words_add(w, "\n");
}

static void write_number(const tsr_solve *s, tsr_words *w)
{
    const int last = s->runs->n - 1, rival = find_rival(s);
    char text[32];
    if (rival >= 0)
        tsr_words_add(w, "It is undecided whether the data require %s or %d",
                      states(rival + 1, text), s->chosen + 1);
    else
        tsr_words_add(w, "The data require %s%s",
                      s->chosen == last ? "at least "
                      : s->chosen == 0  ? "no more than "
                                        : "",
                      states(s->chosen + 1, text));
    for (int k = 0; k <= last; k++)
        tsr_words_add(w, "%s P(%d) = %.3f", k == 0 ? ":" : ",", k + 1,
                      s->runs->run[k].probability);
    tsr_words_add(w,
                  ", among the numbers tried, with the prior 2^-n for n "
                  "states. A number is excluded by odds of %d to 1, less %d "
                  "errors.",
                  TSR_ODDS_DECISIVE, TSR_ODDS_ERRORS);
    if (rival >= 0) {
        const tsr_difference d = tsr_evidence_gain(s->runs, s->chosen, rival);
        tsr_words_add(w,
                      " The results below are those of %s; for those of %d: "
                      "tessera report %s.",
                      states(s->chosen + 1, text), rival + 1,
                      s->runs->run[rival].directory);
        if (!is_converged(s, s->chosen) || !is_converged(s, rival) ||
            fabs(d.log_odds) + TSR_ODDS_ERRORS * d.error >=
                log(TSR_ODDS_DECISIVE))
            tsr_words_add(w, " Longer runs may decide, first that of %s.",
                          states(run_to_extend(s) + 1, text));
        else
            tsr_words_add(w, " The errors are small: longer runs will not "
                             "decide, more precise or other data may.");
    }
    if (tsr_evidence_gain(s->runs, last - 1, last).log_odds >= 0.0)
        tsr_words_add(w, " Larger numbers were not tried (--states %d).",
                      last + 2);
    const tsr_difference loo = tsr_loo_gain(s->runs, last - 1, last);
    if (isfinite(loo.gain))
        tsr_words_add(w,
                      " Points left out of the fit are predicted %s by %d "
                      "states than by %d: the expected log predictive density "
                      "changes by %.1f +- %.1f nat (PSIS-LOO).",
                      loo.says == TSR_ODDS_FOR       ? "better"
                      : loo.says == TSR_ODDS_AGAINST ? "worse"
                                                     : "no better or worse",
                      last + 1, last, loo.gain, loo.error);
}

static void write_states(const tsr_solve *s, tsr_words *w)
{
    const int n = s->runs->n;
    const tsr_evidence *evidence = &verdict_of(s, n - 1)->evidence;
    if (n > 1 && isfinite(tsr_evidence_gain(s->runs, n - 2, n - 1).gain))
        write_number(s, w);
    else if (n > 1 || evidence->n_temp < 2 || !isfinite(evidence->log))
        tsr_words_add(w,
                      "The number of states that the data require is unknown: "
                      "the log evidence of %d is missing%s%s.",
                      n, evidence->why_not[0] ? ", " : "", evidence->why_not);
    else
        tsr_words_add(w, "Whether the data require more than one state %s.",
                      s->is_finished ? "was not tried" : "is not known yet");
    tsr_words_add(
        w, " States are not conformations: with n states the mean curve of n "
           "structures is compared with the data; the arrangements below are "
           "alternatives for each state that the data allow.\n");
}

static void write_convergence(const tsr_solve *s, tsr_words *w)
{
    int n = 0;
    char text[32];
    for (int k = 0; k < s->runs->n; k++)
        if (!is_converged(s, k))
            tsr_words_add(
                w, "%s%s (%s)",
                n++ > 0 ? ", " : "Not converged, so the results may change: ",
                states(k + 1, text), verdict_of(s, k)->advice.worst);
    tsr_words_add(w, n > 0 ? "." : "All runs have converged.");
}

/* Parts of the verdict: the rigid model, the runs. */
enum { OF_MODEL = 1, OF_RUNS = 2 };
static void write_verdict(const tsr_solve *s, int of, tsr_words *w)
{
    tsr_words_begin(w);
    if (of & OF_MODEL) {
        write_rigid(s, w);
        write_motion(s, w);
    }
    if ((of & OF_RUNS) && s->runs->n > 0) {
        write_states(s, w);
        write_convergence(s, w);
    }
}

/* ---- the verdict as text ---- */

/* Prints a row for each number of states, with the gains over the row above. */
static void print_table(const tsr_solve *s, FILE *out)
{
    fprintf(out, "\n  %-6s  %14s  %12s  %6s  %12s  %4s  %s\n", "states",
            "log evidence", "above before", "P", "LOO above", "chi2",
            "Rg, Angstrom");
    for (int k = 0; k < s->runs->n; k++) {
        const tsr_verdict *v = verdict_of(s, k);
        const int before = k > 0 ? k - 1 : 0;
        const tsr_difference evidence = tsr_evidence_gain(s->runs, before, k);
        const tsr_difference loo = tsr_loo_gain(s->runs, before, k);
        const double none = (double)NAN;
        fprintf(out, "%c %-6d", k == s->chosen ? '*' : ' ', k + 1);
        tsr_gain_print(out, 14, v->evidence.n_temp > 1 ? v->evidence.log : none,
                       v->evidence.error);
        tsr_gain_print(out, 12, k > 0 ? evidence.gain : none, evidence.error);
        tsr_gain_print(out, 6, s->runs->run[k].probability, none);
        tsr_gain_print(out, 12, k > 0 ? loo.gain : none, loo.error);
        fprintf(out, "  %4.3g  %.1f [%.1f, %.1f]\n",
                v->n_curve > 0 ? v->curve[0].draws.mean : (double)NAN,
                v->rg.mean, v->rg.q5, v->rg.q95);
    }
    fputs("  (nat; P: probability among the numbers tried; LOO: expected log "
          "predictive\n  density of left-out points; chi2, Rg: mean, and 90 % "
          "interval)\n",
          out);
}

tsr_status tsr_solve_print_model(const tsr_solve *solve, FILE *out,
                                 tsr_err *err)
{
    tsr_words words;
    write_verdict(solve, OF_MODEL, &words);
    TSR_TRY(tsr_words_print(&words, out, 0, "\n", err));
    if (solve->is_enough)
        fprintf(out, "\nTo sample them nevertheless:\n    %s\n", solve->again);
    return TSR_OK;
}

tsr_status tsr_solve_print_runs(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    const tsr_solve *s = solve;
    char number[32];
    if (s->runs->n > 0) {
        tsr_words words;
        write_verdict(s, OF_RUNS, &words);
        TSR_TRY(tsr_words_print(&words, out, 0, "\n", err));
        print_table(s, out);
        fprintf(out, "\nRun of %s, %s:\n", states(s->chosen + 1, number),
                s->runs->run[s->chosen].directory);
        tsr_verdict_write(verdict_of(s, s->chosen), &words);
        TSR_TRY(tsr_words_print(&words, out, 2, "", err));
        tsr_verdict_print_series(verdict_of(s, s->chosen), out, 2);
    }
    if (!s->is_finished) {
        fprintf(out, "\nNot finished. To continue:\n    %s\n", s->again);
    } else if (s->runs->n > 0) {
        char *more = tsr_advice_text(&verdict_of(s, run_to_extend(s))->advice);
        TSR_TRY(tsr_allocated(more, err));
        fprintf(out,
                "\n%s\n    %s\nThen repeat the solve command to update the "
                "verdict.\n",
                is_converged(s, run_to_extend(s)) ? "For more draws:"
                                                  : "To go on:",
                more);
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

/* ---- the verdict as JSON ---- */

static void write_json_rigid(const tsr_solve *s, tsr_json *j)
{
    tsr_json_array(j, "rigid");
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_result *r = &s->rigid[k];
        tsr_json_object(j, NULL);
        tsr_json_members(j, "curve %s fits %i", s->saxs[k]->path,
                         is_good(&r->fit));
        tsr_verdict_put_fit(j, &r->fit);
        tsr_json_members(
            j, "noise_by_neighbours %g rg_guinier %g rg_guinier_data %g",
            s->saxs[k]->noise.next, r->rg_guinier, s->saxs[k]->rg_guinier);
        tsr_profile_put_entry(s->saxs[k], j);
        const tsr_profile_species *x = &s->rigid[k].species;
        if (x->n_chain > 0)
            tsr_json_members(j,
                             "species{ chains %d chi2_one %g chi2_mixture %g "
                             "fraction %g }",
                             x->n_chain, x->one.reduced_chi2,
                             x->best.reduced_chi2, x->fraction);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static void put_sizes(const tsr_verdict *v, tsr_json *j)
{
    if (v->n_curve > 0)
        tsr_verdict_put_interval(j, "chi2", &v->curve[0].draws);
    tsr_verdict_put_interval(j, "rg", &v->rg);
    tsr_verdict_put_interval(j, "d_max", &v->d_max);
}

static void write_json_run(const tsr_solve *s, int k, tsr_json *j)
{
    const tsr_compared *r = &s->runs->run[k];
    const tsr_verdict *v = r->verdict;
    tsr_json_object(j, NULL);
    tsr_json_members(j, "states %d directory %s", k + 1, r->directory);
    tsr_evidence_put(&v->evidence, "evidence", j);
    tsr_loo_put(&v->loo, "loo", j);
    if (k > 0) {
        const tsr_difference d = tsr_evidence_gain(s->runs, k - 1, k);
        const tsr_difference loo = tsr_loo_gain(s->runs, k - 1, k);
        tsr_json_members(j,
                         "gain %g gain_error %g loo_gain %g loo_gain_error %g",
                         d.gain, d.error, loo.gain, loo.error);
    }
    tsr_json_members(j, "probability %g conclusion %s", r->probability,
                     r->is_excluded       ? "excluded"
                     : find_rival(s) >= 0 ? "undecided"
                                          : "possible");
    put_sizes(v, j);
    tsr_json_members(j, "converged %i worst %s ess %g n_draw %ld",
                     is_converged(s, k), v->advice.worst, v->ess,
                     (long)r->past.n_draw);
    tsr_json_close(j);
}

/* Returns 1 where the chosen run, or else the rigid model, fits all curves. */
static int answer_fits(const tsr_solve *s)
{
    int fits = s->runs->n > 0 || fits_all(s);
    for (int k = 0; s->runs->n > 0 && k < verdict_of(s, s->chosen)->n_curve;
         k++) {
        const tsr_verdict_curve *c = &verdict_of(s, s->chosen)->curve[k];
        fits &= tsr_verdict_fits(c->chi2, c->cormap_p, c->noise.level);
    }
    return fits;
}

/* What the runs say together. */
static tsr_status write_json_answer(const tsr_solve *s, tsr_json *j,
                                    tsr_err *err)
{
    const tsr_verdict *v = verdict_of(s, s->chosen);
    int converged = 1;
    for (int k = 0; k < s->runs->n; k++)
        converged &= is_converged(s, k);
    tsr_json_members(j, "states %d undecided %i converged %i worst %s",
                     s->chosen + 1, find_rival(s) >= 0, converged,
                     verdict_of(s, run_to_extend(s))->advice.worst);
    put_sizes(v, j);
    return tsr_verdict_put(v, "answer", j, err);
}

tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    const tsr_solve *s = solve;
    tsr_json j = {.out = out};
    tsr_words words;
    write_verdict(s, OF_MODEL | OF_RUNS, &words);
    tsr_json_object(&j, NULL);
    TSR_TRY(tsr_json_lines(&j, "verdict", &words, err));
    tsr_json_members(&j, "directory %s model %s bodies %s", s->directory,
                     s->model, s->bodies);
    write_json_rigid(s, &j);
    tsr_json_texts(&j, "flexible", s->flexible->n, s->flexible->item);
    tsr_json_array(&j, "runs");
    for (int k = 0; k < s->runs->n; k++)
        write_json_run(s, k, &j);
    tsr_json_close(&j);
    tsr_json_members(&j, "finished %i fits %i", s->is_finished, answer_fits(s));
    tsr_status status = s->runs->n > 0 ? write_json_answer(s, &j, err) : TSR_OK;
    if (s->runs->n > 0 && s->is_finished) {
        const tsr_advice *more = &verdict_of(s, run_to_extend(s))->advice;
        tsr_json_members(&j, "more %s more_seconds %g", more->command,
                         more->seconds);
    } else
        tsr_json_text(&j, "more", s->is_frozen ? NULL : s->again);
    tsr_json_text(&j, "report", s->report);
    tsr_json_close(&j);
    return status;
}

/* ---- the work ---- */

typedef struct {
    const tsr_args *args;
    const options *o; /* of them */
    FILE *out, *none; /* a log that prints nothing: results of other commands
                         are reported here */
    tsr_log *log;
    tsr_curves curves;
    tsr_pool pool; /* owns paths and arrays */
    int n_input;
    const char **input; /* [n_input] model, curves; map, NULL */
    const char *file;   /* the configuration */
    tsr_lock *lock;
    tsr_config config;
    tsr_profile_result *rigid;
    tsr_saxs **saxs;
    tsr_model_atoms *atoms;
    char *run[MOST_STATES]; /* folders */
    tsr_comparison runs;
    tsr_solve solve;
} work;

static void work_clear(work *w)
{
    for (int k = 0; k < w->solve.n_curve; k++) {
        tsr_profile_result_clear(&w->rigid[k]);
        tsr_saxs_free(w->saxs[k]);
    }
    tsr_comparison_clear(&w->runs);
    tsr_model_atoms_free(w->atoms);
    tsr_config_clear(&w->config);
    tsr_pool_clear(&w->curves.pool);
    tsr_pool_clear(&w->pool);
    tsr_lock_free(w->lock);
    if (w->none != NULL)
        fclose(w->none);
}

/* Path of a file in the folder; NULL: out of memory, which the pool records. */
static char *file_in(work *w, const char *name)
{
    return tsr_pool_format(&w->pool, "%s/%s", w->solve.directory, name);
}

static int exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* After a run or its report, whose remarks went to its log: what follows is of
 * another. */
static tsr_status close_run_log(work *w, tsr_status status)
{
    tsr_log_set_brief(w->log, 0);
    tsr_log_close(w->log);
    return status == TSR_E_NO ? TSR_OK
                              : status; /* not converged: reported below */
}

/* ---- the configuration ---- */

static tsr_status write_config(work *w, tsr_err *err)
{
    int n_folder = 0;
    const tsr_init_job job = {
        .model = w->input[0], .output = w->file, .curves = &w->curves};
    TSR_TRY(
        tsr_run_directory_make(w->solve.directory, &n_folder, &w->lock, err));
    const tsr_status status =
        tsr_init_model(&job, w->o->json ? w->none : w->out, w->log, err);
    if (status != TSR_OK) {
        tsr_run_directory_undo(w->solve.directory, 0, n_folder);
        tsr_lock_free(w->lock);
        w->lock = NULL;
    }
    return status;
}

/* The entry of `data:` with that file; NULL: there is none. */
static const tsr_term_options *find_data(const tsr_config *config,
                                         const char *path)
{
    const tsr_term_options *data = config->data.item;
    for (int k = 0; k < config->data.n; k++) {
        char **file = tsr_config_data_file(config, k);
        if (file != NULL && tsr_file_is_same(*file, path))
            return &data[k];
    }
    return NULL;
}

/* A folder belongs to one model and its data; refuses others. */
static tsr_status check_inputs(const work *w, tsr_err *err)
{
    for (int k = 0; w->input[k] != NULL; k++) {
        if (!exists(w->input[k]))
            return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s'",
                            w->input[k]);
        if (k == 0 ? tsr_file_is_same(w->config.structure.file, w->input[0])
                   : find_data(&w->config, w->input[k]) != NULL)
            continue;
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s' is of another %s than '%s'; choose another "
                        "folder with --output DIR",
                        w->file,
                        k == 0           ? "model"
                        : k < w->n_input ? "curve"
                                         : "map",
                        w->input[k]);
    }
    for (int k = 0; k < w->curves.n; k++)
        if (!tsr_curves_suit(&w->curves, k,
                             find_data(&w->config, w->curves.path[k])))
            return tsr_fail(
                err, TSR_E_USAGE,
                "'%s' has '%s' in another solvent, of another kind or sample, "
                "or at another place of the series; change it there, or choose "
                "another folder with --output DIR",
                w->file, w->curves.path[k]);
    return TSR_OK;
}

static tsr_status make_config(work *w, tsr_err *err)
{
    const char *output = w->o->output;
    const char *name = tsr_text_file_name(w->input[0]);
    if (output != NULL && *output == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    /* name of the model without its endings */
    w->solve.directory = output != NULL
                             ? output
                             : tsr_pool_format(&w->pool, "runs/%.*s",
                                               (int)strcspn(name, "."), name);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->file = file_in(w, "solve.yaml");
    TSR_TRY(tsr_pool_check(&w->pool, err));
    if (!exists(w->file)) {
        TSR_TRY(write_config(w, err));
    } else {
        TSR_TRY(tsr_lock_acquire(w->solve.directory, &w->lock, err));
        tsr_info(w->log, "continuing with %s", w->file);
    }
    TSR_TRY(tsr_config_read(w->file, w->o->set.n,
                            (const char *const *)w->o->set.item, &w->config,
                            err));
    return check_inputs(w, err);
}

/* ---- the rigid fit ---- */

/* Several devices are for chains: a fit takes one. */
static const char *single_device(const work *w)
{
    const char *device =
        w->o->device != NULL ? w->o->device : w->config.device.use;
    return device == NULL || strchr(device, ',') != NULL ||
                   strncmp(device, "all", 3) == 0
               ? "auto"
               : device;
}

/* Number of chains of a structure if all are proteins of one sequence; else 0.
 * keep [n_residue] out: the residues of the first chain and its ligands. */
static int identical_chains(const tsr_atoms *atoms, int *keep)
{
    const tsr_file_residue *r = atoms->residue;
    int n = 0, length = 0;
    for (int i = 0; i < atoms->n_residue; i++) {
        keep[i] = strcmp(r[i].chain, r[0].chain) == 0;
        length += keep[i] && r[i].kind == TSR_MOLECULE_PROTEIN;
    }
    for (int i = 0; i < atoms->n_residue && length > 0; i++) {
        if (r[i].kind == TSR_MOLECULE_NUCLEOTIDE)
            return 0;
        if (r[i].kind == TSR_MOLECULE_PROTEIN &&
            strcmp(r[i].name, r[n++ % length].name) != 0)
            return 0;
    }
    return length > 0 && n > length && n % length == 0 ? n / length : 0;
}

static tsr_profile_spec spec_of(const work *w, int k, tsr_profile_bodies bodies,
                                const tsr_neutron *neutron)
{
    return (tsr_profile_spec){.bodies = bodies,
                              .method = TSR_METHOD_AUTO,
                              .solvent = TSR_SOLVENT_LAYER,
                              .density = w->config.solvent.density,
                              .neutron = neutron,
                              .device = single_device(w),
                              .q_max_inv_ang = tsr_saxs_q_max(w->saxs[k])};
}

/* Computes the model with all atoms, or with bodies, as a run writes the model,
 * where atoms are missing. Bodies have no tables for neutrons (NULL: X-rays).
 */
static tsr_status compute(work *w, const tsr_neutron *neutron, int k,
                          tsr_profile_structure *to, tsr_err *err)
{
    static const char *const name[] = {"atoms", "two"};
    static const tsr_profile_bodies bodies[] = {TSR_PROFILE_ATOMS,
                                                TSR_PROFILE_TWO};
    tsr_err local = {.status = TSR_OK};
    tsr_status status = TSR_E_DATA;
    for (int two = 0; two < 2 && status == TSR_E_DATA; two++) {
        tsr_profile_maker *maker = NULL;
        const tsr_profile_spec spec = spec_of(w, k, bodies[two], neutron);
        if (two && neutron != NULL)
            break;
        w->solve.bodies = name[two];
        tsr_profile_structure_clear(to);
        status = tsr_profile_maker_new(&spec, w->log, &maker, &local);
        TSR_THEN(status, tsr_profile_compute(maker, w->input[0], to, &local));
        tsr_profile_maker_free(maker);
        if (status != TSR_OK)
            tsr_debug(w->log, "rigid fit by %s: %s", name[two], local.message);
    }
    return status == TSR_OK ? status
                            : tsr_fail(err, status, "%s", local.message);
}

/* ---- one species or a mixture ----
 *
 * At a mass fraction f of the whole model, of n chains, the partial profiles of
 * the mixture are (1 - f) those of one chain + f / n those of all. A run with
 * `species:` samples f; here the best of a grid decides whether a mixture fits.
 */

/* n_chain 0 in the result: the model has no identical chains. */
static tsr_status compare_species(work *w, int k,
                                  const tsr_profile_fit_options *how,
                                  tsr_err *err)
{
    enum { STEPS = 100 };
    const tsr_saxs *saxs = w->saxs[k];
    const int n = TSR_N_COMP_PAIR * saxs->n;
    const tsr_profile_spec spec = spec_of(w, k, TSR_PROFILE_ATOMS, NULL);
    tsr_profile_species *x = &w->rigid[k].species;
    tsr_atoms *atoms = NULL, part = {0};
    tsr_pool pool = {0};
    tsr_profile_maker *maker = NULL;
    tsr_profile_structure first = {0};
    tsr_partial_curves one = {0}, all = {0}, mixed;
    double *curve;
    int *keep;
    TSR_TRY(tsr_atoms_read(w->input[0], &atoms, err));
    tsr_pool_array(&pool, keep, atoms->n_residue);
    tsr_pool_array(&pool, part.atom, atoms->n_atom);
    tsr_pool_array(&pool, part.residue, atoms->n_residue);
    tsr_pool_array(&pool, curve, saxs->n);
    double *const pair = tsr_pool_new(&pool, (size_t)n, sizeof *pair);
    tsr_status status = tsr_pool_check(&pool, err);
    x->n_chain = status == TSR_OK ? identical_chains(atoms, keep) : 0;
    if (x->n_chain > 0) {
        tsr_atoms_select(atoms, keep, &part);
        status = tsr_profile_maker_new(&spec, w->log, &maker, err);
        TSR_THEN(status, tsr_profile_compute_atoms(maker, w->input[0], &part, 0,
                                                   &first, err));
        TSR_THEN(status,
                 tsr_partial_curves_of_data(&first.partials, saxs, &one, err));
        TSR_THEN(status, tsr_partial_curves_of_data(
                             &w->rigid[k].structure.partials, saxs, &all, err));
    }
    mixed = all;
    mixed.pair = pair;
    for (int i = 0; i <= STEPS && x->n_chain > 0 && status == TSR_OK; i++) {
        const double f = (double)i / STEPS;
        tsr_profile_fit fit;
        for (int v = 0; v < n; v++)
            pair[v] = (1.0 - f) * one.pair[v] + f * (all.pair[v] / x->n_chain);
        status = tsr_profile_fit_make(&mixed, saxs->intensity, saxs->sigma, how,
                                      &fit, curve, err);
        tsr_profile_fit_set_noise(&fit, &saxs->noise);
        if (i == 0)
            x->one = x->best = fit;
        if (fit.chi2 < x->best.chi2)
            x->best = fit, x->fraction = f;
    }
    tsr_partial_curves_clear(&one);
    tsr_partial_curves_clear(&all);
    tsr_profile_structure_clear(&first);
    tsr_profile_maker_free(maker);
    tsr_pool_clear(&pool);
    tsr_atoms_free(atoms);
    return status;
}

/* Fits the model to a curve, over the points that runs use. */
static tsr_status fit_curve(work *w, int k, tsr_err *err)
{
    const tsr_term_options *entry = find_data(&w->config, w->input[k + 1]);
    const tsr_saxs_options *o = (const void *)entry;
    tsr_profile_result *r = &w->rigid[k];
    tsr_profile_fit_options how = tsr_profile_fit_defaults;
    const tsr_neutron_options *of = tsr_saxs_neutron(entry);
    tsr_neutron neutron;
    if (of != NULL) {
        TSR_TRY(tsr_neutron_make(of, &neutron, err));
        how.c1[0] = how.c1[1] = 1.0; /* settings as in profile and in runs */
    }
    how.fit_background = o->set.background.word >= 0 &&
                         o->set.background.word != TSR_BACKGROUND_NONE;
    how.background =
        o->set.background.word < 0 ? o->set.background.number : 0.0;
    TSR_TRY(tsr_saxs_read(o->file, (tsr_q_unit)o->q_unit, o->q_range, NULL,
                          &w->saxs[k], err));
    TSR_TRY(tsr_saxs_set_resolution(w->saxs[k], &o->resolution, NULL, err));
    tsr_status status =
        compute(w, of != NULL ? &neutron : NULL, k, &r->structure, err);
    TSR_THEN(status, tsr_profile_finish(&how, w->saxs[k], r, err));
    if (of == NULL && strcmp(w->solve.bodies, "atoms") == 0 &&
        tsr_resolution_is_ideal(&w->saxs[k]->resolution) && status == TSR_OK &&
        !is_good(&r->fit))
        status = compare_species(w, k, &how, err);
    TSR_THEN(status, tsr_profile_check_rg(r, w->saxs[k], w->log, err));
    return status;
}

/* Writes rigid.fit and its picture, rigid-2.fit for a second curve. */
static tsr_status write_fit(work *w, int k, tsr_err *err)
{
    char name[32] = "rigid.fit";
    if (k > 0)
        snprintf(name, sizeof name, "rigid-%d.fit", k + 1);
    const char *path = file_in(w, name);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    TSR_TRY(tsr_profile_check_output(path, 0, 1, w->input, w->input[k + 1],
                                     NULL, err));
    return tsr_profile_write_fit(path, w->input[0], w->saxs[k], &w->rigid[k],
                                 w->log, err);
}

static tsr_status fit_rigid(work *w, tsr_err *err)
{
    const int n = w->n_input - 1;
    tsr_status status = TSR_OK;
    tsr_pool_array(&w->pool, w->rigid, n);
    tsr_pool_array(&w->pool, w->saxs, n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->solve.n_curve = n;
    w->solve.rigid = w->rigid;
    w->solve.saxs = w->saxs;
    tsr_log_set_brief(w->log, 1);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        status = fit_curve(w, k, err);
        TSR_THEN(status, write_fit(w, k, err));
    }
    tsr_log_set_brief(w->log, 0);
    return status;
}

/* What may move, as a run takes it from the configuration. Tails alone that
 * curves do not ask for are sampled where that is wanted, or has begun. */
static tsr_status find_flexible(work *w, tsr_err *err)
{
    tsr_setup setup = {0};
    tsr_solve *s = &w->solve;
    const char *begun = file_in(w, "1");
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->config.prior.clash = TSR_CLASH_NONE; /* not needed here, and slow */
    tsr_status status = tsr_setup_read(&w->config, 0, NULL, &setup, err);
    if (status == TSR_OK) {
        s->is_frozen = w->config.structure.frozen;
        s->flexible = &w->config.structure.flexible;
        s->is_enough = s->n_curve > 0 && s->n_curve == w->config.data.n &&
                       fits_all(s) &&
                       tsr_only_tails_flexible(setup.molecule.topology) &&
                       !w->o->sample && !exists(begun);
        s->atoms = w->atoms = setup.molecule.model;
        setup.molecule.model = NULL;
        s->again = tsr_args_command(
            w->args, s->is_enough ? "tessera solve --sample" : "tessera solve",
            &w->pool);
        status = tsr_pool_check(&w->pool, err);
    }
    tsr_setup_clear(&setup);
    return status;
}

/* The verdict so far, in the folder. */
static tsr_status save_verdict(work *w, tsr_err *err)
{
    static tsr_status (*const print[])(const tsr_solve *, FILE *, tsr_err *) = {
        tsr_solve_print_json, tsr_solve_print};
    static const char *const name[] = {"verdict.json", "verdict.txt"};
    static const char *const begins[] = {"{\n \"verdict\": [", TSR_SOLVE_MARK};
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 && status == TSR_OK; i++) {
        const tsr_file_target target = {.maker = "solve"};
        tsr_file_writer to = {.out = NULL};
        const char *path = file_in(w, name[i]);
        status = tsr_pool_check(&w->pool, err);
        TSR_THEN(status,
                 tsr_file_check_target(&target, path, begins[i], NULL, err));
        TSR_THEN(status, tsr_file_begin(&to, path, err));
        TSR_THEN(status, print[i](&w->solve, to.out, err));
        status = tsr_file_end(&to, status, err);
    }
    return status;
}

/* ---- a run ---- */

/* Title of the report of a run, as `name=`: name of the model, if YAML reads it
 * as a text, and the number of states. text [size] out. */
static void name_run(const char *model, int n_state, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *file = tsr_text_file_name(model);
    char number[32];
    if (file[strspn(file, plain)] != '\0')
        file = "the model";
    snprintf(text, size, "name=%.80s with %s", file, states(n_state, number));
}

static tsr_status begin_run(work *w, int n_state, tsr_err *err)
{
    const tsr_strings *set = &w->o->set;
    char name[128], limit[64], states[64], evidence[] = "sampler.evidence=true";
    char *error = tsr_pool_format(
        &w->pool, "model_error.file=%s/model_error.h5", w->solve.directory);
    tsr_run_options o = {.output = w->run[n_state - 1],
                         .device = w->o->device,
                         .threads = w->o->threads};
    tsr_pool_array(&w->pool, o.set.item, set->n + 5);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    snprintf(states, sizeof states, "structure.states=%d", n_state);
    snprintf(limit, sizeof limit, "sampler.time_limit=%.17g", w->o->time_limit);
    name_run(w->input[0], n_state, name, sizeof name);
    o.set.item[o.set.n++] = name; /* before the keys set on the command line */
    o.set.item[o.set.n++] = limit;
    o.set.item[o.set.n++] = error;
    for (int i = 0; i < set->n; i++)
        o.set.item[o.set.n++] = set->item[i];
    o.set.item[o.set.n++] = states;
    o.set.item[o.set.n++] = evidence;
    tsr_log_set_brief(w->log, 1);
    return close_run_log(w,
                         tsr_run_execute(w->file, 0, &o, w->none, w->log, err));
}

/* Runs that are finished stay as they are. */
static tsr_status complete_run(work *w, int n_state, tsr_err *err)
{
    const char *directory = w->run[n_state - 1];
    const tsr_run_options o = {.device = w->o->device,
                               .threads = w->o->threads};
    char number[32];
    states(n_state, number);
    if (tsr_run_directory_require(directory, NULL) != TSR_OK) {
        tsr_info(w->log, "%s: %s", number, directory);
        return begin_run(w, n_state, err);
    }
    tsr_run_warn_if_changed(w->file, directory, w->log);
    const int is_finished = tsr_run_is_finished(directory);
    tsr_info(w->log, "%s: %s %s", number, directory,
             is_finished ? "is finished" : "goes on");
    if (is_finished)
        return TSR_OK;
    tsr_log_set_brief(w->log, 1);
    return close_run_log(
        w, tsr_run_execute(directory, 1, &o, w->none, w->log, err));
}

/* Makes one more run, as long as the last number of states is more probable
 * than the one before: probabilities first rise with the number, then fall. */
static tsr_status run_states(work *w, tsr_err *err)
{
    tsr_solve *s = &w->solve;
    char number[32];
    for (int k = 0; k < w->o->states; k++) {
        w->run[k] =
            tsr_pool_format(&w->pool, "%s/%d", w->solve.directory, k + 1);
        TSR_TRY(tsr_pool_check(&w->pool, err));
        tsr_status status = complete_run(w, k + 1, err);
        if (status == TSR_E_INTERRUPTED)
            return tsr_fail(err, status,
                            "interrupted in the run of %s; repeat the command "
                            "to continue",
                            states(k + 1, number));
        TSR_TRY(tsr_wrap(err, status, "'%s'", w->run[k]));
        TSR_TRY(tsr_comparison_add(&w->runs, w->run[k], w->log, err));
        for (s->chosen = 0; s->runs->run[s->chosen].is_excluded;)
            s->chosen++;
        TSR_TRY(save_verdict(w, err));
        if (!(tsr_evidence_gain(s->runs, k > 0 ? k - 1 : 0, k).log_odds >= 0.0))
            break; /* less probable, or no evidence to compare with */
    }
    return TSR_OK;
}

/* Writes the report of the chosen run, or without a run that of the rigid
 * model; it shows the stored verdict. */
static tsr_status write_report(work *w, tsr_err *err)
{
    const int is_run = w->runs.n > 0;
    const char *directory =
        is_run ? w->run[w->solve.chosen] : w->solve.directory;
    w->solve.report = tsr_pool_format(&w->pool, "%s/report.html", directory);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    TSR_TRY(save_verdict(w, err));
    if (!is_run)
        return tsr_report_rigid(&w->solve, w->log, err);
    tsr_log_set_brief(w->log, 1);
    tsr_parallel_limit(tsr_threads(w->o->threads));
    return close_run_log(
        w, tsr_report_run(directory, NULL, NULL, 0, w->none, w->log, err));
}

static tsr_status solve_all(work *w, tsr_err *err)
{
    const int is_json = w->o->json;
    tsr_solve *s = &w->solve;
    TSR_TRY(make_config(w, err));
    s->model = w->input[0];
    s->runs = &w->runs;
    TSR_TRY(fit_rigid(w, err));
    TSR_TRY(find_flexible(w, err));
    s->is_finished = s->is_frozen || s->is_enough;
    TSR_TRY(save_verdict(w, err));
    if (!is_json)
        TSR_TRY(tsr_solve_print_model(s, w->out, err));
    fflush(w->out); /* the runs dominate the time */
    tsr_status status = s->is_finished ? TSR_OK : run_states(w, err);
    if (status == TSR_OK) {
        s->is_finished = 1;
        status = write_report(w, err);
    }
    if (status != TSR_OK && status != TSR_E_INTERRUPTED)
        return status;
    /* The finished part is printed also after an interruption. */
    const tsr_status printed =
        (is_json ? tsr_solve_print_json : tsr_solve_print_runs)(s, w->out,
                                                                NULL);
    return status != TSR_OK    ? status
           : printed != TSR_OK ? tsr_no_memory(err)
                               : TSR_OK;
}

/* The model and all curves. */
static tsr_status read_inputs(work *w, tsr_err *err)
{
    TSR_TRY(tsr_curves_read(w->args, &w->o->data, &w->curves, err));
    if (w->curves.n == 0 && w->o->data.map == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "expected MODEL CURVE..., MODEL --sans FILE=X, or "
                        "MODEL --map MAP --resolution R");
    w->n_input = w->curves.n + 1;
    tsr_pool_array(&w->pool, w->input, w->n_input + 2);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->input[0] = w->args->argument[0];
    for (int k = 0; k < w->curves.n; k++)
        w->input[k + 1] = w->curves.path[k];
    w->input[w->n_input] = w->o->data.map;
    w->none = fopen("/dev/null", "w");
    return w->none != NULL ? TSR_OK
                           : tsr_fail(err, TSR_E_IO, "cannot open '/dev/null'");
}

static tsr_status print_checksums(const work *w, tsr_err *err)
{
    for (int k = 0; w->input[k] != NULL; k++) {
        char *data;
        size_t size;
        TSR_TRY(tsr_file_read(w->input[k], &data, &size, err));
        fprintf(w->out, "%s, %zu bytes, checksum %016llx\n",
                tsr_text_file_name(w->input[k]), size,
                (unsigned long long)tsr_checksum(0, data, size));
        free(data);
    }
    return TSR_OK;
}

tsr_status tsr_solve_check(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    work w = {.args = args, .o = args->options, .out = out, .log = log};
    const tsr_init_job job = {.model = args->argument[0], .curves = &w.curves};
    tsr_status status = read_inputs(&w, err);
    TSR_THEN(status, tsr_init_model(&job, w.none, log, err));
    TSR_THEN(status, print_checksums(&w, err));
    work_clear(&w);
    return status;
}

static tsr_status solve(const tsr_args *args, FILE *out, tsr_log *log,
                        tsr_err *err)
{
    work w = {.args = args, .o = args->options, .out = out, .log = log};
    tsr_status status = read_inputs(&w, err);
    TSR_THEN(status, solve_all(&w, err));
    work_clear(&w);
    return status;
}

const tsr_command tsr_command_solve = {
    .name = "solve",
    .doc = "from a model and curves to an answer, in one command",
    .arguments = "MODEL [CURVE]...",
    .options = fields,
    .size = sizeof(options),
    .about = "CURVEs are X-ray curves; give neutron curves with --sans, a "
             "density map with --map. Writes DIR/solve.yaml as init does, or "
             "uses an existing one; fits the rigid model to the curves, with "
             "all atoms, as profile does. If the model fits and only tails are "
             "flexible, solve stops there (--sample continues). Else it "
             "samples with 1, 2, ... states in DIR/1, DIR/2, ..., each until "
             "convergence or the time limit, as long as each number is more "
             "probable than the one before. Ends with a verdict, its table, "
             "and the report of the run with the smallest number of states "
             "that the data do not exclude (as for compare); DIR/verdict.txt "
             "and verdict.json contain the verdict, also while runs are going "
             "on.\n\nThe same "
             "command continues after Ctrl-C, a kill, or 'tessera resume' of "
             "one of the runs: finished runs are not repeated. A run keeps the "
             "settings that it began with; move its folder to begin it anew.",
    .run = solve};
