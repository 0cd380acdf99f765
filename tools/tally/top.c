/* tally top: a live screen of a server, read from its virtual tables. Shows the tables, partitions
 * and statements with the greatest charges, refusals by limits, and latencies. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/tally/json.h"
#include "tools/tally/remote.h"
#include "tools/tally/table.h"

enum { TOP_ROWS = 10, TOP_NAME = 200, TOP_TABLES_MAX = 100000 };

struct top_row {
    char name[TOP_NAME];
    double now, minute, total; /* units: of the last second, of the last minute, in all */
    int64_t entities_now, throttles_now, throttles, requests;
    double latency_ms, latency_most_ms; /* tables: of the newest minute with data; below 0: none */
    int64_t latency_at;
};

struct top_list {
    size_t n, cap;
    struct top_row *rows;
};

struct top_screen {
    int64_t minute_ms; /* begin of the "last minute": the last whole minute by the server's clock */
    struct top_list tables, partitions, statements, limits;
};

struct top_flags {
    struct remote remote;
    uint32_t every, rows;
    bool once, json;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig) {
    (void)sig;
    interrupted = 1;
}

/* ---- reading ---- */

static struct top_row *add(struct top_list *l) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        struct top_row *rows = l->n < TOP_TABLES_MAX ? realloc(l->rows, cap * sizeof(*rows)) : NULL;
        if (!rows) return NULL;
        l->rows = rows;
        l->cap = cap;
    }
    l->rows[l->n] = (struct top_row){.latency_ms = -1};
    return &l->rows[l->n++];
}

/* Reads the columns that all these virtual tables share. */
static void read_figures(struct top_row *r, const struct client_rows *row) {
    r->now = client_double(row, "read_units_last_second") + client_double(row, "write_units_last_second");
    r->minute = client_double(row, "read_units_last_minute") + client_double(row, "write_units_last_minute");
    r->total = client_double(row, "read_units") + client_double(row, "write_units");
    r->entities_now = client_int(row, "entities_last_second");
    r->throttles_now = client_int(row, "throttles_last_second");
}

static int take_table(void *arg, struct client *c, const struct client_rows *row) {
    struct top_row *r = add(&((struct top_screen *)arg)->tables);
    if (!r) return -1;
    snprintf(r->name, TOP_NAME, "%s.%s", client_text(row, &c->arena, "keyspace_name"),
             client_text(row, &c->arena, "table_name"));
    read_figures(r, row);
    r->throttles = client_int(row, "read_throttles") + client_int(row, "write_throttles");
    r->requests = client_int(row, "requests");
    return 0;
}

static int take_partition(void *arg, struct client *c, const struct client_rows *row) {
    struct top_row *r = add(&((struct top_screen *)arg)->partitions);
    struct value key = client_value(row, "partition_key");
    if (!r) return -1;
    int n = snprintf(r->name, TOP_NAME, "%s.%s 0x", client_text(row, &c->arena, "keyspace_name"),
                     client_text(row, &c->arena, "table_name"));
    for (int32_t i = 0; i < key.n && i < 24 && n < TOP_NAME - 3; i++)
        n += snprintf(r->name + n, (size_t)(TOP_NAME - n), "%02x", key.p[i]);
    read_figures(r, row);
    r->throttles = client_int(row, "throttles");
    return 0;
}

static int take_statement(void *arg, struct client *c, const struct client_rows *row) {
    struct top_row *r = add(&((struct top_screen *)arg)->statements);
    if (!r) return -1;
    snprintf(r->name, TOP_NAME, "%s", client_text(row, &c->arena, "statement"));
    read_figures(r, row);
    r->throttles = client_int(row, "throttles");
    r->requests = client_int(row, "executions");
    return 0;
}

static int take_limit(void *arg, struct client *c, const struct client_rows *row) {
    struct top_row *r = add(&((struct top_screen *)arg)->limits);
    if (!r) return -1;
    snprintf(r->name, TOP_NAME, "%s %s.%s", client_text(row, &c->arena, "limit_name"),
             client_text(row, &c->arena, "keyspace_name"), client_text(row, &c->arena, "table_name"));
    r->throttles = client_int(row, "refused");
    r->requests = client_int(row, "shadowed");
    return 0;
}

/* The metric SuccessfulRequestLatency of a table's operations: mean and maximum of the newest
 * minute. */
