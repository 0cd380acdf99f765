#include "tools/tally/capacity/day.h"

#include <math.h>

enum { US = 1000000, OBJECT = 1, FIRST_DAY = 20000, UNLIMITED = 10000000 };

/* ---- what is used ---- */

static bool is_of(const struct measured *s, const struct schema_table *t) {
    return s->table == t && !s->unknown && !s->refused;
}

/* The cost of n requests. For more than EACH requests the sum is drawn from a normal
 * distribution. */
static double cost_of(uint64_t n, const double *samples, uint32_t n_samples, double mean, double deviation,
                      struct chance *c) {
    enum { EACH = 32 };
    if (n > EACH) {
        double sum = (double)n * mean + sqrt((double)n) * deviation * chance_normal(c);
        return sum > 0 ? floor(2 * sum + 0.5) / 2 : 0;
    }
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += samples[chance_below(c, n_samples)];
    return sum;
}

static double deviation_of(const double *samples, uint32_t n, double mean) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (samples[i] - mean) * (samples[i] - mean);
    return sqrt(sum / n);
}

/* Spreads the cost of a request of many pages evenly over the seconds that it lasts. */
static void add_cost(double *seconds, uint32_t at, double cost, uint32_t lasts) {
    for (uint32_t i = 0; i < lasts; i++) seconds[(at + i) % DAY_S] += cost / lasts;
}

static void add_statement(struct day *d, const struct measured *s, enum size_model model) {
    enum { SALT = 77 };
    struct chance c = {.state = chance_of(s->statement->line + SALT)};
    uint32_t lasts = s->pages < DAY_PAGES_A_SECOND           ? 1
                     : s->pages / DAY_PAGES_A_SECOND < DAY_S ? (uint32_t)ceil(s->pages / DAY_PAGES_A_SECOND)
                                                             : DAY_S;
    double reads = s->of[model].read_units.mean, writes = s->of[model].write_units.mean;
    const double *read_samples = s->reads[model], *write_samples = s->writes[model];
    if (!read_samples || !write_samples) return; /* an observed statement, whose units are of one model */
    double read_deviation = deviation_of(read_samples, s->samples, reads),
           write_deviation = deviation_of(write_samples, s->samples, writes);
    for (uint32_t i = 0; i < DAY_S; i++) {
        uint64_t n = chance_poisson(&c, curve_at(&s->statement->rate, i));
        if (!n) continue;
        if (reads > 0)
            add_cost(d->reads.seconds, i, cost_of(n, read_samples, s->samples, reads, read_deviation, &c), lasts);
        if (writes > 0)
            add_cost(d->writes.seconds, i, cost_of(n, write_samples, s->samples, writes, write_deviation, &c), lasts);
    }
}

static void find_peaks(struct day_use *u) {
    double minute = 0;
    for (uint32_t i = 0; i < DAY_S; i++) {
        u->total += u->seconds[i];
        minute += u->seconds[i];
        if (u->seconds[i] > u->peak_second) u->peak_second = u->seconds[i], u->peak_second_at = i;
        if (i % 60 != 59) continue;
        if (minute / 60 > u->peak_minute) u->peak_minute = minute / 60, u->peak_minute_at = i - 59;
        minute = 0;
    }
}

/* ---- a day of the limiter ---- */

struct trial {
    const struct schema_table *t;
    const struct day_use *use;
    bool reads, scales;
    bool ends_early; /* stop at the first refusal */
    struct capacity capacity;
    int32_t *minutes; /* of the second day; NULL if not asked */
    uint32_t days;
};

static void set_time(struct limiter *l, int64_t us) {
    limiter_set_time(l, (struct limit_time){.now_us = us, .wall_us = us});
}

/* A limiter with one table; NULL if memory is exhausted. */
static struct limiter *open_limiter(const struct limiter_options *o, const struct schema_table *t,
                                    const struct capacity *c) {
    struct limiter *l = limiter_new(o);
    if (!l || !limiter_define(l, OBJECT, t->keyspace->name, t->name, c, c)) return l;
    limiter_free(l);
    return NULL;
}

/* Whether the limiter refuses the part at that time. */
static bool refuses(struct limiter *l, const struct schema_table *t, int64_t now_us, struct charge_item p) {
    struct limit_connection c = {0};
    struct limit_verdict v;
    p.object = OBJECT;
    p.keyspace = t->keyspace->name;
    p.table = t->name;
    const struct limit_request ask = {.connection = &c, .n_items = 1, .items = &p};
    set_time(l, now_us);
    limiter_admit(l, &ask, &v);
    return limit_refuses(&v);
}

