#include "server.h"

#include <assert.h>

#include "engine/named.h"
#include "membership/membership.h"
#include "server/fleet.h"

static int ignore_record(void *arg, struct slice name, struct slice value, struct err *e) {
    return (void)arg, (void)name, (void)value, (void)e, 0;
}

static void join(struct eng *eng) {
    struct membership_options o = {.eng = eng,
                                   .clock = &clock_real,
                                   .self = {.incarnation = {1}, .address = "127.0.0.1", .port = 9042}};
    const struct membership_hooks none = {0};
    struct err e = {0};
    member_set_host_id(&o.self, "test");
    struct membership *m = membership_open(&o, &e);
    if (!m) assert(e.text[0]);
    if (m && membership_join(m, &none, &e) == 0) membership_tick(m);
    if (m) membership_free(m);
}

static void share_ledger(struct eng *eng) {
    struct ledger_options o = {.clock = &clock_real, .n_shards = 1};
    struct err e = {0};
    struct ledger *ledger = ledger_open(&o, &e);
    assert(ledger);
    struct fleet *f = fleet_open(&(struct fleet_options){.eng = eng, .ledger = ledger, .clock = &clock_real}, &e);
    if (!f) assert(e.text[0]);
    if (f && fleet_round(f, true, &e)) assert(e.text[0]);
    if (f) fleet_close(f);
    ledger_close(ledger);
}

void server_run(struct eng *eng) {
    struct err e = {0};
    if (eng_meta_scan(eng, slice_of("", 0), ignore_record, NULL, &e)) assert(e.text[0]);
    join(eng);
    share_ledger(eng);
}
