/* The operator's file of credentials (--credentials): logins and access keys that no statement
 * creates. Each line is one of the following, its words separated by blanks:
 *
 *   user NAME PASSWORD                     a role with all rights; a role that has the name already
 *                                          gets the password
 *   key ACCESS-KEY-ID SECRET NAME [TOKEN]  signs in as the role (access/sigv4.h), with the session
 *                                          token when the line has one, else with none
 *   # ...                                  a remark
 *
 * A password may be given as its hash. The file must be a regular one, and readable by none but its
 * owner and its group.
 */
#pragma once

#include "access/access.h"

struct access_key {
    const char *id, *secret, *role, *token; /* token NULL: the key has none */
};

struct access_keys {
    struct arena arena;
    uint32_t n;
    size_t cap;
    struct access_key *keys;
};

/* Checks whether credentials_read would accept the file, as far as the file alone can tell.
 * Hashes no password. */
int credentials_check(const char *path, struct err *e) MUST_CHECK;
/* Reads the file into the roles and the keys. The caller frees keys, also after -1. */
int credentials_read(const char *path, struct access_control *a, struct access_keys *keys, struct err *e) MUST_CHECK;
/* True if token (empty: none) is the session token of the key. A key without a session token
 * accepts only an empty one, as on AWS. */
bool access_key_takes(const struct access_key *key, struct slice token);
/* Returns NULL if there is none. */
const struct access_key *access_key_find(const struct access_keys *k, struct slice id);
void access_keys_fini(struct access_keys *k);
