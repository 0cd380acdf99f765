/* A request whose outcome is known goes to the ledger: whose it was, what it did, what it was
 * charged or why it was refused. */
#pragma once

#include "ledger/figure.h"
#include "native_protocol/call.h"

struct np_options;

/* What the ledger calls a statement. */
enum operation npi_operation_of(enum stmt_kind kind);
/* Before both that and the claim to what it posts: as which statement it is posted (call->statement_id). */
void npi_post_name(struct np_call *call);
/* From how many microseconds on a request is logged; 0: none is. */
int64_t npi_post_slow_us(const struct np_options *o);
/* Once for every query request, before its memory goes. The loop's thread. */
void npi_post(struct np_call *call);
