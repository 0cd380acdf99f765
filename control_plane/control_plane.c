#include "control_plane/control_plane.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "control_plane/shape.h"
#include "control_plane/signature.h"

enum { BODY_MAX = 1 << 20, ARENA_CHUNK = 16 << 10, ARENA_MAX = 64 << 20 };

struct control_plane {
    struct control_plane_options o;
    struct http_listener *plain, *tls; /* NULL: off */
    pthread_mutex_t lock;              /* one request at a time, and none while paused */
};

/* ---- protocols ---- */

struct protocol {
    const char *type;
    struct doc *(*read)(struct arena *a, struct slice body, struct err *e);
    void (*write)(const struct doc *d, struct buf *out);
    bool rpc;
};

static const struct protocol protocols[] = {
    {.type = "application/x-amz-json-1.0", .read = json_read, .write = json_write},
    {.type = "application/cbor", .read = cbor_read, .write = cbor_write, .rpc = true},
};

/* Of a request: what it is for, and in which protocol the answer goes. */
struct asked {
    const struct protocol *protocol;
    const char *operation; /* "" when it is for none of this service's */
};

static bool begins(const char *text, const char *with) { return text && !strncmp(text, with, strlen(with)); }

/* POST /service/KeyspacesService/operation/X, or POST / with X-Amz-Target: KeyspacesService.X. */
static struct asked what_is_asked(const struct http_request *q) {
    static const char path[] = "/service/KeyspacesService/operation/", target[] = "KeyspacesService.";
    const char *named = http_header(q, "X-Amz-Target"), *smithy = http_header(q, "smithy-protocol");
    bool post = !strcmp(q->method, "POST");
    if (begins(q->path, "/service/") || (smithy && !strcmp(smithy, "rpc-v2-cbor")))
        return (struct asked){&protocols[1], post && begins(q->path, path) ? q->path + sizeof(path) - 1 : ""};
    return (struct asked){&protocols[0], post && begins(named, target) ? named + sizeof(target) - 1 : ""};
}

/* ---- operations ---- */

static const struct operation {
    const char *name;
    enum shape_id input;
    int (*run)(struct call *c);
} operations[] = {
#define OPERATION(name_, input_, run_) {.name = #name_, .input = SHAPE_##input_, .run = op_##run_},
#include "control_plane/operation.def"
#undef OPERATION
};

static const struct operation *operation_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        if (!strcmp(operations[i].name, name)) return &operations[i];
    return NULL;
}

static int run_shaped(const struct operation *op, struct call *c) {
    enum shape_verdict verdict = shape_check(op->input, c->in, c->err);
    c->error = verdict == SHAPE_OF_OTHER_KIND ? API_SerializationException : API_ValidationException;
    if (verdict != SHAPE_FITS) return -1;
    c->schema = catalog_schema(c->o->catalog);
    int rc = op->run(c);
    schema_unref(c->schema);
    return rc || c->make.failed ? (c->err->set ? -1 : call_nomem(c)) : 0;
}

static int check_signature(const struct control_plane *p, const struct http_request *q, struct call *c) {
    if (!p->o.keys) return 0;
    int64_t now = clock_wall_us(p->o.clock) / 1000000;
    const struct access_key *key = signature_check(p->o.keys, p->o.region, "cassandra", q, now, c->arena, &c->error, c->err);
    if (!key) return -1;
    const struct role_set *roles = access_roles(p->o.access);
    bool known = role_find(roles, key->role) != NULL;
    role_set_unref(roles);
    c->role = key->role;
    return known ? 0 : call_fail(c, API_AccessDeniedException, "User %s has no permissions.", key->role);
}

