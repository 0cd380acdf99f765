/* The sub-options of caching, compaction and compression. They are stored and shown; nothing here acts on them. Words:
 * CachingParams, CompactionParams, CompressionParams and the strategies' validateOptions. */
#include <stdlib.h>
#include <strings.h>

#include "settings/value.h"

static const char *get(const struct setting_map *given, const char *key) {
    return option_find(given->entries, given->n, key);
}

static int put(const struct setting_context *c, struct setting_map *out, const char *key, const char *value) {
    return setting_map_add(out, key, value, c->arena) ? err_nomem(c->err) : 0;
}

static bool one_of(const char *s, const char *const *list) {
    for (; *list; list++)
        if (strcmp(s, *list) == 0) return true;
    return false;
}

static bool parse_number(const char *text, long *out) {
    char *end;
    *out = strtol(text, &end, 10);
    return *text && !*end;
}

/* "org.apache.cassandra.x.Name" of "Name"; the bare name in *bare. */
static const char *qualify(const struct setting_context *c, const char *package, const char *class, const char **bare) {
    size_t n = strlen(package);
    *bare = strncmp(class, package, n) == 0 ? class + n : class;
    const char *full = strchr(class, '.') ? class : arena_printf(c->arena, "%s%s", package, class);
    if (!full) err_nomem(c->err);
    return full;
}

/* ---- caching ---- */

static int settle_caching(const struct setting_context *c, const struct setting_map *given, struct setting_map *out) {
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = given->entries[i].name;
        if (strcmp(key, "keys") != 0 && strcmp(key, "rows_per_partition") != 0)
            return option_error(c, DDL_CACHING_NAME, key);
    }
    const char *keys = get(given, "keys"), *rows = get(given, "rows_per_partition");
    long n = 0;
    if (keys && strcasecmp(keys, "all") != 0 && strcasecmp(keys, "none") != 0)
        return option_error(c, DDL_CACHING_KEYS, keys);
    bool all = rows && strcasecmp(rows, "all") == 0, none = !rows || strcasecmp(rows, "none") == 0;
    /* Digits only, as Cassandra looks at them; what no int holds is refused here and not left to a number parser. */
    if (!all && !none && (rows[strspn(rows, "0123456789")] || !parse_number(rows, &n) || n > INT32_MAX))
        return option_error(c, DDL_CACHING_ROWS, rows);
    if (put(c, out, "keys", keys && strcasecmp(keys, "all") == 0 ? "ALL" : "NONE")) return -1;
    return put(c, out, "rows_per_partition", all ? "ALL" : none ? "NONE" : rows);
}

/* ---- compaction ---- */

struct strategy {
    const char *name;
    enum compaction_strategy id;
    const char *options[24];
};

#define COMMON_OPTIONS \
    "class", "enabled", "tombstone_threshold", "tombstone_compaction_interval", "unchecked_tombstone_compaction", \
        "only_purge_repaired_tombstones", "log_all", "provide_overlapping_tombstones"
#define THRESHOLDS "min_threshold", "max_threshold"

static const struct strategy strategies[] = {
    {"SizeTieredCompactionStrategy",
     COMPACTION_STCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size"}},
    {"LeveledCompactionStrategy",
     COMPACTION_LCS,
     {COMMON_OPTIONS, THRESHOLDS, "sstable_size_in_mb", "fanout_size", "single_sstable_uplevel"}},
    {"TimeWindowCompactionStrategy",
     COMPACTION_TWCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size", "compaction_window_unit",
      "compaction_window_size", "timestamp_resolution", "expired_sstable_check_frequency_seconds",
      "unsafe_aggressive_sstable_expiration"}},
    {"DateTieredCompactionStrategy",
     COMPACTION_DTCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size", "base_time_seconds",
      "max_sstable_age_days", "max_window_size_seconds", "timestamp_resolution",
      "expired_sstable_check_frequency_seconds"}},
    {"UnifiedCompactionStrategy",
     COMPACTION_UCS,
     {COMMON_OPTIONS, "scaling_parameters", "target_sstable_size", "base_shard_count", "min_sstable_size",
      "sstable_growth", "flush_size_override", "max_sstables_to_compact", "expired_sstable_check_frequency_seconds",
      "unsafe_aggressive_sstable_expiration", "overlap_inclusion_method"}},
};

