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

void op_cost_class(struct op_cost *c, enum query_class class, enum guidance_class guidance) {
    if (class > c->query_class) c->query_class = class;
    if (guidance > c->guidance_class) c->guidance_class = guidance;
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

static uint64_t entities_of(uint64_t bytes) {
    enum { ENTITY = 1024 };
    return (bytes + ENTITY - 1) / ENTITY;
}

uint64_t op_read_entities(const struct op_read *r) {
    uint64_t rows = r->rows.rows + r->statics.rows, kib = entities_of(r->rows.bytes + r->statics.bytes);
    return rows > kib ? rows : kib;
}

uint64_t op_write_entities(const struct op_write *w) {
    bool found = w->image.known == IMAGE_FOUND;
    const struct size_sum *row = found ? &w->image.row : &w->row, *statics = found ? &w->image.statics : &w->statics;
    uint64_t n = 0;
    if (w->many && found) {
        n = w->image.row_steps + entities_of(statics->bytes);
    } else {
        if (w->has_row) n += row->bytes ? entities_of(row->bytes) : 1;
        if (w->has_static) n += statics->bytes ? entities_of(statics->bytes) : 1;
    }
    return n ? n : 1;
}

uint64_t op_cost_entities(const struct op_cost *c) {
    uint64_t n = 0;
    for (const struct op_read *r = c->reads; r; r = r->next) n += op_read_entities(r);
    for (const struct op_write *w = c->writes; w; w = w->next) n += op_write_entities(w);
    return n;
}
