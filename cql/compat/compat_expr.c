/* Functions, types and operators that Keyspaces' lists do not have. */
#include <strings.h>

#include "cql/compat/compat_check.h"
#include "keyspaces/quota.h"

/* ---- types ---- */

/* Levels of collections from the outermost frozen one down. */
static int frozen_depth(const struct ast_type *t, bool frozen) {
    bool is_frozen = strcasecmp(t->name, "frozen") == 0;
    bool collection = !strcasecmp(t->name, "list") || !strcasecmp(t->name, "set") || !strcasecmp(t->name, "map");
    int deepest = 0;
    for (uint32_t i = 0; i < t->n_args; i++) {
        int below = frozen_depth(t->args[i], frozen || is_frozen);
        if (below > deepest) deepest = below;
    }
    return deepest + (collection && frozen);
}

/* The part that is in no list; NULL if all are. */
static const char *unknown_type(const struct ast_type *t) {
    if (t->quoted_class) return t->name;
    if (t->dimension || !strcasecmp(t->name, "vector")) return t->name;
    for (uint32_t i = 0; i < t->n_args; i++) {
        const char *below = unknown_type(t->args[i]);
        if (below) return below;
    }
    return NULL;
}

int compat_check_type(struct compile *c, const struct ast_type *t) {
    const char *unknown = unknown_type(t);
    int depth = frozen_depth(t, false);
    if (unknown && compat_refuse(&c->compat, REFUSE_TYPE, c->err, unknown)) return -1;
    return depth > QUOTA_FROZEN_NESTING ? compat_refuse(&c->compat, REFUSE_NESTING, c->err, depth, QUOTA_FROZEN_NESTING)
                                        : 0;
}

/* ---- functions ---- */

static bool one_of(const char *name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

int compat_check_expr(struct compile *c, const struct ast_expr *x) {
    static const char *const aggregates[] = {"count", "min", "max", "sum", "avg"};
    static const char *const known[] = {"token", "ttl", "writetime", "uuid", "now", "currentdate", "currenttime",
                                        "currenttimestamp", "currenttimeuuid", "mintimeuuid", "maxtimeuuid", "todate",
                                        "totimestamp", "tounixtimestamp", "dateof", "unixtimestampof", "tojson",
                                        "fromjson"};
    if (!x) return 0;
    if (x->kind == EXPR_CALL && one_of(x->name, aggregates, ARRAY_LEN(aggregates))) {
        bool rows = strcasecmp(x->name, "count") == 0 && x->n_args &&
                    (x->args[0]->kind == EXPR_STAR || x->args[0]->kind == EXPR_LITERAL);
        if (compat_refuse(&c->compat, REFUSE_AGGREGATE, c->err, rows ? "countRows" : x->name)) return -1;
    } else if (x->kind == EXPR_CALL) {
        size_t n = strlen(x->name);
        bool blob = n > 6 && (strcasecmp(x->name + n - 6, "asblob") == 0 || strncasecmp(x->name, "blobas", 6) == 0);
        bool refused = !blob && !one_of(x->name, known, ARRAY_LEN(known));
        if (refused && compat_refuse(&c->compat, REFUSE_FUNCTION, c->err, x->name)) return -1;
    }
    if (x->type && compat_check_type(c, x->type)) return -1;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (compat_check_expr(c, x->args[i])) return -1;
    return 0;
}
