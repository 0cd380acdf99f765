#include "tools/client/client.h"

#include <stdlib.h>
#include <time.h>

#include "access/sigv4.h"

enum { ARENA_CHUNK = 64 << 10, PAGE = 5000, TOKEN_MAX = 4096 };

/* ---- one exchange ---- */

static int exchange(struct client *c, struct wire_response *out, struct err *e) {
    int rc = link_flush(&c->link, e);
    if (rc) return rc < 0 ? -1 : err_set(e, ERR_SERVER, "the server accepts no requests");
    for (;;) {
        while ((rc = link_next(&c->link, out, e))) {
            if (rc < 0) return -1;
            if (out->opcode != NP_EVENT) return 0;
        }
        link_compact(&c->link);
        if (link_fill(&c->link, e) < 0) return -1;
    }
}

static int refuse(const struct wire_response *r, struct err *e) {
    struct slice text;
    enum err_code code = (enum err_code)wire_error_code(r, &text);
    return err_set(e, code, "%.*s", SLICE_FMT(text));
}

int client_exchange(struct client *c, struct client_answer *out, struct err *e) {
    arena_reset(&c->arena);
    *out = (struct client_answer){0};
    if (exchange(c, &out->response, e)) return -1;
    if (out->response.opcode == NP_ERROR) return refuse(&out->response, e);
    out->charge = wire_charge(&out->response);
    if (out->response.opcode != NP_RESULT || out->response.body.n < 4 || load_u32(out->response.body.p) != 2) return 0;
    out->has_rows = true;
    return client_rows_open(&out->response, &c->arena, &out->rows, e);
}

/* ---- login ---- */

