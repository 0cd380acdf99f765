#include "tools/tally/capacity/nodetool.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/tally/yaml.h"

/* ---- lines ---- */

enum { LINE_MAX_BYTES = 512 };

struct lines {
    struct slice text;
    const char *path;
    struct err *e;
    uint32_t number;
    char line[LINE_MAX_BYTES]; /* without blanks at its ends; cut when it is longer */
    bool indented;
};

static bool next_line(struct lines *l) {
    if (!l->text.n) return false;
    struct slice line = slice_cut(&l->text, '\n');
    l->indented = line.n && isspace(*line.p);
    while (line.n && isspace(*line.p)) line = slice_of(line.p + 1, line.n - 1);
    while (line.n && isspace(line.p[line.n - 1])) line.n--;
    snprintf(l->line, sizeof(l->line), "%.*s", SLICE_FMT(line));
    l->number++;
    return true;
}

static int bad(const struct lines *l, const char *why) {
    return err_set(l->e, ERR_CONFIG, "%s:%u: %s: '%s'", l->path, l->number, why, l->line);
}

/* The value after "label:" (blanks before the colon, too); NULL if it is another line. */
static const char *value_after(const char *line, const char *label) {
    size_t n = strlen(label);
    if (strncmp(line, label, n)) return NULL;
    line += n;
    while (*line == ' ') line++;
    if (*line++ != ':') return NULL;
    while (*line == ' ') line++;
    return line;
}

/* "23273", "22.73 KiB", "0 bytes", "NaN" */
static int number_of(const struct lines *l, const char *text, double *out) {
    static const struct { const char *name; double factor;
    } units[] = {{"", 1}, {"bytes", 1}, {"B", 1},
                 {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                 {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"TB", 0x1p40}};
    char *end;
    double n = strtod(text, &end);
    if (end == text || isinf(n) || n < -1) return bad(l, "a number is expected");
    while (*end == ' ') end++;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (!strcmp(end, units[i].name)) {
            *out = n * units[i].factor;
            return 0;
        }
    return bad(l, "a number is expected");
}

/* ---- tablestats ---- */

static struct nodetool_table *find_table(struct nodetool *n, const char *keyspace, const char *name) {
    for (struct nodetool_table *t = n->tables; t; t = t->next)
        if (!strcmp(t->keyspace, keyspace) && !strcmp(t->name, name)) return t;
    return NULL;
}

/* The figures of a table in tablestats, with the names of -F json. Older releases call the partitions
 * "keys". A figure with a bit is required. */
static const struct { const char *label, *key; size_t member; unsigned bit;
} figures[] = {
    {"Local read count", "local_read_count", offsetof(struct nodetool_figures, reads), 1},
    {"Local write count", "local_write_count", offsetof(struct nodetool_figures, writes), 2},
    {"Space used (live)", "space_used_live", offsetof(struct nodetool_figures, live_bytes), 4},
    {"Number of partitions (estimate)", "number_of_partitions_estimate", offsetof(struct nodetool_figures, partitions),
     8},
    {"Number of keys (estimate)", "number_of_keys_estimate", offsetof(struct nodetool_figures, partitions), 8},
    {"Compacted partition mean bytes", "compacted_partition_mean_bytes",
     offsetof(struct nodetool_figures, partition_mean), 0},
    {"SSTable Compression Ratio", "sstable_compression_ratio", offsetof(struct nodetool_figures, compression), 0}};

static double *figure_of(struct nodetool_figures *f, size_t i) {
    return (double *)(void *)((char *)f + figures[i].member);
}

static int take_figure(const struct lines *l, struct nodetool_figures *f, unsigned *seen) {
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const char *text = value_after(l->line, figures[i].label);
        double d;
        if (!text) continue;
        if (number_of(l, text, &d)) return -1;
        if (isnan(d) || (figures[i].bit && d < 0)) return bad(l, "a number is expected");
        if (*seen & figures[i].bit) return bad(l, "one table has this twice");
        *seen |= figures[i].bit;
        *figure_of(f, i) = d;
        return 0;
    }
    return strchr(l->line, ':') ? 0 : bad(l, "this is no line of tablestats");
}

