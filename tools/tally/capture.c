/* tally capture: begins, ends and shows the capture of a running server, and prints the contents of a
 * capture's file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/table.h"
#include "tools/tally/trace.h"

struct capture_flags {
    struct remote remote;
    const char *start, *stop, *file;
    uint32_t max_mb;
    bool status, rotate, hashed, up_to_damage, json;
};

/* ---- the capture of a running server ---- */

static int print_status(const struct capture_flags *f, struct client *c, struct err *e) {
    struct client_answer a;
    if (client_run(c, "SELECT * FROM system_control.capture", &a, e)) return -1;
    if (!a.has_rows || !client_rows_next(&a.rows)) {
        printf(f->json ? "{\"ok\":true,\"running\":false}\n" : "no capture has been made since the server started\n");
        return 0;
    }
    bool running = client_int(&a.rows, "running");
    const char *name = client_text(&a.rows, &c->arena, "name"), *path = client_text(&a.rows, &c->arena, "path"),
               *reason = client_text(&a.rows, &c->arena, "reason");
    if (f->json) {
        struct buf out;
        buf_init(&out, 0);
        json_open(&out, NULL, '{');
        json_flag(&out, "ok", true);
        json_flag(&out, "running", running);
        json_text(&out, "name", name);
        json_text(&out, "path", path);
        static const char *const counts[] = {"requests", "dropped", "bytes", "max_bytes"};
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
            json_count(&out, counts[i], (uint64_t)client_int(&a.rows, counts[i]));
        json_text(&out, "reason", reason);
        printf("%.*s}\n", SLICE_FMT(buf_slice(&out)));
        buf_fini(&out);
        return 0;
    }
    printf("%s %s: %s%s\n", running ? "running" : "ended", name, path,
           client_int(&a.rows, "hashed") ? ", values hashed" : "");
    printf("%" PRId64 " requests, %" PRId64 " dropped; %" PRId64 " of %" PRId64 " bytes\n",
           client_int(&a.rows, "requests"), client_int(&a.rows, "dropped"), client_int(&a.rows, "bytes"),
           client_int(&a.rows, "max_bytes"));
    if (*reason) printf("%s\n", reason);
    return 0;
}

/* The name is validated because it becomes part of a statement. */
static int change(const struct capture_flags *f, struct client *c, struct err *e) {
    const char *name = f->start ? f->start : f->stop;
    char text[256];
    struct client_answer a;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (!*name || strspn(name, letters) != strlen(name) || strlen(name) > 64)
        return err_set(e, ERR_CONFIG, "the name of a capture has 1 to 64 letters, digits, _ or -, not '%s'", name);
    if (f->stop) snprintf(text, sizeof(text), "DELETE FROM system_control.capture WHERE name = '%s'", name);
    else
        snprintf(text, sizeof(text),
                 "INSERT INTO system_control.capture (name, max_bytes, rotates, hashed) VALUES ('%s', %" PRIu64
                 ", %s, %s)",
                 name, (uint64_t)f->max_mb << 20, f->rotate ? "true" : "false", f->hashed ? "true" : "false");
    return client_run(c, text, &a, e);
}

/* ---- a file ---- */

struct capture_sums {
    uint64_t requests, refused, throttled, read_halves, write_units, static_units;
};

static void add(struct capture_sums *s, const struct capture_request *q) {
    s->requests++;
    s->refused += q->outcome != 0;
    s->throttled += (q->marks & CAPTURE_THROTTLED) != 0;
    s->read_halves += q->read_halves;
    s->write_units += q->write_halves / 2;
    s->static_units += q->static_halves / 2;
}

static void put_sums(struct buf *out, const struct capture_sums *s) {
    json_count(out, "requests", s->requests);
    json_count(out, "refused", s->refused);
    json_count(out, "throttled", s->throttled);
    json_member(out, "read_units");
    charge_put_units(out, (double)s->read_halves / 2);
    json_count(out, "write_units", s->write_units);
    json_count(out, "static_write_units", s->static_units);
}

static double seconds_of(const struct trace *t) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < t->n; i++) {
        if (t->requests[i].q.began_us < first) first = t->requests[i].q.began_us;
        if (trace_ended(&t->requests[i]) > last) last = trace_ended(&t->requests[i]);
    }
    return t->n ? (double)(last - first) / 1e6 : 0;
}

