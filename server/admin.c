#include "server/admin.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/stats.h"
#include "server/http/listener.h"

struct admin {
    struct http_listener *listener;
    struct np_front *front;
    struct eng *eng;
    struct membership *membership; /* NULL if there is one server */
    struct system_metering *metering;
    struct live_page *page;
};

static void put_header(struct buf *out, const char *name, const char *type, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A histogram as Prometheus has them: each bucket counts what does not exceed its bound. */
static void put_durations(const char *use, const struct eng_durations *d, struct buf *out) {
    uint64_t n = 0;
    for (int i = 0; i < ENG_DURATION_BOUNDS; i++) {
        n += d->n[i];
        buf_printf(out, "tally_store_seconds_bucket{use=\"%s\",le=\"%.15g\"} %llu\n", use,
                   eng_duration_bounds_us[i] * 1e-6, (unsigned long long)n);
    }
    n += d->n[ENG_DURATION_BOUNDS];
    buf_printf(out, "tally_store_seconds_bucket{use=\"%s\",le=\"+Inf\"} %llu\n", use, (unsigned long long)n);
    buf_printf(out, "tally_store_seconds_sum{use=\"%s\"} %.15g\n", use, (double)d->sum_us * 1e-6);
    buf_printf(out, "tally_store_seconds_count{use=\"%s\"} %llu\n", use, (unsigned long long)n);
}

static bool is_total(const char *name) {
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "_total");
}

/* The figures of a remote store. */
static void put_store_metrics(const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *help;
    } rows[ENG_STORE_STATS] = {
#define STORE_STAT(id, name_, help_) {.name = name_, .help = help_},
#include "engine/store_stat.def"
#undef STORE_STAT
    };
    struct eng_store_figures f;
    if (!eng_store_figures(eng, &f)) return;
    for (int i = 0; i < ENG_STORE_STATS; i++) {
        put_header(out, rows[i].name, is_total(rows[i].name) ? "counter" : "gauge", rows[i].help);
        buf_printf(out, "%s %llu\n", rows[i].name, (unsigned long long)f.n[i]);
    }
    put_header(out, "tally_store_seconds", "histogram", "How long operations of the store took");
    put_durations("read", &f.reads, out);
    put_durations("write", &f.writes, out);
}

/* The part of /metrics that is not the ledger's. */
static void put_metrics(const struct np_front *front, const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *type, *help;
        double scale;
    } rows[NP_METRICS] = {
#define METRIC(id, name_, type_, scale_, help_) {.name = name_, .type = type_, .help = help_, .scale = scale_},
#include "native_protocol/metric.def"
#undef METRIC
    };
    static const struct {
        const char *name, *help;
        double scale;
    } stats[ENG_STATS] = {
#define STAT(id, name_, scale_, help_) {.name = name_, .scale = scale_, .help = help_},
#include "engine/stat.def"
#undef STAT
    };
    put_header(out, "tally_requests_total", "counter", "Requests answered, by opcode and outcome");
    for (uint8_t op = 0; op < NP_OPCODE_SLOTS; op++)
        for (int o = 0; np_opcode_is_request(op) && o < NP_OUTCOMES; o++)
            buf_printf(out, "tally_requests_total{opcode=\"%s\",outcome=\"%s\"} %llu\n", np_opcode_name(op),
                       np_outcome_name((enum np_outcome)o),
                       (unsigned long long)np_front_requests(front, op, (enum np_outcome)o));
    for (int i = 0; i < NP_METRICS; i++) {
        put_header(out, rows[i].name, rows[i].type, rows[i].help);
        buf_printf(out, "%s %.15g\n", rows[i].name,
                   (double)(int64_t)np_front_count(front, (enum np_metric)i) * rows[i].scale);
    }
    for (int i = 0; i < ENG_STATS; i++) {
        put_header(out, stats[i].name, is_total(stats[i].name) ? "counter" : "gauge", stats[i].help);
        buf_printf(out, "%s %.15g\n", stats[i].name, (double)eng_stat(eng, (enum eng_stat)i) * stats[i].scale);
    }
    put_header(out, "tally_storage_failed", "gauge",
               "1 when a sync of the log has failed and no write is acknowledged any more");
    buf_printf(out, "tally_storage_failed %d\n", eng_failed(eng) ? 1 : 0);
}

