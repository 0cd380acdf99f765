/* ALTER TABLE: dropping, re-adding and renaming columns. */
#include <stdlib.h>

#include "system_schema/ddl/apply.h"

/* ---- dropped columns that are added again ---- */

static const struct schema_dropped *dropped_of(const struct schema_table *t, const char *name) {
    for (uint32_t i = t->n_dropped; i > 0; i--)
        if (strcmp(t->dropped[i - 1].name, name) == 0) return &t->dropped[i - 1];
    return NULL;
}

/* True if the bytes of every value of old are a valid value of t
 * (AbstractType.isSerializationCompatibleWith). */
static bool serializes_as(const struct cql_type *t, const struct cql_type *old) {
    if (cql_type_eq(t, old)) return true;
    if (t->id == CQL_TEXT) return old->id == CQL_ASCII;
    if (t->id == CQL_BLOB)
        return old->id == CQL_ASCII || old->id == CQL_TEXT || old->id == CQL_COMPOSITE ||
               old->id == CQL_DYNAMIC_COMPOSITE;
    if (t->id == CQL_BIGINT || t->id == CQL_TIMESTAMP) return old->id == CQL_BIGINT || old->id == CQL_TIMESTAMP;
    return t->id == CQL_LIST && old->id == CQL_LIST && t->frozen == old->frozen &&
           serializes_as(t->args[0], old->args[0]);
}

int catalog_check_comes_back(const struct schema_table *t, const struct catalog_column *col, bool cassandra_mode,
                             struct arena *a, struct err *e) {
    static const char *const kinds[] = {[COLUMN_STATIC] = "STATIC", [COLUMN_REGULAR] = "REGULAR"};
    const struct schema_dropped *old = dropped_of(t, col->name);
    if (!old) return 0;
    const struct cql_type *was = cql_type_parse(a, slice_str(old->type), NULL, NULL, NULL, e);
    if (!was) return -1;
    if (!serializes_as(col->type, was)) {
        struct buf text;
        buf_init(&text, 4096);
        cql_type_print(col->type, &text);
        buf_u8(&text, 0);
        ddl_error(e, cassandra_mode, DDL_RE_ADDED_TYPE, col->name, buf_failed(&text) ? "..." : (const char *)text.p,
                  old->type);
        buf_fini(&text);
        return -1;
    }
    if (col->type->id == CQL_COUNTER)
        return ddl_error(e, cassandra_mode, DDL_RE_ADDED_COUNTER, col->name);
    if (col->kind == old->kind) return 0;
    return ddl_error(e, cassandra_mode, DDL_RE_ADDED_KIND, col->name, kinds[col->kind], kinds[old->kind]);
}

int64_t apply_column_id(struct apply *a, const struct schema_table *t, const struct catalog_column *col,
                        struct table_parts *parts) {
    const struct schema_dropped *old = dropped_of(t, col->name);
    if (!old) return parts->n_column_ids++;
    bool cassandra = a->objects->mode == MODE_CASSANDRA;
    return catalog_check_comes_back(t, col, cassandra, &a->arena, a->err) ? -1 : (int64_t)old->id;
}

/* ---- added columns ---- */

int catalog_check_added(const struct schema_table *t, const struct catalog_column *col, bool cassandra_mode,
                        struct err *e) {
    if (schema_column_find(t, col->name)) return ddl_error(e, cassandra_mode, DDL_ADDED_EXISTS, col->name);
    if (col->kind != COLUMN_STATIC || t->n_clustering) return 0;
    return ddl_error(e, cassandra_mode, DDL_STATIC_USELESS);
}

/* ---- dropped columns ---- */

/* Replaces user types, which may be dropped later, by tuples. */
static const struct cql_type *without_names(struct apply *a, const struct cql_type *t) {
    if (t->n_args == 0 || cql_type_is_custom(t)) return t;
    const struct cql_type **args = ARENA_ARRAY(&a->arena, t->n_args, const struct cql_type *);
    if (!args) return err_null(err_nomem(a->err));
    for (uint32_t i = 0; i < t->n_args; i++)
        if (!(args[i] = without_names(a, t->args[i]))) return NULL;
    return cql_type_new(&a->arena, t->id == CQL_UDT ? CQL_TUPLE : t->id, t->frozen, args, t->n_args, t->dimension,
                        a->err);
}

static int by_id(const void *a, const void *b) {
    uint32_t x = ((const struct schema_dropped *)a)->id, y = ((const struct schema_dropped *)b)->id;
    return (x > y) - (x < y);
}

