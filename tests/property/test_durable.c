/* After any interruption of a writer the file and its log are, to the bit, as
 * one of two commits left them: the last one reported or the one under way.
 *
 * Each scenario runs in a process of its own under tests/support/fault.c, with
 * a fault at some file operations (at every one in slow_durable.c): killed
 * before or in the middle of the operation, power cut (unsynced data lost in
 * several ways), transient and permanent errors. Then the file is checked, and
 * continued to the end. */
#define OWN_MAIN
#include "store/checkpoint.h"
#include "store/trajectory.h"
#include "tests/draws.h"
#include "tests/io_files.h"
#include "tests/test.h"

/* 1: every operation of long scenarios too; slow_durable.c says so. */
#ifndef DURABLE_ALL
#define DURABLE_ALL 0
#endif

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is written under faults, and how what is left is judged ---- */

enum { NOTHING = -1, MOST_COMMITS = 7 };

typedef struct {
    const char *name, *file;
    int begins_full; /* the file is there, from a run of `write` of `before` */
    int n_commit;
    int size[MOST_COMMITS]; /* [n_commit + 1] after so many were reported */
    /* 0, or 3 where a call returned an error */
    int (*write)(const char *path, void (*report)(void));
    /* What is there, or NOTHING; fails the test where it is neither. */
    int (*judge)(const char *path);
    /* From `size` to the end, as resume would. */
    void (*finish)(const char *path, int size);
} scenario;

/* ---- a trace ---- */

enum { TRACE_CHAINS = 2, TRACE_VARIABLES = 4, TRACE_OBSERVED = 3 };

static const tsr_trace_variable variables[TRACE_VARIABLES] = {
    {.group = TSR_TRACE_POSTERIOR, .name = "rg", .unit = "Angstrom", .n = 1},
    {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
    {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
     .name = "intensity",
     .dim = "q",
     .n = 20,
     .single = 1},
    {.group = TSR_TRACE_OBSERVED_DATA, .name = "n_point", .n = 1}};

static const int draws[MOST_COMMITS] = {0, 40, 41, 1700, 2400, 2400};

static tsr_status append(tsr_draw_log *log, int from, int to)
{
    return draws_log(log, TSR_DRAWN_KEPT, variables, 0, TRACE_OBSERVED - 1,
                     TRACE_CHAINS, from, to, 0);
}

static const char *directory_of(const char *path)
{
    return format("%.*s", (int)(strrchr(path, '/') - path), path);
}

static tsr_draw_log *new_log(const char *path)
{
    tsr_draw_log *log = NULL;
    (void)tsr_draw_log_new(directory_of(path), &log, NULL);
    return log;
}

typedef tsr_status updater(const char *path, const tsr_draw_records *log,
                           const long keep[TSR_DRAWN_N_KIND], tsr_err *err);

/* What the log has goes into the file; draws < 0: all of it. */
static tsr_status put(const char *path, updater *update, tsr_draw_log *log,
                      long draws)
{
    const long keep[TSR_DRAWN_N_KIND] = {
        [TSR_DRAWN_KEPT] = draws, [TSR_DRAWN_FRAMES] = draws};
    tsr_draw_records records;
    tsr_status status = tsr_draw_records_open(path, &records, NULL);
    TSR_THEN(status, update(path, &records, draws < 0 ? NULL : keep, NULL));
    tsr_draw_records_close(&records);
    if (status == TSR_OK)
        tsr_draw_log_remove(log);
    return status;
}

/* Commits number `first` and on, the file being written after some of them;
 * then the end. */
static int go_on(const char *path, int first, const int *size,
                 tsr_status (*append)(tsr_draw_log *, int, int),
                 updater *update, void (*report)(void))
{
    tsr_draw_log *log = new_log(path);
    tsr_status status = log == NULL ? TSR_E_NOMEM : TSR_OK;
    for (int i = first; i < 5 && status == TSR_OK; i++) {
        status = append(log, size[i - 1], size[i]);
        TSR_THEN(status, tsr_draw_log_sync(log, NULL));
        if (status == TSR_OK)
            report();
        if (status == TSR_OK && i == 3)
            status = put(path, update, log, -1);
    }
    TSR_THEN(status, put(path, update, log, -1));
    tsr_draw_log_free(log);
    if (status != TSR_OK)
        return 3;
    report();
    return 0;
}

static int write_trace(const char *path, void (*report)(void))
{
    const double n_point = 51;
    tsr_trace *trace;
    tsr_status status = tsr_trace_create(path, TRACE_CHAINS, TRACE_VARIABLES,
                                         variables, 0, NULL, &trace, &err);
    if (status == TSR_OK) {
        if (tsr_trace_put(trace, TRACE_OBSERVED, &n_point, &err) != TSR_OK) {
            tsr_trace_discard(trace);
            return 3;
        }
        status = tsr_trace_close(trace, &err);
    }
    if (status != TSR_OK)
        return strstr(err.message, path) == NULL ? 5 : 3;
    report();
    return go_on(path, 1, draws, append, tsr_trace_update, report);
}

static int write_reopened(const char *path, void (*report)(void))
{
    tsr_draw_log *log = new_log(path);
    const tsr_status status = put(path, tsr_trace_update, log, draws[2]);
    tsr_draw_log_free(log);
    if (status != TSR_OK)
        return 3;
    report();
    return go_on(path, 3, draws, append, tsr_trace_update, report);
}

static int judge_trace(const char *path)
{
    tsr_trace_reader *reader;
    tsr_status status = tsr_trace_open(path, &reader, &err);
    if (status == TSR_E_NOINPUT || status == TSR_E_DATA)
        return NOTHING;
    OK(status);
    const int size = tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR);
    draws_check(reader, TRACE_OBSERVED, variables, TRACE_CHAINS, 0, size);
    tsr_trace_reader_free(reader);
    return size;
}

