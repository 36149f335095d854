/* The report of a run: report.html, one file that a browser shows without a
 * network, and the figures as SVG and CSV files. */
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

/* An entry of `data:` in the configuration. */
typedef struct {
    int kind;      /* index into tsr_term_registry */
    char name[96]; /* file name, or the two residues of a distance; "": the
                      entry has neither */
} tsr_report_data;

/* A measured curve and the fit of the rigid starting structure to it, for a
 * report without a run. */
typedef struct {
    const tsr_saxs *saxs;
    const double *curve; /* [saxs->n] scale I + background */
    const tsr_profile_fit *fit;
    /* Angstrom; rg_guinier: of the model curve, the others: of the structure */
    double rg_guinier, rg, d_max;
} tsr_report_rigid_fit;

/* The prior density of a parameter, tabulated from the configuration. No run
 * without data is needed for this density, unlike for the prior of the
 * structure. */
enum { TSR_REPORT_DENSITY = 120 };
typedef struct {
    char name[64]; /* variable of the trace */
    double x[TSR_REPORT_DENSITY], y[TSR_REPORT_DENSITY];
} tsr_report_prior;

/* A density map compared with the draws. */
typedef struct {
    const tsr_term_type *type;
    int ordinal; /* number of the entry among those of its kind, from 0 */
    const tsr_atoms *atoms;
    tsr_map_view view;
} tsr_report_map;

/* The contents of a report. All pointers are borrowed. */
typedef struct {
    const tsr_verdict *verdict; /* NULL: no run; `rigid` is shown */
    int n_rigid;
    const tsr_report_rigid_fit *rigid; /* [n_rigid] */
    const char *solved; /* from tsr_report_solve_verdict; NULL: the run belongs
                           to no solve */
    double mass;        /* mass of the model, Da; NaN: not known */
    const char *file;   /* the model or the fit, a file that the page links to;
                           NULL: no link */
    const tsr_model_atoms *atoms; /* starting structure; NULL: no 3D view */
    const char *name;             /* name of the run, title of the page */
    const char *methods; /* a methods paragraph for a paper; NULL: no such
                            paragraph */
    const char *remark;  /* "not finished ..."; NULL: no remark */
    int n_data;          /* 0: the entries are not known */
    const tsr_report_data *data; /* [n_data] */
    int n_map;                   /* maps that were compared with the draws */
    const tsr_report_map *map;   /* [n_map] */
    int is_prior;                /* 1: a run of the prior, without data */
    int n_density;
    const tsr_report_prior *density; /* [n_density] */
    tsr_trace_reader *prior;         /* a run with --prior-only; NULL: no such
                                        run */
    tsr_frames *frames;              /* conformations of the run; NULL: not
                                        available */
    const tsr_shape *shape;          /* statistics of `frames`; NULL where
                                        `frames` is NULL */
    const char *no_frames; /* why there are no frames, for the reader; NULL: not
                              stated */
    tsr_diagnose_options diagnose;
} tsr_report_options;

/* The verdict of `tessera solve` (verdict.json of the folder above) as JSON
 * text, where `directory` is one of the runs that the verdict lists. Caller
 * frees. NULL: the directory belongs to no solve. */
char *tsr_report_solve_verdict(const char *directory);

/* Writes the page to `path` (HTML), and SVG and CSV files of all figures into
 * `folder`, which must exist. trace NULL: no run. A figure is left out where
 * the trace lacks its variables. Progress goes to `log`. Errors: TSR_E_IO,
 * TSR_E_NOMEM, those of tsr_diagnose. */
tsr_status tsr_report_write(tsr_trace_reader *trace,
                            const tsr_report_options *options, const char *path,
                            const char *folder, tsr_log *log, tsr_err *err);

/* ---- the HTML page ----
 *
 * Headings, paragraphs, tables and figures, collected in memory and written as
 * one HTML file. Its policy for content lets a browser load pictures beside the
 * page, and nothing from elsewhere. */

/* report.js, report_view.js and report.css, embedded at build time by
 * kernels/embed.c. */
extern const char tsr_report_js[], tsr_report_view_js[], tsr_report_css[];

typedef struct tsr_page tsr_page;

/* folder: existing folder for NAME.svg, the picture of figure NAME, and
 * NAME.csv, its numbers. NULL when out of memory. */
tsr_page *tsr_page_new(const char *title, const char *folder);
void tsr_page_free(tsr_page *page);

/* The first screen is the uppermost part of the page. Its columns stand side by
 * side in a wide window, below each other in a narrow one. tsr_page_column
 * begins a column, with which every page must begin.
 * After tsr_page_use_first_screen(page, 0) all additions go below the first
 * screen, after (page, 1) into the last column of the first screen. */
void tsr_page_column(tsr_page *page);
void tsr_page_use_first_screen(tsr_page *page, int is_first);

/* Adds a heading, and a link to it in the list at the top of the page. */
void tsr_page_section(tsr_page *page, const char *id, const char *heading);

/* Adds a paragraph. `format` and its arguments are trusted HTML. Text from a
 * file must go through tsr_page_text or tsr_page_escape. */
void tsr_page_words(tsr_page *page, const char *format, ...) TSR_PRINTF(2, 3);

/* The stream of the page's body, to which trusted HTML can be written. */
FILE *tsr_page_html(tsr_page *page);

/* The stream of the page's script, which the browser runs after it has loaded
 * the whole page. */
FILE *tsr_page_script(tsr_page *page);

/* Adds text, with &, < and > escaped. */
void tsr_page_text(tsr_page *page, const char *text);

/* Adds a paragraph: `lead` (trusted HTML), then `text`, escaped. class_of: CSS
 * class; "": no class. Adds nothing where the text is NULL. */
void tsr_page_paragraph(tsr_page *page, const char *class_of, const char *lead,
                        const char *text);

