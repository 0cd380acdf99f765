#include "cql/loop_share.h"

enum { TEXT_MAX = 16 << 10, ITEMS_MAX = 512, BATCH_BYTES_MAX = 1 << 20, VALUE_BYTES_MAX = 64 << 10 };

static bool leave(struct cql_run *r, enum cql_work_class class) {
    r->answer.work_class = class;
    if (class == WORK_UPDATE) r->answer.write_type = r->in->kind == REQUEST_BATCH ? "BATCH" : "SIMPLE";
    return true;
}

static size_t bytes_of(const struct value *values, uint32_t n) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += values[i].n > 0 ? (size_t)values[i].n : 0;
    return bytes;
}

bool loop_share_exceeded(struct cql_run *r) {
    if (r->blocking) return false;
    if (r->in->kind == REQUEST_BATCH) {
        size_t text = 0, bytes = 0;
        for (uint32_t i = 0; i < r->in->n_items; i++) {
            text += r->in->items[i].query.n;
            bytes += bytes_of(r->in->items[i].values, r->in->items[i].n_values);
        }
        bool exceeded = r->in->n_items > ITEMS_MAX || text > TEXT_MAX || bytes > BATCH_BYTES_MAX;
        return exceeded && leave(r, WORK_UPDATE);
    }
    if (r->in->query.n <= TEXT_MAX) return false;
    static const enum cql_work_class classes[] = {
#define STMT(id, words, functions, permission, resource, rule, checks, category, operation, work) WORK_##work,
#include "cql/syntax/stmt.def"
#undef STMT
        WORK_DDL, /* STMT_KINDS */
    };
    return leave(r, classes[cql_parse_kind(r->in->query)]); /* only parsing would say what it needs besides */
}

bool loop_share_exceeded_by_values(struct cql_run *r, const struct cql_statement *s) {
    if (r->blocking || !s->works_on_values) return false;
    return bytes_of(r->in->params.values, r->in->params.n_values) > VALUE_BYTES_MAX &&
           leave(r, s->kind == STMT_SELECT ? WORK_READ : WORK_UPDATE);
}
