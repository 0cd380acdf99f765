#include "server/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "native_protocol/audit.h"
#include "system_schema/ddl/ddl_rule.h"

/* ---- settings that go to a field as they are ---- */

#define FIELD(f) offsetof(struct settings, f), sizeof(((struct settings *)0)->f)
#define DAY 86400

static const struct {
    enum config_option option;
    unsigned long min, max;
    size_t at, size; /* of the field */
} numbers[] = {
    {CONFIG_PORT, 0, 65535, FIELD(port)},
    {CONFIG_TLS_PORT, 0, 65535, FIELD(tls_port)},
    {CONFIG_ADMIN_PORT, 0, 65535, FIELD(admin_port)},
    {CONFIG_API_PORT, 0, 65535, FIELD(api_port)},
    {CONFIG_API_TLS_PORT, 0, 65535, FIELD(api_tls_port)},
    {CONFIG_THREADS, 0, 256, FIELD(threads)},
    {CONFIG_SLOW_STATEMENT, 0, DAY * 1000, FIELD(slow_us)},
    {CONFIG_HANDSHAKE_TIMEOUT, 0, DAY, FIELD(handshake_timeout)},
    {CONFIG_REQUEST_TIMEOUT, 0, DAY, FIELD(request_timeout)},
    {CONFIG_SEND_TIMEOUT, 0, DAY, FIELD(send_timeout)},
    {CONFIG_CONNECTIONS, 0, 10000000, FIELD(connections)},
    {CONFIG_CONNECTIONS_EACH, 0, 10000000, FIELD(connections_each)},
    {CONFIG_FRAME_MAX, 1 << 16, 256 << 20, FIELD(frame_max)},
    {CONFIG_READ_WORKERS, 0, 256, FIELD(workers[WORK_READ])},
    {CONFIG_UPDATE_WORKERS, 0, 256, FIELD(workers[WORK_UPDATE])},
    {CONFIG_SCAN_WORKERS, 0, 256, FIELD(workers[WORK_SCAN])},
    {CONFIG_DDL_WORKERS, 0, 256, FIELD(workers[WORK_DDL])},
    {CONFIG_READ_TIMEOUT, 0, DAY * 1000, FIELD(timeout_ms[WORK_READ])},
    {CONFIG_RANGE_TIMEOUT, 0, DAY * 1000, FIELD(timeout_ms[WORK_SCAN])},
    {CONFIG_WRITE_TIMEOUT, 0, DAY * 1000, FIELD(timeout_ms[WORK_UPDATE])},
    {CONFIG_QUEUE_REQUESTS, 1, 1 << 20, FIELD(queue_requests)},
    {CONFIG_RECLAIM_RATE, 0, 100000000, FIELD(reclaim_rate)},
    {CONFIG_TIMESTAMP_SIZE, 0, 1000, FIELD(timestamp_size)},
    {CONFIG_PITR_WINDOW, 1, 35 * DAY, FIELD(pitr_window)},
    {CONFIG_CAPTURE_MAX, 1, 1ul << 24, FIELD(capture_wish.max_bytes)},
    {CONFIG_RADOS_SPLIT, 0, 100000, FIELD(rados.split_keys)},
};

