#include "native_protocol/opcode.h"

#include <stddef.h>

const char *np_opcode_name(uint8_t code) {
    switch (code) {
#define OPCODE(id, value, name, direction) \
    case value: return name;
#include "native_protocol/opcode.def"
#undef OPCODE
    default: return NULL;
    }
}

bool np_opcode_is_request(uint8_t code) {
    enum { RESPONSE, REQUEST };
    switch (code) {
#define OPCODE(id, value, name, direction) \
    case value: return direction == REQUEST;
#include "native_protocol/opcode.def"
#undef OPCODE
    default: return false;
    }
}
