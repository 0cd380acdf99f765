/* Posts a request to the ledger once its outcome is known: connection, work, charge or refusal. */
#pragma once

#include "metering/ledger/figure.h"
#include "native_protocol/call.h"

struct np_options;

/* The ledger's name for the kind of a statement. */
enum operation npi_operation_of(enum stmt_kind kind);
/* Sets the statement that the call is posted as (call->statement_id). Called before npi_post and
 * before the call's claim is made. */
void npi_post_name(struct np_call *call);
/* Requests that take this many microseconds or more are logged; 0: none is. */
int64_t npi_post_slow_us(const struct np_options *o);
/* Called once for every query request, before its memory is freed. The loop's thread. */
void npi_post(struct np_call *call);
