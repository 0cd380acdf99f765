#include "tools/tally/stress/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/tally/show.h"

enum { SPARK = 60, LINES = 12 /* of the screen, plus one */, HOT_SHOWN = 5 };

void view_spark(const double *values, size_t n, struct buf *out) {
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (values[i] > most) most = values[i];
    for (size_t i = 0; i < n; i++) buf_put_str(out, blocks[most > 0 ? (size_t)(values[i] / most * 7.0) : 0]);
}

static void put_screen(const struct stress *s, double at, struct buf *out) {
    const struct score *c = &s->score;
    const struct score_second *last = c->n_seconds ? &c->seconds[c->n_seconds - 1] : &c->current;
    buf_printf(out, "%s%.0f s%s\x1b[K\n", s->loading ? "loading, " : "", at, s->plan.rate > 0 ? "" : ", closed loop");
    if (s->loading) buf_printf(out, "%" PRIu64 " of %" PRIu64 " rows", s->loaded, s->plan.load.rows);
    else
        buf_printf(out, "last second %8" PRIu64 " requests %10.3f ms p50 %10.3f ms p99 %6" PRIu64 " throttled",
                   last->sums.requests, (double)last->p50_ns / 1e6, (double)last->p99_ns / 1e6, last->sums.throttled);
    buf_printf(out,
               "\x1b[K\nin all      %8" PRIu64 " requests %10.3f ms p50 %10.3f ms p99 %6" PRIu64 " throttled %" PRIu64
               " failed %" PRIu64 " retries\x1b[K\n",
               c->sums.requests, (double)hist_quantile(&c->latency, 0.5) / 1e6,
               (double)hist_quantile(&c->latency, 0.99) / 1e6, c->sums.throttled, c->sums.failed, c->sums.retries);
    double values[SPARK];
    size_t shown = c->n_seconds < SPARK ? c->n_seconds : SPARK;
    for (size_t i = 0; i < shown; i++) values[i] = (double)c->seconds[c->n_seconds - shown + i].sums.requests;
    view_spark(values, shown, out);
    buf_put_str(out, "\x1b[K\n\x1b[K\nhottest partitions\x1b[K\n");
    const struct score_partition *hot[SCORE_HOTTEST];
    size_t n_hot = score_hottest(c, hot);
    for (size_t i = 0; i < HOT_SHOWN; i++) {
        if (i < n_hot)
            buf_printf(out, "  %-32s %8.0f entities %8.1f read %8.1f write units in its busiest second", hot[i]->label,
                       hot[i]->entities_peak, hot[i]->read_peak, hot[i]->write_peak);
        buf_put_str(out, "\x1b[K\n");
    }
}

void view_show(struct stress *s) {
    uint64_t now = load_now(), every = UINT64_C(1000000000);
    bool screen = isatty(STDERR_FILENO);
    if (now - s->shown_ns < (screen ? every / 4 : every)) return;
    struct buf out;
    buf_init(&out, 0);
    double at = (double)(now - s->begun_ns) / 1e9;
    if (!screen) {
        const struct score *c = &s->score;
        const struct score_second *last = c->n_seconds ? &c->seconds[c->n_seconds - 1] : &c->current;
        if (s->loading) buf_printf(&out, "loading: %" PRIu64 " of %" PRIu64 " rows\n", s->loaded, s->plan.load.rows);
        else
            buf_printf(&out,
                       "%4.0f s  %8" PRIu64 " requests  p50 %.3f ms  p99 %.3f ms  %" PRIu64 " throttled  %" PRIu64
                       " failed\n",
                       at, last->sums.requests, (double)last->p50_ns / 1e6, (double)last->p99_ns / 1e6,
                       last->sums.throttled, last->sums.failed);
    } else {
        if (s->shown_ns) buf_printf(&out, "\x1b[%dA\r", LINES - 1);
        put_screen(s, at, &out);
    }
    s->shown_ns = now;
    fwrite(buf_slice(&out).p, 1, out.n, screen ? show_raw(stderr) : stderr); /* all of it is tally's own */
    buf_fini(&out);
}

void view_end(struct stress *s) {
    if (s->shown_ns && isatty(STDERR_FILENO)) fputc('\n', stderr);
}
