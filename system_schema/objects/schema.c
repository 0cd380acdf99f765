#include "system_schema/objects/schema.h"

#include <stdio.h>
#include <stdlib.h>

const char *schema_status_name(enum schema_status s) {
    static const char *const names[] = {
#define STATUS(id, text, verb) [SCHEMA_##id] = text,
#include "system_schema/objects/status.def"
#undef STATUS
    };
    return names[s];
}

const char *schema_status_verb(enum schema_status s) {
    static const char *const verbs[] = {
#define STATUS(id, text, verb) [SCHEMA_##id] = verb,
#include "system_schema/objects/status.def"
#undef STATUS
    };
    return verbs[s];
}

/* Finds a keyspace of any status, also DELETING. */
static const struct schema_space *any_space(const struct schema *s, const char *name) {
    uint32_t from = 0, to = s->n_spaces;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        int c = strcmp(s->spaces[mid]->keyspace->name, name);
        if (c == 0) return s->spaces[mid];
        if (c < 0) from = mid + 1;
        else to = mid;
    }
    return NULL;
}

const struct schema_space *schema_space_find(const struct schema *s, const char *name) {
    const struct schema_space *space = any_space(s, name);
    return space && space->keyspace->status != SCHEMA_DELETING ? space : NULL;
}

bool schema_keyspace_is_deleting(const struct schema *s, const char *name) {
    const struct schema_space *space = any_space(s, name);
    return space && space->keyspace->status == SCHEMA_DELETING;
}

const struct schema_keyspace *schema_keyspace_find(const struct schema *s, const char *name) {
    const struct schema_space *space = schema_space_find(s, name);
    return space ? space->keyspace : NULL;
}

const struct schema_table *schema_table_any(const struct schema *s, const char *keyspace, const char *name) {
    const struct schema_space *space = schema_space_find(s, keyspace);
    return space ? schema_tables_find(&space->tables, name) : NULL;
}

/* In cassandra mode the error texts are those of Schema.validateTable (5.0). Keyspaces names a
 * keyspace or table that is missing or not ready "unconfigured" (reference: system keyspaces and
 * asynchronous DDL). */
const struct schema_table *schema_table_find(const struct schema *s, const char *keyspace, const char *name,
                                             struct err *e) {
    const struct schema_space *space = schema_space_find(s, keyspace);
    const struct schema_keyspace *ks = space ? space->keyspace : NULL;
    if (!ks && !s->has_control && strcmp(keyspace, "system_control") == 0)
        return err_null(err_invalid(e, "system_control is off: it is there when tallyd is started with --control on"));
    if (!ks || ks->status == SCHEMA_CREATING) {
        const char *words = s->cassandra_mode ? "keyspace %s does not exist"
                            : ks              ? "unconfigured keyspace %s"
                                              : "Keyspace %s does not exist";
        (void)err_set(e, ERR_INVALID, words, keyspace);
        return ks ? err_null(err_about(e, keyspace, "")) : NULL;
    }
    const struct schema_table *t = schema_tables_find(&space->tables, name);
    if (t && (t->status == SCHEMA_ACTIVE || t->status == SCHEMA_UPDATING)) return t;
    if (t && t->status == SCHEMA_INACCESSIBLE_ENCRYPTION_CREDENTIALS)
        return err_null(err_invalid(e, "Table '%s' is %s: wait until it is ACTIVE", name,
                                    schema_status_name(t->status)));
    if (s->cassandra_mode) err_invalid(e, "table %s does not exist", name);
    else err_invalid(e, "unconfigured table %s.%s", keyspace, name);
    return t ? err_null(err_about(e, keyspace, name)) : NULL;
}

/* Compares the first two bytes inline, because most names differ early and the call of strcmp costs
 * more. */
static inline int compare_names(const char *a, const char *b) {
    if (a[0] != b[0] || !a[0]) return (int8_t)a[0] - (int8_t)b[0];
    if (a[1] != b[1] || !a[1]) return (uint8_t)a[1] - (uint8_t)b[1];
    return strcmp(a + 2, b + 2);
}

int schema_column_names_compare(const char *a, const char *b) { return compare_names(a, b); }

static const struct schema_column *column_among(const struct schema_column *columns, uint32_t n, const char *name) {
    uint32_t from = 0, to = n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        int c = compare_names(columns[mid].name, name);
        if (c == 0) return &columns[mid];
        if (c < 0) from = mid + 1;
        else to = mid;
    }
    return NULL;
}

/* Columns are sorted: key columns in the order of the key, then static columns by name, then the
 * others by name (schema_column_names_compare). */
const struct schema_column *schema_column_find(const struct schema_table *t, const char *name) {
    uint32_t n_key = t->n_partition_key + t->n_clustering;
    for (uint32_t i = 0; i < n_key; i++)
        if (compare_names(t->columns[i].name, name) == 0) return &t->columns[i];
    const struct schema_column *found = column_among(t->columns + n_key, t->n_static, name);
    return found ? found : column_among(t->columns + n_key + t->n_static, t->n_columns - n_key - t->n_static, name);
}

