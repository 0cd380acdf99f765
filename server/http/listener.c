#include "server/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/ticker.h"
#include "server/http/certificate.h"

/* CLIENTS_MAX: connections open at once. A few more may exist while libmicrohttpd closes those that
 * were shut down. */
enum { CLIENTS_MAX = 64, ANSWER_MAX = 64 << 20, REQUEST_SECONDS = 10 };

/* A connection. The daemon's thread makes and frees it; its place in the list and its deadline are
 * protected by the listener's lock. */
struct http_client_state {
    TAILQ_ENTRY(http_client_state) entry;
    int fd;
    bool listed;
    bool served; /* a request of it was answered */
    time_t until; /* the deadline, on the monotonic clock; 0 if none, its request is being answered */
};

struct http_listener {
    struct MHD_Daemon *daemon;
    struct ticker reaper; /* closes connections that are past their deadline */
    pthread_mutex_t lock;
    TAILQ_HEAD(, http_client_state) clients; /* in the order of their last answer, or of their beginning */
    unsigned n_clients;
    struct http_options o;
    struct http_certificate *certificate; /* NULL for no TLS */
};

/* A request, from its first byte until its answer is sent. */
struct http_held {
    struct MHD_Connection *connection;
    struct buf body;
    time_t began;
    bool too_large;
    bool held, answered; /* by http_hold; by http_release */
    struct http_answer answer;
};

const char *http_header(const struct http_request *q, const char *name) {
    return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}
