/* tally explain: shows what one statement reads or writes, its charge, and how to reduce the
 * charge. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "metering/explanation.h"
#include "tools/tally/markers.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/script.h"
#include "tools/tally/server_schema.h"

static void print_answer(const struct pricing_text *text, const struct pricing *p, const struct world_answer *a,
                         struct slice advice) {
    struct buf units;
    buf_init(&units, 0);
    charge_put_units(&units, a->charge.total);
    printf("%-13s %.*s\n", "statement", SLICE_FMT(text->written));
    if (text->made_up) printf("%-13s %.*s\n", "run as", SLICE_FMT(text->run));
    if (a->kind == STMT_SELECT && !a->cost->is_system) {
        const struct explanation x = {.cost = a->cost};
        enum guidance_granularity applies = explanation_granularity(&x);
        printf("%-13s %s\n%-13s %s: %s\n", "query class", query_class_name(a->cost->query_class), "guidance",
               guidance_class_name(a->cost->guidance_class), guidance_class_rating(a->cost->guidance_class));
        for (int g = 0; g < GRANULARITIES; g++) {
            const struct guidance_granularity_info *i = guidance_granularity_info((enum guidance_granularity)g);
            printf("%-13s %s %s (%s): %s; but %s\n", g ? "" : "granularity", g == (int)applies ? "*" : " ", i->name,
                   i->keys, i->gains, i->costs);
        }
        printf("%-13s * applies to %s, by its key\n", "", a->cost->table ? a->cost->table : "the table");
    }
    if (a->kind == STMT_SELECT)
        printf("%-13s %llu partitions, %llu rows; returned: %llu\n", "read", (unsigned long long)a->partitions.n,
               (unsigned long long)a->rows_read, (unsigned long long)a->rows_returned);
    printf("%-13s %llu of rows, %llu of static data\n", "encoded bytes", (unsigned long long)a->charge.row_bytes,
           (unsigned long long)a->charge.static_bytes);
    printf("%-13s %.*s at %s, on %llu %s\n", "units", SLICE_FMT(buf_slice(&units)),
           a->kind == STMT_SELECT && p->consistency ? p->consistency : "LOCAL_QUORUM", (unsigned long long)a->pages,
           a->pages == 1 ? "page" : "pages");
    const char *label = "rules";
    for (unsigned id = 0; id < RULES; id++) {
        if (!(a->charge.rules >> id & 1)) continue;
        printf("%-13s %s: %s\n", label, rule_of(id)->name, rule_of(id)->text);
        label = "";
    }
    for (label = "advice"; advice.n; label = "") {
        struct slice line = slice_cut(&advice, '\n');
        printf("%-13s %.*s\n", label, SLICE_FMT(line));
    }
    buf_fini(&units);
}

static int price(const struct pricing *p, struct world *w, struct pricing_text *text, struct err *e) {
    struct world_answer a;
    struct buf advice, out;
    if (pricing_run(w, p, text, &a, e)) return say_no(p->json, "explain", e);
    buf_init(&advice, 0), buf_init(&out, 0);
    pricing_advice(&a, &advice);
    if (p->json) {
        json_open(&out, NULL, '{');
        json_flag(&out, "ok", true);
        json_slice(&out, "statement", text->written);
        if (text->made_up) json_slice(&out, "run_as", text->run);
        pricing_json(&a, &out);
        json_slice(&out, "advice", buf_slice(&advice));
        printf("%.*s}\n", SLICE_FMT(buf_slice(&out)));
    } else {
        print_answer(text, p, &a, buf_slice(&advice));
    }
    buf_fini(&advice), buf_fini(&out);
    return EXIT_DONE;
}

/* ---- on a server ---- */

/* A read runs on the server to its last page. The payload of each page gives the charge and its
 * reasons. */
struct page_costs {
    double units;
    uint32_t pages;
    struct buf payloads;
    struct err *e;
};

static int take_page(void *arg, struct client *c, struct client_answer *a) {
    struct page_costs *r = arg;
    (void)c;
    if (a->charge < 0)
        return err_set(r->e, ERR_CONFIG,
                       "the server does not say what the statement costs: it is no Tally, or speaks protocol v3");
    r->units += a->charge;
    buf_printf(&r->payloads, "%s%.*s", r->pages++ ? "," : "", SLICE_FMT(wire_payload(&a->response, "capacity")));
    return 0;
}

