/* Which parts of a structure hold together, and what between and around them
 * may move: from a file to the flexible ranges of a configuration.
 *
 * Residues in contact are a graph. A chain is cut where the
 * least of it crosses, again and again, as long as what crosses is little for
 * the size of the smaller side: a normalised cut (Shi & Malik
 * 2000) among those that torsions of the chain can open. A domain of several
 * stretches is therefore never taken apart, and what is inserted into it stays
 * in it. docs/domains.md tells how well this meets what others published. */
#ifndef TSR_MOLECULE_PARTS_H
#define TSR_MOLECULE_PARTS_H

#include "core/field.h"
#include "core/log.h"
#include "core/pool.h"
#include "molecule/structure.h"

/* ---- predicted aligned errors ----
 *
 * How wrong, in Angstrom, AlphaFold expects a residue to be where the
 * prediction is superposed on another one. Jumper et al. 2021; Abramson et al.
 * 2024. Understood are the JSON files of the AlphaFold database (both
 * versions), ColabFold and AlphaFold 2 ("pae") and of AlphaFold 3 ("pae" with
 * token_chain_ids and token_res_ids). */

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
tsr_status tsr_pae_read(tsr_pool *pool, const char *path, tsr_pae **out,
                        tsr_err *err);

/* The file that belongs to a model, by the names that the programs give both,
 * where one lies beside it; NULL: none. Caller frees. */
char *tsr_pae_find_file(const char *model);

/* Which row each residue of a structure has: row [n_residue] out, -1 for none.
 * By chain and number where the file names them (AlphaFold 3 has a token for
 * each atom of a ligand or a modified residue, too: the first counts), else in
 * order where there are as many, else, where the file names nothing and
 * residues are missing from a single chain, by number. Errors: TSR_E_DATA,
 * where the two do not belong together. */
tsr_status tsr_pae_rows(const tsr_pae *pae, const tsr_structure *structure,
                        int *row, tsr_err *err);

/* The mean of both directions, Angstrom. */
double tsr_pae_mean(const tsr_pae *pae, int row_a, int row_b);

/* ---- parts ---- */

/* What decided, the best that there is. */
typedef enum {
    TSR_EVIDENCE_CONTACTS, /* and secondary structure: a measured structure */
    TSR_EVIDENCE_PLDDT,    /* these, and pLDDT in the B column */
    TSR_EVIDENCE_PAE,      /* these, and predicted aligned errors */
    TSR_EVIDENCE_PAIRS     /* of bases: there is no protein */
} tsr_evidence;

/* A run of residues that moves as one. */
typedef struct {
    int first, last; /* residues */
    int is_fixed;    /* 1: keeps its place with the others that have it */
} tsr_rigid_part;

typedef enum {
    TSR_RANGE_TAIL,   /* before the first or after the last part of a chain */
    TSR_RANGE_LINKER, /* between two parts that move against each other */
    TSR_RANGE_LOOP,   /* between two that keep their places */
    TSR_RANGE_CHAIN   /* a chain without any part that is rigid */
} tsr_range_role;

typedef struct {
    int first, last; /* residues of one chain, without a break */
    tsr_range_role role;
    int before, after; /* parts beside it; -1: none */
} tsr_flexible_range;

typedef struct {
    tsr_pool pool;
    tsr_evidence evidence;
    int n_residue;
    char *kind;         /* [n_residue] secondary structure */
    double *confidence; /* [n_residue] 0 to 1; without a prediction 1 */
    int *part;          /* [n_residue] its rigid part; -1: flexible */
    int n_part, n_range;
    tsr_rigid_part *rigid;       /* [n_part] in order */
    tsr_flexible_range *range;   /* [n_range] in order */
    tsr_strings flexible, fixed; /* as a configuration has them */
    int n_strand; /* of the flexible the last: of strands of nucleotides */
    int n_note, n_warning;
    char **note; /* [n_note] sentences: what to look at; the first n_warning say
                    that the file is not what it seems */
} tsr_parts;

/* What was decided before. Zeroed: nothing. */
typedef struct {
    const int *rigid; /* [n_residue] 1: is not to be flexible; NULL: none */
    const tsr_strings *fixed; /* ranges of strands, too; NULL: none */
    int no_loops;   /* 1: no part keeps its place, so loops stay as they are */
    int no_strands; /* 1: nucleotides are left out */
} tsr_parts_choices;

/* structure: whose residues all have a backbone (tsr_structure_read_any). pae:
 * NULL without. With the strands of nucleotides, unless `wish` leaves them out.
 * Errors: TSR_E_DATA (pae does not belong to the structure), TSR_E_NOMEM. */
tsr_status tsr_parts_find(const tsr_structure *structure, const tsr_pae *pae,
                          tsr_parts_choices wish, tsr_parts **out,
                          tsr_err *err);
void tsr_parts_free(tsr_parts *parts);

/* "predicted aligned errors", "pLDDT", "contacts and secondary structure",
 * "bases that pair". */
const char *tsr_evidence_text(tsr_evidence evidence);

/* The same with the errors that `pae` names (NULL: a file beside the
 * structure's own, where there is one; if it does not fit it is told of and
 * left). used_pae (may be NULL): the file that
 * was used, or NULL; caller frees. Errors: those of reading, and of
 * tsr_parts_find. */
tsr_status tsr_parts_find_with_pae(const tsr_structure *structure,
                                   const char *pae, tsr_parts_choices wish,
                                   tsr_log *log, tsr_parts **out,
                                   char **used_pae, tsr_err *err);

#endif