static int end_table(const struct lines *l, const struct nodetool_table *t, unsigned seen) {
    for (size_t i = 0; t && i < ARRAY_LEN(figures); i++)
        if (figures[i].bit & ~seen)
            return err_set(l->e, ERR_CONFIG, "%s:%u: the figures of %s.%s lack '%s': is the text cut off?", l->path,
                           t->line, t->keyspace, t->name, figures[i].label);
    return 0;
}

/* The table, added if it is new, with the figures of the current capture. Returns NULL if memory is
 * exhausted. */
static struct nodetool_table *open_table(struct nodetool *n, const char *keyspace, const char *name, uint32_t line) {
    struct nodetool_table *t = find_table(n, keyspace, name);
    if (!t) {
        t = ARENA_NEW(n->arena, struct nodetool_table);
        if (!t) return NULL;
        *t = (struct nodetool_table){.keyspace = arena_strdup(n->arena, keyspace), .name = arena_strdup(n->arena, name),
                                     .cells = -1};
        if (!t->keyspace || !t->name) return NULL;
        if (n->newest) n->newest->next = t;
        else n->tables = t;
        n->newest = t;
    }
    if (!t->nodes && !(t->nodes = ARENA_ARRAY(n->arena, NODES_MAX, struct nodetool_figures))) return NULL;
    t->n_nodes = n->captures;
    t->line = line;
    return t;
}

/* ---- tablestats -F json, which is YAML, too ---- */

static int take_json_table(struct yaml_file *y, const yaml_node_t *map, struct nodetool_figures *f, const char *name) {
    const yaml_node_t *key, *value;
    uint32_t at = 0;
    unsigned seen = 0;
    int rc;
    while ((rc = yaml_next(y, map, &at, &key, &value)) > 0)
        for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
            if (strcmp(yaml_scalar(key), figures[i].key)) continue;
            const char *text = yaml_scalar(value);
            struct err ignored = {0};
            struct lines l = {.path = "", .e = &ignored};
            double d;
            /* with -H the sizes have units */
            bool number = text && !number_of(&l, text, &d) && !isnan(d) && (d >= 0 || !figures[i].bit);
            if (!number && figures[i].bit) return yaml_wrong(y, value, "a number is expected: '%s'", figures[i].key);
            if (number) *figure_of(f, i) = d;
            seen |= figures[i].bit;
        }
    for (size_t i = 0; !rc && i < ARRAY_LEN(figures); i++)
        if (figures[i].bit & ~seen) return yaml_wrong(y, map, "the figures of %s lack '%s'", name, figures[i].key);
    return rc;
}

static int take_json_keyspace(struct yaml_file *y, struct nodetool *n, const char *keyspace, const yaml_node_t *map) {
    const yaml_node_t *key, *value, *name, *table;
    uint32_t at = 0, table_at = 0;
    int rc, more = 0;
    while ((rc = yaml_next(y, map, &at, &key, &value)) > 0) {
        if (strcmp(yaml_scalar(key), "tables")) continue;
        while ((more = yaml_next(y, value, &table_at, &name, &table)) > 0) {
            struct nodetool_table *t = open_table(n, keyspace, yaml_scalar(name), yaml_line(name));
            if (!t) return err_nomem(y->e);
            if (take_json_table(y, table, &t->nodes[n->captures - 1], yaml_scalar(name))) return -1;
        }
        if (more) return -1;
    }
    return rc;
}

static int take_json(struct yaml_file *y, const yaml_node_t *root, void *to) {
    const yaml_node_t *key, *value;
    uint32_t at = 0;
    int rc;
    while ((rc = yaml_next(y, root, &at, &key, &value)) > 0)
        if (value->type == YAML_MAPPING_NODE && take_json_keyspace(y, to, yaml_scalar(key), value)) return -1;
    return rc;
}

