#include "tools/tally/cql/run.h"

#include <stdlib.h>
#include <strings.h>

#include "cql/request/request.h"
#include "tools/tally/cql/cell.h"
#include "tools/tally/cql/command.h"
#include "tools/tally/cql/interrupt.h"
#include "tools/tally/cql/split.h"
#include "tools/tally/cql/steps.h"

/* ---- the result of a statement ---- */

struct shell_statement {
    struct slice text;
    bool is_select, is_list;
    uint64_t rows;
    double reads, writes, units; /* charge of all pages; units: if the server reports only the sum */
    bool charged, charged_apart;
    uint8_t trace[16];
    bool traced;
};

static bool begins_with(struct slice text, const char *word) {
    return text.n > strlen(word) && !strncasecmp((const char *)text.p, word, strlen(word));
}

static void take_charge(struct shell_statement *st, const struct client_answer *a) {
    const struct wire_response *r = &a->response;
    double reads = wire_capacity(r, "read_units"), writes = wire_capacity(r, "write_units"),
           statics = wire_capacity(r, "static_write_units");
    if (reads >= 0) {
        st->charged_apart = true;
        st->reads += reads;
        st->writes += (writes > 0 ? writes : 0) + (statics > 0 ? statics : 0);
    } else if (a->charge >= 0) {
        st->charged = true;
        st->units += a->charge;
    }
}

/* Shows a page; before: number of rows on earlier pages. */
static void put_page(struct shell *s, struct client_answer *a, uint64_t before, bool with_header) {
    struct grid *g = &s->grid;
    struct client_rows *rows = &a->rows;
    struct buf out;
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
    buf_init(&out, 0);
    if (g->failed) {
        shell_complain(s, "there is not enough memory to show the rows");
    } else if (s->expand && g->n_rows) {
        grid_put_expanded(g, before, &out);
    } else {
        grid_put(g, with_header, &out);
        if (s->terminal && g->n_rows) buf_u8(&out, '\n');
    }
    shell_put(s, &out);
    buf_fini(&out);
}

static void put_line(struct shell *s, const char *text) {
    struct buf out;
    buf_init(&out, 0);
    buf_put_str(&out, text);
    shell_put(s, &out);
    buf_fini(&out);
}

