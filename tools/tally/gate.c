/* tally gate: a check for CI. Each statement of a file has a limit of units; a statement that costs
 * more fails the check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/page.h"
#include "tools/tally/json.h"
#include "tools/tally/pricing.h"
#include "tools/tally/script.h"

/* The file holds statements, each below a comment "-- at most 2 units"; fractions such as 0.5 are
 * allowed. */
struct gate {
    const struct pricing *p;
    const char *path;
    uint32_t statements, failed;
    struct buf json, xml;
};

/* The number in the last such comment before a statement; -1: none. */
static double limit_before(const uint8_t *statement, const uint8_t *from) {
    static const char mark[] = "-- at most ";
    double limit = -1;
    for (const uint8_t *p = from; p + sizeof(mark) < statement; p++) {
        if (memcmp(p, mark, sizeof(mark) - 1)) continue;
        char number[32] = "", *end;
        size_t n = (size_t)(statement - p) - (sizeof(mark) - 1);
        memcpy(number, p + sizeof(mark) - 1, n < sizeof(number) - 1 ? n : sizeof(number) - 1);
        limit = strtod(number, &end);
        if (end == number) limit = -1;
    }
    return limit;
}

static void note(struct gate *g, const struct script_statement *at, double limit, double units, const char *why) {
    g->statements++;
    g->failed += why != NULL;
    json_open(&g->json, NULL, '{');
    buf_printf(&g->json, "\"line\":%u,\"ok\":%s,\"limit\":%g,\"units\":%g", at->line, why ? "false" : "true", limit,
               units);
    json_str(&g->json, "error", why);
    json_text(&g->json, "statement", at->text);
    buf_u8(&g->json, '}');
    buf_printf(&g->xml, "  <testcase classname=\"tally.gate\" name=\"line %u: ", at->line);
    page_escaped(at->text, &g->xml);
    buf_put_str(&g->xml, why ? "\"><failure message=\"" : "\"/>\n");
    if (why) page_escaped(slice_str(why), &g->xml);
    if (why) buf_put_str(&g->xml, "\"/></testcase>\n");
    if (!g->p->json && why) printf("%s:%u: %s\n    %.*s\n", g->path, at->line, why, SLICE_FMT(at->text));
}

/* 1: a statement costs more than it may; -1: e. */
static int gate(const struct pricing *p, const char *path, const char *junit, struct err *e) {
    struct gate g = {.p = p, .path = path};
    struct script s = {0};
    struct script_statement at;
    struct world *w = pricing_world(p, true, e);
    bool opened = w && !script_open(&s, path, e);
    const uint8_t *from = s.text.p;
    buf_init(&g.json, 0), buf_init(&g.xml, 0);
    while (opened && !e->set && script_next(&s, &at)) {
        struct world_answer a;
        struct err refusal = {0};
        char why[ERR_TEXT_MAX + 64] = "";
        double limit = limit_before(at.text.p, from);
        from = at.text.p + at.text.n;
        if (limit < 0) {
            err_set(e, ERR_CONFIG, "%s:%u: there is no remark \"-- at most N units\" above the statement", path,
                    at.line);
            break;
        }
        bool refused = pricing_run(w, p, at.text, &a, &refusal) != 0;
        double units = refused ? 0 : a.charge.total;
        if (refused) snprintf(why, sizeof(why), "refused: %s", refusal.text);
        if (units > limit)
            snprintf(why, sizeof(why), "costs %g units, %g more than the %g that it may", units, units - limit, limit);
        note(&g, &at, limit, units, *why ? why : NULL);
    }
    if (opened && !e->set && junit) {
        FILE *f = fopen(junit, "we");
        if (f)
            fprintf(f,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tally gate\" tests=\"%u\" "
                    "failures=\"%u\">\n%.*s</testsuite>\n",
                    g.statements, g.failed, SLICE_FMT(buf_slice(&g.xml)));
        if (!f || fclose(f)) err_set(e, ERR_CONFIG, "cannot write %s", junit);
    }
    if (!e->set && p->json)
        printf("{\"ok\":%s,\"statements\":[%.*s]}\n", g.failed ? "false" : "true", SLICE_FMT(buf_slice(&g.json)));
    else if (!e->set) printf("%u statements, %u cost more than they may\n", g.statements, g.failed);
    if (opened) script_close(&s);
    if (w) world_free(w);
    buf_fini(&g.json), buf_fini(&g.xml);
    return e->set ? -1 : g.failed ? 1 : 0;
}

int tally_gate(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    const char *path = NULL, *junit = NULL;
    const struct flag flags[] = {
        FLAG_TEXT("file", "FILE", path, "statements, above each: -- at most N units"),
        FLAG_TEXT("junit", "FILE", junit, "also write the outcome as JUnit XML"),
        PRICING_FLAGS(&p)};
    struct err e = {0};
    int rc = flags_read("gate", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!path) {
        fprintf(stderr, "tally gate: --file is needed; see tally gate --help\n");
        return EXIT_USAGE;
    }
    rc = gate(&p, path, junit, &e);
    return rc < 0 ? say_wrong(p.json, "gate", &e) : rc;
}
