#include "server/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "native_protocol/audit.h"
#include "system_schema/ddl/ddl_rule.h"

static int one_of(const struct config *c, enum config_option o, const char *const *names, int n, struct err *e) {
    for (int i = 0; i < n; i++)
        if (!strcmp(c->values[o], names[i])) return i;
    char list[256] = "";
    for (int i = 0; i < n; i++) {
        if (i) strncat(list, i + 1 < n ? ", " : " or ", sizeof(list) - strlen(list) - 1);
        strncat(list, names[i], sizeof(list) - strlen(list) - 1);
    }
    return err_set(e, ERR_CONFIG, "--%s must be %s, not '%s'", config_flag(o), list, c->values[o]);
}

#define ONE_OF(c, o, e, ...) \
    one_of((c), (o), (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})), (e))

static int number(const struct config *c, enum config_option o, unsigned long min, unsigned long max,
                  unsigned long *out, struct err *e) {
    const char *text = c->values[o];
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    if (!*text || *end || *text == '-' || errno || *out < min || *out > max)
        return err_set(e, ERR_CONFIG, "--%s must be a number from %lu to %lu, not '%s'", config_flag(o), min, max,
                       text);
    return 0;
}

static int read_bounds(struct settings *s, const struct config *c, struct err *e) {
    enum { DAY = 86400, CONNECTIONS_MAX = 10000000 };
    unsigned long handshake, request, send, connections, each, frame_max;
    if (number(c, CONFIG_HANDSHAKE_TIMEOUT, 0, DAY, &handshake, e) ||
        number(c, CONFIG_REQUEST_TIMEOUT, 0, DAY, &request, e) || number(c, CONFIG_SEND_TIMEOUT, 0, DAY, &send, e) ||
        number(c, CONFIG_CONNECTIONS, 0, CONNECTIONS_MAX, &connections, e) ||
        number(c, CONFIG_CONNECTIONS_EACH, 0, CONNECTIONS_MAX, &each, e) ||
        number(c, CONFIG_FRAME_MAX, 1 << 16, 256 << 20, &frame_max, e))
        return -1;
    s->handshake_timeout = (unsigned)handshake;
    s->request_timeout = (unsigned)request;
    s->send_timeout = (unsigned)send;
    s->connections = (uint32_t)connections;
    s->connections_each = (uint32_t)each;
    s->frame_max = (uint32_t)frame_max;
    return 0;
}

static int read_tls(struct settings *s, const struct config *c, struct err *e) {
    const char *cert = c->values[CONFIG_TLS_CERT], *key = c->values[CONFIG_TLS_KEY],
               *ca = c->values[CONFIG_TLS_CLIENT_CA];
    int only = ONE_OF(c, CONFIG_TLS_ONLY, e, "off", "on");
    int client = ONE_OF(c, CONFIG_TLS_CLIENT_CERT, e, "none", "optional", "required");
    if (only < 0 || client < 0) return -1;
    s->has_tls = *cert && *key;
    s->tls_only = only;
    s->tls = (struct np_tls_options){.cert = cert,
                                     .key = key,
                                     .client_ca = *ca ? ca : NULL,
                                     .client_cert = (enum np_client_cert)client};
    if (!s->has_tls && (*cert || *key)) return err_set(e, ERR_CONFIG, "TLS needs both --tls-cert and --tls-key");
    if (!s->has_tls && (only || client))
        return err_set(e, ERR_CONFIG, "--%s needs TLS: --tls-cert and --tls-key",
                       only ? "tls-only" : "tls-client-cert");
    if (client && !*ca)
        return err_set(e, ERR_CONFIG, "--tls-client-cert %s needs --tls-client-ca: whom to trust",
                       c->values[CONFIG_TLS_CLIENT_CERT]);
    if (!client && *ca) return err_set(e, ERR_CONFIG, "--tls-client-ca is of no use with --tls-client-cert none");
    return 0;
}

static int read_network(struct settings *s, const struct config *c, struct err *e) {
    unsigned long port, tls_port, admin_port, api_port, api_tls_port, threads;
    if (number(c, CONFIG_PORT, 0, 65535, &port, e) || number(c, CONFIG_TLS_PORT, 0, 65535, &tls_port, e) ||
        number(c, CONFIG_ADMIN_PORT, 0, 65535, &admin_port, e) || number(c, CONFIG_API_PORT, 0, 65535, &api_port, e) ||
        number(c, CONFIG_API_TLS_PORT, 0, 65535, &api_tls_port, e) || number(c, CONFIG_THREADS, 0, 256, &threads, e))
        return -1;
    s->listen = c->values[CONFIG_LISTEN];
    s->port = (uint16_t)port;
    s->tls_port = (uint16_t)tls_port;
    s->admin_port = (uint16_t)admin_port;
    s->api_port = (uint16_t)api_port;
    s->threads = (unsigned)threads;
    s->http_hosts = (struct http_hosts){.listen = s->listen, .names = c->values[CONFIG_HTTP_HOSTS]};
    if (http_hosts_check(s->http_hosts.names, e)) return -1;
    if (read_tls(s, c, e)) return -1;
    s->api_tls_port = s->has_tls && api_port ? (uint16_t)api_tls_port : 0;
    return 0;
}

