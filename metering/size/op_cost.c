#include "metering/size/op_cost.h"

struct op_read *op_cost_read(struct op_cost *c) {
    struct op_read *r = ARENA_NEW(c->arena, struct op_read);
    if (!r) return NULL;
    if (c->reads_tail) c->reads_tail->next = r;
    else c->reads = r;
    return c->reads_tail = r;
}

struct op_write *op_cost_write(struct op_cost *c, enum op_write_kind kind) {
    struct op_write *w = ARENA_NEW(c->arena, struct op_write);
    if (!w) return NULL;
    w->kind = kind;
    w->regions = 1;
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

void size_parts_add(struct size_parts *to, const struct size_parts *p) {
    to->rows += p->rows;
    to->n_pk += p->n_pk;
    to->n_ck += p->n_ck;
    to->n_columns += p->n_columns;
    to->n_nulls += p->n_nulls;
    to->pk_bytes += p->pk_bytes;
    to->ck_bytes += p->ck_bytes;
    to->column_bytes += p->column_bytes;
    to->ck_fifths += p->ck_fifths;
    to->ttl_rows += p->ttl_rows;
    to->ttl_cells += p->ttl_cells;
    to->timestamp_bytes += p->timestamp_bytes;
}

uint64_t op_read_entities(const struct op_read *r) { return r->rows.rows + r->statics.rows; }

uint64_t op_write_entities(const struct op_write *w) {
    bool each = w->many && w->image.known == IMAGE_FOUND;
    uint64_t n = each ? w->image.row.rows + w->image.statics.rows : (uint64_t)w->has_row + w->has_static;
    return n ? n : 1;
}
