#include "tools/tally/capacity/measure.h"

#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "cql/request/consistency.h"
#include "tools/tally/markers.h"
#include "tools/tally/script.h"

/* ROWS_LOADED bounds the rows in the worlds of a statement; one partition may have more. */
enum { ROWS_LOADED = 20000, ROWS_OF_PARTITION = 100000, PARTITIONS_STORED = 50, SCANNED_ROWS = 2000 };
enum { YEARS_20_S = 630720000, NAME_ROOM = 256 };

/* ---- the schema ---- */

/* Makes a world without tables. */
static struct world *new_world(const struct measure *m, enum size_model model, bool strict, struct err *e) {
    struct pricing p = *m->o.pricing;
    p.schema = NULL;
    p.size_model = model == SIZE_CURRENT ? "current" : "documented-2022";
    return pricing_world(&p, strict, e);
}

struct world *measure_world(const struct measure *m, enum size_model model, bool strict, struct err *e) {
    struct world *w = new_world(m, model, strict, e);
    struct script s;
    struct script_statement at;
    struct err why;
    if (!w) return NULL;
    script_of(&s, m->o.schema, m->o.text);
    while (script_next(&s, &at)) {
        const struct world_request q = {.text = at.text, .consistency = CL_LOCAL_QUORUM};
        if (world_define(w, &q, &why)) continue; /* measure_open has noted it */
    }
    return w;
}

/* A definition that both worlds refuse with the same text is wrong CQL, and an error. One that only
 * the strict world refuses is noted and then still defined. */
int measure_open(struct measure *m, const struct measure_options *o, struct workload *w, struct err *e) {
    struct measured_refusal **end = &m->refusals;
    struct script s;
    struct script_statement at;
    struct world_answer ignored;
    *m = (struct measure){.o = *o, .w = w};
    m->base = new_world(m, o->model, false, e);
    struct world *strict = m->base ? new_world(m, o->model, true, e) : NULL;
    if (!strict) return -1;
    script_of(&s, o->schema, o->text);
    while (!e->set && script_next(&s, &at)) {
        const struct world_request q = {.text = at.text, .consistency = CL_LOCAL_QUORUM};
        struct err why = {0}, other = {0};
        bool wrong = world_run(m->base, &q, &ignored, &other) != 0;
        if (!world_run(strict, &q, &ignored, &why)) continue;
        struct measured_refusal *r = ARENA_NEW(&w->arena, struct measured_refusal);
        struct slice shown = slice_of(at.text.p, at.text.n < 200 ? at.text.n : 200);
        if (wrong && !strcmp(why.text, other.text)) {
            err_set(e, ERR_CONFIG, "%s:%u: %s", o->schema, at.line, why.text);
        } else if (!r || !(r->words = arena_strdup(&w->arena, why.text)) ||
                   !(r->text = (const char *)arena_dup(&w->arena, shown).p)) {
            err_nomem(e);
        } else if (!wrong && world_define(strict, &q, &other)) {
            err_set(e, ERR_CONFIG, "%s:%u: %s", o->schema, at.line, other.text);
        } else {
            r->line = at.line;
            *end = r;
            end = &r->next;
        }
    }
    world_free(strict);
    m->schema = world_schema(m->base);
    return e->set ? -1 : 0;
}

void measure_close(struct measure *m) {
    if (m->schema) schema_unref(m->schema);
    if (m->base) world_free(m->base);
}

const struct schema_table *measure_table(const struct measure *m, const char *keyspace, const char *name) {
    struct err ignored = {0};
    return schema_table_find(m->schema, keyspace, name, &ignored);
}

const struct workload_table *measure_input(const struct measure *m, const struct schema_table *t) {
    for (const struct workload_table *i = m->w->tables; i; i = i->next)
        if (!strcmp(i->keyspace, t->keyspace->name) && !strcmp(i->name, t->name)) return i;
    return NULL;
}

/* ---- a statement, its tables and its worlds ---- */

/* A table that a statement uses, and its rows in the statement's worlds. */
struct plan_table {
    struct rows rows;
    bool unknown_rows;  /* no input says how many rows a partition has; rows.per_partition is 1 */
    bool by_partition;  /* every statement of a batch on it names its partition */
    bool loads;         /* rows are there before the statement runs */
    bool statics;       /* the statement reads or writes static data */
    struct key_distribution *keys;  /* of the statement, over this table's partitions */
    struct ranks ranks; /* of the partitions that are loaded */
    uint64_t loaded;    /* rows */
};

/* A statement of a batch, or the only one. */
struct plan_part {
    uint32_t table;     /* of the plan's tables */
    uint32_t turn, of;  /* number turn, from 0, of the of parts on the same table */
    bool new_rows;
    uint64_t rank, row; /* the partition and row of the current sample */
};

struct sample_plan {
    struct workload_statement *st;
    struct slice text; /* of the statement, with ? for each marker */
    struct markers k;
    uint32_t n_tables;
    struct plan_table *tables;
    struct plan_part *parts; /* by statement of k */
    const char *unknown;     /* why an inferred statement cannot be measured; NULL if it can */
};

