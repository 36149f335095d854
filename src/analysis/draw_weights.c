/* Weights of draws from a table of chain, draw and weight, as reweight --output
 * writes it. A draw that is not in it weighs nothing; one that comes twice is
 * refused. */
#include "analysis/export.h"

#include "core/text.h"
#include "files/file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256 };

typedef struct {
    int chain;
    long draw;
    double weight;
} row;

typedef struct {
    const char *path;
    long line;
    size_t n, room;
    row *row;
    int n_chain;
    long n_draw;
} table;

static tsr_status bad(const table *t, const char *what, tsr_err *err)
{
    return tsr_fail(err, TSR_E_DATA, "'%s', line %ld: %s", t->path, t->line,
                    what);
}

static tsr_status add_row(table *t, const char *text, tsr_err *err)
{
    char *end;
    row r;
    const long chain = strtol(text, &end, 10);
    int is_good = end != text && *end == ',' && chain >= 0 && chain < INT_MAX;
    const char *second = end + 1;
    r.chain = (int)chain;
    r.draw = is_good ? strtol(second, &end, 10) : -1;
    is_good &= end != second && *end == ',' && r.draw >= 0 && r.draw < INT_MAX;
    const char *third = end + 1;
    r.weight = is_good ? strtod(third, &end) : -1.0;
    if (!is_good || end == third || !isfinite(r.weight) || r.weight < 0.0 ||
        strchr(",\r\n", *end) == NULL)
        return bad(t, "expected chain, draw and a weight that is not below 0",
                   err);
    if (t->n == t->room) {
        const size_t room = 2 * t->room + 1024;
        row *more = realloc(t->row, room * sizeof *more);
        if (more == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu weights",
                            room);
        t->row = more;
        t->room = room;
    }
    t->row[t->n++] = r;
    t->n_chain = r.chain >= t->n_chain ? r.chain + 1 : t->n_chain;
    t->n_draw = r.draw >= t->n_draw ? r.draw + 1 : t->n_draw;
    return TSR_OK;
}

static tsr_status read_rows(table *t, FILE *file, tsr_err *err)
{
    char text[LINE], shown[TSR_EXCERPT_SIZE];
    while (fgets(text, sizeof text, file) != NULL) {
        t->line++;
        if (t->line > 1) {
            TSR_TRY(add_row(t, text, err));
        } else if (strncmp(text, "chain,draw,weight", 17) != 0) {
            text[strcspn(text, "\r\n")] = '\0';
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' begins with '%s', not with chain,draw,weight "
                            "as what tessera reweight --output writes",
                            t->path, tsr_text_excerpt(text, shown));
        }
    }
    if (ferror(file))
        return tsr_fail(err, TSR_E_IO, "cannot read '%s'", t->path);
    return TSR_OK;
}

static tsr_status fill(const table *t, tsr_draw_weights *out, tsr_err *err)
{
    /* a table far sparser than this is of something else */
    const double most = 100.0 * ((double)t->n + 1e4);
    double sum = 0.0;
    if ((double)t->n_chain * (double)t->n_draw > most)
        return tsr_fail(err, TSR_E_DATA, "'%s' has %zu draws of %d x %ld",
                        t->path, t->n, t->n_chain, t->n_draw);
    const size_t n = (size_t)t->n_chain * (size_t)t->n_draw;
    *out = (tsr_draw_weights){t->n_chain, t->n_draw,
                              malloc((n + 1) * sizeof(double))};
    if (out->weight == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu weights", n);
    for (size_t i = 0; i < n; i++)
        out->weight[i] = -1.0;
    for (size_t i = 0; i < t->n; i++) {
        const row *r = &t->row[i];
        double *w = &out->weight[(size_t)r->chain * (size_t)t->n_draw +
                                 (size_t)r->draw];
        if (*w >= 0.0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' has chain %d, draw %ld twice", t->path,
                            r->chain, r->draw);
        *w = r->weight;
        sum += r->weight;
    }
    if (!(sum > 0.0) || !isfinite(sum))
        return tsr_fail(err, TSR_E_DATA, "'%s': the weights have the sum %g",
                        t->path, sum);
    for (size_t i = 0; i < n; i++)
        out->weight[i] = fmax(out->weight[i], 0.0) / sum;
    return TSR_OK;
}

tsr_status tsr_draw_weights_read(const char *path, tsr_draw_weights *out,
                                 tsr_err *err)
{
    table t = {.path = path};
    TSR_TRY(tsr_file_expect(path, err));
    FILE *file = fopen(path, "r");
    *out = (tsr_draw_weights){.weight = NULL};
    if (file == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    tsr_status status = read_rows(&t, file, err);
    fclose(file);
    TSR_THEN(status, fill(&t, out, err));
    if (status != TSR_OK)
        tsr_draw_weights_clear(out);
    free(t.row);
    return status;
}

void tsr_draw_weights_clear(tsr_draw_weights *weights)
{
    free(weights->weight);
    *weights = (tsr_draw_weights){.weight = NULL};
}

double tsr_draw_weights_at(const tsr_draw_weights *weights, int chain,
                           long draw)
{
    if (chain >= weights->n_chain || draw >= weights->n_draw)
        return 0.0;
    return weights
        ->weight[(size_t)chain * (size_t)weights->n_draw + (size_t)draw];
}

int tsr_weighted_pick(int n, const double *weight, long count, int *pick)
{
    double sum = 0.0, before = 0.0;
    int at = 0, last = 0;
    for (int i = 0; i < n; i++)
        if (weight[i] > 0.0) {
            sum += weight[i];
            last = i;
        }
    if (!(sum > 0.0))
        return 0;
    for (long k = 0; k < count; k++) {
        const double want = sum * ((double)k + 0.5) / (double)count;
        while (at < last && before + weight[at] < want)
            before += weight[at++];
        pick[k] = at;
    }
    return 1;
}
