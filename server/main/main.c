/* tallyd: reads its settings, opens an instance, prints a line when it is ready, and serves
 * until SIGTERM or SIGINT. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "metering/charge.h"
#include "server/reload.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static void print_ready(const struct instance *in) {
    char path[PATH_MAX];
    const char *data = in->settings.data_dir ? realpath(in->settings.data_dir, path) : ":memory:";
    const struct settings *s = &in->settings;
    char plain[80] = "off", tls[80] = "", admin[80] = "off", api[80] = "off";
    if (s->admin_port) snprintf(admin, sizeof(admin), "%s:%u", s->admin_listen, s->admin_port);
    if (in->control_plane && s->api_port) snprintf(api, sizeof(api), "%s:%u", s->api_listen, s->api_port);
    if (np_front_port(in->front)) snprintf(plain, sizeof(plain), "%s:%u", s->listen, np_front_port(in->front));
    if (np_front_tls_port(in->front)) snprintf(tls, sizeof(tls), " tls=%s:%u", s->listen, np_front_tls_port(in->front));
    printf("tallyd ready: cql=%s admin=%s api=%s data=%s pid=%d%s\n", plain, admin, api,
           data ? data : in->settings.data_dir, (int)getpid(), tls);
    fflush(stdout);
    log_info("Startup complete"); /* Testcontainers and scripts written for Cassandra's image wait for these words */
}

/* For systemd's Type=notify: sends a line to the socket that the environment names. Does nothing
 * when it names none. */
static void notify_systemd(const char *line) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof(to.sun_path) || (*path != '/' && *path != '@')) return;
    memcpy(to.sun_path, path, strlen(path));
    if (*path == '@') to.sun_path[0] = 0; /* an abstract socket */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (fd < 0 || sendto(fd, line, strlen(line), MSG_NOSIGNAL, (struct sockaddr *)&to, n) < 0)
        log_warn("the line %s could not be sent to systemd: %s", line, strerror(errno));
    if (fd >= 0) close(fd);
}

/* Waits for SIGTERM or SIGINT, and returns it. Meanwhile reloads settings and notifies systemd. */
static int wait_for_the_end(struct reload *r, const sigset_t *set) {
    /* Half of the time after which systemd takes a silent server for hung, in microseconds; 0 means
     * systemd does not watch the server. */
    const char *text = getenv("WATCHDOG_USEC");
    long long limit = text ? strtoll(text, NULL, 10) : 0;
    int64_t watch = limit > 0 ? limit / 2 : 0, step = watch && watch < 1000000 ? watch : 1000000;
    const struct timespec wait = {.tv_sec = step / 1000000, .tv_nsec = step % 1000000 * 1000};
    for (;;) {
        int sig = sigtimedwait(set, NULL, &wait);
        if (sig == SIGTERM || sig == SIGINT) return sig;
        if (sig == SIGHUP) reload_all(r);
        else reload_files(r->in);
        if (watch && np_front_alive(r->in->front)) notify_systemd("WATCHDOG=1");
    }
}

static int serve(const struct config *c, int argc, char **argv) {
    struct settings s;
    struct err e = {0};
    umask(077); /* files may contain rows, which other users must not read */
    bool wrong = settings_read(&s, c, &e);
    if (!wrong) {
        log_set_format(s.log.format);
        wrong = log_set_levels(s.log.levels, &e) || log_open(s.log.file, &e);
    }
    if (wrong) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        return EXIT_USAGE;
    }
    sigset_t set;
    int sig;
    struct instance in;
    struct reload again = {.in = &in, .argc = argc, .argv = argv, .first = c};
    struct rlimit files; /* each connection needs a descriptor */
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files)) log_warn("cannot raise the limit of open files: %s", strerror(errno));
    }
    memory_guard();
    /* Before any thread starts: threads inherit the mask, so that only main takes the signals. */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file size then fails with EFBIG */
    if (instance_open(&in, &s, &e)) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        return EXIT_FAILED;
    }
    log_info("metering: size model %s, write size %s; the page that AWS shows today (Estimate row size) describes the "
             "model %s",
             size_model_name(s.size_model), write_size_name(s.write_size), size_model_name(SIZE_CURRENT));
    print_ready(&in);
    notify_systemd("READY=1");
    sig = wait_for_the_end(&again, &set);
    notify_systemd("STOPPING=1");
    log_info("stopping: %s", sig == SIGTERM ? "SIGTERM" : "SIGINT");
    instance_close(&in);
    reload_fini(&again);
    return atomic_load(&in.doubled) ? EXIT_FAILED : EXIT_FINE;
}

/* --check-config and --print-config. Writes no file and opens no port. */
static int check(const struct config *c) {
    struct settings s;
    struct err e = {0};
    int rc = settings_read(&s, c, &e) ? EXIT_USAGE : EXIT_FINE;
    if (!rc && c->check) { /* the files that a start would read */
        if (*s.credentials && credentials_check(s.credentials, &e)) rc = EXIT_FAILED;
        struct np_tls *tls = !rc && s.has_tls ? np_tls_open(&s.tls, &e) : NULL;
        if (s.has_tls && !tls) rc = EXIT_FAILED;
        np_tls_close(tls);
    }
    if (rc) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        return rc;
    }
    if (c->print) config_print(c);
    else printf("tallyd: the settings are sound\n");
    return EXIT_FINE;
}

int main(int argc, char **argv) {
    struct config c;
    struct err e = {0};
    int rc = EXIT_FINE;
    if (config_load(&c, argc, argv, &e)) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        rc = EXIT_USAGE;
    } else if (c.help) config_print_help(c.format, c.help_all);
    else if (c.version) printf("tallyd %s (%s), RocksDB %s\n", TALLY_VERSION, TALLY_COMMIT, TALLY_ROCKSDB_VERSION);
    else if (c.check || c.print) rc = check(&c);
    else rc = serve(&c, argc, argv);
    config_fini(&c);
    return rc;
}
