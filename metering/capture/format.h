/* The file format of a capture: the requests that a server answered, with their outcomes and their
 * charges, one record after the other. Integers are big-endian; a uvarint is LEB128; a string is a
 * uvarint length and its bytes. A field without a size is a uvarint, or a string where it is text.
 *
 *   header   "TALLYCAP" | version 2 | flags 2 (1 hashed, 2 strict, 4 cassandra mode) | size model 1
 *            | write size 1 | timestamp size 4 | started 8, microseconds since 1970 | part 4 |
 *            CRC-32C of it 4
 *   record   length 4 | CRC-32C of the length and the payload 4 | payload: kind 1 | ...
 *
 *     STATEMENT  id 16 | keyspace | text
 *                a prepared statement; precedes the first request of this file that names its id
 *     REQUEST    began, after the header's moment | took, microseconds | connection | version 1 |
 *                flags of its envelope 1 | opcode 1 | marks 1 |
 *                outcome (0, or the code of its error) | read units x 2 | write units x 2 | static
 *                write units x 2 | bytes of rows | of static data |
 *                rows read | rows returned | keyspace of its session | body
 *     DROPPED    how many requests are missing here: the recorder's buffer had no room for them
 *     END        why it ends
 *
 * The body is the request's, as the native protocol has it (v3 to v5; with its custom payload when
 * the flags say so). A digest (metering/capture/digest.h) replaces it in a capture with hashed values (flag
 * 1), and for a statement that holds a password.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    CAPTURE_VERSION = 1,
    CAPTURE_HEADER = 8 + 2 + 2 + 1 + 1 + 4 + 8 + 4 + 4,
    CAPTURE_RECORD_HEADER = 8,
    CAPTURE_ID = 16,
    CAPTURE_RECORD_MAX = 257 << 20
};

struct capture_header {
    /* strict: the server ran with --compatibility strict; cassandra: in cassandra mode */
    bool hashed, strict, cassandra;
    uint8_t size_model, write_size; /* of the server (metering/size/size.h) */
    uint32_t timestamp_size;
    int64_t started_us;
    uint32_t part; /* from 0; a capture that rotates its files numbers them */
};

enum capture_kind { CAPTURE_STATEMENT = 1, CAPTURE_REQUEST, CAPTURE_DROPPED, CAPTURE_END };
enum capture_mark {
    CAPTURE_THROTTLED = 1,
    CAPTURE_DIGEST = 2,    /* the body is a digest */
    CAPTURE_ONE_REGION = 4 /* the write units are those of one Region: its keyspace has one, or no condition held */
};

struct capture_statement {
    struct slice id, keyspace, text;
};

struct capture_request {
    int64_t began_us; /* since 1970 */
    uint64_t took_us, connection;
    uint8_t version, flags, opcode, marks;
    uint32_t outcome;
    uint64_t read_halves, write_halves, static_halves;
    uint64_t row_bytes, static_bytes, rows_read, rows_returned;
    struct slice keyspace, body;
};

struct capture_record {
    enum capture_kind kind;
    uint64_t at; /* offset in the file */
    union {
        struct capture_statement statement;
        struct capture_request request;
        uint64_t dropped;
        struct slice reason;
    };
};

void capture_put_header(struct buf *out, const struct capture_header *h);
/* Appends one record. header is the one of the file that the record goes to. */
void capture_put_record(struct buf *out, const struct capture_header *header, const struct capture_record *r);

/* -1 and ERR_CONFIG: the file is no capture, has another version, or is damaged. */
int capture_get_header(struct slice file, struct capture_header *out, struct err *e) MUST_CHECK;
/* Reads the record at the offset. Returns its length in bytes, or -1 and ERR_CONFIG with what is
 * wrong. The record points into the file. */
ssize_t capture_get_record(struct slice file, uint64_t at, const struct capture_header *header,
                           struct capture_record *out, struct err *e) MUST_CHECK;
