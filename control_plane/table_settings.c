/* Settings of a table: turns the specifications of a request into CUSTOM_PROPERTIES and
 * AUTOSCALING_SETTINGS, and back. */
#include "control_plane/table_settings.h"

#include <stdlib.h>

#include "system_schema/objects/snapshot.h"

/* ---- to properties ---- */

/* Copies a member's value to the map under another name, if the member is there. */
static void copy(struct call *c, const struct doc *from, const char *member, struct ast_prop_value *to,
                 const char *key) {
    const struct doc *d = doc_get(from, member);
    if (!d) return;
    if (d->kind == DOC_TEXT) tree_put(c, to, key, tree_text(c, (const char *)arena_dup(c->arena, d->text).p));
    else if (d->kind == DOC_FLAG) tree_put(c, to, key, tree_text(c, d->flag ? "true" : "false"));
    else if (d->kind == DOC_WHOLE) tree_put(c, to, key, tree_number(c, d->whole));
    else if (d->kind == DOC_REAL) tree_put(c, to, key, tree_text(c, arena_printf(c->arena, "%.15g", d->real)));
}

struct pair {
    const char *member, *key;
};

static void put_group(struct call *c, struct ast_prop_value *properties, const char *key, const struct doc *spec,
                      const struct pair *pairs, size_t n) {
    struct ast_prop_value *group = spec ? tree_map(c) : NULL;
    for (size_t i = 0; group && i < n; i++) copy(c, spec, pairs[i].member, group, pairs[i].key);
    if (group && group->n) tree_put(c, properties, key, group);
}

/* The option cdc turns CDC on or off; a property says what its records contain. */
static int put_stream(struct call *c, struct ast_props *props, struct ast_prop_value *properties,
                      const struct doc *spec) {
    static const struct pair pairs[] = {{"viewType", "view_type"}, {"propagateTags", "propagate_tags"}};
    const struct doc *status = doc_get(spec, "status");
    if (!status) return 0;
    bool on = slice_is(status->text, "ENABLED");
    if (!on && !slice_is(status->text, "DISABLED"))
        return call_fail(c, API_ValidationException,
                         "The status of a cdcSpecification can be set to ENABLED or DISABLED.");
    tree_add_prop(c, props, "cdc", tree_text(c, on ? "true" : "false"));
    struct ast_prop_value *group = tree_map(c), *tags = tree_tags(c, doc_get(spec, "tags"));
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) copy(c, spec, pairs[i].member, group, pairs[i].key);
    if (tags) tree_put(c, group, "tags", tags);
    if (group && group->n) tree_put(c, properties, "cdc_specification", group);
    return 0;
}

static struct ast_prop_value *scaling_of(struct call *c, const struct doc *settings) {
    static const struct pair outer[] = {{"autoScalingDisabled", "autoscaling_disabled"},
                                        {"minimumUnits", "minimum_units"},
                                        {"maximumUnits", "maximum_units"}};
    static const struct pair inner[] = {{"disableScaleIn", "disable_scale_in"},
                                        {"scaleInCooldown", "scale_in_cooldown"},
                                        {"scaleOutCooldown", "scale_out_cooldown"},
                                        {"targetValue", "target_value"}};
    const struct doc *tracking = doc_get(doc_get(settings, "scalingPolicy"),
                                         "targetTrackingScalingPolicyConfiguration");
    struct ast_prop_value *map = tree_map(c), *policy = tree_map(c);
    for (size_t i = 0; i < ARRAY_LEN(outer); i++) copy(c, settings, outer[i].member, map, outer[i].key);
    put_group(c, policy, "target_tracking_scaling_policy_configuration", tracking, inner, ARRAY_LEN(inner));
    if (policy && policy->n) tree_put(c, map, "scaling_policy", policy);
    return map;
}

static const char *region_of(struct call *c, const struct doc *replica) {
    return doc_text(c->arena, replica, "region");
}

/* In CQL, the read settings of other Regions are inside the settings of this Region. */
static void put_scaling(struct call *c, struct ast_props *props, const struct doc *in) {
    const struct doc *spec = doc_get(in, "autoScalingSpecification"), *replicas = doc_get(in, "replicaSpecifications");
    const struct doc *read = doc_get(spec, "readCapacityAutoScaling"),
                     *write = doc_get(spec, "writeCapacityAutoScaling");
    struct ast_prop_value *all = tree_map(c), *reads = read ? scaling_of(c, read) : tree_map(c), *regions = tree_map(c);
    for (const struct doc *r = replicas ? replicas->first : NULL; r; r = r->next)
        if (doc_get(r, "readCapacityAutoScaling"))
            tree_put(c, regions, region_of(c, r), scaling_of(c, doc_get(r, "readCapacityAutoScaling")));
    if (regions && regions->n) tree_put(c, reads, "replica_updates", regions);
    if (reads && reads->n) tree_put(c, all, "provisioned_read_capacity_autoscaling_update", reads);
    if (write) tree_put(c, all, "provisioned_write_capacity_autoscaling_update", scaling_of(c, write));
    tree_add_map(c, props, "autoscaling_settings", all);
}

