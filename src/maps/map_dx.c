/* OpenDX maps, as VMD, APBS and MDFF write them: a text with
 *
 *     object 1 class gridpositions counts NX NY NZ
 *     origin X Y Z
 *     delta HX 0 0
 *     delta 0 HY 0
 *     delta 0 0 HZ
 *     object 2 class gridconnections counts NX NY NZ
 *     object 3 class array type double rank 0 items N data follows
 *
 * and N numbers, z fastest. */
#include "maps/density_map.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *path, *at; /* the next line */
    tsr_map_grid grid;
    int n_delta;
    double n_item;
} parser;

/* One number after the last; 0 where there is none. */
static int number(const char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    if (end == *at)
        return 0;
    *at = end;
    return 1;
}

static int three(const char *at, double out[3])
{
    return number(&at, &out[0]) && number(&at, &out[1]) && number(&at, &out[2]);
}

static tsr_status refuse(const parser *p, const char *what, tsr_err *err)
{
    return tsr_fail(err, TSR_E_DATA, "'%s': OpenDX: %s", p->path, what);
}

static tsr_status counts(parser *p, const char *line, tsr_err *err)
{
    double n[3];
    if (!three(line, n))
        return refuse(p, "gridpositions without three counts", err);
    for (int c = 0; c < 3; c++) {
        if (!(n[c] >= 1.0 && n[c] <= 32767.0))
            return refuse(p, "counts of gridpositions out of range", err);
        p->grid.n[c] = (int)n[c];
    }
    return TSR_OK;
}

/* The k-th of the three lines may have a number only in its k-th place. */
static tsr_status delta(parser *p, const char *line, tsr_err *err)
{
    double d[3];
    const int k = p->n_delta++;
    if (k > 2 || !three(line, d))
        return refuse(p, "three lines 'delta' with three numbers are needed",
                      err);
    for (int c = 0; c < 3; c++)
        if (c != k && fabs(d[c]) > 1e-6 * fabs(d[k]))
            return refuse(p,
                          "delta: the axes are not those of x, y, z; resample "
                          "the map on a rectangular grid",
                          err);
    if (!(d[k] > 0.0))
        return refuse(p, "delta: a step that is not above 0", err);
    p->grid.step[k] = d[k];
    return TSR_OK;
}

static tsr_status items(parser *p, const char *line, tsr_err *err)
{
    const char *at = strstr(line, "items");
    if (at != NULL)
        at += strlen("items");
    if (at == NULL || !number(&at, &p->n_item))
        return refuse(p, "class array without items", err);
    if (strstr(line, "binary") != NULL || strstr(line, "lsb") != NULL ||
        strstr(line, "msb") != NULL)
        return refuse(p, "binary data; give text or MRC", err);
    return TSR_OK;
}

/* Lines up to the array, which comes last. */
static tsr_status head(parser *p, tsr_err *err)
{
    while (*p->at != '\0' && p->n_item == 0.0) {
        char line[256];
        size_t n = strcspn(p->at, "\r\n");
        snprintf(line, sizeof line, "%.*s", n < 255 ? (int)n : 255, p->at);
        p->at += n + strspn(p->at + n, "\r\n");
        const char *word = line + strspn(line, " \t");
        const char *positions = strstr(word, "gridpositions counts");
        if (positions != NULL)
            TSR_TRY(counts(p, positions + strlen("gridpositions counts"), err));
        else if (strncmp(word, "origin", 6) == 0 &&
                 !three(word + 6, p->grid.origin))
            return refuse(p, "origin without three numbers", err);
        else if (strncmp(word, "delta", 5) == 0)
            TSR_TRY(delta(p, word + 5, err));
        else if (strstr(word, "class array") != NULL)
            TSR_TRY(items(p, word, err));
    }
    if (p->grid.n[0] == 0)
        return refuse(p,
                      "no 'object ... class gridpositions counts'; is it a "
                      "density map?",
                      err);
    if (p->n_delta != 3)
        return refuse(p, "three lines 'delta' are needed", err);
    if (p->n_item != (double)tsr_map_n_voxel(&p->grid))
        return refuse(p, "items of the array are not those of gridpositions",
                      err);
    return TSR_OK;
}

tsr_status tsr_map_read_dx(const char *path, const char *text, tsr_map **out,
                           tsr_err *err)
{
    parser p = {.path = path, .at = text};
    static const char ends[] = "the array ends before its items do";
    TSR_TRY(head(&p, err));
    if (p.n_item > (double)strlen(p.at)) /* before memory is asked for */
        return refuse(&p, ends, err);
    TSR_TRY(tsr_map_new(&p.grid, out, err));
    const size_t nx = (size_t)p.grid.n[0], ny = (size_t)p.grid.n[1];
    const size_t nz = (size_t)p.grid.n[2];
    for (size_t x = 0; x < nx; x++)
        for (size_t y = 0; y < ny; y++)
            for (size_t z = 0; z < nz; z++) {
                double value;
                if (!number(&p.at, &value)) {
                    tsr_map_free(*out);
                    *out = NULL;
                    return refuse(&p, ends, err);
                }
                (*out)->value[(z * ny + y) * nx + x] =
                    fabs(value) <= (double)FLT_MAX ? (float)value : NAN;
            }
    return TSR_OK;
}
