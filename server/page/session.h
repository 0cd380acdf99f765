/* The sessions of the page. A session is a random token, which the browser keeps in a cookie.
 *
 * At most SESSIONS exist: a further login ends the one that was used least recently. A session ends
 * SESSION_SECONDS after its last use, and when its role is dropped, may no longer log in, or gets
 * another password. Any thread. */
#pragma once

#include "access/access.h"
#include "access/password.h"
#include "base/clock.h"

enum { SESSIONS = 16, SESSION_SECONDS = 8 * 3600, SESSION_TOKEN = 64 /* hexadecimal digits */ };

struct sessions;
struct sessions *sessions_new(struct access_control *access, struct clock *clock, struct err *e) MUST_CHECK;
void sessions_free(struct sessions *s);
/* Begins a session of a role whose password was checked. Returns -1 with e set. */
int session_begin(struct sessions *s, const char *role, char token[SESSION_TOKEN + 1], struct err *e) MUST_CHECK;
void session_end(struct sessions *s, const char *token);
/* false: there is no such session. */
bool session_role(struct sessions *s, const char *token, char role[ROLE_NAME_MAX + 1]);
/* Finds the token in a Cookie header, which may be NULL. false: it has none. */
bool session_token(const char *cookie, char token[SESSION_TOKEN + 1]);
