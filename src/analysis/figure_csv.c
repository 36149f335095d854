#include "analysis/figure.h"

#include "io/file.h"

#include <math.h>
#include <string.h>

static const char *const kind_name[] = {
    [TSR_LAYER_BAND] = "band",     [TSR_LAYER_ERRORS] = "errors",
    [TSR_LAYER_LINE] = "line",     [TSR_LAYER_DASHES] = "dashes",
    [TSR_LAYER_POINTS] = "points", [TSR_LAYER_CELLS] = "cells"};

/* Quoted where RFC 4180 asks for it. */
static void put_text(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

tsr_status tsr_figure_write_csv(const tsr_figure *figure, const char *path,
                                tsr_err *err)
{
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    FILE *out = to.out;
    if (status != TSR_OK)
        return status;
    fputs("panel,series,mark,x,y,y2\n", out);
    for (int p = 0; p < figure->n_panel; p++)
        for (int k = 0; k < figure->panel[p].n_layer; k++) {
            const tsr_layer *layer = &figure->panel[p].layer[k];
            for (int i = 0; i < layer->n; i++) {
                put_text(out, figure->panel[p].y_title);
                fputc(',', out);
                put_text(out, layer->label != NULL ? layer->label : "");
                fprintf(out, ",%s", kind_name[layer->kind]);
                put_number(out, layer->x[i]);
                put_number(out, layer->y[i]);
                put_number(out, layer->y2 != NULL ? layer->y2[i] : (double)NAN);
                fputc('\n', out);
            }
        }
    return tsr_file_end(&to, TSR_OK, err);
}
