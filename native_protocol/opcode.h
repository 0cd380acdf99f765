/* Opcodes by number and name (opcode.def). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum np_opcode {
#define OPCODE(id, code, name, direction) NP_##id = code,
#include "native_protocol/opcode.def"
#undef OPCODE
    NP_OPCODES
};

/* Returns NULL if there is no such opcode. */
const char *np_opcode_name(uint8_t code);
bool np_opcode_is_request(uint8_t code);