enum { WORDS = 3 };
static const struct choice {
    enum config_option option;
    size_t at, size;
    struct {
        const char *word;
        unsigned long value;
    } of[WORDS];
} choices[] = {
    {CONFIG_MODE, FIELD(mode), {{"keyspaces", MODE_KEYSPACES}, {"cassandra", MODE_CASSANDRA}}},
    {CONFIG_LOG_FORMAT, FIELD(log.format), {{"human", LOG_HUMAN}, {"logfmt", LOG_LOGFMT}, {"json", LOG_JSON}}},
    {CONFIG_TLS_ONLY, FIELD(tls_only), {{"off", false}, {"on", true}}},
    {CONFIG_TLS_CLIENT_CERT, FIELD(tls.client_cert),
     {{"none", NP_CLIENT_CERT_NONE}, {"optional", NP_CLIENT_CERT_OPTIONAL}, {"required", NP_CLIENT_CERT_REQUIRED}}},
    {CONFIG_SIZE_MODEL, FIELD(size_model), {{"documented-2022", SIZE_DOCUMENTED_2022}, {"current", SIZE_CURRENT}}},
    {CONFIG_STORE, FIELD(store), {{"local", STORE_LOCAL}, {"rados", STORE_RADOS}}},
    {CONFIG_DURABILITY, FIELD(durability), {{"fsync", ENG_FSYNC}, {"periodic", ENG_PERIODIC}, {"none", ENG_NONE}}},
    {CONFIG_ON_DAMAGE, FIELD(cut_damage), {{"refuse", false}, {"cut", true}}},
    {CONFIG_CAPACITY_PAYLOAD, FIELD(capacity_payload),
     {{"charge", NP_CAPACITY_CHARGE}, {"full", NP_CAPACITY_FULL}, {"off", NP_CAPACITY_OFF}}},
    {CONFIG_METERING, FIELD(unmetered), {{"on", false}, {"off", true}}},
    {CONFIG_AUTH, FIELD(auth), {{"none", AUTH_NONE}, {"password", AUTH_PASSWORD}, {"sigv4", AUTH_SIGV4}}},
    {CONFIG_LIMITS, FIELD(limits.mode), {{"off", LIMITS_OFF}, {"shadow", LIMITS_SHADOW}, {"enforce", LIMITS_ENFORCE}}},
    {CONFIG_GUIDANCE, FIELD(limits.guidance),
     {{"off", GUIDANCE_OFF}, {"warn", GUIDANCE_WARN}, {"enforce", GUIDANCE_ENFORCE}}},
    {CONFIG_AUTO_SCALING, FIELD(limits.scales), {{"off", false}, {"simulate", true}}},
    {CONFIG_CONTROL, FIELD(control), {{"off", false}, {"on", true}}},
    {CONFIG_OWN_KEYSPACES, FIELD(lists_own), {{"unlisted", false}, {"listed", true}}},
    {CONFIG_AUDIT_FULL, FIELD(audit_full), {{"wait", NP_AUDIT_WAIT}, {"drop", NP_AUDIT_DROP}}},
    {CONFIG_CAPTURE_FULL, FIELD(capture_wish.rotates), {{"stop", false}, {"rotate", true}}},
    {CONFIG_CAPTURE_VALUES, FIELD(capture_wish.hashed), {{"plain", false}, {"hashed", true}}},
    /* read_by_mode gives their values when they are empty */
    {CONFIG_COMPATIBILITY, FIELD(compatibility),
     {{"off", COMPAT_OFF}, {"report", COMPAT_REPORT}, {"strict", COMPAT_STRICT}}},
    {CONFIG_PROTOCOL, FIELD(newest_version), {{"4", 4}, {"5", 5}}},
    {CONFIG_WRITE_SIZE, FIELD(write_size), {{"row", WRITE_SIZE_ROW}, {"written", WRITE_SIZE_WRITTEN}}},
};

static void store(struct settings *s, size_t at, size_t size, unsigned long value) {
    uint8_t *to = (uint8_t *)s + at;
    switch (size) {
    case 1: *to = (uint8_t)value; break;
    case 2: *(uint16_t *)(void *)to = (uint16_t)value; break;
    case 4: *(uint32_t *)(void *)to = (uint32_t)value; break;
    default: *(uint64_t *)(void *)to = value;
    }
}

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

static int choose(struct settings *s, const struct config *c, const struct choice *x, struct err *e) {
    const char *text = c->values[x->option];
    char list[256] = "";
    bool by_mode = x->option == CONFIG_COMPATIBILITY || x->option == CONFIG_PROTOCOL || x->option == CONFIG_WRITE_SIZE;
    if (!*text && by_mode) return 0;
    for (int i = 0; i < WORDS && x->of[i].word; i++) {
        if (!strcmp(text, x->of[i].word)) {
            store(s, x->at, x->size, x->of[i].value);
            return 0;
        }
        bool last = i + 1 == WORDS || !x->of[i + 1].word;
        size_t n = strlen(list);
        snprintf(list + n, sizeof(list) - n, "%s%s", !i ? "" : last ? " or " : ", ", x->of[i].word);
    }
    return err_set(e, ERR_CONFIG, "--%s must be %s, not '%s'", config_flag(x->option), list, text);
}

/* ---- the others ---- */

