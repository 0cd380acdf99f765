/* The value of one setting, between text and member. Inside settings only. */
#pragma once

#include "keyspaces/ddl_error.h"
#include "settings/settings.h"

/* ddl_error in the words of the mode. */
#define option_error(x, ...) ddl_error((x)->err, (x)->cassandra_mode, __VA_ARGS__)

/* Reads the text that a record or a property has; words in any case. Returns false if it is none of
 * its kind, or the kind is a map. The text stays the caller's. */
bool setting_read(const struct setting *row, const char *text, void *of);
/* -1 with ERR_INVALID: the text is none of the property's kind or not in its range. name: as errors
 * have it. */
int setting_check_text(const struct setting *row, const char *name, const char *text, struct err *e) MUST_CHECK;
static inline void setting_give(const struct setting *row, const struct setting *rows, void *of) {
    *(uint64_t *)of |= UINT64_C(1) << (row - rows);
}

/* A row, the struct that has its member, and for a map the key. */
struct setting_place {
    const struct setting *row, *rows;
    void *of;
    const char *key;
};
/* Finds by a name with dots, in any case; makes the settings of a Region that the name has. Returns
 * false if there is no such setting, or (*no_memory) no memory. */
bool setting_find(struct table_settings *s, const char *name, struct arena *a, struct setting_place *out,
                  bool *no_memory);
/* Adds an entry to a map. */
int setting_map_add(struct setting_map *m, const char *key, const char *value, struct arena *a) MUST_CHECK;

/* The values of options that are texts with a form (retry_policy.c) or maps (map_option.c, compaction.c). */
const char *retry_policy(const struct setting_context *x, const char *text) MUST_CHECK;

enum compaction_strategy {
    COMPACTION_STCS = 1,
    COMPACTION_LCS = 2,
    COMPACTION_TWCS = 4,
    COMPACTION_UCS = 8,
    COMPACTION_DTCS = 16
};
/* Returns -1 if Cassandra refuses the value of a sub-option. */
int compaction_check(const struct setting_context *c, enum compaction_strategy strategy,
                     const struct setting_map *given) MUST_CHECK;
