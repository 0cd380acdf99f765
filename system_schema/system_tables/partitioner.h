/* The partitioner that new connections get, and its switch. Inside system_schema only. */
#pragma once

#include "system_schema/ddl/ddl.h"
#include "system_schema/system_tables/virtual.h"

/* objects->lock guards all fields except now and next (C1). The switch is the guest of ddl: its due
 * time is ddl->guest.due_us. */
struct partitioner {
    struct ddl *ddl;
    atomic_uint now, next; /* the same when no switch is under way */
    uint8_t record[2];     /* as it was read or written last */
    uint32_t n_record;     /* bytes of it; 0 if there is none */
    bool is_damaged;       /* the stored record is, so the next one replaces it unconditionally */
    int64_t since_us;      /* monotonic */
    char failure[DDL_WORDS_MAX];
};

bool partitioner_is_switching(const struct partitioner *p);
/* Loads the record, after the rules; a switch that was under way goes on. The lock is held. */
int partitioner_load(struct partitioner *p, struct ddl *d, struct err *e) MUST_CHECK;
/* Begins a switch, which takes as long as the rules say, and records it. ERR_INVALID: there is no
 * such partitioner. Takes the lock. */
int partitioner_switch(struct partitioner *p, struct slice name, struct err *e) MUST_CHECK;