/* The worlds of a plan, and the request that is made for them. */
struct bench {
    struct measure *m;
    const struct sample_plan *p;
    struct world *of[MODELS], *strict;
    struct buf text, insert; /* the statement; one that loads a row */
    struct chance chance;
    struct ranks taken;      /* partitions already used by the list of an IN, or by a batch on a table */
    uint64_t element_row;    /* of the last value of a list */
    uint32_t sample;
};

static void bench_close(struct bench *b) {
    for (int i = 0; i < MODELS; i++)
        if (b->of[i]) world_free(b->of[i]);
    if (b->strict) world_free(b->strict);
    ranks_free(&b->taken);
    buf_fini(&b->text);
    buf_fini(&b->insert);
}

static int bench_open(struct bench *b, struct measure *m, const struct sample_plan *p, struct err *e) {
    *b = (struct bench){.m = m, .p = p};
    buf_init(&b->text, 0);
    buf_init(&b->insert, 0);
    for (int i = 0; i < MODELS; i++)
        if (!(b->of[i] = measure_world(m, (enum size_model)i, false, e))) return -1;
    b->strict = measure_world(m, m->o.model, true, e);
    return b->strict ? 0 : -1;
}

/* name NULL: the statement loads a row. */
static void record(const struct bench *b, const char *name, const struct world_request *q, const struct charge *c) {
    struct buf line;
    if (!b->m->o.record) return;
    buf_init(&line, 0);
    json_open(&line, NULL, '{');
    json_text(&line, "name", name);
    json_slice(&line, "cql", q->text);
    json_text(&line, "consistency", consistency_name(q->consistency));
    buf_printf(&line, ",\"page_size\":%d,\"units\":%g}\n", q->page_size, c->total);
    fwrite(line.p, 1, line.n, b->m->o.record);
    buf_fini(&line);
}

static int load_row(struct bench *b, const struct plan_table *t, uint64_t rank, uint64_t row, struct err *e) {
    buf_clear(&b->insert, SIZE_MAX);
    if (rows_insert(&t->rows, rank, row, rank * t->rows.per_partition + row, &b->insert, e)) return -1;
    if (!b->insert.n) return 0;
    const struct world_request q = {.text = buf_slice(&b->insert), .consistency = CL_LOCAL_QUORUM};
    struct world_answer a;
    struct err ignored;
    for (int i = 0; i < MODELS; i++) {
        if (world_run(b->of[i], &q, &a, e)) return -1;
        if (i == (int)b->m->o.model) record(b, NULL, &q, &a.charge);
    }
    /* The strict world may refuse the row; it then also refuses the statement that uses the row. */
    (void)!world_run(b->strict, &q, &a, &ignored);
    return 0;
}

static int load_partition(struct bench *b, struct plan_table *t, uint64_t rank, struct err *e) {
    if (ranks_have(&t->ranks, rank)) return 0;
    if (ranks_add(&t->ranks, rank)) return err_nomem(e);
    if (t->statics && load_row(b, t, rank, UINT64_MAX, e)) return -1;
    for (uint64_t i = 0; i < t->rows.per_partition; i++)
        if (load_row(b, t, rank, i, e)) return -1;
    t->loaded += t->rows.per_partition;
    return 0;
}

static int load_some(struct bench *b, struct plan_table *t, uint64_t partitions, uint64_t rows, struct err *e) {
    for (uint64_t rank = 0; rank < partitions && t->loaded < rows; rank++)
        if (load_partition(b, t, rank, e)) return -1;
    return 0;
}

/* ---- the plan of a statement ---- */

/* The column in a marker's name: day for "in(day)", tags for "value(tags)", address for
 * "address.street". */
static void column_name(const char *name, char out[NAME_ROOM]) {
    const char *open = strchr(name, '(');
    snprintf(out, NAME_ROOM, "%s", open ? open + 1 : name);
    out[strcspn(out, ").[")] = 0;
}

static bool is_list(const struct marker *m) { return !strncmp(m->bind->name, "in(", 3); }

/* The column whose value, or list of values, a marker holds. Returns NULL if the marker is for a
 * part of a column's value, or for no column, as in LIMIT ?. */
static const struct schema_column *column_of(const struct schema_table *t, const struct marker *m) {
    char inner[NAME_ROOM];
    if (!is_list(m)) return schema_column_find(t, m->bind->name);
    column_name(m->bind->name, inner);
    return schema_column_find(t, inner);
}

static const struct literal_spec *spec_of(const struct rows *r, const char *name) {
    const struct literal_spec *found = workload_value_find(r->values, name);
    return found || !r->input ? found : workload_value_find(r->input->values, name);
}

/* The literal of a marker without a column: "limit", or a part of a column's value
 * ("address.street", "value(tags)"). A part without its own specification uses the
 * column's. */
