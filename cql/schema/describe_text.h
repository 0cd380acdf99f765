/* CREATE statements as DESCRIBE prints them: Cassandra 5.0's text, byte for byte. Pure; any thread. Inside cql only. */
#pragma once

#include "base/buf.h"
#include "system_schema/objects/schema.h"

struct describe_text {
    struct buf *out;
    struct arena *arena; /* of the request */
    bool cassandra_mode;
    bool internals; /* WITH ID = ..., and columns that were dropped */
};

void describe_keyspace(const struct describe_text *d, const struct schema_keyspace *ks);
void describe_type(const struct describe_text *d, const struct schema_type *t);
void describe_table(const struct describe_text *d, const struct schema_table *t);
