#include "tools/tally/capacity/sample.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/tally/capacity/literal.h"
#include "tools/tally/script.h"

enum { SAMPLE_ROWS = 1000000 };

struct reading {
    struct arena *a;
    const char *path;
    const struct schema_table *t;
    struct sample *out;
    uint32_t cap;
    struct err *e;
};

static int bad(const struct reading *r, uint32_t line, const char *why) {
    return err_set(r->e, ERR_CONFIG, "%s:%u: %s", r->path, line, why);
}

/* NULL: no memory, or too many rows. */
static struct sample_row *add_row(struct reading *r, uint32_t line) {
    struct sample *s = r->out;
    if (s->n == SAMPLE_ROWS) return bad(r, line, "a sample has at most 1,000,000 rows"), NULL;
    if (s->n == r->cap) {
        uint32_t cap = r->cap ? 2 * r->cap : 64;
        struct sample_row *rows = ARENA_ARRAY(r->a, cap, struct sample_row);
        if (!rows) return err_nomem(r->e), NULL;
        if (s->n) memcpy(rows, s->rows, s->n * sizeof(*rows));
        s->rows = rows;
        r->cap = cap;
    }
    struct sample_row *row = &s->rows[s->n];
    *row = (struct sample_row){.line = line, .literals = ARENA_ARRAY(r->a, r->t->n_columns, const char *)};
    if (!row->literals) return err_nomem(r->e), NULL;
    s->n++;
    return row;
}

static int keep(struct reading *r, struct sample_row *row, const struct schema_column *c, struct buf *literal) {
    struct slice copy = arena_dup(r->a, buf_slice(literal));
    row->literals[c->ordinal] = (const char *)copy.p;
    return copy.p ? 0 : err_nomem(r->e);
}

static const struct schema_column *column_of(const struct reading *r, uint32_t line, struct slice name) {
    char text[64];
    const struct schema_column *c = NULL;
    if (name.n < sizeof(text)) {
        memcpy(text, name.p, name.n);
        text[name.n] = 0;
        c = schema_column_find(r->t, text);
    }
    if (!c)
        err_set(r->e, ERR_CONFIG, "%s:%u: %s.%s has no column '%.*s'", r->path, line, r->t->keyspace->name, r->t->name,
                SLICE_FMT(name));
    return c;
}

