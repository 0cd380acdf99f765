/* A refusal as people and programs read it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "metering/limits/limiter.h"

/* The beginning of a refusal's text. %s is keyspace.table. */
static const char *const subjects[LIMITS] = {
    [LIMIT_CONNECTION] = "This connection's rate of statements is exceeded",
    [LIMIT_ACCOUNT_READ] = "The account's read throughput is exceeded",
    [LIMIT_ACCOUNT_WRITE] = "The account's write throughput is exceeded",
    [LIMIT_TABLE_READ] = "The read capacity of table %s is exceeded",
    [LIMIT_ON_DEMAND_READ] = "The read capacity of table %s is exceeded",
    [LIMIT_PROVISIONED_READ] = "The read capacity of table %s is exceeded",
    [LIMIT_TABLE_WRITE] = "The write capacity of table %s is exceeded",
    [LIMIT_ON_DEMAND_WRITE] = "The write capacity of table %s is exceeded",
    [LIMIT_PROVISIONED_WRITE] = "The write capacity of table %s is exceeded",
    [LIMIT_PARTITION_READ] = "The read throughput of a partition of %s is exceeded",
    [LIMIT_PARTITION_WRITE] = "The write throughput of a partition of %s is exceeded",
    [LIMIT_ENTITIES_PARTITION] = "Partition guidance: too many entities of a partition of %s",
    [LIMIT_ENTITIES_ACCOUNT] = "Partition guidance: too many entities of the account",
    [LIMIT_GROUP_OPERATIONS] = "Partition guidance: too many operations in a batch on a partition of %s",
    [LIMIT_GROUP_BYTES] = "Partition guidance: a batch on a partition of %s is too large",
    [LIMIT_GROUP_SAME_ROW] = "Partition guidance: a batch on a partition of %s writes a row more than once",
};

static void put_subject(const struct limit_over *o, struct buf *out) {
    const char *subject = subjects[o->limit] ? subjects[o->limit] : limit_info(o->limit)->name;
    const char *name = strstr(subject, "%s");
    if (name) buf_printf(out, "%.*s%s.%s%s", (int)(name - subject), subject, o->keyspace, o->table, name + 2);
    else buf_put_str(out, subject);
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
    char table[160];
    buf_put_str(out, "{");
    json_text(out, "limit", info->name);
    json_flag(out, "enforced", o->enforced);
    if (o->object) snprintf(table, sizeof(table), "%s.%s", o->keyspace, o->table);
    json_text(out, "table", o->object ? table : NULL);
    json_count(out, "rate", (uint64_t)o->rate);
    json_text(out, "unit", info->unit);
    json_amount(out, "asked", o->asked > 0 ? o->asked : -1);
    if (o->read) json_text(out, "guidance_class", o->read);
    json_amount(out, "retry_after_ms", o->retry_us ? (double)milliseconds(o->retry_us) : -1);
    buf_put_str(out, "}");
}