static int put_part(const struct plan_table *t, const struct marker *m, uint64_t n, struct buf *out, struct err *e) {
    char name[NAME_ROOM], column[NAME_ROOM];
    /* "[limit]" -> "limit" */
    snprintf(name, NAME_ROOM, "%s", *m->bind->name == '[' ? m->bind->name + 1 : m->bind->name);
    if (*m->bind->name == '[') name[strcspn(name, "]")] = 0;
    column_name(m->bind->name, column);
    const struct literal_spec *spec = spec_of(&t->rows, name);
    bool of_column = schema_column_find(t->rows.t, column) != NULL;
    if (!spec && of_column && !strncmp(name, "idx(", 4)) {
        buf_put_str(out, "0");
        return 0;
    }
    if (!spec && of_column) spec = spec_of(&t->rows, column);
    if (!spec && !of_column)
        return err_set(e, ERR_CONFIG,
                       "the value of a marker is not known: describe it under values, as %s", name);
    return literal_make(out, m->bind->type, spec, LITERAL_RANDOM, n, name, e);
}

/* The keyspace comes from the statement, its markers or its result columns; else it is the first
 * one with such a table. */
static const struct schema_table *table_of(const struct measure *m, const struct sample_plan *p, uint32_t statement) {
    const struct ast_name *written = ast_table(p->k.statements[statement]);
    const struct ast_name named = written ? *written : (struct ast_name){0};
    const struct result_meta *result = &cql_prepared_info(p->k.prepared)->result;
    if (named.keyspace) return measure_table(m, named.keyspace, named.name);
    for (uint32_t i = 0; i < p->k.n; i++)
        if (p->k.list[i].statement == statement && *p->k.list[i].bind->keyspace != '[')
            return measure_table(m, p->k.list[i].bind->keyspace, p->k.list[i].bind->table);
    if (result->n) return measure_table(m, result->columns[0].keyspace, result->columns[0].table);
    for (uint32_t i = 0; named.name && i < m->schema->n_spaces; i++) {
        const struct schema_keyspace *space = m->schema->spaces[i]->keyspace;
        const struct schema_table *t = space->is_system ? NULL : measure_table(m, space->name, named.name);
        if (t) return t;
    }
    return NULL;
}

static int plan_parts(struct sample_plan *p, const struct measure *m, struct err *e) {
    struct workload_statement *st = p->st;
    p->parts = ARENA_ARRAY(&m->w->arena, p->k.n_statements + 1, struct plan_part);
    p->tables = ARENA_ARRAY(&m->w->arena, p->k.n_statements + 1, struct plan_table);
    if (!p->parts || !p->tables) return err_nomem(e);
    for (uint32_t i = 0; i < p->k.n_statements; i++) {
        const struct schema_table *t = table_of(m, p, i);
        struct plan_part *part = &p->parts[i];
        if (!t) return err_set(e, ERR_CONFIG, "the schema has no table for it: %s", st->text);
        while (part->table < p->n_tables && p->tables[part->table].rows.t != t) part->table++;
        struct plan_table *of = &p->tables[part->table];
        if (part->table == p->n_tables) {
            const struct workload_table *input = measure_input(m, t);
            uint64_t rows = !t->n_clustering ? 1 : input ? input->rows_per_partition : 0;
            *of = (struct plan_table){.rows = {.t = t, .input = input, .values = st->values,
                                               .per_partition = rows ? rows : 1},
                                      .unknown_rows = !rows, .by_partition = true,
                                      .statics = markers_use_statics(p->text, &p->k, t)};
            p->n_tables++;
        }
        bool insert = p->k.statements[i]->kind == STMT_INSERT;
        part->new_rows = st->has_new_rows ? st->new_rows : insert && (t->n_clustering || !st->has_keys);
        for (uint32_t k = 0; k < i; k++) part->turn += p->parts[k].table == part->table;
        for (uint32_t k = 0; k <= i; k++)
            if (p->parts[k].table == part->table) p->parts[k].of = part->turn + 1;
        /* The statement names its partition when its markers give the whole key. */
        for (uint32_t c = 0; c < t->n_partition_key && of->by_partition; c++) {
            of->by_partition = false;
            for (uint32_t k = 0; k < p->k.n; k++)
                if (p->k.list[k].statement == i && column_of(t, &p->k.list[k]) == &t->columns[c])
                    of->by_partition = true;
        }
        of->loads = of->loads || !part->new_rows || !of->by_partition;
        if (!st->has_new_rows) st->new_rows = (!i || st->new_rows) && part->new_rows;
    }
    return 0;
}

/* ---- missing inputs ---- */

/* Collects everything that the inputs lack, without duplicates, for a single error message. */
struct questions {
    struct buf text;
    const struct workload_statement *of;
};

/* why, if it is set, becomes a question. */
static void ask(struct questions *q, struct err *why) {
    if (!why->set) return;
    if (!q->text.n || !memmem(q->text.p, q->text.n, why->text, strlen(why->text)))
        buf_printf(&q->text, "%s%s:%u: %s", q->text.n ? "\n" : "", q->of->file, q->of->line, why->text);
    err_clear(why);
}

