/* Points in cubic cells, to find those near a place. */
#ifndef TSR_MOLECULE_CELL_LIST_H
#define TSR_MOLECULE_CELL_LIST_H

#include "core/status.h"

typedef struct tsr_cell_list tsr_cell_list;

/* Points xyz [n], Angstrom, borrowed; radius: the largest that will be asked
 * for. Errors: TSR_E_NUMERIC (a coordinate is not a number, or above 1e100),
 * TSR_E_NOMEM. */
tsr_status tsr_cell_list_new(int n, const double (*xyz)[3], double radius,
                             tsr_cell_list **out, tsr_err *err);
void tsr_cell_list_free(tsr_cell_list *cells);

/* The points within `radius` of x, that at x itself included: index [max] out,
 * cell by cell. Returns how many there are, which may be more than max. */
int tsr_cell_list_near(const tsr_cell_list *cells, const double x[3],
                       double radius, int max, int *index);

#endif
