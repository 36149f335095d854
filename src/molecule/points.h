/* Points in space: those near a place, and how far apart they are. Angstrom. */
#ifndef TSR_MOLECULE_POINTS_H
#define TSR_MOLECULE_POINTS_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/structure.h"

/* Points in cubic cells, to find those near a place. */
typedef struct tsr_cell_list tsr_cell_list;

/* Points xyz [n], Angstrom, which are copied; radius: the largest that will be
 * asked for. Errors: TSR_E_NUMERIC (a coordinate is not a number, or above
 * 1e100), TSR_E_NOMEM. */
tsr_status tsr_cell_list_new(tsr_pool *pool, int n, const double (*xyz)[3],
                             double radius, tsr_cell_list **out, tsr_err *err);

/* The same of all atoms of a file. */
tsr_status tsr_cell_list_of_atoms(tsr_pool *pool, const tsr_atoms *atoms,
                                  double radius, tsr_cell_list **out,
                                  tsr_err *err);

/* The points within `radius` of x, that at x itself included: index [max] out,
 * cell by cell. Returns how many there are, which may be more than max. */
int tsr_cell_list_within(const tsr_cell_list *cells, const double x[3],
                         double radius, int max, int *index);

/* Largest distance between any two of n points, Angstrom. O(n^2) at worst. */
double tsr_largest_distance(int n, const double (*xyz)[3]);

/* Whether two of n points are farther apart than `limit`, exactly. O(n) unless
 * the limit is near the largest distance. */
int tsr_is_distance_beyond(int n, const double (*xyz)[3], double limit);

#endif