static void ask_table(const struct plan_table *t, struct questions *q) {
    struct err why = {0};
    const struct schema_table *table = t->rows.t;
    if (t->unknown_rows && t->loads)
        err_set(&why, ERR_CONFIG, "how many rows has a partition of the table? Say rows_per_partition of %s",
                table->name);
    if (t->rows.per_partition > ROWS_OF_PARTITION && t->loads)
        err_set(&why, ERR_CONFIG, "partitions of more than %d rows are not held in memory; price one of fewer, and "
                                  "multiply", ROWS_OF_PARTITION);
    ask(q, &why);
    if (!t->rows.input || !t->rows.input->partitions)
        err_set(&why, ERR_CONFIG, "how many partitions has the table? Say partitions of %s", table->name);
    ask(q, &why);
    struct buf ignored;
    buf_init(&ignored, 0);
    for (uint32_t i = 0; t->loads && !table->is_counter && i < table->n_columns; i++) {
        const struct schema_column *c = &table->columns[i];
        if (c->kind == COLUMN_STATIC && !t->statics) continue;
        if (rows_value(&t->rows, c, 0, 0, 0, &ignored, &why) < 0) ask(q, &why);
    }
    buf_fini(&ignored);
}

static int need_elements(const struct plan_table *t, const struct schema_column *c, const struct literal_spec **out,
                         struct err *e) {
    *out = spec_of(&t->rows, c->name);
    if (*out && (*out)->has_elements) return 0;
    return err_set(e, ERR_CONFIG, "how many values has the list of IN? Give their number under values, as elements "
                                  "3, for %s", c->name);
}

/* Errors of the statement are collected in q like missing inputs. Returns -1 if memory is
 * exhausted. */
static int plan_open(struct sample_plan *p, struct measure *m, struct workload_statement *st, struct questions *q,
                     struct err *e) {
    struct err why = {0};
    *p = (struct sample_plan){.st = st, .unknown = st->unknown};
    if (st->unknown || st->observed) return 0;
    size_t from = q->text.n;
    q->of = st;
    if (markers_unname(slice_str(st->text), &m->w->arena, &p->text, e)) return -1;
    p->k.prepared = world_markers(m->base, p->text, &why);
    bool found = p->k.prepared && !markers_find(p->text, &m->w->arena, &p->k, &why);
    if (!found || plan_parts(p, m, &why)) ask(q, &why);
    else {
        for (uint32_t i = 0; i < p->n_tables; i++) ask_table(&p->tables[i], q);
        struct buf ignored;
        buf_init(&ignored, 0);
        for (const struct marker *k = p->k.list; k < p->k.list + p->k.n; k++) {
            const struct plan_table *t = &p->tables[p->parts[k->statement].table];
            const struct schema_column *c = column_of(t->rows.t, k);
            const struct literal_spec *spec;
            if (c && is_list(k) && need_elements(t, c, &spec, &why)) ask(q, &why);
            int rc = c ? rows_value(&t->rows, c, 0, 0, 0, &ignored, &why) : put_part(t, k, 0, &ignored, &why);
            if (rc < 0) ask(q, &why);
        }
        buf_fini(&ignored);
    }
    if (q->text.n == from || !st->inferred) return 0;
    p->unknown = (const char *)arena_dup(&m->w->arena, slice_of(q->text.p + from, q->text.n - from)).p;
    q->text.n = from;
    return p->unknown ? 0 : err_nomem(e);
}

/* ---- one sample ---- */

/* Draws a partition that is not taken, loads it if there is room, and takes it. When all partitions
 * are taken, one is used twice. */
static int other_partition(struct bench *b, struct plan_table *t, uint64_t *rank, struct err *e) {
    *rank = keys_draw(t->keys, &b->chance);
    for (uint32_t tries = 0; tries < b->taken.n && ranks_have(&b->taken, *rank); tries++)
        *rank = (*rank + 1) % t->keys->n;
    if (t->loaded >= ROWS_LOADED && !ranks_have(&t->ranks, *rank)) {
        uint64_t i = chance_below(&b->chance, t->ranks.n);
        for (uint32_t tries = 0; tries < b->taken.n && ranks_have(&b->taken, t->ranks.list[i]); tries++)
            i = (i + 1) % t->ranks.n;
        *rank = t->ranks.list[i];
    }
    if (ranks_add(&b->taken, *rank)) return err_nomem(e);
    return load_partition(b, t, *rank, e);
}

/* Draws the partitions and rows of a request and loads them if needed. The statements of a batch on
 * one table use consecutive rows of one partition. When the partition has fewer rows, each
 * statement uses its own partition. */
static int draw_rows(struct bench *b, struct err *e) {
    for (uint32_t i = 0; i < b->p->k.n_statements; i++) {
        struct plan_part *part = &b->p->parts[i];
        struct plan_table *t = &b->p->tables[part->table];
        const struct plan_part *first = part;
        for (uint32_t k = 0; part->turn && k < i; k++)
            if (b->p->parts[k].table == part->table && !b->p->parts[k].turn) first = &b->p->parts[k];
        bool clustered = t->rows.t->n_clustering > 0;
        bool together = clustered && (part->new_rows || part->of <= t->rows.per_partition);
        if (!part->turn) {
            part->row = chance_below(&b->chance, t->rows.per_partition);
            ranks_clear(&b->taken);
        }
        if (part->turn && together) {
            part->rank = first->rank;
            part->row = (first->row + part->turn) % t->rows.per_partition;
        } else {
            part->row = first->row;
            bool loaded = t->by_partition && !part->new_rows;
            if (loaded && other_partition(b, t, &part->rank, e)) return -1;
            if (!loaded) part->rank = keys_draw(t->keys, &b->chance);
        }
        uint64_t fresh = (uint64_t)b->sample * part->of + part->turn;
        if (part->new_rows && clustered) part->row = t->rows.per_partition + fresh;
        else if (part->new_rows) part->rank = t->keys->n + fresh;
    }
    return 0;
}

