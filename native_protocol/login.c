#include "native_protocol/login.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "access/password.h"
#include "access/sigv4.h"
#include "base/log.h"
#include "base/murmur3.h"
#include "native_protocol/audit.h"
#include "native_protocol/loop.h"
#include "native_protocol/metric.h"
#include "native_protocol/request.h"

enum { ADDRESSES = 4096, WAYS = 4, NAME_MAX_BYTES = ROLE_NAME_MAX, PASSWORD_MAX_BYTES = 1024 };

/* The slow password checks that an address has left. An idle address gets all of them back. */
struct allowance {
    uint8_t address[16];
    double left;
    int64_t at_us;
};

struct login {
    struct np_task task; /* first */
    struct login *next;
    struct np_conn *conn; /* referenced; the loop's thread only */
    struct np_loop *loop;
    struct np_envelope env; /* without its body */
    bool right;
    struct err e; /* why the password was not checked */
    char hash[PASSWORD_HASH_MAX], name[NAME_MAX_BYTES + 1], password[PASSWORD_MAX_BYTES + 1];
};

struct np_logins {
    struct np_logins_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool stopping;
    struct login *first, **last;
    struct allowance allowances[ADDRESSES];
};

/* ---- rate limit of slow checks ---- */

/* Takes n slow checks from the allowance of the address; false: fewer are left. A new address takes
 * a free entry of its set, or replaces the one that has the most checks left, which loses the least
 * by that. */
static bool allow(struct np_logins *p, const struct ip_address *client, int n) {
    uint8_t address[16] = {0};
    memcpy(address, client->bytes, client->n == 16 ? 8 : 4); /* IPv6: the /64 prefix, because one host owns all of it */
    struct allowance *set = &p->allowances[(size_t)murmur3_token(slice_of(address, 16)) % (ADDRESSES / WAYS) * WAYS];
    struct allowance *a = NULL, *best = NULL;
    pthread_mutex_lock(&p->lock);
    int64_t now_us = clock_machine_us(p->o.clock);
    for (struct allowance *x = set; x < set + WAYS && !a; x++) {
        if (x->at_us) {
            double left = x->left + (double)(now_us - x->at_us) * 1e-6 * NP_LOGIN_PER_SECOND;
            x->left = left < NP_LOGIN_BURST ? left : NP_LOGIN_BURST;
            x->at_us = now_us;
        }
        if (x->at_us && !memcmp(x->address, address, 16)) a = x;
        if (!best || !x->at_us || (best->at_us && x->left > best->left)) best = x;
    }
    if (!a) {
        a = best;
        *a = (struct allowance){.left = NP_LOGIN_BURST, .at_us = now_us};
        memcpy(a->address, address, 16);
    }
    bool may = a->left >= n;
    if (may) a->left -= n;
    pthread_mutex_unlock(&p->lock);
    return may;
}

/* A role that may not log in gets no hash, like a role that does not exist: both are checked as
 * slowly and get the same answer. */
static bool hash_of(struct np_logins *p, const char *name, char hash[PASSWORD_HASH_MAX]) {
    const struct role_set *roles = access_roles(p->o.access);
    const struct role *r = role_find(roles, name);
    bool may = r && r->login;
    *hash = 0;
    if (may) strncat(hash, r->hash, PASSWORD_HASH_MAX - 1);
    role_set_unref(roles);
    return may;
}

static int err_too_many(struct err *e) {
    return err_set(e, ERR_BAD_CREDENTIALS,
                   "Too many failed logins from this address: it may try again in a second, %d times a second",
                   NP_LOGIN_PER_SECOND);
}

/* Checks the password. Before it refuses a login it makes sure that the roles are as new as the request: another
 * server on the store may have changed them. hash: that of the role as last known. Returns -1 if they cannot be
 * read. */