static int read_log(struct settings *s, const struct config *c, struct err *e) {
    unsigned long slow;
    int format = ONE_OF(c, CONFIG_LOG_FORMAT, e, "human", "logfmt", "json");
    if (format < 0 || number(c, CONFIG_SLOW_STATEMENT, 0, 86400000, &slow, e) ||
        log_check_levels(c->values[CONFIG_LOG_LEVEL], e))
        return -1;
    s->audit_log = c->values[CONFIG_AUDIT_LOG];
    if (np_audit_parse(c->values[CONFIG_AUDIT_CATEGORIES], &s->audit_categories, e)) return -1;
    s->log.format = (enum log_format)format;
    s->log.levels = c->values[CONFIG_LOG_LEVEL];
    s->log.file = c->values[CONFIG_LOG_FILE];
    s->slow_us = (int64_t)slow * 1000;
    return 0;
}

static int read_workers(struct settings *s, const struct config *c, struct err *e) {
    static const enum config_option threads[WORK_CLASSES] = {[WORK_READ] = CONFIG_READ_WORKERS,
                                                             [WORK_UPDATE] = CONFIG_UPDATE_WORKERS,
                                                             [WORK_SCAN] = CONFIG_SCAN_WORKERS,
                                                             [WORK_DDL] = CONFIG_DDL_WORKERS};
    static const struct {
        enum cql_work_class class;
        enum config_option option;
    } timeouts[] = {{WORK_READ, CONFIG_READ_TIMEOUT},
                    {WORK_SCAN, CONFIG_RANGE_TIMEOUT},
                    {WORK_UPDATE, CONFIG_WRITE_TIMEOUT}};
    unsigned long n, requests;
    for (int i = 0; i < WORK_CLASSES; i++) {
        if (number(c, threads[i], 0, 256, &n, e)) return -1;
        s->workers[i] = (unsigned)n;
    }
    for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
        if (number(c, timeouts[i].option, 0, 86400000, &n, e)) return -1;
        s->timeout_ms[timeouts[i].class] = (unsigned)n;
    }
    if (number(c, CONFIG_QUEUE_REQUESTS, 1, 1 << 20, &requests, e)) return -1;
    if (number(c, CONFIG_RECLAIM_RATE, 0, 100000000, &n, e)) return -1;
    s->reclaim_rate = (uint32_t)n;
    s->queue_requests = (unsigned)requests;
    return 0;
}

static int read_limits(struct settings *s, const struct config *c, struct err *e) {
    int mode = ONE_OF(c, CONFIG_LIMITS, e, "off", "shadow", "enforce");
    int guidance = ONE_OF(c, CONFIG_GUIDANCE, e, "off", "warn", "enforce");
    int scaling = ONE_OF(c, CONFIG_AUTO_SCALING, e, "off", "simulate");
    if (mode < 0 || guidance < 0 || scaling < 0) return -1;
    s->limits.mode = (enum limit_mode)mode;
    s->limits.guidance = (enum guidance_mode)guidance;
    s->limits.scales = scaling == 1;
    if (limit_rules_parse(c->values[CONFIG_TABLE_LIMITS], &s->limits.rules, e)) return -1;
    return limit_values_parse(c->values[CONFIG_LIMIT_VALUES], &s->limits.values, e);
}

static int read_memory(struct settings *s, const struct config *c, struct err *e) {
    enum { MB_SHIFT = 20, LARGEST_SHIFT = 42 };
    static const struct {
        enum config_option option;
        unsigned shift;
    } parts[MEMORY_PARTS] = {
#define PART(id, option, shift, ...) [MEMORY_##id] = {CONFIG_##option, shift},
#include "server/memory.def"
#undef PART
        [MEMORY_CACHE] = {CONFIG_BLOCK_CACHE, MB_SHIFT},
    };
    unsigned long memory, jobs, n;
    if (number(c, CONFIG_MEMORY, 0, 1ul << (LARGEST_SHIFT - MB_SHIFT), &memory, e) ||
        number(c, CONFIG_BACKGROUND_JOBS, 0, 64, &jobs, e))
        return -1;
    struct memory_wishes w = {.memory = (size_t)memory << MB_SHIFT,
                              .frame_max = s->frame_max,
                              .background_jobs = (unsigned)jobs,
                              .threads = s->threads};
    w.no_row_cache = !strcmp(c->values[CONFIG_ROW_CACHE], "0");
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (!*c->values[parts[i].option]) continue;
        if (number(c, parts[i].option, 0, 1ul << (LARGEST_SHIFT - parts[i].shift), &n, e)) return -1;
        w.parts[i] = (size_t)n << parts[i].shift;
        if (n && w.parts[i] < 1 << MB_SHIFT)
            return err_set(e, ERR_CONFIG, "--%s must be 0 or a mebibyte at least (1048576), not %lu",
                           config_flag(parts[i].option), n);
    }
    return memory_plan(&w, &s->memory, e);
}

