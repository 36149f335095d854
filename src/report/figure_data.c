/* A figure's numbers for other programs: a table (CSV) beside the picture, and
 * the whole description as JSON, from which report.js makes the interactive
 * figure of the page. */
#include "report/figure.h"

#include "core/json.h"
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

static void put_layer(tsr_json *j, const tsr_layer *layer)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "kind", kind_name[layer->kind]);
    tsr_json_text(j, "label", layer->label);
    tsr_json_text(j, "colour", layer->colour);
    tsr_json_number(j, "opacity", layer->opacity);
    tsr_json_number(j, "dx", layer->dx);
    tsr_json_number(j, "dy", layer->dy);
    tsr_json_numbers(j, "x", layer->n, layer->x);
    tsr_json_numbers(j, "y", layer->n, layer->y);
    if (layer->y2 != NULL)
        tsr_json_numbers(j, "z", layer->n, layer->y2);
    tsr_json_close(j);
}

static void put_panel(tsr_json *j, const tsr_panel *panel)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "title", panel->y_title);
    tsr_json_truth(j, "log", panel->is_log);
    tsr_json_truth(j, "isCount", panel->is_count);
    tsr_json_integer(j, "height", panel->height);
    j->digits = 9;
    tsr_json_number(j, "y0", panel->y0);
    tsr_json_number(j, "y1", panel->y1);
    tsr_json_number(j, "z0", panel->z0);
    tsr_json_number(j, "z1", panel->z1);
    j->digits = 7;
    tsr_json_text(j, "zTitle", panel->z_title);
    tsr_json_array(j, "layers");
    for (int l = 0; l < panel->n_layer; l++)
        put_layer(j, &panel->layer[l]);
    tsr_json_close(j);
    tsr_json_close(j);
}

void tsr_figure_print_json(const tsr_figure *figure, FILE *out)
{
    tsr_json j = {.out = out, .digits = 9, .is_script = 1};
    tsr_json_object(&j, NULL);
    tsr_json_text(&j, "xTitle", figure->x_title);
    tsr_json_integer(&j, "width", figure->width);
    tsr_json_number(&j, "x0", figure->x0);
    tsr_json_number(&j, "x1", figure->x1);
    if (figure->n_x_name > 0) {
        tsr_json_array(&j, "names");
        for (int i = 0; i < figure->n_x_name; i++)
            tsr_json_text(&j, NULL, figure->x_name[i]);
        tsr_json_close(&j);
    }
    tsr_json_array(&j, "panels");
    for (int p = 0; p < figure->n_panel; p++)
        put_panel(&j, &figure->panel[p]);
    tsr_json_close(&j);
    tsr_json_close(&j);
}
