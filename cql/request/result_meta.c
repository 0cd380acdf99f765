#include "cql/request/result_meta.h"

#include <openssl/evp.h>

int result_md5(struct slice bytes, uint8_t *out, struct err *e) {
    return EVP_Digest(bytes.p, bytes.n, out, NULL, EVP_md5(), NULL) == 1
               ? 0
               : err_set(e, ERR_SERVER, "MD5 is not available");
}

int result_meta_hash(struct result_meta *m, struct err *e) {
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < m->n; i++) {
        buf_printf(&b, "%s.%s.%s ", m->columns[i].keyspace, m->columns[i].table, m->columns[i].name);
        cql_type_print(m->columns[i].type, &b);
        buf_u8(&b, '\n');
    }
    int rc = buf_failed(&b) ? err_nomem(e) : result_md5(buf_slice(&b), m->id, e);
    buf_fini(&b);
    return rc;
}
