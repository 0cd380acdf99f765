#include "server/page/page.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <unistd.h>

struct asset {
    const char *path, *type;
    const unsigned char *bytes;
    size_t n;
};
#include "asset_bytes.inc"

/* ---- jobs ---- */

enum job_kind { JOB_LOGIN, JOB_ROWS, JOB_QUERY, JOB_EXPLAIN };
/* QUEUE_COUNT: counts of storage, which read whole tables, at a lower priority; no other request waits for them */
enum { QUEUE_STATEMENTS, QUEUE_REST, QUEUE_COUNT, QUEUES, COUNT_NICE = 10 };

struct job {
    STAILQ_ENTRY(job) entry;
    enum job_kind kind;
    struct http_held *held;
    struct ip_address client;
    char role[ROLE_NAME_MAX + 1]; /* "": none */
    struct slice body;            /* the request's, which is held */
    const char *of, *state;
    bool eventual;
    uint32_t rows;
};

struct job_queue {
    struct live_page *page;
    pthread_t thread;
    bool has_thread;
    uint32_t n;
    STAILQ_HEAD(, job) jobs;
    pthread_mutex_t running; /* held while a job runs, and while paused */
};

struct live_page {
    struct page_options o;
    struct sessions *sessions; /* NULL for no roles */
    pthread_mutex_t lock;      /* of the queues */
    pthread_cond_t more;
    bool stopping;
    struct job_queue queues[QUEUES];
};

/* ---- answers ---- */

static void add_header(struct http_answer *a, const char *name, const char *value) {
    if (a->n_headers == HTTP_HEADERS) return;
    a->headers[a->n_headers].name = name;
    a->headers[a->n_headers++].value = value;
}

