/* What a request or an answer of the API holds, whichever protocol it comes in: a tree in an arena.
 * json.h and cbor.h read and write it.
 *
 * Bounded: DOCUMENT_DEPTH levels, DOCUMENT_NODES nodes; who sends more gets the form of a body that
 * cannot be read.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum { DOCUMENT_DEPTH = 32, DOCUMENT_NODES = 100000 };

enum doc_kind { DOC_NULL, DOC_FLAG, DOC_WHOLE, DOC_REAL, DOC_TEXT, DOC_MOMENT, DOC_LIST, DOC_MAP };

struct doc {
    enum doc_kind kind;
    struct slice name; /* of a map's entry */
    bool flag;
    int64_t whole; /* MOMENT: milliseconds since 1970 */
    double real;
    struct slice text;
    uint32_t n;              /* LIST, MAP */
    struct doc *first, *last; /* of these */
    struct doc *next;         /* in its list or map */
};

/* A node without a place; NULL: no memory. */
struct doc *doc_new(struct arena *a, enum doc_kind kind) MUST_CHECK;
void doc_append(struct doc *to, struct doc *d);

/* ---- reading ---- */

/* An entry of a map, the last of its name; NULL: there is none, it is null, or d is NULL or no map. */
const struct doc *doc_get(const struct doc *d, const char *name);
/* The text of an entry, copied with a NUL; NULL: there is none, or no memory. */
const char *doc_text(struct arena *a, const struct doc *d, const char *name);

/* ---- making: each adds an entry to a map (name NULL: an item to a list) and gives it back. When
 * to is NULL nothing is done: without memory the root is NULL in the end, which doc_whole tells
 * ---- */

struct doc_maker {
    struct arena *arena;
    bool failed;
};
struct doc *doc_put(struct doc_maker *m, struct doc *to, const char *name, enum doc_kind kind);
/* copied; NULL: nothing is put */
void doc_put_text(struct doc_maker *m, struct doc *to, const char *name, const char *text);
void doc_put_whole(struct doc_maker *m, struct doc *to, const char *name, int64_t n);
void doc_put_real(struct doc_maker *m, struct doc *to, const char *name, double d);
void doc_put_flag(struct doc_maker *m, struct doc *to, const char *name, bool b);
void doc_put_moment(struct doc_maker *m, struct doc *to, const char *name, int64_t ms);

/* ---- building while reading: a stack of what is open ---- */

struct doc_builder {
    struct arena *arena;
    struct doc *root, *open[DOCUMENT_DEPTH];
    uint32_t depth, n_nodes;
    struct slice name; /* of the next entry of a map; p NULL: none yet */
    bool no_memory;
};
/* Puts a node where the reader is: NULL: too many, too deep, a second root, an entry without a name, or no memory. */
struct doc *doc_add(struct doc_builder *b, enum doc_kind kind) MUST_CHECK;
/* The same, and what follows goes into it. */
struct doc *doc_begin(struct doc_builder *b, enum doc_kind kind) MUST_CHECK;
void doc_end(struct doc_builder *b);
/* A text, copied. False: it is none, or as doc_add. */
bool doc_add_text(struct doc_builder *b, struct slice text) MUST_CHECK;
/* Copies. false: no map is open, it is no text, or no memory. */
bool doc_name(struct doc_builder *b, struct slice name) MUST_CHECK;

/* Bodies: the arena holds the tree. NULL and ERR_INVALID: it cannot be read. An empty body is an empty map. */
struct doc *json_read(struct arena *a, struct slice body, struct err *e) MUST_CHECK;
void json_write(const struct doc *d, struct buf *out);
struct doc *cbor_read(struct arena *a, struct slice body, struct err *e) MUST_CHECK;
void cbor_write(const struct doc *d, struct buf *out);
