/* tessera init: writes a first configuration for a model and curves, and shows
 * the rigid and flexible parts of the model as text and as a picture. The file
 * is for readers who see a configuration for the first time: it begins with the
 * parts found and the warnings, and describes each flexible range in a comment.
 */
#include "commands/command.h"

#include "core/json.h"
#include "core/text.h"
#include "files/file.h"
#include "likelihood/term_saxs.h"
#include "maps/density_map.h"
#include "molecule/parts.h"
#include "molecule/structure.h"
#include "report/figure.h"
#include "scattering/saxs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beginning of the first line of its configurations. */
#define MARK "# tessera init "

typedef struct {
    const tsr_init_job *job;
    const tsr_curves *curves; /* of it */
    tsr_pool pool;
    char *picture; /* path of the picture; NULL: no picture */
    char *pae;     /* file of predicted aligned errors; NULL: not used */
    tsr_structure *structure;
    tsr_structure *symmetric; /* the model as a symmetric assembly; NULL: it has
                                 no symmetry */
    tsr_parts *parts;
    tsr_saxs **saxs; /* [curves->n] */
} work;

/* ---- stretches of a chain ---- */

/* A stretch of a chain: consecutive residues of the same part. */
typedef struct {
    int first, last;
    int part;                        /* -1: flexible */
    const tsr_flexible_range *range; /* the flexible range */
} span;

enum { ROW = 64 /* longest chain name in the picture */ };
static const double coarse_end = 0.35; /* 1/Angstrom */

/* Angstrom. Maps up to this resolution resolve more than the positions of rigid
 * parts. */
static const double bending_map = 8.0;

static int chain_last(const work *w, int first)
{
    const tsr_structure *s = w->structure;
    int last = first;
    while (last + 1 < s->n_residue &&
           strcmp(s->residue[last + 1].chain, s->residue[first].chain) == 0)
        last++;
    return last;
}

static span stretch_at(const work *w, int first)
{
    const tsr_parts *p = w->parts;
    span s = {.first = first, .last = first, .part = p->part[first]};
    int end = chain_last(w, first);
    for (int k = 0; k < p->n_range && s.part < 0; k++)
        if (p->range[k].first == first) {
            s.range = &p->range[k];
            s.last = s.range->last;
        }
    while (s.part >= 0 && s.last < end && p->part[s.last + 1] == s.part)
        s.last++;
    return s;
}

/* Describes a stretch: its name, "A:97-103", and its kind, "linker, 7
 * residues". */
static void describe(const work *w, span s, char name[64], char what[96])
{
    static const char *const role[] = {"tail", "linker", "loop",
                                       "chain without rigid part, flexible"};
    const tsr_residue_record *r = w->structure->residue;
    const tsr_parts *p = w->parts;
    const int a = r[s.first].number, b = r[s.last].number;
    const int n = s.last - s.first + 1;
    const int length = snprintf(name, 64, "%s:%d", r[s.first].chain, a);
    if (a != b)
        snprintf(name + length, 64 - (size_t)length, "-%d", b);
    const char *plural = n == 1 ? "" : "s";
    if (s.range != NULL)
        snprintf(what, 96, "%s, %d residue%s", role[s.range->role], n, plural);
    else if (p->rigid[s.part].is_held)
        snprintf(what, 96, "held as it is, %d residue%s", n, plural);
    else
        snprintf(what, 96, "part %d, %d residue%s%s", s.part + 1, n, plural,
                 p->rigid[s.part].is_fixed && p->fixed.n > 0
                     ? ", keeps its place"
                     : "");
}

/* ---- the configuration: parts and warnings ---- */

/* Symbol of a part: 1 to 9, then a, b, ...; ~ for flexible residues. */
static char part_sign(int part)
{
    static const char sign[] = "123456789abcdefghijklmnopqrstuvwxyz";
    return part < 0 ? '~' : sign[part % (int)(sizeof sign - 1)];
}

static void print_chain(const work *w, const char *prefix, int first, int last,
                        FILE *out)
{
    const tsr_parts *p = w->parts;
    const tsr_residue_record *r = w->structure->residue;
    int n = last - first + 1, step = (n + ROW - 1) / ROW;
    fprintf(out, "%s%s %5d ", prefix, r[first].chain, r[first].number);
    for (int i = first; i <= last;
         i += step) { /* flexible residues are never skipped */
        int at = i;
        for (int j = i; j < i + step && j <= last; j++)
            at = p->part[j] < 0 ? j : at;
        fputc(part_sign(p->part[at]), out);
    }
    fprintf(out, " %d\n%s%*s", r[last].number, prefix,
            (int)strlen(r[first].chain) + 7, "");
    for (int i = first; i <= last; i += step)
        fputc(p->kind[i] == 'H' ? 'H' : p->kind[i] == 'E' ? 'E' : '.', out);
    fputc('\n', out);
}