/* Some members have a name with the ending Override in RestoreTable. */
static const struct doc *either(const struct doc *in, const char *name, const char *override) {
    const struct doc *d = doc_get(in, name);
    return d ? d : doc_get(in, override);
}

int table_settings_props(struct call *c, struct ast_props *props) {
    static const struct pair capacity[] = {{"throughputMode", "throughput_mode"},
                                           {"readCapacityUnits", "read_capacity_units"},
                                           {"writeCapacityUnits", "write_capacity_units"}};
    static const struct pair encryption[] = {{"type", "encryption_type"}, {"kmsKeyIdentifier", "kms_key_identifier"}};
    static const struct pair status[] = {{"status", "status"}};
    static const struct pair warm[] = {{"readUnitsPerSecond", "read_units_per_second"},
                                       {"writeUnitsPerSecond", "write_units_per_second"}};
    const struct doc *in = c->in, *ttl = doc_get(in, "defaultTimeToLive");
    struct ast_prop_value *all = tree_map(c);
    put_group(c, all, "capacity_mode", either(in, "capacitySpecification", "capacitySpecificationOverride"), capacity,
              ARRAY_LEN(capacity));
    put_group(c, all, "encryption_specification",
              either(in, "encryptionSpecification", "encryptionSpecificationOverride"), encryption,
              ARRAY_LEN(encryption));
    put_group(c, all, "point_in_time_recovery", either(in, "pointInTimeRecovery", "pointInTimeRecoveryOverride"),
              status, 1);
    put_group(c, all, "ttl", doc_get(in, "ttl"), status, 1);
    put_group(c, all, "client_side_timestamps", doc_get(in, "clientSideTimestamps"), status, 1);
    put_group(c, all, "warm_throughput", doc_get(in, "warmThroughputSpecification"), warm, ARRAY_LEN(warm));
    const struct doc *replicas = doc_get(in, "replicaSpecifications");
    struct ast_prop_value *updates = tree_map(c);
    for (const struct doc *r = replicas ? replicas->first : NULL; r; r = r->next) {
        struct ast_prop_value *one = tree_map(c);
        copy(c, r, "readCapacityUnits", one, "read_capacity_units");
        if (one && one->n) tree_put(c, updates, region_of(c, r), one);
    }
    if (updates && updates->n) tree_put(c, all, "replica_updates", updates);
    if (put_stream(c, props, all, doc_get(in, "cdcSpecification"))) return -1;
    tree_add_map(c, props, "custom_properties", all);
    put_scaling(c, props, in);
    if (ttl) tree_add_prop(c, props, "default_time_to_live", tree_number(c, ttl->whole));
    return 0;
}

/* ---- from a table ---- */

static const char *option(const struct schema_table *t, const char *name) {
    return option_find(t->options, t->n_options, name);
}

static struct doc *put_status(struct call *c, struct doc *to, const char *name, bool on) {
    struct doc *d = doc_put(&c->make, to, name, DOC_MAP);
    doc_put_text(&c->make, d, "status", on ? "ENABLED" : "DISABLED");
    return d;
}

static void put_capacity(struct call *c, struct doc *to, const struct schema_table *t) {
    struct schema_capacity k;
    catalog_capacity(c->o->catalog, t, &k);
    struct doc *d = doc_put(&c->make, to, "capacitySpecification", DOC_MAP);
    doc_put_text(&c->make, d, "throughputMode", k.mode == SCHEMA_PROVISIONED ? "PROVISIONED" : "PAY_PER_REQUEST");
    if (k.mode == SCHEMA_PROVISIONED) {
        doc_put_whole(&c->make, d, "readCapacityUnits", k.read_units);
        doc_put_whole(&c->make, d, "writeCapacityUnits", k.write_units);
    }
    if (k.on_demand_since_ms) doc_put_moment(&c->make, d, "lastUpdateToPayPerRequestTimestamp", k.on_demand_since_ms);
}

static void put_warm(struct call *c, struct doc *to, const struct schema_table *t) {
    struct schema_capacity k;
    catalog_capacity(c->o->catalog, t, &k);
    struct doc *d = doc_put(&c->make, to, "warmThroughputSpecification", DOC_MAP);
    doc_put_whole(&c->make, d, "readUnitsPerSecond", k.warm_read);
    doc_put_whole(&c->make, d, "writeUnitsPerSecond", k.warm_write);
    doc_put_text(&c->make, d, "status", t->status == SCHEMA_UPDATING ? "UPDATING" : "AVAILABLE");
}

static void put_stream_summary(struct call *c, const struct schema_table *t) {
    const char *arn = catalog_stream_arn(c->o->catalog, t, c->region, c->arena), *cdc = option(t, "cdc");
    if (!arn) return;
    const char *type = option(t, "custom_properties.cdc_specification.view_type");
    struct doc *d = put_status(c, c->out, "cdcSpecification", cdc && !strcmp(cdc, "true"));
    doc_put_text(&c->make, d, "viewType", type ? type : "NEW_AND_OLD_IMAGES");
    doc_put_text(&c->make, c->out, "latestStreamArn", arn);
}

