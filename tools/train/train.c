/* tessera train: lists the structure files, holds some out, trains a table and
 * writes it. The heading of a table has all that is needed to make the table
 * again, and to choose structures on which it may be tested. */
#include "train/train.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/text.h"
#include "files/file.h"
#include "molecule/prior_table.h"
#include "scattering/form_factor.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- residues ---- */

int tsr_residue_atoms_find(const tsr_structure *structure,
                           const tsr_residue_record *residue,
                           tsr_residue_atoms *out)
{
    memset(out, 0, sizeof *out);
    int amino = tsr_amino_by_three(residue->name);
    if (amino < 0)
        return -1;
    out->amino = (tsr_amino)amino;
    const tsr_amino_info *info = &tsr_amino_table[amino];
    for (int i = 0; i < info->n_atom; i++) {
        const tsr_atom *atom =
            tsr_residue_atom(structure, residue, info->atom[i].name);
        /* The element must be that of the table: Se of a renamed MSE is not S.
         */
        if (atom != NULL && atom->z == info->atom[i].z)
            out->xyz[i] = atom->xyz;
        else
            out->n_missing++;
    }
    return 0;
}

int tsr_body_atoms(tsr_body_model model, tsr_amino amino, int body,
                   int index[TSR_MAX_RESIDUE_ATOM])
{
    const tsr_amino_info *info = &tsr_amino_table[amino];
    int n = 0;
    for (int i = 0; i < info->n_atom; i++)
        if (tsr_body_of_atom(model, amino, info->atom[i].name) == body)
            index[n++] = i;
    return n;
}

int tsr_body_centre(tsr_body_model model, const tsr_residue_atoms *atoms,
                    int body, double centre[3])
{
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM];
    int n = tsr_body_atoms(model, atoms->amino, body, index);
    if (n == 0 || atoms->xyz[index[0]] == NULL)
        return -1;
    /* Relative to the first atom, so that a body of one atom has its centre
     * exactly there. */
    const double *origin = atoms->xyz[index[0]];
    double sum[3] = {0.0, 0.0, 0.0}, total = 0.0;
    for (int k = 0; k < n; k++) {
        const double *x = atoms->xyz[index[k]];
        if (x == NULL)
            return -1;
        double mass = tsr_atom_mass(info->atom[index[k]].z);
        for (int d = 0; d < 3; d++)
            sum[d] += mass * (x[d] - origin[d]);
        total += mass;
    }
    for (int d = 0; d < 3; d++)
        centre[d] = origin[d] + sum[d] / total;
    return 0;
}

int tsr_side_chain_centre(const tsr_residue_atoms *atoms, double centre[3])
{
    if (!tsr_amino_has_side_chain(atoms->amino))
        return -1;
    return tsr_body_centre(TSR_BODIES_TWO, atoms, 1, centre);
}

/* ---- lists of files ---- */

static int ends_with(const char *name, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length > n && strncmp(name + length - n, ending, n) == 0;
}

static int is_structure(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name);
    if (name[0] == '.')
        return 0;
    if (ends_with(name, n, ".gz"))
        n -= 3;
    return ends_with(name, n, ".pdb") || ends_with(name, n, ".ent") ||
           ends_with(name, n, ".cif");
}

static void append_path(tsr_path_list *list, const char *folder,
                        const char *name)
{
    const size_t length = strlen(folder);
    const int has_slash = length == 0 || folder[length - 1] == '/';
    char **grown = tsr_pool_resize(&list->pool, list->path, (size_t)list->n + 1,
                                   sizeof *grown);
    if (grown == NULL)
        return;
    list->path = grown;
    list->path[list->n++] = tsr_pool_format(&list->pool, "%s%s%s", folder,
                                            has_slash ? "" : "/", name);
}

