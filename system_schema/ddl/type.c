/* CREATE, ALTER and DROP TYPE against the current state. */
#include <stdlib.h>
#include <string.h>

#include "keyspaces/compat.h"
#include "system_schema/ddl/apply.h"

/* ---- users of a type ---- */

static int is_name(void *arg, const struct object_kind *kind, const char *name) {
    return kind == &type_kind && strcmp(name, arg) == 0 ? -1 : 0;
}

/* True if the object's definition names the type. */
static bool names_type(struct ddl *d, const struct catalog_object *x, const struct catalog_object *type) {
    if (x->keyspace_id != type->keyspace_id || (x->kind != &type_kind && x->kind != &table_kind) || object_is_gone(x))
        return false;
    const struct form_context at = {.keyspace = object_context(d->objects, x).keyspace, .name = x->name};
    struct err ignored = {0};
    struct arena a;
    arena_init(&a, 16 * 1024, 0);
    const void *definition = x->kind->decode(x->form, &at, &a, &ignored);
    bool uses = definition && x->kind->depend(definition, is_name, type->name);
    arena_fini(&a);
    return uses;
}

void type_touch_users(struct ddl *d, const struct catalog_object *type) {
    struct objects *o = d->objects;
    for (uint32_t i = 0; i < o->n_all; i++) {
        struct catalog_object *x = o->all[i];
        if (!names_type(d, x, type)) continue;
        x->shape++;
        object_touch(o, x);
        if (x->kind == &type_kind) type_touch_users(d, x);
    }
}

/* ---- CREATE ---- */

static struct schema_type *type_of_fields(struct apply *a, const struct cql_type *old) {
    const struct catalog_change *ch = a->change;
    uint32_t n_old = old ? old->n_args : 0, n = n_old + ch->n_columns;
    const char **names = ARENA_ARRAY(&a->arena, n + 1, const char *);
    const struct cql_type **fields = ARENA_ARRAY(&a->arena, n + 1, const struct cql_type *);
    struct schema_type *t = ARENA_NEW(&a->arena, struct schema_type);
    if (!names || !fields || !t) return err_null(err_nomem(a->err));
    for (uint32_t i = 0; i < n; i++) {
        names[i] = i < n_old ? old->field_names[i] : ch->columns[i - n_old].name;
        fields[i] = i < n_old ? old->args[i] : ch->columns[i - n_old].type;
    }
    t->modified_ms = clock_wall_us(a->objects->clock) / 1000;
    t->type = cql_type_new_user(&a->arena, ch->keyspace, ch->name, fields, names, n, a->err);
    return t->type ? t : NULL;
}

int apply_create_type(struct apply *a) {
    const struct catalog_change *ch = a->change;
    struct catalog_object *ks = apply_keyspace(a, true);
    if (!ks) return -1;
    if (object_find(a->objects, &type_kind, ks->id, ch->name)) {
        if (ch->conditional) return NOTHING_TO_DO;
        return apply_error(a, DDL_TYPE_EXISTS, ch->name, ch->keyspace);
    }
    const struct catalog_object *old = object_find_deleting(a->objects, &type_kind, ks->id, ch->name);
    if (old) return apply_busy(a, old);
    const struct schema_type *t = type_of_fields(a, NULL);
    if (!t) return -1;
    const struct catalog_quota *q = &a->ddl->quota;
    int32_t depth = type_nesting(t->type);
    if (a->compat.mode != COMPAT_OFF && q->type_depth && depth > q->type_depth &&
        compat_refuse(&a->compat, REFUSE_TYPE_DEPTH, a->err, (int)depth, (int)q->type_depth))
        return -1;
    uint32_t most = q->types < UINT32_MAX ? (uint32_t)q->types : UINT32_MAX;
    if (q->types && apply_check_number(a, &type_kind, REFUSE_TYPES, most)) return -1;
    return apply_begin_create(a, &type_kind, ks, t);
}

/* ---- ALTER and DROP ---- */

static int refuse_field(struct apply *a, enum ddl_error_id why, const char *tables) {
    const struct catalog_change *ch = a->change;
    struct buf text;
    buf_init(&text, 4096);
    cql_type_print_qualified(ch->columns[0].type, &text);
    buf_u8(&text, 0);
    apply_error(a, why, ch->columns[0].name, buf_failed(&text) ? "..." : (const char *)text.p, ch->keyspace, ch->name,
                tables);
    buf_fini(&text);
    return -1;
}