static void put_replicas_summary(struct call *c, const struct schema_table *t) {
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const char *region = ks->regions[i].name;
        const char *name = arena_printf(c->arena, "custom_properties.replica_updates.%s.read_capacity_units", region),
                   *units = name ? option(t, name) : NULL;
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "region", region);
        doc_put_text(&c->make, one, "status", schema_status_name(schema_replica_status(ks, t, &ks->regions[i])));
        put_capacity(c, one, t);
        put_warm(c, one, t);
        struct doc *read = units && one
                               ? (struct doc *)doc_get(doc_get(one, "capacitySpecification"), "readCapacityUnits")
                               : NULL;
        if (read) read->whole = strtoll(units, NULL, 10);
    }
}

void table_settings_put(struct call *c, const struct schema_table *t) {
    struct doc_maker *m = &c->make;
    const char *encryption = option(t, "custom_properties.encryption_specification.encryption_type");
    put_capacity(c, c->out, t);
    struct doc *d = doc_put(m, c->out, "encryptionSpecification", DOC_MAP);
    doc_put_text(m, d, "type", encryption ? encryption : "AWS_OWNED_KMS_KEY");
    doc_put_text(m, d, "kmsKeyIdentifier", option(t, "custom_properties.encryption_specification.kms_key_identifier"));
    d = put_status(c, c->out, "pointInTimeRecovery", schema_has_pitr(t));
    if (t->history)
        doc_put_moment(m, d, "earliestRestorableTimestamp", catalog_restorable_since(c->o->catalog, t->history) / 1000);
    if (schema_has_ttl(t)) put_status(c, c->out, "ttl", true);
    doc_put_whole(m, c->out, "defaultTimeToLive", t->default_ttl);
    d = doc_put(m, c->out, "comment", DOC_MAP);
    doc_put_text(m, d, "message", t->comment ? t->comment : "");
    if (schema_has_client_timestamps(t)) put_status(c, c->out, "clientSideTimestamps", true);
    put_replicas_summary(c, t);
    put_stream_summary(c, t);
    put_warm(c, c->out, t);
}

/* ---- auto scaling ---- */

static void put_scaling_of(struct call *c, struct doc *to, const char *name, const struct schema_table *t,
                           const char *prefix) {
    enum { ROOM = 8 };
    const char *keys[ROOM] = {"autoscaling_disabled",
                              "minimum_units",
                              "maximum_units",
                              "scaling_policy.target_tracking_scaling_policy_configuration.target_value",
                              "scaling_policy.target_tracking_scaling_policy_configuration.scale_in_cooldown",
                              "scaling_policy.target_tracking_scaling_policy_configuration.scale_out_cooldown",
                              "scaling_policy.target_tracking_scaling_policy_configuration.disable_scale_in"};
    const char *values[ROOM] = {NULL};
    for (size_t i = 0; keys[i]; i++) {
        const char *full = arena_printf(c->arena, "%s%s", prefix, keys[i]);
        values[i] = full ? option(t, full) : NULL;
    }
    struct doc *d = doc_put(&c->make, to, name, DOC_MAP);
    doc_put_flag(&c->make, d, "autoScalingDisabled", !values[0] || strcmp(values[0], "false") != 0);
    if (values[1]) doc_put_whole(&c->make, d, "minimumUnits", strtoll(values[1], NULL, 10));
    if (values[2]) doc_put_whole(&c->make, d, "maximumUnits", strtoll(values[2], NULL, 10));
    if (!values[3]) return;
    struct doc *policy = doc_put(&c->make, doc_put(&c->make, d, "scalingPolicy", DOC_MAP),
                                 "targetTrackingScalingPolicyConfiguration", DOC_MAP);
    doc_put_flag(&c->make, policy, "disableScaleIn", values[6] && !strcmp(values[6], "true"));
    doc_put_whole(&c->make, policy, "scaleInCooldown", values[4] ? strtoll(values[4], NULL, 10) : 0);
    doc_put_whole(&c->make, policy, "scaleOutCooldown", values[5] ? strtoll(values[5], NULL, 10) : 0);
    doc_put_real(&c->make, policy, "targetValue", strtod(values[3], NULL));
}

void table_scaling_put(struct call *c, const struct schema_table *t) {
    static const char read[] = "autoscaling_settings.provisioned_read_capacity_autoscaling_update.";
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    struct doc *spec = doc_put(&c->make, c->out, "autoScalingSpecification", DOC_MAP);
    put_scaling_of(c, spec, "writeCapacityAutoScaling", t,
                   "autoscaling_settings.provisioned_write_capacity_autoscaling_update.");
    put_scaling_of(c, spec, "readCapacityAutoScaling", t, read);
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const char *prefix = arena_printf(c->arena, "%sreplica_updates.%s.", read, ks->regions[i].name);
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "region", ks->regions[i].name);
        if (prefix)
            put_scaling_of(c, doc_put(&c->make, one, "autoScalingSpecification", DOC_MAP), "readCapacityAutoScaling", t,
                           prefix);
    }
}
