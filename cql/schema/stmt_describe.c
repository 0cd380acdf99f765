/* DESCRIBE as the server answers it (from Cassandra 4.0 on); cqlsh 6.2 prints the rows. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cql/request/db.h"
#include "cql/schema/describe_text.h"
#include "cql/request/statement.h"

struct describe {
    const struct ast_describe *ast;
    const char *keyspace; /* of the session; NULL if none */
};

enum { MAX_STATEMENT = 1 << 20 };

struct answer {
    struct cql_run *r;
    const struct cql_statement *s;
    const struct describe *d;
    const struct schema *schema;
};

static int compile_describe(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    static const char *const cluster[] = {"cluster", "partitioner", "snitch", "range_ownership"};
    static const char *const elements[] = {"keyspace_name", "type", "name", "create_statement"};
    struct describe *d = ARENA_NEW(c->arena, struct describe);
    struct result_column *columns = ARENA_ARRAY(c->arena, 4, struct result_column);
    if (!d || !columns) return err_nomem(c->err);
    d->ast = &ast->describe;
    d->keyspace = c->keyspace && *c->keyspace ? c->keyspace : NULL;
    enum ast_describe_kind kind = ast->describe.kind;
    bool is_cluster = kind == DESCRIBE_CLUSTER;
    bool lists_names = kind == DESCRIBE_KEYSPACES || kind == DESCRIBE_TABLES || kind == DESCRIBE_TYPES ||
                       kind == DESCRIBE_FUNCTIONS || kind == DESCRIBE_AGGREGATES;
    const struct schema_keyspace *ks = d->keyspace ? schema_keyspace_find(c->schema, d->keyspace) : NULL;
    bool has_ranges = ks && !ks->is_system;
    bool short_rows = is_cluster ? !has_ranges : lists_names;
    for (int i = 0; i < 4; i++)
        columns[i] = (struct result_column){"system", "describe", is_cluster ? cluster[i] : elements[i],
                                            cql_type_scalar(CQL_TEXT)};
    if (is_cluster && !(columns[3].type = cql_type_parse(c->arena, slice_str("map<text, frozen<list<text>>>"), NULL,
                                                         NULL, NULL, c->err)))
        return -1;
    out->result.n = short_rows ? 3 : 4;
    out->result.columns = columns;
    out->plan = d;
    return 0;
}

/* ---- rows ---- */

static int emit(struct answer *a, const struct value *values) {
    if (row_sink_row(a->r->sink, values)) return err_set(a->r->err, ERR_SERVER, "The response is too large");
    a->r->cost->rows_returned++;
    return 0;
}

/* A name as CQL writes it, in the request's arena. */
static struct value quoted(struct answer *a, const char *name) {
    struct buf b;
    buf_init(&b, 1024);
    ast_print_name(name, &b);
    struct slice s = arena_dup(a->r->arena, buf_slice(&b));
    buf_fini(&b);
    return value_of_slice(s);
}

/* One of table and type, or the keyspace itself if both are NULL. */
static int emit_element(struct answer *a, const struct schema_keyspace *ks, const struct schema_table *table,
                        const struct schema_type *type, bool with_text) {
    struct buf b;
    buf_init(&b, MAX_STATEMENT);
    struct describe_text text = {&b, a->r->arena, a->schema->cassandra_mode, a->d->ast->internals};
    const char *kind = table ? "table" : type ? "type" : "keyspace";
    const char *name = table ? table->name : type ? type->type->name : ks->name;
    if (with_text && table) describe_table(&text, table);
    else if (with_text && type) describe_type(&text, type);
    else if (with_text) describe_keyspace(&text, ks);
    const struct value values[] = {quoted(a, ks->name), value_of_slice(slice_str(kind)), quoted(a, name),
                                   value_of_slice(buf_slice(&b))};
    int rc = buf_failed(&b) || !values[0].p || !values[2].p ? err_nomem(a->r->err) : emit(a, values);
    buf_fini(&b);
    return rc;
}

static int by_table_name(const void *a, const void *b) {
    return strcasecmp((*(const struct schema_table *const *)a)->name, (*(const struct schema_table *const *)b)->name);
}

static int emit_tables(struct answer *a, const struct schema_keyspace *ks, bool with_text) {
    const struct schema_tables *tables = &schema_space_find(a->schema, ks->name)->tables;
    const struct schema_table **sorted = ARENA_ARRAY(a->r->arena, tables->n + 1, const struct schema_table *);
    if (!sorted) return err_nomem(a->r->err);
    struct schema_table_cursor at = schema_tables_begin(tables);
    for (uint32_t i = 0; i < tables->n; i++) sorted[i] = schema_tables_next(&at);
    qsort(sorted, tables->n, sizeof *sorted, by_table_name);
    for (uint32_t i = 0; i < tables->n; i++)
        if (schema_status_is_listed(sorted[i]->status) && emit_element(a, ks, sorted[i], NULL, with_text)) return -1;
    return 0;
}

