/* The keyspace system_metering: tables that metering yields, registered with the catalogue (system_schema/virtual.h).
 *
 *   rules(id, title, text, source, confidence)   every rule that a charge can name: metering/rule.def
 */
#pragma once

#include "system_schema/virtual.h"

extern const struct virtual_table system_metering_tables[];
extern const uint32_t n_system_metering_tables;
