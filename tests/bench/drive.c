#include "tests/bench/drive.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/client/load.h"

/* Until what fills is sent again to a server that is overloaded. */
enum { BUSY_NS = 100000000 };

/* A slot keeps the random number that decided what it asks for; of a row that is written before, the row's number. */
struct drive {
    struct client_options options;
    struct load *load;
    uint8_t ids[STATEMENTS][16];
    enum statement request;
    unsigned fill; /* while filling: which; else 0 */
    uint32_t large;
    uint64_t next_row, n_rows;
    uint64_t seed;
    struct drive_result *result;
};

/* xorshift64*: the same sequence every run. */
static uint64_t next_random(struct drive *l) {
    l->seed ^= l->seed >> 12;
    l->seed ^= l->seed << 25;
    l->seed ^= l->seed >> 27;
    return l->seed * 2685821657736338717ull;
}

static bool pick(void *arg, struct flight_slot *s) {
    struct drive *l = arg;
    if (l->fill && l->next_row >= l->n_rows) return false;
    s->a = l->fill ? l->next_row++ : next_random(l);
    return true;
}

static void put(void *arg, const struct flight_slot *slot, uint8_t version, uint16_t stream, struct buf *out) {
    struct drive *l = arg;
    (void)version;
    if (l->fill) {
        fill_put(out, stream, l->fill, slot->a, (const uint8_t (*)[16])l->ids, l->large);
        return;
    }
    enum statement s = workload_pick(l->request, slot->a);
    workload_put(out, stream, s, l->ids[s], slot->a, l->large);
}

static void fail(struct drive *l, const char *text) {
    l->result->failed++;
    if (!l->result->first_error[0]) snprintf(l->result->first_error, sizeof(l->result->first_error), "%s", text);
}

static int64_t answered(void *arg, struct flight_slot *slot, const struct load_answer *a) {
    struct drive *l = arg;
    char text[256];
    int64_t expected = l->fill ? -1 : statement_rows(workload_pick(l->request, slot->a));
    if (l->fill && wire_is_busy(a->response)) return BUSY_NS;
    l->result->requests++;
    hist_add(&l->result->latency, a->service_ns);
    if (a->response->opcode == NP_ERROR) {
        wire_error(a->response, text, sizeof(text));
        fail(l, text);
    } else if (expected >= 0 && wire_rows(a->response) != expected) {
        snprintf(text, sizeof(text), "a response of %lld rows, %lld expected", (long long)wire_rows(a->response),
                 (long long)expected);
        fail(l, text);
    }
    return -1;
}

/* ---- start ---- */

static int prepare(struct drive *l, enum statement s, struct err *e) {
    struct arena keep;
    struct client_prepared p;
    arena_init(&keep, 4096, 0);
    int rc = client_prepare(load_client(l->load, 0), slice_str(statement_text(s)), (struct slice){0}, &keep, &p, e);
    if (!rc && p.id.n != 16) rc = err_set(e, ERR_PROTOCOL, "a prepared id of %zu bytes", p.id.n);
    if (!rc) memcpy(l->ids[s], p.id.p, 16);
    arena_fini(&keep);
    return rc;
}

static int make_schema(struct drive *l, struct err *e) {
    struct client_answer ignored;
    for (const char *const *text = workload_schema; *text; text++)
        if (client_run(load_client(l->load, 0), *text, &ignored, e)) return -1;
    for (int s = 0; s < STATEMENTS; s++)
        if (statement_is_prepared((enum statement)s) && prepare(l, (enum statement)s, e)) return -1;
    return 0;
}

struct drive *drive_open(const struct proc *p, unsigned connections, unsigned in_flight, bool with_schema) {
    struct drive *l = calloc(1, sizeof(*l));
    struct err e = {0};
    if (!l) return NULL;
    *l = (struct drive){
        .options = {.link = {.host = p->host, .port = p->port, .tls = p->tls, .insecure = p->tls, .timeout_ms = 60000},
                    .version = WORKLOAD_VERSION,
                    .bare = !with_schema},
        .seed = 88172645463325252ull};
    l->ids[ST_READ][0] = LOAD_ID_READ;
    l->ids[ST_INSERT][0] = LOAD_ID_INSERT;
    l->ids[ST_SLICE][0] = LOAD_ID_SLICE;
    l->ids[ST_MERGED_INSERT][0] = LOAD_ID_MERGED;
    l->ids[ST_UPDATE][0] = LOAD_ID_UPDATE;
    const struct client_options *const options = &l->options;
    l->load = load_open(&options, 1, connections, in_flight, &e);
    if (l->load && (!with_schema || make_schema(l, &e) == 0)) return l;
    fprintf(stderr, "%s\n", e.text);
    drive_close(l);
    return NULL;
}

/* ---- running ---- */

static double run(struct drive *l, double seconds) {
    const struct load_driver d = {.arg = l, .pick = pick, .put = put, .answered = answered};
    struct err e = {0};
    double took;
    uint64_t unanswered;
    if (load_run(l->load, &d, seconds, &took, &unanswered, &e) || unanswered) {
        fprintf(stderr, "%s\n", e.set ? e.text : "the server does not answer");
        exit(1);
    }
    return took;
}

/* One FILL_..., and that it was written. */
static int fill(struct drive *l, const char *name, struct err *e) {
    struct drive_result r = {0};
    struct client_answer ignored;
    char text[128];
    l->result = &r;
    l->next_row = 0;
    l->n_rows = fill_size(l->fill, l->large);
    run(l, 0);
    if (r.failed)
        return err_set(e, ERR_SERVER, "%llu of %llu rows were not written: %s", (unsigned long long)r.failed,
                       (unsigned long long)r.requests, r.first_error);
    snprintf(text, sizeof(text), "INSERT INTO bench.filled (name) VALUES ('%s')", name);
    return l->options.bare ? 0 : client_run(load_client(l->load, 0), text, &ignored, e);
}

/* Whether a server that keeps its data has it from before. */
static int is_filled(struct drive *l, const char *name, struct err *e) {
    struct client_answer a;
    char text[128];
    snprintf(text, sizeof(text), "SELECT name FROM bench.filled WHERE name = '%s'", name);
    if (l->options.bare) return 0;
    return client_run(load_client(l->load, 0), text, &a, e) ? -1 : a.rows.n > 0;
}

int drive_fill(struct drive *l, unsigned fills, uint32_t large) {
    struct err e = {0};
    char name[32];
    l->large = large;
    for (l->fill = 1; l->fill < FILLS_END && !e.set; l->fill <<= 1) {
        if (!(fills & l->fill)) continue;
        snprintf(name, sizeof(name), "%u of %llu", l->fill, (unsigned long long)fill_size(l->fill, large));
        if (!is_filled(l, name, &e) && fill(l, name, &e)) break;
    }
    l->fill = 0;
    if (e.set) fprintf(stderr, "%s\n", e.text);
    return e.set ? -1 : 0;
}

void drive_run(struct drive *l, enum workload w, uint32_t large, double seconds, struct drive_result *out) {
    l->large = large;
    l->result = out;
    l->request = workload_rows[w].request;
    out->seconds += run(l, seconds);
}

void drive_close(struct drive *l) {
    if (l->load) load_close(l->load);
    free(l);
}
