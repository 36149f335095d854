/* The configuration is written for someone who reads one for the first time:
 * what was found and what to look at come before it, and each range says what
 * it is.
 */
#include "commands/init_config.h"

#include "core/json.h"
#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 64 /* letters at most for a chain */ };
static const double coarse_end = 0.35; /* 1/Angstrom */

/* Angstrom: maps up to it show more than where rigid parts lie. */
static const double bending_map = 8.0;

int tsr_init_chain_last(const tsr_init *init, int first)
{
    const tsr_structure *s = init->structure;
    int last = first;
    while (last + 1 < s->n_residue &&
           strcmp(s->residue[last + 1].chain, s->residue[first].chain) == 0)
        last++;
    return last;
}

/* ---- stretches of a chain ---- */

tsr_init_stretch tsr_init_stretch_at(const tsr_init *init, int first)
{
    const tsr_parts *p = init->parts;
    tsr_init_stretch s = {
        .first = first, .last = first, .part = p->part[first]};
    int end = tsr_init_chain_last(init, first);
    for (int k = 0; k < p->n_range && s.part < 0; k++)
        if (p->range[k].first == first) {
            s.range = &p->range[k];
            s.last = s.range->last;
        }
    while (s.part >= 0 && s.last < end && p->part[s.last + 1] == s.part)
        s.last++;
    return s;
}

/* For people: "A:97-103". */
static int name_stretch(const tsr_init *init, tsr_init_stretch stretch,
                        size_t size, char *text)
{
    const tsr_residue_record *r = init->structure->residue;
    int a = r[stretch.first].number, b = r[stretch.last].number;
    return a == b
               ? snprintf(text, size, "%s:%d", r[stretch.first].chain, a)
               : snprintf(text, size, "%s:%d-%d", r[stretch.first].chain, a, b);
}

/* "linker, 7 residues" */
static int describe_stretch(const tsr_init *init, tsr_init_stretch stretch,
                            size_t size, char *text)
{
    static const char *const role[] = {"tail", "linker", "loop",
                                       "no fold: all of it flexible"};
    int n = stretch.last - stretch.first + 1;
    const char *s = n == 1 ? "" : "s";
    if (stretch.range != NULL)
        return snprintf(text, size, "%s, %d residue%s",
                        role[stretch.range->role], n, s);
    return snprintf(
        text, size, "part %d, %d residue%s%s", stretch.part + 1, n, s,
        init->parts->rigid[stretch.part].is_fixed && init->parts->fixed.n > 0
            ? ", keeps its place"
            : "");
}

/* ---- text ---- */

/* Part 1 to 9, then a, b, ...; ~ what moves. */
static char sign_of(int part)
{
    static const char sign[] = "123456789abcdefghijklmnopqrstuvwxyz";
    return part < 0 ? '~' : sign[part % (int)(sizeof sign - 1)];
}

static void draw_chain(const tsr_init *init, const char *prefix, int first,
                       int last, FILE *out)
{
    const tsr_parts *p = init->parts;
    const tsr_residue_record *r = init->structure->residue;
    int n = last - first + 1, step = (n + ROW - 1) / ROW;
    fprintf(out, "%s%s %5d ", prefix, r[first].chain, r[first].number);
    for (int i = first; i <= last; i += step) { /* what moves is never lost */
        int at = i;
        for (int j = i; j < i + step && j <= last; j++)
            at = p->part[j] < 0 ? j : at;
        fputc(sign_of(p->part[at]), out);
    }
    fprintf(out, " %d\n%s%*s", r[last].number, prefix,
            (int)strlen(r[first].chain) + 7, "");
    for (int i = first; i <= last; i += step)
        fputc(p->kind[i] == 'H' ? 'H' : p->kind[i] == 'E' ? 'E' : '.', out);
    fputc('\n', out);
}

