#include "tools/tally/pricing.h"

#include <string.h>
#include <strings.h>

#include "tools/tally/markers.h"

/* Sets *out to 0 or 1 when the flag is given. Returns -1 if it has neither value. */
static int one_of(const char *flag, const char *value, const char *first, const char *second, bool *out,
                  struct err *e) {
    if (!value) return 0;
    *out = !strcmp(value, second);
    return *out || !strcmp(value, first)
               ? 0
               : err_set(e, ERR_CONFIG, "--%s must be %s or %s, not '%s'", flag, first, second, value);
}

int pricing_sizes(const struct pricing *p, struct world_options *o, struct err *e) {
    bool current = o->size_model == SIZE_CURRENT, written = o->write_size == WRITE_SIZE_WRITTEN;
    if (one_of("size-model", p->size_model, "documented-2022", "current", &current, e) ||
        one_of("write-size", p->write_size, "row", "written", &written, e))
        return -1;
    o->size_model = current ? SIZE_CURRENT : SIZE_DOCUMENTED_2022;
    o->write_size = written ? WRITE_SIZE_WRITTEN : WRITE_SIZE_ROW;
    return 0;
}

struct world *pricing_world(const struct pricing *p, bool strict, struct err *e) {
    struct world_options o = {.size_model = SIZE_DOCUMENTED_2022, .write_size = WRITE_SIZE_ROW,
                              .timestamp_size = p->timestamp_size, .strict = strict};
    if (pricing_sizes(p, &o, e)) return NULL;
    if (p->consistency && world_consistency(p->consistency) < 0) {
        err_set(e, ERR_CONFIG, "--consistency: there is no level '%s'", p->consistency);
        return NULL;
    }
    struct world *w = world_new(&o, e);
    if (w && ((p->schema && world_load(w, p->schema, true, e)) || (p->data && world_load(w, p->data, false, e)))) {
        world_free(w);
        return NULL;
    }
    return w;
}

bool pricing_is_read(struct slice text) { return text.n >= 6 && !strncasecmp((const char *)text.p, "SELECT", 6); }

int pricing_run(struct world *w, const struct pricing *p, struct pricing_text *text, struct world_answer *out,
                struct err *e) {
    bool filled = !markers_fill(w, text->written, text->arena, &text->run, &text->made_up, e);
    int level = p->consistency && pricing_is_read(text->run) ? world_consistency(p->consistency) : CL_LOCAL_QUORUM;
    const struct world_request q = {.text = text->run, .consistency = (uint16_t)level,
                                    .page_size = (int32_t)p->page_size};
    if (filled && !world_run(w, &q, out, e)) return 0;
    const char *needs = world_faults(w).needs;
    if (!needs) return -1;
    const struct err why = *e;
    err_clear(e);
    return err_set(e, why.code, "%s; it needs %s", why.text, needs);
}

/* ---- the answer ---- */

static struct explanation explanation_of(const struct world_answer *a) {
    return (struct explanation){.is_read = a->kind == STMT_SELECT,
                                .cost = a->cost,
                                .charge = a->charge,
                                .pages = a->pages,
                                .rows_read = a->rows_read,
                                .rows_returned = a->rows_returned,
                                .bytes_read = a->bytes_read,
                                .partitions = a->partitions,
                                .filtered = a->filtered,
                                .past_limit = a->past_limit};
}

void pricing_json(const struct world_answer *a, struct buf *out) {
    const struct explanation x = explanation_of(a);
    explanation_json(&x, out);
}

void pricing_advice(const struct world_answer *a, struct buf *out) {
    const struct explanation x = explanation_of(a);
    explanation_advice(&x, out);
}
