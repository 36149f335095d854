/* From a table of numbers (saxs_table.c) to a curve: checks of q, I and sigma,
 * the unit of q, a model of sigma if the file has none, and Guinier's Rg. */
#include "scattering/saxs.h"

#include "files/file.h"
#include "molecule/structure.h"
#include "scattering/guinier.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MIN_ROWS = 5, LINES = 64 };

const char *tsr_q_unit_name(tsr_q_unit unit)
{
    return unit == TSR_Q_INV_NM ? "1/nm" : "1/Angstrom";
}

/* 1 if I and sigma can be a measurement. Other rows are dropped. */
static int is_usable(const double value[3])
{
    return isfinite(value[1]) && isfinite(value[2]) && value[2] > 0.0;
}

/* Requires q to be finite, at least 0 and sorted. This applies to every row of
 * the table, also to rows that are dropped later. Limits I and sigma so that
 * the sums of squares in a fit do not overflow; no detector reports such
 * numbers. */
static tsr_status check_rows(const char *path, const tsr_saxs_table *table,
                             tsr_err *err)
{
    const double most = 1e50;
    for (int i = 0; i < table->n; i++) {
        const tsr_saxs_row *row = &table->row[i];
        const double *v = row->value;
        if (!isfinite(v[0]) || v[0] < 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s', %s %ld: q = %g is %s; remove the %s", path,
                            table->noun, row->line, v[0],
                            isfinite(v[0]) ? "negative" : "not a finite number",
                            table->noun);
        if (i > 0 && v[0] < row[-1].value[0])
            return tsr_fail(err, TSR_E_DATA,
                            "'%s', %s %ld: q = %g comes after q = %g of %s "
                            "%ld; sort the rows by q, give one curve a file, "
                            "and begin headers with '#'",
                            path, table->noun, row->line, v[0],
                            row[-1].value[0], table->noun, row[-1].line);
        if (is_usable(v) &&
            (fabs(v[1]) > most || v[2] > most || v[2] < 1.0 / most))
            return tsr_fail(
                err, TSR_E_DATA,
                "'%s', %s %ld: I = %g, sigma = %g; expected I up to %g and "
                "sigma from %g to %g: give the curve in another unit",
                path, table->noun, row->line, v[1], v[2], most, 1.0 / most,
                most);
    }
    return TSR_OK;
}

/* Sets unit_in_file and unit_reason. Returns the factor to 1/Angstrom. */
static double decide_unit(tsr_saxs *saxs, const tsr_saxs_table *table,
                          tsr_q_unit requested, tsr_log *log)
{
    double q_max = table->row[table->n - 1].value[0];
    tsr_q_unit by_rule = q_max > 1 ? TSR_Q_INV_NM : TSR_Q_INV_ANG;
    if (requested != TSR_Q_AUTO) {
        saxs->unit_in_file = requested;
        snprintf(saxs->unit_reason, sizeof saxs->unit_reason, "config");
    } else if (table->unit != TSR_Q_AUTO) {
        saxs->unit_in_file = table->unit;
        snprintf(saxs->unit_reason, sizeof saxs->unit_reason, "header says %s",
                 tsr_q_unit_name(table->unit));
    } else {
        saxs->unit_in_file = by_rule;
        snprintf(saxs->unit_reason, sizeof saxs->unit_reason, "q_max %s 1",
                 q_max > 1 ? ">" : "<=");
    }
    tsr_info(log, "%s: q in %s (%s)", saxs->path,
             tsr_q_unit_name(saxs->unit_in_file), saxs->unit_reason);
    if (saxs->unit_in_file != by_rule)
        tsr_warn(log,
                 "%s: q_max = %g is unusual in %s; set q_unit (--q-unit) if "
                 "the unit is wrong",
                 saxs->path, q_max, tsr_q_unit_name(saxs->unit_in_file));
    return saxs->unit_in_file == TSR_Q_INV_NM ? 0.1 : 1.0;
}

/* For two columns: sigma = 0.03 |I| + 0.003 max I. */
static tsr_status model_sigma(tsr_saxs_table *table, const char *path,
                              tsr_log *log, tsr_err *err)
{
    double top = 0;
    for (int i = 0; i < table->n; i++)
        top = fmax(top, table->row[i].value[1]);
    if (!(top > 0))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': no I(q) is above 0 and there is no sigma "
                        "column; check the columns",
                        path);
    for (int i = 0; i < table->n; i++)
        table->row[i].value[2] =
            0.03 * fabs(table->row[i].value[1]) + 0.003 * top;
    tsr_warn(log,
             "%s: two columns, so sigma is stated, not measured: "
             "0.03 I(q) + 0.003 max I, max I = %g",
             path, top);
    return TSR_OK;
}

