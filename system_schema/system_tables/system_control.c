/* system_control.*: tests control the server's DDL here: its delay, its failure, and the release
 * of held changes. Rules that a client sets are recorded (ddl/rule.c); after a restart they
 * apply again to the changes under way. */
#include <stdio.h>
#include <stdlib.h>

#include "system_schema/system_tables/system_table.h"

/* ---- the values of a statement ---- */

struct input {
    const struct virtual_context *ctx;
    const struct schema_table *table;
    const struct virtual_change *change;
};

/* Copies a text with a terminating NUL. Null gives "", unset gives NULL. *failed: no memory, or
 * the text holds a 0. */
static const char *text_of(const struct input *in, const char *column, bool *failed) {
    struct value v = virtual_given(in->change, in->table, column);
    if (value_is_unset(v)) return NULL;
    struct slice copy = arena_dup(in->ctx->arena, v.n > 0 ? value_slice(v) : slice_str(""));
    if (!copy.p || memchr(copy.p, 0, copy.n)) {
        *failed = true;
        if (copy.p)
            err_invalid(in->ctx->err, "A text of %s.%s may not hold the character 0", in->table->keyspace->name,
                        in->table->name);
        else err_nomem(in->ctx->err);
    }
    return (const char *)copy.p;
}

static int refuse_column(const struct input *in, const char *column) {
    if (value_is_unset(virtual_given(in->change, in->table, column))) return 0;
    return err_invalid(in->ctx->err, "Column %s of %s.%s is read-only", column,
                       in->table->keyspace->name, in->table->name);
}

/* ---- ddl: the rules ---- */

YIELDS(control_ddl) {
    struct ddl *d = context_of(ro->table)->catalog->ddl;
    int rc = 0;
    pthread_mutex_lock(&d->objects->lock);
    for (uint32_t i = 0; i < d->rules.n && rc == 0; i++) {
        const struct ddl_rule *r = d->rules.all[i];
        row_text_copy(ro, "statement", r->statement);
        row_text_copy(ro, "keyspace_name", r->keyspace);
        row_text_copy(ro, "name", r->name);
        if (r->has_delay) row_text_copy(ro, "delay", r->delay_text);
        if (r->has_failure) row_text_copy(ro, "failure", r->failure);
        row_bool(ro, "configured", r->configured);
        rc = row_out_emit(ro);
    }
    pthread_mutex_unlock(&d->objects->lock);
    return rc;
}

WRITES(control_ddl) {
    struct ddl *d = context_of(table)->catalog->ddl;
    const struct input in = {ctx, table, change};
    bool failed = false;
    const struct ddl_subject of = {text_of(&in, "statement", &failed), text_of(&in, "keyspace_name", &failed),
                                   text_of(&in, "name", &failed)};
    const char *delay = text_of(&in, "delay", &failed), *failure = text_of(&in, "failure", &failed);
    if (failed || refuse_column(&in, "configured")) return -1;
    pthread_mutex_lock(&d->objects->lock);
    int rc = change->kind == VIRTUAL_DELETE ? rules_remove(d, &of, ctx->err)
                                            : rules_set(d, &of, delay, failure, ctx->err);
    pthread_mutex_unlock(&d->objects->lock);
    return rc;
}

/* ---- objects: status and changes under way ---- */

static int emit_object(struct row_out *ro, struct objects *o, const struct catalog_object *x) {
    char statement[DDL_STATEMENT_MAX];
    const struct form_context at = object_context(o, x);
    int64_t since = clock_wall_us(o->clock) - clock_mono_us(o->clock); /* wall time of the monotonic clock's zero */
    if (object_is_gone(x) || !row_out_wants(ro, 0, at.keyspace)) return 0;
    row_text_copy(ro, "keyspace_name", at.keyspace);
    row_text(ro, "kind", x->kind->word);
    row_text_copy(ro, "name", at.name);
    row_text(ro, "status", schema_status_name(x->status));
    row_long(ro, "since", (since + x->since_us) / 1000);
    if (!object_is_changing(x)) return row_out_emit(ro);
    change_statement(x, statement);
    row_text_copy(ro, "statement", x->change ? statement : "DROP KEYSPACE");
    row_bool(ro, "held", x->change && x->change->due_us == INT64_MAX);
    if (x->change && x->change->due_us != INT64_MAX) row_long(ro, "due", (since + x->change->due_us) / 1000);
    if (x->change && x->change->failure) row_text_copy(ro, "failure", x->change->failure);
    return row_out_emit(ro);
}

