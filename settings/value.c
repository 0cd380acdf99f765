#include "settings/value.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "keyspaces/ddl_error.h"
#include "types/type.h"

/* ---- words ---- */

static const char *words_of(const struct setting *row) {
    return row->kind == SETTING_KIND_BOOL ? "true|false" : row->words;
}

int setting_word(const struct setting *row, struct slice text) {
    int i = 0;
    for (const char *at = words_of(row); *at; i++) {
        size_t n = strcspn(at, "|");
        if (text.n == n && strncasecmp(at, (const char *)text.p, n) == 0) return i;
        at += n + (at[n] == '|');
    }
    return -1;
}

static void print_word(const struct setting *row, int word, struct buf *out) {
    const char *at = words_of(row);
    while (word--) at += strcspn(at, "|") + 1;
    buf_put(out, at, strcspn(at, "|"));
}

/* ---- between text and member ---- */

static void *member(const struct setting *row, const void *of) { return (char *)(uintptr_t)of + row->offset; }

bool setting_read(const struct setting *row, const char *text, void *of) {
    char *end = "";
    int word = 0;
    errno = 0;
    switch (row->kind) {
    case SETTING_KIND_BOOL:
    case SETTING_KIND_FLAG:
        word = setting_word(row, slice_str(text));
        *(bool *)member(row, of) = word == 0;
        break;
    case SETTING_KIND_CHOICE:
        word = setting_word(row, slice_str(text));
        *(uint8_t *)member(row, of) = (uint8_t)word;
        break;
    case SETTING_KIND_INT:
    case SETTING_KIND_WHOLE:
    case SETTING_KIND_MILLIS: *(int64_t *)member(row, of) = strtoll(text, &end, 10); break;
    case SETTING_KIND_REAL:
    case SETTING_KIND_NUMBER: *(double *)member(row, of) = strtod(text, &end); break;
    case SETTING_KIND_TEXT: *(const char **)member(row, of) = text; return true;
    case SETTING_KIND_MOMENT: /* only shown */
    case SETTING_KIND_MAP: return false;
    }
    return word >= 0 && *text && !*end && !errno;
}

void setting_print(const struct setting *row, const void *of, struct buf *out) {
    const void *m = member(row, of);
    switch (row->kind) {
    case SETTING_KIND_BOOL:
    case SETTING_KIND_FLAG: print_word(row, !*(const bool *)m, out); break;
    case SETTING_KIND_CHOICE: print_word(row, *(const uint8_t *)m, out); break;
    case SETTING_KIND_INT:
    case SETTING_KIND_WHOLE:
    case SETTING_KIND_MILLIS: buf_printf(out, "%lld", *(const long long *)m); break;
    case SETTING_KIND_MOMENT: {
        char text[CLOCK_TEXT];
        clock_text(*(const int64_t *)m * 1000, text);
        buf_printf(out, "%sZ", text);
        break;
    }
    case SETTING_KIND_REAL: { /* as Java prints a double, which is how Cassandra shows it: 1.0E-4 */
        uint8_t wire[8];
        uint64_t bits;
        memcpy(&bits, m, sizeof bits);
        store_u64(wire, bits);
        cql_value_text(cql_type_scalar(CQL_DOUBLE), slice_of(wire, sizeof wire), out);
        break;
    }
    case SETTING_KIND_NUMBER: buf_printf(out, "%.15g", *(const double *)m); break;
    case SETTING_KIND_TEXT: buf_put_str(out, *(const char *const *)m); break;
    case SETTING_KIND_MAP: setting_map_print(m, out); break;
    }
}

const char *setting_text(const struct setting *row, const void *of, struct arena *a) {
    struct buf b;
    if (row->kind == SETTING_KIND_TEXT) return *(const char *const *)member(row, of);
    buf_init(&b, 0);
    setting_print(row, of, &b);
    struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(a, buf_slice(&b));
    buf_fini(&b);
    return (const char *)s.p;
}

/* ---- maps ---- */

