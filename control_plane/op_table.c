/* CreateTable, GetTable, GetTableAutoScalingSettings, ListTables, UpdateTable, DeleteTable,
 * RestoreTable. */
#include <ctype.h>

#include "base/name_tree.h"
#include "control_plane/moment.h"
#include "control_plane/tree.h"

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

/* ---- settings from members: `api` of settings/setting.def ---- */

/* The member of a path like "ttl.status". In RestoreTable some first names have the ending
 * Override. */
static const struct doc *find_member(struct call *c, const struct doc *in, const char *path) {
    for (const char *at = path; in; at++) {
        size_t n = strcspn(at, ".");
        const char *name = (const char *)arena_dup(c->arena, slice_of(at, n)).p, *override;
        if (!name || !(override = arena_printf(c->arena, "%sOverride", name))) {
            c->make.failed = true;
            return NULL;
        }
        const struct doc *d = doc_get(in, name);
        in = d || at != path ? d : doc_get(in, override);
        at += n;
        if (!*at) break;
    }
    return in;
}

/* Sets the members that the request gives. */
static void take(struct call *c, const struct doc *in, const struct setting *rows, uint32_t n, void *of) {
    for (uint32_t i = 0; i < n; i++) {
        const struct setting *row = &rows[i];
        const struct doc *d = row->api && row->source == SETTING_OF_STATEMENT ? find_member(c, in, row->api) : NULL;
        char *to = (char *)of + row->offset;
        if (!d) continue;
        double number = d->kind == DOC_REAL ? d->real : (double)d->whole;
        switch (row->kind) {
        case SETTING_KIND_FLAG: *(bool *)to = d->kind == DOC_FLAG ? d->flag : setting_word(row, d->text) == 0; break;
        case SETTING_KIND_CHOICE: *(uint8_t *)to = (uint8_t)setting_word(row, d->text); break;
        case SETTING_KIND_NUMBER: *(double *)to = number; break;
        case SETTING_KIND_TEXT:
            if (!(*(const char **)to = (const char *)arena_dup(c->arena, d->text).p)) c->make.failed = true;
            break;
        default: *(int64_t *)to = d->whole; break;
        }
        *(uint64_t *)of |= UINT64_C(1) << i;
    }
}

/* The tags of a request; tags NULL: none. */
static int take_tags(struct call *c, const struct doc *tags, struct setting_map *out) {
    struct schema_option *all = ARENA_ARRAY(c->arena, (tags ? tags->n : 0) + 1, struct schema_option);
    uint32_t n = 0;
    if (!all) return call_nomem(c);
    for (const struct doc *t = tags ? tags->first : NULL; t; t = t->next, n++) {
        all[n] = (struct schema_option){doc_text(c->arena, t, "key"), doc_text(c->arena, t, "value")};
        if (!all[n].name || !all[n].value) return call_nomem(c);
    }
    setting_map_sort(all, n);
    *out = (struct setting_map){n, all};
    return 0;
}

/* Adds the settings of the request to a statement's properties. Returns -1 if a setting is not
 * allowed. */
static int take_settings(struct call *c, struct ast_props *props) {
    static const char *const scaling[] = {"readCapacityAutoScaling", "writeCapacityAutoScaling"};
    struct table_settings *s = ARENA_NEW(c->arena, struct table_settings);
    const struct doc *in = c->in, *spec = doc_get(in, "autoScalingSpecification"),
                     *replicas = doc_get(in, "replicaSpecifications"),
                     *tags = doc_get(in, doc_get(in, "tagsOverride") ? "tagsOverride" : "tags");
    if (!s) return call_nomem(c);
    *s = *settings_defaults(true);
    take(c, in, setting_rows, SETTINGS, s);
    /* The option cdc turns CDC on or off; a property says what its records contain. */
    const struct doc *cdc = doc_get(in, "cdcSpecification"), *status = doc_get(cdc, "status"),
                     *stream_tags = doc_get(cdc, "tags");
    if (status) {
        SETTING_SET(s, cdc, slice_is(status->text, "ENABLED"));
        if (!s->cdc && !slice_is(status->text, "DISABLED"))
            return call_fail(c, API_ValidationException,
                             "The status of a cdcSpecification can be set to ENABLED or DISABLED.");
        if (stream_tags && stream_tags->n) s->given |= SETTING_BIT(stream_tags);
        if (take_tags(c, stream_tags, &s->stream_tags)) return -1;
    }
    if (take_tags(c, tags, &s->tags)) return -1;
    if (s->tags.n) s->given |= SETTING_BIT(tags);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        take(c, doc_get(spec, scaling[of]), scaling_rows, SCALING_SETTINGS, &s->scaling[of]);
    for (const struct doc *r = replicas ? replicas->first : NULL; r; r = r->next) {
        const char *name = doc_text(c->arena, r, "region");
        struct region_settings *region = name ? settings_region(s, name, c->arena) : NULL;
        if (!region) return call_nomem(c);
        take(c, r, region_rows, REGION_SETTINGS, region);
        take(c, doc_get(r, scaling[READ_CAPACITY]), scaling_rows, SCALING_SETTINGS, &region->scaling[READ_CAPACITY]);
    }
    props->settings = s;
    return 0;
}

