#include "tools/tally/capacity/measure.h"

#include <stdlib.h>
#include <strings.h>

#include "tools/tally/capacity/rows.h"
#include "tools/tally/script.h"

/* Rows that the worlds of a statement are filled with; of one partition more. */
enum { ROWS_LOADED = 20000, ROWS_OF_PARTITION = 100000, PARTITIONS_STORED = 50, SCANNED_ROWS = 2000 };
enum { YEARS_20_S = 630720000 };

static int out_of(struct measure *m, struct err *e, const char *fmt, const char *words, const char **out) {
    *out = arena_printf(&m->w->arena, fmt, words);
    return *out ? 0 : err_nomem(e);
}

/* ---- the schema ---- */

/* Without tables. */
static struct world *new_world(const struct measure *m, enum size_model model, bool strict, struct err *e) {
    struct pricing p = *m->o.pricing;
    p.schema = NULL;
    p.size_model = model == SIZE_CURRENT ? "current" : "documented-2022";
    return pricing_world(&p, strict, e);
}

static int note_refusal(struct measure *m, uint32_t line, const char *words, struct slice text, struct err *e) {
    struct measured_refusal **at = &m->refusals, *r = ARENA_NEW(&m->w->arena, struct measured_refusal);
    while (*at) at = &(*at)->next;
    if (!r) return err_nomem(e);
    r->line = line;
    r->words = arena_strdup(&m->w->arena, words);
    r->text = (const char *)arena_dup(&m->w->arena, slice_of(text.p, text.n < 200 ? text.n : 200)).p;
    *at = r;
    return r->words && r->text ? 0 : err_nomem(e);
}

struct world *measure_world(const struct measure *m, enum size_model model, bool strict, struct err *e) {
    struct world *w = new_world(m, model, strict, e);
    struct script s;
    struct script_statement at;
    struct err why;
    if (!w || !m->o.text.p) return w;
    script_of(&s, m->o.schema, m->o.text);
    while (script_next(&s, &at)) {
        const struct world_request q = {.text = at.text, .consistency = CL_LOCAL_QUORUM};
        if (world_define(w, &q, &why)) continue; /* measure_open has noted it */
    }
    return w;
}

/* What a world without Keyspaces' rules refuses in the same words is wrong everywhere. */
static int check_schema(struct measure *m, struct world *strict, struct world *lenient, struct err *e) {
    struct script s;
    struct script_statement at;
    struct world_answer ignored;
    int rc = 0;
    if (!m->o.text.p) return 0;
    script_of(&s, m->o.schema, m->o.text);
    while (!rc && script_next(&s, &at)) {
        const struct world_request q = {.text = at.text, .consistency = CL_LOCAL_QUORUM};
        struct err why = {0}, other = {0};
        bool wrong = world_run(lenient, &q, &ignored, &other) != 0, refused = world_run(strict, &q, &ignored, &why) != 0;
        if (refused && wrong && !strcmp(why.text, other.text)) rc = err_set(e, ERR_CONFIG, "%s:%u: %s", m->o.schema, at.line, why.text);
        else if (refused) rc = note_refusal(m, at.line, why.text, at.text, e);
        if (refused && !wrong && world_define(strict, &q, &other)) rc = err_set(e, ERR_CONFIG, "%s:%u: %s", m->o.schema, at.line, other.text);
    }
    return rc;
}

int measure_open(struct measure *m, const struct measure_options *o, struct workload *w, struct err *e) {
    *m = (struct measure){.o = *o, .w = w};
    m->base = new_world(m, o->model, false, e);
    struct world *strict = m->base ? new_world(m, o->model, true, e) : NULL;
    if (!strict) return -1;
    int rc = check_schema(m, strict, m->base, e);
    world_free(strict);
    m->schema = world_schema(m->base);
    return rc;
}

void measure_close(struct measure *m) {
    if (m->schema) schema_unref(m->schema);
    if (m->base) world_free(m->base);
}

const struct schema_table *measure_table(const struct measure *m, const char *keyspace, const char *name) {
    struct err ignored = {0};
    return schema_table_find(m->schema, keyspace, name, &ignored);
}

static const struct workload_table *input_of(const struct measure *m, const struct schema_table *t) {
    for (const struct workload_table *i = m->w->tables; i; i = i->next)
        if (!strcmp(i->keyspace, t->keyspace->name) && !strcmp(i->name, t->name)) return i;
    return NULL;
}