static int take_latency(void *arg, struct client *c, const struct client_rows *row) {
    struct top_list *l = &((struct top_screen *)arg)->tables;
    char name[TOP_NAME];
    int64_t at = client_int(row, "period_start"), samples = client_int(row, "sample_count");
    snprintf(name, sizeof(name), "%s.%s", client_text(row, &c->arena, "keyspace_name"),
             client_text(row, &c->arena, "table_name"));
    for (size_t i = 0; i < l->n && samples > 0; i++) {
        struct top_row *r = &l->rows[i];
        if (strcmp(r->name, name) || at < r->latency_at) continue;
        double mean = client_double(row, "sum") / (double)samples, most = client_double(row, "maximum");
        if (at > r->latency_at || mean > r->latency_ms) r->latency_ms = mean; /* the slowest operation wins */
        if (at > r->latency_at || most > r->latency_most_ms) r->latency_most_ms = most;
        r->latency_at = at;
    }
    return 0;
}

static int by_load(const void *a, const void *b) {
    const struct top_row *x = a, *y = b;
    if (x->now != y->now) return x->now > y->now ? -1 : 1;
    if (x->minute != y->minute) return x->minute > y->minute ? -1 : 1;
    return (x->total < y->total) - (x->total > y->total);
}

static void sort(struct top_list *l) {
    if (l->n) qsort(l->rows, l->n, sizeof(*l->rows), by_load);
}

static int take_time(void *arg, struct client *c, const struct client_rows *row) {
    (void)c;
    *(int64_t *)arg = client_int(row, "now");
    return 0;
}

/* When the server's last whole minute began. */
static int read_minute(struct client *c, int64_t *out, struct err *e) {
    enum { MINUTE_MS = 60000 };
    int64_t now_ms = 0;
    if (client_each(c, "SELECT toTimestamp(now()) AS now FROM system.local", take_time, &now_ms, e)) return -1;
    *out = (now_ms / MINUTE_MS - 1) * MINUTE_MS;
    return 0;
}

static int read_lists(struct client *c, struct top_screen *s, struct err *e) {
    static const struct {
        const char *text;
        client_row_fn take;
    } questions[] = {
        {"SELECT * FROM system_metering.tables", take_table},
        {"SELECT * FROM system_metering.partitions", take_partition},
        {"SELECT * FROM system_metering.statements", take_statement},
        {"SELECT * FROM system_metering.throttles", take_limit},
        {"SELECT * FROM system_metering.metrics WHERE metric_name = 'SuccessfulRequestLatency'", take_latency},
    };
    struct top_list *const lists[] = {&s->tables, &s->partitions, &s->statements, &s->limits};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) lists[i]->n = 0;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        if (client_each(c, questions[i].text, questions[i].take, s, e)) return e->set ? -1 : err_nomem(e);
    sort(&s->tables);
    sort(&s->partitions);
    sort(&s->statements);
    return 0;
}

/* All lists must describe the same minute, so a minute that ends during the reads causes a new
 * read. */
static int read_screen(struct client *c, struct top_screen *s, struct err *e) {
    int64_t before;
    do {
        if (read_minute(c, &before, e) || read_lists(c, s, e) || read_minute(c, &s->minute_ms, e)) return -1;
    } while (before != s->minute_ms);
    return 0;
}

/* ---- showing ---- */

static void put_list(const char *title, const char *minute, const struct top_list *l, uint32_t most, struct buf *out) {
    struct table_column columns[] = {{"units/s", true}, {minute, true}, {"in all", true}, {"entities/s", true},
                                     {"throttled/s", true}, {"throttled", true}, {title, false}};
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < l->n && i < most; i++) {
        const struct top_row *r = &l->rows[i];
        table_row(&t, "%.1f\t%.1f\t%.1f\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s", r->now, r->minute, r->total,
                  r->entities_now, r->throttles_now, r->throttles, r->name);
    }
    table_put(&t, out);
    table_fini(&t);
    buf_u8(out, '\n');
}

static void put_latency(const struct top_list *l, uint32_t most, struct buf *out) {
    static const struct table_column columns[] = {{"mean ms", true},
                                                  {"most ms", true},
                                                  {"latency of the newest minute", false}};
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < l->n && i < most; i++)
        if (l->rows[i].latency_ms >= 0)
            table_row(&t, "%.3f\t%.3f\t%s", l->rows[i].latency_ms, l->rows[i].latency_most_ms, l->rows[i].name);
    if (t.n_rows) table_put(&t, out), buf_u8(out, '\n');
    table_fini(&t);
}

static void put_limits(const struct top_list *l, uint32_t most, struct buf *out) {
    static const struct table_column columns[] = {{"refused", true}, {"would have been", true}, {"limit", false}};
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < l->n && i < most; i++)
        table_row(&t, "%" PRId64 "\t%" PRId64 "\t%s", l->rows[i].throttles, l->rows[i].requests, l->rows[i].name);
    if (t.n_rows) table_put(&t, out);
    table_fini(&t);
}

static void minute_text(const struct top_screen *s, const char *format, char *out, size_t n) {
    time_t at = (time_t)(s->minute_ms / 1000);
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(out, n, format, &tm);
}

