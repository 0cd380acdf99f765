/* One execution of a write: attributes, partitions and rows from the request's values. */
#include "cql/request/db.h"
#include "cql/write/modify.h"
#include "cql/row/row_key.h"

enum { TTL_MAX = 20 * 365 * 24 * 3600 };

void modify_begin(struct modify_write *w, struct cql_run *r, const struct modify_plan *p, const struct value *values,
                  uint32_t n_values) {
    enum size_model model = r->cost->size_model;
    /* An UPDATE leaves the row's marker, whose TTL the current size model counts. */
    bool keeps_ttl = p->kind == OP_UPDATE && model == SIZE_CURRENT && !p->has_ttl;
    bool unset = false;
    for (uint32_t i = 0; i < n_values; i++) unset |= value_is_unset(values[i]);
    *w = (struct modify_write){.r = r, .plan = p, .whole = p->whole && !keeps_ttl && !unset, .now = r->eval.now_s};
    w->rule = size_rule_of(model, p->table->n_columns);
}

/* Returns 1, 0 if none is given, or -1 on error. */
static int given_timestamp(struct cql_run *r, const struct term *t, int64_t *out) {
    struct value v;
    if (!t) return 0;
    if (term_eval(t, &r->eval, &v)) return -1;
    if (value_is_unset(v)) return 0;
    if (value_is_null(v)) return err_invalid(r->err, "Invalid null value of timestamp");
    if (v.n != 8) return err_invalid(r->err, "Invalid timestamp value: (empty)");
    *out = (int64_t)load_u64(v.p);
    return 1;
}

int modify_check_timestamp(struct cql_run *r, const struct modify_plan *p) {
    int64_t ignored;
    return given_timestamp(r, p->timestamp, &ignored) < 0 ? -1 : 0;
}

int modify_timestamp(struct cql_run *r, const struct term *t, int64_t *out) {
    int rc = given_timestamp(r, t, out);
    if (rc <= 0) return rc;
    if (*out == INT64_MIN)
        return err_invalid(r->err, "Out of bound timestamp, must be in [%lld, %lld]", (long long)-INT64_MAX,
                           (long long)INT64_MAX);
    return 1;
}

void modify_order(struct modify_write *w, bool conditional, int64_t ts) {
    if (conditional || w->plan->counter) w->ts = ts;
    /* Cassandra applies the deletion of one row to the batch's other writes before it separates the
     * timestamps, so it wins. */
    bool of_row = w->plan->kind == OP_DELETE && w->plan->n_ops == 0 && w->rows_by_key && w->plan->table->n_clustering;
    w->deletion_ts = conditional && !of_row ? w->ts - 1 : w->ts;
}

/* ---- keys ---- */

int modify_bind(struct modify_write *w) {
    struct cql_run *r = w->r;
    const struct modify_plan *p = w->plan;
    if (p->json && modify_json_values(r, p, &w->json)) return -1;
    if (p->where) {
        struct where_keys keys;
        if (where_key_values(p->where, &r->eval, &keys)) return -1;
        return where_parts(p->where, &r->eval, &keys, true, &w->parts, &w->n_parts) ? -1 : 0;
    }
    if (p->json) {
        w->key_values = w->json;
    } else {
        uint32_t n = p->table->n_partition_key + (p->static_only ? 0 : p->table->n_clustering);
        struct value *values = arena_alloc(r->arena, n * sizeof *values);
        if (!values) return err_nomem(r->err);
        for (uint32_t i = 0; i < n; i++)
            if (term_eval(p->keys[i], &r->eval, &values[i])) return -1;
        w->key_values = values;
    }
    w->parts = arena_alloc(r->arena, sizeof *w->parts);
    if (!w->parts) return err_nomem(r->err);
    w->n_parts = 1;
    return row_key_partition(p->table, w->key_values, r->arena, w->parts, r->err);
}

int modify_bind_rows(struct modify_write *w) {
    const struct modify_plan *p = w->plan;
    w->rows_by_key = !p->where || p->static_only || p->where->rows == WHERE_ROW_KEYS;
    if (p->static_only) return 0;
    if (!p->where) {
        const struct schema_table *t = p->table;
        const struct value *values = w->key_values + t->n_partition_key;
        w->keys = arena_alloc(w->r->arena, sizeof *w->keys);
        if (!w->keys) return err_nomem(w->r->err);
        w->n_keys = 1;
        return row_key_clustering(t, values, t->n_clustering, w->r->arena, w->keys, w->r->err);
    }
    if (w->rows_by_key) return where_row_keys(p->where, &w->r->eval, &w->keys, &w->n_keys);
    if (p->n_ops) return err_invalid(w->r->err, "Range deletions are not supported for specific columns");
    return where_slices(p->where, &w->r->eval, &w->slices, &w->n_slices);
}

int modify_bind_times(struct modify_write *w, struct modify_times *times) {
    struct cql_run *r = w->r;
    const struct modify_plan *p = w->plan;
    int64_t given = times->batch;
    if (given == ENG_NO_TS && !p->server_times) given = times->protocol;
    if (modify_timestamp(r, p->timestamp, &given) < 0) return -1;
    if (given == ENG_NO_TS) { /* the write clock is read once for all statements of a batch */
        if (times->server == ENG_NO_TS) times->server = eng_write_us(r->db->options.eng, r->now_us);
        given = times->server;
    }
    w->ts = w->deletion_ts = given;
    bool empty_in = p->where && !p->static_only && w->rows_by_key && !w->n_keys;
    if (empty_in || p->kind == OP_DELETE || p->counter) return 0;
    struct value v = {.n = VALUE_UNSET};
    if (p->ttl && term_eval(p->ttl, &r->eval, &v)) return -1;
    w->ttl = value_is_unset(v) ? p->table->settings.default_time_to_live : 0;
    if (!value_is_null(v)) {
        if (v.n != 4) return err_invalid(r->err, "Invalid TTL value: (empty)");
        w->ttl = (int32_t)load_u32(v.p);
    }
    if (w->ttl < 0) return err_invalid(r->err, "A TTL must be greater or equal to 0, but was %d", w->ttl);
    if (w->ttl > TTL_MAX) return err_invalid(r->err, "ttl is too large. requested (%d) maximum (%d)", w->ttl, TTL_MAX);
    return 0;
}
