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
    char *title, *folder;
    int n_column;
    tsr_words first, list, body, script;
    tsr_words *now; /* first or body: which HTML goes to */
};

tsr_page *tsr_page_new(const char *title, const char *folder)
{
    tsr_page *page = calloc(1, sizeof *page);
    if (page == NULL)
        return NULL;
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
    fputs("<div class=\"choice\"><label hidden>", page->now->out);
    tsr_text_escape(page->now->out, words);
    fprintf(page->now->out, " <select id=\"%s\"></select></label>\n", id);
}

void tsr_page_choice_end(tsr_page *page)
{
    fputs("</div>\n", page->now->out);
}

static tsr_status put_figure(tsr_page *page, tsr_figure *figure, tsr_err *err)
{
    char path[4096], *text;
    TSR_TRY(tsr_figure_finish(figure, err));
    snprintf(path, sizeof path, "%s/%s.csv", page->folder, figure->name);
    TSR_TRY(tsr_figure_write_csv(figure, path, err));
    TSR_TRY(tsr_figure_svg_text(figure, &text, err));
    fprintf(page->now->out, "<figure id=\"figure-%s\">%s</figure>\n",
            figure->name, text);
    snprintf(path, sizeof path, "%s/%s.svg", page->folder, figure->name);
    const tsr_status status = tsr_file_replace(path, text, strlen(text), err);
    free(text);
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
          "'none'; script-src 'unsafe-inline'; style-src "
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
    fprintf(to.out,
            "<script>\n%s</script>\n<script>\n%s</script>\n"
            "<script>\n%sshowReport();\n</script>\n",
            tsr_report_js, tsr_report_view_js, script);
    fputs("</body></html>\n", to.out);
    status = tsr_file_end(&to, TSR_OK, err);
done:
    free(first);
    free(list);
    free(body);
    free(script);
    return status;
}
