/* Shared by the sub-commands that price statements: flags, the world they set up, and the answer as
 * JSON. */
#pragma once

#include "tools/tally/subcommand.h"
#include "tools/tally/world.h"

/* The flags of a world that prices statements. The defaults are those of tallyd in keyspaces
 * mode. */
struct pricing {
    const char *schema, *data, *consistency, *size_model, *write_size;
    uint32_t page_size, timestamp_size;
    bool json;
};
enum { PRICING_TIMESTAMP_SIZE = 20 };
#define PRICING_FLAGS(p) \
    FLAG_TEXT("schema", "FILE", (p)->schema, "CQL statements that create keyspaces and tables"), \
        FLAG_TEXT("data", "FILE", (p)->data, "CQL statements that insert rows"), \
        FLAG_TEXT("consistency", "LEVEL", (p)->consistency, \
             "consistency level of reads (LOCAL_QUORUM); writes are always at LOCAL_QUORUM"), \
        FLAG_NUMBER("page-size", "N", (p)->page_size, "rows of a page (5000)"), \
        FLAG_TEXT("size-model", "documented-2022|current", (p)->size_model, "as of tallyd (documented-2022)"), \
        FLAG_TEXT("write-size", "row|written", (p)->write_size, "as of tallyd (row)"), \
        FLAG_NUMBER("timestamp-size", "N", (p)->timestamp_size, \
             "bytes of a column's client-side timestamp (20), as of tallyd"), \
        FLAG_ON("json", (p)->json, "the answer as JSON")

/* Makes the world that the flags describe and loads schema and data. Returns NULL with e set, which names the
 * file and line, or the flag. */
struct world *pricing_world(const struct pricing *p, bool strict, struct err *e) MUST_CHECK;
/* Sets the size model and the write size that the flags name; the others stay. */
int pricing_sizes(const struct pricing *p, struct world_options *o, struct err *e) MUST_CHECK;
bool pricing_is_read(struct slice text);
/* A statement and the text that is run for it: its markers get made-up values (markers.h). */
struct pricing_text {
    struct arena *arena; /* of run */
    struct slice written, run;
    bool made_up;
};
/* Prices a statement in the world. Returns -1 with e set. */
int pricing_run(struct world *w, const struct pricing *p, struct pricing_text *text, struct world_answer *out,
                struct err *e) MUST_CHECK;

/* The answer's fields, without braces. */
void pricing_json(const struct world_answer *a, struct buf *out);
/* Advice for a lower charge, one line each; empty when there is none. */
void pricing_advice(const struct world_answer *a, struct buf *out);
