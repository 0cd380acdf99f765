/* Bodies of requests from hostile bytes: version, opcode and flags come first. What was decoded is
 * walked to its end. */
#include "native_protocol/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t touched;

static void touch(struct slice s) {
    for (size_t i = 0; i < s.n; i++) touched ^= s.p[i];
}

static void touch_values(uint32_t n, const struct value *values) {
    for (uint32_t i = 0; i < n; i++) touch(value_slice(values[i]));
}

static void query(const struct np_envelope *env, struct slice body) {
    struct arena a;
    struct err e = {0};
    struct cql_request r = {0};
    struct np_query_options o;
    arena_init(&a, 4096, 1 << 20);
    if (!np_query_decode(env, body, &a, &r, &o, &e)) {
        touch(r.query), touch(r.prepared_id), touch(r.params.keyspace), touch(r.params.paging_state);
        touch_values(r.params.n_values, r.params.values);
        for (uint32_t i = 0; i < r.params.n_values && r.params.names; i++) touch(r.params.names[i]);
        for (uint32_t i = 0; i < r.n_items; i++) {
            touch(r.items[i].query), touch(r.items[i].prepared_id);
            touch_values(r.items[i].n_values, r.items[i].values);
        }
    }
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    struct np_envelope env = {.version = 3 + data[0] % 3, .opcode = data[1] % 17, .flags = data[2]};
    struct slice body = slice_of(data + 3, size - 3), token;
    struct err e = {0};
    struct np_startup s;
    unsigned events;
    switch (env.opcode) {
    case NP_STARTUP: touched ^= (uint8_t)np_startup_decode(env.version, body, &s, &e); break;
    case NP_REGISTER: touched ^= (uint8_t)np_register_decode(body, &events, &e); break;
    case NP_AUTH_RESPONSE: if (!np_auth_decode(body, &token, &e)) touch(token); break;
    default: query(&env, body);
    }
    return 0;
}
