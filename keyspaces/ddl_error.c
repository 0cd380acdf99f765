#include "keyspaces/ddl_error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    enum err_code code[2];
    const char *words[2]; /* by mode: keyspaces, cassandra */
} rows[DDL_ERRORS] = {
#define DDL_ERROR(id, cassandra_code, cassandra, code_, words_, known) \
    [DDL_##id] = {.code = {ERR_##code_, ERR_##cassandra_code}, .words = {words_, cassandra}},
#include "keyspaces/ddl_error.def"
#undef DDL_ERROR
};

int ddl_error(struct err *e, bool cassandra_mode, enum ddl_error_id id, ...) {
    va_list ap;
    char text[ERR_TEXT_MAX];
    const char *words = rows[id].words[cassandra_mode];
    assert(*words);
    va_start(ap, id);
    int n = vsnprintf(text, sizeof text, words, ap);
    va_end(ap);
    return err_set(e, rows[id].code[cassandra_mode], "%s%s", text, n < ERR_TEXT_MAX ? "" : "...");
}