static void print_parts(const work *w, const char *prefix, FILE *out)
{
    const int n = w->structure->n_residue;
    const tsr_parts *p = w->parts;
    if (n > 0)
        fprintf(out,
                "%sNumbers: rigid parts; ~: flexible; second line: H helix, E "
                "strand.\n",
                prefix);
    for (int i = 0; i < n; i = chain_last(w, i) + 1)
        print_chain(w, prefix, i, chain_last(w, i), out);
    for (int i = 0; i < n;) {
        char name[64], what[96];
        span s = stretch_at(w, i);
        describe(w, s, name, what);
        fprintf(out, "%s  %-14s %s\n", prefix, name, what);
        i = s.last + 1;
    }
    for (int k = p->flexible.n - p->n_strand; k < p->flexible.n; k++)
        fprintf(out, "%s  %-14s single-stranded\n", prefix,
                p->flexible.item[k]);
    if (n == 0 && p->n_strand == 0)
        fprintf(out, "%s  no single strand: one rigid part\n", prefix);
}

/* ---- the configuration: YAML ---- */

/* Prints a text in quotes: JSON strings are valid YAML. */
static void write_quoted(FILE *out, const char *text)
{
    tsr_json_text(&(tsr_json){.out = out}, NULL, text);
}

/* Prints the path of a file relative to the folder of the configuration: as
 * given if that is the current folder, shortened if the file lies below it,
 * else absolute. */
static tsr_status print_path(const work *w, const char *path, FILE *out,
                             tsr_err *err)
{
    const char *output = w->job->output;
    const char *name = output == NULL ? NULL : tsr_text_file_name(output);
    if (name == output || path[0] == '/') {
        write_quoted(out, path);
        return TSR_OK;
    }
    char *folder = NULL, *whole = NULL;
    tsr_status status = tsr_file_absolute(output, &folder, err);
    TSR_THEN(status, tsr_file_absolute(path, &whole, err));
    if (status == TSR_OK) {
        const size_t n = strlen(folder) - strlen(name);
        write_quoted(out, strncmp(whole, folder, n) == 0 ? whole + n : whole);
    }
    free(folder);
    free(whole);
    return status;
}

static void print_head(const work *w, FILE *out)
{
    const tsr_parts *p = w->parts;
    char word[TSR_SHELL_SIZE];
    fprintf(out, MARK "%s", tsr_text_shell(w->job->model, word));
    const tsr_curves *c = w->curves;
    for (int k = 0; k < c->n_xray; k++)
        fprintf(out, " %s", tsr_text_shell(c->path[k], word));
    for (int k = c->n_xray; k < c->n; k++)
        fprintf(out, " --sans %s=%g", tsr_text_shell(c->path[k], word),
                c->d2o[k]);
    if (c->at != NULL)
        fprintf(out, " --at %s", tsr_text_shell(c->data->at, word));
    if (c->data->map != NULL)
        fprintf(out, " --map %s --resolution %g",
                tsr_text_shell(c->data->map, word), c->data->resolution_ang);
    fprintf(out, "\n#\n# Rigid parts were found from\n#   %s%s%s\n#\n",
            tsr_evidence_text(p->evidence), w->pae != NULL ? "\n#   in " : "",
            w->pae != NULL ? tsr_text_shell(w->pae, word) : "");
    print_parts(w, "# ", out);
    if (p->n_note > 0)
        fputs("#\n# Warnings:\n", out);
    for (int k = 0; k < p->n_note; k++) {
        fputs("# - ", out);
        tsr_text_wrap(out, 4, 0, "#   ", p->note[k]);
    }
    fputs("#\n# Next: tessera check FILE, then tessera run FILE.\n"
          "# All keys: tessera run --help all.\n",
          out);
}

/* 1: the range is in the subunit, whose moves the copies follow. */
static int is_of_subunit(const work *w, const char *range)
{
    const tsr_structure *s = w->symmetric;
    const size_t n = strcspn(range, ":");
    int is_own = s == NULL;
    for (int i = 0; s != NULL && i < s->n_residue / s->symmetry.n; i++)
        is_own |= strlen(s->residue[i].chain) == n &&
                  strncmp(s->residue[i].chain, range, n) == 0;
    return is_own;
}

/* Prints the flexible ranges, each with its description. One range can consist
 * of several items where residue numbers do not ascend one by one. */
static void print_flexible(const work *w, FILE *out)
{
    const tsr_parts *p = w->parts;
    fputs("  flexible: # residues outside these ranges form rigid parts\n",
          out);
    for (int k = 0; k < p->flexible.n; k++) {
        if (!is_of_subunit(w, p->flexible.item[k]))
            continue;
        fputs("    - ", out);
        write_quoted(out, p->flexible.item[k]);
        for (int r = 0; r < p->n_range; r++) {
            char name[64], what[96];
            span s = stretch_at(w, p->range[r].first);
            describe(w, s, name, what);
            if (strcmp(name, p->flexible.item[k]) == 0)
                fprintf(out, " # %s", what);
        }
        if (k >= p->flexible.n - p->n_strand)
            fputs(" # single-stranded", out);
        fputc('\n', out);
    }
}

