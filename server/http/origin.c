#include "server/http/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255 };

/* ---- addresses ---- */

/* Parses an address. An IPv4 address becomes ::ffff:a.b.c.d, so that equal addresses have equal
 * bytes. */
static bool address_of(const char *host, struct in6_addr *out) {
    struct in_addr v4;
    if (inet_pton(AF_INET6, host, out) == 1) return true;
    if (inet_pton(AF_INET, host, &v4) != 1) return false;
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(out->s6_addr + 12, &v4, sizeof(v4));
    return true;
}

/* ---- names ---- */

/* Copies the host without its port, brackets and final dot. Returns false when the text is not a
 * host with or without a port. */
static bool host_of(const char *text, size_t n, char host[HOST_MAX + 1]) {
    bool in_brackets = n && text[0] == '[';
    const char *from = text + in_brackets, *end = memchr(from, in_brackets ? ']' : ':', n - in_brackets);
    if (in_brackets && !end) return false;
    size_t n_host = end ? (size_t)(end - from) : n;
    const char *port = end ? end + in_brackets : text + n;
    size_t n_port = (size_t)(text + n - port);
    if (n_port && (*port != ':' || strspn(port + 1, "0123456789") < n_port - 1)) return false;
    if (n_host && from[n_host - 1] == '.') n_host--;
    if (!n_host || n_host > HOST_MAX) return false;
    memcpy(host, from, n_host);
    host[n_host] = 0;
    return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") == n_host;
}

static bool is_same_host(const char *a, const char *b) {
    struct in6_addr first, second;
    if (address_of(a, &first) && address_of(b, &second)) return !memcmp(&first, &second, sizeof(first));
    return !strcasecmp(a, b);
}

static bool is_loopback(const char *host) {
    static const char name[] = "localhost", suffix[] = ".localhost";
    struct in6_addr a;
    size_t n = strlen(host);
    if (address_of(host, &a))
        return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
    return !strcasecmp(host, name) || (n > sizeof(suffix) - 1 && !strcasecmp(host + n - (sizeof(suffix) - 1), suffix));
}

/* Copies a host of the list. There an IPv6 address needs no brackets, and a port is not allowed. */
static bool listed_host(const char *text, size_t n, char host[HOST_MAX + 1]) {
    struct in6_addr address;
    if (n && n <= HOST_MAX) {
        memcpy(host, text, n);
        host[n] = 0;
        if (address_of(host, &address)) return true;
    }
    return host_of(text, n, host) && (text[n - 1] == ']' || !memchr(text, ':', n));
}

int http_hosts_check(const char *names, struct err *e) {
    char name[HOST_MAX + 1];
    for (const char *at = names; *names; at += strcspn(at, ",") + 1) {
        size_t n = strcspn(at, ",");
        if (!listed_host(at, n, name))
            return err_set(e, ERR_CONFIG, "--http-hosts: '%.*s' must be a name or an address, without port", (int)n,
                           at);
        if (!at[n]) break;
    }
    return 0;
}

/* ---- the check ---- */

static bool is_own_name(const struct http_hosts *hosts, const char *header, struct buf *why) {
    char host[HOST_MAX + 1];
    if (!host_of(header, strlen(header), host)) {
        buf_put_str(why, "The Host header of this request is not a host's name or address.");
        return false;
    }
    if (is_loopback(host) || (hosts->listen && is_same_host(host, hosts->listen)) ||
        (hosts->port_listen && is_same_host(host, hosts->port_listen)))
        return true;
    for (const char *names = hosts->names; names && *names;) {
        char name[HOST_MAX + 1];
        size_t n = strcspn(names, ",");
        if (listed_host(names, n, name) && is_same_host(name, host)) return true;
        names += n + (names[n] == ',');
    }
    buf_printf(why,
               "The Host %s is not a name of this server. Its names are localhost, loopback addresses, the address of "
               "--listen, the address that this port listens on and the hosts of --http-hosts; if requests reach it by "
               "another name, add it to --http-hosts.",
               host);
    return false;
}

bool http_origin_allows(const struct http_hosts *hosts, const struct http_caller *c, struct buf *why) {
    static const char *const schemes[] = {"http://", "https://"};
    if (c->host && !is_own_name(hosts, c->host, why)) return false;
    /* An origin is scheme://host, with a port unless it is the scheme's; Host leaves out the same
     * ports. A proxy in front may use the other scheme. */
    bool same = !c->origin;
    for (size_t i = 0; c->origin && c->host && i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        same = same || (!strncasecmp(c->origin, schemes[i], n) && !strcasecmp(c->origin + n, c->host));
    }
    if (!same) {
        buf_put_str(why, "This request has the Origin of a web page that is not this server's. Requests of foreign "
                     "web pages are refused; programs send no Origin.");
        return false;
    }
    if (!c->fetch_site || !strcasecmp(c->fetch_site, "same-origin") || !strcasecmp(c->fetch_site, "none")) return true;
    buf_put_str(why, "A browser sends this request for a web page that is not this server's (Sec-Fetch-Site). "
                     "Requests of foreign web pages are refused; an address that a user types is answered.");
    return false;
}
