/* The table settings that Amazon Keyspaces adds: CUSTOM_PROPERTIES, AUTOSCALING_SETTINGS and TAGS.
 * This file checks their keys and values one by one (custom_property.def).
 * system_schema/objects/custom_property.c checks how they fit together and which changes of them are
 * allowed, because it knows the whole table. */
#include <stdlib.h>
#include <strings.h>

#include "cql/schema/ddl.h"

enum kind { CHOICE, WHOLE, NUMBER, TEXT };

struct key {
    const char *name;
    enum kind kind;
    const char *values;
};

static const struct key properties[] = {
#define CUSTOM_PROPERTY(name, kind, values) {name, kind, values},
#define AUTOSCALING_SETTING(name, kind, values)
#include "cql/schema/custom_property.def"
#undef CUSTOM_PROPERTY
#undef AUTOSCALING_SETTING
};
static const struct key settings[] = {
#define CUSTOM_PROPERTY(name, kind, values)
#define AUTOSCALING_SETTING(name, kind, values) {name, kind, values},
#include "cql/schema/custom_property.def"
#undef CUSTOM_PROPERTY
#undef AUTOSCALING_SETTING
};

/* ---- names ---- */

/* "a.*.c": * is any one key. Keys are compared without regard to case, as AWS's examples write them. */
static bool matches(const char *pattern, const char *name) {
    for (;;) {
        size_t p = strcspn(pattern, "."), n = strcspn(name, ".");
        bool any = p == 1 && *pattern == '*';
        if (any ? (n == 0) : (p != n || strncasecmp(pattern, name, n) != 0)) return false;
        if (any && !pattern[p]) return true; /* the last key of a name may hold dots */
        if (!pattern[p] || !name[n]) return pattern[p] == name[n];
        pattern += p + 1;
        name += n + 1;
    }
}

static const struct key *find(const struct key *keys, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (matches(keys[i].name, name)) return &keys[i];
    return NULL;
}

/* The name as it is stored: in small letters where the pattern has letters, as it was given where
 * the pattern has a *. */
static const char *stored_name(struct compile *c, const char *prefix, const char *pattern, const char *name) {
    struct buf b;
    buf_init(&b, 4096);
    buf_put_str(&b, prefix);
    for (;;) {
        size_t p = strcspn(pattern, "."), n = strcspn(name, ".");
        if (p == 1 && *pattern == '*') buf_put(&b, name, pattern[p] ? n : strlen(name));
        else buf_put(&b, pattern, p);
        if (!pattern[p]) break;
        buf_u8(&b, '.');
        pattern += p + 1;
        name += n + 1;
    }
    struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    if (!s.p) err_nomem(c->err);
    return (const char *)s.p;
}

/* ---- values ---- */

static int settle_choice(struct compile *c, const struct key *k, const char *name, struct schema_option *o) {
    for (const char *at = k->values; *at;) {
        size_t n = strcspn(at, "|");
        if (strlen(o->value) == n && strncasecmp(at, o->value, n) == 0) {
            struct slice s = arena_dup(c->arena, slice_of(at, n));
            o->value = (const char *)s.p;
            return s.p ? 0 : err_nomem(c->err);
        }
        at += n + (at[n] == '|');
    }
    return err_invalid(c->err, "Invalid value '%s' for %s: it must be one of %s", o->value, name, k->values);
}

/* In UTF-8. */
static size_t characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += (*text & 0xC0) != 0x80;
    return n;
}

static int settle_text(struct compile *c, const struct key *k, const char *name, const struct schema_option *o) {
    size_t n = strcspn(k->values, "|"), n_key = strlen(k->name);
    unsigned long most = strtoul(k->values + n + 1, NULL, 10);
    const char *key = k->name[n_key - 1] == '*' ? strrchr(name, '.') + 1 : "";
    if (strncmp(o->value, k->values, n) != 0)
        return err_invalid(c->err, "Invalid value '%s' for %s: it must begin with %.*s", o->value, name, (int)n,
                           k->values);
    if (characters(o->value) > most)
        return err_invalid(c->err, "Invalid value for %s: it must have at most %lu characters", name, most);
    if (characters(key) <= TAG_KEY_MAX) return 0;
    return err_invalid(c->err, "The key of a tag must have 1 to %d characters, not '%s'", TAG_KEY_MAX, key);
}

static int settle(struct compile *c, const struct key *k, const char *name, struct schema_option *o) {
    if (k->kind == CHOICE) return settle_choice(c, k, name, o);
    if (k->kind == TEXT) return settle_text(c, k, name, o);
    char *end, *end_of_least;
    double least = strtod(k->values, &end_of_least), most = strtod(end_of_least + 1, NULL), v = strtod(o->value, &end);
    bool digits = strspn(o->value, k->kind == NUMBER ? "0123456789." : "0123456789") == strlen(o->value);
    if (*o->value && !*end && digits && v >= least && v <= most) return 0;
    return err_invalid(c->err, "Invalid value '%s' for %s: it must be a %snumber from %.0f to %.0f", o->value, name,
                       k->kind == WHOLE ? "whole " : "", least, most);
}

/* ---- the three ---- */

