/* The file of the prior, data/prior.dat: a table of molecule/table_file.h with
 * a section for each of torsions, side chains, bond angles and contacts. What
 * is read is checked as far as a density needs it, because the file may be the
 * user's own. */
#include "molecule/prior_table.h"
#include "molecule/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char tsr_prior_table_format[] = "tessera prior 2";

/* The upper triangle of a covariance, in the order of the file. */
static const int cov_row[6] = {0, 1, 2, 0, 0, 1};
static const int cov_col[6] = {0, 1, 2, 1, 2, 2};

/* A row that begins with its number. */
static tsr_status read_row(tsr_table_reader *r, int number, int n, double *v,
                           tsr_err *err)
{
    TSR_TRY(tsr_table_next(r, err));
    if (r->type != TSR_LINE_ROW)
        return tsr_table_bad(r, err, "row %d is missing", number);
    char *text = r->text;
    double first;
    TSR_TRY(tsr_table_numbers(r, &text, 1, &first, 0, "row", err));
    if (first != (double)number)
        return tsr_table_bad(r, err, "expected row %d, found %g", number,
                             first);
    return tsr_table_numbers(r, &text, n, v, 1, "row", err);
}

/* "<key> <name> <count> <n>" of a mixture of at most `most` parts. */
static tsr_status read_mixture_key(tsr_table_reader *r, const char *key,
                                   const char *name, int most, long *count,
                                   int *n, tsr_err *err)
{
    char *text;
    tsr_status s = tsr_table_key(r, key, &text, err);
    if (s != TSR_OK)
        return s;
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || text[length] != ' ')
        return tsr_table_bad(r, err, "expected '#: %s %s ...'", key, name);
    text += length;
    double v[2];
    s = tsr_table_numbers(r, &text, 2, v, 1, name, err);
    if (s != TSR_OK)
        return s;
    if (v[0] < 0.0 || v[0] != floor(v[0]) || v[0] > 1e15)
        return tsr_table_bad(r, err, "%s: a count of %g", name, v[0]);
    if (v[1] < 0.0 || v[1] != floor(v[1]) || v[1] > most)
        return tsr_table_bad(r, err, "%s: %g parts, expected 0 to %d", name,
                             v[1], most);
    *count = (long)v[0];
    *n = (int)v[1];
    return TSR_OK;
}

/* Weights are as printed; what rounding took from their sum comes back. */
static tsr_status check_weights(const tsr_table_reader *r, const char *name,
                                double sum, tsr_err *err)
{
    if (!(fabs(sum - 1.0) <= 1e-6))
        return tsr_table_bad(r, err, "%s: the weights add up to %.9g, not 1",
                             name, sum);
    return TSR_OK;
}

static tsr_status read_torsion(tsr_table_reader *r, tsr_prior_table *table,
                               int c, tsr_err *err)
{
    const char *name = tsr_rama_name[c];
    tsr_torsion_mixture *m = &table->torsion[c];
    int n = 0;
    tsr_status s = read_mixture_key(r, "torsion", name, TSR_MAX_VON_MISES,
                                    &m->count, &n, err);
    if (s == TSR_OK && n < 1)
        s = tsr_table_bad(r, err, "%s: no component", name);
    double sum = 0.0;
    for (int i = 0; i < n && s == TSR_OK; i++) {
        double v[6];
        if ((s = read_row(r, i, 6, v, err)) != TSR_OK)
            break;
        m->part[i] = (tsr_von_mises){v[0], v[1], v[2], v[3], v[4], v[5]};
        sum += v[0];
        if (v[0] < 0.0)
            s = tsr_table_bad(r, err, "%s: a weight below 0", name);
        else if (v[3] < 0.0 || v[4] < 0.0 || v[3] > 1e6 || v[4] > 1e6)
            s = tsr_table_bad(r, err, "%s: k outside 0 to 1e6", name);
        else if (v[5] * v[5] > v[3] * v[4])
            s = tsr_table_bad(r, err, "%s: lambda^2 > k_phi k_psi", name);
    }
    TSR_THEN(s, check_weights(r, name, sum, err));
    for (int i = 0; i < n && s == TSR_OK; i++)
        m->part[i].weight /= sum;
    m->n = s == TSR_OK ? n : 0;
    return s;
}

/* Positive definite, by the leading minors. */
static int is_covariance(double c[3][3])
{
    double m2 = c[0][0] * c[1][1] - c[0][1] * c[1][0];
    double m3 = c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) -
                c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
                c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]);
    return c[0][0] > 0.0 && m2 > 0.0 && m3 > 0.0;
}

