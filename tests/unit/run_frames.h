/* A run's model of CA and its trajectories, in the directory of io_files.h. */
#ifndef TSR_TESTS_RUN_FRAMES_H
#define TSR_TESTS_RUN_FRAMES_H

#include "analysis/frames.h"
#include "core/random.h"
#include "core/vec3.h"
#include "store/trajectory.h"
#include "tests/frame.h"
#include "tests/io_files.h"

/* model.pdb of one glycine's CA after another. */
static inline void run_model(int n, const double (*x)[3])
{
    FILE *out = fopen(io_path("model.pdb"), "w");
    assert_non_null(out);
    for (int i = 0; i < n; i++)
        fprintf(out,
                "ATOM  %5d  CA  GLY A%4d    %8.3f%8.3f%8.3f  1.00  0.00      "
                "     C\n",
                i + 1, i + 1, x[i][0], x[i][1], x[i][2]);
    fclose(out);
}

/* n_frame conformations of n_atom (64 at most) of each chain and state, a draw
 * in `stride`, as `place` puts them, opened as those of a run. */
static inline tsr_frames *
run_frames(int n_chain, int n_state, int n_atom, int n_frame, int stride,
           void (*place)(const void *context, int chain, int state, int frame,
                         gsl_rng *rng, double (*x)[3]),
           const void *context)
{
    tsr_frames *frames;
    for (int f = 0; f < n_chain * n_state; f++) {
        const int c = f / n_state, s = f % n_state;
        char name[40];
        double x[128][3];
        assert_true(n_atom <= 128);
        gsl_rng *rng = rng_new(11, (uint64_t)f);
        const tsr_trajectory_spec spec = {.n_atom = n_atom,
                                          .chain = c,
                                          .state = n_state > 1 ? s + 1 : 0,
                                          .stride = stride};
        tsr_trajectory *t;
        snprintf(name, sizeof name,
                 n_state > 1 ? "trajectory-%03d-%d.h5" : "trajectory-%03d.h5",
                 c, s + 1);
        OK(tsr_trajectory_create(io_path(name), &spec, &t, &err));
        for (int k = 0; k < n_frame; k++) {
            place(context, c, s, k, rng, x);
            OK(frame_append(t, stride * k, n_atom, x[0], &err));
        }
        OK(tsr_trajectory_close(t, &err));
    }
    OK(tsr_frames_open(io_dir, NULL, &frames, &err));
    return frames;
}

/* Turned about an axis through the origin by chance. */
static inline void run_tumble(gsl_rng *rng, int n, double (*x)[3])
{
    const double zero[3] = {0, 0, 0}, axis[3] = {1, 2, -1};
    tsr_motion tumble;
    tsr_motion_about(&tumble, zero, axis, 6.0 * gsl_rng_uniform(rng));
    for (int i = 0; i < n; i++)
        tsr_motion_apply(&tumble, x[i]);
}

#endif
