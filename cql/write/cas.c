#include "cql/write/cas.h"

#include <assert.h>
#include <stdlib.h>

#include "cql/request/db.h"

int cas_init(struct cas *c, struct cql_run *r, const struct schema_table *t, bool batch) {
    *c = (struct cas){.r = r, .table = t, .batch = batch};
    c->by_ck.arena = r->arena;
    c->now = r->eval.now_s;
    c->reads = ARENA_ARRAY(r->arena, t->n_columns, bool);
    c->shown = ARENA_ARRAY(r->arena, t->n_columns, const struct schema_column *);
    return c->reads && c->shown ? 0 : err_nomem(r->err);
}

/* ---- collecting ---- */

static struct cas_row *row_at(struct cas *c, struct slice ck) {
    int known = name_tree_put(&c->by_ck, ck, c->n_rows);
    if (known < 0) err_nomem(c->r->err);
    if (known) return known > 0 ? &c->rows[*name_tree_find(&c->by_ck, ck)] : NULL;
    if (c->n_rows == c->capacity) {
        uint32_t capacity = c->capacity ? c->capacity * 2 : 4;
        struct cas_row *rows = ARENA_ARRAY(c->r->arena, capacity, struct cas_row);
        if (!rows) return err_null(err_nomem(c->r->err));
        if (c->n_rows) memcpy(rows, c->rows, c->n_rows * sizeof *rows);
        c->rows = rows;
        c->capacity = capacity;
    }
    c->rows[c->n_rows] = (struct cas_row){.ck = ck};
    return &c->rows[c->n_rows++];
}

static bool is_static(const struct condition *c) { return condition_column(c)->kind == COLUMN_STATIC; }

static bool has_conditions(const struct modify_plan *p, bool statics) {
    for (uint32_t i = 0; i < p->n_conditions; i++)
        if (is_static(p->conditions[i]) == statics) return true;
    return false;
}

/* Adds the conditions on static columns, or those on other columns, to a row. Each is bound at
 * once, so that a batch with several faults fails with the first statement's. */
static int add_conditions(struct cas *c, const struct modify_plan *p, struct cas_row *row, bool statics) {
    if (!row) return -1;
    if (row->must_exist || row->must_not_exist)
        return err_invalid(c->r->err, "Cannot mix IF conditions and IF NOT EXISTS for the same row");
    uint32_t n = row->n_conditions + p->n_conditions;
    if (n > row->capacity) {
        uint32_t capacity = 2 * row->capacity > n ? 2 * row->capacity : n;
        struct bound_condition *all = ARENA_ARRAY(c->r->arena, capacity, struct bound_condition);
        if (!all) return err_nomem(c->r->err);
        if (row->n_conditions) memcpy(all, row->conditions, row->n_conditions * sizeof *all);
        row->conditions = all;
        row->capacity = capacity;
    }
    for (uint32_t i = 0; i < p->n_conditions; i++) {
        if (is_static(p->conditions[i]) != statics) continue;
        struct bound_condition *b = &row->conditions[row->n_conditions++];
        *b = (struct bound_condition){.condition = p->conditions[i]};
        if (condition_bind(c->r, b)) return -1;
        const struct schema_column *col = condition_column(p->conditions[i]);
        if (!c->reads[col->ordinal]) c->shown[c->n_shown++] = col;
        c->reads[col->ordinal] = true;
    }
    return 0;
}

int cas_add(struct cas *c, const struct modify_write *w) {
    const struct modify_plan *p = w->plan;
    bool whole_partition = p->where && p->where->rows == WHERE_ALL_ROWS && p->table->n_clustering; /* names no row */
    c->writes_rows = c->writes_rows || !(p->static_only || whole_partition);
    if (!p->conditional) return 0;
    c->conditional = true;
    c->writes_statics = c->writes_statics || p->n_static_ops;
    if (p->if_exists || p->if_not_exists) {
        c->shows_all = true;
        struct cas_row *row = p->static_only ? &c->statics : row_at(c, w->keys[0].ck);
        if (!row) return -1;
        if (row->n_conditions)
            return err_invalid(c->r->err, "Cannot mix IF conditions and IF %sEXISTS for the same row",
                               p->if_not_exists ? "NOT " : "");
        if (p->if_not_exists ? row->must_exist : row->must_not_exist)
            return err_invalid(c->r->err, "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row");
        row->must_exist = !p->if_not_exists;
        row->must_not_exist = p->if_not_exists;
        return 0;
    }
    /* A statement with conditions on static columns alone does not have its row read. */
    if (has_conditions(p, false) && add_conditions(c, p, row_at(c, w->keys[0].ck), false)) return -1;
    return has_conditions(p, true) ? add_conditions(c, p, &c->statics, true) : 0;
}

