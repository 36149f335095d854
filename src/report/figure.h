/* A figure as data: panels stacked along a shared x axis, each with layers. The
 * figure is written as an SVG picture for papers and for the report, where
 * report.js adds zooming and reading of values.
 *
 * Functions that build a figure do not fail. They record that memory ran out,
 * return a spare panel or layer that the caller may write to, and
 * tsr_figure_finish reports the error. */
#ifndef TSR_REPORT_FIGURE_H
#define TSR_REPORT_FIGURE_H

#include "core/pool.h"
#include "core/status.h"

#include <stdio.h>

typedef enum {
    TSR_LAYER_BAND,   /* area between y and y2 */
    TSR_LAYER_ERRORS, /* vertical lines from y to y2 */
    TSR_LAYER_LINE,   /* through (x, y), interrupted where y is not finite */
    TSR_LAYER_DASHES, /* a dashed LINE */
    TSR_LAYER_POINTS,
    TSR_LAYER_CELLS /* rectangles (x .. x + dx, y .. y + dy), coloured by z */
} tsr_layer_kind;

/* A layer of a panel: data drawn in one way and one colour. */
typedef struct {
    tsr_layer_kind kind;
    char *label;        /* in the legend; NULL: no entry */
    const char *colour; /* "#rrggbb", static */
    double opacity;
    int n;              /* number of points */
    double *x, *y, *y2; /* [n]; y2: second y of BAND and ERRORS, z of CELLS */
    double dx, dy;      /* width and height of CELLS */
} tsr_layer;

/* A panel of a figure: axes and layers. */
typedef struct {
    char *y_title;
    int is_log;          /* 1: the y axis is logarithmic */
    int height;          /* pixels */
    double y0, y1;       /* range shown; y0 = y1: the range of the layers */
    double z0, z1;       /* range of the colours of CELLS */
    const char *z_title; /* static; NULL: no colour scale */
    int is_count;        /* ticks at whole numbers only */
    int n_y_name;
    char **y_name; /* [n_y_name] label at y = i + 0.5, replaces the ticks */
    int n_layer;
    tsr_layer *layer; /* [n_layer], the first drawn first */
} tsr_panel;

/* A figure: panels above each other, with one x axis. */
typedef struct {
    tsr_pool pool;  /* owns all texts, panels and layers */
    char *name;     /* file name and identifier in the page */
    char *title;    /* one line */
    char *subtitle; /* below the title; NULL: no subtitle */
    char *x_title;
    int left;      /* pixels, margin for tick labels and the y titles */
    int width;     /* pixels, width of a panel */
    int is_count;  /* ticks at whole numbers only */
    double x0, x1; /* range shown; x0 = x1: the range of the layers */
    int n_panel;
    tsr_panel *panel;      /* [n_panel], the uppermost first */
    tsr_panel spare_panel; /* returned when out of memory */
    tsr_layer spare_layer;
} tsr_figure;

/* A figure without panels. Texts are copied; width: of the panels, pixels. */
tsr_figure tsr_figure_new(const char *name, const char *title,
                          const char *x_title, int width);
/* Frees what a figure owns. */
void tsr_figure_clear(tsr_figure *figure);

/* Adds a panel below the others; layers that are added later belong to it.
 * Returns the panel, valid until the next one is added, so that the caller can
 * change its defaults. */
tsr_panel *tsr_figure_panel(tsr_figure *figure, const char *y_title, int is_log,
                            int height);

/* Gives the y axis of the last panel n names (copied) at 0.5, 1.5, ... in place
 * of ticks. */
void tsr_figure_y_names(tsr_figure *figure, int n, const char *const *name);

/* Adds a layer to the last panel. x, y and y2 [n] are copied; y2 is needed for
 * BAND, ERRORS and CELLS, and may be NULL otherwise. colour is borrowed.
 * Returns the layer, valid until the next one is added, so that the caller can
 * change its defaults (dx, dy, opacity). */