static int parse_threshold(const struct setting_context *c, const char *name, const char *text, long *out) {
    if (*text && !text[strspn(text, "0123456789")] && parse_number(text, out)) return 0;
    return option_error(c, DDL_COMPACTION_THRESHOLD, text, name);
}

static int check_thresholds(const struct setting_context *c, const char *min, const char *max) {
    long low, high;
    if (parse_threshold(c, "min_threshold", min, &low) || parse_threshold(c, "max_threshold", max, &high)) return -1;
    if (low == 0 || high == 0)
        return option_error(c, DDL_COMPACTION_OFF);
    if (low < 2) return option_error(c, DDL_COMPACTION_LEAST, (long long)low);
    if (low > high)
        return option_error(c, DDL_COMPACTION_ORDER, (long long)low, (long long)high);
    return 0;
}

/* given: by name. */
static int check_names(const struct setting_context *c, const struct strategy *s, const struct setting_map *given) {
    struct buf unknown;
    buf_init(&unknown, 1024);
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = given->entries[i].name;
        if (!one_of(key, s->options)) buf_printf(&unknown, "%s%s", unknown.n ? ", " : "", key);
    }
    int rc = 0;
    if (unknown.n) {
        buf_put(&unknown, "", 1);
        rc = buf_failed(&unknown) ? err_nomem(c->err)
                                  : option_error(c, DDL_COMPACTION_NAMES, (const char *)unknown.p, s->name);
    }
    buf_fini(&unknown);
    return rc;
}

static int settle_compaction(const struct setting_context *c, const struct setting_map *given,
                             struct setting_map *out) {
    const char *class = get(given, "class"), *bare, *full;
    if (!class) return option_error(c, DDL_COMPACTION_NO_CLASS);
    if (!(full = qualify(c, "org.apache.cassandra.db.compaction.", class, &bare))) return -1;
    const struct strategy *s = NULL;
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++)
        if (strcmp(strategies[i].name, bare) == 0) s = &strategies[i];
    /* Cassandra 3.11 and 5.0 each have a strategy that the other does not. Keyspaces mode accepts
     * both, and refuses the newer one where it is strict. */
    if (s && s->id == COMPACTION_UCS && compat_refuse(c->compat, REFUSE_COMPACTION_CLASS, c->err, full)) return -1;
    if (!s || (s->id == COMPACTION_DTCS && c->cassandra_mode))
        return option_error(c, DDL_COMPACTION_CLASS, full);
    const char *min = get(given, "min_threshold"), *max = get(given, "max_threshold");
    bool thresholds = s->id != COMPACTION_UCS;
    if (compaction_check(c, s->id, given) || check_names(c, s, given)) return -1;
    if (thresholds && check_thresholds(c, min ? min : "4", max ? max : "32")) return -1;
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = given->entries[i].name;
        if (put(c, out, key, strcmp(key, "class") == 0 ? full : given->entries[i].value)) return -1;
    }
    if (thresholds && !min && put(c, out, "min_threshold", "4")) return -1;
    return thresholds && !max ? put(c, out, "max_threshold", "32") : 0;
}

/* ---- compression ---- */

static const char *const compressors[] = {"LZ4Compressor",  "SnappyCompressor", "DeflateCompressor",
                                          "ZstdCompressor", "NoopCompressor",   NULL};
static const char *const compression_options[] = {"class",
                                                  "enabled",
                                                  "chunk_length_in_kb",
                                                  "min_compress_ratio",
                                                  "lz4_compressor_type",
                                                  "lz4_high_compressor_level",
                                                  "compression_level",
                                                  NULL};

static int check_compressor(const struct setting_context *c, const struct setting_map *given) {
    const char *type = get(given, "lz4_compressor_type"), *ratio = get(given, "min_compress_ratio");
    if (type && strcmp(type, "high") != 0 && strcmp(type, "fast") != 0)
        return option_error(c, DDL_COMPRESSION_LZ4, type);
    char *end;
    double d = ratio ? strtod(ratio, &end) : 0;
    if (ratio && (!*ratio || *end))
        return option_error(c, DDL_COMPRESSION_RATIO, ratio);
    if (!(d == 0 || d >= 1))
        return option_error(c, DDL_COMPRESSION_RATIO_LEAST);
    return 0;
}

