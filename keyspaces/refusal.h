/* The uses of CQL that Amazon Keyspaces refuses, one row of refusal.def each. compat.h applies
 * them. */
#pragma once

#include "base/err.h"

enum refusal_id {
#define REFUSAL(id, ...) REFUSE_##id,
#include "keyspaces/refusal.def"
#undef REFUSAL
    REFUSALS
};

struct refusal {
    const char *name, *checks, *words, *instead;
    enum err_code code;
    const char *page, *address; /* title and address of the page */
    const char *confidence, *since;
};
struct refusal refusal_of(enum refusal_id id);