static int by_type_name(const void *a, const void *b) {
    return strcasecmp((*(const struct schema_type *const *)a)->type->name,
                      (*(const struct schema_type *const *)b)->type->name);
}

/* Prints a type after the types that it contains, and these in the order in which it names them. */
static int emit_type(struct answer *a, const struct schema_space *space, uint32_t at, bool *done);

static int emit_types_within(struct answer *a, const struct schema_space *space, const struct cql_type *t, bool *done) {
    for (uint32_t i = 0; i < t->n_args; i++)
        if (emit_types_within(a, space, t->args[i], done)) return -1;
    if (t->id != CQL_UDT) return 0;
    for (uint32_t i = 0; i < space->n_types; i++)
        if (schema_status_is_listed(space->types[i]->status) && strcmp(space->types[i]->type->name, t->name) == 0)
            return emit_type(a, space, i, done);
    return 0;
}

static int emit_type(struct answer *a, const struct schema_space *space, uint32_t at, bool *done) {
    const struct cql_type *t = space->types[at]->type;
    if (done[at]) return 0;
    done[at] = true;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (emit_types_within(a, space, t->args[i], done)) return -1;
    return emit_element(a, space->keyspace, NULL, space->types[at], true);
}

static int emit_keyspace(struct answer *a, const struct schema_keyspace *ks, bool only) {
    if (emit_element(a, ks, NULL, NULL, true)) return -1;
    if (only) return 0;
    const struct schema_space *space = schema_space_find(a->schema, ks->name);
    bool *done = ARENA_ARRAY(a->r->arena, space->n_types + 1, bool);
    if (!done) return err_nomem(a->r->err);
    for (uint32_t i = 0; i < space->n_types; i++)
        if (schema_status_is_listed(space->types[i]->status) && emit_type(a, space, i, done)) return -1;
    return emit_tables(a, ks, true);
}

/* KEYSPACES, TABLES and TYPES; there are no functions and aggregates to list. */
static int emit_names(struct answer *a) {
    enum ast_describe_kind kind = a->d->ast->kind;
    if (kind != DESCRIBE_KEYSPACES && kind != DESCRIBE_TABLES && kind != DESCRIBE_TYPES) return 0;
    for (uint32_t i = 0; i < a->schema->n_spaces; i++) {
        const struct schema_space *space = a->schema->spaces[i];
        const struct schema_keyspace *ks = space->keyspace;
        bool wanted = !a->d->keyspace || strcmp(a->d->keyspace, ks->name) == 0;
        if (!schema_status_is_listed(ks->status) || (ks->unlisted && !(a->d->keyspace && wanted))) continue;
        if (kind == DESCRIBE_KEYSPACES && emit_element(a, ks, NULL, NULL, false)) return -1;
        if (kind == DESCRIBE_TABLES && wanted && emit_tables(a, ks, false)) return -1;
        if (kind != DESCRIBE_TYPES || !wanted) continue;
        const struct schema_type **sorted = ARENA_ARRAY(a->r->arena, space->n_types + 1, const struct schema_type *);
        if (!sorted) return err_nomem(a->r->err);
        for (uint32_t k = 0; k < space->n_types; k++) sorted[k] = space->types[k];
        if (space->n_types > 1) qsort(sorted, space->n_types, sizeof *sorted, by_type_name);
        for (uint32_t k = 0; k < space->n_types; k++)
            if (schema_status_is_listed(sorted[k]->status) && emit_element(a, ks, NULL, sorted[k], false)) return -1;
    }
    return 0;
}

/* ---- one element ---- */

static const struct schema_keyspace *find_keyspace(struct answer *a, const char *name) {
    if (!name) return err_null(err_invalid(a->r->err, "No keyspace specified and no current keyspace"));
    const struct schema_keyspace *ks = schema_keyspace_find(a->schema, name);
    if (ks && schema_status_is_listed(ks->status)) return ks;
    return err_null(err_invalid(a->r->err, "'%s' not found in keyspaces", name));
}

