#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/engine/world.h"

static int64_t read_clock(struct clock *c) { return ((struct world *)c)->seconds * 1000000; }

struct world *world_new(const char *store, int64_t seconds, const struct eng_options *o) {
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->clock = (struct clock){.wall_us = read_clock, .mono_us = read_clock};
    w->seconds = seconds;
    w->options = *o;
    w->ts = 1000;
    w->seed = 88172645463325252u;
    if (!o->clock) w->options.clock = &w->clock;
    if (strcmp(store, "local") == 0) folder_make(w->folder);
    else assert_string_equal(store, "memory");
    if (*w->folder) w->options.data_dir = w->folder;
    arena_init(&w->arena, 4096, 0);
    buf_init(&w->text, 0);
    world_open(w);
    return w;
}

void world_open(struct world *w) {
    w->eng = eng_open(&w->options, &w->e);
    if (!w->eng) fail_msg("%s", w->e.text);
    w->batch = eng_batch_new(w->eng);
}

void world_close(struct world *w) {
    eng_batch_free(w->batch);
    eng_close(w->eng);
}

int world_teardown(void **state) {
    struct world *w = *state;
    world_close(w);
    arena_fini(&w->arena);
    buf_fini(&w->text);
    if (*w->folder) folder_remove(w->folder);
    free(w);
    return 0;
}

void add_cell(struct eng_batch *b, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_cell cell) {
    struct eng_row row;
    struct err e = {0};
    eng_row_init(&row, kind, slice_str(ck));
    row.cells = &cell;
    row.n_cells = 1;
    assert_int_equal(eng_batch_row(b, part, &row, NULL, &e), 0);
}

void add_row_deletion(struct world *w, uint32_t table, const char *pk, const char *ck, int64_t ts) {
    struct eng_part part = part_of(table, pk);
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_str(ck));
    row.del_ts = ts;
    row.del_at = w->seconds;
    assert_int_equal(eng_batch_row(w->batch, &part, &row, NULL, &w->e), 0);
}

void add_range_deletion(struct world *w, uint32_t table, const char *pk, struct eng_slice range, int64_t ts) {
    struct eng_part part = part_of(table, pk);
    assert_int_equal(eng_batch_delete_range(w->batch, &part, &range, ts, w->seconds, NULL, &w->e), 0);
}

uint64_t commit(struct world *w) {
    uint64_t seq = 0;
    if (eng_batch_commit(w->batch, &seq, &w->e)) fail_msg("%s", w->e.text);
    return seq;
}

int world_get(struct world *w, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind, const char *ck,
              struct eng_row *row) {
    return eng_row_get(w->eng, tier, part, kind, slice_str(ck), w->seconds, &w->arena, row, &w->cost, &w->e);
}

const char *scan_text(struct world *w, const struct eng_scan_spec *spec) {
    struct buf out;
    struct eng_item item;
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, spec, NULL, &w->e);
    assert_non_null(s);
    buf_init(&out, 0);
    int got;
    while ((got = eng_scan_next(s, &item, &w->e)) > 0) {
        if (item.kind == ENG_ITEM_PARTITION) {
            buf_printf(&out, "%s%.*s", out.n ? "; " : "", SLICE_FMT(item.part.key));
            if (item.has_static) buf_printf(&out, "/%.*s", SLICE_FMT(item.statics.cells[0].value));
        } else {
            buf_printf(&out, " %.*s=%.*s", SLICE_FMT(item.row->ck), SLICE_FMT(item.row->cells[0].value));
        }
    }
    assert_int_equal(got, 0);
    eng_scan_close(s);
    const char *text = (const char *)arena_dup(&w->arena, buf_slice(&out)).p;
    buf_fini(&out);
    return text;
}
