#include "cql/read/page.h"

static enum read_pull next(struct read_op *op, struct read_row *row) {
    struct result_page *p = (struct result_page *)op;
    if (p->ended) return READ_END;
    enum read_pull pull;
    if (p->limit_reached) {
        while ((pull = read_next(&p->source->op, row)) == READ_ROW) p->source->read->past_limit++;
        p->ended = pull == READ_END;
        return pull;
    }
    pull = read_next(p->below, row);
    if (pull != READ_ROW) {
        p->ended = pull == READ_END;
        return pull;
    }
    if (p->has_limit && --p->limit_left == 0) {
        p->limit_reached = p->source->last_query = true;
        p->ended = !p->reads_on;
    }
    if (p->rows_left != UINT64_MAX && --p->rows_left == 0) p->full = p->ended = true;
    return pull;
}

void result_page_init(struct result_page *p, struct read_op *below, struct read_source *source) {
    *p = (struct result_page){.op = {next}, .below = below, .source = source, .rows_left = UINT64_MAX};
}

uint64_t result_page_room(const struct result_page *p) {
    uint64_t most = UINT64_MAX;
    if (p->ended || p->limit_reached) return 0;
    if (p->has_limit) most = p->limit_left - 1;
    return p->rows_left - 1 < most ? p->rows_left - 1 : most;
}

void result_page_took(struct result_page *p, uint32_t n) {
    if (p->has_limit) p->limit_left -= n;
    if (p->rows_left != UINT64_MAX) p->rows_left -= n;
}

bool result_page_next(const struct result_page *p, struct paging_state *out) {
    struct read_source *s = p->source;
    if (p->limit_reached || p->whole || !(p->full || s->page_end)) return false;
    if (p->group && p->group->pending) s->path->unread(s);
    *out = (struct paging_state){.has_limit = p->has_limit, .limit_left = p->limit_left};
    s->path->place(s, out);
    return true;
}
