#include "keyspaces/compat.h"

#include <stdarg.h>
#include <stdio.h>

#include "keyspaces/report.h"

static int say_no(enum refusal_id id, struct err *e, va_list ap) {
    char words[ERR_TEXT_MAX];
    const struct refusal r = refusal_of(id);
    vsnprintf(words, sizeof words, r.words, ap);
    return err_set(e, r.code, "%s%s%s", words, *r.instead ? " " : "", r.instead);
}

int compat_refuse(struct compat *c, enum refusal_id id, struct err *e, ...) {
    if (!c || c->mode == COMPAT_OFF || c->exempt) return 0;
    if (c->mode == COMPAT_REPORT) {
        c->uses.words[id / 64] |= (uint64_t)1 << id % 64;
        compat_report_note(c->report, id, c->keyspace, c->table, c->statement);
        return 0;
    }
    va_list ap;
    va_start(ap, e);
    int rc = say_no(id, e, ap);
    va_end(ap);
    return rc;
}

void compat_is_of(struct compat *c, const char *keyspace, const char *table) {
    static const char *const own[] = {"system_metering", "system_control"};
    c->keyspace = keyspace;
    c->table = table;
    c->exempt = false;
    for (size_t i = 0; keyspace && i < ARRAY_LEN(own); i++) c->exempt = c->exempt || strcmp(keyspace, own[i]) == 0;
}

void compat_again(const struct compat *c) {
    for (int i = 0; i < REFUSALS; i++)
        if (c->uses.words[i / 64] >> i % 64 & 1) compat_report_note(c->report, (enum refusal_id)i, c->keyspace, c->table, c->statement);
}
