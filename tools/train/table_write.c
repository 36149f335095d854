/* Writing the text files of data/ (molecule/table_file.h): a file is complete
 * or not there, because what is written lies beside until it is renamed. */
#include "train/table_write.h"

#include "files/file.h"

#include <stdio.h>
#include <string.h>

static void write_source(FILE *file, const char *source)
{
    while (source != NULL && *source != '\0') {
        int n = (int)strcspn(source, "\n");
        fprintf(file, "#%s%.*s\n", n > 0 ? " " : "", n, source);
        source += n + (source[n] == '\n');
    }
}

/* Begins the file with the format's line and the source; tsr_file_end completes
 * it. */
static tsr_status create(tsr_file_writer *writer, const char *path,
                         const char *format, const char *source, tsr_err *err)
{
    tsr_status s = tsr_file_begin(writer, path, err);
    if (s != TSR_OK)
        return s;
    fprintf(writer->out, "#: %s\n", format);
    write_source(writer->out, source);
    return TSR_OK;
}

/* ---- form factors ---- */

enum { MAX_VALUE = TSR_N_COMP + TSR_N_COMP_PAIR };

/* The values of one row: F of the components, then E of the pairs, but P where
 * there is one component. */
static int row_of(const tsr_form_factor_table *table, int t, int k,
                  double *value)
{
    int n = 0, row = t * table->n_q + k, block = table->n_type * table->n_q;
    for (int c = 0; c < table->n_comp; c++)
        value[n++] = table->amplitude[c * block + row];
    for (int p = 0; p < table->n_pair; p++)
        value[n++] = table->excess[p * block + row];
    if (table->n_comp == 1)
        value[1] += value[0] * value[0];
    return n;
}

static void write_types(const tsr_form_factor_table *table, FILE *file)
{
    if (table->n_comp == 1)
        fprintf(file,
                "# type, occurrences, mean square radius (Angstrom^2), name\n");
    else
        fprintf(file,
                "# a neighbour counts 1 below, 0 above, Angstrom\n"
                "#: neighbours %.9g %.9g\n"
                "# a body's hydration lies outside, by this times the way from "
                "its neighbours' middle\n"
                "#: carry %.9g\n"
                "# type, atoms and their mean radius (Angstrom), exposure: A, "
                "n0, w of\n# A / (1 + exp((neighbours - n0) / w)), name\n",
                table->exposure.near_ang, table->exposure.far_ang,
                table->exposure.carry);
    for (int t = 0; t < table->n_type; t++) {
        const tsr_exposure_type *e = &table->exposure.type[t];
        fprintf(file, "#: type %2d ", t);
        if (table->n_comp == 1)
            fprintf(file, "%7ld %12.9g", table->count[t], table->rg2[t]);
        else
            fprintf(file, "%9.6g %9.6g %10.7g %10.7g %10.7g", table->atoms[t],
                    table->radius[t], e->largest, e->middle, e->width);
        fprintf(file, "  %s\n", tsr_body_type_name(table->model, t));
    }
}

static void write_row(const tsr_form_factor_table *table, int t, int k,
                      FILE *file)
{
    double v[MAX_VALUE], q = k * table->dq_inv_ang;
    int n = row_of(table, t, k, v);
    if (table->n_comp == 1) {
        fprintf(file, "%2d %8.6g %16.9g %16.9g\n", t, q, v[0], v[1]);
        return;
    }
    fprintf(file, "%d %.6g", t, q);
    for (int c = 0; c < n; c++)
        fprintf(file, c < TSR_N_COMP ? " %.8g" : " %.6g", v[c]);
    fprintf(file, "\n");
}

tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err)
{
    tsr_file_writer w;
    int one = table->n_comp == 1;
    tsr_status s = create(&w, path, tsr_form_factor_format(table->n_comp),
                          table->source, err);
    if (s != TSR_OK)
        return s;
    fprintf(w.out, "#: bodies %s\n",
            table->model == TSR_BODIES_TWO ? "two" : "one");
    fprintf(w.out, "# points of q and their step, 1/Angstrom\n");
    fprintf(w.out, "#: grid %d %.17g\n", table->n_q, table->dq_inv_ang);
    write_types(table, w.out);
    fprintf(w.out, "%s",
            one ? "# type, q (1/Angstrom), F (e), P (e^2)\n"
                : "# type, q (1/Angstrom), F (e) of solute, displaced solvent, "
                  "hydration,\n# E (e^2) of 00 01 02 11 12 22\n");
    for (int t = 0; t < table->n_type; t++) {
        fprintf(w.out, "#\n# %s\n", tsr_body_type_name(table->model, t));
        for (int k = 0; k < table->n_q; k++)
            write_row(table, t, k, w.out);
    }
    return tsr_file_end(&w, TSR_OK, err);
}

/* ---- the prior ---- */

/* The upper triangle of a covariance, in the order of the file. */
static const int cov_row[6] = {0, 1, 2, 0, 0, 1};
static const int cov_col[6] = {0, 1, 2, 1, 2, 2};

static void write_contacts(FILE *file, const tsr_prior_table *table,
                           tsr_body_model model)
{
    int n = tsr_body_n_type(model);
    fprintf(file, "#: contact %s\n", model == TSR_BODIES_TWO ? "two" : "one");
    fprintf(file, "# type, contact distance to types 0 to %d (Angstrom)\n",
            n - 1);
    for (int t = 0; t < n; t++) {
        const double *row = table->contact[model][t];
        fprintf(file, "# %s\n%2d", tsr_body_type_name(model, t), t);
        for (int u = 0; u < n; u++)
            fprintf(file, " %.9g", row[u]);
        fputc('\n', file);
    }
}

static void write_torsions(FILE *file, const tsr_prior_table *table)
{
    for (int c = 0; c < TSR_N_RAMA; c++) {
        const tsr_torsion_mixture *m = &table->torsion[c];
        fprintf(file, "#: torsion %s %ld %d\n", tsr_rama_name[c], m->count,
                m->n);
        if (c == 0) /* not before: comments ahead of a key are the source */
            fprintf(file, "# class, residues, components; rows: component, "
                          "weight, phi, psi (rad), k_phi, k_psi, lambda\n");
        for (int i = 0; i < m->n; i++) {
            const tsr_von_mises *p = &m->part[i];
            fprintf(file, "%2d %.9g %.9g %.9g %.9g %.9g %.9g\n", i, p->weight,
                    p->phi, p->psi, p->k_phi, p->k_psi, p->lambda);
        }
    }
}

static void write_sides(FILE *file, const tsr_prior_table *table)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const tsr_side_mixture *m = &table->side[a];
        fprintf(file, "#: side %s %ld %d\n", tsr_amino_table[a].three, m->count,
                m->n);
        if (a == 0)
            fprintf(file, "# amino acid, side chains, Gaussians; rows: "
                          "Gaussian, weight, mean x y z (Angstrom),\n"
                          "# covariance xx yy zz xy xz yz (Angstrom^2)\n");
        for (int i = 0; i < m->n; i++) {
            const tsr_side_gaussian *g = &m->part[i];
            fprintf(file, "%2d %.9g", i, g->weight);
            for (int d = 0; d < 3; d++)
                fprintf(file, " %.9g", g->mean[d]);
            for (int d = 0; d < 6; d++)
                fprintf(file, " %.9g", g->cov[cov_row[d]][cov_col[d]]);
            fputc('\n', file);
        }
    }
}

static void write_angles(FILE *file, const tsr_prior_table *table)
{
    fprintf(file, "#: angle\n# amino acid, residues, mean and standard "
                  "deviation of N-CA-C (rad)\n");
    for (int a = 0; a < TSR_N_AMINO; a++)
        fprintf(file, "# %s\n%2d %6ld %.9g %.9g\n", tsr_amino_table[a].three, a,
                table->angle[a].count, table->angle[a].mean,
                table->angle[a].sd);
}

tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err)
{
    tsr_file_writer w;
    TSR_TRY(create(&w, path, tsr_prior_table_format, table->source, err));
    write_torsions(w.out, table);
    write_sides(w.out, table);
    write_angles(w.out, table);
    write_contacts(w.out, table, TSR_BODIES_TWO);
    write_contacts(w.out, table, TSR_BODIES_ONE);
    return tsr_file_end(&w, TSR_OK, err);
}
