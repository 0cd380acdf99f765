/* tally check: reports which statements of a file Amazon Keyspaces would refuse, with its error
 * texts. */
#include <stdio.h>
#include <string.h>

#include "tools/tally/json.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/script.h"

struct findings {
    uint32_t statements, refused;
    bool json;
    struct buf out;
};

/* Prints the findings as JSON: what was looked at, and how many statements were counted. */
static void put_findings(const struct findings *f, const char *what, const char *name, const char *counted) {
    struct buf out;
    if (!f->json) return;
    buf_init(&out, 0);
    json_open(&out, NULL, '{');
    json_flag(&out, "ok", !f->refused);
    json_str(&out, what, name);
    json_count(&out, counted, f->statements);
    json_open(&out, "refused", '[');
    printf("%.*s%.*s]}\n", SLICE_FMT(buf_slice(&out)), SLICE_FMT(buf_slice(&f->out)));
    buf_fini(&out);
}

static void note(struct findings *f, const struct script *s, const struct script_statement *at, const struct err *e,
                 bool everywhere) {
    f->refused++;
    if (!f->json) {
        printf("%s:%u: %s%s\n    %.*s\n", s->path, at->line, everywhere ? "wrong CQL: " : "", e->text,
               (int)(at->text.n < 160 ? at->text.n : 160), (const char *)at->text.p);
        return;
    }
    json_open(&f->out, NULL, '{');
    buf_printf(&f->out, "\"line\":%u,\"code\":\"0x%04x\"", at->line, (unsigned)e->code);
    json_str(&f->out, "refused_by", everywhere ? "everybody" : "keyspaces");
    json_str(&f->out, "words", e->text);
    json_text(&f->out, "statement", at->text);
    buf_u8(&f->out, '}');
}

static int check(const struct pricing *p, const char *path, struct findings *f, struct err *e) {
    struct script s;
    struct script_statement at;
    struct world *strict = pricing_world(p, true, e), *lenient = strict ? pricing_world(p, false, e) : NULL;
    int rc = strict && lenient ? script_open(&s, path, e) : -1;
    if (!rc) {
        /* A statement that both worlds refuse with the same text is wrong CQL, not a rule of
         * Keyspaces. A definition that only Keyspaces refuses still takes effect, so that later
         * statements do not fail for lack of it. */
        for (; script_next(&s, &at); f->statements++) {
            const struct world_request q = {.text = at.text, .consistency = CL_LOCAL_QUORUM};
            struct world_answer ignored;
            struct err why = {0}, other = {0};
            bool wrong = world_run(lenient, &q, &ignored, &other) != 0;
            bool defines = !wrong && !stmt_is_data(ignored.kind);
            if (!world_run(strict, &q, &ignored, &why)) continue;
            note(f, &s, &at, &why, wrong && !strcmp(why.text, other.text));
            if (defines && world_define(strict, &q, &why)) note(f, &s, &at, &why, true);
        }
        script_close(&s);
    }
    if (strict) world_free(strict);
    if (lenient) world_free(lenient);
    return rc;
}

/* ---- a server's own report (tallyd --compatibility report) ---- */

static int take_use(void *arg, struct client *c, const struct client_rows *row) {
    struct findings *f = arg;
    const char *rule = client_text(row, &c->arena, "rule"), *words = client_text(row, &c->arena, "words");
    const char *text = client_text(row, &c->arena, "statement");
    const char *keyspace = client_text(row, &c->arena, "keyspace_name"),
               *table = client_text(row, &c->arena, "table_name");
    long long uses = (long long)client_int(row, "uses");
    f->refused++;
    f->statements += (uint32_t)uses;
    if (!f->json) {
        printf("%s.%s: %lld times: %s (%s)\n    %s\n", keyspace, table, uses, words, rule, text);
        return 0;
    }
    json_open(&f->out, NULL, '{');
    json_count(&f->out, "uses", (uint64_t)uses);
    json_str(&f->out, "rule", rule);
    json_str(&f->out, "keyspace", keyspace);
    json_str(&f->out, "table", table);
    json_str(&f->out, "words", words);
    json_str(&f->out, "statement", text);
    buf_u8(&f->out, '}');
    return 0;
}

int tally_check(int argc, char **argv) {
    struct pricing p = {.timestamp_size = PRICING_TIMESTAMP_SIZE};
    struct remote remote = {.timeout_s = 10};
    const char *path = NULL;
    const struct flag flags[] = {
        FLAG_TEXT("file", "FILE", path, "the statements; - is standard input"),
        REMOTE_FLAGS(&remote),
        FLAG_TEXT("schema", "FILE", p.schema,
             "CQL that makes the keyspaces and tables that they need, when they do not themselves"),
        FLAG_ON("json", p.json, "the answer as JSON")};
    struct err e = {0};
    int rc = flags_read("check", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!path == !remote.server) {
        fprintf(stderr, "tally check: --file is needed, or --server for the report of one; see tally check --help\n");
        return EXIT_USAGE;
    }
    struct findings f = {.json = p.json};
    struct client c = {0};
    buf_init(&f.out, 0);
    if (path) {
        rc = check(&p, path, &f, &e);
        if (!rc) put_findings(&f, "file", path, "statements");
        if (!rc && !f.json) printf("%u statements, %u refused\n", f.statements, f.refused);
    } else {
        rc = remote_connect(&remote, &c, &e);
        if (!rc) rc = client_each(&c, "SELECT * FROM system_metering.compatibility", take_use, &f, &e);
        if (!rc) put_findings(&f, "server", remote.host, "uses");
        if (!rc && !f.json)
            printf("%u statements that Amazon Keyspaces would refuse, %u uses\n", f.refused, f.statements);
        client_close(&c);
    }
    buf_fini(&f.out);
    return rc ? say_wrong(p.json, "check", &e) : f.refused ? EXIT_NO : EXIT_DONE;
}
