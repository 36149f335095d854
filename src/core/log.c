/* Each message is written to the terminal, and to the log file once a run has a
 * folder; earlier messages are buffered and written to the file first. A mutex
 * keeps the lines of several threads intact. A message erases the progress
 * line; the next call of tsr_log_progress shows it again. */
#include "core/log.h"

#include "core/clock.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tsr_log {
    pthread_mutex_t mutex;
    FILE *stream; /* borrowed */
    FILE *file;   /* owned */
    FILE *buffer; /* owned: writes to `buffered` until a file is open; or
                     NULL */
    char *buffered;
    size_t n_buffered;
    tsr_log_level level;
    int is_brief; /* INFO messages go to the file alone */
    int is_terminal;
    int progress_width; /* width of the progress line; 0: not shown */
};

static const char *const level_name[] = {[TSR_LOG_ERROR] = "error",
                                         [TSR_LOG_WARNING] = "warning",
                                         [TSR_LOG_INFO] = "info",
                                         [TSR_LOG_DEBUG] = "debug"};

tsr_log *tsr_log_new(FILE *stream, tsr_log_level level)
{
    tsr_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    if (pthread_mutex_init(&log->mutex, NULL) != 0) {
        free(log);
        return NULL;
    }
    log->stream = stream;
    log->level = level;
    int fd = stream != NULL ? fileno(stream) : -1;
    log->is_terminal = fd >= 0 && isatty(fd);
    return log;
}

/* Erases the progress line on a terminal. Spaces and carriage returns work
 * where escape sequences may not. */
static void clear_progress(tsr_log *log)
{
    if (log->progress_width > 0)
        fprintf(log->stream, "\r%*s\r", log->progress_width, "");
    log->progress_width = 0;
}

void tsr_log_close(tsr_log *log)
{
    if (log == NULL)
        return;
    pthread_mutex_lock(&log->mutex);
    if (log->file != NULL)
        fclose(log->file);
    if (log->buffer != NULL)
        fclose(log->buffer);
    free(log->buffered);
    log->file = log->buffer = NULL;
    log->buffered = NULL;
    pthread_mutex_unlock(&log->mutex);
}

void tsr_log_free(tsr_log *log)
{
    if (log == NULL)
        return;
    if (log->progress_width > 0) {
        fputc('\n', log->stream);
        fflush(log->stream);
    }
    tsr_log_close(log);
    pthread_mutex_destroy(&log->mutex);
    free(log);
}

/* If memory runs out, the buffered lines are missing in the file. */
void tsr_log_buffer(tsr_log *log)
{
    if (log != NULL && log->file == NULL && log->buffer == NULL)
        log->buffer = open_memstream(&log->buffered, &log->n_buffered);
}

static void flush_buffer(tsr_log *log)
{
    if (log->buffer == NULL)
        return;
    if (fclose(log->buffer) == 0)
        fwrite(log->buffered, 1, log->n_buffered, log->file);
    free(log->buffered);
    log->buffer = NULL;
    log->buffered = NULL;
    fflush(log->file);
}

tsr_status tsr_log_open(tsr_log *log, const char *path, tsr_err *err)
{
    if (log == NULL)
        return TSR_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                  0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "a");
    if (file == NULL) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return tsr_fail(err, TSR_E_IO, "cannot open log file '%s': %s", path,
                        why == ELOOP ? "it is a symbolic link" : strerror(why));
    }
    pthread_mutex_lock(&log->mutex);
    FILE *before = log->file;
    log->file = file;
    flush_buffer(log);
    pthread_mutex_unlock(&log->mutex);
    if (before != NULL)
        fclose(before);
    return TSR_OK;
}

/* Prefixes errors, warnings and debug messages with their level, but not INFO
 * messages. */
static void write_stream(tsr_log *log, tsr_log_level level, const char *text)
{
    clear_progress(log);
    if (level == TSR_LOG_INFO)
        fprintf(log->stream, "%s\n", text);
    else
        fprintf(log->stream, "%s: %s\n", level_name[level], text);
    fflush(log->stream);
}

static void write_file(tsr_log *log, tsr_log_level level, const char *text)
{
    FILE *file = log->file != NULL ? log->file : log->buffer;
    if (file == NULL)
        return;
    char when[40];
    tsr_clock_utc(when);
    fprintf(file, "%.19sZ %s: %s\n", when, level_name[level], text);
    fflush(file);
}

void tsr_log_write(tsr_log *log, tsr_log_level level, const char *format, ...)
{
    if (log == NULL)
        return;
    va_list args;
    va_start(args, format);
    char *text = tsr_text_format_list(format, args); /* NULL: the message is
                                                        lost */
    va_end(args);
    if (text == NULL)
        return;
    tsr_text_clean(text);
    pthread_mutex_lock(&log->mutex);
    if (log->stream != NULL && level <= log->level &&
        !(level == TSR_LOG_INFO && log->is_brief))
        write_stream(log, level, text);
    if (level <= TSR_LOG_INFO)
        write_file(log, level, text);
    pthread_mutex_unlock(&log->mutex);
    free(text);
}

void tsr_log_set_brief(tsr_log *log, int is_brief)
{
    if (log != NULL)
        log->is_brief = is_brief && log->level < TSR_LOG_DEBUG;
}

void tsr_log_write_file(tsr_log *log, tsr_log_level level, const char *text)
{
    if (log == NULL)
        return;
    pthread_mutex_lock(&log->mutex);
    write_file(log, level, text);
    pthread_mutex_unlock(&log->mutex);
}

void tsr_log_progress(tsr_log *log, const char *text)
{
    if (log == NULL || log->stream == NULL || log->level < TSR_LOG_INFO)
        return;
    char *shown = strdup(text);
    if (shown == NULL)
        return;
    tsr_text_clean(shown);
    pthread_mutex_lock(&log->mutex);
    int width = (int)strlen(shown);
    if (log->is_terminal && width > 0) {
        int blank = log->progress_width - width;
        fprintf(log->stream, "\r%s%*s", shown, blank > 0 ? blank : 0, "");
        log->progress_width = width;
    } else if (log->is_terminal && log->progress_width > 0) {
        fputc('\n', log->stream);
        log->progress_width = 0;
    } else if (width > 0) {
        fprintf(log->stream, "%s\n", shown);
    }
    fflush(log->stream);
    pthread_mutex_unlock(&log->mutex);
    free(shown);
}

int tsr_log_is_terminal(const tsr_log *log)
{
    return log != NULL && log->is_terminal;
}
