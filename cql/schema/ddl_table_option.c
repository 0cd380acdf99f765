/* Table options of CREATE TABLE and ALTER TABLE ... WITH: kinds, ranges and words are Cassandra's
 * (TableAttributes, TableParams). */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/schema/ddl.h"
#include "system_schema/objects/table_option.h"

/* The map options that Keyspaces adds to a table ("Tables",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/cql.ddl.table.html). */
static const char *const keyspaces_maps[] = {"custom_properties", "tags", "autoscaling_settings"};

static bool is_keyspaces_map(const struct compile *c, const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(keyspaces_maps) && !c->schema->cassandra_mode; i++)
        if (strcasecmp(keyspaces_maps[i], name) == 0) return true;
    return false;
}

/* In keyspaces mode the options of either release are taken: they have no effect there. */
static const struct table_option *find(const struct compile *c, const char *name) {
    const struct table_option *o = table_option_find(name);
    return o && (o->defaults[1] || !c->schema->cassandra_mode) ? o : NULL;
}

static int parse_int(struct compile *c, const char *name, const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (!*text || *end || errno || v > INT32_MAX || v < INT32_MIN)
        return err_set(c->err, ERR_SYNTAX, "Invalid integer value %s for '%s'", text, name);
    *out = v;
    return 0;
}

static int parse_double(struct compile *c, const char *name, const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (!*text || *end || strpbrk(text, "xX"))
        return err_set(c->err, ERR_SYNTAX, "Invalid double value %s for '%s'", text, name);
    return 0;
}

/* As Java prints a double, which is how Cassandra shows it: 1.0E-4. */
static const char *java_double(struct compile *c, double d) {
    uint64_t bits;
    uint8_t wire[8];
    memcpy(&bits, &d, sizeof bits);
    store_u64(wire, bits);
    struct buf b;
    buf_init(&b, 64);
    cql_value_text(cql_type_scalar(CQL_DOUBLE), slice_of(wire, sizeof wire), &b);
    struct slice s = arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    if (!s.p) err_nomem(c->err);
    return (const char *)s.p;
}

static const char *settle_text(struct compile *c, const char *name, const char *text) {
    bool retries = strcmp(name, "speculative_retry") == 0 || strcmp(name, "additional_write_policy") == 0;
    if (retries) return retry_policy(c, text);
    if (strcmp(name, "read_repair") == 0) {
        if (strcasecmp(text, "none") == 0) return "NONE";
        if (strcasecmp(text, "blocking") == 0) return "BLOCKING";
        err_set(c->err, ERR_CONFIG, "Invalid value %s for option 'read_repair': only NONE and BLOCKING are allowed",
                text);
        return NULL;
    }
    if (strcmp(name, "memtable") == 0 && strcmp(text, "default") != 0) {
        err_set(c->err, ERR_CONFIG, "Memtable configuration \"%s\" not found.", text);
        return NULL;
    }
    return text;
}

static int add_scalar(struct compile *c, const struct table_option *o, const char *text, struct option_list *out) {
    int64_t i, least;
    double d;
    bool b;
    switch (o->kind) {
    case OPTION_INT:
        if (parse_int(c, o->name, text, &i)) return -1;
        least = strcmp(o->name, "min_index_interval") == 0 || strcmp(o->name, "max_index_interval") == 0;
        if (i < least)
            return err_set(c->err, ERR_CONFIG, "%s must be greater than or equal to %lld (got %lld)", o->name,
                           (long long)least, (long long)i);
        if (strcmp(o->name, "default_time_to_live") == 0 && i > 630720000)
            return err_set(c->err, ERR_CONFIG,
                           "default_time_to_live must be less than or equal to 630720000 (got %lld)", (long long)i);
        text = arena_printf(c->arena, "%lld", (long long)i);
        break;
    case OPTION_DOUBLE:
        if (parse_double(c, o->name, text, &d) || !(text = java_double(c, d))) return -1;
        if (strcmp(o->name, "bloom_filter_fp_chance") == 0 && !(d > 6.71e-5 && d <= 1.0))
            return err_set(c->err, ERR_CONFIG,
                           "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got %s)",
                           text);
        if (!(d >= 0 && d <= 1.0))
            return err_set(c->err, ERR_CONFIG,
                           "%s must be larger than or equal to 0 and smaller than or equal to 1.0 (got %s)", o->name,
                           text);
        break;
    case OPTION_BOOL:
        if (prop_bool(c, o->name, text, &b)) return -1;
        text = b ? "true" : "false";
        break;
    case OPTION_TEXT:
    case OPTION_MAP: text = settle_text(c, o->name, text); break;
    }
    return c->err->set ? -1 : option_add(out, o->name, text);
}

