#include "tools/tally/cql/describe.h"

#include <stdlib.h>

#include "base/array.h"
#include "cql/request/request.h"
#include "tools/tally/cql/split.h"
#include "tools/tally/server_schema.h"

enum { DESCRIBE_PAGE = 5000 };

struct description {
    struct shell *s;
    struct arena arena;
    int n;
    struct slice words[SPLIT_WORDS]; /* after DESCRIBE */
};

static bool is(const struct description *d, int word, const char *text) {
    return word < d->n && script_is_word(d->words[word], text);
}

/* ---- lists of names ---- */

/* The names of one keyspace, collected until the next keyspace begins; or those of the keyspaces. */
struct describe_listing {
    struct description *d;
    struct buf *out;
    struct err *e;
    const char *column; /* of the names */
    bool by_keyspace;
    const char *keyspace, **names;
    size_t n, cap;
};

static void put_list(const struct describe_listing *l) {
    if (!l->n) return;
    buf_u8(l->out, '\n');
    if (l->by_keyspace && !*l->d->s->keyspace && l->keyspace) {
        buf_printf(l->out, "Keyspace %s\n---------", l->keyspace);
        for (const char *c = l->keyspace; *c; c++) buf_u8(l->out, '-');
        buf_u8(l->out, '\n');
    }
    grid_put_names(l->names, (uint32_t)l->n, l->out);
}

static int add_name(struct describe_listing *l, const char *keyspace, const char *name) {
    if (l->by_keyspace && l->keyspace && strcmp(l->keyspace, keyspace)) {
        put_list(l);
        l->n = 0;
    }
    l->keyspace = keyspace;
    if (array_room(&l->names, l->n, &l->cap, sizeof(*l->names))) return err_nomem(l->e);
    l->names[l->n++] = name;
    return 0;
}

static int take_name(void *arg, struct client *c, const struct client_rows *row) {
    struct describe_listing *l = arg;
    const char *keyspace = client_text(row, &l->d->arena, "keyspace_name"), *only = l->d->s->keyspace;
    (void)c;
    if (l->by_keyspace && *only && strcmp(only, keyspace)) return 0;
    return add_name(l, keyspace, client_text(row, &l->d->arena, l->column));
}

/* ---- answered by the shell ---- */

/* A name as CQL reads it: in lower case unless it is quoted. split_words has removed the quotes, so
 * this function looks at the byte before the word. */
static char *name_of(struct description *d, struct slice word) {
    char *name = arena_printf(&d->arena, "%.*s", SLICE_FMT(word));
    bool quoted = word.n && word.p[-1] == '"';
    for (char *c = name; c && *c && !quoted; c++)
        if (*c >= 'A' && *c <= 'Z') *c += 'a' - 'A';
    return name;
}

/* Appends the statements of a part of the schema. Returns 1 on success, or 0 if there are none, or
 * -1 with e set. */
static int put_part(struct description *d, const char *keyspace, const char *type, const char *table, struct buf *out,
                    struct err *e) {
    const struct server_schema_part part = {.keyspace = keyspace, .type = type, .table = table};
    size_t before = out->n;
    buf_u8(out, '\n');
    if (server_schema_of(&d->s->client, &part, out, e)) return -1;
    if (out->n > before + 1) return 1;
    out->n = before;
    return 0;
}

static void not_found(struct description *d, const char *name, const char *keyspace) {
    if (keyspace) shell_complain(d->s, "'%s' not found in keyspace '%s'", name, keyspace);
    else shell_complain(d->s, "'%s' not found in keyspaces", name);
}

static int put_object(struct description *d, struct slice word, bool tables, bool types, struct buf *out,
                      struct err *e) {
    /* KEYSPACE.NAME, or NAME in the current keyspace */
    char *text = name_of(d, word), *dot = text ? strchr(text, '.') : NULL;
    const char *keyspace = dot ? text : *d->s->keyspace ? d->s->keyspace : NULL, *name = dot ? dot + 1 : text;
    if (dot) *dot = 0;
    if (!keyspace || !name) {
        shell_complain(d->s, "No keyspace specified and no current keyspace");
        return 0;
    }
    int rc = tables ? put_part(d, keyspace, "", name, out, e) : 0;
    if (!rc && types) rc = put_part(d, keyspace, name, "", out, e);
    if (!rc) not_found(d, name, keyspace);
    return rc < 0 ? -1 : 0;
}

static int put_keyspace(struct description *d, const char *name, struct buf *out, struct err *e) {
    int rc = name ? put_part(d, name, NULL, NULL, out, e) : 0;
    if (!name) shell_complain(d->s, "No keyspace specified and no current keyspace");
    else if (!rc) not_found(d, name, NULL);
    return rc < 0 ? -1 : 0;
}

