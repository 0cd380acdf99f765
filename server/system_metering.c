#include "server/system_metering.h"

#include <stdlib.h>

#include "base/array.h"
#include "metering/charge.h"

YIELDS_METERING(rules) {
    for (unsigned id = 0; id < RULES; id++) {
        const struct rule *rule = rule_of(id);
        row_text(ro, "id", rule->name);
        row_text(ro, "title", rule->title);
        row_text(ro, "text", rule->text);
        row_text(ro, "source", rule->source);
        row_text(ro, "confidence", rule->confidence);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

void system_metering_tables(struct system_metering *m, struct virtual_table tables[METERING_TABLES]) {
#define METERING_TABLE(name_, comment_, columns_) \
    tables[METERING_##name_] = (struct virtual_table){.keyspace = "system_metering", \
                                                      .name = #name_, \
                                                      .comment = comment_, \
                                                      .columns = columns_, \
                                                      .virt = {.owner = m, .yield = yield_##name_}};
#include "server/system_metering.def"
#undef METERING_TABLE
    /* These two count stored rows, which may take long. */
    tables[METERING_storage].virt.blocks = tables[METERING_metrics].virt.blocks = true;
}

void system_metering_ttl_delete(void *arg, const struct schema_table *t, uint64_t units) {
    struct system_metering *m = arg;
    ledger_ttl_delete(m->ledger, clock_wall_us(m->clock), t->object, t->keyspace->name, t->name, units);
}

/* ---- tables that are dropped ---- */

struct gone {
    const struct schema *schema;
    size_t n, cap;
    uint32_t *objects;
};

static int take_gone(void *arg, const struct table_stats *t, uint32_t second) {
    struct gone *g = arg;
    const struct schema_table *now = schema_table_any(g->schema, t->keyspace, t->name);
    (void)second;
    if (!t->object || (now && now->object == t->object && now->status != SCHEMA_DELETING)) return 0;
    if (array_room(&g->objects, g->n, &g->cap, sizeof(*g->objects))) return -1;
    g->objects[g->n++] = t->object;
    return 0;
}

/* Removes dropped tables from the ledger. When there is no memory for the list, the rest is
 * removed after the next change. */
static void drop_gone(struct system_metering *m) {
    struct gone g = {.schema = catalog_schema(m->catalog)};
    (void)ledger_own_tables(m->ledger, take_gone, &g);
    schema_unref(g.schema);
    for (size_t i = 0; i < g.n; i++) ledger_drop(m->ledger, g.objects[i]);
    free(g.objects);
}

static void on_change(void *arg, const struct schema_change *change) {
    if (change->kind == CHANGE_DROPPED || change->kind == CHANGE_GONE) drop_gone(arg);
}

void system_metering_watch(struct system_metering *m, struct catalog *c) {
    m->catalog = c;
    drop_gone(m);
    m->listener = (struct catalog_listener){.changed = on_change, .arg = m};
    catalog_on_change(c, &m->listener);
}

void system_metering_unwatch(struct system_metering *m) { catalog_off_change(m->catalog, &m->listener); }
