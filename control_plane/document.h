/* A document: the contents of a request or an answer of the API as a tree in an arena, the same for
 * each protocol. json.c, cbor.c and form.c read and write it.
 *
 * A document has at most DOCUMENT_DEPTH levels and DOCUMENT_NODES nodes. A larger body is
 * refused like one that cannot be parsed.
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
    struct doc *first, *last; /* the items or entries */
    struct doc *next;         /* in its list or map */
};

/* A node that is not in a tree yet; NULL if memory is exhausted. */
struct doc *doc_new(struct arena *a, enum doc_kind kind) MUST_CHECK;
void doc_append(struct doc *to, struct doc *d);

/* ---- reading ---- */

/* The last entry of the name in a map. Returns NULL if there is no such entry, its value is null,
 * or d is NULL or not a map. */
const struct doc *doc_get(const struct doc *d, const char *name);
/* The text of an entry, copied with a NUL; NULL if there is no such entry, or memory is exhausted. */
const char *doc_text(struct arena *a, const struct doc *d, const char *name);

/* ---- making ---- */

/* doc_put adds an entry to a map, or with name NULL an item to a list, and returns it. When to is
 * NULL the functions do nothing. When memory runs out doc_put returns NULL and sets failed, so that
 * a caller may check once, at the end. */

struct doc_maker {
    struct arena *arena;
    bool failed;
};
struct doc *doc_put(struct doc_maker *m, struct doc *to, const char *name, enum doc_kind kind);
/* Copies the text. text NULL: adds nothing. */
void doc_put_text(struct doc_maker *m, struct doc *to, const char *name, const char *text);
void doc_put_whole(struct doc_maker *m, struct doc *to, const char *name, int64_t n);
void doc_put_real(struct doc_maker *m, struct doc *to, const char *name, double d);
void doc_put_flag(struct doc_maker *m, struct doc *to, const char *name, bool b);
void doc_put_moment(struct doc_maker *m, struct doc *to, const char *name, int64_t ms);

/* ---- building while reading, with a stack of the open containers ---- */

struct doc_builder {
    struct arena *arena;
    struct doc *root, *open[DOCUMENT_DEPTH];
    uint32_t depth, n_nodes;
    struct slice name; /* of the next entry of a map; p NULL: not read yet */
    bool no_memory;
};
/* Adds a node to the innermost open container. Returns NULL if there are too many nodes, a second
 * root or an entry without a name, or memory is exhausted. */
struct doc *doc_add(struct doc_builder *b, enum doc_kind kind) MUST_CHECK;
/* Adds a list or map as doc_add does, and opens it. Returns NULL as doc_add does, or if it is too deep. */
struct doc *doc_begin(struct doc_builder *b, enum doc_kind kind) MUST_CHECK;
void doc_end(struct doc_builder *b);
/* Adds a copy of a text. Returns false if the text is not UTF-8, or as doc_add. */
bool doc_add_text(struct doc_builder *b, struct slice text) MUST_CHECK;
/* Sets the name of the next entry, copied. Returns false if no map is open, it is not UTF-8, or
 * memory is exhausted. */
bool doc_name(struct doc_builder *b, struct slice name) MUST_CHECK;

/* Reads a body into a tree in the arena. NULL and ERR_INVALID: it cannot be parsed. An empty
 * body is an empty map. */
struct doc *json_read(struct arena *a, struct slice body, struct err *e) MUST_CHECK;
void json_write(const struct doc *d, struct buf *out);
struct doc *cbor_read(struct arena *a, struct slice body, struct err *e) MUST_CHECK;
void cbor_write(const struct doc *d, struct buf *out);
