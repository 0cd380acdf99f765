#include "native_protocol/opcode.h"

#include <stddef.h>

enum direction { RESPONSE, REQUEST };
static const struct {
    const char *name; /* NULL for no such opcode */
    enum direction direction;
} opcodes[UINT8_MAX + 1] = {
#define OPCODE(id, code, name, direction) [code] = {name, direction},
#include "native_protocol/opcode.def"
#undef OPCODE
};

const char *np_opcode_name(uint8_t code) { return opcodes[code].name; }
bool np_opcode_is_request(uint8_t code) { return opcodes[code].direction == REQUEST; }