static const char *or_default(const char *text, const char *otherwise) { return *text ? text : otherwise; }

/* Settings whose default depends on the mode. */
static int read_compatibility(struct settings *s, const struct config *c, struct err *e) {
    s->compatibility = s->mode == MODE_KEYSPACES ? COMPAT_STRICT : COMPAT_OFF;
    if (*c->values[CONFIG_COMPATIBILITY]) {
        int given = ONE_OF(c, CONFIG_COMPATIBILITY, e, "off", "report", "strict");
        if (given < 0) return -1;
        s->compatibility = given == 0 ? COMPAT_OFF : given == 1 ? COMPAT_REPORT : COMPAT_STRICT;
    }
    if (s->compatibility == COMPAT_STRICT && s->mode != MODE_KEYSPACES)
        return err_set(
            e, ERR_CONFIG,
            "--compatibility strict refuses what Amazon Keyspaces refuses; in cassandra mode only report and off work");
    int five = *c->values[CONFIG_PROTOCOL] ? ONE_OF(c, CONFIG_PROTOCOL, e, "4", "5") : s->mode == MODE_CASSANDRA;
    if (five < 0) return -1;
    s->newest_version = five ? 5 : 4;
    return 0;
}

static void read_node(struct settings *s, const struct config *c) {
    bool keyspaces = s->mode == MODE_KEYSPACES;
    const char *region = keyspaces ? "us-east-1" : or_default(c->values[CONFIG_DATACENTER], "datacenter1");
    s->region = or_default(c->values[CONFIG_REGION], region);
    bool any = !strcmp(s->listen, "0.0.0.0") || !strcmp(s->listen, "::");
    s->node = (struct node_info){
        .cluster_name = or_default(c->values[CONFIG_CLUSTER_NAME], keyspaces ? "Amazon Keyspaces" : "Test Cluster"),
        .datacenter = or_default(c->values[CONFIG_DATACENTER], s->region),
        .rack = c->values[CONFIG_RACK],
        .release_version = or_default(c->values[CONFIG_RELEASE_VERSION], keyspaces ? "3.11.2" : "5.0.0"),
        .cql_version = keyspaces ? "3.4.4" : "3.4.7",
        .listen_address = any ? "127.0.0.1" : s->listen,
        .port = s->port,
        .peers = c->values[CONFIG_PEERS],
        .account = c->values[CONFIG_ACCOUNT],
        .region = s->region,
    };
}

static int read_auth(struct settings *s, const struct config *c, struct err *e) {
    int auth = ONE_OF(c, CONFIG_AUTH, e, "none", "password", "sigv4");
    if (auth < 0) return -1;
    s->auth = (enum auth)auth;
    s->credentials = c->values[CONFIG_CREDENTIALS];
    if (!auth && *s->credentials) return err_set(e, ERR_CONFIG, "--credentials is of no use with --auth none");
    if (auth == AUTH_SIGV4 && !*s->credentials)
        return err_set(e, ERR_CONFIG, "--auth sigv4 needs --credentials: a file with access keys");
    if (auth && s->mode == MODE_KEYSPACES && !*s->credentials)
        return err_set(e, ERR_CONFIG, "--auth %s needs --credentials: in keyspaces mode no statement makes logins",
                       c->values[CONFIG_AUTH]);
    return 0;
}

static int read_sizes(struct settings *s, const struct config *c, struct err *e) {
    unsigned long timestamp;
    if (number(c, CONFIG_TIMESTAMP_SIZE, 0, 1000, &timestamp, e)) return -1;
    s->timestamp_size = (uint32_t)timestamp;
    s->write_size = s->mode == MODE_KEYSPACES ? WRITE_SIZE_ROW : WRITE_SIZE_WRITTEN;
    if (!*c->values[CONFIG_WRITE_SIZE]) return 0;
    int given = ONE_OF(c, CONFIG_WRITE_SIZE, e, "row", "written");
    if (given >= 0) s->write_size = given == 0 ? WRITE_SIZE_ROW : WRITE_SIZE_WRITTEN;
    return given < 0 ? -1 : 0;
}

