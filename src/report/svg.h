/* Scalable vector graphics: the few shapes that a plot needs.
 *
 * Coordinates are pixels from the top left. Text is escaped. Everything goes
 * into memory; tsr_svg_write puts it into the file. */
#ifndef TSR_REPORT_SVG_H
#define TSR_REPORT_SVG_H

#include "core/status.h"

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

/* The area between two lines, y and y2; where either is not finite there is
 * none. */
void tsr_svg_area(tsr_svg *svg, int n, const double *x, const double *y,
                  const double *y2, const char *colour, double opacity);

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity);

/* What follows is drawn only inside the rectangle, until tsr_svg_unclip; id
 * names it, unique in the page. */
void tsr_svg_clip(tsr_svg *svg, const char *id, double x, double y,
                  double width, double height);
void tsr_svg_unclip(tsr_svg *svg);

void tsr_svg_circle(tsr_svg *svg, double x, double y, double radius,
                    const char *colour, int is_filled);

/* size: pixels. is_vertical: turned to read upwards. */
void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text);

/* The text from <svg> on, which the caller frees; nothing can be drawn after
 * it. Errors: TSR_E_NOMEM. */
tsr_status tsr_svg_finish(tsr_svg *svg, char **text, tsr_err *err);

/* Writes beside and renames. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err);

#endif
