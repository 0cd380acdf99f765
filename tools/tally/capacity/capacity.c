/* tally capacity: reads the inputs, measures the statements (measure.h), simulates a day (day.h)
 * and prints the estimate. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/tally/capacity/nodetool.h"
#include "tools/tally/capacity/observed.h"
#include "tools/tally/capacity/report.h"
#include "tools/tally/remote.h"
#include "tools/tally/server_schema.h"
#include "tools/tally/show.h"

enum { STALE_DAYS = 90, SAMPLES = 200, TARGET_PERCENT = 70 };

struct capacity_command {
    struct pricing p;
    const char *workload, *rows, *table, *tablestats, *tablehistograms, *info, *status, *region, *prices, *record,
        *capture;
    uint32_t samples, replicas, price_age, scale_minimum, scale_maximum, scale_target;
    bool no_plots, guidance;
    struct remote remote;
    struct client client;
    struct buf schema;
    struct workload w;
    struct measure m;
    struct prices price;
    struct err *e;
};

/* ---- inputs ---- */

/* The next item of a list "a,b,c"; NULL at the end. */
static const char *next_of(struct arena *a, struct slice *list) {
    return list->n ? (const char *)arena_dup(a, slice_cut(list, ',')).p : NULL;
}

static int apply_captures(struct capacity_command *c) {
    const struct { const char *paths; nodetool_read_fn read;
    } inputs[] = {{c->tablestats, nodetool_tablestats}, {c->tablehistograms, nodetool_tablehistograms},
                  {c->info, nodetool_info}, {c->status, nodetool_status}};
    struct nodetool *n = ARENA_NEW(&c->w.arena, struct nodetool);
    if (!n) return err_nomem(c->e);
    *n = (struct nodetool){.arena = &c->w.arena};
    if (!c->tablestats)
        return c->tablehistograms || c->info || c->status
                   ? err_set(c->e, ERR_CONFIG, "--tablehistograms, --info and --status go with --tablestats")
                   : 0;
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        struct slice list = slice_str(inputs[i].paths ? inputs[i].paths : ""), text;
        for (const char *path; (path = next_of(&c->w.arena, &list));)
            if (file_read(&c->w.arena, path, &text, c->e) || inputs[i].read(n, path, text, c->e)) return -1;
    }
    uint16_t level = (uint16_t)(c->p.consistency ? world_consistency(c->p.consistency) : CL_LOCAL_QUORUM);
    return nodetool_apply(n, &c->w, c->m.schema, c->replicas, level, c->e);
}

static int read_rows(struct capacity_command *c) {
    if (!c->rows) return c->table ? err_set(c->e, ERR_CONFIG, "--table goes with --rows") : 0;
    const struct schema_table *t = sample_table(c->m.schema, c->table, c->e);
    struct sample *s = ARENA_NEW(&c->w.arena, struct sample);
    if (!t) return -1;
    struct workload_table *table = workload_table(&c->w, t->keyspace->name, t->name);
    if (!s || !table) return err_nomem(c->e);
    if (sample_open(&c->w.arena, c->rows, t, s, c->e)) return -1;
    /* Every row is inserted, to report one that the table refuses. */
    struct buf text;
    buf_init(&text, 0);
    for (uint32_t i = 0; !c->e->set && i < s->n; i++) {
        struct world_answer a;
        struct err why = {0};
        buf_clear(&text, SIZE_MAX);
        sample_insert(t, &s->rows[i], &text);
        const struct world_request q = {.text = buf_slice(&text), .consistency = CL_LOCAL_QUORUM};
        if (world_run(c->m.base, &q, &a, &why))
            err_set(c->e, ERR_CONFIG, "%s:%u: %s", s->path, s->rows[i].line, why.text);
        else table->sample_bytes += (double)a.charge.row_bytes / s->n;
    }
    buf_fini(&text);
    if (c->e->set) return -1;
    table->sample = s;
    return workload_note(&c->w, c->e, "%s.%s: values are those of %u rows of %s", t->keyspace->name, t->name, s->n,
                         c->rows);
}