static tsr_status collect_folder(tsr_path_list *list, const char *folder,
                                 tsr_err *err)
{
    struct dirent **entry;
    const int n = scandir(folder, &entry, is_structure, NULL);
    if (n < 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open folder '%s': %s",
                        folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        append_path(list, folder, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return n > 0 ? TSR_OK
                 : tsr_fail(err, TSR_E_NOINPUT,
                            "no *.pdb, *.ent or *.cif (or .gz of these) in "
                            "'%s'",
                            folder);
}

static int compare_names(const void *a, const void *b)
{
    const char *p = *(char *const *)a, *q = *(char *const *)b;
    int training = strcmp(tsr_text_file_name(p), tsr_text_file_name(q));
    return training != 0 ? training : strcmp(p, q);
}

tsr_status tsr_path_list_collect(tsr_path_list *list, int n_input,
                                 const char *const *input, tsr_err *err)
{
    *list = (tsr_path_list){0};
    tsr_status s = TSR_OK;
    for (int i = 0; i < n_input && s == TSR_OK; i++) {
        struct stat info;
        if (stat(input[i], &info) != 0)
            s = tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", input[i],
                         strerror(errno));
        else if (S_ISDIR(info.st_mode))
            s = collect_folder(list, input[i], err);
        else
            append_path(list, "", input[i]);
    }
    TSR_THEN(s, tsr_pool_check(&list->pool, err));
    if (s != TSR_OK)
        tsr_pool_clear(&list->pool);
    else if (list->n > 1)
        qsort(list->path, (size_t)list->n, sizeof *list->path, compare_names);
    return s;
}

void tsr_path_list_split(const tsr_path_list *list, int every, int *n_train,
                         const char **train, int *n_test, const char **test)
{
    *n_train = *n_test = 0;
    for (int i = 0; i < list->n; i++)
        if (every > 0 && i % every == every - 1)
            test[(*n_test)++] = list->path[i];
        else
            train[(*n_train)++] = list->path[i];
}

/* Adds the title and the command before the heading, and the names of held-out
 * files after it. */
static tsr_status complete_heading(char **source, const char *title,
                                   const char *command, int n_test,
                                   const char *const *test, tsr_err *err)
{
    char *names = tsr_structure_names("held out", n_test, test);
    tsr_status s = tsr_allocated(names, err);
    TSR_THEN(s, tsr_table_set_heading(
                    source, err, "%s\ncommand: %s\n%s%s%s", title, command,
                    *source, n_test > 0 ? "\n" : "", n_test > 0 ? names : ""));
    free(names);
    return s;
}

/* The files for training and those held out. */
typedef struct {
    tsr_path_list list;
    const char **train,
        **test; /* [n_train], [n_test], borrowed from the list */
    int n_train, n_test;
} split;

static tsr_status split_make(split *s, int n_input, const char *const *input,
                             int every, tsr_err *err)
{
    *s = (split){0};
    TSR_TRY(tsr_path_list_collect(&s->list, n_input, input, err));
    tsr_pool_array(&s->list.pool, s->train, s->list.n);
    tsr_pool_array(&s->list.pool, s->test, s->list.n);
    TSR_TRY(tsr_pool_check(&s->list.pool, err));
    tsr_path_list_split(&s->list, every, &s->n_train, s->train, &s->n_test,
                        s->test);
    return TSR_OK;
}

tsr_status tsr_train_form_factors(int n_input, const char *const *input,
                                  const tsr_form_factor_training *training,
                                  tsr_log *log, tsr_err *err)
{
    split files;
    tsr_form_factor_table *table = NULL;
    tsr_status s = split_make(&files, n_input, input, training->hold_out, err);
    if (s == TSR_OK) {
        table = tsr_form_factor_new(training->model, training->n_comp,
                                    TSR_TRAIN_N_Q, TSR_TRAIN_DQ);
        s = tsr_allocated(table, err);
    }
    TSR_THEN(s, tsr_form_factor_train(table, files.n_train, files.train,
                                      training->n_thread, log, err));
    TSR_THEN(s, tsr_form_factor_refine(table, files.n_train, files.train,
                                       training->n_thread, log, err));
    TSR_THEN(
        s, complete_heading(&table->source,
                            training->n_comp == 1
                                ? "Form factors of bodies: F the mean "
                                  "amplitude, P the mean self intensity;\nsee "
                                  "README.md beside this file."
                                : "Form factors of bodies in three components: "
                                  "solute, displaced solvent,\nhydration; see "
                                  "README.md beside this file.",
                            training->command, files.n_test, files.test, err));
    TSR_THEN(s, tsr_form_factor_write(table, training->output, err));
    tsr_form_factor_free(table);
    tsr_pool_clear(&files.list.pool);
    return s;
}

tsr_status tsr_train_priors(int n_input, const char *const *input, int n_thread,
                            const char *command, const char *output,
                            tsr_log *log, tsr_err *err)
{
    tsr_path_list list;
    tsr_prior_table *table = NULL;
    TSR_TRY(tsr_path_list_collect(&list, n_input, input, err));
    tsr_status s = tsr_prior_table_train(list.n, (const char *const *)list.path,
                                         n_thread, log, &table, err);
    TSR_THEN(s,
             complete_heading(&table->source,
                              "Backbone torsions, side-chain centres, bond "
                              "angles N-CA-C and contact\ndistances of bodies; "
                              "see README.md beside this file.",
                              command, 0, NULL, err));
    TSR_THEN(s, tsr_prior_table_write(table, output, err));
    tsr_prior_table_free(table);
    tsr_pool_clear(&list.pool);
    return s;
}

/* ---- folds over structure files ----
 *
 * Threads process files in any order, in blocks of BLOCK files, and the parts
 * of a block are added in the order of the files. So rounding, and with it
 * every table, does not depend on the number of threads, and memory is that of
 * a block. */

enum { BLOCK = 32 }; /* files in a block */

/* A block of files, processed by the threads. */
typedef struct {
    const tsr_structure_fold_type *type;
    const char *const *path;
    char *part;         /* [BLOCK][part_size] */
    tsr_status *status; /* [BLOCK] */
    tsr_err *error;     /* [BLOCK] */
} fold_block;

static void compute_part(void *context, int i, int thread)
{
    const fold_block *b = context;
    tsr_structure *structure = NULL;
    (void)thread;
    b->status[i] = tsr_structure_read(b->path[i], &structure, &b->error[i]);
    TSR_THEN(b->status[i],
             b->type->visit(structure, b->type->context,
                            b->part + (size_t)i * b->type->part_size,
                            &b->error[i]));
    tsr_structure_free(structure);
}

tsr_status tsr_structure_fold(const tsr_structure_fold_type *type, int n_path,
                              const char *const *path, int n_thread,
                              void *total, tsr_log *log, tsr_err *err)
{
    fold_block b = {.type = type};
    tsr_pool pool = {0};
    b.part = tsr_pool_new(&pool, BLOCK, type->part_size);
    tsr_pool_array(&pool, b.status, BLOCK);
    tsr_pool_array(&pool, b.error, BLOCK);
    tsr_status s = tsr_pool_check(&pool, err);
    for (int first = 0; first < n_path && s == TSR_OK; first += BLOCK) {
        const int n = n_path - first < BLOCK ? n_path - first : BLOCK;
        char text[64];
        b.path = path + first;
        memset(b.part, 0, BLOCK * type->part_size);
        tsr_parallel_run(n, n_thread > 0 ? n_thread : tsr_parallel_processors(),
                         compute_part, &b);
        for (int i = 0; i < n; i++) {
            char *part = b.part + (size_t)i * type->part_size;
            if (s == TSR_OK && b.status[i] != TSR_OK)
                s = tsr_fail(err, b.status[i], "%s", b.error[i].message);
            if (s == TSR_OK)
                type->add(type->context, total, part);
            if (type->clear != NULL)
                type->clear(part);
        }
        snprintf(text, sizeof text, "%d of %d structures", first + n, n_path);
        if (tsr_log_is_terminal(log))
            tsr_log_progress(log, text);
    }
    if (tsr_log_is_terminal(log))
        tsr_log_progress(log, "");
    tsr_pool_clear(&pool);
    return s;
}

/* Length of a base name without endings: of "1abc" in "1abc.pdb.gz". */
static size_t stem_length(const char *base)
{
    static const char *const ending[] = {".gz", ".pdb", ".ent", ".cif"};
    size_t n = strlen(base);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        size_t m = strlen(ending[i]);
        if (n > m && strncmp(base + n - m, ending[i], m) == 0)
            n -= m;
    }
    return n;
}

