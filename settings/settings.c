#include "settings/settings.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

static_assert(SETTINGS <= 64 && SCALING_SETTINGS <= 64, "one bit a setting");

#define POLICY "scaling_policy.target_tracking_scaling_policy_configuration."
#define API_POLICY "scalingPolicy.targetTrackingScalingPolicyConfiguration."
#define CUSTOM "custom_properties."
#define SIZE_TIERED "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"
#define LZ4 "org.apache.cassandra.io.compress.LZ4Compressor"
#define MAP_OF(...) \
    {sizeof((const struct schema_option[]){__VA_ARGS__}) / sizeof(struct schema_option), \
     (const struct schema_option[]) { __VA_ARGS__ }}
#define NO_MAP {0, NULL}

enum { ONLY_3_11 = RELEASE_3_11, ONLY_5_0 = RELEASE_5_0, BOTH = RELEASE_3_11 | RELEASE_5_0, LAST = SETTING_LAST };

#define ROW(of, id, kind_) .kind = SETTING_KIND_##kind_, .offset = offsetof(struct of, id)

const struct setting setting_rows[SETTINGS] = {
#define OPTION(id, kind, releases_, default_5_0, default_3_11, least_, most_, read_, range_, api_) \
    {.name = #id, ROW(table_settings, id, kind), .releases = releases_, .words = "", .least = least_, .most = most_, \
     .read = read_, .range = range_, .api = api_},
#define PROPERTY(id, name_, kind, words_, least_, most_, otherwise, api_) \
    {.name = CUSTOM name_, .skip = sizeof CUSTOM - 1, ROW(table_settings, id, kind), .words = words_, .least = least_, \
     .most = most_, .api = api_},
#define STAMP(id, name_, kind, api_) \
    {.name = CUSTOM name_, .skip = sizeof CUSTOM - 1, ROW(table_settings, id, kind), .source = SETTING_OF_SERVER, \
     .api = api_},
#define SHOWN(id, name_, kind, words_, api_) \
    {.name = CUSTOM name_, .skip = sizeof CUSTOM - 1, ROW(table_settings, id, kind), .source = SETTING_SHOWN, \
     .words = words_, .api = api_},
#define TAGS(id, name_, kind) {.name = name_, ROW(table_settings, id, kind), .words = ""},
#define KEPT(id, name_, kind) {.name = name_, ROW(table_settings, id, kind), .source = SETTING_OF_SERVER},
#include "settings/setting_rows.h"
};

const struct setting scaling_rows[SCALING_SETTINGS] = {
#define SCALING(id, name_, kind, words_, least_, most_, otherwise, api_) \
    {.name = name_, ROW(scaling_settings, id, kind), .words = words_, .least = least_, .most = most_, .api = api_},
#define TARGET(id, name_, kind) {.name = name_, ROW(scaling_settings, id, kind), .source = SETTING_OF_TARGET},
#include "settings/setting_rows.h"
};

const struct setting region_rows[REGION_SETTINGS] = {
#define REGION(id, name_, kind, words_, least_, most_, otherwise, api_) \
    {.name = name_, ROW(region_settings, id, kind), .words = words_, .least = least_, .most = most_, .api = api_},
#include "settings/setting_rows.h"
};

/* ---- defaults ---- */

static const struct scaling_settings scaling_defaults = {
#define SCALING(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
};

/* By release: 3.11, 5.0. */
static const struct table_settings defaults[2] = {
    {
#define OPTION(id, kind, releases, default_5_0, default_3_11, least, most, read, range, api) .id = default_3_11,
#define PROPERTY(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
        .scaling = {{
#define SCALING(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
                    },
                    {
#define SCALING(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
                    }},
    },
    {
#define OPTION(id, kind, releases, default_5_0, default_3_11, least, most, read, range, api) .id = default_5_0,
#define PROPERTY(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
        .scaling = {{
#define SCALING(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
                    },
                    {
#define SCALING(id, name, kind, words, least, most, otherwise, api) .id = otherwise,
#include "settings/setting_rows.h"
                    }},
    },
};

const struct table_settings *settings_defaults(bool cassandra_mode) { return &defaults[cassandra_mode]; }

/* ---- rows ---- */

const char *option_find(const struct schema_option *options, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(options[i].name, name) == 0) return options[i].value;
    return NULL;
}

int option_order(const void *a, const void *b) {
    return strcmp(((const struct schema_option *)a)->name, ((const struct schema_option *)b)->name);
}