/* ---- filling worlds ---- */

/* What a statement's worlds are, and which partitions stand in them. */
struct bench {
    struct measure *m;
    struct world *of[MODELS], *strict;
    struct rows rows;
    uint64_t *ranks, loaded; /* of the partitions that are loaded */
    uint32_t n_ranks, cap;
    struct buf text;
};

static void bench_close(struct bench *b) {
    for (int i = 0; i < MODELS; i++)
        if (b->of[i]) world_free(b->of[i]);
    if (b->strict) world_free(b->strict);
    buf_fini(&b->text);
    free(b->ranks);
}

static int bench_open(struct bench *b, struct measure *m, struct err *e) {
    *b = (struct bench){.m = m};
    buf_init(&b->text, 0);
    for (int i = 0; i < MODELS; i++)
        if (!(b->of[i] = measure_world(m, (enum size_model)i, false, e))) return -1;
    b->strict = measure_world(m, m->o.model, true, e);
    return b->strict ? 0 : -1;
}

static void record(const struct bench *b, const char *name, uint16_t consistency, int32_t page_size, const struct charge *c) {
    struct buf line;
    if (!b->m->o.record) return;
    buf_init(&line, 0);
    buf_put_str(&line, "{\"name\":");
    if (name) buf_json_str(&line, slice_str(name));
    else buf_put_str(&line, "null");
    buf_put_str(&line, ",\"cql\":");
    buf_json_str(&line, buf_slice(&b->text));
    buf_printf(&line, ",\"consistency\":\"%s\",\"page_size\":%d,\"units\":%g}\n", world_consistency_name(consistency), page_size, c->total);
    fwrite(line.p, 1, line.n, b->m->o.record);
    buf_fini(&line);
}

static int run_all(struct bench *b, struct err *e) {
    const struct world_request q = {.text = buf_slice(&b->text), .consistency = CL_LOCAL_QUORUM};
    struct world_answer ignored;
    struct err strictly;
    for (int i = 0; i < MODELS; i++) {
        if (world_run(b->of[i], &q, &ignored, e)) return -1;
        if (i == (int)b->m->o.model) record(b, NULL, CL_LOCAL_QUORUM, 0, &ignored.charge);
    }
    int refused = world_run(b->strict, &q, &ignored, &strictly); /* what it does not have, it refuses when it is asked */
    return (void)refused, 0;
}

static int load_row(struct bench *b, uint64_t rank, uint64_t row, struct err *e) {
    buf_clear(&b->text, SIZE_MAX);
    if (rows_insert(&b->rows, rank, row, rank * b->rows.per_partition + row, &b->text, e)) return -1;
    return b->text.n ? run_all(b, e) : 0;
}

static bool is_loaded(const struct bench *b, uint64_t rank) {
    for (uint32_t i = 0; i < b->n_ranks; i++)
        if (b->ranks[i] == rank) return true;
    return false;
}

static int load_partition(struct bench *b, uint64_t rank, struct err *e) {
    if (is_loaded(b, rank)) return 0;
    if (b->n_ranks == b->cap) {
        uint32_t cap = b->cap ? 2 * b->cap : 64;
        uint64_t *ranks = realloc(b->ranks, cap * sizeof(*ranks));
        if (!ranks) return err_nomem(e);
        b->ranks = ranks;
        b->cap = cap;
    }
    b->ranks[b->n_ranks++] = rank;
    if (b->rows.t->n_static && load_row(b, rank, UINT64_MAX, e)) return -1;
    for (uint64_t i = 0; i < b->rows.per_partition; i++)
        if (load_row(b, rank, i, e)) return -1;
    b->loaded += b->rows.per_partition;
    return 0;
}

/* ---- one statement ---- */

/* How a statement's markers are filled. */
struct markers {
    struct cql_prepared *prepared;
    const struct result_meta *binds;
    struct slice *at; /* of each, in the text */
};

static int unclear(const struct workload_statement *s, struct err *e, const char *what, const char *name) {
    return err_set(e, ERR_CONFIG, "%s:%u: %s %s", s->file, s->line, what, name);
}

