/* Messages for people: levels, a terminal stream and, for a run, a log file.
 *
 * Library code never prints; it takes a tsr_log where it has something to say
 * that is not an error, and NULL silences it. Safe from several threads. */
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

typedef struct tsr_log tsr_log;

/* Messages up to `level` go to `stream` (borrowed; NULL for none). Returns NULL
 * when out of memory. */
tsr_log *tsr_log_new(FILE *stream, tsr_log_level level);
void tsr_log_free(tsr_log *log);

/* Remembers what comes until tsr_log_open, for its file. */
void tsr_log_buffer(tsr_log *log);

/* Also appends every message up to TSR_LOG_INFO, with the time in UTC, to the
 * file at `path`, those held first. Errors: TSR_E_IO (also for a symbolic
 * link: what it leads to might not be a log). */
tsr_status tsr_log_open(tsr_log *log, const char *path, tsr_err *err);

/* Ends the file, and what is held for one: what comes next goes elsewhere. */
void tsr_log_close(tsr_log *log);

/* One line; no final newline in `format`. */
void tsr_log_write(tsr_log *log, tsr_log_level level, const char *format, ...)
    TSR_PRINTF(3, 4);

/* From here on (1) remarks of TSR_LOG_INFO go to the file alone, unless the
 * stream gets TSR_LOG_DEBUG; warnings and progress lines are shown as before.
 */
void tsr_log_set_brief(tsr_log *log, int is_brief);

/* To the file alone, where there is one: what the stream is told otherwise. */
void tsr_log_write_file(tsr_log *log, tsr_log_level level, const char *text);

/* A progress line: on a terminal it replaces the one before it, elsewhere it is
 * an ordinary line. An empty text ends the line. Never goes to the file; silent
 * below TSR_LOG_INFO. */
void tsr_log_progress(tsr_log *log, const char *text);

/* 1 when the stream is a terminal. */
int tsr_log_is_terminal(const tsr_log *log);

#define tsr_debug(log, ...) tsr_log_write((log), TSR_LOG_DEBUG, __VA_ARGS__)
#define tsr_info(log, ...) tsr_log_write((log), TSR_LOG_INFO, __VA_ARGS__)
#define tsr_warn(log, ...) tsr_log_write((log), TSR_LOG_WARNING, __VA_ARGS__)

#endif
