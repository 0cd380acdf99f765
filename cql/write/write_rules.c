#include "cql/write/write_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "keyspaces/quota.h"
#include "metering/size/size.h"

/* ---- batches ---- */

static struct compat compat_of_batch(const struct cql_run *r, enum ast_batch_kind kind,
                                     const struct cql_statement *first) {
    static const char *const words[] = {[BATCH_LOGGED] = "BEGIN BATCH", [BATCH_UNLOGGED] = "BEGIN UNLOGGED BATCH",
                                        [BATCH_COUNTER] = "BEGIN COUNTER BATCH"};
    struct compat k = compat_in(r, &first->compat);
    k.statement = slice_str(words[kind]);
    return k;
}

int write_rules_batch(struct cql_run *r, enum ast_batch_kind kind, const struct write_item *items, uint32_t n) {
    bool logged = kind == BATCH_LOGGED;
    uint32_t most = logged ? QUOTA_LOGGED_STATEMENTS : QUOTA_UNLOGGED_STATEMENTS;
    if (LIKELY(!write_rules_on(r))) return 0;
    struct compat k = compat_of_batch(r, kind, items[0].statement);
    if (kind == BATCH_COUNTER && compat_refuse(&k, REFUSE_COUNTER_BATCH, r->err)) return -1;
    if (n > most && (logged ? compat_refuse(&k, REFUSE_LOGGED_STATEMENTS, r->err, (int)n, (int)most)
                            : compat_refuse(&k, REFUSE_UNLOGGED_STATEMENTS, r->err, (int)most)))
        return -1;
    bool writes_statics = false;
    for (uint32_t i = 0; i < n && !writes_statics; i++) {
        const struct modify_plan *p = modify_plan_of(items[i].statement);
        writes_statics = p->n_static_ops || p->static_only;
    }
    bool many_statics = logged && n > QUOTA_LOGGED_STATIC && writes_statics;
    if (many_statics && compat_refuse(&k, REFUSE_LOGGED_STATIC, r->err, (int)n, QUOTA_LOGGED_STATIC)) return -1;
    uint32_t first = modify_plan_of(items[0].statement)->table->object;
    for (uint32_t i = 0; i < n; i++) {
        const struct modify_plan *p = modify_plan_of(items[i].statement);
        struct compat of = compat_in(r, &items[i].statement->compat);
        if (!logged && p->table->object != first && compat_refuse(&of, REFUSE_UNLOGGED_TABLES, r->err)) return -1;
        if (!logged && p->conditional && compat_refuse(&of, REFUSE_BATCH_CONDITION, r->err)) return -1;
        /* IN does not count as a range; another rule limits it. */
        bool range = p->where && !p->static_only && p->where->rows != WHERE_ROW_KEYS;
        if (logged && range && compat_refuse(&of, REFUSE_BATCH_RANGE, r->err)) return -1;
    }
    return 0;
}

/* ---- one row twice ---- */

struct address {
    uint32_t table;
    bool is_static;
    struct slice key, ck;
    uint32_t item;
};

static int by_address(const void *a, const void *b) {
    const struct address *x = a, *y = b;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    if (x->is_static != y->is_static) return x->is_static ? -1 : 1;
    int c = slice_cmp(x->key, y->key);
    return c ? c : slice_cmp(x->ck, y->ck);
}

int write_rules_rows(struct cql_run *r, const struct write_item *items, const struct modify_write *writes,
                     uint32_t n) {
    if (LIKELY(!write_rules_on(r))) return 0;
    struct address *all = ARENA_ARRAY(r->arena, n + 1, struct address);
    if (!all) return err_nomem(r->err);
    for (uint32_t i = 0; i < n; i++) {
        const struct modify_write *w = &writes[i];
        bool row = w->rows_by_key && w->n_keys && !w->plan->static_only;
        all[i] = (struct address){.table = w->plan->table->object, .is_static = !row,
                                  .key = w->n_parts ? w->parts[0].key : slice_of("", 0),
                                  .ck = row ? w->keys[0].ck : slice_of("", 0),
                                  .item = i};
    }
    qsort(all, n, sizeof *all, by_address);
    for (uint32_t i = 1; i < n; i++) {
        struct compat k = compat_in(r, &items[all[i].item].statement->compat);
        if (by_address(&all[i - 1], &all[i]) == 0 && compat_refuse(&k, REFUSE_BATCH_SAME_ROW, r->err)) return -1;
    }
    return 0;
}

/* ---- values ---- */

/* Whether v is or contains a varint beyond 10 to the power QUOTA_VARINT_DIGITS. The recursion is as
 * deep as the type. */
