#include "tools/tally/capacity/workload.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "tools/tally/script.h"
#include "tools/tally/world.h"
#include "tools/tally/yaml.h"

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
    w->notes_end = &w->notes;
}

void workload_fini(struct workload *w) { arena_fini(&w->arena); }

int workload_note(struct workload *w, struct err *e, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct note *n = ARENA_NEW(&w->arena, struct note);
    if (!n || !(n->text = arena_strdup(&w->arena, text))) return err_nomem(e);
    *w->notes_end = n;
    w->notes_end = &n->next;
    return 0;
}

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

int file_read(struct arena *a, const char *path, struct slice *out, struct err *e) {
    struct script s;
    if (script_open(&s, path, e)) return -1;
    *out = arena_dup(a, s.text);
    script_close(&s);
    return out->p ? 0 : err_nomem(e);
}

/* ---- the file ---- */

static int read_values(struct yaml_file *y, const yaml_node_t *map, void *to) {
    struct workload_value **out = to;
    const yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    while ((rc = yaml_next(y, map, &at, &key, &value)) > 0) {
        struct workload_value *v = ARENA_NEW(y->arena, struct workload_value);
        struct err why = {0};
        if (!yaml_scalar(value)) return yaml_wrong(y, value, "the values of a column are described as text: size "
                                                             "20..400");
        if (!v || !(v->column = arena_strdup(y->arena, yaml_scalar(key)))) return err_nomem(y->e);
        if (literal_spec_parse(y->arena, yaml_scalar(value), &v->spec, &why))
            return yaml_wrong(y, value, "%s: %s", yaml_scalar(key), why.text);
        v->next = *out;
        *out = v;
    }
    return rc;
}

static int read_rate(struct yaml_file *y, const yaml_node_t *n, void *to) {
    enum { RATE_MAX = 10000000 };
    struct workload_statement *s = to;
    struct curve *c = &s->rate;
    const yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc = 0;
    s->has_rate = true;
    c->n = yaml_scalar(n) ? 1 : 0;
    if (c->n && yaml_number(y, n, 0, INFINITY, &c->points[0].rate)) return -1;
    while (!yaml_scalar(n) && (rc = yaml_next(y, n, &at, &key, &value)) > 0) {
        const char *text = yaml_scalar(key);
        unsigned hour = 0, minute = 0;
        int used = 0, more = 0;
        bool is_time = sscanf(text, "%2u%n:%2u%n", &hour, &used, &minute, &more) >= 1 && !text[more ? more : used];
        uint32_t second = hour * 3600 + minute * 60;
        if (!is_time || hour > 23 || minute > 59)
            return yaml_wrong(y, key, "'%s' is no time of a day, as 8 or 20:30", text);
        if (c->n == CURVE_MAX) return yaml_wrong(y, key, "a day has at most 288 points");
        if (c->n && second <= c->points[c->n - 1].second) return yaml_wrong(y, key, "times go up");
        struct curve_point *p = &c->points[c->n++];
        p->second = second;
        if (yaml_number(y, value, 0, INFINITY, &p->rate)) return -1;
    }
    if (rc) return rc;
    if (curve_most(c) > RATE_MAX) return yaml_wrong(y, n, "that is more than ten million a second");
    return c->n ? 0 : yaml_wrong(y, n, "a rate is a number a second, or times of the day with numbers");
}

static int read_keys(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct workload_statement *s = to;
    struct key_distribution *k = &s->keys;
    const char *text = yaml_scalar(n) ? yaml_scalar(n) : "";
    double percent;
    unsigned long long hot;
    int used = 0;
    s->has_keys = true;
    if (!strcmp(text, "uniform")) return 0;
    if (sscanf(text, "zipf %lf%n", &k->exponent, &used) == 1 && !text[used] && k->exponent > 0 && k->exponent <= 10) {
        k->shape = KEYS_ZIPF;
        return 0;
    }
    if (sscanf(text, "hot %lf%% on %llu%n", &percent, &hot, &used) == 2 && !text[used] && percent > 0 &&
        percent <= 100 && hot) {
        k->shape = KEYS_HOT;
        k->share = percent / 100;
        k->hot = hot;
        return 0;
    }
    return yaml_wrong(y, n, "keys is uniform, zipf S (S above 0 to 10), or hot P%% on N");
}

