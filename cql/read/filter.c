#include "cql/read/filter.h"

static enum read_pull next(struct read_op *op, struct read_row *row) {
    struct row_filter *f = (struct row_filter *)op;
    enum read_pull pull;
    while ((pull = read_next(f->below, row)) == READ_ROW && f->filters && !where_filters_match(f->filters, row->view))
        if (f->source->read) f->source->read->filtered++;
    if (pull != READ_ROW) return pull;
    if (f->counts) f->source->given++;
    if (f->first_only || (f->counts && f->source->given >= f->source->partition_limit))
        f->source->skip_partition = true;
    return pull;
}

void row_filter_init(struct row_filter *f, struct read_op *below, struct read_source *source) {
    *f = (struct row_filter){.op = {next}, .below = below, .source = source};
}
