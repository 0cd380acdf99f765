/* Metadata of results and of prepared statements: flags, column count, column specifications (v5
 * specification, section 4.2.5.2). */
#pragma once

#include "cql/cql.h"

enum np_metadata_flag {
    NP_META_GLOBAL = 0x0001,
    NP_META_MORE_PAGES = 0x0002,
    NP_META_NO_METADATA = 0x0004,
    NP_META_CHANGED = 0x0008,
};

/* NP_META_GLOBAL when all columns are of one table, else 0. */
uint32_t np_metadata_flags(const struct result_meta *m);
/* [<global table>]<column specs>, as the flags of np_metadata_flags say. */
void np_put_columns(struct buf *out, uint8_t version, const struct result_meta *m);
/* <metadata> of PREPARED (with the indexes of the partition key on v4+), and its <result_metadata>. */
void np_put_bind_metadata(struct buf *out, uint8_t version, const struct prepared_info *p);
void np_put_result_metadata(struct buf *out, uint8_t version, const struct result_meta *m);
