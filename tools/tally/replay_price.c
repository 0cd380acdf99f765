/* tally replay --price: runs a capture through the server's own code in memory, one request after
 * the other, in the order in which they ended and at their captured times. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/tally/replay.h"

struct pricer {
    struct trace_replay *p;
    struct world *world;
    struct buf *states; /* by request: the paging state of its next page; empty when it has none */
    struct buf paging;
    int64_t second;
    double read, write; /* units of that second */
};

/* Every table of users gets the mode, once it is there. */
static int set_modes(struct pricer *x, struct err *e) {
    const char *text = x->p->flags->capacity_mode;
    unsigned read = 0, write = 0;
    char end;
    if (!text) return 0;
    bool provisioned = strcmp(text, "on-demand") != 0;
    if (provisioned && (sscanf(text, "provisioned:%u:%u%c", &read, &write, &end) != 2 || !read || !write))
        return err_set(e, ERR_CONFIG,
                       "--capacity-mode must be on-demand, or provisioned:READ:WRITE with units a second, not '%s'",
                       text);
    return world_set_capacity(x->world, provisioned, read, write, e);
}

/* ---- one request ---- */

static int price_page(struct pricer *x, size_t i, const struct world_call *call, struct slice *state, uint64_t *rows) {
    const struct trace_request *r = &x->p->trace->requests[i];
    struct replayed *out = &x->p->results[i];
    struct world_answer a;
    struct err e = {0};
    bool throttled;
    if (trace_send(x->p->trace, x->world, r, call, &a, state, &throttled, &e)) {
        out->outcome = (uint32_t)e.code;
        out->throttled = throttled;
        return -1;
    }
    int64_t second = r->q.began_us / 1000000;
    if (second != x->second) x->second = second, x->read = x->write = 0;
    x->read += a.charge.read_units;
    x->write += a.charge.region_write_units;
    if (x->read > x->p->peak_read) x->p->peak_read = x->read;
    if (x->write > x->p->peak_write) x->p->peak_write = x->write;
    out->halves += (int64_t)(a.charge.total * 2);
    out->read_halves += (int64_t)(a.charge.read_units * 2);
    *rows += a.rows_returned;
    return 0;
}

static int price(struct pricer *x, size_t i, struct err *e) {
    const struct trace *t = x->p->trace;
    const struct trace_request *r = &t->requests[i];
    bool ddl = trace_is_definition(t, r);
    if (replay_skips(t, r) || (ddl && x->p->flags->pricing.schema)) return 0;
    struct world_call call = trace_call(r);
    bool repaged = x->p->flags->pricing.page_size && r->q.opcode != NP_BATCH;
    if (repaged && r->page_before != TRACE_NONE) return 0; /* its rows came with the first page's */
    x->p->results[i] = (struct replayed){.sent = true};
    const struct trace_request *all = t->requests;
    uint64_t rows = 0, wanted = all[i].q.rows_returned; /* of this request and the pages after it */
    struct slice state;
    if (!repaged) {
        if (r->page_before != TRACE_NONE && x->states[r->page_before].n)
            call.paging_state = buf_slice(&x->states[r->page_before]);
        if (!price_page(x, i, &call, &state, &rows) && state.p) {
            buf_init(&x->states[i], 0);
            buf_put_slice(&x->states[i], state);
        }
    } else {
        /* With another page size: as many pages as bring the client as many rows. */
        for (int64_t k = all[i].page_after; k != TRACE_NONE; k = all[k].page_after) wanted += all[k].q.rows_returned;
        call.page_size = (int32_t)x->p->flags->pricing.page_size;
        while (!price_page(x, i, &call, &state, &rows) && state.p && rows < wanted) {
            buf_clear(&x->paging, SIZE_MAX);
            buf_put_slice(&x->paging, state);
            call.paging_state = buf_slice(&x->paging);
        }
    }
    if (x->p->results[i].outcome) x->p->results[i].halves = x->p->results[i].read_halves = 0;
    return ddl ? set_modes(x, e) : 0;
}

int replay_price(struct trace_replay *p, struct err *e) {
    const struct trace *t = p->trace;
    const struct pricing *f = &p->flags->pricing;
    const struct capture_header *h = &t->header;
    struct world_options o = {.size_model = (enum size_model)h->size_model, .timestamp_size = h->timestamp_size,
                              .write_size = (enum write_size)h->write_size, .strict = h->strict,
                              .cassandra = h->cassandra, .limits = p->flags->capacity_mode != NULL};
    struct pricer x = {.p = p, .states = calloc(t->n + 1, sizeof(struct buf))};
    buf_init(&x.paging, 0);
    int rc = x.states ? pricing_sizes(f, &o, e) : err_nomem(e);
    if (!rc && !(x.world = world_new(&o, e))) rc = -1;
    if (!rc && f->schema) rc = world_load(x.world, f->schema, false, e);
    if (!rc && f->data) rc = world_load(x.world, f->data, false, e);
    if (!rc) rc = set_modes(&x, e);
    for (size_t i = 0; i < t->n && !rc; i++) rc = price(&x, i, e);
    for (size_t i = 0; x.states && i < t->n; i++)
        if (x.states[i].p) buf_fini(&x.states[i]);
    if (x.world) world_free(x.world);
    buf_fini(&x.paging);
    free(x.states);
    return rc;
}
