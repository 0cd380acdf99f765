#include "tests/bench/growth_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/client/load.h"

enum {
    VERSION = 4,
    VALUE_BYTES = 20,
    BATCH_MAX = 30,
    WALK_PAGE = 5000,
    UNLOGGED = 1,
    BUSY_NS = 100000000 /* until what fills is sent again to a server that is overloaded */
};

struct growth_load {
    const struct proc *proc;
    struct client_options options;
    struct load *load;
    uint64_t n, seed;
    char keyspace[32];
    struct arena keep;
    struct client_prepared prepared[GROWTHS];
    struct buf values;
    struct buf states[GROWTHS]; /* where the page begins that is asked for; empty: at the first */
    /* what is under way */
    enum growth what;
    const struct fill *fill;
    struct client_prepared filling;
    uint64_t next_item;
    struct growth_cost *cost;
};

/* Of the big collection, at most what one row may have; of those deleted, as many as the other
 * server still reads past. */
static uint64_t growth_elements(uint64_t n) { return n / 64; }
static uint64_t growth_deleted(uint64_t n) { return n / 32; }

const struct growth_row growth_rows[GROWTHS] = {
#define GROWTH(id, name_, rows_, page_, depth_, binds_, grows_, text_) \
    {.name = name_, .rows = rows_, .page = page_, .binds = binds_, .follows = grows_, .text = text_},
#include "tests/bench/growth.def"
#undef GROWTH
};

static uint64_t depth_of(enum growth what, uint64_t n) {
    const uint64_t depths[GROWTHS] = {
#define GROWTH(id, name_, rows_, page_, depth_, ...) depth_,
#include "tests/bench/growth.def"
#undef GROWTH
    };
    return depths[what];
}

/* ---- values ---- */

static void put_int(struct buf *b, uint64_t v) {
    buf_u32(b, 4);
    buf_u32(b, (uint32_t)v);
}

static void put_text(struct buf *b, uint64_t i) {
    char text[VALUE_BYTES + 1];
    snprintf(text, sizeof(text), "%08x-%08x-xx", (unsigned)i, (unsigned)(i * 2654435761u));
    wire_put_value(b, text, VALUE_BYTES);
}

static void put_map(struct buf *b, uint64_t n) {
    buf_u32(b, (uint32_t)(4 + n * (4 + 4 + 4 + VALUE_BYTES)));
    buf_u32(b, (uint32_t)n);
    for (uint64_t i = 0; i < n; i++) {
        put_int(b, i);
        put_text(b, i);
    }
}

/* i: the number of an item, or a random one. */
static void put_value(const struct growth_load *g, char bind, uint64_t i, struct buf *b) {
    switch (bind) {
    case 'i': put_int(b, i); break;
    case 'p': put_int(b, i / 2); break;
    case 'q': put_int(b, i % 2); break;
    case 'x': put_int(b, i + 100); break;
    case 'g': put_int(b, growth_deleted(g->n) + 100); break;
    case 'c': put_int(b, growth_deleted(g->n)); break;
    case 't': put_text(b, i); break;
    case 'M': put_map(b, growth_elements(g->n)); break;
    case 'r': put_int(b, i % g->n); break;
    case 'm': put_int(b, g->n / 2 + i % (g->n / 4)); break;
    case 's': put_int(b, i % (g->n / 2)); break;
    case 'e': put_int(b, i % growth_elements(g->n)); break;
    default: buf_u32(b, 8), buf_u64(b, i >> 2); break; /* T: a quarter of all rows and more lie behind it */
    }
}

static uint16_t put_values(const struct growth_load *g, const char *binds, uint64_t i, struct buf *b) {
    uint16_t n = 0;
    for (; binds[n]; n++) put_value(g, binds[n], i, b);
    return n;
}

static uint64_t next_random(struct growth_load *g) {
    g->seed ^= g->seed >> 12;
    g->seed ^= g->seed << 25;
    g->seed ^= g->seed >> 27;
    return g->seed * 2685821657736338717ull;
}

/* ---- opening ---- */

