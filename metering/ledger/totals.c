#include "metering/ledger/totals.h"

#include <stdlib.h>

#include "base/array.h"

void totals_fini(struct store_totals *s) {
    for (size_t i = 0; i < s->n; i++) {
        stats_fini(&s->servers[i]->stats);
        free(s->servers[i]);
    }
    free(s->servers);
    free(s->hidden);
    *s = (struct store_totals){0};
}

/* Returns 0, 1 if the records are damaged, or -1 if memory is exhausted. */
static int read_records(struct stats *out, struct slice records) {
    uint32_t latest = 0;
    int64_t n = journal_take(out, records, &latest);
    return n < 0 ? -1 : (size_t)n < records.n;
}

static struct server_totals *server_of(struct store_totals *s, uint64_t id) {
    for (size_t i = 0; i < s->n; i++)
        if (s->servers[i]->id == id) return s->servers[i];
    if (array_room(&s->servers, s->n, &s->cap, sizeof(s->servers[0]))) return NULL;
    struct server_totals *one = calloc(1, sizeof(*one));
    if (!one) return NULL;
    one->id = id;
    return s->servers[s->n++] = one;
}

int totals_put(struct store_totals *s, uint64_t id, uint32_t object, struct slice records) {
    struct server_totals *server = server_of(s, id);
    struct stats fresh = {0};
    int rc = !server ? -1 : records.p ? read_records(&fresh, records) : 0;
    struct table_stats *t = rc ? NULL : object_list_remove(&fresh.tables, object);
    if (!rc && object == TOTALS_DROPPED && records.p) server->stats.dropped = fresh.dropped;
    else if (!rc && !t && records.p) rc = 1;
    stats_fini(&fresh);
    if (rc) return rc;
    struct table_stats *before = object_list_remove(&server->stats.tables, object);
    for (int i = 0; t && before && i < STATS_MINUTES; i++) { /* the totals of t contain them */
        if (t->minutes[i] || !before->minutes[i]) continue;
        t->minutes[i] = before->minutes[i];
        before->minutes[i] = NULL;
    }
    if (before) stats_table_free(before);
    if (!t || object_list_add(&server->stats.tables, t) == 0) return 0;
    stats_table_free(t);
    return -1;
}

bool totals_next(const struct store_totals *s, uint64_t from, uint32_t *object) {
    bool found = false;
    for (size_t i = 0; i < s->n && from <= UINT32_MAX; i++) {
        const struct object_list *tables = &s->servers[i]->stats.tables;
        uint32_t k = object_list_from(tables, (uint32_t)from);
        while (k < tables->n && s->n_hidden &&
               bsearch(&stats_at(&s->servers[i]->stats, k)->object, s->hidden, s->n_hidden, sizeof(*s->hidden),
                       array_u32_order))
            k++;
        if (k == tables->n) continue;
        uint32_t o = stats_at(&s->servers[i]->stats, k)->object;
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

struct table_stats *totals_sum(const struct store_totals *s, const struct table_stats *own, uint32_t object) {
    struct table_stats *sum = calloc(1, sizeof(*sum));
    if (!sum) return NULL;
    if (own) {
        *sum = *own;
        memset(sum->minutes, 0, sizeof(sum->minutes));
        sum->limits = (struct stats_blob){0};
    }
    int rc = own ? add_minutes(sum, own) : 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        const struct table_stats *t = stats_find(&s->servers[i]->stats, object);
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

struct figures totals_dropped(const struct store_totals *s) {
    struct figures sum = {0};
    for (size_t i = 0; i < s->n; i++) {
        const struct stats *b = &s->servers[i]->stats;
        figures_add(&sum, &b->dropped);
        for (uint32_t k = 0; k < s->n_hidden; k++) {
            const struct table_stats *t = stats_find(b, s->hidden[k]);
            if (t) figures_add(&sum, &t->total);
        }
    }
    return sum;
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

int totals_recover(struct stats *own, struct slice records) {
    struct stats stored = {0};
    int rc = read_records(&stored, records);
    raise_all(&own->dropped, &stored.dropped);
    for (uint32_t i = 0; rc == 0 && i < stored.tables.n; i++) {
        const struct table_stats *t = stats_at(&stored, i);
        /* This ledger has dropped the table, and its sums are in own->dropped. */
        if (!stats_find(own, t->object) && object_list_find(&own->gone, t->object)) continue;
        struct table_stats *to = stats_open(own, t->object, t->keyspace, t->name);
        if (!to) rc = -1;
        else if (raise_all(&to->total, &t->total)) to->overran = true; /* so that the whole file is rewritten */
    }
    stats_fini(&stored);
    return rc;
}