/* ---- tablestats as text ---- */

static int begin_capture(struct nodetool *n, uint32_t line, struct err *e) {
    n->captures++;
    if (n->captures <= NODES_MAX) return 0;
    return err_set(e, ERR_CONFIG, "%s:%u: there are more than %d nodes", n->path, line, NODES_MAX);
}

int nodetool_tablestats(struct nodetool *n, const char *path, struct slice text, struct err *e) {
    struct lines l = {.text = text, .path = path, .e = e};
    struct nodetool_table *t = NULL;
    char keyspace[64] = "";
    struct yaml_file y = {.arena = n->arena, .path = path, .e = e};
    n->path = path;
    if (memmem(text.p, text.n, "local_read_count", 16)) {
        if (begin_capture(n, 1, e) || yaml_read(&y, text, take_json, n)) return -1;
        return n->tables ? 0 : err_set(e, ERR_CONFIG, "%s:1: there is no table in it", path);
    }
    unsigned seen = 0;
    bool begun = false;
    while (next_line(&l)) {
        const char *name = value_after(l.line, "Keyspace"), *table = value_after(l.line, "Table");
        bool counts_tables = value_after(l.line, "Total number of tables"), of_keyspace = name && !l.indented;
        if (!table) table = value_after(l.line, "Table (index)");
        if (!l.line[strspn(l.line, "-")]) continue;
        /* some releases do not print the number of tables first */
        if ((counts_tables || (of_keyspace && !begun)) && begin_capture(n, l.number, e)) return -1;
        begun = begun || counts_tables || of_keyspace;
        if (counts_tables) continue;
        if ((of_keyspace || table) && end_table(&l, t, seen)) return -1;
        if (of_keyspace) {
            t = NULL;
            snprintf(keyspace, sizeof(keyspace), "%.63s", name);
        } else if (table) {
            if (!*keyspace) return bad(&l, "a table precedes its keyspace");
            seen = 0;
            if (!(t = open_table(n, keyspace, table, l.number))) return err_nomem(e);
        } else if (t) {
            if (take_figure(&l, &t->nodes[n->captures - 1], &seen)) return -1;
        } else if (!*keyspace || !strchr(l.line, ':')) {
            return bad(&l, "this is no line of tablestats");
        }
    }
    if (end_table(&l, t, seen)) return -1;
    return n->tables ? 0 : bad(&l, "there is no table in it");
}

/* ---- tablehistograms ---- */

/* The columns of a line: they are separated by two blanks or more. */
static uint32_t split(char *line, char **columns, uint32_t most) {
    uint32_t n = 0;
    while (*line && n < most) {
        columns[n++] = line;
        line = strstr(line, "  ");
        if (!line) break;
        *line++ = 0;
        while (*line == ' ') line++;
    }
    return n;
}

int nodetool_tablehistograms(struct nodetool *n, const char *path, struct slice text, struct err *e) {
    enum { COLUMNS = 8 };
    struct lines l = {.text = text, .path = path, .e = e};
    char keyspace[64], table[64], *columns[COLUMNS];
    uint32_t found = 0;
    while (next_line(&l)) {
        int used = 0;
        uint32_t cell = 0;
        if (!*l.line || !strncmp(l.line, "No SSTables", 11)) continue;
        if (sscanf(l.line, "%63[^/ ]/%63[^ ] histograms%n", keyspace, table, &used) != 2 || !used)
            return bad(&l, "a line 'keyspace/table histograms' is expected");
        struct nodetool_table *t = find_table(n, keyspace, table);
        if (!next_line(&l) || strncmp(l.line, "Percentile", 10))
            return bad(&l, "a line 'Percentile ...' is expected");
        struct lines head = l; /* split cuts the line into pieces, and errors show it whole */
        uint32_t names = split(head.line, columns, COLUMNS);
        while (cell < names && strcmp(columns[cell], "Cell Count")) cell++;
        if (cell == names) return bad(&l, "there is no column 'Cell Count'");
        if (!next_line(&l) || *l.line != '(') return bad(&l, "the units of the columns are expected");
        for (bool last = false; !last;) {
            if (!next_line(&l) || !*l.line) return bad(&l, "the line 'Max' is missing: is the text cut off?");
            struct lines row = l;
            double d;
            if (split(row.line, columns, COLUMNS) != names)
                return bad(&l, "it has not as many columns as there are names");
            if (number_of(&l, columns[cell], &d)) return -1;
            if (!strcmp(columns[0], "50%") && t && !isnan(d)) t->cells = d;
            last = !strcmp(columns[0], "Max");
        }
        found++;
    }
    return found ? 0 : bad(&l, "there is no table in it");
}