/* Appends the n-th line number to a list for a message. */
static void append_line_number(char lines[LINES], int n, long line)
{
    const int most = 5;
    const size_t used = strlen(lines);
    if (n <= most)
        snprintf(lines + used, LINES - used, "%s%ld", n > 1 ? ", " : "", line);
    else if (n == most + 1)
        snprintf(lines + used, LINES - used, ", ...");
}

/* Copies the usable rows inside q_range. Counts the other rows by reason. lines
 * out: line numbers of [0] rows that are not usable, [1] rows with repeated
 * q. */
static void copy_rows(tsr_saxs *saxs, const tsr_saxs_table *table,
                      double factor, const double *q_range,
                      char lines[2][LINES])
{
    double last = -1;
    for (int i = 0; i < table->n; i++) {
        const double *value = table->row[i].value;
        if (!is_usable(value)) {
            append_line_number(lines[0], ++saxs->n_dropped_sigma,
                               table->row[i].line);
            continue;
        }
        double q = value[0] * factor;
        if (q == last) {
            append_line_number(lines[1], ++saxs->n_dropped_duplicate,
                               table->row[i].line);
            continue;
        }
        last = q;
        if (q_range != NULL && (q < q_range[0] || q > q_range[1])) {
            saxs->n_outside++;
            continue;
        }
        saxs->q[saxs->n] = q;
        saxs->intensity[saxs->n] = value[1];
        saxs->sigma[saxs->n] = value[2];
        if (saxs->dq != NULL)
            saxs->dq[saxs->n] = value[3] * factor;
        saxs->n_negative += value[1] <= 0;
        saxs->n++;
    }
}

/* Guinier fit. The first value of Rg is 1.3 / q of the fifth point. If this
 * gives no consistent fit, because the first points are too noisy, twice as
 * many points are tried, and so on. */
static tsr_status fit_guinier(tsr_saxs *saxs, tsr_err *err)
{
    tsr_guinier g;
    saxs->rg_guinier = saxs->i0_guinier = (double)NAN;
    for (int i = MIN_ROWS; i <= saxs->n && saxs->n_guinier == 0; i *= 2) {
        TSR_TRY(tsr_guinier_fit(saxs->n, saxs->q, saxs->intensity, saxs->sigma,
                                0.0, 1.3 / saxs->q[i - 1], &g, err));
        if (g.n == 0 || g.q[1] * g.rg > 1.35)
            continue;
        saxs->rg_guinier = g.rg;
        saxs->i0_guinier = g.i0;
        saxs->n_guinier = g.n;
    }
    return TSR_OK;
}

/* Checks for units and columns that are impossible for a curve of a
 * molecule. */
static tsr_status check_curve(const tsr_saxs *saxs, tsr_log *log, tsr_err *err)
{
    const int n = saxs->n, part = n / 4 > MIN_ROWS ? n / 4 : MIN_ROWS;
    const double *i = saxs->intensity, end = saxs->q[n - 1];
    int n_below = 0, n_buried = 0;
    double first = 0.0, last = 0.0, error_first = 0.0, error_last = 0.0;
    if (!(end > 1e-4 && end < 100.0))
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': q ends at %g 1/Angstrom, beyond any instrument; give q = 4 "
            "pi sin(theta) / lambda in 1/Angstrom or 1/nm",
            saxs->path, end);
    for (int k = 0; k < n; k++) {
        n_below += i[k] < -5.0 * saxs->sigma[k];
        n_buried += k < part && saxs->sigma[k] > 3.0 * fabs(i[k]);
        first += k < part ? i[k] : 0.0;
        last += k >= n - part ? i[k] : 0.0;
        error_first += k < part ? saxs->sigma[k] : 0.0;
        error_last += k >= n - part ? saxs->sigma[k] : 0.0;
    }
    /* If I and sigma are swapped, the values taken for sigma fall with q like a
     * curve. Near a match point I is also below its errors, but these do not
     * fall. */
    if (n_buried > 0.7 * part && error_first > 2.0 * error_last)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': sigma is more than three times I at %d of the "
                        "%d points of lowest q; give q, I, sigma in this "
                        "order, and I itself if the file has its logarithm",
                        saxs->path, n_buried, part);
    if (n_below > 0.05 * n ||
        (saxs->q[0] < 0.05 && end > 0.25 && last > 0.2 * first))
        tsr_warn(log,
                 "%s: I is some %.3g at low q, %.3g at high q, and below -5 "
                 "sigma at %d points: give I itself if the file has its "
                 "logarithm, or check the subtraction of the buffer",
                 saxs->path, first / part, last / part, n_below);
    return TSR_OK;
}

