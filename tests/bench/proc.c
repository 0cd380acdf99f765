#include "tests/bench/proc.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/ceiling_store.h"

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double now_seconds(void) { return (double)now_ns() / 1e9; }

int proc_make_dir(char dir[256]) {
    snprintf(dir, 256, "/tmp/tally-bench-XXXXXX");
    if (mkdtemp(dir)) return 0;
    perror("mkdtemp");
    return -1;
}

static int make_dir(struct proc *p, const char *kept) {
    p->kept = kept != NULL;
    if (!kept) return proc_make_dir(p->dir);
    snprintf(p->dir, sizeof(p->dir), "%s", kept);
    if (!mkdir(p->dir, 0777) || errno == EEXIST) return 0;
    perror(p->dir);
    return -1;
}

int proc_run(const char *const *arguments) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) dup2(nowhere, 1);
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        perror(arguments[0]);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void proc_remove_dir(const char *dir) {
    const char *const arguments[] = {"rm", "-rf", "--", dir, NULL};
    if (proc_run(arguments)) fprintf(stderr, "%s was not removed\n", dir);
}

/* A line of the child's output that begins with prefix; -1 when the output ends first. */
static int read_line(int fd, const char *prefix, char *line, size_t cap) {
    FILE *f = fdopen(fd, "r");
    if (!f) return -1;
    int rc = -1;
    while (rc && fgets(line, (int)cap, f)) rc = strncmp(line, prefix, strlen(prefix)) ? -1 : 0;
    fclose(f);
    return rc;
}

/* By the environment: an older program need not know the settings. Some workloads are none of Keyspaces. */
static void set_environment(const struct proc_flags *f) {
    char cache[16], memtables[16];
    setenv("TALLY_COMPATIBILITY", "off", 1);
    if (f->uncached) setenv("TALLY_ROW_CACHE", "0", 1);
    if (f->own_memory) return;
    snprintf(cache, sizeof(cache), "%d", CEILING_CACHE_MB);
    snprintf(memtables, sizeof(memtables), "%d", CEILING_MEMTABLE_MB * CEILING_MEMTABLES);
    setenv("TALLY_BLOCK_CACHE", cache, 1);
    setenv("TALLY_MEMTABLES", memtables, 1);
}

/* A port that nobody listens on; 0: there is none. */
static uint16_t free_port(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && !bind(fd, (struct sockaddr *)&a, n) && !getsockname(fd, (struct sockaddr *)&a, &n);
    if (fd >= 0) close(fd);
    return bound ? ntohs(a.sin_port) : 0;
}

#define CERTIFICATES "/certificates"

static int make_certificates(const struct proc *p, const char *tallyd) {
    char tally[4096], to[300];
    const char *slash = strrchr(tallyd, '/');
    snprintf(tally, sizeof(tally), "%.*stally", slash ? (int)(slash - tallyd) + 1 : 0, tallyd);
    snprintf(to, sizeof(to), "%s" CERTIFICATES, p->dir);
    const char *const arguments[] = {tally, "cert", "--to", to, NULL};
    return proc_run(arguments);
}

/* The process is tallyd from here on. */
static void become_tallyd(const struct proc *p, const char *tallyd, const char *admin, const struct proc_flags *f) {
    const char *args[40] = {tallyd, "--data-dir",  p->dir,     "--port",       "0",          "--admin-port",
                            admin,  "--threads",   f->threads, "--mode",       "keyspaces",  "--compatibility",
                            "off",  "--ddl-delay", "none",     "--durability", f->durability};
    size_t n = 0;
    while (args[n]) n++;
    if (f->metering) {
        args[n++] = "--metering";
        args[n++] = f->metering;
    }
    if (f->write_size) {
        args[n++] = "--write-size";
        args[n++] = f->write_size;
    }
    char cert[300], key[300];
    if (f->tls) {
        snprintf(cert, sizeof(cert), "%s" CERTIFICATES "/server.pem", p->dir);
        snprintf(key, sizeof(key), "%s" CERTIFICATES "/server-key.pem", p->dir);
        const char *const tls[] = {"--tls-only", "on", "--tls-port", "0", "--tls-cert", cert, "--tls-key", key};
        for (size_t i = 0; i < sizeof(tls) / sizeof(tls[0]); i++) args[n++] = tls[i];
    }
    setenv("TALLY_API_PORT", "0", 1); /* by the environment: an older tallyd does not know the flag */
    execv(tallyd, (char *const *)(uintptr_t)args);
    perror(tallyd);
    _exit(127);
}

