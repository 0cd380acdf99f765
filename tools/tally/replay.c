#include "tools/tally/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "tools/tally/table.h"

bool replay_skips(const struct trace *t, const struct trace_request *r) {
    const char *name = trace_name(t, r);
    return r->q.opcode == NP_PREPARE || r->q.outcome == ERR_UNPREPARED || strstr(name, "system_control") ||
           strstr(name, "system_metering");
}

/* ---- sums by statement ---- */

struct replay_sums {
    uint64_t requests, refused, refused_again, throttled_again, halves, halves_again, differing;
    uint64_t read_halves, read_halves_again;
    bool unknown; /* the server did not report a charge */
};

static uint64_t halves_of(const struct capture_request *q) {
    return q->read_halves + q->write_halves + q->static_halves;
}

static void add(struct replay_sums *s, const struct capture_request *q, const struct replayed *r) {
    bool other = (r->halves >= 0 && (uint64_t)r->halves != halves_of(q)) || (q->outcome != 0) != (r->outcome != 0);
    s->requests++;
    s->refused += q->outcome != 0;
    s->refused_again += r->outcome != 0;
    s->throttled_again += r->throttled;
    s->halves += halves_of(q);
    s->read_halves += q->read_halves;
    s->read_halves_again += (uint64_t)r->read_halves;
    if (r->halves >= 0) s->halves_again += (uint64_t)r->halves;
    s->unknown = s->unknown || (r->halves < 0 && !r->outcome);
    s->differing += other;
}

/* The cost of the units on demand; below 0: a price is unknown. */
static double dollars(const struct trace_replay *p, uint64_t halves, uint64_t read_halves) {
    double read = p->region->of[PRICE_READ], write = p->region->of[PRICE_WRITE];
    if ((read < 0 && read_halves) || (write < 0 && halves > read_halves)) return -1;
    return ((double)read_halves * read + (double)(halves - read_halves) * write) / 2;
}

/* ---- reports as text and JSON ---- */

static void row(struct table *out, const struct replay_sums *s, const char *name) {
    char again[32] = "?", difference[32] = "?";
    if (!s->unknown) {
        snprintf(again, sizeof(again), "%.1f", (double)s->halves_again / 2);
        snprintf(difference, sizeof(difference), "%+.1f", ((double)s->halves_again - (double)s->halves) / 2);
    }
    table_row(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.1f\t%s\t%s\t%" PRIu64 "\t%s", s->requests, s->refused,
              s->refused_again, (double)s->halves / 2, again, difference, s->differing, name);
}

/* Statements on system tables share a line of the report, unless the replay differs. */
static bool is_plain_system(const struct trace_replay *p, const struct replay_sums *by_name, size_t name) {
    return trace_is_system(p->trace, (uint32_t)name) && !by_name[name].differing;
}

static void print_text(const struct trace_replay *p, const struct replay_sums *all, const struct replay_sums *by_name) {
    static const struct table_column columns[] = {{"requests", true}, {"refused", true},   {"again", true},
                                                  {"units", true},    {"again", true},     {"difference", true},
                                                  {"differ", true},   {"statement", false}};
    struct table out;
    table_init(&out, columns, ARRAY_LEN(columns));
    struct replay_sums system = {0};
    for (size_t i = 0; i < p->trace->n_names; i++)
        if (by_name[i].requests && !is_plain_system(p, by_name, i)) row(&out, &by_name[i], p->trace->names[i].text);
    for (size_t i = 0; i < p->trace->n; i++)
        if (p->results[i].sent && is_plain_system(p, by_name, p->trace->requests[i].name))
            add(&system, &p->trace->requests[i].q, &p->results[i]);
    if (system.requests) row(&out, &system, "on system tables");
    row(&out, all, "all");
    table_print(&out);
    table_fini(&out);
    if (all->throttled_again) printf("%" PRIu64 " were throttled this time\n", all->throttled_again);
    if (p->latency)
        printf("%.2f s, %.0f requests a second; latency p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, most %.3f ms\n",
               p->seconds, p->seconds > 0 ? (double)all->requests / p->seconds : 0,
               (double)hist_quantile(p->latency, 0.5) / 1e6, (double)hist_quantile(p->latency, 0.99) / 1e6,
               (double)hist_quantile(p->latency, 0.999) / 1e6, (double)p->latency->max / 1e6);
    else printf("busiest second: %.1f read units, %.1f write units\n", p->peak_read, p->peak_write);
    double was = p->region ? dollars(p, all->halves, all->read_halves) : -1;
    double is = p->region ? dollars(p, all->halves_again, all->read_halves_again) : -1;
    if (was >= 0 && is >= 0)
        printf("on demand: %.6f US dollars as captured, %.6f now (%+.6f), in %s at the prices of %s\n", was, is,
               is - was, p->region->name, p->prices.date);
    if (p->trace->dropped)
        printf("%" PRIu64 " requests are missing in the capture: what depends on them may differ\n", p->trace->dropped);
    if (p->trace->damage[0]) printf("damaged: %s\n", p->trace->damage);
}

