#include "tools/tally/capacity/sample.h"

#include <stdio.h>

#include "types/json_text.h"

enum { SAMPLE_ROWS = 1000000 };

struct sample_reader {
    struct arena *a;
    const char *path;
    const struct schema_table *t;
    struct sample *out;
    uint32_t cap;
    struct err *e;
};

/* Returns NULL if memory is exhausted, or there are too many rows. */
static struct sample_row *add_row(struct sample_reader *r, uint32_t line) {
    struct sample *s = r->out;
    if (s->n == SAMPLE_ROWS) {
        err_set(r->e, ERR_CONFIG, "%s:%u: a sample has at most 1,000,000 rows", r->path, line);
        return NULL;
    }
    if (s->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        struct sample_row *rows = ARENA_ARRAY(r->a, r->cap, struct sample_row);
        if (rows && s->n) memcpy(rows, s->rows, s->n * sizeof(*rows));
        s->rows = rows;
    }
    const char **literals = ARENA_ARRAY(r->a, r->t->n_columns, const char *);
    if (!s->rows || !literals) {
        err_nomem(r->e);
        return NULL;
    }
    s->rows[s->n] = (struct sample_row){.line = line, .literals = literals};
    return &s->rows[s->n++];
}

static int keep(struct sample_reader *r, struct sample_row *row, const struct schema_column *c,
                const struct buf *literal) {
    row->literals[c->ordinal] = (const char *)arena_dup(r->a, buf_slice(literal)).p;
    return row->literals[c->ordinal] && !buf_failed(literal) ? 0 : err_nomem(r->e);
}

static const struct schema_column *column_of(const struct sample_reader *r, uint32_t line, struct slice name) {
    for (uint32_t i = 0; i < r->t->n_columns; i++)
        if (slice_is(name, r->t->columns[i].name)) return &r->t->columns[i];
    err_set(r->e, ERR_CONFIG, "%s:%u: %s.%s has no column '%.*s'", r->path, line, r->t->keyspace->name, r->t->name,
            SLICE_FMT(name));
    return NULL;
}

static int check_key(const struct sample_reader *r, const struct sample_row *row) {
    for (uint32_t i = 0; i < r->t->n_partition_key; i++)
        if (!row->literals[i])
            return err_set(r->e, ERR_CONFIG, "%s:%u: the row has no %s, which is of the partition key", r->path,
                           row->line, r->t->columns[i].name);
    return 0;
}

/* ---- CSV (RFC 4180) ---- */

struct csv {
    struct rd rd;
    uint32_t line;
};

/* Reads one field into out. Returns 1 if another field follows in the row, or 0 if the row has
 * ended, or -1 with e set. *quoted: the field was quoted, so an empty one is an empty value. */
static int next_field(const struct sample_reader *r, struct csv *c, struct buf *out, bool *quoted) {
    uint32_t from = c->line;
    bool open = rd_left(&c->rd) && *c->rd.p == '"';
    buf_clear(out, SIZE_MAX);
    *quoted = open;
    if (open) c->rd.p++;
    while (rd_left(&c->rd)) {
        uint8_t x = rd_u8(&c->rd);
        bool doubled = x == '"' && rd_left(&c->rd) && *c->rd.p == '"';
        c->line += x == '\n';
        if (open) {
            if (x == '"' && !doubled) open = false;
            else buf_u8(out, x);
            if (doubled) c->rd.p++;
            continue;
        }
        if (x == ',') return 1;
        if (x == '\n') return 0;
        if (x == '\r' && rd_left(&c->rd) && *c->rd.p == '\n') continue;
        if (*quoted)
            return err_set(r->e, ERR_CONFIG, "%s:%u: there is text after a quoted field", r->path, c->line);
        buf_u8(out, x);
    }
    return open ? err_set(r->e, ERR_CONFIG, "%s:%u: a quoted field has no end", r->path, from) : 0;
}

