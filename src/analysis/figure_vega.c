#include "analysis/figure.h"

#include "core/text.h"

#include <math.h>
#include <string.h>

/* Pixels; as in figure_svg.c where it matters. */
enum { GAP = 16, LEGEND_ROW = 20, MOST_POINTED = 1500 };

static void number(FILE *out, double x)
{
    if (isfinite(x))
        fprintf(out, "%.7g", x);
    else
        fputs("null", out);
}

/* ---- data ---- */

static void print_data(const tsr_figure *f, FILE *out)
{
    int is_first = 1;
    fputs("\"data\":[", out);
    for (int p = 0; p < f->n_panel; p++)
        for (int l = 0; l < f->panel[p].n_layer; l++) {
            const tsr_layer *a = &f->panel[p].layer[l];
            fprintf(out, "%s{\"name\":\"p%dl%d\",\"values\":[",
                    is_first ? "" : ",\n", p, l);
            is_first = 0;
            for (int i = 0; i < a->n; i++) {
                fprintf(out, "%s{\"x\":", i > 0 ? "," : "");
                number(out, a->x[i]);
                fputs(",\"y\":", out);
                number(out, a->y[i]);
                if (a->y2 != NULL) {
                    fputs(",\"z\":", out);
                    number(out, a->y2[i]);
                }
                fputc('}', out);
            }
            fputs("]}", out);
        }
    fputs("],\n", out);
}

/* ---- signals: what the mouse does ---- */

static void print_signals(const tsr_figure *f, FILE *out)
{
    if (f->n_x_name > 0) { /* names are not zoomed into */
        fprintf(out,
                "\"signals\":[{\"name\":\"brush\",\"value\":[0,0]},"
                "{\"name\":\"dragging\",\"value\":false},"
                "{\"name\":\"xdom\",\"value\":[%.9g,%.9g]}],\n",
                f->x0, f->x1);
        return;
    }
    fprintf(out,
            "\"signals\":[{\"name\":\"brush\",\"value\":[0,0],\"on\":["
            "{\"events\":\"mousedown\",\"update\":"
            "\"[invert('x',clamp(x(),0,width)),"
            "invert('x',clamp(x(),0,width))]\"},"
            "{\"events\":\"[mousedown, window:mouseup] > window:mousemove!\","
            "\"update\":\"[brush[0],invert('x',clamp(x(),0,width))]\"},"
            "{\"events\":\"dblclick\",\"update\":\"[0,0]\"}]},\n"
            "{\"name\":\"dragging\",\"value\":false,\"on\":["
            "{\"events\":\"mousedown\",\"update\":\"true\"},"
            "{\"events\":\"window:mouseup\",\"update\":\"false\"}]},\n"
            "{\"name\":\"xdom\",\"value\":[%.9g,%.9g],\"on\":["
            "{\"events\":\"window:mouseup\",\"update\":"
            "\"abs(brush[1]-brush[0])>0.01*abs(xdom[1]-xdom[0])?"
            "[min(brush[0],brush[1]),max(brush[0],brush[1])]:xdom\"},"
            "{\"events\":\"dblclick\",\"update\":\"[%.9g,%.9g]\"}]}],\n",
            f->x0, f->x1, f->x0, f->x1);
}

/* Numbers at an axis: Vega's own, but for those that it would write out with
 * many zeros. */
static void print_tick_text(FILE *out)
{
    fputs(",\"encode\":{\"labels\":{\"update\":{\"text\":{\"signal\":"
          "\"datum.value!==0&&(abs(datum.value)<1e-4||abs(datum.value)>=1e5)?"
          "format(datum.value,'.3~e'):datum.label\"}}}}",
          out);
}

/* An axis with names instead of numbers. */
static void print_names(const tsr_figure *f, FILE *out)
{
    fputs(",\"values\":[", out);
    for (int i = 0; i < f->n_x_name; i++)
        fprintf(out, "%s%g", i > 0 ? "," : "", i + 0.5);
    fputs("],\"encode\":{\"labels\":{\"update\":{\"text\":[", out);
    for (int i = 0; i < f->n_x_name; i++) {
        fprintf(out, "%s{\"value\":", i > 0 ? "," : "");
        tsr_text_json(out, f->x_name[i]);
        if (i + 1 < f->n_x_name)
            fprintf(out, ",\"test\":\"datum.value<%d\"", i + 1);
        fputc('}', out);
    }
    fputs("]}}}", out);
}

/* ---- marks ---- */

