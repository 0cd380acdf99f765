/* The catalogue: the contexts of its rooms, from the ground up. Inside system_schema only. */
#pragma once

#include "system_schema/system_tables/system_table.h"

struct catalog {
    struct arena arena; /* lives as long as the catalogue */
    struct objects objects;
    struct recovery recovery;
    struct ddl ddl;
    struct system_tables tables;
};
