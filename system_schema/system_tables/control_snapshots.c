/* system_control.snapshots: states of the server, or of one keyspace, saved under a name and put
 * back. INSERT saves, UPDATE ... SET put_back = true puts back, DELETE removes. */
#include "engine/state.h"
#include "system_schema/system_tables/system_table.h"

static int emit(void *arg, const char *name, const char *keyspace, int64_t saved_s) {
    struct row_out *ro = arg;
    row_text_copy(ro, "name", name);
    if (*keyspace) row_text_copy(ro, "keyspace_name", keyspace);
    row_long(ro, "saved_at", saved_s * 1000);
    return row_out_emit(ro);
}

YIELDS(control_snapshots) {
    return eng_state_each(context_of(ro->table)->catalog->objects->eng, emit, ro, ro->ctx->err);
}

enum { NAME_ROOM = 64 };

static int take_text(struct value v, char out[NAME_ROOM], struct err *e) {
    size_t n = v.n > 0 ? (size_t)v.n : 0;
    if (n >= NAME_ROOM || (n && memchr(v.p, 0, n)))
        return err_invalid(e, "A name in system_control.snapshots has at most %d bytes, none of them 0", NAME_ROOM - 1);
    if (n) memcpy(out, v.p, n);
    out[n] = 0;
    return 0;
}

WRITES(control_snapshots) {
    const struct catalog_states *s = context_of(table)->states;
    struct value name = virtual_given(change, table, "name"), back = virtual_given(change, table, "put_back"),
                 of = virtual_given(change, table, "keyspace_name");
    char text[NAME_ROOM], keyspace[NAME_ROOM];
    if (!s) return err_invalid(ctx->err, "This server saves no states");
    if (!value_is_unset(virtual_given(change, table, "saved_at")))
        return err_invalid(ctx->err, "Column saved_at of system_control.snapshots is read-only");
    if (take_text(name, text, ctx->err)) return -1;
    bool puts_back = !value_is_unset(back) && back.n == 1 && *back.p;
    if (change->kind == VIRTUAL_DELETE) return s->remove(s->arg, text, ctx->err);
    if (change->kind == VIRTUAL_INSERT) {
        if (!value_is_unset(back)) return err_invalid(ctx->err, "INSERT saves a state, and UPDATE puts it back");
        if (value_is_unset(of)) return s->save(s->arg, text, "", ctx->err);
        if (take_text(of, keyspace, ctx->err)) return -1;
        const struct schema_keyspace *ks = schema_keyspace_find(ctx->schema, keyspace);
        if (ks && ks->is_system)
            return err_invalid(ctx->err, "Keyspace %s is the server's own: save a state without keyspace_name",
                               keyspace);
        if (!ks) return err_invalid(ctx->err, "Keyspace '%s' doesn't exist", keyspace);
        return s->save(s->arg, text, keyspace, ctx->err);
    }
    if (!value_is_unset(of))
        return err_invalid(ctx->err, "Column keyspace_name of system_control.snapshots is set when a state is saved");
    return puts_back ? s->put_back(s->arg, text, ctx->err)
                     : err_invalid(ctx->err, "UPDATE system_control.snapshots SET put_back = true puts a state back");
}
