/* Units of one request: its reads, its writes, and the rules that made the sum (rule.def names the page of each). */
#include "metering/charge.h"

#include "base/hot.h"
#include "base/json.h"

_Static_assert(RULES <= 64, "struct charge keeps rules in 64 bits");

static void rule_add(struct charge *c, enum rule_id id) { c->rules |= UINT64_C(1) << id; }

static uint64_t at_least_1(uint64_t n) { return n ? n : 1; }

static inline void model_add(struct charge *c, enum size_model model, const struct size_sum *p) {
    rule_add(c, model == SIZE_CURRENT ? RULE_SIZE_CURRENT : RULE_SIZE_2022);
    if (model == SIZE_CURRENT && p->ttl) rule_add(c, RULE_SIZE_TTL);
    if (p->timestamps) rule_add(c, RULE_SIZE_TIMESTAMPS);
}

/* ---- reads ---- */

/* Adds the rules of a read that is more than one returned row. Returns the bytes of its static data. */
SELDOM static uint64_t special_add(const struct op_read *r, struct charge *c) {
    if (r->rows.rows + r->statics.rows > 1) rule_add(c, RULE_READ_SUM);
    if (r->filtered) rule_add(c, RULE_READ_PROCESSED);
    if (r->past_limit) rule_add(c, RULE_READ_LIMIT);
    if (r->at_bound) rule_add(c, RULE_READ_BOUND);
    if (r->expired) rule_add(c, RULE_READ_EXPIRED);
    if (r->markers) rule_add(c, RULE_READ_MARKERS);
    if (!r->statics.rows) return 0;
    rule_add(c, RULE_SIZE_STATIC);
    if (r->rows.rows) rule_add(c, RULE_READ_STATIC);
    c->static_bytes += r->statics.bytes;
    return r->statics.bytes;
}

static void charge_reads(const struct op_cost *cost, enum charge_consistency consistency, struct charge *c) {
    uint64_t n = cost->empty_partitions, of_scan = n; /* the first read pays for them */
    uint64_t step = consistency == CHARGE_EVENTUAL ? 1 : 2; /* in halves */
    if (UNLIKELY(n)) rule_add(c, RULE_SCAN_EMPTY);
    for (struct op_read *r = cost->reads; r; r = r->next) {
        uint64_t bytes = 0;
        if (r->rows.rows) {
            bytes = r->rows.bytes;
            c->row_bytes += bytes;
            model_add(c, cost->size_model, &r->rows);
        }
        /* static data, or rows that were processed and not returned */
        uint64_t special = r->statics.rows | r->filtered | r->past_limit | r->at_bound | r->expired | r->markers;
        if (UNLIKELY(r->rows.rows > 1 || special)) bytes += special_add(r, c);
        uint64_t k = size_read_steps(bytes);
        /* A scan that met no row has its minimum already: the empty storage partitions. */
        if (!k && !cost->empty_partitions) {
            k = 1;
            rule_add(c, RULE_READ_MINIMUM);
        }
        n += k;
        r->item.read_halves = (int64_t)((k + of_scan) * step);
        r->item.entities = (int64_t)op_read_entities(r);
        of_scan = 0;
    }
    if (!n) return;
    rule_add(c, RULE_READ_4K);
    if (cost->reads && cost->reads->next) rule_add(c, RULE_READ_IN);
    if (consistency == CHARGE_EVENTUAL) rule_add(c, RULE_READ_HALF);
    c->read_units = 0.5 * (double)(int64_t)(n * step);
}

/* ---- writes ---- */