static int check_once(struct compile *c, const struct option_list *l, uint32_t first) {
    for (uint32_t i = first; i < l->n; i++)
        for (uint32_t k = first; k < i; k++)
            if (strcmp(l->items[i].name, l->items[k].name) == 0)
                return err_invalid(c->err, "%s is given twice", l->items[i].name);
    return 0;
}

int custom_properties_settle(struct compile *c, struct option_list *l, uint32_t first) {
    static const char prefix[] = "custom_properties.";
    for (uint32_t i = first; i < l->n; i++) {
        const char *name = l->items[i].name + sizeof prefix - 1;
        const struct key *k = find(properties, ARRAY_LEN(properties), name);
        size_t n = strlen(name);
        for (size_t p = 0; !k && p < ARRAY_LEN(properties); p++)
            if (strncasecmp(properties[p].name, name, n) == 0 && properties[p].name[n] == '.')
                return err_invalid(c->err, "Invalid value for custom property '%s': it must be a map", name);
        if (!k) return err_invalid(c->err, "Unknown custom property '%s'", name);
        if (settle(c, k, name, &l->items[i]) || !(l->items[i].name = stored_name(c, prefix, k->name, name))) return -1;
    }
    return check_once(c, l, first);
}

/* "provisioned_read_capacity_autoscaling_update." and, for another Region,
 * "replica_updates.<Region>." more: its length, or 0. */
static size_t update_length(const char *name) {
    static const char *const updates[] = {"provisioned_read_capacity_autoscaling_update.",
                                          "provisioned_write_capacity_autoscaling_update."};
    static const char replica[] = "replica_updates.";
    for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
        size_t n = strlen(updates[i]);
        if (strncasecmp(name, updates[i], n) != 0) continue;
        if (strncasecmp(name + n, replica, sizeof replica - 1) != 0) return n;
        size_t region = strcspn(name + n + sizeof replica - 1, ".");
        return region ? n + sizeof replica - 1 + region + 1 : 0;
    }
    return 0;
}

int autoscaling_settings_settle(struct compile *c, struct option_list *l, uint32_t first) {
    static const char prefix[] = "autoscaling_settings.";
    for (uint32_t i = first; i < l->n; i++) {
        const char *name = l->items[i].name + sizeof prefix - 1;
        size_t n = update_length(name);
        const struct key *k = n && strlen(name) > n ? find(settings, ARRAY_LEN(settings), name + n) : NULL;
        if (!k) return err_invalid(c->err, "Unknown auto scaling setting '%s'", name);
        char *update = arena_printf(c->arena, "%s%.*s", prefix, (int)n, name);
        if (!update) return err_nomem(c->err);
        for (char *p = update; *p; p++) *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
        if (settle(c, k, name, &l->items[i]) || !(l->items[i].name = stored_name(c, update, k->name, name + n)))
            return -1;
    }
    return check_once(c, l, first);
}

/* TagResource, https://docs.aws.amazon.com/keyspaces/latest/APIReference/API_Tag.html */
int tags_check(struct compile *c, const struct option_list *l, uint32_t first) {
    static const char prefix[] = "tags.";
    for (uint32_t i = first; i < l->n; i++) {
        const char *key = l->items[i].name + sizeof prefix - 1;
        if (!*key || characters(key) > TAG_KEY_MAX)
            return err_invalid(c->err, "The key of a tag must have 1 to %d characters, not '%s'", TAG_KEY_MAX, key);
        if (strncasecmp(key, "aws:", 4) == 0)
            return err_invalid(c->err, "The key of a tag may not begin with aws: (got '%s')", key);
        if (characters(l->items[i].value) > TAG_VALUE_MAX)
            return err_invalid(c->err, "The value of tag '%s' must have at most %d characters", key, TAG_VALUE_MAX);
    }
    return check_once(c, l, first);
}

/* ---- what one ALTER TABLE may change ---- */

/* Capacity and its auto scaling belong together, and so do the stream and its specification;
 * options that do nothing on Keyspaces are no settings. */
static const char *setting_of(const char *option) {
    static const char *const plain[] = {"default_time_to_live", "comment", "cdc"};
    static const char prefix[] = "custom_properties.";
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (strcmp(option, plain[i]) == 0) return strcmp(option, "cdc") == 0 ? "cdc_specification" : plain[i];
    if (strncmp(option, "autoscaling_settings.", 21) == 0 ||
        strncmp(option, "custom_properties.replica_updates.", 34) == 0)
        return "capacity_mode";
    if (strncmp(option, "tags.", 5) == 0) return "tags";
    return strncmp(option, prefix, sizeof prefix - 1) == 0 ? option + sizeof prefix - 1 : NULL;
}

int settings_refuse_several(struct compile *c, const struct option_list *l) {
    const char *one = NULL;
    for (uint32_t i = 0; i < l->n; i++) {
        const char *other = setting_of(l->items[i].name);
        size_t n = other ? strcspn(other, ".") : 0;
        if (!other) continue;
        if (one && (strcspn(one, ".") != n || strncmp(one, other, n) != 0))
            return compat_refuse(&c->compat, REFUSE_ALTER_SETTINGS, c->err, (int)strcspn(one, "."), one, (int)n, other);
        one = other;
    }
    return 0;
}
