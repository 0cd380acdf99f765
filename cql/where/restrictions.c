/* Evaluates a plan for one execution: partitions, tokens, clustering keys, slices. */
#include "cql/where/restrictions.h"

#include "cql/expr/term_sort.h"

#include <stdlib.h>

#include "cql/request/request.h"

/* The limit on the keys of one statement (a product of IN lists): each costs memory and a read. */
enum { WHERE_KEYS_MAX = 65536 };

/* A growing list of combinations: each is one value per column so far. */
struct product {
    uint32_t n, width, used; /* combinations; columns in all; columns filled */
    struct value *values;    /* n x width */
};

static int check_value(struct evaluation *ev, const struct schema_column *c, struct value v) {
    if (value_is_unset(v)) return err_invalid(ev->err, "Invalid unset value for column %s", c->name);
    if (value_is_null(v)) return err_invalid(ev->err, "Invalid null value in condition for column %s", c->name);
    return 0;
}

/* An error that names all columns of a tuple: "Invalid unset value for tuple (c,d)". */
static int refuse_columns(struct evaluation *ev, const struct where_step *s, const char *words, const char *separator,
                          const char *end) {
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_put_str(&text, words);
    for (uint32_t i = 0; i < s->n_columns; i++) buf_printf(&text, "%s%s", i ? separator : "", s->columns[i]->name);
    buf_put_str(&text, end);
    return err_set_buf(ev->err, ERR_INVALID, &text);
}

/* Values of a tuple, one per column; missing values are null. */
static int split_tuple(struct evaluation *ev, const struct where_step *s, struct value tuple, uint32_t n,
                       struct value *out) {
    for (uint32_t i = 0; i < n; i++) out[i] = value_null();
    if (value_is_unset(tuple)) return refuse_columns(ev, s, "Invalid unset value for tuple (", ",", ")");
    if (value_is_null(tuple)) return check_value(ev, s->columns[0], tuple);
    struct rd rd = rd_of(value_slice(tuple));
    for (uint32_t i = 0; i < n && rd_left(&rd); i++) {
        int32_t len = (int32_t)rd_u32(&rd);
        if (len >= 0) out[i] = value_of_slice(rd_bytes(&rd, (size_t)len));
        if (rd.bad) return err_invalid(ev->err, "Not enough bytes to read a tuple of %u elements", n);
    }
    return 0;
}

/* The values of the bound list, taken as sent: the error for a null names the column, so this
 * function validates the elements instead of term_eval. */
static int list_values(struct evaluation *ev, const struct where_step *s, struct value **out, uint32_t *n) {
    struct value list;
    int32_t bind = term_bind_index(s->list);
    const char *name = s->columns[0]->name;
    if (bind >= 0 && !s->tuple) list = ev->values[bind];
    else if (term_eval(s->list, ev, &list)) return -1;
    if (s->tuple && value_is_unset(list)) return refuse_columns(ev, s, "Invalid unset value for in(", ",", ")");
    if (s->tuple && value_is_null(list)) return err_invalid(ev->err, "Invalid null value for IN restriction");
    if (value_is_unset(list)) return err_invalid(ev->err, "Invalid unset value for column %s", name);
    if (value_is_null(list)) return err_invalid(ev->err, "Invalid null value for column %s", name);
    if (list.n < 4) return err_invalid(ev->err, "Not enough bytes to read a list");
    struct rd rd = rd_of(value_slice(list));
    *n = rd_u32(&rd);
    if (*n > rd_left(&rd) / 4) return err_invalid(ev->err, "Not enough bytes to read a list");
    if (*n > WHERE_KEYS_MAX) return err_invalid(ev->err, "Too many values in IN (%u, at most %d)", *n, WHERE_KEYS_MAX);
    *out = ARENA_ARRAY(ev->arena, *n + 1, struct value);
    if (!*out) return err_nomem(ev->err);
    for (uint32_t i = 0; i < *n; i++) {
        int32_t len = (int32_t)rd_u32(&rd);
        struct value *v = &(*out)[i];
        *v = len < 0 ? value_null() : value_of_slice(rd_bytes(&rd, (size_t)len));
        if (rd.bad) return err_invalid(ev->err, "Not enough bytes to read a list");
        if (len < 0 || s->tuple) continue;
        if (cql_value_validate(s->columns[0]->type, value_slice(*v), ev->err) ||
            term_settle_item(s->columns[0]->type, ev, v))
            return -1;
    }
    return 0;
}