int cas_check_elements(struct cas *c) {
    for (uint32_t i = 0; i <= c->n_rows; i++) {
        const struct cas_row *row = i ? &c->rows[i - 1] : &c->statics;
        for (uint32_t k = 0; k < row->n_conditions; k++)
            if (condition_check_element(c->r, &row->conditions[k])) return -1;
    }
    return 0;
}

/* ---- reading ---- */

static int by_key(const void *a, const void *b) {
    return slice_cmp(((const struct cas_row *)a)->ck, ((const struct cas_row *)b)->ck);
}

/* A row without a row marker exists only when one of the columns that are read has a value. */
static bool is_there(const struct cas *c, const struct eng_row *row) {
    if (row->kind == ENG_ROW && row->live_ts != ENG_NO_TS) return true;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct schema_column *col = schema_column_by_id(c->table, row->cells[i].column);
        if (col && c->reads[col->ordinal]) return true;
    }
    return false;
}

static int read_row(struct cas *c, enum eng_row_kind kind, struct cas_row *to) {
    struct eng_row *row;
    struct slice ck = kind == ENG_STATIC ? slice_of("", 0) : to->ck;
    int rc = mutation_read(c->r, c->m, kind, ck, c->now, &row);
    if (rc < 0) return rc;
    to->read = true;
    to->newest_ts = row->newest_ts;
    to->stored = rc ? row : NULL;
    to->row = rc && is_there(c, row) ? row : NULL;
    return 0;
}

static int read_rows(struct cas *c) {
    const struct schema_table *t = c->table;
    bool reads_statics = false;
    int rc = 0;
    /* Adds all columns of the kinds that are written: static ones when a conditional statement
     * writes any, others when any statement does. They distinguish an absent row from a row of
     * nulls. */
    for (uint32_t i = t->n_partition_key + t->n_clustering; i < t->n_columns; i++) {
        bool is_static = t->columns[i].kind == COLUMN_STATIC;
        c->reads[i] = c->reads[i] || (is_static ? c->writes_statics : c->writes_rows);
        reads_statics = reads_statics || (is_static && c->reads[i]);
    }
    if (reads_statics) rc = read_row(c, ENG_STATIC, &c->statics);
    if (!rc && c->n_rows == 0) {
        /* With conditions on static columns alone, the first row shows whether the partition exists. An
         * event loop does not scan, so this is done on a worker. */
        struct cql_run *r = c->r;
        if (!r->blocking) return ENG_INCOMPLETE;
        struct eng_scan_spec spec = {.part = c->part, .table = c->part->table, .rows = true, .now = c->now};
        struct eng_scan *scan = eng_scan_open(r->db->options.eng, ENG_TIER_ANY, &spec, r->cost, r->err);
        if (!scan) return -1;
        struct eng_item item;
        do rc = eng_scan_next(scan, &item, r->err);
        while (rc == 1 && (item.kind != ENG_ITEM_ROW || !is_there(c, item.row)));
        struct slice ck = {0};
        if (rc == 1) {
            ck = arena_dup(r->arena, item.row->ck);
            if (!ck.p) rc = err_nomem(r->err);
        }
        eng_scan_close(scan);
        if (rc <= 0) return rc;
        struct cas_row *row = row_at(c, ck);
        if (!row) return -1;
        struct eng_row *full = ARENA_NEW(r->arena, struct eng_row);
        if (!full) return err_nomem(r->err);
        rc = eng_row_get(r->db->options.eng, ENG_TIER_ANY, c->part, ENG_ROW, ck, c->now, r->arena, full, r->cost,
                         r->err);
        row->row = rc == 1 ? full : NULL;
        row->newest_ts = full->newest_ts;
        row->read = true;
        return rc < 0 ? -1 : 0;
    }
    if (!rc) qsort(c->rows, c->n_rows, sizeof *c->rows, by_key);
    for (uint32_t i = 0; !rc && i < c->n_rows; i++) rc = read_row(c, ENG_ROW, &c->rows[i]);
    return rc;
}

