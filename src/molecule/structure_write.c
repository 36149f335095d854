/* The part of molecule/structure.h that needs no parser: labels, look-up, PDB
 * output.
 */
#include "molecule/structure.h"

#include "files/file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SERIAL = 99999 };

void tsr_structure_free(tsr_structure *structure)
{
    if (structure == NULL)
        return;
    for (int k = 0; k < structure->n_declared; k++)
        free(structure->declared[k].letters);
    free(structure->declared);
    free(structure->path);
    free(structure->residue);
    free(structure->atom);
    free(structure);
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

const tsr_atom *tsr_residue_atom(const tsr_structure *structure,
                                 const tsr_residue_record *residue,
                                 const char *name)
{
    for (int i = 0; i < residue->n_atom; i++) {
        const tsr_atom *atom = &structure->atom[residue->first_atom + i];
        if (strcmp(atom->name, name) == 0)
            return atom;
    }
    return NULL;
}

static char free_letter(const tsr_structure *structure)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789";
    for (const char *at = letters; *at != '\0'; at++) {
        int is_free = 1;
        for (int i = 0; i < structure->n_residue && is_free; i++) {
            const char *chain = structure->residue[i].chain;
            is_free = chain[0] != *at || chain[1] != '\0';
        }
        if (is_free)
            return *at;
    }
    return '\0';
}

tsr_status tsr_structure_letter_chains(tsr_structure *structure, tsr_log *log,
                                       tsr_err *err)
{
    for (int i = 0; i < structure->n_residue; i++) {
        char old[sizeof structure->residue->chain];
        memcpy(old, structure->residue[i].chain, sizeof old);
        if (strlen(old) < 2)
            continue;
        char letter[2] = {free_letter(structure), '\0'};
        if (letter[0] == '\0')
            return tsr_fail(err, TSR_E_DATA,
                            "%d chains: PDB has room for 62, one letter or "
                            "digit each; leave some out, or join chains",
                            structure->n_chain);
        for (int k = i; k < structure->n_residue; k++)
            if (strcmp(structure->residue[k].chain, old) == 0)
                memcpy(structure->residue[k].chain, letter, sizeof letter);
        tsr_info(log, "chain %s is chain %s in PDB files: one character fits",
                 old, letter);
    }
    return TSR_OK;
}

/* What the columns cannot hold is refused before anything is written. */
tsr_status tsr_structure_check_pdb(const tsr_structure *structure,
                                   const char *path, tsr_err *err)
{
    if (structure->n_atom + structure->n_chain > MAX_SERIAL)
        return tsr_fail(err, TSR_E_DATA,
                        "cannot write '%s' as PDB: %d atoms and %d chain ends, "
                        "at most %d fit; write mmCIF",
                        path, structure->n_atom, structure->n_chain,
                        MAX_SERIAL);
    for (int i = 0; i < structure->n_residue; i++) {
        const tsr_residue_record *residue = &structure->residue[i];
        char label[32];
        tsr_residue_label(residue, label, sizeof label);
        if (strlen(residue->chain) > 1)
            return tsr_fail(err, TSR_E_DATA,
                            "cannot write '%s' as PDB: the chain id of residue "
                            "%s has more than one character; rename the chain",
                            path, label);
        if (residue->number < -999 || residue->number > 9999)
            return tsr_fail(err, TSR_E_DATA,
                            "cannot write '%s' as PDB: the number of residue "
                            "%s is not between -999 and 9999; renumber it",
                            path, label);
        for (int k = 0; k < residue->n_atom; k++) {
            const tsr_atom *atom = &structure->atom[residue->first_atom + k];
            for (int d = 0; d < 3; d++)
                if (!(atom->xyz[d] > -999.9995 && atom->xyz[d] < 9999.9995))
                    return tsr_fail(err, TSR_E_DATA,
                                    "cannot write '%s' as PDB: a coordinate of "
                                    "atom %s in residue %s is %g, and -999.999 "
                                    "to 9999.999 fits; move the structure to "
                                    "the origin",
                                    path, atom->name, label, atom->xyz[d]);
        }
    }
    return TSR_OK;
}

static void write_remark(FILE *stream, const char *remark)
{
    for (const char *p = remark; p != NULL && *p != '\0';) {
        size_t length = strcspn(p, "\n");
        if (length > 69)
            length = 69; /* the rest goes on in the next record */
        fputs("REMARK 999 ", stream);
        for (size_t i = 0; i < length; i++)
            fputc(isprint((unsigned char)p[i]) ? p[i] : ' ', stream);
        fputc('\n', stream);
        p += length;
        p += *p == '\n';
    }
}

/* Columns 13 to 16: the element's symbol right-justified in the first two, so
 * that CA (carbon alpha) is not Ca (calcium); four letters need them all. */
static void format_name(char out[8], const tsr_atom *atom)
{
    int is_wide =
        strlen(atom->name) > 3 || strlen(tsr_atom_symbol(atom->z)) > 1;
    snprintf(out, 8, is_wide ? "%-4.4s" : " %-3.3s", atom->name);
}

static void write_residue(FILE *stream, const tsr_structure *structure,
                          const tsr_residue_record *residue, int *serial)
{
    char chain = residue->chain[0] != '\0' ? residue->chain[0] : ' ';
    for (int k = 0; k < residue->n_atom; k++) {
        const tsr_atom *atom = &structure->atom[residue->first_atom + k];
        char name[8];
        format_name(name, atom);
        fprintf(stream,
                "%s%5d %s %3.3s %c%4d%c   %8.3f%8.3f%8.3f%6.2f%6.2f"
                "          %2s\n",
                residue->is_guest == TSR_GUEST_LIGAND ? "HETATM" : "ATOM  ",
                ++*serial, name, residue->name, chain, residue->number,
                residue->insertion, atom->xyz[0], atom->xyz[1], atom->xyz[2],
                1.0, 0.0, tsr_atom_symbol(atom->z));
    }
}

tsr_status tsr_structure_write_pdb(const tsr_structure *structure,
                                   const char *path, const char *remark,
                                   tsr_err *err)
{
    tsr_file_writer to;
    TSR_TRY(tsr_structure_check_pdb(structure, path, err));
    TSR_TRY(tsr_file_begin(&to, path, err));
    FILE *stream = to.out;
    write_remark(stream, remark);
    int serial = 0;
    for (int i = 0; i < structure->n_residue; i++) {
        const tsr_residue_record *residue = &structure->residue[i];
        write_residue(stream, structure, residue, &serial);
        if (residue->is_guest != TSR_GUEST_LIGAND &&
            (i + 1 == structure->n_residue ||
             residue[1].is_guest != residue->is_guest ||
             strcmp(residue[1].chain, residue->chain) != 0))
            fprintf(stream, "TER   %5d      %3.3s %c%4d%c\n", ++serial,
                    residue->name, residue->chain[0] ? residue->chain[0] : ' ',
                    residue->number, residue->insertion);
    }
    fputs("END\n", stream);
    return tsr_file_end(&to, TSR_OK, err);
}
