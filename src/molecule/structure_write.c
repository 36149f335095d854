/* Functions of structure.h other than parsing: labels, look-up of atoms, and
 * writers of PDB and mmCIF. The PDB format limits the number of chains and
 * atoms and the size of coordinates, which is checked before writing. */
#include "molecule/structure.h"

#include "files/file.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SERIAL = 99999, MAX_REMARK = 69, MAX_CHAINS = 62 };

void tsr_structure_free(tsr_structure *s)
{
    if (s != NULL)
        tsr_pool_clear(&s->pool);
    free(s);
}

void tsr_atoms_select(const tsr_atoms *from, const int *keep, tsr_atoms *to)
{
    *to = (tsr_atoms){
        .path = from->path, .atom = to->atom, .residue = to->residue};
    for (int r = 0; r < from->n_residue; r++) {
        tsr_file_residue *residue = &to->residue[to->n_residue];
        if (!keep[r])
            continue;
        *residue = from->residue[r];
        residue->first_atom = to->n_atom;
        for (int k = 0; k < residue->n_atom; k++) {
            tsr_file_atom *atom = &to->atom[to->n_atom++];
            *atom = from->atom[from->residue[r].first_atom + k];
            atom->residue = to->n_residue;
            to->n_hydrogen += atom->z == 1;
        }
        to->n_kind[residue->kind]++;
        to->n_residue++;
    }
}

void tsr_atoms_free(tsr_atoms *atoms)
{
    if (atoms != NULL)
        tsr_pool_clear(&atoms->pool);
    free(atoms);
}

void tsr_model_atoms_free(tsr_model_atoms *atoms)
{
    if (atoms != NULL)
        tsr_pool_clear(&atoms->pool);
    free(atoms);
}

int tsr_residue_label(const tsr_residue_record *residue, char *text,
                      unsigned long size)
{
    char insertion[2] = {residue->insertion, '\0'};
    if (residue->insertion == ' ')
        insertion[0] = '\0';
    return snprintf(text, size, "%s:%d%s", residue->chain, residue->number,
                    insertion);
}

const tsr_atom *tsr_residue_atom(const tsr_structure *s,
                                 const tsr_residue_record *residue,
                                 const char *name)
{
    for (int i = 0; i < residue->n_atom; i++) {
        const tsr_atom *atom = &s->atom[residue->first_atom + i];
        if (strcmp(atom->name, name) == 0)
            return atom;
    }
    return NULL;
}

char tsr_free_letter(const char *taken)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789";
    const char *at = letters;
    while (*at != '\0' && strchr(taken, *at) != NULL)
        at++;
    return *at;
}

/* ---- atoms of a model ---- */

tsr_model_atoms *tsr_model_atoms_new(int n_atom)
{
    tsr_model_atoms *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->n_atom = n_atom;
    tsr_pool_array(&m->pool, m->atom, n_atom);
    tsr_pool_array(&m->pool, m->xyz, 3 * n_atom);
    tsr_pool_array(&m->pool, m->ca, n_atom);
    if (!m->pool.failed)
        return m;
    tsr_model_atoms_free(m);
    return NULL;
}

static int is_same_residue(const tsr_model_atom *a, const tsr_model_atom *b)
{
    return a->chain == b->chain && strcmp(a->chain_id, b->chain_id) == 0 &&
           a->number == b->number && a->insertion == b->insertion &&
           a->guest_kind == b->guest_kind;
}

/* Registers atoms first..end-1 as a residue, unless they are a guest or a
 * nucleotide without C3'. */
static void count_residue(tsr_model_atoms *m, int first, int end)
{
    const char *name = m->is_nucleic ? "C3'" : "CA";
    int centre = -1;
    for (int i = first; i < end; i++)
        if (strcmp(m->atom[i].name, name) == 0)
            centre = i;
    if (m->atom[first].guest_kind !=
            (m->is_nucleic ? TSR_GUEST_NUCLEOTIDE : TSR_GUEST_NONE) ||
        (m->is_nucleic && centre < 0))
        return;
    for (int i = first; i < end; i++)
        m->atom[i].at = m->n_residue;
    m->ca[m->n_residue++] = centre;
}