/* ---- changes: statements ---- */

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
    if (!keyspace || !name || check_new(c, keyspace, name) || !tree_new(c, STMT_CREATE_TABLE)) return -1;
    struct ast_create_table *t = &c->statement->create_table;
    t->table = (struct ast_name){keyspace, name};
    doc_put_text(&c->make, c->out, "resourceArn", arn_of_table(c, keyspace, name));
    const struct doc *d = doc_get(c->in, "schemaDefinition"), *clustering = doc_get(d, "clusteringKeys");
    if (add_columns(c, doc_get(d, "allColumns"), &t->columns, &t->n_columns)) return -1;
    struct name_tree named = {.arena = c->arena};
    for (uint32_t i = 0; i < t->n_columns; i++) {
        int rc = name_tree_put(&named, slice_str(t->columns[i].name), i);
        if (rc < 0) return call_nomem(c);
        if (rc) return call_fail(c, API_ValidationException, "duplicate AllColumns can not be declared");
    }
    t->partition_key = names_of(c, doc_get(d, "partitionKeys"), &t->n_partition_key);
    t->clustering = names_of(c, clustering, &t->n_clustering);
    t->has_primary_key = true;
    if (!t->partition_key || !t->clustering) return -1;
    const struct doc *statics = doc_get(d, "staticColumns");
    for (const struct doc *x = statics ? statics->first : NULL; x; x = x->next) {
        const char *column = doc_text(c->arena, x, "name");
        uint32_t i = 0;
        while (column && i < t->n_columns && strcmp(t->columns[i].name, column) != 0) i++;
        if (!column) return call_nomem(c);
        if (i == t->n_columns)
            return call_fail(c, API_ValidationException, "The static column %s is not among allColumns.", column);
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
    return take_settings(c, &t->props);
}

/* Finds a table that is ACTIVE, so that statements may change it. */
static const struct schema_table *active_table(struct call *c, const char *keyspace, const char *name) {
    const struct schema_table *t = keyspace && name ? call_table(c, keyspace, name) : NULL;
    return t && call_check_active_in(c, keyspace, "table", name, t->status) == 0 ? t : NULL;
}

int op_update_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    const struct doc *columns = doc_get(c->in, "addColumns");
    if (!active_table(c, keyspace, name) || !tree_new(c, STMT_ALTER_TABLE)) return -1;
    struct ast_alter_table *t = &c->statement->alter_table;
    *t = (struct ast_alter_table){.table = {keyspace, name}, .op = columns ? ALTER_TABLE_ADD : ALTER_TABLE_WITH};
    doc_put_text(&c->make, c->out, "resourceArn", arn_of_table(c, keyspace, name));
    if (take_settings(c, &t->props) || (columns && add_columns(c, columns, &t->columns, &t->n_columns)))
        return -1;
    bool sets = settings_are_given(t->props.settings);
    if (!columns && !sets) return call_fail(c, API_ValidationException, "The request changes nothing.");
    if (columns && sets)
        return call_fail(c, API_ValidationException, "A request may change one setting of a table, or add columns.");
    return 0;
}

