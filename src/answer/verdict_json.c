/* The numbers that the sentences of a verdict rest on, as JSON. */
#include "answer/verdict.h"

#include <math.h>

void tsr_verdict_put_interval(tsr_json *json, const char *name,
                              const tsr_convergence *value)
{
    tsr_json_object(json, name);
    tsr_json_number(json, "mean", value->mean);
    tsr_json_number(json, "q5", value->q5);
    tsr_json_number(json, "q95", value->q95);
    tsr_json_close(json);
}

void tsr_verdict_put_fit(tsr_json *json, const tsr_profile_fit *fit)
{
    tsr_json_number(json, "chi2", fit->chi2);
    tsr_json_number(json, "reduced_chi2", fit->reduced_chi2);
    tsr_json_number(json, "cormap_p", fit->cormap_p);
    tsr_json_number(json, "c1", fit->c1);
    tsr_json_number(json, "c2", fit->c2);
    tsr_json_number(json, "scale", fit->scale);
    tsr_json_number(json, "background", fit->background);
}

static void put_curve(tsr_json *j, const tsr_verdict_curve *c)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "curve", c->name);
    tsr_json_integer(j, "n_points", c->n);
    if (c->rigid.n_point > 0) {
        tsr_json_object(j, "rigid");
        tsr_verdict_put_fit(j, &c->rigid);
        tsr_json_close(j);
    } else
        tsr_json_text(j, "rigid", NULL);
    tsr_json_truth(j, "fits",
                   tsr_verdict_fits(c->chi2, c->cormap_p, c->noise.level));
    tsr_json_number(j, "chi2", c->chi2);
    tsr_json_number(j, "cormap_p", c->cormap_p);
    tsr_verdict_put_interval(j, "chi2_of_draws", &c->draws);
    tsr_verdict_put_interval(j, "noise_scale", &c->noise_scale);
    tsr_json_number(j, "noise_by_neighbours", c->noise.next);
    tsr_json_truth(j, "neighbours_share_noise", c->noise.is_shared);
    tsr_json_number(j, "rg_guinier_data", c->guinier.rg);
    tsr_json_number(j, "rg_guinier_data_error", c->guinier.error);
    tsr_json_numbers(j, "guinier_q_range", 2, c->guinier.q);
    tsr_verdict_put_interval(j, "rg_guinier", &c->guinier_draws);
    tsr_json_close(j);
}

/* Which curves cannot be of one structure. */
static void put_conflicts(tsr_json *j, const tsr_verdict *v)
{
    tsr_json_array(j, "conflicts");
    for (int b = 0; b < v->n_curve; b++)
        for (int a = 0; a < b; a++) {
            double sigma;
            if (!tsr_verdict_conflict(&v->curve[a], &v->curve[b], &sigma))
                continue;
            tsr_json_object(j, NULL);
            tsr_json_array(j, "curves");
            tsr_json_integer(j, NULL, a);
            tsr_json_integer(j, NULL, b);
            tsr_json_close(j);
            tsr_json_number(j, "standard_deviations", sigma);
            tsr_json_close(j);
        }
    tsr_json_close(j);
}

static void put_motion(tsr_json *j, const tsr_verdict *v)
{
    tsr_json_array(j, "motion");
    for (int i = 0; i < v->n_motion; i++) {
        const tsr_verdict_motion *m = &v->motion[i];
        tsr_json_object(j, NULL);
        tsr_json_text(j, "variable", m->variable);
        tsr_json_text(j, "where", m->where);
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
        tsr_json_object(j, NULL);
        tsr_json_text(j, "residues", name);
        tsr_json_truth(j, "superposed_on", k == a->fixed);
        tsr_json_array(j, "rms_displacement"); /* of each state */
        for (int s = 0; s < a->n_state; s++)
            tsr_json_number(j, NULL, a->moves[s * a->domains->n_domain + k]);
        tsr_json_close(j);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static void put_arrangement(tsr_json *j, const tsr_arrangement *item)
{
    tsr_json_object(j, NULL);
    if (item->state > 0)
        tsr_json_integer(j, "state", item->state);
    tsr_json_number(j, "share", item->share);
    tsr_json_number(j, "spread", item->spread);
    tsr_json_number(j, "chi2", item->chi2);
    tsr_json_integer(j, "chain", item->chain);
    tsr_json_integer(j, "draw", item->draw);
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
    tsr_json_object(j, "arrangements");
    tsr_json_number(j, "threshold", a->threshold_ang);
    tsr_json_integer(j, "conformations", a->n_frame);
    put_domains(j, v);
    tsr_json_array(j, "states");
    for (int s = 0; s < a->n_state; s++) {
        tsr_json_object(j, NULL);
        tsr_json_integer(j, "groups", a->n_group[s]);
        tsr_json_integer(j, "hold_90_percent", a->n_main[s]);
        tsr_json_close(j);
    }
    tsr_json_close(j);
    tsr_json_array(j, "largest");
    for (int i = 0; i < a->n; i++)
        put_arrangement(j, &a->item[i]);
    tsr_json_close(j);
    tsr_json_close(j);
}

static void put_open(tsr_json *j, const tsr_verdict *v)
{
    static const char *const kind[] = {[TSR_OPEN_BOUND] = "bound",
                                       [TSR_OPEN_WEIGHT] = "weight",
                                       [TSR_OPEN_MIRROR] = "mirror images",
                                       [TSR_OPEN_OUTLINE] = "same outline"};
    tsr_json_array(j, "undecided");
    for (int i = 0; i < v->n_open; i++) {
        const tsr_verdict_open *o = &v->open[i];
        tsr_json_object(j, NULL);
        tsr_json_text(j, "kind", kind[o->kind]);
        tsr_json_text(j, "variable", o->variable);
        tsr_json_number(j, "value", o->value);
        if (o->kind == TSR_OPEN_BOUND)
            tsr_json_text(j, "end", o->is_low ? "lower" : "upper");
        if (o->kind >= TSR_OPEN_MIRROR) {
            tsr_json_array(j, "arrangements");
            tsr_json_integer(j, NULL, o->item[0]);
            tsr_json_integer(j, NULL, o->item[1]);
            tsr_json_close(j);
        }
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

tsr_status tsr_verdict_put(const tsr_verdict *verdict, const char *name,
                           tsr_json *json, tsr_err *err)
{
    const tsr_verdict *v = verdict;
    int n;
    char **text;
    TSR_TRY(tsr_verdict_sentences(v, &n, &text, err));
    tsr_json_object(json, name);
    tsr_json_array(json, "sentences");
    for (int i = 0; i < n; i++)
        tsr_json_text(json, NULL, text[i]);
    tsr_json_close(json);
    tsr_paragraphs_free(n, text);
    tsr_json_integer(json, "states", v->n_state);
    tsr_json_array(json, "curves");
    for (int k = 0; k < v->n_curve; k++)
        put_curve(json, &v->curve[k]);
    tsr_json_close(json);
    put_conflicts(json, v);
    tsr_verdict_put_measured(v, json);
    tsr_verdict_put_interval(json, "rg", &v->rg);
    tsr_verdict_put_interval(json, "d_max", &v->d_max);
    put_motion(json, v);
    put_arrangements(json, v);
    tsr_evidence_put(&v->evidence, "evidence", json);
    tsr_loo_put(&v->loo, "loo", json);
    put_open(json, v);
    tsr_advice_put(&v->advice, json);
    tsr_json_close(json);
    return TSR_OK;
}