#define GROWTH_TABLE(name) "CREATE TABLE IF NOT EXISTS %s." name " (pk int, ck int, c1 text, PRIMARY KEY (pk, ck))"

static const char *const schema[] = {
    "CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    GROWTH_TABLE("wide"),
    GROWTH_TABLE("small"),
    GROWTH_TABLE("gone"),
    GROWTH_TABLE("cut"),
    GROWTH_TABLE("often"),
    "CREATE TABLE IF NOT EXISTS %s.big (pk int, ck int, s text, m map<int, text>, PRIMARY KEY (pk, ck))",
    "CREATE TABLE IF NOT EXISTS %s.filled (name text PRIMARY KEY)",
};

/* A text of the tables with the keyspace's name in it. */
static const char *named(const struct growth_load *g, const char *text, char out[512]) {
    const char *at = strstr(text, "%s");
    snprintf(out, 512, "%.*s%s%s", (int)(at - text), text, g->keyspace, at + 2);
    return out;
}

static int ask(struct growth_load *g, const char *format, struct client_answer *a, struct err *e) {
    char text[512];
    return client_run(load_client(g->load, 0), named(g, format, text), a, e);
}

static int prepare(struct growth_load *g, const char *format, struct client_prepared *out, struct err *e) {
    char text[512];
    return client_prepare(load_client(g->load, 0), slice_str(named(g, format, text)), (struct slice){0}, &g->keep, out,
                          e);
}

static int make_schema(struct growth_load *g, struct err *e) {
    struct client_answer ignored;
    for (size_t i = 0; i < ARRAY_LEN(schema); i++)
        if (ask(g, schema[i], &ignored, e)) return -1;
    for (int i = 0; i < GROWTHS; i++)
        if (prepare(g, growth_rows[i].text, &g->prepared[i], e)) return -1;
    return 0;
}

struct growth_load *growth_load_open(const struct proc *p, uint64_t n, unsigned connections, unsigned in_flight) {
    struct growth_load *g = calloc(1, sizeof(*g));
    struct err e = {0};
    if (!g) return NULL;
    *g = (struct growth_load){.proc = p,
                              .n = n,
                              .seed = 88172645463325252ull,
                              .options = {.link = {.host = p->host, .port = p->port, .timeout_ms = 60000},
                                          .version = VERSION}};
    snprintf(g->keyspace, sizeof(g->keyspace), "growth_%" PRIu64, n);
    arena_init(&g->keep, 4096, 0);
    buf_init(&g->values, 0);
    for (int i = 0; i < GROWTHS; i++) buf_init(&g->states[i], 0);
    const struct client_options *const options = &g->options;
    g->load = load_open(&options, 1, connections, in_flight, &e);
    if (g->load && !make_schema(g, &e)) return g;
    fprintf(stderr, "%s\n", e.text);
    growth_load_close(g);
    return NULL;
}

void growth_load_close(struct growth_load *g) {
    if (!g) return;
    if (g->load) load_close(g->load);
    arena_fini(&g->keep);
    buf_fini(&g->values);
    for (int i = 0; i < GROWTHS; i++) buf_fini(&g->states[i]);
    free(g);
}

static void fail(struct growth_cost *c, const char *text) {
    c->failed++;
    if (!c->first_error[0]) snprintf(c->first_error, sizeof(c->first_error), "%s", text);
}

static int64_t answered(void *arg, struct flight_slot *slot, const struct load_answer *a) {
    struct growth_load *g = arg;
    char text[256];
    (void)slot;
    int64_t expected = g->fill ? -1 : growth_rows[g->what].rows, got = expected < 0 ? -1 : wire_rows(a->response);
    if (g->fill && wire_is_busy(a->response)) return BUSY_NS;
    g->cost->requests++;
    hist_add(&g->cost->latency, a->service_ns);
    if (a->response->opcode == NP_ERROR) {
        wire_error(a->response, text, sizeof(text));
        fail(g->cost, text);
    } else if (got != expected) {
        snprintf(text, sizeof(text), "a response of %" PRId64 " rows, %" PRId64 " expected", got, expected);
        fail(g->cost, text);
    }
    return -1;
}

