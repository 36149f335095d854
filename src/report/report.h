/* The report of a run: report.html, one file that works offline, and its
 * figures as SVG. */
#ifndef TSR_REPORT_REPORT_H
#define TSR_REPORT_REPORT_H

#include "analysis/diagnose.h"
#include "analysis/frames.h"
#include "analysis/shape.h"
#include "answer/verdict.h"
#include "core/log.h"
#include "likelihood/term.h"
#include "maps/map_view.h"
#include "report/figure.h"
#include "scattering/profile_fit.h"
#include "scattering/saxs.h"
#include "store/trace.h"

#include <stdio.h>

/* An entry of `data:`. */
typedef struct {
    int kind;      /* index into tsr_term_registry */
    char name[96]; /* its file, or what it is between; "": it has neither */
} tsr_report_data;

/* Where there was no run: a curve, and the structure's fit to it. */
typedef struct {
    const tsr_saxs *saxs;
    const double *curve; /* at its points: scale I + background */
    const tsr_profile_fit *fit;
    double rg_guinier, rg, d_max; /* Angstrom, of the structure */
} tsr_report_rigid_fit;

/* The prior density of a parameter, which needs no run. */
enum { TSR_REPORT_DENSITY = 120 };
typedef struct {
    char name[64]; /* as in the trace */
    double x[TSR_REPORT_DENSITY], y[TSR_REPORT_DENSITY];
} tsr_report_prior;

/* What a density map and the draws look like beside each other. */
typedef struct {
    const tsr_term_type *type;
    int ordinal; /* among the entries of its kind, from 0 */
    const tsr_atoms *atoms;
    tsr_map_view view;
} tsr_report_map;

typedef struct {
    const tsr_verdict *verdict; /* NULL: there was no run, but */
    int n_rigid;
    const tsr_report_rigid_fit *rigid; /* [n_rigid] */
    const char *solved;                /* as of tsr_report_solve_verdict */
    double mass;                       /* Da, of the model; NaN: not known */
    const char *file; /* beside the page: model or fit; NULL: none */
    const tsr_model_atoms *atoms; /* the start; NULL: no view of it */
    const char *name;             /* of the run, the title */
    const char *methods;          /* a paragraph for a paper; NULL: none */
    const char *remark;           /* "not finished ..."; NULL: none */
    int n_data;                   /* 0: names are not known */
    const tsr_report_data *data;  /* [n_data] the entries of `data:` */
    int n_map;                    /* maps that could be looked at */
    const tsr_report_map *map;    /* [n_map] */
    int is_prior;                 /* 1: the run saw no data */
    int n_density;
    const tsr_report_prior *density; /* [n_density] */
    tsr_trace_reader *prior;         /* a run of the prior alone; NULL: none */
    tsr_frames *frames;              /* its conformations; NULL: none */
    const tsr_shape *shape;          /* of these */
    const char *no_frames; /* why there are none; NULL: nothing to say */
    tsr_diagnose_options diagnose;
} tsr_report_options;

/* What `solve` said, verdict.json, where `directory` is one of its runs; caller
 * frees; NULL: it is none. */
char *tsr_report_solve_verdict(const char *directory);

/* Writes `path` (HTML) and the SVG files into `folder`, which is there. trace
 * NULL: there was no run. Figures for which the trace has nothing are left out.
 * Progress goes to `log`. Errors: TSR_E_IO, TSR_E_NOMEM, those of tsr_diagnose.
 */
tsr_status tsr_report_write(tsr_trace_reader *trace,
                            const tsr_report_options *options, const char *path,
                            const char *folder, tsr_log *log, tsr_err *err);

/* ---- shell correlations, here and in tessera map fsc ---- */

/* A panel for s up to `end`, with lines at 0.5 and 0.143; and a curve in it. */
void tsr_fsc_panel(tsr_figure *figure, double end, double low, int height);
void tsr_fsc_curve(tsr_figure *figure, tsr_layer_kind kind, const char *label,
                   const char *colour, const tsr_fsc *fsc);

/* ---- its page ----
 *
 * Headings, words, tables and figures, one HTML file that needs nothing else.
 */

/* report.js and so on, embedded at build by kernels/embed.c. */
extern const char tsr_report_js[], tsr_report_view_js[], tsr_report_css[];

typedef struct tsr_page tsr_page;

/* folder: where the figures also go, as NAME.svg and, in numbers, NAME.csv; it
 * is there. NULL when out of memory. */
tsr_page *tsr_page_new(const char *title, const char *folder);
void tsr_page_free(tsr_page *page);

/* The first screen: columns beside each other where the window is wide enough,
 * above all else. A page begins with a column; what follows goes into it, or
 * below the first screen where is_first is 0. */
void tsr_page_column(tsr_page *page);
void tsr_page_use_first_screen(tsr_page *page, int is_first);

/* A heading with its entry in the list at the top. */
void tsr_page_section(tsr_page *page, const char *id, const char *heading);

/* A paragraph. `format` is HTML and ours; what comes from a file goes through
 * tsr_page_text. */
void tsr_page_words(tsr_page *page, const char *format, ...) TSR_PRINTF(2, 3);

/* HTML as it is; the stream takes more of it. */
FILE *tsr_page_html(tsr_page *page);

/* The script of the page, which runs once all of it is there. */
FILE *tsr_page_script(tsr_page *page);

/* Text with what means something in HTML escaped. */
void tsr_page_text(tsr_page *page, const char *text);

/* A paragraph: `lead` is HTML and ours, the text is escaped. class_of: of the
 * style, "" for none. Nothing where the text is NULL. */
