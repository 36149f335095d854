/* cansas1d XML: a search for tags, without entities. NXcanSAS: a search for
 * groups with Q and I. */
#include "store/cansas.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const column_name[TSR_CANSAS_N] = {"Q",    "I",   "Idev",
                                                      "Qdev", "dQl", "dQw"};

/* ---- XML ---- */

/* Replaces comments, CDATA and declarations by blanks. */
static void blank_out(char *p)
{
    while ((p = strstr(p, "<!")) != NULL) {
        const char *mark = strncmp(p, "<!--", 4) == 0        ? "-->"
                           : strncmp(p, "<![CDATA[", 9) == 0 ? "]]>"
                                                             : ">";
        const char *to = strstr(p, mark);
        const size_t n =
            to != NULL ? (size_t)(to - p) + strlen(mark) : strlen(p);
        for (const char *end = p + n; p < end; p++)
            *p = *p == '\n' ? '\n' : ' ';
    }
}

/* Reads the number of an element of the last point, if it has one. p: the end
 * of the name in its first tag, whose rest holds the unit. */
static tsr_status read_element(const char *path, const char *p, int c,
                               tsr_cansas *out, tsr_err *err)
{
    tsr_saxs_row *point = &out->point[out->n - 1];
    const char *end = p + strcspn(p, "<>");
    char *stop;
    if (!out->has[c])
        snprintf(out->unit[c], TSR_CANSAS_UNIT, "%.*s", (int)(end - p), p);
    const int is_empty = *end != '>' || end[-1] == '/';
    end += is_empty ? 0 : 1 + strspn(end + 1, " \t\r\n");
    if (is_empty || *end == '<')
        return TSR_OK;
    point->value[c] = strtod(end, &stop);
    if (stop == end || stop[strspn(stop, " \t\r\n")] != '<')
        return tsr_fail(err, TSR_E_DATA,
                        "'%s', line %ld: %s of this point (Idata) is no number",
                        path, point->line, column_name[c]);
    out->has[c] = 1;
    return TSR_OK;
}

static tsr_status add_point(long line, tsr_pool *pool, tsr_cansas *out,
                            tsr_err *err)
{
    if ((out->n & (out->n - 1)) == 0) /* full at 1, 2, 4, 8, ... */
        out->point = tsr_pool_resize(pool, out->point, 2 * (size_t)out->n + 1,
                                     sizeof *out->point);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int c = 0; c < TSR_CANSAS_N; c++)
        out->point[out->n].value[c] = (double)NAN;
    out->point[out->n++].line = line;
    return TSR_OK;
}

tsr_status tsr_cansas_read_xml(const char *path, const char *text,
                               tsr_pool *pool, tsr_cansas *out, tsr_err *err)
{
    int is_whole = 0, n_end = 0;
    long line = 1;
    *out = (tsr_cansas){0};
    char *at = tsr_pool_text(pool, text);
    TSR_TRY(tsr_pool_check(pool, err));
    blank_out(at);
    for (const char *p = at; (p = strchr(p, '<')) != NULL;) {
        const int is_read = out->n_data == 1 && n_end == 0;
        const int is_end = p[1] == '/';
        for (; at < p; at++)
            line += *at == '\n';
        const char *word = p + 1 + is_end;
        p = word + strcspn(word, " \t\r\n/<>");
        const char *colon = memchr(word, ':', (size_t)(p - word));
        word = colon != NULL ? colon + 1 : word; /* without its name space */
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)(p - word), word);
        if (strcmp(name, "SASdata") == 0)
            ++*(is_end ? &n_end : &out->n_data);
        else if (is_end)
            is_whole |= strcmp(name, "SASroot") == 0;
        else if (is_read && strcmp(name, "Idata") == 0)
            TSR_TRY(add_point(line, pool, out, err));
        for (int c = 0; c < TSR_CANSAS_N; c++)
            if (is_read && !is_end && out->n > 0 &&
                strcmp(name, column_name[c]) == 0)
                TSR_TRY(read_element(path, p, c, out, err));
    }
    if (is_whole && n_end > 0)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the XML lacks SASdata or the end of SASroot, so it "
                    "is no whole cansas1d file; give such a file, or a table "
                    "of q, I, sigma",
                    path);
}

/* ---- HDF5 ---- */