void tsr_init_draw(const tsr_init *init, const char *prefix, FILE *out)
{
    const int n = init->structure->n_residue;
    const tsr_parts *p = init->parts;
    if (n > 0)
        fprintf(out,
                "%sNumbers: rigid parts; ~: flexible; below it H helix, E "
                "strand.\n",
                prefix);
    for (int i = 0; i < n; i = tsr_init_chain_last(init, i) + 1)
        draw_chain(init, prefix, i, tsr_init_chain_last(init, i), out);
    for (int i = 0; i < n;) {
        char name[64], what[96];
        tsr_init_stretch s = tsr_init_stretch_at(init, i);
        name_stretch(init, s, sizeof name, name);
        describe_stretch(init, s, sizeof what, what);
        fprintf(out, "%s  %-14s %s\n", prefix, name, what);
        i = s.last + 1;
    }
    for (int k = p->flexible.n - p->n_strand; k < p->flexible.n; k++)
        fprintf(out, "%s  %-14s single-stranded\n", prefix,
                p->flexible.item[k]);
    if (n == 0 && p->n_strand == 0)
        fprintf(out, "%s  no single strand: all is one rigid part\n", prefix);
}

/* ---- YAML ---- */

/* YAML reads a text as JSON writes it. */
static void quote(FILE *out, const char *text)
{
    tsr_json_text(&(tsr_json){.out = out}, NULL, text);
}

/* The path of a file as seen from the folder of the configuration: as given
 * where that is the current folder, shorter where it lies below, else
 * absolute. */
static tsr_status print_path(const tsr_init *init, const char *path, FILE *out,
                             tsr_err *err)
{
    const char *name =
        init->output == NULL ? NULL : tsr_text_file_name(init->output);
    if (name == NULL || name == init->output || path[0] == '/') {
        quote(out, path);
        return TSR_OK;
    }
    char *folder = NULL, *whole = NULL;
    char *given =
        tsr_words_of("%.*s", (int)(name - init->output), init->output);
    tsr_status status = tsr_allocated(given, err);
    TSR_THEN(status, tsr_file_absolute(given, &folder, err));
    TSR_THEN(status, tsr_file_absolute(path, &whole, err));
    if (status == TSR_OK) {
        size_t n = strlen(folder);
        quote(out, strncmp(whole, folder, n) == 0 ? whole + n : whole);
    }
    free(given);
    free(folder);
    free(whole);
    return status;
}

static void print_head(const tsr_init *init, FILE *out)
{
    const tsr_parts *p = init->parts;
    char word[TSR_SHELL_SIZE];
    fprintf(out, TSR_INIT_MARK "%s", tsr_text_shell(init->model, word));
    const tsr_init_curves *c = &init->curves;
    for (int k = 0; k < c->n_xray; k++)
        fprintf(out, " %s", tsr_text_shell(c->path[k], word));
    for (int k = c->n_xray; k < c->n; k++)
        fprintf(out, " --sans %s=%g", tsr_text_shell(c->path[k], word),
                c->d2o[k]);
    if (init->map != NULL)
        fprintf(out, " --map %s --resolution %g",
                tsr_text_shell(init->map, word), init->resolution_ang);
    fprintf(out, "\n#\n# What holds together was found from\n#   %s%s%s\n#\n",
            tsr_evidence_text(p->evidence),
            init->pae != NULL ? "\n#   in " : "",
            init->pae != NULL ? tsr_text_shell(init->pae, word) : "");
    tsr_init_draw(init, "# ", out);
    if (p->n_note > 0)
        fputs("#\n# To look at:\n", out);
    for (int k = 0; k < p->n_note; k++) {
        fputs("# - ", out);
        tsr_text_wrap(out, 4, 0, "#   ", p->note[k]);
    }
    fputs("#\n# Next: tessera check FILE, then tessera run FILE. Every key: "
          "tessera run --help all.\n",
          out);
}

/* The ranges, each with what it is; a range may be several words where numbers
 * do not go up one by one. */
static void print_flexible(const tsr_init *init, FILE *out)
{
    const tsr_parts *p = init->parts;
    fputs("  flexible: # the rest moves as rigid parts\n", out);
    for (int k = 0; k < p->flexible.n; k++) {
        fputs("    - ", out);
        quote(out, p->flexible.item[k]);
        for (int r = 0; r < p->n_range; r++) {
            char name[64], what[96];
            tsr_init_stretch s = tsr_init_stretch_at(init, p->range[r].first);
            name_stretch(init, s, sizeof name, name);
            describe_stretch(init, s, sizeof what, what);
            if (strcmp(name, p->flexible.item[k]) == 0)
                fprintf(out, " # %s", what);
        }
        if (k >= p->flexible.n - p->n_strand)
            fputs(" # single-stranded", out);
        fputc('\n', out);
    }
}