static int find_markers(const struct workload_statement *s, struct arena *a, struct markers *k, struct err *e) {
    struct token_reader r;
    struct err ignored = {0};
    uint32_t n = 0;
    token_reader_init(&r, slice_str(s->text), &ignored);
    k->binds = &cql_prepared_info(k->prepared)->binds;
    k->at = ARENA_ARRAY(a, k->binds->n + 1, struct slice);
    if (!k->at) return err_nomem(e);
    for (struct token t; (t = token_next(&r)).code && t.code != T_ERROR;) {
        if (t.text.n != 1 || *t.text.p != '?') continue;
        if (n == k->binds->n) break;
        k->at[n++] = t.text;
    }
    return n == k->binds->n ? 0 : unclear(s, e, "its markers must be written as ?,", "not as :name");
}

/* The column that a marker is of: "day", or "in(day)". NULL: it is none's, as of LIMIT. */
static const struct schema_column *column_of(const struct schema_table *t, const char *name, bool *many) {
    char inner[64];
    *many = !strncasecmp(name, "in(", 3);
    if (!*many) return schema_column_find(t, name);
    snprintf(inner, sizeof(inner), "%.*s", (int)strcspn(name + 3, ")"), name + 3);
    return schema_column_find(t, inner);
}

/* "[limit]" -> "limit" */
static void plain_name(const char *name, char out[64]) {
    snprintf(out, 64, "%s", *name == '[' ? name + 1 : name);
    out[strcspn(out, "]")] = 0;
}

struct filling {
    struct bench *b;
    const struct measured *s;
    struct chance chance;
    uint64_t rank, row;
    uint32_t sample;
};

/* One that is loaded, or is now. */
static int other_partition(struct filling *f, uint64_t *rank, struct err *e) {
    *rank = keys_draw(&f->s->statement->keys, &f->chance);
    if (f->b->loaded >= ROWS_LOADED && !is_loaded(f->b, *rank)) *rank = f->b->ranks[chance_below(&f->chance, f->b->n_ranks)];
    return load_partition(f->b, *rank, e);
}

static int put_many(struct filling *f, const struct schema_column *c, struct err *e) {
    const struct literal_spec *spec = workload_value_find(f->s->statement->values, c->name);
    if (!spec || !spec->has_elements) return unclear(f->s->statement, e, "how many are in the list of IN? Say so under values, as elements 3, of", c->name);
    int64_t n = spec->elements_low + (int64_t)chance_below(&f->chance, (uint64_t)(spec->elements_high - spec->elements_low) + 1);
    struct buf list; /* loading a partition uses the statement's buffer */
    int rc = 0;
    buf_init(&list, 0);
    for (int64_t i = 0; !rc && i < n; i++) {
        uint64_t rank = f->rank, row = f->row;
        if (c->kind == COLUMN_PARTITION_KEY && i) rc = other_partition(f, &rank, e);
        if (c->kind != COLUMN_PARTITION_KEY) row = (row + (uint64_t)i) % f->b->rows.per_partition;
        if (i) buf_put_str(&list, ", ");
        if (!rc && rows_value(&f->b->rows, c, rank, row, 0, &list, e) < 0) rc = -1;
    }
    if (!rc) buf_printf(&f->b->text, "(%.*s)", SLICE_FMT(buf_slice(&list)));
    buf_fini(&list);
    return rc;
}

/* The second marker of a clustering column is the end of a range: a row drawn behind the first. */
static uint64_t row_of(struct filling *f, const struct markers *k, uint32_t marker) {
    for (uint32_t i = 0; i < marker; i++)
        if (!strcmp(k->binds->columns[i].name, k->binds->columns[marker].name))
            return f->row + chance_below(&f->chance, f->b->rows.per_partition - f->row % f->b->rows.per_partition);
    return f->row;
}

static int put_value(struct filling *f, const struct markers *k, uint32_t marker, struct err *e) {
    const struct workload_statement *s = f->s->statement;
    const struct result_column *bind = &k->binds->columns[marker];
    bool many;
    char name[64];
    uint64_t n = chance_next(&f->chance);
    const struct schema_column *c = column_of(f->s->table, bind->name, &many);
    struct buf *out = &f->b->text;
    if (c && many) return put_many(f, c, e);
    if (c) {
        int rc = rows_value(&f->b->rows, c, f->rank, c->kind == COLUMN_CLUSTERING ? row_of(f, k, marker) : f->row, n, out, e);
        if (rc > 0) buf_put_str(out, "null");
        return rc < 0 ? -1 : 0;
    }
    plain_name(bind->name, name);
    const struct literal_spec *spec = workload_value_find(s->values, name);
    if (!spec) return unclear(s, e, "there is a marker whose value nothing tells: under values, say what it is, of", name);
    return literal_make(out, bind->type, spec, LITERAL_RANDOM, n, name, e);
}

