/* The audit log: who did what, from where, and how it ended: one JSON object a line, in a file that
 * is nobody else's to read. Values are nowhere in it: a statement stands there as what it has in
 * common with those that differ in their values.
 *
 * A line is one write to the file, before the answer leaves the server, so that a killed server has
 * told of every answer; a power cut can take the last seconds. What cannot be written (a full disk)
 * is counted in tally_audit_lost_total and logged, and the request goes on: the log pays. Any
 * thread but for open and close.
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
/* The file may have been moved away. -1: lines go where they went. */
int np_audit_reopen(struct np_audit *a, struct err *e) MUST_CHECK;
void np_audit_close(struct np_audit *a);

/* A request whose outcome is known; and a login, e not set when it succeeded. Where nothing is
 * audited they do nothing. The loop's thread. */
void npi_audit_call(struct np_call *call);
void npi_audit_login(struct np_conn *c, const char *role, const struct err *e);
