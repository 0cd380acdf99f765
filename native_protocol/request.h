/* Bodies of requests: STARTUP, QUERY, PREPARE, EXECUTE, BATCH, REGISTER, AUTH_RESPONSE (v5
 * specification, section 4.1, and v3, v4).
 *
 * A decoded request points into the body it was decoded from; arrays are in the arena. Every length
 * is checked against the rest of the body before it is used, so a wrong count cannot allocate more
 * than the body's own bytes justify. Bytes behind the message in a body are ignored, as the
 * specification asks.
 */
#pragma once

#include "cql/cql.h"
#include "native_protocol/compress.h"
#include "native_protocol/frame.h"

/* Options of a query request that do not concern its statement. */
struct np_query_options {
    bool skip_metadata;
    bool wants_capacity; /* the request's custom payload has the key "capacity" */
    struct slice traceparent; /* W3C's trace context of the payload, valid as text; n 0 if none */
};

/* Decodes QUERY, PREPARE, EXECUTE or BATCH into r, which it overwrites.
 * body: uncompressed, with the custom payload (flag) still in front. ERR_PROTOCOL when it is no
 * such message; the connection may go on. */
int np_query_decode(const struct np_envelope *env, struct slice body, struct arena *a, struct cql_request *r,
                    struct np_query_options *o, struct err *e) MUST_CHECK;

struct np_startup {
    enum np_compression compression;
    bool throw_on_overload; /* THROW_ON_OVERLOAD: "1" */
    bool capacity_full;     /* CAPACITY: "full" */
    struct slice driver_name, driver_version;
};
/* CQL_VERSION is required; unknown options are ignored. */
int np_startup_decode(uint8_t version, struct slice body, struct np_startup *out, struct err *e) MUST_CHECK;

enum np_event { NP_EVENT_TOPOLOGY = 1, NP_EVENT_STATUS = 2, NP_EVENT_SCHEMA = 4 };
/* Bits of enum np_event. */
int np_register_decode(struct slice body, unsigned *events, struct err *e) MUST_CHECK;

/* The token of AUTH_RESPONSE; p NULL when it is null. */
int np_auth_decode(struct slice body, struct slice *token, struct err *e) MUST_CHECK;
