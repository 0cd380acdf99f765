/* The control plane's options: the parts of the server that it uses, and its ports. */
#pragma once

#include "access/credentials.h"
#include "control_plane/metric.h"
#include "cql/execute.h"
#include "server/http/origin.h"

struct control_plane_options {
    struct cql_db *db;
    struct catalog *catalog;
    struct clock *clock;
    const struct access_keys *keys; /* NULL if signatures are not checked */
    struct access_control *access;
    const char *region;
    struct metric_source metrics;
    const char *address;     /* of both ports; as in http_options */
    uint16_t port, tls_port; /* 0 means off */
    int request_s;           /* of http_options */
    const char *tls_cert, *tls_key;
    struct http_hosts hosts; /* of http_options */
};
