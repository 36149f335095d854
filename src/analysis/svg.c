#include "analysis/svg.h"

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
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, "
            "Arial, 'DejaVu Sans', sans-serif\" fill=\"#222\">\n"
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

void tsr_svg_path(tsr_svg *svg, int n, const double *x, const double *y,
                  const char *colour, double width)
{
    int is_down = 0;
    fputs("<path d=\"", svg->out);
    for (int k = 0; k < n; k++) {
        if (!isfinite(y[k])) {
            is_down = 0;
            continue;
        }
        fprintf(svg->out, "%c%.2f %.2f%s", is_down ? 'L' : 'M', x[k], y[k],
                k % 8 == 7 ? "\n" : " ");
        is_down = 1;
    }
    fprintf(svg->out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
            "stroke-linejoin=\"round\"/>\n",
            colour, width);
}

void tsr_svg_circle(tsr_svg *svg, double x, double y, double radius,
                    const char *colour, int is_filled)
{
    fprintf(svg->out,
            "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\" "
            "stroke=\"%s\" stroke-width=\"0.7\"/>\n",
            x, y, radius, is_filled ? colour : "none", colour);
}

static void escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
        }
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
    escape(svg->out, text);
    fputs("</text>\n", svg->out);
}

void tsr_svg_power_of_ten(tsr_svg *svg, double x, double y, double size,
                          tsr_svg_anchor anchor, int exponent)
{
    fprintf(svg->out,
            "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" "
            "text-anchor=\"%s\">10<tspan dy=\"%.1f\" "
            "font-size=\"%.1f\">%s%d</tspan></text>\n",
            x, y, size, anchor_name[anchor], -0.4 * size, 0.75 * size,
            exponent < 0 ? "\xe2\x88\x92" : "", abs(exponent));
}

tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err)
{
    fputs("</svg>\n", svg->out);
    int failed = ferror(svg->out);
    failed |= fclose(svg->out) != 0;
    svg->out = NULL;
    return failed
               ? tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path)
               : tsr_file_replace(path, svg->text, svg->size, err);
}
