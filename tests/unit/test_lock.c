/* Only one process, and one user within a process, holds the lock of a run
 * directory. */
#include "files/lock.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], file[96];

FIXTURE(enter)
{
    strcpy(folder, "/tmp/tessera-lock-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof file, "%s/run.lock", folder);
    return 0;
}

FIXTURE(leave)
{
    unlink(file);
    return rmdir(folder);
}

TEST(test_two)
{
    tsr_lock *lock, *second;
    tsr_lock_holder holder;
    char pid[32];
    OK(tsr_lock_query(folder, &holder, &err));
    assert_false(holder.is_held);
    assert_int_equal(holder.pid, 0);
    OK(tsr_lock_acquire(folder, &lock, &err));
    assert_int_equal(tsr_lock_acquire(folder, &second, &err), TSR_E_CONFIG);
    assert_null(second);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_has(err.message, pid);
    assert_has(err.message, folder);

    /* What closing another descriptor of the file does to F_SETLK. */
    OK(tsr_lock_query(folder, &holder, &err));
    assert_true(holder.is_held);
    assert_ints(holder.pid, getpid(), strlen(holder.since), 25);
    char host[128] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_string_equal(holder.host, host);
    close(open(file, O_RDWR));
    assert_int_equal(tsr_lock_acquire(folder, &second, &err), TSR_E_CONFIG);

    tsr_lock_free(lock);
    tsr_lock_free(NULL);
    OK(tsr_lock_query(folder, &holder, &err));
    assert_false(holder.is_held);
    assert_int_equal(holder.pid, getpid()); /* who was there last */
    OK(tsr_lock_acquire(folder, &lock, &err));
    tsr_lock_free(lock);
}

/* A process that holds the lock and waits; killed, the lock is free. */
TEST(test_killed)
{
    tsr_lock *lock;
    tsr_lock_holder holder;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        byte = tsr_lock_acquire(folder, &lock, &err) == TSR_OK ? '1' : '0';
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, '1');
    assert_int_equal(tsr_lock_acquire(folder, &lock, &err), TSR_E_CONFIG);
    OK(tsr_lock_query(folder, &holder, &err));
    assert_true(holder.is_held);
    assert_ints(holder.pid, child, kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    OK(tsr_lock_query(folder, &holder, &err));
    assert_false(holder.is_held);
    OK(tsr_lock_acquire(folder, &lock, &err));
    tsr_lock_free(lock);
    close(ready[0]);
    close(ready[1]);
}

TEST(test_odd_files)
{
    tsr_lock *lock;
    tsr_lock_holder holder;
    assert_int_equal(tsr_lock_acquire("/dev/null", &lock, &err), TSR_E_IO);
    assert_int_equal(tsr_lock_acquire("/proc", &lock, &err), TSR_E_IO);
    assert_null(lock);
    assert_int_equal(tsr_lock_query("/dev/null", &holder, &err), TSR_E_NOINPUT);
    const char *const texts[] = {"", "pid", "pid 12\nhost", "\n\n\n",
                                 "pid x\nsince\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        FILE *out = fopen(file, "w");
        assert_non_null(out);
        fputs(texts[i], out);
        fclose(out);
        OK(tsr_lock_query(folder, &holder, &err));
        assert_false(holder.is_held);
        assert_int_equal(holder.pid, i == 2 ? 12 : 0);
        assert_string_equal(holder.host, "");
    }
    OK(tsr_lock_acquire(folder, &lock, &err));
    OK(tsr_lock_query(folder, &holder, &err));
    assert_int_equal(holder.pid, getpid());
    tsr_lock_free(lock);
}

static test_fixture around_each = {enter, leave};