static int read_row(struct sample_reader *r, struct csv *c, const struct schema_column *const *columns, uint32_t n) {
    struct buf field, literal;
    bool quoted;
    uint32_t k = 0;
    struct sample_row *row = add_row(r, c->line);
    int more = row ? 1 : -1;
    buf_init(&field, 0);
    buf_init(&literal, 0);
    for (; more > 0; k++) {
        more = next_field(r, c, &field, &quoted);
        if (more < 0 || k >= n || !(field.n || quoted)) continue;
        enum cql_type_id id = columns[k]->type->id;
        bool string = id == CQL_TEXT || id == CQL_ASCII || id == CQL_INET || id == CQL_TIMESTAMP || id == CQL_DATE ||
                      id == CQL_TIME;
        buf_clear(&literal, SIZE_MAX);
        if (string) cql_value_print(cql_type_scalar(CQL_TEXT), buf_slice(&field), &literal);
        else buf_put_slice(&literal, buf_slice(&field));
        if (keep(r, row, columns[k], &literal)) more = -1;
    }
    buf_fini(&field);
    buf_fini(&literal);
    if (more < 0) return -1;
    if (k == n) return check_key(r, row);
    return err_set(r->e, ERR_CONFIG, "%s:%u: the row has %u fields, the first line names %u columns", r->path,
                   row->line, k, n);
}

/* The first line names the columns of the fields. */
static int read_csv(struct sample_reader *r, struct slice text) {
    struct csv c = {.rd = rd_of(text), .line = 1};
    const struct schema_column **columns = ARENA_ARRAY(r->a, r->t->n_columns, const struct schema_column *);
    uint32_t n = 0;
    struct buf name;
    bool quoted;
    if (!columns) return err_nomem(r->e);
    buf_init(&name, 0);
    for (int more = 1; more > 0 && !r->e->set;) {
        more = next_field(r, &c, &name, &quoted);
        const struct schema_column *column = more < 0 ? NULL : column_of(r, 1, buf_slice(&name));
        for (uint32_t i = 0; column && i < n; i++)
            if (columns[i] == column)
                err_set(r->e, ERR_CONFIG, "%s:1: the column %s is there twice", r->path, column->name);
        if (!r->e->set) columns[n++] = column;
    }
    buf_fini(&name);
    while (!r->e->set && rd_left(&c.rd)) {
        bool ends = *c.rd.p == '\r' && rd_left(&c.rd) > 1 && c.rd.p[1] == '\n';
        if (*c.rd.p == '\n' || ends) { /* an empty line */
            c.line++;
            c.rd.p += ends ? 2 : 1;
        } else if (read_row(r, &c, columns, n)) {
            return -1;
        }
    }
    return r->e->set ? -1 : 0;
}

/* ---- JSON, as INSERT JSON takes it ---- */

static int read_object(struct sample_reader *r, uint32_t line, struct rd *text) {
    struct err why = {0};
    struct slice object, key, value;
    size_t left = rd_left(text);
    struct sample_row *row = add_row(r, line);
    if (!row) return -1;
    if (cql_json_check(slice_of(text->p, left < JSON_TEXT_MAX ? left : JSON_TEXT_MAX - 1), &object, &why))
        return err_set(r->e, ERR_CONFIG, "%s:%u: the row is not JSON: %s of the row", r->path, line, why.text);
    text->p = object.p + object.n;
    struct rd members = rd_of(object);
    struct buf name, literal, wire;
    buf_init(&name, 0);
    buf_init(&literal, 0);
    buf_init(&wire, 0);
    while (!r->e->set && cql_json_member(&members, &key, &value)) {
        buf_clear(&name, SIZE_MAX);
        buf_clear(&literal, SIZE_MAX);
        buf_clear(&wire, SIZE_MAX);
        int rc = cql_value_from_json(cql_type_scalar(CQL_TEXT), key, (struct cql_reading){0}, &name, &why);
        const struct schema_column *c = rc ? NULL : column_of(r, line, buf_slice(&name));
        bool number = *value.p == '-' || (*value.p >= '0' && *value.p <= '9');
        if (!c) continue;
        if (c->type->id == CQL_DECIMAL && number)
            buf_put_slice(&literal, value); /* INSERT JSON would lose trailing zeros, as it reads a double */
        else if (!(rc = cql_value_from_json(c->type, value, (struct cql_reading){0}, &wire, &why)))
            cql_value_print(c->type, buf_slice(&wire), &literal);
        if (rc < 0) err_set(r->e, ERR_CONFIG, "%s:%u: %s: %s", r->path, line, c->name, why.text);
        else if (!rc && keep(r, row, c, &literal)) break;
    }
    buf_fini(&name);
    buf_fini(&literal);
    buf_fini(&wire);
    return r->e->set ? -1 : check_key(r, row);
}

