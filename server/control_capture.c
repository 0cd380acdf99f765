#include "server/control_capture.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "system_schema/system_tables/row_out.h"

enum { NAME_MAX_BYTES = 64 };
static const char suffix[] = ".tcap";

/* ---- reading the table ---- */

/* The name that started the capture; the path when --capture started it. */
static const char *name_of(struct arena *a, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (n <= sizeof(suffix) - 1 || strcmp(name + n - (sizeof(suffix) - 1), suffix)) return arena_strdup(a, path);
    return (const char *)arena_dup(a, slice_of(name, n - (sizeof(suffix) - 1))).p;
}

static int yield_capture(struct row_out *ro) {
    const struct control_capture *c = ro->table->virt->owner;
    struct capture_status s;
    capture_status_get(c->recorder, &s);
    if (!s.started_us) return 0;
    row_text(ro, "name", name_of(ro->ctx->arena, s.path));
    row_text_copy(ro, "path", s.path);
    row_bool(ro, "running", s.on);
    row_bool(ro, "hashed", s.hashed);
    row_bool(ro, "rotates", s.rotates);
    row_long(ro, "max_bytes", (int64_t)s.max_bytes);
    row_long(ro, "bytes", (int64_t)s.bytes);
    row_long(ro, "requests", (int64_t)s.requests);
    row_long(ro, "dropped", (int64_t)s.dropped);
    row_int(ro, "part", (int32_t)s.part);
    row_long(ro, "started_at", s.started_us / 1000);
    if (!s.on) row_text_copy(ro, "reason", s.reason);
    return row_out_emit(ro);
}

/* ---- writing the table ---- */

static bool is_true(struct value v) { return v.n == 1 && *v.p; }

static bool is_good_name(struct slice s) {
    bool good = s.n > 0 && s.n <= NAME_MAX_BYTES;
    for (size_t i = 0; good && i < s.n; i++) {
        uint8_t c = s.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    }
    return good;
}

static int path_of(const struct control_capture *c, struct slice name, char path[CAPTURE_PATH_MAX], struct err *e) {
    if (!c->data_dir)
        return err_invalid(e, "A server without a data folder keeps no captures; start it with --capture FILE");
    if (!is_good_name(name))
        return err_invalid(e, "The name of a capture has 1 to %d letters, digits, _ or -", NAME_MAX_BYTES);
    int n = snprintf(path, CAPTURE_PATH_MAX, "%s/captures", c->data_dir);
    if (n >= CAPTURE_PATH_MAX - NAME_MAX_BYTES - 8)
        return err_invalid(e, "The path of the data folder is too long for captures");
    if (mkdir(path, 0700) && errno != EEXIST)
        return err_invalid(e, "Cannot make the folder %s: %s", path, strerror(errno));
    snprintf(path + n, CAPTURE_PATH_MAX - (size_t)n, "/%.*s%s", SLICE_FMT(name), suffix);
    return 0;
}

static int begin(const struct control_capture *c, const struct schema_table *t, const struct virtual_change *change,
                 struct slice name, struct err *e) {
    char path[CAPTURE_PATH_MAX];
    struct value max = virtual_given(change, t, "max_bytes");
    struct capture_wish w = {.hashed = is_true(virtual_given(change, t, "hashed")),
                             .rotates = is_true(virtual_given(change, t, "rotates"))};
    if (max.n == 8) w.max_bytes = load_u64(max.p);
    if (max.n == 8 && (int64_t)w.max_bytes < CAPTURE_FILE_MIN)
        return err_invalid(e, "max_bytes is at least %d", CAPTURE_FILE_MIN);
    return path_of(c, name, path, e) ? -1 : capture_start(c->recorder, path, &w, e);
}

static int write_capture(const struct virtual_context *ctx, const struct schema_table *table,
                         const struct virtual_change *change) {
    static const char *const read_only[] = {"path",    "running", "bytes",      "requests",
                                       "dropped", "part",    "started_at", "reason"};
    const struct control_capture *c = table->virt->owner;
    struct value name = virtual_given(change, table, "name");
    struct slice s = name.n > 0 ? value_slice(name) : slice_str("");
    struct capture_status now;
    for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
        if (!value_is_unset(virtual_given(change, table, read_only[i])))
            return err_invalid(ctx->err, "Column %s of system_control.capture is read-only",
                               read_only[i]);
    switch (change->kind) {
    case VIRTUAL_INSERT: return begin(c, table, change, s, ctx->err);
    case VIRTUAL_DELETE: /* ends the running capture, if it has the name */
        capture_status_get(c->recorder, &now);
        if (!now.on || !slice_is(s, name_of(ctx->arena, now.path)))
            return err_invalid(ctx->err, "No capture %.*s is running", SLICE_FMT(s));
        return capture_stop(c->recorder, "it was stopped", ctx->err);
    default: return err_invalid(ctx->err, "INSERT INTO system_control.capture begins a capture, and DELETE ends it");
    }
}

struct virtual_table control_capture_table(struct control_capture *c) {
    return (struct virtual_table){.keyspace = "system_control",
                                  .name = "capture",
                                  .comment = "the capture of requests that runs, or ran last",
                                  .columns = "name text pk, bytes bigint, dropped bigint, hashed boolean, max_bytes "
                                             "bigint, part int, path text, reason text, requests bigint, "
                                             "rotates boolean, running boolean, started_at timestamp",
                                  .virt = {.owner = c, .yield = yield_capture, .write = write_capture, .blocks = true}};
}
