/* A ring of copies. A reader sees a session completely or not at all. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "system_schema/system_tables/trace_store.h"
#include "types/type.h"

enum { MAX_SESSIONS = 256, MAX_SESSION_BYTES = 256 * 1024 };
static const int64_t kept_us = INT64_C(86400000000); /* as long as Cassandra keeps them (tracetype_query_ttl) */

struct kept {
    uint64_t number; /* from 1; 0 means the session takes no more events */
    struct trace_session session;
    struct trace_event *events; /* the session's events; NULL means deleted */
    struct trace_row *written;
    struct arena arena;
};

struct trace_store {
    pthread_mutex_t lock;
    uint64_t added;
    struct kept *ring[MAX_SESSIONS];
};

/* Frees the rows that clients wrote into events, or (all) into the session, too. */
static void drop_written(struct kept *k, bool all) {
    for (struct trace_row **at = &k->written; *at;) {
        struct trace_row *row = *at;
        if (!all && !row->of_event) {
            at = &row->next;
            continue;
        }
        *at = row->next;
        free(row);
    }
    k->session.written = k->written;
}

static void kept_free(struct kept *k) {
    if (!k) return;
    drop_written(k, true);
    arena_fini(&k->arena);
    free(k);
}

struct trace_store *trace_store_new(void) {
    struct trace_store *t = calloc(1, sizeof *t);
    if (t) pthread_mutex_init(&t->lock, NULL);
    return t;
}