static int put_text(struct filling *f, const struct markers *k, struct err *e) {
    const char *at = f->s->statement->text;
    buf_clear(&f->b->text, SIZE_MAX);
    for (uint32_t i = 0; i < k->binds->n; i++) {
        struct buf here;
        buf_put(&f->b->text, at, (size_t)((const char *)k->at[i].p - at));
        /* filling a marker may load a partition, which uses the same buffer */
        here = f->b->text;
        buf_init(&f->b->text, 0);
        int rc = put_value(f, k, i, e);
        struct buf literal = f->b->text;
        f->b->text = here;
        buf_put_slice(&f->b->text, buf_slice(&literal));
        buf_fini(&literal);
        if (rc) return -1;
        at = (const char *)k->at[i].p + 1;
    }
    buf_put_str(&f->b->text, at);
    return 0;
}

static bool names_partition(const struct schema_table *t, const struct markers *k) {
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        bool found = false, many;
        for (uint32_t j = 0; j < k->binds->n; j++) found = found || column_of(t, k->binds->columns[j].name, &many) == &t->columns[i];
        if (!found) return false;
    }
    return true;
}

/* ---- what samples came to ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void spread_of(const double *values, uint32_t n, struct arena *a, struct spread *out) {
    double *sorted = ARENA_ARRAY(a, n, double), sum = 0;
    if (!sorted) return;
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_size);
    for (uint32_t i = 0; i < n; i++) sum += sorted[i];
    *out = (struct spread){.p50 = sorted[(n - 1) / 2], .p99 = sorted[(uint32_t)(0.99 * (n - 1) + 0.5)], .most = sorted[n - 1], .mean = sum / n};
}

struct gathered {
    double *row_bytes, *static_bytes, *reads, *writes;
};

static int gathered_init(struct gathered *g, struct arena *a, uint32_t n, struct err *e) {
    g->row_bytes = ARENA_ARRAY(a, n, double), g->static_bytes = ARENA_ARRAY(a, n, double);
    g->reads = ARENA_ARRAY(a, n, double), g->writes = ARENA_ARRAY(a, n, double);
    return g->row_bytes && g->static_bytes && g->reads && g->writes ? 0 : err_nomem(e);
}

/* A scan that came to the end of what is loaded, which is a part of the table. */
static double stretch(const struct bench *b, const struct measured *s, const struct world_answer *a) {
    uint64_t rows = s->input && s->input->partitions ? s->input->partitions * b->rows.per_partition : 0;
    if (a->cost->query_class != QUERY_TABLE_SCAN || rows <= b->loaded || a->rows_read < b->loaded) return 1;
    return (double)rows / (double)b->loaded;
}

static int run_sample(struct filling *f, struct measured *s, struct gathered *of, struct err *e) {
    const struct workload_statement *st = s->statement;
    const struct world_request q = {.text = buf_slice(&f->b->text), .consistency = st->consistency, .page_size = st->page_size};
    struct world_answer a, ignored;
    struct err why = {0}, strictly = {0};
    for (int i = 0; i < MODELS; i++) {
        if (world_run(f->b->of[i], &q, &a, &why)) return err_set(e, ERR_CONFIG, "%s:%u: %s", st->file, st->line, why.text);
        double by = stretch(f->b, s, &a);
        of[i].row_bytes[f->sample] = (double)a.charge.row_bytes * by;
        of[i].static_bytes[f->sample] = (double)a.charge.static_bytes * by;
        of[i].reads[f->sample] = a.charge.read_units * by;
        of[i].writes[f->sample] = a.charge.write_units + a.charge.static_write_units;
        s->of[i].rules |= a.charge.rules;
        s->stretched = by > s->stretched ? by : s->stretched;
        if (a.cost->query_class > s->query_class) s->query_class = a.cost->query_class;
        s->kind = a.kind;
        if (i != (int)f->b->m->o.model) continue;
        record(f->b, st->name, st->consistency, st->page_size, &a.charge);
        s->entities += (double)a.entities * by;
        s->pages += (double)a.pages * by;
    }
    if (!s->refused && world_run(f->b->strict, &q, &ignored, &strictly)) return out_of(f->b->m, e, "%s", strictly.text, &s->refused);
    return 0;
}