static bool holds_beyond_varint(const struct cql_type *t, struct value v) {
    struct cql_elems parts;
    struct value part;
    if (v.n <= 0 || !cql_type_contains(t, CQL_VARINT)) return false;
    if (t->id == CQL_VARINT) { /* in two's complement */
        __int128 number = v.p[0] & 0x80 ? -1 : 0, most = 1;
        size_t from = 0, n = (size_t)v.n;
        while (n - from > sizeof number && v.p[from] == (uint8_t)number) from++;
        if (n - from > sizeof number) return true;
        for (size_t i = from; i < n; i++) number = (__int128)((unsigned __int128)number << 8 | v.p[i]);
        if (from && (number < 0) != !!(v.p[0] & 0x80)) return true;
        for (int i = 0; i < QUOTA_VARINT_DIGITS; i++) most *= 10;
        return number > most || number < -most;
    }
    if (t->id == CQL_VECTOR || cql_elems_open(t, value_slice(v), &parts)) return false;
    for (uint32_t i = 0; cql_elems_next(&parts, &part); i++) {
        const struct cql_type *of = t->args[t->id == CQL_MAP ? i % 2 : cql_type_is_collection(t) ? 0 : i];
        if (holds_beyond_varint(of, part)) return true;
    }
    return false;
}

static int check_value(const struct modify_write *w, const struct cql_type *t, struct value v, struct compat *k) {
    return holds_beyond_varint(t, v) ? compat_refuse(k, REFUSE_VARINT, w->r->err) : 0;
}

static int check_term(const struct modify_write *w, const struct cql_type *t, const struct term *term,
                      struct compat *k) {
    struct value v;
    if (!term || !cql_type_contains(t, CQL_VARINT)) return 0;
    return term_eval(term, &w->r->eval, &v) ? -1 : check_value(w, t, v, k);
}

static int check_key_varints(const struct modify_write *w, struct compat *k) {
    const struct schema_table *t = w->plan->table;
    const struct schema_column *clustering = t->columns + t->n_partition_key;
    bool in_partition = false, in_clustering = false;
    for (uint32_t i = 0; i < t->n_partition_key; i++)
        in_partition = in_partition || cql_type_contains(t->columns[i].type, CQL_VARINT);
    for (uint32_t i = 0; i < t->n_clustering; i++)
        in_clustering = in_clustering || cql_type_contains(clustering[i].type, CQL_VARINT);
    if (!in_partition && !in_clustering) return 0;
    struct value *values = ARENA_ARRAY(w->r->arena, t->n_columns, struct value);
    if (!values) return err_nomem(w->r->err);
    for (uint32_t i = 0; i < w->n_parts; i++) {
        if (row_key_split(t, w->parts[i].key, values, w->r->err)) return -1;
        for (uint32_t c = 0; c < t->n_partition_key; c++)
            if (check_value(w, t->columns[c].type, values[c], k)) return -1;
    }
    for (uint32_t i = 0; in_clustering && i < w->n_keys; i++) {
        if (row_key_decode(t, w->keys[i].ck, w->keys[i].image, w->r->arena, values, w->r->err)) return -1;
        for (uint32_t c = 0; c < t->n_clustering; c++)
            if (check_value(w, clustering[c].type, values[c], k)) return -1;
    }
    return 0;
}

int write_rules_bound(const struct cql_statement *s, const struct modify_write *w, int64_t server_ts) {
    if (LIKELY(!write_rules_on(w->r))) return 0;
    struct compat k = compat_in(w->r, &s->compat);
    int64_t earliest = w->r->now_us - (int64_t)QUOTA_TIMESTAMP_PAST_SECONDS * 1000000,
            latest = w->r->now_us + (int64_t)QUOTA_TIMESTAMP_AHEAD_SECONDS * 1000000;
    if (!w->plan->server_times && w->ts != server_ts && (w->ts > latest || w->ts < earliest)) {
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, w->ts);
        if (compat_refuse(&k, REFUSE_TIMESTAMP_WINDOW, w->r->err, text)) return -1;
    }
    enum { AROUND_COMPONENT = 3 }; /* a serialised key of several columns has a length and an end byte for each */
    uint32_t n = w->plan->table->n_partition_key;
    for (uint32_t i = 0; i < w->n_parts; i++) {
        size_t bytes = w->parts[i].key.n - (n > 1 ? AROUND_COMPONENT * n : 0);
        if (bytes <= QUOTA_PARTITION_KEY_BYTES) continue;
        if (compat_refuse(&k, REFUSE_PARTITION_KEY_BYTES, w->r->err, (int)bytes, QUOTA_PARTITION_KEY_BYTES)) return -1;
    }
    /* The values that are written and the map keys they are written under, not those deleted. */
    for (uint32_t i = 0; i < w->plan->n_ops; i++) {
        const struct modify_op *op = &w->plan->ops[i];
        const struct cql_type *t = op->column->type;
        if (op->kind >= MODIFY_DELETE || op->kind == MODIFY_SUBTRACT) continue;
        if (w->json && check_value(w, t, w->json[op->column->ordinal], &k)) return -1;
        if (!w->json && op->kind == MODIFY_PUT && check_term(w, t->args[0], op->element, &k)) return -1;
        if (!w->json && op->kind != MODIFY_COUNT && check_term(w, op->value_type, op->value, &k)) return -1;
    }
    if (check_key_varints(w, &k)) return -1;
    for (uint32_t i = 0; i < w->n_keys; i++) {
        size_t bytes = w->keys[i].bytes;
        if (bytes <= QUOTA_CLUSTERING_KEY_BYTES) continue;
        if (compat_refuse(&k, REFUSE_CLUSTERING_KEY_BYTES, w->r->err, (int)bytes, QUOTA_CLUSTERING_KEY_BYTES))
            return -1;
    }
    return 0;
}

