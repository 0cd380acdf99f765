#include "tools/tally/capacity/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "tools/tally/script.h"
#include "tools/tally/world.h"

/* ---- curves ---- */

double curve_at(const struct curve *c, uint32_t second) {
    if (c->n == 1) return c->points[0].rate;
    uint32_t i = 0;
    while (i < c->n && c->points[i].second <= second) i++;
    const struct curve_point *a = &c->points[i ? i - 1 : c->n - 1], *b = &c->points[i < c->n ? i : 0];
    double from = i ? a->second : (double)a->second - DAY_S, to = i < c->n ? b->second : (double)b->second + DAY_S;
    return a->rate + (b->rate - a->rate) * (second - from) / (to - from);
}

double curve_mean(const struct curve *c) {
    double sum = 0;
    for (uint32_t s = 0; s < DAY_S; s += 60) sum += curve_at(c, s);
    return sum / (DAY_S / 60.0);
}

double curve_most(const struct curve *c) {
    double most = 0;
    for (uint32_t i = 0; i < c->n; i++) most = c->points[i].rate > most ? c->points[i].rate : most;
    return most;
}

/* ---- tables and statements ---- */

void workload_init(struct workload *w) {
    *w = (struct workload){0};
    arena_init(&w->arena, 16 << 10, 1 << 30);
    w->statements_end = &w->statements;
}

void workload_fini(struct workload *w) { arena_fini(&w->arena); }

struct workload_table *workload_table(struct workload *w, const char *keyspace, const char *name) {
    struct workload_table **at = &w->tables;
    for (; *at; at = &(*at)->next)
        if (!strcmp((*at)->keyspace, keyspace) && !strcmp((*at)->name, name)) return *at;
    struct workload_table *t = ARENA_NEW(&w->arena, struct workload_table);
    if (!t) return NULL;
    t->keyspace = arena_strdup(&w->arena, keyspace);
    t->name = arena_strdup(&w->arena, name);
    return t->keyspace && t->name ? (*at = t) : NULL;
}

struct workload_statement *workload_add(struct workload *w) {
    struct workload_statement *s = ARENA_NEW(&w->arena, struct workload_statement);
    if (!s) return NULL;
    s->consistency = CL_LOCAL_QUORUM;
    *w->statements_end = s;
    w->statements_end = &s->next;
    w->n_statements++;
    return s;
}

const struct literal_spec *workload_value_find(const struct workload_value *v, const char *column) {
    for (; v; v = v->next)
        if (!strcmp(v->column, column)) return &v->spec;
    return NULL;
}

int file_read(const char *path, struct slice *out, struct err *e) {
    struct script s;
    if (script_open(&s, path, e)) return -1;
    *out = s.text;
    return 0;
}

/* ---- YAML ---- */

struct reading {
    struct workload *w;
    yaml_document_t *doc;
    const char *path;
    struct err *e;
};

static unsigned line_of(const yaml_node_t *n) { return (unsigned)n->start_mark.line + 1; }

static int bad(const struct reading *r, const yaml_node_t *at, const char *why) {
    return err_set(r->e, ERR_CONFIG, "%s:%u: %s", r->path, line_of(at), why);
}
static int bad_key(const struct reading *r, const yaml_node_t *at, const char *where, const char *known) {
    return err_set(r->e, ERR_CONFIG, "%s:%u: unknown key '%s' of %s: there are %s", r->path, line_of(at),
                   (const char *)at->data.scalar.value, where, known);
}

