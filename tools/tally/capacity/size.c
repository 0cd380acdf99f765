/* tally capacity size: prints bytes and units of single statements or rows in both size models. */
#include <stdio.h>

#include "base/json.h"
#include "tools/tally/capacity/measure.h"
#include "tools/tally/script.h"
#include "tools/tally/table.h"

struct sizing {
    struct pricing p;
    struct world *of[MODELS];
    const char *statement, *rows, *table;
    struct buf json;
    struct table out;
    struct err *e;
};

static void put_row(struct sizing *z, struct slice text, const char *path, uint32_t line,
                    const struct world_answer a[MODELS]) {
    enum { SHOWN = 60 };
    struct buf row;
    buf_init(&row, 0);
    if (z->rows) buf_printf(&row, "%s:%u", path, line);
    else
        buf_printf(&row, "%.*s%s", (int)(text.n < SHOWN ? text.n : SHOWN), (const char *)text.p,
                   text.n > SHOWN ? "..." : "");
    for (size_t i = 0; i < row.n; i++)
        if (row.p[i] == '\t') row.p[i] = ' ';
    for (int i = 0; i < MODELS; i++) {
        const struct charge *c = &a[i].charge;
        buf_printf(&row, "\t%llu\t%llu\t%llu\t", (unsigned long long)c->row_bytes, (unsigned long long)c->static_bytes,
                   (unsigned long long)(c->row_bytes + c->static_bytes));
        charge_put_units(&row, c->total);
    }
    table_row(&z->out, "%.*s", SLICE_FMT(buf_slice(&row)));
    buf_fini(&row);
}

/* EXIT_DONE; or EXIT_NO and an error when the statement is refused. */
static int size_one(struct sizing *z, struct arena *arena, struct slice text, const char *path, uint32_t line) {
    struct world_answer a[MODELS];
    struct pricing_text statement = {.arena = arena, .written = text};
    for (int i = 0; i < MODELS; i++) {
        struct err why = {0};
        if (!pricing_run(z->of[i], &z->p, &statement, &a[i], &why)) continue;
        err_set(z->e, why.code, "%s:%u: %s", path, line, why.text);
        return EXIT_NO;
    }
    if (z->p.json) {
        json_open(&z->json, NULL, '{');
        json_text(&z->json, "file", path);
        json_count(&z->json, "line", line);
        json_slice(&z->json, "statement", text);
        if (statement.made_up) json_slice(&z->json, "run_as", statement.run);
        for (int i = 0; i < MODELS; i++) {
            json_open(&z->json, size_model_name((enum size_model)i), '{');
            json_count(&z->json, "bytes", a[i].charge.row_bytes + a[i].charge.static_bytes);
            pricing_json(&a[i], &z->json);
            buf_u8(&z->json, '}');
        }
        buf_u8(&z->json, '}');
    } else put_row(z, statement.run, path, line, a);
    return EXIT_DONE;
}

static int size_rows(struct sizing *z, struct arena *a) {
    const struct schema *schema = world_schema(z->of[0]);
    const struct schema_table *t = sample_table(schema, z->table, z->e);
    struct sample s;
    struct buf text;
    int rc = t && !sample_open(a, z->rows, t, &s, z->e) ? EXIT_DONE : EXIT_USAGE;
    buf_init(&text, 0);
    for (uint32_t i = 0; !rc && i < s.n; i++) {
        buf_clear(&text, SIZE_MAX);
        sample_insert(t, &s.rows[i], &text);
        rc = size_one(z, a, buf_slice(&text), z->rows, s.rows[i].line) ? EXIT_USAGE : EXIT_DONE;
    }
    buf_fini(&text);
    schema_unref(schema);
    return rc;
}

static int size(struct sizing *z) {
    static const struct table_column columns[] = {{"", false},      {"documented-2022: row", true},
                                                  {"static", true}, {"bytes", true},
                                                  {"units", true},  {"current: row", true},
                                                  {"static", true}, {"bytes", true},
                                                  {"units", true}};
    struct arena a;
    int rc = EXIT_DONE;
    arena_init(&a, 16 << 10, 1 << 30);
    buf_init(&z->json, 0);
    table_init(&z->out, columns, ARRAY_LEN(columns));
    for (int i = 0; !rc && i < MODELS; i++) {
        struct pricing p = z->p;
        p.size_model = size_model_name((enum size_model)i);
        if (!(z->of[i] = pricing_world(&p, true, z->e))) rc = EXIT_USAGE;
    }
    if (!rc && z->rows) {
        rc = size_rows(z, &a);
    } else if (!rc) {
        struct script s;
        struct script_statement at;
        script_of(&s, "--statement", slice_str(z->statement));
        while (!rc && script_next(&s, &at)) rc = size_one(z, &a, at.text, "--statement", at.line);
    }
    if (!rc) {
        struct buf out;
        buf_init(&out, 0);
        if (z->p.json) buf_printf(&out, "{\"ok\":true,\"statements\":[%.*s]}\n", SLICE_FMT(buf_slice(&z->json)));
        else table_put(&z->out, &out);
        fwrite(out.p, 1, out.n, stdout);
        buf_fini(&out);
    }
    for (int i = 0; i < MODELS; i++)
        if (z->of[i]) world_free(z->of[i]);
    table_fini(&z->out);
    buf_fini(&z->json);
    arena_fini(&a);
    return rc;
}

int tally_capacity_size(int argc, char **argv) {
    struct err e = {0};
    struct sizing z = {.p = {.timestamp_size = PRICING_TIMESTAMP_SIZE}, .e = &e};
    const struct flag flags[] = {FLAG_TEXT("statement", "CQL", z.statement,
                                      "statements, run in order; each sees the effects of the previous ones"),
                                 FLAG_TEXT("rows", "FILE", z.rows,
                                      "instead: rows, CSV with a line of column names (.csv), or JSON objects"),
                                 FLAG_TEXT("table", "KEYSPACE.TABLE", z.table,
                                      "the table of --rows, when the schema has several"),
                                 PRICING_FLAGS(&z.p)};
    int rc = flags_read("capacity size", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!z.statement == !z.rows || !z.p.schema) {
        fprintf(stderr, "tally capacity size: --schema and one of --statement and --rows are needed; see tally "
                        "capacity size --help\n");
        return EXIT_USAGE;
    }
    rc = size(&z);
    return rc == EXIT_NO      ? say_no(z.p.json, "capacity size", &e)
           : rc == EXIT_USAGE ? say_wrong(z.p.json, "capacity size", &e)
                              : EXIT_DONE;
}
