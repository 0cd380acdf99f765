/* Application Auto Scaling, for the service namespace cassandra: RegisterScalableTarget,
 * DescribeScalableTargets, DeregisterScalableTarget, PutScalingPolicy, DescribeScalingPolicies,
 * DeleteScalingPolicy
 * (https://docs.aws.amazon.com/autoscaling/application/APIReference/Welcome.html).
 *
 * These operations read and change a table's AUTOSCALING_SETTINGS. A target is registered when the
 * table has such settings and they are not disabled; its policy is their target value. So
 * system_schema_mcs shows changes made here, and the operations show changes made in CQL. Some
 * values exist only in this service, such as the policy's name and the times at which target and
 * policy were made. They are kept as settings of the table that CQL does not name
 * (read_scaling.policy_name). The table's status stays ACTIVE during these changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control_plane/tree.h"
#include "system_schema/objects/snapshot.h"

#define POLICY "scaling_policy.target_tracking_scaling_policy_configuration."

/* A scalable target: the read or the write capacity of a table. */
struct target {
    const struct schema_table *t;
    bool write;
    const char *resource; /* keyspace/K/table/T */
};

static const struct {
    const char *dimension, *metric, *update, *group, *beside;
} kinds[2] = {
    {"cassandra:table:ReadCapacityUnits", "CassandraReadCapacityUtilization",
     "provisioned_read_capacity_autoscaling_update",
     "autoscaling_settings.provisioned_read_capacity_autoscaling_update.", "read_scaling"},
    {"cassandra:table:WriteCapacityUnits", "CassandraWriteCapacityUtilization",
     "provisioned_write_capacity_autoscaling_update",
     "autoscaling_settings.provisioned_write_capacity_autoscaling_update.", "write_scaling"},
};

/* ---- settings of a table ---- */

static const char *setting(const struct target *x, const char *key) {
    char name[256];
    snprintf(name, sizeof(name), "%s%s", kinds[x->write].group, key);
    return option_find(x->t->options, x->t->n_options, name);
}

static const char *beside(const struct target *x, const char *key) {
    char name[256];
    snprintf(name, sizeof(name), "%s.%s", kinds[x->write].beside, key);
    return option_find(x->t->options, x->t->n_options, name);
}

static bool is_registered(const struct target *x) {
    const char *disabled = setting(x, "autoscaling_disabled");
    return (setting(x, "minimum_units") || setting(x, "maximum_units") || setting(x, POLICY "target_value")) &&
           !(disabled && !strcmp(disabled, "true"));
}

static bool has_policy(const struct target *x) { return is_registered(x) && setting(x, POLICY "target_value"); }

/* The policy's name; a default when the policy was made in CQL. */
static const char *policy_name(const struct target *x) {
    const char *name = beside(x, "policy_name");
    return name ? name : x->write ? "write-capacity-target-tracking" : "read-capacity-target-tracking";
}

static int64_t made_ms(const struct target *x, const char *key) {
    const char *text = beside(x, key);
    return text ? strtoll(text, NULL, 10) : x->t->created_ms;
}

/* ---- members of the request ---- */

static bool asks(const struct call *c, const char *member, const char *value) {
    const struct doc *d = doc_get(c->in, member);
    return !d || slice_is(d->text, value);
}

static const struct schema_table *table_of(struct call *c, const char *resource) {
    static const char before[] = "keyspace/", between[] = "/table/";
    const char *name = resource + sizeof(before) - 1,
               *at = strncmp(resource, before, sizeof(before) - 1) ? NULL : strstr(name, between);
    if (!at || !at[sizeof(between) - 1]) return NULL;
    const char *keyspace = (const char *)arena_dup(c->arena, slice_of(name, (size_t)(at - name))).p;
    const struct schema_table *t = keyspace ? call_table(c, keyspace, at + sizeof(between) - 1) : NULL;
    return t && !t->keyspace->is_system ? t : NULL;
}

/* Reads the target that a request names. Its table is NULL when there is no such table. -1: the
 * names do not have the form of a target. */