static void inspect_json(const struct trace *t, const struct capture_sums *all, const struct capture_sums *by_name) {
    struct buf out;
    buf_init(&out, 0);
    json_open(&out, NULL, '{');
    json_flag(&out, "ok", !t->damage[0]);
    buf_printf(&out, ",\"started_us\":%" PRId64 ",\"seconds\":%.6f", t->header.started_us, seconds_of(t));
    json_flag(&out, "hashed", t->header.hashed);
    json_count(&out, "dropped", t->dropped);
    json_count(&out, "parts_gone", t->parts_gone);
    put_sums(&out, all);
    json_text(&out, "damage", t->damage);
    json_open(&out, "statements", '[');
    for (size_t i = 0; i < t->n_names; i++) {
        json_open(&out, NULL, '{');
        json_text(&out, "statement", t->names[i].text);
        put_sums(&out, &by_name[i]);
        buf_u8(&out, '}');
    }
    printf("%.*s]}\n", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
}

static void row(struct table *out, const struct capture_sums *s, const char *name) {
    table_row(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.1f\t%" PRIu64 "\t%" PRIu64 "\t%s", s->requests, s->refused,
              s->throttled, (double)s->read_halves / 2, s->write_units, s->static_units, name);
}

static void inspect_text(const struct trace *t, const struct capture_sums *all, const struct capture_sums *by_name) {
    static const struct table_column columns[] = {{"requests", true},   {"refused", true},     {"throttled", true},
                                                  {"read units", true}, {"write units", true}, {"static", true},
                                                  {"statement", false}};
    char started[32];
    time_t s = (time_t)(t->header.started_us / 1000000);
    struct tm utc;
    gmtime_r(&s, &utc);
    strftime(started, 32, "%Y-%m-%d %H:%M:%S", &utc);
    printf("begun %s UTC, %.1f s, %zu statements prepared%s\n", started, seconds_of(t), t->n_statements,
           t->header.hashed ? "; values are hashed" : "");
    if (t->reason.p) printf("ended: %.*s\n", SLICE_FMT(t->reason));
    if (t->damage[0]) printf("damaged: %s\n", t->damage);
    if (t->dropped)
        printf("%" PRIu64 " requests are missing: they came faster than they could be written\n", t->dropped);
    if (t->parts_gone) printf("%u files before this one are gone\n", t->parts_gone);
    struct table out;
    table_init(&out, columns, ARRAY_LEN(columns));
    struct capture_sums system = {0};
    for (size_t i = 0; i < t->n_names; i++)
        if (!trace_is_system(t, (uint32_t)i)) row(&out, &by_name[i], t->names[i].text);
    for (size_t i = 0; i < t->n; i++)
        if (trace_is_system(t, t->requests[i].name)) add(&system, &t->requests[i].q);
    if (system.requests) row(&out, &system, "on system tables");
    row(&out, all, "all");
    table_print(&out);
    table_fini(&out);
}

static int inspect(const struct capture_flags *f, struct err *e) {
    struct trace t;
    struct capture_sums all = {0};
    if (trace_open(&t, f->file, f->up_to_damage, e)) return -1;
    struct capture_sums *by_name = calloc(t.n_names + 1, sizeof(*by_name));
    if (by_name) {
        for (size_t i = 0; i < t.n; i++) {
            add(&all, &t.requests[i].q);
            add(&by_name[t.requests[i].name], &t.requests[i].q);
        }
        if (f->json) inspect_json(&t, &all, by_name);
        else inspect_text(&t, &all, by_name);
    }
    int rc = by_name ? 0 : err_nomem(e);
    free(by_name);
    trace_close(&t);
    return rc;
}

int tally_capture(int argc, char **argv) {
    struct capture_flags f = {.max_mb = 1024};
    const struct flag flags[] = {
        FLAG_TEXT("start", "NAME", f.start,
             "starts a capture: captures/NAME.tcap in the server's data folder. The server must have --control on"),
        FLAG_TEXT("stop", "NAME", f.stop, "ends a capture"),
        FLAG_ON("status", f.status, "shows the capture that runs, or ran last"),
        FLAG_NUMBER("max-mb", "MB", f.max_mb, "for --start: maximum size of the capture (1024)"),
        FLAG_ON("rotate", f.rotate,
             "for --start: a full capture continues in a new file; the previous file stays as FILE.1"),
        FLAG_ON("hashed", f.hashed, "for --start: record only the length and a hash of each value"),
        FLAG_TEXT("file", "FILE", f.file, "shows what a capture contains"),
        FLAG_ON("up-to-damage", f.up_to_damage,
             "for --file: reads a damaged or incomplete capture up to the damage"),
        FLAG_ON("json", f.json, "the answer as JSON"),
        REMOTE_FLAGS(&f.remote)};
    struct err e = {0};
    int rc = flags_read("capture", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if ((f.start != NULL) + (f.stop != NULL) + (f.file != NULL) + f.status != 1) {
        (void)err_set(&e, ERR_CONFIG,
                      "one of --start, --stop, --status and --file is needed; see tally capture --help");
        return say_wrong(f.json, "capture", &e);
    }
    if (f.file) {
        rc = inspect(&f, &e);
    } else {
        struct client c = {0};
        rc = remote_connect(&f.remote, &c, &e);
        if (!rc && !f.status) rc = change(&f, &c, &e);
        if (!rc) rc = print_status(&f, &c, &e);
        client_close(&c);
    }
    return rc ? say_no(f.json, "capture", &e) : EXIT_DONE;
}
