/* Names of JMX objects, "domain:key=value,key=value", which GRANT ... ON MBEAN names and this server has none of. */
#pragma once

#include "base/buf.h"

/* Is it one, as Java's javax.management.ObjectName takes it? *pattern: it has * or ? where they stand for more. */
bool object_name_read(struct slice s, bool *pattern);