/* ---- info and status ---- */

int nodetool_info(struct nodetool *n, const char *path, struct slice text, struct err *e) {
    struct lines l = {.text = text, .path = path, .e = e};
    uint32_t before = n->uptimes;
    while (next_line(&l)) {
        const char *uptime = value_after(l.line, "Uptime (seconds)");
        double d;
        if (!*l.line) continue;
        if (!strchr(l.line, ':')) return bad(&l, "this is no line of info");
        if (!uptime) continue;
        if (number_of(&l, uptime, &d)) return -1;
        if (!(d > 0)) return bad(&l, "an uptime is more than nothing");
        if (n->uptimes == NODES_MAX) return bad(&l, "there are too many nodes");
        n->uptime_s[n->uptimes++] = d;
    }
    return n->uptimes > before ? 0 : bad(&l, "there is no line 'Uptime (seconds)'");
}

int nodetool_status(struct nodetool *n, const char *path, struct slice text, struct err *e) {
    struct lines l = {.text = text, .path = path, .e = e};
    uint32_t centres = 0;
    n->nodes = 0;
    while (next_line(&l)) {
        if (value_after(l.line, "Datacenter")) centres++;
        else if (!centres && *l.line) return bad(&l, "a line 'Datacenter: ...' is expected");
        if (centres != 1) continue; /* only the first data centre counts */
        bool node = strlen(l.line) > 3 && strchr("UD", l.line[0]) && strchr("NLJM", l.line[1]) && l.line[2] == ' ';
        n->nodes += node;
        if (node || !*l.line || strchr("DS|=-", *l.line)) continue;
        if (strncmp(l.line, "Note:", 5)) return bad(&l, "this is no line of status");
    }
    return n->nodes ? 0 : bad(&l, "there is no node in it");
}

/* ---- into the workload ---- */

struct applying {
    const struct nodetool *n;
    struct workload *w;
    struct err *e;
    uint32_t replicas;
    uint16_t consistency;
    double scale; /* from the captured nodes to the cluster */
};

/* The sums over the captured nodes: reads and writes a second of each node by its own uptime,
 * and bytes as they are before compression. */
struct cluster_figures {
    double reads, writes, partitions, bytes, partition_mean;
};

static struct cluster_figures sum_of(const struct nodetool *n, const struct nodetool_table *t) {
    struct cluster_figures sum = {0};
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct nodetool_figures *f = &t->nodes[i];
        double uptime_s = n->uptimes ? n->uptime_s[n->uptimes == 1 ? 0 : i] : 1;
        sum.reads += f->reads / uptime_s;
        sum.writes += f->writes / uptime_s;
        sum.partitions += f->partitions;
        sum.bytes += f->live_bytes / (f->compression > 0 ? f->compression : 1);
        sum.partition_mean = fmax(sum.partition_mean, f->partition_mean);
    }
    return sum;
}