/* A value in the list of an IN: the first is the statement's own, each further one comes from
 * another partition, or from a row with another value: rows may share the values of all clustering
 * columns except the last. */
static int put_element(struct bench *b, uint32_t statement, const struct schema_column *c, uint32_t element,
                       struct buf *out, struct err *e) {
    const struct plan_part *part = &b->p->parts[statement];
    struct plan_table *t = &b->p->tables[part->table];
    uint64_t rank = part->rank, *row = &b->element_row;
    size_t from = out->n;
    if (!element) {
        *row = part->row;
        ranks_clear(&b->taken);
        if (ranks_add(&b->taken, rank)) return err_nomem(e);
    } else if (c->kind == COLUMN_PARTITION_KEY) {
        if (other_partition(b, t, &rank, e)) return -1;
    } else {
        struct buf before;
        bool same = true;
        buf_init(&before, 0);
        int rc = rows_value(&t->rows, c, rank, *row, 0, &before, e);
        for (uint64_t i = 0; rc >= 0 && same && i < t->rows.per_partition; i++) {
            out->n = from;
            *row = (*row + 1) % t->rows.per_partition;
            rc = rows_value(&t->rows, c, rank, *row, 0, out, e);
            same = slice_eq(buf_slice(&before), slice_of(out->p + from, out->n - from));
        }
        buf_fini(&before);
        return rc < 0 ? -1 : 0;
    }
    return rows_value(&t->rows, c, rank, *row, 0, out, e) < 0 ? -1 : 0;
}

static int put_value(struct bench *b, uint32_t marker, struct buf *out, struct err *e) {
    const struct marker *m = &b->p->k.list[marker];
    const struct plan_part *part = &b->p->parts[m->statement];
    const struct plan_table *t = &b->p->tables[part->table];
    const struct schema_column *c = column_of(t->rows.t, m);
    const struct literal_spec *spec;
    uint64_t n = chance_next(&b->chance), row = part->row;
    if (!c) return put_part(t, m, n, out, e);
    if (m->in_list && schema_column_is_key(c)) return put_element(b, m->statement, c, m->element, out, e);
    if (is_list(m)) {
        if (need_elements(t, c, &spec, e)) return -1;
        uint64_t spread = (uint64_t)(spec->elements_high - spec->elements_low) + 1;
        uint32_t elements = (uint32_t)(spec->elements_low + (int64_t)chance_below(&b->chance, spread));
        buf_u8(out, '(');
        for (uint32_t i = 0; i < elements; i++) {
            if (i) buf_put_str(out, ", ");
            if (put_element(b, m->statement, c, i, out, e)) return -1;
        }
        buf_u8(out, ')');
        return 0;
    }
    /* The second marker of a clustering column in a statement is the end of a range: a row at or
     * after the first marker's row. */
    for (uint32_t i = 0; c->kind == COLUMN_CLUSTERING && i < marker; i++) {
        const struct marker *first = &b->p->k.list[i];
        if (first->statement != m->statement || strcmp(first->bind->name, m->bind->name)) continue;
        row += chance_below(&b->chance, t->rows.per_partition - row % t->rows.per_partition);
        break;
    }
    int rc = rows_value(&t->rows, c, part->rank, row, n, out, e);
    if (rc > 0) buf_put_str(out, "null");
    return rc < 0 ? -1 : 0;
}

/* Makes the next request: the statement's text with values in place of its markers. */
static int make_request(struct bench *b, struct world_request *out, struct err *e) {
    const uint8_t *at = b->p->text.p;
    if (draw_rows(b, e)) return -1;
    buf_clear(&b->text, SIZE_MAX);
    for (uint32_t i = 0; i < b->p->k.n; i++) {
        const struct slice marker = b->p->k.list[i].at;
        buf_put(&b->text, at, (size_t)(marker.p - at));
        if (put_value(b, i, &b->text, e)) return -1;
        at = marker.p + marker.n;
    }
    buf_put(&b->text, at, (size_t)(b->p->text.p + b->p->text.n - at));
    *out = (struct world_request){.text = buf_slice(&b->text), .consistency = b->p->st->consistency,
                                  .page_size = (int32_t)b->p->st->page_size};
    return 0;
}

/* ---- results of samples ---- */

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
    *out = (struct spread){.p50 = sorted[(n - 1) / 2],
                           .p99 = sorted[(uint32_t)(0.99 * (n - 1) + 0.5)], .most = sorted[n - 1], .mean = sum / n};
}

/* The samples of a table in one size model. */
struct gathered {
    double *row_bytes, *static_bytes, *reads, *writes;
};

