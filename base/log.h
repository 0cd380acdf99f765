/* Log lines: time, level, the room they come from, text. Lines go to stderr or to a file, in a form
 * for people, or as logfmt or JSON for programs. They never contain secrets or values of rows. Any
 * thread; a line is one write. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_HUMAN, LOG_LOGFMT, LOG_JSON };

/* Sets the level of all rooms ("info"), and others for single rooms:
 * "warn,engine=debug,cql/read=info". The level of cql also holds for cql/read, unless cql/read has
 * its own. -1, ERR_CONFIG: nothing has changed. */
int log_set_levels(const char *levels, struct err *e) MUST_CHECK;
/* Checks the text that log_set_levels takes, and sets nothing. */
int log_check_levels(const char *levels, struct err *e) MUST_CHECK;
void log_set_format(enum log_format format);
/* Opens the log file, creating it with mode 0600. May be called again after the open file was moved
 * away. "": stderr. -1, ERR_CONFIG: the lines go where they went before. */
int log_open(const char *path, struct err *e) MUST_CHECK;

/* file: __FILE__ of the caller; its folder is the room. */
void log_line(enum log_level level, const char *file, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __FILE__, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __FILE__, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __FILE__, __VA_ARGS__)
/* Logs an error after which the process cannot continue, and ends the process. Acknowledged writes
 * are on disk, and the next start reports any damage to them. */
#define log_fatal(...) (log_error(__VA_ARGS__), _exit(EXIT_FAILURE))
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __FILE__, __VA_ARGS__)
