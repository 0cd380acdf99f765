/* Checks one DDL statement against the current state, records it and begins the change. */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/fault.h"
#include "base/name_tree.h"
#include "base/random.h"
#include "keyspaces/quota.h"
#include "system_schema/ddl/apply.h"
#include "system_schema/objects/table_event.h"

int catalog_refuse_system(const struct catalog_change *ch, bool cassandra_mode, struct err *e) {
    if (ch->op == CATALOG_CREATE_KEYSPACE) return ddl_error(e, cassandra_mode, DDL_SYSTEM_KEYSPACE, ch->keyspace);
    if (!schema_system_is_replicated(ch->keyspace))
        return ddl_error(e, cassandra_mode, DDL_SYSTEM_MODIFIED, ch->keyspace);
    bool drops = ch->op == CATALOG_DROP_KEYSPACE || ch->op == CATALOG_DROP_TABLE || ch->op == CATALOG_DROP_TYPE;
    bool creates = ch->op == CATALOG_CREATE_TABLE || ch->op == CATALOG_CREATE_TYPE,
         of_type = ch->op == CATALOG_ALTER_TYPE || ch->op == CATALOG_DROP_TYPE;
    const char *verb = creates ? "CREATE" : drops ? "DROP" : "ALTER";
    if (creates || of_type) return ddl_error(e, cassandra_mode, DDL_SYSTEM_TABLES, verb, ch->keyspace);
    if (ch->name) return ddl_error(e, cassandra_mode, DDL_SYSTEM_TABLE, verb, ch->keyspace, ch->name);
    return ddl_error(e, cassandra_mode, DDL_SYSTEM_ITSELF, verb, ch->keyspace);
}

bool apply_is_unfit(const struct catalog_object *x, bool to_drop) {
    return object_is_changing(x) || (!to_drop && x->status == SCHEMA_INACCESSIBLE_ENCRYPTION_CREDENTIALS);
}

int apply_busy(struct apply *a, const struct catalog_object *x) {
    char what[32] = "";
    strncpy(what, x->kind->word, sizeof what - 1);
    *what = (char)(*what - 'a' + 'A');
    const char *end = x->status == SCHEMA_DELETING ? "gone" : "ACTIVE";
    return apply_error(a, DDL_BUSY, what, x->name, schema_status_name(x->status), end);
}

static int begin_change(struct apply *a, struct catalog_object *x, enum schema_change_kind kind,
                        enum schema_status to) {
    a->subject = x;
    a->kind = kind;
    a->from = x->status;
    return object_begin_change(a->objects, x, to, a->err) ? -1 : BEGUN;
}

struct catalog_object *apply_keyspace(struct apply *a, bool must_exist) {
    struct catalog_object *ks = object_find(a->objects, &keyspace_kind, 0, a->change->keyspace);
    const struct catalog_object *old =
        ks ? NULL : object_find_deleting(a->objects, &keyspace_kind, 0, a->change->keyspace);
    if (old) (void)apply_busy(a, old);
    else if (!ks && must_exist)
        apply_error(a, a->change->op == CATALOG_CREATE_TYPE ? DDL_TYPE_NO_KEYSPACE : DDL_NO_KEYSPACE,
                    a->change->keyspace);
    if (ks && ks->status == SCHEMA_CREATING) {
        apply_error(a, DDL_KEYSPACE_CREATING, a->change->keyspace);
        return err_null(err_about(a->err, a->change->keyspace, ""));
    }
    if (ks && regions_are_added(ks)) { /* G1 */
        apply_busy(a, ks);
        return NULL;
    }
    return ks;
}

