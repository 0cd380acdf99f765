/* tally check: reports which statements of a file Amazon Keyspaces would refuse, with its error
 * texts: each fault of a statement, equal ones together, and then each table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "cql/syntax/ast_other.h"
#include "tools/tally/markers.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/script.h"
#include "tools/tally/table.h"

/* A fault of one statement or more. */
struct check_finding {
    const char *rule; /* of Amazon Keyspaces, in system_metering.compatibility; NULL if every server refuses it */
    const char *words, *needs; /* needs: the index or view that was left out; or NULL */
    enum err_code code;
    struct slice statement; /* the first one */
    uint32_t *lines;
    size_t n_lines, cap_lines;
};

struct table_findings {
    const char *name;
    uint32_t statements, refused, wrong; /* wrong: every server refuses it */
};

struct findings {
    struct arena arena;
    struct check_finding *list;
    struct table_findings *tables;
    size_t n, cap, n_tables, cap_tables;
    uint32_t statements, refused;
    bool json;
    struct buf out; /* of a server's report */
};

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* ---- the statements of a file ---- */

/* Adds a fault of the statement, once. words NULL: no memory. */
static int note(struct findings *f, const struct script_statement *at, const char *rule, enum err_code code,
                const char *words, const char *needs, struct err *e) {
    struct check_finding *x = f->list;
    if (!words) return err_nomem(e);
    while (x < f->list + f->n && !(same(x->rule, rule) && same(x->words, words) && same(x->needs, needs))) x++;
    if (x == f->list + f->n) {
        if (array_room(&f->list, f->n, &f->cap, sizeof(*f->list))) return err_nomem(e);
        x = &f->list[f->n++];
        *x = (struct check_finding){.rule = rule, .code = code, .statement = at->text,
                              .words = arena_strdup(&f->arena, words),
                              .needs = needs ? arena_strdup(&f->arena, needs) : NULL};
        if (!x->words || (needs && !x->needs)) return err_nomem(e);
    }
    if (x->n_lines && x->lines[x->n_lines - 1] == at->line) return 0;
    if (array_room(&x->lines, x->n_lines, &x->cap_lines, sizeof(*x->lines))) return err_nomem(e);
    x->lines[x->n_lines++] = at->line;
    return 0;
}

/* Counts the statement in the row of its table. A statement without a table is in none. */
static int count(struct findings *f, struct world *w, struct slice text, bool refused, bool wrong, struct err *e) {
    struct err ignored = {0};
    const struct ast_stmt *s = cql_parse(&f->arena, text, true, &ignored);
    const struct ast_name *name = s ? ast_any_table(s) : NULL;
    struct table_findings *t = f->tables;
    f->statements++;
    f->refused += refused || wrong;
    if (!name) return 0;
    const char *keyspace = name->keyspace ? name->keyspace : world_keyspace(w);
    const char *shown = arena_printf(&f->arena, "%s.%s", keyspace, name->name);
    while (t < f->tables + f->n_tables && !same(t->name, shown)) t++;
    if (t == f->tables + f->n_tables) {
        if (!shown || array_room(&f->tables, f->n_tables, &f->cap_tables, sizeof(*t))) return err_nomem(e);
        t = &f->tables[f->n_tables++];
        *t = (struct table_findings){.name = shown};
    }
    t->statements++;
    t->refused += refused;
    t->wrong += wrong;
    return 0;
}

/* Runs the statement, with made-up values for its markers. Statements that Amazon Keyspaces refuses still
 * take effect, so that later statements do not fail for lack of it. */