/* Returns the units refused on the last day; below 0: no memory. An on-demand table's bucket holds
 * the units of one second, so each second is tried in quarters; a provisioned table's holds
 * more. */
static double run_trial(const struct trial *t) {
    struct limiter_options o = {.mode = LIMITS_ENFORCE, .scales = t->scales, .seed = 1};
    for (int i = 0; i < LIMITS; i++) o.values.of[i] = limit_info((enum limit_id)i)->value;
    struct limiter *l = open_limiter(&o, t->t, &t->capacity);
    if (!l) return -1;
    int64_t quota = limit_info(t->reads ? LIMIT_TABLE_READ : LIMIT_TABLE_WRITE)->value;
    int parts = t->capacity.provisioned ? 1 : 4;
    double refused = 0;
    for (uint32_t day = 0; day < t->days; day++)
        for (uint32_t i = 0; i < DAY_S; i++) {
            int64_t now = ((int64_t)(FIRST_DAY + day) * DAY_S + i) * US;
            bool counts = day + 1 == t->days, minute_ends = i % 60 == 59;
            set_time(l, now);
            const struct limit_table *table = limiter_table(l, 1);
            int64_t rate = capacity_rate(t->reads ? &table->read : &table->write, quota);
            /* Asks for the units in portions that are small compared with the capacity. After the
             * first refusal the rest counts as refused. Prepaid units are refused alike, in portions
             * or as a whole. */
            double left = t->use->seconds[i], portion = rate > 8 ? floor((double)rate / 8) : 1;
            for (int k = 0; left > 0 && k < parts; k++) {
                double units = k + 1 == parts ? left : floor(left / (parts - k));
                if (t->ends_early && (!t->reads || rate > 8)) portion = t->reads ? floor((double)rate / 2) : units;
                left -= units;
                for (double n; units > 0; units -= n) {
                    n = units < portion ? units : portion;
                    const struct charge_item p = {.read_halves = t->reads ? (int64_t)(2 * n + 0.5) : 0,
                                                 .write_units = t->reads ? 0 : (int64_t)(n + 0.5)};
                    if (refuses(l, t->t, now + k * (US / parts), p)) break;
                }
                if (counts) refused += units;
            }
            if (t->minutes && counts && minute_ends) t->minutes[i / 60] = (int32_t)rate;
            if (t->ends_early && refused > 0) i = DAY_S; /* one is enough to know */
        }
    limiter_free(l);
    return refused;
}

/* The table's own auto scaling settings take precedence over asked_for. */
static struct scaling scaling_of(const struct schema_table *t, bool reads, const struct day_scaling *asked_for,
                                 struct day_scaling *out) {
    enum { COOLDOWN_S = 60 };
    const struct scaling_settings *s = &t->settings.scaling[reads ? READ_CAPACITY : WRITE_CAPACITY];
    bool own = !s->autoscaling_disabled;
    *out = *asked_for;
    if (own)
        *out = (struct day_scaling){
            .minimum = s->minimum_units, .maximum = s->maximum_units, .target_percent = s->target_value};
    return (struct scaling){.enabled = true, .minimum = out->minimum, .maximum = out->maximum,
                            .target_percent = out->target_percent,
                            .in_cooldown_s = own ? s->scale_in_cooldown : COOLDOWN_S,
                            .out_cooldown_s = own ? s->scale_out_cooldown : COOLDOWN_S,
                            .no_scale_in = own && s->disable_scale_in};
}

