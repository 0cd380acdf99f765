#include "native_protocol/front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "native_protocol/audit_queue.h"
#include "native_protocol/dispatch.h"
#include "native_protocol/durability.h"
#include "native_protocol/conn.h"
#include "native_protocol/login.h"
#include "native_protocol/wakeup.h"

enum {
    BACKLOG = 1024,
    FRAME_MAX = 16 << 20,
    UNFINISHED_BYTES = 256 << 20,
    UNREAD_BYTES = 256 << 20,
    WORK_BYTES = 1024 << 20
};
/* A connection whose peer took bytes lately is spared, but not for ever: a client that takes a few
 * bytes now and then holds memory, too. */
enum { UNREAD_STILL_US = 2000000, UNREAD_LONG_US = 10000000 };

struct np_front {
    struct np_options o;
    struct np_bounds bounds;
    struct catalog_listener listener; /* of changes of the schema, for events to clients */
    uint16_t port, tls_port;
    struct np_workers *workers;
    struct np_committer *committer;
    struct np_logins *logins;
    unsigned n_loops;
    struct np_loop loops[];
};

int np_front_login(struct np_front *f, const struct ip_address *client, const char *name, const char *password,
                   struct err *e) {
    return np_logins_check(f->logins, client, name, password, e);
}

uint16_t np_front_port(const struct np_front *f) { return f->port; }
uint16_t np_front_tls_port(const struct np_front *f) { return f->tls_port; }

uint64_t np_front_count(const struct np_front *f, enum np_metric id) {
    uint64_t sum = 0;
    if (id == NP_METRIC_AUDIT_LOST) return f->o.audit ? np_audit_lost(f->o.audit) : 0; /* its thread counts */
    for (unsigned i = 0; i < f->n_loops; i++)
        sum += atomic_load_explicit(&f->loops[i].metrics.counts[id], memory_order_relaxed);
    return sum;
}

uint64_t np_front_requests(const struct np_front *f, uint8_t opcode, enum np_outcome o) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < f->n_loops; i++)
        sum += atomic_load_explicit(&f->loops[i].metrics.requests[opcode][o], memory_order_relaxed);
    return sum;
}

struct np_latencies np_front_latencies(const struct np_front *f, enum np_kind kind) {
    struct np_latencies sum = {0};
    for (unsigned i = 0; i < f->n_loops; i++) np_metric_add_latencies(&f->loops[i].metrics, kind, &sum);
    return sum;
}

int64_t np_front_tick_age_us(const struct np_front *f) {
    int64_t now = clock_machine_us(f->o.clock), oldest = now;
    for (unsigned i = 0; i < f->n_loops; i++) {
        int64_t seen = atomic_load_explicit(&f->loops[i].seen_us, memory_order_relaxed);
        if (seen < oldest) oldest = seen;
    }
    return now - oldest;
}

bool np_front_alive(const struct np_front *f) {
    enum { HANGS_US = 10000000 };
    return np_front_tick_age_us(f) <= HANGS_US;
}

/* ---- listeners ---- */

/* A socket that is bound, and listens if backlog is not 0. share: other sockets of this process use
 * the same port already or will. */
