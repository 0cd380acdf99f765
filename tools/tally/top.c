/* tally top: a live screen of a server, read from its virtual tables. Shows the tables, partitions
 * and statements with the greatest charges, refusals by limits, and latencies. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "tools/tally/remote.h"
#include "tools/tally/show.h"
#include "tools/tally/table.h"
#include "types/type.h"

enum { TOP_ROWS = 10, TOP_NAME = 200, TOP_KEY = 64, TOP_TABLES_MAX = 100000 };

struct top_row {
    char name[TOP_NAME];
    /* partitions: the serialised key, from the start; key_n: -1: it is longer than key */
    uint8_t key[TOP_KEY];
    int32_t key_n;
    double now, minute, total; /* units: of the last second, of the last minute, in all */
    int64_t entities_now, throttles_now, throttles, requests;
    double latency_ms, latency_most_ms; /* tables: of the newest minute with data; below 0: none */
    int64_t latency_at;
};

enum top_kind { TOP_TABLES, TOP_PARTITIONS, TOP_STATEMENTS, TOP_LIMITS, TOP_KINDS };
static const struct { const char *table, *title, *name;
} kinds[TOP_KINDS] = {[TOP_TABLES] = {"tables", "table", "tables"},
                      [TOP_PARTITIONS] = {"partitions", "partition", "partitions"},
                      [TOP_STATEMENTS] = {"statements", "statement", "statements"},
                      [TOP_LIMITS] = {"throttles", "limit", "limits"}};

struct top_list {
    enum top_kind kind;
    size_t n, cap;
    struct top_row *rows;
};

