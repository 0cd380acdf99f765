/* The flags that name a server and a login, and the connection that follows from them. Without
 * --server the host is 127.0.0.1. */
#pragma once

#include "tools/client/client.h"
#include "tools/tally/subcommand.h"

struct remote {
    const char *server, *user, *password, *ca, *region;
    uint32_t protocol, timeout_s;
    bool tls, insecure, sigv4;
    /* set by remote_read */
    char host[256];
    struct client_options options;
};
enum { REMOTE_PORT = 9042, REMOTE_TLS_PORT = 9142 };
#define REMOTE_FLAGS(r) \
    FLAG_TEXT("server", "HOST[:PORT]", (r)->server, "the server; port 9042, with --tls 9142, when none is given"), \
        FLAG_ON("tls", (r)->tls, "TLS; the server's certificate must be for HOST"), \
        FLAG_TEXT("ca", "FILE", (r)->ca, "certificates (PEM) to trust instead of the machine's"), \
        FLAG_ON("insecure", (r)->insecure, "do not verify the server's certificate"), \
        FLAG_TEXT("user", "NAME", (r)->user, \
             "log in with a password: --password, or TALLY_PASSWORD in the environment"), \
        FLAG_TEXT("password", "TEXT", (r)->password, "others on this machine may see it in the list of processes"), \
        FLAG_ON("sigv4", (r)->sigv4, \
             "log in with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment"), \
        FLAG_TEXT("region", "NAME", (r)->region, "AWS Region of --sigv4 (AWS_REGION of the environment)"), \
        FLAG_NUMBER("protocol", "VERSION", (r)->protocol, \
             "3, 4 or 5 of the native protocol (the newest that both speak)"), \
        FLAG_NUMBER("timeout", "SECONDS", (r)->timeout_s, "for a connection or an answer (10)")

/* Reads the login of --sigv4 from the environment. region NULL: AWS_REGION. Returns -1 with
 * ERR_CONFIG. */
int remote_read_sigv4(struct client_options *o, const char *region, struct err *e) MUST_CHECK;
/* Checks the flags and fills host and options. options points into *r, so *r must not move. Returns
 * -1 with ERR_CONFIG. */
int remote_read(struct remote *r, struct err *e) MUST_CHECK;
/* Reads the flags and connects. */
int remote_connect(struct remote *r, struct client *c, struct err *e) MUST_CHECK;
