#include "server/instance.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "engine/copy.h"
#include "engine/named.h"
#include "native_protocol/audit_queue.h"
#include "server/data_dir.h"
#include "system_schema/system_tables/trace_store.h"

enum { REMOTE_OFFLOADED_MAX = 128 };

static int refuse_move(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)arg, (void)key, (void)value;
    return err_set(e, ERR_CONFIG, "a database is being moved here and is not complete; run tally move again");
}

static int open_engine(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    struct eng_rados rados = s->rados;
    struct eng_options o = {.rados = s->store == STORE_RADOS ? &rados : NULL,
                            .data_dir = s->data_dir,
                            .durability = s->durability,
                            .cut_damage = s->cut_damage,
                            .reclaim_rows_per_second = s->reclaim_rate,
                            .clock = &in->clock.clock,
                            .block_cache_bytes = s->memory.parts[MEMORY_CACHE],
                            .row_cache_bytes = s->memory.parts[MEMORY_ROW_CACHE],
                            .memtable_bytes = s->memory.parts[MEMORY_MEMTABLES] / ENG_MEMTABLES,
                            .background_jobs = s->memory.background_jobs};
    if (s->data_dir) {
        in->lock_fd = data_dir_open(s->data_dir, e);
        if (in->lock_fd < 0) return -1;
    }
    if (random_uuid(in->incarnation, e)) return -1;
    rados.incarnation = load_u32(in->incarnation);
    in->eng = eng_open(&o, e);
    return in->eng ? eng_meta_scan(in->eng, slice_str(ENG_MOVE_RECORDS), refuse_move, NULL, e) : -1;
}