static void put_membership_metrics(struct membership *m, struct buf *out) {
    const struct member_list *l = membership_list(m);
    put_header(out, "tally_servers_live", "gauge", "Servers on the store that are alive, this one among them");
    buf_printf(out, "tally_servers_live %u\n", l->n);
    membership_unref(l);
    put_header(out, "tally_server_lease_age_seconds", "gauge",
               "Time since this server's record in the store was renewed; the others consider it dead after 6 seconds");
    buf_printf(out, "tally_server_lease_age_seconds %.6f\n", (double)membership_age_us(m) / 1000000);
    put_header(out, "tally_server_leads", "gauge", "1 while this server carries asynchronous DDL to its end");
    buf_printf(out, "tally_server_leads %d\n", membership_leads(m));
}

/* Whether the server takes requests; if not, the reason goes to why. */
static bool is_ready(struct admin *a, char *why, size_t size) {
    if (!eng_ready(a->eng, why, size)) return false;
    int64_t age_us = a->membership ? membership_age_us(a->membership) : 0;
    if (age_us < MEMBERSHIP_EXPIRE_US) return true;
    snprintf(why, size, "this server's record in the store was not renewed for %lld s",
             (long long)(age_us / 1000000));
    return false;
}

static void answer(struct http_answer *out, unsigned status, const char *text) {
    out->status = status;
    out->type = "text/plain";
    buf_put_str(&out->body, text);
}

static void handle(void *arg, const struct http_request *q, struct http_answer *out) {
    struct admin *a = arg;
    char why[512] = "";
    if (page_answer(a->page, q, out)) return;
    if (strcmp(q->method, "GET") && strcmp(q->method, "HEAD")) answer(out, 405, "only GET\n");
    else if (!strcmp(q->path, "/health")) answer(out, 200, "ok\n");
    else if (!strcmp(q->path, "/live")) {
        bool live = np_front_alive(a->front);
        answer(out, live ? 200 : 503, live ? "live\n" : "an event loop hangs\n");
    } else if (!strcmp(q->path, "/ready")) {
        bool ready = is_ready(a, why, sizeof(why));
        answer(out, ready ? 200 : 503, ready ? "ready" : why);
        buf_put_str(&out->body, "\n");
    } else if (!strcmp(q->path, "/metrics")) {
        const char *per = http_argument(q, "per");
        answer(out, 200, "");
        out->type = "text/plain; version=0.0.4";
        put_metrics(a->front, a->eng, &out->body);
        put_store_metrics(a->eng, &out->body);
        if (a->membership) put_membership_metrics(a->membership, &out->body);
        ledger_metrics(a->metering, per && !strcmp(per, "table"), &out->body);
    } else if (!strcmp(q->path, "/version")) {
        answer(out, 200,
               "{\"name\":\"tallyd\",\"version\":\"" TALLY_VERSION "\",\"commit\":\"" TALLY_COMMIT
               "\",\"rocksdb\":\"" TALLY_ROCKSDB_VERSION "\"}\n");
        out->type = "application/json";
    } else
        answer(out, 404, "/health /live /ready /metrics /version\n");
}

int admin_start(struct admin **out, const char *address, uint16_t port, const struct http_hosts *hosts,
                struct np_front *front, struct eng *eng, struct membership *membership,
                struct system_metering *metering, struct live_page *page, struct err *e) {
    *out = NULL;
    if (!port) return 0;
    struct admin *a = calloc(1, sizeof(*a));
    if (!a) return err_nomem(e);
    *a = (struct admin){.front = front, .eng = eng, .membership = membership, .metering = metering, .page = page};
    const struct http_options o = {.address = address, .port = port, .what = "the admin port",
                                   .body_max = PAGE_BODY, .hosts = *hosts, .handle = handle, .arg = a};
    if (http_start(&a->listener, &o, e) == 0) {
        *out = a;
        return 0;
    }
    free(a);
    return -1;
}

uint16_t admin_port(const struct admin *a) { return http_port(a->listener); }

void admin_stop(struct admin *a) {
    page_stop(a->page);
    http_stop(a->listener);
    free(a);
}
