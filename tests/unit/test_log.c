/* Log messages keep their level, reach the file, do not break the progress
 * line, and come whole from many threads. */
#define _XOPEN_SOURCE 700 /* posix_openpt */

#include "core/log.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <termios.h>

static char *logged(FILE *stream)
{
    static char text[4096];
    rewind(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    return text;
}

TEST(levels)
{
    FILE *stream = tmpfile();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_WARNING);
    tsr_log_write(log, TSR_LOG_ERROR, "e%d", 1);
    tsr_warn(log, "w");
    tsr_info(log, "i");
    tsr_log_progress(log, "50 %");
    assert_string_equal(logged(stream), "error: e1\nwarning: w\n");
    tsr_log_free(log);
    fclose(stream);

    tsr_info(NULL, "nothing");
    tsr_log_progress(NULL, "nothing");
    assert_int_equal(tsr_log_is_terminal(NULL), 0);
    OK(tsr_log_open(NULL, "nowhere", &err));
    tsr_log_free(NULL);
}

/* Brief: remarks are for the file, warnings and progress for both. */
TEST(brief)
{
    for (int level = TSR_LOG_INFO; level <= TSR_LOG_DEBUG; level++) {
        FILE *stream = tmpfile();
        tsr_log *log = tsr_log_new(stream, (tsr_log_level)level);
        OK(tsr_log_open(log, io_path("brief.log"), &err));
        tsr_log_set_brief(log, 1);
        tsr_info(log, "engine");
        tsr_warn(log, "w");
        tsr_log_progress(log, "10 %");
        tsr_log_set_brief(log, 0);
        tsr_info(log, "protein");
        tsr_log_free(log);
        assert_string_equal(logged(stream),
                            level == TSR_LOG_INFO
                                ? "warning: w\n10 %\nprotein\n"
                                : "engine\nwarning: w\n10 %\nprotein\n");
        fclose(stream);
        stream = fopen(io_path("brief.log"), "r");
        assert_non_null(strstr(logged(stream), "info: engine\n"));
        fclose(stream);
        remove(io_path("brief.log"));
    }
    tsr_log_set_brief(NULL, 1);
}

TEST(plain_progress)
{
    FILE *stream = tmpfile();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    assert_int_equal(tsr_log_is_terminal(log), 0);
    tsr_log_progress(log, "10 %");
    tsr_info(log, "hello");
    tsr_log_progress(log, "20 %");
    tsr_log_progress(log, "");
    tsr_log_free(log);
    assert_string_equal(logged(stream), "10 %\nhello\n20 %\n");
    fclose(stream);
}

TEST(terminal_progress)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        print_message("skipped: no pseudo-terminal here\n");
        if (master >= 0)
            close(master);
        skip();
    }
    int fd = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    struct termios mode;
    assert_int_equal(tcgetattr(fd, &mode), 0);
    mode.c_oflag &= (tcflag_t)~OPOST; /* no \n to \r\n */
    assert_int_equal(tcsetattr(fd, TCSANOW, &mode), 0);
    FILE *stream = fdopen(fd, "w");
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    assert_int_equal(tsr_log_is_terminal(log), 1);
    tsr_log_progress(log, "1234");
    tsr_log_progress(log, "56");
    tsr_info(log, "i");
    tsr_log_progress(log, "78");
    tsr_log_progress(log, "");
    tsr_log_progress(log, "");
    tsr_log_progress(log, "9");
    tsr_log_free(log);
    static const char want[] = "\r1234\r56  \r  \ri\n\r78\n\r9\n";
    /* The kernel hands a terminal's bytes over in pieces, when it gets to it.
     */
    char got[256];
    size_t n_got = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    while (n_got < sizeof want - 1 && poll(&ready, 1, 10000) == 1) {
        ssize_t n = read(master, got + n_got, sizeof got - n_got);
        assert_true(n > 0);
        n_got += (size_t)n;
    }
    assert_int_equal(n_got, sizeof want - 1);
    assert_memory_equal(got, want, sizeof want - 1);
    assert_int_equal(poll(&ready, 1, 50), 0); /* and nothing more */
    fclose(stream);
    close(master);
}

