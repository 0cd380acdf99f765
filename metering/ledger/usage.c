#include "metering/ledger/usage.h"

#include <stdio.h>
#include <string.h>

void usage_turn(struct usage *u, uint32_t second) {
    for (int i = 0; i < USAGE_FIGURES; i++) u->before.n[i] += u->in_second.n[i];
    usage_window_add(&u->in_minute, &u->in_second);
    u->last_second = u->second + 1 == second ? u->in_second : (struct usage_window){0};
    u->in_second = (struct usage_window){0};
    u->second = second;
    if (u->minute == second / 60) return;
    u->last_minute = u->minute + 1 == second / 60 ? u->in_minute : (struct usage_window){0};
    u->in_minute = (struct usage_window){0};
    u->minute = second / 60;
}

void usage_merge(struct usage *to, const struct usage *from, uint32_t second) {
    struct usage f = *from;
    if (f.second > second) second = f.second;
    if (to->second > second) second = to->second;
    usage_roll(&f, second);
    usage_roll(to, second);
    usage_sums_add(&to->before, &f.before);
    usage_window_add(&to->in_second, &f.in_second);
    usage_window_add(&to->last_second, &f.last_second);
    usage_window_add(&to->in_minute, &f.in_minute);
    usage_window_add(&to->last_minute, &f.last_minute);
}

/* Lowers *n by at most by, and returns the part of by that exceeded *n. */
static uint64_t lessen(uint64_t *n, uint64_t by) {
    uint64_t taken = by < *n ? by : *n;
    *n -= taken;
    return by - taken;
}

static uint64_t window_lessen(uint32_t *n, uint64_t by) {
    uint64_t left = *n, rest = lessen(&left, by);
    *n = (uint32_t)left;
    return rest;
}

void usage_reverse(struct usage *u, uint32_t second, const struct usage_sums *what) {
    usage_roll(u, u->second > second ? u->second : second);
    for (int i = 0; i < USAGE_FIGURES; i++) {
        uint64_t rest = window_lessen(&u->in_second.n[i], what->n[i]);
        (void)lessen(&u->before.n[i], rest);
        (void)window_lessen(&u->last_second.n[i], rest);
        (void)window_lessen(&u->last_minute.n[i], window_lessen(&u->in_minute.n[i], rest));
    }
}

/* ---- roles ---- */

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