void setting_map_sort(struct schema_option *entries, uint32_t n) { qsort(entries, n, sizeof *entries, option_order); }

const struct setting *setting_option(const char *name) {
    for (uint32_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(setting_rows[i].name, name) == 0) return &setting_rows[i];
    return NULL;
}

uint64_t setting_group(uint64_t bit) {
    const struct setting *row = setting_rows;
    while (bit > 1) bit >>= 1, row++;
    size_t n = row->skip + strcspn(row->name + row->skip, ".");
    uint64_t group = UINT64_C(1) << (row - setting_rows);
    for (uint32_t i = 0; row->skip && i < SETTINGS; i++)
        if (strncmp(setting_rows[i].name, row->name, n) == 0 && setting_rows[i].name[n] == '.')
            group |= UINT64_C(1) << i;
    return group;
}

/* ---- Regions ---- */

const struct region_settings *settings_find_region(const struct table_settings *s, const char *region) {
    for (uint32_t i = 0; i < s->n_regions; i++)
        if (strcmp(s->regions[i].region, region) == 0) return &s->regions[i];
    return NULL;
}

/* A copy of the Regions with room for more. */
static struct region_settings *copy_regions(const struct table_settings *s, uint32_t more, struct arena *a) {
    struct region_settings *all = ARENA_ARRAY(a, s->n_regions + more + 1, struct region_settings);
    if (all && s->n_regions) memcpy(all, s->regions, s->n_regions * sizeof *all);
    return all;
}

struct region_settings *settings_region(struct table_settings *s, const char *region, struct arena *a) {
    struct region_settings *all = copy_regions(s, 1, a);
    uint32_t at = 0;
    if (!all) return NULL;
    while (at < s->n_regions && strcmp(all[at].region, region) < 0) at++;
    if (at == s->n_regions || strcmp(all[at].region, region) != 0) {
        memmove(all + at + 1, all + at, (s->n_regions++ - at) * sizeof *all);
        all[at] = (struct region_settings){.region = region, .scaling = {scaling_defaults, scaling_defaults}};
    }
    s->regions = all;
    return &all[at];
}

bool settings_have_region_units(const struct table_settings *s) {
    for (uint32_t i = 0; i < s->n_regions; i++)
        if (s->regions[i].given) return true;
    return false;
}

bool settings_have_scaling(const struct table_settings *s, enum capacity_kind of) {
    bool any = s->scaling[of].given & ~SCALING_TARGET;
    for (uint32_t i = 0; i < s->n_regions && !any; i++) any = s->regions[i].scaling[of].given;
    return any;
}

bool settings_are_given(const struct table_settings *s) {
    return s->given || s->scaling[READ_CAPACITY].given || s->scaling[WRITE_CAPACITY].given ||
           settings_have_scaling(s, READ_CAPACITY) || settings_have_region_units(s);
}

/* ---- change ---- */

/* Copies the members of these bits, and the bits; a member that is not given gets its default. Each
 * struct begins with the bits. */
static void copy(const struct setting *rows, uint32_t n, uint64_t bits, void *to, const void *from,
                 const void *otherwise) {
    static const size_t sizes[] = {
#define SIZE(kind) [SETTING_KIND_##kind] = sizeof(SETTING_TYPE_##kind)
        SIZE(BOOL), SIZE(FLAG), SIZE(INT), SIZE(WHOLE), SIZE(MILLIS), SIZE(MOMENT), SIZE(REAL), SIZE(NUMBER),
        SIZE(CHOICE), SIZE(TEXT), SIZE(MAP)};
    uint64_t *to_given = to;
    *to_given = (*to_given & ~bits) | (*(const uint64_t *)from & bits);
    for (uint32_t i = 0; i < n; i++)
        if (bits >> i & 1) {
            const char *source = *(const uint64_t *)from >> i & 1 ? from : otherwise;
            memcpy((char *)to + rows[i].offset, source + rows[i].offset, sizes[rows[i].kind]);
        }
}

void settings_copy(struct table_settings *to, const struct table_settings *from, uint64_t bits) {
    copy(setting_rows, SETTINGS, bits, to, from, &defaults[1]);
}

void settings_clear(struct table_settings *s, uint64_t bits) { settings_copy(s, &defaults[1], bits); }

static void copy_scaling(struct scaling_settings *to, const struct scaling_settings *from, uint64_t bits) {
    copy(scaling_rows, SCALING_SETTINGS, bits, to, from, &scaling_defaults);
}

