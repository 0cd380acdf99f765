/* tallyd: reads its settings, opens an instance, says so on stdout, and serves until SIGTERM or SIGINT. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "metering/charge.h"
#include "server/instance.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Each connection is a descriptor: take what the machine allows. */
static void raise_file_limit(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= r.rlim_max) return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r)) log_warn("cannot raise the limit of open files: %s", strerror(errno));
}

/* Before any thread starts, so that all inherit it and only main takes the signals. */
static void block_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a failed write, not the end */
}

static void say_ready(const struct instance *in) {
    char path[PATH_MAX];
    const char *data = in->settings.data_dir ? realpath(in->settings.data_dir, path) : ":memory:";
    char admin[32] = "off";
    if (in->settings.admin_port) snprintf(admin, sizeof(admin), "127.0.0.1:%u", in->settings.admin_port);
    char tls[80] = "";
    if (np_front_tls_port(in->front)) snprintf(tls, sizeof(tls), " tls=%s:%u", in->settings.listen, np_front_tls_port(in->front));
    printf("tallyd ready: cql=%s:%u admin=%s data=%s pid=%d%s\n", in->settings.listen, np_front_port(in->front), admin,
           data ? data : in->settings.data_dir, (int)getpid(), tls);
    fflush(stdout);
}

static void say_metering(const struct settings *s) {
    log_info("metering: size model %s, write size %s; the page that AWS shows today (Estimate row size) describes the model %s",
             size_model_name(s->size_model), write_size_name(s->write_size), size_model_name(SIZE_CURRENT));
}

static int serve(const struct config *c) {
    struct settings s;
    struct err e = {0};
    if (settings_read(&s, c, &e)) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        return EXIT_USAGE;
    }
    sigset_t set;
    int sig;
    struct instance in;
    raise_file_limit();
    memory_guard();
    umask(077); /* rows are nobody else's to read, in whatever file */
    block_signals(&set);
    if (instance_open(&in, &s, &e)) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        return EXIT_FAILED;
    }
    say_metering(&s);
    say_ready(&in);
    while (sigwait(&set, &sig)) continue;
    log_info("stopping: %s", sig == SIGTERM ? "SIGTERM" : "SIGINT");
    instance_close(&in);
    return EXIT_FINE;
}

int main(int argc, char **argv) {
    struct config c;
    struct err e = {0};
    int rc = EXIT_FINE;
    if (config_load(&c, argc, argv, &e)) {
        fprintf(stderr, "tallyd: %s\n", e.text);
        rc = EXIT_USAGE;
    } else if (c.help) config_print_help();
    else if (c.version) printf("tallyd %s\n", TALLY_VERSION);
    else rc = serve(&c);
    config_fini(&c);
    return rc;
}
