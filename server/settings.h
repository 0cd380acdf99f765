/* The settings as checked values. A setting that Tally does not support is refused by name. */
#pragma once

#include "base/log.h"
#include "metering/capture/recorder.h"
#include "server/http/origin.h"
#include "metering/limits/limiter.h"
#include "native_protocol/audit_queue.h"
#include "native_protocol/options.h"
#include "server/config.h"
#include "server/memory.h"

enum auth { AUTH_NONE, AUTH_PASSWORD, AUTH_SIGV4 }; /* SIGV4: a signature or a password */

struct settings { /* texts belong to the config */
    const struct config *config; /* for system_views.settings; NULL for that shows none */
    const char *data_dir; /* NULL if data is kept in memory */
    enum { STORE_LOCAL, STORE_RADOS } store;
    struct eng_rados rados;
    const char *listen, *broadcast; /* broadcast: where clients reach the server */
    uint16_t port, tls_port, admin_port, api_port, api_tls_port; /* the API's: 0: off */
    const char *admin_listen, *api_listen; /* numeric addresses */
    const char *http_hosts;
    bool has_tls, tls_only;
    struct np_tls_options tls;
    struct {
        const char *file, *levels; /* "": stderr */
        enum log_format format;
    } log;
    const char *audit_log; /* file; "": none */
    unsigned audit_categories;
    enum np_audit_full audit_full;
    int64_t slow_us; /* statements that take this long or longer are logged; 0 if none */
    enum tally_mode mode;
    enum auth auth;
    const char *credentials; /* file; empty: none */
    const char *region;      /* for which SigV4 logins are signed */
    enum compat_mode compatibility;
    enum size_model size_model;
    enum write_size write_size;
    uint32_t timestamp_size;
    const char *ddl_delay, *ddl_rules; /* parsed by the catalogue, too */
    bool control, lists_own;
    const char *capture; /* file; empty: none */
    struct capture_wish capture_wish;
    struct limiter_options limits;
    enum eng_durability durability;
    unsigned pitr_window; /* seconds */
    bool cut_damage;
    uint32_t reclaim_rate; /* rows a second; 0 if none */
    struct memory_plan memory;
    uint64_t max_row_bytes; /* 0 for no bound */
    enum np_capacity_payload capacity_payload;
    uint8_t newest_version; /* the highest version of the native protocol that is offered */
    bool unmetered;
    struct node_info node; /* port is set later, when it is chosen */
    unsigned threads;
    unsigned handshake_timeout, request_timeout, send_timeout; /* seconds; 0 if none */
    uint32_t connections, connections_each; /* 0 means by the limit of open files */
    unsigned workers[WORK_CLASSES]; /* 0 means by cores */
    unsigned queue_requests;
    unsigned timeout_ms[WORK_CLASSES]; /* 0 if none */
    uint32_t frame_max;
};

/* -1, ERR_CONFIG: the text names the flag and the values that it may have. */
int settings_read(struct settings *s, const struct config *c, struct err *e) MUST_CHECK;