static int verify(struct np_logins *p, const char *name, const char *password, char hash[PASSWORD_HASH_MAX],
                  bool *right, struct err *e) {
    char before[PASSWORD_HASH_MAX];
    if ((*right = password_verify(hash, password))) return 0;
    memcpy(before, hash, sizeof(before));
    if (access_catch_up(p->o.access, e)) return -1;
    hash_of(p, name, hash);
    *right = strcmp(hash, before) != 0 && password_verify(hash, password);
    return 0;
}

int np_logins_check(struct np_logins *p, const struct ip_address *client, const char *name, const char *password,
                    struct err *e) {
    char hash[PASSWORD_HASH_MAX];
    bool may = hash_of(p, name, hash);
    if (may && password_is_remembered(hash, password)) return 0;
    bool right;
    if (!allow(p, client, 1)) return err_too_many(e);
    if (verify(p, name, password, hash, &right, e)) return -1;
    if (!right)
        return err_set(e, ERR_BAD_CREDENTIALS, "Provided username %s and/or password are incorrect", name);
    allow(p, client, -1);
    return 0;
}

/* ---- answers ---- */

/* name: the role that the client named; NULL if none yet. */
static void fail(struct np_conn *c, const struct np_envelope *env, const char *name, const struct err *e) {
    np_metric_add(&c->loop->metrics, NP_METRIC_LOGINS_FAILED, 1);
    npi_audit_login(c, name, e);
    np_account(&c->loop->metrics, &(struct np_account){.opcode = NP_AUTH_RESPONSE}, e);
    npi_conn_end(c, env->version, env->stream, e);
}

static void enter(struct np_conn *c, const struct np_envelope *env, const char *role) {
    struct err e = {0};
    if (npi_conn_log_in(c, role)) {
        err_nomem(&e);
        fail(c, env, role, &e);
        return;
    }
    np_metric_add(&c->loop->metrics, NP_METRIC_LOGINS, 1);
    npi_audit_login(c, role, &e);
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_AUTH_SUCCESS, false);
    buf_u32(r.out, UINT32_MAX); /* no token */
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, NP_AUTH_RESPONSE, NP_OUTCOME_OK);
}

/* ---- PLAIN ---- */

static void login_free(struct login *l) {
    OPENSSL_cleanse(l, sizeof(*l));
    free(l);
}

static void login_done(struct np_task *x, bool ended) {
    (void)ended; /* then the connection is closed */
    struct login *l = (struct login *)x;
    struct np_conn *c = l->conn;
    c->login.pending = false;
    if (c->state == NP_CONN_AUTH && l->right) {
        allow(l->loop->logins, &c->peer, -1);
        enter(c, &l->env, l->name);
    } else if (c->state == NP_CONN_AUTH) {
        err_set(&l->e, ERR_BAD_CREDENTIALS, "Provided username %s and/or password are incorrect", l->name);
        fail(c, &l->env, l->name, &l->e);
    }
    npi_conn_unref(c);
    login_free(l);
}

