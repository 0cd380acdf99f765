#include "tools/tally/cql/schema_wait.h"

#include "tools/tally/cql/interrupt.h"

enum { PAUSE_MS = 50, PAUSE_MAX_MS = 1000 };

static void put_string(struct buf *out, const char *name) {
    buf_u8(out, '\'');
    for (; *name; name++) {
        buf_u8(out, (uint8_t)*name);
        if (*name == '\'') buf_u8(out, '\'');
    }
    buf_u8(out, '\'');
}

enum progress { UNDER_WAY, DONE, GONE, FAILED };

static enum progress ask(struct shell *s, const struct schema_announced *c, const char *text, bool seen) {
    struct client_answer a;
    struct err e = {0};
    if (shell_ask_system(s, text, &a, &e)) {
        shell_complain_of(s, &a, &e);
        return FAILED;
    }
    bool there = a.has_rows && client_rows_next(&a.rows), dropped = !strcmp(c->what, "DROPPED");
    if (dropped) return there ? UNDER_WAY : DONE;
    if (!there) return seen ? GONE : UNDER_WAY;
    if (!strcmp(c->target, "KEYSPACE")) return DONE;
    const char *status = client_text(&a.rows, &s->client.arena, "status");
    return status && strcmp(status, "ACTIVE") ? UNDER_WAY : DONE;
}

void schema_wait(struct shell *s, const struct schema_announced *c) {
    enum progress progress = UNDER_WAY;
    struct buf text;
    bool keyspace = !strcmp(c->target, "KEYSPACE"), table = !strcmp(c->target, "TABLE");
    buf_init(&text, 0);
    if (keyspace || table || !strcmp(c->target, "TYPE")) { /* other changes are done when they are answered */
        buf_printf(&text, "SELECT %s FROM system_schema_mcs.%s WHERE keyspace_name = ",
                   keyspace ? "keyspace_name" : "status", keyspace ? "keyspaces" : table ? "tables" : "types");
        put_string(&text, c->keyspace);
        if (!keyspace) buf_printf(&text, " AND %s = ", table ? "table_name" : "type_name");
        if (!keyspace) put_string(&text, c->name);
        buf_u8(&text, 0);
        bool seen = false;
        unsigned pause = PAUSE_MS;
        while ((progress = ask(s, c, (const char *)text.p, seen)) == UNDER_WAY && !interrupt_seen()) {
            seen = !keyspace; /* tables and types are visible at once, as CREATING */
            interrupt_sleep_ms(pause);
            if (pause < PAUSE_MAX_MS) pause *= 2;
        }
    }
    if (progress == GONE)
        shell_complain(s, "The creation of %s.%s has failed; see system_schema_mcs.tables_history.", c->keyspace,
                       c->name);
    if (progress == UNDER_WAY && interrupt_seen())
        shell_complain(s, "The schema change goes on in the server; it was not waited for.");
    buf_fini(&text);
}
