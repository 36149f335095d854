/* How much of a body water can reach, guessed from the number of its neighbours
 * within a soft sphere: a logistic curve for each type, fitted to exposures
 * from all atoms. */
#include "scattering/form_factor.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

tsr_exposure_model tsr_exposure_model_of(tsr_body_model model)
{
    tsr_exposure_model m = {.near_ang = 4.0, .far_ang = 10.0, .carry = 0.33};
    if (model == TSR_BODIES_ONE)
        m.near_ang = 3.3, m.far_ang = 11.1, m.carry = 0.5;
    return m;
}

/* u of two bodies at the square of their distance. */
static double share_of(const tsr_exposure_model *model, double d2)
{
    double near = model->near_ang, far = model->far_ang;
    if (d2 >= far * far)
        return 0.0;
    double x = (sqrt(d2) - near) / (far - near);
    return x <= 0.0 ? 1.0 : 0.5 * (1.0 + cos(pi * x));
}

void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count)
{
    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double share = share_of(model, tsr_vec3_distance2(xyz[i], xyz[j]));
            count[i] += share;
            count[j] += share;
        }
}

double tsr_exposure_at(const tsr_exposure_type *type, double count)
{
    if (type->largest == 0.0)
        return 0.0;
    return type->largest / (1.0 + exp((count - type->middle) / type->width));
}

/* The bodies around each body, once to count and once to give. */
static void give(const tsr_exposure_model *model, int n, const double (*xyz)[3],
                 const int *dry, double *count, double *part, double *exposure)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                double u = share_of(model, tsr_vec3_distance2(xyz[i], xyz[j]));
                if (u == 0.0 || (dry != NULL && (dry[i] || dry[j])))
                    continue;
                count[i] += pass == 0 ? u : 0.0;
                count[j] += pass == 0 ? u : 0.0;
                exposure[i] += u * (part[i] - part[j]);
                exposure[j] += u * (part[j] - part[i]);
            }
        for (int i = 0; i < n && pass == 0; i++)
            part[i] =
                count[i] > 0.0 ? model->carry * exposure[i] / count[i] : 0.0;
    }
}

tsr_status tsr_exposure_carry(const tsr_exposure_model *model, int n,
                              const double (*xyz)[3], const int *dry,
                              double *exposure, tsr_err *err)
{
    double *count = calloc(2 * (size_t)n + 1, sizeof *count);
    if (count == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n);
    if (model->carry != 0.0)
        give(model, n, xyz, dry, count, count + n, exposure);
    free(count);
    return TSR_OK;
}