static int run(struct growth_load *g, const struct load_driver *d, double seconds, const char *what) {
    struct err e = {0};
    uint64_t unanswered;
    if (load_run(g->load, d, seconds, NULL, &unanswered, &e) || unanswered) {
        fprintf(stderr, "%s: %s\n", what, e.set ? e.text : "the server does not answer");
        return -1;
    }
    if (!g->cost->failed) return 0;
    fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " failed: %s\n", what, g->cost->failed, g->cost->requests,
            g->cost->first_error);
    return -1;
}

/* ---- filling ---- */

struct fill {
    uint64_t items;
    unsigned each;
    const char *binds, *text;
};

static bool pick_items(void *arg, struct flight_slot *s) {
    struct growth_load *g = arg;
    if (g->next_item >= g->fill->items) return false;
    s->a = g->next_item;
    g->next_item += g->fill->each;
    return true;
}

static void put_items(void *arg, const struct flight_slot *s, uint8_t version, uint16_t stream, struct buf *out) {
    struct growth_load *g = arg;
    struct wire_batch_item items[BATCH_MAX];
    size_t ends[BATCH_MAX + 1] = {0};
    const struct wire_params p = {.consistency = WIRE_LOCAL_QUORUM};
    uint16_t n = 0;
    buf_clear(&g->values, SIZE_MAX);
    for (uint64_t i = s->a; n < g->fill->each && i < g->fill->items; i++, n++) {
        items[n] = (struct wire_batch_item){.id = g->filling.id,
                                            .n_values = put_values(g, g->fill->binds, i, &g->values)};
        ends[n + 1] = g->values.n;
    }
    for (uint16_t i = 0; i < n; i++) items[i].values = slice_of(g->values.p + ends[i], ends[i + 1] - ends[i]);
    wire_batch(out, version, stream, UNLOGGED, items, n, &p);
}

static int write_items(struct growth_load *g, const struct fill *f) {
    const struct load_driver d = {.arg = g, .pick = pick_items, .put = put_items, .answered = answered};
    struct growth_cost c = {0};
    struct err e = {0};
    g->fill = f;
    g->next_item = 0;
    g->cost = &c;
    int rc = prepare(g, f->text, &g->filling, &e);
    if (rc) fprintf(stderr, "%s\n", e.text);
    else rc = run(g, &d, 0, f->text);
    g->fill = NULL;
    return rc;
}

static int write_all(struct growth_load *g) {
    uint64_t n = g->n;
    const struct fill fills[] = {
#define GROWTH_FILL(items_, each_, binds_, text_) {.items = items_, .each = each_, .binds = binds_, .text = text_},
#include "tests/bench/growth.def"
#undef GROWTH_FILL
    };
    for (size_t i = 0; i < ARRAY_LEN(fills); i++)
        if (write_items(g, &fills[i])) return -1;
    return 0;
}

/* Everything is read once: what is asked for at random is then in memory at every size, as it is
 * where it is asked for again and again. */
static int warm_up(struct growth_load *g, struct err *e) {
    struct client_answer ignored;
    return ask(g, "SELECT count(*) FROM %s.wide WHERE pk = 0", &ignored, e)
               ? -1
               : ask(g, "SELECT count(*) FROM %s.small", &ignored, e);
}

int growth_load_fill(struct growth_load *g) {
    struct client_answer a;
    struct err e = {0};
    if (ask(g, "SELECT name FROM %s.filled WHERE name = 'all'", &a, &e)) goto failed;
    bool filled = a.rows.n > 0;
    if (!filled && write_all(g)) return -1;
    if (!filled && ask(g, "INSERT INTO %s.filled (name) VALUES ('all')", &a, &e)) goto failed;
    if (!warm_up(g, &e)) return 0;
failed:
    fprintf(stderr, "%s\n", e.text);
    return -1;
}

/* ---- measuring ---- */

/* Of what reads all that is there one at a time is enough, and a turn of it. */
static bool pick(void *arg, struct flight_slot *s) {
    struct growth_load *g = arg;
    s->a = next_random(g);
    return growth_rows[g->what].follows != ALL || !g->next_item++;
}

