/* Writes the data of the 3D view as JSON for report_view.js: C-alpha traces of
 * representative draws, in tenths of an Angstrom. Each conformation comes with
 * the rigid motions that superpose it on the starting structure, over all
 * residues and over each domain, so that the page only has to apply a motion.
 */
#include "report/report.h"

#include "analysis/shape.h"
#include "core/json.h"

#include <math.h>
#include <string.h>

enum { MOST_DRAWS = 24, LEAST_DRAWS = 4, MOST_POINTS = 20000 };

/* A draw: its conformations are the states of one ensemble. */
typedef struct {
    int chain;
    long draw;
    int arrangement; /* arrangement of which this is the central draw, from 1;
                        0: of no arrangement */
} shown_draw;

static int append_draw(int n, shown_draw *list, const tsr_drawn_frame *f,
                       int arrangement)
{
    for (int i = 0; i < n; i++)
        if (list[i].chain == f->chain && list[i].draw == f->draw)
            return n;
    list[n] = (shown_draw){f->chain, f->draw, arrangement};
    return n + 1;
}

/* The central draws of the arrangements, then draws at regular intervals, so
 * that the page holds at most about MOST_POINTS points. list
 * [TSR_MOST_ARRANGEMENTS + MOST_DRAWS] out; returns the number of draws. */
static int choose_draws(const tsr_report *r, shown_draw *list)
{
    const tsr_shape *s = r->options->shape;
    const tsr_arrangements *a = r->options->diagnose.arrangements;
    const tsr_drawn_frame *frame;
    int n = 0;
    tsr_frames_list(r->options->frames, &frame);
    for (int i = 0; a != NULL && i < a->n && i < TSR_MOST_ARRANGEMENTS; i++)
        n = append_draw(n, list, &frame[a->item[i].frame], i + 1);
    int most = MOST_POINTS / s->n_residue / r->n_state;
    most = most > MOST_DRAWS    ? MOST_DRAWS
           : most < LEAST_DRAWS ? LEAST_DRAWS
                                : most;
    const int n_first =
        s->n /
        r->n_state; /* number of conformations of state 1, approximately */
    for (int i = 0, k = 0, seen = 0; i < s->n && k < most; i++)
        if (tsr_report_state(r, i) == 1 &&
            seen++ >= (int)((long)k * n_first / most)) {
            n = append_draw(n, list, &frame[s->at[i]], 0);
            k++;
        }
    return n;
}

/* ---- JSON ---- */

/* Writes the motion that superposes a conformation on the starting structure
 * over the residues at [n] (NULL: all): a rotation, nine numbers, and a shift,
 * three numbers in Angstrom. */
static tsr_status write_motion(tsr_json *j, const tsr_model_atoms *model, int n,
                               const int *at, const double (*ca)[3],
                               tsr_err *err)
{
    double(*start)[3], row[12];
    tsr_motion motion;
    tsr_pool pool = {0};
    tsr_pool_array(&pool, start, model->n_residue);
    TSR_TRY(tsr_pool_check(&pool, err));
    tsr_start_ca(model, start);
    tsr_superpose(n, at, (const double(*)[3])start, ca, &motion);
    memcpy(row, motion.rotation, sizeof motion.rotation);
    memcpy(row + 9, motion.shift, sizeof motion.shift);
    tsr_json_numbers(j, NULL, 12, row);
    tsr_pool_clear(&pool);
    return TSR_OK;
}

/* The atoms that are drawn: CA of the residues, then phosphorus of nucleotides,
 * and all atoms but hydrogens of ligands. point [n_atom] out, indices of atoms;
 * returns their number. */
static int list_points(const tsr_model_atoms *model, int *point)
{
    int n = model->n_residue;
    memcpy(point, model->ca, (size_t)n * sizeof *point);
    for (int i = 0; i < model->n_atom; i++) {
        const tsr_model_atom *a = &model->atom[i];
        if (a->guest_kind == TSR_GUEST_LIGAND
                ? strcmp(a->element, "H") != 0
                : a->guest_kind != TSR_GUEST_NONE && !model->is_nucleic &&
                      strcmp(a->name, "P") == 0)
            point[n++] = i;
    }
    return n;
}

