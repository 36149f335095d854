#include "cli/evaluate_report.h"

#include "core/json.h"
#include "io/file.h"

#include <stdlib.h>
#include <string.h>

static const char *bodies_word(const tsr_evaluated_row *row)
{
    const tsr_evaluated_table *t = row->table;
    tsr_body_model model =
        t->plain != NULL ? t->plain->model : t->components->model;
    return model == TSR_BODIES_TWO ? "two" : "one";
}

static void print_head(int width, const char *what, FILE *out)
{
    fprintf(out, "%-*s  bodies  %-9s", width, "table", what);
    for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
        char range[32];
        snprintf(range, sizeof range, "%g-%g", tsr_error_band[b],
                 tsr_error_band[b + 1]);
        fprintf(out, " %8s", range);
    }
    fprintf(out, "\n");
}

static void print_row(const tsr_evaluated_row *row, int width, FILE *out)
{
    char what[32];
    if (row->table->plain != NULL)
        snprintf(what, sizeof what, "%s", row->with_self ? "yes" : "no");
    else
        snprintf(what, sizeof what, "%.2f %4g", row->c1, row->c2);
    fprintf(out, "%-*s  %-6s  %-9s", width, row->table->name, bodies_word(row),
            what);
    for (int b = 0; b < TSR_ERROR_N_BAND; b++)
        fprintf(out, " %8.2f", 100.0 * row->summary.band[b]);
    fprintf(out, "\n");
}

void tsr_evaluate_print(const tsr_evaluate_report *report, FILE *out)
{
    int width = 5;
    for (int r = 0; r < report->n_row; r++) {
        int n = (int)strlen(report->row[r].table->name);
        width = n > width ? n : width;
    }
    fprintf(out,
            "%d structures of %d: those that no table was trained on.\n"
            "I(q) against all atoms: median over the structures of the rms "
            "relative\nerror, in %%, by q in 1/A; scale matched below 0.1.\n",
            report->n_structure, report->n_given);
    for (int r = 0; r < report->n_row; r++) {
        const tsr_evaluated_row *row = &report->row[r];
        int plain = row->table->plain != NULL;
        int first = r == 0 || plain != (row[-1].table->plain != NULL);
        if (first) {
            fprintf(out, "\n");
            print_head(width, plain ? "S(q)" : "c1     c2", out);
        }
        print_row(row, width, out);
    }
}

void tsr_evaluate_json(const tsr_evaluate_report *report, FILE *out)
{
    tsr_json j = {.out = out, .digits = 6};
    double q[TSR_ERROR_N_Q];
    for (int k = 0; k < TSR_ERROR_N_Q; k++)
        q[k] = k * TSR_ERROR_DQ;
    tsr_json_object(&j, NULL);
    tsr_json_integer(&j, "n_structure", report->n_structure);
    tsr_json_numbers(&j, "band_inv_ang", TSR_ERROR_N_BAND + 1, tsr_error_band);
    tsr_json_numbers(&j, "q_inv_ang", TSR_ERROR_N_Q, q);
    tsr_json_array(&j, "rows");
    for (int r = 0; r < report->n_row; r++) {
        const tsr_evaluated_row *row = &report->row[r];
        const int is_plain = row->table->plain != NULL;
        tsr_json_object(&j, NULL);
        tsr_json_text(&j, "table", row->table->name);
        tsr_json_text(&j, "bodies", bodies_word(row));
        tsr_json_integer(&j, "components", is_plain ? 1 : TSR_N_COMP);
        if (is_plain) {
            tsr_json_truth(&j, "self", row->with_self);
        } else {
            tsr_json_number(&j, "c1", row->c1);
            tsr_json_number(&j, "c2", row->c2);
        }
        tsr_json_numbers(&j, "median_rms_relative_error", TSR_ERROR_N_BAND,
                         row->summary.band);
        tsr_json_numbers(&j, "median_relative_error_by_q", TSR_ERROR_N_Q,
                         row->summary.curve);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_close(&j);
}

tsr_status tsr_evaluate_csv(const tsr_evaluate_report *report, const char *path,
                            tsr_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    fprintf(out, "q_inv_ang");
    for (int r = 0; r < report->n_row; r++) {
        const tsr_evaluated_row *row = &report->row[r];
        fprintf(out, ",%s", row->table->name);
        if (row->table->plain == NULL)
            fprintf(out, " c1=%g c2=%g", row->c1, row->c2);
        else if (row->with_self)
            fprintf(out, " S");
    }
    fprintf(out, "\n");
    for (int k = 0; k < TSR_ERROR_N_Q; k++) {
        fprintf(out, "%.2f", k * TSR_ERROR_DQ);
        for (int r = 0; r < report->n_row; r++)
            fprintf(out, ",%.6g", report->row[r].summary.curve[k]);
        fprintf(out, "\n");
    }
    tsr_status s = fclose(out) == 0
                       ? tsr_file_replace(path, text, size, err)
                       : tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    free(text);
    return s;
}
