/* Settings of CREATE TABLE, ALTER TABLE and RESTORE TABLE ... WITH: kinds, ranges and words of options are
 * Cassandra's (TableAttributes, TableParams); settings/ has them. */
#include <stdlib.h>
#include <strings.h>

#include "cql/schema/ddl.h"

/* Returns the name of a map that Keyspaces adds to a table ("Tables",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/cql.ddl.table.html), or NULL if the name is another one. */
static const char *keyspaces_map(const struct compile *c, const char *name) {
    static const char *const maps[] = {"custom_properties", "tags", "autoscaling_settings"};
    for (size_t i = 0; i < ARRAY_LEN(maps) && !c->schema->cassandra_mode; i++)
        if (strcasecmp(maps[i], name) == 0) return maps[i];
    return NULL;
}

/* In keyspaces mode the options of either release are taken: they have no effect there. */
static const struct setting *find(const struct compile *c, const char *name) {
    const struct setting *row = setting_option(name);
    return row && (row->releases & RELEASE_5_0 || !c->schema->cassandra_mode) ? row : NULL;
}

static int take_keyspaces_map(struct compile *c, const char *name, const struct ast_prop_value *v,
                              struct table_settings *out) {
    const struct setting_context x = ddl_settings(c);
    struct option_list *given = option_list_new(c);
    if (strcmp(name, "tags") == 0) {
        out->given |= SETTING_BIT(tags);
        return prop_tags(c, v, &out->tags);
    }
    if (!given || prop_map(c, name, v, true, given)) return -1;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->values[i]->kind == PROP_MAP && v->values[i]->n == 0)
            return ddl_error(c->err, false, DDL_OPTION_EMPTY_MAP, prop_text(c, name, v->keys[i]), name);
    for (uint32_t i = 0; i < given->n; i++)
        if (settings_take(&x, given->items[i].name, given->items[i].value, out)) return -1;
    return 0;
}

static int take_map(struct compile *c, const struct setting *row, const struct ast_prop_value *v,
                    struct table_settings *out) {
    const struct setting_context x = ddl_settings(c);
    struct option_list *given = option_list_new(c);
    /* whatever it is: taken and not kept, as Cassandra does for a name that no extension claims */
    if (row == &setting_rows[SETTING_extensions]) return 0;
    if (!given || prop_map(c, row->name, v, false, given)) return -1;
    for (uint32_t i = 0; i < given->n; i++) given->items[i].name += strlen(row->name) + 1;
    return setting_take_map(&x, row, given->items, given->n, out);
}

/* Takes the properties in the order in which Cassandra reads them or, range, looks at their ranges. */
static int take_all(struct compile *c, const struct ast_props *p, bool range, struct table_settings *out) {
    const struct setting_context x = ddl_settings(c);
    for (int place = 0; place <= SETTING_LAST; place++)
        for (uint32_t i = 0; i < p->n; i++) {
            const struct ast_prop *prop = &p->props[i];
            const struct setting *row = setting_option(prop->name);
            if ((!row ? SETTING_LAST : range ? row->range : row->read) != place) continue;
            row = find(c, prop->name);
            const char *map = range ? keyspaces_map(c, prop->name) : NULL, *text;
            if (map && take_keyspaces_map(c, map, prop->value, out)) return -1;
            if (map || !row) continue; /* table_id's has no row */
            if (range && !(row->releases & RELEASE_3_11) &&
                compat_refuse(&c->compat, REFUSE_TABLE_OPTION, c->err, row->name))
                return -1;
            if (row->kind == SETTING_KIND_MAP) {
                if (take_map(c, row, prop->value, out)) return -1;
                continue;
            }
            text = prop_text(c, row->name, prop->value);
            if (!text || setting_take_option(&x, row, text, range, out)) return -1;
        }
    return 0;
}

int prop_tags(struct compile *c, const struct ast_prop_value *v, struct setting_map *out) {
    struct option_list *given = option_list_new(c);
    if (!given || prop_map(c, "tags", v, false, given)) return -1;
    for (uint32_t i = 0; i < given->n; i++) given->items[i].name += strlen("tags.");
    *out = (struct setting_map){given->n, given->items};
    setting_map_sort(given->items, given->n);
    return tags_check(out, c->err);
}

int table_id(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    struct slice text = p->id && p->id->kind == EXPR_LITERAL ? p->id->text : slice_of(NULL, 0);
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->props[i].name, "id") != 0) continue;
        if (p->props[i].value->kind == PROP_MAP) return ddl_fail(c, DDL_OPTION_NO_STRING, "id");
        text = p->props[i].value->text;
    }
    if (!text.p) return 0;
    struct buf b;
    buf_init(&b, 64);
    struct err ignored = {0};
    int rc = cql_literal_parse(cql_type_scalar(CQL_UUID), LIT_UUID, text, "id", (struct cql_reading){0}, &b, &ignored);
    change->has_id = rc == 0 && b.n == 16;
    if (change->has_id) memcpy(change->id, b.p, 16);
    buf_fini(&b);
    return change->has_id ? 0 : ddl_fail(c, DDL_OPTION_ID);
}

const struct table_settings *table_props_settings(struct compile *c, const struct ast_props *p,
                                                  const struct schema_table *altered) {
    const struct setting_context x = ddl_settings(c);
    struct table_settings *out = ARENA_NEW(c->arena, struct table_settings);
    if (!out) return err_null(err_nomem(c->err));
    *out = p->settings ? *p->settings : *settings_defaults(true);
    for (uint32_t i = 0; i < p->n; i++) {
        const char *name = p->props[i].name;
        if (strcmp(name, "id") && !keyspaces_map(c, name) && !find(c, name))
            return err_null(ddl_fail(c, DDL_OPTION_UNKNOWN, name));
    }
    if ((p->settings && settings_check_values(&x, out)) || take_all(c, p, true, out)) return NULL;
    /* A new table with leveled compaction has larger bloom filters unless the statement sets their size
     * (TableParams.Builder). A later change of the compaction does not change them. */
    bool sets_filter = altered || !x.cassandra_mode || out->given & SETTING_BIT(bloom_filter_fp_chance);
    for (uint32_t i = 0; i < out->compaction.n && !sets_filter; i++) {
        const struct schema_option *o = &out->compaction.entries[i];
        if (strcmp(o->name, "class") || !strstr(o->value, "LeveledCompactionStrategy")) continue;
        out->bloom_filter_fp_chance = 0.1;
        out->given |= SETTING_BIT(bloom_filter_fp_chance);
    }
    const struct table_settings *old = altered ? &altered->settings : out;
    int64_t least = (out->given & SETTING_BIT(min_index_interval) ? out : old)->min_index_interval;
    int64_t most = (out->given & SETTING_BIT(max_index_interval) ? out : old)->max_index_interval;
    if (most >= least) return out;
    return err_null(ddl_fail(c, DDL_OPTION_INTERVALS, (long long)least, (long long)most));
}

/* Sub-options and policies are read where the kinds are, so that their errors come before the
 * table's existence. Keyspaces' refusals are checked only when the settings are taken
 * (table_props_settings), so that a report counts one use of each. */
int table_props_kinds(struct compile *c, const struct ast_props *p) {
    struct table_settings scratch = {.given = 0};
    enum compat_mode mode = c->compat.mode;
    c->compat.mode = COMPAT_OFF;
    int rc = take_all(c, p, false, &scratch);
    c->compat.mode = mode;
    return rc;
}