static int open_socket(const char *address, uint16_t port, bool share, int backlog, struct err *e) {
    struct sockaddr_storage a;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;
    socklen_t n;
    int on = 1, off = 0;
    memset(&a, 0, sizeof(a));
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        n = sizeof(*v4);
    } else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        n = sizeof(*v6);
    } else return err_set(e, ERR_CONFIG, "listen: '%s' is not a numeric IPv4 or IPv6 address", address);
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Two sockets with SO_REUSEADDR may have one port until one listens; a chosen port is not shared. */
    if (fd >= 0 && port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* `::` takes both families, whatever the machine's net.ipv6.bindv6only says. */
    if (fd >= 0 && a.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd >= 0 && share) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, n) && !(backlog && listen(fd, backlog))) return fd;
    err_set(e, ERR_CONFIG, "cannot listen on %s port %u: %s", address, port, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

static uint16_t bound_port(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    if (getsockname(fd, (struct sockaddr *)&a, &n)) return 0;
    return ntohs(((struct sockaddr_in *)&a)->sin_port); /* sin6_port has the same offset */
}

/* SO_REUSEPORT would let a second server of the same user share the port silently. So a socket
 * without it tries a given port first. The kernel does not choose a port that another socket has. */
int np_port_reserve(const char *address, uint16_t *port, struct err *e) {
    int fd;
    if (*port) {
        if ((fd = open_socket(address, *port, false, BACKLOG, e)) < 0) return -1;
        close(fd);
    }
    if ((fd = open_socket(address, *port, true, 0, e)) >= 0) *port = bound_port(fd);
    return fd;
}

/* Listens on the addresses after a loopback address that system.peers shows with `keyspaces`. An
 * address in use is shown, but not listened on. The same goes for an address that the machine does
 * not have: 127.0.0.0/8 is there on every machine, but IPv6 has the one loopback address ::1. */
static void listen_on_peers(struct np_front *f, int slot, uint16_t port, struct np_tls *tls) {
    const struct node_info *node = catalog_node(f->o.catalog);
    struct ip_address own;
    bool loopback = ip_address_parse(f->o.listen, &own) && ip_address_is_loopback(&own);
    bool wanted = loopback && strcmp(node->peers, "keyspaces") == 0;
    for (uint32_t k = 0; wanted && k < KEYSPACES_PEERS; k++) {
        char address[IP_ADDRESS_TEXT];
        struct err why = {0};
        uint16_t same = port;
        peers_following(f->o.listen, own.n == 16, k + 1, address);
        int reserved = np_port_reserve(address, &same, &why), fd = reserved;
        for (unsigned i = 0; i < f->n_loops && fd >= 0; i++) {
            struct np_listener *l = &f->loops[i].listeners[slot + (int)k];
            l->fd = fd = open_socket(address, port, true, BACKLOG, &why);
            l->tls = tls;
        }
        if (reserved >= 0) close(reserved);
        if (fd < 0) log_warn("a peer is shown that does not answer: %s", why.text);
        err_clear(&why);
    }
}

static int listen_all(struct np_front *f, int slot, uint16_t want, struct np_tls *tls, uint16_t *port, struct err *e) {
    int reserved = -1, fd = 0;
    *port = want;
    if ((!want || want != f->o.reserved_port) && (reserved = np_port_reserve(f->o.listen, port, e)) < 0) return -1;
    for (unsigned i = 0; i < f->n_loops && fd >= 0; i++) {
        f->loops[i].listeners[slot].fd = fd = open_socket(f->o.listen, *port, true, BACKLOG, e);
        f->loops[i].listeners[slot].tls = tls;
    }
    if (reserved >= 0) close(reserved);
    if (fd < 0) return -1;
    listen_on_peers(f, 2 + slot * KEYSPACES_PEERS, *port, tls);
    return 0;
}

/* ---- bounds ---- */

static void set_bounds(struct np_options *o, struct np_bounds *b) {
    /* Descriptors that connections may use; the rest is for the store's files, the log and the
     * admin port. */
    enum { STORE_FILES = 4096 };
    uint32_t room = INT32_MAX;
    struct rlimit r;
    if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= INT32_MAX) {
        uint32_t all = (uint32_t)r.rlim_cur;
        room = all / 2 > STORE_FILES ? all - STORE_FILES : all / 2;
    }
    if (o->connections > room)
        log_warn("at most %u connections instead of %u: the limit of open files leaves no more after the store's files",
                 room, o->connections);
    if (!o->connections || o->connections > room) o->connections = room;
    /* a single address may not take all connections */
    if (!o->connections_each) o->connections_each = o->connections - o->connections / 4;
    if (!o->unfinished_bytes) o->unfinished_bytes = UNFINISHED_BYTES;
    npi_peers_init(&b->peers, o->connections, o->connections_each);
    if (!o->unread_bytes) o->unread_bytes = UNREAD_BYTES;
    b->work.limit = (o->queue_bytes_max ? o->queue_bytes_max : NP_QUEUE_BYTES) +
                    (o->work_bytes ? o->work_bytes : WORK_BYTES);
    struct np_budget_options budget = {.clock = o->clock, .limit = o->unfinished_bytes, .notify = npi_loop_evict};
    npi_budget_init(&b->unfinished, &budget);
    budget.limit = o->unread_bytes;
    budget.still_us = UNREAD_STILL_US;
    budget.long_us = UNREAD_LONG_US;
    npi_budget_init(&b->unread, &budget);
}