int op_delete_table(struct call *c) {
    const char *keyspace = call_text(c, "keyspaceName"), *name = call_text(c, "tableName");
    const struct schema_table *t = name ? call_table(c, keyspace, name) : NULL;
    if (!t) return -1;
    if (t->status == SCHEMA_DELETING) return 0;
    if (!active_table(c, keyspace, name) || !tree_new(c, STMT_DROP_TABLE)) return -1;
    c->statement->drop.name = (struct ast_name){keyspace, name};
    return 0;
}

int op_restore_table(struct call *c) {
    const char *keyspace = call_text(c, "targetKeyspaceName"), *name = call_text(c, "targetTableName");
    const char *from_keyspace = call_text(c, "sourceKeyspaceName"), *from = call_text(c, "sourceTableName");
    const struct doc *moment = doc_get(c->in, "restoreTimestamp");
    struct ast_other *other = ARENA_NEW(c->arena, struct ast_other);
    if (!keyspace || !name || !from_keyspace || !from || check_new(c, keyspace, name) || !call_space(c, from_keyspace))
        return -1;
    if (!other || !tree_new(c, STMT_RESTORE_TABLE)) return call_nomem(c);
    c->statement->other = other;
    other->restore.table = (struct ast_name){keyspace, name};
    other->restore.from = (struct ast_name){from_keyspace, from};
    if (take_settings(c, &other->restore.props)) return -1;
    if (moment) { /* a number of seconds since 1970 */
        double seconds = moment->kind == DOC_REAL ? moment->real : (double)moment->whole;
        char text[MOMENT_TEXT];
        moment_write(seconds > 0 && seconds < 1e11 ? (int64_t)(seconds * 1000 + 0.5) : 0, text);
        tree_add_prop(c, &other->restore.props, "restore_timestamp", tree_text(c, arena_strdup(c->arena, text)));
    }
    doc_put_text(&c->make, c->out, "restoredTableARN", arn_of_table(c, keyspace, name));
    return 0;
}

/* ---- settings to members ---- */

static void put_member(struct call *c, struct doc *to, const char *name, const struct setting *row, const void *of) {
    const void *v = (const char *)of + row->offset;
    switch (row->kind) {
    case SETTING_KIND_MILLIS:
    case SETTING_KIND_MOMENT: doc_put_moment(&c->make, to, name, *(const int64_t *)v); return;
    case SETTING_KIND_INT:
    case SETTING_KIND_WHOLE: doc_put_whole(&c->make, to, name, *(const int64_t *)v); return;
    case SETTING_KIND_NUMBER: doc_put_real(&c->make, to, name, *(const double *)v); return;
    case SETTING_KIND_TEXT: doc_put_text(&c->make, to, name, *(const char *const *)v); return;
    default: break;
    }
    if (strcmp(row->words, "true|false") == 0) {
        doc_put_flag(&c->make, to, name, *(const bool *)v);
        return;
    }
    char *text = arena_strdup(c->arena, setting_text(row, of, c->arena));
    for (char *p = text; p && *p; p++) *p = (char)toupper((unsigned char)*p);
    doc_put_text(&c->make, to, name, text);
    c->make.failed = c->make.failed || !text;
}

/* Puts the settings of these bits that are given, each where its path leads. */
static void put(struct call *c, struct doc *to, const struct setting *rows, uint32_t n, uint64_t bits, const void *of) {
    for (uint32_t i = 0; i < n; i++) {
        struct doc *in = to;
        const char *name = rows[i].api;
        if (!name || !(*(const uint64_t *)of & bits & UINT64_C(1) << i)) continue;
        for (const char *dot; in && (dot = strchr(name, '.')); name = dot + 1) {
            const char *group = (const char *)arena_dup(c->arena, slice_of(name, (size_t)(dot - name))).p;
            struct doc *d = group ? (struct doc *)doc_get(in, group) : NULL;
            in = d ? d : doc_put(&c->make, in, group, DOC_MAP);
        }
        put_member(c, in, name, &rows[i], of);
    }
}

static void put_status(struct call *c, struct doc *to, const struct schema_table *t) {
    struct doc *warm = (struct doc *)doc_get(to, "warmThroughputSpecification");
    doc_put_text(&c->make, warm, "status", t->status == SCHEMA_UPDATING ? "UPDATING" : "AVAILABLE");
}

