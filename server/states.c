#include "server/states.h"

#include <stdlib.h>

#include "base/log.h"

/* Between two statements of anybody. */
static int save(void *arg, const char *name, struct err *e) {
    struct states *s = arg;
    if (np_front_pause(s->front, e)) return -1;
    int rc = eng_state_save(s->eng, name, e);
    np_front_go_on(s->front);
    return rc;
}

/* The disk has the other state: a restart says what is wrong. */
static void must(int rc, const char *what, const struct err *why) {
    if (!rc) return;
    log_error("the %s of the state that was put back cannot be read: %s", what, why->text);
    abort();
}

static int put_back(void *arg, const char *name, struct err *e) {
    struct states *s = arg;
    struct err why = {0};
    if (np_front_pause(s->front, e)) return -1;
    catalog_suspend(s->catalog);
    if (s->access) access_suspend(s->access);
    int rc = eng_state_put_back(s->eng, name, e);
    must(catalog_resume(s->catalog, rc == 0, &why), "catalogue", &why);
    if (s->access) must(access_resume(s->access, rc == 0, &why), "roles", &why);
    np_front_go_on(s->front);
    eng_state_settle(s->eng); /* no other state is put back before this statement is answered */
    return rc;
}

static int remove_state(void *arg, const char *name, struct err *e) { return eng_state_remove(((struct states *)arg)->eng, name, e); }

void states_init(struct states *s, struct eng *eng, struct catalog *c, struct access_control *access, struct np_front *front) {
    *s = (struct states){.eng = eng, .catalog = c, .access = access, .front = front, .ops = {.arg = s, .save = save, .put_back = put_back, .remove = remove_state}};
    catalog_set_states(c, &s->ops);
}