static int read_tls(struct settings *s, const struct config *c, struct err *e) {
    const char *cert = c->values[CONFIG_TLS_CERT], *key = c->values[CONFIG_TLS_KEY],
               *ca = c->values[CONFIG_TLS_CLIENT_CA];
    bool client = s->tls.client_cert != NP_CLIENT_CERT_NONE;
    s->has_tls = *cert && *key;
    s->tls.cert = cert;
    s->tls.key = key;
    s->tls.client_ca = *ca ? ca : NULL;
    if (!s->has_tls && (*cert || *key)) return err_set(e, ERR_CONFIG, "TLS needs both --tls-cert and --tls-key");
    if (!s->has_tls && (s->tls_only || client))
        return err_set(e, ERR_CONFIG, "--%s needs TLS: --tls-cert and --tls-key",
                       s->tls_only ? "tls-only" : "tls-client-cert");
    if (client && !*ca)
        return err_set(e, ERR_CONFIG, "--tls-client-cert %s needs --tls-client-ca, the authorities to trust",
                       c->values[CONFIG_TLS_CLIENT_CERT]);
    if (!client && *ca) return err_set(e, ERR_CONFIG, "--tls-client-ca has no effect with --tls-client-cert none");
    if (!s->has_tls || !s->api_port) s->api_tls_port = 0;
    return 0;
}