/* 1: the whole model is flexible in the map: the map resolves more than the
 * positions of rigid parts, or the model has no parts that could move. */
static int can_bend(const work *w)
{
    return w->curves->data->map != NULL && w->job->dock.n == 0 &&
           (w->curves->data->resolution_ang <= bending_map ||
            w->parts->flexible.n == 0);
}

/* Prints which chains move as a whole. */
static void print_docked(const work *w, FILE *out)
{
    fputs("  bodies: atoms # the curve of all atoms; two, if residues lack "
          "atoms: faster, but\n                # less exact for tight "
          "interfaces\n",
          out);
    for (int k = 0; k < w->job->dock.n; k++) {
        fputs(k == 0 ? "  mobile: [" : ", ", out);
        write_quoted(out, w->job->dock.item[k]);
    }
    fputs("] # start in random places, and move as a whole\n  contacts: 5 # "
          "least number of pairs of bodies within 6.5 Angstrom\n"
          "              # of a mobile chain with the others\n",
          out);
}

static void print_structure(const work *w, FILE *out)
{
    const tsr_parts *p = w->parts;
    if (can_bend(w)) {
        fputs("  flexible: all # the whole model, also the rigid parts above\n",
              out);
        return;
    }
    if (w->job->dock.n > 0)
        print_docked(w, out);
    if (p->flexible.n == 0 && w->job->dock.n == 0)
        fputs("  frozen: true # one compact part does not move; inferred are "
              "hydration,\n              # scale, background and noise\n",
              out);
    else if (p->flexible.n > 0)
        print_flexible(w, out);
    if (p->fixed.n > 0 && w->job->dock.n == 0)
        fputs("  fixed: # these parts keep their place; a loop joins two of "
              "one chain\n",
              out);
    for (int k = 0; k < p->fixed.n && w->job->dock.n == 0; k++) {
        if (!is_of_subunit(w, p->fixed.item[k]))
            continue;
        fputs("    - ", out);
        write_quoted(out, p->fixed.item[k]);
        fputc('\n', out);
    }
    if (p->flexible.n > 0)
        fputs("  states: 1 # 2 or more: an ensemble, if one conformation does "
              "not fit\n",
              out);
}

/* Prints the place of a curve in a series. */
static void print_place(const tsr_curves *c, int k, FILE *out)
{
    fprintf(out, "    share: states # weights of its own\n    at: %.10g\n",
            c->at[k]);
    if (c->at_unit[0] == '\0')
        return;
    fputs("    unit: ", out);
    write_quoted(out, c->at_unit);
    fputc('\n', out);
}

/* Prints the solvent of a neutron curve, and the options that differ from their
 * defaults. */
static void print_solvent(const tsr_curves *c, int k, FILE *out)
{
    fprintf(out, "    kind: sans\n    d2o: %g\n", c->d2o[k]);
    if (c->data->exchange != TSR_NEUTRON_EXCHANGE)
        fprintf(out, "    exchange: %g\n", c->data->exchange);
    for (int i = 0; i < c->data->deuterated.n; i++) {
        fputs(i == 0 ? "    deuterated: [" : ", ", out);
        write_quoted(out, c->data->deuterated.item[i]);
    }
    if (c->data->deuterated.n > 0)
        fputs("]\n", out);
}

static tsr_status print_data(const work *w, FILE *out, tsr_err *err)
{
    const tsr_curves *c = w->curves;
    tsr_status status = TSR_OK;
    if (w->curves->data->map != NULL) {
        fputs("data:\n  - kind: map\n    file: ", out);
        TSR_TRY(print_path(w, w->curves->data->map, out, err));
        fprintf(out, "\n    resolution: %g # Angstrom\n",
                w->curves->data->resolution_ang);
    } else if (c->n == 0)
        fputs("# data: # a curve: q, I, sigma\n#   - file: exp.dat\n", out);
    else
        fputs("data:\n", out);
    for (int k = 0; k < c->n && status == TSR_OK; k++) {
        const tsr_saxs *s = w->saxs[k];
        fputs("  - file: ", out);
        status = print_path(w, c->path[k], out, err);
        fprintf(out, "\n    # %d points, q %.4g to %.4g 1/Angstrom", s->n,
                s->q[0], s->q[s->n - 1]);
        if (isfinite(s->rg_guinier))
            fprintf(out, ", Rg %.1f Angstrom (Guinier)", s->rg_guinier);
        fputc('\n', out);
        if (c->at != NULL)
            print_place(c, k, out);
        if (k >= c->n_xray)
            print_solvent(c, k, out);
        else if (s->has_named_dq)
            fputs("    resolution: auto # as the file states it\n", out);
        if (s->q[s->n - 1] > coarse_end)
            fprintf(
                out,
                "    q_range: [0, %g] # at higher q bodies are too coarse\n",
                coarse_end);
    }
    return status;
}

