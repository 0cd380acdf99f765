/* Settings as texts: those of a record, of a statement and of system tables. */
#include <string.h>

#include "settings/value.h"

#define REPLICAS "replica_updates."

/* By enum capacity_kind. */
static const char *const updates[] = {"autoscaling_settings.provisioned_read_capacity_autoscaling_update.",
                                      "autoscaling_settings.provisioned_write_capacity_autoscaling_update."};
static const char *const targets[] = {"read_scaling.", "write_scaling."};

struct list {
    struct arena *arena;
    struct schema_option *items;
    uint32_t n, room;
    bool failed;
};

static void add(struct list *l, const char *prefix, const char *name, const char *key, const char *value) {
    if (l->n == l->room) {
        uint32_t room = l->room ? 2 * l->room : 16;
        struct schema_option *items = ARENA_ARRAY(l->arena, room, struct schema_option);
        if (items && l->n) memcpy(items, l->items, l->n * sizeof *items);
        l->failed = l->failed || !items;
        if (!items) return;
        l->items = items;
        l->room = room;
    }
    if (*prefix || key) name = arena_printf(l->arena, "%s%s%s%s", prefix, name, key ? "." : "", key ? key : "");
    l->failed = l->failed || !name || !value;
    l->items[l->n++] = (struct schema_option){name, value};
}

static void add_rows(struct list *l, const struct setting *rows, uint32_t n, uint64_t bits, const char *prefix,
                     const void *of) {
    for (uint32_t i = 0; i < n; i++) {
        if (!(*(const uint64_t *)of & bits & UINT64_C(1) << i)) continue;
        if (rows[i].kind != SETTING_KIND_MAP) {
            add(l, prefix, rows[i].name, NULL, setting_text(&rows[i], of, l->arena));
            continue;
        }
        const struct setting_map *m = (const void *)((const char *)of + rows[i].offset);
        for (uint32_t k = 0; k < m->n; k++) add(l, prefix, rows[i].name, m->entries[k].name, m->entries[k].value);
    }
}

/* Below a prefix, and the Region's name where there is one. */
static void add_below(struct list *l, const struct setting *rows, uint32_t n, const char *prefix, const char *region,
                      const void *of) {
    const char *below = arena_printf(l->arena, "%s" REPLICAS "%s.", prefix, region);
    if (below) add_rows(l, rows, n, UINT64_MAX, below, of);
    else l->failed = true;
}

const struct schema_option *settings_texts(const struct table_settings *s, struct arena *a, uint32_t *n) {
    struct list l = {.arena = a, .items = ARENA_ARRAY(a, 1, struct schema_option), .room = 1};
    if (!l.items) return NULL;
    add_rows(&l, setting_rows, SETTINGS, UINT64_MAX, "", s);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++) {
        add_rows(&l, scaling_rows, SCALING_SETTINGS, ~SCALING_TARGET, updates[of], &s->scaling[of]);
        add_rows(&l, scaling_rows, SCALING_SETTINGS, SCALING_TARGET, targets[of], &s->scaling[of]);
    }
    for (uint32_t i = 0; i < s->n_regions && !l.failed; i++) {
        const struct region_settings *r = &s->regions[i];
        add_below(&l, region_rows, REGION_SETTINGS, "custom_properties.", r->region, r);
        for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
            add_below(&l, scaling_rows, SCALING_SETTINGS, updates[of], r->region, &r->scaling[of]);
    }
    setting_map_sort(l.items, l.failed ? 0 : l.n);
    *n = l.n;
    return l.failed ? NULL : l.items;
}

/* The texts whose names begin with a prefix: they lie together. The names keep it. */
static const struct schema_option *texts_of(const struct table_settings *s, const char *prefix, struct arena *a,
                                            uint32_t *n) {
    uint32_t all, first = 0;
    const struct schema_option *texts = settings_texts(s, a, &all);
    *n = 0;
    if (!texts) return NULL;
    while (first < all && strncmp(texts[first].name, prefix, strlen(prefix)) != 0) first++;
    while (first + *n < all && strncmp(texts[first + *n].name, prefix, strlen(prefix)) == 0) (*n)++;
    return texts + first;
}

bool settings_of_texts(const struct schema_option *texts, uint32_t n, struct arena *a, struct table_settings *out,
                       bool *no_memory) {
    *out = *settings_defaults(true);
    *no_memory = false;
    for (uint32_t i = 0; i < n; i++) {
        struct setting_place at;
        if (!setting_find(out, texts[i].name, a, &at, no_memory) || at.row->source == SETTING_SHOWN) {
            if (*no_memory) return false;
            out->respelled = true;
            continue;
        }
        if (at.key) {
            struct setting_map *m = (void *)((char *)at.of + at.row->offset);
            if (!(*(uint64_t *)at.of >> (at.row - at.rows) & 1)) *m = (struct setting_map){0, NULL};
            *no_memory = setting_map_add(m, at.key, texts[i].value, a);
        } else if (!setting_read(at.row, texts[i].value, at.of)) {
            return false;
        } else {
            const char *text = setting_text(at.row, at.of, a);
            *no_memory = !text;
            out->respelled = out->respelled || !text || strcmp(text, texts[i].value) != 0;
        }
        if (*no_memory) return false;
        setting_give(at.row, at.rows, at.of);
    }
    return true;
}

