#include "server/admin.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/http/listener.h"

struct admin {
    struct http_listener *listener;
    struct metrics_sources sources;
    struct live_page *page;
};

/* Whether the server takes requests; if not, the reason goes to why. */
static bool is_ready(struct admin *a, char *why, size_t size) {
    const struct metrics_sources *s = &a->sources;
    if (!eng_ready(s->eng, why, size)) return false;
    int64_t age_us = s->membership ? membership_age_us(s->membership) : 0;
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
        bool live = np_front_alive(a->sources.front);
        answer(out, live ? 200 : 503, live ? "live\n" : "an event loop hangs\n");
    } else if (!strcmp(q->path, "/ready")) {
        bool ready = is_ready(a, why, sizeof(why));
        answer(out, ready ? 200 : 503, ready ? "ready" : why);
        buf_put_str(&out->body, "\n");
    } else if (!strcmp(q->path, "/metrics")) {
        const char *per = http_argument(q, "per");
        answer(out, 200, "");
        out->type = "text/plain; version=0.0.4";
        metrics_put(&a->sources, per && !strcmp(per, "table"), is_ready(a, why, sizeof(why)), &out->body);
    } else if (!strcmp(q->path, "/version")) {
        answer(out, 200,
               "{\"name\":\"tallyd\",\"version\":\"" TALLY_VERSION "\",\"commit\":\"" TALLY_COMMIT
               "\",\"rocksdb\":\"" TALLY_ROCKSDB_VERSION "\"}\n");
        out->type = "application/json";
    } else
        answer(out, 404, "/health /live /ready /metrics /version\n");
}

int admin_start(struct admin **out, const char *address, uint16_t port, const struct http_hosts *hosts,
                const struct metrics_sources *sources, struct live_page *page, struct err *e) {
    *out = NULL;
    if (!port) return 0;
    struct admin *a = calloc(1, sizeof(*a));
    if (!a) return err_nomem(e);
    *a = (struct admin){.sources = *sources, .page = page};
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