static tsr_status write_yaml(const work *w, FILE *out, tsr_err *err)
{
    print_head(w, out);
    fputs("seed: 1\nstructure:\n  file: ", out);
    TSR_TRY(print_path(w, w->job->model, out, err));
    fputc('\n', out);
    if (w->symmetric != NULL)
        fprintf(out,
                "  symmetry: %s # one subunit moves, its copies follow; "
                "mobile: [subunit]\n            # moves the subunit against "
                "the axis; without symmetry all chains move alone\n",
                w->symmetric->symmetry.group);
    print_structure(w, out);
    if (w->curves->data->map == NULL || w->curves->n > 0)
        fputs("contrast: {c1: auto, c2: infer} # excluded volume, hydration\n",
              out);
    TSR_TRY(print_data(w, out, err));
    fputs("prior: {relax: true} # first move overlapping residues of the model "
          "apart\n",
          out);
    if (can_bend(w))
        fputs("# A fit: a long warm-up moves the model into the map, the draws "
              "show the\n# result. Its uncertainty needs many more draws "
              "(docs/density.md).\nsampler: {chains: 8, warmup: 300000, draws: "
              "100, thin: 10, temperatures: 1}\n",
              out);
    return TSR_OK;
}

/* Prints the stretches in the order of the chains as JSON. A part that keeps
 * its place has null as number. */
static void print_json(const work *w, FILE *out)
{
    const tsr_parts *p = w->parts;
    const tsr_residue_record *r = w->structure->residue;
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_json_members(
        &j, "evidence %s pae %s symmetry %s", tsr_evidence_text(p->evidence),
        w->pae, w->symmetric != NULL ? w->symmetric->symmetry.group : NULL);
    tsr_json_array(&j, "stretches");
    for (int i = 0; i < w->structure->n_residue;) {
        char name[64], what[96];
        const span s = stretch_at(w, i);
        const int is_part = s.part >= 0 && !p->rigid[s.part].is_held;
        describe(w, s, name, what);
        tsr_json_object(&j, NULL);
        tsr_json_members(&j, "chain %s first %d last %d part %g what %s",
                         r[i].chain, r[i].number, r[s.last].number,
                         is_part ? s.part + 1.0 : (double)NAN, what);
        tsr_json_close(&j);
        i = s.last + 1;
    }
    tsr_json_close(&j);
    if (can_bend(w))
        tsr_json_text(&j, "flexible", "all");
    else
        tsr_json_texts(&j, "flexible", p->flexible.n, p->flexible.item);
    tsr_json_texts(&j, "fixed", p->fixed.n, p->fixed.item);
    tsr_json_texts(&j, "docked", w->job->dock.n, w->job->dock.item);
    tsr_json_texts(&j, "warnings", p->n_note, p->note);
    tsr_json_close(&j);
}

/* ---- the picture ----
 *
 * Each chain is a bar coloured by rigid part, with flexible residues as a thin
 * line, secondary structure above, and the confidence of a prediction below.
 * Strands of nucleic acid that are rigid with the protein follow. */

enum {
    WIDTH = 900,
    LEFT = 60,
    RIGHT = 30,
    TOP = 46,
    CHAIN = 88,
    STRAND = 52,
    CURVE = 20,
    KEY = 20
};

static const char *const colours[] = {"#3b6ea5", "#d98032", "#4f9d69",
                                      "#8a63a8", "#c2504e", "#7a6a55",
                                      "#c77fb0", "#5aa6b8"};
static const char flexible_colour[] = "#555555";

static const char *colour_of(int part)
{
    return part < 0 ? flexible_colour
                    : colours[part % (int)(sizeof colours / sizeof *colours)];
}

typedef struct {
    const work *w;
    tsr_svg *svg;
    int first, last; /* width of the chain name */
    double y;        /* its middle */
    double scale;    /* pixels per residue, the same for all chains */
} row;

static double residue_x(const row *r, double residue)
{
    return LEFT + (residue - r->first) * r->scale;
}

static void draw_structure(const row *r)
{
    const char *kind = r->w->parts->kind;
    for (int i = r->first, last; i <= r->last; i = last + 1) {
        int is_helix = kind[i] == 'H';
        for (last = i; last < r->last && kind[last + 1] == kind[i];)
            last++;
        if (is_helix || kind[i] == 'E')
            tsr_svg_rect(r->svg, residue_x(r, i), r->y - (is_helix ? 26 : 24),
                         (last - i + 1) * r->scale, is_helix ? 8 : 4,
                         is_helix ? "#b04a5a" : "#c9a227", 1.0);
    }
}

static void draw_stretches(const row *r)
{
    for (int i = r->first; i <= r->last;) {
        char text[64];
        span s = stretch_at(r->w, i);
        double x0 = residue_x(r, s.first), x1 = residue_x(r, s.last + 1);
        double half = s.part < 0 ? 2.5 : 12.0;
        tsr_svg_rect(r->svg, x0, r->y - half, x1 - x0, 2.0 * half,
                     colour_of(s.part), 1.0);
        snprintf(text, sizeof text, "%d", s.part + 1);
        if (s.part >= 0 && x1 - x0 > 40.0) {
            tsr_svg_rect(r->svg, 0.5 * (x0 + x1) - 11.0, r->y - 8.0, 22.0, 16.0,
                         "#ffffff", 0.85);
            tsr_svg_text(r->svg, 0.5 * (x0 + x1), r->y + 4.5, 12.0,
                         TSR_SVG_MIDDLE, 0, text);
        }
        i = s.last + 1;
    }
}

