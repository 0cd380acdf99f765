/* The records of a fleet's shares (fleet.h): their names, and heads. */
#pragma once

#include "base/buf.h"

#define FLEET_HEADS "share/head/"
#define FLEET_TABLES "share/table/"
#define FLEET_FOLDED "share/folded/"
enum { FLEET_FOLDED_KEY = sizeof(FLEET_FOLDED) + 16 };
enum { FLEET_HEAD_KEY = sizeof(FLEET_HEADS) + 16, FLEET_TABLE_KEY = sizeof(FLEET_TABLES) + 16 + 1 + 8 };

struct fleet_head {
    uint64_t incarnation, sequence;
    uint64_t tables; /* the sequence of the write that changed tables last */
    struct slice demands;
};

void fleet_head_key(uint64_t id, char out[FLEET_HEAD_KEY]);
void fleet_table_key(uint64_t id, uint32_t object, char out[FLEET_TABLE_KEY]);
void fleet_folded_key(uint64_t id, char out[FLEET_FOLDED_KEY]);
void fleet_head_put(struct buf *out, const struct fleet_head *h);
/* The demands stay in value. -1: damaged. */
int fleet_head_take(struct slice value, struct fleet_head *h) MUST_CHECK;
/* Splits the receipt of a fold. -1: damaged. */
int fleet_folded_take(struct slice value, int64_t *folded_us, struct slice *receipt) MUST_CHECK;
/* The number behind a prefix of `at` bytes, of so many hex digits. -1: the name is another one. */
int fleet_number(struct slice name, size_t at, size_t digits, uint64_t *out) MUST_CHECK;
