#include "tools/tally/cql/shell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/request/request.h"
#include "tools/tally/cql/cell.h"
#include "tools/tally/cql/command.h"
#include "tools/tally/cql/interrupt.h"
#include "tools/tally/cql/schema_wait.h"
#include "tools/tally/cql/split.h"
#include "tools/tally/cql/steps.h"

enum { SYSTEM_PAGE = 5000 };

/* ---- words ---- */

void shell_put(struct shell *s, const struct buf *text) {
    fwrite(buf_slice(text).p, 1, text->n, s->out);
    fflush(s->out);
}

void shell_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

void shell_complain(struct shell *s, const char *format, ...) {
    va_list args;
    s->failed = true;
    fflush(stdout);
    if (s->source) fprintf(stderr, "%s:%u:", s->source, s->line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

struct error_name {
    uint32_t code;
    const char *class, *title;
    bool has_title;
};

static const struct error_name *error_name(uint32_t code) {
    static const struct error_name names[] = {
#define ERROR_NAME(code_, class_, title_, has_title_) {.code = code_, .class = class_, .title = title_, .has_title = has_title_},
#include "tools/tally/cql/error_name.def"
#undef ERROR_NAME
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].code == code) return &names[i];
    return &names[0];
}

/* As drivers word it: from the names that come behind the server's text. false: there are none. */
static bool complain_of_existing(struct shell *s, const struct wire_response *r) {
    struct rd in = rd_of(r->body);
    (void)rd_u32(&in);
    (void)rd_bytes(&in, rd_u16(&in));
    struct slice keyspace = rd_bytes(&in, rd_u16(&in)), table = rd_bytes(&in, rd_u16(&in));
    if (in.bad) return false;
    if (table.n) shell_complain(s, "AlreadyExists: Table '%.*s.%.*s' already exists", SLICE_FMT(keyspace), SLICE_FMT(table));
    else shell_complain(s, "AlreadyExists: Keyspace '%.*s' already exists", SLICE_FMT(keyspace));
    return true;
}

void shell_complain_of(struct shell *s, const struct client_answer *a, const struct err *e) {
    struct slice text;
    if (interrupt_seen()) {
        shell_complain(s, "The request was cancelled; the server may have carried it out.");
        return;
    }
    if (!shell_is_refused(a)) {
        shell_complain(s, "ConnectionException: %s", e->text);
        return;
    }
    uint32_t code = wire_error_code(&a->response, &text);
    const struct error_name *name = error_name(code);
    if (code == ERR_ALREADY_EXISTS && complain_of_existing(s, &a->response)) return;
    if (!name->has_title) shell_complain(s, "%s: %.*s", name->class, SLICE_FMT(text));
    else shell_complain(s, "%s: Error from server: code=%04x [%s] message=\"%.*s\"", name->class, code, name->title, SLICE_FMT(text));
}

/* ---- the connection ---- */

void shell_init(struct shell *s) {
    *s = (struct shell){.client = {.link = {.fd = -1}}, .page_size = SHELL_PAGE, .paging = true, .out = stdout};
    grid_init(&s->grid);
}

void shell_disconnect(struct shell *s) {
    if (s->connected) client_close(&s->client);
    s->connected = false;
}

void shell_fini(struct shell *s) {
    shell_disconnect(s);
    if (s->out != stdout) fclose(s->out);
    grid_fini(&s->grid);
}

/* As much as fits, with a NUL behind it. */
static void copy(char *to, size_t cap, struct slice s) {
    size_t n = s.n < cap ? s.n : cap - 1;
    if (n) memcpy(to, s.p, n);
    to[n] = 0;
}

/* What an answer says beside its rows: the keyspace that USE has entered. */
static void take_keyspace(struct shell *s, const struct wire_response *r) {
    struct rd in = rd_of(r->body);
    if (r->opcode != NP_RESULT || rd_u32(&in) != RESULT_SET_KEYSPACE) return;
    struct slice name = rd_bytes(&in, rd_u16(&in));
    if (!in.bad) copy(s->keyspace, sizeof(s->keyspace), name);
}

/* One exchange on a connection that stands; closes it when it has failed. */
static int exchange(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer, struct err *e) {
    interrupt_guard(s->client.link.fd);
    int rc = client_query(&s->client, text, p, answer, e);
    interrupt_guard(-1);
    if (rc && !shell_is_refused(answer)) shell_disconnect(s);
    return rc;
}

static int enter(struct shell *s, struct err *e) {
    const struct wire_params p = {.consistency = CL_ONE};
    struct client_answer a;
    struct buf text;
    if (!*s->keyspace) return 0;
    buf_init(&text, 0);
    buf_put_str(&text, "USE \"");
    for (const char *c = s->keyspace; *c; c++) {
        buf_u8(&text, (uint8_t)*c);
        if (*c == '"') buf_u8(&text, '"');
    }
    buf_put_str(&text, "\"");
    int rc = exchange(s, buf_slice(&text), &p, &a, e);
    buf_fini(&text);
    return rc;
}

static int reconnect(struct shell *s, struct err *e) {
    if (s->connected) return 0;
    if (client_open(&s->client, &s->options, e)) return -1;
    s->connected = true;
    if (!enter(s, e)) return 0;
    shell_disconnect(s);
    return -1;
}

int shell_ask(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer, struct err *e) {
    *answer = (struct client_answer){0};
    return reconnect(s, e) ? -1 : exchange(s, text, p, answer, e);
}

int shell_ask_system(struct shell *s, const char *text, struct client_answer *answer, struct err *e) {
    const struct wire_params p = {.consistency = s->on_keyspaces ? CL_LOCAL_QUORUM : CL_ONE, .page_size = SYSTEM_PAGE};
    return shell_ask(s, slice_str(text), &p, answer, e);
}

static void take_text(struct shell *s, const struct client_answer *a, const char *column, char *to, size_t cap) {
    const char *text = client_text(&a->rows, &s->client.arena, column);
    copy(to, cap, slice_str(text ? text : ""));
}

int shell_connect(struct shell *s, struct err *e) {
    struct client_answer a;
    struct err ignored = {0};
    if (shell_ask_system(s, "SELECT cluster_name, release_version, cql_version, partitioner FROM system.local WHERE key = 'local'", &a, e)) return -1;
    if (a.has_rows && client_rows_next(&a.rows)) {
        take_text(s, &a, "cluster_name", s->cluster, sizeof(s->cluster));
        take_text(s, &a, "release_version", s->release, sizeof(s->release));
        take_text(s, &a, "cql_version", s->cql_version, sizeof(s->cql_version));
        take_text(s, &a, "partitioner", s->partitioner, sizeof(s->partitioner));
    }
    s->server_describes = atoi(s->release) >= 4;
    s->on_keyspaces = !shell_ask_system(s, "SELECT keyspace_name FROM system_schema_mcs.keyspaces", &a, &ignored) && !s->server_describes;
    s->consistency = s->on_keyspaces ? CL_LOCAL_QUORUM : CL_ONE;
    return 0;
}

/* ---- what a statement gives ---- */

struct statement {
    struct slice text;
    bool is_select, is_list;
    uint64_t rows;
    double reads, writes, units; /* charged for all pages; units: where the server tells no more than the sum */
    bool charged, charged_apart;
    uint8_t trace[16];
    bool traced;
};

static bool begins_with(struct slice text, const char *word) {
    return text.n > strlen(word) && !strncasecmp((const char *)text.p, word, strlen(word));
}

/* The number behind a name of the payload "capacity"; below 0: the name is not there. */
static double capacity_of(struct slice json, const char *name) {
    char key[64];
    int n = snprintf(key, sizeof(key), "\"%s\":", name);
    const uint8_t *at = json.p ? memmem(json.p, json.n, key, (size_t)n) : NULL;
    if (!at) return -1;
    char number[32];
    copy(number, sizeof(number), slice_of(at + n, (size_t)(json.p + json.n - at) - (size_t)n));
    return strtod(number, NULL);
}

static void take_charge(struct statement *st, const struct client_answer *a) {
    struct slice json = wire_payload(&a->response, "capacity");
    double reads = capacity_of(json, "read_units"), writes = capacity_of(json, "write_units"), statics = capacity_of(json, "static_write_units");
    if (reads >= 0) {
        st->charged_apart = true;
        st->reads += reads;
        st->writes += (writes > 0 ? writes : 0) + (statics > 0 ? statics : 0);
    } else if (a->charge >= 0) {
        st->charged = true;
        st->units += a->charge;
    }
}

static void put_charge(const struct statement *st) {
    if (st->charged_apart) shell_say("%g RU  %g WU\n", st->reads, st->writes);
    else if (st->charged) shell_say("%g units\n", st->units);
}

static void put_warnings(struct shell *s, struct slice warnings) {
    struct rd in = rd_of(warnings);
    struct buf out;
    if (!warnings.n) return;
    buf_init(&out, 0);
    buf_put_str(&out, "\nWarnings :\n");
    for (uint16_t n = rd_u16(&in); n && !in.bad; n--) {
        buf_put_slice(&out, rd_bytes(&in, rd_u16(&in)));
        buf_put_str(&out, "\n\n");
    }
    shell_put(s, &out);
    buf_fini(&out);
}

static int fill_grid(struct grid *g, struct client_rows *rows) {
    grid_begin(g, rows->columns.n);
    for (uint32_t i = 0; i < rows->columns.n; i++) {
        cell_put_text(slice_str(rows->columns.list[i].name), false, &g->text);
        grid_cell(g);
    }
    while (client_rows_next(rows)) {
        for (uint32_t i = 0; i < rows->columns.n; i++) {
            cell_put(rows->columns.list[i].type, rows->values[i], &g->text);
            grid_cell(g);
        }
    }
    return g->failed ? -1 : 0;
}

/* A page as it is read; before: rows of the pages before it. */
static void put_page(struct shell *s, struct client_answer *a, uint64_t before, bool with_header) {
    struct buf out;
    buf_init(&out, 0);
    if (fill_grid(&s->grid, &a->rows)) {
        shell_complain(s, "there is not enough memory to show the rows");
    } else if (s->expand && s->grid.n_rows) {
        grid_put_expanded(&s->grid, before, &out);
    } else {
        grid_put(&s->grid, with_header, &out);
        if (s->terminal && s->grid.n_rows) buf_u8(&out, '\n');
    }
    shell_put(s, &out);
    buf_fini(&out);
}

/* Waits for Enter between two pages. false: Ctrl-C, or the end of the input. */
static bool more(struct shell *s) {
    int c;
    if (!s->terminal || s->out != stdout) return !interrupt_seen();
    if (interrupt_seen()) return false;
    shell_say("---MORE---");
    while ((c = interrupt_read()) >= 0 && c != '\n') continue;
    if (c < 0) shell_say("\n");
    return c >= 0;
}

static void put_line(struct shell *s, const char *text) {
    struct buf out;
    buf_init(&out, 0);
    buf_put_str(&out, text);
    shell_put(s, &out);
    buf_fini(&out);
}

/* Every page of the answer. -1: a page did not come, which has been said. */
static int put_rows(struct shell *s, struct statement *st, struct wire_params *p, struct client_answer *a) {
    struct buf state;
    struct err e = {0};
    char count[48];
    int rc = 0;
    buf_init(&state, 0);
    put_line(s, "\n");
    for (bool first = true;; first = false) {
        struct slice next = a->rows.paging_state;
        if (a->rows.n || first) put_page(s, a, st->rows, first || s->terminal);
        st->rows += a->rows.n;
        buf_clear(&state, SIZE_MAX);
        buf_put_slice(&state, next);
        if (!next.p) break;
        if (!more(s)) {
            if (interrupt_seen()) shell_complain(s, "The rows that follow were not read.");
            break;
        }
        p->paging_state = buf_slice(&state);
        rc = shell_ask(s, st->text, p, a, &e);
        if (rc) break;
        take_charge(st, a);
    }
    buf_fini(&state);
    if (rc) {
        shell_complain_of(s, a, &e);
        return -1;
    }
    snprintf(count, sizeof(count), "%s(%llu rows)\n", s->terminal ? "" : "\n", (unsigned long long)st->rows);
    put_line(s, count);
    return 0;
}

static int put_answer(struct shell *s, struct statement *st, struct wire_params *p, struct client_answer *a) {
    if (a->has_rows && (st->is_select || st->is_list)) return put_rows(s, st, p, a);
    if (!a->has_rows) return 0;
    put_line(s, "\n");
    put_page(s, a, 0, true);
    return 0;
}

/* The words of a SCHEMA_CHANGE point into the connection, so they are copied before anything else is asked. */
static void wait_for_schema(struct shell *s, const struct wire_response *r) {
    struct rd in = rd_of(r->body);
    struct schema_announced change;
    if (r->opcode != NP_RESULT || rd_u32(&in) != RESULT_SCHEMA_CHANGE) return;
    copy(change.what, sizeof(change.what), rd_bytes(&in, rd_u16(&in)));
    copy(change.target, sizeof(change.target), rd_bytes(&in, rd_u16(&in)));
    copy(change.keyspace, sizeof(change.keyspace), rd_bytes(&in, rd_u16(&in)));
    copy(change.name, sizeof(change.name), strcmp(change.target, "KEYSPACE") ? rd_bytes(&in, rd_u16(&in)) : slice_str(""));
    if (!in.bad) schema_wait(s, &change);
}

void shell_statement(struct shell *s, struct slice text) {
    struct statement st = {.text = text, .is_select = begins_with(text, "SELECT"), .is_list = begins_with(text, "LIST")};
    struct wire_params p = {.consistency = s->consistency, .serial_consistency = s->serial_consistency, .page_size = s->paging ? (int32_t)s->page_size : 0,
                            .wants_capacity = s->charge, .tracing = s->tracing};
    struct client_answer a;
    struct err e = {0};
    struct buf warnings;
    if (shell_ask(s, text, &p, &a, &e)) {
        shell_complain_of(s, &a, &e);
        return;
    }
    take_keyspace(s, &a.response);
    take_charge(&st, &a);
    st.traced = a.response.trace_id.p != NULL;
    if (st.traced) memcpy(st.trace, a.response.trace_id.p, sizeof(st.trace));
    buf_init(&warnings, 0); /* those of the first page; the answer is gone when the rows have been shown */
    buf_put_slice(&warnings, a.response.warnings);
    if (s->wait && s->on_keyspaces) wait_for_schema(s, &a.response);
    int rc = put_answer(s, &st, &p, &a);
    put_warnings(s, buf_slice(&warnings));
    buf_fini(&warnings);
    if (!rc && s->charge) put_charge(&st);
    if (!rc && st.traced) steps_put(s, st.trace);
}

/* ---- texts ---- */

static void count_lines(struct shell *s, struct slice text) {
    for (size_t i = 0; i < text.n; i++) s->line += text.p[i] == '\n';
}

size_t shell_run(struct shell *s, struct slice text, bool at_end) {
    size_t done = 0;
    while (!s->leaves) {
        struct slice rest = slice_of(text.p + done, text.n - done);
        struct split_item item = split_next(rest, at_end);
        if (item.kind == SPLIT_UNFINISHED) break;
        count_lines(s, slice_of(rest.p, item.at));
        interrupt_begin();
        if (item.kind == SPLIT_COMMAND) command_run(s, item.command, item.text);
        else if (item.kind == SPLIT_STATEMENT) shell_statement(s, item.text);
        interrupt_end();
        count_lines(s, slice_of(rest.p + item.at, item.used - item.at));
        done += item.used;
        if (item.kind == SPLIT_NOTHING || (s->depth && interrupt_seen())) break;
    }
    return done;
}

int shell_run_file(struct shell *s, const char *path, struct err *e) {
    struct script script;
    const char *source = s->source;
    uint32_t line = s->line;
    bool terminal = s->terminal;
    if (s->depth == SHELL_SOURCES) return err_set(e, ERR_CONFIG, "%s is not read: %d files within each other are the most", path, SHELL_SOURCES);
    if (script_open(&script, path, e)) return -1;
    s->source = strcmp(path, "-") ? path : "<stdin>";
    s->line = 1;
    s->terminal = false;
    s->depth++;
    shell_run(s, script.text, true);
    s->depth--;
    s->terminal = terminal;
    s->source = source;
    s->line = line;
    script_close(&script);
    return 0;
}
