/* Messages for the user, by level, on a terminal and in the log file of a run.
 *
 * Library code never prints. A function that reports anything other than an
 * error has a tsr_log argument; NULL suppresses the messages. Several threads
 * may write messages at the same time. */
#ifndef TSR_CORE_LOG_H
#define TSR_CORE_LOG_H

#include "core/status.h"

#include <stdio.h>

typedef enum {
    TSR_LOG_ERROR,
    TSR_LOG_WARNING,
    TSR_LOG_INFO,
    TSR_LOG_DEBUG
} tsr_log_level;

/* A log. NULL is a log without output. */
typedef struct tsr_log tsr_log;

/* A log that writes messages up to `level`, the level of the stream, to
 * `stream` (borrowed; NULL: no stream). Returns NULL when out of memory. */
tsr_log *tsr_log_new(FILE *stream, tsr_log_level level);
void tsr_log_free(tsr_log *log);

/* Keeps the following messages in memory until tsr_log_open writes them to the
 * log file. Does nothing if the file is open already. */
void tsr_log_buffer(tsr_log *log);

/* Opens the log file. Buffered messages and later messages are appended to
 * `path`, with the time in UTC, except messages of level TSR_LOG_DEBUG. Errors:
 * TSR_E_IO (also if path is a symbolic link, because its target might not be a
 * log). */
tsr_status tsr_log_open(tsr_log *log, const char *path, tsr_err *err);

/* Closes the log file, and discards messages that are still buffered. */
void tsr_log_close(tsr_log *log);

/* Writes one line; `format` has no final newline. */
void tsr_log_write(tsr_log *log, tsr_log_level level, const char *format, ...)
    TSR_PRINTF(3, 4);

/* is_brief 1: messages of level TSR_LOG_INFO go to the file alone, unless the
 * level of the stream is TSR_LOG_DEBUG. Warnings and progress lines are not
 * affected. */
void tsr_log_set_brief(tsr_log *log, int is_brief);

/* Writes to the log file alone, for text that the stream shows in another
 * form. */
void tsr_log_write_file(tsr_log *log, tsr_log_level level, const char *text);

/* Shows a progress line. On a terminal it replaces the previous progress line;
 * elsewhere it is an ordinary line. An empty text ends the line. Progress is
 * never written to the file. It is shown only if the level of the stream is
 * TSR_LOG_INFO or TSR_LOG_DEBUG. */
void tsr_log_progress(tsr_log *log, const char *text);

/* Is the stream a terminal? */
int tsr_log_is_terminal(const tsr_log *log);

#define tsr_debug(log, ...) tsr_log_write((log), TSR_LOG_DEBUG, __VA_ARGS__)
#define tsr_info(log, ...) tsr_log_write((log), TSR_LOG_INFO, __VA_ARGS__)
#define tsr_warn(log, ...) tsr_log_write((log), TSR_LOG_WARNING, __VA_ARGS__)

#endif