/* Takes the part of an answer that belongs to the table of s. */
static int take_sample(const struct bench *b, struct measured *s, struct world_answer *a, int model,
                       struct gathered *of, struct err *e) {
    const struct plan_table *t = &b->p->tables[s->plan_table];
    struct charge c = a->charge;
    uint64_t entities = a->entities;
    /* The factor from a scan of all loaded rows to a scan of the whole table. */
    uint64_t rows = t->rows.input && t->rows.input->partitions ? t->rows.input->partitions * t->rows.per_partition : 0;
    bool scanned = a->cost->query_class == QUERY_TABLE_SCAN && rows > t->loaded && a->rows_read >= t->loaded;
    double by = scanned ? (double)rows / (double)t->loaded : 1;
    if (b->p->n_tables > 1 && world_charge_of(a, s->table, b->p->st->consistency, &c, &entities)) return err_nomem(e);
    of->row_bytes[b->sample] = (double)c.row_bytes * by;
    of->static_bytes[b->sample] = (double)c.static_bytes * by;
    of->reads[b->sample] = c.read_units * by;
    of->writes[b->sample] = c.region_write_units;
    s->of[model].rules |= c.rules;
    s->stretched = by > s->stretched ? by : s->stretched;
    if (a->cost->query_class > s->query_class) s->query_class = a->cost->query_class;
    s->kind = a->kind;
    if (model != (int)b->m->o.model) return 0;
    s->pages += (double)a->pages * by;
    s->entities += (double)entities * by;
    return 0;
}

/* all: one entry for each of the plan's tables. */
static int run_sample(struct bench *b, struct measured *all, struct gathered *of, struct err *e) {
    const uint32_t n = b->p->n_tables;
    struct world_request q;
    struct world_answer a;
    struct err why = {0}, strictly = {0};
    if (make_request(b, &q, e)) return -1;
    for (int i = 0; i < MODELS; i++) {
        if (world_run(b->of[i], &q, &a, &why)) return err_set(e, ERR_CONFIG, "%s", why.text);
        for (uint32_t t = 0; t < n; t++)
            if (take_sample(b, &all[t], &a, i, &of[t * MODELS + i], e)) return -1;
        if (i == (int)b->m->o.model) record(b, b->p->st->name, &q, &a.charge);
    }
    if (all->refused || !world_run(b->strict, &q, &a, &strictly)) return 0;
    for (uint32_t t = 0; t < n; t++)
        if (!(all[t].refused = arena_strdup(&b->m->w->arena, strictly.text))) return err_nomem(e);
    return 0;
}

static int run_samples(struct bench *b, struct measured *all, struct err *e) {
    const struct measure *m = b->m;
    struct arena *a = &m->w->arena;
    const uint32_t tables = b->p->n_tables, n = b->p->k.n ? m->o.samples : 1;
    struct gathered *of = ARENA_ARRAY(a, tables * MODELS, struct gathered);
    if (!of) return err_nomem(e);
    for (struct gathered *g = of; g < of + tables * MODELS; g++) {
        double *figures = ARENA_ARRAY(a, 4 * (size_t)n, double);
        if (!figures) return err_nomem(e);
        *g = (struct gathered){figures, figures + n, figures + 2 * (size_t)n, figures + 3 * (size_t)n};
    }
    for (b->sample = 0; b->sample < n; b->sample++)
        if (run_sample(b, all, of, e)) return -1;
    for (uint32_t t = 0; t < tables; t++) {
        struct measured *s = &all[t];
        for (int i = 0; i < MODELS; i++) {
            const struct gathered *g = &of[t * MODELS + i];
            spread_of(g->row_bytes, n, a, &s->of[i].row_bytes);
            spread_of(g->static_bytes, n, a, &s->of[i].static_bytes);
            spread_of(g->reads, n, a, &s->of[i].read_units);
            spread_of(g->writes, n, a, &s->of[i].write_units);
        }
        s->samples = n;
        for (int i = 0; i < MODELS; i++) {
            s->reads[i] = of[t * MODELS + i].reads;
            s->writes[i] = of[t * MODELS + i].writes;
        }
        s->entities /= n;
        s->pages /= n;
    }
    return 0;
}

/* Runs WRITES requests in a new world without other rows and expires everything there; the TTL
 * deletes are those of the requests alone. */
static int measure_ttl(struct bench *b, struct measured *s, struct err *e) {
    enum { WRITES = 20 };
    uint64_t units = 0;
    uint32_t done = 0, writes = b->p->k.n ? WRITES : 1;
    if (s->kind == STMT_SELECT) return 0;
    struct world *w = measure_world(b->m, b->m->o.model, false, e);
    int rc = w ? 0 : -1;
    for (b->sample = 0; !rc && b->sample < writes; b->sample++) {
        struct err why = {0};
        struct world_request q;
        struct world_answer ignored;
        rc = make_request(b, &q, e);
        q.consistency = CL_LOCAL_QUORUM;
        done += !rc && !world_run(w, &q, &ignored, &why);
    }
    if (!rc) rc = world_expire(w, YEARS_20_S, s->table, &units, e);
    if (!rc && done) s->ttl_deletes = (double)units / done;
    if (w) world_free(w);
    return rc;
}

