#include "tools/client/load.h"

#include <ev.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* How long a run waits for outstanding answers after its time is over. */
static const double patience_s = 15;

struct load_conn {
    struct load *load;
    struct client client;
    ev_io reader, writer;
    bool dirty;
};

struct load {
    struct ev_loop *loop;
    unsigned n, in_flight;
    struct load_conn *conns;
    struct flight flight; /* slot: connection * in_flight + stream */
    const struct load_driver *driver;
    struct load_conn **dirty; /* connections with unsent requests */
    unsigned n_dirty;
    ev_timer deadline, patience, tick;
    ev_io alarm;
    int alarm_fd;
    uint64_t alarm_ns; /* when it is set for */
    bool stopping, idle; /* idle: the driver's last pick had no request */
    uint64_t given_up;   /* requests that waited for another try when the run ended */
    bool crowded;        /* the next request's connection has no free slot */
    volatile bool asked_to_stop;
    struct err *e;
};

uint64_t load_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- sending ---- */

static void end(struct load *l) { ev_break(l->loop, EVBREAK_ALL); }

static void send_slot(struct load *l, struct flight_slot *s, uint64_t now) {
    uint32_t number = flight_number(&l->flight, s);
    struct load_conn *c = &l->conns[number / l->in_flight];
    l->driver->put(l->driver->arg, s, c->client.version, (uint16_t)(number % l->in_flight), &c->client.link.out);
    flight_sent(&l->flight, s, now);
    if (c->dirty) return;
    c->dirty = true;
    l->dirty[l->n_dirty++] = c;
}

static void flush(struct load_conn *c) {
    struct load *l = c->load;
    int rc = link_flush(&c->client.link, l->e);
    if (rc < 0) end(l);
    else if (rc) ev_io_start(l->loop, &c->writer);
    else ev_io_stop(l->loop, &c->writer);
}

static bool is_over(const struct load *l) {
    if (l->flight.n_flying || l->flight.n_waiting) return false;
    if (l->stopping) return true;
    return l->driver->due ? l->driver->due(l->driver->arg) == FLIGHT_NEVER : l->idle;
}

