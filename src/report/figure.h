/* A figure as data: panels one above the other that share their x axis, each
 * with layers. The picture (SVG) is that of a paper, and the one of the report,
 * where report.js lets it be zoomed and pointed at.
 *
 * Building never fails: out of memory is remembered, tsr_figure_finish says it,
 * and what found no room is put where it does no harm. */
#ifndef TSR_REPORT_FIGURE_H
#define TSR_REPORT_FIGURE_H

#include "core/pool.h"
#include "core/status.h"

#include <stdio.h>

typedef enum {
    TSR_LAYER_BAND,   /* between y and y2 */
    TSR_LAYER_ERRORS, /* upright lines from y to y2 */
    TSR_LAYER_LINE,   /* through (x, y); broken where y is not finite */
    TSR_LAYER_DASHES, /* the same, dashed */
    TSR_LAYER_POINTS,
    TSR_LAYER_CELLS /* rectangles (x .. x + dx, y .. y + dy), coloured by z */
} tsr_layer_kind;

typedef struct {
    tsr_layer_kind kind;
    char *label;        /* in the legend; NULL: not there */
    const char *colour; /* "#rrggbb", static */
    double opacity;
    int n;
    double *x, *y, *y2; /* [n]; y2: second y of BAND and ERRORS, z of CELLS */
    double dx, dy;      /* of CELLS */
} tsr_layer;

typedef struct {
    char *y_title;
    int is_log;          /* y */
    int height;          /* pixels */
    double y0, y1;       /* the range shown; equal: from the layers */
    double z0, z1;       /* of the colours of CELLS */
    const char *z_title; /* static; NULL: no scale of colours beside it */
    int is_count;        /* ticks at whole numbers only */
    int n_y_name;
    char **y_name; /* [n_y_name] stands beside y = i + 0.5, instead of ticks */
    int n_layer;
    tsr_layer *layer; /* [n_layer], the first drawn first */
} tsr_panel;

typedef struct {
    tsr_pool pool;  /* of all that follows */
    char *name;     /* of the file, and in the page: "fit" */
    char *title;    /* one line */
    char *subtitle; /* below it in the picture; NULL: none */
    char *x_title;
    int left;      /* pixels, for names and numbers beside the panels */
    int width;     /* pixels, of a panel */
    int is_count;  /* ticks at whole numbers only */
    double x0, x1; /* the range shown; equal: from the layers */
    int n_x_name;
    char **x_name; /* [n_x_name] stands below x = i + 0.5, instead of ticks */
    int n_panel;
    tsr_panel *panel;      /* [n_panel], the uppermost first */
    tsr_panel spare_panel; /* what is given out where memory is out */
    tsr_layer spare_layer;
} tsr_figure;

tsr_figure tsr_figure_new(const char *name, const char *title,
                          const char *x_title, int width);
void tsr_figure_clear(tsr_figure *figure);

/* Below the others. The layers that follow go into it. Returns it, until the
 * next one is added, for what is not the default. */
tsr_panel *tsr_figure_panel(tsr_figure *figure, const char *y_title, int is_log,
                            int height);

/* The x axis has n names (copied) from 0 to n; so has the last panel's y axis.
 */
void tsr_figure_names(tsr_figure *figure, int n, const char *const *name);
void tsr_figure_y_names(tsr_figure *figure, int n, const char *const *name);

/* Into the last panel; x, y and y2 [n] are copied, y2 may be NULL but for BAND,
 * ERRORS and CELLS. Returns the layer, until the next one is added, for what is
 * not the default (dx, dy, opacity). */
tsr_layer *tsr_figure_layer(tsr_figure *figure, tsr_layer_kind kind,
                            const char *label, const char *colour, int n,
                            const double *x, const double *y, const double *y2);

/* Cells of n_x columns and n_y rows into the last panel, value [n_x][n_y]: the
 * first corner at (x0, y0), each dx by dy. */
void tsr_figure_cells(tsr_figure *figure, int n_x, int n_y, double x0,
                      double dx, double y0, double dy, const double *value);

/* Sets ranges that are equal from the layers: x exactly, y with some air;
 * logarithmic panels ignore what is not above 0. To be called once, after the
 * last layer. Errors: TSR_E_NOMEM (now or while building). */
tsr_status tsr_figure_finish(tsr_figure *figure, tsr_err *err);

/* The picture as a file. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_figure_write_svg(const tsr_figure *figure, const char *path,
                                tsr_err *err);

/* Its numbers: a line for each point of each layer, with panel, series, mark,
 * x, y, y2 (of cells: the corner, and the value). Errors: TSR_E_IO. */
tsr_status tsr_figure_write_csv(const tsr_figure *figure, const char *path,
                                tsr_err *err);

/* The same picture as text from <svg> on, for a page; caller frees. */
tsr_status tsr_figure_svg_text(const tsr_figure *figure, char **text,
                               tsr_err *err);

/* The figure of a fit: data with errors and curve over a logarithmic axis, and
 * below it the residuals in units of sigma. A fit of one structure and that of
 * a posterior are the same picture, the latter with bands. */

typedef struct {
    int n;
    const double *q;                 /* [n] 1/Angstrom, ascending */
    const double *intensity, *sigma; /* [n] */
    const double *model;             /* [n] */
    const char *model_label, *residual_title;
    const double *start; /* another curve, dashed, [n]; NULL: none */
    const char *start_label;
    /* Bands of the curve and of new data, [n]; NULL: none. */
    const double *low, *high, *seen_low, *seen_high;
} tsr_fit_figure;

/* Colours that keep their meaning over all figures. */
#define TSR_COLOUR_DATA "#3b6ea5"
#define TSR_COLOUR_ERROR "#b9cde2"
#define TSR_COLOUR_MODEL "#c8321e"

/* The two panels, below those that are there: `height` pixels and a third of
 * it. What has no logarithm is in the residuals alone. Out of memory: as
 * tsr_figure_layer. */
void tsr_fit_figure_add(tsr_figure *figure, const tsr_fit_figure *fit,
                        int height);

/* ---- shapes ----
 *
 * Scalable vector graphics: the few shapes that a plot needs.
 *
 * Coordinates are pixels from the top left. Text is escaped. Everything goes
 * into memory; tsr_svg_write puts it into the file. */

/* Near the top of every picture: who made it. */
#define TSR_SVG_MARK "<!-- tessera -->"

typedef struct tsr_svg tsr_svg;

typedef enum { TSR_SVG_START, TSR_SVG_MIDDLE, TSR_SVG_END } tsr_svg_anchor;

/* A white page; NULL when out of memory. */
tsr_svg *tsr_svg_new(int width, int height);
void tsr_svg_free(tsr_svg *svg);

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width);

/* A line through n points (x, y); where either is not finite it is broken.
 * dash: "4 3", NULL for none. */
void tsr_svg_stroke(tsr_svg *svg, int n, const double *x, const double *y,
                    const char *colour, double width, double opacity,
                    const char *dash);

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity);

/* size: pixels. is_vertical: turned to read upwards. */
void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text);

/* Writes beside and renames. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err);

#endif
