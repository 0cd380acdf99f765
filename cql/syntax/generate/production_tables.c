/* A tool of the build: reads production.def and prints the automaton that production.h describes,
 * as a C header. A mistake in the table is a build error. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cql/syntax/production.h"

enum { NAMES_MAX = 512, NODES_MAX = 8192, SETS_MAX = 16, NAME_MAX_BYTES = 48 };

struct source {
    const char *name, *text;
};
static const struct source rules[] = {
#define PRODUCTION(name, text) {#name, text},
#define SET(name, text)
#include "cql/syntax/production.def"
#undef PRODUCTION
#undef SET
};
static const struct source sets[] = {
#define PRODUCTION(name, text)
#define SET(name, text) {#name, text},
#include "cql/syntax/production.def"
#undef PRODUCTION
#undef SET
};
enum { N_RULES = sizeof(rules) / sizeof(*rules), N_SETS = sizeof(sets) / sizeof(*sets) };

static char terminals[NAMES_MAX][NAME_MAX_BYTES];
static int n_terminals;
static struct production_node nodes[NODES_MAX];
static int n_nodes;
static struct production_alternative alternatives[NODES_MAX];
static int n_alternatives;
static int starts[N_RULES];
static unsigned char members[N_SETS][NAMES_MAX];

static void die(const char *why, const char *at) {
    fprintf(stderr, "production.def: %s: %.60s\n", why, at);
    exit(1);
}

static int find(const struct source *all, int n, const char *word, size_t length) {
    for (int i = 0; i < n; i++)
        if (strlen(all[i].name) == length && !memcmp(all[i].name, word, length)) return i;
    return -1;
}

/* The name of a token as errors show it: K_SELECT, '(' , IDENT. */
static void terminal_name(char *out, const char *word, size_t n) {
    const char *prefix = *word == '\'' ? "" : *word == '@' ? "" : "K_";
    if (*word == '@') word++, n--;
    if (snprintf(out, NAME_MAX_BYTES, "%s%.*s", prefix, (int)n, word) >= NAME_MAX_BYTES) die("a long word", word);
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static int terminal(const char *word, size_t n) {
    char name[NAME_MAX_BYTES];
    terminal_name(name, word, n);
    const char *at = bsearch(name, terminals, (size_t)n_terminals, NAME_MAX_BYTES, compare_names);
    if (!at) die("no such token", name);
    return (int)((at - terminals[0]) / NAME_MAX_BYTES);
}

/* The word or sign at p: its length. */
static size_t word_length(const char *p) {
    size_t n = 0;
    if (*p == '\'') {
        const char *end = strchr(p + 1, '\'');
        if (!end) die("a quote is open", p);
        return (size_t)(end - p) + 1;
    }
    if (*p == '@') n = 1;
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
    if (!n || (*p == '@' && n == 1)) die("what is this", p);
    return n;
}

static void collect(const char *text) {
    for (const char *p = text; *p;) {
        if (strchr(" |()?*![]", *p)) {
            p++;
            continue;
        }
        size_t n = word_length(p);
        if (find(rules, N_RULES, p, n) < 0 && find(sets, N_SETS, p, n) < 0) {
            if (islower((unsigned char)*p)) die("no such production", p);
            char name[NAME_MAX_BYTES];
            terminal_name(name, p, n);
            int known = 0;
            for (int i = 0; i < n_terminals && !known; i++) known = !strcmp(terminals[i], name);
            if (!known) memcpy(terminals[n_terminals++], name, sizeof(name));
            if (n_terminals == NAMES_MAX) die("too many tokens", p);
        }
        p += n;
    }
}

static int node(enum production_kind kind, int arg) {
    if (n_nodes == NODES_MAX) die("too many nodes", "");
    nodes[n_nodes] = (struct production_node){.kind = (uint8_t)kind, .arg = (uint16_t)arg};
    return n_nodes++;
}

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && *p == ' ') p++;
    return p;
}

/* Where the parenthesis at p is closed, behind it. */
static const char *group_end(const char *p, const char *end) {
    int depth = 0;
    for (; p < end; p++) {
        if (*p == '\'') p = strchr(p + 1, '\'');
        else if (*p == '(') depth++;
        else if (*p == ')' && !--depth) return p + 1;
    }
    die("a parenthesis is open", p);
    return NULL;
}

static const char *alternative_end(const char *p, const char *end) {
    while (p < end && *p != '|') {
        if (*p == '\'') p = strchr(p + 1, '\'') + 1;
        else if (*p == '(') p = group_end(p, end);
        else p++;
    }
    return p;
}

static int sequence(const char *p, const char *end, int next);

/* Makes a choice between the alternatives of the text, each of which leads to next; with skip >= 0
 * a last alternative leads to skip. */
static int choice(const char *p, const char *end, int next, int skip, int flags) {
    struct production_alternative own[64];
    int n = 0, at = node(PRODUCTION_CHOICE, 0);
    if (next < 0) next = at; /* a loop */
    for (const char *from = p;; from++) {
        const char *to = alternative_end(from, end);
        const char *start = skip_blanks(from, to);
        own[n].guard = 0;
        if (start < to && *start == '[') {
            const char *close = strchr(start, ']');
            int guard = find(rules, N_RULES, start + 1, (size_t)(close - start) - 1);
            if (guard < 0) die("no such production", start);
            own[n].guard = (uint16_t)(guard + 1);
            start = close + 1;
        }
        own[n++].node = (uint16_t)sequence(start, to, next);
        from = to;
        if (from >= end) break;
    }
    if (skip >= 0) own[n++] = (struct production_alternative){.node = (uint16_t)skip};
    nodes[at].arg = (uint16_t)n_alternatives;
    nodes[at].n = (uint8_t)n;
    nodes[at].flags = (uint8_t)flags;
    memcpy(alternatives + n_alternatives, own, (size_t)n * sizeof(*own));
    n_alternatives += n;
    return at;
}

