/* CreateTable, GetTable, GetTableAutoScalingSettings, ListTables, UpdateTable, DeleteTable,
 * RestoreTable. */
#include "control_plane/moment.h"
#include "control_plane/table_settings.h"

/* ---- the schema's definition ---- */

static int add_columns(struct call *c, const struct doc *list, struct ast_column **out, uint32_t *n) {
    struct ast_column *columns = ARENA_ARRAY(c->arena, list->n + 1, struct ast_column);
    *n = 0;
    for (const struct doc *d = columns ? list->first : NULL; d; d = d->next) {
        const struct doc *type = doc_get(d, "type");
        struct ast_column *col = &columns[(*n)++];
        if (!(col->name = doc_text(c->arena, d, "name"))) return call_nomem(c);
        if (!*col->name) return call_fail(c, API_ValidationException, "A column needs a name.");
        if (!(col->type = cql_parse_type(c->arena, type->text, c->err))) return -1;
    }
    *out = columns;
    return columns ? 0 : call_nomem(c);
}

static const char **names_of(struct call *c, const struct doc *list, uint32_t *n) {
    const char **names = ARENA_ARRAY(c->arena, (list ? list->n : 0) + 1, const char *);
    *n = 0;
    for (const struct doc *d = names && list ? list->first : NULL; d; d = d->next)
        names[(*n)++] = doc_text(c->arena, d, "name");
    if (!names) call_nomem(c);
    return names;
}

static int take_definition(struct call *c, struct ast_create_table *t) {
    const struct doc *d = doc_get(c->in, "schemaDefinition"), *clustering = doc_get(d, "clusteringKeys");
    if (add_columns(c, doc_get(d, "allColumns"), &t->columns, &t->n_columns)) return -1;
    t->partition_key = names_of(c, doc_get(d, "partitionKeys"), &t->n_partition_key);
    t->clustering = names_of(c, clustering, &t->n_clustering);
    t->has_primary_key = true;
    if (!t->partition_key || !t->clustering) return -1;
    const struct doc *statics = doc_get(d, "staticColumns");
    for (const struct doc *x = statics ? statics->first : NULL; x; x = x->next) {
        const char *name = doc_text(c->arena, x, "name");
        uint32_t i = 0;
        while (name && i < t->n_columns && strcmp(t->columns[i].name, name) != 0) i++;
        if (!name) return call_nomem(c);
        if (i == t->n_columns)
            return call_fail(c, API_ValidationException, "The static column %s is not among allColumns.", name);
        t->columns[i].is_static = true;
    }
    struct ast_ordering *order = ARENA_ARRAY(c->arena, t->n_clustering + 1, struct ast_ordering);
    if (!order) return call_nomem(c);
    uint32_t n = 0;
    for (const struct doc *x = clustering ? clustering->first : NULL; x; x = x->next, n++)
        order[n] = (struct ast_ordering){.column = t->clustering[n],
                                         .desc = slice_is(doc_get(x, "orderBy")->text, "DESC")};
    t->props.n_order = n;
    t->props.order = order;
    return 0;
}

/* ---- changes: statements ---- */

static int answer_arn(struct call *c, const char *member, const char *keyspace, const char *table) {
    doc_put_text(&c->make, c->out, member, arn_of_table(c, keyspace, table));
    return 0;
}

/* Checks that a new table may have the name. */
static int check_new(struct call *c, const char *keyspace, const char *name) {
    const struct schema_space *space = call_space(c, keyspace);
    if (!space || call_check_creator(c, RESOURCE_OF_ALL_TABLES, keyspace)) return -1;
    const struct schema_table *t = schema_tables_find(&space->tables, name);
    if (!t) t = schema_tables_find(&space->deleting, name);
    if (t && t->status != SCHEMA_ACTIVE) return call_check_active(c, "table", name, t->status);
    if (t) return call_fail(c, API_ConflictException, "The table %s already exists in keyspace %s.", name, keyspace);
    return call_check_active(c, "keyspace", keyspace, space->keyspace->status);
}

