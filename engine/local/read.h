/* Reads of the local store: struct store_ops (engine/store.h). Private to engine/. */
#pragma once

#include "engine/store.h"

int engi_read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                  struct err *e) MUST_CHECK;
struct kv_iter *engi_read_cursor(struct store *s, struct store_view *view, const struct store_range *range,
                                 struct err *e) MUST_CHECK;
bool engi_read_may_be_deleted(struct store *s, const struct store_view *view, int64_t token);
void engi_read_hint(struct store *s, const struct store_view *view, struct slice prefix, enum store_hint hint);
