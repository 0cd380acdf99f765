/* The sub-options of caching, compaction and compression. They are stored and shown; nothing here acts on them. Words:
 * CachingParams, CompactionParams, CompressionParams and the strategies' validateOptions. */
#include <stdlib.h>
#include <strings.h>

#include "cql/schema/ddl.h"

/* Entries are named "compaction.class"; this finds by the part behind the dot. */
static const char *get(const struct option_list *l, const char *key) {
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(strchr(l->items[i].name, '.') + 1, key) == 0) return l->items[i].value;
    return NULL;
}

static int put(struct compile *c, struct option_list *out, const char *map, const char *key, const char *value) {
    return option_add(out, arena_printf(c->arena, "%s.%s", map, key), value);
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
static const char *qualify(struct compile *c, const char *package, const char *class, const char **bare) {
    size_t n = strlen(package);
    *bare = strncmp(class, package, n) == 0 ? class + n : class;
    const char *full = strchr(class, '.') ? class : arena_printf(c->arena, "%s%s", package, class);
    if (!full) err_nomem(c->err);
    return full;
}

/* ---- caching ---- */

static int settle_caching(struct compile *c, struct option_list *given, struct option_list *out) {
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = strchr(given->items[i].name, '.') + 1;
        if (strcmp(key, "keys") != 0 && strcmp(key, "rows_per_partition") != 0)
            return err_set(c->err, ERR_CONFIG,
                           "Invalid caching sub-options [%s]: only 'keys' and 'rows_per_partition' are allowed", key);
    }
    const char *keys = get(given, "keys"), *rows = get(given, "rows_per_partition");
    long n = 0;
    if (keys && strcasecmp(keys, "all") != 0 && strcasecmp(keys, "none") != 0)
        return err_set(c->err, ERR_CONFIG,
                       "Invalid value '%s' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed", keys);
    bool all = rows && strcasecmp(rows, "all") == 0, none = !rows || strcasecmp(rows, "none") == 0;
    /* Digits only, as Cassandra looks at them; what no int holds is refused here and not left to a number parser. */
    if (!all && !none && (rows[strspn(rows, "0123456789")] || !parse_number(rows, &n) || n > INT32_MAX))
        return err_set(c->err, ERR_CONFIG,
                       "Invalid value '%s' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and "
                       "integer values are allowed", rows);
    if (put(c, out, "caching", "keys", keys && strcasecmp(keys, "all") == 0 ? "ALL" : "NONE")) return -1;
    return put(c, out, "caching", "rows_per_partition", all ? "ALL" : none ? "NONE" : rows);
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
    {"SizeTieredCompactionStrategy", COMPACTION_STCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size"}},
    {"LeveledCompactionStrategy", COMPACTION_LCS,
     {COMMON_OPTIONS, THRESHOLDS, "sstable_size_in_mb", "fanout_size", "single_sstable_uplevel"}},
    {"TimeWindowCompactionStrategy", COMPACTION_TWCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size", "compaction_window_unit",
      "compaction_window_size", "timestamp_resolution", "expired_sstable_check_frequency_seconds",
      "unsafe_aggressive_sstable_expiration"}},
    {"DateTieredCompactionStrategy", COMPACTION_DTCS,
     {COMMON_OPTIONS, THRESHOLDS, "bucket_low", "bucket_high", "min_sstable_size", "base_time_seconds",
      "max_sstable_age_days", "max_window_size_seconds", "timestamp_resolution",
      "expired_sstable_check_frequency_seconds"}},
    {"UnifiedCompactionStrategy", COMPACTION_UCS,
     {COMMON_OPTIONS, "scaling_parameters", "target_sstable_size", "base_shard_count", "min_sstable_size",
      "sstable_growth", "flush_size_override", "max_sstables_to_compact", "expired_sstable_check_frequency_seconds",
      "unsafe_aggressive_sstable_expiration", "overlap_inclusion_method"}},
};

static int parse_threshold(struct compile *c, const char *name, const char *text, long *out) {
    if (*text && !text[strspn(text, "0123456789")] && parse_number(text, out)) return 0;
    return err_set(c->err, ERR_CONFIG, "Invalid value %s for '%s' compaction sub-option - must be an integer", text,
                   name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct schema_option *)a)->name, ((const struct schema_option *)b)->name);
}