/* Adds a table: the head, rows, the end. Cells are separated by tabs and are
 * trusted HTML. Text from a file must go through tsr_page_escape. */
void tsr_page_table(tsr_page *page, const char *class_of, const char *head);
void tsr_page_row(tsr_page *page, const char *format, ...) TSR_PRINTF(2, 3);
void tsr_page_table_end(tsr_page *page);

/* For the arguments of a row: a text with &, < and > escaped; a number, or a
 * dash where `value` is not finite. The page owns the result. */
const char *tsr_page_escape(tsr_page *page, const char *text);
const char *tsr_page_number(tsr_page *page, int decimals, double value);

/* Finishes the figure, writes its SVG and CSV files, and adds it to the page.
 * Takes ownership of the figure, also when it fails. Errors: TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_page_figure(tsr_page *page, tsr_figure figure, tsr_err *err);

/* Figures between the two calls stand side by side where the window is wide
 * enough. */
void tsr_page_columns(tsr_page *page);
void tsr_page_columns_end(tsr_page *page);

/* Of the figures between the two calls the browser shows one, which the reader
 * chooses from a list of titles; each chosen figure keeps the zoomed range of
 * x. A browser without scripts shows all these figures. words: label of the
 * list. */
void tsr_page_choice(tsr_page *page, const char *id, const char *words);
void tsr_page_choice_end(tsr_page *page);

/* Writes the page to a temporary file and renames it to `path`. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_page_write(tsr_page *page, const char *path, tsr_err *err);

/* ---- sections of the report, for src/report and tests ---- */

typedef struct {
    tsr_pool pool; /* owns the arrays of all sections */
    tsr_trace_reader *trace;
    const tsr_report_options *options;
    tsr_diagnosis *diagnosis; /* its summary includes the prior if there is a
                                 run of the prior */
    tsr_page *page;
    const char *folder;         /* for the figures */
    const tsr_domains *domains; /* rigid domains; NULL: no conformations */
    int n_state; /* states of the ensemble, at least 1 where there are
                    conformations */
    tsr_convergence rg, d_max; /* shown by tsr_report_interval */
    /* Axes of residues begin at this number and have this title. Numbers are
     * those of the structure file if it has one chain without gaps, else
     * residues are counted from 1. */
    int first_residue;
    char residue_title[48];
} tsr_report;

#define TSR_COLOUR_PRIOR "#8a8a8a" /* see also the colours in figure.h */

enum { TSR_MOST_CHAINS = 10 }; /* chains drawn as separate lines */

/* The state, from 1, of the i-th conformation of the shape statistics. */
int tsr_report_state(const tsr_report *report, int i);

/* Colour of chain or state c, counted from 0. */
const char *tsr_report_chain_colour(int c);

/* Reads a variable of the groups posterior or sample_stats that has one number
 * a draw: *value [*n_chain][*n_draw], owned by the report. *value is NULL where
 * the trace has no such variable, the variable cannot be read, or a number is
 * not finite. Errors: TSR_E_NOMEM. */
tsr_status tsr_report_scalar(tsr_report *report, tsr_trace_reader *trace,
                             const char *name, int *n_chain, int *n_draw,
                             double **value, tsr_err *err);

/* The name of the ordinal-th entry (from 0) of this kind in `data:`. NULL: not
 * known. */
const char *tsr_report_data_name(const tsr_report *report,
                                 const tsr_term_type *type, int ordinal);

/* The outline of a normalised histogram (area 1). value [n] in, sorted on
 * return; x, y [TSR_OUTLINE] out. Bins span the middle 99.8 % of the draws, and
 * the draws beyond are counted in the outermost bins. The bin width follows
 * Freedman & Diaconis (1981), with `ess` independent draws in place of n (NaN:
 * n). Returns the number of points, 0 where the middle 99.8 % of the draws are
 * equal. */
enum { TSR_OUTLINE = 82 };
int tsr_report_outline(size_t n, double ess, double *value, double *x,
                       double *y);

/* "28.4 [28.1, 28.8]": mean and central 90 % interval of the draws. Where q5 is
 * NaN (one structure), the mean alone; a dash where the mean is not known. text
 * [64] out, returned. */
const char *tsr_report_interval(const tsr_convergence *value, char text[64]);
/* The 3D view of the molecule. */
tsr_status tsr_report_view(tsr_report *report, tsr_err *err);
/* Populations of the states along a series of samples. */
tsr_status tsr_report_series(tsr_report *report, tsr_err *err);
/* The table of all numbers, with the prior beside the posterior. */
tsr_status tsr_report_numbers(tsr_report *report, tsr_err *err);
/* Fit, residuals, Guinier and Kratky plots of each curve. */
tsr_status tsr_report_fit(tsr_report *report, tsr_err *err);
/* Measurements other than curves: a section for each kind of term. */
tsr_status tsr_report_terms(tsr_report *report, tsr_err *err);
/* Density maps compared with the draws, in the section of their kind. */
tsr_status tsr_report_maps(tsr_report *report, const tsr_term_type *type,
                           tsr_err *err);
/* Marginal distributions of scalar variables, with their priors. */
tsr_status tsr_report_posterior(tsr_report *report, tsr_err *err);
/* Distances, mobility and domain arrangements of the conformations. */
tsr_status tsr_report_structure(tsr_report *report, tsr_err *err);

/* Widens the range of x to 4 % beyond the data of the first panel on either
 * side. */
void tsr_report_add_margin(tsr_figure *f);
/* A line that states whether the run has converged, and unfolds to the list of
 * convergence checks. */
void tsr_report_convergence(tsr_report *report);
/* Traces of the chains. */
tsr_status tsr_report_chains(tsr_report *report, tsr_err *err);

#endif