/* 1 where no line joins point i to the previous point. */
static int is_cut(const tsr_model_atoms *model, const int *point, int i)
{
    /* longest line, Angstrom: CA to CA, bond of a ligand, P to P */
    static const double longest[] = {[TSR_GUEST_NONE] = 4.5,
                                     [TSR_GUEST_LIGAND] = 2.0,
                                     [TSR_GUEST_NUCLEOTIDE] = 8.5};
    const tsr_model_atom *a = &model->atom[point[i - 1]];
    const tsr_model_atom *b = &model->atom[point[i]];
    const double *x = &model->xyz[3 * point[i - 1]];
    const double *y = &model->xyz[3 * point[i]];
    return a->chain != b->chain || a->guest_kind != b->guest_kind ||
           hypot(hypot(y[0] - x[0], y[1] - x[1]), y[2] - x[2]) >
               longest[b->guest_kind];
}

/* Writes a conformation; xyz [n]: coordinates of the points, Angstrom. */
static tsr_status write_conformation(tsr_json *j, const tsr_report *r,
                                     int state, int n, const double (*xyz)[3],
                                     tsr_err *err)
{
    const tsr_model_atoms *model = r->options->atoms;
    const tsr_domains *d = r->domains;
    tsr_json_object(j, NULL);
    tsr_json_integer(j, "state", state);
    tsr_json_array(j, "xyz");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            tsr_json_integer(j, NULL, lround(10.0 * xyz[i][k]));
    tsr_json_close(j);
    tsr_json_array(j, "motions");
    tsr_status status =
        write_motion(j, model, model->n_residue, NULL, xyz, err);
    for (int k = 0; d != NULL && k < d->n_domain && status == TSR_OK; k++)
        status = write_motion(j, model, d->domain[k].n_residue,
                              d->domain[k].residue, xyz, err);
    tsr_json_close(j);
    tsr_json_close(j);
    return status;
}

static tsr_status write_start(tsr_json *j, const tsr_report *r, int n,
                              const int *point, double (*ca)[3], tsr_err *err)
{
    const tsr_model_atoms *model = r->options->atoms;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            ca[i][k] = model->xyz[3 * point[i] + k];
    tsr_json_object(j, NULL);
    tsr_json_text(j, "name", "start");
    tsr_json_array(j, "conformations");
    tsr_status status =
        write_conformation(j, r, 0, n, (const double(*)[3])ca, err);
    tsr_json_close(j);
    tsr_json_close(j);
    return status;
}

static tsr_status write_draw(tsr_json *j, const tsr_report *r,
                             const shown_draw *draw, int n, const int *point,
                             double (*ca)[3], tsr_err *err)
{
    const tsr_arrangements *found = r->options->diagnose.arrangements;
    const tsr_drawn_frame *frame;
    const int n_frame = tsr_frames_list(r->options->frames, &frame);
    tsr_status status = TSR_OK;
    char name[96];
    int length = snprintf(name, sizeof name, "chain %d, draw %ld", draw->chain,
                          draw->draw);
    if (draw->arrangement > 0)
        snprintf(name + length, sizeof name - (size_t)length,
                 ": centre of arrangement %d (%.0f %%)", draw->arrangement,
                 100.0 * found->item[draw->arrangement - 1].share);
    tsr_json_object(j, NULL);
    tsr_json_text(j, "name", name);
    tsr_json_array(j, "conformations");
    for (int i = 0; i < n_frame && status == TSR_OK; i++) {
        const float *xyz;
        if (frame[i].chain != draw->chain || frame[i].draw != draw->draw)
            continue;
        status = tsr_frames_read(r->options->frames, i, &xyz, err);
        for (int a = 0; a < n && status == TSR_OK; a++)
            for (int k = 0; k < 3; k++)
                ca[a][k] = (double)xyz[3 * point[a] + k];
        TSR_THEN(status, write_conformation(j, r, frame[i].state, n,
                                            (const double(*)[3])ca, err));
    }
    tsr_json_close(j);
    tsr_json_close(j);
    return status;
}

/* Writes the chains: ranges of points of one chain and kind, with their names.
 */
