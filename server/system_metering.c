#include "server/system_metering.h"

#include "metering/charge.h"

static void put(struct value *values, const struct schema_table *t, const char *column, const char *text) {
    values[schema_column_find(t, column)->ordinal] = value_of_slice(slice_str(text));
}

static int yield_rules(const struct virtual_context *ctx, const struct schema_table *t, virtual_row_fn row, void *arg) {
    struct value *values = ARENA_ARRAY(ctx->arena, t->n_columns, struct value);
    if (!values) return err_nomem(ctx->err);
    for (unsigned id = 0; id < RULES; id++) {
        const struct rule *rule = rule_of(id);
        put(values, t, "id", rule->name);
        put(values, t, "title", rule->title);
        put(values, t, "text", rule->text);
        put(values, t, "source", rule->source);
        put(values, t, "confidence", rule->confidence);
        if (row(arg, values)) return -1;
    }
    return 0;
}

const struct virtual_table system_metering_tables[] = {
    {.keyspace = "system_metering",
     .name = "rules",
     .comment = "what a charge can name",
     .columns = "id text pk, confidence text, source text, text text, title text",
     .virt = {yield_rules}},
};
const uint32_t n_system_metering_tables = ARRAY_LEN(system_metering_tables);
