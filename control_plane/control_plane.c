#include "control_plane/control_plane.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/random.h"
#include "control_plane/form.h"
#include "control_plane/shape.h"
#include "control_plane/signature.h"
#include "cql/syntax/ast.h"

enum { BODY_MAX = 1 << 20, ARENA_CHUNK = 16 << 10, ARENA_MAX = 64 << 20 };

struct control_plane {
    struct control_plane_options o;
    struct http_listener *plain, *tls; /* NULL means off */
    pthread_mutex_t lock;              /* held by the running request, and while paused */
};

/* ---- services and protocols ---- */

enum service_id {
#define SERVICE(id, ...) SERVICE_##id,
#include "control_plane/service.def"
};

static const struct service {
    const char *target, *signing, *shapes, *json, *xmlns;
} services[] = {
#define SERVICE(id, target_, signing_, shapes_, json_, xmlns_) \
    {.target = target_, .signing = signing_, .shapes = shapes_, .json = json_, .xmlns = xmlns_},
#include "control_plane/service.def"
};

enum protocol { PROTOCOL_JSON, PROTOCOL_CBOR, PROTOCOL_QUERY };

/* The operation that a request names, and the protocol of its answer. */
struct requested_operation {
    enum protocol protocol;
    enum service_id service;
    const char *operation; /* "" when the request names no operation of a service */
};

static bool begins(const char *text, const char *with) { return text && !strncmp(text, with, strlen(with)); }

/* Parses the name of a service ("KeyspacesService"), then the text between, then the operation.
 * Sets *asked and returns true when the text has this form. */
static bool names_operation(const char *text, const char *between, struct requested_operation *asked) {
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        size_t n = strlen(services[i].target);
        if (!begins(text, services[i].target) || !begins(text + n, between)) continue;
        asked->service = (enum service_id)i;
        asked->operation = text + n + strlen(between);
        return true;
    }
    return false;
}

/* Operation X comes as POST /service/KeyspacesService/operation/X (CBOR), as POST / with the header
 * X-Amz-Target: KeyspacesService.X (JSON), or as POST / with a form that has Action=X. */
static struct requested_operation find_operation(struct arena *a, const struct http_request *q) {
    static const char path[] = "/service/";
    const char *target = http_header(q, "X-Amz-Target"), *smithy = http_header(q, "smithy-protocol"),
               *type = http_header(q, "Content-Type");
    struct requested_operation asked = {.operation = ""};
    bool post = !strcmp(q->method, "POST");
    if (begins(q->path, path) || (smithy && !strcmp(smithy, "rpc-v2-cbor"))) {
        asked.protocol = PROTOCOL_CBOR;
        if (post && begins(q->path, path)) names_operation(q->path + sizeof(path) - 1, "/operation/", &asked);
    } else if (post && !names_operation(target, ".", &asked) && begins(type, "application/x-www-form-urlencoded")) {
        const char *action = form_find(a, q->body, "Action");
        asked = (struct requested_operation){.protocol = PROTOCOL_QUERY,
                               .service = SERVICE_CLOUDWATCH,
                               .operation = action ? action : ""};
    }
    return asked;
}

/* ---- operations ---- */

