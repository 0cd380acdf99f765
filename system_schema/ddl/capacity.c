/* Quotas of Amazon Keyspaces on provisioned capacity: the units of one table and of all tables
 * together, and how often capacity may change. metering/limits/limit.def holds the quotas of units;
 * --limit-values sets others, as an account can have them raised. A table keeps the capacity
 * that it already has.
 *
 * The settings was_on_demand_ms and decreases, hidden from clients, hold the times that a change of
 * capacity depends on (settings/setting.def). */
#include <inttypes.h>
#include <stdio.h>

#include "keyspaces/compat.h"
#include "keyspaces/quota.h"
#include "system_schema/ddl/apply.h"

static const char *const names[] = {[READ_CAPACITY] = "read", [WRITE_CAPACITY] = "write"};

static void raise_to(int64_t *most, bool given, int64_t units) {
    if (given && units > *most) *most = units;
}

static void raise_to_scaling(int64_t *most, const struct scaling_settings *s) {
    raise_to(most, s->given & SCALING_BIT(minimum_units), s->minimum_units);
    raise_to(most, s->given & SCALING_BIT(maximum_units), s->maximum_units);
}

/* The most units that are provisioned in any Region or that auto scaling may provision. */
static int64_t most_of(const struct schema_table *t, enum capacity_kind of) {
    const struct table_settings *s = &t->settings;
    struct table_capacity k;
    settings_capacity(s, 0, &k);
    int64_t most = k.units[of];
    raise_to_scaling(&most, &s->scaling[of]);
    for (uint32_t i = 0; i < s->n_regions; i++) {
        raise_to(&most, of == READ_CAPACITY && s->regions[i].given, s->regions[i].read_capacity_units);
        raise_to_scaling(&most, &s->regions[i].scaling[of]);
    }
    return most;
}

static int64_t provisioned(const struct schema_table *t, enum capacity_kind of) {
    struct table_capacity k;
    schema_capacity(t, &k);
    return k.units[of];
}

static int64_t given_warm(const struct table_settings *s, enum capacity_kind of) {
    uint64_t bit = of == READ_CAPACITY ? SETTING_BIT(warm_read_units) : SETTING_BIT(warm_write_units);
    return !(s->given & bit) ? 0 : of == READ_CAPACITY ? s->warm_read_units : s->warm_write_units;
}

static int check(struct apply *a, const struct catalog_object *x, const struct schema_table *t,
                 const struct schema_table *before, enum capacity_kind of) {
    const struct catalog_quota *q = &a->ddl->quota;
    const struct schema_table none = {0};
    if (!before) before = &none;
    int64_t most = most_of(t, of), units = provisioned(t, of), warm = given_warm(&t->settings, of);
    bool exceeds = q->table_units[of] && most > q->table_units[of] && most > most_of(before, of);
    if (exceeds && compat_refuse(&a->compat, REFUSE_TABLE_CAPACITY, a->err, (long long)q->table_units[of], names[of],
                                 (long long)most))
        return -1;
    bool too_warm = q->table_units[of] && warm > q->table_units[of] && warm > given_warm(&before->settings, of);
    if (too_warm && compat_refuse(&a->compat, REFUSE_WARM_THROUGHPUT, a->err, (long long)q->table_units[of], names[of],
                                  (long long)warm))
        return -1;
    if (!q->account_units[of] || units <= provisioned(before, of)) return 0;
    int64_t all = units;
    for (uint32_t i = 0; i < a->objects->n_all; i++) {
        const struct catalog_object *other = a->objects->all[i];
        bool counts = other != x && other->kind == &table_kind && !object_is_gone(other) && other->shown;
        if (counts) all += provisioned(other->shown, of);
    }
    if (all <= q->account_units[of]) return 0;
    return compat_refuse(&a->compat, REFUSE_ACCOUNT_CAPACITY, a->err, (long long)q->account_units[of], names[of],
                         (long long)all);
}

int apply_check_capacity(struct apply *a, const struct catalog_object *x, const struct schema_table *t,
                         const struct schema_table *before) {
    if (a->compat.mode == COMPAT_OFF) return 0;
    return check(a, x, t, before, READ_CAPACITY) || check(a, x, t, before, WRITE_CAPACITY) ? -1 : 0;
}

/* ---- how often ---- */

static int note_decrease(struct apply *a, const struct table_settings *before, struct table_settings *s,
                         int64_t now_ms) {
    int64_t day = 0, n = 0, last_ms = 0, today = now_ms / (24 * 3600 * 1000LL);
    bool any = before->given & SETTING_BIT(decreases);
    if (any && sscanf(before->decreases, "%" SCNd64 " %" SCNd64 " %" SCNd64, &day, &n, &last_ms) != 3) n = 0;
    if (day != today) n = 0;
    bool early = n >= QUOTA_DECREASES && now_ms - last_ms < QUOTA_DECREASE_PAUSE_SECONDS * 1000LL;
    if (early && compat_refuse(&a->compat, REFUSE_DECREASES, a->err, (int)n, QUOTA_DECREASES)) return -1;
    SETTING_SET(s, decreases, arena_printf(&a->arena, "%" PRId64 " %" PRId64 " %" PRId64, today, n + 1, now_ms));
    return s->decreases ? 0 : err_nomem(a->err);
}

int apply_note_capacity(struct apply *a, const struct schema_table *before, struct table_settings *s) {
    struct table_capacity was, now;
    int64_t now_ms = clock_wall_us(a->objects->clock) / 1000;
    schema_capacity(before, &was);
    settings_capacity(s, 0, &now);
    if (!now.provisioned) {
        int64_t since_ms = was.provisioned ? before->settings.was_on_demand_ms : 0;
        bool early = since_ms && now_ms - since_ms < QUOTA_MODE_SWITCH_SECONDS * 1000LL;
        return early ? compat_refuse(&a->compat, REFUSE_MODE_SWITCH, a->err) : 0;
    }
    if (!was.provisioned) {
        SETTING_SET(s, was_on_demand_ms, was.on_demand_since_ms);
        return 0;
    }
    bool less = now.units[READ_CAPACITY] < was.units[READ_CAPACITY] ||
                now.units[WRITE_CAPACITY] < was.units[WRITE_CAPACITY];
    return less ? note_decrease(a, &before->settings, s, now_ms) : 0;
}
