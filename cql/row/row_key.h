/* From CQL values to the engine's keys: the serialised partition key with its token, and clustering
 * keys in key form.
 *
 * INSERT uses it for values of columns, restrictions for the terms of WHERE, and other code to
 * address one row. Results live in the arena that is passed. Any thread.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/objects/schema.h"

/* A clustering key or a prefix of one. */
struct row_key {
    struct slice ck;    /* key form; empty for no column */
    /* struct eng_row.key_image: set when ck does not decode to the values as written, else p NULL */
    struct slice image;
    size_t bytes;       /* of the values */
};

/* values: one per partition key column, valid for the type. ERR_INVALID: "Invalid null value in
 * condition for column k", "Key may not be empty", "Key length of 65536 is longer than maximum of
 * 65535". */
int row_key_partition(const struct schema_table *t, const struct value *values, struct arena *a, struct eng_part *out,
                      struct err *e) MUST_CHECK;
/* Encodes the first n clustering columns. ERR_INVALID for null. A key may be too long to be written
 * (row_key_check): a reader finds no row with it. */
int row_key_clustering(const struct schema_table *t, const struct value *values, uint32_t n, struct arena *a,
                       struct row_key *out, struct err *e) MUST_CHECK;

/* "Key length of 65536 is longer than maximum of 65535" */
int row_key_check(const struct row_key *key, struct err *e) MUST_CHECK;

/* Decodes one value per partition key column, which point into key. Returns -1 and ERR_SERVER if it is damaged. */
int row_key_split(const struct schema_table *t, struct slice key, struct value *values, struct err *e) MUST_CHECK;
/* One value per clustering column of a whole key; they point into image or into the arena. */
int row_key_decode(const struct schema_table *t, struct slice ck, struct slice image, struct arena *a,
                   struct value *values, struct err *e) MUST_CHECK;
