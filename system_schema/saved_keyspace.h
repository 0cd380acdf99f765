/* A keyspace that is put back out of a saved state, while everything else stays as it is. Inside system_schema only, but for what catalog.h tells of it.
 *
 * Life: a state is saved for a keyspace (eng_state_save). A thread makes a spare of it: each of its tables, and each history, is copied out of the state into
 * the store under an id that nothing else has. To put the keyspace back is to write its records anew, with the spare's ids as the places of its rows, in one
 * batch with records of what was there, which is freed as a dropped table is. So it takes as long as the records do, however many rows there are; then
 * the next spare is made. Who asks before there is one waits for it.
 *
 *   record "spare/" id u32:  'r' (rows of a table) or 'h' (a history)       copied, and not in use; a restart frees it
 */
#pragma once

#include "system_schema/catalog_state.h"

struct saved_keyspaces *saved_keyspaces_new(void) MUST_CHECK;
/* Ends the thread; frees the spares' memory, not what they take in the store. */
void saved_keyspaces_free(struct saved_keyspaces *all);
/* When the catalogue is read: spares in the store that memory does not know of are freed. The catalogue's lock is held. */
int saved_keyspaces_clean(struct catalog *c, struct err *e) MUST_CHECK;
