/* Sizes a write by the stored rows that it changes: --write-size row ("Estimate capacity
 * consumption of read and write throughput",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/capacity-examples.html).
 *
 * Life: once all changes of a write are known, under the locks of its partitions, each row that a
 * change concerns is read once, as it is stored, and the changes are applied to it in their order: a
 * statement is sized by the row after it, a deletion by the row that it takes away, and the
 * deletion of a range or a partition by all of them, row by row. Expired data that is still stored
 * counts. The sizes go to the op_write of the change (op_write.image); the reading itself is not
 * charged to the op_cost. A row whose first change sets everything is not read.
 *
 * Bounds: other writers of the partitions wait meanwhile. So a request checks its deadline every
 * few hundred rows, rows deleted earlier included, and ends with a write timeout; a request whose
 * deletions cover too many rows is refused. Neither writes anything.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cql/request/db.h"
#include "cql/row/row_size.h"
#include "cql/write/mutation.h"
#include "keyspaces/quota.h"
#include "metering/size/size.h"

enum {
    CHUNK = 960,             /* bytes; malloc serves it from its caches, and most rows need no more */
    /* Steps and bytes between checks of the deadline: other writers of the partition wait. */
    PART_STEPS = 256,
    PART_BYTES = 1 << 20,
    MAX_DELETED = 100000,  /* rows under the deletions of a request; about a tenth of a second */
};

/* Counts of one request, over all of its partitions. */
struct work {
    uint32_t steps, n_deleted;
    bool incomplete; /* it failed for a row that is not in memory */
};

/* A change and its place among those of its partition. */
struct placed_change {
    const struct change *change;
    uint32_t at;
};

/* One partition of a write. */
struct row_sizing {
    struct cql_run *r;
    const struct mutation *m;
    struct compat compat;
    struct work *work;
    struct arena rows, values; /* for the current row; for the view */
    struct arena applied[2];      /* in turns: cells of a row with more than one change applied */
    struct row_view view;
    struct row_sizer sizer;     /* of the view */
    uint32_t n_rows, n_deletions;
    struct placed_change *row_changes; /* by kind and clustering key, changes of one row in their order */
    struct placed_change *deletions;       /* deletions of ranges and of the partition, in their order */
    struct eng_row state;       /* the stored row with the changes so far applied; not resolved */
    bool exists;                /* something is stored or written */
    uint32_t n_applied;
};

static int by_row(const void *a, const void *b) {
    const struct placed_change *x = a, *y = b;
    const struct eng_row *r = &x->change->row, *s = &y->change->row;
    int c = r->kind != s->kind ? (r->kind < s->kind ? -1 : 1) : slice_cmp(r->ck, s->ck);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* ---- what a request may take ---- */

/* Called for each row, change of a row and deletion that covers it: each may be many. */
static int step(struct row_sizing *f) { return ++f->work->steps % PART_STEPS ? 0 : cql_check_running(f->r); }

/* Counts one more row under the deletion. Returns 0 to continue, or -1 if there are too many rows. Returns 1
 * if too many rows, but they are read only for Keyspaces' limit on range deletions, and its rule
 * did not refuse: the deletion goes unsized. The limit counts rows older than the deletion; when
 * too few of those were seen, whether the deletion is over the limit is unknown, and the rule is
 * applied. */
static int count_deleted(struct row_sizing *f, struct op_write *deletion) {
    if (f->work->n_deleted < MAX_DELETED) {
        f->work->n_deleted++;
        return 0;
    }
    if (f->r->cost->write_size != WRITE_SIZE_ROW) {
        bool over = deletion->image.row.rows > QUOTA_RANGE_DELETE_ROWS;
        if (!over && compat_refuse(&f->compat, REFUSE_RANGE_DELETE, f->r->err)) return -1;
        memset(&deletion->image, 0, sizeof(deletion->image));
        return 1;
    }
    return err_invalid(f->r->err,
                       "The deletion is over more than %d rows, which it is sized by one by one. Delete in smaller "
                       "ranges, or fewer ranges a batch.", MAX_DELETED);
}

/* ---- sizes ---- */

/* Removes the cells that are not newer than del_ts. Returns whether anything of the row is left. */
static bool remains(struct eng_row *row, int64_t del_ts) {
    return eng_row_resolve(row, del_ts, ENG_NEVER_EXPIRES, NULL);
}

static int add_size(struct row_sizing *f, struct op_write *to, const struct eng_row *row) {
    struct size_sum one = {0};
    bool is_static = row->kind == ENG_STATIC;
    if (row_view_partition(&f->view, f->m->part.key, is_static ? row : NULL, f->r->err)) return -1;
    if (is_static) {
        row_size_add_static(&to->image.statics, &f->view);
        return 0;
    }
    if (row_view_row(&f->view, row, f->r->err)) return -1;
    row_sizer_partition(&f->sizer);
    row_size_add(&one, &f->sizer);
    size_sum_add(&to->image.row, &one);
    to->image.row_steps += size_write_steps(one.bytes);
    return 0;
}

/* ---- a row and its changes ---- */

/* Copies the current row, to be resolved. The caller rewinds the arena afterwards. */
static int copy(struct row_sizing *f, struct eng_row *row) {
    bool live = true; /* resolving the row would leave its cells unchanged */
    *row = f->state;
    for (uint32_t i = 0; live && i < row->n_cells; i++)
        live = !(row->cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION)) &&
               row->cells[i].ts > row->del_ts;
    if (live) return 0;
    row->cells = arena_alloc(&f->rows, row->n_cells * sizeof *row->cells);
    if (!row->cells) return err_nomem(f->r->err);
    memcpy(row->cells, f->state.cells, row->n_cells * sizeof *row->cells);
    return 0;
}