/* ---- sizes ---- */

int write_rules_sized(struct cql_run *r, const struct compat *k) {
    if (LIKELY(!write_rules_on(r))) return 0;
    for (const struct op_write *c = r->cost->writes; c; c = c->next) {
        if (c->kind == OP_DELETE) continue;
        struct compat of = compat_in(r, k);
        compat_is_of(&of, c->item.keyspace, c->item.table);
        bool found = c->image.known == IMAGE_FOUND;
        const struct size_sum row_after = found ? c->image.row : size_row_without_nulls(&c->row);
        const struct size_sum statics_after = found ? c->image.statics : size_statics_without_nulls(&c->statics);
        uint64_t row = c->has_row ? size_storage_bytes(r->cost->size_model, &row_after) : 0;
        uint64_t statics = c->has_static ? statics_after.bytes : 0;
        int row_shown = row > INT32_MAX ? INT32_MAX : (int)row; /* the error texts take an int */
        int statics_shown = statics > INT32_MAX ? INT32_MAX : (int)statics;
        if (row > QUOTA_ROW_BYTES && compat_refuse(&of, REFUSE_ROW_BYTES, r->err, row_shown, QUOTA_ROW_BYTES))
            return -1;
        if (statics > QUOTA_STATIC_BYTES &&
            compat_refuse(&of, REFUSE_STATIC_BYTES, r->err, statics_shown, QUOTA_STATIC_BYTES))
            return -1;
    }
    return 0;
}

/* ---- sizes, in both modes ---- */

enum { UNLOGGED_PARTITIONS_WARN = 10, TABLE_NAMES_MAX = 900 };
/* Cassandra's batch_size_warn_threshold, batch_size_fail_threshold and bytes per partition. */
enum { SIZE_WARN = 5 * 1024, SIZE_FAIL = 50 * 1024, DATA_PARTITION = 29 };

/* Cassandra's max_mutation_size for one partition; and a limit for all together, which Cassandra
 * does not have: an IN over many partitions writes its values to each. */
enum { MUTATION_MAX = 16 << 20, WRITE_MAX = 4 * MUTATION_MAX };

int check_write_size(const struct mutations *m) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= m->n; i++) {
        bool whole = i == m->n;
        uint64_t bytes = whole ? sum : m->list[i].data_bytes;
        int most = whole ? WRITE_MAX : MUTATION_MAX;
        const struct schema_table *t = m->list[whole ? 0 : i].table;
        if (bytes > (uint64_t)most)
            return err_invalid(m->r->err, "Rejected an oversized mutation (%llu/%d) for keyspace: %s. Top keys are: %s",
                               (unsigned long long)bytes, most, t->keyspace->name, t->name);
        sum += bytes;
    }
    return 0;
}

int check_batch_size(const struct mutations *m, enum ast_batch_kind kind, bool conditional) {
    struct cql_run *r = m->r;
    /* Keyspaces has other limits: write_rules.h */
    if (conditional || r->db->options.mode != MODE_CASSANDRA) return 0;
    if (m->n <= 1) return 0;
    char names[TABLE_NAMES_MAX] = ""; /* each table once: "ks.t, ks.u" */
    size_t used = 0;
    uint32_t n_tables = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct schema_table *t = m->list[i].table;
        if (i && m->list[i - 1].table == t) continue;
        n_tables++;
        int len = snprintf(names + used, TABLE_NAMES_MAX - used, "%s%s.%s", used ? ", " : "", t->keyspace->name,
                           t->name);
        if (len > 0 && used + (size_t)len < TABLE_NAMES_MAX) used += (size_t)len;
        else names[used] = '\0';
    }
    uint64_t size = (uint64_t)m->n * DATA_PARTITION;
    for (uint32_t i = 0; i < m->n; i++) size += m->list[i].data_bytes;
    if (size > SIZE_FAIL) return err_invalid(r->err, "Batch too large");
    if (size > SIZE_WARN &&
        cql_warn(r, "Batch for [%s] is of size %llu, exceeding specified threshold of %d by %llu.", names,
                 (unsigned long long)size, SIZE_WARN, (unsigned long long)(size - SIZE_WARN)))
        return -1;
    if (kind != BATCH_UNLOGGED || m->n <= UNLOGGED_PARTITIONS_WARN) return 0;
    return cql_warn(r,
                    "Unlogged batch covering %u partitions detected against table%s [%s]. You should use a logged "
                    "batch for atomicity, or "
                    "asynchronous writes for performance.",
                    m->n, n_tables == 1 ? "" : "s", names);
}