static bool begins_with(const char *text, const char *word) { return !strncasecmp(text + strspn(text, " \t\r\n"), word, strlen(word)); }

/* Draws what a request is of, and makes sure that it is there. */
static int draw_target(struct filling *f, struct err *e) {
    const struct workload_statement *s = f->s->statement;
    struct bench *b = f->b;
    f->row = chance_below(&f->chance, b->rows.per_partition);
    if (f->s->by_partition && !s->new_rows) return other_partition(f, &f->rank, e);
    f->rank = keys_draw(&s->keys, &f->chance);
    if (s->new_rows && b->rows.t->n_clustering) f->row = b->rows.per_partition + f->sample;
    else if (s->new_rows) f->rank = s->keys.n + f->sample;
    return 0;
}

static int load_some(struct bench *b, uint64_t partitions, uint64_t rows, struct err *e) {
    for (uint64_t rank = 0; rank < partitions && b->loaded < rows; rank++)
        if (load_partition(b, rank, e)) return -1;
    return 0;
}

static int run_samples(struct filling *f, struct measured *s, const struct markers *k, struct err *e) {
    struct arena *a = &f->b->m->w->arena;
    struct gathered of[MODELS];
    uint32_t n = k->binds->n ? f->b->m->o.samples : 1;
    for (int i = 0; i < MODELS; i++)
        if (gathered_init(&of[i], a, n, e)) return -1;
    for (f->sample = 0; f->sample < n; f->sample++)
        if (draw_target(f, e) || put_text(f, k, e) || run_sample(f, s, of, e)) return -1;
    for (int i = 0; i < MODELS; i++) {
        spread_of(of[i].row_bytes, n, a, &s->of[i].row_bytes);
        spread_of(of[i].static_bytes, n, a, &s->of[i].static_bytes);
        spread_of(of[i].reads, n, a, &s->of[i].read_units);
        spread_of(of[i].writes, n, a, &s->of[i].write_units);
    }
    s->samples = n;
    s->reads = of[f->b->m->o.model].reads;
    s->writes = of[f->b->m->o.model].writes;
    s->entities /= n;
    s->pages /= n;
    return 0;
}

/* ---- TTL ---- */

/* What requests wrote, and nothing else, expires in a world of their own. */
static int measure_ttl(struct filling *f, struct measured *s, const struct markers *k, struct err *e) {
    enum { WRITES = 20 };
    struct world_answer ignored;
    uint64_t units = 0;
    uint32_t done = 0, writes = k->binds->n ? WRITES : 1;
    struct world *w = s->kind == STMT_SELECT ? NULL : measure_world(f->b->m, f->b->m->o.model, false, e);
    if (s->kind == STMT_SELECT) return 0;
    if (!w) return -1;
    int rc = 0;
    for (f->sample = 0; !rc && f->sample < writes; f->sample++) {
        struct err why = {0};
        rc = draw_target(f, e) || put_text(f, k, e) ? -1 : 0;
        const struct world_request q = {.text = buf_slice(&f->b->text), .consistency = CL_LOCAL_QUORUM};
        done += !rc && !world_run(w, &q, &ignored, &why);
    }
    if (!rc) rc = world_expire(w, YEARS_20_S, &units, e);
    if (!rc && done) s->ttl_deletes = (double)units / done;
    world_free(w);
    return rc;
}

/* ---- all ---- */