struct top_screen {
    int64_t minute_ms; /* begin of the "last minute": the last whole minute by the server's clock */
    struct top_list lists[TOP_KINDS];
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

/* A row of the virtual table of a list. Columns that the table does not have count as 0. */
static int take(void *arg, struct client *c, const struct client_rows *row) {
    struct top_list *l = arg;
    if (l->n == TOP_TABLES_MAX || array_room(&l->rows, l->n, &l->cap, sizeof(*l->rows))) return -1;
    struct top_row *r = &l->rows[l->n++];
    *r = (struct top_row){.latency_ms = -1};
    r->now = client_double(row, "read_units_last_second") + client_double(row, "write_units_last_second");
    r->minute = client_double(row, "read_units_last_minute") + client_double(row, "write_units_last_minute");
    r->total = client_double(row, "read_units") + client_double(row, "write_units");
    r->entities_now = client_int(row, "entities_last_second");
    r->throttles_now = client_int(row, "throttles_last_second");
    r->throttles = client_int(row, "throttles") + client_int(row, "read_throttles") +
                   client_int(row, "write_throttles") + client_int(row, "refused");
    r->requests = client_int(row, "requests") + client_int(row, "executions") + client_int(row, "shadowed");
    const char *keyspace = client_text(row, &c->arena, "keyspace_name"),
               *table = client_text(row, &c->arena, "table_name");
    struct value key = client_value(row, "partition_key");
    int n;
    switch (l->kind) {
    case TOP_PARTITIONS:
        n = snprintf(r->name, TOP_NAME, "%s.%s 0x", keyspace, table);
        for (int32_t i = 0; i < key.n && i < 24 && n < TOP_NAME - 3; i++)
            n += snprintf(r->name + n, (size_t)(TOP_NAME - n), "%02x", key.p[i]);
        r->key_n = key.n >= 0 && key.n <= TOP_KEY ? key.n : -1;
        if (r->key_n > 0) memcpy(r->key, key.p, (size_t)r->key_n);
        break;
    case TOP_STATEMENTS: snprintf(r->name, TOP_NAME, "%s", client_text(row, &c->arena, "statement")); break;
    case TOP_LIMITS:
        snprintf(r->name, TOP_NAME, "%s %s.%s", client_text(row, &c->arena, "limit_name"), keyspace, table);
        break;
    case TOP_TABLES:
    case TOP_KINDS: snprintf(r->name, TOP_NAME, "%s.%s", keyspace, table); break;
    }
    return 0;
}

/* ---- keys as CQL ---- */

/* The partition key of a table, as system_schema.columns has it. */
struct top_key {
    uint32_t n;
    struct top_key_column {
        char name[64], type[256];
    } columns[16];
};

static int take_key_column(void *arg, struct client *c, const struct client_rows *row) {
    struct top_key *k = arg;
    int64_t position = client_int(row, "position");
    if (strcmp(client_text(row, &c->arena, "kind"), "partition_key") || position < 0 ||
        position >= (int64_t)ARRAY_LEN(k->columns))
        return 0;
    struct top_key_column *to = &k->columns[position];
    snprintf(to->name, sizeof(to->name), "%s", client_text(row, &c->arena, "column_name"));
    snprintf(to->type, sizeof(to->type), "%s", client_text(row, &c->arena, "type"));
    if (position >= k->n) k->n = (uint32_t)position + 1;
    return 0;
}

/* Names the partition by its key as CQL: "shop.orders customer = 1 AND region = 'eu'". Keys that are
 * long, or whose type needs the fields of a user type, stay hexadecimal. */
static int name_key(struct client *c, struct top_row *r, struct err *e) {
    char keyspace[64], table[64], text[256];
    struct top_key k = {0};
    struct arena a;
    struct buf out;
    if (r->key_n < 0 || sscanf(r->name, "%63[^.].%63[^ ]", keyspace, table) != 2) return 0;
    snprintf(text, sizeof(text),
             "SELECT column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = '%s' AND "
             "table_name = '%s'",
             keyspace, table);
    if (client_each(c, text, take_key_column, &k, e)) return -1;
    arena_init(&a, 4 << 10, 1 << 20);
    buf_init(&out, 0);
    buf_printf(&out, "%s.%s", keyspace, table);
    struct rd rd = rd_of(slice_of(r->key, (size_t)r->key_n));
    bool known = k.n > 0;
    for (uint32_t i = 0; known && i < k.n; i++) {
        struct err ignored = {0};
        const struct cql_type *t = cql_type_parse(&a, slice_str(k.columns[i].type), keyspace, cql_udt_by_name, NULL,
                                                  &ignored);
        /* with several columns each value has a length before it and a zero byte after it */
        struct slice v = k.n == 1 ? slice_of(r->key, (size_t)r->key_n) : rd_bytes(&rd, rd_u16(&rd));
        if (k.n > 1) (void)rd_u8(&rd);
        known = t && !strstr(k.columns[i].type, "frozen<") && !rd.bad && !cql_value_validate(t, v, &ignored);
        if (!known) break;
        buf_put_str(&out, i ? " AND " : " ");
        cql_identifier_print(k.columns[i].name, true, &out);
        buf_put_str(&out, " = ");
        cql_value_print(t, v, &out);
    }
    if (known && !buf_failed(&out)) snprintf(r->name, TOP_NAME, "%.*s", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
    arena_fini(&a);
    return 0;
}

/* The metric SuccessfulRequestLatency of a table's operations: mean and maximum of the newest
 * minute. */
static int take_latency(void *arg, struct client *c, const struct client_rows *row) {
    struct top_list *l = arg;
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

static int take_time(void *arg, struct client *c, const struct client_rows *row) {
    enum { MINUTE_MS = 60000 };
    (void)c;
    *(int64_t *)arg = (client_int(row, "now") / MINUTE_MS - 1) * MINUTE_MS; /* the last whole minute */
    return 0;
}

/* All lists must describe the same minute, so a minute that ends during the reads causes a new
 * read. */
static int read_screen(struct client *c, struct top_screen *s, uint32_t shown, struct err *e) {
    static const char time[] = "SELECT toTimestamp(now()) AS now FROM system.local",
                      latencies[] =
                          "SELECT * FROM system_metering.metrics WHERE metric_name = 'SuccessfulRequestLatency'";
    int64_t before = 0;
    do {
        int rc = client_each(c, time, take_time, &before, e);
        for (int i = 0; !rc && i < TOP_KINDS; i++) {
            struct top_list *l = &s->lists[i];
            char text[64];
            snprintf(text, sizeof(text), "SELECT * FROM system_metering.%s", kinds[i].table);
            l->kind = (enum top_kind)i;
            l->n = 0;
            rc = client_each(c, text, take, l, e);
        }
        if (!rc) rc = client_each(c, latencies, take_latency, &s->lists[TOP_TABLES], e);
        if (!rc) rc = client_each(c, time, take_time, &s->minute_ms, e);
        if (rc) return e->set ? -1 : err_nomem(e);
    } while (before != s->minute_ms);
    for (int i = 0; i < TOP_LIMITS; i++)
        if (s->lists[i].n) qsort(s->lists[i].rows, s->lists[i].n, sizeof(struct top_row), by_load);
    for (size_t i = 0; i < s->lists[TOP_PARTITIONS].n && i < shown; i++)
        if (name_key(c, &s->lists[TOP_PARTITIONS].rows[i], e)) return -1;
    return 0;
}

/* ---- showing ---- */

static void minute_text(const struct top_screen *s, const char *format, char *out, size_t n) {
    time_t at = (time_t)(s->minute_ms / 1000);
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(out, n, format, &tm);
}

static void put_text(const struct top_screen *s, const struct top_flags *f, uint32_t most, struct buf *out) {
    double now = 0, minute = 0;
    char at[32], column[32];
    minute_text(s, "%Y-%m-%d %H:%M", at, sizeof(at));
    minute_text(s, "minute %H:%M", column, sizeof(column));
    const struct top_list *tables = &s->lists[TOP_TABLES], *limits = &s->lists[TOP_LIMITS];
    for (size_t i = 0; i < tables->n; i++) {
        now += tables->rows[i].now;
        minute += tables->rows[i].minute;
    }
    buf_printf(out, "%s: %.1f units in the last second, %.1f in the last whole minute, that of %s UTC, %zu tables\n\n",
               f->remote.host, now, minute, at, tables->n);
    struct table t;
    for (int k = 0; k < TOP_LIMITS; k++) {
        const struct table_column columns[] = {{"units/s", true}, {column, true}, {"in all", true},
                                               {"entities/s", true}, {"throttled/s", true}, {"throttled", true},
                                               {kinds[k].title, false}};
        table_init(&t, columns, ARRAY_LEN(columns));
        for (size_t i = 0; i < s->lists[k].n && i < most; i++) {
            const struct top_row *r = &s->lists[k].rows[i];
            table_row(&t, "%.1f\t%.1f\t%.1f\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s", r->now, r->minute, r->total,
                      r->entities_now, r->throttles_now, r->throttles, r->name);
        }
        table_put(&t, out);
        table_fini(&t);
        buf_u8(out, '\n');
    }
    static const struct table_column latencies[] = {{"mean ms", true},
                                                    {"most ms", true},
                                                    {"latency of the newest minute", false}},
                                     refusals[] = {{"refused", true}, {"would have been", true}, {"limit", false}};
    table_init(&t, latencies, ARRAY_LEN(latencies));
    for (size_t i = 0; i < tables->n && i < most; i++)
        if (tables->rows[i].latency_ms >= 0)
            table_row(&t, "%.3f\t%.3f\t%s", tables->rows[i].latency_ms, tables->rows[i].latency_most_ms,
                      tables->rows[i].name);
    if (t.n_rows) table_put(&t, out), buf_u8(out, '\n');
    table_fini(&t);
    table_init(&t, refusals, ARRAY_LEN(refusals));
    for (size_t i = 0; i < limits->n && i < most; i++)
        table_row(&t, "%" PRId64 "\t%" PRId64 "\t%s", limits->rows[i].throttles, limits->rows[i].requests,
                  limits->rows[i].name);
    if (t.n_rows) table_put(&t, out);
    table_fini(&t);
}

static void put_json(const struct top_screen *s, const struct top_flags *f, struct buf *out) {
    char minute[32];
    minute_text(s, "%Y-%m-%dT%H:%M:00Z", minute, sizeof(minute));
    json_open(out, NULL, '{');
    json_flag(out, "ok", true);
    json_text(out, "last_minute", minute);
    for (int k = 0; k < TOP_KINDS; k++) {
        json_open(out, kinds[k].name, '[');
        for (size_t i = 0; i < s->lists[k].n && i < f->rows; i++) {
            const struct top_row *r = &s->lists[k].rows[i];
            json_open(out, NULL, '{');
            json_text(out, "name", r->name);
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
    buf_put_str(out, "}\n");
}

/* Writes the text without what lies beyond the terminal's width and height. */
static void put_screen(struct slice text, const struct winsize *size, struct buf *out) {
    for (unsigned line = 0; text.n && line < size->ws_row; line++) {
        struct slice row = slice_cut(&text, '\n');
        unsigned width = 0;
        if (line) buf_u8(out, '\n');
        for (size_t i = 0; i < row.n; i++) {
            width += (row.p[i] & 0xC0) != 0x80; /* characters, not bytes, of UTF-8 */
            if (width > size->ws_col) break;
            buf_u8(out, row.p[i]);
        }
    }
}

/* Waits for the next screen. Returns true when q was pressed. */
static bool pause_or_quit(uint32_t seconds, bool keys) {
    struct pollfd in = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
    char key = 0;
    if (poll(&in, 1, (int)seconds * 1000) > 0 && read(STDIN_FILENO, &key, 1) <= 0) return true; /* it has ended */
    return key == 'q' || key == 'Q';
}

static int top(struct top_flags *f, struct err *e) {
    enum { LISTS = 5, LINES_BESIDES = 2 + 2 * LISTS }; /* a title and an empty line of each list */
    struct client c = {.link = {.fd = -1}};
    struct top_screen s = {0};
    struct termios before, raw;
    const bool screen = !f->once && !f->json && isatty(STDOUT_FILENO);
    const bool keys = screen && isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &before);
    int rc = remote_connect(&f->remote, &c, e);
    if (!rc && keys) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    while (!rc && !interrupted) {
        struct winsize size = {0};
        uint32_t most = f->rows;
        if (screen && (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col))
            size = (struct winsize){.ws_row = 24, .ws_col = 80};
        /* Every list keeps its place on the screen. */
        uint32_t fit = size.ws_row > LINES_BESIDES + LISTS ? (uint32_t)(size.ws_row - LINES_BESIDES) / LISTS : 1;
        if (screen && fit < most) most = fit;
        if ((rc = read_screen(&c, &s, most, e))) break;
        struct buf out, shown;
        buf_init(&out, 0), buf_init(&shown, 0);
        if (f->json) put_json(&s, f, &out);
        else put_text(&s, f, most, &out);
        if (screen) put_screen(buf_slice(&out), &size, &shown);
        const struct slice text = buf_slice(screen ? &shown : &out);
        if (screen) fputs("\x1b[H\x1b[J", show_raw(stdout)); /* the screen replaces the previous one */
        fwrite(text.p, 1, text.n, stdout);
        fflush(show_raw(stdout));
        buf_fini(&out), buf_fini(&shown);
        if (f->once || pause_or_quit(f->every, keys)) break;
    }
    if (keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (screen) printf("\n");
    for (int i = 0; i < TOP_KINDS; i++) free(s.lists[i].rows);
    client_close(&c);
    return rc;
}

int tally_top(int argc, char **argv) {
    struct top_flags f = {.every = 1, .rows = TOP_ROWS};
    const struct flag flags[] = {
        FLAG_ON("once", f.once, "print once and exit"),
        FLAG_NUMBER("every", "SECONDS", f.every, "interval between updates, in seconds (1)"),
        FLAG_NUMBER("rows", "N", f.rows, "rows of each list (10)"),
        FLAG_ON("json", f.json, "print a JSON object at each update"),
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
