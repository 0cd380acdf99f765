#include "server/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    uint64_t n = 0;
    if (!d) return 0;
    while (readdir(d)) n++;
    closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the descriptor of this folder */
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Reads the fields of /proc/self/stat after the program's name, which may contain blanks (proc(5)). */
static void read_stat(struct process_figures *f) {
    char text[1024];
    unsigned long long threads, started, virtual;
    long long pages;
    FILE *file = fopen("/proc/self/stat", "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    static const char form[] = " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d " /* 3 to 19 */
                               "%llu %*d %llu %llu %lld";
    const char *fields = strrchr(text, ')');
    if (!fields || sscanf(fields + 1, form, &threads, &started, &virtual, &pages) != 4) return;
    double age_s = seconds_of(CLOCK_BOOTTIME) - (double)started / (double)sysconf(_SC_CLK_TCK);
    f->threads = threads;
    f->started_s = seconds_of(CLOCK_REALTIME) - age_s;
    f->virtual = virtual;
    f->resident = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct process_figures process_figures(void) {
    struct process_figures f = {.fds = count_fds(), .cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
    struct rlimit most;
    if (!getrlimit(RLIMIT_NOFILE, &most)) f.fds_max = most.rlim_cur;
    read_stat(&f);
    return f;
}
