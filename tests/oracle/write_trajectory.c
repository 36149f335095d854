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

#include <gsl/gsl_randist.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static tsr_status write_chain(const char *directory, const tsr_model_atoms *m,
                              int chain, int n_frame, tsr_err *err)
{
    char path[1000];
    tsr_trajectory *trajectory = NULL;
    const tsr_trajectory_spec spec = {
        .n_atom = m->n_atom, .chain = chain, .stride = 1};
    gsl_rng *rng = tsr_rng_new(7, (uint64_t)chain);
    double(*x)[3] = calloc((size_t)m->n_atom, sizeof *x);
    snprintf(path, sizeof path, "%s/trajectory-%03d.h5", directory, chain);
    tsr_status status =
        rng != NULL && x != NULL
            ? tsr_trajectory_create(path, &spec, &trajectory, err)
            : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int f = 0; f < n_frame && status == TSR_OK; f++) {
        conformation(m, rng, x);
        status = frame_append(trajectory, f, m->n_atom, x[0], err);
    }
    tsr_status closed =
        tsr_trajectory_close(trajectory, status == TSR_OK ? err : NULL);
    gsl_rng_free(rng);
    free(x);
    return status != TSR_OK ? status : closed;
}

int main(int argc, char **argv)
{
    char path[1000];
    tsr_model_atoms *atoms = NULL;
    tsr_err err;
    if (argc != 4) {
        fprintf(stderr, "usage: write_trajectory DIRECTORY N_CHAIN N_FRAME\n");
        return tsr_exit_status(TSR_E_USAGE);
    }
    const int n_chain = atoi(argv[2]), n_frame = atoi(argv[3]);
    snprintf(path, sizeof path, "%s/model.pdb", argv[1]);
    tsr_status status = tsr_model_atoms_read(path, &atoms, &err);
    for (int c = 0; c < n_chain && status == TSR_OK; c++)
        status = write_chain(argv[1], atoms, c, n_frame, &err);
    tsr_model_atoms_free(atoms);
    if (status != TSR_OK)
        fprintf(stderr, "%s\n", err.message);
    return tsr_exit_status(status);
}
