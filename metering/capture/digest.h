/* The digest replaces a request's body in a capture that hides values. It holds the request's
 * options, the statements without their literals, and the length and a hash of each value. Equal
 * values of one capture have equal hashes, so that hot keys still show. The hash's key is random,
 * new for each capture and never stored, so that a reader cannot find a value by hashing guesses.
 *
 *   consistency 2 | page size 4 | paging 1 | kind of batch 1 | statements 2 |
 *   each statement: id 16 (zeros: none) | text, without literals, when there is no id | values 2 |
 *   each value: length 4 (negative as in the protocol) | hash 8, absent when the length is negative
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct capture_key {
    uint64_t k0, k1;
};

/* Draws a random key. -1, ERR_SERVER: the system gives no random bytes. */
int capture_key_random(struct capture_key *out, struct err *e) MUST_CHECK;
/* SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). */
uint64_t capture_hash(const struct capture_key *k, struct slice s);

struct capture_digest {
    uint16_t consistency;
    int32_t page_size;
    bool paging; /* the request asked for a further page */
    uint8_t batch_kind;
    uint16_t n_statements;
};
void capture_put_digest(struct buf *out, const struct capture_digest *d);
/* Give either id or text; the other's p is NULL. The caller puts the statement's values next. */
void capture_put_digest_statement(struct buf *out, struct slice id, struct slice text, uint16_t n_values);
void capture_put_digest_value(struct buf *out, const struct capture_key *k, int32_t n, const uint8_t *p);

struct capture_digest_statement {
    struct slice id, text; /* one of them is set, the other's p is NULL */
    uint16_t n_values;
    struct rd values;
};
/* The readers return -1 when the digest is damaged. After this call *in is at the first
 * statement. */
int capture_get_digest(struct rd *in, struct capture_digest *out) MUST_CHECK;
int capture_get_digest_statement(struct rd *in, struct capture_digest_statement *out) MUST_CHECK;
/* n below 0: the value is null or unset, and has no hash. */
int capture_get_digest_value(struct rd *values, int32_t *n, uint64_t *hash) MUST_CHECK;
