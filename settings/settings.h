/* The settings of a table: Cassandra's options, and what Amazon Keyspaces adds: CUSTOM_PROPERTIES,
 * AUTOSCALING_SETTINGS and TAGS. A setting is a row of setting.def.
 *
 * Life: a statement's texts (settings_take) or the API's values become a struct table_settings that
 * holds what is given. The catalogue merges it over the settings of the table (settings_merge),
 * checks whether they fit together (settings_check_together) and encodes the result into the
 * table's record. Decoding the record gives the struct that every reader uses. Pure; any thread.
 *
 * A member of a setting that is not given has its default; where the releases differ, that of
 * settings_defaults(true). Texts and maps live in the arena of the function that made them.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "keyspaces/compat.h"

/* A name and its text: an entry of a map, an option of a replication strategy. */
struct schema_option {
    const char *name, *value;
};
/* For qsort of options: by name. */
int option_order(const void *a, const void *b);
/* The value of an option; NULL if it is not among them. */
const char *option_find(const struct schema_option *options, uint32_t n, const char *name);

struct setting_map {
    uint32_t n; /* by name */
    const struct schema_option *entries;
};

/* In the order of the words in setting.def. */
enum throughput_mode { PAY_PER_REQUEST, PROVISIONED };
enum encryption_type { AWS_OWNED_KMS_KEY, CUSTOMER_MANAGED_KMS_KEY };

#define SETTING_TYPE_BOOL bool
#define SETTING_TYPE_FLAG bool
#define SETTING_TYPE_INT int64_t
#define SETTING_TYPE_WHOLE int64_t
#define SETTING_TYPE_MILLIS int64_t
#define SETTING_TYPE_MOMENT int64_t
#define SETTING_TYPE_REAL double
#define SETTING_TYPE_NUMBER double
#define SETTING_TYPE_CHOICE uint8_t
#define SETTING_TYPE_TEXT const char *
#define SETTING_TYPE_MAP struct setting_map

/* The members of each struct, as setting.def has them; given has a bit for each. */
struct scaling_settings { /* the auto scaling of reads or writes */
    uint64_t given;       /* SCALING_BIT */
#define SCALING(id, name, kind, words, least, most, otherwise, api) SETTING_TYPE_##kind id;
#define TARGET(id, name, kind) SETTING_TYPE_##kind id;
#include "settings/setting_rows.h"
};

struct region_settings { /* of another Region */
    uint64_t given;      /* REGION_BIT */
    const char *region;
#define REGION(id, name, kind, words, least, most, otherwise, api) SETTING_TYPE_##kind id;
#include "settings/setting_rows.h"
    struct scaling_settings scaling[2];
};

enum capacity_kind { READ_CAPACITY, WRITE_CAPACITY };

struct table_settings {
    uint64_t given; /* SETTING_BIT */
#define OPTION(id, kind, releases, default_5_0, default_3_11, least, most, read, range, api) SETTING_TYPE_##kind id;
#define PROPERTY(id, name, kind, words, least, most, otherwise, api) SETTING_TYPE_##kind id;
#define STAMP(id, name, kind, api) SETTING_TYPE_##kind id;
#define SHOWN(id, name, kind, words, api) SETTING_TYPE_##kind id;
#define TAGS(id, name, kind) SETTING_TYPE_##kind id;
#define KEPT(id, name, kind) SETTING_TYPE_##kind id;
#include "settings/setting_rows.h"
    struct scaling_settings scaling[2]; /* by enum capacity_kind */
    uint32_t n_regions;                 /* by name */
    const struct region_settings *regions;
    bool respelled; /* decoded from a record that spells a value otherwise than this version does, as 007 */
};

enum setting_id {
#define OPTION(id, kind, releases, default_5_0, default_3_11, least, most, read, range, api) SETTING_##id,
#define PROPERTY(id, name, kind, words, least, most, otherwise, api) SETTING_##id,
#define STAMP(id, name, kind, api) SETTING_##id,
#define SHOWN(id, name, kind, words, api) SETTING_##id,
#define TAGS(id, name, kind) SETTING_##id,
#define KEPT(id, name, kind) SETTING_##id,
#include "settings/setting_rows.h"
    SETTINGS
};
enum scaling_id {
#define SCALING(id, name, kind, words, least, most, otherwise, api) SCALING_##id,
#define TARGET(id, name, kind) SCALING_##id,
#include "settings/setting_rows.h"
    SCALING_SETTINGS
};
enum { REGION_read_capacity_units, REGION_SETTINGS };
#define SETTING_BIT(id) (UINT64_C(1) << SETTING_##id)
#define SCALING_BIT(id) (UINT64_C(1) << SCALING_##id)
#define REGION_BIT(id) (UINT64_C(1) << REGION_##id)
#define SCALING_TARGET (SCALING_BIT(policy_name) | SCALING_BIT(made_ms) | SCALING_BIT(policy_made_ms))
/* Sets a member of any of the structs and its bit. */
#define SETTING_SET(settings, id, value) ((settings)->id = (value), (settings)->given |= SETTING_BIT(id))

