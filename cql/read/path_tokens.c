/* A range of tokens, or the ring: one scan.
 *
 * Partitions are stored in the order of Murmur3's tokens. A range of MD5's tokens is a scan of the ring that
 * skips the partitions outside of it, before they are read or charged; rows and pages are in the
 * order of the scan.
 */
#include "base/murmur3.h"
#include "cql/read/engine_source.h"
#include "cql/read/select.h"

struct range {
    bool any, taken; /* the range is not empty; its scan has begun */
    int64_t from, to; /* of the scan */
    struct ring_range asked;
    const struct paging_state *resume;
};

static int wants(void *source, const struct eng_part *part, struct err *e) {
    struct engine_source *s = source;
    const struct range *k = s->keys;
    s->quarters_seen |= 1u << path_tokens_quarter(part->token);
    return ring_range_has(&k->asked, part, e);
}

static int next_piece(struct engine_source *s, void *keys, struct piece *out) {
    struct range *k = keys;
    if (k->taken) return 0;
    /* The storage partition in which the range begins may be empty before the range: a range that includes
     * its end then pays for it. No token is the smallest number. */
    uint32_t first = path_tokens_quarter(k->from);
    int64_t start = path_tokens_quarter_start(first);
    if (k->any && !k->resume && k->from > start + 1 && k->to >= path_tokens_quarter_end(first)) {
        int rc = engine_source_probe(s, start, k->from - 1);
        if (rc < 0) return rc;
        if (rc > 0) s->quarters_seen |= 1u << first;
    }
    *out = (struct piece){.kind = k->any ? PIECE_SCAN : PIECE_EMPTY,
                          .token_from = k->from,
                          .token_to = k->to,
                          .wants = k->asked.partitioner == PARTITIONER_MURMUR3 ? NULL : wants,
                          .resume = k->resume};
    k->taken = true;
    return 1;
}

static struct read_source *open(const struct read_spec *spec, bool *none) {
    struct range *k = ARENA_NEW(spec->r->arena, struct range);
    if (!k) return err_null(err_nomem(spec->r->err));
    *none = false;
    int some = where_tokens(spec->plan->where, &spec->r->eval, &k->asked);
    bool all = k->asked.partitioner != PARTITIONER_MURMUR3;
    if (some < 0) return NULL;
    k->any = some > 0;
    k->from = all ? INT64_MIN : (int64_t)((uint64_t)k->asked.from ^ 1ull << 63);
    k->to = all ? INT64_MAX : (int64_t)((uint64_t)k->asked.to ^ 1ull << 63);
    k->resume = spec->resume;
    if (k->resume && k->any) {
        const struct eng_part part = {.key = k->resume->key, .token = murmur3_token(k->resume->key)};
        int inside = ring_range_has(&k->asked, &part, spec->r->err);
        if (inside == 0) (void)paging_refuse(spec->r->err);
        if (inside <= 0) return NULL;
    }
    struct read_source *source = engine_source_new(spec, &path_tokens, next_piece, k, READ_BATCH, false);
    if (source && k->resume)
        ((struct engine_source *)source)->quarters_seen = 1u << path_tokens_quarter(murmur3_token(k->resume->key));
    return source;
}

/* Charges for the storage partitions that the page scanned to their end, and that are empty. A range of MD5's
 * tokens pays for one if it includes the end of the same quarter of the MD5 ring, so that all ranges
 * of that ring together pay for each once. */
static void end(struct read_source *source) {
    struct engine_source *s = (struct engine_source *)source;
    const struct range *k = s->keys;
    if (!k->any) return;
    uint32_t first = path_tokens_quarter(k->resume ? murmur3_token(k->resume->key) : k->from);
    uint32_t last = path_tokens_quarter(source->exhausted ? k->to : murmur3_token(s->key.is));
    for (uint32_t i = first; i <= last; i++) {
        ring_position end = ring_quarter_end(k->asked.partitioner, i);
        bool pays = end >= k->asked.from && end <= k->asked.to;
        s->spec.r->cost->empty_partitions += pays && !(s->quarters_seen & 1u << i);
    }
}

const struct access_path path_tokens = {.work_class = WORK_SCAN,
                                        .open = open,
                                        .begin_part = engine_source_begin_part,
                                        .unread = engine_source_unread,
                                        .position = engine_source_position,
                                        .end = end,
                                        .close = engine_source_close};
