/* From what a request did (metering/size/op_cost.h) to what it costs: pure functions, no clock, no
 * I/O.
 *
 * Life: dispatch finishes a request, calls charge_compute on its op_cost, writes charge.total into
 * the payload RequestCharge and, when asked for, charge_json into the payload capacity. The page
 * that each figure is from stands in rule.def.
 */
#pragma once

#include "base/buf.h"
#include "metering/size/op_cost.h"
#include "metering/size/size.h"

/* How the request read: half units at ONE and LOCAL_ONE. */
enum charge_consistency { CHARGE_STRONG, CHARGE_EVENTUAL };

enum rule_id {
#define RULE(id, name, title, text, source, confidence) RULE_##id,
#include "metering/rule.def"
#undef RULE
    RULES
};

struct charge {
    double read_units;         /* halves are possible */
    double write_units;        /* of non-static data */
    double static_write_units; /* of static data */
    double total;
    uint64_t row_bytes, static_bytes; /* encoded sizes under the model: written, or read */
    uint64_t rules;                   /* bit set of enum rule_id */
    bool one_read;                    /* of a table that is no system's: what is charged is that, and nothing else */
};

/* What the writes come to when they are sized one way, in units and bytes. */
struct charge_write_size {
    uint64_t row_bytes, static_bytes;
    double units;
};

/* Of what has one read and no write, and is of no system table: its half units, which the read is
 * told, if it is of one row and no static data; 0: of something else, and charge_compute's. */
uint32_t charge_row_any(const struct op_cost *cost, enum charge_consistency consistency);
static inline uint32_t charge_tell_halves(struct op_read *r, uint64_t steps, enum charge_consistency consistency) {
    return r->halves = (uint32_t)(steps << (consistency == CHARGE_STRONG));
}
/* Nearly all rows are summed up in column_bytes, under SIZE_DOCUMENTED_2022 (op_cost.h): others
 * name their key columns. */
static inline uint32_t charge_row_read(const struct op_cost *cost, enum charge_consistency consistency) {
    struct op_read *r = cost->reads;
    if (UNLIKELY((r->rows.rows ^ 1) | r->rows.n_pk | r->statics.rows | cost->empty_partitions))
        return charge_row_any(cost, consistency);
    return charge_tell_halves(r, size_read_steps(SIZE_2022_ROW + r->rows.column_bytes), consistency);
}
/* Each read and write of the cost is told its part, too. */
void charge_compute(const struct op_cost *cost, enum charge_consistency consistency, struct charge *out);
/* False: not known, for the rows as they stand were not looked at. */
bool charge_write_size(const struct op_cost *cost, enum write_size by, struct charge_write_size *out) MUST_CHECK;
/* The JSON text of the payload key capacity: read_units, write_units, static_write_units,
 * row_bytes, static_bytes, bytes_read, rows_read,
 * rows_returned, query_class (point|row_range|partition_range|table_scan), table, rules; of a write
 * also write_size (row|written), which the
 * figures above go by, what either way comes to: "row" (null when that was not looked at) and
 * "written", each with row_bytes, static_bytes and units, and regions, the number of those that the
 * units are summed over. */
void charge_json(const struct op_cost *cost, const struct charge *charge, struct buf *out);
/* Units are whole or half; a whole number has no fraction. */
void charge_put_units(struct buf *out, double units);
/* A row of rule.def, which says what the fields are. */
struct rule {
    const char *name, *title, *text, *source, *confidence;
};
const struct rule *rule_of(enum rule_id id);
const char *size_model_name(enum size_model model);
const char *write_size_name(enum write_size by);
const char *query_class_name(enum query_class class);