static int put_statement(const struct applying *x, const struct nodetool_table *n, const struct schema_table *t,
                         bool reads, double rate, const char *unknown) {
    struct workload_statement *s = workload_add(x->w);
    struct buf text;
    if (!s) return err_nomem(x->e);
    buf_init(&text, 0);
    if (reads) buf_printf(&text, "SELECT * FROM \"%s\".\"%s\" WHERE ", t->keyspace->name, t->name);
    else buf_printf(&text, "INSERT INTO \"%s\".\"%s\" (", t->keyspace->name, t->name);
    uint32_t keys = t->n_partition_key + t->n_clustering, put = 0;
    for (uint32_t i = 0; i < (reads ? keys : t->n_columns); i++) {
        if (t->columns[i].kind == COLUMN_STATIC) continue;
        buf_printf(&text, "%s\"%s\"%s", put++ ? reads ? " AND " : ", " : "", t->columns[i].name, reads ? " = ?" : "");
    }
    for (uint32_t i = 0; !reads && i < put; i++) buf_put_str(&text, i ? ", ?" : ") VALUES (?");
    if (!reads) buf_put_str(&text, ")");
    s->text = (const char *)arena_dup(&x->w->arena, buf_slice(&text)).p;
    s->name = arena_printf(&x->w->arena, "%s of %s.%s (tablestats)", reads ? "reads" : "writes", n->keyspace, n->name);
    buf_fini(&text);
    s->file = x->n->path;
    s->line = n->line;
    s->inferred = true;
    s->unknown = unknown;
    s->consistency = reads ? x->consistency : (uint16_t)CL_LOCAL_QUORUM;
    s->rate = (struct curve){.n = 1, .points = {{.rate = rate}}};
    s->has_rate = !unknown;
    s->has_new_rows = true; /* new_rows stays false: nodetool does not count new rows */
    return s->text && s->name ? 0 : err_nomem(x->e);
}

static int note_statics(const struct applying *x, const struct schema_table *t) {
    struct buf names;
    buf_init(&names, 0);
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == COLUMN_STATIC)
            buf_printf(&names, "%s%s", names.n ? ", " : "", t->columns[i].name);
    int rc = workload_note(x->w, x->e,
                           "%s.%s: the INSERTs of tablestats do not write its static columns (%.*s): a write of both "
                           "costs twice the units of each, and one of static data alone is a statement for --workload",
                           t->keyspace->name, t->name, SLICE_FMT(buf_slice(&names)));
    buf_fini(&names);
    return rc;
}