static int add_keyspaces_map(struct compile *c, const struct ast_prop *prop, struct option_list *out) {
    uint32_t first = out->n;
    bool tags = strcasecmp(prop->name, "tags") == 0, properties = strcasecmp(prop->name, "custom_properties") == 0;
    const char *name = tags ? "tags" : properties ? "custom_properties" : "autoscaling_settings";
    if (prop_map(c, name, prop->value, !tags, out)) return -1;
    for (uint32_t i = 0; i < prop->value->n; i++)
        if (prop->value->values[i]->kind == PROP_MAP && prop->value->values[i]->n == 0)
            return err_invalid(c->err, "%.*s of %s is an empty map", SLICE_FMT(prop->value->keys[i]->text), name);
    if (tags) return tags_check(c, out, first);
    return properties ? custom_properties_settle(c, out, first) : autoscaling_settings_settle(c, out, first);
}

static int add_map(struct compile *c, const struct table_option *o, const struct ast_prop_value *v,
                   struct option_list *out) {
    struct option_list *given = ARENA_NEW(c->arena, struct option_list);
    if (!given) return err_nomem(c->err);
    given->arena = c->arena;
    given->err = c->err;
    /* whatever it is: taken and not kept, as Cassandra does for a name that no extension claims */
    if (strcmp(o->name, "extensions") == 0) return 0;
    if (prop_map(c, o->name, v, false, given)) return -1;
    return map_option_settle(c, o->name, given, out);
}

static const char *effective(const struct option_list *out, const struct schema_table *altered, const char *name,
                             bool cassandra_mode) {
    for (uint32_t i = 0; i < out->n; i++)
        if (strcmp(out->items[i].name, name) == 0) return out->items[i].value;
    const struct schema_table none = {0};
    return table_option_text(altered ? altered : &none, table_option_find(name), cassandra_mode);
}

int table_id(struct compile *c, const struct ast_props *p, struct catalog_change *change) {
    struct slice text = p->id && p->id->kind == EXPR_LITERAL ? p->id->text : slice_of(NULL, 0);
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->props[i].name, "id") != 0) continue;
        if (p->props[i].value->kind == PROP_MAP)
            return err_set(c->err, ERR_SYNTAX, "Invalid value for property 'id'. It should be a string");
        text = p->props[i].value->text;
    }
    if (!text.p) return 0;
    struct buf b;
    buf_init(&b, 64);
    struct err ignored = {0};
    int rc = cql_literal_parse(cql_type_scalar(CQL_UUID), LIT_UUID, text, "id", 0, &b, &ignored);
    change->has_id = rc == 0 && b.n == 16;
    if (change->has_id) memcpy(change->id, b.p, 16);
    buf_fini(&b);
    return change->has_id ? 0 : err_set(c->err, ERR_CONFIG, "Invalid table id");
}

/* The order in which Cassandra reads the options (TableAttributes.build) and then looks at their
 * ranges (TableParams.validate), whatever order the statement has. */
static const char *const reading_order[] = {"bloom_filter_fp_chance",
                                            "caching",
                                            "comment",
                                            "compaction",
                                            "compression",
                                            "memtable",
                                            "default_time_to_live",
                                            "gc_grace_seconds",
                                            "max_index_interval",
                                            "memtable_flush_period_in_ms",
                                            "min_index_interval",
                                            "speculative_retry",
                                            "additional_write_policy",
                                            "crc_check_chance",
                                            "cdc",
                                            "read_repair"};
