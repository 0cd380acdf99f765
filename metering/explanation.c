#include "metering/explanation.h"

#include "base/json.h"

void partition_count_add(struct partition_count *p, const struct op_cost *cost) {
    bool scanned = false;
    for (const struct op_read *r = cost->reads; r; r = r->next) {
        scanned = scanned || !r->item.one_partition;
        if (r->item.one_partition && !(p->by_key && p->token == r->item.token)) p->n++;
        p->by_key = r->item.one_partition;
        p->token = r->item.token;
    }
    if (scanned) p->n += cost->partitions;
}

void explanation_add(struct explanation *x, const struct op_cost *cost, const struct charge *charge) {
    x->cost = cost;
    x->pages++;
    x->rows_read += cost->rows_read;
    x->rows_returned += cost->rows_returned;
    x->bytes_read += cost->bytes_read;
    partition_count_add(&x->partitions, cost);
    for (const struct op_read *r = cost->reads; r; r = r->next) {
        x->filtered += r->filtered;
        x->past_limit += r->past_limit;
    }
    charge_add(&x->charge, charge);
}

void explanation_json(const struct explanation *x, struct buf *out) {
    charge_put_member(out, "units", x->charge.total);
    charge_put_member(out, "read_units", x->charge.read_units);
    charge_put_member(out, "write_units", x->charge.write_units);
    charge_put_member(out, "static_write_units", x->charge.static_write_units);
    json_count(out, "row_bytes", x->charge.row_bytes);
    json_count(out, "static_bytes", x->charge.static_bytes);
    json_text(out, "query_class", query_class_name(x->cost->query_class));
    json_count(out, "pages", x->pages);
    json_count(out, "partitions", x->partitions.n);
    json_count(out, "rows_read", x->rows_read);
    json_count(out, "rows_returned", x->rows_returned);
    charge_put_rules(out, &x->charge);
    if (!x->is_read || x->cost->is_system) return;
    json_open(out, "guidance", '{');
    json_text(out, "class", guidance_class_name(x->cost->guidance_class));
    json_text(out, "rating", guidance_class_rating(x->cost->guidance_class));
    json_text(out, "granularity", guidance_granularity_info(explanation_granularity(x))->name);
    json_open(out, "granularities", '[');
    for (int g = 0; g < GRANULARITIES; g++) {
        const struct guidance_granularity_info *i = guidance_granularity_info((enum guidance_granularity)g);
        json_open(out, NULL, '{');
        json_text(out, "name", i->name);
        json_text(out, "keys", i->keys);
        json_text(out, "gains", i->gains);
        json_text(out, "costs", i->costs);
        buf_put_str(out, "}");
    }
    buf_put_str(out, "]}");
}

enum guidance_granularity explanation_granularity(const struct explanation *x) {
    return x->cost->one_row_partitions ? GRANULARITY_UNIQUE : GRANULARITY_MULTIPLE;
}

void explanation_advice(const struct explanation *x, struct buf *out) {
    const char *table = x->cost->table ? x->cost->table : "the table";
    if (x->cost->is_system) return; /* costs nothing */
    if (x->is_read && x->cost->query_class == QUERY_TABLE_SCAN)
        buf_printf(out,
                   "Every partition of %s is read, and paid for: give the whole partition key with = or IN, or keep a "
                   "table whose partition key is what you ask by.\n",
                   table);
    if (x->is_read && x->cost->query_class == QUERY_PARTITION_RANGE)
        buf_printf(out,
                   "A whole partition of %s is read: clustering columns with =, < or > narrow it to the rows that are "
                   "wanted.\n",
                   table);
    if (x->filtered)
        buf_printf(out,
                   "%llu rows are read and paid for that the conditions then leave out: a condition on clustering "
                   "columns reads only what it returns.\n",
                   (unsigned long long)x->filtered);
    if (x->past_limit)
        buf_printf(out,
                   "%llu rows after the LIMIT are read and paid for: LIMIT is applied to a page that has been read. "
                   "With a page size of %llu, the fetch size of drivers, they are not read.\n",
                   (unsigned long long)x->past_limit, (unsigned long long)(x->rows_returned ? x->rows_returned : 1));
    if (x->charge.rules >> RULE_WRITE_BOTH & 1)
        buf_printf(out, "Static and non-static columns in one statement cost twice the units of each: written apart "
                        "they cost each once.\n");
    if (x->cost->is_logged_batch)
        buf_printf(
            out, "A logged batch costs each row twice: UNLOGGED costs it once, where all-or-nothing is not needed.\n");
}