static int answer(struct description *d, struct buf *out, struct err *e) {
    static const struct { const char *word, *table, *column;
    } lists[] = {{"KEYSPACES", "keyspaces", "keyspace_name"}, {"TABLES", "tables", "table_name"},
                 {"COLUMNFAMILIES", "tables", "table_name"}, {"TYPES", "types", "type_name"},
                 {"FUNCTIONS", "functions", "function_name"}, {"AGGREGATES", "aggregates", "aggregate_name"}};
    const struct shell *s = d->s;
    const char *current = *s->keyspace ? s->keyspace : NULL;
    bool full = is(d, 0, "FULL");
    for (size_t i = 0; d->n == 1 && i < ARRAY_LEN(lists); i++) {
        if (!is(d, 0, lists[i].word)) continue;
        struct describe_listing l = {.d = d, .column = lists[i].column, .out = out, .e = e,
                            .by_keyspace = strcmp(lists[i].column, "keyspace_name") != 0};
        char text[128];
        snprintf(text, sizeof(text), "SELECT keyspace_name%s%s FROM system_schema.%s", l.by_keyspace ? ", " : "",
                 l.by_keyspace ? l.column : "", lists[i].table);
        int rc = client_each(&d->s->client, text, take_name, &l, e);
        if (!rc) put_list(&l);
        if (!rc && l.n) buf_u8(out, '\n');
        free(l.names);
        return rc;
    }
    if (d->n == 1 && is(d, 0, "CLUSTER")) {
        buf_printf(out, "\nCluster: %s\nPartitioner: %s\n\n", s->cluster, s->partitioner);
        return 0;
    }
    if (d->n == 1 + full && is(d, full, "SCHEMA")) return put_part(d, NULL, NULL, NULL, out, e) < 0 ? -1 : 0;
    if (d->n == 1 && is(d, 0, "KEYSPACE")) return put_keyspace(d, current, out, e);
    if (d->n == 2 && is(d, 0, "KEYSPACE")) return put_keyspace(d, name_of(d, d->words[1]), out, e);
    if (d->n == 2 && (is(d, 0, "TABLE") || is(d, 0, "COLUMNFAMILY")))
        return put_object(d, d->words[1], true, false, out, e);
    if (d->n == 2 && is(d, 0, "TYPE")) return put_object(d, d->words[1], false, true, out, e);
    if (d->n == 1) { /* the name of a keyspace, or of an object of the current keyspace */
        const char *name = name_of(d, d->words[0]);
        bool plain = name && !strchr(name, '.');
        int rc = plain ? put_part(d, name, NULL, NULL, out, e) : 0;
        if (rc) return rc < 0 ? -1 : 0;
        if (*s->keyspace || !plain) return put_object(d, d->words[0], true, true, out, e);
        not_found(d, name, NULL);
        return 0;
    }
    shell_complain(d->s, "Improper DESCRIBE command; see HELP DESCRIBE.");
    return 0;
}

/* ---- answered by the server ---- */

static void ask_server(struct description *d, struct slice text, struct buf *out) {
    struct wire_params p = {.consistency = CL_LOCAL_ONE, .page_size = DESCRIBE_PAGE};
    struct client_answer a;
    struct err e = {0};
    struct describe_listing l = {.d = d, .out = out, .e = &e, .by_keyspace = !is(d, 0, "KEYSPACES")};
    struct buf state;
    int rc;
    buf_init(&state, 0);
    do {
        rc = shell_query(d->s, text, &p, &a, &e);
        if (rc || !a.has_rows) break;
        buf_clear(&state, SIZE_MAX);
        buf_put_slice(&state, a.rows.paging_state);
        p.paging_state = buf_slice(&state);
        while (!rc && client_rows_next(&a.rows)) {
            struct arena *keep = &d->arena;
            const char *statement = client_text(&a.rows, keep, "create_statement");
            if (*statement)
                buf_printf(out, "\n%s\n", statement);
            else if (client_value(&a.rows, "cluster").n >= 0)
                buf_printf(out, "\nCluster: %s\nPartitioner: %s\nSnitch: %s\n\n",
                           client_text(&a.rows, keep, "cluster"), client_text(&a.rows, keep, "partitioner"),
                           client_text(&a.rows, keep, "snitch"));
            else
                rc = add_name(&l, client_text(&a.rows, keep, "keyspace_name"), client_text(&a.rows, keep, "name"));
        }
    } while (!rc && state.n);
    if (rc && shell_is_refused(&a)) {
        struct slice words;
        (void)wire_error_code(&a.response, &words);
        shell_complain(d->s, "%.*s", SLICE_FMT(words));
    } else if (rc) {
        shell_complain_of(d->s, &a, &e);
    } else if (l.n) {
        put_list(&l);
        buf_u8(out, '\n');
    }
    free(l.names);
    buf_fini(&state);
}

void describe(struct shell *s, struct slice text) {
    struct description d = {.s = s};
    struct err e = {0};
    struct client_answer probe;
    struct buf out;
    arena_init(&d.arena, 16 << 10, 0);
    buf_init(&out, 0);
    struct slice words[SPLIT_WORDS];
    d.n = split_words(text, &d.arena, words) - 1;
    if (d.n > 0) memcpy(d.words, words + 1, (size_t)d.n * sizeof(*words));
    if (d.n < 1) {
        shell_complain(s, "Improper DESCRIBE command; see HELP DESCRIBE.");
    } else if (s->server_describes) {
        ask_server(&d, text, &out);
    } else if (shell_query_system(s, "SELECT key FROM system.local WHERE key = 'local'", &probe, &e) ||
               answer(&d, &out, &e)) {
        shell_complain(s, "%s", e.text);
        shell_disconnect(s); /* the connection may have failed; the next request opens another one */
    }
    shell_put(s, &out);
    buf_fini(&out);
    arena_fini(&d.arena);
}
