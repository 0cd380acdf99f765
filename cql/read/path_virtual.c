/* A system table: its function yields rows from memory, all that its partition key asks for, and the source keeps them, so that they can be
 * pulled, and in reverse. Reading them is free: a page ends by the rows that it gives, and the next one goes on behind as many. */
#include <stdlib.h>

#include "cql/read/access_path.h"
#include "cql/read/select.h"
#include "cql/request/db.h"
#include "system_schema/virtual.h"

enum { ROWS_CHUNK = 16 << 10, ROWS_MAX = 64 << 20 };

struct virtual_source {
    struct read_source base;
    struct read_spec spec;
    const struct value *key; /* partition key values asked for, or NULL */
    struct row_view view;
    struct arena arena;      /* of rows */
    struct value **rows;
    size_t n, cap, at;
    bool loaded;
};

/* The partition key values that = asks for, all of them, or NULL. */
static int eval(const struct read_spec *spec, void **out, bool *none) {
    const struct schema_table *t = spec->plan->table;
    struct value *key = ARENA_ARRAY(spec->r->arena, t->n_partition_key + 1, struct value);
    *none = false;
    *out = NULL;
    if (!key) return err_nomem(spec->r->err);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct where_step *s = spec->plan->where->partition_steps[i];
        if (!s || s->kind != STEP_EQ) return 0;
        if (term_eval(s->term, spec->r, &key[i])) return -1;
    }
    *out = key;
    return 0;
}

static int too_large(struct virtual_source *s) {
    return err_set(s->spec.r->err, ERR_SERVER, "The system table %s has more than %d MB of rows to be read at once", s->spec.plan->table->name, ROWS_MAX >> 20);
}

static int take_row(void *arg, const struct value *values) {
    struct virtual_source *s = arg;
    uint32_t n = s->spec.plan->table->n_columns;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct value **rows = realloc(s->rows, cap * sizeof(*rows));
        if (!rows) return err_nomem(s->spec.r->err);
        s->rows = rows;
        s->cap = cap;
    }
    struct value *row = ARENA_ARRAY(&s->arena, n, struct value);
    if (!row) return too_large(s);
    for (uint32_t i = 0; i < n; i++) {
        row[i] = values[i];
        if (values[i].n <= 0) continue;
        row[i].p = arena_dup(&s->arena, value_slice(values[i])).p;
        if (!row[i].p) return too_large(s);
    }
    s->rows[s->n++] = row;
    return 0;
}

static bool same_partition(const struct virtual_source *s, const struct value *a, const struct value *b) {
    for (uint32_t i = 0; i < s->spec.plan->table->n_partition_key; i++)
        if (!slice_eq(value_slice(a[i]), value_slice(b[i]))) return false;
    return true;
}

static void reverse_partitions(struct virtual_source *s) {
    for (size_t from = 0, to; from < s->n; from = to) {
        for (to = from + 1; to < s->n && same_partition(s, s->rows[from], s->rows[to]);) to++;
        for (size_t a = from, b = to - 1; a < b; a++, b--) {
            struct value *x = s->rows[a];
            s->rows[a] = s->rows[b];
            s->rows[b] = x;
        }
    }
}

static int load(struct virtual_source *s) {
    struct cql_request *r = s->spec.r;
    const struct schema_table *t = s->spec.plan->table;
    if (t->virt->blocks && !r->blocking) return READ_INCOMPLETE;
    struct virtual_context ctx = db_virtual_context(r);
    ctx.key = s->key;
    if (t->virt->yield(&ctx, t, take_row, s)) return READ_FAILED;
    if (s->spec.plan->reversed) reverse_partitions(s);
    s->loaded = true;
    return 0;
}

static enum read_pull next(struct read_op *op, struct read_row *out) {
    struct virtual_source *s = (struct virtual_source *)op;
    int rc = s->loaded ? 0 : load(s);
    if (rc) return (enum read_pull)rc;
    for (; s->at < s->n; s->at++) {
        struct value *row = s->rows[s->at];
        if (s->at == 0 || !same_partition(s, row, s->rows[s->at - 1])) {
            s->base.given = 0;
            s->base.skip_partition = false;
        }
        if (s->base.skip_partition || s->base.given >= s->base.partition_limit) continue;
        s->view.values = row;
        s->at++;
        *out = (struct read_row){.values = row, .view = &s->view, .out = select_result(s->spec.plan, row)};
        return READ_ROW;
    }
    s->base.exhausted = true;
    return READ_END;
}

static struct read_source *open(const struct read_spec *spec, void *keys) {
    struct virtual_source *s = ARENA_NEW(spec->r->arena, struct virtual_source);
    if (!s) return err_nomem(spec->r->err), NULL;
    s->base = (struct read_source){.op = {next}, .path = &path_virtual, .partition_limit = spec->partition_limit};
    s->spec = *spec;
    s->key = keys;
    arena_init_in(&s->arena, spec->r->arena->share, ROWS_CHUNK, ROWS_MAX);
    return row_view_init(&s->view, spec->plan->layout, spec->r->arena, spec->r->err) ? NULL : &s->base;
}

static void begin_part(struct read_source *s) { (void)s; }

static void unread(struct read_source *source) { ((struct virtual_source *)source)->at--; }

static void place(const struct read_source *s, struct paging_state *out) { (void)s, (void)out; }

static void close_source(struct read_source *source) {
    struct virtual_source *s = (struct virtual_source *)source;
    arena_fini(&s->arena);
    free(s->rows);
}

const struct access_path path_virtual = {.work_class = WORK_READ, .eval = eval, .open = open, .begin_part = begin_part, .unread = unread,
                                         .place = place, .close = close_source};