/* Names of Cassandra 3.11 that 5.0 does not know, and what replaced them; NULL if nothing did. */
static const struct old_option {
    const char *name, *now;
} old_compression_options[] = {
    {"sstable_compression", "class"}, {"chunk_length_kb", "chunk_length_in_kb"}, {"crc_check_chance", NULL}};

/* The value of an option under its name, or under that which it had in 3.11. */
static const char *get_either(const struct setting_context *c, const struct setting_map *given, const char *key) {
    const char *value = get(given, key);
    for (size_t i = 0; i < ARRAY_LEN(old_compression_options) && !value && !c->cassandra_mode; i++) {
        const char *now = old_compression_options[i].now;
        if (now && strcmp(now, key) == 0) value = get(given, old_compression_options[i].name);
    }
    return value;
}

static int settle_compression(const struct setting_context *c, const struct setting_map *given,
                              struct setting_map *out) {
    const char *class = get_either(c, given, "class"), *bare, *full;
    const char *enabled = get(given, "enabled");
    bool empty = class && !*class && !c->cassandra_mode; /* 3.11's way to turn compression off */
    bool off = enabled && strcasecmp(enabled, "true") != 0;
    if (off && given->n > 1) return option_error(c, DDL_COMPRESSION_OFF);
    if (given->n == 0 || off || empty)
        return put(c, out, "enabled", "false");
    if (!class) return option_error(c, DDL_COMPRESSION_NO_CLASS);
    if (!*class)
        return option_error(c, DDL_COMPRESSION_NO_NAME);
    if (!(full = qualify(c, "org.apache.cassandra.io.compress.", class, &bare))) return -1;
    if (!one_of(bare, compressors))
        return option_error(c, DDL_COMPRESSION_CLASS, full);
    bool newer = strcmp(bare, "ZstdCompressor") == 0 || strcmp(bare, "NoopCompressor") == 0;
    if (newer && compat_refuse(c->compat, REFUSE_COMPRESSION_CLASS, c->err, full)) return -1;
    const char *chunk = get_either(c, given, "chunk_length_in_kb");
    long kb = 1;
    if (chunk && (!parse_number(chunk, &kb) || kb > INT32_MAX || kb < INT32_MIN))
        return option_error(c, DDL_CHUNK_NO_NUMBER);
    if (kb > INT32_MAX / 1024) return option_error(c, DDL_CHUNK_LARGE, (long long)kb);
    if (kb <= 0) return option_error(c, DDL_CHUNK_NEGATIVE);
    if (kb & (kb - 1)) return option_error(c, DDL_CHUNK_POWER);
    if (check_compressor(c, given)) return -1;
    if (put(c, out, "chunk_length_in_kb", chunk ? chunk : c->cassandra_mode ? "16" : "64")) return -1;
    if (put(c, out, "class", full)) return -1;
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = given->entries[i].name;
        const struct old_option *old = NULL;
        for (size_t k = 0; k < ARRAY_LEN(old_compression_options) && !c->cassandra_mode; k++)
            if (strcmp(old_compression_options[k].name, key) == 0) old = &old_compression_options[k];
        if (old && old->now) continue;
        if (!old && !one_of(key, compression_options))
            return option_error(c, DDL_COMPRESSION_NAME, key);
        newer = strcmp(key, "min_compress_ratio") == 0 || strcmp(key, "compression_level") == 0;
        if (newer && compat_refuse(c->compat, REFUSE_COMPRESSION_OPTION, c->err, key)) return -1;
        bool done = strcmp(key, "class") == 0 || strcmp(key, "chunk_length_in_kb") == 0 || strcmp(key, "enabled") == 0;
        if (!done && put(c, out, key, given->entries[i].value)) return -1;
    }
    return 0;
}

int setting_take_map(const struct setting_context *x, const struct setting *row, struct schema_option *given,
                     uint32_t n, struct table_settings *to) {
    const struct setting_map all = {n, given};
    struct setting_map *out = (void *)((char *)to + row->offset);
    *out = (struct setting_map){0, NULL};
    setting_give(row, setting_rows, to);
    if (row == &setting_rows[SETTING_caching]) return settle_caching(x, &all, out);
    if (row == &setting_rows[SETTING_compression]) return settle_compression(x, &all, out);
    setting_map_sort(given, n);
    return settle_compaction(x, &all, out);
}