const struct schema_column *schema_column_by_id(const struct schema_table *t, uint32_t id) {
    if (id >= t->n_column_ids || t->column_ordinals[id] == UINT32_MAX) return NULL;
    return &t->columns[t->column_ordinals[id]];
}

const struct schema_type *schema_type_any(const struct schema *s, const char *keyspace, const char *name) {
    const struct schema_space *space = schema_space_find(s, keyspace);
    uint32_t from = 0, to = space ? space->n_types : 0;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (strcmp(space->types[mid]->type->name, name) < 0) from = mid + 1;
        else to = mid;
    }
    bool there = space && from < space->n_types && strcmp(space->types[from]->type->name, name) == 0;
    return there && space->types[from]->status != SCHEMA_DELETING ? space->types[from] : NULL;
}

const struct schema_type *schema_type_find(const struct schema *s, const char *keyspace, const char *name) {
    const struct schema_type *t = schema_type_any(s, keyspace, name);
    return t && (t->status == SCHEMA_ACTIVE || t->status == SCHEMA_UPDATING) ? t : NULL;
}

bool schema_system_is_replicated(const char *keyspace) {
    return strcmp(keyspace, "system_auth") == 0 || strcmp(keyspace, "system_distributed") == 0 ||
           strcmp(keyspace, "system_traces") == 0;
}

/* The tables of a multi-Region keyspace always have client-side timestamps
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/multiRegion-replication.html). */
bool schema_has_client_timestamps(const struct schema_table *t) {
    return t->settings.client_side_timestamps || (t->keyspace && schema_regions(t->keyspace) > 1);
}

int64_t schema_gc_grace(const struct schema_table *t, enum tally_mode mode) {
    enum { TEN_DAYS = 864000 };
    return mode == MODE_KEYSPACES ? TEN_DAYS : t->settings.gc_grace_seconds;
}

uint16_t schema_regions(const struct schema_keyspace *ks) {
    uint16_t n = 0;
    bool named = false;
    for (uint32_t i = 0; i < ks->n_replication; i++) {
        const struct schema_option *o = &ks->replication[i];
        if (strcmp(o->name, "class") == 0) named = strstr(o->value, "NetworkTopologyStrategy") != NULL;
        else n += strcmp(o->value, "0") != 0;
    }
    return named && n ? n : 1;
}

enum schema_status schema_region_status(const struct schema_keyspace *ks, const struct schema_region *region) {
    return region->is_new ? SCHEMA_CREATING : ks->status;
}

enum schema_status schema_replica_status(const struct schema_keyspace *ks, const struct schema_table *t,
                                         const struct schema_region *region) {
    return region->is_new && t->object > ks->replicated ? SCHEMA_CREATING : t->status;
}

void schema_replication_progress(const struct schema_space *space, char out[SCHEMA_PROGRESS_TEXT]) {
    static const struct schema_region new = {.is_new = true};
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    uint64_t n = 0, active = 0;
    for (const struct schema_table *t; (t = schema_tables_next(&at)); n++)
        active += schema_status_is_listed(schema_replica_status(space->keyspace, t, &new));
    uint32_t hundredths = n ? (uint32_t)(active * 10000 / n) : 10000;
    int digits = snprintf(out, SCHEMA_PROGRESS_TEXT, "%u", hundredths / 100 % 1000);
    if (hundredths % 100) digits += snprintf(out + digits, SCHEMA_PROGRESS_TEXT - digits, ".%02u", hundredths % 100);
    snprintf(out + digits, (size_t)(SCHEMA_PROGRESS_TEXT - digits), "%%");
}

/* ---- users of a user type ---- */

/* True if t is the named user type or contains it, without looking into other user types. */
static bool names_type(const struct cql_type *t, const char *name) {
    if (t->id == CQL_UDT) return strcmp(t->name, name) == 0;
    bool names = false;
    for (uint32_t i = 0; i < t->n_args && !names; i++) names = names_type(t->args[i], name);
    return names;
}

int32_t type_nesting(const struct cql_type *t) {
    int32_t deepest = 0;
    for (uint32_t i = 0; i < t->n_args; i++) {
        int32_t inner = type_nesting(t->args[i]);
        deepest = inner > deepest ? inner : deepest;
    }
    return deepest + (t->id == CQL_UDT);
}

int type_users_find(const struct schema_space *space, const char *name, struct arena *a, struct type_users *out) {
    *out = (struct type_users){.tables = ARENA_ARRAY(a, space->tables.n + 1, const char *),
                               .parents = ARENA_ARRAY(a, space->n_types + 1, const char *)};
    if (!out->tables || !out->parents) return -1;
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        bool uses = false;
        for (uint32_t i = 0; i < t->n_columns && !uses; i++) uses = names_type(t->columns[i].type, name);
        if (uses) out->tables[out->n_tables++] = t->name;
    }
    for (uint32_t i = 0; i < space->n_types; i++) {
        const struct cql_type *parent = space->types[i]->type;
        bool uses = false;
        for (uint32_t k = 0; k < parent->n_args && !uses; k++) uses = names_type(parent->args[k], name);
        if (uses && space->types[i]->status != SCHEMA_DELETING) out->parents[out->n_parents++] = parent->name;
    }
    return 0;
}