struct sample_json {
    struct rd rd;
    const uint8_t *counted; /* line counts the newlines before this byte */
    uint32_t line;
};

/* Skips white space and returns the next byte; 0 at the end. */
static uint8_t peek(struct sample_json *j) {
    while (rd_left(&j->rd) && memchr(" \t\n\r", *j->rd.p, 4)) j->rd.p++;
    for (; j->counted < j->rd.p; j->counted++) j->line += *j->counted == '\n';
    return rd_left(&j->rd) ? *j->rd.p : 0;
}

static bool take(struct sample_json *j, uint8_t sign) {
    bool there = peek(j) == sign;
    j->rd.p += there;
    return there;
}

static int read_json(struct sample_reader *r, struct slice text) {
    struct sample_json j = {.rd = rd_of(text), .counted = text.p, .line = 1};
    const char *wrong = NULL;
    bool array = take(&j, '[');
    for (bool first = true; !wrong && peek(&j) && !(array && peek(&j) == ']'); first = false) {
        if (array && !first && !take(&j, ',')) wrong = "a comma is expected between objects";
        else if (peek(&j) != '{') wrong = "a row is an object: {\"column\": value}";
        else if (read_object(r, j.line, &j.rd)) return -1;
    }
    if (!wrong && array && !take(&j, ']')) wrong = "the array has no end";
    if (!wrong && peek(&j)) wrong = "there is text after the array";
    return wrong ? err_set(r->e, ERR_CONFIG, "%s:%u: %s", r->path, j.line, wrong) : 0;
}

int sample_read(struct arena *a, const char *path, struct slice text, enum sample_format format,
                const struct schema_table *t, struct sample *out, struct err *e) {
    struct sample_reader r = {.a = a, .path = path, .t = t, .out = out, .e = e};
    *out = (struct sample){.path = path};
    if (format == SAMPLE_JSON ? read_json(&r, text) : read_csv(&r, text)) return -1;
    return out->n ? 0 : err_set(e, ERR_CONFIG, "%s:1: there are no rows", path);
}

/* ---- files and tables ---- */

int sample_open(struct arena *a, const char *path, const struct schema_table *t, struct sample *out, struct err *e) {
    struct slice text;
    size_t n = strlen(path);
    bool csv = n > 4 && !strcmp(path + n - 4, ".csv");
    return file_read(a, path, &text, e) ? -1 : sample_read(a, path, text, csv ? SAMPLE_CSV : SAMPLE_JSON, t, out, e);
}

const struct schema_table *sample_table(const struct schema *schema, const char *name, struct err *e) {
    char keyspace[64], table[64];
    const struct schema_table *found = NULL;
    struct err ignored = {0};
    uint32_t n = 0;
    if (name) {
        if (sscanf(name, "%63[^.].%63[^.]", keyspace, table) == 2)
            found = schema_table_find(schema, keyspace, table, &ignored);
        if (!found) err_set(e, ERR_CONFIG, "--table: the schema has no table %s (keyspace.table)", name);
        return found;
    }
    for (uint32_t i = 0; i < schema->n_spaces; i++) {
        if (schema->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor at = schema_tables_begin(&schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at)); n++) found = t;
    }
    if (n == 1) return found;
    err_set(e, ERR_CONFIG, "--rows needs --table keyspace.table: the schema has %u tables", n);
    return NULL;
}

void sample_insert(const struct schema_table *t, const struct sample_row *row, struct buf *out) {
    buf_printf(out, "INSERT INTO \"%s\".\"%s\" (", t->keyspace->name, t->name);
    for (uint32_t pass = 0; pass < 2; pass++) {
        const char *comma = "";
        for (uint32_t i = 0; i < t->n_columns; i++) {
            if (!row->literals[i]) continue;
            if (pass) buf_printf(out, "%s%s", comma, row->literals[i]);
            else buf_printf(out, "%s\"%s\"", comma, t->columns[i].name);
            comma = ", ";
        }
        buf_put_str(out, pass ? ")" : ") VALUES (");
    }
}