static void write_chains(tsr_json *j, const tsr_model_atoms *model, int n,
                         const int *point)
{
    tsr_json_array(j, "chains");
    for (int i = 0, last; i < n; i = last + 1) {
        const tsr_model_atom *a = &model->atom[point[i]];
        const int is_strand = a->guest_kind == TSR_GUEST_NUCLEOTIDE ||
                              (!a->guest_kind && model->is_nucleic);
        char name[48];
        for (last = i; last + 1 < n; last++) {
            const tsr_model_atom *b = &model->atom[point[last + 1]];
            if (b->chain != a->chain || b->guest_kind != a->guest_kind)
                break;
        }
        if (a->guest_kind == TSR_GUEST_LIGAND)
            snprintf(name, sizeof name, "ligands of chain %c, %s", a->chain,
                     a->residue);
        else
            snprintf(name, sizeof name, "%s %c",
                     is_strand ? (a->residue[0] == 'D' ? "DNA" : "RNA")
                               : "chain",
                     a->chain);
        tsr_json_object(j, NULL);
        tsr_json_members(j, "name %s first %d last %d kind %s", name, i, last,
                         a->guest_kind == TSR_GUEST_LIGAND ? "ligand"
                         : is_strand                       ? "strand"
                                                           : "protein");
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

/* Writes names of residues, breaks of the trace, chains and domains. */
static void write_residues(tsr_json *j, const tsr_report *r, int n,
                           const int *point)
{
    const tsr_model_atoms *model = r->options->atoms;
    const tsr_domains *d = r->domains;
    char text[120];
    tsr_json_array(j, "residues");
    for (int i = 0; i < n; i++) {
        const tsr_model_atom *a = &model->atom[point[i]];
        const char insertion[2] = {a->insertion, '\0'};
        snprintf(text, sizeof text, "%c:%d%s %s", a->chain, a->number,
                 a->insertion == ' ' ? "" : insertion, a->residue);
        tsr_json_text(j, NULL, text);
    }
    tsr_json_close(j);
    tsr_json_array(j, "cuts");
    for (int i = 1; i < n; i++)
        if (is_cut(model, point, i))
            tsr_json_integer(j, NULL, i);
    tsr_json_close(j);
    write_chains(j, model, n, point);
    tsr_json_array(j, "domains");
    for (int k = 0; d != NULL && k < d->n_domain; k++) {
        tsr_domain_name(model, &d->domain[k], sizeof text, text);
        tsr_json_object(j, NULL);
        tsr_json_text(j, "name", text);
        tsr_json_array(j, "residues");
        for (int i = 0; i < d->domain[k].n_residue; i++)
            tsr_json_integer(j, NULL, d->domain[k].residue[i]);
        tsr_json_close(j);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static tsr_status write_molecule(tsr_report *r, int n, const shown_draw *list,
                                 FILE *out, tsr_err *err)
{
    const tsr_model_atoms *model = r->options->atoms;
    tsr_json j = {.out = out, .digits = 6, .is_script = 1};
    double(*xyz)[3];
    int *point;
    tsr_pool_array(&r->pool, xyz, model->n_atom);
    tsr_pool_array(&r->pool, point, model->n_atom);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    const int n_point = list_points(model, point);
    tsr_json_object(&j, NULL);
    write_residues(&j, r, n_point, point);
    tsr_json_array(&j, "draws");
    tsr_status status = write_start(&j, r, n_point, point, xyz, err);
    for (int i = 0; i < n && status == TSR_OK; i++)
        status = write_draw(&j, r, &list[i], n_point, point, xyz, err);
    tsr_json_close(&j);
    tsr_json_close(&j);
    return status;
}

tsr_status tsr_report_view(tsr_report *report, tsr_err *err)
{
    shown_draw list[TSR_MOST_ARRANGEMENTS + MOST_DRAWS];
    tsr_page *page = report->page;
    if (report->options->atoms == NULL)
        return TSR_OK;
    const int n = report->domains != NULL ? choose_draws(report, list) : 0;
    tsr_page_column(page);
    tsr_page_section(page, "view", "The molecule");
    fputs("<figure id=\"molecule\"></figure>\n<noscript><p>The 3D view needs a "
          "browser with JavaScript.</p></noscript>\n",
          tsr_page_html(page));
    fputs("<details><summary>About this view</summary>\n", tsr_page_html(page));
    tsr_page_words(
        page,
        "C&alpha; trace, phosphorus atoms of nucleic acids and all atoms of "
        "ligands, for %d draw%s and the starting structure: one as a tube, the "
        "others as thin lines. Drag or use the arrow keys to rotate; zoom with "
        "+ and &minus;, two fingers, or the wheel after a click; 0 resets the "
        "view. After superposition on one domain, the spread of the other "
        "domains shows how freely they move relative to it. Model files "
        "contain backbones and side-chain centres; <code>tessera export</code> "
        "writes all atoms.",
        n, n == 1 ? "" : "s");
    fputs("</details>\n", tsr_page_html(page));
    tsr_page_use_first_screen(page, 0);
    FILE *out = tsr_page_script(page);
    fputs("tesseraMolecule=", out);
    tsr_status status = write_molecule(report, n, list, out, err);
    fputs(";\n", out);
    return status;
}