static int by_key(const void *pa, const void *pb) {
    const struct catalog_object *a = *(const struct catalog_object *const *)pa,
                                *b = *(const struct catalog_object *const *)pb;
    int c = a->keyspace_id != b->keyspace_id ? (a->keyspace_id < b->keyspace_id ? -1 : 1)
                                             : strcmp(a->kind->word, b->kind->word);
    return c ? c : strcmp(a->name, b->name);
}

/* Emits each keyspace and then its objects, in the order of the table's key. */
static int emit_objects(struct row_out *ro, struct objects *o) {
    struct catalog_object **all = ARENA_ARRAY(ro->ctx->arena, o->n_all + 1, struct catalog_object *);
    int rc = all ? 0 : err_nomem(ro->ctx->err);
    if (rc) return rc;
    if (o->n_all) memcpy(all, o->all, o->n_all * sizeof(struct catalog_object *));
    qsort(all, o->n_all, sizeof *all, by_key);
    for (uint32_t k = 0; k < o->n_all && rc == 0; k++) {
        if (all[k]->kind != &keyspace_kind) continue;
        rc = emit_object(ro, o, all[k]);
        for (uint32_t i = 0; i < o->n_all && rc == 0; i++)
            if (all[i]->keyspace_id == all[k]->id) rc = emit_object(ro, o, all[i]);
    }
    return rc;
}

/* The switch of the partitioner is shown like an object, because it has a delay like one. */
static const char switch_keyspace[] = "system", switch_kind[] = "partitioner", switch_name[] = "local";

YIELDS(control_objects) {
    const struct system_tables *s = context_of(ro->table);
    pthread_mutex_lock(&s->catalog->objects->lock);
    int rc = emit_objects(ro, s->catalog->objects);
    const struct partitioner *p = &s->partitioner;
    if (rc == 0 && partitioner_is_switching(p) && row_out_wants(ro, 0, switch_keyspace)) {
        struct clock *clock = s->catalog->objects->clock;
        int64_t since = clock_wall_us(clock) - clock_mono_us(clock), due_us = s->catalog->ddl->guest.due_us;
        row_text(ro, "keyspace_name", switch_keyspace);
        row_text(ro, "kind", switch_kind);
        row_text(ro, "name", switch_name);
        row_text(ro, "status", schema_status_name(SCHEMA_UPDATING));
        row_text(ro, "statement", "UPDATE PARTITIONER");
        row_long(ro, "since", (since + p->since_us) / 1000);
        row_bool(ro, "held", due_us == INT64_MAX);
        if (due_us != INT64_MAX) row_long(ro, "due", (since + due_us) / 1000);
        if (*p->failure) row_text_copy(ro, "failure", p->failure);
        rc = row_out_emit(ro);
    }
    pthread_mutex_unlock(&s->catalog->objects->lock);
    return rc;
}

/* The changes that a statement wants on the objects that it names. */
struct order {
    const char *keyspace, *kind, *name; /* "*": any */
    const char *status, *failure;       /* NULL means unchanged */
    enum { LEAVE, HOLD, RELEASE } hold;
};

static int set_status(struct objects *o, struct catalog_object *x, const char *text, struct err *e) {
    static const enum schema_status other = SCHEMA_INACCESSIBLE_ENCRYPTION_CREDENTIALS;
    bool active = strcmp(text, schema_status_name(SCHEMA_ACTIVE)) == 0;
    enum schema_status from = x->status, to = active ? SCHEMA_ACTIVE : other;
    if (!active && strcmp(text, schema_status_name(other)) != 0)
        return err_invalid(e, "A status may be set to %s and, of a table, %s; all others come with their statements",
                           schema_status_name(SCHEMA_ACTIVE), schema_status_name(other));
    if (from == to) return 0;
    if (object_is_changing(x) || x->kind != &table_kind)
        return err_invalid(e, "The status of %s %s is %s and may not be set", x->kind->word, x->name,
                           schema_status_name(from));
    object_set_status(o, x, to);
    if (object_save(o, x, e) == 0) return objects_publish(o, e);
    object_restore_status(o, x, from);
    return -1;
}

