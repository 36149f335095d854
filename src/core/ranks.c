/* Messages between the ranks of a run. TSR_MPI is defined for the program
 * tessera-mpi alone, whose other files are those of tessera.
 *
 * A wait of MPI occupies a processor, so that each wait here tests and sleeps.
 * Blocks are transferred by blocking calls, once both sides are known to be
 * there. */
#include "core/ranks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set once, as MPI is connected once. */
static int size = 1, rank = 0, size_of_node = 1, rank_on_node = 0;

#ifdef TSR_MPI

#include <limits.h>
#include <mpi.h>
#include <time.h>

static tsr_status check(int code, tsr_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (code == MPI_SUCCESS)
        return TSR_OK;
    MPI_Error_string(code, text, &n);
    return tsr_fail(err, TSR_E_DEVICE, "a rank of the run was lost (%s)", text);
}

/* Sleeps between the tests of a wait; n: number of the test. */
static void doze(int n)
{
    const struct timespec pause = {.tv_nsec = n < 2000 ? 50000 : 1000000};
    if (n > 50)
        nanosleep(&pause, NULL);
}

static tsr_status finish(int code, MPI_Request *request, tsr_err *err)
{
    int is_done = 0;
    for (int n = 0; code == MPI_SUCCESS && !is_done; n++) {
        doze(n);
        code = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    }
    return check(code, err);
}

void tsr_ranks_begin(void)
{
    int level;
    MPI_Comm node;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                            MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return;
    MPI_Comm_size(node, &size_of_node);
    MPI_Comm_rank(node, &rank_on_node);
    MPI_Comm_free(&node);
}

void tsr_ranks_end(void)
{
    MPI_Finalize();
}

static tsr_status broadcast(void *block, size_t n, MPI_Datatype type, int from,
                            tsr_err *err)
{
    MPI_Request request;
    if (size == 1)
        return TSR_OK;
    TSR_TRY(finish(MPI_Ibarrier(MPI_COMM_WORLD, &request), &request, err));
    return check(MPI_Bcast(block, (int)n, type, from, MPI_COMM_WORLD), err);
}

tsr_status tsr_ranks_broadcast(void *block, size_t n_byte, int from,
                               tsr_err *err)
{
    return broadcast(block, n_byte, MPI_BYTE, from, err);
}

tsr_status tsr_ranks_send(const void *block, size_t n_byte, int to,
                          tsr_err *err)
{
    MPI_Request request;
    return finish(MPI_Isend(block, (int)n_byte, MPI_BYTE, to, 0, MPI_COMM_WORLD,
                            &request),
                  &request, err);
}

tsr_status tsr_ranks_receive(void *block, size_t n_byte, int from, int *sender,
                             tsr_err *err)
{
    MPI_Status found = {.MPI_SOURCE = from};
    int is_there = 0, code = MPI_SUCCESS;
    for (int n = 0; code == MPI_SUCCESS && !is_there; n++) {
        doze(n);
        code = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, 0, MPI_COMM_WORLD,
                          &is_there, &found);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Recv(block, (int)n_byte, MPI_BYTE, found.MPI_SOURCE, 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sender != NULL)
        *sender = found.MPI_SOURCE;
    return check(code, err);
}

/* A header or a sign between two ranks. */
static tsr_status pass_small(void *block, size_t n_byte, int from, int to,
                             tsr_err *err)
{
    return rank == from ? tsr_ranks_send(block, n_byte, to, err)
                        : tsr_ranks_receive(block, n_byte, from, NULL, err);
}

/* Words of 8 bytes, to all ranks, or to one that waits. */
static tsr_status pass_words(void *block, size_t n, int from, int to,
                             tsr_err *err)
{
    const MPI_Datatype type = MPI_UINT64_T;
    if (to < 0)
        return broadcast(block, n, type, from, err);
    return check(rank == from
                     ? MPI_Send(block, (int)n, type, to, 1, MPI_COMM_WORLD)
                     : MPI_Recv(block, (int)n, type, from, 1, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE),
                 err);
}