static int holds(struct cas *c, const struct cas_row *row) {
    if (row->must_exist && !row->row) return 0;
    if (row->must_not_exist && row->row) return 0;
    for (uint32_t i = 0; i < row->n_conditions; i++) {
        int rc = condition_match(&row->conditions[i], c->r, row->row);
        if (rc != 1) return rc;
    }
    return 1;
}

int cas_check(struct cas *c, struct mutation *m) {
    assert(mutation_is_locked(c->r, m));
    c->m = m;
    c->part = &m->part;
    if (!c->conditional) return 1;
    int rc = read_rows(c);
    if (rc) return rc;
    rc = holds(c, &c->statics);
    for (uint32_t i = 0; rc == 1 && i < c->n_rows; i++) rc = holds(c, &c->rows[i]);
    if (rc) return rc;
    /* The first false condition decides; the other rows are only marked because they are charged. */
    for (uint32_t i = 0; i <= c->n_rows; i++) {
        struct cas_row *row = i ? &c->rows[i - 1] : &c->statics;
        row->is_false = holds(c, row) == 0;
        err_clear(c->r->err);
    }
    return 0;
}

/* For use after read_rows, which sorts the rows. */
static struct cas_row *find_row(const struct cas *c, struct slice ck) {
    const struct cas_row wanted = {.ck = ck};
    return c->n_rows ? bsearch(&wanted, c->rows, c->n_rows, sizeof wanted, by_key) : NULL;
}

/* ---- what a refusal costs ---- */

static const struct eng_row *charge_once(struct cas_row *row) {
    const struct eng_row *stored = row->charged ? NULL : row->stored;
    row->charged = true;
    return stored;
}

int cas_refused(struct cas *c, const struct modify_write *w, const struct eng_row **row,
                const struct eng_row **statics) {
    const struct modify_plan *p = w->plan;
    bool exists = p->if_exists || p->if_not_exists;
    bool of_statics = p->static_only ? exists || has_conditions(p, true) : has_conditions(p, true);
    struct cas_row *known = !p->static_only && w->n_keys ? find_row(c, w->keys[0].ck) : NULL;
    bool row_conditions = known && (exists || has_conditions(p, false));
    bool is_false = (row_conditions && known->is_false) || (of_statics && c->statics.is_false);
    *row = *statics = NULL;
    if (!is_false) return 0;
    if (row_conditions && known->charged && (!of_statics || c->statics.charged)) return 0;
    if (of_statics) *statics = charge_once(&c->statics);
    if (row_conditions) *row = charge_once(known);
    if (row_conditions || p->static_only || !w->n_keys) return 1;
    /* With conditions on static columns alone, the row was not read yet. */
    struct cas_row unread = {.ck = w->keys[0].ck};
    int rc = read_row(c, ENG_ROW, &unread);
    *row = unread.stored;
    return rc ? rc : 1;
}

/* ---- the newest timestamp ---- */

/* Reads the row when no condition did. */
static int raise_newest(const struct cas *c, const struct cas_row *known, enum eng_row_kind kind, struct slice ck,
                        int64_t *newest) {
    struct eng_row row;
    int64_t ts = known ? known->newest_ts : ENG_NO_TS;
    if (!known || !known->read) {
        int rc = mutation_get(c->r, c->m, kind, ck, c->now, c->r->arena, &row, NULL);
        if (rc < 0) return rc;
        ts = row.newest_ts;
    }
    if (ts > *newest) *newest = ts;
    return 0;
}