/* The condition was false. The charge is for the row that existed. */
static void charge_failed(const struct op_cost *cost, const struct op_write *w, struct charge *c) {
    uint64_t rows = w->row_existed ? w->row.bytes : 0, statics = w->row_existed ? w->statics.bytes : 0;
    rule_add(c, w->row_existed ? RULE_LWT_FAILED_ROW : RULE_LWT_FAILED_ABSENT);
    rule_add(c, RULE_WRITE_1K);
    if (rows) model_add(c, cost->size_model, &w->row);
    if (statics) rule_add(c, RULE_SIZE_STATIC);
    c->row_bytes += rows;
    c->static_bytes += statics;
    if (rows || !statics) c->write_units += (double)at_least_1(size_write_steps(rows));
    if (statics) c->static_write_units += (double)size_write_steps(statics);
    if (!w->reads_when_failed) return;
    /* Conditions are read at LOCAL_QUORUM, whatever level the statement has: whole units. */
    rule_add(c, RULE_LWT_FAILED_READ);
    c->read_units += (double)at_least_1(size_read_steps(rows + statics));
}

/* Whether the write is sized by the whole row. Without a read of the row the written columns count. */
static bool by_row(const struct op_write *w, enum write_size by) {
    return by == WRITE_SIZE_ROW && w->image.known == IMAGE_FOUND;
}

/* Whether the whole row is exactly the written columns, so that no read was needed. A written null
 * leaves no column. */
static bool is_as_written(const struct op_write *w, enum write_size by) {
    return by == WRITE_SIZE_ROW && w->image.known == IMAGE_AS_WRITTEN;
}

static void charge_row(const struct op_cost *cost, const struct op_write *w, enum write_size by, uint64_t factor,
                       struct charge *c) {
    struct size_sum row = by_row(w, by) ? w->image.row : w->row;
    if (is_as_written(w, by)) row = size_row_without_nulls(&row);
    uint64_t units = by_row(w, by) ? w->image.row_steps : size_write_steps(row.bytes);
    model_add(c, cost->size_model, &row);
    c->row_bytes += row.bytes;
    c->write_units += (double)(factor * at_least_1(units));
}

/* Computes the charge of a write in one Region. Returns the number of Regions that repeat the write:
 * one for a condition that was false, because nothing was written. */
static uint32_t charge_one(const struct op_cost *cost, const struct op_write *w, enum write_size by, struct charge *c) {
    uint64_t factor = 1;
    *c = (struct charge){0};
    if (w->conditional && !w->applied) {
        charge_failed(cost, w, c);
        return 1;
    }
    rule_add(c, RULE_WRITE_1K);
    if (by_row(w, by))
        rule_add(c, w->kind != OP_DELETE ? RULE_WRITE_ROW : w->many ? RULE_DELETE_EACH : RULE_DELETE_ROW);
    else if (by != WRITE_SIZE_ROW && w->kind != OP_INSERT)
        rule_add(c, w->kind == OP_DELETE ? RULE_DELETE_KEY : RULE_UPDATE_WRITTEN);
    if (w->regions > 1) rule_add(c, RULE_WRITE_REGIONS);
    if (w->conditional) rule_add(c, RULE_LWT_APPLIED);
    if (w->has_row && w->has_static) {
        rule_add(c, RULE_WRITE_BOTH);
        factor *= 2;
    }
    if (cost->is_logged_batch) {
        rule_add(c, RULE_WRITE_LOGGED);
        factor *= 2;
    }
    /* Deleting a partition deletes its static row by a separate operation, like each of its rows. */
    bool with_statics = w->many && by_row(w, by) && w->image.statics.rows;
    if (w->has_row && !(with_statics && !w->image.row.rows)) charge_row(cost, w, by, factor, c);
    if (w->has_static || with_statics) {
        struct size_sum statics = by_row(w, by) ? w->image.statics : w->statics;
        if (is_as_written(w, by)) statics = size_statics_without_nulls(&statics);
        rule_add(c, RULE_WRITE_STATIC);
        rule_add(c, RULE_SIZE_STATIC);
        c->static_bytes += statics.bytes;
        c->static_write_units += (double)(factor * at_least_1(size_write_steps(statics.bytes)));
    }
    return w->regions;
}