/* ---- all ---- */

/* The time to live of the new rows that the plan writes to its table number i: that of USING TTL, of
 * which a marker has the mean of its values, or the table's. */
static double ttl_of(const struct sample_plan *p, uint32_t i) {
    const struct plan_table *t = &p->tables[i];
    double ttl = t->rows.t->settings.default_time_to_live;
    for (uint32_t k = 0; k < p->k.n_statements; k++) {
        const struct ast_stmt *s = p->k.statements[k];
        if (p->parts[k].table != i || s->kind != STMT_INSERT || !p->parts[k].new_rows) continue;
        const struct ast_expr *given = s->insert.using.ttl;
        const struct literal_spec *spec = spec_of(&t->rows, "ttl");
        if (given && given->kind == EXPR_LITERAL) ttl = strtod((const char *)given->text.p, NULL);
        else if (given && spec && spec->has_range) ttl = (double)(spec->range_low + spec->range_high) / 2;
        return ttl;
    }
    return 0;
}

/* all: one entry for each of the plan's tables. An error has the place of the statement. */
static int run_plan(struct measure *m, struct sample_plan *p, struct measured *all, struct err *e) {
    struct bench b;
    int rc = bench_open(&b, m, p, e);
    b.chance.state = chance_of(p->st->line);
    for (uint32_t i = 0; !rc && i < p->n_tables; i++) {
        struct plan_table *t = &p->tables[i];
        t->keys = ARENA_NEW(&m->w->arena, struct key_distribution);
        if (!t->keys) {
            rc = err_nomem(e);
            break;
        }
        *t->keys = p->st->keys;
        t->keys->n = t->rows.input->partitions;
        keys_init(t->keys);
        all[i].keys = t->keys;
        if (!t->by_partition) rc = load_some(&b, t, t->keys->n, SCANNED_ROWS, e);
    }
    if (!rc) rc = run_samples(&b, all, e);
    for (uint32_t i = 0; !rc && i < p->n_tables; i++) {
        all[i].ttl_s = ttl_of(p, i);
        rc = measure_ttl(&b, &all[i], e);
    }
    bench_close(&b);
    for (uint32_t i = 0; i < p->n_tables; i++) ranks_free(&p->tables[i].ranks);
    if (!rc) return 0;
    struct err why = *e;
    err_clear(e);
    return err_set(e, ERR_CONFIG, "%s:%u: %s", p->st->file, p->st->line, why.text);
}

/* Adds one entry for each table of the statement; a statement that cannot be measured gets one
 * entry. */
static int measure_plan(struct measure *m, struct sample_plan *p, struct err *e) {
    struct measured *all = &m->statements[m->n_statements];
    m->n_statements += p->n_tables ? p->n_tables : 1;
    for (struct measured *s = all; s < &m->statements[m->n_statements]; s++) {
        const uint32_t i = (uint32_t)(s - all);
        *s = (struct measured){.statement = p->st, .stretched = 1, .unknown = p->unknown, .plan_table = i};
        if (!p->n_tables) continue;
        s->table = p->tables[i].rows.t;
        s->input = p->tables[i].rows.input;
        s->by_partition = p->tables[i].by_partition;
    }
    /* Fills in the observed figures, which are known only in the server's own size model. */
    const struct workload_observed *o = p->st->observed;
    if (o) {
        const struct spread unknown = {-1, -1, -1, -1};
        all->table = o->table;
        all->input = measure_input(m, o->table);
        all->samples = o->n_samples;
        all->reads[m->o.model] = o->read_samples;
        all->writes[m->o.model] = o->write_samples;
        for (int i = 0; i < MODELS; i++) {
            bool here = i == (int)m->o.model;
            all->of[i].read_units = here ? o->reads : unknown;
            all->of[i].write_units = here ? o->writes : unknown;
            all->of[i].row_bytes = here ? o->row_bytes : unknown;
            all->of[i].static_bytes = here ? o->static_bytes : unknown;
        }
    }
    if (p->unknown || o || !run_plan(m, p, all, e)) return 0;
    if (!p->st->inferred) return -1;
    struct err why = *e;
    err_clear(e);
    return (all->unknown = arena_strdup(&m->w->arena, why.text)) ? 0 : err_nomem(e);
}

/* ---- tables ---- */

/* Rows that expire: in the long run the table holds the rows written within one time to live. */
static void find_steady_state(const struct measure *m, struct measured_table *t) {
    for (uint32_t i = 0; i < m->n_statements; i++) {
        const struct measured *s = &m->statements[i];
        if (s->table != t->table || s->unknown || s->refused || s->ttl_s <= 0) continue;
        double rows = curve_mean(&s->statement->rate) * s->ttl_s;
        t->steady_rows += rows;
        for (int k = 0; k < MODELS; k++) t->steady_bytes[k] += rows * s->of[k].row_bytes.mean;
    }
}

double measure_storage(const struct measured_table *t, enum size_model model) {
    double steady = t->steady_bytes[model], stored = t->stored_bytes[model];
    return steady > 0 && steady > stored ? steady : stored;
}