static int has_confidence(const row *r)
{
    return r->w->parts->evidence != TSR_EVIDENCE_CONTACTS;
}

/* Draws the confidence of the prediction, from 0 at the bottom to 1. */
static void draw_confidence(const row *r)
{
    const int n = r->last - r->first + 1;
    tsr_pool pool = {0};
    double *x, *y;
    tsr_pool_array(&pool, x, n);
    tsr_pool_array(&pool, y, n);
    for (int k = 0; k < n && !pool.failed; k++) {
        x[k] = residue_x(r, r->first + k + 0.5);
        y[k] = r->y + 36.0 - 18.0 * r->w->parts->confidence[r->first + k];
    }
    if (!pool.failed)
        tsr_svg_stroke(r->svg, n, x, y, "#1b7f7a", 1.2, 1.0, NULL);
    tsr_pool_clear(&pool);
}

static void draw_number(const row *r, double x, double y, int residue)
{
    char text[32];
    snprintf(text, sizeof text, "%d", r->w->structure->residue[residue].number);
    tsr_svg_line(r->svg, x, y, x, y + 4.0, "#888888", 1.0);
    tsr_svg_text(r->svg, x, y + 14.0, 10.0, TSR_SVG_MIDDLE, 0, text);
}

/* Draws the residue numbers at the beginning of stretches where space permits,
 * and the last number. */
static void draw_numbers(const row *r)
{
    double y = r->y + (has_confidence(r) ? 38.0 : 18.0), taken = -100.0;
    double end = residue_x(r, r->last + 1);
    for (int i = r->first; i <= r->last; i = stretch_at(r->w, i).last + 1) {
        double x = residue_x(r, i);
        if (x - taken > 24.0 && end - x > 24.0) {
            draw_number(r, x, y, i);
            taken = x;
        }
    }
    draw_number(r, end, y, r->last);
}

static void draw_row(const row *r)
{
    char name[32];
    snprintf(name, sizeof name, "%s", r->w->structure->residue[r->first].chain);
    tsr_svg_text(r->svg, LEFT - 14, r->y + 5.0, 15.0, TSR_SVG_END, 0, name);
    draw_structure(r);
    draw_stretches(r);
    if (has_confidence(r))
        draw_confidence(r);
    draw_numbers(r);
}

/* Finds the next strand, from residue *at of the file on, whose chain has no
 * bar yet. Returns its number of nucleotides, 0 if there is none; *at moves
 * behind the strand. */
static int next_strand(const tsr_structure *s, const tsr_atoms *all, int *at,
                       const tsr_file_residue **first)
{
    while (*at < all->n_residue) {
        int n = 0, has_bar = 0;
        *first = &all->residue[*at];
        for (int i = 0; i < s->n_residue && !has_bar; i++)
            has_bar = strcmp(s->residue[i].chain, (*first)->chain) == 0;
        for (;
             *at < all->n_residue && all->residue[*at].kind == (*first)->kind &&
             strcmp(all->residue[*at].chain, (*first)->chain) == 0;
             ++*at)
            n++;
        if (!has_bar && (*first)->kind == TSR_MOLECULE_NUCLEOTIDE)
            return n;
    }
    return 0;
}

static void draw_strand(const row *r, int n, const tsr_file_residue *first)
{
    char text[64];
    tsr_svg_text(r->svg, LEFT - 14, r->y + 5.0, 15.0, TSR_SVG_END, 0,
                 first->chain);
    tsr_svg_rect(r->svg, LEFT, r->y - 6.0, n * r->scale, 12.0, "#1b7f7a", 1.0);
    snprintf(text, sizeof text, "%s, %d nucleotides",
             first->name[0] == 'D' ? "DNA" : "RNA", n);
    tsr_svg_text(r->svg, LEFT, r->y + 22.0, 11.0, TSR_SVG_START, 0, text);
}

static void draw_key(const row *r, double y)
{
    static const struct {
        const char *colour, *text;
        double height;
    } key[] = {{"#3b6ea5", "rigid part (numbered)", 12.0},
               {flexible_colour, "flexible", 4.0},
               {"#b04a5a", "helix", 8.0},
               {"#c9a227", "strand", 4.0},
               {"#1b7f7a", "confidence", 1.5}};
    int n = has_confidence(r) ? 5 : 4;
    double x = LEFT;
    for (int k = 0; k < n; k++) {
        tsr_svg_rect(r->svg, x, y - 0.5 * key[k].height, 20.0, key[k].height,
                     key[k].colour, 1.0);
        tsr_svg_text(r->svg, x + 26.0, y + 4.0, 11.0, TSR_SVG_START, 0,
                     key[k].text);
        x += k == 0 ? 170.0 : 105.0;
    }
}