/* ---- prices ---- */

/* Reads the prices and chooses the Regions. */
static int read_prices(struct capacity_command *c, struct report *r) {
    struct prices *p = &c->price;
    if (prices_read(&c->w.arena, c->prices, p, c->e)) return -1;
    r->age_days = (time(NULL) - p->date_s) / DAY_S;
    if (c->price_age && r->age_days > (int64_t)c->price_age)
        return err_set(c->e, ERR_CONFIG, "%s:%u: the prices are from %s, %lld days old, and --price-age allows %u",
                       p->path, p->date_line, p->date, (long long)r->age_days, c->price_age);
    if (r->age_days > STALE_DAYS &&
        workload_note(&c->w, c->e,
                      "%s:%u: the prices are from %s, %lld days old: compare them with "
                      "https://aws.amazon.com/keyspaces/pricing/ and give newer ones with --prices",
                      p->path, p->date_line, p->date, (long long)r->age_days))
        return -1;
    const struct price_region **regions = ARENA_ARRAY(&c->w.arena, p->n, const struct price_region *);
    struct slice list = slice_str(c->region ? c->region : "");
    if (!regions) return err_nomem(c->e);
    for (uint32_t i = 0; !c->region && i < p->n; i++) regions[r->n_regions++] = &p->regions[i];
    for (const char *name; (name = next_of(&c->w.arena, &list));) {
        const struct price_region *region = prices_find(p, name);
        if (!region)
            return err_set(c->e, ERR_CONFIG, "--region: %s has no prices of the Region '%s'", p->path, name);
        for (uint32_t i = 0; i < r->n_regions; i++)
            if (regions[i] == region) return err_set(c->e, ERR_CONFIG, "--region: '%s' is there twice", name);
        regions[r->n_regions++] = region;
    }
    r->prices = p;
    r->regions = regions;
    return 0;
}

/* ---- the estimate ---- */

static void say_progress(uint32_t done, uint32_t of) {
    fprintf(show_raw(stderr), "\rtally capacity: %u of %u statements priced%s", done, of, done == of ? "\n" : "");
}

/* Reads all inputs into the workload and the notes. */
static int read_inputs(struct capacity_command *c, struct measure_options *o) {
    struct slice text;
    enum size_model model;
    if (workload_note(&c->w, c->e,
                      "requests arrive at random (Poisson) at the rates given, and each costs what one of its samples "
                      "did, in the second that it begins in; of a longer one, %d pages run each second",
                      DAY_PAGES_A_SECOND) ||
        workload_note(&c->w, c->e,
                      "numbers are 0 to 999999 and keys count up unless values say otherwise; a request that was "
                      "refused is not tried again") ||
        (c->remote.server && remote_connect(&c->remote, &c->client, c->e)))
        return -1;
    /* The schema is the file's, the server's, or that of the capture's own definitions. */
    if (c->p.schema ? file_read(&c->w.arena, c->p.schema, &o->text, c->e)
        : c->remote.server ? server_schema(&c->client, &c->schema, c->e)
                           : observed_schema(c->capture, &c->schema, c->e))
        return -1;
    if (!c->p.schema) o->text = buf_slice(&c->schema);
    if (c->capture) {
        if (observed_model(c->capture, &model, c->e)) return -1;
        if (c->p.size_model && o->model != model)
            return err_set(c->e, ERR_CONFIG,
                           "%s was charged by %s: tally replay --price says what it costs by another size model",
                           c->capture, size_model_name(model));
        o->model = model;
    }
    if (measure_open(&c->m, o, &c->w, c->e)) return -1;
    if (c->workload && (file_read(&c->w.arena, c->workload, &text, c->e) ||
                        workload_read(&c->w, c->workload, text, c->e)))
        return -1;
    if (read_rows(c)) return -1;
    if (c->remote.server && observed_server(&c->client, &c->w, &c->m, c->e)) return -1;
    if (c->capture && observed_capture(c->capture, &c->w, &c->m, c->e)) return -1;
    return apply_captures(c);
}

