/* CRC-32C (Castagnoli), as RocksDB's files and iSCSI (RFC 3720, section 12.1) use it. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* Extends the checksum crc by the bytes of s. Begin with 0. */
uint32_t crc32c(uint32_t crc, struct slice s);