/* All of the model bends into a map: where the map shows more than where parts
 * lie, and where there are no parts that could move. */
static int is_bent(const tsr_init *init)
{
    return init->map != NULL && (init->resolution_ang <= bending_map ||
                                 init->parts->flexible.n == 0);
}

static void print_structure(const tsr_init *init, FILE *out)
{
    const tsr_parts *p = init->parts;
    if (is_bent(init)) {
        fputs("  flexible: all # bends into the map, also what was found rigid "
              "above\n",
              out);
        return;
    }
    if (p->flexible.n == 0)
        fputs("  still: true # one compact part: nothing moves; what is "
              "inferred is\n              # hydration, scale, background and "
              "noise\n",
              out);
    else
        print_flexible(init, out);
    if (p->fixed.n > 0)
        fputs(
            "  fixed: # keep their places; between two of a chain lie loops\n",
            out);
    for (int k = 0; k < p->fixed.n; k++) {
        fputs("    - ", out);
        quote(out, p->fixed.item[k]);
        fputc('\n', out);
    }
    if (p->flexible.n > 0)
        fputs("  states: 1 # 2 or more: an ensemble, where one conformation "
              "does not fit\n",
              out);
}

/* Of neutrons: the solvent, and what is not as it usually is. */
static void print_solvent(const tsr_init_curves *c, int k, FILE *out)
{
    fprintf(out, "    kind: sans\n    d2o: %g\n", c->d2o[k]);
    if (c->exchange != TSR_NEUTRON_EXCHANGE)
        fprintf(out, "    exchange: %g\n", c->exchange);
    for (int i = 0; i < c->n_deuterated; i++) {
        fputs(i == 0 ? "    deuterated: [" : ", ", out);
        quote(out, c->deuterated[i]);
    }
    if (c->n_deuterated > 0)
        fputs("]\n", out);
}

static tsr_status print_data(const tsr_init *init, FILE *out, tsr_err *err)
{
    const tsr_init_curves *c = &init->curves;
    tsr_status status = TSR_OK;
    if (init->map != NULL) {
        fputs("data:\n  - kind: map\n    file: ", out);
        TSR_TRY(print_path(init, init->map, out, err));
        fprintf(out, "\n    resolution: %g # Angstrom\n", init->resolution_ang);
    } else if (c->n == 0)
        fputs("# data: # a curve: q, I, sigma\n#   - file: exp.dat\n", out);
    else
        fputs("data:\n", out);
    for (int k = 0; k < c->n && status == TSR_OK; k++) {
        const tsr_saxs *s = init->saxs[k];
        fputs("  - file: ", out);
        status = print_path(init, c->path[k], out, err);
        fprintf(out, "\n    # %d points, q %.4g to %.4g 1/Angstrom", s->n,
                s->q[0], s->q[s->n - 1]);
        if (isfinite(s->rg_guinier))
            fprintf(out, ", Rg %.1f Angstrom (Guinier)", s->rg_guinier);
        fputc('\n', out);
        if (k >= c->n_xray)
            print_solvent(c, k, out);
        if (s->q[s->n - 1] > coarse_end)
            fprintf(out,
                    "    q_range: [0, %g] # beyond it bodies are too coarse\n",
                    coarse_end);
    }
    return status;
}

tsr_status tsr_init_write(const tsr_init *init, FILE *out, tsr_err *err)
{
    print_head(init, out);
    fputs("seed: 1\nstructure:\n  file: ", out);
    TSR_TRY(print_path(init, init->model, out, err));
    fputc('\n', out);
    print_structure(init, out);
    if (init->map == NULL || init->curves.n > 0)
        fputs("contrast: {c1: 1, c2: infer} # excluded volume fixed, hydration "
              "inferred\n",
              out);
    TSR_TRY(print_data(init, out, err));
    if (init->parts->flexible.n > 0 || is_bent(init))
        fputs("prior: {relax: true} # what overlaps in the model is moved "
              "apart first\n",
              out);
    if (is_bent(init))
        fputs(
            "# A fit: a long warm-up brings the model into the map, draws show "
            "what came\n# of it. How sure it is takes many more draws "
            "(docs/density.md).\n"
            "sampler: {chains: 8, warmup: 300000, draws: 100, thin: 10, "
            "temperatures: 1}\n",
            out);
    return TSR_OK;
}