void settings_copy_scaling(struct table_settings *to, const struct table_settings *from) {
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        copy_scaling(&to->scaling[of], &from->scaling[of], ~SCALING_TARGET);
    to->n_regions = from->n_regions;
    to->regions = from->regions;
}

int settings_keep_regions(struct table_settings *s, const struct table_settings *from, enum capacity_kind of,
                          struct arena *a) {
    for (uint32_t i = 0; i < from->n_regions; i++) {
        struct region_settings *r = settings_region(s, from->regions[i].region, a);
        if (!r) return -1;
        r->scaling[of] = from->regions[i].scaling[of];
    }
    return 0;
}

int settings_clear_scaling(struct table_settings *s, struct arena *a) {
    struct region_settings *regions = copy_regions(s, 0, a);
    if (!regions) return -1;
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) {
        copy_scaling(&s->scaling[of], &scaling_defaults, ~SCALING_TARGET);
        for (uint32_t i = 0; i < s->n_regions; i++) regions[i].scaling[of] = scaling_defaults;
    }
    s->regions = regions;
    return 0;
}

/* Replaces what the change replaces of the settings of Regions; leaves out Regions without any. */
static int merge_regions(const struct table_settings *change, struct arena *a, struct table_settings *out) {
    struct table_settings all = {.n_regions = out->n_regions, .regions = out->regions};
    bool units = settings_have_region_units(change);
    uint32_t n = 0;
    for (uint32_t i = 0; i < change->n_regions; i++)
        if (!settings_region(&all, change->regions[i].region, a)) return -1;
    struct region_settings *merged = copy_regions(&all, 0, a);
    if (!merged) return -1;
    for (uint32_t i = 0; i < all.n_regions; i++) {
        struct region_settings r = all.regions[i];
        const struct region_settings *in_change = settings_find_region(change, r.region);
        struct region_settings none = {.scaling = {scaling_defaults, scaling_defaults}};
        const struct region_settings *from = in_change ? in_change : &none;
        if (units) copy(region_rows, REGION_SETTINGS, UINT64_MAX, &r, from, &none);
        for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
            if (settings_have_scaling(change, of)) r.scaling[of] = from->scaling[of];
        if (r.given || r.scaling[READ_CAPACITY].given || r.scaling[WRITE_CAPACITY].given) merged[n++] = r;
    }
    out->n_regions = n;
    out->regions = merged;
    return 0;
}

int tags_merge(const struct setting_map *old, const struct setting_map *added, const struct setting_map *removed,
               struct arena *a, struct setting_map *out) {
    struct schema_option *all = ARENA_ARRAY(a, old->n + added->n + 1, struct schema_option);
    uint32_t n = 0;
    if (!all) return -1;
    for (uint32_t i = 0; i < old->n; i++)
        if (!option_find(added->entries, added->n, old->entries[i].name) &&
            !option_find(removed->entries, removed->n, old->entries[i].name))
            all[n++] = old->entries[i];
    for (uint32_t i = 0; i < added->n; i++) all[n++] = added->entries[i];
    setting_map_sort(all, n);
    *out = (struct setting_map){n, all};
    return 0;
}

void settings_scaling_in(const struct table_settings *s, enum capacity_kind of, const char *region,
                         struct scaling_settings *out) {
    const struct region_settings *r = settings_find_region(s, region);
    *out = s->scaling[of];
    if (r) copy_scaling(out, &r->scaling[of], r->scaling[of].given);
}

int settings_merge(const struct table_settings *old, const struct table_settings *change, unsigned targets,
                   struct arena *a, struct table_settings *out) {
    uint64_t replaced = 0;
    *out = *old;
    for (uint32_t i = 0; i < SETTINGS; i++)
        if (change->given >> i & 1) replaced |= setting_group(UINT64_C(1) << i);
    settings_copy(out, change, replaced);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) {
        uint64_t bits = settings_have_scaling(change, of) ? ~SCALING_TARGET : 0;
        if (targets >> of & 1) bits |= SCALING_TARGET;
        copy_scaling(&out->scaling[of], &change->scaling[of], bits);
    }
    if (merge_regions(change, a, out)) return -1;
    static const struct setting_map none;
    return replaced & SETTING_BIT(tags) ? tags_merge(&old->tags, &change->tags, &none, a, &out->tags) : 0;
}
