/* Whatever stops a writer, and wherever: the file and its log are as one of two
 * commits left them, the last that was reported or the one under way, to the
 * bit.
 *
 * Each scenario runs in a process of its own under tests/support/fault.c, once
 * for file operations that it makes (here some, in slow_durable.c all) and
 * every kind of fault: killed before the operation, killed in the middle of it,
 * the power cut (some of what was not synced lost, in several ways), and errors
 * that pass or stay. Then the file is judged, and gone on with to the end. */
#define OWN_MAIN
#include "durable_scenario.h"
#include "tests/test.h"

/* 1: every operation of long scenarios too; slow_durable.c says so. */
#ifndef DURABLE_ALL
#define DURABLE_ALL 0
#endif

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static char folder[64], kept[64], program[4096], library[4096];
static int n_kept, n_run;

static void remove_below(const char *directory)
{
    DIR *dir = opendir(directory);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", directory, d->d_name);
        unlink(name);
    }
    if (dir != NULL)
        closedir(dir);
}

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, block, sizeof block)) > 0)
        assert_int_equal(write(out, block, (size_t)n), n);
    close(in);
    close(out);
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
    return durable_scenarios[i].write(argument[1], report);
}

/* Runs a scenario with a fault; returns how many commits it reported. *status:
 * of waitpid. */
static int run_child(int i, const char *path, long at, const char *what,
                     int seed, int *status)
{
    char number[16], descriptor[16], text[32], count[96];
    int pipe_ends[2], reported = 0;
    char byte;

    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(pipe_ends[0]);
        snprintf(number, sizeof number, "%d", i);
        snprintf(descriptor, sizeof descriptor, "%d", pipe_ends[1]);
        setenv("TSR_FAULT_DIR", folder, 1);
        snprintf(text, sizeof text, "%ld", at);
        setenv("TSR_FAULT_AT", text, 1);
        setenv("TSR_FAULT_DO", what, 1);
        snprintf(text, sizeof text, "%d", seed);
        setenv("TSR_FAULT_SEED", text, 1);
        snprintf(count, sizeof count, "%s.count", folder);
        setenv("TSR_FAULT_COUNT", count, 1);
        setenv("LD_PRELOAD", library, 1);
        execl(program, program, number, path, descriptor, (char *)NULL);
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

static long count_of(void)
{
    char name[96], text[32] = "";
    snprintf(name, sizeof name, "%s.count", folder);
    FILE *in = fopen(name, "r");
    assert_non_null(in);
    assert_non_null(fgets(text, sizeof text, in));
    fclose(in);
    return strtol(text, NULL, 10);
}

/* The state that a scenario begins with. */
static void begin(const durable_scenario *s, const char *path)
{
    char full[128];
    remove_below(folder);
    if (s->begins_full) {
        snprintf(full, sizeof full, "%s/full.h5", kept);
        copy_file(full, path);
    }
}

static void check_after(const durable_scenario *s, const char *path,
                        int reported, const char *how)
{
    const int size = s->judge(path);
    const int next = reported < s->n_commit ? reported + 1 : reported;

    if (size != s->size[reported] && size != s->size[next])
        fail_msg("%s: %d commits were reported, so there must be %d or %d, "
                 "and there are %d",
                 how, reported, s->size[reported], s->size[next], size);
    if (size == NOTHING)
        return;
    if (access(path, F_OK) == 0) { /* not so before a first rename */
        char copy[160];
        snprintf(copy, sizeof copy, "%s/%04d-%s", kept, n_kept++, s->file);
        copy_file(path, copy);
    }
    s->finish(path, size);
}

static void run_scenario(int i)
{
    static const struct {
        const char *what;
        int seeds;
    } faults[] = {{"kill", 1},   {"tear", 1},    {"cut", 4}, {"EIO", 1},
                  {"EDQUOT", 1}, {"ENOSPC+", 1}, {"EIO+", 1}};
    const durable_scenario *s = &durable_scenarios[i];
    char path[128], how[128];
    int status;

    snprintf(path, sizeof path, "%s/%s", folder, s->file);
    begin(s, path);
    int reported = run_child(i, path, 0, "", 0, &status);
    assert_int_equal(status, 0);
    assert_int_equal(reported, s->n_commit);
    assert_int_equal(s->judge(path), s->size[s->n_commit]);
    const long n = count_of();
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
                snprintf(how, sizeof how, "%s, %s at operation %ld, seed %d",
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
    char name[128], command[512];

    if (access(".venv/bin/python", X_OK) != 0) {
        print_message("skipped: no .venv\n");
        skip();
    }
    snprintf(name, sizeof name, "%s.py", kept);
    FILE *out = fopen(name, "w");
    assert_non_null(out);
    fputs(script, out);
    fclose(out);
    snprintf(command, sizeof command, ".venv/bin/python %s %s", name, kept);
    fflush(NULL);
    const int status = system(command); /* NOLINT */
    unlink(name);
    assert_int_equal(status, 0);
}

static int enter_all(void **state)
{
    static const char end[] = "/support/fault.so";
    char full[128];
    (void)state;

    /* build/tests/property/test_durable: the library is beside */
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return -1;
    program[n] = '\0';
    memcpy(library, program, sizeof library);
    for (int i = 0; i < 2; i++)
        *strrchr(library, '/') = '\0';
    if (strlen(library) + sizeof end > sizeof library)
        return -1;
    memcpy(library + strlen(library), end, sizeof end);
    /* in memory where possible: fsync of a disk takes its time for nothing */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/tessera-durable-XXXXXX", base);
    snprintf(kept, sizeof kept, "%s/tessera-durable-kept-XXXXXX", base);
    if (mkdtemp(folder) == NULL || mkdtemp(kept) == NULL ||
        access(library, R_OK) != 0)
        return -1;
    snprintf(full, sizeof full, "%s/full.h5", kept);
    report_to = open("/dev/null", O_WRONLY);
    return durable_write_trace(full, report);
}

static int leave_all(void **state)
{
    char count[96];
    (void)state;
    print_message("%d runs, %d files judged\n", n_run, n_kept);
    remove_below(folder);
    remove_below(kept);
    snprintf(count, sizeof count, "%s.count", folder);
    unlink(count);
    return rmdir(folder) != 0 || rmdir(kept) != 0;
}

static test_fixture around_all = {enter_all, leave_all};

int main(int argc, char **argv)
{
    if (argc == 4)
        return child(argv + 1);
    return run_test_list();
}
