/* The charge as the payload key capacity shows it. */
#include "metering/charge.h"

#include <stdio.h>

#include "metering/explanation.h"
#include "metering/guidance.h"

static void put_count(struct buf *out, const char *key, uint64_t n) {
    buf_printf(out, "\"%s\":%llu,", key, (unsigned long long)n);
}

static void put_write_size(struct buf *out, const struct op_cost *cost, enum write_size by) {
    struct charge_write_size s;
    buf_printf(out, "\"%s\":", write_size_name(by));
    if (!charge_write_size(cost, by, &s)) {
        buf_put_str(out, "null,");
        return;
    }
    buf_printf(out, "{\"row_bytes\":%llu,\"static_bytes\":%llu,\"units\":%llu},", (unsigned long long)s.row_bytes,
               (unsigned long long)s.static_bytes, (unsigned long long)s.units);
}

void charge_json(const struct op_cost *cost, const struct charge *charge, struct buf *out) {
    buf_put_str(out, "{");
    charge_put_field(out, "read_units", charge->read_units);
    charge_put_field(out, "write_units", charge->write_units);
    charge_put_field(out, "static_write_units", charge->static_write_units);
    put_count(out, "row_bytes", charge->row_bytes);
    put_count(out, "static_bytes", charge->static_bytes);
    put_count(out, "bytes_read", cost->bytes_read);
    put_count(out, "rows_read", cost->rows_read);
    put_count(out, "rows_returned", cost->rows_returned);
    put_count(out, "entities", op_cost_entities(cost));
    buf_printf(out, "\"query_class\":\"%s\",", query_class_name(cost->query_class));
    buf_put_str(out, "\"table\":");
    if (cost->table) {
        char name[256];
        snprintf(name, sizeof name, "%s.%s", cost->keyspace ? cost->keyspace : "", cost->table);
        buf_json_str(out, slice_str(name));
    } else buf_put_str(out, "null");
    buf_put_str(out, ",");
    if (cost->reads && !cost->is_system) {
        struct explanation x = {.is_read = true};
        struct buf advice;
        buf_init(&advice, 0);
        explanation_add(&x, cost, charge);
        explanation_advice(&x, &advice);
        buf_printf(out, "\"guidance_class\":\"%s\",\"advice\":", guidance_class_name(cost->guidance_class));
        buf_json_str(out, buf_slice(&advice));
        buf_put_str(out, ",");
        buf_fini(&advice);
    }
    if (cost->writes) {
        buf_printf(out, "\"write_size\":\"%s\",", write_size_name(cost->write_size));
        put_write_size(out, cost, WRITE_SIZE_ROW);
        put_write_size(out, cost, WRITE_SIZE_WRITTEN);
        put_count(out, "regions", cost->writes->regions);
    }
    charge_put_rules(out, charge);
    buf_put_str(out, "}");
}
