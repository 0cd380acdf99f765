/* Posts a request to the ledger once its outcome is known: connection, work, charge or refusal. */
#pragma once

#include "metering/ledger/stats.h"
#include "native_protocol/call.h"

struct np_options;

/* The ledger's name for the kind of a statement. */
enum operation npi_operation_of(enum stmt_kind kind);
/* The kind under which the duration of a call is counted. */
enum np_kind npi_kind_of(const struct np_call *call);
/* Sets the statement that the call is posted as (call->statement_id). Called before npi_post and
 * before the call's ledger_posting is made. */
void npi_post_statement(struct np_call *call);
/* Called once for every query request, before its memory is freed. Reads the loop's clock
 * (npi_loop_time) unless the request is a read that waits in the ledger's queue. Counts the duration of
 * the request, unless is_held: its answer waits for durability, which then counts it. The loop's thread. */
void npi_post(struct np_call *call, bool is_held);
