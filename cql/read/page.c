#include "cql/read/operators.h"

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
    struct result_page *p = (struct result_page *)op;
    if (p->ended) return READ_END;
    batch->most = READ_BATCH;
    if (p->has_limit && p->limit_left < batch->most) batch->most = (uint32_t)p->limit_left;
    if (p->rows_left < batch->most) batch->most = (uint32_t)p->rows_left;
    enum read_pull pull;
    if (LIKELY(!p->limit_reached)) {
        pull = read_next(p->below, batch);
    } else { /* rows behind LIMIT are read to the end of the page */
        batch->most = READ_BATCH;
        while ((pull = read_next(&p->source->op, batch)) == READ_ROWS) p->source->read->past_limit += batch->n;
    }
    if (pull != READ_ROWS) {
        p->ended = pull == READ_END;
        return pull;
    }
    if (p->has_limit && (p->limit_left -= batch->n) == 0) {
        p->limit_reached = p->source->last_query = true;
        p->ended = !p->reads_on;
    }
    if (p->rows_left != UINT64_MAX && (p->rows_left -= batch->n) == 0) p->full = p->ended = true;
    return pull;
}

void result_page_init(struct result_page *p, struct read_op *below, struct read_source *source) {
    *p = (struct result_page){.op = {next}, .below = below, .source = source, .rows_left = UINT64_MAX};
}

bool result_page_next(const struct result_page *p, struct paging_state *out) {
    struct read_source *s = p->source;
    if (p->limit_reached || p->whole || !(p->full || s->page_end)) return false;
    if (p->group && p->group->pending) s->path->unread(s);
    *out = (struct paging_state){.has_limit = p->has_limit, .limit_left = p->limit_left};
    s->path->place(s, out);
    return true;
}
