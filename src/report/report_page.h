/* The page of a report: headings, words, tables and figures, one HTML file that
 * needs nothing else. */
#ifndef TSR_REPORT_REPORT_PAGE_H
#define TSR_REPORT_REPORT_PAGE_H

#include "core/status.h"
#include "report/figure.h"

#include <stdio.h>

/* report.js and so on, embedded at build by kernels/embed.c. */
extern const char tsr_report_js[], tsr_report_view_js[], tsr_report_css[];

typedef struct tsr_page tsr_page;

/* folder: where the figures also go, as NAME.svg and, in numbers, NAME.csv; it
 * is there. NULL when out of memory. */
tsr_page *tsr_page_new(const char *title, const char *folder);
void tsr_page_free(tsr_page *page);

/* The first screen: columns beside each other where the window is wide enough,
 * above all else. A page begins with a column; what follows goes into it, or
 * below the first screen where is_first is 0. */
void tsr_page_column(tsr_page *page);
void tsr_page_to_first(tsr_page *page, int is_first);

/* A heading with its entry in the list at the top. */
void tsr_page_section(tsr_page *page, const char *id, const char *heading);

/* A paragraph. `format` is HTML and ours; what comes from a file goes through
 * tsr_page_text. */
void tsr_page_words(tsr_page *page, const char *format, ...) TSR_PRINTF(2, 3);

/* HTML as it is; the stream takes more of it. */
FILE *tsr_page_html(tsr_page *page);

/* The script of the page, which runs once all of it is there. */
FILE *tsr_page_script(tsr_page *page);

/* Text with what means something in HTML escaped. */
void tsr_page_text(tsr_page *page, const char *text);

/* A paragraph: `lead` is HTML and ours, the text is escaped. class_of: of the
 * style; NULL: none. Nothing where the text is NULL. */
void tsr_page_paragraph(tsr_page *page, const char *class_of, const char *lead,
                        const char *text);

/* Writes the figure as SVG and puts it into the page; takes it, also when it
 * fails. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_page_figure(tsr_page *page, tsr_figure figure, tsr_err *err);

/* Figures up to tsr_page_columns_end stand beside each other where the window
 * is wide enough. */
void tsr_page_columns(tsr_page *page);
void tsr_page_columns_end(tsr_page *page);

/* Of the figures up to tsr_page_choice_end one shows at a time, which is chosen
 * from a list of their titles; the range of x goes with the choice. Without
 * scripts all of them show. words: before the list. */
void tsr_page_choice(tsr_page *page, const char *id, const char *words);
void tsr_page_choice_end(tsr_page *page);

/* Writes the file: beside, then renamed. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_page_write(tsr_page *page, const char *path, tsr_err *err);

#endif