static void tooltip(const tsr_figure *f, const tsr_panel *p, const tsr_layer *a,
                    FILE *out)
{
    fputs("\"tooltip\":{\"signal\":\"{", out);
    if (a->label != NULL) {
        fputs("'': '", out);
        for (const char *c = a->label; *c != '\0'; c++)
            if (*c != '\'' && *c != '"' && *c != '\\')
                fputc(*c, out);
        fputs("', ", out);
    }
    for (int which = 0; which < 2; which++) {
        const char *title = which == 0 ? f->x_title : p->y_title;
        fputc('\'', out);
        for (const char *c = title; *c != '\0'; c++)
            if (*c != '\'' && *c != '"' && *c != '\\')
                fputc(*c, out);
        /* a key that comes twice is refused: maps have one title twice */
        fprintf(out, "%s': format(datum.%c, '.5~g')%s",
                which == 1 && strcmp(f->x_title, p->y_title) == 0 ? " (up)"
                                                                  : "",
                which == 0 ? 'x' : 'y', which == 0 ? ", " : "");
    }
    if (a->kind == TSR_LAYER_CELLS)
        fputs(", 'value': format(datum.z, '.4~g')", out);
    fputs("}\"}", out);
}

static const char x_of[] = "\"x\":{\"scale\":\"x\",\"field\":\"x\"}";

/* y, held above the foot of a logarithmic panel */
static void y_channel(FILE *out, const char *channel, const char *field,
                      const tsr_panel *p)
{
    if (p->is_log)
        fprintf(out,
                "\"%s\":{\"scale\":\"y\",\"signal\":\"max(datum.%s,%.7g)\"}",
                channel, field, p->y0 * 1e-3);
    else
        fprintf(out, "\"%s\":{\"scale\":\"y\",\"field\":\"%s\"}", channel,
                field);
}

/* Marks that are not seen but can be pointed at. */
static void print_pointed(const tsr_figure *f, const tsr_panel *p,
                          const tsr_layer *a, int pi, int li, FILE *out)
{
    fprintf(out,
            ",\n{\"type\":\"symbol\",\"from\":{\"data\":\"p%dl%d\"},"
            "\"encode\":{\"update\":{%s,",
            pi, li, x_of);
    y_channel(out, "y", "y", p);
    fputs(",\"size\":{\"value\":90},\"opacity\":{\"value\":0},", out);
    tooltip(f, p, a, out);
    fputs("}}}", out);
}

static void print_layer(const tsr_figure *f, int pi, int li, FILE *out)
{
    const tsr_panel *p = &f->panel[pi];
    const tsr_layer *a = &p->layer[li];
    static const char *const type[] = {
        [TSR_LAYER_BAND] = "area",     [TSR_LAYER_ERRORS] = "rule",
        [TSR_LAYER_LINE] = "line",     [TSR_LAYER_DASHES] = "line",
        [TSR_LAYER_POINTS] = "symbol", [TSR_LAYER_CELLS] = "rect"};
    /* a line through one point would not be seen */
    const int is_dot = a->kind == TSR_LAYER_LINE && a->n == 1;
    fprintf(out,
            "%s\n{\"type\":\"%s\",\"from\":{\"data\":\"p%dl%d\"},"
            "\"encode\":{\"update\":{%s,",
            li > 0 ? "," : "", is_dot ? "symbol" : type[a->kind], pi, li, x_of);
    if (a->kind == TSR_LAYER_CELLS) {
        fprintf(out,
                "\"x2\":{\"scale\":\"x\",\"signal\":\"datum.x+%.7g\"},"
                "\"y\":{\"scale\":\"y\",\"field\":\"y\"},"
                "\"y2\":{\"scale\":\"y\",\"signal\":\"datum.y+%.7g\"},"
                "\"fill\":{\"scale\":\"z\",\"field\":\"z\"},"
                "\"stroke\":{\"scale\":\"z\",\"field\":\"z\"},"
                "\"strokeWidth\":{\"value\":0.6},",
                a->dx, a->dy);
        tooltip(f, p, a, out);
        fputs("}}}", out);
        return;
    }
    y_channel(out, "y", "y", p);
    if (a->kind == TSR_LAYER_BAND || a->kind == TSR_LAYER_ERRORS) {
        fputc(',', out);
        y_channel(out, "y2", "z", p);
    }
    if (a->kind == TSR_LAYER_BAND)
        fputs(
            ",\"defined\":{\"signal\":\"isValid(datum.y)&&isValid(datum.z)\"}",
            out);
    if (a->kind == TSR_LAYER_LINE || a->kind == TSR_LAYER_DASHES)
        fprintf(out, ",\"defined\":{\"signal\":\"isValid(datum.y)%s\"}",
                p->is_log ? "&&datum.y>0" : "");
    if (a->kind == TSR_LAYER_BAND || a->kind == TSR_LAYER_POINTS || is_dot)
        fprintf(out,
                ",\"fill\":{\"value\":\"%s\"},\"fillOpacity\":{\"value\":%g}",
                a->colour, a->opacity);
    else
        fprintf(out,
                ",\"stroke\":{\"value\":\"%s\"},\"strokeWidth\":{\"value\":%g},"
                "\"strokeOpacity\":{\"value\":%g}",
                a->colour, a->kind == TSR_LAYER_ERRORS ? 1.1 : 1.6, a->opacity);
    if (a->kind == TSR_LAYER_DASHES)
        fputs(",\"strokeDash\":{\"value\":[5,4]}", out);
    if (a->kind == TSR_LAYER_POINTS) {
        /* what has no logarithm is not drawn */
        if (p->is_log)
            fputs(",\"opacity\":{\"signal\":\"datum.y>0?1:0\"}", out);
        fputs(",\"size\":{\"value\":14},", out);
        tooltip(f, p, a, out);
    }
    fputs("}}}", out);
    if ((a->kind == TSR_LAYER_LINE || a->kind == TSR_LAYER_DASHES) &&
        a->n <= MOST_POINTED)
        print_pointed(f, p, a, pi, li, out);
}

