/* What stands in a capture instead of a request whose values shall not be known: how it was asked,
 * the statements without their literals, and of each value its length and a hash. Equal values of
 * one capture have equal hashes, so that hot keys still show; the key of the hash is drawn when the
 * capture begins and kept nowhere, so that nobody can try values.
 *
 *   consistency 2 | page size 4 | paging 1 | kind of batch 1 | statements 2 |
 *   each: id 16 (zeros: none) | text, without literals, when there is no id | values 2 | each:
 *   length 4 (negative as in the protocol) | hash 8
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct capture_key {
    uint64_t k0, k1;
};

/* A key that nobody knows. -1, ERR_SERVER: there is none. */
int capture_key_random(struct capture_key *out, struct err *e) MUST_CHECK;
/* SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). */
uint64_t capture_hash(const struct capture_key *k, struct slice s);

struct capture_digest {
    uint16_t consistency;
    int32_t page_size;
    bool paging; /* it asked for a further page */
    uint8_t batch_kind;
    uint16_t n_statements;
};
void capture_put_digest(struct buf *out, const struct capture_digest *d);
/* id or text: the other's p is NULL. Its values follow. */
void capture_put_digest_statement(struct buf *out, struct slice id, struct slice text, uint16_t n_values);
void capture_put_digest_value(struct buf *out, const struct capture_key *k, int32_t n, const uint8_t *p);

struct capture_digest_statement {
    struct slice id, text; /* p NULL: the other one */
    uint16_t n_values;
    struct rd values;
};
/* Reading: -1: damaged. The statements follow in *in. */
int capture_get_digest(struct rd *in, struct capture_digest *out) MUST_CHECK;
int capture_get_digest_statement(struct rd *in, struct capture_digest_statement *out) MUST_CHECK;
/* n below 0: null or unset, without a hash. */
int capture_get_digest_value(struct rd *values, int32_t *n, uint64_t *hash) MUST_CHECK;
