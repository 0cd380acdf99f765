#include "tools/tally/stress/plan.h"

#include <stdlib.h>
#include <strings.h>
#include <yaml.h>

#include "tools/tally/script.h"
#include "tools/tally/world.h"

struct reading {
    struct plan *plan;
    yaml_document_t doc;
    struct err *e;
};

static const struct {
    const char *name, *what, *text;
} profiles[] = {
#define PROFILE(name_, what_, text_) {.name = #name_, .what = what_, .text = text_},
#include "tools/tally/stress/profile.def"
#undef PROFILE
};

const char *plan_profile(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
        if (!strcmp(profiles[i].name, name)) return profiles[i].text;
    return NULL;
}

void plan_profile_names(struct buf *out) {
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
        buf_printf(out, "%s%s (%s)", i ? "; " : "", profiles[i].name, profiles[i].what);
}

/* ---- nodes ---- */

static int wrong(struct reading *r, const yaml_node_t *at, const char *what) {
    return err_set(r->e, ERR_CONFIG, "%s:%zu: %s", r->plan->path, at ? at->start_mark.line + 1 : 1, what);
}

static yaml_node_t *node(struct reading *r, int id) { return yaml_document_get_node(&r->doc, id); }

static const char *text_of(struct reading *r, const yaml_node_t *n) {
    if (n->type != YAML_SCALAR_NODE) return (void)wrong(r, n, "a text or a number is expected here"), NULL;
    struct slice s = arena_dup(&r->plan->arena, slice_of(n->data.scalar.value, n->data.scalar.length));
    if (!s.p) (void)err_nomem(r->e);
    return (const char *)s.p;
}

static int number_of(struct reading *r, const yaml_node_t *n, double least, double most, double *out) {
    const char *text = text_of(r, n);
    char *end;
    if (!text) return -1;
    *out = strtod(text, &end);
    if (!*end && end != text && *out >= least && *out <= most) return 0;
    return err_set(r->e, ERR_CONFIG, "%s:%zu: a number from %.15g to %.15g is expected here, not '%s'", r->plan->path,
                   n->start_mark.line + 1, least, most, text);
}

/* ---- mappings: each key has a function ---- */

typedef int (*key_fn)(struct reading *r, const yaml_node_t *value, void *to);
struct key {
    const char *name;
    key_fn read;
};

static int read_map(struct reading *r, const yaml_node_t *map, const struct key *keys, size_t n, void *to) {
    if (map->type != YAML_MAPPING_NODE) return wrong(r, map, "keys with values are expected here");
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = node(r, p->key);
        const char *name = text_of(r, key);
        size_t i = 0;
        if (!name) return -1;
        while (i < n && strcmp(keys[i].name, name)) i++;
        if (i == n)
            return err_set(r->e, ERR_CONFIG, "%s:%zu: '%s' is not known here", r->plan->path, key->start_mark.line + 1,
                           name);
        if (keys[i].read(r, node(r, p->value), to)) return -1;
    }
    return 0;
}

/* ---- statements ---- */

static int read_cql(struct reading *r, const yaml_node_t *n, void *to) {
    struct plan_statement *s = to;
    s->cql = text_of(r, n);
    s->line = (uint32_t)n->start_mark.line + 1;
    s->reads = s->cql && !strncasecmp(s->cql, "SELECT", 6);
    return s->cql ? 0 : -1;
}

static int read_weight(struct reading *r, const yaml_node_t *n, void *to) {
    double x;
    if (number_of(r, n, 0, 1e6, &x)) return -1;
    ((struct plan_statement *)to)->weight = (uint32_t)x;
    return 0;
}

static int read_page_size(struct reading *r, const yaml_node_t *n, void *to) {
    double x;
    if (number_of(r, n, 1, INT32_MAX, &x)) return -1;
    ((struct plan_statement *)to)->page_size = (int32_t)x;
    return 0;
}

static int read_consistency(struct reading *r, const yaml_node_t *n, void *to) {
    const char *name = text_of(r, n);
    int level = name ? world_consistency(name) : -1;
    if (level < 0) return r->e->set ? -1 : wrong(r, n, "there is no such consistency level");
    ((struct plan_statement *)to)->consistency = (uint16_t)level;
    return 0;
}

static int read_values(struct reading *r, const yaml_node_t *n, void *to) {
    struct plan_statement *s = to;
    if (n->type != YAML_SEQUENCE_NODE) return wrong(r, n, "values are a list, one for each ? of the statement");
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        const yaml_node_t *item = node(r, *i);
        const char *text = text_of(r, item);
        struct err why = {0};
        if (!text) return -1;
        if (s->n_values == PLAN_VALUES) return wrong(r, item, "too many values");
        if (dist_parse(slice_str(text), &s->values[s->n_values], &why)) return wrong(r, item, why.text);
        s->n_values++;
    }
    return 0;
}

static int read_rows(struct reading *r, const yaml_node_t *n, void *to) {
    double x;
    (void)to;
    if (number_of(r, n, 1, 1e10, &x)) return -1;
    r->plan->load_rows = (uint64_t)x;
    return 0;
}

static const struct key statement_keys[] = {
    {"cql", read_cql},       {"weight", read_weight}, {"consistency", read_consistency}, {"page_size", read_page_size},
    {"values", read_values}, {"rows", read_rows}};