/* ---- generated rows ---- */

/* The number of a key column's literal. A clustering column with a range, except the last one,
 * spreads the rows evenly and in order over the range, so rows share values. */
static uint64_t ordered(const struct rows *r, const struct schema_column *c, const struct literal_spec *s,
                        uint64_t rank, uint64_t row) {
    if (c->kind == COLUMN_PARTITION_KEY) return rank;
    if (!s || !s->has_range || c->position + 1 == r->t->n_clustering) return row;
    uint64_t span = (uint64_t)(s->range_high - s->range_low) + 1;
    return (uint64_t)((double)(row % r->per_partition) * (double)span / (double)r->per_partition);
}

int rows_value(const struct rows *r, const struct schema_column *c, uint64_t rank, uint64_t row, uint64_t n,
               struct buf *out, struct err *e) {
    const struct literal_spec *s = workload_value_find(r->values, c->name);
    const struct sample *sample = r->input ? r->input->sample : NULL;
    const char *literal = sample ? sample->rows[chance_of(n) % sample->n].literals[c->ordinal] : NULL;
    if (!s && r->input) s = workload_value_find(r->input->values, c->name);
    if (schema_column_is_key(c)) {
        /* A key without a specification gets the length of the key in a sample row. */
        int64_t length = literal ? (int64_t)strlen(literal) - 2 : -1; /* quotes, or 0x */
        if (c->type->id == CQL_BLOB) length /= 2;
        const struct literal_spec as_sampled = {.has_size = true, .size_low = length, .size_high = length};
        if (!s && literal && length >= 0) s = &as_sampled;
        return literal_make(out, c->type, s, LITERAL_ORDERED, ordered(r, c, s, rank, row), c->name, e);
    }
    if (s || !sample)
        return literal_make(out, c->type, s, LITERAL_RANDOM, n ^ chance_of(c->ordinal), c->name, e);
    if (literal) buf_put_str(out, literal);
    return literal ? 0 : 1;
}

static int put_counters(const struct rows *r, uint64_t rank, uint64_t row, struct buf *out, struct err *e) {
    const struct schema_table *t = r->t;
    const char *comma = "";
    buf_printf(out, "UPDATE \"%s\".\"%s\" SET ", t->keyspace->name, t->name);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct schema_column *c = &t->columns[i];
        if (schema_column_is_key(c)) continue;
        buf_printf(out, "%s\"%s\" = \"%s\" + 1", comma, c->name, c->name);
        comma = ", ";
    }
    for (uint32_t i = 0; i < t->n_partition_key + t->n_clustering; i++) {
        buf_printf(out, " %s \"%s\" = ", i ? "AND" : "WHERE", t->columns[i].name);
        if (rows_value(r, &t->columns[i], rank, row, 0, out, e)) return -1;
    }
    return 0;
}

int rows_insert(const struct rows *r, uint64_t rank, uint64_t row, uint64_t n, struct buf *out, struct err *e) {
    const struct schema_table *t = r->t;
    bool statics = row == UINT64_MAX;
    struct buf values;
    uint32_t put = 0;
    size_t from = out->n;
    int rc = 0;
    if (t->is_counter) return statics ? 0 : put_counters(r, rank, row, out, e);
    buf_init(&values, 0);
    buf_printf(out, "INSERT INTO \"%s\".\"%s\" (", t->keyspace->name, t->name);
    for (uint32_t i = 0; rc >= 0 && i < t->n_columns; i++) {
        const struct schema_column *c = &t->columns[i];
        if (statics ? c->kind == COLUMN_CLUSTERING || c->kind == COLUMN_REGULAR : c->kind == COLUMN_STATIC) continue;
        size_t before = values.n;
        if (i) buf_put_str(&values, ", ");
        rc = rows_value(r, c, rank, statics ? 0 : row, n, &values, e);
        if (rc > 0) values.n = before;
        if (rc) continue;
        put += !schema_column_is_key(c);
        buf_printf(out, "%s\"%s\"", i ? ", " : "", c->name);
    }
    buf_printf(out, ") VALUES (%.*s)", SLICE_FMT(buf_slice(&values)));
    buf_fini(&values);
    if (statics && !put) out->n = from; /* the row has no static data */
    return rc < 0 ? -1 : 0;
}
