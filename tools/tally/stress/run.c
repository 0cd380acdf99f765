#include "tools/tally/stress/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/murmur3.h"
#include "metering/limits/limit.h"

enum { SCHEMA_PATIENCE_S = 60, TRIES = 5 };

/* ---- retries ---- */

/* Numbers with commas between them. Returns how many, or 0 if the text is another, or has too few
 * or too many. */
static int numbers(const char *text, int64_t *out, int least, int most) {
    for (int n = 0; n < most; text++) {
        char *end;
        out[n] = strtoll(text, &end, 10);
        if (end == text || out[n++] < 0) return 0;
        if (!*end) return n < least ? 0 : n;
        if (*end != ',') return 0;
        text = end;
    }
    return 0;
}

int retry_parse(const char *text, struct retry *out, struct err *e) {
    int64_t n[4];
    *out = (struct retry){.tries = TRIES,
                          .minimum = limit_info(LIMIT_BACKOFF_MINIMUM)->value,
                          .delta = limit_info(LIMIT_BACKOFF_DELTA)->value,
                          .maximum = limit_info(LIMIT_BACKOFF_MAXIMUM)->value};
    if (!strcmp(text, "none")) return 0;
    out->kind = strncmp(text, "fixed:", 6) ? RETRY_EXPONENTIAL : RETRY_FIXED;
    if (!strcmp(text, "exponential")) return 0;
    if (out->kind == RETRY_FIXED) {
        int got = numbers(text + 6, n, 1, 2);
        if (!got) return err_set(e, ERR_CONFIG, "--retry fixed:MS[,TRIES], not '%s'", text);
        out->minimum = n[0];
        if (got == 2) out->tries = (uint32_t)n[1];
        return 0;
    }
    int got = strncmp(text, "exponential:", 12) ? 0 : numbers(text + 12, n, 3, 4);
    if (!got)
        return err_set(e, ERR_CONFIG,
                       "--retry must be none, fixed:MS[,TRIES] or exponential[:MIN,DELTA,MAX[,TRIES]], not '%s'", text);
    out->minimum = n[0];
    out->delta = n[1];
    out->maximum = n[2];
    if (got == 4) out->tries = (uint32_t)n[3];
    return 0;
}

int64_t retry_wait(const struct retry *r, struct backoff_random *jitter, uint32_t failures) {
    if (r->kind == RETRY_NONE || failures > r->tries) return -1;
    return r->kind == RETRY_FIXED ? r->minimum : backoff_ms(jitter, failures, r->minimum, r->delta, r->maximum);
}

/* ---- values ---- */

static const struct plan_statement *statement_of(const struct stress *s, uint32_t i) {
    return i < s->plan.n_statements ? &s->plan.statements[i] : &s->plan.load;
}

static bool is_key(const struct client_prepared *p, uint32_t bind) {
    for (uint32_t i = 0; i < p->n_pk; i++)
        if (p->pk[i] == bind) return true;
    return false;
}

/* Writes the values of the request with that sequence number and seed. key: only the values of the
 * partition key, for its hash. */
static void put_values(struct stress *s, uint32_t statement, uint64_t sequence, uint64_t seed, uint64_t due_ns,
                       bool key, struct buf *out) {
    const struct plan_statement *st = statement_of(s, statement);
    const struct client_prepared *p = &s->prepared[statement];
    const struct dist_moment m = {.sequence = sequence,
                                  .wall_ms = s->begun_wall_ms + (int64_t)((due_ns - s->begun_ns) / 1000000)};
    for (uint32_t i = 0; i < st->n_values; i++) {
        if (key && !is_key(p, i)) continue;
        /* each value has its own seed, so the key's values are the same with and without the
         * others */
        struct chance own = {.state = seed + (i + 1) * UINT64_C(0xD1342543DE82EF95)};
        if (dist_put(&st->values[i], p->binds.list[i].type, &own, &m, out, &s->failed)) return;
    }
}

/* ---- requests: a slot holds the seed (a), the partition's hash (b), the statement and its number (c) ---- */

enum { STATEMENT_SHIFT = 56 };

static uint32_t slot_statement(const struct flight_slot *slot) {
    return (uint32_t)((uint64_t)slot->c >> STATEMENT_SHIFT);
}
static uint64_t slot_sequence(const struct flight_slot *slot) {
    return (uint64_t)slot->c & ((UINT64_C(1) << STATEMENT_SHIFT) - 1);
}