static int run_call(const struct control_plane *p, const struct http_request *q, const struct asked *asked, struct call *c) {
    const struct operation *op = operation_find(asked->operation);
    if (check_signature(p, q, c)) return -1;
    if (!op)
        return call_fail(c, API_UnknownOperationException, "The operation %s is not one of this service.",
                         *asked->operation ? asked->operation : "asked for");
    c->in = asked->protocol->read(c->arena, q->body, c->err);
    c->error = API_SerializationException;
    return c->in ? run_shaped(op, c) : -1;
}

/* ---- answers ---- */

static const struct {
    const char *name;
    unsigned status;
} errors[] = {
#define API_ERROR(name_, status_) [API_##name_] = {.name = #name_, .status = status_},
#include "control_plane/error.def"
#undef API_ERROR
};

static void header(struct http_answer *out, const char *name, const char *value) {
    out->headers[out->n_headers].name = name;
    out->headers[out->n_headers++].value = value;
}

/* "__type" tells clients of either protocol which error it is. */
static void answer_error(struct call *c, const struct protocol *protocol, struct http_answer *out) {
    struct doc_maker make = {.arena = c->arena};
    struct doc *d = doc_new(c->arena, DOC_MAP);
    if (c->err->set && c->err->no_memory) c->error = API_InternalServerException;
    out->status = errors[c->error].status;
    doc_put_text(&make, d, "__type", arena_printf(c->arena, "com.amazonaws.keyspaces#%s", errors[c->error].name));
    doc_put_text(&make, d, "message", c->err->text);
    if (c->error == API_ResourceNotFoundException) doc_put_text(&make, d, "resourceArn", c->resource);
    header(out, "x-amzn-ErrorType", errors[c->error].name);
    if (d) protocol->write(d, &out->body);
}

static void handle(void *arg, const struct http_request *q, struct http_answer *out) {
    struct control_plane *p = arg;
    struct arena arena;
    struct err e = {0};
    arena_init(&arena, ARENA_CHUNK, ARENA_MAX);
    struct call c = {.o = &p->o, .arena = &arena, .make = {.arena = &arena}, .out = doc_new(&arena, DOC_MAP), .err = &e};
    struct asked asked = what_is_asked(q);
    out->type = asked.protocol->type;
    out->status = 200;
    if (asked.protocol->rpc) header(out, "smithy-protocol", "rpc-v2-cbor");
    pthread_mutex_lock(&p->lock);
    int rc = c.out ? run_call(p, q, &asked, &c) : call_nomem(&c);
    pthread_mutex_unlock(&p->lock);
    if (rc) answer_error(&c, asked.protocol, out);
    else asked.protocol->write(c.out, &out->body);
    arena_fini(&arena);
}

/* ---- life ---- */

static int listen_at(struct control_plane *p, struct http_listener **out, uint16_t port, bool tls, struct err *e) {
    const struct http_options o = {.port = port, .what = "the API", .body_max = BODY_MAX, .tls_cert = tls ? p->o.tls_cert : NULL,
                                   .tls_key = tls ? p->o.tls_key : NULL, .handle = handle, .arg = p};
    return port ? http_start(out, &o, e) : 0;
}

int control_plane_start(struct control_plane **out, const struct control_plane_options *o, struct err *e) {
    *out = NULL;
    if (!o->port && !o->tls_port) return 0;
    struct control_plane *p = calloc(1, sizeof(*p));
    if (!p) return err_nomem(e);
    p->o = *o;
    pthread_mutex_init(&p->lock, NULL);
    if (listen_at(p, &p->plain, o->port, false, e) || listen_at(p, &p->tls, o->tls_port, true, e)) {
        control_plane_stop(p);
        return -1;
    }
    *out = p;
    return 0;
}

void control_plane_stop(struct control_plane *p) {
    if (p->plain) http_stop(p->plain);
    if (p->tls) http_stop(p->tls);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void control_plane_pause(struct control_plane *p) {
    if (p) pthread_mutex_lock(&p->lock);
}

void control_plane_go_on(struct control_plane *p) {
    if (p) pthread_mutex_unlock(&p->lock);
}
