/* The partitioner that system.local reports. UPDATE system.local SET partitioner = '...' WHERE key
 * = 'local' changes it (Working with partitioners,
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/working-with-partitioners.html): no row
 * moves. The switch takes as long as the rules of DDL delays say for UPDATE PARTITIONER. It is
 * recorded; after a restart it goes on with a new delay.
 *
 * The record "catalog/partitioner": present u8 | next u8. An older record has only the first byte.
 */
#include <stdio.h>

#include "base/log.h"
#include "system_schema/system_tables/system_table.h"

static const char *const partitioners[] = {
    "org.apache.cassandra.dht.Murmur3Partitioner",
    "org.apache.cassandra.dht.RandomPartitioner",
    "com.amazonaws.cassandra.DefaultPartitioner",
};

static const char partitioner_key[] = "catalog/partitioner";
static const struct ddl_subject subject = {"UPDATE PARTITIONER", "system", "local"};
static const int64_t retry_us = 1000000;

static uint32_t now_of(const struct catalog *c) {
    return atomic_load(&((struct catalog *)c)->system.partitioner.now);
}
static uint32_t next_of(const struct catalog *c) {
    return atomic_load(&((struct catalog *)c)->system.partitioner.next);
}

const char *partitioner_name(const struct catalog *c) { return partitioners[now_of(c)]; }
bool partitioner_is_murmur(const struct catalog *c) { return now_of(c) == 0; }
bool partitioner_is_switching(const struct catalog *c) { return now_of(c) != next_of(c); }

/* ---- the record ---- */

static int take(void *arg, struct slice key, struct slice value, struct err *e) {
    struct catalog *c = arg;
    (void)key, (void)e;
    bool sound = value.n > 0 && value.n <= 2 && value.p[0] < ARRAY_LEN(partitioners) &&
                 value.p[value.n - 1] < ARRAY_LEN(partitioners);
    if (!sound) {
        log_error("catalog: the record of the partitioner is damaged: %s is told", partitioners[0]);
        return 0;
    }
    atomic_store(&c->system.partitioner.now, value.p[0]);
    atomic_store(&c->system.partitioner.next, value.p[value.n - 1]);
    return 0;
}

static int record_both(struct catalog *c, uint32_t now, uint32_t next, struct err *e) {
    const uint8_t both[2] = {(uint8_t)now, (uint8_t)next};
    return eng_meta_put(c->eng, slice_str(partitioner_key), slice_of(both, 2), e);
}

/* ---- a switch ---- */

static int64_t draw(struct catalog *c) {
    const char *failure = ddl_rules_failure(&c->ddl.rules, &subject);
    struct partitioner *p = &c->system.partitioner;
    snprintf(p->failure, sizeof p->failure, "%s", failure ? failure : "");
    p->since_us = clock_mono_us(c->clock);
    return ddl_rules_draw(&c->ddl.rules, &subject);
}

static void wait_for(struct catalog *c, int64_t delay) {
    c->system.partitioner.due_us = delay < 0 ? INT64_MAX : c->system.partitioner.since_us + delay;
}

int partitioner_load(struct catalog *c, struct err *e) {
    atomic_store(&c->system.partitioner.now, 0);
    atomic_store(&c->system.partitioner.next, 0);
    c->system.partitioner.due_us = INT64_MAX;
    if (eng_meta_scan(c->eng, slice_str(partitioner_key), take, c, e)) return -1;
    if (partitioner_is_switching(c)) wait_for(c, draw(c));
    return 0;
}

void partitioner_step(struct catalog *c, int64_t now_us) {
    struct partitioner *p = &c->system.partitioner;
    struct err e = {0};
    if (!partitioner_is_switching(c) || p->due_us > now_us) return;
    uint32_t to = *p->failure ? now_of(c) : next_of(c);
    if (record_both(c, to, to, &e)) {
        log_error("catalog: the partitioner is not switched yet: %s", e.text);
        err_clear(&e);
        p->due_us = now_us + retry_us;
        return;
    }
    if (*p->failure) log_info("catalog: the switch of the partitioner has failed, as it was told to: %s", p->failure);
    atomic_store(&p->now, to);
    atomic_store(&p->next, to);
    p->due_us = INT64_MAX;
}

/* Only the partitioner may be written. */
WRITES(local) {
    struct catalog *c = ctx->catalog;
    const struct schema_column *col = schema_column_find(table, "partitioner");
    struct value v = change->values[col->ordinal];
    bool alone = change->kind == VIRTUAL_UPDATE && slice_is(value_slice(change->values[0]), "local");
    for (uint32_t i = 1; i < table->n_columns && alone; i++)
        alone = (i == col->ordinal) == !value_is_unset(change->values[i]);
    if (!alone)
        return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", table->keyspace->name);
    uint32_t to = 0;
    while (to < ARRAY_LEN(partitioners) && !slice_is(value_slice(v), partitioners[to])) to++;
    if (to == ARRAY_LEN(partitioners))
        return err_invalid(ctx->err, "'%.*s' is no partitioner: %s, %s or %s", SLICE_FMT(value_slice(v)),
                           partitioners[0], partitioners[1], partitioners[2]);
    /* Replaces a switch that is under way. A switch to the present partitioner only ends that one. */
    pthread_mutex_lock(&c->lock);
    int64_t delay = draw(c);
    bool at_once = delay == 0 && !*c->system.partitioner.failure;
    int rc = record_both(c, at_once ? to : now_of(c), to, ctx->err);
    if (rc == 0) {
        if (at_once) atomic_store(&c->system.partitioner.now, to);
        atomic_store(&c->system.partitioner.next, to);
        wait_for(c, partitioner_is_switching(c) ? delay : -1);
        pthread_cond_broadcast(&c->moved);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}