static const struct operation {
    enum service_id service;
    const char *name;
    enum shape_id input;
    int (*run)(struct call *c);
} operations[] = {
#define OPERATION(service_, name_, input_, run_) \
    {.service = SERVICE_##service_, .name = #name_, .input = SHAPE_##input_, .run = op_##run_},
#include "control_plane/operation.def"
#undef OPERATION
};

static int check_signature(const struct control_plane *p, const struct http_request *q, const char *service,
                           struct call *c) {
    if (!p->o.keys) return 0;
    int64_t now = clock_wall_us(p->o.clock) / 1000000;
    const struct access_key *key = signature_check(p->o.keys, c->region, service, q, now, c->arena, &c->error, c->err);
    if (!key) return -1;
    const struct role_set *roles = access_roles(p->o.access);
    bool known = role_find(roles, key->role) != NULL;
    role_set_unref(roles);
    c->role = key->role;
    return known ? 0 : call_fail(c, API_AccessDeniedException, "User %s has no permissions.", key->role);
}

static bool is_type(const char *given, const char *due) {
    size_t n = strlen(due);
    return given && !strncasecmp(given, due, n) && (!given[n] || strchr("; \t", given[n]));
}

/* Checks the Content-Type. A web page may not send the types of JSON and CBOR to another site
 * without a preflight request (CORS). */
static int check_type(const struct http_request *q, const struct requested_operation *asked, struct call *c) {
    static const struct {
        const char *due, *or;
    } types[] = {[PROTOCOL_JSON] = {"application/x-amz-json-1.0", "application/x-amz-json-1.1"},
                 [PROTOCOL_CBOR] = {"application/cbor", "application/cbor"},
                 [PROTOCOL_QUERY] = {"application/x-www-form-urlencoded", "application/x-www-form-urlencoded"}};
    const char *given = http_header(q, "Content-Type");
    if (is_type(given, types[asked->protocol].due) || is_type(given, types[asked->protocol].or)) return 0;
    return call_fail(c, API_UnsupportedMediaTypeException, "The Content-Type of this request must be %s.",
                     types[asked->protocol].due);
}

/* Runs the call's statement with the signer's permissions. Returns -1 if the catalogue, the rules of
 * Keyspaces or the permissions refuse it. The API's changes are asynchronous: the answer comes
 * before the change is visible. */
static int run_statement(struct call *c) {
    struct cql_execution x = {
        .db = c->o->db,
        .role = c->role,
        .client_address = c->client,
        .arena = c->arena,
        .request = {.kind = REQUEST_QUERY,
                    .tree = c->statement,
                    .query = slice_str(c->operation), /* for reports and traces */
                    .params = {.consistency = CL_LOCAL_QUORUM, .serial_consistency = CL_SERIAL}}};
    c->statement->source = x.request.query;
    int rc = cql_execute(&x, c->err);
    cql_execution_fini(&x);
    if (!rc) return 0;
    static const char *const quotas[] = {"keyspaces-quota", "tables-quota",   "concurrent-ddl",  "concurrent-restores",
                                         "schema-size",     "table-capacity", "account-capacity"};
    c->error = c->err->code == ERR_ALREADY_EXISTS  ? API_ConflictException
               : c->err->code == ERR_UNAUTHORIZED ? API_AccessDeniedException
               : c->err->code == ERR_SERVER       ? API_InternalServerException
                                                  : API_ValidationException;
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        if (c->err->rule && !strcmp(c->err->rule, quotas[i])) c->error = API_ServiceQuotaExceededException;
    return -1;
}

static int run_call(const struct control_plane *p, const struct http_request *q,
                    const struct requested_operation *asked,
                    struct call *c) {
    const struct operation *op = NULL;
    for (size_t i = 0; i < ARRAY_LEN(operations) && !op; i++)
        if (operations[i].service == asked->service && !strcmp(operations[i].name, asked->operation))
            op = &operations[i];
    if (check_signature(p, q, services[asked->service].signing, c)) return -1;
    if (!op)
        return call_fail(c, API_UnknownOperationException, "The operation %s is not one of this service.",
                         *asked->operation ? asked->operation : "asked for");
    if (check_type(q, asked, c)) return -1;
    struct doc *in = asked->protocol == PROTOCOL_JSON   ? json_read(c->arena, q->body, c->err)
                     : asked->protocol == PROTOCOL_CBOR ? cbor_read(c->arena, q->body, c->err)
                                                        : form_read(c->arena, q->body, c->err);
    if (in && asked->protocol == PROTOCOL_QUERY) shape_convert_texts(op->input, in);
    c->in = in;
    c->error = API_SerializationException;
    if (!in) return -1;
    enum shape_verdict verdict = shape_check(op->input, in, c->err);
    if (verdict != SHAPE_OF_OTHER_KIND) c->error = API_ValidationException;
    if (verdict != SHAPE_FITS) return -1;
    c->schema = catalog_schema(c->o->catalog);
    int rc = op->run(c);
    if (!rc && c->make.failed) rc = call_nomem(c);
    if (!rc && c->statement) rc = run_statement(c);
    schema_unref(c->schema);
    return rc;
}

/* Runs the call with schema and roles that are as new as the request: other servers on the store may have changed
 * them. When these cannot be read, a successful call is still answered. */
static int run_newest(const struct control_plane *p, const struct http_request *q,
                      const struct requested_operation *asked,
                      struct call *c) {
    struct err why = {0};
    int unsure = cql_catch_up(p->o.db, &why), rc = run_call(p, q, asked, c);
    if (!rc || !unsure) return rc;
    *c->err = why;
    c->error = API_InternalServerException;
    return -1;
}

/* ---- answers ---- */

static const struct api_error_info {
    const char *name;
    unsigned status;
    /* code: the query protocol's name of the error; of_query: that name with the side at fault, for
     * clients that used to speak the query protocol */
    const char *code, *of_query;
} errors[] = {
#define API_ERROR(name_, status_, code_) \
    [API_##name_] = {.name = #name_, \
                     .status = status_, \
                     .code = code_, \
                     .of_query = (status_) < 500 ? code_ ";Sender" : code_ ";Receiver"},
#include "control_plane/error.def"
#undef API_ERROR
};

static const struct api_error_info *error_of(enum service_id service, enum api_error error) {
    static const struct {
        enum service_id service;
        enum api_error general, own;
    } renamed[] = {
#define SERVICE_ERROR(id, general_, own_) {.service = SERVICE_##id, .general = API_##general_, .own = API_##own_},
#include "control_plane/service.def"
    };
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
        if (renamed[i].service == service && renamed[i].general == error) return &errors[renamed[i].own];
    return &errors[error];
}

static void header(struct http_answer *out, const char *name, const char *value) {
    out->headers[out->n_headers].name = name;
    out->headers[out->n_headers++].value = value;
}

/* A random UUID. */
static const char *request_id(struct arena *a) {
    uint8_t r[16];
    struct err none = {0};
    if (random_uuid(r, &none)) return ""; /* clients accept an answer without an id */
    const char *id = arena_printf(a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0], r[1],
                                  r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
                                  r[15]);
    return id ? id : "";
}

