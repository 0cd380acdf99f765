/* A refusal as people and programs read it. */
#include <stdio.h>

#include "base/buf.h"
#include "metering/limits/limiter.h"

static void put_subject(const struct limit_over *o, struct buf *out) {
    switch (o->limit) {
    case LIMIT_CONNECTION: buf_put_str(out, "This connection's rate of statements is exceeded"); return;
    case LIMIT_ACCOUNT_READ: buf_put_str(out, "The account's read throughput is exceeded"); return;
    case LIMIT_ACCOUNT_WRITE: buf_put_str(out, "The account's write throughput is exceeded"); return;
    case LIMIT_TABLE_READ:
    case LIMIT_ON_DEMAND_READ:
    case LIMIT_PROVISIONED_READ:
        buf_printf(out, "The read capacity of table %s.%s is exceeded", o->keyspace, o->table);
        return;
    case LIMIT_TABLE_WRITE:
    case LIMIT_ON_DEMAND_WRITE:
    case LIMIT_PROVISIONED_WRITE:
        buf_printf(out, "The write capacity of table %s.%s is exceeded", o->keyspace, o->table);
        return;
    case LIMIT_PARTITION_READ:
        buf_printf(out, "The read throughput of a partition of %s.%s is exceeded", o->keyspace, o->table);
        return;
    case LIMIT_PARTITION_WRITE:
        buf_printf(out, "The write throughput of a partition of %s.%s is exceeded", o->keyspace, o->table);
        return;
    case LIMIT_ENTITIES_PARTITION:
        buf_printf(out, "Partition guidance: too many entities of a partition of %s.%s", o->keyspace, o->table);
        return;
    case LIMIT_ENTITIES_ACCOUNT: buf_put_str(out, "Partition guidance: too many entities of the account"); return;
    case LIMIT_GROUP_OPERATIONS:
        buf_printf(out, "Partition guidance: too many operations in a batch on a partition of %s.%s", o->keyspace,
                   o->table);
        return;
    case LIMIT_GROUP_BYTES:
        buf_printf(out, "Partition guidance: a batch on a partition of %s.%s is too large", o->keyspace, o->table);
        return;
    case LIMIT_GROUP_SAME_ROW:
        buf_printf(out, "Partition guidance: a batch on a partition of %s.%s writes a row more than once", o->keyspace,
                   o->table);
        return;
    default: buf_put_str(out, limit_info(o->limit)->name);
    }
}

static long long milliseconds(int64_t us) { return (long long)((us + 999) / 1000); }

void limit_over_text(const struct limit_over *o, struct buf *out) {
    const struct limit_info *info = limit_info(o->limit);
    put_subject(o, out);
    buf_printf(out, " (%s: %lld %s", info->name, (long long)o->rate, info->unit);
    if (o->asked > 0) buf_printf(out, ", asked %g", o->asked);
    buf_put_str(out, ")");
    if (o->read) buf_printf(out, "; the read is a %s", o->read);
    if (o->retry_us) buf_printf(out, "; retry in %lld ms", milliseconds(o->retry_us));
}

void limit_over_json(const struct limit_over *o, struct buf *out) {
    const struct limit_info *info = limit_info(o->limit);
    buf_printf(out, "{\"limit\":\"%s\",\"enforced\":%s,\"table\":", info->name, o->enforced ? "true" : "false");
    if (o->object) {
        char name[160];
        snprintf(name, sizeof(name), "%s.%s", o->keyspace, o->table);
        buf_json_str(out, slice_str(name));
    } else buf_put_str(out, "null");
    buf_printf(out, ",\"rate\":%lld,\"unit\":\"%s\",\"asked\":", (long long)o->rate, info->unit);
    if (o->asked > 0) buf_printf(out, "%g", o->asked);
    else buf_put_str(out, "null");
    if (o->read) buf_printf(out, ",\"guidance_class\":\"%s\"", o->read);
    buf_put_str(out, ",\"retry_after_ms\":");
    if (o->retry_us) buf_printf(out, "%lld}", milliseconds(o->retry_us));
    else buf_put_str(out, "null}");
}
