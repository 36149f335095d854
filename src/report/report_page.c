/* The page is collected in three streams (the list of sections, the body, the
 * script with the figures) and joined at the end into one file that fetches
 * nothing: it can be mailed, and opened in ten years. Its own policy forbids
 * the browser to fetch anything, whatever text it holds. */
#include "report/report_page.h"

#include "core/text.h"
#include "files/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsr_page {
    const char *vega; /* borrowed */
    char *title, *folder;
    int n_column, has_script;
    tsr_words first, list, body, script;
    tsr_words *now; /* first or body: which HTML goes to */
};

tsr_page *tsr_page_new(const char *title, const char *vega, const char *folder)
{
    tsr_page *page = calloc(1, sizeof *page);
    if (page == NULL)
        return NULL;
    page->vega = vega;
    page->title = strdup(title);
    page->folder = strdup(folder);
    tsr_words_begin(&page->first);
    tsr_words_begin(&page->list);
    tsr_words_begin(&page->body);
    tsr_words_begin(&page->script);
    page->now = &page->first;
    if (page->title == NULL || page->folder == NULL ||
        page->first.out == NULL || page->list.out == NULL ||
        page->body.out == NULL || page->script.out == NULL) {
        tsr_page_free(page);
        return NULL;
    }
    return page;
}

void tsr_page_free(tsr_page *page)
{
    if (page == NULL)
        return;
    free(tsr_words_end(&page->first));
    free(tsr_words_end(&page->list));
    free(tsr_words_end(&page->body));
    free(tsr_words_end(&page->script));
    free(page->title);
    free(page->folder);
    free(page);
}

FILE *tsr_page_html(tsr_page *page)
{
    return page->now->out;
}

void tsr_page_text(tsr_page *page, const char *text)
{
    tsr_text_escape(page->now->out, text);
}

FILE *tsr_page_script(tsr_page *page)
{
    page->has_script = 1;
    return page->script.out;
}

void tsr_page_to_first(tsr_page *page, int is_first)
{
    page->now = is_first ? &page->first : &page->body;
}

void tsr_page_column(tsr_page *page)
{
    tsr_page_to_first(page, 1);
    fputs(page->n_column++ > 0 ? "</section>\n<section>" : "<section>",
          page->first.out);
}

void tsr_page_section(tsr_page *page, const char *id, const char *heading)
{
    fprintf(page->list.out, "<a href=\"#%s\">%s</a>", id, heading);
    fprintf(page->now->out, "<h2 id=\"%s\">%s</h2>\n", id, heading);
}

void tsr_page_words(tsr_page *page, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("<p>", page->now->out);
    vfprintf(page->now->out, format, list);
    fputs("</p>\n", page->now->out);
    va_end(list);
}

void tsr_page_paragraph(tsr_page *page, const char *class_of, const char *lead,
                        const char *text)
{
    if (text == NULL)
        return;
    if (class_of != NULL)
        fprintf(page->now->out, "<p class=\"%s\">%s", class_of, lead);
    else
        fprintf(page->now->out, "<p>%s", lead);
    tsr_page_text(page, text);
    fputs("</p>\n", page->now->out);
}

void tsr_page_columns(tsr_page *page)
{
    fputs("<div class=\"columns\">\n", page->now->out);
}

void tsr_page_columns_end(tsr_page *page)
{
    fputs("</div>\n", page->now->out);
}

void tsr_page_choice(tsr_page *page, const char *id, const char *words)
{
    fputs("<div class=\"choice\">", page->now->out);
    if (page->vega != NULL) {
        fputs("<label>", page->now->out);
        tsr_text_escape(page->now->out, words);
        fprintf(page->now->out, " <select id=\"%s\"></select></label>\n", id);
    }
}

void tsr_page_choice_end(tsr_page *page)
{
    fputs("</div>\n", page->now->out);
}

static tsr_status put_figure(tsr_page *page, tsr_figure *figure, tsr_err *err)
{
    char path[4096], *text = NULL;
    FILE *out = page->now->out;
    TSR_TRY(tsr_figure_finish(figure, err));
    snprintf(path, sizeof path, "%s/%s.svg", page->folder, figure->name);
    tsr_status status = tsr_figure_write_svg(figure, path, err);
    snprintf(path, sizeof path, "%s/%s.csv", page->folder, figure->name);
    TSR_THEN(status, tsr_figure_write_csv(figure, path, err));
    if (status == TSR_OK && page->vega != NULL) {
        fprintf(tsr_page_script(page), "tesseraFigures['%s']=", figure->name);
        tsr_figure_print_json(figure, page->script.out);
        fputs(";\n", page->script.out);
        fputs("<figure><figcaption>", out);
        tsr_text_escape(out, figure->title);
        fprintf(out,
                "</figcaption><div class=\"vega\" id=\"figure-%s\"></div>"
                "</figure>\n",
                figure->name);
    } else if (status == TSR_OK) {
        status = tsr_figure_svg_text(figure, &text, err);
        fprintf(out, "<figure id=\"figure-%s\">%s</figure>\n", figure->name,
                text != NULL ? text : "");
        free(text);
    }
    return status;
}

