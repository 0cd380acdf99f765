#include "control_plane/table_settings.h"

#include <ctype.h>


/* ---- from members ---- */

/* The member of a path like "ttl.status". In RestoreTable some first names have the ending
 * Override. */
static const struct doc *find(struct call *c, const struct doc *in, const char *path) {
    for (const char *at = path; in; at++) {
        size_t n = strcspn(at, ".");
        const char *name = (const char *)arena_dup(c->arena, slice_of(at, n)).p, *override;
        if (!name || !(override = arena_printf(c->arena, "%sOverride", name))) {
            c->make.failed = true;
            return NULL;
        }
        const struct doc *d = doc_get(in, name);
        in = d || at != path ? d : doc_get(in, override);
        at += n;
        if (!*at) break;
    }
    return in;
}

/* Sets the members that the request gives. */
static void take(struct call *c, const struct doc *in, const struct setting *rows, uint32_t n, void *of) {
    for (uint32_t i = 0; i < n; i++) {
        const struct setting *row = &rows[i];
        const struct doc *d = row->api && row->source == SETTING_OF_STATEMENT ? find(c, in, row->api) : NULL;
        char *to = (char *)of + row->offset;
        if (!d) continue;
        double number = d->kind == DOC_REAL ? d->real : (double)d->whole;
        switch (row->kind) {
        case SETTING_KIND_FLAG: *(bool *)to = d->kind == DOC_FLAG ? d->flag : setting_word(row, d->text) == 0; break;
        case SETTING_KIND_CHOICE: *(uint8_t *)to = (uint8_t)setting_word(row, d->text); break;
        case SETTING_KIND_NUMBER: *(double *)to = number; break;
        case SETTING_KIND_TEXT:
            if (!(*(const char **)to = (const char *)arena_dup(c->arena, d->text).p)) c->make.failed = true;
            break;
        default: *(int64_t *)to = d->whole; break;
        }
        *(uint64_t *)of |= UINT64_C(1) << i;
    }
}

int tags_take(struct call *c, const struct doc *tags, struct setting_map *out) {
    struct schema_option *all = ARENA_ARRAY(c->arena, (tags ? tags->n : 0) + 1, struct schema_option);
    uint32_t n = 0;
    if (!all) return call_nomem(c);
    for (const struct doc *t = tags ? tags->first : NULL; t; t = t->next, n++) {
        all[n] = (struct schema_option){doc_text(c->arena, t, "key"), doc_text(c->arena, t, "value")};
        if (!all[n].name || !all[n].value) return call_nomem(c);
    }
    setting_map_sort(all, n);
    *out = (struct setting_map){n, all};
    return 0;
}

/* The option cdc turns CDC on or off; a property says what its records contain. */
static int take_stream(struct call *c, struct table_settings *s) {
    const struct doc *spec = doc_get(c->in, "cdcSpecification"), *status = doc_get(spec, "status"),
                     *tags = doc_get(spec, "tags");
    if (!status) return 0;
    SETTING_SET(s, cdc, slice_is(status->text, "ENABLED"));
    if (!s->cdc && !slice_is(status->text, "DISABLED"))
        return call_fail(c, API_ValidationException,
                         "The status of a cdcSpecification can be set to ENABLED or DISABLED.");
    if (tags && tags->n) s->given |= SETTING_BIT(stream_tags);
    return tags_take(c, tags, &s->stream_tags);
}

int table_settings_take(struct call *c, struct ast_props *props) {
    static const char *const scaling[] = {"readCapacityAutoScaling", "writeCapacityAutoScaling"};
    struct table_settings *s = ARENA_NEW(c->arena, struct table_settings);
    const struct doc *in = c->in, *spec = doc_get(in, "autoScalingSpecification"),
                     *replicas = doc_get(in, "replicaSpecifications"),
                     *tags = doc_get(in, doc_get(in, "tagsOverride") ? "tagsOverride" : "tags");
    if (!s) return call_nomem(c);
    *s = *settings_defaults(true);
    take(c, in, setting_rows, SETTINGS, s);
    if (take_stream(c, s) || tags_take(c, tags, &s->tags)) return -1;
    if (s->tags.n) s->given |= SETTING_BIT(tags);
    for (int of = READ_CAPACITY; of <= WRITE_CAPACITY; of++)
        take(c, doc_get(spec, scaling[of]), scaling_rows, SCALING_SETTINGS, &s->scaling[of]);
    for (const struct doc *r = replicas ? replicas->first : NULL; r; r = r->next) {
        const char *name = doc_text(c->arena, r, "region");
        struct region_settings *region = name ? settings_region(s, name, c->arena) : NULL;
        if (!region) return call_nomem(c);
        take(c, r, region_rows, REGION_SETTINGS, region);
        take(c, doc_get(r, scaling[READ_CAPACITY]), scaling_rows, SCALING_SETTINGS, &region->scaling[READ_CAPACITY]);
    }
    props->settings = s;
    return 0;
}

/* ---- to members ---- */

