/* tally replay to a server: sends every request at its captured time, or as fast as answers come,
 * over connections like the captured ones.
 *
 * Order: requests are sent in the order in which they began. A request waits until all requests
 * that had ended when it began are answered, so it sees the same effects of them as in the capture.
 * After a schema statement the replay waits until the change has taken effect.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/client/load.h"
#include "tools/tally/replay.h"

enum { IN_FLIGHT = 64, SCHEMA_CHANGE_KIND = 5, SETTLE_S = 60 };

/* A captured connection. */
struct source {
    uint64_t id;
    uint8_t version;
    size_t first; /* its first request */
};

struct sender {
    struct trace_replay *p;
    const struct trace *t;
    struct load *load;
    struct client watcher; /* prepares statements and polls the schema */
    struct client_options options[3];
    struct client_prepared *prepared; /* by statement of the trace; id.p NULL: not yet */
    struct arena keep, arena;
    size_t n_sources;
    struct source *sources;
    uint32_t *source_of;  /* by request */
    size_t *order;        /* requests by when they began */
    size_t next;          /* in order */
    size_t *ended_before; /* by request: length of the capture's prefix that had ended when it began */
    size_t answered_all;  /* length of the capture's prefix that is answered or left out */
    bool *is_answered;
    struct buf *states;   /* by request: the paging state of its next page */
    uint64_t begun_ns;
    double speed; /* 0 as fast as answers come */
    struct err failed;
    bool told;
    uint64_t told_at;
};

/* ---- the order ---- */

static const struct trace *sorting; /* qsort takes no argument for by_begin; one thread */

static int by_begin(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int64_t at_x = sorting->requests[x].q.began_us, at_y = sorting->requests[y].q.began_us;
    if (at_x != at_y) return at_x < at_y ? -1 : 1;
    return (x > y) - (x < y);
}

static int make_order(struct sender *s, struct err *e) {
    const struct trace *t = s->t;
    s->order = calloc(t->n + 1, sizeof(*s->order));
    s->ended_before = calloc(t->n + 1, sizeof(*s->ended_before));
    s->is_answered = calloc(t->n + 1, 1);
    s->states = calloc(t->n + 1, sizeof(*s->states));
    s->prepared = calloc(t->n_statements + 1, sizeof(*s->prepared));
    if (!s->order || !s->ended_before || !s->is_answered || !s->states || !s->prepared) return err_nomem(e);
    for (size_t i = 0; i < t->n; i++) {
        s->order[i] = i;
        /* ended_before: how many of the first i requests had ended when request i began */
        int64_t began = t->requests[i].q.began_us;
        size_t low = 0, high = i;
        while (low < high) { /* the capture is ordered by end time, with small deviations */
            size_t mid = low + (high - low) / 2;
            if (trace_ended(&t->requests[mid]) <= began) low = mid + 1;
            else high = mid;
        }
        s->ended_before[i] = low;
        s->is_answered[i] = replay_skips(t, &t->requests[i]);
    }
    sorting = t;
    qsort(s->order, t->n, sizeof(*s->order), by_begin);
    return 0;
}

static void skip(struct sender *s) {
    while (s->next < s->t->n && replay_skips(s->t, &s->t->requests[s->order[s->next]])) s->next++;
    while (s->answered_all < s->t->n && s->is_answered[s->answered_all]) s->answered_all++;
}

/* ---- connections ---- */

static uint8_t version_of(uint8_t captured) {
    return captured < 4 ? 4 : captured; /* v4 accepts v3's bodies and reports the charge */
}

static int by_source(const void *a, const void *b) {
    const struct source *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (int)x->version - (int)y->version;
}