static void *run_thread(void *arg) {
    struct np_logins *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        struct login *l = p->first;
        if (!l) {
            pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        p->first = l->next;
        if (!p->first) p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        if (verify(p, l->name, l->password, l->hash, &l->right, &l->e)) l->right = false;
        npi_inbox_give(&l->loop->inbox, &l->task);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Splits the token: [authorization id] NUL name NUL password. */
static int take_plain(struct slice token, struct login *l, struct err *e) {
    const uint8_t *name = memchr(token.p, 0, token.n), *end = token.p + token.n;
    const uint8_t *password = name ? memchr(name + 1, 0, (size_t)(end - name - 1)) : NULL;
    if (!password)
        return err_set(e, ERR_BAD_CREDENTIALS,
                       "Authentication ID and password must both be given: NUL, name, NUL, password (SASL PLAIN)");
    size_t n_name = (size_t)(password - name - 1), n_password = (size_t)(end - password - 1);
    if (!n_name || !n_password)
        return err_set(e, ERR_BAD_CREDENTIALS, "%s must not be null", n_name ? "Password" : "Authentication ID");
    if (n_name > NAME_MAX_BYTES || n_password > PASSWORD_MAX_BYTES || memchr(password + 1, 0, n_password))
        return err_set(e, ERR_BAD_CREDENTIALS, "A name may have at most %d bytes, a password %d and no NUL",
                       NAME_MAX_BYTES, PASSWORD_MAX_BYTES);
    memcpy(l->name, name + 1, n_name);
    memcpy(l->password, password + 1, n_password);
    return 0;
}

static void login_plain(struct np_logins *p, struct np_conn *c, const struct np_envelope *env, struct slice token) {
    struct err e = {0};
    struct login *l = calloc(1, sizeof(*l));
    if (!l || take_plain(token, l, l ? &e : NULL)) {
        if (!l) err_nomem(&e);
        fail(c, env, NULL, &e);
        if (l) login_free(l);
        return;
    }
    l->task.done = login_done;
    l->conn = c;
    l->loop = c->loop;
    l->env = *env;
    l->env.body = (struct slice){0};
    bool may = hash_of(p, l->name, l->hash);
    if (may && password_is_remembered(l->hash, l->password)) {
        enter(c, env, l->name);
    } else if (allow(p, &c->peer, 1)) {
        npi_conn_ref(l->conn);
        l->conn->login.pending = true;
        pthread_mutex_lock(&p->lock);
        l->next = NULL;
        *p->last = l;
        p->last = &l->next;
        pthread_cond_signal(&p->more);
        pthread_mutex_unlock(&p->lock);
        return;
    } else {
        err_too_many(&e);
        fail(c, env, l->name, &e);
    }
    login_free(l);
}

/* ---- SigV4 ---- */

static void challenge(struct np_conn *c, const struct np_envelope *env) {
    static const char prefix[] = "nonce=";
    struct np_reply r;
    struct err e = {0};
    if (sigv4_nonce(c->login.nonce, &e)) {
        fail(c, env, NULL, &e);
        return;
    }
    c->login.challenged = true;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_AUTH_CHALLENGE, false);
    buf_u32(r.out, (uint32_t)(strlen(prefix) + SIGV4_NONCE));
    buf_put_str(r.out, prefix);
    buf_put(r.out, c->login.nonce, SIGV4_NONCE);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, NP_AUTH_RESPONSE, NP_OUTCOME_OK);
}

static bool is_signed(struct np_logins *p, const struct np_conn *c, const struct sigv4_response *s,
                      const struct access_key *key) {
    char due[SIGV4_SIGNATURE];
    int64_t at = sigv4_time(s->date), now = clock_wall_us(p->o.clock) / 1000000;
    /* an unknown key takes as long as a known one */
    int rc = sigv4_sign(s->date, s->access_key, key ? key->secret : "", p->o.region, c->login.nonce, due);
    bool same = !rc && !CRYPTO_memcmp(due, s->signature.p, SIGV4_SIGNATURE);
    bool in_time = at >= 0 && at - now <= SIGV4_SKEW_S && now - at <= SIGV4_SKEW_S;
    return key && same && in_time && access_key_takes(key, s->session_token);
}

static void login_sigv4(struct np_logins *p, struct np_conn *c, const struct np_envelope *env, struct slice token) {
    struct sigv4_response s;
    struct err e = {0};
    if (sigv4_parse(token, &s, &e)) {
        fail(c, env, NULL, &e);
        return;
    }
    const struct access_key *key = access_key_find(p->o.keys, s.access_key);
    c->login.challenged = false; /* a nonce is used once */
    if (is_signed(p, c, &s, key)) {
        enter(c, env, key->role);
        return;
    }
    err_set(&e, ERR_BAD_CREDENTIALS, "Authentication failure: Invalid signature");
    fail(c, env, key ? key->role : NULL, &e);
}

/* ---- entry ---- */

