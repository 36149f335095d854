#include "sampler/contrast_axes.h"

#include <math.h>

static int both(const tsr_contrast_prior *prior)
{
    return prior[TSR_C1].infer && prior[TSR_C2].infer;
}

double tsr_contrast_unit(const tsr_contrast_prior *prior)
{
    return fmin(prior->width, prior->high - prior->low);
}

void tsr_contrast_axes_learn(tsr_contrast_axes *axes,
                             const tsr_contrast_prior *prior,
                             const double *value)
{
    enum { LEAST = 100 };
    tsr_contrast_axes *a = axes;
    double gain = 2.0 / (a->n + 3.0), d[TSR_N_CONTRAST];
    if (!both(prior))
        return;
    for (int i = 0; i < TSR_N_CONTRAST; i++) {
        d[i] = value[i] / tsr_contrast_unit(&prior[i]) - a->mean[i];
        a->mean[i] += (a->n > 0.0 ? gain : 1.0) * d[i];
    }
    if (a->n++ == 0.0)
        return;
    a->square[0] += gain * (d[0] * d[0] - a->square[0]);
    a->square[1] += gain * (d[0] * d[1] - a->square[1]);
    a->square[2] += gain * (d[1] * d[1] - a->square[2]);
    if (a->n >= LEAST)
        a->angle = 0.5 * atan2(2.0 * a->square[1], a->square[0] - a->square[2]);
}

void tsr_contrast_axes_step(const tsr_contrast_axes *axes,
                            const tsr_contrast_prior *prior, int which,
                            double length, double *value)
{
    double angle = both(prior) ? axes->angle : 0.0;
    double along[TSR_N_CONTRAST] = {cos(angle), sin(angle)};
    double across[TSR_N_CONTRAST] = {-along[TSR_C2], along[TSR_C1]};
    const double *direction = which == TSR_C1 ? along : across;
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        if (prior[i].infer)
            value[i] += length * direction[i] * tsr_contrast_unit(&prior[i]);
}

void tsr_contrast_axes_archive(tsr_contrast_axes *axes, tsr_archive *archive)
{
    tsr_archive_real(archive, &axes->n, 1);
    tsr_archive_real(archive, axes->mean, 2);
    tsr_archive_real(archive, axes->square, 3);
    tsr_archive_real(archive, &axes->angle, 1);
}