/* Logs the noise estimated from neighbours; as a warning only if sigma was
 * measured. */
static tsr_status report_noise(const tsr_saxs *saxs, tsr_log *log, tsr_err *err)
{
    tsr_words w;
    tsr_words_begin(&w);
    const int is_odd = tsr_saxs_noise_describe(&saxs->noise, (double)NAN, &w);
    char *text = tsr_words_end(&w);
    if (text != NULL && text[0] != '\0')
        tsr_log_write(log,
                      is_odd && !saxs->sigma_is_modelled ? TSR_LOG_WARNING
                                                         : TSR_LOG_INFO,
                      "%s:%s", saxs->path, text);
    free(text);
    return tsr_allocated(text, err);
}

static void log_curve(const tsr_saxs *saxs, const tsr_saxs_table *table,
                      const double *q_range, char lines[2][LINES], tsr_log *log)
{
    const char *path = saxs->path;
    tsr_info(log, "%s: %d points, q = %.5g to %.5g 1/Angstrom", path, saxs->n,
             saxs->q[0], saxs->q[saxs->n - 1]);
    if (table->note != NULL)
        tsr_warn(log, "%s: %s", path, table->note);
    if (table->n_unused > 0)
        tsr_warn(log,
                 "%s: %d other lines of numbers are not used (first: line %ld)",
                 path, table->n_unused, table->first_unused);
    if (saxs->n_dropped_sigma > 0)
        tsr_warn(log,
                 "%s: %d rows dropped, sigma <= 0, or I or sigma not a number "
                 "(%s %s)",
                 path, saxs->n_dropped_sigma, table->noun, lines[0]);
    if (table->has_index)
        tsr_warn(log,
                 "%s: column 1 numbers the rows: the columns are read as "
                 "index, q, I%s",
                 path, table->has_sigma ? ", sigma" : "");
    if (saxs->n_dropped_duplicate > 0)
        tsr_warn(log, "%s: %d rows dropped, q repeats (%s %s)", path,
                 saxs->n_dropped_duplicate, table->noun, lines[1]);
    if (saxs->n_negative > 0)
        tsr_info(log, "%s: %d points with I <= 0, kept", path,
                 saxs->n_negative);
    if (q_range != NULL && saxs->n_outside > 0)
        tsr_info(log, "%s: %d points outside q_range [%g, %g] left out", path,
                 saxs->n_outside, q_range[0], q_range[1]);
    if (saxs->n_guinier > 0)
        tsr_info(log, "%s: Guinier Rg = %.2f Angstrom (%d points)", path,
                 saxs->rg_guinier, saxs->n_guinier);
    else
        tsr_info(log, "%s: no Guinier range found", path);
}

static void log_entry(const tsr_sas_entry *e, const char *path, tsr_log *log)
{
    if (e->name[0] != '\0')
        tsr_info(log, "%s: entry %s, %s", path, e->name, e->source);
    if (strstr(e->source, "eutron") != NULL)
        tsr_warn(log,
                 "%s: the entry's source is neutrons (%s); give them as such "
                 "(kind: sans, profile --radiation neutron)",
                 path, e->source);
}

