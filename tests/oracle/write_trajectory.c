/* Trajectories of two known states, into a run's folder beside its model.pdb:
 * the second half of the residues turned by 0 or by 2 rad about the middle one,
 * with a little noise, in any orientation. Three draws of ten are turned.
 *
 *     write_trajectory DIRECTORY N_CHAIN N_FRAME */
#include "core/random.h"
#include "core/vec3.h"
#include "molecule/structure.h"
#include "store/trajectory.h"
#include "tests/frame.h"
#include "tests/oracle/writer.h"

#include <gsl/gsl_randist.h>

static void conformation(const tsr_model_atoms *m, gsl_rng *rng, double (*x)[3])
{
    const int hinge = m->ca[m->n_residue / 2];
    const double angle =
        (gsl_rng_uniform(rng) < 0.3 ? 2.0 : 0.0) + gsl_ran_gaussian(rng, 0.1);
    double from[3], to[3], axis[3];
    const double zero[3] = {0, 0, 0};
    tsr_motion turn, tumble;
    tsr_vec3_copy(from, &m->xyz[3 * hinge]);
    tsr_vec3_copy(to, from);
    to[0] += 0.3, to[1] += 1.0, to[2] += 0.2;
    tsr_motion_about(&turn, from, to, angle);
    gsl_ran_dir_3d(rng, &axis[0], &axis[1], &axis[2]);
    tsr_motion_about(&tumble, zero, axis, 6.0 * gsl_rng_uniform(rng));
    for (int i = 0; i < m->n_atom; i++) {
        tsr_vec3_copy(x[i], &m->xyz[3 * i]);
        if (i > hinge)
            tsr_motion_apply(&turn, x[i]);
        tsr_motion_apply(&tumble, x[i]);
    }
}

int main(int argc, char **argv)
{
    char path[1000];
    tsr_model_atoms *m;
    tsr_err err;
    if (argc != 4)
        return 64;
    snprintf(path, sizeof path, "%s/model.pdb", argv[1]);
    must(tsr_model_atoms_read(path, &m, &err), &err);
    double(*x)[3] = allocate((size_t)m->n_atom, sizeof *x);
    for (int c = 0; c < atoi(argv[2]); c++) {
        const tsr_trajectory_spec spec = {
            .n_atom = m->n_atom, .chain = c, .stride = 1};
        tsr_trajectory *trajectory;
        gsl_rng *rng = tsr_rng_new(7, (uint64_t)c);
        snprintf(path, sizeof path, "%s/trajectory-%03d.h5", argv[1], c);
        must(tsr_trajectory_create(path, &spec, &trajectory, &err), &err);
        for (int f = 0; f < atoi(argv[3]); f++) {
            conformation(m, rng, x);
            must(frame_append(trajectory, f, m->n_atom, x[0], &err), &err);
        }
        must(tsr_trajectory_close(trajectory, &err), &err);
        gsl_rng_free(rng);
    }
    free(x);
    tsr_model_atoms_free(m);
    return 0;
}
