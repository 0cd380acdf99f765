#include "tools/tally/pricing.h"

#include <string.h>
#include <strings.h>

#include "metering/explanation.h"

static const char *or_else(const char *text, const char *otherwise) { return text ? text : otherwise; }

/* 0: value is first; 1: second; -1: neither. */
static int one_of(const char *flag, const char *value, const char *first, const char *second, struct err *e) {
    if (!strcmp(value, first)) return 0;
    if (!strcmp(value, second)) return 1;
    return err_set(e, ERR_CONFIG, "--%s must be %s or %s, not '%s'", flag, first, second, value);
}

struct world *pricing_world(const struct pricing *p, bool strict, struct err *e) {
    int model = one_of("size-model", or_else(p->size_model, "documented-2022"), "documented-2022", "current", e);
    int size = one_of("write-size", or_else(p->write_size, "row"), "row", "written", e);
    const struct world_options o = {.size_model = model == 1 ? SIZE_CURRENT : SIZE_DOCUMENTED_2022,
                                    .write_size = size == 1 ? WRITE_SIZE_WRITTEN : WRITE_SIZE_ROW,
                                    .timestamp_size = p->timestamp_size, .strict = strict};
    if (model < 0 || size < 0) return NULL;
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

int pricing_run(struct world *w, const struct pricing *p, struct slice text, struct world_answer *out, struct err *e) {
    int level = p->consistency && pricing_is_read(text) ? world_consistency(p->consistency) : CL_LOCAL_QUORUM;
    const struct world_request q = {.text = text, .consistency = (uint16_t)level, .page_size = (int32_t)p->page_size};
    return world_run(w, &q, out, e);
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
                                .filtered = a->filtered};
}

void pricing_json(const struct world_answer *a, struct buf *out) {
    const struct explanation x = explanation_of(a);
    explanation_json(&x, out);
}

void pricing_advice(const struct world_answer *a, struct buf *out) {
    const struct explanation x = explanation_of(a);
    explanation_advice(&x, out);
}
