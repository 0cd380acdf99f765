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

int consistency_check(const struct cql_run *r, enum consistency_use use, const struct schema_table *t,
                      const struct compat *k) {
    uint16_t level = r->in->params.consistency;
    uint16_t serial = r->in->params.serial_consistency;
    if (use == CONSISTENCY_CONDITION && serial != CL_SERIAL && serial != CL_LOCAL_SERIAL)
        return err_invalid(r->err, "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
    bool read = use == CONSISTENCY_READ, one = level == CL_ONE || level == CL_LOCAL_ONE;
    if (UNLIKELY(level != CL_LOCAL_QUORUM && k->mode != COMPAT_OFF && !(read && one))) {
        struct compat own = compat_in(r, k);
        enum refusal_id rule = read ? REFUSE_READ_LEVEL : REFUSE_WRITE_LEVEL;
        if (compat_refuse(&own, rule, r->err, consistency_name(level))) return -1;
    }
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

int consistency_reach(const struct cql_run *r, const struct schema_keyspace *ks) {
    uint16_t level = r->in->params.consistency;
    int needed = level < ARRAY_LEN(levels) ? levels[level].replicas : 0;
    if (needed <= 1 || r->db->options.mode != MODE_CASSANDRA) return 0;
    int alive = 0;
    for (uint32_t i = 1; i < ks->n_replication; i++) alive += atoi(ks->replication[i].value);
    if (alive >= needed) return 0;
    err_set(r->err, ERR_UNAVAILABLE, "Cannot achieve consistency level %s", consistency_name(level));
    r->err->detail = (struct err_detail){.consistency = level, .required = needed, .received = alive};
    return -1;
}
