/* Sentences on a SASBDB entry, and sasCIF files written. */
#include "scattering/sascif.h"

#include "files/file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the entry ---- */

void tsr_sas_entry_check(tsr_sas_entry *entry, const char *path, double rg,
                         tsr_log *log)
{
    if (entry->name[0] == '\0')
        return;
    if (entry->rg > 5.0 * rg) {
        tsr_warn(log,
                 "%s: Rg %.4g of the entry is in Angstrom, not in nm, by the "
                 "curve; so are its other lengths",
                 path, 0.1 * entry->rg);
        entry->rg *= 0.1;
        entry->rg_error *= 0.1;
        entry->rg_pr *= 0.1;
        entry->d_max *= 0.1;
    }
    tsr_info(log, "%s: entry %s%s%s", path, entry->name,
             entry->source[0] != '\0' ? ", " : "", entry->source);
    if (strstr(entry->source, "eutron") != NULL)
        tsr_warn(log,
                 "%s: the entry's source is neutrons (%s); give them as such "
                 "(kind: sans, profile --radiation neutron)",
                 path, entry->source);
}

/* Adds a stated value to the list, with that of tessera or of its model. */
static void add(tsr_words *w, int *n, const char *what, double stated,
                const char *unit, double found, const char *where)
{
    if (isnan(stated))
        return;
    tsr_words_add(w, "%s%s %.4g %s", (*n)++ == 0 ? "" : ", ", what, stated,
                  unit);
    if (isfinite(found))
        tsr_words_add(w, " (%.4g %s)", found, where);
}

void tsr_sas_entry_describe(const tsr_sas_entry *entry,
                            const tsr_sas_found *found, tsr_words *words)
{
    const tsr_sas_entry *e = entry;
    const double mass = isfinite(e->mass) ? e->mass : e->mass_porod;
    const double times = mass / found->mass;
    int n = 0;
    if (e->name[0] == '\0')
        return;
    tsr_words_add(words, "The entry %s states: ", e->name);
    add(words, &n, "Guinier's Rg", e->rg, "Angstrom", found->rg, "here");
    add(words, &n, "Rg of P(r)", e->rg_pr, "Angstrom", (double)NAN, "");
    add(words, &n, "D_max", e->d_max, "Angstrom", found->d_max, "in the model");
    add(words, &n, "mass", mass, "kDa", found->mass,
        times > 1.4 || times < 0.7
            ? "in the model: another oligomer, or missing parts?"
            : "in the model");
    for (int i = 0; i < e->n_fit; i++)
        tsr_words_add(words, "%s %.3g",
                      i > 0     ? ","
                      : n++ > 0 ? ", chi2 of its fits"
                                : "chi2 of its fits",
                      e->chi2[i]);
    if (e->n_fit > 0 && isfinite(found->chi2))
        tsr_words_add(words, " (%.3g per point here)", found->chi2);
    tsr_words_add(words, n == 0 ? "no results." : ".");
}

void tsr_sas_entry_put(const tsr_sas_entry *entry, tsr_json *json)
{
    const tsr_sas_entry *e = entry;
    if (e->name[0] == '\0') {
        tsr_json_text(json, "entry", NULL);
        return;
    }
    tsr_json_members(json,
                     "entry{ name %s source %s rg_guinier %g rg_guinier_error "
                     "%g rg_pr %g d_max %g mass %g mass_porod %g",
                     e->name, e->source, e->rg, e->rg_error, e->rg_pr, e->d_max,
                     e->mass, e->mass_porod);
    tsr_json_numbers(json, "fits_chi2", e->n_fit, e->chi2);
    tsr_json_close(json);
}

/* ---- files ---- */

int tsr_sascif_is_name(const char *path)
{
    const char *dot = strrchr(tsr_text_file_name(path), '.');
    return dot != NULL &&
           (strcasecmp(dot, ".sascif") == 0 || strcasecmp(dot, ".cif") == 0);
}

/* An item with a number, or with "?" for one that is unknown. */
static void put(FILE *out, const char *item, double value)
{
    fprintf(out, isfinite(value) ? "%s %.6g\n" : "%s ?\n", item, value);
}

/* A number with as many digits as reading it back needs. */
static void put_exactly(FILE *out, double value)
{
    char text[32];
    int digits = 8;
    do
        snprintf(text, sizeof text, " %.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
    fputs(text, out);
}

static void put_curve(FILE *out, const tsr_sascif *s, const char *category,
                      const char *items, const double *last)
{
    fprintf(out, "#\nloop_\n");
    for (const char *p = items; *p != '\0';) {
        const int length = (int)strcspn(p, " ");
        fprintf(out, "%s.%.*s\n", category, length, p);
        p += length + (p[length] == ' ');
    }
    for (int i = 0; i < s->n; i++) {
        fprintf(out, "1 %d", i + 1);
        put_exactly(out, s->q[i]);
        put_exactly(out, s->intensity[i]);
        put_exactly(out, last[i]);
        fputc('\n', out);
    }
}

tsr_status tsr_sascif_write(const char *path, const tsr_sascif *what,
                            tsr_err *err)
{
    const tsr_sascif *s = what;
    const double nm = 10.0; /* Angstrom */
    char name[64];
    tsr_file_writer to;
    TSR_TRY(tsr_file_begin(&to, path, err));
    snprintf(name, sizeof name, "%s", tsr_text_file_name(path));
    name[strcspn(name, ".")] = '\0';
    for (char *p = name; *p != '\0'; p++)
        *p = isalnum((unsigned char)*p) || *p == '-' ? *p : '_';
    fprintf(to.out, "data_%s_MAIN\n" TSR_SASCIF_MARK TSR_VERSION "\n", name);
    for (const char *p = s->comment; p != NULL && *p != '\0';) {
        const int length = (int)strcspn(p, "\n");
        fprintf(to.out, "# %.*s\n", length, p);
        p += length + (p[length] == '\n');
    }
    fprintf(to.out,
            "_audit_conform.dict_name mmcif_sas.dic\n"
            "_audit_conform.dict_version 0.6\n_entry.id %s\n"
            "_sas_scan.id 1\n_sas_scan.result_id 1\n_sas_scan.unit 1/A\n",
            name);
    put(to.out, "_sas_scan.qmin", s->q[0]);
    put(to.out, "_sas_scan.qmax", s->q[s->n - 1]);
    fputs("_sas_result.id 1\n", to.out);
    put(to.out, "_sas_result.Rg_from_Guinier", s->rg / nm);
    put(to.out, "_sas_result.I0_from_Guinier", s->i0);
    put_curve(to.out, s, "_sas_scan_intensity",
              "scan_id id momentum_transfer intensity intensity_su_counting",
              s->sigma);
    if (s->fit != NULL) {
        fprintf(to.out,
                "#\ndata_%s_FIT_1\n_sas_model_fitting_details.id 1\n"
                "_sas_model_fitting_details.result_id 1\n"
                "_sas_model_fitting_details.unit 1/A\n"
                "_sas_model_fitting_details.software 'tessera " TSR_VERSION
                "'\n",
                name);
        put(to.out, "_sas_model_fitting_details.chi_square", s->chi2);
        put(to.out, "_sas_model_fitting_details.p_value", s->p);
        put_curve(to.out, s, "_sas_model_fitting",
                  "id ordinal momentum_transfer intensity fit", s->fit);
    }
    fputs("#\n", to.out);
    return tsr_file_end(&to, TSR_OK, err);
}
