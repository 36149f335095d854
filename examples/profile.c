/* The curve of a structure, and its fit to data:
 *
 *     cc profile.c $(pkg-config --cflags --libs tessera) -o profile
 *     ./profile model.pdb [curve.dat]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

static void check(int status)
{
    if (status == TESSERA_OK)
        return;
    fprintf(stderr, "tessera: %s\n", tessera_message());
    exit(status);
}

int main(int argc, char **argv)
{
    enum { N = 26 };
    double q[N], intensity[N], fit[TESSERA_FIT_N_NUMBER];
    tessera_profiler *profiler;
    tessera_profile *profile;
    tessera_data *data;
    if (argc < 2)
        return TESSERA_E_USAGE;
    check(tessera_profiler_new(TESSERA_ATOMS, 0.5, "reference", &profiler));
    check(tessera_profile_file(profiler, argv[1], &profile));
    for (int k = 0; k < N; k++)
        q[k] = 0.5 * k / (N - 1);
    check(tessera_profile_intensity(profile, 1.0, 0.5, N, q, intensity));
    for (int k = 0; k < N; k++)
        printf("%.8g %.8g\n", q[k], intensity[k]);
    if (argc > 2) {
        check(tessera_data_read(argv[2], 0.0, 0.5, 0, &data));
        check(tessera_fit(profile, data, NULL, NULL, (double)NAN,
                          TESSERA_FIT_N_NUMBER, fit, NULL));
        printf("# chi2 %.6g, c1 %.4f, c2 %.4f, scale %.6g, background %.6g\n",
               fit[TESSERA_FIT_CHI2], fit[TESSERA_FIT_C1], fit[TESSERA_FIT_C2],
               fit[TESSERA_FIT_SCALE], fit[TESSERA_FIT_BACKGROUND]);
        tessera_data_free(data);
    }
    tessera_profile_free(profile);
    tessera_profiler_free(profiler);
    return 0;
}
