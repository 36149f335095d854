/* SVG is text, so a picture is collected in memory and written at once, whole
 * or not at all. Two decimals of a pixel are more than a printer can show. */
#include "report/svg.h"

#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsr_svg {
    tsr_words words;
};

static const char *const anchor_name[] = {"start", "middle", "end"};

tsr_svg *tsr_svg_new(int width, int height)
{
    tsr_svg *svg = calloc(1, sizeof *svg);
    if (svg == NULL)
        return NULL;
    tsr_words_begin(&svg->words);
    if (svg->words.out == NULL) {
        free(svg);
        return NULL;
    }
    fprintf(svg->words.out,
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
    free(tsr_words_end(&svg->words));
    free(svg);
}

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width)
{
    fprintf(svg->words.out,
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
    fputs("<path d=\"", svg->words.out);
    trace_line(svg->words.out, n, x, y);
    fprintf(svg->words.out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
            "stroke-linejoin=\"round\"",
            colour, width);
    if (opacity < 1.0)
        fprintf(svg->words.out, " stroke-opacity=\"%.3f\"", opacity);
    if (dash != NULL)
        fprintf(svg->words.out, " stroke-dasharray=\"%s\"", dash);
    fputs("/>\n", svg->words.out);
}

void tsr_svg_area(tsr_svg *svg, int n, const double *x, const double *y,
                  const double *y2, const char *colour, double opacity)
{
    fputs("<path d=\"", svg->words.out);
    for (int k = 0; k < n;) {
        int end = k;
        while (end < n && isfinite(y[end]) && isfinite(y2[end]))
            end++;
        for (int i = k; i < end; i++)
            fprintf(svg->words.out, "%c%.2f %.2f ", i == k ? 'M' : 'L', x[i],
                    y[i]);
        for (int i = end - 1; i >= k; i--)
            fprintf(svg->words.out, "L%.2f %.2f ", x[i], y2[i]);
        if (end > k)
            fputs("Z\n", svg->words.out);
        k = end > k ? end : k + 1;
    }
    fprintf(svg->words.out, "\" fill=\"%s\" fill-opacity=\"%.3f\"/>\n", colour,
            opacity);
}

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity)
{
    fprintf(svg->words.out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "fill=\"%s\" fill-opacity=\"%.3f\"/>\n",
            x, y, width, height, colour, opacity);
}

void tsr_svg_clip(tsr_svg *svg, const char *id, double x, double y,
                  double width, double height)
{
    fprintf(svg->words.out,
            "<clipPath id=\"%s\"><rect x=\"%.2f\" y=\"%.2f\" "
            "width=\"%.2f\" height=\"%.2f\"/></clipPath>\n"
            "<g clip-path=\"url(#%s)\">\n",
            id, x, y, width, height, id);
}

void tsr_svg_unclip(tsr_svg *svg)
{
    fputs("</g>\n", svg->words.out);
}

void tsr_svg_circle(tsr_svg *svg, double x, double y, double radius,
                    const char *colour, int is_filled)
{
    fprintf(svg->words.out,
            "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\" "
            "stroke=\"%s\" stroke-width=\"0.7\"/>\n",
            x, y, radius, is_filled ? colour : "none", colour);
}

void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text)
{
    fprintf(svg->words.out,
            "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" "
            "text-anchor=\"%s\"",
            x, y, size, anchor_name[anchor]);
    if (is_vertical)
        fprintf(svg->words.out, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    fputc('>', svg->words.out);
    tsr_text_escape(svg->words.out, text);
    fputs("</text>\n", svg->words.out);
}

tsr_status tsr_svg_finish(tsr_svg *svg, char **text, tsr_err *err)
{
    fputs("</svg>\n", svg->words.out);
    *text = tsr_words_end(&svg->words);
    return tsr_allocated(*text, err);
}

tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err)
{
    char *text;
    tsr_status status = tsr_svg_finish(svg, &text, err);
    TSR_THEN(status, tsr_file_replace(path, text, strlen(text), err));
    free(text);
    return status;
}
