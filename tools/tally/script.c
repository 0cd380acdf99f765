#include "tools/tally/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

void script_of(struct script *s, const char *path, struct slice text) {
    *s = (struct script){.path = path, .text = text, .counted = text.p, .line = 1};
    token_reader_init(&s->reader, text, &s->scratch);
}

int script_open(struct script *s, const char *path, struct err *e) {
    bool standard = !strcmp(path, "-");
    FILE *f = standard ? stdin : fopen(path, "re");
    struct buf b;
    *s = (struct script){.path = path};
    if (!f) return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, strerror(errno));
    buf_init(&b, SCRIPT_MAX);
    for (uint8_t *room; (room = buf_reserve(&b, 64 << 10));) {
        size_t n = fread(room, 1, 64 << 10, f);
        buf_advance(&b, n);
        if (!n) break;
    }
    bool bad = ferror(f);
    if (!standard) fclose(f);
    if (bad || buf_failed(&b)) {
        buf_fini(&b);
        return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, bad ? strerror(errno) : "it is larger than 256 MiB");
    }
    script_of(s, path, buf_slice(&b));
    if (!b.p) s->text = (struct slice){0};
    return 0;
}

void script_close(struct script *s) { free((void *)s->text.p); }

bool script_is_word(struct slice text, const char *word) {
    return text.n == strlen(word) && !strncasecmp((const char *)text.p, word, text.n);
}

bool script_next(struct script *s, struct script_statement *out) {
    struct token t, before = {0};
    bool begun = false, batch = false, applied = false;
    *out = (struct script_statement){0};
    while ((t = token_next(&s->reader)).code) {
        if (t.code == T_ERROR) {
            /* A byte that begins no token becomes part of the statement, and the parser reports the
             * error later. */
            err_clear(&s->scratch);
            if (s->reader.at >= s->reader.text.n) break;
            t.text = slice_of(s->reader.text.p + s->reader.at++, 1);
        }
        bool end = script_is_word(t.text, ";");
        if (!begun && end) continue;
        if (!begun) {
            begun = true;
            batch = script_is_word(t.text, "BEGIN");
            out->text.p = t.text.p;
            /* statements only move forward, so the counting passes over the text once */
            for (; s->counted < t.text.p; s->counted++) s->line += *s->counted == '\n';
            out->line = s->line;
        }
        if (batch && script_is_word(t.text, "BATCH") && before.text.p && script_is_word(before.text, "APPLY"))
            applied = true;
        if (end && (!batch || applied)) return out->ended = true;
        if (!end) out->text.n = (size_t)(t.text.p + t.text.n - out->text.p);
        before = t;
    }
    return begun;
}