int proc_start_tallyd(struct proc *p, const char *tallyd, const struct proc_flags *flags) {
    int fds[2];
    if (make_dir(p, flags->dir) || (flags->tls && make_certificates(p, tallyd)) || pipe(fds)) return -1;
    char admin[8];
    p->tls = flags->tls;
    p->admin_port = free_port();
    snprintf(admin, sizeof(admin), "%u", (unsigned)p->admin_port);
    double t0 = now_seconds();
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fds[1], 1);
        set_environment(flags);
        close(fds[0]);
        become_tallyd(p, tallyd, admin, flags);
    }
    close(fds[1]);
    char line[512];
    unsigned port = 0;
    const char *at = p->pid < 0 || read_line(fds[0], "tallyd ready: ", line, sizeof(line))
                         ? NULL
                         : strstr(line, p->tls ? " tls=" : " cql=");
    if (!at || sscanf(at + strlen(" tls="), "%63[^:]:%u", p->host, &port) != 2) {
        fprintf(stderr, "%s did not become ready\n", tallyd);
        return -1;
    }
    p->port = (uint16_t)port;
    p->ready_seconds = now_seconds() - t0;
    return 0;
}

int proc_start_child(struct proc *p, int (*main_fn)(int port_fd, const char *dir, void *arg), void *arg) {
    int fds[2];
    if (make_dir(p, NULL) || pipe(fds)) return -1;
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        _exit(main_fn(fds[1], p->dir, arg));
    }
    close(fds[1]);
    char line[64];
    if (p->pid < 0 || read_line(fds[0], "", line, sizeof(line))) return -1;
    p->port = (uint16_t)atoi(line);
    snprintf(p->host, sizeof(p->host), "127.0.0.1");
    return 0;
}

void proc_beside(struct proc *p, const char *host, uint16_t port, pid_t pid) {
    *p = (struct proc){.pid = pid, .port = port};
    snprintf(p->host, sizeof(p->host), "%s", host);
}

void proc_stop(struct proc *p) {
    if (p->pid > 0) {
        kill(p->pid, SIGTERM);
        for (int i = 0; i < 100 && waitpid(p->pid, NULL, WNOHANG) == 0; i++) usleep(50000);
        if (kill(p->pid, SIGKILL) == 0) waitpid(p->pid, NULL, 0);
    }
    if (p->dir[0] && !p->kept) proc_remove_dir(p->dir);
    *p = (struct proc){0};
}

uint64_t proc_cpu_ns(pid_t pid) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d) return 0;
    uint64_t total = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        FILE *f = fopen(path, "r");
        unsigned long long ns;
        if (f && fscanf(f, "%llu", &ns) == 1) total += ns;
        if (f) fclose(f);
    }
    closedir(d);
    return total;
}

void proc_await_quiet(pid_t pid) {
    enum { LOOKS = 240, APART_US = 250000, QUIET_PERCENT = 4 };
    for (int i = 0; pid > 0 && i < LOOKS; i++) {
        uint64_t before = proc_cpu_ns(pid);
        usleep(APART_US);
        if (proc_cpu_ns(pid) - before < (uint64_t)APART_US * 1000 * QUIET_PERCENT / 100) return;
    }
}

/* ---- whose port it is ---- */

/* The inode of the socket that listens there, from one of the kernel's tables (proc(5)); 0: none. */
static unsigned long listener(const char *table, uint16_t port) {
    char line[512];
    unsigned long inode = 0;
    FILE *f = fopen(table, "r");
    while (f && !inode && fgets(line, sizeof(line), f)) {
        unsigned at, state;
        unsigned long found;
        enum { LISTENING = 0x0A };
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &at, &state,
                   &found) == 3 &&
            at == port && state == LISTENING)
            inode = found;
    }
    if (f) fclose(f);
    return inode;
}

static bool has_socket(const char *pid, unsigned long inode) {
    char path[300], wanted[64], link[64];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        found = n > 0 && (size_t)n == strlen(wanted) && !memcmp(link, wanted, (size_t)n);
    }
    if (d) closedir(d);
    return found;
}

pid_t proc_of_port(uint16_t port) {
    unsigned long inode = listener("/proc/net/tcp", port);
    if (!inode) inode = listener("/proc/net/tcp6", port);
    DIR *d = inode ? opendir("/proc") : NULL;
    pid_t pid = 0;
    for (struct dirent *e; d && !pid && (e = readdir(d));)
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && has_socket(e->d_name, inode)) pid = atoi(e->d_name);
    if (d) closedir(d);
    return pid;
}

/* ---- metrics ---- */

size_t proc_get(uint16_t port, const char *path, char *text, size_t cap) {
    char request[256];
    int n_request = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", path);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t n = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool asked = fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)) &&
                 write(fd, request, (size_t)n_request) == n_request;
    for (ssize_t got = 1; asked && got > 0 && n < cap - 1; n += got > 0 ? (size_t)got : 0)
        got = read(fd, text + n, cap - 1 - n);
    text[n] = 0;
    if (fd >= 0) close(fd);
    return n;
}

double proc_metric(const struct proc *p, const char *name) {
    static char text[256 << 10];
    size_t n_name = strlen(name);
    if (!p->admin_port || !proc_get(p->admin_port, "/metrics", text, sizeof(text))) return 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, n_name) && line[n_name] == ' ') return atof(line + n_name);
    }
    return 0;
}

uint64_t proc_rss_kib(pid_t pid) {
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    unsigned long long kib = 0;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %llu", &kib) == 1) break;
    if (f) fclose(f);
    return kib;
}