int cas_newest(const struct cas *c, const struct modify_write *w, int64_t *newest) {
    int rc = w->plan->n_static_ops ? raise_newest(c, &c->statics, ENG_STATIC, slice_of("", 0), newest) : 0;
    for (uint32_t k = 0; !rc && k < w->n_keys; k++)
        rc = raise_newest(c, find_row(c, w->keys[k].ck), ENG_ROW, w->keys[k].ck, newest);
    return rc;
}

/* ---- the answer ---- */

static int begin(struct cas *c, const struct schema_column *const *columns, uint32_t n) {
    struct result_meta *meta = ARENA_NEW(c->r->arena, struct result_meta);
    struct result_column *cols = ARENA_ARRAY(c->r->arena, (size_t)n + 1, struct result_column);
    if (!meta || !cols) return err_nomem(c->r->err);
    const char *keyspace = c->table->keyspace->name, *table = c->table->name;
    cols[0] = (struct result_column){.keyspace = keyspace, .table = table, .name = "[applied]",
                                     .type = cql_type_scalar(CQL_BOOLEAN)};
    for (uint32_t i = 0; i < n; i++)
        cols[i + 1] = (struct result_column){.keyspace = keyspace, .table = table, .name = columns[i]->name,
                                             .type = columns[i]->type};
    *meta = (struct result_meta){.n = n + 1, .columns = cols, .always = true};
    c->r->answer.result = (struct cql_result){.kind = RESULT_ROWS, .meta = meta};
    return c->r->sink->begin(c->r->sink, meta);
}

static int put_row(struct cas *c, const struct row_view *v, const struct schema_column *const *columns, uint32_t n,
                   struct value *out) {
    static const uint8_t refused;
    out[0] = value_of(&refused, 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct schema_column *col = columns[i];
        out[i + 1] = schema_column_is_key(col) || c->reads[col->ordinal] ? v->values[col->ordinal] : value_null();
    }
    return row_sink_row(c->r->sink, out);
}

int cas_answer_alone(struct cas *c, bool applied) {
    const uint8_t flag = applied;
    const struct value v = value_of(&flag, 1);
    return begin(c, NULL, 0) || row_sink_row(c->r->sink, &v) ? -1 : 0;
}

int cas_answer(struct cas *c, bool applied) {
    const struct schema_table *t = c->table;
    bool any = c->statics.row != NULL;
    for (uint32_t i = 0; i < c->n_rows; i++) any = any || c->rows[i].row;
    if (applied || !any) return cas_answer_alone(c, applied);
    const struct schema_column **columns = ARENA_ARRAY(c->r->arena, 2 * (size_t)t->n_columns + 1,
                                                       const struct schema_column *);
    if (!columns) return err_nomem(c->r->err);
    /* The columns of a refusal: all after IF [NOT] EXISTS, else those of the conditions in the
     * order of the statements; in a batch the keys come before them. */
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (c->shows_all || (c->batch && schema_column_is_key(&t->columns[i]))) columns[n++] = &t->columns[i];
    for (uint32_t i = 0; !c->shows_all && i < c->n_shown; i++) columns[n++] = c->shown[i];
    if (begin(c, columns, n)) return -1;
    struct arena *a = c->r->arena;
    struct value *out = ARENA_ARRAY(a, (size_t)n + 1, struct value);
    bool *shown = ARENA_ARRAY(a, t->n_columns, bool);
    for (uint32_t i = 0; shown && i < n; i++) shown[columns[i]->ordinal] = true;
    const struct row_view_layout *layout = shown ? row_view_layout_new(t, shown, a) : NULL;
    struct row_view v;
    if (!out || !layout) return err_nomem(c->r->err);
    if (row_view_init(&v, layout, 1, a, c->r->err) || row_view_partition(&v, c->part->key, c->statics.row, c->r->err))
        return -1;
    bool any_row = false;
    for (uint32_t i = 0; i < c->n_rows; i++) {
        if (!c->rows[i].row) continue;
        any_row = true;
        if (row_view_row(&v, c->rows[i].row, c->r->err) || put_row(c, &v, columns, n, out)) return -1;
    }
    if (any_row) return 0;
    return row_view_row(&v, NULL, c->r->err) || put_row(c, &v, columns, n, out) ? -1 : 0;
}
