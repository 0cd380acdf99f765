/* A fault that users' tests inject: which requests it matches, which of these it hits, and what it
 * does to them. Each is a row of system_control.faults.
 *
 * Life: fault_rule_set sets columns one by one from their CQL values; fault_rule_check then checks
 * them together and resolves the words (opcode, statement, error and so on). A column without a
 * value is an empty text or 0, and its flag in has is false.
 */
#pragma once

#include "cql/request/request.h"

enum { FAULT_NAME_MAX = 65, FAULT_TEXT_MAX = 256, FAULT_DELAY_MAX_MS = 600000 };

enum fault_column {
#define FAULT_TEXT(column) FAULT_COLUMN_##column,
#define FAULT_LONG FAULT_TEXT
#define FAULT_INT FAULT_TEXT
#define FAULT_DOUBLE FAULT_TEXT
#define FAULT_BOOL FAULT_TEXT
#define FAULT_COUNTER FAULT_TEXT
#include "native_protocol/faults/column.def"
    FAULT_COLUMNS
};

enum fault_type { FAULT_IS_TEXT, FAULT_IS_LONG, FAULT_IS_INT, FAULT_IS_DOUBLE, FAULT_IS_BOOL, FAULT_IS_COUNTER };

struct fault_rule {
    char name[FAULT_NAME_MAX];
    bool has[FAULT_COLUMNS];
#define FAULT_TEXT(column) char column[FAULT_TEXT_MAX];
#define FAULT_LONG(column) int64_t column;
#define FAULT_INT(column) int32_t column;
#define FAULT_DOUBLE(column) double column;
#define FAULT_BOOL(column) bool column;
#define FAULT_COUNTER(column) int64_t column;
#include "native_protocol/faults/column.def"
    /* set by fault_rule_check */
    int kind;                 /* an enum cql_request_kind; -1 means any but PREPARE */
    enum stmt_kind stmt_kind; /* STMT_KINDS: any */
    bool after;
    bool partly;              /* after is set, too: only a part of an unlogged batch is applied */
    bool fails;
    enum err_code code;       /* when fails */
    uint16_t level;           /* the number of consistency, when that is given */
};

const char *fault_column_name(enum fault_column c);
enum fault_type fault_column_type(enum fault_column c);
/* Points to the column's value in a rule. */
const void *fault_column_at(const struct fault_rule *r, enum fault_column c);
/* Sets a column from its encoded CQL value; n < 0: null. -1, ERR_INVALID: not a value of the
 * column. */
int fault_rule_set(struct fault_rule *r, enum fault_column c, const uint8_t *bytes, int32_t n,
                   struct err *e) MUST_CHECK;
/* Checks a rule and sets its counts to 0. ERR_INVALID: the columns do not make a fault. */
int fault_rule_check(struct fault_rule *r, struct err *e) MUST_CHECK;
/* Does the rule hit the request that it matched as number matched (from 1)? The same seed gives the
 * same hits. */
bool fault_rule_hits(const struct fault_rule *r, int64_t matched);
/* Fills e with what the fault answers. */
void fault_rule_fail(const struct fault_rule *r, const struct cql_run *q, struct err *e);