/* From `size` on to the end, as resume does. */
static void end(const char *path, int size, int end,
                tsr_status (*append)(tsr_draw_log *, int, int), updater *update)
{
    tsr_draw_log *log = new_log(path);
    assert_non_null(log);
    assert_int_equal(put(path, update, log, size), TSR_OK);
    if (end > size)
        assert_int_equal(append(log, size, end), TSR_OK);
    assert_int_equal(put(path, update, log, -1), TSR_OK);
    tsr_draw_log_free(log);
}

static void finish_trace(const char *path, int size)
{
    end(path, size, draws[4], append, tsr_trace_update);
    assert_int_equal(judge_trace(path), draws[4]);
}

/* ---- a trajectory ---- */

enum { FRAME_ATOMS = 300 };

static const tsr_trajectory_observable observable[] = {{"rg", "nm"}};
static const tsr_trajectory_spec spec = {.n_atom = FRAME_ATOMS,
                                         .n_observable = 1,
                                         .observable = observable,
                                         .stride = 1};
static const int frames[MOST_COMMITS] = {0, 1, 40, 41, 75, 75};

static tsr_status append_frames(tsr_draw_log *log, int from, int to)
{
    const size_t n = (size_t)(to - from), n_xyz = n * 3 * FRAME_ATOMS;
    float *value = array((n_xyz + 2 * n) * sizeof *value + 1, 1);
    for (size_t i = 0; i < n_xyz; i++)
        value[i] = (float)draw_value(8, 0, from + (int)i / (3 * FRAME_ATOMS),
                                     (int)i % (3 * FRAME_ATOMS));
    for (int f = from; f < to; f++) {
        const double rg = draw_value(9, 0, f, 0);
        memcpy(value + n_xyz + 2 * (f - from), &rg, sizeof rg);
    }
    return draws_record(log, TSR_DRAWN_FRAMES, from, to,
                        (n_xyz + 2 * n) * sizeof *value, value);
}

static int write_frames(const char *path, void (*report)(void))
{
    tsr_trajectory *t;
    if (tsr_trajectory_create(path, &spec, &t, NULL) != TSR_OK ||
        tsr_trajectory_close(t, NULL) != TSR_OK)
        return 3;
    report();
    return go_on(path, 1, frames, append_frames, tsr_trajectory_update, report);
}

static int judge_frames(const char *path)
{
    static float xyz[3 * FRAME_ATOMS];
    tsr_trajectory_reader *reader;
    tsr_status status = tsr_trajectory_open(path, &reader, &err);
    if (status == TSR_E_NOINPUT || status == TSR_E_DATA)
        return NOTHING;
    OK(status);
    const int n = tsr_trajectory_info_get(reader)->n_frame;
    for (int f = 0; f < n; f++) {
        int64_t step;
        double rg;
        OK(tsr_trajectory_read(reader, f, 1, &step, xyz, &err));
        OK(tsr_trajectory_read_observable(reader, "rg", f, 1, &rg, &err));
        assert_int_equal(step, f);
        assert_true(rg == draw_value(9, 0, f, 0));
        for (int i = 0; i < 3 * FRAME_ATOMS; i++)
            if (xyz[i] != (float)draw_value(8, 0, f, i))
                fail_msg("frame %d of %d is wrong at %d", f, n, i);
    }
    tsr_trajectory_reader_free(reader);
    return n;
}

static void finish_frames(const char *path, int size)
{
    end(path, size, frames[4], append_frames, tsr_trajectory_update);
    assert_int_equal(judge_frames(path), frames[4]);
}

/* ---- checkpoints ---- */

enum { NUMBERS = 3000 };

/* Saves or restores a checkpoint's number and the values that follow from it.
 */