/* ---- rows ---- */

enum setting_kind {
    SETTING_KIND_BOOL,
    SETTING_KIND_FLAG,
    SETTING_KIND_INT,
    SETTING_KIND_WHOLE,
    SETTING_KIND_MILLIS,
    SETTING_KIND_MOMENT,
    SETTING_KIND_REAL,
    SETTING_KIND_NUMBER,
    SETTING_KIND_CHOICE,
    SETTING_KIND_TEXT,
    SETTING_KIND_MAP
};
enum { RELEASE_3_11 = 1, RELEASE_5_0 = 2 };
/* Where the setting comes from: a statement, Application Auto Scaling, or the server, which stores
 * it or only shows it. */
enum setting_source { SETTING_OF_STATEMENT, SETTING_OF_TARGET, SETTING_OF_SERVER, SETTING_SHOWN };

struct setting {
    const char *name; /* as the record has it: "custom_properties.ttl.status"; below a prefix in SCALING and REGION */
    uint8_t skip;     /* the length of "custom_properties." in it */
    enum setting_kind kind;
    enum setting_source source;
    size_t offset;     /* in its struct */
    uint8_t releases;  /* options: RELEASE_... */
    const char *words; /* as setting.def says */
    double least, most;
    uint8_t read, range; /* options: places in Cassandra's orders */
    const char *api;     /* the member of the API's requests, or NULL: "ttl.status" */
};
enum { SETTING_LAST = 17 }; /* read, range: behind all others */

extern const struct setting setting_rows[SETTINGS], scaling_rows[SCALING_SETTINGS], region_rows[REGION_SETTINGS];
enum { N_OPTIONS = SETTING_speculative_retry + 1 }; /* the rows of options are the first */

/* The option of Cassandra with that name; NULL if there is none. */
const struct setting *setting_option(const char *name);
/* The bits of the group of custom properties that a bit belongs to; of an option: itself. */
uint64_t setting_group(uint64_t bit);

/* ---- values ---- */

/* of: the struct that the row is of. Appends the text of a setting. */
void setting_print(const struct setting *row, const void *of, struct buf *out);
/* The same in the arena; NULL if memory is exhausted. */
const char *setting_text(const struct setting *row, const void *of, struct arena *a);
void setting_map_sort(struct schema_option *entries, uint32_t n);
/* Sets a member and its bit from the text of a statement. ERR_SYNTAX, ERR_CONFIG or ERR_INVALID in
 * Cassandra's words; range false: the kind is checked and not the range. */
struct setting_context {
    struct arena *arena;
    struct err *err;
    struct compat *compat;
    bool cassandra_mode;
};
int setting_take_option(const struct setting_context *x, const struct setting *row, const char *text, bool range,
                        struct table_settings *to) MUST_CHECK;
/* The same for an option that is a map. Sorts the entries. */
int setting_take_map(const struct setting_context *x, const struct setting *row, struct schema_option *given,
                     uint32_t n, struct table_settings *to) MUST_CHECK;
/* An entry of CUSTOM_PROPERTIES, AUTOSCALING_SETTINGS or TAGS by its name with dots,
 * "custom_properties.ttl.status", in any case; ERR_INVALID. Entries may come in any order. */
int settings_take(const struct setting_context *x, const char *name, const char *text,
                  struct table_settings *to) MUST_CHECK;
/* The checks that settings_take made, of values that did not come through it. ERR_INVALID. */
int settings_check_values(const struct setting_context *x, const struct table_settings *s) MUST_CHECK;
enum { TAG_KEY_MAX = 128, TAG_VALUE_MAX = 256, TAGS_MAX = 50 };
int tags_check(const struct setting_map *tags, struct err *e) MUST_CHECK;
/* The index of one of a row's words, in any case; -1 if it is none of them. */
int setting_word(const struct setting *row, struct slice text);

/* ---- the whole ---- */

const struct table_settings *settings_defaults(bool cassandra_mode);
/* The settings of a table that print as those of the release: own ones, or its defaults. */
static inline const struct table_settings *settings_of_release(const struct table_settings *s, enum setting_id id,
                                                               bool cassandra_mode) {
    bool has = setting_rows[id].releases & (cassandra_mode ? RELEASE_5_0 : RELEASE_3_11);
    return has && s->given >> id & 1 ? s : settings_defaults(cassandra_mode);
}