/* Makes the nodes for the text from p to end, which lead on to next. */
static int sequence(const char *p, const char *end, int next) {
    int first = node(PRODUCTION_EMPTY, 0), last = first;
    for (p = skip_blanks(p, end); p < end; p = skip_blanks(p, end)) {
        const char *item = p;
        bool group = *p == '(';
        p = group ? group_end(p, end) : p + word_length(p);
        const char *inner = group ? item + 1 : item, *inner_end = group ? p - 1 : p;
        char mark = p < end && (*p == '?' || *p == '*') ? *p++ : 0;
        int flags = mark ? PRODUCTION_OPTIONAL : 0;
        if (p < end && *p == '!') flags |= PRODUCTION_BY_TABLE, p++;
        int at, out;
        if (group || mark) {
            out = node(PRODUCTION_EMPTY, 0);
            bool one = !mark && alternative_end(inner, inner_end) == inner_end;
            at = one ? sequence(inner, inner_end, out)
                     : choice(inner, inner_end, mark == '*' ? -1 : out, mark ? out : -1, flags);
        } else {
            size_t n = (size_t)(p - item);
            int rule = find(rules, N_RULES, item, n), set = find(sets, N_SETS, item, n);
            at = out = rule >= 0 ? node(PRODUCTION_CALL, rule)
                                 : node(PRODUCTION_TOKEN, set >= 0 ? n_terminals + set : terminal(item, n));
        }
        nodes[last].next = (uint16_t)at;
        last = out;
    }
    nodes[last].next = (uint16_t)next;
    return first;
}

static void fill_set(int set, const char *text) {
    for (const char *p = text; *p;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        size_t n = word_length(p);
        int other = find(sets, N_SETS, p, n);
        if (other >= 0) fill_set(set, sets[other].text);
        else members[set][terminal(p, n)] = 1;
        p += n;
    }
}

static void print_tables(void) {
    printf("/* Made from production.def by production_tables.c. */\nenum { PRODUCTION_TERMINALS = %d, PRODUCTION_EOF = "
           "%d };\n",
           n_terminals, terminal("@EOF", 4));
    printf("static const char *const production_terminals[] = {\n");
    for (int i = 0; i < n_terminals; i++) printf("    \"%s\",\n", terminals[i]);
    printf("};\nstatic const struct production_node production_nodes[] = {\n");
    for (int i = 0; i < n_nodes; i++)
        printf("    {.kind = %d, .flags = %d, .n = %d, .arg = %d, .next = %d},\n", nodes[i].kind, nodes[i].flags,
               nodes[i].n, nodes[i].arg, nodes[i].next);
    printf("};\nstatic const struct production_alternative production_alternatives[] = {\n");
    for (int i = 0; i < n_alternatives; i++)
        printf("    {.node = %d, .guard = %d},\n", alternatives[i].node, alternatives[i].guard);
    printf("};\nstatic const uint16_t production_starts[] = {\n");
    for (int i = 0; i < N_RULES; i++) printf("    %d, /* %s */\n", starts[i], rules[i].name);
    printf("};\nstatic const uint16_t production_callers[] = {\n");
    int n_callers = 0, from[N_RULES + 1];
    for (int rule = 0; rule < N_RULES; rule++) {
        from[rule] = n_callers;
        for (int i = 0; i < n_nodes; i++)
            if (nodes[i].kind == PRODUCTION_CALL && nodes[i].arg == rule) n_callers++, printf("    %d,\n", i);
    }
    from[N_RULES] = n_callers;
    printf("};\nstatic const uint16_t production_callers_from[] = {");
    for (int rule = 0; rule <= N_RULES; rule++) printf("%d, ", from[rule]);
    printf("};\nstatic const bool production_sets[][PRODUCTION_TERMINALS] = {\n");
    for (int i = 0; i < N_SETS; i++) {
        printf("    {");
        for (int t = 0; t < n_terminals; t++) printf("%d,", members[i][t]);
        printf("}, /* %s */\n", sets[i].name);
    }
    printf("};\nstatic const char *const production_set_names[] = {");
    for (int i = 0; i < N_SETS; i++) printf("\"%s\", ", sets[i].name);
    printf("};\nstatic const bool production_set_unseen[] = {");
    for (int i = 0; i < N_SETS; i++) printf("%d, ", isupper((unsigned char)*sets[i].name) ? 1 : 0);
    printf("};\n");
}

int main(void) {
    for (int i = 0; i < N_RULES; i++) collect(rules[i].text);
    for (int i = 0; i < N_SETS; i++) collect(sets[i].text);
    qsort(terminals, (size_t)n_terminals, NAME_MAX_BYTES, compare_names);
    for (int i = 0; i < N_SETS; i++) fill_set(i, sets[i].text);
    node(PRODUCTION_EMPTY, 0); /* 0 is no node */
    for (int i = 0; i < N_RULES; i++) {
        const char *text = rules[i].text, *end = text + strlen(text);
        int stop = node(PRODUCTION_END, i);
        bool by_table = *text == '!';
        text += by_table;
        starts[i] = alternative_end(text, end) == end ? sequence(text, end, stop)
                                                      : choice(text, end, stop, -1, by_table ? PRODUCTION_BY_TABLE : 0);
    }
    print_tables();
    return 0;
}