static tsr_status archive_numbers(tsr_archive *a, int *number)
{
    static double value[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        value[i] = draw_value(7, 0, *number, i);
    tsr_archive_int(a, number, 1);
    tsr_archive_real(a, value, NUMBERS);
    for (int i = 0; i < NUMBERS; i++)
        assert_true(value[i] == draw_value(7, 0, *number, i));
    return tsr_archive_end(a, &err);
}

static tsr_status write_checkpoint(const char *path, int number)
{
    tsr_archive archive = {0};
    const tsr_checkpoint_member members[] = {{"a", .archive = &archive}, {0}};
    OK(archive_numbers(&archive, &number));
    const tsr_status status = tsr_checkpoint_write(path, "hash", members, NULL);
    tsr_archive_clear(&archive);
    return status;
}

static int write_checkpoints(const char *path, void (*report)(void))
{
    for (int i = 1; i <= 3; i++) {
        if (write_checkpoint(path, i) != TSR_OK)
            return 3;
        report();
    }
    return 0;
}

static int judge_checkpoint(const char *path)
{
    tsr_archive archive = {0};
    const tsr_checkpoint_member members[] = {{"a", .archive = &archive}, {0}};
    int number = 0;
    char message[TSR_ERR_SIZE];
    tsr_checkpoint *checkpoint;
    tsr_status status = tsr_checkpoint_open_newest(directory_of(path),
                                                   &checkpoint, message, &err);
    if (status == TSR_E_NOINPUT)
        return NOTHING;
    OK(status);
    OK(tsr_checkpoint_get(checkpoint, members, &err));
    tsr_archive_rewind(&archive);
    OK(archive_numbers(&archive, &number));
    tsr_archive_clear(&archive);
    tsr_checkpoint_free(checkpoint);
    /* one that was complete is never out of its place */
    if (message[0] != '\0' && number > 1)
        fail_msg("%s", message);
    return number;
}

static void finish_checkpoint(const char *path, int size)
{
    assert_int_equal(write_checkpoint(path, size + 1), TSR_OK);
    assert_int_equal(judge_checkpoint(path), size + 1);
}

/* clang-format off */
static const scenario scenarios[] = {
    {"trace", "trace.h5", 0, 6, {NOTHING, 0, 40, 41, 1700, 2400, 2400},
     write_trace, judge_trace, finish_trace},
    {"reopened", "trace.h5", 1, 4, {2400, 41, 1700, 2400, 2400},
     write_reopened, judge_trace, finish_trace},
    {"trajectory", "trajectory-000.h5", 0, 6, {NOTHING, 0, 1, 40, 41, 75, 75},
     write_frames, judge_frames, finish_frames},
    {"checkpoint", "checkpoint.h5", 0, 3, {NOTHING, 1, 2, 3},
     write_checkpoints, judge_checkpoint, finish_checkpoint}};
/* clang-format on */

/* ---- faults ---- */

static char folder[64], kept[64], program[4096];
static const char *library;
static int n_kept, n_run;

static void remove_below(const char *directory)
{
    DIR *dir = opendir(directory);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;)
        unlink(format("%s/%s", directory, d->d_name));
    if (dir != NULL)
        closedir(dir);
}

static void copy_file(const char *from, const char *to)
{
    const size_t before = n_owned;
    size_t size;
    const char *data = io_read(from, &size);
    io_write_to(to, data, size);
    release_owned(before);
}

/* ---- one run ---- */

static int report_to = -1;

static void report(void)
{
    if (write(report_to, "x", 1) != 1)
        _exit(6);
}

/* argv of the child: scenario, path, descriptor to report to */
static int child(char **argument)
{
    const int i = atoi(argument[0]);
    report_to = atoi(argument[2]);
    return scenarios[i].write(argument[1], report);
}

static const char *count_file(void)
{
    return format("%s.count", folder);
}

/* Runs a scenario with a fault; returns how many commits it reported. *status:
 * of waitpid. */
