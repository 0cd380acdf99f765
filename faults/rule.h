/* A fault that people's tests inject: which requests it matches, which of those it hits, and what
 * it does to them. A row of system_control.faults.
 *
 * Life: columns are set one by one from their CQL values (fault_rule_set); fault_rule_check says
 * whether they make a fault together and resolves its words. Texts are empty and numbers 0 where
 * the row has none (has).
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
#define FAULT_TELLS FAULT_TEXT
#include "faults/column.def"
    FAULT_COLUMNS
};

enum fault_type { FAULT_IS_TEXT, FAULT_IS_LONG, FAULT_IS_INT, FAULT_IS_DOUBLE, FAULT_IS_BOOL, FAULT_IS_TOLD };

struct fault_rule {
    char name[FAULT_NAME_MAX];
    bool has[FAULT_COLUMNS];
#define FAULT_TEXT(column) char column[FAULT_TEXT_MAX];
#define FAULT_LONG(column) int64_t column;
#define FAULT_INT(column) int32_t column;
#define FAULT_DOUBLE(column) double column;
#define FAULT_BOOL(column) bool column;
#define FAULT_TELLS(column) int64_t column;
#include "faults/column.def"
    /* of fault_rule_check */
    int kind;                 /* an enum cql_request_kind; -1: any but PREPARE */
    enum stmt_kind stmt_kind; /* STMT_KINDS: any */
    bool after;
    bool partly;              /* after, of an unlogged batch of which only a part is applied */
    bool fails;
    enum err_code code;       /* when it fails */
    uint16_t level;           /* of consistency, when it has one */
};

const char *fault_column_name(enum fault_column c);
enum fault_type fault_column_type(enum fault_column c);
/* Where the column's value stands in a rule. */
const void *fault_column_at(const struct fault_rule *r, enum fault_column c);
/* The value of a column as CQL has it; n < 0: none. -1, ERR_INVALID: no value of the column. */
int fault_rule_set(struct fault_rule *r, enum fault_column c, const uint8_t *bytes, int32_t n,
                   struct err *e) MUST_CHECK;
/* ERR_INVALID: it is no fault. Its counts begin anew. */
int fault_rule_check(struct fault_rule *r, struct err *e) MUST_CHECK;
/* Whether it hits the request that it matched as the n-th (from 1): the same for the same seed. */
bool fault_rule_hits(const struct fault_rule *r, int64_t matched);
/* Fills e with what the fault answers. */
void fault_rule_fail(const struct fault_rule *r, const struct cql_request *q, struct err *e);
