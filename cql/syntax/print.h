/* Parts of the printer that its files share. Inside cql only. */
#pragma once

#include "cql/syntax/ast_other.h"

void cqli_print_table(const struct ast_name *n, struct buf *out);
void cqli_print_string(struct slice s, struct buf *out);
void cqli_print_exprs(struct ast_expr *const *x, uint32_t n, struct buf *out);
void cqli_print_names(const char *const *names, uint32_t n, struct buf *out);
/* All of them with AND between, behind lead. */
void cqli_print_relations(const char *lead, struct ast_relation *const *r, uint32_t n, struct buf *out);
void cqli_print_where(const struct ast_where *w, struct buf *out);
void cqli_print_selectors(const struct ast_selector *s, uint32_t n, struct buf *out);
/* " WITH ..." or nothing. */
void cqli_print_props(const struct ast_props *p, struct buf *out);
/* ((a, b), c) */
void cqli_print_key(const char *const *pk, uint32_t n_pk, const char *const *ck, uint32_t n_ck, struct buf *out);
/* Schema statements that run; false: it is none of them. */
bool cqli_print_ddl(const struct ast_stmt *s, struct buf *out);
/* The ones that are refused, behind ast_stmt.other. */
void cqli_print_other(const struct ast_stmt *s, struct buf *out);
static inline void cqli_print_if(bool on, const char *words, struct buf *out) {
    if (on) buf_put_str(out, words);
}
