/* Builds the system keyspaces, once, from system_table.def. */
#include "system_schema/system_tables/system_table.h"
#include "system_schema/objects/object_kind.h"

#include <stdio.h>

#include "base/murmur3.h"

enum {
    V3 = 1, C3 = 2, V40 = 4, V41 = 8, V50 = 16, KEYSPACES = 32,
    V41_TO = V41 | V50, V4_TO = V40 | V41_TO, C3_V4_TO = C3 | V4_TO, ALL = V3 | V4_TO,
};

struct system_table {
    int releases;
    const char *keyspace, *table;
    struct schema_virtual virt;
    int64_t gc_grace;
    const char *comment, *columns;
};

static const struct system_table tables[] = {
#define SYSTEM_TABLE(releases, keyspace, table, from, gc_grace, comment, columns) \
    {releases, keyspace, table, {.yield = yield_##from}, gc_grace, comment, columns},
#define SYSTEM_TABLE_ORDERED(releases, keyspace, table, from, gc_grace, comment, columns) \
    {releases, keyspace, table, {.yield = yield_##from, .ordered = true}, gc_grace, comment, columns},
#define SYSTEM_TABLE_ERASED(releases, keyspace, table, name, ordered_, comment, columns) \
    {releases, keyspace, table,  {.yield = yield_##name, .write = write_##name, .erased = true, .ordered = ordered_}, \
     0,        comment,  columns},
#define SYSTEM_TABLE_WRITTEN(releases, keyspace, table, name, blocks_, comment, columns) \
    {releases, keyspace, table,  {.yield = yield_##name, .write = write_##name, .blocks = blocks_}, \
     0,        comment,  columns},
#define SYSTEM_TABLE_STORED(releases, keyspace, table, from, gc_grace, comment, columns) \
    {releases, keyspace, table, {.yield = yield_##from, .blocks = true}, gc_grace, comment, columns},
#include "system_schema/system_tables/system_table.def"
#undef SYSTEM_TABLE
#undef SYSTEM_TABLE_ORDERED
#undef SYSTEM_TABLE_ERASED
#undef SYSTEM_TABLE_WRITTEN
#undef SYSTEM_TABLE_STORED
};

YIELDS(none) {
    (void)ro;
    return 0;
}

/* Refuses INSERT and UPDATE. The rows of system.peers show the server's present state, so a deletion has
 * no effect, as if the rows came back at once. */
static int refuse_values(const struct virtual_context *ctx, const struct schema_table *t,
                         const struct virtual_change *change) {
    if (change->kind != VIRTUAL_INSERT && change->kind != VIRTUAL_UPDATE) return 0;
    return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", t->keyspace->name);
}

WRITES(peers) { return refuse_values(ctx, table, change); }
static int emit_prepared(void *arg, const struct virtual_prepared *p) {
    struct row_out *ro = arg;
    row_bytes(ro, "prepared_id", p->id);
    row_text(ro, "logged_keyspace", p->keyspace);
    row_text(ro, "query_string", p->query);
    return row_out_emit(ro);
}

YIELDS(prepared_statements) {
    if (!ro->ctx->each_prepared) return 0;
    bool behind = ro->ctx->after && ro->ctx->after[0].n == 16;
    return ro->ctx->each_prepared(ro->ctx->prepared, behind ? ro->ctx->after[0].p : NULL, emit_prepared, ro);
}

WRITES(prepared_statements) {
    if (refuse_values(ctx, table, change)) return -1;
    const struct slice id = change->kind == VIRTUAL_TRUNCATE ? slice_of(NULL, 0) : value_slice(change->values[0]);
    if (ctx->unlist_prepared) ctx->unlist_prepared(ctx->prepared, change->kind == VIRTUAL_TRUNCATE ? NULL : &id);
    return 0;
}

static uint32_t count_columns(const char *spec) {
    uint32_t n = 1;
    int depth = 0;
    for (const char *p = spec; *p; p++) {
        depth += (*p == '<') - (*p == '>');
        n += *p == ',' && depth == 0;
    }
    return n;
}

static bool cut_suffix(struct slice *s, const char *suffix) {
    size_t n = strlen(suffix);
    if (s->n < n || memcmp(s->p + s->n - n, suffix, n) != 0) return false;
    s->n -= n;
    return true;
}

/* "name type [pk|ck]" */
static int make_column(struct arena *a, struct slice spec, struct schema_column *col, uint32_t positions[2],
                       struct err *e) {
    col->kind = cut_suffix(&spec, " pk")   ? COLUMN_PARTITION_KEY
                : cut_suffix(&spec, " ck") ? COLUMN_CLUSTERING
                                           : COLUMN_REGULAR;
    const uint8_t *space = memchr(spec.p, ' ', spec.n);
    struct slice name = arena_dup(a, slice_of(spec.p, (size_t)(space - spec.p)));
    if (!name.p) return err_nomem(e);
    col->name = (const char *)name.p;
    if (col->kind != COLUMN_REGULAR) col->position = positions[col->kind]++;
    col->type = cql_type_parse(a, slice_of(space + 1, spec.n - name.n - 1), NULL, NULL, NULL, e);
    return col->type ? 0 : -1;
}

static int make_columns(struct arena *a, const char *spec, struct table_parts *parts, struct err *e) {
    uint32_t positions[2] = {0}, i = 0;
    int depth = 0;
    const char *start = spec;
    for (const char *p = spec;; p++) {
        depth += (*p == '<') - (*p == '>');
        if (*p && (*p != ',' || depth)) continue;
        if (make_column(a, slice_of(start, (size_t)(p - start)), &parts->columns[i], positions, e)) return -1;
        parts->columns[i].id = i;
        i++;
        if (!*p) return 0;
        start = p + 1 + strspn(p + 1, " ");
    }
}

static bool is_table(const struct system_table *r, const char *keyspace, const char *name) {
    return !strcmp(r->keyspace, keyspace) && !strcmp(r->table, name);
}

static void set_options(const struct system_table *r, struct table_settings *s) {
    bool flushed = strcmp(r->keyspace, "system_traces") && strcmp(r->keyspace, "system_distributed") &&
                   strcmp(r->keyspace, "system_auth");
    SETTING_SET(s, comment, r->comment);
    SETTING_SET(s, gc_grace_seconds, r->gc_grace);
    SETTING_SET(s, memtable_flush_period_in_ms, flushed ? 3600000 : 0);
#define SYSTEM_TTL(keyspace, table, seconds) \
    if (is_table(r, keyspace, table)) SETTING_SET(s, default_time_to_live, seconds);
#define SYSTEM_COMPACTION(keyspace, table, class, ...) \
    if (is_table(r, keyspace, table)) { \
        static const struct schema_option options[] = {{"class", "org.apache.cassandra.db.compaction." class}, \
                                                       __VA_ARGS__}; \
        SETTING_SET(s, compaction, ((struct setting_map){ARRAY_LEN(options), options})); \
    }
#include "system_schema/system_tables/system_option.def"
#undef SYSTEM_TTL
#undef SYSTEM_COMPACTION
}

static struct schema_table *make_table(struct arena *a, const struct system_table *r, const struct schema_keyspace *ks,
                                       struct err *e) {
    struct schema_table *t = ARENA_NEW(a, struct schema_table);
    uint32_t n = count_columns(r->columns);
    struct table_parts parts = {
        .name = r->table, .n_columns = n, .n_column_ids = n, .settings = *settings_defaults(true)};
    parts.columns = ARENA_ARRAY(a, n, struct schema_column);
    if (!t || !parts.columns) return err_null(err_nomem(e));
    set_options(r, &parts.settings);
    if (make_columns(a, r->columns, &parts, e) || table_assemble(a, &parts, t, e)) return NULL;
    /* The id derives from the name, so that it is the same on every node and after every start (a
     * UUID of version 3, as in Cassandra). */
    for (int i = 0; i < 2; i++) {
        char text[128];
        int length = snprintf(text, sizeof text, "%s.%s.%d", r->keyspace, r->table, i);
        store_u64(t->id + 8 * i, murmur3_hash(slice_of(text, (size_t)length)));
    }
    t->id[6] = (uint8_t)((t->id[6] & 0x0f) | 0x30);
    t->id[8] = (uint8_t)((t->id[8] & 0x3f) | 0x80);
    t->keyspace = ks;
    t->status = SCHEMA_ACTIVE;
    t->virt = &r->virt;
    return t;
}

/* Keyspaces replicates its system keyspaces as any other. In cassandra mode those of the node itself have
 * LocalStrategy. */
static struct space *make_keyspace(struct arena *a, const struct system_table *all, size_t n_all, const char *name,
                                   int release, bool lists_own, struct err *e) {
    bool own = strcmp(name, "system_metering") == 0 || strcmp(name, "system_schema_mcs") == 0 ||
               strcmp(name, "system_control") == 0;
    struct schema_keyspace *ks = ARENA_NEW(a, struct schema_keyspace);
    struct schema_option *replication = ARENA_ARRAY(a, 2, struct schema_option);
    if (!ks || !replication) return err_null(err_nomem(e));
    replication[0] = (struct schema_option){"class", "org.apache.cassandra.locator.SimpleStrategy"};
    bool local = !(release & KEYSPACES) && (strcmp(name, "system") == 0 || strcmp(name, "system_schema") == 0);
    if (local) replication[0].value = "org.apache.cassandra.locator.LocalStrategy";
    const char *factor = release & KEYSPACES || strcmp(name, "system_distributed") == 0 ? "3"
                         : strcmp(name, "system_traces") == 0                           ? "2"
                                                                                        : "1";
    replication[1] = (struct schema_option){"replication_factor", factor};
    *ks = (struct schema_keyspace){.name = name, .durable_writes = true, .is_system = true, .status = SCHEMA_ACTIVE};
    ks->unlisted = own && !lists_own && !(release & KEYSPACES);
    ks->n_replication = local ? 1 : 2;
    ks->replication = replication;
    struct space *space = space_new(0, ks, NULL, e);
    for (size_t i = 0; space && i < n_all; i++) {
        if (strcmp(all[i].keyspace, name) != 0 || !(all[i].releases & release)) continue;
        const struct schema_table *t = make_table(a, &all[i], ks, e);
        if (t && tables_edit(&space->space.tables, NULL, t, e) == 0) continue;
        space_unref(space);
        return NULL;
    }
    return space;
}

/* Lists the tables of system_table.def and those of the layers above. */
static struct system_table *all_tables(struct system_tables *s, uint32_t n_more, const struct virtual_table *more,
                                       struct arena *a, size_t *n) {
    struct system_table *all = ARENA_ARRAY(a, ARRAY_LEN(tables) + n_more, struct system_table);
    if (!all) return NULL;
    memcpy(all, tables, sizeof tables);
    *n = ARRAY_LEN(tables);
    /* Clients may write rows of the node's own tables only in keyspaces mode, and delete them
     * only in cassandra mode. */
    for (size_t i = 0; i < *n; i++) {
        struct schema_virtual *virt = &all[i].virt;
        virt->owner = s;
        if (strcmp(all[i].keyspace, "system") != 0 || virt->erased == (s->catalog->objects->mode == MODE_CASSANDRA))
            continue;
        virt->write = NULL;
        virt->erased = false;
    }
    for (uint32_t i = 0; i < n_more; i++) {
        const struct virtual_table *t = &more[i];
        all[(*n)++] = (struct system_table){.releases = ALL,
                                            .keyspace = t->keyspace,
                                            .table = t->name,
                                            .virt = t->virt,
                                            .gc_grace = t->gc_grace,
                                            .comment = t->comment,
                                            .columns = t->columns};
    }
    return all;
}

int system_tables_build(struct system_tables *s, uint32_t n_more, const struct virtual_table *more, struct arena *a,
                        struct err *e) {
    struct objects *o = s->catalog->objects;
    /* The flags of the tables that this mode and the reported release show. */
    const char *v = s->node.info.release_version;
    int mode = o->mode == MODE_KEYSPACES ? KEYSPACES : 0;
    int release = strncmp(v, "4.0", 3) == 0                  ? V40 | mode
                  : *v == '4'                                ? V41 | mode
                  : *v >= '1' && *v <= '3' && v[1] == '.'    ? V3 | (mode ? mode : C3)
                                                             : V50 | mode;
    size_t n;
    const struct system_table *all = all_tables(s, n_more, more, a, &n);
    if (!all || !(o->system = ARENA_ARRAY(a, n, struct space *))) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        bool control = strcmp(all[i].keyspace, "system_control") == 0;
        bool seen = !(all[i].releases & release) || (control && !o->has_control);
        for (uint32_t j = 0; j < o->n_system && !seen; j++)
            seen = strcmp(o->system[j]->space.keyspace->name, all[i].keyspace) == 0;
        if (seen) continue;
        struct space *space = make_keyspace(a, all, n, all[i].keyspace, release, o->lists_own, e);
        if (!space) return -1;
        o->system[o->n_system++] = space;
    }
    return 0;
}
