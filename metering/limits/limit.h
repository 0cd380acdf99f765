/* The limits of requests (limit.def) and their settings: other values, and the reaction to a
 * request that exceeds a limit. */
#pragma once

#include "base/err.h"

enum limit_id {
#define LIMIT(id, name, value, unit, what, confidence, source) LIMIT_##id,
#include "metering/limits/limit.def"
#undef LIMIT
    LIMITS
};

struct limit_info {
    const char *name, *unit, *what, *confidence, *source;
    int64_t value; /* unless set */
};
const struct limit_info *limit_info(enum limit_id id);
static inline bool limit_is_of_reads(enum limit_id id) {
    return id == LIMIT_ACCOUNT_READ || id == LIMIT_TABLE_READ || id == LIMIT_ON_DEMAND_READ ||
           id == LIMIT_PROVISIONED_READ || id == LIMIT_PARTITION_READ;
}
/* Rules about the contents of a batch: a request that exceeds one exceeds it on every retry. */
static inline bool limit_is_group_rule(enum limit_id id) {
    return id == LIMIT_GROUP_OPERATIONS || id == LIMIT_GROUP_BYTES || id == LIMIT_GROUP_SAME_ROW;
}
static inline bool limit_is_guidance(enum limit_id id) { return id >= LIMIT_ENTITIES_PARTITION; }

/* SHADOW counts what ENFORCE would refuse. */
enum limit_mode { LIMITS_OFF, LIMITS_SHADOW, LIMITS_ENFORCE };
const char *limit_mode_name(enum limit_mode m);
/* Returns -1 if there is no such mode. */
int limit_mode_of(struct slice name);

/* The greatest setting: products with it saturate (bucket.h). */
#define LIMIT_VALUE_MAX INT64_C(999999999999)

struct limit_values {
    int64_t of[LIMITS];
};
/* Parses "name=number,name=number"; the other limits have the values of limit.def. Returns -1 with
 * ERR_CONFIG. */
int limit_values_parse(const char *text, struct limit_values *out, struct err *e) MUST_CHECK;

/* Modes of single tables: "keyspace.table=mode,keyspace.*=mode"; the first rule that matches
 * counts. */
struct limit_rule {
    char keyspace[64], table[64]; /* table "*": all of the keyspace */
    enum limit_mode mode;
};
enum { LIMIT_RULES = 256 };
struct limit_rules {
    uint32_t n;
    struct limit_rule rules[LIMIT_RULES];
};
int limit_rules_parse(const char *text, struct limit_rules *out, struct err *e) MUST_CHECK;
enum limit_mode limit_rules_find(const struct limit_rules *r, const char *keyspace, const char *table,
                                 enum limit_mode otherwise);
