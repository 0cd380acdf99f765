/* Application Auto Scaling, for the service namespace cassandra: RegisterScalableTarget,
 * DescribeScalableTargets, DeregisterScalableTarget, PutScalingPolicy, DescribeScalingPolicies,
 * DeleteScalingPolicy
 * (https://docs.aws.amazon.com/autoscaling/application/APIReference/Welcome.html).
 *
 * These operations read and change a table's AUTOSCALING_SETTINGS. A target is registered when the
 * table has such settings and they are not disabled; its policy is their target value. So
 * system_schema_mcs shows changes made here, and the operations show changes made in CQL. Some
 * values exist only in this service, such as the policy's name and the times at which target and
 * policy were made. They are settings of the table that CQL does not name (TARGET of
 * settings/setting.def). The table's status stays ACTIVE during these changes.
 */
#include <inttypes.h>

#include "control_plane/tree.h"

/* A scalable target: the read or the write capacity of a table. */
struct target {
    const struct schema_table *t;
    enum capacity_kind of;
    const char *resource; /* keyspace/K/table/T */
};

static const struct {
    const char *dimension, *metric, *policy;
} kinds[2] = {
    {"cassandra:table:ReadCapacityUnits", "CassandraReadCapacityUtilization", "read-capacity-target-tracking"},
    {"cassandra:table:WriteCapacityUnits", "CassandraWriteCapacityUtilization", "write-capacity-target-tracking"},
};

/* ---- settings of a table ---- */

static const struct scaling_settings *scaling_of(const struct target *x) { return &x->t->settings.scaling[x->of]; }

static bool is_registered(const struct target *x) {
    uint64_t any = SCALING_BIT(minimum_units) | SCALING_BIT(maximum_units) | SCALING_BIT(target_value);
    const struct scaling_settings *s = scaling_of(x);
    bool disabled = s->given & SCALING_BIT(autoscaling_disabled) && s->autoscaling_disabled;
    return s->given & any && !disabled;
}

static bool has_policy(const struct target *x) {
    return is_registered(x) && scaling_of(x)->given & SCALING_BIT(target_value);
}

