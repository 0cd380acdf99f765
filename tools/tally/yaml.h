/* Reads YAML into structs. A table of keys describes each mapping; any other key is an error.
 *
 * Texts are copied into the arena. Errors are ERR_CONFIG with path and line.
 */
#pragma once

#include <yaml.h>

#include "base/arena.h"
#include "base/err.h"

struct yaml_file {
    struct arena *arena;
    const char *path; /* name in errors */
    struct err *e;
    yaml_document_t doc;
};

typedef int (*yaml_read_fn)(struct yaml_file *y, const yaml_node_t *value, void *to);

/* TEXT: const char *. NUMBER: double. COUNT: uint64_t, a whole number. READ: read gets the member.
 * LIST: read gets the member for each item. */
enum yaml_kind { KEY_TEXT, KEY_NUMBER, KEY_COUNT, KEY_READ, KEY_LIST };
struct yaml_key {
    const char *name;
    enum yaml_kind kind;
    size_t member; /* offset in the struct; 0 means also the struct itself */
    double least, most;
    yaml_read_fn read;
};

/* Parses the text and calls read for its root. */
int yaml_read(struct yaml_file *y, struct slice text, yaml_read_fn read, void *to) MUST_CHECK;
/* what: "a statement", in errors. */
int yaml_map(struct yaml_file *y, const yaml_node_t *map, const char *what, const struct yaml_key *keys, size_t n,
             void *to) MUST_CHECK;
/* The next pair of a mapping with any keys. Returns 1 for a pair, 0 at the end, or -1 with e set, also
 * for a key that is there twice. */
int yaml_next(struct yaml_file *y, const yaml_node_t *map, uint32_t *at, const yaml_node_t **key,
              const yaml_node_t **value) MUST_CHECK;
/* Returns NULL if the node is no scalar. Valid as long as the document. */
const char *yaml_scalar(const yaml_node_t *n);
/* Returns NULL with e set. */
const char *yaml_text(struct yaml_file *y, const yaml_node_t *n) MUST_CHECK;
int yaml_number(struct yaml_file *y, const yaml_node_t *n, double least, double most, double *out) MUST_CHECK;
uint32_t yaml_line(const yaml_node_t *n);
int yaml_wrong(struct yaml_file *y, const yaml_node_t *at, const char *format, ...) PRINTF_LIKE(3, 4);