static int take_target(struct call *c, struct target *out) {
    struct err none = {0}, *err = c->err;
    const struct doc *dimension = doc_get(c->in, "ScalableDimension");
    *out = (struct target){.write = slice_is(dimension->text, kinds[1].dimension),
                           .resource = call_text(c, "ResourceId")};
    if (!out->resource) return -1;
    if (!asks(c, "ServiceNamespace", "cassandra") || !slice_is(dimension->text, kinds[out->write].dimension) ||
        strncmp(out->resource, "keyspace/", 9))
        return call_fail(c, API_ValidationException,
                         "Unsupported service namespace, resource type or scalable dimension: Tally has cassandra, "
                         "keyspace/K/table/T and %s, %s.",
                         kinds[0].dimension, kinds[1].dimension);
    c->err = &none;
    out->t = table_of(c, out->resource);
    c->err = err;
    return 0;
}

static int take_registered(struct call *c, struct target *out) {
    if (take_target(c, out)) return -1;
    if (out->t && is_registered(out)) return 0;
    return call_fail(
        c, API_ObjectNotFoundException,
        "No scalable target registered for service namespace: cassandra, resource ID: %s, scalable dimension: %s",
        out->resource, kinds[out->write].dimension);
}

/* ---- ARNs ---- */

static const char *arn_of_target(struct call *c, const struct target *x) {
    const struct node_info *n = catalog_node(c->o->catalog);
    const uint8_t *id = x->t->id;
    return arena_printf(c->arena,
                        "arn:aws:application-autoscaling:%s:%s:scalable-target/%04x%02x%02x%02x%02x%02x%02x%02x%02x",
                        c->region, n->account, 0x1ec0 + x->write, id[0], id[1], id[2], id[3], id[4], id[5], id[6],
                        id[7]);
}

static const char *arn_of_policy(struct call *c, const struct target *x, const char *name) {
    const struct node_info *n = catalog_node(c->o->catalog);
    const uint8_t *id = x->t->id;
    return arena_printf(c->arena,
                        "arn:aws:autoscaling:%s:%s:scalingPolicy:%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%"
                        "02x%02x%02x%02x:resource/cassandra/%s:policyName/%s",
                        c->region, n->account, id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9],
                        id[10], id[11], id[12], id[13], id[14], id[15], x->resource, name);
}

/* ---- changes ---- */

/* A target's settings after a change. */
struct wanted {
    const char *minimum, *maximum; /* NULL: the target is not registered */
    /* target NULL: there is no policy; still: the value of disable_scale_in */
    const char *target, *out_cooldown, *in_cooldown, *still;
    const char *name; /* of the policy; NULL: the default name */
    const char *made, *policy_made;
};

static struct wanted as_it_is(const struct target *x) {
    return (struct wanted){.minimum = setting(x, "minimum_units"),
                           .maximum = setting(x, "maximum_units"),
                           .target = setting(x, POLICY "target_value"),
                           .out_cooldown = setting(x, POLICY "scale_out_cooldown"),
                           .in_cooldown = setting(x, POLICY "scale_in_cooldown"),
                           .still = setting(x, POLICY "disable_scale_in"),
                           .name = beside(x, "policy_name"),
                           .made = beside(x, "made_ms"),
                           .policy_made = beside(x, "policy_made_ms")};
}

static void put(struct call *c, struct ast_prop_value *map, const char *key, const char *value) {
    if (value) tree_put(c, map, key, tree_text(c, value));
}

/* ALTER TABLE replaces all settings of a kind. So the map also contains those of other Regions,
 * which these operations do not change. */
static struct ast_prop_value *settings_map(struct call *c, const struct target *x, const struct wanted *w) {
    struct ast_prop_value *map = tree_map(c), *all = tree_map(c);
    const char *group = kinds[x->write].group;
    put(c, map, "minimum_units", w->minimum);
    put(c, map, "maximum_units", w->maximum);
    if (!w->minimum || w->target) put(c, map, "autoscaling_disabled", w->minimum ? "false" : "true");
    if (w->target) {
        struct ast_prop_value *policy = tree_map(c), *tracking = tree_map(c);
        put(c, tracking, "target_value", w->target);
        put(c, tracking, "scale_out_cooldown", w->out_cooldown);
        put(c, tracking, "scale_in_cooldown", w->in_cooldown);
        put(c, tracking, "disable_scale_in", w->still);
        tree_put(c, policy, "target_tracking_scaling_policy_configuration", tracking);
        tree_put(c, map, "scaling_policy", policy);
    }
    for (uint32_t i = 0; i < x->t->n_options; i++) {
        const char *name = x->t->options[i].name;
        if (!strncmp(name, group, strlen(group)) && !strncmp(name + strlen(group), "replica_updates.", 16))
            put(c, map, name + strlen(group), x->t->options[i].value);
    }
    tree_put(c, all, kinds[x->write].update, map);
    return all;
}

