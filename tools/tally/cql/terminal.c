#include "tools/tally/cql/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"
#include "cql/syntax/token.h"
#include "tools/tally/cql/complete.h"
#include "tools/tally/cql/interrupt.h"
#include "tools/tally/cql/run.h"
#include "tools/tally/script.h"
#include "tools/tally/show.h"

enum { HISTORY_LINES = 1000, NAMES_FRESH_S = 5, NAMES_MAX = 64 << 20, STATEMENT_MAX = 16 << 20 };

struct terminal {
    struct shell *shell;
    EditLine *edit;
    History *history;
    char history_path[4096]; /* empty: the history is not saved */
    struct buf text;         /* the statement so far, line by line */
    struct buf prompt;
    struct schema_names names;
    time_t names_read;
};

/* ---- names to complete ---- */

/* A column, or a keyspace. */
static int take_name(void *arg, struct client *c, const struct client_rows *row) {
    struct schema_names *n = arg;
    (void)c;
    if (array_room(&n->list, n->n, &n->cap, sizeof(*n->list))) return -1;
    struct schema_name *to = &n->list[n->n];
    bool column = client_value(row, "column_name").n >= 0;
    *to = (struct schema_name){.keyspace = client_text(row, &n->arena, "keyspace_name"),
                               .table = column ? client_text(row, &n->arena, "table_name") : NULL,
                               .column = column ? client_text(row, &n->arena, "column_name") : NULL};
    n->n++;
    return 0;
}

/* Reads the names again when they are older than NAMES_FRESH_S. Without a connection the old names
 * stay; above NAMES_MAX bytes the rest is left out. */
static void read_names(struct terminal *t) {
    struct client *c = &t->shell->client;
    struct schema_names *n = &t->names;
    struct err e = {0};
    time_t now = time(NULL);
    if (!t->shell->connected || now - t->names_read < NAMES_FRESH_S) return;
    t->names_read = now;
    n->n = 0;
    arena_fini(&n->arena);
    arena_init(&n->arena, 64 << 10, NAMES_MAX);
    interrupt_guard(c->link.fd);
    if (client_each(c, "SELECT keyspace_name, table_name, column_name FROM system_schema.columns", take_name, n,
                    &e) ||
        client_each(c, "SELECT keyspace_name FROM system_schema.keyspaces", take_name, n, &e))
        shell_disconnect(t->shell);
    interrupt_guard(-1);
}

static unsigned char on_tab(EditLine *edit, int ch) {
    static struct completions c; /* too large for the stack of a signal-driven program */
    struct terminal *t;
    struct arena a;
    struct buf before;
    unsigned char rc = CC_REFRESH;
    (void)ch;
    el_get(edit, EL_CLIENTDATA, &t);
    const LineInfo *line = el_line(edit);
    arena_init(&a, 16 << 10, 0);
    buf_init(&before, 0);
    buf_put_slice(&before, buf_slice(&t->text));
    buf_put(&before, line->buffer, (size_t)(line->cursor - line->buffer));
    read_names(t);
    completions_find(buf_slice(&before), t->shell->keyspace, &t->names, &a, &c);
    size_t common = completions_common(&c);
    if (!c.n) {
        rc = CC_ERROR;
    } else if (c.n == 1 || common > c.typed) {
        const char *text = arena_printf(&a, "%.*s%s", (int)common, c.list[0], c.n == 1 && !c.goes_on ? " " : "");
        el_deletestr(edit, (int)c.typed);
        if (text && el_insertstr(edit, text) < 0) rc = CC_ERROR;
    } else {
        struct buf out;
        buf_init(&out, 0);
        buf_u8(&out, '\n');
        grid_put_names(c.list, c.n, &out);
        fwrite(buf_slice(&out).p, 1, out.n, stdout);
        fflush(stdout);
        buf_fini(&out);
        rc = CC_REDISPLAY;
    }
    buf_fini(&before);
    arena_fini(&a);
    return rc;
}

/* ---- history ---- */

bool terminal_is_secret(struct slice text) {
    struct token_reader r;
    struct token t;
    struct err ignored = {0};
    token_reader_init(&r, text, &ignored);
    for (bool first = true; (t = token_next(&r)).code && t.code != T_ERROR; first = false)
        if ((first && script_is_word(t.text, "LOGIN")) || script_is_word(t.text, "PASSWORD")) return true;
    return t.code == T_ERROR &&
           memmem(text.p, text.n, "PASSWORD", 8); /* a statement that cannot be read may hold one */
}

