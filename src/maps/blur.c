/* Radii and widths of atoms at a resolution, element by element; the kinds of
 * blur and their usual widths are a table at the top. */
#include "maps/blur.h"

#include "molecule/structure.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979324;

static const struct {
    const char *name;
    double usual; /* sigma / R */
} kinds[] = {{"gaussian", 0.225}, {"radius", 0.30}, {"electron", 0.225}};

const char *tsr_blur_name(tsr_blur kind)
{
    return kinds[kind].name;
}

double tsr_blur_usual(tsr_blur kind)
{
    return kinds[kind].usual;
}

tsr_status tsr_blur_find(const char *name, tsr_blur *out, tsr_err *err)
{
    for (int k = 0; k < 3; k++)
        if (strcmp(name, kinds[k].name) == 0) {
            *out = (tsr_blur)k;
            return TSR_OK;
        }
    return tsr_fail(err, TSR_E_USAGE,
                    "--kernel '%s': expected gaussian, radius or electron",
                    name);
}

/* VMD's, of the paper. */
static double radius(int z)
{
    switch (z) {
    case 1:
        return 1.0;
    case 7:
        return 1.4;
    case 8:
        return 1.3;
    case 9:
        return 1.2;
    case 16:
        return 1.9;
    default:
        return 1.5;
    }
}

static void add(tsr_blur_table *table, int z, double amplitude, double sigma)
{
    table->gaussian[table->n++] = (tsr_gaussian){
        .amplitude = amplitude,
        .sigma_ang = sigma,
        .is_atom = table->count[z] == 0,
    };
    table->count[z]++;
}

/* The transform of a exp(-b s^2), s = sin(theta) / lambda, is
 * a (4 pi / b)^(3/2) exp(-4 pi^2 r^2 / b): a Gaussian of variance b / 8 pi^2,
 * to which the blur's is added. */
static tsr_status add_electron(tsr_blur_table *table, int z, double sigma,
                               tsr_err *err)
{
    double a[5], b[5];
    if (!tsr_atom_electron_gaussians(z, a, b))
        return tsr_fail(err, TSR_E_DATA,
                        "no electron form factor is known for element %d; take "
                        "--kernel gaussian",
                        z);
    for (int k = 0; k < 5; k++) {
        double variance = sigma * sigma + b[k] / (8.0 * pi * pi);
        add(table, z, a[k] * pow(2.0 * pi * variance, -1.5), sqrt(variance));
    }
    return TSR_OK;
}

tsr_status tsr_blur_make(tsr_blur kind, double resolution_ang,
                         double sigma_over_r, int n_atom, const int *z,
                         tsr_blur_table *out, tsr_err *err)
{
    const double sigma = sigma_over_r * resolution_ang;
    *out = (tsr_blur_table){.kind = kind,
                            .resolution_ang = resolution_ang,
                            .sigma_over_r = sigma_over_r};
    for (int i = 0; i < n_atom; i++) {
        const int e = z[i];
        if (e < 1 || e >= TSR_MOST_ELEMENTS || out->n > TSR_MOST_GAUSSIANS - 5)
            return tsr_fail(err, TSR_E_DATA,
                            "an atom of element %d has no place in the table "
                            "of blurred atoms",
                            e);
        if (out->count[e] > 0)
            continue;
        out->first[e] = out->n;
        if (kind == TSR_BLUR_GAUSSIAN)
            add(out, e, e, sigma);
        else if (kind == TSR_BLUR_RADIUS)
            add(out, e, 1.0, sigma * radius(e) / 1.5);
        else
            TSR_TRY(add_electron(out, e, sigma, err));
    }
    return TSR_OK;
}
