/* system.size_estimates and system.table_estimates: the number and size of a table's partitions on
 * each half of the ring. Clients that read a table in ranges use them (the Spark connector does).
 *
 * Where clients see the ring of MD5's tokens, its halves are shown with the figures of Murmur3's: the
 * sums are the same, and each half has about half of them.
 *
 * A range is sampled from its beginning up to a bound. Tokens are spread evenly, so that the sample
 * gives an estimate of the rest. A smaller table is counted exactly.
 */
#include "system_schema/system_tables/system_table.h"

enum { SAMPLE_PARTITIONS = 2000, SAMPLE_ROWS = 20000, ROW_OVERHEAD = 8, CELL_OVERHEAD = 12 };

struct estimate {
    uint64_t partitions, bytes; /* seen */
    int64_t last;               /* token of the last partition seen */
    bool whole;
};

static uint64_t bytes_of(const struct eng_row *row) {
    uint64_t n = row->ck.n + ROW_OVERHEAD;
    for (uint32_t i = 0; i < row->n_cells; i++) n += row->cells[i].path.n + row->cells[i].value.n + CELL_OVERHEAD;
    return n;
}

static int sample(struct row_out *ro, uint32_t storage, int64_t from, int64_t to, struct estimate *out) {
    const struct objects *o = context_of(ro->table)->catalog->objects;
    const struct eng_scan_spec spec = {.table = storage,
                                       .token_from = from,
                                       .token_to = to,
                                       .statics = true,
                                       .rows = true,
                                       .now = clock_wall_us(o->clock) / 1000000};
    struct eng_scan *scan = eng_scan_open(o->eng, ENG_TIER_ANY, &spec, NULL, ro->ctx->err);
    struct eng_item item;
    int rc = scan ? 1 : -1;
    *out = (struct estimate){.whole = true};
    for (uint32_t rows = 0; rc > 0 && (rc = eng_scan_next(scan, &item, ro->ctx->err)) > 0; rows++) {
        if (item.kind == ENG_ITEM_PARTITION && (out->partitions == SAMPLE_PARTITIONS || rows >= SAMPLE_ROWS)) {
            out->whole = false;
            break;
        }
        if (item.kind == ENG_ITEM_PARTITION) {
            out->partitions++;
            out->last = item.part.token;
            out->bytes += item.part.key.n + (item.has_static ? bytes_of(&item.statics) : 0);
        } else {
            out->bytes += bytes_of(item.row);
        }
    }
    if (scan) eng_scan_close(scan);
    return rc < 0 ? -1 : 0;
}

static int emit_half(struct row_out *ro, const struct schema_table *t, const char *type, const struct estimate *e,
                     bool lower) {
    bool murmur = ro->ctx->partitioner == PARTITIONER_MURMUR3;
    const char *least = murmur ? "-9223372036854775808" : "-1";
    const char *middle = murmur ? "0" : "85070591730234615865843651857942052864"; /* 2^126 */
    double from = lower ? (double)INT64_MIN : 1, to = lower ? 0 : (double)INT64_MAX;
    uint64_t partitions = e->partitions;
    if (!e->whole && partitions)
        partitions = (uint64_t)((double)partitions * (to - from + 1) / ((double)e->last - from + 1));
    row_names(ro, t);
    row_text(ro, "range_type", type);
    row_text(ro, "range_start", lower ? least : middle);
    row_text(ro, "range_end", lower ? middle : least);
    row_long(ro, "mean_partition_size", e->partitions ? (int64_t)(e->bytes / e->partitions) : 0);
    row_long(ro, "partitions_count", (int64_t)partitions);
    return row_out_emit(ro);
}

/* types: the range_type values of table_estimates; NULL at their end. */
static int each_table(struct row_out *ro, const char *const *types) {
    for (uint32_t i = 0; i < ro->ctx->schema->n_spaces; i++) {
        const struct schema_space *space = ro->ctx->schema->spaces[i];
        if (space->keyspace->is_system || !row_out_wants(ro, 0, space->keyspace->name)) continue;
        struct schema_table_cursor at = schema_tables_begin(&space->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at));) {
            struct estimate halves[2];
            const struct stop_check *p = &ro->ctx->stop_check;
            if (!schema_status_is_listed(t->status)) continue;
            if (p->check && p->check(p->arg)) return -1;
            if (sample(ro, t->storage, INT64_MIN, 0, &halves[0]) || sample(ro, t->storage, 1, INT64_MAX, &halves[1]))
                return -1;
            for (const char *const *type = types; *type; type++)
                for (int half = 0; half < 2; half++)
                    if (emit_half(ro, t, *type, &halves[half], half == 0)) return -1;
        }
    }
    return 0;
}

YIELDS(size_estimates) { return each_table(ro, (const char *const[]){"primary", NULL}); }
YIELDS(table_estimates) {
    return each_table(ro, (const char *const[]){"local_primary", "primary", NULL});
}
