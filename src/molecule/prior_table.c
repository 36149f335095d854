/* Selects the trained density of a residue, and reads the file of densities,
 * data/prior.dat. The file is a table (table_file.h) with sections for
 * torsions, side chains, bond angles and contacts. All numbers are checked,
 * because the table may be a user's own. */
#include "molecule/prior_table.h"

#include "core/vec3.h"
#include "molecule/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const tsr_rama_name[TSR_N_RAMA] = {
    "general", "Ile/Val", "Gly", "pre-Pro", "trans-Pro", "cis-Pro"};

tsr_rama_class tsr_rama_class_of(tsr_amino amino, int next_is_pro,
                                 double omega_rad)
{
    if (amino == TSR_GLY)
        return TSR_RAMA_GLY;
    if (amino == TSR_PRO) /* a comparison with NaN is false */
        return fabs(remainder(omega_rad, 2.0 * TSR_PI)) < 0.5 * TSR_PI
                   ? TSR_RAMA_CIS_PRO
                   : TSR_RAMA_TRANS_PRO;
    if (next_is_pro)
        return TSR_RAMA_PRE_PRO;
    return amino == TSR_ILE || amino == TSR_VAL ? TSR_RAMA_ILE_VAL
                                                : TSR_RAMA_GENERAL;
}

void tsr_prior_table_side(const tsr_prior_table *table, tsr_amino amino,
                          double side[3])
{
    const tsr_side_mixture *mixture = &table->side[amino];
    const tsr_side_gaussian *heaviest = &mixture->part[0];
    for (int i = 1; i < mixture->n; i++)
        if (mixture->part[i].weight > heaviest->weight)
            heaviest = &mixture->part[i];
    for (int d = 0; d < 3; d++)
        side[d] = mixture->n > 0 ? heaviest->mean[d] : 0.0;
}

void tsr_prior_table_free(tsr_prior_table *table)
{
    if (table == NULL)
        return;
    free(table->source);
    free(table);
}

/* ---- reading the file ---- */

const char tsr_prior_table_format[] = "tessera prior 2";

/* The upper triangle of a covariance, in the order of the file. */
static const int cov_row[6] = {0, 1, 2, 0, 0, 1};
static const int cov_col[6] = {0, 1, 2, 1, 2, 2};

/* Reads a row that begins with its number. */
static tsr_status read_row(tsr_table_reader *r, int number, int n, double *v,
                           tsr_err *err)
{
    TSR_TRY(tsr_table_next(r, err));
    if (r->type != TSR_LINE_ROW)
        return tsr_table_fail(r, err, "row %d is missing", number);
    char *text = r->text;
    double first;
    TSR_TRY(tsr_table_numbers(r, &text, 1, &first, 0, "row", err));
    if (first != (double)number)
        return tsr_table_fail(r, err, "expected row %d, found %g", number,
                              first);
    return tsr_table_numbers(r, &text, n, v, 1, "row", err);
}

/* Reads "<key> <name> <count> <n>" of a mixture with at most `most`
 * components. */
static tsr_status read_mixture_key(tsr_table_reader *r, const char *key,
                                   const char *name, int most, long *count,
                                   int *n, tsr_err *err)
{
    char *text;
    double v[2];
    TSR_TRY(tsr_table_key(r, key, &text, err));
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || text[length] != ' ')
        return tsr_table_fail(r, err, "expected '#: %s %s ...'", key, name);
    text += length;
    TSR_TRY(tsr_table_numbers(r, &text, 2, v, 1, name, err));
    if (v[0] < 0.0 || v[0] != floor(v[0]) || v[0] > 1e15)
        return tsr_table_fail(r, err, "%s: a count of %g", name, v[0]);
    if (v[1] < 0.0 || v[1] != floor(v[1]) || v[1] > most)
        return tsr_table_fail(r, err, "%s: %g parts, expected 0 to %d", name,
                              v[1], most);
    *count = (long)v[0];
    *n = (int)v[1];
    return TSR_OK;
}

/* Weights are rounded in the file. Their sum must be 1 within that rounding. */
static tsr_status check_weights(const tsr_table_reader *r, const char *name,
                                double sum, tsr_err *err)
{
    if (!(fabs(sum - 1.0) <= 1e-6))
        return tsr_table_fail(
            r, err, "%s: the sum of the weights is %.9g, not 1", name, sum);
    return TSR_OK;
}

