/* The front of the server: listeners, one event loop per thread, blocking workers, on one database.
 *
 * Life: np_front_start binds, starts the threads and returns; np_front_stop stops accepting, lets what is in flight finish
 * (bounded) and joins every thread; np_front_free comes after engine and catalogue are closed, whose threads call back into
 * the front until then. Start, stop and free on one thread; the rest on any.
 */
#pragma once

#include "native_protocol/metric.h"
#include "native_protocol/transport.h"
#include "cql/cql.h"

enum np_capacity_payload { NP_CAPACITY_CHARGE, NP_CAPACITY_FULL, NP_CAPACITY_OFF };

struct np_options { /* what it points to must outlive the front */
    struct cql_db *db;
    struct eng *eng;
    struct catalog *catalog;
    struct clock *clock;
    enum size_model size_model;
    enum np_capacity_payload capacity_payload;
    const char *listen; /* numeric address */
    uint16_t port;      /* 0: any free one */
    bool tls;           /* with tls_port, tls_cert and tls_key */
    uint16_t tls_port;
    const char *tls_cert, *tls_key;
    unsigned threads; /* 0: one per core */
    unsigned workers[WORK_CLASSES]; /* threads of each class; 0: by cores */
    unsigned queue_max;             /* requests that wait for workers; 0: default */
    size_t queue_bytes_max;         /* what they hold; 0: default */
    int64_t timeout_us[WORK_CLASSES]; /* from when a request goes to the workers; 0: none */
    uint32_t frame_max;        /* bytes of a request body */
    int64_t handshake_us;      /* a connection without STARTUP is closed after it; 0: never */
    int64_t request_us, send_us; /* for a request to arrive as a whole; for unread bytes to be taken; 0: for ever */
    uint32_t connections, connections_each; /* the most, in all and of an address; 0: default, by RLIMIT_NOFILE */
    size_t unfinished_bytes;   /* of requests that have not arrived as a whole, of all connections; 0: default */
    size_t unread_bytes;       /* of answers that clients have not taken, of all connections; 0: default */
};

struct np_front;

/* On -1, *out is still there to be stopped and freed, unless it is NULL. */
int np_front_start(const struct np_options *o, struct np_front **out, struct err *e) MUST_CHECK;
void np_front_stop(struct np_front *f);
void np_front_free(struct np_front *f);
/* *port 0 becomes a free port; any other is checked to be free. ERR_CONFIG. */
int np_port_pick(const char *address, uint16_t *port, struct err *e) MUST_CHECK;
/* What was bound. */
uint16_t np_front_port(const struct np_front *f);
uint16_t np_front_tls_port(const struct np_front *f); /* 0: none */

/* Sums over all loops. */
uint64_t np_front_count(const struct np_front *f, enum np_metric id);
uint64_t np_front_requests(const struct np_front *f, uint8_t opcode, enum np_outcome o);
