#include "tools/tally/cql/complete.h"

#include <strings.h>

#include "cql/request/consistency.h"
#include "tools/tally/cql/split.h"

static const char *const keywords[] = {
#define KEYWORD(word, token, reserved) word,
#include "cql/syntax/keyword.def"
#undef KEYWORD
};
static const char *const statements[] = {"ALTER",  "APPLY", "BEGIN",  "CREATE", "DELETE",   "DROP",   "GRANT",
                                         "INSERT", "LIST",  "REVOKE", "SELECT", "TRUNCATE", "UPDATE", "USE"};

static const char *const described[] = {"CLUSTER", "KEYSPACE", "KEYSPACES", "SCHEMA",
                                        "TABLE",   "TABLES",   "TYPE",      "TYPES"};

struct completing {
    struct arena *a;
    struct slice word; /* the typed part */
    const char *keyspace;
    const struct schema_names *names;
    struct completions *out;
};

static void add(struct completing *c, const char *text) {
    struct completions *out = c->out;
    if (!text || out->n == COMPLETIONS_MAX || strlen(text) < c->word.n ||
        strncasecmp(text, (const char *)c->word.p, c->word.n))
        return;
    for (uint32_t i = 0; i < out->n; i++)
        if (!strcmp(out->list[i], text)) return;
    out->list[out->n++] = text;
}

/* Adds a keyword in the case of its first typed letter. */
static void add_keyword(struct completing *c, const char *word) {
    bool lower = c->word.n && c->word.p[0] >= 'a';
    char *text = arena_printf(c->a, "%s", word);
    for (char *t = text; t && *t; t++) {
        if (lower && *t >= 'A' && *t <= 'Z') *t += 'a' - 'A';
        if (!lower && *t >= 'a' && *t <= 'z') *t -= 'a' - 'A';
    }
    add(c, text);
}

static const char *identifier(struct completing *c, const char *name) {
    struct buf text;
    buf_init(&text, 0);
    ast_print_name(name, &text);
    const char *copy = arena_printf(c->a, "%.*s", SLICE_FMT(buf_slice(&text)));
    buf_fini(&text);
    return copy;
}

static void add_keyspaces(struct completing *c, const char *behind) {
    for (uint32_t i = 0; i < c->names->n; i++) {
        const struct schema_name *n = &c->names->list[i];
        const char *name =
            i && !strcmp(c->names->list[i - 1].keyspace, n->keyspace) ? NULL : identifier(c, n->keyspace);
        if (name) add(c, arena_printf(c->a, "%s%s", name, behind));
    }
}

/* Adds the tables: with a dot in the typed word, qualified by their keyspaces; else those of the
 * current keyspace, and the keyspaces. */
static void add_tables(struct completing *c) {
    const char *dot = memchr(c->word.p, '.', c->word.n), *before = NULL;
    for (uint32_t i = 0; i < c->names->n; i++) {
        const struct schema_name *n = &c->names->list[i];
        if (!n->table || (before && !strcmp(before, n->table))) continue;
        before = n->table;
        if (dot) add(c, arena_printf(c->a, "%s.%s", identifier(c, n->keyspace), identifier(c, n->table)));
        else if (!strcmp(n->keyspace, c->keyspace)) add(c, identifier(c, n->table));
    }
    if (dot) return;
    uint32_t tables = c->out->n;
    add_keyspaces(c, ".");
    c->out->goes_on = !tables && c->out->n == 1;
}

static bool is_one_of(const struct token *t, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (script_is_word(t->text, words[i])) return true;
    return false;
}
#define IS(t, ...) is_one_of((t), (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static bool names_table(const struct token *t) {
    return IS(t, "FROM", "INTO", "UPDATE", "TABLE", "TRUNCATE", "DESCRIBE", "DESC", "ON");
}

struct context {
    uint32_t n; /* tokens before the typed word */
    struct token first, last;
    struct slice keyspace, table; /* named by the statement */
};