/* ---- maps of CQL ---- */

static void put_string(struct buf *out, const char *s) {
    buf_u8(out, '\'');
    for (; *s; s++) {
        if (*s == '\'') buf_u8(out, '\'');
        buf_u8(out, (uint8_t)*s);
    }
    buf_u8(out, '\'');
}

void setting_map_print(const struct setting_map *m, struct buf *out) {
    buf_u8(out, '{');
    for (uint32_t i = 0; i < m->n; i++) {
        if (i) buf_put_str(out, ", ");
        put_string(out, m->entries[i].name);
        buf_put_str(out, ": ");
        put_string(out, m->entries[i].value);
    }
    buf_u8(out, '}');
}

/* Names with a dot after the first skip bytes are maps in maps. bare: numbers and booleans have no quotes. */
static void put_nested(struct buf *out, uint32_t n, const struct schema_option *texts, size_t skip, bool bare) {
    buf_u8(out, '{');
    for (uint32_t i = 0, end; i < n; i = end) {
        const char *name = texts[i].name + skip;
        size_t length = strcspn(name, ".");
        for (end = i + 1; name[length] && end < n && strncmp(texts[end].name + skip, name, length + 1) == 0; end++)
            continue;
        buf_printf(out, "%s'%.*s': ", i ? ", " : "", (int)length, name);
        if (name[length]) put_nested(out, end - i, texts + i, skip + length + 1, bare);
        else {
            const char *text = texts[i].value;
            bool is_number = *text && !text[strspn(text, "0123456789.-")];
            if (bare && (is_number || !strcmp(text, "true") || !strcmp(text, "false"))) buf_put_str(out, text);
            else put_string(out, text);
        }
    }
    buf_u8(out, '}');
}

void settings_describe(const struct table_settings *s, const char *separator, struct arena *a, struct buf *out) {
    static const struct {
        const char *prefix, *words;
    } maps[] = {{"custom_properties.", "CUSTOM_PROPERTIES"}, {"autoscaling_settings.", "AUTOSCALING_SETTINGS"}};
    struct table_settings told = *s;
    for (uint32_t i = 0; i < SETTINGS; i++)
        if (setting_rows[i].source == SETTING_OF_SERVER) told.given &= ~(UINT64_C(1) << i);
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        uint32_t n;
        const struct schema_option *texts = texts_of(&told, maps[i].prefix, a, &n);
        if (!texts) out->failed = true;
        if (!n) continue;
        buf_printf(out, "%s%s = ", separator, maps[i].words);
        put_nested(out, n, texts, strlen(maps[i].prefix), false);
    }
    if (!s->tags.n) return;
    buf_printf(out, "%sTAGS = ", separator);
    setting_map_print(&s->tags, out);
}

bool settings_put_scaling(const struct table_settings *s, enum capacity_kind of, const char *region, struct arena *a,
                          struct buf *out) {
    struct table_settings there = {.given = 0};
    uint32_t n;
    there.scaling[of] = s->scaling[of];
    there.n_regions = region ? 0 : s->n_regions;
    there.regions = s->regions;
    if (region) settings_scaling_in(s, of, region, &there.scaling[of]);
    const struct schema_option *texts = texts_of(&there, updates[of], a, &n);
    if (!texts) out->failed = true;
    if (n) put_nested(out, n, texts, strlen(updates[of]), true);
    return n;
}

/* ---- the wire form of map<text, frozen<map<text, text>>> ---- */

static void put_item(struct buf *out, const char *text, size_t n) {
    buf_u32(out, (uint32_t)n);
    buf_put(out, text, n);
}

void settings_put_properties(const struct table_settings *s, struct arena *a, struct buf *out) {
    enum { SKIP = sizeof "custom_properties." - 1 };
    uint32_t n, groups = 0;
    const struct schema_option *texts = texts_of(s, "custom_properties.", a, &n);
    if (!texts) out->failed = true;
    size_t count_at = out->n;
    buf_u32(out, 0);
    for (uint32_t i = 0, end; i < n; i = end, groups++) {
        const char *group = texts[i].name + SKIP;
        size_t length = strcspn(group, ".");
        for (end = i + 1; end < n && strncmp(texts[end].name + SKIP, group, length + 1) == 0; end++) continue;
        put_item(out, group, length);
        size_t at = out->n;
        buf_u32(out, 0);
        buf_u32(out, end - i);
        for (uint32_t k = i; k < end; k++) {
            const char *key = texts[k].name + SKIP + length + 1;
            put_item(out, key, strlen(key));
            put_item(out, texts[k].value, strlen(texts[k].value));
        }
        if (!buf_failed(out)) buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
    }
    if (!buf_failed(out)) buf_patch_u32(out, count_at, groups);
}