static void put_member(struct call *c, struct doc *to, const char *name, const struct setting *row, const void *of) {
    const void *v = (const char *)of + row->offset;
    switch (row->kind) {
    case SETTING_KIND_MILLIS:
    case SETTING_KIND_MOMENT: doc_put_moment(&c->make, to, name, *(const int64_t *)v); return;
    case SETTING_KIND_INT:
    case SETTING_KIND_WHOLE: doc_put_whole(&c->make, to, name, *(const int64_t *)v); return;
    case SETTING_KIND_NUMBER: doc_put_real(&c->make, to, name, *(const double *)v); return;
    case SETTING_KIND_TEXT: doc_put_text(&c->make, to, name, *(const char *const *)v); return;
    default: break;
    }
    if (strcmp(row->words, "true|false") == 0) {
        doc_put_flag(&c->make, to, name, *(const bool *)v);
        return;
    }
    char *text = arena_strdup(c->arena, setting_text(row, of, c->arena));
    for (char *p = text; p && *p; p++) *p = (char)toupper((unsigned char)*p);
    doc_put_text(&c->make, to, name, text);
    c->make.failed = c->make.failed || !text;
}

/* Puts the settings of these bits that are given, each where its path leads. */
static void put(struct call *c, struct doc *to, const struct setting *rows, uint32_t n, uint64_t bits, const void *of) {
    for (uint32_t i = 0; i < n; i++) {
        struct doc *in = to;
        const char *name = rows[i].api;
        if (!name || !(*(const uint64_t *)of & bits & UINT64_C(1) << i)) continue;
        for (const char *dot; in && (dot = strchr(name, '.')); name = dot + 1) {
            const char *group = (const char *)arena_dup(c->arena, slice_of(name, (size_t)(dot - name))).p;
            struct doc *d = group ? (struct doc *)doc_get(in, group) : NULL;
            in = d ? d : doc_put(&c->make, in, group, DOC_MAP);
        }
        put_member(c, in, name, &rows[i], of);
    }
}

static void put_status(struct call *c, struct doc *to, const struct schema_table *t) {
    struct doc *warm = (struct doc *)doc_get(to, "warmThroughputSpecification");
    doc_put_text(&c->make, warm, "status", t->status == SCHEMA_UPDATING ? "UPDATING" : "AVAILABLE");
}

static void put_replicas(struct call *c, const struct schema_table *t, const struct table_settings *s) {
    uint64_t bits = setting_group(SETTING_BIT(throughput_mode)) | setting_group(SETTING_BIT(warm_read_units));
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const struct region_settings *own = settings_find_region(s, ks->regions[i].name);
        struct table_settings there = *s;
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        if (own && own->given) there.read_capacity_units = own->read_capacity_units;
        doc_put_text(&c->make, one, "region", ks->regions[i].name);
        doc_put_text(&c->make, one, "status", schema_status_name(schema_replica_status(ks, t, &ks->regions[i])));
        put(c, one, setting_rows, SETTINGS, bits, &there);
        put_status(c, one, t);
    }
}

int table_settings_put(struct call *c, const struct schema_table *t) {
    struct table_settings s;
    struct table_capacity k;
    uint64_t only_if_on = SETTING_BIT(ttl) | SETTING_BIT(client_side_timestamps);
    if (catalog_settings(c->o->catalog, t, c->region, c->arena, &s)) return call_nomem(c);
    catalog_capacity(c->o->catalog, t, &k);
    s.given &= ~only_if_on;
    if (schema_has_ttl(t)) SETTING_SET(&s, ttl, true);
    if (schema_has_client_timestamps(t)) SETTING_SET(&s, client_side_timestamps, true);
    s.given |= SETTING_BIT(comment) | SETTING_BIT(default_time_to_live);
    SETTING_SET(&s, warm_read_units, k.warm[READ_CAPACITY]);
    SETTING_SET(&s, warm_write_units, k.warm[WRITE_CAPACITY]);
    put(c, c->out, setting_rows, SETTINGS, ~SETTING_BIT(propagate_tags), &s);
    put_status(c, c->out, t);
    put_replicas(c, t, &s);
    return 0;
}

/* Auto scaling that is not given is disabled. A policy shows all its members. */
static void put_scaling(struct call *c, struct doc *to, const char *name, const struct scaling_settings *s) {
    struct scaling_settings all = *s;
    uint64_t bounds = SCALING_BIT(minimum_units) | SCALING_BIT(maximum_units);
    bool has_policy = s->given & SCALING_BIT(target_value);
    all.given = SCALING_BIT(autoscaling_disabled) | (has_policy ? ~bounds : 0) | (s->given & bounds);
    put(c, doc_put(&c->make, to, name, DOC_MAP), scaling_rows, SCALING_SETTINGS, ~SCALING_TARGET, &all);
}

void table_scaling_put(struct call *c, const struct schema_table *t) {
    const struct schema_keyspace *ks = call_space(c, t->keyspace->name)->keyspace; /* newer than the table's */
    const struct table_settings *s = &t->settings;
    struct doc *spec = doc_put(&c->make, c->out, "autoScalingSpecification", DOC_MAP);
    put_scaling(c, spec, "writeCapacityAutoScaling", &s->scaling[WRITE_CAPACITY]);
    put_scaling(c, spec, "readCapacityAutoScaling", &s->scaling[READ_CAPACITY]);
    struct doc *all = ks->n_regions ? doc_put(&c->make, c->out, "replicaSpecifications", DOC_LIST) : NULL;
    for (uint32_t i = 0; all && i < ks->n_regions; i++) {
        const struct region_settings *own = settings_find_region(s, ks->regions[i].name);
        struct doc *one = doc_put(&c->make, all, NULL, DOC_MAP);
        doc_put_text(&c->make, one, "region", ks->regions[i].name);
        put_scaling(c, doc_put(&c->make, one, "autoScalingSpecification", DOC_MAP), "readCapacityAutoScaling",
                    own ? &own->scaling[READ_CAPACITY] : &settings_defaults(true)->scaling[READ_CAPACITY]);
    }
}
