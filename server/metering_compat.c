/* system_metering.refusals, quotas and compatibility: the uses of CQL that Amazon Keyspaces
 * refuses, the numbers that it publishes, and the migration report of --compatibility report. */
#include "keyspaces/quota.h"
#include "keyspaces/report.h"
#include "server/system_metering.h"

static const char *source_of(struct row_out *ro, const char *page, const char *address) {
    return arena_printf(ro->ctx->arena, "%s, %s", page, address);
}

YIELDS_METERING(refusals) {
    for (int id = 0; id < REFUSALS; id++) {
        const struct refusal r = refusal_of((enum refusal_id)id);
        row_text(ro, "id", r.name);
        row_text(ro, "checks", r.checks);
        row_int(ro, "code", (int32_t)r.code);
        row_text(ro, "words", r.words);
        row_text(ro, "instead", r.instead);
        row_text(ro, "source", source_of(ro, r.page, r.address));
        row_text(ro, "confidence", r.confidence);
        row_text(ro, "since", r.since);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

YIELDS_METERING(quotas) {
    for (unsigned i = 0; i < n_quotas; i++) {
        const struct quota q = quota_of(i);
        row_text(ro, "name", q.name);
        row_long(ro, "value", q.value);
        row_text(ro, "what", q.what);
        row_text(ro, "source", source_of(ro, q.page, q.address));
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

/* Copies the texts, which are valid during this call only. */
static int put_use(void *arg, const struct compat_use *u) {
    struct row_out *ro = arg;
    const struct refusal r = refusal_of(u->id);
    row_text(ro, "rule", r.name);
    row_text_copy(ro, "keyspace_name", u->keyspace);
    row_text_copy(ro, "table_name", u->table);
    row_text_copy(ro, "statement", u->statement);
    row_text(ro, "checks", r.checks);
    row_text(ro, "instead", r.instead);
    row_long(ro, "first_seen", u->first_us / 1000);
    row_long(ro, "last_seen", u->last_us / 1000);
    row_count(ro, "uses", u->uses);
    row_text_copy(ro, "words", u->words);
    return row_out_emit(ro);
}

YIELDS_METERING(compatibility) {
    struct compat_report *report = metering_of(ro->table)->report;
    return report ? compat_report_each(report, put_use, ro) : 0;
}
