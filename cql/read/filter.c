#include "cql/read/filter.h"

/* The rows that may be pulled until one more could be too many of its partition. */
static uint32_t wanted(const struct row_filter *f, uint32_t most) {
    const struct read_source *s = f->source;
    if (f->first_only) return 1;
    if (!f->counts || s->partition_limit == UINT64_MAX) return most;
    uint64_t left = s->given < s->partition_limit ? s->partition_limit - s->given : 1;
    return left < most ? (uint32_t)left : most;
}

static uint32_t keep_matching(const struct where_filters *filters, struct read_batch *batch) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        if (!where_filters_match(filters, batch->values[i])) continue;
        batch->values[n] = batch->values[i];
        batch->out[n++] = batch->out[i];
    }
    return n;
}

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
    struct row_filter *f = (struct row_filter *)op;
    struct read_source *s = f->source;
    uint32_t most = batch->most, n = 0;
    while (n == 0) {
        batch->most = wanted(f, most);
        enum read_pull pull = read_next(f->below, batch);
        if (pull != READ_ROWS) return pull;
        n = f->filters ? keep_matching(f->filters, batch) : batch->n;
        if (s->read) s->read->filtered += batch->n - n;
    }
    batch->n = n;
    if (f->counts) s->given += n;
    if (f->first_only || (f->counts && s->given >= s->partition_limit)) s->skip_partition = true;
    return READ_ROWS;
}

void row_filter_init(struct row_filter *f, struct read_op *below, struct read_source *source) {
    *f = (struct row_filter){.op = {next}, .below = below, .source = source};
}