static int change(struct call *c, const struct target *x, const struct wanted *w) {
    enum { SETTINGS = 4 };
    const char *of = kinds[x->write].beside;
    struct ast_beside_setting *s = ARENA_ARRAY(c->arena, SETTINGS, struct ast_beside_setting);
    struct ast_stmt *stmt = s ? tree_new(c, STMT_ALTER_TABLE) : NULL;
    if (call_check_active_in(c, x->t->keyspace->name, "table", x->t->name, x->t->status)) return -1;
    if (!stmt) return call_nomem(c);
    uint32_t n = 0;
    s[n++] = (struct ast_beside_setting){.name = of};
    if (w->name) s[n++] = (struct ast_beside_setting){arena_printf(c->arena, "%s.policy_name", of), w->name};
    if (w->made) s[n++] = (struct ast_beside_setting){arena_printf(c->arena, "%s.made_ms", of), w->made};
    if (w->policy_made)
        s[n++] = (struct ast_beside_setting){arena_printf(c->arena, "%s.policy_made_ms", of), w->policy_made};
    for (uint32_t i = 0; i < n; i++)
        if (!s[i].name) return call_nomem(c);
    stmt->alter_table = (struct ast_alter_table){.table = {x->t->keyspace->name, x->t->name},
                                                 .op = ALTER_TABLE_WITH,
                                                 .beside = {.at_once = true, .n = n, .settings = s}};
    tree_add_map(c, &stmt->alter_table.props, "autoscaling_settings", settings_map(c, x, w));
    return tree_run(c, stmt);
}

static const char *now_text(struct call *c) {
    return arena_printf(c->arena, "%" PRId64, clock_wall_us(c->o->clock) / 1000);
}

static const char *number_text(struct call *c, const struct doc *d, const char *otherwise) {
    if (!d) return otherwise;
    return d->kind == DOC_REAL ? arena_printf(c->arena, "%.15g", d->real)
                               : arena_printf(c->arena, "%" PRId64, d->whole);
}

/* ---- targets ---- */

static int refuse_suspended(struct call *c) {
    const struct doc *state = doc_get(c->in, "SuspendedState");
    for (const struct doc *d = state ? state->first : NULL; d; d = d->next)
        if (d->flag)
            return call_fail(
                c, API_ValidationException,
                "SuspendedState: Tally cannot suspend auto scaling; deregister the target, or delete its policy.");
    return doc_get(c->in, "Tags")
               ? call_fail(c, API_ValidationException, "Tags: Tally keeps none of scalable targets; tag the table.")
               : 0;
}

int op_register_scalable_target(struct call *c) {
    struct target x;
    if (take_target(c, &x) || refuse_suspended(c)) return -1;
    if (!x.t) return call_fail(c, API_ValidationException, "The resource %s does not exist.", x.resource);
    struct wanted w = is_registered(&x) ? as_it_is(&x) : (struct wanted){.made = now_text(c)};
    w.minimum = number_text(c, doc_get(c->in, "MinCapacity"), w.minimum);
    w.maximum = number_text(c, doc_get(c->in, "MaxCapacity"), w.maximum);
    if (!w.minimum || !w.maximum)
        return call_fail(c, API_ValidationException,
                         "MinCapacity and MaxCapacity are required to register a new scalable target.");
    if (strtoll(w.minimum, NULL, 10) > strtoll(w.maximum, NULL, 10))
        return call_fail(c, API_ValidationException, "Maximum capacity cannot be less than minimum capacity");
    if (change(c, &x, &w)) return -1;
    doc_put_text(&c->make, c->out, "ScalableTargetARN", arn_of_target(c, &x));
    return 0;
}

int op_deregister_scalable_target(struct call *c) {
    struct target x;
    const struct wanted nothing = {0};
    return take_registered(c, &x) || change(c, &x, &nothing) ? -1 : 0;
}

static void put_place(struct call *c, struct doc *d, const struct target *x) {
    doc_put_text(&c->make, d, "ServiceNamespace", "cassandra");
    doc_put_text(&c->make, d, "ResourceId", x->resource);
    doc_put_text(&c->make, d, "ScalableDimension", kinds[x->write].dimension);
}

