/* The published limits as constants; quota.def says what each counts and where it is published. */
#pragma once

enum quota {
#define QUOTA(id, value, what, source) QUOTA_##id = value,
#include "base/quota.def"
#undef QUOTA
};