int op_create_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    struct ast_stmt *s = tree_new(c, STMT_CREATE_TABLE);
    if (!keyspace || !name || check_new(c, keyspace, name)) return -1;
    if (s) {
        struct ast_create_table *t = &s->create_table;
        t->table = (struct ast_name){keyspace, name};
        if (take_definition(c, t) || table_settings_take(c, &t->props)) return -1;
    }
    return tree_run(c, s) ? -1 : answer_arn(c, "resourceArn", keyspace, name);
}

/* Finds a table that is ACTIVE, so that statements may change it. */
static const struct schema_table *active_table(struct call *c, const char *keyspace, const char *name) {
    const struct schema_table *t = keyspace && name ? call_table(c, keyspace, name) : NULL;
    return t && call_check_active_in(c, keyspace, "table", name, t->status) == 0 ? t : NULL;
}

int op_update_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    const struct doc *columns = doc_get(c->in, "addColumns");
    struct ast_stmt *s = active_table(c, keyspace, name) ? tree_new(c, STMT_ALTER_TABLE) : NULL;
    if (c->err->set) return -1;
    if (!s) return call_nomem(c);
    struct ast_alter_table *t = &s->alter_table;
    *t = (struct ast_alter_table){.table = {keyspace, name}, .op = columns ? ALTER_TABLE_ADD : ALTER_TABLE_WITH};
    if (table_settings_take(c, &t->props) || (columns && add_columns(c, columns, &t->columns, &t->n_columns)))
        return -1;
    bool sets = settings_are_given(t->props.settings);
    if (!columns && !sets) return call_fail(c, API_ValidationException, "The request changes nothing.");
    if (columns && sets)
        return call_fail(c, API_ValidationException, "A request may change one setting of a table, or add columns.");
    return tree_run(c, s) ? -1 : answer_arn(c, "resourceArn", keyspace, name);
}

int op_delete_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    const struct schema_table *t = name ? call_table(c, keyspace, name) : NULL;
    if (!t) return -1;
    if (t->status == SCHEMA_DELETING) return 0;
    struct ast_stmt *s = active_table(c, keyspace, name) ? tree_new(c, STMT_DROP_TABLE) : NULL;
    if (c->err->set) return -1;
    if (s) s->drop.name = (struct ast_name){keyspace, name};
    return tree_run(c, s);
}

int op_restore_table(struct call *c) {
    const char *keyspace = call_text(c, "targetKeyspaceName"), *name = call_text(c, "targetTableName");
    const char *from_keyspace = call_text(c, "sourceKeyspaceName"), *from = call_text(c, "sourceTableName");
    const struct doc *moment = doc_get(c->in, "restoreTimestamp");
    struct ast_stmt *s = tree_new(c, STMT_RESTORE_TABLE);
    struct ast_other *other = ARENA_NEW(c->arena, struct ast_other);
    if (!keyspace || !name || !from_keyspace || !from || check_new(c, keyspace, name) || !call_space(c, from_keyspace))
        return -1;
    if (!s || !other) return call_nomem(c);
    s->other = other;
    other->restore.table = (struct ast_name){keyspace, name};
    other->restore.from = (struct ast_name){from_keyspace, from};
    if (table_settings_take(c, &other->restore.props)) return -1;
    if (moment) { /* a number of seconds since 1970 */
        double seconds = moment->kind == DOC_REAL ? moment->real : (double)moment->whole;
        char text[MOMENT_TEXT];
        moment_write(seconds > 0 && seconds < 1e11 ? (int64_t)(seconds * 1000 + 0.5) : 0, text);
        tree_add_prop(c, &other->restore.props, "restore_timestamp", tree_text(c, arena_strdup(c->arena, text)));
    }
    return tree_run(c, s) ? -1 : answer_arn(c, "restoredTableARN", keyspace, name);
}