static int has_cells(const tsr_panel *p)
{
    for (int l = 0; l < p->n_layer; l++)
        if (p->layer[l].kind == TSR_LAYER_CELLS)
            return 1;
    return 0;
}

static void print_panel(const tsr_figure *f, int pi, double top, FILE *out)
{
    const tsr_panel *p = &f->panel[pi];
    const int is_last = pi + 1 == f->n_panel;
    fprintf(out,
            "{\"type\":\"group\",\"encode\":{\"enter\":{\"y\":{\"value\":%g},"
            "\"width\":{\"value\":%d},\"height\":{\"value\":%d},"
            "\"stroke\":{\"value\":\"#444\"}}},\n"
            "\"signals\":[{\"name\":\"height\",\"value\":%d}],\n"
            "\"scales\":[{\"name\":\"y\",\"type\":\"%s\",\"domain\":[%.9g,%.9g]"
            ",\"range\":[%d,0],\"zero\":false,\"nice\":false}",
            top, f->width, p->height, p->height, p->is_log ? "log" : "linear",
            p->y0, p->y1, p->height);
    if (has_cells(p))
        fprintf(out,
                ",{\"name\":\"z\",\"type\":\"linear\",\"domain\":[%.9g,%.9g],"
                "\"range\":{\"scheme\":\"viridis\"}}",
                p->z0, p->z1);
    fprintf(
        out,
        "],\n\"axes\":[{\"orient\":\"bottom\",\"scale\":\"x\",\"grid\":true,"
        "\"labels\":%s,\"ticks\":%s,\"gridColor\":\"#e4e4e4\","
        "\"tickCount\":%d",
        is_last ? "true" : "false", is_last ? "true" : "false", f->width / 90);
    if (f->n_x_name > 0)
        print_names(f, out);
    if (is_last) {
        if (f->n_x_name == 0)
            print_tick_text(out);
        fputs(",\"title\":", out);
        tsr_text_json(out, f->x_title);
    }
    fprintf(out,
            "},{\"orient\":\"left\",\"scale\":\"y\",\"grid\":true,"
            "\"gridColor\":\"#e4e4e4\",\"tickCount\":%d,"
            "\"labelOverlap\":\"greedy\",\"titleX\":-72",
            p->height < 100 ? 3 : 5);
    if (p->is_count)
        fputs(",\"tickMinStep\":1", out);
    print_tick_text(out);
    fputs(",\"title\":", out);
    tsr_text_json(out, p->y_title);
    fputs("}],\n", out);
    if (has_cells(p) && p->z_title != NULL) {
        fprintf(out,
                "\"legends\":[{\"fill\":\"z\",\"type\":\"gradient\","
                "\"gradientLength\":%d,\"title\":",
                p->height - 30);
        tsr_text_json(out, p->z_title);
        fputs("}],\n", out);
    }
    fprintf(
        out,
        "\"marks\":[{\"type\":\"group\",\"clip\":true,\"encode\":{\"enter\":"
        "{\"width\":{\"value\":%d},\"height\":{\"value\":%d},"
        "\"stroke\":{\"value\":\"#444\"},\"fill\":{\"value\":"
        "\"transparent\"}}},\n\"marks\":[",
        f->width, p->height);
    for (int l = 0; l < p->n_layer; l++)
        print_layer(f, pi, l, out);
    fprintf(out,
            "%s\n{\"type\":\"rect\",\"interactive\":false,\"encode\":{"
            "\"enter\":{\"y\":{\"value\":0},\"height\":{\"value\":%d},"
            "\"fill\":{\"value\":\"#333\"}},\"update\":{\"x\":{\"scale\":\"x\","
            "\"signal\":\"brush[0]\"},\"x2\":{\"scale\":\"x\",\"signal\":"
            "\"brush[1]\"},\"fillOpacity\":{\"signal\":\"dragging?0.15:0\"}}}}"
            "]}]}",
            p->n_layer > 0 ? "," : "", p->height);
}

