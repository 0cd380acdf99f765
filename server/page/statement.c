#include "server/page/statement.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

enum { STATE_MAX = 16 << 10, WORK_BYTES = 64 << 20 };

/* ---- rows as JSON ---- */

struct json_rows {
    struct row_sink sink; /* first */
    struct err *err;
    const struct result_meta *meta;
    struct buf *columns, *rows;
    struct clock *clock;
    int64_t until_us; /* machine time: the statement's deadline */
};

static int begin_rows(struct row_sink *s, const struct result_meta *meta) {
    struct json_rows *r = (struct json_rows *)s;
    r->meta = meta;
    for (uint32_t i = 0; i < meta->n; i++) {
        struct buf type;
        buf_init(&type, 0);
        cql_type_print(meta->columns[i].type, &type);
        json_item(r->columns);
        buf_put_str(r->columns, "{");
        json_text(r->columns, "name", meta->columns[i].name);
        json_member(r->columns, "type");
        buf_json_str(r->columns, buf_slice(&type));
        buf_put_str(r->columns, "}");
        buf_fini(&type);
    }
    return buf_failed(r->columns) ? err_nomem(r->err) : 0;
}

/* Puts a value as a text. The bounds hold within a row: a text has a quarter of its value's bytes at least (a list of
 * short numbers), so a value that is too large is refused before it is printed. */
static int put_value(struct json_rows *r, const struct cql_type *type, struct value v) {
    struct buf text;
    if (value_is_null(v)) {
        buf_put_str(r->rows, "null");
        return 0;
    }
    buf_init(&text, STATEMENT_ANSWER);
    bool fits = value_slice(v).n / 4 <= STATEMENT_ANSWER;
    if (fits) cql_value_text(type, value_slice(v), &text);
    fits = fits && !text.over;
    if (fits) buf_json_str(r->rows, buf_slice(&text));
    bool failed = fits && buf_failed(&text);
    buf_fini(&text);
    if (failed) return err_nomem(r->err);
    if (!fits || r->rows->n > STATEMENT_ANSWER)
        return err_set(r->err, ERR_INVALID, "A page of these rows is larger than %u MiB: ask for fewer rows at once",
                       STATEMENT_ANSWER >> 20);
    if (clock_machine_us(r->clock) <= r->until_us) return 0;
    return err_set(r->err, ERR_READ_TIMEOUT, "The page of rows was not printed in time");
}

static int take_rows(struct row_sink *s, const struct value *const *rows, uint32_t n) {
    struct json_rows *r = (struct json_rows *)s;
    for (uint32_t k = 0; k < n; k++) {
        json_item(r->rows);
        buf_put_str(r->rows, "[");
        for (uint32_t i = 0; i < r->meta->n; i++) {
            json_item(r->rows);
            if (put_value(r, r->meta->columns[i].type, rows[k][i])) return -1;
        }
        buf_put_str(r->rows, "]");
    }
    return buf_failed(r->rows) ? err_nomem(r->err) : 0;
}

static void restart_rows(struct row_sink *s) {
    struct json_rows *r = (struct json_rows *)s;
    buf_clear(r->columns, SIZE_MAX);
    buf_clear(r->rows, SIZE_MAX);
}

static size_t bytes_of_rows(const struct row_sink *s) { return ((const struct json_rows *)s)->rows->n; }

/* ---- one statement ---- */

/* The first word decides whether the statement is allowed, before anything runs. */
static int check_kind(const struct page_statement *s, struct err *e) {
    static const char *const writes[] = {"INSERT", "UPDATE", "DELETE", "BEGIN"};
    struct slice text = s->text;
    while (text.n && isspace(*text.p)) text = slice_of(text.p + 1, text.n - 1);
    if (text.n > 6 && !strncasecmp((const char *)text.p, "SELECT", 6) && !isalnum(text.p[6])) return 0;
    for (size_t i = 0; !s->runs && i < ARRAY_LEN(writes); i++) {
        size_t n = strlen(writes[i]);
        if (text.n > n && !strncasecmp((const char *)text.p, writes[i], n) && isspace(text.p[n])) return 0;
    }
    return err_invalid(e, s->runs ? "The page runs SELECT only, and the text must begin with it"
                                  : "The page explains SELECT, INSERT, UPDATE, DELETE and BATCH only");
}

int page_statement_state(const char *hex, size_t max, struct buf *out) {
    size_t n = strlen(hex);
    if (n % 2 || n / 2 > max || strspn(hex, "0123456789abcdef") != n) return -1;
    for (size_t i = 0; i < n; i += 2) {
        const char pair[3] = {hex[i], hex[i + 1], 0};
        buf_u8(out, (uint8_t)strtoul(pair, NULL, 16));
    }
    return 0;
}

static void put_list(struct buf *out, const char *name, const struct buf *items) {
    json_member(out, name);
    buf_put_str(out, "[");
    buf_put_slice(out, buf_slice(items));
    buf_put_str(out, "]");
}

