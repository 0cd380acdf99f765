#include "cql/read/meter.h"

struct op_read *read_meter_new(struct read_meter *m, const struct schema_table *t, const struct eng_part *part) {
    if (m->read) m->earlier_bytes += m->read->rows.bytes + m->read->statics.bytes;
    m->read = op_cost_read(m->cost);
    if (!m->read) return NULL;
    m->read->keyspace = t->keyspace->name;
    m->read->table = t->name;
    m->read->object = t->object;
    m->read->one_partition = part != NULL;
    if (part) m->read->token = part->token;
    if (part) m->read->key = part->key;
    return m->read;
}

void read_meter_enter(struct read_meter *m) {
    row_sizer_partition(&m->sizer);
    if (!read_meter_may_end(m)) return;
    m->entered.rows = m->read->rows;
    m->entered.statics = m->read->statics;
    m->entered.markers = m->read->markers;
}

void read_meter_leave(struct read_meter *m) {
    m->read->rows = m->entered.rows;
    m->read->statics = m->entered.statics;
    m->read->markers = m->entered.markers;
}

void read_meter_static(struct read_meter *m) { row_size_add_static(&m->read->statics, m->sizer.view); }

void read_meter_markers(struct read_meter *m, uint32_t n) {
    if (m->cost->unmetered) return;
    row_size_add_markers(&m->read->rows, &m->sizer, n);
    m->read->markers += n;
}

void read_meter_bound(struct read_meter *m) {
    row_size_add(&m->read->rows, &m->sizer);
    m->read->at_bound++;
}

void read_meter_undo(struct read_meter *m) {
    m->read->rows = m->rows_before;
    m->cost->rows_read = m->rows_read_before;
    m->cost->bytes_read = m->bytes_read_before;
    m->page_rows--;
}

void read_meter_batch_end(struct read_meter *m, const struct read_meter_batch *sum) {
    size_sum_add(&m->read->rows, &sum->rows);
    m->page_rows += sum->n;
    if (m->paged && m->rows_left != UINT64_MAX) m->rows_left -= sum->n;
    m->rows_read = sum->rows_read;
    m->bytes_read = sum->bytes_read;
}