static tsr_status read_gaussian(tsr_table_reader *r, int number,
                                const char *name, tsr_side_gaussian *g,
                                tsr_err *err)
{
    double v[10];
    tsr_status s = read_row(r, number, 10, v, err);
    if (s != TSR_OK)
        return s;
    g->weight = v[0];
    for (int d = 0; d < 3; d++)
        g->mean[d] = v[1 + d];
    for (int d = 0; d < 6; d++) {
        g->cov[cov_row[d]][cov_col[d]] = v[4 + d];
        g->cov[cov_col[d]][cov_row[d]] = v[4 + d];
    }
    if (v[0] < 0.0)
        return tsr_table_bad(r, err, "%s: a weight below 0", name);
    if (!is_covariance(g->cov))
        return tsr_table_bad(r, err, "%s: the covariance is not positive",
                             name);
    return TSR_OK;
}

static tsr_status read_side(tsr_table_reader *r, tsr_prior_table *table, int a,
                            tsr_err *err)
{
    const char *name = tsr_amino_table[a].three;
    tsr_side_mixture *m = &table->side[a];
    int n = 0, has = tsr_amino_has_side_chain((tsr_amino)a);
    tsr_status s = read_mixture_key(r, "side", name, TSR_MAX_SIDE_GAUSSIAN,
                                    &m->count, &n, err);
    if (s == TSR_OK && (n > 0) != has)
        s = tsr_table_bad(r, err, "%s: %d Gaussians", name, n);
    double sum = 0.0;
    for (int i = 0; i < n && s == TSR_OK; i++) {
        s = read_gaussian(r, i, name, &m->part[i], err);
        sum += m->part[i].weight;
    }
    if (s == TSR_OK && has)
        s = check_weights(r, name, sum, err);
    for (int i = 0; i < n && s == TSR_OK; i++)
        m->part[i].weight /= sum;
    m->n = s == TSR_OK ? n : 0;
    return s;
}

static tsr_status read_angle(tsr_table_reader *r, tsr_prior_table *table, int a,
                             tsr_err *err)
{
    double v[3];
    tsr_status s = read_row(r, a, 3, v, err);
    if (s != TSR_OK)
        return s;
    const char *name = tsr_amino_table[a].three;
    if (v[0] < 0.0 || v[0] != floor(v[0]) || v[0] > 1e15)
        return tsr_table_bad(r, err, "%s: a count of %g", name, v[0]);
    if (v[1] <= 0.0 || v[1] >= 3.14159 || v[2] <= 0.0)
        return tsr_table_bad(r, err,
                             "%s: expected an angle between 0 and 3.14 rad "
                             "and a deviation above 0",
                             name);
    table->angle[a] = (tsr_angle_gaussian){(long)v[0], v[1], v[2]};
    return TSR_OK;
}

static tsr_status read_contacts(tsr_table_reader *r, tsr_prior_table *table,
                                tsr_body_model model, tsr_err *err)
{
    const char *word = model == TSR_BODIES_TWO ? "two" : "one";
    char *text;
    tsr_status s = tsr_table_key(r, "contact", &text, err);
    if (s != TSR_OK)
        return s;
    if (strcmp(text, word) != 0)
        return tsr_table_bad(r, err, "expected '#: contact %s'", word);
    int n = tsr_body_n_type(model);
    for (int t = 0; t < n; t++) {
        double *row = table->contact[model][t];
        if ((s = read_row(r, t, n, row, err)) != TSR_OK)
            return s;
        for (int u = 0; u < n; u++)
            if (row[u] <= 0.0)
                return tsr_table_bad(r, err, "distance %g: expected above 0",
                                     row[u]);
        for (int u = 0; u < t; u++)
            if (row[u] != table->contact[model][u][t])
                return tsr_table_bad(r, err,
                                     "types %d and %d: the table is not "
                                     "symmetric",
                                     t, u);
    }
    return TSR_OK;
}

static tsr_status read_all(tsr_table_reader *r, tsr_prior_table *table,
                           tsr_err *err)
{
    char *text;
    for (int c = 0; c < TSR_N_RAMA; c++)
        TSR_TRY(read_torsion(r, table, c, err));
    for (int a = 0; a < TSR_N_AMINO; a++)
        TSR_TRY(read_side(r, table, a, err));
    TSR_TRY(tsr_table_key(r, "angle", &text, err));
    for (int a = 0; a < TSR_N_AMINO; a++)
        TSR_TRY(read_angle(r, table, a, err));
    TSR_TRY(read_contacts(r, table, TSR_BODIES_TWO, err));
    TSR_TRY(read_contacts(r, table, TSR_BODIES_ONE, err));
    TSR_TRY(tsr_table_next(r, err));
    if (r->type != TSR_LINE_END)
        TSR_TRY(tsr_table_bad(r, err, "unexpected after the last row"));
    return TSR_OK;
}

tsr_status tsr_prior_table_read(const char *path, tsr_prior_table **out,
                                tsr_err *err)
{
    *out = NULL;
    tsr_table_reader r;
    tsr_status s = tsr_table_open(&r, path, tsr_prior_table_format, err);
    if (s != TSR_OK)
        return s;
    tsr_prior_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    else
        s = read_all(&r, table, err);
    if (s == TSR_OK) {
        table->source = r.source;
        r.source = NULL;
        *out = table;
    } else {
        tsr_prior_table_free(table);
    }
    tsr_table_close(&r);
    return s;
}
