/* SVG is text, so a picture is collected in memory and written at once, whole
 * or not at all. Two decimals of a pixel are more than a printer can show. */
#include "report/svg.h"

#include "core/text.h"
#include "io/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct tsr_svg {
    FILE *out;
    char *text;
    size_t size;
};

static const char *const anchor_name[] = {"start", "middle", "end"};

tsr_svg *tsr_svg_new(int width, int height)
{
    tsr_svg *svg = calloc(1, sizeof *svg);
    if (svg == NULL)
        return NULL;
    svg->out = open_memstream(&svg->text, &svg->size);
    if (svg->out == NULL) {
        free(svg);
        return NULL;
    }
    fprintf(svg->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, "
            "Arial, 'DejaVu Sans', sans-serif\" fill=\"#222\">\n" TSR_SVG_MARK
            "\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            width, height, width, height, width, height);
    return svg;
}

void tsr_svg_free(tsr_svg *svg)
{
    if (svg == NULL)
        return;
    if (svg->out != NULL)
        fclose(svg->out);
    free(svg->text);
    free(svg);
}

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width)
{
    fprintf(svg->out,
            "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
            "stroke=\"%s\" stroke-width=\"%.2f\"/>\n",
            x0, y0, x1, y1, colour, width);
}

/* The line, pen down from finite point to finite point. */
static void trace_line(FILE *out, int n, const double *x, const double *y)
{
    int is_down = 0;
    for (int k = 0; k < n; k++) {
        if (!isfinite(x[k]) || !isfinite(y[k])) {
            is_down = 0;
            continue;
        }
        fprintf(out, "%c%.2f %.2f%s", is_down ? 'L' : 'M', x[k], y[k],
                k % 8 == 7 ? "\n" : " ");
        is_down = 1;
    }
}

void tsr_svg_stroke(tsr_svg *svg, int n, const double *x, const double *y,
                    const char *colour, double width, double opacity,
                    const char *dash)
{
    fputs("<path d=\"", svg->out);
    trace_line(svg->out, n, x, y);
    fprintf(svg->out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
            "stroke-linejoin=\"round\"",
            colour, width);
    if (opacity < 1.0)
        fprintf(svg->out, " stroke-opacity=\"%.3f\"", opacity);
    if (dash != NULL)
        fprintf(svg->out, " stroke-dasharray=\"%s\"", dash);
    fputs("/>\n", svg->out);
}

void tsr_svg_area(tsr_svg *svg, int n, const double *x, const double *y,
                  const double *y2, const char *colour, double opacity)
{
    fputs("<path d=\"", svg->out);
    for (int k = 0; k < n;) {
        int end = k;
        while (end < n && isfinite(y[end]) && isfinite(y2[end]))
            end++;
        for (int i = k; i < end; i++)
            fprintf(svg->out, "%c%.2f %.2f ", i == k ? 'M' : 'L', x[i], y[i]);
        for (int i = end - 1; i >= k; i--)
            fprintf(svg->out, "L%.2f %.2f ", x[i], y2[i]);
        if (end > k)
            fputs("Z\n", svg->out);
        k = end > k ? end : k + 1;
    }
    fprintf(svg->out, "\" fill=\"%s\" fill-opacity=\"%.3f\"/>\n", colour,
            opacity);
}

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity)
{
    fprintf(svg->out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "fill=\"%s\" fill-opacity=\"%.3f\"/>\n",
            x, y, width, height, colour, opacity);
}

void tsr_svg_clip(tsr_svg *svg, const char *id, double x, double y,
                  double width, double height)
{
    fprintf(svg->out,
            "<clipPath id=\"%s\"><rect x=\"%.2f\" y=\"%.2f\" "
            "width=\"%.2f\" height=\"%.2f\"/></clipPath>\n"
            "<g clip-path=\"url(#%s)\">\n",
            id, x, y, width, height, id);
}

void tsr_svg_unclip(tsr_svg *svg)
{
    fputs("</g>\n", svg->out);
}

void tsr_svg_circle(tsr_svg *svg, double x, double y, double radius,
                    const char *colour, int is_filled)
{
    fprintf(svg->out,
            "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\" "
            "stroke=\"%s\" stroke-width=\"0.7\"/>\n",
            x, y, radius, is_filled ? colour : "none", colour);
}

void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text)
{
    fprintf(svg->out,
            "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" "
            "text-anchor=\"%s\"",
            x, y, size, anchor_name[anchor]);
    if (is_vertical)
        fprintf(svg->out, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    fputc('>', svg->out);
    tsr_text_escape(svg->out, text);
    fputs("</text>\n", svg->out);
}

/* Ends the text, which stays the picture's. */
static int is_whole(tsr_svg *svg)
{
    fputs("</svg>\n", svg->out);
    int failed = ferror(svg->out);
    failed |= fclose(svg->out) != 0;
    svg->out = NULL;
    return !failed;
}

tsr_status tsr_svg_finish(tsr_svg *svg, char **text, tsr_err *err)
{
    *text = NULL;
    if (!is_whole(svg))
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a picture");
    *text = svg->text;
    svg->text = NULL;
    return TSR_OK;
}

tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err)
{
    return is_whole(svg)
               ? tsr_file_replace(path, svg->text, svg->size, err)
               : tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
}