static int find_sources(struct sender *s, struct err *e) {
    const struct trace *t = s->t;
    struct source *all = calloc(t->n + 1, sizeof(*all));
    s->source_of = calloc(t->n + 1, sizeof(*s->source_of));
    if (!all || !s->source_of) {
        free(all);
        return err_nomem(e);
    }
    for (size_t i = 0; i < t->n; i++)
        all[i] = (struct source){t->requests[i].q.connection, version_of(t->requests[i].q.version), i};
    qsort(all, t->n, sizeof(*all), by_source);
    for (size_t i = 0; i < t->n; i++) {
        bool same = s->n_sources && !by_source(&all[s->n_sources - 1], &all[i]);
        if (!same) all[s->n_sources++] = all[i];
        else if (all[i].first < all[s->n_sources - 1].first) all[s->n_sources - 1].first = all[i].first;
    }
    s->sources = all;
    for (size_t i = 0; i < t->n; i++) {
        const struct source key = {t->requests[i].q.connection, version_of(t->requests[i].q.version), 0};
        const struct source *found = bsearch(&key, all, s->n_sources, sizeof(key), by_source);
        s->source_of[i] = (uint32_t)(found - all);
    }
    return 0;
}

/* Connection i speaks versions[i % VERSIONS]. */
static const uint8_t versions[] = {4, 5};
enum { VERSIONS = sizeof(versions) };

static unsigned lanes_of(const struct sender *s) {
    unsigned most = s->p->flags->connections / VERSIONS;
    if (!most) most = 1;
    return s->n_sources < most ? (unsigned)(s->n_sources ? s->n_sources : 1) : most;
}

static unsigned connection_of(const struct sender *s, size_t request) {
    uint32_t source = s->source_of[request];
    return source % lanes_of(s) * VERSIONS + (s->sources[source].version == versions[1]);
}

/* Connects, and enters the keyspace of each source that had executed USE before its first captured
 * request. A failing USE is ignored: the capture itself may create the keyspace. */
static int open_connections(struct sender *s, struct err *e) {
    const struct client_options *list[VERSIONS];
    if (remote_read((struct remote *)&s->p->flags->remote, e)) return -1;
    for (int i = 0; i < VERSIONS; i++) {
        s->options[i] = s->p->flags->remote.options;
        s->options[i].version = versions[i];
        list[i] = &s->options[i];
    }
    bool has_v5 = false;
    for (size_t i = 0; i < s->n_sources; i++) has_v5 = has_v5 || s->sources[i].version == versions[1];
    if (!has_v5) s->options[1].version = versions[0]; /* the server may not support v5 */
    s->options[2] = s->p->flags->remote.options;
    s->options[2].version = has_v5 ? versions[1] : versions[0]; /* v5 EXECUTE needs the result metadata id */
    if (client_open(&s->watcher, &s->options[2], e)) return -1;
    s->load = load_open(list, VERSIONS, lanes_of(s) * VERSIONS, IN_FLIGHT, e);
    for (size_t i = 0; s->load && i < s->n_sources; i++) {
        const struct trace_request *r = &s->t->requests[s->sources[i].first];
        struct client_answer a;
        struct err why = {0};
        char text[256];
        if (!r->q.keyspace.n) continue;
        if (lanes_of(s) < s->n_sources)
            return err_set(e, ERR_CONFIG,
                           "the capture has %zu connections, some of which say USE: --connections must be at least %zu",
                           s->n_sources, s->n_sources * VERSIONS);
        snprintf(text, sizeof(text), "USE \"%.*s\"", SLICE_FMT(r->q.keyspace));
        if (client_run(load_client(s->load, connection_of(s, s->sources[i].first)), text, &a, &why) &&
            why.code == ERR_SERVER)
            return err_set(e, ERR_SERVER, "%s", why.text);
    }
    return s->load ? 0 : -1;
}

/* ---- prepared statements ---- */

static const struct client_prepared *prepare(struct sender *s, struct slice id) {
    const struct capture_statement *c = trace_statement(s->t, id);
    struct err why = {0};
    if (!c) return NULL;
    struct client_prepared *p = &s->prepared[c - s->t->statements];
    if (p->id.p) return p;
    if (c->keyspace.n && s->watcher.version < 5) { /* v4 prepares in the session's keyspace */
        struct client_answer a;
        char text[256];
        snprintf(text, sizeof(text), "USE \"%.*s\"", SLICE_FMT(c->keyspace));
        if (client_run(&s->watcher, text, &a, &why)) return NULL;
    }
    if (client_prepare(&s->watcher, c->text, c->keyspace.n ? c->keyspace : (struct slice){0}, &s->keep, p, &why))
        p->id = (struct slice){0};
    return p->id.p ? p : NULL;
}

