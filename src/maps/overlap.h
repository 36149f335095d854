/* How much the bodies of a model overlap in a map: the sum over voxels of the
 * square of their density S, without a grid.
 *
 * Each body is a Gaussian of its type, and the sum over voxels of the product
 * of two is a function of their types and their distance alone, the kernel. It
 * is short-ranged: bodies lie in blocks of neighbours along the chain, and
 * blocks beyond its reach are passed over. Every pair counts as an integer, so
 * that sums kept up to date move by move are those that adding up afresh would
 * give, to the bit. */
#ifndef TSR_MAPS_OVERLAP_H
#define TSR_MAPS_OVERLAP_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TSR_OVERLAP_TYPES = 21,
    TSR_OVERLAP_PARTS = 6, /* Gaussians of a kernel, at most */
    TSR_OVERLAP_BLOCK = 8
};

/* The kernel of two types, a and b: the sum over its parts of
 * height[a][b] exp(-falls[a][b] r^2). It is symmetric, to the bit. */
typedef struct {
    int n_part;
    float falls[TSR_OVERLAP_PARTS][TSR_OVERLAP_TYPES][TSR_OVERLAP_TYPES];
    float height[TSR_OVERLAP_PARTS][TSR_OVERLAP_TYPES][TSR_OVERLAP_TYPES];
    float reach_ang; /* 0 beyond */
    double unit;     /* what the integer 1 means */
} tsr_overlap_kernel;

/* Bodies of unit height and variance[type] (Angstrom^2, along an axis; 0: does
 * not occur), whose product is blurred by part [n_part] Gaussians more of
 * `extra` (Angstrom^2) and weights share. n_part 1, share 1, extra 0: the plain
 * product. `volume`: of a voxel, Angstrom^3. */
void tsr_overlap_make(const double *weight, const double *variance, int n_part,
                      const double *share, const double *extra, double volume,
                      tsr_overlap_kernel *out);

/* The kernel of a body with itself, or with another in its place. */
double tsr_overlap_self(const tsr_overlap_kernel *kernel, int type);

/* Bodies up to whole blocks; floats that a conformation of n takes. Types are
 * given for all of the former, any beyond n. */
int tsr_overlap_bodies(int n);
size_t tsr_overlap_room(int n);

/* The kernel of each type with each of the bodies: for all of its parts how
 * fast it falls, [bodies], and how high it is. A pair's would have to be looked
 * up number by number, which took as long as all the rest; in rows, vector
 * instructions read it. Floats that rows of n bodies take; to be made anew with
 * the kernel. */
size_t tsr_overlap_row_room(int n_part, int n);
void tsr_overlap_make_rows(const tsr_overlap_kernel *kernel, int n,
                           const unsigned char *type, float *rows);

/* Puts bodies first .. first + count - 1 of n at xyz [n][3]; whole blocks are
 * looked at anew. */
void tsr_overlap_place(int n, int first, int count, const double (*xyz)[3],
                       float *place);

/* The sum of the kernel, as an integer, over all (i, j) and (j, i) of a body i
 * of `moved` [n_moved] (ascending) and another j. is_in: scratch for all
 * bodies, -1 each before and after. */
int64_t tsr_overlap_own(const tsr_overlap_kernel *kernel, int n,
                        const unsigned char *type, const float *rows,
                        const float *place, int n_moved, const int *moved,
                        int *is_in);

/* Twice the sum over bodies i of `moved`, at `place`, and all j at `other`. */
int64_t tsr_overlap_between(const tsr_overlap_kernel *kernel, int n,
                            const unsigned char *type, const float *rows,
                            const float *place, int n_moved, const int *moved,
                            const float *other);

#endif
