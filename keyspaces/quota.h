/* The numbers that Amazon Keyspaces publishes, as constants: QUOTA_NAME_LENGTH and so on. quota.def
 * says where each comes from. */
#pragma once

#include <stdbool.h>

enum {
#define QUOTA(id, value, what, page) QUOTA_##id = value,
#include "keyspaces/quota.def"
#undef QUOTA
};

/* The same numbers as rows, for lists of them. */
struct quota {
    const char *name; /* as in quota.def */
    long value;
    const char *what, *page, *address;
};
extern const unsigned n_quotas;
struct quota quota_of(unsigned i);

/* Returns true if Amazon Keyspaces replicates to the Region. */
bool quota_is_region(const char *name);
/* All of them: ", eu-north-1, ap-south-1, ...". */
extern const char quota_regions[];
