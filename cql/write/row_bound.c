#include "cql/write/row_bound.h"

#include <stdlib.h>

#include "base/murmur3.h"
#include "base/random.h"
#include "cql/request/db.h"

enum { COUNTERS = 4096, MEASURES = 16 /* of a row, until it reaches the bound */ };

struct row_bound {
    uint64_t max_bytes, seed;
    _Atomic uint64_t written[COUNTERS]; /* bytes since a row of the counter was last measured */
    _Atomic uint64_t full[COUNTERS];    /* the hash of a row that was found at its bound; 0 if none */
};

struct row_bound *row_bound_new(uint64_t max_bytes, struct err *e) {
    struct row_bound *b = calloc(1, sizeof *b);
    if (!b) return err_null(err_nomem(e));
    b->max_bytes = max_bytes;
    if (random_bytes(&b->seed, sizeof b->seed, e) == 0) return b;
    free(b);
    return NULL;
}

void row_bound_free(struct row_bound *b) { free(b); }

static uint64_t bytes_of(const struct eng_row *row) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) n += row->cells[i].path.n + row->cells[i].value.n;
    return n;
}

static int check_row(struct cql_run *r, const struct mutation *m, const struct eng_row *delta) {
    struct row_bound *b = r->db->row_bound;
    const struct eng_part *part = &m->part;
    uint64_t growth = bytes_of(delta), size = 0;
    if (!growth) return 0;
    uint64_t h = b->seed ^ (uint64_t)part->token ^ (uint64_t)part->table << 32 ^ delta->kind;
    if (delta->ck.n) h = h * UINT64_C(0x9E3779B97F4A7C15) ^ murmur3_hash(delta->ck);
    h *= UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    _Atomic uint64_t *written = &b->written[h % COUNTERS], *full = &b->full[h % COUNTERS];
    bool is_full = atomic_load_explicit(full, memory_order_relaxed) == h;
    uint64_t sum = atomic_fetch_add_explicit(written, growth, memory_order_relaxed) + growth;
    if (LIKELY(!is_full && sum < b->max_bytes / MEASURES)) return 0;
    /* Measures the row as the write leaves it. */
    struct eng_row stored, after;
    struct arena_mark mark = arena_mark(r->arena);
    int rc = eng_row_get(r->db->options.eng, r->blocking ? ENG_TIER_ANY : ENG_TIER_CACHE, part, delta->kind, delta->ck,
                         ENG_AS_STORED, r->arena, &stored, NULL, r->err);
    if (rc == 1 && eng_row_lay(&stored, delta, r->arena, &after)) rc = err_nomem(r->err);
    if (rc < 0) return rc;
    if (rc == 1) size = bytes_of(&after);
    arena_rewind(r->arena, mark);
    atomic_store_explicit(written, 0, memory_order_relaxed);
    bool over = size > b->max_bytes;
    if (over != is_full) atomic_store_explicit(full, over ? h : 0, memory_order_relaxed);
    if (!over) return 0;
    return err_invalid(r->err,
                       "Guardrail row_size violated: Row of %s.%s has size %llu bytes, this exceeds the failure "
                       "threshold of %llu bytes.",
                       m->table->keyspace->name, m->table->name, (unsigned long long)size,
                       (unsigned long long)b->max_bytes);
}

int row_bound_check(const struct mutations *m) {
    struct cql_run *r = m->r;
    if (!r->db->row_bound) return 0;
    for (uint32_t i = 0; i < m->n; i++)
        for (const struct change *c = m->list[i].first; c; c = c->next) {
            int rc = c->kind == CHANGE_ROW ? check_row(r, &m->list[i], &c->row) : 0;
            if (rc) return rc;
        }
    return 0;
}
