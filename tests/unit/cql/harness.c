#include "harness.h"

#include <stdio.h>

#include "metering/limits/limiter.h"

static int64_t read_clock(struct clock *c) { return ((struct harness_clock *)c)->now_us; }

static int sink_begin(struct row_sink *s, const struct result_meta *meta) {
    struct harness *h = (struct harness *)((char *)s - offsetof(struct harness, sink));
    h->meta = meta;
    return 0;
}

static int sink_rows(struct row_sink *s, const struct value *const *rows, uint32_t n) {
    struct harness *h = (struct harness *)((char *)s - offsetof(struct harness, sink));
    if (n > h->most_rows) h->most_rows = n;
    for (uint32_t row = 0; row < n; row++) {
        if (h->n_rows++) buf_u8(&h->rows, ';');
        for (uint32_t i = 0; i < h->meta->n; i++) {
            struct value v = rows[row][i];
            if (i) buf_u8(&h->rows, ',');
            if (value_is_null(v)) buf_put_str(&h->rows, "null");
            else cql_value_text(h->meta->columns[i].type, value_slice(v), &h->rows);
        }
    }
    return 0;
}

static void sink_restart(struct row_sink *s) {
    struct harness *h = (struct harness *)((char *)s - offsetof(struct harness, sink));
    h->meta = NULL;
    h->n_rows = h->most_rows = 0;
    buf_clear(&h->rows, 1 << 20);
}

static size_t sink_bytes(const struct row_sink *s) {
    return ((const struct harness *)((const char *)s - offsetof(struct harness, sink)))->rows.n;
}

void harness_open_on(struct harness *h, enum tally_mode mode, const struct eng_options *store, int64_t now_us) {
    memset(h, 0, sizeof(*h));
    h->mode = mode;
    h->data_dir = store->data_dir;
    h->clock = (struct harness_clock){.clock = {.wall_us = read_clock, .mono_us = read_clock}, .now_us = now_us};
    h->sink = (struct row_sink){.begin = sink_begin,
                                .rows = sink_rows,
                                .restart = sink_restart,
                                .bytes = sink_bytes};
    struct eng_options eo = *store;
    eo.durability = ENG_NONE;
    eo.clock = &h->clock.clock;
    h->eng = eng_open(&eo, &h->err);
    assert_non_null(h->eng);
    struct catalog_options co = {.eng = h->eng,
                                 .clock = &h->clock.clock,
                                 .mode = mode,
                                 .node = {.cluster_name = "Test Cluster",
                                          .datacenter = "datacenter1",
                                          .rack = "rack1",
                                          .release_version = "5.0.8",
                                          .cql_version = "3.4.7",
                                          .listen_address = "127.0.0.1",
                                          .port = 9042}};
    h->catalog = catalog_open(&co, &h->err);
    assert_non_null(h->catalog);
    struct cql_db_options o = {.eng = h->eng, .catalog = h->catalog, .clock = &h->clock.clock, .mode = mode};
    h->db = cql_db_new(&o, &h->err);
    assert_non_null(h->db);
    h->batch = eng_batch_new(h->eng);
    assert_non_null(h->batch);
    h->session.protocol_version = 5;
    h->consistency = CL_LOCAL_QUORUM;
    snprintf(h->session.local_address, sizeof(h->session.local_address), "127.0.0.1");
    arena_init(&h->arena, 4096, 0);
    buf_init(&h->rows, 0);
    buf_init(&h->paging, 0);
}

void harness_open_in(struct harness *h, enum tally_mode mode, const char *data_dir, int64_t now_us) {
    harness_open_on(h, mode, &(struct eng_options){.data_dir = data_dir}, now_us);
}

void harness_open(struct harness *h, enum tally_mode mode) { harness_open_in(h, mode, NULL, 1700000000000000); }

struct harness *harness_new(enum tally_mode mode, const char *const *tables) {
    struct harness *h = test_calloc(1, sizeof(*h));
    harness_open(h, mode);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "USE k");
    for (; *tables; tables++) run_ok(h, *tables);
    return h;
}

int harness_teardown(void **state) {
    harness_close(*state);
    test_free(*state);
    return 0;
}

void harness_restart_cold(struct harness *h, int64_t now_us, size_t block_cache_bytes) {
    enum tally_mode mode = h->mode;
    const char *data_dir = h->data_dir;
    harness_close(h);
    const struct eng_options store = {.data_dir = data_dir, .block_cache_bytes = block_cache_bytes};
    harness_open_on(h, mode, &store, now_us);
}

void harness_restart(struct harness *h, int64_t now_us) { harness_restart_cold(h, now_us, 0); }

