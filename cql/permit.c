#include "cql/permit.h"

#include "cql/request/db.h"
#include "cql/write/batch.h"

static int ask(struct cql_request *r, const struct cql_permission *p, const struct cql_statement *s) {
    return p->permit(p->arg, r, s->kind, s->table, r->err);
}

int cql_permit(struct cql_request *r, const struct cql_statement *s) {
    const struct cql_permission *p = &r->db->options.permission;
    uint32_t n = 0;
    if (LIKELY(!p->permit)) return 0;
    if (s->kind != STMT_BATCH) return ask(r, p, s);
    const struct cql_statement *const *all = batch_statements(s, &n);
    for (uint32_t i = 0; i < n; i++)
        if (ask(r, p, all[i])) return -1;
    return 0;
}
