#include "access/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "access/password.h"
#include "base/array.h"
#include "base/file.h"

enum { WORDS_MAX = 6, KEYS_MAX = 10000 };

struct reader {
    const char *path;
    unsigned line;
    struct access_control *access; /* NULL if the file is only checked */
    struct access_keys *keys;
    struct err *e;
};

static int refuse(const struct reader *r, const char *why) {
    return err_set(r->e, ERR_CONFIG, "%s line %u: %s", r->path, r->line, why);
}

static int take_key(struct reader *r, uint32_t n, char *const *words) {
    struct access_keys *k = r->keys;
    if (k->n == KEYS_MAX) return refuse(r, "too many access keys");
    if (access_key_find(k, slice_str(words[1]))) return refuse(r, "this access key is there already");
    if (array_room(&k->keys, k->n, &k->cap, sizeof(*k->keys))) return err_nomem(r->e);
    struct access_key *key = &k->keys[k->n];
    *key = (struct access_key){arena_strdup(&k->arena, words[1]), arena_strdup(&k->arena, words[2]),
                               arena_strdup(&k->arena, words[3]), n > 4 ? arena_strdup(&k->arena, words[4]) : NULL};
    if (!key->id || !key->secret || !key->role || (n > 4 && !key->token)) return err_nomem(r->e);
    k->n++;
    return 0;
}

static int take_line(struct reader *r, char *line) {
    char *words[WORDS_MAX], *rest = NULL;
    uint32_t n = 0;
    for (char *w = strtok_r(line, " \t\r\n", &rest); w && n < WORDS_MAX; w = strtok_r(NULL, " \t\r\n", &rest))
        words[n++] = w;
    if (!n || words[0][0] == '#') return 0;
    if (!strcmp(words[0], "user")) {
        char made[PASSWORD_HASH_MAX];
        if (n != 3) return refuse(r, "it must be: user NAME PASSWORD");
        enum password_form form = password_form(words[2]);
        if (form == PASSWORD_IS_TOO_SLOW)
            return refuse(r, "the hash of this password has too great a cost: each login would take seconds");
        if (!r->access) return 0;
        const char *hash = form == PASSWORD_IS_HASH ? words[2] : made;
        if (hash == made && password_hash(words[2], made, r->e)) return -1;
        return access_provide(r->access, words[1], hash, r->e);
    }
    if (!strcmp(words[0], "key"))
        return n == 4 || n == 5 ? take_key(r, n, words)
                                : refuse(r, "it must be: key ACCESS-KEY-ID SECRET NAME [SESSION-TOKEN]");
    return refuse(r, "a line begins with user, key or #");
}

static int read_file(struct reader *r) {
    const char *why;
    int fd = file_open_read(r->path, &why);
    if (fd < 0) return err_set(r->e, ERR_CONFIG, "cannot read %s: %s", r->path, why);
    FILE *f = fdopen(fd, "r");
    if (!f) {
        close(fd);
        return err_nomem(r->e);
    }
    struct stat st;
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    if (fstat(fd, &st)) rc = err_set(r->e, ERR_CONFIG, "cannot read %s: %s", r->path, strerror(errno));
    else if (st.st_mode & S_IRWXO)
        rc = err_set(r->e, ERR_CONFIG, "%s holds secrets and may be read by everybody: chmod 600 it", r->path);
    while (!rc && getline(&line, &cap, f) >= 0) {
        r->line++;
        rc = take_line(r, line);
    }
    if (line) OPENSSL_cleanse(line, cap);
    free(line);
    fclose(f);
    return rc;
}

int credentials_read(const char *path, struct access_control *a, struct access_keys *keys, struct err *e) {
    struct reader r = {.path = path, .access = a, .keys = keys, .e = e};
    *keys = (struct access_keys){0};
    arena_init(&keys->arena, 4096, 0);
    if (read_file(&r)) return -1;
    const struct role_set *roles = access_roles(a);
    int rc = 0;
    for (uint32_t i = 0; i < keys->n && !rc; i++)
        if (!role_find(roles, keys->keys[i].role))
            rc = err_set(e, ERR_CONFIG, "%s: access key %s is for role %s, which there is not", path, keys->keys[i].id,
                         keys->keys[i].role);
    role_set_unref(roles);
    return rc;
}

int credentials_check(const char *path, struct err *e) {
    struct access_keys keys = {0};
    struct reader r = {.path = path, .keys = &keys, .e = e};
    arena_init(&keys.arena, 4096, 0);
    int rc = read_file(&r);
    access_keys_fini(&keys);
    return rc;
}

bool access_key_takes(const struct access_key *key, struct slice token) {
    size_t n = key->token ? strlen(key->token) : 0;
    return token.n == n && (!n || !CRYPTO_memcmp(token.p, key->token, n));
}

const struct access_key *access_key_find(const struct access_keys *k, struct slice id) {
    for (uint32_t i = 0; i < k->n; i++)
        if (slice_is(id, k->keys[i].id)) return &k->keys[i];
    return NULL;
}

void access_keys_fini(struct access_keys *k) {
    for (uint32_t i = 0; i < k->n; i++) OPENSSL_cleanse((char *)k->keys[i].secret, strlen(k->keys[i].secret));
    arena_fini(&k->arena);
    free(k->keys);
    *k = (struct access_keys){0};
}
