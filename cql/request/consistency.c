#include "cql/request/consistency.h"

#include <stdlib.h>

#include "cql/request/db.h"

static const struct {
    const char *name;
    int replicas;
} levels[] = {
#define CONSISTENCY(id, replicas) {#id, replicas},
#define CONSISTENCY_REFUSED(...)
#include "cql/request/consistency.def"
#undef CONSISTENCY
#undef CONSISTENCY_REFUSED
};

const char *consistency_name(uint16_t level) { return level < ARRAY_LEN(levels) ? levels[level].name : "UNKNOWN"; }

static const char *class_of(const struct schema_table *t) {
    return t->keyspace->n_replication ? t->keyspace->replication[0].value : "";
}

static bool is_simple(const struct schema_table *t) { return strstr(class_of(t), "SimpleStrategy") != NULL; }

static int check_serial(const struct cql_request *r) {
    uint16_t serial = r->params.serial_consistency;
    if (serial == CL_SERIAL || serial == CL_LOCAL_SERIAL) return 0;
    return err_invalid(r->err, "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
}

/* Checks the level against Amazon Keyspaces' rules. */
static int check_compat(const struct cql_request *r, enum consistency_use use, struct compat k) {
    uint16_t level = r->params.consistency;
    if (use != CONSISTENCY_READ) return compat_refuse(&k, REFUSE_WRITE_LEVEL, r->err, consistency_name(level));
    return level == CL_ONE || level == CL_LOCAL_ONE
               ? 0
               : compat_refuse(&k, REFUSE_READ_LEVEL, r->err, consistency_name(level));
}

int consistency_check(const struct cql_request *r, enum consistency_use use, const struct schema_table *t,
                      const struct compat *k) {
    uint16_t level = r->params.consistency;
    if (use == CONSISTENCY_CONDITION && check_serial(r)) return -1;
    if (UNLIKELY(level != CL_LOCAL_QUORUM && k->mode != COMPAT_OFF) && check_compat(r, use, compat_in(r, k))) return -1;
    bool usual = level == CL_LOCAL_QUORUM || level == CL_LOCAL_ONE || level == CL_ONE ||
                 level == CL_QUORUM; /* no row has these */
    if (LIKELY(usual) || r->db->options.mode != MODE_CASSANDRA) return 0;
#define CONSISTENCY(id, replicas)
#define CONSISTENCY_REFUSED(what, id, when, ...) \
    if (use == CONSISTENCY_##what && level == CL_##id && (when)) return err_invalid(r->err, __VA_ARGS__);
#include "cql/request/consistency.def"
#undef CONSISTENCY
#undef CONSISTENCY_REFUSED
    return 0;
}

static int replicas_of(const struct schema_keyspace *ks) {
    int n = 0;
    for (uint32_t i = 1; i < ks->n_replication; i++) n += atoi(ks->replication[i].value);
    return n;
}

int consistency_reach(const struct cql_request *r, const struct schema_keyspace *ks) {
    int needed = r->params.consistency < ARRAY_LEN(levels) ? levels[r->params.consistency].replicas : 0;
    if (needed <= 1 || r->db->options.mode != MODE_CASSANDRA) return 0;
    int alive = replicas_of(ks);
    if (alive >= needed) return 0;
    err_set(r->err, ERR_UNAVAILABLE, "Cannot achieve consistency level %s", consistency_name(r->params.consistency));
    r->err->detail = (struct err_detail){.consistency = r->params.consistency, .required = needed, .received = alive};
    return -1;
}
