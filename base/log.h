/* Log lines: time, level, the room they come from, text. To stderr or a file; for people, or as
 * logfmt or JSON for programs. Never holds secrets or values of rows. Any thread; a line is one
 * write. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_HUMAN, LOG_LOGFMT, LOG_JSON };

/* "info", or with other levels for single rooms: "warn,engine=debug,cql/read=info" (cql is also
 * that of cql/read, when none says otherwise). -1, ERR_CONFIG: nothing has changed. */
int log_set_levels(const char *levels, struct err *e) MUST_CHECK;
/* The same without setting them. */
int log_check_levels(const char *levels, struct err *e) MUST_CHECK;
void log_set_format(enum log_format format);
/* Opens the file, made 0600, again: what was open before may have been moved away. "": stderr. -1,
 * ERR_CONFIG: the lines go where they went. */
int log_open(const char *path, struct err *e) MUST_CHECK;

/* file: __FILE__ of who says it. */
void log_line(enum log_level level, const char *file, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __FILE__, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __FILE__, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __FILE__, __VA_ARGS__)
/* What nobody can go on from: says so and ends the process. What was acknowledged is on disk, and
 * the next start says what is wrong with it. */
#define log_fatal(...) (log_error(__VA_ARGS__), _exit(EXIT_FAILURE))
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __FILE__, __VA_ARGS__)
