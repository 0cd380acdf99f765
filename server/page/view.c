#include "server/page/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "metering/charge.h"
#include "metering/guidance.h"
#include "server/page/statement.h"

/* A number with three digits, so that answers stay small. */
static void put_number(struct buf *out, double v) {
    if (v >= 1000) buf_printf(out, "%.0f", v);
    else buf_printf(out, "%.3g", v > 0 ? v : 0);
}

static void put_figure(struct buf *out, const char *name, double v) {
    json_member(out, name);
    put_number(out, v);
}

/* The running second; the one before it, until the history has its last second. */
static uint32_t now_second(const struct view_options *v) {
    uint32_t now = (uint32_t)(clock_wall_us(v->clock) / 1000000);
    pthread_mutex_lock(&v->history->lock);
    if (now == v->history->second + 2) now--;
    pthread_mutex_unlock(&v->history->lock);
    return now;
}

/* The table and the schema that it is in, which the caller releases. Returns NULL if there is
 * none. */
static const struct schema_table *find_table(const struct view_options *v, const struct view_table *q,
                                             const struct schema **schema) {
    *schema = catalog_schema(v->catalog);
    const struct schema_table *t = schema_table_any(*schema, q->keyspace, q->table);
    if (t && !t->keyspace->is_system) return t;
    schema_unref(*schema);
    return NULL;
}

/* ---- overview ---- */

static void put_capacity(const struct view_options *v, const struct schema_table *t, struct buf *out) {
    struct limit_table l;
    if (!v->limit_table || !v->limit_table(v->arg, t->object, &l)) {
        buf_put_str(out, ",\"read_capacity\":null,\"write_capacity\":null,\"throttled\":[]");
        return;
    }
    buf_printf(out, ",\"capacity_mode\":\"%s\",\"limits\":\"%s\",\"read_capacity\":%lld,\"write_capacity\":%lld,"
               "\"throttled\":[",
               l.read.provisioned ? "PROVISIONED" : "PAY_PER_REQUEST", limit_mode_name(l.mode),
               (long long)capacity_rate(&l.read, v->limits->values.of[LIMIT_TABLE_READ]),
               (long long)capacity_rate(&l.write, v->limits->values.of[LIMIT_TABLE_WRITE]));
    for (int i = 0; i < LIMITS; i++) {
        const struct limit_counts *c = &l.counts[i];
        if (!c->last_us) continue;
        json_item(out);
        buf_put_str(out, "{");
        json_text(out, "limit", limit_info((enum limit_id)i)->name);
        buf_printf(out, ",\"refused\":%llu,\"shadowed\":%llu,\"last_at\":%lld,\"rate\":%lld",
                   (unsigned long long)c->refused, (unsigned long long)c->shadowed, (long long)(c->last_us / 1000),
                   (long long)c->last_rate);
        json_text(out, "what", limit_info((enum limit_id)i)->what);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]");
}

/* The last minute of a watched table, second by second. */
static void put_recent(const struct history_table *t, uint32_t now, struct buf *out) {
    enum { SPARK = 60 };
    float mean[SERIES_N], most[SERIES_N], last[SERIES_N] = {0}, p50 = 0, p99 = 0;
    buf_put_str(out, ",\"watched\":true,\"spark\":[");
    for (uint32_t s = now - SPARK; s < now; s++) {
        bool any = rings_read(&t->series, 0, s, now, mean, most);
        json_item(out);
        put_number(out, any ? mean[SERIES_READ_UNITS] + mean[SERIES_WRITE_UNITS] : 0);
        if (any && s + 2 >= now) memcpy(last, mean, sizeof(last));
        if (any && mean[SERIES_REQUESTS] > 0) {
            p50 = mean[SERIES_P50];
            p99 = mean[SERIES_P99];
        }
    }
    buf_put_str(out, "]");
    put_figure(out, "read_units", last[SERIES_READ_UNITS]);
    put_figure(out, "write_units", last[SERIES_WRITE_UNITS]);
    put_figure(out, "throttles", last[SERIES_READ_THROTTLES] + last[SERIES_WRITE_THROTTLES]);
    put_figure(out, "p50_ms", p50);
    put_figure(out, "p99_ms", p99);
}

static void put_table(const struct view_options *v, const struct schema_table *t, uint32_t now, struct buf *out) {
    uint64_t bytes = 0;
    json_item(out);
    buf_put_str(out, "{");
    json_text(out, "keyspace", t->keyspace->name);
    json_text(out, "table", t->name);
    json_text(out, "status", schema_status_name(t->status));
    if (schema_status_verb(t->status)) json_text(out, "under_way", schema_status_verb(t->status));
    int64_t at = cql_table_billable_last(v->db, t, &bytes);
    buf_printf(out, ",\"created\":%lld,\"bytes\":", (long long)t->created_ms);
    if (at) buf_printf(out, "%llu", (unsigned long long)bytes);
    else buf_put_str(out, "null");
    put_capacity(v, t, out);
    const struct history_table *h = history_find(v->history, t->object);
    if (h) put_recent(h, now, out);
    else buf_printf(out, ",\"watched\":false,\"counted\":%s", ledger_counted(v->ledger, t->object) ? "true" : "false");
    buf_put_str(out, "}");
}

