/* A system table: its function yields rows from memory, and the source keeps some of them, by primary
 * key, so that they can be pulled, and in reverse.
 *
 * The next page continues after the primary key of the last row that was returned. So a row that
 * exists all the time is returned once, whatever other rows are added or removed. The source stops the function of
 * an ordered table when it has enough rows, and calls it again for the rows that follow.
 * The function of another table yields everything for each page, and the source sorts it. Reading
 * is free: a page ends by the rows that it returns. */
#include <assert.h>
#include <stdlib.h>

#include "cql/read/read.h"
#include "cql/read/kept_key.h"
#include "cql/read/select.h"
#include "cql/request/db.h"
#include "system_schema/system_tables/row_out.h"

enum { ROWS_CHUNK = 16 << 10, ROWS_MAX = 64 << 20, ROWS_AT_ONCE = 256 /* of an ordered table */ };

struct virtual_row {
    struct value *values;
    struct slice partition, clustering; /* of the key, as a paging state has it: [int length][bytes] each */
    const struct virtual_source *of;
    size_t arrival;
};

struct virtual_source {
    struct read_source base;
    struct read_spec spec;
    const struct value *key; /* partition key values asked for, or NULL */
    uint32_t n_key;          /* columns of the primary key: the first ones of a row */
    struct arena arena;      /* of rows */
    struct virtual_row *rows;
    size_t n, cap, at;
    bool in_parts;           /* the table yields rows in the order of the result */
    bool loaded, more;       /* more: the function was stopped when the source had enough */
    struct value *after;     /* primary key of the row after which rows begin; NULL means with the first */
    struct value *after_room;
    struct kept_key partition, clustering; /* the same, as in a row */
};

/* ---- order ---- */

/* Compares in the order of the result. */
static int compare_keys(const struct virtual_source *s, const struct value *a, const struct value *b) {
    const struct schema_table *t = s->spec.plan->table;
    for (uint32_t i = 0; i < s->n_key; i++) {
        bool null = value_is_null(a[i]) || value_is_null(b[i]);
        int order = null ? value_is_null(b[i]) - value_is_null(a[i])
                         : cql_value_compare(t->columns[i].type, value_slice(a[i]), value_slice(b[i]));
        bool reversed = s->spec.plan->order.reversed && i >= t->n_partition_key;
        if (order) return (t->columns[i].desc && !null) != reversed ? -order : order;
    }
    return 0;
}

static int by_key(const void *a, const void *b) {
    const struct virtual_row *x = a, *y = b;
    int order = compare_keys(x->of, x->values, y->values);
    return order ? order : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* ---- where rows begin ---- */

static bool read_values(struct slice bytes, const struct schema_column *columns, uint32_t n, struct value *out) {
    struct rd r = rd_of(bytes);
    struct err ignored = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t length = rd_u32(&r);
        bool null = length == UINT32_MAX;
        out[i] = null ? value_null() : value_of_slice(rd_bytes(&r, length));
        if (r.bad || (!null && cql_value_validate(columns[i].type, value_slice(out[i]), &ignored))) return false;
    }
    return rd_left(&r) == 0;
}

/* Returns false if these are no values of the table's primary key. */
static bool begin_after(struct virtual_source *s) {
    const struct schema_table *t = s->spec.plan->table;
    s->after = s->after_room;
    uint32_t n = t->n_partition_key;
    return read_values(s->partition.is, t->columns, n, s->after) &&
           read_values(s->clustering.is, t->columns + n, t->n_clustering, s->after + n);
}

/* ---- loading ---- */

static int too_large(struct virtual_source *s) {
    return err_set(s->spec.r->err, ERR_SERVER, "The system table %s has more than %d MB of rows to be read at once",
                   s->spec.plan->table->name, ROWS_MAX >> 20);
}

static bool put_image(struct virtual_source *s, const struct value *values, uint32_t n, struct slice *out) {
    size_t bytes = 4 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) bytes += values[i].n > 0 ? (size_t)values[i].n : 0;
    uint8_t *p = arena_alloc(&s->arena, bytes + 1);
    if (!p) return false;
    *out = slice_of(p, bytes);
    return values_put(p, p + bytes, values, n) != NULL;
}

static int take_row(void *arg, const struct value *values) {
    struct virtual_source *s = arg;
    assert(!s->in_parts || !s->n || compare_keys(s, s->rows[s->n - 1].values, values) < 0); /* V1 */
    if (s->after && compare_keys(s, values, s->after) <= 0) return 0;
    s->more = s->in_parts && s->n == ROWS_AT_ONCE;
    if (s->more) return -1;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct virtual_row *rows = realloc(s->rows, cap * sizeof(*rows));
        if (!rows) return err_nomem(s->spec.r->err);
        s->rows = rows;
        s->cap = cap;
    }
    const struct schema_table *t = s->spec.plan->table;
    struct virtual_row *row = &s->rows[s->n];
    *row = (struct virtual_row){.values = ARENA_ARRAY(&s->arena, t->n_columns, struct value), .of = s, .arrival = s->n};
    if (!row->values) return too_large(s);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        row->values[i] = values[i];
        if (values[i].n <= 0) continue;
        row->values[i].p = arena_dup(&s->arena, value_slice(values[i])).p;
        if (!row->values[i].p) return too_large(s);
    }
    if (!put_image(s, values, t->n_partition_key, &row->partition)) return too_large(s);
    if (!put_image(s, values + t->n_partition_key, t->n_clustering, &row->clustering)) return too_large(s);
    s->n++;
    return 0;
}

