/* What a server does with the named records of a pool: it joins the others, and shares its ledger. */
#pragma once

#include "engine/engine.h"

void server_run(struct eng *eng);
