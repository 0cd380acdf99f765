#include "server/admin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "server/ledger_metrics.h"

/* Connections that stay open at once; a few more while those sent off are being closed. */
enum { VISITORS = 64, METRICS_MAX = 64 << 20 };

/* A connection to the admin port, from its first moment to its last. All of it on the daemon's one thread. */
struct visitor {
    TAILQ_ENTRY(visitor) entry;
    int fd;
    bool listed;
};

struct admin {
    struct MHD_Daemon *daemon;
    TAILQ_HEAD(, visitor) visitors; /* eldest first */
    unsigned n_visitors;
    struct np_front *front;
    struct eng *eng;
    struct system_metering *metering;
};

static void put_header(struct buf *out, const char *name, const char *type, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_requests(const struct np_front *front, struct buf *out) {
    put_header(out, "tally_requests_total", "counter", "Requests answered, by opcode and outcome");
    for (uint8_t op = 0; op < NP_OPCODE_SLOTS; op++) {
        if (!np_opcode_is_request(op)) continue;
        for (int o = 0; o < NP_OUTCOMES; o++)
            buf_printf(out, "tally_requests_total{opcode=\"%s\",outcome=\"%s\"} %llu\n", np_opcode_name(op),
                       np_outcome_name((enum np_outcome)o), (unsigned long long)np_front_requests(front, op, (enum np_outcome)o));
    }
}

static void put_engine(const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *help;
        double scale;
    } rows[ENG_STATS] = {
#define STAT(id, name_, scale_, help_) {.name = name_, .scale = scale_, .help = help_},
#include "engine/stat.def"
#undef STAT
    };
    for (int i = 0; i < ENG_STATS; i++) {
        put_header(out, rows[i].name, "counter", rows[i].help);
        buf_printf(out, "%s %.15g\n", rows[i].name, (double)eng_stat(eng, (enum eng_stat)i) * rows[i].scale);
    }
}

void admin_metrics(const struct np_front *front, const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *type, *help;
        double scale;
    } rows[NP_METRICS] = {
#define METRIC(id, name_, type_, scale_, help_) {.name = name_, .type = type_, .help = help_, .scale = scale_},
#include "native_protocol/metric.def"
#undef METRIC
    };
    put_requests(front, out);
    for (int i = 0; i < NP_METRICS; i++) {
        put_header(out, rows[i].name, rows[i].type, rows[i].help);
        buf_printf(out, "%s %.15g\n", rows[i].name, (double)(int64_t)np_front_count(front, (enum np_metric)i) * rows[i].scale);
    }
    put_engine(eng, out);
    put_header(out, "tally_storage_failed", "gauge", "1 when a sync of the log has failed and no write is acknowledged any more");
    buf_printf(out, "tally_storage_failed %d\n", eng_failed(eng) ? 1 : 0);
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct slice text, const char *type) {
    struct MHD_Response *r = MHD_create_response_from_buffer(text.n, (void *)text.p, MHD_RESPMEM_MUST_COPY);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    enum MHD_Result rc = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result answer_metrics(struct admin *a, struct MHD_Connection *c) {
    struct buf b;
    buf_init(&b, METRICS_MAX);
    const char *per = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "per");
    admin_metrics(a->front, a->eng, &b);
    ledger_metrics(a->metering, per && !strcmp(per, "table"), &b);
    enum MHD_Result rc = answer(c, buf_failed(&b) ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_OK, buf_slice(&b), "text/plain; version=0.0.4");
    buf_fini(&b);
    return rc;
}

static enum MHD_Result answer_health(struct admin *a, struct MHD_Connection *c) {
    (void)a;
    return answer(c, MHD_HTTP_OK, slice_str("ok\n"), "text/plain");
}

static enum MHD_Result answer_live(struct admin *a, struct MHD_Connection *c) {
    bool live = np_front_alive(a->front);
    return answer(c, live ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, slice_str(live ? "live\n" : "an event loop hangs\n"), "text/plain");
}