static int try_modes(const struct schema_table *t, bool reads, const struct day_scaling *scaling, struct day_use *u,
                     struct err *e) {
    struct trial trial = {.t = t, .use = u, .reads = reads, .days = 2};
    u->scaling = *scaling;
    if (u->total <= 0) return 0;
    u->on_demand_refused = run_trial(&trial);
    trial.days = 1;
    u->new_table_refused = run_trial(&trial);
    if (u->on_demand_refused < 0 || u->new_table_refused < 0) return err_nomem(e);
    /* The fewest provisioned units that refuse nothing: a binary search below the quota. */
    int64_t low = 1, high = limit_info(reads ? LIMIT_TABLE_READ : LIMIT_TABLE_WRITE)->value;
    trial.capacity = (struct capacity){.provisioned = true, .units = high};
    trial.days = 2;
    trial.ends_early = true;
    double refused = run_trial(&trial);
    bool enough = refused <= 0;
    if (u->peak_second < (double)high) high = (int64_t)u->peak_second + 1;
    while (enough && refused >= 0 && low < high) {
        trial.capacity.units = low + (high - low) / 2;
        refused = run_trial(&trial);
        if (refused > 0) low = trial.capacity.units + 1;
        else high = trial.capacity.units;
    }
    if (refused < 0) return err_nomem(e);
    u->needed = enough ? low : 0;
    int64_t usual = (int64_t)ceil(100 * u->peak_minute / DAY_USUAL_PERCENT);
    u->usual = usual <= limit_info(reads ? LIMIT_TABLE_READ : LIMIT_TABLE_WRITE)->value ? usual : 0;
    trial.ends_early = false;
    trial.scales = true;
    trial.days = 2;
    trial.minutes = u->scaled;
    trial.capacity = (struct capacity){.provisioned = true, .scaling = scaling_of(t, reads, scaling, &u->scaling)};
    trial.capacity.units = u->scaling.minimum;
    u->scaled_refused = run_trial(&trial);
    for (int i = 0; i < DAY_MINUTES; i++) u->scaled_unit_hours += u->scaled[i] / 60.0;
    return u->scaled_refused < 0 ? err_nomem(e) : 0;
}

/* ---- partitions ---- */

static void load_of(const struct measure *m, const struct day *d, uint64_t rank, struct workload_partition *out) {
    *out = (struct workload_partition){.rank = rank};
    for (uint32_t i = 0; i < m->n_statements; i++) {
        const struct measured *s = &m->statements[i];
        if (!is_of(s, d->table) || !s->by_partition || (s->statement->new_rows && !d->table->n_clustering)) continue;
        double rate = curve_at(&s->statement->rate, d->busiest_at) * keys_share(s->keys, rank);
        out->read_units += rate * s->of[m->o.model].read_units.mean;
        out->write_units += rate * s->of[m->o.model].write_units.mean;
        out->entities += rate * s->entities;
    }
}

/* Asks the limiter for SECONDS seconds of the load, with each partition limit on its own. */
int day_judge_partition(const struct schema_table *t, bool guidance, struct workload_partition *p, struct err *e) {
    enum { SECONDS = 10, TENTHS = 10 };
    const struct { enum limit_id limit; bool *over; double rate;
    } asks[] = {{LIMIT_PARTITION_READ, &p->over_reads, p->read_units},
                {LIMIT_PARTITION_WRITE, &p->over_writes, p->write_units},
                {LIMIT_ENTITIES_PARTITION, &p->over_entities, p->entities}};
    struct limiter_options o = {.mode = LIMITS_ENFORCE, .guidance = GUIDANCE_ENFORCE, .seed = 1};
    const struct capacity any = {.provisioned = true, .units = UNLIMITED};
    for (int i = 0; i < LIMITS; i++) o.values.of[i] = UNLIMITED;
    o.values.of[LIMIT_BURST] = o.values.of[LIMIT_ON_DEMAND_WINDOW] = 1;
    for (size_t k = 0; k < ARRAY_LEN(asks); k++) {
        if (asks[k].limit == LIMIT_ENTITIES_PARTITION && !guidance) continue;
        struct limiter_options with = o;
        with.values.of[asks[k].limit] = limit_info(asks[k].limit)->value;
        struct limiter *l = open_limiter(&with, t, &any);
        if (!l) return err_nomem(e);
        double due = 0;
        for (int i = 0; i < SECONDS * TENTHS; i++) {
            due += asks[k].rate / TENTHS;
            int64_t n = (int64_t)due, now_us = (int64_t)FIRST_DAY * DAY_S * US + (int64_t)i * (US / TENTHS);
            due -= (double)n;
            struct charge_item part = {.one_partition = true, .token = (int64_t)p->rank};
            if (asks[k].limit == LIMIT_PARTITION_READ) part.read_halves = 2 * n;
            if (asks[k].limit == LIMIT_PARTITION_WRITE) part.write_units = n;
            if (asks[k].limit == LIMIT_ENTITIES_PARTITION) part.entities = n;
            if (n && refuses(l, t, now_us, part)) *asks[k].over = true;
        }
        limiter_free(l);
    }
    return 0;
}

