/* The audit log's file and the queue of lines for it.
 *
 * Life of a line: the thread that finishes a request appends it to a queue in memory; a separate
 * thread writes the queue to the file, so that a file which takes no bytes (a FIFO, a hung NFS
 * server) stops no event loop. The queue is bounded. When it is full, either further requests wait
 * before they run (npi_audit_full: connections are not read) or lines are dropped. A killed server
 * loses the lines of its queue. Lost lines, also those that cannot be written (a full disk), are
 * counted in tally_audit_lost_total, and the first of them is logged. All functions may be called on
 * any thread, except open, on_room and close.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

enum np_audit_full { NP_AUDIT_WAIT, NP_AUDIT_DROP };
enum { NP_AUDIT_QUEUE = 16 << 20 }; /* bytes of queued lines from which on requests wait or lines are dropped */

struct np_audit;

/* categories: one bit each (audit.h). NULL and ERR_CONFIG: the file cannot be written. */
struct np_audit *np_audit_open(const char *path, unsigned categories, enum np_audit_full when_full,
                               struct clock *clock, struct err *e) MUST_CHECK;
/* on_room is called on the log's thread each time waiting requests may run again. Called before any
 * request is audited. */
void np_audit_on_room(struct np_audit *a, void (*on_room)(void *arg), void *arg);
/* Opens the file again, after it was moved away. Returns -1 if the old file stays in use. */
int np_audit_reopen(struct np_audit *a, struct err *e) MUST_CHECK;
/* Lines that were not written. */
uint64_t np_audit_lost(const struct np_audit *a);
/* Writes the queue, for at most five seconds if the file takes no bytes. */
void np_audit_close(struct np_audit *a);

unsigned npi_audit_categories(const struct np_audit *a);
/* Queues a line, which ends with a newline. */
void npi_audit_put(struct np_audit *a, const struct buf *line);
/* Whether further requests must wait, because the queue is full. */
bool npi_audit_full(const struct np_audit *a);