int setting_map_add(struct setting_map *m, const char *key, const char *value, struct arena *a) {
    struct schema_option *all = ARENA_ARRAY(a, m->n + 1, struct schema_option);
    if (!all) return -1;
    if (m->n) memcpy(all, m->entries, m->n * sizeof *all);
    all[m->n++] = (struct schema_option){key, value};
    setting_map_sort(all, m->n);
    m->entries = all;
    return 0;
}

/* ---- names with dots ---- */

#define REPLICAS "replica_updates."

static const char *after(const char *name, const char *prefix) {
    size_t n = strlen(prefix);
    return strncasecmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* "<Region>." before a name: finds or makes its settings. */
static struct region_settings *find_region(struct table_settings *s, const char **name, bool lower, struct arena *a,
                                           bool *no_memory) {
    size_t n = strcspn(*name, ".");
    if (n == 0 || !(*name)[n]) return NULL;
    char *region = (char *)(uintptr_t)arena_dup(a, slice_of(*name, n)).p;
    for (char *p = region; lower && p && *p; p++) *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
    struct region_settings *r = region ? settings_region(s, region, a) : NULL;
    if (!r) *no_memory = true;
    *name += n + 1;
    return r;
}

static bool find_row(const struct setting *rows, uint32_t n, const char *name, void *of, struct setting_place *out) {
    for (uint32_t i = 0; i < n; i++) {
        const char *rest = after(name, rows[i].name);
        bool is_map = rows[i].kind == SETTING_KIND_MAP;
        if (!rest || (is_map ? *rest != '.' : *rest != 0)) continue;
        *out = (struct setting_place){.row = &rows[i], .rows = rows, .of = of, .key = is_map ? rest + 1 : NULL};
        return true;
    }
    return false;
}

static bool find_scaling(struct table_settings *s, const char *name, struct arena *a, struct setting_place *out,
                         bool *no_memory) {
    static const char *const updates[2][2] = {
        {"autoscaling_settings.provisioned_read_capacity_autoscaling_update.", "read_scaling."},
        {"autoscaling_settings.provisioned_write_capacity_autoscaling_update.", "write_scaling."}};
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        for (int target = 0; target < 2; target++) {
            const char *rest = after(name, updates[of][target]), *replica = rest ? after(rest, REPLICAS) : NULL;
            struct scaling_settings *to = &s->scaling[of];
            if (!rest) continue;
            if (replica) {
                struct region_settings *r = find_region(s, &replica, true, a, no_memory);
                if (!r) return false;
                to = &r->scaling[of];
                rest = replica;
            }
            return find_row(scaling_rows, SCALING_SETTINGS, rest, to, out) &&
                   (out->row->source == SETTING_OF_TARGET) == target;
        }
    return false;
}

bool setting_find(struct table_settings *s, const char *name, struct arena *a, struct setting_place *out,
                  bool *no_memory) {
    const char *replica = after(name, "custom_properties." REPLICAS);
    if (!replica) return find_row(setting_rows, SETTINGS, name, s, out) || find_scaling(s, name, a, out, no_memory);
    struct region_settings *r = find_region(s, &replica, false, a, no_memory);
    return r && find_row(region_rows, REGION_SETTINGS, replica, r, out);
}

/* ---- Cassandra's options ---- */

static int take_bool(const struct setting_context *x, const struct setting *row, const char *text, bool *out) {
    static const char *const words[] = {"1", "true", "yes", "0", "false", "no"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        *out = i < 3;
        if (strcasecmp(text, words[i]) == 0) return 0;
    }
    return option_error(x, DDL_OPTION_BOOL, text, row->name);
}

static int take_text(const struct setting_context *x, const struct setting *row, const char *text, const char **out) {
    *out = text;
    if (row == &setting_rows[SETTING_speculative_retry] || row == &setting_rows[SETTING_additional_write_policy])
        return (*out = retry_policy(x, text)) ? 0 : -1;
    if (row == &setting_rows[SETTING_read_repair]) {
        bool none = strcasecmp(text, "none") == 0;
        *out = none ? "NONE" : "BLOCKING";
        if (none || strcasecmp(text, "blocking") == 0) return 0;
        return option_error(x, DDL_OPTION_REPAIR, text);
    }
    if (row == &setting_rows[SETTING_memtable] && strcmp(text, "default") != 0)
        return option_error(x, DDL_OPTION_MEMTABLE, text);
    return 0;
}

static int check_range(const struct setting_context *x, const struct setting *row, const struct table_settings *s) {
    const char *text = setting_text(row, s, x->arena);
    if (!text) return err_nomem(x->err);
    if (row->kind == SETTING_KIND_INT) {
        int64_t v = *(int64_t *)member(row, s);
        if ((double)v < row->least)
            return option_error(x, DDL_OPTION_LEAST, row->name, row->least, text);
        if ((double)v > row->most)
            return option_error(x, DDL_OPTION_MOST, row->name, row->most, text);
    } else if (row->kind == SETTING_KIND_REAL) {
        double v = *(double *)member(row, s);
        if (row == &setting_rows[SETTING_bloom_filter_fp_chance] && !(v > 6.71e-5 && v <= 1.0))
            return option_error(x, DDL_OPTION_BLOOM, text);
        if (!(v >= row->least && v <= row->most))
            return option_error(x, DDL_OPTION_CHANCE, row->name, text);
    }
    return 0;
}

int setting_take_option(const struct setting_context *x, const struct setting *row, const char *text, bool range,
                        struct table_settings *to) {
    void *m = member(row, to);
    bool is_read = setting_read(row, text, to);
    if (row->kind == SETTING_KIND_BOOL && take_bool(x, row, text, m)) return -1;
    if (row->kind == SETTING_KIND_TEXT && take_text(x, row, text, m)) return -1;
    if (row->kind == SETTING_KIND_INT && (!is_read || *(int64_t *)m > INT32_MAX || *(int64_t *)m < INT32_MIN))
        return option_error(x, DDL_OPTION_INT, text, row->name);
    if (row->kind == SETTING_KIND_REAL && ((!is_read && !errno) || strpbrk(text, "xX")))
        return option_error(x, DDL_OPTION_DOUBLE, text, row->name);
    setting_give(row, setting_rows, to);
    return range ? check_range(x, row, to) : 0;
}

/* ---- what Keyspaces adds ---- */

/* In UTF-8. */
static size_t characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += (*text & 0xC0) != 0x80;
    return n;
}