struct catalog_object *apply_existing(struct apply *a, const struct object_kind *kind, enum ddl_error_id missing) {
    const struct catalog_change *ch = a->change;
    bool alters = ch->op == CATALOG_ALTER_KEYSPACE || ch->op == CATALOG_ALTER_TABLE || ch->op == CATALOG_ALTER_TYPE;
    bool drops = ch->op == CATALOG_DROP_KEYSPACE || ch->op == CATALOG_DROP_TABLE || ch->op == CATALOG_DROP_TYPE ||
                 ch->op == CATALOG_DROP_OBJECT;
    const struct catalog_object *ks = kind->in_keyspace ? apply_keyspace(a, false) : NULL, *old = NULL;
    struct catalog_object *x = NULL;
    if (a->err->set) return NULL;
    if (ks || !kind->in_keyspace) {
        const char *name = ks ? ch->name : ch->keyspace;
        x = object_find(a->objects, kind, ks ? ks->id : 0, name);
        /* An object keeps its name until it is gone, as on Keyspaces: until then the name can be
         * neither created nor altered, and another drop has nothing to do. (In cassandra mode the
         * client that drops waits for the end, so that only other clients see this state.) */
        old = x ? NULL : object_find_deleting(a->objects, kind, ks ? ks->id : 0, name);
    }
    if (old && alters) apply_busy(a, old);
    bool lacks = !x && !old && !ch->conditional;
    if (lacks && kind == &table_kind && !ks) apply_error(a, DDL_TABLE_NO_KEYSPACE, ch->keyspace, ch->name);
    else if (lacks && kind == &type_kind && !ks)
        apply_error(a, alters ? DDL_ALTER_TYPE_NO_KEYSPACE : DDL_DROP_TYPE_NO_KEYSPACE, ch->keyspace, ch->name);
    else if (lacks && kind->in_keyspace) apply_error(a, missing, ch->name, ch->keyspace, kind->word);
    else if (lacks) apply_error(a, missing, ch->keyspace);
    if (x && apply_is_unfit(x, drops)) apply_busy(a, x);
    return a->err->set ? NULL : x;
}

static int set_form(struct apply *a, const struct catalog_object *x, struct slice *form, const void *definition) {
    const struct form_context at = object_context(a->objects, x);
    struct buf b;
    buf_init(&b, 0);
    int rc = definition_form(x->kind, &at, definition, &b, a->err);
    if (rc == 0) rc = form_set(form, buf_slice(&b), a->err);
    buf_fini(&b);
    return rc;
}

void *apply_definition(struct apply *a, const struct catalog_object *x) { return object_decode(x, &a->arena, a->err); }

int apply_merge_settings(struct apply *a, const struct table_settings *old, struct table_settings *out) {
    const struct catalog_change *ch = a->change;
    const struct setting_map *removed = &ch->removed_tags, none = {0};
    *out = old ? *old : *settings_defaults(true);
    if (ch->settings && settings_merge(old ? old : settings_defaults(true), ch->settings, ch->targets, &a->arena, out))
        return err_nomem(a->err);
    return removed->n && tags_merge(&out->tags, &none, removed, &a->arena, &out->tags) ? err_nomem(a->err) : 0;
}

/* The same for a keyspace, whose settings are tags. */
static int merge_tags(struct apply *a, struct schema_keyspace *ks) {
    const struct table_settings old = {.given = SETTING_BIT(tags), .tags = ks->tags};
    struct table_settings s;
    if (apply_merge_settings(a, &old, &s)) return -1;
    ks->tags = s.tags;
    return 0;
}

/* ---- keyspaces ---- */

int apply_check_number(struct apply *a, const struct object_kind *kind, enum refusal_id rule, uint32_t most) {
    uint32_t n = 0;
    if (a->compat.mode == COMPAT_OFF) return 0;
    for (uint32_t i = 0; i < a->objects->n_all && n < most; i++)
        n += a->objects->all[i]->kind == kind && !object_is_gone(a->objects->all[i]);
    return n >= most ? compat_refuse(&a->compat, rule, a->err, (int)most) : 0;
}

/* Returns -1 if the names and types of the columns and the comment are together larger than
 * Keyspaces allows. */
static int check_schema_bytes(struct apply *a, const struct table_parts *parts) {
    struct buf text;
    if (a->compat.mode == COMPAT_OFF) return 0;
    buf_init(&text, 0);
    for (uint32_t i = 0; i < parts->n_columns; i++) {
        buf_put_str(&text, parts->columns[i].name);
        cql_type_print(parts->columns[i].type, &text);
    }
    buf_put_str(&text, parts->settings.comment);
    int bytes = (int)text.n, rc = buf_failed(&text) ? err_nomem(a->err) : 0;
    buf_fini(&text);
    if (rc || bytes <= QUOTA_SCHEMA_BYTES) return rc;
    return compat_refuse(&a->compat, REFUSE_SCHEMA_BYTES, a->err, bytes, QUOTA_SCHEMA_BYTES);
}

/* Returns -1 if Keyspaces does not allow this number of Regions, a Region's name or its number of
 * replicas. */
