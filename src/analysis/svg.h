/* Scalable vector graphics: the few shapes that a plot needs.
 *
 * Coordinates are pixels from the top left. Text is escaped. Everything goes
 * into memory; tsr_svg_write puts it into the file. */
#ifndef TSR_ANALYSIS_SVG_H
#define TSR_ANALYSIS_SVG_H

#include "core/status.h"

typedef struct tsr_svg tsr_svg;

typedef enum { TSR_SVG_START, TSR_SVG_MIDDLE, TSR_SVG_END } tsr_svg_anchor;

/* A white page; NULL when out of memory. */
tsr_svg *tsr_svg_new(int width, int height);
void tsr_svg_free(tsr_svg *svg);

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width);

/* A line through n points (x, y); where y is not finite it is broken. */
void tsr_svg_path(tsr_svg *svg, int n, const double *x, const double *y,
                  const char *colour, double width);

void tsr_svg_circle(tsr_svg *svg, double x, double y, double radius,
                    const char *colour, int is_filled);

/* size: pixels. is_vertical: turned to read upwards. */
void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text);

/* 10 to a power, the exponent raised. */
void tsr_svg_power_of_ten(tsr_svg *svg, double x, double y, double size,
                          tsr_svg_anchor anchor, int exponent);

/* Writes beside and renames. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err);

#endif
