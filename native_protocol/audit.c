#include "native_protocol/audit.h"

#include <time.h>

#include "base/json.h"
#include "cql/fingerprint.h"
#include "native_protocol/audit_queue.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"

enum { STATEMENT_MAX = 4096, TEXT_MAX = 512, LINE_BYTES_MAX = 64 << 10 };

struct entry {
    enum np_audit_category category;
    const char *type, *role, *keyspace, *table; /* keyspace, table: may be NULL */
    struct slice statement;                     /* p NULL: none */
    const struct np_conn *conn;
    const struct err *err;
};

static const char *const names[NP_AUDIT_CATEGORIES] = {
#define AUDIT(id, name, what) name,
#include "native_protocol/audit.def"
#undef AUDIT
};

/* ---- categories ---- */

int np_audit_parse(const char *text, unsigned *out, struct err *e) {
    *out = strcmp(text, "all") ? 0 : (1u << NP_AUDIT_CATEGORIES) - 1;
    if (*out) return 0;
    for (const char *at = text;; at++) {
        struct slice name = slice_of((const uint8_t *)at, strcspn(at, ","));
        int c = 0;
        while (c < NP_AUDIT_CATEGORIES && !slice_is(name, names[c])) c++;
        if (c == NP_AUDIT_CATEGORIES)
            return err_set(e, ERR_CONFIG,
                           "--audit-categories must be all, or some of QUERY, DML, DDL, DCL, AUTH, PREPARE, ERROR and "
                           "OTHER, not '%.*s'",
                           SLICE_FMT(name));
        *out |= 1u << c;
        at += name.n;
        if (!*at) return 0;
    }
}

/* ---- lines ---- */

/* Puts the text, or the whole characters of its first max bytes. Names and statements come from the
 * wire: in text that is not valid UTF-8, and so not valid JSON, every byte above 127 becomes a
 * question mark. */
static void put_text(struct buf *out, struct slice text, size_t max) {
    struct err e = {0};
    struct buf plain;
    if (text.n > max) {
        text.n = max;
        for (size_t back = 0; back < 3 && text.n && (text.p[text.n] & 0xc0) == 0x80; back++) text.n--;
    }
    if (!cql_value_validate(cql_type_scalar(CQL_TEXT), text, &e)) {
        buf_json_str(out, text);
        return;
    }
    buf_init(&plain, 0);
    for (size_t i = 0; i < text.n; i++) buf_u8(&plain, text.p[i] < 0x80 ? text.p[i] : '?');
    buf_json_str(out, buf_slice(&plain));
    buf_fini(&plain);
}

static void put_member(struct buf *out, const char *name, const char *value) {
    if (!value || !*value) return;
    json_member(out, name);
    put_text(out, slice_str(value), TEXT_MAX);
}

static void put_entry(struct buf *out, const struct entry *x, int64_t now_us) {
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, "{\"time\":\"%s.%03dZ\",\"category\":\"%s\"", text, (int)(now_us / 1000 % 1000),
               names[x->category]);
    put_member(out, "type", x->type);
    put_member(out, "role", x->role);
    put_member(out, "source", x->conn->account.address);
    json_count(out, "connection", x->conn->account.id);
    put_member(out, "keyspace", x->keyspace);
    put_member(out, "table", x->table);
    if (x->statement.p) {
        json_member(out, "statement");
        put_text(out, x->statement, STATEMENT_MAX);
    }
    json_flag(out, "ok", !x->err->set);
    if (x->err->set) {
        enum err_code code = x->err->code;
        /* the text of these errors may quote the statement, with its values and passwords */
        bool quotes = code == ERR_SYNTAX || code == ERR_INVALID || code == ERR_CONFIG || code == ERR_SERVER;
        json_member(out, "code");
        buf_printf(out, "\"0x%04x\"", (unsigned)code);
        put_member(out, "error", quotes ? err_title(code) : x->err->text);
    }
    buf_put_str(out, "}\n");
}

static void put(struct np_audit *a, const struct np_loop *l, const struct entry *x) {
    struct buf line;
    buf_init(&line, LINE_BYTES_MAX);
    put_entry(&line, x, clock_wall_us(l->o->clock));
    npi_audit_put(a, &line);
    buf_fini(&line);
}

/* ---- requests and logins ---- */

static bool is_audited(const struct np_audit *a, enum np_audit_category c, const struct err *e) {
    unsigned wanted = npi_audit_categories(a);
    return wanted & 1u << c || (e->set && wanted & 1u << NP_AUDIT_ERROR);
}

static struct slice statement_of(struct np_call *call) {
    const struct cql_run *r = &call->r;
    struct slice text = r->answer.fingerprint;
    if (r->in->kind == REQUEST_EXECUTE)
        return text.p ? cql_without_literals(&call->arena, text) : text;
    if (r->in->kind == REQUEST_BATCH) {
        const char *batch = arena_printf(&call->arena, "BATCH of %u", r->in->n_items);
        return batch ? slice_str(batch) : (struct slice){0};
    }
    return r->in->query.p ? cql_fingerprint(&call->arena, r->in->query) : (struct slice){0};
}

void npi_audit_call(struct np_call *call) {
    static const enum np_audit_category categories[] = {
#define STMT(id, words, functions, permission, resource, rule, checks, category, ...) NP_AUDIT_##category,
#include "cql/syntax/stmt.def"
#undef STMT
        NP_AUDIT_OTHER, /* STMT_KINDS */
    };
    const struct np_conn *c = call->conn;
    struct np_audit *a = c->loop->o->audit;
    bool prepares = call->env.opcode == NP_PREPARE;
    enum stmt_kind kind = call->r.answer.stmt_kind;
    /* the driver prepares the statement again; that retry is audited */
    if (!a || (call->err->set && call->err->code == ERR_UNPREPARED)) return;
    enum np_audit_category category = prepares ? NP_AUDIT_PREPARE : categories[kind];
    if (!is_audited(a, category, call->err)) return;
    const struct entry x = {
        .category = category,
        .type = kind < STMT_KINDS ? stmt_words(kind) : np_opcode_name(call->env.opcode),
        .role = c->session.role,
        .keyspace = call->cost.keyspace ? call->cost.keyspace : c->session.keyspace,
        .table = call->cost.table,
        .statement = statement_of(call),
        .conn = c,
        .err = call->err,
    };
    put(a, c->loop, &x);
}

void npi_audit_login(struct np_conn *c, const char *role, const struct err *e) {
    struct np_audit *a = c->loop->o->audit;
    if (!a || !is_audited(a, NP_AUDIT_AUTH, e)) return;
    put(a, c->loop, &(struct entry){.category = NP_AUDIT_AUTH, .type = "LOGIN", .role = role, .conn = c, .err = e});
}