void tsr_model_atoms_count(tsr_model_atoms *m)
{
    for (int i = 0; i < m->n_atom; i++)
        m->atom[i].at = -1;
    for (int pass = 0; pass < 2 && m->n_residue == 0; pass++) {
        m->is_nucleic = pass;
        for (int i = 0, end; i < m->n_atom; i = end) {
            for (end = i + 1; end < m->n_atom; end++)
                if (!is_same_residue(&m->atom[i], &m->atom[end]))
                    break;
            count_residue(m, i, end);
        }
    }
    m->is_nucleic = m->is_nucleic && m->n_residue > 0;
}

tsr_status tsr_model_atoms_letter_chains(tsr_model_atoms *m, tsr_log *log,
                                         tsr_err *err)
{
    char taken[257] = {0}; /* ids of one character */
    for (int i = 0; i < m->n_atom; i++) {
        const char *id = m->atom[i].chain_id;
        if (strlen(id) == 1 && strchr(taken, *id) == NULL)
            taken[strlen(taken)] = *id;
    }
    for (int i = 0; i < m->n_atom; i++) {
        char old[sizeof m->atom->chain_id];
        memcpy(old, m->atom[i].chain_id, sizeof old);
        if (strlen(old) < 2)
            continue;
        const char letter[2] = {tsr_free_letter(taken), '\0'};
        if (letter[0] == '\0')
            return tsr_fail(err, TSR_E_DATA,
                            "%d chains: PDB has room for 62, with one letter "
                            "or digit each; leave some out, or join chains",
                            m->n_chain);
        for (int k = i; k < m->n_atom; k++)
            if (strcmp(m->atom[k].chain_id, old) == 0) {
                memcpy(m->atom[k].chain_id, letter, sizeof letter);
                m->atom[k].chain = letter[0];
            }
        taken[strlen(taken)] = letter[0];
        tsr_info(
            log,
            "chain %s is chain %s in PDB files, where the id has one character",
            old, letter);
    }
    return TSR_OK;
}

/* ---- labels of mmCIF ---- */

static int same_residue(const tsr_model_atom *a, const tsr_model_atom *b)
{
    return a->number == b->number && a->insertion == b->insertion &&
           strcmp(a->residue, b->residue) == 0;
}

/* Compares the residues of two asyms. */
static int same_entity(const tsr_model_atoms *m, const tsr_cif_labels *l,
                       const tsr_cif_asym *a, const tsr_cif_asym *b)
{
    int i = a->first, k = b->first, is_same = a->kind == b->kind;
    for (int r = 1; r <= a->n_residue && is_same; r++) {
        is_same = a->n_residue == b->n_residue &&
                  strcmp(m->atom[i].residue, m->atom[k].residue) == 0;
        while (++i < a->first + a->n_atom && l->seq[i] == r)
            continue;
        while (++k < b->first + b->n_atom && l->seq[k] == r)
            continue;
    }
    return is_same;
}

/* Sets entity and id of asym k, after those before. */
static void name_asym(const tsr_model_atoms *m, tsr_cif_labels *l, int k)
{
    tsr_cif_asym *a = &l->asym[k];
    const tsr_model_atom *atom = &m->atom[a->first];
    const char one[2] = {atom->chain, '\0'};
    const char *id = atom->chain_id[0] != '\0' ? atom->chain_id : one;
    int is_taken = 0, same = k, last = 0;
    for (int i = k; i-- > 0;) {
        is_taken |= strcmp(l->asym[i].id, id) == 0;
        last = l->asym[i].entity > last ? l->asym[i].entity : last;
        same = same_entity(m, l, &l->asym[i], a) ? i : same;
    }
    a->is_first = same == k;
    a->entity = same == k ? last + 1 : l->asym[same].entity;
    snprintf(a->id, sizeof a->id, is_taken ? "%sx%d" : "%s", id, k + 1);
}

