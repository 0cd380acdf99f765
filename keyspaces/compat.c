#include "keyspaces/compat.h"

#include <stdarg.h>
#include <stdio.h>

#include "keyspaces/report.h"

/* Keeps the use as a note of the request. Without a list of notes, or memory for a note, the use
 * goes to the report at once, if there is one; it is then counted twice if the request restarts
 * on another thread. */
static void note(struct compat *c, enum refusal_id id, const char *words) {
    struct compat_note *n = c->notes ? ARENA_NEW(c->notes->arena, struct compat_note) : NULL;
    if (!n) {
        if (c->report) compat_report_note(c->report, id, c->keyspace, c->table, c->statement, words);
        return;
    }
    *n = (struct compat_note){.next = c->notes->first, .id = id, .keyspace = c->keyspace, .table = c->table,
                              .statement = c->statement, .words = words ? arena_strdup(c->notes->arena, words) : NULL};
    c->notes->first = n;
}

void compat_notes_give(struct compat_notes *n, struct compat_report *report) {
    for (const struct compat_note *x = n->first; x; x = x->next)
        compat_report_note(report, x->id, x->keyspace, x->table, x->statement, x->words);
    n->first = NULL;
}

int compat_refuse(struct compat *c, enum refusal_id id, struct err *e, ...) {
    va_list ap;
    char words[ERR_TEXT_MAX];
    if (!c || c->mode == COMPAT_OFF || c->exempt) return 0;
    const struct refusal r = refusal_of(id);
    va_start(ap, e);
    vsnprintf(words, sizeof words, r.words, ap);
    va_end(ap);
    if (c->mode == COMPAT_REPORT) {
        c->uses.words[id / 64] |= (uint64_t)1 << id % 64;
        note(c, id, words);
        return 0;
    }
    bool first = !e->set;
    int rc = err_set(e, r.code, "%s%s%s", words, *r.instead ? " " : "", r.instead);
    if (first) e->rule = r.name;
    return rc;
}

void compat_is_of(struct compat *c, const char *keyspace, const char *table) {
    static const char *const own[] = {"system_metering", "system_control"};
    c->keyspace = keyspace;
    c->table = table;
    c->exempt = false;
    for (size_t i = 0; keyspace && i < ARRAY_LEN(own); i++) c->exempt = c->exempt || strcmp(keyspace, own[i]) == 0;
}

void compat_again(struct compat *c) {
    for (int i = 0; i < REFUSALS; i++)
        if (c->uses.words[i / 64] >> i % 64 & 1) note(c, (enum refusal_id)i, NULL);
}
