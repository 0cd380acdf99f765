/* The operator's file of credentials (--credentials): logins and access keys that no statement makes. A line each, words between blanks:
 *
 *   user NAME PASSWORD                       a role with all rights, unless there is one of the name, which gets the password
 *   key ACCESS-KEY-ID SECRET NAME [TOKEN]    signs in as the role (access/sigv4.h); TOKEN: only with this session token
 *   # ...                                    a remark
 *
 * A password may be given as its hash. The file must not be readable by others than its owner and its group.
 */
#pragma once

#include "access/access.h"

struct access_key {
    const char *id, *secret, *role, *token; /* token NULL: none is asked for */
};

struct access_keys {
    struct arena arena;
    uint32_t n, cap;
    struct access_key *keys;
};

/* Reads the file into the roles and the keys. keys is to be freed also on -1. */
int credentials_read(const char *path, struct access_control *a, struct access_keys *keys, struct err *e) MUST_CHECK;
/* NULL: there is none. */
const struct access_key *access_key_find(const struct access_keys *k, struct slice id);
void access_keys_fini(struct access_keys *k);