tsr_status tsr_cif_labels_make(const tsr_model_atoms *atoms, tsr_pool *pool,
                               tsr_cif_labels *out, tsr_err *err)
{
    const tsr_model_atoms *m = atoms;
    tsr_cif_labels *l = out;
    *l = (tsr_cif_labels){.n_asym = 0};
    tsr_pool_array(pool, l->asym, m->n_atom);
    tsr_pool_array(pool, l->of, m->n_atom);
    tsr_pool_array(pool, l->seq, m->n_atom);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < m->n_atom; i++) {
        const tsr_model_atom *a = &m->atom[i], *before = a - (i > 0);
        const int is_new = i == 0 || !same_residue(a, before);
        if (i == 0 || a->chain != before->chain ||
            strcmp(a->chain_id, before->chain_id) != 0 ||
            a->guest_kind != before->guest_kind ||
            (is_new && a->guest_kind == TSR_GUEST_LIGAND))
            l->asym[l->n_asym++] = (tsr_cif_asym){
                .first = i,
                .kind = m->is_nucleic && a->guest_kind == TSR_GUEST_NONE
                            ? TSR_GUEST_NUCLEOTIDE
                            : a->guest_kind};
        tsr_cif_asym *asym = &l->asym[l->n_asym - 1];
        asym->n_residue += asym->n_atom++ == 0 || is_new;
        l->of[i] = l->n_asym - 1;
        l->seq[i] = asym->n_residue;
    }
    for (int k = 0; k < l->n_asym; k++)
        name_asym(m, l, k);
    return TSR_OK;
}

/* ---- writing ---- */

static void print_remark(const char *remark, const char *prefix, FILE *out)
{
    for (const char *p = remark; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, "\n");
        n = n > MAX_REMARK ? MAX_REMARK : n; /* continues in the next line */
        fputs(prefix, out);
        for (size_t i = 0; i < n; i++)
            fputc(isprint((unsigned char)p[i]) ? p[i] : ' ', out);
        fputc('\n', out);
        p += n;
        p += *p == '\n';
    }
}

/* Returns text, or a quoted copy of it in `out` if it has a special meaning in
 * CIF. */
static const char *cif_word(const char *text, char out[16])
{
    const int is_bare = text[0] != '\0' &&
                        strcspn(text, " \t") == strlen(text) &&
                        strchr("_#$'\"[];", text[0]) == NULL &&
                        strcmp(text, ".") != 0 && strcmp(text, "?") != 0;
    const char quote = strchr(text, '\'') == NULL ? '\'' : '"';
    if (is_bare)
        return text;
    snprintf(out, 16, "%c%.12s%c", quote, text, quote);
    return out;
}

void tsr_cif_loop(FILE *out, const char *category, const char *items)
{
    fputs("#\nloop_\n", out);
    for (const char *p = items; *p != '\0'; p += strspn(p, " ")) {
        const int n = (int)strcspn(p, " ");
        fprintf(out, "_%s.%.*s\n", category, n, p);
        p += n;
    }
}

/* Entities, their sequences, and the chains that have them. */
static void cif_entities(const tsr_model_spec *spec, FILE *out)
{
    enum { ASYM, ENTITY, POLYMER, SEQUENCE, LIGAND, N };
    static const char *const loop[N][2] = {
        {"struct_asym", "entity_id id"},
        {"entity", "id type"},
        {"entity_poly", "entity_id type"},
        {"entity_poly_seq", "entity_id mon_id num"},
        {"pdbx_entity_nonpoly", "entity_id comp_id name"}};
    const tsr_cif_labels *l = spec->labels;
    for (int t = 0, n_row = 0; t < N; t++, n_row = 0)
        for (int i = 0; i < spec->atoms->n_atom; i++) {
            const tsr_model_atom *atom = &spec->atoms->atom[i];
            const tsr_cif_asym *a = &l->asym[l->of[i]];
            const int is_ligand = a->kind == TSR_GUEST_LIGAND;
            char residue[16], id[16];
            if ((i > a->first &&
                 (t != SEQUENCE || same_residue(atom, atom - 1))) ||
                (t != ASYM && !a->is_first) ||
                (t > ENTITY && is_ligand != (t == LIGAND)))
                continue;
            if (n_row++ == 0) /* CIF has no loops without rows */
                tsr_cif_loop(out, loop[t][0], loop[t][1]);
            const char *name = cif_word(atom->residue, residue);
            fprintf(out, "%d %s", a->entity,
                    t == ASYM      ? cif_word(a->id, id)
                    : t == ENTITY  ? is_ligand ? "non-polymer" : "polymer"
                    : t != POLYMER ? name
                    : a->kind == TSR_GUEST_NONE ? "polypeptide(L)"
                    : atom->residue[0] == 'D'   ? "polydeoxyribonucleotide"
                                                : "polyribonucleotide");
            if (t == SEQUENCE)
                fprintf(out, " %d", l->seq[i]);
            fprintf(out, t == LIGAND ? " %s\n" : "\n", name);
        }
}

