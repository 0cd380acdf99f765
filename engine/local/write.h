/* Writes of the local store: struct store_ops (engine/store.h). Private to engine/. */
#pragma once

#include "engine/store.h"

struct eng_batch *engi_write_batch_new(struct store *s);
void engi_write_batch_free(struct eng_batch *b);
int engi_write_batch_add(struct eng_batch *b, struct err *e) MUST_CHECK;
void engi_write_batch_done(struct eng_batch *b);
int engi_write_commit(struct eng_batch *b, bool patience, struct err *e) MUST_CHECK;