tsr_status tsr_page_figure(tsr_page *page, tsr_figure figure, tsr_err *err)
{
    tsr_status status = put_figure(page, &figure, err);
    tsr_figure_clear(&figure);
    return status;
}

/* The policy forbids the page to fetch anything, whatever it holds. */
tsr_status tsr_page_write(tsr_page *page, const char *path, tsr_err *err)
{
    char *first = tsr_words_end(&page->first);
    char *list = tsr_words_end(&page->list), *body = tsr_words_end(&page->body);
    char *script = tsr_words_end(&page->script);
    tsr_file_writer to = {.out = NULL};
    tsr_status status =
        first == NULL || list == NULL || body == NULL || script == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "out of memory for '%s'", path)
            : tsr_file_begin(&to, path, err);
    if (status != TSR_OK)
        goto done;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"generator\" content=\"tessera report\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
          "'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src "
          "'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          to.out);
    tsr_text_escape(to.out, page->title);
    fprintf(to.out, "</title>\n<style>%s</style></head>\n<body>\n<h1>",
            tsr_report_css);
    tsr_text_escape(to.out, page->title);
    fprintf(to.out,
            "</h1>\n<nav>%s</nav>\n<div class=\"first\">%s</section></div>\n%s",
            list, first, body);
    if (page->has_script)
        fprintf(to.out,
                "<script>\n%s</script>\n<script>\n%s</script>\n"
                "<script>\n%s</script>\n<script>\n%sshowReport();\n"
                "</script>\n",
                tsr_report_js, tsr_report_view_js,
                page->vega != NULL ? page->vega : "", script);
    fputs("</body></html>\n", to.out);
    status = tsr_file_end(&to, TSR_OK, err);
done:
    free(first);
    free(list);
    free(body);
    free(script);
    return status;
}

/* Vega, the library that draws the report's figures in the browser, as one text
 * that a page can hold. */

/* Where Debian's package libjs-vega puts it. */
static const char *const vega_directory = "/usr/share/javascript/vega";

/* What our figures need, each after what it needs itself; not maps, trees,
 * forces. Debian ships the modules without the bundle that joins them. */
static const char *const module[] = {
    "util",       "time",       "format",         "loader",
    "dataflow",   "statistics", "canvas",         "scale",
    "scenegraph", "expression", "event-selector", "selection",
    "functions",  "encode",     "transforms",     "view-transforms",
    "runtime",    "view",       "parser"};
enum { N_MODULE = sizeof module / sizeof *module };

static const char head[] =
    "/* Vega, Copyright 2015 to 2021 University of Washington Interactive Data "
    "Lab and\n * contributors; with parts of D3, Copyright 2010 to 2021 Mike "
    "Bostock.\n * Redistribution under the BSD 3-clause and ISC licences:\n"
    " * https://github.com/vega/vega/blob/main/LICENSE */\n";

static tsr_status print_module(const char *directory, const char *name,
                               FILE *out, tsr_err *err)
{
    char path[1024], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "%s/vega-%s.min.js", directory, name);
    tsr_status status = tsr_file_read(path, &text, &size, err);
    if (status != TSR_OK)
        return tsr_wrap(err, TSR_E_NOINPUT,
                        "figures cannot be made interactive without Vega "
                        "(Debian and Ubuntu: apt-get install libjs-vega)");
    if (strstr(text, "</script") != NULL || strlen(text) != size) {
        free(text);
        return tsr_fail(err, TSR_E_DATA, "'%s' cannot stand in a page", path);
    }
    fprintf(out, "vegaModule('vega-%s',function(module,exports,require){\n",
            name);
    for (const char *line = text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        /* the map that it names is not here */
        if (strncmp(line, "//# sourceMappingURL", 20) != 0)
            fprintf(out, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    fputs("});\n", out);
    free(text);
    return TSR_OK;
}

tsr_status tsr_vega_script(const char *directory, char **script, tsr_err *err)
{
    tsr_words words;
    tsr_status status = TSR_OK;
    *script = NULL;
    if (directory == NULL)
        directory = vega_directory;
    tsr_words_begin(&words);
    if (words.out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for Vega");
    fputs(head, words.out);
    for (int i = 0; i < N_MODULE && status == TSR_OK; i++)
        status = print_module(directory, module[i], words.out, err);
    *script = tsr_words_end(&words);
    if (*script == NULL && status == TSR_OK)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for Vega");
    if (status != TSR_OK) {
        free(*script);
        *script = NULL;
    }
    return status;
}
