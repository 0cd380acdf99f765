#include "cql/read/operators.h"

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
    struct row_filter *f = (struct row_filter *)op;
    struct read_source *s = f->source;
    uint32_t most = batch->most, n = 0;
    while (n == 0) {
        /* as many as may come until one more could be too many of its partition */
        batch->most = f->first_only ? 1 : most;
        if (!f->first_only && f->counts && s->partition_limit != UINT64_MAX) {
            uint64_t left = s->given < s->partition_limit ? s->partition_limit - s->given : 1;
            if (left < most) batch->most = (uint32_t)left;
        }
        enum read_pull pull = read_next(f->below, batch);
        if (pull != READ_ROWS) return pull;
        for (uint32_t i = 0; i < batch->n; i++) {
            if (f->filters && !where_filters_match(f->filters, batch->values[i])) continue;
            batch->values[n] = batch->values[i];
            batch->out[n++] = batch->out[i];
        }
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
