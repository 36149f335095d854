/* Vega, the library that draws the report's figures in the browser, as one text
 * that a page can hold. */
#include "report/report_sections.h"

#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    size_t size;
    tsr_status status = TSR_OK;
    *script = NULL;
    if (directory == NULL)
        directory = vega_directory;
    FILE *out = open_memstream(script, &size);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for Vega");
    fputs(head, out);
    for (int i = 0; i < N_MODULE && status == TSR_OK; i++)
        status = print_module(directory, module[i], out, err);
    if (fclose(out) != 0 && status == TSR_OK)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for Vega");
    if (status != TSR_OK) {
        free(*script);
        *script = NULL;
    }
    return status;
}