static int check_tag_key(const char *key, struct err *e) {
    if (*key && characters(key) <= TAG_KEY_MAX) return 0;
    return ddl_error(e, false, DDL_TAG_KEY, TAG_KEY_MAX, key);
}

/* TagResource, https://docs.aws.amazon.com/keyspaces/latest/APIReference/API_Tag.html */
int tags_check(const struct setting_map *tags, struct err *e) {
    for (uint32_t i = 0; i < tags->n; i++) {
        const char *key = tags->entries[i].name;
        if (check_tag_key(key, e)) return -1;
        if (strncasecmp(key, "aws:", 4) == 0)
            return ddl_error(e, false, DDL_TAG_KEY_AWS, key);
        if (characters(tags->entries[i].value) > TAG_VALUE_MAX)
            return ddl_error(e, false, DDL_TAG_VALUE, key, TAG_VALUE_MAX);
        if (i && strcmp(key, tags->entries[i - 1].name) == 0) return ddl_error(e, false, DDL_TAG_TWICE, key);
    }
    return 0;
}

int setting_check_text(const struct setting *row, const char *name, const char *text, struct err *e) {
    switch (row->kind) {
    case SETTING_KIND_FLAG:
    case SETTING_KIND_CHOICE:
        if (setting_word(row, slice_str(text)) >= 0) return 0;
        return ddl_error(e, false, DDL_NOT_OF_WORDS, text, name, row->words);
    case SETTING_KIND_WHOLE:
    case SETTING_KIND_NUMBER: {
        bool whole = row->kind == SETTING_KIND_WHOLE;
        char *end;
        double v = strtod(text, &end);
        bool digits = strspn(text, whole ? "0123456789" : "0123456789.") == strlen(text);
        if (*text && !*end && digits && v >= row->least && v <= row->most) return 0;
        if (row == &scaling_rows[SCALING_target_value])
            return ddl_error(e, false, DDL_SCALING_TARGET, row->least, row->most, text);
        return ddl_error(e, false, DDL_NOT_A_NUMBER, text, name, whole ? "whole " : "", row->least, row->most);
    }
    case SETTING_KIND_TEXT:
    case SETTING_KIND_MAP:
        if (strncmp(text, row->words, strlen(row->words)) != 0)
            return ddl_error(e, false, DDL_NOT_OF_PREFIX, text, name, row->words);
        if (characters(text) <= (size_t)row->most) return 0;
        return ddl_error(e, false, DDL_TOO_LONG, name, row->most);
    default: return 0;
    }
}

