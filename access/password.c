#include "access/password.h"

#include <crypt.h>
#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/random.h"

enum { COST = 10, COST_MIN = 4, HASH_LENGTH = 60, REMEMBERED = 1024, DIGEST = 32 };

/* ---- the cache of verified passwords ---- */

static struct {
    pthread_mutex_t lock;
    bool has_key;
    uint8_t key[DIGEST];                /* random, of this process */
    uint8_t right[REMEMBERED][DIGEST]; /* by the first bytes of the digest; zeros: none */
} remembered = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The lock is held. A hash is salted, so the pair of hash and password belongs to one role. */
static bool digest_of(const char *hash, const char *password, uint8_t out[DIGEST]) {
    struct err why = {0}; /* without a key nothing is cached */
    uint8_t both[HASH_LENGTH + DIGEST];
    unsigned n = DIGEST;
    if (strlen(hash) != HASH_LENGTH) return false;
    if (!remembered.has_key) remembered.has_key = !random_bytes(remembered.key, DIGEST, &why);
    if (!remembered.has_key) return false;
    memcpy(both, hash, HASH_LENGTH);
    bool ok = EVP_Digest(password, strlen(password), both + HASH_LENGTH, NULL, EVP_sha256(), NULL) == 1 &&
              HMAC(EVP_sha256(), remembered.key, DIGEST, both, sizeof(both), out, &n) != NULL;
    OPENSSL_cleanse(both, sizeof(both));
    return ok;
}

static uint8_t *place_of(const uint8_t digest[DIGEST]) {
    return remembered.right[(digest[0] << 8 | digest[1]) % REMEMBERED];
}

bool password_is_remembered(const char *hash, const char *password) {
    uint8_t digest[DIGEST];
    pthread_mutex_lock(&remembered.lock);
    bool is = digest_of(hash, password, digest) && !CRYPTO_memcmp(place_of(digest), digest, DIGEST);
    pthread_mutex_unlock(&remembered.lock);
    return is;
}

/* ---- bcrypt ---- */

/* Cassandra's jBcrypt accepts only $2a$, and computes for it what other libraries call $2b$. */
static int slow_hash(const char *password, const char *setting, char out[PASSWORD_HASH_MAX]) {
    struct crypt_data data = {0};
    char local[PASSWORD_HASH_MAX] = "";
    strncat(local, setting, sizeof(local) - 1);
    if (!strncmp(local, "$2a$", 4)) local[2] = 'b';
    const char *made = crypt_r(password, local, &data);
    bool ok = made && strlen(made) == HASH_LENGTH;
    if (ok) {
        memcpy(out, made, HASH_LENGTH + 1);
        out[2] = 'a';
    }
    OPENSSL_cleanse(&data, sizeof(data));
    return ok ? 0 : -1;
}

int password_hash(const char *password, char out[PASSWORD_HASH_MAX], struct err *e) {
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    uint8_t salt[16];
    if (random_bytes(salt, sizeof(salt), e)) return -1;
    if (!crypt_gensalt_rn("$2b$", COST, (const char *)salt, sizeof(salt), setting, sizeof(setting)) ||
        slow_hash(password, setting, out))
        return err_set(e, ERR_SERVER, "The password could not be hashed");
    return 0;
}

enum password_form password_form(const char *hash) {
    char out[PASSWORD_HASH_MAX];
    if (strlen(hash) != HASH_LENGTH || strncmp(hash, "$2a$", 4) || !isdigit((unsigned char)hash[4]) ||
        !isdigit((unsigned char)hash[5]))
        return PASSWORD_IS_NO_HASH;
    int cost = (hash[4] - '0') * 10 + hash[5] - '0'; /* "$2a$10$...": each increment doubles the work */
    if (cost < COST_MIN) return PASSWORD_IS_NO_HASH;
    if (cost > PASSWORD_COST_MAX) return PASSWORD_IS_TOO_SLOW;
    return slow_hash("", hash, out) ? PASSWORD_IS_NO_HASH : PASSWORD_IS_HASH;
}

bool password_verify(const char *hash, const char *password) {
    static const char nobody[] = "$2a$10$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG";
    char out[PASSWORD_HASH_MAX];
    bool somebody = strlen(hash) == HASH_LENGTH;
    if (somebody && password_is_remembered(hash, password)) return true;
    int rc = slow_hash(password, somebody ? hash : nobody, out);
    bool right = somebody && !rc && !CRYPTO_memcmp(out + 4, hash + 4, HASH_LENGTH - 4);
    if (right) {
        uint8_t digest[DIGEST];
        pthread_mutex_lock(&remembered.lock);
        if (digest_of(hash, password, digest)) memcpy(place_of(digest), digest, DIGEST);
        pthread_mutex_unlock(&remembered.lock);
    }
    return right;
}