void tsr_page_paragraph(tsr_page *page, const char *class_of, const char *lead,
                        const char *text);

/* A table: its head, rows, its end. Cells are separated by tabs, and HTML: what
 * comes from a file goes through tsr_page_escape. */
void tsr_page_table(tsr_page *page, const char *class_of, const char *head);
void tsr_page_row(tsr_page *page, const char *format, ...) TSR_PRINTF(2, 3);
void tsr_page_table_end(tsr_page *page);

/* For rows: a text with what means something in HTML escaped; a number, or a
 * dash where it is not finite. */
const char *tsr_page_escape(tsr_page *page, const char *text);
const char *tsr_page_number(tsr_page *page, int decimals, double value);

/* Writes the figure as SVG and puts it into the page; takes it, also when it
 * fails. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_page_figure(tsr_page *page, tsr_figure figure, tsr_err *err);

/* Figures up to tsr_page_columns_end stand beside each other where the window
 * is wide enough. */
void tsr_page_columns(tsr_page *page);
void tsr_page_columns_end(tsr_page *page);

/* Of the figures up to tsr_page_choice_end one shows at a time, which is chosen
 * from a list of their titles; the range of x goes with the choice. Without
 * scripts all of them show. words: before the list. */
void tsr_page_choice(tsr_page *page, const char *id, const char *words);
void tsr_page_choice_end(tsr_page *page);

/* Writes the file: beside, then renamed. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_page_write(tsr_page *page, const char *path, tsr_err *err);

/* ---- its sections, for src/report and tests ---- */

typedef struct {
    tsr_pool pool; /* of arrays of its sections */
    tsr_trace_reader *trace;
    const tsr_report_options *options;
    tsr_diagnosis *diagnosis; /* its summary has the prior's columns */
    tsr_page *page;
    const char *folder;        /* of the figures */
    tsr_domains *domains;      /* of the conformations; NULL: none */
    int n_state;               /* of the conformations */
    tsr_convergence rg, d_max; /* as tsr_report_interval shows them */
    /* Residues on axes: with the file's numbers where it has one chain without
     * a gap, else counted from 1. */
    int first_residue;
    char residue_title[48];
} tsr_report;

#define TSR_COLOUR_PRIOR "#8a8a8a" /* beside those of figure.h */

enum { TSR_MOST_CHAINS = 10 }; /* that are drawn one by one */

/* The state of conformation i of those that were looked at, from 1. */
int tsr_report_state(const tsr_report *report, int i);

/* The colour of chain or state c, from 0. */
const char *tsr_report_chain_colour(int c);

/* A variable of posterior or sample_stats with one number a draw, *value
 * [*n_chain][*n_draw]; NULL where there is none, it cannot be read, or a number
 * is not finite. Errors: TSR_E_NOMEM. */
tsr_status tsr_report_scalar(tsr_report *report, tsr_trace_reader *trace,
                             const char *name, int *n_chain, int *n_draw,
                             double **value, tsr_err *err);

/* The name of a measurement, the ordinal-th of its kind (from 0); NULL: not
 * known. */
const char *tsr_report_data_name(const tsr_report *report,
                                 const tsr_term_type *type, int ordinal);

/* A histogram as the outline of its bars; x, y [TSR_OUTLINE]. Density: the area
 * is 1. Bins span the draws but for the outermost 0.1 % on either side, which
 * are counted in the last bins. There are as many as `ess` independent draws
 * (NaN: n) can fill: the rule of Freedman & Diaconis (1981). value [n] is
 * sorted. Returns how many points; 0 where all are the same. */
enum { TSR_OUTLINE = 82 };
int tsr_report_outline(size_t n, double ess, double *value, double *x,
                       double *y);

/* "28.4 [28.1, 28.8]", mean and middle 90 % of the draws; of one structure (q5
 * NaN) a number; "-": not known. text [64], returned. */
const char *tsr_report_interval(const tsr_convergence *value, char text[64]);
/* The molecule that turns. */
tsr_status tsr_report_view(tsr_report *report, tsr_err *err);
/* Numbers: the table, and what the prior became. */
tsr_status tsr_report_numbers(tsr_report *report, tsr_err *err);
/* Fit, residuals, Guinier and Kratky plots of every data set. */
tsr_status tsr_report_fit(tsr_report *report, tsr_err *err);
/* What was measured beside curves: a section for each kind of term. */
tsr_status tsr_report_terms(tsr_report *report, tsr_err *err);
/* Maps beside the draws, in the section of their kind. */
tsr_status tsr_report_maps(tsr_report *report, const tsr_term_type *type,
                           tsr_err *err);
/* Distributions of the scalars, the prior beside them. */
tsr_status tsr_report_posterior(tsr_report *report, tsr_err *err);
/* Distances, mobility, arrangements, timeline of the conformations. */
tsr_status tsr_report_structure(tsr_report *report, tsr_err *err);

/* Draws across, residues and domains up, below their traces. */
tsr_status tsr_report_timeline(tsr_report *report, const tsr_domains *domains,
                               tsr_err *err);

/* Into the last panel: columns across and the rows of the shape up, value
 * [n_x][n_row]. */
void tsr_report_add_rows(tsr_report *report, tsr_figure *f, int n_x, double x0,
                         double dx, const double *value);

/* Air at both ends of the first panel's x. */
void tsr_report_add_margin(tsr_figure *f);
/* Whether the run has converged, in a line that opens to the questions that
 * were asked. */
void tsr_report_convergence(tsr_report *report);
/* Traces. */
tsr_status tsr_report_chains(tsr_report *report, tsr_err *err);

#endif