/* Only part of a property's name: "ttl", whose value must be a map. */
static bool is_group(const char *name) {
    size_t n = strlen(name);
    bool is = strcasecmp(name, "custom_properties.replica_updates") == 0;
    for (uint32_t i = N_OPTIONS; i < SETTINGS && !is; i++) {
        const struct setting *row = &setting_rows[i];
        is = row->source == SETTING_OF_STATEMENT && strncasecmp(row->name, name, n) == 0 &&
             (row->name[n] == '.' || (row->kind == SETTING_KIND_MAP && !row->name[n]));
    }
    return is;
}

int settings_take(const struct setting_context *x, const char *name, const char *text, struct table_settings *to) {
    struct setting_place at;
    bool no_memory = false, scaling = after(name, "autoscaling_settings.") != NULL;
    bool known = setting_find(to, name, x->arena, &at, &no_memory) && at.row->source == SETTING_OF_STATEMENT;
    const char *shown = strchr(name, '.') + 1;
    if (no_memory) return err_nomem(x->err);
    if (!known && scaling) return ddl_error(x->err, false, DDL_UNKNOWN_SCALING, shown);
    if (!known && is_group(name))
        return ddl_error(x->err, false, DDL_PROPERTY_NO_MAP, shown);
    if (!known) return ddl_error(x->err, false, DDL_UNKNOWN_PROPERTY, shown);
    bool tags = at.row == &setting_rows[SETTING_tags];
    if (!tags && setting_check_text(at.row, shown, text, x->err)) return -1;
    if (!tags && at.key && check_tag_key(at.key, x->err)) return -1;
    uint64_t given = *(uint64_t *)at.of;
    struct setting_map *map = at.key ? member(at.row, at.of) : NULL;
    if (map ? !tags && option_find(map->entries, map->n, at.key) != NULL : given >> (at.row - at.rows) & 1)
        return ddl_error(x->err, false, DDL_PROPERTY_TWICE, at.row->name, at.key ? "." : "", at.key ? at.key : "");
    if (map ? setting_map_add(map, at.key, text, x->arena) : !setting_read(at.row, text, at.of))
        return err_nomem(x->err);
    setting_give(at.row, at.rows, at.of);
    return 0;
}

int settings_check_values(const struct setting_context *x, const struct table_settings *s) {
    uint32_t n;
    const struct schema_option *texts = settings_texts(s, x->arena, &n);
    struct table_settings scratch = *s;
    if (!texts) return err_nomem(x->err);
    for (uint32_t i = 0; i < n; i++) {
        struct setting_place at;
        bool no_memory = false;
        if (!setting_find(&scratch, texts[i].name, x->arena, &at, &no_memory)) return err_nomem(x->err);
        if (at.rows == setting_rows && at.row < &setting_rows[N_OPTIONS] ? check_range(x, at.row, s)
            : at.row->source != SETTING_OF_STATEMENT || at.row == &setting_rows[SETTING_tags]
                ? 0
                : setting_check_text(at.row, strchr(texts[i].name, '.') + 1, texts[i].value, x->err))
            return -1;
    }
    return tags_check(&s->tags, x->err);
}
