/* The inputs of tally capacity from hostile bytes: nodetool's texts, samples of rows, workloads,
 * prices. The first byte says which. What is wrong is named with its file and line; what is taken
 * is whole: every row has its key, every number is one.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "tools/tally/capacity/nodetool.h"
#include "tools/tally/capacity/price.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char schema_text[] =
    "CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'};"
    "CREATE TYPE k.u (a int, b text);"
    "CREATE TABLE k.t (p int, q text, c timestamp, l list<int>, m map<text, frozen<set<int>>>, u frozen<u>, w "
    "tuple<int, blob>, s uuid static, PRIMARY KEY ((p, q), c));";

/* One for all inputs, as it does not change. */
static const struct schema_table *table(void) {
    static const struct schema_table *t;
    static struct world *w;
    struct err e = {0};
    const struct world_options o = {.timestamp_size = 20};
    if (t) return t;
    w = world_new(&o, &e);
    if (!w || world_load_text(w, "schema", slice_str(schema_text), &e) ||
        !(t = schema_table_find(world_schema(w), "k", "t", &e)))
        abort();
    return t;
}

/* "input:7: ..." */
static void check_error(const struct err *e) {
    static const char lead[] = "input:";
    if (!e->set || e->no_memory || strncmp(e->text, lead, sizeof(lead) - 1) ||
        !isdigit((unsigned char)e->text[sizeof(lead) - 1]))
        abort();
}

static void read_sample(struct arena *a, struct slice text, enum sample_format format, struct err *e) {
    struct sample s;
    if (sample_read(a, "input", text, format, table(), &s, e)) return;
    for (uint32_t i = 0; i < s.n; i++) {
        struct buf statement;
        if (!s.rows[i].literals[0] || !s.rows[i].literals[1]) abort();
        buf_init(&statement, 0);
        sample_insert(table(), &s.rows[i], &statement);
        buf_fini(&statement);
    }
}

static void read_workload(struct slice text, struct err *e) {
    struct workload w;
    workload_init(&w);
    if (!workload_read(&w, "input", text, e))
        for (const struct workload_statement *s = w.statements; s; s = s->next)
            if (!s->text || !(curve_most(&s->rate) >= 0) || !isfinite(curve_mean(&s->rate))) abort();
    workload_fini(&w);
}

static void read_capture(struct arena *a, nodetool_read_fn read, struct slice text, struct err *e) {
    struct nodetool n = {.arena = a};
    if (read(&n, "input", text, e)) return;
    for (const struct nodetool_table *t = n.tables; t; t = t->next)
        for (const struct nodetool_figures *f = t->nodes; f < t->nodes + t->n_nodes; f++)
            if (!(f->reads >= 0) || !(f->writes >= 0) || !(f->partitions >= 0) || !(f->live_bytes >= 0)) abort();
    if (read == nodetool_info && !(n.uptime_s[0] > 0)) abort();
}

static void read_prices(struct arena *a, struct slice text, struct err *e) {
    struct prices p;
    if (prices_parse(a, "input", text, &p, e)) return;
    for (uint32_t i = 0; i < p.n; i++)
        for (int k = 0; k < PRICES; k++)
            if (!isfinite(p.regions[i].of[k]) || !*p.date) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { TABLESTATS, HISTOGRAMS, INFO, STATUS, CSV, JSON, WORKLOAD, PRICE_FILE, KINDS };
    struct arena a;
    struct err e = {0};
    if (!size) return 0;
    struct slice text = slice_of(data + 1, size - 1);
    arena_init(&a, 4096, 64 << 20);
    switch (data[0] % KINDS) {
    case TABLESTATS: read_capture(&a, nodetool_tablestats, text, &e); break;
    case HISTOGRAMS: read_capture(&a, nodetool_tablehistograms, text, &e); break;
    case INFO: read_capture(&a, nodetool_info, text, &e); break;
    case STATUS: read_capture(&a, nodetool_status, text, &e); break;
    case CSV: read_sample(&a, text, SAMPLE_CSV, &e); break;
    case JSON: read_sample(&a, text, SAMPLE_JSON, &e); break;
    case WORKLOAD: read_workload(text, &e); break;
    case PRICE_FILE: read_prices(&a, text, &e); break;
    }
    if (e.set) check_error(&e);
    arena_fini(&a);
    return 0;
}
