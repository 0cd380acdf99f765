/* The partitioner that new connections get. UPDATE system.local SET partitioner = '...' WHERE key =
 * 'local' changes it (Working with partitioners,
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/working-with-partitioners.html): no row
 * moves, and open connections keep theirs. The switch takes as long as the rules of DDL delays say
 * for UPDATE PARTITIONER. It is recorded; after a restart it goes on with a new delay.
 *
 * The record "catalog/partitioner": present u8 | next u8. An older record has only the first byte.
 */
#include "engine/named.h"
#include "system_schema/system_tables/system_table.h"

#include <stdio.h>

#include "base/log.h"

static const char *const partitioners[PARTITIONERS] = {
    [PARTITIONER_MURMUR3] = "org.apache.cassandra.dht.Murmur3Partitioner",
    [PARTITIONER_RANDOM] = "org.apache.cassandra.dht.RandomPartitioner",
    [PARTITIONER_DEFAULT] = "com.amazonaws.cassandra.DefaultPartitioner",
};

static const char partitioner_key[] = "catalog/partitioner";
static const struct ddl_subject subject = {"UPDATE PARTITIONER", "system", "local"};
static const int64_t retry_us = 1000000;

const char *partitioner_name(enum partitioner_id p) { return partitioners[p]; }
bool partitioner_is_switching(const struct partitioner *p) { return atomic_load(&p->now) != atomic_load(&p->next); }

/* ---- the record ---- */

struct switch_record {
    uint8_t bytes[2];
    uint32_t n;
    bool is_damaged;
};

static int take(void *arg, struct slice key, struct slice value, struct err *e) {
    struct switch_record *r = arg;
    (void)key, (void)e;
    bool sound = value.n > 0 && value.n <= 2 && value.p[0] < ARRAY_LEN(partitioners) &&
                 value.p[value.n - 1] < ARRAY_LEN(partitioners);
    if (!sound) {
        log_error("catalog: the record of the partitioner is damaged: %s is reported", partitioners[0]);
        r->is_damaged = true;
        return 0;
    }
    memcpy(r->bytes, value.p, value.n);
    r->n = (uint32_t)value.n;
    return 0;
}

/* Returns 1 if it differs from what was read or written last, 0, -1. */
static int read_record(struct partitioner *p, struct err *e) {
    struct switch_record r = {0};
    if (eng_meta_scan(p->ddl->objects->eng, slice_str(partitioner_key), take, &r, e)) return -1;
    bool same = slice_eq(slice_of(r.bytes, r.n), slice_of(p->record, p->n_record));
    memcpy(p->record, r.bytes, sizeof r.bytes);
    p->n_record = r.n;
    p->is_damaged = r.is_damaged;
    atomic_store(&p->now, r.bytes[0]);
    atomic_store(&p->next, r.n ? r.bytes[r.n - 1] : 0);
    return !same;
}

/* ERR_OVERLOADED: another server on the store has written the record, which is read again. */
static int record_both(struct partitioner *p, uint32_t now, uint32_t next, struct err *e) {
    const uint8_t both[2] = {(uint8_t)now, (uint8_t)next};
    const struct slice expected = slice_of(p->record, p->n_record);
    const struct eng_meta_change change = {.key = slice_str(partitioner_key),
                                           .value = slice_of(both, sizeof both),
                                           .conditional = !p->is_damaged,
                                           .expected = p->n_record ? &expected : NULL};
    int rc = eng_meta_write(p->ddl->objects->eng, 1, &change, e);
    if (rc == ENG_CHANGED) {
        if (read_record(p, e) < 0) return -1;
        return err_set(e, ERR_OVERLOADED, "Another server has switched the partitioner at the same time; try again");
    }
    if (rc) return -1;
    memcpy(p->record, both, sizeof both);
    p->n_record = sizeof both;
    p->is_damaged = false;
    return 0;
}

/* ---- a switch ---- */

/* Returns the delay of a switch that begins now, by the rules; below 0: held. */
static int64_t draw(struct partitioner *p) {
    const char *failure = ddl_rules_failure(&p->ddl->rules, &subject);
    snprintf(p->failure, sizeof p->failure, "%s", failure ? failure : "");
    p->since_us = clock_mono_us(p->ddl->objects->clock);
    return ddl_rules_draw(&p->ddl->rules, &subject);
}

static void set_due(struct partitioner *p, int64_t delay) {
    bool waits = partitioner_is_switching(p) && delay >= 0;
    p->ddl->guest.due_us = waits ? p->since_us + delay : INT64_MAX;
}

/* Ends the switch under way. */
static void step(void *arg, int64_t now_us) {
    struct partitioner *p = arg;
    struct err e = {0};
    p->ddl->guest.due_us = INT64_MAX;
    if (!partitioner_is_switching(p)) return;
    uint32_t to = atomic_load(*p->failure ? &p->now : &p->next);
    if (record_both(p, to, to, &e)) {
        bool ended = !partitioner_is_switching(p); /* by another server */
        if (!ended) log_error("catalog: the partitioner is not switched yet: %s", e.text);
        err_clear(&e);
        if (!ended) p->ddl->guest.due_us = now_us + retry_us;
        return;
    }
    if (*p->failure) log_info("catalog: the switch of the partitioner has failed, as configured: %s", p->failure);
    atomic_store(&p->now, to);
    atomic_store(&p->next, to);
}

/* A switch that another server has begun is ended by the first of the servers that has it due. */
static int look_again(void *arg, struct err *e) {
    struct partitioner *p = arg;
    int differs = read_record(p, e);
    if (differs > 0) set_due(p, partitioner_is_switching(p) ? draw(p) : 0);
    return differs < 0 ? -1 : 0;
}

int partitioner_load(struct partitioner *p, struct ddl *d, struct err *e) {
    p->ddl = d;
    p->n_record = 0;
    d->guest = (struct ddl_guest){.due_us = INT64_MAX, .step = step, .look_again = look_again, .arg = p};
    return look_again(p, e);
}

int partitioner_switch(struct partitioner *p, struct slice name, struct err *e) {
    struct objects *o = p->ddl->objects;
    uint32_t to = 0;
    while (to < ARRAY_LEN(partitioners) && !slice_is(name, partitioners[to])) to++;
    if (to == ARRAY_LEN(partitioners))
        return err_invalid(e, "'%.*s' is no partitioner: %s, %s or %s", SLICE_FMT(name), partitioners[0],
                           partitioners[1], partitioners[2]);
    /* Replaces a switch that is under way. A switch to the present partitioner only ends that one. */
    pthread_mutex_lock(&o->lock);
    int64_t delay = draw(p);
    bool at_once = delay == 0 && !*p->failure;
    int rc = record_both(p, at_once ? to : atomic_load(&p->now), to, e);
    if (rc == 0) {
        if (at_once) atomic_store(&p->now, to);
        atomic_store(&p->next, to);
        set_due(p, delay);
        objects_moved(o);
    }
    pthread_mutex_unlock(&o->lock);
    return rc;
}
