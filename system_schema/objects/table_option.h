/* The options of a table: their kinds and defaults by release, and the values of one table. Pure;
 * any thread.
 *
 * A table stores only the options that a statement gave (schema_table.options). Each entry of a map
 * option is an option with a name like "caching.keys". The options that Keyspaces adds
 * (custom_properties, tags, autoscaling_settings) are stored in the same way and are not in this
 * list.
 */
#pragma once

#include "system_schema/objects/schema.h"

enum table_option_kind { OPTION_TEXT, OPTION_INT, OPTION_DOUBLE, OPTION_BOOL, OPTION_MAP };

struct table_option {
    const char *name;
    enum table_option_kind kind;
    const char *defaults[2]; /* 3.11, 5.0; NULL: no such option there */
};

extern const struct table_option table_options[];
extern const uint32_t n_table_options;

const struct table_option *table_option_find(const char *name);
/* The text of a scalar option: the table's value or the default; NULL: the release has no such
 * option. */
const char *table_option_text(const struct schema_table *t, const struct table_option *o, bool cassandra_mode);
/* The entries of a map option, by name, without the option's name as a prefix; in the arena.
 * NULL and n 0: none, or no memory. */
const struct schema_option *table_option_map(const struct schema_table *t, const struct table_option *o,
                                             bool cassandra_mode, struct arena *a, uint32_t *n);
/* The entries with a prefix ("tags.", "custom_properties.ttl."), which is cut off their names. */
const struct schema_option *option_entries(const struct schema_option *options, uint32_t n_options, const char *prefix,
                                           struct arena *a, uint32_t *n);
