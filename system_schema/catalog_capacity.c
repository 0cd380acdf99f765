/* How much a table, and all tables together, may be provisioned with: quotas of Amazon Keyspaces, which an account can have raised (limits/limit.def has them,
 * --limit-values sets others). What a table has already it keeps. */
#include <stdlib.h>
#include <string.h>

#include "keyspaces/compat.h"
#include "system_schema/catalog_state.h"

static const struct words {
    const char *name, *units, *scaling;
} words[] = {[SCHEMA_READ_CAPACITY] = {"read", ".read_capacity_units", "autoscaling_settings.provisioned_read_"},
             [SCHEMA_WRITE_CAPACITY] = {"write", ".write_capacity_units", "autoscaling_settings.provisioned_write_"}};

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What is provisioned of it, in any Region, or may be by auto scaling. */
static int64_t most_of(const struct schema_table *t, const struct words *w) {
    int64_t most = 0;
    for (uint32_t i = 0; t && i < t->n_options; i++) {
        const char *name = t->options[i].name;
        bool scaling = strncmp(name, w->scaling, strlen(w->scaling)) == 0 && ends_with(name, "imum_units");
        int64_t units = scaling || ends_with(name, w->units) ? strtoll(t->options[i].value, NULL, 10) : 0;
        if (units > most) most = units;
    }
    return most;
}

static int64_t provisioned(const struct schema_table *t, enum schema_capacity_kind of) {
    struct schema_capacity c;
    if (!t) return 0;
    schema_capacity(t, &c);
    return of == SCHEMA_READ_CAPACITY ? c.read_units : c.write_units;
}

static int64_t of_others(const struct catalog *c, const struct entry *x, enum schema_capacity_kind of) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const struct entry *other = c->entries[i];
        if (other != x && other->kind == &table_kind && !entry_is_gone(other)) sum += provisioned(other->shown, of);
    }
    return sum;
}

static int check(struct apply *a, const struct entry *x, const struct schema_table *t, const struct schema_table *before, enum schema_capacity_kind of) {
    const struct catalog_quota *q = &a->c->quota;
    const struct words *w = &words[of];
    int64_t most = most_of(t, w), units = provisioned(t, of);
    bool exceeds = q->table_units[of] && most > q->table_units[of] && most > most_of(before, w);
    if (exceeds && compat_refuse(&a->compat, REFUSE_TABLE_CAPACITY, a->err, (long long)q->table_units[of], w->name, (long long)most)) return -1;
    if (!q->account_units[of] || units <= provisioned(before, of)) return 0;
    int64_t all = units + of_others(a->c, x, of);
    if (all <= q->account_units[of]) return 0;
    return compat_refuse(&a->compat, REFUSE_ACCOUNT_CAPACITY, a->err, (long long)q->account_units[of], w->name, (long long)all);
}

int apply_check_capacity(struct apply *a, const struct entry *x, const struct schema_table *t, const struct schema_table *before) {
    if (a->compat.mode == COMPAT_OFF) return 0;
    return check(a, x, t, before, SCHEMA_READ_CAPACITY) || check(a, x, t, before, SCHEMA_WRITE_CAPACITY) ? -1 : 0;
}

void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling) { c->scaling = scaling; }

void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct schema_capacity *out) {
    int64_t units[2];
    schema_capacity(t, out);
    if (out->mode != SCHEMA_PROVISIONED || !c->scaling || !c->scaling->units(c->scaling->arg, t->object, units)) return;
    out->read_units = units[SCHEMA_READ_CAPACITY];
    out->write_units = units[SCHEMA_WRITE_CAPACITY];
    if (out->warm_read < out->read_units) out->warm_read = out->read_units;
    if (out->warm_write < out->write_units) out->warm_write = out->write_units;
}
