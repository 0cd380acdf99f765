#include "system_schema/objects/table_option.h"

#include "system_schema/objects/snapshot.h"

const struct table_option table_options[] = {
#define OPTION(name, kind, default_5_0, default_3_11) {#name, OPTION_##kind, {default_3_11, default_5_0}},
#include "system_schema/objects/table_option.def"
#undef OPTION
};
const uint32_t n_table_options = ARRAY_LEN(table_options);

const struct table_option *table_option_find(const char *name) {
    for (uint32_t i = 0; i < n_table_options; i++)
        if (strcmp(table_options[i].name, name) == 0) return &table_options[i];
    return NULL;
}

const char *table_option_text(const struct schema_table *t, const struct table_option *o, bool cassandra_mode) {
    const char *own = option_find(t->options, t->n_options, o->name);
    return own && o->defaults[cassandra_mode] ? own : o->defaults[cassandra_mode];
}

const struct schema_option *option_entries(const struct schema_option *options, uint32_t n_options, const char *prefix,
                                           struct arena *a, uint32_t *n) {
    size_t length = strlen(prefix);
    struct schema_option *out = ARENA_ARRAY(a, n_options + 1, struct schema_option);
    *n = 0;
    for (uint32_t i = 0; out && i < n_options; i++)
        if (strncmp(options[i].name, prefix, length) == 0)
            out[(*n)++] = (struct schema_option){options[i].name + length, options[i].value};
    return out;
}

const struct schema_option *table_option_map(const struct schema_table *t, const struct table_option *o,
                                             bool cassandra_mode, struct arena *a, uint32_t *n) {
    *n = 0;
    if (!o->defaults[cassandra_mode]) return NULL;
    const char *prefix = arena_printf(a, "%s.", o->name);
    if (!prefix) return NULL;
    const struct schema_option *own = option_entries(t->options, t->n_options, prefix, a, n);
    if (*n) return own;
    const char *text = o->defaults[cassandra_mode]; /* "key=value;key=value" */
    struct schema_option *out = ARENA_ARRAY(a, 8, struct schema_option);
    while (out && *text && *n < 8) {
        size_t key = strcspn(text, "="), end = strcspn(text, ";");
        struct slice k = arena_dup(a, slice_of(text, key)), v = arena_dup(a, slice_of(text + key + 1, end - key - 1));
        if (!k.p || !v.p) {
            *n = 0;
            return NULL;
        }
        out[(*n)++] = (struct schema_option){(const char *)k.p, (const char *)v.p};
        text += end + (text[end] == ';');
    }
    return out;
}
