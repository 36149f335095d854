/* Predicted aligned errors: how wrong, in Angstrom, AlphaFold expects a residue
 * to be where the prediction is superposed on another one.
 *
 * Jumper et al. 2021; Abramson et al. 2024. Understood are the JSON files of
 * the AlphaFold database (both versions), ColabFold and AlphaFold 2 ("pae") and
 * of AlphaFold 3 ("pae" with token_chain_ids and token_res_ids). */
#ifndef TSR_MOLECULE_PAE_H
#define TSR_MOLECULE_PAE_H

#include "molecule/structure.h"

typedef struct {
    char *path;
    int n;            /* residues, or tokens: what AlphaFold 3 counts */
    float *error;     /* [n][n] Angstrom */
    char (*chain)[8]; /* [n] of each token; NULL: the file does not say */
    int *number;      /* [n] its residue; NULL with chain */
    double *plddt;    /* [n] 0 to 100; NULL: not in the file */
} tsr_pae;

/* Errors, naming the file: TSR_E_NOINPUT, TSR_E_DATA (no JSON, no matrix, not
 * square, not finite or negative). */
tsr_status tsr_pae_read(const char *path, tsr_pae **out, tsr_err *err);
void tsr_pae_free(tsr_pae *pae);

/* The file that belongs to a model, by the names that the programs give both,
 * where one lies beside it; NULL: none. Caller frees. */
char *tsr_pae_beside(const char *model);

/* Which row each residue of a structure has: row [n_residue] out, -1 for none.
 * By chain and number where the file names them (AlphaFold 3 has a token for
 * each atom of a ligand or a modified residue, too: the first counts), else in
 * order where there are as many, else, where the file names nothing and
 * residues are missing from a single chain, by number. Errors: TSR_E_DATA,
 * where the two do not belong together. */
tsr_status tsr_pae_rows(const tsr_pae *pae, const tsr_structure *structure,
                        int *row, tsr_err *err);

/* The mean of both directions, Angstrom. */
double tsr_pae_between(const tsr_pae *pae, int row_a, int row_b);

#endif