static int product_init(struct product *p, struct evaluation *ev, uint32_t width) {
    *p = (struct product){.n = 1, .width = width};
    p->values = ARENA_ARRAY(ev->arena, width + 1, struct value);
    return p->values ? 0 : err_nomem(ev->err);
}

static int product_step(struct product *p, struct evaluation *ev, const struct where_step *s) {
    /* The values of = or IN, each as one value (a tuple for a tuple relation). */
    struct value *list = NULL;
    uint32_t n = s->kind == STEP_IN ? s->n_values : 1;
    if (s->kind == STEP_IN && s->list) {
        if (list_values(ev, s, &list, &n)) return -1;
    } else {
        list = ARENA_ARRAY(ev->arena, n + 1, struct value);
        if (!list) return err_nomem(ev->err);
        for (uint32_t i = 0; i < n; i++)
            if (term_eval(s->kind == STEP_IN ? s->values[i] : s->term, ev, &list[i])) return -1;
    }
    if ((uint64_t)n * p->n > WHERE_KEYS_MAX)
        return err_invalid(ev->err, "The product of the IN lists has more than %d elements", WHERE_KEYS_MAX);
    struct product next = {.n = n * p->n, .width = p->width, .used = p->used + s->n_columns};
    next.values = ARENA_ARRAY(ev->arena, (size_t)next.n * p->width + 1, struct value);
    if (!next.values) return err_nomem(ev->err);
    bool of_several = s->kind == STEP_IN && (s->list || s->n_values > 1);
    for (uint64_t at = 0; at < next.n; at++) {
        const struct value *before = p->values + at / n * p->width;
        struct value *to = next.values + at * p->width, v = list[at % n];
        memcpy(to, before, p->used * sizeof(*to));
        to += p->used;
        *to = v;
        if (s->tuple ? split_tuple(ev, s, v, s->n_columns, to) : check_value(ev, s->columns[0], v)) return -1;
        for (uint32_t i = 0; s->tuple && i < s->n_columns; i++) {
            if (!value_is_null(to[i])) continue;
            if (of_several) return refuse_columns(ev, s, "Invalid null value in condition for columns: [", ", ", "]");
            return err_invalid(ev->err, "Invalid null value for column %s", s->columns[i]->name);
        }
    }
    *p = next;
    return 0;
}

/* ---- partitions ---- */

/* The range of tokens. wraps: it begins after its end. among_keys: it selects among given keys; else
 * it is scanned. Returns 1 for a range, 0 if it is empty, or -1 on error. */
static int token_range(const struct where_plan *w, struct evaluation *ev, bool among_keys, struct ring_range *out,
                       bool *wraps) {
    const struct where_step *s = w->token;
    const ring_position least = ring_least(w->partitioner), greatest = ring_greatest(w->partitioner);
    ring_position given[2] = {least, greatest};
    *wraps = false;
    *out = (struct ring_range){.partitioner = w->partitioner, .from = given[0], .to = given[1]};
    if (!s) return 1;
    const struct where_bound eq = {.term = s->term, .inclusive = true};
    const struct where_bound *bounds[2] = {s->kind == STEP_EQ ? &eq : &s->from, s->kind == STEP_EQ ? &eq : &s->to};
    for (int i = 0; i < 2; i++) {
        struct value v;
        ring_position at;
        if (!bounds[i]->term) continue;
        if (term_eval(bounds[i]->term, ev, &v)) return -1;
        if (!ring_read(w->partitioner, v, &at)) return err_invalid(ev->err, "Invalid null token value");
        /* No key has the minimum token: as the upper bound of a scan it means the end of the ring, but no
         * given key lies below it. */
        if (i == 1 && at == least && !among_keys) continue;
        if (i == 1 && at == least && given[0] == least && !bounds[i]->inclusive) return 0;
        given[i] = at;
        if (i == 0) out->from = bounds[i]->inclusive ? at : at + 1;
        else out->to = bounds[i]->inclusive ? at : at - (at > 0);
    }
    *wraps = given[0] > given[1];
    /* Nothing lies above the maximum: a wrapping range keeps the part below its end. */
    if (out->from > greatest) {
        if (!*wraps || !among_keys) return 0;
        *wraps = false;
        out->from = least;
    }
    if (out->from < least) out->from = least;
    return out->from <= out->to;
}

