#include "gpu/tuning.h"

#include "gpu/program.h"

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

tsr_status tsr_tuning_find_in(const char *table, const char *name,
                              const tsr_device_info *info,
                              tsr_page_tile_options *options, int *found,
                              tsr_err *err)
{
    *found = 0;
    for (int number = 1; *table != '\0' && !*found; number++) {
        size_t length = strcspn(table, "\n");
        char kind[16] = "";
        tsr_page_tile_options line = {0};
        int at = 0;
        size_t blank = strspn(table, " \t\r");
        if (blank < length && table[blank] != '#') {
            char text[512];
            snprintf(text, sizeof text, "%.*s", (int)length, table);
            if (sscanf(text, "%15s %d %d %d %d %n", kind, &line.tile,
                       &line.parts, &line.split, &line.difference, &at) < 5 ||
                at == 0 || text[at] == '\0')
                return tsr_fail(err, TSR_E_DATA,
                                "%s, line %d: 'kind tile parts split "
                                "difference name' is expected",
                                name, number);
            size_t end = strlen(text);
            while (end > 0 && isspace((unsigned char)text[end - 1]))
                end--;
            if (strcmp(kind, kind_of(info)) == 0 &&
                is_named(info->name, text + at, end - (size_t)at)) {
                fill(&line, options);
                *found = 1;
            }
        }
        table += length;
        table += *table == '\n';
    }
    return TSR_OK;
}

static tsr_status find_in_source(const char *source, const char *path,
                                 const tsr_device_info *info,
                                 tsr_page_tile_options *options, int *found,
                                 tsr_err *err)
{
    char *text = NULL;
    tsr_status status = tsr_program_text(source, path, &text, err);
    if (!status)
        status = tsr_tuning_find_in(text, path != NULL ? path : source, info,
                                    options, found, err);
    free(text);
    return status;
}

tsr_status tsr_tuning_find(const tsr_device_info *info,
                           tsr_page_tile_options *options, tsr_err *err)
{
    const char *path = getenv("TESSERA_TUNING");
    tsr_status status = TSR_OK;
    int found = 0;
    if (path != NULL && *path != '\0')
        status = find_in_source(NULL, path, info, options, &found, err);
    if (!status && !found)
        status = find_in_source("engine_tuning.dat", NULL, info, options,
                                &found, err);
    return status;
}

int tsr_tuning_line(const tsr_device_info *info,
                    const tsr_page_tile_options *options, char *text,
                    size_t size)
{
    return snprintf(text, size, "%s %d %d %d %d %s", kind_of(info),
                    options->tile, options->parts, options->split,
                    options->difference, info->name);
}
