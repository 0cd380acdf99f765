/* Tables. The form has version 2 if columns were dropped, else version 1. Version 3, with masks of
 * columns, is read, too: its masks are left out.
 *
 *   version u8 | id 16 | created_ms u64 | ids given uvarint |
 *   columns uvarint, each: name | type as CQL | kind u8 | position uvarint | desc u8 | id uvarint |
 *   options |
 *   from version 2: dropped columns uvarint, by id, each:
 *       name | type as CQL | kind u8 | id uvarint | dropped_us u64 |
 */
#include <stdlib.h>

#include "system_schema/objects/objects.h"
#include "system_schema/objects/snapshot.h"

enum { FORM_VERSION = 1, FORM_WITH_DROPPED = 2, FORM_WITH_MASKS = 3 };

static int column_order(const void *pa, const void *pb) {
    const struct schema_column *a = pa, *b = pb;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (schema_column_is_key(a)) return (a->position > b->position) - (a->position < b->position);
    return schema_column_names_compare(a->name, b->name);
}

int table_assemble(struct arena *a, const struct table_parts *parts, struct schema_table *out, struct err *e) {
    uint32_t *ordinals = ARENA_ARRAY(a, parts->n_column_ids ? parts->n_column_ids : 1, uint32_t);
    if (!ordinals) return err_nomem(e);
    for (uint32_t i = 0; i < parts->n_column_ids; i++) ordinals[i] = UINT32_MAX;
    qsort(parts->columns, parts->n_columns, sizeof *parts->columns, column_order);
    for (uint32_t i = 0; i < parts->n_columns; i++) {
        if (parts->columns[i].id >= parts->n_column_ids)
            return err_set(e, ERR_SERVER, "damaged schema of table %s", parts->name);
        parts->columns[i].ordinal = i;
        ordinals[parts->columns[i].id] = i;
    }
    out->name = parts->name;
    out->n_columns = parts->n_columns;
    out->columns = parts->columns;
    out->n_column_ids = parts->n_column_ids;
    out->column_ordinals = ordinals;
    out->n_dropped = parts->n_dropped;
    out->dropped = parts->dropped;
    out->lacks_dropped = false;
    for (uint32_t i = 0; i < parts->n_dropped; i++) {
        if (parts->dropped[i].id >= parts->n_column_ids)
            return err_set(e, ERR_SERVER, "damaged schema of table %s", parts->name);
        if (ordinals[parts->dropped[i].id] == UINT32_MAX) out->lacks_dropped = true;
    }
    out->settings = parts->settings;
    uint32_t counts[4] = {0};
    for (uint32_t i = 0; i < out->n_columns; i++) {
        counts[out->columns[i].kind]++;
        if (out->columns[i].type->id == CQL_COUNTER) out->is_counter = true;
    }
    out->n_partition_key = counts[COLUMN_PARTITION_KEY];
    out->n_clustering = counts[COLUMN_CLUSTERING];
    out->n_static = counts[COLUMN_STATIC];
    out->n_regular = counts[COLUMN_REGULAR];
    const struct cql_type **key_types = ARENA_ARRAY(a, out->n_partition_key + 1, const struct cql_type *);
    if (!key_types) return err_nomem(e);
    for (uint32_t i = 0; i < out->n_partition_key; i++) key_types[i] = out->columns[i].type;
    out->key_types = key_types;
    return 0;
}

/* ---- the form ---- */

static void encode(const void *definition, struct buf *out) {
    const struct schema_table *t = definition;
    buf_u8(out, t->n_dropped ? FORM_WITH_DROPPED : FORM_VERSION);
    buf_put(out, t->id, sizeof t->id);
    buf_u64(out, (uint64_t)t->created_ms);
    buf_uvarint(out, t->n_column_ids);
    buf_uvarint(out, t->n_columns);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *col = &t->columns[i];
        form_put_text(out, col->name);
        form_put_type(out, col->type);
        buf_u8(out, (uint8_t)col->kind);
        buf_uvarint(out, col->position);
        buf_u8(out, col->desc);
        buf_uvarint(out, col->id);
    }
    form_put_settings(out, &t->settings);
    if (t->n_dropped) buf_uvarint(out, t->n_dropped);
    for (uint32_t i = 0; i < t->n_dropped; i++) {
        const struct schema_dropped *d = &t->dropped[i];
        form_put_text(out, d->name);
        form_put_text(out, d->type);
        buf_u8(out, (uint8_t)d->kind);
        buf_uvarint(out, d->id);
        buf_u64(out, (uint64_t)d->dropped_us);
    }
}