/* Handles a token of the connection, which is answered now or later. */
static void login(struct np_conn *c, const struct np_envelope *env, struct slice token) {
    struct np_logins *p = c->loop->logins;
    struct err e = {0};
    if (c->login.pending)
        err_set(&e, ERR_PROTOCOL, "Unexpected message AUTH_RESPONSE, the previous one is not answered yet");
    else if (!token.p) err_set(&e, ERR_BAD_CREDENTIALS, "AUTH_RESPONSE carries no token");
    else if (c->login.challenged) return login_sigv4(p, c, env, token);
    else if (p->o.keys && sigv4_is_hello(token)) return challenge(c, env);
    else return login_plain(p, c, env, token);
    fail(c, env, NULL, &e);
}

/* ---- life ---- */

struct np_logins *np_logins_new(const struct np_logins_options *o, struct err *e) {
    struct np_logins *p = calloc(1, sizeof(*p));
    if (!p) return err_null(err_nomem(e));
    p->o = *o;
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    if (!pthread_create(&p->thread, NULL, run_thread, p)) return p;
    err_set(e, ERR_SERVER, "cannot start a thread");
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->more);
    free(p);
    return NULL;
}

void np_logins_stop(struct np_logins *p) {
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    for (struct login *l = p->first, *next; l; l = next) {
        next = l->next;
        npi_conn_unref(l->conn);
        login_free(l);
    }
    p->first = NULL;
}

void np_logins_free(struct np_logins *p) {
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->more);
    free(p);
}

static void answer_empty(struct np_conn *c, const struct np_envelope *env, enum np_opcode opcode) {
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, opcode, false);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

void npi_on_STARTUP(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct np_startup s;
    struct err e = {0};
    if (c->state != NP_CONN_NEW)
        err_set(&e, ERR_PROTOCOL, "Unexpected message STARTUP, the connection is already initialized");
    else if (!np_startup_decode(env->version, body, &s, &e)) {
        c->version = c->session.protocol_version = env->version;
        npi_conn_introduce(c, &s);
        npi_conn_set_state(c, c->loop->logins ? NP_CONN_AUTH : NP_CONN_READY);
        c->throw_on_overload = s.throw_on_overload;
        c->capacity_full = s.capacity_full;
        /* the answer to STARTUP is the last envelope outside of segments, and is never compressed */
        if (c->loop->logins) {
            struct np_reply r;
            np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_AUTHENTICATE, false);
            /* drivers compare this class with those that they know, and ignore the rest */
            np_put_string(r.out, "org.apache.cassandra.auth.PasswordAuthenticator");
            npi_conn_reply(c, &r);
            np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
        } else answer_empty(c, env, NP_READY);
        c->compression = s.compression;
        if (env->version >= 5 && np_output_begin_framing(&c->output, s.compression == NP_COMPRESS_LZ4))
            npi_conn_close(c);
        return;
    }
    npi_answer_error(c, env, &e);
}

void npi_on_OPTIONS(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    (void)body;
    struct np_reply r;
    np_reply_begin(&r, npi_conn_out(c), env->version, env->stream, NP_SUPPORTED, false);
    np_put_supported(r.out, env->version, c->loop->o->newest_version, catalog_node(c->loop->o->catalog)->cql_version);
    npi_conn_reply(c, &r);
    np_metric_request(&c->loop->metrics, env->opcode, NP_OUTCOME_OK);
}

void npi_on_REGISTER(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    unsigned events;
    if (np_register_decode(body, &events, &e)) {
        npi_answer_error(c, env, &e);
        return;
    }
    c->events |= events;
    answer_empty(c, env, NP_READY);
}

void npi_on_AUTH_RESPONSE(struct np_conn *c, const struct np_envelope *env, struct slice body) {
    struct err e = {0};
    struct slice token;
    if (!np_auth_decode(body, &token, &e)) {
        if (c->state == NP_CONN_AUTH) return login(c, env, token);
        err_set(&e, ERR_PROTOCOL, "Unexpected message AUTH_RESPONSE, no authentication is going on");
    }
    npi_answer_error(c, env, &e);
}
