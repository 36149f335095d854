/* The picture of `tessera init`: a bar a chain, coloured by rigid part, what
 * moves as a thin line, secondary structure above it, and where a prediction
 * tells it, how sure it is, below; then the strands that ride on the protein.
 */
#include "commands/init_config.h"

#include "core/text.h"
#include "molecule/structure.h"
#include "report/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const tsr_init *init;
    tsr_svg *svg;
    int first, last; /* of the chain */
    double y;        /* its middle */
    double scale;    /* pixels a residue, the same for all chains */
} row;

static double x_of(const row *r, double residue)
{
    return LEFT + (residue - r->first) * r->scale;
}

static void draw_structure(const row *r)
{
    const char *kind = r->init->parts->kind;
    for (int i = r->first, last; i <= r->last; i = last + 1) {
        int is_helix = kind[i] == 'H';
        for (last = i; last < r->last && kind[last + 1] == kind[i];)
            last++;
        if (is_helix || kind[i] == 'E')
            tsr_svg_rect(r->svg, x_of(r, i), r->y - (is_helix ? 26 : 24),
                         (last - i + 1) * r->scale, is_helix ? 8 : 4,
                         is_helix ? "#b04a5a" : "#c9a227", 1.0);
    }
}

static void draw_stretches(const row *r)
{
    for (int i = r->first; i <= r->last;) {
        char text[64];
        tsr_init_stretch s = tsr_init_stretch_at(r->init, i);
        double x0 = x_of(r, s.first), x1 = x_of(r, s.last + 1);
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
    return r->init->parts->evidence != TSR_EVIDENCE_CONTACTS;
}

/* How sure a prediction is, from 0 at the bottom to 1. */
static void draw_confidence(const row *r)
{
    size_t n = (size_t)(r->last - r->first) + 1;
    double *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    for (size_t k = 0; x != NULL && y != NULL && k < n; k++) {
        x[k] = x_of(r, r->first + (double)k + 0.5);
        y[k] = r->y + 36.0 -
               18.0 * r->init->parts->confidence[(size_t)r->first + k];
    }
    if (x != NULL && y != NULL)
        tsr_svg_stroke(r->svg, (int)n, x, y, "#1b7f7a", 1.2, 1.0, NULL);
    free(x);
    free(y);
}

/* Where stretches begin, as far as the numbers have room; and the last. */
static void draw_numbers(const row *r)
{
    const tsr_residue_record *residue = r->init->structure->residue;
    double y = r->y + (has_confidence(r) ? 38.0 : 18.0), taken = -100.0;
    double end = x_of(r, r->last + 1);
    char text[32];
    for (int i = r->first; i <= r->last;) {
        tsr_init_stretch s = tsr_init_stretch_at(r->init, i);
        double x = x_of(r, i);
        if (x - taken > 24.0 && end - x > 24.0) {
            snprintf(text, sizeof text, "%d", residue[i].number);
            tsr_svg_line(r->svg, x, y, x, y + 4.0, "#888888", 1.0);
            tsr_svg_text(r->svg, x, y + 14.0, 10.0, TSR_SVG_MIDDLE, 0, text);
            taken = x;
        }
        i = s.last + 1;
    }
    snprintf(text, sizeof text, "%d", residue[r->last].number);
    tsr_svg_line(r->svg, end, y, end, y + 4.0, "#888888", 1.0);
    tsr_svg_text(r->svg, end, y + 14.0, 10.0, TSR_SVG_MIDDLE, 0, text);
}

static void draw_row(const row *r)
{
    char name[32];
    snprintf(name, sizeof name, "%s",
             r->init->structure->residue[r->first].chain);
    tsr_svg_text(r->svg, LEFT - 14, r->y + 5.0, 15.0, TSR_SVG_END, 0, name);
    draw_structure(r);
    draw_stretches(r);
    if (has_confidence(r))
        draw_confidence(r);
    draw_numbers(r);
}

/* The next strand from residue *at of the file on whose chain has no bar yet:
 * how many nucleotides; *at behind it; 0: there is none. */
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

tsr_status tsr_init_picture(const tsr_init *init, const char *path,
                            tsr_err *err)
{
    int n = init->structure->n_residue, n_chain = 0, longest = 1, n_strand = 0;
    tsr_atoms *all = NULL;
    const tsr_file_residue *strand;
    char title[256];
    const int is_plain = init->parts->evidence == TSR_EVIDENCE_CONTACTS;
    const int high = CHAIN + (is_plain ? 0 : CURVE);
    for (int i = 0; i < n; i = tsr_init_chain_last(init, i) + 1) {
        int length = tsr_init_chain_last(init, i) - i + 1;
        longest = length > longest ? length : longest;
        n_chain++;
    }
    if (tsr_atoms_read(init->model, &all, NULL) == TSR_OK)
        for (int at = 0, k;
             (k = next_strand(init->structure, all, &at, &strand)) > 0;
             n_strand++)
            longest = k > longest ? k : longest;
    row r = {.init = init,
             .svg = tsr_svg_new(WIDTH,
                                TOP + n_chain * high + n_strand * STRAND + KEY),
             .scale = (double)(WIDTH - LEFT - RIGHT) / longest};
    if (r.svg == NULL) {
        tsr_atoms_free(all);
        return tsr_no_memory(err);
    }
    snprintf(title, sizeof title, "%.120s: parts by %s",
             tsr_text_file_name(init->model),
             tsr_evidence_text(init->parts->evidence));
    tsr_svg_text(r.svg, LEFT, 24.0, 13.0, TSR_SVG_START, 0, title);
    for (int i = 0, k = 0; i < n; i = r.last + 1, k++) {
        r.first = i;
        r.last = tsr_init_chain_last(init, i);
        r.y = TOP + k * high + 40.0;
        draw_row(&r);
    }
    r.y = TOP + n_chain * high + 14.0;
    for (int at = 0, k; n_strand > 0 && (k = next_strand(init->structure, all,
                                                         &at, &strand)) > 0;
         r.y += STRAND)
        draw_strand(&r, k, strand);
    draw_key(&r, r.y - 12.0);
    tsr_status status = tsr_svg_write(r.svg, path, err);
    tsr_svg_free(r.svg);
    tsr_atoms_free(all);
    return status;
}
