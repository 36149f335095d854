/* A verdict in words. Whoever reads it knows proteins and scattering, not
 * sampling: no sentence needs the log or the manual to be understood, and every
 * number in it stands in the JSON object too. */
#include "answer/verdict.h"

#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Decimals that show the first digit of the spread. */
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

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* ---- the sentences, each a function; what has nothing to say says nothing,
 * and a new line begins a new paragraph */

static void say_state_of_run(const tsr_verdict *v, tsr_words *w)
{
    if (!v->has_data)
        tsr_words_say(w, "This run saw no data: what follows is the prior. ");
    if (!v->advice.is_converged && v->advice.worst[0] != '\0')
        tsr_words_say(w,
                      "Not converged yet (%s), so what follows may still "
                      "change.",
                      v->advice.worst);
    else if (!v->advice.is_converged)
        tsr_words_say(w, "Too few draws to tell whether the run has converged, "
                         "so what follows may still change.");
}

const char *tsr_verdict_why(double reduced_chi2, double cormap_p, double noise)
{
    static const char *const text[2][3] = {
        {"residuals are no larger than the noise",
         "residuals change their sign as by chance and are no larger than the "
         "noise",
         "residuals keep their sign for longer than by chance"},
        {"residuals are larger than the noise",
         "residuals are larger than the noise",
         "residuals are larger than the noise, and keep their sign for longer "
         "than by chance"}};
    return text[!tsr_verdict_fits(reduced_chi2, 1.0, noise)]
               [isnan(cormap_p) ? 0 : 2 - tsr_verdict_fits(0.0, cormap_p, 1.0)];
}

static void say_draws(const tsr_verdict_curve *c, tsr_words *w)
{
    const double noise = c->noise.level;
    char cormap[48];
    if (!isfinite(c->chi2))
        return;
    tsr_words_say(
        w,
        "The structures that were drawn %s %s: their mean curve has chi2 "
        "%.3g%s (%s).",
        tsr_verdict_fits(c->chi2, c->cormap_p, noise) ? "fit" : "do not fit",
        c->name, c->chi2, tsr_cormap_text(", CorMap p ", c->cormap_p, cormap),
        tsr_verdict_why(c->chi2, c->cormap_p, noise));
}

/* A number to compare that of the draws with. Whether the rigid model fits is
 * said by profile and solve, of all atoms. */
static void say_rigid(const tsr_verdict_curve *c, tsr_words *w)
{
    if (c->rigid.n_point > 0 && isfinite(c->chi2))
        tsr_words_say(w,
                      " By the same bodies the structure as it was given, kept "
                      "rigid, has chi2 %.3g (for all atoms see tessera "
                      "profile).",
                      c->rigid.chi2);
}

/* How large the residuals are, and which part of them is noise. */
static void say_noise(const tsr_verdict_curve *c, tsr_words *w)
{
    const tsr_convergence *s = &c->noise_scale;
    char text[64];
    const double residual = isfinite(s->mean) ? s->mean : sqrt(c->chi2);
    if (isfinite(s->mean))
        tsr_words_say(w, " The residuals are %s times the stated errors%s.",
                      tsr_verdict_interval(s, text),
                      isnan(c->noise.next)
                          ? "; neighbouring points do not tell noise from "
                            "misfit here"
                          : "");
    (void)tsr_saxs_noise_say(&c->noise, residual, w);
}

static void say_fit(const tsr_verdict *v, tsr_words *w)
{
    for (int k = 0; k < v->n_curve; k++) {
        if (k > 0)
            tsr_words_say(w, "\n");
        say_draws(&v->curve[k], w);
        say_rigid(&v->curve[k], w);
        say_noise(&v->curve[k], w);
    }
}

/* How far each domain moves about its mean place, of one state. */
static void say_spread(const tsr_verdict *v, int s, tsr_words *w)
{
    const tsr_arrangements *a = v->arrangements;
    const tsr_domains *d = a->domains;
    char name[120];
    tsr_domain_name(v->atoms, &d->domain[a->fixed], sizeof name, name);
    tsr_words_say(w, " When draws are superposed on %s", name);
    if (a->n_state > 1)
        tsr_words_say(w, " of state %d", s + 1);
    for (int k = 0; k < d->n_domain; k++) {
        if (k == a->fixed)
            continue;
        tsr_domain_name(v->atoms, &d->domain[k], sizeof name, name);
        const double by = a->moves[s * d->n_domain + k];
        tsr_words_say(w, ", %s moves by %.*f Angstrom", name,
                      by < 1.0    ? 2
                      : by < 10.0 ? 1
                                  : 0,
                      by);
    }
    tsr_words_say(w, " about its mean place (root mean square).");
}