/* Whether the table's name, with its keyspace's, has the text in it; ASCII letters match in either case. */
static bool is_found(const struct schema_table *t, const char *find, char name[160]) {
    snprintf(name, 160, "%s.%s", t->keyspace->name, t->name);
    return !find || strcasestr(name, find);
}

static void put_space(const struct view_options *v, const struct schema_space *space, const char *after,
                      const char *find, uint32_t now, uint32_t *n, char last[160], struct buf *out) {
    const struct schema_tables *lists[] = {&space->tables, &space->deleting};
    char name[160];
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        struct schema_table_cursor c = schema_tables_begin(lists[l]);
        for (const struct schema_table *t; *n <= VIEW_TABLES && (t = schema_tables_next(&c));) {
            if (!is_found(t, find, name)) continue;
            if (l == 0 && after && strcmp(name, after) <= 0) continue; /* it was on a page before */
            if ((l == 1 && after) || history_find(v->history, t->object)) continue;
            if (*n == VIEW_TABLES) { /* there is a further page */
                *n += 1;
                break;
            }
            ++*n;
            put_table(v, t, now, out);
            if (l == 0) memcpy(last, name, sizeof(name));
        }
    }
}

void view_tables(const struct view_options *v, const char *after, const char *find, struct buf *out) {
    const struct schema *schema = catalog_schema(v->catalog);
    uint32_t n = 0, now = now_second(v);
    char last[160] = "", name[160];
    pthread_mutex_lock(&v->history->lock);
    buf_printf(out, "{\"now\":%u,\"watched_most\":%d,\"tables\":[", now, HISTORY_TABLES);
    for (uint32_t i = 0; !after && i < HISTORY_TABLES; i++) { /* on the first page, before all others */
        const struct history_table *h = &v->history->tables[i];
        const struct schema_table *t = h->object ? schema_table_any(schema, h->keyspace, h->name) : NULL;
        if (!t || t->object != h->object || !is_found(t, find, name)) continue;
        n++;
        put_table(v, t, now, out);
    }
    for (uint32_t i = 0; i < schema->n_spaces && n <= VIEW_TABLES; i++) {
        const struct schema_space *space = schema->spaces[i];
        if (space->keyspace->is_system) continue;
        put_space(v, space, after, find, now, &n, last, out);
    }
    pthread_mutex_unlock(&v->history->lock);
    buf_put_str(out, "],\"keyspaces\":[");
    for (uint32_t i = 0; i < schema->n_spaces; i++) { /* DDL under way */
        const struct schema_keyspace *k = schema->spaces[i]->keyspace;
        if (k->is_system || !schema_status_verb(k->status)) continue;
        json_item(out);
        buf_put_str(out, "{");
        json_text(out, "keyspace", k->name);
        json_text(out, "status", schema_status_name(k->status));
        buf_put_str(out, "}");
    }
    buf_put_str(out, "],\"next\":");
    if (n > VIEW_TABLES) buf_json_str(out, slice_str(last));
    else buf_put_str(out, "null");
    buf_put_str(out, "}\n");
    schema_unref(schema);
}

/* ---- windows ---- */

static void put_window(const struct view_table *q, uint32_t now, uint32_t *first, uint32_t *last, struct buf *out) {
    const struct ring_shape *shape = &ring_shapes[q->ring];
    *last = now / shape->seconds;
    if (!q->ring) (*last)--; /* the running second is not over */
    *first = *last + 1 - shape->slots;
    if (q->since > *first) *first = q->since;
    buf_printf(out, "{\"now\":%u,\"window\":%u,\"slot_seconds\":%u,\"slots\":%u,\"first\":%u,\"last\":%u", now, q->ring,
               shape->seconds, shape->slots, *first, *last);
}

/* ---- figures over time ---- */