static int find_table(struct measure *m, struct bench *b, struct measured *s, const struct markers *k, struct err *e) {
    const struct workload_statement *st = s->statement;
    const struct prepared_info *info = cql_prepared_info(k->prepared);
    const struct result_column *c = k->binds->n ? k->binds->columns : info->result.n ? info->result.columns : NULL;
    if (c) s->table = measure_table(m, c->keyspace, c->table);
    else {
        const struct world_request q = {.text = slice_str(st->text), .consistency = CL_LOCAL_QUORUM};
        struct world_answer a;
        struct err why;
        if (world_run(b->of[0], &q, &a, &why)) return err_set(e, ERR_CONFIG, "%s:%u: %s", st->file, st->line, why.text);
        if (a.cost->table) s->table = measure_table(m, a.cost->keyspace, a.cost->table);
    }
    return s->table ? 0 : unclear(st, e, "it is of no table of the schema:", st->text);
}

static int set_rows(struct bench *b, struct measured *s, struct workload_statement *st, struct err *e) {
    s->input = input_of(b->m, s->table);
    uint64_t per = s->input ? s->input->rows_per_partition : 0;
    if (!s->table->n_clustering) per = 1;
    bool insert = begins_with(st->text, "INSERT");
    if (!st->has_new_rows) st->new_rows = insert && (s->table->n_clustering || !st->has_keys);
    if (!per && !st->new_rows) return unclear(st, e, "how many rows has a partition of the table? Say rows_per_partition of", s->table->name);
    if (per > ROWS_OF_PARTITION && !st->new_rows)
        return err_set(e, ERR_CONFIG, "%s:%u: partitions of more than %d rows are not held in memory; price one of fewer, and multiply", st->file, st->line, ROWS_OF_PARTITION);
    b->rows = (struct rows){.t = s->table, .input = s->input, .values = st->values, .per_partition = per ? per : 1};
    st->keys.n = s->input && s->input->partitions ? s->input->partitions : 0;
    if (!st->keys.n) return unclear(st, e, "how many partitions has the table? Say partitions of", s->table->name);
    keys_init(&st->keys);
    return 0;
}

static int measure_in(struct bench *b, struct measured *s, struct workload_statement *st, struct err *e) {
    struct measure *m = b->m;
    struct err why = {0};
    struct markers k = {.prepared = world_markers(m->base, slice_str(st->text), &why)};
    if (!k.prepared) return err_set(e, ERR_CONFIG, "%s:%u: %s", st->file, st->line, why.text);
    struct filling f = {.b = b, .s = s, .chance = {.state = chance_of(st->line)}};
    int rc = find_markers(st, &m->w->arena, &k, e) || find_table(m, b, s, &k, e) || set_rows(b, s, st, e) ? -1 : 0;
    if (!rc) {
        s->by_partition = names_partition(s->table, &k);
        if (!s->by_partition) rc = load_some(b, st->keys.n, SCANNED_ROWS, e);
        if (!rc) rc = run_samples(&f, s, &k, e);
        if (!rc) rc = measure_ttl(&f, s, &k, e);
        /* a literal that cannot be made up has no place yet */
        if (rc && strncmp(e->text, st->file, strlen(st->file))) {
            why = *e;
            err_clear(e);
            err_set(e, ERR_CONFIG, "%s:%u: %s", st->file, st->line, why.text);
        }
    }
    cql_prepared_unref(k.prepared);
    return rc;
}

/* In the model that counts, as the server has it; of the other one nothing is known. */
static void take_observed(const struct measure *m, struct measured *s) {
    const struct workload_observed *o = s->statement->observed;
    const struct spread unknown = {-1, -1, -1, -1};
    s->table = o->table;
    s->input = input_of(m, o->table);
    s->samples = o->n_samples;
    s->reads = o->read_samples, s->writes = o->write_samples;
    for (int i = 0; i < MODELS; i++) {
        bool here = i == (int)m->o.model;
        s->of[i].read_units = here ? o->reads : unknown, s->of[i].write_units = here ? o->writes : unknown;
        s->of[i].row_bytes = here ? o->row_bytes : unknown, s->of[i].static_bytes = here ? o->static_bytes : unknown;
    }
}

static int measure_statement(struct measure *m, struct measured *s, struct workload_statement *st, struct err *e) {
    struct bench b;
    s->statement = st;
    s->stretched = 1;
    s->unknown = st->unknown;
    if (st->observed) take_observed(m, s);
    if (s->unknown || st->observed) return 0;
    int rc = bench_open(&b, m, e) ? -1 : measure_in(&b, s, st, e);
    bench_close(&b);
    if (!rc || !st->inferred) return rc;
    struct err why = *e;
    err_clear(e);
    return out_of(m, e, "%s", why.text, &s->unknown);
}