/* ---- life ---- */

static void on_durable(void *arg) {
    struct np_front *f = arg;
    for (unsigned i = 0; i < f->n_loops; i++) npi_durability_moved(f->loops[i].durability);
}

static void on_audit_room(void *arg) {
    struct np_front *f = arg;
    for (unsigned i = 0; i < f->n_loops; i++) npi_loop_wake(&f->loops[i]);
}

/* A task that notifies the registered connections of a loop of a change of the schema. */
struct schema_event {
    struct np_task task; /* first */
    struct np_loop *loop;
    struct schema_change change;
};

static void send_event(struct np_task *x, bool ended) {
    struct schema_event *event = (struct schema_event *)x;
    for (struct np_conn *c = ended ? NULL : event->loop->conns; c; c = c->next)
        if (c->state == NP_CONN_READY && c->events & NP_EVENT_SCHEMA && npi_conn_unsent(c) < NP_OUT_MAX)
            np_event_schema(npi_conn_out(c), c->version, &event->change);
    free(event);
}

static void on_change(void *arg, const struct schema_change *change) {
    struct np_front *f = arg;
    if (change->kind == CHANGE_GONE) return; /* clients got an event for the drop */
    for (unsigned i = 0; i < f->n_loops; i++) {
        struct schema_event *event = malloc(sizeof(*event));
        if (!event) return;
        *event = (struct schema_event){.task.done = send_event, .loop = &f->loops[i], .change = *change};
        npi_inbox_give(&f->loops[i].inbox, &event->task);
    }
}

struct member_change {
    struct np_task task;
    struct np_loop *loop;
    enum member_event event;
    struct member member;
    uint16_t own_tls_port;
    bool knows_ports;
};

/* A client gets the events of the servers that system.peers shows it. */
static void send_member_change(struct np_task *x, bool ended) {
    struct member_change *m = (struct member_change *)x;
    bool moves = m->event == MEMBER_NEW || m->event == MEMBER_REMOVED;
    unsigned wanted = moves ? NP_EVENT_TOPOLOGY : NP_EVENT_STATUS;
    struct ip_address address;
    bool sends = !ended && ip_address_parse(m->member.address, &address);
    for (struct np_conn *c = sends ? m->loop->conns : NULL; c; c = c->next) {
        struct member_client client = {.port = c->session.local_port,
                                       .with_tls = m->own_tls_port && c->session.local_port == m->own_tls_port,
                                       .knows_ports = m->knows_ports};
        if (c->state != NP_CONN_READY || !(c->events & wanted) || npi_conn_unsent(c) >= NP_OUT_MAX) continue;
        if (ip_address_parse(c->session.local_address, &client.address) && member_is_reachable(&m->member, &client))
            np_event_member(npi_conn_out(c), c->version, m->event, &address,
                            client.with_tls ? m->member.tls_port : m->member.port);
    }
    free(m);
}

void np_front_tell_member(struct np_front *f, enum member_event event, const struct member *of) {
    const struct schema *schema = catalog_schema(f->o.catalog);
    bool knows_ports = schema_table_any(schema, "system", "peers_v2") != NULL;
    schema_unref(schema);
    for (unsigned i = 0; i < f->n_loops; i++) {
        struct member_change *m = malloc(sizeof(*m));
        if (!m) return;
        *m = (struct member_change){.task.done = send_member_change,
                                    .loop = &f->loops[i],
                                    .event = event,
                                    .member = *of,
                                    .own_tls_port = f->tls_port,
                                    .knows_ports = knows_ports};
        npi_inbox_give(&f->loops[i].inbox, &m->task);
    }
}