static bool pick(void *arg, struct flight_slot *slot) {
    struct stress *s = arg;
    if (s->failed.set || (s->loading && s->loaded >= s->plan.load.rows)) return false;
    uint32_t statement = s->plan.n_statements; /* the load's number */
    if (!s->loading) {
        uint64_t at = chance_next(&s->random) % s->plan.total_weight;
        for (statement = 0; at >= s->plan.statements[statement].weight; statement++)
            at -= s->plan.statements[statement].weight;
    }
    uint64_t sequence = s->loading ? s->loaded++ : s->picked[statement]++;
    slot->a = chance_next(&s->random);
    slot->c = (int64_t)((uint64_t)statement << STATEMENT_SHIFT | sequence);
    slot->b = 0;
    if (s->loading || !s->prepared[statement].n_pk) return true;
    buf_clear(&s->scratch, SIZE_MAX);
    put_values(s, statement, sequence, slot->a, slot->due_ns, true, &s->scratch);
    slot->b = murmur3_hash(buf_slice(&s->scratch)) | 1;
    return true;
}

static void put(void *arg, const struct flight_slot *slot, uint8_t version, uint16_t stream, struct buf *out) {
    struct stress *s = arg;
    uint32_t statement = slot_statement(slot);
    const struct plan_statement *st = statement_of(s, statement);
    buf_clear(&s->scratch, SIZE_MAX);
    put_values(s, statement, slot_sequence(slot), slot->a, slot->due_ns, false, &s->scratch);
    const struct wire_params p = {.consistency = st->consistency, .n_values = (uint16_t)st->n_values,
                                  .values = buf_slice(&s->scratch), .page_size = st->reads ? (int32_t)st->page_size : 0,
                                  .wants_capacity = true,
                                  .skip_metadata = true};
    wire_execute(out, version, stream, s->prepared[statement].id, s->prepared[statement].result_id, &p);
    if (buf_failed(&s->scratch)) (void)err_nomem(&s->failed);
}

/* ---- answers ---- */

/* Formats the values of the partition key: "pk=7". */
static void label(struct stress *s, const struct flight_slot *slot, char out[SCORE_LABEL]) {
    const struct client_prepared *p = &s->prepared[slot_statement(slot)];
    const struct plan_statement *st = statement_of(s, slot_statement(slot));
    struct buf text;
    buf_init(&text, 0);
    buf_clear(&s->scratch, SIZE_MAX);
    put_values(s, slot_statement(slot), slot_sequence(slot), slot->a, slot->due_ns, false, &s->scratch);
    struct rd in = rd_of(buf_slice(&s->scratch));
    for (uint32_t i = 0; i < st->n_values && !in.bad; i++) {
        struct slice v = rd_bytes(&in, rd_u32(&in));
        if (!is_key(p, i) || !v.p) continue;
        buf_printf(&text, "%s%s=", text.n ? " " : "", p->binds.list[i].name);
        cql_value_text(p->binds.list[i].type, v, &text);
    }
    snprintf(out, SCORE_LABEL, "%.*s", SLICE_FMT(buf_slice(&text)));
    buf_fini(&text);
}

static int64_t answered(void *arg, struct flight_slot *slot, const struct load_answer *a) {
    struct stress *s = arg;
    const struct wire_response *r = a->response;
    bool failed = r->opcode == NP_ERROR;
    struct slice ignored;
    uint32_t code = failed ? wire_error_code(r, &ignored) : 0;
    bool throttled = failed && (code == ERR_UNAVAILABLE || code == ERR_OVERLOADED || code == ERR_READ_TIMEOUT ||
                                code == ERR_WRITE_TIMEOUT);
    int64_t rows = failed ? 0 : wire_rows(r), wait = throttled ? retry_wait(&s->retry, &s->jitter, slot->tries) : -1;
    if (failed && !throttled && !s->score.first_error[0])
        wire_error(r, s->score.first_error, sizeof(s->score.first_error));
    if (s->loading) { /* a throttled row is retried every 50 ms, at most 1000 times */
        if (failed && !throttled) s->score.sums.failed++;
        return throttled && slot->tries < 1000 ? 50000000 : -1;
    }
    const struct score_event v = {.second = (uint32_t)((a->now_ns - s->begun_ns) / 1000000000u),
                                  .statement = slot_statement(slot),
                                  .reads = statement_of(s, slot_statement(slot))->reads,
                                  .result = !failed     ? SCORE_OK
                                            : throttled ? SCORE_THROTTLED
                                                        : SCORE_FAILED,
                                  .retried = wait >= 0, .latency_ns = a->latency_ns,
                                  .rows = rows > 0 ? (uint64_t)rows : 0, .charge = failed ? 0 : wire_charge(r),
                                  .entities = failed ? 0 : wire_capacity(r, "entities"),
                                  .partition = slot->b};
    struct score_partition *fresh = score_add(&s->score, &v);
    if (fresh) label(s, slot, fresh->label);
    return wait < 0 ? -1 : wait * 1000000;
}

/* ---- pace ---- */

static uint64_t due(void *arg) {
    return ((struct stress *)arg)->failed.set ? FLIGHT_NEVER : ((struct stress *)arg)->next_due_ns;
}

