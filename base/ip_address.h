/* Numeric IP addresses.
 *
 * An IPv6 socket that takes connections of both families shows the IPv4 address a.b.c.d as
 * ::ffff:a.b.c.d. These functions return the IPv4 address for it, so that a client has the same
 * address on every socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

enum { IP_ADDRESS_TEXT = 46 }; /* INET6_ADDRSTRLEN */

struct ip_address {
    uint8_t n; /* 4: IPv4, 16: IPv6, 0: none */
    uint8_t bytes[16];
};

/* Returns false, and no address, when the text is not a numeric address. */
bool ip_address_parse(const char *numeric, struct ip_address *out);
/* No address when the socket is of another family, such as a local one. */
struct ip_address ip_address_of_socket(const struct sockaddr_storage *a);
/* Writes an empty text for no address. */
void ip_address_print(const struct ip_address *a, char out[IP_ADDRESS_TEXT]);
bool ip_address_is_loopback(const struct ip_address *a);
/* The i-th address after it; the addresses wrap around at the end of their family. */
struct ip_address ip_address_after(struct ip_address a, uint32_t i);
