/* CRC-32C (Castagnoli), as RocksDB's files and iSCSI (RFC 3720, section 12.1) have it. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* The checksum of what crc stands for followed by s; 0 to begin with. */
uint32_t crc32c(uint32_t crc, struct slice s);