/* The policy's name; a default when the policy was made in CQL. */
static const char *policy_name(const struct target *x) {
    const struct scaling_settings *s = scaling_of(x);
    return s->given & SCALING_BIT(policy_name) ? s->policy_name : kinds[x->of].policy;
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

/* Reads the target that a request names. Its table is NULL when there is no such table. Returns -1
 * if the names do not have the form of a target. */
static int take_target(struct call *c, struct target *out) {
    struct err none = {0}, *err = c->err;
    const struct doc *dimension = doc_get(c->in, "ScalableDimension");
    *out = (struct target){.of = slice_is(dimension->text, kinds[WRITE_CAPACITY].dimension),
                           .resource = call_text(c, "ResourceId")};
    if (!out->resource) return -1;
    if (!asks(c, "ServiceNamespace", "cassandra") || !slice_is(dimension->text, kinds[out->of].dimension) ||
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
        out->resource, kinds[out->of].dimension);
}

/* ---- ARNs ---- */

static const char *arn_of_target(struct call *c, const struct target *x) {
    const struct node_info *n = catalog_node(c->o->catalog);
    const uint8_t *id = x->t->id;
    return arena_printf(c->arena,
                        "arn:aws:application-autoscaling:%s:%s:scalable-target/%04x%02x%02x%02x%02x%02x%02x%02x%02x",
                        c->region, n->account, 0x1ec0 + x->of, id[0], id[1], id[2], id[3], id[4], id[5], id[6],
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

/* Sets a member of struct scaling_settings. */
#define SCALING_SET(settings, id, value) ((settings)->id = (value), (settings)->given |= SCALING_BIT(id))

/* Makes w the target's settings. They replace all settings of the kind, so those of Regions, which
 * these operations do not change, come with them. */
static int change(struct call *c, const struct target *x, const struct scaling_settings *w) {
    struct table_settings *s = ARENA_NEW(c->arena, struct table_settings);
    if (call_check_active_in(c, x->t->keyspace->name, "table", x->t->name, x->t->status)) return -1;
    struct ast_stmt *stmt = tree_new(c, STMT_ALTER_TABLE);
    if (!stmt || !s) return call_nomem(c);
    *s = *settings_defaults(true);
    s->scaling[x->of] = *w;
    if (settings_keep_regions(s, &x->t->settings, x->of, c->arena)) return call_nomem(c);
    stmt->alter_table = (struct ast_alter_table){.table = {x->t->keyspace->name, x->t->name},
                                                 .op = ALTER_TABLE_WITH,
                                                 .props.settings = s,
                                                 .at_once = true,
                                                 .targets = 1u << x->of};
    return 0;
}

static int64_t now_ms(const struct call *c) { return clock_wall_us(c->o->clock) / 1000; }

/* ---- targets ---- */

/* Auto scaling of a registered target is on when it has a policy. */
static void set_disabled(struct scaling_settings *w) {
    w->autoscaling_disabled = false;
    if (w->given & SCALING_BIT(target_value)) w->given |= SCALING_BIT(autoscaling_disabled);
    else w->given &= ~SCALING_BIT(autoscaling_disabled);
}

int op_register_scalable_target(struct call *c) {
    struct target x;
    if (take_target(c, &x)) return -1;
    const struct doc *suspended = doc_get(c->in, "SuspendedState");
    for (const struct doc *d = suspended ? suspended->first : NULL; d; d = d->next)
        if (d->flag)
            return call_fail(
                c, API_ValidationException,
                "SuspendedState: Tally cannot suspend auto scaling; deregister the target, or delete its policy.");
    if (doc_get(c->in, "Tags"))
        return call_fail(c, API_ValidationException, "Tags: Tally keeps none of scalable targets; tag the table.");
    if (!x.t) return call_fail(c, API_ValidationException, "The resource %s does not exist.", x.resource);
    const struct doc *least = doc_get(c->in, "MinCapacity"), *most = doc_get(c->in, "MaxCapacity");
    struct scaling_settings w = settings_defaults(true)->scaling[x.of];
    if (is_registered(&x)) w = *scaling_of(&x);
    else SCALING_SET(&w, made_ms, now_ms(c));
    if (least) SCALING_SET(&w, minimum_units, least->whole);
    if (most) SCALING_SET(&w, maximum_units, most->whole);
    if (!(w.given & SCALING_BIT(minimum_units)) || !(w.given & SCALING_BIT(maximum_units)))
        return call_fail(c, API_ValidationException,
                         "MinCapacity and MaxCapacity are required to register a new scalable target.");
    if (w.minimum_units > w.maximum_units)
        return call_fail(c, API_ValidationException, "Maximum capacity cannot be less than minimum capacity");
    set_disabled(&w);
    if (change(c, &x, &w)) return -1;
    doc_put_text(&c->make, c->out, "ScalableTargetARN", arn_of_target(c, &x));
    return 0;
}

int op_deregister_scalable_target(struct call *c) {
    struct target x;
    struct scaling_settings nothing = settings_defaults(true)->scaling[READ_CAPACITY];
    nothing.given = SCALING_BIT(autoscaling_disabled);
    return take_registered(c, &x) || change(c, &x, &nothing) ? -1 : 0;
}

static void put_place(struct call *c, struct doc *d, const struct target *x) {
    doc_put_text(&c->make, d, "ServiceNamespace", "cassandra");
    doc_put_text(&c->make, d, "ResourceId", x->resource);
    doc_put_text(&c->make, d, "ScalableDimension", kinds[x->of].dimension);
}

static void put_target(struct call *c, struct doc *to, const struct target *x) {
    static const char *const states[] = {"DynamicScalingInSuspended", "DynamicScalingOutSuspended",
                                         "ScheduledScalingSuspended"};
    const struct scaling_settings *s = scaling_of(x);
    struct doc *d = doc_put(&c->make, to, NULL, DOC_MAP);
    put_place(c, d, x);
    doc_put_whole(&c->make, d, "MinCapacity", s->minimum_units);
    doc_put_whole(&c->make, d, "MaxCapacity", s->maximum_units);
    doc_put_text(&c->make, d, "RoleARN",
                 arena_printf(c->arena,
                              "arn:aws:iam::%s:role/aws-service-role/cassandra.application-autoscaling.amazonaws.com/"
                              "AWSServiceRoleForApplicationAutoScaling_CassandraTable",
                              catalog_node(c->o->catalog)->account));
    doc_put_moment(&c->make, d, "CreationTime", s->given & SCALING_BIT(made_ms) ? s->made_ms : x->t->created_ms);
    struct doc *suspended = doc_put(&c->make, d, "SuspendedState", DOC_MAP);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) doc_put_flag(&c->make, suspended, states[i], false);
    doc_put_text(&c->make, d, "ScalableTargetARN", arn_of_target(c, x));
}

/* ---- policies ---- */

int op_put_scaling_policy(struct call *c) {
    const struct doc *tracking = doc_get(c->in, "TargetTrackingScalingPolicyConfiguration"),
                     *still = doc_get(tracking, "DisableScaleIn");
    struct target x;
    if (take_registered(c, &x)) return -1;
    const struct doc *type = doc_get(c->in, "PolicyType"),
                     *metric = doc_get(doc_get(tracking, "PredefinedMetricSpecification"), "PredefinedMetricType");
    if (!has_policy(&x) && !type)
        return call_fail(c, API_ValidationException, "PolicyType is required to create a scaling policy.");
    if ((type && !slice_is(type->text, "TargetTrackingScaling")) || !tracking)
        return call_fail(c, API_ValidationException,
                         "Amazon Keyspaces tables have policies of the type TargetTrackingScaling, with a "
                         "TargetTrackingScalingPolicyConfiguration.");
    if (!metric || !slice_is(metric->text, kinds[x.of].metric))
        return call_fail(c, API_ValidationException,
                         "A policy of %s needs the PredefinedMetricType %s; Tally follows no other metric.",
                         kinds[x.of].dimension, kinds[x.of].metric);
    if (has_policy(&x) && !asks(c, "PolicyName", policy_name(&x)))
        return call_fail(c, API_ValidationException,
                         "Only one TargetTrackingScaling policy for a given metric specification is allowed.");
    const struct doc *in = doc_get(tracking, "ScaleInCooldown"), *out = doc_get(tracking, "ScaleOutCooldown"),
                     *target = doc_get(tracking, "TargetValue");
    struct scaling_settings w = *scaling_of(&x);
    const char *name = call_text(c, "PolicyName");
    if (!name) return call_nomem(c);
    w.given &= ~(SCALING_BIT(scale_in_cooldown) | SCALING_BIT(scale_out_cooldown) | SCALING_BIT(disable_scale_in));
    if (!has_policy(&x)) SCALING_SET(&w, policy_made_ms, now_ms(c));
    SCALING_SET(&w, policy_name, name);
    SCALING_SET(&w, target_value, target->kind == DOC_REAL ? target->real : (double)target->whole);
    if (out) SCALING_SET(&w, scale_out_cooldown, out->whole);
    if (in) SCALING_SET(&w, scale_in_cooldown, in->whole);
    if (still) SCALING_SET(&w, disable_scale_in, still->flag);
    set_disabled(&w);
    if (change(c, &x, &w)) return -1;
    doc_put_text(&c->make, c->out, "PolicyARN", arn_of_policy(c, &x, name));
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
                         x.resource, kinds[x.of].dimension, call_text(c, "PolicyName"));
    struct scaling_settings w = *scaling_of(&x);
    w.given &= SCALING_BIT(minimum_units) | SCALING_BIT(maximum_units) | SCALING_BIT(made_ms);
    return change(c, &x, &w);
}

static void put_policy(struct call *c, struct doc *to, const struct target *x) {
    const struct scaling_settings *s = scaling_of(x);
    struct doc *d = doc_put(&c->make, to, NULL, DOC_MAP);
    doc_put_text(&c->make, d, "PolicyARN", arn_of_policy(c, x, policy_name(x)));
    doc_put_text(&c->make, d, "PolicyName", policy_name(x));
    put_place(c, d, x);
    doc_put_text(&c->make, d, "PolicyType", "TargetTrackingScaling");
    struct doc *tracking = doc_put(&c->make, d, "TargetTrackingScalingPolicyConfiguration", DOC_MAP);
    doc_put_real(&c->make, tracking, "TargetValue", s->target_value);
    doc_put_text(&c->make, doc_put(&c->make, tracking, "PredefinedMetricSpecification", DOC_MAP),
                 "PredefinedMetricType", kinds[x->of].metric);
    if (s->given & SCALING_BIT(scale_out_cooldown))
        doc_put_whole(&c->make, tracking, "ScaleOutCooldown", s->scale_out_cooldown);
    if (s->given & SCALING_BIT(scale_in_cooldown))
        doc_put_whole(&c->make, tracking, "ScaleInCooldown", s->scale_in_cooldown);
    if (s->given & SCALING_BIT(disable_scale_in))
        doc_put_flag(&c->make, tracking, "DisableScaleIn", s->disable_scale_in);
    doc_put(&c->make, d, "Alarms", DOC_LIST);
    bool timed = s->given & SCALING_BIT(policy_made_ms);
    doc_put_moment(&c->make, d, "CreationTime", timed ? s->policy_made_ms : x->t->created_ms);
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
    struct result_page page;
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
            for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) {
                x.of = of;
                const char *key = arena_printf(c->arena, "%s/%d", x.resource, of);
                if (!key) return call_nomem(c);
                if (asks(c, "ScalableDimension", kinds[of].dimension) && fits(c, &x) && page_takes(c, &page, key))
                    put_one(c, all, &x);
            }
        }
    }
    return 0;
}

int op_describe_scalable_targets(struct call *c) { return list(c, "ScalableTargets", fits_target, put_target); }
int op_describe_scaling_policies(struct call *c) { return list(c, "ScalingPolicies", fits_policy, put_policy); }