int where_tokens(const struct where_plan *w, struct evaluation *ev, struct ring_range *out) {
    bool wraps;
    return token_range(w, ev, false, out, &wraps);
}

struct key_order {
    const struct where_plan *w;
    const struct value *values;
};

static int compare_values(const struct key_order *o, uint32_t a, uint32_t b) {
    uint32_t n = o->w->table->n_partition_key;
    const struct value *x = o->values + (size_t)a * n, *y = o->values + (size_t)b * n;
    for (uint32_t i = 0; i < n; i++) {
        int c = cql_value_compare(schema_partition_key(o->w->table, i)->type, value_slice(x[i]), value_slice(y[i]));
        if (c) return c;
    }
    return 0;
}

/* Equal keys keep their order. */
static int compare_keys(const void *pa, const void *pb, void *arg) {
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    int c = compare_values(arg, a, b);
    return c ? c : (a > b) - (a < b);
}

int where_key_values(const struct where_plan *w, struct evaluation *ev, struct where_keys *out) {
    struct product p;
    if (product_init(&p, ev, w->table->n_partition_key)) return -1;
    for (uint32_t i = 0; i < w->table->n_partition_key; i++)
        if (product_step(&p, ev, w->partition_steps[i])) return -1;
    *out = (struct where_keys){.n = p.n, .values = p.values};
    return 0;
}

/* A range that selects among keys may wrap around the ring, as in Cassandra (TokenFilter). */
static int is_inside(const struct ring_range *r, bool wraps, const struct eng_part *part, struct err *e) {
    if (!wraps) return ring_range_has(r, part, e);
    const struct ring_range gap = {.partitioner = r->partitioner, .from = r->to + 1, .to = r->from - 1};
    int outside = ring_range_has(&gap, part, e);
    return outside < 0 ? -1 : !outside;
}

int where_parts(const struct where_plan *w, struct evaluation *ev, const struct where_keys *keys, bool sorted,
                struct eng_part **parts, uint32_t *n) {
    uint32_t width = w->table->n_partition_key;
    struct ring_range range;
    bool wraps;
    int some = token_range(w, ev, true, &range, &wraps);
    if (some < 0) return -1;
    uint32_t *order = ARENA_ARRAY(ev->arena, keys->n + 1, uint32_t);
    bool *repeated = ARENA_ARRAY(ev->arena, keys->n + 1, bool);
    *parts = ARENA_ARRAY(ev->arena, keys->n + 1, struct eng_part);
    if (!order || !repeated || !*parts) return err_nomem(ev->err);
    for (uint32_t i = 0; i < keys->n; i++) order[i] = i;
    struct key_order by = {.w = w, .values = keys->values};
    if (keys->n > 1) qsort_r(order, keys->n, sizeof *order, compare_keys, &by);
    /* Equal values may differ in bytes, as 1.0 and 1.00: the first is read. */
    for (uint32_t i = 1; i < keys->n; i++) repeated[order[i]] = compare_values(&by, order[i - 1], order[i]) == 0;
    for (uint32_t i = 0; !sorted && i < keys->n; i++) order[i] = i;
    *n = 0;
    for (uint32_t i = 0; (some || wraps) && i < keys->n; i++) {
        struct eng_part *part = &(*parts)[*n];
        const struct value *values = keys->values + (size_t)order[i] * width;
        if (repeated[order[i]]) continue;
        /* row_key_partition refuses an empty key, but outside the token range it is skipped. */
        const struct eng_part empty = {.token = INT64_MIN};
        int inside = width == 1 && values->n == 0 ? is_inside(&range, wraps, &empty, ev->err) : 1;
        if (inside < 0) return -1;
        if (!inside) continue;
        if (row_key_partition(w->table, values, ev->arena, part, ev->err)) return -1;
        if (w->token && (inside = is_inside(&range, wraps, part, ev->err)) < 0) return -1;
        *n += inside > 0;
    }
    return 0;
}

/* ---- clustering keys ---- */

static int compare_row_keys(const void *a, const void *b) {
    return slice_cmp(((const struct row_key *)a)->ck, ((const struct row_key *)b)->ck);
}

