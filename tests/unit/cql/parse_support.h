/* What the parser's tests share: reading data files line by line, and one parse with its own arena. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cql/syntax/ast.h"

struct parsed {
    struct arena arena;
    struct err err;
    struct ast_stmt *stmt;
};

/* On the heap, as struct err is large; to be given to parsed_free. The text must outlive it. */
static inline struct parsed *parse_text(struct slice text) {
    struct parsed *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    arena_init(&r->arena, 4096, 1 << 20);
    r->stmt = cql_parse(&r->arena, text, true, &r->err);
    return r;
}

static inline void parsed_free(struct parsed *r) {
    arena_fini(&r->arena);
    free(r);
}

/* Calls each with every line of a file of tests/unit/cql/data, "\n" in it made a line end. Returns
 * how many there were. */
static inline int each_line(const char *name, void (*each)(char *line)) {
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/unit/cql/data/%s", TALLY_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int lines = 0;
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[n - 1] == '\n') line[n - 1] = 0;
        if (!line[0] || line[0] == '#') continue;
        char *to = line;
        for (const char *p = line; *p; p++) {
            bool escape = p[0] == '\\' && p[1] == 'n';
            *to++ = escape ? '\n' : *p;
            p += escape;
        }
        *to = 0;
        each(line);
        lines++;
    }
    free(line);
    fclose(f);
    return lines;
}