static int obey(struct objects *o, struct catalog_object *x, const struct order *order, bool alone, struct err *e) {
    struct change_under_way *c = x->change;
    if (order->status && set_status(o, x, order->status, e)) return -1;
    if ((order->failure || order->hold != LEAVE) && !c)
        return alone ? err_invalid(e, "Nothing is under way on %s %s: it is %s%s", x->kind->word, x->name,
                                   schema_status_name(x->status), object_is_changing(x) ? ", with its keyspace" : "")
                     : 0;
    if (order->failure) change_fail_with(c, *order->failure ? order->failure : NULL);
    if (order->hold == HOLD) c->due_us = INT64_MAX;
    if (order->hold == RELEASE) c->due_us = clock_mono_us(o->clock);
    return 0;
}

static bool is_any(const char *s) { return strcmp(s, "*") == 0; }

static bool is_meant(const struct order *o, const char *keyspace, const char *kind, const char *name) {
    return (is_any(o->keyspace) || strcmp(o->keyspace, keyspace) == 0) &&
           (is_any(o->kind) || strcmp(o->kind, kind) == 0) && (is_any(o->name) || strcmp(o->name, name) == 0);
}

static int obey_all(struct system_tables *s, const struct order *o, struct err *e) {
    struct objects *objects = s->catalog->objects;
    bool alone = !is_any(o->keyspace) && !is_any(o->kind) && !is_any(o->name), found = false;
    if (!alone && o->status) return err_invalid(e, "A status is set of one object at a time");
    for (uint32_t i = 0; i < objects->n_all; i++) {
        struct catalog_object *x = objects->all[i];
        const struct form_context at = object_context(objects, x);
        bool meant = !object_is_gone(x) && is_meant(o, at.keyspace, x->kind->word, at.name);
        found = found || meant;
        if (meant && obey(objects, x, o, alone, e)) return -1;
    }
    struct partitioner *p = &s->partitioner;
    bool is_switch = partitioner_is_switching(p) && is_meant(o, switch_keyspace, switch_kind, switch_name);
    if (is_switch && o->status) return err_invalid(e, "The status of the partitioner's switch may not be set");
    if (is_switch && o->failure) snprintf(p->failure, sizeof p->failure, "%s", o->failure);
    if (is_switch && o->hold == HOLD) s->catalog->ddl->guest.due_us = INT64_MAX;
    if (is_switch && o->hold == RELEASE) s->catalog->ddl->guest.due_us = clock_mono_us(objects->clock);
    return found || is_switch || !alone
               ? 0
               : err_invalid(e, "There is no %s %s in keyspace %s", o->kind, o->name, o->keyspace);
}

WRITES(control_objects) {
    struct system_tables *s = context_of(table);
    const struct input in = {ctx, table, change};
    bool failed = false;
    struct value held = virtual_given(change, table, "held");
    struct order o = {text_of(&in, "keyspace_name", &failed), text_of(&in, "kind", &failed),
                      text_of(&in, "name", &failed),          text_of(&in, "status", &failed),
                      text_of(&in, "failure", &failed),       LEAVE};
    if (failed || refuse_column(&in, "statement") || refuse_column(&in, "since") || refuse_column(&in, "due"))
        return -1;
    if (change->kind == VIRTUAL_DELETE)
        return err_invalid(ctx->err, "Row deletion is not supported by table %s.%s", table->keyspace->name,
                           table->name);
    if (held.n == VALUE_NULL) return err_invalid(ctx->err, "held is true or false");
    if (!value_is_unset(held)) o.hold = held.n == 1 && *held.p ? HOLD : RELEASE;
    pthread_mutex_lock(&s->catalog->objects->lock);
    int rc = obey_all(s, &o, ctx->err);
    pthread_mutex_unlock(&s->catalog->objects->lock);
    if (rc == 0) ddl_step(s->catalog->ddl); /* so that released changes have ended when this is answered */
    return rc;
}
