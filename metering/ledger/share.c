#include "metering/ledger/share.h"

#include <stdlib.h>

#include "base/array.h"

void shares_fini(struct shares *s) {
    for (size_t i = 0; i < s->n; i++) {
        stats_fini(&s->items[i]->stats);
        free(s->items[i]);
    }
    free(s->items);
    free(s->hidden);
    *s = (struct shares){0};
}

struct share *shares_open(struct shares *s, uint64_t id) {
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i]->id == id) return s->items[i];
    if (array_room(&s->items, s->n, &s->cap, sizeof(s->items[0]))) return NULL;
    struct share *one = calloc(1, sizeof(*one));
    if (!one) return NULL;
    one->id = id;
    return s->items[s->n++] = one;
}

void shares_close(struct shares *s, uint64_t id) {
    size_t i = 0;
    while (i < s->n && s->items[i]->id != id) i++;
    if (i == s->n) return;
    stats_fini(&s->items[i]->stats);
    free(s->items[i]);
    memmove(&s->items[i], &s->items[i + 1], (--s->n - i) * sizeof(s->items[0]));
}

/* Reads records: 0; 1: they are damaged; -1: no memory. */
static int read_records(struct stats *out, struct slice records) {
    uint32_t latest = 0;
    int64_t n = journal_take(out, records, &latest);
    return n < 0 ? -1 : (size_t)n < records.n;
}

/* Moves the minutes that `to` has no newer ones for. The totals of `to` contain them already. */
static void keep_minutes(struct table_stats *to, struct table_stats *from) {
    for (int i = 0; i < STATS_MINUTES; i++) {
        if (to->minutes[i] || !from->minutes[i]) continue;
        to->minutes[i] = from->minutes[i];
        from->minutes[i] = NULL;
    }
}

void share_remove(struct share *s, uint32_t object) {
    struct table_stats *t = object_list_remove(&s->stats.tables, object);
    if (t) stats_table_free(t);
}

int share_take(struct share *s, uint32_t object, struct slice records) {
    struct stats fresh = {0};
    int rc = read_records(&fresh, records);
    struct table_stats *before = stats_find(&s->stats, object);
    struct table_stats *t = rc == 0 ? object_list_remove(&fresh.tables, object) : NULL;
    if (rc == 0 && object == SHARE_DROPPED) s->stats.dropped = fresh.dropped;
    else if (rc == 0 && !t) rc = 1;
    stats_fini(&fresh);
    s->damaged = s->damaged || rc > 0;
    if (!t) return rc;
    if (before) {
        keep_minutes(t, before);
        share_remove(s, object);
    }
    if (object_list_add(&s->stats.tables, t) == 0) return 0;
    stats_table_free(t);
    return -1;
}

static bool is_hidden(const struct shares *s, uint32_t object) {
    return s->n_hidden && bsearch(&object, s->hidden, s->n_hidden, sizeof(*s->hidden), array_u32_order);
}

bool shares_next(const struct shares *s, uint64_t from, uint32_t *object) {
    bool found = false;
    for (size_t i = 0; i < s->n && from <= UINT32_MAX; i++) {
        const struct object_list *tables = &s->items[i]->stats.tables;
        uint32_t k = object_list_from(tables, (uint32_t)from);
        while (k < tables->n && is_hidden(s, stats_at(&s->items[i]->stats, k)->object)) k++;
        if (k == tables->n) continue;
        uint32_t o = stats_at(&s->items[i]->stats, k)->object;
        if (!found || o < *object) *object = o;
        found = true;
    }
    return found;
}

static int add_minutes(struct table_stats *to, const struct table_stats *from) {
    for (int i = 0; i < STATS_MINUTES; i++) {
        const struct stats_minute *m = from->minutes[i];
        struct stats_minute **at = &to->minutes[i];
        if (!m || (*at && (*at)->minute > m->minute)) continue;
        if (!*at && !(*at = calloc(1, sizeof(**at)))) return -1;
        if ((*at)->minute != m->minute) **at = (struct stats_minute){.minute = m->minute};
        cell_add(&(*at)->cell, &m->cell);
    }
    return 0;
}

struct table_stats *shares_sum(const struct shares *s, const struct table_stats *own, uint32_t object) {
    struct table_stats *sum = calloc(1, sizeof(*sum));
    if (!sum) return NULL;
    if (own) {
        *sum = *own;
        memset(sum->minutes, 0, sizeof(sum->minutes));
        sum->limits = (struct stats_blob){0};
    }
    int rc = own ? add_minutes(sum, own) : 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        const struct table_stats *t = stats_find(&s->items[i]->stats, object);
        if (!t) continue;
        if (!*sum->name) {
            sum->object = object;
            memcpy(sum->keyspace, t->keyspace, sizeof(sum->keyspace));
            memcpy(sum->name, t->name, sizeof(sum->name));
        }
        figures_add(&sum->total, &t->total);
        rc = add_minutes(sum, t);
    }
    if (rc == 0) return sum;
    stats_table_free(sum);
    return NULL;
}

struct figures shares_dropped(const struct shares *s) {
    struct figures sum = {0};
    for (size_t i = 0; i < s->n; i++) {
        const struct stats *b = &s->items[i]->stats;
        figures_add(&sum, &b->dropped);
        for (uint32_t k = 0; k < s->n_hidden; k++) {
            const struct table_stats *t = stats_find(b, s->hidden[k]);
            if (t) figures_add(&sum, &t->total);
        }
    }
    return sum;
}

/* ---- folding ---- */