static int check_regions(struct apply *a, const struct schema_keyspace *ks) {
    uint32_t n = ks->n_replication - 1;
    bool fits = n >= QUOTA_REGIONS_MIN, own = false;
    if (a->compat.mode == COMPAT_OFF || !strstr(ks->replication[0].value, "NetworkTopologyStrategy")) return 0;
    for (uint32_t i = 1; i <= n && fits; i++) fits = strcmp(ks->replication[i].value, "3") == 0;
    if (!fits && compat_refuse(&a->compat, REFUSE_REGIONS, a->err)) return -1;
    for (uint32_t i = 1; i <= n; i++) {
        const char *name = ks->replication[i].name;
        own = own || strcmp(name, a->objects->region) == 0;
        if (!quota_is_region(name) && compat_refuse(&a->compat, REFUSE_REGION_NAME, a->err, quota_regions + 2))
            return -1;
    }
    return own ? 0 : compat_refuse(&a->compat, REFUSE_REGION_OWN, a->err, a->objects->region);
}

/* Returns -1 if the change removes a Region, or makes the keyspace multi-Region while a table lacks
 * client-side timestamps or has settings that no multi-Region table has. Keyspaces allows neither. */
static int check_new_regions(struct apply *a, const struct catalog_object *x, const struct schema_keyspace *before,
                             const struct schema_keyspace *ks) {
    bool was_single = schema_regions(before) < 2, several = was_single && schema_regions(ks) >= 2;
    for (uint32_t i = 0; several && i < a->objects->n_all; i++) {
        const struct catalog_object *y = a->objects->all[i];
        if (y->kind != &table_kind || !object_lives_in(y, x->id)) continue;
        const struct schema_table *t = apply_definition(a, y);
        if (!t || settings_check_together(&t->settings, &t->settings, true, a->err)) return -1;
        if (!a->change->client_timestamps && !schema_has_client_timestamps(t) &&
            compat_refuse(&a->compat, REFUSE_REGION_TIMESTAMPS, a->err, y->name))
            return -1;
    }
    if (was_single) return 0;
    for (uint32_t i = 1; i < before->n_replication; i++) {
        const char *region = before->replication[i].name;
        if (option_find(ks->replication, ks->n_replication, region)) continue;
        if (compat_refuse(&a->compat, REFUSE_REGION_REMOVAL, a->err, region)) return -1;
    }
    return 0;
}

static int create_keyspace(struct apply *a) {
    const struct catalog_change *ch = a->change;
    if (ch->durable_writes == 0 && compat_refuse(&a->compat, REFUSE_DURABLE_WRITES, a->err)) return -1;
    if (object_find(a->objects, &keyspace_kind, 0, ch->keyspace)) {
        if (ch->conditional) return NOTHING_TO_DO;
        apply_error(a, DDL_KEYSPACE_EXISTS, ch->keyspace);
        return err_about(a->err, ch->keyspace, "");
    }
    const struct catalog_object *old = object_find_deleting(a->objects, &keyspace_kind, 0, ch->keyspace);
    if (old) return apply_busy(a, old);
    struct schema_keyspace ks = {.name = ch->keyspace, .durable_writes = ch->durable_writes != 0};
    if (replication_check(a->ddl, ch->keyspace, ch->n_replication, ch->replication, &a->arena, &ks, a->err)) return -1;
    if (check_regions(a, &ks) || merge_tags(a, &ks) ||
        apply_check_number(a, &keyspace_kind, REFUSE_KEYSPACES, QUOTA_KEYSPACES))
        return -1;
    return apply_begin_create(a, &keyspace_kind, NULL, &ks);
}

int apply_begin_update(struct apply *a, struct catalog_object *x, const void *definition) {
    struct slice next = {0};
    if (set_form(a, x, &next, definition)) return -1;
    int rc = slice_eq(next, x->form) ? NOTHING_TO_DO : begin_change(a, x, CHANGE_UPDATED, SCHEMA_UPDATING);
    if (rc == BEGUN) x->change->next = next;
    else free((void *)next.p);
    return rc;
}