static void say_motion(const tsr_verdict *v, tsr_words *w)
{
    enum { MOST = 8 };
    char text[64];
    for (int i = 0; i < v->n_motion && i < MOST; i++) {
        const tsr_verdict_motion *m = &v->motion[i];
        tsr_words_say(w, "%s%s", i == 0 ? "What moves: " : "; ", m->where);
        if (m->state > 0)
            tsr_words_say(w, " of state %d", m->state);
        tsr_words_say(w,
                      m->is_tail ? ", %s Angstrom from end to end"
                                 : ", centres %s Angstrom apart",
                      tsr_verdict_interval(&m->distance, text));
    }
    if (v->n_motion > MOST)
        tsr_words_say(w, "; and %d more (summary --json)", v->n_motion - MOST);
    if (v->n_motion > 0)
        tsr_words_say(w, " (mean, and in brackets where 90 %% of the draws "
                         "lie).");
    for (int s = 0; v->arrangements != NULL && v->atoms != NULL &&
                    s < v->arrangements->n_state;
         s++)
        say_spread(v, s, w);
}

static void say_guinier(const tsr_verdict_curve *c, int is_one, tsr_words *w)
{
    const double sure = 3.0;
    const tsr_guinier *g = &c->guinier;
    const tsr_convergence *m = &c->guinier_draws;
    char text[64];
    if (g->n == 0 || !isfinite(m->mean))
        return;
    tsr_words_say(w,
                  "%s%s sees it, with its water, Guinier's Rg is %s Angstrom",
                  is_one ? " As " : "\nAs ", is_one ? "the curve" : c->name,
                  tsr_verdict_interval(m, text));
    tsr_words_say(w,
                  "; the measured curve has %.*f +- %.*f over the same points "
                  "(q %.3f to %.3f).",
                  decimals(g->error), g->rg, decimals(g->error), g->error,
                  g->q[0], g->q[1]);
    if (fabs(m->mean - g->rg) > sure * hypot(g->error, m->sd))
        tsr_words_say(w, " They differ by more than their errors: there may be "
                         "more flexibility than the model has, a part that it "
                         "lacks, another oligomer, aggregates, or a buffer "
                         "that does not match.");
}

/* Data sets of one run that cannot be of one structure. */
static void say_conflicts(const tsr_verdict *v, tsr_words *w)
{
    for (int b = 0; b < v->n_curve; b++)
        for (int a = 0; a < b; a++) {
            const tsr_verdict_curve *x = &v->curve[a], *y = &v->curve[b];
            double sigma;
            if (tsr_verdict_conflict(x, y, &sigma))
                tsr_words_say(
                    w,
                    "\n%s and %s cannot be of one structure: Guinier's "
                    "Rg is %.1f +- %.1f and %.1f +- %.1f Angstrom.",
                    x->name, y->name, x->guinier.rg, x->guinier.error,
                    y->guinier.rg, y->guinier.error);
        }
}

static void say_size(const tsr_verdict *v, tsr_words *w)
{
    char rg[64], d_max[64];
    if (!isfinite(v->rg.mean))
        return;
    tsr_words_say(w, "Size: Rg %s Angstrom of the molecule's mass",
                  tsr_verdict_interval(&v->rg, rg));
    if (isfinite(v->d_max.mean))
        tsr_words_say(w, ", D_max %s Angstrom",
                      tsr_verdict_interval(&v->d_max, d_max));
    tsr_words_say(w, ".");
    for (int k = 0; k < v->n_curve; k++)
        say_guinier(&v->curve[k], v->n_curve == 1, w);
    say_conflicts(v, w);
}

/* The main arrangements of one state: shares and chi2. */
static void say_state(const tsr_verdict *v, int s, tsr_words *w)
{
    const tsr_arrangements *a = v->arrangements;
    const int state = a->n_state > 1 ? s + 1 : 0;
    const int n_main = a->n_main[s], n_told = 4;
    int n = 0;
    if (s > 0)
        tsr_words_say(w, " ");
    if (state > 0)
        tsr_words_say(w, "State %d: ", state);
    if (a->n_group[s] == 1) {
        tsr_words_say(w,
                      "The domains have one arrangement: any two draws differ "
                      "by less than %.0f Angstrom on average.",
                      a->threshold_ang);
        return;
    }
    tsr_words_say(w,
                  "%d arrangements of the domains fit, %.0f Angstrom or more "
                  "from each other on average; %d hold%s 90 %% of the draws.",
                  a->n_group[s], a->threshold_ang, n_main,
                  n_main == 1 ? "s" : "");
    for (int i = 0; i < a->n && n < n_told && n < n_main; i++) {
        if (state > 0 && a->item[i].state != state)
            continue;
        tsr_words_say(w, "%s %.0f %%", n++ == 0 ? " The largest:" : ",",
                      100.0 * a->item[i].share);
        if (isfinite(a->item[i].chi2))
            tsr_words_say(w, " (chi2 %.3g)", a->item[i].chi2);
    }
    tsr_words_say(w, "%s.", n_main > n ? ", and smaller ones" : "");
}

static void say_arrangements(const tsr_verdict *v, tsr_words *w)
{
    for (int s = 0; v->arrangements != NULL && s < v->arrangements->n_state;
         s++)
        say_state(v, s, w);
}

/* Pairs of arrangements that a curve does not tell apart; the largest of them
 * by their shares. */