static int apply_table(struct applying *x, const struct nodetool_table *n, const struct schema *schema) {
    struct err ignored = {0};
    const struct schema_table *t = schema_table_find(schema, n->keyspace, n->name, &ignored);
    if (!strncmp(n->keyspace, "system", 6)) return 0;
    if (!t)
        return workload_note(x->w, x->e, "%s.%s is in tablestats and not in the schema: it is left out", n->keyspace,
                             n->name);
    struct workload_table *w = workload_table(x->w, n->keyspace, n->name);
    uint32_t replicas = x->replicas; /* 0 if the keyspace does not say */
    for (uint32_t i = 0; !replicas && i < t->keyspace->n_replication; i++)
        replicas = (uint32_t)strtoul(t->keyspace->replication[i].value, NULL, 10);
    const struct cluster_figures sum = sum_of(x->n, n);
    if (!w) return err_nomem(x->e);
    if (!w->partitions && replicas && sum.partitions > 0)
        w->partitions = (uint64_t)(sum.partitions * x->scale / replicas + 0.5);
    if (!w->rows_per_partition && t->n_clustering && n->cells >= 0 && t->n_regular) {
        double rows = floor(n->cells / t->n_regular + 0.5);
        w->rows_per_partition = rows < 1 ? 1 : (uint64_t)rows;
        if (workload_note(x->w, x->e,
                          "%s.%s: a partition has %llu rows, as tablehistograms counts %.0f cells in the median "
                          "partition and a row has %u",
                          n->keyspace, n->name, (unsigned long long)w->rows_per_partition, n->cells, t->n_regular))
            return -1;
    }
    if (replicas && sum.bytes > 0) {
        /* nodetool's bytes have no metadata of rows; in storage each row has 100 bytes of it, in both size models. */
        const struct size_sum stored = {.bytes = (uint64_t)(sum.bytes * x->scale / replicas + 0.5),
                                        .rows = w->partitions * (t->n_clustering ? w->rows_per_partition : 1)};
        w->cassandra_bytes = (double)size_storage_bytes(SIZE_CURRENT, &stored);
        char metadata[128] = "without the metadata of rows (100 bytes each): no input gives their number";
        if (stored.rows)
            snprintf(metadata, sizeof(metadata), "and 100 bytes of metadata for each of %llu rows",
                     (unsigned long long)stored.rows);
        if (workload_note(x->w, x->e,
                          "%s.%s: its storage is %.3g GiB: the live bytes of the nodes by their compression ratios, "
                          "times %.3g for the nodes that were not captured, by %u replicas, %s",
                          n->keyspace, n->name, w->cassandra_bytes / 0x1p30, x->scale, replicas, metadata))
            return -1;
    }
    /* A sampled row and the number of rows have to come to the partition that Cassandra has. */
    uint64_t per = !t->n_clustering ? 1 : w->rows_per_partition ? w->rows_per_partition : 1;
    double sampled = w->sample_bytes * (double)per;
    if (sampled > 0 && (sum.partition_mean > 3 * sampled || sampled > 3 * sum.partition_mean) &&
        sum.partition_mean > 0 &&
        workload_note(x->w, x->e,
                      "WARNING: %s.%s: tablestats has %.0f bytes in a mean partition, and %llu sampled rows of %.0f "
                      "bytes are %.0f: the sample is of other rows, or rows_per_partition is about %.0f",
                      n->keyspace, n->name, sum.partition_mean, (unsigned long long)per, w->sample_bytes, sampled,
                      fmax(1, floor(sum.partition_mean / w->sample_bytes + 0.5))))
        return -1;
    for (const struct workload_statement *s = x->w->statements; s; s = s->next)
        if (!s->inferred && strstr(s->text, t->name))
            return workload_note(x->w, x->e,
                                 "%s.%s: the workload's statements count, not the reads and writes of tablestats",
                                 n->keyspace, n->name);
    const char *unknown = !x->n->uptimes ? "no nodetool info says how long the nodes are up"
                          : !replicas    ? "the keyspace does not say how many replicas there are; --replicas does"
                                         : NULL;
    bool one = x->consistency == CL_ONE || x->consistency == CL_LOCAL_ONE;
    uint32_t asked = one ? 1 : replicas / 2 + 1;
    if (sum.reads > 0 && put_statement(x, n, t, true, unknown ? 0 : sum.reads * x->scale / asked, unknown)) return -1;
    if (sum.writes <= 0) return 0;
    if (t->n_static && note_statics(x, t)) return -1;
    return put_statement(x, n, t, false, unknown ? 0 : sum.writes * x->scale / replicas, unknown);
}

int nodetool_apply(const struct nodetool *n, struct workload *w, const struct schema *schema, uint32_t replicas,
                   uint16_t consistency, struct err *e) {
    uint32_t nodes = n->nodes ? n->nodes : n->captures;
    if (n->uptimes > 1 && n->uptimes != n->captures)
        return err_set(e, ERR_CONFIG,
                       "--info has %u nodes and --tablestats %u: give those of the same nodes, in the same order",
                       n->uptimes, n->captures);
    struct applying x = {.n = n, .w = w, .e = e, .replicas = replicas, .consistency = consistency,
                         .scale = (double)nodes / n->captures};
    if (workload_note(w, e,
                      "tablestats: reads are of one row by its whole key, writes are INSERTs of whole rows over rows "
                      "that are there, evenly over the day and the partitions") ||
        workload_note(w, e,
                      "tablestats: %u of %u nodes were captured%s; each read asks %s, each write goes to all replicas",
                      n->captures, nodes, n->nodes ? "" : " (no status says how many there are)",
                      consistency == CL_ONE || consistency == CL_LOCAL_ONE ? "one replica" : "a quorum of replicas"))
        return -1;
    for (const struct nodetool_table *t = n->tables; t; t = t->next)
        if (apply_table(&x, t, schema)) return -1;
    return 0;
}