/* Sorts what is given. */
static int check_names(struct compile *c, const struct strategy *s, struct option_list *given) {
    struct buf unknown;
    buf_init(&unknown, 1024);
    qsort(given->items, given->n, sizeof *given->items, by_name);
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = strchr(given->items[i].name, '.') + 1;
        if (!one_of(key, s->options)) buf_printf(&unknown, "%s%s", unknown.n ? ", " : "", key);
    }
    int rc = 0;
    if (unknown.n)
        rc = err_set(c->err, ERR_CONFIG, "Properties specified [%.*s] are not understood by %s",
                     SLICE_FMT(buf_slice(&unknown)), s->name);
    buf_fini(&unknown);
    return rc;
}

static int settle_compaction(struct compile *c, struct option_list *given, struct option_list *out) {
    const char *class = get(given, "class"), *bare, *full;
    if (!class) return err_set(c->err, ERR_CONFIG, "Missing sub-option 'class' for the 'compaction' option");
    if (!(full = qualify(c, "org.apache.cassandra.db.compaction.", class, &bare))) return -1;
    const struct strategy *s = NULL;
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++)
        if (strcmp(strategies[i].name, bare) == 0) s = &strategies[i];
    /* Cassandra 3.11 and 5.0 each have a strategy that the other does not. Keyspaces mode accepts
     * both, and refuses the newer one where it is strict. */
    if (s && s->id == COMPACTION_UCS && compat_refuse(&c->compat, REFUSE_COMPACTION_CLASS, c->err, full)) return -1;
    if (!s || (s->id == COMPACTION_DTCS && c->schema->cassandra_mode))
        return err_set(c->err, ERR_CONFIG, "Unable to find compaction strategy class '%s'", full);
    const char *min = get(given, "min_threshold"), *max = get(given, "max_threshold");
    bool thresholds = s->id != COMPACTION_UCS;
    if (compaction_check(c, s->id, given) || check_names(c, s, given)) return -1;
    if (thresholds) {
        long low = 4, high = 32;
        if (min && parse_threshold(c, "min_threshold", min, &low)) return -1;
        if (max && parse_threshold(c, "max_threshold", max, &high)) return -1;
        if (low == 0 || high == 0)
            return err_set(c->err, ERR_CONFIG,
                           "Disabling compaction by setting compaction thresholds to 0 has been removed, set the "
                           "compaction option 'enabled' to false instead.");
        if (low < 2)
            return err_set(c->err, ERR_CONFIG, "Min compaction threshold cannot be less than 2 (got %ld)", low);
        if (low > high)
            return err_set(c->err, ERR_CONFIG,
                           "Min compaction threshold (got %ld) cannot be greater than max compaction threshold "
                           "(got %ld)", low, high);
    }
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = strchr(given->items[i].name, '.') + 1;
        if (put(c, out, "compaction", key, strcmp(key, "class") == 0 ? full : given->items[i].value)) return -1;
    }
    if (thresholds && !min && put(c, out, "compaction", "min_threshold", "4")) return -1;
    return thresholds && !max ? put(c, out, "compaction", "max_threshold", "32") : 0;
}

/* ---- compression ---- */

static const char *const compressors[] = {"LZ4Compressor",  "SnappyCompressor", "DeflateCompressor",
                                          "ZstdCompressor", "NoopCompressor",   NULL};
static const char *const compression_options[] = {"class", "enabled", "chunk_length_in_kb", "min_compress_ratio",
                                                  "lz4_compressor_type", "lz4_high_compressor_level",
                                                  "compression_level", NULL};

/* Names of Cassandra 3.11 that 5.0 does not know, and what replaced them; NULL: nothing did. */
static const struct old_option {
    const char *name, *now;
} old_compression_options[] = {
    {"sstable_compression", "class"}, {"chunk_length_kb", "chunk_length_in_kb"}, {"crc_check_chance", NULL}};

/* The value of an option under its name, or under that which it had in 3.11. */
static const char *get_either(const struct compile *c, const struct option_list *given, const char *key) {
    const char *value = get(given, key);
    for (size_t i = 0; i < ARRAY_LEN(old_compression_options) && !value && !c->schema->cassandra_mode; i++) {
        const char *now = old_compression_options[i].now;
        if (now && strcmp(now, key) == 0) value = get(given, old_compression_options[i].name);
    }
    return value;
}

