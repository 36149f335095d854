/* What the instrument does to a curve before it is written down: the point at q
 * holds a mean of I over neighbouring q. Options of a configuration, and what
 * they and the file say together.
 *
 *     sigma of q  I_k = mean of I(q') over a normal distribution about q_k of
 *                 standard deviation sigma_k, cut at q' = 0 and four sigma
 *     slit width  ... over q' evenly within W of q_k
 *     slit length ... over sqrt(q'^2 + u^2), u evenly from 0 to L, or with the
 *                 weights of a measured beam profile
 *
 * one after the other. Sources: Pedersen, Posselt & Mortensen 1990, J. Appl.
 * Cryst. 23, 321; Guinier & Fournet 1955, Small-Angle Scattering of X-rays, ch.
 * 4. The sums themselves: scattering/q_grid.h. */
#ifndef TSR_SCATTERING_RESOLUTION_H
#define TSR_SCATTERING_RESOLUTION_H

#include "core/field.h"
#include "core/pool.h"
#include "core/status.h"

#define TSR_RESOLUTION_REACH 4.0 /* sigma */

enum { TSR_DQ_NONE, TSR_DQ_COLUMN, TSR_DQ_AUTO };

typedef struct {
    tsr_number_or_word dq;    /* none, column, auto (the column where there is
                                 one), or sigma of q, 1/Angstrom */
    double wavelength_spread; /* full width at half maximum over the mean */
    double slit_length, slit_width; /* 1/Angstrom, half of the slit's; 0: none
                                     */
    char *beam_profile;             /* a file; NULL: none */
} tsr_resolution_options;

/* Of X-rays, and of neutrons, whose files have sigma of q as their fourth
 * column: the default of dq is none or auto. */
extern const tsr_field tsr_resolution_fields[];
extern const tsr_field tsr_resolution_neutron_fields[];

/* A group of these options; a bare value is that of dq. */
#define TSR_RESOLUTION_FIELD(NAME, OFFSET, FIELDS)                             \
    {                                                                          \
        .name = (NAME), .type = TSR_FIELD_GROUP, .offset = (OFFSET),           \
        .fields = (FIELDS), .alias = "dq",                                     \
        .doc =                                                                 \
            "instrumental resolution, with which the model's curve is smeared" \
    }

/* All zeroes: an ideal instrument. */
typedef struct {
    double *sigma; /* [n] of q at each point, 1/Angstrom, 0: sharp; NULL: all */
    double slit_length, slit_width; /* as above */
    int n_beam;                     /* points of the beam profile; 0: none */
    double *beam_u;                 /* [n_beam] ascending, 1/Angstrom */
    double *beam; /* [n_beam] weights at these, not negative, linear between
                   */
} tsr_resolution;

/* From options to what holds at n points q. dq [n]: the file's fourth column;
 * NULL: it has none. Errors: TSR_E_CONFIG (beginning with the key), TSR_E_DATA
 * (a column or a beam profile that cannot be one), those of reading. Its memory
 * is of the pool. */
tsr_status tsr_resolution_make(const tsr_resolution_options *options, int n,
                               const double *q_inv_ang, const double *dq,
                               tsr_pool *pool, tsr_resolution *out,
                               tsr_err *err);
/* Whether they ask for anything but an ideal instrument. */
int tsr_resolution_is_asked(const tsr_resolution_options *options);

/* Whether points are what they are at their own q. */
int tsr_resolution_is_ideal(const tsr_resolution *resolution);

/* Up to which q the curve has to be known for that at n ascending q. */
double tsr_resolution_q_max(const tsr_resolution *resolution, int n,
                            const double *q_inv_ang);

/* "sigma of q 0.0012 to 0.003 1/A, slit length 0.1 1/A"; "none". */
void tsr_resolution_text(const tsr_resolution *resolution, int n, char *text,
                         size_t size);

#endif
