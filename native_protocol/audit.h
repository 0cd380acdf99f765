/* The audit log: one JSON object a line with the role, the statement, the client's address and the
 * outcome, in a file that only its owner can read. The log contains no values: a statement appears
 * without its literals (cql/fingerprint.h).
 *
 * Each line is written to the file before the answer leaves the server, so the log of a killed
 * server covers every answer; a power cut can lose the last seconds. A line that cannot be written
 * (a full disk) is counted in tally_audit_lost_total and logged, and the request continues. All
 * functions may be called on any thread, except open and close.
 */
#pragma once

#include "native_protocol/call.h"

enum np_audit_category {
#define AUDIT(id, name, what) NP_AUDIT_##id,
#include "native_protocol/audit.def"
#undef AUDIT
    NP_AUDIT_CATEGORIES
};

struct np_audit;

/* "all", or names with commas between them: one bit each. -1, ERR_CONFIG. */
int np_audit_parse(const char *categories, unsigned *out, struct err *e) MUST_CHECK;
/* NULL and ERR_CONFIG: the file cannot be written. */
struct np_audit *np_audit_open(const char *path, unsigned categories, struct clock *clock, struct err *e) MUST_CHECK;
/* Opens the file anew, after it was moved away. -1: the old file stays in use. */
int np_audit_reopen(struct np_audit *a, struct err *e) MUST_CHECK;
void np_audit_close(struct np_audit *a);

/* Audit a request whose outcome is known, and a login (e is not set when it succeeded). Without an
 * audit log both do nothing. The loop's thread. */
void npi_audit_call(struct np_call *call);
void npi_audit_login(struct np_conn *c, const char *role, const struct err *e);
