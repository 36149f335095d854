/* A Monte Carlo loop of the caller's own: two systems of beads, one batch of
 * proposals a step, each of which shifts the second half of the beads as one
 * rigid body. The profile after a step costs the pairs between the halves.
 *
 *     ./proposals [DEVICE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

enum { N = 64, HALF = N / 2, N_Q = 41, N_SYSTEM = 2, N_STEP = 20 };

static void check(int status)
{
    if (status == TESSERA_OK)
        return;
    fprintf(stderr, "tessera: %s\n", tessera_message());
    exit(status);
}

int main(int argc, char **argv)
{
    static double xyz[N_SYSTEM][N][3], moved[N_SYSTEM][HALF][3];
    static double factor[N_Q], profile[N_SYSTEM][N_Q], stored[N_Q];
    static int type[N];
    const int system[N_SYSTEM] = {0, 1}, n_range[N_SYSTEM] = {1, 1};
    const int range[N_SYSTEM][3] = {{HALF, HALF, 1}, {HALF, HALF, 1}};
    const double dq = 0.01; /* 1/Angstrom */
    tessera_engine *engine;
    tessera_batch *batch;
    for (int k = 0; k < N_Q; k++)
        factor[k] = 10.0 * exp(-2.0 * k * dq * k * dq);
    check(tessera_engine_new(N, type, 1, 1, N_Q, dq, factor, 250.0, N_SYSTEM,
                             argc > 1 ? argv[1] : "reference", &engine));
    check(tessera_batch_new(engine, N_SYSTEM, &batch));
    for (int s = 0; s < N_SYSTEM; s++) {
        for (int i = 0; i < N; i++) {
            xyz[s][i][0] = 3.0 * i;
            xyz[s][i][1] = 8.0 * sin(0.6 * i + s);
            xyz[s][i][2] = 8.0 * cos(0.6 * i);
        }
        check(tessera_batch_set(batch, s, xyz[s][0], profile[s]));
    }
    for (int step = 0; step < N_STEP; step++) {
        for (int s = 0; s < N_SYSTEM; s++)
            for (int i = 0; i < HALF; i++)
                for (int c = 0; c < 3; c++)
                    moved[s][i][c] = xyz[s][HALF + i][c] +
                                     (c == 0) * sin(1.0 + step + 3.0 * s);
        check(tessera_batch_propose(batch, N_SYSTEM, system, n_range, range[0],
                                    moved[0][0], profile[0]));
        for (int s = 0; s < N_SYSTEM; s++) {
            /* a caller's criterion; here even steps are accepted */
            if (step % 2 != 0) {
                check(tessera_batch_reject(batch, s));
                continue;
            }
            check(tessera_batch_accept(batch, s));
            for (int i = 0; i < HALF; i++)
                for (int c = 0; c < 3; c++)
                    xyz[s][HALF + i][c] = moved[s][i][c];
        }
    }
    check(tessera_batch_profile(batch, 0, stored));
    for (int k = 0; k < N_Q; k += 10)
        printf("%.2f %.8g\n", k * dq, stored[k]);
    tessera_batch_free(batch);
    tessera_engine_free(engine);
    return 0;
}
