/* Writes the files of a run into a folder and then kills itself, for
 * run_files.py: model.pdb, trajectory-000.h5, trace.h5 with labelled
 * dimensions, checkpoint.h5.
 *
 *     write_run DIRECTORY */
#include "molecule/structure.h"
#include "store/checkpoint.h"
#include "store/trace.h"
#include "store/trajectory.h"
#include "tests/oracle/writer.h"

#include <limits.h>
#include <signal.h>

enum { N_RESIDUE = 120, N_ATOM = 5 * N_RESIDUE, N_FRAME = 30, N_CHAIN = 2 };

static const char *const moves[] = {"pivot", "crankshaft", "Ram\xc3\xa9"};

static void conformation(int frame, double xyz[][3])
{
    for (int i = 0; i < N_ATOM; i++) {
        xyz[i][0] = 0.75 * i - 100;
        xyz[i][1] = 10.0 + frame;
        xyz[i][2] = 0.125 * (i % 7) - 0.5 * frame;
    }
}

static void write_model(const char *path, tsr_err *err)
{
    static const char *const names[] = {"N", "CA", "C", "O", "SC"};
    tsr_model_atoms *m = tsr_model_atoms_new(N_ATOM);
    must(m == NULL ? TSR_E_NOMEM : TSR_OK, err);
    conformation(0, (double(*)[3])m->xyz);
    for (int i = 0; i < N_ATOM; i++) {
        tsr_model_atom *a = &m->atom[i];
        *a = (tsr_model_atom){.residue = "LEU",
                              .chain = i / 5 < 70 ? 'A' : 'B',
                              .number = 1 + i / 5,
                              .insertion = ' '};
        snprintf(a->name, sizeof a->name, "%s", names[i % 5]);
        snprintf(a->element, sizeof a->element, "%c", "NCCOC"[i % 5]);
    }
    must(tsr_model_atoms_write(m, path, "a test", err), err);
    tsr_model_atoms_free(m);
}

static void write_trajectory(const char *path, tsr_err *err)
{
    static double xyz[N_ATOM][3];
    static float single[N_ATOM][3];
    const tsr_trajectory_observable observable[] = {
        {"lp", NULL}, {"rg", "Angstrom"}, {"weight", NULL}};
    const tsr_trajectory_spec spec = {.n_atom = N_ATOM,
                                      .n_observable = 3,
                                      .observable = observable,
                                      .stride = 10};
    tsr_trajectory *t;
    must(tsr_trajectory_create(path, &spec, &t, err), err);
    for (int f = 0; f < N_FRAME; f++) {
        const double value[] = {-f, 20 + f, 0.5};
        const int64_t step = 10 * f;
        conformation(f, xyz);
        for (int i = 0; i < 3 * N_ATOM; i++)
            single[i / 3][i % 3] = (float)xyz[i / 3][i % 3];
        must(tsr_trajectory_append(t, 1, &step, single[0], value, err), err);
    }
    must(tsr_trajectory_close(t, err), err);
}

static void write_trace(const char *path, tsr_err *err)
{
    const double temperature[] = {1, 1.5, 2.25};
    const tsr_trace_variable variable[] = {
        VARIABLE(POSTERIOR, "rg", .unit = "Angstrom", .n = 1),
        VARIABLE(SAMPLE_STATS, "accepted", .dim = "move", .n = 3,
                 .coord_label = moves),
        VARIABLE(SAMPLE_STATS, "swaps", .dim = "temperature", .n = 3,
                 .coord = temperature)};
    const double value[N_CHAIN][2][3] = {{{0, 1, 2}, {3, 4, 5}},
                                         {{6, 7, 8}, {9, 10, 11}}};
    const double rg[N_CHAIN][2] = {{20, 21}, {22, 23}};
    tsr_trace *trace;
    must(tsr_trace_create(path, N_CHAIN, 3, variable, 0, NULL, &trace, err),
         err);
    must(tsr_trace_append(trace, 0, 2, &rg[0][0], err), err);
    for (int v = 1; v < 3; v++)
        must(tsr_trace_append(trace, v, 2, &value[0][0][0], err), err);
    must(tsr_trace_close(trace, err), err);
}

static void write_checkpoint(const char *path, tsr_err *err)
{
    tsr_archive archive = {0};
    double value[] = {0.5, -1.25};
    long counter[] = {LONG_MIN, 1, 2};
    char text[] = "seed: 1\n", *config = text;
    const tsr_checkpoint_member members[] = {
        {"chain", .archive = &archive}, {"config", .text = &config}, {0}};
    tsr_archive_real(&archive, value, 2);
    tsr_archive_long(&archive, counter, 3);
    must(tsr_checkpoint_write(path, "00ff", members, err), err);
    tsr_archive_clear(&archive);
}

int main(int argc, char **argv)
{
    tsr_err err = {0};
    if (argc != 2)
        return 64;
    write_model(new_file(argv[1], "model.pdb"), &err);
    write_trajectory(new_file(argv[1], "trajectory-000.h5"), &err);
    write_trace(new_file(argv[1], "trace.h5"), &err);
    write_checkpoint(new_file(argv[1], "checkpoint.h5"), &err);
    raise(SIGKILL);
    return 1;
}
