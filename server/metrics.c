#include "server/metrics.h"

#include "engine/stats.h"
#include "server/data_dir.h"
#include "server/process.h"

static const struct {
    const char *name, *type, *help;
} families[FAMILIES] = {
#define FAMILY(id, name_, type_, labels, help_) {.name = name_, .type = type_, .help = help_},
#include "server/family.def"
#undef FAMILY
};

static void put_header(struct buf *out, const char *name, const char *type, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

const char *family_name(enum family f) { return families[f].name; }

void family_put_header(struct buf *out, enum family f) {
    put_header(out, families[f].name, families[f].type, families[f].help);
}

/* A family of one value. */
static void put_one(struct buf *out, enum family f, double value) {
    family_put_header(out, f);
    buf_printf(out, "%s %.15g\n", families[f].name, value);
}

/* A histogram as Prometheus has them: each bucket counts what does not exceed its bound. counts has one
 * more than bounds: those above all of them. */
static void put_durations(struct buf *out, enum family f, const char *label, const char *value, int n_bounds,
                          const uint32_t *bounds_us, const uint64_t *counts, uint64_t sum_us) {
    const char *name = families[f].name;
    uint64_t n = 0;
    for (int i = 0; i < n_bounds; i++) {
        n += counts[i];
        buf_printf(out, "%s_bucket{%s=\"%s\",le=\"%.15g\"} %llu\n", name, label, value, bounds_us[i] * 1e-6,
                   (unsigned long long)n);
    }
    n += counts[n_bounds];
    buf_printf(out, "%s_bucket{%s=\"%s\",le=\"+Inf\"} %llu\n", name, label, value, (unsigned long long)n);
    buf_printf(out, "%s_sum{%s=\"%s\"} %.15g\n", name, label, value, (double)sum_us * 1e-6);
    buf_printf(out, "%s_count{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long)n);
}

static void put_requests(const struct np_front *front, struct buf *out) {
    family_put_header(out, FAMILY_REQUESTS);
    for (uint8_t op = 0; op < NP_OPCODE_SLOTS; op++)
        for (int o = 0; np_opcode_is_request(op) && o < NP_OUTCOMES; o++)
            buf_printf(out, "%s{opcode=\"%s\",outcome=\"%s\"} %llu\n", families[FAMILY_REQUESTS].name,
                       np_opcode_name(op), np_outcome_name((enum np_outcome)o),
                       (unsigned long long)np_front_requests(front, op, (enum np_outcome)o));
    family_put_header(out, FAMILY_REQUEST_SECONDS);
    for (int k = 0; k < NP_KINDS; k++) {
        struct np_latencies l = np_front_latencies(front, (enum np_kind)k);
        put_durations(out, FAMILY_REQUEST_SECONDS, "operation", np_kind_name((enum np_kind)k), NP_LATENCY_BOUNDS,
                      np_latency_bounds_us, l.n, l.sum_us);
    }
}

static bool is_total(const char *name) {
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, "_total");
}

/* The counters of the loops and of the engine. */
static void put_counters(const struct np_front *front, const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *type, *help;
        double scale;
    } rows[NP_METRICS] = {
#define METRIC(id, name_, type_, scale_, help_) {.name = name_, .type = type_, .help = help_, .scale = scale_},
#include "native_protocol/metric.def"
#undef METRIC
    };
    static const struct {
        const char *name, *help;
        double scale;
    } stats[ENG_STATS] = {
#define STAT(id, name_, scale_, help_) {.name = name_, .scale = scale_, .help = help_},
#include "engine/stat.def"
#undef STAT
    };
    for (int i = 0; i < NP_METRICS; i++) {
        put_header(out, rows[i].name, rows[i].type, rows[i].help);
        buf_printf(out, "%s %.15g\n", rows[i].name,
                   (double)(int64_t)np_front_count(front, (enum np_metric)i) * rows[i].scale);
    }
    for (int i = 0; i < ENG_STATS; i++) {
        put_header(out, stats[i].name, is_total(stats[i].name) ? "counter" : "gauge", stats[i].help);
        buf_printf(out, "%s %.15g\n", stats[i].name, (double)eng_stat(eng, (enum eng_stat)i) * stats[i].scale);
    }
}