TEST(file_has_time_and_level)
{
    const char *path = io_text("run.log", "before\n");
    tsr_log *log = tsr_log_new(NULL, TSR_LOG_ERROR);
    OK(tsr_log_open(log, path, &err));
    tsr_info(log, "started");
    tsr_log_write(log, TSR_LOG_DEBUG, "not this");
    tsr_log_progress(log, "nor this");
    static char big[5000];
    memset(big, 'x', sizeof big - 1);
    tsr_warn(log, "%s", big);
    FAILS(tsr_log_open(log, io_path("no/such/dir"), &err), TSR_E_IO,
          "no/such/dir");
    tsr_info(log, "still here");
    tsr_log_free(log);

    char *text = io_read(path, NULL);
    assert_memory_equal(text, "before\n20", 9); /* appended */
    int day, hour, n = 0;
    assert_int_equal(sscanf(text,
                            "before\n%*4d-%*2d-%2dT%2d:%*2d:%*2dZ "
                            "info: started%n",
                            &day, &hour, &n),
                     2);
    assert_true(n > 0);
    assert_null(strstr(text, "not this"));
    assert_null(strstr(text, "nor this"));
    assert_has(text, big); /* whole, however long */
    assert_has(text, " info: still here\n");
}

TEST(held_lines_come_first)
{
    const char *path = io_path("held.log");
    tsr_log *log = tsr_log_new(NULL, TSR_LOG_ERROR);
    tsr_info(log, "too early");
    tsr_log_buffer(log);
    tsr_info(log, "early");
    tsr_log_write(log, TSR_LOG_DEBUG, "not this");
    assert_int_equal(tsr_log_open(log, io_path("no/such/dir"), &err), TSR_E_IO);
    tsr_warn(log, "still early");
    OK(tsr_log_open(log, path, &err));
    tsr_info(log, "late");
    tsr_log_free(log);
    char *text = io_read(path, NULL);
    const char *early = strstr(text, "Z info: early\n");
    assert_ptr_equal(early, text + strlen("2026-01-01T00:00:00"));
    assert_has(early, "Z warning: still early\n");
    assert_has(strstr(early, "still early"), "Z info: late\n");
    assert_null(strstr(text, "not this"));

    log = tsr_log_new(NULL, TSR_LOG_ERROR); /* and without a file */
    tsr_log_buffer(log);
    tsr_info(log, "lost");
    tsr_log_free(log);
    tsr_log_buffer(NULL);
}

TEST(closed_log_opens_another)
{
    tsr_log *log = tsr_log_new(NULL, TSR_LOG_ERROR);
    OK(tsr_log_open(log, io_path("one.log"), &err));
    tsr_info(log, "of one");
    tsr_log_close(log);
    tsr_info(log, "of none");
    tsr_log_buffer(log);
    tsr_info(log, "of two");
    OK(tsr_log_open(log, io_path("two.log"), &err));
    tsr_log_buffer(log); /* there is a file: nothing to hold */
    tsr_log_close(log);
    tsr_log_buffer(log);
    tsr_info(log, "lost");
    tsr_log_close(log); /* and what was held for one */
    tsr_log_close(log);
    tsr_log_close(NULL);
    tsr_log_free(log);
    static const char *const said[] = {"Z info: of one\n", "Z info: of two\n"};
    for (int k = 0; k < 2; k++) {
        char *text = io_read(io_path(k == 0 ? "one.log" : "two.log"), NULL);
        assert_string_equal(text + strlen("2026-01-01T00:00:00"), said[k]);
    }
}

enum { N_THREAD = 8, N_LINE = 300 };

static void *chatter(void *log)
{
    for (int i = 0; i < N_LINE; i++) {
        tsr_info(log, "line %04d of a thread, ends here", i);
        tsr_log_progress(log, "progress");
    }
    return NULL;
}

TEST(threads_do_not_mix_lines)
{
    FILE *stream = tmpfile();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    OK(tsr_log_open(log, io_path("threads.log"), &err));
    pthread_t thread[N_THREAD];
    for (int i = 0; i < N_THREAD; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, chatter, log), 0);
    for (int i = 0; i < N_THREAD; i++)
        pthread_join(thread[i], NULL);
    tsr_log_free(log);
    int seen[N_LINE] = {0}, n_progress = 0;
    char line[256];
    rewind(stream);
    while (fgets(line, sizeof line, stream) != NULL) {
        int k = -1, end = 0;
        if (strcmp(line, "progress\n") == 0) {
            n_progress++;
            continue;
        }
        sscanf(line, "line %4d of a thread, ends here%n", &k, &end);
        assert_true(k >= 0 && k < N_LINE && end > 0 && line[end] == '\n');
        seen[k]++;
    }
    assert_int_equal(n_progress, N_THREAD * N_LINE);
    for (int i = 0; i < N_LINE; i++)
        assert_int_equal(seen[i], N_THREAD);
    fclose(stream);
}
