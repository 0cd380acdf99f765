/* The id of a result's metadata, and of a prepared statement: MD5, as Cassandra takes it. */
#pragma once

#include "cql/request/request.h"

/* MD5 of names and types of a result: result_metadata_id. */
int result_meta_hash(struct result_meta *m, struct err *e) MUST_CHECK;
/* 16 bytes to out. */
int result_md5(struct slice bytes, uint8_t *out, struct err *e) MUST_CHECK;