/* The columns before a range: one key prefix per combination, in the order of the IN lists. */
static int combinations(const struct where_plan *w, struct evaluation *ev, struct row_key **keys, uint32_t *n) {
    struct product p;
    if (product_init(&p, ev, w->table->n_clustering)) return -1;
    for (uint32_t i = 0; i < w->n_clustering_steps && w->clustering_steps[i]->kind != STEP_RANGE; i++)
        if (product_step(&p, ev, w->clustering_steps[i])) return -1;
    *n = p.n;
    *keys = ARENA_ARRAY(ev->arena, p.n + 1, struct row_key);
    if (!*keys) return err_nomem(ev->err);
    for (uint32_t i = 0; i < p.n; i++)
        if (row_key_clustering(w->table, p.values + (size_t)i * p.width, p.used, ev->arena, &(*keys)[i], ev->err))
            return -1;
    return 0;
}

/* As combinations, in table order and each once. */
int where_row_keys(const struct where_plan *w, struct evaluation *ev, struct row_key **keys, uint32_t *n) {
    uint32_t all;
    if (combinations(w, ev, keys, &all)) return -1;
    if (all > 1) qsort(*keys, all, sizeof(**keys), compare_row_keys);
    *n = 0;
    for (uint32_t i = 0; i < all; i++)
        if (*n == 0 || !slice_eq((*keys)[*n - 1].ck, (*keys)[i].ck)) (*keys)[(*n)++] = (*keys)[i];
    return 0;
}

/* ---- one row ---- */

static int equal_values(struct evaluation *ev, struct where_step *const *steps, uint32_t n, struct value *out) {
    for (uint32_t i = 0; i < n; i++)
        if (term_eval(steps[i]->term, ev, &out[i]) || check_value(ev, steps[i]->columns[0], out[i])) return -1;
    return 0;
}

int where_row(const struct where_plan *w, struct evaluation *ev, bool partition_first, struct eng_part *part,
              struct row_key *key) {
    const struct schema_table *t = w->table;
    struct value *of_partition = arena_alloc(ev->arena, (t->n_partition_key + t->n_clustering) * sizeof(struct value));
    if (!of_partition) return err_nomem(ev->err);
    struct value *of_row = of_partition + t->n_partition_key;
    if (equal_values(ev, w->partition_steps, t->n_partition_key, of_partition)) return -1;
    if (partition_first && row_key_partition(t, of_partition, ev->arena, part, ev->err)) return -1;
    if (equal_values(ev, w->clustering_steps, t->n_clustering, of_row) ||
        row_key_clustering(t, of_row, t->n_clustering, ev->arena, key, ev->err))
        return -1;
    return partition_first ? 0 : row_key_partition(t, of_partition, ev->arena, part, ev->err);
}

/* ---- ranges ---- */

/* A bound with its values. The rows beyond it are at most one slice per column when the columns'
 * orders are mixed: (a, b) > (x, y) is a > x, or a = x and b > y. */
struct range_bound {
    const struct where_step *step;
    bool lower, open, inclusive;
    uint32_t n;
    struct value *values;
};

static int eval_bound(struct evaluation *ev, const struct where_step *s, const struct where_bound *b, bool lower,
                      struct range_bound *out) {
    *out = (struct range_bound){.step = s, .lower = lower, .open = !b->term, .inclusive = b->inclusive, .n = b->n};
    if (!b->term) return 0;
    struct value v;
    out->values = ARENA_ARRAY(ev->arena, b->n + 1, struct value);
    if (!out->values) return err_nomem(ev->err);
    if (term_eval(b->term, ev, &v)) return -1;
    if (value_is_unset(v)) return check_value(ev, s->columns[0], v);
    if (!b->tuple) {
        out->values[0] = v;
        out->open = value_is_null(v); /* Cassandra 5.0 ignores a null bound */
        return 0;
    }
    if (split_tuple(ev, s, v, b->n, out->values)) return -1;
    for (uint32_t i = 0; i < b->n; i++)
        if (check_value(ev, s->columns[i], out->values[i])) return -1;
    return 0;
}

static int extend_key(struct evaluation *ev, struct slice prefix, const struct where_step *s,
                      const struct value *values, uint32_t n, struct slice *out) {
    struct buf b;
    buf_init(&b, 0);
    buf_put_slice(&b, prefix);
    bool exact = true;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = cql_key_encode(s->columns[i]->type, s->columns[i]->desc, value_slice(values[i]), &b, &exact, ev->err);
    if (rc == 0) {
        *out = arena_take(ev->arena, &b);
        return out->p ? 0 : err_nomem(ev->err);
    }
    buf_fini(&b);
    return rc;
}

