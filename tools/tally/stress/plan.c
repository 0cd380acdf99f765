#include "tools/tally/stress/plan.h"

#include <strings.h>

#include "tools/tally/script.h"
#include "tools/tally/world.h"
#include "tools/tally/yaml.h"

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

/* ---- statements ---- */

static int read_cql(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct plan_statement *s = to;
    s->cql = yaml_text(y, n);
    s->line = yaml_line(n);
    s->reads = s->cql && !strncasecmp(s->cql, "SELECT", 6);
    return s->cql ? 0 : -1;
}

static int read_consistency(struct yaml_file *y, const yaml_node_t *n, void *to) {
    int level = world_consistency(yaml_scalar(n));
    if (level < 0) return yaml_wrong(y, n, "there is no such consistency level");
    ((struct plan_statement *)to)->consistency = (uint16_t)level;
    return 0;
}

static int read_value(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct plan_statement *s = to;
    const char *text = yaml_scalar(n);
    struct err why = {0};
    if (!text) return yaml_wrong(y, n, "a plain value is expected here");
    if (s->n_values == PLAN_VALUES) return yaml_wrong(y, n, "too many values");
    if (dist_parse(slice_str(text), &s->values[s->n_values], &why)) return yaml_wrong(y, n, "%s", why.text);
    s->n_values++;
    return 0;
}

/* with: the key that the statement has besides its own. */
static int read_statement(struct yaml_file *y, const yaml_node_t *n, const struct yaml_key *with,
                          struct plan_statement *s) {
    const struct yaml_key keys[] = {
        {"cql", KEY_READ, .read = read_cql},
        {"consistency", KEY_READ, .read = read_consistency},
        {"page_size", KEY_COUNT, offsetof(struct plan_statement, page_size), 1, INT32_MAX},
        {"values", KEY_LIST, .read = read_value},
        *with};
    *s = (struct plan_statement){.weight = 1, .consistency = CL_LOCAL_QUORUM, .page_size = 5000};
    if (yaml_map(y, n, "a statement", keys, ARRAY_LEN(keys), s)) return -1;
    return s->cql ? 0 : yaml_wrong(y, n, "a statement needs cql");
}

/* ---- the plan ---- */

static int read_definition(struct yaml_file *y, const yaml_node_t *n, void *to) {
    struct plan *p = to;
    if (p->n_schema == PLAN_SCHEMA) return yaml_wrong(y, n, "too many statements");
    return (p->schema[p->n_schema++] = yaml_text(y, n)) ? 0 : -1;
}

static int read_load(struct yaml_file *y, const yaml_node_t *n, void *to) {
    static const struct yaml_key rows = {"rows", KEY_COUNT, offsetof(struct plan_statement, rows), 1, 1e10};
    struct plan *p = to;
    if (read_statement(y, n, &rows, &p->load)) return -1;
    return p->load.rows ? 0 : yaml_wrong(y, n, "load needs rows: how many");
}

static int read_sent(struct yaml_file *y, const yaml_node_t *n, void *to) {
    static const struct yaml_key weight = {"weight", KEY_COUNT, offsetof(struct plan_statement, weight), 0, 1e6};
    struct plan *p = to;
    if (p->n_statements == PLAN_STATEMENTS) return yaml_wrong(y, n, "too many statements");
    struct plan_statement *s = &p->statements[p->n_statements++];
    if (read_statement(y, n, &weight, s)) return -1;
    p->total_weight += s->weight;
    return 0;
}

static int read_burst(struct yaml_file *y, const yaml_node_t *n, void *to) {
    static const struct yaml_key keys[] = {{"every", KEY_NUMBER, offsetof(struct plan, burst_every), 0.1, 86400},
                                           {"for", KEY_NUMBER, offsetof(struct plan, burst_for), 0.1, 86400},
                                           {"times", KEY_NUMBER, offsetof(struct plan, burst_times), 0.01, 1e6}};
    const struct plan *p = to;
    if (yaml_map(y, n, "burst", keys, ARRAY_LEN(keys), to)) return -1;
    return p->burst_every > 0 && p->burst_for > 0 && p->burst_times > 0
               ? 0
               : yaml_wrong(y, n, "burst needs every, for and times");
}

static int read_plan(struct yaml_file *y, const yaml_node_t *root, void *to) {
    static const struct yaml_key keys[] = {{"schema", KEY_LIST, .read = read_definition},
                                           {"load", KEY_READ, .read = read_load},
                                           {"statements", KEY_LIST, .read = read_sent},
                                           {"rate", KEY_NUMBER, offsetof(struct plan, rate), 0, 1e7},
                                           {"burst", KEY_READ, .read = read_burst}};
    const struct plan *p = to;
    if (yaml_map(y, root, "a profile", keys, ARRAY_LEN(keys), to)) return -1;
    return p->total_weight ? 0 : yaml_wrong(y, root, "statements are needed, with a weight above 0");
}

int plan_parse(struct plan *p, const char *path, struct slice text, struct err *e) {
    struct yaml_file y = {.arena = &p->arena, .path = path, .e = e};
    *p = (struct plan){.path = path};
    arena_init(&p->arena, 16 << 10, 64 << 20);
    if (!yaml_read(&y, text, read_plan, p)) return 0;
    plan_fini(p);
    return -1;
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