/* Makes the curve from the table, with all checks and log lines. */
static tsr_status make_curve(tsr_saxs *saxs, tsr_saxs_table *table,
                             tsr_q_unit unit, const double *q_range,
                             tsr_log *log, tsr_err *err)
{
    const char *path = saxs->path;
    char lines[2][LINES] = {"", ""};
    const tsr_saxs_row *top = table->row;
    tsr_pool_array(&saxs->pool, saxs->q, table->n);
    tsr_pool_array(&saxs->pool, saxs->intensity, table->n);
    tsr_pool_array(&saxs->pool, saxs->sigma, table->n);
    if (table->has_dq)
        tsr_pool_array(&saxs->pool, saxs->dq, table->n);
    TSR_TRY(tsr_pool_check(&saxs->pool, err));
    if (!table->has_sigma) {
        saxs->sigma_is_modelled = 1;
        TSR_TRY(model_sigma(table, path, log, err));
    }
    TSR_TRY(check_rows(path, table, err));
    double factor = decide_unit(saxs, table, unit, log);
    saxs->has_named_dq = table->has_named_dq;
    for (int k = 0; k < 2; k++)
        saxs->slit[k] = table->slit[k] * factor;
    copy_rows(saxs, table, factor, q_range, lines);
    if (saxs->n_dropped_sigma == table->n)
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': no usable row (first: %s %ld, I = %g, sigma = %g); %s", path,
            table->noun, top->line, top->value[1], top->value[2],
            isfinite(top->value[1])
                ? "if the third column is not sigma, remove it and "
                  "sigma is modelled"
                : "give q, I, sigma as numbers");
    if (saxs->n < MIN_ROWS)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d usable rows, at least %d are needed (table "
                        "of %d rows at line %ld; dropped: %d for sigma <= 0, "
                        "%d for repeated q, %d outside q_range, which is in "
                        "1/Angstrom)",
                        path, saxs->n, MIN_ROWS, table->n, table->row[0].line,
                        saxs->n_dropped_sigma, saxs->n_dropped_duplicate,
                        saxs->n_outside);
    TSR_TRY(check_curve(saxs, log, err));
    TSR_TRY(fit_guinier(saxs, err));
    saxs->noise =
        tsr_saxs_noise_make(saxs->n, saxs->q, saxs->intensity, saxs->sigma);
    log_curve(saxs, table, q_range, lines, log);
    saxs->entry = table->entry;
    log_entry(&saxs->entry, path, log);
    return report_noise(saxs, log, err);
}

tsr_status tsr_saxs_read(const char *path, tsr_q_unit unit,
                         const double *q_range, tsr_log *log, tsr_saxs **out,
                         tsr_err *err)
{
    *out = NULL;
    if (q_range != NULL && !(q_range[0] < q_range[1]))
        return tsr_fail(err, TSR_E_CONFIG, "'%s': q_range [%g, %g] must ascend",
                        path, q_range[0], q_range[1]);
    tsr_saxs *saxs = calloc(1, sizeof *saxs);
    TSR_TRY(tsr_allocated(saxs, err));
    tsr_pool scratch = {0};
    tsr_saxs_table table;
    saxs->path = tsr_pool_text(&saxs->pool, path);
    tsr_status status = tsr_saxs_table_read(path, &scratch, &table, err);
    TSR_THEN(status, make_curve(saxs, &table, unit, q_range, log, err));
    tsr_pool_clear(&scratch);
    TSR_HAND_OVER(status, saxs, out, tsr_saxs_free);
}

void tsr_saxs_free(tsr_saxs *saxs)
{
    if (saxs != NULL)
        tsr_pool_clear(&saxs->pool);
    free(saxs);
}

tsr_status tsr_saxs_set_resolution(tsr_saxs *saxs,
                                   const tsr_resolution_options *options,
                                   tsr_log *log, tsr_err *err)
{
    char text[200];
    tsr_resolution_options o = *options;
    const int is_wanted = o.dq.word > TSR_DQ_NONE;
    if (is_wanted && o.slit_length == 0.0 && o.beam_profile == NULL)
        o.slit_length = saxs->slit[0];
    if (is_wanted && o.slit_width == 0.0)
        o.slit_width = saxs->slit[1];
    if (o.dq.word == TSR_DQ_NONE && saxs->has_named_dq)
        tsr_warn(log,
                 "%s: the file states its resolution (Qdev, dQl or dQw), which "
                 "is not used; resolution: auto (--resolution auto) uses it",
                 saxs->path);
    TSR_TRY(tsr_wrap(err,
                     tsr_resolution_make(&o, saxs->n, saxs->q, saxs->dq,
                                         &saxs->pool, &saxs->resolution, err),
                     "'%s'", saxs->path));
    tsr_resolution_text(&saxs->resolution, saxs->n, text, sizeof text);
    if (!tsr_resolution_is_ideal(&saxs->resolution))
        tsr_info(log, "%s: the model's curve is smeared: %s%s", saxs->path,
                 text,
                 saxs->dq == NULL || !is_wanted ? ""
                 : saxs->has_named_dq           ? " (Qdev)"
                                                : " (column 4)");
    return TSR_OK;
}

