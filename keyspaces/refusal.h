/* What Amazon Keyspaces refuses: one table, refusal.def. compat.h asks it. */
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