static int check_key(const struct reading *r, const struct sample_row *row) {
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

/* Reads one field into out. 1: another field follows in the row; 0: the row has ended; -1: e.
 * *quoted: the field was quoted, so an empty one is an empty value. */
static int next_field(const struct reading *r, struct csv *c, struct buf *out, bool *quoted) {
    buf_clear(out, SIZE_MAX);
    *quoted = rd_left(&c->rd) && *c->rd.p == '"';
    if (*quoted) {
        uint32_t from = c->line;
        c->rd.p++;
        for (;;) {
            if (!rd_left(&c->rd)) return bad(r, from, "a quoted field has no end");
            uint8_t x = rd_u8(&c->rd);
            if (x == '"' && (!rd_left(&c->rd) || *c->rd.p != '"')) break;
            if (x == '"') c->rd.p++;
            c->line += x == '\n';
            buf_u8(out, x);
        }
    }
    while (rd_left(&c->rd)) {
        uint8_t x = rd_u8(&c->rd);
        if (x == ',') return 1;
        if (x == '\r' && rd_left(&c->rd) && *c->rd.p == '\n') continue;
        if (x == '\n') {
            c->line++;
            return 0;
        }
        if (*quoted) return bad(r, c->line, "something stands behind a quoted field");
        buf_u8(out, x);
    }
    return 0;
}

static int read_header(struct reading *r, struct csv *c, const struct schema_column **columns, uint32_t *n) {
    struct buf field;
    bool quoted;
    int more = 1;
    buf_init(&field, 0);
    *n = 0;
    while (more > 0 && !r->e->set) {
        more = next_field(r, c, &field, &quoted);
        if (more < 0) break;
        const struct schema_column *column = column_of(r, 1, buf_slice(&field));
        for (uint32_t i = 0; column && i < *n; i++)
            if (columns[i] == column)
                err_set(r->e, ERR_CONFIG, "%s:1: the column %s is there twice", r->path, column->name);
        if (column && !r->e->set) columns[(*n)++] = column;
    }
    buf_fini(&field);
    return r->e->set ? -1 : 0;
}

static int read_row(struct reading *r, struct csv *c, const struct schema_column *const *columns, uint32_t n) {
    struct buf field, literal;
    bool quoted;
    uint32_t line = c->line, k = 0;
    struct sample_row *row = add_row(r, line);
    int more = row ? 1 : -1;
    buf_init(&field, 0), buf_init(&literal, 0);
    while (more > 0) {
        more = next_field(r, c, &field, &quoted);
        if (more >= 0 && k < n && (field.n || quoted)) {
            buf_clear(&literal, SIZE_MAX);
            literal_of_text(&literal, columns[k]->type, buf_slice(&field));
            if (keep(r, row, columns[k], &literal)) more = -1;
        }
        k++;
    }
    buf_fini(&field), buf_fini(&literal);
    if (more < 0) return -1;
    if (k != n)
        return err_set(r->e, ERR_CONFIG, "%s:%u: the row has %u fields, the first line names %u columns", r->path, line,
                       k, n);
    return check_key(r, row);
}

static int read_csv(struct reading *r, struct slice text) {
    struct csv c = {.rd = rd_of(text), .line = 1};
    const struct schema_column **columns = ARENA_ARRAY(r->a, r->t->n_columns, const struct schema_column *);
    uint32_t n;
    if (!columns) return err_nomem(r->e);
    if (read_header(r, &c, columns, &n)) return -1;
    while (rd_left(&c.rd)) {
        if (*c.rd.p == '\n' || (*c.rd.p == '\r' && rd_left(&c.rd) > 1 && c.rd.p[1] == '\n')) { /* an empty line */
            c.line += 1;
            c.rd.p += *c.rd.p == '\r' ? 2 : 1;
            continue;
        }
        if (read_row(r, &c, columns, n)) return -1;
    }
    return 0;
}

/* ---- JSON ---- */

static uint32_t line_at(const struct slice text, const struct rd *r) {
    uint32_t line = 1;
    for (const uint8_t *p = text.p; p < r->p; p++) line += *p == '\n';
    return line;
}

static int read_pair(struct reading *r, struct sample_row *row, struct rd *rd, struct err *e) {
    struct slice name;
    struct buf literal;
    bool null;
    if (json_string(r->a, rd, &name, e)) return -1;
    if (json_peek(rd) != ':') return err_set(e, ERR_CONFIG, "an object is pairs of a name and a value");
    rd->p++;
    const struct schema_column *c = column_of(r, row->line, name);
    if (!c) return -1;
    buf_init(&literal, 0);
    int rc = literal_of_json(&literal, c->type, rd, &null, e);
    if (rc) {
        struct err why = *e;
        err_clear(e);
        err_set(e, ERR_CONFIG, "%s: %s", c->name, why.text);
    } else if (!null) rc = keep(r, row, c, &literal);
    buf_fini(&literal);
    return rc;
}

/* Reads an object; rd is at its {. */
static int read_object(struct reading *r, struct slice text, uint32_t *line, const uint8_t **counted, struct rd *rd) {
    struct err e = {0};
    for (; *counted < rd->p; (*counted)++) *line += **counted == '\n';
    struct sample_row *row = add_row(r, *line);
    int rc = row ? 0 : -1;
    bool first = true;
    rd->p++;
    while (!rc && json_peek(rd) != '}') {
        if (!first && json_peek(rd) != ',') rc = err_set(&e, ERR_CONFIG, "an object has no end");
        else if (!first) rd->p++;
        first = false;
        if (!rc)
            rc = json_peek(rd) == '"' ? read_pair(r, row, rd, &e)
                                      : err_set(&e, ERR_CONFIG, "an object is pairs of a name and a value");
    }
    if (rc) return r->e->set ? -1 : err_set(r->e, ERR_CONFIG, "%s:%u: %s", r->path, line_at(text, rd), e.text);
    rd->p++;
    return check_key(r, row);
}

static int read_json(struct reading *r, struct slice text) {
    struct rd rd = rd_of(text);
    uint32_t line = 1;
    const uint8_t *counted = text.p;
    bool array = json_peek(&rd) == '[';
    if (array) rd.p++;
    for (bool first = true; json_peek(&rd) && (!array || json_peek(&rd) != ']'); first = false) {
        if (array && !first && json_peek(&rd) == ',') rd.p++;
        else if (array && !first) return bad(r, line_at(text, &rd), "a comma is expected between objects");
        if (json_peek(&rd) != '{') return bad(r, line_at(text, &rd), "a row is an object: {\"column\": value}");
        if (read_object(r, text, &line, &counted, &rd)) return -1;
    }
    if (array && json_peek(&rd) != ']') return bad(r, line_at(text, &rd), "the array has no end");
    if (array) rd.p++;
    return json_peek(&rd) ? bad(r, line_at(text, &rd), "something stands behind the array") : 0;
}

int sample_read(struct arena *a, const char *path, struct slice text, enum sample_format format,
                const struct schema_table *t, struct sample *out, struct err *e) {
    struct reading r = {.a = a, .path = path, .t = t, .out = out, .e = e};
    *out = (struct sample){.path = path};
    if (format == SAMPLE_JSON ? read_json(&r, text) : read_csv(&r, text)) return -1;
    return out->n ? 0 : err_set(e, ERR_CONFIG, "%s:1: there are no rows", path);
}

/* ---- files and tables ---- */

int sample_open(struct arena *a, const char *path, const struct schema_table *t, struct sample *out, struct err *e) {
    struct script file;
    size_t n = strlen(path);
    if (script_open(&file, path, e)) return -1;
    int rc = sample_read(a, path, file.text, n > 4 && !strcmp(path + n - 4, ".csv") ? SAMPLE_CSV : SAMPLE_JSON, t, out,
                         e);
    script_close(&file);
    return rc;
}

static const struct schema_table *only_table(const struct schema *schema, struct err *e) {
    const struct schema_table *only = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < schema->n_spaces; i++) {
        if (schema->spaces[i]->keyspace->is_system) continue;
        struct schema_table_cursor at = schema_tables_begin(&schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at)); n++) only = t;
    }
    if (n == 1) return only;
    err_set(e, ERR_CONFIG, "--rows needs --table keyspace.table: the schema has %u tables", n);
    return NULL;
}

const struct schema_table *sample_table(const struct schema *schema, const char *name, struct err *e) {
    char keyspace[64], table[64];
    struct err ignored = {0};
    if (!name) return only_table(schema, e);
    const struct schema_table *t = sscanf(name, "%63[^.].%63[^.]", keyspace, table) == 2
                                       ? schema_table_find(schema, keyspace, table, &ignored)
                                       : NULL;
    if (!t) err_set(e, ERR_CONFIG, "--table: the schema has no table %s (keyspace.table)", name);
    return t;
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