static bool pick_open(void *arg, struct flight_slot *slot) {
    struct stress *s = arg;
    double at = (double)(s->next_due_ns - s->begun_ns) / 1e9, rate = plan_rate_at(&s->plan, at);
    double mean = 1e9 / (rate > 0 ? rate : 1);
    s->next_due_ns += (uint64_t)(s->poisson ? -log(1 - chance_unit(&s->random)) * mean : mean);
    return pick(arg, slot);
}

static bool tick(void *arg) {
    struct stress *s = arg;
    if (s->show) s->show(s);
    return s->failed.set;
}

/* ---- schema, preparing and loading ---- */

/* Whether the error may be due to a schema change that the server still carries out in the
 * background. Then it is cleared, after a pause. */
static bool may_pass(struct err *e, uint64_t until) {
    const struct timespec pause = {.tv_nsec = 50000000};
    bool may = (e->code == ERR_INVALID || e->code == ERR_CONFIG) && load_now() < until &&
               (strstr(e->text, "unconfigured") || strstr(e->text, "exist"));
    if (!may) return false;
    err_clear(e);
    nanosleep(&pause, NULL);
    return true;
}

static int prepare_all(struct stress *s, struct err *e) {
    uint32_t n = s->plan.n_statements + (s->plan.load.rows > 0);
    s->prepared = calloc(n, sizeof(*s->prepared));
    if (!s->prepared) return err_nomem(e);
    for (uint32_t i = 0; i < n; i++) {
        const struct plan_statement *st = statement_of(s, i);
        struct client_prepared *p = &s->prepared[i];
        uint64_t until = load_now() + (uint64_t)(s->plan.n_schema ? SCHEMA_PATIENCE_S : 0) * 1000000000u;
        struct err why = {0};
        while (client_prepare(load_client(s->load, 0), slice_str(st->cql), (struct slice){0}, &s->keep, p, &why))
            if (!may_pass(&why, until)) return err_set(e, why.code, "%s:%u: %s", s->plan.path, st->line, why.text);
        if (p->binds.n != st->n_values)
            return err_set(e, ERR_CONFIG, "%s:%u: the statement has %u markers and %u values", s->plan.path, st->line,
                           p->binds.n, st->n_values);
    }
    return 0;
}

static int run(struct stress *s, const struct load_driver *d, double seconds, struct err *e) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    s->begun_wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    s->begun_ns = s->next_due_ns = load_now();
    if (load_run(s->load, d, seconds, &s->took, &s->unanswered, e)) return -1;
    s->backing_off = load_given_up(s->load);
    s->score.sums.retries -= s->backing_off; /* they were never sent */
    s->unanswered += s->backing_off;
    return s->failed.set ? err_set(e, s->failed.code, "%s", s->failed.text) : 0;
}

bool stress_has_failed(const struct stress *s) {
    return s->score.sums.failed || s->unanswered > s->backing_off || !s->score.sums.requests;
}

int stress_run(struct stress *s, struct err *e) {
    const struct load_driver d = {.arg = s, .due = s->plan.rate > 0 ? due : NULL,
                                  .pick = s->plan.rate > 0 ? pick_open : pick, .put = put, .answered = answered,
                                  .tick = tick};
    const struct client_options *options = &s->remote.options;
    arena_init(&s->keep, 16 << 10, 0);
    buf_init(&s->scratch, 0);
    s->random.state = s->jitter.state = s->seed;
    if (score_init(&s->score, s->plan.n_statements)) return err_nomem(e);
    if (remote_read(&s->remote, e)) return -1;
    s->load = load_open(&options, 1, s->connections, s->in_flight, e);
    if (!s->load) return -1;
    for (uint32_t i = 0; i < s->plan.n_schema; i++) {
        struct client_answer ignored;
        uint64_t until = load_now() + (uint64_t)SCHEMA_PATIENCE_S * 1000000000u;
        while (client_run(load_client(s->load, 0), s->plan.schema[i], &ignored, e))
            if (!may_pass(e, until)) return -1;
    }
    if (prepare_all(s, e)) return -1;
    if (s->plan.load.rows && !s->skip_load) {
        const struct load_driver rows = {.arg = s, .pick = pick, .put = put, .answered = answered, .tick = tick};
        s->loading = true;
        int rc = run(s, &rows, 0, e);
        s->loading = false;
        if (rc) return -1;
        if (s->score.sums.failed)
            return err_set(e, ERR_SERVER, "%" PRIu64 " of %" PRIu64 " rows could not be loaded: %s",
                           s->score.sums.failed, s->plan.load.rows, s->score.first_error);
    }
    if (run(s, &d, s->seconds, e)) return -1;
    score_end(&s->score);
    return 0;
}

void stress_fini(struct stress *s) {
    if (s->load) load_close(s->load);
    score_fini(&s->score);
    free(s->prepared);
    arena_fini(&s->keep);
    buf_fini(&s->scratch);
}