enum { OF_STATEMENT = 5, OF_LOAD = 6 };

static int read_statement(struct reading *r, const yaml_node_t *n, size_t keys, struct plan_statement *s) {
    *s = (struct plan_statement){.weight = 1, .consistency = CL_LOCAL_QUORUM, .page_size = 5000};
    if (read_map(r, n, statement_keys, keys, s)) return -1;
    return s->cql ? 0 : wrong(r, n, "a statement needs cql");
}

/* ---- the plan ---- */

static int read_schema(struct reading *r, const yaml_node_t *n, void *to) {
    struct plan *p = to;
    if (n->type != YAML_SEQUENCE_NODE) return wrong(r, n, "schema is a list of statements");
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        if (p->n_schema == PLAN_SCHEMA) return wrong(r, node(r, *i), "too many statements");
        if (!(p->schema[p->n_schema] = text_of(r, node(r, *i)))) return -1;
        p->n_schema++;
    }
    return 0;
}

static int read_load(struct reading *r, const yaml_node_t *n, void *to) {
    struct plan *p = to;
    if (read_statement(r, n, OF_LOAD, &p->load)) return -1;
    return p->load_rows ? 0 : wrong(r, n, "load needs rows: how many");
}

static int read_statements(struct reading *r, const yaml_node_t *n, void *to) {
    struct plan *p = to;
    if (n->type != YAML_SEQUENCE_NODE) return wrong(r, n, "statements is a list");
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        if (p->n_statements == PLAN_STATEMENTS) return wrong(r, node(r, *i), "too many statements");
        struct plan_statement *s = &p->statements[p->n_statements++];
        if (read_statement(r, node(r, *i), OF_STATEMENT, s)) return -1;
        p->total_weight += s->weight;
    }
    return 0;
}

static int read_rate(struct reading *r, const yaml_node_t *n, void *to) {
    return number_of(r, n, 0, 1e7, &((struct plan *)to)->rate);
}
static int read_every(struct reading *r, const yaml_node_t *n, void *to) {
    return number_of(r, n, 0.1, 86400, &((struct plan *)to)->burst_every);
}
static int read_for(struct reading *r, const yaml_node_t *n, void *to) {
    return number_of(r, n, 0.1, 86400, &((struct plan *)to)->burst_for);
}
static int read_times(struct reading *r, const yaml_node_t *n, void *to) {
    return number_of(r, n, 0.01, 1e6, &((struct plan *)to)->burst_times);
}

static int read_burst(struct reading *r, const yaml_node_t *n, void *to) {
    static const struct key keys[] = {{"every", read_every}, {"for", read_for}, {"times", read_times}};
    const struct plan *p = to;
    if (read_map(r, n, keys, ARRAY_LEN(keys), to)) return -1;
    return p->burst_every > 0 && p->burst_for > 0 && p->burst_times > 0
               ? 0
               : wrong(r, n, "burst needs every, for and times");
}

static int read_plan(struct reading *r, struct plan *p) {
    static const struct key keys[] = {{"schema", read_schema},
                                      {"load", read_load},
                                      {"statements", read_statements},
                                      {"rate", read_rate},
                                      {"burst", read_burst}};
    const yaml_node_t *root = yaml_document_get_root_node(&r->doc);
    if (!root) return wrong(r, NULL, "the file is empty");
    if (read_map(r, root, keys, ARRAY_LEN(keys), p)) return -1;
    return p->total_weight ? 0 : wrong(r, root, "statements are needed, with a weight above 0");
}

int plan_parse(struct plan *p, const char *path, struct slice text, struct err *e) {
    struct reading r = {.plan = p, .e = e};
    yaml_parser_t parser;
    *p = (struct plan){.path = path};
    arena_init(&p->arena, 16 << 10, 64 << 20);
    if (!yaml_parser_initialize(&parser)) return err_nomem(e);
    yaml_parser_set_input_string(&parser, text.p, text.n);
    int rc = yaml_parser_load(&parser, &r.doc)
                 ? 0
                 : err_set(e, ERR_CONFIG, "%s:%zu: this is no YAML: %s", path, parser.problem_mark.line + 1,
                           parser.problem ? parser.problem : "it cannot be read");
    if (!rc) {
        rc = read_plan(&r, p);
        yaml_document_delete(&r.doc);
    }
    yaml_parser_delete(&parser);
    if (rc) plan_fini(p);
    return rc;
}

int plan_open(struct plan *p, const char *path, struct err *e) {
    struct script file;
    if (script_open(&file, path, e)) return -1;
    int rc = plan_parse(p, path, file.text.p ? file.text : slice_str(""), e);
    script_close(&file);
    return rc;
}

static void fini_statement(struct plan_statement *s) {
    for (uint32_t i = 0; i < s->n_values; i++) dist_fini(&s->values[i]);
}

void plan_fini(struct plan *p) {
    fini_statement(&p->load);
    for (uint32_t i = 0; i < p->n_statements; i++) fini_statement(&p->statements[i]);
    arena_fini(&p->arena);
    *p = (struct plan){0};
}

double plan_rate_at(const struct plan *p, double at) {
    if (!(p->burst_every > 0)) return p->rate;
    double in = at - (double)(uint64_t)(at / p->burst_every) * p->burst_every;
    return in < p->burst_for ? p->rate * p->burst_times : p->rate;
}