static const char *scalar(const yaml_node_t *n) {
    return n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

/* The next pair of a mapping with plain keys. 1: a pair; 0: the end; -1: e. */
static int next_pair(const struct reading *r, const yaml_node_t *map, uint32_t *at, yaml_node_t **key,
                     yaml_node_t **value) {
    if (map->type != YAML_MAPPING_NODE) return bad(r, map, "pairs of a key and a value are expected here");
    const yaml_node_pair_t *p = map->data.mapping.pairs.start + *at;
    if (p >= map->data.mapping.pairs.top) return 0;
    *key = yaml_document_get_node(r->doc, p->key);
    *value = yaml_document_get_node(r->doc, p->value);
    ++*at;
    if (!*key || !*value || !scalar(*key)) return bad(r, map, "keys are plain words");
    for (const yaml_node_pair_t *q = map->data.mapping.pairs.start; q < p; q++) {
        const yaml_node_t *before = yaml_document_get_node(r->doc, q->key);
        if (!strcmp(scalar(before), scalar(*key)))
            return err_set(r->e, ERR_CONFIG, "%s:%u: '%s' is there twice", r->path, line_of(*key), scalar(*key));
    }
    return 1;
}

static int read_number(const struct reading *r, const yaml_node_t *n, double *out) {
    char *end;
    const char *text = scalar(n);
    if (!text) return bad(r, n, "a number is expected here");
    *out = strtod(text, &end);
    if (end == text || *end || !isfinite(*out) || *out < 0)
        return err_set(r->e, ERR_CONFIG, "%s:%u: '%s' is no number from 0 upward", r->path, line_of(n), text);
    return 0;
}

static int read_count(const struct reading *r, const yaml_node_t *n, uint64_t most, uint64_t *out) {
    double d;
    if (read_number(r, n, &d)) return -1;
    if (d < 1 || d > (double)most || d != floor(d))
        return err_set(r->e, ERR_CONFIG, "%s:%u: '%s' is no whole number from 1 to %llu", r->path, line_of(n),
                       scalar(n), (unsigned long long)most);
    *out = (uint64_t)d;
    return 0;
}

static int read_values(const struct reading *r, const yaml_node_t *map, struct workload_value **out) {
    yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    while ((rc = next_pair(r, map, &at, &key, &value)) > 0) {
        struct workload_value *v = ARENA_NEW(&r->w->arena, struct workload_value);
        struct err why = {0};
        if (!scalar(value)) return bad(r, value, "what a column holds is said as text: size 20..400");
        if (!v || !(v->column = arena_strdup(&r->w->arena, scalar(key)))) return err_nomem(r->e);
        if (literal_spec_parse(&r->w->arena, scalar(value), &v->spec, &why))
            return err_set(r->e, ERR_CONFIG, "%s:%u: %s: %s", r->path, line_of(value), scalar(key), why.text);
        v->next = *out;
        *out = v;
    }
    return rc;
}

/* Converts "8:30" to seconds; -1: not a time of day. */
static int32_t time_of_day(const char *text) {
    unsigned hour, minute = 0;
    int used = 0;
    if (sscanf(text, "%2u%n", &hour, &used) != 1 || hour > 24) return -1;
    text += used;
    if (*text && (sscanf(text, ":%2u%n", &minute, &used) != 1 || text[used] || minute > 59)) return -1;
    return hour * 3600 + minute * 60 < DAY_S ? (int32_t)(hour * 3600 + minute * 60) : -1;
}

static int read_rate(const struct reading *r, const yaml_node_t *n, struct curve *out) {
    enum { RATE_MAX = 10000000 };
    yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    *out = (struct curve){0};
    if (scalar(n)) {
        out->n = 1;
        if (read_number(r, n, &out->points[0].rate)) return -1;
        return out->points[0].rate > RATE_MAX ? bad(r, n, "that is more than ten million a second") : 0;
    }
    while ((rc = next_pair(r, n, &at, &key, &value)) > 0) {
        int32_t second = time_of_day(scalar(key));
        if (second < 0)
            return err_set(r->e, ERR_CONFIG, "%s:%u: '%s' is no time of a day, as 8 or 20:30", r->path, line_of(key),
                           scalar(key));
        if (out->n == CURVE_MAX) return bad(r, key, "a day has at most 288 points");
        if (out->n && (uint32_t)second <= out->points[out->n - 1].second) return bad(r, key, "times go up");
        struct curve_point *p = &out->points[out->n++];
        p->second = (uint32_t)second;
        if (read_number(r, value, &p->rate)) return -1;
        if (p->rate > RATE_MAX) return bad(r, value, "that is more than ten million a second");
    }
    return rc ? rc : out->n ? 0 : bad(r, n, "a rate is a number a second, or times of the day with numbers");
}

static int read_keys(const struct reading *r, const yaml_node_t *n, struct keys *out) {
    const char *text = scalar(n);
    double percent;
    unsigned long long hot;
    int used = 0;
    if (text && !strcmp(text, "uniform")) return 0;
    if (text && sscanf(text, "zipf %lf%n", &out->exponent, &used) == 1 && !text[used] && out->exponent > 0 &&
        out->exponent <= 10)
        return out->shape = KEYS_ZIPF, 0;
    if (text && sscanf(text, "hot %lf%% on %llu%n", &percent, &hot, &used) == 2 && !text[used] && percent > 0 &&
        percent <= 100 && hot) {
        out->shape = KEYS_HOT;
        out->share = percent / 100;
        out->hot = hot;
        return 0;
    }
    return bad(r, n, "keys is uniform, zipf S (S above 0 to 10), or hot P% on N");
}

static int read_table(const struct reading *r, const yaml_node_t *name, const yaml_node_t *map) {
    char keyspace[64], table[64];
    yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc, used = 0;
    if (sscanf(scalar(name), "%63[^.].%63[^.]%n", keyspace, table, &used) != 2 || scalar(name)[used])
        return bad(r, name, "a table is named keyspace.table");
    struct workload_table *t = workload_table(r->w, keyspace, table);
    if (!t) return err_nomem(r->e);
    t->file = r->path;
    t->line = line_of(name);
    while ((rc = next_pair(r, map, &at, &key, &value)) > 0) {
        const char *k = scalar(key);
        if (!strcmp(k, "partitions")) rc = read_count(r, value, 1000000000000, &t->partitions);
        else if (!strcmp(k, "rows_per_partition")) rc = read_count(r, value, 1000000000, &t->rows_per_partition);
        else if (!strcmp(k, "values")) rc = read_values(r, value, &t->values);
        else rc = bad_key(r, key, "a table", "partitions, rows_per_partition, values");
        if (rc) return -1;
    }
    return rc;
}

static int read_field(const struct reading *r, struct workload_statement *s, const yaml_node_t *key,
                      const yaml_node_t *value) {
    const char *k = scalar(key), *text = scalar(value);
    uint64_t n;
    if (!strcmp(k, "rate")) return s->has_rate = true, read_rate(r, value, &s->rate);
    if (!strcmp(k, "keys")) return s->has_keys = true, read_keys(r, value, &s->keys);
    if (!strcmp(k, "values")) return read_values(r, value, &s->values);
    if (!text) return bad(r, value, "a plain value is expected here");
    if (!strcmp(k, "name") || !strcmp(k, "cql")) {
        const char *copy = arena_strdup(&r->w->arena, text);
        if (!copy) return err_nomem(r->e);
        return (*k == 'n' ? (s->name = copy) : (s->text = copy)), 0;
    }
    if (!strcmp(k, "consistency")) {
        int level = world_consistency(text);
        if (level < 0)
            return err_set(r->e, ERR_CONFIG, "%s:%u: there is no consistency level '%s'", r->path, line_of(value),
                           text);
        return s->consistency = (uint16_t)level, 0;
    }
    if (!strcmp(k, "page_size")) {
        if (read_count(r, value, INT32_MAX, &n)) return -1;
        return s->page_size = (int32_t)n, 0;
    }
    if (!strcmp(k, "rows")) {
        s->has_new_rows = true;
        s->new_rows = !strcmp(text, "new");
        return s->new_rows || !strcmp(text, "existing") ? 0 : bad(r, value, "rows is new or existing");
    }
    return bad_key(r, key, "a statement", "name, cql, rate, keys, values, rows, consistency, page_size");
}

static int read_statement(const struct reading *r, const yaml_node_t *map) {
    yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    struct workload_statement *s = workload_add(r->w);
    if (!s) return err_nomem(r->e);
    s->file = r->path;
    s->line = line_of(map);
    while ((rc = next_pair(r, map, &at, &key, &value)) > 0) {
        if (read_field(r, s, key, value)) return -1;
        if (!strcmp(scalar(key), "cql")) s->line = line_of(key);
    }
    if (rc) return -1;
    if (!s->text) return bad(r, map, "a statement has cql");
    if (!s->has_rate) return bad(r, map, "a statement has a rate: a number a second, or times of the day with numbers");
    if (!s->name) s->name = s->text;
    return 0;
}

static int read_root(const struct reading *r, const yaml_node_t *root) {
    yaml_node_t *key, *value, *name, *map;
    uint32_t at = 0;
    int rc;
    while ((rc = next_pair(r, root, &at, &key, &value)) > 0) {
        uint32_t t = 0;
        if (!strcmp(scalar(key), "tables")) {
            while ((rc = next_pair(r, value, &t, &name, &map)) > 0)
                if (read_table(r, name, map)) return -1;
            if (rc) return -1;
        } else if (!strcmp(scalar(key), "statements")) {
            if (value->type != YAML_SEQUENCE_NODE) return bad(r, value, "statements is a list");
            for (yaml_node_item_t *i = value->data.sequence.items.start; i < value->data.sequence.items.top; i++)
                if (read_statement(r, yaml_document_get_node(r->doc, *i))) return -1;
        } else return bad_key(r, key, "a workload", "tables, statements");
    }
    return rc;
}

int workload_read(struct workload *w, const char *path, struct slice text, struct err *e) {
    yaml_parser_t parser;
    yaml_document_t doc;
    if (!yaml_parser_initialize(&parser)) return err_nomem(e);
    yaml_parser_set_input_string(&parser, text.p, text.n);
    int rc = -1;
    if (!yaml_parser_load(&parser, &doc))
        err_set(e, ERR_CONFIG, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "not YAML");
    else {
        const struct reading r = {.w = w, .doc = &doc, .path = path, .e = e};
        const yaml_node_t *root = yaml_document_get_root_node(&doc);
        rc = root ? read_root(&r, root) : err_set(e, ERR_CONFIG, "%s:1: the file is empty", path);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return rc;
}