static int measure_one_table(struct measure *m, struct measured_table *t, struct err *e) {
    t->stored_bytes[0] = t->stored_bytes[1] = -1;
    t->input = measure_input(m, t->table);
    find_steady_state(m, t);
    if (t->input && t->input->has_stored) {
        t->stored_bytes[m->o.model] = t->input->stored_bytes;
        t->rows = (uint64_t)t->input->stored_rows;
        return 0;
    }
    t->partitions = t->input ? t->input->partitions : 0;
    if (t->input && t->input->cassandra_bytes > 0) {
        t->stored_bytes[0] = t->stored_bytes[1] = t->input->cassandra_bytes;
        uint64_t rows = !t->table->n_clustering ? 1 : t->input->rows_per_partition;
        t->rows = t->partitions * rows;
        return 0;
    }
    uint64_t per = !t->table->n_clustering ? 1 : t->input ? t->input->rows_per_partition : 0;
    if (!t->partitions) t->unknown = "no input says how many partitions it has";
    else if (!per) t->unknown = "no input says how many rows a partition has";
    else if (per > ROWS_OF_PARTITION) t->unknown = "its partitions have more rows than are held in memory";
    if (t->unknown) return 0;
    t->rows = t->partitions * per;
    struct bench b;
    struct plan_table of = {.rows = {.t = t->table, .input = t->input, .per_partition = per},
                            .statics = t->table->n_static};
    struct err why = {0};
    uint64_t some = per * PARTITIONS_STORED;
    int rc = bench_open(&b, m, NULL, e);
    if (!rc && !load_some(&b, &of, t->partitions, some < ROWS_LOADED ? some : ROWS_LOADED, &why)) {
        for (int i = 0; !rc && i < MODELS; i++) {
            struct table_size size;
            const struct schema *schema = world_schema(b.of[i]);
            const struct schema_table *mine = schema_table_find(schema, t->table->keyspace->name, t->table->name, e);
            rc = mine ? world_storage(b.of[i], mine, &size, e) : -1;
            if (!rc) t->stored_bytes[i] = (double)size.bytes * (double)t->partitions / of.ranks.n;
            schema_unref(schema);
        }
    } else if (!rc && !(t->unknown = arena_strdup(&m->w->arena, why.text))) {
        rc = err_nomem(e);
    }
    bench_close(&b);
    ranks_free(&of.ranks);
    return rc;
}

int measure_run(struct measure *m, void (*progress)(uint32_t done, uint32_t of), struct err *e) {
    struct arena *a = &m->w->arena;
    for (const struct workload_table *t = m->w->tables; t; t = t->next)
        if (t->file && !measure_table(m, t->keyspace, t->name))
            return err_set(e, ERR_CONFIG, "%s:%u: the schema has no table %s.%s", t->file, t->line, t->keyspace,
                           t->name);
    struct sample_plan *plans = ARENA_ARRAY(a, m->w->n_statements + 1, struct sample_plan);
    if (!plans) return err_nomem(e);
    struct questions q = {0};
    uint32_t n = 0, entries = 0;
    buf_init(&q.text, 0);
    for (struct workload_statement *s = m->w->statements; !e->set && s; s = s->next) {
        if (plan_open(&plans[n], m, s, &q, e)) break;
        entries += plans[n].n_tables ? plans[n].n_tables : 1;
        n++;
    }
    if (!e->set && q.text.n) err_set_buf(e, ERR_CONFIG, &q.text);
    else buf_fini(&q.text);
    if (!e->set && !(m->statements = ARENA_ARRAY(a, entries + 1, struct measured))) err_nomem(e);
    for (uint32_t i = 0; !e->set && i < n; i++)
        if (!measure_plan(m, &plans[i], e) && progress) progress(i + 1, n);
    for (uint32_t i = 0; i < m->w->n_statements; i++)
        if (plans[i].k.prepared) cql_prepared_unref(plans[i].k.prepared);
    const struct schema *s = m->schema;
    uint32_t n_tables = 0;
    for (uint32_t i = 0; i < s->n_spaces; i++)
        n_tables += s->spaces[i]->keyspace->is_system ? 0 : s->spaces[i]->tables.n;
    if (!e->set && !(m->tables = ARENA_ARRAY(a, n_tables + 1, struct measured_table))) err_nomem(e);
    for (uint32_t i = 0; i < s->n_spaces; i++) {
        if (s->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor c = schema_tables_begin(&s->spaces[i]->tables);
        for (const struct schema_table *t; !e->set && (t = schema_tables_next(&c));) {
            m->tables[m->n_tables].table = t;
            if (measure_one_table(m, &m->tables[m->n_tables++], e)) break;
        }
    }
    return e->set ? -1 : 0;
}

int measure_key(const struct measured *s, uint64_t rank, struct buf *out, struct err *e) {
    const struct rows r = {.t = s->table, .input = s->input, .values = s->statement->values, .per_partition = 1};
    for (uint32_t i = 0; i < s->table->n_partition_key; i++) {
        buf_printf(out, "%s%s = ", i ? " AND " : "", s->table->columns[i].name);
        if (rows_value(&r, &s->table->columns[i], rank, 0, 0, out, e) < 0) return -1;
    }
    return 0;
}
