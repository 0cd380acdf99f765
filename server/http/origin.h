/* Refuses requests that a browser sends for a foreign web page.
 *
 * Any page that a user of this machine opens can send requests to 127.0.0.1. A page can send some
 * of them without asking first, and it can read the answers when its own name resolves to
 * 127.0.0.1 (DNS rebinding). Three headers, which a page cannot change, show such requests: Host
 * names the server as the page does, Origin names the page, and Sec-Fetch-Site says how the two
 * relate. Programs send Host alone, with the address that they connect to.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The names that a Host header may have besides localhost, names that end in .localhost, and
 * loopback addresses. */
struct http_hosts {
    const char *listen; /* numeric address of --listen; NULL if none */
    const char *port_listen; /* numeric address that the HTTP port listens on; NULL if none */
    const char *names;  /* names and addresses without ports, separated by commas; NULL if none */
};

/* Headers of a request; NULL if the request has no such header. */
struct http_caller {
    const char *host, *origin, *fetch_site;
};

/* Checks the form of http_hosts.names. -1, ERR_CONFIG: the form is wrong. */
int http_hosts_check(const char *names, struct err *e) MUST_CHECK;
/* Returns false and writes the reason, for the user, when the request is to be refused. A request
 * without a Host header (HTTP/1.0) does not come from a browser. */
bool http_origin_allows(const struct http_hosts *hosts, const struct http_caller *c, struct buf *why);
