/* What the CUSTOM_PROPERTIES and AUTOSCALING_SETTINGS of a table come to. They are options of the table (schema_table.options) named
 * "custom_properties.group.key" and "autoscaling_settings.update.key"; their values were checked when they were set. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "system_schema/snapshot.h"

static const char *property(const struct schema_table *t, const char *name) { return option_find(t->options, t->n_options, name); }

static bool is_enabled(const struct schema_table *t, const char *name) {
    const char *text = property(t, name);
    return text && strcasecmp(text, "enabled") == 0;
}

static int64_t number(const struct schema_table *t, const char *name, int64_t otherwise) {
    const char *text = property(t, name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

bool schema_has_ttl(const struct schema_table *t) { return t->default_ttl > 0 || is_enabled(t, "custom_properties.ttl.status"); }
bool schema_has_client_timestamps(const struct schema_table *t) { return is_enabled(t, "custom_properties.client_side_timestamps.status"); }
bool schema_has_pitr(const struct schema_table *t) { return is_enabled(t, "custom_properties.point_in_time_recovery.status"); }

/* Warm throughput (https://docs.aws.amazon.com/keyspaces/latest/devguide/warm-throughput.html): of an on-demand table at least what a new one
 * can serve, of a provisioned one what is provisioned. */
void schema_capacity(const struct schema_table *t, struct schema_capacity *out) {
    const char *mode = property(t, "custom_properties.capacity_mode.throughput_mode");
    bool provisioned = mode && strcasecmp(mode, "PROVISIONED") == 0;
    *out = (struct schema_capacity){.mode = provisioned ? SCHEMA_PROVISIONED : SCHEMA_ON_DEMAND};
    if (provisioned) {
        out->read_units = number(t, "custom_properties.capacity_mode.read_capacity_units", 1);
        out->write_units = number(t, "custom_properties.capacity_mode.write_capacity_units", 1);
    }
    out->warm_read = number(t, "custom_properties.warm_throughput.read_units_per_second", provisioned ? out->read_units : 12000);
    out->warm_write = number(t, "custom_properties.warm_throughput.write_units_per_second", provisioned ? out->write_units : 4000);
    int64_t since = provisioned ? 0 : t->created_ms;
    out->on_demand_since_ms = number(t, "custom_properties.capacity_mode.last_update_to_pay_per_request_timestamp", since);
}

static const char *setting(const struct schema_table *t, enum schema_capacity_kind of, const char *key) {
    char name[256];
    snprintf(name, sizeof name, "autoscaling_settings.provisioned_%s_capacity_autoscaling_update.%s", of == SCHEMA_READ_CAPACITY ? "read" : "write", key);
    return property(t, name);
}

static int64_t setting_number(const struct schema_table *t, enum schema_capacity_kind of, const char *key, int64_t otherwise) {
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
