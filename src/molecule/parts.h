/* Finds the rigid parts of a structure and the flexible ranges between and
 * around them, for a configuration.
 *
 * Residues in contact form a graph. A chain is cut where one strand joins two
 * bodies that only touch, and the pieces are cut again. A domain of several
 * segments therefore stays whole, and a domain inserted into another is not
 * separated from it. docs/domains.md states the criterion and compares the
 * results with published domains. */
#ifndef TSR_MOLECULE_PARTS_H
#define TSR_MOLECULE_PARTS_H

#include "core/field.h"
#include "core/log.h"
#include "core/pool.h"
#include "molecule/structure.h"

/* ---- predicted aligned errors ----
 *
 * The expected error of a residue's position, in Angstrom, when AlphaFold's
 * prediction is superposed on another residue (Jumper et al. 2021; Abramson et
 * al. 2024). JSON files of the AlphaFold database (both versions), ColabFold
 * and AlphaFold 2 ("pae") and AlphaFold 3 ("pae" with token_chain_ids and
 * token_res_ids) can be read. */

/* The predicted aligned errors of one file. */
typedef struct {
    char *path;       /* of the file */
    int n;            /* residues, or tokens of AlphaFold 3 */
    float *error;     /* [n][n] Angstrom */
    char (*chain)[8]; /* [n] chain of each token; NULL: not in the file */
    int *number;   /* [n] residue number of each token; NULL: not in the file */
    double *plddt; /* [n] 0 to 100; NULL: not in the file */
} tsr_pae;

/* Reads a file into the pool. Errors, with the name of the file: TSR_E_NOINPUT,
 * TSR_E_DATA (not JSON, no matrix, not square, a value that is negative or not
 * finite), TSR_E_NOMEM. */
tsr_status tsr_pae_read(tsr_pool *pool, const char *path, tsr_pae **out,
                        tsr_err *err);

/* Finds the file of predicted errors next to a model, by the names that the
 * prediction programs give to both. Returns its path, which the caller frees;
 * NULL: no such file. */
char *tsr_pae_find_file(const char *model);

/* Finds the row of each residue of a structure: row [n_residue] out. Rows are
 * matched by chain and number if the file names them. AlphaFold 3 has a token
 * for each atom of a ligand or modified residue; the first token counts. If the
 * file has no names, or lacks a residue, rows are matched in order, provided
 * that there are as many rows as residues. Otherwise, without names, a single
 * chain with missing residues is matched by number. Errors: TSR_E_DATA (the
 * file does not fit the structure). */
tsr_status tsr_pae_rows(const tsr_pae *pae, const tsr_structure *structure,
                        int *row, tsr_err *err);

/* Predicted error between two rows, mean of both directions, Angstrom. */
double tsr_pae_mean(const tsr_pae *pae, int row_a, int row_b);

/* ---- parts ---- */

/* The best evidence on which the parts are based. */
typedef enum {
    TSR_EVIDENCE_CONTACTS, /* contacts and secondary structure, for a measured
                              structure */
    TSR_EVIDENCE_PLDDT,    /* also pLDDT in the B column */
    TSR_EVIDENCE_PAE,      /* also predicted aligned errors */
    TSR_EVIDENCE_PAIRS     /* base pairs: there is no protein */
} tsr_evidence;

/* A range of residues that moves rigidly. Held ranges come last. */
typedef struct {
    int first, last; /* residues */
    int is_fixed; /* 1: keeps its position relative to the other fixed parts */
    int is_held;  /* 1: no body, but residues that must not turn (D residues) */
} tsr_rigid_part;

/* The role of a flexible range. */
typedef enum {
    TSR_RANGE_TAIL,   /* before the first or after the last part of a chain */
    TSR_RANGE_LINKER, /* between two parts that move relative to each other */
    TSR_RANGE_LOOP,   /* in one part, or between two parts that keep their
                         positions */
    TSR_RANGE_CHAIN   /* a chain without a rigid part */
} tsr_range_role;

/* A flexible range, for the configuration. */
typedef struct {
    int first, last; /* residues of one chain, without a break */
    tsr_range_role role;
    int before, after; /* index of the part before and of the part after the
                          range; -1: no part */
} tsr_flexible_range;

/* The result of the search. */
typedef struct {
    tsr_pool pool;
    tsr_evidence evidence; /* the best evidence used */
    int n_residue;
    char *kind;         /* [n_residue] secondary structure (secondary.h) */
    double *confidence; /* [n_residue] 0 to 1; 1 if the structure is not a
                           prediction */
    int *part;          /* [n_residue] index of its rigid part; -1: flexible */
    int n_part, n_range;
    tsr_rigid_part *rigid; /* [n_part] in the order of the chain, then held */
    tsr_flexible_range *range;   /* [n_range] in the order of the chain */
    tsr_strings flexible, fixed; /* ranges as in a configuration */
    int n_strand; /* the last n_strand of `flexible` are strands of nucleotides
                   */
    int n_note, n_warning;
    char **note; /* [n_note] sentences for the user; the first n_warning warn
                    that the file may be unsuitable */
} tsr_parts;

/* Choices that the user has made. Zeroed: no choices. */
typedef struct {
    const int
        *rigid; /* [n_residue] 1: must not be flexible; NULL: no such choice */
    const tsr_strings
        *fixed;     /* fixed ranges, of strands too; NULL: no such choice */
    int no_loops;   /* 1: no part keeps its position, so loops stay rigid */
    int no_strands; /* 1: nucleotides are ignored */
} tsr_parts_choices;

/* Finds the parts of a structure whose residues all have a backbone
 * (tsr_structure_read_any), and strands of nucleotides unless `choices`
 * excludes them. pae: NULL if there are no predicted errors. Errors: TSR_E_DATA
 * (pae does not fit the structure), TSR_E_NOMEM. */
tsr_status tsr_parts_find(const tsr_structure *structure, const tsr_pae *pae,
                          tsr_parts_choices choices, tsr_parts **out,
                          tsr_err *err);
void tsr_parts_free(tsr_parts *parts);

/* Text for an evidence, for messages: "base pairs". */
const char *tsr_evidence_text(tsr_evidence evidence);

/* As tsr_parts_find, with predicted errors from the file `pae`. pae NULL: the
 * file that tsr_pae_find_file finds; a file that cannot be read as predicted
 * errors, or does not fit, is logged and ignored. used_pae (may be NULL) out:
 * name of the file used, which the caller frees, or NULL. Errors: those of
 * tsr_pae_read and tsr_parts_find. */
tsr_status tsr_parts_find_with_pae(const tsr_structure *structure,
                                   const char *pae, tsr_parts_choices choices,
                                   tsr_log *log, tsr_parts **out,
                                   char **used_pae, tsr_err *err);

#endif
