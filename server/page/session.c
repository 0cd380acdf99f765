#include "server/page/session.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

static const char cookie_name[] = "tally_session=";

struct session {
    char token[SESSION_TOKEN + 1], role[ROLE_NAME_MAX + 1], hash[PASSWORD_HASH_MAX];
    int64_t used_us; /* machine time; 0 if the entry is free */
};

struct sessions {
    struct access_control *access;
    struct clock *clock;
    pthread_mutex_t lock;
    struct session list[SESSIONS];
};

struct sessions *sessions_new(struct access_control *access, struct clock *clock, struct err *e) {
    struct sessions *s = calloc(1, sizeof(*s));
    if (!s) return err_null(err_nomem(e));
    s->access = access;
    s->clock = clock;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void sessions_free(struct sessions *s) {
    if (!s) return;
    OPENSSL_cleanse(s->list, sizeof(s->list));
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* The role's password hash, which shows whether the password has changed. false: it may not log
 * in. */
static bool hash_of(struct sessions *s, const char *role, char hash[PASSWORD_HASH_MAX]) {
    const struct role_set *roles = access_roles(s->access);
    const struct role *r = role_find(roles, role);
    bool may = r && r->login;
    snprintf(hash, PASSWORD_HASH_MAX, "%s", may && r->hash ? r->hash : "");
    role_set_unref(roles);
    return may;
}

int session_begin(struct sessions *s, const char *role, char token[SESSION_TOKEN + 1], struct err *e) {
    uint8_t bytes[SESSION_TOKEN / 2];
    char hash[PASSWORD_HASH_MAX];
    if (random_bytes(bytes, sizeof(bytes), e)) return -1;
    if (!hash_of(s, role, hash)) return err_set(e, ERR_BAD_CREDENTIALS, "%s is not permitted to log in", role);
    for (size_t i = 0; i < sizeof(bytes); i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    pthread_mutex_lock(&s->lock);
    struct session *oldest = s->list;
    for (struct session *x = s->list; x < s->list + SESSIONS; x++)
        if (x->used_us < oldest->used_us) oldest = x;
    *oldest = (struct session){.used_us = clock_machine_us(s->clock)};
    memcpy(oldest->token, token, SESSION_TOKEN + 1);
    memcpy(oldest->hash, hash, sizeof(hash));
    snprintf(oldest->role, sizeof(oldest->role), "%s", role);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* Under the lock. */
static struct session *find(struct sessions *s, const char *token) {
    struct session *found = NULL;
    int64_t now = clock_machine_us(s->clock);
    for (struct session *x = s->list; x < s->list + SESSIONS; x++) {
        if (x->used_us && now - x->used_us > SESSION_SECONDS * INT64_C(1000000)) *x = (struct session){0};
        if (x->used_us && !CRYPTO_memcmp(x->token, token, SESSION_TOKEN)) found = x;
    }
    return found;
}

void session_end(struct sessions *s, const char *token) {
    pthread_mutex_lock(&s->lock);
    struct session *x = find(s, token);
    if (x) *x = (struct session){0};
    pthread_mutex_unlock(&s->lock);
}

bool session_role(struct sessions *s, const char *token, char role[ROLE_NAME_MAX + 1]) {
    char hash[PASSWORD_HASH_MAX];
    pthread_mutex_lock(&s->lock);
    struct session *x = find(s, token);
    bool valid = x && hash_of(s, x->role, hash) && !strcmp(hash, x->hash);
    if (valid) {
        x->used_us = clock_machine_us(s->clock);
        memcpy(role, x->role, sizeof(x->role));
    } else if (x) *x = (struct session){0};
    pthread_mutex_unlock(&s->lock);
    return valid;
}

bool session_token(const char *cookie, char token[SESSION_TOKEN + 1]) {
    for (const char *at = cookie; at; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, cookie_name, sizeof(cookie_name) - 1)) {
            if (!*at) return false;
            continue;
        }
        const char *value = at + sizeof(cookie_name) - 1;
        if (strspn(value, "0123456789abcdef") != SESSION_TOKEN) return false;
        memcpy(token, value, SESSION_TOKEN);
        token[SESSION_TOKEN] = 0;
        return true;
    }
    return false;
}
