/* The meaning of a table's CUSTOM_PROPERTIES and AUTOSCALING_SETTINGS. They are options of the
 * table (schema_table.options) named "custom_properties.group.key" and
 * "autoscaling_settings.update.key"; their values were checked when they were set. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "system_schema/objects/snapshot.h"

static const char *property(const struct schema_table *t, const char *name) {
    return option_find(t->options, t->n_options, name);
}

static bool is_enabled(const struct schema_table *t, const char *name) {
    const char *text = property(t, name);
    return text && strcasecmp(text, "enabled") == 0;
}

static int64_t number(const struct schema_table *t, const char *name, int64_t otherwise) {
    const char *text = property(t, name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

bool schema_has_ttl(const struct schema_table *t) {
    return t->default_ttl > 0 || is_enabled(t, "custom_properties.ttl.status");
}
/* The tables of a multi-Region keyspace always have client-side timestamps
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/multiRegion-replication.html). */
bool schema_has_client_timestamps(const struct schema_table *t) {
    return is_enabled(t, "custom_properties.client_side_timestamps.status") ||
           (t->keyspace && schema_regions(t->keyspace) > 1);
}
bool schema_has_pitr(const struct schema_table *t) {
    return is_enabled(t, "custom_properties.point_in_time_recovery.status");
}

/* Warm throughput (https://docs.aws.amazon.com/keyspaces/latest/devguide/warm-throughput.html):
 * by default, for an on-demand table, what a new one can serve; for a provisioned table, what is
 * provisioned. */
void schema_capacity(const struct schema_table *t, struct schema_capacity *out) {
    const char *mode = property(t, "custom_properties.capacity_mode.throughput_mode");
    bool provisioned = mode && strcasecmp(mode, "PROVISIONED") == 0;
    *out = (struct schema_capacity){.mode = provisioned ? SCHEMA_PROVISIONED : SCHEMA_ON_DEMAND};
    if (provisioned) {
        out->read_units = number(t, "custom_properties.capacity_mode.read_capacity_units", 1);
        out->write_units = number(t, "custom_properties.capacity_mode.write_capacity_units", 1);
    }
    out->warm_read = number(t, "custom_properties.warm_throughput.read_units_per_second",
                            provisioned ? out->read_units : 12000);
    out->warm_write = number(t, "custom_properties.warm_throughput.write_units_per_second",
                             provisioned ? out->write_units : 4000);
    int64_t since = provisioned ? 0 : t->created_ms;
    out->on_demand_since_ms = number(t, "custom_properties.capacity_mode.last_update_to_pay_per_request_timestamp",
                                     since);
}

static const char *setting(const struct schema_table *t, enum schema_capacity_kind of, const char *key) {
    char name[256];
    snprintf(name, sizeof name, "autoscaling_settings.provisioned_%s_capacity_autoscaling_update.%s",
             of == SCHEMA_READ_CAPACITY ? "read" : "write", key);
    return property(t, name);
}

