/* + - * / %: Cassandra's operators are functions with a signature for each pair of types, and
 * resolved like other functions (OperationFcts, FunctionResolver): an exact match first; else the
 * only one that fits; else, unless an operand is a bare marker, the one on two values of the
 * receiver's type. */
#include "cql/expr/function.h"

static const enum cql_type_id operands[] = {CQL_TINYINT, CQL_SMALLINT,  CQL_INT,     CQL_BIGINT,  CQL_COUNTER,
                                            CQL_FLOAT,   CQL_DOUBLE,    CQL_DECIMAL, CQL_VARINT,  CQL_TEXT,
                                            CQL_ASCII,   CQL_TIMESTAMP, CQL_DATE,    CQL_DURATION};
enum { OPERANDS = ARRAY_LEN(operands) };

static bool is_text(enum cql_type_id id) { return id == CQL_TEXT || id == CQL_ASCII; }

/* The result's type and function; NULL if there is no such operator. */
static const struct cql_type *signature(enum ast_expr_kind op, enum cql_type_id a, enum cql_type_id b,
                                        function_fn *call) {
    if (function_is_number(cql_type_scalar(a)) && function_is_number(cql_type_scalar(b))) {
        *call = function_arithmetic;
        return cql_type_scalar(function_number_result(a, b));
    }
    if (op == EXPR_ADD && is_text(a) && is_text(b)) {
        *call = function_concat;
        return cql_type_scalar(a == CQL_ASCII ? b : a);
    }
    bool moves = (op == EXPR_ADD || op == EXPR_SUB) && (a == CQL_TIMESTAMP || a == CQL_DATE) && b == CQL_DURATION;
    *call = function_move_time;
    return moves ? cql_type_scalar(a) : NULL;
}

struct found {
    uint32_t n;                  /* operators that fit */
    enum cql_type_id a, b;       /* the chosen operator, if has */
    bool has;
};

static void take(struct found *f, enum cql_type_id a, enum cql_type_id b) {
    f->a = a;
    f->b = b;
    f->has = true;
}

static struct found search(enum ast_expr_kind op, const enum match fits[2][OPERANDS], const struct cql_type *wanted,
                           bool has_marker) {
    struct found f = {0}, only = {0};
    for (uint32_t i = 0; i < OPERANDS; i++) {
        for (uint32_t k = 0; fits[0][i] && k < OPERANDS; k++) {
            function_fn call;
            enum cql_type_id a = operands[i], b = operands[k];
            const struct cql_type *result = fits[1][k] ? signature(op, a, b, &call) : NULL;
            if (!result || (wanted && !function_type_fits(wanted, result))) continue;
            f.n++;
            take(&only, a, b);
            if (fits[0][i] == MATCH_EXACT && fits[1][k] == MATCH_EXACT)
                return (struct found){.n = 1, .a = a, .b = b, .has = true};
            if (wanted && !has_marker && wanted->id == a && a == b) take(&f, a, b);
        }
    }
    if (f.n == 1) take(&f, only.a, only.b);
    return f;
}

static const struct function *refuse(struct compile *c, enum ast_expr_kind op, const struct function_args *args,
                                     bool ambiguous) {
    static const char *const signs[] = {
        [EXPR_ADD] = "+", [EXPR_SUB] = "-", [EXPR_MUL] = "*", [EXPR_DIV] = "/", [EXPR_MOD] = "%"};
    struct slice a = args->text(args->arg, 0), b = args->text(args->arg, 1);
    if (ambiguous)
        err_invalid(c->err,
            "Ambiguous '%s' operation with args %.*s and %.*s: use type hint to disambiguate, example '(int) ?'",
            signs[op], SLICE_FMT(a), SLICE_FMT(b));
    else
        err_invalid(c->err, "the '%s' operation is not supported between %.*s and %.*s", signs[op], SLICE_FMT(a),
                    SLICE_FMT(b));
    return NULL;
}

const struct function *function_operator(struct compile *c, enum ast_expr_kind op, const struct function_args *args,
                                         const struct receiver *to, bool has_marker) {
    static const char *const names[] = {[EXPR_ADD] = "_add", [EXPR_SUB] = "_substract", [EXPR_MUL] = "_multiply",
                                        [EXPR_DIV] = "_divide", [EXPR_MOD] = "_modulo"};
    enum match fits[2][OPERANDS];
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < OPERANDS; k++) fits[i][k] = args->fits(args->arg, i, cql_type_scalar(operands[k]));
    struct found found = search(op, fits, to ? to->type : NULL, has_marker);
    if (!found.has) return refuse(c, op, args, found.n > 0);
    const struct cql_type *types[2] = {cql_type_scalar(found.a), cql_type_scalar(found.b)};
    function_fn call;
    const struct cql_type *result = signature(op, found.a, found.b, &call);
    struct function *f = function_new(c, names[op], result, types, 2, call);
    if (f) f->op = op;
    return f;
}