static int check_statement(struct findings *f, struct world *w, const char *path, const struct script_statement *at,
                           struct err *e) {
    struct world_answer ignored;
    struct err why = {0};
    struct world_request q = {.consistency = CL_LOCAL_QUORUM};
    bool made_up;
    bool filled = !markers_fill(w, at->text, &f->arena, &q.text, &made_up, &why);
    /* A statement that cannot be prepared fails with its markers in place, too. */
    if (!filled) q.text = at->text;
    bool wrong = world_run(w, &q, &ignored, &why) != 0, refused = false;
    if (!filled && wrong && !strcmp(why.text, "Invalid amount of bind variables")) wrong = false;
    const struct world_faults faults = world_faults(w);
    uint32_t n = 0;
    for (const struct compat_note *x = faults.notes; x; x = x->next) n++;
    for (uint32_t i = n; i; i--) {
        const struct compat_note *x = faults.notes;
        for (uint32_t k = 1; k < i; k++) x = x->next; /* the oldest first */
        const struct refusal r = refusal_of(x->id);
        const char *words = x->words ? x->words : r.checks;
        if (note(f, at, r.name, r.code, arena_printf(&f->arena, "%s%s%s", words, *r.instead ? " " : "", r.instead),
                 NULL, e))
            return -1;
        refused = true;
    }
    if (wrong && world_leave_out(w, at->text, path, at->line)) wrong = false;
    if (wrong && note(f, at, NULL, why.code, why.text, faults.needs, e)) return -1;
    return count(f, w, at->text, refused, wrong, e);
}

static int check(const struct pricing *p, const char *path, struct script *s, struct findings *f, struct err *e) {
    struct script_statement at;
    struct world *w = pricing_world(p, false, e);
    int rc = w ? script_open(s, path, e) : -1;
    while (!rc && script_next(s, &at)) rc = check_statement(f, w, path, &at, e);
    if (w) world_free(w);
    return rc;
}

static void print_findings(const struct findings *f, const char *path) {
    enum { LINES_SHOWN = 12 };
    static const struct table_column columns[] = {{"table", false}, {"statements", true}, {"refused", true},
                                                  {"wrong", true}};
    struct table t;
    for (const struct check_finding *x = f->list; x < f->list + f->n; x++) {
        printf("%s:%u: %s%s\n    %.*s\n", path, x->lines[0], x->rule ? "" : "wrong CQL: ", x->words,
               (int)(x->statement.n < 160 ? x->statement.n : 160), (const char *)x->statement.p);
        if (x->needs) printf("    it needs %s\n", x->needs);
        if (x->n_lines < 2) continue;
        printf("    %zu times: lines", x->n_lines);
        for (size_t i = 0; i < x->n_lines && i < LINES_SHOWN; i++) printf("%s %u", i ? "," : "", x->lines[i]);
        if (x->n_lines > LINES_SHOWN) printf(" and %zu more", x->n_lines - LINES_SHOWN);
        printf("\n");
    }
    table_init(&t, columns, ARRAY_LEN(columns));
    for (const struct table_findings *x = f->tables; x < f->tables + f->n_tables; x++)
        table_row(&t, "%s\t%u\t%u\t%u", x->name, x->statements, x->refused, x->wrong);
    if (f->n && f->n_tables) printf("\n"), table_print(&t), printf("\n");
    table_fini(&t);
    printf("%u statements, %u refused\n", f->statements, f->refused);
}