static int run(struct capacity_command *c) {
    struct report r = {.schema = c->p.schema ? c->p.schema : c->remote.server ? c->remote.server : c->capture,
                       .plots = !c->no_plots};
    bool current = c->p.size_model && !strcmp(c->p.size_model, "current");
    struct measure_options o = {.schema = r.schema, .pricing = &c->p, .samples = c->samples, .guidance = c->guidance,
                                .model = current ? SIZE_CURRENT : SIZE_DOCUMENTED_2022};
    if (c->record && !(o.record = fopen(c->record, "we")))
        return err_set(c->e, ERR_CONFIG, "cannot write %s", c->record);
    const struct day_scaling scaling = {.minimum = c->scale_minimum, .maximum = c->scale_maximum,
                                        .target_percent = c->scale_target};
    bool watched = !c->p.json && isatty(STDERR_FILENO);
    int rc = read_inputs(c, &o) || read_prices(c, &r) || measure_run(&c->m, watched ? say_progress : NULL, c->e);
    struct day *days = ARENA_ARRAY(&c->w.arena, c->m.n_tables + 1, struct day),
               *other = ARENA_ARRAY(&c->w.arena, c->m.n_tables + 1, struct day);
    struct measure by_other = c->m;
    by_other.o.model = 1 - c->m.o.model;
    if (!rc && (!days || !other)) rc = err_nomem(c->e);
    for (uint32_t i = 0; !rc && i < c->m.n_tables; i++) {
        if (watched)
            fprintf(show_raw(stderr), "\rtally capacity: day %u of %u tables%s", i + 1, c->m.n_tables,
                    i + 1 == c->m.n_tables ? "\n" : "");
        rc = day_of_table(&c->m, c->m.tables[i].table, &scaling, &days[i], c->e) ||
             day_of_table(&by_other, c->m.tables[i].table, &scaling, &other[i], c->e);
    }
    r.m = &c->m;
    r.days = days;
    r.other_days = other;
    if (o.record && fclose(o.record)) rc = err_set(c->e, ERR_CONFIG, "cannot write %s", c->record);
    if (rc) return -1;
    struct buf out;
    buf_init(&out, 0);
    if (c->p.json) report_json(&r, &out);
    else report_text(&r, &out);
    bool failed = buf_failed(&out);
    if (!failed) printf("%.*s%s", SLICE_FMT(buf_slice(&out)), c->p.json ? "\n" : "");
    buf_fini(&out);
    if (failed) return err_nomem(c->e);
    return report_is_no(&r) ? EXIT_NO : EXIT_DONE;
}

static int check_flags(const struct capacity_command *c) {
    const char *wrong = !c->p.schema && !c->remote.server && !c->capture ? "--schema, --server or --capture is needed"
                        : c->p.data ? "--data has no effect: values are made up, or those of --rows"
                        : !c->workload && !c->tablestats && !c->rows && !c->capture && !c->remote.server
                            ? "--workload, --rows, --tablestats, --capture or --server is needed"
                        : !c->samples || c->samples > 100000                       ? "--samples is 1 to 100000"
                        : c->scale_target < 20 || c->scale_target > 90             ? "--target is 20 to 90 per cent"
                        : !c->scale_minimum || c->scale_minimum > c->scale_maximum ? "--minimum is 1 to --maximum"
                                                                                   : NULL;
    if (wrong) fprintf(stderr, "tally capacity: %s; see tally capacity --help\n", wrong);
    return wrong ? EXIT_USAGE : EXIT_DONE;
}

