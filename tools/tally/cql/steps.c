#include "tools/tally/cql/steps.h"

#include <time.h>

#include "tools/tally/cql/cell.h"
#include "tools/tally/cql/interrupt.h"

enum { TRIES = 20, PAUSE_MS = 100, COLUMNS = 5 };
/* 100 ns steps from 1582-10-15, the epoch of version 1 UUIDs, to 1970. */
#define UUID_EPOCH 0x01B21DD213814000LL

struct shown_trace {
    const char *id, *request;
    int64_t started_us, duration_us;
    struct buf coordinator, client; /* as texts */
};

static void put_column(const struct client_rows *row, const char *column, struct buf *out) {
    uint32_t i = 0;
    while (i < row->columns.n && strcmp(row->columns.list[i].name, column)) i++;
    if (i < row->columns.n) cell_put(row->columns.list[i].type, row->values[i], out);
}

static void put_row(struct grid *g, const char *activity, int64_t us, struct slice source, int64_t elapsed,
                    struct slice client) {
    cell_put_text(slice_str(activity), false, &g->text);
    grid_cell(g);
    time_t seconds = (time_t)(us / 1000000);
    struct tm t;
    char text[32];
    if (localtime_r(&seconds, &t)) {
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &t);
        buf_printf(&g->text, "%s.%06d", text, (int)(us % 1000000));
    }
    grid_cell(g);
    buf_put_slice(&g->text, source);
    grid_cell(g);
    buf_printf(&g->text, "%lld", (long long)elapsed);
    grid_cell(g);
    buf_put_slice(&g->text, client);
    grid_cell(g);
}

/* Returns 1 if the session is complete, 0 if not yet, or -1 if the query failed, and the error
 * was printed. */
static int read_session(struct shell *s, struct shown_trace *t, struct arena *keep) {
    struct client_answer a = {0};
    struct err e = {0};
    const char *text = arena_printf(keep, "SELECT * FROM system_traces.sessions WHERE session_id = %s", t->id);
    if (text ? shell_query_system(s, text, &a, &e) : err_nomem(&e)) {
        shell_complain_of(s, &a, &e);
        return -1;
    }
    if (!a.has_rows || !client_rows_next(&a.rows) || client_value(&a.rows, "duration").n < 0) return 0;
    t->request = client_text(&a.rows, keep, "request");
    t->started_us = client_int(&a.rows, "started_at") * 1000;
    t->duration_us = client_int(&a.rows, "duration");
    put_column(&a.rows, "coordinator", &t->coordinator);
    put_column(&a.rows, "client", &t->client);
    return 1;
}

static int fill(struct shell *s, const struct shown_trace *t, struct arena *keep) {
    static const char *const names[COLUMNS] = {"activity", "timestamp", "source", "source_elapsed", "client"};
    struct slice client = buf_slice(&t->client);
    struct client_answer a = {0};
    struct err e = {0};
    const char *question = arena_printf(keep, "SELECT * FROM system_traces.events WHERE session_id = %s", t->id);
    int rc = question ? shell_query_system(s, question, &a, &e) : err_nomem(&e);
    struct buf text;
    buf_init(&text, 0);
    if (rc) shell_complain_of(s, &a, &e);
    grid_begin(&s->grid, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) {
        buf_put_str(&s->grid.text, names[i]);
        grid_cell(&s->grid);
    }
    put_row(&s->grid, t->request ? t->request : "", t->started_us, buf_slice(&t->coordinator), 0, client);
    while (!rc && a.has_rows && client_rows_next(&a.rows)) {
        const char *activity = client_text(&a.rows, &s->client.arena, "activity"),
                   *thread = client_text(&a.rows, &s->client.arena, "thread");
        struct value id = client_value(&a.rows, "event_id");
        uint64_t ticks = id.n != 16 ? UUID_EPOCH
                                    : (uint64_t)(load_u16(id.p + 6) & 0xFFF) << 48 |
                                          (uint64_t)load_u16(id.p + 4) << 32 | load_u32(id.p);
        buf_clear(&text, SIZE_MAX);
        put_column(&a.rows, "source", &text);
        put_row(&s->grid, arena_printf(&s->client.arena, "%s [%s]", activity ? activity : "", thread ? thread : ""),
                ((int64_t)ticks - UUID_EPOCH) / 10, buf_slice(&text),
                client_int(&a.rows, "source_elapsed"), client);
    }
    put_row(&s->grid, "Request complete", t->started_us + t->duration_us, buf_slice(&t->coordinator), t->duration_us,
            client);
    buf_fini(&text);
    return rc;
}

void steps_put_named(struct shell *s, const char *id) {
    struct shown_trace t = {.id = id};
    struct arena keep;
    struct buf out;
    int rc = 0;
    arena_init(&keep, 1024, 0);
    buf_init(&t.coordinator, 0);
    buf_init(&t.client, 0);
    buf_init(&out, 0);
    for (int i = 0; i < TRIES && !(rc = read_session(s, &t, &keep)) && !interrupt_seen(); i++)
        interrupt_sleep_ms(PAUSE_MS);
    if (!rc) shell_complain(s, "Session %s wasn't found.", id);
    if (rc > 0 && !fill(s, &t, &keep)) {
        buf_printf(&out, "\nTracing session: %s\n\n", id);
        grid_put(&s->grid, true, &out);
        buf_put_str(&out, s->terminal ? "\n\n" : "\n");
        shell_put(s, &out);
    }
    buf_fini(&t.coordinator);
    buf_fini(&t.client);
    buf_fini(&out);
    arena_fini(&keep);
}

void steps_put(struct shell *s, const uint8_t id[16]) {
    struct buf text;
    buf_init(&text, 0);
    cql_value_text(cql_type_scalar(CQL_UUID), slice_of(id, 16), &text);
    buf_u8(&text, 0);
    steps_put_named(s, (const char *)text.p);
    buf_fini(&text);
}
