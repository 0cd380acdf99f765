/* The front of an engine, the same for every store (struct store_front of engine/store.h): views and
 * pins of tables, ballots of locked partitions, sequences. */
#include "engine/local/commit.h"
#include "engine/local/eng.h"
#include "engine/local/stripe.h"
#include "engine/local/table.h"

static struct eng *eng_of(struct store *s) { return (struct eng *)s; }

static void begin(struct store *s, uint32_t table, struct store_view *view) {
    struct eng *eng = eng_of(s);
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, table);
    view->section = (uint64_t)section.stripe << 32 | section.phase;
    view->table = t;
    view->dropped = engi_dropped_of(t);
    view->gone = UNLIKELY(!t) && engi_table_was_freed(eng, table);
}

static void end(struct store *s, const struct store_view *view) {
    struct engi_section section = {.stripe = (uint32_t)(view->section >> 32), .phase = (uint32_t)view->section};
    engi_leave(&eng_of(s)->epoch, section);
}

static void *pin(struct store *s, uint32_t table, struct err *e) { return engi_table_pin(eng_of(s), table, e); }
static void unpin(struct store *s, void *table) { engi_table_unpin(eng_of(s), table); }
static uint64_t written(struct store *s) { return engi_commit_next_seq(eng_of(s)); }

const struct store_front engi_front = {
    .begin = begin,
    .end = end,
    .pin = pin,
    .unpin = unpin,
    .ballot = engi_ballot,
    .ballot_moved = engi_ballot_moved,
    .written = written,
};