/* ---- descriptions ---- */

static void put_names(struct call *c, const struct schema_table *t) {
    doc_put_text(&c->make, c->out, "keyspaceName", t->keyspace->name);
    doc_put_text(&c->make, c->out, "tableName", t->name);
    doc_put_text(&c->make, c->out, "resourceArn", arn_of_table(c, t->keyspace->name, t->name));
}

static void put_definition(struct call *c, const struct schema_table *t) {
    struct doc *d = doc_put(&c->make, c->out, "schemaDefinition", DOC_MAP);
    struct doc *all = doc_put(&c->make, d, "allColumns", DOC_LIST),
               *partition = doc_put(&c->make, d, "partitionKeys", DOC_LIST);
    struct doc *clustering = doc_put(&c->make, d, "clusteringKeys", DOC_LIST),
               *statics = doc_put(&c->make, d, "staticColumns", DOC_LIST);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *col = &t->columns[i];
        struct doc *x = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, x, "name", col->name);
        doc_put_text(&c->make, x, "type", type_text(c, col->type));
        if (col->kind == COLUMN_REGULAR) continue;
        struct doc *to = col->kind == COLUMN_PARTITION_KEY ? partition
                         : col->kind == COLUMN_CLUSTERING  ? clustering
                                                           : statics;
        x = doc_put(&c->make, to, NULL, DOC_MAP);
        doc_put_text(&c->make, x, "name", col->name);
        if (col->kind == COLUMN_CLUSTERING) doc_put_text(&c->make, x, "orderBy", col->desc ? "DESC" : "ASC");
    }
}

static const struct schema_table *asked_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    return keyspace && name ? call_table(c, keyspace, name) : NULL;
}

int op_get_table(struct call *c) {
    const struct schema_table *t = asked_table(c);
    if (!t) return -1;
    put_names(c, t);
    doc_put_text(&c->make, c->out, "status", schema_status_name(t->status));
    if (!t->keyspace->is_system) doc_put_moment(&c->make, c->out, "creationTimestamp", t->created_ms);
    put_definition(c, t);
    return t->keyspace->is_system ? 0 : table_settings_put(c, t);
}

int op_get_table_auto_scaling_settings(struct call *c) {
    const struct schema_table *t = asked_table(c);
    if (!t) return -1;
    if (t->settings.throughput_mode != PROVISIONED)
        return call_fail(c, API_ValidationException,
                         "Auto scaling is for tables of provisioned capacity; %s.%s is on-demand.", t->keyspace->name,
                         t->name);
    put_names(c, t);
    table_scaling_put(c, t);
    return 0;
}

int op_list_tables(struct call *c) {
    const struct schema_space *space = call_space(c, call_text(c, "keyspaceName"));
    struct page p;
    if (!space || page_begin(c, &p)) return -1;
    struct doc *all = doc_put(&c->make, c->out, "tables", DOC_LIST);
    /* Merges live tables and tables that are being deleted, in the order of their names. */
    struct schema_table_cursor live = schema_tables_begin(&space->tables), gone = schema_tables_begin(&space->deleting);
    const struct schema_table *t = schema_tables_next(&live), *d = schema_tables_next(&gone);
    while (t || d) {
        bool first = t && (!d || strcmp(t->name, d->name) <= 0);
        const struct schema_table *one = first ? t : d;
        if (page_takes(c, &p, one->name)) {
            struct doc *x = doc_put(&c->make, all, NULL, DOC_MAP);
            doc_put_text(&c->make, x, "keyspaceName", space->keyspace->name);
            doc_put_text(&c->make, x, "tableName", one->name);
            doc_put_text(&c->make, x, "resourceArn", arn_of_table(c, space->keyspace->name, one->name));
        }
        if (first) t = schema_tables_next(&live);
        else d = schema_tables_next(&gone);
    }
    return 0;
}
