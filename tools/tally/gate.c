/* tally gate: a check for CI. Each statement of a file has a limit of units; a statement that costs
 * more fails the check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/page/page.h"
#include "tools/tally/pricing.h"
#include "tools/tally/script.h"

/* The file holds statements, each below a comment "-- at most 2 units" or, for reads, "-- at most 2
 * units at LOCAL_ONE"; fractions such as 0.5 are allowed. */
struct gate {
    const struct pricing *p;
    const char *path;
    uint32_t statements, failed;
    struct buf json, xml;
};

struct remark {
    double limit;   /* below 0: there is no such comment */
    char level[32]; /* of consistency; "": none is given */
};

/* Reads the last such comment before a statement. */
static void remark_before(const uint8_t *statement, const uint8_t *from, struct remark *out) {
    static const char mark[] = "-- at most ";
    *out = (struct remark){.limit = -1};
    for (const uint8_t *p = from; p + sizeof(mark) < statement; p++) {
        if (memcmp(p, mark, sizeof(mark) - 1)) continue;
        char text[96], *end;
        struct slice rest = slice_of(p + sizeof(mark) - 1, (size_t)(statement - p) - (sizeof(mark) - 1));
        struct slice line = slice_cut(&rest, '\n');
        snprintf(text, sizeof(text), "%.*s", SLICE_FMT(line));
        *out = (struct remark){.limit = strtod(text, &end)};
        if (end == text) out->limit = -1;
        const char *at = strstr(end, " at ");
        if (at) (void)!sscanf(at + 4, "%31s", out->level);
    }
}

/* run_as: the statement with values in place of its markers; p NULL: as it is written. */
static void note(struct gate *g, const struct script_statement *at, struct slice run_as, double limit, double units,
                 const char *why) {
    g->statements++;
    g->failed += why != NULL;
    json_open(&g->json, NULL, '{');
    buf_printf(&g->json, "\"line\":%u,\"ok\":%s,\"limit\":%g,\"units\":%g", at->line, why ? "false" : "true", limit,
               units);
    json_text(&g->json, "error", why);
    json_slice(&g->json, "statement", at->text);
    if (run_as.p) json_slice(&g->json, "run_as", run_as);
    buf_u8(&g->json, '}');
    buf_printf(&g->xml, "  <testcase classname=\"tally.gate\" name=\"line %u: ", at->line);
    page_escaped(at->text, &g->xml);
    buf_put_str(&g->xml, why ? "\"><failure message=\"" : "\"/>\n");
    if (why) page_escaped(slice_str(why), &g->xml);
    if (why) buf_put_str(&g->xml, "\"/></testcase>\n");
    if (!g->p->json && why) printf("%s:%u: %s\n    %.*s\n", g->path, at->line, why, SLICE_FMT(at->text));
}

/* Prices the statement below its remark. A file without a remark above a statement is wrong, which e
 * says in the end; the remaining statements are still priced, for the report. */
static void gate_one(struct gate *g, struct world *w, const struct script_statement *at, const uint8_t *from,
                     struct arena *arena, struct err *e) {
    struct pricing p = *g->p;
    struct remark remark;
    struct world_answer a;
    struct pricing_text text = {.arena = arena, .written = at->text};
    struct err refusal = {0};
    char why[ERR_TEXT_MAX + 64] = "";
    double units = 0;
    remark_before(at->text.p, from, &remark);
    if (*remark.level) p.consistency = remark.level;
    if (remark.limit < 0 || (*remark.level && world_consistency(remark.level) < 0)) {
        static const char none[] = "there is no remark \"-- at most N units\" above the statement";
        if (remark.limit < 0) snprintf(why, sizeof(why), "%s", none);
        else snprintf(why, sizeof(why), "there is no consistency level '%s'", remark.level);
        if (!e->set) err_set(e, ERR_CONFIG, "%s:%u: %s", g->path, at->line, why);
    } else if (pricing_run(w, &p, &text, &a, &refusal)) {
        snprintf(why, sizeof(why), "refused: %s", refusal.text);
    } else if ((units = a.charge.total) > remark.limit) {
        snprintf(why, sizeof(why), "costs %g units, %g more than the %g that it may", units, units - remark.limit,
                 remark.limit);
    }
    note(g, at, text.made_up ? text.run : (struct slice){0}, remark.limit, units, *why ? why : NULL);
}

/* Returns 1 if a statement costs more than it may, or -1 with e set. */
static int gate(const struct pricing *p, const char *path, const char *junit, struct err *e) {
    struct gate g = {.p = p, .path = path};
    struct script s = {0};
    struct script_statement at;
    struct world *w = pricing_world(p, true, e);
    bool opened = w && !script_open(&s, path, e);
    const uint8_t *from = s.text.p;
    struct arena arena;
    arena_init(&arena, 16 << 10, SCRIPT_MAX);
    buf_init(&g.json, 0), buf_init(&g.xml, 0);
    while (opened && script_next(&s, &at)) {
        arena_reset(&arena);
        gate_one(&g, w, &at, from, &arena, e);
        from = at.text.p + at.text.n;
    }
    if (opened && !g.statements) {
        const struct script_statement none = {.text = slice_str(path), .line = 1};
        err_set(e, ERR_CONFIG, "%s: there is no statement in it", path);
        note(&g, &none, (struct slice){0}, -1, 0, "there is no statement in the file");
    }
    if (opened && junit) {
        FILE *f = fopen(junit, "we");
        if (f)
            fprintf(f,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tally gate\" tests=\"%u\" "
                    "failures=\"%u\">\n%.*s</testsuite>\n",
                    g.statements, g.failed, SLICE_FMT(buf_slice(&g.xml)));
        if ((!f || fclose(f)) && !e->set) err_set(e, ERR_CONFIG, "cannot write %s", junit);
    }
    if (!e->set && p->json)
        printf("{\"ok\":%s,\"statements\":[%.*s]}\n", g.failed ? "false" : "true", SLICE_FMT(buf_slice(&g.json)));
    else if (!e->set) printf("%u statements, %u cost more than they may\n", g.statements, g.failed);
    if (opened) script_close(&s);
    if (w) world_free(w);
    arena_fini(&arena);
    buf_fini(&g.json), buf_fini(&g.xml);
    return e->set ? -1 : g.failed ? 1 : 0;
}

int tally_gate(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    const char *path = NULL, *junit = NULL;
    const struct flag flags[] = {
        FLAG_TEXT("file", "FILE", path, "statements, above each: -- at most N units [at LEVEL]"),
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
