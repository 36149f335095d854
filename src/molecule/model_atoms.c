/* Reads model.pdb by its columns; a number that is none is refused with its
 * line. */
#include "molecule/model_atoms.h"

#include "files/file.h"
#include "molecule/parent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 80, LEAST = 54 }; /* columns of a record, and to the end of z */

void tsr_model_atoms_free(tsr_model_atoms *atoms)
{
    if (atoms == NULL)
        return;
    free(atoms->atom);
    free(atoms->xyz);
    free(atoms->ca);
    free(atoms);
}

/* Columns from .. from + n (from 0) without the spaces around. */
static void columns(const char *line, int from, int n, char *out)
{
    while (n > 0 && line[from] == ' ')
        from++, n--;
    while (n > 0 && line[from + n - 1] == ' ')
        n--;
    memcpy(out, line + from, (size_t)n);
    out[n] = '\0';
}

/* A number that fills its columns but for spaces. */
static int number(const char *line, int from, int n, double *out)
{
    char text[16], *end;
    columns(line, from, n, text);
    *out = strtod(text, &end);
    return text[0] != '\0' && *end == '\0' && isfinite(*out);
}

/* One record, its line padded to 80 columns. */
static int parse(const char *line, tsr_model_atom *atom, double *xyz)
{
    double residue;
    columns(line, 12, 4, atom->name);
    columns(line, 17, 3, atom->residue);
    columns(line, 76, 2, atom->element);
    atom->chain = line[21];
    atom->insertion = line[26];
    if (!number(line, 22, 4, &residue) || !number(line, 30, 8, &xyz[0]) ||
        !number(line, 38, 8, &xyz[1]) || !number(line, 46, 8, &xyz[2]) ||
        atom->name[0] == '\0')
        return 0;
    atom->number = (int)residue;
    return 1;
}

static int is_same_residue(const tsr_model_atom *a, const tsr_model_atom *b)
{
    return a->chain == b->chain && a->number == b->number &&
           a->insertion == b->insertion;
}

static int is_record(const char *line)
{
    return strncmp(line, "ATOM  ", 6) == 0 || strncmp(line, "HETATM", 6) == 0;
}

/* Amino acids stand under the names of the 20. */
static tsr_guest_kind guest_kind(const char *line, const char *residue)
{
    return line[0] == 'H'                        ? TSR_GUEST_LIGAND
           : tsr_parent_by_name(residue) == NULL ? TSR_GUEST_NUCLEOTIDE
                                                 : TSR_GUEST_NONE;
}