uint32_t share_newest(const struct stats *s) {
    uint32_t newest = 0;
    for (uint32_t i = 0; i < s->tables.n; i++)
        for (int m = 0; m < STATS_MINUTES; m++) {
            const struct stats_minute *minute = stats_at(s, i)->minutes[m];
            if (minute && minute->minute > newest) newest = minute->minute;
        }
    return newest;
}

/* A table without minutes. NULL: no memory. */
static struct table_stats *totals_of(const struct table_stats *t) {
    struct table_stats *copy = calloc(1, sizeof(*copy));
    if (!copy) return NULL;
    copy->object = t->object;
    memcpy(copy->keyspace, t->keyspace, sizeof(copy->keyspace));
    memcpy(copy->name, t->name, sizeof(copy->name));
    copy->total = t->total;
    return copy;
}

static int put_totals(const struct table_stats *t, const struct table_stats *more, struct buf *out) {
    struct table_stats *sum = totals_of(t);
    if (!sum) return -1;
    if (more) figures_add(&sum->total, &more->total);
    journal_put_share(out, sum);
    stats_table_free(sum);
    return buf_failed(out) ? -1 : 0;
}

/* Reports the tables of a share that are hidden as gone, and adds them to the dropped ones. */
static int fold_hidden(const struct shares *s, const struct share *one, struct figures *dropped, share_fn fn,
                       void *arg) {
    int rc = 0;
    for (uint32_t i = 0; !rc && i < one->stats.tables.n; i++) {
        const struct table_stats *t = stats_at(&one->stats, i);
        if (!is_hidden(s, t->object)) continue;
        figures_add(dropped, &t->total);
        rc = fn(arg, t->object, (struct slice){0});
    }
    return rc;
}

static int fold_dropped(const struct shares *s, const struct share *from, const struct share *common, share_fn fn,
                        void *arg) {
    struct stats sum = {.dropped = from->stats.dropped};
    struct buf out;
    figures_add(&sum.dropped, &common->stats.dropped);
    int rc = fold_hidden(s, from, &sum.dropped, fn, arg) || fold_hidden(s, common, &sum.dropped, fn, arg) ? -1 : 0;
    buf_init(&out, 0);
    journal_put_share_of_dropped(&out, &sum);
    if (!rc) rc = buf_failed(&out) ? -1 : fn(arg, SHARE_DROPPED, buf_slice(&out));
    buf_fini(&out);
    return rc;
}

int shares_fold(struct shares *s, uint64_t id, share_fn fn, void *arg) {
    struct share *from = shares_open(s, id), *common = shares_open(s, SHARE_COMMON);
    struct buf out;
    int rc = from && common ? 0 : -1;
    buf_init(&out, 0);
    for (uint32_t i = 0; !rc && i < from->stats.tables.n; i++) {
        const struct table_stats *t = stats_at(&from->stats, i);
        if (is_hidden(s, t->object)) continue;
        out.n = 0;
        rc = put_totals(t, stats_find(&common->stats, t->object), &out);
        if (!rc) rc = fn(arg, t->object, buf_slice(&out));
    }
    buf_fini(&out);
    return rc ? rc : fold_dropped(s, from, common, fn, arg);
}

void share_put_totals(const struct stats *s, struct buf *out) {
    for (uint32_t i = 0; i < s->tables.n; i++)
        if (put_totals(stats_at(s, i), NULL, out)) out->failed = true;
    journal_put_share_of_dropped(out, s);
}

static bool raise(uint64_t *to, uint64_t least) {
    if (*to >= least) return false;
    *to = least;
    return true;
}

static bool raise_all(struct figures *to, const struct figures *least) {
    bool raised = false;
    for (int i = 0; i < FIGURES; i++) raised |= raise(&to->n[i], least->n[i]);
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) raised |= raise(&to->of[o][i], least->of[o][i]);
    return raised;
}

int share_recover(struct stats *own, struct slice records) {
    struct stats shared = {0};
    int rc = read_records(&shared, records);
    raise_all(&own->dropped, &shared.dropped);
    for (uint32_t i = 0; rc == 0 && i < shared.tables.n; i++) {
        const struct table_stats *t = stats_at(&shared, i);
        /* This ledger has dropped it, and what it had is in own->dropped. */
        if (!stats_find(own, t->object) && object_list_find(&own->gone, t->object)) continue;
        struct table_stats *to = stats_open(own, t->object, t->keyspace, t->name);
        if (!to) rc = -1;
        else if (raise_all(&to->total, &t->total)) to->overran = true; /* so that the whole file is rewritten */
    }
    stats_fini(&shared);
    return rc;
}

static void drop_minutes(struct table_stats *t, uint32_t before) {
    for (int i = 0; i < STATS_MINUTES; i++) {
        if (!t->minutes[i] || t->minutes[i]->minute >= before) continue;
        free(t->minutes[i]);
        t->minutes[i] = NULL;
    }
}

int share_forget(struct stats *own, struct slice receipt, uint32_t minute) {
    struct stats folded = {0};
    int rc = read_records(&folded, receipt);
    if (rc == 0) rc = share_recover(own, receipt); /* the rest cannot fail */
    for (uint32_t i = 0; rc == 0 && i < folded.tables.n; i++) {
        const struct table_stats *t = stats_at(&folded, i);
        struct table_stats *to = stats_find(own, t->object);
        if (to) {
            figures_sub(&to->total, &t->total);
            drop_minutes(to, minute);
            to->unshared = true;
        } else {
            figures_add(&folded.dropped, &t->total); /* this ledger has dropped the table since */
        }
    }
    if (rc == 0) {
        raise_all(&own->dropped, &folded.dropped);
        figures_sub(&own->dropped, &folded.dropped);
    }
    stats_fini(&folded);
    return rc;
}
