/* RESTORE TABLE against the current state: creates a table with the definition that another
 * table had at a moment. The recovery worker adds the rows of that moment.
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/PointInTimeRecovery_HowItWorks.html). */
#include "base/random.h"
#include "engine/history.h"
#include "keyspaces/quota.h"
#include "system_schema/ddl/apply.h"

/* The settings of the moment, with those that are "always restored based on the table's settings as
 * of the current time or when the table was deleted"; the new table gets no tags, no stream and no
 * history of capacity changes. */
static int settings_of(struct apply *a, const struct table_settings *then, const struct table_settings *now,
                       struct table_settings *out) {
    uint64_t current = setting_group(SETTING_BIT(throughput_mode)) | setting_group(SETTING_BIT(encryption_type)) |
                       setting_group(SETTING_BIT(warm_read_units)) |
                       setting_group(SETTING_BIT(point_in_time_recovery));
    struct table_settings s = *then;
    settings_copy(&s, now, current);
    settings_clear(&s, SETTING_BIT(tags) | SETTING_BIT(stream_label) | SETTING_BIT(was_on_demand_ms) |
                           SETTING_BIT(decreases) | SETTING_BIT(cdc) | setting_group(SETTING_BIT(view_type)));
    settings_copy_scaling(&s, now);
    return apply_merge_settings(a, &s, out);
}

static struct history *source(struct apply *a) {
    const struct catalog_change *ch = a->change;
    const struct catalog_object *ks = object_find(a->objects, &keyspace_kind, 0, ch->from_keyspace);
    struct history *h = recovery_find(a->ddl->recovery, ch->from_keyspace, ch->from_name);
    if (h) { /* the newest history of its lineage; clients see its first moment in milliseconds */
        int64_t first = recovery_earliest(a->ddl->recovery, h),
                last = h->gone_us != INT64_MAX ? h->gone_us : recovery_moment(a->ddl->recovery, h);
        char texts[3][CLOCK_TEXT];
        if (!ch->has_restore_us || (ch->restore_us >= first / 1000 * 1000 && ch->restore_us <= last)) return h;
        clock_text(ch->restore_us, texts[0]);
        clock_text(first, texts[1]);
        clock_text(last, texts[2]);
        return err_null(
            apply_error(a, DDL_RESTORE_RANGE, ch->from_keyspace, ch->from_name, texts[0], texts[1], texts[2]));
    }
    const struct catalog_object *x = NULL;
    if (ks) x = object_find(a->objects, &table_kind, ks->id, ch->from_name);
    if (ks && !x) x = object_find_deleting(a->objects, &table_kind, ks->id, ch->from_name);
    if (!x) return err_null(apply_error(a, DDL_RESTORE_NO_TABLE, ch->from_keyspace, ch->from_name));
    const struct form_context at = {.keyspace = ch->from_keyspace, .name = ch->from_name};
    const struct schema_table *t =
        table_kind.decode(x->change && x->change->next.n ? x->change->next : x->form, &at, &a->arena, a->err);
    if (!t) return NULL;
    bool enabled = t->settings.point_in_time_recovery && x->status != SCHEMA_DELETING;
    return err_null(
        apply_error(a, enabled ? DDL_RESTORE_SOON : DDL_RESTORE_OFF, ch->from_keyspace, ch->from_name));
}

static const struct schema_table *definition_at(struct apply *a, const struct history *h, int64_t at_us) {
    const struct form_context at = {.keyspace = a->change->keyspace, .name = a->change->name};
    return table_kind.decode(recovery_form(h, at_us), &at, &a->arena, a->err);
}

/* The new table gets the old table's column ids and dropped columns, because the rows are copied
 * unchanged. */
static int begin_create(struct apply *a, const struct catalog_object *ks, const struct history *h,
                        const struct history *newest, int64_t at_us) {
    const struct schema_table *then = definition_at(a, h, at_us),
                              *now = then ? definition_at(a, newest, INT64_MAX) : NULL;
    struct schema_table t = {.created_ms = clock_wall_us(a->objects->clock) / 1000};
    if (!now) return -1;
    struct table_parts parts = {.name = a->change->name,
                                .n_columns = then->n_columns,
                                .n_column_ids = then->n_column_ids,
                                .n_dropped = then->n_dropped,
                                .dropped = then->dropped};
    parts.columns = ARENA_ARRAY(&a->arena, then->n_columns, struct schema_column);
    if (!parts.columns) return err_nomem(a->err);
    memcpy(parts.columns, then->columns, then->n_columns * sizeof *parts.columns);
    if (random_uuid(t.id, a->err) || settings_of(a, &then->settings, &now->settings, &parts.settings)) return -1;
    return apply_begin_create_table(a, ks, &parts, &t);
}

int apply_restore_table(struct apply *a) {
    struct catalog_object *ks = apply_keyspace(a, true);
    if (!ks || apply_check_table_name(a, ks)) return -1;
    struct history *newest = source(a);
    if (!newest) return -1;
    int restores = 0;
    for (const struct catalog_object *x = a->objects->busy; x; x = x->busy_next)
        restores += x->status == SCHEMA_RESTORING;
    if (restores >= QUOTA_RESTORES && compat_refuse(&a->compat, REFUSE_RESTORES, a->err, QUOTA_RESTORES)) return -1;
    int64_t at_us = a->change->has_restore_us ? a->change->restore_us : INT64_MAX - 1;
    struct history *h = recovery_at(a->ddl->recovery, newest, at_us);
    /* earlier within the same millisecond */
    if (at_us < eng_history_since(a->objects->eng, h->id)) at_us = eng_history_since(a->objects->eng, h->id);
    if (begin_create(a, ks, h, newest, at_us) != BEGUN) return -1;
    struct catalog_object *x = a->subject;
    if (recovery_plan(a->ddl->recovery, x, h, at_us, a->err)) {
        object_remove(a->objects, x);
        return -1;
    }
    object_restore_status(a->objects, x, SCHEMA_RESTORING);
    ticker_wake(&a->ddl->recovery->worker);
    return BEGUN;
}