static int run_child(int i, const char *path, long at, const char *what,
                     int seed, int *status)
{
    int pipe_ends[2], reported = 0;
    char byte;
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(pipe_ends[0]);
        setenv("TSR_FAULT_DIR", folder, 1);
        setenv("TSR_FAULT_AT", format("%ld", at), 1);
        setenv("TSR_FAULT_DO", what, 1);
        setenv("TSR_FAULT_SEED", format("%d", seed), 1);
        setenv("TSR_FAULT_COUNT", count_file(), 1);
        setenv("LD_PRELOAD", library, 1);
        execl(program, program, format("%d", i), path,
              format("%d", pipe_ends[1]), (char *)NULL);
        _exit(7);
    }
    close(pipe_ends[1]);
    while (read(pipe_ends[0], &byte, 1) == 1)
        reported++;
    close(pipe_ends[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
    n_run++;
    return reported;
}

/* The state that a scenario begins with. */
static void begin(const scenario *s, const char *path)
{
    remove_below(folder);
    if (s->begins_full)
        copy_file(format("%s/full.h5", kept), path);
}

static void check_after(const scenario *s, const char *path, int reported,
                        const char *how)
{
    const int size = s->judge(path);
    const int next = reported < s->n_commit ? reported + 1 : reported;
    if (size != s->size[reported] && size != s->size[next])
        fail_msg("%s: %d commits were reported, so there must be %d or %d, "
                 "and there are %d",
                 how, reported, s->size[reported], s->size[next], size);
    if (size == NOTHING)
        return;
    if (access(path, F_OK) == 0) /* not so before a first rename */
        copy_file(path, format("%s/%04d-%s", kept, n_kept++, s->file));
    s->finish(path, size);
}

static void run_scenario(int i)
{
    static const struct {
        const char *what;
        int seeds;
    } faults[] = {{"kill", 1},   {"tear", 1},    {"cut", 4}, {"EIO", 1},
                  {"EDQUOT", 1}, {"ENOSPC+", 1}, {"EIO+", 1}};
    const scenario *s = &scenarios[i];
    const char *path = format("%s/%s", folder, s->file);
    int status;
    begin(s, path);
    int reported = run_child(i, path, 0, "", 0, &status);
    assert_int_equal(status, 0);
    assert_int_equal(reported, s->n_commit);
    assert_int_equal(s->judge(path), s->size[s->n_commit]);
    const long n = strtol(io_read(count_file(), NULL), NULL, 10);
    assert_true(n > 10);
    const long step = DURABLE_ALL ? 1 : n / 4;
    print_message("%s: %ld operations, every %ld. under faults\n", s->name, n,
                  step);
    for (size_t f = 0; f < COUNT_OF(faults); f++)
        for (long at = 1 + (long)f % step; at <= n; at += step)
            for (int seed = 0; seed < faults[f].seeds; seed++) {
                const char *what = faults[f].what;
                const int is_error = what[0] == 'E';
                begin(s, path);
                const char *how = format("%s, %s at operation %ld, seed %d",
                                         s->name, what, at, seed);
                reported = run_child(i, path, at, what, seed, &status);
                if (is_error
                        ? !WIFEXITED(status) || (WEXITSTATUS(status) != 3 &&
                                                 WEXITSTATUS(status) != 0)
                        : !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                    fail_msg("%s: wait status %#x", how, (unsigned)status);
                if (is_error && WEXITSTATUS(status) == 0)
                    assert_int_equal(reported, s->n_commit);
                check_after(s, path, reported, how);
            }
}

/* ---- tests ---- */

TEST(test_trace)
{
    run_scenario(0);
}

TEST(test_reopened)
{
    run_scenario(1);
}

TEST(test_trajectory)
{
    run_scenario(2);
}

TEST(test_checkpoint)
{
    run_scenario(3);
}

/* Every file that was judged good, read whole by h5py. */
TEST(test_h5py)
{
    static const char script[] =
        "import glob, h5py, sys\n"
        "n = 0\n"
        "def look(name, x):\n"
        "    if isinstance(x, h5py.Dataset): x[()]\n"
        "for path in glob.glob(sys.argv[1] + '/*.h5'):\n"
        "    with h5py.File(path) as f: f.visititems(look)\n"
        "    n += 1\n"
        "print('# h5py read', n, 'files')\n"
        "sys.exit(n < 100)\n";
    if (access(".venv/bin/python", X_OK) != 0) {
        print_message("skipped: no .venv\n");
        skip();
    }
    const char *name = io_text("read.py", script);
    const char *command = format(".venv/bin/python %s %s", name, kept);
    fflush(NULL);
    assert_int_equal(system(command), 0); /* NOLINT */
}

FIXTURE(enter_all)
{
    /* build/tests/property/test_durable: the library is beside */
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return -1;
    program[n] = '\0';
    library =
        format("%s/support/fault.so", directory_of(directory_of(program)));
    /* in memory where possible: fsync of a disk takes its time for nothing */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/tessera-durable-XXXXXX", base);
    snprintf(kept, sizeof kept, "%s/tessera-durable-kept-XXXXXX", base);
    if (mkdtemp(folder) == NULL || mkdtemp(kept) == NULL ||
        access(library, R_OK) != 0)
        return -1;
    report_to = open("/dev/null", O_WRONLY);
    return write_trace(format("%s/full.h5", kept), report);
}

FIXTURE(leave_all)
{
    print_message("%d runs, %d files judged\n", n_run, n_kept);
    remove_below(folder);
    remove_below(kept);
    unlink(count_file());
    return rmdir(folder) != 0 || rmdir(kept) != 0;
}

static test_fixture around_all = {enter_all, leave_all};

int main(int argc, char **argv)
{
    if (argc == 4)
        return child(argv + 1);
    return run_test_list();
}
