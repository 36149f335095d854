/* Collects the page in four streams (first screen, list of sections, body,
 * script) and joins them into one HTML file that refers to no other file, so it
 * can be sent by mail and opened offline. Its content security policy forbids
 * the browser to load anything, whatever text from input files the page
 * contains. */
#include "report/report.h"

#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST, LIST, BODY, SCRIPT, N_STREAM };

struct tsr_page {
    tsr_pool pool; /* owns all below, and the page */
    char *title, *folder;
    int n_column;
    tsr_words words[N_STREAM];
    FILE *out; /* stream of FIRST or BODY that HTML is written to */
};

tsr_page *tsr_page_new(const char *title, const char *folder)
{
    tsr_pool pool = {0};
    tsr_page *page = tsr_pool_new(&pool, 1, sizeof *page);
    if (page == NULL)
        return NULL;
    page->title = tsr_pool_text(&pool, title);
    page->folder = tsr_pool_text(&pool, folder);
    for (int k = 0; k < N_STREAM; k++) {
        tsr_words_begin(&page->words[k]);
        pool.failed |= page->words[k].out == NULL;
    }
    page->pool = pool;
    page->out = page->words[FIRST].out;
    if (!pool.failed)
        return page;
    tsr_page_free(page);
    return NULL;
}

void tsr_page_free(tsr_page *page)
{
    if (page == NULL)
        return;
    for (int k = 0; k < N_STREAM; k++)
        free(tsr_words_end(&page->words[k]));
    tsr_pool pool = page->pool;
    tsr_pool_clear(&pool);
}

FILE *tsr_page_html(tsr_page *page)
{
    return page->out;
}

void tsr_page_text(tsr_page *page, const char *text)
{
    tsr_text_escape(page->out, text);
}

FILE *tsr_page_script(tsr_page *page)
{
    return page->words[SCRIPT].out;
}

void tsr_page_use_first_screen(tsr_page *page, int is_first)
{
    page->out = page->words[is_first ? FIRST : BODY].out;
}

void tsr_page_column(tsr_page *page)
{
    tsr_page_use_first_screen(page, 1);
    fputs(page->n_column++ > 0 ? "</section>\n<section>" : "<section>",
          page->words[FIRST].out);
}

void tsr_page_section(tsr_page *page, const char *id, const char *heading)
{
    fprintf(page->words[LIST].out, "<a href=\"#%s\">%s</a>", id, heading);
    fprintf(page->out, "<h2 id=\"%s\">%s</h2>\n", id, heading);
}

void tsr_page_words(tsr_page *page, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("<p>", page->out);
    vfprintf(page->out, format, list);
    fputs("</p>\n", page->out);
    va_end(list);
}

static void open_tag(FILE *out, const char *name, const char *class_of)
{
    if (*class_of != '\0')
        fprintf(out, "<%s class=\"%s\">", name, class_of);
    else
        fprintf(out, "<%s>", name);
}

void tsr_page_paragraph(tsr_page *page, const char *class_of, const char *lead,
                        const char *text)
{
    if (text == NULL)
        return;
    open_tag(page->out, "p", class_of);
    fputs(lead, page->out);
    tsr_page_text(page, text);
    fputs("</p>\n", page->out);
}

/* ---- tables ---- */

static void write_cells(FILE *out, const char *kind, const char *text)
{
    fputs("<tr>", out);
    for (size_t n; text != NULL; text = text[n] == '\t' ? text + n + 1 : NULL) {
        n = strcspn(text, "\t");
        fprintf(out, "<%s>%.*s</%s>", kind, (int)n, text, kind);
    }
    fputs("</tr>\n", out);
}

void tsr_page_table(tsr_page *page, const char *class_of, const char *head)
{
    open_tag(page->out, "table", class_of);
    write_cells(page->out, "th", head);
}

void tsr_page_row(tsr_page *page, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = tsr_text_format_list(format, list);
    va_end(list);
    write_cells(page->out, "td", text);
    page->pool.failed |= text == NULL;
    free(text);
}

void tsr_page_table_end(tsr_page *page)
{
    fputs("</table>\n", page->out);
}

const char *tsr_page_escape(tsr_page *page, const char *text)
{
    tsr_words words;
    char *safe = NULL, *own;
    tsr_words_begin(&words);
    if (words.out != NULL) {
        tsr_text_escape(words.out, text);
        safe = tsr_words_end(&words);
    }
    own = tsr_pool_text(&page->pool, safe);
    page->pool.failed |= own == NULL;
    free(safe);
    return own != NULL ? own : "";
}

const char *tsr_page_number(tsr_page *page, int decimals, double value)
{
    const char *text =
        isfinite(value) ? tsr_pool_format(&page->pool, "%.*f", decimals, value)
                        : NULL;
    return text != NULL ? text : "&ndash;";
}

void tsr_page_columns(tsr_page *page)
{
    fputs("<div class=\"columns\">\n", page->out);
}

void tsr_page_columns_end(tsr_page *page)
{
    fputs("</div>\n", page->out);
}

void tsr_page_choice(tsr_page *page, const char *id, const char *words)
{
    fputs("<div class=\"choice\"><label hidden>", page->out);
    tsr_text_escape(page->out, words);
    fprintf(page->out, " <select id=\"%s\"></select></label>\n", id);
}

void tsr_page_choice_end(tsr_page *page)
{
    fputs("</div>\n", page->out);
}

static tsr_status write_figure(tsr_page *page, tsr_figure *figure, tsr_err *err)
{
    char path[4096], *text;
    TSR_TRY(tsr_figure_finish(figure, err));
    snprintf(path, sizeof path, "%s/%s.csv", page->folder, figure->name);
    TSR_TRY(tsr_figure_write_csv(figure, path, err));
    TSR_TRY(tsr_figure_svg_text(figure, &text, err));
    fprintf(page->out, "<figure id=\"figure-%s\">%s</figure>\n", figure->name,
            text);
    snprintf(path, sizeof path, "%s/%s.svg", page->folder, figure->name);
    const tsr_status status = tsr_file_replace(path, text, strlen(text), err);
    free(text);
    return status;
}

tsr_status tsr_page_figure(tsr_page *page, tsr_figure figure, tsr_err *err)
{
    tsr_status status = write_figure(page, &figure, err);
    tsr_figure_clear(&figure);
    return status;
}

tsr_status tsr_page_write(tsr_page *page, const char *path, tsr_err *err)
{
    char *text[N_STREAM];
    tsr_file_writer to = {.out = NULL};
    for (int k = 0; k < N_STREAM; k++) {
        text[k] = tsr_words_end(&page->words[k]);
        page->pool.failed |= text[k] == NULL;
    }
    tsr_status status = tsr_pool_check(&page->pool, err);
    TSR_THEN(status, tsr_file_begin(&to, path, err));
    if (status != TSR_OK)
        goto done;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"generator\" content=\"tessera report\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
          "'none'; script-src 'unsafe-inline'; style-src "
          "'unsafe-inline'; img-src 'self' file: data:\">\n"
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
            text[LIST], text[FIRST], text[BODY]);
    fprintf(to.out,
            "<script>\n%s</script>\n<script>\n%s</script>\n"
            "<script>\n%sshowReport();\n</script>\n",
            tsr_report_js, tsr_report_view_js, text[SCRIPT]);
    fputs("</body></html>\n", to.out);
    status = tsr_file_end(&to, TSR_OK, err);
done:
    for (int k = 0; k < N_STREAM; k++)
        free(text[k]);
    return status;
}