/* Answers nonce=... as AWS's plugins do (access/sigv4.h). */
static int sign(const struct client_options *o, struct slice challenge, struct buf *token, struct err *e) {
    char nonce[SIGV4_NONCE], date[40], signature[SIGV4_SIGNATURE];
    struct rd in = rd_of(challenge);
    struct slice s = rd_bytes(&in, rd_u32(&in));
    struct timespec now;
    struct tm utc;
    if (!s.p || s.n < 6 + SIGV4_NONCE || memcmp(s.p, "nonce=", 6))
        return err_set(e, ERR_PROTOCOL, "the server's challenge has no nonce");
    memcpy(nonce, s.p + 6, SIGV4_NONCE);
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
    snprintf(date + n, sizeof(date) - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    if (sigv4_sign(slice_str(date), slice_str(o->access_key), o->secret_key, o->region, nonce, signature))
        return err_set(e, ERR_CONFIG, "the access key cannot be signed with");
    buf_printf(token, "signature=%.*s,access_key=%s,amzdate=%s", SIGV4_SIGNATURE, signature, o->access_key, date);
    if (o->session_token) buf_printf(token, ",session_token=%s", o->session_token);
    return 0;
}

static int log_in(struct client *c, struct err *e) {
    const struct client_options *o = c->o;
    struct wire_response r;
    struct buf token;
    int rc = 0;
    buf_init(&token, TOKEN_MAX);
    if (o->access_key) {
        buf_put(&token, "SigV4\0\0", 7);
    } else if (o->user) {
        buf_u8(&token, 0);
        buf_put_str(&token, o->user);
        buf_u8(&token, 0);
        buf_put_str(&token, o->password ? o->password : "");
    } else {
        rc = err_set(e, ERR_BAD_CREDENTIALS, "the server asks for a login");
    }
    while (!rc) {
        wire_auth(&c->link.out, c->version, 0, buf_slice(&token));
        rc = exchange(c, &r, e);
        if (rc || r.opcode == NP_AUTH_SUCCESS) break;
        buf_clear(&token, TOKEN_MAX);
        if (r.opcode == NP_ERROR) rc = refuse(&r, e);
        else if (r.opcode != NP_AUTH_CHALLENGE || !o->access_key)
            rc = err_set(e, ERR_PROTOCOL, "the server continues the login in an unknown way");
        else rc = sign(o, r.body, &token, e);
    }
    buf_fini(&token);
    return rc;
}

/* ---- connecting ---- */

static int open_as(struct client *c, uint8_t version, struct err *e) {
    static const char *const options[] = {"DRIVER_NAME", "tally", "DRIVER_VERSION", TALLY_VERSION, NULL};
    struct wire_response r;
    c->version = version;
    if (link_open(&c->link, &c->o->link, e)) return -1;
    if (c->o->bare) return 0;
    wire_startup(&c->link.out, c->version, 0, options);
    if (exchange(c, &r, e)) return -1;
    if (r.opcode == NP_ERROR) return refuse(&r, e);
    if (r.opcode != NP_READY && r.opcode != NP_AUTHENTICATE)
        return err_set(e, ERR_PROTOCOL, "the server does not answer as one of the native protocol");
    c->link.framed = c->version >= 5;
    link_compact(&c->link);
    return r.opcode == NP_AUTHENTICATE ? log_in(c, e) : 0;
}

int client_open(struct client *c, const struct client_options *o, struct err *e) {
    *c = (struct client){.o = o, .link = {.fd = -1}};
    arena_init(&c->arena, ARENA_CHUNK, 0);
    uint8_t version = o->version ? o->version : NP_VERSION_MAX;
    while (open_as(c, version, e)) {
        bool too_new = e->code == ERR_PROTOCOL && !o->version && version > NP_VERSION_MIN;
        link_close(&c->link);
        if (!too_new) {
            client_close(c);
            return -1;
        }
        err_clear(e);
        version--;
    }
    return 0;
}

void client_close(struct client *c) {
    if (!c->o) return;
    link_close(&c->link);
    arena_fini(&c->arena);
    *c = (struct client){.link = {.fd = -1}};
}

/* ---- requests ---- */

int client_query(struct client *c, struct slice text, const struct wire_params *p, struct client_answer *out,
                 struct err *e) {
    wire_query(&c->link.out, c->version, 0, text, p);
    return client_exchange(c, out, e);
}

int client_run(struct client *c, const char *text, struct client_answer *out, struct err *e) {
    const struct wire_params p = {.consistency = WIRE_LOCAL_QUORUM, .page_size = PAGE};
    return client_query(c, slice_str(text), &p, out, e);
}

int client_prepare(struct client *c, struct slice text, struct slice keyspace, struct arena *keep,
                   struct client_prepared *out, struct err *e) {
    struct client_answer a;
    wire_prepare(&c->link.out, c->version, 0, text, keyspace);
    return client_exchange(c, &a, e) ? -1 : client_prepared_read(&a.response, keep, out, e);
}

int client_execute(struct client *c, const struct client_prepared *s, const struct wire_params *p,
                   struct client_answer *out, struct err *e) {
    wire_execute(&c->link.out, c->version, 0, s->id, s->result_id, p);
    return client_exchange(c, out, e);
}

int client_pages(struct client *c, struct slice text, struct wire_params *p, client_page_fn page, void *arg,
                 struct err *e) {
    struct buf state;
    struct client_answer a;
    int rc;
    buf_init(&state, 0);
    do {
        p->paging_state = state.n ? buf_slice(&state) : (struct slice){0};
        rc = client_query(c, text, p, &a, e);
        if (!rc) rc = page(arg, c, &a);
        buf_clear(&state, SIZE_MAX);
        if (!rc && a.has_rows) buf_put_slice(&state, a.rows.paging_state);
    } while (!rc && state.n);
    buf_fini(&state);
    return rc;
}

struct page_walk {
    client_row_fn row;
    void *arg;
};

static int each_row(void *arg, struct client *c, struct client_answer *a) {
    const struct page_walk *x = arg;
    int rc = 0;
    while (!rc && a->has_rows && client_rows_next(&a->rows)) rc = x->row(x->arg, c, &a->rows);
    return rc;
}

int client_each(struct client *c, const char *text, client_row_fn row, void *arg, struct err *e) {
    struct wire_params p = {.consistency = WIRE_LOCAL_QUORUM, .page_size = PAGE};
    struct page_walk x = {.row = row, .arg = arg};
    return client_pages(c, slice_str(text), &p, each_row, &x, e);
}

/* ---- address ---- */

int client_address(const char *text, char host[256], uint16_t *port, struct err *e) {
    bool bracket = *text == '[';
    const char *close = bracket ? strchr(text, ']') : NULL, *colon = strrchr(close ? close : text, ':');
    if (!bracket && colon && strchr(text, ':') != colon) colon = NULL; /* a bare IPv6 address */
    size_t n = close ? (size_t)(close - text) - 1 : colon ? (size_t)(colon - text) : strlen(text);
    char *end = NULL;
    long number = colon ? strtol(colon + 1, &end, 10) : *port;
    if ((bracket && !close) || !n || n > 255 || (end && (*end || end == colon + 1)) || number < 1 || number > 65535)
        return err_set(e, ERR_CONFIG, "'%s' is no HOST:PORT", text);
    memcpy(host, text + bracket, n);
    host[n] = 0;
    *port = (uint16_t)number;
    return 0;
}