static int read_cql(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct workload_statement *s = to;
    s->line = yaml_line(n);
    return (s->text = yaml_text(y, n)) ? 0 : -1;
}

static int read_consistency(struct yaml_file *y, const yaml_node_t *n, void *to) {
    int level = world_consistency(yaml_scalar(n));
    if (level < 0) return yaml_wrong(y, n, "there is no consistency level '%s'", yaml_scalar(n) ? yaml_scalar(n) : "");
    ((struct workload_statement *)to)->consistency = (uint16_t)level;
    return 0;
}

static int read_new_rows(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct workload_statement *s = to;
    const char *text = yaml_scalar(n) ? yaml_scalar(n) : "";
    s->has_new_rows = true;
    s->new_rows = !strcmp(text, "new");
    return s->new_rows || !strcmp(text, "existing") ? 0 : yaml_wrong(y, n, "rows is new or existing");
}

static int read_statement(struct yaml_file *y, const yaml_node_t *map, void *to) {
    static const struct yaml_key keys[] = {
        {"name", KEY_TEXT, offsetof(struct workload_statement, name)},
        {"cql", KEY_READ, .read = read_cql},
        {"rate", KEY_READ, .read = read_rate},
        {"keys", KEY_READ, .read = read_keys},
        {"values", KEY_READ, offsetof(struct workload_statement, values), .read = read_values},
        {"rows", KEY_READ, .read = read_new_rows},
        {"consistency", KEY_READ, .read = read_consistency},
        {"page_size", KEY_COUNT, offsetof(struct workload_statement, page_size), 1, INT32_MAX}};
    struct workload_statement *s = workload_add(to);
    if (!s) return err_nomem(y->e);
    s->file = y->path;
    if (yaml_map(y, map, "a statement", keys, ARRAY_LEN(keys), s)) return -1;
    if (!s->text) return yaml_wrong(y, map, "a statement has cql");
    if (!s->has_rate)
        return yaml_wrong(y, map, "a statement has a rate: a number a second, or times of the day with numbers");
    if (!s->name) s->name = s->text;
    return 0;
}

static int read_tables(struct yaml_file *y, const yaml_node_t *map, void *to) {
    static const struct yaml_key keys[] = {
        {"partitions", KEY_COUNT, offsetof(struct workload_table, partitions), 1, 1e12},
        {"rows_per_partition", KEY_COUNT, offsetof(struct workload_table, rows_per_partition), 1, 1e9},
        {"values", KEY_READ, offsetof(struct workload_table, values), .read = read_values}};
    const yaml_node_t *name, *value;
    uint32_t at = 0;
    int rc;
    while ((rc = yaml_next(y, map, &at, &name, &value)) > 0) {
        char keyspace[64], table[64];
        int used = 0;
        if (sscanf(yaml_scalar(name), "%63[^.].%63[^.]%n", keyspace, table, &used) != 2 || yaml_scalar(name)[used])
            return yaml_wrong(y, name, "a table is named keyspace.table");
        struct workload_table *t = workload_table(to, keyspace, table);
        if (!t) return err_nomem(y->e);
        t->file = y->path;
        t->line = yaml_line(name);
        if (yaml_map(y, value, "a table", keys, ARRAY_LEN(keys), t)) return -1;
    }
    return rc;
}

static int read_workload(struct yaml_file *y, const yaml_node_t *root, void *to) {
    static const struct yaml_key keys[] = {{"tables", KEY_READ, .read = read_tables},
                                           {"statements", KEY_LIST, .read = read_statement}};
    return yaml_map(y, root, "a workload", keys, ARRAY_LEN(keys), to);
}

int workload_read(struct workload *w, const char *path, struct slice text, struct err *e) {
    struct yaml_file y = {.arena = &w->arena, .path = path, .e = e};
    return yaml_read(&y, text, read_workload, w);
}