static int explain_read(const struct pricing *p, struct client *c, const struct pricing_text *text, struct err *e) {
    struct wire_params q = {.consistency = (uint16_t)(p->consistency ? world_consistency(p->consistency)
                                                                     : CL_LOCAL_QUORUM),
                            .wants_capacity = true,
                            .page_size = p->page_size ? (int32_t)p->page_size : 5000};
    struct page_costs r = {.e = e};
    struct buf out;
    buf_init(&r.payloads, 0), buf_init(&out, 0);
    int rc = EXIT_DONE;
    if (client_pages(c, text->run, &q, take_page, &r, e)) {
        rc = e->code == ERR_CONFIG ? say_wrong(p->json, "explain", e) : say_no(p->json, "explain", e);
    } else if (p->json) {
        json_open(&out, NULL, '{');
        json_flag(&out, "ok", true);
        json_slice(&out, "statement", text->written);
        if (text->made_up) json_slice(&out, "run_as", text->run);
        json_member(&out, "units");
        charge_put_units(&out, r.units);
        buf_printf(&out, ",\"pages\":%u,\"charged\":[%.*s]}\n", r.pages, SLICE_FMT(buf_slice(&r.payloads)));
    } else {
        buf_printf(&out, "%-13s %.*s\n", "statement", SLICE_FMT(text->written));
        if (text->made_up) buf_printf(&out, "%-13s %.*s\n", "run as", SLICE_FMT(text->run));
        buf_printf(&out, "%-13s ", "units");
        charge_put_units(&out, r.units);
        buf_printf(&out, " at %s, on %u %s, charged by the server\n%-13s %.*s\n",
                   p->consistency ? p->consistency : "LOCAL_QUORUM", r.pages, r.pages == 1 ? "page" : "pages",
                   "payloads", SLICE_FMT(buf_slice(&r.payloads)));
    }
    if (out.n) fwrite(out.p, 1, out.n, stdout);
    buf_fini(&r.payloads), buf_fini(&out);
    return rc;
}

int tally_explain(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    struct remote remote = {.timeout_s = 10};
    const char *text = NULL;
    const struct flag flags[] = {{.name = "statement", .argument = "CQL", .text = &text, .position = 1,
                                  .help = "the statement to explain, also without the flag's name; its markers get "
                                          "made-up values; with --server a read runs there, and a write is priced "
                                          "against its schema"},
                                 PRICING_FLAGS(&p),
                                 REMOTE_FLAGS(&remote)};
    struct err e = {0};
    struct script script;
    struct script_statement statement;
    struct arena arena;
    int rc = flags_read("explain", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    script_of(&script, "--statement", slice_str(text ? text : ""));
    if (!script_next(&script, &statement)) {
        fprintf(stderr, "tally explain: --statement is needed; see tally explain --help\n");
        return EXIT_USAGE;
    }
    const bool on_server = remote.server != NULL, read = pricing_is_read(statement.text);
    struct client c = {0};
    struct world *w = NULL;
    struct buf schema;
    buf_init(&schema, 0);
    if (on_server && p.consistency && world_consistency(p.consistency) < 0)
        err_set(&e, ERR_CONFIG, "--consistency: there is no level '%s'", p.consistency);
    if (on_server && (p.schema || p.data))
        err_set(&e, ERR_CONFIG, "--schema and --data have no effect with --server");
    if (on_server && !e.set) (void)!remote_connect(&remote, &c, &e);
    arena_init(&arena, 16 << 10, SCRIPT_MAX);
    struct pricing_text x = {.arena = &arena, .written = statement.text, .run = statement.text};
    /* Running a write on the server would change its data, so the write is priced on empty tables with
     * the server's schema. The types of markers are in the schema, too. */
    bool reads_there = on_server && read, marked = reads_there && markers_are_in(statement.text, &arena);
    if (!e.set && on_server && (!read || marked)) (void)!server_schema(&c, &schema, &e);
    if (!e.set && (!reads_there || marked)) w = pricing_world(&p, true, &e);
    if (w && schema.n) (void)!world_load_text(w, "the server's schema", buf_slice(&schema), &e);
    if (!e.set && marked) (void)!markers_fill(w, x.written, &arena, &x.run, &x.made_up, &e);
    if (e.set) rc = say_wrong(p.json, "explain", &e);
    else rc = reads_there ? explain_read(&p, &c, &x, &e) : price(&p, w, &x, &e);
    arena_fini(&arena);
    if (w) world_free(w);
    client_close(&c);
    buf_fini(&schema);
    return rc;
}