int tally_capacity(int argc, char **argv) {
    struct err e = {0};
    struct capacity_command c = {.remote = {.timeout_s = 10}, .p = {.timestamp_size = PRICING_TIMESTAMP_SIZE},
                                 .samples = SAMPLES, .scale_minimum = 1, .scale_maximum = 40000,
                                 .scale_target = TARGET_PERCENT, .e = &e};
    const struct flag flags[] = {
        FLAG_TEXT("workload", "FILE", c.workload, "statements with their rates, YAML; - is standard input"),
        FLAG_TEXT("rows", "FILE", c.rows, "sample rows: CSV with a line of column names (.csv), or JSON objects"),
        FLAG_TEXT("table", "KEYSPACE.TABLE", c.table,
             "the table of --rows, when the schema has several"),
        FLAG_TEXT("tablestats", "FILE", c.tablestats,
             "output of nodetool tablestats, also with -F json; of several nodes: FILE,FILE"),
        FLAG_TEXT("tablehistograms", "FILE", c.tablehistograms,
             "output of nodetool tablehistograms, for one table or several"),
        FLAG_TEXT("info", "FILE", c.info, "output of nodetool info: the node's uptime"),
        FLAG_TEXT("status", "FILE", c.status, "output of nodetool status: the number of nodes"),
        FLAG_TEXT("capture", "FILE", c.capture, "a recording of a server's requests (tally capture)"),
        FLAG_TEXT("server", "HOST[:PORT]", c.remote.server,
             "a running server: its schema, unless --schema is given, and what its last minute was charged"),
        FLAG_ON("tls", c.remote.tls, "TLS to the server; its certificate must be for HOST"),
        FLAG_TEXT("ca", "FILE", c.remote.ca, "certificates (PEM) to trust instead of the machine's"),
        FLAG_ON("insecure", c.remote.insecure, "do not verify the server's certificate"),
        FLAG_TEXT("user", "NAME", c.remote.user, "log in there with a password, TALLY_PASSWORD in the environment"),
        FLAG_ON("sigv4", c.remote.sigv4, "log in with the AWS access key and the Region of the environment"),
        FLAG_NUMBER("replicas", "N", c.replicas, "replicas of the captured cluster (as the schema's keyspaces say)"),
        FLAG_TEXT("region", "NAME", c.region, "AWS Regions whose costs are shown, with commas between (all)"),
        FLAG_TEXT("prices", "FILE", c.prices, "prices, in the form of share/tally/prices.csv (those of the program)"),
        FLAG_NUMBER("price-age", "DAYS", c.price_age,
             "refuse older prices; 0: warn about prices older than 90 days (0)"),
        FLAG_NUMBER("target", "PERCENT", c.scale_target,
             "target of auto scaling, for tables without settings of their own (70)"),
        FLAG_NUMBER("minimum", "UNITS", c.scale_minimum, "minimum units that auto scaling provides (1)"),
        FLAG_NUMBER("maximum", "UNITS", c.scale_maximum, "maximum units that auto scaling provides (40000)"),
        FLAG_NUMBER("samples", "N", c.samples, "runs of each statement, with different values (200)"),
        FLAG_TEXT("record", "FILE", c.record,
             "write every statement that is run with its cost, as one JSON object on each line"),
        FLAG_ON("guidance", c.guidance,
             "judge partitions by Azure Table Storage's 2,000 entities a second, too, as tallyd --guidance does"),
        FLAG_ON("no-plots", c.no_plots, "leave the plots out"),
        PRICING_FLAGS(&c.p)};
    int rc = flags_read("capacity", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (check_flags(&c)) return EXIT_USAGE;
    workload_init(&c.w);
    buf_init(&c.schema, 0);
    rc = run(&c);
    measure_close(&c.m);
    workload_fini(&c.w);
    client_close(&c.client);
    buf_fini(&c.schema);
    return rc < 0 ? say_wrong(c.p.json, "capacity", &e) : rc;
}