bool view_history(const struct view_options *v, const struct view_table *q, struct buf *out) {
    const struct schema *schema;
    const struct schema_table *t = find_table(v, q, &schema);
    uint32_t now = now_second(v), first, last;
    float mean[SERIES_N], most[SERIES_N];
    if (!t) return false;
    put_window(q, now, &first, &last, out);
    json_member(out, "table");
    pthread_mutex_lock(&v->history->lock);
    put_table(v, t, now, out);
    json_member(out, "series");
    buf_put_str(out, "[");
    for (int i = 0; i < SERIES_N; i++) {
        json_item(out);
        buf_put_str(out, "{");
        json_text(out, "name", series_info((enum series)i)->name);
        json_text(out, "what", series_info((enum series)i)->what);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "],\"points\":[");
    const struct history_table *h = history_find(v->history, t->object);
    for (uint32_t slot = first; h && slot <= last; slot++) {
        if (!rings_read(&h->series, q->ring, slot, now, mean, most)) continue;
        json_item(out);
        buf_printf(out, "[%u", slot);
        for (int i = 0; i < 2 * SERIES_N; i++) {
            buf_put_str(out, ",");
            put_number(out, i < SERIES_N ? mean[i] : most[i - SERIES_N]);
        }
        buf_put_str(out, "]");
    }
    pthread_mutex_unlock(&v->history->lock);
    buf_put_str(out, "]}\n");
    schema_unref(schema);
    return true;
}

/* ---- keys in CQL ---- */

/* Prints "pk = 1 AND day = 'mo'". A key that was cut is printed as far as it is known. */
static void put_key(const struct schema_table *t, const uint8_t *key, uint32_t n, struct buf *out) {
    struct buf text;
    size_t kept = n < SHARD_KEY ? n : SHARD_KEY, at = 0;
    bool cut = n > SHARD_KEY;
    buf_init(&text, 0);
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct schema_column *c = schema_partition_key(t, i);
        bool single = t->n_partition_key == 1;
        size_t from = single ? 0 : at + 2, size = kept;
        if (!single) size = from <= kept ? load_u16(key + at) : 0;
        buf_printf(&text, "%s%s = ", i ? " AND " : "", c->name);
        if (from + size > kept || (single && cut)) {
            buf_put_str(&text, "...");
            break;
        }
        cql_value_print(c->type, slice_of(key + from, size), &text);
        at = from + size + 1;
    }
    buf_json_str(out, buf_slice(&text));
    buf_fini(&text);
}

static void put_known_key(const struct schema_table *t, const struct parts *p, int64_t token, struct buf *out) {
    const struct part_key *k = parts_key(p, token);
    char text[48];
    snprintf(text, sizeof(text), "token %lld", (long long)token);
    if (k) put_key(t, k->key, k->n, out);
    else buf_json_str(out, slice_str(text));
}

/* ---- the finding ---- */

/* The finding of a map: first the verdict on refusals, by the limit that refuses most, then the shape of the load. */
struct page_finding {
    const char *kind;
    double refused, requests; /* in the window, over a limit; all that were counted */
    double refused_rate;      /* by the group of that limit, a second of the slots with such refusals */
    int64_t since, until;     /* the first and the last of these slots, in seconds since 1970 */
    double peak;              /* demand a second, refused requests included: units, or statements of a connection */
    enum limit_id limit;      /* that refused most of them; LIMITS: there were no refusals */
    bool shadow;              /* the limit only counts */
    int64_t rate;             /* the limit's, a second */
    double share;             /* of a partition's limit */
    double part_refused;      /* of that partition, a second */
    int64_t token;
    bool has_token;
};

#define STORAGE_PATTERNS \
    "https://learn.microsoft.com/en-us/azure/storage/tables/table-storage-design-patterns#prepend-append-anti-pattern"
