#include "tools/tally/cql/split.h"

const struct shell_command shell_commands[] = {
#define SHELL_COMMAND(id, word_, arguments_, what_) {.word = word_, .arguments = arguments_, .what = what_},
#include "tools/tally/cql/shell_command.def"
#undef SHELL_COMMAND
};
const size_t n_shell_commands = ARRAY_LEN(shell_commands);

int split_command(struct slice word) {
    if (slice_is(word, "?")) word = slice_str("HELP");
    for (size_t i = 0; i < n_shell_commands; i++)
        if (script_is_word(word, shell_commands[i].word)) return (int)i;
    return -1;
}

static bool is_blank(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool begins(struct slice text, size_t at, const char *with) {
    size_t n = strlen(with);
    return text.n - at >= n && !memcmp(text.p + at, with, n);
}

/* The offset after a comment that begins at at; at if none begins there. An open comment extends to
 * the end of the text. */
static size_t skip_comment(struct slice text, size_t at) {
    bool line = begins(text, at, "--") || begins(text, at, "//"), block = begins(text, at, "/*");
    if (!line && !block) return at;
    for (at += 2; at < text.n; at++) {
        if (line && text.p[at] == '\n') return at + 1;
        if (block && begins(text, at, "*/")) return at + 2;
    }
    return text.n;
}

/* Does the text end inside a quote? A semicolon inside a quote does not end a statement. */
static bool ends_in_quote(struct slice text) {
    uint8_t quote = 0;
    for (size_t i = 0; i < text.n;) {
        size_t behind = quote ? i : skip_comment(text, i);
        if (behind > i) {
            i = behind;
            continue;
        }
        uint8_t c = text.p[i++];
        if (quote) quote = c == quote ? 0 : quote;
        else if (c == '\'' || c == '"') quote = c;
    }
    return quote != 0;
}

struct split_item split_next(struct slice text, bool at_end) {
    size_t at = 0;
    for (size_t behind; at < text.n; at = behind) { /* skip blanks, semicolons and comments */
        behind = is_blank(text.p[at]) || text.p[at] == ';' ? at + 1 : skip_comment(text, at);
        if (behind == at) break;
    }
    if (at == text.n) return (struct split_item){.used = at};
    size_t word = at;
    while (word < text.n && (text.p[word] | 0x20) >= 'a' && (text.p[word] | 0x20) <= 'z') word++;
    if (word == at && text.p[at] == '?') word++;
    int command = split_command(slice_of(text.p + at, word - at));
    if (command >= 0 && (word == text.n || is_blank(text.p[word]) || text.p[word] == ';')) {
        /* a command ends at the end of its line, or at a semicolon outside of quotes */
        size_t end = at;
        for (uint8_t quote = 0; end < text.n; end++) {
            uint8_t c = text.p[end];
            if (c == '\n' || (c == ';' && !quote)) break;
            if (quote) quote = c == quote ? 0 : quote;
            else if (c == '\'' || c == '"') quote = c;
        }
        struct split_item item = {.kind = SPLIT_COMMAND, .text = slice_of(text.p + at, end - at), .at = at,
                                  .used = end + (end < text.n), .command = command};
        while (item.text.n && is_blank(item.text.p[item.text.n - 1])) item.text.n--;
        if (end == text.n && !at_end) item.kind = SPLIT_UNFINISHED;
        return item;
    }
    struct script script;
    struct script_statement statement;
    script_of(&script, "", slice_of(text.p + at, text.n - at));
    bool found = script_next(&script, &statement);
    struct split_item item = {.kind = SPLIT_STATEMENT, .text = statement.text, .at = at, .used = at + script.reader.at};
    bool open = !at_end && ends_in_quote(slice_of(text.p + at, script.reader.at));
    if (!found || !statement.ended || open) {
        item.kind = at_end ? SPLIT_STATEMENT : SPLIT_UNFINISHED;
        item.used = text.n;
    }
    return item;
}

int split_words(struct slice command, struct arena *a, struct slice words[SPLIT_WORDS]) {
    int n = 0;
    for (size_t i = 0; i < command.n;) {
        size_t from = i;
        uint8_t quote = command.p[i];
        if (is_blank(quote)) {
            i++;
            continue;
        }
        if (n == SPLIT_WORDS) return -1;
        if (quote != '\'' && quote != '"') {
            while (i < command.n && !is_blank(command.p[i])) i++;
            words[n++] = slice_of(command.p + from, i - from);
            continue;
        }
        for (i++; i < command.n && (command.p[i] != quote || (i + 1 < command.n && command.p[i + 1] == quote)); i++)
            if (command.p[i] == quote) i++;
        if (i >= command.n) return -1;
        i++;
        words[n] = token_unquote(a, slice_of(command.p + from, i - from));
        if (!words[n++].p) return -1;
    }
    return n;
}