static void write_doc(const struct requested_operation *asked, const struct doc *d, struct buf *out) {
    if (asked->protocol == PROTOCOL_CBOR) cbor_write(d, out);
    else json_write(d, out);
}

/* Writes an error. In JSON and CBOR the member "__type" has the error's name. */
static void answer_error(struct call *c, const struct requested_operation *asked, struct http_answer *out) {
    const struct service *service = &services[asked->service];
    if (c->err->set && c->err->no_memory) c->error = API_InternalServerException;
    const struct api_error_info *info = error_of(asked->service, c->error);
    out->status = info->status;
    header(out, "x-amzn-ErrorType", info->name);
    /* XML and CBOR have no escape for the NUL that C0 80 represents (base/err.h). */
    if (asked->protocol != PROTOCOL_JSON)
        for (char *nul = c->err->text; (nul = strstr(nul, "\xC0\x80"));) memcpy(nul, "\\0", 2);
    if (asked->protocol == PROTOCOL_QUERY) {
        form_write_error(service->xmlns, info->status < 500, info->code, c->err->text, request_id(c->arena),
                         &out->body);
        return;
    }
    struct doc_maker make = {.arena = c->arena};
    struct doc *d = doc_new(c->arena, DOC_MAP);
    doc_put_text(&make, d, "__type", arena_printf(c->arena, "%s#%s", service->shapes, info->name));
    doc_put_text(&make, d, "message", c->err->text);
    if (c->error == API_ResourceNotFoundException) doc_put_text(&make, d, "resourceArn", c->resource);
    if (service->xmlns) header(out, "x-amzn-query-error", info->of_query);
    if (d) write_doc(asked, d, &out->body);
}

/* Answers a request. refusal: the text that refuses it; NULL means run its operation. */
static void respond(struct control_plane *p, const struct http_request *q, const char *refusal,
                    struct http_answer *out) {
    struct arena arena;
    struct err e = {0};
    arena_init(&arena, ARENA_CHUNK, ARENA_MAX);
    struct call c = {
        .o = &p->o, .arena = &arena, .make = {.arena = &arena}, .out = doc_new(&arena, DOC_MAP), .err = &e};
    struct requested_operation asked = find_operation(&arena, q);
    int rc;
    const struct ip_address client = http_client(q);
    c.operation = asked.operation;
    ip_address_print(&client, c.client);
    c.region = signature_region(q, p->o.region, &arena);
    out->type = asked.protocol == PROTOCOL_QUERY  ? "text/xml"
                : asked.protocol == PROTOCOL_CBOR ? "application/cbor"
                                                  : services[asked.service].json;
    out->status = 200;
    if (asked.protocol == PROTOCOL_CBOR) header(out, "smithy-protocol", "rpc-v2-cbor");
    if (!c.out || !c.region) rc = call_nomem(&c);
    else if (refusal) rc = call_fail(&c, API_AccessDeniedException, "%s", refusal);
    else {
        pthread_mutex_lock(&p->lock);
        rc = run_newest(p, q, &asked, &c);
        pthread_mutex_unlock(&p->lock);
    }
    if (rc) answer_error(&c, &asked, out);
    else if (asked.protocol == PROTOCOL_QUERY)
        form_write_answer(c.out, services[asked.service].xmlns, asked.operation, request_id(&arena), &out->body);
    else write_doc(&asked, c.out, &out->body);
    arena_fini(&arena);
}

static void handle(void *arg, const struct http_request *q, struct http_answer *out) { respond(arg, q, NULL, out); }
static void refuse(void *arg, const struct http_request *q, const char *words, struct http_answer *out) {
    respond(arg, q, words, out);
}

/* ---- life ---- */

static int listen_at(struct control_plane *p, struct http_listener **out, uint16_t port, bool tls, struct err *e) {
    const struct http_options o = {.address = p->o.address, .port = port, .what = "the API",
                                   .body_max = BODY_MAX, .request_s = p->o.request_s,
                                   .tls_cert = tls ? p->o.tls_cert : NULL, .tls_key = tls ? p->o.tls_key : NULL,
                                   .hosts = p->o.hosts, .handle = handle, .refuse = refuse, .arg = p};
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

int control_plane_reload_certificate(struct control_plane *p, struct err *e) {
    return p && p->tls ? http_reload_certificate(p->tls, e) : 0;
}

void control_plane_pause(struct control_plane *p) {
    if (p) pthread_mutex_lock(&p->lock);
}

void control_plane_continue(struct control_plane *p) {
    if (p) pthread_mutex_unlock(&p->lock);
}
