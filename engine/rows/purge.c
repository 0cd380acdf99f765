#include "engine/rows/purge.h"

static bool gone(const struct engi_purge_limits *l, int64_t ts, int64_t since) {
    return ts < l->before_ts && since < l->before_seconds;
}

static bool is_mortal(const struct eng_cell *c) { return rowi_is_deletion(c) || c->flags & ENG_CELL_EXPIRING; }

int engi_purge_row(const struct engi_purge_limits *l, struct slice value, struct buf *out, struct engi_purged *p) {
    struct rowi_reader r;
    struct rowi_writer w;
    struct eng_cell c;
    int got;
    *p = (struct engi_purged){.newest_ts = ENG_NO_TS};
    if (rowi_open(&r, value)) return -1;
    struct rowi_head head = r.head;
    bool expired = head.live_expiry != ENG_NO_EXPIRY && gone(l, head.live_ts, head.live_expiry);
    struct rowi_shadow shadow = {.row_ts = head.del_ts > l->covered_ts ? head.del_ts : l->covered_ts,
                                 .column_ts = ENG_NO_TS};
    if (head.live_ts != ENG_NO_TS && (head.live_ts <= l->covered_ts || expired)) {
        p->expired += head.live_ts > l->covered_ts && head.live_ts > head.del_ts;
        head.live_ts = ENG_NO_TS;
        head.live_ttl = 0;
        head.live_expiry = ENG_NO_EXPIRY;
        p->dropped++;
    }
    if (head.del_ts != ENG_NO_TS && (head.del_ts <= l->covered_ts || gone(l, head.del_ts, head.del_at))) {
        head.del_ts = ENG_NO_TS;
        p->dropped++;
    }
    p->row_deletion = head.del_ts != ENG_NO_TS;
    p->dead_cells = head.live_ts != ENG_NO_TS && head.live_expiry != ENG_NO_EXPIRY;
    p->newest_ts = head.live_ts > head.del_ts ? head.live_ts : head.del_ts;
    rowi_begin(&w, out, &head);
    while ((got = rowi_next(&r, &c)) > 0) {
        bool covered = rowi_shadowed(&shadow, &c);
        if (covered || (is_mortal(&c) && gone(l, c.ts, c.expiry))) {
            p->dropped++;
            p->expired += !covered && !rowi_is_deletion(&c);
            continue;
        }
        rowi_put(&w, &c);
        p->dead_cells = p->dead_cells || is_mortal(&c);
        if (c.ts > p->newest_ts) p->newest_ts = c.ts;
    }
    p->empty = !w.written && head.live_ts == ENG_NO_TS && head.del_ts == ENG_NO_TS;
    rowi_end(&w);
    return got < 0 || buf_failed(out) ? -1 : 0;
}

void engi_dropped_take(const struct engi_dropped *d, struct eng_row *row, bool as_stored) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *cell = &row->cells[i];
        uint32_t from = 0, to = d->n;
        while (from < to) {
            uint32_t mid = from + (to - from) / 2;
            if (d->items[mid].column < cell->column) from = mid + 1;
            else to = mid;
        }
        const struct eng_dropped *of = from < d->n && d->items[from].column == cell->column ? &d->items[from] : NULL;
        if (!of || (cell->ts > of->ts && (as_stored || !of->gone))) row->cells[kept++] = *cell;
    }
    row->n_cells = kept;
}