/* Loads the next rows, as many as the source holds at once. */
static int load(struct virtual_source *s) {
    struct cql_run *r = s->spec.r;
    const struct schema_table *t = s->spec.plan->table;
    if (t->virt->blocks && !r->blocking) return READ_INCOMPLETE;
    if (s->n) {
        const struct virtual_row *last = &s->rows[s->n - 1];
        if (kept_key_put(&s->partition, last->partition) || kept_key_put(&s->clustering, last->clustering))
            return err_nomem(r->err);
        if (!begin_after(s)) return err_set(r->err, ERR_SERVER, "A row of %s has a bad key", t->name);
    }
    arena_reset(&s->arena);
    s->n = s->at = 0;
    s->more = false;
    struct virtual_context ctx = db_virtual_context(r);
    ctx.key = s->key;
    ctx.after = s->in_parts ? s->after : NULL;
    struct row_out ro;
    if ((row_out_init(&ro, &ctx, t, take_row, s) || t->virt->yield(&ro)) && !s->more) return READ_FAILED;
    if (!s->in_parts) {
        size_t n = 0;
        if (s->n) qsort(s->rows, s->n, sizeof(*s->rows), by_key);
        for (size_t i = 0; i < s->n; i++) /* keeps the first of the rows with the same key */
            if (n == 0 || compare_keys(s, s->rows[n - 1].values, s->rows[i].values)) s->rows[n++] = s->rows[i];
        s->n = n;
    }
    s->loaded = true;
    return 0;
}

/* ---- the source ---- */

static enum read_pull next(struct read_op *op, struct read_batch *out) {
    struct virtual_source *s = (struct virtual_source *)op;
    out->n = 0;
    out->view = NULL;
    while (!s->loaded || s->at < s->n || s->more) {
        int rc = s->loaded && s->at < s->n ? 0 : load(s);
        if (rc) return (enum read_pull)rc;
        /* loaded rows of one partition */
        for (; s->at < s->n && out->n < out->most; s->at++) {
            const struct virtual_row *row = &s->rows[s->at];
            const struct value *before = s->at ? s->rows[s->at - 1].values : s->after;
            bool same = before != NULL;
            for (uint32_t i = 0; same && i < s->spec.plan->table->n_partition_key; i++)
                same = slice_eq(value_slice(row->values[i]), value_slice(before[i]));
            if (!same) {
                if (out->n) return READ_ROWS;
                s->base.given = 0;
                s->base.skip_partition = false;
            }
            if (s->base.skip_partition || s->base.given >= s->base.partition_limit) continue;
            out->values[out->n] = row->values;
            out->out[out->n++] = select_result(s->spec.plan, row->values);
        }
        if (out->n) return READ_ROWS;
    }
    s->base.exhausted = true;
    return READ_END;
}

static struct read_source *open(const struct read_spec *spec, bool *none) {
    const struct schema_table *t = spec->plan->table;
    const struct paging_state *resume = spec->resume;
    struct virtual_source *s = ARENA_NEW(spec->r->arena, struct virtual_source);
    struct value *key = ARENA_ARRAY(spec->r->arena, t->n_partition_key + 1, struct value);
    *none = false;
    if (!s || !key) return err_null(err_nomem(spec->r->err));
    for (uint32_t i = 0; key && i < t->n_partition_key; i++) {
        const struct where_step *step = spec->plan->where->partition_steps[i];
        if (!step || step->kind != STEP_EQ) key = NULL;
        else if (term_eval(step->term, &spec->r->eval, &key[i])) return NULL;
    }
    s->base = (struct read_source){.op = {next}, .path = &path_virtual, .most = READ_BATCH};
    s->spec = *spec;
    s->key = key;
    s->n_key = t->n_partition_key + t->n_clustering;
    s->in_parts = t->virt->ordered && !spec->plan->order.reversed;
    s->after_room = ARENA_ARRAY(spec->r->arena, s->n_key, struct value);
    if (!s->after_room) return err_null(err_nomem(spec->r->err));
    kept_key_init(&s->partition);
    kept_key_init(&s->clustering);
    if (resume) {
        s->base.given = resume->given;
        s->partition.is = resume->key; /* lives as long as the request */
        s->clustering.is = resume->ck;
        if (!begin_after(s)) return err_null(paging_refuse(spec->r->err));
    }
    arena_init_in(&s->arena, spec->r->arena->share, ROWS_CHUNK, ROWS_MAX);
    return &s->base;
}

static void unread(struct read_source *source) { ((struct virtual_source *)source)->at--; }

static void position(const struct read_source *source, struct paging_state *out) {
    const struct virtual_source *s = (const struct virtual_source *)source;
    out->given = s->base.given;
    out->key = s->at ? s->rows[s->at - 1].partition : s->partition.is;
    out->ck = s->at ? s->rows[s->at - 1].clustering : s->clustering.is;
}

static void close_source(struct read_source *source) {
    struct virtual_source *s = (struct virtual_source *)source;
    kept_key_fini(&s->partition);
    kept_key_fini(&s->clustering);
    arena_fini(&s->arena);
    free(s->rows);
}

const struct access_path path_virtual = {.work_class = WORK_READ,
                                         .open = open,
                                         .unread = unread,
                                         .position = position,
                                         .close = close_source};
