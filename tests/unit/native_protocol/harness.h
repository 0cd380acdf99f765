/* A loop that is cranked by hand, for unit tests: a store in memory, a clock that stands still until
 * it is moved, sockets from socketpair, and a protocol of its own in place of dispatch. A QUERY's
 * body says what happens to it:
 *
 *   'e'        answered with the body, at once
 *   'l' u32    answered at once with so many bytes
 *   'h'        answered with the body when this wake-up's batch is durable
 *   'w'        goes to a worker: waits in the harness until the test sends it back
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native_protocol/conn.h"
#include "native_protocol/durability.h"
#include "native_protocol/wakeup.h"

struct harness {
    struct clock clock;
    _Atomic int64_t now_us; /* workers and the catalogue read it, too */
    struct np_options options;
    struct np_bounds bounds;
    struct np_loop loop;
    unsigned n_envelopes; /* that arrived */
    struct np_call *working[64];
    unsigned n_working;
};

/* limits of the two budgets in bytes. */
void harness_open(struct harness *h, size_t unfinished, size_t unread);
/* The same with dispatch, workers and a database: requests are those of the protocol. */
void harness_open_database(struct harness *h);
void harness_close(struct harness *h);
/* A connection; *peer is its other end, which does not block. The connection holds a reference for the test. */
struct np_conn *harness_connect(struct harness *h, int *peer);
/* The same on a listener with TLS. */
struct np_conn *harness_connect_by(struct harness *h, struct np_tls *tls, int *peer);
/* Lets the loop do what there is to do. */
void harness_crank(struct harness *h);
/* Lets the loop sleep until something happens, and then do it. */
void harness_wait(struct harness *h);
/* Moves the clock, a tick a second. */
void harness_pass(struct harness *h, unsigned seconds);
/* A worker has an answer of n bytes for the i-th of working, made in blocks; -1 from the budget is an error answer. */
void harness_work(struct harness *h, unsigned i, size_t n);

/* ---- the client's side ---- */

/* Appends an envelope. */
void harness_envelope(struct buf *b, uint8_t version, enum np_opcode opcode, int16_t stream, struct slice body);
void harness_query(struct buf *b, int16_t stream, struct slice body); /* v4 */
/* STARTUP of the version, and its answer. */
void harness_startup(struct harness *h, int peer, uint8_t version);
/* Sends all of it, cranking when the socket is full. Returns what could be sent before the loop stopped taking it. */
size_t harness_send(struct harness *h, int peer, struct slice bytes);
/* Appends at most n bytes of what is there to b, without cranking. false: the other side has closed. */
bool harness_receive(int peer, size_t n, struct buf *b);
/* All there is, cranking until nothing more comes. */
bool harness_receive_all(struct harness *h, int peer, struct buf *b);
