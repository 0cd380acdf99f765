#include "server/reload.h"

#include "base/log.h"
#include "native_protocol/audit_queue.h"

/* ---- certificates ---- */

static void take_certificates(struct instance *in) {
    struct err e = {0};
    int cql = np_tls_reload(in->tls, &e), api = control_plane_reload_certificate(in->control_plane, &e);
    if (cql || api) log_error("%s; connections go on with the certificate that was there", e.text);
    else log_info("new connections get the certificate that %s holds now", in->settings.tls.cert);
}

void reload_files(struct instance *in) {
    if (in->tls && np_tls_changed(in->tls)) take_certificates(in);
}

/* ---- settings ---- */

static int apply_log_level(struct instance *in, const struct settings *s, struct err *e) {
    (void)in;
    return log_set_levels(s->log.levels, e);
}

static int apply_log_format(struct instance *in, const struct settings *s, struct err *e) {
    (void)in, (void)e;
    log_set_format(s->log.format);
    return 0;
}

static int apply_log_file(struct instance *in, const struct settings *s, struct err *e) {
    (void)in;
    return log_open(s->log.file, e);
}

static int apply_slow_statement(struct instance *in, const struct settings *s, struct err *e) {
    (void)e;
    atomic_store(&in->slow_us, s->slow_us);
    return 0;
}

static int (*const live[CONFIG_OPTIONS])(struct instance *in, const struct settings *s, struct err *e) = {
#define LIVE(id, apply) [CONFIG_##id] = apply_##apply,
#include "server/live.def"
#undef LIVE
};

static void apply_option(struct reload *r, int o, const struct config *next, const struct settings *s) {
    const struct config *before = r->again ? &r->latest : r->first;
    const char *flag = config_flag((enum config_option)o), *value = next->values[o];
    struct err e = {0};
    if (!strcmp(before->values[o], value)) return;
    if (!live[o]) log_warn("--%s is '%s' now, which needs a restart", flag, value);
    else if (live[o](r->in, s, &e)) log_error("%s", e.text);
    else log_info("--%s is '%s' now", flag, value);
}

void reload_all(struct reload *r) {
    struct config next;
    struct settings s;
    struct err e = {0};
    /* Log rotation may have renamed the file. It is opened first, so that the messages of the reload
     * are in the new one. */
    if (log_open((r->again ? &r->latest : r->first)->values[CONFIG_LOG_FILE], &e)) log_error("%s", e.text);
    err_clear(&e);
    if (r->in->tls) take_certificates(r->in);
    if (r->in->audit && np_audit_reopen(r->in->audit, &e)) log_error("%s", e.text);
    err_clear(&e);
    if (config_load(&next, r->argc, r->argv, &e) || settings_read(&s, &next, &e)) {
        log_error("%s; the settings stay as they were", e.text);
        config_fini(&next);
        return;
    }
    apply_option(r, CONFIG_LOG_FILE, &next, &s);
    for (int o = 0; o < CONFIG_OPTIONS; o++)
        if (o != CONFIG_LOG_FILE) apply_option(r, o, &next, &s);
    reload_fini(r);
    r->latest = next;
    r->again = true;
}

void reload_fini(struct reload *r) {
    if (r->again) config_fini(&r->latest);
    r->again = false;
}
