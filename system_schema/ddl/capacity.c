/* Quotas of Amazon Keyspaces on provisioned capacity: the units of one table and of all tables
 * together, and how often capacity may change. metering/limits/limit.def holds the quotas of units;
 * --limit-values sets others, as an account can have them raised. A table keeps the capacity
 * that it already has.
 *
 * Options of the table, hidden from clients, hold the times that a change of capacity depends
 * on:
 *   capacity.on_demand_ms   when the table became on-demand last, in milliseconds since 1970; of a
 *                           table that is provisioned now
 *   capacity.decreases      "DAY COUNT LAST": the day (since 1970, UTC) of the last decrease, how many
 *                           decreases there were on it, and the milliseconds of the last */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyspaces/compat.h"
#include "keyspaces/quota.h"
#include "system_schema/ddl/apply.h"

static const struct words {
    const char *name, *units, *scaling, *warm;
} words[] = {[SCHEMA_READ_CAPACITY] = {"read", ".read_capacity_units", "autoscaling_settings.provisioned_read_",
                                       "custom_properties.warm_throughput.read_units_per_second"},
             [SCHEMA_WRITE_CAPACITY] = {"write", ".write_capacity_units", "autoscaling_settings.provisioned_write_",
                                        "custom_properties.warm_throughput.write_units_per_second"}};

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* The most units that are provisioned in any Region or that auto scaling may provision. */
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

static int64_t number_of(const struct schema_table *t, const char *name) {
    const char *text = t ? option_find(t->options, t->n_options, name) : NULL;
    return text ? strtoll(text, NULL, 10) : 0;
}

static int check(struct apply *a, const struct entry *x, const struct schema_table *t,
                 const struct schema_table *before, enum schema_capacity_kind of) {
    const struct catalog_quota *q = &a->ddl->quota;
    const struct words *w = &words[of];
    int64_t most = most_of(t, w), units = provisioned(t, of);
    bool exceeds = q->table_units[of] && most > q->table_units[of] && most > most_of(before, w);
    if (exceeds && compat_refuse(&a->compat, REFUSE_TABLE_CAPACITY, a->err, (long long)q->table_units[of], w->name,
                                 (long long)most))
        return -1;
    int64_t warm = number_of(t, w->warm);
    bool too_warm = q->table_units[of] && warm > q->table_units[of] && warm > number_of(before, w->warm);
    if (too_warm && compat_refuse(&a->compat, REFUSE_WARM_THROUGHPUT, a->err, (long long)q->table_units[of], w->name,
                                  (long long)warm))
        return -1;
    if (!q->account_units[of] || units <= provisioned(before, of)) return 0;
    int64_t all = units;
    for (uint32_t i = 0; i < a->objects->n_entries; i++) {
        const struct entry *other = a->objects->entries[i];
        if (other != x && other->kind == &table_kind && !entry_is_gone(other)) all += provisioned(other->shown, of);
    }
    if (all <= q->account_units[of]) return 0;
    return compat_refuse(&a->compat, REFUSE_ACCOUNT_CAPACITY, a->err, (long long)q->account_units[of], w->name,
                         (long long)all);
}

int apply_check_capacity(struct apply *a, const struct entry *x, const struct schema_table *t,
                         const struct schema_table *before) {
    if (a->compat.mode == COMPAT_OFF) return 0;
    return check(a, x, t, before, SCHEMA_READ_CAPACITY) || check(a, x, t, before, SCHEMA_WRITE_CAPACITY) ? -1 : 0;
}

/* ---- how often ---- */

static const char on_demand_name[] = "capacity.on_demand_ms", decreases_name[] = "capacity.decreases";

static int note_decrease(struct apply *a, const struct schema_table *before, struct table_parts *parts,
                         int64_t now_ms) {
    const char *text = option_find(before->options, before->n_options, decreases_name);
    int64_t day = 0, n = 0, last_ms = 0, today = now_ms / (24 * 3600 * 1000LL);
    if (text && sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64, &day, &n, &last_ms) != 3) n = 0;
    if (day != today) n = 0;
    bool early = n >= QUOTA_DECREASES && now_ms - last_ms < QUOTA_DECREASE_PAUSE_SECONDS * 1000LL;
    if (early && compat_refuse(&a->compat, REFUSE_DECREASES, a->err, (int)n, QUOTA_DECREASES)) return -1;
    return apply_set_option(a, parts, decreases_name,
                            arena_printf(&a->arena, "%" PRId64 " %" PRId64 " %" PRId64, today, n + 1, now_ms));
}

int apply_note_capacity(struct apply *a, const struct schema_table *before, struct table_parts *parts) {
    const struct schema_table after = {.options = parts->options, .n_options = parts->n_options};
    struct schema_capacity was, now;
    int64_t now_ms = clock_wall_us(a->objects->clock) / 1000;
    schema_capacity(before, &was);
    schema_capacity(&after, &now);
    if (now.mode == SCHEMA_ON_DEMAND) {
        int64_t since_ms = was.mode == SCHEMA_ON_DEMAND ? 0 : number_of(before, on_demand_name);
        bool early = since_ms && now_ms - since_ms < QUOTA_MODE_SWITCH_SECONDS * 1000LL;
        return early ? compat_refuse(&a->compat, REFUSE_MODE_SWITCH, a->err) : 0;
    }
    if (was.mode == SCHEMA_ON_DEMAND)
        return apply_set_option(a, parts, on_demand_name, arena_printf(&a->arena, "%" PRId64, was.on_demand_since_ms));
    bool less = now.read_units < was.read_units || now.write_units < was.write_units;
    return less ? note_decrease(a, before, parts, now_ms) : 0;
}