double tsr_saxs_q_max(const tsr_saxs *saxs)
{
    return tsr_resolution_q_max(&saxs->resolution, saxs->n, saxs->q);
}

/* ---- writing ---- */

/* Writes every line of a comment (NULL: none) after "# ". */
static void put_comment(FILE *out, const char *comment)
{
    for (const char *p = comment; p != NULL && *p != '\0';) {
        const int length = (int)strcspn(p, "\n");
        fprintf(out, "# %.*s\n", length, p);
        p += length + (p[length] == '\n');
    }
}

/* Rows of q, I and further columns (NULL: none). is_cif: after the numbers of
 * the loop's parent and of the point. */
static void put_rows(FILE *out, const tsr_saxs_columns *s, int is_cif,
                     const double *third, const double *fourth)
{
    const double *const column[] = {s->q, s->intensity, third, fourth};
    for (int i = 0; i < s->n; i++) {
        if (is_cif)
            fprintf(out, "1 %d ", i + 1);
        for (int c = 0; c < 4 && column[c] != NULL; c++)
            fprintf(out, "%s%.10g", c > 0 ? " " : "", column[c][i]);
        fputc('\n', out);
    }
}

int tsr_sascif_is_name(const char *path)
{
    const char *dot = strrchr(tsr_text_file_name(path), '.');
    return dot != NULL &&
           (strcasecmp(dot, ".sascif") == 0 || strcasecmp(dot, ".cif") == 0);
}

/* NaN: unknown. */
static void put(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.10g", value);
    else
        fputs(" ?", out);
}

static void put_cif(FILE *out, const tsr_saxs_columns *s, const char *path)
{
    char name[64];
    snprintf(name, sizeof name, "%s", tsr_text_file_name(path));
    name[strcspn(name, ".")] = '\0';
    for (char *p = name; *p != '\0'; p++)
        *p = isalnum((unsigned char)*p) ? *p : '_';
    fprintf(out, "data_%s_MAIN\n" TSR_SASCIF_MARK TSR_VERSION "\n", name);
    put_comment(out, s->comment);
    tsr_cif_loop(out, "sas_scan", "id result_id unit");
    fputs("1 1 1/A\n", out);
    tsr_cif_loop(out, "sas_result", "id Rg_from_Guinier I0_from_Guinier");
    fputc('1', out);
    put(out, s->rg > 0.0 ? s->rg / 10.0 : (double)NAN); /* nm */
    put(out, s->rg > 0.0 ? s->i0 : (double)NAN);
    fputc('\n', out);
    tsr_cif_loop(out, "sas_scan_intensity",
                 "scan_id id momentum_transfer intensity "
                 "intensity_su_counting");
    put_rows(out, s, 1, s->sigma, NULL);
    if (s->fit == NULL)
        return;
    fprintf(out, "data_%s_FIT_1\n", name);
    tsr_cif_loop(out, "sas_model_fitting_details",
                 "id result_id unit software chi_square p_value");
    fputs("1 1 1/A 'tessera " TSR_VERSION "'", out);
    put(out, s->chi2);
    put(out, s->p);
    fputc('\n', out);
    tsr_cif_loop(out, "sas_model_fitting",
                 "id ordinal momentum_transfer intensity fit");
    put_rows(out, s, 1, s->fit, NULL);
}

tsr_status tsr_saxs_write(const char *path, const tsr_saxs_columns *columns,
                          tsr_err *err)
{
    tsr_file_writer to;
    const int is_cif = tsr_sascif_is_name(path);
    if (is_cif && columns->dq != NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s': sasCIF does not hold the resolution dq; name "
                        "the file .dat",
                        path);
    TSR_TRY(tsr_file_begin(&to, path, err));
    if (is_cif) {
        put_cif(to.out, columns, path);
    } else {
        put_comment(to.out, columns->comment);
        fprintf(to.out, "# q[1/Angstrom] I(q) sigma%s\n",
                columns->dq != NULL ? " sigma_q[1/Angstrom]" : "");
        put_rows(to.out, columns, 0, columns->sigma, columns->dq);
    }
    return tsr_file_end(&to, TSR_OK, err);
}