const char *http_argument(const struct http_request *q, const char *name) {
    return MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct ip_address http_client(const struct http_request *q) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct sockaddr_storage a = {0};
    if (info && info->client_addr)
        memcpy(&a, info->client_addr,
               info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    return ip_address_of_socket(&a);
}

/* ---- time ---- */

static time_t now_s(void) { return clock_machine_us(&clock_real) / 1000000; }

/* Seconds from the end of one request to the end of the next; the client may use the first half
 * of them to send nothing. The same time bounds the reading of an answer. */
static time_t turn_s(const struct http_listener *l) { return 2 * (time_t)l->o.request_s; }

/* Sets the connection's deadline; seconds 0: none. answered: a request of it was, so it is the last
 * of the list now. */
static void give_time(struct http_listener *l, struct MHD_Connection *c, time_t seconds, bool answered) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_client_state *v = info ? info->socket_context : NULL;
    if (!v) return;
    pthread_mutex_lock(&l->lock);
    v->until = seconds ? now_s() + seconds : 0;
    v->served = v->served || answered;
    if (answered && v->listed) {
        TAILQ_REMOVE(&l->clients, v, entry);
        TAILQ_INSERT_TAIL(&l->clients, v, entry);
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- answers ---- */

static enum MHD_Result send_answer(struct MHD_Connection *c, const struct http_answer *a) {
    bool failed = buf_failed(&a->body);
    struct slice text = failed ? slice_str("") : buf_slice(&a->body);
    struct MHD_Response *r = MHD_create_response_from_buffer(text.n, (void *)text.p, MHD_RESPMEM_MUST_COPY);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", a->type);
    if (*a->cookie) MHD_add_response_header(r, "Set-Cookie", a->cookie);
    for (uint32_t i = 0; i < a->n_headers; i++) MHD_add_response_header(r, a->headers[i].name, a->headers[i].value);
    enum MHD_Result rc = MHD_queue_response(c, failed ? MHD_HTTP_INTERNAL_SERVER_ERROR : a->status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result answer(struct http_listener *l, struct MHD_Connection *c, const char *method, const char *path,
                              struct http_held *r) {
    const struct http_request q = {.method = method, .path = path, .body = buf_slice(&r->body), .connection = c,
                                   .state = r};
    const struct http_caller caller = {.host = http_header(&q, "Host"), .origin = http_header(&q, "Origin"),
                                       .fetch_site = http_header(&q, "Sec-Fetch-Site")};
    struct http_answer *a = &r->answer;
    struct buf why; /* why the request is that of a foreign web page, which is refused */
    buf_init(&why, 0);
    a->status = MHD_HTTP_CONTENT_TOO_LARGE;
    a->type = "text/plain";
    buf_init(&a->body, ANSWER_MAX);
    give_time(l, c, 0, false);
    if (r->too_large) buf_printf(&a->body, "a request may have %zu bytes\n", l->o.body_max);
    else if (http_origin_allows(&l->o.hosts, &caller, &why)) {
        a->status = MHD_HTTP_OK;
        l->o.handle(l->o.arg, &q, a);
    } else {
        buf_u8(&why, 0);
        a->status = MHD_HTTP_FORBIDDEN;
        if (l->o.refuse) l->o.refuse(l->o.arg, &q, buf_failed(&why) ? "" : (const char *)why.p, a);
        else buf_printf(&a->body, "%s\n", buf_failed(&why) ? "" : (const char *)why.p);
    }
    buf_fini(&why);
    if (r->held) return MHD_YES;
    give_time(l, c, turn_s(l), true);
    return send_answer(c, a);
}

/* ---- held requests ---- */

struct http_held *http_hold(const struct http_request *q) {
    q->state->held = true;
    MHD_suspend_connection(q->connection);
    return q->state;
}

struct http_answer *http_held_answer(struct http_held *h) { return &h->answer; }

/* The daemon's thread then calls on_request again, which sends the answer. */
void http_release(struct http_held *h) {
    h->answered = true;
    MHD_resume_connection(h->connection);
}

/* ---- requests ---- */

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *data_n, void **state) {
    struct http_listener *l = arg;
    struct http_held *r = *state;
    (void)version;
    if (!r) {
        *state = r = calloc(1, sizeof(*r));
        if (!r) return MHD_NO;
        buf_init(&r->body, 0);
        r->connection = c;
        r->began = now_s();
        return MHD_YES;
    }
    if (r->answered) {
        give_time(l, c, turn_s(l), true);
        return send_answer(c, &r->answer);
    }
    if (now_s() - r->began > l->o.request_s) return MHD_NO;
    if (!*data_n) return answer(l, c, method, path, r);
    if (!l->o.body_max) return MHD_NO; /* no request of this port has a body */
    r->too_large = r->too_large || r->body.n + *data_n > l->o.body_max;
    if (!r->too_large) buf_put(&r->body, data, *data_n);
    *data_n = 0;
    return buf_failed(&r->body) ? MHD_NO : MHD_YES;
}

static void on_end(void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why) {
    struct http_listener *l = arg;
    struct http_held *r = *state;
    (void)why;
    give_time(l, c, turn_s(l), false);
    if (!r) return;
    buf_fini(&r->body);
    buf_fini(&r->answer.body);
    free(r);
    *state = NULL;
}

/* ---- clients ---- */

/* Removes the connection from the list. Under the lock. */
static void unlist(struct http_listener *l, struct http_client_state *v) {
    TAILQ_REMOVE(&l->clients, v, entry);
    l->n_clients--;
    v->listed = false;
}

static void close_client(struct http_listener *l, struct http_client_state *v) {
    unlist(l, v);
    shutdown(v->fd, SHUT_RDWR); /* the daemon then closes the connection */
}

static void on_connection(void *arg, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    struct http_listener *l = arg;
    struct http_client_state *v = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (!v) return;
        pthread_mutex_lock(&l->lock);
        if (v->listed) unlist(l, v);
        pthread_mutex_unlock(&l->lock);
        free(v);
        return;
    }
    const union MHD_ConnectionInfo *tls = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (l->certificate && tls) gnutls_session_set_ptr(tls->tls_session, l);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = v = calloc(1, sizeof(*v));
    if (!v || !info) return;
    pthread_mutex_lock(&l->lock);
    *v = (struct http_client_state){.fd = info->connect_fd, .listed = true, .until = now_s() + turn_s(l)};
    TAILQ_INSERT_TAIL(&l->clients, v, entry);
    if (++l->n_clients > CLIENTS_MAX) {
        /* Makes room for the new one, the last in the list: the oldest that has sent no whole request
         * yet; else the one whose last answer is the longest ago. One whose request is being
         * answered is the last choice. */
        struct http_client_state *x, *idle = NULL;
        TAILQ_FOREACH(x, &l->clients, entry) {
            if (!x->until || !TAILQ_NEXT(x, entry)) continue;
            if (!idle || !x->served) idle = x;
            if (!x->served) break;
        }
        close_client(l, idle ? idle : TAILQ_FIRST(&l->clients));
    }
    pthread_mutex_unlock(&l->lock);
}

/* Once a second: closes the connections that are past their deadline. A connection that sends one
 * byte at a time never counts as idle in libmicrohttpd, so the daemon itself would keep it open. */
static int64_t close_overdue(void *arg) {
    struct http_listener *l = arg;
    struct http_client_state *v, *next;
    time_t now = now_s();
    pthread_mutex_lock(&l->lock);
    for (v = TAILQ_FIRST(&l->clients); v; v = next) {
        next = TAILQ_NEXT(v, entry);
        if (v->until && v->until < now) close_client(l, v);
    }
    pthread_mutex_unlock(&l->lock);
    return 1000000;
}

/* ---- life ---- */

/* GnuTLS calls this for the certificate of a handshake. on_connection has put the listener into the
 * session. */
static int on_handshake(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **chain,
                        unsigned *n, gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp,
                        gnutls_privkey_t *key, unsigned *flags) {
    struct http_listener *l = gnutls_session_get_ptr(session);
    (void)info;
    *ocsp = NULL;
    *n_ocsp = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return http_certificate_copy(l->certificate, chain, n, key);
}

static struct MHD_Daemon *start(struct http_listener *l) {
    enum { CONNECTIONS = 2 * CLIENTS_MAX, MEMORY = 16 << 10 };
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(l->o.port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(l->o.port)};
    bool is_v4 = inet_pton(AF_INET, l->o.address, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, l->o.address, &v6.sin6_addr) != 1) {
        errno = EINVAL;
        return NULL;
    }
    struct sockaddr *at = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     (is_v4 ? 0 : MHD_USE_DUAL_STACK) | (l->certificate ? MHD_USE_TLS : 0);
    /* without TLS the options end here */
    enum MHD_OPTION more = l->certificate ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END;
    return MHD_start_daemon(flags, l->o.port, NULL, NULL, on_request, l, MHD_OPTION_SOCK_ADDR, at,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)l->o.request_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
                            MHD_OPTION_NOTIFY_COMPLETED, on_end, l, more, on_handshake,
                            MHD_OPTION_HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                            MHD_OPTION_END);
}