static int by_name(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

/* Refuses a new field if the type is part of a partition key: the new field would change the
 * bytes of the key, by which a partition is found. */
static int check_partition_keys(struct apply *a, const struct catalog_object *type) {
    const char **names = calloc(a->objects->n_all, sizeof(*names));
    struct buf tables;
    uint32_t n = 0;
    if (!names) return err_nomem(a->err);
    for (uint32_t i = 0; i < a->objects->n_all; i++) {
        const struct catalog_object *x = a->objects->all[i];
        if (x->kind != &table_kind || !object_lives_in(x, type->keyspace_id)) continue;
        const struct schema_table *t = apply_definition(a, x);
        bool uses = false;
        for (uint32_t k = 0; t && k < t->n_partition_key; k++) uses |= cql_type_uses(t->columns[k].type, type->name);
        if (uses) names[n++] = x->name;
    }
    qsort(names, n, sizeof(*names), by_name);
    buf_init(&tables, 4096);
    for (uint32_t i = 0; i < n; i++) buf_printf(&tables, "%s%s.%s", i ? ", " : "", a->change->keyspace, names[i]);
    free(names);
    buf_u8(&tables, 0);
    int rc = tables.n > 1 ? refuse_field(a, DDL_FIELD_OF_KEY, (const char *)tables.p) : 0;
    buf_fini(&tables);
    return a->err->set ? -1 : rc;
}

static const struct schema_type *with_field(struct apply *a, const struct catalog_object *x,
                                            const struct cql_type *old) {
    const struct catalog_column *field = &a->change->columns[0];
    if (cql_type_field(old, slice_str(field->name)) < old->n_args) {
        if (!a->change->column_conditional)
            apply_error(a, DDL_FIELD_EXISTS, field->name, x->name, a->change->keyspace);
        return NULL;
    }
    if (cql_type_uses(field->type, x->name)) {
        refuse_field(a, DDL_FIELD_CIRCULAR, "");
        return NULL;
    }
    return check_partition_keys(a, x) ? NULL : type_of_fields(a, old);
}

static const struct schema_type *with_names(struct apply *a, const struct catalog_object *x,
                                            const struct cql_type *old) {
    const struct catalog_change *ch = a->change;
    struct schema_type *t = type_of_fields(a, old);
    const char **names = t ? ARENA_ARRAY(&a->arena, old->n_args, const char *) : NULL;
    if (!names) return err_null(err_nomem(a->err));
    memcpy(names, old->field_names, old->n_args * sizeof *names);
    for (uint32_t i = 0; i < ch->n_renames; i++) {
        uint32_t at = cql_type_field(old, slice_str(ch->rename_from[i]));
        if (at < old->n_args) {
            names[at] = ch->rename_to[i];
        } else if (!ch->column_conditional) {
            return err_null(apply_error(a, DDL_FIELD_UNKNOWN, ch->rename_from[i], ch->keyspace, x->name));
        }
    }
    t->type = cql_type_new_user(&a->arena, ch->keyspace, ch->name, old->args, names, old->n_args, a->err);
    for (uint32_t i = 0; t->type && i < old->n_args; i++) {
        if (cql_type_field(t->type, slice_str(names[i])) == i) continue;
        /* Cassandra 5 names the keyspace */
        const char *named = a->objects->mode == MODE_CASSANDRA ? ch->keyspace : x->name;
        return err_null(apply_error(a, DDL_FIELD_TAKEN, names[i], named));
    }
    return t->type ? t : NULL;
}

/* Checks that all users of the type stay within the limits of types: decodes each of them with
 * the new definition in place. */
static int check_users(struct apply *a, struct catalog_object *type, const struct schema_type *next) {
    const struct form_context at = object_context(a->objects, type);
    struct slice now = type->form;
    struct buf form;
    buf_init(&form, 0);
    int rc = definition_form(&type_kind, &at, next, &form, a->err);
    type->form = buf_slice(&form);
    for (uint32_t i = 0; i < a->objects->n_all && rc == 0; i++) {
        const struct catalog_object *x = a->objects->all[i];
        if (x->keyspace_id == type->keyspace_id && x->kind->depend && x->status != SCHEMA_DELETING &&
            !apply_definition(a, x))
            rc = -1;
    }
    type->form = now;
    buf_fini(&form);
    return rc;
}

int apply_alter_type(struct apply *a) {
    struct catalog_object *x = apply_existing(a, &type_kind, DDL_ALTER_NO_TYPE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    const struct schema_type *old = apply_definition(a, x);
    if (!old) return -1;
    const struct schema_type *t = a->change->n_columns ? with_field(a, x, old->type) : with_names(a, x, old->type);
    if (!t) return a->err->set ? -1 : NOTHING_TO_DO;
    if (cql_type_eq(old->type, t->type)) return NOTHING_TO_DO;
    if (apply_check_needs(a, &type_kind, t) || check_users(a, x, t)) return -1;
    return apply_begin_update(a, x, t);
}

/* Refuses the drop if objects of this kind use the type; lists them by name. */
static int check_unused(struct apply *a, const struct catalog_object *type, const struct object_kind *kind,
                        enum ddl_error_id used) {
    const struct catalog_object **users = ARENA_ARRAY(&a->arena, a->objects->n_all + 1, const struct catalog_object *);
    struct buf names;
    uint32_t n = 0;
    if (!users) return err_nomem(a->err);
    for (uint32_t i = 0; i < a->objects->n_all; i++) {
        const struct catalog_object *x = a->objects->all[i];
        if (x->kind != kind || x->status == SCHEMA_DELETING || !names_type(a->ddl, x, type)) continue;
        uint32_t at = n++;
        for (; at > 0 && strcmp(users[at - 1]->name, x->name) > 0; at--) users[at] = users[at - 1];
        users[at] = x;
    }
    if (n == 0) return 0;
    buf_init(&names, 4096);
    if (a->objects->mode == MODE_KEYSPACES) n = 1; /* 3.11 names the first */
    for (uint32_t i = 0; i < n; i++) buf_printf(&names, "%s%s", i ? ", " : "", users[i]->name);
    buf_u8(&names, 0);
    apply_error(a, used, type->name, a->change->keyspace, buf_failed(&names) ? "..." : (const char *)names.p);
    buf_fini(&names);
    return -1;
}

int apply_drop_type(struct apply *a) {
    struct catalog_object *x = apply_existing(a, &type_kind, DDL_DROP_NO_TYPE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    if (check_unused(a, x, &type_kind, DDL_TYPE_OF_TYPE) || check_unused(a, x, &table_kind, DDL_TYPE_OF_TABLE))
        return -1;
    return apply_begin_drop(a, x);
}
