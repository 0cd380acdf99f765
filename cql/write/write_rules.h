/* Amazon Keyspaces' limits on a write whose values are known: keys, timestamps, numbers, sizes of
 * rows, statements of one batch.
 *
 * write.c calls them when the write is bound and when it is sized, before anything is admitted or
 * written; a refusal changes nothing. All return 0, or -1 with the request's error. Nothing
 * is checked while the mode is off. Inside cql only.
 */
#pragma once

#include "cql/request/db.h"
#include "cql/write/modify.h"
#include "cql/write/mutation.h"

static inline bool write_rules_on(const struct cql_run *r) { return r->db->options.compat.mode != COMPAT_OFF; }

/* Whether conditional batches may span partitions and tables: by Keyspaces' rules only. */
static inline bool write_rules_spans(const struct cql_run *r, enum ast_batch_kind kind) {
    return kind == BATCH_LOGGED && r->db->options.mode == MODE_KEYSPACES && write_rules_on(r);
}
/* Before anything is bound. */
int write_rules_batch(struct cql_run *r, enum ast_batch_kind kind, const struct write_item *items,
                      uint32_t n) MUST_CHECK;
/* One statement, bound; its values are the request's. server_ts: the timestamp of a write
 * that gives none. */
int write_rules_bound(const struct cql_statement *s, const struct modify_write *w, int64_t server_ts) MUST_CHECK;
/* All statements of a logged batch, bound. */
int write_rules_rows(struct cql_run *r, const struct write_item *items, const struct modify_write *writes,
                     uint32_t n) MUST_CHECK;
/* Sized: every row and static row as the write leaves it. */
int write_rules_sized(struct cql_run *r, const struct compat *k) MUST_CHECK;
/* Limits the bytes that a statement or batch writes to one partition and to all. */
int check_write_size(const struct mutations *m) MUST_CHECK;
/* In Cassandra mode, limits and warnings for a batch over several partitions. */
int check_batch_size(const struct mutations *m, enum ast_batch_kind kind, bool conditional) MUST_CHECK;