static int alter_keyspace(struct apply *a) {
    const struct catalog_change *ch = a->change;
    struct catalog_object *x = apply_existing(a, &keyspace_kind, DDL_ALTER_NO_KEYSPACE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    struct schema_keyspace *ks = apply_definition(a, x);
    if (!ks) return -1;
    const struct schema_keyspace before = *ks;
    if (ch->durable_writes == 0 && compat_refuse(&a->compat, REFUSE_DURABLE_WRITES, a->err)) return -1;
    if (ch->durable_writes >= 0) ks->durable_writes = ch->durable_writes;
    if (ch->n_replication &&
        replication_check(a->ddl, x->name, ch->n_replication, ch->replication, &a->arena, ks, a->err))
        return -1;
    if (ch->n_replication && (check_regions(a, ks) || check_new_regions(a, x, &before, ks))) return -1;
    if (merge_tags(a, ks)) return -1;
    return apply_begin_update(a, x, ks);
}

/* Only the keyspace's record is written. After a stop half-way the next start deletes the tables
 * (ddl/start.c, show). */
static int drop_keyspace(struct apply *a) {
    struct catalog_object *ks = apply_existing(a, &keyspace_kind, DDL_DROP_NO_KEYSPACE);
    if (!ks) return a->err->set ? -1 : NOTHING_TO_DO;
    for (uint32_t i = 0; i < a->objects->n_all; i++) {
        const struct catalog_object *x = a->objects->all[i];
        if (x->keyspace_id == ks->id && x->status != SCHEMA_DELETING && object_is_changing(x)) return apply_busy(a, x);
    }
    return begin_change(a, ks, CHANGE_DROPPED, SCHEMA_DELETING);
}

/* ---- what one object needs of another ---- */

struct needed {
    struct apply *a;
    const struct catalog_object *by, *what;
};

static int need_not(void *arg, const struct object_kind *kind, const char *name) {
    const struct needed *n = arg;
    if (kind != n->what->kind || strcmp(name, n->what->name) != 0) return 0;
    return apply_error(n->a, DDL_OBJECT_NEEDED, kind->word, n->a->change->keyspace, name, n->by->kind->word,
                       n->by->name);
}

static bool may_need(const struct object_kind *by, const struct object_kind *what) {
    for (const struct object_kind *const *k = by->needs; k && *k; k++)
        if (*k == what) return true;
    return false;
}

int apply_begin_drop(struct apply *a, struct catalog_object *x) {
    bool any = false;
    for (uint32_t i = 0; i < a->objects->n_kinds; i++) any |= may_need(a->objects->kinds[i], x->kind);
    /* Looks only at objects of kinds that may need x, so that a drop costs no more than those. */
    for (uint32_t i = 0; any && i < a->objects->n_all; i++) {
        const struct catalog_object *by = a->objects->all[i];
        if (!may_need(by->kind, x->kind) || !object_lives_in(by, x->keyspace_id)) continue;
        const void *definition = apply_definition(a, by);
        struct needed n = {.a = a, .by = by, .what = x};
        if (!definition || by->kind->depend(definition, need_not, &n)) return -1;
    }
    return begin_change(a, x, CHANGE_DROPPED, SCHEMA_DELETING);
}

static int need_there(void *arg, const struct object_kind *kind, const char *name) {
    struct apply *a = arg;
    const struct catalog_object *ks = object_find(a->objects, &keyspace_kind, 0, a->change->keyspace);
    const struct catalog_object *needed = ks ? object_find(a->objects, kind, ks->id, name) : NULL;
    if (needed && !apply_is_unfit(needed, false)) return 0;
    return needed ? apply_busy(a, needed)
                  : apply_error(a, DDL_OBJECT_LACKS, kind->word, a->change->keyspace, name, a->change->name);
}

int apply_check_needs(struct apply *a, const struct object_kind *kind, const void *definition) {
    return kind->depend ? kind->depend(definition, need_there, a) : 0;
}

int apply_begin_create(struct apply *a, const struct object_kind *kind, const struct catalog_object *ks,
                       const void *definition) {
    uint32_t id;
    if (apply_check_needs(a, kind, definition) || objects_next_id(a->objects, &id, a->err)) return -1;
    const char *name = ks ? a->change->name : a->change->keyspace;
    struct catalog_object *x = object_add(a->objects, kind, id, ks ? ks->id : 0, name, a->err);
    if (!x) return -1;
    a->subject = x;
    a->kind = CHANGE_CREATED;
    if (set_form(a, x, &x->form, definition) == 0) return BEGUN;
    object_remove(a->objects, x);
    return -1;
}

/* ---- what Keyspaces adds to a table ---- */

/* Sets the settings that depend on the time of the statement: when the table became on-demand,
 * and the label of a new stream. */
static int stamp_settings(struct apply *a, const struct schema_table *before, struct table_settings *s) {
    int64_t now = clock_wall_us(a->objects->clock) / 1000;
    if (s->given & SETTING_BIT(throughput_mode) && s->throughput_mode == PAY_PER_REQUEST) {
        struct table_capacity was = {.provisioned = true};
        if (before) schema_capacity(before, &was);
        SETTING_SET(s, on_demand_since_ms, was.provisioned ? now : was.on_demand_since_ms);
    }
    if (!s->cdc || (before && before->settings.cdc) || a->objects->mode != MODE_KEYSPACES) return 0;
    /* A stream's label has the form of AWS's examples: "2026-01-02T03:04:05.678". */
    char text[CLOCK_TEXT];
    clock_text(now * 1000, text);
    SETTING_SET(s, stream_label, arena_strdup(&a->arena, text));
    return s->stream_label ? 0 : err_nomem(a->err);
}

/* Removes settings that no longer apply to the table, so that they do not make later statements
 * fail: those of auto scaling when the statement makes the table on-demand, those of the stream
 * when the table has none. Settings of the statement itself stay: settings_check_together refuses
 * them. */
static int drop_pointless(struct apply *a, struct table_settings *s) {
    const struct table_settings *given = a->change->settings ? a->change->settings : settings_defaults(true);
    uint64_t stream = setting_group(SETTING_BIT(view_type));
    bool on_demand = given->given & SETTING_BIT(throughput_mode) && given->throughput_mode == PAY_PER_REQUEST;
    bool scales = settings_have_scaling(given, READ_CAPACITY) || settings_have_scaling(given, WRITE_CAPACITY);
    if (!s->cdc && !(given->given & stream)) settings_clear(s, stream);
    return on_demand && !scales && settings_clear_scaling(s, &a->arena) ? err_nomem(a->err) : 0;
}

/* Checks the table's settings; decodes the keyspace's definition to count its Regions. */
static int check_settings(struct apply *a, const struct catalog_object *ks, const struct schema_table *t,
                          const struct schema_table *before) {
    const struct schema_keyspace *definition = apply_definition(a, ks);
    if (!definition) return -1;
    if (t->settings.point_in_time_recovery && eng_is_remote(a->objects->eng))
        return apply_error(a, DDL_RECOVERY_REMOTE);
    return settings_check_together(&t->settings, before ? &before->settings : NULL, schema_regions(definition) > 1,
                                   a->err);
}

/* ---- tables ---- */

int apply_check_table_name(struct apply *a, const struct catalog_object *ks) {
    const struct catalog_change *ch = a->change;
    const struct catalog_object *old = object_find_deleting(a->objects, &table_kind, ks->id, ch->name);
    if (!object_find(a->objects, &table_kind, ks->id, ch->name)) return old ? apply_busy(a, old) : 0;
    apply_error(a, DDL_TABLE_EXISTS, ch->name, ch->keyspace);
    return err_about(a->err, ch->keyspace, ch->name);
}

int apply_begin_create_table(struct apply *a, const struct catalog_object *ks, struct table_parts *parts,
                             struct schema_table *t) {
    if (drop_pointless(a, &parts->settings) || stamp_settings(a, NULL, &parts->settings) ||
        check_schema_bytes(a, parts) ||
        apply_check_number(a, &table_kind, REFUSE_TABLES, QUOTA_TABLES))
        return -1;
    if (table_assemble(&a->arena, parts, t, a->err) || check_settings(a, ks, t, NULL) ||
        apply_check_capacity(a, NULL, t, NULL))
        return -1;
    return apply_begin_create(a, &table_kind, ks, t);
}

static int create_table(struct apply *a) {
    const struct catalog_change *ch = a->change;
    struct catalog_object *ks = apply_keyspace(a, true);
    if (!ks) return -1;
    if (ch->conditional && object_find(a->objects, &table_kind, ks->id, ch->name)) return NOTHING_TO_DO;
    if (apply_check_table_name(a, ks)) return -1;
    struct schema_table t = {.created_ms = clock_wall_us(a->objects->clock) / 1000};
    struct table_parts parts = {.name = ch->name, .n_columns = ch->n_columns, .n_column_ids = ch->n_columns};
    if (apply_merge_settings(a, NULL, &parts.settings)) return -1;
    if (ch->has_id) memcpy(t.id, ch->id, sizeof t.id);
    else if (random_uuid(t.id, a->err)) return -1;
    parts.columns = ARENA_ARRAY(&a->arena, ch->n_columns + 1, struct schema_column);
    if (!parts.columns) return err_nomem(a->err);
    uint32_t positions[2] = {0};
    for (uint32_t i = 0; i < ch->n_columns; i++) {
        const struct catalog_column *col = &ch->columns[i];
        parts.columns[i] =
            (struct schema_column){.name = col->name, .type = col->type, .kind = col->kind, .desc = col->desc, .id = i};
        if (col->kind == COLUMN_PARTITION_KEY || col->kind == COLUMN_CLUSTERING)
            parts.columns[i].position = positions[col->kind]++;
    }
    return apply_begin_create_table(a, ks, &parts, &t);
}

/* Fills parts with the table's columns and appends the columns that the change adds. */
static int add_columns(struct apply *a, const struct schema_table *t, struct table_parts *parts) {
    const struct catalog_change *ch = a->change;
    parts->columns = ARENA_ARRAY(&a->arena, t->n_columns + ch->n_columns + 1, struct schema_column);
    if (!parts->columns) return err_nomem(a->err);
    memcpy(parts->columns, t->columns, t->n_columns * sizeof *t->columns);
    parts->n_columns = t->n_columns;
    parts->n_column_ids = t->n_column_ids;
    struct name_tree named = {.arena = &a->arena};
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (name_tree_put(&named, slice_str(t->columns[i].name), i) < 0) return err_nomem(a->err);
    for (uint32_t i = 0; i < ch->n_columns; i++) {
        const struct catalog_column *col = &ch->columns[i];
        int there = name_tree_put(&named, slice_str(col->name), parts->n_columns);
        if (there < 0) return err_nomem(a->err);
        if (there && ch->column_conditional) continue;
        if (there) return apply_error(a, DDL_ADDED_EXISTS, col->name);
        if (catalog_check_added(t, col, a->objects->mode == MODE_CASSANDRA, a->err)) return -1;
        bool counter = col->type->id == CQL_COUNTER, has_values = t->n_static + t->n_regular > 0;
        if (counter && !t->is_counter && has_values)
            return apply_error(a, DDL_ADDED_COUNTER, col->name, ch->keyspace, ch->name);
        if (!counter && t->is_counter)
            return apply_error(a, DDL_ADDED_OTHER, col->name, ch->keyspace, ch->name);
        int64_t id = apply_column_id(a, t, col, parts);
        if (id < 0) return -1;
        parts->columns[parts->n_columns++] = (struct schema_column){
            .name = col->name, .type = col->type, .kind = col->kind, .id = (uint32_t)id};
    }
    return 0;
}

static int alter_table(struct apply *a) {
    struct catalog_object *x = apply_existing(a, &table_kind, DDL_NO_TABLE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    const struct schema_table *t = apply_definition(a, x);
    struct schema_table altered = {0};
    if (!t) return -1;
    altered.created_ms = t->created_ms;
    memcpy(altered.id, t->id, sizeof t->id);
    struct table_parts parts = {.name = t->name};
    if (add_columns(a, t, &parts) || apply_drop_columns(a, t, &parts) || apply_rename_columns(a, t, &parts)) return -1;
    struct table_settings *s = &parts.settings;
    if (apply_merge_settings(a, &t->settings, s) || drop_pointless(a, s) || stamp_settings(a, t, s) ||
        apply_note_capacity(a, t, s))
        return -1;
    if (check_schema_bytes(a, &parts) || table_assemble(&a->arena, &parts, &altered, a->err)) return -1;
    if (altered.is_counter && altered.settings.default_time_to_live > 0)
        return apply_error(a, DDL_COUNTER_TTL);
    if (check_settings(a, object_by_id(a->objects, x->keyspace_id), &altered, t) ||
        apply_check_capacity(a, x, &altered, t))
        return -1;
    return apply_begin_update(a, x, &altered);
}

/* ---- objects of further kinds ---- */

static int create_object(struct apply *a) {
    const struct catalog_change *ch = a->change;
    struct catalog_object *ks = apply_keyspace(a, true);
    if (!ks) return -1;
    if (object_find(a->objects, ch->kind, ks->id, ch->name)) {
        if (ch->conditional) return NOTHING_TO_DO;
        return apply_error(a, DDL_OBJECT_EXISTS, ch->kind->word, ch->keyspace, ch->name);
    }
    const struct catalog_object *old = object_find_deleting(a->objects, ch->kind, ks->id, ch->name);
    if (old) return apply_busy(a, old);
    return apply_begin_create(a, ch->kind, ks, ch->definition);
}

static int drop_object(struct apply *a) {
    bool table = a->change->op == CATALOG_DROP_TABLE;
    const struct object_kind *kind = table ? &table_kind : a->change->kind;
    struct catalog_object *x = apply_existing(a, kind, table ? DDL_NO_TABLE : DDL_NO_OBJECT);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    return apply_begin_drop(a, x);
}

/* ---- all ---- */

/* Records the begin of a change. Without a delay the change ends in the same record, so that
 * clients never see a status in between. */
static int record_begin(struct apply *a, struct catalog_object *x) {
    struct ddl *d = a->ddl;
    struct objects *o = d->objects;
    struct change_before before;
    const struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(o, x->keyspace_id) : NULL;
    assert(!ks || !regions_are_added(ks)); /* G1 */
    change_schedule(d, x);
    if (a->change->at_once) {
        x->change->at_once = true;
        change_fail_with(x->change, NULL);
    }
    bool at_once = change_ends_at_once(x);
    if (at_once) change_finish(d, x, &before);
    fault_dies(FAULT_DDL);
    if (at_once ? history_save(o, x, before.status, a->err) : object_save(o, x, a->err)) {
        if (at_once) change_finish_undo(d, x, &before);
        if (a->kind == CHANGE_CREATED) {
            object_remove(o, x);
            return -1;
        }
        object_restore_status(o, x, a->from);
        object_free_change(x);
        return -1;
    }
    fault_dies(FAULT_DDL);
    /* The objects of a dropped keyspace become DELETING in memory only: their own records stay
     * unchanged, because the keyspace's record covers them, also when the drop ends. */
    bool keyspace_goes = a->kind == CHANGE_DROPPED && x->kind == &keyspace_kind;
    for (uint32_t i = 0; keyspace_goes && i < o->n_all; i++) {
        struct catalog_object *y = o->all[i];
        if (object_lives_in(y, x->id)) object_set_status(o, y, SCHEMA_DELETING);
    }
    if (at_once) change_finish_keep(d, x, &before);
    recovery_follow(d->recovery, x, a->kind == CHANGE_CREATED);
    return 0;
}

/* Check a statement against the current state and begin its change in memory. */
static int (*const checks[])(struct apply *) = {
    [CATALOG_CREATE_KEYSPACE] = create_keyspace,     [CATALOG_ALTER_KEYSPACE] = alter_keyspace,
    [CATALOG_DROP_KEYSPACE] = drop_keyspace,         [CATALOG_CREATE_TABLE] = create_table,
    [CATALOG_ALTER_TABLE] = alter_table,             [CATALOG_DROP_TABLE] = drop_object,
    [CATALOG_TRUNCATE_TABLE] = apply_truncate_table, [CATALOG_CREATE_TYPE] = apply_create_type,
    [CATALOG_ALTER_TYPE] = apply_alter_type,         [CATALOG_DROP_TYPE] = apply_drop_type,
    [CATALOG_RESTORE_TABLE] = apply_restore_table,   [CATALOG_CREATE_OBJECT] = create_object,
    [CATALOG_DROP_OBJECT] = drop_object,
};

static int apply(struct apply *a, struct schema_change *out, uint32_t *unfinished) {
    struct ddl *d = a->ddl;
    struct objects *o = d->objects;
    const struct catalog_change *ch = a->change;
    /* Cassandra guards its replicated system keyspaces by permissions alone. */
    if (o->mode == MODE_CASSANDRA && schema_system_is_replicated(ch->keyspace) && ch->op == CATALOG_ALTER_KEYSPACE &&
        system_space(a->objects, ch->keyspace))
        return apply_alter_system_keyspace(a, out) ? -1 : BEGUN;
    uint32_t pending = 0;
    for (const struct catalog_object *y = o->busy; y; y = y->busy_next) pending += object_is_changing(y);
    if (system_space(o, ch->keyspace) && catalog_refuse_system(ch, o->mode == MODE_CASSANDRA, a->err)) return -1;
    if (pending >= QUOTA_CONCURRENT_DDL &&
        compat_refuse(&a->compat, REFUSE_CONCURRENT_DDL, a->err, QUOTA_CONCURRENT_DDL))
        return -1;
    int rc = checks[ch->op](a);
    *unfinished = a->awaits;
    if (rc == NOTHING_TO_DO) *out = (struct schema_change){0};
    if (rc != BEGUN) return rc;
    struct catalog_object *x = a->subject;
    object_describe(o, a->kind, x, out);
    /* Erases the failures of earlier changes of the object: catalog_outcome must not report
     * them. */
    for (uint32_t i = 0; i < FAILURES_KEPT; i++)
        if (d->failures[i].id == x->id) d->failures[i].id = 0;
    assert(a->kind != CHANGE_CREATED || !notices_free_name(o, out->keyspace, out->name)); /* N3 */
    if (record_begin(a, x) || objects_publish(o, a->err)) return -1;
    fault_dies(FAULT_DDL);
    if (x->status == SCHEMA_ACTIVE) table_tell_engine(d->objects, x);
    if (a->kind == CHANGE_DROPPED || x->status == SCHEMA_ACTIVE) a->told = object_notify(o, a->kind, x);
    if (object_is_gone(x)) a->told = object_notify(o, CHANGE_GONE, x);
    objects_moved(o);
    /* With several servers a drop ends when the rows are freed, so that none writes to them after the answer. */
    bool freed_later = object_is_gone(x) && !eng_one_writer(o->eng);
    if (o->mode == MODE_CASSANDRA && (object_is_changing(x) || freed_later)) *unfinished = x->id;
    return BEGUN;
}

enum { NOTICES_OF_ONE = 2 }; /* DROPPED and GONE */

/* Decides and records the change once. *overtaken: it failed because another server has changed the
 * schema meanwhile. */
static int apply_once(struct ddl *d, const struct catalog_change *change, struct schema_change *out,
                      uint32_t *unfinished, bool *overtaken, struct err *e) {
    struct apply a = {.ddl = d, .objects = d->objects, .change = change, .err = e};
    if (change->compat) a.compat = *change->compat;
    arena_init(&a.arena, 16 * 1024, 0);
    *unfinished = 0;
    bool again = atomic_load(&d->objects->stale) || atomic_load(&d->objects->noticed);
    if (again) ddl_move(d); /* reads the records again */
    pthread_mutex_lock(&d->objects->lock);
    d->objects->overtaken = false;
    notices_await_name(d->objects, change->keyspace, change->name);
    int rc = notices_reserve(d->objects, NOTICES_OF_ONE, e) ? -1 : apply(&a, out, unfinished);
    *overtaken = rc < 0 && d->objects->overtaken;
    struct catalog_object *x = rc >= 0 && *unfinished ? object_by_id(d->objects, *unfinished) : NULL;
    if (x) x->awaited = true;
    pthread_mutex_unlock(&d->objects->lock);
    notices_deliver(d->objects, a.told);
    arena_fini(&a.arena);
    return rc;
}

int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) {
    enum { TRIES = 20, PAUSE_MS = 10 };
    bool overtaken;
    int rc = apply_once(c->ddl, change, out, unfinished, &overtaken, e);
    for (int i = 1; overtaken && i < TRIES; i++) {
        /* the records cannot be read again while an object is freed */
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        err_clear(e);
        rc = apply_once(c->ddl, change, out, unfinished, &overtaken, e);
    }
    return rc;
}

void catalog_describe_wait(struct catalog *c, const char *keyspace, const char *name, struct buf *out) {
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->lock);
    const struct catalog_object *x = object_find(o, &keyspace_kind, 0, keyspace);
    if (x && *name) x = object_find(o, &table_kind, x->id, name);
    const struct change_under_way *change = x ? x->change : NULL;
    if (change) {
        int64_t left_us = change->due_us == INT64_MAX ? 0 : change->due_us - clock_mono_us(o->clock);
        buf_printf(out, "%s%s%s is %s, ", keyspace, *name ? "." : "", name, schema_status_name(x->status));
        if (change->due_us == INT64_MAX) buf_put_str(out, "held until system_control.objects releases it");
        else buf_printf(out, "ready in %.1f s", left_us > 0 ? (double)left_us / 1e6 : 0);
        buf_printf(out, ": wait until system_schema_mcs.%s shows it%s", *name ? "tables" : "keyspaces",
                   *name ? " as ACTIVE" : "");
    }
    pthread_mutex_unlock(&o->lock);
}

int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) {
    struct objects *o = c->objects;
    const struct ddl *d = c->ddl;
    pthread_mutex_lock(&o->lock);
    const struct catalog_object *x = object_by_id(o, unfinished);
    bool freed = !x || !object_is_gone(x) || eng_one_writer(o->eng);
    bool goes_on = !freed || (x && object_is_changing(x)) || notices_name_object(o, unfinished); /* N2 */
    int rc = goes_on ? 1 : 0;
    for (uint32_t i = 0; rc == 0 && i < FAILURES_KEPT; i++)
        if (d->failures[i].id == unfinished) rc = err_set(e, ERR_SERVER, "%s", d->failures[i].words);
    pthread_mutex_unlock(&o->lock);
    return rc;
}