int http_start(struct http_listener **out, const struct http_options *o, struct err *e) {
    struct http_listener *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (!l) return err_nomem(e);
    l->o = *o;
    if (!l->o.request_s || l->o.request_s > REQUEST_SECONDS) l->o.request_s = REQUEST_SECONDS;
    TAILQ_INIT(&l->clients);
    pthread_mutex_init(&l->lock, NULL);
    ticker_init(&l->reaper, close_overdue, l);
    int rc = o->tls_cert && !(l->certificate = http_certificate_open(o->tls_cert, o->tls_key, e)) ? -1 : 0;
    if (!rc) l->daemon = start(l);
    if (!rc && !l->daemon)
        rc = err_set(e, ERR_CONFIG, "cannot listen on %s port %u for %s: %s", o->address, o->port, o->what,
                     strerror(errno));
    if (!rc) rc = ticker_start(&l->reaper, 0, e);
    if (!rc) *out = l;
    else http_stop(l);
    return rc ? -1 : 0;
}

void http_stop(struct http_listener *l) {
    ticker_stop(&l->reaper);
    if (l->daemon) MHD_stop_daemon(l->daemon);
    ticker_fini(&l->reaper);
    pthread_mutex_destroy(&l->lock);
    http_certificate_close(l->certificate);
    free(l);
}

int http_reload_certificate(struct http_listener *l, struct err *e) {
    return l->certificate ? http_certificate_reload(l->certificate, e) : 0;
}

uint16_t http_port(const struct http_listener *l) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info && info->port ? info->port : l->o.port;
}