static int settle_compression(struct compile *c, struct option_list *given, struct option_list *out) {
    const char *class = get_either(c, given, "class"), *bare, *full;
    const char *enabled = get(given, "enabled");
    bool empty = class && !*class && !c->schema->cassandra_mode; /* 3.11's way to turn compression off */
    if (given->n == 0 || (enabled && strcasecmp(enabled, "false") == 0) || empty)
        return put(c, out, "compression", "enabled", "false");
    if (!class) return err_set(c->err, ERR_CONFIG, "Missing sub-option 'class' for the 'compression' option.");
    if (!*class)
        return err_set(c->err, ERR_CONFIG,
                       "The 'class' option must not be empty. To disable compression use 'enabled' : false");
    if (!(full = qualify(c, "org.apache.cassandra.io.compress.", class, &bare))) return -1;
    if (!one_of(bare, compressors))
        return err_set(c->err, ERR_CONFIG, "Could not create Compression for type %s", full);
    bool newer = strcmp(bare, "ZstdCompressor") == 0 || strcmp(bare, "NoopCompressor") == 0;
    if (newer && compat_refuse(&c->compat, REFUSE_COMPRESSION_CLASS, c->err, full)) return -1;
    const char *chunk = get_either(c, given, "chunk_length_in_kb");
    long kb = 1;
    if (chunk && (!parse_number(chunk, &kb) || kb <= 0 || kb > 1024 * 1024))
        return err_set(c->err, ERR_CONFIG, "Invalid value for chunk_length_in_kb");
    if (kb & (kb - 1)) return err_set(c->err, ERR_CONFIG, "chunk_length_in_kb must be a power of 2");
    const char *type = get(given, "lz4_compressor_type"), *ratio = get(given, "min_compress_ratio");
    if (type && strcmp(type, "high") != 0 && strcmp(type, "fast") != 0)
        return err_set(c->err, ERR_CONFIG,
                       "Invalid compressor type '%s' specified for LZ4 parameter 'lz4_compressor_type'. Valid options "
                       "are [high, fast].", type);
    char *end;
    double d = ratio ? strtod(ratio, &end) : 0;
    if (ratio && (!*ratio || *end))
        return err_set(c->err, ERR_CONFIG, "Invalid value for min_compress_ratio: %s", ratio);
    if (!(d == 0 || d >= 1))
        return err_set(c->err, ERR_CONFIG, "min_compress_ratio can either be 0 or greater than or equal to 1");
    if (put(c, out, "compression", "chunk_length_in_kb", chunk ? chunk : c->schema->cassandra_mode ? "16" : "64"))
        return -1;
    if (put(c, out, "compression", "class", full)) return -1;
    for (uint32_t i = 0; i < given->n; i++) {
        const char *key = strchr(given->items[i].name, '.') + 1;
        const struct old_option *old = NULL;
        for (size_t k = 0; k < ARRAY_LEN(old_compression_options) && !c->schema->cassandra_mode; k++)
            if (strcmp(old_compression_options[k].name, key) == 0) old = &old_compression_options[k];
        if (old && old->now) continue;
        if (!old && !one_of(key, compression_options))
            return err_set(c->err, ERR_CONFIG, "Unknown compression options %s", key);
        newer = strcmp(key, "min_compress_ratio") == 0 || strcmp(key, "compression_level") == 0;
        if (newer && compat_refuse(&c->compat, REFUSE_COMPRESSION_OPTION, c->err, key)) return -1;
        bool done = strcmp(key, "class") == 0 || strcmp(key, "chunk_length_in_kb") == 0 || strcmp(key, "enabled") == 0;
        if (!done && put(c, out, "compression", key, given->items[i].value)) return -1;
    }
    return 0;
}

int map_option_settle(struct compile *c, const char *name, struct option_list *given, struct option_list *out) {
    if (strcmp(name, "caching") == 0) return settle_caching(c, given, out);
    if (strcmp(name, "compaction") == 0) return settle_compaction(c, given, out);
    return settle_compression(c, given, out);
}
