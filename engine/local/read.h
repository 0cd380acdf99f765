/* The local store, for the rows above it. Private to engine/. */
#pragma once

#include "engine/store.h"

extern const struct store_ops engi_local_store;