static int get_dropped(struct rd *rd, struct arena *a, struct table_parts *parts, struct err *e) {
    uint64_t n = rd_uvarint(rd);
    if (n > DEFINITION_COLUMNS_MAX || n > rd_left(rd)) rd->bad = true;
    struct schema_dropped *all = rd->bad ? NULL : ARENA_ARRAY(a, n + 1, struct schema_dropped);
    if (!all && !rd->bad) return err_nomem(e);
    for (uint64_t i = 0; i < n && !rd->bad; i++) {
        struct schema_dropped *d = &all[i];
        d->name = form_get_text(rd, a, e);
        d->type = form_get_text(rd, a, e);
        uint8_t kind = rd_u8(rd);
        uint64_t id = rd_uvarint(rd);
        d->dropped_us = (int64_t)rd_u64(rd);
        if ((kind != COLUMN_STATIC && kind != COLUMN_REGULAR) || id >= parts->n_column_ids ||
            (i && id <= all[i - 1].id))
            rd->bad = true;
        d->kind = (enum schema_column_kind)kind;
        d->id = (uint32_t)id;
    }
    if (rd->bad) return e->set ? -1 : 0;
    parts->n_dropped = (uint32_t)n;
    parts->dropped = all;
    return 0;
}

/* Version 3 ends with the masks of columns: by column, its index, the function, and arguments of
 * three texts. */
static void skip_masks(struct rd *rd) {
    for (uint64_t n = rd_uvarint(rd); n > 0 && !rd->bad; n--) {
        rd_uvarint(rd);
        rd_bytes(rd, rd_uvarint(rd));
        for (uint64_t texts = 3 * rd_uvarint(rd); texts > 0 && !rd->bad; texts--) rd_bytes(rd, rd_uvarint(rd));
    }
}

static int get_column(struct rd *rd, const struct form_context *at, struct arena *a, struct schema_column *col,
                      struct err *e) {
    col->name = form_get_text(rd, a, e);
    col->type = form_get_type(rd, at, a, e);
    uint8_t kind = rd_u8(rd);
    uint64_t position = rd_uvarint(rd);
    col->desc = rd_u8(rd) != 0;
    uint64_t id = rd_uvarint(rd);
    if (kind > COLUMN_REGULAR || position > DEFINITION_COLUMNS_MAX || id > DEFINITION_COLUMNS_MAX) rd->bad = true;
    if (e->set) return -1;
    if (rd->bad) return 0;
    col->position = (uint32_t)position;
    col->id = (uint32_t)id;
    col->kind = (enum schema_column_kind)kind;
    return 0;
}

/* Checks what reads and writes rely on: a partition key exists, the columns of each key are
 * numbered from 0 without gaps, and no column id occurs twice. */
static bool is_sound(const struct schema_table *t) {
    uint32_t positions[2] = {0};
    if (t->n_partition_key == 0) return false;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *col = &t->columns[i];
        bool key = col->kind == COLUMN_PARTITION_KEY || col->kind == COLUMN_CLUSTERING;
        if (key ? col->position != positions[col->kind]++ : col->position != 0) return false;
        if (t->column_ordinals[col->id] != i) return false; /* an id given twice */
    }
    return true;
}