static void forget(struct sender *s) {
    for (size_t i = 0; i < s->t->n_statements; i++) s->prepared[i].id = (struct slice){0};
}

/* ---- the schema ---- */

/* Waits until the change in r, a SCHEMA_CHANGE result, has taken effect, at most SETTLE_S seconds;
 * not at all on a server without system_schema_mcs. */
static void settle(struct sender *s, const struct wire_response *r) {
    const struct timespec pause = {.tv_nsec = 20000000};
    struct rd in = rd_of(r->body);
    rd_u32(&in);
    struct slice change = rd_bytes(&in, rd_u16(&in)), target = rd_bytes(&in, rd_u16(&in)),
                 keyspace = rd_bytes(&in, rd_u16(&in)), name = {0};
    bool table = slice_is(target, "TABLE"), dropped = slice_is(change, "DROPPED"), settled = false;
    if (table) name = rd_bytes(&in, rd_u16(&in));
    if (in.bad || (!table && !slice_is(target, "KEYSPACE"))) return;
    char text[512];
    if (table)
        snprintf(text, sizeof(text),
                 "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = '%.*s' AND table_name = '%.*s'",
                 SLICE_FMT(keyspace), SLICE_FMT(name));
    else
        snprintf(text, sizeof(text),
                 "SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = '%.*s'",
                 SLICE_FMT(keyspace));
    for (uint64_t until = load_now() + (uint64_t)SETTLE_S * 1000000000u; !settled && load_now() < until;) {
        struct client_answer a;
        struct err why = {0};
        if (client_run(&s->watcher, text, &a, &why)) break;
        bool there = a.has_rows && client_rows_next(&a.rows);
        settled = dropped ? !there
                          : there && (!table ||
                                      !strcmp(client_text(&a.rows, &s->watcher.arena, "status"), "ACTIVE"));
        if (!settled) nanosleep(&pause, NULL);
    }
    forget(s);
}

/* ---- the driver ---- */

static uint64_t due(void *arg) {
    struct sender *s = arg;
    skip(s);
    if (s->next >= s->t->n || s->failed.set) return FLIGHT_NEVER;
    size_t i = s->order[s->next];
    if (s->answered_all < s->ended_before[i]) return FLIGHT_NEVER; /* not before the next answer */
    if (!s->speed) return load_now();
    double since_us = (double)(s->t->requests[i].q.began_us - s->t->requests[s->order[0]].q.began_us);
    return s->begun_ns + (uint64_t)(since_us * 1000 / s->speed);
}

static unsigned where(void *arg) {
    struct sender *s = arg;
    return connection_of(s, s->order[s->next]);
}

static bool pick(void *arg, struct flight_slot *slot) {
    struct sender *s = arg;
    slot->a = s->order[s->next++];
    return true;
}

/* Copies the body up to a part with a length before it, and puts another part in its place. *at: how
 * far the body is copied. */
static void replace(struct buf *out, const uint8_t **at, struct slice old, struct slice new, unsigned length_bytes) {
    buf_put(out, *at, (size_t)(old.p - length_bytes - *at));
    if (length_bytes == 2) buf_u16(out, (uint16_t)new.n);
    else buf_u32(out, (uint32_t)new.n);
    buf_put_slice(out, new);
    *at = old.p + old.n;
}

/* Writes the captured request with the parts that differ on this server: ids of prepared statements
 * and the paging state. */
static void put(void *arg, const struct flight_slot *slot, uint8_t version, uint16_t stream, struct buf *out) {
    struct sender *s = arg;
    const struct trace_request *r = &s->t->requests[slot->a];
    const uint8_t *copied = r->q.body.p;
    struct cql_request q;
    struct err ignored = {0};
    arena_reset(&s->arena);
    bool sound = !trace_decode(r, &s->arena, &q, &ignored);
    const struct client_prepared *p = sound && q.prepared_id.p ? prepare(s, q.prepared_id) : NULL;
    size_t at = wire_begin(out, version, stream, (enum np_opcode)r->q.opcode);
    if (r->q.flags & NP_FLAG_PAYLOAD && !buf_failed(out)) out->p[at + 1] |= NP_FLAG_PAYLOAD;
    if (p) replace(out, &copied, q.prepared_id, p->id, 2);
    if (p && q.params.result_metadata_id.p && p->result_id.p)
        replace(out, &copied, q.params.result_metadata_id, p->result_id, 2);
    for (uint32_t k = 0; sound && k < q.n_items; k++)
        if (q.items[k].prepared_id.p && (p = prepare(s, q.items[k].prepared_id)))
            replace(out, &copied, q.items[k].prepared_id, p->id, 2);
    if (sound && q.params.paging_state.p && r->page_before != TRACE_NONE && s->states[r->page_before].n)
        replace(out, &copied, q.params.paging_state, buf_slice(&s->states[r->page_before]), 4);
    buf_put(out, copied, (size_t)(r->q.body.p + r->q.body.n - copied));
    wire_end(out, at);
}

