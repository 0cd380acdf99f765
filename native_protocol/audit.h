/* The entries of the audit log: one JSON object a line with the role, the statement, the client's
 * address and the outcome, in a file that only its owner can read. The log contains no values: a
 * statement appears without its literals (cql/fingerprint.h). audit_queue.h writes the lines.
 */
#pragma once

#include "native_protocol/call.h"

enum np_audit_category {
#define AUDIT(id, name, what) NP_AUDIT_##id,
#include "native_protocol/audit.def"
#undef AUDIT
    NP_AUDIT_CATEGORIES
};

/* "all", or names with commas between them: one bit each. -1, ERR_CONFIG. */
int np_audit_parse(const char *categories, unsigned *out, struct err *e) MUST_CHECK;

/* Audit a request whose outcome is known, and a login (e is not set when it succeeded). Without an
 * audit log both do nothing. The loop's thread. */
void npi_audit_call(struct np_call *call);
void npi_audit_login(struct np_conn *c, const char *role, const struct err *e);