/* Servers on one store know of one another. The others learn of this one when it takes clients. */
static int open_membership(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    if (!eng_is_remote(in->eng)) return 0;
    struct membership_options o = {.eng = in->eng,
                                   .clock = &in->clock.clock,
                                   .self = {.port = s->tls_only ? 0 : s->port,
                                            .tls_port = s->has_tls ? s->tls_port : 0,
                                            .started_s = clock_wall_us(&in->clock.clock) / 1000000}};
    const struct { char *to; size_t size; const char *from, *what; } texts[] = {
        {o.self.address, sizeof(o.self.address), s->broadcast, "broadcast-address"},
        {o.self.datacenter, sizeof(o.self.datacenter), s->node.datacenter, "datacenter"},
        {o.self.rack, sizeof(o.self.rack), s->node.rack, "rack"},
        {o.self.release_version, sizeof(o.self.release_version), s->node.release_version, "release-version"}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if ((size_t)snprintf(texts[i].to, texts[i].size, "%s", texts[i].from) >= texts[i].size)
            return err_set(e, ERR_CONFIG, "--%s is too long for servers that share a store", texts[i].what);
    memcpy(o.self.incarnation, in->incarnation, MEMBER_ID);
    member_set_host_id(&o.self, s->node.cluster_name);
    in->membership = membership_open(&o, e);
    return in->membership ? 0 : -1;
}

static void tell_member(void *arg, enum member_event event, const struct member *m) {
    static const char *const words[] = {[MEMBER_NEW] = "is new",
                                        [MEMBER_UP] = "is up",
                                        [MEMBER_DOWN] = "is down",
                                        [MEMBER_REMOVED] = "is removed"};
    log_info("the server %s:%u on the store %s", m->address, m->port ? m->port : m->tls_port, words[event]);
    np_front_tell_member(((struct instance *)arg)->front, event, m);
}

static void tell_died(void *arg, const uint8_t incarnation[MEMBER_ID]) {
    eng_peer_died(((struct instance *)arg)->eng, load_u32(incarnation));
}

static void tell_schema(void *arg, uint8_t version[MEMBER_ID]) {
    catalog_schema_version(((struct instance *)arg)->catalog, version);
}

static void schema_changed(void *arg, const struct schema_change *change) {
    (void)change;
    membership_hurry(((struct instance *)arg)->membership);
}

/* The thread that waits for signals stops the server. */
static void stop_doubled(void *arg) {
    atomic_store(&((struct instance *)arg)->doubled, true);
    kill(getpid(), SIGTERM);
}

static int join_membership(struct instance *in, struct err *e) {
    const struct membership_hooks hooks = {
        .event = tell_member, .died = tell_died, .doubled = stop_doubled, .schema = tell_schema, .arg = in};
    if (!in->membership) return 0;
    if (membership_join(in->membership, &hooks, e) || membership_start(in->membership, e)) return -1;
    in->schema_listener = (struct catalog_listener){.changed = schema_changed, .arg = in};
    catalog_on_change(in->catalog, &in->schema_listener);
    return 0;
}

/* Clients hear of it at once, and this server answers the requests that it has. */
static void leave_membership(struct instance *in) {
    if (in->schema_listener.changed) catalog_off_change(in->catalog, &in->schema_listener);
    membership_leave(in->membership);
}

/* The capture opens before the ports do, so that it records every request. */
static int open_capture(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    const struct capture_options o = {.clock = &in->clock.clock,
                                      .strict = s->compatibility == COMPAT_STRICT,
                                      .cassandra = s->mode == MODE_CASSANDRA,
                                      .size_model = (uint8_t)s->size_model,
                                      .write_size = (uint8_t)s->write_size,
                                      .timestamp_size = s->timestamp_size};
    in->capture = capture_recorder_new(&o, e);
    return !in->capture || (*s->capture && capture_start(in->capture, s->capture, &s->capture_wish, e)) ? -1 : 0;
}

static int open_ledger(struct instance *in, struct err *e) {
    char path[4096];
    const char *dir = in->settings.data_dir;
    snprintf(path, sizeof(path), "%s/ledger.tally", dir ? dir : "");
    struct ledger_options o = {.clock = &in->clock.clock,
                               .n_shards = np_front_loops(in->settings.threads),
                               .path = dir ? path : NULL};
    in->ledger = ledger_open(&o, e);
    if (!in->ledger) return -1;
    const struct fleet_options fo = {.eng = in->eng, .ledger = in->ledger, .clock = &in->clock.clock};
    if (!eng_one_writer(in->eng) && !(in->fleet = fleet_open(&fo, e))) return -1;
    if (in->settings.compatibility == COMPAT_REPORT && !(in->report = compat_report_new(&in->clock.clock, e)))
        return -1;
    in->metering = (struct system_metering){.ledger = in->ledger, .clock = &in->clock.clock, .report = in->report};
    system_metering_tables(&in->metering, in->tables);
    if (in->settings.control && !(in->faults = faults_new(e))) return -1;
    in->control_capture = (struct control_capture){.recorder = in->capture, .data_dir = in->settings.data_dir};
    in->tables[METERING_TABLES] = control_capture_table(&in->control_capture);
    in->tables[METERING_TABLES + 1] = control_faults_table(in->faults);
    in->auth.cassandra_mode = in->settings.mode == MODE_CASSANDRA;
    system_auth_tables(&in->auth, in->tables + METERING_TABLES + CONTROL_TABLES);
    in->views = (struct system_views){.ledger = in->ledger, .config = in->settings.config};
    system_views_tables(&in->views, in->tables + METERING_TABLES + CONTROL_TABLES + AUTH_TABLES);
    return 0;
}

static void clock_moved(void *arg) { catalog_clock_moved(((struct instance *)arg)->catalog); }

static bool table_exists(void *arg, uint32_t object) {
    return catalog_has_object(((struct instance *)arg)->catalog, object);
}

/* Roles and logins. As in Cassandra, a new database in cassandra mode has the role cassandra
 * with the password cassandra, unless there is a credentials file. In keyspaces mode logins come
 * from the credentials file. */
static int open_access(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    bool first = s->mode == MODE_CASSANDRA && !*s->credentials;
    const struct access_options o = {.eng = in->eng,
                                     .catalog = in->catalog,
                                     .first_role = first ? "cassandra" : NULL,
                                     .first_password = "cassandra"};
    if (s->auth == AUTH_NONE) return 0;
    in->auth.access = in->access = access_open(&o, e);
    if (!in->access) return -1;
    return *s->credentials ? credentials_read(s->credentials, in->access, &in->keys, e) : 0;
}

static int open_database(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    in->traces = trace_store_new();
    struct catalog_options co = {.eng = in->eng,
                                 .clock = &in->clock.clock,
                                 .clock_control = &in->clock,
                                 .mode = s->mode,
                                 .ddl_delay = s->ddl_delay,
                                 .ddl_rules = s->ddl_rules,
                                 .control = s->control,
                                 .lists_own = s->lists_own,
                                 .recovery_window_s = s->pitr_window,
                                 .node = s->node,
                                 .membership = in->membership,
                                 .quota = admission_quota(&s->limits.values),
                                 .traces = in->traces,
                                 .n_tables = METERING_TABLES + CONTROL_TABLES +
                                             (s->mode == MODE_CASSANDRA ? AUTH_TABLES + VIEWS_TABLES : 0),
                                 .tables = in->tables};
    if (!in->traces) return err_nomem(e);
    in->catalog = catalog_open(&co, e);
    if (!in->catalog) return -1;
    clock_control_listen(&in->clock, clock_moved, in);
    system_metering_watch(&in->metering, in->catalog);
    in->admission = admission_new(&s->limits, in->catalog, &in->clock.clock, in->ledger, e);
    if (!in->admission) return -1;
    in->metering.admission = in->admission;
    const struct fleet_limits limits = {
        .demands = admission_demands, .divide = admission_divide, .arg = in->admission};
    if (in->fleet && admission_of(in->admission).admit) fleet_share_limits(in->fleet, &limits);
    if (in->fleet && fleet_start(in->fleet, table_exists, in, e)) return -1;
    if (open_access(in, e)) return -1;
    struct cql_db_options dbo = {.admission = admission_of(in->admission),
                                 .eng = in->eng,
                                 .catalog = in->catalog,
                                 .clock = &in->clock.clock,
                                 .mode = s->mode,
                                 .size_model = s->size_model,
                                 .write_size = s->write_size,
                                 .timestamp_size = s->timestamp_size,
                                 .unmetered = s->unmetered,
                                 .ttl_delete = {.fn = system_metering_ttl_delete, .arg = &in->metering},
                                 .prepared_bytes = s->memory.parts[MEMORY_PREPARED],
                                 .max_row_bytes = s->max_row_bytes,
                                 .access = in->access,
                                 .compat = {.mode = s->compatibility, .report = in->report}};
    in->metering.db = in->db = cql_db_new(&dbo, e);
    return in->db ? 0 : -1;
}

static int open_front(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    if (*s->audit_log && !(in->audit = np_audit_open(s->audit_log, s->audit_categories, s->audit_full,
                                                     &in->clock.clock, e)))
        return -1;
    if (s->has_tls && !(in->tls = np_tls_open(&s->tls, e))) return -1;
    in->options = (struct np_options){
        .db = in->db,
        .eng = in->eng,
        .catalog = in->catalog,
        .traces = in->traces,
        .clock = &in->clock.clock,
        .ledger = s->unmetered ? NULL : in->ledger,
        .write_failed = {.fn = admission_reverse, .arg = in->admission},
        .capture = in->capture,
        .faults = in->faults,
        .access = in->access,
        .keys = s->auth == AUTH_SIGV4 ? &in->keys : NULL,
        .region = s->region,
        .capacity_payload = s->capacity_payload,
        .newest_version = s->newest_version,
        .listen = s->listen,
        .plain = !s->tls_only,
        .port = s->port,
        .tls = in->tls,
        .tls_port = s->tls_port,
        .reserved_port = s->tls_only ? s->tls_port : s->port,
        .slow_us = &in->slow_us,
        .audit = in->audit,
        .threads = s->threads,
        .queue_max = s->queue_requests,
        /* there every request is with a worker, most of which wait for the cluster */
        .offloaded_max = s->store == STORE_RADOS ? REMOTE_OFFLOADED_MAX : 0,
        .queue_bytes_max = s->memory.parts[MEMORY_QUEUED],
        .frame_max = s->frame_max,
        .handshake_us = (int64_t)s->handshake_timeout * 1000000,
        .request_us = (int64_t)s->request_timeout * 1000000,
        .send_us = (int64_t)s->send_timeout * 1000000,
        .connections = s->connections,
        .connections_each = s->connections_each,
        .unfinished_bytes = s->memory.parts[MEMORY_UNFINISHED],
        .unread_bytes = s->memory.parts[MEMORY_UNREAD],
        .work_bytes = s->memory.parts[MEMORY_WORK],
    };
    for (int i = 0; i < WORK_CLASSES; i++) {
        in->options.workers[i] = s->workers[i];
        in->options.timeout_us[i] = (int64_t)s->timeout_ms[i] * 1000;
    }
    states_init(&in->states, in->eng, in->catalog, in->access, &in->front);
    int rc = np_front_start(&in->options, &in->front, e);
    close(in->reserved_fd);
    in->reserved_fd = -1;
    return rc;
}

/* ---- the admin port and its page ---- */

static bool capacity_of(void *arg, uint32_t object, double *read, double *write) {
    struct instance *in = arg;
    struct limit_table t;
    const int64_t *values = in->settings.limits.values.of;
    if (!admission_table(in->admission, object, &t)) return false;
    *read = (double)capacity_rate(&t.read, values[LIMIT_TABLE_READ]);
    *write = (double)capacity_rate(&t.write, values[LIMIT_TABLE_WRITE]);
    return true;
}

static bool limits_of(void *arg, uint32_t object, struct limit_table *out) {
    return admission_table(((struct instance *)arg)->admission, object, out);
}

static int page_login(void *arg, const struct ip_address *client, const char *role, const char *password,
                      struct err *e) {
    return np_front_login(((struct instance *)arg)->front, client, role, password, e);
}

static int open_admin(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    char path[4096];
    if (!s->admin_port) return 0;
    snprintf(path, sizeof(path), "%s/history.tally", s->data_dir ? s->data_dir : "");
    const struct history_options ho = {.ledger = in->ledger, .clock = &in->clock.clock,
                                       .path = s->data_dir ? path : NULL, .capacity = capacity_of,
                                       .exists = table_exists, .arg = in};
    in->history = history_open(&ho, e);
    if (!in->history) return -1;
    const struct page_options po = {
        .view = {.history = in->history, .ledger = in->ledger, .catalog = in->catalog, .db = in->db,
                 .clock = &in->clock.clock, .limits = &s->limits, .limit_table = limits_of, .arg = in},
        .statement = {.db = in->db, .clock = &in->clock.clock},
        .access = in->access,
        .login = page_login,
        .login_arg = in,
        .report = in->report,
        .cassandra = s->mode == MODE_CASSANDRA};
    in->page = page_new(&po, e);
    const struct http_hosts hosts = {.listen = s->listen, .port_listen = s->admin_listen, .names = s->http_hosts};
    const struct metrics_sources sources = {.front = in->front, .eng = in->eng, .membership = in->membership,
                                            .metering = &in->metering, .data_dir = s->data_dir,
                                            .memory = s->memory.memory};
    if (!in->page || admin_start(&in->admin, s->admin_listen, s->admin_port, &hosts, &sources, in->page, e))
        return -1;
    states_set_page(&in->states, in->page);
    return 0;
}


/* The API is that of Amazon Keyspaces, so cassandra mode has none. */
static int open_control_plane(struct instance *in, struct err *e) {
    const struct settings *s = &in->settings;
    const struct control_plane_options o = {.db = in->db,
                                            .catalog = in->catalog,
                                            .clock = &in->clock.clock,
                                            .access = in->access,
                                            .keys = s->auth == AUTH_NONE ? NULL : &in->keys,
                                            .region = s->region,
                                            .address = s->api_listen,
                                            .port = s->api_port,
                                            .tls_port = s->api_tls_port,
                                            .request_s = (int)s->request_timeout,
                                            .tls_cert = s->tls.cert,
                                            .tls_key = s->tls.key,
                                            .hosts = {.listen = s->listen, .port_listen = s->api_listen,
                                                      .names = s->http_hosts},
                                            .metrics = {.arg = &in->metering, .each = metering_each_metric}};
    if (s->mode == MODE_CASSANDRA) return 0;
    if (control_plane_start(&in->control_plane, &o, e)) return -1;
    states_set_control_plane(&in->states, in->control_plane);
    return 0;
}

int instance_open(struct instance *in, const struct settings *s, struct err *e) {
    *in = (struct instance){.settings = *s, .lock_fd = -1, .reserved_fd = -1};
    atomic_store(&in->slow_us, s->slow_us);
    clock_control_init(&in->clock, &clock_real);
    /* The port is chosen before the catalogue opens, because system.local shows it. Other programs
     * must not get it in the meantime. */
    uint16_t *port = s->tls_only ? &in->settings.tls_port : &in->settings.port;
    if ((in->reserved_fd = np_port_reserve(s->listen, port, e)) < 0) return -1;
    in->settings.node.port = *port;
    if (!open_engine(in, e) && !open_membership(in, e) && !open_capture(in, e) && !open_ledger(in, e) &&
        !open_database(in, e) && !open_front(in, e) && !open_admin(in, e) &&
        !open_control_plane(in, e) && !local_socket_start(&in->local, s->data_dir, in->eng, e) &&
        !join_membership(in, e))
        return 0;
    instance_close(in);
    return -1;
}

void instance_close(struct instance *in) {
    if (in->membership) leave_membership(in);
    if (in->local) local_socket_stop(in->local);
    if (in->control_plane) {
        states_set_control_plane(&in->states, NULL);
        control_plane_stop(in->control_plane);
    }
    if (in->page) states_set_page(&in->states, NULL);
    if (in->admin) admin_stop(in->admin);
    else if (in->page) page_stop(in->page);
    if (in->page) page_free(in->page);
    if (in->history) history_close(in->history);
    if (in->front) np_front_stop(in->front);
    np_audit_close(in->audit); /* its thread calls the front */
    if (in->capture) capture_recorder_free(in->capture);
    if (in->db) cql_db_free(in->db);
    fleet_close(in->fleet); /* after the front: nothing is charged any more */
    if (in->admission) admission_free(in->admission);
    if (in->metering.catalog) system_metering_unwatch(&in->metering);
    if (in->access) access_close(in->access);
    access_keys_fini(&in->keys);
    if (in->catalog) catalog_close(in->catalog);
    trace_store_free(in->traces);
    if (in->membership) membership_free(in->membership);
    if (in->eng) eng_close(in->eng);
    if (in->front) np_front_free(in->front);
    np_tls_close(in->tls);
    faults_free(in->faults);
    compat_report_free(in->report);
    if (in->ledger) ledger_close(in->ledger);
    if (in->reserved_fd >= 0) close(in->reserved_fd);
    if (in->lock_fd >= 0) close(in->lock_fd);
    clock_control_fini(&in->clock);
}
