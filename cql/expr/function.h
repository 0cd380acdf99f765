/* Scalar functions, casts and operators as expressions find and call them; inside cql only.
 *
 * Life: function_resolve picks a signature while a statement is compiled and allocates the function
 * in the statement's arena; function_call runs it for each execution, with results in the request's
 * arena.
 */
#pragma once

#include "cql/request/compile.h"
#include "cql/request/request.h"

enum { FUNCTION_ARGS_MAX = 32 };

struct function_in {
    const struct function *f;
    struct evaluation *ev; /* arena, err, now_us */
    const struct value *args;
    uint32_t n_args;
};
/* Writes the result's bytes to out; 1 means null; -1 with r->err. */
typedef int (*function_fn)(const struct function_in *in, struct buf *out);

struct function {
    const char *name; /* without system. */
    const struct cql_type *result;
    uint32_t n_args;
    const struct cql_type *const *args;
    function_fn call;
    bool pure;
    bool monotonic;  /* in its first argument */
    bool takes_null; /* called even when an argument is null; otherwise the result is null then */
    bool raw;        /* an empty value is passed on for every type, not treated as null */
    enum ast_expr_kind op; /* of an operator */
    const struct aggregate_op *aggregate; /* of aggregates, which have no call, and of collection_min and similar */
};

struct function *function_new(struct compile *c, const char *name, const struct cql_type *result,
                              const struct cql_type *const *args, uint32_t n_args, function_fn call) MUST_CHECK;
/* args: at most FUNCTION_ARGS_MAX. */
int function_call(const struct function *f, struct evaluation *ev, const struct value *args, uint32_t n_args,
                  struct value *out) MUST_CHECK;

/* Whether a value of type from is also one of type to (AbstractType.isValueCompatibleWith). */
bool function_type_fits(const struct cql_type *to, const struct cql_type *from);

/* ---- function_resolve.c ---- */

enum match { MATCH_NO, MATCH_WEAK, MATCH_EXACT };
/* How an argument fits a parameter; i is its index. */
struct function_args {
    uint32_t n;
    enum match (*fits)(void *arg, uint32_t i, const struct cql_type *t);
    const struct cql_type *(*type)(void *arg, uint32_t i); /* NULL when unknown */
    struct slice (*text)(void *arg, uint32_t i);           /* for error texts */
    int64_t (*items)(void *arg, uint32_t i);               /* of a literal list; -1 if not a literal list */
    void *arg;
};
/* Finds a native function, an aggregate or "_negate", the negation. to: the receiver of the value;
 * its type may be NULL, as may to itself. Returns NULL if there is no such function for these arguments,
 * with Cassandra's ERR_INVALID. */
const struct function *function_resolve(struct compile *c, const char *keyspace, const char *name,
                                        const struct function_args *args, const struct receiver *to) MUST_CHECK;
/* Whether e is function_resolve's error for a name that no function has. */
bool function_is_unknown(const struct err *e);
/* Errors of arguments, -1. takes: the parameters as the text shows them; wants: "a map argument". */
int function_refuse_number(struct compile *c, const char *name, const char *takes);
int function_refuse_untyped(struct compile *c, const char *name, const char *takes, const struct function_args *args,
                            uint32_t i);
int function_refuse_type(struct compile *c, const char *name, const char *wants, const struct function_args *args,
                         uint32_t i, const struct cql_type *is);
/* "system.floor : (date, duration(constant)) -> date"; constants: a bit for each argument to be
 * marked as constant; reversed: a bit for each that is a column in descending order. */
void function_print(const struct function *f, uint32_t constants, uint32_t reversed, struct buf *out);

/* ---- function_operator.c ---- */

/* has_marker: an operand is a bare bind marker, which gets no type from a receiver. */
const struct function *function_operator(struct compile *c, enum ast_expr_kind op, const struct function_args *args,
                                         const struct receiver *to, bool has_marker) MUST_CHECK;

/* function_native.c */
#define FUNCTION(name, alias, result, args, call, pure, monotonic) \
    int function_##call(const struct function_in *in, struct buf *out);
#define FUNCTION_311(...)
#include "cql/expr/function.def"
#undef FUNCTION
#undef FUNCTION_311
int function_as_blob(const struct function_in *in, struct buf *out);
int function_from_blob(const struct function_in *in, struct buf *out);
int function_token(const struct function_in *in, struct buf *out);
int function_to_json(const struct function_in *in, struct buf *out);
int function_from_json(const struct function_in *in, struct buf *out);
int function_to_text(const struct function_in *in, struct buf *out);
int function_move_time(const struct function_in *in, struct buf *out); /* timestamp or date, + or - duration */
int function_concat(const struct function_in *in, struct buf *out);

/* function_collection.c: functions of any collection. 1 when name (lower case) is one of them (then
 * *out, or NULL with ERR_INVALID). */
int function_resolve_collection(struct compile *c, const char *name, const struct function_args *args,
                                const struct function **out) MUST_CHECK;

/* function_vector.c: likewise, of vectors of floats; to: as of function_resolve. */
int function_resolve_vector(struct compile *c, const char *name, const struct function_args *args,
                            const struct receiver *to, const struct function **out) MUST_CHECK;

/* function_mask.c: likewise, those that mask values; to: as of function_resolve. */
int function_resolve_mask(struct compile *c, const char *name, const struct function_args *args,
                          const struct receiver *to, const struct function **out) MUST_CHECK;

/* function_number.c */
int function_cast_number(const struct function_in *in, struct buf *out);
int function_arithmetic(const struct function_in *in, struct buf *out);
int function_negate(const struct function_in *in, struct buf *out);
int function_math(const struct function_in *in, struct buf *out); /* by name: abs, exp, log, log10, round */
bool function_is_number(const struct cql_type *t);
/* Type of an arithmetic result on two number types. */
enum cql_type_id function_number_result(enum cql_type_id a, enum cql_type_id b);
