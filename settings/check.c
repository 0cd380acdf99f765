/* How the settings of a table fit together, and which change of them is allowed. */
#include <string.h>

#include "keyspaces/ddl_error.h"
#include "settings/settings.h"

/* All settings that these functions check are of keyspaces mode. */
#define refuse(e, ...) ddl_error((e), false, __VA_ARGS__)

/* Warm throughput (https://docs.aws.amazon.com/keyspaces/latest/devguide/warm-throughput.html):
 * by default, for an on-demand table, what a new one can serve; for a provisioned table, its
 * provisioned units. */
void settings_capacity(const struct table_settings *s, int64_t created_ms, struct table_capacity *out) {
    bool provisioned = s->throughput_mode == PROVISIONED;
    *out = (struct table_capacity){.provisioned = provisioned,
                                   .warm = {s->warm_read_units, s->warm_write_units},
                                   .on_demand_since_ms = provisioned ? 0 : created_ms};
    if (s->given & SETTING_BIT(on_demand_since_ms)) out->on_demand_since_ms = s->on_demand_since_ms;
    if (!provisioned) return;
    out->units[READ_CAPACITY] = s->read_capacity_units;
    out->units[WRITE_CAPACITY] = s->write_capacity_units;
    if (!(s->given & SETTING_BIT(warm_read_units))) out->warm[READ_CAPACITY] = s->read_capacity_units;
    if (!(s->given & SETTING_BIT(warm_write_units))) out->warm[WRITE_CAPACITY] = s->write_capacity_units;
}

static int check_capacity(const struct table_settings *s, struct err *e) {
    bool mode = s->given & SETTING_BIT(throughput_mode), provisioned = s->throughput_mode == PROVISIONED;
    bool read = s->given & SETTING_BIT(read_capacity_units), write = s->given & SETTING_BIT(write_capacity_units);
    if (!mode && (read || write)) return refuse(e, DDL_NO_MODE);
    if (provisioned && (!read || !write))
        return refuse(e, DDL_NO_UNITS);
    if (!provisioned && (read || write)) return refuse(e, DDL_ON_DEMAND_UNITS);
    if (!provisioned && (settings_have_scaling(s, READ_CAPACITY) || settings_have_scaling(s, WRITE_CAPACITY)))
        return refuse(e, DDL_ON_DEMAND_SCALING);
    for (uint32_t i = 0; i < s->n_regions && !provisioned; i++)
        if (s->regions[i].given & REGION_BIT(read_capacity_units)) return refuse(e, DDL_ON_DEMAND_REPLICA);
    return 0;
}

/* Warm throughput that a statement set may not decrease. Warm throughput that follows from the
 * capacity changes with it. */
static int check_warm_throughput(const struct table_settings *s, const struct table_settings *before, struct err *e) {
    static const uint64_t bits[] = {SETTING_BIT(warm_read_units), SETTING_BIT(warm_write_units)};
    struct table_capacity now, was;
    settings_capacity(s, 0, &now);
    settings_capacity(before ? before : s, 0, &was);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        if ((s->given | (before ? before->given : 0)) & bits[of] && now.warm[of] < was.warm[of])
            return refuse(e, DDL_WARM_LESS, (long long)was.warm[READ_CAPACITY], (long long)was.warm[WRITE_CAPACITY]);
    return 0;
}

static int check_scaling(const struct scaling_settings *s, const char *what, struct err *e) {
    if (s->minimum_units > s->maximum_units) return refuse(e, DDL_SCALING_RANGE);
    if (!s->autoscaling_disabled && !(s->given & SCALING_BIT(target_value)))
        return refuse(e, DDL_SCALING_NO_TARGET, what);
    return 0;
}

/* True if a Region has units that it did not have before. */
static bool changes_regions(const struct table_settings *s, const struct table_settings *before) {
    for (uint32_t i = 0; i < s->n_regions; i++) {
        const struct region_settings *r = &s->regions[i],
                                     *was = before ? settings_find_region(before, r->region) : NULL;
        if (r->given && (!was || !was->given || was->read_capacity_units != r->read_capacity_units)) return true;
    }
    return false;
}

int settings_check_together(const struct table_settings *s, const struct table_settings *before, bool multi_region,
                            struct err *e) {
    static const char *const views[] = {"NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"};
    if (check_capacity(s, e) || check_warm_throughput(s, before, e) ||
        check_scaling(&s->scaling[READ_CAPACITY], "provisioned_read_capacity_autoscaling_update", e) ||
        check_scaling(&s->scaling[WRITE_CAPACITY], "provisioned_write_capacity_autoscaling_update", e))
        return -1;
    bool own_key = s->encryption_type == CUSTOMER_MANAGED_KMS_KEY, key = s->given & SETTING_BIT(kms_key_identifier);
    if (own_key && !key) return refuse(e, DDL_NO_KMS_KEY);
    if (own_key && multi_region) return refuse(e, DDL_KMS_REGIONS);
    /* These two cannot be turned off once they are on. */
    if (before && before->ttl && !s->ttl) return refuse(e, DDL_TTL_STAYS);
    if (before && before->client_side_timestamps && !s->client_side_timestamps)
        return refuse(e, DDL_TIMESTAMPS_STAY);
    if (!s->cdc && s->given & setting_group(SETTING_BIT(view_type)))
        return refuse(e, DDL_STREAM_OFF);
    if (before && s->cdc && before->cdc && s->view_type != before->view_type)
        return refuse(e, DDL_STREAM_VIEW, views[before->view_type]);
    if (!multi_region && changes_regions(s, before))
        return refuse(e, DDL_REPLICA_REGIONS);
    return s->tags.n <= TAGS_MAX ? 0 : refuse(e, DDL_TAGS_MANY, TAGS_MAX);
}

/* ---- what one ALTER TABLE may change ---- */

/* Capacity and its auto scaling belong together, and so do the stream and its specification;
 * options that do nothing on Keyspaces are no settings. Returns NULL if it is no setting. */
static const char *changed_name(const struct table_settings *change, enum setting_id id) {
    const struct setting *row = &setting_rows[id];
    if (!(change->given >> id & 1)) return NULL;
    if (id == SETTING_cdc) return "cdc_specification";
    if (id == SETTING_comment || id == SETTING_default_time_to_live || id == SETTING_tags) return row->name;
    return row->skip ? row->name + row->skip : NULL;
}

int settings_refuse_several(const struct setting_context *x, const struct table_settings *change) {
    bool capacity = settings_have_scaling(change, READ_CAPACITY) || settings_have_scaling(change, WRITE_CAPACITY) ||
                    settings_have_region_units(change);
    const char *one = capacity ? "capacity_mode" : NULL;
    for (int id = 0; id < SETTINGS; id++) {
        const char *other = changed_name(change, id);
        size_t n = other ? strcspn(other, ".") : 0, m = one ? strcspn(one, ".") : 0;
        if (one && other && (m != n || strncmp(one, other, n) != 0))
            return compat_refuse(x->compat, REFUSE_ALTER_SETTINGS, x->err, (int)m, one, (int)n, other);
        if (other) one = other;
    }
    return 0;
}
