/* Goes through a statement as Cassandra's parser would, up to where that finds a fault.
 *
 * Life: cql_walk reads the text token by token, along the automaton of production.h. Where there is
 * a choice it looks as many tokens ahead as it needs to tell the alternatives apart; a production
 * may be followed by whatever follows any of its calls, as in a parser whose tables do not depend
 * on the caller. So the fault may be found at a token far behind the choice. Inside cql/syntax
 * only; all memory is the arena's. */
#pragma once

#include "base/arena.h"
#include "cql/syntax/token.h"

enum walk_fault {
    WALK_NONE,        /* the productions have nothing against the text, or it was too much work to say */
    WALK_NO_WAY,      /* no alternative is left at token `seen`, of a choice that stands at token `place` */
    WALK_MISMATCH,    /* `want` must stand at `place` */
    WALK_MARKER,      /* a bind marker stands for what `want` says: table_names */
    WALK_BAD_TOKEN,   /* the text stops being tokens: why has the error */
};

/* A token; a run of blanks and a comment are one, too, of code WALK_BLANK. */
enum { WALK_BLANK = 0xfffe };

struct walk_result {
    enum walk_fault fault;
    uint32_t place, seen; /* items */
    const char *want;
    const struct token *items; /* what was read */
    uint32_t n_items;
    struct err why;
};

/* r->fault is WALK_NONE, too, when memory is out. */
void cqli_walk(struct arena *a, struct slice text, struct walk_result *r);