static void print_json(const struct findings *f, const char *path) {
    struct buf out;
    buf_init(&out, 0);
    json_open(&out, NULL, '{');
    json_flag(&out, "ok", !f->refused);
    json_text(&out, "file", path);
    json_count(&out, "statements", f->statements);
    json_count(&out, "refused_statements", f->refused);
    json_open(&out, "refused", '[');
    for (const struct check_finding *x = f->list; x < f->list + f->n; x++) {
        json_open(&out, NULL, '{');
        buf_printf(&out, "\"line\":%u,\"code\":\"0x%04x\"", x->lines[0], (unsigned)x->code);
        json_text(&out, "refused_by", x->rule ? "keyspaces" : "everybody");
        json_text(&out, "rule", x->rule);
        json_text(&out, "words", x->words);
        json_text(&out, "needs", x->needs);
        json_slice(&out, "statement", x->statement);
        json_count(&out, "count", x->n_lines);
        json_open(&out, "lines", '[');
        for (size_t i = 0; i < x->n_lines; i++) json_count(&out, NULL, x->lines[i]);
        buf_put_str(&out, "]}");
    }
    buf_u8(&out, ']');
    json_open(&out, "tables", '[');
    for (const struct table_findings *x = f->tables; x < f->tables + f->n_tables; x++) {
        json_open(&out, NULL, '{');
        json_text(&out, "table", x->name);
        json_count(&out, "statements", x->statements);
        json_count(&out, "refused", x->refused);
        json_count(&out, "wrong", x->wrong);
        buf_u8(&out, '}');
    }
    printf("%.*s]}\n", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
}

/* ---- a server's own report (tallyd --compatibility report) ---- */

static int take_use(void *arg, struct client *c, const struct client_rows *row) {
    struct findings *f = arg;
    const char *rule = client_text(row, &c->arena, "rule"), *words = client_text(row, &c->arena, "words");
    const char *text = client_text(row, &c->arena, "statement");
    const char *keyspace = client_text(row, &c->arena, "keyspace_name"),
               *table = client_text(row, &c->arena, "table_name");
    long long uses = (long long)client_int(row, "uses");
    f->refused++;
    f->statements += (uint32_t)uses;
    const char *dot = *keyspace && *table ? "." : "";
    if (!f->json) {
        printf("%s%s%s: %lld times: %s (%s)\n    %s\n", *keyspace || *table ? keyspace : "no table", dot, table, uses,
               words, rule, text);
        return 0;
    }
    json_open(&f->out, NULL, '{');
    json_count(&f->out, "uses", (uint64_t)uses);
    json_text(&f->out, "rule", rule);
    json_text(&f->out, "keyspace", keyspace);
    json_text(&f->out, "table", table);
    json_text(&f->out, "words", words);
    json_text(&f->out, "statement", text);
    buf_u8(&f->out, '}');
    return 0;
}

static void print_uses(const struct findings *f, const char *host) {
    struct buf out;
    if (!f->json) {
        printf("%u statements that Amazon Keyspaces would refuse, %u uses\n", f->refused, f->statements);
        return;
    }
    buf_init(&out, 0);
    json_open(&out, NULL, '{');
    json_flag(&out, "ok", !f->refused);
    json_text(&out, "server", host);
    json_count(&out, "uses", f->statements);
    json_open(&out, "refused", '[');
    printf("%.*s%.*s]}\n", SLICE_FMT(buf_slice(&out)), SLICE_FMT(buf_slice(&f->out)));
    buf_fini(&out);
}

int tally_check(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    struct remote remote = {.timeout_s = 10};
    const char *path = NULL;
    const struct flag flags[] = {
        FLAG_TEXT("file", "FILE", path, "the statements; - is standard input"),
        REMOTE_FLAGS(&remote),
        FLAG_TEXT("schema", "FILE", p.schema,
             "CQL statements that create the keyspaces and tables, if the file does not"),
        FLAG_ON("json", p.json, "the answer as JSON")};
    struct err e = {0};
    int rc = flags_read("check", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!path == !remote.server) {
        fprintf(stderr, "tally check: --file is needed, or --server for the report of one; see tally check --help\n");
        return EXIT_USAGE;
    }
    struct findings f = {.json = p.json};
    struct client c = {0};
    struct script script = {0};
    buf_init(&f.out, 0);
    arena_init(&f.arena, 64 << 10, SCRIPT_MAX);
    if (path) {
        rc = check(&p, path, &script, &f, &e);
        if (!rc && f.json) print_json(&f, path);
        else if (!rc) print_findings(&f, path);
    } else {
        rc = remote_connect(&remote, &c, &e);
        if (!rc) rc = client_each(&c, "SELECT * FROM system_metering.compatibility", take_use, &f, &e);
        if (!rc) print_uses(&f, remote.host);
        client_close(&c);
    }
    script_close(&script);
    for (size_t i = 0; i < f.n; i++) free(f.list[i].lines);
    free(f.list), free(f.tables);
    arena_fini(&f.arena);
    buf_fini(&f.out);
    return rc ? say_wrong(p.json, "check", &e) : f.refused ? EXIT_NO : EXIT_DONE;
}