void page_put_rules(struct buf *out, uint64_t rules) {
    json_member(out, "reasons");
    buf_put_str(out, "[");
    for (unsigned id = 0; id < RULES; id++) {
        if (!(rules >> id & 1)) continue;
        json_item(out);
        buf_put_str(out, "{");
        json_text(out, "rule", rule_of((enum rule_id)id)->name);
        json_text(out, "text", rule_of((enum rule_id)id)->text);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]");
}

static void put_answer(const struct page_statement *s, const struct cql_execution *x,
                       const struct explanation *explained,
                       bool complete, const struct json_rows *rows, struct buf *out) {
    struct buf advice;
    buf_init(&advice, 0);
    explanation_advice(explained, &advice);
    buf_printf(out, "{\"kind\":\"%s\",\"complete\":%s", explained->is_read ? "read" : "write",
               complete ? "true" : "false");
    explanation_json(explained, out);
    page_put_rules(out, explained->charge.rules);
    json_member(out, "advice");
    buf_json_str(out, buf_slice(&advice));
    json_member(out, "charge");
    if (complete) charge_json(&x->cost, &x->charge, out);
    else buf_put_str(out, "null");
    if (s->runs) {
        struct slice state = x->run.answer.result.paging_state;
        put_list(out, "columns", rows->columns);
        put_list(out, "rows", rows->rows);
        json_member(out, "next");
        if (state.p) buf_put_str(out, "\"");
        for (size_t i = 0; state.p && i < state.n; i++) buf_printf(out, "%02x", state.p[i]);
        buf_put_str(out, state.p ? "\"" : "null");
    }
    buf_put_str(out, "}");
    buf_fini(&advice);
}

/* Runs one page, or for a price all pages from state on, which ends as the state of the last one. A price is not
 * complete if the time was over after the first page. */
static void run_pages(const struct statement_options *o, const struct page_statement *s, struct buf *state,
                      struct arena *arena, struct json_rows *rows, struct buf *out, struct err *e) {
    struct explanation explained = {0};
    const int64_t until_us = clock_machine_us(o->clock) + STATEMENT_SECONDS * INT64_C(1000000);
    rows->until_us = until_us;
    uint32_t page_size = s->runs ? STATEMENT_ROWS : STATEMENT_PRICED_ROWS;
    if (s->rows && s->rows < page_size) page_size = s->rows;
    for (;;) {
        int64_t left_us = until_us - clock_machine_us(o->clock);
        struct cql_execution x = {
            .db = o->db, .role = s->role, .arena = arena, .sink = s->runs ? &rows->sink : NULL, .prices = true,
            .timeout_us = left_us > 0 ? left_us : 1,
            .request = {.kind = REQUEST_QUERY,
                        .query = s->text,
                        .params = {.consistency = s->eventual ? CL_LOCAL_ONE : CL_LOCAL_QUORUM,
                                   .serial_consistency = CL_LOCAL_SERIAL,
                                   .page_size = (int32_t)page_size,
                                   .paging_state = state->n ? buf_slice(state) : (struct slice){0}}}};
        bool done = !cql_execute(&x, e);
        bool late = !done && (e->code == ERR_READ_TIMEOUT || e->code == ERR_WRITE_TIMEOUT);
        bool last = !done || s->runs || !x.run.answer.result.paging_state.p;
        if (late) err_clear(e);
        if (late && !explained.pages)
            err_set(e, ERR_SERVER, "The statement took longer than %d seconds", STATEMENT_SECONDS);
        if (done) {
            explained.is_read = x.run.answer.stmt_kind == STMT_SELECT;
            explanation_add(&explained, &x.cost, &x.charge);
        } else explained.cost = &x.cost; /* its names and class are those of the pages before */
        if (last && !e->set) put_answer(s, &x, &explained, done, rows, out);
        if (!last) {
            buf_clear(state, SIZE_MAX);
            buf_put_slice(state, x.run.answer.result.paging_state);
        }
        cql_execution_fini(&x);
        if (last) return;
        arena_reset(arena);
    }
}

int page_statement_run(const struct statement_options *o, const struct page_statement *s, struct buf *out,
                       struct err *e) {
    struct arena arena;
    struct buf columns, lines, state;
    if (check_kind(s, e)) return -1;
    arena_init(&arena, 64 << 10, WORK_BYTES);
    buf_init(&columns, 0);
    buf_init(&lines, 0);
    buf_init(&state, 0);
    struct json_rows rows = {.sink = {.begin = begin_rows, .rows = take_rows, .restart = restart_rows,
                                      .bytes = bytes_of_rows},
                             .err = e, .columns = &columns, .rows = &lines, .clock = o->clock};
    if (s->state && page_statement_state(s->state, STATE_MAX, &state)) err_invalid(e, "The paging state is none");
    else run_pages(o, s, &state, &arena, &rows, out, e);
    buf_fini(&columns);
    buf_fini(&lines);
    buf_fini(&state);
    arena_fini(&arena);
    return e->set ? -1 : 0;
}