static struct eng_slice all_of(struct slice prefix) {
    return (struct eng_slice){.from = {.key = prefix, .after = false}, .to = {.key = prefix, .after = true}};
}

/* Rows of the prefix whose column i is beyond the bound's value, or equal (inclusive). */
static int beyond(struct evaluation *ev, const struct range_bound *b, struct slice prefix, uint32_t i, bool inclusive,
                  struct eng_slice *out) {
    struct slice same, key;
    if (extend_key(ev, prefix, b->step, b->values, i, &same) || extend_key(ev, prefix, b->step, b->values, i + 1, &key))
        return -1;
    *out = all_of(same);
    if (b->lower != b->step->columns[i]->desc) out->from = (struct eng_bound){.key = key, .after = !inclusive};
    else out->to = (struct eng_bound){.key = key, .after = inclusive};
    return 0;
}

/* Slices of a prefix on the right side of a bound, in table order; at most bound->n. */
static int bound_slices(struct evaluation *ev, const struct range_bound *b, struct slice prefix, struct eng_slice *out,
                        uint32_t *n) {
    *n = 1;
    if (b->open) {
        out[0] = all_of(prefix);
        return 0;
    }
    bool mixed = false;
    for (uint32_t i = 1; i < b->n; i++) mixed = mixed || b->step->columns[i]->desc != b->step->columns[0]->desc;
    if (!mixed) {
        struct slice key;
        if (extend_key(ev, prefix, b->step, b->values, b->n, &key)) return -1;
        out[0] = all_of(prefix);
        if (b->lower != b->step->columns[0]->desc) out[0].from = (struct eng_bound){.key = key, .after = !b->inclusive};
        else out[0].to = (struct eng_bound){.key = key, .after = b->inclusive};
        return 0;
    }
    /* The slice of column i lies within the equals of column i - 1: before or after all others. */
    uint32_t front = b->n, back = b->n;
    struct eng_slice *tmp = ARENA_ARRAY(ev->arena, 2 * (size_t)b->n + 1, struct eng_slice);
    if (!tmp) return err_nomem(ev->err);
    for (uint32_t i = b->n; i-- > 0;) {
        struct eng_slice s;
        if (beyond(ev, b, prefix, i, b->inclusive && i + 1 == b->n, &s)) return -1;
        if (b->lower != b->step->columns[i]->desc) tmp[back++] = s;
        else tmp[--front] = s;
    }
    *n = back - front;
    memcpy(out, tmp + front, *n * sizeof(*out));
    return 0;
}

/* Orders bounds: a key that begins with K is after {K, false} and before {K, true}. */
static int bound_cmp(const struct eng_bound *a, const struct eng_bound *b) {
    size_t n = a->key.n < b->key.n ? a->key.n : b->key.n;
    int c = n ? memcmp(a->key.p, b->key.p, n) : 0;
    if (c) return c;
    if (a->key.n == b->key.n) return (int)a->after - (int)b->after;
    return a->key.n < b->key.n ? (a->after ? 1 : -1) : (b->after ? -1 : 1);
}

/* Slices of the rows with one of the key prefixes and within both bounds. */
static int range_slices(struct evaluation *ev, const struct range_bound *lower, const struct range_bound *upper,
                        const struct row_key *keys, uint32_t n_keys, struct eng_slice **slices, uint32_t *n) {
    size_t room = (lower->n + 1) * (size_t)(upper->n + 1);
    *n = 0;
    *slices = ARENA_ARRAY(ev->arena, n_keys * room + 1, struct eng_slice);
    struct eng_slice *from = ARENA_ARRAY(ev->arena, lower->n + 1, struct eng_slice),
                     *to = ARENA_ARRAY(ev->arena, upper->n + 1, struct eng_slice);
    if (!*slices || !from || !to) return err_nomem(ev->err);
    for (uint32_t i = 0; i < n_keys; i++) {
        uint32_t n_from, n_to;
        if (bound_slices(ev, lower, keys[i].ck, from, &n_from) || bound_slices(ev, upper, keys[i].ck, to, &n_to))
            return -1;
        for (uint32_t k = 0; k < n_from * n_to; k++) {
            const struct eng_slice *a = &from[k / n_to], *b = &to[k % n_to];
            const struct eng_slice both = {.from = bound_cmp(&a->from, &b->from) > 0 ? a->from : b->from,
                                           .to = bound_cmp(&a->to, &b->to) < 0 ? a->to : b->to};
            if (bound_cmp(&both.from, &both.to) < 0) (*slices)[(*n)++] = both;
        }
    }
    return 0;
}

