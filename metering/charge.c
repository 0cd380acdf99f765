/* Units of one request: its reads, its writes, and the rules that made the sum (reference/keyspaces.md, sections 1.2 to 1.4). */
#include "metering/charge.h"

enum { READ_STEP = 4096, WRITE_STEP = 1024 };

_Static_assert(RULES <= 64, "struct charge keeps rules in 64 bits");

static void rule_add(struct charge *c, enum rule_id id) { c->rules |= UINT64_C(1) << id; }

static uint64_t steps(uint64_t bytes, uint64_t step) { return bytes ? (bytes - 1) / step + 1 : 0; }

static uint64_t at_least_1(uint64_t n) { return n ? n : 1; }

static void model_add(struct charge *c, enum size_model model, const struct size_parts *p) {
    rule_add(c, model == SIZE_CURRENT ? RULE_SIZE_CURRENT : RULE_SIZE_2022);
    if (model == SIZE_CURRENT && p->ttl_rows + p->ttl_cells) rule_add(c, RULE_SIZE_TTL);
}

/* ---- reads ---- */

static uint64_t read_steps(const struct op_cost *cost, const struct op_read *r, struct charge *c) {
    uint64_t rows = 0, statics = 0;
    if (r->rows.rows) {
        rows = size_row_bytes(cost->size_model, cost->n_columns, &r->rows);
        model_add(c, cost->size_model, &r->rows);
    }
    if (r->statics.rows) {
        statics = size_static_bytes(&r->statics);
        rule_add(c, RULE_SIZE_STATIC);
        if (rows) rule_add(c, RULE_READ_STATIC);
    }
    if (r->rows.rows + r->statics.rows > 1) rule_add(c, RULE_READ_SUM);
    if (r->filtered) rule_add(c, RULE_READ_PROCESSED);
    if (r->past_limit) rule_add(c, RULE_READ_LIMIT);
    if (r->at_bound) rule_add(c, RULE_READ_BOUND);
    if (r->expired) rule_add(c, RULE_READ_EXPIRED);
    c->row_bytes += rows;
    c->static_bytes += statics;
    return steps(rows + statics, READ_STEP);
}

static void charge_reads(const struct op_cost *cost, enum charge_consistency consistency, struct charge *c) {
    uint64_t n = cost->empty_partitions;
    if (n) rule_add(c, RULE_SCAN_EMPTY);
    for (const struct op_read *r = cost->reads; r; r = r->next) {
        uint64_t k = read_steps(cost, r, c);
        /* The empty storage partitions of a scan that met no row are its minimum already. */
        if (!k && !cost->empty_partitions) {
            k = 1;
            rule_add(c, RULE_READ_MINIMUM);
        }
        n += k;
    }
    if (!n) return;
    rule_add(c, RULE_READ_4K);
    if (cost->reads && cost->reads->next) rule_add(c, RULE_READ_IN);
    if (consistency == CHARGE_EVENTUAL) rule_add(c, RULE_READ_HALF);
    c->read_units += (consistency == CHARGE_EVENTUAL ? 0.5 : 1.0) * (double)n;
}

/* ---- writes ---- */

/* The condition was false: what is paid for is the row that was there. */
static void charge_failed(const struct op_cost *cost, const struct op_write *w, enum charge_consistency consistency, struct charge *c) {
    uint64_t rows = 0, statics = 0;
    if (w->row_existed && w->row.rows) rows = size_row_bytes(cost->size_model, w->n_columns, &w->row);
    if (w->row_existed && w->statics.rows) statics = size_static_bytes(&w->statics);
    rule_add(c, w->row_existed ? RULE_LWT_FAILED_ROW : RULE_LWT_FAILED_ABSENT);
    rule_add(c, RULE_WRITE_1K);
    if (rows) model_add(c, cost->size_model, &w->row);
    if (statics) rule_add(c, RULE_SIZE_STATIC);
    c->row_bytes += rows;
    c->static_bytes += statics;
    if (rows || !statics) c->write_units += (double)at_least_1(steps(rows, WRITE_STEP));
    if (statics) c->static_write_units += (double)steps(statics, WRITE_STEP);
    if (!w->reads_when_failed) return;
    rule_add(c, RULE_LWT_FAILED_READ);
    if (consistency == CHARGE_EVENTUAL) rule_add(c, RULE_READ_HALF);
    c->read_units += (consistency == CHARGE_EVENTUAL ? 0.5 : 1.0) * (double)at_least_1(steps(rows + statics, READ_STEP));
}

static void charge_write(const struct op_cost *cost, const struct op_write *w, struct charge *c) {
    uint64_t factor = 1;
    rule_add(c, RULE_WRITE_1K);
    if (w->conditional) rule_add(c, RULE_LWT_APPLIED);
    if (w->kind == OP_UPDATE) rule_add(c, RULE_UPDATE_WRITTEN);
    if (w->kind == OP_DELETE) rule_add(c, RULE_DELETE_KEY);
    if (w->has_row && w->has_static) {
        rule_add(c, RULE_WRITE_BOTH);
        factor *= 2;
    }
    if (cost->is_logged_batch) {
        rule_add(c, RULE_WRITE_LOGGED);
        factor *= 2;
    }
    if (w->has_row) {
        uint64_t bytes = size_row_bytes(cost->size_model, w->n_columns, &w->row);
        model_add(c, cost->size_model, &w->row);
        c->row_bytes += bytes;
        c->write_units += (double)(factor * at_least_1(steps(bytes, WRITE_STEP)));
    }
    if (w->has_static) {
        uint64_t bytes = size_static_bytes(&w->statics);
        rule_add(c, RULE_WRITE_STATIC);
        rule_add(c, RULE_SIZE_STATIC);
        c->static_bytes += bytes;
        c->static_write_units += (double)(factor * at_least_1(steps(bytes, WRITE_STEP)));
    }
}

void charge_compute(const struct op_cost *cost, enum charge_consistency consistency, struct charge *out) {
    *out = (struct charge){0};
    if (cost->is_system) {
        rule_add(out, RULE_SYSTEM_FREE);
        return;
    }
    charge_reads(cost, consistency, out);
    for (const struct op_write *w = cost->writes; w; w = w->next) {
        if (w->conditional && !w->applied) charge_failed(cost, w, consistency, out);
        else charge_write(cost, w, out);
    }
    if (cost->writes && cost->writes->next) rule_add(out, RULE_WRITE_BATCH);
    out->total = out->read_units + out->write_units + out->static_write_units;
}
