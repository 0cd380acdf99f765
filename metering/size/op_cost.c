#include "metering/size/op_cost.h"

struct op_read *op_cost_read(struct op_cost *c) {
    struct op_read *r = ARENA_NEW(c->arena, struct op_read);
    if (!r) return NULL;
    if (c->reads_tail) c->reads_tail->next = r;
    else c->reads = r;
    return c->reads_tail = r;
}

struct op_write *op_cost_write(struct op_cost *c, enum op_write_kind kind) {
    struct op_write *w = arena_alloc(c->arena, sizeof *w);
    if (!w) return NULL;
    *w = (struct op_write){.kind = kind, .regions = 1};
    if (c->writes_tail) c->writes_tail->next = w;
    else c->writes = w;
    c->is_write = true;
    return c->writes_tail = w;
}

void op_cost_count_rows(struct op_cost *c) {
    if (!c->reads) return;
    c->rows_read = 0;
    for (const struct op_read *r = c->reads; r; r = r->next) c->rows_read += r->rows.rows + r->statics.rows;
}

void op_cost_class(struct op_cost *c, enum query_class class) {
    if (class > c->query_class) c->query_class = class;
}

void size_sum_add(struct size_sum *to, const struct size_sum *from) {
    to->rows += from->rows;
    to->bytes += from->bytes;
    to->null_bytes += from->null_bytes;
    to->n_columns += from->n_columns;
    to->n_nulls += from->n_nulls;
    to->ttl |= from->ttl;
    to->timestamps |= from->timestamps;
}

uint64_t op_read_entities(const struct op_read *r) { return r->rows.rows + r->statics.rows; }

uint64_t op_write_entities(const struct op_write *w) {
    bool each = w->many && w->image.known == IMAGE_FOUND;
    uint64_t n = each ? w->image.row.rows + w->image.statics.rows : (uint64_t)w->has_row + w->has_static;
    return n ? n : 1;
}