static int64_t answered(void *arg, struct flight_slot *slot, const struct load_answer *a) {
    struct sender *s = arg;
    size_t i = slot->a;
    const struct wire_response *r = a->response;
    struct replayed *out = &s->p->results[i];
    struct slice text;
    double charge = wire_charge(r);
    *out = (struct replayed){.sent = true, .halves = charge < 0 ? -1 : (int64_t)(charge * 2)};
    if (r->opcode == NP_ERROR) {
        out->outcome = wire_error_code(r, &text);
        out->throttled = wire_payload(r, "throttle").p != NULL;
        out->halves = 0;
        if (out->outcome == ERR_UNPREPARED && slot->tries < 3) { /* its table has changed since */
            forget(s);
            return 0;
        }
    }
    struct slice state = wire_paging_state(r);
    if (state.p) {
        buf_init(&s->states[i], 0);
        buf_put_slice(&s->states[i], state);
    }
    hist_add(s->p->latency, s->speed ? a->latency_ns : a->service_ns);
    if (r->opcode == NP_RESULT && r->body.n >= 4 && load_u32(r->body.p) == SCHEMA_CHANGE_KIND) settle(s, r);
    s->is_answered[i] = true;
    return -1;
}

static bool tick(void *arg) {
    struct sender *s = arg;
    uint64_t now = load_now();
    if (s->p->flags->json || now < s->told_at) return s->failed.set;
    s->told_at = now + UINT64_C(1000000000);
    if (s->told) fprintf(stderr, "%zu of %zu requests\n", s->answered_all, s->t->n);
    s->told = true;
    return s->failed.set;
}

/* ---- all ---- */

int replay_send(struct trace_replay *p, struct err *e) {
    struct sender s = {.p = p, .t = p->trace};
    const struct load_driver d = {
        .arg = &s, .due = due, .where = where, .pick = pick, .put = put, .answered = answered, .tick = tick};
    const char *speed = p->flags->speed;
    char *end = "";
    uint64_t unanswered = 0;
    arena_init(&s.keep, 64 << 10, 0);
    arena_init(&s.arena, 64 << 10, 0);
    bool most = !strcmp(speed, "max");
    if (!most) s.speed = strtod(speed, &end);
    if (*end == 'x') end++;
    int rc = *end || (!most && !(s.speed > 0)) || s.speed > 1e6
                 ? err_set(e, ERR_CONFIG, "--speed must be a number above 0, or max, not '%s'", speed)
                 : 0;
    if (!rc) rc = make_order(&s, e) || find_sources(&s, e) || open_connections(&s, e) ? -1 : 0;
    s.begun_ns = load_now();
    if (!rc) rc = load_run(s.load, &d, 0, &p->seconds, &unanswered, e);
    if (!rc) skip(&s);
    if (!rc && (unanswered || s.next < s.t->n))
        rc = err_set(e, ERR_SERVER, "the server did not answer %" PRIu64 " of the requests", unanswered);
    for (size_t i = 0; s.states && i < s.t->n; i++)
        if (s.states[i].p) buf_fini(&s.states[i]);
    if (s.load) load_close(s.load);
    client_close(&s.watcher);
    arena_fini(&s.keep);
    arena_fini(&s.arena);
    free(s.prepared);
    free(s.sources);
    free(s.source_of);
    free(s.order);
    free(s.ended_before);
    free(s.is_answered);
    free(s.states);
    return rc;
}
