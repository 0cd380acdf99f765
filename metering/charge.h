/* Computes the capacity units of a request from its recorded work (metering/size/op_cost.h): pure
 * functions, no clock, no I/O.
 *
 * Life: dispatch finishes a request, calls charge_compute on its op_cost, writes charge.total into
 * the payload RequestCharge and, when asked for, charge_json into the payload capacity. rule.def
 * names the documentation page behind each rule.
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
    double write_units;        /* of non-static data; summed over the Regions of the keyspace */
    double static_write_units; /* of static data; likewise */
    /* Both kinds in each Region, which capacity, limits, the ledger and metrics count. Only the bill
     * is the sum over the Regions. */
    double region_write_units;
    double total;
    uint64_t row_bytes, static_bytes; /* encoded sizes under the model: written, or read */
    uint64_t rules;                   /* bit set of enum rule_id */
    bool one_read;                    /* the whole charge is one read of a table that is not a system table */
};

/* Units and bytes of all writes, sized in one of the two ways. */
struct charge_write_size {
    uint64_t row_bytes, static_bytes;
    double units;
};

/* Computes the charge, and stores in each read and write of the cost its part. */
void charge_compute(const struct op_cost *cost, enum charge_consistency consistency, struct charge *out);
/* Adds the charge of a further page of the same request. */
void charge_add(struct charge *to, const struct charge *from);
/* Returns false when by is WRITE_SIZE_ROW and the whole rows were not read. */
bool charge_write_size(const struct op_cost *cost, enum write_size by, struct charge_write_size *out) MUST_CHECK;
/* The JSON text of the payload key capacity: read_units, write_units, static_write_units,
 * row_bytes, static_bytes, bytes_read, rows_read, rows_returned, entities, query_class
 * (point|row_range|partition_range|table_scan), table, rules. For a read of a table also:
 * guidance_class (guidance.h), and advice for a lower charge, lines or "". For a write also: write_size
 * (row|written), the way in which the values above are sized; "row" (null when the rows were not
 * read) and "written", the sizes under either way, each with row_bytes, static_bytes and units;
 * regions, the number of Regions that the units are summed over. */
void charge_json(const struct op_cost *cost, const struct charge *charge, struct buf *out);
/* Prints whole or half units; a whole number without a fraction. */
void charge_put_units(struct buf *out, double units);
/* Prints a member of a JSON object. */
void charge_put_member(struct buf *out, const char *name, double units);
/* Prints the member rules of a JSON object: the names of the charge's rules. */
void charge_put_rules(struct buf *out, const struct charge *charge);
/* A row of rule.def, which describes the fields. */
struct rule {
    const char *name, *title, *text, *source, *confidence;
};
const struct rule *rule_of(enum rule_id id);
const char *size_model_name(enum size_model model);
const char *write_size_name(enum write_size by);
const char *query_class_name(enum query_class class);