void tsr_model_begin(const tsr_model_spec *spec, const char *remark, FILE *out)
{
    if (spec->format == TSR_MODEL_PDB) {
        print_remark(remark, "REMARK 999 ", out);
        return;
    }
    fprintf(out, "data_%s\n#\n", spec->name);
    print_remark(remark, "# ", out);
    cif_entities(spec, out);
    tsr_cif_loop(out, "atom_site",
                 "group_PDB id type_symbol label_atom_id label_alt_id "
                 "label_comp_id label_asym_id label_entity_id label_seq_id "
                 "pdbx_PDB_ins_code Cartn_x Cartn_y Cartn_z occupancy "
                 "B_iso_or_equiv auth_seq_id auth_comp_id auth_asym_id "
                 "auth_atom_id pdbx_PDB_model_num");
}

/* B exceeds the six columns of the PDB format (999.99) for domains that move by
 * more than 6 Angstrom; mmCIF holds the full number. */
static void pdb_atom(const tsr_model_atom *a, int serial, const double *x,
                     double b, FILE *out)
{
    /* the element's symbol is right-justified in columns 13 and 14 */
    const int is_wide = strlen(a->name) > 3 || strlen(a->element) > 1;
    char name[8];
    snprintf(name, sizeof name, is_wide ? "%-4.4s" : " %-3.3s", a->name);
    fprintf(out,
            "%s%5d %s %3.3s %c%4d%c   %8.3f%8.3f%8.3f%6.2f%6.2f"
            "          %2s\n",
            a->guest_kind == TSR_GUEST_LIGAND ? "HETATM" : "ATOM  ", serial,
            name, a->residue, a->chain, a->number, a->insertion, x[0], x[1],
            x[2], 1.0, fmin(b, 999.99), a->element);
}

static void cif_atom(const tsr_model_spec *spec, int i, const double *x,
                     double b, int model, FILE *out)
{
    const tsr_model_atom *a = &spec->atoms->atom[i];
    const tsr_cif_asym *asym = &spec->labels->asym[spec->labels->of[i]];
    const char insertion = a->insertion == ' ' ? '?' : a->insertion;
    const char one[2] = {a->chain, '\0'};
    char quoted[4][16], place[16] = ".";
    const char *id = a->chain_id[0] != '\0' ? a->chain_id : one;
    const char *chain = strcmp(id, " ") == 0 ? "." : cif_word(id, quoted[0]);
    const char *element = a->element[0] != '\0' ? a->element : "?";
    const char *name = cif_word(a->name, quoted[1]);
    const char *residue = cif_word(a->residue, quoted[2]);
    if (asym->kind != TSR_GUEST_LIGAND)
        snprintf(place, sizeof place, "%d", spec->labels->seq[i]);
    fprintf(out,
            "%s %d %s %s . %s %s %d %s %c %.3f %.3f %.3f 1.00 %.2f %d %s %s "
            "%s %d\n",
            a->guest_kind == TSR_GUEST_LIGAND ? "HETATM" : "ATOM", i + 1,
            element, name, residue, cif_word(asym->id, quoted[3]), asym->entity,
            place, insertion, x[0], x[1], x[2], b, a->number, residue, chain,
            name, model);
}