/* Sets the state to the stored row. A row that was read to decide the write is not read again, if all that
 * is stored was read; only the newest few reads are searched. */
static int load(struct row_sizing *f, const struct eng_row *address) {
    enum { FEW = 8 };
    struct eng_row *row = &f->state;
    const struct mutation_read *read = f->m->reads;
    for (int i = 0; read && i < FEW; i++, read = read->next) {
        if (read->row->kind != address->kind || !slice_eq(read->ck, address->ck)) continue;
        if (!eng_row_is_as_stored(read->row)) break;
        *row = *read->row;
        f->exists = true;
        return 0;
    }
    int rc = mutation_get(f->r, f->m, address->kind, address->ck, ENG_AS_STORED, &f->rows, row, NULL);
    f->work->incomplete = rc == ENG_INCOMPLETE;
    if (rc < 0) return -1;
    if (rc == 0) {
        row->del_ts = row->newest_ts;
        row->del_at = ENG_COVERED;
    }
    f->exists = rc || row->del_ts != ENG_NO_TS;
    return 0;
}

/* Adds the size of the row in its current state to the cost of a change. */
static int size_one(struct row_sizing *f, const struct change *c) {
    struct op_write *to = c->cost;
    struct eng_row row;
    struct arena_mark mark = arena_mark(&f->rows);
    if (to->image.known == IMAGE_AS_WRITTEN) return 0;
    to->image.known = IMAGE_FOUND;
    if (!f->exists) return 0;
    if (copy(f, &row)) return -1;
    bool any = remains(&row, ENG_NO_TS) || (row.kind == ENG_ROW && f->view.layout->has_timestamps && row.n_deletions);
    int rc = any ? add_size(f, to, &row) : 0;
    arena_rewind(&f->rows, mark);
    return rc;
}

static int apply_change(struct row_sizing *f, const struct change *c) {
    bool deletion = c->cost && c->cost->kind == OP_DELETE;
    if (deletion && size_one(f, c)) return -1;
    /* Applies the change to the state. Two arenas alternate: the result goes to one while the
     * previous state is read from the other. */
    struct arena *to = f->n_applied ? &f->applied[f->n_applied % 2] : &f->rows;
    struct eng_row row = c->row;
    if (f->exists) {
        if (f->n_applied++) arena_reset(to);
        if (eng_row_lay(&f->state, &c->row, to, &row)) return err_nomem(f->r->err);
    }
    f->state = row;
    f->exists = true;
    if (c->cost && !deletion && size_one(f, c)) return -1;
    for (const struct change *s = c->summed; s; s = s->next)
        if (size_one(f, s)) return -1;
    return 0;
}

/* ---- deletions of ranges and partitions ---- */

static bool covers(const struct change *deletion, enum eng_row_kind kind, struct slice ck) {
    return deletion->kind == CHANGE_PARTITION || (kind == ENG_ROW && eng_slice_has(&deletion->range, ck));
}

