/* The part of the unit sphere that no cap covers, exactly. */
#ifndef TSR_SCATTERING_CAP_UNION_H
#define TSR_SCATTERING_CAP_UNION_H

/* The unit vectors n with n axis > h. */
typedef struct {
    double axis[3];
    double h, s;  /* cosine and sine of the half angle */
    int is_bound; /* whether its circle may bound the part; 0 where the caller
                     knows that other caps cover all of it */
} tsr_cap;

/* What the sums need, for up to n caps. NULL: out of memory. */
typedef struct tsr_cap_room tsr_cap_room;
tsr_cap_room *tsr_cap_room_new(int n);
void tsr_cap_room_free(tsr_cap_room *room);

/* caps [n], no two the same, h within (-1, 1). fraction: of the sphere, the
 * part that they leave; vector: the integral of n over that part, over 4 pi. */
void tsr_cap_union_rest(int n, const tsr_cap *caps, tsr_cap_room *room,
                        double *fraction, double vector[3]);

#endif
