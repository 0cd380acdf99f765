#include "tools/tally/cql/shell.h"

#include <stdarg.h>
#include <stdlib.h>

#include "cql/request/request.h"
#include "tools/tally/cql/interrupt.h"

enum { SYSTEM_PAGE = 5000 };

/* ---- output ---- */

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
#define ERROR_NAME(code_, class_, title_, has_title_) \
    {.code = code_, .class = class_, .title = title_, .has_title = has_title_},
#include "tools/tally/cql/error_name.def"
#undef ERROR_NAME
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].code == code) return &names[i];
    return &names[0];
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
    if (code == ERR_ALREADY_EXISTS) { /* as drivers print it, from the names after the server's text */
        struct rd in = rd_of(a->response.body);
        (void)rd_u32(&in);
        (void)rd_bytes(&in, rd_u16(&in));
        struct slice keyspace = rd_bytes(&in, rd_u16(&in)), table = rd_bytes(&in, rd_u16(&in));
        if (!in.bad && table.n)
            shell_complain(s, "AlreadyExists: Table '%.*s.%.*s' already exists", SLICE_FMT(keyspace), SLICE_FMT(table));
        else if (!in.bad) shell_complain(s, "AlreadyExists: Keyspace '%.*s' already exists", SLICE_FMT(keyspace));
        if (!in.bad) return;
    }
    if (!name->has_title) shell_complain(s, "%s: %.*s", name->class, SLICE_FMT(text));
    else
        shell_complain(s, "%s: Error from server: code=%04x [%s] message=\"%.*s\"", name->class, code, name->title,
                       SLICE_FMT(text));
    struct rd warnings = rd_of(a->response.warnings);
    for (uint16_t n = rd_u16(&warnings); n && !warnings.bad; n--) {
        struct slice warning = rd_bytes(&warnings, rd_u16(&warnings));
        fprintf(stderr, "    %.*s\n", SLICE_FMT(warning));
    }
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

void shell_copy(char *to, size_t cap, struct slice s) {
    size_t n = s.n < cap ? s.n : cap - 1;
    if (n) memcpy(to, s.p, n);
    to[n] = 0;
}

/* Sends one request on the open connection; closes the connection if it fails. */
static int exchange(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer,
                    struct err *e) {
    interrupt_guard(s->client.link.fd);
    int rc = client_query(&s->client, text, p, answer, e);
    interrupt_guard(-1);
    if (rc && !shell_is_refused(answer)) shell_disconnect(s);
    return rc;
}

int shell_query(struct shell *s, struct slice text, const struct wire_params *p, struct client_answer *answer,
              struct err *e) {
    *answer = (struct client_answer){0};
    if (!s->connected) {
        if (client_open(&s->client, &s->options, e)) return -1;
        s->connected = true;
        if (*s->keyspace) {
            const struct wire_params one = {.consistency = CL_ONE};
            struct client_answer ignored;
            struct buf use;
            buf_init(&use, 0);
            buf_put_str(&use, "USE ");
            cql_identifier_print(s->keyspace, false, &use);
            int rc = exchange(s, buf_slice(&use), &one, &ignored, e);
            buf_fini(&use);
            if (rc) {
                shell_disconnect(s);
                return -1;
            }
        }
    }
    return exchange(s, text, p, answer, e);
}

int shell_query_system(struct shell *s, const char *text, struct client_answer *answer, struct err *e) {
    const struct wire_params p = {.consistency = s->on_keyspaces ? CL_LOCAL_QUORUM : CL_ONE, .page_size = SYSTEM_PAGE};
    return shell_query(s, slice_str(text), &p, answer, e);
}

static void take_text(struct shell *s, const struct client_answer *a, const char *column, char *to, size_t cap) {
    const char *text = client_text(&a->rows, &s->client.arena, column);
    shell_copy(to, cap, slice_str(text ? text : ""));
}

int shell_connect(struct shell *s, struct err *e) {
    struct client_answer a;
    struct err ignored = {0};
    if (shell_query_system(
            s, "SELECT cluster_name, release_version, cql_version, partitioner FROM system.local WHERE key = 'local'",
            &a, e))
        return -1;
    if (a.has_rows && client_rows_next(&a.rows)) {
        take_text(s, &a, "cluster_name", s->cluster, sizeof(s->cluster));
        take_text(s, &a, "release_version", s->release, sizeof(s->release));
        take_text(s, &a, "cql_version", s->cql_version, sizeof(s->cql_version));
        take_text(s, &a, "partitioner", s->partitioner, sizeof(s->partitioner));
    }
    s->server_describes = atoi(s->release) >= 4;
    s->on_keyspaces = !shell_query_system(s, "SELECT keyspace_name FROM system_schema_mcs.keyspaces", &a, &ignored) &&
                      !s->server_describes;
    s->consistency = s->on_keyspaces ? CL_LOCAL_QUORUM : CL_ONE;
    return 0;
}