/* ---- the legend ---- */

static void legend_mark(const tsr_layer *a, double x, double y, FILE *out)
{
    switch (a->kind) {
    case TSR_LAYER_BAND:
    case TSR_LAYER_CELLS:
        fprintf(
            out,
            "{\"type\":\"rect\",\"encode\":{\"enter\":{\"x\":{\"value\":%g},"
            "\"y\":{\"value\":%g},\"width\":{\"value\":22},\"height\":"
            "{\"value\":11},\"fill\":{\"value\":\"%s\"},\"fillOpacity\":"
            "{\"value\":%g}}}},\n",
            x, y - 10.0, a->colour, a->opacity);
        break;
    case TSR_LAYER_POINTS:
        fprintf(out,
                "{\"type\":\"symbol\",\"encode\":{\"enter\":{\"x\":{\"value\":"
                "%g},\"y\":{\"value\":%g},\"size\":{\"value\":22},\"fill\":"
                "{\"value\":\"%s\"}}}},\n",
                x + 11.0, y - 4.5, a->colour);
        break;
    case TSR_LAYER_ERRORS:
        fprintf(
            out,
            "{\"type\":\"rule\",\"encode\":{\"enter\":{\"x\":{\"value\":%g},"
            "\"y\":{\"value\":%g},\"y2\":{\"value\":%g},\"stroke\":"
            "{\"value\":\"%s\"}}}},\n",
            x + 11.0, y - 11.0, y + 2.0, a->colour);
        break;
    default:
        fprintf(
            out,
            "{\"type\":\"rule\",\"encode\":{\"enter\":{\"x\":{\"value\":%g},"
            "\"x2\":{\"value\":%g},\"y\":{\"value\":%g},\"stroke\":"
            "{\"value\":\"%s\"},\"strokeWidth\":{\"value\":2}%s}}},\n",
            x, x + 22.0, y - 4.5, a->colour,
            a->kind == TSR_LAYER_DASHES ? ",\"strokeDash\":{\"value\":[5,4]}"
                                        : "");
    }
}

/* Returns its height. */
static double print_legend(const tsr_figure *f, FILE *out)
{
    const tsr_panel *p = &f->panel[0];
    double x = 0.0;
    int row = 0, n = 0;
    for (int l = 0; l < p->n_layer; l++) {
        const char *label = p->layer[l].label;
        if (label == NULL)
            continue;
        const double width = 46.0 + 7.4 * tsr_text_width(label);
        if (n++ > 0 && x + width > f->width + 24.0) {
            x = 0.0;
            row++;
        }
        const double y = row * LEGEND_ROW + 12.0;
        legend_mark(&p->layer[l], x, y, out);
        fprintf(
            out,
            "{\"type\":\"text\",\"encode\":{\"enter\":{\"x\":{\"value\":%g},"
            "\"y\":{\"value\":%g},\"fontSize\":{\"value\":13},\"text\":"
            "{\"value\":",
            x + 28.0, y);
        tsr_text_json(out, label);
        fputs("}}}},\n", out);
        x += width;
    }
    return n > 0 ? (row + 1) * LEGEND_ROW + 4.0 : 0.0;
}

void tsr_figure_print_vega(const tsr_figure *figure, FILE *out)
{
    double height = 0.0;
    for (int p = 0; p < figure->n_panel; p++)
        height += figure->panel[p].height + (p > 0 ? GAP : 0);
    fprintf(out,
            "{\"width\":%d,\"padding\":5,\"background\":\"white\",\n"
            "\"config\":{\"axis\":{\"labelFontSize\":12,\"titleFontSize\":13,"
            "\"titleFontWeight\":\"normal\"}},\n",
            figure->width);
    print_signals(figure, out);
    print_data(figure, out);
    fputs("\"scales\":[{\"name\":\"x\",\"type\":\"linear\",\"domain\":"
          "{\"signal\":\"xdom\"},\"range\":\"width\",\"zero\":false,"
          "\"nice\":false}],\n\"marks\":[",
          out);
    double top = print_legend(figure, out);
    height += top;
    for (int p = 0; p < figure->n_panel; p++) {
        print_panel(figure, p, top, out);
        fputs(p + 1 < figure->n_panel ? ",\n" : "", out);
        top += figure->panel[p].height + GAP;
    }
    fprintf(out, "],\n\"height\":%g}", height);
}