static struct wire_params params_of(struct growth_load *g, uint64_t random, int32_t page) {
    buf_clear(&g->values, SIZE_MAX);
    const struct buf *state = &g->states[g->what];
    uint16_t n = put_values(g, growth_rows[g->what].binds, random, &g->values);
    return (struct wire_params){.consistency = WIRE_LOCAL_QUORUM,
                                .n_values = n,
                                .values = buf_slice(&g->values),
                                .page_size = page,
                                .paging_state = state->n ? buf_slice(state) : (struct slice){0},
                                .skip_metadata = true};
}

static void put(void *arg, const struct flight_slot *s, uint8_t version, uint16_t stream, struct buf *out) {
    struct growth_load *g = arg;
    const struct wire_params p = params_of(g, s->a, growth_rows[g->what].page);
    wire_execute(out, version, stream, g->prepared[g->what].id, (struct slice){0}, &p);
}

static int64_t told(struct slice json, const char *key) {
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "\"%s\":", key);
    const char *at = json.p ? memmem(json.p, json.n, wanted, strlen(wanted)) : NULL;
    return at ? strtoll(at + strlen(wanted), NULL, 10) : -1;
}

static int say(enum growth what, const struct err *e) {
    fprintf(stderr, "%s: %s\n", growth_rows[what].name, e->text);
    return -1;
}

int growth_load_ask(struct growth_load *g, enum growth what, struct growth_cost *c) {
    struct client_answer a;
    struct err e = {0};
    g->what = what;
    struct wire_params p = params_of(g, next_random(g), growth_rows[what].page);
    p.skip_metadata = false;
    p.wants_capacity = true;
    if (client_execute(load_client(g->load, 0), &g->prepared[what], &p, &a, &e)) return say(what, &e);
    struct slice json = wire_payload(&a.response, "capacity");
    c->rows_read = told(json, "rows_read");
    c->bytes_read = told(json, "bytes_read");
    return 0;
}

/* Passes so many rows, a page at a time. */
static int walk(struct growth_load *g, uint64_t depth, struct err *e) {
    struct client_answer a;
    struct buf *state = &g->states[g->what];
    for (uint64_t passed = 0; passed < depth; passed += a.rows.n) {
        uint64_t left = depth - passed;
        struct wire_params p = params_of(g, 0, left < WALK_PAGE ? (int32_t)left : WALK_PAGE);
        p.skip_metadata = false;
        if (client_execute(load_client(g->load, 0), &g->prepared[g->what], &p, &a, e)) return -1;
        buf_clear(state, SIZE_MAX);
        buf_put_slice(state, a.rows.paging_state);
        if (!state->n) return err_set(e, ERR_SERVER, "there is no page behind row %" PRIu64, passed + a.rows.n);
    }
    return 0;
}

int growth_load_begin(struct growth_load *g, enum growth what) {
    struct err e = {0};
    g->what = what;
    return walk(g, depth_of(what, g->n), &e) ? say(what, &e) : 0;
}

int growth_load_run(struct growth_load *g, enum growth what, double seconds, bool warm, struct growth_cost *c) {
    const struct load_driver d = {.arg = g, .pick = pick, .put = put, .answered = answered};
    static struct growth_cost ignored;
    ignored = (struct growth_cost){0};
    g->what = what;
    g->next_item = 0;
    g->cost = warm ? &ignored : c;
    uint64_t requests = g->cost->requests, before = proc_cpu_ns(g->proc->pid);
    int rc = run(g, &d, seconds, growth_rows[what].name);
    uint64_t cpu_ns = proc_cpu_ns(g->proc->pid) - before;
    requests = g->cost->requests - requests;
    double us = requests ? (double)cpu_ns / 1e3 / (double)requests : 0;
    g->cost->cpu_ns += cpu_ns;
    if (us > 0 && (us < g->cost->best_cpu_us || !(g->cost->best_cpu_us > 0))) g->cost->best_cpu_us = us;
    return rc;
}
