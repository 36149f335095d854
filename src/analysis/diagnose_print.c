#include "analysis/diagnose.h"

#include "core/text.h"

#include <math.h>

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

static void number(FILE *out, double x)
{
    if (isfinite(x))
        fprintf(out, "%.17g", x);
    else
        fputs("null", out);
}

static void text_or_null(FILE *out, const char *text)
{
    if (text != NULL)
        tsr_text_json(out, text);
    else
        fputs("null", out);
}

static void print_checks(const tsr_diagnosis *d, FILE *out)
{
    for (int i = 0; i < d->n; i++) {
        const tsr_check *c = &d->check[i];
        fprintf(out,
                "%s{\"name\": \"%s\", \"asks\": \"%s\", \"answer\": \"%s\", "
                "\"value\": ",
                i > 0 ? ",\n  " : "", c->name, c->asks, answer_name[c->answer]);
        number(out, c->value);
        fputs(", \"limit\": ", out);
        number(out, c->limit);
        fputs(", \"found\": ", out);
        text_or_null(out, c->found);
        fputs(", \"remedy\": ", out);
        text_or_null(out, c->remedy);
        fputc('}', out);
    }
}

static void print_curve(const tsr_curve_summary *c, FILE *out)
{
    static const char *const key[] = {"q", "rhat", "ess_bulk"};
    tsr_text_json(out, c->name);
    fputs(": {", out);
    for (int what = 0; what < 3; what++) {
        fprintf(out, "%s\"%s\": [", what > 0 ? ", " : "", key[what]);
        for (int k = 0; k < c->n; k++) {
            fputs(k > 0 ? ", " : "", out);
            number(out, what == 0   ? c->q[k]
                        : what == 1 ? c->point[k].rhat
                                    : c->point[k].ess_bulk);
        }
        fputc(']', out);
    }
    fputc('}', out);
}

void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out)
{
    const tsr_summary *s = diagnosis->summary;
    fprintf(out,
            "{\"converged\": %s, \"n_chain\": %d, \"n_draw\": %d,\n "
            "\"checks\": [",
            diagnosis->is_converged ? "true" : "false", diagnosis->n_chain,
            diagnosis->n_draw);
    print_checks(diagnosis, out);
    fputs("],\n \"variables\": {", out);
    for (int i = 0; i < s->n; i++) {
        fputs(i > 0 ? ",\n  " : "", out);
        tsr_text_json(out, s->item[i].name);
        fputs(": {\"rhat\": ", out);
        number(out, s->item[i].value.rhat);
        fputs(", \"ess_bulk\": ", out);
        number(out, s->item[i].value.ess_bulk);
        fputs(", \"ess_tail\": ", out);
        number(out, s->item[i].value.ess_tail);
        fputc('}', out);
    }
    fputs("},\n \"curves\": {", out);
    for (int i = 0; i < diagnosis->n_curve; i++) {
        fputs(i > 0 ? ",\n  " : "", out);
        print_curve(diagnosis->curve[i], out);
    }
    fputs("}}\n", out);
}
