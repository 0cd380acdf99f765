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
    {.name = "server", .argument = "HOST[:PORT]", .text = &(r)->server, \
     .help = "the server; port 9042, with --tls 9142, when none is given"}, \
        {.name = "tls", .on = &(r)->tls, .help = "TLS; the server's certificate must be for HOST"}, \
        {.name = "ca", .argument = "FILE", .text = &(r)->ca, \
         .help = "certificates (PEM) to believe instead of the machine's"}, \
        {.name = "insecure", .on = &(r)->insecure, .help = "believe whoever answers"}, \
        {.name = "user", .argument = "NAME", .text = &(r)->user, \
         .help = "log in with a password: --password, or TALLY_PASSWORD in the environment"}, \
        {.name = "password", .argument = "TEXT", .text = &(r)->password, \
         .help = "others on this machine may see it in the list of processes"}, \
        {.name = "sigv4", .on = &(r)->sigv4, \
         .help = "log in with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment"}, \
        {.name = "region", .argument = "NAME", .text = &(r)->region, \
         .help = "AWS Region of --sigv4 (AWS_REGION of the environment)"}, \
        {.name = "protocol", .argument = "VERSION", .number = &(r)->protocol, \
         .help = "3, 4 or 5 of the native protocol; the newest that both speak when it is not given"}, \
        {.name = "timeout", .argument = "SECONDS", .number = &(r)->timeout_s, \
         .help = "for a connection or an answer (10)"}

/* Reads the login of --sigv4 from the environment. region NULL: AWS_REGION. -1: ERR_CONFIG. */
int remote_read_sigv4(struct client_options *o, const char *region, struct err *e) MUST_CHECK;
/* Checks the flags and fills host and options. options points into *r, so *r must not move. -1:
 * ERR_CONFIG. */
int remote_read(struct remote *r, struct err *e) MUST_CHECK;
/* Reads the flags and connects. */
int remote_connect(struct remote *r, struct client *c, struct err *e) MUST_CHECK;
