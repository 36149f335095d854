/* The resolution of a data set, from its options and the fourth column of its
 * file. */
#include "scattering/resolution.h"

#include "scattering/saxs_table.h"

#include <math.h>
#include <stdio.h>

static const char *const dq_words[] = {"none", "column", "auto", NULL};

/* All fields, with a given default of dq. */
#define FIELDS(WORD)                                                           \
    {                                                                          \
        TSR_FIELD(NUMBER_OR_WORD, "dq", tsr_resolution_options, dq,            \
                  .unit = "1/Angstrom", .initial = (WORD), .min = 0.0,         \
                  .max = 1.0, .words = dq_words,                               \
                  .doc = "standard deviation of q at every point; column: "    \
                         "the fourth column of the file, or Qdev of canSAS's " \
                         "formats; auto: this column if there is one"),        \
            TSR_FIELD(                                                         \
                DOUBLE, "wavelength_spread", tsr_resolution_options,           \
                wavelength_spread, .initial = "0", .min = 0.0, .max = 0.5,     \
                .doc = "full width at half maximum over the mean of the "      \
                       "triangular spectrum of a velocity selector: "          \
                       "adds (q spread)^2 / 6 to the variance of q"),          \
            TSR_FIELD(                                                         \
                DOUBLE, "slit_length", tsr_resolution_options, slit_length,    \
                .unit = "1/Angstrom", .initial = "0", .min = 0.0, .max = 10.0, \
                .doc = "half length of the slit, across the direction of q"),  \
            TSR_FIELD(DOUBLE, "slit_width", tsr_resolution_options,            \
                      slit_width, .unit = "1/Angstrom", .initial = "0",        \
                      .min = 0.0, .max = 1.0,                                  \
                      .doc = "half width of the slit, along q"),               \
            TSR_FIELD(STRING, "beam_profile", tsr_resolution_options,          \
                      beam_profile, .is_path = 1,                              \
                      .doc = "file with the beam profile instead of "          \
                             "slit_length: u (1/Angstrom, across the "         \
                             "direction of q) and intensity"),                 \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

const tsr_field tsr_resolution_fields[] = FIELDS("none");
const tsr_field tsr_resolution_neutron_fields[] = FIELDS("auto");

/* ---- the beam profile ---- */

static tsr_status check_beam(const char *path, const tsr_resolution *r,
                             tsr_err *err)
{
    double sum = 0.0;
    for (int i = 0; i < r->n_beam; i++) {
        if (!(fabs(r->beam_u[i]) <= 10.0) || !(r->beam[i] >= 0.0) ||
            !isfinite(r->beam[i]) ||
            (i > 0 && !(r->beam_u[i] > r->beam_u[i - 1])))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': row %d of the beam profile is %g, %g; "
                            "expected ascending u (1/Angstrom, up to 10) and "
                            "intensities of 0 or more",
                            path, i + 1, r->beam_u[i], r->beam[i]);
        if (i > 0)
            sum += 0.5 * (r->beam[i] + r->beam[i - 1]) *
                   (r->beam_u[i] - r->beam_u[i - 1]);
    }
    return sum > 0.0
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "'%s': the beam profile has no intensity", path);
}

static tsr_status read_beam(const char *path, tsr_pool *pool, tsr_resolution *r,
                            tsr_err *err)
{
    tsr_saxs_table table;
    TSR_TRY(tsr_saxs_table_read(path, pool, &table, err));
    r->n_beam = table.n;
    tsr_pool_array(pool, r->beam_u, table.n);
    tsr_pool_array(pool, r->beam, table.n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < table.n; i++) {
        r->beam_u[i] = table.row[i].value[0];
        r->beam[i] = table.row[i].value[1];
    }
    return check_beam(path, r, err);
}

/* ---- sigma of q ---- */

/* Refuses a fourth column that is no standard deviation of q. Files of
 * slit-smeared curves at ultra-small angles have negative numbers there: minus
 * the length of the slit. */
static tsr_status check_column(int n, const double *q, const double *dq,
                               tsr_err *err)
{
    for (int k = 0; k < n; k++)
        if (!(dq[k] >= 0.0) || !isfinite(dq[k]) || dq[k] > 1.0)
            return tsr_fail(
                err, TSR_E_DATA,
                "dq: the fourth column is %g at q = %g 1/A, which is not a "
                "standard deviation of q%s",
                dq[k], q[k],
                dq[k] < 0.0 ? "; in a slit-smeared curve this is the slit "
                              "length with its sign changed: give slit_length"
                            : "; set dq: none, or a number");
    return TSR_OK;
}

