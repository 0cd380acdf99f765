#include "tests/bench/growth.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { CONNECTIONS = 4, IN_FLIGHT = 2, TURNS = 4, AGAIN = 3 };

struct growth_site {
    struct proc proc;
    struct growth_load *load;
};
typedef struct growth_site growth_sites[GROWTH_TARGETS][GROWTH_STEPS];

uint64_t growth_stored(const struct bench_options *o, int step) {
    uint64_t n = o->growth;
    for (int i = step; i < GROWTH_STEPS - 1; i++) n /= GROWTH_FACTOR;
    return n;
}

double growth_ratio(const struct growth_cost c[GROWTH_STEPS]) {
    double first = c[0].best_cpu_us, last = c[GROWTH_STEPS - 1].best_cpu_us;
    return first > 0 && last > 0 ? last / first : 0;
}

double growth_bound(enum growth what) {
    static const double bounds[] = {
        [FLAT] = GROWTH_SPAN / 4.0, [KEPT] = GROWTH_SPAN * 0.375, [ROW] = GROWTH_SPAN * 1.5, [ALL] = GROWTH_SPAN / 4.0};
    return bounds[growth_rows[what].follows];
}

bool growth_holds(enum growth what, double ratio) {
    return growth_rows[what].follows == ALL ? ratio >= growth_bound(what) : ratio <= growth_bound(what);
}

static int start_tallyd(const struct bench_options *o, int step, struct growth_site *s) {
    char dir[256] = "";
    if (o->data_dir) snprintf(dir, sizeof(dir), "%s/growth-%" PRIu64, o->data_dir, growth_stored(o, step));
    const struct proc_flags f = {.durability = "periodic",
                                 .threads = "1",
                                 .dir = o->data_dir ? dir : NULL,
                                 .own_memory = true};
    return proc_start_tallyd(&s->proc, o->tallyd, &f);
}

static int open_site(const struct bench_options *o, enum growth_target t, int step, struct growth_site *s) {
    if (t == GROWTH_OTHER) proc_beside(&s->proc, o->host, o->port, o->pid);
    else if (start_tallyd(o, step, s)) return -1;
    uint64_t n = growth_stored(o, step);
    fprintf(stderr, "  %-16s growth: %" PRIu64 " rows\n", t == GROWTH_OTHER ? o->name : "tallyd", n);
    s->load = growth_load_open(&s->proc, n, CONNECTIONS, IN_FLIGHT);
    if (!s->load || growth_load_fill(s->load)) return -1;
    proc_await_quiet(s->proc.pid);
    return 0;
}

static int open_all(const struct bench_options *o, growth_sites sites) {
    for (int t = 0; t < GROWTH_TARGETS; t++)
        for (int step = 0; step < GROWTH_STEPS; step++)
            if ((t == GROWTH_TALLYD || o->host) && open_site(o, (enum growth_target)t, step, &sites[t][step]))
                return -1;
    return 0;
}

static void close_all(growth_sites sites) {
    for (int t = 0; t < GROWTH_TARGETS; t++)
        for (int step = 0; step < GROWTH_STEPS; step++) {
            growth_load_close(sites[t][step].load);
            if (t == GROWTH_TALLYD) proc_stop(&sites[t][step].proc);
        }
}

/* All sizes in turns, so that what else the machine does meets all of them; the first turn of the first run warms. */
static int measure_turns(const struct bench_options *o, enum growth what, bool first, growth_sites sites,
                         growth_costs costs) {
    int rc = 0;
    for (int turn = first ? -1 : 0; turn < TURNS && !rc; turn++)
        for (int at = 0; at < GROWTH_TARGETS * GROWTH_STEPS && !rc; at++) {
            int t = at / GROWTH_STEPS, step = turn & 1 ? GROWTH_STEPS - 1 - at % GROWTH_STEPS : at % GROWTH_STEPS;
            struct growth_load *g = sites[t][step].load;
            struct growth_cost *c = &costs[t][what][step];
            if (!g) continue;
            if (turn < 0 && growth_load_begin(g, what)) return -1;
            if (turn == 0 && growth_load_ask(g, what, c)) return -1;
            rc = growth_load_run(g, what, o->seconds / TURNS, turn < 0, c);
        }
    return rc;
}

static bool all_hold(enum growth what, growth_sites sites, growth_costs costs) {
    bool hold = true;
    for (int t = 0; t < GROWTH_TARGETS; t++)
        hold = hold && (!sites[t][0].load || growth_holds(what, growth_ratio(costs[t][what])));
    return hold;
}

/* What does not hold has more turns to do so: that other programs were in the way passes, a cost
 * that follows what is stored stays. */
static int measure_one(const struct bench_options *o, enum growth what, bool first, growth_sites sites,
                       growth_costs costs) {
    int rc = measure_turns(o, what, first, sites, costs);
    for (int again = 0; again < AGAIN && !rc && !all_hold(what, sites, costs); again++)
        rc = measure_turns(o, what, false, sites, costs);
    return rc;
}

static bool is_asked(const struct bench_options *o, int what) {
    return bench_asked(o, "growth") || bench_asked(o, growth_rows[what].name);
}

bool growth_asked(const struct bench_options *o) {
    bool any = false;
    for (int what = 0; what < GROWTHS; what++) any = any || is_asked(o, what);
    return o->growth && any;
}

static int measure_run(const struct bench_options *o, unsigned run, growth_sites sites, growth_costs costs) {
    int rc = 0;
    for (int what = 0; what < GROWTHS && !rc; what++) {
        if (!is_asked(o, what)) continue;
        fprintf(stderr, "  %-16s %s\n", "growth", growth_rows[what].name);
        rc = measure_one(o, (enum growth)what, run == 0, sites, costs);
    }
    return rc;
}

int growth_measure(const struct bench_options *o, growth_costs *costs) {
    static growth_sites sites;
    int rc = open_all(o, sites);
    for (unsigned run = 0; run < o->runs && !rc; run++) rc = measure_run(o, run, sites, costs[run]);
    close_all(sites);
    return rc;
}