static int count_records(const char *text)
{
    int n = 0;
    for (const char *line = text; line != NULL;) {
        n += is_record(line);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return n;
}

static void add_to_residue(tsr_model_atoms *m, tsr_model_atom *atom)
{
    const int is_new = m->n_atom == 0 || !is_same_residue(atom, atom - 1);
    atom->at = -1;
    if (atom->is_guest)
        return;
    if (is_new)
        m->ca[m->n_residue++] = -1;
    atom->at = m->n_residue - 1;
    if (strcmp(atom->name, "CA") == 0)
        m->ca[atom->at] = m->n_atom;
}

/* A model without amino acids. */
static void count_nucleotides(tsr_model_atoms *m)
{
    int first = 0;
    if (m->n_residue > 0)
        return;
    for (int i = 0; i < m->n_atom; i++) {
        if (!is_same_residue(&m->atom[i], &m->atom[first]))
            first = i;
        if (m->atom[i].is_guest != TSR_GUEST_NUCLEOTIDE ||
            strcmp(m->atom[i].name, "C3'") != 0)
            continue;
        m->ca[m->n_residue] = i;
        for (int k = first;
             k < m->n_atom && is_same_residue(&m->atom[k], &m->atom[i]); k++)
            m->atom[k].at = m->n_residue;
        m->n_residue++;
    }
    m->is_nucleic = m->n_residue > 0;
}

static tsr_status read_records(const char *path, const char *text,
                               tsr_model_atoms *m, tsr_err *err)
{
    int line_number = 1;
    for (const char *line = text; *line != '\0'; line_number++) {
        const size_t n = strcspn(line, "\r\n");
        if (is_record(line)) {
            char padded[LINE + 1];
            memset(padded, ' ', LINE);
            padded[LINE] = '\0';
            memcpy(padded, line, n < LINE ? n : LINE);
            tsr_model_atom *atom = &m->atom[m->n_atom];
            if (n < LEAST || !parse(padded, atom, &m->xyz[3 * m->n_atom]))
                return tsr_fail(err, TSR_E_DATA,
                                "'%s' line %d: no ATOM record as tessera "
                                "writes them",
                                path, line_number);
            atom->is_guest = guest_kind(line, atom->residue);
            add_to_residue(m, atom);
            m->n_atom++;
        }
        line += n;
        line += strspn(line, "\r");
        line += *line == '\n';
    }
    return TSR_OK;
}

static tsr_model_atoms *reserve(size_t n)
{
    tsr_model_atoms *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->atom = calloc(n + 1, sizeof *m->atom);
    m->xyz = calloc(3 * n + 3, sizeof *m->xyz);
    m->ca = calloc(n + 1, sizeof *m->ca);
    if (m->atom != NULL && m->xyz != NULL && m->ca != NULL)
        return m;
    tsr_model_atoms_free(m);
    return NULL;
}

tsr_model_atoms *tsr_model_atoms_of(const tsr_structure *structure)
{
    const tsr_structure *s = structure;
    tsr_model_atoms *m = reserve((size_t)s->n_atom);
    if (m == NULL)
        return NULL;
    m->n_atom = s->n_atom;
    m->n_residue = s->n_residue - s->n_guest;
    for (int r = 0; r < s->n_residue; r++)
        for (int k = 0; k < s->residue[r].n_atom; k++) {
            const tsr_residue_record *of = &s->residue[r];
            const int i = of->first_atom + k;
            tsr_model_atom *to = &m->atom[i];
            snprintf(to->name, sizeof to->name, "%.4s", s->atom[i].name);
            snprintf(to->residue, sizeof to->residue, "%.3s", of->name);
            to->chain = of->chain[0] == '\0'   ? ' '
                        : of->chain[1] == '\0' ? of->chain[0]
                                               : '\0';
            snprintf(to->chain_id, sizeof to->chain_id, "%s", of->chain);
            to->number = of->number;
            to->insertion = of->insertion;
            to->is_guest = of->is_guest;
            to->at = of->is_guest ? -1 : r;
            snprintf(to->element, sizeof to->element, "%.2s",
                     tsr_atom_symbol(s->atom[i].z));
            memcpy(m->xyz + 3 * i, s->atom[i].xyz, sizeof s->atom[i].xyz);
            if (!of->is_guest && strcmp(to->name, "CA") == 0)
                m->ca[r] = i;
        }
    count_nucleotides(m);
    return m;
}

tsr_status tsr_model_atoms_read(const char *path, tsr_model_atoms **out,
                                tsr_err *err)
{
    char *text = NULL;
    size_t size;
    *out = NULL;
    tsr_status status = tsr_file_read(path, &text, &size, err);
    if (status != TSR_OK)
        return status;
    const size_t n = (size_t)count_records(text);
    tsr_model_atoms *m = reserve(n);
    if (m == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    else if (n == 0)
        status = tsr_fail(err, TSR_E_DATA, "'%s' has no ATOM record", path);
    else
        status = read_records(path, text, m, err);
    if (status == TSR_OK)
        count_nucleotides(m);
    for (int r = 0; status == TSR_OK && r < m->n_residue; r++)
        if (m->ca[r] < 0)
            status = tsr_fail(err, TSR_E_DATA,
                              "'%s': residue number %d of the file has no CA",
                              path, r + 1);
    free(text);
    if (status != TSR_OK) {
        tsr_model_atoms_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}
