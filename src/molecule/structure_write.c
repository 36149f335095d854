/* The part of molecule/structure.h that needs no parser: labels, look-up, PDB
 * output.
 */
#include "molecule/model_atoms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The check alone, or the file. */
static tsr_status write_pdb(const tsr_structure *structure, const char *path,
                            const char *remark, int is_check, tsr_err *err)
{
    tsr_model_atoms *atoms = tsr_model_atoms_of(structure);
    TSR_TRY(tsr_allocated(atoms, err));
    const tsr_model_spec spec = {.format = TSR_MODEL_PDB, .atoms = atoms};
    const double(*xyz)[3] = (const double(*)[3])atoms->xyz;
    const tsr_status status =
        is_check ? tsr_model_check(&spec, xyz, err)
                 : tsr_model_file(&spec, path, remark, xyz, err);
    tsr_model_atoms_free(atoms);
    return status;
}

tsr_status tsr_structure_check_pdb(const tsr_structure *structure, tsr_err *err)
{
    return write_pdb(structure, NULL, NULL, 1, err);
}

tsr_status tsr_structure_write_pdb(const tsr_structure *structure,
                                   const char *path, const char *remark,
                                   tsr_err *err)
{
    return write_pdb(structure, path, remark, 0, err);
}