void charge_add(struct charge *to, const struct charge *from) {
    to->read_units += from->read_units;
    to->write_units += from->write_units;
    to->static_write_units += from->static_write_units;
    to->region_write_units += from->region_write_units;
    to->total += from->total;
    to->row_bytes += from->row_bytes;
    to->static_bytes += from->static_bytes;
    to->rules |= from->rules;
}

/* Adds the charge of a write in one Region, and bills it in each. */
static void charge_add_write(struct charge *to, struct charge *one, uint32_t regions) {
    one->region_write_units = one->write_units + one->static_write_units;
    one->write_units *= regions;
    one->static_write_units *= regions;
    charge_add(to, one);
}

bool charge_write_size(const struct op_cost *cost, enum write_size by, struct charge_write_size *out) {
    struct charge c = {0}, one;
    for (const struct op_write *w = cost->writes; w; w = w->next)
        if (by == WRITE_SIZE_ROW && w->image.known == IMAGE_UNKNOWN && (w->applied || !w->conditional)) return false;
    for (const struct op_write *w = cost->writes; w; w = w->next) {
        uint32_t regions = charge_one(cost, w, by, &one);
        charge_add_write(&c, &one, regions);
    }
    *out = (struct charge_write_size){.row_bytes = c.row_bytes,
                                      .static_bytes = c.static_bytes,
                                      .units = c.write_units + c.static_write_units};
    return true;
}

void charge_compute(const struct op_cost *cost, enum charge_consistency consistency, struct charge *out) {
    *out = (struct charge){0};
    if (cost->is_system) {
        rule_add(out, RULE_SYSTEM_FREE);
        return;
    }
    charge_reads(cost, consistency, out);
    for (struct op_write *w = cost->writes; w; w = w->next) {
        struct charge one;
        uint32_t regions = charge_one(cost, w, cost->write_size, &one);
        w->item.read_halves = (int64_t)(one.read_units * 2);
        w->item.write_units = (int64_t)(one.write_units + one.static_write_units);
        w->item.static_units = (int64_t)one.static_write_units;
        w->item.entities = (int64_t)op_write_entities(w);
        w->item.condition_failed = w->conditional && !w->applied;
        charge_add_write(out, &one, regions);
    }
    if (cost->writes && cost->writes->next) rule_add(out, RULE_WRITE_BATCH);
    out->one_read = cost->reads && !cost->reads->next && !cost->writes;
    out->total = out->read_units + out->write_units + out->static_write_units;
}

static const struct rule rules[] = {
#define RULE(id, name_, title_, text_, source_, confidence_) \
    [RULE_##id] = {.name = name_, .title = title_, .text = text_, .source = source_, .confidence = confidence_},
#include "metering/rule.def"
#undef RULE
};

const struct rule *rule_of(enum rule_id id) { return &rules[id]; }

const char *query_class_name(enum query_class class) {
    static const char *const names[] = {[QUERY_POINT] = "point",
                                        [QUERY_ROW_RANGE] = "row_range",
                                        [QUERY_PARTITION_RANGE] = "partition_range",
                                        [QUERY_TABLE_SCAN] = "table_scan"};
    return names[class];
}

const char *size_model_name(enum size_model model) { return model == SIZE_CURRENT ? "current" : "documented-2022"; }
const char *write_size_name(enum write_size by) { return by == WRITE_SIZE_ROW ? "row" : "written"; }

void charge_put_units(struct buf *out, double units) {
    unsigned long long halves = (unsigned long long)(units * 2);
    buf_printf(out, "%llu%s", halves / 2, halves % 2 ? ".5" : "");
}

void charge_put_member(struct buf *out, const char *name, double units) {
    json_member(out, name);
    charge_put_units(out, units);
}

void charge_put_rules(struct buf *out, const struct charge *charge) {
    json_open(out, "rules", '[');
    for (unsigned id = 0; id < RULES; id++)
        if (charge->rules >> id & 1) json_text(out, NULL, rules[id].name);
    buf_put_str(out, "]");
}