/* A row that is read and merged takes several times its size. */
static int read_max_row_size(struct settings *s, const struct config *c, struct err *e) {
    enum { MB_SHIFT = 20, USUAL = 256, OF_MEMORY = 16, MOST = 1 << 20 };
    unsigned long mb = s->memory.memory / OF_MEMORY >> MB_SHIFT;
    if (mb > USUAL) mb = USUAL;
    if (*c->values[CONFIG_MAX_ROW_SIZE] && number(c, CONFIG_MAX_ROW_SIZE, 0, MOST, &mb, e)) return -1;
    s->max_row_bytes = (uint64_t)mb << MB_SHIFT;
    return 0;
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
    struct memory_settings w = {.memory = (size_t)memory << MB_SHIFT,
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
    if (memory_plan(&w, &s->memory, e)) return -1;
    return read_max_row_size(s, c, e);
}

static const char *or_default(const char *text, const char *otherwise) { return *text ? text : otherwise; }

/* Settings whose default depends on the mode. */
static int read_by_mode(struct settings *s, const struct config *c, struct err *e) {
    bool keyspaces = s->mode == MODE_KEYSPACES;
    if (!*c->values[CONFIG_COMPATIBILITY]) s->compatibility = keyspaces ? COMPAT_STRICT : COMPAT_OFF;
    if (!*c->values[CONFIG_PROTOCOL]) s->newest_version = keyspaces ? 4 : 5;
    if (!*c->values[CONFIG_WRITE_SIZE]) s->write_size = keyspaces ? WRITE_SIZE_ROW : WRITE_SIZE_WRITTEN;
    if (s->compatibility == COMPAT_STRICT && !keyspaces)
        return err_set(
            e, ERR_CONFIG,
            "--compatibility strict refuses what Amazon Keyspaces refuses; in cassandra mode only report and off work");
    s->credentials = c->values[CONFIG_CREDENTIALS];
    if (!s->auth && *s->credentials) return err_set(e, ERR_CONFIG, "--credentials has no effect with --auth none");
    if (s->auth == AUTH_SIGV4 && !*s->credentials)
        return err_set(e, ERR_CONFIG, "--auth sigv4 needs --credentials: a file with access keys");
    if (s->auth && keyspaces && !*s->credentials)
        return err_set(e, ERR_CONFIG, "--auth %s needs --credentials: in keyspaces mode no statement makes logins",
                       c->values[CONFIG_AUTH]);
    return 0;
}

static void read_node(struct settings *s, const struct config *c) {
    bool keyspaces = s->mode == MODE_KEYSPACES;
    const char *region = keyspaces ? "us-east-1" : or_default(c->values[CONFIG_DATACENTER], "datacenter1");
    s->region = or_default(c->values[CONFIG_REGION], region);
    bool any = !strcmp(s->listen, "0.0.0.0") || !strcmp(s->listen, "::");
    s->broadcast = or_default(c->values[CONFIG_BROADCAST_ADDRESS], any ? "127.0.0.1" : s->listen);
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

/* A worker waits for the answers of a remote store, and uses no processor meanwhile. */
static void more_workers(struct settings *s) {
    enum { REMOTE_WORKERS = 64 };
    if (!s->workers[WORK_READ]) s->workers[WORK_READ] = REMOTE_WORKERS;
    if (!s->workers[WORK_UPDATE]) s->workers[WORK_UPDATE] = REMOTE_WORKERS;
}

int settings_read(struct settings *s, const struct config *c, struct err *e) {
    enum { ACCOUNT_DIGITS = 12 };
    /* In milliseconds. The Java driver waits until no schema event has come for one second, and
     * starts this second again with each event. With a delay of about one second between a
     * statement's answer and its event, the driver would wait again and again until the statement
     * times out. */
    static const char keyspaces_ddl_delay[] = "500";
    struct ddl_rules rules;
    unsigned long n;
    *s = (struct settings){.config = c};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (number(c, numbers[i].option, numbers[i].min, numbers[i].max, &n, e)) return -1;
        store(s, numbers[i].at, numbers[i].size, n);
    }
    for (size_t i = 0; i < ARRAY_LEN(choices); i++)
        if (choose(s, c, &choices[i], e)) return -1;
    s->slow_us *= 1000;
    s->capture_wish.max_bytes <<= 20;
    if (s->unmetered) s->capacity_payload = NP_CAPACITY_OFF;
    s->log.levels = c->values[CONFIG_LOG_LEVEL];
    s->log.file = c->values[CONFIG_LOG_FILE];
    s->audit_log = c->values[CONFIG_AUDIT_LOG];
    s->listen = c->values[CONFIG_LISTEN];
    s->admin_listen = c->values[CONFIG_ADMIN_LISTEN];
    s->api_listen = c->values[CONFIG_API_LISTEN];
    s->http_hosts = c->values[CONFIG_HTTP_HOSTS];
    s->capture = c->values[CONFIG_CAPTURE];
    if (log_check_levels(s->log.levels, e) ||
        np_audit_parse(c->values[CONFIG_AUDIT_CATEGORIES], &s->audit_categories, e) ||
        http_hosts_check(s->http_hosts, e) || read_tls(s, c, e) || read_by_mode(s, c, e))
        return -1;
    if (limit_rules_parse(c->values[CONFIG_TABLE_LIMITS], &s->limits.rules, e) ||
        limit_values_parse(c->values[CONFIG_LIMIT_VALUES], &s->limits.values, e) || read_memory(s, c, e))
        return -1;
    if (!*c->values[CONFIG_DATA_DIR]) return err_set(e, ERR_CONFIG, "--data-dir must not be empty");
    s->data_dir = strcmp(c->values[CONFIG_DATA_DIR], ":memory:") ? c->values[CONFIG_DATA_DIR] : NULL;
    s->rados.conf = c->values[CONFIG_RADOS_CONF];
    s->rados.pool = c->values[CONFIG_RADOS_POOL];
    if (s->store == STORE_RADOS) more_workers(s);
    const char *account = c->values[CONFIG_ACCOUNT];
    if (strlen(account) != ACCOUNT_DIGITS || strspn(account, "0123456789") != ACCOUNT_DIGITS)
        return err_set(e, ERR_CONFIG, "--account must be a number of twelve digits, not '%s'", account);
    read_node(s, c);
    if (s->store == STORE_RADOS && !*c->values[CONFIG_BROADCAST_ADDRESS] && strcmp(s->broadcast, s->listen) != 0)
        return err_set(e, ERR_CONFIG,
                       "--store rados with --listen %s needs --broadcast-address: the address of this server that "
                       "the other servers report to clients, a different one for each server",
                       s->listen);
    const struct {
        enum config_option option;
        const char *text;
    } addresses[] = {{CONFIG_BROADCAST_ADDRESS, s->broadcast}, {CONFIG_ADMIN_LISTEN, s->admin_listen},
                     {CONFIG_API_LISTEN, s->api_listen}};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
        if (!ip_address_parse(addresses[i].text, &(struct ip_address){0}))
            return err_set(e, ERR_CONFIG, "--%s must be a numeric address, not '%s'", config_flag(addresses[i].option),
                           addresses[i].text);
    s->ddl_delay = or_default(c->values[CONFIG_DDL_DELAY], s->mode == MODE_KEYSPACES ? keyspaces_ddl_delay : "none");
    s->ddl_rules = c->values[CONFIG_DDL_RULES];
    if (peers_check(c->values[CONFIG_PEERS], e) || ddl_rules_init(&rules, s->ddl_delay, s->ddl_rules, 0, e)) return -1;
    ddl_rules_fini(&rules);
    return 0;
}