static int start_threads(struct np_front *f, struct err *e) {
    enum { QUICK_US = 100 }; /* a quick read did not wait for a disk */
    struct np_workers_options workers = {.ops = &npi_dispatch_work,
                                   .eng = f->o.eng,
                                   .clock = f->o.clock,
                                   .queue_max = f->o.queue_max,
                                   .queue_bytes_max = f->o.queue_bytes_max,
                                   .quick_us = QUICK_US};
    memcpy(workers.threads, f->o.workers, sizeof(workers.threads));
    f->workers = np_workers_new(&workers, e);
    if (!f->workers) return -1;
    f->committer = npi_committer_new(e);
    if (!f->committer) return -1;
    const struct np_logins_options logins = {.access = f->o.access,
                                             .keys = f->o.keys,
                                             .region = f->o.region,
                                             .clock = f->o.clock};
    if (f->o.access && !(f->logins = np_logins_new(&logins, e))) return -1;
    for (unsigned i = 0; i < f->n_loops; i++) {
        f->loops[i].workers = f->workers;
        f->loops[i].committer = f->committer;
        f->loops[i].logins = f->logins;
        if (pthread_create(&f->loops[i].thread, NULL, npi_loop_run, &f->loops[i]))
            return err_set(e, ERR_SERVER, "cannot start a thread");
        f->loops[i].started = true;
    }
    return 0;
}

unsigned np_front_loops(unsigned threads) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return threads ? threads : cores > 0 ? (unsigned)cores : 1;
}

int np_front_start(const struct np_options *o, struct np_front **out, struct err *e) {
    unsigned n = np_front_loops(o->threads);
    struct np_front *f = *out = calloc(1, sizeof(*f) + n * sizeof(f->loops[0]));
    if (!f) return err_nomem(e);
    f->o = *o;
    f->n_loops = n;
    for (unsigned i = 0; i < n; i++) f->loops[i].number = i;
    if (!f->o.frame_max) f->o.frame_max = FRAME_MAX;
    set_bounds(&f->o, &f->bounds);
    for (unsigned i = 0; i < f->n_loops; i++)
        if (npi_loop_init(&f->loops[i], &f->o, npi_dispatch_fns, &f->bounds, e)) return -1;
    if (f->o.plain && listen_all(f, 0, f->o.port, NULL, &f->port, e)) return -1;
    if (f->o.tls && listen_all(f, 1, f->o.tls_port, f->o.tls, &f->tls_port, e)) return -1;
    if (f->o.audit) np_audit_on_room(f->o.audit, on_audit_room, f);
    eng_on_durable(f->o.eng, on_durable, f);
    f->listener = (struct catalog_listener){.changed = on_change, .arg = f};
    catalog_on_change(f->o.catalog, &f->listener);
    return start_threads(f, e);
}

/* A sleeping loop stays asleep, or waits for its lock at its next wake-up. */
int np_front_pause(struct np_front *f, struct err *e) {
    enum { TRIES = 2000, EACH_US = 1000 };
    for (int i = 0; i < TRIES; i++) {
        for (unsigned k = 0; k < f->n_loops; k++) pthread_mutex_lock(&f->loops[k].awake);
        if (np_workers_idle(f->workers) && !npi_committer_busy(f->committer)) return 0;
        np_front_resume(f);
        usleep(EACH_US);
    }
    return err_set(e, ERR_OVERLOADED, "Other requests go on too long; try again");
}

void np_front_resume(struct np_front *f) {
    for (unsigned k = f->n_loops; k > 0; k--) pthread_mutex_unlock(&f->loops[k - 1].awake);
}

void np_front_stop(struct np_front *f) {
    if (f->workers) np_workers_stop_waiting(f->workers);
    for (unsigned i = 0; i < f->n_loops; i++)
        if (f->loops[i].started) npi_loop_stop(&f->loops[i]);
    for (unsigned i = 0; i < f->n_loops; i++)
        if (f->loops[i].started) pthread_join(f->loops[i].thread, NULL);
    if (f->workers) np_workers_stop(f->workers);
    if (f->committer) npi_committer_stop(f->committer);
    if (f->logins) np_logins_stop(f->logins);
    for (unsigned i = 0; i < f->n_loops; i++)
        if (f->loops[i].o) npi_loop_close(&f->loops[i]);
}

void np_front_free(struct np_front *f) {
    for (unsigned i = 0; i < f->n_loops; i++)
        if (f->loops[i].o) npi_loop_fini(&f->loops[i]);
    if (f->workers) np_workers_free(f->workers);
    if (f->committer) npi_committer_free(f->committer);
    if (f->logins) np_logins_free(f->logins);
    npi_peers_fini(&f->bounds.peers);
    npi_budget_fini(&f->bounds.unfinished);
    npi_budget_fini(&f->bounds.unread);
    free(f);
}
