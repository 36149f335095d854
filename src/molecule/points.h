/* Searches among points in space: neighbours within a distance, and the largest
 * distance. Coordinates in Angstrom. */
#ifndef TSR_MOLECULE_POINTS_H
#define TSR_MOLECULE_POINTS_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/structure.h"

/* Points sorted into cubic cells, for neighbour searches. */
typedef struct tsr_cell_list tsr_cell_list;

/* Makes a cell list of n > 0 points xyz [n][3], which are copied. radius:
 * smallest side of a cell; searches with a radius up to this are fast. Errors:
 * TSR_E_NUMERIC (a coordinate is not finite or above 1e100), TSR_E_NOMEM. */
tsr_status tsr_cell_list_new(tsr_pool *pool, int n, const double (*xyz)[3],
                             double radius, tsr_cell_list **out, tsr_err *err);

/* The same for all atoms of a file; at least one. */
tsr_status tsr_cell_list_of_atoms(tsr_pool *pool, const tsr_atoms *atoms,
                                  double radius, tsr_cell_list **out,
                                  tsr_err *err);

/* Finds the points within `radius` of x, including a point at x itself. index
 * [max] out: the first max of them, in the order of the cells. Returns the
 * number of points found, which may exceed max. */
int tsr_cell_list_within(const tsr_cell_list *cells, const double x[3],
                         double radius, int max, int *index);

/* Returns the largest distance between any two of n points. Cost: O(n^2) in the
 * worst case. */
double tsr_largest_distance(int n, const double (*xyz)[3]);

/* Returns 1 if any two of n points are farther apart than `limit`. Exact. Cost:
 * O(n), unless the limit is close to the largest distance. */
int tsr_is_distance_beyond(int n, const double (*xyz)[3], double limit);

#endif
