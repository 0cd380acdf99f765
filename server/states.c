#include "server/states.h"

#include <stdlib.h>

#include "base/log.h"
#include "engine/state.h"

/* Pauses the API and the page first. Their operations end on their own, because none of them waits for the
 * front. */
static int pause_all(struct states *s, struct err *e) {
    control_plane_pause(s->control_plane);
    page_pause(s->page);
    if (np_front_pause(*s->front, e) == 0) return 0;
    page_continue(s->page);
    control_plane_continue(s->control_plane);
    return -1;
}

static void continue_all(struct states *s) {
    np_front_resume(*s->front);
    page_continue(s->page);
    control_plane_continue(s->control_plane);
}

/* Ends the process when rc is not 0: the disk has the other state already, which memory must
 * match. */
static void must(int rc, const char *what, const struct err *why) {
    if (rc) log_fatal("the %s of the state that was put back cannot be read: %s", what, why->text);
}

/* Takes the turn, or fails at once. Waiting here would be a deadlock: the request that has the
 * turn waits for all other requests to end (np_front_pause). */
static int begin(struct states *s, struct err *e) {
    return pthread_mutex_trylock(&s->turn)
               ? err_set(e, ERR_OVERLOADED, "Another state is being saved or put back; try again")
               : 0;
}

static int put_back_all(struct states *s, const char *name, struct err *e) {
    struct err why = {0};
    catalog_saved_forget(s->catalog, NULL); /* copies of the store that is replaced */
    if (pause_all(s, e)) return -1;
    catalog_suspend(s->catalog);
    if (s->access) access_suspend(s->access);
    int rc = eng_state_put_back(s->eng, name, e);
    must(catalog_resume(s->catalog, rc == 0, &why), "catalogue", &why);
    if (s->access) must(access_resume(s->access, rc == 0, &why), "roles", &why);
    continue_all(s);
    eng_state_settle(s->eng); /* no other state is put back before this statement is answered */
    return rc;
}

static int put_back_keyspace(struct states *s, const char *name, const char *keyspace, struct err *e) {
    struct err why = {0};
    if (catalog_saved_await(s->catalog, name, keyspace, e) || pause_all(s, e)) return -1;
    catalog_suspend(s->catalog);
    int rc = catalog_saved_put_back(s->catalog, name, e);
    must(catalog_resume(s->catalog, rc == 0, &why), "catalogue", &why);
    continue_all(s);
    catalog_saved_prepare(s->catalog, name, keyspace);
    return rc;
}

static int save(void *arg, const char *name, const char *keyspace, struct err *e) {
    struct states *s = arg;
    if (begin(s, e)) return -1;
    catalog_saved_forget(s->catalog, name); /* the copies of a state that this one may replace */
    int rc = pause_all(s, e);
    if (!rc) {
        rc = eng_state_save(s->eng, name, keyspace, e);
        continue_all(s);
    }
    if (!rc && *keyspace) catalog_saved_prepare(s->catalog, name, keyspace);
    pthread_mutex_unlock(&s->turn);
    return rc;
}

static int put_back_named(void *arg, const char *name, struct err *e) {
    struct states *s = arg;
    char keyspace[ENG_STATE_OF_MAX];
    if (eng_state_of(s->eng, name, keyspace, e) || begin(s, e)) return -1;
    int rc = *keyspace ? put_back_keyspace(s, name, keyspace, e) : put_back_all(s, name, e);
    pthread_mutex_unlock(&s->turn);
    return rc;
}

static int remove_state(void *arg, const char *name, struct err *e) {
    struct states *s = arg;
    if (begin(s, e)) return -1;
    catalog_saved_forget(s->catalog, name);
    int rc = eng_state_remove(s->eng, name, e);
    pthread_mutex_unlock(&s->turn);
    return rc;
}

void states_init(struct states *s, struct eng *eng, struct catalog *c, struct access_control *access,
                 struct np_front *const *front) {
    *s = (struct states){.eng = eng,
                         .catalog = c,
                         .access = access,
                         .front = front,
                         .ops = {.arg = s, .save = save, .put_back = put_back_named, .remove = remove_state}};
    pthread_mutex_init(&s->turn, NULL);
    catalog_set_states(c, &s->ops);
}

void states_set_control_plane(struct states *s, struct control_plane *cp) {
    pthread_mutex_lock(&s->turn);
    s->control_plane = cp;
    pthread_mutex_unlock(&s->turn);
}

void states_set_page(struct states *s, struct live_page *page) {
    pthread_mutex_lock(&s->turn);
    s->page = page;
    pthread_mutex_unlock(&s->turn);
}