static const struct {
    const char *kind, *words, *advice, *source; /* advice NULL: put_capacity_advice writes it */
} findings[] = {
    {"hot_key", "Hot key: one partition takes a large part of what a partition may take.",
     "Spread the key: add a column with a calculated or random suffix to the partition key, so that its rows go to "
     "several partitions.",
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/bp-partition-key-sharding.html"},
    {"throttled_by_partition", "Partition limit: one partition gets more requests than a partition may take.",
     "Change the key: add a column with a calculated or random suffix to the partition key. Warm throughput and more "
     "capacity of the table do not help, because the limit of a partition stays the same.",
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/bp-partition-key-sharding.html"},
    {"throttled_by_table", "Table limit: the capacity of the table or the account does not suffice.", NULL,
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/ReadWriteCapacityMode.html"},
    {"throttled_by_connection", "Connection limit: a connection sends more statements than a connection may.", NULL,
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/connections.html"},
    {"throttled_by_guidance", "Throttled: the partition guidance refuses requests.",
     "Spread the load over more partitions, or send it in smaller batches.",
     "https://learn.microsoft.com/en-us/azure/storage/tables/scalability-targets"},
    {"append_only", "Append-only pattern: each write goes to a partition key above all before it.",
     "Writes in the order of a key go to one place. Begin the key with a column whose values have no order, or use "
     "such a column as the key.",
     STORAGE_PATTERNS},
    {"prepend_only", "Prepend-only pattern: each write goes to a partition key below all before it.",
     "Writes in the order of a key go to one place. Begin the key with a column whose values have no order, or use "
     "such a column as the key.",
     STORAGE_PATTERNS},
    {"scan", "Scans: most rows that are read are read by scans of the table or of ranges of partitions.",
     "Give the whole partition key with = or IN, or keep a table whose partition key is what the application asks by.",
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/bp-partition-key-design.html"},
    {"none", "No finding: no request was refused, the load is spread, and no partition comes near its limit.", "",
     "https://docs.aws.amazon.com/keyspaces/latest/devguide/bp-partition-key-design.html"},
};

/* The groups of limits that have separate series, and the limits of each. */
enum refuser { REFUSED_BY_TABLE, REFUSED_BY_PARTITION, REFUSED_BY_CONNECTION, REFUSED_BY_GUIDANCE, REFUSERS };
static const struct {
    const char *kind;
    enum limit_id limits[9]; /* until 0, which is LIMIT_CONNECTION */
} refusers[REFUSERS] = {
    [REFUSED_BY_TABLE] = {"throttled_by_table",
                          {LIMIT_PROVISIONED_WRITE, LIMIT_PROVISIONED_READ, LIMIT_ON_DEMAND_WRITE, LIMIT_ON_DEMAND_READ,
                           LIMIT_TABLE_WRITE, LIMIT_TABLE_READ, LIMIT_ACCOUNT_WRITE, LIMIT_ACCOUNT_READ}},
    [REFUSED_BY_PARTITION] = {"throttled_by_partition", {LIMIT_PARTITION_WRITE, LIMIT_PARTITION_READ}},
    [REFUSED_BY_CONNECTION] = {"throttled_by_connection", {LIMIT_CONNECTION}},
    [REFUSED_BY_GUIDANCE] = {"throttled_by_guidance",
                             {LIMIT_ENTITIES_PARTITION, LIMIT_ENTITIES_ACCOUNT, LIMIT_GROUP_OPERATIONS,
                              LIMIT_GROUP_BYTES, LIMIT_GROUP_SAME_ROW}}};

/* The limit of the group that has passed the most requests of the table, of those that were passed since from_us. */
static void choose_limit(const struct view_options *v, const struct schema_table *t, enum refuser by, int64_t from_us,
                         struct page_finding *f) {
    struct limit_table l;
    uint64_t most = 0;
    f->limit = refusers[by].limits[0];
    f->rate = v->limits->values.of[f->limit];
    f->shadow = v->limits->mode == LIMITS_SHADOW;
    if (!v->limit_table || !v->limit_table(v->arg, t->object, &l)) return;
    f->shadow = l.mode == LIMITS_SHADOW && by != REFUSED_BY_GUIDANCE;
    for (const enum limit_id *i = refusers[by].limits; i == refusers[by].limits || *i; i++) {
        const struct limit_counts *c = &l.counts[*i];
        if (c->last_us < from_us || c->refused + c->shadowed <= most) continue;
        most = c->refused + c->shadowed;
        f->limit = *i;
        f->rate = c->last_rate;
    }
}

static struct part_limits part_limits_of(const struct view_options *v) {
    const int64_t *values = v->limits->values.of;
    return (struct part_limits){
        .read_units = (float)values[LIMIT_PARTITION_READ],
        .write_units = (float)values[LIMIT_PARTITION_WRITE],
        .entities = v->limits->guidance == GUIDANCE_OFF ? 0 : (float)values[LIMIT_ENTITIES_PARTITION]};
}

/* The partition of the window with the most refusals, if refused, or else with the largest share of its limit. */
static void look_for_hot_key(const struct view_options *v, const struct history_table *h, const struct view_table *q,
                             uint32_t now, bool refused, struct page_finding *f) {
    const struct part_limits limits = part_limits_of(v);
    struct hot_partition rows[PARTS_OPEN];
    double most = 0;
    uint32_t last = now / ring_shapes[q->ring].seconds;
    for (uint32_t slot = last + 1 - ring_shapes[q->ring].slots; h && slot <= last; slot++) {
        uint32_t n = parts_read(&h->parts, q->ring, slot, now, rows);
        for (uint32_t i = 0; i < n; i++) {
            double share = part_share(rows[i].most, &limits), throttles = rows[i].most[RANGE_THROTTLES];
            if ((refused ? throttles : share) <= most) continue;
            most = refused ? throttles : share;
            f->share = share;
            f->token = rows[i].token;
            f->part_refused = throttles;
        }
    }
    f->has_token = most > 0;
}

/* The highest demand of a second on the finding's limit. A refused request has no charge: it counts as much as the
 * mean of those that were carried out, or one unit if there was none. In slots of more than a second it is an upper
 * bound, because the most units and the most refusals may be of different seconds. */
static double peak_demand(const struct history_table *h, const struct view_table *q, uint32_t now,
                          const struct page_finding *f) {
    bool by_connection = f->limit == LIMIT_CONNECTION, reads = limit_is_of_reads(f->limit);
    enum series used = by_connection ? SERIES_REQUESTS : reads ? SERIES_READ_UNITS : SERIES_WRITE_UNITS;
    enum series refused = by_connection ? SERIES_CONNECTION_THROTTLES
                          : reads       ? SERIES_READ_THROTTLES
                                        : SERIES_WRITE_THROTTLES;
    float mean[SERIES_N], most[SERIES_N];
    double requests = 0, units = 0, peak = 0;
    uint32_t last = now / ring_shapes[q->ring].seconds, first = last + 1 - ring_shapes[q->ring].slots;
    for (uint32_t slot = first; slot <= last; slot++) {
        if (!rings_read(&h->series, q->ring, slot, now, mean, most)) continue;
        double n = mean[SERIES_POINT] + mean[SERIES_ROW_RANGE] + mean[SERIES_PARTITION_RANGE] + mean[SERIES_TABLE_SCAN];
        requests += reads ? n : mean[SERIES_REQUESTS] - n;
        units += mean[used];
    }
    double each = by_connection || requests <= 0 || units <= 0 ? 1 : units / requests;
    for (uint32_t slot = first; slot <= last; slot++) {
        if (!rings_read(&h->series, q->ring, slot, now, mean, most)) continue;
        double demand = most[used] + (f->shadow ? 0 : most[refused] * each);
        if (demand > peak) peak = demand;
    }
    return peak > 1 ? round(peak) : 1;
}

/* Half of a partition's limit is a hot key: a storage partition serves other keys, too. */
static struct page_finding find_in(const struct view_options *v, const struct schema_table *t,
                                   const struct history_table *h,
                              const struct view_table *q, uint32_t now) {
    const double hot = 0.5;
    struct page_finding f = {.kind = "none", .limit = LIMITS};
    float mean[SERIES_N], most[SERIES_N];
    struct {
        double n;
        uint32_t slots, first, last;
    } by[REFUSERS] = {0};
    double read = 0, scanned = 0;
    const struct ring_shape *shape = &ring_shapes[q->ring];
    uint32_t seconds = shape->seconds, last = now / seconds, first = last + 1 - shape->slots;
    for (uint32_t slot = first; h && slot <= last; slot++) {
        if (!rings_read(&h->series, q->ring, slot, now, mean, most)) continue;
        double refused = mean[SERIES_READ_THROTTLES] + mean[SERIES_WRITE_THROTTLES];
        double rest = refused - mean[SERIES_PARTITION_THROTTLES] - mean[SERIES_CONNECTION_THROTTLES];
        double guided = v->limits->guidance != GUIDANCE_ENFORCE  ? 0
                        : mean[SERIES_GUIDANCE] < rest ? mean[SERIES_GUIDANCE]
                                                       : rest;
        const double n[REFUSERS] = {[REFUSED_BY_TABLE] = rest - guided,
                                    [REFUSED_BY_PARTITION] = mean[SERIES_PARTITION_THROTTLES],
                                    [REFUSED_BY_CONNECTION] = mean[SERIES_CONNECTION_THROTTLES],
                                    [REFUSED_BY_GUIDANCE] = guided};
        for (int i = 0; i < REFUSERS; i++) {
            if (n[i] <= 0) continue;
            by[i].n += n[i] * seconds;
            if (!by[i].slots++) by[i].first = slot;
            by[i].last = slot;
        }
        f.refused += refused * seconds;
        f.requests += mean[SERIES_REQUESTS] * seconds;
        read += mean[SERIES_ROWS_READ];
        scanned += mean[SERIES_SCANNED];
    }
    if (f.refused > 0) {
        enum refuser worst = REFUSED_BY_TABLE;
        for (int i = 0; i < REFUSERS; i++)
            if (by[i].n > by[worst].n) worst = (enum refuser)i;
        choose_limit(v, t, worst, (int64_t)first * seconds * 1000000, &f);
        if (!f.shadow) f.requests += f.refused; /* else they were carried out, and are among the others */
        f.kind = refusers[worst].kind;
        f.refused_rate = by[worst].slots ? by[worst].n / by[worst].slots / seconds : 0;
        f.since = (int64_t)by[worst].first * seconds;
        f.until = (int64_t)by[worst].last * seconds;
        f.peak = peak_demand(h, q, now, &f);
        if (worst == REFUSED_BY_PARTITION) look_for_hot_key(v, h, q, now, true, &f);
        return f;
    }
    look_for_hot_key(v, h, q, now, false, &f);
    f.has_token = f.has_token && f.share >= hot;
    enum order_pattern pattern = ledger_pattern(v->ledger, t->object);
    if (f.has_token) f.kind = "hot_key";
    else if (pattern != ORDER_NONE) f.kind = pattern == ORDER_APPEND_ONLY ? "append_only" : "prepend_only";
    else if (read > 0 && scanned > read / 2) f.kind = "scan";
    return f;
}

/* How much more capacity, or how many connections, the peak needs. */
static void put_capacity_advice(const struct page_finding *f, struct buf *out) {
    const char *kind = limit_is_of_reads(f->limit) ? "read" : "write";
    char how[64], text[400];
    double from = ceil(f->peak * 1.2), to = ceil(f->peak * 1.3);
    if (f->limit == LIMIT_CONNECTION) {
        snprintf(text, sizeof(text),
                 "The peak was %.0f statements/s of this table, which takes %.0f connections of %lld/s each: let the "
                 "driver open at least as many, and spread requests over them.",
                 f->peak, ceil(f->peak / (double)(f->rate > 0 ? f->rate : 1)), (long long)f->rate);
    } else {
        bool provisioned = f->limit == LIMIT_PROVISIONED_READ || f->limit == LIMIT_PROVISIONED_WRITE;
        bool on_demand = f->limit == LIMIT_ON_DEMAND_READ || f->limit == LIMIT_ON_DEMAND_WRITE;
        if (provisioned) snprintf(how, sizeof(how), "Raise %s_capacity_units to", kind);
        else if (on_demand) snprintf(how, sizeof(how), "Warm the table to");
        else snprintf(how, sizeof(how), "Ask AWS to raise the quota to");
        snprintf(text, sizeof(text), "%s %.0f to %.0f%s: the peak was %.0f %s units/s, plus 20 to 30 %%.%s", how, from,
                 to, on_demand ? limit_is_of_reads(f->limit) ? " read units/s" : " write units/s" : "", f->peak, kind,
                 provisioned ? " Auto scaling or on-demand capacity are alternatives." : "");
    }
    json_text(out, "advice", text);
}

static void put_finding(const struct view_options *v, const struct schema_table *t, const struct history_table *h,
                        const struct view_table *q, uint32_t now, struct buf *out) {
    const struct page_finding f = find_in(v, t, h, q, now);
    size_t i = 0;
    while (strcmp(findings[i].kind, f.kind)) i++;
    buf_put_str(out, ",\"finding\":{");
    json_text(out, "kind", f.kind);
    json_text(out, "words", findings[i].words);
    if (findings[i].advice) json_text(out, "advice", findings[i].advice);
    else put_capacity_advice(&f, out);
    json_text(out, "source", findings[i].source);
    if (f.limit != LIMITS) {
        json_text(out, "limit", limit_info(f.limit)->name);
        json_text(out, "unit", limit_info(f.limit)->unit);
        buf_printf(out, ",\"limit_rate\":%lld,\"shadow\":%s", (long long)f.rate, f.shadow ? "true" : "false");
        put_figure(out, "refused", f.refused);
        put_figure(out, "refused_share", f.refused / f.requests);
        put_figure(out, "refused_rate", f.refused_rate);
        put_figure(out, "peak", f.peak);
        buf_printf(out, ",\"since\":%lld,\"until\":%lld", (long long)f.since, (long long)f.until);
    }
    if (f.has_token) {
        buf_printf(out, ",\"token\":\"%lld\"", (long long)f.token);
        put_figure(out, "share", f.share);
        put_figure(out, "key_refused", f.part_refused);
        json_member(out, "key");
        put_known_key(t, &h->parts, f.token, out);
    }
    buf_put_str(out, "}");
}

/* ---- heat maps ---- */

/* A cell: the row, then read units, write units, throttles and entities a second: the means, and
 * the maxima. */
static void put_cell(struct buf *out, uint32_t row, const float *mean, const float *most) {
    json_item(out);
    buf_printf(out, "[%u", row);
    for (int i = 0; i < 2 * RANGE_FIGURES; i++) {
        double value = i < RANGE_FIGURES ? mean[i] : most[i - RANGE_FIGURES];
        buf_put_str(out, ",");
        put_number(out, i % RANGE_FIGURES == RANGE_READ_HALVES ? value / 2 : value);
    }
    buf_put_str(out, "]");
}

static void put_range_column(const struct history_table *h, const struct view_table *q, uint32_t slot, uint32_t now,
                             struct buf *out) {
    float mean[SHARD_RANGES * RANGE_FIGURES], most[SHARD_RANGES * RANGE_FIGURES];
    if (!rings_read(&h->ranges, q->ring, slot, now, mean, most)) return;
    for (uint32_t r = 0; r < SHARD_RANGES; r++) {
        bool any = false;
        for (uint32_t i = r * RANGE_FIGURES; i < (r + 1) * RANGE_FIGURES; i++) any = any || most[i] > 0;
        if (any) put_cell(out, r, mean + r * RANGE_FIGURES, most + r * RANGE_FIGURES);
    }
}

/* The partitions of a map, in the order in which they appear. */
struct map_rows {
    uint32_t n;
    int64_t tokens[RING_SLOTS_MOST * PARTS_KEPT + PARTS_OPEN];
};

/* Writes the row "others" (-1): the load that no named partition accounts for. */
static void put_others(const struct history_table *h, const struct view_table *q, uint32_t slot, uint32_t now,
                       const float *named, struct buf *out) {
    float mean[SERIES_N], most[SERIES_N];
    if (!rings_read(&h->series, q->ring, slot, now, mean, most)) return;
    const double all[RANGE_FIGURES] = {[RANGE_READ_HALVES] = mean[SERIES_READ_UNITS],
                                       [RANGE_WRITE_UNITS] = mean[SERIES_WRITE_UNITS],
                                       [RANGE_THROTTLES] = mean[SERIES_READ_THROTTLES] + mean[SERIES_WRITE_THROTTLES],
                                       [RANGE_ENTITIES] = mean[SERIES_ENTITIES]};
    buf_put_str(out, ",\"others\":[");
    for (int i = 0; i < RANGE_FIGURES; i++) {
        double rest = all[i] - (i == RANGE_READ_HALVES ? named[i] / 2 : named[i]);
        json_item(out);
        put_number(out, rest > all[i] * 0.005 ? rest : 0);
    }
    buf_put_str(out, "]");
}

static void put_part_column(const struct history_table *h, const struct view_table *q, uint32_t slot, uint32_t now,
                            struct map_rows *rows, float named[RANGE_FIGURES], struct buf *out) {
    struct hot_partition parts[PARTS_OPEN];
    uint32_t n = parts_read(&h->parts, q->ring, slot, now, parts);
    if (n > PARTS_KEPT) n = PARTS_KEPT;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = 0;
        while (row < rows->n && rows->tokens[row] != parts[i].token) row++;
        if (row == rows->n) rows->tokens[rows->n++] = parts[i].token;
        put_cell(out, row, parts[i].mean, parts[i].most);
        for (int f = 0; f < RANGE_FIGURES; f++) named[f] += parts[i].mean[f];
    }
}

static void put_columns(const struct history_table *h, const struct view_table *q, uint32_t first, uint32_t last,
                        uint32_t now, struct map_rows *rows, struct buf *out) {
    for (uint32_t slot = first; slot <= last; slot++) {
        float named[RANGE_FIGURES] = {0};
        size_t begins = out->n;
        json_item(out);
        buf_printf(out, "{\"slot\":%u,\"cells\":[", slot);
        size_t empty = out->n;
        if (rows) put_part_column(h, q, slot, now, rows, named, out);
        else put_range_column(h, q, slot, now, out);
        bool any = out->n > empty;
        buf_put_str(out, "]");
        size_t before = out->n;
        if (rows) put_others(h, q, slot, now, named, out);
        if (any || out->n > before) buf_put_str(out, "}");
        else out->n = begins;
    }
}

bool view_map(const struct view_options *v, const struct view_table *q, bool by_partition, struct buf *out) {
    const struct schema *schema;
    const struct schema_table *t = find_table(v, q, &schema);
    uint32_t now = now_second(v), first, last;
    if (!t) return false;
    struct map_rows *rows = by_partition ? calloc(1, sizeof(*rows)) : NULL;
    const struct part_limits limits = part_limits_of(v);
    put_window(q, now, &first, &last, out);
    buf_printf(out,
               ",\"by\":\"%s\",\"limits\":{\"read_units\":%.0f,\"write_units\":%.0f,\"entities\":",
               by_partition ? "partition" : "range", limits.read_units, limits.write_units);
    if (limits.entities > 0) buf_printf(out, "%.0f", limits.entities);
    else buf_put_str(out, "null");
    buf_put_str(out, "},\"columns\":[");
    pthread_mutex_lock(&v->history->lock);
    const struct history_table *h = history_find(v->history, t->object);
    if (h && (rows || !by_partition)) put_columns(h, q, first, last, now, rows, out);
    buf_put_str(out, "],\"rows\":[");
    for (uint32_t i = 0; h && rows && i < rows->n; i++) {
        json_item(out);
        buf_printf(out, "{\"token\":\"%lld\",\"key\":", (long long)rows->tokens[i]);
        put_known_key(t, &h->parts, rows->tokens[i], out);
        buf_put_str(out, "}");
    }
    buf_printf(out, "],\"watched\":%s", h ? "true" : "false");
    put_finding(v, t, h, q, now, out);
    pthread_mutex_unlock(&v->history->lock);
    buf_put_str(out, "}\n");
    free(rows);
    schema_unref(schema);
    return true;
}

/* ---- partitions ---- */

static void put_usage(const struct usage *u, struct buf *out) {
    static const char *const names[USAGE_FIGURES] = {"requests", "read_units", "write_units", "entities", "throttles"};
    for (int i = 0; i < USAGE_FIGURES; i++) {
        double unit = i == USAGE_READ_HALVES ? 0.5 : 1;
        buf_printf(out, ",\"%s\":%.15g,\"%s_last_second\":%.15g,\"%s_last_minute\":%.15g", names[i],
                   unit * (double)usage_all(u, (enum usage_figure)i), names[i], unit * u->last_second.n[i], names[i],
                   unit * u->last_minute.n[i]);
    }
}

bool view_statements(const struct view_options *v, const struct view_table *q, struct buf *out) {
    const struct schema *schema;
    const struct schema_table *t = find_table(v, q, &schema);
    size_t n, shown = 0;
    if (!t) return false;
    struct ledger_statement *all = ledger_statements(v->ledger, &n);
    buf_put_str(out, "{\"statements\":[");
    for (size_t i = 0; all && i < n && shown < VIEW_STATEMENTS; i++) {
        const struct shard_statement *s = &all[i].s;
        if (s->object != t->object) continue;
        shown++;
        json_item(out);
        buf_put_str(out, "{");
        json_text(out, "statement", all[i].text);
        if (s->rows_read) json_text(out, "query_class", query_class_name(s->class));
        if (s->rows_read) json_text(out, "guidance_class", guidance_class_name(s->guidance));
        json_count(out, "rows_read", s->rows_read);
        json_count(out, "rows_returned", s->rows_returned);
        put_usage(&s->usage, out);
        page_put_rules(out, s->rules);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]}\n");
    free(all);
    schema_unref(schema);
    return true;
}

static void put_statements(const struct shard_origins *p, const struct ledger_statement *all, size_t n,
                           struct buf *out) {
    buf_put_str(out, ",\"statements\":[");
    for (int i = 0; i < SHARD_ORIGIN_STATEMENTS; i++)
        for (size_t k = 0; p->statements[i].n && k < n; k++) {
            if (all[k].kept.key != p->statements[i].id) continue;
            json_item(out);
            buf_put_str(out, "{");
            json_count(out, "requests", p->statements[i].n);
            json_text(out, "statement", all[k].text);
            buf_put_str(out, "}");
        }
    buf_put_str(out, "]");
}

static void put_partition(const struct schema_table *t, const struct ledger_partition *x,
                          const struct ledger_statement *statements, size_t n, struct buf *out) {
    static const char *const reasons[THROTTLE_REASONS] = {"partition", "connection", "table", "guidance"};
    const struct shard_partition *p = &x->p;
    const struct shard_origins *origins = &x->origins;
    json_item(out);
    buf_printf(out, "{\"token\":\"%lld\",\"range\":%u,\"key\":", (long long)p->token, shard_range(p->token));
    put_key(t, p->key, p->key_n, out);
    put_figure(out, "share", x->share);
    put_usage(&p->usage, out);
    put_statements(origins, statements, n, out);
    buf_put_str(out, ",\"roles\":[");
    for (int i = 0; i < SHARD_ORIGIN_ROLES; i++) {
        if (!origins->roles[i].n) continue;
        json_item(out);
        buf_put_str(out, "{");
        json_count(out, "requests", origins->roles[i].n);
        json_text(out, "role", origins->roles[i].name);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "],\"throttled_by\":{");
    for (int i = 0; i < THROTTLE_REASONS; i++) json_count(out, reasons[i], origins->throttles[i]);
    buf_put_str(out, "}}");
}

bool view_partitions(const struct view_options *v, const struct view_table *q, bool by_range, int64_t token,
                     uint32_t range, struct buf *out) {
    const struct schema *schema;
    const struct schema_table *t = find_table(v, q, &schema);
    size_t n, n_statements;
    if (!t) return false;
    struct ledger_partition *all = ledger_partitions(v->ledger, &n);
    struct ledger_statement *statements = ledger_statements(v->ledger, &n_statements);
    buf_put_str(out, "{\"partitions\":[");
    for (size_t i = 0; all && i < n; i++) {
        const struct shard_partition *p = &all[i].p;
        if (p->object != t->object || (by_range ? shard_range(p->token) != range : p->token != token)) continue;
        put_partition(t, &all[i], statements, n_statements, out);
    }
    buf_put_str(out, "]}\n");
    free(all);
    free(statements);
    schema_unref(schema);
    return true;
}
