/* The automaton of production.def: how Cassandra's parser goes through a statement, which
 * syntax_error.c goes through again to say where it would stop.
 *
 * A production begins at its node of production_starts and ends at a node of kind END. A token is
 * one of production_terminals, sorted by name, or of a set (arg - PRODUCTION_TERMINALS). The
 * callers of production i stand in production_callers, from production_callers_from[i] on. The
 * first production is the one of a whole query. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum production_kind {
    PRODUCTION_EMPTY,  /* on to next */
    PRODUCTION_TOKEN,  /* arg: the token; then next */
    PRODUCTION_CALL,   /* arg: the production; then next */
    PRODUCTION_CHOICE, /* n alternatives from arg on */
    PRODUCTION_END,    /* arg: the production */
};

enum {
    PRODUCTION_OPTIONAL = 1, /* the last alternative is to leave it */
    PRODUCTION_BY_TABLE = 2, /* it is not left for lack of another way, and one token more is read */
};

struct production_node {
    uint8_t kind, flags, n;
    uint16_t arg, next;
};

struct production_alternative {
    uint16_t node;
    uint16_t guard; /* a production + 1: the alternative is taken if that can be read */
};