static void put_target(struct call *c, struct doc *to, const struct target *x) {
    static const char *const states[] = {"DynamicScalingInSuspended", "DynamicScalingOutSuspended",
                                         "ScheduledScalingSuspended"};
    const char *minimum = setting(x, "minimum_units"), *maximum = setting(x, "maximum_units");
    struct schema_autoscaling a;
    schema_autoscaling(x->t, x->write ? SCHEMA_WRITE_CAPACITY : SCHEMA_READ_CAPACITY, &a);
    struct doc *d = doc_put(&c->make, to, NULL, DOC_MAP);
    put_place(c, d, x);
    doc_put_whole(&c->make, d, "MinCapacity", minimum ? strtoll(minimum, NULL, 10) : a.minimum_units);
    doc_put_whole(&c->make, d, "MaxCapacity", maximum ? strtoll(maximum, NULL, 10) : a.maximum_units);
    doc_put_text(&c->make, d, "RoleARN",
                 arena_printf(c->arena,
                              "arn:aws:iam::%s:role/aws-service-role/cassandra.application-autoscaling.amazonaws.com/"
                              "AWSServiceRoleForApplicationAutoScaling_CassandraTable",
                              catalog_node(c->o->catalog)->account));
    doc_put_moment(&c->make, d, "CreationTime", made_ms(x, "made_ms"));
    struct doc *suspended = doc_put(&c->make, d, "SuspendedState", DOC_MAP);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) doc_put_flag(&c->make, suspended, states[i], false);
    doc_put_text(&c->make, d, "ScalableTargetARN", arn_of_target(c, x));
}

/* ---- policies ---- */

static int check_policy(struct call *c, const struct target *x, const struct doc *tracking) {
    const struct doc *type = doc_get(c->in, "PolicyType"),
                     *metric = doc_get(doc_get(tracking, "PredefinedMetricSpecification"), "PredefinedMetricType");
    if (!has_policy(x) && !type)
        return call_fail(c, API_ValidationException, "PolicyType is required to create a scaling policy.");
    if ((type && !slice_is(type->text, "TargetTrackingScaling")) || !tracking)
        return call_fail(c, API_ValidationException,
                         "Amazon Keyspaces tables have policies of the type TargetTrackingScaling, with a "
                         "TargetTrackingScalingPolicyConfiguration.");
    if (!metric || !slice_is(metric->text, kinds[x->write].metric))
        return call_fail(c, API_ValidationException,
                         "A policy of %s needs the PredefinedMetricType %s; Tally follows no other metric.",
                         kinds[x->write].dimension, kinds[x->write].metric);
    if (!has_policy(x) || asks(c, "PolicyName", policy_name(x))) return 0;
    return call_fail(c, API_ValidationException,
                     "Only one TargetTrackingScaling policy for a given metric specification is allowed.");
}

int op_put_scaling_policy(struct call *c) {
    const struct doc *tracking = doc_get(c->in, "TargetTrackingScalingPolicyConfiguration"),
                     *still = doc_get(tracking, "DisableScaleIn");
    struct target x;
    if (take_registered(c, &x) || check_policy(c, &x, tracking)) return -1;
    struct wanted w = as_it_is(&x);
    if (!has_policy(&x)) w.policy_made = now_text(c);
    w.name = call_text(c, "PolicyName");
    w.target = number_text(c, doc_get(tracking, "TargetValue"), NULL);
    w.out_cooldown = number_text(c, doc_get(tracking, "ScaleOutCooldown"), NULL);
    w.in_cooldown = number_text(c, doc_get(tracking, "ScaleInCooldown"), NULL);
    w.still = still ? (still->flag ? "true" : "false") : NULL;
    if (!w.name || !w.target) return call_nomem(c);
    if (change(c, &x, &w)) return -1;
    doc_put_text(&c->make, c->out, "PolicyARN", arn_of_policy(c, &x, w.name));
    doc_put(&c->make, c->out, "Alarms", DOC_LIST);
    return 0;
}

int op_delete_scaling_policy(struct call *c) {
    struct target x;
    if (take_target(c, &x)) return -1;
    if (!x.t || !has_policy(&x) || !asks(c, "PolicyName", policy_name(&x)))
        return call_fail(c, API_ObjectNotFoundException,
                         "No scaling policy found for service namespace: cassandra, resource ID: %s, scalable "
                         "dimension: %s, policy name: %s",
                         x.resource, kinds[x.write].dimension, call_text(c, "PolicyName"));
    struct wanted w = as_it_is(&x);
    w.target = w.name = w.policy_made = NULL;
    return change(c, &x, &w);
}