static int put_settings(struct call *c, const struct schema_table *t) {
    struct table_settings s;
    struct table_capacity k;
    uint64_t only_if_on = SETTING_BIT(ttl) | SETTING_BIT(client_side_timestamps);
    if (catalog_settings(c->o->catalog, t, c->region, c->arena, &s)) return call_nomem(c);
    catalog_capacity(c->o->catalog, t, &k);
    s.given &= ~only_if_on;
    if (schema_has_ttl(t)) SETTING_SET(&s, ttl, true);
    if (schema_has_client_timestamps(t)) SETTING_SET(&s, client_side_timestamps, true);
    s.given |= SETTING_BIT(comment) | SETTING_BIT(default_time_to_live);
    SETTING_SET(&s, warm_read_units, k.warm[READ_CAPACITY]);
    SETTING_SET(&s, warm_write_units, k.warm[WRITE_CAPACITY]);
    put(c, c->out, setting_rows, SETTINGS, ~SETTING_BIT(propagate_tags), &s);
    put_status(c, c->out, t);
    uint64_t bits = setting_group(SETTING_BIT(throughput_mode)) | setting_group(SETTING_BIT(warm_read_units));
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const struct region_settings *own = settings_find_region(&s, ks->regions[i].name);
        struct table_settings there = s;
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        if (own && own->given) there.read_capacity_units = own->read_capacity_units;
        doc_put_text(&c->make, one, "region", ks->regions[i].name);
        doc_put_text(&c->make, one, "status", schema_status_name(schema_replica_status(ks, t, &ks->regions[i])));
        put(c, one, setting_rows, SETTINGS, bits, &there);
        put_status(c, one, t);
    }
    return 0;
}

/* Auto scaling that is not given is disabled. A policy shows all its members. */
static void put_policy(struct call *c, struct doc *to, const char *name, const struct scaling_settings *s) {
    struct scaling_settings all = *s;
    uint64_t bounds = SCALING_BIT(minimum_units) | SCALING_BIT(maximum_units);
    bool has_policy = s->given & SCALING_BIT(target_value);
    all.given = SCALING_BIT(autoscaling_disabled) | (has_policy ? ~bounds : 0) | (s->given & bounds);
    put(c, doc_put(&c->make, to, name, DOC_MAP), scaling_rows, SCALING_SETTINGS, ~SCALING_TARGET, &all);
}

/* ---- descriptions ---- */

static void put_names(struct call *c, const struct schema_table *t) {
    doc_put_text(&c->make, c->out, "keyspaceName", t->keyspace->name);
    doc_put_text(&c->make, c->out, "tableName", t->name);
    doc_put_text(&c->make, c->out, "resourceArn", arn_of_table(c, t->keyspace->name, t->name));
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
    return t->keyspace->is_system ? 0 : put_settings(c, t);
}

int op_get_table_auto_scaling_settings(struct call *c) {
    const struct schema_table *t = asked_table(c);
    if (!t) return -1;
    if (t->settings.throughput_mode != PROVISIONED)
        return call_fail(c, API_ValidationException,
                         "Auto scaling is for tables of provisioned capacity; %s.%s is on-demand.", t->keyspace->name,
                         t->name);
    put_names(c, t);
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    const struct table_settings *s = &t->settings;
    struct doc *spec = doc_put(&c->make, c->out, "autoScalingSpecification", DOC_MAP);
    put_policy(c, spec, "writeCapacityAutoScaling", &s->scaling[WRITE_CAPACITY]);
    put_policy(c, spec, "readCapacityAutoScaling", &s->scaling[READ_CAPACITY]);
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const struct region_settings *own = settings_find_region(s, ks->regions[i].name);
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "region", ks->regions[i].name);
        put_policy(c, doc_put(&c->make, one, "autoScalingSpecification", DOC_MAP), "readCapacityAutoScaling",
                    own ? &own->scaling[READ_CAPACITY] : &settings_defaults(true)->scaling[READ_CAPACITY]);
    }
    return 0;
}

int op_list_tables(struct call *c) {
    const struct schema_space *space = call_space(c, call_text(c, "keyspaceName"));
    struct result_page p;
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
