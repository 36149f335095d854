/* A diagnosis in words, for whoever sits before the terminal, and as JSON, for
 * programs that wait for convergence. */
#include "analysis/diagnose.h"

#include "core/json.h"
#include "core/text.h"

static const char *const answer_name[] = {
    [TSR_CHECK_YES] = "yes",
    [TSR_CHECK_NO] = "no",
    [TSR_CHECK_UNKNOWN] = "unknown",
    [TSR_CHECK_NOT_ASKED] = "not asked",
};

void tsr_diagnosis_print(const tsr_diagnosis *diagnosis, FILE *out)
{
    enum { INDENT = 9 };
    static const char *const shown[] = {"yes", "NO", "?", "-"};
    int n_no = 0;
    for (int i = 0; i < diagnosis->n; i++) {
        const tsr_check *c = &diagnosis->check[i];
        n_no += c->answer == TSR_CHECK_NO;
        fprintf(out, "  %-*s%s\n", INDENT - 2, shown[c->answer], c->asks);
        tsr_text_wrap(out, 0, INDENT, "", c->found);
        if (c->remedy != NULL) {
            fprintf(out, "%*s-> ", INDENT, "");
            tsr_text_wrap(out, INDENT + 3, INDENT + 3, "", c->remedy);
        }
    }
    if (diagnosis->is_converged)
        fputs("\nconverged, as far as these tests can tell\n", out);
    else if (n_no > 0)
        fprintf(out, "\nnot converged: %d answer%s no\n", n_no,
                n_no == 1 ? " is" : "s are");
    else
        fputs("\nnot shown to have converged: too little to tell from\n", out);
}

static void put_check(tsr_json *j, const tsr_check *c)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "name", c->name);
    tsr_json_text(j, "asks", c->asks);
    tsr_json_text(j, "answer", answer_name[c->answer]);
    tsr_json_number(j, "value", c->value);
    tsr_json_number(j, "limit", c->limit);
    tsr_json_text(j, "found", c->found);
    tsr_json_text(j, "remedy", c->remedy);
    tsr_json_close(j);
}

static void put_curve(tsr_json *j, const tsr_curve_summary *c)
{
    tsr_json_object(j, c->name);
    tsr_json_numbers(j, "q", c->n, c->q);
    tsr_json_array(j, "rhat");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].rhat);
    tsr_json_close(j);
    tsr_json_array(j, "ess_bulk");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].ess_bulk);
    tsr_json_close(j);
    tsr_json_close(j);
}

void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out)
{
    const tsr_summary *s = diagnosis->summary;
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_json_truth(&j, "converged", diagnosis->is_converged);
    tsr_json_integer(&j, "n_chain", diagnosis->n_chain);
    tsr_json_integer(&j, "n_draw", diagnosis->n_draw);
    tsr_json_array(&j, "checks");
    for (int i = 0; i < diagnosis->n; i++)
        put_check(&j, &diagnosis->check[i]);
    tsr_json_close(&j);
    tsr_json_object(&j, "variables");
    for (int i = 0; i < s->n; i++) {
        tsr_json_object(&j, s->item[i].name);
        tsr_json_number(&j, "rhat", s->item[i].value.rhat);
        tsr_json_number(&j, "ess_bulk", s->item[i].value.ess_bulk);
        tsr_json_number(&j, "ess_tail", s->item[i].value.ess_tail);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_object(&j, "curves");
    for (int i = 0; i < diagnosis->n_curve; i++)
        put_curve(&j, diagnosis->curve[i]);
    tsr_json_close(&j);
    tsr_json_close(&j);
}