static tsr_status read_torsion(tsr_table_reader *r, tsr_prior_table *table,
                               int c, tsr_err *err)
{
    const char *name = tsr_rama_name[c];
    tsr_torsion_mixture *m = &table->torsion[c];
    double sum = 0.0, v[6];
    TSR_TRY(read_mixture_key(r, "torsion", name, TSR_MAX_VON_MISES, &m->count,
                             &m->n, err));
    if (m->n < 1)
        return tsr_table_fail(r, err, "%s: no component", name);
    for (int i = 0; i < m->n; i++) {
        TSR_TRY(read_row(r, i, 6, v, err));
        m->part[i] = (tsr_von_mises){v[0], v[1], v[2], v[3], v[4], v[5]};
        sum += v[0];
        if (v[0] < 0.0)
            return tsr_table_fail(r, err, "%s: a weight below 0", name);
        if (v[3] < 0.0 || v[4] < 0.0 || v[3] > 1e6 || v[4] > 1e6)
            return tsr_table_fail(r, err, "%s: k outside 0 to 1e6", name);
        if (v[5] * v[5] > v[3] * v[4])
            return tsr_table_fail(r, err, "%s: lambda^2 > k_phi k_psi", name);
    }
    TSR_TRY(check_weights(r, name, sum, err));
    for (int i = 0; i < m->n; i++)
        m->part[i].weight /= sum;
    return TSR_OK;
}

/* Returns 1 if the matrix is positive definite, by its leading minors. */
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
    TSR_TRY(read_row(r, number, 10, v, err));
    g->weight = v[0];
    for (int d = 0; d < 3; d++)
        g->mean[d] = v[1 + d];
    for (int d = 0; d < 6; d++) {
        g->cov[cov_row[d]][cov_col[d]] = v[4 + d];
        g->cov[cov_col[d]][cov_row[d]] = v[4 + d];
    }
    if (v[0] < 0.0)
        return tsr_table_fail(r, err, "%s: a weight below 0", name);
    if (!is_covariance(g->cov))
        return tsr_table_fail(r, err, "%s: the covariance is not positive",
                              name);
    return TSR_OK;
}

static tsr_status read_side(tsr_table_reader *r, tsr_prior_table *table, int a,
                            tsr_err *err)
{
    const char *name = tsr_amino_table[a].three;
    tsr_side_mixture *m = &table->side[a];
    const int has = tsr_amino_has_side_chain((tsr_amino)a);
    double sum = 0.0;
    TSR_TRY(read_mixture_key(r, "side", name, TSR_MAX_SIDE_GAUSSIAN, &m->count,
                             &m->n, err));
    if ((m->n > 0) != has)
        return tsr_table_fail(r, err, "%s: %d Gaussians", name, m->n);
    for (int i = 0; i < m->n; i++) {
        TSR_TRY(read_gaussian(r, i, name, &m->part[i], err));
        sum += m->part[i].weight;
    }
    if (has)
        TSR_TRY(check_weights(r, name, sum, err));
    for (int i = 0; i < m->n; i++)
        m->part[i].weight /= sum;
    return TSR_OK;
}

static tsr_status read_angle(tsr_table_reader *r, tsr_prior_table *table, int a,
                             tsr_err *err)
{
    double v[3];
    TSR_TRY(read_row(r, a, 3, v, err));
    const char *name = tsr_amino_table[a].three;
    if (v[0] < 0.0 || v[0] != floor(v[0]) || v[0] > 1e15)
        return tsr_table_fail(r, err, "%s: a count of %g", name, v[0]);
    if (v[1] <= 0.0 || v[1] >= 3.14159 || v[2] <= 0.0)
        return tsr_table_fail(r, err,
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
    TSR_TRY(tsr_table_key(r, "contact", &text, err));
    if (strcmp(text, word) != 0)
        return tsr_table_fail(r, err, "expected '#: contact %s'", word);
    int n = tsr_body_n_type(model);
    for (int t = 0; t < n; t++) {
        double *row = table->contact[model][t];
        TSR_TRY(read_row(r, t, n, row, err));
        for (int u = 0; u < n; u++)
            if (row[u] <= 0.0)
                return tsr_table_fail(r, err, "distance %g: expected above 0",
                                      row[u]);
        for (int u = 0; u < t; u++)
            if (row[u] != table->contact[model][u][t])
                return tsr_table_fail(r, err,
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
        TSR_TRY(tsr_table_fail(r, err, "unexpected line after the last row"));
    return TSR_OK;
}

tsr_status tsr_prior_table_read(const char *path, tsr_prior_table **out,
                                tsr_err *err)
{
    *out = NULL;
    tsr_table_reader r;
    TSR_TRY(tsr_table_open(&r, path, tsr_prior_table_format, err));
    tsr_prior_table *table = calloc(1, sizeof *table);
    tsr_status s = tsr_allocated(table, err);
    TSR_THEN(s, read_all(&r, table, err));
    if (s == TSR_OK) {
        table->source = r.source;
        r.source = NULL;
    }
    tsr_table_close(&r);
    TSR_HAND_OVER(s, table, out, tsr_prior_table_free);
}