tsr_status tsr_ranks_pass(tsr_archive *archive, int from, int to, tsr_err *err)
{
    tsr_archive *a = archive;
    const int is_source = rank == from;
    char ready = 0;
    const int fails =
        a->failed || a->n_real > INT_MAX || a->n_integer > INT_MAX;
    uint64_t n[2] = {fails ? UINT64_MAX : a->n_real, a->n_integer};
    if (size == 1 || from == to || (to >= 0 && to != rank && !is_source))
        return TSR_OK;
    TSR_TRY(to < 0 ? tsr_ranks_broadcast(n, sizeof n, from, err)
                   : pass_small(n, sizeof n, from, to, err));
    if (n[0] == UINT64_MAX)
        return tsr_no_memory(err);
    if (!is_source) {
        tsr_archive_clear(a);
        a->real = malloc(n[0] * sizeof *a->real + 1);
        a->integer = malloc(n[1] * sizeof *a->integer + 1);
        a->n_real = n[0];
        a->n_integer = n[1];
    }
    if (!is_source && (a->real == NULL || a->integer == NULL))
        MPI_Abort(MPI_COMM_WORLD, tsr_exit_status(TSR_E_NOMEM));
    if (to >= 0)
        TSR_TRY(pass_small(&ready, 1, to, from, err));
    TSR_TRY(pass_words(a->real, a->n_real, from, to, err));
    TSR_TRY(pass_words(a->integer, a->n_integer, from, to, err));
    if (!is_source)
        tsr_archive_rewind(a);
    return TSR_OK;
}

tsr_status tsr_ranks_agree(tsr_status status, int *stop, tsr_err *err)
{
    const int mine[2] = {(int)status, stop != NULL ? *stop : 0};
    char message[TSR_ERR_SIZE] = "";
    MPI_Request request;
    if (size == 1)
        return status;
    int *all = calloc((size_t)size, sizeof mine);
    TSR_TRY(tsr_allocated(all, err));
    tsr_status told = finish(MPI_Iallgather(mine, 2, MPI_INT, all, 2, MPI_INT,
                                            MPI_COMM_WORLD, &request),
                             &request, err);
    int failed = -1, stops = 0;
    for (int r = 0; r < size && told == TSR_OK; r++) {
        stops |= all[2 * r + 1];
        if (failed < 0 && all[2 * r] != TSR_OK)
            failed = r;
    }
    if (stop != NULL)
        *stop = stops;
    if (failed >= 0) {
        if (failed == rank && err != NULL)
            memcpy(message, err->message, sizeof message);
        told = tsr_ranks_broadcast(message, sizeof message, failed, err);
    }
    if (failed >= 0 && told == TSR_OK)
        told = tsr_fail(
            err, (tsr_status)all[2 * failed], "%s%.*s",
            failed == 0 ? "" : "on another rank: ", TSR_ERR_SIZE - 64, message);
    free(all);
    return told;
}

#else

void tsr_ranks_begin(void) {}

void tsr_ranks_end(void) {}

tsr_status tsr_ranks_broadcast(void *block, size_t n_byte, int from,
                               tsr_err *err)
{
    (void)block, (void)n_byte, (void)from, (void)err;
    return TSR_OK;
}

tsr_status tsr_ranks_send(const void *block, size_t n_byte, int to,
                          tsr_err *err)
{
    (void)block, (void)n_byte, (void)to;
    return tsr_fail(err, TSR_E_INTERNAL, "there is one rank");
}

tsr_status tsr_ranks_receive(void *block, size_t n_byte, int from, int *sender,
                             tsr_err *err)
{
    (void)block, (void)n_byte, (void)from, (void)sender;
    return tsr_fail(err, TSR_E_INTERNAL, "there is one rank");
}

tsr_status tsr_ranks_pass(tsr_archive *archive, int from, int to, tsr_err *err)
{
    (void)archive, (void)from, (void)to, (void)err;
    return TSR_OK;
}

tsr_status tsr_ranks_agree(tsr_status status, int *stop, tsr_err *err)
{
    (void)stop, (void)err;
    return status;
}

#endif

int tsr_ranks_size(void)
{
    return size;
}

int tsr_ranks_rank(void)
{
    return rank;
}

int tsr_ranks_on_node(int *n)
{
    *n = size_of_node;
    return rank_on_node;
}

int tsr_ranks_first(int n, int of)
{
    const int more = n % size;
    return n / size * of + (of < more ? of : more);
}

tsr_status tsr_ranks_work(int *work, tsr_err *err)
{
    return tsr_ranks_broadcast(work, sizeof *work, 0, err);
}