static struct slice unquoted(struct completing *c, const struct token *t) {
    return t->text.n && t->text.p[0] == '"' ? token_unquote(c->a, t->text) : t->text;
}

void completions_find(struct slice before, const char *keyspace, const struct schema_names *names, struct arena *a,
                      struct completions *out) {
    struct context x = {0};
    size_t from = 0, word = before.n;
    for (;;) { /* to the unfinished statement or command at the end of the text */
        struct split_item item = split_next(slice_of(before.p + from, before.n - from), false);
        from = item.kind == SPLIT_NOTHING ? before.n : from + (item.kind == SPLIT_UNFINISHED ? item.at : item.used);
        if (item.kind == SPLIT_NOTHING || item.kind == SPLIT_UNFINISHED) break;
    }
    for (; word > from; word--) {
        uint8_t c = before.p[word - 1];
        if ((c | 0x20) < 'a' && !(c >= '0' && c <= '9') && !memchr("_.\"", c, 3)) break;
    }
    struct completing c = {
        .a = a, .word = slice_of(before.p + word, before.n - word), .keyspace = keyspace, .names = names, .out = out};
    *out = (struct completions){.typed = c.word.n};
    struct token_reader r;
    struct token t;
    struct err ignored = {0};
    bool qualifies = false;
    token_reader_init(&r, slice_of(before.p + from, word - from), &ignored);
    while ((t = token_next(&r)).code && t.code != T_ERROR) {
        if (x.n && names_table(&x.last)) {
            x.keyspace = slice_str(c.keyspace);
            x.table = unquoted(&c, &t);
        } else if (qualifies) {
            x.keyspace = x.table;
            x.table = unquoted(&c, &t);
        }
        qualifies = x.table.p && slice_is(t.text, ".");
        if (!x.n++) x.first = t;
        x.last = t;
    }
    if (!x.n) {
        for (size_t i = 0; i < ARRAY_LEN(statements); i++) add_keyword(&c, statements[i]);
        for (size_t i = 0; i < n_shell_commands; i++) add_keyword(&c, shell_commands[i].word);
    } else if (IS(&x.last, "CONSISTENCY")) {
        for (uint16_t i = 0; i <= CL_LOCAL_ONE; i++) add_keyword(&c, consistency_name(i));
    } else if (x.n == 1 && IS(&x.first, "EXPAND", "TRACING", "PAGING", "CHARGE", "WAIT")) {
        add_keyword(&c, "ON");
        add_keyword(&c, "OFF");
    } else if (x.n == 1 && IS(&x.first, "HELP", "?")) {
        for (size_t i = 0; i < n_shell_commands; i++) add_keyword(&c, shell_commands[i].word);
    } else if (x.n == 1 && IS(&x.first, "SERIAL")) {
        add_keyword(&c, "CONSISTENCY");
    } else if (IS(&x.last, "USE", "KEYSPACE")) {
        add_keyspaces(&c, "");
    } else if (names_table(&x.last)) {
        add_tables(&c);
        if (x.n == 1 && IS(&x.first, "DESCRIBE", "DESC"))
            for (size_t i = 0; i < ARRAY_LEN(described); i++) add_keyword(&c, described[i]);
    } else {
        /* Adds the columns of the table that the statement has named so far. */
        for (uint32_t i = 0; x.table.p && i < c.names->n; i++) {
            const struct schema_name *n = &c.names->list[i];
            if (n->column && slice_is(x.table, n->table) && slice_is(x.keyspace, n->keyspace))
                add(&c, identifier(&c, n->column));
        }
        for (size_t i = 0; c.word.n && i < ARRAY_LEN(keywords); i++) add_keyword(&c, keywords[i]);
    }
}

size_t completions_common(const struct completions *c) {
    size_t n = c->n ? strlen(c->list[0]) : 0;
    for (uint32_t i = 1; i < c->n; i++) {
        size_t k = 0;
        while (k < n && c->list[i][k] == c->list[0][k]) k++;
        n = k;
    }
    return n;
}
