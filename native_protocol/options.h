/* Options of the front: its database, its addresses, its bounds. The whole folder reads them; they
 * do not change after the start. */
#pragma once

#include "cql/cql.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/limiter.h"
#include "native_protocol/tls.h"

struct access_keys;
struct np_audit;
struct capture_recorder;
struct faults;

enum np_capacity_payload { NP_CAPACITY_CHARGE, NP_CAPACITY_FULL, NP_CAPACITY_OFF };

struct np_options { /* what it points to must outlive the front */
    struct cql_db *db;
    struct eng *eng;
    struct catalog *catalog;
    struct trace_store *traces; /* of traced requests; the tables of catalog show them */
    struct clock *clock;
    struct ledger *ledger; /* with a shard for every loop; NULL if nothing is posted */
    struct { /* called for each write that was admitted and has failed; any thread; may be NULL */
        void (*fn)(void *arg, const struct ledger_posting *posting, struct limit_took took);
        void *arg;
    } write_failed;
    struct capture_recorder *capture; /* metering/capture/recorder.h; NULL if there is none */
    struct faults *faults; /* native_protocol/faults/faults.h: that hit requests; NULL if there are none */
    enum np_capacity_payload capacity_payload;
    struct access_control *access;           /* checks logins; NULL if no login is required */
    const struct access_keys *keys;  /* SigV4 logins; NULL if there are none */
    const char *region;              /* for which they are signed */
    const char *listen; /* numeric address */
    bool plain;         /* a port without TLS */
    uint16_t port;      /* of it; 0 if any free one */
    struct np_tls *tls; /* of the port with TLS; NULL if there is none */
    uint16_t tls_port;
    uint16_t reserved_port; /* port or tls_port, if np_port_reserve holds it until the front has started; else 0 */
    const _Atomic int64_t *slow_us; /* statements that take as long are logged; 0 if none; may change */
    struct np_audit *audit; /* NULL if nothing is audited */
    unsigned threads; /* 0 for one per core */
    unsigned workers[WORK_CLASSES]; /* threads of each class; 0 means by cores */
    unsigned queue_max;             /* requests that wait for workers; 0 for default */
    unsigned offloaded_max;         /* requests of a connection that are with workers; 0 means NP_OFFLOADED_MAX */
    size_t queue_bytes_max;         /* what they hold; 0 for default */
    int64_t timeout_us[WORK_CLASSES]; /* from when a request goes to the workers; 0 if none */
    uint8_t newest_version;    /* of the protocol that clients are offered: 4 or 5 */
    uint32_t frame_max;        /* bytes of a request body */
    int64_t handshake_us;      /* a connection without STARTUP is closed after it; 0 means never */
    int64_t request_us, send_us; /* for a request to arrive as a whole; for unread bytes to be taken; 0 means for
                                  * ever */
    uint32_t connections, connections_each; /* the most, in all and of an address; 0 means default, by RLIMIT_NOFILE */
    size_t unfinished_bytes;   /* of requests that have not arrived as a whole, of all connections; 0 for default */
    size_t unread_bytes;       /* of answers that clients have not taken, of all connections; 0 for default */
    size_t work_bytes;         /* of requests that run, beyond ARENA_OWN of each; 0 for default */
};