enum { MOST_POINTS = 10000000 }; /* a small compressed file can hold more */

typedef struct {
    char first[1024]; /* path of the first SASdata */
    int n;
} search;

/* Programs differ in the attribute with the class of a SASdata. The names of Q
 * and I are fixed. */
static herr_t find_data(hid_t file, const char *name, const H5O_info_t *info,
                        void *context)
{
    search *s = context;
    if (info->type != H5O_TYPE_GROUP || strlen(name) >= sizeof s->first)
        return 0;
    const hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    if (tsr_hdf5_has(group, "Q") && tsr_hdf5_has(group, "I") && s->n++ == 0)
        snprintf(s->first, sizeof s->first, "%s", name);
    tsr_hdf5_close(group);
    return 0;
}

/* Reads column c from an open data set. One value for all points can be a
 * resolution or a slit. */
static tsr_status read_column(const char *path, hid_t data, int c,
                              tsr_pool *pool, tsr_cansas *out, tsr_err *err)
{
    const hid_t space = data >= 0 ? H5Dget_space(data) : -1;
    const hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    tsr_hdf5_close(space);
    if (c == TSR_CANSAS_Q && n >= 0 && n <= MOST_POINTS)
        out->n = (int)n;
    if (n != out->n && (n != 1 || c < TSR_CANSAS_QDEV))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %s of SASdata does not have %d values; give a "
                        "curve, averaged over directions and frames",
                        path, column_name[c], out->n);
    if (c == TSR_CANSAS_Q)
        tsr_pool_array(pool, out->point, n);
    double *value = tsr_pool_new(pool, (size_t)n, sizeof *value);
    TSR_TRY(tsr_pool_check(pool, err));
    if (H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) <
        0)
        return tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read %s", path,
                             column_name[c]);
    for (int k = 0; k < out->n; k++) {
        out->point[k].line = k + 1;
        out->point[k].value[c] = value[n > 1 ? k : 0];
    }
    char *unit = tsr_hdf5_attribute_text(data, "units");
    snprintf(out->unit[c], TSR_CANSAS_UNIT, "%s", unit != NULL ? unit : "");
    free(unit);
    out->has[c] = 1;
    return TSR_OK;
}

tsr_status tsr_cansas_read_hdf5(const char *path, tsr_pool *pool,
                                tsr_cansas *out, tsr_err *err)
{
    tsr_hdf5_input input;
    search s = {.n = 0};
    *out = (tsr_cansas){0};
    TSR_TRY(tsr_hdf5_input_open(path, &input, err));
    (void)H5Ovisit2(input.file, H5_INDEX_NAME, H5_ITER_INC, find_data, &s,
                    H5O_INFO_BASIC);
    out->n_data = s.n;
    const hid_t group =
        s.n > 0 ? H5Gopen2(input.file, s.first, H5P_DEFAULT) : -1;
    tsr_status status =
        group >= 0 ? TSR_OK
                   : tsr_fail(err, TSR_E_DATA,
                              "'%s': HDF5 without a group of Q and I is no "
                              "NXcanSAS file; give such a file, or a table of "
                              "q, I, sigma",
                              path);
    char *stated[TSR_CANSAS_N] = {NULL}; /* names that I and Q give others */
    for (int c = 0; c < TSR_CANSAS_N && status == TSR_OK; c++) {
        const char *name = column_name[c];
        if (stated[c] != NULL && strcmp(stated[c], "dQl") != 0 &&
            strcmp(stated[c], "dQw") != 0 && tsr_hdf5_has(group, stated[c]))
            name = stated[c];
        if (!tsr_hdf5_has(group, name))
            continue;
        const hid_t data = H5Dopen2(group, name, H5P_DEFAULT);
        status = read_column(path, data, c, pool, out, err);
        if (c == TSR_CANSAS_Q)
            stated[TSR_CANSAS_QDEV] =
                tsr_hdf5_attribute_text(data, "resolutions");
        if (c == TSR_CANSAS_I)
            stated[TSR_CANSAS_IDEV] =
                tsr_hdf5_attribute_text(data, "uncertainties");
        tsr_hdf5_close(data);
    }
    free(stated[TSR_CANSAS_QDEV]);
    free(stated[TSR_CANSAS_IDEV]);
    tsr_hdf5_close(group);
    tsr_hdf5_input_close(&input);
    return status;
}