/* Whether anything of the row is as old as the deletion. */
static bool is_hit(const struct eng_row *row, int64_t ts) {
    bool hit = row->live_ts != ENG_NO_TS && row->live_ts <= ts;
    for (uint32_t i = 0; i < row->n_cells && !hit; i++) hit = row->cells[i].ts <= ts;
    return hit;
}

/* Applies the deletion of a range or partition to a row that has other changes, too. */
static int apply_deletion(struct row_sizing *f, const struct eng_row *address, const struct change *deletion) {
    struct eng_row row;
    struct arena_mark mark = arena_mark(&f->rows);
    if (step(f)) return -1;
    if (!f->exists || !covers(deletion, address->kind, address->ck)) return 0;
    if (copy(f, &row)) return -1;
    if (remains(&row, ENG_NO_TS) && is_hit(&row, deletion->row.del_ts) && add_size(f, deletion->cost, &row)) return -1;
    arena_rewind(&f->rows, mark);
    if (deletion->row.del_ts > f->state.del_ts) {
        f->state.del_ts = deletion->row.del_ts;
        f->state.del_at = ENG_COVERED;
    }
    return 0;
}

/* Applies the changes of one row and, between them, the deletions that cover it, in their order. */
static int walk(struct row_sizing *f, const struct placed_change *t, uint32_t n) {
    const struct eng_row *address = &t->change->row;
    uint32_t next = 0;
    arena_reset(&f->rows);
    f->exists = false;
    f->n_applied = 0;
    /* The first change hides the stored row, but its deletions count with client timestamps. */
    bool bare = !f->n_deletions && address->covers_below && !f->view.layout->has_timestamps;
    if (!bare && load(f, address)) return -1;
    for (uint32_t i = 0; i < n; i++) {
        for (; next < f->n_deletions && f->deletions[next].at < t[i].at; next++)
            if (apply_deletion(f, address, f->deletions[next].change)) return -1;
        if (step(f) || apply_change(f, t[i].change)) return -1;
    }
    for (; next < f->n_deletions; next++)
        if (apply_deletion(f, address, f->deletions[next].change)) return -1;
    return 0;
}

/* Sizes one row under deletion i of a range or partition. Returns 0 to continue, 1 if there are no
 * more rows, or -1 on error. */
static int size_deleted_item(struct row_sizing *f, uint32_t i, struct eng_item *item) {
    const struct change *deletion = f->deletions[i].change;
    struct op_write *c = deletion->cost;
    uint64_t before = c->image.row.rows;
    if (item->kind == ENG_ITEM_PARTITION && !item->has_static) return 0;
    int rc = count_deleted(f, c);
    if (rc) return rc;
    struct eng_row *row = item->kind == ENG_ITEM_PARTITION ? &item->statics : item->row;
    for (uint32_t from = 0, to = f->n_rows; from < to;) {
        uint32_t middle = from + (to - from) / 2;
        const struct eng_row *changed = &f->row_changes[middle].change->row;
        int order = changed->kind != row->kind ? (changed->kind < row->kind ? -1 : 1) : slice_cmp(changed->ck, row->ck);
        if (order == 0) return 0; /* apply_deletion sized it */
        if (order < 0) from = middle + 1;
        else to = middle;
    }
    /* The first deletion that covers the row removes it or a part of it. */
    for (uint32_t k = 0; k < i; k++) {
        const struct change *earlier = f->deletions[k].change;
        if (step(f)) return -1;
        if (covers(earlier, row->kind, row->ck) && !remains(row, earlier->row.del_ts)) return 0;
    }
    if (is_hit(row, deletion->row.del_ts) && add_size(f, c, row)) return -1;
    /* Applies Keyspaces' limit once, at the first row over it. */
    bool over = before <= QUOTA_RANGE_DELETE_ROWS && c->image.row.rows > QUOTA_RANGE_DELETE_ROWS;
    return over ? compat_refuse(&f->compat, REFUSE_RANGE_DELETE, f->r->err) : 0;
}

