/* tally explain: shows what one statement reads or writes, its charge, and how to reduce the
 * charge. */
#include <stdio.h>
#include <string.h>

#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/script.h"
#include "tools/tally/server_schema.h"

static void print_lines(const char *label, struct slice text) {
    while (text.n) {
        const uint8_t *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        printf("%-13s %.*s\n", label, (int)n, (const char *)text.p);
        text = slice_of(text.p + n + (end != NULL), text.n - n - (end != NULL));
        label = "";
    }
}

static void print_answer(struct slice text, const struct pricing *p, const struct world_answer *a,
                         struct slice advice) {
    struct buf units;
    buf_init(&units, 0);
    charge_put_units(&units, a->charge.total);
    printf("%-13s %.*s\n", "statement", SLICE_FMT(text));
    if (a->kind == STMT_SELECT) printf("%-13s %s\n", "query class", query_class_name(a->cost->query_class));
    if (a->kind == STMT_SELECT)
        printf("%-13s %llu partitions, %llu rows; returned: %llu\n", "read", (unsigned long long)a->partitions,
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
    print_lines("advice", advice);
    buf_fini(&units);
}

static void print_json(struct slice text, const struct world_answer *a, struct slice advice) {
    struct buf out;
    buf_init(&out, 0);
    buf_put_str(&out, "{\"ok\":true,\"statement\":");
    buf_json_str(&out, text);
    buf_put_str(&out, ",");
    pricing_json(a, &out);
    buf_put_str(&out, ",\"advice\":");
    buf_json_str(&out, advice);
    buf_put_str(&out, "}");
    printf("%.*s\n", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
}

static int price(const struct pricing *p, struct world *w, struct slice text, struct err *e) {
    struct world_answer a;
    struct buf advice;
    buf_init(&advice, 0);
    int rc = pricing_run(w, p, text, &a, e) ? say_no(p->json, "explain", e) : EXIT_DONE;
    if (rc == EXIT_DONE) {
        pricing_advice(&a, &advice);
        if (p->json) print_json(text, &a, buf_slice(&advice));
        else print_answer(text, p, &a, buf_slice(&advice));
    }
    buf_fini(&advice);
    return rc;
}

static int explain(const struct pricing *p, struct slice text, struct err *e) {
    struct world *w = pricing_world(p, true, e);
    if (!w) return say_wrong(p->json, "explain", e);
    int rc = price(p, w, text, e);
    world_free(w);
    return rc;
}

/* ---- on a server ---- */

/* Running a write would change the server's data, so the write is priced on empty tables with the
 * server's schema. */
static int explain_write(const struct pricing *p, struct client *c, struct slice text, struct err *e) {
    struct buf schema;
    buf_init(&schema, 0);
    struct world *w = server_schema(c, &schema, e) ? NULL : pricing_world(p, true, e);
    int rc = w && !world_load_text(w, "the server's schema", buf_slice(&schema), e) ? price(p, w, text, e)
                                                                                    : say_wrong(p->json, "explain", e);
    if (w) world_free(w);
    buf_fini(&schema);
    return rc;
}

/* A read runs on the server to its last page. The payload of each page gives the charge and its
 * reasons. */
static int run_read(const struct pricing *p, struct client *c, struct slice text, double *units, uint32_t *pages,
                    struct buf *payloads, struct err *e) {
    struct wire_params q = {.consistency = (uint16_t)(p->consistency ? world_consistency(p->consistency)
                                                                     : CL_LOCAL_QUORUM),
                            .wants_capacity = true,
                            .page_size = p->page_size ? (int32_t)p->page_size : 5000};
    struct client_answer a;
    struct buf state;
    int rc;
    buf_init(&state, 0);
    do {
        q.paging_state = state.n ? buf_slice(&state) : (struct slice){0};
        rc = client_query(c, text, &q, &a, e);
        if (!rc && a.charge < 0)
            rc = err_set(e, ERR_CONFIG,
                         "the server does not say what the statement costs: it is no Tally, or speaks protocol v3");
        if (rc) break;
        *units += a.charge;
        buf_printf(payloads, "%s%.*s", (*pages)++ ? "," : "", SLICE_FMT(wire_payload(&a.response, "capacity")));
        buf_clear(&state, SIZE_MAX);
        if (a.has_rows) buf_put_slice(&state, a.rows.paging_state);
    } while (state.n);
    buf_fini(&state);
    return rc;
}

static int explain_read(const struct pricing *p, struct client *c, struct slice text, struct err *e) {
    struct buf payloads, out;
    double units = 0;
    uint32_t pages = 0;
    buf_init(&payloads, 0), buf_init(&out, 0);
    int rc = run_read(p, c, text, &units, &pages, &payloads, e)
                 ? e->code == ERR_CONFIG ? say_wrong(p->json, "explain", e) : say_no(p->json, "explain", e)
                 : EXIT_DONE;
    if (rc == EXIT_DONE && p->json) {
        buf_put_str(&out, "{\"ok\":true,\"statement\":");
        buf_json_str(&out, text);
        buf_put_str(&out, ",\"units\":");
        charge_put_units(&out, units);
        buf_printf(&out, ",\"pages\":%u,\"charged\":[%.*s]}\n", pages, SLICE_FMT(buf_slice(&payloads)));
    } else if (rc == EXIT_DONE) {
        buf_printf(&out, "%-13s %.*s\n%-13s ", "statement", SLICE_FMT(text), "units");
        charge_put_units(&out, units);
        buf_printf(&out, " at %s, on %u %s, charged by the server\n%-13s %.*s\n",
                   p->consistency ? p->consistency : "LOCAL_QUORUM", pages, pages == 1 ? "page" : "pages", "payloads",
                   SLICE_FMT(buf_slice(&payloads)));
    }
    if (out.n) fwrite(out.p, 1, out.n, stdout);
    buf_fini(&payloads), buf_fini(&out);
    return rc;
}

static int explain_on_server(const struct pricing *p, struct remote *remote, struct slice text, struct err *e) {
    struct client c = {0};
    int rc;
    if (p->consistency && world_consistency(p->consistency) < 0)
        err_set(e, ERR_CONFIG, "--consistency: there is no level '%s'", p->consistency);
    if (p->schema || p->data) err_set(e, ERR_CONFIG, "--schema and --data are of no use with --server");
    if (e->set || remote_connect(remote, &c, e)) rc = say_wrong(p->json, "explain", e);
    else rc = pricing_is_read(text) ? explain_read(p, &c, text, e) : explain_write(p, &c, text, e);
    client_close(&c);
    return rc;
}

int tally_explain(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    struct remote remote = {.timeout_s = 10};
    const char *text = NULL;
    const struct flag flags[] = {{.name = "statement",
                                  .argument = "CQL",
                                  .text = &text,
                                  .help = "what is to be explained, when it does not come first; with --server a read "
                                          "runs there, and a write is priced against its schema"},
                                 PRICING_FLAGS(&p),
                                 REMOTE_FLAGS(&remote)};
    struct err e = {0};
    struct script script;
    struct script_statement statement;
    bool bare = argc && strncmp(argv[0], "-", 1) != 0; /* tally explain "SELECT ..." */
    int rc = flags_read("explain", argc - bare, argv + bare, flags, ARRAY_LEN(flags));
    if (bare && !text) text = argv[0];
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    script_of(&script, "--statement", slice_str(text ? text : ""));
    if (!script_next(&script, &statement)) {
        fprintf(stderr, "tally explain: --statement is needed; see tally explain --help\n");
        return EXIT_USAGE;
    }
    return remote.server ? explain_on_server(&p, &remote, statement.text, &e) : explain(&p, statement.text, &e);
}
