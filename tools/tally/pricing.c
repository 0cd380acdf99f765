#include "tools/tally/pricing.h"

#include <string.h>
#include <strings.h>

static const char *or_else(const char *text, const char *otherwise) { return text ? text : otherwise; }

/* 0: value is first; 1: second; -1: neither. */
static int one_of(const char *flag, const char *value, const char *first, const char *second, struct err *e) {
    if (!strcmp(value, first)) return 0;
    if (!strcmp(value, second)) return 1;
    return err_set(e, ERR_CONFIG, "--%s must be %s or %s, not '%s'", flag, first, second, value);
}

struct world *pricing_world(const struct pricing *p, bool strict, struct err *e) {
    int model = one_of("size-model", or_else(p->size_model, "documented-2022"), "documented-2022", "current", e);
    int size = one_of("write-size", or_else(p->write_size, "row"), "row", "written", e);
    const struct world_options o = {.size_model = model == 1 ? SIZE_CURRENT : SIZE_DOCUMENTED_2022,
                                    .write_size = size == 1 ? WRITE_SIZE_WRITTEN : WRITE_SIZE_ROW,
                                    .timestamp_size = p->timestamp_size, .strict = strict};
    if (model < 0 || size < 0) return NULL;
    if (p->consistency && world_consistency(p->consistency) < 0) {
        err_set(e, ERR_CONFIG, "--consistency: there is no level '%s'", p->consistency);
        return NULL;
    }
    struct world *w = world_new(&o, e);
    if (w && ((p->schema && world_load(w, p->schema, true, e)) || (p->data && world_load(w, p->data, false, e)))) {
        world_free(w);
        return NULL;
    }
    return w;
}

bool pricing_is_read(struct slice text) { return text.n >= 6 && !strncasecmp((const char *)text.p, "SELECT", 6); }

int pricing_run(struct world *w, const struct pricing *p, struct slice text, struct world_answer *out, struct err *e) {
    int level = p->consistency && pricing_is_read(text) ? world_consistency(p->consistency) : CL_LOCAL_QUORUM;
    const struct world_request q = {.text = text, .consistency = (uint16_t)level, .page_size = (int32_t)p->page_size};
    return world_run(w, &q, out, e);
}

/* ---- the answer ---- */

static void put_number(struct buf *out, const char *key, double units) {
    buf_printf(out, "\"%s\":", key);
    charge_put_units(out, units);
    buf_put_str(out, ",");
}

void pricing_json(const struct world_answer *a, struct buf *out) {
    put_number(out, "units", a->charge.total);
    put_number(out, "read_units", a->charge.read_units);
    put_number(out, "write_units", a->charge.write_units);
    put_number(out, "static_write_units", a->charge.static_write_units);
    buf_printf(out,
               "\"row_bytes\":%llu,\"static_bytes\":%llu,\"query_class\":\"%s\",\"pages\":%llu,\"partitions\":%llu,"
               "\"rows_read\":%llu,\"rows_returned\":%llu,\"rules\":[",
               (unsigned long long)a->charge.row_bytes, (unsigned long long)a->charge.static_bytes,
               query_class_name(a->cost->query_class), (unsigned long long)a->pages, (unsigned long long)a->partitions,
               (unsigned long long)a->rows_read, (unsigned long long)a->rows_returned);
    bool first = true;
    for (unsigned id = 0; id < RULES; id++) {
        if (!(a->charge.rules >> id & 1)) continue;
        buf_printf(out, "%s\"%s\"", first ? "" : ",", rule_of(id)->name);
        first = false;
    }
    buf_put_str(out, "]");
}

void pricing_advice(const struct world_answer *a, struct buf *out) {
    const char *table = a->cost->table ? a->cost->table : "the table";
    if (a->kind == STMT_SELECT && a->cost->query_class == QUERY_TABLE_SCAN)
        buf_printf(out,
                   "Every partition of %s is read, and paid for: give the whole partition key with = or IN, or keep a "
                   "table whose partition key is what you ask by.\n",
                   table);
    if (a->kind == STMT_SELECT && a->cost->query_class == QUERY_PARTITION_RANGE)
        buf_printf(out,
                   "A whole partition of %s is read: clustering columns with =, < or > narrow it to the rows that are "
                   "wanted.\n",
                   table);
    if (a->filtered)
        buf_printf(out,
                   "%llu rows are read and paid for that the conditions then leave out: a condition on clustering "
                   "columns reads only what it returns.\n",
                   (unsigned long long)a->filtered);
    if (a->charge.static_write_units > 0 && a->charge.write_units > 0)
        buf_printf(out, "Static and non-static columns in one statement cost twice the units of each: written apart "
                        "they cost each once.\n");
    if (a->cost->is_logged_batch)
        buf_printf(
            out, "A logged batch costs each row twice: UNLOGGED costs it once, where all-or-nothing is not needed.\n");
}