/* The figures of a remote store. */
static void put_store(const struct eng *eng, struct buf *out) {
    static const struct {
        const char *name, *help;
    } rows[ENG_STORE_STATS] = {
#define STORE_STAT(id, name_, help_) {.name = name_, .help = help_},
#include "engine/store_stat.def"
#undef STORE_STAT
    };
    struct eng_store_figures f;
    if (!eng_store_figures(eng, &f)) return;
    for (int i = 0; i < ENG_STORE_STATS; i++) {
        put_header(out, rows[i].name, is_total(rows[i].name) ? "counter" : "gauge", rows[i].help);
        buf_printf(out, "%s %llu\n", rows[i].name, (unsigned long long)f.n[i]);
    }
    family_put_header(out, FAMILY_STORE_SECONDS);
    put_durations(out, FAMILY_STORE_SECONDS, "use", "read", ENG_DURATION_BOUNDS, eng_duration_bounds_us, f.reads.n,
                  f.reads.sum_us);
    put_durations(out, FAMILY_STORE_SECONDS, "use", "write", ENG_DURATION_BOUNDS, eng_duration_bounds_us, f.writes.n,
                  f.writes.sum_us);
}

static void put_membership(struct membership *m, struct buf *out) {
    const struct member_list *l = membership_list(m);
    put_one(out, FAMILY_SERVERS_LIVE, l->n);
    membership_unref(l);
    put_one(out, FAMILY_LEASE_AGE, (double)membership_age_us(m) * 1e-6);
    put_one(out, FAMILY_LEADS, membership_leads(m));
}

static void put_process(const struct metrics_sources *s, struct buf *out) {
    struct process_figures p = process_figures();
    put_one(out, FAMILY_MEMORY_LIMIT, (double)s->memory);
    put_one(out, FAMILY_RESIDENT, (double)p.resident);
    put_one(out, FAMILY_VIRTUAL, (double)p.virtual);
    put_one(out, FAMILY_CPU, p.cpu_s);
    put_one(out, FAMILY_OPEN_FDS, (double)p.fds);
    put_one(out, FAMILY_MAX_FDS, (double)p.fds_max);
    put_one(out, FAMILY_THREADS, (double)p.threads);
    put_one(out, FAMILY_STARTED, p.started_s);
}

static void put_disk(const char *data_dir, struct buf *out) {
    struct data_dir_use use = data_dir_use(data_dir);
    family_put_header(out, FAMILY_DISK_USED);
    for (int i = 0; i < DATA_DIR_PARTS; i++)
        buf_printf(out, "%s{part=\"%s\"} %llu\n", families[FAMILY_DISK_USED].name,
                   data_dir_part_name((enum data_dir_part)i), (unsigned long long)use.bytes[i]);
    put_one(out, FAMILY_DISK_FREE, (double)use.free);
    put_one(out, FAMILY_DISK_SIZE, (double)use.size);
}

void metrics_put(const struct metrics_sources *s, bool per_table, bool is_ready, struct buf *out) {
    int64_t change_us;
    uint32_t changes = catalog_changes(s->metering->catalog, &change_us);
    family_put_header(out, FAMILY_BUILD_INFO);
    buf_printf(out, "%s{version=\"%s\",commit=\"%s\",rocksdb=\"%s\"} 1\n", families[FAMILY_BUILD_INFO].name,
               TALLY_VERSION, TALLY_COMMIT, TALLY_ROCKSDB_VERSION);
    put_one(out, FAMILY_READY, is_ready);
    put_one(out, FAMILY_LOOP_TICK_AGE, (double)np_front_tick_age_us(s->front) * 1e-6);
    put_requests(s->front, out);
    put_counters(s->front, s->eng, out);
    put_one(out, FAMILY_STORAGE_FAILED, eng_failed(s->eng));
    put_process(s, out);
    if (s->data_dir) put_disk(s->data_dir, out);
    put_one(out, FAMILY_CHANGES, changes);
    put_one(out, FAMILY_CHANGE_AGE, (double)change_us * 1e-6);
    put_store(s->eng, out);
    if (s->membership) put_membership(s->membership, out);
    ledger_metrics(s->metering, per_table, out);
}