/* ---- tables ---- */

static int measure_storage(struct measure *m, struct measured_table *t, struct err *e) {
    struct bench b;
    struct err why = {0};
    int rc = bench_open(&b, m, e);
    b.rows = (struct rows){.t = t->table, .input = t->input, .per_partition = t->table->n_clustering ? t->input->rows_per_partition : 1};
    if (!rc && !load_some(&b, t->partitions, b.rows.per_partition * PARTITIONS_STORED < ROWS_LOADED ? b.rows.per_partition * PARTITIONS_STORED : ROWS_LOADED, &why)) {
        for (int i = 0; !rc && i < MODELS; i++) {
            struct table_size size;
            const struct schema *schema = world_schema(b.of[i]);
            const struct schema_table *mine = schema_table_find(schema, t->table->keyspace->name, t->table->name, e);
            rc = mine ? world_storage(b.of[i], mine, &size, e) : -1;
            if (!rc) t->stored_bytes[i] = (double)size.bytes * (double)t->partitions / b.n_ranks;
            schema_unref(schema);
        }
    } else if (!rc) rc = out_of(m, e, "%s", why.text, &t->unknown);
    bench_close(&b);
    return rc;
}

static int measure_one_table(struct measure *m, struct measured_table *t, struct err *e) {
    t->stored_bytes[0] = t->stored_bytes[1] = -1;
    t->input = input_of(m, t->table);
    if (t->input && t->input->has_stored) {
        t->stored_bytes[m->o.model] = t->input->stored_bytes;
        t->rows = (uint64_t)t->input->stored_rows;
        return 0;
    }
    if (!t->input || !t->input->partitions) return out_of(m, e, "%s", "no input says how many partitions it has", &t->unknown);
    t->partitions = t->input->partitions;
    if (t->table->n_clustering && !t->input->rows_per_partition) return out_of(m, e, "%s", "no input says how many rows a partition has", &t->unknown);
    uint64_t per = t->table->n_clustering ? t->input->rows_per_partition : 1;
    if (per > ROWS_OF_PARTITION) return out_of(m, e, "%s", "its partitions have more rows than are held in memory", &t->unknown);
    t->rows = t->partitions * per;
    return measure_storage(m, t, e);
}

static int measure_tables(struct measure *m, struct err *e) {
    const struct schema *s = m->schema;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_spaces; i++) n += s->spaces[i]->keyspace->is_system ? 0 : s->spaces[i]->tables.n;
    m->tables = ARENA_ARRAY(&m->w->arena, n + 1, struct measured_table);
    if (!m->tables) return err_nomem(e);
    for (uint32_t i = 0; i < s->n_spaces; i++) {
        if (s->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor c = schema_tables_begin(&s->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&c));) {
            m->tables[m->n_tables].table = t;
            if (measure_one_table(m, &m->tables[m->n_tables++], e)) return -1;
        }
    }
    return 0;
}

int measure_run(struct measure *m, void (*progress)(uint32_t done, uint32_t of), struct err *e) {
    uint32_t i = 0;
    for (const struct workload_table *t = m->w->tables; t; t = t->next)
        if (t->file && !measure_table(m, t->keyspace, t->name)) return err_set(e, ERR_CONFIG, "%s:%u: the schema has no table %s.%s", t->file, t->line, t->keyspace, t->name);
    m->statements = ARENA_ARRAY(&m->w->arena, m->w->n_statements + 1, struct measured);
    if (!m->statements) return err_nomem(e);
    for (struct workload_statement *s = m->w->statements; s; s = s->next, i++) {
        if (measure_statement(m, &m->statements[i], s, e)) return -1;
        if (progress) progress(i + 1, m->w->n_statements);
    }
    return measure_tables(m, e);
}

int measure_key(const struct measured *s, uint64_t rank, struct buf *out, struct err *e) {
    const struct rows r = {.t = s->table, .input = s->input, .values = s->statement->values, .per_partition = 1};
    for (uint32_t i = 0; i < s->table->n_partition_key; i++) {
        buf_printf(out, "%s%s = ", i ? " AND " : "", s->table->columns[i].name);
        if (rows_value(&r, &s->table->columns[i], rank, 0, 0, out, e) < 0) return -1;
    }
    return 0;
}