static void put_text(const struct top_screen *s, const struct top_flags *f, struct buf *out) {
    double now = 0, minute = 0;
    char at[32], column[32];
    minute_text(s, "%Y-%m-%d %H:%M", at, sizeof(at));
    minute_text(s, "minute %H:%M", column, sizeof(column));
    for (size_t i = 0; i < s->tables.n; i++) now += s->tables.rows[i].now, minute += s->tables.rows[i].minute;
    buf_printf(out, "%s: %.1f units in the last second, %.1f in the last whole minute, that of %s UTC, %zu tables\n\n",
               f->remote.host, now, minute, at, s->tables.n);
    put_list("table", column, &s->tables, f->rows, out);
    put_list("partition", column, &s->partitions, f->rows, out);
    put_list("statement", column, &s->statements, f->rows, out);
    put_latency(&s->tables, f->rows, out);
    put_limits(&s->limits, f->rows, out);
}

static void json_list(const char *name, const struct top_list *l, uint32_t most, struct buf *out) {
    json_open(out, name, '[');
    for (size_t i = 0; i < l->n && i < most; i++) {
        const struct top_row *r = &l->rows[i];
        json_open(out, NULL, '{');
        json_str(out, "name", r->name);
        buf_printf(out, ",\"units_last_second\":%.1f,\"units_last_minute\":%.1f,\"units\":%.1f", r->now, r->minute,
                   r->total);
        json_count(out, "entities_last_second", (uint64_t)r->entities_now);
        json_count(out, "throttles_last_second", (uint64_t)r->throttles_now);
        json_count(out, "throttles", (uint64_t)r->throttles);
        json_count(out, "requests", (uint64_t)r->requests);
        if (r->latency_ms >= 0)
            buf_printf(out, ",\"latency_mean_ms\":%.3f,\"latency_max_ms\":%.3f", r->latency_ms, r->latency_most_ms);
        buf_u8(out, '}');
    }
    buf_u8(out, ']');
}

static int top(struct top_flags *f, struct err *e) {
    struct client c = {.link = {.fd = -1}};
    struct top_screen s = {0};
    const struct timespec pause = {.tv_sec = f->every};
    int rc = remote_connect(&f->remote, &c, e);
    while (!rc && !interrupted) {
        rc = read_screen(&c, &s, e);
        if (rc) break;
        /* On a terminal the screen replaces the previous one; the terminal cuts rows at its
         * width. */
        struct buf out;
        bool screen = !f->once && !f->json && isatty(STDOUT_FILENO);
        buf_init(&out, 0);
        if (screen) buf_put_str(&out, "\x1b[H\x1b[J\x1b[?7l");
        if (f->json) {
            char minute[32];
            minute_text(&s, "%Y-%m-%dT%H:%M:00Z", minute, sizeof(minute));
            json_open(&out, NULL, '{');
            json_flag(&out, "ok", true);
            json_str(&out, "last_minute", minute);
            json_list("tables", &s.tables, f->rows, &out);
            json_list("partitions", &s.partitions, f->rows, &out);
            json_list("statements", &s.statements, f->rows, &out);
            json_list("limits", &s.limits, f->rows, &out);
            buf_put_str(&out, "}\n");
        } else put_text(&s, f, &out);
        if (screen) buf_put_str(&out, "\x1b[?7h");
        fwrite(buf_slice(&out).p, 1, out.n, stdout);
        fflush(stdout);
        buf_fini(&out);
        if (f->once) break;
        nanosleep(&pause, NULL);
    }
    free(s.tables.rows);
    free(s.partitions.rows);
    free(s.statements.rows);
    free(s.limits.rows);
    client_close(&c);
    return rc;
}

int tally_top(int argc, char **argv) {
    struct top_flags f = {.every = 1, .rows = TOP_ROWS};
    const struct flag flags[] = {
        {.name = "once", .on = &f.once, .help = "shows it once, and ends"},
        {.name = "every", .argument = "SECONDS", .number = &f.every, .help = "how often it is drawn anew (1)"},
        {.name = "rows", .argument = "N", .number = &f.rows, .help = "of each list (10)"},
        {.name = "json", .on = &f.json, .help = "a JSON object, each time"},
        REMOTE_FLAGS(&f.remote)};
    struct err e = {0};
    int rc = flags_read("top", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!f.every || f.every > 86400) {
        (void)err_set(&e, ERR_CONFIG, "--every must be 1 to 86400 seconds");
        return say_wrong(f.json, "top", &e);
    }
    struct sigaction a = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (!top(&f, &e)) return EXIT_DONE;
    return e.code == ERR_CONFIG ? say_wrong(f.json, "top", &e) : say_no(f.json, "top", &e);
}