static int emit_one(struct answer *a) {
    static const char *const words[] = {
        [DESCRIBE_TABLE] = "Table ",
        [DESCRIBE_INDEX] = "Table for existing index ",
        [DESCRIBE_VIEW] = "Materialized view ",
        [DESCRIBE_TYPE] = "User defined type ",
        [DESCRIBE_FUNCTION] = "User defined function ",
        [DESCRIBE_AGGREGATE] = "User defined aggregate ",
        [DESCRIBE_GENERIC] = "",
    };
    const struct ast_describe *d = a->d->ast;
    const struct schema_keyspace *ks = find_keyspace(a, d->name.keyspace ? d->name.keyspace : a->d->keyspace);
    if (!ks) return -1;
    bool may_be_table = d->kind == DESCRIBE_TABLE || d->kind == DESCRIBE_GENERIC;
    const struct schema_table *t = may_be_table ? schema_table_any(a->schema, ks->name, d->name.name) : NULL;
    if (t && schema_status_is_listed(t->status)) return emit_element(a, ks, t, NULL, true);
    const struct schema_type *type = d->kind == DESCRIBE_TYPE ? schema_type_find(a->schema, ks->name, d->name.name)
                                                              : NULL;
    if (type) return emit_element(a, ks, NULL, type, true);
    return err_invalid(a->r->err, "%s'%s' not found in %s'%s'", words[d->kind], d->name.name,
                       may_be_table ? "keyspace " : "", ks->name);
}

static int emit_answer(struct answer *a) {
    const struct ast_describe *d = a->d->ast;
    const struct schema_keyspace *ks;
    switch (d->kind) {
    case DESCRIBE_CLUSTER: {
        const struct node_info *node = catalog_node(a->r->db->options.catalog);
        struct buf map, list;
        buf_init(&map, 1024);
        buf_init(&list, 1024);
        char *endpoint = arena_printf(a->r->arena, "/%s:7000", node->listen_address);
        if (endpoint) {
            cql_collection_begin(1, &list);
            cql_elem_put(value_of_slice(slice_str(endpoint)), &list);
            cql_collection_begin(1, &map);
            cql_elem_put(value_of_slice(slice_str("0")), &map);
            cql_elem_put(value_of_slice(buf_slice(&list)), &map);
        }
        const struct value values[] = {value_of_slice(slice_str(node->cluster_name)),
                                       value_of_slice(slice_str("Murmur3Partitioner")),
                                       value_of_slice(slice_str("SimpleSnitch")), value_of_slice(buf_slice(&map))};
        int rc = !endpoint || buf_failed(&map) || buf_failed(&list) ? err_nomem(a->r->err) : emit(a, values);
        buf_fini(&list);
        buf_fini(&map);
        return rc;
    }
    case DESCRIBE_SCHEMA:
        for (uint32_t i = 0; i < a->schema->n_spaces; i++) {
            ks = a->schema->spaces[i]->keyspace;
            if (!schema_status_is_listed(ks->status) || ks->unlisted || (ks->is_system && !d->full)) continue;
            if (emit_keyspace(a, ks, false)) return -1;
        }
        return 0;
    case DESCRIBE_KEYSPACES: case DESCRIBE_TABLES: case DESCRIBE_TYPES: case DESCRIBE_FUNCTIONS:
    case DESCRIBE_AGGREGATES: return emit_names(a);
    case DESCRIBE_KEYSPACE:
        ks = find_keyspace(a, d->name.keyspace ? d->name.keyspace : d->name.name ? d->name.name : a->d->keyspace);
        return ks ? emit_keyspace(a, ks, d->only) : -1;
    case DESCRIBE_GENERIC:
        if (d->name.keyspace) return emit_one(a);
        ks = schema_keyspace_find(a->schema, d->name.name);
        if (ks && schema_status_is_listed(ks->status)) return emit_keyspace(a, ks, false);
        if (!a->d->keyspace) return err_invalid(a->r->err, "'%s' not found in keyspaces", d->name.name);
        return emit_one(a);
    case DESCRIBE_TABLE: case DESCRIBE_INDEX: case DESCRIBE_VIEW: case DESCRIBE_TYPE: case DESCRIBE_FUNCTION:
    case DESCRIBE_AGGREGATE: return emit_one(a);
    }
    return 0;
}

static enum cql_outcome run_describe(struct cql_run *r, const struct cql_statement *s) {
    struct answer a = {r, s, s->plan, s->schema};
    r->cost->is_system = true;
    if (r->sink->begin(r->sink, &s->result)) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    if (emit_answer(&a)) return CQL_FAILED;
    r->answer.result.kind = RESULT_ROWS;
    r->answer.result.meta = &s->result;
    return CQL_DONE;
}

const struct statement_ops describe_ops = {compile_describe, run_describe};