static int eval_range(struct evaluation *ev, const struct where_step *s, struct range_bound *lower,
                      struct range_bound *upper) {
    return eval_bound(ev, s, &s->from, true, lower) || eval_bound(ev, s, &s->to, false, upper) ? -1 : 0;
}

static const struct where_step *range_step(const struct where_plan *w) {
    const struct where_step *last = w->n_clustering_steps ? w->clustering_steps[w->n_clustering_steps - 1] : NULL;
    return last && last->kind == STEP_RANGE ? last : NULL;
}

int where_slices(const struct where_plan *w, struct evaluation *ev, struct eng_slice **slices, uint32_t *n) {
    struct row_key *keys;
    uint32_t n_keys;
    *n = 0;
    if (where_row_keys(w, ev, &keys, &n_keys)) return -1;
    const struct where_step *range = range_step(w);
    struct range_bound lower, upper;
    if (range)
        return eval_range(ev, range, &lower, &upper) ? -1 : range_slices(ev, &lower, &upper, keys, n_keys, slices, n);
    *slices = ARENA_ARRAY(ev->arena, n_keys + 1, struct eng_slice);
    if (!*slices) return err_nomem(ev->err);
    for (; *n < n_keys; ++*n) (*slices)[*n] = all_of(keys[*n].ck);
    return 0;
}

/* ---- subqueries ---- */

struct numbered_key {
    struct slice ck;
    uint32_t at;
};

static int compare_numbered(const void *a, const void *b) {
    const struct numbered_key *x = a, *y = b;
    int c = slice_cmp(x->ck, y->ck);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

int where_subqueries(const struct where_plan *w, struct evaluation *ev, struct where_subquery **out, uint32_t *n) {
    struct row_key *keys;
    const struct where_step *range = range_step(w);
    struct range_bound lower, upper;
    if (combinations(w, ev, &keys, n)) return -1;
    if (*n > 1) { /* keeps the first of equal keys, in the given order */
        struct numbered_key *sorted = ARENA_ARRAY(ev->arena, *n + 1, struct numbered_key);
        bool *repeated = ARENA_ARRAY(ev->arena, *n + 1, bool);
        if (!sorted || !repeated) return err_nomem(ev->err);
        for (uint32_t i = 0; i < *n; i++) sorted[i] = (struct numbered_key){.ck = keys[i].ck, .at = i};
        qsort(sorted, *n, sizeof(*sorted), compare_numbered);
        for (uint32_t i = 1; i < *n; i++) repeated[sorted[i].at] = slice_eq(sorted[i].ck, sorted[i - 1].ck);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < *n; i++)
            if (!repeated[i]) keys[kept++] = keys[i];
        *n = kept;
    }
    if (range && eval_range(ev, range, &lower, &upper)) return -1;
    *out = ARENA_ARRAY(ev->arena, *n + 1, struct where_subquery);
    if (!*out) return err_nomem(ev->err);
    for (uint32_t i = 0; i < *n; i++) {
        struct where_subquery *q = &(*out)[i];
        *q = (struct where_subquery){.is_row = w->rows == WHERE_ROW_KEYS, .key = keys[i]};
        if (q->is_row) continue;
        if (range) {
            struct slice key;
            if (range_slices(ev, &lower, &upper, &q->key, 1, &q->slices, &q->n_slices)) return -1;
            q->has_bound = !upper.open && !upper.inclusive;
            if (!q->has_bound) continue;
            if (extend_key(ev, q->key.ck, range, upper.values, upper.n, &key)) return -1;
            q->bound = all_of(key);
            continue;
        }
        q->slices = ARENA_NEW(ev->arena, struct eng_slice);
        if (!q->slices) return err_nomem(ev->err);
        q->slices[0] = all_of(keys[i].ck);
        q->n_slices = 1;
    }
    return 0;
}
