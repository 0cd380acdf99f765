/* system_control.*: tests control the server's DDL here: its delay, its failure, and the release
 * of held changes. Rules that a client sets are recorded; after a restart they
 * apply again to the changes under way. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/state.h"
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

/* ---- snapshots ---- */

/* system_control.snapshots: states of the server, or of one keyspace, saved under a name and put
 * back. INSERT saves, UPDATE ... SET put_back = true puts back, DELETE removes. */
static int emit(void *arg, const char *name, const char *keyspace, int64_t saved_s) {
    struct row_out *ro = arg;
    row_text_copy(ro, "name", name);
    if (*keyspace) row_text_copy(ro, "keyspace_name", keyspace);
    row_long(ro, "saved_at", saved_s * 1000);
    return row_out_emit(ro);
}

YIELDS(control_snapshots) {
    return eng_state_each(context_of(ro->table)->catalog->objects->eng, emit, ro, ro->ctx->err);
}

enum { NAME_ROOM = 64 };

static int take_text(struct value v, char out[NAME_ROOM], struct err *e) {
    size_t n = v.n > 0 ? (size_t)v.n : 0;
    if (n >= NAME_ROOM || (n && memchr(v.p, 0, n)))
        return err_invalid(e, "A name in system_control.snapshots has at most %d bytes, none of them 0", NAME_ROOM - 1);
    if (n) memcpy(out, v.p, n);
    out[n] = 0;
    return 0;
}

WRITES(control_snapshots) {
    const struct catalog_states *s = context_of(table)->states;
    struct value name = virtual_given(change, table, "name"), back = virtual_given(change, table, "put_back"),
                 of = virtual_given(change, table, "keyspace_name");
    char text[NAME_ROOM], keyspace[NAME_ROOM];
    if (!s) return err_invalid(ctx->err, "This server saves no states");
    if (!value_is_unset(virtual_given(change, table, "saved_at")))
        return err_invalid(ctx->err, "Column saved_at of system_control.snapshots is read-only");
    if (take_text(name, text, ctx->err)) return -1;
    bool puts_back = !value_is_unset(back) && back.n == 1 && *back.p;
    if (change->kind == VIRTUAL_DELETE) return s->remove(s->arg, text, ctx->err);
    if (change->kind == VIRTUAL_INSERT) {
        if (!value_is_unset(back)) return err_invalid(ctx->err, "INSERT saves a state, and UPDATE puts it back");
        if (value_is_unset(of)) return s->save(s->arg, text, "", ctx->err);
        if (take_text(of, keyspace, ctx->err)) return -1;
        const struct schema_keyspace *ks = schema_keyspace_find(ctx->schema, keyspace);
        if (ks && ks->is_system)
            return err_invalid(ctx->err, "Keyspace %s is the server's own: save a state without keyspace_name",
                               keyspace);
        if (!ks) return err_invalid(ctx->err, "Keyspace '%s' doesn't exist", keyspace);
        return s->save(s->arg, text, keyspace, ctx->err);
    }
    if (!value_is_unset(of))
        return err_invalid(ctx->err, "Column keyspace_name of system_control.snapshots is set when a state is saved");
    return puts_back ? s->put_back(s->arg, text, ctx->err)
                     : err_invalid(ctx->err, "UPDATE system_control.snapshots SET put_back = true puts a state back");
}

/* ---- clock ---- */

/* system_control.clock: a test freezes, advances, sets and releases the server's clock here
 * (base/clock.h). In memory only: a restart begins with the machine's time. Write timestamps
 * never go back, whatever a test does here (engine/front/write_clock.c). */
static const char *const states[] = {[CLOCK_FREE] = "free", [CLOCK_RUNNING] = "running", [CLOCK_FROZEN] = "frozen"};
static const char only_name[] = "server";

YIELDS(control_clock) {
    struct clock_control *clock = context_of(ro->table)->clock_control;
    if (!clock) return 0;
    row_text(ro, "name", only_name);
    row_text(ro, "state", states[clock_control_state(clock)]);
    row_long(ro, "now", clock_wall_us(&clock->clock) / 1000);
    row_long(ro, "ahead_ms", clock_control_ahead_us(clock) / 1000);
    return row_out_emit(ro);
}

struct clock_order {
    bool has_now, has_advance, has_state;
    int64_t now_us, advance_us;
    enum clock_state state;
};

static int take_ms(struct value v, const char *column, bool *has, int64_t *us, struct err *e) {
    if (value_is_unset(v)) return 0;
    int64_t ms = v.n == 8 ? (int64_t)load_u64(v.p) : -1;
    if (ms < 0 || ms > INT64_MAX / 1000)
        return err_invalid(e, "%s of system_control.clock is not a time that the clock can have", column);
    *has = true;
    *us = ms * 1000;
    return 0;
}

/* Reads and checks the whole order first, so that an invalid one changes nothing. */
static int read_clock_order(const struct schema_table *t, const struct virtual_change *change, struct clock_order *o,
                      struct err *e) {
    struct value name = virtual_given(change, t, "name");
    *o = (struct clock_order){0};
    if (change->kind == VIRTUAL_DELETE)
        return err_invalid(e, "Row deletion is not supported by table system_control.clock");
    if (name.n < 0 || !slice_eq(value_slice(name), slice_str(only_name)))
        return err_invalid(e, "There is one clock, and its name is '%s'", only_name);
    if (!value_is_unset(virtual_given(change, t, "ahead_ms")))
        return err_invalid(e, "Column ahead_ms of system_control.clock is read-only");
    if (take_ms(virtual_given(change, t, "now"), "now", &o->has_now, &o->now_us, e) ||
        take_ms(virtual_given(change, t, "advance_ms"), "advance_ms", &o->has_advance, &o->advance_us, e))
        return -1;
    struct value state = virtual_given(change, t, "state");
    o->has_state = !value_is_unset(state);
    if (o->has_state) {
        size_t i = 0;
        while (i < ARRAY_LEN(states) && (state.n <= 0 || !slice_eq(value_slice(state), slice_str(states[i])))) i++;
        if (i == ARRAY_LEN(states)) return err_invalid(e, "The state of the clock is frozen, running or free");
        o->state = (enum clock_state)i;
    }
    if (o->has_now && o->has_advance) return err_invalid(e, "The clock is set to a time or advanced by some, not both");
    return 0;
}

/* Sets the state first: a clock that is frozen then keeps exactly the time that is set. */
WRITES(control_clock) {
    struct clock_control *clock = context_of(table)->clock_control;
    struct clock_order o;
    if (!clock) return err_invalid(ctx->err, "The clock of this server cannot be moved");
    if (read_clock_order(table, change, &o, ctx->err)) return -1;
    if (o.has_state && o.state == CLOCK_FREE) clock_control_free(clock);
    if (o.has_state && o.state == CLOCK_RUNNING) clock_control_run(clock);
    if (o.has_state && o.state == CLOCK_FROZEN) clock_control_freeze(clock);
    if ((o.has_now && clock_control_set(clock, o.now_us)) ||
        (o.has_advance && clock_control_advance(clock, o.advance_us)))
        return err_invalid(ctx->err, "The clock cannot be set so far");
    return 0;
}