static void secure(struct http_answer *a) {
    add_header(a, "Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    add_header(a, "X-Content-Type-Options", "nosniff");
    add_header(a, "X-Frame-Options", "DENY");
    add_header(a, "Referrer-Policy", "no-referrer");
    add_header(a, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(a, "Cross-Origin-Opener-Policy", "same-origin");
    add_header(a, "Cache-Control", "no-store");
}

static void answer_json(struct http_answer *a, unsigned status) {
    a->status = status;
    a->type = "application/json";
}

static void answer_error(struct http_answer *a, unsigned status, const char *text) {
    answer_json(a, status);
    a->body.n = 0;
    buf_put_str(&a->body, "{\"error\":");
    buf_json_str(&a->body, slice_str(text));
    buf_put_str(&a->body, "}\n");
}

/* ---- jobs, on their threads ---- */

/* The system tables that the page reads; of is the argument of /api/rows. */
static const struct {
    const char *of, *text;
} system_rows[] = {
    {"statements", "SELECT * FROM system_metering.statements"},
    {"storage", "SELECT * FROM system_metering.storage"},
    {"throttles", "SELECT * FROM system_metering.throttles"},
    {"limits", "SELECT * FROM system_metering.limits"},
    {"capacity", "SELECT * FROM system_metering.capacity"},
    {"roles", "SELECT * FROM system_metering.roles"},
    {"tables", "SELECT * FROM system_metering.tables"},
    {"query_classes", "SELECT * FROM system_metering.query_classes"},
    {"compatibility", "SELECT * FROM system_metering.compatibility"},
    {"columns", "SELECT keyspace_name, table_name, column_name, kind, position, type FROM system_schema.columns"},
};

static void run_statement(struct live_page *p, const struct job *j, struct http_answer *a) {
    struct err e = {0};
    struct page_statement s = {.text = j->body, .role = *j->role ? j->role : NULL, .runs = j->kind != JOB_EXPLAIN,
                          .eventual = j->eventual, .rows = j->rows, .state = j->state};
    for (size_t i = 0; j->kind == JOB_ROWS && i < ARRAY_LEN(system_rows); i++)
        if (!strcmp(system_rows[i].of, j->of)) s.text = slice_str(system_rows[i].text);
    answer_json(a, 200);
    if (page_statement_run(&p->o.statement, &s, &a->body, &e))
        answer_error(a, e.code == ERR_UNAUTHORIZED ? 403 : e.code == ERR_SERVER ? 500 : 400, e.text);
    else buf_put_str(&a->body, "\n");
}

/* The body: the role's name, a line feed, its password. */
static void log_in(struct live_page *p, const struct job *j, struct http_answer *a) {
    enum { PASSWORD_MAX = 1024 };
    char role[ROLE_NAME_MAX + 1] = "", password[PASSWORD_MAX + 1] = "", token[SESSION_TOKEN + 1];
    struct err e = {0};
    const uint8_t *end = memchr(j->body.p, '\n', j->body.n);
    size_t n = end ? (size_t)(end - j->body.p) : 0, rest = end ? j->body.n - n - 1 : 0;
    if (!n || n > ROLE_NAME_MAX || !rest || rest > PASSWORD_MAX || memchr(j->body.p, 0, j->body.n)) {
        answer_error(a, 400, "A login is a name and a password");
        return;
    }
    memcpy(role, j->body.p, n);
    memcpy(password, end + 1, rest);
    bool refused = p->o.login(p->o.login_arg, &j->client, role, password, &e) ||
                   session_begin(p->sessions, role, token, &e);
    OPENSSL_cleanse(password, sizeof(password));
    if (refused) {
        answer_error(a, 401, e.text);
        return;
    }
    snprintf(a->cookie, sizeof(a->cookie), "tally_session=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", token,
             SESSION_SECONDS);
    answer_json(a, 200);
    buf_put_str(&a->body, "{\"role\":");
    buf_json_str(&a->body, slice_str(role));
    buf_put_str(&a->body, "}\n");
}

static void *run_queue(void *arg) {
    struct job_queue *l = arg;
    struct live_page *p = l->page;
    if (l == &p->queues[QUEUE_COUNT]) (void)!setpriority(PRIO_PROCESS, (id_t)gettid(), COUNT_NICE);
    pthread_mutex_lock(&p->lock);
    while (!p->stopping || l->n) {
        struct job *j = STAILQ_FIRST(&l->jobs);
        if (!j) {
            pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        STAILQ_REMOVE_HEAD(&l->jobs, entry);
        l->n--;
        pthread_mutex_unlock(&p->lock);
        pthread_mutex_lock(&l->running);
        struct http_answer *a = http_held_answer(j->held);
        if (j->kind == JOB_LOGIN) log_in(p, j, a);
        else run_statement(p, j, a);
        pthread_mutex_unlock(&l->running);
        http_release(j->held);
        free(j);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- requests, on the listener's thread ---- */

struct caller {
    const struct http_request *q;
    char role[ROLE_NAME_MAX + 1]; /* "": the server has no roles */
    bool signed_in;
};

static void hold(struct live_page *p, const struct caller *caller, enum job_kind kind, struct http_answer *a) {
    bool counts = kind == JOB_ROWS && !strcmp(http_argument(caller->q, "of"), "storage");
    struct job_queue *l = &p->queues[counts                                  ? QUEUE_COUNT
                                     : kind == JOB_QUERY || kind == JOB_EXPLAIN ? QUEUE_STATEMENTS
                                                                                : QUEUE_REST];
    const char *rows = http_argument(caller->q, "rows"), *consistency = http_argument(caller->q, "consistency");
    char *end = "";
    unsigned long most = rows && *rows >= '0' && *rows <= '9' ? strtoul(rows, &end, 10) : 0;
    if (rows && (!most || *end || most > UINT32_MAX)) {
        answer_error(a, 400, "rows must be a number above 0");
        return;
    }
    struct job *j = calloc(1, sizeof(*j));
    if (!j) {
        answer_error(a, 503, "no memory");
        return;
    }
    *j = (struct job){.kind = kind, .client = http_client(caller->q), .body = caller->q->body,
                      .of = http_argument(caller->q, "of"),
                      .state = http_argument(caller->q, "next"), .rows = (uint32_t)most,
                      .eventual = consistency && !strcmp(consistency, "LOCAL_ONE")};
    memcpy(j->role, caller->role, sizeof(j->role));
    pthread_mutex_lock(&p->lock);
    bool stopping = p->stopping, room = !stopping && l->n < PAGE_QUEUE;
    if (room) {
        j->held = http_hold(caller->q);
        STAILQ_INSERT_TAIL(&l->jobs, j, entry);
        l->n++;
        pthread_cond_broadcast(&p->more);
    }
    pthread_mutex_unlock(&p->lock);
    if (room) return;
    free(j);
    answer_error(a, 503, stopping ? "The server is stopping"
                                  : "Too many statements of the page are waiting: ask again later");
}

static void answer_session(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    answer_json(a, 200);
    buf_printf(&a->body, "{\"login\":%s,\"role\":", p->sessions ? "true" : "false");
    if (caller->signed_in && *caller->role) buf_json_str(&a->body, slice_str(caller->role));
    else buf_put_str(&a->body, "null");
    buf_printf(&a->body, ",\"mode\":\"%s\",\"report\":%s,\"guidance\":%s}\n",
               p->o.cassandra ? "cassandra" : "keyspaces", p->o.report ? "true" : "false",
               p->o.view.limits->guidance == GUIDANCE_OFF ? "false" : "true");
}

static void answer_login(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    if (p->sessions) hold(p, caller, JOB_LOGIN, a);
    else answer_error(a, 400, "This server has no roles: it starts with --auth none");
}

static void answer_logout(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    char token[SESSION_TOKEN + 1];
    if (p->sessions && session_token(http_header(caller->q, "Cookie"), token)) session_end(p->sessions, token);
    snprintf(a->cookie, sizeof(a->cookie), "tally_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    answer_json(a, 200);
    buf_put_str(&a->body, "{}\n");
}

static void answer_rows(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const char *of = http_argument(caller->q, "of");
    for (size_t i = 0; of && i < ARRAY_LEN(system_rows); i++)
        if (!strcmp(system_rows[i].of, of)) {
            hold(p, caller, JOB_ROWS, a);
            return;
        }
    answer_error(a, 404, "There are no rows of that name");
}

/* Pictures show keys and statements of all tables, as system_metering does. Returns false if
 * it is answered. */
static bool may_see(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const struct resource on = {RESOURCE_OF_TABLE, "system_metering", "partitions"};
    struct buf words;
    if (!p->sessions) return true;
    const struct role_set *roles = access_roles(p->o.access);
    bool may = role_permissions(roles, caller->role, &on) & 1u << MAY_SELECT;
    role_set_unref(roles);
    if (may) return true;
    buf_init(&words, 0);
    permission_missing(MAY_SELECT, caller->role, &on, &words);
    buf_u8(&words, 0);
    answer_error(a, 403, buf_failed(&words) ? "" : (const char *)words.p);
    buf_fini(&words);
    return false;
}

static void answer_tables(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    answer_json(a, 200);
    view_tables(&p->o.view, http_argument(caller->q, "after"), http_argument(caller->q, "find"), &a->body);
}

/* Reads the arguments that pictures of a table share. */
static struct view_table table_of(const struct http_request *q) {
    const char *keyspace = http_argument(q, "keyspace"), *table = http_argument(q, "table");
    const char *window = http_argument(q, "window"), *since = http_argument(q, "since");
    unsigned long ring = window ? strtoul(window, NULL, 10) : 0;
    return (struct view_table){.keyspace = keyspace ? keyspace : "", .table = table ? table : "",
                               .ring = ring < RINGS ? (unsigned)ring : 0,
                               .since = since ? (uint32_t)strtoul(since, NULL, 10) : 0};
}

static void answer_view(struct http_answer *a, bool found) {
    if (found) answer_json(a, 200);
    else answer_error(a, 404, "There is no such table");
}

static void answer_history(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const struct view_table t = table_of(caller->q);
    answer_view(a, view_history(&p->o.view, &t, &a->body));
}

static void answer_map(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const struct view_table t = table_of(caller->q);
    const char *by = http_argument(caller->q, "by");
    answer_view(a, view_map(&p->o.view, &t, by && !strcmp(by, "partition"), &a->body));
}

static void answer_statements(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const struct view_table t = table_of(caller->q);
    answer_view(a, view_statements(&p->o.view, &t, &a->body));
}

static void answer_partitions(struct live_page *p, const struct caller *caller, struct http_answer *a) {
    const struct view_table t = table_of(caller->q);
    const char *token = http_argument(caller->q, "token"), *range = http_argument(caller->q, "range");
    answer_view(a, view_partitions(&p->o.view, &t, !token, token ? strtoll(token, NULL, 10) : 0,
                                   range ? (uint32_t)strtoul(range, NULL, 10) : 0, &a->body));
}

enum needs { NOTHING, SESSION, PICTURES /* a session that may see all tables */ };
static const struct {
    const char *method, *path;
    enum needs needs;
    void (*answer)(struct live_page *p, const struct caller *caller, struct http_answer *a); /* NULL if a job answers */
    enum job_kind job;
} addresses[] = {{"GET", "/api/session", NOTHING, answer_session},
                 {"POST", "/api/login", NOTHING, answer_login},
                 {"POST", "/api/logout", NOTHING, answer_logout},
                 {"GET", "/api/tables", PICTURES, answer_tables},
                 {"GET", "/api/history", PICTURES, answer_history},
                 {"GET", "/api/map", PICTURES, answer_map},
                 {"GET", "/api/partitions", PICTURES, answer_partitions},
                 {"GET", "/api/statements", PICTURES, answer_statements},
                 {"GET", "/api/rows", SESSION, answer_rows},
                 {"POST", "/api/query", SESSION, NULL, JOB_QUERY},
                 {"POST", "/api/explain", SESSION, NULL, JOB_EXPLAIN}};

bool page_answer(struct live_page *p, const struct http_request *q, struct http_answer *out) {
    struct caller caller = {.q = q};
    char token[SESSION_TOKEN + 1];
    for (size_t i = 0; i < ARRAY_LEN(assets); i++) {
        if (strcmp(q->path, assets[i].path)) continue;
        secure(out);
        out->status = strcmp(q->method, "GET") && strcmp(q->method, "HEAD") ? 405 : 200;
        out->type = assets[i].type;
        buf_put(&out->body, assets[i].bytes, out->status == 200 ? assets[i].n : 0);
        return true;
    }
    size_t i = 0;
    while (i < ARRAY_LEN(addresses) && strcmp(q->path, addresses[i].path)) i++;
    if (i == ARRAY_LEN(addresses)) return false;
    bool posts = !strcmp(addresses[i].method, "POST");
    secure(out);
    caller.signed_in = !p->sessions || (session_token(http_header(q, "Cookie"), token) &&
                                       session_role(p->sessions, token, caller.role));
    if (strcmp(q->method, addresses[i].method)) answer_error(out, 405, "This address takes another method");
    else if (posts && !http_header(q, "X-Tally")) answer_error(out, 403, "A POST needs the header X-Tally");
    else if (!caller.signed_in && addresses[i].needs != NOTHING) answer_error(out, 401, "Sign in first");
    else if (addresses[i].needs == PICTURES && !may_see(p, &caller, out)) return true;
    else if (addresses[i].answer) addresses[i].answer(p, &caller, out);
    else hold(p, &caller, addresses[i].job, out);
    return true;
}

/* ---- life ---- */

struct live_page *page_new(const struct page_options *o, struct err *e) {
    struct live_page *p = calloc(1, sizeof(*p));
    if (!p) return err_null(err_nomem(e));
    p->o = *o;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    for (struct job_queue *l = p->queues; l < p->queues + QUEUES; l++) {
        l->page = p;
        STAILQ_INIT(&l->jobs);
        pthread_mutex_init(&l->running, NULL);
    }
    bool whole = !o->access || (p->sessions = sessions_new(o->access, o->statement.clock, e));
    for (struct job_queue *l = p->queues; whole && l < p->queues + QUEUES; l++) {
        whole = l->has_thread = !pthread_create(&l->thread, NULL, run_queue, l);
        if (!whole) err_set(e, ERR_SERVER, "cannot start a thread of the page");
    }
    if (whole) return p;
    page_stop(p);
    page_free(p);
    return NULL;
}

void page_stop(struct live_page *p) {
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (struct job_queue *l = p->queues; l < p->queues + QUEUES; l++)
        if (l->has_thread) pthread_join(l->thread, NULL);
}

void page_free(struct live_page *p) {
    for (struct job_queue *l = p->queues; l < p->queues + QUEUES; l++) pthread_mutex_destroy(&l->running);
    sessions_free(p->sessions);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void page_pause(struct live_page *p) {
    for (int i = 0; p && i < QUEUES; i++) pthread_mutex_lock(&p->queues[i].running);
}

void page_continue(struct live_page *p) {
    for (int i = 0; p && i < QUEUES; i++) pthread_mutex_unlock(&p->queues[i].running);
}
