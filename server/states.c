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

static int put_back(void *arg, const char *name, struct err *e) {
    struct states *s = arg;
    struct err why = {0};
    if (np_front_pause(s->front, e)) return -1;
    catalog_suspend(s->catalog);
    int rc = eng_state_put_back(s->eng, name, e);
    if (catalog_resume(s->catalog, rc == 0, &why)) {
        log_error("the catalogue of the state that was put back cannot be read: %s", why.text);
        abort(); /* the disk has it: a restart says what is wrong */
    }
    np_front_go_on(s->front);
    eng_state_settle(s->eng); /* no other state is put back before this statement is answered */
    return rc;
}

static int remove_state(void *arg, const char *name, struct err *e) { return eng_state_remove(((struct states *)arg)->eng, name, e); }

void states_init(struct states *s, struct eng *eng, struct catalog *c, struct np_front *front) {
    *s = (struct states){.eng = eng, .catalog = c, .front = front, .ops = {.arg = s, .save = save, .put_back = put_back, .remove = remove_state}};
    catalog_set_states(c, &s->ops);
}
