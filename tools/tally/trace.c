#include "tools/tally/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/name_tree.h"
#include "cql/fingerprint.h"
#include "native_protocol/request.h"

enum { NAME_MAX_BYTES = 400 };

static int by_id(const void *a, const void *b) {
    return memcmp(((const struct capture_statement *)a)->id.p, ((const struct capture_statement *)b)->id.p, CAPTURE_ID);
}

const struct capture_statement *trace_statement(const struct trace *t, struct slice id) {
    const struct capture_statement key = {.id = id};
    if (id.n != CAPTURE_ID || !t->n_statements) return NULL;
    return bsearch(&key, t->statements, t->n_statements, sizeof(key), by_id);
}

/* ---- reading ---- */

static int read_file(struct trace *t, const char *path, bool up_to_damage, struct err *e) {
    struct capture_reader *r = &t->files[t->n_files];
    struct capture_record record;
    struct err why = {0};
    enum capture_got got;
    if (capture_reader_open(r, path, e)) return -1;
    t->n_files++;
    t->reason = (struct slice){0};
    while ((got = capture_reader_next(r, &record, &why)) == CAPTURE_GOT_RECORD) {
        if (array_room(&t->statements, t->n_statements, &t->cap_statements, sizeof(*t->statements)) ||
            array_room(&t->requests, t->n, &t->cap, sizeof(*t->requests)))
            return err_nomem(e);
        switch (record.kind) {
        case CAPTURE_STATEMENT: t->statements[t->n_statements++] = record.statement; break;
        case CAPTURE_REQUEST:
            t->requests[t->n++] = (struct trace_request){.q = record.request, .page_before = TRACE_NONE,
                                                         .page_after = TRACE_NONE};
            break;
        case CAPTURE_DROPPED: t->dropped += record.dropped; break;
        case CAPTURE_END: t->reason = record.reason; break;
        }
    }
    if (got == CAPTURE_GOT_END) return 0;
    if (!up_to_damage)
        return err_set(e, ERR_CONFIG, "%s; %zu requests before it are sound (--up-to-damage takes them)", why.text,
                       t->n);
    if (!t->damage[0]) snprintf(t->damage, sizeof(t->damage), "%.*s", (int)sizeof(t->damage) - 1, why.text);
    return 0;
}

int trace_decode(const struct trace_request *r, struct arena *a, struct cql_request *out, struct err *e) {
    const struct np_envelope env = {.version = r->q.version, .opcode = r->q.opcode, .flags = r->q.flags};
    struct np_query_options ignored;
    *out = (struct cql_request){0};
    if (r->q.marks & CAPTURE_DIGEST) return err_set(e, ERR_CONFIG, "the values of this request were not recorded");
    return np_query_decode(&env, r->q.body, a, out, &ignored, e);
}

/* ---- running ---- */

struct world_call trace_call(const struct trace_request *r) {
    return (struct world_call){.now_us = r->q.began_us, .connection = r->q.connection, .keyspace = r->q.keyspace,
                               .version = r->q.version, .opcode = r->q.opcode, .flags = r->q.flags, .body = r->q.body};
}

/* When preparing fails, the request reports the error. */
static void prepare(struct trace *t, struct world *w, struct slice id) {
    const struct capture_statement *s = id.p ? trace_statement(t, id) : NULL;
    struct err ignored = {0};
    if (s && !t->prepared[s - t->statements])
        t->prepared[s - t->statements] = !world_prepare(w, s->text, s->keyspace, &ignored);
}

int trace_send(struct trace *t, struct world *w, const struct trace_request *r, const struct world_call *call,
               struct world_answer *out, struct slice *paging_state, bool *throttled, struct err *e) {
    struct arena a;
    struct cql_request q;
    struct err ignored = {0};
    int rc = -1;
    arena_init(&a, 4096, 0);
    bool decoded = !trace_decode(r, &a, &q, &ignored);
    for (int tries = 0; rc && tries < 2; tries++) {
        if (tries && e->code != ERR_UNPREPARED) break;
        if (tries) memset(t->prepared, 0, t->n_statements); /* a table has changed since */
        if (decoded) prepare(t, w, q.prepared_id);
        for (uint32_t i = 0; decoded && i < q.n_items; i++) prepare(t, w, q.items[i].prepared_id);
        rc = world_send(w, call, out, paging_state, throttled, e);
    }
    arena_fini(&a);
    return rc;
}

bool trace_is_definition(const struct trace *t, const struct trace_request *r) {
    static const char *const words[] = {"CREATE ", "ALTER ", "DROP "};
    for (size_t i = 0; (r->q.opcode == NP_QUERY || r->q.opcode == NP_EXECUTE) && i < ARRAY_LEN(words); i++)
        if (!strncasecmp(trace_name(t, r), words[i], strlen(words[i]))) return true;
    return false;
}

bool trace_is_system(const struct trace *t, uint32_t name) { return strstr(t->names[name].text, " system") != NULL; }

/* ---- names ---- */

static const char *name_text(struct trace *t, struct slice text) {
    struct slice s = cql_fingerprint(&t->arena, text);
    size_t n = s.n < NAME_MAX_BYTES ? s.n : NAME_MAX_BYTES;
    return s.p ? (const char *)arena_dup(&t->arena, slice_of(s.p, n)).p : NULL;
}

