/* A line of the table is a kind of device, part of its name, and the settings;
 * the first line that fits a device counts. */
#include "gpu/tuning.h"

#include "gpu/opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_of(const tsr_device_info *info)
{
    switch (info->type) {
    case TSR_DEVICE_GPU:
        return "gpu";
    case TSR_DEVICE_CPU:
        return "cpu";
    case TSR_DEVICE_ACCELERATOR:
    case TSR_DEVICE_OTHER:
        break;
    }
    return "other";
}

/* Whether `part`, which ends at a line's end, is in the name, in any case. */
static int is_named(const char *name, const char *part, size_t length)
{
    if (length == 1 && part[0] == '*')
        return 1;
    for (; strlen(name) >= length; name++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)name[i]) ==
                                 tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return 1;
    }
    return 0;
}

static void fill(const tsr_page_tile_options *line,
                 tsr_page_tile_options *options)
{
    if (options->tile == 0)
        options->tile = line->tile;
    if (options->parts == 0)
        options->parts = line->parts;
    if (options->split == 0)
        options->split = line->split;
    if (options->difference == 0 && options->tile == line->tile)
        options->difference = line->difference;
}

static int is_kind(const char *word, size_t length, const char *kind)
{
    return strlen(kind) == length && strncmp(word, kind, length) == 0;
}

/* A whole number and the blank after it; 0: there is none, or it is too long.
 */
static int read_number(const char **text, const char *end, int most, int *value)
{
    char *after;
    while (*text < end && (**text == ' ' || **text == '\t'))
        ++*text;
    long number = strtol(*text, &after, 10);
    if (after == *text || after >= end || !isspace((unsigned char)*after) ||
        number < -1 || number > most)
        return 0;
    *value = (int)number;
    *text = after;
    return 1;
}

/* A line that is no comment; 0: it is not of the form. */
static int read_line(const char *text, const char *end, const char **kind,
                     size_t *kind_length, int *n_body, tsr_page_tile_options *o,
                     const char **name)
{
    *kind = text;
    while (text < end && !isspace((unsigned char)*text))
        text++;
    *kind_length = (size_t)(text - *kind);
    if (!is_kind(*kind, *kind_length, "gpu") &&
        !is_kind(*kind, *kind_length, "cpu") &&
        !is_kind(*kind, *kind_length, "other"))
        return 0;
    if (!read_number(&text, end, 1000000, n_body) ||
        !read_number(&text, end, 128, &o->tile) ||
        !read_number(&text, end, 4, &o->parts) ||
        !read_number(&text, end, 1024, &o->split) ||
        !read_number(&text, end, 64, &o->difference))
        return 0;
    while (text < end && isspace((unsigned char)*text))
        text++;
    *name = text;
    return text < end && *n_body >= 0 &&
           (o->tile == 16 || o->tile == 32 || o->tile == 64 ||
            o->tile == 128) &&
           (o->parts == 1 || o->parts == 2 || o->parts == 4) && o->split >= 1 &&
           o->difference != 0 && o->difference <= o->tile / 2;
}

tsr_status tsr_tuning_find_in(const char *table, const char *name,
                              const tsr_device_info *info, int n_body,
                              tsr_page_tile_options *options, int *found,
                              tsr_err *err)
{
    *found = 0;
    for (int number = 1; *table != '\0'; number++) {
        const char *end = table + strcspn(table, "\n"), *next = end;
        const char *text = table + strspn(table, " \t\r"), *kind, *part;
        size_t length;
        tsr_page_tile_options line = {0};
        int most = 0;
        while (end > text && isspace((unsigned char)end[-1]))
            end--;
        if (text < end && *text != '#') {
            if (!read_line(text, end, &kind, &length, &most, &line, &part))
                return tsr_fail(
                    err, TSR_E_DATA,
                    "%s, line %d: 'kind bodies tile parts split difference "
                    "name' is expected: kind gpu, cpu or other; the most "
                    "bodies that it is for, 0 for any number; tile 16, 32, 64 "
                    "or 128; parts 1, 2 or 4; split 1 to 1024; difference 1 to "
                    "half a tile, or -1 for none",
                    name, number);
            if (!*found && is_kind(kind, length, kind_of(info)) &&
                (most == 0 || (n_body > 0 && n_body <= most)) &&
                is_named(info->name, part, (size_t)(end - part))) {
                fill(&line, options);
                *found = 1;
            }
        }
        table = next + (*next == '\n');
    }
    return TSR_OK;
}

static tsr_status find_in_source(const char *source, const char *path,
                                 const tsr_device_info *info, int n_body,
                                 tsr_page_tile_options *options, int *found,
                                 tsr_err *err)
{
    char *text = NULL;
    tsr_status status = tsr_program_text(source, path, &text, err);
    TSR_THEN(status, tsr_tuning_find_in(text, path != NULL ? path : source,
                                        info, n_body, options, found, err));
    free(text);
    return status;
}

tsr_status tsr_tuning_find(const tsr_device_info *info, int n_body,
                           tsr_page_tile_options *options, tsr_err *err)
{
    const char *path = getenv("TESSERA_TUNING");
    int found = 0;
    if (path != NULL && *path != '\0')
        TSR_TRY(find_in_source(NULL, path, info, n_body, options, &found, err));
    if (!found)
        TSR_TRY(find_in_source("engine_tuning.dat", NULL, info, n_body, options,
                               &found, err));
    return TSR_OK;
}

int tsr_tuning_line(const tsr_device_info *info, int n_body,
                    const tsr_page_tile_options *options, char *text,
                    size_t size)
{
    return snprintf(text, size, "%s %d %d %d %d %d %s", kind_of(info), n_body,
                    options->tile, options->parts, options->split,
                    options->difference, info->name);
}