static tsr_status write_picture(const work *w, const char *path, tsr_err *err)
{
    int n = w->structure->n_residue, n_chain = 0, longest = 1, n_strand = 0;
    tsr_atoms *all = NULL;
    const tsr_file_residue *strand;
    char title[256];
    const int is_plain = w->parts->evidence == TSR_EVIDENCE_CONTACTS;
    const int high = CHAIN + (is_plain ? 0 : CURVE);
    for (int i = 0; i < n; i = chain_last(w, i) + 1) {
        int length = chain_last(w, i) - i + 1;
        longest = length > longest ? length : longest;
        n_chain++;
    }
    if (tsr_atoms_read(w->job->model, &all, NULL) == TSR_OK)
        for (int at = 0, k;
             (k = next_strand(w->structure, all, &at, &strand)) > 0; n_strand++)
            longest = k > longest ? k : longest;
    row r = {.w = w,
             .svg = tsr_svg_new(WIDTH,
                                TOP + n_chain * high + n_strand * STRAND + KEY),
             .scale = (double)(WIDTH - LEFT - RIGHT) / longest};
    if (r.svg == NULL) {
        tsr_atoms_free(all);
        return tsr_no_memory(err);
    }
    snprintf(title, sizeof title, "%.120s: parts by %s",
             tsr_text_file_name(w->job->model),
             tsr_evidence_text(w->parts->evidence));
    tsr_svg_text(r.svg, LEFT, 24.0, 13.0, TSR_SVG_START, 0, title);
    for (int i = 0, k = 0; i < n; i = r.last + 1, k++) {
        r.first = i;
        r.last = chain_last(w, i);
        r.y = TOP + k * high + 40.0;
        draw_row(&r);
    }
    r.y = TOP + n_chain * high + 14.0;
    for (int at = 0, k;
         n_strand > 0 && (k = next_strand(w->structure, all, &at, &strand)) > 0;
         r.y += STRAND)
        draw_strand(&r, k, strand);
    draw_key(&r, r.y - 12.0);
    tsr_status status = tsr_svg_write(r.svg, path, err);
    tsr_svg_free(r.svg);
    tsr_atoms_free(all);
    return status;
}

/* ---- curves of a command line ---- */

