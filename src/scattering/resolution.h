/* The resolution of the instrument: a measured point at q is a mean of I over
 * neighbouring q. This file has the options of a configuration, and the
 * resolution that follows from the options and the data file.
 *
 *     sigma of q  I_k = mean of I(q') over a normal distribution about q_k with
 *                 standard deviation sigma_k, truncated at q' = 0 and 4 sigma
 *     slit width  mean over q' uniformly within W of q_k
 *     slit length mean over sqrt(q'^2 + u^2), u uniformly from 0 to L, or with
 *                 the weights of a measured beam profile
 *
 * The three apply one after the other. Sources: Pedersen, Posselt & Mortensen
 * 1990, J. Appl. Cryst. 23, 321; Guinier & Fournet 1955, Small-Angle Scattering
 * of X-rays, ch. 4. scattering/q_grid.h has the integrals. */
#ifndef TSR_SCATTERING_RESOLUTION_H
#define TSR_SCATTERING_RESOLUTION_H

#include "core/field.h"
#include "core/pool.h"
#include "core/status.h"

#define TSR_RESOLUTION_REACH 4.0 /* truncation of the normal, in sigma */

enum { TSR_DQ_NONE, TSR_DQ_COLUMN, TSR_DQ_AUTO };

typedef struct {
    tsr_number_or_word dq;    /* none, column, auto (the column if the file has
                                 one), or sigma of q in 1/Angstrom */
    double wavelength_spread; /* full width at half maximum / mean of the
                                 wavelength */
    double slit_length, slit_width; /* half lengths, 1/Angstrom; 0: no slit */
    char *beam_profile;             /* file name; NULL: no beam profile */
} tsr_resolution_options;

/* The fields for X-rays and for neutrons. The fourth column of a neutron file
 * is usually sigma of q, so the default of dq is auto for neutrons and none for
 * X-rays. */
extern const tsr_field tsr_resolution_fields[];
extern const tsr_field tsr_resolution_neutron_fields[];

/* A group of these options; a bare value is a value of dq. */
#define TSR_RESOLUTION_FIELD(NAME, OFFSET, FIELDS)                             \
    {                                                                          \
        .name = (NAME), .type = TSR_FIELD_GROUP, .offset = (OFFSET),           \
        .fields = (FIELDS), .alias = "dq",                                     \
        .doc =                                                                 \
            "instrumental resolution, with which the model's curve is smeared" \
    }

/* A resolution with all members zero is an ideal instrument. */
typedef struct {
    double *sigma; /* [n] sigma of q at each point, 1/Angstrom; NULL: all 0 */
    double slit_length, slit_width; /* as in the options */
    int n_beam;                     /* points of the beam profile; 0: none */
    double *beam_u;                 /* [n_beam] ascending, 1/Angstrom */
    double *beam; /* [n_beam] weights at beam_u, >= 0, linear in between */
} tsr_resolution;

/* The resolution at n points q. dq [n]: fourth column of the file; NULL: the
 * file has none. In memory of the pool. Errors: TSR_E_CONFIG (the message
 * begins with the key), TSR_E_DATA (a missing or impossible column, an
 * impossible beam profile), those of reading the beam profile. */
tsr_status tsr_resolution_make(const tsr_resolution_options *options, int n,
                               const double *q_inv_ang, const double *dq,
                               tsr_pool *pool, tsr_resolution *out,
                               tsr_err *err);

/* 1 if the curve is not smeared. */
int tsr_resolution_is_ideal(const tsr_resolution *resolution);

/* Largest q at which the model's curve is needed for smeared points at n
 * ascending q. */
double tsr_resolution_q_max(const tsr_resolution *resolution, int n,
                            const double *q_inv_ang);

/* Description: "sigma of q 0.0012 to 0.003 1/A, slit length 0.1 1/A", or
 * "none". */
void tsr_resolution_text(const tsr_resolution *resolution, int n, char *text,
                         size_t size);

#endif