void harness_ask(struct harness *h, const struct cql_admission *admission, struct access_control *access) {
    struct cql_db_options o = {.eng = h->eng, .catalog = h->catalog, .clock = &h->clock.clock, .mode = h->mode};
    static struct limit_connection limit;
    if (admission) o.admission = *admission;
    h->session.limit = &limit;
    o.access = access;
    cql_db_free(h->db);
    h->db = cql_db_new(&o, &h->err);
    assert_non_null(h->db);
}

void harness_close(struct harness *h) {
    eng_batch_free(h->batch);
    cql_db_free(h->db);
    catalog_close(h->catalog);
    arena_fini(&h->arena);
    eng_close(h->eng);
    buf_fini(&h->rows);
    buf_fini(&h->paging);
}

enum cql_outcome harness_request(struct harness *h, const struct cql_request *q) {
    h->arena.limit = h->arena_limit ? h->arena_limit : SIZE_MAX;
    arena_reset(&h->arena);
    struct slice state = {0};
    if (h->resume) state = arena_dup(&h->arena, buf_slice(&h->paging));
    buf_clear(&h->paging, 1 << 20);
    sink_restart(&h->sink);
    memset(&h->err, 0, sizeof(h->err));
    h->cost = cql_cost(h->db, &h->arena);
    h->cost.write_size = h->write_size;
    struct cql_request request = *q;
    request.params.consistency = h->consistency;
    request.params.serial_consistency = CL_LOCAL_SERIAL;
    request.params.page_size = h->page_size;
    request.params.paging_state = state;
    _Atomic bool gone = false;
    struct cql_run run = {.in = &request,
                          .db = h->db,
                          .session = &h->session,
                          .arena = &h->arena,
                          .err = &h->err,
                          .cost = &h->cost,
                          .sink = &h->sink,
                          .batch = h->batch,
                          .now_us = h->clock.now_us,
                          .blocking = !h->on_loop,
                          .cancelled = &gone,
                          .deadline_us = h->deadline_us};
    struct cql_run *r = &run;
    enum cql_outcome outcome = cql_run(r);
    for (h->n_parts = 1; outcome == CQL_AGAIN; h->n_parts++) {
        gone = h->n_parts == h->cancel_after;
        outcome = cql_run_more(r);
    }
    bool planned = outcome == CQL_DONE || outcome == CQL_COMMIT;
    if (planned && cql_admit(r)) {
        cql_abandon(r);
        outcome = CQL_FAILED;
    } else if (planned) {
        outcome = cql_apply(r, outcome);
    }
    while (outcome == CQL_AGAIN) outcome = cql_run_more(r);
    if (r->answer.result.paging_state.p) buf_put_slice(&h->paging, r->answer.result.paging_state);
    h->result = r->answer.result;
    h->n_warnings = r->answer.n_warnings;
    h->commit_seq = r->answer.commit_seq;
    h->work_class = r->answer.work_class;
    cql_run_fini(r);
    buf_u8(&h->rows, 0);
    return outcome;
}

enum cql_outcome harness_run(struct harness *h, const char *cql, uint32_t n_values, const struct value *values) {
    struct cql_request r = {.kind = REQUEST_QUERY,
                            .query = slice_str(cql),
                            .params = {.n_values = n_values, .values = values}};
    return harness_request(h, &r);
}

enum cql_outcome harness_execute(struct harness *h, const uint8_t *id, uint32_t n_values, const struct value *values) {
    struct cql_request r = {.kind = REQUEST_EXECUTE,
                            .prepared_id = slice_of(id, 16),
                            .params = {.n_values = n_values, .values = values}};
    return harness_request(h, &r);
}

void harness_prepare(struct harness *h, const char *cql, uint8_t id[16]) {
    struct cql_request r = {.kind = REQUEST_PREPARE, .query = slice_str(cql)};
    if (harness_request(h, &r) != CQL_DONE) fail_msg("%s: %s", cql, h->err.text);
    memcpy(id, cql_prepared_info(h->result.prepared)->id, 16);
    cql_prepared_unref(h->result.prepared);
}

const char *harness_query(struct harness *h, const char *cql) {
    enum cql_outcome outcome = harness_run(h, cql, 0, NULL);
    if (outcome == CQL_FAILED || outcome == CQL_OFFLOAD)
        fail_msg("%s: %s", cql, outcome == CQL_OFFLOAD ? "offloaded" : h->err.text);
    return (const char *)h->rows.p;
}

const char *harness_error(struct harness *h, const char *cql) {
    if (harness_run(h, cql, 0, NULL) != CQL_FAILED) fail_msg("%s: no error", cql);
    return h->err.text;
}
