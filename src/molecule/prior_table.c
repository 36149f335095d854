/* Which of the trained densities applies to a residue, and the end of a table.
 * Its file is read in prior_table_file.c. */
#include "molecule/prior_table.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>

const char *const tsr_rama_name[TSR_N_RAMA] = {
    "general", "Ile/Val", "Gly", "pre-Pro", "trans-Pro", "cis-Pro"};

tsr_rama_class tsr_rama_class_of(tsr_amino amino, int next_is_pro,
                                 double omega_rad)
{
    if (amino == TSR_GLY)
        return TSR_RAMA_GLY;
    if (amino == TSR_PRO) /* a comparison with NaN is false */
        return fabs(remainder(omega_rad, 2.0 * M_PI)) < M_PI_2
                   ? TSR_RAMA_CIS_PRO
                   : TSR_RAMA_TRANS_PRO;
    if (next_is_pro)
        return TSR_RAMA_PRE_PRO;
    return amino == TSR_ILE || amino == TSR_VAL ? TSR_RAMA_ILE_VAL
                                                : TSR_RAMA_GENERAL;
}

void tsr_prior_table_side(const tsr_prior_table *table, tsr_amino amino,
                          double side[3])
{
    const tsr_side_mixture *mixture = &table->side[amino];
    const tsr_side_gaussian *heaviest = &mixture->part[0];
    for (int i = 1; i < mixture->n; i++)
        if (mixture->part[i].weight > heaviest->weight)
            heaviest = &mixture->part[i];
    for (int d = 0; d < 3; d++)
        side[d] = mixture->n > 0 ? heaviest->mean[d] : 0.0;
}

void tsr_prior_table_free(tsr_prior_table *table)
{
    if (table == NULL)
        return;
    free(table->source);
    free(table);
}