/* Sizes a deletion of a range or the partition; the scan delivers everything that is stored. */
static int size_deletion(struct row_sizing *f, uint32_t i) {
    struct cql_run *r = f->r;
    const struct change *c = f->deletions[i].change;
    bool partition = c->kind == CHANGE_PARTITION;
    struct eng_scan_spec spec = {.table = f->m->part.table, .part = &f->m->part,
                                 .slices = partition ? NULL : &c->range,
                                 .n_slices = !partition,
                                 .statics = partition,
                                 .rows = true,
                                 .now = ENG_NEVER_EXPIRES};
    c->cost->image.known = IMAGE_FOUND;
    struct eng_scan *scan = eng_scan_open(r->db->options.eng, ENG_TIER_ANY, &spec, NULL, r->err);
    if (!scan) return -1;
    /* The scan skips deleted rows, and pauses to have the deadline checked. */
    int rc = ENG_PAUSED, end = 0;
    while (rc == ENG_PAUSED && !end) {
        struct eng_item item;
        if (cql_check_running(r)) {
            rc = -1;
            break;
        }
        eng_scan_allow(scan, PART_STEPS, PART_BYTES);
        while (!end && (rc = eng_scan_next(scan, &item, r->err)) == 1) end = size_deleted_item(f, i, &item);
    }
    eng_scan_close(scan);
    return end ? (end < 0 ? -1 : 0) : rc;
}

/* ---- a partition ---- */

static int walk_all(struct row_sizing *f) {
    if (f->n_deletions && !f->r->blocking) {
        f->work->incomplete = true;
        return -1;
    }
    for (uint32_t from = 0, to; from < f->n_rows; from = to) {
        const struct placed_change *t = &f->row_changes[from];
        const struct eng_row *row = &t->change->row;
        bool read = f->n_deletions > 0; /* a change of the row is not sized as written */
        for (to = from; to < f->n_rows; to++) {
            const struct change *c = f->row_changes[to].change;
            if (c->row.kind != row->kind || !slice_eq(c->row.ck, row->ck)) break;
            read = read || !c->cost || c->cost->image.known != IMAGE_AS_WRITTEN;
        }
        if (read && walk(f, t, to - from)) return -1;
    }
    for (uint32_t i = 0; i < f->n_deletions; i++)
        if (size_deletion(f, i)) return -1;
    return 0;
}

static int size_partition(struct cql_run *r, const struct mutation *m, const struct compat *k, struct work *work) {
    struct row_sizing f = {.r = r, .m = m, .compat = compat_in(r, k), .work = work};
    compat_is_of(&f.compat, m->table->keyspace->name, m->table->name);
    assert(mutation_is_locked(r, m));
    assert(!m->by_cells || m->by_cells->table == m->table); /* M1 */
    const struct row_view_layout *layout = m->by_cells ? m->by_cells : row_view_layout_of_cells(m->table, r->arena);
    uint32_t n = 0, at = 0;
    for (const struct change *c = m->first; c; c = c->next) n++;
    f.row_changes = ARENA_ARRAY(r->arena, n + 1, struct placed_change);
    f.deletions = ARENA_ARRAY(r->arena, n + 1, struct placed_change);
    if (!layout || !f.row_changes || !f.deletions) return err_nomem(r->err);
    for (const struct change *c = m->first; c; c = c->next, at++) {
        const struct placed_change t = {.change = c, .at = at};
        if (c->kind == CHANGE_ROW) f.row_changes[f.n_rows++] = t;
        else f.deletions[f.n_deletions++] = t;
    }
    if (f.n_rows > 1) qsort(f.row_changes, f.n_rows, sizeof *f.row_changes, by_row);
    arena_init_in(&f.rows, r->arena->share, CHUNK, 0);
    arena_init_in(&f.values, r->arena->share, CHUNK, 0);
    for (int i = 0; i < 2; i++) arena_init_in(&f.applied[i], r->arena->share, CHUNK, 0);
    int rc = row_view_init(&f.view, layout, 1, &f.values, r->err);
    if (rc == 0) row_sizer_init(&f.sizer, &f.view, r->cost);
    if (rc == 0) rc = walk_all(&f);
    for (int i = 0; i < 2; i++) arena_fini(&f.applied[i]);
    arena_fini(&f.values);
    arena_fini(&f.rows);
    return rc;
}

int size_by_rows(const struct mutations *m, const struct compat *k) {
    struct work work = {0};
    for (uint32_t i = 0; i < m->n; i++)
        if (size_partition(m->r, &m->list[i], k, &work)) return work.incomplete ? ENG_INCOMPLETE : -1;
    return 0;
}