static void put_policy(struct call *c, struct doc *to, const struct target *x) {
    const char *in = setting(x, POLICY "scale_in_cooldown"), *out = setting(x, POLICY "scale_out_cooldown"),
               *still = setting(x, POLICY "disable_scale_in");
    struct doc *d = doc_put(&c->make, to, NULL, DOC_MAP);
    doc_put_text(&c->make, d, "PolicyARN", arn_of_policy(c, x, policy_name(x)));
    doc_put_text(&c->make, d, "PolicyName", policy_name(x));
    put_place(c, d, x);
    doc_put_text(&c->make, d, "PolicyType", "TargetTrackingScaling");
    struct doc *tracking = doc_put(&c->make, d, "TargetTrackingScalingPolicyConfiguration", DOC_MAP);
    doc_put_real(&c->make, tracking, "TargetValue", strtod(setting(x, POLICY "target_value"), NULL));
    doc_put_text(&c->make, doc_put(&c->make, tracking, "PredefinedMetricSpecification", DOC_MAP),
                 "PredefinedMetricType", kinds[x->write].metric);
    if (out) doc_put_whole(&c->make, tracking, "ScaleOutCooldown", strtoll(out, NULL, 10));
    if (in) doc_put_whole(&c->make, tracking, "ScaleInCooldown", strtoll(in, NULL, 10));
    if (still) doc_put_flag(&c->make, tracking, "DisableScaleIn", !strcmp(still, "true"));
    doc_put(&c->make, d, "Alarms", DOC_LIST);
    doc_put_moment(&c->make, d, "CreationTime", made_ms(x, "policy_made_ms"));
}

/* ---- lists ---- */

/* Is the name in the list? A list that is absent or empty matches every name. */
static bool is_among(const struct doc *list, const char *name) {
    const struct doc *d = list ? list->first : NULL;
    while (d && !slice_is(d->text, name)) d = d->next;
    return d || !list || !list->n;
}

static bool fits_target(const struct call *c, const struct target *x) {
    return is_among(doc_get(c->in, "ResourceIds"), x->resource) && is_registered(x);
}
static bool fits_policy(const struct call *c, const struct target *x) {
    return has_policy(x) && asks(c, "ResourceId", x->resource) &&
           is_among(doc_get(c->in, "PolicyNames"), policy_name(x));
}

/* Lists the targets of all tables that fit the request, reads and writes. */
static int list(struct call *c, const char *member, bool (*fits)(const struct call *c, const struct target *x),
                void (*put_one)(struct call *c, struct doc *to, const struct target *x)) {
    enum { ROOM = 50 };
    const struct doc *room = doc_get(c->in, "MaxResults");
    struct page page;
    if (room && (room->whole < 1 || room->whole > ROOM))
        return call_fail(c, API_ValidationException, "MaxResults must be from 1 to %d.", ROOM);
    if (page_begin_at(c, &page, "NextToken", room ? (uint32_t)room->whole : ROOM, API_InvalidNextTokenException))
        return -1;
    struct doc *all = doc_put(&c->make, c->out, member, DOC_LIST);
    for (uint32_t i = 0; asks(c, "ServiceNamespace", "cassandra") && i < c->schema->n_spaces; i++) {
        const struct schema_space *space = c->schema->spaces[i];
        struct schema_table_cursor tables = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; !space->keyspace->is_system && (t = schema_tables_next(&tables));) {
            struct target x = {
                .t = t, .resource = arena_printf(c->arena, "keyspace/%s/table/%s", t->keyspace->name, t->name)};
            if (!x.resource) return call_nomem(c);
            for (int write = 0; write < 2; write++) {
                x.write = write;
                const char *key = arena_printf(c->arena, "%s/%d", x.resource, write);
                if (!key) return call_nomem(c);
                if (asks(c, "ScalableDimension", kinds[write].dimension) && fits(c, &x) && page_takes(c, &page, key))
                    put_one(c, all, &x);
            }
        }
    }
    return 0;
}

int op_describe_scalable_targets(struct call *c) { return list(c, "ScalableTargets", fits_target, put_target); }
int op_describe_scaling_policies(struct call *c) { return list(c, "ScalingPolicies", fits_policy, put_policy); }
