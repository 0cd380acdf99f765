#include "base/usage.h"

int usage_format_of(const char *name) {
    static const char *const names[USAGE_FORMATS] = {[USAGE_HELP] = "text", [USAGE_JSON] = "json"};
    for (int f = 0; f < USAGE_FORMATS; f++)
        if (!strcmp(names[f], name)) return f;
    return -1;
}

/* ---- help ---- */

static void help_command(struct buf *out, const struct usage_program *p, const struct usage_command *c) {
    if (*c->name)
        buf_printf(out, "%s %s: %s\n\nusage: %s %s %s\n\n", p->name, c->name, c->what, p->name, c->name, c->arguments);
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        if (f->group) buf_printf(out, "%s%s:\n", i ? "\n" : "", f->group);
        buf_printf(out, "  --%s%s%s\n        %s", f->name, f->argument ? " " : "", f->argument ? f->argument : "",
                   f->help);
        buf_printf(out, f->otherwise && *f->otherwise ? " (%s)\n" : "%s\n", f->otherwise ? f->otherwise : "");
    }
    if (*c->name) buf_put_str(out, "  --help\n        this text\n");
    else buf_put_str(out, "  --help[=text|json]\n        this text, or the same for programs\n");
    if (c->n_examples) buf_put_str(out, "\nexamples:\n");
    for (uint32_t i = 0; i < c->n_examples; i++)
        buf_printf(out, "  %s\n        %s\n", c->examples[i].line, c->examples[i].what);
}

/* ---- JSON ---- */

/* first: no comma before it. value NULL: the member is left out. */
static void put_member(struct buf *out, bool first, const char *name, const char *value) {
    if (!value) return;
    buf_printf(out, "%s\"%s\":", first ? "" : ",", name);
    buf_json_str(out, slice_str(value));
}

static void json_command(struct buf *out, const struct usage_command *c) {
    buf_u8(out, '{');
    put_member(out, true, "command", c->name);
    put_member(out, false, "what", c->what);
    put_member(out, false, "arguments", c->arguments);
    buf_put_str(out, ",\"flags\":[");
    for (uint32_t i = 0; i < c->n_flags; i++) {
        const struct usage_flag *f = &c->flags[i];
        buf_put_str(out, i ? ",{" : "{");
        put_member(out, true, "name", f->name);
        put_member(out, false, "argument", f->argument);
        put_member(out, false, "help", f->help);
        put_member(out, false, "default", f->otherwise);
        put_member(out, false, "group", f->group);
        buf_u8(out, '}');
    }
    buf_put_str(out, "],\"examples\":[");
    for (uint32_t i = 0; i < c->n_examples; i++) {
        buf_put_str(out, i ? ",{" : "{");
        put_member(out, true, "line", c->examples[i].line);
        put_member(out, false, "what", c->examples[i].what);
        buf_u8(out, '}');
    }
    buf_put_str(out, "]}\n");
}

/* ---- entry points ---- */

void usage_begin(struct buf *out, enum usage_format f, const struct usage_program *p) {
    if (f != USAGE_JSON) return;
    buf_u8(out, '{');
    put_member(out, true, "program", p->name);
    put_member(out, false, "what", p->what);
    put_member(out, false, "version", p->version);
    put_member(out, false, "section", p->section);
    put_member(out, false, "notes", p->notes);
    buf_put_str(out, ",\"exits\":[");
    for (uint32_t i = 0; i < p->n_exits; i++) {
        buf_printf(out, "%s{\"code\":%d", i ? "," : "", p->exits[i].code);
        put_member(out, false, "what", p->exits[i].what);
        buf_u8(out, '}');
    }
    buf_put_str(out, "]}\n");
}

void usage_command(struct buf *out, enum usage_format f, const struct usage_program *p, const struct usage_command *c) {
    if (f == USAGE_JSON) json_command(out, c);
    else help_command(out, p, c);
}

void usage_end(struct buf *out, enum usage_format f, const struct usage_program *p) {
    if (f == USAGE_JSON) return;
    buf_put_str(out, "\nexit code:");
    for (uint32_t i = 0; i < p->n_exits; i++)
        buf_printf(out, "%s %d %s", i ? "," : "", p->exits[i].code, p->exits[i].what);
    buf_put_str(out, "\n");
}