void trace_store_free(struct trace_store *t) {
    if (!t) return;
    for (int i = 0; i < MAX_SESSIONS; i++) kept_free(t->ring[i]);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* A client may send any bytes as a statement; drivers fail on a text that is not UTF-8. */
static const char *copy_text(struct arena *a, const char *s) {
    char *copy = s ? arena_strdup(a, s) : NULL;
    if (copy) cql_utf8_clean(copy);
    return copy;
}

uint64_t trace_store_add(struct trace_store *store, const struct trace_session *t) {
    struct kept *k = calloc(1, sizeof *k);
    if (!k) return 0;
    struct arena *a = &k->arena;
    arena_init(a, 2048, MAX_SESSION_BYTES);
    /* Parts that do not fit are left out: traces may be incomplete. */
    k->session = *t;
    k->session.traced = true;
    k->session.written = NULL;
    k->session.role = t->role ? arena_strdup(a, t->role) : NULL;
    k->session.command = copy_text(a, t->command);
    k->session.request = copy_text(a, t->request);
    k->session.client = t->client.p ? arena_dup(a, t->client) : t->client;
    struct schema_option *parameters = ARENA_ARRAY(a, t->n_parameters + 1, struct schema_option);
    struct trace_event *events = ARENA_ARRAY(a, t->n_events + 1, struct trace_event); /* room for one more */
    k->session.n_parameters = k->session.n_events = 0;
    k->session.parameters = parameters;
    k->session.events = k->events = events;
    for (uint32_t i = 0; parameters && i < t->n_parameters; i++) {
        struct schema_option copy = {copy_text(a, t->parameters[i].name), copy_text(a, t->parameters[i].value)};
        if (copy.name && copy.value) parameters[k->session.n_parameters++] = copy;
    }
    for (uint32_t i = 0; events && i < t->n_events; i++) {
        const struct trace_event *e = &t->events[i];
        struct trace_event copy = {e->at_us, copy_text(a, e->activity), copy_text(a, e->thread)};
        if (copy.activity) events[k->session.n_events++] = copy;
    }
    pthread_mutex_lock(&store->lock);
    struct kept **slot = &store->ring[store->added++ % MAX_SESSIONS];
    struct kept *old = *slot;
    uint64_t number = k->number = store->added;
    *slot = k;
    pthread_mutex_unlock(&store->lock);
    kept_free(old);
    return number;
}

void trace_store_more(struct trace_store *store, uint64_t trace, int64_t machine_us, const char *activity,
                      const char *thread) {
    pthread_mutex_lock(&store->lock);
    struct kept *k = store->ring[(trace - 1) % MAX_SESSIONS];
    if (k && k->number == trace && k->events) {
        k->session.duration_us = machine_us - k->session.machine_us;
        k->events[k->session.n_events++] = (struct trace_event){k->session.duration_us, activity, thread};
        k->number = 0; /* this was the last event */
    }
    pthread_mutex_unlock(&store->lock);
}

static bool has_id(const struct kept *k, struct slice id) { return k && slice_eq(id, slice_of(k->session.id, 16)); }

/* Deletes the session in a slot of the ring, or only its events. The slot may be empty. */
static void erase(struct kept **slot, bool events) {
    struct kept *k = *slot;
    if (k && events) {
        k->session.n_events = 0;
        k->events = NULL;
        drop_written(k, false);
    } else if (k) {
        *slot = NULL;
        kept_free(k);
    }
}

/* The written row of the session, made anew from the stored one (old, or NULL) and the values. */
static struct trace_row *row_with(const struct trace_row *old, const struct slice *event, const struct value *values,
                                  uint32_t n, bool insert) {
    struct value all[TRACE_COLUMNS];
    size_t bytes = sizeof(struct trace_row);
    for (uint32_t i = 0; i < TRACE_COLUMNS; i++) {
        bool given = values && i < n && !value_is_unset(values[i]);
        all[i] = given ? values[i] : old && values ? old->values[i] : (struct value){.n = VALUE_UNSET};
        bytes += value_slice(all[i]).n;
    }
    struct trace_row *row = calloc(1, bytes);
    if (!row) return NULL;
    *row = (struct trace_row){.of_event = event != NULL, .bytes = bytes, .deleted = !values || (old && old->deleted),
                              .inserted = values && (insert || (old && old->inserted))};
    if (event) memcpy(row->event, event->p, 16);
    uint8_t *to = (uint8_t *)(row + 1);
    for (uint32_t i = 0; i < TRACE_COLUMNS; i++) {
        row->values[i] = all[i];
        if (all[i].n <= 0) continue;
        row->values[i].p = memcpy(to, all[i].p, (size_t)all[i].n);
        to += all[i].n;
    }
    return row;
}

int trace_store_write(struct trace_store *t, int64_t now_us, const char *role, struct slice session,
                      const struct slice *event, const struct value *values, uint32_t n, bool insert, struct err *e) {
    assert(n <= TRACE_COLUMNS && session.n == 16);
    if (!t) return 0;
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    struct kept *k = NULL;
    for (int i = 0; i < MAX_SESSIONS; i++)
        if (has_id(t->ring[i], session) && now_us - t->ring[i]->session.started_us <= kept_us) k = t->ring[i];
    if (!k && values && (k = calloc(1, sizeof *k))) { /* a deletion of nothing stores nothing */
        arena_init(&k->arena, 256, MAX_SESSION_BYTES);
        memcpy(k->session.id, session.p, 16);
        k->session.started_us = now_us;
        k->session.role = role ? arena_strdup(&k->arena, role) : NULL;
        struct kept **slot = &t->ring[t->added++ % MAX_SESSIONS];
        kept_free(*slot);
        *slot = k;
    } else if (!k && values) {
        rc = err_nomem(e);
    }
    if (k) {
        struct trace_row **at = &k->written;
        while (*at && !trace_row_is(*at, event ? event->p : NULL)) at = &(*at)->next;
        struct trace_row *old = *at, *row = row_with(old, event, values, n, insert);
        size_t bytes = row ? row->bytes : 0;
        for (const struct trace_row *x = k->written; x; x = x->next) bytes += x == old ? 0 : x->bytes;
        if (!row) rc = err_nomem(e);
        else if (bytes > MAX_SESSION_BYTES)
            rc = err_invalid(e, "A session of system_traces may hold at most %d bytes that clients wrote",
                             MAX_SESSION_BYTES);
        if (rc) {
            free(row);
        } else {
            row->next = old ? old->next : NULL;
            *at = row;
            free(old);
            k->session.written = k->written;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void trace_store_delete(struct trace_store *t, struct slice id, bool events) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < MAX_SESSIONS; i++)
        if (has_id(t->ring[i], id)) erase(&t->ring[i], events);
    pthread_mutex_unlock(&t->lock);
}

void trace_store_clear(struct trace_store *t, bool events) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < MAX_SESSIONS; i++) erase(&t->ring[i], events);
    pthread_mutex_unlock(&t->lock);
}

int trace_store_each(struct trace_store *t, int64_t now_us, const struct value *id,
                     int (*fn)(void *arg, const struct trace_session *s), void *arg) {
    int rc = 0;
    if (!t) return 0;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < MAX_SESSIONS && rc == 0; i++) {
        const struct kept *k = t->ring[i];
        if (!k || (id && !has_id(k, value_slice(*id))) || now_us - k->session.started_us > kept_us) continue;
        rc = fn(arg, &k->session);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}
