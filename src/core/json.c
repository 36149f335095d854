/* JSON is written, never built in memory: results can be long, and a benchmark
 * shows each row when it is measured. The state is thus only which brackets are
 * open and whether something stands in them, which decides on commas. */
#include "core/json.h"

#include "core/text.h"

#include <math.h>
#include <stdlib.h>

static void put_string(const tsr_json *j, const char *text)
{
    FILE *out = j->out;
    fputc('"', out);
    while (*text != '\0') {
        const char *from = text;
        const long code = tsr_utf8_next(&text);
        if (code < 0)
            fputs("\\ufffd", out);
        else if (code < 0x20 || (code == '<' && j->is_script))
            fprintf(out, "\\u%04lx", (unsigned long)code);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
    fputc('"', out);
}

/* The comma, the line and the key before a value; 0: nothing is written here,
 * since it is nested too deep. */
static int start(tsr_json *j, const char *key, int is_container)
{
    const int inside = j->depth - 1;
    if (j->too_deep > 0)
        return 0;
    if (inside >= 0) {
        const int own_line =
            is_container && (key == NULL || j->depth == 1) && !j->is_script;
        if (j->has_entry[inside])
            fputs(own_line || j->is_script ? "," : ", ", j->out);
        if (own_line)
            fprintf(j->out, "\n%*s", j->depth, "");
        j->has_entry[inside] = 1;
    }
    if (key != NULL) {
        put_string(j, key);
        fputs(j->is_script ? ":" : ": ", j->out);
    }
    return 1;
}

static void open_with(tsr_json *j, const char *key, const char *bracket)
{
    const int is_deep = j->depth == TSR_JSON_DEPTH;
    if (start(j, key, !is_deep))
        fputs(is_deep ? "null" : (char[2]){bracket[0]}, j->out);
    if (is_deep) {
        j->is_bad = 1;
        j->too_deep++;
        return;
    }
    j->close[j->depth] = bracket[1];
    j->has_entry[j->depth++] = 0;
}

void tsr_json_object(tsr_json *json, const char *key)
{
    open_with(json, key, "{}");
}

void tsr_json_array(tsr_json *json, const char *key)
{
    open_with(json, key, "[]");
}

void tsr_json_close(tsr_json *json)
{
    if (json->too_deep > 0) {
        json->too_deep--;
        return;
    }
    fputc(json->close[--json->depth], json->out);
    if (json->depth == 0 && !json->is_script)
        fputc('\n', json->out);
}

void tsr_json_number(tsr_json *json, const char *key, double value)
{
    char text[32];
    int digits = json->digits > 0 ? json->digits : 15;
    if (!start(json, key, 0))
        return;
    if (!isfinite(value)) {
        fputs("null", json->out);
        return;
    }
    do /* 17 digits always suffice, and 15 mostly */
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (json->digits == 0 && digits++ < 17 && strtod(text, NULL) != value);
    fputs(text, json->out);
}

void tsr_json_numbers(tsr_json *json, const char *key, int n,
                      const double *value)
{
    tsr_json_array(json, key);
    for (int i = 0; i < n; i++)
        tsr_json_number(json, NULL, value[i]);
    tsr_json_close(json);
}

void tsr_json_integer(tsr_json *json, const char *key, long long value)
{
    if (start(json, key, 0))
        fprintf(json->out, "%lld", value);
}

void tsr_json_truth(tsr_json *json, const char *key, int value)
{
    if (start(json, key, 0))
        fputs(value ? "true" : "false", json->out);
}

void tsr_json_text(tsr_json *json, const char *key, const char *text)
{
    if (!start(json, key, 0))
        return;
    if (text != NULL)
        put_string(json, text);
    else
        fputs("null", json->out);
}
