/* Result columns that clients may know of prepared statements whose columns are others now.
 *
 * Before v5 an EXECUTE does not say which columns its client knows. A client that prepared the
 * statement before a table changed, and asks for rows without their columns, would misread them
 * once another client has prepared the statement again. So rows of a statement carry their columns
 * as long as other columns are noted under its id.
 *
 * Life of a note: a change of the schema makes it, with the columns that the statement had; it is
 * dropped when the last connection that was open at the change has closed. Drivers prepare anew what
 * they go on with after a loss of all their connections, as after a restart of the server.
 *
 * A client that has prepared the statement again knows the new columns: rows for its connection leave
 * them out. So a connection has a ring of what it has learned, LEARNED_MAX statements that other columns
 * were noted of when it prepared them.
 *
 * There are at most KNOWN_META_MAX notes. Then the oldest gives way, and rows of statements that are
 * prepared from then on carry their columns as long as a connection from before that note's change is
 * open; likewise rows of a statement that has left a connection's ring. No request is refused; its
 * answer is larger.
 *
 * Not thread-safe: the cache of prepared statements calls it under its lock.
 */
#pragma once

#include "cql/request/request.h"

enum { KNOWN_META_MAX = 16384, KNOWN_META_BUCKETS = 4096, LEARNED_MAX = 64 };

struct known_meta {
    struct known_meta_note *buckets[KNOWN_META_BUCKETS], *oldest, *newest;
    struct cql_client *first, *last; /* connections, by age */
    size_t n;
    uint64_t changes; /* so far */
    uint64_t lost;    /* the newest change whose note gave way; 0 if none that matters */
};

void known_meta_fini(struct known_meta *k);
/* A change of the schema: the statement had these columns until now. Both: 16 bytes. */
void known_meta_note(struct known_meta *k, const uint8_t *id, const uint8_t *meta);
/* Whether a client may know other columns of the statement than these. */
bool known_meta_differs(const struct known_meta *k, const uint8_t *id, const uint8_t *meta);
void known_meta_open(struct known_meta *k, struct cql_client *c);
/* The client was told these columns in answer to a PREPARE of the statement. */
void known_meta_learn(const struct known_meta *k, struct cql_client *c, const uint8_t *id, const uint8_t *meta);
/* Whether these are the columns that the client was told last, as far as the ring goes back. */
bool known_meta_has_learned(const struct cql_client *c, const uint8_t *id, const uint8_t *meta);
/* Whether notes were dropped, so that known_meta_differs may have other answers. */
bool known_meta_close(struct known_meta *k, struct cql_client *c);