static int64_t setting_number(const struct schema_table *t, enum schema_capacity_kind of, const char *key,
                              int64_t otherwise) {
    const char *text = setting(t, of, key);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

#define POLICY "scaling_policy.target_tracking_scaling_policy_configuration."

void schema_autoscaling(const struct schema_table *t, enum schema_capacity_kind of, struct schema_autoscaling *out) {
    const char *disabled = setting(t, of, "autoscaling_disabled"), *target = setting(t, of, POLICY "target_value");
    const char *no_scale_in = setting(t, of, POLICY "disable_scale_in");
    *out = (struct schema_autoscaling){.enabled = disabled && strcasecmp(disabled, "false") == 0};
    out->minimum_units = setting_number(t, of, "minimum_units", 1);
    out->maximum_units = setting_number(t, of, "maximum_units", 40000);
    out->target_percent = target ? strtod(target, NULL) : 70;
    out->scale_in_cooldown = setting_number(t, of, POLICY "scale_in_cooldown", 0);
    out->scale_out_cooldown = setting_number(t, of, POLICY "scale_out_cooldown", 0);
    out->disable_scale_in = no_scale_in && strcasecmp(no_scale_in, "true") == 0;
}

/* ---- together ---- */

/* True if an option's name has the prefix. */
static bool has_any(const struct schema_table *t, const char *prefix) {
    for (uint32_t i = 0; i < t->n_options; i++)
        if (strncmp(t->options[i].name, prefix, strlen(prefix)) == 0) return true;
    return false;
}

/* True if the table has a setting with the prefix that is new or has changed. */
static bool says_anew(const struct schema_table *t, const struct schema_table *before, const char *prefix) {
    for (uint32_t i = 0; i < t->n_options; i++) {
        const struct schema_option *o = &t->options[i];
        const char *was = before ? property(before, o->name) : NULL;
        if (strncmp(o->name, prefix, strlen(prefix)) == 0 && (!was || strcmp(was, o->value) != 0)) return true;
    }
    return false;
}

static int check_capacity(const struct schema_table *t, struct err *e) {
    const char *mode = property(t, "custom_properties.capacity_mode.throughput_mode");
    const char *read = property(t, "custom_properties.capacity_mode.read_capacity_units");
    const char *write = property(t, "custom_properties.capacity_mode.write_capacity_units");
    bool provisioned = mode && strcmp(mode, "PROVISIONED") == 0;
    if (!mode && (read || write)) return err_invalid(e, "capacity_mode needs throughput_mode");
    if (provisioned && (!read || !write))
        return err_invalid(e, "throughput_mode PROVISIONED needs read_capacity_units and write_capacity_units");
    if (!provisioned && (read || write))
        return err_invalid(e, "read_capacity_units and write_capacity_units are for throughput_mode PROVISIONED");
    if (!provisioned && has_any(t, "autoscaling_settings."))
        return err_invalid(e, "AUTOSCALING_SETTINGS are for throughput_mode PROVISIONED");
    return 0;
}

/* Warm throughput that a statement set may not decrease. Warm throughput that follows from the
 * capacity changes with it. */
static int check_warm_throughput(const struct schema_table *t, const struct schema_table *before, struct err *e) {
    static const char read[] = "custom_properties.warm_throughput.read_units_per_second";
    static const char write[] = "custom_properties.warm_throughput.write_units_per_second";
    struct schema_capacity now, was;
    schema_capacity(t, &now);
    schema_capacity(before ? before : t, &was);
    bool says_read = property(t, read) || (before && property(before, read));
    bool says_write = property(t, write) || (before && property(before, write));
    if ((!says_read || now.warm_read >= was.warm_read) && (!says_write || now.warm_write >= was.warm_write)) return 0;
    return err_invalid(
        e, "warm_throughput may not become less: it is %lld read_units_per_second and %lld write_units_per_second",
        (long long)was.warm_read, (long long)was.warm_write);
}

static int check_autoscaling(const struct schema_table *t, struct err *e) {
    for (enum schema_capacity_kind of = SCHEMA_READ_CAPACITY; of <= SCHEMA_WRITE_CAPACITY; of++) {
        struct schema_autoscaling a;
        schema_autoscaling(t, of, &a);
        const char *what = of == SCHEMA_READ_CAPACITY ? "provisioned_read_capacity_autoscaling_update"
                                                      : "provisioned_write_capacity_autoscaling_update";
        if (a.minimum_units > a.maximum_units)
            return err_invalid(e, "minimum_units of %s is greater than maximum_units", what);
        if (a.enabled && !setting(t, of, POLICY "target_value")) return err_invalid(e, "%s needs a target_value", what);
    }
    return 0;
}

static const char *view_type(const struct schema_table *t) {
    const char *type = property(t, "custom_properties.cdc_specification.view_type");
    return type ? type : "NEW_AND_OLD_IMAGES";
}

static bool has_stream(const struct schema_table *t) {
    const char *cdc = property(t, "cdc");
    return cdc && strcmp(cdc, "true") == 0;
}

enum { TAGS_MAX = 50 };

int schema_settings_check(const struct schema_table *t, const struct schema_table *before,
                          const struct schema_keyspace *ks, struct err *e) {
    if (check_capacity(t, e) || check_warm_throughput(t, before, e) || check_autoscaling(t, e)) return -1;
    const char *encryption = property(t, "custom_properties.encryption_specification.encryption_type");
    const char *key = property(t, "custom_properties.encryption_specification.kms_key_identifier");
    bool own_key = encryption && strcmp(encryption, "CUSTOMER_MANAGED_KMS_KEY") == 0;
    if (own_key && !key) return err_invalid(e, "encryption_type CUSTOMER_MANAGED_KMS_KEY needs a kms_key_identifier");
    if (!own_key && key) return err_invalid(e, "kms_key_identifier is for encryption_type CUSTOMER_MANAGED_KMS_KEY");
    /* These two cannot be turned off once they are on. */
    if (before && is_enabled(before, "custom_properties.ttl.status") && !is_enabled(t, "custom_properties.ttl.status"))
        return err_invalid(e, "ttl is enabled and cannot be disabled");
    if (before && is_enabled(before, "custom_properties.client_side_timestamps.status") &&
        !is_enabled(t, "custom_properties.client_side_timestamps.status"))
        return err_invalid(e, "client_side_timestamps are enabled and cannot be disabled");
    if (!has_stream(t) && has_any(t, "custom_properties.cdc_specification."))
        return err_invalid(e, "cdc_specification is for tables with cdc = true");
    if (before && has_stream(t) && has_stream(before) && strcmp(view_type(t), view_type(before)) != 0)
        return err_invalid(e, "The view_type of a stream cannot be changed: it is %s", view_type(before));
    if (schema_regions(ks) < 2 && says_anew(t, before, "custom_properties.replica_updates."))
        return err_invalid(e, "replica_updates are for multi-Region keyspaces");
    uint32_t n_tags = 0;
    for (uint32_t i = 0; i < t->n_options; i++) n_tags += strncmp(t->options[i].name, "tags.", 5) == 0;
    return n_tags <= TAGS_MAX ? 0 : err_invalid(e, "A table may have at most %d tags", TAGS_MAX);
}
