/* INSERT JSON: the text of one object to a value per column. Only the object itself is read here,
 * member by member; the column's type decodes a member's value (cql_value_from_json). */
#include "cql/write/modify.h"

#include <stdio.h>

#include "types/json_text.h"

static int not_a_map(struct cql_run *r, struct slice text, const char *why) {
    return err_invalid(r->err, "Could not decode JSON string as a map: %s. (String was: %.*s)", why, SLICE_FMT(text));
}

/* Checks that the text is one JSON object and sets *object to it. */
static int check_object(struct cql_run *r, struct slice text, struct slice *object) {
    struct err inner = {0};
    if (cql_json_check(text, object, &inner) < 0) return not_a_map(r, text, inner.text);
    char c = (char)object->p[0];
    if (c == '{') return 0;
    if (c == 'n') return err_invalid(r->err, "Got null for INSERT JSON values");
    const char *why = "it is a number";
    if (c == '[') why = "it is an array";
    else if (c == '"') why = "it is a string";
    else if (c == 't' || c == 'f') why = "it is a boolean";
    return not_a_map(r, text, why);
}

/* Decodes a member's name: "Name" in quotes within the string keeps its capitals, others are
 * lower-cased. Returns a copy that ends with NUL, or p NULL on error. */
static struct slice column_name(struct cql_run *r, struct slice json) {
    struct buf b;
    struct slice name = {0};
    buf_init(&b, json.n + 1);
    if (cql_value_from_json(cql_type_scalar(CQL_TEXT), json, (struct cql_reading){0}, &b, r->err) == 0) {
        struct slice s = buf_slice(&b);
        bool quoted = s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"';
        name = arena_dup(r->arena, quoted ? slice_of(s.p + 1, s.n - 2) : s);
        if (!name.p) err_nomem(r->err);
        for (uint8_t *c = (uint8_t *)name.p; !quoted && c < name.p + name.n; c++)
            if (*c >= 'A' && *c <= 'Z') *c += 'a' - 'A';
    }
    buf_fini(&b);
    return name;
}

static int set_column(struct cql_run *r, const struct schema_column *col, struct slice json, struct value *values) {
    struct buf b;
    buf_init(&b, r->arena->limit);
    int rc = cql_value_from_json(col->type, json, r->eval.reading, &b, r->err);
    if (rc == 1) values[col->ordinal] = value_null();
    if (rc == 0) {
        values[col->ordinal] = value_of_slice(arena_take(r->arena, &b));
        return values[col->ordinal].p ? 0 : err_nomem(r->err);
    }
    /* Cassandra passes this error on without the prefix. */
    bool bare = col->type->id == CQL_DURATION && strncmp(r->err->text, "Unable to convert", 17) == 0;
    if (rc < 0 && r->err->code == ERR_INVALID && !bare) {
        char why[ERR_TEXT_MAX];
        memcpy(why, r->err->text, sizeof why);
        err_clear(r->err);
        err_invalid(r->err, "Error decoding JSON value for %s: %s", col->name, why);
    }
    buf_fini(&b);
    return rc < 0 ? -1 : 0;
}

/* object: a JSON object that check_object verified. */
static int decode(struct cql_run *r, const struct modify_plan *p, struct slice object, struct value *values) {
    struct slice *members = ARENA_ARRAY(r->arena, p->table->n_columns, struct slice); /* not decoded yet */
    struct slice unknown = {0};                                                       /* the first one */
    if (!members) return err_nomem(r->err);
    struct rd rest = rd_of(object);
    struct slice key, json;
    while (cql_json_member(&rest, &key, &json)) {
        const struct slice name = column_name(r, key);
        if (!name.p) return -1;
        /* The name of a column has no NUL byte. */
        const struct schema_column *col =
            memchr(name.p, 0, name.n) ? NULL : schema_column_find(p->table, (const char *)name.p);
        if (col) members[col->ordinal] = json;
        else if (!unknown.p) unknown = name;
    }
    for (uint32_t i = 0; i < p->table->n_columns; i++) {
        const struct schema_column *col = &p->table->columns[i];
        if (members[col->ordinal].p && set_column(r, col, members[col->ordinal], values)) return -1;
    }
    if (!unknown.p) return 0;
    return err_invalid(r->err, "JSON values map contains unrecognized column: %.*s", SLICE_FMT(unknown));
}

int modify_json_values(struct cql_run *r, const struct modify_plan *p, const struct value **out) {
    const struct schema_table *t = p->table;
    struct value text;
    if (term_eval(p->json, &r->eval, &text)) return -1;
    if (value_is_unset(text)) return not_a_map(r, slice_of("", 0), "it is unset");
    if (value_is_null(text)) return err_invalid(r->err, "Got null for INSERT JSON values");
    struct value *values = ARENA_ARRAY(r->arena, t->n_columns, struct value);
    if (!values) return err_nomem(r->err);
    for (uint32_t i = 0; i < t->n_columns; i++) values[i].n = p->json_unset ? VALUE_UNSET : VALUE_NULL;
    *out = values;
    struct slice object;
    return check_object(r, value_slice(text), &object) < 0 ? -1 : decode(r, p, object, values);
}
