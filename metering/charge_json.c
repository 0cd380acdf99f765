/* The charge as the payload key capacity shows it. */
#include "metering/charge.h"

#include <stdio.h>

#include "base/json.h"
#include "metering/explanation.h"
#include "metering/guidance.h"

static void put_write_size(struct buf *out, const struct op_cost *cost, enum write_size by) {
    struct charge_write_size s;
    if (!charge_write_size(cost, by, &s)) {
        json_text(out, write_size_name(by), NULL);
        return;
    }
    json_open(out, write_size_name(by), '{');
    json_count(out, "row_bytes", s.row_bytes);
    json_count(out, "static_bytes", s.static_bytes);
    json_count(out, "units", s.units);
    buf_put_str(out, "}");
}

void charge_json(const struct op_cost *cost, const struct charge *charge, struct buf *out) {
    char table[256];
    buf_put_str(out, "{");
    charge_put_member(out, "read_units", charge->read_units);
    charge_put_member(out, "write_units", charge->write_units);
    charge_put_member(out, "static_write_units", charge->static_write_units);
    json_count(out, "row_bytes", charge->row_bytes);
    json_count(out, "static_bytes", charge->static_bytes);
    json_count(out, "bytes_read", cost->bytes_read);
    json_count(out, "rows_read", cost->rows_read);
    json_count(out, "rows_returned", cost->rows_returned);
    json_count(out, "entities", op_cost_entities(cost));
    json_text(out, "query_class", query_class_name(cost->query_class));
    if (cost->table) snprintf(table, sizeof table, "%s.%s", cost->keyspace ? cost->keyspace : "", cost->table);
    json_text(out, "table", cost->table ? table : NULL);
    if (cost->reads && !cost->is_system) {
        struct explanation x = {.is_read = true};
        struct buf advice;
        buf_init(&advice, 0);
        explanation_add(&x, cost, charge);
        explanation_advice(&x, &advice);
        json_text(out, "guidance_class", guidance_class_name(cost->guidance_class));
        json_slice(out, "advice", buf_slice(&advice));
        buf_fini(&advice);
    }
    if (cost->writes) {
        json_text(out, "write_size", write_size_name(cost->write_size));
        put_write_size(out, cost, WRITE_SIZE_ROW);
        put_write_size(out, cost, WRITE_SIZE_WRITTEN);
        json_count(out, "regions", cost->writes->regions);
    }
    charge_put_rules(out, charge);
    buf_put_str(out, "}");
}
