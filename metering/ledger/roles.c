#include "metering/ledger/roles.h"

#include <stdio.h>
#include <string.h>

struct ledger_role *roles_open(struct roles *r, const char *name) {
    for (uint32_t i = 0; i < r->n; i++)
        if (!strcmp(r->list[i].name, name)) return &r->list[i];
    if (r->n == LEDGER_ROLES) return &r->list[LEDGER_ROLES - 1];
    struct ledger_role *role = &r->list[r->n++];
    *role = (struct ledger_role){0};
    if (r->n < LEDGER_ROLES) snprintf(role->name, sizeof(role->name), "%s", name); /* the last one is for all others */
    return role;
}

void roles_put(const struct roles *r, struct buf *out) {
    buf_uvarint(out, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        size_t n = strlen(r->list[i].name);
        buf_uvarint(out, n);
        buf_put(out, r->list[i].name, n);
        usage_put(&r->list[i].usage, out);
    }
}

void roles_take(struct roles *r, struct slice bytes) {
    struct rd in = rd_of(bytes);
    for (uint64_t n = rd_uvarint(&in); n && !in.bad; n--) {
        char name[LEDGER_ROLE_NAME];
        struct slice s = rd_bytes(&in, rd_uvarint(&in));
        struct usage_sums all = usage_take(&in);
        if (in.bad) return;
        snprintf(name, sizeof(name), "%.*s", (int)(s.n < sizeof(name) ? s.n : sizeof(name)), (const char *)s.p);
        usage_sums_add(&roles_open(r, name)->usage.before, &all);
    }
}
