/* Prepared statements: compiled once, found by id, shared by all threads.
 *
 * Life: prepared_make compiles a text and puts it into the cache under the MD5 of keyspace and
 * text, as Cassandra does (and of a mark for tokens that are not Murmur3's); an EXECUTE acquires a
 * reference with prepared_get and drops it when the request ends. The cache evicts statements when it
 * needs room, about the least recently used first, and a statement at once when one of its tables
 * is dropped or gets other columns. Then the client gets UNPREPARED, as from Cassandra,
 * prepares the statement again and gets its new columns. Other changes of the table (a default
 * TTL) make the next EXECUTE compile the text again. A change of the schema is only checked
 * (statement_ops.check), and compiled when it runs. Looking one up takes no lock: readers count
 * themselves in a counter of their stripe, and a thread that unlinks an entry waits until each
 * counter has been zero once before it drops the cache's reference.
 */
#pragma once

#include "cql/request/db.h"
#include "cql/request/statement.h"
#include "system_schema/system_tables/virtual.h"

struct prepared_cache *prepared_cache_new(size_t bytes) MUST_CHECK;
void prepared_cache_free(struct prepared_cache *cache);

/* Returns a reference, or NULL with ERR_UNPREPARED: the id is unknown, or the statement was evicted. */
struct cql_prepared *prepared_get(struct cql_db *db, struct slice id, struct err *e) MUST_CHECK;
/* Compiles the text and returns a reference to the statement, which replaces the cache's entry with the
 * same id. keyspace: the default one, or NULL. partitioner: of the session that prepares it; it holds for
 * every execution, because the types of the markers depend on it. */
struct cql_prepared *prepared_make(struct cql_db *db, struct slice query, const char *keyspace,
                                   enum partitioner_id partitioner, struct err *e) MUST_CHECK;

/* Evicts the statements that a change of the schema invalidates. A listener of the catalogue; arg: the cql_db. */
void prepared_on_change(void *arg, const struct schema_change *change);

/* Calls take for every statement with an id greater than after (16 bytes; NULL means all statements), in
 * the order of the ids, until take returns -1. The cache is locked during the calls: take must not
 * prepare. from: the cache. For system.prepared_statements (system_schema/system_tables/virtual.h). */
int prepared_each(void *from, const uint8_t *after, virtual_prepared_fn take, void *arg) MUST_CHECK;

/* Leaves the statement with this id, or (NULL) every cached statement, out of prepared_each until the cache
 * evicts it. It can still be executed, and as in Cassandra preparing it again does not list it. */
void prepared_unlist(void *from, const struct slice *id);

/* ---- for the protocol ---- */

/* Registers a client's connection, and removes it. The caller owns the memory, from open to close. Any thread. With
 * db NULL the two functions do nothing. */
void cql_client_open(struct cql_db *db, struct cql_client *c);
void cql_client_close(struct cql_db *db, struct cql_client *c);
/* Records that a response to a PREPARE on a connection before v5 contains the columns. Later responses on the
 * connection are sent after it. */
void cql_client_sent_columns(struct cql_client *c, const struct prepared_info *info);
/* Returns false if the client of a connection before v5 may have other result columns for the statement than meta. */
bool cql_client_has_columns(struct cql_client *c, struct slice id, const struct result_meta *meta);

const struct prepared_info *cql_prepared_info(const struct cql_prepared *p);
void cql_prepared_unref(struct cql_prepared *p);
