/* How far apart points are. */
#ifndef TSR_MOLECULE_EXTENT_H
#define TSR_MOLECULE_EXTENT_H

/* Largest distance between any two of n points, Angstrom. O(n^2) at worst. */
double tsr_largest_distance(int n, const double (*xyz)[3]);

/* Whether two of n points are farther apart than `limit`, exactly. O(n) unless
 * the limit is near the largest distance. */
int tsr_is_distance_beyond(int n, const double (*xyz)[3], double limit);

#endif
