#include "cql/read/meter.h"

#include "cql/row/row_size.h"
#include "metering/size/size.h"

static uint64_t encoded_bytes(const struct read_meter *m) {
    const struct op_cost *c = m->cost;
    return size_row_bytes(c->size_model, c->n_columns, &m->read->rows) + size_static_bytes(&m->read->statics);
}

/* Encoded, of the page so far. */
static uint64_t page_bytes(const struct read_meter *m) { return m->earlier_bytes + encoded_bytes(m); }

struct op_read *read_meter_new(struct read_meter *m, const struct schema_table *t, const struct eng_part *part) {
    if (m->read) m->earlier_bytes += encoded_bytes(m);
    m->steady = false;
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

static bool may_end(const struct read_meter *m) { return m->before_row && m->paged && m->page_rows; }

void read_meter_enter(struct read_meter *m) {
    m->steady = false;
    if (!may_end(m)) return;
    m->entered.rows = m->read->rows;
    m->entered.statics = m->read->statics;
    m->entered.markers = m->read->markers;
}

void read_meter_leave(struct read_meter *m) {
    m->steady = false;
    m->read->rows = m->entered.rows;
    m->read->statics = m->entered.statics;
    m->read->markers = m->entered.markers;
}

void read_meter_static(struct read_meter *m, const struct row_view *v) {
    m->steady = false;
    row_size_add_static(&m->read->statics, v);
}

void read_meter_markers(struct read_meter *m, const struct row_view *v, uint32_t n) {
    if (m->cost->unmetered) return;
    m->steady = false;
    row_size_add_markers(&m->read->rows, m->cost, v, n);
    m->read->markers += n;
}

void read_meter_bound(struct read_meter *m, const struct row_view *v) {
    m->steady = false;
    row_size_add(&m->read->rows, m->cost, v);
    m->read->at_bound++;
}

static bool is_full(const struct read_meter *m, uint64_t bytes) { return m->rows_left == 0 || bytes > READ_PAGE_BYTES; }

static bool end_page(struct read_meter *m) {
    m->cost->rows_read = m->rows_read;
    m->cost->bytes_read = m->bytes_read;
    return false;
}

static void count(struct read_meter *m) {
    m->page_rows++;
    m->rows_read = m->cost->rows_read;
    m->bytes_read = m->cost->bytes_read;
}

/* The only one mostly. */
SELDOM static bool add_first(struct read_meter *m, const struct row_view *v) {
    if (!m->cost->unmetered) row_size_add(&m->read->rows, m->cost, v);
    m->steady = false;
    count(m);
    return true;
}

SELDOM static bool add_any(struct read_meter *m, const struct row_view *v, bool has_row) {
    bool ends = may_end(m);
    if (ends || m->may_undo) m->rows_before = m->read->rows;
    if (has_row && !m->cost->unmetered) row_size_add(&m->read->rows, m->cost, v);
    if (ends && is_full(m, page_bytes(m))) {
        m->read->rows = m->rows_before;
        return end_page(m);
    }
    m->steady = false;
    if (m->page_rows && has_row && v->row->laid_out) {
        /* From here on: the page's encoded bytes with this row, and how many each further laid-out
         * row of the partition adds beside its values. */
        const struct size_parts bare = {.rows = 1,
                                        .n_pk = v->layout->table->n_partition_key,
                                        .pk_bytes = v->key_bytes,
                                        .n_ck = 1};
        bool sized = v->layout->sized_as_sent && m->cost->size_model != SIZE_CURRENT;
        m->steady = (m->cost->unmetered || sized) && !m->may_undo;
        m->bytes = page_bytes(m);
        m->bare_row = size_row_bytes(m->cost->size_model, m->cost->n_columns, &bare);
    }
    m->rows_read_before = m->rows_read;
    m->bytes_read_before = m->bytes_read;
    count(m);
    return true;
}

/* The fast case covers nearly every row of a slice: since bare_row was computed only rows of the
 * same kind have come. */
bool read_meter_row(struct read_meter *m, const struct row_view *v, bool has_row) {
    if (UNLIKELY(!m->steady || !has_row || !v->row->laid_out)) {
        bool first = has_row && !m->page_rows && !m->may_undo;
        return LIKELY(first) ? add_first(m, v) : add_any(m, v, has_row);
    }
    uint64_t bytes = m->cost->unmetered ? m->bytes : m->bytes + m->bare_row + row_size_sent(v);
    if (UNLIKELY(may_end(m) && is_full(m, bytes))) return end_page(m);
    m->bytes = bytes;
    if (!m->cost->unmetered) row_size_add_sent(&m->read->rows, v, 1, v->regular_bytes);
    count(m);
    return true;
}

struct read_meter_run read_meter_run_begin(const struct read_meter *m, uint64_t *rows) {
    bool sized = !m->cost->unmetered;
    if (m->rows_left != UINT64_MAX && m->rows_left - 1 < *rows) *rows = m->rows_left - 1;
    return (struct read_meter_run){.bytes = m->bytes,
                                   .most = may_end(m) ? READ_PAGE_BYTES : UINT64_MAX,
                                   .each = sized ? m->bare_row + sizeof(int32_t) : 0,
                                   .sized = sized ? UINT64_MAX : 0};
}

void read_meter_run_end(struct read_meter *m, const struct row_view *v, const struct read_meter_run *run) {
    if (!run->rows) return;
    if (!m->cost->unmetered) row_size_add_sent(&m->read->rows, v, run->rows, run->column_bytes);
    m->bytes = run->bytes;
    m->page_rows += run->rows;
    m->rows_read = run->rows_read;
    m->bytes_read = run->bytes_read;
}

void read_meter_undo(struct read_meter *m) {
    m->read->rows = m->rows_before;
    m->cost->rows_read = m->rows_read_before;
    m->cost->bytes_read = m->bytes_read_before;
    m->page_rows--;
}

bool read_meter_passed(struct read_meter *m) {
    if (!m->paged) return false;
    if (m->rows_left != UINT64_MAX) m->rows_left--;
    return !m->before_row && m->cost->bytes_read - m->bytes_start >= READ_PAGE_BYTES;
}