/* A Region's settings; made if there are none. Returns NULL if memory is exhausted. */
struct region_settings *settings_region(struct table_settings *s, const char *region, struct arena *a) MUST_CHECK;
/* Returns NULL if none are set for the Region. */
const struct region_settings *settings_find_region(const struct table_settings *s, const char *region);
/* True if AUTOSCALING_SETTINGS has an entry; settings_clear_scaling removes all. */
bool settings_have_scaling(const struct table_settings *s, enum capacity_kind of);
int settings_clear_scaling(struct table_settings *s, struct arena *a) MUST_CHECK;
/* Copies AUTOSCALING_SETTINGS and the settings of Regions. */
void settings_copy_scaling(struct table_settings *to, const struct table_settings *from);
/* True if a Region has read_capacity_units. */
bool settings_have_region_units(const struct table_settings *s);
void settings_clear(struct table_settings *s, uint64_t bits);
/* True if anything is given. */
bool settings_are_given(const struct table_settings *s);
/* Copies settings with their bits, or the lack of them. */
void settings_copy(struct table_settings *to, const struct table_settings *from, uint64_t bits);

/* A change over the settings of a table: a change of an option replaces it, one of custom properties
 * or of AUTOSCALING_SETTINGS a group, one of TAGS a tag. targets: a bit for each enum capacity_kind:
 * the change replaces what Application Auto Scaling keeps, too. */
int settings_merge(const struct table_settings *old, const struct table_settings *change, unsigned targets,
                   struct arena *a, struct table_settings *out) MUST_CHECK;
/* The AUTOSCALING_SETTINGS of Regions that another table has, of one kind. */
int settings_keep_regions(struct table_settings *s, const struct table_settings *from, enum capacity_kind of,
                          struct arena *a) MUST_CHECK;
/* The auto scaling of a Region: the table's, overridden by the Region's own. */
void settings_scaling_in(const struct table_settings *s, enum capacity_kind of, const char *region,
                         struct scaling_settings *out);
/* Tags with others added, some of which replace them, and some removed by key. */
int tags_merge(const struct setting_map *old, const struct setting_map *added, const struct setting_map *removed,
               struct arena *a, struct setting_map *out) MUST_CHECK;
/* Returns -1 if the change touches several settings, where Keyspaces allows one a statement. */
int settings_refuse_several(const struct setting_context *x, const struct table_settings *change) MUST_CHECK;
/* Checks that settings fit together and that their change is allowed. before: of the table before the
 * change; NULL means a new table. ERR_INVALID. */
int settings_check_together(const struct table_settings *s, const struct table_settings *before, bool multi_region,
                            struct err *e) MUST_CHECK;

struct table_capacity {
    bool provisioned;
    int64_t units[2];           /* per second, by enum capacity_kind; provisioned */
    int64_t warm[2];            /* per second; warm throughput, served without scaling up first */
    int64_t on_demand_since_ms; /* since 1970: when it last became on-demand; 0 means never */
};
void settings_capacity(const struct table_settings *s, int64_t created_ms, struct table_capacity *out);
static inline bool settings_have_ttl(const struct table_settings *s) { return s->ttl || s->default_time_to_live > 0; }

/* ---- texts ---- */

/* The texts of all given settings, as the record has them: by name, with dots. Returns NULL if
 * memory is exhausted. */
const struct schema_option *settings_texts(const struct table_settings *s, struct arena *a, uint32_t *n) MUST_CHECK;
/* From texts of a record. Returns false if a value is none of its kind, or (*no_memory) memory is
 * exhausted. A name that no row has is left out: it is of a later version. */
bool settings_of_texts(const struct schema_option *texts, uint32_t n, struct arena *a, struct table_settings *out,
                       bool *no_memory) MUST_CHECK;
/* " AND ..." for each map that Keyspaces adds, so that the statement makes the same table again. */
void settings_describe(const struct table_settings *s, const char *separator, struct arena *a, struct buf *out);
/* "{'a': 'b'}" */
void setting_map_print(const struct setting_map *m, struct buf *out);
/* The custom properties as a map<text, frozen<map<text, text>>>. */
void settings_put_properties(const struct table_settings *s, struct arena *a, struct buf *out);
/* The text of the auto scaling of reads or writes, "{'minimum_units': 5, ...}", with bare numbers and
 * booleans; false: there are no settings. region NULL: with those of the Regions; else as they are in that Region. */
bool settings_put_scaling(const struct table_settings *s, enum capacity_kind of, const char *region, struct arena *a,
                          struct buf *out);