tsr_layer *tsr_figure_layer(tsr_figure *figure, tsr_layer_kind kind,
                            const char *label, const char *colour, int n,
                            const double *x, const double *y, const double *y2);

/* Adds a heat map of n_x columns and n_y rows to the last panel. value
 * [n_x][n_y]; cell (i, j) has its lower left corner at (x0 + i dx, y0 + j dy).
 */
void tsr_figure_cells(tsr_figure *figure, int n_x, int n_y, double x0,
                      double dx, double y0, double dy, const double *value);

/* Sets the ranges that are still equal (see x0, y0, z0) from the layers: the
 * range of x exactly, the ranges of y with a margin of 5 %. Values that are not
 * positive are ignored in logarithmic panels. Must be called once, after the
 * last layer. Errors: TSR_E_NOMEM, also of an earlier call. */
tsr_status tsr_figure_finish(tsr_figure *figure, tsr_err *err);

/* Writes the picture as an SVG file. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_figure_write_svg(const tsr_figure *figure, const char *path,
                                tsr_err *err);

/* Writes the numbers of the figure as CSV: a line for each point of each layer,
 * with panel, series (label), mark (kind of layer), x, y, y2. For a cell, x and
 * y are the lower left corner, and y2 is the value. Errors: TSR_E_IO. */
tsr_status tsr_figure_write_csv(const tsr_figure *figure, const char *path,
                                tsr_err *err);

/* The SVG element as text for a page: *text out, caller frees. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_figure_svg_text(const tsr_figure *figure, char **text,
                               tsr_err *err);

/* The figure of a fit: data with errors and model curve on a logarithmic axis,
 * and below them the residuals in units of sigma. The fits of one structure and
 * of a posterior have the same figure; for a posterior the figure also has
 * bands. */

typedef struct {
    int n;
    const double *q;                 /* [n] 1/Angstrom, ascending */
    const double *intensity, *sigma; /* [n] */
    const double *model;             /* [n] */
    const char *model_label, *residual_title;
    const double *start; /* [n] a second curve, dashed; NULL: no second curve */
    const char *start_label;
    /* [n] 5 and 95 % of the model curve, and of replicated data; NULL: no band
     */
    const double *low, *high, *replicate_low, *replicate_high;
} tsr_fit_figure;

/* Colours with the same meaning in all figures. */
#define TSR_COLOUR_DATA "#3b6ea5"
#define TSR_COLOUR_ERROR "#b9cde2"
#define TSR_COLOUR_MODEL "#c8321e"

/* Adds the two panels below the existing panels: the curve with `height`
 * pixels, the residuals with about a third of this height. Points that are not
 * positive appear in the residuals alone. Out of memory: see the head of this
 * file. */
void tsr_fit_figure_add(tsr_figure *figure, const tsr_fit_figure *fit,
                        int height);

/* ---- shapes ----
 *
 * The few shapes of scalable vector graphics (SVG) that a plot needs.
 * Coordinates are pixels from the top left corner. Text is escaped. The picture
 * is collected in memory, and tsr_svg_write writes the file. */

/* A comment near the top of every picture that identifies the program. */
#define TSR_SVG_MARK "<!-- tessera -->"

typedef struct tsr_svg tsr_svg;

typedef enum { TSR_SVG_START, TSR_SVG_MIDDLE, TSR_SVG_END } tsr_svg_anchor;

/* A picture with a white background; NULL when out of memory. */
tsr_svg *tsr_svg_new(int width, int height);
void tsr_svg_free(tsr_svg *svg);

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width);

/* A line through n points (x, y), interrupted where either is not finite. dash:
 * pattern of dashes such as "4 3", NULL: a full line. */
void tsr_svg_stroke(tsr_svg *svg, int n, const double *x, const double *y,
                    const char *colour, double width, double opacity,
                    const char *dash);

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity);

/* size: of the font, pixels. is_vertical: rotated to read upwards. */
void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text);

/* Writes a temporary file and renames it to `path`. Errors: TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err);

#endif