/* Splits FILE=X at the last '=': the file name may contain the character. */
static tsr_status add_sans(tsr_curves *c, const char *text, tsr_err *err)
{
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    const double share = equals != NULL ? strtod(equals + 1, &end) : -1.0;
    if (equals == NULL || equals == text || end == equals + 1 || *end != '\0' ||
        !(share >= 0.0 && share <= 1.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--sans '%s': expected FILE=X, X the fraction of D2O "
                        "in the solvent, 0 to 1: %s=0.42",
                        text, equals == NULL ? text : "exp.dat");
    c->d2o[c->n] = share;
    c->path[c->n++] =
        tsr_pool_format(&c->pool, "%.*s", (int)(equals - text), text);
    return tsr_pool_check(&c->pool, err);
}

tsr_status tsr_deuterated_read(const tsr_strings *chains, tsr_neutron *out,
                               tsr_err *err)
{
    for (int k = 0; k < chains->n; k++)
        if (!tsr_neutron_add_deuterated(out, chains->item[k]))
            return tsr_fail(err, TSR_E_USAGE,
                            "--deuterated '%s': expected CHAIN=X, X from 0 to "
                            "1 (default 1), each chain once, %d at most",
                            chains->item[k], TSR_NEUTRON_CHAINS);
    return TSR_OK;
}

/* Reads "0,5,20 uM": a number for each curve, then the unit. */
static tsr_status read_series(tsr_curves *c, tsr_err *err)
{
    const char *text = c->data->at;
    char *end = NULL;
    int n = 0;
    if (text == NULL)
        return TSR_OK;
    tsr_pool_array(&c->pool, c->at, c->n);
    TSR_TRY(tsr_pool_check(&c->pool, err));
    for (;; text = end + 1) {
        const double x = strtod(text, &end);
        if (end == text || !isfinite(x))
            break;
        if (n < c->n)
            c->at[n] = x;
        n++;
        if (*end != ',')
            break;
    }
    if (n != c->n || end == text)
        return tsr_fail(err, TSR_E_USAGE,
                        "--at '%s': expected a number for each of %d curve%s "
                        "with commas between them, then their unit",
                        c->data->at, c->n, c->n == 1 ? "" : "s");
    c->at_unit = end + strspn(end, " ");
    return TSR_OK;
}

tsr_status tsr_curves_read(const tsr_args *args, const tsr_data_options *data,
                           tsr_curves *c, tsr_err *err)
{
    tsr_neutron neutron = {.n_deuterated = 0};
    const int n = args->n - 1 + data->sans.n;
    *c = (tsr_curves){.n = args->n - 1, .n_xray = args->n - 1, .data = data};
    tsr_pool_array(&c->pool, c->path, n);
    tsr_pool_array(&c->pool, c->d2o, n);
    TSR_TRY(tsr_pool_check(&c->pool, err));
    for (int k = 0; k < c->n_xray; k++)
        c->path[k] = args->argument[k + 1];
    for (int k = 0; k < data->sans.n; k++)
        TSR_TRY(add_sans(c, data->sans.item[k], err));
    TSR_TRY(read_series(c, err));
    if (data->sans.n == 0 &&
        tsr_args_given(args, "exchange") + data->deuterated.n > 0)
        return tsr_fail(err, TSR_E_USAGE, "--%s needs --sans FILE=X",
                        tsr_args_given(args, "exchange") > 0 ? "exchange"
                                                             : "deuterated");
    if ((data->map != NULL) != (data->resolution_ang > 0.0))
        return tsr_fail(err, TSR_E_USAGE, "--%s",
                        data->map == NULL ? "resolution needs --map MAP"
                                          : "map needs the resolution of the "
                                            "map: --resolution R, in Angstrom");
    return tsr_deuterated_read(&data->deuterated, &neutron, err);
}

int tsr_curves_suit(const tsr_curves *c, int k, const tsr_term_options *entry)
{
    const tsr_saxs_options *curve = (const void *)entry;
    const tsr_neutron_options *o = tsr_saxs_neutron(entry);
    const tsr_strings *chains = &c->data->deuterated;
    if (c->at != NULL && (!tsr_saxs_has_own_weights(entry) ||
                          curve->at.word >= 0 || curve->at.number != c->at[k]))
        return 0;
    if (o == NULL || k < c->n_xray)
        return o == NULL && k < c->n_xray;
    const double d2o = o->d2o.word >= 0 ? 0.0 : o->d2o.number;
    int alike = fabs(d2o - c->d2o[k]) < 1e-6 &&
                fabs(o->exchange - c->data->exchange) < 1e-6 &&
                o->deuterated.n == chains->n;
    for (int i = 0; i < chains->n && alike; i++)
        alike = strcmp(o->deuterated.item[i], chains->item[i]) == 0;
    return alike;
}

/* ---- the command ---- */

/* The picture lies next to the configuration unless --picture names a file. */
static tsr_status name_picture(work *w, tsr_err *err)
{
    const char *output = w->job->output;
    if (w->job->picture == NULL && output == NULL)
        return TSR_OK;
    if (w->job->picture != NULL) {
        w->picture = tsr_pool_text(&w->pool, w->job->picture);
    } else {
        const char *name = tsr_text_file_name(output);
        const char *dot = strrchr(name, '.');
        w->picture = tsr_pool_format(&w->pool, "%.*s.svg",
                                     (int)(dot == NULL || dot == name
                                               ? strlen(output)
                                               : (size_t)(dot - output)),
                                     output);
    }
    return tsr_pool_check(&w->pool, err);
}

/* Neither output file may replace an input or a file that is not from tessera.
 */
static tsr_status check_targets(work *w, tsr_err *err)
{
    const tsr_curves *c = w->curves;
    const char *output = w->job->output, **input;
    tsr_pool_array(&w->pool, input, c->n + 2);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int k = 0; k < c->n; k++)
        input[k] = c->path[k];
    input[c->n] = w->job->model;
    input[c->n + 1] = c->data->map;
    const tsr_file_target target = {.maker = "init",
                                    .n_input = c->n + 2,
                                    .input = input,
                                    .is_forced = w->job->force};
    if (output != NULL && output[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a file");
    TSR_TRY(tsr_file_check_target(&target, output, MARK, NULL, err));
    return tsr_file_check_target(&target, w->picture, "<svg", TSR_SVG_MARK,
                                 err);
}

/* Reads the curves, and the map, so that unreadable files are reported before
 * any output. */
static tsr_status read_data(work *w, tsr_log *log, tsr_err *err)
{
    const tsr_data_options *data = w->curves->data;
    tsr_map *map;
    tsr_pool_array(&w->pool, w->saxs, w->curves->n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int k = 0; k < w->curves->n; k++)
        TSR_TRY(tsr_saxs_read(w->curves->path[k], TSR_Q_AUTO, NULL, log,
                              &w->saxs[k], err));
    if (data->map == NULL)
        return TSR_OK;
    TSR_TRY(
        tsr_map_read(data->map, TSR_MAP_ORIGIN_AUTO, log, &w->pool, &map, err));
    return tsr_map_check(map, data->resolution_ang, log, err);
}

static tsr_status write_output(const work *w, FILE *out, tsr_err *err)
{
    tsr_file_writer writer;
    if (w->job->output != NULL) {
        TSR_TRY(tsr_file_begin(&writer, w->job->output, err));
        TSR_TRY(tsr_file_end(&writer, write_yaml(w, writer.out, err), err));
    }
    if (w->job->json)
        print_json(w, out);
    else if (w->job->output != NULL)
        print_parts(w, "", out);
    else
        return write_yaml(w, out, err);
    return TSR_OK;
}

static void report_parts(const work *w, tsr_log *log)
{
    const tsr_parts *p = w->parts;
    char word[TSR_SHELL_SIZE];
    tsr_info(log, "rigid parts and linkers by %s%s%s",
             tsr_evidence_text(p->evidence), w->pae != NULL ? ": " : "",
             w->pae != NULL ? w->pae : "");
    for (int k = 0; k < p->n_note; k++)
        tsr_warn(log, "%s", p->note[k]);
    if (w->job->output != NULL)
        tsr_info(log, "wrote %s%s%s; next: tessera check %s", w->job->output,
                 w->picture != NULL ? " and " : "",
                 w->picture != NULL ? w->picture : "",
                 tsr_text_shell(w->job->output, word));
}

/* 1: the coordinates of the file are kept: no part moves, or the data include a
 * map. */
static tsr_status find_symmetry(work *w, tsr_err *err)
{
    const int n_turning = w->parts->flexible.n - w->parts->n_strand;
    if (w->structure->n_chain < 2 || n_turning == 0 || w->job->dock.n > 0 ||
        can_bend(w) || w->parts->n_strand > 0 || w->curves->data->map != NULL)
        return TSR_OK;
    TSR_TRY(tsr_structure_read_symmetric(w->job->model, "auto", &w->symmetric,
                                         err));
    if (w->symmetric->symmetry.n > 1)
        return TSR_OK;
    tsr_structure_free(w->symmetric);
    w->symmetric = NULL;
    return TSR_OK;
}

static tsr_status make(work *w, FILE *out, tsr_log *log, tsr_err *err)
{
    TSR_TRY(name_picture(w, err));
    TSR_TRY(check_targets(w, err));
    TSR_TRY(tsr_structure_read_any(w->job->model, &w->structure, err));
    TSR_TRY(tsr_parts_find_with_pae(
        w->structure, w->job->pae,
        (tsr_parts_choices){.no_loops = w->job->dock.n > 0}, log, &w->parts,
        &w->pae, err));
    TSR_TRY(read_data(w, log, err));
    TSR_TRY(find_symmetry(w, err));
    if (w->structure->n_residue == 0)
        w->picture = NULL; /* which would show parts of a protein */
    TSR_TRY(write_output(w, out, err));
    if (w->picture != NULL)
        TSR_TRY(write_picture(w, w->picture, err));
    report_parts(w, log);
    return TSR_OK;
}

tsr_status tsr_init_model(const tsr_init_job *job, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    work w = {.job = job, .curves = job->curves};
    tsr_status status = make(&w, out, log, err);
    for (int k = 0; w.saxs != NULL && k < w.curves->n; k++)
        tsr_saxs_free(w.saxs[k]);
    free(w.pae);
    tsr_parts_free(w.parts);
    tsr_structure_free(w.structure);
    tsr_structure_free(w.symmetric);
    tsr_pool_clear(&w.pool);
    return status;
}

typedef struct {
    char *output, *pae, *picture;
    tsr_strings dock;
    tsr_data_options data;
    int force, json;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "FILE",
              .doc = "output file of the configuration, with its picture in "
                     "the same folder (.svg); default: standard output"),
    TSR_FIELD(STRING, "pae", options, pae, .argument = "JSON",
              .doc =
                  "predicted aligned errors of the model, from AlphaFold 2 or "
                  "3; default: the file next to the model, if there is one"),
    TSR_FIELD(STRING, "picture", options, picture, .argument = "SVG",
              .doc = "output file of the picture"),
    TSR_FIELD(STRINGS, "dock", options, dock, .argument = "CHAIN",
              .doc = "chain that is docked to the others: the interface is not "
                     "known, and the place of the chain in the file does not "
                     "matter; may be repeated (docs/docking.md)"),
    TSR_OPTIONS_DATA(options),
    TSR_OPTION_FORCE(options),
    TSR_OPTION_JSON(options),
    {0}};

static tsr_status init(const tsr_args *args, FILE *out, tsr_log *log,
                       tsr_err *err)
{
    const options *o = args->options;
    tsr_curves curves;
    const tsr_init_job job = {.model = args->argument[0],
                              .output = o->output,
                              .pae = o->pae,
                              .picture = o->picture,
                              .dock = o->dock,
                              .force = o->force,
                              .json = o->json,
                              .curves = &curves};
    tsr_status status = tsr_curves_read(args, &o->data, &curves, err);
    TSR_THEN(status, tsr_init_model(&job, out, log, err));
    tsr_pool_clear(&curves.pool);
    return status;
}

const tsr_command tsr_command_init = {
    .name = "init",
    .doc = "write a configuration for a model and curves",
    .arguments = "MODEL [CURVE]...",
    .options = fields,
    .size = sizeof(options),
    .about = "Finds the rigid and flexible parts of the model: from predicted "
             "aligned errors if available, from pLDDT in the B column, else "
             "from contacts and secondary structure. Draws them along the "
             "chains, and lists missing residues. docs/domains.md describes "
             "the method. CURVEs are X-ray curves; give neutron curves with "
             "--sans, a density map with --map. --json prints what was found.",
    .run = init};
