/* tally ready: asks a server's admin port whether the server takes requests (/ready), for health
 * checks and for scripts that start a server. The request names no host, so the server answers it
 * whatever address it is reached by (server/http/origin.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/client/client.h"
#include "tools/client/link.h"
#include "tools/tally/subcommand.h"

enum { ADMIN_PORT = 9180, ATTEMPT_MS = 5000, PAUSE_MS = 100, ANSWER_MAX = 16 << 10 };

/* Reads until the server closes the connection. */
static int exchange(const struct link_options *o, struct link *l, struct err *e) {
    struct err end = {0};
    if (link_open(l, o, e)) return -1;
    buf_put_str(&l->out, "GET /ready HTTP/1.0\r\n\r\n");
    if (link_flush(l, e) < 0) return -1;
    while (l->in.n < ANSWER_MAX && link_fill(l, &end) >= 0) {}
    buf_u8(&l->in, 0);
    if (buf_failed(&l->in)) return err_nomem(e);
    return l->in.n > 1 ? 0 : err_set(e, ERR_SERVER, "%s", end.text);
}

/* Returns 0 if the server is ready; -1 with the reason: ERR_CONFIG if another port was asked than
 * the admin port. */
static int ask(const struct link_options *o, struct err *e) {
    struct link l = {0};
    int rc = exchange(o, &l, e);
    if (!rc) {
        const char *answer = (const char *)l.in.p, *body = strstr(answer, "\r\n\r\n");
        bool http = !strncmp(answer, "HTTP/1.", 7) && body;
        int status = http ? atoi(answer + sizeof("HTTP/1.1")) : 0;
        if (!http)
            rc = err_set(e, ERR_CONFIG, "%s:%u does not speak HTTP; name the server's admin port (--admin-port, %d)",
                         o->host, o->port, ADMIN_PORT);
        else if (status == 503)
            rc = err_set(e, ERR_SERVER, "the server is not ready: %.*s", (int)strcspn(body + 4, "\n"), body + 4);
        else if (status != 200)
            rc = err_set(e, ERR_CONFIG, "%s:%u is not the admin port of a tallyd: /ready is answered with status %d",
                         o->host, o->port, status);
    }
    link_close(&l);
    return rc;
}

int tally_ready(int argc, char **argv) {
    const char *server = "127.0.0.1";
    char host[256];
    uint32_t wait_s = 0;
    bool json = false;
    struct err e = {0};
    const struct flag flags[] = {
        {.name = "server", .argument = "HOST[:PORT]", .text = &server, .position = 1,
         .help = "the server's admin port (127.0.0.1:9180); also the argument without a flag"},
        FLAG_NUMBER("wait", "SECONDS", wait_s, "how long to ask again while the server is not ready (0)"),
        FLAG_ON("json", json, "print the result as JSON"),
    };
    int rc = flags_read("ready", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    struct link_options o = {.host = host, .port = ADMIN_PORT, .timeout_ms = ATTEMPT_MS};
    if (client_address(server, host, &o.port, &e)) return say_wrong(json, "ready", &e);
    int64_t until_us = clock_mono_us(&clock_real) + (int64_t)wait_s * 1000000;
    while ((rc = ask(&o, &e)) && e.code != ERR_CONFIG && clock_mono_us(&clock_real) < until_us) {
        err_clear(&e);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    if (rc) return say_no(json, "ready", &e);
    if (json) printf("{\"ok\":true}\n");
    else printf("ready\n");
    return EXIT_DONE;
}
