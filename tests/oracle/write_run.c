/* Writes the files of a run into a folder and then kills itself, for
 * run_files.py: model.pdb, trajectory-000.h5, trace.h5 with labelled
 * dimensions, checkpoint.h5.
 *
 *     write_run DIRECTORY */
#include "molecule/structure.h"
#include "store/checkpoint.h"
#include "store/trace.h"
#include "store/trajectory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static tsr_status write_model(const char *path, tsr_err *err)
{
    static const char *const names[] = {"N", "CA", "C", "O", "SC"};
    static const char *const elements[] = {"N", "C", "C", "O", "C"};
    tsr_model_atoms *m = tsr_model_atoms_new(N_ATOM);
    if (m == NULL)
        return TSR_E_NOMEM;
    conformation(0, (double(*)[3])m->xyz);
    for (int i = 0; i < N_ATOM; i++) {
        tsr_model_atom *a = &m->atom[i];
        *a = (tsr_model_atom){.residue = "LEU",
                              .chain = i / 5 < 70 ? 'A' : 'B',
                              .number = 1 + i / 5,
                              .insertion = ' '};
        snprintf(a->name, sizeof a->name, "%s", names[i % 5]);
        snprintf(a->element, sizeof a->element, "%s", elements[i % 5]);
    }
    const tsr_status status = tsr_model_atoms_write(m, path, "a test", err);
    tsr_model_atoms_free(m);
    return status;
}

static tsr_status write_trajectory(const char *path, tsr_err *err)
{
    static double xyz[N_ATOM][3];
    static float single[N_ATOM][3];
    const tsr_trajectory_observable observable[] = {
        {"lp", NULL}, {"rg", "Angstrom"}, {"weight", NULL}};
    const tsr_trajectory_spec spec = {.n_atom = N_ATOM,
                                      .n_body = 40,
                                      .n_observable = 3,
                                      .observable = observable,
                                      .stride = 10};
    tsr_trajectory *t;
    tsr_status status = tsr_trajectory_create(path, &spec, &t, err);

    for (int f = 0; f < N_FRAME && status == TSR_OK; f++) {
        const double value[] = {-f, 20 + f, 0.5};
        const int64_t step = 10 * f;
        conformation(f, xyz);
        for (int i = 0; i < 3 * N_ATOM; i++)
            single[i / 3][i % 3] = (float)xyz[i / 3][i % 3];
        status = tsr_trajectory_append(t, 1, &step, single[0], single[0], value,
                                       err);
    }
    return status == TSR_OK ? tsr_trajectory_close(t, err) : status;
}

static tsr_status write_trace(const char *path, tsr_err *err)
{
    const double temperature[] = {1, 1.5, 2.25};
    const tsr_trace_variable variable[] = {{.group = TSR_TRACE_POSTERIOR,
                                            .name = "rg",
                                            .unit = "Angstrom",
                                            .n = 1},
                                           {.group = TSR_TRACE_SAMPLE_STATS,
                                            .name = "accepted",
                                            .dim = "move",
                                            .n = 3,
                                            .coord_label = moves},
                                           {.group = TSR_TRACE_SAMPLE_STATS,
                                            .name = "swaps",
                                            .dim = "temperature",
                                            .n = 3,
                                            .coord = temperature}};
    const double value[N_CHAIN][2][3] = {{{0, 1, 2}, {3, 4, 5}},
                                         {{6, 7, 8}, {9, 10, 11}}};
    const double rg[N_CHAIN][2] = {{20, 21}, {22, 23}};
    tsr_trace *trace;
    tsr_status status =
        tsr_trace_create(path, N_CHAIN, 3, variable, 0, NULL, &trace, err);

    if (status == TSR_OK)
        status = tsr_trace_append(trace, 0, 2, &rg[0][0], err);
    for (int v = 1; v < 3 && status == TSR_OK; v++)
        status = tsr_trace_append(trace, v, 2, &value[0][0][0], err);
    return status == TSR_OK ? tsr_trace_close(trace, err) : status;
}

static tsr_status write_checkpoint(const char *path, tsr_err *err)
{
    const struct {
        double value[2];
        int64_t counter[3];
        const char *config;
    } chain = {{0.5, -1.25}, {INT64_MIN, 1, 2}, "seed: 1\n"};
    const tsr_checkpoint_field fields[] = {
        {"chain/xyz", TSR_CHECKPOINT_DOUBLE, 0, 2, 0},
        {"chain/rng", TSR_CHECKPOINT_INT64, sizeof chain.value, 3, 0},
        {"config", TSR_CHECKPOINT_TEXT,
         sizeof chain.value + sizeof chain.counter, 0, 0},
        {0}};
    tsr_checkpoint_writer *writer;
    tsr_status status = tsr_checkpoint_new(path, "00ff", &writer, err);

    if (status == TSR_OK)
        status = tsr_checkpoint_put(writer, fields, &chain, err);
    return tsr_checkpoint_end(writer, status, err);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *file;
        tsr_status (*write)(const char *path, tsr_err *err);
    } files[] = {{"model.pdb", write_model},
                 {"trajectory-000.h5", write_trajectory},
                 {"trace.h5", write_trace},
                 {"checkpoint.h5", write_checkpoint}};
    char path[1000];
    tsr_err err;

    if (argc != 2)
        return 64;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], files[i].file);
        remove(path);
        const tsr_status status = files[i].write(path, &err);
        if (status != TSR_OK) {
            fprintf(stderr, "%s\n", err.message);
            return tsr_exit_status(status);
        }
    }
    raise(SIGKILL);
    return 1;
}