/* Shows every page of the answer. Returns -1 if a page failed; the error was printed. */
static int put_rows(struct shell *s, struct shell_statement *st, struct wire_params *p, struct client_answer *a) {
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
        bool stops = interrupt_seen();
        if (!stops && s->terminal && s->out == stdout) {
            /* Waits for Enter; Ctrl-C or the end of the input ends the pages. */
            int c;
            shell_say("---MORE---");
            while ((c = interrupt_read()) >= 0 && c != '\n') continue;
            if (c < 0) shell_say("\n");
            stops = c < 0;
        }
        if (stops) {
            if (interrupt_seen()) shell_complain(s, "The rows that follow were not read.");
            break;
        }
        p->paging_state = buf_slice(&state);
        rc = shell_query(s, st->text, p, a, &e);
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

/* ---- changes of the schema ---- */

/* A schema change as the server reports it (native protocol, section 4.2.5.5), copied from the
 * connection's buffer. */
struct announced {
    char what[16], target[16]; /* CREATED, UPDATED, DROPPED; KEYSPACE, TABLE, TYPE */
    char keyspace[SHELL_NAME], name[SHELL_NAME];
};

/* Keyspaces answers CREATE, ALTER and DROP at once and changes the schema in the background
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/tables-create.html). Waits until a table or
 * type is ACTIVE, a keyspace exists, or a dropped object is gone. Ctrl-C ends the wait. */
static void wait_for_schema(struct shell *s, const struct wire_response *r) {
    enum { PAUSE_MS = 50, PAUSE_MAX_MS = 1000 };
    struct rd in = rd_of(r->body);
    struct announced c;
    if (r->opcode != NP_RESULT || rd_u32(&in) != RESULT_SCHEMA_CHANGE) return;
    shell_copy(c.what, sizeof(c.what), rd_bytes(&in, rd_u16(&in)));
    shell_copy(c.target, sizeof(c.target), rd_bytes(&in, rd_u16(&in)));
    shell_copy(c.keyspace, sizeof(c.keyspace), rd_bytes(&in, rd_u16(&in)));
    bool keyspace = !strcmp(c.target, "KEYSPACE"), table = !strcmp(c.target, "TABLE");
    shell_copy(c.name, sizeof(c.name), keyspace ? slice_str("") : rd_bytes(&in, rd_u16(&in)));
    if (in.bad || (!keyspace && !table && strcmp(c.target, "TYPE")))
        return; /* other changes are done when they are answered */
    struct buf text;
    buf_init(&text, 0);
    buf_printf(&text, "SELECT %s FROM system_schema_mcs.%s WHERE keyspace_name = ",
               keyspace ? "keyspace_name" : "status", keyspace ? "keyspaces" : table ? "tables" : "types");
    cql_value_print(cql_type_scalar(CQL_TEXT), slice_str(c.keyspace), &text);
    if (!keyspace) {
        buf_printf(&text, " AND %s = ", table ? "table_name" : "type_name");
        cql_value_print(cql_type_scalar(CQL_TEXT), slice_str(c.name), &text);
    }
    buf_u8(&text, 0);
    bool seen = false, dropped = !strcmp(c.what, "DROPPED");
    for (unsigned pause = PAUSE_MS;; pause *= pause < PAUSE_MAX_MS ? 2 : 1) {
        struct client_answer a;
        struct err e = {0};
        if (shell_query_system(s, (const char *)text.p, &a, &e)) {
            shell_complain_of(s, &a, &e);
            break;
        }
        bool there = a.has_rows && client_rows_next(&a.rows);
        bool active = there && (keyspace || !strcmp(client_text(&a.rows, &s->client.arena, "status"), "ACTIVE"));
        if (dropped ? !there : active) break;
        if (!dropped && !there && seen) {
            shell_complain(s, "The creation of %s.%s has failed; see system_schema_mcs.tables_history.", c.keyspace,
                           c.name);
            break;
        }
        if (interrupt_seen()) {
            shell_complain(s, "The schema change continues in the server; the shell did not wait for it.");
            break;
        }
        seen = !keyspace; /* tables and types are visible at once, as CREATING */
        interrupt_sleep_ms(pause);
    }
    buf_fini(&text);
}

void run_statement(struct shell *s, struct slice text) {
    struct shell_statement st = {
        .text = text, .is_select = begins_with(text, "SELECT"), .is_list = begins_with(text, "LIST")};
    struct wire_params p = {.consistency = s->consistency, .serial_consistency = s->serial_consistency,
                            .page_size = s->paging ? (int32_t)s->page_size : 0, .wants_capacity = s->charge,
                            .tracing = s->tracing};
    struct client_answer a;
    struct err e = {0};
    struct buf warnings;
    if (shell_query(s, text, &p, &a, &e)) {
        shell_complain_of(s, &a, &e);
        return;
    }
    struct rd in = rd_of(a.response.body);
    if (a.response.opcode == NP_RESULT && rd_u32(&in) == RESULT_SET_KEYSPACE) { /* the answer to USE */
        struct slice name = rd_bytes(&in, rd_u16(&in));
        if (!in.bad) shell_copy(s->keyspace, sizeof(s->keyspace), name);
    }
    take_charge(&st, &a);
    st.traced = a.response.trace_id.p != NULL;
    if (st.traced) memcpy(st.trace, a.response.trace_id.p, sizeof(st.trace));
    buf_init(&warnings, 0); /* a copy of the first page's: the next page overwrites the answer */
    buf_put_slice(&warnings, a.response.warnings);
    if (s->wait && s->on_keyspaces) wait_for_schema(s, &a.response);
    int rc = 0;
    if (a.has_rows && (st.is_select || st.is_list)) {
        rc = put_rows(s, &st, &p, &a);
    } else if (a.has_rows) {
        put_line(s, "\n");
        put_page(s, &a, 0, true);
    }
    if (warnings.n) {
        struct rd list = rd_of(buf_slice(&warnings));
        struct buf out;
        buf_init(&out, 0);
        buf_put_str(&out, "\nWarnings :\n");
        for (uint16_t n = rd_u16(&list); n && !list.bad; n--) {
            buf_put_slice(&out, rd_bytes(&list, rd_u16(&list)));
            buf_put_str(&out, "\n\n");
        }
        shell_put(s, &out);
        buf_fini(&out);
    }
    buf_fini(&warnings);
    if (!rc && s->charge) {
        if (st.charged_apart) shell_say("%g RU  %g WU\n", st.reads, st.writes);
        else if (st.charged) shell_say("%g units\n", st.units);
    }
    if (!rc && st.traced) steps_put(s, st.trace);
}

/* ---- texts ---- */

static void count_lines(struct shell *s, struct slice text) {
    for (size_t i = 0; i < text.n; i++) s->line += text.p[i] == '\n';
}

size_t run_text(struct shell *s, struct slice text, bool at_end) {
    size_t done = 0;
    while (!s->leaves) {
        struct slice rest = slice_of(text.p + done, text.n - done);
        struct split_item item = split_next(rest, at_end);
        if (item.kind == SPLIT_UNFINISHED) break;
        count_lines(s, slice_of(rest.p, item.at));
        interrupt_begin();
        /* The command SOURCE stores the name of a file, which is run here. */
        if (item.kind == SPLIT_COMMAND) {
            struct err e = {0};
            command_run(s, item.command, item.text);
            char *path = s->next_source;
            s->next_source = NULL;
            if (path && run_file(s, path, &e)) shell_complain(s, "%s", e.text);
            free(path);
        } else if (item.kind == SPLIT_STATEMENT) run_statement(s, item.text);
        interrupt_end();
        count_lines(s, slice_of(rest.p + item.at, item.used - item.at));
        done += item.used;
        if (item.kind == SPLIT_NOTHING || (s->depth && interrupt_seen())) break;
    }
    return done;
}

int run_file(struct shell *s, const char *path, struct err *e) {
    struct script script;
    const char *source = s->source;
    uint32_t line = s->line;
    bool terminal = s->terminal;
    if (s->depth == SHELL_SOURCES)
        return err_set(e, ERR_CONFIG, "%s is not read: %d files within each other are the most", path, SHELL_SOURCES);
    if (script_open(&script, path, e)) return -1;
    s->source = strcmp(path, "-") ? path : "<stdin>";
    s->line = 1;
    s->terminal = false;
    s->depth++;
    run_text(s, script.text, true);
    s->depth--;
    s->terminal = terminal;
    s->source = source;
    s->line = line;
    script_close(&script);
    return 0;
}
