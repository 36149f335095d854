/* The trained numbers of the prior: side-chain centres and contact distances.
 *
 * The side-chain centre (mass-weighted, atoms beyond CB) in the frame of
 * N-CA-C (core/vec3.h, tsr_frame) is one Gaussian per residue type. Contact
 * distances are the lower end of what neighbouring bodies show in structures:
 * for each pair of body types the 1 % quantile of the distances below 10 A of
 * pairs at least 3 residues apart (by position in a chain; bodies of different
 * chains always count); a pair seen fewer than 500 times takes the mean over
 * the two types' own quantiles, each over its partners of all types. */
#ifndef TSR_MODEL_PRIOR_TABLE_H
#define TSR_MODEL_PRIOR_TABLE_H

#include "core/log.h"
#include "core/status.h"
#include "model/residue.h"

typedef struct {
    long count[TSR_N_AMINO];                        /* side chains trained on */
    double side_mean[TSR_N_AMINO][3];               /* Angstrom */
    double side_cov[TSR_N_AMINO][3][3];             /* Angstrom squared */
    double contact_two[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* Angstrom */
    double contact_one[TSR_N_AMINO][TSR_N_AMINO];
    char *source; /* how it was made */
} tsr_prior_table;

tsr_status tsr_prior_table_read(const char *path, tsr_prior_table **out,
                                tsr_err *err);
tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err);
tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err);
void tsr_prior_table_free(tsr_prior_table *table);

#endif
