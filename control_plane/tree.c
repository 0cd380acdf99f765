#include "control_plane/tree.h"

#include <stdio.h>

struct ast_stmt *tree_new(struct call *c, enum stmt_kind kind) {
    struct ast_stmt *s = ARENA_NEW(c->arena, struct ast_stmt);
    if (s) s->kind = kind;
    return s;
}

struct ast_prop_value *tree_text(struct call *c, const char *text) {
    struct ast_prop_value *v = text ? ARENA_NEW(c->arena, struct ast_prop_value) : NULL;
    if (v) *v = (struct ast_prop_value){.kind = PROP_LITERAL, .literal = LIT_STRING, .text = slice_str(text)};
    else c->make.failed = true;
    return v;
}

struct ast_prop_value *tree_map(struct call *c) {
    struct ast_prop_value *v = ARENA_NEW(c->arena, struct ast_prop_value);
    if (v) v->kind = PROP_MAP;
    else c->make.failed = true;
    return v;
}

/* A copy of the array with room for one more item. Arrays in a request are short. */
static void *longer(struct call *c, const void *items, uint32_t n, size_t size) {
    void *p = arena_array(c->arena, n + 1, size);
    if (p && n) memcpy(p, items, n * size);
    c->make.failed = c->make.failed || !p;
    return p;
}

void tree_put(struct call *c, struct ast_prop_value *map, const char *key, struct ast_prop_value *value) {
    struct ast_prop_value *name = map && value ? tree_text(c, key) : NULL;
    struct ast_prop_value **keys = name ? longer(c, map->keys, map->n, sizeof(*keys)) : NULL;
    struct ast_prop_value **values = keys ? longer(c, map->values, map->n, sizeof(*values)) : NULL;
    if (!values) return;
    keys[map->n] = name;
    values[map->n] = value;
    map->keys = keys;
    map->values = values;
    map->n++;
}

void tree_add_prop(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *value) {
    struct ast_prop *props = value ? longer(c, p->props, p->n, sizeof(*props)) : NULL;
    if (!props) return;
    props[p->n++] = (struct ast_prop){.name = name, .value = value};
    p->props = props;
}

void tree_add_map(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *map) {
    if (map && map->n) tree_add_prop(c, p, name, map);
}

struct ast_prop_value *tree_tags(struct call *c, const struct doc *tags) {
    struct ast_prop_value *map = tags ? tree_map(c) : NULL;
    for (const struct doc *t = map ? tags->first : NULL; t; t = t->next)
        tree_put(c, map, doc_text(c->arena, t, "key"), tree_text(c, doc_text(c->arena, t, "value")));
    return map;
}

/* ---- running ---- */

static enum api_error error_of(const struct err *e) {
    static const char *const quotas[] = {"keyspaces-quota", "tables-quota",   "concurrent-ddl",  "concurrent-restores",
                                         "schema-size",     "table-capacity", "account-capacity"};
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        if (e->rule && !strcmp(e->rule, quotas[i])) return API_ServiceQuotaExceededException;
    switch (e->code) {
    case ERR_ALREADY_EXISTS: return API_ConflictException;
    case ERR_UNAUTHORIZED: return API_AccessDeniedException;
    case ERR_SERVER: return API_InternalServerException;
    default: return API_ValidationException;
    }
}

static int no_rows(struct row_sink *s, const struct result_meta *meta) {
    (void)s, (void)meta;
    return 0;
}
static int no_row(struct row_sink *s, const struct value *const *rows, uint32_t n) {
    (void)s, (void)rows, (void)n;
    return 0;
}
static void no_restart(struct row_sink *s) { (void)s; }
static size_t no_bytes(const struct row_sink *s) {
    (void)s;
    return 0;
}

/* The API's changes are asynchronous: the answer comes before the change is visible. */
int tree_run(struct call *c, struct ast_stmt *s) {
    struct row_sink sink = {no_rows, no_row, no_restart, no_bytes};
    struct cql_session session = {.protocol_version = 4, .role = c->role};
    struct op_cost cost = {.arena = c->arena, .size_model = c->o->size_model};
    struct cql_request request = {.kind = REQUEST_QUERY,
                                  .tree = s,
                                  .params = {.consistency = CL_LOCAL_QUORUM, .serial_consistency = CL_SERIAL}};
    struct cql_run r = {.in = &request,
                        .db = c->o->db,
                        .session = &session,
                        .arena = c->arena,
                        .err = c->err,
                        .cost = &cost,
                        .sink = &sink,
                        .now_us = clock_wall_us(c->o->clock),
                        .blocking = true};
    if (!s || c->make.failed) return call_nomem(c);
    request.query = s->source = slice_str(c->operation); /* for reports and traces */
    enum cql_outcome outcome = cql_run(&r);
    if (outcome == CQL_DONE) outcome = cql_admit(&r) ? CQL_FAILED : cql_apply(&r, outcome);
    cql_run_fini(&r);
    if (outcome != CQL_FAILED) return 0;
    c->error = error_of(c->err);
    return -1;
}