static int get_table(struct slice form, const struct form_context *at, struct arena *a, struct schema_table *t,
                     struct err *e) {
    struct rd rd = rd_of(form);
    struct table_parts parts = {.name = t->name};
    uint8_t version = rd_u8(&rd);
    struct slice id = rd_bytes(&rd, sizeof t->id);
    if (id.p) memcpy(t->id, id.p, sizeof t->id);
    t->created_ms = (int64_t)rd_u64(&rd);
    uint64_t ids = rd_uvarint(&rd), n = rd_uvarint(&rd);
    if (rd.bad || version < FORM_VERSION || version > FORM_WITH_MASKS || ids > DEFINITION_COLUMNS_MAX || n > ids ||
        n > rd_left(&rd))
        goto damaged;
    parts.n_column_ids = (uint32_t)ids;
    parts.n_columns = (uint32_t)n;
    parts.columns = ARENA_ARRAY(a, n + 1, struct schema_column);
    if (!parts.columns) return err_nomem(e);
    for (uint64_t i = 0; i < n && !rd.bad; i++)
        if (get_column(&rd, at, a, &parts.columns[i], e)) return -1;
    form_get_settings(&rd, a, &parts.settings, e);
    if (version >= FORM_WITH_DROPPED && !rd.bad && get_dropped(&rd, a, &parts, e)) return -1;
    if (version == FORM_WITH_DROPPED && parts.n_dropped == 0) rd.bad = true;
    if (version == FORM_WITH_MASKS) skip_masks(&rd);
    if (rd.bad || rd_left(&rd)) goto damaged;
    if (table_assemble(a, &parts, t, e)) return -1;
    if (is_sound(t)) return 0;
damaged:
    return err_set(e, ERR_SERVER, "the catalogue's record of table %s.%s is damaged", at->keyspace, at->name);
}

static void *decode(struct slice form, const struct form_context *at, struct arena *a, struct err *e) {
    struct schema_table *t = ARENA_NEW(a, struct schema_table);
    if (!t || !(t->name = arena_strdup(a, at->name))) return err_null(err_nomem(e));
    return get_table(form, at, a, t, e) ? NULL : t;
}

static int check(const void *definition, struct err *e) {
    const struct schema_table *t = definition;
    if (t->n_column_ids > DEFINITION_COLUMNS_MAX)
        return err_invalid(e, "A table may have at most %d columns", DEFINITION_COLUMNS_MAX);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        size_t n = strlen(t->columns[i].name);
        if (n > DEFINITION_NAME_MAX)
            return err_invalid(e, "Column names must not be more than %d bytes long (got %zu bytes)",
                               DEFINITION_NAME_MAX, n);
    }
    return 0;
}

static int depend(const void *definition, object_need_fn need, void *arg) {
    const struct schema_table *t = definition;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (form_needs_types(t->columns[i].type, need, arg)) return -1;
    return 0;
}

static bool holds_tuple(const struct cql_type *t) {
    if (t->id == CQL_TUPLE) return true;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (holds_tuple(t->args[i])) return true;
    return false;
}

/* The form of tuples matters in clustering values, and in elements of sets and keys of maps that
 * are stored as separate cells. */
static bool has_old_keys(const void *definition) {
    const struct schema_table *t = definition;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct cql_type *type = t->columns[i].type;
        if (t->columns[i].kind == COLUMN_CLUSTERING && holds_tuple(type)) return true;
        if (cql_type_is_multicell(type) && type->id != CQL_LIST && holds_tuple(type->args[0])) return true;
    }
    return false;
}

/* Compares the properties that compiled statements rely on: the columns. */
static bool same_shape(const void *a, const void *b) {
    const struct schema_table *x = a, *y = b;
    if (x->n_columns != y->n_columns || x->lacks_dropped != y->lacks_dropped) return false;
    for (uint32_t i = 0; i < x->n_columns; i++) {
        const struct schema_column *p = &x->columns[i], *q = &y->columns[i];
        if (p->id != q->id || p->kind != q->kind || p->position != q->position || p->desc != q->desc) return false;
        if (strcmp(p->name, q->name) != 0 || !cql_type_eq(p->type, q->type)) return false;
    }
    return true;
}

static bool is_respelled(const void *definition) {
    const struct schema_table *t = definition;
    return t->settings.respelled;
}

static const struct object_kind *const needs[] = {&type_kind, NULL};

const struct object_kind table_kind = {.word = "table",
                                       .tag = 't',
                                       .in_keyspace = true,
                                       .has_rows = true,
                                       .target = TARGET_TABLE,
                                       .encode = encode,
                                       .decode = decode,
                                       .check = check,
                                       .needs = needs,
                                       .depend = depend,
                                       .has_old_keys = has_old_keys,
                                       .same_shape = same_shape,
                                       .is_respelled = is_respelled,
                                       .show = show_table};