static enum MHD_Result answer_ready(struct admin *a, struct MHD_Connection *c) {
    char why[512] = "", text[600];
    bool ready = eng_ready(a->eng, why, sizeof(why));
    snprintf(text, sizeof(text), "%s\n", ready ? "ready" : why);
    return answer(c, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, slice_str(text), "text/plain");
}

static enum MHD_Result answer_version(struct admin *a, struct MHD_Connection *c) {
    (void)a;
    return answer(c, MHD_HTTP_OK, slice_str("{\"name\":\"tallyd\",\"version\":\"" TALLY_VERSION "\",\"commit\":\"" TALLY_COMMIT "\"}\n"), "application/json");
}

static const struct {
    const char *path;
    enum MHD_Result (*answer)(struct admin *a, struct MHD_Connection *c);
} pages[] = {{"/health", answer_health}, {"/live", answer_live}, {"/ready", answer_ready}, {"/metrics", answer_metrics}, {"/version", answer_version}};

static enum MHD_Result answer_index(struct MHD_Connection *c) {
    struct buf b;
    buf_init(&b, 0);
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) buf_printf(&b, "%s%s", i ? " " : "", pages[i].path);
    buf_put_str(&b, "\n");
    enum MHD_Result rc = answer(c, MHD_HTTP_NOT_FOUND, buf_slice(&b), "text/plain");
    buf_fini(&b);
    return rc;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                  const char *data, size_t *data_n, void **state) {
    (void)version, (void)data, (void)state;
    if (*data_n) return MHD_NO; /* nothing here takes a body */
    if (strcmp(method, "GET") && strcmp(method, "HEAD"))
        return answer(c, MHD_HTTP_METHOD_NOT_ALLOWED, slice_str("only GET\n"), "text/plain");
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (!strcmp(url, pages[i].path)) return pages[i].answer(arg, c);
    return answer_index(c);
}

/* Who opens connections and asks nothing shall not keep others out: with many open the eldest goes, whatever it still wants. */
static void send_off_eldest(struct admin *a) {
    struct visitor *v = TAILQ_FIRST(&a->visitors);
    TAILQ_REMOVE(&a->visitors, v, entry);
    a->n_visitors--;
    v->listed = false;
    shutdown(v->fd, SHUT_RDWR); /* which the daemon sees, and closes */
}

static void on_visitor(void *arg, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what) {
    struct admin *a = arg;
    struct visitor *v = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (!v) return;
        if (v->listed) {
            TAILQ_REMOVE(&a->visitors, v, entry);
            a->n_visitors--;
        }
        free(v);
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = v = calloc(1, sizeof(*v));
    if (!v || !info) return;
    *v = (struct visitor){.fd = info->connect_fd, .listed = true};
    TAILQ_INSERT_TAIL(&a->visitors, v, entry);
    if (++a->n_visitors > VISITORS) send_off_eldest(a);
}

int admin_start(struct admin **out, uint16_t port, struct np_front *front, struct eng *eng, struct system_metering *metering, struct err *e) {
    enum { CONNECTIONS = 2 * VISITORS, IDLE_SECONDS = 10, MEMORY = 16 << 10 };
    *out = NULL;
    if (!port) return 0;
    struct admin *a = calloc(1, sizeof(*a));
    if (!a) return err_nomem(e);
    a->front = front;
    a->eng = eng;
    a->metering = metering;
    TAILQ_INIT(&a->visitors);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, port, NULL, NULL, on_request, a, MHD_OPTION_SOCK_ADDR,
                                 (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
                                 MHD_OPTION_NOTIFY_CONNECTION, on_visitor, a, MHD_OPTION_END);
    if (a->daemon) {
        *out = a;
        return 0;
    }
    free(a);
    return err_set(e, ERR_CONFIG, "cannot listen on 127.0.0.1 port %u for the admin port: %s", port, strerror(errno));
}

void admin_stop(struct admin *a) {
    MHD_stop_daemon(a->daemon);
    free(a);
}
