#include "base/ip_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

_Static_assert(IP_ADDRESS_TEXT == INET6_ADDRSTRLEN, "room for any address");

static struct ip_address of_ipv6(const uint8_t bytes[16]) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool v4 = !memcmp(bytes, mapped, sizeof(mapped));
    struct ip_address a = {.n = v4 ? 4 : 16};
    memcpy(a.bytes, bytes + 16 - a.n, a.n);
    return a;
}

bool ip_address_parse(const char *numeric, struct ip_address *out) {
    uint8_t v6[16];
    *out = (struct ip_address){0};
    if (inet_pton(AF_INET, numeric, out->bytes) == 1) out->n = 4;
    else if (inet_pton(AF_INET6, numeric, v6) == 1) *out = of_ipv6(v6);
    return out->n;
}

struct ip_address ip_address_of_socket(const struct sockaddr_storage *a) {
    struct ip_address out = {0};
    if (a->ss_family == AF_INET6) return of_ipv6(((const struct sockaddr_in6 *)a)->sin6_addr.s6_addr);
    if (a->ss_family != AF_INET) return out;
    out.n = 4;
    memcpy(out.bytes, &((const struct sockaddr_in *)a)->sin_addr, 4);
    return out;
}

void ip_address_print(const struct ip_address *a, char out[IP_ADDRESS_TEXT]) {
    out[0] = 0;
    if (a->n) inet_ntop(a->n == 4 ? AF_INET : AF_INET6, a->bytes, out, IP_ADDRESS_TEXT);
}

bool ip_address_is_loopback(const struct ip_address *a) {
    static const uint8_t loopback[16] = {[15] = 1};
    return a->n == 4 ? a->bytes[0] == 127 : a->n == 16 && !memcmp(a->bytes, loopback, 16);
}

struct ip_address ip_address_after(struct ip_address a, uint32_t i) {
    uint64_t carry = i;
    for (int k = a.n - 1; k >= 0; k--) {
        carry += a.bytes[k];
        a.bytes[k] = (uint8_t)carry;
        carry >>= 8;
    }
    return a;
}