/* Each line of a statement becomes an entry, so that the user can recall it as typed. */
static void remember(struct terminal *t, struct slice text) {
    HistEvent event;
    if (terminal_is_secret(text)) return;
    for (size_t i = 0; i < text.n;) {
        const uint8_t *end = memchr(text.p + i, '\n', text.n - i);
        size_t n = end ? (size_t)(end - text.p) - i : text.n - i;
        char *line = n ? strndup((const char *)text.p + i, n) : NULL;
        if (line) history(t->history, &event, H_ENTER, line);
        free(line);
        i += n + 1;
    }
    HistEvent saved;
    int fd = *t->history_path ? open(t->history_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    FILE *f = fd >= 0 && !fchmod(fd, 0600) ? fdopen(fd, "w") : NULL;
    if (f) history(t->history, &saved, H_SAVE_FP, f);
    if (f) fclose(f);
    else if (fd >= 0) close(fd);
}

/* ---- lines ---- */

static char *prompt(EditLine *edit) {
    struct terminal *t;
    el_get(edit, EL_CLIENTDATA, &t);
    return (char *)t->prompt.p;
}

/* Reads one UTF-8 character; libedit's EL_GETCFN. */
static int read_character(EditLine *edit, wchar_t *out) {
    mbstate_t state = {0};
    (void)edit;
    for (;;) {
        int c = interrupt_read();
        if (c < 0) return interrupt_seen() ? -1 : 0;
        char byte = (char)c;
        size_t n = mbrtowc(out, &byte, 1, &state);
        if (n == 0 || n == 1) return 1;
        if (n == (size_t)-1) state = (mbstate_t){0};
    }
}

/* false: the end of the input. */
static bool read_line(struct terminal *t) {
    int n = 0;
    const struct shell *s = t->shell;
    buf_clear(&t->prompt, SIZE_MAX);
    if (t->text.n) {
        buf_put_str(&t->prompt, "   ... ");
    } else {
        if (s->options.user) buf_printf(&t->prompt, "%s@", s->options.user);
        buf_printf(&t->prompt, "cqlsh%s%s> ", *s->keyspace ? ":" : "", s->keyspace);
    }
    buf_u8(&t->prompt, 0);
    const char *line = el_gets(t->edit, &n);
    if (line && n > 0) {
        buf_put(&t->text, line, (size_t)n);
        if (buf_failed(&t->text)) {
            shell_complain(t->shell, "A statement may have at most %d MiB.", STATEMENT_MAX >> 20);
            buf_fini(&t->text);
            buf_init(&t->text, STATEMENT_MAX);
            return true;
        }
        size_t done = run_text(t->shell, buf_slice(&t->text), false);
        if (done) remember(t, slice_of(t->text.p, done));
        memmove(t->text.p, t->text.p + done, t->text.n - done);
        t->text.n -= done;
    } else if (interrupt_seen()) {
        shell_say("^C\n");
        buf_clear(&t->text, SIZE_MAX);
    } else {
        shell_say("\n");
        return false;
    }
    return true;
}

int terminal_run(struct shell *s, struct err *e) {
    struct terminal t = {.shell = s,
                         .edit = el_init("tally", stdin, show_raw(stdout), show_raw(stderr)),
                         .history = history_init()};
    const char *home = getenv("HOME");
    HistEvent event;
    if (!t.edit || !t.history) {
        if (t.edit) el_end(t.edit);
        if (t.history) history_end(t.history);
        return err_nomem(e);
    }
    buf_init(&t.text, STATEMENT_MAX);
    buf_init(&t.prompt, 0);
    arena_init(&t.names.arena, 64 << 10, NAMES_MAX);
    interrupt_init();
    history(t.history, &event, H_SETSIZE, HISTORY_LINES);
    history(t.history, &event, H_SETUNIQUE, 1);
    if (home && *home) {
        snprintf(t.history_path, sizeof(t.history_path), "%s/.tally_cql_history", home);
        history(t.history, &event, H_LOAD, t.history_path);
    }
    el_set(t.edit, EL_CLIENTDATA, &t);
    el_set(t.edit, EL_EDITOR, "emacs");
    el_set(t.edit, EL_PROMPT, prompt);
    el_set(t.edit, EL_HIST, history, t.history);
    el_set(t.edit, EL_GETCFN, read_character);
    el_set(t.edit, EL_ADDFN, "cql-complete", "Completes a word of CQL", on_tab);
    el_set(t.edit, EL_BIND, "\t", "cql-complete", NULL);
    el_set(t.edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(t.edit, NULL);
    shell_say("Connected to %s at %s:%u\n", s->cluster, s->options.link.host, s->options.link.port);
    shell_say("[tally cql %s | Cassandra %s | CQL spec %s | Native protocol v%u]\nUse HELP for help.\n", TALLY_VERSION,
              s->release, s->cql_version, s->client.version);
    while (!s->leaves && read_line(&t)) continue;
    el_end(t.edit);
    history_end(t.history);
    free(t.names.list);
    arena_fini(&t.names.arena);
    buf_fini(&t.prompt);
    buf_fini(&t.text);
    return 0;
}
