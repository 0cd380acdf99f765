/* tally explain: what one statement does and costs, and how it could cost less. */
#include <stdio.h>
#include <string.h>

#include "tools/tally/pricing.h"
#include "tools/tally/script.h"

static void print_rules(const struct world_answer *a) {
    const char *label = "rules";
    for (unsigned id = 0; id < RULES; id++) {
        if (!(a->charge.rules >> id & 1)) continue;
        printf("%-13s %s: %s\n", label, rule_of(id)->name, rule_of(id)->text);
        label = "";
    }
}

static void print_lines(const char *label, struct slice text) {
    while (text.n) {
        const uint8_t *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        printf("%-13s %.*s\n", label, (int)n, (const char *)text.p);
        text = slice_of(text.p + n + (end != NULL), text.n - n - (end != NULL));
        label = "";
    }
}

static void print_answer(struct slice text, const struct pricing *p, const struct world_answer *a, struct slice advice) {
    struct buf units;
    buf_init(&units, 0);
    charge_put_units(&units, a->charge.total);
    printf("%-13s %.*s\n", "statement", SLICE_FMT(text));
    if (a->kind == STMT_SELECT) printf("%-13s %s\n", "query class", query_class_name(a->cost->query_class));
    if (a->kind == STMT_SELECT)
        printf("%-13s %llu partitions, %llu rows; returned: %llu\n", "read", (unsigned long long)a->partitions, (unsigned long long)a->rows_read,
               (unsigned long long)a->rows_returned);
    printf("%-13s %llu of rows, %llu of static data\n", "encoded bytes", (unsigned long long)a->charge.row_bytes, (unsigned long long)a->charge.static_bytes);
    printf("%-13s %.*s at %s, on %llu %s\n", "units", SLICE_FMT(buf_slice(&units)), a->kind == STMT_SELECT && p->consistency ? p->consistency : "LOCAL_QUORUM",
           (unsigned long long)a->pages, a->pages == 1 ? "page" : "pages");
    print_rules(a);
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

static int explain(const struct pricing *p, struct slice text, struct err *e) {
    struct world_answer a;
    struct buf advice;
    struct world *w = pricing_world(p, true, e);
    if (!w) return say_wrong(p->json, "explain", e);
    buf_init(&advice, 0);
    int rc = pricing_run(w, p, text, &a, e) ? say_no(p->json, "explain", e) : EXIT_DONE;
    if (rc == EXIT_DONE) {
        pricing_advice(&a, &advice);
        if (p->json) print_json(text, &a, buf_slice(&advice));
        else print_answer(text, p, &a, buf_slice(&advice));
    }
    buf_fini(&advice);
    world_free(w);
    return rc;
}

int tally_explain(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    const char *text = NULL;
    const struct flag flags[] = {{.name = "statement", .argument = "CQL", .text = &text, .help = "what is to be explained"}, PRICING_FLAGS(&p)};
    struct err e = {0};
    struct script script;
    struct script_statement statement;
    int rc = flags_read("explain", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    script_of(&script, "--statement", slice_str(text ? text : ""));
    if (!script_next(&script, &statement)) {
        fprintf(stderr, "tally explain: --statement is needed; see tally explain --help\n");
        return EXIT_USAGE;
    }
    return explain(&p, statement.text, &e);
}
