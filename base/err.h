/* The one error type: a function that can fail returns -1 (or NULL) and fills its caller's struct
 * err.
 *
 * A request owns one struct err. The function that finds the first error fills it, and its callers
 * pass -1 up. The client reads the text, so the text names what the user can act on, in Cassandra's
 * words where Cassandra has such an error.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

enum err_code {
#define ERR(id, code, title) ERR_##id = code,
#include "base/err.def"
#undef ERR
};

enum { ERR_TEXT_MAX = 2048, ERR_NAME_MAX = 64 };

/* Fields that some codes have in addition to the text (native protocol v5, section 9). */
struct err_detail {
    uint16_t consistency;
    int32_t received, required, failures; /* timeouts, failures, unavailable (required, alive = received) */
    uint8_t data_present;                 /* ReadTimeout, ReadFailure */
    char write_type[20];                  /* SIMPLE, BATCH, UNLOGGED_BATCH, COUNTER, BATCH_LOG, CAS, VIEW, CDC */
    uint16_t contentions;                 /* WriteTimeout with write type CAS, v5 */
    /* AlreadyExists (table may be empty), FunctionFailure; Invalid: what may be CREATING (err_about) */
    char keyspace[ERR_NAME_MAX], name[ERR_NAME_MAX];
    uint8_t prepared_id[16];                         /* Unprepared */
};

struct err {
    bool set;
    bool no_memory; /* set by err_nomem: the request itself may be valid */
    enum err_code code;
    const char *rule; /* the rule that the request broke, a name of keyspaces/refusal.def; NULL if none of them */
    struct err_detail detail;
    /* UTF-8, NUL-terminated, cut with "..." when too long. A NUL of a value is the two bytes C0 80,
     * which valid UTF-8 never contains; np_put_string and buf_json_str decode them. */
    char text[ERR_TEXT_MAX];
};

static inline void err_clear(struct err *e) { e->set = false; }

/* Fills e and returns -1, so that a caller can write: return err_set(e, ERR_INVALID, "..."). The
 * first error stays. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4) COLD;
/* vsnprintf for texts with values of requests: %.*s prints all its bytes, a NUL as C0 80, and a text
 * or a %.*s that is cut ends at a character's end. A format with conversions other than
 * c d u x s f, with l, ll and z, is printed as vsnprintf prints it. A number has at most 63
 * characters. */
void err_print(char *to, size_t cap, const char *fmt, va_list ap) COLD;
/* Sets an error whose text was printed into a buffer, as texts with types or terms are. Frees the
 * buffer. */
struct buf;
int err_set_buf(struct err *e, enum err_code code, struct buf *text) COLD;
#define err_invalid(e, ...) err_set((e), ERR_INVALID, __VA_ARGS__)
/* ERR_SERVER: the request needs more memory than one request may use, or than there is. */
int err_nomem(struct err *e) COLD;
/* Records the keyspace, and the table in it or "", that the error is about. Returns -1. */
int err_about(struct err *e, const char *keyspace, const char *name) COLD;
/* For functions that return a pointer: return err_null(err_invalid(e, "...")). */
static inline void *err_null(int rc) {
    (void)rc;
    return NULL;
}

const char *err_title(enum err_code code);