static void say_pairs(const tsr_verdict *v, tsr_open_kind kind, int n,
                      tsr_words *w)
{
    enum { MOST = 3 };
    int told = 0;
    tsr_words_say(w, "which arrangement is right among those that %s (",
                  kind == TSR_OPEN_MIRROR
                      ? "are mirror images, which no curve tells apart"
                      : "have one outline");
    for (int i = 0; i < v->n_open && told < MOST; i++) {
        const tsr_verdict_open *o = &v->open[i];
        if (o->kind != kind)
            continue;
        const tsr_arrangement *a = &v->arrangements->item[o->item[0]];
        const tsr_arrangement *b = &v->arrangements->item[o->item[1]];
        tsr_words_say(w, "%s%.0f %% and %.0f %%", told++ > 0 ? "; " : "",
                      100.0 * a->share, 100.0 * b->share);
        if (a->state > 0)
            tsr_words_say(w, " of state %d", a->state);
    }
    tsr_words_say(w, "%s)", n > told ? "; and others" : "");
}

static void say_bound(const tsr_verdict_open *o, tsr_words *w)
{
    tsr_words_say(w,
                  "%s, which piles up at the %s end of its prior, %g (because "
                  "of a missing part, another oligomer, more flexibility or a "
                  "wrong buffer; contrast.%s_range widens it)",
                  o->variable, o->is_low ? "lower" : "upper", o->value,
                  o->variable);
}

static void say_open(const tsr_verdict *v, tsr_words *w)
{
    int n_pair[TSR_OPEN_OUTLINE + 1] = {0}, n = 0;
    for (int i = 0; i < v->n_open; i++) {
        const tsr_verdict_open *o = &v->open[i];
        n_pair[o->kind]++;
        if (o->kind >= TSR_OPEN_MIRROR)
            continue; /* told together, below */
        tsr_words_say(w, n++ == 0 ? "The data do not decide: " : "; ");
        if (o->kind == TSR_OPEN_BOUND)
            say_bound(o, w);
        else
            tsr_words_say(w, "%s (its spread is %.0f %% of the prior's)",
                          o->variable, 100.0 * o->value);
    }
    for (tsr_open_kind kind = TSR_OPEN_MIRROR; kind <= TSR_OPEN_OUTLINE;
         kind++) {
        if (n_pair[kind] == 0)
            continue;
        tsr_words_say(w, n++ == 0 ? "The data do not decide: " : "; ");
        say_pairs(v, kind, n_pair[kind], w);
    }
    if (n > 0)
        tsr_words_say(w, ".");
}

static void say_models(const tsr_verdict *v, tsr_words *w)
{
    char text[TSR_EVIDENCE_TEXT];
    const int has_evidence =
        v->evidence.n_temp > 1 && isfinite(v->evidence.log);
    const int has_loo = isfinite(v->loo.elpd);
    if (!has_evidence && !has_loo)
        return;
    tsr_words_say(w, "To compare with other runs of the same data:");
    if (has_evidence)
        tsr_words_say(w, " log evidence %s%s",
                      tsr_evidence_tell(&v->evidence, text),
                      has_loo ? "," : "");
    if (has_loo)
        tsr_words_say(w,
                      " expected log predictive density %.1f +- %.1f nat "
                      "(PSIS-LOO)",
                      v->loo.elpd, v->loo.error);
    tsr_words_say(w, ".");
    if (v->loo.n_bad > 0)
        tsr_words_say(w,
                      " The latter rests on few draws at %d point%s (Pareto k "
                      "above 0.7).",
                      v->loo.n_bad, plural(v->loo.n_bad));
}

static void say_convergence(const tsr_verdict *v, tsr_words *w)
{
    if (v->advice.is_converged)
        tsr_words_say(w, "The run has converged (%s).", v->advice.asked);
}

static void (*const say[])(const tsr_verdict *,
                           tsr_words *) = {say_state_of_run,
                                           say_fit,
                                           tsr_verdict_say_measured,
                                           say_motion,
                                           tsr_verdict_say_moved,
                                           say_size,
                                           say_arrangements,
                                           say_open,
                                           say_models,
                                           say_convergence};
enum { N_SAY = sizeof say / sizeof *say };

tsr_status tsr_verdict_sentences(const tsr_verdict *verdict, int *n,
                                 char ***text, tsr_err *err)
{
    tsr_words w;
    tsr_words_begin(&w);
    for (int i = 0; i < N_SAY; i++) {
        say[i](verdict, &w);
        tsr_words_say(&w, "\n");
    }
    return tsr_words_paragraphs(&w, n, text, err);
}

tsr_status tsr_verdict_print(const tsr_verdict *verdict, FILE *out,
                             tsr_err *err)
{
    int n;
    char **text;
    TSR_TRY(tsr_verdict_sentences(verdict, &n, &text, err));
    for (int i = 0; i < n; i++)
        tsr_text_wrap(out, 0, 0, "", text[i]);
    tsr_paragraphs_free(n, text);
    char *advice = tsr_advice_text(&verdict->advice);
    if (advice != NULL && !verdict->advice.is_converged)
        fprintf(out, "To go on:\n    %s\n", advice);
    free(advice);
    return TSR_OK;
}