/* Checks that the format can hold the model. Errors: TSR_E_DATA. */
static tsr_status check_limits(const tsr_model_spec *spec,
                               const double (*xyz)[3], tsr_err *err)
{
    const int is_pdb = spec->format == TSR_MODEL_PDB;
    const double low = is_pdb ? -999.9995 : -1e9;
    const double high = is_pdb ? 9999.9995 : 1e9;
    const int n = spec->atoms->n_atom;
    if (is_pdb &&
        n > MAX_SERIAL - MAX_CHAINS) /* TER records are numbered, too */
        return tsr_fail(err, TSR_E_DATA,
                        "%d atoms are too many for PDB; write mmCIF (NAME.cif)",
                        n);
    for (int i = 0; i < n; i++) {
        const tsr_model_atom *a = &spec->atoms->atom[i];
        const char one[2] = {a->chain, '\0'}, *wrong = NULL;
        if (is_pdb && a->chain == '\0')
            wrong =
                "the chain id has more than one character; rename the chain";
        else if (is_pdb && (a->number < -999 || a->number > 9999))
            wrong = "the residue number is not from -999 to 9999; renumber the "
                    "residue";
        for (int d = 0; d < 3 && wrong == NULL; d++)
            if (!(xyz[i][d] > low && xyz[i][d] < high))
                wrong = "a coordinate is not from -999.999 to 9999.999; move "
                        "the structure to the origin";
        if (wrong != NULL)
            return tsr_fail(
                err, TSR_E_DATA,
                "atom %s of residue %s:%d%.*s is at (%g, %g, %g)%s%s%s",
                a->name, a->chain == '\0' ? a->chain_id : one, a->number,
                a->insertion != ' ', &a->insertion, xyz[i][0], xyz[i][1],
                xyz[i][2], is_pdb ? " and does not fit into PDB: " : "",
                is_pdb ? wrong : "",
                is_pdb ? ", or write mmCIF (NAME.cif)" : "");
    }
    return TSR_OK;
}

tsr_status tsr_model_write(const tsr_model_spec *spec, int number,
                           const char *label, const double (*xyz)[3], FILE *out,
                           tsr_err *err)
{
    const tsr_model_atoms *m = spec->atoms;
    TSR_TRY(check_limits(spec, xyz, err));
    if (spec->format == TSR_MODEL_PDB && number > 0)
        /* numbers above 9999 extend to the left, which readers accept */
        fprintf(out, "REMARK 999 %.69s\nMODEL %8d\n", label, number);
    int serial = 0;
    for (int i = 0; i < m->n_atom; i++) {
        const tsr_model_atom *a = &m->atom[i];
        const double b = spec->b != NULL ? spec->b[i] : 0.0;
        serial++;
        if (spec->format == TSR_MODEL_CIF)
            cif_atom(spec, i, xyz[i], b, number > 0 ? number : 1, out);
        else
            pdb_atom(a, serial, xyz[i], b, out);
        if (spec->format == TSR_MODEL_PDB &&
            a->guest_kind != TSR_GUEST_LIGAND &&
            (i + 1 == m->n_atom || m->atom[i + 1].chain != a->chain ||
             m->atom[i + 1].guest_kind != a->guest_kind))
            fprintf(out, "TER   %5d      %3.3s %c%4d%c\n", ++serial, a->residue,
                    a->chain, a->number, a->insertion);
    }
    if (spec->format == TSR_MODEL_PDB && number > 0)
        fputs("ENDMDL\n", out);
    return TSR_OK;
}

void tsr_model_end(const tsr_model_spec *spec, FILE *out)
{
    fputs(spec->format == TSR_MODEL_PDB ? "END\n" : "#\n", out);
}

tsr_status tsr_model_file(const tsr_model_spec *spec, const char *path,
                          const char *remark, const double (*xyz)[3],
                          tsr_err *err)
{
    tsr_file_writer to = {.out = NULL};
    tsr_pool pool = {0};
    tsr_cif_labels labels;
    tsr_model_spec labelled = *spec;
    labelled.labels = &labels;
    tsr_status status = check_limits(spec, xyz, err);
    TSR_TRY(tsr_wrap(err, status, "cannot write '%s'", path));
    status = tsr_cif_labels_make(spec->atoms, &pool, &labels, err);
    TSR_THEN(status, tsr_file_begin(&to, path, err));
    if (status == TSR_OK) {
        tsr_model_begin(&labelled, remark, to.out);
        status = tsr_model_write(&labelled, 0, NULL, xyz, to.out, err);
        tsr_model_end(&labelled, to.out);
    }
    status = tsr_file_end(&to, status, err);
    tsr_pool_clear(&pool);
    return status;
}

tsr_status tsr_model_atoms_write(const tsr_model_atoms *atoms, const char *path,
                                 const char *remark, tsr_err *err)
{
    const tsr_model_spec spec = {.format = TSR_MODEL_PDB, .atoms = atoms};
    const double(*xyz)[3] = (const double(*)[3])atoms->xyz;
    return path == NULL ? check_limits(&spec, xyz, err)
                        : tsr_model_file(&spec, path, remark, xyz, err);
}
