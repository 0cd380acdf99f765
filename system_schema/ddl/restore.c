/* RESTORE TABLE against the current state: creates a table with the definition that another
 * table had at a moment. The recovery worker adds the rows of that moment.
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/PointInTimeRecovery_HowItWorks.html). */
#include "base/random.h"
#include "keyspaces/quota.h"
#include "system_schema/ddl/apply.h"

/* "always restored based on the table's settings as of the current time or when the table was
 * deleted"; tags are not restored. */
static bool is_of_now(const char *option) {
    static const char *const groups[] = {"custom_properties.capacity_mode.",
                                         "custom_properties.encryption_specification.",
                                         "custom_properties.warm_throughput.",
                                         "custom_properties.point_in_time_recovery.",
                                         "custom_properties.replica_updates.",
                                         "autoscaling_settings."};
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (!strncmp(option, groups[i], strlen(groups[i]))) return true;
    return false;
}

/* True for options that the new table gets from neither definition: tags, streams and the
 * history of capacity changes. */
static bool is_of_neither(const char *option) {
    return !strncmp(option, "tags.", 5) || !strncmp(option, "stream.", 7) || !strncmp(option, "capacity.", 9) ||
           !strncmp(option, "custom_properties.cdc_specification.", 36) || !strcmp(option, "cdc");
}

static const struct schema_option *options_of(struct apply *a, const struct schema_table *then,
                                              const struct schema_table *now, uint32_t *n) {
    struct schema_option *all = ARENA_ARRAY(&a->arena, then->n_options + now->n_options + 1, struct schema_option);
    *n = 0;
    for (uint32_t i = 0; all && i < then->n_options; i++)
        if (!is_of_now(then->options[i].name) && !is_of_neither(then->options[i].name)) all[(*n)++] = then->options[i];
    for (uint32_t i = 0; all && i < now->n_options; i++)
        if (is_of_now(now->options[i].name)) all[(*n)++] = now->options[i];
    if (!all) err_nomem(a->err);
    return all;
}

static int check_moment(struct apply *a, const struct history *h) {
    const struct catalog_change *ch = a->change;
    int64_t first = recovery_earliest(a->ddl->recovery, h),
            last = h->gone_us != INT64_MAX ? h->gone_us : clock_wall_us(a->objects->clock);
    char texts[3][CLOCK_TEXT];
    /* clients see the first moment in milliseconds */
    if (!ch->has_restore_us || (ch->restore_us >= first / 1000 * 1000 && ch->restore_us <= last)) return 0;
    clock_text(ch->restore_us, texts[0]);
    clock_text(first, texts[1]);
    clock_text(last, texts[2]);
    return err_invalid(a->err,
                       "Table %s.%s cannot be restored to %sZ: the restore timestamp must be between %sZ and %sZ",
                       ch->from_keyspace, ch->from_name, texts[0], texts[1], texts[2]);
}

static struct history *source(struct apply *a) {
    const struct catalog_change *ch = a->change;
    const struct entry *ks = entry_find(a->objects, &keyspace_kind, 0, ch->from_keyspace);
    struct history *h = recovery_find(a->ddl->recovery, ch->from_keyspace, ch->from_name);
    if (h) return check_moment(a, h) ? NULL : h; /* the newest history of its lineage */
    bool there = ks && (entry_find(a->objects, &table_kind, ks->id, ch->from_name) ||
                        entry_find_deleting(a->objects, &table_kind, ks->id, ch->from_name));
    if (there)
        err_invalid(a->err, "Table %s.%s cannot be restored: point-in-time recovery is not enabled for it",
                    ch->from_keyspace, ch->from_name);
    else err_invalid(a->err, "unconfigured table %s.%s", ch->from_keyspace, ch->from_name);
    return NULL;
}

static const struct schema_table *definition_at(struct apply *a, const struct history *h, int64_t at_us) {
    const struct object_place at = {.keyspace = a->change->keyspace, .name = a->change->name};
    return table_kind.decode(recovery_form(h, at_us), &at, &a->arena, a->err);
}

/* The new table gets the old table's column ids and dropped columns, because the rows are copied
 * unchanged. */
static int begin_create(struct apply *a, const struct entry *ks, const struct history *h, const struct history *newest,
                        int64_t at_us) {
    const struct schema_table *then = definition_at(a, h, at_us),
                              *now = then ? definition_at(a, newest, INT64_MAX) : NULL;
    struct schema_table t = {.created_ms = clock_wall_us(a->objects->clock) / 1000};
    uint32_t n;
    const struct schema_option *options = now ? options_of(a, then, now, &n) : NULL;
    if (!options) return -1;
    struct table_parts parts = {.name = a->change->name,
                                .n_columns = then->n_columns,
                                .n_column_ids = then->n_column_ids,
                                .n_dropped = then->n_dropped,
                                .dropped = then->dropped};
    parts.columns = ARENA_ARRAY(&a->arena, then->n_columns, struct schema_column);
    if (!parts.columns) return err_nomem(a->err);
    memcpy(parts.columns, then->columns, then->n_columns * sizeof *parts.columns);
    if (random_uuid(t.id, a->err) || apply_merge_options(a, n, options, &parts.n_options, &parts.options)) return -1;
    return apply_begin_create_table(a, ks, &parts, &t);
}

int apply_restore_table(struct apply *a) {
    struct entry *ks = apply_keyspace(a, true);
    if (!ks || apply_check_table_name(a, ks)) return -1;
    struct history *newest = source(a);
    if (!newest) return -1;
    int restores = 0;
    for (const struct entry *x = a->objects->busy; x; x = x->busy_next) restores += x->status == SCHEMA_RESTORING;
    if (restores >= QUOTA_RESTORES && compat_refuse(&a->compat, REFUSE_RESTORES, a->err, QUOTA_RESTORES)) return -1;
    int64_t at_us = a->change->has_restore_us ? a->change->restore_us : INT64_MAX - 1;
    struct history *h = recovery_at(a->ddl->recovery, newest, at_us);
    /* earlier within the same millisecond */
    if (at_us < eng_history_since(a->objects->eng, h->id)) at_us = eng_history_since(a->objects->eng, h->id);
    if (begin_create(a, ks, h, newest, at_us) != BEGUN) return -1;
    struct entry *x = a->subject;
    if (recovery_plan(a->ddl->recovery, x, h, at_us, a->err)) {
        entry_remove(a->objects, x);
        return -1;
    }
    entry_restore_status(a->objects, x, SCHEMA_RESTORING);
    pthread_cond_broadcast(&a->ddl->recovery->work);
    return BEGUN;
}