static const char *const range_order[] = {"bloom_filter_fp_chance", "crc_check_chance", "default_time_to_live",
                                          "gc_grace_seconds", "min_index_interval"};

/* Behind all of them: what is not among them. */
static size_t place_in(const char *const *order, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(order[i], name) != 0) i++;
    return i;
}

static int add_prop(struct compile *c, const struct ast_prop *prop, struct option_list *out) {
    const struct table_option *o = find(c, prop->name);
    if (is_keyspaces_map(c, prop->name)) return add_keyspaces_map(c, prop, out);
    if (!o) return 0; /* table_id's */
    /* Cassandra 3.11 does not know an option without a first default. */
    if (!o->defaults[0] && compat_refuse(&c->compat, REFUSE_TABLE_OPTION, c->err, o->name)) return -1;
    if (o->kind == OPTION_MAP) return add_map(c, o, prop->value, out);
    const char *text = prop_text(c, o->name, prop->value);
    return !text || add_scalar(c, o, text, out) ? -1 : 0;
}

int table_props_options(struct compile *c, const struct ast_props *p, const struct schema_table *altered,
                        struct option_list *out) {
    for (uint32_t i = 0; i < p->n; i++) {
        const char *name = p->props[i].name;
        if (strcmp(name, "id") && !is_keyspaces_map(c, name) && !find(c, name))
            return err_set(c->err, ERR_SYNTAX, "Unknown property '%s'", name);
    }
    for (size_t place = 0; place <= ARRAY_LEN(range_order); place++)
        for (uint32_t i = 0; i < p->n; i++)
            if (place_in(range_order, ARRAY_LEN(range_order), p->props[i].name) == place &&
                add_prop(c, &p->props[i], out))
                return -1;
    int64_t least = atoi(effective(out, altered, "min_index_interval", c->schema->cassandra_mode));
    int64_t most = atoi(effective(out, altered, "max_index_interval", c->schema->cassandra_mode));
    if (most < least)
        return err_set(c->err, ERR_CONFIG,
                       "max_index_interval must be greater than or equal to min_index_interval (%lld) (got %lld)",
                       (long long)least, (long long)most);
    return 0;
}

static int read_kind(struct compile *c, const struct ast_prop *prop, struct option_list *scratch) {
    const struct table_option *o = find(c, prop->name);
    if (!o) return 0;
    if (o->kind == OPTION_MAP) return add_map(c, o, prop->value, scratch);
    const char *text = prop_text(c, o->name, prop->value);
    int64_t i;
    double d;
    bool b;
    if (!text) return -1;
    switch (o->kind) {
    case OPTION_INT: return parse_int(c, o->name, text, &i);
    case OPTION_DOUBLE: return parse_double(c, o->name, text, &d);
    case OPTION_BOOL: return prop_bool(c, o->name, text, &b);
    case OPTION_TEXT: return settle_text(c, o->name, text) ? 0 : -1;
    case OPTION_MAP: break;
    }
    return 0;
}

/* Sub-options and policies are read where the kinds are, so that their errors come before the
 * table's existence. Keyspaces' refusals are checked only when the options are taken
 * (table_props_options), so that a report counts one use of each. */
int table_props_kinds(struct compile *c, const struct ast_props *p) {
    struct option_list *scratch = ARENA_NEW(c->arena, struct option_list);
    enum compat_mode mode = c->compat.mode;
    if (!scratch) return err_nomem(c->err);
    c->compat.mode = COMPAT_OFF;
    scratch->arena = c->arena;
    scratch->err = c->err;
    for (size_t place = 0; place <= ARRAY_LEN(reading_order); place++)
        for (uint32_t i = 0; i < p->n; i++)
            if (!c->err->set && place_in(reading_order, ARRAY_LEN(reading_order), p->props[i].name) == place)
                (void)read_kind(c, &p->props[i], scratch);
    c->compat.mode = mode;
    return c->err->set ? -1 : 0;
}