static int judge_partitions(const struct measure *m, struct day *d, struct err *e) {
    const struct workload_table *t = measure_input(m, d->table);
    if (t && t->n_parts) {
        d->observed = true;
        d->n_partitions = t->n_keys;
        d->n_over = t->n_over;
        d->n_shown = t->n_parts < HOT_SHOWN ? t->n_parts : HOT_SHOWN;
        memcpy(d->shown, t->parts, d->n_shown * sizeof(*t->parts));
        return 0;
    }
    for (uint32_t i = 0; i < m->n_statements; i++) {
        const struct measured *s = &m->statements[i];
        if (!is_of(s, d->table) || !s->by_partition) continue;
        if (!d->keyed) d->keyed = s;
        d->n_partitions = s->keys->n;
    }
    if (!d->n_partitions) return 0;
    double most = -1;
    uint32_t best = 0;
    for (uint32_t second = 0; second < DAY_S; second += 60) {
        struct workload_partition p;
        d->busiest_at = second;
        load_of(m, d, 0, &p);
        double load = p.read_units / (double)limit_info(LIMIT_PARTITION_READ)->value +
                      p.write_units / (double)limit_info(LIMIT_PARTITION_WRITE)->value +
                      p.entities / (double)limit_info(LIMIT_ENTITIES_PARTITION)->value;
        if (load > most) most = load, best = second;
    }
    d->busiest_at = best;
    for (uint64_t rank = 0; rank < d->n_partitions && d->n_shown < HOT_SHOWN; rank++) {
        struct workload_partition *p = &d->shown[d->n_shown++];
        load_of(m, d, rank, p);
        if (day_judge_partition(d->table, m->o.guidance, p, e)) return -1;
    }
    /* Load does not rise with the rank, so a binary search finds the first rank that is over no
     * limit. */
    uint64_t low = 0, high = d->n_partitions;
    while (low < high) {
        struct workload_partition p;
        load_of(m, d, low + (high - low) / 2, &p);
        if (day_judge_partition(d->table, m->o.guidance, &p, e)) return -1;
        if (p.over_reads || p.over_writes || p.over_entities) low = p.rank + 1;
        else high = p.rank;
    }
    d->n_over = low;
    return 0;
}

int day_of_table(const struct measure *m, const struct schema_table *t, const struct day_scaling *scaling,
                 struct day *out, struct err *e) {
    *out = (struct day){.table = t};
    out->reads.seconds = ARENA_ARRAY(&m->w->arena, DAY_S, double);
    out->writes.seconds = ARENA_ARRAY(&m->w->arena, DAY_S, double);
    if (!out->reads.seconds || !out->writes.seconds) return err_nomem(e);
    for (uint32_t i = 0; i < m->n_statements; i++)
        if (is_of(&m->statements[i], t)) {
            /* An observed write has no known TTL, so the TTL deletes of its table are unknown if
             * the table can expire data. */
            const struct measured *s = &m->statements[i];
            bool unknown = s->statement->observed && (s->of[0].write_units.mean > 0 || s->of[1].write_units.mean > 0) &&
                           (out->table->settings.default_time_to_live || schema_has_ttl(out->table));
            if (unknown || out->ttl_deletes < 0) out->ttl_deletes = -1;
            else out->ttl_deletes += curve_mean(&s->statement->rate) * DAY_S * s->ttl_deletes;
            /* A capture records the use of each second of a table, so its statements add nothing to
             * it. */
            if (!s->statement->observed || !s->input || !s->input->second_reads) add_statement(out, s, m->o.model);
        }
    /* Repeats the captured seconds over the whole day, starting at the capture's time of day. */
    const struct workload_table *w = measure_input(m, t);
    for (uint32_t i = 0; w && w->second_reads && i < DAY_S; i++) {
        out->reads.seconds[(w->begins + i) % DAY_S] += w->second_reads[i % w->seconds];
        out->writes.seconds[(w->begins + i) % DAY_S] += w->second_writes[i % w->seconds];
    }
    find_peaks(&out->reads), find_peaks(&out->writes);
    if (try_modes(t, true, scaling, &out->reads, e) || try_modes(t, false, scaling, &out->writes, e)) return -1;
    return judge_partitions(m, out, e);
}
