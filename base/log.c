#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level) { atomic_store(&max_level, (int)level); }

void log_line(enum log_level level, const char *fmt, ...) {
    static const char *const names[] = {"ERROR", "WARN ", "INFO ", "DEBUG"};
    if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed)) return;
    char line[1024];
    struct timespec t;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %s ", t.tv_nsec / 1000000, names[level]);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof(line) - n, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", line);
}
