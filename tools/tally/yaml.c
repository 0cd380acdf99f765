#include "tools/tally/yaml.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t yaml_line(const yaml_node_t *n) { return (uint32_t)n->start_mark.line + 1; }

int yaml_wrong(struct yaml_file *y, const yaml_node_t *at, const char *format, ...) {
    char why[ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    return err_set(y->e, ERR_CONFIG, "%s:%u: %s", y->path, yaml_line(at), why);
}

const char *yaml_scalar(const yaml_node_t *n) {
    return n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

const char *yaml_text(struct yaml_file *y, const yaml_node_t *n) {
    const char *text = yaml_scalar(n), *copy = text ? arena_strdup(y->arena, text) : NULL;
    if (!text) (void)yaml_wrong(y, n, "a plain value is expected here");
    else if (!copy) (void)err_nomem(y->e);
    return copy;
}

int yaml_number(struct yaml_file *y, const yaml_node_t *n, double least, double most, double *out) {
    const char *text = yaml_scalar(n);
    char *end;
    if (!text) return yaml_wrong(y, n, "a number is expected here");
    *out = strtod(text, &end);
    if (end != text && !*end && isfinite(*out) && *out >= least && *out <= most) return 0;
    if (isinf(most)) return yaml_wrong(y, n, "'%s' is no number from %.15g upward", text, least);
    return yaml_wrong(y, n, "'%s' is no number from %.15g to %.15g", text, least, most);
}

int yaml_next(struct yaml_file *y, const yaml_node_t *map, uint32_t *at, const yaml_node_t **key,
              const yaml_node_t **value) {
    if (map->type != YAML_MAPPING_NODE) return yaml_wrong(y, map, "pairs of a key and a value are expected here");
    const yaml_node_pair_t *first = map->data.mapping.pairs.start, *p = first + *at;
    if (p >= map->data.mapping.pairs.top) return 0;
    *key = yaml_document_get_node(&y->doc, p->key);
    *value = yaml_document_get_node(&y->doc, p->value);
    ++*at;
    if (!*key || !*value || !yaml_scalar(*key)) return yaml_wrong(y, map, "keys are plain words");
    for (; first < p; first++)
        if (!strcmp(yaml_scalar(yaml_document_get_node(&y->doc, first->key)), yaml_scalar(*key)))
            return yaml_wrong(y, *key, "'%s' is there twice", yaml_scalar(*key));
    return 1;
}

int yaml_map(struct yaml_file *y, const yaml_node_t *map, const char *what, const struct yaml_key *keys, size_t n,
             void *to) {
    const yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    while ((rc = yaml_next(y, map, &at, &key, &value)) > 0) {
        const struct yaml_key *k = keys, *end = keys + n;
        double number;
        while (k < end && strcmp(k->name, yaml_scalar(key))) k++;
        void *member = (char *)to + (k < end ? k->member : 0);
        if (k == end) {
            char known[512] = "";
            for (size_t i = 0, used = 0; i < n && used < sizeof(known); i++)
                used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", keys[i].name);
            return yaml_wrong(y, key, "unknown key '%s' of %s: there are %s", yaml_scalar(key), what, known);
        } else if (k->kind == KEY_READ) {
            if (k->read(y, value, member)) return -1;
        } else if (k->kind == KEY_LIST) {
            if (value->type != YAML_SEQUENCE_NODE) return yaml_wrong(y, value, "%s is a list", k->name);
            for (yaml_node_item_t *i = value->data.sequence.items.start; i < value->data.sequence.items.top; i++)
                if (k->read(y, yaml_document_get_node(&y->doc, *i), member)) return -1;
        } else if (k->kind == KEY_TEXT) {
            if (!(*(const char **)member = yaml_text(y, value))) return -1;
        } else if (k->kind == KEY_NUMBER) {
            if (yaml_number(y, value, k->least, k->most, member)) return -1;
        } else {
            if (yaml_number(y, value, -INFINITY, INFINITY, &number)) return -1;
            if (number < k->least || number > k->most || number != floor(number))
                return yaml_wrong(y, value, "'%s' is no whole number from %.0f to %.0f", yaml_scalar(value), k->least,
                                  k->most);
            *(uint64_t *)member = (uint64_t)number;
        }
    }
    return rc;
}

int yaml_read(struct yaml_file *y, struct slice text, yaml_read_fn read, void *to) {
    yaml_parser_t parser;
    int rc = -1;
    if (!yaml_parser_initialize(&parser)) return err_nomem(y->e);
    yaml_parser_set_input_string(&parser, text.p, text.n);
    if (yaml_parser_load(&parser, &y->doc)) {
        const yaml_node_t *root = yaml_document_get_root_node(&y->doc);
        rc = root ? read(y, root, to) : err_set(y->e, ERR_CONFIG, "%s:1: the file is empty", y->path);
        yaml_document_delete(&y->doc);
    } else {
        err_set(y->e, ERR_CONFIG, "%s:%zu: this is no YAML: %s", y->path, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "it cannot be read");
    }
    yaml_parser_delete(&parser);
    return rc;
}