/* Records the drop; it replaces an earlier drop of the same column. */
static int note(struct apply *a, const struct schema_column *col, struct schema_dropped *all, uint32_t *n) {
    uint32_t at = 0;
    while (at < *n && all[at].id != col->id) at++;
    int64_t when = a->change->drop_us == ENG_NO_TS ? eng_write_us(a->objects->eng, clock_wall_us(a->objects->clock))
                                                   : a->change->drop_us;
    if (at == *n) ++*n;
    else if (all[at].dropped_us > when) when = all[at].dropped_us; /* cells that an earlier drop deleted stay deleted */
    const struct cql_type *plain = without_names(a, col->type);
    struct buf text;
    if (!plain) return -1;
    buf_init(&text, 0);
    cql_type_print_stored(plain, &text);
    const char *type = buf_failed(&text) ? NULL : (const char *)arena_dup(&a->arena, buf_slice(&text)).p;
    buf_fini(&text);
    all[at] = (struct schema_dropped){
        .name = col->name, .type = type, .kind = col->kind, .id = col->id, .dropped_us = when};
    return type ? 0 : err_nomem(a->err);
}

static int check_drop(struct apply *a, const struct schema_table *t, const struct schema_column *col,
                      const char *name) {
    const struct catalog_change *ch = a->change;
    if (!col) return apply_error(a, DDL_DROPPED_UNKNOWN, name, t->name, ch->keyspace);
    if (schema_column_is_key(col)) return apply_error(a, DDL_DROPPED_KEY, name);
    if (col->type->id == CQL_UDT && !col->type->frozen)
        return apply_error(a, DDL_DROPPED_USER_TYPE, name, col->type->name);
    return 0;
}

int apply_drop_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts) {
    const struct catalog_change *ch = a->change;
    parts->n_dropped = t->n_dropped;
    parts->dropped = t->dropped;
    if (ch->n_drops == 0) return 0;
    struct schema_dropped *all = ARENA_ARRAY(&a->arena, t->n_dropped + ch->n_drops, struct schema_dropped);
    bool *gone = ARENA_ARRAY(&a->arena, t->n_columns, bool);
    uint32_t n = t->n_dropped, kept = 0;
    if (!all || !gone) return err_nomem(a->err);
    if (n) memcpy(all, t->dropped, n * sizeof *all);
    for (uint32_t i = 0; i < ch->n_drops; i++) {
        const struct schema_column *col = schema_column_find(t, ch->drops[i]);
        if (!col && ch->column_conditional) continue;
        if (check_drop(a, t, col, ch->drops[i])) return -1;
        if (!gone[col->ordinal] && note(a, col, all, &n)) return -1;
        gone[col->ordinal] = true;
    }
    qsort(all, n, sizeof *all, by_id);
    for (uint32_t i = 0; i < parts->n_columns; i++)
        if (!gone[i]) parts->columns[kept++] = parts->columns[i];
    parts->n_columns = kept;
    parts->n_dropped = n;
    parts->dropped = all;
    return 0;
}

/* ---- renamed columns ---- */

static struct schema_column *find(struct table_parts *parts, const char *name) {
    for (uint32_t i = 0; i < parts->n_columns; i++)
        if (strcmp(parts->columns[i].name, name) == 0) return &parts->columns[i];
    return NULL;
}

/* Renames the columns one after the other, as Cassandra does; each old name is looked up in the
 * table before the statement. IF EXISTS makes no difference, as in Cassandra. */
int apply_rename_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts) {
    const struct catalog_change *ch = a->change;
    for (uint32_t i = 0; i < ch->n_renames; i++) {
        const char *from = ch->rename_from[i], *to = ch->rename_to[i];
        bool again = false; /* of several renames of a column, the last one counts */
        for (uint32_t k = i + 1; k < ch->n_renames && !again; k++) again = strcmp(ch->rename_from[k], from) == 0;
        if (again) continue;
        const struct schema_column *col = schema_column_find(t, from);
        if (!col) {
            struct buf text;
            buf_init(&text, 4096);
            if (a->objects->mode == MODE_CASSANDRA) cql_identifier_print(from, true, &text);
            else buf_put_str(&text, from); /* 3.11 has no quotes around it */
            buf_u8(&text, 0);
            apply_error(a, DDL_RENAMED_UNKNOWN, buf_failed(&text) ? "..." : (const char *)text.p, t->name,
                        ch->keyspace);
            buf_fini(&text);
            return -1;
        }
        if (!schema_column_is_key(col)) return apply_error(a, DDL_RENAMED_VALUE, from);
        if (schema_column_find(t, to) || find(parts, to))
            return apply_error(a, DDL_RENAMED_EXISTS, from, to, t->name, ch->keyspace);
        find(parts, from)->name = to;
    }
    return 0;
}