char *tsr_structure_names(const char *title, int n_path,
                          const char *const *path)
{
    enum { WIDTH = 76, INDENT = 2 };
    tsr_words words;
    size_t column = 0;
    tsr_words_begin(&words);
    tsr_words_add(&words, "%s: %d\n", title, n_path);
    for (int i = 0; i < n_path; i++) {
        const char *base = tsr_text_file_name(path[i]);
        size_t n = stem_length(base);
        if (column > 0 && column + 1 + n > WIDTH) {
            tsr_words_add(&words, "\n");
            column = 0;
        }
        size_t space = column == 0 ? INDENT : 1;
        tsr_words_add(&words, "%*s%.*s", (int)space, "", (int)n, base);
        column += space + n;
    }
    return tsr_words_end(&words);
}

char *tsr_structure_source(int n_path, const char *const *path, long n_used,
                           long n_skipped)
{
    char *names = tsr_structure_names("structures", n_path, path);
    char *text =
        names == NULL
            ? NULL
            : tsr_text_format("program: tessera %s\nresidues: %ld used, "
                              "%ld left out (atoms missing)\n%s",
                              TSR_VERSION, n_used, n_skipped, names);
    free(names);
    return text;
}

int tsr_structure_is_listed(const char *source, const char *title,
                            const char *path)
{
    const char *base = tsr_text_file_name(path);
    size_t n = stem_length(base), m = strlen(title);
    int inside = 0;
    for (const char *line = source; line != NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        if (*line != ' ')
            inside = strncmp(line, title, m) == 0 && line[m] == ':';
        for (const char *word = line; inside && *line == ' ' && word < end;) {
            word += strspn(word, " ");
            size_t length = strcspn(word, " \n");
            if (length == n && strncmp(word, base, n) == 0)
                return 1;
            word += length;
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return 0;
}

/* ---- writing the files of data/ ----
 *
 * Format: molecule/table_file.h. A temporary file is renamed when complete. */

static void write_source(FILE *file, const char *source)
{
    while (source != NULL && *source != '\0') {
        int n = (int)strcspn(source, "\n");
        fprintf(file, "#%s%.*s\n", n > 0 ? " " : "", n, source);
        source += n + (source[n] == '\n');
    }
}

/* Begins a file with the line of its format and the heading; tsr_file_end
 * completes it. */
static tsr_status begin_table(tsr_file_writer *writer, const char *path,
                              const char *format, const char *source,
                              tsr_err *err)
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

/* The values of one row: F of the components, then E of the pairs. With one
 * component F and P = E + F^2. Returns the number of values. */
static int row_values(const tsr_form_factor_table *table, int t, int k,
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
                table->exposure.displacement);
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
    int n = row_values(table, t, k, v);
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
    tsr_status s = begin_table(&w, path, tsr_form_factor_format(table->n_comp),
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

/* Rows and columns of the upper triangle of a covariance, in the order of the
 * file. */
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
        if (c == 0) /* after the first key: comments before a key belong to the
                       heading */
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
    TSR_TRY(begin_table(&w, path, tsr_prior_table_format, table->source, err));
    write_torsions(w.out, table);
    write_sides(w.out, table);
    write_angles(w.out, table);
    write_contacts(w.out, table, TSR_BODIES_TWO);
    write_contacts(w.out, table, TSR_BODIES_ONE);
    return tsr_file_end(&w, TSR_OK, err);
}

tsr_status tsr_table_set_heading(char **source, tsr_err *err,
                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tsr_text_format_list(format, args);
    va_end(args);
    TSR_TRY(tsr_allocated(text, err));
    free(*source);
    *source = text;
    return TSR_OK;
}