/* In milliseconds. The Java driver waits until no schema event has come for one second, and
 * starts this second again with each event. With a delay of about one second between a
 * statement's answer and its event, the driver would wait again and again until the statement
 * times out. */
static const char keyspaces_ddl_delay[] = "500";

static int read_ddl(struct settings *s, const struct config *c, struct err *e) {
    enum { WINDOW_MAX = 35 * 86400 };
    struct ddl_rules rules;
    unsigned long window;
    if (number(c, CONFIG_PITR_WINDOW, 1, WINDOW_MAX, &window, e)) return -1;
    s->pitr_window = (unsigned)window;
    int control = ONE_OF(c, CONFIG_CONTROL, e, "off", "on");
    if (control < 0) return -1;
    s->control = control;
    s->ddl_delay = or_default(c->values[CONFIG_DDL_DELAY], s->mode == MODE_KEYSPACES ? keyspaces_ddl_delay : "none");
    s->ddl_rules = c->values[CONFIG_DDL_RULES];
    if (peers_check(c->values[CONFIG_PEERS], e)) return -1;
    if (ddl_rules_init(&rules, s->ddl_delay, s->ddl_rules, 0, e)) return -1;
    ddl_rules_fini(&rules);
    return 0;
}

static int read_capture(struct settings *s, const struct config *c, struct err *e) {
    unsigned long mb;
    int full = ONE_OF(c, CONFIG_CAPTURE_FULL, e, "stop", "rotate"),
        values = ONE_OF(c, CONFIG_CAPTURE_VALUES, e, "plain", "hashed");
    if (full < 0 || values < 0 || number(c, CONFIG_CAPTURE_MAX, 1, 1ul << 24, &mb, e)) return -1;
    s->capture = c->values[CONFIG_CAPTURE];
    s->capture_wish =
        (struct capture_wish){.max_bytes = (uint64_t)mb << 20, .rotates = full == 1, .hashed = values == 1};
    return 0;
}

int settings_read(struct settings *s, const struct config *c, struct err *e) {
    enum { ACCOUNT_DIGITS = 12 };
    *s = (struct settings){.config = c};
    if (read_log(s, c, e) || read_network(s, c, e) || read_bounds(s, c, e) || read_workers(s, c, e)) return -1;
    int mode = ONE_OF(c, CONFIG_MODE, e, "keyspaces", "cassandra");
    int model = ONE_OF(c, CONFIG_SIZE_MODEL, e, "documented-2022", "current");
    int durability = ONE_OF(c, CONFIG_DURABILITY, e, "fsync", "periodic", "none");
    int damage = ONE_OF(c, CONFIG_ON_DAMAGE, e, "refuse", "cut");
    int payload = ONE_OF(c, CONFIG_CAPACITY_PAYLOAD, e, "charge", "full", "off");
    int metering = ONE_OF(c, CONFIG_METERING, e, "on", "off");
    if (mode < 0 || model < 0 || durability < 0 || damage < 0 || payload < 0 || metering < 0) return -1;
    s->mode = mode == 0 ? MODE_KEYSPACES : MODE_CASSANDRA;
    s->size_model = model == 0 ? SIZE_DOCUMENTED_2022 : SIZE_CURRENT;
    s->durability = durability == 0 ? ENG_FSYNC : durability == 1 ? ENG_PERIODIC : ENG_NONE;
    s->cut_damage = damage == 1;
    s->capacity_payload = payload == 0 ? NP_CAPACITY_CHARGE : payload == 1 ? NP_CAPACITY_FULL : NP_CAPACITY_OFF;
    s->unmetered = metering == 1;
    if (s->unmetered) s->capacity_payload = NP_CAPACITY_OFF;
    if (read_sizes(s, c, e) || read_auth(s, c, e) || read_limits(s, c, e) || read_compatibility(s, c, e) ||
        read_memory(s, c, e))
        return -1;
    if (!*c->values[CONFIG_DATA_DIR]) return err_set(e, ERR_CONFIG, "--data-dir must not be empty");
    s->data_dir = strcmp(c->values[CONFIG_DATA_DIR], ":memory:") ? c->values[CONFIG_DATA_DIR] : NULL;
    const char *account = c->values[CONFIG_ACCOUNT];
    if (strlen(account) != ACCOUNT_DIGITS || strspn(account, "0123456789") != ACCOUNT_DIGITS)
        return err_set(e, ERR_CONFIG, "--account must be a number of twelve digits, not '%s'", account);
    read_node(s, c);
    return read_capture(s, c, e) ? -1 : read_ddl(s, c, e);
}
