/* Explains a statement: its reads and writes, its charge summed over its pages, and how to reduce it.
 * `tally explain` and the statement box of the live page share it. */
#pragma once

#include "metering/charge.h"
#include "metering/guidance.h"

/* The partitions that the pages of a statement read; those named by their keys count once, however
 * many rows or ranges of them are read. */
struct partition_count {
    uint64_t n;
    bool by_key;   /* the last one was read by its key, and token is that key's */
    int64_t token;
};

struct explanation {
    bool is_read;
    const struct op_cost *cost; /* of the last page: names and class */
    struct charge charge;
    uint64_t pages, rows_read, rows_returned, bytes_read, filtered, past_limit;
    struct partition_count partitions;
};

void partition_count_add(struct partition_count *p, const struct op_cost *cost);
/* Adds a page, with the charge that charge_compute has made of its cost. */
void explanation_add(struct explanation *x, const struct op_cost *cost, const struct charge *charge);
/* The fields of a JSON object, without braces: units, read_units, write_units, static_write_units,
 * row_bytes, static_bytes, query_class, pages, partitions, rows_read, rows_returned, rules; of a read
 * also guidance: its class, the rating of the class, the granularity of the table's keys that applies,
 * and the table of granularities. */
void explanation_json(const struct explanation *x, struct buf *out);
/* The granularity of the table's partition keys, from its definition alone: a table whose rows all have
 * one partition key is MULTIPLE here. */
enum guidance_granularity explanation_granularity(const struct explanation *x);
/* Advice for a lower charge, one line each; empty when there is none. */
void explanation_advice(const struct explanation *x, struct buf *out);
