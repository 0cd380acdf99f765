/* The front of an engine, the same for every store: struct store_front (engine/store.h). Private to
 * engine/. */
#pragma once

#include "engine/store.h"

extern const struct store_front engi_front;