/* Sends every request that is due, then sets the alarm for the next one or ends a finished run. */
static void pump(struct load *l) {
    const struct load_driver *d = l->driver;
    struct flight_slot *s;
    l->idle = l->crowded = false;
    while (l->flight.n_waiting && (s = flight_due(&l->flight, load_now()))) send_slot(l, s, load_now());
    while (!l->stopping && l->flight.n_free) {
        bool open = d->due != NULL;
        uint64_t due_ns = open ? d->due(d->arg) : 0, now = load_now();
        if (due_ns > now) break;
        /* a request of a closed loop is due now and takes the slot that was freed last */
        s = open && d->where ? flight_take_of(&l->flight, d->where(d->arg) * l->in_flight, l->in_flight, due_ns)
                             : flight_take(&l->flight, open ? due_ns : now);
        l->crowded = !s;
        if (!s) break;
        if (!d->pick(d->arg, s)) {
            flight_put_back(&l->flight, s);
            l->idle = true;
            break;
        }
        send_slot(l, s, now);
    }
    for (unsigned i = 0; i < l->n_dirty; i++) {
        l->dirty[i]->dirty = false;
        flush(l->dirty[i]);
    }
    l->n_dirty = 0;
    /* The alarm is for the next request that is due, or is to be tried again. */
    uint64_t at = flight_next(&l->flight),
             due = d->due && !l->stopping && l->flight.n_free && !l->crowded ? d->due(d->arg) : FLIGHT_NEVER;
    if (due < at) at = due;
    if (at != l->alarm_ns) {
        struct itimerspec t = {0};
        l->alarm_ns = at;
        if (at != FLIGHT_NEVER)
            t.it_value = (struct timespec){.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
        timerfd_settime(l->alarm_fd, TFD_TIMER_ABSTIME, &t, NULL);
    }
    if (is_over(l)) end(l);
}

/* ---- receiving ---- */

static void on_response(struct load_conn *c, const struct wire_response *r) {
    struct load *l = c->load;
    if (r->stream >= l->in_flight) return; /* an event */
    struct flight_slot *s = &l->flight.slots[(size_t)(c - l->conns) * l->in_flight + r->stream];
    if (s->state != SLOT_FLYING) return;
    uint64_t now = load_now();
    const struct load_answer a = {.response = r, .now_ns = now, .service_ns = now - s->sent_ns,
                                  .latency_ns = now > s->due_ns ? now - s->due_ns : 0};
    int64_t again = l->driver->answered(l->driver->arg, s, &a);
    if (again >= 0 && l->stopping) l->given_up++;
    if (again < 0 || l->stopping) flight_done(&l->flight, s, now);
    else flight_again(&l->flight, s, now + (uint64_t)again);
}

/* Handles every answer that has arrived. pump then reuses the freed slots, so the requests of one
 * wake-up leave together. */
static void on_readable(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    struct load_conn *c = w->data;
    struct load *l = c->load;
    struct wire_response r;
    int more, rc;
    do {
        more = link_fill(&c->client.link, l->e);
        while (more >= 0 && (rc = link_next(&c->client.link, &r, l->e)) > 0) on_response(c, &r);
        if (more < 0 || rc < 0) {
            end(l);
            return;
        }
        link_compact(&c->client.link);
    } while (more);
    pump(l);
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    flush(w->data);
}

static void on_alarm(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    struct load *l = w->data;
    uint64_t times;
    if (read(l->alarm_fd, &times, sizeof(times)) != (ssize_t)sizeof(times)) return;
    l->alarm_ns = 0;
    pump(l);
}

/* ---- the end ---- */

static void stop(struct load *l) {
    if (l->stopping) return;
    l->stopping = true;
    while (l->flight.n_waiting) { /* give up the requests that wait for another try */
        struct flight_slot *s = flight_due(&l->flight, FLIGHT_NEVER);
        flight_sent(&l->flight, s, s->sent_ns);
        flight_done(&l->flight, s, s->sent_ns);
        l->given_up++;
    }
    ev_timer_set(&l->patience, patience_s, 0);
    ev_timer_start(l->loop, &l->patience);
    if (is_over(l)) end(l);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events) {
    (void)loop, (void)events;
    struct load *l = w->data;
    if (l->stopping) end(l);
    else stop(l);
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int events) {
    (void)loop, (void)events;
    struct load *l = w->data;
    bool enough = l->driver->tick && l->driver->tick(l->driver->arg);
    if (enough || l->asked_to_stop) stop(l);
}

void load_stop(struct load *l) { l->asked_to_stop = true; }

uint64_t load_given_up(const struct load *l) { return l->given_up; }

/* ---- running ---- */

int load_run(struct load *l, const struct load_driver *d, double seconds, double *took, uint64_t *unanswered,
             struct err *e) {
    static const double tick_s = 0.25;
    flight_fini(&l->flight);
    if (flight_init(&l->flight, l->n * l->in_flight)) return err_nomem(e);
    for (unsigned i = 0; i < l->n; i++)
        if (link_set_blocking(&l->conns[i].client.link, false, e)) return -1;
    l->driver = d;
    l->e = e;
    l->stopping = l->asked_to_stop = false;
    l->given_up = 0;
    l->alarm_ns = FLIGHT_NEVER;
    ev_now_update(l->loop);
    ev_timer_set(&l->tick, d->tick_s > 0 ? d->tick_s : tick_s, d->tick_s > 0 ? d->tick_s : tick_s);
    ev_timer_start(l->loop, &l->tick);
    if (seconds > 0) {
        ev_timer_set(&l->deadline, seconds, 0);
        ev_timer_start(l->loop, &l->deadline);
    }
    ev_io_start(l->loop, &l->alarm);
    for (unsigned i = 0; i < l->n; i++) ev_io_start(l->loop, &l->conns[i].reader);
    uint64_t begun = load_now();
    pump(l);
    if (!is_over(l) && !e->set) ev_run(l->loop, 0);
    if (took) *took = (double)(load_now() - begun) / 1e9;
    if (unanswered) *unanswered = l->flight.n_flying;
    ev_io_stop(l->loop, &l->alarm);
    ev_timer_stop(l->loop, &l->deadline);
    ev_timer_stop(l->loop, &l->patience);
    ev_timer_stop(l->loop, &l->tick);
    for (unsigned i = 0; i < l->n; i++) {
        ev_io_stop(l->loop, &l->conns[i].reader);
        ev_io_stop(l->loop, &l->conns[i].writer);
    }
    for (unsigned i = 0; i < l->n && !e->set; i++)
        if (link_set_blocking(&l->conns[i].client.link, true, e)) break;
    return e->set ? -1 : 0;
}

/* ---- opening ---- */

struct load *load_open(const struct client_options *const *options, unsigned n_options, unsigned connections,
                       unsigned in_flight, struct err *e) {
    struct load *l = calloc(1, sizeof(*l));
    if (!l) return (void)err_nomem(e), NULL;
    *l = (struct load){.loop = ev_loop_new(EVBACKEND_EPOLL),
                       .n = connections, .in_flight = in_flight,
                       .alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    l->conns = calloc(connections, sizeof(*l->conns));
    l->dirty = calloc(connections, sizeof(struct load_conn *));
    if (!l->loop || !l->conns || !l->dirty || l->alarm_fd < 0) {
        (void)err_nomem(e);
    } else {
        ev_io_init(&l->alarm, on_alarm, l->alarm_fd, EV_READ);
        ev_timer_init(&l->deadline, on_deadline, 0, 0);
        ev_timer_init(&l->patience, on_deadline, 0, 0);
        ev_timer_init(&l->tick, on_tick, 0, 0);
        l->alarm.data = l->deadline.data = l->patience.data = l->tick.data = l;
    }
    for (unsigned i = 0; i < connections && !e->set; i++) {
        struct load_conn *c = &l->conns[i];
        if (client_open(&c->client, options[i % n_options], e)) break;
        c->load = l;
        ev_io_init(&c->reader, on_readable, c->client.link.fd, EV_READ);
        ev_io_init(&c->writer, on_writable, c->client.link.fd, EV_WRITE);
        c->reader.data = c->writer.data = c;
    }
    if (!e->set) return l;
    load_close(l);
    return NULL;
}

void load_close(struct load *l) {
    for (unsigned i = 0; l->conns && i < l->n; i++) client_close(&l->conns[i].client);
    if (l->loop) ev_loop_destroy(l->loop);
    if (l->alarm_fd >= 0) close(l->alarm_fd);
    flight_fini(&l->flight);
    free(l->conns);
    free(l->dirty);
    free(l);
}

struct client *load_client(struct load *l, unsigned connection) { return &l->conns[connection].client; }
