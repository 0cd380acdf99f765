/* Faults of system_control.faults from hostile bytes: columns as CQL hands them over: number u8 |
 * length u8 (0xFF: null) | value, again and again. What is taken
 * hits a request only as often as it says, answers one of the protocol's errors, and says the same
 * again. */
#include <stdlib.h>

#include "native_protocol/faults/faults.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct fault_rule *r, const struct cql_run *q) {
    struct err e = {0};
    if (!r->fails) return;
    fault_rule_fail(r, q, &e);
    if (!e.set || !*e.text || e.detail.received < 0 || !memchr(e.detail.write_type, 0, sizeof(e.detail.write_type)))
        abort();
}

static void check_hits(const struct fault_rule *rule, const struct cql_run *q, int64_t *hits) {
    struct err e = {0};
    struct fault_rule told;
    struct faults *f = faults_new(&e);
    if (!f || faults_put(f, rule, &e)) abort();
    for (int i = 0; i < 20; i++) {
        const struct fault_rule *hit = faults_hit(f, q, 7);
        if (hit) check_answer(hit, q);
    }
    if (!faults_find(f, rule->name, &told) || told.matched > 20 || told.hits > told.matched) abort();
    if (rule->has[FAULT_COLUMN_times] && told.hits > rule->times) abort();
    if (rule->has[FAULT_COLUMN_nth] && told.hits > 1) abort();
    faults_remove(f, rule->name);
    if (faults_count(f)) abort();
    faults_free(f);
    *hits = told.hits;
}

static void check_rule(const struct fault_rule *rule) {
    struct arena a;
    struct op_cost cost = {.keyspace = "k", .table = "t"};
    struct cql_session session = {.role = "somebody"};
    struct cql_request in = {.params.consistency = CL_LOCAL_QUORUM};
    struct cql_run q = {
        .in = &in, .arena = &a, .cost = &cost, .session = &session, .answer.stmt_kind = STMT_INSERT};
    int64_t first, again;
    if (rule->delay_ms < 0 || rule->delay_ms > FAULT_DELAY_MAX_MS || (!rule->fails && !rule->close && !rule->delay_ms))
        abort();
    arena_init(&a, 4096, 4 << 20);
    check_hits(rule, &q, &first);
    check_hits(rule, &q, &again);
    if (first != again) abort();
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fault_rule rule = {.name = "f"};
    size_t at = 0;
    while (at + 2 <= size) {
        struct err e = {0};
        enum fault_column c = (enum fault_column)(data[at] % FAULT_COLUMNS);
        int32_t n = data[at + 1] == 0xFF ? -1 : data[at + 1];
        at += 2;
        if (n > 0 && (size_t)n > size - at) n = (int32_t)(size - at);
        struct fault_rule next = rule;
        if (fault_rule_set(&next, c, data + at, n, &e) == 0) rule = next;
        else if (!e.set) abort();
        at += n > 0 ? (size_t)n : 0;
    }
    struct err e = {0};
    if (fault_rule_check(&rule, &e) == 0) check_rule(&rule);
    else if (!e.set) abort();
    return 0;
}
