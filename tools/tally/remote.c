#include "tools/tally/remote.h"

#include <stdlib.h>

int remote_read_sigv4(struct client_options *o, const char *region, struct err *e) {
    o->access_key = getenv("AWS_ACCESS_KEY_ID");
    o->secret_key = getenv("AWS_SECRET_ACCESS_KEY");
    o->session_token = getenv("AWS_SESSION_TOKEN");
    o->region = region ? region : getenv("AWS_REGION");
    if (!o->access_key || !o->secret_key)
        return err_set(e, ERR_CONFIG, "--sigv4 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
    return o->region ? 0 : err_set(e, ERR_CONFIG, "--sigv4 needs --region, or AWS_REGION in the environment");
}

int remote_read(struct remote *r, struct err *e) {
    uint16_t port = r->tls ? REMOTE_TLS_PORT : REMOTE_PORT;
    r->options = (struct client_options){.version = (uint8_t)r->protocol};
    if (client_address(r->server ? r->server : "127.0.0.1", r->host, &port, e)) return -1;
    if (r->protocol && (r->protocol < NP_VERSION_MIN || r->protocol > NP_VERSION_MAX))
        return err_set(e, ERR_CONFIG, "--protocol must be %d to %d, not %u", NP_VERSION_MIN, NP_VERSION_MAX,
                       r->protocol);
    if (!r->tls && (r->ca || r->insecure))
        return err_set(e, ERR_CONFIG, "--%s has no effect without --tls", r->ca ? "ca" : "insecure");
    if (r->timeout_s > 86400) return err_set(e, ERR_CONFIG, "--timeout must be at most a day");
    r->options.link = (struct link_options){.host = r->host, .port = port, .tls = r->tls, .ca = r->ca,
                                            .insecure = r->insecure, .timeout_ms = r->timeout_s * 1000};
    struct client_options *o = &r->options;
    o->user = r->user;
    o->password = r->password ? r->password : getenv("TALLY_PASSWORD");
    if (r->user && !o->password)
        return err_set(e, ERR_CONFIG, "--user needs --password, or TALLY_PASSWORD in the environment");
    if (r->password && !r->user) return err_set(e, ERR_CONFIG, "--password needs --user");
    return r->sigv4 ? remote_read_sigv4(o, r->region, e) : 0;
}

int remote_connect(struct remote *r, struct client *c, struct err *e) {
    return remote_read(r, e) ? -1 : client_open(c, &r->options, e);
}