static const char *name_id(struct trace *t, struct slice id) {
    const struct capture_statement *s = trace_statement(t, id);
    return s ? name_text(t, s->text) : "EXECUTE of a statement that is not in the capture";
}

static const char *name_digest(struct trace *t, const struct trace_request *r) {
    struct rd in = rd_of(r->q.body);
    struct capture_digest d;
    struct capture_digest_statement s;
    if (capture_get_digest(&in, &d) || !d.n_statements || capture_get_digest_statement(&in, &s))
        return "a request that cannot be read";
    const char *first = s.id.p ? name_id(t, s.id) : name_text(t, s.text);
    return r->q.opcode == NP_BATCH && first ? arena_printf(&t->arena, "BATCH of %u: %s", d.n_statements, first) : first;
}

static const char *name_plain(struct trace *t, const struct trace_request *r, struct arena *scratch) {
    struct cql_request q;
    struct err e = {0};
    if (trace_decode(r, scratch, &q, &e)) return "a request that cannot be read";
    if (q.kind == REQUEST_EXECUTE) return name_id(t, q.prepared_id);
    if (q.kind != REQUEST_BATCH) {
        const char *text = name_text(t, q.query);
        return text && q.kind == REQUEST_PREPARE ? arena_printf(&t->arena, "PREPARE %s", text) : text;
    }
    if (!q.n_items) return "BATCH of 0";
    const char *first = q.items[0].prepared_id.p ? name_id(t, q.items[0].prepared_id) : name_text(t, q.items[0].query);
    return first ? arena_printf(&t->arena, "BATCH of %u: %s", q.n_items, first) : NULL;
}

/* Gives each request the number of its name. */
static int name_all(struct trace *t, struct err *e) {
    struct name_tree numbers = {.arena = &t->arena};
    struct arena scratch;
    arena_init(&scratch, 16 << 10, 0);
    for (size_t i = 0; i < t->n && !e->set; i++) {
        struct arena_mark mark = arena_mark(&t->arena);
        struct trace_request *r = &t->requests[i];
        const char *text = r->q.marks & CAPTURE_DIGEST ? name_digest(t, r) : name_plain(t, r, &scratch);
        const uint32_t *known = text ? name_tree_find(&numbers, slice_str(text)) : NULL;
        r->name = known ? *known : (uint32_t)t->n_names;
        if (known) {
            arena_rewind(&t->arena, mark);
        } else if (!text || array_room(&t->names, t->n_names, &t->cap_names, sizeof(*t->names)) ||
                   name_tree_put(&numbers, slice_str(text), r->name)) {
            err_nomem(e);
        } else {
            t->names[t->n_names++] = (struct trace_name){.text = text};
        }
        arena_reset(&scratch);
    }
    arena_fini(&scratch);
    return e->set ? -1 : 0;
}

/* ---- pages ---- */

/* Links each request that has a paging state to the last request before it with the same statement
 * on the same connection. */
static void link_pages(struct trace *t) {
    struct arena scratch;
    arena_init(&scratch, 16 << 10, 0);
    for (size_t i = 0; i < t->n; i++) {
        struct trace_request *r = &t->requests[i];
        struct cql_request q;
        struct err e = {0};
        size_t k = i;
        arena_reset(&scratch);
        if (r->q.marks & CAPTURE_DIGEST || r->q.opcode == NP_BATCH || trace_decode(r, &scratch, &q, &e) ||
            !q.params.paging_state.p)
            continue;
        while (k && (t->requests[k - 1].q.connection != r->q.connection || t->requests[k - 1].name != r->name)) k--;
        if (!k) continue;
        r->page_before = (int64_t)k - 1;
        t->requests[k - 1].page_after = (int64_t)i;
    }
    arena_fini(&scratch);
}

int trace_open(struct trace *t, const char *path, bool up_to_damage, struct err *e) {
    struct capture_reader last;
    char before[4096];
    *t = (struct trace){0};
    arena_init(&t->arena, 64 << 10, 0);
    if (capture_reader_open(&last, path, e)) goto failed;
    uint32_t part = last.header.part;
    capture_reader_close(&last);
    snprintf(before, sizeof(before), "%s.1", path);
    if (part && read_file(t, before, up_to_damage, e)) goto failed;
    /* after damage a gap would separate the two files' requests */
    if (!t->damage[0] && read_file(t, path, up_to_damage, e)) goto failed;
    t->header = t->files[0].header;
    t->parts_gone = t->header.part;
    /* Sorts the statements by id and removes duplicates. */
    size_t n = 0;
    if (t->n_statements) qsort(t->statements, t->n_statements, sizeof(*t->statements), by_id);
    for (size_t i = 0; i < t->n_statements; i++)
        if (!n || by_id(&t->statements[n - 1], &t->statements[i])) t->statements[n++] = t->statements[i];
    t->n_statements = n;
    t->prepared = calloc(n + 1, sizeof(*t->prepared));
    if (!t->prepared) (void)err_nomem(e);
    if (e->set || name_all(t, e)) goto failed;
    link_pages(t);
    return 0;
failed:
    trace_close(t);
    return -1;
}

void trace_close(struct trace *t) {
    for (size_t i = 0; i < t->n_files; i++) capture_reader_close(&t->files[i]);
    free(t->requests);
    free(t->statements);
    free(t->prepared);
    free(t->names);
    arena_fini(&t->arena);
    *t = (struct trace){0};
}
