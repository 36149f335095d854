#include "analysis/circular.h"

#include <gsl/gsl_math.h>

#include <float.h>
#include <math.h>
#include <string.h>

double tsr_circular_turn(const char *unit)
{
    static const struct {
        const char *name;
        double turn;
    } known[] = {{"rad", 2.0 * M_PI},     {"radian", 2.0 * M_PI},
                 {"radians", 2.0 * M_PI}, {"deg", 360.0},
                 {"degree", 360.0},       {"degrees", 360.0}};
    for (size_t i = 0; unit != NULL && i < sizeof known / sizeof *known; i++)
        if (strcmp(unit, known[i].name) == 0)
            return known[i].turn;
    return 0.0;
}

/* x + k turn that lies in (-turn/2, turn/2]. */
static double wrap(double x, double turn)
{
    double y = x - turn * floor(x / turn + 0.5);
    return y <= -0.5 * turn ? y + turn : y;
}

tsr_status tsr_circular_make(int n_group, int n_chain, int n_draw, double turn,
                             double *value, tsr_convergence *out, tsr_err *err)
{
    const size_t n = (size_t)n_chain * (size_t)n_draw;
    const double to_rad = 2.0 * M_PI / turn;
    double sum_sin = 0.0, sum_cos = 0.0, low = HUGE_VAL, high = -HUGE_VAL;

    for (size_t i = 0; i < n; i++) {
        sum_sin += sin(to_rad * value[i]);
        sum_cos += cos(to_rad * value[i]);
        low = fmin(low, value[i]);
        high = fmax(high, value[i]);
    }
    double mean = atan2(sum_sin, sum_cos) / to_rad;
    /* 1 - R about that mean, of which little is left where R is almost 1 */
    double missing = 0.0;
    for (size_t i = 0; i < n && isfinite(mean); i++) {
        value[i] = wrap(value[i] - mean, turn);
        const double half = sin(0.5 * to_rad * value[i]);
        missing += 2.0 * half * half / (double)n;
    }
    tsr_status status =
        tsr_convergence_of_groups(n_group, n_chain, n_draw, value, out, err);
    if (status != TSR_OK || isnan(out->mean))
        return status;
    if (low >= 0.0 && high > 0.5 * turn && mean < 0.0)
        mean += turn;
    out->mean = mean;
    out->median += mean;
    out->q5 += mean;
    out->q95 += mean;
    if (out->sd > 0.0)
        out->sd =
            sqrt(-2.0 * log1p(-fmin(missing, 1.0 - DBL_EPSILON))) / to_rad;
    return TSR_OK;
}
