/* SELECT on a system table: its function yields rows from memory, the restrictions pass or drop them. */
#include "cql/request/request.h"
#include "cql/request/db.h"
#include "cql/read/select.h"
#include "system_schema/virtual.h"

static int take_row(void *arg, const struct value *values) {
    struct select_state *run = arg;
    if (run->done || run->page_full) return 0;
    uint32_t n = run->plan->table->n_columns, keys = run->plan->table->n_partition_key;
    struct slice key;
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < keys; i++) cql_elem_put(values[i], &b);
    key = buf_slice(&b);
    if (!slice_eq(key, buf_slice(&run->key))) {
        run->given = 0;
        run->partition_done = false;
        buf_clear(&run->key, 1 << 16);
        buf_put_slice(&run->key, key);
    }
    bool failed = buf_failed(&b) || buf_failed(&run->key);
    buf_fini(&b);
    if (failed) return err_nomem(run->r->err);
    memcpy(run->view.values, values, n * sizeof(*values));
    if (run->partition_done) return 0;
    return select_out_values(run);
}

/* The partition key values that = asks for, all of them, or NULL. */
static const struct value *wanted_key(struct select_state *run, int *rc) {
    const struct schema_table *t = run->plan->table;
    struct value *key = ARENA_ARRAY(run->r->arena, t->n_partition_key + 1, struct value);
    *rc = key ? 0 : err_nomem(run->r->err);
    for (uint32_t i = 0; *rc == 0 && i < t->n_partition_key; i++) {
        const struct where_step *s = run->plan->where->partition_steps[i];
        if (!s || s->kind != STEP_EQ) return NULL;
        *rc = term_eval(s->term, run->r, &key[i]);
    }
    return *rc ? NULL : key;
}

int select_virtual(struct select_state *run) {
    struct cql_request *r = run->r;
    int rc;
    const struct value *key = wanted_key(run, &rc);
    if (rc) return -1;
    run->read = NULL;
    run->count_read_rows = false; /* reading memory costs nothing: a page ends by the rows that it gives */
    struct virtual_context ctx = {.catalog = r->db->options.catalog, .schema = r->schema, .arena = r->arena, .key = key, .err = r->err};
    ctx.each_prepared = r->db->each_prepared;
    ctx.prepared = r->db->prepared;
    if (r->session) {
        ctx.local_address = r->session->local_address;
        ctx.local_port = r->session->local_port;
        ctx.protocol_version = r->session->protocol_version;
    }
    return run->plan->table->virt->yield(&ctx, run->plan->table, take_row, run);
}