/* Sets r->sigma from the column or the number, and from the spread of the
 * wavelength; NULL stays if all of them are absent or 0. */
static tsr_status find_sigma(const tsr_resolution_options *o, int n,
                             const double *q, const double *dq, tsr_pool *pool,
                             tsr_resolution *r, tsr_err *err)
{
    const int wants = o->dq.word == TSR_DQ_COLUMN || o->dq.word == TSR_DQ_AUTO;
    const double number = o->dq.word < 0 ? o->dq.number : 0.0;
    if (o->dq.word == TSR_DQ_COLUMN && dq == NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "dq: the file has no fourth column; give a number in "
                        "1/Angstrom, or none");
    if (wants && dq != NULL)
        TSR_TRY(check_column(n, q, dq, err));
    if (!(wants && dq != NULL) && number == 0.0 && o->wavelength_spread == 0.0)
        return TSR_OK;
    tsr_pool_array(pool, r->sigma, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < n; k++) {
        double sigma = wants && dq != NULL ? dq[k] : number;
        r->sigma[k] = hypot(sigma, q[k] * o->wavelength_spread / sqrt(6.0));
    }
    return TSR_OK;
}

tsr_status tsr_resolution_make(const tsr_resolution_options *options, int n,
                               const double *q_inv_ang, const double *dq,
                               tsr_pool *pool, tsr_resolution *out,
                               tsr_err *err)
{
    const tsr_resolution_options *o = options;
    *out = (tsr_resolution){.slit_length = o->slit_length,
                            .slit_width = o->slit_width};
    if (o->beam_profile != NULL && o->slit_length > 0.0)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "beam_profile replaces the slit length; leave slit_length out");
    if (o->beam_profile != NULL)
        TSR_TRY(read_beam(o->beam_profile, pool, out, err));
    return find_sigma(o, n, q_inv_ang, dq, pool, out, err);
}

int tsr_resolution_is_ideal(const tsr_resolution *resolution)
{
    const tsr_resolution *r = resolution;
    return r->sigma == NULL && r->slit_length == 0.0 && r->slit_width == 0.0 &&
           r->n_beam == 0;
}

double tsr_resolution_q_max(const tsr_resolution *resolution, int n,
                            const double *q_inv_ang)
{
    const tsr_resolution *r = resolution;
    double last = q_inv_ang[n - 1], across = r->slit_length;
    for (int k = 0; k < n && r->sigma != NULL; k++)
        last = fmax(last, q_inv_ang[k] + TSR_RESOLUTION_REACH * r->sigma[k]);
    if (r->n_beam > 0)
        across = fmax(fabs(r->beam_u[0]), fabs(r->beam_u[r->n_beam - 1]));
    return tsr_resolution_is_ideal(r) ? last
                                      : hypot(last + r->slit_width, across);
}

void tsr_resolution_text(const tsr_resolution *resolution, int n, char *text,
                         size_t size)
{
    const tsr_resolution *r = resolution;
    size_t used = 0;
    double low = HUGE_VAL, high = 0.0;
    for (int k = 0; k < n && r->sigma != NULL; k++) {
        low = fmin(low, r->sigma[k]);
        high = fmax(high, r->sigma[k]);
    }
    snprintf(text, size, "none");
    if (r->sigma != NULL && low == high)
        used += (size_t)snprintf(text, size, "sigma of q %.3g 1/A", high);
    else if (r->sigma != NULL)
        used += (size_t)snprintf(text, size, "sigma of q %.3g to %.3g 1/A", low,
                                 high);
    if (r->slit_width > 0.0 && used < size)
        used +=
            (size_t)snprintf(text + used, size - used, "%sslit width %.3g 1/A",
                             used > 0 ? ", " : "", r->slit_width);
    if (r->slit_length > 0.0 && used < size)
        used +=
            (size_t)snprintf(text + used, size - used, "%sslit length %.3g 1/A",
                             used > 0 ? ", " : "", r->slit_length);
    if (r->n_beam > 0 && used < size)
        snprintf(text + used, size - used, "%sbeam profile of %d points",
                 used > 0 ? ", " : "", r->n_beam);
}