static void put_json(struct buf *out, const struct trace_replay *p, const struct replay_sums *s) {
    json_count(out, "requests", s->requests);
    json_count(out, "refused", s->refused);
    json_count(out, "refused_again", s->refused_again);
    json_count(out, "throttled_again", s->throttled_again);
    json_count(out, "differing", s->differing);
    json_member(out, "units");
    charge_put_units(out, (double)s->halves / 2);
    json_member(out, "units_again");
    if (s->unknown) buf_put_str(out, "null");
    else charge_put_units(out, (double)s->halves_again / 2);
    if (!p->region) return;
    json_amount(out, "dollars", dollars(p, s->halves, s->read_halves));
    json_amount(out, "dollars_again", dollars(p, s->halves_again, s->read_halves_again));
}

static void print_json(const struct trace_replay *p, const struct replay_sums *all, const struct replay_sums *by_name) {
    struct buf out;
    buf_init(&out, 0);
    json_open(&out, NULL, '{');
    json_flag(&out, "ok", !all->differing);
    json_count(&out, "dropped", p->trace->dropped);
    put_json(&out, p, all);
    if (p->region) {
        json_text(&out, "region", p->region->name);
        json_text(&out, "prices_date", p->prices.date);
    }
    if (p->latency) {
        buf_printf(&out, ",\"seconds\":%.6f", p->seconds);
        json_count(&out, "p50_ns", hist_quantile(p->latency, 0.5));
        json_count(&out, "p99_ns", hist_quantile(p->latency, 0.99));
        json_count(&out, "max_ns", p->latency->max);
    } else {
        buf_printf(&out, ",\"peak_read_units\":%.1f,\"peak_write_units\":%.1f", p->peak_read, p->peak_write);
    }
    json_text(&out, "damage", p->trace->damage);
    json_open(&out, "statements", '[');
    for (size_t i = 0; i < p->trace->n_names; i++) {
        if (!by_name[i].requests) continue;
        json_open(&out, NULL, '{');
        json_text(&out, "statement", p->trace->names[i].text);
        put_json(&out, p, &by_name[i]);
        buf_u8(&out, '}');
    }
    printf("%.*s]}\n", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
}

/* ---- the sub-command ---- */

static int replay(struct trace_replay *p, struct trace *t, struct err *e) {
    if (t->header.hashed)
        return err_set(e, ERR_CONFIG,
                       "%s: its values are hashed: tally capture --file shows it, but it cannot be replayed",
                       p->flags->file);
    p->results = calloc(t->n + 1, sizeof(*p->results));
    if (!p->results) return err_nomem(e);
    if (!p->flags->price && !(p->latency = calloc(1, sizeof(*p->latency)))) return err_nomem(e);
    if (p->flags->price ? replay_price(p, e) : replay_send(p, e)) return -1;
    struct replay_sums all = {0}, *by_name = calloc(t->n_names + 1, sizeof(*by_name));
    if (!by_name) return err_nomem(e);
    for (size_t i = 0; i < t->n; i++) {
        if (!p->results[i].sent) continue;
        add(&all, &t->requests[i].q, &p->results[i]);
        add(&by_name[t->requests[i].name], &t->requests[i].q, &p->results[i]);
    }
    p->differing = all.differing;
    if (p->flags->json) print_json(p, &all, by_name);
    else print_text(p, &all, by_name);
    free(by_name);
    return 0;
}

static int wrong(const struct replay_flags *f, struct err *e) {
    if (!f->file) return err_set(e, ERR_CONFIG, "--file is needed; see tally replay --help");
    if (!f->price && f->prices) return err_set(e, ERR_CONFIG, "--prices is for --price");
    if (f->price && f->remote.server)
        return err_set(e, ERR_CONFIG, "--price needs no server; give one of --price and --server");
    if (!f->price && !f->remote.server)
        return err_set(e, ERR_CONFIG, "--server or --price is needed; see tally replay --help");
    const char *const offline[] = {f->pricing.schema, f->pricing.data, f->pricing.size_model, f->pricing.write_size,
                                   f->capacity_mode};
    for (size_t i = 0; i < ARRAY_LEN(offline) && !f->price; i++)
        if (offline[i])
            return err_set(e, ERR_CONFIG,
                           "--schema, --data, --size-model, --write-size and --capacity-mode are for --price: a server "
                           "has its own");
    if (!f->price && f->pricing.page_size) return err_set(e, ERR_CONFIG, "--page-size is for --price");
    return f->connections >= 1 && f->connections <= 4096 ? 0
                                                         : err_set(e, ERR_CONFIG, "--connections must be 1 to 4096");
}

int tally_replay(int argc, char **argv) {
    struct replay_flags f = {.connections = 256, .speed = "1"};
    const struct flag flags[] = {
        FLAG_TEXT("file", "FILE", f.file, "the capture"),
        FLAG_TEXT("speed", "N|max", f.speed,
             "1 is as it was captured (1), 10 ten times as fast; max: as fast as answers come. A request is never "
             "sent before those have been answered that were answered when it came"),
        FLAG_NUMBER("connections", "N", f.connections,
             "maximum number of connections; each captured connection gets its own while there are enough (256)"),
        FLAG_ON("price", f.price,
             "sends nothing: runs the capture through the server's own code in memory, at the times of the capture"),
        FLAG_TEXT("schema", "FILE", f.pricing.schema,
             "for --price: CQL statements that create the tables; the DDL of the capture is then left out"),
        FLAG_TEXT("data", "FILE", f.pricing.data, "for --price: CQL statements that insert rows"),
        FLAG_TEXT("size-model", "NAME", f.pricing.size_model, "for --price: documented-2022 or current (as captured)"),
        FLAG_TEXT("write-size", "NAME", f.pricing.write_size, "for --price: row or written (as captured)"),
        FLAG_NUMBER("page-size", "N", f.pricing.page_size, "for --price: rows of a page (as captured)"),
        FLAG_TEXT("capacity-mode", "MODE", f.capacity_mode,
             "for --price: capacity of every table, on-demand or provisioned:READ:WRITE units a second; requests "
             "above it are throttled, as by --limits enforce"),
        FLAG_TEXT("prices", "FILE", f.prices,
             "for --price: prices, in the format of share/tally/prices.csv (the program's own); --region chooses the "
             "Region (us-east-1)"),
        FLAG_ON("up-to-damage", f.up_to_damage,
             "reads a damaged or incomplete capture up to the damage"),
        FLAG_ON("json", f.json, "the answer as JSON"),
        REMOTE_FLAGS(&f.remote)};
    struct err e = {0};
    struct trace t;
    struct trace_replay p = {.flags = &f, .trace = &t};
    int rc = flags_read("replay", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (wrong(&f, &e)) return say_wrong(f.json, "replay", &e);
    struct arena arena;
    arena_init(&arena, 16 << 10, 16 << 20);
    if (f.price && !prices_read(&arena, f.prices, &p.prices, &e)) {
        const char *region = f.remote.region ? f.remote.region : "us-east-1";
        p.region = prices_find(&p.prices, region);
        if (!p.region)
            (void)err_set(&e, ERR_CONFIG, "--region: %s has no prices of the Region '%s'", p.prices.path, region);
    }
    rc = e.set ? say_wrong(f.json, "replay", &e)
         : trace_open(&t, f.file, f.up_to_damage, &e) ? say_no(f.json, "replay", &e)
                                                      : EXIT_DONE;
    if (rc) {
        arena_fini(&arena);
        return rc;
    }
    rc = replay(&p, &t, &e);
    arena_fini(&arena);
    free(p.results);
    free(p.latency);
    trace_close(&t);
    if (rc) return say_no(f.json, "replay", &e);
    return p.differing ? EXIT_NO : EXIT_DONE;
}
